"""Parts at positions that the steps of a loop compute: ``x[i]`` with ``i`` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.indexing import plan_gather, plan_scatter, selection
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
    z = plan_gather(planner, view, where.axes, where.arrays)
    (extra,) = selection(view.shape, where.axes, [1]).positions
    kept = [a for a in range(z.ndim) if a != extra]
    return z.view([z.shape[a] for a in kept], [z.strides[a] for a in kept])


def write_at(
    planner: Planner,
    view: Operand,
    y: Operand,
    known: Sequence[int | None],
    where: StepPositions,
    replaces: bool,
) -> None:
    """Emit writing y, or adding it, to a view at positions.

    Parameters
    ----------
    known : sequence of int or None
        The lengths of y in its type; along those of 1 it is stretched.
    """
    chosen = selection(view.shape, where.axes, [1])
    (extra,) = chosen.positions
    lengths = [n for a, n in enumerate(chosen.shape) if a != extra]
    if any(m != n and one != 1 for m, n, one in zip(y.shape, lengths, known, strict=True)):
        raise ShapeError(
            f"{planner.label}: y has shape {y.shape}, the part of x that it goes to "
            f"{tuple(lengths)}"
        )
    shape = [*y.shape[:extra], 1, *y.shape[extra:]]
    strides = [*y.strides[:extra], 0, *y.strides[extra:]]
    plan_scatter(planner, view, y.view(shape, strides), where.axes, where.arrays, replaces)
