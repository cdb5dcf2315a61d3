"""Sort and search: sort, argsort, searchsorted, unique, median."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import isnan, switch
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.indexing.index import getitem
from symcomp.ops.reductions.reduce import any as any_
from symcomp.ops.reductions.reduce import mean
from symcomp.ops.shapes.shape import (
    flatten,
    normalize_axes,
    normalize_axis,
    product_of,
    require_axes,
    reshape,
    shape_tuple,
)


@record
class Argsort(Op):
    """z = the positions that sort x along ``axis``; NaN last. Always stable."""

    axis: Axis

    no_derivative = "its output is an integer"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, (self.axis,), x)
        return [TensorType("int64", x.type.shape)]

    def perform(self, x: Any) -> Any:
        return np.asarray(np.argsort(x, axis=self.axis, kind="stable"), np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]


@record
class Sort(Op):
    """z = x in ascending order along ``axis``; NaN last."""

    axis: Axis

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, (self.axis,), x)
        return [x.type]

    def perform(self, x: Any) -> Any:
        return np.sort(x, axis=self.axis)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        order = Argsort(self.axis)(inputs[0])
        # The inverse of a permutation is its argsort.
        return [take_along_axis(output_grads[0], Argsort(self.axis)(order), self.axis)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [take_along_axis(tangents[0], Argsort(self.axis)(inputs[0]), self.axis)]


KINDS = ("quicksort", "mergesort", "heapsort", "stable", None)


def tensor_and_axis(
    name: str, a: Any, axis: Any, kind: Any = None, order: Any = None
) -> tuple[TensorVariable, int]:
    """Return the tensor to sort and the number of its axis; refuse what sorting does not take."""
    if kind not in KINDS:
        raise ValueError(f"{name}: kind={kind!r}: must be one of {KINDS}")
    if order is not None:
        raise ValueError(f"{name}: order={order!r}: tensors have no fields to order by")
    a = as_tensor_variable(a)
    if axis is None:
        a, axis = flatten(a), 0
    return a, normalize_axis(name, axis, a.ndim)


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


@record
class SearchSorted(Op):
    """z[i] = how many elements of the sorted vector x are below (``side`` "left") or not above
    v[i].   (n,) (...) -> (...)
    """

    side: Annotated[str, one_of("left", "right")]

    no_derivative = "its output is an integer"

    def output_types(self, x: TensorVariable, v: TensorVariable) -> list[TensorType]:
        if x.ndim != 1:
            raise ShapeError(f"searchsorted: x ({x.type}) is no vector")
        return [TensorType("int64", v.type.shape)]

    def perform(self, x: Any, v: Any) -> Any:
        return np.asarray(np.searchsorted(x, v, self.side), np.int64)  # type: ignore[call-overload]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]


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


@record
class Unique(Op):
    """The distinct elements (or slices along ``axis``) of x, sorted; positions of the first, of
    each, and counts.
    """

    axis: Axis | None
    return_index: bool
    return_inverse: bool
    return_counts: bool

    multiple_outputs = True
    no_derivative = "how many elements there are depends on their values"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, () if self.axis is None else (self.axis,), x)
        shape = (
            [None]
            if self.axis is None
            else [None if a == self.axis else n for a, n in enumerate(x.type.shape)]
        )
        inverse = x.type.shape if self.axis is None else (x.type.shape[self.axis],)
        types = [TensorType(x.dtype, shape)]
        types += [TensorType("int64", (None,))] * self.return_index
        types += [TensorType("int64", inverse)] * self.return_inverse
        types += [TensorType("int64", (None,))] * self.return_counts
        return types

    def perform(self, x: Any) -> tuple[Any, ...]:
        flags = (self.return_index, self.return_inverse, self.return_counts)
        found: Any = np.unique(x, *flags, axis=self.axis)  # type: ignore[call-overload]
        parts = list(found) if isinstance(found, tuple) else [found]
        if self.return_inverse:
            at = 1 + self.return_index
            shape = x.shape if self.axis is None else (x.shape[self.axis],)
            parts[at] = parts[at].reshape(shape)
        return (parts[0], *(np.asarray(p, np.int64) for p in parts[1:]))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        # The number of distinct elements is only known from the outputs.
        return [shape_tuple(out) for out in node.outputs]


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


__all__ = ["argsort", "median", "searchsorted", "sort", "unique"]
