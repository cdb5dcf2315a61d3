"""Systems of equations and inverses, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Constant
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_int, as_tensor_variable, cast_to, constant_scalar
from symcomp.ops.linalg.inverse import MatrixInverse, MatrixPinv
from symcomp.ops.linalg.lstsq import Lstsq, LstsqCut
from symcomp.ops.linalg.lu import _rows, pivots_to_permutation
from symcomp.ops.linalg.matrices import (
    adjoint,
    aligned_stacks,
    check_matrix,
    lapack_dtype,
    narrowed,
    square_length,
)
from symcomp.ops.linalg.solve import TRIANGULAR, Solve
from symcomp.ops.linalg.sylvester import Sylvester
from symcomp.ops.linalg.tridiagonal import SolveTridiagonal
from symcomp.ops.shapes.axes import expand_dims, matrix_transpose, moveaxis
from symcomp.ops.shapes.shape import normalize_axes, product_of, reshape, shape_tuple
from symcomp.ops.sorting.functions import argsort


def cho_solve(
    c_and_lower: Any, b: Any, b_ndim: int | None = None, on_error: str = "raise"
) -> TensorVariable:
    """Solve ``a x = b`` for x, given the Cholesky decomposition of a.

    Parameters
    ----------
    c_and_lower : (tensor_like, bool)
        The result of ``cholesky``, and whether it is lower triangular. The other triangle is not
        read.
    b : tensor_like
        As for ``solve``.
    b_ndim : {1, 2}, optional
    on_error : {"raise", "nan"}
        As for ``solve``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrix("a"), T.dvector("b")
    >>> c = T.slinalg.cholesky(a)
    >>> T.slinalg.cho_solve((c, True), b).eval({a: [[4, 2], [2, 2]], b: [6, 4]})
    array([1., 1.])
    """
    c, lower = c_and_lower
    c, b = as_tensor_variable(c), as_tensor_variable(b)
    core = min(b.ndim, 2) if b_ndim is None else b_ndim
    first, second = (0, 2) if lower else (2, 0)
    precise = cast_to(b, lapack_dtype(c.dtype, b.dtype))
    half = solve_triangular(c, precise, first, lower, False, core, on_error)
    return narrowed(solve_triangular(c, half, second, lower, False, core, on_error), c, b)


def matrix_inverse(x: Any) -> TensorVariable:
    """Compute the inverse of a square matrix, or of each matrix of a stack.   (..., n, n) -> (...,
    n, n)

    To solve a linear system, ``solve`` is faster and more precise.

    Parameters
    ----------
    x : tensor_like
        Integers count as float64.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        When the function runs: a matrix is singular.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.matrix_inverse(x).eval({x: [[2, 0], [0, 4]]})
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    x = as_tensor_variable(x)
    return narrowed(MatrixInverse()(x), x)


