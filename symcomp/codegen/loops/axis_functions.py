"""Write along-axis functions as scalar functions and reductions, for which loops exist.

The result is that of `symcomp.ops.nnet.softmax` with NumPy: the largest element of a slice is
subtracted, and the logarithm of a sum is computed from the other terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.loops import log_forms, norm_forms
from symcomp.codegen.loops.formula_writer import POSITION, FormulaWriter, Value
from symcomp.codegen.loops.log_forms import exponentials, log_total, top_of, weighted_terms
from symcomp.core.record import record
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.formula import (
    AXIS_FUNCTIONS,
    AXIS_REDUCTIONS,
    LOGARITHMS,
    Formula,
    Result,
    Step,
    joint_pattern,
    line_axes,
    whole_arguments,
)
from symcomp.ops.indexing.gather_labels import GatherLabels, ScatterLabels
from symcomp.ops.nnet.entropy import EXCESS_SERIES, NEAR, Divergence, NegativeEntropy
from symcomp.ops.nnet.softmax import (
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    RootSoftmax,
    Softmax,
    SubtractWeightedMean,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.nnet.weighted_mean import WeightedDeviation, WeightedMean
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Centered, LogProd, Norm, Variance

Pattern = tuple[bool, ...]
# Wider dtypes to compute in: where large parts cancel, and so that squares neither overflow nor
# underflow; float16 is always computed in float32.
_WIDER: dict[Any, dict[str, str]] = {
    op: {"float16": "float32", "float32": "float64"}
    for op in (Norm, ProjectionLength, Cosine)
}
_WIDER |= {
    op: {"float16": "float64", "float32": "float64"}
    for op in (*LOGARITHMS, LogProd, WeightedDeviation, UnitPowerSum, Centered)
}


@record
class Plain:
    """A formula without along-axis functions, with additional inputs.

    Attributes
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        The patterns of the original inputs, then of an input for each of ``places``, then for each
        of ``counters``.
    places : tuple of (int, int)
        (input, axis): an original input that holds indices along an axis, which may count from the
        end. The additional input holds them as int32, counted from the start.
    counters : tuple of int
        Axes. The additional input is 0, 1, 2, ... along the axis, as int32.
    """

    formula: Formula
    patterns: tuple[Pattern, ...]
    places: tuple[tuple[int, int], ...] = ()
    counters: tuple[int, ...] = ()


def plain(formula: Formula, patterns: Sequence[Pattern]) -> Plain | None:
    """Return the formula without along-axis functions; None if one of them reads less than whole
    slices.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes along which it is stretched.
    """
    along_axes = (*AXIS_FUNCTIONS, *AXIS_REDUCTIONS)
    if not any(isinstance(step.function, along_axes) for step in formula.steps):
        return Plain(formula, tuple(patterns))
    every = formula.patterns(patterns)
    writer = _Writer(formula, patterns)
    for step in formula.steps:
        if isinstance(step.function, (*AXIS_FUNCTIONS, *AXIS_REDUCTIONS)) and not (
            _whole(step, every, joint_pattern(patterns)) and _has_form(formula, step)
        ):
            return None
        writer.step(step)
    values = [writer.values[result.value] for result in formula.results]
    if len({*values}) < len(values):
        return None
    return writer.finished(values)


def _whole(step: Step, patterns: Sequence[Pattern], joint: Pattern) -> bool:
    """Tell whether the operands of an along-axis function have the same pattern, and full length
    along its axes.
    """
    taken = {patterns[a] for a in whole_arguments(step)}
    return len(taken) == 1 and all(
        pattern[a] == joint[a] for pattern in taken for a in line_axes(step.function)
    )


def _has_form(formula: Formula, step: Step) -> bool:
    """Tell whether the function can be written: indices are inputs."""
    by_index = isinstance(step.function, GatherLabels | ScatterLabels)
    return not by_index or step.arguments[1] < len(formula.inputs)


class _Writer(FormulaWriter):
    """Adds steps to a formula, equal ones once."""

    def __init__(self, formula: Formula, patterns: Sequence[Pattern]) -> None:
        super().__init__(len(patterns[0]))
        self.inputs = [
            Value(dtype, pattern, i)
            for i, (dtype, pattern) in enumerate(zip(formula.inputs, patterns, strict=True))
        ]
        self.joint = joint_pattern(patterns)
        self.largest_weights: dict[Value, Value] = {}
        self.parts: dict[Value, tuple[Value, Value, Value]] = {}
        self.put_at: dict[Value, tuple[int, Value]] = {}
        self.places: dict[tuple[int, int], Value] = {}
        self.counters: dict[int, Value] = {}
        # Reductions by a maximum, by their arguments: written first, for functions that need them.
        self.maxima: dict[int, list[Step]] = {}
        for step in formula.steps:
            if isinstance(step.function, Reduce) and step.function.reduction.name == "max":
                self.maxima.setdefault(step.arguments[0], []).append(step)
        self.values: list[Value] = []
        for value in (*self.inputs, *(self.literal(literal) for literal in formula.literals)):
            self._add(value)

    def _add(self, value: Value) -> None:
        """Add the value of the next number."""
        for step in self.maxima.get(len(self.values), ()):
            self.apply(step.function, step.dtype, value)
        self.values.append(value)

    # -- steps

    def step(self, step: Step) -> None:
        """Write a step of the formula."""
        arguments = [self.values[a] for a in step.arguments]
        write = _FORMS.get(type(step.function))
        if write is None:
            self._add(self.apply(step.function, step.dtype, *arguments))
            return
        if isinstance(step.function, GatherLabels | ScatterLabels):
            self._add(write(self, step.function, *arguments))
            return
        wider = _WIDER.get(type(step.function), {"float16": "float32"})
        work = wider.get(step.dtype, step.dtype)
        self.is_widened = work != step.dtype
        arguments = [self.cast(a, work) for a in arguments]
        z = write(self, step.function, *arguments)
        self._add(self.cast(z, step.dtype))

    def softmax(self, function: Softmax, x: Value) -> Value:
        top, terms, total = exponentials(self, x, function.lines)
        z = self("true_div", terms, total)
        largest = self("true_div", self.number(1, x), total)
        unknown = self.number(np.nan, x)
        self.largest_weights[z] = self("switch", self("isfinite", top), largest, unknown)
        self.parts[z] = (top, terms, total)
        return z

    def root_softmax(self, function: RootSoftmax, x: Value) -> Value:
        _, terms, _ = exponentials(self, self("mul", x, self.number(0.5, x)), function.lines)
        return self("true_div", terms, self("sqrt", self.sum(self("sqr", terms), function.lines)))

    def log_softmax(self, function: LogSoftmax, x: Value) -> Value:
        top, total = log_total(self, x, function.lines)
        return self("sub", self("sub", x, top), total)

    def weighted_softmax(self, function: WeightedSoftmax, x: Value, w: Value) -> Value:
        _, terms = weighted_terms(self, function.axes, x, w)
        return self("true_div", terms, self.sum(terms, function.axes))

    def subtract_weighted_mean(self, function: SubtractWeightedMean, x: Value, w: Value) -> Value:
        axes, zero = function.axes, self.number(0, x)
        if function.transposed and w in self.parts and x in self.put_at:
            axis, at = self.put_at[x]
            if axes == (axis,):
                return self._one_centred(axis, x, at, w)
        largest = self.largest_weights.get(w) or self.max(w, axes)
        most = self("eq", w, largest)
        if not function.transposed:
            at = self.max(self("switch", most, x, self.number(-np.inf, x)), axes)
            h = self("sub", x, at)
            none = self("eq", w, zero)
            terms = self("switch", none, self("mul", h, zero), self("mul", w, h))
            return self("sub", h, self.sum(terms, axes))
        alone = self("eq", self.count(most, axes, x.dtype), self.number(1, x))
        others = [self.sum(self("switch", most, zero, v), axes) for v in (w, x)]
        at = self("sub", self("mul", x, others[0]), self("mul", w, others[1]))
        z = self("sub", x, self("mul", w, self.sum(x, axes)))
        return self("switch", self("logical_and", most, alone), at, z)

    def weighted_mean(self, function: WeightedMean, x: Value, y: Value) -> Value:
        _, terms, total = exponentials(self, x, function.axes)
        return self("true_div", self.sum(self("mul", y, terms), function.axes), total)

    def negative_entropy(self, function: NegativeEntropy, x: Value) -> Value:
        axes = function.axes
        top, log = log_total(self, x, axes)
        terms = self("exp_of_sum", x, self("neg", top))
        gap = self("sub", x, top)
        masked = self("eq", gap, self.number(-np.inf, x))
        # NaN where all elements are masked: there the logarithm is infinite.
        nothing = self("mul", log, self.number(0, x))
        total = self.sum(self("switch", masked, nothing, self("mul", terms, gap)), axes)
        # The sum of at least one element is 1 or more, and its logarithm 0 or more.
        weight = self("maximum", self.sum(terms, axes), self.number(1, x))
        log = self("maximum", log, self.number(0, x))
        return self("sub", self("true_div", total, weight), log)

    def divergence(self, function: Divergence, x: Value, y: Value) -> Value:
        axes = function.axes
        (top, log), (other, other_log) = log_total(self, x, axes), log_total(self, y, axes)
        total = self.sum(self("exp_of_sum", x, self("neg", top)), axes)
        total = self("maximum", total, self.number(1, x))
        p = self("true_div", self("exp_of_sum", x, self("neg", top)), total)
        # Elements masked in both, with -inf, are equal, and do not count.
        gap = self("switch", self("eq", x, y), self.number(0, x), self("sub", x, y))
        h = self.subtract_weighted_mean(SubtractWeightedMean(axes), gap, p)
        series = self.number(EXCESS_SERIES[-1], h)
        for c in EXCESS_SERIES[-2::-1]:
            series = self("add", self("mul", series, h), self.number(c, h))
        near = self("mul", p, self("mul", series, self("sqr", h)))
        far = self("true_div", self("exp", self("sub", self("sub", x, top), h)), total)
        far = self("add", self("sub", far, p), self("mul", p, h))
        is_far = self("gt", self("abs", h), self.number(NEAR, x))
        excess = self.sum(self("switch", is_far, far, near), axes)
        logs = self("add", self("sub", top, other), self("sub", log, other_log))
        apart = self("sub", self.sum(self("mul", p, gap), axes), logs)
        infinite = self("eq", excess, self.number(np.inf, x))
        return self("switch", infinite, apart, self("log1p", excess))

    def weighted_deviation(self, function: WeightedDeviation, x: Value, y: Value) -> Value:
        """Subtract the mean in two steps: the second corrects the rounding errors of the first.

        In the second step exponentials and products are pairs of numbers. The sum of their first
        parts is exact: before it, digits below 2^-53 of a bound of all are cut off, and added up
        apart.
        """
        axes = function.axes
        top, terms, total = exponentials(self, x, axes)
        finite = self("neg", top_of(self, x, axes)[1])
        at_top = self("switch", self("eq", x, top), y, self.number(-np.inf, y))
        at = self.max(at_top, axes)
        h = self("sub", y, at)
        first = self("true_div", self.sum(self("mul", terms, h), axes), total)
        d = self("sub", h, first)
        rest = self("difference_rest", y, at, first)
        product = self("mul", terms, d)
        parts = self("add", self("product_rest", terms, d), self("mul", terms, rest))
        parts = self("add", parts, self("mul", self("exp_of_sum_rest", x, finite), d))
        bound = self("mul", self.max(self("abs", h), axes), self.number(2.0**28, h))
        high = self("sub", self("add", product, bound), bound)
        low = self.sum(self("add", self("sub", product, high), parts), axes)
        second = self("true_div", self("add", self.sum(high, axes), low), total)
        return self("add", d, self("sub", rest, second))

    def _one_centred(self, axis: int, x: Value, at: Value, w: Value) -> Value:
        """Return x - w sum(x) of a softmax w and an x that is 0 except ``at`` one place of a slice:
        there it is multiplied by the weight of the others, which does not cancel.
        """
        top, terms, total = self.parts[w]
        zero = self.number(0, x)
        others = self.sum(self("switch", at, zero, terms), (axis,))
        rest = self("true_div", others, total)
        rest = self("switch", self("isfinite", top), rest, self("sub", self.number(1, x), w))
        less = self("neg", self.sum(x, (axis,)))
        return self("switch", at, self("mul", x, rest), self("mul", less, w))

    # -- indices

    def at(self, axis: int, index: Value) -> Value:
        """Tell which elements are at the indices of an input."""
        key = (self.inputs.index(index), axis)
        if key not in self.places:
            self.places[key] = Value(POSITION, index.pattern, "place")
        if axis not in self.counters:
            ones = tuple(a != axis or one for a, one in enumerate(self.joint))
            self.counters[axis] = Value(POSITION, ones, "counter")
        return self("eq", self.counters[axis], self.places[key])

    def gather_labels(self, function: GatherLabels, x: Value, index: Value) -> Value:
        (axis,) = function.axes
        found: dict[int, Value] = {}
        waiting = [x]
        while waiting:
            value = waiting[-1]
            pushes = isinstance(value.source, ScalarOp) and _reads_folds(value)
            if id(value) in found:
                waiting.pop()
            elif value.pattern[axis] and not self.joint[axis]:
                found[id(value)] = value
            elif not pushes:
                found[id(value)] = self._gathered(axis, value, index)
            elif missing := [a for a in value.arguments if id(a) not in found]:
                waiting += missing
            else:
                arguments = [found[id(a)] for a in value.arguments]
                found[id(value)] = self.apply(value.source, value.dtype, *arguments)
        return found[id(x)]

    def _gathered(self, axis: int, x: Value, index: Value) -> Value:
        """Select an element as the largest of it and numbers below all others."""
        kind = np.dtype(x.dtype).kind
        lowest = {"f": -np.inf, "b": False}.get(kind)
        lowest = np.iinfo(x.dtype).min if lowest is None else lowest
        chosen = self("switch", self.at(axis, index), x, self.number(lowest, x))
        return self.max(chosen, (axis,))

    def scatter_labels(self, function: ScatterLabels, x: Value, index: Value, y: Value) -> Value:
        (axis,) = function.axes
        at = self.at(axis, index)
        z = self("switch", at, y, self.number(0, y))
        self.put_at[z] = (axis, at)
        return z

    # -- result

    def finished(self, results: Sequence[Value]) -> Plain:
        inputs = [*self.inputs, *self.places.values(), *self.counters.values()]
        steps = _in_order(results)
        used = {id(a) for v in steps for a in v.arguments}
        literals = [v for v in self.literals.values() if id(v) in used]
        number = {id(v): i for i, v in enumerate((*inputs, *literals, *steps))}
        formula = Formula(
            tuple(v.dtype for v in inputs),
            tuple(v.source for v in literals),
            tuple(
                Step(v.source, tuple(number[id(a)] for a in v.arguments), v.dtype) for v in steps
            ),
            tuple(Result(number[id(v)]) for v in results),
        )
        patterns = tuple(v.pattern for v in inputs)
        return Plain(formula, patterns, tuple(self.places), tuple(self.counters))


def _is_step(value: Value) -> bool:
    return bool(value.arguments)


def _in_order(results: Sequence[Value]) -> list[Value]:
    """Return the steps that the results need, in topological order."""
    found: dict[int, Value] = {}
    waiting = [*reversed(results)]
    while waiting:
        value = waiting[-1]
        missing = [a for a in value.arguments if _is_step(a) and id(a) not in found]
        if id(value) in found or not missing:
            found.setdefault(id(value), value)
            waiting.pop()
        else:
            waiting += reversed(missing)
    return [*found.values()]


def _reads_folds(value: Value) -> bool:
    """Tell whether a value depends on a reduction."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        v = waiting.pop()
        if isinstance(v.source, Reduce):
            return True
        waiting += [a for a in v.arguments if id(a) not in seen]
        seen.update(map(id, v.arguments))
    return False


_FORMS: dict[type, Callable[..., Value]] = {
    Softmax: _Writer.softmax,
    RootSoftmax: _Writer.root_softmax,
    LogSoftmax: _Writer.log_softmax,
    WeightedSoftmax: _Writer.weighted_softmax,
    SubtractWeightedMean: _Writer.subtract_weighted_mean,
    UnitVector: norm_forms.unit_vector,
    ProjectionLength: norm_forms.projection_length,
    Cosine: norm_forms.projection_length,
    UnitPowerSum: norm_forms.unit_power_sum,
    SubtractProjection: norm_forms.subtract_projection,
    WeightedMean: _Writer.weighted_mean,
    WeightedDeviation: _Writer.weighted_deviation,
    NegativeEntropy: _Writer.negative_entropy,
    Divergence: _Writer.divergence,
    ScatterLabels: _Writer.scatter_labels,
    LogSumExp: log_forms.log_sum_exp,
    LogProd: log_forms.log_prod,
    LogMeanExp: log_forms.log_mean_exp,
    WeightedLogSumExp: log_forms.weighted_log_sum_exp,
    Norm: norm_forms.norm,
    Variance: norm_forms.variance,
    Centered: norm_forms.centered,
    GatherLabels: _Writer.gather_labels,
}
