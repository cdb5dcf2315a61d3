"""Error functions and the normal distribution: to 4 units in the last place, everywhere."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp.tensor as T
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE, beside, check_values, lists, values_at

FAST = settings(deadline=None, max_examples=25)
inf, nan = np.inf, np.nan
TINY = [0.0, 5e-324, -5e-324, 1e-310, 1e-300, -1e-300, 1e-160, 1e-17, -1e-8]
# Where the pieces of the functions meet.
MEETS = beside(0.25, -0.25, 0.5, 1.0, -1.0, 4.0)


def erfcx(x):
    """Compute the asymptotic series (DLMF 7.12.1) where erfc has too small an exponent."""
    if x < 1e6:
        return mp.exp(x * x) * mp.erfc(x)
    return (1 - 1 / (2 * x**2) + 3 / (4 * x**4)) / (x * mp.sqrt(mp.pi))


def ierfcx(x):
    if x < 1e6:
        return 1 / mp.sqrt(mp.pi) - x * erfcx(x)
    return (1 / (2 * x**2) - 3 / (4 * x**4)) / mp.sqrt(mp.pi)


def xerfcx_slope(x):
    if x < 1e6:
        return erfcx(x) - 2 * x * ierfcx(x)
    return (1 / x**3 - 3 / x**5) / mp.sqrt(mp.pi)


def log_erfc(x):
    return mp.log1p(-mp.erf(x)) if x < 1 else mp.log(erfcx(x)) - x * x


def log_half_erfc(x):
    return mp.log1p(-mp.erfc(-x) / 2) if x < 0 else mp.log(erfcx(x) / 2) - x * x


def log_ndtr(x):
    return mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(erfcx(-x / mp.sqrt(2)) / 2) - x * x / 2


def inverse(function, start):
    """Find the x where log(function(x)) is log(y), by Newton's method from the value under test."""

    def solve(y):
        return mp.findroot(lambda x: mp.log(function(x)) - mp.log(y), start(float(y)))

    return solve


