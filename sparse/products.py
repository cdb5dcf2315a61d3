"""Products with sparse matrices: the ops on arrays, and the functions of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import mul
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.shape import ShapeI, known_length
from symcomp.sparse import values
from symcomp.sparse.blocks import block_dot
from symcomp.sparse.components import entries_at, n_minor, parts_of, with_data
from symcomp.sparse.convert import (
    asformat,
    cast,
    compressed,
    csc_from_dense,
    csr_from_dense,
    dense_from_sparse,
)
from symcomp.sparse.op import (
    SparseOp,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    common_dtype,
)
from symcomp.sparse.patterns import (
    check_index_vectors,
    check_lengths,
    conj,
    lookup,
    major_indices,
    total,
)
from symcomp.sparse.type import SparseType, SparseVariable
from symcomp.sparse.values import SparseArrays

# Blocks of entries whose products are computed at once: elements.
BLOCK = 1 << 16


def compressed_value(data: Any, indices: Any, indptr: Any, n: Any) -> Any:
    """Return the CSR array of SciPy with these arrays, which are checked: SciPy reads the memory
    that they name.
    """
    check_lengths(data, indices)
    n_major = len(indptr) - 1
    values.check_compressed(indices, indptr, n_major, int(n), "a sparse matrix")
    parts = SparseArrays(data, indices, indptr, (n_major, int(n)))
    return values.assemble("csr", "array", parts)


# -- a sparse matrix times a dense one


@record
class CompressedDot(Op):
    """z = S D or, ``transposed``, z = S^T D, for S with the rows that indptr counts.

    Inputs: data, indices, indptr, n_minor of S; D, a vector or a matrix. S is CSR; a CSC matrix is
    the transpose of the CSR matrix with its arrays.
    """

    transposed: bool

    def output_types(self, data: Any, indices: Any, indptr: Any, n: Any, dense: Any) -> list[Type]:
        check_index_vectors("dot", indices, indptr)
        if dense.ndim not in (1, 2) or dense.dtype != data.dtype:
            raise DTypeError(
                f"{self}: the dense factor is {dense} ({dense.type}); a {data.dtype} vector or "
                "matrix is needed"
            )
        minor, pointers = known_length(n), indptr.type.shape[0]
        major = None if pointers is None else pointers - 1
        met, kept = (major, minor) if self.transposed else (minor, major)
        have = dense.type.shape[0]
        if met is not None and have is not None and met != have:
            raise ShapeError(
                f"dot: the sparse factor has length {met} on the axis that meets the dense factor "
                f"{dense} ({dense.type}), which has {have} there"
            )
        return [TensorType(data.dtype, (kept, *dense.type.shape[1:]))]

    def perform(self, data: Any, indices: Any, indptr: Any, n: Any, dense: Any) -> Any:
        s = compressed_value(data, indices, indptr, n)
        s = s.T if self.transposed else s
        if s.shape[1] != len(dense):
            raise ShapeError(
                f"dot: the sparse factor has shape {s.shape}, the dense one {dense.shape}: the "
                f"axes that meet have lengths {s.shape[1]} and {len(dense)}"
            )
        return np.asarray(s @ dense, data.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        kept = node.inputs[3] if self.transposed else shapes[2][0] - 1
        return [(kept, *shapes[4][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        data, indices, indptr, n, dense = inputs
        gz = output_grads[0]
        across, along = (conj(dense), gz) if self.transposed else (gz, conj(dense))
        turned = CompressedDot(not self.transposed)
        g_dense = turned(conj(data), indices, indptr, n, gz)
        return [SampledDot()(indices, indptr, across, along), None, None, None, g_dense]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        data, indices, indptr, n, dense = inputs
        terms = [
            None if tangents[0] is None else self(tangents[0], indices, indptr, n, dense),
            None if tangents[4] is None else self(data, indices, indptr, n, tangents[4]),
        ]
        return [total(terms)]

    def __str__(self) -> str:
        return "CompressedDot{transposed}" if self.transposed else "CompressedDot"


@record
class SampledDot(Op):
    """z_k = sum_l X[i_k, l] Y[j_k, l] at the places (i, j) of a pattern.

    Inputs: indices, indptr; X and Y, two matrices with as many columns, or two vectors (then
    z_k = X[i_k] Y[j_k]).
    """

    def output_types(self, indices: Any, indptr: Any, x: Any, y: Any) -> list[Type]:
        check_index_vectors("sampling_dot", indices, indptr)
        if x.ndim != y.ndim or x.ndim not in (1, 2) or x.dtype != y.dtype:
            raise DTypeError(
                f"{self}: the factors are {x.type} and {y.type}; two matrices or two vectors of "
                "one dtype are needed"
            )
        if x.ndim == 2 and None not in (a := (x.type.shape[1], y.type.shape[1])) and a[0] != a[1]:
            raise ShapeError(f"{self}: the factors {x.type} and {y.type} differ in their columns")
        return [TensorType(x.dtype, indices.type.shape)]

    def perform(self, indices: Any, indptr: Any, x: Any, y: Any) -> Any:
        rows = major_indices(indptr)
        most = int(indices.max(initial=-1))
        if len(x) != len(indptr) - 1 or most >= len(y) or x.shape[1:] != y.shape[1:]:
            raise ShapeError(
                f"sampling_dot: factors of shapes {x.shape} and {y.shape} do not fit a pattern of "
                f"{len(indptr) - 1} rows with indices up to {most}"
            )
        values.check_range(indices, len(y), "the indices of a sparse matrix")
        if x.ndim == 1:
            return x[rows] * y[indices]
        z = np.empty(len(indices), x.dtype)
        step = max(BLOCK // max(x.shape[1], 1), 1)
        for start in range(0, len(z), step):
            part = slice(start, start + step)
            z[part] = np.einsum("kl,kl->k", x[rows[part]], y[indices[part]])
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [True], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        indices, indptr, x, y = inputs
        n = ShapeI(0)(y)
        gx = CompressedDot(False)(output_grads[0], indices, indptr, n, conj(y))
        gy = CompressedDot(True)(output_grads[0], indices, indptr, n, conj(x))
        return [None, None, gx, gy]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        indices, indptr, x, y = inputs
        _, _, dx, dy = tangents
        terms = [
            None if dx is None else self(indices, indptr, dx, y),
            None if dy is None else self(indices, indptr, x, dy),
        ]
        return [total(terms)]


def sparse_times_dense(x: SparseVariable, dense: Any) -> Any:
    """Return the dense product of a CSR or CSC matrix and a dense vector or matrix."""
    parts = parts_of(x)
    dtype = common_dtype(x.dtype, dense.dtype)
    n = n_minor(x, parts)
    dot = CompressedDot(x.type.format == "csc")
    return dot(cast_to(parts.data, dtype), parts.indices, parts.indptr, n, cast_to(dense, dtype))


# -- a sparse matrix times a sparse one


@record
class TrueDot(SparseOp):
    """z = x y for sparse matrices of one format, csr or csc, and one dtype: a sparse matrix.

    The gradients have the patterns of x and y if ``structured``; else an entry wherever they are
    not 0.
    """

    structured: bool = False

    def as_inputs(self, x: Any, y: Any) -> list[Variable]:
        return [as_sparse_variable(x), as_sparse_variable(y)]

    def output_types(self, x: Any, y: Any) -> list[Type]:
        check_same_kind("true_dot", x, y)
        m, n = x.type.shape[1], y.type.shape[0]
        if m is not None and n is not None and m != n:
            raise ShapeError(f"true_dot: {x} ({x.type}) has {m} columns, {y} ({y.type}) {n} rows")
        return [joined_kind(x, y, (x.type.shape[0], y.type.shape[1]))]

    def perform(self, x: Any, y: Any) -> Any:
        if x.shape[1] != y.shape[0]:
            raise ShapeError(
                f"true_dot: shapes {x.shape} and {y.shape}: the axes that meet have lengths "
                f"{x.shape[1]} and {y.shape[0]}"
            )
        return product_of(x, y)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, y = inputs
        gz = output_grads[0]
        plain = TrueDot(False)
        gx = plain(gz, conjugate(y).T.asformat(gz.type.format))
        gy = plain(conjugate(x).T.asformat(gz.type.format), gz)
        if not self.structured:
            return [gx, gy]
        return [restricted(gx, x), restricted(gy, y)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        terms = [
            None if dx is None else self(dx, y),
            None if dy is None else self(x, dy),
        ]
        return [total(terms)]


def product_of(x: Any, y: Any) -> Any:
    """Return the product of two sparse values, with an entry wherever one of each meet.

    SciPy leaves out the entries that happen to be 0: then the pattern would depend on values, and
    gradients would lose entries.
    """
    z = values.canonical(x @ y)
    pattern = values.canonical(_ones(x) @ _ones(y))
    if z.nnz == pattern.nnz:
        return z
    _, indices, indptr, shape = values.components(pattern)
    parts = values.components(z)
    data = lookup(*parts[:3], indices, major_indices(indptr))
    return values.assemble(z.format, "array", SparseArrays(data, indices, indptr, shape))


def _ones(x: Any) -> Any:
    """Return the pattern of a value, with entries whose sums of products are positive."""
    parts = values.components(x)
    ones = np.ones(len(parts.data), np.float32)
    return values.assemble(x.format, "array", parts._replace(data=ones))


def check_same_kind(name: str, x: Any, y: Any) -> None:
    """Raise DTypeError unless two sparse operands are CSR or CSC, of one format and dtype."""
    if not x.type.is_compressed or x.type.format != y.type.format or x.dtype != y.dtype:
        raise DTypeError(f"{name}: {x.type} and {y.type} must be csr or csc, of one dtype")


def joined_kind(
    x: Any, y: Any, shape: Sequence[int | None], dtype: str | None = None
) -> SparseType:
    """Return the type of a result of two sparse operands."""
    return x.type.clone(
        shape=shape,
        dtype=dtype or x.dtype,
        index_dtype=dtypes.upcast(x.type.index_dtype, y.type.index_dtype),
        container="array" if "array" in (x.type.container, y.type.container) else "matrix",
    )


def matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two sparse operands in the format of the first and at their common dtype."""
    x = compressed(x)
    y = asformat(compressed(y), x.type.format)
    dtype = common_dtype(x.dtype, y.dtype)
    return cast(x, dtype), cast(y, dtype)


