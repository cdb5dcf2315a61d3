"""Coefficients of Temme's uniform expansion of the incomplete gamma function (DLMF 8.12), which
``incomplete_gamma.h`` differentiates.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

# 2 (t - log(1 + t)) / t^2 in powers of t.
SQUARE_OF_ETA = [2 / (j + 2) * (-1) ** j for j in range(18)]


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
