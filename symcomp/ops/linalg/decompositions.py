"""Decompositions of matrices, as users call them."""

from __future__ import annotations

from typing import Any, Literal

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import NoneConst, as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.eigen import Eig, Eigh, Eigvalsh
from symcomp.ops.linalg.lu import LUFactor, _rows, pivots_to_permutation
from symcomp.ops.linalg.matrices import (
    adjoint,
    aligned_stacks,
    lapack_dtype,
    mirrored,
    narrowed,
    square_length,
    triangle,
)
from symcomp.ops.linalg.pivoted_qr import PivotedQR, PivotedQRRaw
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.linalg.schur import QZ, Schur
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.linalg.svd import SVD, SingularValues
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.creation import eye
from symcomp.ops.sorting.functions import argsort


def cholesky(x: Any, lower: bool = True, on_error: str = "raise") -> TensorVariable:
    """Compute the triangular matrix whose product with its adjoint is x.   (..., n, n) -> (..., n,
    n)

    Parameters
    ----------
    x : tensor_like
        Symmetric, or Hermitian, and positive definite. Only one triangle is read, and the gradient
        with respect to the other is zero. Integers count as float64.
    lower : bool
        ``z z^H = x`` with a lower triangular z, and the lower triangle is read. Else ``z^H z = x``
        with an upper triangular z, and the upper triangle is read.
    on_error : {"raise", "nan"}
        The result for a matrix that is not positive definite: an error, or NaN as its
        decomposition and as all of its gradient.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: a matrix is not positive definite.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.slinalg.cholesky(x).eval({x: [[4, 2], [2, 2]]})
    array([[2., 0.],
           [1., 1.]])
    """
    x = as_tensor_variable(x)
    return narrowed(Cholesky(bool(lower), on_error)(x), x)


def eigh(a: Any, UPLO: Literal["L", "U"] = "L", b: Any = None) -> list[TensorVariable]:
    """Compute eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices: the w
    and v with ``a v = v diag(w)``, or, given b, ``a v = b v diag(w)`` and ``v^H b v = 1``.

    (..., n, n) (..., n, n) -> (..., n), (..., n, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.
    UPLO : {"L", "U"}
        The triangle of each that is read. The gradient with respect to the other is zero.
    b : tensor_like, optional
        Positive definite; by default the identity.

    Returns
    -------
    w, v : TensorVariable
        Column ``v[..., :, i]`` belongs to ``w[..., i]``. The derivative of v does not exist where
        two eigenvalues are equal.

    Raises
    ------
    ShapeError, ValueError
    numpy.linalg.LinAlgError
        When the function runs: b is not positive definite.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> w, v = T.nlinalg.eigh(x)
    >>> w.eval({x: [[2, 0], [1, 2]]})
    array([1., 3.])
    """
    a, decompose = as_tensor_variable(a), Eigh(UPLO)
    if b is None or b is NoneConst:
        return [narrowed(out, a) for out in decompose(a)]
    b = as_tensor_variable(b)
    c, reduced = _reduced("eigh", a, b, UPLO == "L")
    w, v = Eigh()(reduced)
    return [narrowed(out, a, b) for out in (w, Solve("upper_triangular")(adjoint(c), v))]


def _reduced(
    name: str, a: TensorVariable, b: TensorVariable, lower: bool
) -> tuple[TensorVariable, TensorVariable]:
    """Return c with b = c c^H, lower triangular, and c^-1 a c^-H: if x is an eigenvector of this,
    c^-H x is one of a and b (Golub and Van Loan, section 8.7).
    """
    square_length(name, "a", a)
    square_length(name, "b", b)
    left, right = aligned_stacks(name, a, b, 2)
    common = lapack_dtype(a.dtype, b.dtype)
    c = Cholesky(lower)(cast_to(right, common))
    c = c if lower else adjoint(c)
    solver = Solve("lower_triangular")
    half = adjoint(solver(c, mirrored(cast_to(left, common), lower, True)))
    return c, solver(c, half)


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
    return narrowed(Eigvalsh()(_reduced("eigvalsh", a, b, lower)[1]), a, b)


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


