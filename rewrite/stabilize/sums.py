"""Sums and differences that cancel: exp(x) - 1, 1 - cos(x), sqrt(x) - sqrt(y), x^2 - y^2 ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symcomp.core.dtype import is_discrete
from symcomp.core.node import Apply
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Centered, Variance
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import Shapes, shapes_of
from symcomp.rewrite.views import (
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    number,
    rearranged,
    same,
    scaled,
    sum_of,
    through_views,
)

SUMS = ("add", "sub", "neg")


@rule(*SUMS, why="near x = 0 the digits of exp(x) - 1 are those of x")
def expm1(node: Apply, graph: Any) -> Any:
    """c exp(x) - c -> c expm1(x)"""
    match _number_and(node, "exp", lambda k, n: n == -k):
        case c, x:
            return scaled(c, call("expm1", x))
    return None


@rule(*SUMS, why="where erf is near 1 its complement is known better")
def erfc(node: Apply, graph: Any) -> Any:
    """c - c erf(x) -> c erfc(x);   c + c erf(x) -> c erfc(-x)"""
    found = _number_and(node, "erf", lambda k, n: abs(n) == abs(k))
    if found is None:
        return None
    c, x = found
    n = as_sum(node.outputs[0]).constant
    return scaled(n, call("erfc", scaled(-c / n, x)))


@rule(*SUMS, why="where erfc is near 1 erf is known better")
def erf(node: Apply, graph: Any) -> Any:
    """c - c erfc(x) -> c erf(x)"""
    match _number_and(node, "erfc", lambda k, n: n == -k):
        case c, x:
            return scaled(-c, call("erf", x))
    return None


@rule(*SUMS, why="the complement of a logistic function is its mirror image")
def one_minus_sigmoid(node: Apply, graph: Any) -> Any:
    """c - c sigmoid(x) -> c sigmoid(-x)"""
    match _number_and(node, "sigmoid", lambda k, n: n == -k):
        case c, x:
            return scaled(-c, call("sigmoid", scaled(-1, x)))
    return None


@rule(*SUMS, why="near -1 and 1 tanh has no digits left")
def one_plus_tanh(node: Apply, graph: Any) -> Any:
    """c + c tanh(x) -> 2 c sigmoid(2 x);   c - c tanh(x) -> 2 c sigmoid(-2 x)"""
    found = _number_and(node, "tanh", lambda k, n: abs(n) == abs(k))
    if found is None:
        return None
    c, x = found
    n = as_sum(node.outputs[0]).constant
    return scaled(2 * n, call("sigmoid", scaled(2 * c / n, x)))


@rule(*SUMS, why="1 - tanh^2 = 1 / cosh^2, which keeps its digits where tanh is near 1")
def one_minus_tanh_squared(node: Apply, graph: Any) -> Any:
    """c - c tanh(x)^2 -> c sech(x)^2"""
    s = as_sum(node.outputs[0])
    if s.single is None or s.constant != -s.single[1]:
        return None
    factors = as_product(s.single[0])
    tanhs = factors.found(2, "tanh")
    if factors.coefficient != 1 or len(factors.factors) != 1 or not tanhs:
        return None
    return scaled(s.constant, call("sech_squared", tanhs[0][1]))


@rule(*SUMS, why="1 - cos(x) = 2 sin(x/2)^2")
def one_minus_cos(node: Apply, graph: Any) -> Any:
    """c - c cos(x) -> c one_minus_cos(x)"""
    match _number_and(node, "cos", lambda k, n: n == -k):
        case c, x:
            return scaled(-c, call("one_minus_cos", x))
    return None


@rule(*SUMS, why="(1 + x)^y - 1 = expm1(y log1p(x))")
def compoundm1(node: Apply, graph: Any) -> Any:
    """c (1 + x)^y - c -> c compoundm1(x, y)"""
    s = as_sum(node.outputs[0])
    if s.single is None or s.constant != -s.single[1]:
        return None
    power = elementwise(s.single[0], "pow", "sqr", "compound")
    if power is None:
        return None
    if power.op.scalar.name == "compound":
        return scaled(s.single[1], call("compoundm1", *power.inputs))
    base = as_sum(power.inputs[0])
    if base.constant != 1 or not base.terms:
        return None
    x = sum_of(0, base.pairs(), node.outputs[0])
    y = power.inputs[1] if power.op.scalar.name == "pow" else 2.0
    return scaled(s.single[1], call("compoundm1", x, y))


@rule(*SUMS, why="a difference of two growing exponentials cancels near 0; neither may overflow")
def hyperbolic(node: Apply, graph: Any) -> Any:
    """c exp(x) + c exp(-x) -> 2 c cosh(x);   c exp(x) - c exp(-x) -> 2 c sinh(x)"""
    s = as_sum(node.outputs[0])
    if s.constant or len(s.terms) != 2:
        return None
    (a, ca), (b, cb) = s.pairs()
    x, y = exponent(a), exponent(b)
    if x is None or y is None or abs(ca) != abs(cb) or not _is_zero_sum(x, y):
        return None
    if _leading_sign(x) < 0:
        x, ca, cb = y, cb, ca
    return scaled(2 * ca, call("cosh" if ca == cb else "sinh", x))


@rule(*SUMS, why="cosh(x) - 1 = 2 sinh(x/2)^2")
def cosh_minus_one(node: Apply, graph: Any) -> Any:
    """c cosh(x) - c -> 2 c sinh(x / 2)^2"""
    match _number_and(node, "cosh", lambda k, n: n == -k):
        case c, x:
            return scaled(2 * c, call("sqr", call("sinh", scaled(0.5, x))))
    return None


@rule(*SUMS, why="near x = 0 the digits of sqrt(1 + x) - 1 are those of x / 2")
def sqrt1pm1(node: Apply, graph: Any) -> Any:
    """c sqrt(1 + x) - c -> c sqrt1pm1(x)"""
    match _number_and(node, "sqrt", lambda k, n: n == -k):
        case c, y:
            inner = as_sum(y)
            if inner.constant == 1 and inner.terms:
                return scaled(c, call("sqrt1pm1", sum_of(0, inner.pairs(), y)))
    return None


@rule(*SUMS, why="the hypotenuse is about as long as the longer leg")
def hypot_minus(node: Apply, graph: Any) -> Any:
    """c hypot(x, y) - c x -> c hypot_minus(x, y);   c hypot(x, 1) - c -> c hypotm1(x)"""
    s = as_sum(node.outputs[0])
    for term, c in s.pairs():
        legs = elementwise(term, "hypot")
        if legs is None:
            continue
        for x, y in (legs.inputs, legs.inputs[::-1]):
            rest = s.plus(Sum(0.0, {term: -c})).plus(as_sum(x).times(c))
            if rest.terms or rest.constant:
                continue
            one = number(x) == 1
            return scaled(c, call("hypotm1", y) if one else call("hypot_minus", x, y))
    return None


@rule(*SUMS, why="sqrt(x) - sqrt(y) = (x - y) / (sqrt(x) + sqrt(y))")
def sqrt_difference(node: Apply, graph: Any) -> Any:
    """c sqrt(x + a) - c sqrt(x) -> c sqrt(a) sqrt1p_minus_sqrt(x / a);
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
    return scaled(ca, call("sqrt_difference", x, y))


