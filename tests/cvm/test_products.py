"""The products written by hand for matrices with a short side, with the instructions of every
level that the processor has.
"""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.cvm import machine

KINDS = {"f": (np.float32, ctypes.c_float, 1e-5), "d": (np.float64, ctypes.c_double, 1e-13)}
LENGTHS = st.one_of(st.integers(0, 20), st.sampled_from([31, 32, 33, 47, 64, 65, 100]))
LIBRARY = ctypes.CDLL(machine.__file__)


def call(name, kind, *arguments):
    """Call ``name`` with numbers, and arrays by their addresses."""
    real = KINDS[kind][1]
    converted = [
        ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray)
        else real(x) if isinstance(x, float) else ctypes.c_int64(x)
        for x in arguments
    ]  # fmt: skip
    getattr(LIBRARY, f"symcomp_{name}_{kind}")(*converted)


@settings(deadline=None, max_examples=60)
@given(
    kind=st.sampled_from("fd"), n=LENGTHS, k=LENGTHS, m=LENGTHS, beta=st.sampled_from([0.0, -0.5]),
    gap=st.integers(0, 3), seed=st.integers(0, 99),
)  # fmt: skip
def test_products(kind, n, k, m, beta, gap, seed):
    rng = np.random.default_rng(seed)
    dtype, _, tolerance = KINDS[kind]
    a, b = (rng.normal(size=s).astype(dtype) for s in ((n, k + gap), (k, m + gap)))
    w = np.ascontiguousarray(rng.normal(size=(m, k + gap)).astype(dtype))
    start = rng.normal(size=(n, m)).astype(dtype) if beta else np.full((n, m), np.nan, dtype)
    for level in range(1, LIBRARY.symcomp_row_product_level() + 1):
        products = {
            "thin": (a[:, :k] @ b[:, :m], (a, a.shape[1], 1, b, b.shape[1])),
            "thin_transposed": (a[:, :k] @ w[:, :k].T, (a, a.shape[1], w, w.shape[1])),
        }
        column_major = np.asfortranarray(a[:, :k])
        products["thin by columns"] = (
            a[:, :k] @ b[:, :m], (column_major, 1, n, b, b.shape[1])
        )  # fmt: skip
        for name, (product, arguments) in products.items():
            z = start.copy()
            call(name.split()[0], kind, level, n, k, m, 1.5, *arguments, beta, z)
            wanted = 1.5 * product + (beta * start if beta else 0)
            np.testing.assert_allclose(z, wanted, rtol=tolerance, atol=10 * tolerance)


