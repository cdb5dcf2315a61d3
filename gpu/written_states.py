"""Steps of loops that write parts of a carried value in its memory, not in a copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import replace
from symcomp.core.walk import toposort
from symcomp.gpu.planner import Operand
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.vm.order import aliased_inputs, schedule
from symcomp.vm.overwriting import write_over_inputs


@dataclass
class PlannedStep:
    """The graph of a step, as it is planned.

    Attributes
    ----------
    inputs, outputs : sequence of Variable
    order : sequence of Apply
    written : set of Variable
        The results that are made in the memory of the first input of their node.
    over : set of int
        The carried values, by number, that these are.
    """

    inputs: Sequence[Variable]
    outputs: Sequence[Any]
    order: Sequence[Apply]
    written: Collection[Variable] = ()
    over: Collection[int] = ()


def plain_step(body: ClosedGraph) -> PlannedStep:
    """Return a step that writes no parts in place."""
    return PlannedStep(body.inputs, body.outputs, toposort(body.outputs))


def step_in_place(body: ClosedGraph, pairs: Sequence[tuple[int, int]]) -> PlannedStep:
    """Return a step that writes parts in place where nothing needs the old values afterwards.

    Parameters
    ----------
    body : ClosedGraph
    pairs : sequence of (int, int)
        The output and the input that each carried value is.
    """
    plain = plain_step(body)
    if not pairs or not any(isinstance(node.op, IncSubtensor) for node in plain.order):
        return plain
    graph = FunctionGraph(body.inputs, body.outputs)
    over = write_over_inputs(graph, pairs)
    if not over:
        return plain
    order, _, _ = schedule(graph, [graph.inputs[i] for i in over.values()])
    written = set()
    for place, node in enumerate(order):
        op: Any = node.op
        if op.destroy_map:
            # The order is that of nodes in place; lowerings are those of the others.
            order[place] = replace(op, inplace=False).make_node(*node.inputs)
            order[place].source = node.source
            graph.replace(node.outputs[0], order[place].outputs[0])
            written.add(order[place].outputs[0])
    numbers = {k for k, (output, _) in enumerate(pairs) if output in over}
    return PlannedStep(graph.inputs, graph.outputs, order, written, numbers)


def has_hidden_alias(
    step: PlannedStep, known: Mapping[Variable, Any], storages: Collection[int]
) -> bool:
    """Return whether a result lies in one of the storages, though its op does not say that it is a
    view: then the order of the step may be wrong.

    Parameters
    ----------
    step : PlannedStep
    known : mapping of Variable to Operand or ndarray
        The values of the planned step.
    storages : collection of int
    """
    return any(
        _is_in(known.get(x), storages)
        and _is_in(known.get(z), storages)
        and x not in aliased_inputs(z)
        and z not in step.written
        for node in step.order
        for z in node.outputs
        for x in node.inputs
    )


def _is_in(value: Any, storages: Collection[int]) -> bool:
    return isinstance(value, Operand) and value.storage in storages
