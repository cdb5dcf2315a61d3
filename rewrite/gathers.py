"""Gathers: elements of vectors at positions are read in the loop that uses them, not before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.codegen.kernel import Scheduled, scheduled
from symcomp.codegen.loopir.kernel import Loops, Role
from symcomp.codegen.loops.nests import is_nest
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record, replace
from symcomp.core.source import Source
from symcomp.core.tensor import TensorVariable
from symcomp.ops.formulas.formula import GATHER, Formula, Step, joint_pattern, sum_of_products
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.linalg.contraction import SumOfProducts
from symcomp.rewrite.fusion import MOST_ARRAYS, formula_of_nodes, is_one_loop
from symcomp.rewrite.trace import Firing


def has_gathers(graph: FunctionGraph) -> bool:
    """Tell whether a graph reads a vector at positions."""
    return any(node.op == GATHER for node in graph.nodes)


def fuse_gathers(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Let a loop read a vector at positions, where it alone needs the elements, in one pass.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        New firings are appended.
    """
    for node in graph.toposort():
        if node.op != GATHER or not _is_gather(node):
            continue
        (z,) = node.outputs
        readers = {client for client, _ in graph.clients[z]}
        if len(readers) != 1:
            continue
        (reader,) = readers
        loop = None if reader == "output" else _with_gather(graph, reader, node)
        if loop is not None:
            replace_by("gathers", "fuse_gathers", graph, reader, loop, str(GATHER), firings)


def _is_gather(node: Apply) -> bool:
    """Tell whether a node reads a vector at several positions."""
    x, positions = node.inputs
    return x.ndim == 1 and positions.ndim > 0 and np.dtype(positions.dtype).kind in "iu"


@record(eq=False)
class TableLoop:
    """A formula that can read tables and add to them, and where its inputs and outputs come
    from.
    """

    formula: Formula
    inputs: tuple[TensorVariable, ...]
    outputs: tuple[Variable, ...]
    sources: tuple[Source | None, ...]


def loop_of_node(graph: FunctionGraph, node: Any) -> TableLoop | None:
    """Return what a node computes in one loop; None if it does not."""
    if isinstance(node.op, Fused):
        sources = node.op.sources or (None,) * len(node.op.formula.steps)
        return TableLoop(node.op.formula, tuple(node.inputs), tuple(node.outputs), sources)
    if isinstance(node.op, SumOfProducts):
        formula = sum_of_products(node.op.axes, node.inputs[0].dtype)
        sources = (node.source,) * len(formula.steps)
        return TableLoop(formula, tuple(node.inputs), tuple(node.outputs), sources)
    if not is_one_loop(node):
        return None
    formula, inputs, outputs = formula_of_nodes(graph, [node], {node})
    return TableLoop(formula, tuple(inputs), tuple(outputs), (node.source,))


def _with_gather(graph: FunctionGraph, reader: Apply, gather: Apply) -> TableLoop | None:
    """Return the loop of a reader that also gathers; None if there is none, or it does not pay."""
    loop = loop_of_node(graph, reader)
    if loop is None or not is_nest(loop.formula):
        return None
    (z,) = gather.outputs
    if sum(x is z for x in loop.inputs) != 1 or arrays_of(loop) + 1 > MOST_ARRAYS:
        return None
    patterns = [x.type.broadcastable for x in loop.inputs]
    every = loop.formula.patterns(patterns)[: len(patterns)]
    # Elements that the loop would stretch are read less often where they are gathered once.
    if z.type.broadcastable != joint_pattern(every) or all(z.type.broadcastable):
        return None
    found = _gathering(loop, loop.inputs.index(z), gather)
    patterns = [x.type.broadcastable for x in found.inputs]
    made = scheduled(found.formula, patterns)
    return found if made is not None and _reads_once(made, len(patterns) - 1) else None


def arrays_of(loop: TableLoop) -> int:
    return len(loop.inputs) + len(loop.outputs)


def _reads_once(made: Scheduled, table: int) -> bool:
    """Tell whether a kernel passes once over the elements of a table: memory may be slow to read at
    positions.
    """
    if not isinstance(made.kernel, Loops):
        return False
    stages = made.kernel.sweep.stages
    return sum(stage.along.roles[table] is Role.GATHERED for stage in stages) <= 1


def _gathering(loop: TableLoop, number: int, gather: Apply) -> TableLoop:
    """Return a loop that reads a table at positions in place of an input: the positions take the
    input's place, the table comes last.
    """
    formula, inputs = loop.formula, list(loop.inputs)
    table, positions = gather.inputs
    inputs[number] = positions
    n, first = len(inputs), loop.formula.first_step
    value = first + 1  # the new step comes first

    def moved(a: int) -> int:
        return value if a == number else a + (a >= n) + (a >= first)

    steps = [Step(GATHER, (n, number), table.dtype)]
    steps += [replace(s, arguments=tuple(map(moved, s.arguments))) for s in formula.steps]
    found = Formula(
        (*(x.dtype for x in inputs), table.dtype),
        formula.literals,
        tuple(steps),
        tuple(replace(r, value=moved(r.value)) for r in formula.results),
    )
    sources = (gather.source, *loop.sources)
    return TableLoop(found, (*inputs, table), loop.outputs, sources)


def replace_by(
    phase: str,
    name: str,
    graph: FunctionGraph,
    node: Apply,
    loop: TableLoop,
    joined: str,
    firings: list[Firing],
) -> Apply:
    """Replace a node by a loop with its outputs, and those of nodes ``joined`` with it; return the
    loop's node.
    """
    op = Fused(loop.formula, loop.sources)
    fused = Apply(op, loop.inputs, [z.type for z in loop.outputs], node.source)
    firings.append(Firing(phase, name, fused.source, f"{joined}, {node.op}", str(op)))
    for old, new in zip(loop.outputs, fused.outputs, strict=True):
        new.source = old.source
        graph.replace(old, new)
    return fused
