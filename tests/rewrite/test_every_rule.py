"""No rule without an example, and none that other rules keep from ever firing: canonicalize and
stabilize. The rules of linear algebra have their own tests.
"""

import numpy as np

from symcomp.compile.mode import Mode
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.linalg import LINALG_RULES
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE, rewrite
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite import (
    test_canonicalize_algebra,
    test_canonicalize_indexing,
    test_canonicalize_structure,
    test_stabilize,
)

MODULES = (
    test_canonicalize_algebra,
    test_canonicalize_structure,
    test_canonicalize_indexing,
    test_stabilize,
)
RULES = {rule.name for rule in (*CANONICALIZE, *STABILIZE)} - LINALG_RULES.names
CASES = [case for module in MODULES for case in module.CASES]


def fired_in_a_function(case):
    """Return the rules that fire when the case is compiled as a function."""
    fired = set()
    for static in ("none", "full") if case.static == "both" else (case.static,):
        inputs = variables_for(tuple(np.asarray(v) for v in case.values), static)
        built = case.build(*inputs)
        graph = FunctionGraph(inputs, built if isinstance(built, list | tuple) else [built])
        mode = Mode(linker="vm", optimizer="fast_run")
        fired |= set(rewrite(graph, mode.selects, on_error="raise").counts())
    return fired


def test_every_rule_has_a_case():
    assert {case.rule for case in CASES} == RULES


def test_every_rule_fires_among_the_others():
    fired = set().union(*(fired_in_a_function(case) for case in CASES))
    assert RULES - fired == set()


def test_a_case_is_told_from_the_others():
    names = [str(case) for case in CASES]
    assert len(set(names)) == len(names)
