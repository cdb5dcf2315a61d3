"""Graphs used as ops: they take and give the arrays of sparse matrices.

The pattern of a result is often that of an input, as in a gradient with respect to a matrix. Such
arrays need not go through the op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.walk import rebuild, toposort
from symcomp.ops.control.graph_op import lengths_in
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.type import SparseType


def graph_on_arrays(node: Apply, lower: Callable[[FunctionGraph], Any]) -> list[Any] | None:
    """Return the outputs of a graph op by one that computes the arrays of its matrices; by the
    graph itself where only values tell how many entries there are; None without matrices.

    Parameters
    ----------
    node : Apply
        Of a ``GraphOp``.
    lower : callable
        Lowers ops on sparse matrices, in place.
    """
    op: Any = node.op
    if not any(_is_sparse(v) for v in (*op.graph.inputs, *op.graph.outputs)):
        return None
    wanted = [v for y in op.graph.outputs for v in (Components()(y) if _is_sparse(y) else [y])]
    lowered = FunctionGraph(op.graph.inputs, wanted)
    lower(lowered)
    inputs, pairs = _array_inputs(lowered)
    results = rebuild(lowered.outputs, pairs)
    given = [v for x in node.inputs for v in (Components()(x) if _is_sparse(x) else [x])]
    outer = dict(zip(inputs, given, strict=True))
    computed = [*dict.fromkeys(v for v in results if v not in outer)]
    if computed:
        graph = ClosedGraph(inputs, computed)
        if not _lengths_tell_lengths(graph):
            return list(op.graph(node.inputs))
        outer.update(zip(computed, op.with_graph(graph).make_node(*given).outputs, strict=True))
    arrays = iter([outer[v] for v in results])
    return [
        Assemble(y.type)(*(next(arrays) for _ in range(4))) if _is_sparse(y) else next(arrays)
        for y in node.outputs
    ]


def _is_sparse(x: Any) -> bool:
    return isinstance(x.type, SparseType)


def _array_inputs(graph: FunctionGraph) -> tuple[list[Any], dict[Any, Any]]:
    """Return inputs with arrays in the places of matrices, and what takes the place of these and of
    their arrays in the graph.
    """
    inputs: list[Any] = []
    pairs: dict[Any, Any] = {}
    x: Any
    for x in graph.inputs:
        if not _is_sparse(x):
            inputs.append(x)
            continue
        parts = [v.type(f"{x}.{k}") for k, v in enumerate(Components().make_node(x).outputs)]
        inputs += parts
        pairs[x] = Assemble(x.type)(*parts)
        for reader, _ in graph.clients[x]:
            if isinstance(reader, Apply) and reader.op == Components():
                pairs.update(zip(reader.outputs, parts, strict=True))
    return inputs, pairs


def _lengths_tell_lengths(graph: ClosedGraph) -> bool:
    """Tell whether the lengths of the results follow from those of the inputs."""
    _, shapes = lengths_in(graph)
    lengths = [n for shape in shapes for n in shape or () if isinstance(n, Variable)]
    return not any(isinstance(node.op, Shape | ShapeI) for node in toposort(lengths))
