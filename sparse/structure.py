"""Linear functions of the whole matrix, stored or not: transposes, signs, joins, parts, rows.

Their gradients are "regular": what the gradient of the result has outside of the pattern of the
operand goes to the operand, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import minimum
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.shape import ShapeI, shape_tuple
from symcomp.sparse import values
from symcomp.sparse.components import Assemble, lengths_vector
from symcomp.sparse.constructors import as_indices, from_triplets
from symcomp.sparse.convert import asformat, compressed
from symcomp.sparse.op import SparseOp, as_scalar, as_sparse_variable, length
from symcomp.sparse.patterns import check_index_vectors
from symcomp.sparse.type import SparseType

# -- transposes and signs


@record
class Transpose(SparseOp):
    """z = x^T.   (n, m) -> (m, n); CSR becomes CSC and CSC CSR, without copying"""

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        format = {"csr": "csc", "csc": "csr"}.get(x.type.format, x.type.format)
        return [x.type.clone(format=format, shape=x.type.shape[::-1])]

    def perform(self, x: Any) -> Any:
        return x.T

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [self(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def transpose(x: Any) -> Any:
    """Return the transpose of a sparse matrix: of CSR as CSC, and the reverse.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.transpose(sparse.csr_matrix("x", shape=(2, 3))).type
    SparseType(csc, float64, (3, 2))
    """
    x = as_sparse_variable(x)
    return Transpose()(asformat(x, "csr") if x.type.format == "bsr" else x)


@record
class Neg(SparseOp):
    """z = -x"""

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        if x.dtype == "bool":
            raise DTypeError(f"neg: {x} ({x.type}): bool has no sign")
        return [x.type]

    def perform(self, x: Any) -> Any:
        return -x

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [self(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def neg(x: Any) -> Any:
    """Return ``-x``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.neg(sparse.eye(2))).eval()
    array([[-1.,  0.],
           [ 0., -1.]])
    """
    return Neg()(x)


# -- fewer or more entries


@record
class Remove0(SparseOp):
    """z = x without its stored zeros."""

    def as_inputs(self, x: Any) -> list[Variable]:
        return [compressed(x)]

    def output_types(self, x: Any) -> list[Type]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        x = x.copy()
        x.eliminate_zeros()
        return x

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]


@record
class DropZeros(Op):
    """data', indices', indptr' = the entries that are not 0.   Inputs: data, indices, indptr"""

    multiple_outputs = True
    no_derivative = "it takes the place of Remove0 in compiled functions"

    def output_types(self, data: Any, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("remove0", indices, indptr)
        return [
            TensorType(data.dtype, (None,)), TensorType(indices.dtype, (None,)), indptr.type
        ]  # fmt: skip

    def perform(self, data: Any, indices: Any, indptr: Any) -> tuple[Any, ...]:
        kept = data != 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return data[kept], indices[kept], before[indptr].astype(indptr.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), shapes[2]]


def remove0(x: Any) -> Any:
    """Return a sparse matrix without its stored zeros.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.remove0(x).eval({x: scipy.sparse.diags_array([0.0, 2.0])}).nnz
    1
    """
    return Remove0()(x)


def ensure_sorted_indices(x: Any) -> Any:
    """Return ``x``: the indices of every sparse matrix in a graph are sorted.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.ensure_sorted_indices(sparse.eye(2)).eval().indices
    array([0, 1], dtype=int32)
    """
    return as_sparse_variable(x)


def clean(x: Any) -> Any:
    """Return a sparse matrix without stored zeros and with sorted indices.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.clean(sparse.csr_from_dense([[1.0, 0.0]])).eval().nnz
    1
    """
    return remove0(ensure_sorted_indices(x))


# -- parts


