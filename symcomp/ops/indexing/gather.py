"""Select elements by index: take, take_along_axis, choose, compress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_tensor_variable, cast_to, with_rank
from symcomp.ops.elementwise.scalar_logic import clip
from symcomp.ops.elementwise.scalar_math import mod
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import broadcast_arrays
from symcomp.ops.shapes.joining import stack
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import normalize_axis, shape_tuple


def _whole_numbers(name: str, indices: Any) -> TensorVariable:
    """Return ``indices`` as integers: True is 1, not a mask."""
    v = as_tensor_variable(indices)
    if not dtypes.is_discrete(v.dtype):
        raise DTypeError(f"{name}: indices must be integers, got {v} ({v.type})")
    return cast_to(v, "int64") if v.dtype == "bool" else v


def _in_range(indices: TensorVariable, n: Any, mode: str, name: str) -> TensorVariable:
    if mode == "raise":
        return indices
    indices = cast_to(indices, "int64")  # a narrow dtype may not hold the length
    if mode == "clip":
        return clip(indices, 0, n - 1)
    if mode == "wrap":
        return mod(indices, n)
    raise ValueError(f"{name}: mode={mode!r}: must be 'raise', 'wrap' or 'clip'")


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> TensorVariable:
    """Return the elements of ``a`` at ``indices`` along an axis.

    Parameters
    ----------
    a : tensor_like
    indices : integer tensor_like
        Indices of any shape, which replaces the axis.
    axis : int, optional
        By default the flattened tensor is used.
    mode : {"raise", "wrap", "clip"}
        The treatment of indices out of range.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.take(x, [1, 0], axis=1).eval({x: [[1, 2], [3, 4]]})
    array([[2., 1.],
           [4., 3.]])
    """
    a = as_tensor_variable(a)
    if axis is None:
        a, axis = flatten(a), 0
    number = normalize_axis("take", axis, a.ndim)
    places = _in_range(_whole_numbers("take", indices), shape_tuple(a)[number], mode, "take")
    return getitem(a, (slice(None),) * number + (places,))


def _own_places(lengths: Sequence[Any]) -> list[TensorVariable]:
    """Return index arrays, one for each axis, that select every element in its own place."""
    rank = range(len(lengths))
    return [
        arange(n).dimshuffle(*[0 if b == a else "x" for b in rank]) for a, n in enumerate(lengths)
    ]


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> TensorVariable:
    """Take elements along an axis: each 1-d slice at its own indices, as NumPy does.

    Parameters
    ----------
    arr : tensor_like
    indices : integer tensor_like
        Indices of the rank of ``arr``; the other axes broadcast.
    axis : int or None

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.take_along_axis(x, [[1], [0]], axis=1).eval({x: [[1, 2], [3, 4]]})
    array([[2.],
           [3.]])
    """
    arr, places = as_tensor_variable(arr), _whole_numbers("take_along_axis", indices)
    if axis is None:
        return getitem(flatten(arr), places)
    number = normalize_axis("take_along_axis", axis, arr.ndim)
    if places.ndim != arr.ndim:
        raise ShapeError(
            f"take_along_axis: arr ({arr.type}) and indices ({places.type}) must have equally "
            "many axes"
        )
    key = _own_places(shape_tuple(arr))
    key[number] = places
    return getitem(arr, tuple(key))


def choose(a: Any, choices: Sequence[Any] | TensorVariable, mode: str = "raise") -> TensorVariable:
    """Select each element from the choice that ``a`` numbers.

    Parameters
    ----------
    a : integer tensor_like
    choices : sequence of tensor_like, or tensor whose first axis counts them
    mode : {"raise", "wrap", "clip"}

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a = T.lvector("a")
    >>> T.choose(a, [[1, 2], [3, 4]]).eval({a: [1, 0]})
    array([3, 2])
    """
    index = _whole_numbers("choose", a)
    if isinstance(choices, TensorVariable):
        if choices.ndim == 0:
            raise ShapeError(f"choose: {choices} ({choices.type}) is a scalar, not several choices")
        stacked = choices
    else:
        stacked = stack(broadcast_arrays(*choices))
    n = shape_tuple(stacked)[0]
    if mode == "raise":
        message = "choose: a number in `a` is no position in choices: use mode='wrap' or 'clip'"
        index = Assert(message)(index, (index >= 0) & (index < n))
    index = _in_range(index, n, mode, "choose")
    rank = max(index.ndim, stacked.ndim - 1)
    missing = ["x"] * (rank - stacked.ndim + 1)
    stacked = stacked.dimshuffle(0, *missing, *range(1, stacked.ndim))
    return getitem(stacked, (with_rank(index, rank), *_own_places(shape_tuple(stacked)[1:])))


def compress(condition: Any, x: Any, axis: int | None = None) -> TensorVariable:
    """Return the slices of ``x`` along an axis where ``condition`` is true (not 0).

    Parameters
    ----------
    condition : vector
        May be shorter than the axis: the rest is left out.
    x : tensor_like
    axis : int, optional
        By default of the flattened tensor.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.compress([True, False, True], x).eval({x: [1, 2, 3]})
    array([1., 3.])
    """
    chosen = as_tensor_variable(condition)
    if chosen.ndim != 1:
        raise ShapeError(f"compress: condition must be a vector, got {chosen} ({chosen.type})")
    return take(x, chosen.nonzero()[0], axis)


__all__ = ["choose", "compress", "take", "take_along_axis"]
