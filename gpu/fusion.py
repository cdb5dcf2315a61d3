"""Formulas on devices, where kernels take the time of the bytes that they move: they are divided
into kernels anew, for fewer bytes than on processors, which compute no value twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.gpu.lowerings.contract import is_number, lowering_of
from symcomp.gpu.lowerings.elements import multiplies_complex
from symcomp.gpu.stored_products import multiply_stored
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.rewrite.canonicalize.structure import dimshuffle_chain
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.fusion import fuse
from symcomp.rewrite.rule import RuleSet


def take_products_apart(graph: FunctionGraph) -> None:
    """Make nodes of the steps of a formula with products of complex numbers along axes, which have
    kernels of their own.
    """
    for node in graph.toposort():
        steps = node.op.formula.steps if isinstance(node.op, Fused) else ()
        if any(multiplies_complex(step.function, step.dtype) for step in steps):
            _take_apart(graph, node)


def fused_for_devices(graph: ClosedGraph, numbers: Collection[int] = ()) -> ClosedGraph:
    """Return the graph with its formulas divided into kernels by the bytes that these move; as it
    is, if one of them would have no kernel.

    Parameters
    ----------
    graph : ClosedGraph
        Of a region, or of the step of a loop.
    numbers : collection of int
        The inputs that are on the host.
    """
    inner = FunctionGraph(graph.inputs, graph.outputs)
    given = [inner.inputs[i] for i in numbers]
    on_host = _known_numbers(inner, given)
    formulas = [n for n in inner.toposort() if isinstance(n.op, Fused) and n not in on_host]
    for node in formulas:
        _take_apart(inner, node)
    if not multiply_stored(inner, on_host) and not formulas:
        return graph
    # Results that dropped axes get them back: axes stay where both are views in one loop.
    Engine(inner, RuleSet([dimshuffle_chain]), folding=False).run()
    fuse(inner, [], by_bytes=True, stays=_known_numbers(inner, given))
    on_host = _known_numbers(inner, given)
    if any(node not in on_host and lowering_of(node) is None for node in inner.nodes):
        return graph
    return ClosedGraph(inner.inputs, inner.outputs)


def _take_apart(graph: FunctionGraph, node: Apply) -> None:
    op: Any = node.op
    for old, new in zip(node.outputs, op.unfold_with_lines(node), strict=True):
        new.source = old.source
        graph.replace(old, new)


def _known_numbers(graph: FunctionGraph, given: Collection[Variable]) -> set[Apply]:
    """Return the nodes that compute numbers from lengths and given numbers, on the host."""
    known: set[Variable] = set(given)
    found = set()
    for node in graph.toposort():
        given_all = all(isinstance(x, Constant) or x in known for x in node.inputs)
        if isinstance(node.op, Shape | ShapeI) or (given_all and is_number(node)):
            found.add(node)
            known.update(node.outputs)
    return found
