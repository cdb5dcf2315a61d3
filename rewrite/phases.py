"""The phases of rewriting, in their order. The tags of phases and rules serve ``Mode.including``
and ``excluding``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from symcomp.core.graph import FunctionGraph
from symcomp.core.record import record
from symcomp.core.spans import span
from symcomp.rewrite.blas import BLAS_RULES
from symcomp.rewrite.canonicalize.algebra import ALGEBRA
from symcomp.rewrite.canonicalize.indexing import INDEXING
from symcomp.rewrite.canonicalize.structure import STRUCTURE
from symcomp.rewrite.engine import Engine, Known
from symcomp.rewrite.extremes import EXTREMES
from symcomp.rewrite.fusion import fuse
from symcomp.rewrite.gather_labels import LABELS, LENGTHS
from symcomp.rewrite.gathers import fuse_gathers, has_gathers
from symcomp.rewrite.indexed_updates import INDEXED_UPDATES
from symcomp.rewrite.inline import INLINE_RULES
from symcomp.rewrite.linalg import LINALG_RULES
from symcomp.rewrite.matrix_products import MATRIX_PRODUCTS, NAN_UNSAFE_MATRIX_PRODUCTS
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.scatters import fuse_scatters, has_scatters
from symcomp.rewrite.specialize import SPECIALIZE
from symcomp.rewrite.stabilize.cancelled import CANCELLED_RULES
from symcomp.rewrite.stabilize.differences import DIFFERENCE_RULES
from symcomp.rewrite.stabilize.double_angles import DOUBLE_ANGLE_RULES
from symcomp.rewrite.stabilize.entropies import ENTROPY_RULES
from symcomp.rewrite.stabilize.gamma import GAMMA_RULES
from symcomp.rewrite.stabilize.geometric_means import GEOMETRIC_MEAN_RULES
from symcomp.rewrite.stabilize.limits import LIMIT_RULES
from symcomp.rewrite.stabilize.logarithms import LOGARITHM_RULES
from symcomp.rewrite.stabilize.means import MEAN_RULES
from symcomp.rewrite.stabilize.norms import NORM_RULES
from symcomp.rewrite.stabilize.over_norms import QUOTIENT_RULES
from symcomp.rewrite.stabilize.power_norms import POWER_NORM_RULES
from symcomp.rewrite.stabilize.powers import POWER_RULES
from symcomp.rewrite.stabilize.products import PRODUCT_RULES
from symcomp.rewrite.stabilize.rational import RATIONAL_RULES
from symcomp.rewrite.stabilize.reference_class import REFERENCE_RULES
from symcomp.rewrite.stabilize.remainders import REMAINDER_RULES
from symcomp.rewrite.stabilize.sums import SUM_RULES
from symcomp.rewrite.storage import has_stored, widen
from symcomp.rewrite.trace import Firing, PhaseReport, Trace
from symcomp.rewrite.unsafe import UNSAFE

Selects = Callable[[frozenset[str]], bool]

# The optimizers that a phase or rule belongs to: from the cheapest to the fullest.
EVERY = ("merge_only", "fast_compile", "up_to_stabilize", "fast_run")
QUICK = EVERY[1:]
STABLE = EVERY[2:]
FULL = EVERY[3:]

CANONICALIZE = RuleSet(
    [*ALGEBRA, *STRUCTURE, *INDEXING, *INDEXED_UPDATES], ["canonicalize", *QUICK]
)
STABILIZE = RuleSet(
    [
        *LINALG_RULES,
        *SUM_RULES,
        *DIFFERENCE_RULES,
        *REMAINDER_RULES,
        *GAMMA_RULES,
        *NORM_RULES,
        *QUOTIENT_RULES,
        *POWER_NORM_RULES,
        *LOGARITHM_RULES,
        *REFERENCE_RULES,
        *DOUBLE_ANGLE_RULES,
        *PRODUCT_RULES,
        *LIMIT_RULES,
        *MEAN_RULES,
        *ENTROPY_RULES,
        *GEOMETRIC_MEAN_RULES,
        *POWER_RULES,
        *RATIONAL_RULES,
        *CANCELLED_RULES,
    ],
    ["stabilize", "fast_compile", *STABLE],
)
INLINE = RuleSet(INLINE_RULES, QUICK)
# Unsafe rules come first: where they are asked for, others would leave less.
STABLE_FORMS = UNSAFE + STABILIZE + CANONICALIZE
SPECIALIZED = RuleSet([*SPECIALIZE, *MATRIX_PRODUCTS], FULL) + NAN_UNSAFE_MATRIX_PRODUCTS
BLAS = RuleSet(BLAS_RULES, FULL)
IN_RANGE = RuleSet(EXTREMES, FULL)
READ_BY_LABEL, COMPARED = RuleSet(LABELS, FULL), RuleSet(LENGTHS, FULL)


@record
class Phase:
    """A stage of rewriting: rules applied until none applies, or a pass over the graph.

    Attributes
    ----------
    name, why : str
    rules : RuleSet
        Applied by the engine, which merges and folds meanwhile.
    sweep : callable (graph, firings) -> None, optional
        A pass that needs the whole graph at once; it comes after the rules.
    tags : tuple of str
        Of the sweep. Rules have their own.
    needed : callable (graph) -> bool, optional
        Whether there is anything for it in a graph; by default there may be.
    sweeps_bodies : bool
        Whether the sweep takes a third argument: a function (graph, selects) that applies the
        phases before this one to the graph of an op, in place; ``selects`` chooses rewrites by
        their tags, None: as in the graph around.
    """

    name: str
    why: str
    rules: RuleSet
    tags: tuple[str, ...] = ()
    sweep: Callable[..., None] | None = None
    needed: Callable[[FunctionGraph], bool] | None = None
    sweeps_bodies: bool = False


PHASES = (
    Phase("merge", "equal computations are done once", RuleSet([]), EVERY),
    Phase("inline", "rules see through ops made of graphs", INLINE),
    Phase("canonicalize", "one form for what can be written in many", CANONICALIZE),
    Phase("stabilize", "no digits lost, no overflow on the way", STABLE_FORMS),
    # The phase of loops includes it.
    Phase("settle", "what became possible meanwhile has its one form, too", CANONICALIZE),
    Phase(
        "storage", "ops compute in a wider dtype than arrays are stored in", RuleSet([]), FULL,
        widen, has_stored,
    ),
    Phase("specialize", "cheaper functions with the same values", SPECIALIZED),
    Phase("blas", "products of matrices scaled and added up by one routine", BLAS),
    Phase("labels", "labels are read in passes over rows", READ_BY_LABEL),
    Phase("lengths", "lengths are compared where values come from", COMPARED),
    Phase("extremes", "no part of a product leaves the range if the product does not", IN_RANGE),
    Phase("fusion", "scalar functions of the same elements are one loop", RuleSet([]), FULL, fuse),
    # After the phases of devices, whose kernels do not gather.
    Phase(
        "gathers", "loops read vectors at positions", RuleSet([]), ("fusion", *FULL), fuse_gathers,
        has_gathers,
    ),
    Phase(
        "scatters", "loops add values to vectors at positions", RuleSet([]), ("fusion", *FULL),
        fuse_scatters, has_scatters,
    ),
)  # fmt: skip


def _rewrite_body(
    around: Selects,
    on_error: str,
    phases: Sequence[Phase],
    graph: FunctionGraph,
    chosen: Selects | None,
) -> None:
    """Rewrite the graph of an op, for a phase that ``sweeps_bodies``."""
    rewrite(graph, chosen or around, on_error, phases)


def rewrite(
    graph: FunctionGraph,
    selects: Selects,
    on_error: str = "warn",
    phases: Sequence[Phase] = PHASES,
) -> Trace:
    """Apply the phases and rules whose tags are selected.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    selects : callable
        Tags -> whether to apply phases and rules with these tags.
    on_error : {"warn", "raise", "ignore"}
        What to do with a rule that fails.
    phases : sequence of Phase
        In their order.

    Returns
    -------
    Trace
        The firings of each phase.
    """
    trace = Trace()
    merging = selects(frozenset(["merge", *EVERY]))
    folding = selects(frozenset(["constant_folding", *QUICK]))
    known = Known()
    selected = [phase.rules.selected(selects) for phase in phases]
    for i, phase in enumerate(phases):
        rules = selected[i]
        if any(rules.names < later.names for later in selected[i + 1 :]) and rules:
            continue  # a later phase includes it
        sweeps = phase.sweep is not None and selects(frozenset([phase.name, *phase.tags]))
        applies = bool(rules) or (phase.name == "merge" and (merging or folding))
        if not applies and not sweeps:
            continue
        if phase.needed is not None and not phase.needed(graph):
            continue
        started, before = time.perf_counter(), len(graph.nodes)
        firings: list[Firing] = []
        with span(f"rewrite: {phase.name}") as stage:
            if applies:
                engine = Engine(graph, rules, phase.name, merging, folding, on_error, known)
                firings += engine.run()
            if sweeps and phase.sweep is not None:
                graph.reason = phase.name
                before_this = partial(_rewrite_body, selects, on_error, phases[:i])
                phase.sweep(graph, firings, *[before_this] * phase.sweeps_bodies)
                known = Known()
            stage.note = f"{len(firings)} rewrites, {before} -> {len(graph.nodes)} nodes"
        seconds = time.perf_counter() - started
        trace.phases.append(PhaseReport(phase.name, seconds, before, len(graph.nodes), firings))
    return trace
