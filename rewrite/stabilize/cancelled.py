"""Factors that a product both multiplies and divides by: x y / (x z)."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.views import Product, argument, as_product, as_sum, call


@rule(
    "mul", "true_div",
    why="products with the factor may leave the range; the derivative by it is exactly 0",
)  # fmt: skip
def cancelled_factors(node: Apply, graph: Any) -> Any:
    """x y / (x z) -> own_ratio(x) y / z, where own_ratio is 1, NaN for 0 and infinities;
    x / |x| -> over_size(x);   exp(x) y / exp(x)^2 -> y / exp(x), likewise for other functions
    that leave the range;   sinh(x) / sinh(x) -> own_ratio(x), NaN for 0 and infinities
    """
    out = node.outputs[0]
    p = as_product(out)
    if not dtypes.is_float(out.dtype):
        return None
    positive = {f for f in p.cancelled if f in p.factors and _positive_function_of(f) is not None}
    ones = [call("own_ratio", _in_range(f)) for f in p.cancelled if f not in positive]
    factors = dict(p.factors)
    for f in p.factors:
        size = elementwise(f, "abs")
        x = None if size is None else size.inputs[0]
        e, k = p.factors[f], p.factors.get(x, 0.0)
        if e * k < 0 and float(e).is_integer() and float(k).is_integer():
            n = int(min(abs(e), abs(k)))
            ones.append(call("over_size" if n % 2 else "own_ratio", x))
            factors[f], factors[x] = e + (n if k > 0 else -n), k - (n if k > 0 else -n)
    if not (ones or positive) or any(one.dtype != out.dtype for one in ones):
        return None
    return Product(p.coefficient, {f: e for f, e in factors.items() if e}).times(*ones)


def _positive_function_of(f: Any) -> Any:
    """Return y if ``f`` is a function of y that is 0 or infinite only where it leaves the range."""
    y = argument(f, "exp", "cosh")
    if y is None and elementwise(f, "add", "sub") is not None:
        s = as_sum(f)
        if s.single is not None and s.constant * s.single[1] > 0:
            y = argument(s.single[0], "exp", "cosh")
    return y


def _in_range(f: Any) -> Any:
    """Return a function of the same zeros as ``f`` that is finite where ``f`` leaves the range."""
    y = _positive_function_of(f)
    if y is not None:
        return 1 + call("abs", y)
    y = argument(f, "sinh", "expm1")
    return f if y is None else y


CANCELLED_RULES = RuleSet([cancelled_factors])
