"""The table of scalar functions, continued: logistic functions and x log x, safe from overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.ops.elementwise.elemwise import real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import LN2, exp, expm1, log, log1p
from symcomp.ops.numerics.exact import in_double, in_float, polished, two_sum

# ----------------------------------------------------------------

# log 2, and its rounding error
LN2_LOW = 2.319046813846299e-17


def _sigmoid(x: Any) -> Any:
    # Where the exponential is below 1/2, its quotient has a smaller rounding error than the sum.
    small = np.exp(-np.abs(x))
    share = np.where(x >= 0, 1, small) / (1 + small)
    return np.where(x < -0.7, small - small * share, share)


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _logit(x: Any) -> Any:
    # 2 x - 1 is exact near 1/2, where the logarithms cancel.
    near = 2 * np.arctanh(2 * np.clip(x, 0.25, 0.75) - 1)
    return np.where(np.abs(x - 0.5) <= 0.25, near, np.log(x) - np.log1p(-x))


def _log1mexp(x: Any) -> Any:
    # Maechler (2012), "Accurately computing log(1 - exp(-|a|))": the switch is at log 2.
    return np.where(x > -LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _logexpm1(x: Any) -> Any:
    # Around its root, log 2, as log(2 exp(x - log 2) - 1).
    gap = (np.clip(x, 0.25, 1.5) - LN2) - LN2_LOW
    near = np.log1p(2 * np.expm1(gap))
    far = np.where(x >= 1.5, x + np.log1p(-np.exp(-np.abs(x))), np.log(np.expm1(np.minimum(x, 1))))
    return np.where((x > 0.25) & (x < 1.5), near, far)


def _logaddexp(x: Any, y: Any) -> Any:
    top, gap = np.maximum(x, y), np.abs(x - y)
    return np.where(x == y, x + np.log(np.asarray(2, x.dtype)), top + np.log1p(np.exp(-gap)))


def _logdiffexp(x: Any, y: Any) -> Any:
    return np.where((x == y) & (x == -np.inf), x, x + _log1mexp(y - x))


def _cancelled(z: Any, x: Any, y: Any) -> Any:
    """Tell where a sum of logarithms is much smaller than its terms."""
    return np.abs(z) < np.abs(x) / 2


def _smaller(z: Any, x: Any, y: Any) -> Any:
    """Tell where a difference of logarithms is smaller than the larger one."""
    return np.abs(z) < np.abs(x)


def _share(x: Any, y: Any) -> Any:
    gap, e = two_sum(x, -y)
    small = np.exp(-np.abs(gap))
    # exp of the gap as if it were not rounded
    small = small * (1 - np.sign(gap) * e)
    ratio = np.where(gap >= 0, 1, small) / (1 + small)
    return np.where(x == -np.inf, np.where(np.isnan(y), y, 0), ratio)


def _exp_gap(x: Any, y: Any) -> Any:
    gap, e = two_sum(x, -y)
    z = np.expm1(gap)
    return np.where(np.isinf(z), z, z + e * (z + 1))


def _xlogy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def _xlog1py(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y))


sigmoid = scalar(
    "sigmoid", "x", "1 / (1 + exp(-x)), without overflow.", in_float(_sigmoid),
    dtype=real_float_rule,
    d=(lambda x, z, g: g * z * sigmoid(-x),),
)  # fmt: skip
softplus = scalar(
    "softplus", "x", "log(1 + exp(x)), without overflow.", in_float(_softplus),
    dtype=real_float_rule,
    d=(lambda x, z, g: g * sigmoid(x),),
)  # fmt: skip
logit = scalar(
    "logit", "x", "log(x / (1 - x)), the inverse of sigmoid.",
    in_float(_logit), dtype=real_float_rule,
    d=(lambda x, z, g: g / (x * (1 - x)),),
)  # fmt: skip
log1mexp = scalar(
    "log1mexp", "x", "log(1 - exp(x)) for x < 0, accurate everywhere.", in_float(_log1mexp),
    dtype=real_float_rule, d=(lambda x, z, g: g * exp(x) / expm1(x),),
)  # fmt: skip
logexpm1 = scalar(
    "logexpm1", "x", "log(exp(x) - 1) for x > 0, accurate everywhere.", in_double(_logexpm1),
    dtype=real_float_rule, d=(lambda x, z, g: -g / expm1(-x),),
)  # fmt: skip
log_sigmoid = scalar(
    "log_sigmoid", "x", "log(sigmoid(x)), without underflow.", in_float(lambda x: -_softplus(-x)),
    dtype=real_float_rule, d=(lambda x, z, g: g * sigmoid(-x),),
)  # fmt: skip
logaddexp = scalar(
    "logaddexp", "x y", "log(exp(x) + exp(y)), without overflow.",
    polished(_logaddexp, _cancelled), dtype=real_float_rule,
    d=(lambda x, y, z, g: g * share(x, y), lambda x, y, z, g: g * share(y, x)),
)  # fmt: skip
logdiffexp = scalar(
    "logdiffexp", "x y", "log(exp(x) - exp(y)) for x > y, without overflow.",
    polished(_logdiffexp, _smaller), dtype=real_float_rule,
    d=(lambda x, y, z, g: -g / exp_gap(y, x), lambda x, y, z, g: -g / exp_gap(x, y)),
)  # fmt: skip
# An empty sum, both -inf, has no shares.
share = scalar(
    "share", "x y", "exp(x) / (exp(x) + exp(y)).", in_float(_share), dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * z * share(y, x),
        lambda x, y, z, g: -g * z * share(y, x),
    ),
    public=False,
)  # fmt: skip
exp_gap = scalar(
    "exp_gap", "x y", "exp(x - y) - 1.", in_float(_exp_gap), dtype=real_float_rule,
    d=(lambda x, y, z, g: g * (z + 1), lambda x, y, z, g: -g * (z + 1)), public=False,
)  # fmt: skip
xlogy = scalar(
    "xlogy", "x y", "x log(y), 0 where x = 0.", in_float(_xlogy), dtype=real_float_rule,
    d=(lambda x, y, z, g: g * log(y), lambda x, y, z, g: g * switch(eq(x, 0), 0, x / y)),
)  # fmt: skip
xlogy0 = xlogy
xlog1py = scalar(
    "xlog1py", "x y", "x log(1 + y), 0 where x = 0.", in_float(_xlog1py), dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * log1p(y),
        lambda x, y, z, g: g * switch(eq(x, 0), 0, x / (1 + y)),
    ),
)  # fmt: skip
xlogx = scalar(
    "xlogx", "x", "x log(x), 0 at 0.", in_float(lambda x: _xlogy(x, x)), dtype=real_float_rule,
    d=(lambda x, z, g: g * one_plus_log(x),),
)  # fmt: skip

# 1 / e, and its rounding error
INVERSE_E, INVERSE_E_LOW = 0.36787944117144233, -1.2428753672788363e-17


def _one_plus_log(x: Any) -> Any:
    near = np.clip(x, 0.2, 0.7)
    inner = np.log1p(((near - INVERSE_E) - INVERSE_E_LOW) * np.e)
    return np.where(near == x, inner, 1 + np.log(x))


one_plus_log = scalar(
    "one_plus_log", "x", "1 + log(x), exact at its root 1 / e.", in_double(_one_plus_log),
    dtype=real_float_rule, d=(lambda x, z, g: g / x,), public=False,
)  # fmt: skip

__all__ = [
    "log1mexp", "log_sigmoid", "logaddexp", "logdiffexp", "logexpm1", "logit", "sigmoid",
    "softplus", "xlog1py", "xlogx", "xlogy", "xlogy0",
]  # fmt: skip
