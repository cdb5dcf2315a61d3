"""The phases of rewriting that concern sparse matrices, and where they come in."""

from __future__ import annotations

from typing import Any

from symcomp.rewrite.phases import FULL, QUICK, Phase
from symcomp.rewrite.registry import register_phase
from symcomp.rewrite.rule import RuleSet
from symcomp.sparse.native import SPARSE
from symcomp.sparse.rules import ARRAYS, LOWER, READS, UNSAFE
from symcomp.sparse.type import SparseType
from symcomp.vm.features import offer_feature


def has_sparse(graph: Any) -> bool:
    """Return whether a graph has sparse matrices."""
    return any(isinstance(v.type, SparseType) for v in graph.clients)


LOWERING = RuleSet(LOWER, ["sparse", *QUICK])
ON_ARRAYS = RuleSet(ARRAYS, ["sparse", *FULL])
PHASES = (
    (
        Phase(
            "sparse lowering", "programs work on the arrays of sparse matrices", LOWERING,
            needed=has_sparse,
        ),
        "canonicalize",
    ),
    (
        Phase(
            "sparse products", "less work on the arrays of sparse matrices",
            LOWERING + ON_ARRAYS + UNSAFE, needed=has_sparse,
        ),
        "specialize",
    ),
    (
        Phase(
            "sparse arguments", "no index of an argument is looked at twice", RuleSet(READS, FULL),
            needed=has_sparse,
        ),
        "gathers",  # after the phase of devices, whose products look at no index
    ),
)  # fmt: skip


def register() -> None:
    """Rewrite with these phases, and compute natively, from now on."""
    offer_feature(SPARSE)
    for phase, before in PHASES:
        register_phase(phase, before)
