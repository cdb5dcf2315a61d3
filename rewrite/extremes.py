"""Products and quotients with partial results that leave the range where the whole does not.

``x * y / z`` of numbers near 1e200 is infinite in this order, and 1e200 in another one. This phase
comes last, before fusion, since other rules must still recognize products. It makes rows of
``symcomp.ops.elementwise.scalar_products``, which no later rule matches, at the cost of a
comparison or two beside a division.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import mul, true_div
from symcomp.ops.nnet.unit_vector import UnitVector
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims
from symcomp.rewrite.exponents import EXPONENTIALS, HYPERBOLIC, LARGE, exponent_with_rest
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.norms import is_count
from symcomp.rewrite.stabilize.rational import factored
from symcomp.rewrite.views import (
    Product,
    as_product,
    as_sum,
    call,
    number,
    powered,
    product_of,
    scaled,
    square_root,
    sum_of,
)

# Longer products are not changed.
MOST_FACTORS = 12
# The functions that a product is made of.
PARTS = ("mul", "true_div", "sqr", "reciprocal", "neg")
# Functions with values -1, 0 and 1, and with values between about -1 and 1: a product of one other
# factor with them does not overflow.
SIGNS = frozenset(
    "sgn eq neq lt le gt ge isnan isinf logical_not logical_and logical_or".split()
)
BOUNDED = SIGNS | frozenset("sigmoid tanh sin cos erf erfc sech_squared share ndtr".split())


class Factors:
    """A product: its factors, its divisors, a number, and the variables whose shapes were filled
    with numbers, as in gradients of sums.
    """

    def __init__(self, out: Any) -> None:
        self.number = 1.0
        self.above: list[Any] = []
        self.below: list[Any] = []
        self._fills: list[Any] = []
        self._type = out.dtype, out.type.broadcastable
        self._squared: set[Any] = set()
        pending = [(out, 1)]
        while pending and len(pending) + self.count <= MOST_FACTORS:
            x, e = pending.pop()
            inner = elementwise(x, *PARTS)
            filled = elementwise(x, "second") if x is not out and self._is_open(x) else None
            value = number(x if filled is None else filled.inputs[1])
            if value is not None and 1 / LARGE < abs(value) < LARGE:
                self.number *= value**e
                self._fills += [] if filled is None else [filled.inputs[0]]
            elif inner is not None and (x is out or self._is_open(x)):
                pending += [(y, e * k) for y, k in reversed(self._parts(inner))]
            else:
                (self.above if e > 0 else self.below).append(x)
        self.whole = not pending

    def _parts(self, node: Apply) -> list[tuple[Any, int]]:
        """Return the factors of a node with the signs of their exponents; a sign goes to the
        number.
        """
        name, inputs = node.op.scalar.name, node.inputs
        if name == "neg":
            self.number = -self.number
        if name == "sqr":
            self._squared.add(inputs[0])
            return [(inputs[0], 1), (inputs[0], 1)]
        if name in ("true_div", "reciprocal"):
            return [*((x, 1) for x in inputs[:-1]), (inputs[-1], -1)]
        return [(x, 1) for x in inputs]

    def _is_open(self, x: Any) -> bool:
        """Tell whether ``x`` is read as a part of the product; a square is two factors, the square
        of a square four.
        """
        whole = x not in self._squared or elementwise(x, "sqr") is not None
        return whole and self._is_whole(x)

    @property
    def of_one_shape(self) -> bool:
        """True if no factor is stretched: scales of rows stay next to their operands."""
        return all(map(self._is_whole, self.above + self.below))

    def unit_times_stretched(self) -> Any:
        """Return a unit vector times the quotient of the other factors, all stretched, which is
        about as large as the largest element of the product; None if there are other factors.
        """
        units = [x for x in self.above if computed_by(x, UnitVector) is not None]
        above = [x for x in self.above if x not in units]
        if len(units) != 1 or not above or not self.below or self._fills:
            return None
        if not self._is_whole(units[0]) or any(map(self._is_whole, [*above, *self.below])):
            return None
        return units[0] * scaled(self.number, reduce(mul, above) / reduce(mul, self.below))

    def _is_whole(self, x: Any) -> bool:
        return (x.dtype, x.type.broadcastable) == self._type

    def filled(self, x: Any) -> Any:
        """Return ``x``, a product, with the shapes that were filled with numbers."""
        return reduce(lambda z, shape: call("second", shape, z), self._fills, x)

    @property
    def count(self) -> int:
        """The number of factors."""
        return len(self.above) + len(self.below)


def _is_bounded(x: Any, functions: frozenset[str] = BOUNDED) -> bool:
    while (cast := elementwise(x, "cast", "neg")) is not None:
        x = cast.inputs[0]
    return x.dtype == "bool" or elementwise(x, *functions) is not None


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
    u y / z -> u (y / z), where u is a unit vector, and y and z are stretched
    """
    out = node.outputs[0]
    if out.dtype not in ("float32", "float64") or node.op.inplace:
        return None
    factors = Factors(out)
    if factors.count < 3 or not factors.whole:
        return None
    if not factors.of_one_shape:
        return factors.unit_times_stretched()
    # In float32, which these functions convert, only numbers of slices are worth it.
    if out.dtype == "float32" and out.ndim and not any(out.type.broadcastable):
        return None
    if sum(not _is_bounded(x) for x in factors.above) + len(factors.below) < 3:
        return None
    found = _in_range(_with_signs(factors.above), factors.below)
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
    others = _with_signs([x for x in factors.above if not elementwise(x, "exp")])
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
    above = _with_signs([x for x in factors.above if x is not found[0]])
    if not above and not factors.below:
        return None
    x = scaled(factors.number, above[0]) if above else np.asarray(factors.number, out.dtype)
    z, w = [*factors.below, 1.0, 1.0][:2]
    product = reduce(mul, [call("times_exp_with_rest", x, *rounded, z, w), *above[1:]])
    return factors.filled(reduce(true_div, factors.below[2:], product))


