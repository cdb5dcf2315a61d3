"""The table of scalar functions, continued: functions that stable forms of expressions use.

Each computes, within a few units in the last place, an expression whose parts cancel, overflow or
underflow. Rewriting creates most of them; few have a public name.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import SymcompError
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import clip, eq, logical_or, lt, switch
from symcomp.ops.elementwise.scalar_logistic import xlogy
from symcomp.ops.elementwise.scalar_math import (
    abs_,
    exp,
    log,
    log1p,
    power_slope,
    sqr,
    sqrt,
    true_div,
)
from symcomp.ops.elementwise.scalar_products import times_over
from symcomp.ops.elementwise.scalar_trigonometry import hypot, sin, tanh
from symcomp.ops.elementwise.series_remainder import series_remainder


def _row(name: str, x: str, doc: str, *d: Any, public: bool = False) -> Any:
    """Add a row computed by its C function."""
    function = CompiledFunction(name)
    return scalar(name, x, doc, function, dtype=real_float_rule, d=d, public=public)


# ----- logarithms


log_mul = _row(
    "log_mul", "x y", "log(x y), where x y over- or underflows or is near 1, too.",
    lambda x, y, z, g: g / x, lambda x, y, z, g: g / y,
)  # fmt: skip
log_div = _row(
    "log_div", "x y", "log(x / y), where x / y over- or underflows or is near 1, too.",
    lambda x, y, z, g: g / x, lambda x, y, z, g: -g / y,
)  # fmt: skip


kl_div = _row(
    "kl_div", "x y", "x log(x / y) - x + y.",
    lambda x, y, z, g: g * log_div(x, y), lambda x, y, z, g: g * ((y - x) / y),
)  # fmt: skip

log1p_integral = _row(
    "log1p_integral", "x", "(1 + x) log(1 + x) - x, 1 at -1.", lambda x, z, g: g * log1p(x),
)  # fmt: skip


log_of_pow = _row(
    "log_of_pow", "x y", "log(x ** y), where x ** y over- or underflows, too.",
    lambda x, y, z, g: g * y / x, lambda x, y, z, g: g * log(x),
)  # fmt: skip

# ----- exponentials


def _compound_slope(x: Any, y: Any) -> TensorVariable:
    z = compound(x, y)
    # The quotient, where it is defined, has more digits.
    apart = logical_or(eq(x, -1), eq(abs_(z), np.inf))
    return switch(apart, y * compound(x, y - 1), y * z / (1 + x))


compound = _row(
    "compound", "x y", "(1 + x) ** y.",
    lambda x, y, z, g: g * _compound_slope(x, y), lambda x, y, z, g: g * z * log1p(x),
)  # fmt: skip
compoundm1 = _row(
    "compoundm1", "x y", "(1 + x) ** y - 1.",
    lambda x, y, z, g: g * _compound_slope(x, y),
    lambda x, y, z, g: g * compound(x, y) * log1p(x),
)  # fmt: skip


power_of_log = _row(
    "power_of_log", "x y", "exp(y log(x)), as if the exponent were not rounded.",
    lambda x, y, z, g: g * switch(lt(x, 0), math.nan, power_slope(x, y)),
    lambda x, y, z, g: g * xlogy(z, x),
)  # fmt: skip
powm1 = _row(
    "powm1", "x y", "exp(y log(x)) - 1.",
    lambda x, y, z, g: g * switch(lt(x, 0), math.nan, power_slope(x, y)),
    lambda x, y, z, g: g * xlogy(power_of_log(x, y), x),
)  # fmt: skip
exp_of_sum = _row(
    "exp_of_sum", "x y", "exp(x + y).",
    lambda x, y, z, g: g * z, lambda x, y, z, g: g * z,
)  # fmt: skip


exp_moment_ratio = _row(
    "exp_moment_ratio", "x", "The derivative of log((exp(x) - 1) / x), also where that overflows.",
    lambda x, z, g: g * _exp_moment_spread(-abs_(x)),
)  # fmt: skip


def _exp_moment_spread(a: Any) -> TensorVariable:
    """Compute the derivative of exp_moment_ratio, which is even, for a <= 0."""
    moments = (series_remainder("exp", 1, 1, a, n) for n in (2, 0))
    return true_div(*moments) - sqr(exp_moment_ratio(a))


x_over_expm1 = _row(
    "x_over_expm1", "x", "x / (exp(x) - 1), 1 at 0.",
    lambda x, z, g: -g * z * exp_moment_ratio(x),
)  # fmt: skip

# ----- hyperbolic functions


x_over_sinh = _row(
    "x_over_sinh", "x", "x / sinh(x), 1 at 0.",
    lambda x, z, g: -g * z * coth_minus_inverse(x),
)  # fmt: skip
coth_minus_inverse: Any = _row(
    "coth_minus_inverse", "x", "coth(x) - 1 / x, the derivative of log(sinh(x) / x).",
    lambda x, z, g: g * _coth_minus_inverse_slope(x, z),
)  # fmt: skip


def _coth_minus_inverse_slope(x: Any, z: Any) -> TensorVariable:
    """Compute 1 / x^2 - 1 / sinh(x)^2 = q'' / q - z^2 for q = sinh(x) / x."""
    near, share = clip(x, -1, 1), x_over_sinh(x)
    second, value = (series_remainder("sinh", 1, 1, near, n) for n in (2, 0))
    far = (1 - share) * (1 + share) / sqr(x)
    return switch(lt(abs_(x), 1), second / value - sqr(z), far)


sech_squared = _row(
    "sech_squared", "x", "1 - tanh(x)^2.",
    lambda x, z, g: -2 * g * z * tanh(x),
)  # fmt: skip
logcosh = _row(
    "logcosh", "x", "log(cosh(x)), without overflow.",
    lambda x, z, g: g * tanh(x), public=True,
)  # fmt: skip

# ----- trigonometric functions


one_minus_cos = _row(
    "one_minus_cos", "x", "1 - cos(x).",
    lambda x, z, g: g * sin(x),
)  # fmt: skip


exp_minus_cos = _row(
    "exp_minus_cos", "x", "exp(x) - cos(x).",
    lambda x, z, g: g * (exp(x) + sin(x)),
)  # fmt: skip


def _spherical_jn_row(n: int, power: int = 0) -> ScalarOp:
    """Make the row of the spherical Bessel function of the first kind of order n (DLMF 10.47.3)
    over x^power, for power <= n: sin(x) / x for n = 0; its derivative is DLMF 10.51.2.
    """
    if not 0 <= power <= n:
        raise SymcompError(f"spherical_jn{{{n}, {power}}}: the power must be from 0 to the order")

    def derivative(x: Any, z: Any, g: Any) -> Any:
        below = (n - power) * spherical_jn(n - 1, x, power) if n > power else 0
        return g * (below - (n + 1 + power) * spherical_jn(n + 1, x, power)) / (2 * n + 1)

    compute = CompiledFunction("spherical_jn", n, power)
    return ScalarOp(
        "spherical_jn", 1, compute, real_float_rule, (derivative,), parameters=(n, power)
    )


ROWS["spherical_jn"] = _spherical_jn_row


def spherical_jn(n: int, x: Any, power: int = 0) -> TensorVariable:
    """Compute the spherical Bessel function of order n >= 0 over x^power, NaN at infinity, as is
    sin(x) / x there.
    """
    return Elemwise(_spherical_jn_row(n, power))(x)


one_minus_cos_over_square = _row(
    "one_minus_cos_over_square", "x", "(1 - cos(x)) / x^2, 1/2 at 0.",
    lambda x, z, g: -g * spherical_jn(0, x / 2) * spherical_jn(1, x / 2) / 2,
)  # fmt: skip

log1p_drop = _row(
    "log1p_drop", "x", "log(1 + x) / x - 1 / (1 + x), 0 at 0.",
    lambda x, z, g: -g * (
        series_remainder("log1p", 1, 1, x, 1) + x * series_remainder("log1p", 1, 1, x, 2)
    ),
)  # fmt: skip

# ----- roots and squares


square_difference = _row(
    "square_difference", "x y", "x*x - y*y.",
    lambda x, y, z, g: 2 * g * x, lambda x, y, z, g: -2 * g * y,
)  # fmt: skip
sqrt_difference = _row(
    "sqrt_difference", "x y", "sqrt(x) - sqrt(y).",
    lambda x, y, z, g: g / (2 * sqrt(x)), lambda x, y, z, g: -g / (2 * sqrt(y)),
)  # fmt: skip
sqrt1p_minus_sqrt = _row(
    "sqrt1p_minus_sqrt", "x", "sqrt(1 + x) - sqrt(x).",
    lambda x, z, g: -g * z / (2 * sqrt(x) * sqrt(1 + x)),
)  # fmt: skip
sqrt1pm1 = _row(
    "sqrt1pm1", "x", "sqrt(1 + x) - 1.",
    lambda x, z, g: g / (2 * sqrt(1 + x)),
)  # fmt: skip


hypot_minus = _row(
    "hypot_minus", "x y", "sqrt(x^2 + y^2) - x.",
    lambda x, y, z, g: -g * (z / hypot(x, y)), lambda x, y, z, g: g * (y / hypot(x, y)),
)  # fmt: skip
hypotm1 = _row(
    "hypotm1", "x", "sqrt(1 + x^2) - 1.",
    lambda x, z, g: g * (x / hypot(x, 1.0)),
)  # fmt: skip


half_tangent = _row(
    "half_tangent", "x", "x / (1 + sqrt(1 + x^2)), the tangent of half the angle of x.",
    lambda x, z, g: g / (hypot(x, 1.0) * (1 + hypot(x, 1.0))),
)  # fmt: skip
odds_share = _row(
    "odds_share", "x", "x / (1 + x), 1 where x is infinite.",
    lambda x, z, g: g / sqr(1 + x),
)  # fmt: skip


leg: Any = _row(
    "leg", "x y", "x / sqrt(x^2 + y^2), 0 at the origin.",
    lambda x, y, z, g: g * sqr(leg(y, x)) / hypot(x, y),
    lambda x, y, z, g: -g * z * leg(y, x) / hypot(x, y),
)  # fmt: skip

def _over_fourth(x: Any, y: Any) -> TensorVariable:
    """Compute (y^2 - x^2) / (x^2 + y^2)^2 in range."""
    root = hypot(x, y)
    return ((y - x) / root) * ((y + x) / root) / root / root


over_squares: Any = _row(
    "over_squares", "x y", "x / (x^2 + y^2).",
    lambda x, y, z, g: g * _over_fourth(x, y),
    lambda x, y, z, g: -2 * g * z * (leg(y, x) / hypot(x, y)),
)  # fmt: skip
square_contrast = _row(
    "square_contrast", "x y", "(x^2 - y^2) / (x^2 + y^2).",
    lambda x, y, z, g: 4 * g * legs_over_square(x, y),
    lambda x, y, z, g: -4 * g * legs_over_square(y, x),
)  # fmt: skip
legs_over_square: Any = _row(
    "legs_over_square", "x y", "x y^2 / (x^2 + y^2)^2.",
    lambda x, y, z, g: g * (sqr(leg(y, x)) * (1 - 4 * sqr(leg(x, y))) / sqr(hypot(x, y))),
    lambda x, y, z, g: 2 * g * leg(x, y) * leg(y, x) * square_contrast(x, y) / sqr(hypot(x, y)),
)  # fmt: skip
product_of_legs: Any = _row(
    "product_of_legs", "x y", "x y / (x^2 + y^2).",
    lambda x, y, z, g: g * y * _over_fourth(x, y), lambda x, y, z, g: g * x * _over_fourth(y, x),
)  # fmt: skip

hypot_over = _row(
    "hypot_over", "x y", "sqrt(x^2 + y^2) / x, whose derivative by x is small for large x.",
    lambda x, y, z, g: -g * (times_over(leg(y, x), y, x) / x),
    lambda x, y, z, g: g * leg(y, x) / x,
)  # fmt: skip
height = _row(
    "height", "x y", "x y / sqrt(x^2 + y^2), the height of a right triangle with these legs.",
    lambda x, y, z, g: g * leg(y, x) * sqr(leg(y, x)),
    lambda x, y, z, g: g * leg(x, y) * sqr(leg(x, y)),
)  # fmt: skip
parallel = _row(
    "parallel", "x y", "1 / (1 / x + 1 / y), as of resistors in parallel.",
    lambda x, y, z, g: g * sqr(z / x), lambda x, y, z, g: g * sqr(z / y),
)  # fmt: skip

log1p_square = _row(
    "log1p_square", "x", "log(1 + x^2).",
    lambda x, z, g: 2 * g * over_one_plus_square(x),
)  # fmt: skip


log1p_square_ratio = _row(
    "log1p_square_ratio", "x y", "log(1 + x^2 / y^2), where x / y overflows, too.",
    lambda x, y, z, g: 2 * g * over_squares(x, y),
    lambda x, y, z, g: -2 * g * sqr(leg(x, y)) / y,
)  # fmt: skip


over_one_plus_square: Any = _row(
    "over_one_plus_square", "x", "x / (1 + x^2).",
    lambda x, z, g: g * (1 - x) * (1 + x) / sqr(hypot(x, 1.0)) / sqr(hypot(x, 1.0)),
)  # fmt: skip

__all__ = ["logcosh"]
