"""Rules and phases of users: once registered, they take part in rewriting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symcomp.core.record import record, replace
from symcomp.rewrite.phases import FULL, QUICK, STABLE, Phase
from symcomp.rewrite.rule import Rule, RuleSet

# Other phases that apply the rules of a phase; also the default levels of its rules.
ALSO_IN = {"canonicalize": ("stabilize", "settle", "scan")}
LEVELS = {"canonicalize": QUICK, "stabilize": STABLE}


@record
class _Added:
    """A rule, and the phases that apply it; or a phase, and the one that it precedes."""

    what: Rule | Phase
    where: tuple[str, ...]


_added: list[_Added] = []
_extended: dict[Sequence[Phase], tuple[Phase, ...]] = {}


def register_rule(
    rule: Rule, phase: str = "canonicalize", levels: Iterable[str] | None = None
) -> Rule:
    """Apply a rule in every function that is compiled from now on.

    It is tried before the built-in rules, and selected by its tags like these.

    Parameters
    ----------
    rule : Rule
    phase : str
        ``"canonicalize"``, ``"stabilize"``, ``"scan"``, ``"specialize"`` or ``"blas"``. Rules
        that canonicalize are also applied while the graph is stabilized.
    levels : iterable of str, optional
        The optimizers that apply it; by default, the optimizers that apply its phase.

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
    """Add a phase to rewriting.

    Parameters
    ----------
    phase : Phase
    before : str, optional
        The phase that it comes before; by default it is the last one.
    """
    _add(_Added(phase, () if before is None else (before,)))
    return phase


def unregister(what: Rule | Phase) -> None:
    """Undo ``register_rule`` or ``register_phase``, given the value they returned."""
    _added[:] = [added for added in _added if added.what is not what]
    _extended.clear()


def _add(added: _Added) -> None:
    _added.append(added)
    _extended.clear()


def is_extended() -> bool:
    """Tell whether users have registered anything."""
    return bool(_added)


def extended(phases: Sequence[Phase]) -> Sequence[Phase]:
    """Return these phases with all registered ones."""
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
