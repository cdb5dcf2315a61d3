"""Laziness: which nodes run only inside a branch of an ifelse.

A region is a branch, ``(node, 0)`` for then and ``(node, 1)`` for else, or ROOT. A node belongs to
the smallest set
of regions such that it runs whenever, and only when, one of its users does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.ops.control import IfElse

Region = tuple[Apply, int] | None
ROOT: Region = None
_ALWAYS = frozenset([ROOT])

Placement = Mapping[Apply, frozenset[Region]]


def place(graph: FunctionGraph, order: Sequence[Apply]) -> Placement:
    """For each node, the regions it belongs to; more than one if several branches share it."""
    if not any(isinstance(node.op, IfElse) for node in order):
        return dict.fromkeys(order, _ALWAYS)
    regions: dict[Apply, frozenset[Region]] = {}
    for node in reversed(order):
        wanted: set[Region] = set()
        for out in node.outputs:
            for client, position in graph.clients[out]:
                if client == "output":
                    wanted.add(ROOT)
                elif isinstance(client.op, IfElse) and position > 0:
                    wanted.add((client, (position - 1) // client.op.n_outputs))
                else:
                    wanted |= regions[client]
        regions[node] = _simplify(wanted, regions)
    return regions


def _simplify(wanted: set[Region], regions: Placement) -> frozenset[Region]:
    """Join both branches of one ifelse into where it stands, and drop what lies inside another
    region.
    """
    if ROOT in wanted:
        return _ALWAYS
    pending = [region[0] for region in wanted if region is not None]
    while pending:
        chooser = pending.pop()
        if (chooser, 0) in wanted and (chooser, 1) in wanted:
            wanted -= {(chooser, 0), (chooser, 1)}
            outer = regions[chooser]
            if ROOT in outer:
                return _ALWAYS
            wanted |= outer
            pending.extend(region[0] for region in outer if region is not None)
    return frozenset(r for r in wanted if not _covered(r, wanted, regions))


def _covered(region: Region, wanted: set[Region], regions: Placement) -> bool:
    """True if wherever ``region`` runs, another region of ``wanted`` runs too."""
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
