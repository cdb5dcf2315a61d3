"""The planning of the ops of `symcomp/ops`, by their classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.tensor import StaticShape
from symcomp.ops.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.contraction import SumOfProducts
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.elemwise import Elemwise, ScalarOp
from symcomp.ops.fused import Fused
from symcomp.ops.index import IncSubtensor
from symcomp.ops.index_pattern import fill_pattern
from symcomp.ops.products import Dot
from symcomp.ops.random.draw import Draw
from symcomp.ops.reduce import Reduce
from symcomp.ops.shape import Shape, ShapeI, known_length
from symcomp.vm.planning import Planning, Plannings

# Pairs of lengths that must be equal; None if that is not all that a node needs.
Pairs = list[tuple[Any, Any]] | None


# -- scalar functions and reductions


def _elemwise_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return _stretched(node, shapes) if op.scalar.never_fails(node.outputs[0].type.dtype) else None


def _fused_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    for step in op.formula.steps:
        function = step.function
        if not isinstance(function, ScalarOp | Reduce) or not function.never_fails(step.dtype):
            return None
    return _stretched(node, shapes)


def _stretched(node: Apply, shapes: Sequence[Any]) -> Pairs:
    """Return the pairs of lengths where only axes of static length 1 are stretched."""
    static: list[StaticShape] = [x.type.shape for x in node.inputs]  # type: ignore[attr-defined]
    pairs: list[tuple[Any, Any]] = []
    for axis in range(len(static[0])):
        pairs += pairwise(s[axis] for k, s in zip(static, shapes, strict=True) if k[axis] != 1)
    return pairs


def _reduction_lengths(node: Apply, shapes: Sequence[Any]) -> Pairs:
    op: Any = node.op
    return [] if op.never_fails(node.outputs[0].type.dtype) else None


# -- products


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
    BatchedGemm: Planning(equal_lengths=_gemm_lengths),
    DimShuffle: Planning(equal_lengths=_dropped_lengths),
    Dot: Planning(equal_lengths=_dot_lengths),
    Draw: Planning(equal_lengths=_draw_lengths),
    Elemwise: Planning(equal_lengths=_elemwise_lengths),
    Fused: Planning(equal_lengths=_fused_lengths),
    Gemm: Planning(equal_lengths=_gemm_lengths),
    Gemv: Planning(equal_lengths=_gemv_lengths),
    Ger: Planning(equal_lengths=_ger_lengths),
    IncSubtensor: Planning(check=_write_check),
    Reduce: Planning(equal_lengths=_reduction_lengths),
    ScaledDot: Planning(equal_lengths=_scaled_dot_lengths),
    Shape: Planning(equal_lengths=_nothing_to_fit),
    ShapeI: Planning(equal_lengths=_nothing_to_fit),
    SumOfProducts: Planning(equal_lengths=_same_shape),
}
