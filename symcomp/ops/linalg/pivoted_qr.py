"""The QR decomposition of matrices whose columns are put in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.lazy import lazy_module
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.linalg.matrices import MatrixOp
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.sorting.functions import argsort

linalg = lazy_module("scipy.linalg")


@record
class PivotedQR(MatrixOp):
    """q, r, p with x[:, p] = q r, where the moduli of the diagonal of r do not increase.

    (..., m, n) -> (..., m, k), (..., k, n), (..., n), with q, r and k as for QR. Step i takes the
    column with the largest part orthogonal to the i columns before it (Businger and Golub, "Linear
    least squares solutions by Householder transformations", 1965; LAPACK's geqp3). The derivatives
    are those of QR of the columns in this order, which small changes of x keep.
    """

    multiple_outputs = True
    complete: bool = False

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [*QR(self.complete).output_types(x), _order_type(x)]

    def perform(self, x: Any) -> tuple[Any, ...]:
        *stack, m, n = x.shape
        k = m if self.complete else min(m, n)
        q, r = np.empty((*stack, m, k), x.dtype), np.zeros((*stack, k, n), x.dtype)
        q[...], p = np.eye(m, k), _first_order(x)
        for place in np.ndindex(*stack if x.size else (0,)):
            q[place], r[place], p[place] = linalg.qr(
                x[place], mode="full" if self.complete else "economic", pivoting=True,
                check_finite=False,
            )  # fmt: skip
        return q, r, p

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [*QR(self.complete).infer_shape(node, shapes), _order_shape(shapes[0])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (q, r, p) = inputs, outputs
        (g,) = QR(self.complete).pullback([_columns(x, p)], [q, r], output_grads[:2])
        return [_columns(g, argsort(p, axis=-1))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        q, r, p = outputs
        x, dx = _columns(inputs[0], p), _columns(tangents[0], p)
        return [*QR(self.complete).pushforward([x], [q, r], [dx]), None]


@record
class PivotedQRRaw(MatrixOp):
    """h, tau, p: the output of LAPACK's geqp3, h and tau as for QRRaw.

    (..., m, n) -> (..., n, m), (..., min(m, n)), (..., n).
    """

    multiple_outputs = True
    no_derivative = "the reflectors are LAPACK's own; differentiate mode='reduced' or 'complete'"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [*QRRaw().output_types(x), _order_type(x)]

    def perform(self, x: Any) -> tuple[Any, ...]:
        *stack, m, n = x.shape
        h, tau = np.empty((*stack, n, m), x.dtype), np.empty((*stack, min(m, n)), x.dtype)
        p = _first_order(x)
        for place in np.ndindex(*stack if x.size else (0,)):
            (packed, tau[place]), _, p[place] = linalg.qr(
                x[place], mode="raw", pivoting=True, check_finite=False
            )
            h[place] = packed.T
        return h, tau, p

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [*QRRaw().infer_shape(node, shapes), _order_shape(shapes[0])]


def _order_type(x: TensorVariable) -> TensorType:
    *stack, _, n = x.type.shape
    return TensorType("int64", (*stack, n))


def _order_shape(shape: Any) -> Any:
    *stack, _, n = shape
    return (*stack, n)


def _first_order(x: Any) -> Any:
    """Return the columns of each matrix as they lie."""
    *stack, _, n = x.shape
    p = np.empty((*stack, n), np.int64)
    p[...] = np.arange(n)
    return p


def _columns(x: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Return the columns of each matrix in this order."""
    return take_along_axis(x, expand_dims(p, -2), axis=-1)


__all__ = ["PivotedQR", "PivotedQRRaw"]
