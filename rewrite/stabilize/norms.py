"""Roots, powers, logarithms and inverses of sums of squares, whose squares may leave the range."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.linalg.products import Dot
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.rewrite.pattern import f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.views import (
    LONGEST,
    PRODUCTS,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    number,
    powered,
    product_of,
    rearranged,
    scaled,
    square_root,
    through_views,
)

(x,) = variables("x")
# The dtypes whose sums of squares and products over axes are scaled.
DTYPES = frozenset({"float32", "float64"})


def root_of_sum(x: Any, exponentials: bool = False) -> Any:
    """Return the root of a sum of squares, also of one square or of a mean, by functions that stay
    in range; None if ``x`` is no such sum. With ``exponentials``, exp(y) is the square of
    exp(y / 2), except as the only term.
    """
    s = as_sum(x)
    if s.constant < 0 or not s.terms:
        return None
    alone = s.single is not None and not s.constant
    if alone and (norm := _norm(x, exponentials)) is not None:
        return norm
    sides: list[Any] = []
    for term, c in s.pairs():
        # A small number is often added to a mean so that its root is not 0: keep these one pass
        # over rows.
        side = _root(term)
        if side is None and exponentials and not alone:
            side = _root_of_exp(term)
        if side is None and s.constant in (0, 1):
            side = _norm(term, exponentials)
        if side is None or c <= 0 or side.dtype != x.dtype or not _exact_root(c):
            return None
        sides.append(scaled(math.sqrt(c), side))
    if s.constant:
        if not _exact_root(s.constant):
            return None
        sides.append(np.asarray(math.sqrt(s.constant), x.dtype))
    if len(sides) == 1:
        return sides[0] if _is_length(sides[0]) else call("abs", sides[0])
    for x, y in permutations(sides, 2) if not s.constant else ():
        if square_root(y) is x:  # x^2 + x^4
            return call("abs", x) * call("hypot", x, 1.0)
    found = sides[0]
    for side in sides[1:]:
        found = call("hypot", found, side)
    return found


def _is_length(x: Any) -> bool:
    """Tell whether ``x`` is a product of norms, whose sign is lost where it underflows."""
    p = as_product(x)
    norms = (computed_by(through_views(f)[0], Norm) is not None for f in p.factors)
    return p.coefficient > 0 and all(norms)


def _root_of_quotient(x: Any) -> Any:
    """Return the root of a product or quotient of sums of squares; else None."""
    p = as_product(x)
    norms = {f: norm for f in p.factors if (norm := _norm(f)) is not None}
    if len(norms) < 2 or p.coefficient <= 0:
        return None
    rest = p.without(*norms).factors
    if not all(map(is_count, rest)) or not all(float(e).is_integer() for e in p.factors.values()):
        return None
    found = Product(math.sqrt(p.coefficient), {norms[f]: p.factors[f] for f in norms})
    return found.times(call("sqrt", product_of(Product(1.0, rest)))) if rest else found.times()


def _root(x: Any) -> Any:
    """Return the root of ``x``, a square or an even power; else None."""
    power = elementwise(x, "pow")
    n = None if power is None else number(power.inputs[1])
    if power is not None and n is not None and n > 2 and n % 2 == 0:
        y = power.inputs[0]
        return powered(y, n / 2) if y.dtype == x.dtype else None
    return square_root(x)


def _root_of_exp(x: Any) -> Any:
    y = argument(x, "exp")
    return None if y is None or y.dtype != x.dtype else call("exp", scaled(0.5, y))


def _norm(x: Any, exponentials: bool = False) -> Any:
    """Return the root of a sum of squares over axes, also where it is divided by their number."""
    q = as_product(x)
    for factor, e in q.factors.items():
        total, views = through_views(factor)
        found = _squared(total, exponentials) if e == 1 else None
        rest = q.without(factor)
        if found is None or rest.coefficient <= 0 or not all(map(is_count, rest.factors)):
            continue
        axes, y = found
        norm = rearranged(Norm(axes)(y), views)
        if not rest.factors:
            return scaled(math.sqrt(rest.coefficient), norm)
        return norm * call("sqrt", product_of(rest))
    return None


def norm_of_squares(x: Any) -> Any:
    """Return the norm if ``x`` is a sum of squares over axes, else None."""
    return None if _squared(through_views(x)[0]) is None else _norm(x)


def _squared(total: Any, exponentials: bool = False) -> tuple[tuple[int, ...], Any] | None:
    """Return (axes, x) if a variable is the sum of x^2 over axes, or the product of a vector x and
    itself; else None. See ``root_of_sum``.
    """
    dot = computed_by(total, Dot)
    if dot is not None:
        x, y = dot.inputs
        return ((0,), x) if x is y and x.ndim == 1 else None
    reduced = computed_by(total, Reduce)
    if reduced is None or reduced.op.reduction.name != "sum" or reduced.op.acc_dtype:
        return None
    x = square_root(reduced.inputs[0])
    if x is None and exponentials:
        x = _root_of_exp(reduced.inputs[0])
    if x is None or not reduced.op.axes or x.dtype != total.dtype:
        return None
    return reduced.op.axes, x


def is_count(x: Any) -> bool:
    """Tell whether ``x`` is a number of elements, or one less ``ddof`` that is kept from being
    negative, as in variances.
    """
    x = through_views(x)[0]
    while (node := elementwise(x, "cast", "maximum")) is not None:
        least = number(node.inputs[-1])
        if node.op.scalar.name == "maximum" and (least is None or least < 0):
            return False
        x = through_views(node.inputs[0])[0]
        if node.op.scalar.name == "maximum" and not dtypes.is_discrete(x.dtype):
            s = as_sum(x)
            return s.single is not None and s.single[1] == 1 and is_count(s.single[0])
    return dtypes.is_discrete(x.dtype)


def _exact_root(c: float) -> bool:
    return math.sqrt(c) ** 2 == c


@rule("sqrt", "pow", why="the squares over- and underflow long before their root")
def root_of_squares(node: Apply, graph: Any) -> Any:
    """sqrt(x^2 + y^2) -> hypot(x, y), also of more;   sqrt(sum(x^2)) -> norm of x;
    sqrt(x^2) -> |x|;   sqrt(mean(x^2)) -> norm of x times sqrt(1 / n);   (x^2 + y^2)^c -> hypot^2c;
    sqrt(1 + exp(x)) -> hypot(exp(x / 2), 1), also in sums over axes
    """
    x, out = node.inputs[0], node.outputs[0]
    e = 0.5 if node.op.scalar.name == "sqrt" else number(node.inputs[1])
    if e is None or x.dtype != out.dtype or not dtypes.is_float(x.dtype) or float(e).is_integer():
        return None
    root = root_of_sum(x, exponentials=True)
    if root is None and abs(e) == 0.5:
        root = _root_of_quotient(x)
    if root is None:
        return None
    if e > 0:
        return powered(root, 2 * e)
    return call("reciprocal", root) if e == -0.5 else call("pow", root, 2 * e)


@rule("log", why="the squares over- and underflow long before their logarithm")
def log_of_squares(node: Apply, graph: Any) -> Any:
    """log(x^2 + y^2) -> 2 log(hypot(x, y));   log(sum(x^2)) -> 2 log(norm of x)"""
    x = node.inputs[0]
    s = as_sum(x)
    if not dtypes.is_float(x.dtype) or s.constant and s.constant != 1:
        return None
    if len(s.terms) == 1 and (s.constant or _norm(x) is None):
        return None  # log1p and powers of products have rules of their own
    root = root_of_sum(x)
    return None if root is None or s.constant else 2 * call("log", root)


log1p_of_square = view_rule(
    "log1p_of_square", f.log1p(f.sqr(x)), f.log1p_square(x),
    where=lambda m: m.x.dtype == "float64", why="x^2 may overflow",
)  # fmt: skip


@rule("log1p", needs=["sqr", "true_div"], why="the quotient may overflow")
def log1p_of_squared_ratio(node: Apply, graph: Any) -> Any:
    """log1p(x^2 / y^2) -> log1p_square_ratio(x, y)"""
    p = as_product(node.inputs[0])
    sides = {e: g for g, e in p.factors.items()}
    if p.coefficient != 1 or len(p.factors) != 2 or set(sides) != {2.0, -2.0}:
        return None
    if any(g.dtype != "float64" for g in (*p.factors, node.outputs[0])):
        return None
    return call("log1p_square_ratio", sides[2.0], sides[-2.0])


@rule("hypot", needs=["true_div"], why="the quotient may overflow where derivatives do not")
def hypot_of_quotient(node: Apply, graph: Any) -> Any:
    """hypot(x / y, 1) -> |hypot_over(y, x)|"""
    quotients = [q for x in node.inputs if (q := elementwise(x, "true_div")) is not None]
    if len(quotients) != 1 or all(number(x) != 1 for x in node.inputs):
        return None
    x, y = quotients[0].inputs
    if any(v.dtype != "float64" for v in (x, y, node.outputs[0])):
        return None
    return call("abs", call("hypot_over", y, x))


@rule("sqrt", needs=["mul"], why="the square over- and underflows before the root")
def root_of_square_factor(node: Apply, graph: Any) -> Any:
    """sqrt(x^2 y) -> |x| sqrt(y), also with other even powers; 0 at x = 0"""
    (inside,), out = node.inputs, node.outputs[0]
    p = as_product(inside)
    even = {g: e for g, e in p.factors.items() if e % 2 == 0}
    rest = p.without(*even)
    if len(even) != 1 or not rest.factors or p.coefficient <= 0 or min(p.factors.values()) < 0:
        return None
    if not inside.dtype == out.dtype == "float64" or any(g.dtype != out.dtype for g in p.factors):
        return None
    ((base, e),) = even.items()
    size, other = call("abs", base), product_of(rest)
    # The root of a negative number times 0 is NaN, that of -0.0 is not.
    other = switch(call("eq", base, 0), call("abs", other), other)
    return powered(size, e / 2) * call("sqrt", other)


@rule(
    *PRODUCTS, needs_in_view=["hypot"],
    why="the derivative by x is a difference of nearly equal numbers where x is large",
)  # fmt: skip
def hypot_over(node: Apply, graph: Any) -> Any:
    """hypot(x, y) / x -> hypot_over(x, y), also powers of both"""
    p = as_product(node.outputs[0])
    for factor in p.factors:
        sides = factor.owner.inputs if elementwise(factor, "hypot") else ()
        for x, y in permutations(sides, 2):
            if x is not y and (k := _times_both(p, factor, x, -1)):
                return exchanged(p, {factor: -k, x: k, call("hypot_over", x, y): k})
    return None


@rule(
    *PRODUCTS, needs_in_view=["leg"],
    why="the derivative by y is a difference of nearly equal numbers where y is large",
)  # fmt: skip
def height(node: Apply, graph: Any) -> Any:
    """y leg(x, y) -> height(x, y), also powers of both"""
    p = as_product(node.outputs[0])
    for factor in p.factors:
        x, y = factor.owner.inputs if elementwise(factor, "leg") else (None, None)
        if k := _times_both(p, factor, y, 1):
            return exchanged(p, {factor: -k, y: -k, call("height", x, y): k})
    return None


def _times_both(p: Product, factor: Any, x: Any, e: int) -> float:
    """Return how many times p has the float64 number factor x^e; 0 if that is no whole number."""
    k = min(p.factors[factor], e * p.factors.get(x, 0.0))
    return k if factor.dtype == "float64" and k >= 1 and float(k).is_integer() else 0


@rule(
    "mul", "true_div",
    why="the power overflows where the quotient is 1, and parts of its derivative cancel",
)  # fmt: skip
def odds_share(node: Apply, graph: Any) -> Any:
    """x^n / (a + b x^n) -> odds_share(b / a x^n) / b for numbers n > 2"""
    p, dtype = as_product(node.outputs[0]), node.outputs[0].dtype
    if dtype != "float64":
        return None
    for below, e in p.factors.items():
        s = as_sum(below) if e < 0 and elementwise(below, "add") is not None else None
        if s is None or s.single is None or s.constant <= 0 or s.single[1] <= 0:
            continue
        term, c = s.single
        power = as_product(term)
        ((x, n),) = power.factors.items() if len(power.factors) == 1 else ((None, 0.0),)
        whole = power.coefficient == 1 and float(e).is_integer()
        if whole and 2 < n <= p.factors.get(x, 0.0):
            share = call("odds_share", scaled(c / s.constant, term))
            return exchanged(Product(p.coefficient / c, p.factors), {x: -n, below: 1, share: 1})
    return None


@rule(
    "mul", "true_div", "reciprocal",
    why="the squares leave the range where the quotient does not",
)  # fmt: skip
def over_squares(node: Apply, graph: Any) -> Any:
    """x / (x^2 + y^2) -> over_squares(x, y);   x y / (x^2 + y^2) -> product_of_legs(x, y);
    x / (1 + x^2) -> over_one_plus_square(x);   x / hypot(x, y) -> leg(x, y);
    (x^2 - y^2) / (x^2 + y^2) -> square_contrast(x, y);
    (x + y)^2 / (x^2 + y^2) -> ((x + y) / hypot(x, y))^2;
    x^3 / hypot(x^2, y) -> leg(|x|, y / x) x;   x / (1 + x^4) -> x / hypot(x^2, 1)^2
    """
    p, dtype = as_product(node.outputs[0]), node.outputs[0].dtype
    if dtype not in DTYPES:
        return None
    for factor, e in p.factors.items():
        if e >= 0 or not float(e).is_integer():
            continue
        if dtype != "float64" and norm_of_squares(factor) is None:
            continue
        legs = _legs(factor)
        for x in legs:
            if _power_in(p, x) > 0:
                root = factor if len(legs) == 2 else _with_leg(x, legs)
                return _over_root(p.without(factor), x, root, -e)
        root, bases = _squares_below(factor)
        if (found := _over_two_squares(p, factor, e)) is not None:
            return found
        for x in bases:
            if root is not None and (k := _power_in(p, x)) > 0:
                if root is x and k > 1:
                    root = call("hypot", x, 1.0)
                if root is x:  # 1 + x^2
                    part = call("over_one_plus_square", x)
                    return exchanged(p, {**_powers(x, -1, p), factor: 1, part: 1})
                return _over_root(p.without(factor), x, root, -2 * e)
        if root is not None and any(root is x for x in bases) and len(p.factors) > 1:
            if as_product(root).factors.get(root) != 1:  # 1 + x^4
                return exchanged(p, {factor: -e, call("hypot", root, 1.0): 2 * e})
    return None


def _power_in(p: Product, x: Any) -> float:
    """Return the highest power of ``x``, which may be a product, that is part of a product."""
    parts = _powers(x, 1, p)
    return min(p.factors.get(g, 0.0) // k for g, k in parts.items()) if parts else 0.0


def _powers(x: Any, n: float, p: Product) -> dict[Any, float]:
    """Return the factors of x^n with their powers, as far as ``x`` itself is no factor of p; none
    for multiples, quotients and roots.
    """
    q = as_product(x)
    if x in p.factors or q.coefficient != 1 or not q.factors:
        return {x: n}
    whole = all(k > 0 and float(k).is_integer() for k in q.factors.values())
    return {g: n * k for g, k in q.factors.items()} if whole else {}


def _legs(x: Any) -> list[Any]:
    """Return the numbers whose squares the hypotenuse ``x``, also of hypotenuses, adds up."""
    found: list[Any] = []
    pending = [x] if elementwise(x, "hypot") is not None else []
    while pending and len(found) < LONGEST:
        part = pending.pop()
        node = elementwise(part, "hypot")
        if node is None:
            found.append(part)
        else:
            pending += node.inputs
    return [] if pending else found


def _with_leg(x: Any, legs: list[Any]) -> Any:
    """Return the hypotenuse of all legs, with x as one of two."""
    others = [y for y in legs if y is not x]
    total = others[0]
    for y in others[1:]:
        total = call("hypot", total, y)
    return call("hypot", x, total)


def _over_two_squares(p: Product, factor: Any, e: float) -> Any:
    """Return p, a multiple of x, x y or x^2 - y^2 over a power of factor = x^2 + y^2, where y may
    be 1; else None.
    """
    s = as_sum(factor) if elementwise(factor, "add") is not None else None
    sides = [] if s is None else [square_root(t) for t, c in s.pairs() if c == 1]
    if s is None or len(sides) != len(s.terms) or any(x is None for x in sides):
        return None
    if s.constant == 1:
        sides.append(np.asarray(1.0))
    if len(sides) != 2 or s.constant not in (0, 1):
        return None
    x, y = sides
    for difference, _ in p.found(1, "square_difference"):
        for a, b in ((x, y), (y, x)):
            if all(map(_is_one, difference.owner.inputs, (a, b))):
                contrast = call("square_contrast", a, b)
                return exchanged(p, {difference: -1, factor: 1, contrast: 1})
    if (found := _square_of_legs(p, factor, x, y)) is not None:
        return found
    if s.constant or e != -1:
        return None
    if p.factors.get(x) == p.factors.get(y) == 1:
        return exchanged(p, {x: -1, y: -1, factor: 1, call("product_of_legs", x, y): 1})
    for a, b in ((x, y), (y, x)):
        if p.factors.get(a) == 1 and b not in p.factors:
            return exchanged(p, {a: -1, factor: 1, call("over_squares", a, b): 1})
    return None


def _square_of_legs(p: Product, factor: Any, x: Any, y: Any) -> Any:
    """Return p, a multiple of (x + y)^2 or (x - y)^2 over factor = x^2 + y^2, where y may be 1;
    else None.
    """
    for z, k in p.factors.items() if p.factors[factor] == -1 else ():
        s = as_sum(z) if k == 2 and elementwise(z, "add", "sub") is not None else Sum(0.0, {})
        a, b = s.terms.get(x, 0.0), s.terms.get(y, 0.0) if isinstance(y, Variable) else s.constant
        whole = len(s.terms) + bool(s.constant) == 2 and isinstance(y, Variable) != bool(s.constant)
        if not a or abs(a) != abs(b) or not whole:
            continue
        # The derivative is that of the product of the legs; the sum may nearly be 0.
        square = call("sqr", scaled(1 / abs(a), z) / call("hypot", x, y))
        product = scaled(math.copysign(2, a * b), call("product_of_legs", x, y))
        found = call("known_difference", product, -1.0, square)
        rest = Product(p.coefficient * a**2, p.factors)
        return exchanged(rest, {z: -2, factor: 1, found: 1})
    return None


def _is_one(x: Any, y: Any) -> bool:
    """Tell whether both are one variable, or one number."""
    return x is y or not isinstance(y, Variable) and number(x) == float(y)


def _squares_below(f: Any) -> tuple[Any, list[Any]]:
    """Return the root of a sum of squares and the squared terms; x itself for 1 + x^2."""
    total = computed_by(through_views(f)[0], Reduce)
    if total is not None:
        x = square_root(total.inputs[0]) if total.op.reduction.name == "sum" else None
        return (None, []) if x is None else (_norm(f), [x])
    if elementwise(f, "add") is None:
        return None, []
    s = as_sum(f)
    bases = [x for x in map(square_root, s.terms) if x is not None]
    if s.constant == 1 and s.single is not None and s.single[1] == 1 and bases:
        return bases[0], bases
    return root_of_sum(f) if bases else None, bases


def _over_root(p: Product, x: Any, root: Any, n: float) -> Any:
    """Return p / root^n, with powers of x in p divided by as many of the root."""
    legs = elementwise(root, "hypot")
    part = x / root
    if legs is not None and any(v is x for v in legs.inputs):
        (other,) = [v for v in legs.inputs if v is not x] or [x]
        base = square_root(x) if x not in p.factors else None
        sides = (x, other) if base is None else (call("abs", base), other / base)
        part = call("leg", *sides)  # a square may overflow
    k = min(_power_in(p, x), n)
    return exchanged(p, {**_powers(x, -k, p), root: k - n, part: k})


def exchanged(p: Product, changes: dict[Any, float]) -> Any:
    """Return the product with these powers added to those of its factors."""
    factors = dict(p.factors)
    for x, k in changes.items():
        factors[x] = factors.get(x, 0.0) + k
    return Product(p.coefficient, {x: k for x, k in factors.items() if k}).times()


NORM_RULES = RuleSet(
    [
        root_of_squares, root_of_square_factor, hypot_of_quotient, log_of_squares,
        log1p_of_squared_ratio, log1p_of_square, hypot_over,
        height, odds_share, over_squares,
    ]
)  # fmt: skip
