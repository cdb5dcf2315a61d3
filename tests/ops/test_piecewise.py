"""Polynomials by pieces against SciPy's, with derivatives."""

import numpy as np
import pytest
from scipy.interpolate import PPoly

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(8)
BREAKS = np.array([-2.0, -0.5, 0.0, 1.5])
INSIDE = np.array([[-1.7, -0.4, 0.2], [1.4, -0.1, -0.6]])
ANYWHERE = np.array([-7.0, -2.1, -1.9, -0.3, 0.7, 1.4, 1.6, 9.0])
piecewise = T.piecewise_polynomial


def wanted(x, b, c, outside):
    """Return what SciPy computes, of x as ``outside`` says."""
    beyond = (x < b[0]) | (x > b[-1])
    z = PPoly(c, b)(np.clip(x, b[0], b[-1]) if outside == "clamp" else x)
    return np.where(beyond, 0, z) if outside == "zero" else z


@pytest.mark.parametrize("outside", ["extend", "zero", "raise", "clamp"])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_against_scipy(degree, outside):
    c = RNG.normal(size=(degree + 1, 3))
    for x in (INSIDE, INSIDE[:, ::-2], INSIDE[:0], *([] if outside == "raise" else [ANYWHERE])):
        check(
            lambda x, b: piecewise(x, b, c, outside), x, BREAKS,
            expected=wanted(x, BREAKS, c, outside), rtol=1e-12, atol=1e-13,
        )  # fmt: skip


def test_derivatives_by_coefficients():
    x, b, c = T.dvector("x"), T.dvector("b"), T.tensor("float64", shape=(3, None))
    values = ANYWHERE, BREAKS, RNG.normal(size=(3, 3))
    for outside in ("extend", "zero", "clamp"):
        z = piecewise(x, b, c, outside)
        f = symcomp.function([x, b, c], symcomp.grad(z.sum(), c))
        found, each = f(*values), np.zeros((3, 3))
        for place in np.ndindex(3, 3):  # z is linear in c
            one = np.zeros((3, 3))
            one[place] = 1
            each[place] = wanted(*values[:2], one, outside).sum()
        np.testing.assert_allclose(found, each, rtol=1e-12)


def test_breaks_nan_and_infinity():
    c = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    at = np.array([-2.0, -0.5, 0.0, 1.5, np.nan, np.inf, -np.inf])
    for outside, ends in (
        ("extend", [np.inf, -np.inf]), ("zero", [0, 0]), ("clamp", [34.5, 10]),
    ):  # fmt: skip
        expected = [10, 20, 30, 34.5, np.nan, *ends]
        found = piecewise(at, BREAKS, c, outside).eval()
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    x = T.dscalar("x")
    slope = symcomp.function([x], symcomp.grad(piecewise(x, BREAKS, c), x))
    assert [float(slope(v)) for v in BREAKS] == [1, 2, 3, 3]


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if not d.startswith("complex")])
def test_dtypes(dtype):
    x, b, c = (np.array(v).astype(dtype) for v in ([0, 1, 3], [0, 1], [[2], [1]]))
    expected = np.array([1, 3, 7] if dtype != "bool" else [1, 2, 2])
    z = piecewise(x, b, c)
    assert z.dtype == (dtype if dtype.startswith("float") else "float64")
    np.testing.assert_array_equal(z.eval(), expected)


def test_errors():
    x, b, c = T.dvector("x"), T.dvector("b"), T.tensor("float64", shape=(2, None))
    with pytest.raises(ValueError, match="outside is 'wrap'; it must be one of 'extend', 'zero'"):
        piecewise(x, b, c, "wrap")
    with pytest.raises(ShapeError, match=r"breaks is float64 matrix; a vector is needed"):
        piecewise(x, T.dmatrix(), c)
    with pytest.raises(ShapeError, match=r"coefficients is float64 vector; a matrix is needed"):
        piecewise(x, b, b)
    with pytest.raises(ShapeError, match="must have a known number of rows"):
        piecewise(x, b, T.dmatrix())
    with pytest.raises(ShapeError, match="3 breaks for 3 columns of coefficients"):
        piecewise(x, np.arange(3.0), np.ones((2, 3)))
    with pytest.raises(DTypeError, match="must be real"):
        piecewise(T.zvector(), b, c)
    with pytest.raises(AssertionError, match="one more break than columns"):
        piecewise(x, b, c).eval({x: [0.0], b: [0.0, 1.0], c: np.ones((2, 2))})
    with pytest.raises(ValueError, match="before the first break or after the last one"):
        piecewise(x, b, c, "raise").eval({x: [0.0, 2.0], b: [0.0, 1.0], c: np.ones((2, 1))})
