"""DeviceType: arrays in the memory of a device; and their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from symcomp.core.dtype import canonical as canonical_dtype
from symcomp.core.dtype import numpy_dtype
from symcomp.core.node import Constant, Type, Variable
from symcomp.core.record import record
from symcomp.core.tensor import StaticShape, TensorType, static_shape
from symcomp.cvm.machine import DeviceValues
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.devices import canonical


class TypeOnDevice(Type):
    """Base of the types of values in the memory of a device, which are never written again.

    Attributes
    ----------
    device : str
    on_host : Type
        The type of the same values on the host.
    """

    device: str
    on_host: Any
    #: Values are their own copies.
    has_fixed_values: ClassVar[bool] = True

    def to_host(self, value: Any) -> Any:
        """Return a value as one of the type on the host."""
        raise NotImplementedError

    def is_super(self, other: Type) -> bool:
        """Return whether ``other`` differs at most as the type on the host lets it."""
        return isinstance(other, type(self)) and (
            self.device == other.device and bool(self.on_host.is_super(other.on_host))
        )

    def values_eq(self, a: Any, b: Any) -> bool:
        """Return whether two values have the same elements, NaN being equal to itself."""
        return bool(self.on_host.values_eq(self.to_host(a), self.to_host(b)))

    def values_eq_approx(self, a: Any, b: Any) -> bool:
        """Return whether two values are equal up to rounding."""
        return bool(self.on_host.values_eq_approx(self.to_host(a), self.to_host(b)))

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Return False: values on devices are never written again."""
        return False

    def copy_value(self, value: Any) -> Any:
        """Return the value itself, which is never written again."""
        return value

    def __str__(self) -> str:
        return f"{self.on_host} on {self.device}"


@record
class DeviceType(TypeOnDevice):
    """The type of arrays of one dtype on one device, with some lengths known.

    Parameters
    ----------
    device : str
        "emu", "cuda", "cuda0", ...
    dtype : str or numpy.dtype
    shape : sequence of int or None
        The length of each axis, None where it is unknown.

    Examples
    --------
    >>> from symcomp.gpu.type import DeviceType
    >>> DeviceType("emu", "float32", (None, 3))
    DeviceType(emu, float32, (None, 3))
    """

    device: str
    dtype: str
    shape: StaticShape = field(default=())

    def __init__(self, device: str, dtype: Any, shape: Sequence[Any] = ()) -> None:
        object.__setattr__(self, "device", canonical(device))
        object.__setattr__(self, "dtype", canonical_dtype(dtype))
        object.__setattr__(self, "shape", static_shape(shape))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, whether its length is known to be 1."""
        return tuple(n == 1 for n in self.shape)

    @property
    def on_host(self) -> TensorType:
        """The type of the same arrays on the host."""
        return TensorType(self.dtype, self.shape)

    @property
    def native_values(self) -> DeviceValues:
        """A description of the values for C."""
        return DeviceValues(self.device, numpy_dtype(self.dtype), self.shape)

    def moved(self, target: str) -> Type:
        """Return the type of the same arrays on another device, or on the host, ``"cpu"``."""
        return self.on_host if target == "cpu" else DeviceType(target, self.dtype, self.shape)

    def joined(self, other: Type) -> Type | None:
        """Return the type of the arrays of both types; None if they differ in more than lengths."""
        if not isinstance(other, DeviceType) or self.ndim != other.ndim:
            return None
        if (self.device, self.dtype) != (other.device, other.dtype):
            return None
        known = [a if a == b else None for a, b in zip(self.shape, other.shape, strict=True)]
        return DeviceType(self.device, self.dtype, known)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a value of this type: host arrays are copied to the device; with ``strict`` they
        must have its dtype.

        Raises
        ------
        DTypeError, ShapeError
            If it does not fit.
        """
        if not isinstance(value, DeviceArray) and hasattr(value, "__cuda_array_interface__"):
            value = to_device(value, self.device)
        if not isinstance(value, DeviceArray):
            return to_device(self.on_host.filter(value, strict, allow_downcast), self.device)
        if value.dtype != numpy_dtype(self.dtype):
            raise DTypeError(f"expected {self}, got {value!r}")
        fits = len(value.shape) == self.ndim and all(
            n is None or n == m for n, m in zip(self.shape, value.shape, strict=True)
        )
        if not fits:
            raise ShapeError(f"expected {self}, got {value!r}")
        return to_device(value, self.device)

    def to_host(self, value: Any) -> np.ndarray:
        """Return a value as an array of the host."""
        return np.asarray(value)

    def __repr__(self) -> str:
        return f"DeviceType({self.device}, {self.dtype}, {self.shape})"


class DeviceVariable(Variable):
    """An array on a device, as a variable.

    Where a tensor is needed, it stands for its copy on the host; rewriting then leaves out copies
    that are not needed.
    """

    type: DeviceType
    #: The functions that make the variable a tensor, and bring a tensor to a device;
    #: ``transfers.py`` sets them.
    to_host: ClassVar[Callable[[Any], Any]]
    to_device: ClassVar[Callable[[Any, str], Any]]

    def as_tensor_variable(self) -> Any:
        """Return the tensor of the same elements."""
        return type(self).to_host(self)

    @property
    def dtype(self) -> str:
        """The dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, whether its length is known to be 1."""
        return self.type.broadcastable

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.as_tensor_variable(), name)


def _forward(name: str) -> Any:
    def method(self: DeviceVariable, *args: Any) -> Any:
        return getattr(self.as_tensor_variable(), name)(*args)

    method.__name__ = name
    return method


#: Operators that Python looks up in the class, not in the variable.
_OPERATORS = (
    *(f"__{r}{name}__" for r in ("", "r") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor",
        "lshift", "rshift", "matmul",
    )),
    "__neg__", "__pos__", "__abs__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__",
    "__getitem__",
)  # fmt: skip
for _name in _OPERATORS:
    setattr(DeviceVariable, _name, _forward(_name))


class DeviceConstant(Constant, DeviceVariable):
    """An array on a device, whose elements are known."""


DeviceType.variable_class = DeviceVariable
DeviceType.constant_class = DeviceConstant
