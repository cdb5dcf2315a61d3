"""Rows of the states and outputs of loops that lie on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.planner import contiguous_strides
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.type import DeviceType
from symcomp.ops.shapes.contiguous import Contiguous


class DeviceRows:
    """An array on a device that is written row by row, as ``scan.run.WrittenRows``.

    No row is written again, so arrays that show the rows before do not change.

    Parameters
    ----------
    name : str
        For messages.
    kind : DeviceType
        Of a row.
    capacity : int
        The number of rows allocated initially.
    start : DeviceArray or None
        The first rows; None: there are none, and the first row written determines the shape of all.
    """

    def __init__(self, name: str, kind: DeviceType, capacity: int, start: Any = None) -> None:
        self._name, self._kind, self._capacity = name, kind, capacity
        self.array: Any = None
        if start is not None:
            self.array = self._new(capacity, start.shape[1:])
            self._copy(0, start)

    def write(self, place: int, value: DeviceArray) -> None:
        """Set a row; the first one determines the shape of all.

        Raises
        ------
        ShapeError
            If the row has another shape.
        """
        if self.array is None:
            self.array = self._new(self._capacity, value.shape)
        if value.shape != self.array.shape[1:]:
            raise ShapeError(
                f"scan: {self._name} has shape {value.shape} in this step, and had "
                f"{self.array.shape[1:]} before: all steps must give the same shape"
            )
        if place >= len(self.array):
            before = self.array
            self.array = self._new(2 * len(before) + 1, value.shape)
            self._copy(0, before)
        self._copy(place, value)

    def first(self, length: int, row_shape: Sequence[int] | None) -> DeviceArray:
        """Return the first rows; ``row_shape`` is used where none was written."""
        if self.array is None:
            return self._new(length, tuple(row_shape or ()))
        found: DeviceArray = self.array
        return found if length == len(found) else found.part((slice(length),)).copy()

    def _new(self, length: int, row_shape: tuple[int, ...]) -> DeviceArray:
        driver, dtype = driver_of(self._kind.device), np.dtype(self._kind.dtype)
        shape = length, *row_shape
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = driver.allocate(size, f"{self._name} of shape {shape}")
        strides = contiguous_strides(shape, dtype.itemsize)
        return DeviceArray(driver, memory, 0, dtype, shape, strides)

    def _copy(self, place: int, value: DeviceArray) -> None:
        """Copy one row, or several, to the rows from ``place`` on."""
        if value.nbytes:
            value = in_c_order(value)
            to = place * self.array.strides[0]
            value.driver.within(self.array.memory, to, value.memory, value.offset, value.nbytes)


def in_c_order(x: DeviceArray) -> DeviceArray:
    """Return an array whose elements lie in C order: a copy on its device, where they do not."""
    if x.strides == contiguous_strides(x.shape, x.dtype.itemsize):
        return x
    (found,) = _copy_to_c_order(x.device, x.dtype.name, len(x.shape)).program(x)
    copied: DeviceArray = found
    return copied


@cache
def _copy_to_c_order(device: str, dtype: str, ndim: int) -> DeviceGraph:
    x = TensorType(dtype, (None,) * ndim).make_variable()
    return DeviceGraph(ClosedGraph([x], [Contiguous()(x)]), device)
