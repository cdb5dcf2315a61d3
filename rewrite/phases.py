"""The phases of rewriting, in their order. A phase's tags serve ``Mode.including`` and
``excluding``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.constant_folding import constant_folding
from symcomp.rewrite.merge import merge


@dataclass(frozen=True)
class Phase:
    """One pass over a graph: changes it, and returns how many nodes it saved."""

    name: str
    why: str
    apply: Callable[[FunctionGraph], int]
    tags: frozenset[str]


ALWAYS = ("fast_run", "fast_compile")

PHASES = (
    Phase(
        "merge",
        "equal computations are done once",
        merge,
        frozenset(["merge", *ALWAYS]),
    ),
    Phase(
        "constant_folding",
        "what is known now need not be computed at every call",
        constant_folding,
        frozenset(["constant_folding", *ALWAYS]),
    ),
)


def rewrite(
    graph: FunctionGraph, selects: Callable[[frozenset[str]], bool]
) -> list[tuple[str, float, int]]:
    """Apply the phases whose tags are selected; return (name, seconds, nodes saved) of each.

    Raises
    ------
    GraphError
        If a phase breaks the graph.
    """
    report = []
    for phase in PHASES:
        if selects(phase.tags | {phase.name}):
            started = time.perf_counter()
            saved = phase.apply(graph)
            report.append((phase.name, time.perf_counter() - started, saved))
    return report
