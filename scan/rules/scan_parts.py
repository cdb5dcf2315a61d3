"""Parts: a scan divided into its parts, which rules change and build again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record, replace
from symcomp.core.walk import ancestors, rebuild
from symcomp.rewrite.shapes import shapes_of
from symcomp.scan.layout import Arguments, Layout, flat_arguments
from symcomp.scan.lengths import is_length_of, shaped
from symcomp.scan.rows import FirstRows


@record(frozen=False)
class Traced:
    """A traced state: the variables that are its rows in the body, its initial rows, its next row,
    and its outputs.
    """

    lags: tuple[int, ...]
    rows: list[Any]
    start: Any
    new: Any
    outs: list[Any]

    @property
    def depth(self) -> int:
        """The number of initial rows."""
        return max(self.lags)


@record(frozen=False)
class Carried:
    """A carried value: its variable in the body, its initial value, its next value, and its
    outputs.
    """

    inner: Any
    start: Any
    new: Any
    outs: list[Any]


@record(frozen=False)
class Stacked:
    """A stacked output: the value of the body that is stacked, and its outputs."""

    new: Any
    outs: list[Any]


@record(frozen=False)
class SequenceRow:
    """A sequence and the variable that is its row in the body; also a captured value and its
    variable.
    """

    inner: Any
    x: Any


@record(frozen=False)
class ScanParts:
    """All parts of a scan node; change the lists and build the ``answer``."""

    op: Any
    n: Any
    traced: list[Traced]
    carried: list[Carried]
    stacked: list[Stacked]
    sequences: list[SequenceRow]
    captured: list[SequenceRow]
    condition: Any = None
    done: list[Any] = field(default_factory=list)
    outside: dict[Variable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Apply) -> ScanParts:
        """Divide a node into its parts."""
        op, layout = node.op, node.op.layout
        given, step = layout.arguments(node.inputs), layout.step(op.body.inputs)
        new, outs = layout.results(op.body.outputs), layout.results(node.outputs)
        return cls(
            op,
            given.n,
            [
                Traced(lags, list(rows), start, y, [out])
                for lags, rows, start, y, out in zip(
                    layout.lags, step.lagged, given.traced, new.traced, outs.traced, strict=True
                )
            ],
            [
                Carried(inner, start, y, [out])
                for inner, start, y, out in zip(
                    step.carried, given.carried, new.carried, outs.carried, strict=True
                )
            ],
            [Stacked(y, [out]) for y, out in zip(new.stacked, outs.stacked, strict=True)],
            [SequenceRow(r, x) for r, x in zip(step.rows, given.sequences, strict=True)],
            [SequenceRow(r, x) for r, x in zip(step.captured, given.captured, strict=True)],
            new.last,
            [] if outs.last is None else [outs.last],
        )

    @property
    def ends(self) -> list[Any]:
        """The traced states, carried values and stacked outputs, which all have a ``new``."""
        return [*self.traced, *self.carried, *self.stacked]

    @property
    def results(self) -> list[Any]:
        """The outputs of the body."""
        last = [] if self.condition is None else [self.condition]
        return [*(end.new for end in self.ends), *last]

    @property
    def varying(self) -> list[Any]:
        """The inputs of the body that change from step to step."""
        rows = [r for state in self.traced for r in state.rows]
        return [*rows, *(c.inner for c in self.carried), *(s.inner for s in self.sequences)]

    def used(self) -> set[Variable]:
        """Return the variables of the body that its outputs depend on."""
        return set(ancestors(self.results))

    def substitute(self, pairs: Mapping[Variable, Any]) -> None:
        """Replace variables in the outputs of the body."""
        fresh = iter(rebuild(self.results, pairs))
        for end in self.ends:
            end.new = next(fresh)
        if self.condition is not None:
            self.condition = next(fresh)

    def build(self) -> tuple[Any, list[Any]]:
        """Return the op and its inputs."""
        layout = Layout(
            tuple(state.lags for state in self.traced),
            len(self.carried),
            len(self.sequences),
            len(self.stacked),
            self.condition is not None,
        )
        inner = [*self.varying, *(c.inner for c in self.captured)]
        op = replace(self.op, body=ClosedGraph(inner, self.results), layout=layout)
        arguments = Arguments(
            self.n,
            [state.start for state in self.traced],
            [c.start for c in self.carried],
            [s.x for s in self.sequences],
            [c.x for c in self.captured],
        )
        return op, flat_arguments(arguments)

    def apply(self) -> list[Any]:
        """Build the node, and return its outputs in the order of ``ends``, the number of steps
        last.
        """
        op, inputs = self.build()
        outputs: list[Any] = op(*inputs)
        return outputs

    def answer(self, node: Apply) -> list[Any]:
        """Return the replacements of the outputs of ``node``; None for outputs without clients."""
        found = dict(self.outside)
        if self.results:
            outputs = self.apply()
            for end, y in zip(self.ends, outputs, strict=False):
                found.update((out, y) for out in end.outs)
            found.update((out, outputs[-1]) for out in self.done)
        return [found.get(out) for out in node.outputs]


def registers_of(state: Traced, count: int) -> list[Carried]:
    """Return the last rows of a state as carried values, the newest first, at least ``count`` of
    them.

    If the state has fewer initial rows, the first one also stands for the rows before it.
    """
    depth, known = state.depth, dict(zip(state.lags, state.rows, strict=True))
    kind = state.rows[0].type
    found: list[Carried] = []
    new = state.new
    for back in range(1, max(depth, count) + 1):
        inner = known.get(back)
        if inner is None:
            inner = kind(f"{state.rows[0]} ({back} back)")
        start = shaped(state.start[max(depth - back, 0)], kind.shape)
        found.append(Carried(inner, start, new, []))
        new = inner
    return found


def carry_states(parts: ScanParts) -> list[list[Carried]]:
    """Carry all traced states from step to step; return the last rows of each, newest first."""
    registers = [registers_of(state, state.depth) for state in parts.traced]
    parts.traced = []
    parts.carried = [*(c for group in registers for c in group), *parts.carried]
    return registers


def known_rows(row: SequenceRow, n: Any, graph: Any) -> Any:
    """Return the rows that are read of a sequence: the sequence itself, if it has no others."""
    length = shapes_of(graph).of(row.x)[0]
    steps = shapes_of(graph).intern(n)
    if length is steps or (isinstance(length, int) and length == steps):
        return row.x
    return row.x if is_length_of(n, row.x) else FirstRows(str(row.inner))(row.x, n)


def has_clients(graph: Any, outs: Sequence[Any]) -> bool:
    """Tell whether one of the outputs has clients."""
    return any(graph.clients.get(out) for out in outs)
