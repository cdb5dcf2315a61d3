"""Systems with sparse matrices: factorizations, general and triangular solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import one_of
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import ge, gt, le, lt, switch
from symcomp.ops.shapes.shape import ShapeI
from symcomp.sparse.components import SparseParts, major_of, parts_of
from symcomp.sparse.convert import asformat, compressed, dense_from_sparse
from symcomp.sparse.op import as_sparse_or_tensor_variable
from symcomp.sparse.patterns import check_index_vectors, conj, total
from symcomp.sparse.products import CompressedDot, SampledDot, compressed_value
from symcomp.sparse.type import SparseVariable

scipy_sparse = lazy_module("scipy.sparse")
scipy_linalg = lazy_module("scipy.sparse.linalg")
cholmod = lazy_module("sksparse.cholmod")
umfpack = lazy_module("sksparse.umfpack")

METHODS = ("superlu", "umfpack", "cholmod")


# -- factorizations


@record
class FactorType(Type):
    """The type of a factorized square matrix: a function that solves systems with it."""

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a Factor unchanged."""
        if not isinstance(value, Factor):
            raise TypeError(f"expected a factorized matrix, got {value!r}")
        return value

    def values_eq(self, a: Any, b: Any) -> bool:
        """Return whether two factorizations are of the same matrix."""
        return bool(
            a.method == b.method
            and all(np.array_equal(x, y) for x, y in zip(a.arrays, b.arrays, strict=True))
        )

    def __str__(self) -> str:
        return "factorization"


FactorType.variable_class = Variable


class Factor:
    """A factorized matrix A, whose CSC arrays are given.

    Parameters
    ----------
    method : {"superlu", "umfpack", "cholmod"}
    data, indices, indptr : ndarray
    """

    def __init__(self, method: str, data: Any, indices: Any, indptr: Any) -> None:
        self.method, self.arrays = method, (data, indices, indptr)
        n = len(indptr) - 1
        # The arrays as those of CSR are the transpose, whose transpose is CSC without copying.
        matrix = compressed_value(data, indices, indptr, n).T
        try:
            self._solve = getattr(self, f"_{method}")(matrix)
        except RuntimeError as problem:
            raise np.linalg.LinAlgError(
                f"spsolve: the {n} x {n} matrix cannot be factorized by {method}: {problem}"
            ) from None
        except ImportError as problem:
            raise ImportError(
                f"spsolve: method={method!r} needs the package scikit-sparse: pip install "
                f"'symcomp[sparse]' ({problem})"
            ) from None

    @staticmethod
    def _superlu(matrix: Any) -> Callable[[Any, bool], Any]:
        factor = scipy_linalg.splu(matrix)
        return lambda b, transposed: factor.solve(b, "T" if transposed else "N")

    @staticmethod
    def _umfpack(matrix: Any) -> Callable[[Any, bool], Any]:
        factors = {False: _factored(umfpack, "UMFPACKError", umfpack.umf_factor, matrix)}

        def solve(b: Any, transposed: bool) -> Any:
            if transposed and True not in factors:
                turned = matrix.T.tocsc()
                factors[True] = _factored(umfpack, "UMFPACKError", umfpack.umf_factor, turned)
            return by_columns(factors[transposed].solve, b)

        return solve

    @staticmethod
    def _cholmod(matrix: Any) -> Callable[[Any, bool], Any]:
        # Up to scikit-sparse 0.4 the function is called cholesky, and its result is called.
        make = getattr(cholmod, "cho_factor", None) or cholmod.cholesky
        factor = _factored(cholmod, "CholmodError", make, matrix)
        solve = getattr(factor, "solve", factor)
        # The matrix is Hermitian: its transpose is its conjugate.
        return lambda b, transposed: (
            by_columns(solve, b.conj()).conj() if transposed else by_columns(solve, b)
        )

    def solve(self, b: Any, transposed: bool) -> Any:
        """Return the solution of A x = b, or of A^T x = b."""
        return np.asarray(self._solve(np.ascontiguousarray(b), transposed))


def _factored(module: Any, error: str, make: Callable[[Any], Any], matrix: Any) -> Any:
    """Return the factorization that a package makes; its own error becomes a RuntimeError."""
    try:
        return make(matrix)
    except getattr(module, error) as problem:
        raise RuntimeError(str(problem)) from None


def by_columns(solve: Callable[[Any], Any], b: Any) -> Any:
    """Return the solutions for a vector, or for each column of a matrix."""
    if b.ndim == 1:
        return solve(b)
    columns = [solve(np.ascontiguousarray(b[:, k])) for k in range(b.shape[1])]
    return np.stack(columns, axis=1) if columns else b.copy()


Method = Annotated[str, one_of(*METHODS)]


@record
class Factorize(Op):
    """z = the factorization of the square matrix with the CSC arrays data, indices, indptr."""

    method: Method

    no_derivative = "it takes the place of SparseSolve in compiled functions"

    def output_types(self, data: Any, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("spsolve", indices, indptr)
        return [FactorType()]

    def perform(self, data: Any, indices: Any, indptr: Any) -> Any:
        check_square(indices, indptr)
        return Factor(self.method, data.copy(), indices.copy(), indptr.copy())

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]


