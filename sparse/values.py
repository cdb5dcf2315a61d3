"""Values of sparse variables: SciPy's sparse arrays and matrices, taken apart and put together.

Inside symcomp a value is in canonical form: the indices of each row (CSR), column (CSC) or row of
blocks (BSR) ascend strictly, and lie within the shape. Explicit zeros are stored entries like
others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from symcomp.core.dtype import NARROW
from symcomp.errors import DTypeError, ShapeError, SparsePatternError
from symcomp.lazy import lazy_module

scipy_sparse = lazy_module("scipy.sparse")

FORMATS = ("csr", "csc", "bsr", "coo")
COMPRESSED = ("csr", "csc")
INDEX_DTYPES = ("int32", "int64")
CONTAINERS = ("matrix", "array")
# SciPy has no sparse matrices of float16 and bfloat16.
UNSUPPORTED = tuple(NARROW)


class SparseArrays(NamedTuple):
    """The arrays of a sparse value: of COO, ``indices`` are the rows and ``indptr`` the columns."""

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]


def is_sparse(value: Any) -> bool:
    """Return whether a value is one of SciPy's sparse arrays or matrices.

    Examples
    --------
    >>> import scipy.sparse
    >>> is_sparse(scipy.sparse.eye_array(2)), is_sparse([[1, 0], [0, 1]])
    (True, False)
    """
    return "scipy.sparse" in sys.modules and bool(scipy_sparse.issparse(value))


def container_of(value: Any) -> str:
    """Return ``"matrix"`` for SciPy's sparse matrices and ``"array"`` for its sparse arrays."""
    return "matrix" if scipy_sparse.isspmatrix(value) else "array"


def components(value: Any) -> SparseArrays:
    """Return the arrays of a sparse value, cut after its last entry."""
    if value.format == "coo":
        rows, columns = value.coords
        return SparseArrays(value.data, rows, columns, value.shape)
    stored = int(value.indptr[-1]) if len(value.indptr) else 0
    data, indices = value.data, value.indices
    if 0 <= stored < len(indices):
        data, indices = data[:stored], indices[:stored]
    return SparseArrays(data, indices, value.indptr, value.shape)


def class_of(format: str, container: str) -> Any:
    """Return SciPy's class of sparse values."""
    return getattr(scipy_sparse, f"{format}_{container}")


@cache
def _fields(format: str, container: str) -> dict[str, Any]:
    """Return the fields of a value in canonical form, for all but arrays and shape."""
    value = class_of(format, container)((1, 1))
    if format != "coo":
        value.has_sorted_indices = True
    value.has_canonical_format = True
    return dict(vars(value))


def assemble(format: str, container: str, parts: SparseArrays) -> Any:
    """Make a sparse value of its arrays, which are known to be in canonical form.

    SciPy's constructors look at all indices, and take many times as long.
    """
    made = class_of(format, container)
    value = made.__new__(made)
    data, first, second, shape = parts
    fields = vars(value)
    fields.update(_fields(format, container), data=data, _shape=tuple(map(int, shape)))
    if format == "coo":
        fields["coords"] = (first, second)
    else:
        fields["indices"], fields["indptr"] = first, second
    return value


