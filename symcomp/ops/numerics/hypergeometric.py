"""Derivatives of 2F1(a, b; c; z) in its parameters, of float64 arrays, by the series.

Within about 11 digits of the truth where the terms of the series do not cancel: for z in [-1/2, 1)
and, by Pfaff's transformation, left of it, unless parameters are large and negative. NaN where the
series has not converged after ``MOST_TERMS`` terms, which happens next to 1 and for huge -z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.lazy import lazy_module
from symcomp.ops.numerics.exact import replace

special = lazy_module("scipy.special")

MOST_TERMS = 200_000
SMALLEST_TERM = 2.0**-56


def hyp2f1_slope(a: Any, b: Any, c: Any, z: Any, wrt: int) -> Any:
    """Compute the derivative in a (``wrt`` 0), b (1) or c (2)."""
    found = np.full(z.shape, np.nan)
    known = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & ~((c <= 0) & (c == np.floor(c)))
    near, left = known & (z >= -0.5) & (z < 1), known & (z < -0.5) & (z > -np.inf)
    end = known & (z == 1) & (c > a + b)
    replace(found, near, lambda a, b, c, z: _series(a, b, c, z)[1 + wrt], a, b, c, z)
    replace(found, left, lambda a, b, c, z: _left(a, b, c, z, wrt), a, b, c, z)
    replace(found, end, lambda a, b, c, z: _at_one(a, b, c, wrt), a, b, c, z)
    return found


def _left(a: Any, b: Any, c: Any, z: Any, wrt: int) -> Any:
    """Differentiate (1 - z)^-a 2F1(a, c - b; c; z / (z - 1)), Pfaff's transformation (DLMF 15.8.1).
    """
    value, by_a, by_b, by_c = _series(a, c - b, c, z / (z - 1))
    slope = (by_a - np.log1p(-z) * value, -by_b, by_b + by_c)[wrt]
    return (1 - z) ** -a * slope


def _at_one(a: Any, b: Any, c: Any, wrt: int) -> Any:
    """Differentiate Gauss's gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)) (DLMF 15.4.20).
    """
    psi, value = special.psi, special.hyp2f1(a, b, c, 1.0)
    whole = psi(c - a - b)
    slopes = (
        lambda: psi(c - a) - whole,
        lambda: psi(c - b) - whole,
        lambda: psi(c) + whole - psi(c - a) - psi(c - b),
    )
    return value * slopes[wrt]()


def _series(a: Any, b: Any, c: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """Sum (a)_n (b)_n / (c)_n z^n / n!; return it and its derivatives in a, b and c."""
    terms = np.stack([np.ones_like(z), *(np.zeros_like(z) for _ in range(3))])
    total = terms.copy()
    active, n = np.ones(z.shape, bool), 0
    while active.any() and n < MOST_TERMS:
        step = z / ((c + n) * (n + 1))
        ratio = (a + n) * (b + n) * step
        slopes = ((b + n) * step, (a + n) * step, -ratio / (c + n))
        term = terms[0]
        moved = [t * ratio + term * s for t, s in zip(terms[1:], slopes, strict=True)]
        terms = np.stack([term * ratio, *moved])
        terms = np.where(active, terms, 0)
        total = total + terms
        n += 1
        # While terms grow, a small one does not mean convergence.
        small = np.abs(terms) <= SMALLEST_TERM * np.abs(total)
        active = active & ~(small.all(axis=0) & (np.abs(ratio) < 1))
    total[:, active] = np.nan
    return total[0], total[1], total[2], total[3]
