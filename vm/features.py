"""Feature: what a capability adds to the compiler, as a value. `compile/features.py` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from symcomp.core.record import record
from symcomp.rewrite.phases import Phase
from symcomp.vm.bodies import BodiesOf
from symcomp.vm.planning import Plannings

#: How an instruction is lowered for a target; None where it is not, and Python computes it.
Lowering = Callable[[Any], Any]
#: By the class of the op.
Lowerings = Mapping[type, Lowering]
#: The formula (``ops/formulas/formula.py``) of a node, or None, by the class of its op.
Formulas = Mapping[type, Callable[[Any], Any]]


@record
class Feature:
    """A capability of the compiler.

    Attributes
    ----------
    name : str
    phases : tuple of (str, Phase)
        Phases of rewriting, each with the name of the phase that it follows.
    lowerings : mapping of (type, str) to callable
        For the class of an op and a target ("cpu"), how an instruction of it is lowered.
    kernels : mapping of type to callable
        For the class of an op, the formula (``ops/formulas/formula.py``) that a node of it computes
        of each element, or None: it is then a generated kernel.
    planning : mapping of type to Planning
        For the class of an op, facts about its nodes for the planner of programs.
    bodies : mapping of type to Bodies
        For the class of an op that contains graphs, how these are compiled and run.
    """

    name: str
    phases: tuple[tuple[str, Phase], ...] = ()
    lowerings: Mapping[tuple[type, str], Lowering] = field(default_factory=dict)
    kernels: Formulas = field(default_factory=dict)
    planning: Plannings = field(default_factory=dict)
    bodies: BodiesOf = field(default_factory=dict)


#: Features of packages that are imported when they are first used, in the order of that.
_offered: list[Feature] = []


def offer_feature(feature: Feature) -> None:
    """Add the feature of a package below the compiler; functions compiled from now on have it."""
    if feature not in _offered:
        _offered.append(feature)


def offered_features() -> tuple[Feature, ...]:
    """Return the features that packages have offered, in order."""
    return tuple(_offered)


def lowerings_for(features: Sequence[Feature], target: str) -> dict[type, Lowering]:
    """Return the lowerings of all features for a target; of two for one op the later feature's."""
    return {
        op: lowering
        for feature in features
        for (op, wanted), lowering in feature.lowerings.items()
        if wanted == target
    }


def lowering_for(features: Sequence[Feature], op: type, target: str) -> Lowering | None:
    """Return the lowering of an op of this class for a target, as ``lowerings_for`` has it."""
    for feature in reversed(features):
        if (found := feature.lowerings.get((op, target))) is not None:
            return found
    return None


def with_phases(phases: Sequence[Phase], features: Sequence[Feature]) -> tuple[Phase, ...]:
    """Return the phases of rewriting with those of the features in their places."""
    found = list(phases)
    for feature in features:
        for after, phase in feature.phases:
            place = next(i for i, known in enumerate(found) if known.name == after)
            found.insert(place + 1, phase)
    return tuple(found)
