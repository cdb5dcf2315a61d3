"""Products of two sparse matrices on devices, and what gradients of them need, beside the processor
and SciPy.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.compile.device_sparse_products import PatternIndices
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError, SparsePatternError
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.gpu.kernels.lines import tile_length
from symcomp.gpu.kernels.sparse_patterns import WORDS
from symcomp.sparse.convert import GatherDense, ScatterDense, TransposeCompressed
from symcomp.sparse.patterns import Lookup
from symcomp.sparse.products import CompressedMatMul, MaskedMatMul
from symcomp.tests.gpu.running import (
    DEVICE,
    check,
    compile_both,
    ops_on_host,
)

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
on_device = config.change_flags(device=DEVICE)


def matrix(
    rows: int, columns: int, format: str = "csr", dtype: str = "float32", seed: int = 0
) -> Any:
    """Return a matrix with an empty row, and with 0 among its entries."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, columns)) < 0.4
    if rows > 2:
        mask[rows // 2] = False
    at = np.nonzero(mask)
    entries = rng.normal(size=len(at[0])) * 4
    if np.dtype(dtype).kind == "c":
        entries = entries + 1j * rng.normal(size=len(entries))
    if np.dtype(dtype).kind in "iub":
        entries = np.abs(np.round(entries))
    if len(entries):
        entries[-1] = 0
    return sp.csr_array((entries.astype(dtype), at), shape=(rows, columns)).asformat(format)


def variables(format: str, dtype: str = "float32") -> tuple[Any, Any]:
    return sparse.matrix(format, "x", dtype=dtype), sparse.matrix(format, "y", dtype=dtype)


def stays(f: Any) -> list[str]:
    """Return the ops on the host that are no ops on objects of SciPy, or on their lengths."""
    known = (
        "Components", "DeviceComponents", "KeptProduct", "TransposedPattern", "Assemble",
        "Subtensor", "Shape", "DeviceLength", "Stack", "SameNumber",
    )  # fmt: skip
    return [name for name in ops_on_host(f) if not name.startswith(known)]


def entries_of_product(a: Any, b: Any) -> Any:
    """Return the entries of a product, which SciPy has in another order and without zeros."""
    x, y = variables(a.format, a.dtype)
    return symcomp.function([x, y], sparse.csm_data(sparse.structured_dot(x, y)))(a, b)


def assert_same(found: Any, wanted: Any) -> None:
    """Compare two sparse matrices, entry by entry."""
    assert (found.format, found.shape, found.dtype) == (wanted.format, wanted.shape, wanted.dtype)
    for name in ("indptr", "indices"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)
    kind = wanted.dtype.kind in "fc"
    np.testing.assert_allclose(found.data, wanted.data, rtol=1e-6 if kind else 0)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products(emu: Any, format: str, dtype: str) -> None:
    x, y = variables(format, dtype)
    plain, f = compile_both([x, y], [sparse.structured_dot(x, y), sparse.dot(x, y)])
    assert not stays(f)
    a, b = matrix(7, 5, format, dtype), matrix(5, 6, format, dtype, 1)
    for order in ORDERS if isinstance(emu, Emulator) else [0]:
        emu.order = order
        (product, dense), (wanted, wanted_dense) = f(a, b), plain(a, b)
        assert_same(product, wanted)
        np.testing.assert_allclose(dense, wanted_dense, rtol=1e-6)
        np.testing.assert_allclose(product.toarray(), (a @ b).toarray(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_each_dtype(emu: Any, dtype: str, index_dtype: str) -> None:
    """Integers begin no region; a factor that lies there brings them along."""
    a, b, c = matrix(6, 9, dtype=dtype), matrix(9, 8, dtype=dtype, seed=1), matrix(6, 8, seed=2)
    vector, index = TensorType(dtype, (None,)), TensorType(index_dtype, (None,))
    kinds = [vector, index, index] * 2 + [index, index]
    given = [kind(n) for kind, n in zip(kinds, "dipejquv", strict=True)]
    arrays = [a.data, a.indices, a.indptr, b.data, b.indices, b.indptr, c.indices, c.indptr]
    values = [x.astype(kind.dtype) for x, kind in zip(arrays, kinds, strict=True)]
    plain = symcomp.function(given, _results(*given))
    there = gpu.to_gpu(given[0], DEVICE).as_tensor_variable()
    f = symcomp.function(given, _results(there, *given[1:]))
    assert not [name for name in stays(f) if name != "ShapeI"]
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if found.dtype.kind in "fc" else 0)


def _results(d: Any, i: Any, p: Any, e: Any, j: Any, q: Any, u: Any, v: Any) -> list[Any]:
    """Return results of matrices of shapes (6, 9) and (9, 8), and of a pattern of shape (6, 8)."""
    n, m = (T.as_tensor_variable(np.int64(k)) for k in (9, 8))
    dense, product = ScatterDense()(d, i, p, n), CompressedMatMul()(d, i, p, n, e, j, q, m)
    return [
        *product, *TransposeCompressed()(d, i, p, n), dense, ScatterDense()(*product, m),
        MaskedMatMul()(d, i, p, n, e, j, q, m, u, v), GatherDense()(dense * 2, i, p),
        Lookup()(*product, u, v),
    ]  # fmt: skip


@st.composite
def factors(draw: Any) -> tuple[Any, Any]:
    """Return two matrices that can be multiplied, often with empty rows or without entries."""
    rows, met, columns = (draw(st.integers(0, 6)) for _ in range(3))

    def factor(n: int, m: int) -> Any:
        entry = st.sampled_from([0, 0, 0, 1, -2, 3])
        found = np.array(draw(st.lists(entry, min_size=n * m, max_size=n * m)), "float32")
        return sp.csr_array(found.reshape(n, m))

    return factor(rows, met), factor(met, columns)


def test_generated_matrices(emu: Any) -> None:
    x, y = variables("csr")
    z = sparse.structured_dot(x, y)
    loss = T.sqr(sparse.csm_data(z)).sum()
    gradients = [sparse.csm_data(g) for g in T.grad(loss, [x, y])]
    plain, f = compile_both([x, y], [z, sparse.dot(x, y), *gradients])

    @settings(max_examples=25, deadline=None)
    @given(factors())
    def same(pair: tuple[Any, Any]) -> None:
        (product, *others), (wanted, *expected) = f(*pair), plain(*pair)
        assert_same(product, wanted)
        np.testing.assert_array_equal(product.toarray(), (pair[0] @ pair[1]).toarray())
        for one, other in zip(others, expected, strict=True):
            np.testing.assert_array_equal(one, other)

    same()


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("kind", ["structured", "dense", "true"])
def test_gradients(emu: Any, format: str, kind: str) -> None:
    x, y = variables(format)
    a, b = matrix(7, 5, format), matrix(5, 6, format, seed=1)
    z = (sparse.true_dot if kind == "true" else sparse.structured_dot)(x, y)
    loss = T.sqr(sparse.dot(x, y) if kind == "dense" else sparse.csm_data(z)).sum()
    outputs = [loss, *(sparse.csm_data(g) for g in T.grad(loss, [x, y]))]
    f = check([x, y], outputs, [a, b], 8, on_host=True)
    assert not stays(f)


PAIRS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "maximum": sparse.maximum, "minimum": sparse.minimum,
}  # fmt: skip


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_functions_of_pairs_of_entries(emu: Any, format: str) -> None:
    """Sums and the like move where one of the matrices is on a device; the host reads counts."""
    a, b = matrix(6, 5, format), matrix(6, 5, format, seed=1)
    x, s = sparse.matrix(format, "x", dtype="float32"), sparse.shared(a, device=DEVICE)
    y, _ = variables(format)
    with on_device:
        made = [sparse.csm_data(pair(s, x)) for pair in PAIRS.values()]
        f = symcomp.function([x], [gpu.to_gpu(z, DEVICE) for z in made])
        g = symcomp.function([x], [pair(s, x) for pair in PAIRS.values()])
    plain = symcomp.function([y, x], [pair(y, x) for pair in PAIRS.values()])
    assert not stays(f) and not stays(g)
    for new in (b, sp.csr_array((6, 5), dtype="float32").asformat(format)):
        f(new)
        emu.wait()
        emu.counters.clear()
        found = f(new)
        assert emu.counters.to_host == 8 * emu.counters.waits == 32  # three unions, an intersection
        for one, other, wanted in zip(found, g(new), plain(a, new), strict=True):
            assert_same(other, wanted)
            np.testing.assert_array_equal(one.get(), wanted.data)
    with pytest.raises(ShapeError, match="differ|must agree"):
        g(matrix(5, 5, format))


def test_equal_patterns_are_counted_once(emu: Any) -> None:
    a, b = matrix(6, 5), matrix(5, 6, seed=1)
    x, s = sparse.csr_matrix("x", dtype="float32"), sparse.shared(a, device=DEVICE)
    with on_device:
        outputs = [sparse.structured_dot(s, x), sparse.structured_dot(s * 2, x * 3)]
        f = symcomp.function([x], [gpu.to_gpu(sparse.csm_data(z), DEVICE) for z in outputs])
    emu.counters.clear()
    found = f(b)
    assert (emu.counters.to_host, emu.counters.waits) == (8, 1)
    np.testing.assert_allclose(found[1].get(), 6 * found[0].get(), rtol=1e-6)


def test_sums_of_arguments_stay_on_the_host(emu: Any) -> None:
    x, y = variables("csr")
    with on_device:
        f = symcomp.function([x, y], x + y)
    assert any(name.startswith("CombinePatterns") for name in ops_on_host(f))


def test_generated_sums(emu: Any) -> None:
    x, y = variables("csr")
    made = lambda z: [pair(sparse.structured_dot(z, z.T), y) for pair in PAIRS.values()]  # noqa: E731
    plain, f = compile_both([x, y], made(x))
    assert not stays(f)

    @settings(max_examples=25, deadline=None)
    @given(factors(), st.integers(0, 5))
    def same(pair: tuple[Any, Any], seed: int) -> None:
        a, n = pair[0], pair[0].shape[0]
        b = matrix(n, n, seed=seed)
        for one, other in zip(f(a, b), plain(a, b), strict=True):
            assert_same(one, other)

    same()


def test_gradients_that_are_added(emu: Any) -> None:
    x, y = variables("csr")
    z = sparse.true_dot(x, x) - sparse.true_dot(x, y)
    loss = T.sqr(sparse.csm_data(z)).sum()
    outputs = [loss, *(sparse.csm_data(g) for g in T.grad(loss, [x, y]))]
    f = check([x, y], outputs, [matrix(5, 5), matrix(5, 5, seed=1)], 32, [0], on_host=True)
    assert not stays(f)


def test_chains_and_powers(emu: Any) -> None:
    x, y = variables("csr")
    z = sparse.structured_dot(sparse.structured_dot(x, x.T) * 2, y)
    loss = T.tanh(sparse.csm_data(z)).sum()
    outputs = [loss, *(sparse.csm_data(g) for g in T.grad(loss, [x, y]))]
    f = check([x, y], outputs, [matrix(5, 4), matrix(5, 6, seed=1)], 32, [0], on_host=True)
    assert not stays(f)


def test_wide_rows_and_many_rows(emu: Any) -> None:
    """A set holds fewer columns than rows have here, and pointers are made by several blocks."""
    width = 32 * WORDS
    x, y = variables("csr")
    plain, f = compile_both([x, y], [sparse.structured_dot(x, y)])
    places = [0, 5, width - 1, width, width + 40, 3 * width, 3 * width + 1, 5 * width - 1]
    rows = np.repeat(np.arange(4), 2)
    wide = sp.csr_array((np.arange(1, 9, dtype="float32"), (rows, places)), (4, 5 * width))
    few = sp.csr_array(np.array([[1, 0, 2, 3], [0, 0, 0, 0], [4, 5, 0, 6]], "float32"))
    assert_same(f(few, wide)[0], plain(few, wide)[0])
    n = 2 * tile_length("int64") + 3
    long = sp.random_array((n, 8), density=0.1, rng=1, format="csr", dtype="float32")
    assert_same(f(long, matrix(8, 6))[0], plain(long, matrix(8, 6))[0])


def test_entries_at_one_place_are_added_up(emu: Any) -> None:
    x, y = variables("csr")
    plain, f = compile_both([x, y], [sparse.structured_dot(x, y)])
    twice = sp.csr_array((np.ones(4, "float32"), [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    assert_same(f(twice, matrix(3, 4))[0], plain(twice, matrix(3, 4))[0])


def test_shapes_that_do_not_fit(emu: Any) -> None:
    x, y = variables("csr")
    _, f = compile_both([x, y], [sparse.structured_dot(x, y)])
    _, g = compile_both([x, y], sparse.dot(x, y))
    for h in (f, g):
        with pytest.raises(ShapeError, match="the axes that meet have lengths 5 and 4"):
            h(matrix(3, 5), matrix(4, 2))
    assert f(matrix(3, 5), matrix(5, 2))[0].shape == (3, 2)
    with pytest.raises(SparsePatternError, match="needs indices beyond 2147483647"):
        one = symcomp.function([], PatternIndices("product")(*_large()))
        one()


def _large() -> list[Any]:
    """Return inputs whose product has more entries than int32 counts, in one region."""
    indices = gpu.to_gpu(T.zeros(1, "int32"), DEVICE).as_tensor_variable()
    indptr = T.as_tensor_variable(np.array([0, 1], "int32"))
    one, count = (T.as_tensor_variable(np.int64(n)) for n in (1, 2**31))
    return [indices, indptr, one, indices, indptr, one, indptr, count]


def test_indices_are_checked(emu: Any) -> None:
    d, i = T.fvector("d"), T.ivector("i")
    p = T.as_tensor_variable(np.array([0, 1, 2], "int32"))
    there = gpu.to_gpu(d, DEVICE).as_tensor_variable()
    n = T.as_tensor_variable(np.int64(3))
    f = symcomp.function([d, i], TransposeCompressed()(there, i, p, n)[0])
    np.testing.assert_array_equal(f([1, 2], [2, 0]), [2, 1])
    with pytest.raises(IndexError, match="is out of range for an axis of length 3"):
        f([1, 2], [3, 0])


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_one_number_goes_to_the_host(emu: Any, format: str) -> None:
    """The host reads how many entries a product has, unless the product is dense."""
    x = sparse.matrix(format, "x", dtype="float32")
    a, b = matrix(6, 5, format), matrix(5, 6, format, seed=1)
    s = sparse.shared(a, device=DEVICE)
    with on_device:
        z = sparse.csm_data(sparse.structured_dot(s, x))
        loss = T.sqr(z).sum()
        f = symcomp.function([x], [gpu.to_gpu(y, DEVICE) for y in (z, loss)])
        g = symcomp.function([x], gpu.to_gpu(sparse.dot(s, x), DEVICE))
    assert not stays(f) and not stays(g)
    for new in (b, matrix(5, 6, format, seed=2)):
        for h, to_host in ((f, 8), (g, 0)):
            emu.wait()
            emu.counters.clear()
            h(new)
            assert (emu.counters.to_host, emu.counters.waits) == (to_host, to_host // 8)
    np.testing.assert_allclose(g(b).get(), (a @ b).toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(f(b)[0].get(), entries_of_product(a, b), rtol=1e-5, atol=1e-6)


def test_patterns_of_products_are_kept(emu: Any) -> None:
    """Patterns that do not change are multiplied and transposed once."""
    a, b = matrix(6, 5), matrix(5, 6, seed=1)
    s, q = sparse.shared(a, device=DEVICE), sparse.shared(b, device=DEVICE)
    with on_device:
        z = sparse.structured_dot(s, q)
        loss = T.sqr(sparse.csm_data(z)).sum()
        updates = {w: w - T.grad(loss, w) * np.float32(0.01) for w in (s, q)}
        f = symcomp.function([], gpu.to_gpu(loss, DEVICE), updates=updates)
    for i in range(3):
        emu.wait()
        emu.counters.clear()
        loss = f()
        counters = emu.counters
        assert i == 0 or (counters.to_device, counters.to_host, counters.waits) == (0, 0, 0)
        x, y = a.toarray(), b.toarray()
        where = (abs(x) @ abs(y)) != 0
        product = np.where(where, x @ y, 0)
        np.testing.assert_allclose(float(loss), (product**2).sum(), rtol=1e-4)
        a.data = (x - 0.02 * product @ y.T)[np.nonzero(_ones(a))]
        b.data = (y - 0.02 * x.T @ product)[np.nonzero(_ones(b))]
        np.testing.assert_allclose(s.get_value().toarray(), a.toarray(), rtol=1e-4, atol=1e-5)
    s.set_value(matrix(4, 5, seed=5))
    assert float(f()) > 0


def _ones(x: Any) -> Any:
    return sp.csr_array((np.ones(x.nnz), x.indices, x.indptr), shape=x.shape).toarray()


def test_constant_patterns_need_no_count(emu: Any) -> None:
    a, b = matrix(6, 5), matrix(5, 6, seed=1)
    with on_device:
        v = symcomp.shared(np.ones(a.nnz, "float32"))
        x, y = sparse.constant(a), sparse.constant(b)
        _, indices, indptr, shape = sparse.csm_properties(x)
        z = sparse.structured_dot(sparse.CSR(v, indices, indptr, shape), y)
        f = symcomp.function([], gpu.to_gpu(sparse.csm_data(z), DEVICE))
    f()
    emu.wait()
    emu.counters.clear()
    found = f()
    assert (emu.counters.to_device, emu.counters.to_host, emu.counters.waits) == (0, 0, 0)
    ones = sp.csr_array((np.ones(a.nnz, "float32"), a.indices, a.indptr), a.shape)
    np.testing.assert_allclose(found.get(), entries_of_product(ones, b), rtol=1e-6)


def test_products_on_the_host_stay_there(emu: Any) -> None:
    """A tensor on a device elsewhere in the graph, and integers, are no reason to copy factors."""
    x, y = variables("csr")
    v = T.fvector("v")
    f = symcomp.function([x, y, v], [sparse.structured_dot(x, y), gpu.to_gpu(v * 2, DEVICE)])
    assert "CompressedMatMul" in ops_on_host(f)
    x, y = variables("csr", "int32")
    with on_device:
        g = symcomp.function([x, y], sparse.structured_dot(x, y))
    assert "CompressedMatMul" in ops_on_host(g)


@pytest.mark.parametrize("mode", ["DebugMode", "NanGuardMode", "FAST_COMPILE"])
def test_modes(emu: Any, mode: str) -> None:
    x, y = variables("csc")
    a, b = matrix(6, 5, "csc"), matrix(5, 6, "csc", seed=1)
    with on_device:
        s = sparse.shared(a)
        f = symcomp.function([y], [sparse.structured_dot(s, y), sparse.dot(s, s.T)], mode=mode)
    product, dense = f(b)
    np.testing.assert_allclose(product.toarray(), (a @ b).toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dense, (a @ a.T).toarray(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_saving(emu: Any, tmp_path: Path, device: str | None) -> None:
    x, _ = variables("csr")
    a, b = matrix(6, 5), matrix(5, 6, seed=1)
    s, q = sparse.shared(a, device=DEVICE), sparse.shared(b, device=DEVICE)
    with on_device:
        outputs = [sparse.structured_dot(s, x), sparse.structured_dot(s, q), sparse.dot(s, x)]
        f = symcomp.function([x], outputs)
    symcomp.save(tmp_path / "f.symcomp", f)
    loaded = symcomp.load(tmp_path / "f.symcomp", device=device)
    for one, other in zip(loaded(b), f(b), strict=True):
        one, other = (z.toarray() if sp.issparse(z) else z for z in (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
