"""Shared variables: symbolic inputs that keep a value between calls, for all functions that use
them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.compile.container import Container
from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.node import Type, Variable
from symcomp.core.special_types import generic
from symcomp.core.tensor import TensorType, TensorVariable, describe_value, refuse_masked
from symcomp.cvm.machine import aligned_copy
from symcomp.errors import DTypeError, ShapeError
from symcomp.lazy import import_home, lazy_module
from symcomp.ops.convert import note_float64


class SharedVariable(Variable):
    """A variable with a value of its own, kept in ``container`` and shared by all functions.

    Attributes
    ----------
    container : Container
    default_update : Variable or None
        The value that functions set after each call, unless it is disabled.
    """

    def __init__(
        self,
        type: Type,
        value: Any,
        name: str | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        container: Container | None = None,
    ) -> None:
        super().__init__(type, name=name)
        self.container = container or Container(type, value, name, strict, allow_downcast)
        self._default_update: Variable | None = None

    @staticmethod
    def type_on(device: str, kind: Type) -> Type:
        """Return the type of the values of ``kind`` on a device."""
        raise TypeError(f"there are no values of {kind} on devices")

    @property
    def default_update(self) -> Variable | None:
        """The update that functions apply by default."""
        return self._default_update

    @default_update.setter
    def default_update(self, expression: Any) -> None:
        if expression is not None:
            if not isinstance(expression, Variable):
                raise TypeError(f"default_update of {self} must be a variable, got {expression!r}")
            expression = self.type.filter_variable(expression)
        self._default_update = expression

    @default_update.deleter
    def default_update(self) -> None:
        self._default_update = None

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """Return the value.

        Parameters
        ----------
        borrow : bool
            False: return a copy. True: return the stored object, which must not be written to
            unless ``set_value`` follows. Calls do not change it while you hold it: they would store
            another array.
        return_internal_type : bool
            As stored: of a variable that lives on a device, the array there.
        """
        value = self.container.read()
        if self.container.type is not self.type and not self.type.is_super(self.container.type):
            return value if return_internal_type else value.get()
        return value if borrow else self.type.copy_value(value)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Set the value.

        Parameters
        ----------
        new_value
            A value of the variable's type; it is converted only if no precision is lost.
        borrow : bool
            False: store a copy. True: store the object itself where possible. Calls write over it
            once the caller has dropped it.

        Raises
        ------
        TypeError, ShapeError
            If it does not fit; the old value stays.
        """
        try:
            checked = self.container.check(new_value)
        except (TypeError, ValueError) as problem:
            problem.add_note(f"This was raised by set_value of the shared variable {self}")
            raise
        if not borrow and checked is new_value:
            is_array = type(checked) is np.ndarray
            checked = aligned_copy(checked) if is_array else self.container.type.copy_value(checked)
        self.container.value = checked

    def zero(self, borrow: bool = False) -> None:
        """Set all elements to zero; in place if ``borrow``."""
        if borrow and isinstance(self.container.value, np.ndarray):
            self.container.value[...] = 0
        else:
            self.set_value(np.zeros_like(self.get_value(borrow=True)), borrow=True)

    def clone(self, name: str | None = None) -> Any:
        """Return another variable with the same storage."""
        twin = self.__class__(self.type, None, name or self.name, container=self.container)
        twin.source = self.source
        if "_tag" in self.__dict__:
            twin._tag = self._tag
        twin._default_update = self._default_update
        return twin

    @property
    def value(self) -> Any:
        """Not readable on purpose: say ``get_value()``, so that copying is visible."""
        raise AttributeError("use get_value() and set_value() to access a shared variable's value")

    @value.setter
    def value(self, new_value: Any) -> None:
        raise AttributeError("use get_value() and set_value() to access a shared variable's value")


class TensorSharedVariable(SharedVariable, TensorVariable):
    """A shared array."""

    type: TensorType

    @staticmethod
    def type_on(device: str, kind: Type) -> Type:
        """Return the type of the values of ``kind`` on a device."""
        tensor: Any = kind
        found: Type = devices.DeviceType(device, tensor.dtype, tensor.shape)
        return found


class GenericSharedVariable(SharedVariable):
    """A shared Python object of any kind."""


# Dtypes of shared variables that live on ``config.device`` by default.
_ON_DEVICES = (*dtypes.FLOATS, *dtypes.STORAGE)
devices = lazy_module("symcomp.gpu.type")

Constructor = Callable[..., SharedVariable]
_constructors: list[Constructor] = []


def add_constructor(constructor: Constructor) -> Constructor:
    """Register a constructor that raises ``NotMine`` for values that it does not handle."""
    _constructors.insert(0, constructor)
    return constructor


