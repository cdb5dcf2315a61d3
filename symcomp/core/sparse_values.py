"""Recognize SciPy's sparse matrices by the name of their class, without importing SciPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

# A picture of a pattern has at most this many rows and columns.
MOST_ROWS, MOST_COLUMNS = 16, 48
SHADES = ".:+#"


def is_sparse_value(value: Any) -> bool:
    """Return whether a value is one of SciPy's sparse arrays or matrices."""
    return any(kind.__module__.startswith("scipy.sparse.") for kind in type(value).__mro__) and (
        hasattr(value, "nnz") and hasattr(value, "format")
    )


def numbers_of(value: Any) -> Any:
    """Return the array of numbers of a value: the array itself, or the stored entries of a sparse
    matrix; None for other values.
    """
    if isinstance(value, np.ndarray):
        return value
    return value.data if is_sparse_value(value) and isinstance(value.data, np.ndarray) else None


def with_numbers(value: Any, numbers: Any) -> Any:
    """Return a value with other numbers: an array, or a matrix with the same pattern."""
    if isinstance(value, np.ndarray):
        return numbers
    twin = copy.copy(value)
    twin.data = numbers
    return twin


def places_of(value: Any) -> list[Any]:
    """Return the arrays that say where the entries of a sparse matrix are."""
    if value.format == "coo":
        return list(value.coords)
    return [value.indices, value.indptr]


def describe_sparse_value(value: Any) -> str:
    """Describe a sparse matrix by dtype, format, shape and density.

    Examples
    --------
    >>> import scipy.sparse
    >>> describe_sparse_value(scipy.sparse.eye_array(4, format="csr"))
    'a float64 csr matrix of shape (4, 4), 4 stored (25%)'
    """
    return f"a {value.dtype} {value.format} matrix of shape {value.shape}, {density_of(value)}"


def density_of(value: Any) -> str:
    """Return the number of stored entries of a sparse matrix and their share of all, as text."""
    stored, size = int(value.nnz), int(np.prod(value.shape, dtype=np.float64))
    return f"{stored} stored ({100 * stored / size:.3g}%)" if size else f"{stored} stored"


def pattern_picture(value: Any) -> str:
    """Return a picture of where a sparse matrix has entries: the darker, the more of them.

    Examples
    --------
    >>> import scipy.sparse
    >>> print(pattern_picture(scipy.sparse.eye_array(3)))
    #..
    .#.
    ..#
    """
    rows, columns = value.shape
    if not rows or not columns:
        return ""
    coo = value.tocoo()
    height, width = min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)
    i = coo.coords[0].astype(np.int64) * height // rows
    j = coo.coords[1].astype(np.int64) * width // columns
    counts = np.zeros((height, width))
    np.add.at(counts, (i, j), 1)
    share = counts / (rows / height * columns / width)
    shades = np.minimum(np.ceil(share * (len(SHADES) - 1)), len(SHADES) - 1).astype(int)
    return "\n".join("".join(SHADES[k] for k in line) for line in shades)
