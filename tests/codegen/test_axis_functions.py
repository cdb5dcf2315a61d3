"""Functions of lines in C give what they give with NumPy."""

from functools import partial
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.codegen.kernel import whole_kernel
from symcomp.codegen.loops.axis_functions import plain
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step, folded_axes
from symcomp.ops.indexing.gather_labels import GatherLabels, ScatterLabels, nowhere
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.ops.nnet.softmax import (
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    Softmax,
    SubtractWeightedMean,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.ops.nnet.weighted_mean import WeightedDeviation, WeightedMean
from symcomp.ops.numerics.exact import WIDER
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.reductions.stable_reduce import LogProd
from symcomp.tests.codegen.running import addresses, attempt

# Numbers of float16 are read and written, but not computed in: softmax alone is tested.
FLOATS = ("float32", "float64")
SHAPES = ((3, 4, 5), (60, 10, 1), (1, 7, 130), (2, 600, 3), (0, 3, 2), (2, 0, 3), (1, 1, 1))
# Exponentials have errors below 2 ulp; their quotients, of the next binade, twice those of both.
ULPS = 6
AXES = ((1,), (0, 2))


def formula_of(function, dtypes):
    """Make a formula of one step."""
    dtype = dtypes[-1] if isinstance(function, ScatterLabels) else dtypes[0]
    step = Step(function, tuple(range(len(dtypes))), dtype)
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes), folded_axes(function)),))


class Compiled:
    """Formulas with the literals of their kernels, and what runs them."""

    def __init__(self, formulas, patterns):
        wholes = [whole_kernel(f, p) for f, p in zip(formulas, patterns, strict=True)]
        assert all(whole is not None for whole in wholes)
        self.functions = addresses([whole.kernel for whole in wholes])
        self.formulas = formulas
        self.literals = [whole.kernel.literals for whole in wholes]

    def attempt(self, i, *values):
        formula = SimpleNamespace(
            patterns=self.formulas[i].patterns, results=self.formulas[i].results,
            dtypes=self.formulas[i].dtypes, literals=self.literals[i],
        )  # fmt: skip
        return attempt(self.functions[i], formula, values)

    def __call__(self, i, *values):
        status, results = self.attempt(i, *values)
        assert status == 0
        return results


def compiled(formulas):
    """Kernels that stretch no axis."""
    return Compiled(formulas, [[(False,) * 3] * len(f.inputs) for f in formulas])


def agree(got, want, scale=0, note=""):
    """NaN and infinity alike, and the rest within some ulps of the larger of it and scale."""
    assert got.shape == want.shape
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        unit = np.spacing(np.maximum(np.abs(want), scale).astype(want.dtype))
        gap = np.abs(got.astype(np.longdouble) - want) / unit
        good = same | (np.isfinite(want) & (gap <= ULPS))
    assert good.all(), (note, got.shape, got[~good][:5], want[~good][:5], gap[~good][:5])


def wide(function, *values):
    """Return the function's value in the next wider type."""
    with np.errstate(all="ignore"):
        return function.perform(*(v.astype(WIDER[v.dtype.name]) for v in values))


def lines_of(shape, dtype, rng, special=False):
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    if special and x.size:
        at = rng.random(shape)
        x[at < 0.02] = np.nan
        x[(at > 0.02) & (at < 0.05)] = np.inf
        # The exponential of this overflows, also in the dtype that kernels compute in.
        x[(at > 0.05) & (at < 0.1)] = 750 if dtype == "float64" else 95
        x[at > 0.6] = -np.inf
        x[-1:] = -np.inf
    return x


