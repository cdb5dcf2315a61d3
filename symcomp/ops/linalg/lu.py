"""LUFactor: the op of the LU decomposition with pivots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    product,
    require_square,
    square_length,
    triangle,
)
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.sorting.functions import argsort

linalg = lazy_module("scipy.linalg")

LOWER = Solve("lower_triangular", unit_diagonal=True)
UPPER = Solve("upper_triangular")


@record
class LUFactor(MatrixOp):
    """f, v with x = p l u: l, unit lower triangular, below the diagonal of f, u on it and above.

    (..., n, n) -> (..., n, n), (..., n). p is the product of the exchanges of rows i and v_i. With
    y = p^T x and c = l^-1 dy u^-1, dl = l tril(c, -1) and du = triu(c) u (De Hoog, Anderssen and
    Lukas, "Differentiation of matrix functionals using triangular factorization", 2011).
    """

    multiple_outputs = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("lu_factor", "x", x)
        stack = x.type.shape[:-2]
        return [TensorType(x.dtype, (*stack, n, n)), TensorType("int64", (*stack, n))]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("lu_factor", x)
        f, v = np.empty(x.shape, x.dtype), np.empty(x.shape[:-1], np.int64)
        if x.size:
            (getrf,) = linalg.get_lapack_funcs(("getrf",), (x,))
            for place in np.ndindex(x.shape[:-2]):
                f[place], v[place], _ = getrf(x[place])
        return f, v

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0], shapes[0][:-1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (f, v), (gf, _) = outputs, output_grads
        l, u = triangle(f, True, 0.0), triangle(f, False)
        # Below the diagonal l^H gl, on it and above gu u^H; l is 1 on the diagonal.
        strict = triangle(gf, True, 0.0)
        below = triangle(strict + product(adjoint(l), strict), True, 0.0)
        above = triangle(product(triangle(gf, False), adjoint(u)), False)
        moved = LOWER.adjoint_solution(f, below + above)
        gy = adjoint(UPPER(f, adjoint(moved)))
        return [_rows(gy, argsort(pivots_to_permutation(v), axis=-1))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        f, v = outputs
        dy = _rows(tangents[0], pivots_to_permutation(v))
        c = adjoint(UPPER.adjoint_solution(f, adjoint(LOWER(f, dy))))
        strict = triangle(c, True, 0.0)
        dl = strict + product(triangle(f, True, 0.0), strict)
        return [dl + product(triangle(c, False), triangle(f, False)), None]


@record
class PivotsToPermutation(Op):
    """z: the order of rows after the exchanges of rows i and v_i, i = 0, 1, ..

    (..., n) -> (..., n).
    """

    no_derivative = "positions are whole numbers"

    def output_types(self, v: TensorVariable) -> list[TensorType]:
        if v.ndim == 0 or v.dtype != "int64":
            raise DTypeError(f"pivots_to_permutation: {v} ({v.type}) is no vector of int64")
        return [TensorType("int64", v.type.shape)]

    def perform(self, v: Any) -> Any:
        z = np.empty(v.shape, np.int64)
        z[...] = np.arange(v.shape[-1])
        for place in np.ndindex(v.shape[:-1]):
            order = z[place]
            for i, other in enumerate(v[place].tolist()):
                order[i], order[other] = order[other], order[i]
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


def pivots_to_permutation(pivots: Any) -> TensorVariable:
    """Return the order of the rows of a after the exchanges that ``lu_factor`` made: a[order] = l
    u.

    Parameters
    ----------
    pivots : tensor_like of int
        Row i was exchanged with row ``pivots[..., i]``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.linalg.pivots_to_permutation([2, 2, 2]).eval()
    array([2, 0, 1])
    """
    order: TensorVariable = PivotsToPermutation()(cast(as_tensor_variable(pivots), "int64"))
    return order


def _rows(x: TensorVariable, order: TensorVariable) -> TensorVariable:
    """Return the rows of each matrix in this order."""
    return take_along_axis(x, expand_dims(order, -1), axis=-2)


__all__ = ["LUFactor", "pivots_to_permutation"]
