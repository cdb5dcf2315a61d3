"""Sums and differences that cancel: exp(x) - 1, 1 - cos(x), sqrt(x) - sqrt(y), x^2 - y^2 ..."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core.dtype import is_discrete, is_float
from symcomp.core.node import Apply
from symcomp.ops.reductions.functions import mean as mean_
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Centered, Variance
from symcomp.ops.shapes.axes import expand_dims, squeeze
from symcomp.rewrite.checks import are_compared
from symcomp.rewrite.pattern import Match, f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import Shapes, shapes_of
from symcomp.rewrite.views import (
    SUMS,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    number,
    puts_back,
    rearranged,
    same,
    scaled,
    square_root,
    sum_of,
    through_views,
)

x, y = variables("x y")


expm1 = view_rule(
    "expm1", [(f.exp(x) - 1, f.expm1(x)), (f.exp(2 * x) - f.exp(x), f.exp(x) * f.expm1(x))],
    why="near x = 0 the digits of exp(x) - 1 are those of x",
)


@rule(*SUMS, why="where exp(y) is near 1 the digits of exp(y) - 1 are those of y")
def expm1_of_factor(node: Apply, graph: Any) -> Any:
    """x exp(y) - x -> x expm1(y) + (x - x), NaN for infinite x;   exp(x) exp(y) - exp(x) ->
    exp(x) expm1(y), also of exponentials of sums
    """
    s = as_sum(node.outputs[0])
    if len(s.terms) != 2 or s.constant:
        return None
    pairs = s.pairs()
    for (one, c), (other, d) in (pairs, pairs[::-1]):
        (whole, ys), (part, xs) = _exponents(one), _exponents(other)
        left = [y for y in ys if not any(same(x, y) for x in xs)]
        if len(left) != 1 or len(ys) != len(xs) + 1 or whole.factors != part.factors:
            continue
        if c * whole.coefficient == -d * part.coefficient:
            product = other * call("expm1", left[0])
            return scaled(-d, product if xs else product + (other - other))
    return None


def _exponents(x: Any) -> tuple[Product, list[Any]]:
    """Return ``x`` without the exponentials that multiply it, and the exponents of these."""
    p = as_product(x)
    found = [f for f, _ in (*p.found(1, "exp"), *p.found(1, "exp_of_sum"))]
    return p.without(*found), [v for f in found for v in f.owner.inputs]


erfc = view_rule(
    "erfc", [(1 - f.erf(x), f.erfc(x)), (1 + f.erf(x), f.erfc(-x))],
    why="where erf is near 1 its complement is known better",
)  # fmt: skip


erf = view_rule(
    "erf", 1 - f.erfc(x), f.erf(x), why="where erfc is near 1 erf is known better"
)  # fmt: skip


one_minus_sigmoid = view_rule(
    "one_minus_sigmoid", 1 - f.sigmoid(x), f.sigmoid(-x),
    why="the complement of a logistic function is its mirror image",
)  # fmt: skip


one_plus_tanh = view_rule(
    "one_plus_tanh",
    [(1 + f.tanh(x), 2 * f.sigmoid(2 * x)), (1 - f.tanh(x), 2 * f.sigmoid(-2 * x))],
    why="near -1 and 1 tanh has no digits left",
)


one_minus_tanh_squared = view_rule(
    "one_minus_tanh_squared", 1 - f.sqr(f.tanh(x)), f.sech_squared(x),
    why="1 - tanh^2 = 1 / cosh^2, which keeps its digits where tanh is near 1",
)  # fmt: skip


one_minus_erf_squared = view_rule(
    "one_minus_erf_squared", 1 - f.sqr(f.erf(x)), f.one_minus_erf_squared(x),
    where=lambda m: m.x.dtype == "float64", why="1 - erf^2 = erfc(x) erfc(-x)",
)  # fmt: skip


one_minus_leg_squared = view_rule(
    "one_minus_leg_squared", 1 - f.sqr(f.leg(x, y)), f.sqr(f.leg(y, x)),
    why="x^2 / (x^2 + y^2) is near 1 where x is large",
)  # fmt: skip


one_minus_cos = view_rule(
    "one_minus_cos", 1 - f.cos(x), f.one_minus_cos(x), why="1 - cos(x) = 2 sin(x/2)^2"
)


compoundm1 = view_rule(
    "compoundm1",
    [
        (f.sqr(1 + x) - 1, x * (x + 2)), ((1 + x) ** y - 1, f.compoundm1(x, y)),
        (f.compound(x, y) - 1, f.compoundm1(x, y)),
    ],
    why="(1 + x)^y - 1 = expm1(y log1p(x))",
)  # fmt: skip


hyperbolic = view_rule(
    "hyperbolic",
    [(f.exp(x) + f.exp(-x), 2 * f.cosh(x)), (f.exp(x) - f.exp(-x), 2 * f.sinh(x))],
    where=lambda m: _leading_sign(m.x) > 0,
    why="a difference of two growing exponentials cancels near 0; neither may overflow",
)


cosh_minus_one = view_rule(
    "cosh_minus_one", f.cosh(x) - 1, 2 * f.sqr(f.sinh(0.5 * x)), why="cosh(x) - 1 = 2 sinh(x/2)^2"
)


one_plus_cosh = view_rule(
    "one_plus_cosh", 1 + f.cosh(x), 2 * f.sqr(f.cosh(0.5 * x)),
    why="cosh(x) + 1 = 2 cosh(x/2)^2, whose logarithm and inverse do not overflow",
)  # fmt: skip


sqrt1pm1 = view_rule(
    "sqrt1pm1", f.sqrt(1 + x) - 1, f.sqrt1pm1(x),
    why="near x = 0 the digits of sqrt(1 + x) - 1 are those of x / 2",
)  # fmt: skip


def _beyond_leg(match: Match) -> Any:
    """hypot_minus(x, y), or hypotm1(y) where x is 1"""
    one = number(match.x) == 1
    return call("hypotm1", match.y) if one else call("hypot_minus", match.x, match.y)


hypot_minus = view_rule(
    "hypot_minus",
    [(f.hypot(x, y) - x, _beyond_leg),
     (f.hypot(x, y) - f.abs(x), f.hypot_minus(f.abs(x), y))],
    why="the hypotenuse is about as long as the longer leg",
)  # fmt: skip


@rule(*SUMS, why="sqrt(x) - sqrt(y) = (x - y) / (sqrt(x) + sqrt(y))", needs_in_view=["sqrt"])
def sqrt_difference(node: Apply, graph: Any) -> Any:
    """c sqrt(x + a) - c sqrt(x) -> c sqrt(a) sqrt1p_minus_sqrt(x / a);
    c sqrt(x + y) - c sqrt(x) -> c by_squares(sqrt(x + y), sqrt(x), y), where y is one term;
    c sqrt(x) - c sqrt(y) -> c sqrt_difference(x, y)
    """
    s = as_sum(node.outputs[0])
    if len(s.terms) != 2 or s.constant:
        return None
    (a, ca), (b, cb) = s.pairs()
    x, y = argument(a, "sqrt"), argument(b, "sqrt")
    if x is None or y is None or ca != -cb:
        return None
    gap = as_sum(x).plus(as_sum(y).times(-1))
    if not gap.terms and gap.constant:
        if gap.constant < 0:
            x, y, ca, gap = y, x, -ca, Sum(-gap.constant, {})
        a = gap.constant
        return scaled(ca * math.sqrt(a), call("sqrt1p_minus_sqrt", y if a == 1 else y / a))
    if len(gap.terms) + bool(gap.constant) == 1 and x.dtype == "float64":
        difference = sum_of(gap.constant, gap.pairs(), x)
        return scaled(ca, call("by_squares", a, b, difference))
    return scaled(ca, call("sqrt_difference", x, y))


@rule(*SUMS, why="x^2 - y^2 = (x - y)(x + y)")
def square_difference(node: Apply, graph: Any) -> Any:
    """c x^2 - c y^2 -> c square_difference(x, y) for c > 0, as a zero has the sign of c; y may be a
    number with an exact root;  (x + y)^2 - x^2 -> y (2 x + y)
    """
    s = as_sum(node.outputs[0])
    if len(s.terms) > 2:
        return None
    squares = [(square_root(t), c) for t, c in s.terms.items()]
    if any(x is None for x, _ in squares):
        return None
    if len(squares) == 2 and not s.constant and squares[0][1] == -squares[1][1]:
        (x, c), (y, _) = squares
        gap, total = (as_sum(x).plus(as_sum(y).times(k)) for k in (-1, 1))
        if len(gap.terms) + bool(gap.constant) == 1:
            both = sum_of(total.constant, total.pairs(), x)
            return scaled(c, sum_of(gap.constant, gap.pairs(), x) * both)
        sides = (x, y) if c > 0 else (y, x)
        return scaled(abs(c), call("square_difference", *sides))
    if len(squares) == 1 and s.constant:
        x, c = squares[0]
        root = math.sqrt(abs(s.constant / c))
        if s.constant / c < 0 and root * root == -s.constant / c:
            sides = (x, root) if c > 0 else (root, x)
            return scaled(abs(c), call("square_difference", *sides))
    return None


@rule(
    *SUMS, needs_in_view=["pow", "mul", "sqr"], why="x^3 - y^3 = (x - y) (x^2 + x y + y^2)"
)
def cube_difference(node: Apply, graph: Any) -> Any:
    """c x^3 - c y^3 -> c cube_difference(x, y);   (x + 1)^3 - x^3 -> (x + 1)^2 + x (x + 1) + x^2,
    likewise for other numbers
    """
    s = as_sum(node.outputs[0])
    if len(s.terms) != 2 or s.constant:
        return None
    (a, c), (b, d) = s.pairs()
    if c != -d or a.dtype != "float64":
        return None
    x, y = _cubed(a), _cubed(b)
    if x is None or y is None:
        return None
    gap = as_sum(x).plus(as_sum(y).times(-1))
    if gap.terms:
        return scaled(c, call("cube_difference", x, y))
    return scaled(c * gap.constant, call("sqr", x) + x * y + call("sqr", y))


def _cubed(x: Any) -> Any:
    """Return y if ``x`` is y^3, else None."""
    p = as_product(x)
    ((y, e),) = p.factors.items() if len(p.factors) == 1 else ((None, 0),)
    return y if e == 3 and p.coefficient == 1 else None


@rule(*SUMS, why="the variance is a mean of squares of small deviations")
def variance_of_moments(node: Apply, graph: Any) -> Any:
    """c mean(x^2) - c mean(x)^2 -> c variance(x)"""
    s = as_sum(node.outputs[0])
    if s.constant or len(s.terms) != 2:
        return None
    shapes = shapes_of(graph)
    for (a, ca), (b, cb) in (s.pairs(), s.pairs()[::-1]):
        first, second = _mean_of(a, shapes), _mean_of(square_root(b), shapes)
        if ca != -cb or first is None or second is None or first[1] != second[1]:
            continue
        if (x := square_root(first[0])) is not None and same(x, second[0]):
            if [v.op for v in first[2]] == [v.op for v in second[2]]:
                return scaled(ca, rearranged(Variance(first[1])(x), first[2]))
    return None


@rule(Centered, why="centred values have the mean 0, up to rounding errors")
def centered_twice(node: Apply, graph: Any) -> Any:
    """centered(c centered(x)) -> c centered(x), c constant along the axes"""
    (x,) = node.inputs
    p = as_product(x)
    centred = [f for f, e in p.factors.items() if e == 1 and computed_by(f, Centered)]
    if len(centred) != 1 or centred[0].owner.op != node.op:
        return None
    rest = p.without(*centred).factors
    return None if any(_along_once(f, node.op.axes) is None for f in rest) else x


@rule(Reduce, why="deviations from the mean have the sum 0, up to rounding errors")
def sum_of_deviations(node: Apply, graph: Any) -> Any:
    """sum(y + c (x - mean(x))) -> sum(y) + c (mean(x) - mean(x)), c constant along the axes: the
    difference is 0, or NaN where the mean is not finite
    """
    op, (z,) = node.op, node.inputs
    if op.reduction.name != "sum" or op.acc_dtype or not op.axes or not is_float(z.dtype):
        return None
    shapes, s = shapes_of(graph), as_sum(z)
    rest, zeros, operands = Sum(s.constant, {}), [], []
    for term, k in s.pairs():
        found = _sum_of_deviation(term, op.axes, shapes)
        if found is None:
            rest.terms[term] = k
        else:
            zeros.append(scaled(k, found[0]))
            operands += found[1]
    if not zeros or rest.constant:
        return None
    left = sum_of(0.0, rest.pairs(), z) if rest.terms else operands[0]
    if left.type.broadcastable != z.type.broadcastable:
        return None
    if not are_compared(left, operands, zeros, shapes):
        return None
    if rest.terms:
        zeros.insert(0, expand_dims(op(left), op.axes))
    return squeeze(sum_of(0.0, [(v, 1.0) for v in zeros], z), op.axes)


def _sum_of_deviation(
    x: Any, axes: tuple[int, ...], shapes: Shapes
) -> tuple[Any, list[Any]] | None:
    """Return c (m - m), and the operands of ``x``, y - m first, if ``x`` is c (y - m), where m is
    the mean of y over the axes, along which c is constant; None if it is not.
    """
    p = as_product(x)
    for d, e in p.factors.items():
        mean = _mean_below(d, axes, shapes) if e == 1 else None
        rest = p.without(d)
        once = {g: _along_once(g, axes) for g in rest.factors}
        if mean is not None and None not in once.values():
            c = Product(rest.coefficient, {once[g]: k for g, k in rest.factors.items()})
            return c.times(mean - mean), [d, *rest.factors]
    return None


def _mean_below(x: Any, axes: tuple[int, ...], shapes: Shapes) -> Any:
    """Return m if ``x`` is y - m or m - y, where m is the mean of y over the axes; else None."""
    centred = computed_by(x, Centered)
    if centred is not None:
        mean = mean_(centred.inputs[0], axis=axes, keepdims=True)
        return mean if centred.op.axes == axes else None
    found = deviation(x, axes, shapes)
    return None if found is None else found[1]


def deviation(x: Any, axes: tuple[int, ...], shapes: Shapes) -> tuple[Any, Any, float] | None:
    """Return (y, m, c) if ``x`` is c (y - m) for c = 1 or -1, where m is the mean of y over the
    axes; else None.
    """
    s = as_sum(x)
    if s.constant or sorted(s.terms.values()) != [-1.0, 1.0]:
        return None
    terms = (*s.terms,)
    for y, m in (terms, terms[::-1]):
        found = _mean_of(m, shapes)
        if found is not None and found[1] == axes and same(found[0], y):
            return (y, m, s.terms[y]) if puts_back(found[2], axes, y.ndim) else None
    return None


def _along_once(x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x`` with length 1 along the axes; None if it is not known to be constant there."""
    filled = elementwise(x, "second")
    for y in (x,) if filled is None else (x, filled.inputs[1]):
        if all(y.type.shape[a] == 1 for a in axes):
            return y
    return None


