"""The gamma function and its kin: to 3 ulp of mpmath everywhere, derivatives to 4."""

from functools import cache

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.harness import check

TINY, HUGE = np.finfo(float).tiny, np.finfo(float).max


def sign(x):
    """Return the sign of the gamma function."""
    return -1 if x < 0 and int(mpmath.floor(x)) % 2 else 1


def log_gamma(x):
    return mpmath.re(mpmath.loggamma(x))


def ratio(x, y):
    return sign(x) * sign(y) * mpmath.exp(log_gamma(x) - log_gamma(y))


def tri_gamma(x):
    if x > 0:
        return mpmath.zeta(2, x)
    return (mpmath.pi / mpmath.sinpi(x)) ** 2 - mpmath.zeta(2, 1 - x)


UNARY = {
    "gamma": lambda x: sign(x) * mpmath.exp(log_gamma(x)),
    "gammaln": log_gamma,
    "psi": mpmath.digamma,
    "tri_gamma": tri_gamma,
}
BINARY = {
    "gamma_ratio": ratio,
    "poch": lambda x, h: ratio(x + h, x),
    "beta": lambda a, b: sign(b) * mpmath.exp(log_gamma(b)) * ratio(a, a + b),
    "betaln": lambda a, b: log_gamma(a) + log_gamma(b) - log_gamma(a + b),
    "log_gamma_ratio": lambda x, y: log_gamma(x) - log_gamma(y),
    "log_poch": lambda x, h: log_gamma(x + h) - log_gamma(x),
    "digamma_increment": lambda x, h: mpmath.digamma(x + h) - mpmath.digamma(x),
}


def exact(function, *xs):
    """Compute with enough digits for arguments of different size; NaN at poles."""
    sizes = [np.log10(abs(x)) for x in xs if x]
    span = max([0.0, *sizes]) - min([0.0, *sizes])
    with mpmath.workdps(80 + int(span)):
        try:
            return function(*(mpmath.mpf(float(x)) for x in xs))
        except (ValueError, ZeroDivisionError):
            return mpmath.nan


def worst(got, function, *columns):
    """Units in the last place, where the truth is a normal number; and the place."""
    found = (0.0, None)
    for z, *xs in zip(got, *columns, strict=True):
        true = exact(function, *xs)
        rounded = float(true)
        if not np.isfinite(rounded) or abs(rounded) < TINY:
            continue
        unit = float(np.spacing(abs(rounded)))
        off = float(abs(mpmath.mpf(float(z)) - true) / unit) if np.isfinite(z) else np.inf
        found = max(found, (off, xs), key=lambda pair: pair[0])
    return found


@cache
def compiled(function, arity):
    xs = [T.dvector() for _ in range(arity)]
    return symcomp.function(xs, function(*xs), on_unused_input="ignore")


def evaluated(function, *columns):
    with np.errstate(all="ignore"):
        return compiled(function, len(columns))(*columns)


@cache
def slope(name, i):
    """Return the function that builds the derivative by an argument."""
    return lambda *xs: symcomp.grad(getattr(T, name)(*xs).sum(), list(xs))[i]


def is_pole(x):
    return x <= 0 and x == np.floor(x)


def magnitude(low, high):
    """Numbers of all sizes."""
    return st.floats(low, high).map(lambda e: 10.0**e)


