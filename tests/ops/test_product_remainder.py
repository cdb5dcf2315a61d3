"""Functions of products over powers of their factors: to 4 units in the last place from one end of
the range to the other, with their derivatives.
"""

import mpmath as mp
import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.errors import SymcompError
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.elementwise.product_remainder import product_remainder
from symcomp.ops.elementwise.series_remainder import COEFFICIENTS, FUNCTIONS
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import check_values
from symcomp.tests.ops.test_series_remainder import EXACT, INSIDE

DIGITS = 900
SLOPES = {
    "exp": mp.exp, "sin": mp.cos, "cos": lambda u: -mp.sin(u), "cosh": mp.sinh, "sinh": mp.cosh,
    "tan": lambda u: 1 / mp.cos(u) ** 2, "tanh": lambda u: 1 / mp.cosh(u) ** 2,
    "log1p": lambda u: 1 / (1 + u), "arctan": lambda u: 1 / (1 + u**2),
    "arctanh": lambda u: 1 / (1 - u**2), "arcsinh": lambda u: 1 / mp.sqrt(1 + u**2),
    "arcsin": lambda u: 1 / mp.sqrt(1 - u**2),
    "erf": lambda u: 2 / mp.sqrt(mp.pi) * mp.exp(-(u**2)),
}  # fmt: skip
# Products from 1e-350 to 1e400, on both sides of the bounds of the series, and near pi.
PAIRS = np.array(
    [
        (1.1e-200, 3.7e-150), (1e-20, 1.3e-9), (0.3, -0.8), (0.7, 0.71), (0.9, 1.05), (-1.7, 1.9),
        (2.0, 1.5707963267948966), (7.7, 36.1), (-7.7, 36.1), (1e8, 1e8 + 1), (1.3e200, 2.7e199),
        (2e150, 3e-150),
    ]
)  # fmt: skip


def truth(name, terms, numbers):
    """Return a derivative of the first order, or the function, as one of mpmath."""
    triples = list(zip(*(iter(numbers),) * 3, strict=True))

    def value(*xs):
        u = mp.fprod(x**a for x, (a, _, _) in zip(xs, triples, strict=True))
        v = mp.fprod(x ** (b + n) for x, (_, b, n) in zip(xs, triples, strict=True))
        # The second coefficient of the table has the digits of a double.
        second = SLOPES[name](mp.mpf(0)) if terms == 2 else 0
        f = EXACT[name](u) - COEFFICIENTS[name][0] - second * u
        slope = u * (SLOPES[name](u) - second)
        changed = [(a, b) for a, b, n in triples if n]
        return (sum(a * slope - b * f for a, b in changed) if changed else f) / v

    return value


def points_of(name, exact, points):
    """Return the points in the domain where the value is a normal number."""
    found = []
    for point in points:
        u = mp.fprod(map(float, point))
        outside = (name in INSIDE and abs(u) >= 1) or (name == "log1p" and u <= -1)
        if outside or (name in ("exp", "sinh", "cosh", "erf") and abs(u) > 700):
            continue
        with mp.workdps(DIGITS):
            if 1e-300 < abs(exact(*map(mp.mpf, map(float, point)))) < 1e300:
                found.append(point)
    return np.array(found).T


OF_TWO = [(1, (1, 1, 0, 1, 0, 0)), (1, (1, 1, 1, 1, 0, 0)), (2, (1, 0, 0, 1, 1, 1))]


@pytest.mark.parametrize(("terms", "numbers"), OF_TWO, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_of_two(name, terms, numbers):
    exact = truth(name, terms, numbers)
    row = ROWS["product_remainder"](name, terms, *numbers)
    check_values(row, exact, *points_of(name, exact, PAIRS), digits=DIGITS)


def test_powers_and_products_of_three():
    places = np.array([[1e-70], [0.4], [-1.3], [710.1], [1e8 + 1], [1e70]])
    for name, terms, *numbers in (
        ("sin", 1, 2, 1, 0), ("log1p", 1, 2, 1, 1), ("cos", 2, 2, 4, 0), ("tanh", 1, 4, 4, 1),
    ):  # fmt: skip
        exact, row = truth(name, terms, numbers), ROWS["product_remainder"](name, terms, *numbers)
        points = points_of(name, exact, places)
        check_values(row, exact, *points, digits=DIGITS)
    exact = truth("arctan", 1, (1, 1, 0, 1, 0, 1, 2, 3, 0))
    row = ROWS["product_remainder"]("arctan", 1, 1, 1, 0, 1, 0, 1, 2, 3, 0)
    check_values(row, exact, *np.array([(3.0, 0.7, -2.0), (1e-9, 2.0, 1e-80)]).T, digits=DIGITS)


def test_limits():
    points = [np.array([0.0, 0.0, 2.0, np.inf, np.nan]), np.array([3.0, np.inf, 0.0, 2.0, 1.0])]
    got = ROWS["product_remainder"]("tanh", 1, 1, 1, 0, 1, 0, 0).function(*points)
    np.testing.assert_array_equal(got, [3.0, np.nan, 0.0, 0.0, np.nan])
    slope = ROWS["product_remainder"]("exp", 1, 1, 1, 0, 1, 0, 1).function(*points)
    np.testing.assert_array_equal(slope[:3], [1.0, np.nan, 1.0])


@pytest.mark.parametrize("name", ["exp", "arctan"])
def test_dtypes_and_second_derivatives(name):
    x, y = np.array([[0.41, -0.8, 1.45], [-0.7, 0.62, 0.5]]), np.array([[1.3], [-0.2]])

    def function(x, y):
        return product_remainder(name, 2, [(1, 2, 0), (2, 1, 1)], [x, y])

    row = ROWS["product_remainder"](name, 2, 1, 2, 0, 2, 1, 1)
    check(function, x, y, expected=row.function)
    for dtype in ("bool", "int8", "float16", "float32"):
        numbers = np.array([0, 1, 1], dtype), np.array([1, 1, 0], dtype)
        check(function, *numbers, expected=row.function, grad=False)


@pytest.mark.parametrize(
    "parameters",
    [("gamma", 1, 1, 0, 0), ("exp", 0, 1, 0, 0), ("exp", 1, 1, 0), ("exp", 1, 8, 0, 0),
     ("exp", 1, 1, 8, 0), ("exp", 1, 1, 0, 15), ("exp", 1, 0, 1, 0), ("exp", 1, *(1, 0, 0) * 4)],
    ids=str,
)  # fmt: skip
def test_errors(parameters):
    with pytest.raises(SymcompError, match="the function must be one of exp, sin"):
        ROWS["product_remainder"](*parameters)


def test_rewritten_quotients():
    """The factors cancel, also where the product leaves the range."""
    x, y = T.dvectors("x", "y")
    a, b = np.array([1e-300, 1e200, 0.0]), np.array([3e-300, 2e200, 2.0])
    got = (T.log(1 + x * y) / x).eval({x: a, y: b})
    large = (np.log(2) + 400 * np.log(10)) / 1e200
    np.testing.assert_allclose(got, [3e-300, large, 2.0], rtol=1e-15)
