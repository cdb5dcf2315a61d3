"""Rows that nobody reads are not kept, and steps of which nothing is read are not done."""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply, Constant
from symcomp.core.tensor import TensorVariable
from symcomp.ops.alloc import zeros
from symcomp.ops.axes import shape_padleft
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.index import Subtensor
from symcomp.ops.join import stack
from symcomp.ops.pattern import Slice
from symcomp.ops.scalar_math import maximum, minimum
from symcomp.ops.shape import shape_tuple
from symcomp.rewrite.rule import computed_by, elementwise, rule
from symcomp.scan.lengths import row_lengths
from symcomp.scan.op import Scan
from symcomp.scan.rows import Continued, LastRows, LeadingRows
from symcomp.scan.rules.parts import Carried, Parts, Traced, has_clients, registers_of

# More rows than these are not moved on from step to step.
MOST_REGISTERS = 4


@rule(Scan, why="the rows that nobody reads need no memory")
def scan_shorten_traces(node: Apply, graph: Any) -> Any:
    """state of which the last k rows are read, for a small number k -> k carried values"""
    parts = Parts.of(node)
    groups: list[tuple[Traced, list[Carried]]] = []
    for state in parts.traced:
        count = last_rows_read(graph, state.outs)
        if count is not None and max(count, state.depth) <= MOST_REGISTERS:
            registers = registers_of(state, count)
            if all(c.inner.type.is_super(c.start.type) for c in registers):
                groups.append((state, registers))
    if not groups:
        return None
    parts.traced = [s for s in parts.traced if not any(s is state for state, _ in groups)]
    parts.carried += [c for _, registers in groups for c in registers]
    ends, steps = _built(parts)
    for state, registers in groups:
        rows = LastRows(state.depth)(steps, *(ends[id(c)] for c in reversed(registers)))
        parts.outside.update((out, rows) for out in state.outs)
    return _answer(node, parts, ends, steps)


@rule(Scan, why="the rows that nobody reads need no memory")
def scan_shorten_outputs(node: Apply, graph: Any) -> Any:
    """stacked output of which the last k rows are read, for a small number k -> carried values"""
    parts = Parts.of(node)
    read = [last_rows_read(graph, stacked.outs) for stacked in parts.stacked]
    if not any(count is not None and count <= MOST_REGISTERS for count in read):
        return None
    shapes = [shape_tuple(x) if isinstance(x, TensorVariable) else None for x in node.inputs]
    groups = []
    lengths = row_lengths(node.op, node, shapes)
    for stacked, count, row in zip(parts.stacked, read, lengths, strict=True):
        if count is None or count > MOST_REGISTERS or None in row:
            continue
        start = zeros([1, *row], stacked.new.dtype)
        state = Traced((1,), [stacked.new.type()], start, stacked.new, stacked.outs)
        groups.append((stacked, registers_of(state, count)))
    if not groups:
        return None
    parts.stacked = [s for s in parts.stacked if not any(s is stacked for stacked, _ in groups)]
    parts.carried += [c for _, registers in groups for c in registers]
    ends, steps = _built(parts)
    for stacked, registers in groups:
        rows = LastRows(0)(steps, *(ends[id(c)] for c in reversed(registers)))
        parts.outside.update((out, rows) for out in stacked.outs)
    return _answer(node, parts, ends, steps)


def _built(parts: Parts) -> tuple[dict[int, Any], Any]:
    """What each end of a scan put together again gives, and the number of steps done."""
    outputs = parts.apply()
    ends = dict(zip(map(id, parts.ends), outputs, strict=False))
    return ends, outputs[-1] if parts.done else parts.n


def _answer(node: Apply, parts: Parts, ends: dict[int, Any], steps: Any) -> list[Any]:
    found = dict(parts.outside)
    for end in parts.ends:
        found.update((out, ends[id(end)]) for out in end.outs)
    found.update((out, steps) for out in parts.done)
    return [found[out] for out in node.outputs]


def last_rows_read(graph: Any, outs: list[Any]) -> int | None:
    """How many rows at the end are all that is read, also through slices up to the end; None if
    nothing is read, or more.
    """
    if not has_clients(graph, outs):
        return None
    most, pending = 1, list(outs)
    while pending:
        for client, position in graph.clients.get(pending.pop(), ()):
            if isinstance(client, str) or not isinstance(client.op, Subtensor) or position:
                return None
            first, rest = client.op.pattern[0], client.op.pattern[1:]
            count = _from_the_end(first)
            if count is not None:
                most = max(most, count)
            elif _is_cut(first) and not rest:
                pending.append(client.outputs[0])
            else:
                return None
    return most


def _is_cut(entry: Any) -> bool:
    """True for ``c:`` with a number c >= 0."""
    open_ended = isinstance(entry, Slice) and entry.stop is None and entry.step is None
    return open_ended and isinstance(entry.start or 0, int) and (entry.start or 0) >= 0


def _from_the_end(entry: Any) -> int | None:
    """How many rows at the end an index or slice is about, given all of them or so many; None if
    more.
    """
    if isinstance(entry, int):
        return -entry if entry < 0 else None
    if not isinstance(entry, Slice):
        return None
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    if not isinstance(step, int):
        return None
    if step < 0:
        # From the last row, or one counted from there, down to one counted from there.
        start, stop = stop, -1 if start is None else start
    far = isinstance(start, int) and start < 0
    near = stop is None or (isinstance(stop, int) and stop < 0)
    return -int(start) if far and near else None  # type: ignore[arg-type]


