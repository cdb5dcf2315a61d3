"""The schedule of processors: from a nest to its functions and passes in LoopIR."""

from __future__ import annotations

from collections.abc import Sequence

from symcomp.codegen.cpu.bodies import BodyPlan, function_of_body
from symcomp.codegen.cpu.folds import Fold, functions_of_totals, parts_of_one
from symcomp.codegen.cpu.passes import PassPlan
from symcomp.codegen.cpu.products import ProductFold
from symcomp.codegen.functions.c_scalars import C_TYPES, scalar_text
from symcomp.codegen.loopir.ir import KernelFunction
from symcomp.codegen.loopir.kernel import Loops, RowFunction, Stage, Sweep
from symcomp.codegen.loops.nests import Body, Nest, nonempty, reduced_axes
from symcomp.core.record import replace
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.formula import GATHER
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import LogProd

# The number of an array of truth values has 8 bits.
MOST_CHOSEN = 256


def schedule(nest: Nest) -> Loops | None:
    """Schedule the kernel of a nest; None if part of it has no C."""
    if any(dtype not in C_TYPES for dtype in nest.dtypes) or not _can_be_written(nest):
        return None
    if reduced_axes(nest.formula) is None:
        plans = _plans(nest, nest.bodies)
        functions = [function for plan in plans for function in function_of_body(plan, False)]
        bodies = tuple(RowFunction(f"body{plan.number}", plan.roles(())) for plan in plans)
        return Loops(tuple(functions), _sweep(nest, bodies, ()))
    return _Reduction(nest).loops()


def _plans(nest: Nest, bodies: Sequence[Body]) -> list[BodyPlan]:
    return [BodyPlan(nest, number, body) for number, body in enumerate(bodies)]


def _can_be_written(nest: Nest) -> bool:
    formula = nest.formula
    for body in nest.bodies:
        for value in body.steps:
            step = formula.steps[value - formula.first_step]
            if step.function == GATHER:
                continue
            assert isinstance(step.function, ScalarOp)
            dtypes = tuple(formula.dtypes[a] for a in step.arguments)
            if scalar_text(step.function, dtypes, step.dtype) is None:
                return False
    return True


def _fold_of(nest: Nest, value: int) -> Fold:
    function = nest.formula.steps[value - nest.formula.first_step].function
    return (ProductFold if isinstance(function, LogProd) else Fold)(nest, value)


class _Reduction:
    """The functions and stages of a nest that reduces."""

    def __init__(self, nest: Nest) -> None:
        self.nest, bodies = nest, [*nest.bodies]
        self.ready = self._ready()
        if self.ready:
            bodies[-3] = replace(bodies[-3], stores=(*bodies[-3].stores, *self.ready))
        self.plans = plans = _plans(nest, bodies)
        folds = {value: _fold_of(nest, value) for value in nest.totals}
        self.passes = {
            plan.number: PassPlan(plan, [folds[v] for v in plan.body.folds])
            for plan in plans
            if plan.body.folds
        }

    def loops(self) -> Loops:
        functions: list[KernelFunction] = []
        for plan in self.plans:
            if plan.number in self.passes:
                functions += self.passes[plan.number].functions()
            else:
                before = self.passes.get(plan.number - 1)
                functions += function_of_body(plan, before is not None and before.ways > 1)
        for number, one in self.passes.items():
            functions += functions_of_totals(number // 2, one.folds, one.ways)
        total = len(self.nest.dtypes)
        functions += [one.lanes(total) for one in self.passes.values() if one.ways]
        stages = tuple(self._stage(number) for number in range(len(self.plans) // 2))
        return Loops(tuple(functions), _sweep(self.nest, (), stages))

    def _stage(self, number: int) -> Stage:
        taken, after = self.plans[2 * number], self.plans[2 * number + 1]
        one = self.passes.get(taken.number)
        totals = [a for value in taken.body.folds for a in self.nest.totals[value]]
        across = f"{'across' if taken.singles else 'body'}{taken.number}"
        return Stage(
            RowFunction(f"body{taken.number}", taken.roles(totals)),
            RowFunction(across, taken.roles(totals, across=True)),
            RowFunction(f"body{after.number}", after.roles(())),
            parts_of_one(one.folds, one.ways) if one else 0,
            self._chosen(taken.body),
            bool(self.ready) and after is self.plans[-1],
            f"lanes{taken.number}" if one and one.ways else "",
            tuple(f"{name}{number}" for name in ("begin", "merge", "finish")) if one else (),
        )

    def _chosen(self, body: Body) -> tuple[int, ...]:
        """Return the arrays of truth values, one for each result, without which a pass adds
        nothing, as it only adds up values of ``guarded``; none if it does more.
        """
        conditions = dict.fromkeys(self._condition(value) for value in body.folds)
        found = tuple(self.nest.values.get(c, MOST_CHOSEN) for c in conditions)
        return () if body.stores or max(found, default=0) >= MOST_CHOSEN else found

    def _ready(self) -> list[tuple[int, int]]:
        """Return the value, with the array of the result, that a result is where the last stage
        adds nothing; none if that changes anything else.
        """
        formula, bodies = self.nest.formula, self.nest.bodies
        if len(bodies) == 2 or not self._chosen(bodies[-2]) or len(bodies[-1].stores) != 1:
            return []
        ((value, array),) = bodies[-1].stores
        step = formula.steps[value - formula.first_step]
        if getattr(step.function, "name", "") != "switch":
            return []
        condition, _, other = step.arguments
        before = {v for v, _ in bodies[-3].stores}
        known = other in before and {condition} == {*map(self._condition, bodies[-2].folds)}
        return [(other, array)] if known else []

    def _condition(self, reduction: int) -> int:
        """Return the truth value without which a sum adds zeros; -1 if there is none."""
        formula = self.nest.formula
        reduce = formula.steps[reduction - formula.first_step]
        argument = reduce.arguments[0] - formula.first_step
        if argument < 0 or not isinstance(reduce.function, Reduce):
            return -1
        step = formula.steps[argument]
        if reduce.function.reduction.name != "sum" or not isinstance(step.function, ScalarOp):
            return -1
        guards = step.function.name == "guarded" and formula.dtypes[step.arguments[0]] == "bool"
        return step.arguments[0] if guards else -1


def _sweep(nest: Nest, bodies: tuple[RowFunction, ...], stages: tuple[Stage, ...]) -> Sweep:
    axes = reduced_axes(nest.formula) or ()
    return Sweep(
        nest.rank,
        nest.dtypes,
        nest.temporaries,
        nest.stretched,
        tuple(axis in axes for axis in range(nest.rank)),
        nonempty(nest),
        bodies,
        stages,
        frozenset({*nest.formula.tables, *nest.scatters}),
    )
