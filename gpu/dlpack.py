"""Arrays of other libraries: DLPack's words for devices and dtypes, and `__cuda_array_interface__`.

An array that is given away is read-only: no array on a device is written again. Consumers that
cannot be told so (before version 1 of DLPack) get a copy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.cvm.machine import DeviceMemory, ForeignArray, to_dlpack
from symcomp.errors import DTypeError
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.planner import contiguous_strides

# Types of devices.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
# DLPack's code and number of bits of dtypes that NumPy lacks.
_STORAGE_CODES = {"bfloat16": (4, 16)}
VERSION = (1, 0)
# The stream for which nothing is to be waited for.
NO_WAIT = -1


class Lent:
    """Memory that another library reads; it is reused when all work on the device is done.

    Parameters
    ----------
    driver : Driver
    memory : DeviceMemory
    """

    __slots__ = ("_driver", "_memory")

    def __init__(self, driver: Driver, memory: DeviceMemory) -> None:
        self._driver, self._memory = driver, memory

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._driver.wait_for_others()


class Borrowed(DeviceMemory):
    """Memory of another library, which gets it back when all work on the device is done.

    Parameters
    ----------
    driver : Driver
    owner : object
        Keeps the memory alive.
    address : int
    """

    __slots__ = ("_driver", "owner")

    def __init__(self, driver: Driver, owner: Any, address: int) -> None:
        super().__init__(address, 0)
        self._driver, self.owner = driver, owner

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._driver.wait_for_others()


def device_name(device: tuple[int, int]) -> str:
    """Return the name of a device of DLPack; the host's memory is that of the emulator.

    Raises
    ------
    BufferError
        If it is a device of another kind.
    """
    kind, number = device
    if kind in (CPU, CUDA_HOST):
        return "emu"
    if kind in (CUDA, CUDA_MANAGED):
        return f"cuda{number}"
    raise BufferError(f"from_dlpack: there are no devices of DLPack's type {int(kind)}")


def dtype_of(code: int, bits: int, lanes: int) -> np.dtype:
    """Return the dtype of DLPack's numbers.

    Raises
    ------
    DTypeError
        If there is none: vectors, numbers of 4 bits.
    """
    if lanes == 1:
        for storage, known in _STORAGE_CODES.items():
            if (code, bits) == known:
                return dtypes.numpy_dtype(storage)
    name = f"{_KINDS.get(code)}{bits // 8}"
    if lanes == 1 and bits % 8 == 0 and code in _KINDS:
        try:
            found = np.dtype(name)
        except TypeError:
            found = np.dtype("V")
        if found.name in dtypes.ALL:
            return found
    raise DTypeError(
        f"from_dlpack: no tensor has DLPack's dtype (code {code}, {bits} bits, {lanes} lanes): "
        "cast it first"
    )


def capsule_of(array: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """Return the capsule of a DeviceArray; see ``DeviceArray.__dlpack__``."""
    driver = array.driver
    device = driver.dlpack_device
    is_host = device[0] == CPU
    versioned = max_version is not None and max_version[0] >= 1
    if dl_device is not None and tuple(map(int, dl_device)) != device:
        if tuple(map(int, dl_device)) != (CPU, 0) or copy is False:
            raise BufferError(f"__dlpack__: {array} cannot be on {dl_device}, it is on {device}")
        there = array.get()
        return _capsule(there, there.ctypes.data, (CPU, 0), there, versioned, True)
    if is_host and stream is not None:
        raise BufferError(f"__dlpack__: stream={stream!r}, but the memory is the host's")
    if copy is False and not versioned:
        raise BufferError(
            "__dlpack__: the array is read-only, which only capsules of version 1 can say: pass "
            "max_version=(1, 0), or let it be copied"
        )
    copied = bool(copy) or not versioned
    source = array.copy() if copied else array
    if is_host or stream != NO_WAIT:
        driver.wait()
    owner = Lent(driver, source.memory)
    return _capsule(owner, source.address, device, source, versioned, copied)


def _capsule(
    owner: Any, address: int, device: tuple[int, int], array: Any, versioned: bool, copied: bool
) -> Any:
    size = array.dtype.itemsize
    code = _STORAGE_CODES.get(array.dtype.name) or (_CODES[array.dtype.kind], 8 * size)
    strides = tuple(s // size for s in array.strides)
    return to_dlpack(
        owner, address, device, code, array.shape, strides, versioned, not copied, copied
    )


def taken_over(value: Any, driver: Driver) -> ForeignArray:
    """Return the array of an object with ``__dlpack__``, whose memory the driver can read."""
    options = {} if driver.stream_number is None else {"stream": driver.stream_number}
    try:
        capsule = value.__dlpack__(**options, max_version=VERSION)
    except TypeError:  # of a library that knows no versions yet
        capsule = value.__dlpack__(**options)
    return ForeignArray(capsule)


def layout_of(interface: Any) -> tuple[int, np.dtype, tuple[int, ...], tuple[int, ...]]:
    """Return address, dtype, shape and strides that a ``__cuda_array_interface__`` tells.

    Raises
    ------
    DTypeError
        If its elements are no numbers, or some are masked.
    """
    dtype = np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise DTypeError("to_device: an array on a card with a mask: fill its masked elements")
    if dtype.name not in dtypes.ALL or not dtype.isnative:
        raise DTypeError(f"to_device: an array on a card of dtype {dtype}, which no tensor has")
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous_strides(shape, dtype.itemsize)
    return int(interface["data"][0] or 0), dtype, shape, tuple(int(s) for s in strides)
