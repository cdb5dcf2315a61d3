"""Values of arguments and parameters, equal in every process and with every NumPy."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import symcomp


def numbers(*shape: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    """Return different numbers between -1 and 1; for integers and bool, small numbers from 0."""
    count = np.arange(prod(shape)).reshape(shape)
    if np.dtype(dtype).kind in "biu":
        return (count * 7 % 11 % 5).astype(dtype)
    values = (count * 37 % 101 - 50) / 64
    return (values + 1j * values[..., ::-1] if dtype.startswith("c") else values).astype(dtype)


def positive_definite(n: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    """Return a matrix that is symmetric, and far from singular."""
    a = numbers(n, n)
    return (a @ a.T + n * np.eye(n)).astype(dtype)


def parameter(name: str, *shape: int, dtype: str = "float32") -> Any:
    """Make a shared variable."""
    return symcomp.shared(numbers(*shape, dtype=dtype), name)


def descent(loss: Any, parameters: list[Any], rate: float = 0.1) -> dict[Any, Any]:
    """Build the updates of plain gradient descent."""
    slopes = symcomp.grad(loss, parameters)
    return {p: p - np.asarray(rate, p.dtype) * g for p, g in zip(parameters, slopes, strict=True)}
