"""GraphOp: a graph used as one node, which rewriting may inline; subclasses add derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record, replace
from symcomp.core.tensor import TensorType, describe_value
from symcomp.core.walk import graph_inputs, rebuild, toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.shapes.shape import shape_tuple

#: Variables for the unknown lengths of a graph's inputs, by input and axis, and the shape of each
#: output: ints, or expressions of these variables and of the inputs; None: unknown.
GraphLengths = tuple[dict[tuple[int, int], Variable], list[Any]]


def lengths_in(graph: ClosedGraph) -> GraphLengths:
    """Return the lengths of a graph's outputs as expressions of those of its inputs."""
    leaves: dict[tuple[int, int], Variable] = {}
    known: dict[Variable, Any] = {}
    for i, x in enumerate(graph.inputs):
        known[x] = None
        if isinstance(x.type, TensorType):
            unknown = [a for a, n in enumerate(x.type.shape) if n is None]
            leaves.update(((i, a), TensorType("int64", ())(f"{x}.shape[{a}]")) for a in unknown)
            known[x] = tuple(leaves.get((i, a), n) for a, n in enumerate(x.type.shape))
    for node in toposort(graph.outputs):
        given = [known[x] if x in known else _own_shape(x) for x in node.inputs]
        try:
            inferred: Sequence[Any] = node.op.infer_shape(node, given)
        except NotImplementedError:
            inferred = [_own_shape(y) for y in node.outputs]
        known.update(zip(node.outputs, inferred, strict=True))
    return leaves, [known[y] if y in known else _own_shape(y) for y in graph.outputs]


def shapes_through(
    graph: ClosedGraph, known: GraphLengths, inputs: Sequence[Any], shapes: Sequence[Any]
) -> list[Any]:
    """Return the shapes of a graph's outputs, given the values and shapes of its inputs.

    Parameters
    ----------
    graph : ClosedGraph
    known : GraphLengths
        ``lengths_in(graph)``.
    inputs : sequence of Variable
        In the place of the graph's inputs.
    shapes : sequence of tuple
    """
    leaves, lengths = known
    pairs: dict[Variable, Any] = dict(zip(graph.inputs, inputs, strict=True))
    given: dict[Variable, Any] = {leaf: shapes[i][a] for (i, a), leaf in leaves.items()}
    pairs.update((x, as_tensor_variable(n, dtype="int64")) for x, n in given.items())
    symbolic = [n for shape in lengths for n in shape or () if isinstance(n, Variable)]
    found = dict(zip(symbolic, rebuild(symbolic, pairs, False, only_changed=False), strict=True))
    found.update(given)
    return [None if shape is None else tuple(found.get(n, n) for n in shape) for shape in lengths]


@record
class GraphOp(Op):
    """y_1 .. y_m = graph(x_1 .. x_n), each y of the type that it has in the graph.

    No output shares memory with an input, a constant or another output. If ``inline``, rewriting
    puts the graph in the place of the node.
    """

    graph: ClosedGraph
    inline: bool

    moves = True
    no_derivative = "a GraphOp does not say how it is differentiated; OpFromGraph does"

    @property
    def multiple_outputs(self) -> bool:  # type: ignore[override]
        """True unless the graph has one output: a call returns a list."""
        return len(self.graph.outputs) != 1

    def as_inputs(self, *args: Any) -> list[Variable]:
        expected = self.graph.inputs
        if len(args) != len(expected):
            raise TypeError(
                f"{self}: {len(args)} arguments are given, {len(expected)} are needed: "
                f"{', '.join(f'{x} ({x.type})' for x in expected)}"
            )
        return [self._as_input(i, arg) for i, arg in enumerate(args)]

    def _as_input(self, position: int, arg: Any) -> Variable:
        wanted = self.graph.inputs[position]
        where = f"{self}: argument {position} ({wanted})"
        if not isinstance(arg, Variable):
            try:
                value = wanted.type.copy_value(wanted.type.filter(arg))
            except (TypeError, ValueError) as problem:
                shown = describe_value(arg)
                kind = ShapeError if isinstance(problem, ShapeError) else DTypeError
                raise kind(f"{where} is {shown}, not {wanted.type}: {problem}") from None
            constant: Constant = wanted.type.make_constant(value)
            return constant
        if wanted.type.is_super(arg.type):
            return arg
        message = f"{where} must be {wanted.type}, but {arg} is {arg.type}"
        if not isinstance(wanted.type, TensorType) or not isinstance(arg.type, TensorType):
            raise DTypeError(message)
        if wanted.type.dtype != arg.type.dtype:
            raise DTypeError(f"{message}: cast it with T.cast(..., {wanted.type.dtype!r})")
        raise ShapeError(
            f"{message}: reshape it, or declare a length that it does not know with T.specify_shape"
        )

    def output_types(self, *inputs: Variable) -> list[Type]:
        expected = self.graph.inputs
        if len(inputs) != len(expected) or not all(
            x.type.is_super(given.type) for x, given in zip(expected, inputs, strict=True)
        ):
            types = ", ".join(str(x.type) for x in inputs)
            raise DTypeError(
                f"{self}: inputs of types ({types}) are given, "
                f"({', '.join(str(x.type) for x in expected)}) are needed"
            )
        return [y.type for y in self.graph.outputs]

    def perform(self, *values: Any) -> Any:
        taken = [(x.type, value) for x, value in zip(self.graph.inputs, values, strict=True)]
        taken += [(c.type, c.data) for c in self._constants]
        results = []
        for y, result in zip(self.graph.outputs, self.graph.run(values), strict=True):
            if any(kind.may_share_memory(value, result) for kind, value in taken):
                result = y.type.copy_value(result)
            taken.append((y.type, result))
            results.append(result)
        return tuple(results) if self.multiple_outputs else results[0]

    @cached_property
    def _constants(self) -> list[Constant]:
        return [x for x in graph_inputs(self.graph.outputs) if isinstance(x, Constant)]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return shapes_through(self.graph, self._lengths, node.inputs, shapes)

    @cached_property
    def _lengths(self) -> GraphLengths:
        return lengths_in(self.graph)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return self.graph.connection

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        return self.graph.undefined(forward)

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        return [(self.graph.inputs, self.graph.outputs)]

    def with_graph(self, graph: ClosedGraph) -> GraphOp:
        """Return an op like this one that computes another graph."""
        return replace(self, graph=graph)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; cached results of analyses are computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        ops = ", ".join(str(node.op) for node in toposort(self.graph.outputs)[:4])
        return f"{type(self).__name__}{{{ops}}}"


def _own_shape(x: Any) -> Any:
    """Return the shape of a variable from its type or its own ``shape``; None if it is no tensor.
    """
    if isinstance(x, Constant):
        return np.shape(x.data) if isinstance(x.type, TensorType) else None
    return shape_tuple(x) if isinstance(x.type, TensorType) else None
