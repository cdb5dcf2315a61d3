"""Polynomials by pieces: splines, linear interpolation, steps."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import clip, eq, gt, invert, lt, or_, switch
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.reductions.functions import any as any_
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.ops.sorting.functions import searchsorted

OUTSIDE = ("extend", "zero", "raise", "clamp")


def piecewise_polynomial(
    x: Any, breaks: Any, coefficients: Any, outside: str = "extend"
) -> TensorVariable:
    """Evaluate a polynomial that is another one between each two breaks, as SciPy's ``PPoly``.

    z = sum_j c[j, i] (x - b[i])^(d - j), with the i for which b[i] <= x < b[i + 1].

    Parameters
    ----------
    x : tensor_like
        Real.
    breaks : vector
        b, ascending, of length m + 1.
    coefficients : matrix
        c, (d + 1, m), of degree d; the highest power first.
    outside : {"extend", "zero", "raise", "clamp"}
        Before the first break and after the last one: the nearest piece goes on; z is 0; it is an
        error; or z is that at the nearest break.

    Returns
    -------
    TensorVariable
        Of x's shape; float64 for integers. At a break the derivative by x is that of the piece on
        its right, at the last one of that on its left.

    Raises
    ------
    ShapeError
        If breaks or coefficients have another number of axes, or lengths that do not fit.
    DTypeError
        If one of the three is complex.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> tent = T.piecewise_polynomial(x, [0, 1, 3], [[2, -1], [0, 2]], "zero")
    >>> tent.eval({x: [-1, 0.5, 1, 2, 4]})
    array([0., 1., 2., 1., 0.])
    """
    if outside not in OUTSIDE:
        known = ", ".join(map(repr, OUTSIDE))
        raise ValueError(f"piecewise_polynomial: outside is {outside!r}; it must be one of {known}")
    x, b, c, degree = _checked(x, breaks, coefficients)
    first, last = b[0], b[-1]
    beyond = or_(lt(x, first), gt(x, last))
    if outside == "raise":
        complaint = "piecewise_polynomial: an element of x lies before the first break or after the"
        x = Assert(f"{complaint} last one", ValueError)(x, invert(any_(beyond)))
    if outside == "clamp":
        x = switch(lt(x, first), first, switch(gt(x, last), last, x))
    place = clip(searchsorted(b, x, "right") - 1, 0, shape_tuple(b)[0] - 2)
    step = x - getitem(b, place)
    z = getitem(c, (0, place))
    for power in range(1, degree + 1):
        z = z * step + getitem(c, (power, place))
    return switch(beyond, cast_to(as_tensor_variable(0), z.dtype), z) if outside == "zero" else z


def _checked(*given: Any) -> tuple[TensorVariable, TensorVariable, TensorVariable, int]:
    """Return x, breaks and coefficients in one floating dtype, and the degree."""
    x, b, c = map(as_tensor_variable, given)
    name = "piecewise_polynomial"
    for title, v, ndim in (("breaks", b, 1), ("coefficients", c, 2)):
        if v.ndim != ndim:
            kind = "vector" if ndim == 1 else "matrix"
            raise ShapeError(f"{name}: {title} is {v.type}; a {kind} is needed")
    rows = c.type.shape[0]
    if not rows:
        raise ShapeError(
            f"{name}: coefficients ({c.type}) must have a known number of rows, at least one: "
            "name it by specify_shape"
        )
    n, m = b.type.shape[0], c.type.shape[1]
    if (n is not None and n < 2) or (n is not None and m is not None and n != m + 1):
        raise ShapeError(
            f"{name}: {n} breaks for {m} columns of coefficients; one more is needed, at least 2"
        )
    if n is None or m is None:
        fits = eq(shape_tuple(b)[0], shape_tuple(c)[1] + 1)
        c = Assert(f"{name}: there must be one more break than columns of coefficients")(c, fits)
    kind = dtypes.upcast(x.dtype, b.dtype, c.dtype)
    kind = "float64" if dtypes.is_discrete(kind) else kind
    if dtypes.is_complex(kind):
        raise DTypeError(f"{name}: {x.type}, {b.type} and {c.type} must be real")
    return cast_to(x, kind), cast_to(b, kind), cast_to(c, kind), rows - 1


__all__ = ["piecewise_polynomial"]