POSITIVE = st.one_of(magnitude(-20, 20), magnitude(-3, 3), st.floats(0.1, 30))
ANY = st.one_of(
    POSITIVE,
    st.floats(-200, 200),
    st.builds(lambda n, d: n + d, st.integers(-30, 5), st.floats(-1e-3, 1e-3)),
    st.builds(lambda n, e: n + 10.0**e, st.integers(-30, 5), st.floats(-15, -1)),
    st.builds(lambda n, e: n - 10.0**e, st.integers(-30, 5), st.floats(-15, -1)),
).filter(lambda x: not is_pole(x) and x > -1e15)
ROOTS = [
    1.4616321449683622, 1.4616321449683625, -0.5040830082644554, -1.5734984731623904,
    -2.4570247382208006, -2.7476826467274127, -3.143580888349979, -3.955294284858598, 1 - 2**-53,
    1 + 2**-52, 2 - 2**-52, 2 + 2**-51, 1.0, 2.0,
]  # fmt: skip
HARD = np.array([
    *ROOTS, 1e-300, -1e-300, TINY, 0.5, 2.5, 2.5000001, 12.0, 15.99, 171.6, -170.5, -184.3, 1e15,
    1e100, 1e300, -1e5 - 0.1, 31.045240348269886,
])  # fmt: skip
EXTREME = np.array(
    [1e-300, TINY, 1e-17, 0.7, 3.3, 170.2, 1e15, 1e100, 1e300, -1e-300, -3.3, -170.2]
)
few = settings(max_examples=20, deadline=None, derandomize=True)


@pytest.mark.parametrize("name", UNARY)
def test_unary_at_hard_places(name):
    off, place = worst(evaluated(getattr(T, name), HARD), UNARY[name], HARD)
    assert off <= 3, place


@few
@pytest.mark.parametrize("name", UNARY)
@given(xs=st.lists(ANY, min_size=10, max_size=10))
def test_unary(name, xs):
    x = np.array(xs)
    off, place = worst(evaluated(getattr(T, name), x), UNARY[name], x)
    assert off <= 3, place


@pytest.mark.parametrize("name", BINARY)
def test_binary_at_hard_places(name):
    x, y = (v.ravel() for v in np.meshgrid(EXTREME, EXTREME))
    off, place = worst(evaluated(getattr(T, name), x, y), BINARY[name], x, y)
    assert off <= 3, place


@few
@pytest.mark.parametrize("name", BINARY)
@given(xs=st.lists(st.tuples(ANY, ANY), min_size=10, max_size=10))
def test_binary(name, xs):
    x, y = np.array(xs).T
    off, place = worst(evaluated(getattr(T, name), x, y), BINARY[name], x, y)
    assert off <= 3, place


@few
@pytest.mark.parametrize("name", BINARY)
@given(xs=st.lists(st.tuples(ANY, ANY), min_size=10, max_size=10))
def test_binary_of_numbers_of_like_size(name, xs):
    """x and x (1 + small), or x and -x (1 + small), whose sums and differences cancel."""
    x, e = np.array(xs).T
    y = x * (1 + np.clip(e, -3, 3) * 1e-9)
    for other in (y, -y):
        off, place = worst(evaluated(getattr(T, name), x, other), BINARY[name], x, other)
        assert off <= 3, place


DERIVATIVES = {
    "gamma": [lambda x: UNARY["gamma"](x) * mpmath.digamma(x)],
    "gammaln": [mpmath.digamma],
    "psi": [tri_gamma],
    "gamma_ratio": [
        lambda x, y: ratio(x, y) * mpmath.digamma(x),
        lambda x, y: -ratio(x, y) * mpmath.digamma(y),
    ],
    "poch": [
        lambda x, h: ratio(x + h, x) * (mpmath.digamma(x + h) - mpmath.digamma(x)),
        lambda x, h: ratio(x + h, x) * mpmath.digamma(x + h),
    ],
    "beta": [
        lambda a, b: BINARY["beta"](a, b) * (mpmath.digamma(a) - mpmath.digamma(a + b)),
        lambda a, b: BINARY["beta"](a, b) * (mpmath.digamma(b) - mpmath.digamma(a + b)),
    ],
    "digamma_increment": [
        lambda x, h: tri_gamma(x + h) - tri_gamma(x),
        lambda x, h: tri_gamma(x + h),
    ],
    "betaln": [
        lambda a, b: mpmath.digamma(a) - mpmath.digamma(a + b),
        lambda a, b: mpmath.digamma(b) - mpmath.digamma(a + b),
    ],
}


