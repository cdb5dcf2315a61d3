"""Rows of stable forms and logistic functions: to 4 units in the last place, everywhere."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings

import symcomp.tensor as T
from symcomp.errors import SymcompError
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_stable import spherical_jn
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE, beside, check_values, lists, values_at

FAST = settings(deadline=None, max_examples=20)
inf, nan = np.inf, np.nan
LN2, INVERSE_E = float(np.log(2)), float(np.exp(-1))
TINY = [0.0, 5e-324, -5e-324, 1e-310, 1e-300, -1e-300, 1e-17, -1e-8]
SMALL = [5e-324, 1e-310, 1e-300, 1e-160, 1e-17, 1e-8]
ENDS = [1e150, -1e150, 1e300, -1e300]
LOGITS = [-1e300, -800.0, -745.2, -40.0, 36.7, 709.9, 745.2, 800.0, 1e300]


def ratio(x):
    """Divide the integral of t exp(x t) over t from 0 to 1 by that of exp(x t)."""
    return mp.hyp1f1(2, 3, x) / 2 / mp.hyp1f1(1, 2, x)


def bessel(n, power=0):
    """DLMF 10.47.3 over x^power, and its limit."""

    def value(x):
        if abs(x) < 1e-100:
            return x ** (n - power) / mp.fac2(2 * n + 1)
        sign = (-1) ** n if x < 0 else 1
        root = mp.sqrt(mp.pi / (2 * abs(x)))
        return sign * root * mp.besselj(n + mp.mpf(1) / 2, abs(x)) / x**power

    return value


def log1mexp(x):
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def softplus(x):
    return x + mp.exp(-x) if x > 1e4 else mp.exp(x) if x < -1e4 else mp.log1p(mp.exp(x))


# Name of the row: the exact function, digits, ranges to draw from, points.
FUNCTIONS = {
    "exp_minus_cos": (
        lambda x: mp.exp(x) - mp.cos(x), 400, [(-0.9, 0.9), (1, 700)],
        [*TINY, *beside(1.0, -1.0), -20.0, 700.0, -1e300],
    ),
    "log1p_integral": (
        lambda x: (1 + x) * mp.log1p(x) - x if x > -1 else mp.mpf(1), 700,
        [(-0.99, 1), (-0.3, 0.4), (0, 1e300)], [*TINY, *beside(-0.2, 1 / 3), -0.9999999, 1e300],
    ),
    "x_over_expm1": (
        lambda x: x / mp.expm1(x) if x else mp.mpf(1), 50, [(-800, 800), (-1, 1)],
        [*TINY, *beside(40.0), 700.0, 720.0, 745.0, 760.0, -1e300],
    ),
    "x_over_sinh": (
        lambda x: x / mp.sinh(x) if x else mp.mpf(1), 50, [(-800, 800), (-1, 1)],
        [*TINY, *beside(40.0, -40.0), 700.0, 745.0, -1e300],
    ),
    "coth_minus_inverse": (
        lambda x: mp.coth(x) - 1 / x if x else x, 700, [(-800, 800), (-3, 3)],
        [*TINY, *beside(40.0, -1.5), 1e300],
    ),
    "exp_moment_ratio": (ratio, 80, [(-600, 600), (-3, 3)], [*TINY, *beside(2.0, -2.0), 3.0, -3.0]),
    "sech_squared": (lambda x: mp.sech(x) ** 2, 50, [(-400, 400), (-3, 3)], [*TINY, 300.0, 372.0]),
    "logcosh": (
        lambda x: abs(x) - mp.log(2) + mp.log1p(mp.exp(-2 * abs(x))), 700,
        [(-800, 800), (-2, 2)], [*TINY, *beside(1.0, -1.0), *ENDS],
    ),
    "one_minus_cos": (
        lambda x: 2 * mp.sin(x / 2) ** 2, 400, [(-100, 100)], [*TINY, 6.2831853, 1e20]
    ),
    "one_minus_cos_over_square": (
        lambda x: 2 * (mp.sin(x / 2) / x) ** 2 if x else mp.mpf("0.5"), 400, [(-100, 100)],
        [*TINY, 6.2831853, 1e20],
    ),
    "sqrt1p_minus_sqrt": (
        lambda x: 1 / (mp.sqrt(1 + x) + mp.sqrt(x)), 50, [(0, 1e9), (0, 2)],
        [0.0, *SMALL, 1e16, 1e300],
    ),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), 50, [(-800, 800), (-3, 3)], [*TINY, *LOGITS[1:-1]]),
    "softplus": (softplus, 50, [(-800, 800), (-3, 3)], [*TINY, *LOGITS[1:]]),
    "log_sigmoid": (lambda x: -softplus(-x), 50, [(-800, 800), (-3, 3)], [*TINY, *LOGITS[:-1]]),
    "log1mexp": (
        log1mexp, 50, [(-800, -1e-9), (-1, -5e-324)],
        [*(-x for x in SMALL), *beside(-LN2), -37.0, -744.0],
    ),
    "logexpm1": (
        lambda x: mp.log(mp.expm1(x)) if x < 1e4 else x, 50, [(1e-9, 800), (0.2, 1.6)],
        [*SMALL, *beside(0.25, LN2, 1.0, 1.5), 709.0, 711.0, 1e300],
    ),
    "logit": (
        lambda x: mp.log(x) - mp.log1p(-x), 400, [(1e-9, 0.999999), (0.2, 0.8)],
        [*SMALL, *beside(0.25, 0.5, 0.75), 1 - 1e-16],
    ),
    "xlogx": (
        lambda x: x * mp.log(x) if x else mp.mpf(0), 50, [(0, 1e3), (0, 2)],
        [0.0, *SMALL, *beside(1.0), 1e300],
    ),
    "one_plus_log": (
        lambda x: 1 + mp.log(x), 80, [(1e-9, 100), (0.1, 0.9)],
        [*SMALL, *beside(0.2, INVERSE_E, 0.7, 1.0), 1e300],
    ),
    "xlogx1p": (
        lambda x: (1 + x) * mp.log1p(x) if x != -1 else mp.mpf(0), 50, [(-1, 1e3), (-1, 1)],
        [*TINY, -1.0, 2.0**-53 - 1, 1e300],
    ),
    "entropy_of_two": (
        lambda x: x * mp.log(x) + (1 - x) * mp.log1p(-x) if 0 < x < 1 else mp.mpf(0), 400,
        [(0, 1), (0.4, 0.6)], [0.0, *SMALL, 0.5, 0.4999999123, 1 - 2.0**-53, 1.0],
    ),
    "one_plus_log1p": (
        lambda x: 1 + mp.log1p(x), 80, [(-0.999999, 100), (-0.8, -0.3)],
        [*TINY, *beside(INVERSE_E - 1, -0.5), 2.0**-53 - 1, 1e300],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_at_chosen_points(name, dtype):
    exact, digits, ranges, points = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        rounded = np.unique(np.asarray(points).astype(dtype))
    inside = np.isfinite(rounded)
    if name in ("log1mexp", "logexpm1", "logit", "one_plus_log"):
        inside &= rounded != 0
    if name == "logit":
        inside &= rounded != 1
    if name == "one_plus_log1p":
        inside &= rounded != -1
    check_values(name, exact, rounded[inside], dtype=dtype, digits=digits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_random_points(name):
    exact, digits, ranges, _ = FUNCTIONS[name]

    @FAST
    @given(lists(*ranges))
    def holds(points):
        check_values(name, exact, points, digits=digits, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize(("n", "power"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 3)])
def test_spherical_bessel_functions(n, power):
    row = ROWS["spherical_jn"](n, power)
    points = [*TINY, *beside(n + 1.0), 0.7, -12.5, 33.0, 150.0]
    check_values(row, bessel(n, power), points, digits=80)
    check_values(row, bessel(n, power), points[-5:], dtype="float32", digits=80)

    @FAST
    @given(lists((-30, 30), (-n - 2, n + 2)))
    def holds(drawn):
        check_values(row, bessel(n, power), drawn, digits=80, claim=CLAIM_ANYWHERE)

    holds()


# Name of the row: the exact function, digits, ranges of x and y, points.
PAIRS = {
    "log_mul": (
        lambda x, y: mp.log(x * y), 80, (1e-9, 1e9), (1e-9, 1e9),
        [(1e-200, 1e-300), (1e300, 1e300), (3.0, 1 / 3), (1e-9, 1e9), (-2.0, -0.5000001),
         (5e-324, 1)],
    ),
    "log_div": (
        lambda x, y: mp.log(x / y), 80, (1e-9, 1e9), (1e-9, 1e9),
        [(1e-200, 1e300), (1e300, 1e-300), (3.0, 3.0000001), (-2.0, -2.0000001), (1, 3), (49, 49)],
    ),
    "kl_div": (
        lambda x, y: x * mp.log(x / y) - x + y, 700, (1e-9, 1e9), (1e-9, 1e9),
        [(1e8 + 1, 1e8), (1.0, 1.0), (1e-300, 1e300), (1e300, 1e-300), (1e300, 1.1e300),
         (4.0, 5.0), (4.0, 4.9999999), (4.0, 3.0), (-3.0, -3.1), (-1e-200, -1.3)],
    ),
    "compound": (
        lambda x, y: (1 + x) ** y, 700, (-0.99, 9), (-50, 50),
        [(1e-300, 1e300), (1e-9, 1e9), (-3.0, 3.0), (-2.5, -2.0), (1e100, 3.0), (-1.0, 2.0)],
    ),
    "compoundm1": (
        lambda x, y: (1 + x) ** y - 1, 700, (-0.99, 9), (-50, 50),
        [(1e-300, 3.0), (1e-300, 1e-5), (-2 + 1e-12, 4.0), (-2 - 1e-12, 3.0), (-3.5, 2.0), (-1, 2)],
    ),
    "exp_of_sum": (
        lambda x, y: mp.exp(x + y), 50, (-300, 300), (-300, 300),
        [(700.0, -1e-14), (-700.0, -40.0), (1e10, -1e10)],
    ),
    "square_difference": (
        lambda x, y: x * x - y * y, 80, (-1e9, 1e9), (-1e9, 1e9),
        [(1e8 + 1, 1e8), (1 + 1e-16, 1.0), (1e150, 1e150), (1e200, -1e200), (-3.0, 3.0000001)],
    ),
    "sqrt_difference": (
        lambda x, y: mp.sqrt(x) - mp.sqrt(y), 80, (0, 1e9), (0, 1e9),
        [(1e300, 1e300), (0.0, 0.0), (5e-324, 0.0), (1e8 + 1, 1e8), (1e-300, 1e300),
         (2.0, 2.0000001)],
    ),
    "logaddexp": (
        lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))), 80, (-800, 800), (-800, 800),
        [(1e300, 1e300), (-0.7, -0.686), (1e-9, -40.0), (-0.2, -1.7077), (720.0, 719.999)],
    ),
    "logdiffexp": (
        lambda x, y: mp.log(mp.exp(x) - mp.exp(y)), 1200, (0, 800), (-800, -1e-9),
        [(0.75, 0.1), (1e-9, -1e-9), (800.0, 799.0), (-700.0, -701.5), (40.0, -3.0)],
    ),
    "share": (
        lambda x, y: 1 / (1 + mp.exp(y - x)), 80, (-300, 300), (-300, 300),
        [(720.0, 719.0), (-800.0, 700.0), (1e-9, 0.0), (1e300, 1e300)],
    ),
    "exp_gap": (
        lambda x, y: mp.expm1(x - y), 80, (-300, 300), (-300, 300),
        [(1e10, 1e10), (1e-9, 0.0), (0.1, 0.3), (700.0, 1e-14), (-1e5, 1.0)],
    ),
    "xlogy": (
        lambda x, y: x * mp.log(y) if x else mp.mpf(0), 50, (-1e9, 1e9), (1e-9, 1e9),
        [(0.0, 0.0), (0.0, 5e-324), (1e300, 1.0), (3.0, 5e-324), (2.0, 1.0000001)],
    ),
    "xlog1py": (
        lambda x, y: x * mp.log1p(y) if x else mp.mpf(0), 50, (-1e9, 1e9), (-0.99, 1e9),
        [(0.0, -1.0), (3.0, 1e-300), (1e300, 1e-300), (2.0, -0.9999999)],
    ),
    "log_of_pow": (
        lambda x, y: y * mp.log(abs(x)), 50, (1e-9, 1e9), (-1e5, 1e5),
        [(1e-200, 9.0), (1e200, 9.0), (-3.0, 2.0), (-1e200, 4.0), (1.0000001, 1e5)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_at_chosen_points(name):
    exact, digits, _, _, points = PAIRS[name]
    check_values(name, exact, *zip(*points, strict=True), digits=digits)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_pairs_of_narrow_dtypes(name, dtype):
    exact, digits, *_ = PAIRS[name]
    x = np.array([0.7, 1.3, 2.9, 0.34, 1.0], dtype)
    y = np.array([0.2, 1.25, -1.5, 0.3333, 0.9], dtype)
    y = abs(y) if name in ("kl_div", "log_mul", "log_div", "xlogy", "sqrt_difference") else y
    check_values(name, exact, x, y, dtype=dtype, digits=digits)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_at_random_points(name):
    exact, digits, of_x, of_y, _ = PAIRS[name]

    @FAST
    @given(lists(of_x), lists(of_y))
    def holds(x, y):
        n = min(len(x), len(y))
        check_values(name, exact, x[:n], y[:n], digits=digits, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize(
    "name", ["logaddexp", "square_difference", "sqrt_difference", "exp_gap", "kl_div"]
)
def test_pairs_that_cancel(name):
    exact, digits, of_x, _, _ = PAIRS[name]

    @FAST
    @given(lists(of_x), lists((-1e-6, 1e-6)))
    def holds(x, gaps):
        n = min(len(x), len(gaps))
        y = [a * (1 + g) for a, g in zip(x[:n], gaps, strict=False)]
        check_values(name, exact, x[:n], y, digits=digits, claim=CLAIM_ANYWHERE)

    holds()


LIMITS = {
    "exp_minus_cos": [(0, 0), (inf, nan), (nan, nan)],
    "log1p_integral": [(0, 0), (-1, 1), (-2, nan), (nan, nan)],
    "x_over_expm1": [(0, 1), (inf, 0), (-inf, inf), (nan, nan)],
    "x_over_sinh": [(0, 1), (inf, 0), (-inf, 0), (nan, nan)],
    "coth_minus_inverse": [(0, 0), (inf, 1), (-inf, -1), (nan, nan)],
    "exp_moment_ratio": [(0, 0.5), (inf, 1), (-inf, 0), (nan, nan)],
    "sech_squared": [(inf, 0), (-inf, 0), (nan, nan)],
    "logcosh": [(inf, inf), (-inf, inf), (nan, nan)],
    "one_minus_cos": [(inf, nan), (nan, nan)],
    "one_minus_cos_over_square": [(0, 0.5), (nan, nan)],
    "sqrt1p_minus_sqrt": [(0, 1), (inf, 0), (-0.5, nan), (nan, nan)],
    "sigmoid": [(-inf, 0), (inf, 1), (-1e300, 0), (nan, nan)],
    "softplus": [(-inf, 0), (inf, inf), (nan, nan)],
    "log_sigmoid": [(-inf, -inf), (inf, 0), (nan, nan)],
    "log1mexp": [(-inf, 0), (0, -inf), (1, nan), (nan, nan)],
    "logexpm1": [(0, -inf), (inf, inf), (-1, nan), (nan, nan)],
    "logit": [(0, -inf), (1, inf), (2, nan), (-1, nan), (nan, nan)],
    "xlogx": [(0, 0), (inf, inf), (-1, nan), (nan, nan)],
    "one_plus_log": [(0, -inf), (inf, inf), (-1, nan), (nan, nan)],
    "xlogx1p": [(-1, 0), (inf, inf), (-2, nan), (nan, nan)],
    "entropy_of_two": [(0, 0), (1, 0), (2, nan), (-1, nan), (nan, nan)],
    "one_plus_log1p": [(-1, -inf), (inf, inf), (-2, nan), (nan, nan)],
    "log_mul": [(0, 1, -inf), (inf, 2, inf), (-1, 2, nan), (nan, 1, nan), (0, 0, -inf)],
    "kl_div": [(1, 1, 0), (0, 1, nan), (1, 0, inf), (-1, 1, nan), (inf, 1, nan), (nan, 1, nan)],
    "log_div": [(0, 1, -inf), (1, 0, inf), (-1, 2, nan), (nan, 1, nan), (1, inf, -inf)],
    "compound": [(-1, 0, 1), (inf, 0, 1), (0, inf, 1), (-3, 0.5, nan), (nan, 1, nan),
        (-1, -1, inf)],
    "compoundm1": [(-1, 0, 0), (0, inf, 0), (-3, 0.5, nan), (1, nan, nan), (-1, 3, -1)],
    "exp_of_sum": [(inf, 1, inf), (-inf, 1, 0), (inf, -inf, nan), (nan, 1, nan),
        (1e308, 1e308, inf)],
    "square_difference": [(inf, 1, inf), (1, inf, -inf), (nan, 1, nan)],
    "sqrt_difference": [(inf, 1, inf), (1, inf, -inf), (-1, 1, nan), (nan, 1, nan)],
    "logaddexp": [(-inf, -inf, -inf), (-inf, 2, 2), (inf, 2, inf), (inf, inf, inf), (nan, 1, nan)],
    "logdiffexp": [(1, 1, -inf), (1, 2, nan), (2, -inf, 2), (-inf, -inf, -inf), (nan, 1, nan)],
    "share": [(-inf, 0, 0), (inf, 0, 1), (0, -inf, 1), (-inf, -inf, 0), (nan, 0, nan),
        (0, nan, nan)],
    "exp_gap": [(1, 1, 0), (inf, 1, inf), (-inf, 1, -1), (nan, 1, nan)],
    "xlogy": [(0, 0, 0), (0, inf, 0), (1, 0, -inf), (0, nan, nan), (nan, 1, nan)],
    "xlog1py": [(0, -1, 0), (0, inf, 0), (1, -1, -inf), (0, nan, nan), (nan, 1, nan)],
    "log_of_pow": [(0, 2, -inf), (-2, 3, nan), (-2, 0.5, nan), (inf, 2, inf), (nan, 1, nan)],
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    *points, wanted = zip(*LIMITS[name], strict=True)
    np.testing.assert_array_equal(values_at(name, *points), wanted)


@pytest.mark.parametrize("name", [*FUNCTIONS, *PAIRS])
def test_derivatives_dtypes_and_shapes(name):
    function = Elemwise(ROWS[name]())
    x = np.array([[0.41, 0.8, 0.45], [0.7, 0.62, 0.5]])
    if name == "log1mexp":
        x = -x
    more = [np.array([[-0.3], [0.25]])] if name in PAIRS else []
    if name in ("kl_div", "log_mul", "log_div", "sqrt_difference", "xlogy", "log_of_pow"):
        more = [abs(m) for m in more]
    check(function, x, *more, expected=function.perform)
    check(function, x[::-1, ::-2], *more, expected=function.perform)
    check(function, x[:, :0], *more, expected=function.perform, grad=False)
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32"):
        narrow = [np.array([1, 1], dtype)] * (1 + len(more))
        check(function, *narrow, expected=function.perform, grad=False)


@pytest.mark.parametrize(("n", "power"), [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2)])
def test_derivatives_of_orders(n, power):
    x = np.array([-7.3, -0.4, 1e-9, 2.1, 9.5])
    computed = Elemwise(ROWS["spherical_jn"](n, power)).perform
    check(lambda v: spherical_jn(n, v, power), x, expected=computed)


def test_powers_of_spherical_bessel_functions():
    with pytest.raises(SymcompError, match="the power must be from 0 to the order"):
        spherical_jn(1, 0.5, 2)


# Points where parts of the derivative cancel, over- or underflow, or are 0 / 0.
SLOPES = {
    "x_over_expm1": [1e-9, -1e-300, 30.0, 700.0, -700.0],
    "x_over_sinh": [1e-9, -1e-300, 30.0, 700.0, -700.0],
    "coth_minus_inverse": [1e-9, -0.9, 1.1, 30.0, -800.0],
    "logcosh": [1e-9, 800.0],
    "sech_squared": [1e-9, 40.0, -300.0],
    "one_minus_cos_over_square": [1e-9, 1.1],
    "sigmoid": [-700.0, -40.0, 40.0, 700.0],
    "softplus": [-700.0, 40.0],
    "log_sigmoid": [-40.0, 700.0],
    "log1mexp": [-1e-300, -40.0, -700.0],
    "logexpm1": [1e-300, 0.7, 40.0],
    "xlogx": [1e-300, INVERSE_E, 0.5],
    "entropy_of_two": [1e-300, 0.4999999123, 0.9],
    "xlogx1p": [1e-300, INVERSE_E - 1, -0.7, 1e300],
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_at_the_ends(name):
    exact, x = FUNCTIONS[name][0], T.dvector("x")
    points = np.array(SLOPES[name])
    slope = T.grad(Elemwise(ROWS[name]())(x).sum(), x).eval({x: points})
    for got, point in zip(slope, points, strict=True):
        with mp.workdps(1500):
            truth = mp.diff(exact, mp.mpf(point), h=abs(mp.mpf(point)) * mp.mpf(10) ** -500)
            assert units_off(got, truth) <= 4, point


def test_slope_of_powers():
    """At 1 + x = 0 and where the power overflows but its slope does not."""
    x, y = T.dvectors("x", "y")
    for name in ("compound", "compoundm1"):
        slope = T.grad(Elemwise(ROWS[name]())(x, y).sum(), x)
        got = slope.eval({x: [-1.0, -1.0, 1e200, -3.0], y: [2.0, 1.0, 2.0, 3.0]})
        np.testing.assert_allclose(got, [0, 1, 2e200, 12])
