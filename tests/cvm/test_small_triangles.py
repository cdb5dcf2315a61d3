"""Triangular systems and Cholesky decompositions of small matrices, at each level that the
processor has, and the sizes around those of vectors, of blocks of rows and of what BLAS takes.
"""

import ctypes

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm import machine
from symcomp.tensor import slinalg

LIBRARY = ctypes.CDLL(machine.__file__)
LEVELS = range(1, LIBRARY.symcomp_row_product_level() + 1)
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33, 50, 191, 192]
COLUMNS = [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 70]
LETTER = {"float32": "f", "float64": "d"}
BESIDE_ROW = 32


def pointer(x, offset=0):
    return ctypes.c_void_p(x.ctypes.data + offset * x.itemsize)


def triangle(rng, n, dtype):
    """Return a lower triangle that is well-conditioned, with anything above its diagonal."""
    x = rng.normal(size=(n, n)) / np.sqrt(n)
    np.fill_diagonal(x, rng.uniform(1, 2, n))
    return x.astype(dtype)


def solved(level, a, down, along, unit, z, ld):
    function = getattr(LIBRARY, f"symcomp_solve_triangle_{LETTER[str(z.dtype)]}")
    n, m = z.shape
    numbers = map(ctypes.c_int64, (down, along))
    function(
        level, ctypes.c_int64(n), ctypes.c_int64(m), a, *numbers, int(unit),
        pointer(z, 0 if ld > 0 else -(n - 1) * ld), ctypes.c_int64(ld),
    )  # fmt: skip


def residual_bound(a, z):
    """Higham, Accuracy and Stability of Numerical Algorithms, theorem 8.5: an eps for each term."""
    return (len(a) + 1) * np.finfo(z.dtype).eps * (abs(a).astype("f8") @ abs(z).astype("f8"))


@pytest.mark.parametrize("dtype", LETTER)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("unit", [False, True])
def test_systems(dtype, level, unit):
    rng = np.random.default_rng(1)
    for n in SIZES:
        whole = triangle(rng, n, dtype)
        a = np.tril(whole, -1) + (np.eye(n, dtype=dtype) if unit else np.diag(whole.diagonal()))
        for m in COLUMNS:
            b = rng.normal(size=(n, m)).astype(dtype)
            around = np.full(n * m + 64, np.nan, dtype)
            columns = np.asfortranarray(whole)
            for given, down, along in ((whole, n, 1), (columns, 1, n)):
                z = around[32 : 32 + n * m].reshape(n, m)
                z[:] = b
                solved(level, pointer(given), down, along, unit, z, m)
                assert (abs(a.astype("f8") @ z - b) <= residual_bound(a, z)).all()
                assert np.isnan(around[:32]).all() and np.isnan(around[32 + n * m :]).all()
            # Backwards: an upper triangle, the last row first.
            upper = np.ascontiguousarray(whole[::-1, ::-1])
            back = b[::-1].copy()
            solved(level, pointer(upper, n * n - 1), -n, -1, unit, back, -m)
            np.testing.assert_array_equal(back[::-1], z)


@pytest.mark.parametrize("dtype", LETTER)
@pytest.mark.parametrize("level", LEVELS)
def test_factors(dtype, level):
    rng = np.random.default_rng(2)
    factor = getattr(LIBRARY, f"symcomp_factor_{LETTER[dtype]}")
    positive = ctypes.c_int()
    for n in SIZES:
        for ld in (n + BESIDE_ROW, n + BESIDE_ROW + 5):
            x = rng.normal(size=(n, n))
            s = (x @ x.T / n + np.eye(n)).astype(dtype)
            u = np.zeros((n, ld), dtype)
            u[:, :n] = np.triu(s) + np.tril(np.full((n, n), np.nan, dtype), -1)
            arguments = level, ctypes.c_int64(n), pointer(u), ctypes.c_int64(ld)
            factor(*arguments, ctypes.byref(positive))
            assert positive.value
            v = np.triu(u[:, :n]).astype("f8")
            # Higham, theorem 10.3.
            bound = (n + 2) * np.finfo(dtype).eps * (abs(v).T @ abs(v))
            assert (abs(v.T @ v - s) <= bound).all()
            for bad in (0, -1, np.nan):
                u = np.zeros((n, ld), dtype)
                u[:, :n] = s
                u[n - 1, n - 1] = bad
                arguments = level, ctypes.c_int64(n), pointer(u), ctypes.c_int64(ld)
                factor(*arguments, ctypes.byref(positive))
                assert positive.value == np.isnan(bad)
                assert not np.isnan(bad) or np.isnan(u[n - 1, n - 1])


@pytest.mark.parametrize("dtype", LETTER)
@pytest.mark.parametrize("n", [2, 50, 193])
def test_in_functions(dtype, n):
    """Both triangles, either order of the elements, stacks, numbers that are not finite."""
    a, b = T.tensor(dtype, shape=(None, None)), T.tensor(dtype, shape=(None, None))
    rng = np.random.default_rng(n)
    lower, sides = triangle(rng, n, dtype), rng.normal(size=(n, 7)).astype(dtype)
    for is_lower in (True, False):
        f = symcomp.function([a, b], slinalg.solve_triangular(a, b, lower=is_lower))
        matrix = lower if is_lower else lower.T.copy()
        read = np.tril(matrix) if is_lower else np.triu(matrix)
        for given in (matrix, np.asfortranarray(matrix), np.repeat(matrix, 2, 1)[:, ::2]):
            for side in (sides, np.asfortranarray(sides), sides[:, ::-1], sides[:, :1]):
                z = f(given, side)
                assert (abs(read.astype("f8") @ z - side) <= residual_bound(read, z)).all()
        spoiled = sides.copy()
        spoiled[0 if is_lower else -1, 3] = np.nan
        z = f(matrix, spoiled)
        assert np.isnan(z[:, 3]).all() and not np.isnan(np.delete(z, 3, 1)).any()


@pytest.mark.parametrize("n", [3, 50, 194])
def test_not_positive(n):
    a = T.dtensor3()
    rng = np.random.default_rng(n)
    x = rng.normal(size=(3, n, n))
    s = x @ x.transpose(0, 2, 1) + n * np.eye(n)
    s[1, -1, -1] = -1
    f = symcomp.function([a], slinalg.cholesky(a, on_error="nan"))
    z = f(s)
    assert np.isnan(z[1]).all()
    np.testing.assert_allclose(z[::2] @ z[::2].transpose(0, 2, 1), s[::2], rtol=0, atol=1e-12 * n)
    assert (np.triu(z[0], 1) == 0).all()
    with pytest.raises(np.linalg.LinAlgError):
        symcomp.function([a], slinalg.cholesky(a))(s)
