"""Functions without the first terms of their series: to 4 units in the last place, with their
derivatives, on both sides of the bound below which the series is summed.
"""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings

import symcomp.tensor as T
from symcomp.errors import SymcompError
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.series_remainder import (
    COEFFICIENTS,
    FUNCTIONS,
    MOST_TERMS,
    series_remainder,
)
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE, beside, check_values, lists

inf, nan = np.inf, np.nan
EXACT = {
    "exp": mp.exp, "sin": mp.sin, "cos": mp.cos, "cosh": mp.cosh, "sinh": mp.sinh, "tan": mp.tan,
    "tanh": mp.tanh, "log1p": lambda x: mp.log(1 + x), "arctan": mp.atan, "arctanh": mp.atanh,
    "arcsinh": mp.asinh, "arcsin": mp.asin, "erf": mp.erf,
}  # fmt: skip
INSIDE = ("arctanh", "arcsin")
# Arguments as small as 1e-310 need many digits; derivatives are not taken that near to 0.
DIGITS, DIGITS_OF_DERIVATIVES = 700, 200
# The bounds of the series are multiples of 1/2 and 1/4.
NEAR = [5e-324, 1e-310, 1e-100, 1e-17, 1e-8, 1e-3, 0.2, *beside(0.25, 0.5), 0.7, 0.96]
FAR = [*beside(1.5, 2.0, 2.5, 3.0), 4.0, 9.3, 36.7, 300.0, 1e4, 1e16, 1e150, 1e300]
ORDERS = [(1, 1, 0), (1, 1, 2), (2, 0, 0), (2, 1, 1), (3, 1, 0), (3, 3, 0), (3, 3, 1), (5, 2, 0)]


def quotient(name, terms, power):
    """Return (f(x) - the first terms of its series) / x^power as a function of mpmath."""
    coefficients = mp.taylor(EXACT[name], 0, terms - 1)

    def value(x):
        if not x:
            return mp.taylor(EXACT[name], 0, terms)[terms] if power == terms else mp.mpf(0)
        return (EXACT[name](x) - sum(c * x**k for k, c in enumerate(coefficients))) / x**power

    return value


def derivative(name, terms, power, n):
    f = quotient(name, terms, power)
    if n == 0:
        return f
    # A step far below the spacing of the points, and above the last of the digits.
    step = mp.mpf(10) ** (-DIGITS_OF_DERIVATIVES // (2 * n + 4))
    return lambda x: mp.diff(f, x, n, h=min(abs(x), 1) * step)


def points_of(name):
    far = [] if name in INSIDE else FAR
    return np.array([*NEAR, *(-x for x in NEAR), *far, *(-x for x in far if name != "log1p")])


def representable(exact, points, digits):
    """Return the points where the value is a normal number."""
    with mp.workdps(digits):
        sizes = [abs(exact(mp.mpf(x))) for x in points]
    return np.array([x for x, z in zip(points, sizes, strict=True) if 1e-300 < z < 1e300])


@pytest.mark.parametrize("orders", ORDERS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_chosen_points(name, orders):
    terms, power, n = orders
    row = ROWS["series_remainder"](name, terms, power, n)
    digits = DIGITS_OF_DERIVATIVES if n else DIGITS
    with mp.workdps(digits):
        exact = derivative(name, terms, power, n)
    points = points_of(name)
    if n:
        points = points[np.abs(points) > 1e-20]
    check_values(row, exact, representable(exact, points, digits), digits=digits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_random_points(name):
    with mp.workdps(DIGITS):
        exact = quotient(name, 3, 3)

    @settings(deadline=None, max_examples=10)
    @given(lists((1e-9, 0.96), (-0.96, -1e-9)))
    def holds(points):
        row = ROWS["series_remainder"](name, 3, 3, 0)
        check_values(row, exact, points, digits=DIGITS, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients(name):
    exact = [float(c) for c in mp.taylor(EXACT[name], 0, MOST_TERMS - 1)]
    np.testing.assert_allclose(COEFFICIENTS[name], exact, rtol=1e-15, atol=1e-14)


@pytest.mark.parametrize("terms", [2, 3, 4, 6])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes(name, terms):
    """The derivatives that other functions compute, and those of the row."""
    x = T.dvector("x")
    points = np.array([1e-5, -0.3, 0.51, -0.96])
    slope = T.grad(series_remainder(name, terms, 0, x).sum(), x).eval({x: points})
    with mp.workdps(DIGITS_OF_DERIVATIVES):
        exact = derivative(name, terms, 0, 1)
        wrong = [units_off(z, exact(mp.mpf(p))) for z, p in zip(slope, points, strict=True)]
    assert max(wrong) <= 4


LIMITS = [
    (("exp", 2, 0, 0), [(0, 0), (inf, nan), (-inf, inf), (nan, nan)]),
    (("exp", 1, 1, 0), [(0, 1), (inf, nan), (-inf, 0), (1e4, inf), (12000.0, inf)]),
    (("exp", 1, 1, 1), [(0, 0.5), (-inf, 0), (12000.0, inf)]),
    (("sin", 3, 3, 0), [(0, -1 / 6), (inf, nan)]),
    (("sinh", 3, 3, 0), [(0, 1 / 6), (-12000.0, inf)]),
    (("sinh", 1, 0, 1), [(0, 1), (-12000.0, inf)]),
    (("tanh", 3, 0, 0), [(0, 0), (inf, -inf), (-inf, inf)]),
    (("log1p", 2, 0, 0), [(0, 0), (-1, -inf), (inf, nan), (-2, nan), (nan, nan)]),
    (("log1p", 2, 2, 0), [(0, -0.5), (-1, -inf), (-2, nan)]),
    (("arctan", 1, 1, 0), [(0, 1), (inf, 0)]),
    (("arcsin", 3, 3, 0), [(0, 1 / 6), (2, nan)]),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "pairs"), LIMITS, ids=str)
def test_limits(parameters, pairs):
    points, wanted = (np.array(column, float) for column in zip(*pairs, strict=True))
    got = Elemwise(ROWS["series_remainder"](*parameters)).perform(points)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes_shapes_and_second_derivatives(name):
    x = np.array([[0.41, -0.8, 0.45], [-0.7, 0.62, 0.5]])
    for terms, power in ((2, 0), (3, 2)):
        function = Elemwise(ROWS["series_remainder"](name, terms, power, 0))
        check(function, x, expected=function.perform)
        check(function, x[::-1, ::-2], expected=function.perform)
        check(function, x[:, :0], expected=function.perform, grad=False)
        for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32"):
            check(function, np.array([0, 1], dtype), expected=function.perform, grad=False)


@pytest.mark.parametrize(
    "parameters",
    [("gamma", 1, 1, 0), ("exp", 0, 0, 0), ("exp", 1, 2, 0), ("exp", 9, 0, 0), ("exp", 1, 1, 21),
     ("exp", True, 0, 0)],
    ids=str,
)  # fmt: skip
def test_errors(parameters):
    with pytest.raises(SymcompError, match="the function must be one of exp, sin"):
        ROWS["series_remainder"](*parameters)
