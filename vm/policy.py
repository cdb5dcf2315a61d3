"""Policy: how a graph and the graphs in its ops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.vm.features import Formulas, Lowerings
from symcomp.vm.inspection import Inspector

Selects = Callable[[frozenset[str]], bool]
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
    rewrite: Rewrite = _unchanged
    nan_guard: str = "off"
    inspector: Inspector | None = None

    def rewrite_body(self, op: Op, graph: FunctionGraph) -> None:
        """Rewrite a graph of ``op`` in place, seen by the inspector."""

        def apply(one: FunctionGraph) -> Any:
            return self.rewrite(one, op.rewrites_of_bodies)

        if self.inspector is None:
            apply(graph)
        else:
            self.inspector.rewrite(graph, apply)
