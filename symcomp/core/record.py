"""Records: dataclasses, most of them frozen, whose methods are the same functions for all of them.

``dataclasses`` writes and compiles six functions for each class, which would be half of the time
that ``import symcomp`` takes. Fields are declared as there: by annotations, with ``field``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)


class _Fields:
    """The fields of a record class, in their order."""

    __slots__ = ("defaults", "factories", "frozen", "given", "key", "names", "shown")

    def __init__(self, given_fields: dict[str, Any], frozen: bool) -> None:
        self.given, self.frozen = given_fields, frozen
        self.names = tuple(given_fields)
        self.defaults: dict[str, Any] = {}
        self.factories: dict[str, Callable[[], Any]] = {}
        compared, shown = [], []
        for name, given in given_fields.items():
            if not isinstance(given, Field):
                given = field(default=given)
            if given.default_factory is not MISSING:
                self.factories[name] = given.default_factory
            elif given.default is not MISSING:
                self.defaults[name] = given.default
            if given.compare:
                compared.append(name)
            if given.repr:
                shown.append(name)
        self.shown = tuple(shown)
        self.key: Callable[[Any], Any] = attrgetter(*compared) if compared else _nothing


def _nothing(self: Any) -> tuple[()]:
    return ()


@overload
def record(cls: C, /) -> C: ...


@overload
def record(*, frozen: bool = True, eq: bool = True, repr: bool = True) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, frozen: bool = True, eq: bool = True, repr: bool = True) -> Any:
    """Make a class whose annotations are fields, compared and hashed by them.

    Methods defined by the class itself stay. ``__post_init__`` is called after the fields are set.

    Parameters
    ----------
    frozen : bool
        If false, fields may be assigned to, and records that are equal by them have no hash.
    eq : bool
        If true, records with equal fields are equal; else a record only equals itself.
    repr : bool
        If true, the representation shows the fields.

    Raises
    ------
    TypeError
        If the class derives from a dataclass that is no record.

    Examples
    --------
    >>> @record
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0)
    Point(x=1.0, y=0.0)
    >>> Point(1.0) == Point(1.0, 0.0)
    True
    """
    if cls is None:
        return lambda it: _make(it, frozen, eq, repr)
    return _make(cls, frozen, eq, repr)


R = TypeVar("R")


def replace(it: R, **changes: Any) -> R:
    """Return a record like another, with some fields changed.

    ``dataclasses.replace`` would write and compile the twin of each class first.

    Parameters
    ----------
    it : record or dataclass
    **changes
        New values of fields, by name.

    Examples
    --------
    >>> @record
    ... class Interval:
    ...     low: int
    ...     high: int
    >>> replace(Interval(1, 2), high=3)
    Interval(low=1, high=3)
    """
    kind: Any = type(it)
    fields = kind.__dict__.get("__fields__")
    if fields is None:  # a dataclass, which may derive from a record
        return dataclasses.replace(it, **changes)  # type: ignore[type-var]
    values = it.__dict__
    made: R = kind(**{name: values[name] for name in fields.names} | changes)
    return made


def _make(cls: type, frozen: bool, eq: bool, repr: bool) -> type:
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if "__fields__" in base.__dict__:
            fields.update(base.__dict__["__fields__"].given)
        elif "__dataclass_fields__" in base.__dict__:
            raise TypeError(
                f"record: {cls.__name__} derives from {base.__name__}, a dataclass that is no "
                "record: decorate it by dataclasses.dataclass"
            )
    own = {
        name: cls.__dict__.get(name, MISSING)
        for name, annotation in cls.__annotations__.items()
        if not _is_of_class(annotation)
    }
    fields.update(own)
    known = _Fields(fields, frozen)
    methods: dict[str, Any] = {
        "__fields__": known, "__match_args__": known.names, "__init__": _init,
        "__signature__": _Twin("__signature__"),
        "__dataclass_fields__": _Twin("__dataclass_fields__"),
        "__dataclass_params__": _Twin("__dataclass_params__"),
    }  # fmt: skip
    if frozen:
        methods |= {"__setattr__": _setattr, "__delattr__": _delattr}
    if eq:
        methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if repr:
        methods["__repr__"] = _repr
    # Python sets ``__hash__`` to None in a class with ``__eq__`` and no ``__hash__`` of its own.
    kept = {name for name in cls.__dict__ if name != "__hash__" or cls.__dict__[name] is not None}
    for name, method in methods.items():
        if name not in kept:
            setattr(cls, name, method)
    for name, given in own.items():
        if isinstance(given, Field):
            if name in known.defaults:
                setattr(cls, name, known.defaults[name])
            else:
                delattr(cls, name)
    return cls


def _is_of_class(annotation: Any) -> bool:
    """Tell whether an annotation is ``ClassVar[...]``, as text or evaluated."""
    return str(annotation).removeprefix("typing.").startswith("ClassVar")


class _Twin:
    """Descriptor of an attribute of the dataclass with the same fields, made on first access: so
    ``dataclasses.fields``, ``replace``, ``inspect.signature`` and dataclasses derived from a record
    work.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if self.name == "__signature__" and (instance is not None or owner.__init__ is not _init):
            return None  # for instances, and for classes with an ``__init__`` of their own
        return getattr(_twin(owner), self.name)


@cache
def _twin(cls: Any) -> Any:
    known = cls.__fields__
    fields = [(name, Any, _as_field(given)) for name, given in known.given.items()]
    twin = make_dataclass(cls.__name__, fields, frozen=known.frozen)
    twin.__signature__ = inspect.signature(twin)  # type: ignore[attr-defined]
    return twin


def _as_field(given: Any) -> Any:
    """Return a copy of a Field: ``dataclass`` modifies the Field objects that it is given."""
    if not isinstance(given, Field):
        return field(default=given)
    return field(
        default=given.default,
        default_factory=given.default_factory,
        compare=given.compare,
        repr=given.repr,
    )


# -- the methods


def _init(self: Any, *args: Any, **given: Any) -> None:
    fields = self.__fields__
    values = self.__dict__
    values.update(zip(fields.names, args))  # noqa: B905 - what is too many is looked for below
    if given or len(args) != len(fields.names):
        _complete(self, args, given)
    post_init = getattr(self, "__post_init__", None)
    if post_init is not None:
        post_init()


def _complete(self: Any, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Set the fields that are named, or have defaults."""
    fields, values = self.__fields__, self.__dict__
    missing = []
    for name in fields.names[len(args) :]:
        if name in given:
            values[name] = given.pop(name)
        elif name in fields.defaults:
            values[name] = fields.defaults[name]
        elif name in fields.factories:
            values[name] = fields.factories[name]()
        else:
            missing.append(name)
    called = type(self).__name__
    if missing:
        raise TypeError(f"{called}() needs {', '.join(missing)}")
    if given:
        raise TypeError(f"{called}() has no field {', '.join(given)}, or was given it twice")
    if len(args) > len(fields.names):
        raise TypeError(f"{called}() takes {len(fields.names)} arguments, got {len(args)}")


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key = self.__fields__.key
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(self.__fields__.key(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__fields__.shown)
    return f"{type(self).__qualname__}({shown})"


def _setattr(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
