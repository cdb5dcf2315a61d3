"""Rules and phases of users: registered once, they are part of rewriting from then on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from symcomp.core.record import record
from symcomp.rewrite.phases import FULL, QUICK, STABLE, Phase
from symcomp.rewrite.rule import Rule, RuleSet

# Which phases apply the rules of a phase, and the levels that a rule of it has if it names none.
ALSO_IN = {"canonicalize": ("stabilize", "scan")}
LEVELS = {"canonicalize": QUICK, "stabilize": STABLE}


@record
class _Added:
    """A rule, and the phases that apply it; or a phase, and the one that it comes before."""

    what: Rule | Phase
    where: tuple[str, ...]


_added: list[_Added] = []
_extended: dict[Sequence[Phase], tuple[Phase, ...]] = {}


def register_rule(
    rule: Rule, phase: str = "canonicalize", levels: Iterable[str] | None = None
) -> Rule:
    """Apply a rule in every function that is compiled from now on.

    It is looked at before the rules that come with symcomp, and chosen by its tags as these are.

    Parameters
    ----------
    rule : Rule
    phase : str
        ``"canonicalize"``, ``"stabilize"``, ``"scan"``, ``"specialize"`` or ``"blas"``. What
        canonicalizes is applied while the graph is stabilized, too.
    levels : iterable of str, optional
        The optimizers that apply it; by default, those that apply its phase.

    Returns
    -------
    Rule
        The rule, tagged with its phase and levels.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.rewrite.registry import register_rule, unregister
    >>> from symcomp.rewrite.rule import rule
    >>> @rule("sin", why="small angles are what this program has")
    ... def small_angle(node, graph):
    ...     '''sin(x) -> x'''
    ...     return node.inputs[0]
    >>> registered = register_rule(small_angle, "specialize")
    >>> x = T.dscalar("x")
    >>> float(symcomp.function([x], T.sin(x) + 1)(0.5))
    1.5
    >>> unregister(registered)
    """
    tags = LEVELS.get(phase, FULL) if levels is None else levels
    tagged = rule.tagged([phase, *tags])
    _add(_Added(tagged, (phase, *ALSO_IN.get(phase, ()))))
    return tagged


def register_phase(phase: Phase, before: str | None = None) -> Phase:
    """Rewrite with one more phase from now on.

    Parameters
    ----------
    phase : Phase
    before : str, optional
        The phase that it comes before; by default it is the last one.
    """
    _add(_Added(phase, () if before is None else (before,)))
    return phase


def unregister(what: Rule | Phase) -> None:
    """Take back what ``register_rule`` or ``register_phase`` returned."""
    _added[:] = [added for added in _added if added.what is not what]
    _extended.clear()


def _add(added: _Added) -> None:
    _added.append(added)
    _extended.clear()


def extended(phases: Sequence[Phase]) -> Sequence[Phase]:
    """These phases with what was registered."""
    if not _added:
        return phases
    known = _extended.get(phases)
    if known is None:
        known = _extended[phases] = tuple(_with_added(phases))
    return known


def _with_added(phases: Sequence[Phase]) -> list[Phase]:
    found: list[Phase] = []
    for phase in phases:
        found += [a.what for a in _added if isinstance(a.what, Phase) and phase.name in a.where]
        own = [a.what for a in _added if isinstance(a.what, Rule) and phase.name in a.where]
        found.append(replace(phase, rules=RuleSet([*own, *phase.rules])) if own else phase)
    return found + [a.what for a in _added if isinstance(a.what, Phase) and not a.where]
