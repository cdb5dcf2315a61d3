"""The table of scalar functions, continued: error functions and the normal distribution (DLMF 7).

SciPy's functions lose digits where they decay, as their exponents are rounded; here all follow from
scaled functions that vary slowly, and from exp(-x^2) with its exponent kept exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.ops.elementwise.elemwise import real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import gt, switch
from symcomp.ops.numerics.exact import exp_square, horner, in_float

SQRT_PI = float(np.sqrt(np.pi))
SQRT_2PI = float(np.sqrt(2 * np.pi))
SQRT_HALF = float(np.sqrt(0.5))
SLOPE = 2 / SQRT_PI

# exp(x^2) erfc(x) (1 + 2 x) and (1 / sqrt(pi) - x exp(x^2) erfc(x)) (1 + x)^2 as polynomials in
# (x - 4) / (x + 4), and erf(x) / x as one in 2 x^2 - 1 for x <= 1, to 2^-58
# (tools/fit_error_functions.py).
_ERFCX = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102619604, 0.0680970542546904,
    -0.10103906603630056, 0.09373283499843826, -0.06633036581218697, 0.03716751553592911,
    -0.016197734059799265, 0.005031969992669933, -0.0007577732613730956, -0.0001992567757633648,
    0.0001506214900124047, -2.4398944545280832e-05, -1.1221287012353486e-05, 5.709206053072183e-06,
    2.919733377963012e-07, -8.249198427508354e-07, 7.746992727017941e-08, 1.1009737295274889e-07,
    -2.05606492756992e-08, -1.4709550868669278e-08, 3.1695881915648173e-09, 1.7903326159489847e-09,
    -2.659599690242689e-10, -1.374652989001164e-10,
)  # fmt: skip
_IERFCX = (
    0.40479382618776816, -0.1977464051942559, 0.09548549725274018, -0.0031292786038497906,
    -0.04700895512965901, 0.05303996761265429, -0.03414299462987313, 0.012189180605192232,
    0.0009068039413478901, -0.004445894360566457, 0.0030960885648099097, -0.0010836931494957352,
    5.745947354967959e-05, 0.0001342326548475507, -5.3789521408293294e-05, -4.588100989085226e-06,
    9.397626941950572e-06, -1.2343551826880282e-06, -1.2985784096114177e-06, 3.818378450373669e-07,
    1.7344385077005071e-07, -7.491690424176702e-08, -2.3717793309779925e-08, 1.099938496895545e-08,
    2.9813141649557936e-09, -9.156192615475479e-10, -2.343621595820857e-10,
)  # fmt: skip
_ERF = (
    0.9654687386698673, -0.1405360890227171, 0.019852496688983708, -0.0022854855611441132,
    0.00021751715604160108, -1.7537169441124826e-05, 1.223382738352401e-06, -7.51156928660089e-08,
    4.11580059766496e-09, -2.035228404899467e-10, 9.167606746069445e-12, -3.8078827395263415e-13,
    1.454817075960679e-14,
)  # fmt: skip


def _erf_near(x: Any) -> Any:
    """Compute erf(x) for -1 <= x <= 1."""
    return x * horner(_ERF, 2 * x * x - 1)


def _erfcx_right(a: Any) -> Any:
    """Compute erfcx(a) for a >= 0."""
    low = np.minimum(a, 0.25)
    near = exp_square(low, 1.0) * (1 - _erf_near(low))
    return np.where(a < 0.25, near, horner(_ERFCX, _place(a)) / 2 / (0.5 + a))


def _erf(x: Any) -> Any:
    # erf(x) is 1 from 7 on.
    far = np.clip(np.abs(x), 1, 7)
    tail = exp_square(far, -1.0) * _erfcx_right(far)
    return np.where(np.abs(x) <= 1, _erf_near(np.clip(x, -1, 1)), np.copysign(1 - tail, x))


def _erfcx(x: Any) -> Any:
    right = _erfcx_right(np.abs(x))
    # The result overflows beyond -27.
    return np.where(x < 0, 2 * exp_square(np.clip(x, -27, 0), 1.0) - right, right)


def _place(a: Any) -> Any:
    return np.where(np.isinf(a), 1, (a - 4) / (a + 4))


def _ierfcx(x: Any) -> Any:
    a = np.abs(x)
    far = horner(_IERFCX, _place(a)) / (1 + a) / (1 + a)
    return np.where(x < 0.25, 1 / SQRT_PI - x * _erfcx(np.minimum(x, 0.25)), far)


def _erfc(x: Any) -> Any:
    # The result underflows beyond 28.
    a = np.clip(x, 0.25, 28)
    return np.where(x < 0.25, 1 - _erf(x), exp_square(a, -1.0) * _erfcx_right(a))


def _log_erfc(x: Any) -> Any:
    a = np.maximum(x, 0.5)
    return np.where(x < 0.5, np.log1p(-_erf(np.minimum(x, 0.5))), np.log(_erfcx_right(a)) - a * a)


def _ndtr(x: Any) -> Any:
    # The result underflows beyond 39.
    a = np.minimum(np.abs(x), 39)
    tail = exp_square(a, -0.5) * _erfcx_right(a * SQRT_HALF) / 2
    return np.where(x < 0, tail, 1 - tail)


def _log_ndtr(x: Any) -> Any:
    a = np.maximum(-x, 0)
    below = np.log(_erfcx_right(a * SQRT_HALF) / 2) - a * a / 2
    return np.where(x < 0, below, np.log1p(-_ndtr(-np.maximum(x, 0))))


def _row(name: str, x: str, doc: str, function: Any, derivative: Any, **more: Any) -> Any:
    function = function if isinstance(function, str) else in_float(function)
    return scalar(name, x, doc, function, dtype=real_float_rule, d=(derivative,), **more)


bell = _row(
    "bell",
    "x",
    "exp(-x*x).",
    lambda x: exp_square(np.clip(x, -28, 28), -1.0),
    lambda x, z, g: -2 * g * x * z,
    public=False,
)
normal_pdf = _row(
    "normal_pdf", "x", "exp(-x*x/2) / sqrt(2 pi).",
    lambda x: exp_square(np.clip(x, -39, 39), -0.5) / SQRT_2PI, lambda x, z, g: -g * x * z,
    public=False,
)  # fmt: skip
erf = _row("erf", "x", "The error function.", _erf, lambda x, z, g: g * SLOPE * bell(x))
erfc = _row(
    "erfc", "x", "1 - erf(x), exact for large x.", _erfc, lambda x, z, g: -g * SLOPE * bell(x)
)
erfcx = _row(
    "erfcx", "x", "exp(x*x) erfc(x), exact for large x.", _erfcx,
    lambda x, z, g: -2 * g * _ierfcx_row(x),
)  # fmt: skip
_ierfcx_row: Any = _row(
    "ierfcx", "x", "1 / sqrt(pi) - x erfcx(x).", _ierfcx,
    lambda x, z, g: g * (2 * x * z - erfcx(x)), public=False,
)  # fmt: skip
erfinv = _row(
    "erfinv", "x", "The inverse of erf.", "scipy.special:erfinv",
    lambda x, z, g: g / (SLOPE * bell(z)),
)  # fmt: skip
erfcinv = _row(
    "erfcinv", "x", "The inverse of erfc.", "scipy.special:erfcinv",
    lambda x, z, g: -g / (SLOPE * bell(z)),
)  # fmt: skip
log_erfc = _row(
    "log_erfc", "x", "log(erfc(x)), where erfc underflows, too.", _log_erfc,
    lambda x, z, g: -g * SLOPE * switch(gt(x, 0), 1 / erfcx(x), bell(x) / erfc(x)),
)  # fmt: skip
ndtr = _row(
    "ndtr", "x", "The normal distribution function.", _ndtr, lambda x, z, g: g * normal_pdf(x)
)
ndtri = _row(
    "ndtri", "x", "The inverse of ndtr.", "scipy.special:ndtri", lambda x, z, g: g / normal_pdf(z)
)
log_ndtr = _row(
    "log_ndtr", "x", "The logarithm of ndtr, exact for very negative x.", _log_ndtr,
    lambda x, z, g: g * _hazard(x),
)  # fmt: skip


def _hazard(x: Any) -> Any:
    """Compute the density of the normal distribution over its distribution function."""
    below = (SLOPE * SQRT_HALF) / erfcx(-x * SQRT_HALF)
    return switch(gt(x, 0), normal_pdf(x) / ndtr(x), below)


__all__ = [
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_erfc", "log_ndtr", "ndtr", "ndtri",
]  # fmt: skip
