"""Merge: nodes with equal ops and the same inputs become one, and so do equal constants."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Constant, Variable


def merge(graph: FunctionGraph) -> int:
    """Merge equal computations by hash-consing, in one pass; return how many nodes went away."""
    merged: dict[Variable, Variable] = {}
    constants: dict[Any, Variable] = {}
    computed: dict[Any, list[Variable]] = {}
    before = len(graph.nodes)

    def stands_for(x: Variable) -> Variable:
        if isinstance(x, Constant) and x not in merged:
            signature = x.signature()
            if isinstance(signature, Hashable):
                merged[x] = constants.setdefault(signature, x)
        return merged.get(x, x)

    for node in graph.toposort():
        for i, x in enumerate(node.inputs):
            graph.change_input(node, i, stands_for(x))
        if node.op.destroy_map:
            continue  # each in-place node has its own victim
        outputs = computed.setdefault((node.op, tuple(node.inputs)), node.outputs)
        if outputs is not node.outputs:
            for old, new in zip(node.outputs, outputs, strict=True):
                if old.type.is_super(new.type):
                    merged[old] = new
                    new.name = new.name or old.name
    for i, out in enumerate(list(graph.outputs)):
        graph.change_input("output", i, stands_for(out))
    return before - len(graph.nodes)
