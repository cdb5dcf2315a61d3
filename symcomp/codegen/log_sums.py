"""Kernels of logarithms of sums in the widest type: their lines are passed over by a function of
their own, as some of them are computed again (`log_sums.h`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from symcomp.codegen.c_printer import Kernel
from symcomp.ops.formula import Formula
from symcomp.ops.softmax import LogMeanExp, LogSumExp, WeightedLogSumExp

_KINDS: dict[Any, str] = {
    LogSumExp: "LOG_SUM", LogMeanExp: "LOG_MEAN", WeightedLogSumExp: "LOG_WEIGHTED",
}  # fmt: skip


def log_sums(formula: Formula, patterns: Sequence[tuple[bool, ...]]) -> Kernel | None:
    """The kernel of one such function of doubles; None of other formulas."""
    (step, *more) = formula.steps
    kind = _KINDS.get(type(step.function))
    if more or kind is None or step.dtype != "float64" or len({*patterns}) != 1:
        return None
    rank = len(patterns[0])
    reduced = ", ".join(str(int(a in step.function.axes)) for a in range(rank))
    text = "\n".join(
        [
            "int NAME(KERNEL_ARGUMENTS);",
            "int NAME(KERNEL_ARGUMENTS)",
            "{",
            f"    static const uint8_t reduced[] = {{{reduced}}};",
            "    (void)threads;",
            f"    return log_lines({kind}, {rank}, reduced, data, shape, strides);",
            "}",
            "",
        ]
    )
    name = "kernel_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return Kernel(name, text.replace("NAME", name), ())