def _mean_of(x: Any, shapes: Shapes) -> tuple[Any, tuple[int, ...], list[Any]] | None:
    """Return (y, axes, ops) if ``x`` is the mean of y over axes, rearranged by the views of ops."""
    if x is None:
        return None
    x, outer = through_views(x)
    p = as_product(x)
    for factor in p.factors:
        inner, views = through_views(factor)
        total = computed_by(inner, Reduce)
        if total is None or p.factors[factor] != 1 or total.op.reduction.name != "sum":
            continue
        y, axes = total.inputs[0], total.op.axes
        if is_inverse_count(p.without(factor), y, axes, shapes):
            return y, axes, outer + views
    return None


def is_inverse_count(rest: Product, y: Any, axes: tuple[int, ...], shapes: Shapes) -> bool:
    """Tell whether ``rest`` is one over the number of elements of ``y`` along ``axes``."""
    known, lengths = shapes.count(y, axes)
    seen: list[int] = []
    for factor, e in rest.factors.items():
        if e != -1:
            return False
        count = through_views(factor)[0]
        while (node := elementwise(count, "cast")) is not None:
            count = through_views(node.inputs[0])[0]
        if not is_discrete(count.dtype):
            return False
        part, more = shapes.count_of(count)
        known, seen = known // part if part and known % part == 0 else 0, seen + more
    return sorted(seen) == lengths and rest.coefficient * known == 1


# -- matching


def _leading_sign(x: Any) -> float:
    s = as_sum(x)
    return next(iter(s.terms.values()), 1.0)


SUM_RULES = RuleSet(
    [
        expm1, expm1_of_factor, erfc, erf, one_minus_sigmoid, one_plus_tanh, one_minus_tanh_squared,
        one_minus_erf_squared, one_minus_leg_squared, one_minus_cos, compoundm1, hyperbolic,
        cosh_minus_one, one_plus_cosh,
        sqrt1pm1, hypot_minus, sqrt_difference, square_difference, cube_difference,
        variance_of_moments, centered_twice, sum_of_deviations,
    ]
)  # fmt: skip
