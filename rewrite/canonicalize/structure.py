"""Axes and shapes: dimshuffle, reshape, shape, join, alloc, reductions over nothing."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.source import made_for
from symcomp.core.tensor import TensorConstant, TensorType
from symcomp.ops.control.conditions import Assert, IfElse
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_logic import and_, or_
from symcomp.ops.elementwise.scalar_math import cast, neg
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.ops.shapes.shape import Reshape, Shape, ShapeI, SpecifyShape, length_vector
from symcomp.ops.shapes.stack import Stack
from symcomp.rewrite.pattern import Match, f, operation, pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import is_natural, shapes_of
from symcomp.rewrite.views import number

# Longer lists of conditions stay arrays: each condition is an array that a kernel is called with.
MOST_CONDITIONS = 8
# By reduction: the function of two conditions, and the condition that changes no other.
_OF_CONDITIONS = {"all": (and_, True), "any": (or_, False)}

(n,) = variables("n", dtype="integer", shape=())
(x,) = variables("x")


@rule(
    DimShuffle,
    why="permutations compose; the identity is not needed",
    from_above=True,
)
def dimshuffle_chain(node: Apply, graph: Any) -> Any:
    """dimshuffle(dimshuffle(x)) -> dimshuffle(x);   dimshuffle(x, 0, 1, ..) -> x"""
    op, x = node.op, node.inputs[0]
    if op.order == tuple(range(op.ndim)):
        return x
    inner = computed_by(x, DimShuffle)
    if inner is None or any(x.type.shape[a] != 1 for a in op.dropped):
        return None
    source = inner.inputs[0]
    order = tuple("x" if a == "x" else inner.op.order[a] for a in op.order)
    return DimShuffle(source.ndim, order)(source)


@rule(
    DimShuffle,
    why="adjacent elementwise functions can be fused; the moved tensors are no larger",
    from_above=True,
)
def dimshuffle_of_elemwise(node: Apply, graph: Any) -> Any:
    """dimshuffle(f(x, y)) -> f(dimshuffle(x), dimshuffle(y)), where f(x, y) is used only here"""
    inner = node.inputs[0].owner
    if inner is None or type(inner.op) is not Elemwise or inner.op.inplace:
        return None
    if len(graph.clients[node.inputs[0]]) > 1 or node.op.dropped:
        return None
    moved = [node.op(x) for x in inner.inputs]
    with made_for(inner.source):
        return inner.op(*moved)


@rule(Reshape, why="only the last shape matters; a tensor that has it needs no reshape")
def reshape_chain(node: Apply, graph: Any) -> Any:
    """reshape(reshape(x, m), n) -> reshape(x, n);   reshape(x, x.shape) -> x"""
    x, lengths = node.inputs
    shapes = shapes_of(graph)
    out = node.outputs[0]
    if x.ndim == out.ndim and all(shapes.same(x, a, out, a) for a in range(x.ndim)):
        return x
    inner = computed_by(x, Reshape)
    if inner is None:
        return None
    source = inner.inputs[0]
    # Only if the inner reshape cannot fail, or the outer one would fail likewise.
    size = shapes.size(x)
    named = isinstance(lengths, TensorConstant) and (lengths.data >= 0).all()
    if size == shapes.size(source) or (named and size == shapes.size(out)):
        return node.op(source, lengths)
    return None


bounded_length = pattern_rule(
    "bounded_length", f.maximum(n, 0), n, where=lambda m: is_natural(m.n),
    why="lengths are not negative",
)  # fmt: skip


@rule(ShapeI, why="the length follows from those of the inputs, without computing elements")
def length_of(node: Apply, graph: Any) -> Any:
    """length of an axis of f(x) -> an expression in lengths of x"""
    x = node.inputs[0]
    if x.owner is None and x.type.shape[node.op.axis] is None:
        return None
    length = shapes_of(graph).of(x)[node.op.axis]
    return as_tensor_variable(length, dtype="int64") if isinstance(length, int) else length


@rule(Shape, why="the shape is its lengths, and these follow from those of the inputs")
def shape_of(node: Apply, graph: Any) -> Any:
    """shape(x) -> [length 0, length 1, ..]"""
    x = node.inputs[0]
    if x.owner is None and None in x.type.shape:
        return None
    return length_vector(shapes_of(graph).of(x))


def _claims_are_known(match: Match) -> bool:
    """Tell whether the lengths that are specified are known already."""
    node = match.node
    claims = zip(node.op.lengths, shapes_of(match.graph).of(match.x), strict=True)
    known = all(n is None or (isinstance(m, int) and m == n) for n, m in claims)
    # Replacing by a less precise type would insert the claim again, to keep the known lengths.
    return known and node.outputs[0].type.is_super(match.x.type)


known_claim = pattern_rule(
    "known_claim", operation(SpecifyShape, x), x, where=_claims_are_known,
    why="lengths that the type has already need no check",
)  # fmt: skip


@rule(Join, why="one tensor needs no join")
def join_of_one(node: Apply, graph: Any) -> Any:
    """join(x) -> x;   join(x, empty, y) -> join(x, y)"""
    axis = node.op.axis
    if len(node.inputs) == 1:
        return node.inputs[0]
    full = [x for x in node.inputs if x.type.shape[axis] != 0]
    if not full or len(full) == len(node.inputs):
        return None
    shapes = shapes_of(graph)
    empty = [x for x in node.inputs if x.type.shape[axis] == 0]
    others = [a for a in range(full[0].ndim) if a != axis]
    if not all(shapes.same(x, a, full[0], a) for x in empty for a in others):
        return None
    return full[0] if len(full) == 1 else Join(axis)(*full)


@rule(Join, why="joining is associative", from_above=True)
def join_of_join(node: Apply, graph: Any) -> Any:
    """join(join(x, y), z) -> join(x, y, z), where join(x, y) is used only here"""
    parts: list[Any] = []
    pending = node.inputs[::-1]
    while pending:
        x = pending.pop()
        inner = computed_by(x, Join)
        whole = inner is not None and inner.op.axis == node.op.axis
        if inner is not None and whole and len(graph.clients[x]) == 1:
            pending += inner.inputs[::-1]
        else:
            parts.append(x)
    return Join(node.op.axis)(*parts) if len(parts) > len(node.inputs) else None


@rule(Alloc, why="a tensor of this shape needs no filling; a filled tensor fills as its value does")
def alloc_of_filled(node: Apply, graph: Any) -> Any:
    """alloc(x, shape of x) -> x;   alloc(alloc(x, m), n) -> alloc(x, n)"""
    value, out = node.inputs[0], node.outputs[0]
    shapes = shapes_of(graph)
    lengths = [shapes.intern(n) for n in node.inputs[1:]]
    if value.ndim == out.ndim:
        have = shapes.of(value)
        if all(
            m is n or (isinstance(m, int) and m == n) for m, n in zip(have, lengths, strict=True)
        ):
            return value
    inner = computed_by(value, Alloc)
    source = inner.inputs[0] if inner is not None else None
    if source is not None and all(n == 1 for n in source.type.shape):
        if all(n is not None and n == 1 for n in value.type.shape):
            return Alloc()(source, *node.inputs[1:])
    return None


@rule(Reduce, why="a reduction over no axes, or of one element, is that element")
def reduce_short_axes(node: Apply, graph: Any) -> Any:
    """sum(x, axis=()) -> x;   sum(x, axis of length 1) -> x without that axis"""
    x, op, out = node.inputs[0], node.op, node.outputs[0]
    if op.reduction.logical and x.dtype != "bool":
        return None
    short = tuple(a for a in op.axes if x.type.shape[a] == 1)
    if op.axes and not short:
        return None
    dropped = DimShuffle(x.ndim, tuple(a for a in range(x.ndim) if a not in short))(x)
    rest = tuple(a - sum(b < a for b in short) for a in op.axes if a not in short)
    if rest:
        return Reduce(op.reduction, rest, op.dtype or out.dtype, op.acc_dtype)(dropped)
    narrow = op.acc_dtype is not None and op.acc_dtype != out.dtype
    return None if narrow else cast(dropped, out.dtype)


@rule(Reduce, why="reducing axes one after the other, or all at once, gives the same")
def reduce_of_reduce(node: Apply, graph: Any) -> Any:
    """sum(sum(x, a), b) -> sum(x, (a, b)), for sums, products, extremes, any and all"""
    op, inner = node.op, computed_by(node.inputs[0], Reduce)
    if inner is None or inner.op.reduction is not op.reduction:
        return None
    x = inner.inputs[0]
    alike = op.dtype == inner.op.dtype and op.acc_dtype == inner.op.acc_dtype
    if not alike or inner.outputs[0].dtype != node.outputs[0].dtype or not inner.op.axes:
        return None
    left = [a for a in range(x.ndim) if a not in inner.op.axes]
    axes = tuple(sorted([*inner.op.axes, *(left[a] for a in op.axes)]))
    if not op.reduction.identity and any(x.type.shape[a] in (None, 0) for a in axes):
        return None
    return Reduce(op.reduction, axes, op.dtype, op.acc_dtype)(x)


def _reduced_in_order(match: Match) -> Any:
    """sum(x), over all axes"""
    op, x = match.node.op, match.x
    inner: Any = match.node.inputs[0]
    if len(op.axes) != inner.ndim or inner.owner.op.dropped or x.ndim == 0:
        return None
    return Reduce(op.reduction, tuple(range(x.ndim)), op.dtype, op.acc_dtype)(x)


reduce_of_dimshuffle = pattern_rule(
    "reduce_of_dimshuffle", operation(Reduce, operation(DimShuffle, x)), _reduced_in_order,
    why="sums are over the same elements however the axes are arranged",
)  # fmt: skip


def _is_signed_sum(match: Match) -> bool:
    """Tell whether the reduction is a sum, of terms whose signs are no others in its dtype."""
    x, out = match.x, match.node.outputs[0]
    signed = dtypes.is_float(x.dtype) or dtypes.is_complex(x.dtype)
    same = dtypes.is_float(out.dtype) or out.dtype == x.dtype
    return signed and same and match.node.op.reduction.name == "sum"


def _negated_sum(match: Match) -> Any:
    """-sum(x)"""
    return neg(match.node.op(match.x))


sum_of_neg = pattern_rule(
    "sum_of_neg", operation(Reduce, -x), _negated_sum, where=_is_signed_sum,
    why="a sign may be taken from a sum; nothing is rounded",
)  # fmt: skip


@rule(Stack, why="a view is no copy")
def stack_of_one(node: Apply, graph: Any) -> Any:
    """stack(x) -> x with a new first axis of length 1"""
    return shape_padleft(node.inputs[0]) if len(node.inputs) == 1 else None


@rule(Reduce, why="a few conditions need no array, and the functions around them can be fused")
def all_of_stack(node: Apply, graph: Any) -> Any:
    """all([p, q]) -> p and q, any([p, q]) -> p or q, for at most eight single conditions"""
    combine, neutral = _OF_CONDITIONS.get(node.op.reduction.name, (None, None))
    inner = computed_by(node.inputs[0], Stack)
    if combine is None or inner is None or not node.op.axes:
        return None
    conditions = inner.inputs
    if len(conditions) > MOST_CONDITIONS or any(x.dtype != "bool" or x.ndim for x in conditions):
        return None
    deciding = [x for x in conditions if number(x) is None or number(x) != neutral]
    return reduce(combine, deciding or conditions[:1])


@rule(Assert, why="a condition known to hold needs no check")
def assert_true(node: Apply, graph: Any) -> Any:
    """assert(x, True) -> x"""
    x, *conditions = node.inputs
    kept = [c for c in conditions if not number(c)]
    if not kept:
        return x
    return node.op(x, *kept) if len(kept) < len(conditions) else None


@rule(IfElse, why="a constant condition decides at compile time")
def ifelse_known(node: Apply, graph: Any) -> Any:
    """ifelse(constant, x, y) -> x or y"""
    value = number(node.inputs[0])
    n = node.op.n_outputs
    then, other = node.inputs[1 : 1 + n], node.inputs[1 + n :]
    if value is not None:
        return list(then if value else other)
    chosen = [a if a is b else None for a, b in zip(then, other, strict=True)]
    return chosen if any(x is not None for x in chosen) else None


@rule(IfElse, why="values without clients need not be chosen or computed")
def ifelse_drop_unused(node: Apply, graph: Any) -> Any:
    """ifelse(c, [x, y], [u, v]), of which only the first is used -> ifelse(c, [x], [u])"""
    n = node.op.n_outputs
    live = [k for k, out in enumerate(node.outputs) if graph.clients[out]]
    if len(live) == n:
        return None
    chosen = [node.inputs[1 + side * n + k] for side in (0, 1) for k in live]
    outputs = dict(zip(live, IfElse(len(live))(node.inputs[0], *chosen), strict=True))
    return [outputs.get(k) for k in range(n)]


def zeros_in(x: Any) -> bool:
    """Tell whether ``x`` is known to be all zeros."""
    value = number(x)
    if value is not None:
        return value == 0
    node = x.owner
    if node is None:
        data = getattr(x, "data", None)
        return isinstance(data, np.ndarray) and not data.any() and isinstance(x.type, TensorType)
    if isinstance(node.op, Alloc | DimShuffle):
        return zeros_in(node.inputs[0])
    filled = elementwise(x, "second")
    return filled is not None and zeros_in(filled.inputs[1])


STRUCTURE = RuleSet(
    [
        dimshuffle_chain, dimshuffle_of_elemwise, reshape_chain, bounded_length, length_of,
        shape_of, known_claim, join_of_one, join_of_join, alloc_of_filled, reduce_short_axes,
        reduce_of_reduce, reduce_of_dimshuffle, sum_of_neg, stack_of_one, all_of_stack,
        assert_true,
        ifelse_known, ifelse_drop_unused,
    ]
)  # fmt: skip
