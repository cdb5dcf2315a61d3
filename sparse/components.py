"""Between sparse matrices and their arrays: Components takes a matrix apart, Assemble puts one
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.shape import ShapeI, known_length, length_vector
from symcomp.sparse import values
from symcomp.sparse.op import SparseOp, as_scalar, as_sparse_variable
from symcomp.sparse.patterns import (
    Lookup,
    LookupPairs,
    MajorIndices,
    common_indices,
    no_gradient,
    pointers_of,
)
from symcomp.sparse.type import SparseType, SparseVariable
from symcomp.sparse.values import major_axis

VECTOR = (None,)


class SparseParts(NamedTuple):
    """The arrays of a sparse variable, as tensor variables; ``shape`` is an int64 vector."""

    data: Any
    indices: Any
    indptr: Any
    shape: Any


@record
class Components(SparseOp):
    """data, indices, indptr, shape = the arrays of the sparse matrix x, which are views.

    Of COO the second and third are the rows and the columns of the entries; of BSR ``data`` has the
    blocks, (nnz, rows, columns). Without ``canonical``, which rewriting sets, indices need not
    ascend strictly: all that read them look at their range, and take them in any order.
    """

    canonical: bool = True

    multiple_outputs = True

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        kind = x.type
        n = kind.shape[major_axis(kind.format)] if kind.is_compressed else None
        entries: tuple[Any, ...] = (None, None, None) if kind.format == "bsr" else (None,)
        return [
            TensorType(kind.dtype, entries),
            TensorType(kind.index_dtype, VECTOR),
            TensorType(kind.index_dtype, (None if n is None else n + 1,)),
            TensorType("int64", (2,)),
        ]

    def bind(self, node: Apply) -> Any:
        kind = node.inputs[0].type

        def compute(x: Any) -> tuple[Any, ...]:
            return self.perform(kind.filter(x))

        return compute

    def perform(self, x: Any) -> tuple[Any, ...]:
        data, indices, indptr, shape = values.components(x)
        return data, indices, indptr, np.asarray(shape, np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        data, indices, indptr, _ = node.outputs
        stored = ShapeI(0)(indices)
        known = indptr.type.shape[0]
        pointers = ShapeI(0)(indptr) if known is None else known
        if data.ndim == 3:
            return [(stored, ShapeI(1)(data), ShapeI(2)(data)), (stored,), (pointers,), (2,)]
        if node.inputs[0].type.format == "coo":
            pointers = stored
        return [(stored,), (stored,), (pointers,), (2,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False, False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (_, *pattern) = inputs, outputs
        g = output_grads[0]
        return [Assemble(x.type.clone(dtype=g.dtype))(g, *pattern)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (_, indices, indptr, _) = inputs, outputs
        dx = same_format(tangents[0], x.type.format)
        return [entries_at(dx, indices, indptr), None, None, None]

    view_map = {0: (0,), 1: (0,), 2: (0,)}

    def __str__(self) -> str:
        return "Components" if self.canonical else "Components{any order}"


@record
class Assemble(SparseOp):
    """z = the sparse matrix with the arrays data, indices, indptr and the given shape.

    The pattern is known to be canonical and to fit the shape: it comes from another matrix, or from
    an op that makes such patterns. Patterns of users go through Canonical first.
    """

    kind: SparseType

    def output_types(
        self, data: TensorVariable, indices: Any, indptr: Any, shape: Any
    ) -> list[Type]:
        kind = self.kind
        expected = (
            ("data", data, kind.dtype, 3 if kind.format == "bsr" else 1),
            ("indices", indices, kind.index_dtype, 1),
            ("indptr", indptr, kind.index_dtype, 1),
            ("shape", shape, "int64", 1),
        )
        for name, x, dtype, ndim in expected:
            if not isinstance(x, TensorVariable) or (x.dtype, x.ndim) != (dtype, ndim):
                raise DTypeError(
                    f"{self}: {name} is {x} ({x.type}); {dtype} with {ndim} axes is needed"
                )
        return [kind]

    def bind(self, node: Apply) -> Any:
        return self.perform

    def perform(self, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        if self.kind.format != "coo" and len(data) != len(indices):
            raise ShapeError(
                f"{self}: {len(data)} entries of data for {len(indices)} indices: data must have "
                "one entry for each index"
            )
        parts = values.SparseArrays(data, indices, indptr, tuple(shape.tolist()))
        return values.assemble(self.kind.format, self.kind.container, parts)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        gz = same_format(output_grads[0], self.kind.format)
        return [entries_at(gz, inputs[1], inputs[2]), *no_gradient(3)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        kind = self.kind.clone(dtype=tangents[0].dtype)
        return [Assemble(kind)(tangents[0], *inputs[1:])]

    view_map = {0: (0, 1, 2)}

    def __str__(self) -> str:
        return f"Assemble{{{self.kind.format}}}"


def parts_of(x: Any) -> SparseParts:
    """Return the arrays of a sparse variable."""
    return SparseParts(*Components()(x))


def with_data(x: SparseVariable, data: Any, parts: SparseParts | None = None) -> Any:
    """Return a sparse variable with the pattern of ``x`` and other entries."""
    _, indices, indptr, shape = parts_of(x) if parts is None else parts
    return Assemble(x.type.clone(dtype=data.dtype))(data, indices, indptr, shape)


def assembled(like: SparseType, parts: Sequence[Any], **changes: Any) -> Any:
    """Return the matrix of these arrays, of the container of ``like`` and the dtypes of the
    arrays; the lengths are known as far as the vector of them tells.
    """
    data, indices, indptr, shape = parts
    known = changes.pop("known", None)
    lengths = static_lengths(shape) if known is None else known
    kind = like.clone(dtype=data.dtype, index_dtype=indices.dtype, shape=lengths, **changes)
    return Assemble(kind)(data, indices, indptr, shape)


def static_lengths(shape: Any) -> tuple[int | None, ...]:
    """Return the entries of a vector of two lengths as far as they are known."""
    if isinstance(shape, TensorConstant):
        return tuple(int(n) for n in shape.data)
    owner = shape.owner
    if owner is not None and len(owner.inputs) == 2:
        return tuple(known_length(n) for n in owner.inputs)
    if owner is not None and isinstance(owner.op, Components):
        return owner.inputs[0].type.shape
    return (None, None)


def lengths_vector(*lengths: Any) -> TensorVariable:
    """Return two lengths as an int64 vector."""
    return length_vector(lengths)


def entry(shape: Any, axis: int) -> Any:
    """Return one of two lengths, as an int64 scalar."""
    known = static_lengths(shape)[axis]
    return getitem(shape, axis) if known is None else as_scalar(known)


def n_minor(x: SparseVariable, parts: SparseParts) -> Any:
    """Return the length of the minor axis, as an int64 scalar."""
    axis = 1 - major_axis(x.type.format)
    known = x.type.shape[axis]
    return getitem(parts.shape, axis) if known is None else as_scalar(known)


def major_of(parts: SparseParts) -> TensorVariable:
    """Return for each entry the number of its row (CSR) or column (CSC)."""
    return MajorIndices()(parts.indptr, ShapeI(0)(parts.indices))


def entries_at(x: SparseVariable, indices: Any, indptr: Any) -> Any:
    """Return the entries of ``x`` at another pattern of its format, 0 where it stores none."""
    parts = parts_of(x)
    if x.type.format == "coo":
        return LookupPairs()(*_rows_of_coo(parts), indices, indptr)
    return Lookup()(parts.data, *common_indices(*parts[1:3], indices, indptr))


def same_format(x: SparseVariable, format: str) -> Any:
    """Return ``x`` in another format."""
    return x if x.type.format == format else x.asformat(format)


def _rows_of_coo(parts: SparseParts) -> tuple[Any, ...]:
    """Return the data, indices and indptr in CSR of a COO matrix, whose entries are sorted."""
    return parts.data, parts.indptr, pointers_of(parts.indices, entry(parts.shape, 0))
