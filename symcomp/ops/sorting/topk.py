"""The k largest elements along an axis, or the smallest, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_math import abs_, cast
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.reductions.cumulative import along
from symcomp.ops.shapes.shape import as_integer, known_length, require_axes
from symcomp.ops.sorting.sort import tensor_and_axis


@record
class ArgTopK(Op):
    """z = the positions of the k largest elements of x along ``axis``, the largest first; of the -k
    smallest, the smallest first, if k is negative. Of equal elements the first come first.
    (.., n, ..) () -> (.., abs(k), ..)
    """

    axis: Axis

    no_derivative = "its output is an integer"

    def output_types(self, x: TensorVariable, k: TensorVariable) -> list[TensorType]:
        if k.ndim != 0 or k.dtype != "int64":
            raise DTypeError(f"topk: kth must be an int64 scalar, got {k} ({k.type})")
        require_axes(self, (self.axis,), x)
        shape = list(x.type.shape)
        count = known_length(k)
        if count is not None:
            self.check(count, shape)
        shape[self.axis] = None if count is None else abs(count)
        return [TensorType("int64", shape)]

    def check(self, k: int, shape: Sequence[int | None]) -> None:
        """Raise a ShapeError if there are no k elements along the axis of an array of a shape."""
        n = shape[self.axis]
        if k == 0 or (n is not None and abs(k) > n):
            raise ShapeError(
                f"topk: kth={k} for an axis of length {n} (axis {self.axis} of shape "
                f"{tuple(shape)}): must be 1 to that length, or its negative"
            )

    def perform(self, x: Any, k: Any) -> Any:
        self.check(int(k), x.shape)
        if k < 0:
            order = np.argsort(x, axis=self.axis, kind="stable")
        else:
            # Sorted backwards twice: descending, with equal elements in their original order.
            backwards = np.argsort(np.flip(x, self.axis), axis=self.axis, kind="stable")
            order = x.shape[self.axis] - 1 - np.flip(backwards, self.axis)
        first = order[along(self.axis, x.ndim, slice(None, abs(int(k))))]
        return np.array(first, np.int64, order="C")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        lengths = list(shapes[0])
        lengths[self.axis] = abs_(node.inputs[1])
        return [tuple(lengths)]


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


__all__ = ["argtopk", "topk", "topk_and_argtopk"]
