"""Functions without the first terms of their Taylor series at 0, over a power of their argument:
exp(x) - 1 - x, (x - sin(x)) / x^3, tanh(x) / x and others, with derivatives that lose no digits.
"""

from __future__ import annotations

import math
from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import SymcompError
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule

# Derivatives of higher orders are not supported: kernels keep the coefficients on the stack.
HIGHEST = 20
MOST_TERMS = 8
# The functions by their NumPy names; the order is that of the numbers in `series_remainders.h`.
FUNCTIONS = (
    "exp", "sin", "cos", "cosh", "sinh", "tan", "tanh", "log1p", "arctan", "arctanh", "arcsinh",
    "arcsin", "erf",
)  # fmt: skip
_ODD = {
    "sin": [1, -1 / 6, 1 / 120, -1 / 5040], "sinh": [1, 1 / 6, 1 / 120, 1 / 5040],
    "tan": [1, 1 / 3, 2 / 15, 17 / 315], "tanh": [1, -1 / 3, 2 / 15, -17 / 315],
    "arctan": [1, -1 / 3, 1 / 5, -1 / 7], "arctanh": [1, 1 / 3, 1 / 5, 1 / 7],
    "arcsin": [1, 1 / 6, 3 / 40, 5 / 112], "arcsinh": [1, -1 / 6, 3 / 40, -5 / 112],
    "erf": [c * 2 / math.sqrt(math.pi) for c in (1, -1 / 3, 1 / 10, -1 / 42)],
}  # fmt: skip
# The first MOST_TERMS coefficients of the series.
COEFFICIENTS: dict[str, list[float]] = {
    "exp": [1 / math.factorial(k) for k in range(MOST_TERMS)],
    "cos": [1, 0, -1 / 2, 0, 1 / 24, 0, -1 / 720, 0],
    "cosh": [1, 0, 1 / 2, 0, 1 / 24, 0, 1 / 720, 0],
    "log1p": [0, *((-1) ** (k + 1) / k for k in range(1, MOST_TERMS))],
    **{name: [c for odd in found for c in (0, odd)] for name, found in _ODD.items()},
}


def _series_remainder_row(name: str, terms: int, power: int, n: int) -> ScalarOp:
    """Return the n-th derivative of f(x) / x^power, where f is one of FUNCTIONS without the first
    terms of its series: those of exponents less than ``terms``.
    """
    numbers = (terms, power, n)
    if (
        name not in FUNCTIONS
        or any(type(k) is not int for k in numbers)
        or not (0 <= power <= terms <= MOST_TERMS and terms > 0 and 0 <= n <= HIGHEST)
    ):
        raise SymcompError(
            f"series_remainder{{{name!r}, {terms!r}, {power!r}, {n!r}}}: the function must be one "
            f"of {', '.join(FUNCTIONS)}, the terms an int from 1 to {MOST_TERMS}, the power one "
            f"from 0 to the terms, and the order one from 0 to {HIGHEST}"
        )

    def derivative(x: Any, z: Any, g: Any) -> Any:
        slope = None if power or n else _slope(name, terms, x)
        return g * (series_remainder(name, terms, power, x, n + 1) if slope is None else slope)

    compute = CompiledFunction("series_remainder", FUNCTIONS.index(name), *numbers)
    return ScalarOp(
        "series_remainder", 1, compute, real_float_rule, (derivative,),
        parameters=(name, *numbers),
    )  # fmt: skip


ROWS["series_remainder"] = _series_remainder_row


def series_remainder(name: str, terms: int, power: int, x: Any, n: int = 0) -> TensorVariable:
    """Return the n-th derivative of f(x) / x^power, its limit at 0, where f is one of FUNCTIONS
    without the terms of its series whose exponents are less than ``terms``.
    """
    while terms < MOST_TERMS and not COEFFICIENTS[name][terms]:
        terms += 1
    return Elemwise(_series_remainder_row(name, terms, power, n))(x)


def _slope(name: str, terms: int, x: Any) -> TensorVariable | None:
    """Return the derivative of a function without some terms, by functions that are more exact, or
    faster; None if there are none.
    """
    call = {row: Elemwise(ROWS[row]()) for row in ("expm1", "one_minus_cos", "sqr", "leg", "sinh")}
    if name == "exp":
        return call["expm1"](x) if terms == 2 else series_remainder("exp", terms - 1, 0, x)
    if name == "sin":
        if terms <= 3:
            return -call["one_minus_cos"](x)
        return series_remainder("cos", terms - 1, 0, x)
    if name == "cos":
        return -series_remainder("sin", terms - 1, 0, x)
    if name == "cosh":
        return series_remainder("sinh", terms - 1, 0, x)
    if name == "sinh":
        if terms <= 3:
            return 2 * call["sqr"](call["sinh"](0.5 * x))
        return series_remainder("cosh", terms - 1, 0, x)
    if name in ("tan", "tanh") and terms <= 3:
        square = call["sqr"](Elemwise(ROWS[name]())(x))
        return square if name == "tan" else -square
    if name == "arctan" and terms <= 3:
        return -call["sqr"](call["leg"](x, 1.0))
    if name == "log1p" and terms == 2:
        return -x / (1 + x)
    return None


__all__: list[str] = []