def lu_factor(a: Any) -> list[TensorVariable]:
    """Compute the LU decomposition with row exchanges, packed as LAPACK does.

    (..., n, n) -> (..., n, n), (..., n)

    Parameters
    ----------
    a : tensor_like
        Square matrices. Integers count as float64. A singular one has 0 on the diagonal of u.

    Returns
    -------
    packed, pivots : TensorVariable
        u on and above the diagonal, l below it, where it is 1; row i was exchanged with row
        ``pivots[..., i]``. The derivative does not exist for a singular matrix.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> packed, pivots = T.linalg.lu_factor(x)
    >>> packed.eval({x: [[2, 4], [4, 4]]})
    array([[4. , 4. ],
           [0.5, 2. ]])
    """
    a = as_tensor_variable(a)
    packed, pivots = LUFactor()(a)
    return [narrowed(packed, a), pivots]


def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> list[TensorVariable]:
    """Compute p, l, u with a = p l u: a permutation, a unit lower and an upper triangular matrix.

    (..., n, n) -> (..., n, n), (..., n, n), (..., n, n)

    Parameters
    ----------
    a : tensor_like
        Square matrices. Integers count as float64.
    permute_l : bool
        Return p l and u.
    p_indices : bool
        Return the positions of the rows instead of the matrix p: ``a = (l u)[p]``.

    Returns
    -------
    list of TensorVariable

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> p, l, u = T.linalg.lu(x)
    >>> l.eval({x: [[2, 4], [4, 4]]})
    array([[1. , 0. ],
           [0.5, 1. ]])
    """
    packed, pivots = lu_factor(a)
    n = packed.shape[-1]
    l = triangle(packed, True, 0.0) + eye(n, dtype=packed.dtype)
    u = triangle(packed, False)
    place = argsort(pivots_to_permutation(pivots), axis=-1)
    if permute_l:
        return [_rows(l, place), u]
    if p_indices:
        return [place, l, u]
    hot = eq(expand_dims(place, -1), expand_dims(place.zeros_like(), -1) + _counting(place))
    return [cast(hot, _real(packed.dtype)), l, u]


def _counting(place: TensorVariable) -> TensorVariable:
    """Return 0, 1, .. along the last axis of matrices with as many columns as ``place`` is long."""
    along = (place.zeros_like() + 1).cumsum(axis=-1) - 1
    return expand_dims(along, -2)


def _real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def qr(a: Any, mode: str = "reduced", pivoting: bool = False) -> Any:
    """Compute the QR decomposition of each matrix.   (..., m, n) -> (..., m, k), (..., k, n), k =
    min(m, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.
    mode : {"reduced", "complete", "r", "raw"}
        "complete": q is (..., m, m), r (..., m, n). "r": r alone. "raw": h and tau of LAPACK.
    pivoting : bool
        Put the columns in an order p, int64 (..., n), in which the moduli of the diagonal of r do
        not increase, and return p, too: ``a[:, p] = q r``.

    Returns
    -------
    list of TensorVariable or TensorVariable
        q and r, where the columns of q are orthonormal and r is upper triangular; or r; or h and
        tau. With ``pivoting`` p is the last of the list. The first k columns of a, after pivoting,
        must be independent for the derivatives to exist.

    Raises
    ------
    ShapeError, ValueError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.abs_(T.nlinalg.qr(x, "r")).eval({x: [[3, 0], [4, 0]]})
    array([[5., 0.],
           [0., 0.]])
    >>> q, r, p = T.nlinalg.qr(x, pivoting=True)
    >>> p.eval({x: [[1, 3], [1, 4]]})
    array([1, 0])
    """
    a = as_tensor_variable(a)
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"qr: mode={mode!r} must be 'reduced', 'complete', 'r' or 'raw'")
    if mode == "raw":
        return [narrowed(out, a) for out in (PivotedQRRaw() if pivoting else QRRaw())(a)]
    decompose = (PivotedQR if pivoting else QR)(mode == "complete")
    found = [narrowed(out, a) for out in decompose(a)]
    if mode == "r":
        return found[1:] if pivoting else found[1]
    return found


