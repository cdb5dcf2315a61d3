"""Norms of powers other than 2: roots of sums of powers, which leave the range before the root, and
sums of products over sums of absolute values.
"""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.lazy import lazy_module
from symcomp.ops.nnet.unit_vector import SignedMean
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.norms import DTYPES, exchanged, is_count
from symcomp.rewrite.stabilize.over_norms import multiplied
from symcomp.rewrite.views import (
    Product,
    as_product,
    call,
    number,
    powered,
    rearranged,
    through_views,
)

fractions = lazy_module("fractions")

# Higher powers of numbers between 1 / sqrt(n) and 2, for n elements, may leave the range.
HIGHEST_POWER = 64
# Scales are powers of two up to these, and their inverses.
LARGEST_EXPONENT = {"float64": 1021, "float32": 125, "bfloat16": 125, "float16": 13}


@rule("pow", "sqrt", why="powers leave the range long before the root of their sum")
def norm_of_powers(node: Apply, graph: Any) -> Any:
    """sum(abs(x)^p)^(1 / p) -> sum(abs(s x)^p)^(1 / p) / s, for a power of two s;  means likewise
    """
    x, out = node.inputs[0], node.outputs[0]
    c = 0.5 if node.op.scalar.name == "sqrt" else number(node.inputs[1])
    if c is None or not 0 < abs(c) < 0.5 or x.dtype != out.dtype or not dtypes.is_float(x.dtype):
        return None
    p = as_product(x)
    for f, e in p.factors.items():
        total, views = through_views(f)
        found = _power_sum(total) if e == 1 else None
        rest = p.without(f)
        if found is None or p.coefficient <= 0 or not all(map(is_count, rest.factors)):
            continue
        y, k, inside = found
        if not math.isclose(k * abs(c), 1) or y.dtype != x.dtype:
            return None
        scale, kept = _unit_scale(y, total.owner.op.axes)
        small = y * kept if inside is None else call("abs", y * kept)
        powers = total.owner.op(call("pow", small, k))
        root = call("pow", rest.times(rearranged(powers, views)), c)
        size = _power(rearranged(scale, views), k, abs(c))
        return root / size if c > 0 else root * size
    return None


def _power_sum(total: Any) -> tuple[Any, float, Apply | None] | None:
    """Return (x, k, node of abs or None) if ``total`` is the sum of |x|^k over axes, k > 2."""
    node = computed_by(total, Reduce)
    if node is None or node.op.reduction.name != "sum" or node.op.acc_dtype or not node.op.axes:
        return None
    p = as_product(node.inputs[0])
    if len(p.factors) != 1 or p.coefficient != 1 or node.inputs[0].dtype != total.dtype:
        return None
    ((base, k),) = p.factors.items()
    inside = elementwise(base, "abs")
    x = base if inside is None else inside.inputs[0]
    if not 2 < k <= HIGHEST_POWER or inside is None and k % 2 or _is_scaled(x):
        return None
    return x, k, inside


def _is_scaled(x: Any) -> bool:
    return any(elementwise(through_views(f)[0], "exp2") for f in as_product(x).factors)


def _unit_scale(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a power of two about as large as the inverse of the norm of ``x`` over axes, and the
    same with the axes kept; their derivatives are 0.
    """
    scale = inverse_power_of_two(Norm(axes)(x))
    return scale, expand_dims(scale, axes)


def inverse_power_of_two(size: Any) -> Any:
    """Return a power of two about as large as the inverse of a size."""
    power, limit = call("floor", call("log2", size)), LARGEST_EXPONENT[size.dtype]
    return call("exp2", call("clip", -power, -limit, limit))


def _power(x: Any, k: float, c: float) -> Any:
    """Return x^(k c), as if k c were not rounded: it is 1 for c = 1 / 3 alone, not for the number
    near it.
    """
    exact = fractions.Fraction
    left = float(exact(k) * exact(c) - exact(k * c))
    size = powered(x, k * c)
    return size * (1 + left * call("log", x)) if left else size


@rule("mul", "true_div", why="the products leave the range where their sum over the sizes does not")
def product_over_sizes(node: Apply, graph: Any) -> Any:
    """sum(x y) / sum(abs(x)) -> signed_mean(x, y);  sum(abs(x) y) likewise"""
    p = as_product(node.outputs[0])
    if node.outputs[0].dtype not in DTYPES:
        return None
    for below, e in p.factors.items():
        total, views = through_views(below)
        sizes = _summed_sizes(total) if e < 0 and float(e).is_integer() else None
        if sizes is None:
            continue
        (x,), size = sizes.inputs, sizes.outputs[0]
        for above, n in p.factors.items():
            source, more = through_views(above)
            if n <= 0 or [v.op for v in more] != [v.op for v in views]:
                continue
            axes, k = total.owner.op.axes, min(n, -e)
            found = multiplied(source, x, axes)
            if found is None and (found := multiplied(source, size, axes)) is not None:
                found = found[0], call("sgn", x) * found[1]
            if found is not None:
                mean = rearranged(SignedMean(axes)(x, found[1]), views)
                changes = {above: -k, below: k, mean: k}
                return exchanged(Product(p.coefficient * found[0] ** k, p.factors), changes)
    return None


def _summed_sizes(total: Any) -> Apply | None:
    """Return the node of abs(x) if ``total`` is the sum of absolute values over axes."""
    node = computed_by(total, Reduce)
    if node is None or node.op.reduction.name != "sum" or node.op.acc_dtype or not node.op.axes:
        return None
    return elementwise(node.inputs[0], "abs")


POWER_NORM_RULES = RuleSet([norm_of_powers, product_over_sizes])
