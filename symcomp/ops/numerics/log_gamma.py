"""The logarithm of the gamma function, its differences, and psi, in double-double arithmetic.

For x >= 16, Stirling's series (DLMF 5.11.1, 5.11.2); smaller x are moved there by the recurrence
(5.5.1, 5.5.2), negative ones by reflection (5.5.3, 5.5.4); about 1 and 2, where log gamma(x)
vanishes, the Taylor series (5.7.3). Errors are absolute, about 1e-31 times the largest term.
All arguments are finite and no poles.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from symcomp.ops.numerics.double_double import (
    LN2,
    LN_PI,
    PI,
    Pair,
    Series,
    absolute,
    exact,
    log,
    log1p_ratio,
    pair,
    sin_cos_pi,
    where,
)

STIRLING_FROM = 16
# From this size on, 1 / x is negligible beside log(x), and below its inverse log gamma(x) is
# -log(x).
HUGE = 2.0**200
# From this size on, a sum of logarithms is log gamma to the last bit: the other terms are
# negligible.
VAST = 2.0**133

EULER = exact("0.577215664901532860606512090082402431042159")
# zeta(k) - 1 for k = 2, 3, ...
ZETA_TAILS = (
    "6.44934066848226436472415166646025189e-1", "2.02056903159594285399738161511449991e-1",
    "8.23232337111381915160036965411679028e-2", "3.69277551433699263313654864570341681e-2",
    "1.73430619844491397145179297909205279e-2", "8.34927738192282683979754984979675960e-3",
    "4.07735619794433937868523850865246526e-3", "2.00839282608221441785276923241206049e-3",
    "9.94575127818085337145958900319017006e-4", "4.94188604119464558702282526469936469e-4",
    "2.46086553308048298637998047739670960e-4", "1.22713347578489146751836526357395714e-4",
    "6.12481350587048292585451051353337475e-5", "3.05882363070204935517285106450625876e-5",
    "1.52822594086518717325714876367220232e-5", "7.63719763789976227360029356302921309e-6",
    "3.81729326499983985646164462193973045e-6", "1.90821271655393892565695779510135326e-6",
    "9.53962033872796113152038683449345944e-7", "4.76932986787806463116719604373045966e-7",
    "2.38450502727732990003648186752994935e-7", "1.19219925965311073067788718882326387e-7",
    "5.96081890512594796124402079358012275e-8", "2.98035035146522801860637050693660118e-8",
    "1.49015548283650412346585066306986289e-8",
)  # fmt: skip


def _taylor() -> list[Fraction]:
    """Return the coefficients of log gamma(2 + t) / t in powers of t: 1 - EULER, then (-1)^k
    (zeta(k) - 1) / k.
    """
    tails = [Fraction(z) for z in ZETA_TAILS]
    for k in range(len(tails) + 2, 56):
        tails.append(sum((Fraction(1, n**k) for n in range(2, 7)), Fraction(0)))
    terms = [z / k * (-1) ** k for k, z in enumerate(tails, 2)]
    first = Fraction(1) - Fraction(EULER.hi) - Fraction(EULER.lo)
    return [first, *terms]


def _bernoulli(count: int) -> list[Fraction]:
    """Return B2, B4, ... (DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        binomial, total = 1, Fraction(0)
        for k in range(n):
            total += binomial * numbers[k]
            binomial = binomial * (n + 1 - k) // (k + 1)
        numbers.append(-total / (n + 1))
    return numbers[2::2]


TAYLOR = Series(_taylor, len(ZETA_TAILS) + 1)
STIRLING = Series(lambda: [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(20), 1)], 7)
STIRLING_PSI = Series(lambda: [b / (2 * k) for k, b in enumerate(_bernoulli(20), 1)], 7)
HALF_LOG_2PI = (LN2 + LN_PI) * 0.5


def log_gamma(x: Pair) -> Pair:
    """Compute log(abs(gamma(x))), to full relative precision near its zeros 1 and 2."""
    return _by_range(
        x,
        (x.hi < -0.5, _reflected),
        (x.hi < 2.5, _log_gamma_near_two),
        (x.hi < np.inf, _log_gamma_above),
    )


def psi(x: Pair) -> Pair:
    """Compute the derivative of log_gamma."""
    return _by_range(x, (x.hi < 0, _psi_reflected), (x.hi < np.inf, _psi_above))


def _by_range(x: Pair, *ranges: Any) -> Pair:
    """Apply to each element the function of the first range that contains it."""
    result = pair(np.full_like(x.hi, np.nan))
    left = np.ones(x.hi.shape, bool)
    for condition, function in ranges:
        chosen = left & condition
        left &= ~condition
        if chosen.any():
            result[chosen] = function(x[chosen])
    return result


