"""The trace of rewriting: each rule that fired, its node, and the user's line of that node."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any

from symcomp.core.node import Apply, Constant
from symcomp.core.record import record
from symcomp.core.source import Source


def show(what: Any) -> str:
    """Return a node with its inputs by name, or a variable, as short text, since a trace may be
    long.
    """
    if isinstance(what, Apply):
        return f"{what.op}({', '.join(show(x) for x in what.inputs)})"
    if isinstance(what, Constant) and what.name is None:
        size = getattr(what.data, "size", None)
        return f"{what.data.item()!r}" if size == 1 else f"<constant {what.type}>"
    return str(what)


@record
class Firing:
    """An application of a rule.

    Attributes
    ----------
    phase, rule : str
    source : Source or None
        The user's line that made the node.
    before, after : str
        The node and what took its place, one level deep.
    why : str
        The reason of the rule.
    """

    phase: str
    rule: str
    source: Source | None
    before: str
    after: str
    why: str = ""

    def line(self) -> str:
        """Return the firing as text."""
        where = f"    [{self.source}]" if self.source is not None else ""
        return f"{self.before} -> {self.after}{where}"


@record(frozen=False)
class PhaseReport:
    """The firings of one phase.

    Attributes
    ----------
    name : str
    seconds : float
    before, after : int
        Number of nodes.
    firings : list of Firing
    """

    name: str
    seconds: float
    before: int
    after: int
    firings: list[Firing] = field(default_factory=list)


@record(frozen=False)
class Trace:
    """The reports of all phases, in order.

    Attributes
    ----------
    phases : list of PhaseReport
    """

    phases: list[PhaseReport] = field(default_factory=list)

    @property
    def firings(self) -> list[Firing]:
        """The firings of all phases."""
        return [firing for phase in self.phases for firing in phase.firings]

    def counts(self) -> dict[str, int]:
        """Count how often each rule fired."""
        return dict(Counter(firing.rule for firing in self.firings))

    def __str__(self) -> str:
        lines: list[str] = []
        for phase in self.phases:
            lines.append(
                f"{phase.name}: {phase.before} -> {phase.after} nodes, "
                f"{len(phase.firings)} rewrites, {phase.seconds * 1e3:.1f} ms"
            )
            lines += _grouped(phase.firings)
        return "\n".join(lines)


def _grouped(firings: list[Firing]) -> list[str]:
    """Return lines: each rule with its reason, in the order of first use, and where it fired."""
    by_rule: dict[str, list[Firing]] = {}
    for firing in firings:
        by_rule.setdefault(firing.rule, []).append(firing)
    lines = []
    for rule, some in by_rule.items():
        times = f" x{len(some)}" if len(some) > 1 else ""
        lines.append(f"  {rule}{times}: {some[0].why}".rstrip(": "))
        lines += [f"    {firing.line()}" for firing in some]
    return lines
