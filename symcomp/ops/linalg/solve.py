"""Linear systems: general, banded, triangular, symmetric, Hermitian and positive definite matrices.
"""

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
from symcomp.ops.elementwise.scalar_math import conj
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    folded,
    mirrored,
    product,
    require_square,
    square_length,
    triangle,
)
from symcomp.ops.shapes.axes import expand_dims

linalg = lazy_module("scipy.linalg")

# Names of a structure: in SciPy, in Theano, and in this file.
STRUCTURES = {
    "gen": "general", "general": "general", "banded": "banded",
    "pos": "positive_definite", "positive definite": "positive_definite",
    "sym": "symmetric", "symmetric": "symmetric",
    "her": "hermitian", "hermitian": "hermitian",
    "lower triangular": "lower_triangular", "upper triangular": "upper_triangular",
}  # fmt: skip
TRIANGULAR = ("lower_triangular", "upper_triangular")
# Structures of which all elements are read.
WHOLE = ("general", "banded")


def _structure(name: str, called: Any) -> str:
    found = STRUCTURES.get(str(called).replace("_", " "))
    if found is None:
        known = ", ".join(repr(word) for word in STRUCTURES)
        raise ValueError(f"{name}: assume_a={called!r} must be one of {known}")
    return found


@record
class Solve(MatrixOp):
    """z with a z = b.   (..., n, n) (..., n, k) -> (..., n, k); (..., n, n) (..., n) -> (..., n)

    ``A_structure`` says what a is: "general", "banded" (zeros far from the diagonal: only the
    diagonals between are eliminated), "positive_definite", "symmetric", "hermitian",
    "lower_triangular" or "upper_triangular", or SciPy's short words. Only one triangle is read
    unless it is general or banded: the lower one if ``lower``. If ``unit_diagonal``, the diagonal
    of a triangular a is not read but taken to be 1. Vectors have one axis less than a. ``on_error``
    "nan" gives NaN, not an error, where there is no solution.
    """

    A_structure: str = "general"
    lower: bool = False
    unit_diagonal: bool = False
    on_error: str = "raise"

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "nan"):
            raise ValueError(f"solve: on_error={self.on_error!r} must be 'raise' or 'nan'")
        structure = _structure("Solve", self.A_structure)
        # Fields without effect get a default value, so that equal systems make equal ops.
        lower = structure == "lower_triangular" or (
            bool(self.lower) and structure not in (*WHOLE, "upper_triangular")
        )
        object.__setattr__(self, "A_structure", structure)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "unit_diagonal", self.is_triangular and bool(self.unit_diagonal))
        super().__post_init__()

    @property
    def is_triangular(self) -> bool:
        """True if a has only zeros on one side of its diagonal."""
        return self.A_structure in TRIANGULAR

    def output_types(self, a: TensorVariable, b: TensorVariable) -> list[TensorType]:
        n = square_length("solve", "a", a)
        if b.ndim not in (a.ndim, a.ndim - 1):
            raise ShapeError(
                f"solve: b ({b.type}) must have as many axes as a ({a.type}), or one less: vectors"
            )
        shape = list(b.type.shape)
        wanted = (*a.type.shape[:-2], n)
        for axis, m in enumerate(wanted):
            if m is not None and shape[axis] is not None and m != shape[axis]:
                raise ShapeError(
                    f"solve: axis {axis} of b ({b.type}) has length {shape[axis]}, but the systems "
                    f"of a ({a.type}) need {m}"
                )
            shape[axis] = m if shape[axis] is None else shape[axis]
        return [TensorType(b.dtype, shape)]

    def perform(self, a: Any, b: Any) -> Any:
        check_systems(a, b)
        columns = b[..., None] if b.ndim < a.ndim else b
        if self.A_structure == "general" and self.on_error == "raise":
            z = np.linalg.solve(a, columns)
        else:
            z = np.empty(columns.shape, columns.dtype)
            for place in np.ndindex(a.shape[:-2] if columns.size else (0,)):
                z[place] = self._solution(a[place], columns[place])
        return z[..., 0] if b.ndim < a.ndim else z

    def _solution(self, a: Any, b: Any) -> Any:
        """Solve one system."""
        solver = _SOLVERS.get(self.A_structure, _indefinite)
        try:
            return solver(self, a, b)
        except np.linalg.LinAlgError:
            if self.on_error == "raise":
                raise
            return np.nan

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (a, b), (z,), (gz,) = inputs, outputs, output_grads
        gb = self.adjoint_solution(a, gz)
        if b.ndim < a.ndim:
            ga = product(expand_dims(gb, -1), adjoint(expand_dims(z, -1)))
        else:
            ga = product(gb, adjoint(z))
        return [-self._from_matrix(ga), gb]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (a, b), (z,), (da, db) = inputs, outputs, tangents
        change = db
        if da is not None:
            vectors = b.ndim < a.ndim
            moved = product(self._to_matrix(da), expand_dims(z, -1) if vectors else z)
            moved = moved[..., 0] if vectors else moved
            change = -moved if db is None else db - moved
        return [self(a, change)]

    def adjoint_solution(self, a: TensorVariable, b: TensorVariable) -> TensorVariable:
        """Solve a^H z = b."""
        complex_ = dtypes.is_complex(a.dtype)
        if self.A_structure in ("positive_definite", "hermitian"):
            return self(a, b)
        if self.A_structure == "symmetric":
            return self(conj(a) if complex_ else a, b)
        return self.flipped()(adjoint(a), b)

    def flipped(self) -> Solve:
        """Return the same op for the transpose of its matrix."""
        other = {TRIANGULAR[0]: TRIANGULAR[1], TRIANGULAR[1]: TRIANGULAR[0]}
        structure = other.get(self.A_structure, self.A_structure)
        return Solve(structure, not self.lower, self.unit_diagonal, self.on_error)

    def _to_matrix(self, a: TensorVariable) -> TensorVariable:
        """Return the matrix represented by ``a``; a diagonal taken to be 1 is 0 here, as a tangent
        has none.
        """
        if self.A_structure in WHOLE:
            return a
        if self.is_triangular:
            return triangle(a, self.lower, 0.0 if self.unit_diagonal else 1.0)
        return mirrored(a, self.lower, self.A_structure != "symmetric")

    def _from_matrix(self, g: TensorVariable) -> TensorVariable:
        """Return the gradient with respect to the elements that are read, from that for the
        represented matrix.
        """
        if self.A_structure in WHOLE or self.is_triangular:
            return self._to_matrix(g)
        return folded(g, self.lower, self.A_structure != "symmetric")


