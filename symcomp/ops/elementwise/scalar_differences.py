"""The table of scalar functions, continued: differences of nearly equal values of one function.

Rewriting creates these rows. Each keeps the digits that the subtraction of rounded values loses,
or the range that a factor leaves. All are computed in double.
"""

from __future__ import annotations

import math
from typing import Any

from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ZERO, real_float_rule, scalar
from symcomp.ops.elementwise.scalar_error import SLOPE, bell, erf
from symcomp.ops.elementwise.scalar_logic import lt, switch
from symcomp.ops.elementwise.scalar_logistic import share, sigmoid, xlogx, xlogy
from symcomp.ops.elementwise.scalar_math import expm1, log, sqr, sqrt
from symcomp.ops.elementwise.scalar_products import over_both
from symcomp.ops.elementwise.scalar_trigonometry import tan, tanh

LN2 = math.log(2)


def _row(name: str, x: str, doc: str, *d: Any) -> Any:
    """Add a row computed by its C function."""
    function = CompiledFunction(name)
    return scalar(name, x, doc, function, dtype=real_float_rule, d=d, public=False)


# ----- logistic and hyperbolic functions


sigmoid_slope: Any = _row(
    "sigmoid_slope", "x", "sigmoid(x) sigmoid(-x).",
    lambda x, z, g: -g * z * tanh(0.5 * x),
)  # fmt: skip
share_slope: Any = _row(
    "share_slope", "x y", "share(x, y) share(y, x).",
    lambda x, y, z, g: -g * z * tanh(0.5 * (x - y)), lambda x, y, z, g: g * z * tanh(0.5 * (x - y)),
)  # fmt: skip
share_difference: Any = _row(
    "share_difference", "x y", "share(x, y) - share(y, x).",
    lambda x, y, z, g: 2 * g * share_slope(x, y), lambda x, y, z, g: -2 * g * share_slope(x, y),
)  # fmt: skip
shared_mean: Any = _row(
    "shared_mean", "x y a b", "(x exp(a) + y exp(b)) / (exp(a) + exp(b)).",
    lambda x, y, a, b, z, g: g * share(a, b), lambda x, y, a, b, z, g: g * share(b, a),
    lambda x, y, a, b, z, g: g * (x - y) * share_slope(a, b),
    lambda x, y, a, b, z, g: g * (y - x) * share_slope(a, b),
)  # fmt: skip
sigmoid_difference = _row(
    "sigmoid_difference", "x y", "sigmoid(x) - sigmoid(y).",
    lambda x, y, z, g: g * sigmoid_slope(x), lambda x, y, z, g: -g * sigmoid_slope(y),
)  # fmt: skip
softplus_difference = _row(
    "softplus_difference", "x y", "softplus(x) - softplus(y).",
    lambda x, y, z, g: g * sigmoid(x), lambda x, y, z, g: -g * sigmoid(y),
)  # fmt: skip
sech = _row(
    "sech", "x", "1 / cosh(x).",
    lambda x, z, g: -g * z * tanh(x),
)  # fmt: skip
# In derivatives by y one of two forms is in range.
exp_times_sigmoid: Any = _row(
    "exp_times_sigmoid", "x y", "exp(x) sigmoid(y), where exp(x) overflows, too.",
    lambda x, y, z, g: g * z,
    lambda x, y, z, g: g * switch(
        lt(0, y), exp_times_sigmoid(x, -y) * sigmoid(y), z * sigmoid(-y)
    ),
)  # fmt: skip
one_plus_exp_ratio: Any = _row(
    "one_plus_exp_ratio", "x y", "(1 + exp(x)) / (1 + exp(y)), where these overflow, too.",
    lambda x, y, z, g: g * exp_times_sigmoid(x, -y),
    lambda x, y, z, g: -g * switch(
        lt(y, 0), one_plus_exp_ratio(x, -y) * sigmoid(-y), z * sigmoid(y)
    ),
)  # fmt: skip
exp_over_expm1: Any = _row(
    "exp_over_expm1", "x y", "exp(x) / (exp(y) - 1), where these overflow, too.",
    lambda x, y, z, g: g * z,
    lambda x, y, z, g: g * switch(
        lt(y, 0), exp_over_expm1(x, -y) / expm1(y), z / expm1(-y)
    ),
)  # fmt: skip
expm1_ratio: Any = _row(
    "expm1_ratio", "x y", "(exp(x) - 1) / (exp(y) - 1), where these overflow, too.",
    lambda x, y, z, g: g * exp_over_expm1(x, y),
    lambda x, y, z, g: g * switch(lt(y, 0), expm1_ratio(x, -y) / expm1(y), z / expm1(-y)),
)  # fmt: skip
exp_of_product = _row(
    "exp_of_product", "x y", "exp(x y), as if the exponent were not rounded.",
    lambda x, y, z, g: g * z * y, lambda x, y, z, g: g * z * x,
)  # fmt: skip