@record
class Crop(SparseOp):
    """z = x[start:end] (axis 0) or x[:, start:end] (axis 1), with 0 <= start <= end <= length."""

    axis: int
    known: int | None = None

    def output_types(self, x: Any, start: Any, end: Any) -> list[Type]:
        shape = list(x.type.shape)
        shape[self.axis] = self.known
        return [x.type.clone(shape=shape)]

    def perform(self, x: Any, start: Any, end: Any) -> Any:
        part = slice(int(start), int(end))
        return x[part] if self.axis == 0 else x[:, part]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, start, _ = inputs
        n = as_scalar(length(x, self.axis))
        return [Embed(self.axis, x.type.shape[self.axis])(output_grads[0], start, n), None, None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


@record
class Embed(SparseOp):
    """z = zeros, n long on ``axis``, but for x from ``start`` on.   Inputs: x, start, n"""

    axis: int
    known: int | None = None

    def output_types(self, x: Any, start: Any, n: Any) -> list[Type]:
        shape = list(x.type.shape)
        shape[self.axis] = self.known
        return [x.type.clone(shape=shape)]

    def perform(self, x: Any, start: Any, n: Any) -> Any:
        first, total_length = int(start), int(n)
        rest = total_length - first - x.shape[self.axis]
        empty = [list(x.shape), list(x.shape)]
        empty[0][self.axis], empty[1][self.axis] = first, rest
        zeros = [values.scipy_sparse.csr_array(tuple(s), dtype=x.dtype) for s in empty]
        stack = values.scipy_sparse.hstack if self.axis else values.scipy_sparse.vstack
        return stack([zeros[0], x, zeros[1]], format=x.format)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, start, _ = inputs
        end = start + as_scalar(length(x, self.axis))
        known = x.type.shape[self.axis]
        return [cropped(output_grads[0], self.axis, start, end, known), None, None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


def cropped(x: Any, axis: int, start: Any, end: Any, known: int | None = None) -> Any:
    """Return the part of a matrix between two positions that are within its length."""
    return Crop(axis, known)(compressed(x), as_scalar(start), as_scalar(end))


@record
class TakeRows(SparseOp):
    """z = x[ids] (axis 0) or x[:, ids] (axis 1); ids are from 0 to the length - 1."""

    axis: int

    def output_types(self, x: Any, ids: Any) -> list[Type]:
        check_index_vectors("getitem", ids)
        shape = list(x.type.shape)
        shape[self.axis] = ids.type.shape[0]
        return [x.type.clone(shape=shape)]

    def perform(self, x: Any, ids: Any) -> Any:
        values.check_range(ids, x.shape[self.axis], f"getitem: positions on axis {self.axis}")
        return x[ids] if self.axis == 0 else x[:, ids]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, ids = inputs
        n = as_scalar(length(x, self.axis))
        return [PutRows(self.axis, x.type.shape[self.axis])(output_grads[0], ids, n), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]


@record
class PutRows(SparseOp):
    """z = zeros, n long on ``axis``, to whose row ids_k row k of x is added (columns for axis 1).

    Inputs: x, ids, n.
    """

    axis: int
    known: int | None = None

    def output_types(self, x: Any, ids: Any, n: Any) -> list[Type]:
        check_index_vectors("getitem", ids)
        shape = list(x.type.shape)
        shape[self.axis] = self.known
        return [x.type.clone(shape=shape)]

    def perform(self, x: Any, ids: Any, n: Any) -> Any:
        values.check_range(ids, int(n), f"getitem: positions on axis {self.axis}")
        coo = x.tocoo()
        places = list(coo.coords)
        places[self.axis] = ids[places[self.axis]]
        shape = list(x.shape)
        shape[self.axis] = int(n)
        z = values.scipy_sparse.coo_array((coo.data, tuple(places)), shape=tuple(shape))
        return z.asformat(x.format)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [TakeRows(self.axis)(output_grads[0], inputs[1]), None, None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


@record
class TakePairs(SparseOp):
    """z_k = x[rows_k, columns_k], a dense vector; the positions are within the shape."""

    def as_inputs(self, x: Any, rows: Any, columns: Any) -> list[Variable]:
        return [compressed(x), rows, columns]

    def output_types(self, x: Any, rows: Any, columns: Any) -> list[Type]:
        check_index_vectors("getitem", rows, columns)
        return [TensorType(x.dtype, rows.type.shape)]

    def perform(self, x: Any, rows: Any, columns: Any) -> Any:
        for axis, places in enumerate((rows, columns)):
            values.check_range(places, x.shape[axis], f"getitem: positions on axis {axis}")
        if not len(rows):
            return np.zeros(0, x.dtype)
        found = values.scipy_sparse.csr_array(x)[rows, columns]
        return found.toarray() if values.is_sparse(found) else np.asarray(found)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, rows, columns = inputs
        lengths = (length(x, 0), length(x, 1))
        g = from_triplets(output_grads[0], rows, columns, lengths, x.type.format, x.type.container)
        return [g, None, None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


# -- diagonals


def diag(x: Any) -> TensorVariable:
    """Return the main diagonal of a sparse matrix, a dense vector.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.diag(x).eval({x: scipy.sparse.diags_array([2.0, 3.0])})
    array([2., 3.])
    """
    x = compressed(x)
    rows, columns = length(x, 0), length(x, 1)
    known = isinstance(rows, int) and isinstance(columns, int)
    n = min(rows, columns) if known else minimum(as_scalar(rows), as_scalar(columns))
    places = arange(n, dtype=x.type.index_dtype)
    return TakePairs()(x, places, places)


def square_diagonal(diag: Any) -> Any:
    """Return the square CSC matrix with this diagonal.

    Parameters
    ----------
    diag : vector

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> v = T.dvector("v")
    >>> sparse.square_diagonal(v).eval({v: [1.0, 2.0]}).toarray()
    array([[1., 0.],
           [0., 2.]])
    """
    v = as_tensor_variable(diag)
    if v.ndim != 1:
        raise ShapeError(f"square_diagonal: {v} ({v.type}) is no vector")
    (n,) = shape_tuple(v)
    kind = SparseType("csc", v.dtype, (v.type.shape[0],) * 2)
    places = arange(n, dtype="int32")
    pointers = arange(as_scalar(n) + 1, dtype="int32")
    return Assemble(kind)(v, places, pointers, lengths_vector(n, n))


def take_list(x: Any, ids: Any, axis: int) -> Any:
    """Return rows (axis 0) or columns of a sparse matrix; negative positions count from the end."""
    x, ids = compressed(x), as_indices("getitem", "positions", ids)
    wrapped = wrapped_positions(ids, length(x, axis))
    return TakeRows(axis)(x, wrapped)


def wrapped_positions(ids: TensorVariable, n: Any) -> TensorVariable:
    """Return positions with the negative ones counted from the end."""
    return ids + (ids < 0) * as_scalar(n).astype(ids.dtype)


__all__ = [
    "clean", "diag", "ensure_sorted_indices", "neg", "Neg", "Remove0", "remove0",
    "square_diagonal", "transpose", "Transpose",
]  # fmt: skip
