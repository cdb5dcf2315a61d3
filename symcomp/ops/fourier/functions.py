"""Fourier transforms of complex and real tensors, as NumPy's and as Theano's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import complex as complex_
from symcomp.ops.elementwise.scalar_math import imag, real, sqrt
from symcomp.ops.fourier.transforms import Fourier, InverseRealFourier, RealFourier, as_complex
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.joining import stack
from symcomp.ops.shapes.shape import ShapeI, normalize_axis, shape_tuple

# For each norm, the exponents of 1 / n in the factors of transforms and inverse transforms.
NORMS = {None: (0.0, 1.0), "backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}
THEANO_NORMS = {None: (0.0, 1.0), "ortho": (0.5, 0.5), "no_norm": (0.0, 0.0)}

Lengths = Sequence[Any] | TensorVariable | None


def rfft(inp: Any, norm: str | None = None) -> TensorVariable:
    """Return the Fourier transforms of a batch of real tensors, as pairs of real numbers.

    Theano's format; ``rfftn(x, axes=...)`` gives the same as complex numbers.

    Parameters
    ----------
    inp : tensor_like
        (m, .., n): the first axis counts the batch; all others are transformed.
    norm : {None, "ortho", "no_norm"}
        Unscaled; divided by the square root of the number of elements transformed; unscaled.

    Returns
    -------
    TensorVariable
        (m, .., n // 2 + 1, 2): real and imaginary parts. The dtype is that of ``inp``;
        float64 for integers, float32 for float16.

    Raises
    ------
    ShapeError
        If ``inp`` has no axis beside the first, or one of those is empty.
    DTypeError
        If ``inp`` is complex.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.fft.rfft(x).eval({x: [[1, 0, 0, 0]]}).tolist()
    [[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]
    """
    x = as_tensor_variable(inp)
    if x.ndim < 2:
        raise ShapeError(
            f"rfft: inp ({x.type}) has {x.ndim} axes; at least 2 are needed, of which the first "
            "counts the batch"
        )
    power, _ = _powers("rfft", norm, THEANO_NORMS)
    axes = tuple(range(1, x.ndim))
    z = _scaled(_real_transform(x, axes), [shape_tuple(x)[a] for a in axes], power)
    return stack(real(z), imag(z), axis=-1)


def irfft(inp: Any, norm: str | None = None, is_odd: bool = False) -> TensorVariable:
    """Return the inverse of ``rfft``: real tensors from halves of their transforms, as pairs.

    Theano's format; ``irfftn(x, axes=...)`` does the same for complex numbers.

    Parameters
    ----------
    inp : tensor_like
        (m, .., n // 2 + 1, 2): real and imaginary parts in the last axis.
    norm : {None, "ortho", "no_norm"}
        Divided by the number of elements transformed; by its square root; unscaled.
    is_odd : bool
        If true, n, the last length of the result, is odd.

    Returns
    -------
    TensorVariable
        (m, .., n).

    Raises
    ------
    ShapeError
        If ``inp`` has fewer than 3 axes, or an axis to transform is empty.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.fft.irfft(T.fft.rfft(x), is_odd=True).eval({x: [[1, 2, 3]]})
    array([[1., 2., 3.]])
    """
    x = as_tensor_variable(inp)
    if x.ndim < 3 or x.type.shape[-1] not in (None, 2):
        raise ShapeError(
            f"irfft: inp ({x.type}) must have at least 3 axes: the batch first, and real and "
            "imaginary parts, 2 elements, last"
        )
    if dtypes.is_complex(x.dtype):
        raise DTypeError(
            f"irfft: inp ({x.type}) must be pairs of real numbers; irfftn is for these"
        )
    if is_odd not in (True, False):
        raise ValueError(f"irfft: is_odd is {is_odd!r}; True or False is needed")
    _, power = _powers("irfft", norm, THEANO_NORMS)
    z = complex_(x[..., 0], x[..., 1])
    axes = tuple(range(1, z.ndim))
    n = (shape_tuple(z)[-1] - 1) * 2 + bool(is_odd)
    return _inverse_real(z, axes, n, power)


def fft(x: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Return the Fourier transform along one axis, as ``numpy.fft.fft``.

    Parameters
    ----------
    x : tensor_like
        Real or complex.
    n : int or integer scalar, optional
        The length: ``x`` is cut, or filled up with zeros. By default that of ``x``.
    axis : int
    norm : {None, "backward", "ortho", "forward"}
        The inverse is divided by n (the default); both by its square root; the transform by n.

    Returns
    -------
    TensorVariable
        complex64 of float16, float32 and complex64, else complex128.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.fft.fft(x).eval({x: [1, 2]})
    array([ 3.+0.j, -1.+0.j])
    """
    return fftn(x, None if n is None else (n,), (axis,), norm)


def ifft(x: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> TensorVariable:
    """Return the inverse of ``fft``, as ``numpy.fft.ifft``; see there.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.zvector("x")
    >>> T.fft.ifft(T.fft.fft(x)).eval({x: [1j, 2]})
    array([0.+1.j, 2.+0.j])
    """
    return ifftn(x, None if n is None else (n,), (axis,), norm)


def fftn(
    x: Any, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Return the Fourier transform along several axes, as ``numpy.fft.fftn``.

    Parameters
    ----------
    x : tensor_like
    s : sequence of int or integer scalar, or integer vector, optional
        The lengths along ``axes``: ``x`` is cut, or filled up with zeros.
    axes : sequence of int, optional
        By default the last ``len(s)``, or all.
    norm : {None, "backward", "ortho", "forward"}
        As in ``fft``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.fft.fftn(x).eval({x: [[1, 2], [3, 4]]}).real
    array([[10., -2.],
           [-4.,  0.]])
    """
    return _complex_transform("fftn", x, s, axes, norm, inverse=False)


def ifftn(
    x: Any, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Return the inverse of ``fftn``, as ``numpy.fft.ifftn``; see there.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.fft.ifftn(T.fft.fftn([[1.0, 2.0]])).eval().real
    array([[1., 2.]])
    """
    return _complex_transform("ifftn", x, s, axes, norm, inverse=True)


def rfftn(
    x: Any, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Return the non-redundant half of the transform of a real tensor, as ``numpy.fft.rfftn``.

    Parameters as in ``fftn``. Along the last of ``axes``, of length n, the result has n // 2 + 1
    elements.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.fft.rfftn(x).eval({x: [1, 0, 0, 0, 0]}).shape
    (3,)
    """
    x = as_tensor_variable(x)
    lengths = _lengths("rfftn", s)
    places = _axes("rfftn", x, lengths, axes)
    power, _ = _powers("rfftn", norm, NORMS)
    x = _resized(x, lengths, places)
    return _scaled(_real_transform(x, places), [shape_tuple(x)[a] for a in places], power)


def irfftn(
    x: Any, s: Lengths = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> TensorVariable:
    """Return the inverse of ``rfftn``, as ``numpy.fft.irfftn``.

    Parameters as in ``fftn``; ``s`` has the lengths of the result. By default the last is even: the
    length of an odd one must be given.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.fft.irfftn(T.fft.rfftn(x), s=(3,)).eval({x: [1, 2, 3]})
    array([1., 2., 3.])
    """
    x = as_complex(x)
    lengths = _lengths("irfftn", s)
    places = _axes("irfftn", x, lengths, axes)
    _, power = _powers("irfftn", norm, NORMS)
    if lengths is None:
        n = (shape_tuple(x)[places[-1]] - 1) * 2
    else:
        n = lengths[-1]
        x = _resized(x, [*lengths[:-1], n // 2 + 1], places)
    return _inverse_real(x, places, n, power)


# -- shared functions


def _powers(name: str, norm: Any, table: dict[Any, tuple[float, float]]) -> tuple[float, float]:
    if norm not in table:
        known = ", ".join(repr(n) for n in table)
        raise ValueError(f"{name}: norm is {norm!r}; it must be one of {known}")
    return table[norm]


def _is_int(n: Any) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool)


def _lengths(name: str, s: Any) -> list[Any] | None:
    """Return ``s`` as a list of positive int, or integer scalar variables."""
    if s is None:
        return None
    if isinstance(s, TensorVariable):
        count = s.type.shape[0] if s.ndim == 1 else None
        if count is None:
            raise ShapeError(f"{name}: s is {s} ({s.type}); a vector of known length is needed")
        s = [s[i] for i in range(count)]
    lengths = [int(n) if _is_int(n) else n for n in s]
    for n in lengths:
        if _is_int(n) and n < 1:
            raise ShapeError(f"{name}: lengths are {tuple(lengths)}; they must be positive")
        if not _is_int(n) and (
            not isinstance(n, TensorVariable) or n.ndim or not dtypes.is_integer(n.dtype)
        ):
            raise DTypeError(f"{name}: the length {n!r} must be an integer or an integer scalar")
    return lengths


def _axes(name: str, x: TensorVariable, s: list[Any] | None, axes: Any) -> tuple[int, ...]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    if not isinstance(axes, Sequence | np.ndarray) or isinstance(axes, str):
        raise TypeError(f"{name}: axes is {axes!r:.80}; a sequence of ints is needed")
    places = tuple(normalize_axis(name, a, x.ndim) for a in axes)
    if not places or len(set(places)) < len(places):
        raise ShapeError(
            f"{name}: axes are {tuple(axes)}; different ones, at least one, are needed"
        )
    if s is not None and len(s) != len(places):
        raise ShapeError(f"{name}: s has {len(s)} lengths for {len(places)} axes {tuple(axes)}")
    return places


def _complex_transform(
    name: str, x: Any, s: Lengths, axes: Any, norm: Any, inverse: bool
) -> TensorVariable:
    x = as_tensor_variable(x)
    lengths = _lengths(name, s)
    places = _axes(name, x, lengths, axes)
    power = _powers(name, norm, NORMS)[inverse]
    x = as_complex(_resized(x, lengths, places))
    return _scaled(Fourier(places, inverse)(x), [shape_tuple(x)[a] for a in places], power)


def _real_transform(x: TensorVariable, axes: tuple[int, ...]) -> TensorVariable:
    z = RealFourier(axes[-1])(x)
    return Fourier(axes[:-1])(z) if len(axes) > 1 else z


def _inverse_real(z: TensorVariable, axes: tuple[int, ...], n: Any, power: float) -> TensorVariable:
    if len(axes) > 1:
        z = Fourier(axes[:-1], True)(z)
    result = InverseRealFourier(axes[-1])(z, n)
    return _scaled(result, [*(shape_tuple(z)[a] for a in axes[:-1]), n], power)


def _scaled(z: TensorVariable, lengths: Sequence[Any], power: float) -> TensorVariable:
    """Multiply ``z`` by a power of the inverse of the number of elements transformed."""
    if power == 0.0:
        return z
    count = as_tensor_variable(1.0, dtype="float64")
    for n in lengths:
        count = count * n
    count = cast_to(count, "float64")
    scale = 1 / (sqrt(count) if power == 0.5 else count)
    return z * cast_to(scale, dtypes.real_part(z.dtype))


def _is_length(n: Any, x: TensorVariable, axis: int) -> bool:
    """Tell whether ``n`` is written as the length of this axis."""
    owner = getattr(n, "owner", None)
    return owner is not None and owner.op == ShapeI(axis) and owner.inputs[0] is x


def _resized(x: TensorVariable, s: list[Any] | None, axes: tuple[int, ...]) -> TensorVariable:
    """Cut ``x``, or pad it with zeros, to the lengths ``s`` along ``axes``."""
    for n, axis in zip(s or (), axes[: len(s or ())], strict=True):
        old = x.type.shape[axis]
        if (isinstance(n, int) and old == n) or _is_length(n, x, axis):
            continue
        before = [slice(None)] * axis
        x = x[(*before, slice(None, n))]
        if not (isinstance(n, int) and old is not None and n < old):
            lengths = list(shape_tuple(x))
            part = (*before, slice(None, lengths[axis]))
            lengths[axis] = n
            x = set_subtensor(zeros(lengths, x.dtype)[part], x)
    return x


__all__ = ["fft", "fftn", "ifft", "ifftn", "irfft", "irfftn", "rfft", "rfftn"]
