"""Write the tables of ``series_remainders.h``: the coefficients of Taylor series at 0."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import count, islice
from math import comb, factorial

from symcomp.ops.elementwise.series_remainder import FUNCTIONS

# The exponents that the longest series need: at the highest orders, the most terms subtracted.
LENGTH, LENGTH_OF_ERF = 136, 192
# Bits of the coefficients of the tangent, the last of which are about 2^-90.
BITS = 320
TWO_OVER_ROOT_OF_PI = Fraction("1.128379167095512573896158903121545171688")
_ROUNDED = Context(prec=25)


def coefficients(name: str) -> Iterator[Fraction]:
    """Yield the coefficients of the exponents that ``steps_of`` tells."""
    if name in ("tan", "tanh"):
        yield from _tangent(-1 if name == "tanh" else 1)
    else:
        yield from (_coefficient(name, k) for k in count())


def _coefficient(name: str, k: int) -> Fraction:
    odd, sign = 2 * k + 1, (-1) ** k
    match name:
        case "exp":
            return Fraction(1, factorial(k))
        case "log1p":
            return Fraction(-sign, k) if k else Fraction(0)
        case "sin" | "sinh":
            return Fraction(sign if name == "sin" else 1, factorial(odd))
        case "cos" | "cosh":
            return Fraction(sign if name == "cos" else 1, factorial(2 * k))
        case "arctan" | "arctanh":
            return Fraction(sign if name == "arctan" else 1, odd)
        case "arcsin" | "arcsinh":
            size = Fraction(comb(2 * k, k), 4**k * odd)
            return size if name == "arcsin" else sign * size
        case _:
            return TWO_OVER_ROOT_OF_PI * sign / (factorial(k) * odd)


def _tangent(sign: int) -> Iterator[Fraction]:
    """Yield the coefficients of the function whose derivative is 1 + sign times its square."""
    found = [1 << BITS]
    while True:
        yield Fraction(found[-1], 1 << BITS)
        squares = sum(x * y for x, y in zip(found, reversed(found), strict=True)) >> BITS
        found.append(sign * squares // (2 * len(found) + 1))


def steps_of(name: str) -> tuple[int, int]:
    """Return the exponent of the first coefficient of a table, and the step to the next."""
    if name in ("exp", "log1p"):
        return 0, 1
    return int(name not in ("cos", "cosh")), 2


@cache
def series_tables() -> str:
    """Return the tables as C: the coefficients, and the place of each function's first."""
    numbers: list[str] = []
    starts = []
    for name in FUNCTIONS:
        starts.append(len(numbers))
        length = LENGTH_OF_ERF if name == "erf" else LENGTH
        numbers += map(_literal, islice(coefficients(name), length // steps_of(name)[1]))
    table = ",\n    ".join(numbers)
    places = ", ".join(map(str, starts))
    return (
        f"TABLE WIDER SERIES_COEFFICIENTS[] = {{\n    {table}}};\n"
        f"TABLE short SERIES_STARTS[] = {{{places}}};\n"
    )


def _literal(x: Fraction) -> str:
    quotient = _ROUNDED.divide(Decimal(x.numerator), Decimal(x.denominator))
    return f"WIDE_NUMBER({quotient:.24e})"
