"""Powers written as exponentials of logarithms: exp(y log(x)), whose exponent is rounded."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.views import (
    Product,
    argument,
    as_product,
    as_sum,
    call,
    number,
    product_of,
    scaled,
    sum_of,
)

# Up to this power the rounding error of 1 + x does not exceed that of the result.
SMALL_POWER = 2.0


@rule("exp", why="the rounding error of a large exponent is a large one of the power")
def exp_of_logarithms(node: Apply, graph: Any) -> Any:
    """exp(y log(x)) -> power_of_log(x, y);   exp(y log1p(x)) -> compound(x, y), NaN below -1;
    exp(a log(x) - b log(y) + c) -> power_of_log(x, a) power_of_log(y, -b) exp(c);
    exp(-log(x)) -> 1 / x, NaN below 0
    """
    s = as_sum(node.inputs[0])
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


def _power(term: Any, c: float, few: bool, node: Apply) -> tuple[Any, float] | None:
    """Return (z, n) with z^n = exp(c term), where the term is a multiple of a logarithm; else None.
    """
    if term.dtype != node.outputs[0].dtype:
        return None
    if (x := argument(term, "xlogx")) is not None:
        return switch(call("lt", x, 0), math.nan, call("pow", x, scaled(c, x))), 1.0
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
        return call("power_of_log", base, y), 1.0
    if elementwise(found, "log"):
        return call("power_of_log", x, y), 1.0
    return switch(call("lt", x, -1), math.nan, call("compound", x, y)), 1.0


@rule("exp", why="each has a function of its own")
def exp_of_function(node: Apply, graph: Any) -> Any:
    """exp(-softplus(x)) -> sigmoid(-x);   exp(log_sigmoid(x)) -> sigmoid(x)"""
    s = as_sum(node.inputs[0])
    if s.single is None or s.constant:
        return None
    term, c = s.single
    if c == -1 and (x := argument(term, "softplus")) is not None:
        return call("sigmoid", -x)
    if c == 1 and (x := argument(term, "log_sigmoid")) is not None:
        return call("sigmoid", x)
    return None


@rule("pow", why="1 + x rounds the digits of x away, and powers multiply the error")
def power_of_sum(node: Apply, graph: Any) -> Any:
    """(1 + x) ** y -> compound(x, y), where y is no constant"""
    x, y = node.inputs
    out = node.outputs[0]
    if number(y) is not None or not dtypes.is_float(out.dtype):
        return None
    if not x.dtype == y.dtype == out.dtype:
        return None
    s = as_sum(x)
    if s.constant != 1 or not s.terms:
        return None
    return call("compound", sum_of(0, s.pairs(), x), y)


POWER_RULES = RuleSet([exp_of_logarithms, exp_of_function, power_of_sum])
