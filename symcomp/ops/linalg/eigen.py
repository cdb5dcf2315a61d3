"""Eigenvalues and eigenvectors of general, symmetric and Hermitian matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.convert import NoneConst, as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import conj, real
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.matrices import (
    MatrixOp,
    adjoint,
    aligned_stacks,
    diagonal_of,
    folded,
    inverse_gaps,
    lapack_dtype,
    mirrored,
    narrowed,
    product,
    require_square,
    scaled_columns,
    square_length,
    total,
    with_diagonal,
)
from symcomp.ops.linalg.solve import Solve

# -- symmetric and Hermitian


@record
class Eigh(MatrixOp):
    """w, v with x v = v diag(w), w ascending, v unitary.   (..., n, n) -> (..., n), (..., n, n)

    x is Hermitian, or symmetric if real: only the triangle ``UPLO`` is read. The derivative of
    v is v (F * (v^H dx v)), F_ij = 1 / (w_j - w_i): it does not exist for an eigenvalue that occurs
    twice, and has v_i^H dv_i = 0, as the phase of a complex v_i is free.
    """

    multiple_outputs = True
    UPLO: Literal["L", "U"] = "L"

    def __post_init__(self) -> None:
        if self.UPLO not in ("L", "U"):
            raise ValueError(f"eigh: UPLO={self.UPLO!r} must be 'L' or 'U'")
        super().__post_init__()

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eigh", "x", x)
        stack = x.type.shape[:-2]
        return [
            TensorType(dtypes.real_part(x.dtype), (*stack, n)),
            TensorType(x.dtype, (*stack, n, n)),
        ]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("eigh", x)
        w, v = np.linalg.eigh(x, UPLO=self.UPLO)
        return w, v

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1], shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (w, v), (gw, gv) = outputs, output_grads
        terms = [] if gw is None else [scaled_columns(v, gw)]
        if gv is not None:
            terms.append(product(v, inverse_gaps(w) * product(adjoint(v), gv)))
        return [folded(product(total(terms), adjoint(v)), self.UPLO == "L", True)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        w, v = outputs
        change = product(adjoint(v), mirrored(tangents[0], self.UPLO == "L", True), v)
        return [_real(diagonal_of(change)), product(v, inverse_gaps(w) * change)]


def _real(x: TensorVariable) -> TensorVariable:
    return real(x) if dtypes.is_complex(x.dtype) else x


def eigh(a: Any, UPLO: Literal["L", "U"] = "L") -> list[TensorVariable]:
    """Compute eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices.

    (..., n, n) -> (..., n), (..., n, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.
    UPLO : {"L", "U"}
        The triangle that is read. The gradient with respect to the other is zero.

    Returns
    -------
    w, v : TensorVariable
        Column ``v[..., :, i]`` belongs to ``w[..., i]``. The derivative of v does not exist where
        two eigenvalues are equal.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> w, v = T.nlinalg.eigh(x)
    >>> w.eval({x: [[2, 0], [1, 2]]})
    array([1., 3.])
    """
    a = as_tensor_variable(a)
    return [narrowed(out, a) for out in Eigh(UPLO)(a)]


@record
class Eigvalsh(MatrixOp):
    """w, ascending: the eigenvalues of a Hermitian x.   (..., n, n) -> (..., n)

    One triangle of x is read: the lower one, if ``lower``. With the eigenvectors v, dw_i = v_i^H dx
    v_i.
    """

    lower: bool = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eigvalsh", "x", x)
        return [TensorType(dtypes.real_part(x.dtype), (*x.type.shape[:-2], n))]

    def perform(self, x: Any) -> Any:
        require_square("eigvalsh", x)
        return np.linalg.eigvalsh(x, UPLO="L" if self.lower else "U")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        decomposed = Eigh("L" if self.lower else "U")
        return decomposed.pullback(inputs, decomposed(inputs[0]), [output_grads[0], None])

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        decomposed = Eigh("L" if self.lower else "U")
        return decomposed.pushforward(inputs, decomposed(inputs[0]), tangents)[:1]


def eigvalsh(a: Any, b: Any = None, lower: bool = True) -> TensorVariable:
    """Compute the w, ascending, with ``a v = w b v`` for some v, for symmetric or Hermitian
    matrices.

    (..., n, n) (..., n, n) -> (..., n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.
    b : tensor_like, optional
        Positive definite; by default the identity.
    lower : bool
        If true, the lower triangles of both are read, else the upper ones. The gradients with
        respect to the other are zero.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: b is not positive definite.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrices("a", "b")
    >>> T.slinalg.eigvalsh(a, b).eval({a: [[2, 0], [0, 8]], b: [[2, 0], [0, 2]]})
    array([1., 4.])
    """
    a, lower = as_tensor_variable(a), bool(lower)
    if b is None or b is NoneConst:
        return narrowed(Eigvalsh(lower)(a), a)
    b = as_tensor_variable(b)
    square_length("eigvalsh", "a", a)
    square_length("eigvalsh", "b", b)
    left, right = aligned_stacks("eigvalsh", a, b, 2)
    common = lapack_dtype(a.dtype, b.dtype)
    # With b = c c^H, these are the eigenvalues of c^-1 a c^-H (Golub and Van Loan, section 8.7).
    c = Cholesky(lower)(cast_to(right, common))
    c = c if lower else adjoint(c)
    solver = Solve("lower_triangular")
    half = adjoint(solver(c, mirrored(cast_to(left, common), lower, True)))
    return narrowed(Eigvalsh()(solver(c, half)), a, b)


# -- general


@record
class Eig(MatrixOp):
    """w, v with x v = v diag(w), columns of v of length 1.   (..., n, n) -> (..., n), (..., n, n)

    Both are complex, also for real x. With P = v^-1 dx v and F_ij = 1 / (w_j - w_i), dw = diag(P)
    and dv = v (F * P) minus its component along v: v_i^H dv_i = 0, as the phase of v_i is free. The
    derivative of v does not exist where two eigenvalues are equal.
    """

    multiple_outputs = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("eig", "x", x)
        stack, kind = x.type.shape[:-2], dtypes.to_complex(x.dtype)
        return [TensorType(kind, (*stack, n)), TensorType(kind, (*stack, n, n))]

    def perform(self, x: Any) -> tuple[Any, ...]:
        require_square("eig", x)
        w, v = np.linalg.eig(x)
        kind = dtypes.to_complex(x.dtype.name)
        return w.astype(kind, copy=False), v.astype(kind, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:-1], shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (w, v), (gw, gv) = outputs, output_grads
        vh = adjoint(v)
        terms = [] if gw is None else [with_diagonal(v.zeros_like(), gw)]
        if gv is not None:
            turned = product(vh, gv)
            across = turned - scaled_columns(product(vh, v), diagonal_of(turned))
            terms.append(conj(inverse_gaps(w)) * across)
        return [product(Solve()(vh, total(terms)), vh)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (w, v), (dx,) = outputs, tangents
        change = Solve()(v, product(cast_to(dx, v.dtype), v))
        dv = product(v, inverse_gaps(w) * change)
        along = diagonal_of(product(adjoint(v), dv))
        return [diagonal_of(change), dv - scaled_columns(v, along)]


def eig(a: Any) -> list[TensorVariable]:
    """Compute eigenvalues and eigenvectors of general square matrices, always complex.

    (..., n, n) -> (..., n), (..., n, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.

    Returns
    -------
    w, v : TensorVariable
        Column ``v[..., :, i]``, of length 1, belongs to ``w[..., i]``. The derivative of v does not
        exist where two eigenvalues are equal, and makes sense only of what does not depend on the
        phases of the columns.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: a holds NaN or infinity.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> w, v = T.nlinalg.eig(x)
    >>> w.eval({x: [[2, 1], [0, 3]]})
    array([2.+0.j, 3.+0.j])
    """
    a = as_tensor_variable(a)
    return list(Eig()(a))


__all__ = ["Eig", "eig", "Eigh", "eigh", "Eigvalsh", "eigvalsh"]
