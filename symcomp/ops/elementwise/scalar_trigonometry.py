"""Scalar functions of angles: trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import float_rule, real_float_rule, scalar
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import complex, sqrt
from symcomp.ops.numerics import trigonometry
from symcomp.ops.shapes.dimshuffle import DimShuffle

deg2rad = scalar(
    "deg2rad",
    "x",
    "Degrees to radians.",
    np.deg2rad,
    dtype=real_float_rule,
    d=(lambda x, z, g: g * (np.pi / 180),),
)
rad2deg = scalar(
    "rad2deg",
    "x",
    "Radians to degrees.",
    np.rad2deg,
    dtype=real_float_rule,
    d=(lambda x, z, g: g * (180 / np.pi),),
)
sin = scalar(
    "sin", "x", "The sine.", trigonometry.sin, dtype=float_rule, into=trigonometry.sin,
    d=(lambda x, z, g: g * cos(x),),
)  # fmt: skip
cos = scalar(
    "cos", "x", "The cosine.", trigonometry.cos, dtype=float_rule, into=trigonometry.cos,
    d=(lambda x, z, g: -g * sin(x),),
)  # fmt: skip
tan = scalar(
    "tan", "x", "The tangent.", trigonometry.tan, dtype=float_rule, into=trigonometry.tan,
    d=(lambda x, z, g: g * (1 + z * z),),
)  # fmt: skip
arcsin = scalar(
    "arcsin",
    "x",
    "The inverse sine.",
    np.arcsin,
    dtype=float_rule,
    d=(lambda x, z, g: g / sqrt((1 - x) * (1 + x)),),
)
arccos = scalar(
    "arccos",
    "x",
    "The inverse cosine.",
    np.arccos,
    dtype=float_rule,
    d=(lambda x, z, g: -g / sqrt((1 - x) * (1 + x)),),
)
arctan = scalar(
    "arctan",
    "x",
    "The inverse tangent.",
    np.arctan,
    dtype=float_rule,
    d=(lambda x, z, g: g / (1 + x * x),),
)
arctan2 = scalar(
    "arctan2", "y x", "The angle of the point (x, y).", np.arctan2, dtype=real_float_rule,
    d=(lambda y, x, z, g: g * x / (x * x + y * y), lambda y, x, z, g: -g * y / (x * x + y * y)),
)  # fmt: skip
hypot = scalar(
    "hypot", "x y", "sqrt(x*x + y*y) without overflow; its derivative at the origin is 0.",
    np.hypot,
    dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * x / _nonzero(z, x, y), lambda x, y, z, g: g * y / _nonzero(z, x, y),
    ),
)  # fmt: skip
sinh = scalar(
    "sinh", "x", "The hyperbolic sine.", np.sinh, dtype=float_rule, d=(lambda x, z, g: g * cosh(x),)
)
cosh = scalar(
    "cosh",
    "x",
    "The hyperbolic cosine.",
    np.cosh,
    dtype=float_rule,
    d=(lambda x, z, g: g * sinh(x),),
)
tanh = scalar(
    "tanh",
    "x",
    "The hyperbolic tangent.",
    np.tanh,
    dtype=float_rule,
    d=(lambda x, z, g: g * (1 - z * z),),
)
arcsinh = scalar(
    "arcsinh",
    "x",
    "The inverse hyperbolic sine.",
    np.arcsinh,
    dtype=float_rule,
    d=(lambda x, z, g: g / sqrt(x * x + 1),),
)
arccosh = scalar(
    "arccosh",
    "x",
    "The inverse hyperbolic cosine.",
    np.arccosh,
    dtype=float_rule,
    d=(lambda x, z, g: g / (sqrt(x - 1) * sqrt(x + 1)),),
)
arctanh = scalar(
    "arctanh",
    "x",
    "The inverse hyperbolic tangent.",
    np.arctanh,
    dtype=float_rule,
    d=(lambda x, z, g: g / ((1 - x) * (1 + x)),),
)


def _nonzero(z: Any, *legs: Any) -> Any:
    """Return the hypotenuse, 1 where it is 0; it is not if a leg is a number that is not."""
    return z if any(map(_is_nonzero, legs)) else switch(eq(z, 0), 1, z)


def _is_nonzero(x: Any) -> bool:
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        x = x.owner.inputs[0]
    return isinstance(x, TensorConstant) and bool(np.all(x.data != 0))


def complex_from_polar(r: Any, theta: Any) -> TensorVariable:
    """Compute ``r * (cos(theta) + i sin(theta))``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> r = T.dscalar("r")
    >>> T.complex_from_polar(r, 0.0).eval({r: 2.0})
    array(2.+0.j)
    """
    r = as_tensor_variable(r)
    return complex(r * cos(theta), r * sin(theta))


__all__ = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "complex_from_polar",
    "cos", "cosh", "deg2rad", "hypot", "rad2deg", "sin", "sinh", "tan", "tanh",
]  # fmt: skip
