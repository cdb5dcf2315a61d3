"""The QR decomposition."""

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
    known_shorter,
    product,
    real_diagonal,
    shorter,
    triangle,
)
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import shape_tuple

UPPER = Solve("upper_triangular")


@record
class QR(MatrixOp):
    """q, r with x = q r, q with orthonormal columns, r upper triangular.

    (..., m, n) -> (..., m, k), (..., k, n), k = min(m, n); if ``complete``, (..., m, m), (..., m,
    n). The first k columns of x must be independent for the derivatives to exist. The derivatives
    of the columns of q beyond k do not rotate their basis. With x = [x1, x2], r = [r1, r2] after k
    columns and C = q^H dx1 r1^-1, dr1 = T r1 and dq = dx1 r1^-1 - q T, where T is the triangle of C
    and of the adjoint of the part below it (Walter and Lehmann, "Algorithmic differentiation of
    linear algebra functions", 2012).
    """

    multiple_outputs = True
    complete: bool = False

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_matrix("qr", "x", x)
        *stack, m, n = x.type.shape
        k = m if self.complete else known_shorter(m, n)
        return [TensorType(x.dtype, (*stack, m, k)), TensorType(x.dtype, (*stack, k, n))]

    def perform(self, x: Any) -> tuple[Any, ...]:
        q, r = np.linalg.qr(x, "complete" if self.complete else "reduced")
        return q, r

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        k = m if self.complete else shorter(m, n)
        return [(*stack, m, k), (*stack, k, n)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (q, r), (gq, gr) = inputs, outputs, output_grads
        k = shorter(*shape_tuple(x)[-2:])
        q, rest, r1 = q[..., :k], q[..., k:], r[..., :k, :k]
        if gq is None:
            gq = q.zeros_like()
        elif self.complete:
            # The columns beyond k stay orthogonal to the others, which move.
            gq = gq[..., :k] - product(rest, adjoint(gq[..., k:]), q)
        parts = []
        if gr is not None:
            # x2 = q r2 adds to the gradients of q and of x2.
            gr1, gr2 = gr[..., :k, :k], gr[..., :k, k:]
            gq = gq + product(x[..., k:], adjoint(gr2))
            parts.append(product(q, gr2))
        inner = -product(adjoint(q), gq)
        if gr is not None:
            inner = inner + product(gr1, adjoint(r1))
        above = triangle(inner, False, 0.0)
        change = real_diagonal(triangle(inner, False)) + adjoint(above)
        # (gq + q change) r1^-H
        gx1 = adjoint(UPPER(r1, adjoint(gq + product(q, change))))
        parts = [gx1, *(parts or [x[..., k:].zeros_like()])]
        return [concatenate(parts, axis=-1)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (q, r), (dx,) = inputs, outputs, tangents
        k = shorter(*shape_tuple(x)[-2:])
        q, rest, r1 = q[..., :k], q[..., k:], r[..., :k, :k]
        # dx1 r1^-1
        moved = adjoint(UPPER.adjoint_solution(r1, adjoint(dx[..., :k])))
        inner = product(adjoint(q), moved)
        below = triangle(inner, True, 0.0)
        change = real_diagonal(triangle(inner, False)) + adjoint(below)
        dq = moved - product(q, change)
        dr2 = product(adjoint(dq), x[..., k:]) + product(adjoint(q), dx[..., k:])
        dr = concatenate([product(change, r1), dr2], axis=-1)
        if self.complete:
            dq = concatenate([dq, -product(q, adjoint(moved), rest)], axis=-1)
            dr = concatenate([dr, r[..., k:, :].zeros_like()], axis=-2)
        return [dq, dr]


@record
class QRRaw(MatrixOp):
    """h, tau: q as the product of 1 - tau_i v_i v_i^H, the output of LAPACK's geqrf.

    (..., m, n) -> (..., n, m), (..., min(m, n)). Column i of the transpose of h has v_i below the
    diagonal, on which v_i is 1, and on and above it r.
    """

    multiple_outputs = True
    no_derivative = "the reflectors are LAPACK's own; differentiate mode='reduced' or 'complete'"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_matrix("qr", "x", x)
        *stack, m, n = x.type.shape
        k = known_shorter(m, n)
        return [TensorType(x.dtype, (*stack, n, m)), TensorType(x.dtype, (*stack, k))]

    def perform(self, x: Any) -> tuple[Any, ...]:
        h, tau = np.linalg.qr(x, "raw")
        return h, tau

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, m, n = shapes[0]
        return [(*stack, n, m), (*stack, shorter(m, n))]


__all__ = ["QR", "QRRaw"]
