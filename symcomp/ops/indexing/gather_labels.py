"""Read one element of each 1-d slice by its index, or write one among zeros. The index ``nowhere``
selects no element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis, Natural
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, IndexOutOfRangeError, ShapeError
from symcomp.ops.elementwise.elemwise import broadcast_static, unbroadcast
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import require_axes


def nowhere(dtype: str) -> int:
    """Return the index that selects no element, of a signed dtype: next to the integer that NaN is
    cast to.
    """
    return int(np.iinfo(dtype).min) + 1


@record
class _AtPosition(Op):
    """Base of both ops; ``axes`` holds the one axis of the slices."""

    axes: tuple[Axis]

    def _check(self, x: TensorVariable, index: TensorVariable) -> None:
        require_axes(self, self.axes, x)
        if not dtypes.is_integer(index.dtype):
            raise DTypeError(f"{self}: the positions must be integers, got {index.type}")
        shape = tuple(1 if a in self.axes else n for a, n in enumerate(x.type.shape))
        if index.ndim != x.ndim or any(
            (n == 1) != (m == 1) or (None not in (n, m) and n != m)
            for n, m in zip(index.type.shape, shape, strict=True)
        ):
            raise ShapeError(f"{self}: the positions are {index.type}; for x ({x.type}), {shape}")

    def _check_lengths(self, x: Any, index: Any) -> None:
        shape = tuple(1 if a in self.axes else n for a, n in enumerate(x.shape))
        if index.shape != shape:
            raise ShapeError(
                f"{self}: positions of shape {index.shape}; for x of shape {x.shape}, {shape}"
            )

    def _split(self, index: Any) -> tuple[Any, Any]:
        """Return the indices with ``nowhere`` replaced by a valid one, and the mask of these
        places.
        """
        none = index == nowhere(index.dtype) if index.dtype.kind == "i" else np.False_
        return np.where(none, 0, index), none


@record
class GatherLabels(_AtPosition):
    """z[i] = x[i, index[i, 0]]: from each slice along an axis the element at an index, counted from
    the end if it is negative; unspecified where the index is ``nowhere``.

    (.., n, ..), (.., 1, ..) -> (.., ..)
    """

    def output_types(self, x: TensorVariable, index: TensorVariable) -> list[TensorType]:
        self._check(x, index)
        return [TensorType(x.dtype, [n for a, n in enumerate(x.type.shape) if a not in self.axes])]

    def perform(self, x: Any, index: Any) -> Any:
        self._check_lengths(x, index)
        found, _ = self._split(index)
        return np.take_along_axis(x, found, self.axes[0]).squeeze(self.axes)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, index), (gz,) = inputs, output_grads
        return [ScatterLabels(self.axes)(x, index, expand_dims(gz, self.axes)), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None if tangents[0] is None else self(tangents[0], inputs[1])]


@record
class ScatterLabels(_AtPosition):
    """z[i, index[i, 0]] = y[i, 0], 0 elsewhere. y is stretched to the shape of the index; x only
    gives the shape.

    (.., n, ..), (.., 1, ..), (.., 1, ..) -> (.., n, ..)
    """

    def output_types(
        self, x: TensorVariable, index: TensorVariable, y: TensorVariable
    ) -> list[TensorType]:
        self._check(x, index)
        if broadcast_static(str(self), [index.type.shape, y.type.shape]) != index.type.shape:
            raise ShapeError(f"{self}: y ({y.type}) has more elements than {index.type}")
        return [TensorType(y.dtype, x.type.shape)]

    def perform(self, x: Any, index: Any, y: Any) -> Any:
        self._check_lengths(x, index)
        z = np.zeros(x.shape, y.dtype)
        found, none = self._split(index)
        np.put_along_axis(z, found, np.where(none, 0, y).astype(y.dtype), self.axes[0])
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (_, index, y), (gz,) = inputs, output_grads
        picked = expand_dims(GatherLabels(self.axes)(gz, index), self.axes)
        return [None, None, unbroadcast(picked, y)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dy = tangents[2]
        return [None if dy is None else self(inputs[0], inputs[1], dy)]


@record
class AsRows(Op):
    """y extended to the number of rows of x, n of them being known: ``fill`` after its elements.
    (n, ..), (m) -> (n)

    m is at most n; it is ``count``, if that is not None; a single element is repeated ``count``
    times.
    """

    fill: float
    count: Natural | None = None

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        if not x.ndim or y.ndim != 1:
            raise ShapeError(f"{self}: an array and a vector are needed, got {x.type}, {y.type}")
        return [TensorType(y.dtype, x.type.shape[:1])]

    def perform(self, x: Any, y: Any) -> Any:
        n, m = len(x), len(y) if self.count is None else self.count
        if m > n:
            raise IndexOutOfRangeError(
                f"index {m - 1} is out of bounds for axis 0 with size {n}: there are {m} positions "
                f"for the rows of an array of shape {x.shape}"
            )
        if len(y) not in (1, m):
            raise IndexOutOfRangeError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes "
                f"({m},) {y.shape}"
            )
        z = np.full(n, self.fill, y.dtype)
        z[:m] = y
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0][:1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [self.count is None]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        y = inputs[1]
        return [None, None if self.count is not None else output_grads[0][: y.shape[0]]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dy = tangents[1]
        return [None if dy is None else AsRows(0)(inputs[0], dy)]

    view_map = {0: (1,)}