def check_square(indices: Any, indptr: Any) -> None:
    """Raise ShapeError if an index is beyond the number of columns."""
    n, most = len(indptr) - 1, int(indices.max(initial=-1))
    if most >= n:
        raise ShapeError(f"spsolve: a matrix with {n} columns has an entry in row {most}")


@record
class SolveFactorized(Op):
    """z = A^-1 b or, ``transposed``, A^-T b.   Inputs: the factorization of A; b, (n,) or (n, k)"""

    transposed: bool

    no_derivative = "it takes the place of SparseSolve in compiled functions"

    def output_types(self, factor: Any, b: Any) -> list[Type]:
        if not isinstance(factor.type, FactorType):
            raise DTypeError(f"{self}: {factor} ({factor.type}) is no factorization")
        return [b.type]

    def perform(self, factor: Any, b: Any) -> Any:
        n = len(factor.arrays[2]) - 1
        if len(b) != n:
            raise ShapeError(f"spsolve: the matrix has {n} rows, b has shape {b.shape}")
        return factor.solve(b, self.transposed).astype(b.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]


@record
class SparseSolve(Op):
    """z = A^-1 b or, ``transposed``, A^-T b.   Inputs: the CSC arrays data, indices, indptr of the
    square matrix A; b, (n,) or (n, k)

    A CSR matrix is the transpose of the CSC matrix with its arrays.
    """

    transposed: bool
    method: Method = "superlu"

    def output_types(self, data: Any, indices: Any, indptr: Any, b: Any) -> list[Type]:
        check_index_vectors("spsolve", indices, indptr)
        if b.ndim not in (1, 2) or b.dtype != data.dtype or dtypes.is_discrete(b.dtype):
            raise DTypeError(f"spsolve: {data.type} and {b.type}; floats of one dtype are needed")
        return [b.type]

    def perform(self, data: Any, indices: Any, indptr: Any, b: Any) -> Any:
        factor = Factorize(self.method).perform(data, indices, indptr)
        return SolveFactorized(self.transposed).perform(factor, b)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[3]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        data, indices, indptr, _ = inputs
        (x,), (gx,) = outputs, output_grads
        gb = SparseSolve(not self.transposed, self.method)(conj(data), indices, indptr, gx)
        # The entry in row i and column j has the gradient -gb_i conj(x_j); columns are major.
        across, along = (-gb, conj(x)) if self.transposed else (conj(x), -gb)
        return [SampledDot()(indices, indptr, across, along), None, None, gb]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        data, indices, indptr, _ = inputs
        (x,), (ddata, _, _, db) = outputs, tangents
        change = None
        if ddata is not None:
            n = ShapeI(0)(indptr) - 1
            change = -CompressedDot(not self.transposed)(ddata, indices, indptr, n, x)
        return [self(data, indices, indptr, total([change, db]))]


def _system(name: str, A: Any, b: Any) -> tuple[Any, Any, bool]:
    """Return the arrays of A, b at their common dtype, and whether the arrays are those of A^T."""
    A, b = compressed(A), as_sparse_or_tensor_variable(b)
    if isinstance(b, SparseVariable):
        b = dense_from_sparse(b)
    n, m = A.type.shape
    if n is not None and m is not None and n != m:
        raise ShapeError(f"{name}: A is {A} ({A.type}), which is not square")
    if b.ndim not in (1, 2):
        raise ShapeError(f"{name}: b is {b} ({b.type}); a vector or a matrix is needed")
    if n is not None and b.type.shape[0] not in (None, n):
        raise ShapeError(f"{name}: A ({A.type}) has {n} rows, b ({b.type}) {b.type.shape[0]}")
    dtype = dtypes.working(dtypes.to_float(dtypes.upcast(A.dtype, b.dtype)))
    parts = parts_of(A)
    data = cast_to(parts.data, dtype)
    return parts._replace(data=data), cast_to(b, dtype), A.type.format == "csr"


def spsolve(A: Any, b: Any, method: str = "superlu") -> TensorVariable:
    """Solve the system ``A x = b`` with a square sparse matrix.

    The matrix is factorized once in a call, for the solution and for its derivatives. The gradient
    with respect to ``A`` has its pattern.

    Parameters
    ----------
    A : sparse matrix, (n, n)
    b : vector or matrix, (n,) or (n, k)
        A sparse one is made dense.
    method : {"superlu", "umfpack", "cholmod"}
        SuperLU comes with SciPy; UMFPACK, and CHOLMOD for symmetric positive definite matrices,
        need the package scikit-sparse (``pip install 'symcomp[sparse]'``).

    Returns
    -------
    TensorVariable
        Of the shape of ``b``.

    Raises
    ------
    LinAlgError
        When the function runs, if the matrix is singular.

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> A, b = sparse.csc_matrix("A"), T.dvector("b")
    >>> x = sparse.spsolve(A, b)
    >>> x.eval({A: scipy.sparse.csc_array([[2.0, 1.0], [0.0, 4.0]]), b: [4.0, 8.0]})
    array([1., 2.])
    """
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"spsolve: method={method!r}: must be one of {known}")
    parts, b, turned = _system("spsolve", A, b)
    return SparseSolve(turned, method)(parts.data, parts.indices, parts.indptr, b)


