"""Undefined derivatives in loops: the variables that they reach over the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.core.node import Variable


def undefined_over_steps(op: Any, forward: bool) -> list[list[str]]:
    """Return ``[i][j]``: why output j of the body, in this or a later step, has no derivative in
    input i; empty text if it has one. An empty list if all have one.
    """
    lost = [list(row) for row in op.body.undefined(forward)]
    if not lost:
        return []
    states, direct = _rows_of_states(op), op.body.connection
    changed = True
    while changed:
        changed = False
        for i, row in enumerate(lost):
            for j, why in enumerate(row):
                if why:
                    continue
                for k, places in enumerate(states):
                    if row[k] and any(op.reach[p][j] for p in places):
                        row[j] = row[k]
                    elif direct[i][k]:
                        row[j] = next((lost[p][j] for p in places if lost[p][j]), "")
                    if row[j]:
                        changed = True
                        break
    return lost


def undefined_before(op: Any, found: Mapping[Variable, Any]) -> dict[Variable, Any]:
    """Return the null gradients of a step's inputs, and of the inputs from which earlier steps make
    them.

    Parameters
    ----------
    op : Scan
    found : mapping
        Null gradients by the input of the body that one step gives them for.
    """
    undefined = dict(found)
    inputs, direct = op.body.inputs, op.body.connection
    states = _rows_of_states(op)
    waiting = list(undefined)
    while waiting:
        x = waiting.pop()
        for k, places in enumerate(states):
            if any(inputs[p] is x for p in places):
                new = [y for y, row in zip(inputs, direct, strict=True) if row[k]]
                waiting += [y for y in new if y not in undefined]
                undefined.update((y, undefined[x]) for y in new if y not in undefined)
    return undefined


def undefined_after(op: Any, found: Mapping[int, Any]) -> dict[int, Any]:
    """Return the null tangents of a step's outputs, and of the outputs that later steps make of
    them.

    Parameters
    ----------
    op : Scan
    found : mapping
        Null tangents by the output of the body that one step gives them for.
    """
    undefined = dict(found)
    states = _rows_of_states(op)
    for k, null in found.items():
        if k < len(states):
            reached = {j for p in states[k] for j, on in enumerate(op.reach[p]) if on}
            undefined.update((j, null) for j in reached if j not in undefined)
    return undefined


def _rows_of_states(op: Any) -> list[list[int]]:
    """Return, for each state that is output k of the body, the inputs that are its rows."""
    numbers = op.layout.step(range(len(op.body.inputs)))
    return [*numbers.lagged, *([i] for i in numbers.carried)]