def schur(a: Any, output: str = "real", sort: str | None = None) -> list[TensorVariable]:
    """Compute t, z with a = z t z^H: t upper triangular, z unitary.   (..., n, n) -> (..., n, n)
    twice

    Parameters
    ----------
    a : tensor_like
        Square matrices. Integers count as float64.
    output : {"real", "complex"}
        For real matrices: "real" gives real results, where t has a block of two rows for each
        complex pair of eigenvalues, and no derivative; "complex" a triangular t.
    sort : {None, "lhp", "rhp", "iuc", "ouc"}
        The eigenvalues that come first: with negative real part, with one that is not negative,
        inside or outside of the unit circle.

    Returns
    -------
    list of TensorVariable
        The derivatives do not exist where two eigenvalues are equal.

    Raises
    ------
    ShapeError, ValueError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> t, z = T.linalg.schur(x)
    >>> t.eval({x: [[2, 1], [0, 3]]})
    array([[2., 1.],
           [0., 3.]])
    """
    a = as_tensor_variable(a)
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output={output!r} must be 'real' or 'complex'")
    if output == "complex":
        a = cast_to(a, dtypes.to_complex(lapack_dtype(a.dtype)))
    return [narrowed(out, a) for out in Schur(sort)(a)]


def qz(a: Any, b: Any, output: str = "real", sort: str | None = None) -> list[TensorVariable]:
    """Compute s, t, alpha, beta, q, z with a = q s z^H and b = q t z^H, q and z unitary.

    Parameters
    ----------
    a, b : tensor_like
        Square matrices of one shape.
    output, sort
        As for ``schur``; s and t are upper triangular as t is there.

    Returns
    -------
    list of TensorVariable
        The eigenvalues w with ``a v = w b v`` are ``alpha / beta``.

    Raises
    ------
    ShapeError, ValueError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, y = T.dmatrices("x", "y")
    >>> s, t, alpha, beta, q, z = T.linalg.qz(x, y)
    >>> (alpha / beta).eval({x: [[2, 1], [0, 3]], y: [[1, 0], [0, 1]]}).real
    array([2., 3.])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if output not in ("real", "complex"):
        raise ValueError(f"qz: output={output!r} must be 'real' or 'complex'")
    if output == "complex":
        kind = dtypes.to_complex(lapack_dtype(a.dtype, b.dtype))
        a, b = cast_to(a, kind), cast_to(b, kind)
    square_length("qz", "a", a)
    square_length("qz", "b", b)
    left, right = aligned_stacks("qz", a, b, 2)
    return list(QZ(sort)(left, right))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Compute the singular value decomposition ``a = u diag(s) vh`` of each matrix.

    (..., m, n) -> (..., m, m), (..., k), (..., n, n) with k = min(m, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.
    full_matrices : bool
        False: the first k columns of u and rows of vh alone, (..., m, k) and (..., k, n).
    compute_uv : bool
        False: s alone, whose derivative exists for equal singular values too if they are not zero.

    Returns
    -------
    list of TensorVariable or TensorVariable
        u, s, vh; or s. The derivatives of u and vh do not exist where two singular values are equal
        or one is zero, and make sense only of what does not depend on the free choices of a
        decomposition: phases, and the basis of the columns of u and rows of vh beyond k.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: a holds NaN or infinity.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.svd(x, compute_uv=False).eval({x: [[0, 2], [3, 0]]})
    array([3., 2.])
    """
    a = as_tensor_variable(a)
    if not compute_uv:
        return narrowed(SingularValues()(a), a)
    return [narrowed(out, a) for out in SVD(bool(full_matrices))(a)]


__all__ = ["cholesky", "eig", "eigh", "eigvalsh", "lu", "lu_factor", "qr", "qz", "schur", "svd"]