@pytest.mark.parametrize("dtype", ["float16", *FLOATS])
@pytest.mark.parametrize("make", [Softmax, LogSoftmax])
def test_softmax(make, dtype):
    rng = np.random.default_rng(3)
    functions = [make(axis) for axis in ((1,) if dtype == "float16" else range(3))]
    run = compiled([formula_of(f, [dtype]) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for v in (x, np.asfortranarray(x), np.repeat(x, 2, axis=2)[::-1, :, ::2]):
                for i, function in enumerate(functions):
                    agree(run(i, v)[0], wide(function, v))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_softmax_keeps_digits_where_one_dominates(dtype):
    x = np.asarray([[[0, -30, -30]], [[100, 99, -1e4]], [[7, 7, -20]], [[3, 3, 3]]], dtype)
    x[0, 0, 1] = -60
    (got,) = compiled([formula_of(LogSoftmax(2), [dtype])])(0, x)
    want = LogSoftmax(2).perform(x)
    assert got[0, 0, 0] != 0
    agree(got, want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_lines(dtype):
    rng = np.random.default_rng(4)
    functions = [op(axes) for op in (WeightedSoftmax, SubtractWeightedMean) for axes in AXES]
    functions += [SubtractWeightedMean(axes, transposed=True) for axes in AXES]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for i, function in enumerate(functions):
                axes = function.axes
                w = np.abs(lines_of(shape, dtype, rng))
                w[rng.random(shape) < 0.2] = 0
                if isinstance(function, SubtractWeightedMean):
                    total = w.sum(axis=axes, keepdims=True, dtype="float64")
                    w = (w / np.where(total == 0, 1, total)).astype(dtype)
                want = wide(function, x, w)
                with np.errstate(all="ignore"):
                    part = np.abs(x) + np.sum(np.abs(x * w), axis=axes, keepdims=True)
                scale = part if isinstance(function, SubtractWeightedMean) else 0
                agree(run(i, x, w)[0], want, np.nan_to_num(scale, posinf=0), (function, special))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_centred_where_one_weight_is_nearly_one(dtype):
    small = np.asarray(1e-12, dtype)
    w = np.asarray([[[1 - small, small / 2, small / 2]]], dtype)
    x = np.asarray([[[3, 5, -4]]], dtype)
    functions = [SubtractWeightedMean((2,)), SubtractWeightedMean((2,), transposed=True)]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for i, function in enumerate(functions):
        agree(run(i, x, w)[0], function.perform(x, w))


@pytest.mark.parametrize("dtype", FLOATS)
def test_weighted_means(dtype):
    rng = np.random.default_rng(7)
    functions = [op(axes) for op in (WeightedMean, WeightedDeviation) for axes in AXES]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x, y = lines_of(shape, dtype, rng, special), lines_of(shape, dtype, rng)
            for i, function in enumerate(functions):
                axes = function.axes
                with np.errstate(all="ignore"):
                    size = np.abs(y).max(axis=axes, keepdims=True, initial=0)
                if isinstance(function, WeightedMean):
                    size = size.squeeze(axes)
                agree(run(i, x, y)[0], wide(function, x, y), size, (function, special))


@pytest.mark.parametrize("dtype", FLOATS)
def test_entropies(dtype):
    rng = np.random.default_rng(11)
    functions = [NegativeEntropy(axes) for axes in AXES]
    run = compiled([formula_of(f, [dtype]) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for i, function in enumerate(functions):
                agree(run(i, x)[0], wide(function, x), 1, (function, special))


@pytest.mark.parametrize("dtype", FLOATS)
def test_divergences(dtype):
    rng = np.random.default_rng(13)
    functions = [Divergence(axes) for axes in AXES]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x, y = lines_of(shape, dtype, rng, special), lines_of(shape, dtype, rng)
            for i, function in enumerate(functions):
                agree(run(i, x, y)[0], wide(function, x, y), 10, (function, special))


def test_deviations_are_right_where_they_are_small():
    """Near the mean, and where one weight is nearly 1; in the wider type 11 bits are left."""
    x = np.array([[[0.3, -1.2, 2.2, 0.7], [1e-9, -3e-9, 2e-10, 5e-11], [36.5, 1.1, 0.7, -0.4]]])
    y = np.array([[[0.7, -1.3, 2.9, 1.1]]]) + 0 * x
    y[0, 1, 0] = 0.903
    function = WeightedDeviation((2,))
    (got,) = compiled([formula_of(function, ["float64"] * 2)])(0, x, y)
    agree(got, function.perform(x, y))
    assert 0 < abs(got[0, 1, 0]) < 3e-3 and 0 < abs(got[0, 2, 0]) < 1e-14


@pytest.mark.parametrize("dtype", FLOATS)
def test_logarithms_of_sums(dtype):
    rng = np.random.default_rng(5)
    one = [LogSumExp((1,)), LogSumExp((0, 2)), LogMeanExp((1,)), LogMeanExp((0, 1, 2))]
    two = [WeightedLogSumExp((1,)), WeightedLogSumExp((0, 2))]
    run = compiled(
        [*(formula_of(f, [dtype]) for f in one), *(formula_of(f, [dtype] * 2) for f in two)]
    )
    for shape in SHAPES:
        for special in (False, True):
            x, w = lines_of(shape, dtype, rng, special), np.abs(lines_of(shape, dtype, rng))
            w[rng.random(shape) < 0.2] = 0
            for i, function in enumerate((*one, *two)):
                values = (x, w) if function in two else (x,)
                turned = tuple(np.repeat(v, 2, axis=2)[::-1, :, ::2] for v in values)
                for given in (values, turned, tuple(map(np.asfortranarray, values))):
                    # In the widest type it computes such lines again itself.
                    reference = function.perform if dtype == "float64" else partial(wide, function)
                    scale = dtype == "float64"
                    agree(run(i, *given)[0], reference(*given), scale, (function, special))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_sums_of_short_lines(dtype):
    """Sixteen lines of at most sixteen elements are computed together."""
    rng = np.random.default_rng(6)
    functions = [LogSumExp((2,)), LogMeanExp((2,)), LogSumExp((1,)), WeightedLogSumExp((2,))]
    counts = [1, 1, 1, 2]
    run = compiled([formula_of(f, [dtype] * n) for f, n in zip(functions, counts, strict=True)])
    for length in (1, 2, 3, 5, 8, 15, 16, 17):
        for shape in ((1, 1, length), (1, 15, length), (4, 4, length), (5, 7, length)):
            for special in (False, True):
                x, w = lines_of(shape, dtype, rng, special), np.abs(lines_of(shape, dtype, rng))
                w[rng.random(shape) < 0.2] = 0
                for i, function in enumerate(functions):
                    given = (x, w)[: counts[i]]
                    reference = function.perform if dtype == "float64" else partial(wide, function)
                    scale = dtype == "float64"
                    agree(run(i, *given)[0], reference(*given), scale, (function, shape, special))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_sums_where_parts_cancel(dtype):
    x = np.log(np.asarray([[[0.25, 0.5, 0.25], [1e-9, 0.3, 0.7 + 1e-9]]])).astype(dtype)
    for function in (LogSumExp((2,)), WeightedLogSumExp((2,))):
        values = (x,) if isinstance(function, LogSumExp) else (x, np.ones_like(x))
        (got,) = compiled([formula_of(function, [dtype] * len(values))])(0, *values)
        with mpmath.workdps(50):
            want = [
                mpmath.log(sum(mpmath.exp(mpmath.mpf(float(v))) for v in line)) for line in x[0]
            ]
            for z, exact in zip(got[0], want, strict=True):
                # The wider type has 64 bits at least.
                assert abs(float(z) - exact) <= 2e-19 * 20 + np.finfo(dtype).eps * abs(exact)


@pytest.mark.parametrize("exponent", [-305, -302, -200, 0, 200, 290])
def test_logarithms_of_weighted_sums_where_parts_cancel(exponent):
    """Also where exponentials of the logarithm overflow, and where errors of products would."""
    rng = np.random.default_rng(exponent + 400)
    x = rng.normal(size=(1, 200, 4))
    w = rng.uniform(0.1, 1, size=x.shape) * 10.0**exponent
    logs = np.logaddexp.reduce(x + np.log(w), axis=2, keepdims=True)
    x += rng.uniform(-1, 1, size=logs.shape) - logs
    (got,) = compiled([formula_of(WeightedLogSumExp((2,)), ["float64"] * 2)])(0, x, w)
    with mpmath.workdps(50):
        for z, elements, weights in zip(got[0], x[0], w[0], strict=True):
            terms = [
                mpmath.mpf(float(b)) * mpmath.exp(mpmath.mpf(float(a)))
                for a, b in zip(elements, weights, strict=True)
            ]
            exact = mpmath.log(sum(terms))
            assert abs(mpmath.mpf(float(z)) - exact) <= 4 * 2**-53 * max(abs(exact), 0.125)


@pytest.mark.parametrize("op", [LogSumExp, LogMeanExp, WeightedLogSumExp])
def test_logarithms_of_sums_of_numbers_that_are_cast_to_doubles(op):
    """Where parts cancel, their digits are those of other doubles."""
    x = np.random.default_rng(0).normal(size=(1, 8, 5)).astype("float32")
    n = 5 if op is LogMeanExp else 1
    x -= np.log(np.exp(x).sum(axis=2, keepdims=True) / n)
    values = (x, np.ones_like(x)) if op is WeightedLogSumExp else (x,)
    count = len(values)
    casts = [Step(ROWS["cast"]("float64"), (i,), "float64") for i in range(count)]
    total = Step(op((2,)), tuple(range(count, 2 * count)), "float64")
    result = Result(2 * count, folded_axes(total.function))
    formula = Formula(("float32",) * count, (), (*casts, total), (result,))
    (got,) = compiled([formula])(0, *values)
    with mpmath.workdps(50):
        for z, line in zip(got[0], x[0], strict=True):
            exact = mpmath.log(sum(mpmath.exp(mpmath.mpf(float(v))) for v in line) / n)
            assert abs(mpmath.mpf(float(z)) - exact) <= 2e-19


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_without_weight(dtype):
    """0 exp(-inf) is 0, and 0 exp(inf) is NaN."""
    x = np.asarray([[[1, -np.inf, 2], [1, np.inf, 2], [1, np.nan, 2]]], dtype)
    w = np.asarray([[[1, 0, 1]] * 3], dtype)
    functions = [WeightedLogSumExp((2,)), WeightedSoftmax((2,))]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    share = 1 / (1 + np.exp(-1.0))
    soft = [[1 - share, 0, share], [np.nan] * 3, [np.nan] * 3]
    for i, want in enumerate(([np.logaddexp(1, 2), np.nan, np.nan], soft)):
        np.testing.assert_allclose(run(i, x, w)[0].reshape(np.shape(want)), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_products(dtype):
    rng = np.random.default_rng(8)
    functions = [LogProd((1,)), LogProd((0, 2)), LogProd((0, 1, 2))]
    run = compiled([formula_of(f, [dtype]) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            x = x if special else np.exp(x)
            for i, function in enumerate(functions):
                for v in (x, np.asfortranarray(x), np.repeat(x, 2, axis=2)[::-1, :, ::2]):
                    agree(run(i, v)[0], function.perform(v), 1, (function, special))
    ends = np.asarray([[[np.inf, 2], [-0.0, 2], [-np.inf, -1], [np.inf, 0], [1e-300, 1e300]]])
    (got,) = compiled([formula_of(LogProd((2,)), ["float64"])])(0, ends)
    np.testing.assert_array_equal(got, LogProd((2,)).perform(ends))


INDICES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


CASES = [("float64", 1, INDICES), ("float32", 0, ("int32",)), ("float32", 2, ("int32",))]
CASES += [(dtype, 1, ("int64",)) for dtype in ("bool", "int8", "uint16", "int64", "float16")]


@pytest.mark.parametrize(("dtype", "axis", "indices"), CASES)
def test_pick_and_put(dtype, axis, indices):
    rng = np.random.default_rng(6)
    pick, put = GatherLabels((axis,)), ScatterLabels((axis,))
    stretched = tuple(a == axis for a in range(3))
    x_pattern = (False,) * 3
    run = Compiled(
        [
            *(formula_of(pick, [dtype, index]) for index in indices),
            *(formula_of(put, [dtype, index, dtype]) for index in indices),
        ],
        [[x_pattern, stretched]] * len(indices)
        + [[x_pattern, stretched, stretched]] * len(indices),
    )
    for shape in ((3, 4, 5), (2, 100, 2), (0, 3, 2), (1, 1, 1)):
        x = lines_of(shape, dtype, rng, special=np.dtype(dtype).kind == "f")
        below = tuple(1 if a == axis else n for a, n in enumerate(shape))
        for i, kind in enumerate(indices):
            n = shape[axis]
            low = -n if np.dtype(kind).kind == "i" else 0
            index = rng.integers(low, max(n, low + 1), below).astype(kind)
            y = lines_of(below, dtype, rng)
            bad = n == 0 and index.size > 0
            for k, values in ((i, (x, index)), (i + len(indices), (x, index, y))):
                status, got = run.attempt(k, *values)
                assert status == int(bad)
                if not bad:
                    function = pick if k == i else put
                    np.testing.assert_array_equal(got[0], function.perform(*values))
            for wrong in (n, n + 2, *((-n - 1,) if low else ())):
                if index.size:
                    index = index.copy()
                    index.flat[-1] = wrong
                    assert run.attempt(i, x, index)[0] == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_of_cross_entropy(dtype):
    """A softmax minus one of the classes, where a chance is nearly 1 too; rows without a class."""
    steps = (
        Step(Softmax(1), (0,), dtype),
        Step(ScatterLabels((1,)), (0, 1, 2), dtype),
        Step(SubtractWeightedMean((1,), transposed=True), (4, 3), dtype),
    )
    formula = Formula((dtype, "int32", dtype), (), steps, (Result(5),))
    run = Compiled([formula], [[(False, False), (False, True), (False, True)]])
    rng = np.random.default_rng(2)
    for shape in ((50, 10), (300, 3), (2, 1000), (5, 1), (0, 4)):
        x = lines_of(shape, dtype, rng)
        index = rng.integers(-shape[1], shape[1], (shape[0], 1)).astype("int32")
        x[::3, 0] = 30
        if shape[1] > 1:
            x[1::7], x[2::7, -1], x[4::7, 1] = -np.inf, np.inf, np.nan
        index[::5] = nowhere("int32")
        c = lines_of((shape[0], 1), dtype, rng)
        with np.errstate(all="ignore"):
            w = Softmax(1).perform(x.astype(WIDER[dtype]))
            put = ScatterLabels((1,)).perform(x, index, c)
            want = SubtractWeightedMean((1,), transposed=True).perform(put.astype(w.dtype), w)
        agree(run(0, x, index, c)[0], want)


def test_positions_that_are_computed_have_no_kernel():
    x, index = T.fmatrix("x"), T.icol("index")
    node = GatherLabels((1,))(x, index).owner
    step = Step(ROWS["neg"](), (1,), "int32")
    formula = Formula(
        ("float32", "int32"), (), (step, Step(node.op, (0, 2), "float32")), (Result(3, (1,)),)
    )
    assert whole_kernel(formula, [(False, False), (False, True)]) is None


def test_lines_of_stretched_values_have_no_kernel():
    steps = (Step(Softmax(1), (0,), "float32"), Step(ROWS["add"](), (1, 2), "float32"))
    formula = Formula(("float32", "float32"), (), steps, (Result(3),))
    assert whole_kernel(formula, [(False, True), (False, False)]) is None
    assert whole_kernel(formula, [(True, False), (False, False)]) is not None


def test_results_that_must_not_be_inputs():
    """Results that are written before an input is read for the last time."""
    steps = (
        Step(ROWS["exp"](), (0,), "float64"),
        Step(Reduce(REDUCTIONS["max"], (1,)), (2,), "float64"),
        Step(ROWS["neg"](), (2,), "float64"),
        Step(ROWS["mul"](), (1, 3), "float64"),
    )
    formula = Formula(("float64",) * 2, (), steps, (Result(4), Result(5)))
    whole = whole_kernel(formula, [(False, False)] * 2)
    assert whole.apart == {(0, 1)}
    # Here the exponentials wait in the array of the second result.
    steps = (
        *steps[:2],
        Step(ROWS["mul"](), (2, 3), "float64"),
        Step(ROWS["add"](), (1, 4), "float64"),
    )
    formula = Formula(("float64",) * 2, (), steps, (Result(5),))
    whole = whole_kernel(formula, [(False, False)] * 2)
    assert whole.apart == {(0, 1)}
    x, y = np.random.default_rng(1).standard_normal((2, 4, 5))
    run = Compiled([formula], [[(False, False)] * 2])
    agree(run(0, x, y)[0], y + np.exp(x) * np.exp(x).max(axis=1, keepdims=True))


def test_layouts_of_lines_and_positions():
    rng = np.random.default_rng(9)
    steps = (
        Step(LogSoftmax(1), (0,), "float64"),
        Step(GatherLabels((1,)), (3, 1), "float64"),
        Step(ScatterLabels((1,)), (0, 1, 4), "float64"),
        Step(SubtractWeightedMean((1,), transposed=True), (5, 2), "float64"),
        Step(Reduce(REDUCTIONS["sum"], (0, 2)), (6,), "float64"),
        Step(ROWS["mul"](), (7, 5), "float64"),
    )
    results = (Result(4, (1,)), Result(6), Result(7, (0, 2)), Result(8))
    formula = Formula(("float64", "int64", "float64"), (), steps, results)
    run = Compiled([formula], [[(False,) * 3, (False, True, False), (False,) * 3]])
    for shape in ((4, 6, 5), (40, 3, 2), (2, 700, 3)):
        x, y = rng.standard_normal((2, *shape))
        w = Softmax(1).perform(y)
        index = rng.integers(-shape[1], shape[1], (shape[0], 1, shape[2]))
        put = ScatterLabels((1,)).perform(
            x, index, GatherLabels((1,)).perform(LogSoftmax(1).perform(x), index)[:, None]
        )
        centred = SubtractWeightedMean((1,), transposed=True).perform(put, w)
        total = centred.sum(axis=(0, 2))
        want = [put.sum(axis=1), centred, total, put * total[:, None]]
        for turn in (
            np.asarray,
            np.asfortranarray,
            lambda v: np.repeat(v[::-1], 2, 2)[::-1, :, ::2],
        ):
            got = run(0, turn(x), turn(index), turn(w))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def reductions_of(*functions):
    """Return the names of the reductions in the formula of functions of one float32 matrix."""
    steps = tuple(Step(f, (0,), "float32") for f in functions)
    results = tuple(Result(i, folded_axes(f)) for i, f in enumerate(functions, 1))
    formula = Formula(("float32",), (), steps, results)
    written = plain(formula, [(False, False)]).formula
    return [s.function.reduction.name for s in written.steps if isinstance(s.function, Reduce)]


def test_what_functions_share_is_reduced_once():
    largest = Reduce(REDUCTIONS["max"], (1,))
    for functions in ((Softmax(1), largest), (largest, Softmax(1))):
        assert reductions_of(*functions) == ["max", "sum"]
    # The terms that are less than 1, and the number of the others.
    assert sorted(reductions_of(LogSoftmax(1), Softmax(1))) == ["max", "sum", "sum"]
    assert sorted(reductions_of(Softmax(0), largest)) == ["max", "max", "sum"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_with_the_logarithm_and_the_largest(dtype):
    rng = np.random.default_rng(5)
    functions = (LogSoftmax(1), Softmax(1), Reduce(REDUCTIONS["max"], (1,)))
    steps = tuple(Step(f, (0,), dtype) for f in functions)
    results = tuple(Result(i, folded_axes(f)) for i, f in enumerate(functions, 1))
    run = compiled([Formula((dtype,), (), steps, results)])
    for shape in ((3, 4, 5), (60, 10, 1), (1, 7, 130), (2, 600, 3), (0, 3, 2), (1, 1, 1)):
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for function, got in zip(functions, run(0, x), strict=True):
                scale = 1 if isinstance(function, LogSoftmax) else 0
                agree(got.reshape(wide(function, x).shape), wide(function, x), scale, function)
    assert run.attempt(0, np.ones((2, 0, 3), dtype))[0] != 0