@settings(deadline=None, max_examples=50)
@given(
    kind=st.sampled_from("fd"), k=LENGTHS, m=st.one_of(LENGTHS, st.integers(200, 900)),
    beta=st.sampled_from([0.0, -0.5]), step=st.integers(1, 3), seed=st.integers(0, 99),
)  # fmt: skip
def test_products_with_vectors(kind, k, m, beta, step, seed):
    rng = np.random.default_rng(seed)
    dtype, _, tolerance = KINDS[kind]
    b, w, x = (rng.normal(size=s).astype(dtype) for s in ((k, m + 2), (m, k + 1), k * step))
    start = rng.normal(size=m).astype(dtype) if beta else np.full(m, np.nan, dtype)
    for level in range(1, LIBRARY.symcomp_row_product_level() + 1):
        z = start.copy()
        call("row_times", kind, level, k, m, 1.5, x, step, b, m + 2, beta, start, z)
        wanted = 1.5 * (x[::step] @ b[:, :m]) + (beta * start if beta else 0)
        np.testing.assert_allclose(z, wanted, rtol=tolerance, atol=10 * tolerance)
        z = start.copy()
        call("times_column", kind, level, k, m, 1.5, x, w, k + 1, beta, z)
        wanted = 1.5 * (w[:, :k] @ x[:k]) + (beta * start if beta else 0)
        np.testing.assert_allclose(z, wanted, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("gap", [0, 11])
@pytest.mark.parametrize("kind", "fd")
def test_matrices_that_are_read_ahead(kind, gap):
    """Neither the address of a matrix nor the order in which columns are read changes bits."""
    rng = np.random.default_rng(0)
    dtype = KINDS[kind][0]
    k, m = 150, 597 - gap  # more than 256 KiB, and more columns than stay in registers
    x, whole = rng.normal(size=k).astype(dtype), rng.normal(size=(k, 608 - gap)).astype(dtype)
    exact = x @ whole[:, :m].astype("float64")
    sizes = abs(x) @ abs(whole[:, :m])
    for level in range(1, LIBRARY.symcomp_row_product_level() + 1):
        results = []
        for offset in (0, 1, 5, 8, 15, 15):
            w = np.full(whole.size + 16, np.nan, dtype)[offset:][: whole.size].reshape(whole.shape)
            w[:, :m] = whole[:, :m]
            z, c = np.full((2, m + 32), 3, dtype)
            call("row_times", kind, level, k, m, 1.5, x, 1, w, w.shape[1], -0.5, c[16:], z[16:])
            assert (z[:16] == 3).all()
            assert (z[m + 16 :] == 3).all()
            results.append(z[16 : m + 16])
        rounding = (k + 4) * np.finfo(dtype).eps * (1.5 * sizes + 1.5)
        assert (abs(results[0] - (1.5 * exact - 1.5)) <= rounding).all()
        for z in results[1:]:
            np.testing.assert_array_equal(z, results[0])


@pytest.mark.parametrize("pages", [1, 3])
@pytest.mark.parametrize("kind", "fd")
def test_rows_that_are_pages_apart(kind, pages):
    """Rows with the same places in the cache are read in another order, with the same results."""
    rng = np.random.default_rng(0)
    dtype = KINDS[kind][0]
    apart = pages * 4096 // np.dtype(dtype).itemsize
    k, m = 149, apart - 64
    x, whole = rng.normal(size=2 * k).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
    for level in range(1, LIBRARY.symcomp_row_product_level() + 1):
        results = []
        for ld in (apart, apart, apart + 16):
            w = np.full(k * ld + 1, np.nan, dtype)[1:].reshape(k, ld)
            w[:, :m] = whole
            z, c = np.full((2, m + 32), 3, dtype)
            call("row_times", kind, level, k, m, 1.5, x, 2, w, ld, -0.5, c[16:], z[16:])
            assert (z[:16] == 3).all()
            assert (z[m + 16 :] == 3).all()
            results.append(z[16 : m + 16])
        rounding = (k + 4) * np.finfo(dtype).eps * (1.5 * (abs(x[::2]) @ abs(whole)) + 1.5)
        exact = x[::2] @ whole.astype("float64")
        assert (abs(results[0] - (1.5 * exact - 1.5)) <= rounding).all()
        for z in results[1:]:
            np.testing.assert_array_equal(z, results[0])


@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize("kind", "fd")
def test_products_of_a_column_and_a_row(kind, beta):
    rng = np.random.default_rng(0)
    dtype = KINDS[kind][0]
    for n, m in ((90, 67), (3, 16), (5, 8), (4, 7)):
        x, y = rng.normal(size=(2 * n, 1)).astype(dtype), rng.normal(size=m).astype(dtype)
        start = rng.normal(size=(n, m)).astype(dtype) if beta else np.full((n, m), np.nan, dtype)
        wanted = dtype(1.5) * (x[::2] * y) + (start if beta else 0)
        for level in range(1, LIBRARY.symcomp_row_product_level() + 1):
            for offset in (0, 1, 3):
                memory = np.full(n * m + 16, 3, dtype)
                z = memory[8 + offset :][: n * m].reshape(n, m)
                z[:] = start
                call("thin", kind, level, n, 1, m, 1.5, x, 2, 1, y, m, beta, z)
                np.testing.assert_array_equal(z, wanted)
                assert (memory[: 8 + offset] == 3).all()
                assert (memory[8 + offset + n * m :] == 3).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(10, 300, 70), (300, 10, 70), (90, 300, 7), (2, 2, 2), (70,) * 3]
)
def test_every_order_in_memory(dtype, shape):
    n, k, m = shape
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(dtype) for s in ((n, k), (k, m)))
    x, y = T.matrix("x", dtype), T.matrix("y", dtype)
    f = symcomp.function([x, y], T.dot(x, y))
    wanted = a.astype("float64") @ b.astype("float64")
    for left in (a, np.asfortranarray(a), a[:, ::-1][:, ::-1]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 2, 1)[:, ::2]):
            found = f(left, right)
            tolerance = 1e-4 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_what_is_not_a_number_stays_in_its_place():
    a, b = np.ones((3, 40), "float32"), np.ones((40, 35), "float32")
    a[1, 7], b[3, 34] = np.nan, np.inf
    x, y = T.fmatrices("x", "y")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(symcomp.function([x, y], T.dot(x, y))(a, b), a @ b)
