"""Rows of quotients with the square of a hypotenuse, and of powers less 1, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings

from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.tests.harness import check
from symcomp.tests.ops.accuracy import CLAIM_ANYWHERE, check_values, lists, values_at

FAST = settings(deadline=None, max_examples=20)
inf, nan = np.inf, np.nan
LEGS = [
    (3e-150, 4e-150), (1e-20, 1.3e-9), (1e8 + 1, 1e8), (0.3, -0.4), (12.3, 710.4), (710.4, 12.3),
    (3e155, 4.7e154), (1.1e300, 1.3e300), (1.7e-300, 1.3), (2.3e300, 0.7), (1.0, 1.0),
]  # fmt: skip
RANGES = [(1e-100, 1e100), (0.5, 2), (-2, -0.5)]
# Name of the row: the exact function, points, ranges to draw from.
ROWS_OF_LEGS = {
    "over_squares": lambda x, y: x / (x**2 + y**2),
    "product_of_legs": lambda x, y: x * y / (x**2 + y**2),
    "square_contrast": lambda x, y: (x**2 - y**2) / (x**2 + y**2),
    "hypot_over": lambda x, y: mp.sqrt(x**2 + y**2) / x,
    "height": lambda x, y: x * y / mp.sqrt(x**2 + y**2),
    "parallel": lambda x, y: 1 / (1 / x + 1 / y),
    "log1p_square_ratio": lambda x, y: mp.log1p(x**2 / y**2),
    "legs_over_square": lambda x, y: x * y**2 / (x**2 + y**2) ** 2,
}
OF_ONE = {
    "half_tangent": (
        lambda x: x / (1 + mp.sqrt(1 + x**2)), [3e-300, -1e-9, 0.3, -1.0, 12.3, 1e8, 1.7e300]
    ),
    "log1p_drop": (
        lambda x: mp.log1p(x) / x - 1 / (1 + x),
        [3e-300, -1e-9, 0.3, -0.59, -0.999999, 2.9, 3.1, 1e8, 1.7e300],
    ),
    "odds_share": (lambda x: x / (1 + x), [3e-300, -1e-9, 0.3, -0.999999, -1.2, 1e8, 1.7e308]),
}
# Where x^(y - 1) leaves the range, or its exponent is rounded.
SLOPES = [(7e-310, 1.3e-290), (3e-300, 1e-20), (0.3, -1.2), (2.3e300, 0.7), (1.7e200, 1e-170)]
POWERS = [(2.3e300, 0.7), (1.7e-300, 1.3), (1.0000001, 3.0), (0.3, -1.2), (1.0, 5.0), (7.0, 1e-200)]


@pytest.mark.parametrize("name", ROWS_OF_LEGS)
def test_quotients_of_legs(name):
    exact = ROWS_OF_LEGS[name]
    check_values(name, exact, *zip(*LEGS, strict=True), digits=700)

    @FAST
    @given(lists(*RANGES), lists(*RANGES))
    def holds(xs, ys):
        n = min(len(xs), len(ys))
        check_values(name, exact, xs[:n], ys[:n], digits=700, claim=CLAIM_ANYWHERE)

    holds()


def test_slopes_of_powers():
    columns = zip(*SLOPES, strict=True)
    check_values("power_slope", lambda x, y: y * x ** (y - 1), *columns, digits=400)


def test_powers_less_one():
    def exact(x, y):
        return mp.expm1(y * mp.log(x))

    check_values("powm1", exact, *zip(*POWERS, strict=True), digits=60)

    @FAST
    @given(lists((1e-200, 1e200), (0.5, 2)), lists((-1.5, 1.5)))
    def holds(xs, ys):
        n = min(len(xs), len(ys))
        check_values("powm1", exact, xs[:n], ys[:n], digits=60, claim=CLAIM_ANYWHERE)

    holds()


@pytest.mark.parametrize("name", OF_ONE)
def test_quotients_of_one_number(name):
    exact, points = OF_ONE[name]
    check_values(name, exact, points, digits=700)

    @FAST
    @given(lists(*RANGES))
    def holds(xs):
        check_values(name, exact, xs, digits=700, claim=CLAIM_ANYWHERE)

    holds()
    x = np.array([[0.1, -0.3, 0.45], [0.8, 0.62, -0.2]])
    function = Elemwise(ROWS[name]())
    for a in (x, x[:, ::2], np.zeros((2, 0))):
        check(function, a, expected=lambda v: function.perform(v), grad=a.size > 0)


def test_limits():
    points = [(0, 0), (inf, 1), (1, inf), (nan, 1)]
    wanted = {
        "over_squares": [nan, nan, 0, nan], "product_of_legs": [nan, nan, nan, nan],
        "square_contrast": [nan, nan, nan, nan], "height": [0, nan, nan, nan],
        "hypot_over": [nan, 1, inf, nan],
        "parallel": [0, 1, 1, nan], "log1p_square_ratio": [nan, inf, 0, nan],
    }  # fmt: skip
    for name, values in wanted.items():
        np.testing.assert_array_equal(values_at(name, *zip(*points, strict=True)), values)
    np.testing.assert_array_equal(values_at("odds_share", [inf, -inf, nan, 0]), [1, 1, nan, 0])
    np.testing.assert_array_equal(values_at("log1p_drop", [0, -2, nan]), [0, nan, nan])
    np.testing.assert_array_equal(values_at("half_tangent", [inf, nan, 0]), [nan, nan, 0])
    points = [(0, 2), (0, -2), (inf, 1), (-1, 2), (nan, 1), (1, inf)]
    got = values_at("powm1", *zip(*points, strict=True))
    np.testing.assert_array_equal(got, [-1, inf, inf, nan, nan, nan])


@pytest.mark.parametrize("name", [*ROWS_OF_LEGS, "powm1"])
def test_derivatives_dtypes_and_shapes(name):
    function = Elemwise(ROWS[name]())
    x = np.array([[0.1, 0.3, 0.45], [0.8, 0.62, 0.2]])
    y = x[::-1] + 0.05
    for a, b in ((x, y), (x[::-1, ::-2], y[:, ::2])):
        check(function, a, b, expected=lambda *v: function.perform(*v))
    empty = np.zeros((2, 0))
    check(function, empty, empty, expected=lambda *v: function.perform(*v), grad=False)
