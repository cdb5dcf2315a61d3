"""Sylvester's equation a x + x b = c, for general and for triangular matrices."""

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
from symcomp.ops.elementwise.scalar_logic import ge, switch
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    check_matrix,
    offsets,
    product,
    square_length,
    total,
)

linalg = lazy_module("scipy.linalg")


@record
class Sylvester(MatrixOp):
    """z with a z + z b = c.   (..., m, m) (..., n, n) (..., m, n) -> (..., m, n)

    If ``triangular``, a and b are upper triangular, or quasi-triangular if they are real, as
    Schur's decomposition gives them, and the elements below are not read; if ``adjoint`` too, the
    system is that of their adjoints. NaN where there is no single solution.
    """

    triangular: bool = False
    adjoint: bool = False

    def output_types(
        self, a: TensorVariable, b: TensorVariable, c: TensorVariable
    ) -> list[TensorType]:
        m, n = square_length("solve_sylvester", "a", a), square_length("solve_sylvester", "b", b)
        check_matrix("solve_sylvester", "c", c)
        if not a.ndim == b.ndim == c.ndim:
            raise ShapeError(f"solve_sylvester: stacks of {a.type}, {b.type} and {c.type} differ")
        shape = list(c.type.shape)
        for axis, length in ((-2, m), (-1, n)):
            if length is not None and shape[axis] not in (None, length):
                raise ShapeError(
                    f"solve_sylvester: c ({c.type}) does not fit a ({a.type}) and b ({b.type})"
                )
            shape[axis] = length if shape[axis] is None else shape[axis]
        return [TensorType(c.dtype, shape)]

    def perform(self, a: Any, b: Any, c: Any) -> Any:
        if (
            a.shape[:-1] != c.shape[:-1]
            or b.shape[:-2] != c.shape[:-2]
            or (
                a.shape[-1] != a.shape[-2]
                or b.shape[-1] != b.shape[-2]
                or b.shape[-1] != c.shape[-1]
            )
        ):
            raise ShapeError(
                f"solve_sylvester: shapes {a.shape}, {b.shape} and {c.shape} do not fit: a "
                "(m, m), b (n, n) and c (m, n) are needed"
            )
        z = np.empty(c.shape, c.dtype)
        solve = self._triangular if self.triangular else _general
        for place in np.ndindex(c.shape[:-2] if c.size else (0,)):
            z[place] = solve(a[place], b[place], c[place])
        return z

    def _triangular(self, a: Any, b: Any, c: Any) -> Any:
        letter = "N" if not self.adjoint else "C" if a.dtype.kind == "c" else "T"
        return _of_triangles(a, b, c, letter)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[2]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (a, b, _), (z,) = inputs, outputs
        gc = self._of_adjoints(a, b, output_grads[0])
        ga, gb = product(gc, adjoint(z)), product(adjoint(z), gc)
        if self.adjoint:
            ga, gb = adjoint(ga), adjoint(gb)
        return [-self._read(ga), -self._read(gb), gc]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (a, b, _), (z,), (da, db, dc) = inputs, outputs, tangents
        terms = [] if dc is None else [dc]
        if da is not None:
            da = self._read(da)
            terms.append(-product(adjoint(da) if self.adjoint else da, z))
        if db is not None:
            db = self._read(db)
            terms.append(-product(z, adjoint(db) if self.adjoint else db))
        return [self(a, b, total(terms))]

    def _of_adjoints(self, a: TensorVariable, b: TensorVariable, c: TensorVariable) -> Any:
        """Solve a^H z + z b^H = c."""
        if self.triangular:
            return Sylvester(True, not self.adjoint)(a, b, c)
        return self(adjoint(a), adjoint(b), c)

    def _read(self, x: TensorVariable) -> TensorVariable:
        """Return the part of a change of a or b that is read: with real matrices, also the blocks
        of two rows.
        """
        if not self.triangular:
            return x
        below = 0 if dtypes.is_complex(x.dtype) else -1
        return switch(ge(offsets(x), below), x, np.zeros((), x.dtype))


def _general(a: Any, b: Any, c: Any) -> Any:
    """Solve by Schur's decompositions of both (Bartels and Stewart, 1972)."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.nan
    r, u = linalg.schur(a, output="real")
    s, v = linalg.schur(b.conj().T, output="real")
    y = _of_triangles(r, s, u.conj().T @ c @ v, "N", "C" if a.dtype.kind == "c" else "T")
    return u @ y @ v.conj().T


def _of_triangles(a: Any, b: Any, c: Any, first: str, second: str | None = None) -> Any:
    """Call LAPACK's trsyl, with a and b transposed or not."""
    (trsyl,) = linalg.get_lapack_funcs(("trsyl",), (a, b, c))
    z, scale, info = trsyl(a, b, c, trana=first, tranb=second or first)
    return z / scale if info == 0 else np.full(c.shape, np.nan, c.dtype)


__all__ = ["Sylvester"]
