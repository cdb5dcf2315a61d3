"""Drop rows that are never read, and skip steps whose results are never read."""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply, Constant
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import maximum, minimum
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import Slice, left_out
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.joining import stack
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.ops.shapes.stack import Stack
from symcomp.rewrite.rule import computed_by, elementwise, rule
from symcomp.scan.lengths import row_lengths
from symcomp.scan.op import Scan
from symcomp.scan.rows import Continued, LastRows, LeadingRows
from symcomp.scan.rules.scan_parts import (
    Carried,
    ScanParts,
    Traced,
    carry_states,
    has_clients,
    known_rows,
    registers_of,
)

# The most rows that are carried from step to step.
MOST_REGISTERS = 4


@rule(Scan, why="rows that are never read need no memory")
def scan_shorten_traces(node: Apply, graph: Any) -> Any:
    """state of which the last k rows are read, for a small number k -> k carried values"""
    parts = ScanParts.of(node)
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
        rows = LastRows(state.depth)(steps, stack([ends[id(c)] for c in reversed(registers)]))
        parts.outside.update((out, rows) for out in state.outs)
    return _answer(node, parts, ends, steps)


@rule(Scan, why="rows that are never read need no memory")
def scan_shorten_outputs(node: Apply, graph: Any) -> Any:
    """stacked output of which the last k rows are read, for a small number k -> carried values"""
    parts = ScanParts.of(node)
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
        rows = LastRows(0)(steps, stack([ends[id(c)] for c in reversed(registers)]))
        parts.outside.update((out, rows) for out in stacked.outs)
    return _answer(node, parts, ends, steps)


def _built(parts: ScanParts) -> tuple[dict[int, Any], Any]:
    """Return the outputs of each end of a rebuilt scan, and the number of steps done."""
    outputs = parts.apply()
    ends = dict(zip(map(id, parts.ends), outputs, strict=False))
    return ends, outputs[-1] if parts.done else parts.n


def _answer(node: Apply, parts: ScanParts, ends: dict[int, Any], steps: Any) -> list[Any]:
    found = dict(parts.outside)
    for end in parts.ends:
        found.update((out, ends[id(end)]) for out in end.outs)
    found.update((out, steps) for out in parts.done)
    return [found[out] for out in node.outputs]


def last_rows_read(graph: Any, outs: list[Any]) -> int | None:
    """Return the number of last rows that all clients read, also through slices that omit some at
    either end; None if nothing is read, or more.
    """
    if not has_clients(graph, outs):
        return None
    most, pending = 1, [(out, 0) for out in outs]
    while pending:
        rows, behind = pending.pop()
        for client, position in graph.clients.get(rows, ()):
            if isinstance(client, str) or not isinstance(client.op, Subtensor) or position:
                return None
            first: Any = client.op.pattern[0]
            count, cut = _from_the_end(first), left_out(first)
            if count is not None:
                most = max(most, behind + count)
            elif cut is not None and len(client.op.pattern) == 1:
                pending.append((client.outputs[0], behind + cut[1]))
            else:
                return None
    return most


def _from_the_end(entry: Any) -> int | None:
    """Return how many rows at the end an index or slice reads, of any number of rows; None if more.
    """
    if isinstance(entry, int):
        return -entry if entry < 0 else None
    if not isinstance(entry, Slice):
        return None
    start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
    if not isinstance(step, int):
        return None
    if step < 0:
        # From the last row, or one counted from the end, down to one counted from the end.
        start, stop = stop, -1 if start is None else start
    far = isinstance(start, int) and start < 0
    near = stop is None or (isinstance(stop, int) and stop < 0)
    return -int(start) if far and near else None  # type: ignore[arg-type]


@rule(Scan, why="steps whose rows are not read keep none")
def scan_split_unread(node: Apply, graph: Any) -> Any:
    """scan of n steps of which the last m rows are read -> scan of n - m steps that keeps its last
    state, and scan of the m steps that follow
    """
    parts = ScanParts.of(node)
    rows: list[Any] = [*parts.traced, *parts.stacked]
    used = [end for end in rows if has_clients(graph, end.outs)]
    counts = [last_rows_read(graph, end.outs) for end in used]
    most = max((count for count in counts if count is not None), default=0)
    if parts.condition is not None or None in counts or most <= MOST_REGISTERS:
        return None
    n, fewer = parts.n, as_tensor_variable(most, dtype="int64")
    if _at_most(n, 2 * most) or any(s.depth > MOST_REGISTERS for s in parts.traced):
        return None
    last = fewer if isinstance(n, Constant) else minimum(n, fewer)
    first = n - last
    head = ScanParts.of(node)
    head.n, head.stacked = first, []
    carried, registers = head.carried, carry_states(head)
    ends, _ = _built(head)
    parts.n = last
    for state, group in zip(parts.traced, registers, strict=True):
        state.start = stack([ends[id(c)] for c in reversed(group)])
    for before, after in zip(carried, parts.carried, strict=True):
        after.start = ends[id(before)]
    for s in parts.sequences:
        s.x = known_rows(s, n, graph)[first:]
    ends, _ = _built(parts)
    for end in rows:
        kept = LastRows(_depth(end))(n, ends[id(end)])
        parts.outside.update((out, kept) for out in end.outs)
    parts.outside.update((out, ends[id(c)]) for c in parts.carried for out in c.outs)
    return [parts.outside[out] for out in node.outputs]


