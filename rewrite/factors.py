"""Products as factors and divisors, stretched or not, and their forms that stay in range."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import mul
from symcomp.ops.nnet.unit_vector import UnitVector
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.rewrite.exponents import LARGE
from symcomp.rewrite.rule import computed_by, elementwise
from symcomp.rewrite.views import (
    Product,
    as_product,
    call,
    number,
    puts_back,
    scaled,
    through_views,
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

    def over_norm_times_stretched(self) -> Any:
        """Return x y / (norm of x) times other factors, where y is the quotient of the stretched
        ones; None for others. Elements of x may be much smaller than their norm: where y over the
        norm is in range, they are multiplied by that, elsewhere divided by the norm first.
        """
        pairs = [(x, y) for x in self.above for y in self.below if is_norm_of(y, x)]
        if not pairs or self._fills or any(map(self._is_whole, self.below)):
            return None
        x, norm = pairs[0]
        above = [y for y in self.above if not self._is_whole(y)]
        below = [y for y in self.below if y is not norm]
        below += [norm] * (self.below.count(norm) - 1)
        whole = [y for y in self.above if self._is_whole(y) and y is not x]
        whole += [x] * (self.above.count(x) - 1)
        if not any(map(_is_of_rows, [*above, *below])):
            return None
        rest = in_range(above, below)
        rest = scaled(self.number, _quotient(above, below) if rest is None else rest)
        ratio = rest / norm
        outside = call("logical_not", _is_normal(ratio))
        near = x * switch(outside, 1.0, ratio) / switch(outside, norm, 1.0)
        return reduce(mul, [near, switch(outside, rest, 1.0), *whole])

    def over_stretched_square(self) -> Any:
        """Return x (1 / z) (y / z) / w where z^2 is 0 or infinite, else x y / (w z^2), which is
        the product, and y and z are stretched; None for others.
        """
        sides = [[x for x in side if self._is_whole(x)] for side in (self.above, self.below)]
        scales = [x for x in self.below if not self._is_whole(x)]
        if not all(sides) or len(scales) != 1 or self._fills:
            return None
        p = as_product(scales[0])
        z = next((z for z, e in p.factors.items() if e >= 2 and float(e).is_integer()), None)
        above = [x for x in self.above if not self._is_whole(x)]
        if z is None or not above:
            return None
        rest = Product(p.coefficient, {**p.factors, z: p.factors[z] - 1}).times()
        size = call("abs", scales[0])
        inside = call("logical_and", call("gt", size, 0.0), call("lt", size, math.inf))
        first = switch(inside, scaled(self.number, reduce(mul, above)), 1 / z)
        second = switch(inside, 1.0, scaled(self.number, _quotient(above, [rest])))
        below = reduce(mul, [*sides[1], switch(inside, scales[0], 1.0)])
        return reduce(mul, [*sides[0], first, second]) / below

    def _is_whole(self, x: Any) -> bool:
        return (x.dtype, x.type.broadcastable) == self._type

    def filled(self, x: Any) -> Any:
        """Return ``x``, a product, with the shapes that were filled with numbers."""
        return reduce(lambda z, shape: call("second", shape, z), self._fills, x)

    @property
    def count(self) -> int:
        """The number of factors."""
        return len(self.above) + len(self.below)


def is_norm_of(y: Any, x: Any) -> bool:
    """Tell whether ``y`` is the norm of ``x``, stretched, or 1 where that is 0."""
    chosen = elementwise(y, "switch")
    norm, views = through_views(y if chosen is None else chosen.inputs[2])
    node = computed_by(norm, Norm)
    one = chosen is None or number(chosen.inputs[1]) == 1
    if node is None or node.inputs[0] is not x or not one:
        return False
    return puts_back(views, node.op.axes, x.ndim)


def _is_normal(x: Any) -> Any:
    size = call("abs", x)
    return call("logical_and", call("ge", size, 2.0**-1022), call("lt", size, math.inf))


def _is_of_rows(x: Any) -> bool:
    """Tell whether a factor of ``x`` is a norm or another reduction, whose scale is any."""
    parts = [g for f in as_product(x).factors for g in as_product(through_views(f)[0]).factors]
    sources = [through_views(g)[0] for g in parts]
    return any(computed_by(y, kind) is not None for y in sources for kind in (Norm, Reduce))


def is_bounded(x: Any, functions: frozenset[str] = BOUNDED) -> bool:
    while (cast := elementwise(x, "cast", "neg")) is not None:
        x = cast.inputs[0]
    return x.dtype == "bool" or elementwise(x, *functions) is not None


def with_signs(factors: Sequence[Any]) -> list[Any]:
    """Multiply the first other factor by the signs, which is exact and in range."""
    signs = [x for x in factors if is_bounded(x, SIGNS)]
    others = [x for x in factors if not is_bounded(x, SIGNS)]
    if not others:
        return signs
    return [reduce(lambda x, sign: x * sign, signs, others[0]), *others[1:]]


def in_range(above: Sequence[Any], below: Sequence[Any]) -> Any:
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
        found = _of_two(*base) if sum(map(len, base)) == 2 else in_range(*base)
        return _power(found, common)
    if (len(above), len(below)) == (3, 0):
        return call("times_three", *above)
    if (len(above), len(below)) == (2, 1):
        return call("times_over", *above, *below)
    if (len(above), len(below)) == (1, 2):
        return call("over_both", *above, *below)
    return Elemwise(ROWS["scaled_product"](1, len(above), len(below)))(*above, *below)


def _quotient(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """Return the product of some factors over that of others, as it is."""
    if not above:
        return call("reciprocal", reduce(mul, below))
    return reduce(mul, above) / reduce(mul, below) if below else reduce(mul, above)


def _of_two(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """Return x y, or x / y."""
    return above[0] / below[0] if below else above[0] * above[1]


def _power(x: Any, n: int) -> Any:
    """Return x^n, by a row that is not read as a product unless it is a square."""
    if n % 2 == 0:
        return call("sqr", x if n == 2 else _power(x, n // 2))
    return Elemwise(ROWS["scaled_product"](1, n, 0))(*[x] * n)
