"""Differences of nearly equal values of one function: roots, logarithms, logistic functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.rewrite.pattern import f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.stabilize.rational import (
    HIGHEST_POWER,
    ONE,
    Polynomial,
    multiplied_out,
    polynomial,
    term,
    without_common,
)
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
    scaled,
    sum_of,
)

x, y = variables("x y")
# Remainders with more monomials are not worth their computation.
MOST_REMAINING = 3
# Longer sums have roundings of their own.
MOST_TERMS = 4

# ----- logistic and hyperbolic functions


sigmoid_difference = view_rule(
    "sigmoid_difference",
    [
        (f.sigmoid(x) - 0.5, 0.5 * f.tanh(0.5 * x)),
        (f.sigmoid(x) - f.sigmoid(y), f.sigmoid_difference(x, y)),
        (f.softplus(x) - f.softplus(y), f.softplus_difference(x, y)),
        (f.softplus(x) - x, f.softplus(-x)),
    ],
    why="both are nearly equal for nearly equal arguments, or for large ones",
)  # fmt: skip


one_minus_sech = view_rule(
    "one_minus_sech", 1 - f.sech(x), f.tanh(x) * f.tanh(0.5 * x),
    why="1 / cosh(x) is near 1 for small x",
)  # fmt: skip


@rule(*SUMS, why="1 / cos(x) is near 1 for small x")
def secant_minus_one(node: Apply, graph: Any) -> Any:
    """c / cos(x) - c -> c one_minus_cos(x) / cos(x)"""
    s = as_sum(node.outputs[0])
    if s.single is None or not s.constant:
        return None
    quotient, c = s.single
    p = as_product(quotient)
    found = p.found(-1, "cos")
    if not found or len(p.factors) > 1 or c * p.coefficient != -s.constant:
        return None
    ((cosine, angle),) = found
    return scaled(-s.constant, call("one_minus_cos", angle) / cosine)


arcsin_of_root = view_rule(
    "arcsin_of_root", f.arcsin(f.sqrt(x)), f.arcsin_of_root(x),
    where=lambda m: m.x.dtype == "float64",
    why="the root of a number near 1 has lost the digits of its distance to 1",
)  # fmt: skip


@rule(*SUMS, needs_in_view=["arctan"], why="both are nearly equal for large arguments")
def arctan_difference(node: Apply, graph: Any) -> Any:
    """c arctan(x + a) - c arctan(x) -> c arctan2(a, 1 + x (x + a)) for numbers a"""
    out = node.outputs[0]
    s = as_sum(out)
    if len(s.terms) != 2 or s.constant or out.dtype != "float64":
        return None
    (a, c), (b, d) = s.pairs()
    x, y = argument(a, "arctan"), argument(b, "arctan")
    if c != -d or x is None or y is None or not x.dtype == y.dtype == out.dtype:
        return None
    gap = as_sum(x).plus(as_sum(y).times(-1))
    if gap.terms or not gap.constant:
        return None
    difference = scaled(c, call("arctan2", np.asarray(gap.constant), 1 + x * y))
    return call("known_difference", scaled(c, a), scaled(c, b), difference)


# ----- logarithms


logs_of_one_plus = view_rule(
    "logs_of_one_plus", f.log1p(x) + f.log1p(-x), f.log1m_square(x),
    why="the sum is about -x^2, the terms are about x",
)  # fmt: skip


@rule(*SUMS, needs_in_view=["log"], why="the logarithm of a ratio near 1 has its digits")
def log_difference(node: Apply, graph: Any) -> Any:
    """c log(x + y) - c log(x) -> c log_gap(y, x), where y is one term or a number;
    c log1p(x) - c log(x) -> c log_gap(1, x);   c log(x) - c log(y) -> c log_difference(x, y)
    """
    out = node.outputs[0]
    s = as_sum(out)
    if len(s.terms) != 2 or s.constant or not dtypes.is_float(out.dtype):
        return None
    (a, c), (b, d) = s.pairs()
    above, below = _inside(a), _inside(b)
    if c != -d or above is None or below is None:
        return None
    gap = above.plus(below.times(-1))
    if gap.constant < 0 or gap.terms and next(iter(gap.terms.values())) < 0:
        above, below, gap, c = below, above, gap.times(-1), -c
    if len(gap.terms) + bool(gap.constant) != 1 or gap.terms.keys() & below.terms.keys():
        return _of_two_logarithms(a, b, -d, out)
    part = sum_of(gap.constant, gap.pairs(), out)
    base = sum_of(below.constant, below.pairs(), out)
    return scaled(c, call("log_gap", part, base))


def _of_two_logarithms(a: Any, b: Any, c: float, like: Any) -> Any:
    """Return c a - c b, where each is the logarithm of a variable of its own; else None."""
    x, y = argument(a, "log"), argument(b, "log")
    if x is None or y is None or not x.dtype == y.dtype == "float64":
        return None
    # The logarithms of one row for all are not computed again for each.
    if not x.type.broadcastable == y.type.broadcastable == like.type.broadcastable:
        return None
    return scaled(c, call("log_difference", x, y))


def _inside(x: Any) -> Sum | None:
    """Return what ``x`` is the logarithm of."""
    if (y := argument(x, "log1p")) is not None:
        return as_sum(y).plus(Sum(1.0, {}))
    y = argument(x, "log")
    return None if y is None else as_sum(y)


# ----- roots


class Side:
    """A multiple of a product with roots, or a sum without any.

    Attributes
    ----------
    value : Any
        The variable.
    square : dict or None
        Its square as a polynomial; None if it is none.
    """

    def __init__(self, value: Any, square: Polynomial | None) -> None:
        self.value, self.square = value, square


@rule(*SUMS, why="p - q = (p^2 - q^2) / (p + q), where the squares cancel exactly")
def root_difference(node: Apply, graph: Any) -> Any:
    """sqrt(x^2 + x) - x -> by_squares(sqrt(x^2 + x), x, x);   1/sqrt(x) - 1/sqrt(x + 1) ->
    by_squares(sqrt(x + 1), sqrt(x), 1) / (sqrt(x) sqrt(x + 1));   x + 1 - sqrt(x^2 + 1) likewise
    """
    out = node.outputs[0]
    if out.dtype != "float64":
        return None
    s = as_sum(out)
    if len(s.terms) > MOST_TERMS:
        return None
    roots = {t: None for t in s.terms if _has_root(t)}
    if len(roots) == 1 and (found := _of_root_and_sum(s, *roots)) is not None:
        return found
    if roots and (found := _over_one_root(s, roots)) is not None:
        return found
    for pair in combinations(s.pairs(), 2):
        if any(t in roots for t, _ in pair) and (found := _of_two_products(*pair)) is not None:
            rest = s.plus(Sum(0.0, {t: -c for t, c in pair} | {found: 1.0}))
            return sum_of(rest.constant, rest.pairs(), out)
    return None


def _over_one_root(s: Sum, roots: Iterable[Any]) -> Any:
    """Rewrite x/r + 1/(2 r) - 1 -> by_squares(2 x + 1, 2 r, 1) / (2 r) for r = sqrt(x^2 + x), also
    with other polynomials above r and in the place of the number, where the squares cancel.
    """
    fills: dict[Any, Any] = {}
    above, rest, below = Sum(0.0, {}), s, set[Any]()
    for t in roots:
        p = as_product(t)
        found = [g for g, e in p.factors.items() if e == -0.5]
        if len(found) != 1 or not all(float(2 * e).is_integer() for e in p.factors.values()):
            return None
        p = _without_numbers(p.without(*found), fills)
        part = product_of(p.without(*fills.values()))
        part = as_sum(part) if isinstance(part, Variable) else Sum(part, {})
        below.update(found)
        above, rest = above.plus(part.times(s.terms[t])), rest.plus(Sum(0.0, {t: -s.terms[t]}))
    if len(below) != 1 or not (rest.terms or rest.constant):
        return None
    (inside,) = below
    return _by_squares_over(above.times(2), rest.times(-2), inside, fills.values())


def _by_squares_over(p: Sum, q: Sum, inside: Any, fills: Iterable[Any]) -> Any:
    """Return (p - q r) / (2 r) for r = sqrt(inside) where the squares cancel, else None."""
    root = call("sqrt", inside)
    one, other = (v if v.terms else v.constant for v in (p, q))
    one, other = (
        v if isinstance(v, float) else sum_of(v.constant, v.pairs(), root) for v in (one, other)
    )
    parts = [{ONE: v} if isinstance(v, float) else polynomial(v) for v in (one, other)]
    first = multiplied_out(1.0, [parts[0]] * 2)
    second = multiplied_out(1.0, [parts[1], parts[1], polynomial(inside)])
    beside = scaled(other, root) if isinstance(other, float) else other * root
    found = _by_squares(Side(one, first), Side(beside, second))
    return None if found is None else Product(0.5, {root: -1.0}).times(found, *fills)


def _has_root(x: Any) -> bool:
    factors = _product(x).factors
    return any(not float(e).is_integer() or elementwise(g, "hypot") for g, e in factors.items())


def _without_numbers(p: Product, fills: dict[Any, Any]) -> Product:
    """Return the product with shapes that are filled with 1 in place of other numbers, which are
    part of the coefficient; ``fills`` collects these by what gives the shape.
    """
    for g, e in p.factors.items():
        filled = elementwise(g, "second")
        value = None if filled is None else number(filled.inputs[1])
        if filled is None or not value or not float(e).is_integer():
            continue
        model, rest = filled.inputs[0], p.without(g)
        ones = g if value == 1 else call("second", model, filled.inputs[1] / value)
        one = fills.setdefault(model, ones)
        p = Product(rest.coefficient * value**e, {**rest.factors, one: e})
    return p


def _product(x: Any) -> Product:
    """Read ``x`` as a product; leg(x, y) as x / hypot(x, y)."""
    p = as_product(x)
    legs = [(g, e) for g, e in p.factors.items() if elementwise(g, "leg") and e > 0]
    if not legs:
        return p
    factors = dict(p.without(*(g for g, _ in legs)).factors)
    for g, e in legs:
        for part, k in ((g.owner.inputs[0], e), (call("hypot", *g.owner.inputs), -e)):
            factors[part] = factors.get(part, 0.0) + k
    return Product(p.coefficient, {g: e for g, e in factors.items() if e})


def _of_two_products(one: tuple[Any, float], other: tuple[Any, float]) -> Any:
    """Rewrite c p - c q, where common factors and divisors are taken out first."""
    (a, c), (b, d) = one, other
    fills: dict[Any, Any] = {}
    first, second = (_without_numbers(_product(t), fills) for t in (a, b))
    c, d = c * first.coefficient, d * second.coefficient
    if c != -d or c == 0:
        return None
    factors = dict.fromkeys([*first.factors, *second.factors])
    common = {
        g: e
        for g in factors
        if (e := min(first.factors.get(g, 0.0), second.factors.get(g, 0.0))) < 0
        or e == max(first.factors.get(g, 0.0), second.factors.get(g, 0.0))
    }
    parts = [
        {g: e for g in factors if (e := p.factors.get(g, 0.0) - common.get(g, 0.0))}
        for p in (first, second)
    ]
    found = _by_squares(*map(_side, parts))
    if found is None and common and all([*part.values()] == [0.5] for part in parts):
        difference = call("sqrt_difference", *(x for part in parts for x in part))
        sides = scaled(one[1], a), scaled(-other[1], b)
        difference = call("defined_difference", *sides, Product(c, common).times(difference))
        return call("known_difference", *sides, difference)
    if found is None or not common:
        return None if found is None else scaled(c, found)
    gap = elementwise(found, "by_squares")
    if gap is not None and all(e == 0.5 for part in parts for e in part.values()):
        # Terms of the derivative of roots have one sign.
        p, q, w = gap.inputs
        return Product(c, {**common, p + q: -1.0}).times(w)
    return Product(c, common).times(found)


def _of_root_and_sum(s: Sum, root: Any) -> Any:
    """Rewrite c p - c q, where p has a root and q is a number or a sum."""
    c = s.terms[root]
    p = _product(root)
    rest = s.plus(Sum(0.0, {root: -c})).times(-1 / (c * p.coefficient))
    if not rest.terms and (not rest.constant or rest.constant < 0 and len(p.factors) == 1):
        return None  # a root and a positive number do not cancel
    if any(e < 0 for e in p.factors.values()):
        return _of_quotient_and_one(c, p) if rest == Sum(1.0, {}) else None
    value = sum_of(rest.constant, rest.pairs(), root) if rest.terms else rest.constant
    q = polynomial(value) if rest.terms else {ONE: rest.constant}
    if not rest.terms and not float(rest.constant).is_integer():
        return None
    found = _by_squares(_side(p.factors), Side(value, multiplied_out(1.0, [q, q])))
    return None if found is None else scaled(c * p.coefficient, found)


def _of_quotient_and_one(c: float, p: Product) -> Any:
    """Rewrite c k above / below - c k, where p is k above / below, with roots."""
    below = {g: -e for g, e in p.factors.items() if e < 0}
    found = _by_squares(_side({g: e for g, e in p.factors.items() if e > 0}), _side(below))
    if found is None:
        return None
    return Product(c * p.coefficient, {g: -e for g, e in below.items()}).times(found)


def _side(factors: dict[Any, float]) -> Side:
    value = product_of(Product(1.0, factors)) if factors else 1.0
    if any(2 * e > HIGHEST_POWER or not float(2 * e).is_integer() for e in factors.values()):
        return Side(value, None)
    parts = [part for g, e in factors.items() for part in _squares(g, e)]
    return Side(value, multiplied_out(1.0, parts))


def _squares(g: Any, e: float) -> Iterator[Polynomial | None]:
    """Yield polynomials whose product is g^2e."""
    legs = elementwise(g, "hypot", "abs") if float(e).is_integer() else None
    if legs is None:
        yield from [polynomial(g)] * int(2 * e)
        return
    total: Polynomial = {}
    for leg in legs.inputs:
        part = polynomial(leg)
        square = multiplied_out(1.0, [part, part])
        if square is None:
            yield None
            return
        for monomial, c in square.items():
            total[monomial] = total.get(monomial, 0.0) + c
    yield from [total] * int(e)


def _by_squares(p: Side, q: Side) -> Any:
    """Return p - q by the difference of the squares, if that is simple: of one sign."""
    if p.square is None or q.square is None or not p.square.keys() & q.square.keys():
        return None
    total = {m: p.square.get(m, 0.0) - q.square.get(m, 0.0) for m in {**p.square, **q.square}}
    total = {m: c for m, c in total.items() if c}
    if not 0 < len(total) <= MOST_REMAINING or len({c > 0 for c in total.values()}) > 1:
        return None
    for one, other, sign in ((p, q, 1), (q, p, -1)):
        legs = None if isinstance(one.value, float) else elementwise(one.value, "hypot")
        for place in (0, 1):
            if legs is not None and legs.inputs[place] is other.value:
                return scaled(sign, call("hypot_minus", other.value, legs.inputs[1 - place]))
    common, total = without_common(total)
    number = total.pop(ONE, 0.0)
    like = p.value if not isinstance(p.value, float) else q.value
    rest = sum_of(number, [term(m, c) for m, c in total.items()], like)
    factors = {g: float(e) for g, e in common.items() if e}
    if not total:
        difference = product_of(Product(number, factors))
    else:
        difference = Product(1.0, factors).times(rest)
    return call("by_squares", p.value, q.value, difference)


@rule(*SUMS, needs_in_view=["sqrt"], why="sqrt(x) - k = (x - k^2) / (sqrt(x) + k)")
def root_less_number(node: Apply, graph: Any) -> Any:
    """c sqrt(x) - c k -> c sqrt_difference(x, k^2) for numbers k whose square is exact"""
    s = as_sum(node.outputs[0])
    if s.single is None or not s.constant:
        return None
    root, c = s.single
    x, k = argument(root, "sqrt"), -s.constant / c
    if x is None or k <= 0 or float(np.float32(k)) != k:
        return None
    # The roots of 1 + x and 1 - x^2 have rules of their own.
    if as_sum(x).constant or elementwise(x, "square_difference"):
        return None
    return scaled(c, call("sqrt_difference", x, k * k))


DIFFERENCE_RULES = RuleSet(
    [
        sigmoid_difference, one_minus_sech, secant_minus_one, arcsin_of_root,
        arctan_difference, logs_of_one_plus, log_difference, root_difference,
        root_less_number,
    ]
)  # fmt: skip
