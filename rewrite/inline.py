"""Inlining: the graph inside an op takes its place, so that other rules see through it."""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.graph_op import GraphOp
from symcomp.rewrite.rule import RuleSet, rule


@rule(GraphOp, why="the op is defined to compute its graph", subclasses=True)
def inline_graph(node: Apply, graph: Any) -> Any:
    """op(x, y) -> the graph of op on x and y, where the op says ``inline``"""
    return node.op.graph(node.inputs) if node.op.inline else None


INLINE_RULES = RuleSet([inline_graph], ["inline"])
