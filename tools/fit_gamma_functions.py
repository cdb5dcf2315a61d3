"""Print the coefficients in symcomp/codegen/functions/gamma_coefficients.py: polynomials for gamma
functions without their roots, from 1/2 to 5/2.
"""

from __future__ import annotations

import mpmath as mp
from fit_error_functions import fit

LOW, HIGH = mp.mpf("0.5"), mp.mpf("2.5")
CENTRE = mp.sqrt(LOW * HIGH)
REACH = (HIGH - CENTRE) / (HIGH + CENTRE)


def place(t: mp.mpf) -> mp.mpf:
    """x, where t = (x - CENTRE) / (x + CENTRE) / REACH is from -1 to 1."""
    return CENTRE * (1 + REACH * t) / (1 - REACH * t)


def at_one_and_two(f) -> list[float]:
    """Fit f(x) / ((x - 1) (x - 2))."""
    return fit(lambda x: f(x) / ((x - 1) * (x - 2)), place)


def negative_roots(f, slope, bend, guesses) -> list[tuple[float, ...]]:
    """Return each root, its rounding error, f' and f'' / f' / 2 there."""
    roots = [mp.findroot(f, mp.mpf(g)) for g in guesses]
    return [
        (float(r), float(r - float(r)), float(slope(r)), float(bend(r) / slope(r) / 2))
        for r in roots
    ]


def tri_gamma(x: mp.mpf) -> mp.mpf:
    """Compute the derivative of digamma, by a difference with 60 digits."""
    h = mp.mpf(10) ** -25
    return (mp.digamma(x + h) - mp.digamma(x - h)) / (2 * h)


if __name__ == "__main__":
    root = mp.findroot(mp.digamma, mp.mpf("1.4616"))
    print("CENTRE =", float(CENTRE), "REACH =", float(REACH))
    print("PSI_ROOT =", float(root), float(root - float(root)))
    print("LOG_GAMMA =", at_one_and_two(lambda x: mp.log(mp.gamma(x))))
    print("GAMMA =", at_one_and_two(lambda x: mp.gamma(x) - 1))
    print("PSI =", fit(lambda x: mp.digamma(x) / (x - root), place))
    guesses = [-2.457, -2.7477, -3.1436, -3.9553, -4.0392, -4.9915]
    log_gamma = lambda x: mp.re(mp.loggamma(x))  # noqa: E731
    print("LOG_GAMMA_ROOTS =", negative_roots(log_gamma, mp.digamma, tri_gamma, guesses))
    guesses = [-0.504, -1.573, -2.611, -3.635, -4.653, -5.667, -6.678, -7.688, -8.696, -9.703]
    print(
        "PSI_ROOTS =",
        negative_roots(mp.digamma, tri_gamma, lambda x: mp.diff(tri_gamma, x), guesses),
    )
