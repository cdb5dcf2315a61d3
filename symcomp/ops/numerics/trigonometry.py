"""Sine, cosine and tangent of arrays, to the last digits for angles of any size.

C libraries reduce large angles inexactly: near multiples of pi/2 their results lose digits. From
``LARGE`` on, quarter turns are subtracted by a product with 2/pi, exact in the bits that affect the
result: M. Payne and R. Hanek (1983), "Radian reduction for trigonometric functions". The remainder
is a pair of floats. ``angles.h`` does the same, operation by operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from symcomp.ops.numerics.exact import two_product

# Smaller angles: the C library is right to 1 ulp.
LARGE = 2.0**26
# Bits of 2/pi: leading zeros of the table; length of the table; bits multiplied; bits kept of the
# product, two of which are quarter turns.
ZEROS, TABLE, WINDOW, KEPT = 64, 1280, 192, 128
FRACTION = KEPT - 2
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17

Pair = tuple[Any, Any]


@cache
def two_over_pi() -> int:
    """Return 2/pi with ``TABLE`` bits, the first ``ZEROS`` of which are zeros."""
    guarded = TABLE + 64
    # Machin's formula.
    quarter = 4 * _arctan_of_inverse(5, guarded) - _arctan_of_inverse(239, guarded)
    return (1 << (guarded + TABLE - ZEROS)) // (2 * quarter)


def _arctan_of_inverse(n: int, bits: int) -> int:
    total, power, k = 0, (1 << bits) // n, 0
    while power:
        total += (-power if k % 2 else power) // (2 * k + 1)
        power //= n * n
        k += 1
    return total


def reduced(x: Any) -> tuple[Any, Pair]:
    """Reduce positive large angles to quarter turns, modulo 4, and a remainder of at most half a
    turn of these.
    """
    quarters, high, low = zip(*map(_reduced, x.tolist()), strict=True)
    a, b = np.array(high) * 2.0**-FRACTION, np.array(low) * 2.0**-FRACTION
    p, e = two_product(a, np.float64(HALF_PI))
    e = e + (a * HALF_PI_LOW + b * HALF_PI)
    return np.array(quarters), _quick_sum(p, e)


def _reduced(x: float) -> tuple[int, float, float]:
    mantissa, exponent = math.frexp(x)
    # Earlier bits of 2/pi give multiples of four quarter turns.
    place = exponent - 53 + ZEROS - 2
    window = two_over_pi() >> (TABLE - WINDOW - place) & ((1 << WINDOW) - 1)
    turns = (int(math.ldexp(mantissa, 53)) * window & ((1 << WINDOW) - 1)) >> (WINDOW - KEPT)
    quarters = turns + (1 << (FRACTION - 1)) >> FRACTION
    rest = turns - (quarters << FRACTION)
    high = float(rest)
    return quarters % 4, high, float(rest - int(high))


def _quick_sum(x: Any, y: Any) -> Pair:
    total = x + y
    return total, y - (total - x)


def _where(condition: Any, x: Pair, y: Pair) -> Pair:
    return np.where(condition, x[0], y[0]), np.where(condition, x[1], y[1])


def _sine_of_rest(angle: Pair) -> Pair:
    """Compute the sine by its power series; the first term is exact and the others are small."""
    a, b = angle
    square, series = a * a, 0.0
    for n in range(17, 1, -2):
        series = (1 + series) * -square / (n * (n - 1))
    return _quick_sum(a, a * series + b * (1 - square / 2))


def _cosine_of_rest(angle: Pair) -> Pair:
    a, b = angle
    square, e = two_product(a, a)
    series, half = 0.0, square / 2
    for n in range(18, 2, -2):
        series = (1 + series) * -square / (n * (n - 1))
    near = 1 - half
    return _quick_sum(near, ((1 - near) - half) - (half * series + (e / 2 + a * b)))


def _parts(x: Any) -> tuple[Any, Pair, Pair]:
    quarters, angle = reduced(np.abs(x))
    return quarters, _sine_of_rest(angle), _cosine_of_rest(angle)


def _sine_of_large(x: Any, turns: int) -> Any:
    """Compute the sine of the absolute value of large angles plus ``turns`` quarter turns."""
    quarters, sine, cosine = _parts(x)
    quarters = (quarters + turns) % 4
    z: Any = np.where(quarters % 2 == 1, cosine[0], sine[0])
    return np.where(quarters >= 2, -z, z)


def _sin_of_large(x: Any) -> Any:
    z = _sine_of_large(x, 0)
    return np.where(x < 0, -z, z)


def _cos_of_large(x: Any) -> Any:
    return _sine_of_large(x, 1)


def _tan_of_large(x: Any) -> Any:
    quarters, sine, cosine = _parts(x)
    odd = quarters % 2 == 1
    (a, b), (c, d) = _where(odd, cosine, sine), _where(odd, sine, cosine)
    z = a / c
    p, e = two_product(z, c)
    z = z + (((a - p) - e) + (b - z * d)) / c
    return np.where(odd != (x < 0), -z, z)


@cache
def _in_double(dtype: np.dtype) -> bool:
    """Tell whether functions of such numbers are computed in float64."""
    return bool(np.result_type(dtype, np.float32) == np.float64)


def _of_any_size(ufunc: np.ufunc, of_large: Callable[[Any], Any]) -> Callable[..., Any]:
    """Wrap ``ufunc`` to call ``of_large`` for large float64; the result is written ``into`` an
    array, if given, which may be the argument.
    """

    def compute(x: Any, into: Any = None) -> Any:
        # Comparing both bounds is faster than an array of absolute values. NaN fails both
        # comparisons.
        if not _in_double(x.dtype) or (
            np.maximum.reduce(x, axis=None, initial=0) < LARGE
            and np.minimum.reduce(x, axis=None, initial=0) > -LARGE
        ):
            return ufunc(x, into)
        sizes = np.abs(x, dtype=np.float64)
        large = (sizes >= LARGE) & (sizes < np.inf)
        found = of_large(x[large].astype(np.float64)) if large.any() else ()
        z = np.asarray(ufunc(x, into))
        z[large] = found
        return z

    return compute


sin = _of_any_size(np.sin, _sin_of_large)
cos = _of_any_size(np.cos, _cos_of_large)
tan = _of_any_size(np.tan, _tan_of_large)
