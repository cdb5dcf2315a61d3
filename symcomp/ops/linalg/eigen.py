"""Eigenvalues and eigenvectors of general, symmetric and Hermitian matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.convert import cast_to
from symcomp.ops.elementwise.scalar_math import conj, real
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    diagonal_of,
    folded,
    inverse_gaps,
    mirrored,
    product,
    require_square,
    scaled_columns,
    square_length,
    total,
    with_diagonal,
)
from symcomp.ops.linalg.solve import Solve

# -- symmetric and Hermitian


@record
class Eigh(MatrixOp):
    """w, v with x v = v diag(w), w ascending, v unitary.   (..., n, n) -> (..., n), (..., n, n)

    x is Hermitian, or symmetric if real: only the triangle ``UPLO`` is read. The derivative of
    v is v (F * (v^H dx v)), F_ij = 1 / (w_j - w_i): it does not exist for an eigenvalue that occurs
    twice, and has v_i^H dv_i = 0, as the phase of a complex v_i is free.
    """

    multiple_outputs = True
    UPLO: Literal["L", "U"] = "L"

    def __post_init__(self) -> None:
        if self.UPLO not in ("L", "U"):
            raise ValueError(f"eigh: UPLO={self.UPLO!r} must be 'L' or 'U'")
        super().__post_init__()

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eigh", "x", x)
        stack = x.type.shape[:-2]
        return [
            TensorType(dtypes.real_part(x.dtype), (*stack, n)),
            TensorType(x.dtype, (*stack, n, n)),
        ]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("eigh", x)
        w, v = np.linalg.eigh(x, UPLO=self.UPLO)
        return w, v

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1], shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (w, v), (gw, gv) = outputs, output_grads
        terms = [] if gw is None else [scaled_columns(v, gw)]
        if gv is not None:
            terms.append(product(v, inverse_gaps(w) * product(adjoint(v), gv)))
        return [folded(product(total(terms), adjoint(v)), self.UPLO == "L", True)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        w, v = outputs
        change = product(adjoint(v), mirrored(tangents[0], self.UPLO == "L", True), v)
        return [_real(diagonal_of(change)), product(v, inverse_gaps(w) * change)]


def _real(x: TensorVariable) -> TensorVariable:
    return real(x) if dtypes.is_complex(x.dtype) else x


@record
class Eigvalsh(MatrixOp):
    """w, ascending: the eigenvalues of a Hermitian x.   (..., n, n) -> (..., n)

    One triangle of x is read: the lower one, if ``lower``. With the eigenvectors v, dw_i = v_i^H dx
    v_i.
    """

    lower: bool = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eigvalsh", "x", x)
        return [TensorType(dtypes.real_part(x.dtype), (*x.type.shape[:-2], n))]

    def perform(self, x: Any) -> Any:
        require_square("eigvalsh", x)
        return np.linalg.eigvalsh(x, UPLO="L" if self.lower else "U")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        decomposed = Eigh("L" if self.lower else "U")
        return decomposed.pullback(inputs, decomposed(inputs[0]), [output_grads[0], None])

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        decomposed = Eigh("L" if self.lower else "U")
        return decomposed.pushforward(inputs, decomposed(inputs[0]), tangents)[:1]


# -- general


@record
class Eig(MatrixOp):
    """w, v with x v = v diag(w), columns of v of length 1.   (..., n, n) -> (..., n), (..., n, n)

    Both are complex, also for real x. With P = v^-1 dx v and F_ij = 1 / (w_j - w_i), dw = diag(P)
    and dv = v (F * P) minus its component along v: v_i^H dv_i = 0, as the phase of v_i is free. The
    derivative of v does not exist where two eigenvalues are equal.
    """

    multiple_outputs = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eig", "x", x)
        stack, kind = x.type.shape[:-2], dtypes.to_complex(x.dtype)
        return [TensorType(kind, (*stack, n)), TensorType(kind, (*stack, n, n))]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("eig", x)
        w, v = np.linalg.eig(x)
        kind = dtypes.to_complex(x.dtype.name)
        return w.astype(kind, copy=False), v.astype(kind, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1], shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (w, v), (gw, gv) = outputs, output_grads
        vh = adjoint(v)
        terms = [] if gw is None else [with_diagonal(v.zeros_like(), gw)]
        if gv is not None:
            turned = product(vh, gv)
            across = turned - scaled_columns(product(vh, v), diagonal_of(turned))
            terms.append(conj(inverse_gaps(w)) * across)
        return [product(Solve()(vh, total(terms)), vh)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (w, v), (dx,) = outputs, tangents
        change = Solve()(v, product(cast_to(dx, v.dtype), v))
        dv = product(v, inverse_gaps(w) * change)
        along = diagonal_of(product(adjoint(v), dv))
        return [diagonal_of(change), dv - scaled_columns(v, along)]


__all__ = ["Eig", "Eigh", "Eigvalsh"]
