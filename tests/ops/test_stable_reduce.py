"""Norm, variance, deviations from the mean, log of a product: at the ends of the range, too."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError
from symcomp.ops.reductions.stable_reduce import Centered, LogProd, Norm, Variance
from symcomp.tests.exact import exactly, units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE

inf, nan = np.inf, np.nan
CUBE = np.random.default_rng(8).normal(size=(2, 3, 4)) * 2
AXES = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
PLAIN = {
    Norm: lambda x, axes: np.sqrt(np.square(x).sum(axis=axes)),
    Variance: lambda x, axes: x.var(axis=axes),
    Centered: lambda x, axes: x - x.mean(axis=axes, keepdims=True),
    LogProd: lambda x, axes: np.log(x.prod(axis=axes)),
}
FAST = settings(deadline=None, max_examples=60)


def exact(op, line):
    """Compute the value along one axis, with as many digits as mpmath is set to."""
    x = exactly(line)
    mean = mp.fsum(x) / len(x)
    if op is Norm:
        return mp.sqrt(mp.fsum(v * v for v in x))
    if op is Variance:
        return mp.fsum((v - mean) ** 2 for v in x) / len(x)
    return mp.log(mp.fprod(x)) if op is LogProd else x - mean


def off(op, line, dtype="float64"):
    x = np.asarray(line, dtype)
    with mp.workdps(700):
        return units_off(op((0,)).perform(x), exact(op, x))


LINES = {
    Norm: [
        [3e-200, 4e-200, 1e-201], [3e200, -4e200, 1e199], [1.3, -2.1, 0.4], [0.0, 0.0], [-0.0],
        [5e-324], [5e-324, -5e-324, 1e-323], [1.2e308, 1.2e308], [1e308, 1e-308], [1.7976e308, 0.0],
        [1e-160] * 7, [2.0],
    ],
    Variance: [
        [1e8 + 1, 1e8 + 2, 1e8 + 4], [1.0, 1 + 1e-9, 1 - 1e-9], [0.3, -2.0, 7.0], [5.5], [2.0] * 5,
        [1e150, -1e150], [1e16, 1e16 + 2, 1e16 + 4], [-7e-100, 3e-100, 9e-101],
    ],
    LogProd: [
        [1e-200, 1e-300, 3e-5], [1e200, 1e300, 3e5], [1.3, 0.77, 0.999], [-2.0, -3.0], [5e-324] * 3,
        [1.7e308] * 4, [1 + 1e-9, 1 - 1e-9], [2.0, 0.5], [3.0, 1 / 3], [1.0], [0.1] * 1001,
        [1e-3] * 20 + [1e3] * 20, [-1.0000001, -0.9999999, 1.0],
    ],
}  # fmt: skip
NAMED = [(op, i) for op, lines in LINES.items() for i in range(len(lines))]


@pytest.mark.parametrize(("op", "i"), NAMED, ids=lambda v: getattr(v, "__name__", str(v)))
def test_values(op, i):
    assert off(op, LINES[op][i]) <= 4


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("op", LINES)
def test_values_of_narrow_dtypes(op, dtype):
    for line in ([1.3, 2.1, 0.4], [0.25, 0.125, 7.0], [5.0], [1.0, 1.001, 0.999]):
        assert off(op, line, dtype) <= 4, line
    top = float(np.finfo(dtype).max) / 4
    if op is Norm:
        assert off(op, [top, -top, 1.0], dtype) <= 4
    if op is LogProd:
        assert off(op, [top, top, 1 / top], dtype) <= 4


SIZES = st.floats(1e-300, 1e300) | st.floats(-1e300, -1e-300) | st.floats(-9, 9)


@FAST
@given(st.lists(SIZES, min_size=1, max_size=8))
def test_random_norms(line):
    assert off(Norm, line) <= CLAIM_ANYWHERE


@FAST
@given(st.lists(st.floats(1e-300, 1e300) | st.floats(0.5, 2), min_size=1, max_size=8))
def test_random_products(line):
    assert off(LogProd, line) <= CLAIM_ANYWHERE


@FAST
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.floats(-1e3, 1e3))
def test_random_variances(line, shift):
    """A shift loses no digits, except by its own rounding."""
    x = np.array(line) + shift
    with mp.workdps(200):
        mean = exact(Centered, x)
        want = float(exact(Variance, x))
    size = float(max(abs(v) for v in mean))
    got = Centered((0,)).perform(x)
    np.testing.assert_allclose(got, [float(v) for v in mean], rtol=0, atol=1e-15 * size + 5e-324)
    np.testing.assert_allclose(Variance((0,)).perform(x), want, rtol=1e-14, atol=1e-320)


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e9, -1e200])
@pytest.mark.parametrize("size", [1, 4, 1001])
def test_deviations_have_all_digits(size, shift):
    """Deviations may be much smaller than the mean, or than others; by both machines."""
    rng = np.random.default_rng(size)
    line = np.append(rng.normal(size=size - 1) * 10.0 ** rng.integers(-6, 3, size - 1), 0.7) + shift
    x = T.dvector("x")
    with mp.workdps(500):
        true = exact(Centered, line)
        for linker in ("py", "vm"):
            f = symcomp.function([x], Centered((0,))(x), mode=symcomp.Mode(linker=linker))
            assert units_off(f(line), true) <= 1


@pytest.mark.parametrize(
    ("op", "line", "wanted"),
    [
        (Norm, [inf, 1.0], inf), (Norm, [-inf, inf], inf), (Norm, [nan, 1.0], nan),
        (Variance, [inf, 1.0], nan), (Variance, [nan, 1.0], nan),
        (LogProd, [0.0, 2.0], -inf), (LogProd, [-0.0, 2.0], -inf), (LogProd, [-1.0, 2.0], nan),
        (LogProd, [inf, 2.0], inf), (LogProd, [inf, inf], inf),
        (LogProd, [inf, -inf], nan), (LogProd, [-inf, -1.0], inf),
        (LogProd, [inf, 0.0], nan), (LogProd, [nan, 1.0], nan), (LogProd, [-0.0, -2.0], -inf),
    ],
)  # fmt: skip
def test_not_finite(op, line, wanted):
    """As NumPy has it for the plain form."""
    x = np.array(line)
    np.testing.assert_array_equal(op((0,)).perform(x), wanted)
    with np.errstate(all="ignore"):
        if not (op is Norm and inf in x and -inf in x):
            np.testing.assert_array_equal(PLAIN[op](x, (0,)), wanted)


def test_extreme_deviations():
    top = np.finfo(float).max
    np.testing.assert_array_equal(Centered((0,)).perform(np.array([top, top])), [0, 0])
    np.testing.assert_array_equal(Centered((0,)).perform(np.array([top, -top, 0])), [top, -top, 0])


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("op", PLAIN)
def test_axes_dtypes_and_derivatives(op, axes):
    x = abs(CUBE) + 0.1 if op is LogProd else CUBE

    def expected(x):
        return PLAIN[op](x.astype("float64"), axes).astype(x.dtype)

    check(op(axes), x, expected=expected, rtol=1e-10, atol=1e-13)
    check(op(axes), x[::-1, :, ::2], expected=expected, rtol=1e-10, atol=1e-13)
    check(op(axes), x.astype("float32"), expected=expected, rtol=1e-5, atol=1e-6)
    check(op(axes), x.astype("float16"), expected=expected, rtol=2e-3, atol=2e-3, grad=False)
    # The variance of one element is 0, with a derivative that is none but rounding errors.
    check(op(axes), x[:, :1], expected=expected, rtol=1e-10, atol=1e-13, grad=op is not Variance)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty(shape, axes):
    x = np.zeros(shape)
    kept = tuple(n for a, n in enumerate(shape) if a not in axes)
    for op, value in ((Norm, 0), (LogProd, 0), (Variance, nan)):
        z = op(axes).perform(x)
        assert z.shape == kept, op
        np.testing.assert_array_equal(z, np.full(kept, value))
    assert Centered(axes).perform(x).shape == shape


def test_slope_of_the_norm_at_0():
    x = T.dvector("x")
    f = symcomp.function([x], symcomp.grad(T.sqrt(T.sum(x**2)), x))
    np.testing.assert_array_equal(f([0.0, 0.0]), [0, 0])
    np.testing.assert_allclose(f([3e-200, 4e-200]), [0.6, 0.8])
    np.testing.assert_allclose(f([3e200, -4e200]), [0.6, -0.8])


@pytest.mark.parametrize("op", PLAIN)
def test_only_floats(op):
    with pytest.raises(DTypeError, match="must be a float tensor, got n"):
        op((0,))(T.lvector("n"))


def test_log_of_a_product_is_part_of_a_loop():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.log(T.prod(1 + x * x, axis=1)))
    assert [type(node.op).__name__ for node in f.maker.fgraph.toposort()] == ["Fused"]
    v = np.random.default_rng(2).normal(size=(40, 70))
    np.testing.assert_allclose(f(v), np.log1p(v * v).sum(axis=1), 1e-14)