@cache
def maker(format: str, container: str) -> Callable[[Any, Any, Any, Any], Any]:
    """Return a function that makes a value of canonical arrays, and of its shape as an array."""

    def make(data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        return assemble(format, container, SparseArrays(data, indices, indptr, shape.tolist()))

    return make


def put_together(format: str, container: str, parts: SparseArrays) -> Any:
    """Make a sparse value of its arrays, of which nothing is known."""
    made = class_of(format, container)
    shape = tuple(int(n) for n in parts.shape)
    if format == "coo":
        return made((parts.data, (parts.indices, parts.indptr)), shape=shape, copy=False)
    if format == "bsr":
        return made((parts.data, parts.indices, parts.indptr), shape=shape, copy=False)
    # The constructor that takes arrays looks at all indices, and makes int64 int32; this does not.
    value = made(shape, dtype=parts.data.dtype)
    value.data, value.indices, value.indptr = parts.data, parts.indices, parts.indptr
    return value


def from_arrays(format: str, container: str, shape: Sequence[int], arrays: Sequence[Any]) -> Any:
    """Make a sparse value of arrays that have not been checked.

    Raises
    ------
    ValueError, SparsePatternError
        If they are no matrix of this format.
    """
    if format not in FORMATS or container not in CONTAINERS or len(arrays) != 3:
        raise ValueError(
            f"there is no sparse {container} of format {format} of {len(arrays)} arrays"
        )
    data, indices, indptr = arrays
    ndims = (3 if format == "bsr" else 1, 1, 1)
    if tuple(x.ndim for x in arrays) != ndims or not all(
        x.dtype in INDEX_DTYPES for x in arrays[1:]
    ):
        raise ValueError("the arrays of a sparse matrix are of wrong ranks or dtypes")
    if format in COMPRESSED and len(indptr) != shape[major_axis(format)] + 1:
        raise SparsePatternError(f"{len(indptr)} pointers for a {format} matrix of shape {shape}")
    parts = SparseArrays(data, indices, indptr, (shape[0], shape[1]))
    value = put_together(format, container, parts)
    check_value(value)
    return value


def copied(value: Any) -> Any:
    """Return a canonical value with arrays of its own, whose indices keep their dtype."""
    data, indices, indptr, shape = components(value)
    parts = SparseArrays(data.copy(), indices.copy(), indptr.copy(), shape)
    return assemble(value.format, container_of(value), parts)


def major_axis(format: str) -> int:
    """Return the axis whose slices lie together: 0 for rows, 1 for the columns of CSC."""
    return 1 if format == "csc" else 0


def check_value(value: Any) -> None:
    """Raise an error unless the indices of a sparse value lie within its shape.

    Raises
    ------
    ShapeError
        If it is no matrix.
    SparsePatternError
        If ``indptr`` decreases, does not fit the shape, or an index is out of range.
    """
    if value.ndim != 2:
        raise ShapeError(
            f"a sparse value must be a matrix, got {value.ndim} axes: shape {value.shape}; use "
            "value.reshape((1, -1))"
        )
    parts = components(value)
    if value.format == "coo":
        for axis, places in enumerate((parts.indices, parts.indptr)):
            check_range(places, value.shape[axis], f"the {('row', 'column')[axis]}s of a coo value")
        return
    lengths = list(value.shape)
    if value.format == "bsr":
        lengths = [n // b for n, b in zip(lengths, value.blocksize, strict=True)]
    axis = major_axis(value.format)
    check_compressed(
        value.indices, value.indptr, lengths[axis], lengths[1 - axis], f"a {value.format} value"
    )
    if len(value.data) != len(value.indices):
        raise SparsePatternError(
            f"a {value.format} value has {len(value.data)} entries of data but "
            f"{len(value.indices)} indices"
        )


def check_compressed(indices: Any, indptr: Any, n_major: int, n_minor: int, name: str) -> None:
    """Raise SparsePatternError unless ``indptr`` ascends from 0 and all indices are in range."""
    if len(indptr) != n_major + 1:
        raise SparsePatternError(
            f"{name}: indptr has {len(indptr)} elements; {n_major} rows (csr) or columns (csc) "
            f"need {n_major + 1}"
        )
    if indptr[0] != 0:
        raise SparsePatternError(f"{name}: indptr starts with {indptr[0]}, not with 0")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        at = int(np.argmax(falls))
        raise SparsePatternError(
            f"{name}: indptr decreases from {indptr[at]} at position {at} to {indptr[at + 1]}"
        )
    if indptr[-1] > len(indices):
        raise SparsePatternError(
            f"{name}: indptr ends with {indptr[-1]}, but there are {len(indices)} indices"
        )
    check_range(indices[: int(indptr[-1])], n_minor, f"the indices of {name}")


def check_range(indices: Any, length: int, name: str) -> None:
    """Raise SparsePatternError unless all indices are at least 0 and below ``length``."""
    if not len(indices):
        return
    # A negative number is a large unsigned one, so that one pass finds both faults.
    unsigned = indices.view(f"u{indices.dtype.itemsize}") if indices.dtype.kind == "i" else indices
    if unsigned.max() < length:
        return
    at = int(np.argmax((indices < 0) | (indices >= length)))
    raise SparsePatternError(
        f"{name}: index {indices[at]} at position {at} is not between 0 and {length - 1}"
        if length
        else f"{name}: index {indices[at]} at position {at}, but the axis has length 0"
    )


def is_canonical(value: Any) -> bool:
    """Return whether the indices of a checked value ascend strictly within rows or columns."""
    if value.format == "coo":
        row, column = value.coords
        if value.has_canonical_format or len(row) < 2:
            return True
        step = np.diff(row)
        return bool(((step > 0) | ((step == 0) & (np.diff(column) > 0))).all())
    return bool(value.has_canonical_format)


def canonical(value: Any) -> Any:
    """Return a checked value in canonical form: itself, or a sorted copy without duplicates.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> twice = scipy.sparse.csr_array((np.ones(3), [2, 0, 2], [0, 3]), shape=(1, 3))
    >>> canonical(twice).data, canonical(twice).indices.tolist()
    (array([1., 2.]), [0, 2])
    """
    if value.format != "coo" and len(value.indices) > value.indptr[-1]:
        # SciPy's conversions would take in what lies behind the last entry.
        value = put_together(value.format, container_of(value), components(value))
    if is_canonical(value):
        return value
    if value.format == "bsr":
        rows = canonical(value.tocsr())
        return rows.tobsr(blocksize=value.blocksize)
    value = value.copy()
    value.sum_duplicates()
    return value


def with_index_dtype(value: Any, dtype: str) -> Any:
    """Return a canonical value whose index arrays are of a dtype.

    Raises
    ------
    SparsePatternError
        If a length or the number of entries is too large for the dtype.
    """
    parts = components(value)
    if parts.indices.dtype == dtype and parts.indptr.dtype == dtype:
        return value
    check_fits(dtype, value.shape, len(parts.data))
    indices, indptr = (x.astype(dtype, copy=False) for x in (parts.indices, parts.indptr))
    return assemble(
        value.format, container_of(value), SparseArrays(parts.data, indices, indptr, parts.shape)
    )


def check_fits(dtype: str, shape: Sequence[int], stored: int, what: str = "a sparse value") -> None:
    """Raise SparsePatternError if the dtype of indices cannot count rows, columns or entries."""
    most = np.iinfo(dtype).max
    if stored > most or max(shape, default=0) > most:
        raise SparsePatternError(
            f"{what} of shape {tuple(shape)} with {stored} stored entries needs indices beyond "
            f"{most}, the largest {dtype}: declare it with index_dtype='int64', or convert an "
            "operand by sparse.with_index_dtype(x, 'int64')"
        )


def finished(value: Any, format: str, dtype: str, index_dtype: str, container: str) -> Any:
    """Return a result of SciPy's as a value of this format, dtype and container."""
    if not is_sparse(value):
        value = scipy_sparse.coo_array(np.atleast_2d(value))
    if value.format != format:
        value = value.asformat(format)
    if value.dtype != dtype:
        value = value.astype(dtype)
    value = with_index_dtype(canonical(value), index_dtype)
    if container_of(value) != container:
        value = assemble(format, container, components(value))
    return value


def check_dtype(dtype: str) -> None:
    """Raise DTypeError for the dtypes that SciPy's sparse matrices do not have."""
    if dtype in UNSUPPORTED:
        raise DTypeError(f"sparse matrices of {dtype} do not exist in SciPy: use float32")


def arrays_of(value: Any) -> tuple[Any, ...]:
    """Return the NumPy arrays that hold a sparse value."""
    if value.format == "coo":
        return (value.data, *value.coords)
    return (value.data, value.indices, value.indptr)
