"""Cholesky: the op of the decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import one_of
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.elementwise.scalar_logic import isnan, switch
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    folded,
    mirrored,
    product,
    real_diagonal,
    require_square,
    square_length,
    triangle,
)
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.reductions.functions import any as any_


@record
class Cholesky(MatrixOp):
    """z, lower triangular, with z z^H = x; or, not ``lower``, upper triangular with z^H z = x.

    (..., n, n) -> (..., n, n). Only this triangle of x is read. ``on_error`` "nan" gives NaN, not
    an error, for a matrix that is not positive definite.
    """

    lower: bool = True
    on_error: Annotated[str, one_of("raise", "nan")] = "raise"

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "nan"):
            raise ValueError(f"cholesky: on_error={self.on_error!r} must be 'raise' or 'nan'")
        super().__post_init__()

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("cholesky", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("cholesky", x)
        if self.on_error == "raise":
            return np.linalg.cholesky(x, upper=not self.lower)
        z = np.empty(x.shape, x.dtype)
        for place in np.ndindex(x.shape[:-2]):
            try:
                z[place] = np.linalg.cholesky(x[place], upper=not self.lower)
            except np.linalg.LinAlgError:
                z[place] = np.nan
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        z, gz = (v if self.lower else adjoint(v) for v in (outputs[0], output_grads[0]))
        # S = z^-H (P + P^H) z^-1 / 2, where P is the triangle of z^H gz, its diagonal halved.
        p = real_diagonal(triangle(product(adjoint(z), gz), True, 0.5))
        s = self._divided(self._divided(p + adjoint(p), z, True), z, True)
        half = np.asarray(0.5, s.dtype)
        return [self._nan_where_failed(z, folded(s * half, self.lower, True))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        z = outputs[0] if self.lower else adjoint(outputs[0])
        dx = mirrored(tangents[0], self.lower, True)
        # dz = z P, where P is the triangle of z^-1 dx z^-H, its diagonal halved.
        whole = self._divided(self._divided(dx, z, False), z, False)
        dz = product(z, triangle(whole, True, 0.5))
        return [self._nan_where_failed(z, dz if self.lower else adjoint(dz))]

    def _nan_where_failed(self, z: TensorVariable, derivative: TensorVariable) -> TensorVariable:
        """Replace derivatives of matrices that have no decomposition by NaN, as Theano does."""
        if self.on_error == "raise":
            return derivative
        failed = any_(isnan(z), axis=(-2, -1), keepdims=True)
        return switch(failed, np.asarray(np.nan, derivative.dtype), derivative)

    @staticmethod
    def _divided(x: TensorVariable, z: TensorVariable, adjointly: bool) -> TensorVariable:
        """Return the adjoint of ``z^-1 x``, or of ``z^-H x``."""
        solver = Solve("lower_triangular")
        return adjoint(solver.adjoint_solution(z, x) if adjointly else solver(z, x))


__all__ = ["Cholesky"]
