"""Repeat and move elements: tile, repeat, roll, flip, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_rank, as_tensor_variable, with_rank
from symcomp.ops.elementwise.scalar_logic import ge, switch
from symcomp.ops.elementwise.scalar_math import cast, maximum, mod
from symcomp.ops.indexing.gather import take
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.reductions.accumulated import cumsum
from symcomp.ops.reductions.cumulative import along
from symcomp.ops.reductions.functions import max as max_
from symcomp.ops.reductions.functions import mean
from symcomp.ops.reductions.functions import min as min_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import dimshuffle, expand_dims
from symcomp.ops.shapes.creation import arange, linspace
from symcomp.ops.shapes.filled import alloc, full, ones
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.reshaping import flatten, specify_shape
from symcomp.ops.shapes.shape import (
    as_integer,
    as_integers,
    as_lengths,
    normalize_axes,
    normalize_axis,
    product_of,
    reshape,
    shape_tuple,
)
from symcomp.ops.sorting.functions import median


def tile(x: Any, reps: Any, ndim: int | None = None) -> TensorVariable:
    """Repeat ``x`` as a block along its axes.

    Parameters
    ----------
    x : tensor_like
    reps : int, integer scalar, sequence of them or integer vector
        The number of copies along each axis; the shorter of ``reps`` and the shape is extended in
        front with ones.
    ndim : int, optional
        Rank of the result, at least; needed where ``reps`` is a vector of unknown length.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.tile(x, 2).eval({x: [1, 2]})
    array([1., 2., 1., 2.])
    """
    x = as_tensor_variable(x)
    ndim = None if ndim is None else as_rank(ndim, "tile")
    counts = _counts(reps, ndim)
    rank = max(x.ndim, len(counts), ndim or 0)
    x, counts = with_rank(x, rank), [1] * (rank - len(counts)) + counts
    lengths = shape_tuple(x)
    spread = dimshuffle(x, *[e for a in range(rank) for e in ("x", a)])
    stretched = alloc(spread, *[e for c, n in zip(counts, lengths, strict=True) for e in (c, n)])
    return reshape(stretched, [product_of([n, c]) for c, n in zip(counts, lengths, strict=True)])


def _counts(reps: Any, ndim: int | None) -> list[Any]:
    """Return the entries of ``reps``; of a vector of unknown length, ``ndim`` with ones in front.
    """
    if not isinstance(reps, TensorVariable) or reps.ndim != 1:
        return _checked_counts("tile", "reps", reps)
    counts = reps
    if counts.ndim == 1 and counts.type.shape[0] is None:
        if ndim is None:
            raise ShapeError(
                f"tile: the length of reps={counts} ({counts.type}) is not known, "
                "so pass ndim, the rank of the result"
            )
        missing = ndim - shape_tuple(counts)[0]
        missing = Assert(f"tile: reps has more entries than ndim={ndim}")(missing, ge(missing, 0))
        counts = specify_shape(concatenate([ones(missing, counts.dtype), counts]), (ndim,))
    return as_lengths(counts, "tile")


def _checked_counts(name: str, argument: str, counts: Any) -> list[Any]:
    """Return counts of repetitions: ints of at least 0 if they are known, else integer scalars."""
    several = isinstance(counts, list | tuple) or getattr(counts, "ndim", 0) == 1
    scalars = [as_integer(n, name, argument) for n in (counts if several else [counts])]
    found = [int(n.data) if isinstance(n, TensorConstant) else n for n in scalars]
    if any(isinstance(n, int) and n < 0 for n in found):
        raise ShapeError(f"{name}: {argument} is {counts!r:.80}; it must not be negative")
    return found


def repeat(x: Any, repeats: Any, axis: int | None = None) -> TensorVariable:
    """Repeat every element.

    Parameters
    ----------
    x : tensor_like
    repeats : integer scalar or vector
        The number of repetitions: one for all, or one for each position on the axis.
    axis : int, optional
        By default the flattened tensor is used.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.repeat(x, [2, 1]).eval({x: [1, 2]})
    array([1., 1., 2.])
    """
    x, counts = as_tensor_variable(x), _read_repeats(repeats)
    if axis is None:
        x, axis = flatten(x), 0
    number = normalize_axis("repeat", axis, x.ndim)
    lengths = list(shape_tuple(x))
    if counts.ndim == 1 and counts.type.shape[0] == 1:
        counts = counts[0]
    if counts.ndim == 0:
        order = [*range(number + 1), "x", *range(number + 1, x.ndim)]
        wide = alloc(dimshuffle(x, *order), *lengths[: number + 1], counts, *lengths[number + 1 :])
        return reshape(
            wide, [*lengths[:number], product_of([lengths[number], counts]), *lengths[number + 1 :]]
        )
    # Element k of the result comes from the last source element whose copies begin at or before k.
    ends = cumsum(cast(counts, "int64"))
    places = arange(sum_(cast(counts, "int64")))
    source = sum_(cast(ge(dimshuffle(places, 0, "x"), dimshuffle(ends, "x", 0)), "int64"), axis=1)
    return take(x, source, axis=number)


def _read_repeats(repeats: Any) -> TensorVariable:
    counts = as_integers(repeats, "repeat", "repeats")
    if counts.ndim > 1:
        raise DTypeError(
            f"repeat: repeats must be an integer scalar or vector, got {counts} ({counts.type})"
        )
    if isinstance(counts, TensorConstant) and (counts.data < 0).any():
        raise ShapeError(f"repeat: repeats is {repeats!r:.80}; it must not be negative")
    return counts


def roll(x: Any, shift: Any, axis: Any = None) -> TensorVariable:
    """Roll ``x`` along axes: elements shifted beyond one end come back at the other.

    Parameters
    ----------
    x : tensor_like
    shift : integer scalar or sequence of them
    axis : int or sequence of int, optional
        By default the flattened tensor is moved, and its shape restored.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.roll(x, 1).eval({x: [1, 2, 3]})
    array([3., 1., 2.])
    """
    x = as_tensor_variable(x)
    if axis is None:
        return (
            reshape(roll(flatten(x), shift, 0), shape_tuple(x))
            if x.ndim != 1
            else roll(x, shift, 0)
        )
    axes = list(axis) if isinstance(axis, list | tuple | range) else [axis]
    shifts = list(shift) if isinstance(shift, list | tuple) else [shift] * len(axes)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: shift {shift} has {len(shifts)} entries for the axes {axes}")
    for a, s in zip(axes, shifts, strict=True):
        number = normalize_axis("roll", a, x.ndim)
        n = shape_tuple(x)[number]
        places = arange(n) - as_integer(s, "roll", "shift")
        x = take(x, mod(places, maximum(n, 1)), axis=number)
    return x


def flip(m: Any, axis: Any = None) -> TensorVariable:
    """Reverse the order of elements along axes (by default all). A view.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.flip([1, 2, 3]).eval()
    array([3, 2, 1])
    """
    m = as_tensor_variable(m)
    axes = normalize_axes("flip", axis, m.ndim)
    return getitem(
        m, tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(m.ndim))
    )


PAD_MODES = (
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
    "symmetric", "wrap", "empty",
)  # fmt: skip


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    end_values: Any = 0,
    reflect_type: str = "even",
    stat_length: Any = None,
) -> TensorVariable:
    """Pad ``x`` at the ends of its axes, as NumPy's ``pad``.

    Parameters
    ----------
    x : tensor_like
    pad_width : int, pair, or sequence of pairs of int
        The number of elements added before and after, for each axis.
    mode : str
        ``constant, edge, linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap`` or
        ``empty`` (zeros).
    constant_values, end_values : scalar, pair or sequence of pairs
        For ``constant`` and ``linear_ramp``.
    reflect_type : {"even"}
    stat_length : int, pair or sequence of pairs, optional
        For ``maximum, mean, median, minimum``: how many elements at the end are looked at; by
        default all.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.pad(x, 1, mode="edge").eval({x: [1, 2]})
    array([1., 1., 2., 2.])
    """
    x = as_tensor_variable(x)
    if mode not in PAD_MODES:
        raise ValueError(f"pad: mode={mode!r}: must be one of {', '.join(PAD_MODES)}")
    if reflect_type != "even":
        raise NotImplementedError(f"pad: reflect_type={reflect_type!r}; only 'even' is there")
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pad: pad_width is {pad_width!r:.80}; integers are needed")
    widths = np.broadcast_to(given, (x.ndim, 2))
    if (widths < 0).any():
        raise ShapeError(f"pad: pad_width {pad_width} must not be negative")
    fills = _pairs(end_values if mode == "linear_ramp" else constant_values, x.ndim)
    stats = (
        [None] * x.ndim
        if stat_length is None
        else np.broadcast_to(np.asarray(stat_length), (x.ndim, 2)).tolist()
    )
    for axis in range(x.ndim):
        before, after = (int(w) for w in widths[axis])
        if mode in ("edge", "reflect", "symmetric", "wrap"):
            x = _pad_by_position(x, axis, before, after, mode)
        else:
            x = _pad_by_value(x, axis, (before, after), mode, fills[axis], stats[axis])
    return x


def _pairs(values: Any, ndim: int) -> list[list[Any]]:
    if not isinstance(values, list | tuple | np.ndarray):
        return [[values, values]] * ndim
    if all(isinstance(v, list | tuple | np.ndarray) for v in values):
        rows = [list(v) * (2 // len(v)) for v in values]
        return rows * (ndim // len(rows))
    values = list(values)
    return [values * (2 // len(values))] * ndim


def _pad_by_position(
    x: TensorVariable, axis: int, before: int, after: int, mode: str
) -> TensorVariable:
    """Pad with copies of existing elements."""
    n = shape_tuple(x)[axis]
    k: Any = arange(-before, n + after)
    if mode == "edge":
        places = switch(k < 0, 0, switch(ge(k, n), n - 1, k))
    elif mode == "wrap":
        places = mod(k, n)
    else:
        # A period goes there and back: reflect does not repeat the ends, symmetric does.
        repeated = 0 if mode == "reflect" else 1
        period = maximum(as_tensor_variable(2 * (n + repeated - 1)), 1)
        inside: Any = mod(k, period)
        places = switch(ge(inside, n), period - repeated - inside, inside)
    return take(x, places, axis=axis)


def _pad_by_value(
    x: TensorVariable, axis: int, widths: tuple[int, int], mode: str, fill: Sequence[Any], stat: Any
) -> TensorVariable:
    parts = [x]
    for side, width in enumerate(widths):
        if not width:
            continue
        shape = list(shape_tuple(x))
        shape[axis] = width
        if mode in ("constant", "empty"):
            value = as_tensor_variable(fill[side] if mode == "constant" else 0)
            part = full(shape, cast(value, x.dtype))
        elif mode == "linear_ramp":
            part = _ramp(x, axis, side, width, fill[side])
        else:
            part = alloc(_statistic(x, axis, side, mode, stat), *shape)
        parts.insert(0 if side == 0 else len(parts), part)
    return concatenate(parts, axis)


def _ramp(x: TensorVariable, axis: int, side: int, width: int, end: Any) -> TensorVariable:
    edge = expand_dims(take(x, 0 if side == 0 else -1, axis=axis), axis)
    steps = linspace(0, 1, width, endpoint=False)
    steps = steps if side == 0 else flip(steps)
    shaped: Any = dimshuffle(steps, *[0 if a == axis else "x" for a in range(x.ndim)])
    ramp = end + (cast(edge, shaped.dtype) - end) * shaped
    return cast(ramp, x.dtype)


def _statistic(x: TensorVariable, axis: int, side: int, mode: str, stat: Any) -> TensorVariable:
    if stat is not None:
        n = int(stat[side])
        x = getitem(x, along(axis, x.ndim, slice(None, n) if side == 0 else slice(-n, None)))
    if mode in ("mean", "median"):
        middle = mean(x, axis, keepdims=True)
        average = middle if mode == "mean" else expand_dims(median(x, axis), axis)
        return cast(average.round() if dtypes.is_discrete(x.dtype) else average, x.dtype)
    return (max_ if mode == "maximum" else min_)(x, axis, keepdims=True)


__all__ = ["flip", "pad", "repeat", "roll", "tile"]
