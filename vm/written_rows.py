"""Arrays that loops write row by row, on the host or, by the class of the type, elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from symcomp.core.record import replace
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError


class WrittenRows:
    """An array that is written row by row.

    Attributes
    ----------
    is_on_device : bool
        Whether it lies on a device.

    Parameters
    ----------
    kind : TensorType
        Of a row.
    name : str
        For messages.
    capacity : int
        The number of rows allocated initially.
    start : array or None
        The first rows; None: there are none, and the first row written determines the shape of all.
    """

    is_on_device = False

    def __init__(self, kind: Any, name: str, capacity: int, start: Any = None) -> None:
        self._kind, self.name, self._capacity = kind, name, capacity
        self.array: Any = None
        if start is not None:
            self.array = self._new(capacity, start.shape[1:])
            self._set_first(start)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements, as NumPy has it."""
        found: np.dtype = self._kind.numpy_dtype
        return found

    def write(self, place: int, value: Any) -> None:
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
                f"scan: {self.name} has shape {value.shape} in this step, and had "
                f"{self.array.shape[1:]} before: all steps must give the same shape"
            )
        if place >= len(self.array):
            before = self.array
            self.array = self._new(2 * len(before) + 1, value.shape)
            self._set_first(before)
        self._set(place, value)

    def first(self, length: int, row_shape: Sequence[int] | None) -> Any:
        """Return the first rows; ``row_shape`` is used where none was written."""
        if self.array is None:
            return self._new(length, tuple(row_shape or ()))
        return self.array if length == len(self.array) else self.array[:length].copy()

    def _new(self, length: int, row_shape: tuple[int, ...]) -> Any:
        return np.empty((length, *row_shape), self.dtype)

    def _set(self, place: int, value: Any) -> None:
        self.array[place] = value

    def _set_first(self, rows: Any) -> None:
        self.array[: len(rows)] = rows


@singledispatch
def written_rows(kind: Any, name: str, capacity: int, start: Any = None) -> Any:
    """Return what the rows of a state or an output are written to, by the class of their type; see
    ``WrittenRows``.
    """
    raise TypeError(f"scan: {name} is {kind}: rows must be arrays")


written_rows.register(TensorType, WrittenRows)


def has_rows(kind: Any) -> bool:
    """Return whether arrays of values of this type can be states and outputs."""
    return written_rows.dispatch(type(kind)) is not written_rows.dispatch(object)


def array_type(kind: Any, shape: Sequence[int | None]) -> Any:
    """Return the type of arrays of this shape, on the host or on a device as those of ``kind``."""
    is_tensor = isinstance(kind, TensorType)
    return TensorType(kind.dtype, shape) if is_tensor else replace(kind, shape=shape)
