"""Why nodes of a rewritten graph are kernels of their own: what fusion asks of them, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant
from symcomp.core.record import record
from symcomp.ops.control.regions import Placement, place
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.formulas.formula import (
    AXIS_FUNCTIONS,
    AXIS_REDUCTIONS,
    folded_axes,
    joint_pattern,
)
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.fusion import MOST_ARRAYS, MOST_STEPS, has_c, loop_of
from symcomp.rewrite.shapes import shapes_of

SCALAR_OR_REDUCTION = (Elemwise, Fused, Reduce, *AXIS_FUNCTIONS, *AXIS_REDUCTIONS)


@record(eq=False)
class LoopNode:
    """A node that is a loop over elements, and why the loops that feed it are no part of it.

    Attributes
    ----------
    node : Apply
    alone : str
        Why it can be fused with no other node; empty if it could.
    apart : tuple of (Apply, str)
        The nearest nodes of this kind that feed it, each with the reason; none if it is alone.
    """

    node: Apply
    alone: str
    apart: tuple[tuple[Apply, str], ...]


def kernels_of(graph: FunctionGraph) -> list[LoopNode]:
    """Return the scalar functions and reductions of a rewritten graph, in the order of computation.
    """
    order = graph.toposort()
    regions = place(order, graph.outputs)
    found = []
    for node in order:
        if not isinstance(node.op, SCALAR_OR_REDUCTION):
            continue
        alone = why_alone(node)
        feeding = {} if alone else _feeding(node)
        reasons = [
            (maker, why_apart(graph, maker, node, between, regions))
            for maker, between in feeding.items()
        ]
        found.append(LoopNode(node, alone, tuple(reasons)))
    return found


def _feeding(node: Apply) -> Mapping[Apply, tuple[Apply, ...]]:
    """Return the nearest kernels that feed a node, each with the nodes on a shortest way to it."""
    found: dict[Apply, tuple[Apply, ...]] = {}
    seen, waiting = {node}, [(node, ())]
    while waiting:
        following: list[tuple[Apply, Any]] = []
        for reader, way in waiting:
            for x in reader.inputs:
                maker = x.owner
                if maker is None or maker in seen:
                    continue
                seen.add(maker)
                if isinstance(maker.op, SCALAR_OR_REDUCTION):
                    found[maker] = way
                else:
                    following.append((maker, (maker, *way)))
        waiting = following
    return found


# -- reasons


def why_alone(node: Apply) -> str:
    """Return why a scalar function or reduction can be part of no larger loop; empty: it can."""
    op = node.op
    if isinstance(op, Fused) or loop_of(node) is not None:
        return ""
    if not isinstance(op, Elemwise):
        return f"{op} reduces no axis"
    dtypes = tuple(x.type.dtype for x in (*node.inputs, *node.outputs))
    if all(isinstance(x, Constant) and x.data.size == 1 for x in node.inputs):
        return "all inputs are numbers that are known"
    if op.inplace:
        return "it was asked to overwrite an input"
    if not has_c(op.scalar, dtypes):
        return f"{op.scalar} has no C for {', '.join(dtypes[:-1])} -> {dtypes[-1]}"
    return f"its type {node.outputs[0].type} knows a length of 1 that its inputs do not show"


def why_apart(
    graph: FunctionGraph,
    maker: Apply,
    reader: Apply,
    between: Sequence[Apply],
    regions: Placement,
) -> str:
    """Return why a kernel is no part of the loop of one that it feeds through nodes ``between``."""
    alone = why_alone(maker)
    if alone:
        return alone
    passed = [node for node in between if not isinstance(node.op, DimShuffle)]
    if passed:
        names = ", then ".join(str(node.op) for node in passed)
        return f"between them is {names}: no loop over elements"
    if regions[maker] != regions[reader]:
        return "one of them runs in a branch of an ifelse alone"
    first, second = _elements(maker), _elements(reader)
    if first != second:
        return _patterns_differ(maker, first, second)
    blocking = _blocking(graph, maker, reader)
    if blocking is not None:
        return f"{blocking.op}, which is no loop over elements, reads the one and feeds the other"
    if _is_reduced(maker, reader):
        return "it reduces elements, and the other needs the result for its first one"
    if _lengths(graph, maker) != _lengths(graph, reader):
        return "their elements are not known to have equal lengths"
    steps, arrays = _steps(maker) + _steps(reader), len({*maker.inputs, *reader.inputs})
    if steps > MOST_STEPS or arrays + len(maker.outputs) + len(reader.outputs) > MOST_ARRAYS:
        return f"a loop has at most {MOST_STEPS} steps and {MOST_ARRAYS} arrays"
    return "their loops need rows along different axes"


def _elements(node: Apply) -> tuple[bool, ...]:
    """Return which axes have length 1 in the elements that a kernel passes over."""
    if isinstance(node.op, Fused):
        tables = node.op.formula.tables
        read = [x.type.shape for i, x in enumerate(node.inputs) if i not in tables]
        return joint_pattern(tuple(n == 1 for n in shape) for shape in read)
    found = loop_of(node)
    assert found is not None  # of other nodes ``why_alone`` tells the reason
    return found


def _is_reduced(maker: Apply, reader: Apply) -> bool:
    """Tell whether a kernel reads a reduction of another, which may have its axes put back."""
    made = {*maker.outputs}
    for x in reader.inputs:
        while x.owner is not None and isinstance(x.owner.op, DimShuffle):
            x = x.owner.inputs[0]
        if x not in made:
            continue
        if not isinstance(maker.op, Fused):
            return bool(folded_axes(maker.op))
        formula = maker.op.formula
        step = formula.results[x.index].value - formula.first_step
        return step >= 0 and bool(folded_axes(formula.steps[step].function))
    return False


def _patterns_differ(maker: Apply, first: tuple[bool, ...], second: tuple[bool, ...]) -> str:
    texts = [f"({', '.join('1' if one else 'n' for one in axes)})" for axes in (first, second)]
    if len(first) != len(second):
        passes = f"the one passes over {len(first)} axes, the other over {len(second)}"
        return f"{passes}: {texts[0]} and {texts[1]}"
    if all(one or not other for one, other in zip(first, second, strict=True)):
        return (
            f"its result of {texts[0]} is stretched to {texts[1]}: within that loop it would be "
            "computed again for each element"
        )
    return f"the one passes over {texts[0]}, the other over {texts[1]}"


def _blocking(graph: FunctionGraph, maker: Apply, reader: Apply) -> Apply | None:
    """Return a node that is no kernel and lies on a way from ``maker`` to ``reader``; None: no such
    node.
    """
    seen: set[Apply] = set()
    waiting = list(_users(graph, maker))
    after = []
    while waiting:
        node = waiting.pop()
        if node in seen or node is reader:
            continue
        seen.add(node)
        if not isinstance(node.op, (*SCALAR_OR_REDUCTION, DimShuffle)):
            after.append(node)
        waiting += _users(graph, node)
    before: set[Apply] = set()
    waiting = [x.owner for x in reader.inputs if x.owner is not None]
    while waiting:
        node = waiting.pop()
        if node not in before:
            before.add(node)
            waiting += [x.owner for x in node.inputs if x.owner is not None]
    return next((node for node in after if node in before), None)


def _users(graph: FunctionGraph, node: Apply) -> Iterator[Apply]:
    return (client for z in node.outputs for client, _ in graph.clients[z] if client != "output")


def _lengths(graph: FunctionGraph, node: Apply) -> tuple[Any, ...]:
    """Return the lengths of the elements of a kernel: numbers, or what stands for unknown ones."""
    shapes = shapes_of(graph)
    tables = node.op.formula.tables if isinstance(node.op, Fused) else ()
    read = [shapes.of(x) for i, x in enumerate(node.inputs) if i not in tables]
    joined = [next((n for n in axis if n != 1), 1) for axis in zip(*read, strict=True)]
    return tuple(n if isinstance(n, int) else id(n) for n in joined)


def _steps(node: Apply) -> int:
    return len(node.op.formula.steps) if isinstance(node.op, Fused) else 1
