"""Reading and writing parts of arrays, on devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import nests_for, plan_copy, plan_formula
from symcomp.gpu.kernels.indexing import Indexed, plan_gather, plan_scatter
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.views import part_of, seen, shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.step_positions import positions_of_step, read_at, split_positions, write_at
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, FLAG, NEW, NOTHING, SYMBOL, Slice


def _takes_part(node: Apply) -> bool:
    op: Any = node.op
    if getattr(op, "inplace", False):
        return False
    if ARRAY not in op.pattern:
        return _can_be_added(node)
    first = 1 if isinstance(op, Subtensor) else 2
    arrays = [x for x in node.inputs[first:] if x.ndim]
    whole = all(np.dtype(x.dtype).kind in "iu" and x.dtype != "uint64" for x in arrays)
    return FLAG not in op.pattern and whole and _can_be_added(node)


def _can_be_added(node: Apply) -> bool:
    """Return whether a sum of elements has a kernel."""
    return np.dtype(node.inputs[0].dtype).kind != "c"


def _part_on_host(node: Apply) -> frozenset[int]:
    """Return which inputs of an index expression are numbers; arrays go to the device."""
    first = 1 if isinstance(node.op, Subtensor) else 2
    numbers = [i for i in range(first, len(node.inputs)) if not _is_array(node, i - first)]
    return frozenset(numbers)


def _is_array(node: Apply, number: int) -> bool:
    """Return whether an input of an index expression is an array, or an index beside arrays."""
    op: Any = node.op
    indices = (ARRAY, SYMBOL) if ARRAY in op.pattern else (ARRAY,)
    kinds: list[bool] = []
    for entry in op.pattern:
        parts = entry if isinstance(entry, Slice) else (entry,)
        kinds += [entry in indices for part in parts if part in (ARRAY, SYMBOL, FLAG)]
    return kinds[number]


def _split_index(node: Apply, x: Operand, values: Sequence[Any]) -> Indexed:
    """Return the view that slices, constants and new axes of an index expression make, and where
    arrays index it.
    """
    op: Any = node.op
    rest = iter(values)
    key: list[Any] = []
    axes, arrays, indices = [], [], []
    axis = 0
    for place, entry in enumerate(op.pattern):
        if entry in (ARRAY, SYMBOL) or isinstance(entry, int):
            indices.append(place)
        if entry in (ARRAY, SYMBOL):
            axes.append(axis)
            arrays.append(next(rest))
            key.append(slice(None))
        elif isinstance(entry, Slice):
            key.append(slice(*(int(next(rest)) if p == SYMBOL else p for p in entry)))
        elif entry != NOTHING:
            key.append(None if entry == NEW else entry)
        axis += entry != NOTHING and not isinstance(entry, int)
    shadow = shadow_of(x)
    view = seen(x, shadow, shadow[tuple(key)])
    # Constants are indices, too: arrays apart from them are apart from one another.
    adjacent = indices == [*range(indices[0], indices[-1] + 1)]
    return Indexed(view, tuple(axes), tuple(arrays), adjacent)


def _plan_read(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    if any(isinstance(given[i], Operand) for i in positions_of_step(node)):
        where = split_positions(op.pattern, given[1:])
        return [read_at(planner, part_of(given[0], where.pattern, where.values), where)]
    if ARRAY not in op.pattern:
        return [part_of(given[0], op.pattern, given[1:])]
    return [plan_gather(planner, _split_index(node, given[0], given[1:]))]


def _plan_write(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, y, *rest = given
    if planner.is_written_over(node.outputs[0]):
        z = x
        if y.storage == z.storage:  # kernels read y while they write z
            y = _copied(planner, y)
    else:
        z = _copied(planner, x)
    if ARRAY in op.pattern:
        indexed = _split_index(node, z, rest)
        plan_scatter(planner, indexed, _stretched(node, y, indexed.selection().shape), op.set)
        return [z]
    if any(isinstance(given[i], Operand) for i in positions_of_step(node)):
        where = split_positions(op.pattern, rest)
        view = part_of(z, where.pattern, where.values)
        lengths = [n for axis, n in enumerate(view.shape) if axis not in where.axes]
        write_at(planner, view, _stretched(node, y, lengths), where, op.set)
        return [z]
    part = part_of(z, op.pattern, rest)
    _write_part(planner, part, _stretched(node, y, part.shape), op.set)
    return [z]


def _copied(planner: Planner, x: Operand) -> Operand:
    z = planner.new(x.dtype, x.shape)
    plan_copy(planner, z, x)
    return z


def _stretched(node: Apply, y: Operand, shape: Sequence[int]) -> Operand:
    """Return y stretched to the shape of the part of x that it goes to."""
    known = node.inputs[1].type.shape
    for axis, n in enumerate(shape):
        if y.shape[axis] != n and known[axis] != 1:
            raise ShapeError(
                f"{node.op}: y has shape {y.shape}, the part of x that it goes to {tuple(shape)}"
            )
    return y.view(shape, [0 if k == 1 else s for k, s in zip(known, y.strides, strict=True)])


def _write_part(planner: Planner, part: Operand, y: Operand, replaces: bool) -> None:
    if part.size == 0:
        return
    if replaces:
        plan_copy(planner, part, y)
        return
    step = Step(ROWS["add"](), (0, 1), part.dtype)
    formula = Formula((part.dtype, y.dtype), (), (step,), (Result(2),))
    made = nests_for(formula, ((False,) * part.ndim,) * 2)
    assert made is not None
    # Each thread reads an element before it writes it.
    plan_formula(planner, made, [part, y], [part])


#: Lowerings by the class of the op.
PARTS: dict[type, DeviceLowering] = {
    Subtensor: DeviceLowering(
        _plan_read, _part_on_host, _takes_part, in_steps=positions_of_step
    ),
    IncSubtensor: DeviceLowering(
        _plan_write, _part_on_host, _takes_part, in_steps=positions_of_step
    ),
}
