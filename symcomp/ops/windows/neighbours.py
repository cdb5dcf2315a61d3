"""Parts of images as rows of a matrix, and the inverse."""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.indexing.gather import take
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import as_lengths, product_of, reshape, shape_tuple
from symcomp.ops.windows.geometry import Geometry

MODES = ("valid", "ignore_borders", "wrap_centered", "half", "full")


def images2neibs(
    ten4: Any, neib_shape: Any, neib_step: Any = None, mode: str = "valid"
) -> TensorVariable:
    """Return all parts of one shape of images, each as a row of a matrix.

    Parameters
    ----------
    ten4 : tensor of 4 axes
        (images, channels, rows, columns).
    neib_shape : pair of int or integer scalar
        The rows and columns of a part.
    neib_step : pair, optional
        The step between adjacent parts; by default ``neib_shape``.
    mode : {"valid", "ignore_borders", "wrap_centered", "half", "full"}
        "valid": parts must cover the image exactly. "ignore_borders": elements left over at the end
        are dropped. "wrap_centered": parts are centred at each element and wrap around. "half",
        "full": the image is padded with zeros by half a part, or by a part minus one element.

    Returns
    -------
    TensorVariable
        (images * channels * parts, elements of a part).

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x = T.dtensor4("x")
    >>> rows = T.nnet.neighbours.images2neibs(x, (2, 2))
    >>> rows.eval({x: np.arange(8.0).reshape(1, 1, 2, 4)})
    array([[0., 1., 4., 5.],
           [2., 3., 6., 7.]])
    """
    x = as_tensor_variable(ten4)
    if x.ndim != 4:
        raise ShapeError(f"images2neibs: ten4 is {x.type}; it must have 4 axes")
    if mode not in MODES:
        raise ValueError(f"images2neibs: mode is {mode!r}; one of {MODES} is needed")
    shape = _pair("images2neibs", "neib_shape", neib_shape)
    step = shape if neib_step is None else _pair("images2neibs", "neib_step", neib_step)
    if mode in ("half", "full"):
        x = _with_zeros(x, mode, shape)
    lengths = shape_tuple(x)[2:]
    places = [_places(n, k, s, mode) for n, k, s in zip(lengths, shape, step, strict=True)]
    parts = take(take(x, places[1], axis=3), places[0], axis=2)
    return reshape(dimshuffle(parts, 0, 1, 2, 4, 3, 5), (-1, product_of(shape)))


def _pair(name: str, argument: str, given: Any) -> list[TensorVariable]:
    """Return the lengths of a window, or its steps: along rows and columns."""
    found = as_lengths(given, name, 1)
    if len(found) != 2:
        raise ShapeError(f"{name}: {argument} is {given!r:.80}; two lengths are needed")
    return found


def _with_zeros(x: TensorVariable, mode: str, shape: Any) -> TensorVariable:
    geometry = Geometry((mode, mode), (1, 1), (1, 1))
    pads = [geometry.pads(a, k) for a, k in enumerate(shape)]
    lead, lengths = shape_tuple(x)[:2], shape_tuple(x)[2:]
    longer = [n + b + a for n, (b, a) in zip(lengths, pads, strict=True)]
    inner = tuple(slice(b, b + n) for n, (b, _) in zip(lengths, pads, strict=True))
    return set_subtensor(zeros((*lead, *longer), x.dtype)[(..., *inner)], x)


def _places(n: Any, k: Any, step: Any, mode: str) -> TensorVariable:
    """Return the rows, or columns, of the image in each part: (parts, elements)."""
    n, k = as_tensor_variable(n), as_tensor_variable(k)
    within = dimshuffle(arange(k), "x", 0)
    if mode == "wrap_centered":
        n = Assert("images2neibs: a part of wrap_centered must have an odd length")(n, eq(k % 2, 1))
        first = dimshuffle(arange((n + step - 1) // step) * step, 0, "x")
        return (first + within - k // 2) % n
    if mode == "valid":
        message = "images2neibs: the parts do not cover the image: pass mode='ignore_borders'"
        n = Assert(message)(n, eq((n - k) % step, 0))
    return dimshuffle(arange((n - k) // step + 1) * step, 0, "x") + within


def neibs2images(
    neibs: Any, neib_shape: Any, original_shape: Any, mode: str = "valid"
) -> TensorVariable:
    """Return the images of which ``images2neibs`` with adjacent parts made ``neibs``.

    Parameters
    ----------
    neibs : matrix
    neib_shape : pair of int or integer scalar
    original_shape : sequence of 4 int or integer scalars
        The shape of the images.
    mode : {"valid", "ignore_borders"}
        With "ignore_borders", the dropped elements are 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> parts = T.nnet.images2neibs(T.arange(4.0).reshape((1, 1, 2, 2)), (1, 2))
    >>> T.nnet.neibs2images(parts, (1, 2), (1, 1, 2, 2)).eval()[0, 0]
    array([[0., 1.],
           [2., 3.]])
    """
    if mode not in ("valid", "ignore_borders"):
        raise ValueError(f"neibs2images: mode is {mode!r}; 'valid' or 'ignore_borders'")
    rows, columns = _pair("neibs2images", "neib_shape", neib_shape)
    b, c, height, width = as_lengths(original_shape, "neibs2images")
    down, along = height // rows, width // columns
    parts = reshape(as_tensor_variable(neibs), (b, c, down, along, rows, columns))
    images = reshape(dimshuffle(parts, 0, 1, 2, 4, 3, 5), (b, c, down * rows, along * columns))
    if mode == "valid":
        return reshape(images, (b, c, height, width))
    whole = zeros((b, c, height, width), images.dtype)
    return set_subtensor(whole[:, :, : down * rows, : along * columns], images)


__all__ = ["images2neibs", "neibs2images"]