def pinv(x: Any, hermitian: bool = False, rcond: float | None = 1e-15) -> TensorVariable:
    """Compute the Moore-Penrose inverse of each matrix.   (..., m, n) -> (..., n, m)

    Parameters
    ----------
    x : tensor_like
    hermitian : bool
        The matrices are symmetric, or Hermitian if they are complex: only their lower triangles
        are read.
    rcond : float or None
        Singular values below this multiple of the largest count as 0. None: the rounding unit times
        max(m, n).

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: x holds NaN or infinity.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.pinv(x).eval({x: [[2, 0], [0, 0]]})
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    x = as_tensor_variable(x)
    return narrowed(MatrixPinv(bool(hermitian), rcond)(x), x)


def lstsq(a: Any, b: Any, rcond: Any = None) -> list[TensorVariable]:
    """Compute the shortest x for which ``b - a x`` is shortest.   (m, n) (m, k) -> (n, k); (m, n)
    (m,) -> (n,)

    Parameters
    ----------
    a : matrix
        Integers count as float64.
    b : vector or matrix
    rcond : float or real scalar, optional
        Singular values of a below this multiple of the largest count as 0. By default the rounding
        unit times max(m, n); a negative one stands for the rounding unit.

    Returns
    -------
    list of TensorVariable
        x; the squares of the lengths of b - a x, a vector, empty if the rank is below n or m <= n;
        the rank of a, int64; the singular values of a.

    Raises
    ------
    ShapeError, DTypeError
    numpy.linalg.LinAlgError
        When the function runs: the singular values are not found.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrix("a"), T.dvector("b")
    >>> x, residuals, rank, s = T.nlinalg.lstsq(a, b)
    >>> x.eval({a: [[1], [1]], b: [1, 3]})
    array([2.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if b.ndim not in (1, 2):
        raise ShapeError(f"lstsq: b ({b.type}) is neither vector nor matrix")
    columns = expand_dims(b, -1) if b.ndim == 1 else b
    if isinstance(rcond, TensorVariable) and not isinstance(rcond, Constant):
        x, residuals, rank, s = LstsqCut()(a, columns, rcond)
    else:
        x, residuals, rank, s = Lstsq(_as_number(rcond))(a, columns)
    x = x[:, 0] if b.ndim == 1 else x
    return [narrowed(x, a, b), narrowed(residuals, a, b), rank, narrowed(s, a, b)]


def _as_number(rcond: Any) -> float | None:
    try:
        return None if rcond is None else float(constant_scalar(rcond))
    except (TypeError, ValueError):
        raise DTypeError(f"lstsq: rcond={rcond!r} must be a number, a scalar or None") from None


def lu_solve(lu_and_pivots: Any, b: Any, trans: Any = 0, b_ndim: int | None = None) -> Any:
    """Solve ``a x = b`` for x, given ``lu_factor`` of a.

    Parameters
    ----------
    lu_and_pivots : (tensor_like, tensor_like)
        The result of ``lu_factor``.
    b : tensor_like
    trans, b_ndim
        As for ``solve``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrix("a"), T.dvector("b")
    >>> T.linalg.lu_solve(T.linalg.lu_factor(a), b).eval({a: [[2, 0], [1, 4]], b: [2, 9]})
    array([1., 2.])
    """
    packed, pivots = (as_tensor_variable(v) for v in lu_and_pivots)
    b = as_tensor_variable(b)
    core = min(b.ndim, 2) if b_ndim is None else b_ndim
    columns = expand_dims(b, -1) if core == 1 else b
    order = pivots_to_permutation(pivots)
    if TRANSPOSED[trans]:
        flipped = adjoint(packed) if TRANSPOSED[trans] == 2 else matrix_transpose(packed)
        half = solve_triangular(flipped, columns, lower=True, b_ndim=2)
        whole = solve_triangular(flipped, half, lower=False, unit_diagonal=True, b_ndim=2)
        z = _rows(whole, argsort(order, axis=-1))
    else:
        half = solve_triangular(
            packed, _rows(columns, order), lower=True, unit_diagonal=True, b_ndim=2
        )
        z = solve_triangular(packed, half, lower=False, b_ndim=2)
    return narrowed(z[..., 0] if core == 1 else z, packed, b)


def tensorinv(a: Any, ind: int = 2) -> TensorVariable:
    """Compute the inverse of ``a`` as the linear map of ``tensordot``: it undoes ``tensordot(a,
    x)``.

    Parameters
    ----------
    a : tensor_like
        The product of its first ``ind`` lengths must equal that of the others.
    ind : int
        At least 1. ``tensordot(tensorinv(a, ind), tensordot(a, x, a.ndim - ind), ind)`` is x.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: there is no inverse.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> T.nlinalg.tensorinv(x, 1).eval({x: [[[2, 0]], [[0, 4]]]}).shape
    (1, 2, 2)
    """
    a = as_tensor_variable(a)
    ind = as_int(ind, "tensorinv", "ind")
    if not 1 <= ind <= a.ndim:
        raise ShapeError(f"tensorinv: ind={ind} is not between 1 and the {a.ndim} axes ({a.type})")
    lengths = shape_tuple(a)
    rows, columns = lengths[:ind], lengths[ind:]
    inverse = matrix_inverse(_as_matrix("tensorinv", a, ind))
    return reshape(inverse, [*columns, *rows])


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> TensorVariable:
    """Solve ``tensordot(a, x, x.ndim) = b`` for x.

    Parameters
    ----------
    a : tensor_like
        Its first axes have the lengths of b, the others those of x.
    b : tensor_like
    axes : sequence of int, optional
        Axes of a to be moved to the end first.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: there is not one solution.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dtensor3("a"), T.dvector("b")
    >>> T.nlinalg.tensorsolve(a, b).eval({a: [[[2, 0]], [[0, 4]]], b: [2, 8]})
    array([[1., 2.]])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if axes is not None:
        if not isinstance(axes, Sequence | np.ndarray) or isinstance(axes, str):
            raise TypeError(f"tensorsolve: axes is {axes!r:.80}; a sequence of ints is needed")
        last = normalize_axes("tensorsolve", axes, a.ndim)
        a = moveaxis(a, list(axes), list(range(a.ndim - len(last), a.ndim)))
    if b.ndim > a.ndim:
        raise ShapeError(f"tensorsolve: b ({b.type}) has more axes than a ({a.type})")
    x = solve(_as_matrix("tensorsolve", a, b.ndim), b.flatten(), b_ndim=1)
    return reshape(x, list(shape_tuple(a)[b.ndim :]))


def _as_matrix(name: str, a: TensorVariable, ind: int) -> TensorVariable:
    """Merge the first ``ind`` axes of ``a`` into one, and the others into another."""
    lengths = shape_tuple(a)
    rows, columns = product_of(lengths[:ind]), product_of(lengths[ind:])
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ShapeError(
            f"{name}: the first {ind} axes of a ({a.type}) have {rows} places, the others "
            f"{columns}: these must be equal"
        )
    return reshape(a, [rows, columns])


# Names of transposition: SciPy's numbers and letters.
TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def solve(
    a: Any,
    b: Any,
    assume_a: str = "gen",
    lower: bool = False,
    trans: Any = 0,
    unit_diagonal: bool = False,
    b_ndim: int | None = None,
    on_error: str = "raise",
) -> TensorVariable:
    """Solve ``a x = b`` for x.   (..., n, n) (..., n, k) -> (..., n, k); (..., n, n) (n,) -> (...,
    n)

    Parameters
    ----------
    a : tensor_like
        Square matrices. Integers count as float64.
    b : tensor_like
        A vector if it has one axis, else matrices. The axes in front broadcast with those of a.
    assume_a : str
        "gen", "banded" (faster if a is zero far from its diagonal), "pos" (positive definite: a
        Cholesky decomposition is used), "sym", "her", "lower triangular" or "upper triangular".
        SciPy's and Theano's longer words are understood.
    lower : bool
        If true, the lower triangle is read for "pos", "sym" and "her", else the upper one. The
        gradient with respect to the other is zero.
    trans : {0, 1, 2, "N", "T", "C"}
        1 or "T": solve ``a^T x = b``; 2 or "C": ``a^H x = b``.
    unit_diagonal : bool
        Take the diagonal of a triangular a to be 1.
    b_ndim : {1, 2}, optional
        1 if b holds vectors, 2 if matrices, in case it has more than one axis.
    on_error : {"raise", "nan"}
        The result for a matrix that is singular, or not positive definite.

    Raises
    ------
    ShapeError, ValueError
    numpy.linalg.LinAlgError
        When the function runs: a matrix is singular, or not positive definite.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrix("a"), T.dvector("b")
    >>> T.slinalg.solve(a, b).eval({a: [[2, 0], [1, 4]], b: [2, 9]})
    array([1., 2.])
    >>> T.slinalg.solve(a, b, "lower triangular", trans=1).eval({a: [[2, 0], [1, 4]], b: [4, 8]})
    array([1., 2.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if trans not in TRANSPOSED:
        raise ValueError(f"solve: trans={trans!r} must be 0, 1, 2, 'N', 'T' or 'C'")
    core = min(b.ndim, 2) if b_ndim is None else b_ndim
    if core not in (1, 2) or b.ndim < core:
        raise ShapeError(
            f"solve: b ({b.type}), with b_ndim={b_ndim}, is neither vectors (1) nor matrices (2)"
        )
    square_length("solve", "a", a)
    op = Solve(assume_a, lower, unit_diagonal, on_error)
    left, right = aligned_stacks("solve", a, b, core)
    if TRANSPOSED[trans]:
        op = op.flipped()
        left = adjoint(left) if TRANSPOSED[trans] == 2 else matrix_transpose(left)
    return narrowed(op(left, right), a, b)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    b_ndim: int | None = None,
    on_error: str = "raise",
) -> TensorVariable:
    """Solve a system with a triangular a; the other triangle is not read.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dmatrix("a"), T.dvector("b")
    >>> T.slinalg.solve_triangular(a, b, lower=True).eval({a: [[2, 7], [1, 4]], b: [2, 9]})
    array([1., 2.])
    """
    structure = TRIANGULAR[0 if lower else 1]
    return solve(a, b, structure, lower, trans, unit_diagonal, b_ndim, on_error)


def solve_lower_triangular(A: Any, b: Any) -> TensorVariable:
    """Solve a system with a lower triangular A.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.linalg.solve_lower_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0]).eval()
    array([1., 2.])
    """
    return solve(A, b, "lower triangular")


def solve_upper_triangular(A: Any, b: Any) -> TensorVariable:
    """Solve a system with an upper triangular A.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.linalg.solve_upper_triangular([[2.0, 1.0], [0.0, 1.0]], [4.0, 2.0]).eval()
    array([1., 2.])
    """
    return solve(A, b, "upper triangular")


def solve_symmetric(A: Any, b: Any) -> TensorVariable:
    """Solve a system with a symmetric A, of which the upper triangle is read.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.linalg.solve_symmetric([[2.0, 1.0], [1.0, 2.0]], [3.0, 3.0]).eval()
    array([1., 1.])
    """
    return solve(A, b, "sym")


def solve_sylvester(a: Any, b: Any, c: Any) -> TensorVariable:
    """Solve ``a x + x b = c`` for x.   (..., m, m) (..., n, n) (..., m, n) -> (..., m, n)

    Parameters
    ----------
    a, b, c : tensor_like
        Integers count as float64. No eigenvalue of a may be that of -b: x is NaN then.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, c = T.dmatrix("a"), T.dmatrix("c")
    >>> T.linalg.solve_sylvester(a, a, c).eval({a: [[1, 0], [0, 2]], c: [[2, 3], [3, 8]]})
    array([[1., 1.],
           [1., 2.]])
    """
    return _solved(Sylvester(), a, b, c)


def solve_triangular_sylvester(a: Any, b: Any, c: Any) -> TensorVariable:
    """Solve a x + x b = c for upper triangular a and b, as Schur's decomposition gives them.

    Elements below the diagonal (of real matrices, below the blocks of two rows on it) are not read.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, c = T.dmatrix("a"), T.dmatrix("c")
    >>> f = T.linalg.solve_triangular_sylvester(a, a, c)
    >>> f.eval({a: [[1, 1], [0, 1]], c: [[0, 0], [2, 0]]})
    array([[-0.5,  0.5],
           [ 1. , -0.5]])
    """
    return _solved(Sylvester(triangular=True), a, b, c)


def _solved(op: Sylvester, *given: Any) -> TensorVariable:
    a, b, c = (as_tensor_variable(v) for v in given)
    check_matrix("solve_sylvester", "c", c)
    left, whole = aligned_stacks("solve_sylvester", a, c, 2)
    right, whole = aligned_stacks("solve_sylvester", b, whole, 2)
    left, whole = aligned_stacks("solve_sylvester", left, whole, 2)
    return narrowed(op(left, right, whole), a, b, c)


def solve_tridiagonal(dl: Any, d: Any, du: Any, b: Any, b_ndim: int | None = None) -> Any:
    """Solve ``a x = b`` for x, given the diagonals of a below, on and above the main one.

    (..., n-1) (..., n) (..., n-1) (..., n, k) -> (..., n, k); b may be vectors

    Parameters
    ----------
    dl, d, du : tensor_like
        Integers count as float64.
    b : tensor_like
        A vector if it has one axis, else matrices.
    b_ndim : {1, 2}, optional
        1 if b holds vectors, 2 if matrices, in case it has more than one axis.

    Returns
    -------
    TensorVariable
        NaN for a singular matrix.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> d, b = T.dvector("d"), T.dvector("b")
    >>> T.linalg.solve_tridiagonal([1.0, 1.0], d, [0.0, 0.0], b).eval({d: [1, 1, 1], b: [1, 3, 3]})
    array([1., 2., 1.])
    """
    dl, d, du, b = (as_tensor_variable(v) for v in (dl, d, du, b))
    core = min(b.ndim, 2) if b_ndim is None else b_ndim
    columns = expand_dims(b, -1) if core == 1 else b
    z = SolveTridiagonal()(dl, d, du, columns)
    return narrowed(z[..., 0] if core == 1 else z, dl, d, du, b)


__all__ = [
    "cho_solve", "lstsq", "lu_solve", "matrix_inverse", "pinv", "solve", "solve_lower_triangular",
    "solve_sylvester", "solve_symmetric", "solve_triangular", "solve_triangular_sylvester",
    "solve_tridiagonal", "solve_upper_triangular", "tensorinv", "tensorsolve",
]  # fmt: skip
