"""Common parts of the tests of rules: rewrite, and compare with the original.

``check_rule`` does all of it for one rule: it fires, alone, the expected ops are left, and on data
of every kind the graph computes the original values, or fails where the original failed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE
from symcomp.rewrite.rule import Rule, RuleSet
from symcomp.rewrite.specialize import SPECIALIZE
from symcomp.tests.harness import variables_for

RULES: dict[str, Rule] = {rule.name: rule for rule in (*CANONICALIZE, *STABILIZE, *SPECIALIZE)}
# Exceptions of a graph on bad data, before and after.
FAILURES = (ValueError, IndexError, AssertionError, ZeroDivisionError)
EXTREMES = (
    1e300, -1e300, 1e-300, -1e-300, 5e-324, 1e-40, -7e-46, 1e38, -1e38, 6e4, 0.0, -0.0, 1.0, -1.0,
    0.5, -2.5, 710.0, -710.0,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One example of a rule.

    Attributes
    ----------
    rule : str
    build : callable
        From variables to one variable or a list of them.
    values : tuple of array
        Dtypes and shapes of the variables, and the first data.
    left : str
        The ops that are left, sorted, with spaces between; names of classes or scalar functions.
    static : {"none", "full", "both"}
        How much of the shapes is known.
    rtol, atol : float
        How far the values may be off; 0 for what rounds nothing.
    checks_shapes : bool
        Whether lengths that disagree are errors afterwards if they were before.
    extremes : bool
        Whether the values agree at the ends of the range, too.
    note : str
        What tells the case from others of its rule.
    """

    rule: str
    build: Callable[..., Any]
    values: tuple[Any, ...]
    left: str
    static: str = "both"
    rtol: float = 0.0
    atol: float = 0.0
    checks_shapes: bool = True
    extremes: bool = True
    note: str = field(default="")

    def __str__(self) -> str:
        return f"{self.rule}-{self.note}" if self.note else self.rule


def check_rule(case: Case) -> None:
    """Check that the rule fires alone, what it leaves, and that values, dtypes and shapes stay."""
    arrays = tuple(np.asarray(v) for v in case.values)
    for static in ("none", "full") if case.static == "both" else (case.static,):
        inputs = variables_for(arrays, static)
        built = case.build(*inputs)
        outputs = list(built) if isinstance(built, list | tuple) else [built]
        graph = FunctionGraph(inputs, outputs)
        before = all_kinds(graph)
        firings = Engine(graph, RuleSet([RULES[case.rule]]), on_error="raise").run()
        fired = {firing.rule for firing in firings}
        assert case.rule in fired, f"fired: {fired or 'nothing'}; left: {before}"
        left = " ".join(all_kinds(graph))
        assert left == case.left, f"{left!r} is left of {before}, not {case.left!r}"
        for old, new in zip(outputs, graph.outputs, strict=True):
            assert old.type.is_super(new.type), f"{old.type} became {new.type}"
        for values in data(arrays, inputs, case):
            same_behaviour(inputs, outputs, graph, values, case)


def same_behaviour(
    inputs: Sequence[Any], outputs: Sequence[Any], graph: Any, values: Any, case: Case
) -> None:
    """Assert that the graph computes what the outputs are, or fails as they do."""
    try:
        before = values_of(inputs, outputs, values)
    except FAILURES:
        if case.checks_shapes:
            failed = False
            try:
                run(graph, values)
            except FAILURES:
                failed = True
            assert failed, f"an error was lost: shapes {[v.shape for v in values]}"
        return
    after = run(graph, values)
    for out, old, new in zip(outputs, before, after, strict=True):
        assert new.dtype == old.dtype == out.dtype, f"{old.dtype} became {new.dtype}"
        assert new.shape == old.shape, f"shape {old.shape} became {new.shape}"
        np.testing.assert_array_equal(np.isnan(new), np.isnan(old), err_msg=f"of {values}")
        np.testing.assert_allclose(new, old, rtol=case.rtol, atol=case.atol, err_msg=f"of {values}")


