"""Inline ops made of graphs, remove their unused outputs, and drop gradient markers.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply
from symcomp.core.walk import graph_inputs
from symcomp.ops.control.graph_op import GraphOp
from symcomp.ops.control.markers import GradientMarker
from symcomp.rewrite.rule import RuleSet, rule


@rule(GraphOp, why="the op is defined to compute its graph", subclasses=True)
def inline_graph(node: Apply, graph: Any) -> Any:
    """op(x, y) -> the graph of op on x and y, where the op says ``inline``"""
    return node.op.graph(node.inputs) if node.op.inline else None


@rule(GraphOp, why="outputs without clients need not be computed", subclasses=True)
def unused_outputs(node: Apply, graph: Any) -> Any:
    """y, z = op(x, w) -> y = part of op(x), where z has no clients and y does not need w"""
    inside = node.op.graph
    used = [k for k, y in enumerate(node.outputs) if graph.clients[y]]
    if len(used) == len(node.outputs):
        return None
    outputs = [inside.outputs[k] for k in used]
    needed = set(graph_inputs(outputs))
    taken = [i for i, x in enumerate(inside.inputs) if x in needed]
    part = node.op.with_graph(ClosedGraph([inside.inputs[i] for i in taken], outputs))
    computed = part.make_node(*(node.inputs[i] for i in taken)).outputs
    new: list[Any] = [None] * len(node.outputs)
    for k, y in zip(used, computed, strict=True):
        new[k] = y
    return new


@rule(GradientMarker, why="an identity; derivatives have been taken", subclasses=True)
def drop_gradient_marker(node: Apply, graph: Any) -> Any:
    """zero_grad(x) -> x"""
    return node.inputs[0]


INLINE_RULES = RuleSet([inline_graph, unused_outputs, drop_gradient_marker], ["inline"])
