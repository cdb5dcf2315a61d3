"""What every test of rules does: rewrite, and compare with what was before."""

import numpy as np

from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.rewrite.rule import RuleSet


def rewritten(inputs, outputs, *rules):
    """The graph after canonicalization and the rule sets, one after the other."""
    graph = FunctionGraph(inputs, outputs)
    for rule_set in (CANONICALIZE, *rules):
        Engine(graph, RuleSet(rule_set), on_error="raise").run()
    return graph


def names(graph):
    """The ops that are left, in a stable order."""
    return [str(node.op) for node in graph.toposort()]


def kinds(graph, *ignored):
    """The classes or scalar functions that are left, sorted, but for views."""
    found = [str(node.op).split("{")[0] for node in graph.toposort()]
    return sorted(name for name in found if name not in ("DimShuffle", *ignored))


def run(graph, values):
    """The values of the outputs; the arguments stay as they are."""
    given = [np.array(v, copy=True, order="K") for v in values]
    with np.errstate(all="ignore"):
        return evaluate(graph.outputs, dict(zip(graph.inputs, given, strict=True)))


def same_values(inputs, outputs, graph, values, rtol=1e-12, atol=1e-12):
    """Assert that the graph computes what the outputs were: equal dtypes, shapes and values, and
    nothing finite that was not.
    """
    with np.errstate(all="ignore"):
        before = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    for out, old, new in zip(outputs, before, run(graph, values), strict=True):
        assert new.dtype == old.dtype == out.dtype and new.shape == old.shape
        assert not np.any(np.isfinite(new) & ~np.isfinite(old)), "NaN or infinity was lost"
        both = np.isfinite(old) & np.isfinite(new)
        np.testing.assert_array_equal(both, np.isfinite(old))
        np.testing.assert_allclose(new[both], old[both], rtol=rtol, atol=atol)
