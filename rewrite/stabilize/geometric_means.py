"""Geometric means and powers of products along axes: exp(mean(log(x))), prod(x)^c.

The exponent of the first is rounded, and the product of the second leaves the range, where the
result has all its digits. Both are computed from the sums of the logarithms of mantissas, which are
small, and of exponents, which are integers.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.rewrite.rule import RuleSet, computed_by, rule
from symcomp.rewrite.stabilize.norms import is_count
from symcomp.rewrite.views import (
    Product,
    as_product,
    call,
    number,
    product_of,
    rearranged,
    through_views,
)


@rule("exp", why="the rounding error of a large exponent is a large one of the mean")
def geometric_mean(node: Apply, graph: Any) -> Any:
    """exp(c mean(log(x))) -> the power of the product of x, from sums of mantissas and exponents;
    exp(c sum(log(x))) likewise
    """
    p = as_product(node.inputs[0])
    for f, e in p.factors.items():
        total, views = through_views(f)
        reduced = _reduction(total, "sum") if e == 1 else None
        rest = p.without(f)
        if reduced is None or not all(e == -1 and is_count(g) for g, e in rest.factors.items()):
            continue
        inner = as_product(reduced.inputs[0])
        logarithms = inner.found(1, "log")
        if len(inner.factors) != 1 or not logarithms or logarithms[0][1].dtype != "float64":
            return None
        c, n = _fraction(p.coefficient * inner.coefficient)
        count = product_of(Product(n, dict.fromkeys(rest.factors, 1.0)))
        return _power(logarithms[0][1], reduced.op.axes, views, c, count)
    return None


@rule("pow", "sqrt", why="the product leaves the range long before its root does")
def power_of_product(node: Apply, graph: Any) -> Any:
    """prod(x)^c -> the power from sums of mantissas and exponents, where no element is 0"""
    c = 0.5 if node.op.scalar.name == "sqrt" else number(node.inputs[1])
    product, views = through_views(node.inputs[0])
    reduced = _reduction(product, "prod")
    if c is None or float(c).is_integer() or reduced is None:
        return None
    (x,), op = reduced.inputs, reduced.op
    if not x.dtype == product.dtype == node.outputs[0].dtype == "float64":
        return None
    sign = rearranged(op(call("sgn", x)), views)
    power = _power(call("abs", x), op.axes, views, c, 1.0)
    # The derivatives at 0, and NaN for negative products.
    as_written = call("power_of_log", node.inputs[0], c)
    return switch(call("gt", sign, 0), power, as_written)


def _reduction(x: Any, name: str) -> Apply | None:
    """Return the node that reduces float64 numbers over axes to ``x`` by a sum or product."""
    node = computed_by(x, Reduce)
    if node is None or node.op.reduction.name != name or node.op.acc_dtype or not node.op.axes:
        return None
    return node if x.dtype == "float64" else None


def _fraction(c: float) -> tuple[float, float]:
    """Return (1 or -1, n) if c is the number nearest to one over an integer, else (c, 1)."""
    n = float(round(1 / c)) if abs(c) > 2.0**-52 else 0.0
    return (1.0 if n > 0 else -1.0, abs(n)) if n and 1 / n == c else (c, 1.0)


def _power(x: Any, axes: tuple[int, ...], views: list[Apply], c: float, n: Any) -> Any:
    """Return the power c / n of the product of ``x`` over axes, rearranged by views."""
    total = Reduce(REDUCTIONS["sum"], axes)
    parts = (rearranged(total(call(f"log_{p}", x)), views) for p in ("mantissa", "exponent"))
    return call("power_of_parts", *parts, c, n)


GEOMETRIC_MEAN_RULES = RuleSet([geometric_mean, power_of_product])
