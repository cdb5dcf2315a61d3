"""Move work out of loops: compute it for all steps at once, before or after the loop."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import ancestors, clients_of, rebuild, toposort
from symcomp.ops.control.regions import ALWAYS, place
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.linalg.products import Dot, contract_equal
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.canonicalize.structure import zeros_in
from symcomp.rewrite.rule import elementwise, rule
from symcomp.scan.op import Scan
from symcomp.scan.rules.batching import Known, batch, batch_node, grows, most_axes, placeholder
from symcomp.scan.rules.scan_parts import Carried, ScanParts, SequenceRow, Stacked, known_rows

WHOLE = Slice()
VIEWS = (DimShuffle, Subtensor, ShapeI)


@rule(Scan, why="one matrix product for all rows replaces many products of vectors")
def scan_push_out_sequences(node: Apply, graph: Any) -> Any:
    """scan with f(row, captured) in its body -> scan over f(sequence, captured)"""
    parts = ScanParts.of(node)
    if parts.condition is not None or parts.op.recompute or not parts.sequences:
        return None
    known: Known = {c.inner: (c.x, False) for c in parts.captured}
    fixed = set(known)
    for s in parts.sequences:
        known[s.inner] = (known_rows(s, parts.n, graph), True)
    rows = {s.inner for s in parts.sequences}
    order = toposort(parts.results)
    regions = place(order, parts.results)
    limit = most_axes([*rows, *(stacked.new for stacked in parts.stacked)])
    pushed: set[Variable] = set()
    for inner in order:
        if regions[inner] != ALWAYS or not any(x in rows or x in pushed for x in inner.inputs):
            continue
        if _stretches(inner) or grows(inner, known, limit):
            continue
        if batch_node(inner, known):
            pushed.update(y for y in inner.outputs if known[y][1])
    # Rows that are returned unchanged need no loop, either.
    given = [stacked for stacked in parts.stacked if stacked.new in rows or stacked.new in pushed]
    wanted = [y for y in _frontier(order, parts.results, pushed) if _is_work(y, {*rows, *fixed})]
    if not wanted and not given:
        return None
    for stacked in given:
        parts.outside.update((out, known[stacked.new][0]) for out in stacked.outs)
        parts.stacked.remove(stacked)
    still = [y for y in wanted if y in parts.used()]
    fresh = [SequenceRow(_row_like(known[y][0], y), known[y][0]) for y in still]
    parts.sequences += fresh
    parts.substitute(dict(zip(still, (r.inner for r in fresh), strict=True)))
    return parts.answer(node)


def _stretches(node: Apply) -> bool:
    """Tell whether a node is an elementwise function that broadcasts, as an outer product."""
    if type(node.op) is not Elemwise or len(node.inputs) < 2:
        return False
    lengths = node.outputs[0].type.shape
    return not any(
        all(m != 1 or n == 1 for m, n in zip(x.type.shape, lengths, strict=True))
        for x in node.inputs
    )


def _row_like(sequence: Any, y: Any) -> Any:
    x = placeholder(sequence).type.clone(shape=sequence.type.shape[1:])(y.name)
    assert y.type.is_super(x.type)
    return x


def _frontier(order: list[Apply], results: list[Any], pushed: set[Variable]) -> list[Any]:
    """Return the variables of ``pushed`` that other nodes use."""
    found: dict[Variable, None] = {}
    for inner in order:
        if not any(y in pushed for y in inner.outputs):
            found.update((x, None) for x in inner.inputs if x in pushed)
    found.update((y, None) for y in results if y in pushed)
    return list(found)


def _is_work(y: Any, leaves: set[Variable]) -> bool:
    """Tell whether computing ``y`` takes work, beyond views."""
    return any(not isinstance(n.op, VIEWS) for n in toposort([y], leaves))


@rule(Scan, why="values that no step reads are computed after the loop, for all steps at once")
def scan_push_out_outputs(node: Apply, graph: Any) -> Any:
    """scan with output f(state, captured) -> f of all rows of the state, after the scan"""
    parts = ScanParts.of(node)
    if parts.condition is not None or parts.op.recompute:
        return None
    states: list[Any] = [*parts.traced, *parts.carried]
    needed = set(ancestors([s.new for s in states]))
    after = _After(parts, needed, graph)
    for stacked in list(parts.stacked):
        if not _moves(stacked, after):
            after.add(stacked.new, stacked)
    return after.answer(node)


def _moves(stacked: Stacked, after: _After) -> bool:
    """Move an output out of the loop, if that is possible and needs no more stacked outputs."""
    y = stacked.new
    if y in after.there:
        after.finish(stacked, after.there[y])
        return True
    if y in after.needed or isinstance(y, Constant):
        return False
    cuts = after.cuts(y)
    if cuts is None or len(cuts) > 1 or (cuts and _shrinks(y, cuts)):
        return False
    if not _is_work(y, {*after.there, *cuts}):
        return False
    after.keep(cuts)
    wide = batch([y], after.known)
    assert wide is not None
    if not wide[y][1]:
        return False
    after.finish(stacked, wide[y][0])
    return True


def _shrinks(y: Any, cuts: list[Any]) -> bool:
    """Tell whether ``y`` is smaller than the rows that would have to be stacked for it."""
    return any(c.ndim > y.ndim for c in cuts) or any(
        isinstance(n.op, Reduce | Subtensor) for n in toposort([y], cuts)
    )


@rule(Scan, why="a sum of products over all steps is one product")
def scan_push_out_sums(node: Apply, graph: Any) -> Any:
    """scan of s = s + f(row, state), read at the end -> s + f, summed after the scan"""
    parts = ScanParts.of(node)
    if parts.condition is not None or parts.op.recompute:
        return None
    after = _After(parts, set(), graph)
    for stacked in parts.stacked:
        after.add(stacked.new, stacked)
    clients = clients_of(parts.results)
    results = parts.results
    for total in list(parts.carried):
        uses = clients.get(total.inner, [])
        if len(uses) != 1 or results.count(total.new) != 1 or total.inner in results:
            continue
        if clients.get(total.new):
            continue
        terms = _addends(total, clients, results)
        if terms is None or not all(_can_sum(t, after) for t in terms):
            continue
        sums = [_summed(t, after) for t in terms]
        if any(s is None for s in sums):
            continue
        value = None if zeros_in(total.start) else total.start
        for s in sums:
            value = s if value is None else value + s
        after.finish(total, value)
    return after.answer(node)


def _addends(total: Carried, clients: Any, results: list[Any]) -> list[Any] | None:
    """Return the terms that a step adds to a sum; None if it does something else, or if the body
    returns a part of the sum.
    """
    terms: list[Any] = []
    x = total.new
    while True:
        node = elementwise(x, "add")
        if node is None or not all(_fills(v, total.inner) for v in node.inputs):
            return None
        rest = [v for v in node.inputs if v is not total.inner]
        if len(rest) < len(node.inputs):
            return terms + rest if dtypes.is_float(x.dtype) else None
        sums = [v for v in rest if total.inner in ancestors([v])]
        if len(sums) != 1 or len(clients.get(sums[0], ())) != 1 or sums[0] in results:
            return None
        terms += [v for v in rest if v is not sums[0]]
        x = sums[0]


def _fills(term: Any, total: Any) -> bool:
    """Tell whether the term has the dtype of the sum, and no axis that is stretched."""
    lengths = zip(term.type.shape, total.type.shape, strict=True)
    return term.dtype == total.dtype and all(m != 1 or n == 1 for m, n in lengths)


def _factors(term: Any) -> tuple[Any, Any] | None:
    """Return (a, b) if the term is a product of matrices a b, or of vectors, a[i] b[j]."""
    node = term.owner
    if node is not None and isinstance(node.op, Dot) and term.ndim == 2:
        return node.inputs[0], node.inputs[1]
    product = elementwise(term, "mul")
    if product is None or term.ndim != 2 or len(product.inputs) != 2:
        return None
    found: dict[Any, Any] = {}
    for x in product.inputs:
        inner = x.owner
        if inner is None or not isinstance(inner.op, DimShuffle):
            return None
        found[inner.op.order] = inner.inputs[0]
    if set(found) != {(0, "x"), ("x", 0)}:
        return None
    return found[0, "x"], found["x", 0]


def _can_sum(term: Any, after: _After) -> bool:
    if isinstance(term, Constant) or term in after.fixed:
        return False
    pair = _factors(term)
    if pair is None:
        return term in after.there or sum(n != 1 for n in term.type.shape) <= 1
    return not any(isinstance(x, Constant) or x in after.fixed for x in pair)


def _summed(term: Any, after: _After) -> Any:
    pair = _factors(term)
    if pair is None:
        rows = after.rows(term)
        return None if rows is None else rows.sum(axis=0, dtype=term.dtype, acc_dtype=term.dtype)
    a, b = (after.rows(x) for x in pair)
    if a is None or b is None or a.dtype != b.dtype:
        return None
    return contract_equal(a, b, [], [(0, 0), (2, 1)] if a.ndim == 3 else [(0, 0)])


class _After:
    """Computations after a loop, from rows that the loop returns.

    The rows have placeholders until the loop is built.
    """

    def __init__(self, parts: ScanParts, needed: set[Variable], graph: Any) -> None:
        self._parts, self.needed, self._graph = parts, needed, graph
        self.fixed = {c.inner: c.x for c in parts.captured}
        self.there: dict[Variable, Any] = {}
        self.results: list[tuple[list[Any], Any]] = []
        self.known: Known = {x: (v, False) for x, v in self.fixed.items()}
        self._places: dict[Any, Any] = {}
        for s in parts.sequences:
            self.add(s.inner, s)
        for state in parts.traced:
            for lag, x in zip(state.lags, state.rows, strict=True):
                self.add(x, state, Slice(state.depth - lag or None, -lag))
            self.add(state.new, state, Slice(state.depth))

    def add(self, x: Any, end: Any, part: Slice = WHOLE) -> None:
        """Record that a part of the output of ``end`` is the rows of ``x``."""
        if isinstance(x, Constant) or x in self.fixed:
            return
        symbol = placeholder(x)
        self.there[x] = symbol
        self.known[x] = (symbol, True)
        self._places[symbol] = (end, part)

    def finish(self, end: Any, value: Any) -> None:
        """Replace the output of ``end`` by ``value``."""
        ends: list[Any] = self._parts.carried if isinstance(end, Carried) else self._parts.stacked
        ends.remove(end)
        self.results.append((end.outs, value))

    def cuts(self, y: Any) -> list[Any] | None:
        """Return the rows that must be stacked to compute ``y`` after the loop."""
        found: Known = dict(self.known)
        if y in found:
            del found[y]
        cuts: dict[Any, None] = {}
        order = toposort([y], set(found))
        limit = most_axes([y, *self.there])
        for inner in order:
            held = any(v in self.needed for v in inner.outputs)
            if held or grows(inner, found, limit) or not batch_node(inner, found):
                if len(inner.outputs) != 1 or y in inner.outputs:
                    return None
                cuts[inner.outputs[0]] = None
                found[inner.outputs[0]] = (placeholder(inner.outputs[0]), True)
        live = set(ancestors([y], [*cuts, *self.known]))
        if any(x.owner is None and x not in found and not isinstance(x, Constant) for x in live):
            return None
        return [c for c in cuts if c in live]

    def keep(self, cuts: list[Any]) -> None:
        """Add stacked outputs."""
        for x in cuts:
            fresh = Stacked(x, [])
            self._parts.stacked.append(fresh)
            self.add(x, fresh)

    def rows(self, x: Any) -> Any:
        """Return all rows of ``x``: computed from existing ones if views and sums suffice."""
        if x not in self.there:
            node = x.owner
            if node is not None and isinstance(node.op, DimShuffle) and not node.op.dropped:
                source = self.rows(node.inputs[0])
                known: Known = {node.inputs[0]: (source, True)}
                return known[x][0] if batch_node(node, known) else None
            order = toposort([x], set(self.known))
            if order and all(isinstance(n.op, (*VIEWS, Reduce)) for n in order):
                found = batch([x], self.known)
                if found is not None and found[x][1]:
                    return found[x][0]
            self.keep([x])
        return self.there[x]

    def answer(self, node: Apply) -> list[Any] | None:
        """Return what takes the place of the outputs of ``node``."""
        if not self.results:
            return None
        parts = self._parts
        outputs = parts.apply() if parts.results else []
        of_end = dict(zip((id(end) for end in parts.ends), outputs, strict=False))
        replace: dict[Variable, Any] = {}
        for symbol, (end, part) in self._places.items():
            if isinstance(end, SequenceRow):
                replace[symbol] = known_rows(end, parts.n, self._graph)
            elif id(end) in of_end:
                rows = of_end[id(end)]
                replace[symbol] = rows if part == WHOLE else Subtensor((part,))(rows)
        values = rebuild([value for _, value in self.results], replace, strict=False)
        found: dict[Variable, Any] = {}
        for end in parts.ends:
            found.update((out, of_end[id(end)]) for out in end.outs)
        for (outs, _), value in zip(self.results, values, strict=True):
            found.update((out, value) for out in outs)
        return [found.get(out) for out in node.outputs]
