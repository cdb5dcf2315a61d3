"""Derivative of the regularized incomplete gamma function in its shape, of float64 arrays.

Within about 13 digits of the truth. For x > k, 1 - gammainc is differentiated, whose terms do not
cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from symcomp.ops.numerics.double_double import exp, log, pair, sum_of
from symcomp.ops.numerics.exact import horner
from symcomp.ops.numerics.gamma_values import VAST, psi, replace
from symcomp.ops.numerics.log_gamma import log_gamma

# Temme's expansion is used for k from LARGE on where abs(x / k - 1) is below CLOSE.
LARGE, CLOSE = 1e4, 0.1
# The derivative is 0 if an argument is larger and the two are not close.
ALL = 1e12
# 2 (t - log(1 + t)) / t^2 in powers of t.
SQUARE_OF_ETA = [2 / (j + 2) * (-1) ** j for j in range(18)]


def gammainc_der(k: Any, x: Any) -> Any:
    """d gammainc(k, x) / dk; at k = 0 that from above."""
    z = np.where((k >= 0) & (x >= 0) & ~(np.isinf(k) & np.isinf(x)), 0.0, np.nan)
    z[(k == 0) & (x == 0)] = np.nan
    inside = (k >= 0) & (x > 0) & np.isfinite(k) & np.isfinite(x)
    close = inside & (k >= LARGE) & (k <= VAST) & (np.abs(x - k) <= CLOSE * k)
    left = inside & ~close & (np.maximum(k, x) <= ALL)
    right = left & (x > np.maximum(k, 1))
    replace(z, inside & (k > VAST) & (x == k), lambda k: -((2 * np.pi) ** -0.5) / np.sqrt(k), k)
    replace(z, close, _by_expansion, k, x)
    replace(z, left & ~right, _by_series, k, x)
    replace(z, right, _by_fraction, k, x)
    return z


def _density(k: Any, x: Any) -> Any:
    """x^k exp(-x) / gamma(k + 1)."""
    return exp(log(pair(x)) * k - pair(x) - log_gamma(sum_of(k, 1.0)))


def _by_series(k: Any, x: Any) -> Any:
    """Sum DLMF 8.7.1 for x < k + 1: x^m / (k + 1) ... (k + m) times log(x) - psi(k + m + 1)."""
    slope = np.log(x) - psi(k + 1)
    total, term, m = slope.copy(), np.ones_like(x), 0
    while (term * (np.abs(slope) + 1 / (k + 1 + m)) > 2**-60 * np.abs(total)).any():
        m += 1
        term = term * x / (k + m)
        slope = slope - 1 / (k + m)
        total = total + term * slope
    return _density(k, x) * total


def _by_fraction(k: Any, x: Any) -> Any:
    """Evaluate Legendre's continued fraction for x > k (DLMF 8.9.2), by Lentz's method, with the
    derivatives of its steps in k.
    """
    b = x + 1 - k
    c, d, value = np.full_like(x, np.inf), 1 / b, 1 / b
    c_slope, d_slope = np.zeros_like(x), d * d
    relative, active, j = d.copy(), np.ones(x.shape, bool), 0
    while active.any():
        j += 1
        b, a = b + 2, j * (k - j)
        c_slope = (j - a * c_slope / c) / c - 1
        d_slope = j * d + a * d_slope - 1
        c, d = b + a / c, 1 / (b + a * d)
        d_slope = -d_slope * d * d
        change = np.where(active, c_slope / c + d_slope / d, 0)
        value, relative = np.where(active, value * (c * d), value), relative + change
        active = np.abs(change) > 2**-58 * np.abs(relative)
    return -_density(k, x) * value * (k * (np.log(x) - psi(k + 1) + relative) + 1)


@cache
def temme_coefficients() -> list[list[float]]:
    """Compute the first functions C(eta) of DLMF 8.12.9 and 8.12.10, as polynomials."""
    count = 22
    # x / k - 1 in powers of eta; the inverse series; and from it each C by the previous one.
    a = [Fraction(0), Fraction(1)]
    for n in range(2, count):
        known = sum((a[i] * a[n + 1 - i] for i in range(2, n)), Fraction(0))
        a.append(a[n - 1] / (n + 1) - known / 2)
    inverse = [Fraction(1)]
    for n in range(1, count - 1):
        inverse.append(-sum((a[i + 1] * inverse[n - i] for i in range(1, n + 1)), Fraction(0)))
    functions = [inverse[1:]]
    for _ in range(3):
        last = functions[-1]
        functions.append(
            [(j + 2) * last[j + 2] - last[1] * inverse[j + 1] for j in range(len(last) - 2)]
        )
    return [[float(c) for c in f[: 12 - 2 * n]] for n, f in enumerate(functions)]


def slopes(coefficients: Sequence[float]) -> list[float]:
    """Return the derivative of a polynomial."""
    return [j * c for j, c in enumerate(coefficients)][1:]


def _by_expansion(k: Any, x: Any) -> Any:
    """Differentiate Temme's uniform expansion (DLMF 8.12.4, 8.12.7)."""
    gap = (x - k) / k
    # eta / gap, and log(x / k) / gap.
    root = np.sqrt(horner(SQUARE_OF_ETA, gap))
    logarithm = np.log1p(gap)
    eta, ratio = gap * root, np.where(gap == 0, 1, logarithm / np.where(gap == 0, 1, gap))
    total = ratio / root
    for n, coefficients in enumerate(temme_coefficients()):
        part = horner(coefficients, eta) * (logarithm - (n + 0.5) / k)
        total = total + (part - horner(slopes(coefficients), eta) / root / k) / k**n
    q = log(pair(x) / pair(k)) * k - sum_of(x, -k)
    return -exp(q) / np.sqrt(2 * np.pi * k) * total
