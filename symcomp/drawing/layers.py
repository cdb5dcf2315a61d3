"""A layered layout: every edge goes down, few edges cross, and nodes are near those they belong to.

After K. Sugiyama, S. Tagawa and M. Toda, Methods for Visual Understanding of Hierarchical System
Structures (1981): ranks, orders within ranks by barycentres, then positions. Positions within a
rank are the best ones for that order, found by pooling neighbours that would overlap.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

# Distances in pixels.
ROW, GAP, MARGIN = 74.0, 22.0, 20.0
# Sweeps over the ranks; fewer where there are very many nodes.
SWEEPS, MANY = 12, 4000
# Longer edges are drawn straight, without a place of their own in each rank.
LONGEST = 40


class LayeredDrawing(NamedTuple):
    """The positions of all boxes and edges.

    Attributes
    ----------
    centres : list of (float, float)
        The centres of the nodes.
    paths : list of list of (float, float)
        The points that each edge goes through.
    width, height : float
    """

    centres: list[tuple[float, float]]
    paths: list[list[tuple[float, float]]]
    width: float
    height: float


def layered(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> LayeredDrawing:
    """Place nodes of these widths.

    Parameters
    ----------
    widths : sequence of float
        The widths of the nodes' boxes.
    edges : sequence of (int, int)
        The source and the target of each edge.

    Raises
    ------
    ValueError
        If the edges make a cycle.
    """
    rank = ranks(len(widths), edges)
    placed = _Ranks(widths, rank, edges)
    sweeps = SWEEPS if len(placed.widths) <= MANY else 4
    placed.order(sweeps)
    x = placed.positions(sweeps)
    left = min((x[v] - w / 2 for v, w in enumerate(placed.widths)), default=0.0) - MARGIN
    right = max((x[v] + w / 2 for v, w in enumerate(placed.widths)), default=0.0) + MARGIN
    points = [(x[v] - left, MARGIN + ROW * (r + 0.5)) for v, r in enumerate(placed.rank)]
    paths = [[points[v] for v in chain] for chain in placed.chains]
    height = 2 * MARGIN + ROW * (max(placed.rank, default=-1) + 1)
    return LayeredDrawing(points[: len(widths)], paths, right - left, height)


def ranks(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the length of the longest path from a source to each node; sources are moved right
    above their first client.
    """
    following: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    for source, target in edges:
        following[source].append(target)
        waiting[target] += 1
    sources = [v for v in range(n) if not waiting[v]]
    rank, ready, done = [0] * n, deque(sources), 0
    while ready:
        v = ready.popleft()
        done += 1
        for w in following[v]:
            rank[w] = max(rank[w], rank[v] + 1)
            waiting[w] -= 1
            if not waiting[w]:
                ready.append(w)
    if done < n:
        raise ValueError(f"{n - done} of {n} nodes are in cycles, or after them: nothing to layer")
    for v in sources:
        rank[v] = min((rank[w] for w in following[v]), default=1) - 1
    return rank


class _Ranks:
    """Nodes by ranks, with dummy nodes where long edges pass."""

    def __init__(
        self, widths: Sequence[float], rank: Sequence[int], edges: Sequence[tuple[int, int]]
    ) -> None:
        self.widths, self.rank = list(widths), list(rank)
        self.above: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)
        self.chains = [self._chain(source, target) for source, target in edges]
        self.rows: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for v, r in enumerate(self.rank):
            self.rows[r].append(v)

    def _chain(self, source: int, target: int) -> list[int]:
        """Return the nodes that an edge passes, both ends included."""
        first, last = self.rank[source], self.rank[target]
        chain = [source]
        if last - first <= LONGEST:
            for r in range(first + 1, last):
                self.widths.append(0.0)
                self.rank.append(r)
                chain.append(len(self.rank) - 1)
        chain.append(target)
        for v, w in zip(chain, chain[1:], strict=False):
            self.below[v].append(w)
            self.above[w].append(v)
        return chain

    def order(self, sweeps: int) -> None:
        """Sort the nodes of each rank to reduce crossings."""
        place = {v: float(i) for row in self.rows for i, v in enumerate(row)}
        for sweep in range(sweeps):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                wanted = {v: _mean([place[w] for w in near[v]], place[v]) for v in row}
                row.sort(key=wanted.__getitem__)
                for i, v in enumerate(row):
                    place[v] = float(i)

    def positions(self, sweeps: int) -> list[float]:
        """Return the horizontal centre of each node."""
        x = [0.0] * len(self.rank)
        for row in self.rows:
            at = 0.0
            for v in row:
                x[v] = at + self.widths[v] / 2
                at += self.widths[v] + GAP
            for v in row:
                x[v] -= at / 2
        for sweep in range(sweeps):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                wanted = [_mean([x[w] for w in near[v]], x[v]) for v in row]
                self._settle(row, wanted, x)
        return x

    def _settle(self, row: Sequence[int], wanted: Sequence[float], x: list[float]) -> None:
        """Move nodes of a row to the least-squares positions that keep their order and distances.
        """
        offsets, at = [], 0.0
        for i, v in enumerate(row):
            if i:
                at += (self.widths[row[i - 1]] + self.widths[v]) / 2 + GAP
            offsets.append(at)
        # Groups of adjacent nodes at their least distance: (sum of wanted positions, number of
        # nodes).
        groups: list[tuple[float, int]] = []
        for wish, offset in zip(wanted, offsets, strict=True):
            total, count = wish - offset, 1
            while groups and groups[-1][0] / groups[-1][1] > total / count:
                before = groups.pop()
                total, count = total + before[0], count + before[1]
            groups.append((total, count))
        i = 0
        for total, count in groups:
            for _ in range(count):
                x[row[i]] = total / count + offsets[i]
                i += 1


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