# ----- logarithms in two parts, whose sums are exact: the exponents are integers

log_mantissa = _row(
    "log_mantissa", "x",
    "log(x / 2^k), where the integer k brings the ratio between sqrt(1/2) and sqrt(2).",
    lambda x, z, g: g / x,
)  # fmt: skip
log_exponent = _row(
    "log_exponent", "x", "The k of log_mantissa; 0 for 0, infinities and negative numbers.", ZERO
)
power_of_parts: Any = _row(
    "power_of_parts", "l k c n", "exp((l + k log(2)) c / n), for integers k and n.",
    lambda x, k, c, n, z, g: g * (z * c / n), lambda x, k, c, n, z, g: g * (z * c / n) * LN2,
    lambda x, k, c, n, z, g: g * (z * (x + k * LN2) / n),
    lambda x, k, c, n, z, g: -g * (z * (x + k * LN2) * c / sqr(n)),
)  # fmt: skip

# ----- error and inverse functions

one_minus_erf_squared = _row(
    "one_minus_erf_squared", "x", "1 - erf(x)^2.",
    lambda x, z, g: -2 * SLOPE * g * erf(x) * bell(x),
)  # fmt: skip
arcsin_of_root = _row(
    "arcsin_of_root", "x", "arcsin(sqrt(x)).",
    lambda x, z, g: g / (2 * sqrt(x) * sqrt(1 - x)),
)  # fmt: skip

# ----- rounding errors


def _no_derivative(*_: Any) -> None:
    """Return the derivative of a rounding error."""


def _rest(name: str, arguments: str, doc: str) -> Any:
    """Return a function that is a rounding error."""
    return _row(name, arguments, doc, *[_no_derivative] * len(arguments.split()))


exp_of_sum_rest = _rest(
    "exp_of_sum_rest", "x y", "exp(x + y) less exp_of_sum(x, y), for x + y <= 0."
)
difference_rest = _rest("difference_rest", "x y w", "x - y - w less its rounded value.")
product_rest = _rest("product_rest", "x y", "x y less its rounded value.")
log_rest = _rest("log_rest", "x y", "log(x) - y, where y is its rounded value.")
exponential_rest = _rest("exponential_rest", "x y", "exp(x) - y, where y is its rounded value.")
cut_exp = _rest(
    "cut_exp", "x y w b", "w exp(x + y) without digits below the last one of b, for x + y <= 0."
)
cut_exp_rest = _rest("cut_exp_rest", "x y w b", "w exp(x + y) less cut_exp(x, y, w, b).")
plus_log = _rest("plus_log", "x y e n", "x + log((y + e) / n), where only the sum is rounded.")
exp_with_rest = _row(
    "exp_with_rest", "x y", "exp(x + y), where y is the rounding error of x.",
    lambda x, y, z, g: g * z, _no_derivative,
)  # fmt: skip
times_exp_with_rest: Any = _row(
    "times_exp_with_rest", "x y e z w",
    "x exp(y + e) / (z w), where e is the rounding error of y, and parts over- or underflow, too.",
    lambda x, y, e, z, w, r, g: times_exp_with_rest(g, y, e, z, w),
    lambda x, y, e, z, w, r, g: g * r, _no_derivative,
    lambda x, y, e, z, w, r, g: -g * r / z, lambda x, y, e, z, w, r, g: -g * r / w,
)  # fmt: skip

