"""Enlarge images by linear interpolation."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to, resolve_dtype
from symcomp.ops.elementwise.scalar_logic import clip
from symcomp.ops.elementwise.scalar_math import cast, ceil_intdiv, floor, minimum
from symcomp.ops.indexing.gather import take
from symcomp.ops.linalg.functions import outer
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import as_length, shape_tuple


def bilinear_upsampling(
    input: Any,
    ratio: Any = None,
    frac_ratio: Any = None,
    batch_size: Any = None,
    num_input_channels: Any = None,
    use_1D_kernel: bool = True,
) -> TensorVariable:
    """Interpolate images linearly to more rows and columns; beyond the border they are constant.
    (..., rows, columns) -> (..., ratio rows, ratio columns)

    Element o of an axis is the input at (o q - (p - 1) // 2) / p, for a ratio p / q.

    Parameters
    ----------
    input : tensor of at least 2 axes
        Integers count as floats.
    ratio : int or integer scalar, optional
        The factor by which rows and columns become longer.
    frac_ratio : pair of int, or two pairs, optional
        In its place: a ratio (p, q) for both axes, or one for rows and one for columns. Lengths are
        rounded up.
    batch_size, num_input_channels, use_1D_kernel
        Accepted as Theano has them: nothing depends on them.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nnet.abstract_conv.bilinear_upsampling(x, 2).eval({x: [[0, 4]]})
    array([[0., 2., 4., 4.],
           [0., 2., 4., 4.]])
    """
    if (ratio is None) == (frac_ratio is None):
        raise ValueError("bilinear_upsampling: give ratio or frac_ratio, and not both")
    x = as_tensor_variable(input)
    if x.ndim < 2:
        raise ShapeError(f"bilinear_upsampling: input is {x.type}; it must have 2 axes at least")
    x = cast_to(x, dtypes.to_float(x.dtype))
    pairs: Any = ((ratio, 1), (ratio, 1)) if frac_ratio is None else tuple(frac_ratio)
    if len(pairs) != 2:
        raise ValueError(f"bilinear_upsampling: frac_ratio={frac_ratio!r}: (p, q), or two of them")
    if not isinstance(pairs[0], tuple | list):
        pairs = (pairs, pairs)
    for p, q in pairs:
        for n in (p, q):
            as_length(n, "bilinear_upsampling", 1)
    for axis, (p, q) in zip((x.ndim - 2, x.ndim - 1), pairs, strict=True):
        x = _stretched(x, axis, p, q)
    return x


def frac_bilinear_upsampling(input: Any, frac_ratio: Any) -> TensorVariable:
    """Apply ``bilinear_upsampling`` with ``frac_ratio``: (p, q), or one such pair for rows and one
    for columns.
    """
    return bilinear_upsampling(input, frac_ratio=frac_ratio)


def _stretched(x: TensorVariable, axis: int, p: Any, q: Any) -> TensorVariable:
    n = as_tensor_variable(shape_tuple(x)[axis])
    steps = arange(ceil_intdiv(n * p, q)) * q - (p - 1) // 2
    last = cast(n - 1, x.dtype)
    place = clip(cast(steps, x.dtype) / cast(as_tensor_variable(p), x.dtype), 0, last)
    below = cast(floor(place), "int64")
    weight = (place - cast(below, x.dtype)).dimshuffle(
        *(0 if a == axis else "x" for a in range(x.ndim))
    )
    above = minimum(below + 1, n - 1)
    return take(x, below, axis) * (1 - weight) + take(x, above, axis) * weight


def bilinear_kernel_1D(ratio: Any, normalize: bool = True) -> TensorVariable:
    """Return 1, 2, ..., ratio, ..., 2, 1, in floatX; with ``normalize`` divided by ``ratio``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.abstract_conv.bilinear_kernel_1D(2).eval()
    array([0.5, 1. , 0.5])
    """
    rising = cast(arange(1, ratio + 1), resolve_dtype("floatX"))
    kernel = concatenate([rising, rising[-2::-1]])
    return kernel / cast(as_tensor_variable(ratio), kernel.dtype) if normalize else kernel


def bilinear_kernel_2D(ratio: Any, normalize: bool = True) -> TensorVariable:
    """Return the outer product of ``bilinear_kernel_1D`` with itself."""
    kernel = bilinear_kernel_1D(ratio, normalize)
    return outer(kernel, kernel)


__all__ = [
    "bilinear_kernel_1D", "bilinear_kernel_2D", "bilinear_upsampling", "frac_bilinear_upsampling",
]  # fmt: skip
