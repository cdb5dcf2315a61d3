"""Every replacement of rewriting, computed before and after on the values of a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from symcomp.compile.rounding import Perturb, disagreement
from symcomp.core.graph import FunctionGraph, Replacement
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.source import Source
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import SymcompError
from symcomp.vm.guard import is_users

# Phases whose rules may take an overflow away, as their purpose is.
STABILIZING = ("stabilize", "unsafe")


class DebugModeError(SymcompError, AssertionError):
    """A check of DebugMode failed."""


class BadOptimization(DebugModeError):
    """A rewrite changed a value."""


class _Unknown:
    """Stands for the value of what could not be computed, as in a branch that is not chosen."""


UNKNOWN: Any = _Unknown()
Plan = list[tuple[Apply, Callable[..., Any]]]
Store = dict[Variable, Any]


class RewriteCheck:
    """Compares what every replacement in the history of a graph put in with what it took out.

    Both are computed with NumPy from the values that their inputs have in the rewritten graph, so
    that a wrong rewrite is blamed for itself and not those after it.

    Parameters
    ----------
    graph : FunctionGraph
        Rewritten, with its history.
    """

    def __init__(self, graph: FunctionGraph) -> None:
        self._inputs = list(graph.inputs)
        self._constants = [v for v in graph.variables if isinstance(v, Constant)]
        self._plan = _bound(graph.toposort())
        history = graph.history or []
        # What is blocked when an expression is looked for: the graph, and what was replaced.
        known: dict[Variable, Variable] = {v: v for v in graph.variables}
        replaced = {entry.old: entry.new for entry in history}
        for old in replaced:
            known.setdefault(old, _final(old, replaced, known))
        leaves = set(graph.variables)
        self._pairs = [self._pair(entry, known, leaves) for entry in history]

    def __call__(self, values: Sequence[Any]) -> None:
        """Check on these values of the graph's inputs.

        Raises
        ------
        BadOptimization
            If a replacement changed a value.
        """
        store: Store = dict(zip(self._inputs, values, strict=True))
        store.update((v, v.data) for v in self._constants)
        _compute(self._plan, store, None)
        for entry, (old, before), (new, after) in self._pairs:
            self._compare(entry, store, old, before, new, after)

    @staticmethod
    def _pair(
        entry: Replacement, known: dict[Variable, Variable], leaves: Collection[Variable]
    ) -> Any:
        """The entry; what it took out and what it put in, each with a plan to compute it."""
        sides = []
        for root in (entry.old, entry.new):
            others = known if known.get(root) is root else {**known}
            if others is not known:
                others.pop(root, None)
            (expression,) = rebuild([root], others)
            sides.append((expression, _bound(toposort([expression], leaves))))
        return entry, *sides

    def _compare(
        self, entry: Replacement, store: Store, old: Any, before: Plan, new: Any, after: Plan
    ) -> None:
        if any(node.op.has_effects for node, _ in [*before, *after]):
            return
        if any(node.op.gives_part for x in (old, new) for node in x.get_parents()):
            return  # the values of what reads them are compared
        expected = _value(old, before, store, None)
        found = _value(new, after, store, None)
        if expected is UNKNOWN or found is UNKNOWN:
            return

        def again(perturb: Perturb) -> Any:
            return _value(old, before, store, perturb)

        wrong = disagreement(expected, found, again, entry.reason.startswith(STABILIZING))
        if wrong:
            raise BadOptimization(_message(entry, old, new, wrong))


def _final(old: Variable, replaced: dict[Variable, Variable], known: Any) -> Variable:
    """What stands for ``old`` in the end."""
    seen = {old}
    new = replaced[old]
    while new not in known and new in replaced and new not in seen:
        seen.add(new)
        new = replaced[new]
    return new


def _bound(nodes: Sequence[Apply]) -> Plan:
    return [(node, node.op.bind(node)) for node in nodes]


def _value(root: Variable, plan: Plan, store: Store, perturb: Perturb | None) -> Any:
    """The value of ``root``, computed from ``store`` by ``plan``."""
    if root in store and perturb is None:
        return store[root]
    own = _Layer(store, perturb)
    _compute(plan, own, perturb)
    return own[root]


class _Layer(dict[Variable, Any]):
    """Values on top of others, which are perturbed when they are first read."""

    def __init__(self, below: Store, perturb: Perturb | None) -> None:
        super().__init__()
        self._below, self._perturb = below, perturb

    def __missing__(self, key: Variable) -> Any:
        value = key.data if isinstance(key, Constant) else self._below.get(key, UNKNOWN)
        self[key] = value if self._perturb is None else self._perturb(value)
        return self[key]


def _compute(plan: Plan, store: Store, perturb: Perturb | None) -> None:
    """Add the values of the nodes; what cannot be computed, and what needs that, is unknown."""
    for node, compute in plan:
        given = [store[x] for x in node.inputs]
        results: Sequence[Any] = [UNKNOWN] * len(node.outputs)
        if not any(value is UNKNOWN for value in given) and not node.op.has_effects:
            if node.op.destroy_map or is_users(node.op):
                given = [
                    x.type.copy_value(value) for x, value in zip(node.inputs, given, strict=True)
                ]
            try:
                with np.errstate(all="ignore"):
                    found = compute(*given)
                results = found if node.op.multiple_outputs else [found]
            except Exception:  # noqa: BLE001, S110  (in the program it fails, or is not needed)
                pass
        for out, value in zip(node.outputs, results, strict=True):
            store[out] = value if perturb is None else perturb(value)


def _message(entry: Replacement, old: Variable, new: Variable, wrong: str) -> str:
    source: Source | None = old.owner.source if old.owner is not None else old.source
    made = f"\n  made at {source}" if source is not None else ""
    phase, _, rule = entry.reason.partition(": ")
    name = f"the rewrite {rule!r} of the phase {phase!r}" if rule else f"the phase {phase!r}"
    before = old.owner if old.owner is not None else old
    after = new.owner if new.owner is not None else new
    exclude = f"Mode.excluding({rule or phase!r}) leaves it out"
    return f"{name} changed a value: {wrong}\n  from {before}\n  to   {after}{made}\n{exclude}"
