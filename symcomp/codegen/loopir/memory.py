"""Memory of the interpreter of LoopIR: bytes, addresses, and checked accesses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from symcomp.core.record import record
from symcomp.errors import SymcompError


class AccessError(SymcompError, IndexError):
    """An access outside of an array."""


@record(eq=False)
class Address:
    """A place in memory.

    Attributes
    ----------
    memory : array of uint8
        All that may be accessed from there.
    offset : int or array of int
        In bytes; an array where each lane has its own.
    """

    memory: Any
    offset: Any

    def at(self, offset: Any) -> Address:
        """Return an address in the same memory."""
        return Address(self.memory, offset)

    def moved(self, by: Any) -> Address:
        """Return the address ``by`` bytes further."""
        return Address(self.memory, self.offset + by)

    def read(self, index: Any, dtype: str) -> Any:
        """Return elements, starting ``index`` elements further: one for each lane if either is an
        array.
        """
        found, place = self._elements(index, dtype)
        return found.copy() if place is None else self.memory[place].view(dtype)[..., 0]

    def write(self, index: Any, dtype: str, value: Any) -> None:
        """Set elements; a single number is stored in all lanes."""
        found, place = self._elements(index, dtype)
        if place is None:
            found[...] = value
            return
        values = np.broadcast_to(np.asarray(value, dtype), place.shape[:-1])
        self.memory[place] = values[..., None].view(np.uint8)

    def _elements(self, index: Any, dtype: str) -> tuple[Any, Any]:
        """Return a view of elements; or, if they have no common stride, the positions of their
        bytes.
        """
        size = np.dtype(dtype).itemsize
        at = np.asarray(self.offset + index * size)
        if at.ndim == 0:
            self._check(int(at), int(at) + size, dtype)
            return np.ndarray((), dtype, self.memory, int(at)), None
        if at.size:
            self._check(int(at.min()), int(at.max()) + size, dtype)
        stride = int(at[1] - at[0]) if at.size > 1 else size
        if at.size and (at[0] + stride * np.arange(at.size) == at).all():
            return np.ndarray(at.shape, dtype, self.memory, int(at[0]), (stride,)), None
        return None, at[:, None] + np.arange(size)

    def rows(self, count: int, n: int, steps: tuple[int, int], dtype: str) -> Any:
        """Return a view of rows of n elements; ``steps`` are the bytes between rows and between
        elements.
        """
        ends = [
            0,
            (count - 1) * steps[0],
            (n - 1) * steps[1],
            (count - 1) * steps[0] + (n - 1) * steps[1],
        ]
        low, high = self.offset + min(ends), self.offset + max(ends)
        self._check(low, high + np.dtype(dtype).itemsize, dtype)
        return np.ndarray((count, n), dtype, self.memory, self.offset, steps)

    def set_rows(
        self,
        count: int,
        n: int,
        steps: tuple[int, int],
        source: Any,
        source_steps: tuple[int, int],
        dtype: str,
    ) -> None:
        """Set rows of n elements to those at another address."""
        self.rows(count, n, steps, dtype)[...] = source.rows(count, n, source_steps, dtype)

    def _check(self, low: int, high: int, dtype: str) -> None:
        if low < 0 or high > self.memory.size:
            raise AccessError(
                f"elements of {dtype} are accessed at bytes {low} to {high} of an array of "
                f"{self.memory.size}"
            )


def address_of(array: np.ndarray) -> Address:
    """Return the place of the first element of an array, in the bytes of the whole array."""
    low, high = byte_bounds(array)
    if array.size == 0:
        return Address(np.empty(0, np.uint8), 0)
    content = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
    return Address(content, array.ctypes.data - low)


def allocate(size: int) -> Address:
    """Return new memory, filled with a pattern that no computation gives."""
    return Address(np.full(size, 0xA5, np.uint8), 0)
