"""ClosedGraph: an immutable graph that compares by structure; the field of ops that contain a
graph.

A ClosedGraph reads nothing but its inputs, shares its nodes with no other graph, and equals every
graph that computes the same in the same way: so ops that contain equal graphs are equal, and merge.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

from symcomp.core.evaluate import evaluator
from symcomp.core.flat import Flat, flatten, unflatten
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import graph_inputs, rebuild, toposort
from symcomp.errors import MissingInputError, UnusedInputError


class ClosedGraph:
    """The function from ``inputs`` to ``outputs``; immutable.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
        They are copied: names and source lines are kept, but an input stands for nothing but
        itself. An input that no output needs is fine.

    Raises
    ------
    MissingInputError
        If an output depends on a variable that is neither an input nor a constant.
    UnusedInputError
        If an input is given twice.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.core.closed import ClosedGraph
    >>> x, y = T.dvectors("x", "y")
    >>> ClosedGraph([x], [T.exp(x)]) == ClosedGraph([y], [T.exp(y)])
    True
    """

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        known = set(inputs)
        for x in inputs:
            if inputs.count(x) > 1:
                raise UnusedInputError(f"the input {x} is given more than once")
        for x in graph_inputs(outputs, known):
            if x not in known and not isinstance(x, Constant):
                raise MissingInputError(
                    f"an output needs {x} of type {x.type}"
                    f"{f', made at {x.source}' if x.source else ''}, which is not among the "
                    "inputs: add it to them"
                )
        leaves = [x.type.variable_class(x.type, name=x.name, source=x.source) for x in inputs]
        self.inputs: tuple[Any, ...] = tuple(leaves)
        pairs = dict(zip(inputs, leaves, strict=True))
        self.outputs: tuple[Any, ...] = tuple(rebuild(outputs, pairs, only_changed=False))

    def __call__(self, values: Sequence[Variable]) -> list[Any]:
        """Return the outputs as expressions of ``values``; all nodes are new."""
        pairs = dict(zip(self.inputs, values, strict=True))
        return rebuild(self.outputs, pairs, strict=False, only_changed=False)

    @cached_property
    def run(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Function from the values of the inputs to the values of the outputs; runs node by node.
        """
        return evaluator(self.inputs, self.outputs)

    @cached_property
    def connection(self) -> list[list[bool]]:
        """``[i][j]``: True if the value of output j depends on input i."""
        order = toposort(self.outputs)
        patterns = [node.op.connection_pattern(node) for node in order]
        columns = []
        for out in self.outputs:
            live = {out}
            for node, pattern in zip(reversed(order), reversed(patterns), strict=True):
                for x, row in zip(node.inputs, pattern, strict=True):
                    if any(on and y in live for on, y in zip(row, node.outputs, strict=True)):
                        live.add(x)
            columns.append(live)
        return [[x in live for live in columns] for x in self.inputs]

    def undefined(self, forward: bool) -> list[list[str]]:
        """Return why outputs have no derivative: ``[i][j]`` is the first reason on the way from
        input i to output j, empty if there is a derivative; an empty list if all derivatives exist.
        See ``Op.undefined_derivatives``.
        """
        if forward not in self._undefined:
            self._undefined[forward] = self._find_undefined(forward)
        return self._undefined[forward]

    @cached_property
    def _undefined(self) -> dict[bool, list[list[str]]]:
        return {}

    def _find_undefined(self, forward: bool) -> list[list[str]]:
        order = toposort(self.outputs)
        reasons = {node: _undefined_of(node, forward) for node in order}
        if not any(reasons.values()):
            return []
        connections = {node: node.op.connection_pattern(node) for node in order}
        columns = []
        for out in self.outputs:
            live: set[Variable] = {out}
            lost: dict[Variable, str] = {}
            for node in reversed(order):
                for i, x in enumerate(node.inputs):
                    reached = [
                        y for y, on in zip(node.outputs, connections[node][i], strict=True) if on
                    ]
                    if any(y in live for y in reached):
                        live.add(x)
                    found = [lost[y] for y in reached if y in lost]
                    if reasons[node]:
                        rows = zip(node.outputs, reasons[node][i], strict=True)
                        found += [why for y, why in rows if why and y in live]
                    if found:
                        lost.setdefault(x, found[0])
            columns.append(lost)
        return [[lost.get(x, "") for lost in columns] for x in self.inputs]

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """Return a key that is equal for equal graphs: the nodes in order, their inputs by number.
        """
        number: dict[Variable, int] = {x: i for i, x in enumerate(self.inputs)}
        first_of: dict[Any, int] = {}
        rows: list[Any] = []

        def place(key: Any) -> int:
            if key not in first_of:
                first_of[key] = len(self.inputs) + len(first_of)
                rows.append(key)
            return first_of[key]

        for x in graph_inputs(self.outputs):
            if x not in number:
                assert isinstance(x, Constant)
                signature = x.signature()
                number[x] = place(signature if isinstance(signature, Hashable) else id(x))
        for node in toposort(self.outputs):
            sources = tuple(number[x] for x in node.inputs)
            for i, out in enumerate(node.outputs):
                number[out] = place((node.op, sources, i, out.type))
        types = tuple(x.type for x in self.inputs)
        return (types, tuple(rows), tuple(number[y] for y in self.outputs))

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ClosedGraph):
            return NotImplemented
        return self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return (_from_flat, (flatten(self.inputs, self.outputs),))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"({inputs}) -> ({outputs})"


def _undefined_of(node: Apply, forward: bool) -> Sequence[Sequence[str]]:
    try:
        return node.op.undefined_derivatives(node, forward)  # type: ignore[no-any-return]
    except NotImplementedError:  # the op's rule raises its own error when it is called
        return ()


def _from_flat(flat: Flat) -> ClosedGraph:
    return ClosedGraph(*unflatten(flat))