def check_systems(a: Any, b: Any) -> None:
    """Raise unless the arrays have the shapes of systems."""
    require_square("solve", a)
    if a.shape[:-1] != b.shape[: a.ndim - 1]:
        raise ShapeError(
            f"solve: shapes {a.shape} and {b.shape} do not fit: axes 0 to {a.ndim - 2} must "
            "be equal"
        )


# -- one system: (n, n) (n, k) -> (n, k)


def _triangular(op: Solve, a: Any, b: Any) -> Any:
    zeros = np.flatnonzero(np.diagonal(a) == 0)
    if zeros.size and not op.unit_diagonal:
        raise np.linalg.LinAlgError(
            f"solve: singular matrix: element {zeros[0]} on the diagonal of a triangular "
            f"{a.dtype} matrix of shape {a.shape} is 0"
        )
    (trsm,) = linalg.get_blas_funcs(("trsm",), (a, b))
    # BLAS uses column-major order: contiguous rows are the columns of the transpose.
    flip = a.flags.c_contiguous
    return trsm(
        1.0, a.T if flip else a, b, lower=op.lower ^ flip, trans_a=int(flip), diag=op.unit_diagonal
    )


def _positive(op: Solve, a: Any, b: Any) -> Any:
    (posv,) = linalg.get_lapack_funcs(("posv",), (a, b))
    _, z, info = posv(a, b, lower=op.lower)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"solve: a {a.dtype} matrix of shape {a.shape} is not positive definite: its leading "
            f"minor of order {info} is not positive"
        )
    return z


def _indefinite(op: Solve, a: Any, b: Any) -> Any:
    hermitian = op.A_structure == "hermitian" and a.dtype.kind == "c"
    (driver,) = linalg.get_lapack_funcs(("hesv" if hermitian else "sysv",), (a, b))
    _, _, z, info = driver(a, b, lower=op.lower)
    if info > 0:
        raise _singular(a)
    return z


def _singular(a: Any) -> Exception:
    return np.linalg.LinAlgError(
        f"solve: singular matrix: a {a.dtype} matrix of shape {a.shape} has no inverse"
    )


def _banded(op: Solve, a: Any, b: Any) -> Any:
    """Eliminate within the band: (n, n), of p diagonals, in the order of n p^2 steps."""
    n, (below, above) = len(a), linalg.bandwidth(a)
    # Row i holds a diagonal. The first rows are LAPACK's, for what exchanges of rows move up.
    band = np.zeros((2 * below + above + 1, n), a.dtype)
    for k in range(-below, above + 1):
        band[below + above - k, max(k, 0) : n + min(k, 0)] = np.diagonal(a, k)
    (gbsv,) = linalg.get_lapack_funcs(("gbsv",), (band, b))
    _, _, z, info = gbsv(below, above, band, b, overwrite_ab=True)
    if info > 0:
        raise _singular(a)
    return z


def _general(op: Solve, a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


_SOLVERS = {
    "general": _general,
    "banded": _banded,
    "positive_definite": _positive,
    **dict.fromkeys(TRIANGULAR, _triangular),
}


__all__ = ["Solve"]
