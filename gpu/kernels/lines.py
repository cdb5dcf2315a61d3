"""Lines of arrays along an axis, and tiles of their elements, for kernels that walk along them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX, converted
from symcomp.core.record import record
from symcomp.gpu.layouts import collapse, in_memory
from symcomp.gpu.planner import Operand

# A tile has TILE bytes, 64 of each thread: of two blocks on each of 132 multiprocessors, 4 MB are
# in flight. The registers of one suffice for TOGETHER blocks.
THREADS, TILE, TOGETHER = 256, 1 << 14, 3


@record
class LineLayout:
    """The lines of some arrays, of equal shapes, along an axis.

    Attributes
    ----------
    arrays : tuple of Operand
    count : int
        Elements of a line.
    by : tuple of int
        For each array, the bytes between neighbours of a line.
    shape : tuple of int
        Of the lines; the last axis has the smallest steps.
    steps : tuple of tuple of int
        For each array, the bytes between lines along each axis.
    """

    arrays: tuple[Operand, ...]
    count: int
    by: tuple[int, ...]
    shape: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]

    @property
    def lines(self) -> int:
        """Return how many lines there are."""
        return math.prod(self.shape)

    @property
    def across(self) -> tuple[bool, ...]:
        """Return, for each array, whether lines are nearer to one another than elements of one."""
        pairs = zip(self.by, self.steps, strict=True)
        return tuple(0 < abs(row[-1]) < abs(by) for by, row in pairs)

    def numbers(self) -> list[int]:
        """Return the integers that kernels take first."""
        return [self.lines, self.count, *self.by, *self.shape[1:]]

    def rows(self, more: int = 0) -> list[list[int]]:
        """Return the steps along each axis, with those of ``more`` arrays without lines."""
        return [[*row, *[0] * more] for row in zip(*self.steps, strict=True)]


def line_layout(arrays: Sequence[Operand], axis: int) -> LineLayout:
    """Return the lines of arrays along an axis."""
    shape, strides = arrays[0].shape, [x.strides for x in arrays]
    others = [a for a in range(len(shape)) if a != axis]
    outer, steps = collapse(in_memory(others, shape, strides[::-1]), shape, strides)
    by = tuple(row[axis] for row in strides)
    return LineLayout(tuple(arrays), shape[axis], by, tuple(outer), tuple(map(tuple, steps)))


def tile_length(dtype: str) -> int:
    """Return the elements of a tile."""
    return TILE // max(np.dtype(dtype).itemsize, 4)


def kernel_head(arrays: int, more: int, rank: int) -> tuple[list[str], str]:
    """Return the names of the numbers of a kernel of lines, and its head."""
    numbers = ["lines", "count", *(f"by{a}" for a in range(arrays))]
    numbers += [f"m{a}" for a in range(1, rank)]
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append(f"const addresses<{arrays + more}> data")
    parameters += [f"const steps<int64_t, {arrays + more}> step{a}" for a in range(rank)]
    return numbers, f'extern "C" __global__ void NAME({", ".join(parameters)})'


def number_text(element: str, given: str, dtype: str) -> str:
    """Return an element as it was read, as a number of the dtype that is computed with."""
    if given in COMPLEX:
        return element
    return converted(f"(({C_TYPES[given]}){element})", given, dtype)