def conjugate(x: SparseVariable) -> Any:
    """Return the complex conjugate of a sparse matrix; itself if it is real."""
    return with_data(x, conj(parts_of(x).data)) if dtypes.is_complex(x.dtype) else x


def restricted(x: SparseVariable, like: SparseVariable) -> Any:
    """Return the entries of ``x`` at the pattern of ``like``."""
    x = asformat(x, like.type.format)
    parts = parts_of(like)
    return with_data(like, entries_at(x, parts.indices, parts.indptr), parts)


@record
class CompressedMatMul(Op):
    """data, indices, indptr = the product of two CSR matrices.

    Inputs: data, indices, indptr of each, and n_minor of the second, which has as many rows as the
    first has columns: the sixth input counts them.
    """

    multiple_outputs = True
    no_derivative = "it takes the place of TrueDot in compiled functions"

    def output_types(self, *inputs: Any) -> list[Type]:
        data, indices, indptr, _, other = inputs[:5]
        check_index_vectors("true_dot", indices, indptr, *inputs[5:7])
        if other.dtype != data.dtype:
            raise DTypeError(f"true_dot: {data.type} and {other.type} must be of one dtype")
        vector = (None,)
        return [
            TensorType(data.dtype, vector),
            TensorType(indices.dtype, vector),
            TensorType(indices.dtype, indptr.type.shape),
        ]

    def perform(self, *given: Any) -> tuple[Any, ...]:
        x, y = compressed_value(*given[:4]), compressed_value(*given[4:])
        if x.shape[1] != y.shape[0]:
            raise ShapeError(
                f"true_dot: shapes {x.shape} and {y.shape}: the axes that meet have lengths "
                f"{x.shape[1]} and {y.shape[0]}"
            )
        z = product_of(x, y)
        values.check_fits(given[1].dtype.name, z.shape, z.nnz, "the product")
        return z.data, z.indices.astype(given[1].dtype), z.indptr.astype(given[2].dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), shapes[2]]


