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
from symcomp.ops.elementwise.elemwise import ROWS, ScalarOp, real_float_rule, scalar
from symcomp.ops.numerics.exact import in_double


def _scaled_product(root: int, above: int, *xs: Any) -> Any:
    """Compute the product of the first arguments over that of the others, or its square root."""
    mantissa, power = np.float64(1), np.int64(0)
    for i, x in enumerate(xs):
        m, p = np.frexp(x)
        mantissa = mantissa * m if i < above else mantissa / m
        power = power + p.astype(np.int64) * (1 if i < above else -1)
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

__all__: list[str] = []
