"""Loop nests: a formula as passes over elements, each a body that loads, computes, folds, stores.

Where a formula reduces axes, pass 0 computes the operands of the first reductions; then come the
values with one element for each result; pass 1 computes the values that need these, from the inputs
again; and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symcomp.codegen.functions.c_functions import FUNCTIONS
from symcomp.core.record import record
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.formula import Formula
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import LogProd

Pattern = tuple[bool, ...]
# The functions whose values a pass joins to totals.
FOLDED = (Reduce, LogProd)


@record
class Body:
    """The computation for every element.

    Attributes
    ----------
    loads : tuple of (int, int)
        Values and the arrays where they are.
    steps : tuple of int
        The values that are computed, in order.
    folds : tuple of int
        The reductions whose arguments are added to their totals.
    stores : tuple of (int, int)
        Values and the arrays that they go to.
    numbers : frozenset of int
        The arrays of which there is one number for each row.
    singles : frozenset of int
        The arrays of which there is one element for each result, in a pass of a reduction.
    """

    loads: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    folds: tuple[int, ...]
    stores: tuple[tuple[int, int], ...]
    numbers: frozenset[int]
    singles: frozenset[int] = frozenset()


@record
class Nest:
    """A formula as loops. Arrays by number: inputs, outputs, literals, temporaries.

    Attributes
    ----------
    formula : Formula
    rank : int
    stretched : tuple of tuple of bool
        For each input and output, the axes along which it is one number.
    bodies : tuple of Body
        Without reductions, ways to compute the same: the first whose numbers are the same along
        the innermost axis is taken. With reductions, a pass and what follows it, for each stage.
    totals : dict of int to tuple of int
        For each reduction, the arrays of its totals and of their rounding errors, and of a product
        that of its exponent.
    values : dict of int to int
        The arrays of values of which there is one for each result.
    """

    formula: Formula
    rank: int
    stretched: tuple[Pattern, ...]
    bodies: tuple[Body, ...]
    totals: dict[int, tuple[int, ...]]
    values: dict[int, int]

    @property
    def temporaries(self) -> int:
        """The number of the first temporary array."""
        formula = self.formula
        return len(formula.inputs) + len(formula.results) + len(formula.literals)

    @property
    def scatters(self) -> dict[int, int]:
        """The arrays of tables to which values are added, each with the array of the positions."""
        formula, first = self.formula, len(self.formula.inputs)
        return {
            first + i: formula.tables[formula.scatters[result.value]]
            for i, result in enumerate(formula.results)
            if result.value in formula.scatters
        }

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of all arrays."""
        formula = self.formula
        outputs = [formula.dtypes[r.value] for r in formula.results]
        temporary: dict[int, str] = {}
        for value, totals in self.totals.items():
            temporary |= dict.fromkeys(totals, work_dtype(formula, value))
        for value, array in self.values.items():
            temporary[array] = formula.dtypes[value]
        return (
            *formula.inputs,
            *outputs,
            *(literal.dtype for literal in formula.literals),
            *(temporary[a] for a in sorted(temporary)),
        )


def work_dtype(formula: Formula, value: int) -> str:
    """Return the dtype of a reduction's accumulator: float32 for float16."""
    step = formula.steps[value - formula.first_step]
    if isinstance(step.function, LogProd):
        return "float64"
    assert isinstance(step.function, Reduce)
    given = formula.dtypes[step.arguments[0]]
    if step.function.reduction.logical:
        return "bool"
    work = step.function.acc_dtype or step.dtype
    return "float32" if work == "float16" or (given == "float16" == step.dtype) else work


def is_nest(formula: Formula) -> bool:
    """Tell whether all steps are scalar functions, gathers, scatters, or reductions over the same
    axes.
    """
    reductions = [step.function for step in formula.steps if isinstance(step.function, FOLDED)]
    scalars = [step for step in formula.steps if isinstance(step.function, ScalarOp)]
    one = len({reduction.axes for reduction in reductions}) <= 1
    return one and len(reductions) + len(scalars) + len(formula.tables) == len(formula.steps)


def reduced_axes(formula: Formula) -> tuple[int, ...] | None:
    """Return the axes of the reductions; None if there are none."""
    found = (step.function.axes for step in formula.steps if isinstance(step.function, FOLDED))
    return next(found, None)


def nest_of(formula: Formula, patterns: Sequence[Pattern]) -> Nest | None:
    """Return the loops of a formula; None if it is not one nest.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes of length 1 along which it is stretched.
    """
    every = formula.patterns(patterns)
    joint = tuple(all(axis) for axis in zip(*patterns, strict=True))
    axes = reduced_axes(formula) or ()
    for step in formula.steps:
        if isinstance(step.function, FOLDED):
            pattern = every[step.arguments[0]]
            if any(pattern[a] and not joint[a] for a in axes):
                return None
    if formula.scatters and not _scatters_all(formula, every, joint):
        return None
    stretched = (*patterns, *(every[result.value] for result in formula.results))
    if reduced_axes(formula) is None:
        return Nest(formula, len(joint), stretched, _elementwise(formula, every), {}, {})
    return _Stages(formula, every, stretched).nest(len(joint))


