"""Merge loops, and merge products in a loop into one wider product."""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import clients_of, depends_on, toposort
from symcomp.ops.control.regions import ALWAYS, place
from symcomp.ops.convert import constant
from symcomp.ops.linalg.products import Dot
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.rewrite.rule import elementwise, rule
from symcomp.scan.lengths import shaped
from symcomp.scan.op import Scan
from symcomp.scan.rules.cleaning import equal_classes, merge_equal
from symcomp.scan.rules.scan_parts import ScanParts, SequenceRow, Stacked


@rule(Scan, why="one loop instead of two; common values are computed once")
def scan_merge(node: Apply, graph: Any) -> Any:
    """scan(f) and scan(g) of as many steps, independent of each other -> scan(f and g)"""
    for other in graph.toposort():
        if other is node or type(other.op) is not Scan or not _alike(node, other):
            continue
        if not _independent(node, other):
            continue
        # The larger one first: a rule that splits the merged scan leaves the smaller part as it is.
        first, second = sorted((node, other), key=_size, reverse=True)
        found = _merged(first, second)
        if found is None:
            continue
        merged, place = found
        if merged.op == first.op and merged.inputs == first.inputs:
            merged = first
        pairs = [(y, merged.outputs[place[y]]) for y in other.outputs]
        if not all(old.type.is_super(new.type) for old, new in pairs):
            continue
        # Replace both at once; if one stayed, it would be split off the merged one again.
        graph.replace_all(pairs)
        return [merged.outputs[place[y]] for y in node.outputs]
    return None


def _alike(a: Apply, b: Apply) -> bool:
    """Tell whether both run the same number of steps in the same way."""
    n, m = a.inputs[0], b.inputs[0]
    constants = isinstance(n, Constant) and isinstance(m, Constant)
    same = n is m or (constants and int(n.data) == int(m.data))
    return same and b.op.layout.until == a.op.layout.until and a.op.selects == b.op.selects


def _independent(a: Apply, b: Apply) -> bool:
    return not depends_on(a.inputs, b.outputs) and not depends_on(b.inputs, a.outputs)


def _size(node: Apply) -> int:
    return len(node.outputs) + len(node.op.body.inputs)


def _merged(a: Apply, b: Apply) -> tuple[Apply, dict[Variable, int]] | None:
    """Return a scan that does the work of both, and the positions of their outputs in it; None if
    one may stop before the other.
    """
    one, two = ScanParts.of(a), ScanParts.of(b)
    # The bodies may be the same graph: each half needs variables of its own.
    inner = [*two.varying, *(c.inner for c in two.captured)]
    fresh = {x: x.type.variable_class(x.type, name=x.name, source=x.source) for x in inner}
    two.substitute(fresh)
    for state in two.traced:
        state.rows = [fresh[x] for x in state.rows]
    for c in two.carried:
        c.inner = fresh[c.inner]
    for r in (*two.sequences, *two.captured):
        r.inner = fresh[r.inner]
    one.traced += two.traced
    one.carried += two.carried
    one.stacked += two.stacked
    one.sequences += two.sequences
    one.captured += two.captured
    if two.condition is not None:
        other_condition = Stacked(two.condition, [])
        one.stacked.append(other_condition)
        classes = equal_classes(one)
        one.stacked.remove(other_condition)
        if classes[one.condition] != classes[two.condition]:
            return None
        one.done += two.done
    merge_equal(one)
    op, inputs = one.build()
    merged = op.make_node(*inputs)
    places = {out: i for i, end in enumerate(one.ends) for out in end.outs}
    places.update((out, len(one.ends)) for out in one.done)
    return merged, places


@rule(Scan, why="one product of a wide matrix is faster than several of narrow ones")
def scan_merge_products(node: Apply, graph: Any) -> Any:
    """scan with x U, x V in its body -> parts of x [U, V], for captured matrices U and V"""
    parts = ScanParts.of(node)
    captured = {c.inner: c.x for c in parts.captured}
    groups: dict[Any, list[Apply]] = {}
    for inner in _always(parts):
        if isinstance(inner.op, Dot):
            x, w = inner.inputs
            if w in captured and w.ndim == 2 and x not in captured:
                groups.setdefault((x, w.dtype), []).append(inner)
    for (x, _), nodes in groups.items():
        matrices = [n.inputs[1] for n in nodes]
        if len(nodes) > 1 and len(set(matrices)) == len(nodes):
            pairs = _columns(x, nodes, [captured[w] for w in matrices], parts)
            parts.substitute(pairs)
            return parts.answer(node)
    return None


