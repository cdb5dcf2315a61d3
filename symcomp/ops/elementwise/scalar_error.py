"""The table of scalar functions, continued: error functions and the normal distribution (DLMF 7).

SciPy's functions lose digits where they decay, as their exponents are rounded; those of
``symcomp/codegen/functions/special.h`` keep them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import gt, switch

SQRT_PI = float(np.sqrt(np.pi))
SQRT_HALF = float(np.sqrt(0.5))
SLOPE = 2 / SQRT_PI


def _row(name: str, doc: str, derivative: Any, public: bool = True) -> Any:
    """Add a row computed by its C function."""
    return _declare(name, doc, CompiledFunction(name), derivative, public)


def _of_scipy(name: str, doc: str, derivative: Any) -> Any:
    """Add a row computed by the function of that name in ``scipy.special``."""
    return _declare(name, doc, f"scipy.special:{name}", derivative, True)


def _declare(name: str, doc: str, function: Any, derivative: Any, public: bool) -> Any:
    return scalar(name, "x", doc, function, dtype=real_float_rule, d=(derivative,), public=public)


bell = _row("bell", "exp(-x*x).", lambda x, z, g: -2 * g * x * z, public=False)
normal_pdf = _row(
    "normal_pdf", "exp(-x*x/2) / sqrt(2 pi).", lambda x, z, g: -g * x * z, public=False
)
erf = _row("erf", "The error function.", lambda x, z, g: g * SLOPE * bell(x))
erfc = _row("erfc", "1 - erf(x), exact for large x.", lambda x, z, g: -g * SLOPE * bell(x))
erfcx = _row(
    "erfcx", "exp(x*x) erfc(x), exact for large x.", lambda x, z, g: -2 * g * _ierfcx_row(x)
)
_ierfcx_row: Any = _row(
    "ierfcx", "1 / sqrt(pi) - x erfcx(x).", lambda x, z, g: -g * _xerfcx_slope(x), public=False
)
xerfcx = _row("xerfcx", "x erfcx(x).", lambda x, z, g: g * _xerfcx_slope(x), public=False)
_xerfcx_slope: Any = _row(
    "xerfcx_slope", "erfcx(x) - 2 x ierfcx(x), the derivative of x erfcx(x).",
    lambda x, z, g: g * (2 * x * z - 4 * _ierfcx_row(x)), public=False,
)  # fmt: skip
erfinv = _of_scipy("erfinv", "The inverse of erf.", lambda x, z, g: g / (SLOPE * bell(z)))
erfcinv = _of_scipy("erfcinv", "The inverse of erfc.", lambda x, z, g: -g / (SLOPE * bell(z)))
log_erfc = _row(
    "log_erfc", "log(erfc(x)), where erfc underflows, too.",
    lambda x, z, g: -g * SLOPE * bell_over_erfc(x),
)  # fmt: skip
_log_half_erfc = _row(
    "log_half_erfc", "log(erfc(x) / 2), where erfc is near 2, too.",
    lambda x, z, g: -g * SLOPE * bell_over_erfc(x), public=False,
)  # fmt: skip
ndtr = _row("ndtr", "The normal distribution function.", lambda x, z, g: g * normal_pdf(x))
ndtri = _of_scipy("ndtri", "The inverse of ndtr.", lambda x, z, g: g / normal_pdf(z))
log_ndtr = _row(
    "log_ndtr", "The logarithm of ndtr, exact for very negative x.",
    lambda x, z, g: g * normal_hazard(x),
)  # fmt: skip


def bell_over_erfc(x: Any) -> Any:
    """Compute exp(-x*x) / erfc(x), where both underflow, too."""
    return switch(gt(x, 0), 1 / erfcx(x), bell(x) / erfc(x))


def normal_hazard(x: Any) -> Any:
    """Compute the density of the normal distribution over its distribution function."""
    below = (SLOPE * SQRT_HALF) / erfcx(-x * SQRT_HALF)
    return switch(gt(x, 0), normal_pdf(x) / ndtr(x), below)


__all__ = [
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_erfc", "log_ndtr", "ndtr", "ndtri",
]  # fmt: skip
