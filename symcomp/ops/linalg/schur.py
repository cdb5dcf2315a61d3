"""Schur's decomposition of one matrix, and of two together (QZ)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    product,
    require_square,
    square_length,
    total,
    triangle,
)

linalg = lazy_module("scipy.linalg")

SORTS = (None, "lhp", "rhp", "iuc", "ouc")
NOT_TRIANGULAR = (
    "a real Schur form may have blocks of two rows on its diagonal, which have no derivative here: "
    "pass output='complex'"
)


def _check_sort(name: str, sort: Any) -> None:
    if sort not in SORTS:
        raise ValueError(f"{name}: sort={sort!r} must be None, 'lhp', 'rhp', 'iuc' or 'ouc'")


@record
class Schur(MatrixOp):
    """t, z with x = z t z^H, t upper triangular, z unitary.   (..., n, n) -> (..., n, n) twice

    For real matrices both are real, and t has blocks of two rows on its diagonal, one for each
    complex pair of eigenvalues. Eigenvalues selected by ``sort`` come first. With e = z^H dx z, the
    strictly lower k with tril(t k - k t + e, -1) = 0, and y = k - k^H, dz = z y and dt = triu(e +
    t y - y t): the phases of the columns do not change. NaN for matrices that are not finite.
    """

    multiple_outputs = True
    sort: str | None = None

    def __post_init__(self) -> None:
        _check_sort("schur", self.sort)

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("schur", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))] * 2

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("schur", x)
        t, z = np.full(x.shape, np.nan, x.dtype), np.full(x.shape, np.nan, x.dtype)
        for place in np.ndindex(x.shape[:-2] if x.size else (0,)):
            if np.isfinite(x[place]).all():
                t[place], z[place] = linalg.schur(x[place], output="real", sort=self.sort)[:2]
        return t, z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0], shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (t, z), (gt, gz) = inputs, outputs, output_grads
        if not dtypes.is_complex(x.dtype):
            return [NullType(NOT_TRIANGULAR)()]
        zh, th = adjoint(z), adjoint(t)
        terms = [] if gz is None else [product(zh, gz)]
        above = None if gt is None else triangle(gt, False)
        if above is not None:
            terms.append(product(th, above) - product(above, th))
        turned = total(terms)
        k = LowerSylvester(True)(t, triangle(turned - adjoint(turned), True, 0.0))
        ge = -k if above is None else above - k
        return [product(z, ge, zh)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (t, z) = inputs, outputs
        if not dtypes.is_complex(x.dtype):
            return [NullType(NOT_TRIANGULAR)()] * 2
        e = product(adjoint(z), tangents[0], z)
        k = LowerSylvester()(t, triangle(-e, True, 0.0))
        y = k - adjoint(k)
        return [triangle(e + product(t, y) - product(y, t), False), product(z, y)]


@record
class LowerSylvester(MatrixOp):
    """k, strictly lower triangular, with tril(t k - k t, -1) = r, for an upper triangular t.

    (..., n, n) (..., n, n) -> (..., n, n). If ``adjoint``, tril(t^H k - k t^H, -1) = r. Column
    after column k solves a triangular system; NaN where t has an eigenvalue twice.
    """

    adjoint: bool = False

    no_derivative = "it is part of the derivative of Schur's decomposition, which has no second"

    def output_types(self, t: TensorVariable, r: TensorVariable) -> list[TensorType]:
        return [r.type]

    def perform(self, t: Any, r: Any) -> Any:
        k = np.zeros(r.shape, r.dtype)
        for place in np.ndindex(r.shape[:-2]):
            self._solve(t[place], r[place], k[place])
        return k

    def _solve(self, t: Any, r: Any, k: Any) -> None:
        n = len(t)
        for j in range(n - 2, -1, -1) if self.adjoint else range(n - 1):
            below, eye = slice(j + 1, n), np.eye(n - j - 1, dtype=t.dtype)
            if self.adjoint:
                system = t[below, below].conj().T - t[j, j].conj() * eye
                known = r[below, j] + k[below, below] @ t[j, below].conj()
            else:
                system = t[below, below] - t[j, j] * eye
                known = r[below, j] + k[below, :j] @ t[:j, j]
            try:
                k[below, j] = linalg.solve_triangular(
                    system, known, lower=self.adjoint, check_finite=False
                )
            except np.linalg.LinAlgError:
                k[...] = np.nan
                return

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]


@record
class QZ(MatrixOp):
    """s, t, alpha, beta, q, z with x = q s z^H, y = q t z^H; s and t upper triangular.

    (..., n, n) (..., n, n) -> (..., n, n), (..., n, n), (..., n), (..., n), (..., n, n), (..., n,
    n). The eigenvalues of x v = w y v are alpha / beta, the ones selected by ``sort`` first. For
    real matrices s has blocks of two rows on its diagonal, and alpha is complex. NaN where LAPACK
    fails.
    """

    multiple_outputs = True
    no_derivative = "of a generalized Schur decomposition it is not written; differentiate schur"
    sort: str | None = None

    def __post_init__(self) -> None:
        _check_sort("qz", self.sort)

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        n, m = square_length("qz", "a", x), square_length("qz", "b", y)
        if x.ndim != y.ndim or (n is not None and m is not None and n != m):
            raise ShapeError(f"qz: a ({x.type}) and b ({y.type}) must have one shape")
        stack = [p if q is None else q for p, q in zip(x.type.shape, y.type.shape, strict=True)]
        whole, values = TensorType(x.dtype, stack), stack[:-1]
        alpha = TensorType(dtypes.to_complex(x.dtype), values)
        return [whole, whole, alpha, TensorType(x.dtype, values), whole, whole]

    def perform(self, x: Any, y: Any) -> tuple[Any, ...]:
        require_square("qz", x)
        if x.shape != y.shape:
            raise ShapeError(f"qz: shapes {x.shape} and {y.shape} must be equal")
        kinds = (x.dtype, x.dtype, dtypes.to_complex(x.dtype.name), x.dtype, x.dtype, x.dtype)
        shapes = (x.shape, x.shape, x.shape[:-1], x.shape[:-1], x.shape, x.shape)
        found = tuple(np.full(s, np.nan, k) for s, k in zip(shapes, kinds, strict=True))
        for place in np.ndindex(x.shape[:-2] if x.size else (0,)):
            values = _qz(x[place], y[place], self.sort)
            for z, value in zip(found, values or (), strict=False):
                z[place] = value
        return found

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        whole, values = shapes[0], shapes[0][:-1]
        return [whole, whole, values, values, whole, whole]


def _qz(x: Any, y: Any, sort: str | None) -> Any:
    """Compute the six parts for two matrices; None if LAPACK fails."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if sort is not None:
        try:
            return linalg.ordqz(x, y, sort=sort, output="real")
        except (np.linalg.LinAlgError, ValueError):
            return None
    (gges,) = linalg.get_lapack_funcs(("gges",), (x, y))
    length = int(gges(_any, x, y, lwork=-1)[-2][0].real)
    s, t, _, *values, q, z, _, info = gges(_any, x, y, lwork=length, sort_t=0)
    if info != 0:
        return None
    *parts, beta = values
    alpha = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    return s, t, alpha, beta, q, z


def _any(*values: Any) -> None:
    """Stand in for LAPACK's callback that selects eigenvalues; it is not called without sorting."""


__all__ = ["QZ", "Schur"]
