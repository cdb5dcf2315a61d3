"""Pooling with windows, steps or padding that are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.ops.control.conditions import Assert
from symcomp.ops.elementwise.scalar_logic import and_, clip, ge, lt, switch
from symcomp.ops.elementwise.scalar_math import cast, maximum, minimum
from symcomp.ops.indexing.gather import take, take_along_axis
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.reductions.functions import argmax
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.shape import product_of, reshape, shape_tuple
from symcomp.ops.windows.pooling import count_windows


def symbolic_pool(
    name: str,
    x: TensorVariable,
    window: Sequence[Any],
    strides: Sequence[Any],
    padding: Sequence[Any],
    partial: bool,
    mode: str,
) -> TensorVariable:
    """Pool the last axes of ``x``; lengths are ints or integer scalars.

    The elements of each window are laid out along an axis. If numbers are equal, the first counts
    as the largest, as in ``MaxPool``.
    """
    ndim = len(window)
    padding = _checked(name, window, padding, partial)
    lead = x.ndim - ndim
    lengths = shape_tuple(x)[lead:]
    axes = [
        _Axis(name, n, k, s, p, partial)
        for n, k, s, p in zip(lengths, window, strides, padding, strict=True)
    ]
    parts = x
    for a in reversed(range(ndim)):
        parts = take(parts, axes[a].inside, axis=lead + a)
    order = [lead + 2 * a for a in range(ndim)] + [lead + 2 * a + 1 for a in range(ndim)]
    parts = dimshuffle(parts, *range(lead), *order)
    counts, elements = [axis.count for axis in axes], product_of(window)
    parts = reshape(parts, (*shape_tuple(x)[:lead], *counts, elements), lead + ndim + 1)
    present = reduce(and_, (axis.spread(axis.present, a, ndim) for a, axis in enumerate(axes)))
    present = reshape(present, (*counts, elements), ndim + 1)
    if mode == "max":
        integer = dtypes.is_discrete(x.dtype)
        lowest = np.asarray(np.iinfo(x.dtype).min if integer else -np.inf, x.dtype)
        parts = switch(present, parts, lowest)
        where = argmax(parts, axis=-1, keepdims=True)
        return getitem(take_along_axis(parts, where, -1), (..., 0))
    total = sum_(switch(present, parts, np.zeros((), x.dtype)), axis=-1, dtype=x.dtype)
    if mode == "sum":
        return total
    if mode == "average_exc_pad":
        return total / cast(sum_(present, axis=-1, dtype="int64"), x.dtype)
    sizes = [
        dimshuffle(axis.size, *(0 if b == a else "x" for b in range(ndim)))
        for a, axis in enumerate(axes)
    ]
    return total / cast(product_of(sizes), x.dtype)


def _checked(name: str, window: Any, padding: Sequence[Any], partial: bool) -> list[Any]:
    """Return the padding, checked to be smaller than windows, and 0 if the last windows are
    partial.
    """
    found = []
    for k, p in zip(window, padding, strict=True):
        if partial and not isinstance(p, int):
            check = Assert(f"{name}: padding goes with ignore_border=True alone")
            p = check(p, p < 1)
        if not (isinstance(p, int) and p == 0):
            check = Assert(f"{name}: pad must be smaller than ws, and not negative")
            p = check(p, and_(ge(p, 0), lt(p, k)))
        found.append(p)
    return found


class _Axis:
    """The elements in each window of one axis, (count, k)."""

    def __init__(self, name: str, n: Any, k: Any, s: Any, p: Any, partial: bool) -> None:
        check = Assert(f"{name}: windows and steps must be positive, and a window must fit")
        count = count_windows(n, k, s, p, partial)
        self.count = check(count, ge(count, 1), ge(k, 1), ge(s, 1))
        first = arange(self.count) * s
        places = dimshuffle(first, 0, "x") + dimshuffle(arange(k), "x", 0) - p
        self.present = and_(ge(places, 0), lt(places, n))
        self.inside = clip(places, 0, maximum(n - 1, 0))
        # Elements of a window that lie within the padded image.
        self.size = minimum(first + k, n + 2 * p) - first

    @staticmethod
    def spread(x: TensorVariable, a: int, ndim: int) -> TensorVariable:
        """Reshape (count, k) to lie along the axes of counts and of elements."""
        pattern: list[Any] = ["x"] * (2 * ndim)
        pattern[a], pattern[ndim + a] = 0, 1
        return dimshuffle(x, *pattern)
