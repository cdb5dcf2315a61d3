"""Least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import conj, real
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.linalg.inverse import MatrixPinv
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    check_matrix,
    known_shorter,
    product,
    scaled_columns,
    shorter,
    total,
)
from symcomp.ops.linalg.svd import SingularValues
from symcomp.ops.shapes.creation import eye
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import shape_tuple


@record
class Lstsq(MatrixOp):
    """z, residuals, rank, s: the shortest z for which the columns of b - a z are shortest.

    (m, n) (m, k) -> (n, k), (k,) or (0,), (), (min(m, n),). Singular values s of a below ``rcond``
    times the largest count as 0; below the rounding unit times max(m, n) if ``rcond`` is None. The
    residuals are the squares of the lengths of b - a z; there are none if rank < n or m <= n. The
    derivative of z = a^+ b is that of the pseudo-inverse, where the rank does not change.
    """

    multiple_outputs = True
    rcond: float | None = None

    def output_types(self, a: TensorVariable, b: TensorVariable) -> list[TensorType]:
        for name, x in (("a", a), ("b", b)):
            check_matrix("lstsq", name, x)
            if x.ndim > 2:
                raise ShapeError(f"lstsq: {name} ({x.type}) has more than 2 axes")
        (m, n), (rows, k) = a.type.shape, b.type.shape
        if m is not None and rows is not None and m != rows:
            raise ShapeError(f"lstsq: a ({a.type}) has {m} rows, b ({b.type}) has {rows}")
        few = m is not None and n is not None and m <= n
        lengths = known_shorter(rows if m is None else m, n)
        narrow = dtypes.real_part(a.dtype)
        return [
            TensorType(a.dtype, (n, k)),
            TensorType(narrow, (0 if few else None,)),
            TensorType("int64", ()),
            TensorType(narrow, (lengths,)),
        ]

    def perform(self, a: Any, b: Any) -> tuple[Any, ...]:
        return self._solve(a, b, self.rcond)

    @staticmethod
    def _solve(a: Any, b: Any, rcond: float | None) -> tuple[Any, ...]:
        if len(a) != len(b):
            raise ShapeError(f"lstsq: a has shape {a.shape}, b {b.shape}: as many rows are needed")
        z, residuals, rank, s = np.linalg.lstsq(a, b, rcond=rcond)
        if len(a) <= a.shape[1]:
            residuals = residuals[:0]  # for an empty a, NumPy returns some
        return z, residuals, np.asarray(rank, np.int64), s

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        (m, n), (_, k), *_ = shapes
        # The number of residuals depends on the rank, which only the output shows.
        return [(n, k), shape_tuple(node.outputs[1]), (), (shorter(m, n),)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, False, True], [True, True, False, False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (a, b, *cut), (z, residuals, _, _), (gz, gr, _, gs) = inputs, outputs, output_grads
        rest = b - product(a, z)
        ga, gb = [], []
        if gz is not None:
            inverse = self._inverse(a, *cut)
            back = product(adjoint(inverse), gz)
            across = gz - product(inverse, a, gz)
            ga.append(product(rest, adjoint(product(inverse, back))))
            ga.append(product(adjoint(inverse), z, adjoint(across)) - product(back, adjoint(z)))
            gb.append(back)
        if gr is not None:
            weights = zeros([shape_tuple(b)[1]], gr.dtype)
            weights = set_subtensor(weights[: shape_tuple(residuals)[0]], gr)
            moved = scaled_columns(rest, 2 * weights)
            ga.append(-product(moved, adjoint(z)))
            gb.append(moved)
        if gs is not None:
            ga += SingularValues().pullback([a], None, [gs])
        return [total(ga), total(gb), *[None for _ in cut]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (a, b, *cut), (z, residuals, _, _), (da, db, *_) = inputs, outputs, tangents
        inverse, rest = self._inverse(a, *cut), b - product(a, z)
        change = total([*([] if db is None else [db]), *([] if da is None else [-product(da, z)])])
        dz, ds = product(inverse, change), None
        if da is not None:
            dah = adjoint(da)
            dz = dz + product(inverse, adjoint(inverse), dah, rest)
            along = product(dah, adjoint(inverse), z)
            dz = dz + along - product(inverse, a, along)
            (ds,) = SingularValues().pushforward([a], None, [da])
        rest = conj(rest) if dtypes.is_complex(rest.dtype) else rest
        dr = 2 * (rest * change).sum(axis=0)
        dr = real(dr) if dtypes.is_complex(dr.dtype) else dr
        return [dz, dr[: shape_tuple(residuals)[0]], None, ds]

    def _inverse(self, a: TensorVariable) -> TensorVariable:
        """Compute the pseudo-inverse of ``a``, with the rank of this solution."""
        rcond = self.rcond
        if rcond is not None and rcond < 0:
            rcond = float(np.finfo(a.dtype).eps)
        return MatrixPinv(False, rcond)(a)


@record
class LstsqCut(Lstsq):
    """``Lstsq`` with ``rcond`` as a third input, a real scalar."""

    def as_inputs(self, *args: Any) -> list[Any]:
        a, b, cut = args
        return [*super().as_inputs(a, b), as_tensor_variable(cut)]

    def output_types(self, a: TensorVariable, b: TensorVariable, cut: Any) -> list[TensorType]:  # type: ignore[override]
        if cut.ndim or dtypes.is_complex(cut.dtype):
            raise DTypeError(f"lstsq: rcond must be a real scalar, got {cut} ({cut.type})")
        return super().output_types(a, b)

    def perform(self, a: Any, b: Any, cut: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return self._solve(a, b, float(cut))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [*super().connection_pattern(node), [False] * 4]

    def _inverse(self, a: TensorVariable, cut: TensorVariable) -> TensorVariable:  # type: ignore[override]
        """Compute the pseudo-inverse of ``a``: the solution where b is the identity."""
        inverse: TensorVariable = self(a, eye(shape_tuple(a)[0], dtype=a.dtype), cut)[0]
        return inverse


__all__ = ["Lstsq", "LstsqCut"]
