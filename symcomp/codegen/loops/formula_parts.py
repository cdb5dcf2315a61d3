"""Divide formulas into parts, each of which is one loop nest: it reduces over the same axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from symcomp.codegen.loops.axis_functions import Pattern
from symcomp.core.record import record, replace
from symcomp.ops.formulas.formula import Formula, Result, Step, folded_axes
from symcomp.ops.reductions.reduce import Reduce

# Reductions of a nest: a function that adds to their totals has each and its rounding errors on the
# stack, 32 kB for each.
MOST_REDUCTIONS = 32


@record
class FormulaPart:
    """A formula that computes some values of another one, the whole.

    Attributes
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        The patterns of its inputs.
    inputs, literals, results : tuple of int
        The values of the whole that they are.
    """

    formula: Formula
    patterns: tuple[Pattern, ...]
    inputs: tuple[int, ...]
    literals: tuple[int, ...]
    results: tuple[int, ...]


def reduced_in_steps(formula: Formula) -> Formula:
    """Return the formula with reductions over some of their axes first, where others over these
    read a value that would else be computed for both.

    ``sum(sum(exp(x), 0), 1)`` takes the pass of other sums of ``exp(x)`` over axis 0, and
    ``sum(exp(x), (0, 1))`` a second pass.
    """
    computed = _computed_for(formula)
    reductions = [
        (step.function.axes, computed[step.arguments[0]])
        for step in formula.steps
        if isinstance(step.function, Reduce)
    ]
    if len({axes for axes, _ in reductions}) < 2:
        return formula
    number = [*range(formula.first_step)]
    made: dict[Step, int] = {}
    for step in formula.steps:
        arguments = tuple(number[a] for a in step.arguments)
        function = step.function
        first = _axes_before(step, formula.dtypes[step.arguments[0]], reductions, computed)
        if first:
            assert isinstance(function, Reduce)
            rest = tuple(a for a in function.axes if a not in first)
            inner = Step(replace(function, axes=first), arguments, step.dtype)
            arguments = (made.setdefault(inner, formula.first_step + len(made)),)
            function = replace(function, axes=rest, dtype=step.dtype)
        one = Step(function, arguments, step.dtype)
        number.append(made.setdefault(one, formula.first_step + len(made)))
    results = tuple(replace(result, value=number[result.value]) for result in formula.results)
    if tuple(made) == formula.steps or len({r.value for r in results}) < len(results):
        return formula
    return replace(formula, steps=tuple(made), results=results)


def _computed_for(formula: Formula) -> list[frozenset[int]]:
    """Return, for each value, the scalar functions that compute it for each element."""
    found: list[frozenset[int]] = [frozenset()] * formula.first_step
    for number, step in enumerate(formula.steps, formula.first_step):
        before = frozenset().union(*(found[a] for a in step.arguments))
        found.append(frozenset() if folded_axes(step.function) else before | {number})
    return found


def _axes_before(
    step: Step,
    dtype: str,
    reductions: Sequence[tuple[tuple[int, ...], frozenset[int]]],
    computed: Sequence[frozenset[int]],
) -> tuple[int, ...]:
    """Return the axes that are reduced before the others; none if nothing is gained, or a total of
    some axes would be rounded to less than the accumulator holds.
    """
    function = step.function
    if not isinstance(function, Reduce) or {*function.dtypes_for(dtype)} != {step.dtype}:
        return ()
    own = computed[step.arguments[0]]
    shared: dict[tuple[int, ...], int] = {}
    for axes, others in reductions:
        common = len(own & others)
        if common and axes and {*axes} < {*function.axes}:
            shared[axes] = max(common, shared.get(axes, 0))
    return max(shared, key=shared.__getitem__, default=())


def parts_of(formula: Formula, patterns: Sequence[Pattern]) -> list[FormulaPart]:
    """Return the parts of a formula, in order.

    Each part computes the values that need reductions over its axes. Values that a later part needs
    are results of the earlier one, except for steps before any reduction: these are computed again.
    """
    splitter = _Splitter(formula)
    every = formula.patterns(patterns)
    count = max(splitter.phase) + 1
    return [splitter.part(phase, every) for phase in range(count) if splitter.targets(phase)]


class _Splitter:
    """The part that computes each value."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.phase = [0] * formula.first_step
        self.free = [True] * formula.first_step
        axes: dict[int, tuple[int, ...]] = {}
        counts: Counter[int] = Counter()
        for step in formula.steps:
            phase = max(self.phase[a] for a in step.arguments)
            folded = folded_axes(step.function)
            if folded:
                while axes.setdefault(phase, folded) != folded or counts[phase] == MOST_REDUCTIONS:
                    phase += 1
                counts[phase] += 1
            self.phase.append(phase)
            self.free.append(not folded and all(self.free[a] for a in step.arguments))
        self.shown = {result.value for result in formula.results}
        self.crossing = {
            a
            for number, step in enumerate(formula.steps, formula.first_step)
            for a in step.arguments
            if a >= formula.first_step and not self.free[a] and self.phase[a] < self.phase[number]
        }

    def targets(self, phase: int) -> list[int]:
        """Return the results of a part: results of the whole, and values that later parts need."""
        return [v for v in sorted(self.shown | self.crossing) if self.phase[v] == phase]

    def part(self, phase: int, patterns: Sequence[Pattern]) -> FormulaPart:
        formula, first = self.formula, self.formula.first_step
        targets = self.targets(phase)
        needed, waiting = set(), [*targets]
        while waiting:
            value = waiting.pop()
            if value not in needed:
                needed.add(value)
                if self._is_computed(value, phase):
                    waiting += formula.steps[value - first].arguments
        steps = [v for v in sorted(needed) if self._is_computed(v, phase)]
        literals = [v for v in sorted(needed) if len(formula.inputs) <= v < first]
        inputs = [v for v in sorted(needed) if v not in steps and v not in literals]
        number = {v: i for i, v in enumerate((*inputs, *literals, *steps))}
        copied = []
        for v in steps:
            step = formula.steps[v - first]
            copied.append(Step(step.function, tuple(number[a] for a in step.arguments), step.dtype))
        own = Formula(
            tuple(formula.dtypes[v] for v in inputs),
            tuple(formula.literals[v - len(formula.inputs)] for v in literals),
            tuple(copied),
            tuple(Result(number[v]) for v in targets),
        )
        shapes = tuple(patterns[v] for v in inputs)
        return FormulaPart(own, shapes, tuple(inputs), tuple(literals), tuple(targets))

    def _is_computed(self, value: int, phase: int) -> bool:
        if value < self.formula.first_step:
            return False
        again = self.free[value] and value not in self.shown
        return self.phase[value] == phase or again