def _always(parts: ScanParts) -> list[Apply]:
    """Return the nodes of the body that run in every step."""
    order = toposort(parts.results)
    regions = place(order, parts.results)
    return [inner for inner in order if regions[inner] == ALWAYS]


def _columns(
    x: Any, nodes: list[Apply], matrices: list[Any], parts: ScanParts
) -> dict[Variable, Any]:
    """Return the replacements of the products of ``x`` with each of the matrices."""
    wide = concatenate(matrices, axis=1)
    row = SequenceRow(wide.type("joined"), wide)
    parts.captured.append(row)
    product = Dot()(x, row.inner)
    pairs: dict[Variable, Any] = {}
    start: Any = 0
    for n, w in zip(nodes, matrices, strict=True):
        stop = start + shape_tuple(w)[1]
        columns = slice(_bound(start, parts), _bound(stop, parts))
        part = product[columns] if x.ndim == 1 else product[:, columns]
        pairs[n.outputs[0]] = shaped(part, n.outputs[0].type.shape)
        start = stop
    return pairs


@rule(Scan, why="a sum of products is one product of longer rows")
def scan_merge_sums_of_products(node: Apply, graph: Any) -> Any:
    """scan with a U + b V in its body -> [a, b] [U; V], for captured matrices U and V"""
    parts = ScanParts.of(node)
    captured = {c.inner: c.x for c in parts.captured}
    clients = clients_of(parts.results)
    for inner in reversed(_always(parts)):
        total = inner.outputs[0]
        if elementwise(total, "add") is None or _inside_sum(total, clients):
            continue
        terms = _terms(total, clients)
        for left in (True, False):
            chosen = [t for t in terms if _is_product(t, left, captured, total)]
            if len(chosen) < 2 or len({t.owner.inputs[left].dtype for t in chosen}) > 1:
                continue
            rest = [t for t in terms if t not in chosen]
            value = _joined_product(chosen, left, captured, parts)
            for t in rest:
                value = value + t
            parts.substitute({total: shaped(value, total.type.shape)})
            return parts.answer(node)
    return None


def _inside_sum(total: Any, clients: Any) -> bool:
    uses = clients.get(total, ())
    return len(uses) == 1 and elementwise(uses[0][0].outputs[0], "add") is not None


def _terms(total: Any, clients: Any) -> list[Any]:
    """Return the terms of a sum, through inner sums without other clients."""
    terms: list[Any] = []
    pending = [total]
    while pending:
        x = pending.pop()
        node = elementwise(x, "add")
        alike = node is not None and all(
            v.dtype == total.dtype and v.type.broadcastable == total.type.broadcastable
            for v in node.inputs
        )
        if node is not None and alike and (x is total or len(clients.get(x, ())) == 1):
            pending += reversed(node.inputs)
        else:
            terms.append(x)
    return terms


def _is_product(term: Any, left: bool, captured: Any, total: Any) -> bool:
    """Tell whether a term is a product whose right factor (``left``: whose left one) is a captured
    matrix.
    """
    node = term.owner
    if node is None or not isinstance(node.op, Dot) or term.dtype != total.dtype:
        return False
    matrix, other = node.inputs[not left], node.inputs[left]
    fits = matrix in captured and matrix.ndim == 2 and other not in captured
    return fits and other.dtype == matrix.dtype and (not left or other.ndim == 1)


def _joined_product(terms: list[Any], left: bool, captured: Any, parts: ScanParts) -> Any:
    matrices = [captured[t.owner.inputs[not left]] for t in terms]
    others = [t.owner.inputs[left] for t in terms]
    long = concatenate(matrices, axis=1 if left else 0)
    row = SequenceRow(long.type("joined"), long)
    parts.captured.append(row)
    factor = concatenate(others, axis=others[0].ndim - 1)
    return Dot()(row.inner, factor) if left else Dot()(factor, row.inner)


def _bound(n: Any, parts: ScanParts) -> Any:
    """Return the variable of the body for a length from outside."""
    if isinstance(n, int):
        return n
    if isinstance(n, Constant):
        return constant(n.data)
    row = SequenceRow(n.type(n.name), n)
    parts.captured.append(row)
    return row.inner
