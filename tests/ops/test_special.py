"""Special functions: values against mpmath, derivatives against finite differences."""

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.harness import check

mpmath.mp.dps = 30
X = np.array([0.3, 0.9, 1.7, 2.6])
UNIT = np.array([-0.8, -0.2, 0.3, 0.9])
UNARY = {
    "erf": (mpmath.erf, X),
    "erfc": (mpmath.erfc, X),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), X),
    "erfinv": (mpmath.erfinv, UNIT),
    "erfcinv": (lambda x: mpmath.erfinv(1 - x), X / 2),
    "gamma": (mpmath.gamma, X),
    "gammaln": (mpmath.loggamma, X),
    "psi": (mpmath.digamma, X),
    "tri_gamma": (lambda x: mpmath.polygamma(1, x), X),
    "j0": (lambda x: mpmath.besselj(0, x), X),
    "j1": (lambda x: mpmath.besselj(1, x), X),
    "i0": (lambda x: mpmath.besseli(0, x), X),
    "i1": (lambda x: mpmath.besseli(1, x), X),
    "ndtr": (mpmath.ncdf, X),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), -X * 5),
    "ndtri": (lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), X / 3),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    exact, points = UNARY[name]
    wanted = np.array([float(exact(mpmath.mpf(float(p)))) for p in points])
    check(getattr(T, name), points, expected=wanted, rtol=1e-12, tolerance=1e-4)


ORDERED = {
    "jv": mpmath.besselj,
    "iv": mpmath.besseli,
    "kv": mpmath.besselk,
    "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-x),
    "kve": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
}


@pytest.mark.parametrize("name", ORDERED)
def test_bessel_of_any_order(name):
    wanted = np.array([float(ORDERED[name](1.5, mpmath.mpf(float(p)))) for p in X])
    check(lambda x: getattr(T, name)(1.5, x), X, expected=wanted, rtol=1e-11)
    v = T.dscalar()
    with pytest.raises(symcomp.NullTypeGradError, match="order"):
        symcomp.grad(getattr(T, name)(v, 1.0), v)


PAIRS = {
    "gammainc": lambda k, x: mpmath.gammainc(k, 0, x, regularized=True),
    "gammaincc": lambda k, x: mpmath.gammainc(k, x, regularized=True),
    "gammal": lambda k, x: mpmath.gammainc(k, 0, x),
    "gammau": lambda k, x: mpmath.gammainc(k, x),
    "beta": mpmath.beta,
    "betaln": lambda a, b: mpmath.log(mpmath.beta(a, b)),
    "chi2sf": lambda x, k: mpmath.gammainc(k / 2, x / 2, regularized=True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    y = X[::-1].copy()
    wanted = np.array(
        [
            float(PAIRS[name](mpmath.mpf(float(a)), mpmath.mpf(float(b))))
            for a, b in zip(X, y, strict=True)
        ]
    )
    check(getattr(T, name), X, y, expected=wanted, rtol=1e-11, tolerance=1e-4)


def test_betainc_and_polygamma():
    x = np.array([0.2, 0.5, 0.9])
    wanted = np.array(
        [float(mpmath.betainc(2, 3, 0, mpmath.mpf(float(p)), regularized=True)) for p in x]
    )
    check(lambda v: T.betainc(2.0, 3.0, v), x, expected=wanted, rtol=1e-12)
    wanted = np.array([float(mpmath.polygamma(2, mpmath.mpf(float(p)))) for p in X])
    check(lambda v: T.polygamma(2, v), X, expected=wanted, rtol=1e-12, tolerance=1e-4)


def by_shape(k, x):
    """d gammainc / dk."""
    with mpmath.workdps(100):
        k, x = mpmath.mpf(float(k)), mpmath.mpf(float(x))
        h = mpmath.mpf(10) ** -30 * max(k, mpmath.mpf(10) ** -3)

        def part(k):
            if x < k + 1:
                density = mpmath.exp(k * mpmath.log(x) - x - mpmath.loggamma(k + 1))
                return density * mpmath.hyp1f1(1, k + 1, x)
            return -mpmath.gammainc(k, x, regularized=True)

        return (part(k + h) - part(k - h)) / (2 * h)


def test_gammainc_by_its_shape():
    shapes = [1e-3, 0.2, 0.9, 1.0, 3.5, 40.0, 1e3, 9.9e3, 1.1e4, 3e4]
    k, x = np.array(
        [
            (k, x)
            for k in shapes
            for x in (0.3, 1.01, k * 0.5, k * 0.99, k * 1.0001, k * 1.02, 4 * k)
        ]
    ).T
    v = T.dvector()
    with np.errstate(all="ignore"):
        got = symcomp.grad(T.gammainc(v, x).sum(), v).eval({v: k})
        opposite = symcomp.grad(T.gammaincc(v, x).sum(), v).eval({v: k})
    np.testing.assert_allclose(got, [float(by_shape(*at)) for at in zip(k, x, strict=True)], 3e-13)
    np.testing.assert_array_equal(got, -opposite)
    # The density of a normal number, where shapes are large.
    k = np.array([1e8, 1e12, 1e200, 1e308])
    got = symcomp.grad(T.gammainc(v, k).sum(), v).eval({v: k})
    np.testing.assert_allclose(got, -1 / np.sqrt(2 * np.pi) / np.sqrt(k), 1e-8)


def test_gammainc_by_its_shape_at_zero():
    """The derivative from above is minus the exponential integral."""
    x = np.array([1e-20, 0.3, 1.0, 1.5, 20.0])
    got = ROWS["gammainc_der"]().function(np.zeros(5), x)
    np.testing.assert_allclose(got, [-float(mpmath.e1(float(p))) for p in x], 3e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes(dtype):
    x = np.array([1, 2]).astype(dtype)
    assert T.erf(T.constant(x)).eval().dtype == ("float64" if dtype == "int32" else dtype)
