"""Exponentials whose exponent is rounded, which is a large error of a large result.

These rules belong to the phase of ``symcomp.rewrite.extremes``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.rewrite.rule import elementwise, rule
from symcomp.rewrite.views import as_sum, call, is_power_of_two, scaled, through_views

# Constants between this and its inverse can be multiplied with first, or at the end.
LARGE = 2.0**60
# Exponents of more operations are left as they are.
MOST_OPERATIONS = 12


@rule(
    "exp", why="the rounding error of a large exponent is a large one of the exponential",
    from_above=True, needs=["sqr", "neg", "mul", "true_div"],
)  # fmt: skip
def exponential_of_square(node: Apply, graph: Any) -> Any:
    """exp(c x^2) -> exp_of_product(c x, x), for powers of two c, whose products are exact"""
    (exponent,) = node.inputs
    if exponent.dtype != "float64":
        return None
    s = as_sum(exponent)
    if s.single is None or s.constant:
        return None
    term, c = s.single
    square = elementwise(term, "sqr")
    if square is None or not is_power_of_two(c) or not 1 / LARGE < abs(c) < LARGE:
        return None
    (x,) = square.inputs
    return call("exp_of_product", scaled(c, x), x)


@rule(
    "exp", why="the rounding error of a large exponent is a large one of the exponential",
    from_above=True, needs=["add", "sub"],
)  # fmt: skip
def exponential_of_sum(node: Apply, graph: Any) -> Any:
    """exp(a x + b y) -> exp_of_sum(a x, b y), for powers of two a and b"""
    both = _exact_terms(node)
    return None if both is None else call("exp_of_sum", *both)


def _exact_terms(node: Apply) -> list[Any] | None:
    """Return the two terms whose sum the node takes a function of, if they are not rounded."""
    (total,) = node.inputs
    if total.dtype != "float64" or node.op.inplace:
        return None
    s = as_sum(total)
    if len(s.terms) != 2 or s.constant or not all(map(is_power_of_two, s.terms.values())):
        return None
    # A row less a number for all, as its maximum, is left as it is.
    if any(t.type.broadcastable != total.type.broadcastable for t in s.terms):
        return None
    return [scaled(c, t) for t, c in s.pairs()]


@rule(
    "sigmoid", "sigmoid_slope", needs=["add", "sub"], from_above=True,
    why="the rounding error of a large difference is a large one of its exponential",
)  # fmt: skip
def sigmoid_of_difference(node: Apply, graph: Any) -> Any:
    """sigmoid(x - y) -> share(x, y);   sigmoid_slope(x - y) -> share_slope(x, y), where x != y"""
    both = _exact_terms(node)
    if both is None:
        return None
    x, y = both[0], scaled(-1, both[1])
    name, equal = ("share", 0.5) if node.op.scalar.name == "sigmoid" else ("share_slope", 0.25)
    # NaN where both are -inf: their shares are 0.
    return switch(call("eq", x, y), equal + 0 * node.inputs[0], call(name, x, y))


@rule(
    "sech_squared", needs=["sqr"], from_above=True,
    why="the rounding error of a large square is a large one of its exponential",
)  # fmt: skip
def sech_squared_of_square(node: Apply, graph: Any) -> Any:
    """sech_squared(x^2) -> 4 e / (1 + e)^2 for e = exp_of_product(-2 x, x)"""
    square = elementwise(node.inputs[0], "sqr")
    if square is None or node.inputs[0].dtype != "float64" or node.op.inplace:
        return None
    (x,) = square.inputs
    e = call("exp_of_product", scaled(-2, x), x)
    return 4 * e / call("sqr", 1 + e)


@rule(
    "exp", needs=["mul", "neg"], from_above=True,
    why="the rounding error of a number is that of the exponent, a large one of the exponential",
)  # fmt: skip
def exponential_of_logarithm(node: Apply, graph: Any) -> Any:
    """exp(x log(2)) -> exp2(x);   exp(-x log(10)) -> 10^-x, and other whole numbers"""
    (exponent,) = node.inputs
    s = as_sum(exponent)
    if exponent.dtype != "float64" or node.op.inplace or s.single is None or s.constant:
        return None
    x, c = s.single
    base = round(math.exp(min(abs(c), 5.0)))
    if base < 2 or not math.isclose(abs(c), math.log(base), rel_tol=2**-52):
        return None
    x = x if c > 0 else -x
    return call("exp2", x) if base == 2 else call("pow", np.asarray(float(base)), x)


class Roundings:
    """The rounding errors of an exponent that is computed with logarithms or exponentials.

    Attributes
    ----------
    known : bool
        Whether there is a logarithm or an exponential, and the errors of all operations are known.
        Other functions, sums and products of matrices have errors that are as large.
    error : Any
        The sum of the errors, to first order.
    """

    def __init__(self, exponent: Any) -> None:
        self._left = MOST_OPERATIONS
        self._functions = 0
        self._type = exponent.dtype, exponent.type.broadcastable
        self.error = self._error(exponent)
        self.known = self._left >= 0 and self._functions > 0

    def _error(self, z: Any) -> Any:
        """Return the error that rounding has left in ``z``; None for arguments and numbers."""
        if through_views(z)[0].owner is None or self._left < 0:
            return None
        node = elementwise(z, "add", "sub", "neg", "mul", "sqr", "true_div", "log", "exp")
        self._left -= 1
        alike = node is not None and (z.dtype, z.type.broadcastable) == self._type
        if node is None or not alike or any(x.dtype != z.dtype for x in node.inputs):
            self._left = -1
            return None
        return getattr(self, "_of_" + node.op.scalar.name)(z, *node.inputs)

    def _of_neg(self, z: Any, x: Any) -> Any:
        return _plus(None, (-1, self._error(x)))

    def _of_add(self, z: Any, total: Any, *others: Any) -> Any:
        error = self._error(total)
        for y in others:
            rest = call("difference_rest", total, -y, 0.0)
            total, error = total + y, _plus(rest, (1, error), (1, self._error(y)))
        return error

    def _of_sub(self, z: Any, x: Any, y: Any) -> Any:
        return _plus(call("difference_rest", x, y, 0.0), (1, self._error(x)), (-1, self._error(y)))

    def _of_mul(self, z: Any, total: Any, *others: Any) -> Any:
        error = self._error(total)
        for y in others:
            rest = call("product_rest", total, y)
            total, error = total * y, _plus(rest, (y, error), (total, self._error(y)))
        return error

    def _of_sqr(self, z: Any, x: Any) -> Any:
        return _plus(call("product_rest", x, x), (2 * x, self._error(x)))

    def _of_true_div(self, z: Any, x: Any, y: Any) -> Any:
        rest = ((x - z * y) - call("product_rest", z, y)) / y
        return _plus(rest, (1 / y, self._error(x)), (-z / y, self._error(y)))

    def _of_log(self, z: Any, x: Any) -> Any:
        self._functions += 1
        return _plus(call("log_rest", x, z), (1 / x, self._error(x)))

    def _of_exp(self, z: Any, x: Any) -> Any:
        self._functions += 1
        return _plus(call("exponential_rest", x, z), (z, self._error(x)))


def _plus(rest: Any, *others: tuple[Any, Any]) -> Any:
    """Return the sum of a rounding error and multiples of others; None is 0."""
    for factor, error in others:
        if error is not None:
            part = scaled(factor, error) if isinstance(factor, int) else factor * error
            rest = part if rest is None else rest + part
    return rest


def exponent_with_rest(node: Apply) -> tuple[Any, Any] | None:
    """Return the exponent of ``exp`` or ``exp_of_sum``, a logarithm or an exponential in part, and
    its rounding error; None for others.
    """
    x, *others = node.inputs
    exponent = x + others[0] if others else x
    if exponent.dtype != "float64" or node.op.inplace:
        return None
    roundings = Roundings(exponent)
    return (exponent, roundings.error) if roundings.known else None


@rule(
    "exp", "exp_of_sum", needs=["add", "sub", "neg", "mul", "sqr", "true_div"], from_above=True,
    why="the rounding error of a logarithm, or an exponential, is one of the exponent",
)  # fmt: skip
def exponential_of_functions(node: Apply, graph: Any) -> Any:
    """exp(c log(x)^2) -> exp_with_rest(c log(x)^2, its rounding error), where x is an argument;
    likewise exp(-exp(x)), exp(c log(x) - x), and exp_of_sum
    """
    found = exponent_with_rest(node)
    return None if found is None else call("exp_with_rest", *found)


HYPERBOLIC = (sigmoid_of_difference, sech_squared_of_square)
EXPONENTIALS = (
    exponential_of_functions, exponential_of_square, exponential_of_sum, exponential_of_logarithm,
)  # fmt: skip
