"""The commit: new values of shared variables that are written over the old ones.

A node may write over an input of the program whose new value it computes if no node reads the old
value after it. So that a call that fails leaves the inputs unchanged, all these nodes come after
the gate, and no node after the gate can fail: that is proven from the lengths checked before the
gate, or checked by the gate itself. In every call the gate also decides which arrays may be
overwritten, and copies the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from sys import getrefcount
from typing import Any, Protocol

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.ops.control.conditions import IfElse
from symcomp.ops.control.regions import ALWAYS, Placement
from symcomp.rewrite.shapes import Shapes
from symcomp.vm.failure import explain
from symcomp.vm.guard import Binder
from symcomp.vm.opcodes import Opcode
from symcomp.vm.order import alias_roots
from symcomp.vm.planning import UNPLANNED
from symcomp.vm.program import Instruction


class Claims(Protocol):
    """Says, for one call, which arrays may be overwritten. The gate's first argument."""

    def begin(self) -> None:
        """Keep others from taking hold of the arrays from now on."""

    def taken(self, arrays: Sequence[Any], others: Sequence[int]) -> tuple[Any, ...]:
        """Return the arrays to write into: the given ones, or copies. ``others`` counts the holders
        of each, without its owner and this call.
        """


@record
class Commit:
    """A node that writes over inputs of the program: for each of its outputs the input that it is
    the new value of, or None.
    """

    node: Apply
    targets: tuple[Variable | None, ...]

    @property
    def overwritten(self) -> list[Variable]:
        """The inputs that are written over."""
        return [w for w in self.targets if w is not None]


def find_commits(
    graph: FunctionGraph,
    order: Sequence[Apply],
    regions: Placement,
    updated: Mapping[int, Variable],
    bind: Binder,
) -> tuple[list[Commit], dict[Apply, list[Apply]]]:
    """Return the nodes that can write over the inputs that they update.

    Parameters
    ----------
    graph : FunctionGraph
    order : sequence of Apply
    regions : Placement
    updated : mapping of int to Variable
        The position of an output, and the input that it is the new value of.
    bind : Binder

    Returns
    -------
    commits : list of Commit
    after : dict of Apply to list of Apply
        The nodes that must come before each, as they read the overwritten values.
    """
    search = _Search(graph, order, regions, bind)
    places: dict[Apply, dict[Variable, Variable]] = {}
    for position, old in updated.items():
        new = graph.outputs[position]
        if new.owner is not None and search.can_overwrite(new, old):
            places.setdefault(new.owner, {})[new] = old
    commits = [
        Commit(node, tuple(found.get(out) for out in node.outputs))
        for node, found in places.items()
    ]
    readers = {commit.node: search.other_readers(commit) for commit in commits}
    kept = _without_cycles(commits, readers)
    return kept, {commit.node: readers[commit.node] for commit in kept}


class _Search:
    """Readers of values, and values that share memory."""

    def __init__(
        self, graph: FunctionGraph, order: Sequence[Apply], regions: Placement, bind: Binder
    ) -> None:
        self._regions, self._bind = regions, bind
        self._read = {x for node in order for x in node.inputs}
        self._results = {root for out in graph.outputs for root in alias_roots(out)}
        self._readers: dict[Variable, list[Apply]] = {}
        for node in order:
            for root in {r for x in node.inputs for r in alias_roots(x)}:
                self._readers.setdefault(root, []).append(node)

    def can_overwrite(self, new: Variable, old: Variable) -> bool:
        """Tell whether the node of ``new`` may write it over ``old`` and its output has no client.
        """
        node: Any = new.owner
        op = node.op
        if op.view_map or op.destroy_map or self._regions[node] != ALWAYS:
            return False
        if old in self._results or any(out in self._read for out in node.outputs):
            return False
        planning = self._bind.planning_of(node)
        if planning.into(node) is None or planning.checking(node) is None:
            return False
        places = planning.overwritable(node, node.outputs.index(new))
        for i, x in enumerate(node.inputs):
            if old in alias_roots(x) and not (x is old and i in places):
                return False
        return any(node.inputs[i] is old for i in places) and self._views_end(old)

    def _views_end(self, old: Variable) -> bool:
        """True if no view of ``old`` may live on to the end of a call."""
        for node in self._readers[old]:
            shared = any(old in alias_roots(out) for out in node.outputs)
            if shared and (self._regions[node] != ALWAYS or isinstance(node.op, IfElse)):
                return False
        return True

    def other_readers(self, commit: Commit) -> list[Apply]:
        """Return the other nodes that read the input that ``commit`` overwrites."""
        found = (n for old in commit.overwritten for n in self._readers[old])
        return [node for node in dict.fromkeys(found) if node is not commit.node]


def _without_cycles(
    commits: Sequence[Commit], readers: Mapping[Apply, Sequence[Apply]]
) -> list[Commit]:
    """Return the commits, leaving out some that would wait for each other."""
    left = {commit.node: commit for commit in commits}
    waits = {node: {r for r in readers[node] if r in left} for node in left}
    kept: list[Commit] = []
    while left:
        node = next((n for n in left if not waits[n] & left.keys()), None)
        commit = left.pop(node if node is not None else next(iter(left)))
        if node is not None:
            kept.append(commit)
    return kept


