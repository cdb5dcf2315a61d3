"""Index expressions: reading less, and gradients of rows that stay rows."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from symcomp.core.dtype import is_float
from symcomp.core.node import Apply, Variable
from symcomp.core.source import made_for
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import second
from symcomp.ops.indexing.index import IncSubtensor, Nonzero, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, NEW, SYMBOL, MaskFits, Slice, left_out
from symcomp.ops.linalg.products import Dot
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.rewrite.canonicalize.structure import zeros_in
from symcomp.rewrite.pattern import Match, operation, pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, computed_by, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.rewrite.views import is_point, number, same, scaled

WHOLE = Slice()
(x,) = variables("x")
# The most functions through which a slice moves to meet another.
MOST_PASSED = 8


def _basic(pattern: Any) -> bool:
    return all(isinstance(e, int | Slice) or e in (SYMBOL, NEW) for e in pattern)


whole_slice = pattern_rule(
    "whole_slice", operation(Subtensor, x), x,
    where=lambda m: all(e == WHOLE for e in m.node.op.pattern),
    why="a slice of all elements is the tensor itself",
)  # fmt: skip


@rule(Subtensor, why="the element that is read was just written")
def read_of_write(node: Apply, graph: Any) -> Any:
    """set_subtensor(x[i], y)[i] -> y, for slices and for numbers known to be in range"""
    write = computed_by(node.inputs[0], IncSubtensor)
    if write is None or not write.op.set or write.op.pattern != node.op.pattern:
        return None
    if not _in_range(node.op.pattern, node.inputs[0].type.shape):
        return None
    y = write.inputs[1]
    alike = len(write.inputs) - 1 == len(node.inputs) and all(
        same(a, b) for a, b in zip(write.inputs[2:], node.inputs[1:], strict=True)
    )
    return y if alike and shapes_of(graph).covers(y, node.outputs[0]) else None


def _in_range(pattern: Any, shape: Any) -> bool:
    """Tell whether an index with this pattern cannot fail."""
    lengths = iter(shape)
    for entry in pattern:
        if entry == NEW:
            continue
        n = next(lengths)
        known = isinstance(entry, int) and n is not None and -n <= entry < n
        if not known and not isinstance(entry, Slice):
            return False
    return True


@rule(Subtensor, why="indexing first leaves fewer elements to compute")
def read_of_elemwise(node: Apply, graph: Any) -> Any:
    """f(x, y)[i] -> f(x[i], y[i]), where f(x, y) is used only here and nothing broadcasts"""
    inner = node.inputs[0].owner
    return None if inner is None or type(inner.op) is not Elemwise else _read_first(node, graph)


@rule(Subtensor, why="only the rows that are read are computed")
def read_of_product(node: Apply, graph: Any) -> Any:
    """(a b)[i] -> a[i] b, for a matrix a and where a b is used only here"""
    return None if computed_by(node.inputs[0], Dot) is None else _read_first(node, graph)


def _read_first(node: Apply, graph: Any) -> Any:
    """Return the part that ``node`` reads, computed from parts of the operands: through all
    functions and products on the way.
    """
    through: list[tuple[Apply, list[int]]] = []
    sources: list[Variable] = []
    pending = [node.inputs[0]]
    while pending:
        x = pending.pop()
        places = _read_instead(node, x, graph)
        if places:
            through.append((x.owner, places))
            pending += [x.owner.inputs[i] for i in places]
        else:
            sources.append(x)
    if not through or any(_piles_up(node, x, len(through)) for x in sources):
        return None
    read = {x: node.op(x, *node.inputs[1:]) for x in sources}
    ndim = node.outputs[0].ndim
    for inner, places in reversed(through):
        others = _point if type(inner.op) is Elemwise else lambda x, ndim: x
        with made_for(inner.source):
            read[inner.outputs[0]] = inner.op(
                *(read[x] if i in places else others(x, ndim) for i, x in enumerate(inner.inputs))
            )
    return read[node.inputs[0]]


def _read_instead(node: Apply, x: Any, graph: Any) -> list[int]:
    """Return the inputs, of the node that computes ``x``, that can be indexed instead of it; none
    if ``x`` must stay.
    """
    inner, pattern = x.owner, node.op.pattern
    if inner is None or len(graph.clients.get(x, ())) != 1 or not _basic(pattern):
        return []
    if type(inner.op) is Dot:
        return [0] if inner.inputs[0].ndim == 2 and len(pattern) == 1 and pattern[0] != NEW else []
    if type(inner.op) is not Elemwise or inner.op.inplace:
        return []
    wide = [i for i, y in enumerate(inner.inputs) if not is_point(y)]
    shapes = shapes_of(graph)
    # Only where no check of shapes is dropped, and no axis is stretched.
    alike = all(shapes.same(inner.inputs[i], a, x, a) for i in wide for a in range(x.ndim))
    return wide if alike else []


def _piles_up(node: Apply, x: Any, passed: int) -> bool:
    """Tell whether a slice of ``x`` should stay: if another index that does not compose with it
    reads it, or lies far away. Otherwise, where each of many slices omits a little, all would move
    to the first, for little gain.
    """
    inner = computed_by(x, Subtensor)
    if inner is None or not all(isinstance(e, Slice) for e in node.op.pattern):
        return False
    return passed > MOST_PASSED or _composed(inner, node) is None


def _point(x: Any, ndim: int) -> Any:
    return DimShuffle(x.ndim, ("x",) * ndim)(x)


def _composed(first: Apply, second: Apply) -> Any:
    """Return the pattern that composes the indices of two nodes, or None."""
    if len(first.inputs) > 1 or len(second.inputs) > 1:
        return None
    if not all(isinstance(e, Slice) for e in first.op.pattern):
        return None
    pairs = zip_longest(first.op.pattern, second.op.pattern, fillvalue=WHOLE)
    entries = tuple(_compose(outer, e) for outer, e in pairs)
    return None if None in entries else entries


def _compose(outer: Any, e: Any) -> Any:
    """Return ``x[outer][e]`` as one entry of an index, or None."""
    if outer == WHOLE:
        return e if isinstance(e, int | Slice) else None
    if e == WHOLE:
        return outer
    first, more = left_out(outer), left_out(e)
    if first is None:
        return None
    a, b = first
    if more is not None:
        return Slice(a + more[0] or None, -(b + more[1]) or None)
    if b:
        return None
    if isinstance(e, int):
        return a + e if e >= 0 else None
    if isinstance(e, Slice) and e.step in (None, 1):
        start, stop = e.start or 0, e.stop
        if isinstance(start, int) and start >= 0 and isinstance(stop, int) and stop >= 0:
            return Slice(a + start, a + stop)
    return None


def _read_at_once(match: Match) -> Any:
    """x[a:][i] -> x[a + i], for known a >= 0, i >= 0, slices too;  x[:-a][:-b] -> x[:-a-b]"""
    first: Any = match.node.inputs[0].owner
    pattern = _composed(first, match.node)
    return None if pattern is None else Subtensor(pattern)(match.x)


read_of_read = pattern_rule(
    "read_of_read", operation(Subtensor, operation(Subtensor, x)), _read_at_once,
    why="two indices in a row are one index, if they are known to compose",
)  # fmt: skip


@rule(Subtensor, why="a new axis has one element")
def read_of_new_axis(node: Apply, graph: Any) -> Any:
    """x[None][0] -> x;   x[None][-1, i] -> x[i]"""
    expanded = computed_by(node.inputs[0], DimShuffle)
    if expanded is None or not node.op.pattern:
        return None
    first, *rest = node.op.pattern
    order = expanded.op.order
    if first not in (0, -1) or order[0] != "x" or not _basic(node.op.pattern):
        return None
    x = expanded.inputs[0]
    if order[1:] != tuple(range(x.ndim)):
        x = DimShuffle(x.ndim, order[1:])(x)
    return Subtensor(tuple(rest))(x, *node.inputs[1:]) if rest else x


@rule(Subtensor, why="only the part that is read is needed")
def read_of_join(node: Apply, graph: Any) -> Any:
    """join(x, y)[a:b] -> x, where a:b is all of x and the lengths are known"""
    join = computed_by(node.inputs[0], Join)
    if join is None or len(node.inputs) > 1 or join.op.axis >= len(node.op.pattern):
        return None
    axis, start = join.op.axis, 0
    others = [e for a, e in enumerate(node.op.pattern) if a != axis]
    entry = node.op.pattern[axis]
    if any(e != WHOLE for e in others) or not isinstance(entry, Slice) or entry.step is not None:
        return None
    shapes = shapes_of(graph)
    if any(
        not shapes.same(x, a, join.inputs[0], a)
        for x in join.inputs
        for a in range(x.ndim)
        if a != axis
    ):
        return None
    for x in join.inputs:
        n = x.type.shape[axis]
        if n is None:
            return None
        if (entry.start or 0) == start and entry.stop == start + n and n > 0:
            return x
        start += n
    return None


@rule(IncSubtensor, why="adding to zeros, once at each place, sets them")
def add_to_zeros(node: Apply, graph: Any) -> Any:
    """inc_subtensor(zeros[:], y) -> y, for all of it"""
    x, y = node.inputs[:2]
    whole = all(e == WHOLE for e in node.op.pattern)
    if whole and (node.op.set or zeros_in(x)) and shapes_of(graph).covers(y, x):
        return y
    return None


@rule("mul", why="zeros stay zeros when multiplied by a finite factor")
def scale_rows(node: Apply, graph: Any) -> Any:
    """c inc_subtensor(zeros[i], y) -> inc_subtensor(zeros[i], c y), for a finite number c"""
    for a, b in (node.inputs, node.inputs[::-1]):
        value = number(a)
        rows = _rows(b, graph)
        if value is not None and rows is not None and abs(value) < float("inf"):
            x, y = rows.inputs[:2]
            if is_float(x.dtype) and b.dtype == node.outputs[0].dtype:
                return rows.op(x, _scaled_like(value, y), *rows.inputs[2:])
    return None


@rule("neg", why="zeros stay zeros")
def negate_rows(node: Apply, graph: Any) -> Any:
    """-inc_subtensor(zeros[i], y) -> inc_subtensor(zeros[i], -y)"""
    rows = _rows(node.inputs[0], graph)
    if rows is None:
        return None
    x, y = rows.inputs[:2]
    return rows.op(x, _scaled_like(-1, y), *rows.inputs[2:])


def _scaled_like(c: float, y: Any) -> Any:
    """Return ``c y`` with the axes of y, also where y is one number."""
    product = scaled(c, y)
    return product if isinstance(product, Variable) else second(y, product)


def _rows(x: Any, graph: Any) -> Apply | None:
    """Return the node of inc_subtensor(zeros[i], y) that computes ``x`` for one client alone."""
    node = computed_by(x, IncSubtensor)
    if node is None or not zeros_in(node.inputs[0]) or len(graph.clients.get(x, ())) > 1:
        return None
    return node


@rule(Subtensor, why="a filled tensor is the same everywhere")
def read_of_alloc(node: Apply, graph: Any) -> Any:
    """alloc(v, n)[a:b] -> alloc(v, lengths of the part), for a scalar v and slices"""
    alloc = computed_by(node.inputs[0], Alloc)
    if alloc is None or not all(isinstance(e, Slice) for e in node.op.pattern):
        return None
    if not is_point(alloc.inputs[0]):
        return None
    lengths = shapes_of(graph).of(node.outputs[0])
    return Alloc()(alloc.inputs[0], *(as_tensor_variable(n, dtype="int64") for n in lengths))


@rule(IncSubtensor, why="a mask tells where values go without positions")
def write_at_mask(node: Apply, graph: Any) -> Any:
    """set_subtensor(x[mask], y) -> switch(mask, y, x), where all elements get one y; for
    inc_subtensor switch(mask, x + y, x)
    """
    op, (x, y, *places) = node.op, node.inputs
    if op.inplace or not places or any(e not in (ARRAY, WHOLE) for e in op.pattern):
        return None
    axes = [a for a, entry in enumerate(op.pattern) if entry == ARRAY]
    first, mask = axes[0], _mask_of(places, axes, x, graph)
    if mask is None or axes != [*range(first, first + mask.ndim)] or y.type.shape[first] != 1:
        return None
    after = range(first + 1, y.ndim)
    value = dimshuffle(y, *range(first), *("x",) * mask.ndim, *after)
    value = value if op.set else x + value
    where = dimshuffle(mask, *("x",) * first, *range(mask.ndim), *("x",) * len(after))
    return switch(where, value, x) if value.dtype == x.dtype else None


def _mask_of(places: Any, axes: Any, x: Any, graph: Any) -> Any:
    """Return the mask whose positions index axes of x, with its lengths checked; None if there is
    none.
    """
    fits = computed_by(places[0], MaskFits)
    made = [computed_by(p, Nonzero) for p in (fits.inputs[0] if fits else places[0], *places[1:])]
    if made[0] is None or any(node is not made[0] for node in made):
        return None
    mask: Any = made[0].inputs[0]
    pairs = list(zip(range(mask.ndim), axes, strict=False))
    if mask.dtype != "bool" or len(axes) != mask.ndim or any(
        (mask.type.shape[a] == 1) != (x.type.shape[b] == 1) for a, b in pairs
    ):
        return None
    if fits is None or all(shapes_of(graph).same(mask, a, x, b) for a, b in pairs):
        return mask
    return fits.op(mask, *fits.inputs[1:])


INDEXING = RuleSet(
    [
        whole_slice, read_of_write, read_of_elemwise, read_of_read, read_of_new_axis,
        read_of_product, read_of_join, read_of_alloc, add_to_zeros, scale_rows, negate_rows,
        write_at_mask,
    ]
)  # fmt: skip