def _scatters_all(formula: Formula, patterns: Sequence[Pattern], joint: Pattern) -> bool:
    """Tell whether a value for each element of the only axis goes to each table: then all are added
    in their order.
    """
    scattered = [r for r in formula.results if r.value in formula.scatters]
    added = [formula.stored(r) for r in scattered]
    added += [formula.tables[formula.scatters[r.value]] for r in scattered]
    return len(joint) == 1 and all(patterns[v] == joint for v in added)


def _elementwise(formula: Formula, patterns: Sequence[Pattern]) -> tuple[Body, ...]:
    """Return a body with inputs as numbers that are constant along the last axis; then one along
    all.
    """
    arrays = _arrays_of_leaves(formula)
    targets = [formula.stored(result) for result in formula.results]
    first = len(formula.inputs)
    stores = tuple((value, first + i) for i, value in enumerate(targets))
    bodies = []
    for same in (lambda p: all(p[-1:]), all):
        numbers = _numbers(formula, arrays, patterns, same)
        bodies.append(_body(formula, arrays.get, targets, (), stores, numbers))
    return tuple(dict.fromkeys(bodies))


def _arrays_of_leaves(formula: Formula) -> dict[int, int]:
    """Return the arrays of inputs and literals."""
    inputs = len(formula.inputs)
    literals = range(inputs, formula.first_step)
    return {
        **{value: value for value in range(inputs)},
        **{value: value + len(formula.results) for value in literals},
    }


def _numbers(
    formula: Formula,
    arrays: dict[int, int],
    patterns: Sequence[Pattern],
    same: Callable[[Pattern], bool],
) -> frozenset[int]:
    return frozenset(arrays[v] for v in range(formula.first_step) if same(patterns[v]))


def _body(
    formula: Formula,
    array_of: Callable[[int], int | None],
    targets: Sequence[int],
    folds: Sequence[int],
    stores: Sequence[tuple[int, int]],
    numbers: frozenset[int],
    singles: Callable[[int], bool] = lambda value: False,
) -> Body:
    """Return the body that computes ``targets`` from the values that have arrays; ``singles`` tells
    of which there is one for each result.
    """
    needed, waiting = set(), list(targets)
    while waiting:
        value = waiting.pop()
        if value in needed:
            continue
        needed.add(value)
        if array_of(value) is None:
            waiting += formula.steps[value - formula.first_step].arguments
    found = [(value, array_of(value)) for value in sorted(needed)]
    loads = tuple((value, array) for value, array in found if array is not None)
    return Body(
        loads,
        tuple(value for value, array in found if array is None),
        tuple(folds),
        tuple(stores),
        numbers,
        frozenset(array for value, array in loads if singles(value)) - numbers,
    )


