"""Vectorize the steps of a loop: turn an expression of rows into one of whole sequences.

A variable with a value for each step is *batched*: it has one more axis in front. A variable that
is the same in all steps is *fixed*, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import replace
from symcomp.core.source import made_for
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.ops.convert import Stack
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import maximum, mul
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, SYMBOL, Slice, is_advanced
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.ops.nnet.softmax import (
    LogSoftmax,
    LogSumExp,
    RootSoftmax,
    Softmax,
    SubtractWeightedMean,
)
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SignedMean,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.nnet.weighted_mean import SoftmaxPowerSum, WeightedDeviation, WeightedMean
from symcomp.ops.reductions.cumulative import CumOp
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.shape import Reshape, ShapeI, reshape, shape_tuple
from symcomp.ops.sorting.sort import Sort
from symcomp.scan.layout import Arguments, flat_arguments
from symcomp.scan.op import Scan

# A variable of the body -> its replacement, and whether that is batched.
Known = dict[Variable, tuple[Any, bool]]


def batch(targets: list[Any], known: Mapping[Variable, tuple[Any, bool]]) -> Known | None:
    """Return the replacements of ``targets``, computed from ``known``; None if an op on the way
    cannot be batched.
    """
    found: Known = dict(known)
    for node in toposort(targets, found):
        if not batch_node(node, found):
            return None
    return found


def batch_node(node: Apply, found: Known) -> bool:
    """Add the replacements for the outputs of ``node``, whose inputs are known; False if it cannot
    be batched.
    """
    if node.op.destroy_map:
        return False
    inputs = []
    for x in node.inputs:
        if x not in found and not isinstance(x, Constant):
            return False
        inputs.append(found.get(x, (x, False)))
    with made_for(node.source):
        return _batched(node, inputs, found)


def _batched(node: Apply, inputs: list[tuple[Any, bool]], found: Known) -> bool:
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
    pairs = wide if isinstance(wide, list) else [(wide, True)]
    # An axis with static length 1 in the body must have it here, too.
    for y, (z, on) in zip(node.outputs, pairs, strict=True):
        kind = TensorType(z.dtype, z.type.shape[1:]) if on else z.type
        if not y.type.is_super(kind):
            return False
    found.update(zip(node.outputs, pairs, strict=True))
    return True


def grows(node: Apply, found: Known, limit: int) -> bool:
    """Tell whether ``node`` enlarges batched values, beyond ``limit`` axes: for all steps at once
    that takes much memory, as copies of a matrix to one row of which each step writes.
    """
    axes = max(_axes(y) for y in node.outputs)
    if axes <= limit or isinstance(node.op, DimShuffle | Reshape | Subtensor):
        return False
    return all(axes > _axes(x) for x in node.inputs if found.get(x, (x, False))[1])


def _axes(x: Any) -> int:
    """Return the number of axes that may be longer than 1."""
    return sum(n != 1 for n in x.type.shape)


def most_axes(rows: Sequence[Any]) -> int:
    """Return the largest number of axes of some rows, at least 1."""
    return max((_axes(x) for x in rows), default=1) or 1


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
    """Batch IncSubtensor: each step writes to a copy of its own."""
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
    """Batch all inputs."""
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
    entries: list[Any] = [lengths[i] for i in range(node.op.ndim)]
    if isinstance(lengths, Constant):
        entries = [int(n) for n in lengths.data]
    if -1 in entries:
        # Without rows, the missing length could not be computed from the number of elements.
        size, rest = _product(shape_tuple(x)[1:]), _product([n for n in entries if n != -1])
        entries[entries.index(-1)] = size // maximum(rest, 1)
    return reshape(x, [ShapeI(0)(x), *entries], ndim=node.op.ndim + 1)


def _product(lengths: Sequence[Any]) -> Any:
    total: Any = 1
    for n in lengths:
        total = total * n
    return total


def _split(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    (x, batched), (lengths, differ) = inputs
    if not batched or differ:
        return None
    return [(z, True) for z in replace(node.op, axis=node.op.axis + 1)(x, lengths)]


def _stack(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    parts = [DimShuffle(x.ndim, (0, "x", *range(1, x.ndim)))(x) for x in _copies(inputs)]
    return Join(1)(*parts) if len(parts) > 1 else parts[0]


def _along_axes(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    """Batch an op on tensors of one shape with axes as parameters."""
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
        if a == b == 1:
            return mul(x, y).sum(axis=1) if x.dtype == y.dtype else None
        wide = BatchedDot()(
            x if a == 2 else x.dimshuffle(0, "x", 1), y if b == 2 else y.dimshuffle(0, 1, "x")
        )
        return wide if a == b else wide[:, 0] if b == 2 else wide[:, :, 0]
    if x_on and a == 1:
        return Dot()(x, y)
    if x_on:
        steps, rows, inner = shape_tuple(x)
        flat = Dot()(reshape(x, [steps * rows, inner], ndim=2), y)
        return reshape(flat, [steps, rows, *shape_tuple(y)[1:]], ndim=1 + b)
    if b == 1:
        return Dot()(y, x.T if a == 2 else x)
    return None


def _scan(node: Apply, inputs: list[tuple[Any, bool]]) -> Any:
    """Batch a loop that only returns carried values, as one loop whose states have one more axis.

    With rows for each step it would need the memory of all loops at once.
    """
    op, layout = node.op, node.op.layout
    tensors = all(isinstance(x, TensorVariable) for x, _ in inputs)
    if layout.lags or layout.n_stacked or layout.until or inputs[0][1] or not tensors:
        return None
    given = layout.arguments(inputs)
    found = _batched_body(op, given)
    if found is None:
        return None
    body, batched = found
    steps = ShapeI(0)(next(x for x, on in inputs if on))
    arguments = Arguments(
        given.n[0],
        [],
        [
            alloc(x, steps, *shape_tuple(x)) if wanted and not on else x
            for (x, on), wanted in zip(given.carried, batched, strict=True)
        ],
        [x.swapaxes(0, 1) if on else x for x, on in given.sequences],
        [x for x, _ in given.captured],
    )
    ends = replace(op, body=body)(*flat_arguments(arguments))
    return list(zip(ends, batched, strict=True))


def _batched_body(op: Any, given: Arguments) -> tuple[ClosedGraph, list[bool]] | None:
    """Return the body of a loop without traced states, and which of its states are batched: from
    the start, or because a step makes them of batched values.
    """
    inner, outputs = op.body.inputs, op.body.outputs
    batched = [on for _, on in given.carried]
    fixed = [on for _, on in (*given.sequences, *given.captured)]
    while True:
        fresh = [
            placeholder(x) if on else x.type(x.name)
            for x, on in zip(inner, [*batched, *fixed], strict=True)
        ]
        known = zip(fresh, [*batched, *fixed], strict=True)
        found = batch(list(outputs), dict(zip(inner, known, strict=True)))
        if found is None:
            return None
        new = [found.get(y, (y, False)) for y in outputs]
        wider = [a or on for a, (_, on) in zip(batched, new, strict=True)]
        if wider == batched:
            break
        batched = wider
    results = [
        alloc(y, ShapeI(0)(x), *shape_tuple(y)) if wanted and not on else y
        for x, (y, on), wanted in zip(fresh, new, batched, strict=False)
    ]
    return ClosedGraph(fresh, results), batched


RULES: dict[type, Callable[[Apply, list[tuple[Any, bool]]], Any]] = {
    Elemwise: _elementwise,
    DimShuffle: _dimshuffle,
    Subtensor: _subtensor,
    IncSubtensor: _inc_subtensor,
    Alloc: _alloc,
    Reshape: _reshape,
    Join: _along_axes,
    Split: _split,
    Stack: _stack,
    CumOp: _along_axes,
    Sort: _along_axes,
    Softmax: _along_axes,
    RootSoftmax: _along_axes,
    LogSoftmax: _along_axes,
    LogSumExp: _along_axes,
    SubtractWeightedMean: _along_axes,
    WeightedMean: _along_axes,
    SoftmaxPowerSum: _along_axes,
    WeightedDeviation: _along_axes,
    UnitVector: _along_axes,
    ProjectionLength: _along_axes,
    SignedMean: _along_axes,
    Cosine: _along_axes,
    UnitPowerSum: _along_axes,
    SubtractProjection: _along_axes,
    NegativeEntropy: _along_axes,
    Divergence: _along_axes,
    Reduce: _reduce,
    ShapeI: _length,
    Dot: _dot,
    Scan: _scan,
}


def placeholder(x: TensorVariable, length: int | None = None) -> Any:
    """Return a variable for all rows of which ``x`` is one."""
    return TensorType(x.dtype, (length, *x.type.shape))(x.name)
