"""Shapes changed, stated and checked, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_int, as_tensor_variable
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.ops.shapes.shape import (
    ForgetLengths,
    ShapeI,
    SpecifyShape,
    normalize_axes,
    normalize_axis,
    product_of,
    reshape,
    shape_tuple,
)


def shape_i(x: Any, axis: int) -> TensorVariable:
    """Return the length of one axis of ``x``, an int64 scalar.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.shape_i([[1.0, 2.0, 3.0]], 1).eval()
    array(3)
    """
    x = as_tensor_variable(x)
    return ShapeI(normalize_axis("shape_i", axis, x.ndim))(x)


def flatten(x: Any, ndim: int = 1, outdim: int | None = None) -> TensorVariable:
    """Return ``x`` with its last axes joined, so that ``ndim`` axes remain.

    Parameters
    ----------
    x : tensor_like
    ndim : int
        At least 1.
    outdim : int, optional
        The older name of ``ndim``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> x.flatten(2).eval({x: [[[1, 2], [3, 4]]]})
    array([[1., 2., 3., 4.]])
    """
    x = as_tensor_variable(x)
    ndim = as_int(ndim if outdim is None else outdim, "flatten", "ndim")
    if ndim < 1 or ndim > max(x.ndim, 1):
        raise ShapeError(
            f"flatten: ndim={ndim} is not between 1 and the {x.ndim} axes of {x} ({x.type})"
        )
    if ndim == x.ndim:
        return x
    lengths = shape_tuple(x)
    tail = product_of(lengths[ndim - 1 :])
    return reshape(x, [*lengths[: ndim - 1], tail])


def specify_shape(x: Any, shape: Any) -> TensorVariable:
    """Return ``x`` with static lengths; they are checked when the function runs.

    Parameters
    ----------
    x : tensor_like
    shape : sequence of int or None
        None: no claim about that axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.specify_shape(x, (None, 3)).type
    TensorType(float64, (None, 3))
    """
    x = as_tensor_variable(x)
    if isinstance(shape, TensorConstant):
        shape = shape.data
    if not isinstance(shape, list | tuple | np.ndarray):
        raise TypeError(
            f"specify_shape: shape is {shape!r:.80}; for {x} ({x.type}) a sequence of {x.ndim} "
            "lengths is needed, ints or None"
        )
    lengths = tuple(
        None if n is None else as_int(n, "specify_shape", f"the length of axis {a} in shape", 0)
        for a, n in enumerate(shape)
    )
    if len(lengths) != x.ndim:
        raise ShapeError(f"specify_shape: {lengths} for {x} with {x.ndim} axes ({x.type})")
    if all(n is None or n == m for n, m in zip(lengths, x.type.shape, strict=True)):
        return x
    return SpecifyShape(lengths)(x)


def addbroadcast(x: Any, *axes: int) -> TensorVariable:
    """Return ``x``, with ``axes`` known to have length 1, so that they broadcast; checked when the
    function runs.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.addbroadcast(T.dmatrix("x"), 1).type
    TensorType(float64, (None, 1))
    """
    x = as_tensor_variable(x)
    wanted = normalize_axes("addbroadcast", axes, x.ndim)
    return specify_shape(x, [1 if a in wanted else None for a in range(x.ndim)])


def unbroadcast(x: Any, *axes: int) -> TensorVariable:
    """Return ``x``, with the lengths of ``axes`` forgotten, so that they do not broadcast.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.unbroadcast(T.drow("x"), 0).type
    TensorType(float64, (None, None))
    """
    x = as_tensor_variable(x)
    wanted = normalize_axes("unbroadcast", axes, x.ndim)
    forget = tuple(a for a in wanted if x.type.shape[a] == 1)
    return ForgetLengths(forget)(x) if forget else x


def patternbroadcast(x: Any, broadcastable: Sequence[bool]) -> TensorVariable:
    """Return ``x`` with just the axes broadcastable that ``broadcastable`` says.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.patternbroadcast(T.dmatrix("x"), (False, True)).type
    TensorType(float64, (None, 1))
    """
    x = as_tensor_variable(x)
    if not isinstance(broadcastable, Sequence | np.ndarray):
        raise TypeError(
            f"patternbroadcast: broadcastable is {broadcastable!r:.80}; {x.ndim} bools are needed"
        )
    if len(broadcastable) != x.ndim:
        raise ShapeError(f"patternbroadcast: {tuple(broadcastable)} for {x} with {x.ndim} axes")
    x = addbroadcast(x, *[a for a, b in enumerate(broadcastable) if b])
    return unbroadcast(x, *[a for a, b in enumerate(broadcastable) if not b])


def cpu_contiguous(x: Any) -> TensorVariable:
    """Return ``x``, laid out in row-major order in memory.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.cpu_contiguous([1.0, 2.0]).eval()
    array([1., 2.])
    """
    return Contiguous()(as_tensor_variable(x))


__all__ = [
    "addbroadcast", "cpu_contiguous", "flatten", "patternbroadcast", "shape_i", "specify_shape",
    "unbroadcast",
]  # fmt: skip