class _Stages:
    """The passes of a formula that reduces."""

    def __init__(
        self, formula: Formula, patterns: Sequence[Pattern], stretched: tuple[Pattern, ...]
    ) -> None:
        self.formula, self.patterns, self.stretched = formula, patterns, stretched
        self.stage = self._stages()
        self.leaves = _arrays_of_leaves(formula)
        self.totals: dict[int, tuple[int, ...]] = {}
        self.values: dict[int, int] = {}
        # Result arrays with one element for each input element: later passes read them.
        self.written: dict[int, int] = {}
        # Values held in arrays of results that are written later: (array, the first pass, the last
        # that reads).
        self.held: dict[int, tuple[int, int, int]] = {}
        self._next = len(formula.dtypes) - len(formula.steps) + len(formula.results)

    def _stages(self) -> list[int]:
        """Return, for each value, the number of reductions on the longest path to it."""
        stage = [0] * self.formula.first_step
        for step in self.formula.steps:
            folds = isinstance(step.function, FOLDED)
            stage.append(max(stage[a] for a in step.arguments) + folds)
        return stage

    def _is_single(self, value: int) -> bool:
        """Tell whether a value has one element for each result of a reduction."""
        return all(self.patterns[value][a] for a in reduced_axes(self.formula) or ())

    def nest(self, rank: int) -> Nest:
        formula = self.formula
        reductions = [
            v
            for v, step in enumerate(formula.steps, formula.first_step)
            if isinstance(step.function, FOLDED)
        ]
        for value in reductions:
            product = isinstance(formula.steps[value - formula.first_step].function, LogProd)
            self.totals[value] = tuple(self._array() for _ in range(3 if product else 2))
        self._keep_singles(reductions)
        first = len(formula.inputs)
        stores = [(formula.stored(result), first + i) for i, result in enumerate(formula.results)]
        self.written = {
            value: array
            for (value, array), result in zip(stores, formula.results, strict=True)
            if not self._is_single(value) and result.value not in formula.scatters
        }
        last = max(max(self.stage[v] for v in reductions) - 1, *(self._pass(v) for v, _ in stores))
        bodies = self._bodies(reductions, stores, last)
        self._hold_heavy(bodies)
        if self.held:
            bodies = self._bodies(reductions, stores, last)
        return Nest(formula, rank, self.stretched, tuple(bodies), self.totals, self.values)

    def _bodies(
        self, reductions: Sequence[int], stores: Sequence[tuple[int, int]], last: int
    ) -> list[Body]:
        """Return each pass and the body that follows it."""
        formula, bodies = self.formula, []
        for stage in range(last + 1):
            folds = [v for v in reductions if self.stage[v] == stage + 1]
            taken = [formula.steps[v - formula.first_step].arguments[0] for v in folds]
            here = [s for s in stores if not self._is_single(s[0]) and self._pass(s[0]) == stage]
            here += [(v, array) for v, (array, first, _) in self.held.items() if first == stage]
            bodies.append(self._pass_body(stage, taken, folds, here))
            singles = [s for s in stores if self._is_single(s[0]) and self._pass(s[0]) == stage]
            bodies.append(self._section_body(stage, singles))
        return bodies

    def _hold_heavy(self, bodies: Sequence[Body]) -> None:
        """Keep values that are expensive to recompute in result arrays until these are written."""
        passes, dtypes = bodies[::2], self.formula.dtypes
        for result, array in self.written.items():
            end = self._pass(result)
            for value in reversed(range(self.formula.first_step, len(dtypes))):
                if value in self.written or value in self.held or not self._is_heavy(value):
                    continue
                if (dtypes[value], self.patterns[value]) != (dtypes[result], self.patterns[result]):
                    continue
                uses = [stage for stage, body in enumerate(passes) if value in body.steps]
                if len(uses) > 1 and uses[1] <= end:
                    self.held[value] = array, uses[0], end
                    break

    def _is_heavy(self, value: int) -> bool:
        """Tell whether a value takes more time to compute than to read."""
        function = self.formula.steps[value - self.formula.first_step].function
        return isinstance(function, ScalarOp) and function.name in FUNCTIONS

    def _pass(self, value: int) -> int:
        """Return the pass in which, or after which, a value is computed."""
        single = self._is_single(value)
        return max(self.stage[value] - 1, 0) if single else self.stage[value]

    def _array(self) -> int:
        self._next += 1
        return self._next - 1

    def _keep_singles(self, reductions: Sequence[int]) -> None:
        """Assign arrays to the single values that later passes read."""
        formula = self.formula
        keep = set(reductions)
        for number, step in enumerate(formula.steps, formula.first_step):
            for a in step.arguments:
                later = not self._is_single(number) or self.stage[number] > self.stage[a]
                if a >= formula.first_step and self._is_single(a) and self.stage[a] and later:
                    keep.add(a)
        for value in sorted(keep):
            self.values[value] = self._array()

    def _pass_body(
        self,
        stage: int,
        taken: Sequence[int],
        folds: Sequence[int],
        stores: Sequence[tuple[int, int]],
    ) -> Body:
        def array_of(value: int) -> int | None:
            place = None
            if value in self.written and self._pass(value) < stage:
                place = self.written[value]
            elif value in self.held:
                array, first, last = self.held[value]
                place = array if first < stage <= last else None
            return self.leaves.get(value, self.values.get(value, place))

        numbers = _numbers(self.formula, self.leaves, self.patterns, all)
        targets = [*taken, *(value for value, _ in stores)]
        return _body(self.formula, array_of, targets, folds, stores, numbers, self._is_single)

    def _section_body(self, stage: int, stores: Sequence[tuple[int, int]]) -> Body:
        formula = self.formula
        new = [
            value
            for value in self.values
            if self.stage[value] == stage + 1
            and not isinstance(formula.steps[value - formula.first_step].function, FOLDED)
        ]

        def array_of(value: int) -> int | None:
            return None if value in new else self.leaves.get(value, self.values.get(value))

        targets = [*new, *(value for value, _ in stores)]
        kept = [(value, self.values[value]) for value in new]
        numbers = _numbers(formula, self.leaves, self.patterns, all)
        return _body(formula, array_of, targets, (), [*kept, *stores], numbers)


def overwrites(nest: Nest) -> set[tuple[int, int]]:
    """Return the results, with inputs that are read after the result is written."""
    if reduced_axes(nest.formula) is None:
        return set()
    formula, found = nest.formula, set()
    for position, body in enumerate(nest.bodies):
        later = {array for other in nest.bodies[position + 1 :] for _, array in other.loads}
        written = {array - len(formula.inputs) for _, array in body.stores}
        found |= {
            (result, i)
            for result in range(len(formula.results))
            if result in written
            for i in range(len(formula.inputs))
            if i in later
        }
    return found


def nonempty(nest: Nest) -> bool:
    """Tell whether an empty axis is refused, as a maximum of no elements does not exist."""
    steps = nest.formula.steps
    return any(isinstance(s.function, Reduce) and not s.function.reduction.identity for s in steps)
