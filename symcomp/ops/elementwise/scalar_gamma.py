"""The table of scalar functions, continued: the gamma function and related ones (DLMF 5).

Float64 results are within 3 units in the last place where they are normal numbers, with these
exceptions, which are within 3 units of the larger of two terms: tri_gamma_increment between
negative numbers, log_poch and log_gamma_ratio of numbers below 1e-20 of opposite sign and about
equal size, and polygamma of negative numbers, or of orders of more than 15 digits.
"""

from __future__ import annotations

from typing import Any

from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import real_float_rule, scalar, unknown

NO_ORDER = "the derivative with respect to the order has no closed form"


def _row(name: str, x: str, doc: str, *derivatives: Any, public: bool = True) -> Any:
    """Add a row computed by its C function, of ``gamma.h`` or ``gamma_ratios.h``."""
    function = CompiledFunction(name)
    return scalar(name, x, doc, function, dtype=real_float_rule, d=derivatives, public=public)


gamma = _row("gamma", "x", "The gamma function.", lambda x, z, g: g * z * psi(x))
gammaln = _row("gammaln", "x", "log(abs(gamma(x))).", lambda x, z, g: g * psi(x))
log_of_gamma = _row(
    "log_of_gamma", "x", "log(gamma(x)), NaN where gamma(x) is negative.",
    lambda x, z, g: g * psi(x), public=False,
)  # fmt: skip
psi = _row(
    "psi", "x", "The digamma function, the derivative of gammaln.",
    lambda x, z, g: g * tri_gamma(x),
)  # fmt: skip
digamma = psi
tri_gamma = _row(
    "tri_gamma", "x", "The derivative of psi.",
    lambda x, z, g: g * polygamma(2, x),
)  # fmt: skip
polygamma = _row(
    "polygamma", "n x", "The n-th derivative of psi.",
    unknown(NO_ORDER), lambda n, x, z, g: g * polygamma(n + 1, x),
)  # fmt: skip

# ----- ratios, whose parts overflow where they do not

gamma_ratio = _row(
    "gamma_ratio", "x y",
    "gamma(x) / gamma(y), where both overflow, too. Where both are poles it is the limit for a "
    "fixed x - y.",
    lambda x, y, z, g: g * z * psi(x), lambda x, y, z, g: -g * z * psi(y),
)  # fmt: skip
poch = _row(
    "poch", "x h",
    "Pochhammer's symbol gamma(x + h) / gamma(x), as if x + h were not rounded: x (x + 1) ... "
    "(x + h - 1) for a whole number h.",
    lambda x, h, z, g: g * z * digamma_increment(x, h),
    lambda x, h, z, g: g * z * digamma_of_sum(x, h),
)  # fmt: skip
inverse_poch = _row(
    "inverse_poch", "x h", "gamma(x) / gamma(x + h), as if x + h were not rounded.",
    lambda x, h, z, g: -g * z * digamma_increment(x, h),
    lambda x, h, z, g: -g * z * digamma_of_sum(x, h), public=False,
)  # fmt: skip
log_gamma_ratio = _row(
    "log_gamma_ratio", "x y", "log(abs(gamma(x) / gamma(y))), where the terms cancel, too.",
    lambda x, y, z, g: g * psi(x), lambda x, y, z, g: -g * psi(y),
)  # fmt: skip
log_poch = _row(
    "log_poch", "x h",
    "log(abs(gamma(x + h) / gamma(x))), as if x + h were not rounded: exact for small h, too.",
    lambda x, h, z, g: g * digamma_increment(x, h), lambda x, h, z, g: g * digamma_of_sum(x, h),
)  # fmt: skip
beta = _row(
    "beta", "a b", "gamma(a) gamma(b) / gamma(a + b).",
    lambda a, b, z, g: -g * z * digamma_increment(a, b),
    lambda a, b, z, g: -g * z * digamma_increment(b, a),
)  # fmt: skip
betaln = _row(
    "betaln", "a b", "log(abs(beta(a, b))).",
    lambda a, b, z, g: -g * digamma_increment(a, b),
    lambda a, b, z, g: -g * digamma_increment(b, a),
)  # fmt: skip
digamma_increment = _row(
    "digamma_increment", "x h",
    "psi(x + h) - psi(x), as if x + h were not rounded: exact for small h, too.",
    lambda x, h, z, g: g * tri_gamma_increment(x, h),
    lambda x, h, z, g: g * tri_gamma(x + h),
)  # fmt: skip
tri_gamma_increment = _row(
    "tri_gamma_increment", "x h", "tri_gamma(x + h) - tri_gamma(x), as if x + h were not rounded.",
    lambda x, h, z, g: g * (polygamma(2, x + h) - polygamma(2, x)),
    lambda x, h, z, g: g * polygamma(2, x + h), public=False,
)  # fmt: skip
digamma_of_sum = _row(
    "digamma_of_sum", "x h", "psi(x + h), as if x + h were not rounded.",
    lambda x, h, z, g: g * tri_gamma(x + h), lambda x, h, z, g: g * tri_gamma(x + h),
    public=False,
)  # fmt: skip

__all__ = [
    "beta", "betaln", "digamma", "digamma_increment", "gamma", "gamma_ratio", "gammaln",
    "log_gamma_ratio", "log_poch", "poch",
    "polygamma", "psi", "tri_gamma",
]  # fmt: skip
