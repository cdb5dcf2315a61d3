"""Arithmetic that keeps the rounding errors: the errors are exact, and so are functions of them."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcomp.ops.numerics.exact import in_double, replace, two_product, two_sum
from symcomp.tests.exact import exactly, units_off

FAST = settings(deadline=None, max_examples=100)
ANY = st.floats(-1e300, 1e300) | st.floats(-4, 4)
# Between the square roots of the range, with room for the lowest digits.
MODERATE = st.floats(1e-130, 1e150).flatmap(lambda v: st.sampled_from([v, -v])) | st.just(0.0)
DTYPES = ("float32", "float64", "longdouble")
SOME = [1.0, 1 / 3, -0.1, 1e10, 3e-9, 7.0, np.pi]


def fraction(x):
    numerator, denominator = x.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


@FAST
@given(ANY, ANY)
def test_two_sum_is_exact(a, b):
    s, e = two_sum(np.float64(a), np.float64(b))
    assert s == a + b and fraction(s) + fraction(e.item()) == fraction(a) + fraction(b)


@FAST
@given(MODERATE, MODERATE)
def test_two_product_is_exact(a, b):
    p, e = two_product(np.float64(a), np.float64(b))
    assert p == a * b and fraction(p) + fraction(e.item()) == fraction(a) * fraction(b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_exact(dtype):
    a = np.array(SOME, dtype)[:, None]
    b = np.array(SOME, dtype)[None, :]
    for function, combine in ((two_sum, Fraction.__add__), (two_product, Fraction.__mul__)):
        value, error = function(a, b)
        assert value.dtype == error.dtype == dtype
        for i, j in np.ndindex(value.shape):
            got = fraction(value[i, j]) + fraction(error[i, j])
            assert got == combine(fraction(a[i, 0]), fraction(b[0, j])), (function, i, j)


def test_errors_of_what_is_not_finite_are_0():
    x = np.array([np.inf, -np.inf, np.nan, 1e308, np.inf])
    y = np.array([1.0, 1.0, 1.0, 1e308, -np.inf])
    with np.errstate(all="ignore"):
        for function in (two_sum, two_product):
            _, error = function(x, y)
            np.testing.assert_array_equal(error, np.zeros(5))


def test_dtypes_of_functions_in_double():
    """The result has the float dtype of the arguments, integers as for np.exp."""
    seen = []

    def identity(x):
        seen.append(x.dtype.name)
        return x

    run = in_double(identity)
    for dtype, wanted in [
        ("bool", "float16"), ("int8", "float16"), ("int64", "float64"), ("uint16", "float32"),
        ("float16", "float16"), ("float32", "float32"), ("float64", "float64"),
    ]:  # fmt: skip
        x = np.array([[0, 1]], dtype)
        got = run(x)
        assert got.dtype == wanted and got.shape == x.shape
        np.testing.assert_array_equal(got, x)
    assert {*seen} == {"float64"}


def test_replacing_some_elements():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    z = x + y
    replace(z, x > 1, np.multiply, x, y)
    assert z.tolist() == [5.0, 10.0, 18.0]
    replace(z, x > 9, None, x, y)
    assert z.tolist() == [5.0, 10.0, 18.0]


def test_units_off():
    """The measure itself: against neighbours of known floats, zeros, subnormals, infinities."""
    one = exactly(1.0)
    assert units_off(np.float64(1.0), one) == 0
    assert units_off(np.nextafter(1.0, 2), one) == 1
    assert units_off(np.nextafter(1.0, 0), one) == 0.5
    assert units_off(np.float32(1.0) + np.finfo("float32").eps, one) == 1
    assert units_off(np.float64(5e-324), exactly(0.0)) == 1
    assert units_off(np.float64(0), exactly(5e-324)) == 1
    assert units_off(np.float64(0.0), exactly(1e-300)) > 1e15
    assert units_off(np.inf, mp.mpf(10) ** 400) == 0 and units_off(-np.inf, mp.mpf(10) ** 400) > 1e9
    assert units_off(np.float64(1e308), mp.mpf(10) ** 400) == np.inf
    assert units_off(np.nan, one) == np.inf and units_off(np.nan, mp.nan) == 0
    assert units_off(np.array([1.0, 2.0]), exactly([1.0, 1.0])) == 2.0**52
