"""DeviceArray: an array in the memory of a device; it is never written again once it is made."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np

from symcomp.core.dtype import NATIVE, STORAGE
from symcomp.core.dtype import canonical as canonical_dtype
from symcomp.cvm.machine import (
    CopyToDevice,
    DeviceArrayBase,
    copies_on_host,
    copy_within,
    part_of,
)
from symcomp.gpu.dlpack import Borrowed, capsule_of, device_name, dtype_of, layout_of, taken_over
from symcomp.gpu.driver.devices import canonical, driver_of, is_emulator
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.planner import contiguous_strides

# NumPy's dtypes of tensors, in the byte order of the machine.
_NATIVE = frozenset(map(np.dtype, NATIVE))


class DeviceArray(DeviceArrayBase):
    """An array on a device.

    It may be there before its elements are: reading them (``get``, ``numpy.asarray``, ``float``)
    waits. It has ``__cuda_array_interface__`` where the device is a card.

    Attributes
    ----------
    device : str
    driver : Driver
    memory : DeviceMemory
    offset, address : int
        Of the first element: in the memory, in bytes, and on the device.
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

    __slots__ = ("__weakref__",)
    # NumPy's operators are not for it.
    __array_ufunc__ = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.size * self.dtype.itemsize

    def part(self, key: tuple[Any, ...]) -> DeviceArray:
        """Return a view: ``self[key]`` for numbers, slices, None and at most one ellipsis."""
        found: DeviceArray = part_of(self, key)
        return found

    def get(self) -> np.ndarray:
        """Wait for the device, and return the elements as a host array of their own.

        Raises
        ------
        IndexError, DeviceError
            If work that was enqueued before has failed; the message names the op.
        """
        found: np.ndarray = copies_on_host((self,))[0]
        return found

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

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how else str(self)

    def __getitem__(self, key: Any) -> DeviceArray:
        """Return a view of a part of the array, without a wait.

        Parameters
        ----------
        key : int, slice, None, Ellipsis, or tuple of these

        Raises
        ------
        IndexError
            If a position is out of range, or the index has other entries.

        Examples
        --------
        >>> import numpy as np
        >>> from symcomp.gpu import to_device
        >>> batches = to_device(np.arange(6.0).reshape(3, 2), "emu")
        >>> batches[1:].get()
        array([[2., 3.],
               [4., 5.]])
        """
        entries = key if isinstance(key, tuple) else (key,)
        for entry in entries:
            is_number = isinstance(entry, Integral) and not isinstance(entry, bool)
            if not (is_number or entry is None or entry is Ellipsis or isinstance(entry, slice)):
                raise IndexError(
                    f"{self!r} takes numbers, slices, None and an ellipsis as positions, not "
                    f"{type(entry).__name__}: compile a function to read it at others"
                )
        return self.part(entries)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if is_emulator(self.device):
            raise AttributeError("the memory of the emulator is none of a card's")
        if self.dtype.name in STORAGE:
            raise AttributeError(
                f"__cuda_array_interface__ has no {self.dtype}; __dlpack__ and from_dlpack have"
            )
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, True),
            "strides": self.strides,
            "version": 3,
            "stream": self.driver.stream_number,
        }

    def copy(self) -> DeviceArray:
        """Return a copy on the device, with the same strides."""
        found: DeviceArray = copy_within(self)
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.driver.dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule, which keeps the memory alive, for another library.

        The host waits until the elements are there. The array is read-only; without ``max_version``
        the capsule cannot say so, and holds a copy.

        Parameters
        ----------
        stream : int, optional
            On cards: -1 does not wait.
        max_version : pair of int, optional
            The latest version of DLPack that is understood.
        dl_device : pair of int, optional
            (1, 0) gives the host a copy.
        copy : bool, optional

        Raises
        ------
        BufferError
            If it cannot be done.

        Examples
        --------
        >>> import numpy as np
        >>> from symcomp.gpu import to_device
        >>> np.from_dlpack(to_device(np.arange(3.0), "emu"))
        array([0., 1., 2.])
        """
        return capsule_of(self, stream, max_version, dl_device, copy)

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
    value : array_like, DeviceArray, or object with ``__cuda_array_interface__``
        An array on a card is copied there, without the host, and so is one on another card.
    device : str
        "cuda", "cuda0", ..., "emu", "emu1", ...

    Raises
    ------
    DTypeError
        If the elements are of a dtype that no tensor has.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.gpu.array import to_device
    >>> to_device(np.ones((2, 3), "float32"), "emu").shape
    (2, 3)
    """
    device = canonical(device)
    if not isinstance(value, DeviceArray) and hasattr(value, "__cuda_array_interface__"):
        value = _copied(value, "cuda0" if is_emulator(device) else device)
    array = value if isinstance(value, DeviceArray) else np.asarray(value)
    dtype = array.dtype if array.dtype in _NATIVE else np.dtype(canonical_dtype(array.dtype))
    found: DeviceArray = CopyToDevice(device, dtype, DeviceArray, driver_of)(array)
    return found


def _copied(value: Any, device: str) -> DeviceArray:
    """Return a copy of an array that another library has on a card."""
    driver = driver_of(device)
    address, dtype, shape, strides = layout_of(value.__cuda_array_interface__)
    if 0 in shape:
        return to_device(np.empty(shape, dtype), device)
    driver.wait_for_others()
    memory = Borrowed(driver, value, address)
    found = DeviceArray(driver, memory, 0, dtype, shape, strides).copy()
    driver.wait()  # the owner may write to its memory from here on
    return found


def from_dlpack(value: Any, device: str | None = None, copy: bool | None = None) -> DeviceArray:
    """Return an array on a device, of an object with ``__dlpack__``: of NumPy, PyTorch, CuPy, JAX.

    It shares the memory of ``value``, which must not be written to as long as the array is used.

    Parameters
    ----------
    value : object with ``__dlpack__`` and ``__dlpack_device__``
    device : str, optional
        By default the device whose memory it has; the emulator has the host's.
    copy : bool, optional
        True: always copy. False: never. By default only to another device.

    Raises
    ------
    TypeError, DTypeError
        If it is no such object; if its elements are of a dtype that no tensor has.
    BufferError
        If its device is of another kind, its elements are not aligned, or it had to be copied.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.gpu import from_dlpack
    >>> from_dlpack(np.arange(6.0).reshape(2, 3).T)
    DeviceArray(float64, (3, 2), on emu)
    """
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {value!r:.80} ({type(value).__name__}) has no __dlpack__")
    own = device_name(value.__dlpack_device__())
    target = own if device is None else canonical(device)
    if own != target and copy is False:
        raise BufferError(f"from_dlpack: from {own} to {target} the array must be copied")
    driver = driver_of(own)
    foreign = taken_over(value, driver)
    dtype = dtype_of(*foreign.dtype)
    if device_name(foreign.device) != own:
        raise BufferError(f"from_dlpack: the array is on {foreign.device}, not on {own}")
    if 0 in foreign.shape:
        return to_device(np.empty(foreign.shape, dtype), target)
    size = dtype.itemsize
    if foreign.address % size:
        raise BufferError(f"from_dlpack: elements of {size} bytes begin at {foreign.address:#x}")
    if foreign.strides is None:
        strides = contiguous_strides(foreign.shape, size)
    else:
        strides = tuple(s * size for s in foreign.strides)
    memory = Borrowed(driver, foreign, foreign.address)
    found = DeviceArray(driver, memory, 0, dtype, foreign.shape, strides)
    if own != target:
        return to_device(found, target)
    return found.copy() if copy else found
