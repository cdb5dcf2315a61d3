"""The singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.elementwise.scalar_math import complex as complex_
from symcomp.ops.elementwise.scalar_math import imag, real
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    check_matrix,
    diagonal_of,
    inverse_gaps,
    known_shorter,
    product,
    scaled_columns,
    scaled_rows,
    shorter,
    total,
    with_diagonal,
)
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import shape_tuple


@record
class SVD(MatrixOp):
    """u, s, vh with x = u diag(s) vh, s descending, u and v = vh^H with orthonormal columns.

    (..., m, n) -> (..., m, k), (..., k), (..., k, n), k = min(m, n); if ``full_matrices``, (..., m,
    m), (..., k), (..., n, n). The derivatives of u and vh do not exist where two singular values
    are equal or one is zero. The phases of their columns and the basis of the columns beyond k are
    free: the derivatives leave the phases of v and that basis unchanged. With P = u^H dx v and F_ij
    = 1 / (s_j^2 - s_i^2), du = u (F * (P s + s P^H)) + (1 - u u^H) dx v / s, and likewise dv
    (Townsend, "Differentiating the singular value decomposition", 2016).
    """

    multiple_outputs = True
    full_matrices: bool = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_matrix("svd", "x", x)
        *stack, m, n = x.type.shape
        k = known_shorter(m, n)
        rows, columns = (m, n) if self.full_matrices else (k, k)
        return [
            TensorType(x.dtype, (*stack, m, rows)),
            TensorType(dtypes.real_part(x.dtype), (*stack, k)),
            TensorType(x.dtype, (*stack, columns, n)),
        ]

    def perform(self, x: Any) -> tuple[Any, ...]:
        u, s, vh = np.linalg.svd(x, full_matrices=self.full_matrices)
        return u, s, vh

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        k = shorter(m, n)
        rows, columns = (m, n) if self.full_matrices else (k, k)
        return [(*stack, m, rows), (*stack, k), (*stack, columns, n)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (u, s, vh), (gu, gs, gvh) = outputs, output_grads
        (u, rest_u), (v, rest_v) = _split(u, s), _split(adjoint(vh), s)
        inner, outer = [], []
        if gs is not None:
            inner.append(_diagonal_matrix(s, gs))
        if gu is not None:
            turn, outside = _side_pullback(u, rest_u, s, gu)
            inner.append(scaled_columns(_inverse_gaps_of_squares(s) * _skew(turn), s))
            outer.append(product(outside, adjoint(v)))
            if dtypes.is_complex(u.dtype):
                phase = imag(diagonal_of(turn)) / s
                inner.append(_diagonal_matrix(s, complex_(phase.zeros_like(), phase)))
        if gvh is not None:
            turn, outside = _side_pullback(v, rest_v, s, adjoint(gvh))
            inner.append(scaled_rows(s, _inverse_gaps_of_squares(s) * _skew(turn)))
            outer.append(product(u, adjoint(outside)))
        return [total([product(u, total(inner), adjoint(v)), *outer])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (u, s, vh), (dx,) = outputs, tangents
        (u, rest_u), (v, rest_v) = _split(u, s), _split(adjoint(vh), s)
        inner = product(adjoint(u), dx, v)
        ds, gaps = diagonal_of(inner), _inverse_gaps_of_squares(s)
        by_columns, by_rows = scaled_columns(inner, s), scaled_rows(s, inner)
        turn_u = gaps * (by_columns + adjoint(by_columns))
        turn_v = gaps * (by_rows + adjoint(by_rows))
        if dtypes.is_complex(u.dtype):
            phase = imag(ds) / s
            turn_u = with_diagonal(turn_u, complex_(phase.zeros_like(), phase))
            ds = real(ds)
        du = _side_pushforward(u, rest_u, turn_u, scaled_columns(product(dx, v), 1 / s))
        dv = _side_pushforward(v, rest_v, turn_v, scaled_columns(product(adjoint(dx), u), 1 / s))
        return [du, ds, adjoint(dv)]


def _split(side: TensorVariable, s: TensorVariable) -> tuple[Any, Any]:
    """Return the columns that belong to singular values, and the others; None if there are none."""
    n, k = side.type.shape[-1], s.type.shape[-1]
    # Without full_matrices the two lengths are unknown together, and the others are empty.
    if n is not None and n == k:
        return side, None
    count = shape_tuple(s)[-1]
    return side[..., :count], side[..., count:]


def _side_pullback(side: Any, rest: Any, s: Any, g: Any) -> tuple[Any, Any]:
    """Return ``side^H g``, and the part of g / s across the columns of ``side``."""
    if rest is not None:
        count = shape_tuple(s)[-1]
        g = g[..., :count] - product(rest, adjoint(g[..., count:]), side)
    turn = product(adjoint(side), g)
    return turn, scaled_columns(g - product(side, turn), 1 / s)


def _side_pushforward(side: Any, rest: Any, turn: Any, moved: Any) -> Any:
    """Return the tangent of u or v, rotated by ``turn``; ``moved`` is dx v / s or dx^H u / s."""
    d = product(side, turn) + moved - product(side, adjoint(side), moved)
    if rest is None:
        return d
    return concatenate([d, -product(side, adjoint(moved), rest)], axis=-1)


def _skew(x: TensorVariable) -> TensorVariable:
    return x - adjoint(x)


def _inverse_gaps_of_squares(s: TensorVariable) -> TensorVariable:
    """Compute ``1 / (s[j]^2 - s[i]^2)`` in row i and column j, and zeros on the diagonal."""
    return inverse_gaps(s) / (expand_dims(s, -2) + expand_dims(s, -1))


def _diagonal_matrix(s: TensorVariable, d: TensorVariable) -> TensorVariable:
    square = scaled_columns(expand_dims(s.zeros_like(), -1), s.zeros_like())
    return with_diagonal(square, d)


@record
class SingularValues(MatrixOp):
    """s, descending: the singular values of x.   (..., m, n) -> (..., min(m, n))"""

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_matrix("svd", "x", x)
        *stack, m, n = x.type.shape
        return [TensorType(dtypes.real_part(x.dtype), (*stack, known_shorter(m, n)))]

    def perform(self, x: Any) -> Any:
        return np.linalg.svd(x, compute_uv=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        return [(*stack, shorter(m, n))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        u, _, vh = SVD(False)(inputs[0])
        return [product(scaled_columns(u, output_grads[0]), vh)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        u, _, vh = SVD(False)(inputs[0])
        ds = diagonal_of(product(adjoint(u), tangents[0], adjoint(vh)))
        return [real(ds) if dtypes.is_complex(ds.dtype) else ds]


__all__ = ["SingularValues", "SVD"]
