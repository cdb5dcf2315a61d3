"""Products whose parts leave the range of float64, for all orders of zeros, infinities and numbers
at both ends of it.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.tests.exact import units_off

VALUES = [0.0, -0.0, 1e300, 1e-300, 5e-324, np.inf, -2.0, 1.0 / 3]

# Each is computed by NumPy with the same text.
PRODUCTS = [
    "x * y * z", "x * y / z", "x / y / z", "x * x * y", "x * y * z * w", "y * (y * (x * y))",
    "x * y * z / w", "x * y / z / w", "x / y / z / w", "(x * y) * (x * y) / (z * z)",
    "x * x * y * y * z * z / (w * w)", "x * x * x / (y * y * y)", "x * x * x * y * y * y",
    "x * x * y * y / z", "sgn(x) * y * z * w", "sgn(x) * sgn(y) / z / w / z",
]  # fmt: skip


# Logarithms are in range wherever the arguments are finite and positive.
LOGARITHMS = [
    "log(x * y * z)", "log(x * y / z)", "log(x * x * y)", "log(x / y / z)", "log(-x * y / w / z)",
]  # fmt: skip


@pytest.mark.parametrize("text", LOGARITHMS)
def test_logarithms_of_products_in_all_orders_of_extremes(text):
    names = [n for n in "xyzw" if n in text]
    arguments = [T.dvector(n) for n in names]
    values = np.array(list(itertools.product([*VALUES, 0.7], repeat=len(names)))).T
    symbols = dict(zip(names, arguments, strict=True))
    f = symcomp.function(arguments, eval(text, {"log": T.log}, symbols))
    with np.errstate(all="ignore"):
        numbers = dict(zip(names, values.astype(np.longdouble), strict=True))
        expected = eval(text, {"log": np.log}, numbers).astype("float64")
    np.testing.assert_allclose(f(*values), expected, rtol=4 * 2.0**-52)


@pytest.mark.parametrize("text", PRODUCTS)
def test_products_in_all_orders_of_extremes(text):
    names = [n for n in "xyzw" if n in text]
    arguments = [T.dvector(n) for n in names]
    values = np.array(list(itertools.product(VALUES, repeat=len(names)))).T
    symbols = dict(zip(names, arguments, strict=True))
    f = symcomp.function(arguments, eval(text, {"sgn": T.sgn}, symbols))
    with np.errstate(all="ignore"):
        numbers = dict(zip(names, values.astype(np.longdouble), strict=True))
        wide = eval(text, {"sgn": np.sign}, numbers)
        expected = wide.astype("float64")
        # Each of at most 8 operations rounds once, and subnormal results once more.
        np.testing.assert_allclose(f(*values), expected, rtol=8 * 2.0**-53, atol=2 * 5e-324)
        signs = np.signbit(f(*values)) == np.signbit(expected)
    assert (signs | np.isnan(expected)).all()


@pytest.mark.parametrize("scale", [-1.0, 1.0, -0.5, 0.25])
def test_exponentials_of_squares(scale):
    """The exponent is not rounded: at 26^2 that alone would be hundreds of units."""
    rng = np.random.default_rng(3)
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(scale * x**2))
    points = rng.uniform(-26, 26, 100)
    with mp.workdps(40):
        exact = [mp.exp(mp.mpf(scale) * mp.mpf(p) ** 2) for p in points]
    assert units_off(f(points), exact) <= 2
    special = [0.0, np.inf, np.nan, 1e200, 1e-200]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f(special), np.exp(scale * np.square(special)))
