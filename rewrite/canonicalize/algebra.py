"""Elementwise functions: units, signs, constants, casts, conditions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.tensor import TensorConstant
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.pattern import f, pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.rewrite.views import call, number

# Variables of the rules that are patterns.
x, y = variables("x y")
(real,) = variables("x", dtype="float")
(exact,) = variables("x", where=lambda v: not dtypes.is_complex(v.dtype))


neg_neg = pattern_rule("neg_neg", f.neg(f.neg(x)), x, why="two signs cancel, for every number")


add_zero = pattern_rule(
    "add_zero", [(x + 0, x), (x - 0, x)],
    why="0 is the unit of sums; sums of one term are that term",
)  # fmt: skip


mul_one = pattern_rule(
    "mul_one", [(exact * 1, exact), (exact / 1, exact), (real * -1, -real), (real / -1, -real)],
    why="1 is the unit of products, except for complex infinities",
)  # fmt: skip


signs = pattern_rule(
    "signs", [(x + -y, x - y), (x - -y, x + y), (-x * -y, x * y), (-x / -y, x / y)],
    why="signs are moved out or cancel; none is rounded",
)  # fmt: skip


@rule("mul", "true_div", why="constants are combined at compile time")
def fold_constants(node: Apply, graph: Any) -> Any:
    """(x a) b -> x (a b);  (x / a) b -> x (b / a), unless that might undo an overflow"""
    found = _times_constant(node)
    inner = _times_constant(found[0].owner) if found and found[0].owner is not None else None
    if not found or not inner or inner[0].dtype != node.outputs[0].dtype:
        return None
    (_, c), (x, b) = found, inner
    product = b * c
    tiny = float(dtypes.limits(x.dtype).tiny)
    if not tiny < abs(product) < 1 / tiny or (abs(b) > 1 and abs(c) < 1):
        return None
    return call("mul", x, product)


def _times_constant(node: Apply) -> tuple[Any, float] | None:
    """Return (x, c) if the node computes x times a float constant, or divided by a power of two."""
    if type(node.op) is not Elemwise or node.op.inplace:
        return None
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    name, inputs = node.op.scalar.name, node.inputs
    if name == "mul":
        for x, y in (inputs, inputs[::-1]):
            value = number(y)
            if value and math.isfinite(value) and x.dtype == node.outputs[0].dtype:
                return x, value
    if name == "true_div" and inputs[0].dtype == node.outputs[0].dtype:
        value = number(inputs[1])
        if value and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5:
            return inputs[0], 1 / value
    return None


simple_powers = pattern_rule(
    "simple_powers",
    [(x**1, x), (x**2, f.sqr(x)), (real**-1, f.reciprocal(real)), (x**0, f.second(x, 1))],
    where=lambda m: m.x.dtype == m.node.outputs[0].dtype,
    why="functions of their own compute these powers, with the same values",
)


mul_to_sqr = pattern_rule(
    "mul_to_sqr", x * x, f.sqr(x), where=lambda m: m.x.dtype != "bool",
    why="a product with itself is a square",
)  # fmt: skip


div_to_reciprocal = pattern_rule(
    "div_to_reciprocal", 1 / real, f.reciprocal(real),
    why="one over x has a function of its own, with the same values",
)  # fmt: skip


drop_copies = pattern_rule(
    "drop_copies", f.identity(x), x,
    why="the program copies where values must not share memory",
)  # fmt: skip


@rule("cast", why="a detour through a wider dtype loses nothing")
def cast_of_cast(node: Apply, graph: Any) -> Any:
    """cast(cast(x, wide), narrow) -> cast(x, narrow);   cast(x, its own dtype) -> x"""
    x, out = node.inputs[0], node.outputs[0]
    if x.dtype == out.dtype:
        return x
    inner = elementwise(x, "cast")
    if inner is None:
        return None
    source = inner.inputs[0]
    kept = source.dtype != "bool" and np.can_cast(source.dtype, x.dtype, "safe")
    if not kept or (dtypes.is_float(source.dtype) != dtypes.is_float(x.dtype)):
        return source if kept and source.dtype == out.dtype else None
    return cast(source, out.dtype)


@rule("switch", why="a constant condition decides at compile time; equal branches need no choice")
def switch_known(node: Apply, graph: Any) -> Any:
    """switch(constant, x, y) -> x or y;   switch(c, x, x) -> x"""
    condition, x, y = node.inputs
    value = number(condition)
    chosen = (x if value else y) if value is not None else x if x is y else None
    if chosen is None or chosen.dtype != node.outputs[0].dtype:
        return None
    shapes = shapes_of(graph)
    if all(other is chosen or shapes.covers(chosen, other) for other in node.inputs):
        return chosen
    return None


second_of_same_shape = pattern_rule(
    "second_of_same_shape", f.second(x, y), y,
    where=lambda m: shapes_of(m.graph).covers(m.y, m.x),
    why="a tensor that has the shape needs no filling",
)  # fmt: skip


@rule(Elemwise, why="broadcasting fills as well, and another operand has the shape")
def unfilled_operands(node: Apply, graph: Any) -> Any:
    """f(second(x, y), z) -> f(y, z) and f(alloc(y, n), z) -> f(y, z), where z has the shape"""
    if len(node.inputs) < 2 or node.op.inplace:
        return None
    shapes = shapes_of(graph)
    for i, x in enumerate(node.inputs):
        bare = _bare(x)
        if bare is None:
            continue
        others = [y for j, y in enumerate(node.inputs) if j != i]
        if any(shapes.covers(y, x) for y in others):
            return node.op(*node.inputs[:i], bare, *node.inputs[i + 1 :])
    return None


def _bare(x: Any) -> Any:
    """Return the value that fills ``x``, at the rank of ``x``; None if there is none."""
    filled = elementwise(x, "second")
    if filled is not None:
        return filled.inputs[1]
    alloc = computed_by(x, Alloc)
    if alloc is None:
        return None
    value = alloc.inputs[0]
    if any(n is None for n in value.type.shape):
        return None
    missing = x.ndim - value.ndim
    return DimShuffle(value.ndim, ("x",) * missing + tuple(range(value.ndim)))(value)


neg_of_fill = pattern_rule(
    "neg_of_fill", f.neg(f.second(x, y)), f.second(x, f.neg(y)),
    why="one number is negated in the place of many",
)  # fmt: skip


@rule("second", why="only the shape of the model is used, which is that of its operand")
def second_model(node: Apply, graph: Any) -> Any:
    """second(f(x, y), z) -> second(x, z), where x has the shape of f(x, y)"""
    model, y = node.inputs
    inner = model.owner
    if inner is None or type(inner.op) is not Elemwise:
        return None
    shapes = shapes_of(graph)
    for x in inner.inputs:
        checked = len(inner.inputs) == 1
        if checked and not isinstance(x, TensorConstant) and shapes.covers(x, model):
            return node.op(x, y)
    return None


ALGEBRA = RuleSet(
    [
        neg_neg, add_zero, mul_one, signs, fold_constants, simple_powers, mul_to_sqr,
        div_to_reciprocal, drop_copies, cast_of_cast, switch_known, second_of_same_shape,
        unfilled_operands, neg_of_fill, second_model,
    ]
)  # fmt: skip
