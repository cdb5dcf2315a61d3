"""Inverses of distribution functions, Owen's T and 2F1: values and slopes against mpmath."""

import mpmath
import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.ops.numerics.hypergeometric import hyp2f1_slope
from symcomp.ops.numerics.incomplete_beta import betainc_da, betainc_db
from symcomp.tests.harness import check

DIGITS = 60


def upper(k, x):
    return mpmath.gammainc(k, x, regularized=True)


def lower(k, x):
    return mpmath.gammainc(k, 0, x, regularized=True)


def beta_below(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def owens_t(h, a):
    density = lambda x: mpmath.exp(-(h**2) * (1 + x**2) / 2) / (1 + x**2)  # noqa: E731
    return mpmath.quad(density, [0, a]) / (2 * mpmath.pi)


K = np.array([0.3, 1.0, 2.5, 40.0])
P = np.array([0.9, 0.5, 0.02, 0.3])
A, B = np.array([0.4, 2.0, 7.5, 30.0]), np.array([1.5, 2.0, 0.6, 50.0])
INVERSES = {
    "gammaincinv": (lower, K, P),
    "gammainccinv": (upper, K, P),
    "betaincinv": (beta_below, A, B, P),
    "ndtri_exp": (lambda z: mpmath.log(mpmath.ncdf(z)), np.array([-1e-3, -0.4, -3.0, -2000.0])),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverses(name):
    """The function of the result is the argument, up to what one rounding of the result changes."""
    function, *columns = INVERSES[name]

    def exact(*given):
        rows = zip(*(v.tolist() for v in given), strict=True)
        return np.array([root(function, *row) for row in rows])

    check(getattr(T, name), *columns, expected=exact, rtol=1e-11, tolerance=1e-4)


def root(function, *row):
    """Find the x with function(.., x) = the last of the numbers."""
    *parameters, value = map(mpmath.mpf, row)
    name = {lower: "gammaincinv", upper: "gammainccinv", beta_below: "betaincinv"}.get(function)
    start = getattr(T, name or "ndtri_exp")(*map(T.constant, row)).eval()
    with mpmath.workdps(30):
        found = mpmath.findroot(lambda x: function(*parameters, x) - value, float(start))
    return float(found)


def test_owens_t():
    h, a = np.array([0.0, 0.7, -1.5, 3.0]), np.array([0.5, -2.0, 0.3, 1.0])
    wanted = [float(owens_t(mpmath.mpf(x), mpmath.mpf(y))) for x, y in zip(h, a, strict=True)]
    check(T.owens_t, h, a, expected=np.array(wanted), rtol=1e-13, tolerance=1e-5)


def test_scaled_bessel_functions():
    x = np.array([-2.0, 0.3, 5.0, 700.0])
    for name, order in (("i0e", 0), ("i1e", 1)):
        wanted = [float(mpmath.besseli(order, v) * mpmath.exp(-abs(v))) for v in x]
        check(getattr(T, name), x, expected=np.array(wanted), rtol=1e-14, tolerance=1e-4)


HYPER = [
    np.array(column)
    for column in zip(
        (0.5, 1.0, 1.5, 0.3),
        (1.0, 2.2, 3.3, -0.4),
        (-1.3, -2.0, 1.7, 0.9),
        (4.0, 0.7, 2.5, -3.0),
        strict=True,
    )
]


def test_hyp2f1():
    exact = lambda *ps: np.array(  # noqa: E731
        [float(mpmath.hyp2f1(*row)) for row in zip(*(p.tolist() for p in ps), strict=True)]
    )
    check(T.hyp2f1, *HYPER, expected=exact, rtol=1e-13, tolerance=1e-4)


def slope(function, parameters, wrt):
    """Return the derivative of a function in one of its parameters."""
    with mpmath.workdps(DIGITS):
        step = mpmath.mpf(10) ** -(DIGITS // 3)
        ends = []
        for sign in (1, -1):
            moved = [mpmath.mpf(p) for p in parameters]
            moved[wrt] += sign * step
            ends.append(function(*moved))
        return float((ends[0] - ends[1]) / (2 * step))


BETA_POINTS = [
    (a, b, x) for a in (0.01, 3.0, 500.0) for b in (0.02, 2.5, 900.0) for x in (1e-8, 0.3, 0.9)
]


@pytest.mark.parametrize("wrt", [0, 1])
def test_slopes_of_betainc_in_its_shapes(wrt):
    a, b, x = (np.array(column) for column in zip(*BETA_POINTS, strict=True))
    got = (betainc_da, betainc_db)[wrt](a, b, x)
    for z, point in zip(got, BETA_POINTS, strict=True):
        want = slope(beta_below, point, wrt)
        # Beyond, finite differences of a number next to 1 have no digits left.
        assert z == pytest.approx(want, rel=1e-11, abs=1e-25)


def test_slopes_of_betainc_at_the_ends():
    a, b, x = np.array([2.0, 2.0, 2.0, -1.0]), np.full(4, 3.0), np.array([0.0, 1.0, np.nan, 0.5])
    np.testing.assert_array_equal(betainc_da(a, b, x), [0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(betainc_db(a, b, x), [0, 0, np.nan, np.nan])
    check(T.betainc, A, B, P, expected=lambda a, b, x: T.betainc(a, b, x).eval(), tolerance=1e-4)


@pytest.mark.parametrize("wrt", [0, 1, 2])
def test_slopes_of_hyp2f1_in_its_parameters(wrt):
    points = [
        (0.5, 1.0, 1.5, 0.1), (-1.3, 2.2, 3.3, 0.95), (4.0, -2.0, -0.7, -0.4),
        (4.0, 1.0, 3.3, -30.0), (0.5, -1.3, 2.5, 1.0), (0.5, 2.0, 2.5, 0.0),
    ]  # fmt: skip
    got = hyp2f1_slope(*(np.array(column) for column in zip(*points, strict=True)), wrt)
    for z, point in zip(got, points, strict=True):
        assert z == pytest.approx(slope(mpmath.hyp2f1, point, wrt), rel=1e-11)
    outside = hyp2f1_slope(*(np.array([v]) for v in (1.0, 1.0, 2.0, 1.5)), wrt)
    assert np.isnan(outside).all()
