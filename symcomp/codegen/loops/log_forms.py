"""Logarithms of sums of exponentials as scalar functions and reductions, and the exponentials that
other functions of slices use, too: relative to the largest element. Logarithms of products.

Where large parts of a result of doubles cancel, a further pass adds up exponentials with what their
rounding takes away. It is left out for results side by side that do not need it.
"""

from __future__ import annotations

import numpy as np

from symcomp.codegen.loops.formula_writer import FormulaWriter, Value
from symcomp.core.record import record
from symcomp.ops.formulas.formula import Literal
from symcomp.ops.nnet.softmax import LogMeanExp, LogSumExp, WeightedLogSumExp
from symcomp.ops.reductions.stable_reduce import LARGEST_BOUND, LogProd

# Digits of terms up to 1 are cut off where this has its last one; as many are added up exactly.
MOST_TERMS = 2.0**28

# The logarithm of a weighted sum has the rounding error of a number of this size, at least. Weights
# above 1e300 or below 1e-305 leave larger ones where parts cancel.
UNIT = 1.0

Axes = tuple[int, ...]


def top_of(write: FormulaWriter, x: Value, axes: Axes) -> tuple[Value, Value]:
    """Return the largest element, and the same with infinities replaced by the largest finite
    numbers.
    """
    top, most = write.max(x, axes), np.finfo(x.dtype).max
    least = write("maximum", top, write.number(-most, top))
    return top, write("minimum", least, write.number(most, top))


def log_total(write: FormulaWriter, x: Value, axes: Axes) -> tuple[Value, Value]:
    """Return (top, log sum exp(x - top))."""
    top, finite = top_of(write, x, axes)
    at_top = write("eq", x, finite)
    terms = write("exp_of_sum", x, write("neg", finite))
    rest = write.sum(write("switch", at_top, write.number(0, x), terms), axes)
    at_tops = write.count(at_top, axes, x.dtype)
    write.totals[x, axes] = rest, at_tops
    ties = write("sub", at_tops, write.number(1, x))
    log = write("log1p", write("add", rest, ties))
    return finite, write("switch", write("isfinite", top), log, top)


def exponentials(write: FormulaWriter, x: Value, axes: Axes) -> tuple[Value, Value, Value]:
    """Return (the largest element, exp(x - top), their sum), the sum of known parts if any."""
    top, finite = top_of(write, x, axes)
    terms = write("exp_of_sum", x, write("neg", finite))
    known = write.totals.get((x, axes))
    return top, terms, write("add", *known) if known else write.sum(terms, axes)


def _counted(write: FormulaWriter, x: Value, w: Value, axes: Axes) -> tuple[Value, Value]:
    """Return x with the top in the place of elements without weight, and the top of the others."""
    none = write("eq", w, write.number(0, w))
    _, top = top_of(write, write("switch", none, write.number(-np.inf, x), x), axes)
    return write("switch", none, top, x), top


def weighted_terms(
    write: FormulaWriter, axes: Axes, x: Value, w: Value
) -> tuple[Value, Value]:
    """Return (top, w exp(x - top)), where the top is that of the elements with weight."""
    counted, top = _counted(write, x, w, axes)
    terms = write("mul", w, write("exp_of_sum", counted, write("neg", top)))
    zero = write.number(0, x)
    nothing = write("mul", write("maximum", x, zero), zero)
    return top, write("switch", write("eq", w, write.number(0, w)), nothing, terms)


def log_sum_exp(write: FormulaWriter, function: LogSumExp, x: Value) -> Value:
    top, log = log_total(write, x, function.axes)
    if write.is_widened:
        return write("add", top, log)
    one = write.number(1, x)
    return _better(write, _Logarithm(function.axes, x, one, top, one, log), 0)


def log_mean_exp(write: FormulaWriter, function: LogMeanExp, x: Value) -> Value:
    axes = function.axes
    _, top = top_of(write, x, axes)
    n = write.length(x, axes)
    total = write.sum(write("exp_of_sum", x, write("neg", top)), axes)
    mean = write("true_div", total, n)
    log = write("log", mean)
    if not write.is_widened:
        return _better(write, _Logarithm(axes, x, write.number(1, x), top, n, log), 1)
    near = write("true_div", write.sum(write("expm1", write("sub", x, top)), axes), n)
    small = write("lt", mean, write.number(0.5, x))
    return write("add", top, write("switch", small, log, write("log1p", near)))


def weighted_log_sum_exp(
    write: FormulaWriter, function: WeightedLogSumExp, x: Value, w: Value
) -> Value:
    axes = function.axes
    top, terms = weighted_terms(write, axes, x, w)
    log = write("log", write.sum(terms, axes))
    if write.is_widened:
        return write("add", top, log)
    counted, _ = _counted(write, x, w, axes)
    return _better(write, _Logarithm(axes, counted, w, top, write.number(1, x), log), UNIT)


def log_prod(write: FormulaWriter, function: LogProd, x: Value) -> Value:
    """Return the step itself, which passes join to totals."""
    return write.apply(function, x.dtype, x)


@record(eq=False)
class _Logarithm:
    """top + log, the logarithm of sum w exp(x) / n over axes."""

    axes: Axes
    x: Value
    w: Value
    top: Value
    n: Value
    log: Value


def _better(write: FormulaWriter, z: _Logarithm, unit: float) -> Value:
    """Return top + log, computed with more digits where it is less than half of its parts, or of a
    ``unit`` whose rounding error the logarithm may have.

    The sum of the first parts of the terms is exact: before it, digits below the last one of a
    bound are cut off, and added up apart.
    """
    rough, axes = write("add", z.top, z.log), z.axes
    parts = write("maximum", write("abs", z.top), write("abs", z.log))
    parts = write("maximum", parts, write.number(unit, parts)) if unit else parts
    near = write("lt", write("abs", rough), write("mul", parts, write.number(0.5, parts)))
    bound = write.number(MOST_TERMS, rough)
    if not isinstance(z.w.source, Literal):
        most = write("mul", write.max(write("abs", z.w), axes), bound)
        bound = write("minimum", most, write.number(LARGEST_BOUND, most))
    terms = z.x, write("neg", z.top), z.w, bound
    total, rest = (
        write.sum(write("guarded", near, write(name, *terms)), axes)
        for name in ("cut_exp", "cut_exp_rest")
    )
    better = write("guarded", near, write("plus_log", z.top, total, rest, z.n))
    return write("switch", near, better, rough)
