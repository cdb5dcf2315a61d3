"""Policy: how a graph and the graphs in its ops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.vm.features import Formulas, Lowerings
from symcomp.vm.inspection import Inspector, Selects, Several
from symcomp.vm.op_planning import OP_PLANNING
from symcomp.vm.planning import Plannings

Rewrite = Callable[[FunctionGraph, Selects | None], Any]


def _unchanged(graph: FunctionGraph, selects: Selects | None) -> None:
    """Rewrite nothing."""


@dataclass(frozen=True)
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
        What the planner of programs knows of the nodes of ops, by their classes.
    rewrite : callable (graph, selects) -> object
        Rewrites a graph within an op in place; ``selects`` chooses rewrites by their tags, None: as
        in the function.
    nan_guard : {"off", "user_ops", "all"}
    inspector : Inspector or None
        Looks at the values of all nodes.
    """

    native: bool
    lowerings: Lowerings = field(default_factory=dict)
    kernels: Formulas = field(default_factory=dict)
    planning: Plannings = field(default_factory=lambda: OP_PLANNING)
    rewrite: Rewrite = _unchanged
    nan_guard: str = "off"
    inspector: Inspector | None = None

    def within(self, op: Op) -> Policy:
        """Return how graphs in ``op`` are compiled: an inspector of its own looks at them, too."""
        own, around = op.inspector_of_bodies, Several([self.inspector] if self.inspector else [])
        if own is None or around.holds(own):
            return self
        return replace(self, inspector=Several([around, own]))

    def rewrite_body(self, op: Op, graph: FunctionGraph) -> None:
        """Rewrite a graph of ``op`` in place, seen by the inspector."""
        chosen, inspector = op.rewrites_of_bodies, self.inspector
        if inspector is None:
            self.rewrite(graph, chosen)
            return

        def selects(tags: frozenset[str]) -> bool:
            return inspector.selects(tags) and chosen is not None and chosen(tags)

        allowed = None if chosen is None else selects
        inspector.rewrite(graph, lambda one: self.rewrite(one, allowed))
