"""Passes over elements that a block holds in registers: it reads and computes each of them once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcomp.codegen.cpu.bodies import BodyPlan, read_by
from symcomp.core.record import record


@record
class Pass:
    """A pass among several over the same elements: its work for each of them.

    Attributes
    ----------
    elements : tuple of (int, int)
        Values and the arrays that they are loaded from.
    steps : tuple of int
        The values that it computes.
    taken : tuple of int
        The values that earlier passes hold.
    held : tuple of int
        The values that it holds for later passes.
    stores : tuple of (int, int)
        Values and the arrays that they go to.
    """

    elements: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    stores: tuple[tuple[int, int], ...]
    taken: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


def passes_of(plans: Sequence[BodyPlan]) -> list[Pass]:
    """Return the passes of bodies that hold nothing."""
    return [Pass(plan.elements, plan.steps, plan.stores) for plan in plans]


def holding_passes(plans: Sequence[BodyPlan]) -> list[Pass]:
    """Return the passes of bodies, one after another, of which each holds what later ones read."""
    found: list[Pass] = []
    known: dict[int, int] = {}  # the pass that loads or computes a value
    held: list[set[int]] = [set() for _ in plans]
    for number, plan in enumerate(plans):
        # A result that a later pass overwrites was left for it in memory; it is held instead.
        later = {array for other in plans[number + 1 :] for _, array in other.stores}
        stores = tuple(pair for pair in plan.stores if pair[1] not in later)
        steps, taken = [], set()
        needed = {_argument(plan, value) for value in plan.body.folds}
        needed |= {value for value, _ in stores}
        for value in reversed(plan.steps):
            if value not in needed:
                continue
            if value in known:
                taken.add(value)
            else:
                steps.append(value)
                needed |= {*read_by(plan.formula, value)}
        loads = [pair for pair in plan.elements if pair[0] in needed]
        taken |= {value for value, _ in loads if value in known}
        loads = [pair for pair in loads if pair[0] not in known]
        for value in taken:
            held[known[value]].add(value)
        own = [value for value, array in loads if array < plan.temporaries]
        known |= dict.fromkeys([*own, *steps], number)
        found.append(Pass(tuple(loads), tuple(reversed(steps)), stores, tuple(sorted(taken))))
    return [
        Pass(one.elements, one.steps, one.stores, one.taken, tuple(sorted(values)))
        for one, values in zip(found, held, strict=True)
    ]


def words_held(plans: Sequence[BodyPlan]) -> int:
    """Return how many registers an element takes between the passes of bodies, at most."""
    passes = holding_passes(plans)
    most = 0
    for number in range(1, len(passes)):
        before = {value for one in passes[:number] for value in one.held}
        after = {value for one in passes[number:] for value in one.taken}
        sizes = [np.dtype(plans[0].formula.dtypes[v]).itemsize for v in before & after]
        most = max(most, sum(max(1, size // 4) for size in sizes))
    return most


def _argument(plan: BodyPlan, value: int) -> int:
    formula = plan.formula
    return formula.steps[value - formula.first_step].arguments[0]
