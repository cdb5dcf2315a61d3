"""Softmax, log-sum-exp and their relatives: against mpmath, over every axis, at the ends."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_stable import exp_of_sum
from symcomp.ops.nnet.softmax import (
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    RootSoftmax,
    Softmax,
    SubtractWeightedMean,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.ops.nnet.weighted_mean import SoftmaxPowerSum, WeightedDeviation, WeightedMean
from symcomp.tests.exact import exactly, units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE

inf, nan = np.inf, np.nan
RNG = np.random.default_rng(3)
CUBE = RNG.normal(size=(2, 3, 4)) * 3
WEIGHTS = RNG.uniform(0.1, 2, size=(2, 3, 4))
AXES = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
LINES = {
    "plain": [0.3, -1.2, 2.2, 0.7],
    "large": [1000.0, 1001.5, 998.0, -3.0],
    "small": [-1000.0, -1200.0, -999.5, -1e4],
    "one dominates": [40.0, -3.0, 0.5, 1.5],
    "near 0": [1e-9, -3e-9, 2e-10, 0.0],
    "huge": [1e300, 1e300, -1e300, 0.0],
    "one": [-3.7],
    "cancels": [-1.4, -1.5, -1.3, -1.35],
    "far apart": [0.0, -745.0, -700.0, -36.0],
    "cancels with the count": [0.0, 0.4375, -0.75, -0.75, -0.8125],
    "one of many": [0.25, *[-50.0] * 999],
}
ONE_AXIS = {"Softmax": Softmax, "RootSoftmax": RootSoftmax, "LogSoftmax": LogSoftmax}
REDUCING = {"LogSumExp": LogSumExp, "LogMeanExp": LogMeanExp}


def exps(x):
    """exp(x_i - max x), and max x, exactly."""
    top = max(x)
    return np.array([mp.exp(v - top) for v in x], dtype=object), top


def softmax(x):
    e, _ = exps(x)
    return e / e.sum()


def log_sum_exp(x):
    e, top = exps(x)
    return top + mp.log(e.sum())


EXACT = {
    "Softmax": softmax,
    "LogSoftmax": lambda x: x - log_sum_exp(x),
    "LogSumExp": log_sum_exp,
    "LogMeanExp": lambda x: log_sum_exp(x) - mp.log(len(x)),
}


def op_of(name):
    return ONE_AXIS[name](0) if name in ONE_AXIS else REDUCING[name]((0,))


def off(name, line, dtype="float64"):
    x = np.asarray(line, dtype)
    with mp.workdps(400):
        return units_off(op_of(name).perform(x), EXACT[name](exactly(x)))


# -- accuracy


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", EXACT)
def test_values(name, line):
    assert off(name, LINES[line]) <= 4


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", EXACT)
def test_values_of_narrow_dtypes(name, dtype):
    for line in ("plain", "small", "one dominates", "one", "cancels", "far apart"):
        assert off(name, LINES[line], dtype) <= 4, line


@pytest.mark.parametrize("name", EXACT)
def test_random_values(name):
    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.floats(-800, 800) | st.floats(-2, 2), min_size=1, max_size=6))
    def holds(line):
        assert off(name, line) <= CLAIM_ANYWHERE

    holds()


def test_weighted_values():
    x = np.array([1000.0, 1001.5, 998.0, -3.0])
    w = np.array([0.2, 1e-3, 3.0, 1e100])
    with mp.workdps(60):
        terms = exactly(w) * exps(exactly(x))[0]
        total = exps(exactly(x))[1] + mp.log(terms.sum())
        assert units_off(WeightedSoftmax((0,)).perform(x, w), terms / terms.sum()) <= 4
        assert units_off(WeightedLogSumExp((0,)).perform(x, w), total) <= 4


def test_elements_without_weight_do_not_count():
    x, w = np.array([5.0, 2000.0, 4.0]), np.array([1.0, 0.0, 1.0])
    np.testing.assert_allclose(WeightedLogSumExp((0,)).perform(x, w), np.logaddexp(5, 4))
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(WeightedSoftmax((0,)).perform(x, w), [share, 0, 1 - share])
    minus_infinity = np.array([0.0, -inf])
    total = WeightedLogSumExp((0,)).perform(minus_infinity, np.array([1.0, 5.0]))
    assert total == 0.0


def test_infinities_without_weight():
    """0 exp(-inf) is 0, and 0 exp(inf) is NaN."""
    ops = [WeightedLogSumExp((1,)), WeightedSoftmax((1,))]
    lines = np.array([[1.0, -inf, 2.0], [1.0, inf, 2.0], [1.0, nan, 2.0]])
    weights = np.tile([1.0, 0.0, 1.0], (3, 1))
    share = 1 / (1 + np.exp(-1.0))
    with np.errstate(all="ignore"):
        total, soft = [op.perform(lines, weights) for op in ops]
    np.testing.assert_allclose(total, [np.logaddexp(1, 2), nan, nan])
    np.testing.assert_allclose(soft, [[1 - share, 0, share], [nan] * 3, [nan] * 3])


def test_negative_weights():
    x = np.array([0.0, 1.0])
    got = WeightedLogSumExp((0,)).perform(x, np.array([-1.0, 1.0]))
    np.testing.assert_allclose(got, np.log(np.e - 1))
    assert np.isnan(WeightedLogSumExp((0,)).perform(x, np.array([1.0, -1.0])))


# -- infinities, NaN, nothing


@pytest.mark.parametrize(
    ("line", "soft", "total"),
    [
        ([-inf, 0.0], [0, 1], 0),
        ([-inf, -inf], [nan, nan], -inf),
        ([inf, 0.0], [nan, 0], inf),
        ([inf, inf], [nan, nan], inf),
        ([nan, 0.0], [nan, nan], nan),
        ([-inf, inf], [0, nan], inf),
    ],
)
def test_not_finite(line, soft, total):
    """As NumPy has it for exp(x) / sum(exp(x)) and log(sum(exp(x)))."""
    x = np.array(line)
    np.testing.assert_array_equal(LogSumExp((0,)).perform(x), total)
    got = Softmax(0).perform(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.exp(x) / np.exp(x).sum())
    np.testing.assert_allclose(got, soft)


# Finite elements whose exponentials overflow, also in the dtypes that these are computed in.
LARGE = {
    "float64": (3.0, 750.0, 1.7e308),
    "float32": (3.0, 95.0, 3e38),
    "float16": (3.0, 95.0, 6e4),
}
# Lines with large numbers b: their softmax and its logarithm.
WITH_INFINITY = {
    "1 inf b": ([0, nan, 0], [-inf, nan, -inf]),
    "inf inf b": ([nan, nan, 0], [nan, nan, -inf]),
    "-b inf b": ([0, nan, 0], [-inf, nan, -inf]),
    "b -3 -inf inf": ([0, 0, 0, nan], [-inf, -inf, -inf, nan]),
    "nan inf b": ([nan] * 3, [nan] * 3),
    "inf": ([nan], [nan]),
}


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("text", WITH_INFINITY)
def test_infinities_whatever_is_beside_them(text, dtype):
    """inf / inf and inf - inf are NaN; finite terms are negligible beside an infinite sum."""
    soft, log = (np.array(z, dtype) for z in WITH_INFINITY[text])
    total = nan if "nan" in text else inf
    for large in LARGE[dtype]:
        values = {"b": large, "-b": -large}
        x = np.array([values.get(word, word) for word in text.split()], dtype)
        for axis, v in ((0, x), (0, np.stack([x, x], axis=1)), (1, np.stack([x, x]))):
            shape = (-1, 1) if v.ndim == 2 and axis == 0 else (-1,)
            half = np.full_like(v, 0.5)
            for got, want in (
                (Softmax(axis).perform(v), soft),
                (LogSoftmax(axis).perform(v), log),
                (WeightedSoftmax((axis,)).perform(v, half), soft),
            ):
                np.testing.assert_array_equal(got, np.broadcast_to(want.reshape(shape), v.shape))
                assert not np.signbit(got[got == 0]).any()
            for got in (
                LogSumExp((axis,)).perform(v),
                LogMeanExp((axis,)).perform(v),
                WeightedLogSumExp((axis,)).perform(v, half),
            ):
                np.testing.assert_array_equal(got, np.full_like(got, total))


def test_exponentials_of_sums_whose_error_is_large():
    for error in (-3.0, -1.0, 3.0):
        assert exp_of_sum(1e300, error).eval() == inf
        assert not np.signbit(exp_of_sum(-1e300, error).eval())


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty(shape, axes):
    x, w = np.zeros(shape), np.ones(shape)
    kept = tuple(n for a, n in enumerate(shape) if a not in axes)
    for z in (LogSumExp(axes).perform(x), WeightedLogSumExp(axes).perform(x, w)):
        assert z.shape == kept and (z == -inf).all()
    assert WeightedSoftmax(axes).perform(x, w).shape == shape
    assert SubtractWeightedMean(axes).perform(x, w).shape == shape
    with np.errstate(all="ignore"):
        mean = LogMeanExp(axes).perform(x)
        weighted = WeightedMean(axes).perform(x, w)
    assert mean.shape == weighted.shape == kept
    assert np.isnan(mean).all() and np.isnan(weighted).all()
    assert WeightedDeviation(axes).perform(x, w).shape == shape
    if len(axes) == 1:
        assert Softmax(axes[0]).perform(x).shape == LogSoftmax(axes[0]).perform(x).shape == shape


# -- every axis, dtype and derivative


def plain(name, axes):
    """Return NumPy's formula, for moderate values."""

    def compute(x):
        work = x.astype("float64")
        e = np.exp(work)
        total = e.sum(axis=axes, keepdims=True)
        count = e.size // total.size
        value = {
            "Softmax": lambda: e / total,
            "RootSoftmax": lambda: np.sqrt(e / total),
            "LogSoftmax": lambda: work - np.log(total),
            "LogSumExp": lambda: np.log(total).squeeze(axes),
            "LogMeanExp": lambda: np.log(total / count).squeeze(axes),
        }[name]()
        return value.astype(x.dtype)

    return compute


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("name", ONE_AXIS)
def test_one_axis(name, axis):
    function = ONE_AXIS[name](axis)
    check(function, CUBE, expected=plain(name, (axis,)), rtol=1e-10)
    check(function, CUBE[:, ::-1, ::2], expected=plain(name, (axis,)), rtol=1e-10)
    check(function, CUBE.astype("float32"), expected=plain(name, (axis,)))
    check(function, CUBE.astype("float16"), expected=plain(name, (axis,)), grad=False)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", REDUCING)
