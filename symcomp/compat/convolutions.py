"""Theano's classes of convolutions and pools, and functions for their shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import symcomp.tensor as T
from symcomp.autodiff.lop import Lop
from symcomp.ops.control.conditions import Assert
from symcomp.ops.windows.convolve import read_geometry
from symcomp.ops.windows.pool import pooled
from symcomp.ops.windows.pooling import MaxPool

# Arguments of the constructors of 2-d convolutions that those of 3-d ones lack.
_PARAMETERS = ("imshp", "kshp", "border_mode", "subsample", "filter_flip", "filter_dilation")


def convolution(ndim: int, which: str) -> Callable[..., Any]:
    """Return the constructor of AbstractConv2d or of its gradients: shapes first, then the
    geometry.
    """

    def make(*parameters: Any, **named: Any) -> Callable[..., Any]:
        given = dict(zip((*_PARAMETERS, "num_groups", "unshared"), parameters, strict=False))
        given |= named
        shapes = {"input_shape": given.pop("imshp", None), "filter_shape": given.pop("kshp", None)}
        function = getattr(T.nnet.abstract_conv, f"conv{ndim}d{which}")
        if not which:
            return lambda img, kern: function(img, kern, **shapes, **given)

        def adjoint(first: Any, topgrad: Any, shape: Any) -> Any:
            lengths = (None, None, *(shape[i] for i in range(ndim)))
            if which == "_grad_wrt_inputs":
                return function(topgrad, first, lengths, shapes["filter_shape"], **given)
            return function(first, topgrad, lengths, shapes["input_shape"], **given)

        return adjoint

    return make


def correlation(ndim: int, which: str) -> Callable[..., Any]:
    """Return the constructor of CorrMM or of its gradients, which do not flip kernels; lengths that
    follow from others may be omitted.
    """
    make_any = convolution(ndim, which)

    def make(
        border_mode: Any = "valid",
        subsample: Any = None,
        filter_dilation: Any = None,
        num_groups: int = 1,
        unshared: bool = False,
    ) -> Callable[..., Any]:
        ones = (1,) * ndim
        parts: dict[str, Any] = {
            "border_mode": border_mode,
            "subsample": ones if subsample is None else subsample,
            "filter_dilation": ones if filter_dilation is None else filter_dilation,
        }
        only_2d = {"unshared": True} if unshared else {}
        op = make_any(**parts, num_groups=num_groups, filter_flip=False, **only_2d)
        if not which:
            return op

        def adjoint(first: Any, topgrad: Any, shape: Any = None) -> Any:
            first, topgrad = T.as_tensor_variable(first), T.as_tensor_variable(topgrad)
            if shape is None:
                of = gradinputs_shape if which == "_grad_wrt_inputs" else gradweights_shape
                shape = of([*first.shape], [*topgrad.shape], *parts.values())[2:]
                if None in shape:
                    raise ValueError(
                        f"Corr{ndim}dMM{which}: shape is missing; it does not follow from the "
                        f"others with {parts}"
                    )
            return op(first, topgrad, shape)

        return adjoint

    return make


def images_to_neighbours(mode: str = "valid") -> Callable[..., Any]:
    """Return the constructor Images2Neibs."""
    return lambda ten4, neib_shape, neib_step=None: T.nnet.neighbours.images2neibs(
        ten4, neib_shape, neib_step, mode
    )


def conv3d_of_series(
    signals: Any,
    filters: Any,
    signals_shape: Sequence[int] | None = None,
    filters_shape: Sequence[int] | None = None,
    border_mode: Any = "valid",
) -> Any:
    """Implement ``theano.tensor.nnet.conv3d2d.conv3d``: time comes before channels, in all three.
    """
    order = (0, 2, 1, 3, 4)
    x, w = (T.as_tensor_variable(v).dimshuffle(*order) for v in (signals, filters))
    image, kernels = (
        None if shape is None else tuple(shape[i] for i in order)
        for shape in (signals_shape, filters_shape)
    )
    return T.nnet.conv3d(x, w, image, kernels, border_mode).dimshuffle(*order)


# -- pools


def pool(ignore_border: bool = False, mode: str = "max", ndim: int = 2) -> Callable[..., Any]:
    """Return the constructor Pool."""

    def of(x: Any, ws: Any, stride: Any = None, pad: Any = None) -> Any:
        pad = (0,) * ndim if pad is None else pad
        return pooled("Pool", ndim, x, ws, ignore_border, stride, pad, mode, {})

    return of


def max_pool_grad(ignore_border: bool, mode: str = "max", ndim: int = 2) -> Callable[..., Any]:
    """Return the constructor MaxPoolGrad: the gradient goes to the largest elements."""

    def of(x: Any, maxout: Any, gz: Any, ws: Any, stride: Any = None, pad: Any = None) -> Any:
        x = T.as_tensor_variable(x)
        return Lop(pool(ignore_border, mode, ndim)(x, ws, stride, pad), x, gz)

    return of


def average_pool_grad(
    ignore_border: bool, mode: str = "average_inc_pad", ndim: int = 2
) -> Callable[..., Any]:
    """Return the constructor AveragePoolGrad."""
    grad = max_pool_grad(ignore_border, mode, ndim)
    return lambda x, gz, ws, stride=None, pad=None: grad(x, None, gz, ws, stride, pad)


def pool_out_shape(
    imgshape: Sequence[Any],
    ws: Sequence[int] | None = None,
    ignore_border: bool = False,
    stride: Sequence[int] | None = None,
    pad: Sequence[int] | None = None,
    ndim: int = 2,
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> list[Any]:
    """Implement ``Pool.out_shape``: the shape of the result of pooling, from that of images."""
    window = tuple(ds if ws is None else ws)
    strides = st if stride is None else stride
    strides = window if strides is None else tuple(strides)
    given = padding if pad is None else pad
    pooling = MaxPool(
        window, strides, (0,) * ndim if given is None else tuple(given), not ignore_border
    )
    lengths = [pooling.count(axis, n) for axis, n in enumerate(imgshape[-ndim:])]
    return [*imgshape[:-ndim], *(max(0, n) if isinstance(n, int) else n for n in lengths)]


# -- shapes


def conv_shape_1axis(
    image_shape: Any, kernel_shape: Any, border_mode: Any, subsample: int, dilation: int = 1
) -> Any:
    """Return the length of a result along one axis; None where one of the others is None."""
    geometry = read_geometry("get_conv_shape_1axis", [border_mode], [subsample], [dilation], 1)
    return geometry.counts([image_shape], [kernel_shape])[0]


def gradinputs_1axis(
    kernel_shape: Any, top_shape: Any, border_mode: Any, subsample: int, dilation: int
) -> Any:
    """Return the length of images along one axis, from those of kernels and of the result; None
    where more than one length fits.
    """
    if None in (kernel_shape, top_shape) or subsample != 1:
        return None
    geometry = read_geometry("get_conv_gradinputs_shape", [border_mode], [1], [dilation], 1)
    before, after = geometry.pads(0, kernel_shape)
    return top_shape + geometry.span(0, kernel_shape) - 1 - before - after


def gradweights_1axis(
    image_shape: Any, top_shape: Any, border_mode: Any, subsample: int, dilation: int
) -> Any:
    """Return the length of kernels along one axis, from those of images and of the result; None
    where more than one length fits.
    """
    if None in (image_shape, top_shape) or subsample != 1 or border_mode == "half":
        return None
    if border_mode == "full":
        reach = top_shape - image_shape
    else:
        geometry = read_geometry("get_conv_gradweights_shape", [border_mode], [1], [1], 1)
        reach = image_shape + sum(geometry.pads(0, 1)) - top_shape
    return reach // dilation + 1


def _along_axes(one: Callable[..., Any], *given: Any) -> tuple[Any, ...]:
    """Apply ``one`` to each spatial axis of shapes, and to the arguments given for each axis."""
    first, second, mode, steps, dilation = given
    ndim = len(first) - 2
    modes = mode if isinstance(mode, tuple | list) else (mode,) * ndim
    dilation = (1,) * ndim if dilation is None else dilation
    rest = (first[2:], second[2:], modes, steps, dilation)
    return tuple(one(*axis) for axis in zip(*rest, strict=True))


def gradinputs_shape(
    kernel_shape: Sequence[Any],
    top_shape: Sequence[Any],
    border_mode: Any,
    subsample: Any,
    filter_dilation: Any = None,
    num_groups: int = 1,
) -> tuple[Any, ...]:
    """Return the shape of images, from those of kernels and of the result."""
    channels = None if kernel_shape[1] is None else kernel_shape[1] * num_groups
    given = (kernel_shape, top_shape, border_mode, subsample, filter_dilation)
    return (top_shape[0], channels, *_along_axes(gradinputs_1axis, *given))


def gradweights_shape(
    image_shape: Sequence[Any],
    top_shape: Sequence[Any],
    border_mode: Any,
    subsample: Any,
    filter_dilation: Any = None,
    num_groups: int = 1,
    unshared: bool = False,
) -> tuple[Any, ...]:
    """Return the shape of kernels, from those of images and of the result."""
    channels = None if image_shape[1] is None else image_shape[1] // num_groups
    given = (image_shape, top_shape, border_mode, subsample, filter_dilation)
    places = tuple(top_shape[2:]) if unshared else ()
    return (top_shape[1], *places, channels, *_along_axes(gradweights_1axis, *given))


def check_gradinputs_shape(
    image_shape: Sequence[Any],
    kernel_shape: Sequence[Any],
    output_shape: Sequence[Any],
    border_mode: Any,
    subsample: Any,
    filter_dilation: Any = None,
) -> bool:
    """Tell whether images and kernels of these shapes give a result of that shape; None fits any
    length.
    """
    computed = T.nnet.get_conv_output_shape(
        image_shape, kernel_shape, border_mode, subsample, filter_dilation
    )
    pairs = zip(computed, output_shape, strict=True)
    return all(n is None or m is None or n == m for n, m in pairs)


def border_mode_to_pad(border_mode: Any, convdim: int, kshp: Sequence[int]) -> tuple[Any, ...]:
    """Return for each axis how many zeros are added before and after."""
    ones = (1,) * convdim
    geometry = read_geometry("border_mode_to_pad", border_mode, ones, ones, convdim)
    return tuple(geometry.pads(axis, k) for axis, k in enumerate(kshp))


def assert_shape(
    x: Any, expected_shape: Sequence[Any], msg: str = "Unexpected shape."
) -> T.TensorVariable:
    """Return ``x``, checked at run time to have this shape; None stands for any length."""
    x = T.as_tensor_variable(x)
    tests = [T.eq(x.shape[a], n) for a, n in enumerate(expected_shape) if n is not None]
    return Assert(msg)(x, *tests) if tests else x


def assert_conv_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return the shape, if no length of images and kernels is negative and no spatial one 0."""
    checked = []
    for axis, n in enumerate(shape):
        least = 0 if axis < 2 else 1
        message = f"the length of axis {axis} of a convolution must be at least {least}"
        if isinstance(n, int):
            if n < least:
                raise AssertionError(f"{message}, and is {n}")
            checked.append(n)
        else:
            n = T.as_tensor_variable(n)
            checked.append(Assert(message)(n, T.ge(n, least)))
    return tuple(checked)


ABSTRACT_CONV = {
    "assert_conv_shape": assert_conv_shape,
    "assert_shape": assert_shape,
    "border_mode_to_pad": border_mode_to_pad,
    "check_conv_gradinputs_shape": check_gradinputs_shape,
    "get_conv_gradinputs_shape": gradinputs_shape,
    "get_conv_gradinputs_shape_1axis": gradinputs_1axis,
    "get_conv_gradweights_shape": gradweights_shape,
    "get_conv_gradweights_shape_1axis": gradweights_1axis,
    "get_conv_shape_1axis": conv_shape_1axis,
}
