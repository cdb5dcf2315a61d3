"""Arithmetic on arrays that keeps the rounding errors, for functions exact to the last digits.

The error-free transformations are Knuth's and Dekker's, as in Ogita, Rump and Oishi (2005),
"Accurate sum and dot product".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.ops.elemwise import float_rule

# The next wider type, for functions whose rounding errors are amplified. numpy.longdouble has 11
# bits more than float64 on x86;
# where it has none, such errors reach some hundred ulp.
WIDER = {"float16": "float64", "float32": "float64", "float64": "longdouble"}


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """(s, e): s = a + b rounded, s + e = a + b exactly; e is 0 where s is not finite."""
    s = a + b
    t = s - a
    e = (a - (s - t)) + (b - t)
    return s, np.where(np.isfinite(e), e, 0)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """(p, e): p = a b rounded, p + e = a b exactly, between the square roots of the range."""
    p = a * b
    splitter = np.asarray(2.0 ** ((np.finfo(p.dtype).nmant + 2) // 2) + 1, p.dtype)
    (a1, a2), (b1, b2) = _halves(a, splitter), _halves(b, splitter)
    e = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2
    return p, np.where(np.isfinite(e), e, 0)


def _halves(x: Any, splitter: Any) -> tuple[Any, Any]:
    big = splitter * x
    high = big - (big - x)
    return high, x - high


def in_float(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run on floats: integers are converted first, float16 is computed in a wider type."""

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        work = "float32" if dtype == "float16" else dtype
        return np.asarray(function(*(x.astype(work, copy=False) for x in xs))).astype(dtype)

    return run


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run on float64 arrays of one shape, and round to the type of the inputs at the end."""

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        xs = np.broadcast_arrays(*(x.astype(np.float64, copy=False) for x in xs))
        with np.errstate(all="ignore"):
            return np.asarray(function(*xs)).astype(dtype, copy=False)

    return run


def in_wider(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run in the next wider floating-point type, and round once at the end."""

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        return np.asarray(function(*(x.astype(WIDER[dtype]) for x in xs))).astype(dtype)

    return run


def polished(function: Callable[..., Any], cancelled: Callable[..., Any]) -> Callable[..., Any]:
    """Run ``function`` on floats, and again in the wider type where ``cancelled(result, *args)``.
    """
    wide = in_wider(function)

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        xs = np.broadcast_arrays(*(x.astype(dtype, copy=False) for x in xs))
        if dtype == "float16":
            return wide(*xs)
        z = np.asarray(function(*xs))
        again = np.asarray(cancelled(z, *xs))
        if again.any():
            z[again] = wide(*(x[again] for x in xs))
        return z

    return run


def exp_sum(a: Any, b: Any) -> Any:
    """Compute exp(a + b) as if a + b were not rounded."""
    s, e = two_sum(a, b)
    return np.exp(s) * growth(e)


def growth(e: Any) -> Any:
    """Compute exp(e) of a rounding error e. Where exp(a) is 0 or infinite, e may be large; the
    result is positive and finite, so that it changes neither.
    """
    return np.maximum(1 + e, e.dtype.type(0.5))


def exp_square(x: Any, c: float) -> Any:
    """Compute exp(c x^2) as if the exponent were not rounded; c is a power of two, or minus one."""
    square, e = two_product(x, x)
    z = np.exp(c * square)
    return z * (1 + c * e)


def horner(coefficients: Any, t: Any) -> Any:
    """Evaluate the polynomial with these coefficients, the constant first."""
    result = np.asarray(coefficients[-1], t.dtype)
    for c in coefficients[-2::-1]:
        result = result * t + np.asarray(c, t.dtype)
    return result


def replace(z: Any, place: Any, function: Callable[..., Any], *xs: Any) -> None:
    """Compute ``z`` anew where ``place`` is true."""
    if place.any():
        z[place] = function(*(x[place] for x in xs))
