"""Fusion: replace scalar functions and reductions of the same elements by one op with one loop.

Each node goes into one group, values with clients outside become outputs, and values that clients
stretch stay outside. Groups stay within one lazy region. Only values that cost no more memory so
are computed in several groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from functools import cache
from typing import Any

from symcomp.codegen.functions.c_scalars import scalar_text
from symcomp.core.dtype import is_discrete
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.storage import is_widened
from symcomp.ops.control.regions import Placement, place
from symcomp.ops.elementwise.elemwise import Elemwise, ScalarOp
from symcomp.ops.formulas.blocks import Pattern
from symcomp.ops.formulas.formula import (
    AXIS_FUNCTIONS,
    AXIS_REDUCTIONS,
    Formula,
    Literal,
    Result,
    Step,
    folded_axes,
    joint_pattern,
    line_axes,
    restoring,
)
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.checks import join_compared
from symcomp.rewrite.levels import DisjointSets, Kind, NodeGroups, assign_levels, bring_together
from symcomp.rewrite.recomputing import compute_again
from symcomp.rewrite.shapes import Shapes, shapes_of
from symcomp.rewrite.trace import Firing

# Compile time grows faster than the length of a loop's body; beyond this number of steps there is
# no more to gain, as one pass to store and load the values between two groups is shared by all of
# them.
MOST_STEPS = 128
# Processors prefetch some ten to thirty streams of memory; a loop over more arrays is slower than
# two loops.
MOST_ARRAYS = 24
# A sum of more arrays becomes several, as kernels read no more than 64, and those of devices twice
# as many of complex numbers.
MOST_TERMS = 32
# Functions that are fused with the elements that they read also where these are a single row:
# computing the elements again in each pass costs less than storing them.
OF_NORMS = (Norm, UnitVector, ProjectionLength, Cosine, UnitPowerSum, SubtractProjection)


def fuse(
    graph: FunctionGraph,
    firings: list[Firing],
    by_bytes: bool = False,
    stays: Container[Apply] = (),
) -> None:
    """Replace connected scalar functions, and reductions of their results, by fused ops. In linear
    time.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        New firings are appended.
    by_bytes : bool
        Whether loops take the time of the bytes that they move. Then they compute cheap values of
        other loops again, in each of their passes, too, and are joined where only a comparison in
        the graph tells that their rows have equal lengths.
    stays : container of Apply
        Nodes that are not fused.
    """
    _divide_sums(graph, firings)
    _use_known_norms(graph, firings)
    order = graph.toposort()
    regions, shapes = place(order, graph.outputs), shapes_of(graph)
    checked = _checked_lengths(order, regions, shapes) if by_bytes else DisjointSets()
    kinds, patterns = _kinds(order, regions, shapes, checked, stays)
    levels = assign_levels(order, kinds)
    every = {*kinds.values()} - {None}
    # Rows that are read several times come first.
    passes = {kinds[node] for node in order if isinstance(node.op, AXIS_FUNCTIONS)} - {None}
    for wanted in (passes, every - passes):
        if wanted:
            bring_together(
                order, kinds, levels, lambda node: _users(graph, node), wanted, _is_number
            )
    if by_bytes:
        compute_again(graph, kinds, levels, patterns, firings)
        order = graph.toposort()
    components = NodeGroups()
    for node in order:
        kind, level = kinds[node], levels[node]
        if kind is None:
            continue
        pattern = loop_of(node)
        if pattern is not None and all(pattern) and not _is_number(node):
            components.join_all(level, kind, node)
        for x in node.inputs:
            maker = x.owner
            if maker is not None and kinds.get(maker) == kind and levels[maker] == level:
                components.join(maker, node)
            elif not isinstance(x, Constant) and _pattern(x.type.shape) == pattern:
                components.join_users(level, kind, x, node)
    for group in components.groups([node for node in order if kinds[node] is not None]):
        for part in _parts(group, graph):
            if len(part) > 1:
                _replace(graph, part, firings)


def _divide_sums(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Add up many arrays in several steps, in the same order."""
    for node in graph.toposort():
        op, terms = node.op, node.inputs
        is_sum = isinstance(op, Elemwise) and not op.scalar.arity and not op.inplace
        if not is_sum or len(terms) <= MOST_TERMS:
            continue
        total: Any = op(*terms[:MOST_TERMS])
        for first in range(MOST_TERMS, len(terms), MOST_TERMS - 1):
            total.source = node.source
            total = op(total, *terms[first : first + MOST_TERMS - 1])
        total.source = node.outputs[0].source
        firings.append(Firing("fusion", "divide", node.source, str(node), str(total.owner)))
        graph.replace(node.outputs[0], total)