# Name of the row: the exact function, ranges to draw from, points.
FUNCTIONS = {
    "erf": (mp.erf, [(-7, 7), (-0.3, 0.3)], [*TINY, *MEETS, *beside(7.0), -30.0, 1e300]),
    "erfc": (
        mp.erfc, [(-7, 30), (0.2, 0.6)], [*TINY, *MEETS, *beside(26.0, 27.2, 28.0), -30.0, 40.0]
    ),
    "erfcx": (erfcx, [(-26, 30), (-1, 1), (30, 1e12)], [*TINY, *MEETS, -26.6, 1e100, 1e300]),
    "ierfcx": (ierfcx, [(-25, 30), (0, 1)], [*TINY, *MEETS, 30.0, 1e5, 1e100, 1e150]),
    "xerfcx": (
        lambda x: x * erfcx(x), [(-26, 30), (-1, 1), (30, 1e12)], [*TINY, *MEETS, -26.5, 1e100]
    ),
    "xerfcx_slope": (xerfcx_slope, [(-25, 30), (0, 1)], [*TINY, *MEETS, 30.0, 1e5, 1e8, 1e100]),
    "log_erfc": (log_erfc, [(-7, 40), (-0.6, 0.6)], [*TINY, *MEETS, 27.3, 1e3, 1e150]),
    "log_half_erfc": (log_half_erfc, [(-26, 40), (-0.6, 0.6)], [*TINY, *MEETS, 27.3, 1e3, 1e150]),
    "ndtr": (mp.ncdf, [(-39, 9), (-1, 1)], [*TINY, *MEETS, *beside(-38.0, -39.0), 9.0, 40.0]),
    "log_ndtr": (log_ndtr, [(-50, 9), (-1, 1)], [*TINY, *MEETS, -1e3, -1e150, 38.0, 39.5]),
    "bell": (lambda x: mp.exp(-x * x), [(-28, 28)], [*TINY, *beside(26.0, 27.2, 28.0), 1e300]),
    "normal_pdf": (mp.npdf, [(-39, 39)], [*TINY, *beside(36.0, 38.4, 39.0), 1e300]),
    "erfinv": (mp.erfinv, [(-0.999, 0.999)], [*TINY, *beside(0.5, -0.5), 1 - 1e-12]),
}  # fmt: skip
INVERSES = {
    "erfcinv": (mp.erfc, [1e-310, 1e-300, 1e-50, 0.4, 0.9, 1.5]),
    "ndtri": (mp.ncdf, [5e-324, 1e-300, 1e-50, 0.2, 0.4, 0.7]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_at_chosen_points(name, dtype):
    exact, _, points = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        points = np.unique(np.asarray(points).astype(dtype))
    points = points[np.isfinite(points)]
    if name == "erfinv":
        points = points[abs(points) < 1]
    check_values(name, exact, points, dtype=dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_random_points(name):
    exact, ranges, _ = FUNCTIONS[name]

    @FAST
    @given(lists(*ranges))
    def holds(points):
        check_values(name, exact, points, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_random_points_of_float32(name):
    exact, ranges, _ = FUNCTIONS[name]
    strategy = st.one_of(*(st.floats(low, high).map(np.float32).map(float) for low, high in ranges))

    @FAST
    @given(st.lists(strategy, min_size=1, max_size=20))
    def holds(points):
        check_values(name, exact, points, dtype="float32", claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize("name", INVERSES)
def test_inverses(name):
    function, points = INVERSES[name]
    check_values(name, inverse(function, lambda y: values_at(name, [y])[0]), points)


LIMITS = {
    "erf": ([inf, -inf, nan], [1, -1, nan]),
    "erfc": ([inf, -inf, nan], [0, 2, nan]),
    "erfcx": ([inf, -inf, -30, nan], [0, inf, inf, nan]),
    "ierfcx": ([inf, -inf, nan], [0, inf, nan]),
    "xerfcx": ([inf, -inf, nan], [nan, -inf, nan]),
    "xerfcx_slope": ([inf, -inf, nan], [0, inf, nan]),
    "log_erfc": ([inf, -inf, nan], [-inf, np.log(2), nan]),
    "log_half_erfc": ([inf, -inf, nan], [-inf, 0, nan]),
    "ndtr": ([inf, -inf, nan], [1, 0, nan]),
    "log_ndtr": ([inf, -inf, nan], [0, -inf, nan]),
    "bell": ([inf, -inf, nan], [0, 0, nan]),
    "normal_pdf": ([inf, -inf, nan], [0, 0, nan]),
    "erfinv": ([1, -1, 1.5, nan], [inf, -inf, nan, nan]),
    "erfcinv": ([0, 2, -0.5, nan], [inf, -inf, nan, nan]),
    "ndtri": ([0, 1, 1.5, nan], [-inf, inf, nan, nan]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    points, wanted = LIMITS[name]
    np.testing.assert_allclose(values_at(name, points), wanted, rtol=1e-15, equal_nan=True)


def apply(name):
    return Elemwise(ROWS[name]())


@pytest.mark.parametrize("name", [*FUNCTIONS, *INVERSES])
def test_derivatives_dtypes_and_shapes(name):
    function = apply(name)
    points = np.array([[0.1, 0.3, 0.45], [0.8, 0.62, 0.2]])

    def expected(x):
        return function.perform(x)

    check(function, points, expected=expected)
    check(function, np.zeros((2, 0)), expected=expected, grad=False)
    check(function, points[::-1, ::-2], expected=expected)
    check(function, np.float32(0.3), expected=expected, grad=False)
    for dtype in ("bool", "int8", "uint16", "int64"):
        check(function, np.array([0, 1], dtype), expected=expected, grad=False)
    assert function(T.constant(np.array([0, 1]))).dtype == "float64"


# The derivative as mpmath has it, at points where parts over- or underflow.
SLOPES = {
    "erf": [1e-300, -26.0],
    "erfc": [1e-300, 26.0],
    "erfcx": [-20.0, 0.3, 9.1, 1e4],
    "ierfcx": [-20.0, 0.3, 9.1, 1e4],
    "xerfcx": [-20.0, 1e-9, 0.3, 9.1, 1e4],
    "log_erfc": [-5.0, 1e-9, 9.1, 40.0, 1e5],
    "log_half_erfc": [-5.0, 1e-9, 9.1, 40.0, 1e5],
    "ndtr": [-38.0, 0.2],
    "log_ndtr": [-1e5, -40.0, -9.1, 1e-9, 8.0],
    "erfinv": [1e-300, -0.3, 0.5],
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_at_the_ends(name):
    exact, (x,) = FUNCTIONS[name][0], [T.dvector("x")]
    points = np.array(SLOPES[name])
    slope = T.grad(apply(name)(x).sum(), x).eval({x: points})
    with mp.workdps(400):
        for got, point in zip(slope, points, strict=True):
            truth = mp.diff(exact, mp.mpf(point), h=abs(mp.mpf(point)) * mp.mpf(10) ** -150)
            assert units_off(got, truth) <= 4, point
