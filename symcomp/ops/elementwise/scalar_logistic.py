"""The table of scalar functions, continued: logistic functions and x log x, safe from overflow."""

from __future__ import annotations

from typing import Any

from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import exp, expm1, log, log1p


def _row(name: str, x: str, doc: str, *d: Any, public: bool = True) -> Any:
    """Add a row computed by its C function."""
    function = CompiledFunction(name)
    return scalar(name, x, doc, function, dtype=real_float_rule, d=d, public=public)


sigmoid = _row(
    "sigmoid", "x", "1 / (1 + exp(-x)), without overflow.", lambda x, z, g: g * z * sigmoid(-x)
)
softplus = _row(
    "softplus", "x", "log(1 + exp(x)), without overflow.", lambda x, z, g: g * sigmoid(x)
)
logit = _row(
    "logit", "x", "log(x / (1 - x)), the inverse of sigmoid.", lambda x, z, g: g / (x * (1 - x))
)
log1mexp = _row(
    "log1mexp", "x", "log(1 - exp(x)) for x < 0, accurate everywhere.",
    lambda x, z, g: g * exp(x) / expm1(x),
)  # fmt: skip
logexpm1 = _row(
    "logexpm1", "x", "log(exp(x) - 1) for x > 0, accurate everywhere.",
    lambda x, z, g: -g / expm1(-x),
)  # fmt: skip
log_sigmoid = _row(
    "log_sigmoid", "x", "log(sigmoid(x)), without underflow.", lambda x, z, g: g * sigmoid(-x)
)
logaddexp = _row(
    "logaddexp", "x y", "log(exp(x) + exp(y)), without overflow.",
    lambda x, y, z, g: g * share(x, y), lambda x, y, z, g: g * share(y, x),
)  # fmt: skip
logdiffexp = _row(
    "logdiffexp", "x y", "log(exp(x) - exp(y)) for x > y, without overflow.",
    lambda x, y, z, g: -g / exp_gap(y, x), lambda x, y, z, g: -g / exp_gap(x, y),
)  # fmt: skip
# An empty sum, both -inf, has no shares.
share = _row(
    "share", "x y", "exp(x) / (exp(x) + exp(y)).",
    lambda x, y, z, g: g * z * share(y, x), lambda x, y, z, g: -g * z * share(y, x), public=False,
)  # fmt: skip
exp_gap = _row(
    "exp_gap", "x y", "exp(x - y) - 1.",
    lambda x, y, z, g: g * (z + 1), lambda x, y, z, g: -g * (z + 1), public=False,
)  # fmt: skip
xlogy = _row(
    "xlogy", "x y", "x log(y), 0 where x = 0.",
    lambda x, y, z, g: g * log(y), lambda x, y, z, g: g * switch(eq(x, 0), 0, x / y),
)  # fmt: skip
xlogy0 = xlogy
xlog1py = _row(
    "xlog1py", "x y", "x log(1 + y), 0 where x = 0.",
    lambda x, y, z, g: g * log1p(y), lambda x, y, z, g: g * switch(eq(x, 0), 0, x / (1 + y)),
)  # fmt: skip
xlogx = _row("xlogx", "x", "x log(x), 0 at 0.", lambda x, z, g: g * one_plus_log(x))
one_plus_log = _row(
    "one_plus_log", "x", "1 + log(x), exact at its root 1 / e.", lambda x, z, g: g / x, public=False
)
xlogx1p = _row(
    "xlogx1p", "x", "(1 + x) log(1 + x), 0 at -1.", lambda x, z, g: g * one_plus_log1p(x),
    public=False,
)  # fmt: skip
one_plus_log1p = _row(
    "one_plus_log1p", "x", "1 + log(1 + x), exact at its root 1 / e - 1.",
    lambda x, z, g: g / (1 + x), public=False,
)  # fmt: skip
entropy_of_two = _row(
    "entropy_of_two", "x", "x log(x) + (1 - x) log(1 - x), 0 at 0 and 1.",
    lambda x, z, g: g * logit(x), public=False,
)  # fmt: skip

__all__ = [
    "log1mexp", "log_sigmoid", "logaddexp", "logdiffexp", "logexpm1", "logit", "sigmoid",
    "softplus", "xlog1py", "xlogx", "xlogy", "xlogy0",
]  # fmt: skip
