"""Functions from which the first terms of their series are subtracted: exp(x) - 1 - x, x - sin(x),
sin(x) / x - 1 ...
"""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.series_remainder import (
    COEFFICIENTS,
    MOST_TERMS,
    series_remainder,
)
from symcomp.rewrite.pattern import f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.views import (
    SUMS,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    number,
    scaled,
    sum_of,
)

(x,) = variables("x")
# Rows by the function of series_remainder, the terms that it lacks, the power that divides it, and
# a factor.
SERIES: dict[str, tuple[str, int, int, float]] = {
    "exp": ("exp", 0, 0, 1.0), "cos": ("cos", 0, 0, 1.0), "cosh": ("cosh", 0, 0, 1.0),
    "expm1": ("exp", 1, 0, 1.0), "one_minus_cos": ("cos", 2, 0, -1.0),
    "one_minus_cos_over_square": ("cos", 2, 2, -1.0),
    **{
        name: (name, 1, 0, 1.0)
        for name in COEFFICIENTS
        if name not in ("exp", "cos", "cosh", "erf")
    },
}  # fmt: skip
ROWS_WITH_SERIES = [*SERIES, "sqr", "spherical_jn", "series_remainder"]


@rule(
    *SUMS, needs_in_view=ROWS_WITH_SERIES,
    why="near 0 a function and the first terms of its series are nearly equal",
)  # fmt: skip
def series_remainder_of_sum(node: Apply, graph: Any) -> Any:
    """exp(x) - 1 - x -> series_remainder{exp, 2, 0}(x);  x - sin(x) -> -series_remainder{sin, 3,
    0}(x);  1 - sin(x) / x -> -series_remainder{sin, 3, 1}(x);  likewise for others that have a
    series, their multiples, and more terms
    """
    out = node.outputs[0]
    if not dtypes.is_float(out.dtype):
        return None
    s = as_sum(out)
    if len(s.terms) + bool(s.constant) < 2:
        return None
    for term, c in s.pairs():
        found = with_series(term)
        if found is None:
            continue
        name, terms, power, factor, y = found
        rest = Sum(s.constant, {t: k for t, k in s.terms.items() if t is not term})
        left, more = _without_terms(rest, c * factor, name, terms, power, y)
        if more > terms:
            new = series_remainder(name, more, power, y)
            return sum_of(left.constant, [*left.pairs(), (new, c * factor)], out)
    return None


def with_series(x: Any) -> tuple[str, int, int, float, Any] | None:
    """Return (function, terms, power, factor, argument) if ``x`` is the factor times that."""
    if (node := elementwise(x, *SERIES)) is not None:
        return *SERIES[node.op.scalar.name], node.inputs[0]
    if (node := elementwise(x, "series_remainder")) is not None:
        name, terms, power, n = node.op.scalar.parameters
        return None if n else (name, terms, power, 1.0, node.inputs[0])
    if (node := elementwise(x, "spherical_jn")) is not None:
        first = node.op.scalar.parameters == (0, 0)
        return ("sin", 1, 1, 1.0, node.inputs[0]) if first else None
    half = argument(argument(x, "sqr"), "sinh") if elementwise(x, "sqr") else None
    return None if half is None else ("cosh", 2, 0, 0.5, scaled(2.0, half))


def _without_terms(
    s: Sum, c: float, name: str, terms: int, power: int, y: Any
) -> tuple[Sum, int]:
    """Return the sum without the next terms of the series of -c f(y) / y^power, and the number of
    terms that the function lacks then: ``terms`` if the sum has none of them.
    """
    start = terms
    for k in range(terms, MOST_TERMS):
        coefficient = COEFFICIENTS[name][k]
        if not coefficient:
            continue
        left = _minus(s, c * coefficient, k - power, y)
        if left is None:
            break
        s, terms = left, k + 1
    while terms < MOST_TERMS and not COEFFICIENTS[name][terms]:
        terms += 1
    # Other rows and rules are there for functions that lack only their value at 0.
    return s, start if start == 0 and terms <= (1 if name == "exp" else 2) else terms


def _minus(s: Sum, c: float, exponent: int, y: Any) -> Sum | None:
    """Return the sum without its term -c y^exponent; None if it has none."""
    if exponent == 0:
        return Sum(0.0, s.terms) if s.constant == -c else None
    parts = as_sum(y)
    if exponent == 1 and len(parts.terms) > 1:
        return None if parts.constant else _dropped(s, parts.times(-c).terms)
    p = as_product(y)
    powers = {f: e * exponent for f, e in p.factors.items()}
    for t in s.terms:
        q = as_product(t)
        if q.factors == powers and q.coefficient:
            return _dropped(s, {t: -c * p.coefficient**exponent / q.coefficient})
    return None


def _dropped(s: Sum, terms: dict[Any, float]) -> Sum | None:
    """Return the sum without these terms; None if it does not have them."""
    for t, c in terms.items():
        near = 2.0 * float(dtypes.limits(t.dtype).eps)
        if not math.isclose(s.terms.get(t, 0.0), c, rel_tol=near):
            return None
    return Sum(s.constant, {t: c for t, c in s.terms.items() if t not in terms})