@rule(*SUMS, why="x^2 - y^2 = (x - y)(x + y)")
def square_difference(node: Apply, graph: Any) -> Any:
    """c x^2 - c y^2 -> c square_difference(x, y), where y may be a number with an exact root"""
    s = as_sum(node.outputs[0])
    squares = [(square_root(t), c) for t, c in s.terms.items()]
    if any(x is None for x, _ in squares):
        return None
    if len(squares) == 2 and not s.constant and squares[0][1] == -squares[1][1]:
        (x, c), (y, _) = squares
        return scaled(c, call("square_difference", x, y))
    if len(squares) == 1 and s.constant:
        x, c = squares[0]
        root = math.sqrt(abs(s.constant / c))
        if s.constant / c < 0 and root * root == -s.constant / c:
            return scaled(c, call("square_difference", x, root))
    return None


@rule(*SUMS, why="log(1 + x) and x agree to first order")
def log1p_minus(node: Apply, graph: Any) -> Any:
    """c log1p(x) - c x -> c log1p_minus(x)"""
    s = as_sum(node.outputs[0])
    for term, c in s.pairs():
        x = argument(term, "log1p")
        if x is None:
            continue
        inner = as_sum(x)
        rest = Sum(s.constant, {t: k for t, k in s.terms.items() if t is not term})
        left = rest.plus(inner.times(c))
        if not left.terms and left.constant == 0:
            return scaled(c, call("log1p_minus", x))
    return None


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
    return x if all(_constant_along(f, node.op.axes) for f in rest) else None


