"""Layouts of arrays that one loop goes over: which axes are joined, and what one access reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import gcd

from symcomp.codegen.cuda.tiles import bytes_of, each_of, size_of
from symcomp.codegen.loops.axis_functions import Pattern
from symcomp.codegen.loops.nests import Nest
from symcomp.core.record import record
from symcomp.cvm.machine import WIDEST
from symcomp.gpu.planner import Operand, Planner

# Parameters of a kernel have 4 KiB.
MOST_BYTES = 4000
# More elements of one access, or steps that compute them, take too many registers.
MOST_PACKED, MOST_STEPS = 8, 128
# The registers of a thread that hold elements while others are read.
MOST_HELD = 32
# The sides of tiles, each with the bytes of shared memory for them, and from how many tiles on they
# are enough for a card; both axes have at least LEAST_SIDE elements.
TILES = (64, 24 << 10, 2048), (32, 48 << 10, 1)
LEAST_SIDE = 32


def patterns_of(nest: Nest) -> tuple[Pattern, ...]:
    return nest.stretched[: len(nest.formula.inputs)]


def in_memory(
    axes: Sequence[int], lengths: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[int]:
    """Return axes with the longest strides first, by the first array that has any there."""
    return sorted(axes, key=lambda a: [-abs(row[a]) for row in strides])


def collapse(
    axes: Sequence[int], lengths: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Join axes that follow one another in all arrays.

    Returns
    -------
    shape : list of int
        At least one length.
    steps : list of list of int
        For each array.
    """
    shape: list[int] = []
    rows: list[list[int]] = []  # for each axis
    for axis in axes:
        n, row = lengths[axis], [s[axis] for s in strides]
        if n == 1:
            continue
        if shape and all(before == step * n for before, step in zip(rows[-1], row, strict=True)):
            shape[-1] *= n
            rows[-1] = row
        else:
            shape.append(n)
            rows.append(row)
    if not shape:
        return [1], [[0] for _ in strides]
    return shape, [list(one) for one in zip(*rows, strict=True)]


def pack_width(
    planner: Planner, arrays: Sequence[Operand], steps: Sequence[Sequence[int]], length: int
) -> int:
    """Return how many neighbouring elements, along the last axis, one access reads of each array.

    Parameters
    ----------
    planner : Planner
    arrays : sequence of Operand
    steps : sequence of sequence of int
        For each array the bytes between elements along each axis.
    length : int
        Of the last axis.

    Returns
    -------
    int
        1 where they are no neighbours, or lie elsewhere than a wide access can read them.
    """
    moving = [(x, row) for x, row in zip(arrays, steps, strict=True) if row[-1]]
    if not moving or any(row[-1] != x.itemsize for x, row in moving):
        return 1
    width = min(MOST_PACKED, WIDEST // max(x.itemsize for x, _ in moving))
    while width > 1:
        if length % width == 0 and all(
            gcd(planner.alignment(x), *row[:-1]) % (width * x.itemsize) == 0 for x, row in moving
        ):
            return width
        width //= 2
    return 1


@record
class TileShape:
    """The squares of elements that blocks compute.

    Attributes
    ----------
    axis : int
        One of their axes; the other one is the last.
    turned : frozenset of int
        The inputs whose neighbours lie along this axis, which are read through shared memory.
    side : int
        Their length.
    """

    axis: int
    turned: frozenset[int]
    side: int


def tile_shape(
    arrays: Sequence[Operand],
    steps: Sequence[Sequence[int]],
    shape: Sequence[int],
    inputs: int,
    work: int,
) -> TileShape | None:
    """Return the tiles of a loop, None if it has none.

    It has if neighbours of some inputs lie along another axis than the last one, both axes are at
    least LEAST_SIDE long, and what a block reads of a tile has room in registers and in shared
    memory. The other axis is that along which most bytes of such inputs lie.

    Parameters
    ----------
    arrays : sequence of Operand
    steps : sequence of sequence of int
        For each array the bytes between elements along each axis.
    shape : sequence of int
        The length of each axis.
    inputs : int
        How many of the arrays, the first ones, are read.
    work : int
        How many steps compute an element.
    """
    if shape[-1] < LEAST_SIDE:
        return None
    found: list[tuple[int, int, frozenset[int]]] = []
    for axis in [a for a, length in enumerate(shape[:-1]) if length >= LEAST_SIDE]:
        turned = frozenset(i for i in range(inputs) if is_turned(arrays[i], steps[i], axis))
        found.append((sum(arrays[i].itemsize for i in turned), axis, turned))
    size, axis, turned = max(found, default=(0, 0, frozenset()))
    if size == 0:
        return None
    held = [i for i in range(inputs) if i not in turned and any(steps[i])]
    words = sum(max(1, size_of(arrays[i].dtype) // 4) for i in held)
    for side, room, least in TILES:
        shared = sum(bytes_of(arrays[i].dtype, side) for i in turned)
        each = each_of(side)
        has_room = shared <= room and each * words <= MOST_HELD and each * work <= MOST_STEPS
        count = math.prod(shape) // (side * side)
        if has_room and min(shape[axis], shape[-1]) >= side and count >= least:
            return TileShape(axis, turned, side)
    return None


def is_turned(array: Operand, row: Sequence[int], axis: int) -> bool:
    """Tell whether the neighbours of an array lie along an axis, and not along the last one.

    Every second element is a neighbour, too, as parts of complex numbers are.
    """
    near = 2 * array.itemsize
    return 0 < abs(row[axis]) <= near < abs(row[-1])
