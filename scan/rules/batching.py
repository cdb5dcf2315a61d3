"""The same work for all steps at once: an expression of rows as one of whole sequences.

What has a value for each step is *batched*: it has one more axis in front. What is the same in all
steps is *fixed*, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.index import Subtensor
from symcomp.ops.pattern import Slice, is_advanced
from symcomp.ops.products import BatchedDot, Dot
from symcomp.ops.reduce import Reduce
from symcomp.ops.scalar_math import mul
from symcomp.ops.shape import ShapeI, reshape, shape_tuple

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
    """Add what stands for the output of ``node``, whose inputs are known; False if unknown."""
    if len(node.outputs) != 1 or node.op.destroy_map:
        return False
    inputs = []
    for x in node.inputs:
        if x not in found and not isinstance(x, Constant):
            return False
        inputs.append(found.get(x, (x, False)))
    out = node.outputs[0]
    if not any(batched for _, batched in inputs):
        found[out] = (node.op.make_node(*(x for x, _ in inputs)).outputs[0], False)
        return True
    rule = RULES.get(type(node.op))
    wide = rule(node, inputs) if rule is not None else None
    if wide is None:
        return False
    if type(node.op) is ShapeI:
        found[out] = (wide, False)
        return True
    # An axis that the body knows to have length 1 must be known to have it here, too.
    if not out.type.is_super(TensorType(wide.dtype, wide.type.shape[1:])):
        return False
    found[out] = (wide, True)
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
    if not batched or any(on for _, on in rest) or is_advanced(node.op.pattern):
        return None
    return Subtensor((Slice(), *node.op.pattern))(x, *(i for i, _ in rest))


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
    Reduce: _reduce,
    ShapeI: _length,
    Dot: _dot,
}


def placeholder(x: TensorVariable, length: int | None = None) -> Any:
    """A variable for all rows of which ``x`` is one."""
    return TensorType(x.dtype, (length, *x.type.shape))(x.name)
