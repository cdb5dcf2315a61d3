"""Means whose weights are exponentials: sum(y exp(x)) / sum(exp(x)) ..."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax, WeightedSoftmax
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.logarithms import split_exponentials
from symcomp.rewrite.stabilize.products import exponential_weights
from symcomp.rewrite.views import (
    Product,
    Sum,
    as_product,
    as_sum,
    call,
    puts_back,
    rearranged,
    same,
    scaled,
    sum_of,
    through_views,
)

PRODUCTS = ("mul", "true_div", "reciprocal", "sqr")


@rule(*PRODUCTS, why="exp overflows; only differences to the largest exponent matter")
def weighted_mean(node: Apply, graph: Any) -> Any:
    """sum(y exp(x)) / sum(exp(x)) -> sum(y softmax(x)), also with weights"""
    p = as_product(node.outputs[0])
    below = [(f, *_sum_of_exponentials(f)) for f, e in p.factors.items() if e == -1]
    for f, total, x, w, views in below:
        if total is None:
            continue
        for g, e in p.factors.items():
            if e != 1:
                continue
            other, y, v, more = _sum_of_exponentials(g)
            if other is None or other.op != total.op or not _same_exponent(x, y):
                continue
            if [n.op for n in views] != [n.op for n in more] or w.coefficient <= 0:
                continue
            weights = exponential_weights(x, Product(1.0, w.factors), total.op.axes)
            inner = dict(v.factors)
            for factor, k in w.factors.items():
                inner[factor] = inner.get(factor, 0.0) - k
            inner = {factor: k for factor, k in inner.items() if k}
            if any(k < 0 for k in inner.values()):
                continue
            mean = total.op(Product(v.coefficient / w.coefficient, inner).times(weights))
            return p.without(f, g).times(rearranged(_unless_empty(mean, x, total.op.axes), views))
    return None


def _unless_empty(mean: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``mean``; NaN, as 0 / 0 is, where there are no elements along the axes."""
    unknown = [ShapeI(a)(x) for a in axes if not x.type.shape[a]]
    for length in unknown:
        mean = switch(call("eq", length, 0), math.nan, mean)
    return mean


def _sum_of_exponentials(f: Any) -> tuple[Any, Any, Any, Any]:
    """Return (node of the sum, x, w, views) if ``f`` is the sum of w exp(x) over axes."""
    inner, views = through_views(f)
    total = computed_by(inner, Reduce)
    if total is None or total.op.reduction.name != "sum" or total.op.acc_dtype or not total.op.axes:
        return None, None, None, None
    x, w = split_exponentials(as_product(total.inputs[0]))
    if x is None or x.type.broadcastable != total.inputs[0].type.broadcastable:
        return None, None, None, None
    return total, x, w, views


def _same_exponent(x: Any, y: Any) -> bool:
    rest = as_sum(x).plus(as_sum(y).times(-1))
    return same(x, y) or not rest.terms and not rest.constant


@rule(*PRODUCTS, why="exponentials overflow; their shares of a sum do not")
def shares(node: Apply, graph: Any) -> Any:
    """exp(x) / (exp(x) + exp(y)) -> share(x, y);   also with coefficients and numbers, for sums of
    several multiples of exponentials
    """
    p = as_product(node.outputs[0])
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    for f, e in p.factors.items():
        exponents = _exponents(f) if e < 0 and float(e).is_integer() else None
        if exponents is None:
            continue
        rest = p.without(f)
        for g, k in rest.factors.items():
            mean = _shared(g, exponents) if k > 0 and float(k).is_integer() else None
            if mean is not None:
                powers = {**rest.without(g).factors, g: k - 1, f: e + 1}
                left = {x: n for x, n in powers.items() if n}
                return Product(rest.coefficient, left).times(mean)
    return None


def _exponents(f: Any) -> list[tuple[Any, float]] | None:
    """Return [(x, a), (y, b)] if ``f`` is a exp(x) + b exp(y) with positive numbers; x may be 0."""
    s = as_sum(f)
    found: list[tuple[Any, float]] = [(None, s.constant)] if s.constant else []
    for term, c in s.pairs():
        x, rest = split_exponentials(as_product(term))
        if x is None or rest.factors:
            return None
        found.append((x, c * rest.coefficient))
    exponentials = sum(x is not None for x, _ in found)
    positive = all(c > 0 for _, c in found)
    return found if len(found) == 2 and exponentials and positive else None


def _shared(g: Any, exponents: list[tuple[Any, float]]) -> Any:
    """Return ``g``, a sum of multiples of the exponentials, over the sum of these; None if it is
    not.
    """
    places = [x for x, _ in exponents]
    if (product := elementwise(g, "exp_of_sum")) is not None:
        for a, b in (product.inputs, product.inputs[::-1]):
            place = next((i for i, x in enumerate(places) if _equal(x, a)), None)
            if place is not None:
                (x, k), (y, m) = exponents[place], exponents[1 - place]
                return scaled(1 / k, _share(x, y, m / k)) * call("exp", b)
        return None
    s = as_sum(g)
    found: list[tuple[Any, float]] = []
    parts = [(*split_exponentials(as_product(term)), c) for term, c in s.pairs()]
    if s.constant:
        parts.append((None, Product(1.0, {}), s.constant))
    for z, w, c in parts:
        place = next((i for i, x in enumerate(places) if _equal(x, z)), None)
        if place is None:
            return None
        (x, k), (y, m) = exponents[place], exponents[1 - place]
        part = Product(1.0, w.factors).times(_share(x, y, m / k))
        found.append((part, c * w.coefficient / k))
    return sum_of(0, found, g)


def _equal(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    return _same_exponent(x, y)


def _share(x: Any, y: Any, ratio: float) -> Any:
    """Return exp(x) / (exp(x) + ratio exp(y))."""
    if x is None or y is None:
        z = scaled(-1, y) if x is None else x
        return call("sigmoid", z if ratio == 1 else z - math.log(ratio))
    return call("share", x, y if ratio == 1 else y + math.log(ratio))


@rule(
    Softmax, LogSoftmax, WeightedSoftmax,
    why="differences to the largest element are rounded, and softmax subtracts it anyway",
)  # fmt: skip
def softmax_of_shifted(node: Apply, graph: Any) -> Any:
    """softmax(c x - c max(x)) -> softmax(c x), the maximum along its axes; likewise log_softmax and
    weighted softmax
    """
    x, *weights = node.inputs
    axes = node.op.lines
    s = as_sum(x)
    for top, c in s.pairs() if len(s.terms) > 1 else ():
        inner, views = through_views(top)
        largest = computed_by(inner, Reduce)
        if largest is None or largest.op.reduction.name != "max" or largest.op.axes != axes:
            continue
        rest = s.plus(Sum(0.0, {top: -c}))
        of = as_sum(largest.inputs[0])
        if rest.plus(of.times(c)).terms or not puts_back(views, axes, x.ndim):
            continue
        return node.op(sum_of(rest.constant, rest.pairs(), x), *weights)
    return None


MEAN_RULES = RuleSet([weighted_mean, shares, softmax_of_shifted])
