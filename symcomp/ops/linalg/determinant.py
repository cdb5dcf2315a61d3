"""Determinants, their logarithms, and the adjugate, which is their derivative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.scalar_math import complex as complex_
from symcomp.ops.elementwise.scalar_math import conj, imag, real
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    inner_product,
    over_matrix,
    product,
    require_square,
    square_length,
)
from symcomp.ops.shapes.axes import matrix_transpose

linalg = lazy_module("scipy.linalg")


@record
class Adjugate(MatrixOp):
    """z = adj(x) = det(x) x^-1, continued to singular x: the transpose of the cofactors.

    (..., n, n) -> (..., n, n). With x = u diag(s) v^H, adj(x) = det(u v^H) v diag(p) u^H, where p_i
    is the product of the s_j for j != i. The derivatives need x^-1.
    """

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("adjugate", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("adjugate", x)
        finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
        u, s, vh = np.linalg.svd(np.where(finite, x, np.zeros((), x.dtype)))
        sign = np.linalg.det(u) * np.linalg.det(vh)
        v = (
            np.conj(np.swapaxes(vh, -1, -2))
            * (sign[..., None] * _products_of_others(s))[..., None, :]
        )
        z = np.matmul(v, np.conj(np.swapaxes(u, -1, -2)))
        return np.where(finite, z, np.asarray(np.nan, x.dtype))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        inverse = adjoint(MatrixInverse()(x))
        return [over_matrix(inner_product(z, gz)) * inverse - product(inverse, gz, adjoint(z))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        change = product(MatrixInverse()(x), dx)
        return [over_matrix(_trace(change)) * z - product(change, z)]


def _products_of_others(s: Any) -> Any:
    """Compute p[..., i], the product of s[..., j] for all j != i."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)
    return before * after[..., ::-1]


def _trace(x: TensorVariable) -> TensorVariable:
    return x.trace(0, -2, -1)


@record
class Det(MatrixOp):
    """z = det(x).   (..., n, n) -> (...)"""

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        square_length("det", "x", x)
        return [TensorType(x.dtype, x.type.shape[:-2])]

    def perform(self, x: Any) -> Any:
        require_square("det", x)
        z = np.ones(x.shape[:-2], x.dtype)
        for place in np.ndindex(z.shape if x.size else (0,)):
            z[place] = _determinant(x[place])
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-2]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [over_matrix(gz) * adjoint(Adjugate()(x))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [(matrix_transpose(Adjugate()(x)) * dx).sum(axis=(-2, -1))]


def _determinant(x: Any) -> Any:
    """Multiply the diagonal of LU without overflow or underflow on the way."""
    (getrf,) = linalg.get_lapack_funcs(("getrf",), (x,))
    lu, pivots, info = getrf(x)
    if info > 0:
        return 0.0
    z, power = (-1.0) ** np.count_nonzero(pivots != np.arange(len(x))), 0
    for factor in np.diagonal(lu).tolist():
        factor, e = _scaled(factor)
        z, carried = _scaled(z * factor)
        power += e + carried
    return np.ldexp(z.real, power) + (1j * np.ldexp(z.imag, power) if z.imag else 0)


def _scaled(z: Any) -> tuple[Any, int]:
    """Return a number as a mantissa near 1 and an exponent of two."""
    _, e = math.frexp(max(abs(z.real), abs(z.imag)))
    re, im = math.ldexp(z.real, -e), math.ldexp(z.imag, -e)
    return (complex(re, im) if isinstance(z, complex) else re), e


@record
class SLogDet(MatrixOp):
    """sign, logabs with det(x) = sign exp(logabs).   (..., n, n) -> (...), (...)

    A complex sign has the modulus 1; logabs is real. With t = trace(x^-1 dx), d logabs = Re(t) and
    d sign = i Im(t) sign.
    """

    multiple_outputs = True
    # Used by the derivatives
    inverse = MatrixInverse()

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        square_length("slogdet", "x", x)
        stack = x.type.shape[:-2]
        return [TensorType(x.dtype, stack), TensorType(dtypes.real_part(x.dtype), stack)]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("slogdet", x)
        sign, logabs = np.linalg.slogdet(x)
        return np.asarray(sign), np.asarray(logabs)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-2]] * 2

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (sign, _), (gsign, glogabs) = inputs, outputs, output_grads
        if not dtypes.is_complex(x.dtype):
            gt = glogabs
        else:
            turn = None if gsign is None else imag(conj(sign) * gsign)
            gt = _complex_number(glogabs, turn)
        return [None if gt is None else over_matrix(gt) * adjoint(self.inverse(x))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (sign, _), (dx,) = inputs, outputs, tangents
        t = _trace(product(self.inverse(x), dx))
        if not dtypes.is_complex(x.dtype):
            return [None, t]
        return [_complex_number(None, imag(t)) * sign, real(t)]


def _complex_number(re: Any, im: Any) -> Any:
    """Return ``re + i im``, where None is zero."""
    if re is None and im is None:
        return None
    return complex_(im.zeros_like() if re is None else re, re.zeros_like() if im is None else im)


__all__ = ["Adjugate", "Det", "SLogDet"]
