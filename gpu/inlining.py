"""The phase that puts graphs used as ops in the places of their nodes, where devices compute: a
region goes through them.
"""

from __future__ import annotations

from symcomp.core.graph import FunctionGraph
from symcomp.ops.control.graph_op import GraphOp
from symcomp.rewrite.trace import Firing


def inline_graphs(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Inline all graphs used as ops, those in such graphs included.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        Each replacement is added.
    """
    pending = [node for node in graph.toposort() if isinstance(node.op, GraphOp)]
    while pending:
        for node in pending:
            firings.append(Firing("inline for devices", "inline", node.source, str(node), "graph"))
            made = node.op.graph(node.inputs)
            graph.replace_all(zip(node.outputs, made, strict=True))
        pending = [node for node in graph.toposort() if isinstance(node.op, GraphOp)]
