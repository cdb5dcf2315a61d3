"""Rules and phases that users register."""

import pytest

import symcomp
import symcomp.tensor as T
from symcomp.rewrite.phases import Phase
from symcomp.rewrite.registry import register_phase, register_rule, unregister
from symcomp.rewrite.rule import RuleSet, rule


@rule("sin", why="a test")
def sine_is_one(node, graph):
    """sin(x) -> second(x, 1)"""
    return T.second(node.inputs[0], 1.0)


@pytest.mark.parametrize("phase", ["canonicalize", "stabilize", "scan", "specialize"])
def test_rule(phase):
    x = T.dscalar("x")
    registered = register_rule(sine_is_one, phase)
    try:
        f = symcomp.function([x], T.sin(x))
        without = symcomp.function([x], T.sin(x), mode=symcomp.Mode().excluding("sine_is_one"))
        assert float(f(0.0)) == 1.0 and float(without(0.0)) == 0.0
        merging = symcomp.function([x], T.sin(x), mode=symcomp.Mode(optimizer="merge"))
        assert float(merging(0.0)) == 0.0
    finally:
        unregister(registered)
    assert float(symcomp.function([x], T.sin(x))(0.0)) == 0.0


def test_levels():
    x = T.dscalar("x")
    registered = register_rule(sine_is_one, "specialize", levels=["merge_only"])
    try:
        assert float(symcomp.function([x], T.sin(x))(0.0)) == 0.0
        merging = symcomp.function([x], T.sin(x), mode=symcomp.Mode(optimizer="merge"))
        assert float(merging(0.0)) == 1.0
    finally:
        unregister(registered)


@pytest.mark.parametrize("before", ["stabilize", "fusion", None])
def test_phase(before):
    seen = []
    phase = Phase(
        "looking", "a test", RuleSet([]), ("fast_run",), lambda graph, firings: seen.append(graph)
    )
    registered = register_phase(phase, before)
    x = T.dvector("x")
    try:
        f = symcomp.function([x], T.exp(x + 0) * 2)
    finally:
        unregister(registered)
    names = [report.name for report in f.maker.trace.phases]
    assert len(seen) == 1
    assert names.index("looking") == (len(names) - 1 if before is None else names.index(before) - 1)
