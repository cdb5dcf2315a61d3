"""Logarithms of determinants, inverses and linear systems to the last digits.

`symcomp.ops.linalg.corrected` does the work; complex matrices are left to LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.elementwise.scalar_math import conj
from symcomp.ops.linalg import corrected
from symcomp.ops.linalg.determinant import Adjugate, SLogDet
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    require_square,
    square_length,
    total,
)
from symcomp.ops.linalg.solve import Solve, check_systems
from symcomp.ops.shapes.axes import expand_dims, matrix_transpose
from symcomp.ops.shapes.joining import concatenate


def _correctable(x: Any, *others: Any) -> bool:
    """Tell whether there are corrections for a matrix."""
    finite = all(np.isfinite(v).all() for v in (x, *others))
    return x.dtype.kind == "f" and x.size > 0 and finite


# -- ops


@record
class StableInverse(MatrixInverse):
    """z = adj(x) / det(x), the inverse of x.   (..., n, n) -> (..., n, n)

    Where x is singular: infinities with the signs of the cofactors, and NaN where these are 0.
    """

    def perform(self, x: Any) -> Any:
        require_square("matrix_inverse", x)
        z = np.empty(x.shape, x.dtype)
        for place in np.ndindex(x.shape[:-2] if x.size else (0,)):
            z[place] = _inverse(x[place])
        return z


def _inverse(x: Any) -> Any:
    with np.errstate(all="ignore"):
        if len(x) <= corrected.largest() and _correctable(x):
            if (z := corrected.inverse(x)) is not None:
                return z
        else:
            try:
                return np.linalg.inv(x)
            except np.linalg.LinAlgError:
                pass  # the quotient below gives the value of a singular matrix
        return Adjugate().perform(x) / np.zeros((), x.dtype)


@record
class StableSLogDet(SLogDet):
    """sign, logabs with det(x) = sign exp(logabs).   (..., n, n) -> (...), (...)

    The derivatives at a singular x are quotients by 0, as those of log(det(x)).
    """

    inverse = StableInverse()

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("slogdet", x)
        if x.dtype.kind != "f" or x.shape[-1] > corrected.largest():
            return super().perform(x)
        sign, logabs = np.empty(x.shape[:-2], x.dtype), np.empty(x.shape[:-2], x.dtype)
        for place in np.ndindex(x.shape[:-2]):
            if _correctable(x[place]):
                found = corrected.log_determinant(x[place])
            else:
                found = np.linalg.slogdet(x[place])
            sign[place], logabs[place] = found
        return sign, logabs


@record
class StableSolve(Solve):
    """z with a z = b, a of no known structure.

    (..., n, n) (..., n, k) -> (..., n, k); (..., n, n) (..., n) -> (..., n)
    """

    def perform(self, a: Any, b: Any) -> Any:
        check_systems(a, b)
        columns = b[..., None] if b.ndim < a.ndim else b
        if a.dtype.kind != "f" or columns.shape[-2] * columns.shape[-1] > corrected.largest() ** 2:
            return super().perform(a, b)
        z = np.empty(columns.shape, columns.dtype)
        for place in np.ndindex(a.shape[:-2] if columns.size else (0,)):
            z[place] = _solution(a[place], columns[place])
        return z[..., 0] if b.ndim < a.ndim else z

    def adjoint_solution(self, a: TensorVariable, b: TensorVariable) -> TensorVariable:
        """Solve a^H z = b."""
        return self(adjoint(a), b)


def _solution(a: Any, b: Any) -> Any:
    if not _correctable(a, b):
        return np.linalg.solve(a, b)
    x = corrected.solution(a, b)
    if x is None:
        raise np.linalg.LinAlgError("Singular matrix")
    with np.errstate(all="ignore"):
        return x.astype(b.dtype)


@record
class InverseForm(MatrixOp):
    """z = x^T a^-1 y.   (n,) (n, n) (n,) -> ()"""

    def output_types(
        self, x: TensorVariable, a: TensorVariable, y: TensorVariable
    ) -> list[TensorType]:
        n = square_length("x' inv(a) y", "a", a)
        for name, v in (("x", x), ("y", y)):
            m = v.type.shape[0] if v.ndim == 1 else -1
            if a.ndim != 2 or m is not None and m != (m if n is None and m >= 0 else n):
                raise ShapeError(
                    f"x' inv(a) y: {name} ({v.type}) must be a vector as long as the matrix "
                    f"a ({a.type})"
                )
        return [TensorType(a.dtype, ())]

    def perform(self, x: Any, a: Any, y: Any) -> Any:
        require_square("x' inv(a) y", a)
        if not len(x) == len(a) == len(y):
            raise ShapeError(f"x' inv(a) y: shapes {x.shape}, {a.shape} and {y.shape} do not fit")
        if not _correctable(a, x, y):
            return np.asarray(np.dot(x, np.linalg.solve(a, y)))
        z = corrected.inverse_form(x, a, y)
        if z is None:
            raise np.linalg.LinAlgError("Singular matrix")
        with np.errstate(all="ignore"):
            return np.asarray(z, a.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, a, y), (gz,) = (_conjugated(v) for v in inputs), output_grads
        u, v = StableSolve()(matrix_transpose(a), x), StableSolve()(a, y)
        return [gz * v, -gz * expand_dims(u, -1) * expand_dims(v, -2), gz * u]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, a, y), (dx, da, dy) = inputs, tangents
        if da is None:
            terms = [] if dx is None else [self(dx, a, y)]
            return [total(terms if dy is None else [*terms, self(x, a, dy)])]
        # [[a, da], [0, a]] has the inverse [[a^-1, -a^-1 da a^-1], [0, a^-1]].
        scale: Any = None
        if dx is None and dy is None:
            # The derivative is linear in da, which is scaled to the size of a.
            scale = Magnitude()(a) / Magnitude()(da)
            da = da * scale
        dx, dy = (v.zeros_like() if dv is None else dv for v, dv in ((x, dx), (y, dy)))
        above = concatenate([a, da], axis=1)
        below = concatenate([a.zeros_like(), a], axis=1)
        both = concatenate([above, below], axis=0)
        result = self(concatenate([x, dx]), both, concatenate([dy, y]))
        return [result if scale is None else result / scale]


def _conjugated(x: TensorVariable) -> TensorVariable:
    return conj(x) if dtypes.is_complex(x.dtype) else x


@record
class Magnitude(Op):
    """z = the largest power of two that is not above every |x|; 1 where there is none.   () result

    Used to divide by z and multiply again: its derivative cancels, and is declared zero.
    """

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [TensorType(dtypes.real_part(x.dtype), ())]

    def perform(self, x: Any) -> Any:
        with np.errstate(all="ignore"):
            largest = np.abs(x).max(initial=0)
        _, e = np.frexp(largest)
        usual = np.isfinite(largest) and largest > 0
        return np.asarray(np.ldexp(1.0, e - 1) if usual else 1.0, largest.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None]


@record
class Invertible(MatrixOp):
    """z = (x^-1)^-1 = x; a LinAlgError if there is no inverse.   (..., n, n) -> (..., n, n)

    A matrix that is not finite has an inverse of NaN, and becomes NaN.
    """

    view_map = {0: (0,)}

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("matrix_inverse", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("matrix_inverse", x)
        if (np.linalg.slogdet(x).sign == 0).any():
            raise np.linalg.LinAlgError("Singular matrix")
        finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
        return x if finite.all() else np.where(finite, x, np.asarray(np.nan, x.dtype))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return list(output_grads)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return list(tangents)


__all__ = [
    "InverseForm", "Invertible", "Magnitude", "StableInverse", "StableSLogDet", "StableSolve",
]  # fmt: skip
