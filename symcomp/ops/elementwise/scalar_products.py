"""The table of scalar functions, continued: products and quotients of parts that leave the range.

Rewriting uses these for products whose factors may compensate for one another: each is computed in
an order, or with powers of two apart, in which nothing over- or underflows unless the result does.
NaN, infinities and zeros are those of the product as it is written.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ROWS, ZERO, ScalarOp, real_float_rule, scalar
from symcomp.ops.numerics.exact import in_double, two_product


def _scaled(above: int, *xs: Any) -> tuple[Any, Any, Any]:
    """Return (m, e, p) such that the product of the first arguments over that of the others is (m +
    e) 2^p, where e is the rounding error of m.
    """
    mantissa, error, power = np.float64(1), np.float64(0), np.int64(0)
    for i, x in enumerate(xs):
        m, p = np.frexp(x)
        if i < above:
            mantissa, rest = two_product(mantissa, m)
            error = error * m + rest
        else:
            before, mantissa = mantissa, mantissa / m
            part, rest = two_product(mantissa, m)
            error = (((before - part) - rest) + error) / m
        power = power + p.astype(np.int64) * (1 if i < above else -1)
    return mantissa, error, power


def _scaled_product(root: int, above: int, *xs: Any) -> Any:
    """Compute the product of the first arguments over that of the others, or its square root."""
    mantissa, _, power = _scaled(above, *xs)
    if root == 2:
        odd = power % 2
        mantissa, power = np.sqrt(np.ldexp(mantissa, odd)), (power - odd) // 2
    # Exponents are clipped far outside the range of floats, but inside that of ldexp's integers.
    return np.ldexp(mantissa, np.clip(power, -5000, 5000))


times_over: Any = scalar(
    "times_over", "x y z", "x y / z, where x y or x / z over- or underflows, too.",
    CompiledFunction("times_over"), dtype=real_float_rule,
    d=(
        lambda x, y, z, r, g: times_over(g, y, z),
        lambda x, y, z, r, g: times_over(g, x, z),
        lambda x, y, z, r, g: -times_over(g, r, z),
    ),
    public=False,
)  # fmt: skip
over_both: Any = scalar(
    "over_both", "x y z", "x / (y z), where y z or x / y over- or underflows, too.",
    CompiledFunction("over_both"), dtype=real_float_rule,
    d=(
        lambda x, y, z, r, g: over_both(g, y, z),
        lambda x, y, z, r, g: -times_over(g, r, y),
        lambda x, y, z, r, g: -times_over(g, r, z),
    ),
    public=False,
)  # fmt: skip
times_three: Any = scalar(
    "times_three", "x y z", "x y z, where x y over- or underflows, too.",
    CompiledFunction("times_three"), dtype=real_float_rule,
    d=(
        lambda x, y, z, r, g: times_three(g, y, z),
        lambda x, y, z, r, g: times_three(g, x, z),
        lambda x, y, z, r, g: times_three(g, x, y),
    ),
    public=False,
)  # fmt: skip
times_exp: Any = scalar(
    "times_exp", "x y", "x exp(y), where exp(y) over- or underflows, too.",
    CompiledFunction("times_exp"), dtype=real_float_rule,
    d=(lambda x, y, z, g: times_exp(g, y), lambda x, y, z, g: g * z), public=False,
)  # fmt: skip
times_two_exp: Any = scalar(
    "times_two_exp", "x y z", "x y exp(z), where x y or exp(z) over- or underflows, too.",
    CompiledFunction("times_two_exp"), dtype=real_float_rule,
    d=(
        lambda x, y, z, r, g: times_two_exp(g, y, z),
        lambda x, y, z, r, g: times_two_exp(g, x, z),
        lambda x, y, z, r, g: g * r,
    ),
    public=False,
)  # fmt: skip


own_ratio = scalar(
    "own_ratio", "x", "x / x: 1; NaN for 0, infinities and NaN.", CompiledFunction("own_ratio"),
    dtype=real_float_rule, d=(ZERO,), public=False,
)  # fmt: skip
over_size = scalar(
    "over_size", "x", "x / abs(x): the sign; NaN for 0, infinities and NaN.",
    CompiledFunction("over_size"), dtype=real_float_rule, d=(ZERO,), public=False,
)  # fmt: skip


def _scaled_product_row(root: int, above: int, below: int) -> ScalarOp:
    """Make the row of the product of the first ``above`` arguments over that of the others, or its
    square root, where no part over- or underflows.
    """

    def derivative(i: int) -> Any:
        def rule(*letters: Any) -> Any:
            *xs, z, g = letters
            return times_over(g, z, xs[i]) * ((1 if i < above else -1) / root)

        return rule

    return ScalarOp(
        "scaled_product", above + below, in_double(partial(_scaled_product, root, above)),
        real_float_rule, tuple(map(derivative, range(above + below))),
        parameters=(root, above, below),
    )  # fmt: skip


ROWS["scaled_product"] = _scaled_product_row


def _log_scaled_product(above: int, *xs: Any) -> Any:
    """Compute the logarithm of the product of the first arguments over that of the others."""
    mantissa, error, power = _scaled(above, *xs)
    shift = np.clip(power, -5000, 5000)
    value, apart = np.ldexp(mantissa, shift), np.log(mantissa) + power * np.log(2)
    inside = (np.abs(value) >= np.finfo(np.float64).tiny) & np.isfinite(value)
    near = np.log1p((value - 1) + np.ldexp(error, shift))
    return np.where(np.abs(value - 1) < 0.5, near, np.where(inside, np.log(value), apart))


def _log_scaled_product_row(above: int, below: int) -> ScalarOp:
    """Make the row of the logarithm of the product of the first ``above`` arguments over that of
    the others, also where it leaves the range.
    """

    def derivative(i: int) -> Any:
        return lambda *letters: (1 if i < above else -1) * letters[-1] / letters[i]

    return ScalarOp(
        "log_scaled_product", above + below, in_double(partial(_log_scaled_product, above)),
        real_float_rule, tuple(map(derivative, range(above + below))), parameters=(above, below),
    )  # fmt: skip


ROWS["log_scaled_product"] = _log_scaled_product_row

__all__: list[str] = []
