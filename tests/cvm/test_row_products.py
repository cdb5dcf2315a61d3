"""Products of vectors and matrices, of all lengths around those of vectors of the processor."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config

RNG = np.random.default_rng(3)
LENGTHS = [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 129, 224, 449]


def layouts(k, m, dtype):
    """Yield a matrix in several memory layouts."""
    w = RNG.normal(size=(k, m)).astype(dtype)
    wide = np.zeros((k, m + 3), dtype)
    wide[:, 1 : m + 1] = w
    tall = np.zeros((m, k + 2), dtype)
    tall[:, 1 : k + 1] = w.T
    return w, np.asfortranarray(w), wide[:, 1 : m + 1], tall[:, 1 : k + 1].T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", LENGTHS)
def test_dot(dtype, k):
    with config.change_flags(linker="cvm"):
        x, w = T.tensor(dtype, shape=(None,)), T.tensor(dtype, shape=(None, None))
        f = symcomp.function([x, w], [T.dot(x, w), T.dot(w.T, x)])
    long = RNG.normal(size=2 * k).astype(dtype)
    eps = np.finfo(dtype).eps
    for m in LENGTHS:
        for matrix in layouts(k, m, dtype):
            for row in (long[:k], long[::2], long[::-2]):
                exact = row.astype("float64") @ matrix.astype("float64")
                bound = np.abs(row).astype("float64") @ np.abs(matrix).astype("float64")
                for found in f(row, matrix):
                    assert found.dtype == dtype and found.shape == (m,)
                    assert (np.abs(found - exact) <= 2 * eps * np.sqrt(k + 4) * bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5])
def test_sums(dtype, beta):
    """z = beta c + alpha x W; operands that are not read may hold anything."""
    with config.change_flags(linker="cvm"):
        c, x = (T.tensor(dtype, shape=(None,)) for _ in "cx")
        w = T.tensor(dtype, shape=(None, None))
        factor = np.asarray(beta, dtype)
        f = symcomp.function([c, x, w], factor * c + np.asarray(1.5, dtype) * T.dot(x, w))
        g = symcomp.function([c, x, w], factor * c - T.dot(w, x))
    for k, m in ((5, 7), (40, 130), (130, 40), (3, 500)):
        matrix = RNG.normal(size=(k, m)).astype(dtype)
        row, start = RNG.normal(size=k).astype(dtype), RNG.normal(size=m).astype(dtype)
        wanted = beta * start + 1.5 * (row.astype("float64") @ matrix)
        scale = 30 * np.finfo(dtype).eps * np.abs(wanted).max()
        for added in (start, np.repeat(start, 2)[::2]):
            for _ in range(2):
                found = f(added, row, matrix)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=scale)
        wanted = beta * start - matrix.T.astype("float64") @ row
        np.testing.assert_allclose(g(start, row, matrix.T), wanted, rtol=0, atol=scale)


def test_not_a_number_stays():
    with config.change_flags(linker="cvm"):
        x, w = T.fvector(), T.fmatrix()
        f = symcomp.function([x, w], [T.dot(x, w), T.dot(w.T, x)])
    matrix = np.ones((20, 37), "float32")
    matrix[7, 30] = np.nan
    matrix[3, 2] = np.inf
    row = np.ones(20, "float32")
    for found in f(row, matrix):
        assert np.isnan(found[30]) and np.isinf(found[2])
        assert (np.delete(found, [2, 30]) == 20).all()
    row[3] = 0
    for found in f(row, matrix):
        assert np.isnan(found[[2, 30]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("beyond", [0, 1, 2, 4, 6, 8, 11, 16, 25, 48, 112])
def test_matrices_beyond_the_cache(dtype, beyond):
    """Neither where rows begin in cache lines nor which columns come first changes results."""
    with config.change_flags(linker="cvm"):
        x, w = T.tensor(dtype, shape=(None,)), T.tensor(dtype, shape=(None, None))
        f = symcomp.function([x, w], T.dot(x, w))
    m = 512 + beyond  # more than a panel of the widest vectors
    k = 2**19 // (m * np.dtype(dtype).itemsize)
    row, matrix = RNG.integers(-9, 9, k).astype(dtype), RNG.integers(-9, 9, (k, m)).astype(dtype)
    wanted = row.astype("int64") @ matrix.astype("int64")
    for further in (0, 3, -m % 16):
        wide = np.zeros((k, m + 32 + further), dtype)
        for begin in range(16):
            wide[:, begin : begin + m] = matrix
            for _ in range(2):
                np.testing.assert_array_equal(f(row, wide[:, begin : begin + m]), wanted)
