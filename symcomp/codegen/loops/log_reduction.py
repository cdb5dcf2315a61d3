"""Kernels of logarithms of products: functions of their own (`log_reduction.h`)."""

from __future__ import annotations

from collections.abc import Sequence

from symcomp.codegen.loopir.kernel import LogReduction
from symcomp.ops.formulas.formula import Formula, folded_axes, stands_alone


def log_reduction(formula: Formula, patterns: Sequence[tuple[bool, ...]]) -> LogReduction | None:
    """Return the kernel of one such function; None for other formulas."""
    (step, *more) = formula.steps
    axes = folded_axes(step.function)
    size = {"float32": 4, "float64": 8}.get(step.dtype)
    if more or size is None or not stands_alone(step.function):
        return None
    if len({*patterns}) != 1:
        return None
    return LogReduction(size, tuple(axis in axes for axis in range(len(patterns[0]))))
