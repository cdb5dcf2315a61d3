"""The table of scalar functions, continued: logistic functions and x log x, safe from overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.ops.elemwise import float_rule, real_float_rule, scalar
from symcomp.ops.scalar_logic import eq, switch
from symcomp.ops.scalar_math import LN2, exp, expm1, log, log1p

# ----------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _log1mexp(x: Any) -> Any:
    # Maechler (2012), "Accurately computing log(1 - exp(-|a|))": the switch is at log 2.
    return np.where(x > -LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _xlogy(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def _xlog1py(x: Any, y: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y))


def _in_float(function: Any) -> Any:
    """Run on floats: integers are converted first."""

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        return function(*(x.astype(dtype, copy=False) for x in xs))

    return run


sigmoid = scalar(
    "sigmoid", "x", "1 / (1 + exp(-x)), without overflow.", _in_float(_sigmoid),
    dtype=real_float_rule,
    d=(lambda x, z, g: g * z * sigmoid(-x),),
)  # fmt: skip
softplus = scalar(
    "softplus", "x", "log(1 + exp(x)), without overflow.", _in_float(_softplus),
    dtype=real_float_rule,
    d=(lambda x, z, g: g * sigmoid(x),),
)  # fmt: skip
logit = scalar(
    "logit", "x", "log(x / (1 - x)), the inverse of sigmoid.",
    _in_float(lambda x: np.log(x) - np.log1p(-x)), dtype=real_float_rule,
    d=(lambda x, z, g: g / (x * (1 - x)),),
)  # fmt: skip
log1mexp = scalar(
    "log1mexp", "x", "log(1 - exp(x)) for x < 0, accurate everywhere.", _in_float(_log1mexp),
    dtype=real_float_rule, d=(lambda x, z, g: g / -expm1(-x),),
)  # fmt: skip
logaddexp = scalar(
    "logaddexp", "x y", "log(exp(x) + exp(y)), without overflow.", np.logaddexp,
    dtype=real_float_rule,
    d=(lambda x, y, z, g: g * _weight(x, z), lambda x, y, z, g: g * _weight(y, z)),
)  # fmt: skip
xlogy = scalar(
    "xlogy", "x y", "x log(y), 0 where x = 0.", _in_float(_xlogy), dtype=real_float_rule,
    d=(lambda x, y, z, g: g * log(y), lambda x, y, z, g: g * switch(eq(x, 0), 0, x / y)),
)  # fmt: skip
xlogy0 = xlogy
xlog1py = scalar(
    "xlog1py", "x y", "x log(1 + y), 0 where x = 0.", _in_float(_xlog1py), dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * log1p(y),
        lambda x, y, z, g: g * switch(eq(x, 0), 0, x / (1 + y)),
    ),
)  # fmt: skip
xlogx = scalar(
    "xlogx", "x", "x log(x), 0 at 0.", _in_float(lambda x: _xlogy(x, x)), dtype=real_float_rule,
    d=(lambda x, z, g: g * (log(x) + 1),),
)  # fmt: skip


def _weight(x: Any, z: Any) -> Any:
    """exp(x - z), and 0 where both are -inf (an empty sum has no weights)."""
    return switch(eq(x, -np.inf), 0, exp(x - z))


__all__ = [
    "log1mexp", "logaddexp", "logit", "sigmoid", "softplus", "xlog1py", "xlogx", "xlogy",
    "xlogy0",
]  # fmt: skip
