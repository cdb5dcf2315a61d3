"""The engine: apply rules to a graph until none applies, visiting only changed nodes again.

A worklist holds the nodes to visit, inputs first. The engine also merges equal nodes
(hash-consing: a table from op and inputs to node, kept up to date) and folds constants.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from symcomp.core.graph import FunctionGraph, Watcher
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.source import made_for
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.errors import RewriteError, RewriteWarning
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import SpecifyShape
from symcomp.rewrite.constant_folding import folded
from symcomp.rewrite.rule import Rule, RuleSet
from symcomp.rewrite.trace import Firing, show
from symcomp.rewrite.views import applicable, forget

FOLDS = "what is known now need not be computed later"
# More rewrites per node than this count as an infinite loop.
MOST_REWRITES = 8


class Known:
    """The constants and computations of a graph, by value: each maps to the representative of all
    equal ones.

    Engines that follow one another on a graph share it, so that each node is merged once, and again
    only after a change. It is valid as long as only engines change the graph.

    Attributes
    ----------
    constants : dict
        From the signature of a constant to the one that stands for all equal ones.
    representative : dict
        The same from the constant itself.
    computed : dict
        From op and inputs to the node that computes them.
    key_of : dict of Apply
        The key in ``computed`` of each node that was merged and not changed since.
    """

    def __init__(self) -> None:
        self.constants: dict[Any, Variable] = {}
        self.representative: dict[Variable, Variable] = {}
        self.computed: dict[Any, Apply] = {}
        self.key_of: dict[Apply, Any] = {}

    def forget(self, node: Apply) -> None:
        """Remove a node that is about to change, or to leave the graph."""
        key = self.key_of.pop(node, None)
        if key is not None and self.computed.get(key) is node:
            del self.computed[key]

    def canonical(self, x: Variable) -> Variable:
        """Return the representative of all constants equal to ``x``; ``x`` itself if it is no
        constant.
        """
        if not isinstance(x, Constant):
            return x
        found = self.representative.get(x)
        if found is None:
            signature = x.signature()
            hashable = isinstance(signature, Hashable)
            found = self.constants.setdefault(signature, x) if hashable else x
            self.representative[x] = found
        return found


class Engine(Watcher):
    """Applies rules to one graph.

    Parameters
    ----------
    graph : FunctionGraph
    rules : RuleSet
    phase : str
        For the reports.
    merging, folding : bool
        Whether equal nodes are merged and constants folded.
    on_error : {"warn", "raise", "ignore"}
        What to do with a rule that raises, or that would change a dtype or shape: it is skipped.
    known : Known, optional
        What the engines before this one found on the same graph.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        rules: RuleSet,
        phase: str = "",
        merging: bool = True,
        folding: bool = True,
        on_error: str = "warn",
        known: Known | None = None,
    ) -> None:
        self.graph = graph
        # The replacement of each replaced variable, for clients that need to follow it.
        self.became: dict[Variable, Variable] = {}
        self.firings: list[Firing] = []
        self._rules = rules
        self._phase = phase
        self._merging = merging
        self._folding = folding
        self._on_error = on_error
        self._known = Known() if known is None else known
        self._queue: deque[Apply] = deque()
        self._waiting: set[Apply] = set()
        self._touched: list[Apply] = []

    def run(self) -> list[Firing]:
        """Rewrite until nothing applies.

        Raises
        ------
        RewriteError
            With ``on_error="raise"``.
        """
        order = self.graph.toposort()
        budget = MOST_REWRITES * _size(order) + 1000
        self.graph.watcher = self
        try:
            if self._rules.from_above and self._descend(order):
                order = self.graph.toposort()
            merged = self._known.key_of
            self._queue.extend(n for n in order if n not in merged or self._rules.for_node(n))
            self._waiting.update(self._queue)
            while self._queue:
                node = self._queue.popleft()
                self._waiting.discard(node)
                if node in self.graph.nodes:
                    self._visit(node)
                    if self._touched:
                        self._requeue()
                if len(self.firings) > budget:
                    self._give_up(budget)
                    break
            if self._merging:
                for i, out in enumerate(self.graph.outputs):
                    self.graph.change_input("output", i, self._known.canonical(out))
        finally:
            self.graph.watcher = None
        return self.firings

    def _descend(self, order: Sequence[Apply]) -> bool:
        """Apply the top-down rules, each to its own results first; return whether any applied.
        """
        rules, before = self._rules.from_above, len(self.firings)
        for node in reversed(order):
            waiting = [node] if rules.for_node(node) else []
            while waiting:
                next_node = waiting.pop()
                if next_node in self.graph.nodes:
                    with made_for(next_node.source):
                        any(self._apply(rule, next_node) for rule in rules.for_node(next_node))
                    waiting += [touched for touched in self._touched if rules.for_node(touched)]
                    self._touched.clear()
        return len(self.firings) > before

    # -- observing changes

    def entered(self, node: Apply) -> None:
        """Add the node to the worklist."""
        self._touched.append(node)

    def changing(self, node: Apply) -> None:
        """Add the node to the worklist again, and forget its old value."""
        self._known.forget(node)
        self._touched.append(node)
        self._touch_sources(node)

    def left(self, node: Apply) -> None:
        """Exclude the node from merging."""
        self._known.forget(node)
        self._touch_sources(node)

    def _touch_sources(self, node: Apply) -> None:
        """Revisit the producers of the node's inputs, as an output may have lost its last client.
        """
        for x in node.inputs:
            if x.owner is not None and x.owner.op.multiple_outputs:
                self._touched.append(x.owner)

    def _requeue(self) -> None:
        """Move touched nodes to the front of the worklist, new nodes before their clients."""
        for node in reversed(self._touched):
            if node not in self._waiting and node in self.graph.nodes:
                self._waiting.add(node)
                self._queue.appendleft(node)
        self._touched.clear()

    # -- one node

    def _visit(self, node: Apply) -> None:
        if node not in self._known.key_of:
            if self._merging and self._merge(node):
                return
            if self._folding and all(isinstance(x, Constant) for x in node.inputs):
                values = folded(node)
                if values and self._replace("constant_folding", FOLDS, node, values):
                    return
        if not self._rules.for_node(node):
            return
        forget()
        with made_for(node.source):
            for rule in applicable(self._rules, node):
                if self._apply(rule, node):
                    return

    def _merge(self, node: Apply) -> bool:
        """Replace the node by an equal one, if there is one."""
        for i, x in enumerate(node.inputs):
            if isinstance(x, Constant):
                self.graph.change_input(node, i, self._known.canonical(x))
        if node.op.destroy_map:
            return False  # each in-place node overwrites its own input
        key = (node.op, *node.inputs)
        known = self._known
        twin = known.computed.setdefault(key, node)
        if twin is node:
            known.key_of[node] = key
            return False
        pairs = list(zip(node.outputs, twin.outputs, strict=True))
        if not all(old.type.is_super(new.type) for old, new in pairs):
            if not all(new.type.is_super(old.type) for old, new in pairs):
                return False
            known.computed[key], known.key_of[node] = node, key
            known.key_of.pop(twin, None)
            node, pairs = twin, [(new, old) for old, new in pairs]
        self.graph.reason = f"{self._phase}: merge"
        self._note("merge", "equal computations are done once", node, [new for _, new in pairs])
        self._exchange(pairs)
        return True

    def _exchange(self, pairs: Sequence[tuple[Variable, Variable]]) -> None:
        for old, new in pairs:
            self.became[old] = new
            self.graph.replace(old, new)

    def _apply(self, rule: Rule, node: Apply) -> bool:
        self.graph.reason = f"{self._phase}: {rule.name}"
        try:
            new = rule.function(node, self.graph)
        except Exception as problem:
            if self._on_error == "raise":
                raise RewriteError(
                    f"{self._describe(rule.name, node)} failed: {problem}"
                ) from problem
            kind = type(problem).__name__
            self._complain(f"{self._describe(rule.name, node)} failed ({kind}: {problem})")
            return False
        if new is None or new is False:
            return False
        return self._replace(rule.name, rule.why, node, [new] if isinstance(new, Variable) else new)

    def _replace(self, rule: str, why: str, node: Apply, new: Sequence[Any]) -> bool:
        """Replace the node's outputs by ``new``; return False if this is refused or changes
        nothing.
        """
        pairs = [
            (old, x)
            for old, x in zip(node.outputs, new, strict=True)
            if x is not None and x is not old and self.graph.clients[old]
        ]
        if not pairs or all(_same_computation(old, x) for old, x in pairs):
            return False
        for i, (old, x) in enumerate(pairs):
            problem = _misfit(old, x) or self._unusable(old, x)
            if problem:
                message = f"{self._describe(rule, node)} would {problem}"
                if self._on_error == "raise":
                    raise RewriteError(message)
                self._complain(message)
                return False
            with made_for(node.source):
                pairs[i] = (old, _with_known_lengths(old, x, self.graph))
        self.graph.reason = f"{self._phase}: {rule}"
        self._note(rule, why, node, [x for _, x in pairs])
        self._exchange(pairs)
        return True

    def _unusable(self, old: Variable, new: Variable) -> str:
        """Return why ``new`` cannot be computed once it replaces ``old``; empty if it can."""
        known = self.graph.clients
        leaves = [new, *(v for node in toposort([new], known) for v in node.inputs)]
        for v in leaves:
            if v is old:
                return f"need {v}, which it replaces"
            if v not in known and v.owner is None and not isinstance(v, Constant):
                return f"need {v}, which is neither an input nor computed from the inputs"
        return ""

    # -- reports

    def _note(self, rule: str, why: str, node: Apply, new: Sequence[Variable]) -> None:
        after = ", ".join(show(x.owner) if x.owner is not None else show(x) for x in new)
        self.firings.append(Firing(self._phase, rule, node.source, show(node), after, why))

    def _describe(self, rule: str, node: Apply) -> str:
        where = f", made at {node.source}" if node.source is not None else ""
        return f"the rewrite {rule!r} on {node}{where}"

    def _complain(self, message: str) -> None:
        if self._on_error == "warn":
            exclude = "exclude it with Mode.excluding(name), or set config.on_opt_error"
            warnings.warn(f"{message}; it was skipped: {exclude}", RewriteWarning, stacklevel=2)

    def _give_up(self, budget: int) -> None:
        recent = Counter(firing.rule for firing in self.firings[-200:])
        names = ", ".join(f"{name} ({n} of the last 200)" for name, n in recent.most_common(5))
        warnings.warn(
            f"rewriting was stopped in {self._phase!r} after {budget} rewrites: some undo one "
            f"another: {names}. The graph is right but may be slow; Mode.excluding one of them "
            "ends the loop",
            RewriteWarning,
            stacklevel=2,
        )


