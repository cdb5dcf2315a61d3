"""Parts at positions that the steps of a loop compute: ``x[i]`` with ``i`` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.gpu.kernels.indexing import Indexed, plan_gather, plan_scatter
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import (
    ARRAY,
    FLAG,
    NEW,
    SYMBOL,
    Entry,
    IndexPattern,
    Slice,
)


@record
class StepPositions:
    """An index expression without the positions that lie on a device.

    Attributes
    ----------
    pattern : IndexPattern
        Slices of everything stand for these positions.
    values : tuple
        The numbers of the pattern.
    axes : tuple of int
        Of the view that the pattern makes: where the positions belong.
    arrays : tuple of Operand
        The positions, as vectors of one element.
    """

    pattern: IndexPattern
    values: tuple[Any, ...]
    axes: tuple[int, ...]
    arrays: tuple[Operand, ...]


def positions_of_step(node: Apply) -> frozenset[int]:
    """Return the inputs of an index expression that a step of a loop may compute on a device."""
    op: Any = node.op
    if ARRAY in op.pattern or FLAG in op.pattern:
        return frozenset()
    number, found = 1 if isinstance(op, Subtensor) else 2, []
    for entry in op.pattern:
        if entry == SYMBOL:
            found.append(number)
            number += 1
        elif isinstance(entry, Slice):
            number += sum(part == SYMBOL for part in entry)
    return frozenset(found)


def split_positions(pattern: IndexPattern, values: Sequence[Any]) -> StepPositions:
    """Return an index expression, some of whose numbers are operands, in two parts."""
    rest = iter(values)
    kept: list[Entry] = []
    numbers, axis, axes, arrays = list[Any](), 0, list[int](), list[Operand]()
    for entry in pattern:
        if isinstance(entry, Slice):
            numbers += [next(rest) for part in entry if part == SYMBOL]
        elif entry == SYMBOL:
            number = next(rest)
            if not isinstance(number, Operand):
                numbers.append(number)
                kept.append(entry)
                continue
            axes.append(axis)
            arrays.append(number.view([1], [number.itemsize]))
            entry = Slice()
        kept.append(entry)
        axis += isinstance(entry, Slice) or entry == NEW
    return StepPositions(tuple(kept), tuple(numbers), tuple(axes), tuple(arrays))


def read_at(planner: Planner, view: Operand, where: StepPositions) -> Operand:
    """Emit reading a view at positions."""
    z = plan_gather(planner, Indexed(view, where.axes, where.arrays, adjacent=False))
    return z.view(z.shape[1:], z.strides[1:])


def write_at(
    planner: Planner, view: Operand, y: Operand, where: StepPositions, replaces: bool
) -> None:
    """Emit writing y, or adding it, to a view at positions; y has the shape of what it goes to."""
    at = Indexed(view, where.axes, where.arrays, adjacent=False)
    plan_scatter(planner, at, y.view([1, *y.shape], [0, *y.strides]), replaces)
