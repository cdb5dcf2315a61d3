"""Diagonal, AllocDiagonal: the ops that extract and write diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Between
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import maximum
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import reshape, shape_tuple

# The largest offset of a view: NumPy takes offsets as C int.
LARGEST = 2**31 - 1


def _larger(a: Any, b: Any) -> Any:
    known = isinstance(a, int) and isinstance(b, int)
    return max(a, b) if known else maximum(as_tensor_variable(a), as_tensor_variable(b))


def _smaller(a: Any, b: Any) -> Any:
    return -_larger(-a, -b)


def _length(rows: Any, columns: Any, offset: Any) -> Any:
    """Return the number of elements of a diagonal."""
    down, right = _larger(-offset, 0), _larger(offset, 0)
    return _larger(_smaller(rows - down, columns - right), 0)


@record
class Diagonal(Op):
    """z[.., i] = x[.., i + k, i + l], a view, k = max(-offset, 0), l = max(offset, 0).

    (.., m, n) -> (.., max(min(m - k, n - l), 0)).
    """

    offset: Annotated[int, Between(-LARGEST, LARGEST)] = 0

    moves = True
    view_map = {0: (0,)}

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if x.ndim < 2:
            raise ShapeError(f"diagonal: {x} ({x.type}) has fewer than 2 axes")
        *stack, m, n = x.type.shape
        length = None if m is None or n is None else _length(m, n, self.offset)
        return [TensorType(x.dtype, (*stack, length))]

    def perform(self, x: Any) -> Any:
        return x.diagonal(self.offset, -2, -1)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        return [(*stack, _length(m, n, self.offset))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,) = inputs
        blank = zeros(shape_tuple(x), output_grads[0].dtype)
        return [with_diagonal_set(blank, output_grads[0], self.offset)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


@record
class AllocDiagonal(Op):
    """z[.., i + k, i + l] = x[.., i], else 0, k = max(-offset, 0), l = max(offset, 0).

    (.., n) -> (.., n + abs(offset), n + abs(offset)). Rules for diagonal matrices come first; then
    rewriting replaces it by ``with_diagonal_set``.
    """

    offset: int = 0

    moves = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if x.ndim == 0:
            raise ShapeError(f"alloc_diag: {x} is a scalar")
        *stack, n = x.type.shape
        size = None if n is None else n + abs(self.offset)
        return [TensorType(x.dtype, (*stack, size, size))]

    def perform(self, x: Any) -> Any:
        size = x.shape[-1] + abs(self.offset)
        z = np.zeros((*x.shape[:-1], size, size), x.dtype)
        along = np.arange(x.shape[-1])
        z[..., along + max(-self.offset, 0), along + max(self.offset, 0)] = x
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, n = shapes[0]
        return [(*stack, n + abs(self.offset), n + abs(self.offset))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [Diagonal(self.offset)(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def with_diagonal_set(x: TensorVariable, val: Any, offset: int) -> TensorVariable:
    """Return ``x`` with ``val`` on a diagonal of its last two axes.

    In row-major order the elements of a diagonal have a constant distance: no index arrays are
    made.
    """
    *stack, m, n = shape_tuple(x)
    first = _larger(-offset, 0) * n + _larger(offset, 0)
    last = first + _length(m, n, offset) * (n + 1) - n
    flat = reshape(x, [*stack, m * n], ndim=x.ndim - 1)
    changed = set_subtensor(getitem(flat, (..., slice(first, last, n + 1))), val)
    return reshape(changed, [*stack, m, n], ndim=x.ndim)


__all__ = ["AllocDiagonal", "Diagonal"]
