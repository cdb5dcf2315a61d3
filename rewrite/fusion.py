"""Fusion: scalar functions and reductions of the same elements become one op, which passes over
them once.

Nothing is computed twice: a node goes into one group, what others need of it becomes an output, and
what is stretched by its users stays outside. Groups stay within one lazy region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.formula import Formula, Literal, Result, Step, joint_pattern
from symcomp.ops.fused import Fused
from symcomp.ops.reduce import Reduce
from symcomp.ops.regions import Placement, place
from symcomp.rewrite.levels import Components, Kind, assign_levels
from symcomp.rewrite.trace import Firing

# A C compiler's time grows faster than the length of a loop's body, and beyond this no more is
# gained: the values between two groups cost one pass for so many steps.
MOST_STEPS = 128
# Processors follow some ten to thirty streams of memory at a time; more arrays in one loop make it
# slower than two loops.
MOST_ARRAYS = 24


def fuse(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Replace connected scalar functions, and reductions of what they compute, by ops that compute
    several. In linear time.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        What was done is added.
    """
    order = graph.toposort()
    kinds = _kinds(order, place(order, graph.outputs))
    levels = assign_levels(order, kinds)
    components = Components()
    for node in order:
        kind, level = kinds[node], levels[node]
        if kind is None:
            continue
        pattern = _loop(node)
        for x in node.inputs:
            if isinstance(x, Constant) or _pattern(x.type.shape) != pattern:
                continue
            maker = x.owner
            if maker is not None and kinds.get(maker) == kind and levels[maker] == level:
                components.join(maker, node)
            else:
                components.join_users(level, kind, x, node)
    for group in components.groups([node for node in order if kinds[node] is not None]):
        for part in _parts(group, graph):
            if len(part) > 1:
                _replace(graph, part, firings)


def _kinds(order: Sequence[Apply], regions: Placement) -> dict[Apply, Kind]:
    """A number for the nodes that pass over elements of one shape in one lazy region."""
    numbers: dict[Any, int] = {}
    kinds: dict[Apply, Kind] = {}
    for node in order:
        pattern = _loop(node)
        if pattern is None:
            kinds[node] = None
        else:
            kinds[node] = numbers.setdefault((pattern, regions[node]), len(numbers))
    return kinds


def _loop(node: Apply) -> tuple[bool, ...] | None:
    """Which axes have length 1 in the elements that the node passes over; None if that is not what
    it does.
    """
    if type(node.op) is Reduce and node.op.axes:
        return _pattern(node.inputs[0].type.shape)
    if type(node.op) is Elemwise and not node.op.inplace:
        pattern = _pattern(node.outputs[0].type.shape)
        # A type may know more than the inputs say: what it stands for is not stretched then.
        same = joint_pattern(_pattern(x.type.shape) for x in node.inputs) == pattern
        return pattern if same else None
    return None


@cache
def _pattern(shape: tuple[int | None, ...]) -> tuple[bool, ...]:
    return tuple(n == 1 for n in shape)


def _parts(group: Sequence[Apply], graph: FunctionGraph) -> Iterator[list[Apply]]:
    """Cut a group, whose order is one of dependence, where it has too many steps or arrays."""
    part: list[Apply] = []
    inputs: set[Variable] = set()
    open_outputs: dict[Variable, int] = {}  # users that have not come yet, or are outside
    for node in group:
        (out,) = node.outputs
        new = {x for x in node.inputs if x not in open_outputs and not _is_literal(x)} - inputs
        arrays = len(inputs) + len(new) + 1 + sum(1 for n in open_outputs.values() if n)
        if part and (len(part) == MOST_STEPS or arrays > MOST_ARRAYS):
            yield part
            part, inputs, open_outputs = [], set(), {}
            new = {x for x in node.inputs if not _is_literal(x)}
        part.append(node)
        inputs |= new
        for x in node.inputs:
            if x in open_outputs:
                open_outputs[x] -= 1
        open_outputs[out] = len(graph.clients[out])
    yield part


def _is_literal(x: Any) -> bool:
    return isinstance(x, Constant) and x.data.size == 1


def _replace(graph: FunctionGraph, nodes: Sequence[Apply], firings: list[Firing]) -> None:
    """Put one op in the place of ``nodes``, whose order is one of dependence."""
    members = set(nodes)
    inputs: dict[Any, int] = {}
    literals: dict[Literal, int] = {}
    for node in nodes:
        for x in node.inputs:
            if _is_literal(x):
                literals.setdefault(Literal.of(x.data), len(literals))
            elif x.owner not in members:
                inputs.setdefault(x, len(inputs))
    if not inputs:
        return
    first = len(inputs) + len(literals)
    number: dict[Variable, int] = dict(inputs)
    steps = []
    for position, node in enumerate(nodes):
        arguments = tuple(
            len(inputs) + literals[Literal.of(x.data)] if _is_literal(x) else number[x]
            for x in node.inputs
        )
        function = node.op if isinstance(node.op, Reduce) else node.op.scalar
        steps.append(Step(function, arguments, node.outputs[0].type.dtype))
        number[node.outputs[0]] = first + position
    shown = [node.outputs[0] for node in nodes if _used_outside(graph, node.outputs[0], members)]
    formula = Formula(
        tuple(x.type.dtype for x in inputs),
        tuple(literals),
        tuple(steps),
        tuple(Result(number[z], getattr(z.owner.op, "axes", ())) for z in shown),
    )
    op = Fused(formula, tuple(node.source for node in nodes))
    fused = Apply(op, list(inputs), [z.type for z in shown], shown[-1].owner.source)
    firings.append(
        Firing("fusion", "fuse", fused.source, ", ".join(str(node.op) for node in nodes), str(op))
    )
    for old, new in zip(shown, fused.outputs, strict=True):
        new.source = old.source
        graph.replace(old, new)


def _used_outside(graph: FunctionGraph, x: Variable, members: Collection[Apply]) -> bool:
    return any(client not in members for client, _ in graph.clients[x])
