"""Values that are cheaper to compute again than to store: between two loops over the same elements
lies no array of x - m where the second reads x, too, and m is one number for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant
from symcomp.core.record import record
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.formulas.blocks import Pattern
from symcomp.ops.indexing.index import Subtensor
from symcomp.rewrite.levels import Kind
from symcomp.rewrite.trace import Firing

CHEAP = frozenset(
    (
        "abs", "add", "cast", "eq", "ge", "gt", "identity", "le", "logical_and", "logical_or",
        "lt", "maximum", "minimum", "mul", "neg", "neq", "second", "sgn", "sqr", "sub", "switch",
        "true_div",
    )
)  # fmt: skip
# The most functions that are computed again for one value.
MOST_AGAIN = 12


@record
class Recipe:
    """How a value is computed from values that are stored.

    Attributes
    ----------
    nodes : tuple of Apply
        In topological order.
    leaves : tuple of variable
        The stored values with as many elements as the loop.
    """

    nodes: tuple[Apply, ...]
    leaves: tuple[Any, ...]


def compute_again(
    graph: FunctionGraph,
    kinds: dict[Apply, Kind],
    levels: dict[Apply, int],
    patterns: Mapping[Kind, Pattern],
    firings: list[Firing],
) -> None:
    """Let loops compute cheap values of earlier loops again, where these are then not stored.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    kinds, levels : dict
        As of ``assign_levels``; new nodes are added.
    patterns : mapping of Kind to tuple of bool
        Which axes have length 1 in the elements of a loop.
    firings : list of Firing
        New firings are appended.
    """
    repeats = _Repeats(graph, kinds, levels, patterns)
    for node in graph.toposort():
        again = repeats.add(node)
        if again:
            firings.append(Firing("fusion", "compute_again", node.source, str(node), again))


class _Repeats:
    """Values that loops compute again; it is given the nodes in their order."""

    def __init__(
        self,
        graph: FunctionGraph,
        kinds: dict[Apply, Kind],
        levels: dict[Apply, int],
        patterns: Mapping[Kind, Pattern],
    ) -> None:
        self.graph, self.kinds, self.levels, self.patterns = graph, kinds, levels, patterns
        self.recipes: dict[Any, Recipe] = {}
        self.stored: set[Any] = set()
        # Each variable with the kinds and levels of the loops that read it.
        self.read = {(x, kinds[n], levels[n]) for n in graph.nodes for x in n.inputs}
        self.made: dict[tuple[Apply, int], Apply] = {}

    def add(self, node: Apply) -> str:
        """Compute the value of a node again in later loops, if that pays; return its text, or
        nothing.
        """
        kind, z = self.kinds[node], node.outputs[0]
        if kind is None:
            return ""
        recipe = self._recipe(node)
        if recipe is not None:
            self.recipes[z] = recipe
        clients = [client for client, _ in self.graph.clients[z]]
        if not all(isinstance(c, Apply) and self.kinds[c] == kind for c in clients):
            self.stored.add(z)
            return ""
        later = {self.levels[c] for c in clients if isinstance(c, Apply)} - {self.levels[node]}
        if not later:
            return ""
        if recipe is None or not self._pays(z, recipe, kind, later):
            self.stored.add(z)
            return ""
        new = [self._repeat(z, recipe, level) for level in sorted(later)]
        return ", ".join(map(str, new))

    def _recipe(self, node: Apply) -> Recipe | None:
        """Return how a node's value is computed from stored ones; None if that is not cheap."""
        op, z, kind = node.op, node.outputs[0], self.kinds[node]
        if type(op) is not Elemwise or op.scalar.name not in CHEAP:
            return None
        if z.type.broadcastable != self.patterns[kind]:
            return None
        nodes: dict[Apply, None] = {}
        leaves: dict[Any, None] = {}
        for x in node.inputs:
            if isinstance(x, Constant) or x.type.broadcastable != z.type.broadcastable:
                continue  # one number for each row
            known = self.recipes.get(x)
            if x.owner is None or self.kinds[x.owner] != kind or x in self.stored:
                leaves[x] = None
            elif known is None:
                return None
            else:
                nodes |= dict.fromkeys(known.nodes)
                leaves |= dict.fromkeys(known.leaves)
        found = Recipe((*nodes, node), (*leaves,))
        return found if len(found.nodes) <= MOST_AGAIN else None

    def _pays(self, z: Any, recipe: Recipe, kind: Kind, levels: set[int]) -> bool:
        """Tell whether loops that compute a value again read no more than they did."""
        for level in levels:
            more = [x for x in recipe.leaves if (x, kind, level) not in self.read]
            if len(more) > 1 or any(not _is_array(x) or _size(x) > _size(z) for x in more):
                return False
        return True

    def _repeat(self, z: Any, recipe: Recipe, level: int) -> Apply:
        """Compute a value again at a level, for its clients there; return the node."""
        kind = self.kinds[z.owner]
        for node in recipe.nodes:
            if (node, level) not in self.made:
                inputs = [self._at(x, level) for x in node.inputs]
                new = Apply(node.op, inputs, [z.type for z in node.outputs], node.source)
                for x, old in zip(new.outputs, node.outputs, strict=True):
                    x.source = old.source
                self.made[node, level] = new
                self.kinds[new], self.levels[new] = kind, level
                self.read |= {(x, kind, level) for x in inputs}
        for client, i in [*self.graph.clients[z]]:
            if isinstance(client, Apply) and self.levels[client] == level:
                self.graph.change_input(client, i, self._at(z, level))
        return self.made[z.owner, level]

    def _at(self, x: Any, level: int) -> Any:
        node = self.made.get((x.owner, level))
        return x if node is None else node.outputs[0]


def _size(x: Any) -> int:
    return int(np.dtype(x.type.dtype).itemsize)


def _is_array(x: Any) -> bool:
    """Tell whether ``x`` is surely an array of its own, not elements of another one."""
    return x.owner is None or not (x.owner.op.view_map or isinstance(x.owner.op, Subtensor))
