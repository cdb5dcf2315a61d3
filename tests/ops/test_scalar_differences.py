"""Rows of differences of nearly equal values, against mpmath; their limits and derivatives."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings

import symcomp.tensor as T
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE, beside, check_values, lists, values_at

FAST = settings(deadline=None, max_examples=20)
inf, nan = np.inf, np.nan
TINY = [0.0, 5e-324, -1e-310, 1e-300, -1e-200, 1e-17, -1e-8]


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(x))


# Name of the row: the exact function, digits, ranges to draw from, points.
OF_ONE = {
    "sigmoid_slope": (
        lambda x: sigmoid(x) * sigmoid(-x), 50, [(-700, 700), (-3, 3)], [*TINY, 36.7, -709.0, 740.0]
    ),
    "sech": (mp.sech, 50, [(-700, 700), (-3, 3)], [*TINY, 36.7, -709.0, 1000.0]),
    "log_cos": (
        lambda x: mp.log(mp.cos(x)), 700, [(-1.5, 1.5), (-0.9, 0.9)],
        [*TINY, *beside(np.arccos(0.7)), 1.5707963, 6.2, 1e5],
    ),
    "log1m_square": (
        lambda x: mp.log1p(-x * x), 700, [(-0.9999, 0.9999)],
        [*TINY, *beside(0.87, -0.87), 1 - 1e-15, 0.5],
    ),
    "one_minus_erf_squared": (
        lambda x: mp.erfc(x) * mp.erfc(-x), 50, [(-26, 26), (-1, 1)], [*TINY, 0.25, 1.0, 4.0]
    ),
    "arcsin_of_root": (
        lambda x: mp.asin(mp.sqrt(x)), 50, [(0, 1), (0, 1e-9)], [5e-324, 1e-300, 1 - 1e-15, 1.0]
    ),
}  # fmt: skip
LOGITS = [
    (0.3, -1.2), (800.0, 799.0), (-800.0, -802.5), (1.7, 1.7000001), (36.9, -1.1), (1e-200, 3e-200),
    (-5.5, 720.3), (0.0, 0.0), (3.0, 3.9999), (-0.4, 0.7), (-3.0, 40.0), (2.0, 3.0), (-2.0, -3.0),
]  # fmt: skip
RATIOS = [
    (1.0, 3e160), (1.0, 1e-300), (2.0, 3.3), (-0.3, 0.6), (-0.300001, 0.6), (1e-9, 3.3),
    (1e200, 1e-200), (-3.2999999, 3.3), (5e-324, 1.0),
]  # fmt: skip
EXPONENTS = [
    (800.0, 799.0), (-800.0, -802.5), (710.0, 0.1), (-5.5, 720.3), (1e-200, 3e-200),
    (1000.0, 999.0), (0.3, -1.2), (709.5, 0.7),
]
OF_TWO = {
    "share_slope": (
        lambda x, y: sigmoid(x - y) * sigmoid(y - x), 400, LOGITS, [(-30, 30), (-400, 300)]
    ),
    "sigmoid_difference": (
        lambda x, y: sigmoid(x) - sigmoid(y), 900, LOGITS, [(-30, 30), (-700, 700)]
    ),
    "softplus_difference": (
        lambda x, y: softplus(x) - softplus(y), 900, LOGITS, [(-30, 30), (-700, 700)]
    ),
    "share_difference": (
        lambda x, y: mp.tanh((x - y) / 2), 400, LOGITS, [(-30, 30), (-400, 300)]
    ),
    "one_plus_exp_ratio": (
        lambda x, y: (1 + mp.exp(x)) / (1 + mp.exp(y)), 900, EXPONENTS, [(-30, 30), (-300, 300)]
    ),
    "expm1_ratio": (
        lambda x, y: mp.expm1(x) / mp.expm1(y), 900, EXPONENTS, [(1, 30), (-300, -1e-9)]
    ),
    "exp_over_expm1": (
        lambda x, y: mp.exp(x) / mp.expm1(y), 900, EXPONENTS, [(1, 30), (-300, -1e-9)]
    ),
    "exp_times_sigmoid": (
        lambda x, y: mp.exp(x) * sigmoid(y), 400,
        [(800.0, -799.0), (710.0, 0.1), (-3.3, 2.0), (700.0, -1e-9), (1.0, 800.0)],
        [(-300, 300), (-3, 3)],
    ),
    "exp_of_product": (
        lambda x, y: mp.exp(x * y), 50, [(26.3, 26.7), (-9.3, 9.3), (1e-200, 1e-200), (0.1, 7e3)],
        [(-26, 26)],
    ),
    "log1p_ratio": (lambda x, y: mp.log1p(x / y), 700, RATIOS, [(1e-9, 1e9), (0.5, 2)]),
    "log_gap": (lambda x, y: mp.log(x + y) - mp.log(y), 900, RATIOS, [(1e-9, 1e9), (0.5, 2)]),
    "log_difference": (
        lambda x, y: mp.log(x) - mp.log(y), 50,
        [(3.3, 3.3000000001), (1e300, 3e-300), (7e-310, 2e-309), (4.1, 1.0), (1.0, 3.9), (2.0, 2)],
        [(1e-9, 1e9), (0.5, 2)],
    ),
    "cube_difference": (
        lambda x, y: x**3 - y**3, 900,
        [(3.3, 3.3000000001), (-3.3, 3.3), (1e102, -1e101), (1e-100, 2e-101), (0, 1e-60)],
        [(-30, 30), (0.5, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", OF_ONE)
def test_of_one(name, dtype):
    exact, digits, _, points = OF_ONE[name]
    rounded = np.unique(np.asarray(points).astype(dtype))
    if name == "log1m_square":
        rounded = rounded[abs(rounded) < 1]
    if name == "log_cos":
        rounded = rounded[np.cos(rounded.astype(float)) > 0]
    check_values(name, exact, rounded[np.isfinite(rounded)], dtype=dtype, digits=digits)


@pytest.mark.parametrize("name", OF_ONE)
def test_of_one_at_random_points(name):
    exact, digits, ranges, _ = OF_ONE[name]

    @FAST
    @given(lists(*ranges))
    def holds(points):
        check_values(name, exact, points, digits=digits, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name):
    exact, digits, points, ranges = OF_TWO[name]
    check_values(name, exact, *zip(*points, strict=True), digits=digits)

    @FAST
    @given(lists(*ranges), lists(*ranges))
    def holds(xs, ys):
        n = min(len(xs), len(ys))
        check_values(name, exact, xs[:n], ys[:n], digits=digits, claim=CLAIM_ANYWHERE)

    holds()


@given(lists((-690, 0), (-3, 0)))
@FAST
def test_rest_of_exponentials(xs):
    """An exponential and its rest have ten bits more than a double."""
    ys = [-0.1 * i for i in range(len(xs))]
    values, rests = (values_at(name, xs, ys) for name in ("exp_of_sum", "exp_of_sum_rest"))
    for x, y, value, rest in zip(xs, ys, values, rests, strict=True):
        with mp.workdps(60):
            exact = mp.exp(mp.mpf(x) + mp.mpf(y))
            assert abs(mp.mpf(value) + mp.mpf(rest) - exact) <= mp.mpf(2) ** -62 * exact


def test_rests_of_products_and_differences():
    x, y, w = [0.1, 3.0, inf, 1e308], [0.3, 1 / 3, 1.0, 10.0], [-0.2, 2.7, 1.0, 1.0]
    products = values_at("product_rest", x, y)
    differences = values_at("difference_rest", x, y, w)
    assert products[2:] == [0, 0] and differences[2:] == [0, -11.0]
    with mp.workdps(60):
        for a, b, c, product, gap in zip(x[:2], y[:2], w[:2], products, differences, strict=False):
            assert product == mp.mpf(a) * b - a * b and gap == mp.mpf(a) - b - c - (a - b - c)


@pytest.mark.parametrize(
    ("name", "exact", "points"),
    [
        ("log_rest", mp.log, [1e-290, 1.2e-8, 0.3, 0.9999999, 1.0000001, 1.7, 36.1, 1e100, 1e290]),
        ("exponential_rest", mp.exp, [-680.0, -36.1, -1e-9, 0.0, 1e-300, 0.3, 2.9, 36.1, 680.0]),
    ],
)
def test_rests_of_functions(name, exact, points):
    """A value and its rest have ten bits more than a double, next to 1 for the logarithm."""
    points = np.array(points)
    with mp.workdps(60):
        truth = [exact(mp.mpf(x)) for x in points]
        rounded = np.array([float(t) for t in truth])
        for value, rest, true in zip(rounded, values_at(name, points, rounded), truth, strict=True):
            size = 1 if name == "log_rest" else true
            assert abs(mp.mpf(value) + mp.mpf(rest) - true) <= mp.mpf(2) ** -61 * size


@given(lists((-690, 0), (-3, 0)))
@FAST
def test_parts_of_exponentials(xs):
    """Two parts of a product with an exponential have ten bits more than a double; the first has
    no digits below the last one of a bound.
    """
    ys, ws, bounds = (np.resize(v, len(xs)) for v in ([-0.1, 0, -1e-9], [1, -0.3, 7], [2.0**28]))
    high, low = (values_at(name, xs, ys, ws, bounds) for name in ("cut_exp", "cut_exp_rest"))
    for x, y, w, part, rest in zip(xs, ys, ws, high, low, strict=True):
        assert part == round(part * 2**25) / 2**25
        with mp.workdps(60):
            exact = mp.mpf(float(w)) * mp.exp(mp.mpf(x) + mp.mpf(float(y)))
            error = abs(mp.mpf(part) + mp.mpf(rest) - exact)
            assert error <= mp.mpf(2) ** -63 * abs(exact) + mp.mpf(2) ** -53 * abs(rest)


def test_sums_with_logarithms():
    """No digits are lost where the logarithm of a pair and a number nearly cancel."""
    pairs = [(0.7, 2e-17, 1), (3.0, -1e-16, 7), (1.0, 1e-20, 1), (1e200, 1e184, 3), (2.0, -0.5, 1)]
    y, e, n = np.array(pairs).T
    with mp.workdps(60):
        logs = [mp.log((mp.mpf(a) + b) / c) for a, b, c in pairs]
        for shift in (0.0, 1e-9, 0.4):
            x = np.array([shift - float(z) for z in logs])
            for a, z, got in zip(x, logs, values_at("plus_log", x, y, e, n), strict=True):
                assert abs(got - (a + z)) <= mp.mpf(2) ** -62 * abs(z) + 2.0**-52 * abs(a + z)


def test_rests_at_the_ends():
    """Rests are 0 where a function or its value has none, and do not change infinity or 0."""
    assert values_at("log_rest", [0, inf, 5e-324], [-inf, inf, -744.4]) == [0, 0, 0]
    assert values_at("exponential_rest", [-inf, inf, 709.0], [0, inf, 8.2e307]) == [0, 0, 0]
    check = values_at("exp_with_rest", [-inf, inf, 1.0, 1.0], [np.nan, np.nan, inf, 0.25])
    np.testing.assert_allclose(check, [0, inf, np.e, 1.25 * np.e])


def test_products_and_quotients_of_exponentials_with_rests():
    """Parts of the product may leave the range; infinities and 0 are those of x exp(y) / z / w."""
    points = [
        (1.3, -900.0, 1e-17, 1e-200, 1e-150), (1e-300, 900.0, 0.0, 1e-5, 1e50),
        (3e200, 600.5, 0.0, 1e250, 2e160), (1e-200, -800.3, 0.0, 1e-300, 1e-250),
    ]  # fmt: skip
    got = values_at("times_exp_with_rest", *np.array(points).T)
    with mp.workdps(40):
        exact = [a * mp.exp(mp.mpf(b) + c) / d / e for a, b, c, d, e in points]
    assert units_off(got, exact) <= 6
    ends = [1, inf, 0, -inf, np.nan], [-inf, inf, -2e3, 2e3, 0], [np.nan, inf, 0, 0, 0]
    got = values_at("times_exp_with_rest", *ends, [2.0, 2.0, 1.0, -1.0, 1.0], [1.0] * 5)
    np.testing.assert_array_equal(got, [0, inf, 0, inf, np.nan])


@given(lists((1e-300, 1e300), (0.5, 2)))
@FAST
def test_powers_of_logarithms_in_two_parts(xs):
    xs = [*xs, 5e-324, 1e-310, *beside(1.0, 0.5**0.5, 2.0**0.5), 1.9e300]
    mantissas, exponents = values_at("log_mantissa", xs), values_at("log_exponent", xs)
    assert max(map(abs, mantissas)) <= np.log(2) / 2 + 1e-15
    with mp.workdps(50):
        for x, mantissa, k in zip(xs, mantissas, exponents, strict=True):
            true = mp.log(mp.mpf(x) / mp.mpf(2) ** int(k))
            assert abs(mantissa - true) <= 2.0**-51 * abs(true)
    check_values("power_of_parts", power_of_parts, mantissas, exponents,
                 [-0.7] * len(xs), np.arange(len(xs)) + 1.0)  # fmt: skip


def power_of_parts(x, k, c, n):
    return mp.exp((x + k * mp.log(2)) * c / n)


def test_powers_of_sums_of_parts():
    """The sum of mantissas compensates that of exponents; halves are exact."""
    points = [(-2000.0, 2885.0, 1.0, 1.0), (3.0, 4001.0, 1.0, 7.0), (0.0, 2047.0, 0.5, 1.0)]
    check_values("power_of_parts", power_of_parts, *zip(*points, strict=True))


def shared_mean(x, y, a, b):
    return (x * mp.exp(a - b) + y) / (mp.exp(a - b) + 1)


def test_shared_mean_where_its_terms_cancel():
    """The exponential has ten bits more than a double, so that the terms may lose six."""
    a, b = np.array([*LOGITS, (0.3, -705.0), (-705.3, 3.0)]).T
    with np.errstate(over="ignore"):
        x = np.where(b - a > 600, 1.7, -np.exp(np.minimum(b - a, 600)) * 1.01)
    check_values("shared_mean", shared_mean, a, b, a, b, digits=400)
    check_values("shared_mean", shared_mean, x, np.ones(len(a)), a, b, digits=400)


@given(lists((-700, 700), (-3, 3)))
@FAST
def test_shared_mean(gaps):
    """The numbers have one sign; the exponents are near to each other or far."""
    n = len(gaps)
    x = np.linspace(0.3, 1.7, n)
    check_values("shared_mean", shared_mean, x, x[::-1], gaps, np.ones(n), digits=400)


@given(lists((1e-150, 1e150), (0.5, 2)), lists((1e-150, 1e150), (0.5, 2)))
@FAST
def test_by_squares(ps, ds):
    """Take p = sqrt(q^2 + d), rounded, and q, where d is exact: a quotient of a sum."""
    for q, d in zip(ps, ds, strict=False):
        with mp.workdps(700):
            truth = mp.sqrt(mp.mpf(q) ** 2 + d) - q
            p = float(mp.sqrt(mp.mpf(q) ** 2 + d))
        (found,) = values_at("by_squares", [p], [q], [d])
        assert abs(mp.mpf(found) / truth - 1) <= 4 * 2.0**-53 or 0 <= truth < 1e-300


LIMITS = {
    "sigmoid_slope": ([(inf,), (-inf,), (nan,)], [0, 0, nan]),
    "share_slope": (
        [(inf, 1), (-inf, 1), (-inf, -inf), (inf, inf), (-inf, nan), (-inf, inf)],
        [0, 0, 0, nan, nan, 0],
    ),
    "sigmoid_difference": (
        [(inf, inf), (inf, -inf), (-inf, 0), (nan, 1), (-inf, -inf)], [0, 1, -0.5, nan, 0]
    ),
    "softplus_difference": (
        [(inf, inf), (inf, -inf), (-inf, 5), (nan, 1), (-inf, -inf), (1, inf)],
        [nan, inf, -np.log1p(np.exp(5)), nan, 0, -inf],
    ),
    "sech": ([(inf,), (-inf,), (nan,)], [0, 0, nan]),
    "share_difference": ([(inf, 1), (-inf, 1), (inf, inf), (nan, 1)], [1, -1, nan, nan]),
    "one_plus_exp_ratio": (
        [(inf, 1), (-inf, -inf), (inf, inf), (nan, 1), (1, nan), (1, inf)],
        [inf, 1, nan, nan, nan, 0],
    ),
    "expm1_ratio": (
        [(inf, 1), (-inf, -inf), (inf, inf), (0, 0), (1, nan), (1, inf), (1, 0)],
        [inf, 1, nan, nan, nan, 0, inf],
    ),
    "exp_over_expm1": (
        [(inf, 1), (-inf, 1), (inf, inf), (0, -0.0), (nan, 1), (1, inf), (1, -inf)],
        [inf, 0, nan, -inf, nan, 0, -np.e],
    ),
    "shared_mean": (
        [
            (2, 3, inf, 1), (2, 3, 1, inf), (2, 3, inf, inf), (2, nan, 0, 0), (2, inf, 0, 0),
            (2, 3, 0, nan),
        ],
        [2, 3, nan, nan, inf, nan],
    ),
    "exp_times_sigmoid": (
        [(inf, 1), (-inf, 1), (1, -inf), (inf, -inf), (nan, 1), (1, nan), (800, inf)],
        [inf, 0, 0, nan, nan, nan, inf],
    ),
    "exp_of_product": (
        [(inf, 1), (-inf, 1), (0, inf), (1e200, 1e200), (-1e200, 1e200), (nan, 1)],
        [inf, 0, nan, inf, 0, nan],
    ),
    "log_cos": ([(inf,), (nan,), (2.0,)], [nan, nan, nan]),
    "one_minus_erf_squared": ([(inf,), (-inf,), (nan,)], [0, 0, nan]),
    "arcsin_of_root": ([(0.0,), (-1,), (2,), (nan,)], [0, nan, nan, nan]),
    "log1m_square": ([(1,), (-1,), (2,), (inf,), (nan,)], [-inf, -inf, nan, nan, nan]),
    "log1p_ratio": (
        [(1, 0.0), (1, -0.0), (-1, 1), (-2, 1), (1, inf), (inf, inf), (-3, -2)],
        [inf, inf, -inf, nan, 0, nan, np.log(2.5)],
    ),
    "log_gap": (
        [(1, 0.0), (1, -0.0), (1, -3), (-1, 1), (inf, 1), (nan, 1), (0.0, 0.0)],
        [inf, inf, nan, -inf, inf, nan, nan],
    ),
    "log_difference": (
        [
            (inf, 1), (1, inf), (inf, inf), (-1, -2), (-2, -2), (1, -1), (0, 1), (0, 0), (nan, 1),
            (1, nan), (1, -0.0), (-0.0, inf),
        ],
        [inf, -inf, nan, nan, nan, nan, -inf, nan, nan, nan, inf, -inf],
    ),
    "cube_difference": (
        [(inf, 1), (1, inf), (inf, inf), (1e200, -1e200), (nan, 1), (1, nan)],
        [inf, -inf, nan, inf, nan, nan],
    ),
    "log_mantissa": ([(0.0,), (-1,), (inf,), (nan,)], [-inf, nan, inf, nan]),
    "log_exponent": ([(0.0,), (-1,), (inf,), (nan,), (0.7,)], [0, 0, 0, 0, -1]),
    "power_of_parts": (
        [(-inf, 3, 1, 4), (inf, 3, -1, 4), (nan, 0, 1, 1), (0, 0, 1, 0), (0, 1e4, 1, 1)],
        [0, 0, nan, nan, inf],
    ),
    "by_squares": (
        [(2, 1, 3), (-2, 1, 3), (inf, inf, 1), (inf, 1, inf), (nan, 1, 1), (1e308, 1.5e308, inf)],
        [1, -3, 0, inf, nan, -5e307],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    points, wanted = LIMITS[name]
    got = values_at(name, *zip(*points, strict=True))
    np.testing.assert_allclose(got, wanted, rtol=1e-13, equal_nan=True)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_derivatives_dtypes_and_shapes(name):
    function = Elemwise(ROWS[name]())
    points = np.array([[0.1, 0.3, 0.45], [0.8, 0.62, 0.2]])
    others = [] if name in OF_ONE else [points[::-1] + 0.05]

    def expected(*xs):
        return function.perform(*xs)

    check(function, points, *others, expected=expected)
    check(function, points[::-1, ::-2], *(y[:, ::2] for y in others), expected=expected)
    empty = np.zeros((2, 0))
    check(function, empty, *(empty for _ in others), expected=expected, grad=False)
    integers = [T.constant(np.array([0, 1]))] * (1 + len(others))
    assert function(*integers).dtype == "float64"


def test_the_derivative_of_a_difference_by_squares_is_that_of_the_difference():
    x, y = T.dvector("x"), T.dvector("y")
    z = Elemwise(ROWS["by_squares"]())(x, y, x * x - y * y)
    slopes = T.grad(z.sum(), [x, y])
    values = {x: [2.0, -1.0], y: [1.5, 3.0]}
    assert [s.eval(values).tolist() for s in slopes] == [[1, 1], [-1, -1]]
    assert z.eval(values).tolist() == [0.5, -4.0]
