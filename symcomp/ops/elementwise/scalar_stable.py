"""The table of scalar functions, continued: functions that stable forms of expressions use.

Each computes, within a few units in the last place, an expression whose parts cancel, overflow or
underflow. Rewriting creates most of them; few have a public name.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import eq, logical_or, lt, switch
from symcomp.ops.elementwise.scalar_logistic import xlogy
from symcomp.ops.elementwise.scalar_math import (
    abs_,
    hypot,
    log,
    log1p,
    lowered_power,
    sin,
    sqr,
    sqrt,
    tanh,
)
from symcomp.ops.numerics import trigonometry
from symcomp.ops.numerics.exact import exp_sum, in_float, in_wider, two_product


def _row(name: str, x: str, doc: str, function: Any, *d: Any, public: bool = False) -> Any:
    return scalar(name, x, doc, function, dtype=real_float_rule, d=d, public=public)


# ----- logarithms


def _log_mul(x: Any, y: Any) -> Any:
    p, e = two_product(x, y)
    near = np.abs(p - 1) < 0.5
    # The logarithms of both where their product leaves the range; their sum is far from 0 there.
    ends = (p == 0) | np.isinf(p) | (np.abs(p) < 1e-300)
    apart = np.log(np.abs(x)) + np.log(np.abs(y))
    inside = np.where(near, np.log1p((p - 1) + e), np.log(p))
    return np.where(ends, np.where(np.sign(x) * np.sign(y) < 0, np.nan, apart), inside)


def _log_div(x: Any, y: Any) -> Any:
    q = x / y
    # x - q y exactly, over y.
    p, e = two_product(q, y)
    rest = ((x - p) - e) / y
    near = np.abs(q - 1) < 0.5
    ends = (q == 0) | np.isinf(q) | (np.abs(q) < 1e-300)
    apart = np.log(np.abs(x)) - np.log(np.abs(y))
    inside = np.where(near, np.log1p((q - 1) + np.where(near, rest, 0)), np.log(q))
    return np.where(ends, np.where(np.sign(x) * np.sign(y) < 0, np.nan, apart), inside)


log_mul = _row(
    "log_mul", "x y", "log(x y), where x y over- or underflows or is near 1, too.",
    in_float(_log_mul), lambda x, y, z, g: g / x, lambda x, y, z, g: g / y,
)  # fmt: skip
log_div = _row(
    "log_div", "x y", "log(x / y), where x / y over- or underflows or is near 1, too.",
    in_float(_log_div), lambda x, y, z, g: g / x, lambda x, y, z, g: -g / y,
)  # fmt: skip


def _log_of_pow(x: Any, y: Any) -> Any:
    power = x**y
    # A power of a negative number is positive where the exponent is whole and even.
    positive = (power > 0) | (x > 0) | (x < 0) & (np.mod(y, 2) == 0)
    return np.where(positive, y * np.log(np.abs(x)), np.log(power))


log_of_pow = _row(
    "log_of_pow", "x y", "log(x ** y), where x ** y over- or underflows, too.",
    in_float(_log_of_pow), lambda x, y, z, g: g * y / x, lambda x, y, z, g: g * log(x),
)  # fmt: skip


def _log1p_minus(x: Any) -> Any:
    # From |x| = 2^-8 on the wider type holds the difference; below, the series does.
    small = np.where(np.abs(x) < 2.0**-8, x, 0)
    series = np.zeros_like(small)
    for n in range(10, 1, -1):
        series = series * small + (1 if n % 2 else -1) / np.asarray(n, x.dtype)
    return np.where(np.abs(x) < 2.0**-8, series * small * small, np.log1p(x) - x)


log1p_minus = _row(
    "log1p_minus", "x", "log(1 + x) - x.", in_wider(_log1p_minus),
    lambda x, z, g: -g * x / (1 + x),
)  # fmt: skip

# ----- exponentials


def _power(x: Any, y: Any) -> tuple[Any, Any]:
    """Return y log|1 + x|, and the sign of (1 + x)^y, NaN where that is not real."""
    below = x < -1
    # |1 + x| - 1; powers of 1 are 1, as are powers to 0.
    gap = np.where(below, -2 - x, x)
    exponent = np.where((y == 0) | (gap == 0), 0, y * np.log1p(gap))
    sign = np.where(np.mod(y, 2) == 1, -1, np.where(np.floor(y) == y, 1, np.nan))
    return exponent, np.where(below, sign, 1)


def _compound(x: Any, y: Any) -> Any:
    exponent, sign = _power(x, y)
    return sign * np.exp(exponent)


def _compoundm1(x: Any, y: Any) -> Any:
    exponent, sign = _power(x, y)
    return np.where(sign == 1, np.expm1(exponent), sign * np.exp(exponent) - 1)


def _compound_slope(x: Any, y: Any) -> TensorVariable:
    z = compound(x, y)
    # The quotient, where it is defined, has more digits.
    apart = logical_or(eq(x, -1), eq(abs_(z), np.inf))
    return switch(apart, y * compound(x, y - 1), y * z / (1 + x))


compound = _row(
    "compound", "x y", "(1 + x) ** y.", in_wider(_compound),
    lambda x, y, z, g: g * _compound_slope(x, y), lambda x, y, z, g: g * z * log1p(x),
)  # fmt: skip
compoundm1 = _row(
    "compoundm1", "x y", "(1 + x) ** y - 1.", in_wider(_compoundm1),
    lambda x, y, z, g: g * _compound_slope(x, y),
    lambda x, y, z, g: g * compound(x, y) * log1p(x),
)  # fmt: skip


def _power_of_log(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        # Where the logarithm is NaN, or 0 inf is: x^0 is 1 there.
        undefined = (x < 0) | (y == 0) & ((x == 0) | (x == np.inf)) | (x == 1) & np.isinf(y)
        return np.where(undefined, np.nan, np.power(x, y))


power_of_log = _row(
    "power_of_log", "x y", "exp(y log(x)), as if the exponent were not rounded.",
    in_float(_power_of_log),
    lambda x, y, z, g: g * y * switch(lt(x, 0), math.nan, lowered_power(x, y)),
    lambda x, y, z, g: g * xlogy(z, x),
)  # fmt: skip
exp_of_sum = _row(
    "exp_of_sum", "x y", "exp(x + y).", in_float(exp_sum),
    lambda x, y, z, g: g * z, lambda x, y, z, g: g * z,
)  # fmt: skip


def _exp_moment(n: int, x: Any) -> Any:
    near = np.where(np.abs(x) < n + 2, x, 0)
    series, term = np.zeros_like(near), np.ones_like(near)
    for k in range(40 + 4 * n):
        series = series + term / (n + k + 1)
        term = term * near / (k + 1)
    safe = np.where(near == x, 1, x)
    e = np.exp(safe)
    far = np.expm1(safe) / safe
    for k in range(1, n + 1):
        # Where exp(x) is inf so is the moment.
        far = np.where(np.isinf(e), e, (e - k * far) / safe)
    return np.where(near == x, series, np.where(x == -np.inf, 0, far))


def _exp_moment_row(n: int) -> ScalarOp:
    """Make the row of the integral of t^n exp(x t) over t from 0 to 1: the n-th derivative of
    (exp(x) - 1) / x.
    """

    def derivative(x: Any, z: Any, g: Any) -> Any:
        return g * exp_moment(n + 1, x)

    compute = in_wider(partial(_exp_moment, n))
    return ScalarOp("exp_moment", 1, compute, real_float_rule, (derivative,), parameters=(n,))


ROWS["exp_moment"] = _exp_moment_row


def exp_moment(n: int, x: Any) -> TensorVariable:
    """Integrate t^n exp(x t) over t from 0 to 1; ``(exp(x) - 1) / x`` for n = 0."""
    return Elemwise(_exp_moment_row(n))(x)


def _x_over_expm1(x: Any) -> Any:
    safe = np.where(x == 0, 1, np.minimum(x, 40))
    # From 40 on the 1 is negligible; the square root is squared, as exp(x) may overflow.
    half = np.exp(-np.maximum(x, 40) / 2)
    far = np.where(np.isinf(x), 0, x) * half * half
    return np.where(x == 0, 1, np.where(x > 40, far, safe / np.expm1(safe)))


def _exp_moment_ratio(x: Any) -> Any:
    """Compute it for x > 0 by m(x) = 1 - m(-x): no exponential overflows."""
    a = -np.abs(x)
    ratio = _exp_moment(1, a) / _exp_moment(0, a)
    ratio = np.where(a == -np.inf, 0, ratio)
    return np.where(x > 0, 1 - ratio, ratio)


exp_moment_ratio = _row(
    "exp_moment_ratio", "x", "exp_moment(1, x) / exp_moment(0, x), also where these overflow.",
    in_wider(_exp_moment_ratio),
    lambda x, z, g: g * _exp_moment_spread(-abs_(x)),
)  # fmt: skip


def _exp_moment_spread(a: Any) -> TensorVariable:
    """Compute the derivative of exp_moment_ratio, which is even, for a <= 0."""
    return exp_moment(2, a) / exp_moment(0, a) - sqr(exp_moment_ratio(a))


x_over_expm1 = _row(
    "x_over_expm1", "x", "x / (exp(x) - 1), 1 at 0.", in_float(_x_over_expm1),
    lambda x, z, g: -g * z * exp_moment_ratio(x),
)  # fmt: skip

# ----- hyperbolic functions


def _sech_squared(x: Any) -> Any:
    e = np.exp(-2 * np.abs(x))
    total = 1 + e
    return 4 * e / (total * total)


def _logcosh(x: Any) -> Any:
    a = np.abs(x)
    half = np.sinh(np.minimum(a, 1) / 2)
    far = a - (np.log(np.asarray(2, x.dtype)) - np.log1p(np.exp(-2 * a)))
    return np.where(a < 1, np.log1p(2 * half * half), far)


sech_squared = _row(
    "sech_squared", "x", "1 - tanh(x)^2.", in_float(_sech_squared),
    lambda x, z, g: -2 * g * z * tanh(x),
)  # fmt: skip
logcosh = _row(
    "logcosh", "x", "log(cosh(x)), without overflow.", in_float(_logcosh),
    lambda x, z, g: g * tanh(x), public=True,
)  # fmt: skip

# ----- trigonometric functions


def _half_sine_squared(x: Any) -> Any:
    s = trigonometry.sin(x / 2)
    return 2 * s * s


one_minus_cos = _row(
    "one_minus_cos", "x", "1 - cos(x).", in_float(_half_sine_squared),
    lambda x, z, g: g * sin(x),
)  # fmt: skip


def _spherical_jn_row(n: int) -> ScalarOp:
    """Make the row of the spherical Bessel function of the first kind of order n (DLMF 10.47.3):
    sin(x) / x for n = 0; its derivative is DLMF 10.51.2.
    """

    def compute(x: Any) -> Any:
        near = np.where(np.abs(x) < n + 1, x, 0)
        # The power series, DLMF 10.53.1.
        square = -near * near / 2
        series, term = np.zeros_like(near), np.ones_like(near)
        for k in range(20 + 2 * n):
            series = series + term
            term = term * square / ((k + 1) * (2 * n + 2 * k + 3))
        series = series * near**n / math.prod(range(1, 2 * n + 2, 2))
        # Forward recurrence, DLMF 10.51.1: stable where x > n.
        safe = np.where(near == x, 1, x)
        last, this = np.cos(safe) / safe, np.sin(safe) / safe
        for k in range(n):
            last, this = this, (2 * k + 1) * this / safe - last
        return np.where(near == x, series, this)

    def derivative(x: Any, z: Any, g: Any) -> Any:
        below = n * spherical_jn(n - 1, x) if n else 0
        return g * (below - (n + 1) * spherical_jn(n + 1, x)) / (2 * n + 1)

    return ScalarOp(
        "spherical_jn", 1, in_wider(compute), real_float_rule, (derivative,), parameters=(n,)
    )


ROWS["spherical_jn"] = _spherical_jn_row


def spherical_jn(n: int, x: Any) -> TensorVariable:
    """Compute the spherical Bessel function of order n >= 0, NaN at infinity, as is sin(x) / x
    there.
    """
    return Elemwise(_spherical_jn_row(n))(x)


def _one_minus_cos_over_square(x: Any) -> Any:
    half = x / 2
    safe = np.where(half == 0, 1, half)
    ratio = trigonometry.sin(safe) / safe
    return np.where(half == 0, 0.5, ratio * ratio / 2)


one_minus_cos_over_square = _row(
    "one_minus_cos_over_square", "x", "(1 - cos(x)) / x^2, 1/2 at 0.",
    in_float(_one_minus_cos_over_square),
    lambda x, z, g: -g * spherical_jn(0, x / 2) * spherical_jn(1, x / 2) / 2,
)  # fmt: skip

# ----- roots and squares


def _square_difference(x: Any, y: Any) -> Any:
    # The sum of halves does not overflow where the difference is 0.
    return (x - y) * (x / 2 + y / 2) * 2


def _sqrt_difference(x: Any, y: Any) -> Any:
    total = np.sqrt(x) + np.sqrt(y)
    ends = (total == 0) | np.isinf(total)
    return np.where(ends, np.sqrt(x) - np.sqrt(y), (x - y) / np.where(ends, 1, total))


square_difference = _row(
    "square_difference", "x y", "x*x - y*y.", in_float(_square_difference),
    lambda x, y, z, g: 2 * g * x, lambda x, y, z, g: -2 * g * y,
)  # fmt: skip
sqrt_difference = _row(
    "sqrt_difference", "x y", "sqrt(x) - sqrt(y).", in_float(_sqrt_difference),
    lambda x, y, z, g: g / (2 * sqrt(x)), lambda x, y, z, g: -g / (2 * sqrt(y)),
)  # fmt: skip
sqrt1p_minus_sqrt = _row(
    "sqrt1p_minus_sqrt", "x", "sqrt(1 + x) - sqrt(x).",
    in_float(lambda x: 1 / (np.sqrt(1 + x) + np.sqrt(x))),
    lambda x, z, g: -g * z / (2 * sqrt(x) * sqrt(1 + x)),
)  # fmt: skip
sqrt1pm1 = _row(
    "sqrt1pm1", "x", "sqrt(1 + x) - 1.",
    in_float(lambda x: np.where(x == np.inf, x, x / (1 + np.sqrt(1 + x)))),
    lambda x, z, g: g / (2 * sqrt(1 + x)),
)  # fmt: skip


def _hypot_minus(x: Any, y: Any) -> Any:
    z = np.hypot(x, y)
    return np.where((x > 0) & (z < np.inf), y * (y / (z + x)), z - x)


hypot_minus = _row(
    "hypot_minus", "x y", "sqrt(x^2 + y^2) - x.", in_float(_hypot_minus),
    lambda x, y, z, g: -g * (z / hypot(x, y)), lambda x, y, z, g: g * (y / hypot(x, y)),
)  # fmt: skip
hypotm1 = _row(
    "hypotm1", "x", "sqrt(1 + x^2) - 1.",
    in_float(lambda x: _hypot_minus(np.asarray(1, x.dtype), x)),
    lambda x, z, g: g * (x / hypot(x, 1.0)),
)  # fmt: skip


def _leg(x: Any, y: Any) -> Any:
    z = np.hypot(x, y)
    return np.where(z == 0, 0, x / np.where(z == 0, 1, z))


leg: Any = _row(
    "leg", "x y", "x / sqrt(x^2 + y^2), 0 at the origin.", in_float(_leg),
    lambda x, y, z, g: g * sqr(leg(y, x)) / hypot(x, y),
    lambda x, y, z, g: -g * z * leg(y, x) / hypot(x, y),
)  # fmt: skip

# Beyond this the square of a number overflows, and 1 + x^2 is x^2.
LARGE = {"float16": 2.0**7, "float32": 2.0**62, "float64": 2.0**510}


def _log1p_square(x: Any) -> Any:
    a = np.abs(x)
    large = a > LARGE[x.dtype.name]
    shift = math.log2(LARGE[x.dtype.name])
    part = np.where(large, a / LARGE[x.dtype.name], a)
    square = part * part
    far = np.log(np.where(large, square, 1)) + np.asarray(2 * shift * math.log(2), x.dtype)
    return np.where(large, far, np.log1p(np.where(large, 0, square)))


log1p_square = _row(
    "log1p_square", "x", "log(1 + x^2).", in_float(_log1p_square),
    lambda x, z, g: 2 * g * over_one_plus_square(x),
)  # fmt: skip


def _over_one_plus_square(x: Any) -> Any:
    large = np.abs(x) > LARGE[x.dtype.name]
    safe = np.where(large, 1, x)
    return np.where(large, 1 / np.where(large, x, 1), safe / (1 + safe * safe))


over_one_plus_square: Any = _row(
    "over_one_plus_square", "x", "x / (1 + x^2).", in_float(_over_one_plus_square),
    lambda x, z, g: g * (1 - x) * (1 + x) / sqr(hypot(x, 1.0)) / sqr(hypot(x, 1.0)),
)  # fmt: skip

__all__ = ["logcosh"]