def data(
    arrays: Sequence[np.ndarray], inputs: Sequence[Any], case: Case
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the values of the case, and others: random, extreme, not finite, empty, strided, of
    other lengths, of lengths that disagree.
    """
    rng = np.random.default_rng(5)
    yield tuple(arrays)
    yield tuple(_strided(a) for a in arrays)
    shapes = [a.shape for a in arrays]
    kinds_of_data = ["random", *["extreme", "infinite"] * 4] if case.extremes else ["random"]
    for kind in kinds_of_data:
        yield tuple(_filled(a, s, kind, rng) for a, s in zip(arrays, shapes, strict=True))
    lengths = sorted({n for s in shapes for n in s if n != 1})
    if any(n is not None and n != 1 for x in inputs for n in x.type.shape):
        return
    for length, new in itertools.product(lengths, (0, 2, 7)):
        others = [tuple(new if n == length else n for n in s) for s in shapes]
        yield tuple(_filled(a, s, "random", rng) for a, s in zip(arrays, others, strict=True))
    for i, shape in enumerate(shapes):
        for axis in (a for a, n in enumerate(shape) if n != 1):
            for new in (1, shape[axis] + 1):
                other = (*shape[:axis], new, *shape[axis + 1 :])
                changed = [*shapes[:i], other, *shapes[i + 1 :]]
                yield tuple(
                    _filled(a, s, "random", rng) for a, s in zip(arrays, changed, strict=True)
                )


def _filled(like: np.ndarray, shape: tuple[int, ...], kind: str, rng: Any) -> np.ndarray:
    """Data of a dtype and shape; what counts or indexes (integers) stays as it is."""
    if like.dtype.kind not in "fc":
        return np.resize(like, shape)
    values = rng.normal(size=shape) * 3
    if kind == "extreme":
        values = rng.choice(EXTREMES, size=shape)
    if kind == "infinite":
        values = np.where(
            rng.random(shape) < 0.5, rng.choice([np.nan, np.inf, -np.inf, 0.0], shape), values
        )
    with np.errstate(over="ignore"):
        return np.asarray(values, like.dtype)


def _strided(a: np.ndarray) -> np.ndarray:
    """Return the same values, the last axis backwards in memory, the others in Fortran's order."""
    if not a.ndim:
        return a
    return np.asfortranarray(a[..., ::-1])[..., ::-1]


def values_of(inputs: Sequence[Any], outputs: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Compute the outputs; the arguments stay as they are."""
    given = [np.array(v, copy=True, order="K") for v in values]
    with np.errstate(all="ignore"):
        return evaluate(outputs, dict(zip(inputs, given, strict=True)))


def rewritten(inputs: Sequence[Any], outputs: Sequence[Any], *rules: Any) -> FunctionGraph:
    """Return the graph after canonicalization and the rule sets, one after the other."""
    graph = FunctionGraph(inputs, outputs)
    for rule_set in (CANONICALIZE, *rules):
        Engine(graph, RuleSet(rule_set), on_error="raise").run()
    return graph


def names(graph: FunctionGraph) -> list[str]:
    """Return the remaining ops, in a stable order."""
    return [str(node.op) for node in graph.toposort()]


def kinds(graph: FunctionGraph, *ignored: str) -> list[str]:
    """Return the classes or scalar functions of the remaining ops, sorted, without views."""
    return [name for name in all_kinds(graph) if name not in ("DimShuffle", *ignored)]


def all_kinds(graph: FunctionGraph) -> list[str]:
    """Return the classes or scalar functions of the remaining ops, sorted."""
    return sorted(name.split("{")[0] for name in names(graph))


def run(graph: FunctionGraph, values: Sequence[Any]) -> list[Any]:
    """Compute the outputs; the arguments stay as they are."""
    return values_of(graph.inputs, graph.outputs, values)


def same_values(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    graph: FunctionGraph,
    values: Sequence[Any],
    rtol: float = 1e-12,
    atol: float = 1e-12,
) -> None:
    """Assert that the graph computes what the outputs were: equal dtypes, shapes and values, and
    nothing finite that was not.
    """
    before = values_of(inputs, outputs, values)
    for out, old, new in zip(outputs, before, run(graph, values), strict=True):
        assert new.dtype == old.dtype == out.dtype and new.shape == old.shape
        assert not np.any(np.isfinite(new) & ~np.isfinite(old)), "NaN or infinity was lost"
        both = np.isfinite(old) & np.isfinite(new)
        np.testing.assert_array_equal(both, np.isfinite(old))
        np.testing.assert_allclose(new[both], old[both], rtol=rtol, atol=atol)
