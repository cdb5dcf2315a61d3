"""Lowerings: for each op on sparse matrices, what computes the same of their arrays.

A lowering takes a node and returns what takes the place of its output, with Components of the
inputs and Assemble around the result; where a result is used by another op on sparse matrices, both
cancel (``rules.py``). So programs work on arrays, and SciPy's objects are made for results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import cast as dense_cast
from symcomp.ops.elementwise.scalar_math import mul as dense_mul
from symcomp.ops.elementwise.scalar_math import neg as dense_neg
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.joining import join
from symcomp.ops.shapes.shape import ShapeI, length_vector
from symcomp.sparse.components import Assemble, SparseParts, entry, parts_of
from symcomp.sparse.convert import (
    AsFormat,
    Cast,
    DenseFromSparse,
    NonzeroPattern,
    ScatterDense,
    SparseFromDense,
    TransposeCompressed,
)
from symcomp.sparse.joins import JoinSparse
from symcomp.sparse.op import SparseShape
from symcomp.sparse.pairwise import (
    COMPARISONS,
    TRUE_AT_ZERO,
    AddSS,
    CombinePatterns,
    CompareSS,
    ExtremeSS,
    MulSS,
)
from symcomp.sparse.patterns import (
    InRange,
    LookupPairs,
    MajorIndices,
    common_indices,
    pointers_of,
    total,
)
from symcomp.sparse.products import CompressedMatMul, TrueDot
from symcomp.sparse.reductions import SpSum, sum_parts
from symcomp.sparse.slicing import CropMinor, JoinMinor, PutMajor, TakeMajor, same_number
from symcomp.sparse.structure import (
    Crop,
    DropZeros,
    Embed,
    Neg,
    PutRows,
    Remove0,
    TakePairs,
    TakeRows,
    Transpose,
)
from symcomp.sparse.type import SparseType
from symcomp.sparse.values import major_axis
from symcomp.sparse.with_dense import MulSD, dense_entries

Lowering = Callable[[Apply], Any]


def _result(node: Apply, parts: Any) -> Any:
    """Return the matrix of these arrays, of the type of the node's output."""
    kind = node.outputs[0].type
    data, indices, indptr, shape = parts
    vectors = (cast_to(v, kind.index_dtype) for v in (indices, indptr))
    return Assemble(kind)(data, *vectors, shape)


def _reversed(shape: Any) -> Any:
    return length_vector([entry(shape, 1), entry(shape, 0)])


def _minor(kind: SparseType, parts: SparseParts) -> Any:
    """Return the length of the minor axis."""
    axis = 1 - major_axis(kind.format)
    known = kind.shape[axis]
    return (
        as_tensor_variable(known, dtype="int64") if known is not None else entry(parts.shape, axis)
    )


def _shape(node: Apply) -> Any:
    return parts_of(node.inputs[0]).shape


def _transpose(node: Apply) -> Any:
    (x,) = node.inputs
    data, indices, indptr, shape = parts_of(x)
    if x.type.format == "coo":
        return _assembled_coo(node, data, indptr, indices, _reversed(shape))
    return _result(node, (data, indices, indptr, _reversed(shape)))


def _assembled_coo(node: Apply, data: Any, rows: Any, columns: Any, shape: Any) -> Any:
    """Return a COO matrix whose entries are sorted by columns, sorted by rows."""
    pointers = pointers_of(columns, entry(shape, 1))
    turned = TransposeCompressed()(data, rows, pointers, entry(shape, 0))
    data, columns, pointers = turned
    rows = MajorIndices()(pointers, ShapeI(0)(columns))
    return _result(node, (data, rows, columns, shape))


def _neg(node: Apply) -> Any:
    parts = parts_of(node.inputs[0])
    return _result(node, parts._replace(data=dense_neg(parts.data)))


def _cast(node: Apply) -> Any:
    parts = parts_of(node.inputs[0])
    return _result(node, parts._replace(data=dense_cast(parts.data, node.outputs[0].dtype)))


def _dense_from_sparse(node: Apply) -> Any:
    (x,) = node.inputs
    data, indices, indptr, shape = parts_of(x)
    if x.type.format == "coo":
        indices, indptr = indptr, pointers_of(indices, entry(shape, 0))
    format = "csc" if x.type.format == "csc" else "csr"
    n = _minor(x.type.clone(format=format), SparseParts(data, indices, indptr, shape))
    dense = ScatterDense()(data, indices, indptr, n)
    return dimshuffle(dense, 1, 0) if format == "csc" else dense


