"""Compute a graph by calling ``perform`` of each node in turn: the reference for every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.storage import bound
from symcomp.core.walk import graph_inputs, toposort
from symcomp.errors import MissingInputError


def _bound(position: int, node: Apply) -> Callable[..., Any]:
    compute: Callable[..., Any] = bound(node)
    return compute


def evaluator(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    bind: Callable[[int, Apply], Callable[..., Any]] = _bound,
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function from the values of ``inputs`` to the values of ``outputs``; it may be
    called many times. ``bind(number, node)`` returns the function that computes the node.
    """
    known = set(inputs)
    constants: dict[Variable, Any] = {}
    for variable in graph_inputs(outputs, known):
        if isinstance(variable, Constant) and variable not in known:
            constants[variable] = variable.data
        elif variable not in known:
            raise MissingInputError(f"no value is given for {variable} of type {variable.type}")
    steps = [(bind(i, node), node) for i, node in enumerate(toposort(outputs, known))]

    def run(values: Sequence[Any]) -> list[Any]:
        store = dict(constants)
        store.update(zip(inputs, values, strict=True))
        for compute, node in steps:
            result = compute(*[store[v] for v in node.inputs])
            if node.op.multiple_outputs:
                store.update(zip(node.outputs, result, strict=True))
            else:
                store[node.outputs[0]] = result
        return [store[v] for v in outputs]

    return run


def evaluate(outputs: Sequence[Variable], values: Mapping[Variable, Any]) -> list[Any]:
    """Return the values of ``outputs``, given those of the inputs; nothing is compiled or
    rewritten.
    """
    return evaluator(list(values), outputs)(list(values.values()))
