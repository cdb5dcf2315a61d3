"""Rules that keep results in range, at numbers where a rule's own steps would leave it, or where
the numbers are not those the rule is made for: results are at least those as written.
"""

import warnings

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

# Each is computed by NumPy with the same text.
POWERS = ["sqrt(x**y) * x**z", "(x**y)**2 * x**z", "(x**y)**2 / x**z", "x**z / sqrt(x**y)"]


@pytest.mark.parametrize("text", POWERS)
def test_powers_of_powers_of_negative_numbers(text):
    x, y, z = T.dvectors("xyz")
    f = symcomp.function([x, y, z], eval(text, vars(T), {"x": x, "y": y, "z": z}))
    bases, exponents = [-2.0, -0.5, 2.0], [2.0, 0.5, 1.0, -1.5]
    a, b, c = (np.ravel(v) for v in np.meshgrid(bases, exponents, exponents))
    with np.errstate(all="ignore"):
        wanted = eval(text, {"sqrt": np.sqrt}, {"x": a, "y": b, "z": c})
    np.testing.assert_allclose(f(a, b, c), wanted, rtol=1e-14)


def test_gradients_by_rows_with_subnormal_norms():
    m, w = T.dmatrices("mw")
    z = T.sum(T.sqrt(T.sum(m**2, axis=1)) * T.sum(w, axis=1))
    f = symcomp.function([m, w], symcomp.grad(z, m))
    rows = np.array([[3e-310, 4e-310]] * 3)
    sums = np.array([[0.0], [1.0], [2.0]])
    wanted = np.array([[0.6, 0.8]]) * sums
    np.testing.assert_allclose(f(rows, np.hstack([sums, 0 * sums])), wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype, size", [("float64", 1e308), ("float32", 2e38)])
def test_products_over_sums_of_sizes_that_overflow(dtype, size):
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    z = T.sum(x * y) / T.sum(abs(x))
    f = symcomp.function([x, y], [z, *symcomp.grad(z, [x, y])])
    a, b = np.full(3, size, dtype), np.array([1, 2, 3], dtype)
    value, by_x, by_y = f(a, b)
    np.testing.assert_allclose(value, 2, rtol=1e-6)
    tiny = np.finfo(dtype).smallest_subnormal
    np.testing.assert_allclose(by_x, (b - 2) / 3 / size, rtol=1e-3, atol=tiny)
    np.testing.assert_allclose(by_y, np.full(3, 1 / 3), rtol=1e-6)
    value, by_x, by_y = f(np.array([3, -1, 0], dtype), b)
    np.testing.assert_allclose([value, *by_y], [0.25, 0.75, -0.25, 0], rtol=1e-6)
    np.testing.assert_allclose(by_x, [0.1875, 0.5625, 0.75], rtol=1e-6)
    assert np.isnan(f(np.array([0, 0, 0], dtype), b)[0])
    assert np.isnan(f(np.array([], dtype), np.array([], dtype))[0])


def test_forward_derivatives_of_norms_times_extremes():
    m, w = T.dmatrices("mw")
    v = T.dvector("v")
    z = T.Rop(T.sqrt(T.sum(m**2, axis=1)) * v, m, w)
    f = symcomp.function([m, w, v], z)
    rows = np.array([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [3e-300, 4.0]])
    tangents = np.array([[1.0, -0.1], [1e300, -0.75e300], [1e300, -0.1], [1e-10, 0.0]])
    scales = np.array([np.inf, 1e200, 1e-300, 1e300])
    with np.errstate(all="ignore"):
        wanted = [np.inf, 0.0, 0.6, 0.75e-10]
    found = f(rows, tangents, scales)
    np.testing.assert_allclose(found[[0, 2, 3]], np.array(wanted)[[0, 2, 3]], rtol=1e-13)
    assert not np.isnan(found[1])  # the rounding error of a sum that cancels


def test_quotients_by_squares_of_columns():
    x, w = T.dmatrices("xw")
    y, z = T.dcol("y"), T.dcol("z")
    f = symcomp.function([x, w, y, z], x * y / (w * z**2))
    sizes = np.array([[1e100], [1e200], [1e-200], [2.0]])
    one = np.ones((4, 2))
    a = one * [[1e-250], [1.0], [1.0], [3.0]]
    b = one * [[1e-200], [1.0], [1.0], [1.5]]
    wanted = one * [[1e-150], [1e-200], [1e200], [1.0]]
    np.testing.assert_allclose(f(a, b, sizes, sizes), wanted, rtol=1e-14)
    # The square is subnormal, but not 0: the result is that of the expression as written.
    large, zero, small = np.array([[1e200]]), np.array([[0.0]]), np.array([[1e-160]])
    np.testing.assert_array_equal(f(large, large, zero, small), [[0.0]])


def test_exponentials_over_products_of_extremes():
    x, u, z, w = (T.dvector(n) for n in "xuzw")
    f = symcomp.function([x, u, z, w], x * T.exp(-(T.log(u) ** 2)) / (z * w))
    u_value = np.exp(np.sqrt(700.0))
    a = np.array([1e300, 1e300, 1.0, 0.0, np.inf, 1.0])
    b = np.array([1e-300, 1e-100, 1.0, 1.0, 1.0, 0.0])
    c = np.array([1e300, 1e200, 1.0, 1.0, 1.0, 1.0])
    bell = np.exp(-(np.log(u_value) ** 2))
    wanted = [bell * 1e300, bell * 1e200, bell, 0.0, np.inf, np.inf]
    found = f(a, np.full(6, u_value), b, c)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 3.0])
def test_squares_of_sums_of_exponentials_with_extreme_numbers(scale):
    m = T.dvector("m")
    z = T.sum(T.exp(2 * m)) / T.sum(scale * T.exp(m)) ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = symcomp.function([m], z)
    a = np.array([0.1, -0.3, 0.7])
    with np.errstate(all="ignore"):
        wanted = np.sum(np.exp(2 * a)) / np.sum(scale * np.exp(a)) ** 2
    np.testing.assert_allclose(f(a), wanted, rtol=1e-14)