def _sparse_from_dense(node: Apply) -> Any:
    (x,) = node.inputs
    turned = dimshuffle(x, 1, 0) if node.op.format == "csc" else x
    return _result(node, (*NonzeroPattern()(turned), x.shape))


def _as_format(node: Apply) -> Any:
    (x,), target = node.inputs, node.op.format
    data, indices, indptr, shape = parts_of(x)
    source = x.type.format
    if source == "coo":
        indices, indptr = indptr, pointers_of(indices, entry(shape, 0))
        source = "csr"
    if source != target and (source == "csc" or target == "csc"):
        kind = x.type.clone(format=source)
        n = _minor(kind, SparseParts(data, indices, indptr, shape))
        data, indices, indptr = TransposeCompressed()(data, indices, indptr, n)
    if target == "coo":
        rows = MajorIndices()(indptr, ShapeI(0)(indices))
        indices, indptr = rows, indices
    return _result(node, (data, indices, indptr, shape))


def _true_dot(node: Apply) -> Any:
    x, y = node.inputs
    a, b = parts_of(x), parts_of(y)
    arrays = [_arrays(a, x.type), _arrays(b, y.type)]
    if x.type.format == "csc":  # the arrays of CSC are those of the transpose in CSR
        arrays.reverse()
    shape = length_vector([entry(a.shape, 0), entry(b.shape, 1)])
    return _result(node, (*CompressedMatMul()(*_matched(arrays)), shape))


def _arrays(parts: SparseParts, kind: SparseType) -> list[Any]:
    """Return data, indices, indptr and n_minor."""
    return [parts.data, parts.indices, parts.indptr, _minor(kind, parts)]


def _matched(arrays: list[list[Any]]) -> list[Any]:
    """Return the arrays of two matrices, their indices at a common dtype."""
    (d, i, p, n), (e, j, q, m) = arrays
    i, p, j, q = common_indices(i, p, j, q)
    return [d, i, p, n, e, j, q, m]


def _pairwise(node: Apply) -> Any:
    x, y = node.inputs
    a, b = parts_of(x), parts_of(y)
    kind = node.op.kind
    i, p, j, q = common_indices(a.indices, a.indptr, b.indices, b.indptr)
    # The op compares the lengths of the major axis itself.
    n = same_number(kind, _minor(x.type, a), _minor(y.type, b))
    return _result(node, (*CombinePatterns(kind)(a.data, i, p, b.data, j, q, n), a.shape))


def _compare(node: Apply) -> Any:
    """Compare entries; dense matrices where two zeros give True, which nearly all elements are."""
    if node.op.kind not in TRUE_AT_ZERO:
        return _pairwise(node)
    x, y = node.inputs
    a, b = parts_of(x), parts_of(y)
    n = same_number(node.op.kind, _minor(x.type, a), _minor(y.type, b))
    first, second = (ScatterDense()(p.data, p.indices, p.indptr, n) for p in (a, b))
    second = SameLengths(node.op.kind, ((0, 0),))(first, second)
    _, compare = COMPARISONS[node.op.kind]
    return _result(node, (*NonzeroPattern()(compare(first, second)), a.shape))


def _mul_s_d(node: Apply) -> Any:
    x, dense = node.inputs
    parts = parts_of(x)
    data = dense_mul(parts.data, dense_entries(x, dense, parts))
    return _result(node, parts._replace(data=data))


def _sum(node: Apply) -> Any:
    (x,) = node.inputs
    return sum_parts(x, node.op.axis, parts_of(x))


def _remove0(node: Apply) -> Any:
    data, indices, indptr, shape = parts_of(node.inputs[0])
    return _result(node, (*DropZeros()(data, indices, indptr), shape))


def _join(node: Apply) -> Any:
    axis, format = node.op.axis, node.op.format
    name = ("vstack", "hstack")[axis]
    parts = [parts_of(x) for x in node.inputs]
    vectors = common_indices(*(v for p in parts for v in p[1:3]))
    indices, indptrs = vectors[::2], vectors[1::2]
    datas = [p.data for p in parts]
    along = [entry(p.shape, axis) for p in parts]
    across = entry(parts[0].shape, 1 - axis)
    for p in parts[1:]:
        across = same_number(name, across, entry(p.shape, 1 - axis))
    shape = _lengths(axis, total(along), across)
    if axis == major_axis(format):
        pointers = concatenated_pointers(indices, indptrs)
        return _result(node, (join(0, *datas), join(0, *indices), pointers, shape))
    flat = [v for group in zip(datas, indices, indptrs, along, strict=True) for v in group]
    return _result(node, (*JoinMinor()(*flat), shape))


