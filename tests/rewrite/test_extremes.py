"""Products whose parts leave the range of float64, for all orders of zeros, infinities and numbers
at both ends of it.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ops.nnet.unit_vector import UnitVector
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


def test_unit_vectors_between_stretched_factors():
    """The quotient of these may leave the range in each order with the elements."""
    x, y, z = T.dmatrix("x"), T.dcol("y"), T.dcol("z")
    unit = UnitVector((1,))(x)
    f = symcomp.function([x, y, z], [3 * unit * y / (z * z), unit / z])
    values = np.array([[3.0, 4.0], [0.0, 2.0]])
    y, z = np.array([[1e200], [1e-200]]), np.array([[1e150], [1e-150]])
    expected = 3 * np.array([[0.6, 0.8], [0.0, 1.0]]) * np.array([[1e-100], [1e100]])
    np.testing.assert_allclose(f(values, y, z)[0], expected, rtol=8 * 2.0**-53)


def test_standardization_divides_each_element_once():
    x = T.dmatrix("x")
    f = symcomp.function([x], x / T.sqrt(T.mean(x**2, axis=1, keepdims=True)))
    assert f.maker.trace.counts()["unit_vector_over_count"] == 1
    values = np.random.default_rng(0).normal(size=(3, 40))
    expected = values / np.sqrt((values**2).mean(axis=1, keepdims=True))
    for scale in (1e-300, 1.0, 1e300):
        np.testing.assert_allclose(f(scale * values), expected, rtol=1e-14)


@pytest.mark.parametrize("other", ["norm", "cosine", "nothing"])
def test_norms_known_from_others_are_not_computed_again(other):
    x, y = T.dmatrix("x"), T.dmatrix("y")
    norm = T.sqrt(T.sum(x**2, axis=1))
    cosine = T.sum(x * y, axis=1) / norm / T.sqrt(T.sum(y**2, axis=1))
    more = {"norm": [norm], "cosine": [cosine], "nothing": []}[other]
    f = symcomp.function([x, y], [x / norm.dimshuffle(0, "x"), *more], on_unused_input="ignore")
    assert f.maker.trace.counts().get("known_norm", 0) == (other != "nothing")
    values, others = np.random.default_rng(1).normal(size=(2, 5, 64))
    expected = values / np.sqrt((values**2).sum(axis=1, keepdims=True))
    for scale in (1e-300, 1.0, 1e300):
        np.testing.assert_allclose(f(scale * values, others)[0], expected, rtol=1e-14)


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


# The expression, with its derivatives by x, twice, and by y.
EXPONENTIALS = {
    "y / exp(x)": ("-y / exp(x)", "y / exp(x)", "1 / exp(x)"),
    "0.25 / exp(x)": ("-0.25 / exp(x)", "0.25 / exp(x)", "0 * x"),
    "y / exp(x)**2": ("-2 * y / exp(2 * x)", "4 * y / exp(2 * x)", "1 / exp(2 * x)"),
    "w * y / exp(x)": ("-w * y / exp(x)", "w * y / exp(x)", "w / exp(x)"),
    "y * exp(-x)": ("-y * exp(-x)", "y * exp(-x)", "exp(-x)"),
}


@pytest.mark.parametrize("text", EXPONENTIALS)
def test_products_with_exponentials(text):
    """Also where the exponential is subnormal or infinite, or the inverse of one that is."""
    x, y, w = arguments = T.dvectors("x", "y", "w")
    z = eval(text, {"exp": T.exp}, {"x": x, "y": y, "w": w})
    by_x, by_y = symcomp.grad(z.sum(), [x, y], disconnected_inputs="ignore")
    outputs = [z, by_x, symcomp.grad(by_x.sum(), x), by_y]
    f = symcomp.function(arguments, outputs, on_unused_input="ignore")
    exponents = [0.3, -3.7, 354.9, 710.1, 720.0, -720.0, -744.9, 1400.0]
    exponents = np.array(exponents) / (2 if "**2" in text else 1)
    sizes = [0.0, 5e-324, 1.1e-300, 1.3e-160, -1.7, 3e150, 1.1e300]
    points = np.array(list(itertools.product(exponents, sizes, [0.7, -2e-200, 3e200]))).T
    numbers = dict(zip("xyw", points.astype(np.longdouble), strict=True))
    for got, true in zip(f(*points), (text, *EXPONENTIALS[text]), strict=True):
        with np.errstate(all="ignore"):
            expected = eval(true, {"exp": np.exp}, numbers).astype("float64")
        # Two for the exponential, and one for each product.
        np.testing.assert_allclose(got, expected, rtol=5 * 2.0**-53, atol=2 * 5e-324)
    sizes += [np.inf, np.nan]
    points = np.array(list(itertools.product([1e4, -1e4, np.inf, -np.inf], sizes, [0.7]))).T
    with np.errstate(all="ignore"):
        as_written = eval(text, {"exp": np.exp}, dict(zip("xyw", points, strict=True)))
    np.testing.assert_array_equal(f(*points)[0], np.broadcast_to(as_written, points[0].shape))


@pytest.mark.parametrize("text", ["y / exp(x)", "y * exp(-x)", "y / exp(x)**2"])
def test_products_with_exponentials_of_float32(text):
    """Where the product is a normal number, also where the exponential leaves the range."""
    x, y = T.fvectors("xy")
    z = eval(text, {"exp": T.exp}, {"x": x, "y": y})
    by_x, by_y = symcomp.grad(z.sum(), [x, y])
    f = symcomp.function([x, y], [z, by_x, by_y])
    k = 2 if "**2" in text else 1
    exponents = np.float32([0.3, -3.7, 44.1, 88.9, -88.9, 102.9, -102.9, -170.3, 170.3]) / k
    sizes = np.float32([0.0, 1.3e-37, 1.1e-20, -1.7, 3e20, -1.1e38])
    points = np.array(list(itertools.product(exponents, sizes)), "float32").T
    wide_x, wide_y = points.astype(float)
    product = wide_y * np.exp(-k * wide_x)
    for got, true in zip(f(*points), [product, -k * product, np.exp(-k * wide_x)], strict=True):
        inside = (np.abs(true) < 1.7e38) & ((np.abs(true) > 1.2e-38) | (true == 0))
        np.testing.assert_allclose(got[inside], true[inside], rtol=6 * 2.0**-24)


@pytest.mark.parametrize("power", [1, 2])
def test_squares_over_sums(power):
    """(x^2 + y^2) / (x + y), and over the square of the sum, in value and gradient."""
    x, y = T.dvectors("xy")
    z = (x**2 + y**2) / (x + y) ** power
    f = symcomp.function([x, y], [z, symcomp.grad(z.sum(), x)])
    a, b = np.array([0.3, 1.7, -0.2]), np.array([0.4, -0.2, -2.9])
    values = (a**2 + b**2) / (a + b) ** power
    slopes = 2 * a / (a + b) ** power - power * (a**2 + b**2) / (a + b) ** (power + 1)
    for scale in (1e-300, 1e-160, 1.0, 1e155, 1e300):
        value, slope = f(scale * a, scale * b)
        np.testing.assert_allclose(value, values * scale ** (2 - power), rtol=1e-14)
        if power == 1:
            np.testing.assert_allclose(slope, slopes, rtol=1e-13)


def test_exponentials_of_multiples_of_logarithms():
    """Other numbers than logarithms are left, and so are exponentials of float32."""
    x, y = T.dvector("x"), T.fvector("y")
    z = [T.exp(x * np.log(2)), T.exp(-3 * x), T.exp(-x * np.log(10))]
    z.append(T.exp(y * np.float32(np.log(2))))
    f = symcomp.function([x, y], z)
    assert f.maker.trace.counts()["exponential_of_logarithm"] == 2
    points = np.array([-300.7, -0.3, 1e-9, 87.3, 300.7])
    with mp.workdps(40):
        exact = [[mp.mpf(b) ** (s * mp.mpf(p)) for p in points] for b, s in ((2, 1), (10, -1))]
    two, _, ten, narrow = f(points, [0.5])
    assert units_off(two, exact[0]) <= 2
    assert units_off(ten, exact[1]) <= 2
    np.testing.assert_allclose(narrow, np.sqrt(2), rtol=1e-6)


def test_exponentials_of_functions():
    """Exponents of whole arguments in float64 are corrected; values at the ends are NumPy's."""
    x, y, column = T.dvector("x"), T.fvector("y"), T.dcol("column")
    left = [
        T.exp(-T.exp(y)), T.exp(T.sin(x) * x), T.exp(x - T.exp(column)), T.exp(-(x**2)),
        T.exp(T.sum(T.exp(x)) - x), T.exp(-T.exp(T.sin(x))), T.exp(-T.exp(T.cumsum(x))),
    ]  # fmt: skip
    f = symcomp.function([x, y, column], left)
    assert "exponential_of_functions" not in f.maker.trace.counts()
    stable = [T.exp(T.log(x) ** 2), T.exp(-T.exp(x)), T.exp(-T.log(x) ** 2), T.exp(x - T.exp(x))]
    f = symcomp.function([x], stable)
    assert f.maker.trace.counts()["exponential_of_functions"] == 4
    w = T.dvector("w")
    many = [T.exp(T.mul(T.exp(x), x, w)), T.exp(T.add(T.log(x), T.exp(x), w))]
    g = symcomp.function([x, w], many)
    assert g.maker.trace.counts()["exponential_of_functions"] == 2
    found, a, b = g([3.3], [1.7]), mp.mpf(3.3), mp.mpf(1.7)
    with mp.workdps(50):
        assert abs(found[0][0] / mp.exp(mp.exp(a) * a * b) - 1) < 2**-51
        assert abs(found[1][0] / mp.exp(mp.log(a) + mp.exp(a) + b) - 1) < 2**-51
    square, double, bell, both = f([0.0, np.inf, -np.inf, 1.0, -1e300, 1e300])
    np.testing.assert_array_equal(square, [np.inf, np.inf, np.nan, 1, np.nan, np.inf])
    np.testing.assert_allclose(double, [np.exp(-1), 0, 1, np.exp(-np.e), 1, 0])
    np.testing.assert_array_equal(bell, [0, 0, np.nan, 1, np.nan, 0])
    np.testing.assert_allclose(both, [np.exp(-1), np.nan, 0, np.exp(1 - np.e), 0, 0])


def test_roots_of_products_with_a_square_of_0():
    """The root of x^2 y is 0 at x = 0, also for negative y, and NaN for infinite y."""
    x, y = T.dvectors("xy")
    z = T.sqrt(x**2 * y)
    f = symcomp.function([x, y], [z, *symcomp.grad(z.sum(), [x, y])])
    value, by_x, by_y = f([0.0, 0.0, 0.0, 2.0, 2.0], [3.0, -3.0, np.inf, -3.0, np.inf])
    np.testing.assert_array_equal(value, [0, 0, np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(by_x[:2], [0, 0])
    np.testing.assert_array_equal(by_y[:2], [0, 0])
