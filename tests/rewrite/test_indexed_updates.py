"""Steps along gradients of rows change the rows only, and compute the same."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.errors import ShapeError
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.indexed_updates import INDEXED_UPDATES
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import (
    Case,
    check_rule,
    kinds,
    names,
    rewritten,
    run,
    same_values,
)

RNG = np.random.default_rng(5)
W, V, RATE = T.dmatrix("W"), T.dmatrix("V"), T.dscalar("rate")
I, J, K = T.lvector("i"), T.lvector("j"), T.lscalar("k")
INPUTS = [W, V, RATE, I, J, K]
COSTS = {
    "rows": T.sqr(W[I]).sum(),
    "mean": T.exp(W[I]).mean(),
    "columns": T.sqr(W[:, I]).sum(),
    "elements": T.exp(W[I, J]).sum(),
    "one row": T.exp(W[K]).sum(),
    "one element": T.exp(W[K, 0]),
    "a slice": T.exp(W[1:K]).sum(),
    "backwards": T.exp(W[::-2, K:]).sum(),
    "two lookups": T.sqr(W[I] * W[J]).sum(),
    "two terms": T.sqr(W[I]).sum() + T.exp(W[J]).sum() + T.exp(W[K]).sum(),
    "mixed": T.sqr(W[1:] * 2.0).sum() + T.exp(W[:, J]).sum(),
}
OTHER = symcomp.grad(T.cosh(W[J]).sum(), W)
STEPS = {
    "step": lambda g: W - RATE * g,
    "number": lambda g: W - 0.1 * g,
    "plus": lambda g: -RATE * g + W,
    "bare": lambda g: W + g,
    "divided": lambda g: W - RATE * g / W.shape[0] / 3.0,
    "momentum": lambda g: 0.9 * V - RATE * g,
    "with decay": lambda g: W - RATE * 0.1 * W - g * RATE,
    "two gradients": lambda g: W - (g * RATE + OTHER * 0.5 * RATE),
}


def values(rows=(2, -1, 2, 0), others=(0, 0, -3, 1), rate=0.3, k=2):
    w, v = RNG.normal(size=(2, 3, 3))
    return [w, v, np.array(rate), np.array(rows, int), np.array(others, int), np.array(k)]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("cost", COSTS)
def test_no_zeros_are_made(cost, step):
    """Repeated and negative positions, slices, and no rows at all."""
    outputs = [STEPS[step](symcomp.grad(COSTS[cost], W))]
    graph = rewritten(INPUTS, outputs)
    assert "Alloc" not in names(graph) and "IncSubtensor" in kinds(graph)
    same_values(INPUTS, outputs, graph, values())
    none = () if cost != "mean" else (1,)
    same_values(INPUTS, outputs, graph, values(none, none))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("rate", [np.nan, np.inf, -np.inf, 0.0])
def test_a_rate_that_is_no_number_shows_everywhere(cost, rate):
    g = symcomp.grad(COSTS[cost], W)
    outputs = [W - RATE * g, W - g / RATE, 0.9 * V + g * RATE * 2.0]
    for out in outputs:
        graph = rewritten(INPUTS, [out])
        assert "Alloc" not in names(graph) and "PlusScalar" in names(graph)
        same_values(INPUTS, [out], graph, values(rate=rate))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_in_the_rows(bad):
    g = symcomp.grad(COSTS["two terms"], W)
    outputs = [W - RATE * g]
    given = values()
    given[0][2, 1] = bad
    same_values(INPUTS, outputs, rewritten(INPUTS, outputs), given)


def test_a_constant_that_is_no_number():
    g = symcomp.grad(COSTS["rows"], W)
    for c in (np.nan, np.inf):
        outputs = [W - c * g]
        same_values(INPUTS, outputs, rewritten(INPUTS, outputs), values())


def test_the_way_of_a_factor_is_kept():
    """The rows go through the same functions in the same order: nothing rounds otherwise."""
    g = symcomp.grad(COSTS["elements"], W)
    outputs = [W - RATE * (g / 3.0) * 0.7]
    graph = rewritten(INPUTS, outputs)
    assert "IncSubtensor" in kinds(graph)
    given = values((0, 1, 2, 0), (0, 1, 2, 1))
    same_values(INPUTS, outputs, graph, given, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    w, rate = T.matrix("w", dtype=dtype), T.dscalar("rate")
    factor = T.cast(rate, dtype)
    grad = T.inc_subtensor(T.zeros_like(w)[I], 2 * w[I])
    wide = "complex128" if dtype.startswith("c") else "float64"
    outputs = [w - factor * grad, T.cast(w, wide) - rate * grad, w - T.cast(grad, dtype) / 2]
    inputs = [w, rate, I]
    for out in outputs:
        graph = rewritten(inputs, [out])
        assert "Alloc" not in names(graph)
        given = [RNG.normal(size=(3, 2)).astype(dtype), np.array(0.3), np.array([1, -2, 0])]
        tolerance = {"float16": 5e-3, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
        same_values(inputs, [out], graph, given, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integers_wrap_as_they_did(dtype):
    w, i = T.matrix("w", dtype=dtype), T.lvector("i")
    rows = T.inc_subtensor(T.zeros_like(w)[i], w[i])
    outputs = [w - rows * np.asarray(7, dtype), w + rows, T.cast(w, "int64") - rows]
    for out in outputs:
        graph = rewritten([w, i], [out])
        given = [np.array([[100, 3], [90, 7]]).astype(dtype), np.array([0, 0, 0, 1])]
        same_values([w, i], [out], graph, given)
    for out in outputs[:2]:
        assert "Alloc" not in names(rewritten([w, i], [out]))


def test_set_rows():
    zeros = T.zeros_like(W)
    for part in (T.set_subtensor(zeros[1:K], V[1:K]), T.set_subtensor(zeros[K], 2.0)):
        graph = rewritten(INPUTS, [W - RATE * part])
        assert "Alloc" not in names(graph)
        same_values(INPUTS, [W - RATE * part], graph, values())
    repeated = [W - T.set_subtensor(zeros[I], V[J])]
    graph = rewritten(INPUTS, repeated)
    same_values(INPUTS, repeated, graph, values())
    assert kinds(graph).count("SetSubtensor") == 1


def test_where_it_does_not_apply():
    g = symcomp.grad(COSTS["rows"], W)
    row = T.drow("r")
    added = T.inc_subtensor(T.zeros_like(row)[0], V[0])
    for inputs, outputs in (
        (INPUTS, [W - RATE * g, g]),
        (INPUTS, [W - T.sqr(g)]),
        (INPUTS, [W - V * g]),
        ([*INPUTS, row], [W + added]),
    ):
        graph = rewritten(inputs, outputs)
        given = [*values(), np.ones((1, 3))][: len(inputs)]
        same_values(inputs, outputs, graph, given)
        assert {"sub", "add"} & set(names(graph))


def test_lengths_that_differ_stay_errors():
    g = symcomp.grad(COSTS["rows"], W)
    graph = rewritten(INPUTS, [0.9 * V - RATE * g])
    assert "Alloc" not in names(graph)
    given = values()
    given[1] = np.ones((4, 3))
    with pytest.raises(ShapeError, match=r"sum: shapes \(3, 3\) and \(4, 3\) do not fit"):
        run(graph, given)


def test_a_step_compiled():
    w = symcomp.shared(np.ones((4, 2)), name="w")
    cost = T.sqr(w[I]).sum()
    f = symcomp.function([I, RATE], cost, updates=[(w, w - RATE * symcomp.grad(cost, w))])
    f([1, 1, -1], 0.25)
    np.testing.assert_allclose(w.get_value(), [[1, 1], [0, 0], [1, 1], [0.5, 0.5]])


X = np.arange(12.0).reshape(3, 4) - 5.5
ROW = np.arange(4.0) + 0.25
COUNTS = np.array([3, -2, 7, 1])
SCALE = np.array(2.5)


def rows(x, i, y):
    """zeros but y at i."""
    return T.inc_subtensor(T.zeros_like(x)[i], y)


CASES = [
    Case("add_rows", lambda x, y, s: x + rows(x, 1, y) / s, (X, ROW, SCALE),
         "DimShuffle DimShuffle DimShuffle IncSubtensor PlusScalar true_div true_div",
         extremes=False, note="divided"),
    Case("add_rows", lambda x, y, z: z + rows(x, 1, y), (X, ROW, X),
         "IncSubtensor SameLengths", static="none", note="other lengths"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (lambda x, y: T.zeros_like(x) + rows(x, 1, y), (X, ROW)),
        (lambda x, y: T.cast(x, "int64") + rows(x, 1, y), (COUNTS.astype("int8"), np.int8(1))),
    ],
)
def test_rule_does_not_fire(build, values):
    inputs = variables_for(values, "none")
    graph = FunctionGraph(inputs, [build(*inputs)])
    assert not Engine(graph, RuleSet(INDEXED_UPDATES), folding=False, merging=False).run()


def test_what_dies_is_overwritten():
    inner = T.exp(W) - RATE * symcomp.grad(COSTS["rows"], W)
    f = symcomp.function([W, RATE, I], inner)
    assert any(
        max(step.into, default=-1) >= 0 and "IncSubtensor" in str(step.node)
        for step in f.program.instructions
    )
