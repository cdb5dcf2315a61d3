"""Policy: how a graph and the graphs in its ops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.core.record import record, replace
from symcomp.vm.bodies import OP_BODIES, Bodies, BodiesOf
from symcomp.vm.features import Formulas, Lowerings
from symcomp.vm.guard import Around
from symcomp.vm.inspection import Inspector, Selects, Several
from symcomp.vm.op_planning import OP_PLANNING
from symcomp.vm.planning import Plannings, entry_of

Rewrite = Callable[[FunctionGraph, Selects | None], Any]


def _unchanged(graph: FunctionGraph, selects: Selects | None) -> None:
    """Rewrite nothing."""


@record
class Policy:
    """How graphs are compiled.

    Attributes
    ----------
    native : bool
        Whether the native machine runs the programs; else the Python machine.
    lowerings, kernels : mapping of type to callable
        How instructions are lowered for the native machine, and the formulas of nodes that are
        generated kernels, by the classes of their ops (``Feature``).
    planning : mapping of type to Planning
        Facts about the nodes of ops for the planner of programs, by the classes of ops.
    bodies : mapping of type to Bodies
        How the graphs in ops are compiled and run, by the classes of ops; ``perform`` of other ops
        runs the graphs in them.
    rewrite : callable (graph, selects) -> object
        Rewrites a graph within an op in place; ``selects`` chooses rewrites by their tags, None: as
        in the function.
    nan_guard : {"off", "user_ops", "all"}
    inspector : Inspector or None
        Looks at the values of all nodes.
    around : callable (node, compute) -> callable, or None
        Gives the function to call in the place of one that computes a node.
    """

    native: bool
    lowerings: Lowerings = field(default_factory=dict)
    kernels: Formulas = field(default_factory=dict)
    planning: Plannings = field(default_factory=lambda: OP_PLANNING)
    bodies: BodiesOf = field(default_factory=lambda: OP_BODIES)
    rewrite: Rewrite = _unchanged
    nan_guard: str = "off"
    inspector: Inspector | None = None
    around: Around | None = None

    def bodies_of(self, op: Op) -> Bodies | None:
        """Return how the graphs in ``op`` are compiled and run; None if it has none."""
        return entry_of(op, self.bodies)

    def within(self, own: Inspector | None) -> Policy:
        """Return how graphs in an op are compiled: an inspector of its own looks at them, too."""
        around = Several([self.inspector] if self.inspector else [])
        if own is None or around.holds(own):
            return self
        return replace(self, inspector=Several([around, own]))

    def rewrite_body(self, graph: FunctionGraph, chosen: Selects | None) -> None:
        """Rewrite a graph of an op in place, seen by the inspector; ``chosen`` are the rewrites
        that the op selects.
        """
        inspector = self.inspector
        if inspector is None:
            self.rewrite(graph, chosen)
            return

        def selects(tags: frozenset[str]) -> bool:
            return inspector.selects(tags) and chosen is not None and chosen(tags)

        allowed = None if chosen is None else selects
        inspector.rewrite(graph, lambda one: self.rewrite(one, allowed))
