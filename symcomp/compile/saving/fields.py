"""What the fields of ops may hold: their annotations, read as checks of what a file says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from symcomp.ops.pattern import ARRAY, FLAG, NEW, NOTHING, SYMBOL, Slice

# The texts that stand in index expressions.
MARKS = (SYMBOL, ARRAY, FLAG, NEW, NOTHING)


@cache
def kinds_of(cls: type) -> dict[str, Any]:
    """The types of the fields of a class, by name."""
    return get_type_hints(cls)


def fits(kind: Any, value: Any) -> bool:
    """Whether a value is of a type, as an annotation says it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if kind is None or kind is NoneType:
        return value is None
    if origin in (Union, UnionType):
        return any(fits(part, value) for part in arguments)
    if origin is Literal:
        return any(type(part) is type(value) and part == value for part in arguments)
    if origin is tuple:
        return _fits_tuple(arguments, value)
    if origin is type:
        return isinstance(value, type) and issubclass(value, arguments)
    if origin is not None:
        return callable(value) if origin is Callable else isinstance(value, origin)
    return _fits_class(kind, value)


def _fits_tuple(arguments: tuple[Any, ...], value: Any) -> bool:
    if not isinstance(value, tuple) or isinstance(value, Slice):
        return False
    if arguments[-1:] == (Ellipsis,):
        return all(fits(arguments[0], part) for part in value)
    return len(arguments) == len(value) and all(map(fits, arguments, value))


def _fits_class(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is Slice:
        return isinstance(value, Slice) and all(_fits_end(part) for part in value)
    return isinstance(value, kind)


def _fits_end(part: Any) -> bool:
    return part is None or part == SYMBOL or fits(int, part)


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, which it is equal to; else the value."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value


def _flat(value: Any) -> list[int]:
    """The numbers in nested tuples."""
    if isinstance(value, tuple):
        return [n for part in value for n in _flat(part)]
    return [value] if isinstance(value, int) else []


def misfit(cls: type, name: str, value: Any) -> str:
    """What is wrong with the value of a field; empty if nothing is."""
    kind = kinds_of(cls)[name]
    if fits(kind, value):
        if name in ("axis", "axes") and any(part < 0 for part in _flat(value)):
            # What computes takes an axis on trust; the functions of users count from the start.
            return f"{cls.__name__}.{name} is {value}: axes are counted from the start"
        return ""
    return f"{cls.__name__}.{name} is {value!r:.80}, which is no {getattr(kind, '__name__', kind)}"