# -- triangles


@record
class TriangularSolve(Op):
    """z = L^-1 b, L being a triangle of the CSR matrix with these arrays; the rest is not read.

    Inputs: data, indices, indptr; b, (n,) or (n, k).
    """

    lower: bool
    unit_diagonal: bool
    transposed: bool

    def output_types(self, data: Any, indices: Any, indptr: Any, b: Any) -> list[Type]:
        check_index_vectors("spsolve_triangular", indices, indptr)
        if b.ndim not in (1, 2) or b.dtype != data.dtype or dtypes.is_discrete(b.dtype):
            raise DTypeError(f"spsolve_triangular: {data.type} and {b.type} do not fit")
        return [b.type]

    def perform(self, data: Any, indices: Any, indptr: Any, b: Any) -> Any:
        n = len(indptr) - 1
        check_square(indices, indptr)
        if len(b) != n:
            raise ShapeError(f"spsolve_triangular: the matrix has {n} rows, b shape {b.shape}")
        rows = np.repeat(np.arange(n), np.diff(indptr))
        kept = rows >= indices if self.lower else rows <= indices
        if self.unit_diagonal:
            kept &= rows != indices
        before = np.concatenate([[0], np.cumsum(kept)]).astype(indptr.dtype)
        matrix = compressed_value(data[kept], indices[kept], before[indptr], n)
        if self.unit_diagonal:
            matrix = matrix + scipy_sparse_eye(n, data.dtype)
        if not n:
            return b.copy()
        lower = self.lower
        if self.transposed:
            matrix, lower = matrix.T.tocsr(), not lower
        try:
            x = scipy_linalg.spsolve_triangular(
                matrix, np.ascontiguousarray(b), lower, unit_diagonal=False
            )
        except (RuntimeError, np.linalg.LinAlgError) as problem:
            raise np.linalg.LinAlgError(f"spsolve_triangular: {problem}") from None
        return np.asarray(x, b.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[3]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [True]]

    def _kept(self, indices: Any, indptr: Any) -> Any:
        """Return which entries are read."""
        rows = major_of(_pattern(indices, indptr))
        if self.unit_diagonal:
            return gt(rows, indices) if self.lower else lt(rows, indices)
        return ge(rows, indices) if self.lower else le(rows, indices)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        data, indices, indptr, _ = inputs
        (x,), (gx,) = outputs, output_grads
        turned = TriangularSolve(self.lower, self.unit_diagonal, not self.transposed)
        gb = turned(conj(data), indices, indptr, gx)
        across, along = (conj(x), -gb) if self.transposed else (-gb, conj(x))
        g = SampledDot()(indices, indptr, across, along)
        return [switch(self._kept(indices, indptr), g, 0), None, None, gb]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        data, indices, indptr, _ = inputs
        (x,), (ddata, _, _, db) = outputs, tangents
        change = None
        if ddata is not None:
            n = ShapeI(0)(indptr) - 1
            kept = switch(self._kept(indices, indptr), ddata, 0)
            change = -CompressedDot(self.transposed)(kept, indices, indptr, n, x)
        return [self(data, indices, indptr, total([change, db]))]


def _pattern(indices: Any, indptr: Any) -> Any:
    return SparseParts(None, indices, indptr, None)


def scipy_sparse_eye(n: int, dtype: Any) -> Any:
    """Return the identity as a CSR array of SciPy."""
    return scipy_sparse.eye_array(n, dtype=dtype, format="csr")


def spsolve_triangular(
    A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False
) -> TensorVariable:
    """Solve the system ``A x = b`` with a triangle of a square sparse matrix.

    Parameters
    ----------
    A : sparse matrix, (n, n)
    b : vector or matrix, (n,) or (n, k)
    lower : bool
        The triangle that is read; the other one is not.
    unit_diagonal : bool
        Take the diagonal as ones, whatever is stored there.

    Raises
    ------
    LinAlgError
        When the function runs, if an element of the diagonal is 0.

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> A, b = sparse.csr_matrix("A"), T.dvector("b")
    >>> x = sparse.spsolve_triangular(A, b)
    >>> x.eval({A: scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]]), b: [4.0, 10.0]})
    array([2., 2.])
    """
    A = asformat(compressed(A), "csr")
    parts, b, _ = _system("spsolve_triangular", A, b)
    solve = TriangularSolve(bool(lower), bool(unit_diagonal), False)
    return solve(parts.data, parts.indices, parts.indptr, as_tensor_variable(b))


__all__ = ["spsolve", "spsolve_triangular"]
