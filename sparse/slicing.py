"""Ops on the arrays of a matrix that take, place and join slices of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.shapes.shape import ShapeI, known_length
from symcomp.sparse import values
from symcomp.sparse.patterns import check_index_vectors

LOWERED = "it takes the place of an op on sparse matrices in compiled functions"
VECTOR = (None,)


class _OfSlices(Op):
    """An op from data, indices, indptr, and more, to those of another matrix."""

    multiple_outputs = True
    no_derivative = LOWERED

    def output_types(self, data: Any, indices: Any, indptr: Any, *rest: Any) -> list[Type]:
        check_index_vectors(str(self), indices, indptr)
        return [
            TensorType(data.dtype, VECTOR),
            TensorType(indices.dtype, VECTOR),
            TensorType(indptr.dtype, self.pointer_shape(indptr, *rest)),
        ]

    def pointer_shape(self, indptr: Any, *rest: Any) -> tuple[int | None, ...]:
        """Return the length of the resulting pointers as far as it is known."""
        return VECTOR

    def pointers(self, node: Apply, shapes: Sequence[Any]) -> Any:
        """Return the length of the resulting pointers."""
        return shapes[2][0]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), (self.pointers(node, shapes),)]


def slices_at(starts: Any, counts: Any) -> Any:
    """Return the positions of slices that begin at ``starts``, one slice after the other."""
    total = int(counts.sum())
    begins = np.cumsum(counts) - counts
    return np.arange(total) + np.repeat(starts - begins, counts)


@record
class TakeMajor(_OfSlices):
    """Row k of the result is row ids_k (of CSC: columns).   Inputs: data, indices, indptr, ids"""

    def pointer_shape(self, indptr: Any, *rest: Any) -> tuple[int | None, ...]:
        n = rest[0].type.shape[0]
        return (None if n is None else n + 1,)

    def perform(self, data: Any, indices: Any, indptr: Any, ids: Any) -> tuple[Any, ...]:
        values.check_range(ids, len(indptr) - 1, "getitem: positions")
        counts = np.diff(indptr)[ids]
        pointers = np.concatenate([[0], np.cumsum(counts)])
        values.check_fits(indices.dtype.name, (), int(pointers[-1]), "getitem")
        places = slices_at(indptr[:-1][ids], counts)
        return data[places], indices[places], pointers.astype(indptr.dtype)

    def pointers(self, node: Apply, shapes: Sequence[Any]) -> Any:
        return shapes[3][0] + 1


@record
class PutMajor(_OfSlices):
    """Row ids_k of the result, which has n rows, is the sum of the rows k (of CSC: columns).

    Inputs: data, indices, indptr, ids, n.
    """

    def pointer_shape(self, indptr: Any, *rest: Any) -> tuple[int | None, ...]:
        n = known_length(rest[1])
        return (None if n is None else n + 1,)

    def perform(self, data: Any, indices: Any, indptr: Any, ids: Any, n: Any) -> tuple[Any, ...]:
        rows = int(n)
        values.check_range(ids, rows, "getitem: positions")
        if len(ids) != len(indptr) - 1:
            raise ShapeError(f"sparse: {len(ids)} positions for {len(indptr) - 1} rows or columns")
        order = np.argsort(ids, kind="stable")
        counts = np.diff(indptr)
        places = slices_at(indptr[:-1][order], counts[order])
        target = np.zeros(rows, np.int64)
        np.add.at(target, ids, counts)
        pointers = np.concatenate([[0], np.cumsum(target)]).astype(indptr.dtype)
        z = values.scipy_sparse.csr_array(
            (data[places], indices[places], pointers),
            shape=(rows, int(indices.max(initial=-1)) + 1),
        )
        z = values.canonical(z)
        return z.data, z.indices.astype(indices.dtype), z.indptr.astype(indptr.dtype)

    def pointers(self, node: Apply, shapes: Sequence[Any]) -> Any:
        return node.inputs[4] + 1


@record
class CropMinor(_OfSlices):
    """The entries with start <= index < end, whose index becomes index - start.

    Inputs: data, indices, indptr, start, end.
    """

    def pointer_shape(self, indptr: Any, *rest: Any) -> tuple[int | None, ...]:
        shape: tuple[int | None, ...] = indptr.type.shape
        return shape

    def perform(
        self, data: Any, indices: Any, indptr: Any, start: Any, end: Any
    ) -> tuple[Any, ...]:
        kept = (indices >= start) & (indices < end)
        before = np.concatenate([[0], np.cumsum(kept)])
        moved = (indices[kept] - start).astype(indices.dtype)
        return data[kept], moved, before[indptr].astype(indptr.dtype)


@record
class JoinMinor(Op):
    """Matrices side by side (of CSC: below one another): row i is that of all.

    Inputs: for each matrix data, indices, indptr and n_minor.
    """

    multiple_outputs = True
    no_derivative = LOWERED

    def output_types(self, *inputs: Any) -> list[Type]:
        check_index_vectors("hstack", *inputs[1::4], *inputs[2::4])
        return [
            TensorType(inputs[0].dtype, VECTOR),
            TensorType(inputs[1].dtype, VECTOR),
            TensorType(inputs[1].dtype, inputs[2].type.shape),
        ]

    def perform(self, *given: Any) -> tuple[Any, ...]:
        datas, indices, indptrs, lengths = (given[k::4] for k in range(4))
        if len({len(p) for p in indptrs}) > 1:
            rows = ", ".join(str(len(p) - 1) for p in indptrs)
            raise ShapeError(f"sparse: matrices with {rows} rows (csc: columns) cannot be joined")
        dtype = indices[0].dtype
        width = sum(map(int, lengths))
        stored = sum(map(len, indices))
        values.check_fits(dtype.name, (width,), stored, "the joined matrix")
        counts = [np.diff(p) for p in indptrs]
        pointers = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
        data, minor = np.empty(stored, datas[0].dtype), np.empty(stored, dtype)
        starts, shift = pointers[:-1].copy(), 0
        for d, i, c, n in zip(datas, indices, counts, lengths, strict=True):
            places = slices_at(starts, c)
            data[places], minor[places] = d, i + dtype.type(shift)
            starts += c
            shift += int(n)
        return data, minor, pointers.astype(dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), shapes[2]]


@record
class SameNumber(Op):
    """z = x; an error unless x and y are equal.   (), () -> (), int64"""

    name: str

    no_derivative = "lengths do not depend on values"

    def output_types(self, x: Any, y: Any) -> list[Type]:
        return [x.type]

    def perform(self, x: Any, y: Any) -> Any:
        if x != y:
            raise ShapeError(
                f"{self.name}: the sparse matrices have lengths {int(x)} and {int(y)} on an axis "
                "where they must agree"
            )
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]

    view_map = {0: (0,)}


def same_number(name: str, x: Any, y: Any) -> Any:
    """Return ``x``, checked to be equal to ``y`` when the function runs, unless it is known."""
    m, n = known_length(x), known_length(y)
    return x if x is y or (m is not None and m == n) else SameNumber(name)(x, y)
