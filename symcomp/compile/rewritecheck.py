"""Compare every replacement of rewriting with the original expression, on the values of a call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from symcomp.compile.rounding import Perturb, disagreement
from symcomp.core.graph import FunctionGraph, Replacement
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.source import Source
from symcomp.core.storage import bound
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import SymcompError
from symcomp.scan.rows import LastRows
from symcomp.vm.guard import is_users

# Phases whose rules may remove an overflow, which is their purpose.
STABILIZING = ("stabilize", "unsafe")


class DebugModeError(SymcompError, AssertionError):
    """A check of DebugMode failed."""


class BadOptimization(DebugModeError):
    """A rewrite changed a value."""


class RewriteCheckWarning(UserWarning):
    """A rewrite removed an error."""


class _Failed:
    """Value of a node that raised, and of all that depend on it."""

    def __init__(self, node: Apply, problem: Exception) -> None:
        self.node, self.problem = node, problem

    def __str__(self) -> str:
        return f"{self.node.op} raised {type(self.problem).__name__}: {self.problem}"


class _Effect:
    """Value of a node with side effects, which was not run for a check."""


EFFECT = _Effect()
Plan = list[tuple[Apply, Callable[..., Any]]]
Store = dict[Variable, Any]


class RewriteCheck:
    """Compares, for every replacement in the history of a graph, the new expression with the old
    one.

    Both are computed with NumPy from the values that their inputs have in the rewritten graph, so
    that a wrong rewrite is reported, and not those after it.

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
        # Variables at which the search for an expression stops: the graph's, and replaced ones.
        known: dict[Variable, Variable] = {v: v for v in graph.variables}
        replaced = {entry.old: entry.new for entry in history}
        for old in replaced:
            known.setdefault(old, _final(old, replaced, known))
        leaves = set(graph.variables)
        self._pairs = [self._pair(entry, known, leaves) for entry in history]

    def __call__(self, values: Sequence[Any]) -> None:
        """Check the replacements on these values of the graph's inputs.

        Raises
        ------
        BadOptimization
            If a replacement changed a value, or made an error.
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
        """Return the entry, and the old and new variables, each with a plan to compute it."""
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
        if any(isinstance(node.op, LastRows) for x in (old, new) for node in x.get_parents()):
            return  # elements that no client reads may differ; the values of clients are compared
        expected = _value(old, before, store, None)
        found = _value(new, after, store, None)
        if isinstance(expected, _Effect) or isinstance(found, _Effect):
            return
        if isinstance(expected, _Failed) or isinstance(found, _Failed):
            self._compare_failures(entry, expected, old, found, new)
            return

        def again(perturb: Perturb) -> Any:
            value = _value(old, before, store, perturb)
            # Where rounding decides whether a computation fails, no digits can be compared.
            return np.full_like(expected, np.inf) if isinstance(value, _Failed) else value

        wrong = disagreement(expected, found, again, entry.reason.startswith(STABILIZING))
        if wrong:
            raise BadOptimization(_message(entry, old, new, f"changed a value: {wrong}"))

    @staticmethod
    def _compare_failures(
        entry: Replacement, expected: Any, old: Any, found: Any, new: Any
    ) -> None:
        """Compare failures: both must fail, or the rewrite removed an error, which gives a warning.
        """
        if not isinstance(expected, _Failed):
            raise BadOptimization(_message(entry, old, new, f"made an error: {found}"))
        if not isinstance(found, _Failed):
            words = _message(entry, old, new, f"took an error away: {expected}")
            warnings.warn(words, RewriteCheckWarning, stacklevel=2)


def _final(old: Variable, replaced: dict[Variable, Variable], known: Any) -> Variable:
    """Return the variable that finally replaces ``old``."""
    seen = {old}
    new = replaced[old]
    while new not in known and new in replaced and new not in seen:
        seen.add(new)
        new = replaced[new]
    return new


def _bound(nodes: Sequence[Apply]) -> Plan:
    return [(node, bound(node)) for node in nodes]


def _value(root: Variable, plan: Plan, store: Store, perturb: Perturb | None) -> Any:
    """Return the value of ``root``, computed from ``store`` by ``plan``."""
    if root in store and perturb is None:
        return store[root]
    own = _Layer(store, perturb)
    _compute(plan, own, perturb)
    return own[root]


class _Layer(dict[Variable, Any]):
    """Values on top of others, which are perturbed when first read."""

    def __init__(self, below: Store, perturb: Perturb | None) -> None:
        super().__init__()
        self._below, self._perturb = below, perturb

    def __missing__(self, key: Variable) -> Any:
        value = key.data if isinstance(key, Constant) else self._below[key]
        self[key] = value if self._perturb is None else self._perturb(value)
        return self[key]


def _compute(plan: Plan, store: Store, perturb: Perturb | None) -> None:
    """Compute the values of the nodes and store them."""
    for node, compute in plan:
        given = [store[x] for x in node.inputs]
        for out, value in zip(node.outputs, _results(node, compute, given), strict=True):
            store[out] = value if perturb is None else perturb(value)


def _results(node: Apply, compute: Callable[..., Any], given: list[Any]) -> Sequence[Any]:
    """Return the values of a node's outputs, or the marks of failures and effects.

    The errors are not raised: the program raises them, or does not need the values, as in a branch
    that is not chosen.
    """
    n = len(node.outputs)
    failed = [value for value in given if isinstance(value, _Failed | _Effect)]
    if failed:
        return failed[:1] * n
    if node.op.has_effects:
        return [EFFECT] * n
    if node.op.destroy_map or is_users(node.op):
        given = [x.type.copy_value(value) for x, value in zip(node.inputs, given, strict=True)]
    try:
        with np.errstate(all="ignore"):
            found = compute(*given)
    except Exception as problem:  # noqa: BLE001  (whatever an op may raise)
        return [_Failed(node, problem)] * n
    results: Sequence[Any] = found if node.op.multiple_outputs else [found]
    return results


def _message(entry: Replacement, old: Variable, new: Variable, deed: str) -> str:
    source: Source | None = old.owner.source if old.owner is not None else old.source
    made = f"\n  made at {source}" if source is not None else ""
    phase, _, rule = entry.reason.partition(": ")
    name = f"the rewrite {rule!r} of the phase {phase!r}" if rule else f"the phase {phase!r}"
    before = old.owner if old.owner is not None else old
    after = new.owner if new.owner is not None else new
    exclude = f"Mode.excluding({rule or phase!r}) leaves it out"
    return f"{name} {deed}\n  from {before}\n  to   {after}{made}\n{exclude}"
