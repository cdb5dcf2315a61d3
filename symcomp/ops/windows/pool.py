"""Pooling for users: Theano's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant, Variable
from symcomp.core.tensor import TensorVariable
from symcomp.errors import NotScalarConstantError, ShapeError
from symcomp.ops.constant_values import get_scalar_constant_value
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.ops.windows.pool_symbolic import symbolic_pool
from symcomp.ops.windows.pooling import MODES, MaxPool, SumPool, ToPositions


def _lengths(name: str, title: str, given: Any, ndim: int, least: int) -> tuple[Any, ...]:
    """Return a length for each axis: an int, or an integer scalar that is known when the function
    runs.
    """
    if isinstance(given, Constant):
        given = given.data.tolist()
    elif isinstance(given, TensorVariable):
        given = tuple(given[i] for i in range(ndim)) if given.ndim else (given,) * ndim
    found = tuple(given) if isinstance(given, Sequence | np.ndarray) else (given,) * ndim
    found = tuple(map(_if_known, found))
    if len(found) != ndim or any(not _is_length(n, least) for n in found):
        raise ValueError(
            f"{name}: {title} is {given!r}; {ndim} ints of at least {least} are needed"
        )
    return tuple(n if isinstance(n, Variable) else int(n) for n in found)


def _if_known(n: Any) -> Any:
    """Return the value of a variable if it is known, else the variable."""
    if not isinstance(n, Variable):
        return n
    try:
        return int(get_scalar_constant_value(n))
    except NotScalarConstantError:
        return n


def _is_length(n: Any, least: int) -> bool:
    if isinstance(n, TensorVariable):
        return n.ndim == 0 and dtypes.is_integer(n.dtype)
    number = isinstance(n, int | float | np.integer | np.floating) and not isinstance(n, bool)
    return number and bool(np.isfinite(n)) and n == int(n) and n >= least


def _are_known(*lengths: Sequence[Any]) -> bool:
    return not any(isinstance(n, Variable) for found in lengths for n in found)


def pooled(
    name: str,
    ndim: int,
    x: Any,
    ws: Any,
    ignore_border: Any,
    stride: Any,
    pad: Any,
    mode: str,
    old: dict[str, Any],
) -> TensorVariable:
    ws = old.get("ds") if ws is None else ws
    stride = old.get("st") if stride is None else stride
    pad = old.get("padding") if old.get("padding") is not None else pad
    if ws is None:
        raise TypeError(f"{name}: ws, the lengths of the windows, is missing")
    x = as_tensor_variable(x)
    if x.ndim < ndim:
        raise ShapeError(f"{name}: input is {x.type}; it must have {ndim} axes at least")
    window = _lengths(name, "ws", ws, ndim, 1)
    strides = window if stride is None else _lengths(name, "stride", stride, ndim, 1)
    padding = _lengths(name, "pad", pad, ndim, 0)
    if mode != "max" and mode not in MODES:
        raise ValueError(f"{name}: mode is {mode!r}; 'max' or one of {MODES} is needed")
    if dtypes.is_discrete(x.dtype) and mode.startswith("average"):
        x = cast_to(x, dtypes.to_float(x.dtype))
    if not _are_known(window, strides, padding):
        return symbolic_pool(name, x, window, strides, padding, not ignore_border, mode)
    if any(padding) and not ignore_border:
        raise ValueError(f"{name}: pad is {pad}; padding goes with ignore_border=True alone")
    if any(p >= k for p, k in zip(padding, window, strict=True)):
        raise ValueError(f"{name}: pad is {pad}; it must be smaller than ws, {window}")
    if mode == "max":
        return MaxPool(window, strides, padding, not ignore_border)(x)[0]
    return SumPool(window, strides, padding, not ignore_border, mode)(x)


def pool_2d(
    input: Any,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> TensorVariable:
    """Pool each window of an image, over the last two axes, to one number.

    Parameters
    ----------
    input : tensor of at least 2 axes
    ws : int or pair of int or integer scalar, or integer vector
        The rows and columns of a window.
    ignore_border : bool, optional
        True: drop a partial window at the end. By default it is one more, smaller window.
    stride : int or pair of int, optional
        The step between adjacent windows; by default ``ws``.
    pad : int or pair of int
        The number of elements added on both sides of the image, only with ``ignore_border``; they
        are never the largest, and count as zeros in sums.
    mode : {"max", "sum", "average_inc_pad", "average_exc_pad"}
        The mean is of the elements within the padded image, or within the image.
    ds, st, padding
        Old names of ``ws``, ``stride`` and ``pad``.

    Returns
    -------
    TensorVariable
        For "max", the gradient goes to the first of equally large elements.

    Raises
    ------
    ShapeError
        If no window fits.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.signal.pool.pool_2d(x, (2, 2)).eval({x: np.arange(9.0).reshape(3, 3)})
    array([[4., 5.],
           [7., 8.]])
    """
    old = {"ds": ds, "st": st, "padding": padding}
    return pooled("pool_2d", 2, input, ws, ignore_border, stride, pad, mode, old)


def pool_3d(
    input: Any,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> TensorVariable:
    """Pool over the last three axes; see ``pool_2d``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.arange(8.0).reshape((2, 2, 2))
    >>> T.signal.pool.pool_3d(x, (2, 2, 2), ignore_border=True).eval()
    array([[[7.]]])
    """
    old = {"ds": ds, "st": st, "padding": padding}
    return pooled("pool_3d", 3, input, ws, ignore_border, stride, pad, mode, old)


def max_pool_2d(
    input: Any,
    ds: Any,
    ignore_border: bool | None = None,
    st: Any = None,
    padding: Any = (0, 0),
    mode: str = "max",
) -> TensorVariable:
    """Call ``pool_2d`` by the old names of its arguments.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.signal.pool.max_pool_2d(T.arange(4.0).reshape((2, 2)), (2, 2), ignore_border=True).eval()
    array([[3.]])
    """
    return pool_2d(input, ds, ignore_border, st, padding, mode)


def max_pool_2d_same_size(input: Any, patch_size: Any) -> TensorVariable:
    """Return ``input`` with all elements but the largest of each window set to 0.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.signal.pool.max_pool_2d_same_size(x, (2, 2)).eval({x: np.arange(8.0).reshape(2, 4)})
    array([[0., 0., 0., 0.],
           [0., 5., 0., 7.]])
    """
    x = as_tensor_variable(input)
    window = _lengths("max_pool_2d_same_size", "patch_size", patch_size, 2, 1)
    if not _are_known(window):
        raise TypeError(f"max_pool_2d_same_size: patch_size is {patch_size}; 2 ints are needed")
    z, where = MaxPool(window, window, (0, 0), True)(x)
    return ToPositions(2)(z, where, *shape_tuple(x)[x.ndim - 2 :])


__all__ = [
    "max_pool_2d", "max_pool_2d_same_size", "MaxPool", "pool_2d", "pool_3d", "SumPool",
]  # fmt: skip