def _size(nodes: Iterable[Apply]) -> int:
    """Count nodes, including those of inner graphs, which may be moved out."""
    size, pending = 0, list(nodes)
    while pending:
        node = pending.pop()
        size += 1
        for _, outputs in node.op.inner_graphs():
            pending += toposort(outputs)
    return size


def _same_computation(old: Variable, new: Variable) -> bool:
    a, b = old.owner, new.owner
    return (
        a is not None
        and b is not None
        and old.index == new.index
        and a.op == b.op
        and len(a.inputs) == len(b.inputs)
        and all(x is y for x, y in zip(a.inputs, b.inputs, strict=True))
    )


def _misfit(old: Any, new: Any) -> str:
    """Return how the type of ``new`` contradicts that of ``old``; empty if it does not."""
    if not isinstance(old.type, TensorType) or not isinstance(new.type, TensorType):
        return "" if old.type.is_super(new.type) else f"change the type {old.type} to {new.type}"
    if old.type.dtype != new.type.dtype:
        return f"change the dtype {old.type.dtype} to {new.type.dtype}"
    agree = old.type.ndim == new.type.ndim and all(
        a is None or b is None or a == b
        for a, b in zip(old.type.shape, new.type.shape, strict=True)
    )
    return "" if agree else f"change the shape {old.type.shape} to {new.type.shape}"


def _with_known_lengths(old: Any, new: Any, graph: FunctionGraph) -> Any:
    """Return ``new`` with a type that has all known lengths of ``old``."""
    if old.type.is_super(new.type):
        return new
    lengths = tuple(
        b if a is None else a for a, b in zip(old.type.shape, new.type.shape, strict=True)
    )
    if new.owner is not None and new.owner not in graph.nodes:
        new.type = TensorType(new.type.dtype, lengths)
        return new
    base = new.owner.inputs[0] if new.owner and isinstance(new.owner.op, SpecifyShape) else new
    return specify_shape(base, lengths)
