"""An order of nodes that needs less memory at a time: list scheduling.

List scheduling: of the nodes whose inputs are computed, the one comes next that adds the fewest
bytes: its outputs minus the values that are not needed after it. Where this does not lower the
peak, the order stays as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import prod

from symcomp.core.node import Apply, Variable
from symcomp.core.tensor import TensorType
from symcomp.vm.order import aliased_inputs

# The length assumed of an axis whose length is not known when a function is compiled.
ASSUMED_LENGTH = 100


def assumed_bytes(variable: Variable, assumed_length: int = ASSUMED_LENGTH) -> int:
    """Return the bytes of a tensor whose unknown axes have ``assumed_length``; 0 for other values.
    """
    kind = variable.type
    if not isinstance(kind, TensorType):
        return 0
    lengths = (assumed_length if n is None else n for n in kind.shape)
    return prod(lengths) * kind.numpy_dtype.itemsize


def frugal_order(
    order: Sequence[Apply],
    outputs: Iterable[Variable],
    after: Mapping[Apply, Sequence[Apply]],
    assumed_length: int = ASSUMED_LENGTH,
    in_place: Collection[Variable] = (),
) -> Sequence[Apply]:
    """Return ``order``, or an order with a lower peak of memory.

    Parameters
    ----------
    order : sequence of Apply
        Nodes in topological order.
    outputs : iterable of Variable
        The variables that must be kept.
    after : mapping of Apply to sequence of Apply
        Additional nodes that a node must come after.
    assumed_length : int
        The length assumed for axes of unknown length.
    in_place : collection of Variable
        Values that take no new memory.
    """
    memory = _Memory(order, outputs, assumed_length, in_place)
    other = _list_schedule(order, after, memory)
    if memory.peak(other) < memory.peak(range(len(order))):
        return [order[i] for i in other]
    return order


class _Memory:
    """The memory that nodes, given by their positions, allocate and read."""

    def __init__(
        self,
        order: Sequence[Apply],
        outputs: Iterable[Variable],
        assumed_length: int,
        in_place: Collection[Variable],
    ) -> None:
        self.assumed_length = assumed_length
        self.size: list[int] = []
        self.made: list[int] = []  # bytes, for each node
        self.reads: list[list[int]] = []  # pieces, for each node
        piece_of: dict[Variable, int] = {}
        for node in order:
            found = {piece_of[x] for x in node.inputs if x in piece_of}
            before = len(self.size)
            for out in node.outputs:
                sources = aliased_inputs(out)
                if len(sources) == 1:
                    if sources[0] in piece_of:
                        piece_of[out] = piece_of[sources[0]]
                    continue
                piece_of[out] = len(self.size)
                self.size.append(0 if out in in_place else assumed_bytes(out, assumed_length))
            self.made.append(sum(self.size[before:]))
            self.reads.append(sorted(found))
        # How often each piece is read, and the sum of its readers: the last one, when one is left.
        self.readers = [0] * len(self.size)
        self.reader_sum = [0] * len(self.size)
        for i, pieces in enumerate(self.reads):
            for piece in pieces:
                self.readers[piece] += 1
                self.reader_sum[piece] += i
        for piece in {piece_of[out] for out in outputs if out in piece_of}:
            self.readers[piece] += 1
            self.reader_sum[piece] += len(order)

    def peak(self, positions: Iterable[int]) -> int:
        """Return the peak of allocated bytes, if the nodes run in this order."""
        left = self.readers.copy()
        now = most = 0
        for i in positions:
            now += self.made[i]
            most = max(most, now)
            for piece in self.reads[i]:
                left[piece] -= 1
                if not left[piece]:
                    now -= self.size[piece]
        return most


def _list_schedule(
    order: Sequence[Apply], after: Mapping[Apply, Sequence[Apply]], memory: _Memory
) -> list[int]:
    """Return the positions in ``order`` of the nodes, in the order that list scheduling finds."""
    waiting, followers = _dependencies(order, after)
    left, reader_sum = memory.readers.copy(), memory.reader_sum.copy()

    def added(i: int) -> int:
        freed = sum(memory.size[piece] for piece in memory.reads[i] if left[piece] == 1)
        return memory.made[i] - freed

    # An entry whose node has run, or has a newer entry with a lower number, is passed over.
    ready = [(added(i), i) for i, count in enumerate(waiting) if not count]
    heapify(ready)
    done = [False] * len(order)
    result: list[int] = []
    while ready:
        _, i = heappop(ready)
        if done[i]:
            continue
        done[i] = True
        result.append(i)
        for piece in memory.reads[i]:
            left[piece] -= 1
            reader_sum[piece] -= i
        for piece in memory.reads[i]:
            last = reader_sum[piece]
            if left[piece] == 1 and last < len(order) and not waiting[last]:
                heappush(ready, (added(last), last))
        for follower in followers[i]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready, (added(follower), follower))
    return result


def _dependencies(
    order: Sequence[Apply], after: Mapping[Apply, Sequence[Apply]]
) -> tuple[list[int], list[list[int]]]:
    """For each node how many it waits for, and which wait for it."""
    position = {node: i for i, node in enumerate(order)}
    waiting = [0] * len(order)
    followers: list[list[int]] = [[] for _ in order]
    for i, node in enumerate(order):
        earlier = {position[x.owner] for x in node.inputs if x.owner in position}
        earlier.update(position[other] for other in after.get(node, ()))
        waiting[i] = len(earlier)
        for j in sorted(earlier):
            followers[j].append(i)
    return waiting, followers
