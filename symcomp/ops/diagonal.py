"""Diagonals: taking them out, putting them in."""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.alloc import zeros
from symcomp.ops.axes import moveaxis
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.creation import arange
from symcomp.ops.index import getitem, set_subtensor
from symcomp.ops.reduce import sum as sum_
from symcomp.ops.scalar_math import maximum, minimum
from symcomp.ops.shape import normalize_axis, shape_tuple


def _places(rows: Any, columns: Any, offset: int) -> tuple[TensorVariable, TensorVariable]:
    """Row and column numbers of a diagonal."""
    down, right = max(-offset, 0), max(offset, 0)
    if isinstance(rows, int) and isinstance(columns, int):
        count: Any = max(min(rows - down, columns - right), 0)
    else:
        count = maximum(minimum(as_tensor_variable(rows) - down, columns - right), 0)
    along = arange(count)
    return along + down, along + right


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """A diagonal of the matrices in two axes of ``a``; it is the last axis of the result.

    Parameters
    ----------
    a : tensor_like
        At least 2 axes.
    offset : int
        0 the main diagonal, positive above, negative below.
    axis1, axis2 : int

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.diagonal(x).eval({x: [[1, 2], [3, 4]]})
    array([1., 4.])
    """
    a = as_tensor_variable(a)
    if a.ndim < 2:
        raise ShapeError(f"diagonal: {a} ({a.type}) has fewer than 2 axes")
    i, j = (normalize_axis("diagonal", axis, a.ndim) for axis in (axis1, axis2))
    if i == j:
        raise ShapeError(f"diagonal: axis1 and axis2 are both {i}")
    a = moveaxis(a, (i, j), (-2, -1))
    lengths = shape_tuple(a)
    rows, columns = _places(lengths[-2], lengths[-1], offset)
    return getitem(a, (..., rows, columns))


def diag(v: Any, k: int = 0) -> TensorVariable:
    """The diagonal of a matrix, or the diagonal matrix of a vector.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> v = T.dvector("v")
    >>> T.diag(v).eval({v: [1, 2]})
    array([[1., 0.],
           [0., 2.]])
    """
    v = as_tensor_variable(v)
    if v.ndim == 1:
        return alloc_diag(v, k)
    if v.ndim == 2:
        return diagonal(v, k)
    raise ShapeError(f"diag: {v} ({v.type}) is neither vector nor matrix")


extract_diag = diagonal


def alloc_diag(v: Any, offset: int = 0) -> TensorVariable:
    """Matrices with the last axis of ``v`` on a diagonal, and zeros elsewhere."""
    v = as_tensor_variable(v)
    if v.ndim == 0:
        raise ShapeError(f"alloc_diag: {v} is a scalar")
    *stack, n = shape_tuple(v)
    size = n + abs(offset)
    rows, columns = _places(size, size, offset)
    return set_subtensor(getitem(zeros([*stack, size, size], v.dtype), (..., rows, columns)), v)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """The sum of a diagonal.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.trace(x).eval({x: [[1, 2], [3, 4]]})
    array(5.)
    """
    return sum_(diagonal(a, offset, axis1, axis2), axis=-1)


def fill_diagonal(a: Any, val: Any) -> TensorVariable:
    """A copy of ``a`` with ``val`` on its main diagonal.

    Parameters
    ----------
    a : tensor_like
        2 axes; or more, if all lengths are equal.
    val : scalar

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.fill_diagonal(x, 0).eval({x: [[1, 2], [3, 4]]})
    array([[0., 2.],
           [3., 0.]])
    """
    a = as_tensor_variable(a)
    if a.ndim < 2:
        raise ShapeError(f"fill_diagonal: {a} ({a.type}) has fewer than 2 axes")
    if a.ndim == 2:
        return fill_diagonal_offset(a, val, 0)
    along = arange(shape_tuple(a)[0])
    return set_subtensor(getitem(a, (along,) * a.ndim), val)


def fill_diagonal_offset(a: Any, val: Any, offset: int) -> TensorVariable:
    """A copy of the matrix ``a`` with ``val`` on diagonal ``offset``."""
    a = as_tensor_variable(a)
    if a.ndim != 2:
        raise ShapeError(f"fill_diagonal_offset: {a} ({a.type}) is no matrix")
    n, m = shape_tuple(a)
    rows, columns = _places(n, m, offset)
    return set_subtensor(getitem(a, (rows, columns)), val)


__all__ = [
    "alloc_diag", "diag", "diagonal", "extract_diag", "fill_diagonal", "fill_diagonal_offset",
    "trace",
]  # fmt: skip
