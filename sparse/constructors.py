"""Symbolic sparse matrices: inputs, constants, and matrices made of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, resolve_dtype
from symcomp.ops.elementwise.scalar_math import int_div, maximum, minimum
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.joining import join
from symcomp.ops.shapes.shape import as_lengths, shape_tuple
from symcomp.sparse.components import (
    Assemble,
    SparseParts,
    assembled,
    entry,
    lengths_vector,
    parts_of,
    static_lengths,
)
from symcomp.sparse.op import as_scalar, as_sparse_variable, sparse_constant
from symcomp.sparse.patterns import Canonical, FromTriplets, common_indices
from symcomp.sparse.type import SparseType
from symcomp.sparse.values import FORMATS, check_dtype, major_axis

# Formats whose arrays are data, indices and indptr.
WITH_POINTERS = ("csr", "csc", "bsr")


def matrix(
    format: str,
    name: str | None = None,
    dtype: Any = None,
    shape: Sequence[int | None] = (None, None),
    index_dtype: str = "int32",
    container: str = "matrix",
) -> Any:
    """Make a symbolic sparse matrix.

    Parameters
    ----------
    format : {"csr", "csc", "bsr", "coo"}
    name : str, optional
    dtype : str, optional
        By default ``config.floatX``.
    shape : sequence of int or None
        The lengths that are known.
    index_dtype : {"int32", "int64"}
        Matrices with more than 2**31 - 1 rows, columns or entries need int64.
    container : {"matrix", "array"}
        The class of results: SciPy's sparse matrices or arrays. Arguments may be either.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.matrix("csc", "x", "float32", (None, 10)).type
    SparseType(csc, float32, (None, 10))
    """
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(f"sparse.matrix: format={format!r}: must be one of {', '.join(FORMATS)}")
    return SparseType(format, resolve_dtype(dtype), shape, index_dtype, container)(name)


def _constructor(format: str, container: str) -> Callable[..., Any]:
    def make(
        name: str | None = None,
        dtype: Any = None,
        shape: Sequence[int | None] = (None, None),
        index_dtype: str = "int32",
    ) -> Any:
        return matrix(format, name, dtype, shape, index_dtype, container)

    make.__name__ = make.__qualname__ = f"{format}_{container}"
    make.__doc__ = (
        f"Make a symbolic {format.upper()} matrix, whose values are SciPy's "
        f"``{format}_{container}``; see ``matrix``.\n\nExamples\n--------\n"
        f">>> from symcomp import sparse\n>>> sparse.{make.__name__}('A').ndim\n2\n"
    )
    return make


csr_matrix, csc_matrix, bsr_matrix, coo_matrix = (_constructor(f, "matrix") for f in FORMATS)
csr_array, csc_array, bsr_array, coo_array = (_constructor(f, "array") for f in FORMATS)

csr_dmatrix, csr_fmatrix = SparseType("csr", "float64"), SparseType("csr", "float32")
csc_dmatrix, csc_fmatrix = SparseType("csc", "float64"), SparseType("csc", "float32")
bsr_dmatrix, bsr_fmatrix = SparseType("bsr", "float64"), SparseType("bsr", "float32")


def constant(x: Any, name: str | None = None) -> Any:
    """Make a constant of a SciPy sparse array or matrix.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> print(sparse.constant(scipy.sparse.eye_array(3, format="csr")))
    csr constant (3, 3), 3 stored (33.3%)
    """
    return sparse_constant(x, name)


# -- the arrays of a matrix


def csm_properties(csm: Any) -> tuple[Any, Any, Any, Any]:
    """Return ``(data, indices, indptr, shape)`` of a sparse matrix.

    Only ``data`` is differentiated: its gradient is a matrix with the pattern of ``csm``. Indices
    are sorted, and without duplicates, whatever the value was. For COO the second and third are
    the rows and columns of the entries.

    Parameters
    ----------
    csm : sparse matrix

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> data, indices, indptr, shape = sparse.csm_properties(x)
    >>> (data * 2).eval({x: scipy.sparse.diags_array([1.0, 2.0])})
    array([2., 4.])
    """
    data, indices, indptr, shape = parts_of(as_sparse_variable(csm))
    return data, indices, indptr, shape


def csm_data(csm: Any) -> TensorVariable:
    """Return the stored entries of a sparse matrix, in the order of its indices.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.csm_data(sparse.eye(2)).eval()
    array([1., 1.])
    """
    return csm_properties(csm)[0]


def csm_indices(csm: Any) -> TensorVariable:
    """Return for each entry its column (CSR) or row (CSC).

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.csm_indices(sparse.eye(2)).eval()
    array([0, 1], dtype=int32)
    """
    return csm_properties(csm)[1]


def csm_indptr(csm: Any) -> TensorVariable:
    """Return where the entries of each row (CSR) or column (CSC) begin, and where the last end.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.csm_indptr(sparse.eye(2)).eval()
    array([0, 1, 2], dtype=int32)
    """
    return csm_properties(csm)[2]


def csm_shape(csm: Any) -> TensorVariable:
    """Return the number of rows and columns of a sparse matrix, an int64 vector.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.csm_shape(sparse.eye(2)).eval()
    array([2, 2])
    """
    return csm_properties(csm)[3]


def CSM(format: str, container: str = "matrix") -> Callable[..., Any]:
    """Return the function that makes a matrix of this format: ``CSR`` or ``CSC``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.CSM("csc")([1.0, 2.0], [0, 1], [0, 1, 2], (2, 2)).type
    SparseType(csc, float64, (2, 2))
    """
    if format not in WITH_POINTERS:
        raise ValueError(f"CSM: format={format!r}: must be one of {', '.join(WITH_POINTERS)}")
    return partial(_from_arrays, format, container)


def CSR(data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """Make a CSR matrix of its arrays.

    Parameters
    ----------
    data : vector
        The entries, row by row; they are differentiated.
    indices : integer vector
        For each entry its column. Entries at one place are added up; they need not be sorted.
    indptr : integer vector
        The entries of row i are those from ``indptr[i]`` to ``indptr[i + 1] - 1``.
    shape : (int or scalar, int or scalar), or integer vector of length 2

    Raises
    ------
    SparsePatternError
        When the function runs, if an index lies outside of the shape, or ``indptr`` decreases.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> d = T.dvector("d")
    >>> z = sparse.CSR(d, np.array([0, 2]), np.array([0, 1, 2]), (2, 3))
    >>> sparse.dense_from_sparse(z).eval({d: [5.0, 7.0]})
    array([[5., 0., 0.],
           [0., 0., 7.]])
    """
    return _from_arrays("csr", "matrix", data, indices, indptr, shape)


def CSC(data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    """Make a CSC matrix of its arrays, column by column; see ``CSR``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.CSC([1.0, 2.0], [0, 1], [0, 1, 2], (2, 2)).type
    SparseType(csc, float64, (2, 2))
    """
    return _from_arrays("csc", "matrix", data, indices, indptr, shape)


def _from_arrays(
    format: str, container: str, data: Any, indices: Any, indptr: Any, shape: Any
) -> Any:
    name = format.upper()
    data, lengths = as_tensor_variable(data), read_shape(name, shape)
    check_dtype(data.dtype)
    indices, indptr = as_indices(name, "indices", indices), as_indices(name, "indptr", indptr)
    indices, indptr = common_indices(indices, indptr)
    if data.ndim != (3 if format == "bsr" else 1):
        raise ShapeError(
            f"{name}: data is {data} ({data.type}); "
            f"{'blocks with 3 axes are' if format == 'bsr' else 'a vector is'} needed"
        )
    axis = major_axis(format)
    counts = [entry(lengths, axis), entry(lengths, 1 - axis)]
    if format == "bsr":
        blocks = shape_tuple(data)[1:]
        counts = [as_scalar(int_div(n, b)) for n, b in zip(counts, blocks, strict=True)]
    parts = Canonical()(data, indices, indptr, *counts)
    kind = SparseType(format, data.dtype, static_lengths(lengths), indices.dtype, container)
    return Assemble(kind)(*parts, lengths)


def read_shape(name: str, shape: Any) -> TensorVariable:
    """Return the two lengths of a matrix as an int64 vector."""
    if isinstance(shape, TensorVariable) and shape.ndim == 1:
        if shape.type.shape[0] in (None, 2) and dtypes.is_integer(shape.dtype):
            return cast_to(shape, "int64")
        raise ShapeError(f"{name}: shape is {shape} ({shape.type}); two integers are needed")
    lengths = as_lengths(shape, name)
    if len(lengths) != 2:
        raise ShapeError(f"{name}: shape {shape} has {len(lengths)} lengths; a matrix has 2")
    return lengths_vector(*lengths)


def as_indices(name: str, what: str, x: Any, ndim: int = 1) -> TensorVariable:
    """Return ``x`` as a vector of int32 if its dtype, or a constant, fits; else of int64."""
    x = as_tensor_variable(x)
    if x.ndim != ndim or not dtypes.is_integer(x.dtype):
        raise DTypeError(f"{name}: {what} is {x} ({x.type}); a vector of integers is needed")
    if x.dtype == "uint64":
        raise DTypeError(f"{name}: {what} is {x} ({x.type}): cast it to int64")
    narrow = dtypes.upcast(x.dtype, "int32") == "int32"
    if isinstance(x, TensorConstant):
        least, most = np.iinfo("int32").min, np.iinfo("int32").max
        if x.data.min(initial=0) >= least and x.data.max(initial=0) <= most:
            return as_tensor_variable(x.data.astype("int32"))
    return cast_to(x, "int32" if narrow else "int64")


def from_triplets(
    data: Any,
    rows: Any,
    columns: Any,
    shape: Any,
    format: str = "csr",
    container: str = "matrix",
) -> Any:
    """Make a matrix with ``data[k]`` at ``(rows[k], columns[k])``; equal places are added up.

    Parameters
    ----------
    data : vector
        It is differentiated.
    rows, columns : integer vectors
        In any order.
    shape : two lengths
    format : {"csr", "csc"}
    container : {"matrix", "array"}

    Raises
    ------
    SparsePatternError
        When the function runs, if a place lies outside of the shape.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> d = T.dvector("d")
    >>> z = sparse.from_triplets(d, [1, 0, 1], [1, 0, 1], (2, 2))
    >>> z.toarray().eval({d: [1.0, 2.0, 3.0]})
    array([[2., 0.],
           [0., 4.]])
    """
    if format not in ("csr", "csc"):
        raise ValueError(f"from_triplets: format={format!r}: must be 'csr' or 'csc'")
    (data,) = as_common(data)
    check_dtype(data.dtype)
    lengths = read_shape("from_triplets", shape)
    places = [
        as_indices("from_triplets", what, x) for what, x in (("rows", rows), ("columns", columns))
    ]
    axis = major_axis(format)
    major, minor = common_indices(places[axis], places[1 - axis])
    made = FromTriplets()(data, major, minor, entry(lengths, axis), entry(lengths, 1 - axis))
    kind = SparseType(format, data.dtype, static_lengths(lengths), major.dtype, container)
    return Assemble(kind)(*made, lengths)


# -- matrices that are known by their lengths


def diags(
    diagonals: Any, offsets: Any = 0, shape: Any = None, format: str = "csr", dtype: Any = None
) -> Any:
    """Make a matrix of its diagonals.

    Parameters
    ----------
    diagonals : vector, or sequence of vectors
        Diagonal k begins in the first row (offset at least 0) or first column. They are
        differentiated.
    offsets : int or sequence of int
        The offset of each diagonal: 0 is the main one, positive ones lie above it.
    shape : two lengths, optional
        By default that of the square matrix that the first diagonal fits.
    format : {"csr", "csc"}
    dtype : optional

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> v = T.dvector("v")
    >>> sparse.diags([v, -v], [0, 1], (2, 3)).toarray().eval({v: [1.0, 2.0]})
    array([[ 1., -1.,  0.],
           [ 0.,  2., -2.]])
    """
    several = isinstance(diagonals, list | tuple) and not isinstance(offsets, int)
    vectors = as_common(*diagonals) if several else as_common(diagonals)
    places = [int(k) for k in offsets] if several else [int(offsets)]
    if len(vectors) != len(places) or not vectors:
        raise ShapeError(f"diags: {len(vectors)} diagonals for {len(places)} offsets")
    for v in vectors:
        if v.ndim != 1:
            raise ShapeError(f"diags: {v} ({v.type}) is no vector")
    common = (
        resolve_dtype(dtype) if dtype is not None else dtypes.upcast(*(v.dtype for v in vectors))
    )
    if shape is None:
        side = shape_tuple(vectors[0])[0] + abs(places[0])
        shape = (side, side)
    data, rows, columns = [], [], []
    for v, k in zip(vectors, places, strict=True):
        number = cast_to(arange(shape_tuple(v)[0]), "int32")
        data.append(cast_to(v, common))
        rows.append(number + max(-k, 0))
        columns.append(number + max(k, 0))
    joined = [x[0] if len(x) == 1 else concatenated(x) for x in (data, rows, columns)]
    return from_triplets(joined[0], joined[1], joined[2], shape, format)


def concatenated(vectors: Sequence[Any]) -> TensorVariable:
    """Return vectors one after the other."""
    return join(0, *vectors)


def eye(n: Any, m: Any = None, k: int = 0, dtype: Any = None, format: str = "csr") -> Any:
    """Make a matrix with ones on diagonal ``k``.

    Parameters
    ----------
    n, m : int or integer scalar
        The lengths; by default it is square.
    k : int
        The offset of the diagonal: positive above the main one.
    dtype : optional
        By default ``config.floatX``.
    format : {"csr", "csc"}

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.eye(2, 3, k=1).toarray().eval()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    lengths = as_lengths((n, n if m is None else m), "eye")
    rows, columns = lengths
    below, above = max(-k, 0), max(k, 0)
    count = maximum(minimum(rows - below, columns - above), 0)
    number = cast_to(arange(count), "int32")
    ones = alloc(as_tensor_variable(1, dtype=resolve_dtype(dtype)), count)
    return from_triplets(ones, number + below, number + above, lengths, format)


