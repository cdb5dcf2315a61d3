"""Inverses and pseudo-inverses of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    check_matrix,
    folded,
    mirrored,
    product,
    require_square,
    square_length,
)


@record
class MatrixInverse(MatrixOp):
    """z = x^-1.   (..., n, n) -> (..., n, n)"""

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("matrix_inverse", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("matrix_inverse", x)
        return np.linalg.inv(x)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (z,), (gz,) = outputs, output_grads
        return [-product(adjoint(z), gz, adjoint(z))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (z,), (dx,) = outputs, tangents
        return [-product(z, dx, z)]


@record
class MatrixPinv(MatrixOp):
    """z = x^+, the Moore-Penrose inverse.   (..., m, n) -> (..., n, m)

    If ``hermitian``, only the lower triangle of x is read. Singular values below ``rcond`` times
    the largest count as 0; None stands for the rounding unit times max(m, n). The derivative is
    that of Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate" (1973), which holds where the rank does not change.
    """

    hermitian: bool = False
    rcond: float | None = 1e-15

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_matrix("pinv", "x", x)
        if self.hermitian:
            square_length("pinv", "x", x)
        *stack, m, n = x.type.shape
        return [TensorType(x.dtype, (*stack, n, m))]

    def perform(self, x: Any) -> Any:
        if self.hermitian:
            require_square("pinv", x)
        rcond = self.rcond
        if rcond is None:
            rcond = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
        return np.linalg.pinv(x, rcond, self.hermitian)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        return [(*stack, n, m)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        a = mirrored(x, True, True) if self.hermitian else x
        zh, gh = adjoint(z), adjoint(gz)
        right, left = product(gh, z), product(z, gh)
        gx = -product(zh, gz, zh)
        gx += product(right - product(a, z, right), zh)
        gx += product(zh, left - product(left, z, a))
        return [folded(gx, True, True) if self.hermitian else gx]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        a = x
        if self.hermitian:
            a, dx = mirrored(x, True, True), mirrored(dx, True, True)
        zh, dh = adjoint(z), adjoint(dx)
        right, left = product(zh, dh), product(dh, zh)
        dz = -product(z, dx, z)
        dz += product(z, right - product(right, a, z))
        return [dz + product(left - product(z, a, left), z)]


__all__ = ["MatrixInverse", "MatrixPinv"]
