"""Outputs that are inputs but for some parts, as states of loops are: only these are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import replace
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.index_pattern import is_advanced
from symcomp.vm.order import alias_roots, schedule


def write_over_inputs(graph: FunctionGraph, allowed: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Have outputs written over inputs where they are these inputs but for the parts that
    ``IncSubtensor`` writes, and nothing else needs the old values afterwards.

    Parameters
    ----------
    graph : FunctionGraph
        Changed: the nodes become in-place ones.
    allowed : iterable of (int, int)
        Outputs, and the inputs that they may be written over, by position.

    Returns
    -------
    dict of int to int
        Of the outputs that are: the input, by position. Lowered with these inputs as
        ``destroyable``, the program copies none of them.
    """
    found: dict[int, int] = {}
    ours: set[Apply] = set()
    for output, position in allowed:
        nodes = _writing_nodes(graph.outputs[output], graph.inputs[position])
        if not nodes:
            continue
        made = _with_nodes(graph, nodes, inplace=True)
        taken = [graph.inputs[i] for i in (*found.values(), position)]
        copied = {node for node, _ in schedule(graph, taken)[2]}
        if copied & {*ours, *made}:
            _with_nodes(graph, made, inplace=False)
        else:
            found[output] = position
            ours.update(made)
    return found


def _with_nodes(graph: FunctionGraph, nodes: Sequence[Apply], inplace: bool) -> list[Apply]:
    """Replace the nodes by others that write in place, or do not; return these."""
    made = []
    for node in nodes:
        new = replace(node.op, inplace=inplace).make_node(*node.inputs)
        graph.replace(node.outputs[0], new.outputs[0])
        made.append(new)
    return made


def _writing_nodes(output: Variable, start: Variable) -> list[Apply]:
    """Return the nodes that write parts of ``start``, one after another, to make ``output``, the
    first one first; none if it is made otherwise.
    """
    nodes: list[Apply] = []
    while output is not start:
        node = output.owner
        if node is None or not isinstance(node.op, IncSubtensor) or node.op.inplace:
            return []
        # Values and positions that are parts of the array are read while it is written.
        read_meanwhile = node.inputs[1:] if is_advanced(node.op.pattern) else node.inputs[2:]
        if any(start in alias_roots(x) for x in read_meanwhile):
            return []
        nodes.append(node)
        output = node.inputs[0]
    return nodes[::-1]