@record
class MaskedMatMul(Op):
    """z_k = the entry of the product of two CSR matrices at place k of a pattern.

    Inputs: data, indices, indptr, n_minor of each; indices, indptr of the pattern.
    """

    no_derivative = "it takes the place of entries of TrueDot in compiled functions"

    def output_types(self, *inputs: Any) -> list[Type]:
        check_index_vectors("true_dot", inputs[1], inputs[2], *inputs[5:7], *inputs[8:])
        return [TensorType(inputs[0].dtype, inputs[8].type.shape)]

    def perform(self, *given: Any) -> Any:
        x, y = compressed_value(*given[:4]), compressed_value(*given[4:8])
        indices, indptr = given[8:]
        if x.shape[1] != y.shape[0] or len(indptr) != x.shape[0] + 1:
            raise ShapeError(
                f"true_dot: shapes {x.shape} and {y.shape} at a pattern of {len(indptr) - 1} rows"
            )
        # Row by row of the pattern, so that the whole product is never there.
        turned = y.tocsc()
        z = np.zeros(len(indices), x.dtype)
        rows = major_indices(indptr)
        step = max(BLOCK // max(1, int(np.diff(turned.indptr).max(initial=1))), 1)
        for start in range(0, len(z), step):
            part = slice(start, start + step)
            left, right = x[rows[part]], turned[:, indices[part]].T.tocsr()
            z[part] = left.multiply(right).sum(axis=1)
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[8]]


