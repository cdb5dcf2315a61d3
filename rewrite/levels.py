"""Choose nodes that may be fused: levels, so that no grouping within a level makes a cycle.

A node's level is at least that of each node it depends on, and more if the two are not of one kind.
So a path between two nodes of one kind and level passes only nodes of that kind and level: so
grouping along such paths leaves no node between two members outside of the group.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Generic, TypeVar

from symcomp.core.node import Apply, Variable

Item = TypeVar("Item", bound=Hashable)
Kind = Hashable | None
INFINITE = 1 << 60
MOST_RAISED = 64


def assign_levels(order: Sequence[Apply], kinds: Mapping[Apply, Kind]) -> dict[Apply, int]:
    """Assign a level to each node.

    Parameters
    ----------
    order : sequence of Apply
        Each node after those it depends on.
    kinds : mapping of Apply to hashable or None
        Nodes of one kind may be grouped; those of kind None are never.

    Returns
    -------
    dict of Apply to int
        Nodes are brought to the level of a user of their kind where they can be, so that they are
        computed where they are needed; the others come as early as they can, but those of kind
        None as late.
    """

    def gap(before: Apply, after: Apply) -> int:
        kind = kinds[before]
        return int(kind is None or kind != kinds[after])

    earliest: dict[Apply, int] = {}
    for node in order:
        bounds = (earliest[p] + gap(p, node) for p in _producers(node, kinds))
        earliest[node] = max(bounds, default=0)
    levels: dict[Apply, int] = {}
    latest = dict.fromkeys(order, INFINITE)
    nearest = dict.fromkeys(order, INFINITE)  # level of the nearest client of the same kind
    for node in reversed(order):
        bound = latest[node]
        late = bound < INFINITE and (kinds[node] is None or nearest[node] == bound)
        levels[node] = bound if late else earliest[node]
        for producer in _producers(node, kinds):
            distance = gap(producer, node)
            latest[producer] = min(latest[producer], levels[node] - distance)
            if not distance:
                nearest[producer] = min(nearest[producer], levels[node])
    for node in order:
        if kinds[node] is not None and nearest[node] != levels[node]:
            bounds = (levels[p] + gap(p, node) for p in _producers(node, kinds))
            levels[node] = max(bounds, default=0)
    return levels


def bring_together(
    order: Sequence[Apply],
    kinds: Mapping[Apply, Kind],
    levels: dict[Apply, int],
    users: Callable[[Apply], Iterable[Apply]],
    wanted: Container[Kind],
    stays: Callable[[Apply], bool] = lambda node: False,
) -> None:
    """Move nodes of the ``wanted`` kinds to the level of a later client of their kind, with the
    nodes that depend on them, if these are few and no group is divided.

    Parameters
    ----------
    order : sequence of Apply
        Each node after those it depends on.
    kinds, levels : mapping
        As of ``assign_levels``; levels are changed in place.
    users : callable
        Node -> the nodes that take what it gives.
    wanted : container
    stays : callable
        Node -> whether it is not moved, unless it depends on one that is.
    """
    for node in order:
        kind = kinds[node]
        if kind not in wanted:
            continue
        for producer in _producers(node, kinds):
            movable = kinds[producer] == kind and levels[producer] < levels[node]
            if movable and not stays(producer):
                raised = _raised(producer, levels[node], kinds, levels, users)
                if raised is not None and node not in raised:
                    levels.update(raised)


def _raised(
    node: Apply,
    level: int,
    kinds: Mapping[Apply, Kind],
    levels: Mapping[Apply, int],
    users: Callable[[Apply], Iterable[Apply]],
) -> dict[Apply, int] | None:
    """Return the levels of the nodes to be raised together with one, so that no group is divided;
    None if there are many.
    """
    raised = {node: level}
    waiting = [node]
    while waiting:
        raising = waiting.pop()
        bounds = []
        for user in users(raising):
            apart = kinds[raising] is None or kinds[raising] != kinds[user]
            bounds.append((user, raised[raising] + apart))
        if kinds[raising] is not None:  # the group comes along
            bounds += [
                (producer, raised[raising])
                for producer in _producers(raising, kinds)
                if kinds[producer] == kinds[raising] and levels[producer] == levels[raising]
            ]
        for other, least in bounds:
            if raised.get(other, levels[other]) >= least:
                continue
            if len(raised) == MOST_RAISED:
                return None
            raised[other] = least
            waiting.append(other)
    return raised


def _producers(node: Apply, known: Mapping[Apply, Kind]) -> Iterator[Apply]:
    for x in node.inputs:
        if x.owner is not None and x.owner in known:
            yield x.owner


class DisjointSets(Generic[Item]):
    """A partition of values: a disjoint-set forest."""

    def __init__(self) -> None:
        self._parent: dict[Item, Item] = {}

    def find(self, x: Item) -> Item:
        """Return the representative of the set of ``x``."""
        root = x
        while (parent := self._parent.get(root, root)) != root:
            root = parent
        while x != root:
            self._parent[x], x = root, self._parent.get(x, root)
        return root

    def join(self, a: Item, b: Item) -> None:
        """Merge the sets of both."""
        a, b = self.find(a), self.find(b)
        if a != b:
            self._parent[b] = a


class NodeGroups(DisjointSets[Apply]):
    """Groups of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[tuple[int, Kind, Variable | None], Apply] = {}

    def join_users(self, level: int, kind: Kind, x: Variable, user: Apply) -> None:
        """Merge the groups of all clients of ``x`` with this level and kind."""
        self.join(self._first.setdefault((level, kind, x), user), user)

    def join_all(self, level: int, kind: Kind, node: Apply) -> None:
        """Merge the groups of all nodes with this level and kind."""
        self.join(self._first.setdefault((level, kind, None), node), node)

    def groups(self, nodes: Sequence[Apply]) -> list[list[Apply]]:
        """Return the groups of ``nodes``, each in the order given."""
        members: dict[Apply, list[Apply]] = {}
        for node in nodes:
            members.setdefault(self.find(node), []).append(node)
        return list(members.values())