@rule(Subtensor, why="the rows that are read exist already")
def scan_read_last_rows(node: Apply, graph: Any) -> Any:
    """last(n, y)[-k] -> y[-k];   last(n, y)[c:] -> last(n - c, y)"""
    last = computed_by(node.inputs[0], LastRows)
    if last is None or not node.op.pattern:
        return None
    (n, y), more = last.inputs, last.op.more
    first, *rest = node.op.pattern
    count, cut = _from_the_end(first), left_out(first)
    if count is None:
        if cut is None or rest:
            return None
        return LastRows(more - sum(cut))(n, y[: -cut[1]] if cut[1] else y)
    known = max(more + (int(n.data) if isinstance(n, Constant) else 0), 0)
    if count > known:
        y = y[maximum(shape_tuple(y)[0] - more - n, 0) :]
    elif count <= len(made := _rows_of(y)):
        rows = made[-count:]
        if isinstance(first, int):
            return Subtensor(tuple(rest))(rows[0], *node.inputs[1:]) if rest else rows[0]
        y = stack(rows) if count > 1 else shape_padleft(rows[0])
        if node.op.pattern == (Slice(-count),):
            return y
    return node.op(y, *node.inputs[1:])


def _rows_of(y: Any) -> list[Any]:
    """Return the rows that ``y`` is made of, as a stack or as a view of one; none otherwise."""
    node = y.owner
    if node is not None and isinstance(node.op, Stack):
        return list(node.inputs)
    is_padded = node is not None and node.op == DimShuffle(y.ndim - 1, ("x", *range(y.ndim - 1)))
    return list(node.inputs) if is_padded else []


@rule(Subtensor, why="the last row, if there is one, is that of the second part")
def scan_last_of_continued(node: Apply, graph: Any) -> Any:
    """continued(x, y)[-1] -> y[-1]"""
    rows = computed_by(node.inputs[0], Continued)
    if rows is None or node.op.pattern[0] not in (-1, Slice(-1)):
        return None
    return node.op(rows.inputs[1], *node.inputs[1:])


@rule(Scan, why="rows that are never read need not be computed")
def scan_skip_last_steps(node: Apply, graph: Any) -> Any:
    """scan of n steps of which the first m rows are read -> scan of min(n, m) steps"""
    parts = ScanParts.of(node)
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


@rule(Subtensor, why="the rows that are read exist already")
def scan_read_leading_rows(node: Apply, graph: Any) -> Any:
    """leading(x, n)[i] -> x[i];   leading(x, n)[c:] -> leading(x[c:], n - c)"""
    leading = computed_by(node.inputs[0], LeadingRows)
    if leading is None or not node.op.pattern:
        return None
    (x, n), first = leading.inputs, node.op.pattern[0]
    if _from_the_start(first) is not None:
        return node.op(x, *node.inputs[1:])
    cut = left_out(first)
    if cut is not None and len(node.op.pattern) == 1:
        return LeadingRows()(x[cut[0] :], maximum(n - sum(cut), 0))
    return None


def _at_most(n: Any, most: int) -> bool:
    """Tell whether the number of steps is visibly at most ``most``."""
    known = [n]
    if elementwise(n, "minimum") is not None:
        known += n.owner.inputs
    return any(isinstance(x, Constant) and int(x.data) <= most for x in known)


def first_rows_read(graph: Any, outs: list[Any]) -> int | None:
    """Return the number of first rows that all clients read, also through slices up to the end;
    None if more.
    """
    most, pending = 0, [(out, 0) for out in outs]
    while pending:
        rows, skipped = pending.pop()
        for client, position in graph.clients.get(rows, ()):
            if isinstance(client, str) or not isinstance(client.op, Subtensor) or position:
                return None
            first: Any = client.op.pattern[0]
            rest = client.op.pattern[1:]
            count, cut = _from_the_start(first), left_out(first)
            if count is not None:
                most = max(most, skipped + count)
            elif cut is not None and not rest:
                pending.append((client.outputs[0], skipped + cut[0]))
            else:
                return None
    return most


def _from_the_start(entry: Any) -> int | None:
    """Return how many rows at the start an index or slice reads; None if it may be more."""
    if isinstance(entry, int):
        return entry + 1 if entry >= 0 else None
    if not isinstance(entry, Slice):
        return None
    start, stop, step = entry.start or 0, entry.stop, entry.step or 1
    if not all(isinstance(part, int) and part >= 0 for part in (start, stop, step)):
        return None
    return stop  # type: ignore[return-value]
