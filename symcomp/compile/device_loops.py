"""Loops on devices: the phase that rewrites their steps for devices, and rows around loops there.

It stands before the phase of devices, which moves these loops or puts them back as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import plan_copy
from symcomp.gpu.fusion import fused_for_devices, take_products_apart
from symcomp.gpu.loops import DeviceLoop, device_loop
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering, Plans, can_be_copied
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.rules import is_needed
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.trace import Firing
from symcomp.scan.lowering import chosen_inspector, chosen_rewrites
from symcomp.scan.op import Scan
from symcomp.scan.rows import Continued, FirstRows, LastRows, LeadingRows
from symcomp.vm.features import Feature, Lowering, offer_feature

RewriteBody = Callable[[FunctionGraph, Any], None]


def prepare_loops(graph: FunctionGraph, firings: list[Firing], rewrite_body: RewriteBody) -> None:
    """Put a DeviceLoop in the place of each loop whose step a device can compute.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        It stays as it is: which loops move is the matter of the next phase.
    rewrite_body : callable (graph, selects)
        Rewrites a step in place, as the graph around it was.
    """
    for node in graph.toposort():
        made = _prepared(node, rewrite_body) if isinstance(node.op, Scan) else None
        if made is not None:
            loop = Apply(made, node.inputs, [z.type for z in node.outputs], node.source)
            graph.replace_all(zip(node.outputs, loop.outputs, strict=True))


def _prepared(node: Apply, rewrite_body: RewriteBody) -> DeviceLoop | None:
    op: Any = node.op
    if chosen_inspector(op) is not None:
        return None
    body = FunctionGraph(op.body.inputs, op.body.outputs)
    rewrite_body(body, chosen_rewrites(op))
    take_products_apart(body)
    prepare_loops(body, [], rewrite_body)
    step = ClosedGraph(body.inputs, body.outputs)
    loop = device_loop(op, step)
    return None if loop is None else device_loop(op, fused_for_devices(step)) or loop


# -- rows around loops


def _plan_first(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, n = given
    op: Any = node.op
    shape = op.perform(np.broadcast_to(np.zeros((), x.dtype), x.shape), n).shape
    return [x.view(shape, x.strides)]


def _plan_continued(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, y = given
    if x.shape[1:] != y.shape[1:]:
        raise ShapeError(f"{node.op}: rows of shape {y.shape[1:]} cannot follow {x.shape[1:]}")
    z = planner.new(x.dtype, [x.shape[0] + y.shape[0], *x.shape[1:]])
    plan_copy(planner, _rows(z, 0, x.shape[0]), x)
    plan_copy(planner, _rows(z, x.shape[0], z.shape[0]), y)
    return [z]


def _plan_last(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    n, y = given
    length = max(int(n) + op.more, 0)
    z = planner.new(y.dtype, [length, *y.shape[1:]])
    known = min(y.shape[0], length)
    planner.clear(_rows(z, 0, length - known))
    plan_copy(planner, _rows(z, length - known, length), _rows(y, y.shape[0] - known, y.shape[0]))
    return [z]


def _plan_leading(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, n = given
    z = planner.new(x.dtype, [int(n), *x.shape[1:]])
    plan_copy(planner, _rows(z, 0, x.shape[0]), x)
    planner.clear(_rows(z, x.shape[0], z.shape[0]))
    return [z]


def _rows(x: Operand, start: int, stop: int) -> Operand:
    return x.view([stop - start, *x.shape[1:]], x.strides, start * x.strides[0])


def _lowered(plan: Plans, number: int) -> Lowering:
    """Return the lowering of an op whose input of this number stays on the host."""
    numbers = frozenset(range(number, number + 1)) if number >= 0 else frozenset()
    how = DeviceLowering(plan, lambda node: numbers, only_moves=True)
    return lambda node: how if can_be_copied(node.outputs[0]) else None


PHASE = Phase(
    "device_loops", "loops of regions are computed on devices", RuleSet([]), ("devices", *FULL),
    prepare_loops, is_needed, sweeps_bodies=True,
)  # fmt: skip
# If two phases come after one, that of the feature offered later comes first.
FEATURE = Feature(
    "device loops",
    (("fusion", PHASE),),
    {
        (FirstRows, TARGET): _lowered(_plan_first, 1),
        (Continued, TARGET): _lowered(_plan_continued, -1),
        (LastRows, TARGET): _lowered(_plan_last, 0),
        (LeadingRows, TARGET): _lowered(_plan_leading, 1),
    },
)


def offer() -> None:
    """Move loops from now on."""
    offer_feature(FEATURE)