@settings(max_examples=15, deadline=None, derandomize=True)
@pytest.mark.parametrize("name", [n for n in DERIVATIVES if n != "digamma_increment"])
@given(xs=st.lists(st.tuples(ANY, ANY), min_size=10, max_size=10))
def test_derivatives(name, xs):
    rules = DERIVATIVES[name]
    columns = np.array(xs).T[: len(rules)]
    for i, rule in enumerate(rules):
        # Where the function itself is no normal number the factor has no digits.
        kept = [
            k
            for k, row in enumerate(columns.T)
            if name not in BINARY | UNARY or TINY < abs(_value(name, row)) < HUGE
        ]
        chosen = columns[:, kept]
        got = evaluated(slope(name, i), *chosen)
        off, place = worst(got, rule, *chosen)
        assert off <= 5, place


@settings(max_examples=15, deadline=None, derandomize=True)
@given(xs=st.lists(st.tuples(POSITIVE, POSITIVE), min_size=10, max_size=10))
def test_derivatives_of_derivatives(xs):
    """The derivative of digamma_increment, on which the gradients of beta and poch are built."""
    x, h = np.array(xs).T
    for i, rule in enumerate(DERIVATIVES["digamma_increment"]):
        got = evaluated(slope("digamma_increment", i), x, h)
        off, place = worst(got, rule, x, h)
        assert off <= 4, place


def test_differences_and_logarithms_become_stable_forms():
    x, h = np.array([1e5 + 0.1, 1e-5, 300.0, 7.3]), np.array([0.5, 30.0, 1e-12, 1e3])
    betaln, log_poch = BINARY["betaln"], BINARY["log_poch"]
    for build, rule in (
        (lambda x, y: T.gammaln(x) + T.gammaln(y) - T.gammaln(x + y), betaln),
        (lambda x, y: 3 * T.gammaln(x + y) - 3 * T.gammaln(x), lambda *v: 3 * log_poch(*v)),
        (lambda x, y: T.gammaln(x) - T.gammaln(x + y), lambda *v: -log_poch(*v)),
        (lambda x, y: T.psi(x + y) - T.psi(x), BINARY["digamma_increment"]),
        (lambda x, y: T.log(T.gamma(x) * T.gamma(y) / T.gamma(x + y)), betaln),
        (lambda x, y: T.log(T.gamma(x) / T.gamma(y)), BINARY["log_gamma_ratio"]),
        (lambda x, y: T.log(T.gamma(x) / T.gamma(x + y)), lambda *v: -log_poch(*v)),
    ):
        off, place = worst(evaluated(build, x, h), rule, x, h)
        assert off <= 3, place


def polygamma(n, x):
    """Over both signs of x + k; mpmath's is for positive numbers."""
    n, sign = int(n), (-1) ** int(n + 1)
    # mpmath's errors of Hurwitz's function are absolute.
    with mpmath.workdps(60 + int((n + 1) * (2 + abs(np.log10(abs(float(x))))))):
        parts = mpmath.zeta(n + 1, x)
        if x < 0:
            left = -x - mpmath.floor(-x)
            far = mpmath.zeta(n + 1, left) - mpmath.zeta(n + 1, 1 - x)
            parts = mpmath.zeta(n + 1, 1 - left) + sign * far
        return sign * mpmath.factorial(n) * parts


@few
@given(
    n=st.integers(2, 180),
    xs=st.lists(st.one_of(magnitude(-5, 5), st.floats(0.1, 300)), min_size=4, max_size=4),
)
def test_derivatives_of_psi(n, xs):
    for order in (n, 2 + n % 7):
        got = evaluated(lambda x, order=order: T.polygamma(order, x), np.array(xs))
        off, place = worst(got, lambda x, order=order: polygamma(order, x), xs)
        assert off <= 3, (order, place)


