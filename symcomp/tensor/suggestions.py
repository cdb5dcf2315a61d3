"""Suggest replacements for NumPy's functions that build no graph."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from symcomp.lazy import OTHER_NAMES

# NumPy's modules -> the namespaces of symcomp with functions of the same names; the first match
# counts.
NAMESPACES = {
    "numpy": ("symcomp.tensor",),
    "numpy.linalg": ("symcomp.tensor.nlinalg", "symcomp.tensor.slinalg", "symcomp.tensor"),
    "numpy.fft": ("symcomp.tensor.fft",),
}
OF_METHODS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min", ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum", ("multiply", "accumulate"): "cumprod",
    ("multiply", "outer"): "outer", ("add", "at"): "inc_subtensor",
}  # fmt: skip
AT_CALLS = "make an op of it by symcomp.as_op, or call it on values"


def numpy_form(function: Any, method: str) -> str:
    """Return the suggestion for a function, or a method of a ufunc, of NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> numpy_form(np.linalg.qr, "__call__")
    'use symcomp.tensor.nlinalg.qr'
    >>> numpy_form(np.add, "accumulate")
    'use symcomp.tensor.cumsum'
    """
    name = function.__name__
    if method != "__call__":
        found = OF_METHODS.get((name, method))
        return f"use symcomp.tensor.{found}" if found else AT_CALLS
    for place in NAMESPACES.get(getattr(function, "__module__", "numpy"), ("symcomp.tensor",)):
        for word in (name, OTHER_NAMES.get(name, name)):
            if hasattr(import_module(place), word):
                return f"use {place}.{word}"
    return AT_CALLS
