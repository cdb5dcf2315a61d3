"""Scalar functions against mpmath: how far they are off, in units in the last place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.tests.exact import units_off

# The largest error claimed, in units in the last place of the result's dtype.
CLAIM = 4.0
# At points drawn anew each time, so that the worst of millions fails no test.
CLAIM_ANYWHERE = 5.0
DIGITS = 50


def beside(*values: float) -> list[float]:
    """Return the values, and the floats next to them, where branches meet."""
    return [
        float(w) for v in values for w in (np.nextafter(v, -np.inf), v, np.nextafter(v, np.inf))
    ]


def floats(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats in a range, also tiny ones if 0 is in it."""
    return st.floats(low, high, allow_nan=False)


def lists(*ranges: tuple[float, float]) -> st.SearchStrategy[list[float]]:
    """Draw some points from all ranges."""
    return st.lists(st.one_of(*(floats(*r) for r in ranges)), min_size=1, max_size=20)


def check_values(
    row: Any,
    exact: Callable[..., Any],
    *columns: Sequence[float],
    dtype: str = "float64",
    digits: int = DIGITS,
    claim: float = CLAIM,
) -> None:
    """Assert that a row (or one of this name) is right to ``claim`` units at all points.

    ``exact`` is called with numbers of ``digits`` digits.
    """
    row = ROWS[row]() if isinstance(row, str) else row
    arrays = [np.asarray(c, dtype) for c in columns]
    with np.errstate(all="ignore"):
        got = Elemwise(row).perform(*arrays)
    assert got.dtype == dtype, f"{row.name} of {dtype} gave {got.dtype}"
    for place, z in enumerate(got):
        point = [float(a[place]) for a in arrays]
        with mpmath.workdps(digits):
            truth = exact(*map(mpmath.mpf, point))
            off = units_off(z, truth)
        assert off <= claim, (
            f"{row.name}{tuple(point)} gave {z!r}, not {mpmath.nstr(truth, 20)}: {off:.3g} units"
        )


def values_at(name: str, *points: Any) -> list[float]:
    """Return the values of a row at some points, as floats."""
    with np.errstate(all="ignore"):
        return [float(z) for z in ROWS[name]().function(*(np.asarray(p, float) for p in points))]
