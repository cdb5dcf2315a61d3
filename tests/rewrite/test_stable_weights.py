"""Complements, roots and quotients of exponential weights: dtypes, axes, special values."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

LINES = np.array(
    [[40.0, -3.0, 0.5], [2.0, 2.0, 2.0], [0.3, 0.9, -50.0], [-np.inf, 4.0, 3.0], [1.0, np.nan, 2.0]]
)


def complement(x):
    """Compute 1 - softmax(x) of the last axis, as a sum of the others."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    others = np.stack([np.delete(e, i, -1).sum(axis=-1) for i in range(x.shape[-1])], -1)
    return others / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_complement_of_softmax(dtype, axis):
    x = T.TensorType(dtype, (None, None))("x")
    p = T.softmax(x, axis=axis)
    f = symcomp.function([x], [1 - p, 3 - 3 * p, T.log(1 - p), T.log1p(-p)])
    lines = LINES.astype(dtype)
    value, triple, log, log1p = f(lines if axis else lines.T)
    true = complement(LINES)
    true = true if axis else true.T
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(value, true, rtol=8 * eps)
    np.testing.assert_allclose(triple, 3 * true, rtol=8 * eps)
    for z in (log, log1p):
        np.testing.assert_allclose(z, np.log(true), rtol=8 * eps, atol=2 * eps)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 1)])
def test_complement_of_short_lines(shape):
    x = T.dmatrix("x")
    p = T.softmax(x, axis=1)
    f = symcomp.function([x], [1 - p, T.log(1 - p)])
    value, log = f(np.full(shape, 7.0))
    np.testing.assert_array_equal(value, np.zeros(shape))
    np.testing.assert_array_equal(log, np.full(shape, -np.inf))


def test_complement_beside_infinity():
    """The infinite element of a line is NaN, as is its softmax, and the others are 1."""
    x = T.dvector("x")
    p = T.softmax(x)
    f = symcomp.function([x], [1 - p, T.log(1 - p)])
    value, log = f([1.0, np.inf, 750.0])
    np.testing.assert_array_equal(value, [1, np.nan, 1])
    np.testing.assert_array_equal(log, [0, np.nan, 0])


def test_log_of_the_complement_of_one_weight():
    x = T.dvector("x")
    z = T.log(1 - T.softmax(x)[1])
    value, slope = symcomp.function([x], [z, symcomp.grad(z, x)])([3.0, 50.0, 2.0])
    np.testing.assert_allclose(value, np.logaddexp(-47, -48), rtol=1e-15)
    share = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(slope, [share, -1, 1 - share], rtol=1e-15)


@pytest.mark.parametrize("dtype, large", [("float32", 170.0), ("float64", 1400.0)])
def test_roots_of_sums_of_exponentials(dtype, large):
    x, y = T.TensorType(dtype, (None, None))("x"), T.TensorType(dtype, (None,))("y")
    a = np.array([[large, -3.0], [0.5, -np.inf]], dtype)
    b = np.array([large - 1, 2.0], dtype)
    exp = T.exp
    outputs = [
        T.sqrt(1 + exp(x)), T.sqrt(exp(x) + exp(y)), (4 + exp(x)) ** -0.5,
        T.sqrt(T.mean(exp(x), axis=1)),
    ]  # fmt: skip
    wide, other = a.astype("longdouble"), b.astype("longdouble")
    e = np.exp(wide)
    true = [
        np.sqrt(1 + e), np.sqrt(e + np.exp(other)), 1 / np.sqrt(4 + e), np.sqrt(e.mean(axis=1))
    ]  # fmt: skip
    for z, t in zip(symcomp.function([x, y], outputs)(a, b), true, strict=True):
        assert z.dtype == dtype
        np.testing.assert_allclose(z, t.astype(dtype), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_by_the_largest_exponential(dtype):
    x = T.TensorType(dtype, (None, None))("x")
    z = T.exp(x) / T.max(T.exp(x), axis=1, keepdims=True)
    a = np.array([[1000.0, 999.0], [-1000.0, -1001.5], [-np.inf, 3.0], [np.nan, 1.0]], dtype)
    value, smallest = symcomp.function([x], [z, T.min(T.exp(x), axis=0)])(a)
    top = a.max(axis=1, keepdims=True)
    np.testing.assert_allclose(value, np.exp(a - top), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.isnan(smallest), [True, False])