def _reflected(x: Pair) -> Pair:
    sine, _ = sin_cos_pi(x)
    return LN_PI - log(absolute(sine)) - log_gamma(1 - x)


def _log_gamma_near_two(x: Pair) -> Pair:
    """Compute it from -1/2 to 5/2: gamma(x) = gamma(x + n) / (x (x + 1)), with n factors."""
    tiny = np.abs(x.hi) < 1 / HUGE
    exponent = np.where(tiny, -1000, 0)
    factor = x.scaled(-exponent)
    factor = absolute(factor)
    factor = where(x.hi < 0.5, factor * (x + 1), factor)
    product = where(x.hi < 1.5, factor, pair(np.ones_like(x.hi)))
    t = x + ((x.hi < 1.5).astype(float) + (x.hi < 0.5) - 2)
    return t * TAYLOR(t) - log(product, np.where(x.hi < 1.5, exponent, 0))


def _log_gamma_above(x: Pair) -> Pair:
    scale = np.where(x.hi > HUGE, -200, 0)
    moved, product, exponent = _raised(x)
    logarithm = log(moved)
    main = moved.scaled(scale) * (logarithm - 1)
    small = HALF_LOG_2PI - logarithm * 0.5 + _stirling(moved) - log(product, exponent)
    return (main + small.scaled(scale)).scaled(-scale)


def _stirling(x: Pair) -> Pair:
    """Compute log gamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2."""
    inverse = 1 / where(x.hi > HUGE, pair(np.full_like(x.hi, HUGE)), x)
    return inverse * STIRLING(inverse * inverse)


def _raised(x: Pair) -> tuple[Pair, Pair, Any]:
    """Return x + n >= 16, and x (x + 1) ... (x + n - 1) as a pair and an exponent of 2; x > 0."""
    count = np.maximum(np.ceil(STIRLING_FROM - x.hi), 0)
    tiny = (x.hi < 1 / HUGE).astype(int)
    product = where(count > 0, x.scaled(tiny * 1000), pair(np.ones_like(x.hi)))
    for k in range(1, int(count.max(initial=0))):
        product = where(k < count, product * (x + float(k)), product)
    return x + count, product, -1000 * tiny


def log_gamma_difference(x: Pair, y: Pair, difference: Pair) -> Pair:
    """Compute log gamma(x) - log gamma(y) for x, y > 0 and their difference, which is less than
    2^500.

    Large terms do not cancel: with z = (x - y) / y, Stirling's series give (x - y) (log(x) - 1 +
    log(1 + z) / z) - log(1 + z) / 2 + ...
    """
    x, product_x, exponent_x = _raised(x)
    y, product_y, exponent_y = _raised(y)
    difference = difference + _moved_apart(x, y, difference)
    scale = np.where(y.hi > HUGE, -700, 0)
    divisor = y.scaled(scale)
    z = difference.scaled(scale) / divisor
    ratio = log1p_ratio(x.scaled(scale), divisor, z)
    main = difference * (log(x) - 1 + ratio) - z * ratio * 0.5
    raised = log(product_y, exponent_y) - log(product_x, exponent_x)
    return main + raised + (_stirling(x) - _stirling(y))


def _moved_apart(x: Pair, y: Pair, difference: Pair) -> Any:
    """Return how much further the recurrence moved x than y: a small integer."""
    return np.where(
        np.minimum(x.hi, y.hi) < 2 * STIRLING_FROM + 1, np.rint((x - y - difference).hi), 0.0
    )


def _psi_reflected(x: Pair) -> Pair:
    sine, cosine = sin_cos_pi(x)
    return psi(1 - x) - PI * (cosine / sine)


def _psi_above(x: Pair) -> Pair:
    count = np.maximum(np.ceil(STIRLING_FROM - x.hi), 0)
    numerator, denominator = pair(np.zeros_like(x.hi)), pair(np.ones_like(x.hi))
    for k in range(int(count.max(initial=0))):
        term = x + float(k)
        numerator = where(k < count, numerator * term + denominator, numerator)
        denominator = where(k < count, denominator * term, denominator)
    moved = x + count
    inverse = 1 / where(moved.hi > HUGE, pair(np.full_like(x.hi, HUGE)), moved)
    square = inverse * inverse
    series = square * STIRLING_PSI(square) + inverse * 0.5
    return log(moved) - series - numerator / denominator
