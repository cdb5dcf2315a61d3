"""Dtypes by name: which exist, how they group and how they combine (NumPy 2's promotion rules)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from symcomp.errors import DTypeError
from symcomp.lazy import lazy_module

ml_dtypes = lazy_module("ml_dtypes")

INTEGERS = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
#: Dtypes that NumPy lacks, each with the dtype that ops compute in: arrays hold them, and results
#: are rounded to them.
STORAGE = {"bfloat16": "float32"}
#: The dtypes that are stored narrower than functions of several elements compute.
NARROW = {"float16": "float32", **STORAGE}
FLOATS = ("float16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
DISCRETE = ("bool", *INTEGERS, *UNSIGNED)
CONTINUOUS = (*FLOATS, *COMPLEXES)
#: NumPy's; ``ALL`` are those of tensors.
NATIVE = (*DISCRETE, *CONTINUOUS)
ALL = (*NATIVE, *STORAGE)


def canonical(dtype: Any, floatx: str = "float64") -> str:
    """Return the name of ``dtype``; ``"floatX"`` becomes ``floatx``.

    Raises
    ------
    DTypeError
        If it is not one of the 15 supported dtypes, or needs a package that is not installed.
    """
    if type(dtype) is str:
        if dtype in NATIVE:
            return dtype
        if dtype == "floatX":
            return floatx
        if dtype in STORAGE:
            return numpy_dtype(dtype).name
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = str(dtype)
    if name not in ALL:
        raise DTypeError(f"dtype {name!r} is not supported; use one of {', '.join(ALL)}")
    return name


def is_name(name: str) -> bool:
    """Tell whether ``name`` is that of a dtype; ``np.dtype`` knows it afterwards."""
    return name in NATIVE or (name in STORAGE and numpy_dtype(name).name == name)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of a supported name; that of a storage dtype is made by ml_dtypes, after
    whose import ``np.dtype`` knows the name.

    Raises
    ------
    DTypeError
        If ml_dtypes is not installed.
    """
    if name in STORAGE:
        try:
            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        except ImportError as problem:
            raise DTypeError(
                f"{name} needs the package ml_dtypes ({problem}): pip install 'symcomp[{name}]'"
            ) from None
        return found
    return np.dtype(name)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Tell whether NumPy's dtype is one of numbers or bool, supported or not."""
    return kind(dtype) in "biufc"


def kind(dtype: str | np.dtype[Any]) -> str:
    """Return NumPy's letter for the kind of a dtype: b, i, u, f or c for the supported ones."""
    found = np.dtype(dtype)
    return "f" if found.kind == "V" and found.name in STORAGE else found.kind


def limits(dtype: str | np.dtype[Any]) -> Any:
    """Return the limits of a floating dtype, as ``np.finfo``."""
    found = np.dtype(dtype)
    return ml_dtypes.finfo(found) if found.name in STORAGE else np.finfo(found)


def working(dtype: str) -> str:
    """Return the dtype that sums of numbers of ``dtype`` are computed in."""
    return NARROW.get(dtype, dtype)


def is_discrete(dtype: str) -> bool:
    """Tell whether a dtype is bool or an integer."""
    return dtype in DISCRETE


def is_integer(dtype: str) -> bool:
    """Tell whether a dtype is an integer, signed or not; bool is none."""
    return dtype in INTEGERS or dtype in UNSIGNED


def is_float(dtype: str) -> bool:
    """Tell whether a dtype is a real floating dtype."""
    return dtype in FLOATS or dtype in STORAGE


def is_complex(dtype: str) -> bool:
    """Tell whether a dtype is complex."""
    return dtype in COMPLEXES


def promoted(rule: Callable[..., str], *dtypes: str) -> str:
    """Return the dtype that a rule of NumPy's gives.

    NumPy has no rules for bfloat16: it combines as float16 does, with which it gives float32.
    """
    if "bfloat16" not in dtypes:
        return rule(*dtypes)
    like = "float32" if "float16" in dtypes else "float16"
    found = rule(*(like if dtype == "bfloat16" else dtype for dtype in dtypes))
    return "bfloat16" if found == "float16" else found


def _upcast(*dtypes: str) -> str:
    return np.result_type(*(np.dtype(dtype) for dtype in dtypes)).name


@cache
def upcast(*dtypes: str) -> str:
    """Return the smallest dtype that NumPy promotes all ``dtypes`` to."""
    return promoted(_upcast, *dtypes)


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
    return promoted(lambda x: loop_of(np.exp, x)[1], dtype)


@cache
def loop_of(ufunc: np.ufunc, *dtypes: str) -> tuple[str, ...]:
    """Return the dtypes of arguments and results of a ufunc's loop for arrays of ``dtypes``."""
    resolved = ufunc.resolve_dtypes((*map(np.dtype, dtypes), *(None,) * ufunc.nout))
    return tuple(str(found.name) for found in resolved)


def to_complex(dtype: str) -> str:
    """Return the complex dtype with the precision of ``dtype``."""
    return upcast(dtype, "complex64")
