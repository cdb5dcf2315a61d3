"""Views and elements moved, on devices. Ops make views, of arrays that are never read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import contiguous, plan_copy
from symcomp.gpu.lowerings.contract import DeviceLowering, all_but
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.convert import Stack
from symcomp.ops.indexing.diagonal import Diagonal
from symcomp.ops.indexing.gather_labels import AsRows
from symcomp.ops.indexing.index_pattern import MaskFits, fill_pattern
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.shape import ForgetLengths, Reshape, Shape, ShapeI, SpecifyShape


def _plan_view(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    at = next(i for i, x in enumerate(given) if isinstance(x, Operand) and i == _viewed(node))
    shapes = [shadow_of(x) if isinstance(x, Operand) else x for x in given]
    made = node.op.bind(node)(*shapes)
    made = made if node.op.multiple_outputs else [made]
    return [seen(given[at], shapes[at], view) for view in made]


def _viewed(node: Apply) -> int:
    return int(node.op.view_map[0][0]) if node.op.view_map else 0


def shadow_of(x: Operand) -> np.ndarray:
    """Return an array of the layout of an operand, whose elements are not there."""
    base = np.empty(1, x.dtype)
    return np.lib.stride_tricks.as_strided(base, x.shape, x.strides)


def seen(x: Operand, shadow: np.ndarray, view: np.ndarray) -> Operand:
    """Return the view of an operand that an op made of its shadow."""
    offset = view.__array_interface__["data"][0] - shadow.__array_interface__["data"][0]
    return x.view(view.shape, view.strides, offset if view.size else 0)


def part_of(x: Operand, pattern: Any, values: Sequence[Any]) -> Operand:
    """Return the view that an index expression without arrays makes."""
    shadow, key = shadow_of(x), fill_pattern(pattern, values)
    # NumPy makes a number of one element, not a view, unless there is an ellipsis.
    return seen(x, shadow, shadow[key if Ellipsis in key else (*key, Ellipsis)])


def _plan_reshape(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, lengths = given
    whole = contiguous(planner, x)
    shadow = shadow_of(whole)
    return [seen(whole, shadow, node.op.perform(shadow, lengths))]


def _plan_length(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [node.op.perform(shadow_of(given[0]))]


def _plan_contiguous(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [contiguous(planner, given[0])]


def _plan_as_rows(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, y = (shadow_of(v) if isinstance(v, Operand) else v for v in given)
    node_op: Any = node.op
    n, m = x.shape[0], y.shape[0] if node_op.count is None else node_op.count
    if m == n == y.shape[0]:
        return [given[1]]
    # The lengths are checked, and refused, as on the host.
    node_op.perform(np.empty((n, 0)), np.empty(y.shape[0], y.dtype))
    z = planner.new(given[1].dtype, [n])
    rest = planner.constant(np.full(n - m, node_op.fill, y.dtype))
    size = z.itemsize
    first = given[1].view([m], [0 if y.shape[0] == 1 else given[1].strides[0]])
    plan_copy(planner, z.view([m], [size]), first)
    plan_copy(planner, z.view([n - m], [size], m * size), rest)
    return [z]


def _plan_fill(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    value, *lengths = given
    shape = [int(n) for n in lengths]
    if any(n < 0 for n in shape):
        raise ShapeError(f"alloc: there is no array of shape {tuple(shape)}")
    z = planner.new(value.dtype, shape)
    known = node.inputs[0].type.shape
    offset = len(shape) - value.ndim
    steps = [0] * offset
    for axis, n in enumerate(value.shape):
        if n != shape[offset + axis] and not (n == 1 and known[axis] == 1):
            raise ShapeError(
                f"alloc: an array of shape {value.shape} cannot be stretched to {tuple(shape)}"
            )
        steps.append(0 if known[axis] == 1 else value.strides[axis])
    plan_copy(planner, z, value.view(shape, steps))
    return [z]


def _plan_join(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    shapes = [x.shape for x in given]
    axis = op.axis
    for shape in shapes:
        if shape[:axis] != shapes[0][:axis] or shape[axis + 1 :] != shapes[0][axis + 1 :]:
            raise ShapeError(f"join along axis {axis}: the shapes {shapes} differ elsewhere")
    total = sum(shape[axis] for shape in shapes)
    z = planner.new(given[0].dtype, [*shapes[0][:axis], total, *shapes[0][axis + 1 :]])
    start = 0
    for x in given:
        plan_copy(planner, z.view(x.shape, z.strides, start * z.strides[axis]), x)
        start += x.shape[axis]
    return [z]


def _plan_stack(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    if any(x.shape != given[0].shape for x in given):
        raise ShapeError(f"stack: the shapes {[x.shape for x in given]} differ")
    z = planner.new(given[0].dtype, [len(given), *given[0].shape])
    for i, x in enumerate(given):
        plan_copy(planner, z.view(x.shape, z.strides[1:], i * z.strides[0]), x)
    return [z]


_view = DeviceLowering(_plan_view, only_moves=True)
#: Lowerings by the class of the op.
VIEWS: dict[type, DeviceLowering] = {
    DimShuffle: _view,
    Diagonal: _view,
    ForgetLengths: _view,
    SpecifyShape: _view,
    SameLengths: _view,
    MaskFits: DeviceLowering(_plan_view, all_but(0), only_moves=True),
    Split: DeviceLowering(_plan_view, all_but(0), only_moves=True),
    Shape: DeviceLowering(_plan_length, only_moves=True),
    ShapeI: DeviceLowering(_plan_length, only_moves=True),
    Reshape: DeviceLowering(_plan_reshape, all_but(0), only_moves=True),
    Contiguous: DeviceLowering(_plan_contiguous, only_moves=True),
    AsRows: DeviceLowering(_plan_as_rows, only_moves=True),
    Alloc: DeviceLowering(_plan_fill, all_but(0), only_moves=True),
    Join: DeviceLowering(_plan_join, only_moves=True),
    Stack: DeviceLowering(_plan_stack, only_moves=True),
}
