"""Convolution of arrays and stacks of them, as NumPy's and SciPy's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.elementwise.scalar_logic import neq
from symcomp.ops.elementwise.scalar_math import maximum
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.shapes.filled import broadcast_to, zeros
from symcomp.ops.shapes.shape import product_of, reshape, shape_tuple
from symcomp.ops.windows.convolution import Convolve
from symcomp.ops.windows.geometry import Geometry, Padding

MODES = ("full", "valid", "same")


def convolve(x: Any, w: Any, mode: str = "full", ndim: int = 1) -> TensorVariable:
    """Convolve two arrays along their last axes, as ``numpy.convolve``, ``scipy.signal.convolve``.

    z[i] = sum_j x[i - j] w[j], where elements outside count as 0.   (..., n), (..., k) -> (..., m)

    Parameters
    ----------
    x, w : tensor_like
        Axes before the last ``ndim`` count stacks, and broadcast. If both are stacks, the lengths
        of the stack must be known.
    mode : {"full", "valid", "same"}
        The elements of z: all, m = n + k - 1; along each axis those for which all of the shorter
        array meets the longer one, m = max(n, k) - min(n, k) + 1; or as many as x has, m = n, from
        the middle of all.
    ndim : {1, 2, 3}
        The number of axes along which to convolve.

    Returns
    -------
    TensorVariable
        Of the common dtype.

    Raises
    ------
    ShapeError
        If an array has fewer than ``ndim`` axes; if both are stacks of unknown length; if x and w
        do not fit ``mode``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.signal.convolve(x, [1, -1]).eval({x: [1, 2, 4]})
    array([ 1.,  1.,  2., -4.])
    >>> T.signal.convolve(x, [1, -1], "valid").eval({x: [1, 2, 4]})
    array([1., 2.])
    """
    if mode not in MODES:
        raise ValueError(f"convolve: mode is {mode!r}; it must be 'full', 'valid' or 'same'")
    if type(ndim) is not int or not 1 <= ndim <= 3:
        raise ValueError(f"convolve: ndim is {ndim!r}; it must be 1, 2 or 3")
    x, w = as_tensor_variable(x), as_tensor_variable(w)
    for title, v in (("x", x), ("w", w)):
        if v.ndim < ndim:
            raise ShapeError(f"convolve: {title} ({v.type}) has fewer than ndim={ndim} axes")
    kind = dtypes.upcast(x.dtype, w.dtype)
    if kind == "bool":
        return neq(convolve(cast_to(x, "int64"), cast_to(w, "int64"), mode, ndim), 0)
    x, w = cast_to(x, kind), cast_to(w, kind)
    if mode == "valid":
        return _valid(x, w, ndim)
    z = _along(x, w, ["full"] * ndim, ndim)
    return z if mode == "full" else _middle(z, x, w, ndim)


def _middle(z: Any, x: Any, w: Any, ndim: int) -> TensorVariable:
    """Return as many elements of a full convolution as x has."""
    parts = []
    for n, k in zip(shape_tuple(x)[-ndim:], shape_tuple(w)[-ndim:], strict=True):
        first = (k - 1) // 2
        parts.append(slice(first, first + n))
    return getitem(z, (..., *parts))


def _valid(x: TensorVariable, w: TensorVariable, ndim: int) -> TensorVariable:
    """Convolve with zeros around x where w is longer: with as many as w has more, at both ends."""
    known: list[int] = []
    asked: list[Any] = []  # of which the function knows, once it runs
    for axis in range(-ndim, 0):
        n, k = x.type.shape[axis], w.type.shape[axis]
        if n is None or k is None:
            known.append(0)
            asked.append(maximum(shape_tuple(w)[axis] - shape_tuple(x)[axis], 0))
        else:
            known.append(max(k - n, 0))
            asked.append(0)
    return _along(_between_zeros(x, asked), w, [(m, m) for m in known], ndim)


def _between_zeros(x: TensorVariable, counts: Sequence[Any]) -> TensorVariable:
    """Return ``x`` with as many zeros at both ends of its last axes; ``x`` itself for no zeros."""
    if all(isinstance(m, int) for m in counts):
        return x
    before = x.ndim - len(counts)
    lengths, parts = list(shape_tuple(x)), [slice(None)] * before
    for axis, m in enumerate(counts, before):
        parts.append(slice(m, m + lengths[axis]))
        lengths[axis] = lengths[axis] + 2 * m
    return set_subtensor(zeros(lengths, x.dtype)[tuple(parts)], x)


def _along(
    x: TensorVariable, w: TensorVariable, padding: Sequence[Padding], ndim: int
) -> TensorVariable:
    """Convolve each image of a stack x with the kernel of its place in a stack w."""
    ones = (1,) * ndim
    geometry = Geometry(tuple(padding), ones, ones)
    turned = getitem(w, (..., *[slice(None, None, -1)] * ndim))
    n, k = shape_tuple(x)[-ndim:], shape_tuple(w)[-ndim:]
    if all(m == 1 for m in w.type.shape[:-ndim]):
        stack, groups = _stack(x, ndim), 1
        image, kernel = _planes(x, (product_of(stack), 1, *n)), _planes(turned, (1, 1, *k))
    elif all(m == 1 for m in x.type.shape[:-ndim]):
        stack, groups = _stack(w, ndim), 1
        image, kernel = _planes(x, (1, 1, *n)), _planes(turned, (product_of(stack), 1, *k))
    else:
        stack = _common_stack(x, w, ndim)
        groups = prod(stack)
        image = _planes(broadcast_to(x, [*stack, *n]), (1, groups, *n))
        kernel = _planes(broadcast_to(turned, [*stack, *k]), (groups, 1, *k))
    z = Convolve(geometry, groups)(image, kernel)
    batch = max(x.ndim, w.ndim) - ndim
    whole = [*[1] * (batch - len(stack)), *stack, *shape_tuple(z)[2:]]
    return reshape(z, whole, ndim=batch + ndim)


def _stack(v: TensorVariable, ndim: int) -> list[Any]:
    """Return the lengths of the axes before the last ``ndim``."""
    return list(shape_tuple(v)[: v.ndim - ndim])


def _planes(v: TensorVariable, shape: Sequence[Any]) -> TensorVariable:
    return reshape(v, list(shape), ndim=len(shape))


def _common_stack(x: TensorVariable, w: TensorVariable, ndim: int) -> list[int]:
    """Return the lengths of two stacks that are convolved pair by pair."""
    static = [v.type.shape[: v.ndim - ndim] for v in (x, w)]
    rank = max(map(len, static))
    lengths = broadcast_static("convolve", [(1,) * (rank - len(s)) + s for s in static])
    known = [n for n in lengths if n is not None]
    if len(known) < rank:
        raise ShapeError(
            f"convolve: x ({x.type}) and w ({w.type}) are both stacks, of which a length is not "
            "known: name it by specify_shape, or convolve pair by pair in a loop of scan"
        )
    return known


__all__ = ["convolve"]