@rule("square_difference", why="x^2 - f(x)^2 = (x - f(x)) (x + f(x))")
def squares_near_0(node: Apply, graph: Any) -> Any:
    """square_difference(x, sin(x)) -> -series_remainder{sin, 3, 0}(x) * (x + sin(x)), likewise for
    others whose series begins with x
    """
    x, y = node.inputs
    for one, other, sign in ((x, y, -1.0), (y, x, 1.0)):
        found = elementwise(other, *SERIES)
        if found is None or found.inputs[0] is not one:
            continue
        name, terms, power, factor = SERIES[found.op.scalar.name]
        if (terms, power, factor) == (1, 0, 1.0):
            return scaled(sign, series_remainder(name, 2, 0, one) * call("add", x, y))
    return None


exp_minus_cos = view_rule(
    "exp_minus_cos", f.exp(x) - f.cos(x), f.exp_minus_cos(x),
    why="both are near 1 for small x",
)  # fmt: skip


@rule(
    "add", "sub", needs_in_view=["mul"],
    why="x log(x / y) and x - y are nearly equal where x and y are",
)  # fmt: skip
def kl_div(node: Apply, graph: Any) -> Any:
    """x log_div(x, y) - x + y -> kl_div(x, y), and multiples"""
    out = node.outputs[0]
    s = as_sum(out)
    if len(s.terms) < 3:
        return None
    for term, k in s.pairs():
        p = as_product(term)
        for logarithm, _ in p.found(1, "log_div", "log_difference"):
            x, y = logarithm.owner.inputs
            for one, other, c in ((x, y, k * p.coefficient), (y, x, -k * p.coefficient)):
                if p.without(logarithm).factors != {one: 1.0}:
                    continue
                rest = Sum(s.constant, {t: e for t, e in s.terms.items() if t is not term})
                left = _dropped(rest, {one: -c, other: c})
                if left is not None:
                    terms = [*left.pairs(), (call("kl_div", one, other), c)]
                    return sum_of(left.constant, terms, out)
    return None


@rule(
    *SUMS, needs_in_view=["xlogx", "xlogx1p"],
    why="the logarithm times the number is about its argument near 0, or less 1 near 1",
)  # fmt: skip
def log1p_integral(node: Apply, graph: Any) -> Any:
    """xlogx1p(x) - x -> log1p_integral(x);   xlogx(x) - x + 1 -> kl_div(x, 1);   and multiples"""
    out = node.outputs[0]
    s = as_sum(out)
    for term, c in s.pairs():
        function = elementwise(term, "xlogx", "xlogx1p")
        (x,) = (None,) if function is None else function.inputs
        parts = None if x is None else as_sum(x)
        if function is None or parts is None or parts.constant:
            continue
        near_one = function.op.scalar.name == "xlogx"
        rest = Sum(s.constant, {t: k for t, k in s.terms.items() if t is not term})
        left = _dropped(rest, parts.times(-c).terms)
        if left is None or near_one and left.constant != c:
            continue
        found = call("kl_div", x, 1.0) if near_one else call("log1p_integral", x)
        constant = 0.0 if near_one else left.constant
        return sum_of(constant, [*left.pairs(), (found, c)], out)
    return None


@rule(
    *SUMS, needs_in_view=["one_plus_log", "one_plus_log1p", "own_ratio", "mul"],
    why="the logarithm is small where its argument is near 1",
)  # fmt: skip
def slope_of_xlogx(node: Apply, graph: Any) -> Any:
    """y (1 + log(x)) - y -> y log(x) + (y - y), NaN for infinite y;   likewise 1 + log1p(x), and
    log(x) + x / x - 1
    """
    (out,) = node.outputs
    s = as_sum(out)
    for term, c in s.pairs():
        p = as_product(term)
        for slope, x in p.found(1, "one_plus_log", "one_plus_log1p", "own_ratio"):
            y = p.without(slope)
            name = slope.owner.op.scalar.name
            less = slope - slope if name == "own_ratio" else call(name.removeprefix("one_plus_"), x)
            if not y.factors and s.constant == -c * y.coefficient:
                found = s.plus(Sum(-s.constant, {term: -c, less: c * y.coefficient}))
                return sum_of(0.0, found.pairs(), out)
            factors, k = _without_fills(y)
            for other, d in s.pairs():
                if _without_fills(as_product(other)) == (factors, -c * k / d) and factors:
                    found = y.times(less) + (other - other)
                    rest = s.plus(Sum(0.0, {term: -c, other: -d, found: c}))
                    return sum_of(rest.constant, rest.pairs(), out)
    return None


def _without_fills(p: Product) -> tuple[dict[Any, float], float]:
    """Return the factors without numbers that are broadcast to a shape, and the coefficient with
    them.
    """
    factors, c = dict(p.factors), p.coefficient
    for factor, e in p.factors.items():
        filled = elementwise(factor, "second")
        value = None if filled is None else number(filled.inputs[1])
        if value and e == 1:
            c *= value
            del factors[factor]
    return factors, c


REMAINDER_RULES = RuleSet(
    [series_remainder_of_sum, squares_near_0, exp_minus_cos, kl_div, log1p_integral, slope_of_xlogx]
)
