"""Expm: the exponential of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.lazy import lazy_module
from symcomp.ops.linalg.matrices import MatrixOp, adjoint, require_square, square_length
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import (
    shape_tuple,
)

linalg = lazy_module("scipy.linalg")

# -- the exponential


@record
class Expm(MatrixOp):
    """z = 1 + x + x^2 / 2 + x^3 / 6 + ...   (..., n, n) -> (..., n, n)

    The derivative along dx is the upper right block of the exponential of [[x, dx], [0, x]]
    (Higham, "Functions of matrices", 2008, theorem 3.6).
    """

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("expm", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("expm", x)
        return linalg.expm(x).astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [self.derivative(adjoint(inputs[0]), output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self.derivative(inputs[0], tangents[0])]

    def derivative(self, x: TensorVariable, dx: TensorVariable) -> TensorVariable:
        """Return the tangent at x along dx."""
        n = shape_tuple(x)[-1]
        above = concatenate([x, dx], axis=-1)
        below = concatenate([x.zeros_like(), x], axis=-1)
        return self(concatenate([above, below], axis=-2))[..., :n, n:]


__all__ = ["Expm"]
