"""Kernels that reduce: every reduction, dtype, order of axes and layout; passes over rows."""

import itertools
import math

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.cpu.schedule import schedule
from symcomp.codegen.kernel import kernel_of
from symcomp.codegen.loopir.kernel import Role
from symcomp.codegen.loops.nests import nest_of, reduced_axes
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, attempt, call, compute, literal, patterns_of

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
)  # fmt: skip
RTOL = {"float16": 1e-3, "float32": 2e-6, "float64": 1e-14}


def row(name, *parameters):
    return ROWS[name](*parameters)


def reduction(name, axes, dtype, *more):
    """Make a formula that reduces its only input."""
    function = Reduce(REDUCTIONS[name], axes, *more)
    out = function.dtype or function.reduction.dtype(dtype)
    return Formula((dtype,), (), (Step(function, (0,), out),), (Result(1, axes),))


def values(dtype, shape, rng):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -50, 50, shape).astype(dtype)
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


def agree(got, want, what=""):
    assert got.dtype == want.dtype and got.shape == want.shape, what
    rtol = RTOL.get(got.dtype.name, 0)
    np.testing.assert_allclose(got, want, rtol, err_msg=str(what))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_reduction_and_dtype(dtype):
    rng = np.random.default_rng(2)
    names = [n for n, r in REDUCTIONS.items() if not (r.bitwise and dtype.startswith("float"))]
    formulas = [reduction(name, axes, dtype) for name in names for axes in ((0,), (1,))]
    functions = addresses([kernel_of(f, [(False, False)]) for f in formulas])
    for shape in ((3, 4), (1000, 3), (3, 1000), (40, 129), (2, 300)):
        x = values(dtype, shape, rng)
        for formula, function in zip(formulas, functions, strict=True):
            want = formula.steps[0].function.perform(x)
            (got,) = call(function, formula, [x])
            if formula.steps[0].function.reduction.name == "prod" and want.dtype.kind == "f":
                # NumPy multiplies one after the other, in float32.
                want = np.prod(x, reduced_axes(formula), np.float64).astype(want.dtype)
            agree(got, want, (formula.steps[0], shape))


LAYOUTS = {
    "contiguous": lambda x: x,
    "columns": np.asfortranarray,
    "permuted": lambda x: x.transpose(1, 2, 0),
    "reversed": lambda x: x[::-1, :, ::-1],
    "every other": lambda x: x[:, ::2, ::3],
    "repeated": lambda x: np.broadcast_to(x[:1, :, :1], x.shape),
    "long": lambda x: np.concatenate([x] * 20, axis=2),
    "empty": lambda x: x[:, :0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [a for r in range(4) for a in itertools.combinations(range(3), r)])
def test_axes_and_layouts(axes, layout):
    rng = np.random.default_rng(3)
    x = LAYOUTS[layout](rng.standard_normal((12, 13, 29)))
    formula = reduction("sum", axes, "float64")
    (got,) = compute(formula, x)
    want = formula.steps[0].function.perform(x)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("shape", [(3, 700), (700, 3), (300, 300)])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_keep_nan_and_infinity(name, shape, axis):
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape)
    x[rng.random(shape) < 0.01] = np.nan
    x[rng.random(shape) < 0.01] = np.inf
    x[0], x[:, 1] = -np.inf, np.inf
    formula = reduction(name, (axis,), "float64")
    np.testing.assert_array_equal(compute(formula, x)[0], formula.steps[0].function.perform(x))


@pytest.mark.parametrize("special", [[np.inf], [-np.inf], [np.inf, -np.inf], [np.nan], [1e308] * 3])
@pytest.mark.parametrize("shape", [(900,), (900, 5)])
def test_sums_of_special_values(special, shape):
    x = np.ones(shape)
    x[: 7 * len(special) : 7] = np.asarray(special).reshape(-1, *(1,) * (len(shape) - 1))
    formula = reduction("sum", (0,), "float64")
    with np.errstate(all="ignore"):
        want = formula.steps[0].function.perform(x)
    np.testing.assert_array_equal(compute(formula, x)[0], want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [100, 1000, 100_003, 1_000_000])
def test_sums_are_as_accurate_as_those_of_numpy(n, dtype):
    rng = np.random.default_rng(n)
    formula = reduction("sum", (0,), dtype)
    ours = theirs = 0.0
    functions = addresses([kernel_of(formula, [p]) for p in ((False,), (False, False))])
    for _ in range(10):
        x = rng.random(n).astype(dtype)
        exact = math.fsum(x)
        ours += abs(float(call(functions[0], formula, [x])[0][()]) - exact)
        theirs += abs(float(x.sum()) - exact)
        columns = np.repeat(x[:, None], 3, axis=1) if n < 10**6 else x[:, None]
        by_column = compute(formula, columns)[0]
        assert np.all(
            abs(by_column - exact) <= abs(columns.sum(0) - exact).max() + np.spacing(by_column)
        )
    assert ours <= theirs + 10 * np.spacing(x.sum())


