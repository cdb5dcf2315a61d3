"""Sorted elements and their positions, as users call them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import isnan, switch
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.reductions.functions import any as any_
from symcomp.ops.reductions.functions import mean
from symcomp.ops.shapes.shape import (
    as_integer,
    normalize_axes,
    normalize_axis,
    product_of,
    reshape,
    shape_tuple,
)
from symcomp.ops.sorting.sort import Argsort, SearchSorted, Sort, Unique, tensor_and_axis
from symcomp.ops.sorting.topk import ArgTopK


def sort(
    self: Any, axis: int | None = -1, kind: str | None = "quicksort", order: Any = None
) -> TensorVariable:
    """Sort the elements in ascending order along an axis, NaN last.

    Parameters
    ----------
    self : tensor_like
    axis : int or None
        None: of the flattened tensor.
    kind : str
        Accepted as in NumPy; equal elements cannot be told apart.
    order : None

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.sort(x).eval({x: [3, 1, 2]})
    array([1., 2., 3.])
    """
    a, number = tensor_and_axis("sort", self, axis, kind, order)
    return Sort(number)(a)


def argsort(
    a: Any, axis: int | None = -1, kind: str | None = "quicksort", order: Any = None
) -> TensorVariable:
    """Return the positions that sort ``a`` along an axis; see ``sort``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.argsort(x).eval({x: [3, 1, 2]})
    array([1, 2, 0])
    """
    a, number = tensor_and_axis("argsort", a, axis, kind, order)
    return Argsort(number)(a)


def searchsorted(x: Any, v: Any, side: str = "left", sorter: Any = None) -> TensorVariable:
    """Return the positions at which ``v`` would be inserted to keep the vector ``x`` sorted.

    Parameters
    ----------
    x : vector
    v : tensor_like
    side : {"left", "right"}
        Before or after equal elements.
    sorter : integer vector, optional
        The permutation that sorts ``x``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.searchsorted(x, 2.5).eval({x: [1, 2, 3]})
    array(2)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side={side!r}: must be 'left' or 'right'")
    x, v = as_tensor_variable(x), as_tensor_variable(v)
    common = dtypes.upcast(x.dtype, v.dtype)
    if sorter is not None:
        order = as_tensor_variable(sorter)
        if order.ndim != 1 or not dtypes.is_integer(order.dtype):
            raise DTypeError(
                f"searchsorted: sorter must be an integer vector, got {order} ({order.type})"
            )
        x = getitem(x, order)
    return SearchSorted(side)(cast_to(x, common), cast_to(v, common))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements, sorted.

    Parameters
    ----------
    ar : tensor_like
    return_index, return_inverse, return_counts : bool
        Also return where each occurs first, which one each element is, and how often each occurs.
    axis : int, optional
        Take slices along this axis instead of elements.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.unique(x).eval({x: [2, 1, 2]})
    array([1., 2.])
    """
    x = as_tensor_variable(ar)
    number = None if axis is None else normalize_axis("unique", axis, x.ndim)
    outputs = Unique(number, return_index, return_inverse, return_counts)(x)
    return outputs[0] if len(outputs) == 1 else outputs


def median(x: Any, axis: Any = None) -> TensorVariable:
    """Return the middle element over axes, or the mean of the two in the middle; NaN if there is a
    NaN or no element.

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
        By default all.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.median(x).eval({x: [5, 1, 2]})
    array(2.)
    """
    x = as_tensor_variable(x)
    axes = normalize_axes("median", axis, x.ndim)
    kept = [a for a in range(x.ndim) if a not in axes]
    lengths = shape_tuple(x)
    flat: Any = reshape(
        x.dimshuffle(*kept, *axes),
        [lengths[a] for a in kept] + [product_of([lengths[a] for a in axes])],
    )
    n = shape_tuple(flat)[-1]
    ordered = Sort(flat.ndim - 1)(flat)
    middle = mean(getitem(ordered, (..., slice((n - 1) // 2, n // 2 + 1))), axis=-1)
    if dtypes.is_discrete(x.dtype):
        return middle
    # NaN is sorted last; the slice is empty if x is
    last = getitem(ordered, (..., slice(-1, None)))
    return switch(any_(isnan(last), axis=-1), np.nan, middle)


def argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: Any = "int64"
) -> TensorVariable:
    """Return the positions of the ``kth`` largest elements; see ``topk``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.argtopk([3.0, 1.0, 2.0], 2).eval().tolist()
    [0, 2]
    """
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[1]


def topk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: Any = "int64"
) -> TensorVariable:
    """Return the ``kth`` largest elements along an axis, the largest first.

    Parameters
    ----------
    x : tensor_like
    kth : int or integer scalar
        The number of elements; negative: the smallest, smallest first. NaN counts as the largest.
    axis : int or None
        None: of the flattened tensor.
    sorted : bool
        Accepted for Theano's sake: they are always sorted.
    idx_dtype : optional
        Integer dtype of positions.

    Raises
    ------
    ShapeError
        If ``kth`` is 0, or there are fewer elements; when the function runs if it is known only
        then.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.topk(x, 2).eval({x: [3, 1, 2]})
    array([3., 2.])
    """
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[0]


def topk_and_argtopk(
    x: Any, kth: Any, axis: int | None = -1, sorted: bool = True, idx_dtype: Any = "int64"
) -> list[TensorVariable]:
    """Return ``[topk(...), argtopk(...)]``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [v.eval().tolist() for v in T.topk_and_argtopk([3.0, 1.0, 2.0], 2)]
    [[3.0, 2.0], [0, 2]]
    """
    kind = dtypes.canonical(idx_dtype)
    if not dtypes.is_integer(kind):
        raise DTypeError(f"topk: idx_dtype={idx_dtype!r} must be an integer dtype")
    values, number = tensor_and_axis("topk", x, axis)
    places = ArgTopK(number)(values, as_integer(kth, "topk", "kth"))
    return [take_along_axis(values, places, number), cast(places, kind)]


__all__ = [
    "argsort", "argtopk", "median", "searchsorted", "sort", "topk", "topk_and_argtopk", "unique",
]  # fmt: skip
