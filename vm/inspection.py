"""Inspectors: what stands between a program and what computes its instructions, to look at values.

An inspected program decides the same as any other: order, copies, frees and the storage plan. Only
shared variables are not overwritten before the call has ended, as an inspector may refuse a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from symcomp.core.graph import FunctionGraph
from symcomp.core.record import replace
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

Work = Callable[[Sequence[Any]], list[Any]]
Selects = Callable[[frozenset[str]], bool]


class Machine(Protocol):
    """A machine that runs a program."""

    program: Program

    @property
    def kept(self) -> Any:
        """The values of the last run, where they are kept."""

    @property
    def failure(self) -> Any:
        """The description of the last run that failed."""

    def run(self, values: Sequence[Any]) -> list[Any]:
        """From the values of the inputs to those of the outputs."""

    def new_tally(self) -> Any:
        """Count the runs from now on; return the counts."""

    def free(self) -> None:
        """Drop the values kept."""


class Inspector:
    """Base of inspectors; does nothing."""

    def rewrite(self, graph: FunctionGraph, apply: Callable[[FunctionGraph], Any]) -> Any:
        """Rewrite ``graph`` by ``apply``, which changes it in place and returns its report."""
        return apply(graph)

    def selects(self, tags: frozenset[str]) -> bool:
        """Tell whether a rewrite with these tags may be applied to the steps of loops and to ops of
        graphs, which get rewrites of their own.
        """
        return True

    def begin(self, graph: FunctionGraph, values: Sequence[Any], inner: bool) -> None:
        """Start a run on these values of the graph's inputs; ``inner``: a step of a loop."""

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        """Do one CALL of a node: return its results, which ``work(values)`` gives.

        ``position`` is that of the instruction in its program.
        ``values`` are those of ``step.arguments``; None where there is no array to write into.
        ``work`` may be called several times, on other values too.
        """
        return work(values)


class Several(Inspector):
    """Inspectors one around the other, the first outermost.

    Parameters
    ----------
    inspectors : sequence of Inspector
    selects : callable, optional
        Tags of a rewrite -> whether it may be applied inside ops.
    """

    def __init__(self, inspectors: Sequence[Inspector], selects: Selects | None = None) -> None:
        self._inspectors = tuple(inspectors)
        self._selects = selects

    def holds(self, inspector: Inspector) -> bool:
        """True if ``inspector`` is one of these, or of those in one of these."""
        return any(
            one is inspector or (isinstance(one, Several) and one.holds(inspector))
            for one in self._inspectors
        )

    def selects(self, tags: frozenset[str]) -> bool:
        return (self._selects is None or self._selects(tags)) and all(
            inspector.selects(tags) for inspector in self._inspectors
        )

    def rewrite(self, graph: FunctionGraph, apply: Callable[[FunctionGraph], Any]) -> Any:
        for inspector in reversed(self._inspectors):
            apply = _rewriting(inspector, apply)
        return apply(graph)

    def begin(self, graph: FunctionGraph, values: Sequence[Any], inner: bool) -> None:
        for inspector in self._inspectors:
            inspector.begin(graph, values, inner)

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        for inspector in reversed(self._inspectors):
            work = _calling(inspector, position, step, work)
        return work(values)


def _rewriting(inspector: Inspector, apply: Callable[[FunctionGraph], Any]) -> Any:
    return lambda graph: inspector.rewrite(graph, apply)


def _calling(inspector: Inspector, position: int, step: Instruction, work: Work) -> Work:
    return lambda values: list(inspector.call(position, step, values, work))


class InspectedMachine:
    """A machine whose inspector sees the inputs of every run first.

    Parameters
    ----------
    machine : Machine
        Its program is inspected (``inspected``, or the machine does it itself).
    inspector : Inspector
    graph : FunctionGraph
        What the program computes.
    inner : bool
        Whether it runs the steps of a loop.
    """

    def __init__(
        self, machine: Machine, inspector: Inspector, graph: FunctionGraph, inner: bool = False
    ) -> None:
        self._machine, self._inspector = machine, inspector
        self._graph, self._inner = graph, inner
        self.program = machine.program

    def run(self, values: Sequence[Any]) -> list[Any]:
        """From the values of the inputs to those of the outputs."""
        self._inspector.begin(self._graph, values[: len(self._graph.inputs)], self._inner)
        return self._machine.run(values)

    def new_tally(self) -> Any:
        """Count the runs from now on, the inspector's work included; return the counts."""
        return self._machine.new_tally()

    @property
    def kept(self) -> Any:
        """The values of the last run, where they are kept."""
        return self._machine.kept

    @property
    def failure(self) -> Any:
        """The description of the last run that failed."""
        return self._machine.failure

    def free(self) -> None:
        """Drop the values kept."""
        self._machine.free()


def is_inspected(step: Instruction) -> bool:
    """Tell whether an instruction computes a node, and so is inspected."""
    return step.opcode is Opcode.CALL and step.node is not None and not step.makes_room


def inspected(program: Program, inspector: Inspector) -> Program:
    """Return the same program with every node computed through the inspector."""
    code = [
        replace(step, compute=_through(i, step, inspector)) if is_inspected(step) else step
        for i, step in enumerate(program.instructions)
    ]
    return replace(program, instructions=code)


def _through(position: int, step: Instruction, inspector: Inspector) -> Callable[..., Any]:
    compute, several = step.compute, step.several
    assert compute is not None

    def work(values: Sequence[Any]) -> list[Any]:
        result = compute(*values)
        return list(result) if several else [result]

    def call(*values: Any) -> Any:
        results = inspector.call(position, step, values, work)
        return tuple(results) if several else results[0]

    return call