def test_dtypes_of_sums():
    x = np.full((3, 1000), 100, "int8")
    for more in ((), ("int8",), ("float64",), ("float32", "float64"), ("int16", "int64")):
        formula = reduction("sum", (1,), "int8", *more)
        agree(compute(formula, x)[0], formula.steps[0].function.perform(x), more)
    half = np.full((3, 3000), 0.1, "float16")
    for more in (("float16", "float16"), ("float32",), ("float64", "float32")):
        formula = reduction("sum", (1,), "float16", *more)
        agree(compute(formula, half)[0], formula.steps[0].function.perform(half), more)


def test_no_largest_of_none():
    formula = reduction("max", (1,), "float64")
    x = np.empty((3, 0))
    (function,) = addresses([kernel_of(formula, patterns_of([x]))])
    assert attempt(function, formula, [x])[0] == 1
    assert attempt(function, formula, [np.empty((0, 3))])[0] == 0
    assert attempt(function, formula, [np.empty((0, 0))])[0] == 1
    (total,) = compute(reduction("sum", (1,), "float64"), x)
    np.testing.assert_array_equal(total, np.zeros(3))


def softmax(axes, dtype="float64"):
    """exp(x - max x) / sum of exp(x - max x)."""
    steps = (
        Step(Reduce(REDUCTIONS["max"], axes), (0,), dtype),
        Step(row("sub"), (0, 1), dtype),
        Step(row("exp"), (2,), dtype),
        Step(Reduce(REDUCTIONS["sum"], axes), (3,), dtype),
        Step(row("true_div"), (3, 4), dtype),
    )
    return Formula((dtype,), (), steps, (Result(5),))


def softmax_by_hand(x, axes):
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(60, 10), (5, 1000), (1000, 5), (1, 7), (300, 70), (3, 4, 5)])
def test_softmax(shape, dtype):
    x = (np.random.default_rng(1).standard_normal(shape) * 5).astype(dtype)
    for axes in ((0,), (1,), tuple(range(len(shape)))):
        for layout in (x, np.asfortranarray(x), x[::-1]):
            (got,) = compute(softmax(axes, dtype), layout)
            np.testing.assert_allclose(got, softmax_by_hand(layout, axes), rtol=RTOL[dtype] * 10)


def normalized(axes):
    """(x - mean) / sqrt(variance + 1/8) * scale + shift, with mean and variance as results; n is
    the number of elements reduced."""
    kind = "float64"
    steps = (
        Step(Reduce(REDUCTIONS["sum"], axes), (0,), kind),
        Step(row("true_div"), (5, 3), kind),
        Step(row("sub"), (0, 6), kind),
        Step(row("sqr"), (7,), kind),
        Step(Reduce(REDUCTIONS["sum"], axes), (8,), kind),
        Step(row("true_div"), (9, 3), kind),
        Step(row("add"), (10, 4), kind),
        Step(row("sqrt"), (11,), kind),
        Step(row("true_div"), (7, 12), kind),
        Step(row("mul"), (13, 1), kind),
        Step(row("add"), (14, 2), kind),
    )
    results = (Result(15), Result(6, axes), Result(10))
    return Formula((kind,) * 4, (literal(0.125, kind),), steps, results)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (50, 7, 200), (1, 300, 2), (600, 2, 3)])
