"""Any matrices: formats, dtypes, index dtypes, empty ones, duplicates and indices in any order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.core.tensor import TensorType
from symcomp.sparse.type import SparseType, SparseVariable
from symcomp.sparse.values import is_canonical
from symcomp.tests.sparse.harness import MODE, dense

FORMATS = ("csr", "csc", "coo")
DTYPES = ("int8", "int64", "uint8", "bool", "float32", "float64", "complex64", "complex128")


def _stored(x: Any) -> Any:
    """Return where a value stores entries, as an array of bools."""
    coo, mask = x.tocoo(), np.zeros(x.shape, bool)
    mask[coo.coords] = True
    return mask


def _extreme(reduce: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: reduce(x.toarray(), axis=1)


#: name -> functions of one matrix, and what they are of SciPy's value.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "itself": (lambda x: x, lambda x: x),
    "transposed": (lambda x: x.T, lambda x: x.T),
    "csr": (sparse.tocsr, lambda x: x.tocsr()),
    "csc": (sparse.tocsc, lambda x: x.tocsc()),
    "coo": (sparse.tocoo, lambda x: x.tocoo()),
    "dense": (lambda x: x.toarray(), lambda x: x.toarray()),
    "tril": (sparse.tril, lambda x: sp.tril(x)),
    "triu": (lambda x: sparse.triu(x, 1), lambda x: sp.triu(x, 1)),
    "diagonal": (sparse.diag, lambda x: x.diagonal()),
    "without zeros": (sparse.remove0, lambda x: x),
    "rows": (lambda x: x[1:], lambda x: x.tocsr()[1:]),
    "columns": (lambda x: x[:, ::-1], lambda x: x.tocsr()[:, ::-1]),
    "beside": (lambda x: sparse.hstack([x, x]), lambda x: sp.hstack([x, x])),
    "below": (lambda x: sparse.vstack([x, x], "csc"), lambda x: sp.vstack([x, x])),
    "blocks": (lambda x: sparse.block_diag(x, x), lambda x: sp.block_diag([x, x])),
    "ones": (sparse.sp_ones_like, lambda x: _stored(x).astype(x.dtype)),
    "zeros": (sparse.sp_zeros_like, lambda x: np.zeros(x.shape, x.dtype)),
    "complex": (sparse.zcast, lambda x: x.astype("complex128")),
    "column sums": (lambda x: sparse.sp_sum(x, 0), lambda x: np.asarray(x.toarray().sum(0))),
    "row sums": (lambda x: sparse.sp_sum(x, 1), lambda x: np.asarray(x.toarray().sum(1))),
    "total": (sparse.sp_sum, lambda x: x.toarray().sum()),
}
SIGNED = {
    "negative": (operator.neg, lambda x: -x.toarray()),
    "absolute": (abs, lambda x: abs(x.toarray())),
    "squares": (sparse.sqr, lambda x: x.toarray() ** 2),
    "row maxima": (lambda x: sparse.max(x, 1), _extreme(np.max)),
    "row minima": (lambda x: sparse.min(x, 1), _extreme(np.min)),
}
#: name -> functions of two matrices of one shape and a dense one, and what they are of arrays.
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda x, y, d: x + y, lambda x, y, d: x + y),
    "difference": (lambda x, y, d: x - y, lambda x, y, d: x - y),
    "product": (lambda x, y, d: x * y, lambda x, y, d: x * y),
    "equal": (lambda x, y, d: sparse.eq(x, y), lambda x, y, d: x == y),
    "not equal": (lambda x, y, d: sparse.neq(x, y), lambda x, y, d: x != y),
    "sum with dense": (lambda x, y, d: x + d, lambda x, y, d: x + d),
    "product with dense": (lambda x, y, d: x * d, lambda x, y, d: x * d),
    "column scale": (
        lambda x, y, d: sparse.mul(x, d.sum(0).astype(x.dtype)),
        lambda x, y, d: x * d.sum(0).astype(x.dtype),
    ),
    "x y.T": (lambda x, y, d: sparse.structured_dot(x, y.T), lambda x, y, d: x @ y.T),
    "x.T y": (lambda x, y, d: sparse.true_dot(x.T, y), lambda x, y, d: x.T @ y),
    "x d.T": (lambda x, y, d: sparse.dot(x, d.T), lambda x, y, d: x @ d.T),
    "d.T x": (lambda x, y, d: sparse.dot(d.T, x), lambda x, y, d: d.T @ x),
    "x.T d": (lambda x, y, d: sparse.dot(x.T, d), lambda x, y, d: x.T @ d),
}
ORDERED = {
    "maximum": (lambda x, y, d: sparse.maximum(x, y), lambda x, y, d: np.maximum(x, y)),
    "minimum": (lambda x, y, d: sparse.minimum(x, y), lambda x, y, d: np.minimum(x, y)),
    "less": (lambda x, y, d: sparse.lt(x, y), lambda x, y, d: x < y),
    "at least": (lambda x, y, d: sparse.ge(x, d), lambda x, y, d: x >= d),
}


@st.composite
def arrays_of_matrix(draw: Any, shape: tuple[int, int], dtype: str) -> tuple[Any, Any, Any]:
    """Draw entries with their rows and columns, in any order, some of them at one place."""
    n, m = shape
    count = draw(st.integers(0, 8)) if n and m else 0
    rows = draw(st.lists(st.integers(0, max(n - 1, 0)), min_size=count, max_size=count))
    columns = draw(st.lists(st.integers(0, max(m - 1, 0)), min_size=count, max_size=count))
    # Small integers: sums of them are exact in every dtype, in any order.
    low = 0 if dtype in ("bool", "uint8") else -2
    entries = draw(st.lists(st.integers(low, 3), min_size=count, max_size=count))
    return np.array(entries, "int64").astype(dtype), np.array(rows, int), np.array(columns, int)


def matrix_of(format: str, arrays: Any, shape: Any, index_dtype: str) -> Any:
    """Return a value whose duplicates and order are those of the arrays."""
    entries, rows, columns = arrays
    if format == "coo":
        value = sp.coo_array((entries, (rows, columns)), shape=shape)
        value.coords = tuple(v.astype(index_dtype) for v in value.coords)
        return value
    major, minor = (rows, columns) if format == "csr" else (columns, rows)
    order = np.argsort(major, kind="stable")
    length = shape[0] if format == "csr" else shape[1]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=length)[:length])])
    kind = sp.csr_array if format == "csr" else sp.csc_array
    parts = (entries[order], minor[order].astype(index_dtype), indptr.astype(index_dtype))
    return kind(parts, shape=shape)


SHAPES = st.tuples(st.integers(0, 4), st.integers(0, 4))


@cache
def functions(format: str, dtype: str, index_dtype: str, binary: bool) -> tuple[Any, Any]:
    """Compile the table for a type; return the function and the names of its outputs."""
    kind = SparseType(format, dtype, (None, None), index_dtype, "array")
    x, y, d = kind("x"), kind("y"), TensorType(dtype, (None, None))("d")
    table, inputs = chosen(dtype, binary), [x, y, d] if binary else [x]
    outputs = [function(*inputs) for function, _ in table.values()]
    f = symcomp.function(inputs, outputs, mode=MODE, on_unused_input="ignore")
    return f, outputs


def chosen(dtype: str, binary: bool) -> dict[str, Any]:
    """Return the functions that a dtype has."""
    if binary:
        table = BINARY | (ORDERED if dtype[0] != "c" else {})
        return {k: v for k, v in table.items() if dtype != "bool" or k != "difference"}
    return UNARY | (SIGNED if dtype[0] in "if" else {})


def compare(name: str, out: Any, found: Any, wanted: Any) -> None:
    """Check a result against an array, and that a sparse one is canonical and of its type."""
    if isinstance(out, SparseVariable):
        assert out.type.filter(found, strict=True) is not None, name
        assert is_canonical(found), name
        assert found.indices.dtype == out.type.index_dtype if found.format != "coo" else True
    assert found.dtype == out.dtype, name
    assert found.shape == wanted.shape, name
    np.testing.assert_array_equal(dense(found), wanted, err_msg=name)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_functions_of_one_matrix(format: str, index_dtype: str, data: Any) -> None:
    dtype = data.draw(st.sampled_from(DTYPES if index_dtype == "int32" else DTYPES[4:6]))
    shape = data.draw(SHAPES)
    value = matrix_of(format, data.draw(arrays_of_matrix(shape, dtype)), shape, index_dtype)
    before = [v.copy() for v in parts(value)]
    f, outputs = functions(format, dtype, index_dtype, False)
    clean = sp.coo_array(value)
    clean.sum_duplicates()
    table = chosen(dtype, False)
    if 0 in shape:
        table = {k: v for k, v in table.items() if not k.startswith("row m")}
        f, outputs = without_extremes(format, dtype, index_dtype)
    found = f(value)
    for (name, (_, wanted)), out, z in zip(table.items(), outputs, found, strict=True):
        compare(name, out, z, dense(wanted(clean)))
    for a, b in zip(parts(value), before, strict=True):
        np.testing.assert_array_equal(a, b)


@cache
def without_extremes(format: str, dtype: str, index_dtype: str) -> tuple[Any, Any]:
    """Compile the functions that empty matrices have."""
    x = SparseType(format, dtype, (None, None), index_dtype, "array")("x")
    table = {k: v for k, v in chosen(dtype, False).items() if not k.startswith("row m")}
    outputs = [function(x) for function, _ in table.values()]
    return symcomp.function([x], outputs, mode=MODE), outputs


def parts(value: Any) -> list[Any]:
    """Return the arrays of a value."""
    if value.format == "coo":
        return [value.data, *value.coords]
    return [value.data, value.indices, value.indptr]


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_functions_of_two_matrices(format: str, data: Any) -> None:
    dtype = data.draw(st.sampled_from(DTYPES[1:]))
    shape = data.draw(SHAPES)
    x, y = (
        matrix_of(format, data.draw(arrays_of_matrix(shape, dtype)), shape, "int32")
        for _ in range(2)
    )
    d = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    f, outputs = functions(format, dtype, "int32", True)
    a, b = x.toarray(), y.toarray()
    table = chosen(dtype, True)
    for (name, (_, wanted)), out, z in zip(table.items(), outputs, f(x, y, d), strict=True):
        compare(name, out, z, wanted(a, b, d))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_functions_of_blocks(data: Any) -> None:
    """BSR values with any size of blocks that divides the shape."""
    shape = data.draw(st.tuples(st.sampled_from([0, 2, 4]), st.sampled_from([0, 3, 6])))
    arrays = data.draw(arrays_of_matrix(shape, "float64"))
    blocksize = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 3)]))
    value = sp.coo_array((arrays[0], arrays[1:]), shape=shape).tobsr(blocksize=blocksize)
    d = np.arange(2.0 * shape[1]).reshape(shape[1], 2)
    found = functions_of_blocks()(value, d)
    a = value.toarray()
    wanted = (a, a.T, a @ d, a**2, a.sum(0), a @ a.T)
    for z, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(dense(z), w)


@cache
def functions_of_blocks() -> Any:
    """Compile some functions of a BSR matrix."""
    x, d = sparse.bsr_array("x"), T.dmatrix("d")
    outputs = [x.toarray(), x.T.toarray(), sparse.dot(x, d), sparse.sqr(x), x.sum(0), x @ x.T]
    return symcomp.function([x, d], outputs, mode=MODE)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_parts_as_of_arrays(data: Any) -> None:
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    value = matrix_of("csr", data.draw(arrays_of_matrix(shape, "float64")), shape, "int32")
    bound = st.integers(-5, 5)
    ends = [data.draw(bound) for _ in range(4)]
    ids = data.draw(st.lists(st.integers(-shape[0], shape[0] - 1), min_size=1, max_size=4))
    a = value.toarray()
    i, j, k, m = ends
    wanted = (a[i:j], a[:, k:m], a[i:j, k:m], a[i:j:-1, ::2], a[ids], a[ids][:, ::-1])
    for z, w in zip(functions_of_parts()(value, *ends, ids), wanted, strict=True):
        np.testing.assert_array_equal(dense(z), w)


@cache
def functions_of_parts() -> Any:
    """Compile parts of a matrix between symbolic ends, and rows at symbolic positions."""
    x, ids = sparse.csr_array("x"), T.lvector("ids")
    i, j, k, m = T.lscalars("i", "j", "k", "m")
    outputs = [x[i:j], x[:, k:m], x[i:j, k:m], x[i:j:-1, ::2], x[ids], x[ids][:, ::-1]]
    return symcomp.function([x, i, j, k, m, ids], outputs, mode=MODE)
