"""Remove unneeded parts of loops: unused and equal inputs and outputs, constants, loop-invariant
work; and loops of one step.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import ancestors, graph_inputs, rebuild, toposort
from symcomp.ops.control.regions import ALWAYS, place
from symcomp.ops.convert import constant
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.joining import concatenate
from symcomp.rewrite.rule import rule
from symcomp.scan.op import Scan
from symcomp.scan.rules.scan_parts import Carried, ScanParts, SequenceRow, Traced, has_clients


@rule(Scan, why="values that no output needs are not computed")
def scan_drop_unused(node: Apply, graph: Any) -> Any:
    """states, outputs, sequences and captured values without clients -> removed"""
    parts = ScanParts.of(node)
    before = len(parts.results) + len(node.inputs) + sum(len(s.rows) for s in parts.traced)
    live = [end for end in parts.ends if has_clients(graph, end.outs)]
    states: list[Any] = [*parts.traced, *parts.carried]
    while True:
        roots = [end.new for end in live]
        roots += [] if parts.condition is None else [parts.condition]
        needed = set(ancestors(roots))
        more = [s for s in states if s not in live and any(x in needed for x in _inner(s))]
        if not more:
            break
        live += more
    parts.traced = [s for s in parts.traced if s in live]
    parts.carried = [s for s in parts.carried if s in live]
    parts.stacked = [s for s in parts.stacked if s in live]
    for state in parts.traced:
        pairs = list(zip(state.lags, state.rows, strict=True))
        kept = [(lag, x) for lag, x in pairs if x in needed or lag == state.depth]
        state.lags = tuple(lag for lag, _ in kept)
        state.rows = [x for _, x in kept]
    parts.sequences = [s for s in parts.sequences if s.inner in needed]
    parts.captured = [c for c in parts.captured if c.inner in needed]
    n_inputs = 1 + len(states_of(parts)) + len(parts.sequences) + len(parts.captured)
    after = len(parts.results) + n_inputs + sum(len(s.rows) for s in parts.traced)
    return parts.answer(node) if after < before and parts.results else None


def states_of(parts: ScanParts) -> list[Any]:
    """Return the traced states and carried values."""
    return [*parts.traced, *parts.carried]


def _inner(state: Any) -> list[Any]:
    return state.rows if isinstance(state, Traced) else [state.inner]


@rule(Scan, why="the body knows a constant itself, and may be simplified by it")
def scan_inline_constants(node: Apply, graph: Any) -> Any:
    """scan(.., captured constant) -> scan(..) with the constant in its body"""
    parts = ScanParts.of(node)
    known = {c.inner: c.x for c in parts.captured if isinstance(c.x, Constant)}
    if not known:
        return None
    parts.captured = [c for c in parts.captured if c.inner not in known]
    parts.substitute(known)
    return parts.answer(node)


@rule(Scan, why="states that start equal and have equal updates stay equal")
def scan_merge_equal(node: Apply, graph: Any) -> Any:
    """sequences, captured values, states and outputs that are equal -> one of each"""
    parts = ScanParts.of(node)
    return parts.answer(node) if merge_equal(parts) else None


def merge_equal(parts: ScanParts) -> bool:
    """Merge equal parts; return whether there were any."""
    classes = equal_classes(parts)
    first: dict[Any, Any] = {}
    pairs: dict[Variable, Any] = {}
    before = len(parts.results) + len(parts.sequences) + len(parts.captured)

    def keep(key: Any, item: Any) -> bool:
        twin = first.setdefault(key, item)
        if twin is item:
            return True
        if isinstance(item, SequenceRow):
            pairs[item.inner] = twin.inner
        else:
            twin.outs += item.outs
            if not isinstance(item, Traced | Carried):
                return False
            pairs.update(zip(_inner(item), _inner(twin), strict=True))
        return False

    parts.sequences = [s for s in parts.sequences if keep(("row", classes[s.inner]), s)]
    parts.captured = [c for c in parts.captured if keep(("captured", classes[c.inner]), c)]
    parts.traced = [s for s in parts.traced if keep(("traced", classes[s.rows[0]]), s)]
    parts.carried = [s for s in parts.carried if keep(("carried", classes[s.inner]), s)]
    parts.stacked = [s for s in parts.stacked if keep(("stacked", classes[s.new]), s)]
    if len(parts.results) + len(parts.sequences) + len(parts.captured) == before:
        return False
    parts.substitute(pairs)
    return True


def equal_classes(parts: ScanParts) -> dict[Variable, Any]:
    """Number the variables of the body so that equal numbers mean equal values in every step.

    States count as equal if they start equal, until their next rows prove to differ: the coarsest
    partition that the body respects, as in minimizing automata (Hopcroft, 1971).
    """
    states = states_of(parts)
    groups = _numbered(
        [
            (type(s).__name__, getattr(s, "lags", ()), _identity(s.start), _inner(s)[0].type)
            for s in states
        ]
    )
    order = toposort(parts.results)
    while True:
        numbers: dict[Any, int] = {}
        found: dict[Variable, int] = {}

        def number(x: Variable, key: Any, to: dict[Any, int], of: dict[Variable, int]) -> None:
            of[x] = to.setdefault(key, len(to))

        for s, group in zip(states, groups, strict=True):
            for i, x in enumerate(_inner(s)):
                number(x, ("state", group, i), numbers, found)
        for kind, rows in (("row", parts.sequences), ("captured", parts.captured)):
            for r in rows:
                number(r.inner, (kind, _identity(r.x)), numbers, found)
        for x in graph_inputs(parts.results):
            if x not in found:
                number(x, ("constant", _identity(x)), numbers, found)
        for inner in order:
            key = (inner.op, tuple(found[x] for x in inner.inputs))
            for i, y in enumerate(inner.outputs):
                number(y, (key, i, y.type), numbers, found)
        finer = _numbered([(g, found[s.new]) for g, s in zip(groups, states, strict=True)])
        if len(set(finer)) == len(set(groups)):
            return found
        groups = finer


def _numbered(keys: list[Any]) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def _identity(x: Variable) -> Any:
    return x.signature() if isinstance(x, Constant) else x


@rule(Scan, why="loop-invariant values are computed once")
def scan_hoist_invariant(node: Apply, graph: Any) -> Any:
    """scan with f(captured) in its body -> scan that captures f(captured)"""
    parts = ScanParts.of(node)
    fixed: dict[Variable, Any] = {c.inner: c.x for c in parts.captured}
    order = toposort(parts.results)
    regions = place(order, parts.results)
    hoisted: set[Variable] = set()
    for inner in order:
        known = [x in fixed or x in hoisted for x in inner.inputs]
        constants = [isinstance(x, Constant) for x in inner.inputs]
        all_known = all(a or b for a, b in zip(known, constants, strict=True))
        if regions[inner] == ALWAYS and any(known) and all_known and not inner.op.destroy_map:
            hoisted.update(inner.outputs)
    if not hoisted:
        return None
    used: dict[Variable, None] = {}
    for inner in order:
        if not any(y in hoisted for y in inner.outputs):
            used.update((x, None) for x in inner.inputs if x in hoisted)
    used.update((y, None) for y in parts.results if y in hoisted)
    outside = rebuild([*used], fixed)
    fresh = [SequenceRow(x.type(x.name), y) for x, y in zip(used, outside, strict=True)]
    parts.captured += fresh
    parts.substitute(dict(zip(used, (r.inner for r in fresh), strict=True)))
    return parts.answer(node)


@rule(Scan, why="a single step needs no loop")
def scan_unroll_one_step(node: Apply, graph: Any) -> Any:
    """scan of one step -> the step"""
    parts = ScanParts.of(node)
    if not isinstance(parts.n, Constant) or int(parts.n.data) != 1:
        return None
    given: dict[Variable, Any] = {c.inner: c.x for c in parts.captured}
    given.update((c.inner, c.start) for c in parts.carried)
    given.update((s.inner, s.x[0]) for s in parts.sequences)
    for state in parts.traced:
        depth = state.depth
        places = [depth - lag for lag in state.lags]
        given.update((x, state.start[p]) for x, p in zip(state.rows, places, strict=True))
    values = iter(rebuild(parts.results, given, strict=False))
    found: dict[Variable, Any] = {}
    for traced in parts.traced:
        rows = concatenate([traced.start, shape_padleft(next(values))])
        found.update((out, rows) for out in traced.outs)
    for carried in parts.carried:
        value = next(values)
        found.update((out, value) for out in carried.outs)
    for stacked in parts.stacked:
        value = shape_padleft(next(values))
        found.update((out, value) for out in stacked.outs)
    found.update((out, constant(1)) for out in parts.done)
    return [found[out] for out in node.outputs]