def construct_sparse_from_list(x: Any, values: Any, ilist: Any) -> Any:
    """Make a CSR matrix of the shape of ``x`` with the rows of ``values`` at ``ilist``.

    The form that gradients of ``x[ilist]`` have; rows at one place are added up.

    Parameters
    ----------
    x : matrix
        Only its shape counts.
    values : matrix
        A row for each element of ``ilist``; they are differentiated.
    ilist : integer vector

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x, v = T.dmatrices("x", "v")
    >>> z = sparse.construct_sparse_from_list(x, v, np.array([2]))
    >>> z.toarray().eval({x: np.zeros((3, 2)), v: [[5.0, 6.0]]})
    array([[0., 0.],
           [0., 0.],
           [5., 6.]])
    """
    x, values = as_tensor_variable(x), as_tensor_variable(values)
    ilist = as_indices("construct_sparse_from_list", "ilist", ilist)
    if x.ndim != 2 or values.ndim != 2:
        raise ShapeError(
            f"construct_sparse_from_list: x ({x.type}) and values ({values.type}) must be matrices"
        )
    rows, width = shape_tuple(x)
    count = shape_tuple(values)[0]
    major = ilist.dimshuffle(0, "x") + alloc(as_tensor_variable(0, dtype="int32"), count, width)
    minor = alloc(cast_to(arange(width), ilist.dtype).dimshuffle("x", 0), count, width)
    return from_triplets(values.flatten(), major.flatten(), minor.flatten(), (rows, width), "csr")


