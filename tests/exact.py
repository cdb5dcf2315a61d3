"""Graphs computed with hundreds of digits: the truth that rewritten graphs are held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from symcomp.core.node import Constant
from symcomp.core.walk import toposort
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.dimshuffle import DimShuffle

# Enough digits for 1 + 1e-300 to be exact with all the digits of its logarithm.
DIGITS = 700

SCALARS: dict[str, Callable[..., Any]] = {
    "add": lambda *xs: mpmath.fsum(xs),
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "true_div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "sqr": lambda x: x * x,
    "pow": lambda x, y: mpmath.power(x, y),
    "reciprocal": lambda x: 1 / x,
    "abs": abs,
    "cast": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "second": lambda x, y: y,
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "ndtr": mpmath.ncdf,
    **{
        name: getattr(mpmath, name)
        for name in (
            "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "sinh", "cosh", "tanh", "erf",
            "erfc", "gamma", "hypot",
        )
    },
}  # fmt: skip


def exactly(x: Any) -> Any:
    """Return an array of numbers with many digits, equal to those of ``x``."""
    numbers = np.frompyfunc(lambda v: mpmath.mpf(float(v)), 1, 1)(np.asarray(x, dtype=object))
    return np.asarray(numbers, dtype=object)


def evaluate_exactly(inputs: Sequence[Any], outputs: Sequence[Any], values: Any) -> list[Any]:
    """Evaluate a graph of elementwise functions, sums, products and views."""
    with mpmath.workdps(DIGITS):
        store = {x: exactly(v) for x, v in zip(inputs, values, strict=True)}
        for node in toposort(outputs):
            arguments = [
                exactly(x.data) if isinstance(x, Constant) else store[x] for x in node.inputs
            ]
            store[node.outputs[0]] = np.asarray(_applied(node.op, arguments), dtype=object)
        return [store[x] for x in outputs]


def _applied(op: Any, arguments: list[Any]) -> Any:
    if isinstance(op, Elemwise):
        function = np.frompyfunc(SCALARS[op.scalar.name], len(arguments), 1)
        return function(*arguments)
    if isinstance(op, Reduce):
        reduction = {"sum": np.add, "prod": np.multiply, "max": np.maximum}[op.reduction.name]
        return reduction.reduce(arguments[0], axis=op.axes)
    if isinstance(op, DimShuffle | Subtensor) and len(arguments) == 1:
        return op.perform(arguments[0])
    raise NotImplementedError(f"{op} has no exact form here")


def units_off(got: Any, true: Any) -> float:
    """Return the largest error of ``got``, in units in the last place of its dtype."""
    got = np.asarray(got)
    worst = 0.0
    for z, t in zip(got.ravel(), np.asarray(true, dtype=object).ravel(), strict=True):
        worst = max(worst, _units(z, t, got.dtype))
    return worst


def _units(z: Any, t: Any, dtype: Any) -> float:
    info = np.finfo(dtype)
    if mpmath.isnan(t) or isinstance(t, mpmath.mpc):
        return 0.0 if np.isnan(z) else np.inf
    if mpmath.isinf(t) or abs(t) > mpmath.mpf(float(info.max)) * (1 + mpmath.mpf(float(info.eps))):
        return 0.0 if np.isinf(z) and (z > 0) == (t > 0) else np.inf
    if not np.isfinite(z):
        near_the_end = abs(t) > float(info.max) * (1 - 4 * float(info.eps))
        return 0.0 if np.isinf(z) and near_the_end and (z > 0) == (t > 0) else np.inf
    unit = _unit(t, info)
    return float(abs(mpmath.mpf(float(z)) - t) / unit)


def _unit(t: Any, info: Any) -> Any:
    """Return the distance between the floats around ``t``."""
    least = mpmath.mpf(float(info.smallest_subnormal))
    if t == 0:
        return least
    exponent = int(mpmath.floor(mpmath.log(abs(t), 2)))
    return max(least, mpmath.mpf(2) ** (exponent - info.nmant))
