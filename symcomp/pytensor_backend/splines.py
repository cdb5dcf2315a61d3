"""Splines of SciPy, as PyMC's interpolated distributions have them."""

from __future__ import annotations

from typing import Any

import numpy as np

import symcomp.tensor as T
from symcomp.lazy import lazy_module
from symcomp.ops.convert import cast_to
from symcomp.pytensor_backend.dispatch import OF_LIBRARIES

interpolate = lazy_module("scipy.interpolate")  # slow to import, and rarely needed

#: The meaning of SciPy's ``ext`` outside of the outermost knots.
OUTSIDE = ("extend", "zero", "raise", "clamp")


def _spline(op: Any, node: Any, x: Any) -> Any:
    """Evaluate the spline of PyMC's ``SplineWrapper``; NotImplemented if it is not SciPy's own."""
    spline = op.spline
    is_own = isinstance(spline, interpolate.UnivariateSpline)
    if not is_own or spline.ext not in range(len(OUTSIDE)):
        return NotImplemented
    knots, c = spline.get_knots(), spline.get_coeffs()
    degree = len(c) - len(knots) + 1
    ends = np.repeat(knots[[0, -1]], degree).reshape(2, degree)
    pieces = interpolate.PPoly.from_spline((np.concatenate([ends[0], knots, ends[1]]), c, degree)).c
    pieces = pieces[:, degree : pieces.shape[1] - degree]
    wide = np.diff(knots) > 0  # knots that stand several times have nothing between them
    breaks = np.append(knots[:-1][wide], knots[-1])
    x = cast_to(x, "float64")
    return T.piecewise_polynomial(x, breaks, pieces[:, wide], OUTSIDE[spline.ext])


OF_LIBRARIES["pymc.distributions.dist_math", "SplineWrapper"] = _spline
