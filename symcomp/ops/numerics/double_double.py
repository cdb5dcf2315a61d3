"""Double-double arithmetic on arrays: about 31 digits, for functions whose terms cancel.

A number is the unevaluated sum of two floats. Sums and products are the error-free
transformations of Dekker (1971), "A floating-point technique for extending the available
precision", and Knuth (TAOCP 2, 4.2.2); what a step loses is about 2^-104 of its result. Products
and quotients need factors below 2^990, and their errors to be no subnormals. Tables are made when
they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from symcomp.core.record import record
from symcomp.ops.numerics.exact import horner, two_product, two_sum


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """hi + lo, where hi is the sum rounded. Either floats or arrays of one shape."""

    hi: Any
    lo: Any

    # NumPy leaves ``array + pair`` to __radd__.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Pair:
        if not isinstance(other, Pair):
            high, error = two_sum(self.hi, other)
            return Pair(*quick_two_sum(high, error + self.lo))
        high, error = two_sum(self.hi, other.hi)
        low, rest = two_sum(self.lo, other.lo)
        high, error = quick_two_sum(high, error + low)
        return Pair(*quick_two_sum(high, error + rest))

    def __mul__(self, other: Any) -> Pair:
        if not isinstance(other, Pair):
            high, error = two_product(self.hi, other)
            return Pair(*quick_two_sum(high, error + self.lo * other))
        high, error = two_product(self.hi, other.hi)
        return Pair(*quick_two_sum(high, error + (self.hi * other.lo + self.lo * other.hi)))

    def __truediv__(self, other: Any) -> Pair:
        divisor = other if isinstance(other, Pair) else Pair(other, 0.0)
        first = self.hi / divisor.hi
        rest = self - divisor * first
        second = rest.hi / divisor.hi
        rest = rest - divisor * second
        return Pair(*quick_two_sum(first, second)) + rest.hi / divisor.hi

    def __neg__(self) -> Pair:
        return Pair(-self.hi, -self.lo)

    def __sub__(self, other: Any) -> Pair:
        return self + -other

    def __rsub__(self, other: Any) -> Pair:
        return -self + other

    def __rtruediv__(self, other: Any) -> Pair:
        return Pair(other, 0.0) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Pair:
        return Pair(self.hi[index], self.lo[index])

    def __setitem__(self, index: Any, value: Pair) -> None:
        self.hi[index], self.lo[index] = value.hi, value.lo

    def scaled(self, exponent: Any) -> Pair:
        """Return self * 2 ** exponent."""
        return Pair(np.ldexp(self.hi, exponent), np.ldexp(self.lo, exponent))


def quick_two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Compute ``two_sum`` where abs(x) >= abs(y) or x is 0."""
    total = x + y
    return total, y - (total - x)


def exact(number: Fraction | Decimal | str) -> Pair:
    """Return the pair nearest to a number."""
    value = Fraction(number)
    high = float(value)
    return Pair(np.float64(high), np.float64(value - Fraction(high)))


def pair(x: Any) -> Pair:
    """Return a float array as a pair."""
    return Pair(x, np.zeros_like(x))


def sum_of(x: Any, y: Any) -> Pair:
    """Return the exact sum of two float arrays."""
    return Pair(*two_sum(x, y))


def where(condition: Any, x: Pair, y: Pair) -> Pair:
    """Apply ``np.where`` to both parts."""
    return Pair(np.where(condition, x.hi, y.hi), np.where(condition, x.lo, y.lo))


def absolute(x: Pair) -> Pair:
    """Compute ``np.abs``."""
    return where(x.hi < 0, -x, x)


@record
class Series:
    """A polynomial with rational coefficients: the first, of large terms, as pairs."""

    coefficients: Callable[[], Sequence[Fraction]]
    pairs: int

    @cached_property
    def parts(self) -> tuple[list[Pair], list[float]]:
        """The coefficients kept as pairs, and the others."""
        numbers = self.coefficients()
        return [exact(c) for c in numbers[: self.pairs]], [float(c) for c in numbers[self.pairs :]]

    def __call__(self, x: Pair) -> Pair:
        first, rest = self.parts
        total = pair(horner(rest, x.hi) + np.zeros_like(x.hi))
        for term in reversed(first):
            total = total * x + term
        return total


def _decimal_table(function: str, numbers: Sequence[Fraction]) -> Pair:
    """Apply ``function``, a method of Decimal, to each number."""
    with localcontext(prec=45):
        values = [
            exact(getattr(Decimal(n.numerator) / Decimal(n.denominator), function)())
            for n in numbers
        ]
    return Pair(np.array([v.hi for v in values]), np.array([v.lo for v in values]))


