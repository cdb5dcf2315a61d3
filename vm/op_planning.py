"""The planning of the ops of `symcomp/ops`, by their classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.tensor import StaticShape
from symcomp.ops.elementwise.elemwise import Elemwise, ScalarOp
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.index_pattern import fill_pattern
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import SumOfProducts
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.random.draw import Draw
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.ops.shapes.shape import Shape, ShapeI, known_length
from symcomp.vm.planning import Planning, Plannings
from symcomp.vm.reserve import Reserve

# Pairs of lengths that must be equal; None if that is not all that a node needs.
Pairs = list[tuple[Any, Any]] | None
# From the values of the inputs, and an array or None for each output, to the results.
Writer = Callable[..., Any]


def _only_first(node: Apply, output: int) -> Sequence[int]:
    return (0,)


# -- scalar functions and reductions


def _elemwise_into(node: Apply) -> Writer | None:
    """Return the ufunc itself if every axis that may be stretched is known."""
    op: Any = node.op
    kinds = [x.type.numpy_dtype for x in node.inputs]
    writer = op.scalar.writer(kinds, node.outputs[0].type.numpy_dtype)
    fixed = op.fixed_axes(node)
    if op.inplace or writer is None or not fixed:
        return None if op.inplace else writer

    def compute(*values: Any) -> Any:
        try:
            z = writer(*values)
        except ValueError:  # the array may have been too small for the broadcast result
            shape = np.broadcast_shapes(*[v.shape for v in values])
            for position, axes in fixed:
                op.refuse_stretching(position, axes, values[:-1], shape)
            raise
        for position, axes in fixed:
            if values[position].shape != z.shape:
                op.refuse_stretching(position, axes, values[:-1], z.shape)
        return z

    return compute


def _elemwise_overwritable(node: Apply, output: int) -> Sequence[int]:
    op: Any = node.op
    z = node.outputs[0].type
    return [
        i
        for i, x in enumerate(node.inputs[: op.scalar.arity or 2])
        if x.type.dtype == z.dtype and x.type.broadcastable == z.broadcastable
    ]


def _elemwise_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return _stretched(node, shapes) if op.scalar.never_fails(node.outputs[0].type.dtype) else None


def _fused_into(node: Apply) -> Writer:
    compute: Writer = node.op.bind(node)
    return compute


def _fused_overwritable(node: Apply, output: int) -> Sequence[int]:
    positions: list[int] = node.op.evaluator(node).overwritable(output)
    return positions


def _fused_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    for step in op.formula.steps:
        function = step.function
        if not isinstance(function, ScalarOp | Reduce) or not function.never_fails(step.dtype):
            return None
    return _stretched(node, shapes)


def _stretched(node: Apply, shapes: Sequence[Any]) -> Pairs:
    """Return the pairs of lengths where only axes of static length 1 are stretched."""
    static: list[StaticShape] = [x.type.shape for x in node.inputs]
    pairs: list[tuple[Any, Any]] = []
    for axis in range(len(static[0])):
        pairs += pairwise(s[axis] for k, s in zip(static, shapes, strict=True) if k[axis] != 1)
    return pairs


def _reduction_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return [] if op.never_fails(node.outputs[0].type.dtype) else None


# -- products


def _dot_into(node: Apply) -> Writer:
    op: Any = node.op

    def compute(x: Any, y: Any, z: Any) -> Any:
        if x.shape[-1] != y.shape[0] or not z.flags.c_contiguous:
            return op.perform(x, y)
        np.dot(x, y, z)  # the result is z, except for a number
        return z

    return compute


def _perform_into(node: Apply) -> Writer:
    """Return ``perform``, which takes an array for the result."""
    compute: Writer = node.op.perform
    return compute


def _update_into(node: Apply) -> Writer | None:
    op: Any = node.op
    return None if op.inplace else lambda *args: op.compute(args[-1], *args[:-1])


def _dot_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    return [(shapes[0][-1], shapes[1][0])]


def _scaled_dot_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return [(_turned(shapes[1], op.trans_a)[1], _turned(shapes[2], op.trans_b)[0])]


def _gemm_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    x, y = _turned(shapes[2], op.trans_a), _turned(shapes[3], op.trans_b)
    batch = zip(x[:-2], y[:-2], strict=True)
    product = (*x[:-1], y[-1])
    return [(x[-1], y[-2]), *batch, *zip(shapes[0], product, strict=True)]


def _gemv_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    n, k = _turned(shapes[2], op.trans_a)
    return [(shapes[0][0], n), (k, shapes[3][0])]


def _ger_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    return list(zip(shapes[0], (*shapes[2], *shapes[3]), strict=True))


def _turned(shape: Any, flag: bool) -> Any:
    """Return the shape with its last two axes exchanged if ``flag``."""
    return (*shape[:-2], shape[-1], shape[-2]) if flag else shape


# -- parts and shapes


def _alloc_into(node: Apply) -> Writer:
    op: Any = node.op
    fixed = op.fixed_axes(node)

    def compute(value: Any, *lengths_and_z: Any) -> Any:
        *lengths, z = lengths_and_z
        op.check_stretching(fixed, value, lengths)
        return op.fill_array(value, z)

    return compute


def _join_into(node: Apply) -> Writer:
    """Return a function that does not copy operands that already lie in their part of the result.
    """
    op: Any = node.op

    def compute(*tensors_and_z: Any) -> Any:
        tensors, z = tensors_and_z[:-1], tensors_and_z[-1]
        if z is None or not any(x.base is z for x in tensors):
            return op.concatenated(tensors, z)
        start = 0
        for x in tensors:
            end = start + x.shape[op.axis]
            place = z[(slice(None),) * op.axis + (slice(start, end),)]
            start = end
            if x.base is z and _address(x) == _address(place):
                continue
            place[...] = x
        return z

    return compute


def _address(x: Any) -> Any:
    return x.__array_interface__["data"]


def _reserve_into(node: Apply) -> Writer:
    op: Any = node.op
    count = len(node.inputs)
    return lambda *values: op.reserve(values[:count], values[count])


def _write_into(node: Apply) -> Writer | None:
    op: Any = node.op
    fixed = op.fixed_axes(node)

    def compute(x: Any, y: Any, *inputs_and_z: Any) -> Any:
        *inputs, z = inputs_and_z
        op.check_stretching(fixed, x, y, inputs)
        if z is not x:
            np.copyto(z, x)
        return op.write(z, y, inputs)

    return None if op.inplace else compute


def _write_check(node: Apply) -> Callable[..., None]:
    op: Any = node.op
    fixed = op.fixed_axes(node)

    def check(x: Any, y: Any, *inputs: Any) -> None:
        op.check_stretching(fixed, x, y, inputs)
        # One byte broadcast to the shape, so that indexing it copies little.
        outline = np.broadcast_to(np.False_, x.shape)
        np.broadcast_to(y, outline[fill_pattern(op.pattern, inputs)].shape)

    return check


def _dropped_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return [(shapes[0][a], 1) for a in op.dropped]


def _same_shape(node: Apply, shapes: Sequence[Any]) -> Pairs:
    return list(zip(*shapes, strict=True))


def _nothing_to_fit(node: Apply, shapes: Sequence[Any]) -> Pairs:
    return []


# -- random numbers


def _draw_into(node: Apply) -> Writer | None:
    op: Any = node.op
    if op.dtype == "int64":
        return None
    check = op.length_check(node)

    def compute(*values_and_outs: Any) -> Any:
        *values, _, out = values_and_outs
        if check is not None:
            check(values)
        return op.sample(values, op.dtype if out is None else out)

    return compute


def _draw_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    """Return nothing to check: draws without parameters fail only for negative lengths."""
    op: Any = node.op
    if op.row.parameters:
        return None
    known = [
        known_length(n) is not None or isinstance(getattr(n.owner, "op", None), ShapeI)
        for n in node.inputs[1:]
    ]
    return [] if all(known) else None


OP_PLANNING: Plannings = {
    Alloc: Planning(_alloc_into),
    BatchedDot: Planning(_perform_into),
    BatchedGemm: Planning(_update_into, _only_first, _gemm_lengths),
    DimShuffle: Planning(equal_lengths=_dropped_lengths),
    Dot: Planning(_dot_into, equal_lengths=_dot_lengths),
    Draw: Planning(_draw_into, equal_lengths=_draw_lengths),
    Elemwise: Planning(_elemwise_into, _elemwise_overwritable, _elemwise_lengths),
    Fused: Planning(_fused_into, _fused_overwritable, _fused_lengths),
    Gemm: Planning(_update_into, _only_first, _gemm_lengths),
    Gemv: Planning(_update_into, _only_first, _gemv_lengths),
    Ger: Planning(_update_into, _only_first, _ger_lengths),
    IncSubtensor: Planning(_write_into, _only_first, check=_write_check),
    Join: Planning(_join_into),
    Reduce: Planning(equal_lengths=_reduction_lengths),
    Reserve: Planning(_reserve_into),
    ScaledDot: Planning(_perform_into, equal_lengths=_scaled_dot_lengths),
    Shape: Planning(equal_lengths=_nothing_to_fit),
    ShapeI: Planning(equal_lengths=_nothing_to_fit),
    SumOfProducts: Planning(equal_lengths=_same_shape),
}
