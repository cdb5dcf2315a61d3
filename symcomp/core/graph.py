"""FunctionGraph: a private, mutable copy of a graph that knows the clients of each variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from symcomp.core.flat import Flat, flatten, unflatten
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import GraphError, MissingInputError


class Replacement(NamedTuple):
    """A replacement of one variable by another, and its reason."""

    old: Variable
    new: Variable
    reason: str


class Watcher:
    """Base of observers that are notified of every change of a FunctionGraph."""

    def entered(self, node: Apply) -> None:
        """Note that ``node`` has entered the graph."""

    def changing(self, node: Apply) -> None:
        """Note that an input of ``node`` is about to be exchanged."""

    def left(self, node: Apply) -> None:
        """Note that ``node`` has left the graph."""


class FunctionGraph:
    """The graph from ``inputs`` to ``outputs``, with the clients of every variable.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
    clone : bool
        Work on a copy (the default); then ``memo`` maps each input and output given to its copy.

    Attributes
    ----------
    clients : dict of Variable to dict with keys (Apply or "output", int)
        The nodes that use the variable, and the positions of the inputs; ``("output", i)`` for
        output i.
    watcher : Watcher or None
        Notified of every change.
    facts : dict
        Results of analyses of the graph, by topic; not copied.
    history : list of Replacement or None
        Every replacement is appended, with the ``reason`` of the caller.

    Raises
    ------
    MissingInputError
        If an output depends on a variable that is neither an input nor a constant.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.core.graph import FunctionGraph
    >>> x = T.dvector("x")
    >>> graph = FunctionGraph([x], [T.exp(x) + T.exp(x)])
    >>> [str(node.op) for node in graph.toposort()]
    ['exp', 'exp', 'add']
    """

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], clone: bool = True
    ) -> None:
        self.memo: dict[Variable, Variable] = {}
        if clone:
            for variable in inputs:
                self.memo[variable] = variable.clone()
            copies = rebuild(outputs, self.memo, only_changed=False)
            self.memo.update(zip(outputs, copies, strict=True))
            inputs, outputs = [self.memo[v] for v in inputs], copies
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._allowed = set(self.inputs)
        self.clients: dict[Variable, dict[tuple[Any, int], None]] = {v: {} for v in self.inputs}
        self.nodes: dict[Apply, None] = {}
        self.watcher: Watcher | None = None
        self.facts: dict[str, Any] = {}
        self.history: list[Replacement] | None = None
        self.reason = ""
        self._order: list[Apply] | None = None  # topological order, cached until the next change
        for i, variable in enumerate(self.outputs):
            self._import(variable)
            self.clients[variable]["output", i] = None

    @property
    def apply_nodes(self) -> list[Apply]:
        """The nodes, in the order in which they entered."""
        return list(self.nodes)

    @property
    def variables(self) -> list[Variable]:
        """The variables in use, the inputs included."""
        return list(self.clients)

    def _import(self, variable: Variable) -> None:
        if variable in self.clients:
            return
        self._order = None
        for node in toposort([variable], self.clients):
            self.nodes[node] = None
            if self.watcher is not None:
                self.watcher.entered(node)
            for i, source in enumerate(node.inputs):
                self._admit(source)[node, i] = None
            for out in node.outputs:
                self.clients[out] = {}
        self._admit(variable)

    def _admit(self, variable: Variable) -> dict[tuple[Any, int], None]:
        uses = self.clients.get(variable)
        if uses is None:
            if not isinstance(variable, Constant) and variable.owner is None:
                raise MissingInputError(
                    f"the graph needs {variable} of type {variable.type}"
                    f"{f', made at {variable.source}' if variable.source else ''}, which is not "
                    "among its inputs: add it to the inputs, or give it a value through givens"
                )
            uses = self.clients[variable] = {}
        return uses

    def toposort(self) -> list[Apply]:
        """Return the nodes in topological order."""
        if self._order is None:
            self._order = toposort(self.outputs, self._allowed)
        return list(self._order)

    def change_input(self, client: Apply | str, position: int, new: Variable) -> None:
        """Make ``client`` (a node, or ``"output"``) use ``new`` as its input ``position``."""
        old = self.outputs[position] if isinstance(client, str) else client.inputs[position]
        if new is old:
            return
        if not old.type.is_super(new.type):
            raise GraphError(f"{new} of type {new.type} cannot stand for {old} of type {old.type}")
        self._import(new)
        self._order = None
        if isinstance(client, str):
            self.outputs[position] = new
        else:
            if self.watcher is not None:
                self.watcher.changing(client)
            client.inputs[position] = new
        self.clients[new][client, position] = None
        del self.clients[old][client, position]
        self._prune(old)

    def replace(self, old: Variable, new: Variable) -> None:
        """Use ``new`` wherever ``old`` is used; nodes left without clients are removed.

        Raises
        ------
        GraphError
            If the type of ``new`` does not fit, or ``new`` depends on ``old``.
        """
        if old is new or old not in self.clients:
            return
        if new not in self.clients and any(
            old in node.inputs for node in toposort([new], self.clients)
        ):
            raise GraphError(f"replacing {old} by {new}, which depends on it, would make a cycle")
        if self.history is not None:
            self.history.append(Replacement(old, new, self.reason))
        if old.name is not None and new.name is None:
            new.name = old.name
        for client, position in list(self.clients[old]):
            self.change_input(client, position, new)

    def replace_all(self, pairs: Iterable[tuple[Variable, Variable]]) -> None:
        """Do several replacements, one after the other."""
        for old, new in pairs:
            self.replace(old, new)

    def _prune(self, variable: Variable) -> None:
        pending = [variable]
        while pending:
            unused = pending.pop()
            if self.clients.get(unused) or unused in self._allowed:
                continue
            node = unused.owner
            if node is None:
                self.clients.pop(unused, None)
            elif node in self.nodes and not any(self.clients[out] for out in node.outputs):
                del self.nodes[node]
                if self.watcher is not None:
                    self.watcher.left(node)
                for out in node.outputs:
                    del self.clients[out]
                for i, source in enumerate(node.inputs):
                    del self.clients[source][node, i]
                    pending.append(source)

    def clone(self) -> FunctionGraph:
        """Return an independent copy."""
        return FunctionGraph(self.inputs, self.outputs)

    def __reduce__(self) -> Any:
        return (_from_flat, (flatten(self.inputs, self.outputs),))

    def __str__(self) -> str:
        return f"FunctionGraph({self.inputs} -> {self.outputs}, {len(self.nodes)} nodes)"


def _from_flat(flat: Flat) -> FunctionGraph:
    return FunctionGraph(*unflatten(flat), clone=False)