@rule(Subtensor, why="the rows that are read are there: no others need be made")
def scan_read_last_rows(node: Apply, graph: Any) -> Any:
    """last(n, x, y)[-1] -> y;   last(n, x, y)[c:] -> last(n - c, x, y)"""
    last = computed_by(node.inputs[0], LastRows)
    if last is None or not node.op.pattern:
        return None
    (n, *rows), more = last.inputs, last.op.more
    first, *rest = node.op.pattern
    count = _from_the_end(first)
    if count is None or count > len(rows):
        cut = _is_cut(first) and not rest
        return LastRows(more - (first.start or 0))(n, *rows) if cut else None
    known = max(more + (int(n.data) if isinstance(n, Constant) else 0), 0)
    if isinstance(first, int) and count <= known:
        row = rows[first]
        return Subtensor(tuple(rest))(row, *node.inputs[1:]) if rest else row
    if count <= known:
        kept = stack(rows[-count:]) if count > 1 else shape_padleft(rows[-1])
        whole = node.op.pattern == (Slice(-count),)
        return kept if whole else node.op(kept, *node.inputs[1:])
    kept = stack(rows)[maximum(len(rows) - more - n, 0) :]
    return node.op(kept, *node.inputs[1:])


@rule(Subtensor, why="where there is a last row, it is that of the second part")
def scan_last_of_continued(node: Apply, graph: Any) -> Any:
    """continued(x, y)[-1] -> y[-1]"""
    rows = computed_by(node.inputs[0], Continued)
    if rows is None or node.op.pattern[0] not in (-1, Slice(-1)):
        return None
    return node.op(rows.inputs[1], *node.inputs[1:])


@rule(Scan, why="what nobody reads need not be computed")
def scan_skip_last_steps(node: Apply, graph: Any) -> Any:
    """scan of n steps of which the first m rows are read -> scan of min(n, m) steps"""
    parts = Parts.of(node)
    if any(has_clients(graph, c.outs) for c in parts.carried) or has_clients(graph, parts.done):
        return None
    most, n = 0, parts.n
    rows_of: list[Any] = [*parts.traced, *parts.stacked]
    for end in rows_of:
        count = first_rows_read(graph, end.outs)
        if count is None:
            return None
        most = max(most, count - _depth(end))
    if _at_most(n, most):
        return None
    fewer = as_tensor_variable(most, dtype="int64")
    parts.n = fewer if isinstance(n, Constant) else minimum(n, fewer)
    ends, steps = _built(parts)
    for end in rows_of:
        rows = LeadingRows()(ends[id(end)], n + _depth(end))
        parts.outside.update((out, rows) for out in end.outs)
    found = parts.outside
    return [found.get(out) for out in node.outputs]


def _depth(end: Any) -> int:
    return end.depth if isinstance(end, Traced) else 0


@rule(Subtensor, why="the rows that are read are there: no others need be made")
def scan_read_leading_rows(node: Apply, graph: Any) -> Any:
    """leading(x, n)[i] -> x[i];   leading(x, n)[c:] -> leading(x[c:], n - c)"""
    leading = computed_by(node.inputs[0], LeadingRows)
    if leading is None or not node.op.pattern:
        return None
    (x, n), first = leading.inputs, node.op.pattern[0]
    if _from_the_start(first) is not None:
        return node.op(x, *node.inputs[1:])
    if _is_cut(first) and len(node.op.pattern) == 1:
        return LeadingRows()(node.op(x), maximum(n - (first.start or 0), 0))
    return None


def _at_most(n: Any, most: int) -> bool:
    """True if the number of steps is seen to be so small."""
    known = [n]
    if elementwise(n, "minimum") is not None:
        known += n.owner.inputs
    return any(isinstance(x, Constant) and int(x.data) <= most for x in known)


def first_rows_read(graph: Any, outs: list[Any]) -> int | None:
    """How many rows at the start are all that is read, also through slices up to the end; None if
    more.
    """
    most, pending = 0, [(out, 0) for out in outs]
    while pending:
        rows, skipped = pending.pop()
        for client, position in graph.clients.get(rows, ()):
            if isinstance(client, str) or not isinstance(client.op, Subtensor) or position:
                return None
            first: Any = client.op.pattern[0]
            rest = client.op.pattern[1:]
            count = _from_the_start(first)
            if count is not None:
                most = max(most, skipped + count)
            elif _is_cut(first) and not rest:
                pending.append((client.outputs[0], skipped + (first.start or 0)))
            else:
                return None
    return most


def _from_the_start(entry: Any) -> int | None:
    """How many rows at the start an index or slice is about; None if it may be more."""
    if isinstance(entry, int):
        return entry + 1 if entry >= 0 else None
    if not isinstance(entry, Slice):
        return None
    start, stop, step = entry.start or 0, entry.stop, entry.step or 1
    if not all(isinstance(part, int) and part >= 0 for part in (start, stop, step)):
        return None
    return stop  # type: ignore[return-value]
