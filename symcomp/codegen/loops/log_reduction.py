"""Kernels of logarithms of products, and of sums in the widest type: their own functions
(`log_reduction.h`) pass over some slices twice, or split numbers into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.codegen.loopir.kernel import LogReduction
from symcomp.ops.formulas.formula import Formula, folded_axes, stands_alone
from symcomp.ops.nnet.softmax import LogMeanExp, LogSumExp, WeightedLogSumExp
from symcomp.ops.reductions.stable_reduce import LogProd

_KINDS: dict[Any, str] = {
    LogSumExp: "LOG_SUM", LogMeanExp: "LOG_MEAN", WeightedLogSumExp: "LOG_WEIGHTED",
    LogProd: "LOG_PROD",
}  # fmt: skip


def log_reduction(formula: Formula, patterns: Sequence[tuple[bool, ...]]) -> LogReduction | None:
    """Return the kernel of one such function; None for other formulas."""
    (step, *more) = formula.steps
    kind = _KINDS.get(type(step.function))
    axes = folded_axes(step.function)
    size = {"float32": 4, "float64": 8}.get(step.dtype)
    if more or kind is None or size is None or not stands_alone(step.function, step.dtype):
        return None
    if len({*patterns}) != 1:
        return None
    return LogReduction(kind, size, tuple(axis in axes for axis in range(len(patterns[0]))))
