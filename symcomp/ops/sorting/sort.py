"""Sort, Argsort, SearchSorted, Unique: the ops that sort and search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Axis, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import (
    normalize_axis,
    require_axes,
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