def test_several_passes_and_results(shape, axes):
    rng = np.random.default_rng(9)
    x = rng.standard_normal(shape)
    kept = [1 if a in axes else n for a, n in enumerate(shape)]
    scale, shift = rng.standard_normal(shape), rng.standard_normal(kept)
    n = np.full((1, 1, 1), float(np.prod([shape[a] for a in axes])))
    mean = x.sum(axes, keepdims=True) / n
    variance = np.square(x - mean).sum(axes, keepdims=True) / n
    want = (x - mean) / np.sqrt(variance + 0.125) * scale + shift
    got = compute(normalized(axes), x, scale, shift, n)
    np.testing.assert_allclose(got[0], want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(got[1], mean.squeeze(axes), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got[2], variance, rtol=1e-11)


def test_two_reductions_of_one_pass():
    steps = (
        Step(row("mul"), (0, 1), "float64"),
        Step(Reduce(REDUCTIONS["sum"], (1,)), (2,), "float64"),
        Step(Reduce(REDUCTIONS["max"], (1,)), (0,), "float64"),
        Step(row("add"), (3, 4), "float64"),
    )
    formula = Formula(("float64",) * 2, (), steps, (Result(5, (1,)), Result(2)))
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((40, 300)), rng.standard_normal((1, 300))
    for a, b in ((x, y), (np.asfortranarray(x), y), (y, x), (x, x[:, :1])):
        got, product = compute(formula, a, b)
        np.testing.assert_array_equal(product, a * b)
        if a.shape == x.shape:
            np.testing.assert_allclose(got, (a * b).sum(1) + a.max(1), rtol=1e-11)


def deviations(dtype, name):
    """Make a formula that reduces x - y along the last axis, or functions of it."""
    function = Reduce(REDUCTIONS["max" if name == "max" else "sum"], (1,), dtype, dtype)
    steps = [Step(row("sub"), (0, 1), dtype)]
    if name == "exp":
        steps.append(Step(row("exp"), (2,), dtype))
    steps.append(Step(function, (len(steps) + 1,), dtype))
    if name == "of result":
        steps += [Step(row("sub"), (2, 3), dtype), Step(row("mul"), (4, 1), dtype)]
        steps.append(Step(function, (5,), dtype))
    first = 1 + len(steps)
    return Formula((dtype,) * 2, (), tuple(steps), (Result(first, (1,)), Result(2)))


@pytest.mark.parametrize("name", ["sum", "max", "exp", "of result"])
@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
def test_inputs_with_one_element_for_each_result(name, dtype):
    """Kernels load them in place, and their results have the bits of those with copies in rows."""
    if name == "exp" and dtype == "int32":
        return
    formula = deviations(dtype, name)
    patterns = [(False, False), (False, True)], [(False, False)] * 2
    one, every = addresses([kernel_of(formula, p) for p in patterns])
    stage = schedule(nest_of(formula, patterns[0])).sweep.stages[0]
    assert (stage.along.roles[1], stage.across.roles[1]) == (Role.READ, Role.NUMBER)
    rng = np.random.default_rng(5)
    for shape in ((5, 64), (3, 64 * 8 + 21), (2, 3000), (1, 7), (40, 3), (2, 100_000)):
        x, y = values(dtype, shape, rng), values(dtype, (shape[0], 1), rng)
        rows = np.ascontiguousarray(np.broadcast_to(y, shape))
        for layout in (lambda a: a, lambda a: a[::-1], lambda a: np.repeat(a, 2, 0)[::2]):
            got = call(one, formula, [layout(x), layout(y)])
            want = call(every, formula, [layout(x), layout(rows)])
            for z, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(z, w)


def test_stretched_along_reduced_axes_only_in_part_is_refused():
    """The sum of a row is not the sum of as many rows as others have."""
    steps = (
        Step(Reduce(REDUCTIONS["sum"], (0, 1)), (1,), "float64"),
        Step(row("add"), (0, 2), "float64"),
    )
    formula = Formula(("float64",) * 2, (), steps, (Result(3),))
    assert kernel_of(formula, [(False, False), (True, False)]) is None
    assert kernel_of(formula, [(False, False), (False, False)]) is not None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (7,), (500,), (3, 40), (40, 3), (2, 1100)])
def test_sums_chosen_by_truths_are_those_chosen_by_numbers(dtype, shape):
    """Truths are made wider in loops over sums; the order of the sums is the same."""
    rng = np.random.default_rng(len(shape))
    x = T.tensor(dtype=dtype, shape=(None,) * len(shape))
    truths = T.tensor(dtype="bool", shape=x.type.shape)
    numbers = T.tensor(dtype="int64", shape=x.type.shape)
    value, chosen = rng.normal(size=shape).astype(dtype), rng.random(shape) < 0.5
    for axis in (None, *range(len(shape))):
        sums = [
            T.sum(T.switch(c, T.exp(x), -x), axis=axis, acc_dtype=dtype)
            for c in (truths, T.neq(numbers, 0))
        ]
        f = symcomp.function([x, truths], sums[0])
        g = symcomp.function([x, numbers], sums[1])
        found = f(value, chosen)
        np.testing.assert_array_equal(found, g(value, chosen.astype(np.int64)))
        every = np.where(chosen, np.exp(value), -value).astype(np.float64)
        np.testing.assert_allclose(found, every.sum(axis), rtol=1e-4, atol=1e-4)
