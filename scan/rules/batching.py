"""The same work for all steps at once: an expression of rows as one of whole sequences.

What has a value for each step is *batched*: it has one more axis in front. What is the same in all
steps is *fixed*, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.ops.alloc import Alloc, alloc
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.creation import arange
from symcomp.ops.cumulative import CumOp
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.index import IncSubtensor, Subtensor
from symcomp.ops.join import Join, Split
from symcomp.ops.pattern import ARRAY, SYMBOL, Slice, is_advanced
from symcomp.ops.products import BatchedDot, Dot
from symcomp.ops.reduce import Reduce
from symcomp.ops.scalar_math import mul
from symcomp.ops.shape import Reshape, ShapeI, reshape, shape_tuple
from symcomp.ops.softmax import Centred, LogSoftmax, LogSumExp, Softmax
from symcomp.ops.sort import Sort

# A variable of the body -> what stands for it, and whether that is batched.
Known = dict[Variable, tuple[Any, bool]]


def batch(targets: list[Any], known: Mapping[Variable, tuple[Any, bool]]) -> Known | None:
    """What stands for ``targets``, by way of all between ``known`` and them; None if one of the ops
    there is not known to do all steps at once.
    """
    found: Known = dict(known)
    for node in toposort(targets, found):
        if not batch_node(node, found):
            return None
    return found


def batch_node(node: Apply, found: Known) -> bool:
    """Add what stands for the outputs of ``node``, whose inputs are known; False if unknown."""
    if node.op.destroy_map:
        return False
    inputs = []
    for x in node.inputs:
        if x not in found and not isinstance(x, Constant):
            return False
        inputs.append(found.get(x, (x, False)))
    if not any(batched for _, batched in inputs):
        twins = node.op.make_node(*(x for x, _ in inputs)).outputs
        found.update((y, (twin, False)) for y, twin in zip(node.outputs, twins, strict=True))
        return True
    rule = RULES.get(type(node.op))
    wide = rule(node, inputs) if rule is not None else None
    if wide is None:
        return False
    if type(node.op) is ShapeI:
        found[node.outputs[0]] = (wide, False)
        return True
    rows = wide if node.op.multiple_outputs else [wide]
    # An axis that the body knows to have length 1 must be known to have it here, too.
    for y, z in zip(node.outputs, rows, strict=True):
        if not y.type.is_super(TensorType(z.dtype, z.type.shape[1:])):
            return False
    found.update((y, (z, True)) for y, z in zip(node.outputs, rows, strict=True))
    return True


def _elementwise(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    if node.op.inplace:
        return None
    ndim = node.outputs[0].ndim
    return node.op(*(x if on else DimShuffle(ndim, ("x", *range(ndim)))(x) for x, on in inputs))


def _dimshuffle(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    op = node.op
    order = (0, *("x" if a == "x" else a + 1 for a in op.order))
    return DimShuffle(op.ndim + 1, order)(inputs[0][0])


def _subtensor(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, batched), *rest = inputs
    if not batched and node.op.pattern == (SYMBOL,):
        return Subtensor((ARRAY,))(x, rest[0][0])
    if not batched or any(on for _, on in rest) or is_advanced(node.op.pattern):
        return None
    return Subtensor((Slice(), *node.op.pattern))(x, *(i for i, _ in rest))


def _inc_subtensor(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    """Each step has a copy of its own that it writes to."""
    op, rest = node.op, inputs[2:]
    if op.inplace or is_advanced(op.pattern):
        return None
    symbols = [i for i, _ in rest]
    if not any(on for _, on in rest):
        x, y = _copies(inputs[:2])
        return IncSubtensor((Slice(), *op.pattern), op.set)(x, y, *symbols)
    if inputs[0][1] or op.pattern != (SYMBOL,):
        return None
    x, y, numbers = _copies(inputs)
    steps = arange(ShapeI(0)(numbers), dtype="int64")
    return IncSubtensor((ARRAY, ARRAY), op.set)(x, y, steps, numbers)


def _copies(inputs: Sequence[tuple[Any, bool]]) -> list[Any]:
    """All inputs as batched ones."""
    steps = ShapeI(0)(next(x for x, on in inputs if on))
    return [x if on else alloc(x, steps, *shape_tuple(x)) for x, on in inputs]


def _alloc(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, batched), *lengths = inputs
    if not batched or any(on for _, on in lengths):
        return None
    missing = ["x"] * (node.outputs[0].ndim - x.ndim + 1)
    value = DimShuffle(x.ndim, (0, *missing, *range(1, x.ndim)))(x)
    return Alloc()(value, ShapeI(0)(x), *(n for n, _ in lengths))


def _reshape(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, batched), (lengths, differ) = inputs
    if not batched or differ:
        return None
    steps = as_tensor_variable([ShapeI(0)(x)], dtype="int64")
    return Reshape(node.op.ndim + 1)(x, Join(0)(steps, lengths))


def _split(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, batched), (lengths, differ) = inputs
    if not batched or differ:
        return None
    return replace(node.op, axis=node.op.axis + 1)(x, lengths)


def _along_axes(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    """Ops of tensors of one shape that are told an axis, or several."""
    op = node.op
    moved: dict[str, Any] = (
        {"axis": op.axis + 1} if hasattr(op, "axis") else {"axes": tuple(a + 1 for a in op.axes)}
    )
    return replace(op, **moved)(*_copies(inputs))


def _reduce(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    op = node.op
    return Reduce(op.reduction, tuple(a + 1 for a in op.axes), op.dtype, op.acc_dtype)(inputs[0][0])


def _length(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    return ShapeI(node.op.axis + 1)(inputs[0][0])


def _dot(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, x_on), (y, y_on) = inputs
    a, b = node.inputs[0].ndim, node.inputs[1].ndim
    if x_on and y_on:
        if a == b == 2:
            return BatchedDot()(x, y)
        return mul(x, y).sum(axis=1) if a == b == 1 and x.dtype == y.dtype else None
    if x_on and a == 1:
        return Dot()(x, y)
    if x_on:
        steps, rows, inner = shape_tuple(x)
        flat = Dot()(reshape(x, [steps * rows, inner], ndim=2), y)
        return reshape(flat, [steps, rows, *shape_tuple(y)[1:]], ndim=1 + b)
    if b == 1:
        return Dot()(y, x.T if a == 2 else x)
    return None


RULES: dict[type, Callable[[Apply, list[tuple[Any, bool]]], Any]] = {
    Elemwise: _elementwise,
    DimShuffle: _dimshuffle,
    Subtensor: _subtensor,
    IncSubtensor: _inc_subtensor,
    Alloc: _alloc,
    Reshape: _reshape,
    Join: _along_axes,
    Split: _split,
    CumOp: _along_axes,
    Sort: _along_axes,
    Softmax: _along_axes,
    LogSoftmax: _along_axes,
    LogSumExp: _along_axes,
    Centred: _along_axes,
    Reduce: _reduce,
    ShapeI: _length,
    Dot: _dot,
}


def placeholder(x: TensorVariable, length: int | None = None) -> Any:
    """A variable for all rows of which ``x`` is one."""
    return TensorType(x.dtype, (length, *x.type.shape))(x.name)
