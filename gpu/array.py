"""DeviceArray: an array in the memory of a device; it is never written again once it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.interface import Driver, Memory
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.planner import contiguous_strides


class DeviceArray:
    """An array on a device.

    It may be there before its elements are: reading them (``get``, ``numpy.asarray``, ``float``)
    waits. It has ``__cuda_array_interface__`` where the device is a card.

    Attributes
    ----------
    device : str
    dtype : numpy.dtype
    shape, strides : tuple of int

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.gpu.array import to_device
    >>> x = to_device(np.arange(3.0), "emu")
    >>> x
    DeviceArray(float64, (3,), on emu)
    >>> np.asarray(x)
    array([0., 1., 2.])
    """

    __slots__ = ("__weakref__", "driver", "dtype", "memory", "offset", "shape", "strides")
    # NumPy's operators are not for it.
    __array_ufunc__ = None

    def __init__(
        self,
        driver: Driver,
        memory: Memory,
        offset: int,
        dtype: Any,
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        self.driver, self.memory, self.offset = driver, memory, offset
        self.dtype, self.shape, self.strides = np.dtype(dtype), tuple(shape), tuple(strides)

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.driver.name

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Of the first element, on the device."""
        return self.memory.address + self.offset

    def part(self, key: tuple[Any, ...]) -> DeviceArray:
        """Return a view: ``self[key]`` for numbers, slices, None and at most one ellipsis."""
        shadow = np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        # Of one element NumPy makes a number, not a view, unless there is an ellipsis.
        view = shadow[key if Ellipsis in key else (*key, Ellipsis)]
        start = view.__array_interface__["data"][0] - shadow.__array_interface__["data"][0]
        offset = self.offset + (start if view.size else 0)
        return DeviceArray(self.driver, self.memory, offset, self.dtype, view.shape, view.strides)

    def enqueue_get(self) -> np.ndarray:
        """Return a host array that is filled when the device has been waited for."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        span = np.empty(high - low + self.dtype.itemsize, "uint8")
        self.driver.to_host(span, self.memory, self.offset + low)
        return np.ndarray(self.shape, self.dtype, span.data, -low, self.strides)

    def get(self) -> np.ndarray:
        """Wait for the device, and return the elements as a host array of their own.

        Raises
        ------
        IndexError, DeviceError
            If work that was enqueued before has failed; the message names the op.
        """
        found = self.enqueue_get()
        self.driver.wait()
        return found if found.flags.c_contiguous else found.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a device is copied to become one of NumPy's")
        return self.get().astype(dtype or self.dtype, copy=False)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.get().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device == "emu":
            raise AttributeError("the memory of the emulator is none of a card's")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, True),
            "strides": self.strides,
            "version": 3,
            "stream": int(self.driver.stream.handle),  # type: ignore[attr-defined]
        }

    def __reduce__(self) -> Any:
        return _unpickled, (self.get(), self.device)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}, {self.shape}, on {self.device})"


def _unpickled(value: np.ndarray, device: str) -> DeviceArray:
    try:
        return to_device(value, device)
    except DeviceUnavailable as problem:
        problem.add_note(
            f"The pickle has an array on {device}. Files of symcomp.save can be loaded without the "
            "device: symcomp.load(path, device='cpu')."
        )
        raise


def to_device(value: Any, device: str) -> DeviceArray:
    """Return an array on a device, with the elements of a host array or of one on another device.

    Parameters
    ----------
    value : array_like or DeviceArray
    device : str
        "emu", "cuda", "cuda0", ...

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.gpu.array import to_device
    >>> to_device(np.ones((2, 3), "float32"), "emu").shape
    (2, 3)
    """
    driver = driver_of(device)
    if isinstance(value, DeviceArray):
        if value.driver is driver:
            return value
        value = value.get()
    array = np.asarray(value)
    memory = driver.allocate(array.nbytes, f"an array of shape {array.shape}")
    if array.nbytes:
        driver.to_device(memory, 0, np.ascontiguousarray(array))
    strides = contiguous_strides(array.shape, array.itemsize)
    return DeviceArray(driver, memory, 0, array.dtype, array.shape, strides)
