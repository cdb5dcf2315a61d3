"""Dtypes by name: which exist, how they group and how they combine (NumPy 2's promotion rules)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symcomp.errors import DTypeError

INTEGERS = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
DISCRETE = ("bool", *INTEGERS, *UNSIGNED)
CONTINUOUS = (*FLOATS, *COMPLEXES)
ALL = (*DISCRETE, *CONTINUOUS)


def canonical(dtype: Any, floatx: str = "float64") -> str:
    """Return the name of ``dtype``; ``"floatX"`` becomes ``floatx``.

    Raises
    ------
    DTypeError
        If it is not one of the 14 supported dtypes.
    """
    if type(dtype) is str:
        if dtype in ALL:
            return dtype
        if dtype == "floatX":
            return floatx
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = str(dtype)
    if name not in ALL:
        raise DTypeError(f"dtype {name!r} is not supported; use one of {', '.join(ALL)}")
    return name


def is_discrete(dtype: str) -> bool:
    """Tell whether a dtype is bool or an integer."""
    return dtype in DISCRETE


def is_integer(dtype: str) -> bool:
    """Tell whether a dtype is an integer, signed or not; bool is none."""
    return dtype in INTEGERS or dtype in UNSIGNED


def is_float(dtype: str) -> bool:
    """Tell whether a dtype is a real floating dtype."""
    return dtype in FLOATS


def is_complex(dtype: str) -> bool:
    """Tell whether a dtype is complex."""
    return dtype in COMPLEXES


@cache
def upcast(*dtypes: str) -> str:
    """Return the smallest dtype that NumPy promotes all ``dtypes`` to."""
    return np.result_type(*(np.dtype(dtype) for dtype in dtypes)).name


def accumulator(dtype: str) -> str:
    """Return the dtype of NumPy's sums of ``dtype``: 64 bits for booleans and integers."""
    if dtype in UNSIGNED:
        return "uint64"
    return "int64" if is_discrete(dtype) else dtype


def real_part(dtype: str) -> str:
    """Return the dtype of the real part of ``dtype``."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


@cache
def to_float(dtype: str) -> str:
    """Return the dtype of ``np.exp`` of ``dtype``: floats and complexes stay, integers become wide
    enough floats.
    """
    resolved: np.dtype[Any] = np.exp.resolve_dtypes((np.dtype(dtype), None))[1]
    return str(resolved.name)


def to_complex(dtype: str) -> str:
    """Return the complex dtype with the precision of ``dtype``."""
    return upcast(dtype, "complex64")