def _use_known_norms(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Divide vectors by their norms where these are computed, too, also within a cosine."""
    for node in graph.toposort():
        if not isinstance(node.op, UnitVector):
            continue
        (x,), axes, z = node.inputs, node.op.axes, node.outputs[0]
        clients = [client for client, _ in graph.clients[x] if client != "output"]
        if not any(n.op in (Norm(axes), ProjectionLength(axes), Cosine(axes)) for n in clients):
            continue
        norm = next((n.outputs[0] for n in clients if n.op == Norm(axes)), None)
        quotient = x / expand_dims(Norm(axes)(x) if norm is None else norm, axes)
        quotient.source = node.source
        firings.append(Firing("fusion", "known_norm", node.source, str(node), str(quotient.owner)))
        graph.replace(z, quotient)


def _users(graph: FunctionGraph, node: Apply) -> Iterator[Apply]:
    return (client for z in node.outputs for client, _ in graph.clients[z] if client != "output")


def _kinds(
    order: Sequence[Apply],
    regions: Placement,
    shapes: Shapes,
    checked: DisjointSets[Any],
    stays: Container[Apply],
) -> tuple[dict[Apply, Kind], dict[Kind, Pattern]]:
    """Number the nodes so that equal numbers can be fused: nodes that pass over elements of one
    shape, or rows of them, in one lazy region. If rows matter, their lengths are known to be equal,
    or are checked. Return the patterns of the elements, too.
    """
    numbers: dict[Any, int] = {}
    kinds: dict[Apply, Kind] = {}
    lines_of: dict[Apply, Any] = {}
    axes = _axes_of_rows(order)
    elements = {_row(pattern, lines): pattern for pattern, lines in axes.items()}
    for node in order:
        kinds[node] = None
        pattern = loop_of(node)
        lines = {*_lines(node)}
        if pattern is None or node in stays:
            continue
        if lines and not lines <= {*axes.get(pattern, ())}:
            single = pattern not in axes and all(_row(pattern, lines))
            if not single or not isinstance(node.op, OF_NORMS):
                continue
        if pattern in axes:
            keys = [(regions[node], shapes.key(_elements(node), a)) for a in axes[pattern]]
            lines_of[node] = tuple(checked.find(key) for key in keys)
        elif pattern in elements:
            # Values of rows belong to the elements that they come from: other elements may have as
            # many rows, of another length.
            makers = [x.owner for x in node.inputs if x.owner in lines_of]
            if any(kinds[maker] is not None for maker in makers):
                lines_of[node] = lines_of[makers[0]]
                pattern = elements[pattern]
        key = (pattern, regions[node], lines_of.get(node))
        kinds[node] = numbers.setdefault(key, len(numbers))
    return kinds, {kind: pattern for (pattern, *_), kind in numbers.items()}


def _checked_lengths(
    order: Sequence[Apply], regions: Placement, shapes: Shapes
) -> DisjointSets[Any]:
    """Return sets of pairs of a region and a length of elements in rows: a call in which two
    lengths of a set differ fails, as a scalar function in the region takes both.
    """
    found: DisjointSets[Any] = DisjointSets()
    with_rows = _axes_of_rows(order)
    for node in order:
        compares = isinstance(node.op, Elemwise) and len(node.inputs) > 1
        if compares and loop_of(node) in with_rows:
            join_compared(found, node, shapes, regions[node])
    return found


def _elements(node: Apply) -> Any:
    """Return a variable with the shape of the elements that the node passes over."""
    if isinstance(node.op, DimShuffle) and _lines(node):
        return node.inputs[0].owner.inputs[0]
    return node.outputs[0] if type(node.op) is Elemwise else node.inputs[0]


def _axes_of_rows(order: Sequence[Apply]) -> dict[Pattern, tuple[int, ...]]:
    """Return, for each shape of elements, the axes of rows: those along which most ops need whole
    rows. Only where there are several rows.
    """
    votes: dict[Pattern, Counter[tuple[int, ...]]] = {}
    for node in order:
        axes = _lines(node)
        if axes:
            x = node.inputs[0]
            x = x.owner.inputs[0] if isinstance(node.op, DimShuffle) else x
            pattern = _pattern(x.type.shape)
            if not all(_row(pattern, axes)):
                votes.setdefault(pattern, Counter())[axes] += 1
    return {pattern: count.most_common(1)[0][0] for pattern, count in votes.items()}


def _lines(node: Apply) -> tuple[int, ...]:
    """Return the axes along which the node needs whole rows: its result depends on all their
    elements, and is used together with them.
    """
    if isinstance(node.op, AXIS_FUNCTIONS + AXIS_REDUCTIONS):
        return line_axes(node.op)
    if isinstance(node.op, DimShuffle):
        maker = node.inputs[0].owner
        axes = folded_axes(maker.op) if maker is not None else ()
        rank = len(node.op.order)
        if axes and rank == maker.inputs[0].ndim and node.op == restoring(axes, rank):
            return axes
    return ()


def _changes_nothing(op: DimShuffle) -> bool:
    """Tell whether the op only drops axes of length 1 where it inserts such axes."""
    return op.ndim == len(op.order) and all(a in ("x", i) for i, a in enumerate(op.order))


def _row(pattern: Pattern, axes: Collection[int]) -> Pattern:
    """Return the pattern of a value reduced over ``axes``, which stay at length 1."""
    return tuple(one or a in axes for a, one in enumerate(pattern))


def _is_number(node: Apply) -> bool:
    """Tell whether a node computes with integers alone, such as lengths: these are needed early,
    and on the host.
    """
    return all(is_discrete(x.dtype) for x in node.inputs)


def loop_of(node: Apply) -> Pattern | None:
    """Return which axes have length 1 in the elements that the node passes over; None if it is no
    such loop.
    """
    if is_widened(node):
        return None
    if isinstance(node.op, (Reduce, *AXIS_FUNCTIONS, *AXIS_REDUCTIONS)) and line_axes(node.op):
        return _pattern(node.inputs[0].type.shape)
    if isinstance(node.op, DimShuffle):
        if _lines(node):
            return _pattern(node.inputs[0].owner.inputs[0].type.shape)
        return _pattern(node.outputs[0].type.shape) if _changes_nothing(node.op) else None
    if type(node.op) is Elemwise and not node.op.inplace and not all(map(_is_literal, node.inputs)):
        dtypes = tuple(x.type.dtype for x in (*node.inputs, *node.outputs))
        if not has_c(node.op.scalar, dtypes):
            return None  # ops fused with it would run without a kernel, too
        pattern = _pattern(node.outputs[0].type.shape)
        # A type may know more than the inputs do: then its length 1 is not stretched.
        same = joint_pattern(_pattern(x.type.shape) for x in node.inputs) == pattern
        return pattern if same else None
    return None


def is_one_loop(node: Apply) -> bool:
    """Tell whether a node is a scalar function or a reduction that can be part of a loop."""
    return isinstance(node.op, (Elemwise, Reduce)) and loop_of(node) is not None


def has_c(row: ScalarOp, dtypes: tuple[str, ...]) -> bool:
    return scalar_text(row, dtypes[:-1], dtypes[-1]) is not None


@cache
def _pattern(shape: tuple[int | None, ...]) -> Pattern:
    return tuple(n == 1 for n in shape)


def _parts(group: Sequence[Apply], graph: FunctionGraph) -> Iterator[list[Apply]]:
    """Divide a group, in topological order, where it has too many steps or arrays."""
    part: list[Apply] = []
    inputs: set[Variable] = set()
    open_outputs: dict[Variable, int] = {}  # clients that come later, or are outside
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
    """Replace ``nodes``, in topological order, by one op."""
    computing = [node for node in nodes if not isinstance(node.op, DimShuffle)]
    if len(computing) < 2:
        return
    members = set(computing)
    for node in nodes:
        if node.inputs[0].owner in members:
            members.add(node)
    formula, inputs, shown = formula_of_nodes(graph, computing, members)
    if not inputs:
        return
    op = Fused(formula, tuple(node.source for node in computing))
    fused = Apply(op, inputs, [z.type for z in shown], shown[-1].owner.source)
    before = ", ".join(str(node.op) for node in computing)
    firings.append(Firing("fusion", "fuse", fused.source, before, str(op)))
    for old, new in zip(shown, fused.outputs, strict=True):
        new.source = old.source
        graph.replace(old, new)


def formula_of_nodes(
    graph: FunctionGraph, nodes: Sequence[Apply], members: Collection[Apply]
) -> tuple[Formula, list[Any], list[Any]]:
    """Return the formula of ``nodes``, its inputs, and the outputs that have other clients."""
    inputs: dict[Any, int] = {}
    literals: dict[Literal, int] = {}
    taken = [[_taken(x, members) for x in node.inputs] for node in nodes]
    for x in (x for arguments in taken for x in arguments):
        if _is_literal(x):
            literals.setdefault(Literal.of(x.data), len(literals))
        elif x.owner not in members:
            inputs.setdefault(x, len(inputs))
    first = len(inputs) + len(literals)
    number: dict[Variable, int] = dict(inputs)
    steps = []
    for position, (node, arguments) in enumerate(zip(nodes, taken, strict=True), first):
        numbers = tuple(
            len(inputs) + literals[Literal.of(x.data)] if _is_literal(x) else number[x]
            for x in arguments
        )
        function = node.op.scalar if isinstance(node.op, Elemwise) else node.op
        steps.append(Step(function, numbers, node.outputs[0].type.dtype))
        number[node.outputs[0]] = position
    shown = [node.outputs[0] for node in nodes if _used_outside(graph, node.outputs[0], members)]
    formula = Formula(
        tuple(x.type.dtype for x in inputs),
        tuple(literals),
        tuple(steps),
        tuple(Result(number[z], folded_axes(z.owner.op)) for z in shown),
    )
    return formula, list(inputs), shown


def _taken(x: Any, members: Collection[Apply]) -> Any:
    """Return ``x``, or the reduction that it only puts axes back into, if that is a member."""
    while x.owner in members and isinstance(x.owner.op, DimShuffle):
        x = x.owner.inputs[0]
    return x


def _used_outside(graph: FunctionGraph, x: Variable, members: Collection[Apply]) -> bool:
    """Tell whether ``x``, or its version with axes put back, has clients outside."""
    pending = [x]
    while pending:
        for client, _ in graph.clients[pending.pop()]:
            if client not in members:
                return True
            if isinstance(client.op, DimShuffle):
                pending.append(client.outputs[0])
    return False
