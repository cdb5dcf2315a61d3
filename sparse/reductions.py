"""Sums, means and extremes of sparse matrices over rows, columns or all, and reductions of
segments: the elements between two pointers, or with one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.autodiff.markers import disconnected_grad
from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast as dense_cast
from symcomp.ops.elementwise.scalar_math import exp, second
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor
from symcomp.ops.reductions.functions import sum as dense_sum
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.shape import normalize_axis, shape_tuple
from symcomp.ops.sorting.functions import argsort
from symcomp.sparse.components import SparseParts, entry, major_of, parts_of, with_data
from symcomp.sparse.constructors import as_indices
from symcomp.sparse.convert import asformat, compressed, csr_from_dense
from symcomp.sparse.op import SparseOp, as_scalar, as_sparse_variable, length
from symcomp.sparse.patterns import InRange, MajorIndices, Pointers, check_index_vectors, last_index
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.values import major_axis
from symcomp.sparse.with_dense import dense_entries

# -- segments between pointers

_UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


@record
class SegmentReduce(Op):
    """z_i = the sum, max or min of data_k, indptr_i <= k < indptr_{i+1}.   (n, ...), (m + 1,) ->
    (m, ...)

    An empty segment has the sum 0, and 0 for its extremes, too.
    """

    kind: str

    def output_types(self, data: Any, indptr: Any) -> list[Type]:
        check_index_vectors("segments", indptr)
        if self.kind not in _UFUNCS:
            raise ValueError(f"segments: there is no reduction {self.kind!r}")
        if self.kind != "sum" and dtypes.is_complex(data.dtype):
            raise DTypeError(f"segment_{self.kind}: {data} is {data.dtype}, which has no order")
        pointers = indptr.type.shape[0]
        dtype = dtypes.accumulator(data.dtype) if self.kind == "sum" else data.dtype
        n = None if pointers is None else pointers - 1
        return [TensorType(dtype, (n, *data.type.shape[1:]))]

    def perform(self, data: Any, indptr: Any) -> Any:
        if indptr[-1] > len(data):
            raise ShapeError(f"segments: they end at {indptr[-1]}, there are {len(data)} elements")
        ufunc = _UFUNCS[self.kind]
        dtype = dtypes.accumulator(data.dtype.name) if self.kind == "sum" else data.dtype
        z = np.zeros((len(indptr) - 1, *data.shape[1:]), dtype)
        filled = np.flatnonzero(indptr[1:] > indptr[:-1])
        if len(filled):
            whole = data[: int(indptr[-1])]
            z[filled] = ufunc.reduceat(whole, indptr[filled], axis=0, dtype=z.dtype)
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(shapes[1][0] - 1, *shapes[0][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        data, indptr = inputs
        spread = spread_segments(output_grads[0], indptr, data)
        return [spread if self.kind == "sum" else spread * self._share(inputs, outputs), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (dx, _), indptr = tangents, inputs[1]
        dx = dx if self.kind == "sum" else dx * self._share(inputs, outputs)
        return [SegmentReduce("sum")(dx, indptr)]

    @staticmethod
    def _share(inputs: Any, outputs: Any) -> Any:
        """Return 1 / (number of ties) at the extreme elements, else 0."""
        (data, indptr), (z,) = inputs, outputs
        at = eq(data, spread_segments(z, indptr, data))
        ties = SegmentReduce("sum")(at, indptr)
        share = dense_cast(1 / spread_segments(ties, indptr, data), data.dtype)
        return switch(at, share, 0)


def spread_segments(z: Any, indptr: Any, data: Any) -> Any:
    """Return for each element of ``data`` what ``z`` has for its segment."""
    return getitem(z, MajorIndices()(indptr, as_scalar(shape_tuple(data)[0])))


# -- segments by number


def _segments(name: str, data: Any, segment_ids: Any, num_segments: Any) -> tuple[Any, Any, Any]:
    data, ids = as_tensor_variable(data), as_indices(name, "segment_ids", segment_ids)
    if data.ndim < 1:
        raise ShapeError(f"{name}: data is {data} ({data.type}); at least one axis is needed")
    m, n = data.type.shape[0], ids.type.shape[0]
    if m is not None and n is not None and m != n:
        raise ShapeError(f"{name}: data has {m} rows, segment_ids {n} elements")
    if num_segments is None:
        count = last_index(ids) + 1
    else:
        count = dense_cast(as_tensor_variable(num_segments), "int64")
        ids = InRange(name)(ids, count)
    return data, ids, count


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> TensorVariable:
    """Return the sums of the rows of ``data`` with equal numbers.

    Parameters
    ----------
    data : tensor, (n, ...)
    segment_ids : integer vector, (n,)
        In any order, not negative.
    num_segments : int or scalar, optional
        By default one more than the largest number.

    Returns
    -------
    TensorVariable
        Row i is the sum of the rows with number i, 0 if there are none.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.segment_sum([1.0, 2.0, 3.0], [0, 2, 0]).eval()
    array([4., 0., 2.])
    """
    data, ids, count = _segments("segment_sum", data, segment_ids, num_segments)
    dtype = dtypes.accumulator(data.dtype)
    zeros = alloc(as_tensor_variable(0, dtype=dtype), count, *shape_tuple(data)[1:])
    return inc_subtensor(getitem(zeros, ids), cast_to(data, dtype))


def segment_mean(data: Any, segment_ids: Any, num_segments: Any = None) -> TensorVariable:
    """Return the means of the rows of ``data`` with equal numbers, 0 where there are none; see
    ``segment_sum``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> sparse.segment_mean(T.constant([1.0, 2.0, 6.0]), [0, 0, 1], 2).eval()
    array([1.5, 6. ])
    """
    data, ids, count = _segments("segment_mean", data, segment_ids, num_segments)
    dtype = dtypes.to_float(data.dtype)
    total = segment_sum(cast_to(data, dtype), ids, count)
    one = alloc(as_tensor_variable(1, dtype="int64"), shape_tuple(ids)[0])
    counts = _at_least_one(segment_sum(one, ids, count))
    return total / cast_to(counts, dtype).dimshuffle(0, *("x",) * (data.ndim - 1))


def _at_least_one(counts: TensorVariable) -> Any:
    """Return counts, with 0 replaced by 1."""
    return switch(eq(counts, 0), 1, counts)


def segment_max(data: Any, segment_ids: Any, num_segments: Any = None) -> TensorVariable:
    """Return the largest rows of ``data`` with equal numbers, element by element; 0 where there are
    none. Ties share the gradient. See ``segment_sum``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> sparse.segment_max(T.constant([1.0, 2.0, 6.0]), [0, 0, 1], 2).eval()
    array([2., 6.])
    """
    return _segment_extreme("max", data, segment_ids, num_segments)


def segment_min(data: Any, segment_ids: Any, num_segments: Any = None) -> TensorVariable:
    """Return the smallest rows of ``data`` with equal numbers; see ``segment_max``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> sparse.segment_min(T.constant([1.0, 2.0, 6.0]), [0, 0, 1], 2).eval()
    array([1., 6.])
    """
    return _segment_extreme("min", data, segment_ids, num_segments)


def _segment_extreme(kind: str, data: Any, segment_ids: Any, num_segments: Any) -> TensorVariable:
    data, ids, count = _segments(f"segment_{kind}", data, segment_ids, num_segments)
    order = argsort(ids, kind="stable")
    pointers = Pointers()(getitem(ids, order), count)
    return SegmentReduce(kind)(getitem(data, order), pointers)


# -- sums


@record
class SpSum(SparseOp):
    """z = the sum of x over all elements (axis None), over rows (0) or over columns (1); dense.

    The gradient has the pattern of x if ``sparse_grad``; else an entry everywhere.
    """

    axis: int | None
    sparse_grad: bool = False

    def as_inputs(self, x: Any) -> list[Variable]:
        return [compressed(x)]

    def output_types(self, x: Any) -> list[Type]:
        shape = [n for a, n in enumerate(x.type.shape) if self.axis not in (None, a)]
        return [TensorType(dtypes.accumulator(x.dtype), shape if self.axis is not None else ())]

    def perform(self, x: Any) -> Any:
        dtype = dtypes.accumulator(x.dtype.name)
        return np.asarray(x.sum(self.axis, dtype=dtype)).reshape(() if self.axis is None else (-1,))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [() if self.axis is None else (length(node.inputs[0], 1 - self.axis),)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        order = {None: ("x", "x"), 0: ("x", 0), 1: (0, "x")}[self.axis]
        spread = gz.dimshuffle(*order)
        if self.sparse_grad:
            parts = parts_of(x)
            found = dense_entries(x, spread, parts)
            return [with_data(x, second(cast_to(parts.data, gz.dtype), found), parts)]
        full = alloc(spread, length(x, 0), length(x, 1))
        return [asformat(csr_from_dense(full), x.type.format)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def sp_sum(x: Any, axis: Any = None, sparse_grad: bool = False) -> TensorVariable:
    """Return the sum of a sparse matrix over an axis, dense.

    Parameters
    ----------
    x : sparse matrix
    axis : int, optional
        0: a sum for each column; 1: for each row; by default one of all.
    sparse_grad : bool
        True: the gradient has the pattern of ``x``. False: it is that with respect to all elements,
        stored or not, so that it has an entry everywhere.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.sp_sum(x, axis=1).eval({x: scipy.sparse.csr_array([[1.0, 2.0], [0.0, 4.0]])})
    array([3., 4.])
    """
    x = as_sparse_variable(x)
    where = None if axis is None else normalize_axis("sp_sum", axis, 2)
    return SpSum(where, bool(sparse_grad))(x)


def sum_parts(x: SparseVariable, axis: int | None, parts: SparseParts) -> TensorVariable:
    """Return the sums of a CSR or CSC matrix, computed of its arrays."""
    data = parts.data
    if axis is None:
        return dense_sum(data)
    if axis != major_axis(x.type.format):
        return SegmentReduce("sum")(data, parts.indptr)
    dtype = dtypes.accumulator(x.dtype)
    n = entry(parts.shape, 1 - axis)
    zeros = alloc(as_tensor_variable(0, dtype=dtype), n)
    return inc_subtensor(getitem(zeros, parts.indices), cast_to(data, dtype))


def mean(x: Any, axis: Any = None, sparse_grad: bool = False) -> TensorVariable:
    """Return the mean of all elements of a sparse matrix over an axis, dense; see ``sp_sum``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.mean(sparse.eye(2), axis=0).eval()
    array([0.5, 0.5])
    """
    x = as_sparse_variable(x)
    where = None if axis is None else normalize_axis("mean", axis, 2)
    total = sp_sum(x, where, sparse_grad)
    lengths = [as_scalar(length(x, a)) for a in (0, 1) if where in (None, a)]
    count = lengths[0] * lengths[1] if len(lengths) == 2 else lengths[0]
    dtype = dtypes.to_float(x.dtype)
    return cast_to(total, dtypes.upcast(total.dtype, dtype)) / cast_to(count, dtype)


# -- extremes


def _extreme(kind: str, x: Any, axis: Any) -> TensorVariable:
    x = compressed(x)
    where = None if axis is None else normalize_axis(kind, axis, 2)
    if where == major_axis(x.type.format):
        x = asformat(x, "csc" if x.type.format == "csr" else "csr")
    parts = parts_of(x)
    reduce = SegmentReduce(kind)
    whole = entry(parts.shape, 1 - major_axis(x.type.format))
    counts: Any
    if where is None:
        count = entry(parts.shape, 0) * entry(parts.shape, 1)
        stored = as_scalar(shape_tuple(parts.data)[0])
        ends = as_tensor_variable([as_scalar(0), stored])
        found, counts, whole = getitem(reduce(parts.data, ends), 0), stored, count
    else:
        found = reduce(parts.data, parts.indptr)
        counts = getitem(parts.indptr, slice(1, None)) - getitem(parts.indptr, slice(None, -1))
    zero = as_tensor_variable(0, dtype=x.dtype)
    beyond = found < zero if kind == "max" else found > zero
    # Where not all is stored there is a zero, too.
    return switch((counts < whole) & beyond, zero, found)


def max(x: Any, axis: Any = None) -> TensorVariable:
    """Return the largest elements of a sparse matrix over an axis, dense.

    Elements that are not stored are zeros like others, but have no gradient.

    Parameters
    ----------
    x : sparse matrix
    axis : int, optional
        0: for each column; 1: for each row; by default of all.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.max(x, axis=1).eval({x: scipy.sparse.csr_array([[-1.0, -2.0], [0.0, -4.0]])})
    array([-1.,  0.])
    """
    return _extreme("max", x, axis)


def min(x: Any, axis: Any = None) -> TensorVariable:
    """Return the smallest elements of a sparse matrix over an axis, dense; see ``max``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.min(sparse.eye(2), axis=0).eval()
    array([0., 0.])
    """
    return _extreme("min", x, axis)


# -- softmax


def structured_softmax(x: Any) -> Any:
    """Return the softmax of each row of a sparse matrix over its stored entries.

    An element that is not stored counts as minus infinity: it stays without an entry. So attention
    over the edges of a graph is written.

    Parameters
    ----------
    x : sparse matrix

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.structured_softmax(x)
    >>> z.eval({x: scipy.sparse.csr_array([[1.0, 1.0], [0.0, 4.0]])}).toarray()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    x = compressed(x)
    rows = asformat(x, "csr")
    parts = parts_of(rows)
    data = parts.data
    if dtypes.is_discrete(data.dtype):
        data = cast_to(data, dtypes.to_float(data.dtype))
    row = major_of(parts)
    # The largest entry is subtracted for the range of exp; the result does not depend on it.
    top = disconnected_grad(SegmentReduce("max")(data, parts.indptr))
    powers = exp(data - getitem(top, row))
    sums = SegmentReduce("sum")(powers, parts.indptr)
    return asformat(with_data(rows, powers / getitem(sums, row), parts), x.type.format)


def masked_softmax(x: Any, mask: Any) -> Any:
    """Return the softmax of each row of a dense matrix over the pattern of a sparse one.

    Parameters
    ----------
    x : dense matrix
    mask : sparse matrix
        Its stored entries, whatever their values, say which elements take part.

    Returns
    -------
    sparse matrix
        With the pattern of ``mask``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> sparse.masked_softmax(T.constant([[1.0, 1.0], [1.0, 5.0]]), sparse.eye(2)).eval().data
    array([1., 1.])
    """
    mask = asformat(compressed(mask), "csr")
    dense = as_tensor_variable(x)
    if dense.ndim != 2:
        raise ShapeError(f"masked_softmax: {dense} ({dense.type}) is no matrix")
    parts = parts_of(mask)
    return structured_softmax(with_data(mask, dense_entries(mask, dense, parts), parts))


__all__ = [
    "masked_softmax", "max", "mean", "min", "segment_max", "segment_mean", "segment_min",
    "segment_sum", "sp_sum", "SpSum", "structured_softmax",
]  # fmt: skip
