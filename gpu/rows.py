"""Rows of the states and outputs of loops that lie on a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.dtype import numpy_dtype
from symcomp.core.tensor import TensorType
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.planner import contiguous_strides
from symcomp.gpu.region import DeviceGraph
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.vm.written_rows import WrittenRows


class DeviceRows(WrittenRows):
    """An array on a device that is written row by row; ``kind`` is a DeviceType.

    No row is written again, so arrays that show the rows before do not change.
    """

    is_on_device = True

    @property
    def dtype(self) -> np.dtype:
        return numpy_dtype(self._kind.dtype)

    def in_order(self, ndim: int) -> Callable[[DeviceArray], tuple[DeviceArray]]:
        """Return the function from arrays of ``ndim`` axes to copies in C order, on the device."""
        found: Callable[[DeviceArray], tuple[DeviceArray]]
        found = _copy_to_c_order(self._kind.device, self._kind.dtype, ndim).program
        return found

    def _new(self, length: int, row_shape: tuple[int, ...]) -> DeviceArray:
        driver, dtype = driver_of(self._kind.device), self.dtype
        shape = length, *row_shape
        size = math.prod(shape) * dtype.itemsize
        memory = driver.allocate(size, f"{self.name} of shape {shape}")
        strides = contiguous_strides(shape, dtype.itemsize)
        return DeviceArray(driver, memory, 0, dtype, shape, strides)

    def _set(self, place: int, value: DeviceArray) -> None:
        """Copy one row, or several, to the rows from ``place`` on."""
        if value.nbytes:
            if value.strides != contiguous_strides(value.shape, value.dtype.itemsize):
                (value,) = self.in_order(value.ndim)(value)
            to = place * self.array.strides[0]
            value.driver.within(self.array.memory, to, value.memory, value.offset, value.nbytes)

    def _set_first(self, rows: DeviceArray) -> None:
        self._set(0, rows)


@cache
def _copy_to_c_order(device: str, dtype: str, ndim: int) -> DeviceGraph:
    x = TensorType(dtype, (None,) * ndim).make_variable()
    return DeviceGraph(ClosedGraph([x], [Contiguous()(x)]), device)
