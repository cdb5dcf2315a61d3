"""Laziness: find the nodes that run only inside a branch of an ifelse.

A region is a branch, ``(node, 0)`` for then and ``(node, 1)`` for else, or ROOT. A node belongs to
the smallest set
of regions such that it runs whenever, and only when, one of its users does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.ops.control.conditions import IfElse, ifelse
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.scalar_logic import eq, neq

Region = tuple[Apply, int] | None
ROOT: Region = None
ALWAYS = frozenset([ROOT])

Placement = Mapping[Apply, frozenset[Region]]


def place(order: Sequence[Apply], outputs: Iterable[Variable]) -> Placement:
    """Return, for each node, the regions it belongs to; more than one if several branches share it.

    Parameters
    ----------
    order : sequence of Apply
        Nodes in topological order.
    outputs : iterable of Variable
        The variables that every call computes.
    """
    if not any(isinstance(node.op, IfElse) for node in order):
        return dict.fromkeys(order, ALWAYS)
    wanted: dict[Apply, set[Region]] = {node: set() for node in order}
    for out in outputs:
        if out.owner in wanted:
            wanted[out.owner].add(ROOT)
    regions: dict[Apply, frozenset[Region]] = {}
    for node in reversed(order):
        regions[node] = _simplify(wanted[node], regions)
        for position, x in enumerate(node.inputs):
            if x.owner not in wanted:
                continue
            if isinstance(node.op, IfElse) and position > 0:
                wanted[x.owner].add((node, (position - 1) // node.op.n_outputs))
            else:
                wanted[x.owner] |= regions[node]
    return regions


def _simplify(wanted: set[Region], regions: Placement) -> frozenset[Region]:
    """Replace both branches of one ifelse, or of two with the same condition, by the enclosing
    region, and drop regions inside other ones.
    """
    if ROOT in wanted:
        return ALWAYS
    pending = [region for region in wanted if region is not None]
    known: dict[Any, list[set[Any]]] = {}
    while pending:
        region = pending.pop()
        chooser, side = region
        condition, outer = chooser.inputs[0], regions[chooser]
        joined: set[Region] = set()
        if all(r is not None and (r[0].inputs[0], r[1]) == (condition, side) for r in outer):
            joined = {region}  # the enclosing region already decides this choice
        else:
            sides = known.setdefault((condition, outer), [set(), set()])
            sides[side].add(region)
            if all(sides):
                joined = {*sides[0], *sides[1]}
        if joined:
            wanted -= joined
            if ROOT in outer:
                return ALWAYS
            pending.extend(r for r in outer - wanted if r is not None)
            wanted |= outer
    return frozenset(r for r in wanted if not _covered(r, wanted, regions))


def _covered(region: Region, wanted: set[Region], regions: Placement) -> bool:
    """Tell whether another region of ``wanted`` runs whenever ``region`` runs."""
    if region is None:
        return False
    pending = list(regions[region[0]])
    while pending:
        outer = pending.pop()
        if outer in wanted:
            continue
        if outer is None:
            return False
        pending.extend(regions[outer[0]])
    return True


def is_active(
    regions: frozenset[Region],
    placement: Placement,
    rank: Mapping[Apply, int],
    known: dict[frozenset[Region], Any],
) -> Any:
    """Return a symbolic bool: whether one of ``regions`` runs. It evaluates only conditions that
    are reached.

    Parameters
    ----------
    regions : frozenset of Region
    placement : Placement
    rank : mapping of Apply to int
        Position of each node, so that conditions are evaluated in a fixed order.
    known : dict
        Conditions built earlier; new ones are added.
    """
    known.setdefault(ALWAYS, constant(True))
    pending = [regions]
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
            continue
        around = [placement[region[0]] for region in current if region is not None]
        missing = [outer for outer in around if outer not in known]
        if missing:
            pending.extend(missing)
            continue
        active: Any = constant(False)
        for chooser, side in sorted(filter(None, current), key=lambda r: (rank[r[0]], r[1])):
            chosen = (neq, eq)[side](chooser.inputs[0], 0)
            outer = known[placement[chooser]]
            reached = chosen if placement[chooser] == ALWAYS else ifelse(outer, chosen, False)
            active = ifelse(reached, True, active) if len(current) > 1 else reached
        known[current] = active
    return known[regions]
