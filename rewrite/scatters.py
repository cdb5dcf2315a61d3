"""Scatters: the loop that computes values also adds them to vectors at positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.kernel import scheduled
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.ops.control.regions import Placement, place
from symcomp.ops.formulas.formula import SCATTER, Formula, Result, Step, joint_pattern
from symcomp.rewrite.fusion import MOST_ARRAYS
from symcomp.rewrite.gathers import TableLoop, arrays_of, loop_of_node, replace_by
from symcomp.rewrite.trace import Firing


def has_scatters(graph: FunctionGraph) -> bool:
    """Tell whether a graph adds values to a vector at positions."""
    return any(node.op == SCATTER for node in graph.nodes)


def fuse_scatters(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Let a loop add values to vectors at positions, where nothing else needs these values.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        New firings are appended.
    """
    order = graph.toposort()
    makers = {node.inputs[1].owner for node in order if _is_scatter(node)} - {None}
    known = _Known(graph, place(order, graph.outputs), _levels(order, makers))
    for node in order:
        loop = loop_of_node(graph, node) if node in makers else None
        if loop is None:
            continue
        before = len(loop.inputs)
        for value in node.outputs:
            scatters = [*known.scatters_of(value)]
            found = _with_scatters(loop, value, scatters) if scatters else None
            loop = loop if found is None else found
        if len(loop.inputs) > before:
            made = replace_by("scatters", "fuse_scatters", graph, node, loop, str(SCATTER), firings)
            known.levels[made] = known.levels[node]


def _is_scatter(node: Apply) -> bool:
    """Tell whether a node adds several values to a vector."""
    if node.op != SCATTER:
        return False
    x, y, positions = node.inputs
    axes = x.ndim, y.ndim, positions.ndim
    return axes == (1, 1, 1) and np.dtype(positions.dtype).kind in "iu"


def _levels(order: Sequence[Apply], makers: set[Apply]) -> dict[Apply, int]:
    """Return, for each node, how many of the ``makers`` lie on the longest path to it."""
    found: dict[Apply, int] = {}
    for node in order:
        before = (found[x.owner] for x in node.inputs if x.owner is not None)
        found[node] = max(before, default=0) + (node in makers)
    return found


@record(eq=False)
class _Known:
    """The regions of the nodes of a graph, and their levels: no path leads to a lower level. Fusing
    changes neither; a fused loop is of the level of the loop that it replaces.
    """

    graph: FunctionGraph
    regions: Placement
    levels: dict[Apply, int]

    def scatters_of(self, value: Variable) -> Iterator[Apply]:
        """Yield the scatters of a value; none, if one cannot be fused, or others need the value."""
        clients = self.graph.clients[value]
        if all(self._can_be_fused(value, client, place) for client, place in clients):
            yield from dict.fromkeys(client for client, _ in clients)

    def _can_be_fused(self, value: Variable, client: Any, place: int) -> bool:
        if client == "output" or not _is_scatter(client) or place != 1:
            return False
        maker: Any = value.owner
        x, _, positions = client.inputs
        (z,) = client.outputs
        # The table and the positions must be there before the loop.
        early = all(
            v.owner is None or self.levels[v.owner] < self.levels[maker] for v in (x, positions)
        )
        # The elements of an argument may be changed in place, once positions are checked.
        is_update = x in self.graph.inputs and any(c == "output" for c, _ in self.graph.clients[z])
        return early and not is_update and self.regions[client] == self.regions[maker]


def _with_scatters(loop: TableLoop, value: Variable, scatters: Sequence[Apply]) -> TableLoop | None:
    """Return a loop that adds the elements of an output to tables, in place of the output; None if
    there is none.
    """
    added = 3 * len(scatters) - 1
    if arrays_of(loop) + added > MOST_ARRAYS:
        return None
    patterns = [x.type.broadcastable for x in loop.inputs]
    joint = joint_pattern(loop.formula.patterns(patterns)[: len(patterns)])
    elements = [value, *(node.inputs[2] for node in scatters)]
    if any(v.type.broadcastable != joint for v in elements) or all(joint):
        return None
    found = _scattering(loop, loop.outputs.index(value), scatters)
    made = scheduled(found.formula, [x.type.broadcastable for x in found.inputs])
    return None if made is None else found


def _scattering(loop: TableLoop, output: int, scatters: Sequence[Apply]) -> TableLoop:
    """Return a loop with a step for each scatter: its positions and its table come last among the
    inputs, the sums last among the outputs.
    """
    formula, n = loop.formula, len(loop.inputs)
    more = tuple(x for node in scatters for x in (node.inputs[2], node.inputs[0]))

    def moved(a: int) -> int:
        return a + len(more) * (a >= n)

    steps = [
        Step(s.function, tuple(map(moved, s.arguments)), s.dtype) for s in formula.steps
    ]
    results = [Result(moved(r.value), r.dropped) for r in formula.results]
    value = results.pop(output).value
    for i, node in enumerate(scatters):
        results.append(Result(moved(formula.first_step) + len(steps)))
        steps.append(Step(SCATTER, (n + 2 * i + 1, value, n + 2 * i), node.outputs[0].dtype))
    found = Formula(
        (*formula.inputs, *(x.dtype for x in more)), formula.literals, tuple(steps), tuple(results)
    )
    outputs = [*loop.outputs[:output], *loop.outputs[output + 1 :]]
    outputs += [node.outputs[0] for node in scatters]
    sources = (*loop.sources, *(node.source for node in scatters))
    return TableLoop(found, (*loop.inputs, *more), tuple(outputs), sources)
