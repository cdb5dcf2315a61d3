"""Divide arrays into blocks: the layout of the operands of a loop, and the part of each in a block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

Pattern = tuple[bool, ...]
Index = tuple[slice, ...]

EVERYTHING = slice(None)


def block_indices(shape: Sequence[int], size: int, whole: Collection[int] = ()) -> Iterator[Index]:
    """Cut an array into blocks of at most ``size`` elements, along its slowest axes, but not along
    those of ``whole``.
    """
    axes = [a for a in range(len(shape)) if a not in whole]
    room = max(size // max(prod(shape[a] for a in whole), 1), 1)
    for part in _cut([shape[a] for a in axes], room):
        index = [EVERYTHING] * len(shape)
        for a, cut in zip(axes, part, strict=True):
            index[a] = cut
        yield tuple(index)


def _cut(shape: Sequence[int], size: int) -> Iterator[Index]:
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= size:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield (EVERYTHING,) * len(shape)
        return
    step = max(size // inner, 1)
    rest = (EVERYTHING,) * (len(shape) - axis)
    for outer in product(*map(range, shape[: axis - 1])):
        before = tuple(slice(i, i + 1) for i in outer)
        for start in range(0, shape[axis - 1], step):
            yield (*before, slice(start, start + step), *rest)


class BlockLayout:
    """The operands of one loop, their axes sorted by stride; merged into one axis if all operands
    are contiguous.

    Parameters
    ----------
    shape : tuple of int
        The shape of the loop.
    values : sequence of array
        The operands; one axis of each for one of the loop.
    stretched : sequence of tuple of bool
        For each operand, the axes along which it has a single element.
    flatten : bool
        If true, the axes may be merged into one.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        values: Sequence[Any],
        stretched: Sequence[Pattern],
        flatten: bool,
    ) -> None:
        axes = range(len(shape))
        whole = [v for v in values if v.shape == shape]
        strides = whole[0].strides if whole else None
        self.order = axes if strides is None else sorted(axes, key=lambda a: -abs(strides[a]))
        self._back = np.argsort(self.order)
        self._full_shape = shape
        operands = [v.transpose(self.order) for v in values]
        self.shape = tuple(shape[a] for a in self.order)
        self.stretched = [tuple(p[a] for a in self.order) for p in stretched]
        self.flat = flatten and all(
            v.flags.c_contiguous and (v.shape == self.shape or v.size == 1) for v in operands
        )
        if self.flat:
            operands = [v.reshape(-1) for v in operands]
            self.stretched = [(v.size == 1,) for v in operands]
            self.shape = (prod(shape),)
        self.operands = operands

    def axes(self, axes: Collection[int]) -> tuple[int, ...]:
        """Return the positions of ``axes`` of the loop in this layout."""
        found = tuple(i for i, a in enumerate(self.order) if a in axes)
        return (0,) * bool(found) if self.flat else found

    def part(self, index: Index) -> list[Any]:
        """Return the part of each operand in the block at ``index``."""
        return [v[masked(index, p)] for v, p in zip(self.operands, self.stretched, strict=True)]

    def adopted(self, array: Any) -> Any:
        """Return a view of ``array`` with the axes of this layout; None if it has not the loop's
        shape, or its axes cannot be merged.
        """
        if array is None or array.shape != self._full_shape:
            return None
        ordered = array.transpose(self.order)
        if self.flat:
            return ordered.reshape(-1) if ordered.flags.c_contiguous else None
        return ordered

    def restored(self, array: Any) -> Any:
        """Return a view of ``array``, which has the axes of this layout, with the axes of the loop.
        """
        if not self.flat:
            return array.transpose(self._back)
        ordered = [self._full_shape[a] if array.size != 1 else 1 for a in self.order]
        return array.reshape(ordered).transpose(self._back)


def masked(index: Index, stretched: Pattern) -> Index:
    """Return ``index`` for an array with length 1 along the ``stretched`` axes."""
    return tuple(EVERYTHING if one else s for s, one in zip(index, stretched, strict=True))
