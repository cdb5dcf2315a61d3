"""Rearranging axes: transpose, swap, move, insert and drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_rank, as_tensor_variable, with_rank
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import normalize_axes, normalize_axis


def transpose(x: Any, axes: Sequence[int] | None = None) -> TensorVariable:
    """Return ``x`` with its axes permuted; reversed by default. A view.

    Parameters
    ----------
    x : tensor_like
    axes : sequence of int, optional
        Output axis i is input axis ``axes[i]``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.transpose(x).eval({x: [[1, 2]]})
    array([[1.],
           [2.]])
    """
    x = as_tensor_variable(x)
    if axes is None:
        return dimshuffle(x, *reversed(range(x.ndim)))
    if not isinstance(axes, Sequence | np.ndarray) or isinstance(axes, str):
        raise TypeError(f"transpose: axes is {axes!r:.80}; a permutation of the axes is needed")
    order = [normalize_axis("transpose", a, x.ndim) for a in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            f"transpose: {tuple(axes)} is no permutation of the {x.ndim} axes of {x} ({x.type})"
        )
    return dimshuffle(x, *order)


def matrix_transpose(x: Any) -> TensorVariable:
    """Return ``x`` with its last two axes exchanged.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.matrix_transpose(T.dtensor3("x")).eval({"x": [[[1.0, 2.0]]]})
    array([[[1.],
            [2.]]])
    """
    x = as_tensor_variable(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: {x} ({x.type}) has fewer than 2 axes")
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> TensorVariable:
    """Return ``x`` with two axes exchanged.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.swapaxes(T.tensor("x", shape=(2, 3, 4)), 0, 2).type
    TensorType(float64, (4, 3, 2))
    """
    x = as_tensor_variable(x)
    a, b = (normalize_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return dimshuffle(x, *order)


def moveaxis(x: Any, source: Any, destination: Any) -> TensorVariable:
    """Return ``x`` with the axes ``source`` moved to the places ``destination``; the others keep
    their order.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.moveaxis(T.tensor("x", shape=(2, 3, 4)), 0, -1).type
    TensorType(float64, (3, 4, 2))
    """
    x = as_tensor_variable(x)
    sources = source if isinstance(source, list | tuple) else [source]
    places = destination if isinstance(destination, list | tuple) else [destination]
    if len(sources) != len(places):
        raise ShapeError(f"moveaxis: {len(sources)} sources but {len(places)} destinations")
    normalize_axes("moveaxis", sources, x.ndim)
    normalize_axes("moveaxis", places, x.ndim)
    moved = [normalize_axis("moveaxis", a, x.ndim) for a in sources]
    order = [a for a in range(x.ndim) if a not in moved]
    pairs = zip((normalize_axis("moveaxis", a, x.ndim) for a in places), moved, strict=True)
    for place, axis in sorted(pairs):
        order.insert(place, axis)
    return dimshuffle(x, *order)


def shape_padleft(x: Any, n_ones: int = 1) -> TensorVariable:
    """Return ``x`` with ``n_ones`` axes of length 1 in front.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.shape_padleft(T.dvector("x")).type
    TensorType(float64, (1, None))
    """
    x = as_tensor_variable(x)
    return dimshuffle(x, *["x"] * as_rank(n_ones, "shape_padleft", "n_ones"), *range(x.ndim))


def shape_padright(x: Any, n_ones: int = 1) -> TensorVariable:
    """Return ``x`` with ``n_ones`` axes of length 1 behind.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.shape_padright(T.dvector("x"), 2).type
    TensorType(float64, (None, 1, 1))
    """
    x = as_tensor_variable(x)
    return dimshuffle(x, *range(x.ndim), *["x"] * as_rank(n_ones, "shape_padright", "n_ones"))


def shape_padaxis(x: Any, axis: int) -> TensorVariable:
    """Return ``x`` with an axis of length 1 inserted, which is ``axis`` of the result.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.shape_padaxis(T.dvector("x"), 1).type
    TensorType(float64, (None, 1))
    """
    return expand_dims(x, axis)


def expand_dims(x: Any, axis: Any) -> TensorVariable:
    """Return ``x`` with axes of length 1 inserted.

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int
        The positions of the new axes in the result.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.expand_dims(T.dvector("x"), -1).type
    TensorType(float64, (None, 1))
    """
    x = as_tensor_variable(x)
    several = axis if isinstance(axis, list | tuple | range) else [axis]
    ndim = x.ndim + len(several)
    new = normalize_axes("expand_dims", several, ndim)
    old = iter(range(x.ndim))
    return dimshuffle(x, *["x" if a in new else next(old) for a in range(ndim)])


def squeeze(x: Any, axis: Any = None) -> TensorVariable:
    """Return ``x`` without axes of length 1.

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
        The axes to drop; their lengths must be 1 when the function runs. By default all known to
        have length 1.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.squeeze(T.tensor("x", shape=(1, None, 1))).type
    TensorType(float64, (None,))
    """
    x = as_tensor_variable(x)
    if axis is None:
        dropped = tuple(a for a, n in enumerate(x.type.shape) if n == 1)
    else:
        dropped = normalize_axes("squeeze", axis, x.ndim)
    return dimshuffle(x, *[a for a in range(x.ndim) if a not in dropped])


def atleast_Nd(x: Any, n: int = 1, left: bool = True) -> TensorVariable:
    """Return ``x`` with axes of length 1 added, in front or behind, up to ``n`` axes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.atleast_Nd([1.0, 2.0], n=3).type
    TensorType(float64, (1, 1, 2))
    """
    x, n = as_tensor_variable(x), as_rank(n, "atleast_Nd", "n")
    missing = max(n - x.ndim, 0)
    return with_rank(x, max(n, x.ndim)) if left else shape_padright(x, missing)


def atleast_1d(x: Any) -> TensorVariable:
    """Return ``x`` with at least 1 axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.atleast_1d(3.0).eval()
    array([3.])
    """
    return atleast_Nd(x, 1)


def atleast_2d(x: Any) -> TensorVariable:
    """Return ``x`` with at least 2 axes, added in front.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.atleast_2d([1.0, 2.0]).eval()
    array([[1., 2.]])
    """
    return atleast_Nd(x, 2)


def atleast_3d(x: Any) -> TensorVariable:
    """Return ``x`` with at least 3 axes, placed as NumPy does: (1, n, 1), (n, m, 1).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.atleast_3d([1.0, 2.0]).type
    TensorType(float64, (1, 2, 1))
    """
    x = as_tensor_variable(x)
    x = shape_padleft(x) if x.ndim == 1 else x
    return atleast_Nd(x, 3, left=x.ndim == 0)


def dimshuffle(x: TensorVariable, *order: Any) -> TensorVariable:
    """Permute the axes of ``x``, drop axes of length 1, insert axes of length 1.

    Parameters
    ----------
    x : TensorVariable
    *order : int or "x", or one sequence of them
        Output axis i is input axis ``order[i]``, or a new axis of length 1 for ``"x"``. Axes that
        are not named
        are dropped.

    Raises
    ------
    ShapeError
        If an axis does not exist, is named twice, or is dropped but longer than 1.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> x.dimshuffle(1, "x", 0).eval({x: [[1, 2, 3], [4, 5, 6]]}).shape
    (3, 1, 2)
    """
    if len(order) == 1 and isinstance(order[0], list | tuple):
        order = tuple(order[0])
    checked: list[int | str] = []
    for axis in order:
        if axis == "x":
            checked.append("x")
            continue
        whole = isinstance(axis, int | np.integer) and not isinstance(axis, bool)
        if not whole or not -x.ndim <= axis < x.ndim:
            raise ShapeError(
                f"dimshuffle: {axis!r} is no axis of {x} with {x.ndim} axes ({x.type})"
            )
        axis = int(axis) % x.ndim
        if axis in checked:
            raise ShapeError(f"dimshuffle: axis {axis} is named twice in {order}")
        checked.append(axis)
    if checked == list(range(x.ndim)):
        return x
    return DimShuffle(x.ndim, tuple(checked))(x)


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "atleast_Nd", "dimshuffle", "expand_dims",
    "matrix_transpose", "moveaxis", "shape_padaxis", "shape_padleft", "shape_padright", "squeeze",
    "swapaxes", "transpose",
]  # fmt: skip
