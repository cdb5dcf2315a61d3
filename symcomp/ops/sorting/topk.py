"""ArgTopK: the positions of the k largest elements along an axis, or of the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.fields import Axis
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_math import abs_
from symcomp.ops.reductions.cumulative import along
from symcomp.ops.shapes.shape import known_length, require_axes


@record
class ArgTopK(Op):
    """z = the positions of the k largest elements of x along ``axis``, the largest first; of the -k
    smallest, the smallest first, if k is negative. Equal elements stay in their order.
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
