"""Powers written as exponentials of logarithms: exp(y log(x)), whose exponent is rounded."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.series_remainder import series_remainder
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
    powered,
    product_of,
    scaled,
)

(x,) = variables("x")
(symbol,) = variables("y", where=lambda v: number(v) is None)

# Up to this power the rounding error of 1 + x does not exceed that of the result.
SMALL_POWER = 2.0


@rule("exp", why="the rounding error of a large exponent is a large one of the power")
def exp_of_logarithms(node: Apply, graph: Any) -> Any:
    """exp(y log(x)) -> power_of_log(x, y);   exp(y log1p(x)) -> compound(x, y), NaN below -1;
    exp(a log(x) - b log(y) + c) -> power_of_log(x, a) power_of_log(y, -b) exp(c);
    exp(-log(x)) -> 1 / x, NaN below 0
    """
    s = _apart(as_sum(node.inputs[0]))
    if not s.terms or not dtypes.is_float(node.outputs[0].dtype):
        return None
    few = len(s.terms) > 1
    factors: dict[Any, float] = {}
    for term, c in s.pairs():
        found = _power(term, c, few, node)
        if found is None:
            return None
        factors[found[0]] = factors.get(found[0], 0.0) + found[1]
    if abs(s.constant) > 1:
        return None
    return product_of(Product(math.exp(s.constant), factors))


def _apart(s: Sum) -> Sum:
    """Return the sum with the two logarithms in the place of each log_difference."""
    for term, c in s.pairs():
        if (both := elementwise(term, "log_difference")) is not None:
            x, y = both.inputs
            s = s.plus(Sum(0.0, {term: -c, call("log", x): c, call("log", y): -c}))
    return s


def _power(term: Any, c: float, few: bool, node: Apply) -> tuple[Any, float] | None:
    """Return (z, n) with z^n = exp(c term), where the term is a multiple of a logarithm; else None.
    """
    if term.dtype != node.outputs[0].dtype:
        return None
    if (x := argument(term, "xlogx")) is not None:
        return switch(call("lt", x, 0), math.nan, call("pow", x, scaled(c, x))), 1.0
    if (gap := elementwise(term, "log_gap")) is not None:
        part, whole = gap.inputs[1], gap.inputs[0] + gap.inputs[1]
        base = part / whole if c < 0 else whole / part
        return switch(call("lt", part, 0), math.nan, base), abs(c)
    if (x := argument(term, "log1p_square")) is not None:
        root = call("hypot", x, 1.0)
        return (root, 2 * c) if 2 * c in (-1, 1) else (call("power_of_log", root, 2 * c), 1.0)
    p = as_product(term)
    logarithms = [f for f, e in p.factors.items() if e == 1 and elementwise(f, "log", "log1p")]
    if len(logarithms) != 1:
        return None
    (found,) = logarithms
    x, rest = argument(found, "log", "log1p"), p.without(found)
    if x.dtype != term.dtype:
        return None
    y = product_of(Product(c * rest.coefficient, rest.factors))
    if not rest.factors and abs(y) <= SMALL_POWER:
        base = x if elementwise(found, "log") else 1 + x
        if y in (-1, 1, 2) or few and y == -2:
            # The argument of the logarithm; NaN where the logarithm is NaN.
            return switch(call("lt", base, 0), math.nan, base), y
        if (n := _divisor(term)) and base is x and x.dtype == "float64":
            parts = call("log_mantissa", x), call("log_exponent", x)
            return call("power_of_parts", *parts, y * n, n), 1.0
        return call("power_of_log", base, y), 1.0
    if elementwise(found, "log"):
        return call("power_of_log", x, y), 1.0
    return switch(call("lt", x, -1), math.nan, call("compound", x, y)), 1.0


def _divisor(x: Any) -> float:
    """Return the whole number that ``x`` is divided by, if its inverse is not exact; else 0."""
    node = elementwise(x, "true_div")
    n = None if node is None else number(node.inputs[1])
    return 0.0 if n is None or not float(n).is_integer() or abs(n) > 64 else n


@rule("compound", why="parts of the derivative by the number cancel, or leave the range")
def compound_of_inverse(node: Apply, graph: Any) -> Any:
    """(1 + x)^(c / x) -> exp(c log(1 + x) / x) for numbers c from -1 to 1, also (1 + c/x)^x"""
    u, y = node.inputs
    p, q = as_product(u), as_product(y)
    c = p.coefficient * q.coefficient
    if not p.factors or p.factors != {g: -k for g, k in q.factors.items()} or not 0 < abs(c) <= 1:
        return None
    if not u.dtype == y.dtype == node.outputs[0].dtype == "float64":
        return None
    return call("exp", scaled(c, series_remainder("log1p", 1, 1, u)))


@rule("expm1", why="the rounding error of a large exponent is a large one of the power")
def expm1_of_logarithm(node: Apply, graph: Any) -> Any:
    """expm1(y log(x)) -> powm1(x, y);   expm1(y log1p(x)) -> compoundm1(x, y), NaN below -1"""
    (exponent,) = node.inputs
    p = as_product(exponent)
    for factor, x in p.found(1, "log", "log1p"):
        y = product_of(p.without(factor))
        if x.dtype != exponent.dtype or isinstance(y, float):
            continue
        if elementwise(factor, "log"):
            return call("powm1", x, y)
        return switch(call("lt", x, -1), math.nan, call("compoundm1", x, y))
    return None


@rule(*SUMS, needs_in_view=["pow", "exp2"], why="c^x is near 1 for small x")
def power_minus_one(node: Apply, graph: Any) -> Any:
    """c^x - 1 -> powm1(c, x) for numbers c > 0"""
    s = as_sum(node.outputs[0])
    if s.single is None or not s.constant or s.constant != -s.single[1]:
        return None
    power, k = s.single
    found = elementwise(power, "pow", "exp2")
    if found is None:
        return None
    base = 2.0 if len(found.inputs) == 1 else number(found.inputs[0])
    x = found.inputs[-1]
    if base is None or base <= 0 or x.dtype != power.dtype:
        return None
    return scaled(k, call("powm1", base, x))


@rule("pow", why="the power may leave the range where its root does not")
def root_of_power(node: Apply, graph: Any) -> Any:
    """(x^n)^c -> (x^c)^n for odd n and |c| < 1"""
    inner, (x, c) = elementwise(node.inputs[0], "pow"), node.inputs
    n, c = None if inner is None else number(inner.inputs[1]), number(c)
    if inner is None or n is None or c is None or not 0 < c < 1 or c == 0.5:
        return None
    if n not in (3, 5, 7) or x.dtype != "float64" or inner.inputs[0].dtype != x.dtype:
        return None
    return powered(call("pow", inner.inputs[0], c), n)


@rule(
    "pow", needs=["mul", "true_div"],
    why="the product may leave the range where its square root does not",
)  # fmt: skip
def root_of_product(node: Apply, graph: Any) -> Any:
    """(x / y)^0.5 -> sqrt(x / y), and infinity for -infinity, as the power is;  (x y)^0.5 likewise
    """
    (x, c), out = node.inputs, node.outputs[0]
    if number(c) != 0.5 or not x.dtype == out.dtype == "float64" or len(as_product(x).factors) < 2:
        return None
    return switch(call("eq", x, -math.inf), math.inf, call("sqrt", x))


exp_of_function = view_rule(
    "exp_of_function",
    [(f.exp(-f.softplus(x)), f.sigmoid(-x)), (f.exp(f.log_sigmoid(x)), f.sigmoid(x))],
    why="each has a function of its own",
)


power_of_sum = view_rule(
    "power_of_sum", (1 + x) ** symbol, f.compound(x, symbol),
    where=lambda m: m.x.dtype == m.y.dtype == m.node.outputs[0].dtype,
    why="1 + x rounds the digits of x away, and powers multiply the error",
)  # fmt: skip


root_of_exp = view_rule(
    "root_of_exp", f.sqrt(f.exp(x)), f.exp(0.5 * x),
    why="exp leaves the range long before its root; half of x is exact",
)  # fmt: skip


@rule(
    "pow", needs=["exp"],
    why="exp may leave the range where its power does not",
)  # fmt: skip
def power_of_exp(node: Apply, graph: Any) -> Any:
    """exp(x)^c -> exp_of_product(c, x) for numbers c that are not whole"""
    x, c = argument(node.inputs[0], "exp"), number(node.inputs[1])
    if x is None or c is None or float(c).is_integer() or not math.isfinite(c):
        return None
    if not x.dtype == node.outputs[0].dtype == "float64":
        return None
    return call("exp_of_product", c, x)


POWER_RULES = RuleSet(
    [
        exp_of_logarithms, compound_of_inverse, expm1_of_logarithm, power_minus_one,
        root_of_power, root_of_product,
        exp_of_function, power_of_sum, root_of_exp,
        power_of_exp,
    ]
)  # fmt: skip