def shared_constructor(constructor: Constructor) -> Constructor:
    """Register a constructor of ``shared`` for some kind of value; the newest is tried first.

    Parameters
    ----------
    constructor : callable
        Takes the arguments of ``shared``; raises TypeError for values that it does not handle.

    Returns
    -------
    callable
        The constructor, so that this serves as a decorator.

    Examples
    --------
    >>> import symcomp
    >>> class Angle(float):
    ...     pass
    >>> @symcomp.shared_constructor
    ... def shared_angle(value, name=None, **options):
    ...     if not isinstance(value, Angle):
    ...         raise TypeError("no angle")
    ...     return symcomp.shared(float(value) % 360.0, name)
    >>> symcomp.shared(Angle(400.0)).get_value()
    array(40.)
    """

    @functools.wraps(constructor)
    def tried(*args: Any, **options: Any) -> Any:
        try:
            return constructor(*args, **options)
        except TypeError as problem:
            raise NotMine(str(problem)) from problem

    add_constructor(tried)
    return constructor


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    **options: Any,
) -> Any:
    """Make a variable that keeps its value between calls.

    Parameters
    ----------
    value : ndarray, NumPy or Python number, or any object
        Arrays and numbers give a tensor of their dtype (a Python float is float64, an int int64).
    name : str, optional
    strict : bool
        Accept later values only if they have the very type.
    allow_downcast : bool, optional
        Convert later values even if precision is lost.
    **options
        For tensors: ``borrow`` (keep the array itself, not a copy), ``broadcastable`` or ``shape``
        (which lengths
        are fixed; by default none), ``device`` (Theano: ``target``): where the value lives,
        ``"cpu"``, ``"cuda0"``, .. or ``"emu"``; by default floats are on ``config.device``.

    Returns
    -------
    SharedVariable

    Raises
    ------
    TypeError
        If the value is symbolic, or no constructor accepts it with these options.

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> w = symcomp.shared(np.zeros(3), name="w")
    >>> w.set_value(np.ones(3))
    >>> w.get_value()
    array([1., 1., 1.])
    """
    if isinstance(value, Variable):
        raise TypeError(
            f"shared: {value} is symbolic; the value must be known. Use {value}.eval() to compute "
            "it first"
        )
    import_home(value)
    for constructor in _constructors:
        try:
            return constructor(
                value, name=name, strict=strict, allow_downcast=allow_downcast, **options
            )
        except NotMine:
            continue
    raise TypeError(f"shared: nothing can hold {describe_value(value)} with options {options}")


class NotMine(TypeError):
    """Raised by a shared constructor for values that it does not handle."""


@add_constructor
def generic_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    **options: Any,
) -> GenericSharedVariable:
    """Make a shared variable of any Python object."""
    if options:
        raise NotMine(f"generic shared variables take no options, got {options}")
    return GenericSharedVariable(generic, value, name, strict, allow_downcast)


@add_constructor
def tensor_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    broadcastable: Any = None,
    shape: Any = None,
    target: str | None = None,
    device: str | None = None,
    **options: Any,
) -> TensorSharedVariable:
    """Make a shared tensor of an array or a number, on the host or on a device."""
    if options or not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        raise NotMine(f"not a tensor: {describe_value(value)} with options {options}")
    place = place_of(device, target)
    refuse_masked(value)
    if borrow and isinstance(value, np.ndarray):
        array = value
    else:
        array = aligned_copy(np.asarray(value))
    if array.dtype.name not in dtypes.ALL:
        raise DTypeError(
            f"shared: {describe_value(value)} has dtype {array.dtype}, which no tensor has"
        )
    note_float64(array.dtype.name)
    if shape is None:
        shape = (None,) * array.ndim if broadcastable is None else map(bool, broadcastable)
    kind = TensorType(array.dtype, tuple(shape))
    if kind.ndim != array.ndim:
        raise ShapeError(f"shared: shape {kind.shape} for an array of shape {array.shape}")
    if place is None:
        place = config.device if kind.dtype in _ON_DEVICES else "cpu"
    return placed(TensorSharedVariable, place, kind, array, name, strict, allow_downcast)


def place_of(device: str | None, target: str | None) -> str | None:
    """Return the place that a caller names in one of two ways, or None."""
    if target is not None and device is not None and target != device:
        raise ValueError(f"shared: target={target!r} and device={device!r} mean the same: give one")
    return device or target


def placed(
    made: Any, place: str, kind: Type, value: Any, name: str | None, *options: Any
) -> Any:
    """Return a shared variable of the class ``made``, whose value lives on the host, ``"cpu"``, or
    on a device.
    """
    if place == "cpu":
        return made(kind, value, name, *options)
    container = Container(made.type_on(place, kind), value, name, *options)
    return made(kind, None, name, *options, container)
