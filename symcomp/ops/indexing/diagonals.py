"""Diagonals read, made and written, as users call them."""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.diagonal import (
    LARGEST,
    AllocDiagonal,
    Diagonal,
    _larger,
    _length,
    with_diagonal_set,
)
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.linalg.products import same_lengths
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import moveaxis
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import as_integer, normalize_axis, reshape, shape_tuple


def _as_offset(name: str, offset: Any) -> Any:
    """Return the offset of a diagonal: an int if it is known, else an int64 scalar."""
    v = as_integer(offset, name, "offset")
    return int(v.data) if isinstance(v, TensorConstant) else v


def _places(rows: Any, columns: Any, offset: Any) -> tuple[TensorVariable, TensorVariable]:
    """Return row and column numbers of a diagonal."""
    along = arange(_length(rows, columns, offset))
    return along + _larger(-offset, 0), along + _larger(offset, 0)


def diagonal_matrix(x: TensorVariable, offset: int) -> TensorVariable:
    """Return AllocDiagonal's result, as a write to zeros: every (size + 1)-th element is set."""
    *stack, n = shape_tuple(x)
    size = n + abs(offset)
    first = max(-offset, 0) * size + max(offset, 0)
    last = first + n * (size + 1) - size if offset else None
    blank = zeros([*stack, size * size], x.dtype)
    part = getitem(blank, (..., slice(first if offset else None, last, size + 1)))
    return reshape(set_subtensor(part, x), [*stack, size, size], ndim=x.ndim + 1)


def _two_axes(name: str, ndim: int, axis1: int, axis2: int) -> tuple[int, int]:
    i, j = (normalize_axis(name, axis, ndim) for axis in (axis1, axis2))
    if i == j:
        raise ShapeError(f"{name}: axis1 and axis2 are both {i}")
    return i, j


def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return a diagonal of the matrices in two axes of ``a``; it is the last axis of the result.

    Parameters
    ----------
    a : tensor_like
        At least 2 axes.
    offset : integer scalar
        0 the main diagonal, positive above, negative below.
    axis1, axis2 : int

    Raises
    ------
    ShapeError, DTypeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.diagonal(x).eval({x: [[1, 2], [3, 4]]})
    array([1., 4.])
    """
    return _diagonal("diagonal", a, offset, axis1, axis2)


def _diagonal(name: str, a: Any, offset: Any, axis1: int, axis2: int) -> TensorVariable:
    """Return ``diagonal``, with error messages that begin with ``name``."""
    a = as_tensor_variable(a)
    if a.ndim < 2:
        raise ShapeError(f"{name}: {a} ({a.type}) has fewer than 2 axes")
    a = moveaxis(a, _two_axes(name, a.ndim, axis1, axis2), (-2, -1))
    number = _as_offset(name, offset)
    if isinstance(number, int) and abs(number) <= LARGEST:
        return Diagonal(number)(a)
    lengths = shape_tuple(a)
    rows, columns = _places(lengths[-2], lengths[-1], number)
    return getitem(a, (..., rows, columns))


def diag(v: Any, k: Any = 0) -> TensorVariable:
    """Return the diagonal of a matrix, or the diagonal matrix of a vector.

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


def alloc_diag(v: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return matrices, in two axes of the result, with the last axis of ``v`` on a diagonal and
    zeros elsewhere: the inverse of ``diagonal`` with the same arguments.

    Parameters
    ----------
    v : tensor_like
        At least 1 axis.
    offset : integer scalar
    axis1, axis2 : int
        Axes of the result, which has one axis more than ``v``.

    Raises
    ------
    ShapeError, DTypeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> v = T.dvector("v")
    >>> T.alloc_diag(v, 1).eval({v: [5]})
    array([[0., 5.],
           [0., 0.]])
    """
    v = as_tensor_variable(v)
    if v.ndim == 0:
        raise ShapeError(f"alloc_diag: {v} is a scalar")
    axes = _two_axes("alloc_diag", v.ndim + 1, axis1, axis2)
    offset = _as_offset("alloc_diag", offset)
    if isinstance(offset, int):
        return moveaxis(AllocDiagonal(offset)(v), (-2, -1), axes)
    *stack, n = shape_tuple(v)
    size = n + abs(offset)
    rows, columns = _places(size, size, offset)
    blank = zeros([*stack, size, size], v.dtype)
    return moveaxis(set_subtensor(getitem(blank, (..., rows, columns)), v), (-2, -1), axes)


def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Return the sum of a diagonal.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.trace(x).eval({x: [[1, 2], [3, 4]]})
    array(5.)
    """
    return sum_(_diagonal("trace", a, offset, axis1, axis2), axis=-1)


def fill_diagonal(a: Any, val: Any) -> TensorVariable:
    """Return a copy of ``a`` with ``val`` on its main diagonal.

    Parameters
    ----------
    a : tensor_like
        2 axes; or more, if all lengths are equal.
    val : tensor_like
        A scalar, or a vector as long as the diagonal.

    Raises
    ------
    ShapeError

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
    a = same_lengths("fill_diagonal", a, a, [(0, axis) for axis in range(1, a.ndim)])
    along = arange(shape_tuple(a)[0])
    return set_subtensor(getitem(a, (along,) * a.ndim), val)


def fill_diagonal_offset(a: Any, val: Any, offset: Any) -> TensorVariable:
    """Return a copy of the matrix ``a`` with ``val`` on a diagonal, as in ``fill_diagonal``.

    Parameters
    ----------
    a : matrix
    val : tensor_like
    offset : integer scalar
        0 the main diagonal, positive above, negative below.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, k = T.dmatrix("x"), T.lscalar("k")
    >>> T.fill_diagonal_offset(x, 0, k).eval({x: [[1, 2], [3, 4]], k: 1})
    array([[1., 0.],
           [3., 4.]])
    """
    a = as_tensor_variable(a)
    if a.ndim != 2:
        raise ShapeError(f"fill_diagonal_offset: {a} ({a.type}) is no matrix")
    number = _as_offset("fill_diagonal_offset", offset)
    if isinstance(number, int):
        return with_diagonal_set(a, val, number)
    n, m = shape_tuple(a)
    rows, columns = _places(n, m, number)
    return set_subtensor(getitem(a, (rows, columns)), val)


extract_diag = diagonal


__all__ = [
    "alloc_diag", "diag", "diagonal", "extract_diag", "fill_diagonal", "fill_diagonal_offset",
    "trace",
]  # fmt: skip