def test_derivatives_of_psi_left_of_zero():
    x = np.array([-0.1, -0.5, -1.25, -3.5, -10.5, -10.75, -100.5, -19.513778288034487])
    for n in (2, 3, 4, 5, 20, 99, 160):
        got = evaluated(lambda x, n=n: T.polygamma(n, x), x)
        off, place = worst(got, lambda x, n=n: polygamma(n, x), x)
        assert off <= 5, (n, place)
    at = np.array([0.0, -0.0, -2.0, np.inf, -np.inf, np.nan])
    wanted = {
        0: [-np.inf, np.inf, np.nan, np.inf, np.nan, np.nan],
        2: [-np.inf, np.inf, np.nan, 0, np.nan, np.nan],
        3: [np.inf, np.inf, np.inf, 0, np.nan, np.nan],
        -1: [np.nan] * 6, 1.5: [np.nan] * 6,
    }  # fmt: skip
    for n, expected in wanted.items():
        got = evaluated(lambda x, n=n: T.polygamma(n, x), at)
        np.testing.assert_array_equal(got, expected, err_msg=str(n))


def _value(name, row):
    return float(exact((BINARY | UNARY)[name], *row))


def test_expressions_become_stable_forms():
    x, h = np.array([1e5 + 0.1, 1e-5, 300.0, 7.3]), np.array([0.5, 30.0, 1e-12, 1e3])
    up = evaluated(lambda x, h: T.gamma(x + h) / T.gamma(x), x, h)
    assert worst(up, BINARY["poch"], x, h)[0] <= 3
    down = evaluated(lambda x, h: T.gamma(x) / T.gamma(x + h), x, h)
    assert worst(down, lambda x, h: ratio(x, x + h), x, h)[0] <= 3
    both = evaluated(lambda x, y: T.gamma(x + 1) / T.gamma(y + 1), x, x[::-1].copy())
    assert worst(both, lambda x, y: ratio(x + 1, y + 1), x, x[::-1])[0] <= 3
    logarithm = evaluated(lambda x: T.log(T.gamma(x)), x)
    assert worst(logarithm, log_gamma, x)[0] <= 3
    assert np.isnan(evaluated(lambda x: T.log(T.gamma(x)), np.array([-0.5])))


def test_sums_whose_lower_part_is_large():
    x = np.array([12345.25, 1e6 + 0.25, 299.5, 0.25, 2.0**51 + 0.5])
    h = np.array([-1e20, -1e25, -1e17, -1e17, -1e40])
    off, place = worst(evaluated(T.digamma_increment, x, h), BINARY["digamma_increment"], x, h)
    assert off <= 3, place
    increment = ROWS["tri_gamma_increment"]()
    off, place = worst(increment.function(x, h), lambda x, h: tri_gamma(x + h) - tri_gamma(x), x, h)
    assert off <= 4, place


def test_special_values():
    at = [0.0, -0.0, -1.0, -3.0, np.inf, -np.inf, np.nan, 180.0, 1e306]
    for name in ("gamma", "gammaln", "psi"):
        got = evaluated(getattr(T, name), np.array(at))
        np.testing.assert_array_equal(got, getattr(scipy.special, name)(at), err_msg=name)


def test_ratios_at_poles():
    """As gamma is infinite there; at two poles the limit for a fixed difference."""
    x, y = (
        np.array([2.5, -3.0, -3.0, 0.0, 2.0, np.inf]),
        np.array([-2.0, -5.0, -4.0, 0.0, np.inf, 3]),
    )
    got = evaluated(T.gamma_ratio, x, y)
    np.testing.assert_array_equal(got, [0, 20, -4, 1, 0, np.inf])
    np.testing.assert_array_equal(
        evaluated(T.poch, np.array([-3.0, -3.0, 4.0]), np.array([2.0, 5.0, 3.0])), [6, 0, 120]
    )
    np.testing.assert_array_equal(
        evaluated(T.beta, np.array([-3.0, -1.5, 2.0, 3.0]), np.array([2.0, 0.5, 0.0, np.inf])),
        [float(scipy.special.beta(-3, 2)), 0, np.inf, 0],
    )