def _lengths(axis: int, along: Any, across: Any) -> Any:
    """Return the shape with one length on ``axis`` and another on the other axis."""
    return length_vector([along, across] if axis == 0 else [across, along])


def concatenated_pointers(indices: Sequence[Any], indptrs: Sequence[Any]) -> Any:
    """Return the pointers of matrices below one another."""
    before = as_tensor_variable(0, dtype=indices[0].dtype)
    found = [indptrs[0]]
    for i, p in zip(indices[:-1], indptrs[1:], strict=True):
        before = before + cast_to(ShapeI(0)(i), p.dtype)
        found.append(getitem(p, slice(1, None)) + before)
    return join(0, *found)


def _crop(node: Apply) -> Any:
    x, start, end = node.inputs
    axis = node.op.axis
    data, indices, indptr, shape = parts_of(x)
    lengths = _lengths(axis, end - start, entry(shape, 1 - axis))
    if axis != major_axis(x.type.format):
        return _result(node, (*CropMinor()(data, indices, indptr, start, end), lengths))
    first, last = getitem(indptr, start), getitem(indptr, end)
    entries = slice(first, last)
    pointers = getitem(indptr, slice(start, end + 1)) - first
    return _result(node, (getitem(data, entries), getitem(indices, entries), pointers, lengths))


def _embed(node: Apply) -> Any:
    x, start, n = node.inputs
    axis = node.op.axis
    data, indices, indptr, shape = parts_of(x)
    lengths = _lengths(axis, n, entry(shape, 1 - axis))
    if axis != major_axis(x.type.format):
        moved = indices + cast_to(start, indices.dtype)
        return _result(node, (data, moved, indptr, lengths))
    zero = as_tensor_variable(0, dtype=indptr.dtype)
    behind = n - start - entry(shape, axis)
    last = getitem(indptr, -1)
    pointers = join(0, alloc(zero, start), indptr, alloc(last, behind))
    return _result(node, (data, indices, pointers, lengths))


def _by_positions(node: Apply, op: Any, *more: Any) -> Any:
    """Take or put slices of the major axis; those of the other one of the transpose."""
    x, ids = node.inputs[:2]
    axis = node.op.axis
    data, indices, indptr, shape = parts_of(x)
    along = more[0] if more else ShapeI(0)(ids)
    other = entry(shape, 1 - axis)
    lengths = _lengths(axis, along, other)
    ids = cast_to(ids, indices.dtype)
    if axis == major_axis(x.type.format):
        return _result(node, (*op(data, indices, indptr, ids, *more), lengths))
    turned = TransposeCompressed()(data, indices, indptr, entry(shape, axis))
    found = op(*turned, ids, *more)
    return _result(node, (*TransposeCompressed()(*found, other), lengths))


def _take_rows(node: Apply) -> Any:
    return _by_positions(node, TakeMajor())


def _put_rows(node: Apply) -> Any:
    return _by_positions(node, PutMajor(), node.inputs[2])


def _take_pairs(node: Apply) -> Any:
    x, *places = node.inputs
    data, indices, indptr, shape = parts_of(x)
    checked = [
        InRange(f"getitem: positions on axis {a}")(p, entry(shape, a)) for a, p in enumerate(places)
    ]
    axis = major_axis(x.type.format)
    arrays = common_indices(indices, indptr, checked[axis], checked[1 - axis])
    return LookupPairs()(data, *arrays)


#: For each op, the function that computes the same on arrays.
LOWERINGS: dict[type, Lowering] = {
    AddSS: _pairwise,
    AsFormat: _as_format,
    Cast: _cast,
    CompareSS: _compare,
    Crop: _crop,
    DenseFromSparse: _dense_from_sparse,
    Embed: _embed,
    ExtremeSS: _pairwise,
    JoinSparse: _join,
    MulSD: _mul_s_d,
    MulSS: _pairwise,
    Neg: _neg,
    PutRows: _put_rows,
    Remove0: _remove0,
    SparseFromDense: _sparse_from_dense,
    SparseShape: _shape,
    SpSum: _sum,
    TakePairs: _take_pairs,
    TakeRows: _take_rows,
    Transpose: _transpose,
    TrueDot: _true_dot,
}
