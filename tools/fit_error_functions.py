"""Print the coefficients in symcomp/codegen/functions/error_tables.py: polynomials for smooth
multiples of error functions, fitted at Chebyshev's nodes in 60 digits.
"""

from __future__ import annotations

import mpmath as mp

mp.mp.dps = 60
NODES, CENTRE = 60, 4


def scaled_erfc(x: mp.mpf) -> mp.mpf:
    """exp(x^2) erfc(x); from 10^4 on by its asymptotic series (DLMF 7.12.1)."""
    if x > 1e4:
        terms = ((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(10))
        return mp.fsum(terms) / (mp.sqrt(mp.pi) * x)
    with mp.workdps(90):
        return mp.exp(x * x) * mp.erfc(x)


def its_integral(x: mp.mpf) -> mp.mpf:
    """1 / sqrt(pi) - x exp(x^2) erfc(x); the series is without the first term."""
    if x > 1e4:
        terms = ((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(1, 10))
        return -mp.fsum(terms) / mp.sqrt(mp.pi)
    with mp.workdps(90):
        return 1 / mp.sqrt(mp.pi) - x * mp.exp(x * x) * mp.erfc(x)


def slope_of_product(x: mp.mpf) -> mp.mpf:
    """Return the derivative of x exp(x^2) erfc(x), in whose series the first terms cancel."""
    if x > 1e4:
        terms = ((-1) ** k * mp.fac2(2 * k - 1) * 2 * k / (2 * x * x) ** k for k in range(1, 10))
        return -mp.fsum(terms) / (mp.sqrt(mp.pi) * x)
    with mp.workdps(90):
        return scaled_erfc(x) - 2 * x * its_integral(x)


def fit(f, x_of) -> list[float]:
    """Coefficients of the least polynomial in t that is right to 2^-58; ``x_of(t)`` is x."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / NODES for k in range(NODES)]
    values = [f(x_of(mp.cos(a))) for a in angles]
    c = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / NODES
        for j in range(NODES)
    ]
    c[0] /= 2
    degree = next(d for d in range(NODES) if mp.fsum(map(abs, c[d + 1 :])) < mp.mpf(2) ** -58)
    return [float(x) for x in monomials(c[: degree + 1])]


def monomials(chebyshev: list[mp.mpf]) -> list[mp.mpf]:
    """Convert a series of Chebyshev's polynomials to the coefficients of powers of t."""
    last, this = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    result = [mp.mpf(0)] * len(chebyshev)
    for j, c in enumerate(chebyshev):
        polynomial = last if j == 0 else this
        for i, a in enumerate(polynomial):
            result[i] += c * a
        if j:
            following = [mp.mpf(0)] + [2 * a for a in this]
            for i, a in enumerate(last):
                following[i] -= a
            last, this = this, following
    return result


def from_half_line(t: mp.mpf) -> mp.mpf:
    """x >= 0, where t = (x - 4) / (x + 4)."""
    return CENTRE * (1 + t) / (1 - t)


if __name__ == "__main__":
    print("ERFCX =", fit(lambda x: (1 + 2 * x) * scaled_erfc(x), from_half_line))
    print("IERFCX =", fit(lambda x: (1 + x) ** 2 * its_integral(x), from_half_line))
    print("XERFCX_SLOPE =", fit(lambda x: (1 + x) ** 3 * slope_of_product(x), from_half_line))
    print("ERF =", fit(lambda x: mp.erf(x) / x, lambda t: mp.sqrt((t + 1) / 2)))
