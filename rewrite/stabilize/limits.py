"""Quotients that are 0 / 0 somewhere and have a limit there: sin(x) / x, x / tanh(x) ..."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.ops.elementwise.product_remainder import (
    HIGHEST_EXPONENT,
    MOST_FACTORS,
    product_remainder,
)
from symcomp.ops.elementwise.scalar_stable import one_minus_cos_over_square, spherical_jn
from symcomp.ops.elementwise.series_remainder import FUNCTIONS, series_remainder
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.stabilize.remainders import with_series
from symcomp.rewrite.views import Product, argument, as_product, as_sum, call, number

# f(x) / x^n by a function of its own, with its limit at 0.
QUOTIENTS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "sin": (1, lambda x: spherical_jn(0, x)),
    "expm1": (1, partial(series_remainder, "exp", 1, 1)),
    "one_minus_cos": (2, one_minus_cos_over_square),
    "sqrt1pm1": (1, lambda x: 1 / (1 + call("sqrt", 1 + x))),
    "hypotm1": (2, lambda x: 1 / (1 + call("hypot", x, 1.0))),
    "log1p_square": (2, lambda x: series_remainder("log1p", 1, 1, call("sqr", x))),
    **{
        name: (1, partial(series_remainder, name, 1, 1))
        for name in FUNCTIONS
        if name not in ("exp", "sin", "cos", "cosh")
    },
}
# x / f(x) of functions that overflow.
INVERSES = {"expm1": "x_over_expm1", "sinh": "x_over_sinh"}
# Bounded or nearly bounded functions: x f(x y) / x = y q(x y) would lose their value where x y
# overflows.
SLOW = frozenset({"tanh", "arctan", "arcsinh", "erf", "log1p"})
# Functions whose quotients are not used in ratios: the ratio may have a value at infinity, where
# the quotients are 0 / 0.
NAN_AT_INFINITY = frozenset({"sin", "tan", "arctanh", "arcsin", "one_minus_cos"})


@rule(
    "mul", "true_div", "reciprocal", "sqr",
    why="0 / 0 has a limit here, and near it the quotient has an exact function",
)  # fmt: skip
def over_argument(node: Apply, graph: Any) -> Any:
    """sin(a x) / x -> a spherical_jn(0, a x);
    expm1(a x) / x -> a series_remainder{exp, 1, 1}(a x);
    one_minus_cos(a x) / x^2 -> a^2 one_minus_cos_over_square(a x);  likewise for others that vanish
    at 0, for their powers, and for x / f(a x);  x / expm1(a x) -> x_over_expm1(a x) / a;
    x / sinh(a x) -> x_over_sinh(a x) / a;
    series_remainder{exp, 2, 0}(x) / x -> series_remainder{exp, 2, 1}(x);  (sin(x) - x cos(x)) / x^3
    -> spherical_jn{1, 1}(x);  compoundm1(x, 3) / x -> 1 + (1 + x) (2 + x);
    by_squares(sqrt(y), 1, w x) / x -> w / (sqrt(y) + 1);
    sin(x y) / x -> product_remainder{sin, 1, 1, 1, 0, 1, 0, 0}(x, y), and other products;
    tanh(x)^2 / x -> tanh(x) series_remainder{tanh, 1, 1}(x);
    sin(x) / tanh(x) -> spherical_jn(0, x) / series_remainder{tanh, 1, 1}(x), and other ratios
    """
    p = as_product(node.outputs[0])
    vanishing = [
        (f, e, f.owner.op.scalar.name, f.owner.inputs[0])
        for f, e in p.factors.items()
        if f.owner is not None
        and getattr(getattr(f.owner.op, "scalar", None), "name", "") in QUOTIENTS
        and float(e).is_integer()
    ]
    for f, e, name, y in vanishing:
        if name in INVERSES and e == -1:
            multiple = _multiple_of_factor(p, y)
            if multiple is not None:
                a, x = multiple
                rest = p.without(f, x)
                return Product(rest.coefficient / a, rest.factors).times(call(INVERSES[name], y))
    for known in _OVER_POWERS:
        if (found := known(p)) is not None:
            return found
    for f, e, name, y in vanishing:
        left = _without(p, f, e * QUOTIENTS[name][0], y)
        if left is not None and not (_grows(p, left) and name in SLOW):
            quotient = QUOTIENTS[name][1](y)
            return _times(left, {quotient: e})
        if e > 1 and name in SLOW and (left := _without(p, f, 1.0, y)) is not None:
            if not _grows(p, left):
                return _times(left, {QUOTIENTS[name][1](y): 1.0, f: e - 1})
    return _ratio(p, vanishing)


def _product_over_factors(p: Product) -> Any:
    """Rewrite sin(x y) / x -> product_remainder{sin, 1, 1, 1, 0, 1, 0, 0}(x, y), likewise for
    others that vanish at 0, and log1p(x^2) / x -> product_remainder{log1p, 1, 2, 1, 0}(x).
    """
    for f, e in p.factors.items():
        found = _of_product(f) if e == 1 else None
        if found is None:
            continue
        name, terms, power, c, u = found
        below = {x: max(-p.factors.get(x, 0.0), 0.0) for x in u.factors}
        triples = [(int(a), int(power * a + below[x]), 0) for x, a in u.factors.items()]
        xs = list(u.factors)
        if u.coefficient != 1:
            xs.append(np.asarray(u.coefficient, f.dtype))
            triples.append((1, power, 0))
        # Within the bounds of the row, and of functions that have none of their own.
        whole = all(float(b).is_integer() for b in (*below.values(), *u.factors.values()))
        small = all(0 < a <= HIGHEST_EXPONENT >= b for a, b, _ in triples)
        plain = len(u.factors) == 1 and triples[0][0] == 1
        if any(below.values()) and whole and small and len(xs) <= MOST_FACTORS and not plain:
            rest = p.without(f, *(x for x in below if below[x]))
            new = product_remainder(name, terms, triples, xs)
            return _times(Product(rest.coefficient * c, rest.factors), {new: 1.0})
    return None


def _of_product(x: Any) -> tuple[str, int, int, float, Product] | None:
    """Return (function, terms, power, factor, u) if ``x`` is the factor times the function of u
    without some terms over u^power.
    """
    if (y := argument(x, "log1p_square")) is not None:
        return "log1p", 1, 0, 1.0, as_product(call("sqr", y))
    found = with_series(x)
    return (*found[:4], as_product(found[4])) if found is not None and found[1] else None


def _remainder_over_power(p: Product) -> Any:
    """Rewrite series_remainder{name, terms, k}(y) / y^n -> series_remainder{name, terms, k + n}(y),
    and powers of it.
    """
    for f, e in p.factors.items():
        node = elementwise(f, "series_remainder")
        if node is None or not float(e).is_integer():
            continue
        name, terms, power, n = node.op.scalar.parameters
        y = node.inputs[0]
        for more in range(0 if n else terms - power, 0, -1):
            left = _without(p, f, e * more, y)
            if left is not None and (more == 1 or not _grows(p, left)):
                return _times(left, {series_remainder(name, terms, power + more, y): e})
    return None


def _bessel_over_power(p: Product) -> Any:
    """Rewrite (sin(y) - y cos(y)) / y^(2 + m) -> spherical_jn(1, y) / y^m for m = 0, 1."""
    for f, e in p.factors.items():
        if e != 1 or elementwise(f, "add", "sub") is None:
            continue
        c, y = _sine_and_cosine(as_sum(f))
        for m in (1, 0) if c else ():
            left = _without(p, f, 2 + m, y)
            if left is not None and not _grows(p, left):
                left = Product(c * left.coefficient, left.factors)
                return _times(left, {spherical_jn(1, y, m): 1.0})
    return None


def _sine_and_cosine(s: Any) -> tuple[float, Any]:
    """Return (c, y) if the sum is c (sin(y) - y cos(y)); c is 0 for others."""
    if len(s.terms) != 2 or s.constant:
        return 0.0, None
    for (sine, c), (other, k) in (s.pairs(), s.pairs()[::-1]):
        y, q = argument(sine, "sin"), as_product(other)
        for cosine, angle in q.found(1, "cos"):
            if angle is y and (left := q.without(cosine)).factors == as_product(y).factors:
                if k * left.coefficient == -c * as_product(y).coefficient:
                    return c, y
    return 0.0, None


def _power_over_argument(p: Product) -> Any:
    """Rewrite ((1 + y)^n - 1) / y -> 1 + (1 + y) + ... + (1 + y)^(n - 1) for small whole n > 1, and
    -> 1 / (1 + sqrt(1 + y)) for n = 1/2.
    """
    for f, e in p.factors.items():
        node = elementwise(f, "compoundm1")
        if node is None or e != 1 or (left := _without(p, f, 1.0, node.inputs[0])) is None:
            continue
        y, n = node.inputs[0], number(node.inputs[1])
        if n == 0.5:
            return _times(left, {1 + call("sqrt", 1 + y): -1.0})
        if n is not None and n in range(2, 7):
            total: Any = 2 + y
            for _ in range(int(n) - 2):
                total = 1 + (1 + y) * total
            return _times(left, {total: 1.0})
    return None


def _root_over_power(p: Product) -> Any:
    """Rewrite by_squares(r, c, w) / y -> (w / y) / (r + c) for a root r and a number c > 0, or
    another root.
    """
    for f, e in p.factors.items():
        node = elementwise(f, "by_squares")
        if node is None or e != 1:
            continue
        one, other, squares = node.inputs
        root, c = (other, number(one)) if number(other) is None else (one, number(other))
        w, rest = as_product(squares), p.without(f)
        if elementwise(root, "sqrt", "hypot") is None or (c is not None and c <= 0):
            continue
        if c is None and elementwise(other, "sqrt", "hypot") is None:
            continue
        if any(rest.factors.get(g, 0.0) * k < 0 for g, k in w.factors.items()):
            powers = {g: rest.factors.get(g, 0.0) + k for g, k in w.factors.items()}
            factors = {g: k for g, k in (rest.factors | powers).items() if k}
            total = one + other if c is None else root + c
            return _times(Product(p.coefficient * w.coefficient, factors), {total: -1.0})
    return None


_OVER_POWERS = (
    _product_over_factors, _remainder_over_power, _bessel_over_power, _power_over_argument,
    _root_over_power,
)  # fmt: skip


def _multiple_of_factor(p: Product, y: Any) -> tuple[float, Any] | None:
    """Return (a, x) if y = a x and the product has the factor x."""
    if p.factors.get(y) == 1:
        return 1.0, y
    s = as_sum(y)
    if s.single is not None and not s.constant and p.factors.get(s.single[0]) == 1:
        return s.single[1], s.single[0]
    return None


def _argument(y: Any) -> Product:
    """Return ``y`` as a coefficient and factors, also where it is a multiple of a sum."""
    q = as_product(y)
    return q if q.factors else Product(1.0, {y: 1.0})


def _without(p: Product, f: Any, power: float, y: Any) -> Product | None:
    """Return the product with y^power in the place of ``f``, if that cancels a factor; else None.
    """
    q = _argument(y)
    if q.coefficient == 0 or not any(
        p.factors.get(g, 0.0) * k * power < 0 for g, k in q.factors.items()
    ):
        return None
    factors = {g: k for g, k in p.factors.items() if g is not f}
    for g, k in q.factors.items():
        factors[g] = factors.get(g, 0.0) + power * k
    left = {g: k for g, k in factors.items() if k}
    return Product(p.coefficient * q.coefficient**power, left)


def _grows(p: Product, left: Product) -> bool:
    """Tell whether ``left`` multiplies by a factor that the product does not have, as y of x y f(x
    y) / x.
    """
    return any(k > max(p.factors.get(g, 0.0), 0.0) for g, k in left.factors.items())


def _times(p: Product, quotients: dict[Any, float]) -> Any:
    return Product(p.coefficient, {**p.factors, **quotients}).times()


def _ratio(p: Product, vanishing: list[tuple[Any, float, str, Any]]) -> Any:
    """Rewrite f(a x) / g(b x) -> a q_f(a x) / (b q_g(b x)) for functions that vanish in the same
    places.
    """
    for f, e, name, y in vanishing:
        for g, k, other, z in vanishing:
            if not e > 0 > k or not _may_divide(name, other):
                continue
            above, below = _argument(y), _argument(z)
            left = p.without(f, g)
            powers = e * QUOTIENTS[name][0], k * QUOTIENTS[other][0]
            if above.factors != below.factors or sum(powers) < 0:
                continue
            factors = dict(left.factors)
            for x, n in above.factors.items():
                factors[x] = factors.get(x, 0.0) + n * sum(powers)
            c = left.coefficient * above.coefficient ** powers[0] * below.coefficient ** powers[1]
            rest = Product(c, {x: n for x, n in factors.items() if n})
            return _times(rest, {QUOTIENTS[name][1](y): e, QUOTIENTS[other][1](z): k})
    return None


def _may_divide(name: str, other: str) -> bool:
    return bool(NAN_AT_INFINITY & {name, other}) or {name, other} == {"expm1", "log1p"}


@rule(
    "mul", "true_div", needs_in_view=["series_remainder"],
    why="the slope underflows where its product with the argument, a quotient, does not",
)  # fmt: skip
def log1p_drop(node: Apply, graph: Any) -> Any:
    """series_remainder{log1p, 1, 1, 1}(1/x) / x -> -log1p_drop(1/x)"""
    p = as_product(node.outputs[0])
    for f, _ in p.found(1, "series_remainder"):
        u = as_product(f.owner.inputs[0])
        quotient = any(k < 0 for k in u.factors.values())
        if f.owner.op.scalar.parameters != ("log1p", 1, 1, 1) or not quotient:
            continue
        left = {g: p.factors.get(g, 0.0) - k for g, k in u.factors.items()}
        if all(abs(k) < abs(p.factors.get(g, 0.0)) + (not k) for g, k in left.items()):
            rest = {**p.without(f).factors, **left}
            rest = {g: k for g, k in rest.items() if k}
            drop = call("log1p_drop", f.owner.inputs[0])
            return Product(-p.coefficient / u.coefficient, rest).times(drop)
    return None


LIMIT_RULES = RuleSet([over_argument, log1p_drop])
