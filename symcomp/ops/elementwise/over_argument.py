"""Functions that vanish at 0, divided by their argument: tanh(x) / x and others, with derivatives
of every order that lose no digits near 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import SymcompError
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule
from symcomp.ops.numerics.exact import in_wider

# Derivatives of higher orders are not supported: kernels keep the coefficients on the stack.
HIGHEST = 20
# The functions by their NumPy names; the order is that of the numbers in `special.h`.
FUNCTIONS = ("sinh", "tan", "tanh", "log1p", "arctan", "arctanh", "arcsinh", "arcsin", "erf")


def _function(name: str) -> Callable[[Any], Any]:
    if name != "erf":
        return getattr(np, name)
    # SciPy has no erf of the wider type; the result has the rounding error of float64.
    return lambda x: ROWS["erf"]().function(x.astype(np.float64)).astype(x.dtype)


def taylor(name: str, x: Any, count: int) -> list[Any]:
    """Return the first ``count`` Taylor coefficients of a function of FUNCTIONS at ``x``.

    Uses the differential equation of the function (Hairer, Norsett and Wanner, Solving Ordinary
    Differential Equations I, section I.8): y' = 1 +- y^2 for tan and tanh, a linear one for the
    derivatives b of the others.
    """
    y = _function(name)(x)
    if name == "sinh":
        pair = y, np.cosh(x)
        return [pair[k % 2] / math.factorial(k) for k in range(count)]
    if name in ("tan", "tanh"):
        sign = 1 if name == "tan" else -1
        a = [y]
        for k in range(count - 1):
            squares = sum(a[i] * a[k - i] for i in range(k + 1))
            a.append(((k == 0) + sign * squares) / (k + 1))
        return a
    b = _taylor_of_derivative(name, x, count - 1)
    return [y, *(b[k] / (k + 1) for k in range(count - 1))]


def _taylor_of_derivative(name: str, x: Any, count: int) -> list[Any]:
    sign = -1 if name in ("arctan", "arcsinh") else 1
    weight = 1 + x * x if sign < 0 else (1 - x) * (1 + x)
    if name == "log1p":
        return [(-1) ** k / (1 + x) ** (k + 1) for k in range(count)]
    if name == "erf":
        b = [2 / np.sqrt(np.asarray(np.pi, x.dtype)) * np.exp(-x * x)]
    else:
        b = [1 / (weight if name in ("arctan", "arctanh") else np.sqrt(weight))]
    for k in range(count - 1):
        last = b[k - 1] if k else np.zeros_like(x)
        if name == "erf":
            b.append(-2 * (x * b[k] + last) / (k + 1))
        elif name in ("arctan", "arctanh"):
            b.append(sign * (2 * x * b[k] + last) / weight)
        else:
            b.append(sign * ((2 * k + 1) * x * b[k] + k * last) / (k + 1) / weight)
    return b


def series_bound(name: str, n: int) -> tuple[float, int]:
    """x|x|Return the bound of abs(x) for the power series, and its length: there the tail is below
    2^-64, beyond it the recurrence loses at most 4^n of the 11 bits that the wider type has more.
    """
    if name == "erf":
        return 2.0, 100 + 4 * n
    return (0.25, 40 + 2 * n) if n <= 2 else (0.5, 76 + 2 * n)


def _over_argument(name: str, n: int, x: Any) -> Any:
    """Compute the n-th derivative of f(x) / x: from the Maclaurin series of f near 0, elsewhere
    from its Taylor coefficients: those of the quotient are q_k = (a_k - q_(k-1)) / x.
    """
    bound, count = series_bound(name, n)
    small = np.abs(x) < bound
    near, far = np.where(small, x, 0), np.where(small, 1, x)
    with np.errstate(all="ignore"):
        at_zero = taylor(name, np.zeros((), x.dtype), count)
        series = np.zeros_like(near)
        for k in range(count - 2, n - 1, -1):
            falling = 1.0
            for j in range(n):
                falling *= k - j
            series = series * near + at_zero[k + 1] * falling
        q = np.zeros_like(far)
        factorial = 1
        for k, a in enumerate(taylor(name, far, n + 1)[: n + 1]):
            q = (a - q) / far
            factorial *= max(k, 1)
    return np.where(small, series, q * factorial)


def _over_argument_row(name: str, n: int) -> ScalarOp:
    """Return the n-th derivative of f(x) / x, where f is one of FUNCTIONS."""
    if name not in FUNCTIONS or type(n) is not int or not 0 <= n <= HIGHEST:
        raise SymcompError(
            f"over_argument{{{name!r}, {n!r}}}: the function must be one of "
            f"{', '.join(FUNCTIONS)} and the order an int from 0 to {HIGHEST}"
        )

    def derivative(x: Any, z: Any, g: Any) -> Any:
        return g * over_argument(name, n + 1, x)

    compute = in_wider(partial(_over_argument, name, n))
    return ScalarOp(
        "over_argument", 1, compute, real_float_rule, (derivative,), parameters=(name, n)
    )


ROWS["over_argument"] = _over_argument_row


def over_argument(name: str, n: int, x: Any) -> TensorVariable:
    """Return the n-th derivative of f(x) / x, its limit at 0, where f is one of FUNCTIONS."""
    return Elemwise(_over_argument_row(name, n))(x)


__all__: list[str] = []