PI = exact("3.14159265358979323846264338327950288419716940")
LN2 = exact("0.693147180559945309417232121458176568075500134")
LN_PI = exact("1.14472988584940017414342735135305871164729481")

# ----- logarithm and exponential

# 2 atanh(s) / (2 s) in powers of s^2, for abs(s) < 1/80.
ATANH = Series(lambda: [Fraction(1, 2 * k + 1) for k in range(10)], 5)
EXPONENTIAL = Series(lambda: [Fraction(1, math.factorial(k)) for k in range(11)], 5)
LOG_FIRST, LOG_LAST = 22, 46
EXP_RANGE = 23


@cache
def _logarithms() -> Pair:
    return _decimal_table("ln", [Fraction(k, 32) for k in range(LOG_FIRST, LOG_LAST + 1)])


@cache
def _exponentials() -> Pair:
    return _decimal_table("exp", [Fraction(k, 64) for k in range(-EXP_RANGE, EXP_RANGE + 1)])


def log(x: Pair, exponent: Any = 0) -> Pair:
    """Return the logarithm of x 2^exponent, to full relative precision near x = 1; NaN where x is
    not finite and positive.
    """
    fine = (x.hi > 0) & (x.hi < np.inf)
    x = where(fine, x, pair(np.ones_like(x.hi)))
    mantissa, power = np.frexp(x.hi)
    below = mantissa < np.sqrt(0.5)
    mantissa = np.where(below, 2 * mantissa, mantissa)
    power = power - below
    low = np.ldexp(x.lo, -power)
    nearest = np.rint(mantissa * 32)
    center = nearest / 32
    numerator = Pair(*quick_two_sum(mantissa - center, low))
    ratio = numerator / (sum_of(mantissa, center) + low)
    result = 2 * (ratio * ATANH(ratio * ratio))
    index = nearest.astype(int) - LOG_FIRST
    result = LN2 * (power + exponent).astype(np.float64) + _logarithms()[index] + result
    return where(fine, result, pair(np.full_like(x.hi, np.nan)))


def log1p_ratio(x: Pair, y: Pair, z: Pair) -> Pair:
    """Compute log(1 + z) / z for z = (x - y) / y, where x and y are positive."""
    small = np.abs(z.hi) < 1 / 64
    safe = where(small, pair(np.ones_like(z.hi)), z)
    quotient = where(small, pair(np.ones_like(z.hi)), x / y)
    close = where(small, z, pair(np.zeros_like(z.hi)))
    half = close / (close + 2)
    return where(small, 2 * (ATANH(half * half) / (close + 2)), log(quotient) / safe)


def exp(x: Pair) -> Any:
    """Return the exponential, rounded to a float, of a pair whose error is absolute."""
    unknown = np.isnan(x.hi)
    x = where(np.abs(x.hi) > 2000, pair(np.copysign(2000, x.hi)), x)
    x = where(unknown, pair(np.zeros_like(x.hi)), x)
    power = np.rint(x.hi / LN2.hi)
    rest = x - LN2 * power
    index = np.rint(rest.hi * 64)
    value = _exponentials()[index.astype(int) + EXP_RANGE] * EXPONENTIAL(rest - index / 64)
    return np.where(unknown, np.nan, np.ldexp(value.hi, power.astype(int)))


# ----- sine and cosine of multiples of pi, abs(angle) <= pi / 4

SINE = Series(lambda: [Fraction((-1) ** k, math.factorial(2 * k + 1)) for k in range(15)], 9)
COSINE = Series(lambda: [Fraction((-1) ** k, math.factorial(2 * k)) for k in range(15)], 9)


def sin_cos_pi(x: Pair) -> tuple[Pair, Pair]:
    """Compute sin(pi x) and cos(pi x), to full relative precision near the zeros of the sine."""
    whole = np.rint(x.hi)
    more = np.rint((x - whole).hi)
    fraction = x - whole - more
    size = absolute(fraction)
    steep = size.hi > 0.25
    angle = PI * where(steep, 0.5 - size, size)
    square = angle * angle
    sine, cosine = angle * SINE(square), COSINE(square)
    sine, cosine = where(steep, cosine, sine), where(steep, sine, cosine)
    odd = (np.mod(whole, 2) != 0) != (np.mod(more, 2) != 0)
    return (
        where((fraction.hi < 0) != odd, -sine, sine),
        where(odd, -cosine, cosine),
    )
