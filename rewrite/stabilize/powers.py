"""Powers written as exponentials of logarithms: exp(y log(x)), whose exponent is rounded."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.rewrite.pattern import f, variables, view_rule
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
    if (gap := elementwise(term, "log_gap")) is not None:
        base = (gap.inputs[0] + gap.inputs[1]) / gap.inputs[1]
        return switch(call("lt", gap.inputs[1], 0), math.nan, base), c
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


POWER_RULES = RuleSet([exp_of_logarithms, exp_of_function, power_of_sum, root_of_exp])
