"""Check the fields of ops by their annotations: constructors of ops and ``load`` call this."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np

from symcomp.core.dtype import is_name, kind
from symcomp.errors import ParameterError

Check = Callable[[Any], bool]

#: NumPy's limit
MOST_AXES = 64


class Between(NamedTuple):
    """Annotation of an int in a range, both ends included."""

    least: int
    most: int

    def __str__(self) -> str:
        return f"from {self.least} to {self.most}"


class Such(NamedTuple):
    """Annotation of a value with a property, which the text names."""

    text: str
    holds: Check

    def __str__(self) -> str:
        return self.text


def one_of(*texts: str) -> Such:
    """Return the annotation of a text that is one of these."""
    return Such(f"that is {' or '.join(map(repr, texts))}", lambda text: text in texts)


#: An axis, counted from the start: functions of the user interface normalize negative axes first.
Axis = Annotated[int, Between(0, MOST_AXES - 1)]
Axes = Annotated[tuple[Axis, ...], Such("all different", lambda axes: len({*axes}) == len(axes))]
#: A number of axes.
Rank = Annotated[int, Between(0, MOST_AXES)]
#: A length, or a number of elements or of steps.
Natural = Annotated[int, Between(0, 2**63 - 1)]
#: The name of a dtype that tensors have.
DtypeName = Annotated[str, Such("that names a dtype", is_name)]


@cache
def kinds_of(cls: type) -> dict[str, Any]:
    """Return the types of the fields of a record class, by name; none for other classes."""
    fields: Any = getattr(cls, "__fields__", None)
    return {} if fields is None else {name: _kind_of(cls, name) for name in fields.names}


def _kind_of(cls: type, name: str) -> Any:
    """Evaluate the annotation of a field, in the module of the class that declares it."""
    for base in cls.__mro__:
        annotation = base.__dict__.get("__annotations__", {}).get(name)
        if isinstance(annotation, ForwardRef):  # NamedTuple keeps text annotations in this form
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            return eval(annotation, vars(sys.modules[base.__module__]))
        if annotation is not None:
            return annotation
    raise AttributeError(f"{cls.__name__} has no annotation of {name}")


@cache
def checks_of(cls: type) -> tuple[tuple[str, Check], ...]:
    """Return, for each field of a record class, the function that tells whether a value fits."""
    return tuple((name, check_of(kind)) for name, kind in kinds_of(cls).items())


def check_of(kind: Any) -> Check:
    """Return the function that tells whether a value is of the type that an annotation names."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: True
    if kind is None or kind is NoneType:
        return lambda value: value is None
    if origin is Annotated:
        return _marked(arguments[0], arguments[1:])
    if origin in (Union, UnionType):
        return _of_any([check_of(part) for part in arguments])
    if origin is Literal:
        return lambda value: any(type(part) is type(value) and part == value for part in arguments)
    if origin is tuple:
        return _of_tuples(arguments)
    if origin is type:
        return lambda value: isinstance(value, type) and issubclass(value, arguments)
    if origin is not None:
        return callable if origin is Callable else lambda value: isinstance(value, origin)
    return _of_class(kind)


def _marked(kind: Any, marks: Iterable[Any]) -> Check:
    """Return the check of a type and of the ``Annotated`` marks beside it."""
    found = check_of(kind)
    for mark in marks:
        if isinstance(mark, Between):
            found = _of_range(*mark)
        elif isinstance(mark, Such):
            found = _both(found, mark.holds)
    return found


def _of_range(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def _both(first: Check, second: Check) -> Check:
    return lambda value: first(value) and second(value)


def _of_any(parts: list[Check]) -> Check:
    """Return the check of a union; unions of two types, the usual case, have their own function."""
    first, *others = parts
    if len(others) == 1:
        (second,) = others
        return lambda value: first(value) or second(value)
    return lambda value: any(fits(value) for fits in parts)


def _of_tuples(arguments: tuple[Any, ...]) -> Check:
    if arguments[-1:] == (Ellipsis,):
        entry = check_of(arguments[0])
        return lambda value: type(value) is tuple and all(map(entry, value))
    entries = [check_of(part) for part in arguments]
    return lambda value: type(value) is tuple and _all_fit(entries, value)


def _of_class(kind: type) -> Check:
    if kind is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return lambda value: type(value) is int
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        entries = [check_of(_kind_of(kind, name)) for name in kind._fields]
        return lambda value: isinstance(value, kind) and _all_fit(entries, value)
    return lambda value: isinstance(value, kind)


def _all_fit(entries: list[Check], value: tuple[Any, ...]) -> bool:
    pairs = zip(entries, value, strict=False)
    return len(entries) == len(value) and all(fits(part) for fits, part in pairs)


def plain(value: Any) -> Any:
    """Return a number of NumPy's as the Python number that is equal to it, in tuples as well."""
    if isinstance(value, np.generic) and kind(value.dtype) in "biuf":
        return value.item()
    return tuple(map(plain, value)) if type(value) is tuple else value


def misfit(cls: type, name: str, value: Any) -> str:
    """Return an error message for the value of a field; empty if the value fits."""
    kind = kinds_of(cls)[name]
    if check_of(kind)(value):
        return ""
    return f"{cls.__name__}.{name} is {ascii(value):.80}: {described(kind)} is needed"


def described(kind: Any) -> str:
    """Return an annotation in words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind == Axis:
        return f"an axis counted from the start (an int from 0 to {MOST_AXES - 1})"
    if kind == Axes:
        return "a tuple of different axes counted from the start"
    if origin is Annotated:
        return " ".join([described(arguments[0]), *map(str, arguments[1:])])
    if origin in (Union, UnionType):
        return " or ".join(map(described, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:
        shown = ["..." if part is Ellipsis else described(part) for part in arguments]
        return f"tuple[{', '.join(shown)}]"
    return "None" if kind is NoneType else getattr(kind, "__name__", str(kind))


def check_fields(record: Any) -> None:
    """Check the fields of a record by their annotations.

    Numbers of NumPy's become Python's, 0 and 1 become bools where these are needed.

    Raises
    ------
    ParameterError
        If a value is of another type than its field, or out of its range.
    """
    values = record.__dict__
    cls: Any = type(record)
    for name, fits in checks_of(cls):
        if not fits(values[name]):
            converted = plain(values[name])
            if type(converted) is int and converted in (0, 1) and fits(bool(converted)):
                converted = bool(converted)
            if not fits(converted):
                raise ParameterError(misfit(cls, name, values[name]))
            values[name] = converted