def _constant_along(x: Any, axes: tuple[int, ...]) -> bool:
    """Tell whether ``x`` is known to be constant along the axes."""
    if all(x.type.shape[a] == 1 for a in axes):
        return True
    filled = elementwise(x, "second")
    return filled is not None and all(filled.inputs[1].type.shape[a] == 1 for a in axes)


def _mean_of(x: Any, shapes: Shapes) -> tuple[Any, tuple[int, ...], list[Any]] | None:
    """Return (y, axes, ops) if ``x`` is the mean of y over axes, rearranged by the views of ops."""
    if x is None:
        return None
    x, outer = through_views(x)
    p = as_product(x)
    for f in p.factors:
        inner, views = through_views(f)
        total = computed_by(inner, Reduce)
        if total is None or p.factors[f] != 1 or total.op.reduction.name != "sum":
            continue
        y, axes = total.inputs[0], total.op.axes
        if is_inverse_count(p.without(f), y, axes, shapes):
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
            count = node.inputs[0]
        if not is_discrete(count.dtype):
            return False
        part, more = shapes.count_of(count)
        known, seen = known // part if part and known % part == 0 else 0, seen + more
    return sorted(seen) == lengths and rest.coefficient * known == 1


# -- matching


def _number_and(
    node: Apply, name: str, fits: Callable[[float, float], bool]
) -> tuple[float, Any] | None:
    """Return (k, x) if the node computes ``n + k f(x)`` with f of this name and numbers that fit.
    """
    s = as_sum(node.outputs[0])
    if s.single is not None and s.constant:
        term, k = s.single
        x = argument(term, name) if name != "exp" else exponent(term)
        if x is not None and fits(k, s.constant):
            return k, x
    return None


def exponent(x: Any) -> Any:
    """Return y if ``x`` is exp(y), also written as 1 / exp(-y) or as a power; else None."""
    y = argument(x, "exp")
    if (power := elementwise(x, "power_of_log")) is not None:
        return power.inputs[1] * call("log", power.inputs[0])
    if y is None:
        p = as_product(x)
        inverses = p.found(-1, "exp")
        if p.coefficient == 1 and len(p.factors) == 1 and inverses:
            y = scaled(-1, inverses[0][1])
    return y


def square_root(x: Any) -> Any:
    """Return y if ``x`` is y^2, also written as y * y or y ** 2; else None."""
    node = elementwise(x, "sqr", "pow", "mul", "identity") if x is not None else None
    if node is None:
        return None
    y, *more = node.inputs
    match node.op.scalar.name:
        case "sqr":
            return y
        case "identity":
            return square_root(y)
        case "pow" if number(more[0]) == 2 and y.dtype == x.dtype:
            return y
        case "mul" if same(y, more[0]):
            return y
    p = as_product(x)
    roots = list(p.factors)
    if p.coefficient == 1 and len(roots) == 1 and p.factors[roots[0]] == 2:
        return roots[0]
    return None


def _is_zero_sum(x: Any, y: Any) -> bool:
    total = as_sum(x).plus(as_sum(y))
    return not total.terms and total.constant == 0


def _leading_sign(x: Any) -> float:
    s = as_sum(x)
    return next(iter(s.terms.values()), 1.0)


SUM_RULES = RuleSet(
    [
        expm1, erfc, erf, one_minus_sigmoid, one_plus_tanh, one_minus_tanh_squared, one_minus_cos,
        compoundm1, hyperbolic, cosh_minus_one, sqrt1pm1, hypot_minus, sqrt_difference,
        square_difference, log1p_minus,
        variance_of_moments, centered_twice,
    ]
)  # fmt: skip
