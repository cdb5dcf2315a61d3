"""Standardized numbers, coefficients of variation and other statistics that do not depend on the
scale of their argument, and products over norms, from 1e-300 to 1e300, beside arithmetic with 2000
digits.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.tests.rewrite.test_stable_ranges import Exact, exact, off, written

SCALES = [1e-300, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e300]
OF_ONE = [
    "(x - mean(x)) / sqrt(mean((x - mean(x))**2))", "(x - mean(x)) / std(x)", "std(x) / mean(x)",
    "mean(x) / std(x)", "x / sqrt(mean(x**2))", "mean(x)**2 / var(x)", "var(x) / mean(x)**2",
    "mean((x - mean(x))**2) / mean(x**2)", "sum(x)**2 / sum(x**2)",
]  # fmt: skip
MOMENTS = [
    "mean((x - mean(x))**3) / mean((x - mean(x))**2)**1.5", "mean((x - mean(x))**3) / std(x)**3",
    "mean((x - mean(x))**4) / mean((x - mean(x))**2)**2", "mean((x - mean(x))**4) / var(x)**2",
    "mean(((x - mean(x)) / std(x))**3)", "mean(((x - mean(x)) / std(x))**4) - 3",
    "mean(x**4) / mean(x**2)**2", "sum(abs(x)**3) / sum(x**2)**1.5", "sum(x**6) / sum(x**2)**3",
    "mean(x**3) / mean(x**2)",
]  # fmt: skip
OF_TWO = ["sum((x - y)**2) / sum(x**2)", "sum(x**2) / sum(y**2)"]
# Statistics of two arguments whose scales differ.
PRODUCTS = [
    "sum(x * y) / (sqrt(sum(x**2)) * sqrt(sum(y**2)))", "dot(x, y) / sqrt(dot(x, x) * dot(y, y))",
    "sum(x * y)**2 / (sum(x**2) * sum(y**2))", "1 - sum(x * y) / sqrt(sum(x**2) * sum(y**2))",
    "mean((x - mean(x)) * (y - mean(y))) / (std(x) * std(y))", "sum(x * y) / sum(x**2)",
    "mean((x - mean(x)) * (y - mean(y))) / var(x)", "sum(x * y) / sqrt(sum(x**2))",
    "sum(x * y) / sum(abs(x))", "mean(abs(x) * y) / mean(abs(x))",
]  # fmt: skip


class Statistics(Exact):
    """The functions of the texts, of objects that hold numbers of mpmath."""

    @staticmethod
    def var(x):
        return ((x - x.sum() / x.size) ** 2).sum() / x.size

    @staticmethod
    def dot(x, y):
        return (x * y).sum()

    @staticmethod
    def std(x):
        return mp.sqrt(Statistics.var(x))


def compiled(text, count):
    """Compile the value, its gradients along a way, and its R-ops along others."""
    xs = [T.dvector(name) for name in "xy"[:count]]
    z = written(text, T, **dict(zip("xy", xs, strict=False)))
    ways, along = [T.dvector(f"w{i}") for i in range(count)], T.dvector("along")
    slopes = symcomp.grad((z * along).sum(), xs)
    forward = [symcomp.gradient.Rop(z, x, w) for x, w in zip(xs, ways, strict=True)]
    inputs = [*xs, *ways, along]
    return symcomp.function(inputs, [z, *slopes, *forward], mode=symcomp.Mode(linker="py"))


def near(got, true, units=32):
    """Tell whether numbers are right to some units in the last place of the largest: the mean of
    the argument is rounded. Numbers out of range are not compared.
    """
    most = max(map(abs, np.ravel(true)))
    if most > np.finfo(float).max or 0 < most < 1e-290:
        return True
    wrong = max(abs(mp.mpf(float(g)) - t) for g, t in zip(got, true, strict=True))
    return wrong <= units * mp.mpf(np.finfo(float).eps) * most


def check(text, points, units=4):
    """Check the value, to some units in the last place, and the Jacobian by both modes, at each
    point: its arguments.
    """
    count, size = len(points[0]), len(points[0][0])
    f = compiled(text, count)
    for point in points:
        for i in range(count):
            columns, forward = [], []
            for way in np.eye(size):
                ways = [way if j == i else np.zeros(size) for j in range(count)]
                value, column = exact(text, point, ways, Statistics())
                z, *derivatives = f(*point, *ways, np.ones(size))
                columns.append(np.ravel(column))
                forward.append(np.ravel(derivatives[count + i]))
                assert near(np.ravel(z), np.ravel(value), units), ("value", point)
            assert near(np.ravel(forward), np.ravel(columns)), ("R-op", i, point)
            # Where the value is a number, `along` is added up: the way is 1 / size.
            scalar = columns[0].size == 1
            rows = [np.full(size, 1 / size)] if scalar else np.eye(size)
            got = [f(*point, *ways, way)[1 + i] for way in rows]
            assert near(np.ravel(got), np.ravel(np.transpose(columns))), ("gradient", i, point)


@pytest.mark.parametrize("text", OF_ONE)
def test_statistics_of_any_scale(text):
    rng = np.random.default_rng(0)
    check(text, [(scale * rng.normal(0.3, 1, 4),) for scale in SCALES])


@pytest.mark.parametrize("text", MOMENTS)
def test_moments_of_any_scale(text):
    """Cubes of deviations cancel in part, so that the rounding error of the mean grows."""
    rng = np.random.default_rng(0)
    check(text, [(scale * rng.normal(0.3, 1, 4),) for scale in SCALES], 16)


@pytest.mark.parametrize("axis", [0, 1])
def test_narrow_deviations_much_smaller_than_the_mean(axis):
    """The mean of float32 is not rounded to float32."""
    x = T.fmatrix("x")
    mirrored = x.mean(axis=axis, keepdims=True) - x
    sizes = [x.std(axis=axis), T.sqrt(T.sum(mirrored**2, axis=axis))]
    outputs = [(x - x.mean(axis=axis, keepdims=True)) / x.std(axis=axis, keepdims=True)]
    outputs += [symcomp.grad(size.sum(), x) for size in sizes]
    outputs += [*skewness(x, axis, True)]
    lines = (np.random.default_rng(0).normal(size=(3, 7)) + 1e4).astype("float32")
    results = symcomp.function([x], outputs)(lines if axis else lines.T)
    wide = lines.astype(float)
    d = wide - wide.mean(axis=1, keepdims=True)
    z = d / np.sqrt((d**2).mean(axis=1, keepdims=True))
    cubes = (z**3).mean(axis=1, keepdims=True)
    for got, right in zip(results, [z, z / 7, z / np.sqrt(7), *[cubes] * 3], strict=True):
        np.testing.assert_allclose(got if axis else got.T, right, rtol=2e-6)


def test_standardized_equal_numbers_and_infinities():
    x = T.dmatrix("x")
    z = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    f = symcomp.function([x], [z, symcomp.grad(x.std(axis=1).sum(), x)])
    value, slope = f([[2.0, 2.0], [np.inf, 1.0], [np.nan, 1.0]])
    assert np.isnan(value).all()
    np.testing.assert_array_equal(slope[0], [0, 0])
    assert np.isnan(slope[1:]).all()


@pytest.mark.parametrize("text", OF_TWO)
def test_statistics_of_two_arguments_of_any_scale(text):
    rng = np.random.default_rng(1)
    check(text, [(scale * rng.normal(size=4), scale * rng.normal(size=4)) for scale in SCALES])


@pytest.mark.parametrize("text", PRODUCTS)
def test_products_over_norms_of_any_two_scales(text):
    x, y = np.array([0.3, -1.2, 2.2, 0.7]), np.array([0.5, -0.4, 1.3, -0.6])
    scales = itertools.product(SCALES[::2], [*SCALES[::3], 1e150, 1e-200])
    check(text, [(a * x, b * y) for a, b in scales], 16)


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(sum(x**2)) * sqrt(sum(y**2))", "sqrt(sum(x**2) / sum(y**2))",
        "sqrt(sum(x**2) * sum(y**2))", "sqrt(sum(x**2)) / sum(y)", "exp(mean(log(x))) / mean(x)",
    ],
)  # fmt: skip
def test_derivatives_by_elements_much_smaller_than_the_norm(text):
    """Elements over the norm underflow; products of these with other norms do not."""
    x = np.array([1e200, 1.3, 2.9, 1e-200])
    count = 1 + ("y" in text)
    f = compiled(text, count)
    for y in ([2.9e200, 7e199, 1.3e200, 4e199], [2.9e-200, 7e-201, 1.3e-200, 4e-201]):
        point = [x, np.array(y)][:count]
        for way in np.eye(4):
            ways = [way, np.zeros(4)][:count]
            _, true = exact(text, point, ways, Statistics())
            z, *derivatives = f(*point, *ways, np.full(4, 0.25))
            slope, forward = derivatives[0], derivatives[count]
            assert off(slope @ way, true) <= 8, ("gradient", way, y)
            assert off(forward, true) <= 8, ("R-op", way, y)


def test_means_by_sizes_where_one_element_has_nearly_all():
    """One slope is a difference of nearly equal numbers, that by 0 the other argument over all."""
    x, y = T.dvectors("xy")
    z = T.sum(x * y) / T.sum(abs(x))
    f = symcomp.function([x, y], [z, symcomp.grad(z, x)])
    value, slope = f([1e200, 1.0, -2.0, 0.0], [3.0, 5.0, 0.5, 7.0])
    np.testing.assert_allclose(value, 3.0, rtol=1e-15)
    wanted = [5e-400, 2e-200, 3.5e-200, 7e-200]
    np.testing.assert_allclose(slope, wanted, rtol=1e-15, atol=1e-220)
    value, slope = f([1e20, 1.0, -2.0, 0.0], [3.0, 5.0, 0.5, 7.0])
    np.testing.assert_allclose(slope, [5e-40, 2e-20, 3.5e-20, 7e-20], rtol=1e-14)


def skewness(x, axis, keep):
    """Return the skewness along an axis, in three spellings."""
    d = x - x.mean(axis=axis, keepdims=True)
    cubes, squares = (T.mean(d**k, axis=axis, keepdims=keep) for k in (3, 2))
    yield cubes / squares**1.5
    yield cubes / x.std(axis=axis, keepdims=keep) ** 3
    yield T.mean((d / x.std(axis=axis, keepdims=True)) ** 3, axis=axis, keepdims=keep)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_moments_along_axes(axis, keep):
    """Lines of numbers around 1, 2, 3 and 5 that differ in scale have one skewness."""
    x = T.dmatrix("x")
    every = list(skewness(x, axis, keep))
    f = symcomp.function([x], [*every, *(symcomp.grad(z.sum(), x) for z in every)])
    lines = np.multiply.outer(SCALES[:-1], [1.0, 2.0, 3.0, 6.0])
    values = f(lines if axis else lines.T)
    d = np.array([1.0, 2.0, 3.0, 6.0]) - 3
    u = d / np.sqrt(np.mean(d**2))
    z = np.mean(u**3)
    slope = 3 / 4 / np.sqrt(np.mean(d**2)) * (u**2 - z * u - 1)
    for value in values[:3]:
        np.testing.assert_allclose(np.ravel(value), z, rtol=1e-14)
    for value in values[3:]:
        scaled = (value if axis else value.T) * np.array(SCALES[:-1])[:, None]
        np.testing.assert_allclose(scaled, np.tile(slope, (len(SCALES) - 1, 1)), rtol=1e-13)


@pytest.mark.parametrize("text", [*MOMENTS[:6], *PRODUCTS])
def test_statistics_of_float32(text):
    """Beside those of the same numbers in float64: the mean of the argument is rounded."""
    narrow, wide = (of_dtype(text, dtype) for dtype in ("float32", "float64"))
    x, y = np.array([0.3, -1.2, 2.9, 0.7]), np.array([0.5, -0.4, 1.3, -0.6])
    for a, b in itertools.product([1e-30, 1e-20, 1.0, 1e20, 1e30], repeat=2):
        point = [(a * x).astype("float32"), (b * y).astype("float32")]
        for got, true in zip(narrow(*point), wide(*(v.astype(float) for v in point)), strict=True):
            most = np.abs(true).max()
            if 1e-36 < most < np.finfo("float32").max:
                assert np.abs(got - true).max() <= 32 * np.finfo("float32").eps * most


def of_dtype(text, dtype):
    """Compile the value and its gradients for vectors of a dtype."""
    x, y = (T.vector(name, dtype=dtype) for name in "xy")
    z = written(text, T, x=x, y=y)
    slopes = symcomp.grad(z, [x, y], disconnected_inputs="ignore")
    return symcomp.function([x, y], [z, *slopes], on_unused_input="ignore")