@pytest.mark.parametrize("name", ["log_of_gamma", "digamma_of_sum", "inverse_poch"])
def test_rows_without_a_name(name):
    exact_of = {
        "log_of_gamma": lambda x: log_gamma(x) if sign(x) > 0 else mpmath.nan,
        "digamma_of_sum": lambda x, h: mpmath.digamma(x + h),
        "inverse_poch": lambda x, h: ratio(x, x + h),
    }[name]
    row = ROWS[name]()
    columns = [v.ravel() for v in np.meshgrid(HARD, EXTREME)][: row.arity]
    off, place = worst(row.function(*columns), exact_of, *columns)
    assert off <= 3, place


def test_ratios_next_to_roots_of_psi():
    """There the logarithm is of the order of the difference squared."""
    roots = np.array([1.4616321449683622, -0.5040830082644554, -1.5734984731623904])
    y = np.repeat(roots, 30)
    x = y * (1 + np.tile(10.0 ** np.linspace(-14, -4, 30), 3))
    off, place = worst(evaluated(T.log_gamma_ratio, x, y), BINARY["log_gamma_ratio"], x, y)
    assert off <= 5, place


@pytest.mark.parametrize(
    ("k", "x"),
    [(0.3, 0.1), (2.5, 2.0), (2.5, 30.0), (80.0, 79.0), (80.0, 95.0), (2e4, 2.01e4), (1e5, 9.99e4),
     (1e-6, 0.5), (1.0, 1.0)],
)  # fmt: skip
def test_slope_of_gammainc_in_its_shape(k, x):
    """Where each of the three formulas is used, to 13 digits."""
    with mpmath.workdps(60):
        step = mpmath.mpf(k) * mpmath.mpf(10) ** -20
        above, below = (mpmath.gammainc(k + s, 0, x, regularized=True) for s in (step, -step))
        truth = (above - below) / (2 * step)
    found = ROWS["gammainc_der"]().function(np.array(k), np.array(x))
    assert float(abs(found - truth) / abs(truth)) < 1e-12


def test_whole_numbers_are_exact():
    n = np.arange(1, 24)
    assert evaluated(T.gamma, n.astype(float)).tolist() == [
        float(mpmath.factorial(int(k) - 1)) for k in n
    ]
    assert evaluated(T.poch, n * 1.0, 3.0 + 0 * n).tolist() == [k * (k + 1) * (k + 2) for k in n]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_shapes_and_dtypes(name):
    function = getattr(T, name)
    arity = function.op.scalar.arity
    x, y = np.array([[0.3, 1.7, 4.2]]), np.array([[0.6], [2.2]])
    table = (UNARY | BINARY)[name]
    for dtype, rtol in (("float64", 1e-15), ("float32", 1e-7), ("float16", 1e-3)):
        xs = [v.astype(dtype) for v in (x, y)[:arity]]
        wanted = np.frompyfunc(lambda *v: float(exact(table, *v)), arity, 1)(*xs).astype(dtype)
        check(function, *xs, expected=wanted, rtol=rtol, grad=dtype == "float64", tolerance=1e-4)
    for strange in (np.zeros((0, 3)), np.array(1.5), np.arange(1.0, 9.0)[::-2] / 4):
        xs = [strange] * arity
        wanted = np.frompyfunc(lambda *v: float(exact(table, *v)), arity, 1)(*xs)
        check(function, *xs, expected=np.asarray(wanted, "float64"), rtol=1e-14, tolerance=1e-4)
    whole = function(*[T.constant(np.array([2, 3], "int32"))] * arity).eval()
    assert whole.dtype == "float64"
    with pytest.raises(symcomp.errors.DTypeError, match="real numbers only"):
        function(*[T.zvector("x")] * arity)
