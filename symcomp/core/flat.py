"""Write a graph as flat lists, so that pickling and copying need no recursion at any depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.core.walk import graph_inputs, toposort

Flat = tuple[list[Variable], list[tuple[Any, ...]], list[int], list[int]]


def flatten(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Flat:
    """Return the roots, the nodes (op, input numbers, output types, names, sources), and the
    outputs by number.
    """
    roots = list(dict.fromkeys([*inputs, *graph_inputs(outputs, set(inputs))]))
    number = {variable: i for i, variable in enumerate(roots)}
    nodes = []
    for node in toposort(outputs, set(inputs)):
        nodes.append(
            (
                node.op,
                [number[x] for x in node.inputs],
                [out.type for out in node.outputs],
                [out.name for out in node.outputs],
                node.source,
                [out.source for out in node.outputs],
            )
        )
        for out in node.outputs:
            number[out] = len(number)
    return roots, nodes, [number[v] for v in inputs], [number[v] for v in outputs]


def unflatten(flat: Flat) -> tuple[list[Variable], list[Variable]]:
    """Return the inputs and outputs of the graph that ``flatten`` described."""
    roots, nodes, inputs, outputs = flat
    variables = list(roots)
    for op, sources, types, names, source, out_sources in nodes:
        node = Apply(op, [variables[i] for i in sources], types, source)
        for out, name, out_source in zip(node.outputs, names, out_sources, strict=True):
            out.name, out.source = name, out_source
        variables.extend(node.outputs)
    return [variables[i] for i in inputs], [variables[i] for i in outputs]
