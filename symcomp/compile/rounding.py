"""Decide whether two computations agree up to rounding.

Beyond a small tolerance, the noise of the first way is measured: it is computed again several times
with every float changed at random by about its last digit (Monte Carlo arithmetic: Parker, "Monte
Carlo Arithmetic", UCLA 1997; CESTAC: Vignes, 1974). Values that differ by no more than this noise
agree: differences are that large where digits cancel, or where an overflow or a comparison depends
on the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.sparse_values import (
    describe_sparse_value,
    is_sparse_value,
    numbers_of,
    places_of,
    with_numbers,
)

# Relative differences accepted without measuring.
TOLERANCE = {"bfloat16": 4e-2, "float16": 4e-3, "float32": 1e-5, "complex64": 1e-5}
OTHERWISE = 1e-10
# How often the noise is measured, and the largest accepted multiple of it.
TRIALS, MARGIN = 6, 20.0

Perturb = Callable[[Any], Any]


def perturbation(seed: int) -> Perturb:
    """Return a function that changes every float of an array by up to one unit in the last place.
    """
    rng = np.random.default_rng(seed)

    def perturb(value: Any) -> Any:
        numbers = numbers_of(value)
        if numbers is None or dtypes.kind(numbers.dtype) not in "fc":
            return value
        shift = rng.uniform(-1.0, 1.0, numbers.shape) * dtypes.limits(numbers.dtype).eps
        return with_numbers(value, np.asarray(numbers * (1 + shift), numbers.dtype))

    return perturb


def disagreement(
    expected: Any, found: Any, again: Callable[[Perturb], Any], removes_overflow: bool = False
) -> str:
    """Describe how ``found`` differs from ``expected``; empty if it does not.

    Parameters
    ----------
    expected, found : values
    again : callable
        Computes ``expected`` again, with every value on the way given to its argument.
    removes_overflow : bool
        If true, a number may replace an infinity or NaN.
    """
    if is_sparse_value(expected) and is_sparse_value(found):
        places = _different_places(expected, found)
        return places or disagreement(
            expected.data, found.data, lambda perturb: again(perturb).data, removes_overflow
        )
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        return ""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return (
            f"a {expected.dtype} array of shape {expected.shape} was expected, got a "
            f"{found.dtype} array of shape {found.shape}"
        )
    far = _differs(expected, found, removes_overflow)
    if not far.any():
        return ""
    with np.errstate(all="ignore"):
        noise = np.max([_gap(again(perturbation(k)), expected) for k in range(TRIALS)], axis=0)
        far &= ~(_gap(found, expected) <= MARGIN * noise)
    if not far.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(far)[0])
    return (
        f"{int(far.sum())} of {far.size} elements differ; at {where} {expected[where]!r} was "
        f"expected, got {found[where]!r}"
    )


def _different_places(expected: Any, found: Any) -> str:
    """Describe how the patterns of two sparse matrices differ; empty if they do not."""
    same = (expected.format, expected.shape) == (found.format, found.shape) and all(
        map(np.array_equal, places_of(expected), places_of(found))
    )
    if same:
        return ""
    wanted, got = map(describe_sparse_value, (expected, found))
    return f"{wanted}, was expected, got {got}, with another pattern"


def _differs(expected: Any, found: Any, removes_overflow: bool) -> Any:
    """Tell where the two differ by more than the tolerance."""
    if dtypes.kind(expected.dtype) not in "fc":
        return expected != found
    rtol = TOLERANCE.get(expected.dtype.name, OTHERWISE)
    with np.errstate(all="ignore"):
        tiny = dtypes.limits(found.dtype).tiny
        close = np.abs(found - expected) <= rtol * np.abs(expected) + tiny
    close |= (found == expected) | (np.isnan(found) & np.isnan(expected))
    if removes_overflow:
        close |= ~np.isfinite(expected) & ~np.isnan(found)
    return ~close


def _gap(a: Any, b: Any) -> Any:
    """Return the distance of two arrays; 0 where both are the same infinity or NaN."""
    if dtypes.kind(a.dtype) not in "fc":
        return np.where(a == b, 0.0, np.inf)
    gap = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
