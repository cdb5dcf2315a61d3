"""One element of each line, by its position: read, or written among zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.elemwise import broadcast_static, unbroadcast


@record
class _AtPosition(Op):
    """``axes`` holds the one axis of the lines."""

    axes: tuple[int]

    def _check(self, x: TensorVariable, index: TensorVariable) -> None:
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

    def _keep(self, z: Any, rank: int) -> Any:
        rest = iter(range(z.ndim))
        return DimShuffle(
            z.ndim, tuple("x" if a in self.axes else next(rest) for a in range(rank))
        )(z)


@record
class Pick(_AtPosition):
    """z[i] = x[i, index[i, 0]]: from each line along an axis the element at a position, counted
    from the end if it is negative.   (.., n, ..), (.., 1, ..) -> (.., ..)
    """

    def output_types(self, x: TensorVariable, index: TensorVariable) -> list[TensorType]:
        self._check(x, index)
        return [TensorType(x.dtype, [n for a, n in enumerate(x.type.shape) if a not in self.axes])]

    def perform(self, x: Any, index: Any) -> Any:
        self._check_lengths(x, index)
        return np.take_along_axis(x, index, self.axes[0]).squeeze(self.axes)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, index), (gz,) = inputs, output_grads
        return [Put(self.axes)(x, index, self._keep(gz, x.ndim)), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None if tangents[0] is None else self(tangents[0], inputs[1])]


@record
class Put(_AtPosition):
    """z[i, index[i, 0]] = y[i, 0], 0 elsewhere: what of each line is at a position. y is stretched
    to the shape of the index; the values of x do not matter.

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
        np.put_along_axis(z, index, y, self.axes[0])
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, index, y), (gz,) = inputs, output_grads
        return [None, None, unbroadcast(self._keep(Pick(self.axes)(gz, index), x.ndim), y)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dy = tangents[2]
        return [None if dy is None else self(inputs[0], inputs[1], dy)]