# ----- logarithms


squares_over_sum = _row(
    "squares_over_sum", "x y", "(x^2 + y^2) / (x + y).",
    lambda x, y, z, g: g * slope_of_squares(y, x), lambda x, y, z, g: g * slope_of_squares(x, y),
)  # fmt: skip
slope_of_squares: Any = _row(
    "slope_of_squares", "x y", "1 - 2 x^2 / (x + y)^2, the derivative of squares_over_sum by y.",
    lambda x, y, z, g: -4 * g * (x / (x + y)) * over_both(y, x + y, x + y),
    lambda x, y, z, g: 4 * g * sqr(x / (x + y)) / (x + y),
)  # fmt: skip
xlogx_over_sum = _row(
    "xlogx_over_sum", "x y", "x log(x) / (x + y).",
    lambda x, y, z, g: g / (x + y) + g * (y / (x + y)) * (log(x) / (x + y)),
    lambda x, y, z, g: -g * over_both(xlogx(x), x + y, x + y),
)  # fmt: skip
log_cos = _row(
    "log_cos", "x", "log(cos(x)).",
    lambda x, z, g: -g * tan(x),
)  # fmt: skip
log1m_square = _row(
    "log1m_square", "x", "log(1 - x^2).",
    lambda x, z, g: -2 * g * x / ((1 - x) * (1 + x)),
)  # fmt: skip
log1p_ratio = _row(
    "log1p_ratio", "x y", "log(1 + x / y), where x / y overflows, too.",
    lambda x, y, z, g: g / (x + y), lambda x, y, z, g: -g * over_both(x, y, x + y),
)  # fmt: skip
log_gap = _row(
    "log_gap", "x y", "log(x + y) - log(y).",
    lambda x, y, z, g: g / (x + y), lambda x, y, z, g: -g * over_both(x, y, x + y),
)  # fmt: skip

log_difference = _row(
    "log_difference", "x y", "log(x) - log(y): as log_div, but NaN for two negative numbers.",
    lambda x, y, z, g: g / x, lambda x, y, z, g: -g / y,
)  # fmt: skip

# ----- powers and roots


cube_difference = _row(
    "cube_difference", "x y", "x^3 - y^3.",
    lambda x, y, z, g: 3 * g * sqr(x), lambda x, y, z, g: -3 * g * sqr(y),
)  # fmt: skip


product_of_powers: Any = _row(
    "product_of_powers", "x y z w n",
    "x^(y + w) x^(z - w) / x^n for integers n, where the powers over- or underflow, too.",
    lambda x, y, z, w, n, r, g: g * (y + z - n) * product_of_powers(x, y, z, w, n + 1),
    lambda x, y, z, w, n, r, g: g * xlogy(r, x), lambda x, y, z, w, n, r, g: g * xlogy(r, x),
    ZERO, lambda x, y, z, w, n, r, g: -g * xlogy(r, x),
)  # fmt: skip

by_squares = _row(
    "by_squares", "x y w", "x - y, where w is x^2 - y^2 known with more digits.",
    lambda x, y, w, z, g: g, lambda x, y, w, z, g: -g, _no_derivative,
)  # fmt: skip

known_difference = _row(
    "known_difference", "x y w", "x - y, where w is that, known with more digits.",
    lambda x, y, w, z, g: g, lambda x, y, w, z, g: -g, lambda x, y, w, z, g: None,
)  # fmt: skip
defined_difference = _row(
    "defined_difference", "x y w", "w, or x - y where that is known and w is NaN or infinite.",
    _no_derivative, _no_derivative, lambda x, y, w, z, g: g,
)  # fmt: skip

__all__: list[str] = []