# -- functions of users


def true_dot(x: Any, y: Any, grad_preserves_dense: bool = True) -> Any:
    """Multiply a sparse matrix and another matrix; the product is sparse.

    Parameters
    ----------
    x, y : matrix
        At least one is sparse. The product has its format, that of ``x`` if both are.
    grad_preserves_dense : bool
        Whether the gradient of a dense factor is dense; else it would be sparse, which its type
        does not allow, so that it is made dense either way.

    Notes
    -----
    The gradients of sparse factors are those of all their elements, stored or not. For gradients
    with the patterns of the factors, use ``structured_dot``.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.true_dot(x, x).eval({x: scipy.sparse.diags_array([2.0, 3.0])}).toarray()
    array([[4., 0.],
           [0., 9.]])
    """
    x, y = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    if not isinstance(x, SparseVariable) and not isinstance(y, SparseVariable):
        raise DTypeError(f"true_dot: neither {x} ({x.type}) nor {y} ({y.type}) is sparse")
    like = x if isinstance(x, SparseVariable) else y
    x, y = (_sparse_factor(v, compressed(like)) for v in (x, y))
    return TrueDot(False)(*matched(x, y))


def _sparse_factor(x: Any, like: SparseVariable) -> Any:
    """Return a factor of a sparse product as a sparse matrix."""
    if isinstance(x, SparseVariable):
        return x
    if x.ndim != 2:
        raise ShapeError(f"true_dot: {x} ({x.type}) is no matrix")
    return csc_from_dense(x) if like.type.format == "csc" else csr_from_dense(x)


def structured_dot(x: Any, y: Any) -> Any:
    """Multiply a sparse matrix and a dense or sparse one; gradients keep the pattern of ``x``.

    Parameters
    ----------
    x, y : matrix or vector
        At least one is sparse.

    Returns
    -------
    TensorVariable, or a sparse matrix if both are sparse

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, y = sparse.csr_matrix("x"), T.dmatrix("y")
    >>> z = sparse.structured_dot(x, y)
    >>> z.eval({x: scipy.sparse.diags_array([2.0, 3.0]), y: [[1.0], [1.0]]})
    array([[2.],
           [3.]])
    """
    return _dot("structured_dot", x, y, sparse_result=True)


def dot(x: Any, y: Any) -> Any:
    """Multiply matrices or vectors of which at least one is sparse; the product is dense.

    The gradient of a sparse factor has its pattern, and is computed without a dense matrix of its
    shape. For a sparse product of two sparse matrices use ``structured_dot`` or ``true_dot``.

    Parameters
    ----------
    x, y : matrix or vector

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, v = sparse.csr_matrix("x"), T.dvector("v")
    >>> g = symcomp.grad(sparse.dot(x, v).sum(), x)
    >>> g.eval({x: scipy.sparse.diags_array([2.0, 3.0]), v: [5.0, 7.0]}).toarray()
    array([[5., 0.],
           [0., 7.]])
    """
    return _dot("dot", x, y, sparse_result=False)


