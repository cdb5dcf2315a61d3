"""Sums and extremes of segments on devices, and of sparse matrices along their axes, beside the
processor and SciPy.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.sparse.patterns import MajorIndices
from symcomp.sparse.reductions import SegmentReduce
from symcomp.tests.gpu.running import (
    DEVICE,
    UNITS,
    assert_close,
    check,
    compile_both,
    ops_on_device,
    ops_on_host,
)
from symcomp.tests.gpu.test_sparse_products import DTYPES, matrix

POINTERS = {
    "some": [0, 3, 3, 4, 11, 11, 12], "empty": [0, 0, 0, 0], "none": [0], "one": [0, 300],
    "many": [*range(0, 400, 3)], "long": [0, 2, 700, 700, 1000], "of one": [*range(40)],
}  # fmt: skip
on_device = config.change_flags(device=DEVICE)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng([5, *shape])
    found = rng.standard_normal(shape) * 40
    if dtype.startswith("complex"):
        return (found + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype == "bool":
        return found > 0
    return (np.abs(found) if dtype.startswith("u") else found).astype(dtype)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("pointers", POINTERS)
@pytest.mark.parametrize("row", [(), (3,), (2, 2), (0,), (40,)])
def test_segments(emu: Any, pointers: str, row: tuple[int, ...], index_dtype: str) -> None:
    ends = np.array(POINTERS[pointers], index_dtype)
    p, x = TensorType(index_dtype, (None,))("p"), TensorType("float32", (None,) * (1 + len(row)))()
    outputs = [SegmentReduce(kind)(T.exp(x), p) for kind in ("sum", "max", "min")]
    check([x, p], outputs, [numbers((ends[-1], *row), "float32") / 40, ends])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", [(), (3,)])
def test_segments_of_each_dtype(emu: Any, dtype: str, row: tuple[int, ...]) -> None:
    kinds = ("sum",) if dtype.startswith("complex") else ("sum", "max", "min")
    p, x = T.lvector("p"), TensorType(dtype, (None,) * (1 + len(row)))("x")
    there = gpu.to_gpu(x, DEVICE).as_tensor_variable()
    f = symcomp.function([x, p], [SegmentReduce(kind)(there, p) for kind in kinds])
    plain = symcomp.function([x, p], [SegmentReduce(kind)(x, p) for kind in kinds])
    assert sum(name.startswith("SegmentReduce") for name in ops_on_device(f)) == len(kinds)
    for pointers in ("some", "long", "of one"):
        ends = np.array(POINTERS[pointers])
        x_value = numbers((ends[-1], *row), dtype)
        for found, wanted in zip(f(x_value, ends), plain(x_value, ends), strict=True):
            assert_close(found, wanted, UNITS)


def test_numbers_that_are_not_finite(emu: Any) -> None:
    x, p = T.fvector("x"), T.lvector("p")
    outputs = [SegmentReduce(kind)(x * 1, p) for kind in ("sum", "max", "min")]
    value = np.array([1, np.inf, 2, np.nan, 3, -np.inf, np.inf, 3e38, 3e38, 1], "float32")
    check([x, p], outputs, [value, np.array([0, 3, 5, 7, 9, 10])], 0)


def test_rounding_errors_are_kept(emu: Any) -> None:
    x, p = T.fvector("x"), T.lvector("p")
    with on_device:
        f = symcomp.function([x, p], SegmentReduce("sum")(x * 1, p))
    value = numbers((30_000,), "float32")
    value[::3] *= 1e6
    ends = np.array([0, 10, 20_000, 30_000])
    wanted = np.add.reduceat(value.astype("float64"), ends[:-1]).astype("float32")
    np.testing.assert_allclose(f(value, ends), wanted, rtol=2 * np.finfo("float32").eps)


MATRICES = {
    "some": lambda dtype: matrix(7, 5, dtype=dtype),
    "without entries": lambda dtype: sp.csr_array((4, 3), dtype=dtype),
    "without rows": lambda dtype: sp.csr_array((0, 3), dtype=dtype),
    "without columns": lambda dtype: sp.csr_array((3, 0), dtype=dtype),
    "long rows": lambda dtype: matrix(3, 400, dtype=dtype),
}


def unordered(a: Any) -> Any:
    """Return the same matrix with its entries the other way round, half of them twice."""
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    data, at = np.concatenate([a.data / 2, a.data / 2]), np.concatenate([a.indices] * 2)
    order = np.lexsort([-np.arange(len(at)), np.concatenate([rows, rows])])
    found = sp.csr_array((data[order], at[order], 2 * a.indptr), shape=a.shape)
    assert a.nnz == 0 or not (found.has_sorted_indices or found.has_canonical_format)
    return found


@pytest.mark.parametrize("which", MATRICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sums_of_matrices(emu: Any, which: str, dtype: str, format: str) -> None:
    a = MATRICES[which](dtype)
    x = sparse.matrix(format, "x", dtype=dtype)
    outputs = [sparse.sp_sum(x, axis) for axis in (0, 1, None)]
    outputs += [sparse.mean(x, axis) for axis in (0, 1)] if min(a.shape) else []
    plain, f = compile_both([x], outputs)
    assert "SegmentReduce{kind='sum'}" in ops_on_device(f)
    given = [a.asformat(format)]
    given += [unordered(a)] if format == "csr" and dtype == "float64" else []
    for value in given:
        for found, wanted in zip(f(value), plain(value), strict=True):
            assert_close(found, wanted, UNITS)
    sums = [np.asarray(a.sum(axis)) for axis in (0, 1, None)]
    for one, other in zip(f(given[-1]), sums, strict=False):
        assert_close(one, other.astype(dtype).reshape(one.shape), UNITS)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_gradients_of_sums(emu: Any, format: str, dtype: str) -> None:
    x, w = sparse.matrix(format, "x", dtype=dtype), TensorType(dtype, (None,))("w")
    for axis, length in ((0, 5), (1, 7)):
        total = sparse.sp_sum(sparse.structured_exp(x * 0.1), axis, sparse_grad=True)
        loss = T.sqr(T.abs(total * w)).sum()
        outputs = [sparse.csm_data(T.grad(loss, x)), T.grad(loss, w)]
        plain, f = compile_both([x, w], outputs)
        stays = [name for name in ops_on_host(f) if name.startswith(("Segment", "SameLength"))]
        assert not stays
        values = matrix(7, 5, format, dtype), numbers((length,), dtype) / 40
        for found, wanted in zip(f(*values), plain(*values), strict=True):
            assert_close(found, wanted, UNITS)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_extremes_and_softmax(emu: Any, format: str) -> None:
    x = sparse.matrix(format, "x", dtype="float32")
    outputs = [sparse.max(x, 0), sparse.min(x, 1), sparse.max(x)]
    outputs.append(sparse.csm_data(sparse.structured_softmax(x)))
    loss = (sparse.max(x, 1) * sparse.min(x, 1)).sum()
    outputs.append(sparse.csm_data(T.grad(loss, x)))
    plain, f = compile_both([x], outputs)
    assert not [name for name in ops_on_host(f) if name.startswith(("Segment", "Major"))]
    for seed in range(2):
        value = matrix(9, 6, format, seed=seed)
        for found, wanted in zip(f(value), plain(value), strict=True):
            assert_close(found, wanted, UNITS)


def test_a_shared_matrix_stays_there(emu: Any) -> None:
    a = matrix(7, 5)
    with on_device:
        s = sparse.shared(a, device=DEVICE)
        total = T.sqr(sparse.sp_sum(s, 1, sparse_grad=True)).sum()
        loss = total + T.sqr(sparse.sp_sum(s, 0, sparse_grad=True)).sum()
        f = symcomp.function([], gpu.to_gpu(loss, DEVICE), updates=[(s, s - T.grad(loss, s))])
    f()
    s.set_value(a)
    emu.counters.clear()
    loss_there = f()
    assert (emu.counters.to_host, emu.counters.waits) == (0, 0)
    rows, columns = a.sum(1), a.sum(0)
    np.testing.assert_allclose(float(loss_there), (rows**2).sum() + (columns**2).sum(), rtol=1e-5)
    at = a.tocoo()
    wanted = at.data - 2 * rows[at.coords[0]] - 2 * columns[at.coords[1]]
    np.testing.assert_allclose(s.get_value().data, wanted, rtol=1e-4, atol=1e-4)


def test_segments_by_numbers(emu: Any) -> None:
    """Users' sums of rows with equal numbers, too, in loops as well."""
    x, i = T.fmatrix("x"), T.lvector("i")
    z = [sparse.segment_sum(T.exp(x), i, 5), sparse.segment_max(T.exp(x), i, 5)]
    check([x, i], z, [numbers((9, 3), "float32") / 40, np.arange(9) % 4], on_host=True)
    p = T.lvector("p")
    rows, _ = symcomp.scan(lambda r: SegmentReduce("sum")(T.exp(r), p), x)
    f = check([x, p], rows, [numbers((4, 6), "float32") / 40, np.array([0, 1, 1, 6])])
    assert not ops_on_host(f)
    x = T.fvector("x")
    spread = T.exp(x)[MajorIndices()(p, T.constant(np.int64(6)))]
    check([x, p], spread, [numbers((3,), "float32") / 40, np.array([0, 1, 1, 6])], on_host=True)
