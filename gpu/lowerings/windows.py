"""How convolution and pooling are computed on devices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import contiguous
from symcomp.gpu.kernels.convolution import (
    forward_factors,
    input_factors,
    kernel_factors,
    plan_factors,
)
from symcomp.gpu.kernels.indexing import Indexed, plan_gather, plan_scatter
from symcomp.gpu.kernels.pooling import plan_max, plan_spread, plan_sum, plan_unpool
from symcomp.gpu.libraries.cudnn import FORWARD, TO_INPUTS, TO_KERNELS, plan_by_cudnn
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.pooling import AtPositions, MaxPool, SumPool, SumPoolInputs, ToPositions


def _after(first: int) -> Any:
    """Return what keeps the inputs from the number ``first`` on the host: lengths."""
    return lambda node: frozenset(range(first, len(node.inputs)))


def _convolves(node: Apply) -> bool:
    return dtypes.is_float(node.outputs[0].dtype)


def _plan_convolve(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, w = given
    z = planner.new(x.dtype, op.result_shape(x.shape, w.shape))
    if not plan_by_cudnn(planner, FORWARD, op.geometry, op.groups, [x, w, z]):
        plan_factors(planner, forward_factors(op.geometry, op.groups, z, x, w), False, True)
    return [z]


def _plan_convolve_kernels(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, g, *kernel = given
    w = planner.new(x.dtype, op.result_shape(x.shape, g.shape, [int(n) for n in kernel]))
    if not plan_by_cudnn(planner, TO_KERNELS, op.geometry, op.groups, [x, w, g]):
        plan_factors(planner, kernel_factors(op.geometry, op.groups, w, x, g), False, True)
    return [w]


def _plan_convolve_inputs(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    w, g, *lengths = given
    x = planner.new(g.dtype, op.result_shape(w.shape, g.shape, [int(n) for n in lengths]))
    if plan_by_cudnn(planner, TO_INPUTS, op.geometry, op.groups, [x, w, g]):
        return [x]
    parts = [*input_factors(op.geometry, op.groups, x, w, g)]
    if any(part.depth == 0 for part in parts):
        planner.clear(x)  # no window meets some elements
    for part in parts:
        if part.depth:
            plan_factors(planner, part, True, len(parts) == 1)
    return [x]


def _pools(node: Apply) -> bool:
    return np.dtype(node.inputs[0].dtype).kind in "iuf"


def _plan_max_pool(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return plan_max(planner, op, given[0], node.outputs[1] not in planner.unused)


def _plan_sum_pool(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_sum(planner, op, given[0])]


def _plan_sum_pool_inputs(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    g, *rest = given
    lengths = [int(n) for n in rest]
    op.check_gradient(g.shape, lengths)
    return [plan_spread(planner, op, g, lengths)]


def _planes(planner: Planner, x: Operand, ndim: int) -> Operand:
    """Return the elements in C order, with the spatial axes as one, and those before as another."""
    whole, cut = contiguous(planner, x), x.ndim - ndim
    size = prod(x.shape[cut:])
    return whole.view((prod(x.shape[:cut]), size), (size * x.itemsize, x.itemsize))


def _numbers(planner: Planner, planes: int) -> Operand:
    return planner.constant(np.arange(planes).reshape(planes, 1))


def _plan_at_positions(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, where = (_planes(planner, v, op.ndim) for v in given)
    if x.shape[0] != where.shape[0]:
        raise ShapeError(f"{op}: x has shape {given[0].shape}, the positions {given[1].shape}")
    found = plan_gather(
        planner, Indexed(x, (0, 1), (_numbers(planner, x.shape[0]), where), adjacent=True)
    )
    z = planner.new(x.dtype, given[1].shape)
    return [found.view(z.shape, z.strides)]


def _plan_to_positions(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    g, where, *rest = given
    lengths = [int(n) for n in rest]
    if g.shape != where.shape:
        raise ShapeError(f"{op}: g has shape {g.shape}, the positions {where.shape}")
    maker = node.inputs[1].owner
    pool: Any = None if maker is None else maker.op
    cut = where.ndim - op.ndim
    if isinstance(pool, MaxPool) and pool.ndim == op.ndim:
        if 0 not in lengths and pool.counts(lengths) == where.shape[cut:]:
            return [plan_unpool(planner, pool, g, where, lengths)]
    x = planner.new(g.dtype, [*where.shape[:cut], *lengths])
    planner.clear(x)
    flat = _planes(planner, x, op.ndim)
    places, values = _planes(planner, where, op.ndim), _planes(planner, g, op.ndim)
    numbers = _numbers(planner, flat.shape[0])
    plan_scatter(planner, Indexed(flat, (0, 1), (numbers, places), adjacent=True), values, False)
    return [x]


#: Lowerings by the class of the op.
WINDOWS: dict[type, DeviceLowering] = {
    Convolve: DeviceLowering(_plan_convolve, accepts=_convolves),
    ConvolveInputs: DeviceLowering(_plan_convolve_inputs, _after(2), _convolves),
    ConvolveKernels: DeviceLowering(_plan_convolve_kernels, _after(2), _convolves),
    MaxPool: DeviceLowering(_plan_max_pool, accepts=_pools),
    SumPool: DeviceLowering(_plan_sum_pool, accepts=_pools),
    SumPoolInputs: DeviceLowering(_plan_sum_pool_inputs, _after(1), _pools),
    AtPositions: DeviceLowering(_plan_at_positions, accepts=_pools),
    ToPositions: DeviceLowering(_plan_to_positions, _after(2), _pools),
}