def test_several_axes(name, axes):
    function = REDUCING[name](axes)
    check(function, CUBE, expected=plain(name, axes))
    check(function, CUBE[::-1, :, ::3], expected=plain(name, axes))
    check(function, CUBE.astype("float32"), expected=plain(name, axes))
    check(function, CUBE.astype("float16"), expected=plain(name, axes), grad=False)
    check(function, CUBE[:, :, :1], expected=plain(name, axes))


@pytest.mark.parametrize("axes", AXES)
def test_weighted(axes):
    def total(x, w):
        return (w * np.exp(x)).sum(axis=axes, keepdims=True)

    check(
        WeightedLogSumExp(axes), CUBE, WEIGHTS,
        expected=lambda x, w: np.log(total(x, w)).squeeze(axes),
    )  # fmt: skip
    check(
        WeightedSoftmax(axes), CUBE, WEIGHTS,
        expected=lambda x, w: w * np.exp(x) / total(x, w), tolerance=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("axes", AXES)
def test_centred(axes):
    w = WEIGHTS / WEIGHTS.sum(axis=axes, keepdims=True)
    check(
        SubtractWeightedMean(axes), CUBE, w,
        expected=lambda x, w: x - (w * x).sum(axis=axes, keepdims=True), grad=False,
    )  # fmt: skip
    check(
        SubtractWeightedMean(axes, transposed=True), CUBE, w,
        expected=lambda x, w: x - w * x.sum(axis=axes, keepdims=True), grad=False, atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("axes", AXES)
def test_weighted_mean(axes):
    def mean(x, y):
        e = np.exp(x.astype("float64"))
        return (e * y).sum(axis=axes, keepdims=True) / e.sum(axis=axes, keepdims=True)

    def cubes(x):
        e = np.exp(x.astype("float64"))
        return (e**3).sum(axis=axes) / e.sum(axis=axes) ** 3

    values = CUBE[:, ::-1, ::-1] ** 2
    for dtype in ("float64", "float32"):
        x, y = CUBE.astype(dtype), values.astype(dtype)
        check(
            WeightedMean(axes), x, y,
            expected=lambda x, y: mean(x, y).squeeze(axes).astype(x.dtype),
        )  # fmt: skip
        check(
            WeightedDeviation(axes), x, y,
            expected=lambda x, y: (y - mean(x, y)).astype(x.dtype), atol=1e-6,
        )  # fmt: skip
        check(SoftmaxPowerSum(axes, 3), x, expected=lambda x: cubes(x).astype(x.dtype))


def test_deviations_are_right_to_the_last_digits():
    """Near the mean, and where one weight is nearly 1."""
    y = np.array([0.7, -1.3, 2.9, 1.1])
    for x in ([0.3, -1.2, 2.2, 0.7], [1e-9, -3e-9, 2e-10, 5e-11], [36.5, 1.1, 0.7, -0.4]):
        with mp.workdps(60):
            e = [mp.exp(mp.mpf(v)) for v in x]
            mean = sum(a * mp.mpf(b) for a, b in zip(e, y, strict=True)) / sum(e)
            want = [mp.mpf(b) - mean for b in y]
            for z, exact in zip(WeightedDeviation((0,)).perform(np.array(x), y), want, strict=True):
                assert units_off(z, exact) <= 1


def test_centred_where_one_weight_is_nearly_1():
    """The result at that place is the small sum of the others."""
    w = np.array([1 - 2e-20, 1e-20, 1e-20])
    x = np.array([3.0, 4.0, 7.0])
    np.testing.assert_allclose(SubtractWeightedMean((0,)).perform(x, w)[0], -5e-20, rtol=1e-15)
    z = SubtractWeightedMean((0,), transposed=True).perform(x, w)
    np.testing.assert_allclose(z[0], 3 * 2e-20 - 11, rtol=1e-15)
    only = SubtractWeightedMean((0,), transposed=True).perform(np.array([3.0, 0.0, 0.0]), w)
    np.testing.assert_allclose(only, [6e-20, -3e-20, -3e-20], rtol=1e-15)


def test_softmax_of_all_elements():
    for function in (T.softmax, T.nnet.log_softmax):
        check(
            lambda x, f=function: f(x, axis=None), CUBE,
            expected=lambda x, f=function: f(T.constant(x.ravel())).eval().reshape(x.shape),
        )  # fmt: skip


def test_gradient_of_an_empty_sum_is_zero():
    x = T.dvector("x")
    slope = symcomp.function([x], symcomp.grad(T.logsumexp(x), x))
    np.testing.assert_array_equal(slope([-inf, -inf]), [0, 0])
    np.testing.assert_allclose(slope([-inf, 2.0]), [0, 1])
    np.testing.assert_allclose(slope([1000.0, 1000.0]), [0.5, 0.5])


# -- logsumexp, and errors


def test_logsumexp():
    for axis in (None, 0, -1, (0, 2), (-1, 0)):
        axes = (0, 1, 2) if axis is None else (axis,) if isinstance(axis, int) else axis
        for keepdims in (False, True):
            check(
                lambda x, a=axis, k=keepdims: T.logsumexp(x, axis=a, keepdims=k), CUBE,
                expected=lambda x, a=axes, k=keepdims: np.log(
                    np.exp(x).sum(axis=tuple(a), keepdims=k)
                ),
                grad=axis is None,
            )  # fmt: skip
    check(lambda x: T.logsumexp(x), np.array([1, 2]), expected=np.logaddexp(1.0, 2.0))
    check(lambda x: T.logsumexp(x, axis=()), CUBE, expected=lambda x: x)
    check(lambda x: T.logsumexp(x), np.float64(2.5), expected=np.float64(2.5))
    with pytest.raises(ShapeError, match="axis"):
        T.logsumexp(T.dvector(), axis=1)


@pytest.mark.parametrize("op", [Softmax(0), LogSumExp((0,)), WeightedSoftmax((0,))])
def test_only_floats(op):
    arguments = [T.lvector("n")] * (2 if isinstance(op, WeightedSoftmax) else 1)
    with pytest.raises(DTypeError, match="must be a float tensor, got n"):
        op(*arguments)


@pytest.mark.parametrize(
    "op", [WeightedSoftmax((0,)), WeightedLogSumExp((0,)), SubtractWeightedMean((0,))]
)
def test_shapes_must_be_one(op):
    with pytest.raises(ShapeError, match=r"shapes \(3,\), \(1,\)"):
        op.perform(np.ones(3), np.ones(1))