def ones_like_pattern(x: Any, dtype: str) -> Any:
    """Return a matrix of ones with the pattern of ``x``."""
    parts = parts_of(x)
    ones = alloc(as_tensor_variable(1, dtype=dtype), shape_tuple(parts.indices)[0])
    return assembled(x.type, SparseParts(ones, *parts[1:]))


def sp_ones_like(x: Any) -> Any:
    """Return a matrix with the pattern of ``x`` whose entries are 1; it has no gradient.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.sp_ones_like(x).toarray().eval({x: scipy.sparse.diags_array([3.0, 4.0])})
    array([[1., 0.],
           [0., 1.]])
    """
    x = as_sparse_variable(x)
    return ones_like_pattern(x, x.dtype)


def sp_zeros_like(x: Any, dtype: Any = None) -> Any:
    """Return a matrix of the shape and format of ``x`` that stores nothing.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.sp_zeros_like(x).eval({x: scipy.sparse.eye_array(2)}).nnz
    0
    """
    x = as_sparse_variable(x)
    data, indices, indptr, shape = parts_of(x)
    name = x.dtype if dtype is None else resolve_dtype(dtype)
    empty = alloc(as_tensor_variable(0, dtype=name), 0, *shape_tuple(data)[1:])
    none = alloc(as_tensor_variable(0, dtype=indices.dtype), 0)
    if x.type.format == "coo":
        return Assemble(x.type.clone(dtype=name))(empty, none, none, shape)
    zero = as_tensor_variable(0, dtype=indptr.dtype)
    pointers = alloc(zero, shape_tuple(indptr)[0])
    return Assemble(x.type.clone(dtype=name))(empty, none, pointers, shape)


__all__ = [
    "bsr_array", "bsr_dmatrix", "bsr_fmatrix", "bsr_matrix", "constant",
    "construct_sparse_from_list", "coo_array", "coo_matrix", "CSC", "csc_array", "csc_dmatrix",
    "csc_fmatrix", "csc_matrix", "CSM", "csm_data", "csm_indices", "csm_indptr",
    "csm_properties", "csm_shape", "CSR", "csr_array", "csr_dmatrix", "csr_fmatrix",
    "csr_matrix", "diags", "eye", "from_triplets", "matrix", "sp_ones_like", "sp_zeros_like",
]  # fmt: skip
