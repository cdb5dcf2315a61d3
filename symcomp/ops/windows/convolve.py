"""Convolution for users: Theano's functions, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_int, as_tensor_variable, cast_to, constant_scalar
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import as_lengths
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.geometry import Geometry, Padding
from symcomp.ops.windows.unshared import convolve_unshared, unshared_inputs, unshared_kernels

MODES = ("valid", "full", "half")


def read_geometry(
    name: str, border_mode: Any, subsample: Any, filter_dilation: Any, ndim: int
) -> Geometry:
    """Return the geometry given by a user's arguments.

    Raises
    ------
    ValueError
        If a part of it is none.
    """
    return Geometry(
        _padding(name, border_mode, ndim),
        _steps(name, "subsample", subsample, ndim),
        _steps(name, "filter_dilation", filter_dilation, ndim),
    )


def _is_step(n: Any) -> bool:
    number = isinstance(n, int | float | np.integer | np.floating) and not isinstance(n, bool)
    return number and bool(np.isfinite(n)) and n == int(n) and n >= 1


def _steps(name: str, title: str, given: Any, ndim: int) -> tuple[int, ...]:
    found = tuple(given) if isinstance(given, Sequence) else (given,) * ndim
    if len(found) != ndim or not all(_is_step(n) for n in found):
        raise ValueError(f"{name}: {title} is {given!r}; {ndim} positive ints are needed")
    return tuple(int(n) for n in found)


def _padding(name: str, given: Any, ndim: int) -> tuple[Padding, ...]:
    parts = list(given) if isinstance(given, tuple | list) else [given] * ndim
    if len(parts) != ndim:
        raise ValueError(f"{name}: border_mode is {given!r}; one entry for each of {ndim} axes")
    found: list[Padding] = []
    for part in parts:
        pair = part if isinstance(part, tuple | list) else (part, part)
        if isinstance(part, str) and part in MODES:
            found.append(part)
        elif len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair):
            found.append((pair[0], pair[1]))
        else:
            raise ValueError(
                f"{name}: border_mode is {given!r}; 'valid', 'full', 'half', an int that is not "
                "negative, or for each axis one of them or a pair (before, after) is needed"
            )
    return tuple(found)


def _with_shape(name: str, title: str, x: Any, shape: Any) -> TensorVariable:
    """Return ``x`` with the static lengths that the user gives; None gives none."""
    x = as_tensor_variable(x)
    if shape is None:
        return x
    if len(shape) != x.ndim:
        raise ShapeError(
            f"{name}: {title} is {tuple(shape)}, of {len(shape)} lengths, for {x.type}"
        )
    known = [n if n is None else int(constant_scalar(n)) for n in shape]
    for axis, (n, m) in enumerate(zip(known, x.type.shape, strict=True)):
        if n is not None and m is not None and n != m:
            raise ShapeError(f"{name}: {title} says {n} for axis {axis} of {x} ({x.type})")
    return specify_shape(x, known) if known != list(x.type.shape) else x


def _turned(w: TensorVariable, ndim: int) -> TensorVariable:
    return getitem(w, (..., *[slice(None, None, -1)] * ndim))


def _common(*xs: TensorVariable) -> list[TensorVariable]:
    kind = dtypes.upcast(*(x.dtype for x in xs))
    return [cast_to(x, kind) for x in xs]


def _convolved(
    name: str,
    ndim: int,
    x: Any,
    w: Any,
    input_shape: Any,
    filter_shape: Any,
    border_mode: Any,
    subsample: Any,
    filter_flip: bool,
    filter_dilation: Any,
    num_groups: int,
    unshared: bool = False,
) -> TensorVariable:
    geometry = read_geometry(name, border_mode, subsample, filter_dilation, ndim)
    num_groups = as_int(num_groups, name, "num_groups", 1)
    x = _with_shape(name, "input_shape", x, input_shape)
    w = _with_shape(name, "filter_shape", w, filter_shape)
    x, w = _common(x, w)
    w = _turned(w, ndim) if filter_flip else w
    if unshared:
        return convolve_unshared(name, geometry, num_groups, x, w)
    return Convolve(geometry, num_groups)(x, w)


def conv2d(
    input: Any,
    filters: Any,
    input_shape: Any = None,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    image_shape: Any = None,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Convolve images with kernels, summed over channels.

    Parameters
    ----------
    input : tensor of 4 axes
        (images, channels, rows, columns).
    filters : tensor of 4 axes
        (kernels, channels / num_groups, rows, columns).
    input_shape, filter_shape : sequence of int or None, optional
        Lengths that are known. ``image_shape`` is the old name of the first.
    border_mode : {"valid", "full", "half"}, int, or sequence, optional
        The padding with zeros: none; the length of a kernel minus 1; half a kernel; or a number of
        elements. A sequence has an entry for each spatial axis, which may be a pair: before and
        after.
    subsample : int or pair of int
        The step between adjacent places of the kernels.
    filter_flip : bool
        Flip the kernels (convolution), or not (correlation).
    filter_dilation : int or pair of int
        The step between adjacent elements of the kernels.
    num_groups : int
        The number of groups of channels and kernels that are convolved separately.
    unshared : bool
        Each place has its own kernels: ``filters`` are (kernels, rows of the result, columns of the
        result, channels / num_groups, rows, columns).

    Returns
    -------
    TensorVariable
        (images, kernels, rows, columns).

    Raises
    ------
    ShapeError
        If lengths do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x, w = T.dtensor4("x"), T.dtensor4("w")
    >>> image, kernel = np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2))
    >>> T.nnet.conv2d(x, w).eval({x: image, w: kernel})
    array([[[[ 8., 12.],
             [20., 24.]]]])
    """
    return _convolved(
        "conv2d", 2, input, filters, input_shape if image_shape is None else image_shape,
        filter_shape, border_mode, subsample, filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip


def conv3d(
    input: Any,
    filters: Any,
    input_shape: Any = None,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """Convolve with three spatial axes (see ``conv2d``): (images, channels, depth, rows, columns).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.conv3d(T.ones((1, 1, 3, 3, 3)), T.ones((1, 1, 2, 2, 2))).shape.eval()
    array([1, 1, 2, 2, 2])
    """
    return _convolved(
        "conv3d", 3, input, filters, input_shape, filter_shape, border_mode, subsample,
        filter_flip, filter_dilation, num_groups,
    )  # fmt: skip


def causal_conv1d(
    input: Any,
    filters: Any,
    filter_shape: Any,
    input_shape: Any = None,
    subsample: int = 1,
    filter_flip: bool = True,
    filter_dilation: int = 1,
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Convolve along time; no element of the result depends on later ones.

    Parameters
    ----------
    input : tensor of 3 axes
        (series, channels, time).
    filters : tensor of 3 axes
        (kernels, channels / num_groups, time), of the shape ``filter_shape``; with ``unshared``
        (kernels, time of the result, channels / num_groups, time).
    input_shape, subsample, filter_flip, filter_dilation, num_groups
        As for ``conv2d``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.causal_conv1d(T.ones((1, 1, 4)), T.ones((1, 1, 2)), (1, 1, 2)).eval()
    array([[[1., 2., 2., 2.]]])
    """
    before = (int(constant_scalar(filter_shape[-1])) - 1) * filter_dilation
    if unshared:
        x = _with_shape("causal_conv1d", "input_shape", input, input_shape)
        w = _with_shape("causal_conv1d", "filter_shape", filters, filter_shape)
        y = conv2d(
            x.dimshuffle(0, 1, 2, "x"), w.dimshuffle(0, 1, "x", 2, 3, "x"),
            border_mode=((before, 0), (0, 0)), subsample=(subsample, 1), filter_flip=filter_flip,
            filter_dilation=(filter_dilation, 1), num_groups=num_groups, unshared=True,
        )  # fmt: skip
        return getitem(y, (..., 0))
    return _convolved(
        "causal_conv1d", 1, input, filters, input_shape, filter_shape, [(before, 0)],
        [subsample], filter_flip, [filter_dilation], num_groups,
    )  # fmt: skip


def separable_conv2d(
    input: Any,
    depthwise_filters: Any,
    pointwise_filters: Any,
    num_channels: int,
    input_shape: Any = None,
    depthwise_filter_shape: Any = None,
    pointwise_filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
) -> TensorVariable:
    """Convolve each of ``num_channels`` channels with kernels of its own (channels * multiplier, 1,
    rows, columns), then mix all at each place by ``pointwise_filters`` (kernels, channels *
    multiplier, 1, 1).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, depth, point = T.ones((1, 2, 3, 3)), T.ones((2, 1, 2, 2)), T.ones((1, 2, 1, 1))
    >>> T.nnet.separable_conv2d(x, depth, point, num_channels=2).eval()[0, 0]
    array([[8., 8.],
           [8., 8.]])
    """
    each = conv2d(
        input, depthwise_filters, input_shape, depthwise_filter_shape, border_mode, subsample,
        filter_flip, None, filter_dilation, num_channels,
    )  # fmt: skip
    return conv2d(each, pointwise_filters, None, pointwise_filter_shape)


def separable_conv3d(
    input: Any,
    depthwise_filters: Any,
    pointwise_filters: Any,
    num_channels: int,
    input_shape: Any = None,
    depthwise_filter_shape: Any = None,
    pointwise_filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1, 1),
) -> TensorVariable:
    """Apply ``separable_conv2d`` with three spatial axes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, depth = T.ones((1, 2, 3, 3, 3)), T.ones((2, 1, 2, 2, 2))
    >>> T.nnet.separable_conv3d(x, depth, T.ones((1, 2, 1, 1, 1)), num_channels=2).shape.eval()
    array([1, 1, 2, 2, 2])
    """
    each = conv3d(
        input, depthwise_filters, input_shape, depthwise_filter_shape, border_mode, subsample,
        filter_flip, filter_dilation, num_channels,
    )  # fmt: skip
    return conv3d(each, pointwise_filters, None, pointwise_filter_shape)


# -- the adjoints


def _grad_wrt_inputs(
    name: str,
    ndim: int,
    g: Any,
    w: Any,
    input_shape: Any,
    filter_shape: Any,
    border_mode: Any,
    subsample: Any,
    filter_flip: bool,
    filter_dilation: Any,
    num_groups: int,
    unshared: bool = False,
) -> TensorVariable:
    geometry = read_geometry(name, border_mode, subsample, filter_dilation, ndim)
    num_groups = as_int(num_groups, name, "num_groups", 1)
    g, w = as_tensor_variable(g), _with_shape(name, "filter_shape", w, filter_shape)
    g, w = _common(g, w)
    w = _turned(w, ndim) if filter_flip else w
    lengths = _spatial(name, "input_shape", input_shape, ndim)
    if unshared:
        return unshared_inputs(name, geometry, num_groups, w, g, lengths)
    return ConvolveInputs(geometry, num_groups)(w, g, *lengths)


def _spatial(name: str, title: str, shape: Any, ndim: int) -> list[TensorVariable]:
    """Return the spatial lengths of a shape; those before them may be None."""
    entries = list(shape)[-ndim:] if isinstance(shape, tuple | list) else as_lengths(shape, name)
    if any(n is None for n in entries):
        raise ValueError(f"{name}: {title} is {shape}; its last {ndim} lengths must be known")
    return as_lengths(entries[-ndim:], name)


def conv2d_grad_wrt_inputs(
    output_grad: Any,
    filters: Any,
    input_shape: Any,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Compute the gradient of a cost in the input of ``conv2d``, from that in its output.

    Parameters
    ----------
    output_grad, filters : tensor of 4 axes
    input_shape : sequence of int, None or scalar
        The shape of the input; its spatial lengths must be given.
    filter_shape, border_mode, subsample, filter_flip, filter_dilation, num_groups
        As for ``conv2d``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> g = T.ones((1, 1, 2, 2))
    >>> T.nnet.conv2d_grad_wrt_inputs(g, g, (1, 1, 3, 3)).eval()[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    return _grad_wrt_inputs(
        "conv2d_grad_wrt_inputs", 2, output_grad, filters, input_shape, filter_shape, border_mode,
        subsample, filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip


def conv3d_grad_wrt_inputs(
    output_grad: Any,
    filters: Any,
    input_shape: Any,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """Compute ``conv2d_grad_wrt_inputs`` with three spatial axes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.ones((1, 1, 2, 2, 2))
    >>> T.nnet.conv3d_grad_wrt_inputs(x, x, (1, 1, 3, 3, 3)).shape.eval()
    array([1, 1, 3, 3, 3])
    """
    return _grad_wrt_inputs(
        "conv3d_grad_wrt_inputs", 3, output_grad, filters, input_shape, filter_shape, border_mode,
        subsample, filter_flip, filter_dilation, num_groups,
    )  # fmt: skip


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    input_dilation: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Compute the transposed convolution ("deconvolution"): ``conv2d_grad_wrt_inputs`` with steps
    of ``input_dilation``. The filters are those of the convolution that it transposes: (channels of
    the input, channels of the output / num_groups, rows, columns).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.ones((1, 1, 2, 2))
    >>> T.nnet.conv2d_transpose(x, x, (1, 1, 3, 3)).eval()[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    return _grad_wrt_inputs(
        "conv2d_transpose", 2, input, filters, output_shape, filter_shape, border_mode,
        input_dilation, filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip


def _grad_wrt_weights(
    name: str,
    ndim: int,
    x: Any,
    g: Any,
    filter_shape: Any,
    input_shape: Any,
    border_mode: Any,
    subsample: Any,
    filter_flip: bool,
    filter_dilation: Any,
    num_groups: int,
    unshared: bool = False,
) -> TensorVariable:
    geometry = read_geometry(name, border_mode, subsample, filter_dilation, ndim)
    num_groups = as_int(num_groups, name, "num_groups", 1)
    x, g = _common(_with_shape(name, "input_shape", x, input_shape), as_tensor_variable(g))
    lengths = _spatial(name, "filter_shape", filter_shape, ndim)
    if unshared:
        gw = unshared_kernels(name, geometry, num_groups, x, g, lengths)
    else:
        gw = ConvolveKernels(geometry, num_groups)(x, g, *lengths)
    return _turned(gw, ndim) if filter_flip else gw


def conv2d_grad_wrt_weights(
    input: Any,
    output_grad: Any,
    filter_shape: Any,
    input_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> TensorVariable:
    """Compute the gradient of a cost in the filters of ``conv2d``, from that in its output.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, g = T.ones((1, 1, 3, 3)), T.ones((1, 1, 2, 2))
    >>> T.nnet.conv2d_grad_wrt_weights(x, g, (1, 1, 2, 2)).eval()[0, 0]
    array([[4., 4.],
           [4., 4.]])
    """
    return _grad_wrt_weights(
        "conv2d_grad_wrt_weights", 2, input, output_grad, filter_shape, input_shape, border_mode,
        subsample, filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip


def conv3d_grad_wrt_weights(
    input: Any,
    output_grad: Any,
    filter_shape: Any,
    input_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1, 1),
    num_groups: int = 1,
) -> TensorVariable:
    """Compute ``conv2d_grad_wrt_weights`` with three spatial axes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, g = T.ones((1, 1, 3, 3, 3)), T.ones((1, 1, 2, 2, 2))
    >>> T.nnet.conv3d_grad_wrt_weights(x, g, (1, 1, 2, 2, 2)).shape.eval()
    array([1, 1, 2, 2, 2])
    """
    return _grad_wrt_weights(
        "conv3d_grad_wrt_weights", 3, input, output_grad, filter_shape, input_shape, border_mode,
        subsample, filter_flip, filter_dilation, num_groups,
    )  # fmt: skip


# -- other forms


def get_conv_output_shape(
    image_shape: Any,
    kernel_shape: Any,
    border_mode: Any,
    subsample: Any,
    filter_dilation: Any = None,
) -> tuple[Any, ...]:
    """Return the shape of a convolution's result, from those of images and kernels; lengths may be
    None or symbolic.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.get_conv_output_shape((5, 3, 28, 28), (8, 3, 5, 5), "half", (2, 2))
    (5, 8, 14, 14)
    """
    ndim = len(image_shape) - 2
    dilation = (1,) * ndim if filter_dilation is None else filter_dilation
    geometry = read_geometry("get_conv_output_shape", border_mode, subsample, dilation, ndim)
    return (image_shape[0], kernel_shape[0], *geometry.counts(image_shape[2:], kernel_shape[2:]))


def conv2d_of_planes(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
) -> TensorVariable:
    """Convolve single planes: each of ``input`` with each of ``filters``.

    Parameters
    ----------
    input, filters : matrix, or tensor of 3 axes
        One plane, or several along the first axis.
    image_shape, filter_shape : sequence of int or None, optional
        Lengths that are known.
    border_mode, subsample
        As for ``conv2d``.

    Returns
    -------
    TensorVariable
        (planes, filters, rows, columns), without the axis of an argument that was a matrix.
    """
    name = "signal.conv.conv2d"
    x = _with_shape(name, "image_shape", input, image_shape)
    w = _with_shape(name, "filter_shape", filters, filter_shape)
    for title, v in (("input", x), ("filters", w)):
        if v.ndim not in (2, 3):
            raise ShapeError(f"{name}: {title} is {v.type}; it must have 2 or 3 axes")
    planes = x.dimshuffle("x", "x", 0, 1) if x.ndim == 2 else x.dimshuffle(0, "x", 1, 2)
    kernels = w.dimshuffle("x", "x", 0, 1) if w.ndim == 2 else w.dimshuffle(0, "x", 1, 2)
    y = conv2d(planes, kernels, border_mode=border_mode, subsample=subsample)
    kept = [a for a, v in ((0, x), (1, w)) if v.ndim == 3]
    return y.dimshuffle(*kept, 2, 3)


__all__ = [
    "causal_conv1d", "conv2d", "conv2d_grad_wrt_inputs", "conv2d_grad_wrt_weights",
    "conv2d_transpose", "conv3d", "conv3d_grad_wrt_inputs", "conv3d_grad_wrt_weights",
    "Convolve", "ConvolveInputs", "ConvolveKernels", "get_conv_output_shape",
    "separable_conv2d", "separable_conv3d",
]  # fmt: skip
