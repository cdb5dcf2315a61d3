"""Ops that solve systems with tridiagonal matrices, given by their three diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import conj
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.linalg.matrices import MatrixOp
from symcomp.ops.shapes.axes import expand_dims

linalg = lazy_module("scipy.linalg")


def _conj(x: TensorVariable) -> TensorVariable:
    return conj(x) if dtypes.is_complex(x.dtype) else x


@record
class SolveTridiagonal(MatrixOp):
    """z with l_i z_i + d_(i+1) z_(i+1) + u_(i+1) z_(i+2) = b_(i+1): a z = b for a tridiagonal a.

    (..., n-1) (..., n) (..., n-1) (..., n, k) -> (..., n, k): the diagonals below the main one, the
    main one, the one above. NaN for a singular matrix.
    """

    def output_types(self, l: Any, d: Any, u: Any, b: Any) -> list[TensorType]:
        if not l.ndim == d.ndim == u.ndim == b.ndim - 1 or b.ndim < 2:
            raise ShapeError(
                f"solve_tridiagonal: diagonals {l.type}, {d.type}, {u.type} and right sides "
                f"{b.type}: vectors and matrices, or stacks of them, are needed"
            )
        return [TensorType(b.dtype, b.type.shape)]

    def perform(self, l: Any, d: Any, u: Any, b: Any) -> Any:
        n = d.shape[-1]
        short = (*d.shape[:-1], max(n - 1, 0))
        if l.shape != short or u.shape != short or b.shape[:-1] != d.shape:
            raise ShapeError(
                f"solve_tridiagonal: diagonals of shapes {l.shape}, {d.shape}, {u.shape} and right "
                f"sides of {b.shape} do not fit: n - 1, n, n - 1 and n rows are needed"
            )
        z = np.empty(b.shape, b.dtype)
        (gtsv,) = linalg.get_lapack_funcs(("gtsv",), (d, b))
        for place in np.ndindex(d.shape[:-1] if b.size else (0,)):
            if n == 1:
                z[place] = b[place] / d[place] if d[place] != 0 else np.nan
                continue
            *_, x, info = gtsv(l[place], d[place], u[place], b[place])
            z[place] = x if info == 0 else np.nan
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[3]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (l, d, u, _), (z,) = inputs, outputs
        gb = self(_conj(u), _conj(d), _conj(l), output_grads[0])
        z = _conj(z)
        return [
            -(gb[..., 1:, :] * z[..., :-1, :]).sum(axis=-1), -(gb * z).sum(axis=-1),
            -(gb[..., :-1, :] * z[..., 1:, :]).sum(axis=-1), gb,
        ]  # fmt: skip

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (l, d, u, b), (z,), (dl, dd, du, db) = inputs, outputs, tangents
        change = b.zeros_like() if db is None else db
        if dd is not None:
            change = change - expand_dims(dd, -1) * z
        if dl is not None:
            rows = change[..., 1:, :]
            change = set_subtensor(rows, rows - expand_dims(dl, -1) * z[..., :-1, :])
        if du is not None:
            rows = change[..., :-1, :]
            change = set_subtensor(rows, rows - expand_dims(du, -1) * z[..., 1:, :])
        return [self(l, d, u, change)]


@record
class FactorTridiagonal(MatrixOp):
    """l, d, u, v, p: the LU decomposition of a tridiagonal matrix, as LAPACK's gttrf gives it.

    (..., n-1) (..., n) (..., n-1) -> (..., n-1), (..., n), (..., n-1), (..., max(n-2, 0)), (..., n)
    """

    multiple_outputs = True
    no_derivative = "the factors are LAPACK's own; differentiate solve_tridiagonal"

    def output_types(self, l: Any, d: Any, u: Any) -> list[TensorType]:
        *stack, n = d.type.shape
        rest = None if n is None else max(n - 2, 0)
        short = None if n is None else n - 1
        shapes = ((*stack, short), (*stack, n), (*stack, short), (*stack, rest))
        return [*(TensorType(d.dtype, s) for s in shapes), TensorType("int32", (*stack, n))]

    def perform(self, l: Any, d: Any, u: Any) -> tuple[Any, ...]:
        stack, n = d.shape[:-1], d.shape[-1]
        lengths = (n - 1, n, n - 1, max(n - 2, 0))
        found = [np.empty((*stack, k), d.dtype) for k in lengths]
        found.append(np.empty((*stack, n), np.int32))
        (gttrf,) = linalg.get_lapack_funcs(("gttrf",), (d,))
        for place in np.ndindex(stack):
            *values, _ = gttrf(l[place], d[place], u[place])
            for z, value in zip(found, values, strict=True):
                z[place] = value
        return tuple(found)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        *stack, n = shapes[1]
        rest = max(n - 2, 0) if isinstance(n, int) else node.outputs[3].shape[-1]
        return [shapes[0], shapes[1], shapes[2], (*stack, rest), shapes[1]]


@record
class SolveFactoredTridiagonal(MatrixOp):
    """z with a z = b, or a^T z = b if ``transposed``, given FactorTridiagonal's output for a.

    (..., n-1) (..., n) (..., n-1) (..., n-2) (..., n) (..., n, k) -> (..., n, k)
    """

    transposed: bool = False

    no_derivative = "the factors are LAPACK's own; differentiate solve_tridiagonal"

    def as_inputs(self, *args: Any) -> list[Any]:
        """Return the arguments as tensors of their common dtype; the row exchanges keep theirs."""
        *parts, pivots, b = args
        *ready, right = super().as_inputs(*parts, b)
        return [*ready, cast_to(as_tensor_variable(pivots), "int32"), right]

    def output_types(self, *inputs: Any) -> list[TensorType]:
        return [inputs[-1].type]

    def perform(self, l: Any, d: Any, u: Any, v: Any, p: Any, b: Any) -> Any:
        z = np.empty(b.shape, b.dtype)
        (gttrs,) = linalg.get_lapack_funcs(("gttrs",), (d, b))
        letter = "T" if self.transposed else "N"
        for i in np.ndindex(b.shape[:-2] if b.size else (0,)):
            z[i], _ = gttrs(l[i], d[i], u[i], v[i], p[i], b[i], trans=letter)
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[-1]]


__all__ = ["SolveTridiagonal"]
