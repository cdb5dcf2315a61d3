"""Softmax beside a reference class, whose exponential is a number: exp(x) / (1 + sum(exp(x)))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.ops.nnet.softmax import LogSumExp, Softmax
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.join import Join
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.logarithms import log_sum_exp, split_exponentials
from symcomp.rewrite.views import (
    PRODUCTS,
    Product,
    as_product,
    as_sum,
    call,
    exponent,
    puts_back,
    rearranged,
    same,
    sum_of,
    through_views,
)


@rule(*PRODUCTS, why="the sum overflows where the weight of the reference class does not")
def reference_weight(node: Apply, graph: Any) -> Any:
    """1 / (c + k sum(exp(x))) -> sigmoid(log(c / k) - logsumexp(x)) / c"""
    p = as_product(node.outputs[0])
    for f, e in p.factors.items():
        if e >= 0 or not float(e).is_integer():
            continue
        inner, views = through_views(f)
        if elementwise(inner, "add") is None:
            continue
        s = as_sum(inner)
        if s.single is None or s.constant <= 0 or s.single[1] <= 0:
            continue
        total, more = through_views(s.single[0])
        reduced = computed_by(total, Reduce)
        if reduced is None or reduced.op.reduction.name != "sum":
            continue
        exponent = log_sum_exp(reduced)
        if exponent is None or exponent.dtype != f.dtype:
            continue
        shift = math.log(s.constant / s.single[1])
        gap = sum_of(shift, [(rearranged(exponent, more), -1.0)], f)
        weight = rearranged(call("sigmoid", gap), views)
        rest = p.without(f)
        powers = {**rest.factors, f: e + 1} if e < -1 else rest.factors
        return Product(rest.coefficient / s.constant, powers).times(weight)
    return None


@rule(*PRODUCTS, why="exponentials overflow where their shares do not")
def softmax_beside_reference(node: Apply, graph: Any) -> Any:
    """exp(x) sigmoid(c - logsumexp(x)) -> exp(c) times the softmax of x and c, without the last;
    sum(exp(x)) sigmoid(c - logsumexp(x)) -> exp(c) sigmoid(logsumexp(x) - c)
    """
    p = as_product(node.outputs[0])
    for f, e in p.factors.items():
        if e != 1:
            continue
        inner, views = through_views(f)
        weight = elementwise(inner, "sigmoid")
        s = None if weight is None else as_sum(weight.inputs[0])
        if s is None or s.single is None or s.single[1] != -1:
            continue
        total, more = through_views(s.single[0])
        if computed_by(total, LogSumExp) is None:
            continue
        found = _shares(p.without(f), total, [*views, *more], s.constant)
        if found is not None:
            scale = math.exp(s.constant)
            part, rest = found
            return Product(scale * rest.coefficient, rest.factors).times(part)
    return None


def _shares(p: Product, total: Any, views: list[Apply], c: float) -> tuple[Any, Product] | None:
    """Return (part, rest) such that ``p`` is rest times exp(x), or sum(exp(x)), and part is that
    over exp(c) + sum(exp(x)); ``total`` is logsumexp(x), rearranged by ``views``.
    """
    (z,), axes = total.owner.inputs, total.owner.op.axes
    for g, k in p.factors.items():
        inner, others = through_views(g)
        reduced = computed_by(inner, Reduce) if k == 1 else None
        if reduced is None or [v.op for v in others] != [v.op for v in views]:
            continue
        if reduced.op.reduction.name == "sum" and reduced.op.axes == axes:
            if (y := exponent(reduced.inputs[0])) is not None and same(y, z):
                top = rearranged(total, views)
                return call("sigmoid", top - c if c else top), p.without(g)
    x, rest = split_exponentials(p)
    if x is None or not same(x, z) or len(axes) > 1 or not puts_back(views, axes, x.ndim):
        return None
    reference = call("second", rearranged(total, views), np.full((1,) * x.ndim, c, x.dtype))
    every = Softmax(axes[0])(Join(axes[0])(x, reference))
    return every[(slice(None),) * axes[0] + (slice(None, -1),)], rest


REFERENCE_RULES = RuleSet([reference_weight, softmax_beside_reference])