def _dot(name: str, x: Any, y: Any, sparse_result: bool) -> Any:
    x, y = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    x_sparse, y_sparse = isinstance(x, SparseVariable), isinstance(y, SparseVariable)
    if not x_sparse and not y_sparse:
        raise DTypeError(
            f"{name}: neither {x} ({x.type}) nor {y} ({y.type}) is sparse: use symcomp.tensor.dot"
        )
    for v in (x, y):
        if v.ndim not in (1, 2):
            raise ShapeError(f"{name}: {v} ({v.type}) is neither a matrix nor a vector")
    if x_sparse and y_sparse:
        product = TrueDot(True)(*matched(x, y))
        return product if sparse_result else dense_from_sparse(product)
    if x_sparse:
        return block_dot(x, y) if x.type.format == "bsr" else sparse_times_dense(compressed(x), y)
    turned = compressed(y).T
    if x.ndim == 1:
        return sparse_times_dense(turned, x)
    return dimshuffle(sparse_times_dense(turned, dimshuffle(x, 1, 0)), 1, 0)


def sampling_dot(x: Any, y: Any, p: Any) -> Any:
    """Return the entries of ``dot(x, y.T)`` at the pattern of ``p``, times those of ``p``.

    Parameters
    ----------
    x, y : dense matrix
        Of shapes (n, k) and (m, k).
    p : sparse matrix
        Of shape (n, m).

    Returns
    -------
    sparse matrix
        With the pattern of ``p``; the whole product is never computed.

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, y, p = T.dmatrix("x"), T.dmatrix("y"), sparse.csr_matrix("p")
    >>> z = sparse.sampling_dot(x, y, p)
    >>> z.eval({x: [[1.0], [2.0]], y: [[3.0], [4.0]], p: scipy.sparse.eye_array(2)}).toarray()
    array([[3., 0.],
           [0., 8.]])
    """
    p = compressed(p)
    sampled = sampled_dot(x, y, p)
    parts = parts_of(p)
    data = mul(parts_of(sampled).data, parts.data)
    return with_data(p, data, parts)


def sampled_dot(x: Any, y: Any, p: Any) -> Any:
    """Return the entries of ``dot(x, y.T)`` at the pattern of ``p``, whatever its entries are.

    Parameters
    ----------
    x, y : dense matrix
        Of shapes (n, k) and (m, k).
    p : sparse matrix
        Of shape (n, m).

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, p = T.dmatrix("x"), sparse.csr_matrix("p")
    >>> z = sparse.sampled_dot(x, x, p)
    >>> z.eval({x: [[1.0], [2.0]], p: scipy.sparse.diags_array([7.0, 7.0])}).toarray()
    array([[1., 0.],
           [0., 4.]])
    """
    p, x, y = compressed(p), as_tensor_variable(x), as_tensor_variable(y)
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeError(f"sampling_dot: x ({x.type}) and y ({y.type}) must be matrices")
    dtype = common_dtype(x.dtype, y.dtype)
    factors = [cast_to(x, dtype), cast_to(y, dtype)]
    if p.type.format == "csc":
        factors.reverse()
    parts = parts_of(p)
    return with_data(p, SampledDot()(parts.indices, parts.indptr, *factors), parts)


def usmm(alpha: Any, x: Any, y: Any, z: Any) -> Any:
    """Return ``alpha * dot(x, y) + z`` for sparse ``x``, or sparse ``y``, and dense ``z``.

    Parameters
    ----------
    alpha : scalar
    x, y : matrix
        One of them is sparse.
    z : dense matrix

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, y = sparse.csr_matrix("x"), T.dmatrix("y")
    >>> z = sparse.usmm(2.0, x, y, y)
    >>> z.eval({x: scipy.sparse.eye_array(1), y: [[5.0]]})
    array([[15.]])
    """
    return as_tensor_variable(alpha) * dot(x, y) + as_tensor_variable(z)


__all__ = [
    "dot", "sampled_dot", "sampling_dot", "structured_dot", "true_dot", "TrueDot", "usmm",
]  # fmt: skip
