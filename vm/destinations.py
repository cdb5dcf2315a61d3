"""Parts of a join that are computed where they end up: in one array, made before them.

The array is reserved, each part that can be is written into a view of it, and the join then finds
these parts in their places and copies only the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.control.regions import Placement
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import SYMBOL, Slice
from symcomp.ops.shapes.join import Join
from symcomp.rewrite.shapes import Shapes
from symcomp.vm.frugal import assumed_bytes
from symcomp.vm.guard import Binder
from symcomp.vm.order import destroyed_inputs
from symcomp.vm.reserve import Measure, Reserve

# Where it is known that a join has fewer bytes, copying them costs less than finding their places.
FEWEST_BYTES = 4096


@record
class Destination:
    """The memory reserved for the node of a join.

    Attributes
    ----------
    reserved : Apply
        Of ``Reserve``.
    views : dict of Apply to Apply
        For each node that computes a part in its place, the one that makes the view of it.
    """

    reserved: Apply
    views: Mapping[Apply, Apply]


class Search:
    """Finds the joins whose parts can be computed in their places.

    Parameters
    ----------
    graph : FunctionGraph
    order : sequence of Apply
        Nodes of the graph.
    start : int
        Where in the order the tail begins, which nodes do not move into; -1 if there is none.
    after : mapping of Apply to collection of Apply
        What a node must come after, besides what computes its inputs.
    regions : Placement
    shapes : Shapes
        Facts about lengths.
    bind : Binder
        Gives what computes a node.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        order: Sequence[Apply],
        start: int,
        after: Mapping[Apply, Collection[Apply]],
        regions: Placement,
        shapes: Shapes,
        bind: Binder,
    ) -> None:
        self._graph, self._order, self._start = graph, order, start
        self._regions, self._shapes, self._bind = regions, shapes, bind
        self._shown = set(graph.outputs)
        self._joins = [node for node in order if type(node.op) is Join]
        if not self._joins:
            return
        self._position = {node: i for i, node in enumerate(order)}
        # For each node, the first one that must come after it, as it may overwrite an operand.
        self._limit: dict[Apply, int] = {}
        for later, nodes in after.items():
            for node in nodes:
                self._limit[node] = min(self._limit.get(node, len(order)), self._position[later])

    def destinations(self) -> tuple[list[Apply], dict[Apply, Destination]]:
        """Return the order, with such parts directly before their joins, and the memory of these.
        """
        found = {}
        for node in self._joins:
            made = self._destination(node) if self._bind.into(node) is not None else None
            if made is not None:
                found[node] = made
        moved = {part for made in found.values() for part in made.views}
        result: list[Apply] = []
        for node in self._order:
            if node in found:
                result.extend(found[node].views)
            if node not in moved:
                result.append(node)
        return result, found

    def _destination(self, join: Apply) -> Destination | None:
        (z,) = join.outputs
        if self._known_bytes(z) < FEWEST_BYTES:
            return None
        makers = dict.fromkeys(self._makers(join))
        last = end = self._position[join]
        while last and self._order[last - 1] in makers:
            last -= 1
        makers = {node: None for node in makers if self._may_wait(node, end, last)}
        if not makers:
            return None
        sources: dict[Variable, int] = {}
        for x in join.inputs:
            for held in x.owner.inputs if x.owner in makers else [x]:
                if isinstance(held.type, TensorType):
                    sources.setdefault(held, len(sources))
        places: dict[Any, tuple[int, int]] = {}
        for source, number in sources.items():
            for axis, length in enumerate(self._shapes.of(source)):
                places.setdefault(length, (number, axis))
        parts = [self._measure(x, places) for x in join.inputs]
        if any(part is None for part in parts):
            return None
        op = Reserve(join.op.axis, z.type, tuple(parts))  # type: ignore[arg-type]
        reserved = op.make_node(*sources)
        return Destination(reserved, _views(reserved, join, makers))

    def _known_bytes(self, z: Any) -> float:
        lengths = self._shapes.of(z)
        known = all(isinstance(n, int) for n in lengths)
        return prod(lengths) * z.type.numpy_dtype.itemsize if known else np.inf

    def _makers(self, join: Apply) -> list[Apply]:
        """Return the nodes that compute parts, for this join alone, and can write them into an
        array.
        """
        found = []
        for x in join.inputs:
            node = x.owner
            if (
                node in self._position
                and type(node.op) is not Join
                and len(node.outputs) == 1
                and not node.op.view_map
                and not destroyed_inputs(node)
                and self._regions[node] == self._regions[join]
                and len(self._regions[node]) == 1
                and len(self._graph.clients[x]) == 1
                and x not in self._shown
                and self._bind.into(node) is not None
            ):
                found.append(node)
        return found

    def _may_wait(self, node: Apply, end: int, last: int) -> bool:
        """Tell whether the node may run directly before the join, which is at ``end``: none of its
        operands is overwritten before, or kept much longer only for it. From ``last`` on there are
        only nodes that were checked already.
        """
        here = self._position[node]
        if self._limit.get(node, len(self._order)) < end or here < self._start <= end:
            return False
        if here + 1 >= last:
            return True
        dying = sum(assumed_bytes(x) for x in set(node.inputs) if self._dies_at(x, here))
        return dying <= assumed_bytes(node.outputs[0])

    def _dies_at(self, x: Variable, position: int) -> bool:
        users = (self._position.get(client, -1) for client, _ in self._graph.clients[x])
        return x.owner is not None and x not in self._shown and max(users) <= position

    def _measure(self, x: Any, places: Mapping[Any, tuple[int, int]]) -> tuple[Measure, ...] | None:
        """Return the lengths of a part, by the places where they are found; None if one is not."""
        found = [n if isinstance(n, int) else places.get(n) for n in self._shapes.of(x)]
        return None if None in found else tuple(found)  # type: ignore[arg-type]


def _views(reserved: Apply, join: Apply, makers: Collection[Apply]) -> dict[Apply, Apply]:
    """Return, for each maker of a part, the node that slices its place out of the reserved array.
    """
    array, *bounds = reserved.outputs
    before = (Slice(),) * join.op.axis
    cut = Subtensor((*before, Slice(SYMBOL, SYMBOL)))
    return {
        x.owner: cut.make_node(array, bounds[k], bounds[k + 1])
        for k, x in enumerate(join.inputs)
        if x.owner in makers
    }
