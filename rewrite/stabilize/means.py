"""Means whose weights are exponentials: sum(y exp(x)) / sum(exp(x)) ..."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.nnet.softmax import (
    LogSoftmax,
    LogSumExp,
    RootSoftmax,
    Softmax,
    WeightedSoftmax,
    even_weights,
)
from symcomp.ops.nnet.unit_vector import UnitVector
from symcomp.ops.nnet.weighted_mean import EXPONENTS, SoftmaxPowerSum, WeightedMean
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.pattern import Match, f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.logarithms import split_exponentials, stretched
from symcomp.rewrite.stabilize.products import exponential_weights
from symcomp.rewrite.views import (
    SUMS,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    number,
    product_of,
    puts_back,
    rearranged,
    same,
    scaled,
    sum_of,
    through_views,
)

PRODUCTS = ("mul", "true_div", "reciprocal", "sqr")
# Numbers that powers of coefficients make stay below 2 to this.
LARGEST_EXPONENT = 1000
# (x, a) for a exp(x); no x is x = 0.
Exponential = tuple[Any, float]

x, y = variables("x y")


@rule(*PRODUCTS, why="exp overflows; only differences to the largest exponent matter")
def weighted_mean(node: Apply, graph: Any) -> Any:
    """sum(y exp(x)) / sum(exp(x)) -> weighted_mean(x, y), also with weights;
    sum(y exp(2 x)) / sum(exp(x))^2 -> weighted_mean(x, y softmax(x)), likewise of higher powers;
    both also inverse, for powers above 1
    """
    p = as_product(node.outputs[0])
    sums = [(g, e, *_sum_of_exponentials(g)) for g, e in p.factors.items() if e < 0 or e > 1]
    for power, e, total, alike, views in sums:
        if total is None or not float(e).is_integer():
            continue
        sign = math.copysign(1, e)
        for g, k in p.factors.items():
            other, parts, more = _sum_of_exponentials(g) if k == -sign else (None, (), ())
            if other is None or other.op != total.op:
                continue
            if [n.op for n in views] != [n.op for n in more]:
                continue
            x, w = alike[0]
            for y, v in parts:
                mean = _mean(total.op, x, w, y, v, abs(e))
                if mean is not None:
                    rest = p.without(power, g)
                    factors = {**rest.factors, rearranged(mean, views): -sign}
                    return Product(rest.coefficient, factors).times()
    return None


def _mean(op: Reduce, x: Any, w: Product, y: Any, v: Product, e: float) -> Any:
    """Return the sum of v exp(y) over the e-th power of the sum of w exp(x), where y = e x."""
    if w.coefficient <= 0 or not _same_exponent(x, y, e) or e > 1 and w.factors:
        return None
    exponents = -e * math.log2(w.coefficient), math.log2(abs(v.coefficient) or 1.0)
    if not max(map(abs, [*exponents, sum(exponents)])) < LARGEST_EXPONENT:
        return None
    named = EXPONENTS.least <= e <= EXPONENTS.most and x.dtype == "float64"
    if named and not w.factors and not v.factors:
        total = SoftmaxPowerSum(op.axes, int(e))(x)
        return scaled(v.coefficient * w.coefficient**-e, total)
    if not w.factors and x.dtype == "float64":
        values: Any = v.times(*[even_weights(x, op.axes)] * (int(e) - 1))
        if not isinstance(values, float) and values.dtype == x.dtype:
            mean = WeightedMean(op.axes)(*stretched(x, values))
            return scaled(w.coefficient**-e, mean)
    if e > 1:
        return None
    inner = dict(v.factors)
    for factor, k in w.factors.items():
        inner[factor] = inner.get(factor, 0.0) - k
    inner = {factor: k for factor, k in inner.items() if k}
    if any(k < 0 for k in inner.values()):
        return None
    weights = exponential_weights(x, Product(1.0, w.factors), op.axes)
    mean = op(Product(v.coefficient / w.coefficient, inner).times(weights))
    return unless_empty(mean, x, op.axes, math.nan)


@rule(*SUMS, why="the logarithms are those of nearly equal numbers where exponents are small")
def difference_of_log_sums(node: Apply, graph: Any) -> Any:
    """logsumexp(y) - logsumexp(x), where terms of y - x cancel, as for y = 2 x -> the same;
    log1p(weighted_mean(x, expm1(y - x))) where all |y - x| are below 1/2
    """
    s = as_sum(node.outputs[0])
    totals = [(t, c, *through_views(t)) for t, c in s.pairs() if c > 0]
    for one, c, inner, views in totals:
        for other, k in s.pairs():
            source, more = through_views(other)
            above, below = (computed_by(v, LogSumExp) for v in (inner, source))
            if k != -c or above is None or below is None or above.op != below.op:
                continue
            if [n.op for n in views] != [n.op for n in more]:
                continue
            near = _log_of_near_ratio(below.inputs[0], above.inputs[0], above.op.axes)
            if near is not None:
                known = call("defined_difference", one, other, rearranged(near, views))
                found = call("known_difference", one, other, known)
                rest = s.plus(Sum(0.0, {one: -c, other: -k, found: c}))
                return sum_of(rest.constant, rest.pairs(), node.outputs[0])
    return None


def _log_of_near_ratio(x: Any, y: Any, axes: tuple[int, ...]) -> Any:
    """Return the logarithm of the ratio of sums of exp(y) and exp(x) where all elements of y - x
    are small, else NaN; None if no terms cancel in that difference.
    """
    one, other = as_sum(x), as_sum(y)
    gap = other.plus(one.times(-1))
    if len(gap.terms) >= len(one.terms) + len(other.terms) or not gap.terms:
        return None
    d = sum_of(gap.constant, gap.pairs(), x)
    alike = d.type.broadcastable == x.type.broadcastable
    if not alike or not x.dtype == y.dtype == d.dtype == "float64":
        return None
    small = Reduce(REDUCTIONS["all"], axes)(call("lt", call("abs", d), 0.5))
    return switch(small, call("log1p", WeightedMean(axes)(x, call("expm1", d))), math.nan)


def unless_empty(z: Any, x: Any, axes: tuple[int, ...], otherwise: float) -> Any:
    """Return ``z``; another number where ``x`` has no elements along the axes."""
    unknown = [ShapeI(a)(x) for a in axes if not x.type.shape[a]]
    for length in unknown:
        z = switch(call("eq", length, 0), otherwise, z)
    return z


def _sum_of_exponentials(f: Any) -> tuple[Any, list[tuple[Any, Product]], Any]:
    """Return (node of the sum, pairs (x, w), views) if ``f`` is the sum of w exp(x) over axes."""
    inner, views = through_views(f)
    total = computed_by(inner, Reduce)
    if total is None or total.op.reduction.name != "sum" or total.op.acc_dtype or not total.op.axes:
        return None, [], None
    kept = total.inputs[0].type.broadcastable
    pairs = [(x, w) for x, w in _readings(total.inputs[0]) if x.type.broadcastable == kept]
    return (total, pairs, views) if pairs else (None, [], None)


def _readings(z: Any) -> list[tuple[Any, Product]]:
    """Return pairs (x, w) such that z = w exp(x)."""
    p = as_product(z)
    x, w = split_exponentials(p)
    if x is not None:
        return [(x, w)]
    for factor, _ in p.found(1, "exp_of_sum"):
        a, b = factor.owner.inputs
        rest = p.without(factor)
        return [
            (x, Product(rest.coefficient, {**rest.factors, call("exp", y): 1.0}))
            for x, y in ((a, b), (b, a))
        ]
    return []


def _same_exponent(x: Any, y: Any, e: float = 1.0) -> bool:
    """Tell whether y = e x."""
    rest = as_sum(x).times(e).plus(as_sum(y).times(-1))
    return e == 1 and same(x, y) or not rest.terms and not rest.constant


@rule(*PRODUCTS, why="exponentials overflow; their shares of a sum do not")
def shares(node: Apply, graph: Any) -> Any:
    """exp(x) / (exp(x) + exp(y)) -> share(x, y);   also of more, with coefficients and numbers, and
    as sigmoid(x); (v exp(x) + w exp(y)) / (exp(x) + exp(y)) -> shared_mean(v, w, x, y)
    """
    p = as_product(node.outputs[0])
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    for below, e in p.factors.items():
        exponents = _exponents(below, e) if float(e).is_integer() else None
        if exponents is None:
            continue
        rest = p.without(below)
        for g, k in rest.factors.items():
            mean = _shared(g, exponents, e) if k > 0 and float(k).is_integer() else None
            if mean is not None:
                n = min(k, -e) if e < 0 else 1.0
                left = e + math.copysign(n, -e)
                share, c = _number_share(exponents, below) if left < 0 else (None, 1.0)
                factors = {**rest.factors, g: k - n, mean: n}
                factors |= {below: left} if share is None else {share: -left}
                powers = {x: m for x, m in factors.items() if m}
                return Product(rest.coefficient * c**left, powers).times()
    return None


def _number_share(exponents: list[Exponential], below: Any) -> tuple[Any, float]:
    """Return the share s that a number c among the exponentials has of the sum ``below``, and the
    number, so that 1 / below = s / c; (None, 1) if there is no number.
    """
    place = next((i for i, (x, _) in enumerate(exponents) if x is None), None)
    if place is None or below.dtype != "float64":
        return None, 1.0
    return _share(exponents, place), exponents[place][1]


def _exponents(f: Any, e: float) -> list[Exponential] | None:
    """Return [(x, a), (y, b), ...] if f^e is a power below 0 of a exp(x) + b exp(y) + ..., with
    positive numbers; x may be 0.
    """
    if e > 0:
        x = argument(f, "sigmoid")
        return None if x is None else [(None, 1.0), (scaled(-1, x), 1.0)]
    s = as_sum(f)
    found: list[Exponential] = [(None, s.constant)] if s.constant else []
    for term, c in s.pairs():
        x, rest = split_exponentials(as_product(term))
        if x is None or rest.factors:
            return None
        found.append((x, c * rest.coefficient))
    exponentials = sum(x is not None for x, _ in found)
    positive = all(c > 0 for _, c in found)
    return found if len(found) > 1 and exponentials and positive else None


def _shared(g: Any, exponents: list[Exponential], e: float) -> Any:
    """Return ``g``, a sum of multiples of the exponentials, over the sum of these; None if it is
    not.
    """
    places = [x for x, _ in exponents]
    if (product := elementwise(g, "exp_of_sum")) is not None and e < 0:
        for a, b in (product.inputs, product.inputs[::-1]):
            place = next((i for i, x in enumerate(places) if _equal(x, a)), None)
            if place is not None:
                return scaled(1 / exponents[place][1], _share(exponents, place)) * call("exp", b)
        return None
    s = as_sum(g)
    found: dict[int, Product] = {}
    parts = [(*split_exponentials(as_product(term)), c) for term, c in s.pairs()]
    if s.constant:
        parts.append((None, Product(1.0, {}), s.constant))
    if all(z is None for z, _, _ in parts):
        return None  # a number over c + exp(x) does not overflow
    for z, w, c in parts:
        place = next((i for i, x in enumerate(places) if _equal(x, z)), None)
        if place is None or place in found:
            return None
        found[place] = Product(c * w.coefficient / exponents[place][1], w.factors)
    if e > 0 and len(found) < 2:
        return None
    return _mean_of_shares(found, exponents, g)


def _mean_of_shares(found: dict[int, Product], exponents: list[Exponential], g: Any) -> Any:
    """Return the sum of the products times the shares of their exponentials."""
    if len(found) == len(exponents) == 2 and g.dtype == "float64":
        one, other = found[0], found[1]
        if one.factors or other.factors:
            weights = (product_of(found[0]), product_of(found[1]))
            return call("shared_mean", *weights, *_two(exponents, 0, g))
        if one.coefficient == -other.coefficient:
            return scaled(one.coefficient, call("share_difference", *_two(exponents, 0, g)))
    terms = [(Product(1.0, w.factors).times(_share(exponents, i)), w.coefficient)
             for i, w in found.items()]  # fmt: skip
    return sum_of(0, terms, g)


def _share(exponents: list[Exponential], place: int) -> Any:
    """Return the share that one exponential has of the sum."""
    if len(exponents) == 2 and any(x is None for x, _ in exponents):
        (x, a), (y, b) = exponents[place], exponents[1 - place]
        z = scaled(-1, y) if x is None else x
        if a == b or z.dtype != "float64":
            return call("sigmoid", z if a == b else z - math.log(b / a))
    return call("share", *_two(exponents, place, exponents[place][0]))


def _two(exponents: list[Exponential], place: int, like: Any) -> tuple[Any, Any]:
    """Return (x, y) such that the share of one exponential is exp(x) / (exp(x) + exp(y)). A number
    is shifted in place of the exponents, which are not rounded then.
    """
    x, k = exponents[place]
    unit = k if x is not None else next(m for y, m in exponents if y is not None)
    rest = [_shifted(y, m / unit) for i, (y, m) in enumerate(exponents) if i != place]
    # A number comes last, so that the first operand has the dtype of the result.
    others = sorted(rest, key=lambda y: not isinstance(y, Variable))
    total = others[0]
    for y in others[1:]:
        total = call("logaddexp", total, y)
    return _shifted(x, k / unit), total


def _shifted(x: Any, c: float) -> Any:
    """Return log(c exp(x)), where no x is 0."""
    shift = math.log(c)
    if x is None:
        return shift
    return x + shift if shift else x


def _equal(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    return _same_exponent(x, y)


def _is_double(m: Match) -> bool:
    return bool(m.x.dtype == m.y.dtype == "float64" and m.x is not m.y)


ratio_of_exponentials = view_rule(
    "ratio_of_exponentials",
    [
        ((1 + f.exp(x)) * f.sigmoid(y), f.one_plus_exp_ratio(x, -y)),
        (f.sigmoid(x) / f.sigmoid(y), f.one_plus_exp_ratio(-y, -x)),
        (f.expm1(x) / f.expm1(y), f.expm1_ratio(x, y)),
        (f.exp(x) / f.expm1(y), f.exp_over_expm1(x, y)),
    ],
    where=_is_double,
    why="both exponentials may overflow where their ratio does not",
)


@rule(
    Softmax, RootSoftmax, LogSoftmax, WeightedSoftmax, WeightedMean,
    why="differences to the largest element are rounded, and softmax subtracts it anyway",
)  # fmt: skip
def softmax_of_shifted(node: Apply, graph: Any) -> Any:
    """softmax(c x - c max(x)) -> softmax(c x), the maximum along its axes; likewise log_softmax,
    weighted softmax and weighted mean
    """
    x, *others = node.inputs
    axes = node.op.axes if isinstance(node.op, WeightedMean) else node.op.lines
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
        return node.op(sum_of(rest.constant, rest.pairs(), x), *others)
    return None


@rule("sqrt", "pow", why="the softmax underflows long before its root")
def root_of_softmax(node: Apply, graph: Any) -> Any:
    """sqrt(softmax(x)) -> root softmax(x)"""
    softmax = computed_by(node.inputs[0], Softmax)
    if softmax is None or node.op.scalar.name == "pow" and number(node.inputs[1]) != 0.5:
        return None
    (x,) = softmax.inputs
    return RootSoftmax(softmax.op.axis)(x) if x.dtype == "float64" else None


@rule(UnitVector, why="the exponentials leave the range where their shares do not")
def unit_vector_of_exponentials(node: Apply, graph: Any) -> Any:
    """unit vector of exp(x) -> root softmax(2 x)"""
    x, axes = argument(node.inputs[0], "exp"), node.op.axes
    if x is None or x.dtype != "float64" or len(axes) > 1:
        return None
    return RootSoftmax(axes[0])(scaled(2, x))


@rule(Reduce, why="exp is increasing, and overflows where a quotient by the largest one does not")
def extreme_of_exponentials(node: Apply, graph: Any) -> Any:
    """max(exp(x)) -> exp(max(x));   min(exp(x)) -> exp(min(x))"""
    x = argument(node.inputs[0], "exp") if node.op.reduction.name in ("max", "min") else None
    return None if x is None or x.dtype != node.outputs[0].dtype else call("exp", node.op(x))


@rule(*SUMS, why="a softmax that is near 1 leaves no digits of the rest")
def rest_of_softmax(node: Apply, graph: Any) -> Any:
    """c - c softmax(x) -> c times the sum of the others, where one has more than half of all"""
    s = as_sum(node.outputs[0])
    if not s.constant or s.single is None or s.constant != -s.single[1]:
        return None
    p, reads = through_views(s.single[0], reading=True)
    softmax = computed_by(p, Softmax)
    if softmax is None:
        return None
    most, others, rest = _parted(p, softmax.op.axis)
    return scaled(s.constant, rearranged(switch(most, rest, 1 - others), reads))


def _parted(p: Any, axis: int) -> tuple[Any, Any, Any]:
    """Return where softmax weights are more than 0.5, the others, and the sum of these."""
    most = call("gt", p, 0.5)
    others = switch(most, 0.0, p)
    return most, others, expand_dims(sum_(others, axis=axis), axis)


@rule("log", "log1p", why="a softmax that is near 1 leaves no digits of the rest")
def log_of_rest(node: Apply, graph: Any) -> Any:
    """log(1 - softmax(x)) -> log1p(-softmax(x)), of the sum of the others where one has more than
    half of all
    """
    (z,), logarithm = node.inputs, node.op.scalar.name
    s = as_sum(z)
    if logarithm == "log1p" and s.single is not None and s.single[1] == -1 and not s.constant:
        p, reads = through_views(s.single[0], reading=True)
    else:
        z, reads = through_views(z, reading=True)
        p = _complement(z) if logarithm == "log" else None
    softmax = None if p is None else computed_by(p, Softmax)
    if softmax is None:
        return None
    most, others, rest = _parted(p, softmax.op.axis)
    found = switch(most, call("log", rest), call("log1p", -others))
    return rearranged(found, reads)


def _complement(x: Any) -> Any:
    """Return p if ``x`` is 1 - p as ``rest_of_softmax`` computes it, else None."""
    chosen = elementwise(x, "switch")
    if chosen is None:
        return None
    most, rest, less = chosen.inputs
    s, compared = as_sum(less), elementwise(most, "gt")
    total = computed_by(through_views(rest)[0], Reduce)
    if s.single is None or compared is None or total is None or total.inputs[0] is not s.single[0]:
        return None
    p, half = compared.inputs
    others = elementwise(s.single[0], "switch")
    whole = s.constant == 1 and s.single[1] == -1 and number(half) == 0.5
    return p if whole and others is not None and others.inputs[::2] == [most, p] else None


MEAN_RULES = RuleSet(
    [
        weighted_mean, difference_of_log_sums, shares, ratio_of_exponentials, softmax_of_shifted,
        root_of_softmax, unit_vector_of_exponentials, extreme_of_exponentials, rest_of_softmax,
        log_of_rest,
    ]
)  # fmt: skip