@rule("sqrt", why="the product may leave the range where its root does not", from_above=True)
def root_in_range(node: Apply, graph: Any) -> Any:
    """sqrt(x y) -> scaled_product, its root;   sqrt(x / y) likewise"""
    x, out = node.inputs[0], node.outputs[0]
    inner = elementwise(x, "mul", "true_div")
    if out.dtype != "float64" or x.dtype != "float64" or node.op.inplace or inner is None:
        return None
    factors = Factors(x)
    both = [*factors.above, *factors.below]
    if len(both) < 2 or not factors.whole or factors.number <= 0 or any(map(_is_bounded, both)):
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


def _with_signs(factors: Sequence[Any]) -> list[Any]:
    """Multiply the first other factor by the signs, which is exact and in range."""
    signs = [x for x in factors if _is_bounded(x, SIGNS)]
    others = [x for x in factors if not _is_bounded(x, SIGNS)]
    if not others:
        return signs
    return [reduce(lambda x, sign: x * sign, signs, others[0]), *others[1:]]


def _in_range(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """Return the product of some factors over that of others, or None if every order stays in
    range.
    """
    if len(above) + len(below) < 3 or (not above and len(below) < 3):
        return None
    counts = Counter(above), Counter(below)
    if sum(map(len, counts)) == 1:
        return None  # a power of one factor
    common = math.gcd(*counts[0].values(), *counts[1].values())
    if common > 1 and above:
        base = [[x for x, n in count.items() for _ in range(n // common)] for count in counts]
        found = _of_two(*base) if sum(map(len, base)) == 2 else _in_range(*base)
        return _power(found, common)
    if (len(above), len(below)) == (3, 0):
        return call("times_three", *above)
    if (len(above), len(below)) == (2, 1):
        return call("times_over", *above, *below)
    if (len(above), len(below)) == (1, 2):
        return call("over_both", *above, *below)
    return Elemwise(ROWS["scaled_product"](1, len(above), len(below)))(*above, *below)


def _of_two(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """Return x y, or x / y."""
    return above[0] / below[0] if below else above[0] * above[1]


def _power(x: Any, n: int) -> Any:
    """Return x^n, by a row that is not read as a product unless it is a square."""
    if n % 2 == 0:
        return call("sqr", x if n == 2 else _power(x, n // 2))
    return Elemwise(ROWS["scaled_product"](1, n, 0))(*[x] * n)


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


EXTREMES = RuleSet(
    [
        known_difference, common_factor, squares_over, product_with_exponential_of_functions,
        product_with_exponential, product_in_range,
        root_in_range, roots_in_range, *EXPONENTIALS, *HYPERBOLIC,
        unit_vector_over_count,
    ],
    ["extremes"],
)  # fmt: skip