@record
class Tail:
    """The end of an order, in which nothing can fail.

    Attributes
    ----------
    order : list of Apply
        With the commits in the tail.
    start : int
        Where it begins: at the gate.
    checked : list of Commit
        What the gate must check.
    """

    order: list[Apply]
    start: int
    checked: list[Commit]

    def views(self, overwritten: Collection[Variable]) -> list[Variable]:
        """Return the values computed before, read in the tail, that may share memory with
        overwritten inputs.
        """
        read = dict.fromkeys(x for node in self.order[self.start :] for x in node.inputs)
        before = {out for node in self.order[: self.start] for out in node.outputs}
        return [x for x in read if x in before and alias_roots(x) & set(overwritten)]


def split(
    order: Sequence[Apply],
    commits: Iterable[Commit],
    regions: Placement,
    shapes: Shapes,
    bind: Binder,
) -> Tail:
    """Find the place of the gate, and move the commits that stand before it behind it."""
    commit_of = {commit.node: commit for commit in commits}
    known = _Equal(shapes, bind)
    start = 0
    checked = []
    for position, node in enumerate(order):
        certain = regions[node] == ALWAYS and known.holds(node)
        if node in commit_of:
            if not certain:
                checked.append(commit_of[node])
                start = position
        elif not certain:
            start = position + 1
            if regions[node] == ALWAYS:
                known.learn(node)
    before = [node for node in order[:start] if node not in commit_of]
    moved = [node for node in order[:start] if node in commit_of]
    return Tail([*before, *moved, *order[start:]], len(before), checked)


class _Equal:
    """Lengths known to be equal, as nodes that ran have checked."""

    def __init__(self, shapes: Shapes, bind: Binder) -> None:
        self._shapes, self._bind = shapes, bind
        self._leader: dict[Any, Any] = {}

    def _pairs(self, node: Apply) -> list[tuple[Any, Any]] | None:
        """Return the lengths that ``node`` needs to be equal; None if they are not known."""
        planning = self._bind.planning_of(node)
        if planning is UNPLANNED:
            return None
        found = planning.equal_lengths(node, [self._shapes.of(x) for x in node.inputs])
        return None if found is None else [(_key(m), _key(n)) for m, n in found]

    def _leader_of(self, key: Any) -> Any:
        while key in self._leader:
            key = self._leader[key]
        return key

    def holds(self, node: Apply) -> bool:
        """True if all that ``node`` needs is known."""
        pairs = self._pairs(node)
        return pairs is not None and all(self._leader_of(m) == self._leader_of(n) for m, n in pairs)

    def learn(self, node: Apply) -> None:
        """Add the facts that hold once ``node`` has run."""
        for m, n in self._pairs(node) or ():
            a, b = self._leader_of(m), self._leader_of(n)
            if a != b:
                self._leader[a] = b


def _key(length: Any) -> tuple[bool, int]:
    """Equal for lengths that are known to be equal: numbers, and interned variables."""
    known = isinstance(length, int)
    return (known, length if known else id(length))


class Gate:
    """The function of the gate's instruction: from claims, arrays to overwrite, values to check,
    and views, to the arrays to write into.

    Parameters
    ----------
    count, views : int
        How many arrays are overwritten; how many arguments, at the end, may be views of them that
        are still needed.
    checks : sequence of (Apply, callable, sequence of int)
        For each node that is checked, what does it, and which arguments are its inputs.
    """

    def __init__(
        self,
        count: int,
        views: int,
        checks: Sequence[tuple[Apply, Callable[..., Any], Sequence[int]]],
    ) -> None:
        self.count, self.views, self.checks = count, views, checks

    def check(self, *values: Any) -> None:
        """Raise an error if something behind the gate would fail."""
        for node, check, places in self.checks:
            _checked(node, check, [values[i] for i in places])

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        self.check(*values)
        values[0].begin()
        # All arguments are held by this call alike; a name for one of them would count as well.
        single, *references = map(getrefcount, values)
        arrays, views = values[1 : self.count + 1], values[len(values) - self.views :]
        others = [n - single - _held_by(views, z) for z, n in zip(arrays, references, strict=False)]
        taken: tuple[Any, ...] = values[0].taken(arrays, others)
        return taken

    def __str__(self) -> str:
        return ", ".join(str(node.op) for node, _, _ in self.checks)


def _checked(node: Apply, check: Callable[..., Any], inputs: Sequence[Any]) -> None:
    try:
        check(*inputs)
    except Exception as problem:
        explain(problem, Instruction(Opcode.CALL, node=node), inputs)
        raise


def _held_by(views: Sequence[Any], array: Any) -> int:
    """Count the references that ``views`` hold to ``array``: an array itself counts by its slot and
    as an argument, others by their base.
    """
    same = sum(v is array for v in views)
    return 2 * same + len({id(v) for v in views if getattr(v, "base", None) is array})


def writing(compute: Callable[..., Any], into: Sequence[int], several: bool) -> Callable[..., Any]:
    """Return ``compute``, called with an array for each output; results end up in the arrays for
    which ``into`` has a slot.
    """
    count = len(into)

    def write(*values: Any) -> Any:
        found = compute(*values)
        results = list(found) if several else [found]
        for j, target in enumerate(values[-count:]):
            if target is not None and results[j] is not target:
                target[...] = results[j]
                results[j] = target
        return tuple(results) if several else results[0]

    return write
