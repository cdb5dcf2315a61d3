"""Arithmetic on arrays that keeps the rounding errors, for results exact to the last digits.

The error-free transformations are Knuth's and Dekker's, as in Ogita, Rump and Oishi (2005),
"Accurate sum and dot product".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.ops.elementwise.elemwise import float_rule

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


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run on float64 arrays of one shape, and round to the type of the inputs at the end."""

    def run(*xs: Any) -> Any:
        dtype = float_rule(*(x.dtype.name for x in xs))
        xs = np.broadcast_arrays(*(x.astype(np.float64, copy=False) for x in xs))
        with np.errstate(all="ignore"):
            return np.asarray(function(*xs)).astype(dtype, copy=False)

    return run


def growth(e: Any) -> Any:
    """Compute exp(e) of a rounding error e. Where exp(a) is 0 or infinite, e may be large; the
    result is positive and finite, so that it changes neither.
    """
    return np.maximum(1 + e, e.dtype.type(0.5))


def replace(z: Any, place: Any, function: Callable[..., Any], *xs: Any) -> None:
    """Compute ``z`` anew where ``place`` is true."""
    if place.any():
        z[place] = function(*(x[place] for x in xs))
