"""Matrices of blocks (BSR): their patterns as those of entries, and their products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.shape import ShapeI, known_length, shape_tuple
from symcomp.sparse import values
from symcomp.sparse.components import assembled, entry, parts_of
from symcomp.sparse.op import as_scalar, common_dtype
from symcomp.sparse.patterns import (
    VECTOR,
    check_index_vectors,
    check_lengths,
    conj,
    major_indices,
    total,
)
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.values import SparseArrays


@record
class BlocksAsRows(Op):
    """indices', indptr', place = the CSR pattern of a BSR one; entry k is element place_k of the
    flattened blocks.   Inputs: indices, indptr, rows and columns of a block
    """

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, indices: Any, indptr: Any, rows: Any, columns: Any) -> list[Type]:
        check_index_vectors("BlocksAsRows", indices, indptr)
        return [
            TensorType(indices.dtype, VECTOR),
            TensorType(indices.dtype, VECTOR),
            TensorType("int64", VECTOR),
        ]

    def perform(self, indices: Any, indptr: Any, rows: Any, columns: Any) -> tuple[Any, ...]:
        r, c = int(rows), int(columns)
        values.check_fits(indices.dtype.name, (), len(indices) * r * c)
        counts = np.diff(indptr)
        pointers = np.concatenate([[0], np.cumsum(np.repeat(counts * c, r))])
        row = major_indices(indptr)
        start, width = indptr[row] * r, counts[row]
        within = np.arange(len(indices)) - indptr[row]
        i, j = np.arange(r)[None, :, None], np.arange(c)[None, None, :]
        # Entries lie in the order block row, row, block, column.
        target = start[:, None, None] + i * width[:, None, None] + within[:, None, None]
        target = (target * c + j).ravel()
        place = np.empty(len(target), np.int64)
        place[target] = np.arange(len(target))
        minor = np.empty(len(target), indices.dtype)
        columns_of = indices[:, None, None] * c + j
        minor[target] = np.broadcast_to(columns_of, (len(indices), r, c)).ravel()
        return minor, pointers.astype(indices.dtype), place

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        _, _, rows, columns = node.inputs
        stored = shapes[0][0] * rows * columns
        return [(stored,), ((shapes[1][0] - 1) * rows + 1,), (stored,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * 3] * 4


def rows_of_blocks(x: SparseVariable) -> Any:
    """Return a BSR matrix in the format CSR, with all elements of its blocks."""
    data, indices, indptr, shape = parts_of(x)
    blocks = [as_tensor_variable(n, dtype="int64") for n in shape_tuple(data)[1:]]
    minor, pointers, place = BlocksAsRows()(indices, indptr, *blocks)
    entries = getitem(data.flatten(), place)
    return assembled(x.type, (entries, minor, pointers, shape), format="csr", known=x.type.shape)


@record
class RowsAsBlocks(Op):
    """indices', indptr', place = the BSR pattern that covers a CSR one; entry k becomes element
    place_k of the flattened blocks.   Inputs: indices, indptr
    """

    rows: int
    columns: int

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("RowsAsBlocks", indices, indptr)
        return [
            TensorType(indices.dtype, VECTOR),
            TensorType(indices.dtype, VECTOR),
            TensorType("int64", indices.type.shape),
        ]

    def perform(self, indices: Any, indptr: Any) -> tuple[Any, ...]:
        r, c = self.rows, self.columns
        n = len(indptr) - 1
        if n % r:
            raise ShapeError(f"tobsr: {n} rows are no multiple of the {r} rows of a block")
        major = major_indices(indptr)
        width = int(indices.max(initial=0)) // c + 1
        keys, number = np.unique((major // r) * width + indices // c, return_inverse=True)
        counts = np.bincount(keys // width, minlength=n // r)
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
        place = (number * r + major % r) * c + indices % c
        return (keys % width).astype(indices.dtype), pointers, place.astype(np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[0])
        return [(stored,), ((shapes[1][0] - 1) // self.rows + 1,), shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * 3] * 2


@record
class CheckedBlocks(Op):
    """z = the shape, a view; an error if its columns are no multiple of those of a block.   Inputs:
    n_minor, shape
    """

    columns: int

    no_derivative = "lengths do not depend on values"

    def output_types(self, n: Any, shape: Any) -> list[Type]:
        return [shape.type]

    def perform(self, n: Any, shape: Any) -> Any:
        if int(n) % self.columns:
            raise ShapeError(
                f"tobsr: {int(n)} columns are no multiple of the {self.columns} columns of a block"
            )
        return shape

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]

    view_map = {0: (1,)}


# -- products


def block_dot(x: SparseVariable, dense: TensorVariable) -> Any:
    """Return the product of a BSR matrix and a dense matrix or vector."""
    data, indices, indptr, shape = parts_of(x)
    dtype = common_dtype(x.dtype, dense.dtype)
    n = entry(shape, 1)
    return BlockDot(False)(cast_to(data, dtype), indices, indptr, n, cast_to(dense, dtype))


@record
class BlockDot(Op):
    """z = S D or, ``transposed``, S^T D, for a BSR matrix S.

    Inputs: data (blocks, (n, rows, columns)), indices, indptr, the columns of S; D, a vector or a
    matrix.
    """

    transposed: bool

    def output_types(self, data: Any, indices: Any, indptr: Any, n: Any, dense: Any) -> list[Type]:
        check_index_vectors("dot", indices, indptr)
        if data.ndim != 3 or dense.ndim not in (1, 2) or dense.dtype != data.dtype:
            raise DTypeError(
                f"{self}: {data.type} and {dense.type}; blocks and a vector or matrix of one dtype "
                "are needed"
            )
        kept = known_length(n) if self.transposed else None
        return [TensorType(data.dtype, (kept, *dense.type.shape[1:]))]

    def perform(self, data: Any, indices: Any, indptr: Any, n: Any, dense: Any) -> Any:
        rows = (len(indptr) - 1) * data.shape[1]
        n_minor = int(n) // max(data.shape[2], 1)
        check_lengths(data, indices)
        values.check_compressed(indices, indptr, len(indptr) - 1, n_minor, "a matrix of blocks")
        parts = SparseArrays(data, indices, indptr, (rows, int(n)))
        s = values.assemble("bsr", "array", parts)
        s = s.T if self.transposed else s
        if s.shape[1] != len(dense):
            raise ShapeError(
                f"dot: the sparse factor has shape {s.shape}, the dense one {dense.shape}: the "
                f"axes that meet have lengths {s.shape[1]} and {len(dense)}"
            )
        return np.asarray(s @ dense, data.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        rows = (shapes[2][0] - 1) * shapes[0][1]
        return [(node.inputs[3] if self.transposed else rows, *shapes[4][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        data, indices, indptr, n, dense = inputs
        gz = output_grads[0]
        across, along = (conj(dense), gz) if self.transposed else (gz, conj(dense))
        _, r, c = shape_tuple(data)
        g_data = SampledBlocks()(indices, indptr, across, along, as_scalar(r), as_scalar(c))
        g_dense = BlockDot(not self.transposed)(conj(data), indices, indptr, n, gz)
        return [g_data, None, None, None, g_dense]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        data, indices, indptr, n, dense = inputs
        terms = [
            None if tangents[0] is None else self(tangents[0], indices, indptr, n, dense),
            None if tangents[4] is None else self(data, indices, indptr, n, tangents[4]),
        ]
        return [total(terms)]


@record
class SampledBlocks(Op):
    """z_k = X_i Y_j^T for block k, at block row i and block column j.

    Inputs: indices, indptr of blocks; X, Y, two matrices or two vectors; the rows and columns of a
    block.
    """

    def output_types(self, indices: Any, indptr: Any, x: Any, y: Any, r: Any, c: Any) -> list[Type]:
        check_index_vectors("dot", indices, indptr)
        shape = (*indices.type.shape, known_length(r), known_length(c))
        return [TensorType(x.dtype, shape)]

    def perform(self, indices: Any, indptr: Any, x: Any, y: Any, r: Any, c: Any) -> Any:
        rows = len(indptr) - 1
        if len(x) != rows * r or len(y) % c or x.shape[1:] != y.shape[1:]:
            raise ShapeError(
                f"dot: factors of shapes {x.shape} and {y.shape} do not fit {rows} rows of blocks "
                f"of shape ({int(r)}, {int(c)})"
            )
        values.check_range(indices, len(y) // int(c), "the indices of a matrix of blocks")
        x = x.reshape((rows, int(r), *(x.shape[1:] or (1,))))
        y = y.reshape((len(y) // int(c), int(c), *(y.shape[1:] or (1,))))
        return np.matmul(x[major_indices(indptr)], y[indices].transpose(0, 2, 1))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(*shapes[0], *node.inputs[4:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [True], [True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        indices, indptr, x, y, _, _ = inputs
        n = ShapeI(0)(y)
        gx = BlockDot(False)(output_grads[0], indices, indptr, n, conj(y))
        gy = BlockDot(True)(output_grads[0], indices, indptr, n, conj(x))
        return [None, None, gx, gy, None, None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        indices, indptr, x, y, *sizes = inputs
        dx, dy = tangents[2:4]
        terms = [
            None if dx is None else self(indices, indptr, dx, y, *sizes),
            None if dy is None else self(indices, indptr, x, dy, *sizes),
        ]
        return [total(terms)]
