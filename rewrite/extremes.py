"""Products and quotients with partial results that leave the range where the whole does not.

``x * y / z`` of numbers near 1e200 is infinite in this order, and 1e200 in another one. This phase
comes last, before fusion, since other rules must still recognize products. It makes rows of
``symcomp.ops.elementwise.scalar_products``, which no later rule matches, at the cost of a
comparison or two beside a division.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import mul, true_div
from symcomp.ops.nnet.unit_vector import SignedMean, UnitVector, scaled_for_sum
from symcomp.ops.nnet.weighted_mean import SoftmaxPowerSum
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims
from symcomp.rewrite.exponents import EXPONENTIALS, HYPERBOLIC, exponent_with_rest
from symcomp.rewrite.factors import (
    PARTS,
    Factors,
    in_range,
    is_bounded,
    is_norm_of,
    with_signs,
)
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.norms import is_count
from symcomp.rewrite.stabilize.power_norms import inverse_power_of_two
from symcomp.rewrite.stabilize.rational import factored
from symcomp.rewrite.views import (
    Product,
    as_product,
    as_sum,
    call,
    powered,
    product_of,
    scaled,
    square_root,
    sum_of,
)

# Terms that underflow are no part of sums above this.
SMALL_SUM = 2.0**-900


@rule(
    "mul",
    "true_div",
    why="a partial product may leave the range where the whole does not",
    from_above=True,
    needs=PARTS,
)
def product_in_range(node: Apply, graph: Any) -> Any:
    """x y / z -> times_over(x, y, z);   x / (y z) -> over_both(x, y, z);
    x y z -> times_three(x, y, z);   x^2 / y^2 -> (x / y)^2;   longer ones -> scaled_product;
    u y / z -> u (y / z), where u is a unit vector, and y and z are stretched;
    x / (norm of x) y -> x (y / norm of x), as in derivatives of norms;
    x y / (w z^2) -> x (1 / z) (y / z) / w, where y and z are stretched and z^2 is 0 or infinite
    """
    out = node.outputs[0]
    if out.dtype not in ("float32", "float64") or node.op.inplace:
        return None
    factors = Factors(out)
    if factors.count < 3 or not factors.whole:
        return None
    if not factors.of_one_shape:
        ways = (
            factors.unit_times_stretched, factors.over_norm_times_stretched,
            factors.over_stretched_square,
        )  # fmt: skip
        return next((found for way in ways if (found := way()) is not None), None)
    # In float32, which these functions convert, only numbers of slices are worth it.
    if out.dtype == "float32" and out.ndim and not any(out.type.broadcastable):
        return None
    if sum(not is_bounded(x) for x in factors.above) + len(factors.below) < 3:
        return None
    found = in_range(with_signs(factors.above), factors.below)
    if found is None:
        return None
    return factors.filled(scaled(factors.number, found))


@rule(
    "mul", "true_div", "reciprocal", needs_in_view=["add", "sub"], from_above=True,
    why="the terms may leave the range or cancel in part where their quotient does not",
)  # fmt: skip
def common_factor(node: Apply, graph: Any) -> Any:
    """y / (x^2 + x) -> y / (x (x + 1))"""
    p = as_product(node.outputs[0])
    if node.outputs[0].dtype != "float64" or node.op.inplace:
        return None
    for f, e in p.factors.items():
        if e < 0 and float(e).is_integer() and (parts := factored(f)) is not None:
            common, rest = parts
            whole = product_of(Product(1.0, common), [rest])
            return p.without(f).times() / powered(whole, -e)
    return None


@rule(
    "mul", "true_div", needs_in_view=["add"], from_above=True,
    why="squares may leave the range where their sum over a number of their size does not",
)  # fmt: skip
def squares_over(node: Apply, graph: Any) -> Any:
    """(x^2 + y^2) / (x + y) -> x (x / (x + y)) + y (y / (x + y));
    (x^2 + y^2) / (x + y)^2 -> (x / (x + y))^2 + (y / (x + y))^2, also with coefficients above 0
    """
    out = node.outputs[0]
    p = as_product(out)
    if out.dtype != "float64" or node.op.inplace:
        return None
    for total, _ in p.found(1, "add"):
        s = as_sum(total)
        bases = [square_root(t) for t in s.terms]
        if not bases or s.constant or min(s.terms.values()) <= 0 or None in bases:
            continue
        for below, e in p.factors.items():
            if e in (-1, -2) and any(x in as_sum(below).terms for x in bases):
                quotients = [x / below for x in bases]
                others = bases if e == -1 else quotients
                terms = [x * q for x, q in zip(others, quotients, strict=True)]
                found = sum_of(0.0, list(zip(terms, s.terms.values(), strict=True)), total)
                return p.without(total, below).times(found)
    return None


@rule(
    "mul", "true_div", why="an exponential may leave the range where a product with it does not",
    from_above=True, needs_in_view=["exp"],
)  # fmt: skip
def product_with_exponential(node: Apply, graph: Any) -> Any:
    """x exp(y) -> times_exp(x, y), and in float64 x y exp(z) -> times_two_exp(x, y, z), also of
    divisors
    """
    out = node.outputs[0]
    factors = Factors(out)
    if out.dtype not in ("float32", "float64") or node.op.inplace:
        return None
    if not factors.whole or not factors.of_one_shape:
        return None
    others = with_signs([x for x in factors.above if not elementwise(x, "exp")])
    found = [x for x in (*factors.above, *factors.below) if elementwise(x, "exp")]
    most = 2 if out.dtype == "float64" else 1
    if len(found) != 1 or len(others) > most or any(x is not found[0] for x in factors.below):
        return None
    (exponential,) = found
    if not _is_made_with_product(exponential, graph):
        return None
    (y,) = exponential.owner.inputs
    y = y if exponential in factors.above else -y
    small = abs(factors.number) < 1
    if not others:
        # The exponential alone is as good as its product with a number above 1.
        x = np.asarray(factors.number, out.dtype)
        return factors.filled(call("times_exp", x, y)) if small else None
    if small:
        others[0], factors.number = scaled(factors.number, others[0]), 1.0
    row = "times_exp" if len(others) == 1 else "times_two_exp"
    return factors.filled(scaled(factors.number, call(row, *others, y)))


def _is_made_with_product(exponential: Any, graph: Any) -> bool:
    """Tell whether products with the exponential compute it: if no other node reads it, or if
    elementwise functions read one that may come from a quotient, as exp(-x) does. Exponentials of
    squares and sums have functions of their own.
    """
    node = exponential.owner
    if node.inputs[0].dtype != exponential.dtype:
        return False
    clients = [client for client, _ in graph.clients[exponential]]
    if not all(client == "output" or isinstance(client.op, Elemwise) for client in clients):
        return False
    exponent = as_sum(node.inputs[0])
    if len(clients) > 1 and not (exponent.single is not None and exponent.single[1] < 0):
        return False
    return all(other.function(node, graph) is None for other in EXPONENTIALS)


@rule(
    "mul", "true_div", why="an exponential may leave the range where a product with it does not",
    from_above=True, needs_in_view=["exp", "exp_of_sum"],
)  # fmt: skip
def product_with_exponential_of_functions(node: Apply, graph: Any) -> Any:
    """x exp(y) / (z w) -> times_exp_with_rest(x, y, e, z, w), where e is the rounding error of y,
    which has logarithms or exponentials, as in derivatives of densities
    """
    out = node.outputs[0]
    factors = Factors(out)
    if out.dtype != "float64" or node.op.inplace:
        return None
    if not factors.whole or not factors.of_one_shape:
        return None
    found = [x for x in factors.above if elementwise(x, "exp", "exp_of_sum")]
    rounded = exponent_with_rest(found[0].owner) if len(found) == 1 else None
    if rounded is None or found[0] in factors.below:
        return None
    above = with_signs([x for x in factors.above if x is not found[0]])
    if not above and not factors.below:
        return None
    x = scaled(factors.number, above[0]) if above else np.asarray(factors.number, out.dtype)
    z, w = [*factors.below, 1.0, 1.0][:2]
    product = reduce(mul, [call("times_exp_with_rest", x, *rounded, z, w), *above[1:]])
    return factors.filled(reduce(true_div, factors.below[2:], product))


@rule(
    "mul", "true_div", from_above=True,
    why="the terms may underflow where their product with a large number does not",
)  # fmt: skip
def sum_over_norm_in_range(node: Apply, graph: Any) -> Any:
    """sum(x w / (norm of x)) y -> sum(x w y / (norm of x)), as in derivatives of norms forward,
    where the first sum is small and the other one finite
    """
    factors = Factors(node.outputs[0])
    if node.outputs[0].dtype != "float64" or node.op.inplace or not factors.of_one_shape:
        return None
    for total in factors.above if factors.whole and factors.count == 2 else ():
        reduced = computed_by(total, Reduce)
        if reduced is None or reduced.op.reduction.name != "sum" or reduced.op.acc_dtype:
            continue
        inner, axes = Factors(reduced.inputs[0]), reduced.op.axes
        if any(is_norm_of(y, x) for x in inner.above for y in inner.below):
            rest = as_product(node.outputs[0]).without(total).times()
            moved = reduced.op(reduced.inputs[0] * expand_dims(rest, axes))
            small = call("lt", call("abs", total), SMALL_SUM)
            inside = call("logical_and", small, call("lt", call("abs", moved), math.inf))
            return switch(inside, 1.0, total) * switch(inside, moved, rest)
    return None


@rule("sqrt", why="the product may leave the range where its root does not", from_above=True)
def root_in_range(node: Apply, graph: Any) -> Any:
    """sqrt(x y) -> scaled_product, its root;   sqrt(x / y) likewise"""
    x, out = node.inputs[0], node.outputs[0]
    inner = elementwise(x, "mul", "true_div")
    if out.dtype != "float64" or x.dtype != "float64" or node.op.inplace or inner is None:
        return None
    factors = Factors(x)
    both = [*factors.above, *factors.below]
    if len(both) < 2 or not factors.whole or factors.number <= 0 or any(map(is_bounded, both)):
        return None
    if not factors.of_one_shape:
        return None
    count = len(factors.above), len(factors.below)
    root = Elemwise(ROWS["scaled_product"](2, *count))(*both)
    return factors.filled(scaled(math.sqrt(factors.number), root))


@rule(
    "by_squares", why="the sum may leave the range where its root does not", from_above=True,
)  # fmt: skip
def roots_in_range(node: Apply, graph: Any) -> Any:
    """by_squares(sqrt(x^2 + x), y, z) -> by_squares(sqrt(|x|) sqrt(|x + 1|), y, z), NaN where the
    sum is negative;   likewise the other root, and multiples
    """
    sides = list(node.inputs[:2])
    for i, side in enumerate(sides):
        p = as_product(side)
        for f, e in p.factors.items():
            if e == 0.5 and f.dtype == "float64" and (parts := factored(f)) is not None:
                both = product_of(Product(1.0, parts[0])), parts[1]
                one, other = (call("sqrt", call("abs", g)) for g in both)
                root = switch(call("lt", f, 0), math.nan, one * other)
                sides[i] = p.without(f).times(root)
    changed = sides[0] is not node.inputs[0] or sides[1] is not node.inputs[1]
    return node.op(*sides, node.inputs[2]) if changed else None


@rule(
    "known_difference", why="the two sides served for derivatives, which are known now",
    from_above=True,
)  # fmt: skip
def known_difference(node: Apply, graph: Any) -> Any:
    """known_difference(x, y, w) -> w"""
    return node.inputs[2]


@rule(
    "true_div", why="one division of each element takes less time than two", from_above=True,
)  # fmt: skip
def unit_vector_over_count(node: Apply, graph: Any) -> Any:
    """unit vector of x / sqrt(1 / n), as in standardization -> x / (norm of x * sqrt(1 / n))"""
    unit, below = node.inputs
    made = computed_by(unit, UnitVector)
    if made is None or node.op.inplace or len(graph.clients[unit]) > 1:
        return None
    counts = [g for f in as_product(below).factors for g in as_product(f).factors]
    if not counts or not all(map(is_count, counts)):
        return None
    (x,), axes = made.inputs, made.op.axes
    return x / (expand_dims(Norm(axes)(x), axes) * below)


@rule(SoftmaxPowerSum, why="the sum served for derivatives, which are known now", from_above=True)
def softmax_power_sum(node: Apply, graph: Any) -> Any:
    """softmax_power_sum(x) -> weighted_mean(x, powers of softmax(x))"""
    return node.op.as_mean(node.inputs[0])


@rule(SignedMean, why="the mean served for derivatives, which are known now", from_above=True)
def signed_mean(node: Apply, graph: Any) -> Any:
    """signed_mean(x, y) -> sum(s x y) / (s sum(abs(x))), for a power of two s; where that sum
    overflows, x is scaled before
    """
    (x, y), axes = node.inputs, node.op.axes
    total = Reduce(REDUCTIONS["sum"], axes)
    x, _ = scaled_for_sum(x, axes)
    size = total(call("abs", x))
    scale = inverse_power_of_two(size)
    return total(x * expand_dims(scale, axes) * y) / (size * scale)


EXTREMES = RuleSet(
    [
        known_difference, common_factor, squares_over, product_with_exponential_of_functions,
        sum_over_norm_in_range, product_with_exponential, product_in_range,
        root_in_range, roots_in_range, *EXPONENTIALS, *HYPERBOLIC,
        unit_vector_over_count, softmax_power_sum, signed_mean,
    ],
    ["extremes"],
)  # fmt: skip
