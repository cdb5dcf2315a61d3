"""Running a scan: the body as a program, compiled once, and the arrays that its rows go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.spans import span
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import Loop, NativeMachine
from symcomp.cvm.prepare import native_machine
from symcomp.errors import ShapeError
from symcomp.rewrite.phases import PHASES, rewrite
from symcomp.rewrite.registry import extended
from symcomp.rewrite.trace import Trace
from symcomp.scan.layout import Layout
from symcomp.vm.guard import Binder
from symcomp.vm.inspection import InspectedMachine, Inspector, Machine, Several, inspected
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine

# A loop that may stop early starts with memory for so many steps.
FIRST_ROWS = 64


def by_fast_run(tags: frozenset[str]) -> bool:
    """All rewrites that are safe."""
    return "fast_run" in tags


def by_fast_compile(tags: frozenset[str]) -> bool:
    """The cheap rewrites."""
    return "fast_compile" in tags


def machine_of(
    body: ClosedGraph,
    selects: Callable[[frozenset[str]], bool],
    inspector: Inspector | None = None,
) -> Machine:
    """The machine that runs one step, its graph rewritten.

    Parameters
    ----------
    body : ClosedGraph
    selects : callable
        Tags of a rewrite -> whether it is applied. That of a mode with an inspector, which the loop
        was given: the inspector sees the steps in functions of all modes.
    inspector : Inspector, optional
        Of the function.
    """
    own = getattr(getattr(selects, "__self__", None), "inspector", None)
    if own is not None:
        around = Several([] if inspector is None else [inspector])
        inspector = around if around.holds(own) else Several([around, own])
    with span("body of a loop"):
        graph = FunctionGraph(body.inputs, body.outputs)

        def apply(one: FunctionGraph) -> Trace:
            def allowed(tags: frozenset[str]) -> bool:
                return selects(tags) and (inspector is None or inspector.selects(tags))

            return _rewrite(one, allowed)

        # What a step gives is copied into its row, or lives until the next step: nothing outlives
        # it.
        borrowed = range(len(graph.outputs))
        native = config.linker.startswith("c")
        if inspector is None:
            apply(graph)
            program = lower(graph, borrowed=borrowed, bind=Binder(config.nan_guard))
            return native_machine(program) if native else PythonMachine(program)
        inspector.rewrite(graph, apply)
        program = lower(graph, borrowed=borrowed, bind=Binder(config.nan_guard, inspector))
        machine: Machine
        if native:
            machine = native_machine(program, inspector=inspector)
        else:
            machine = PythonMachine(inspected(program, inspector))
        return InspectedMachine(machine, inspector, graph, inner=True)


def _rewrite(graph: FunctionGraph, selects: Callable[[frozenset[str]], bool]) -> Trace:
    return rewrite(graph, selects, config.on_opt_error, extended(PHASES))


class StepFunction:
    """One step as a function of values, to look at: it takes the inputs of the body.

    Attributes
    ----------
    fgraph : FunctionGraph
        The body as it is rewritten.

    Parameters
    ----------
    body : ClosedGraph
    selects : callable
        As of ``Scan``.
    """

    def __init__(self, body: ClosedGraph, selects: Callable[[frozenset[str]], bool]) -> None:
        self.fgraph = FunctionGraph(body.inputs, body.outputs)
        _rewrite(self.fgraph, selects)
        self._machine = PythonMachine(lower(self.fgraph, bind=Binder(config.nan_guard)))

    @property
    def maker(self) -> StepFunction:
        """Itself: as of other functions, ``fn.maker.fgraph`` is the graph."""
        return self

    def __call__(self, *values: Any) -> list[Any]:
        taken = self.fgraph.inputs
        if len(values) != len(taken):
            raise TypeError(f"a step takes {len(taken)} values, got {len(values)}")
        given = [x.type.filter(value) for x, value in zip(taken, values, strict=True)]
        return list(self._machine.run(given))


class Rows:
    """An array that is written row by row.

    Parameters
    ----------
    name : str
        For messages.
    capacity : int
        How many rows there is memory for at first.
    row_shape : tuple of int or None
        None: that of the first row written.
    """

    def __init__(
        self, name: str, dtype: Any, capacity: int, row_shape: tuple[int, ...] | None
    ) -> None:
        self._name, self._dtype, self._capacity = name, dtype, capacity
        self.array: Any = None
        if row_shape is not None:
            self.array = np.empty((capacity, *row_shape), dtype)

    def write(self, place: int, value: Any) -> None:
        """Set a row; the first one says what shape all have.

        Raises
        ------
        ShapeError
            If the row has another shape.
        """
        array = self.array
        if array is None:
            array = self.array = np.empty((self._capacity, *value.shape), self._dtype)
        if value.shape != array.shape[1:]:
            raise ShapeError(
                f"scan: {self._name} has shape {value.shape} in this step, and had "
                f"{array.shape[1:]} before: all steps must give the same shape"
            )
        if place >= len(array):
            grown = np.empty((2 * len(array) + 1, *array.shape[1:]), self._dtype)
            grown[: len(array)] = array
            array = self.array = grown
        array[place] = value

    def first(self, length: int, row_shape: Sequence[int] | None) -> Any:
        """The first rows; ``row_shape`` is used where none was written."""
        if self.array is None:
            return np.empty((length, *(row_shape or ())), self._dtype)
        return self.array if length == len(self.array) else self.array[:length].copy()


@dataclass
class Steps:
    """What the steps of a loop read and write.

    Attributes
    ----------
    layout : Layout
    states : list of Rows
        Of the traced states, with their first rows.
    carried : list
        Changed by every step.
    sequences, captured : list
    stacks : list of Rows
    """

    layout: Layout
    states: list[Rows]
    carried: list[Any]
    sequences: list[Any]
    captured: list[Any]
    stacks: list[Rows]

    def run(self, machine: Machine, most: int, name: str) -> int:
        """Do the steps; return how many were done."""
        loop: Loop | _PythonLoop
        if isinstance(machine, NativeMachine):
            loop = self._native(machine)
        else:
            loop = _PythonLoop(self, machine)
        try:
            return loop.run(most)
        except Exception as problem:
            problem.add_note(f"This was in step {loop.done} (of at most {most}) of {name}")
            raise

    def reads(self) -> list[tuple[int, int]]:
        """For each row of a state that step t reads, its number and s: it is row t + s."""
        states = zip(self.layout.depths, self.layout.lags, strict=True)
        return [(i, depth - lag) for i, (depth, lags) in enumerate(states) for lag in lags]

    def _native(self, machine: NativeMachine) -> Loop:
        return Loop(
            machine,
            self.states,
            self.layout.depths,
            self.reads(),
            self.carried,
            self.sequences,
            self.captured,
            self.stacks,
            self.layout.until,
        )


class _PythonLoop:
    """The steps, one by one: the specification of ``Loop``."""

    def __init__(self, steps: Steps, machine: Machine) -> None:
        self.done = 0
        self._steps, self._machine = steps, machine

    def run(self, most: int) -> int:
        steps, run = self._steps, self._machine.run
        reads = [(steps.states[i], shift) for i, shift in steps.reads()]
        writes = [*zip(steps.states, steps.layout.depths, strict=True)]
        carried, stacks = steps.carried, steps.stacks
        first_stacked = len(writes) + len(carried)
        more = True
        while more and self.done < most:
            t = self.done
            values = [state.array[t + shift, ...] for state, shift in reads]
            values += carried
            values += [x[t, ...] for x in steps.sequences]
            values += steps.captured
            new = run(values)
            for (state, depth), value in zip(writes, new, strict=False):
                state.write(depth + t, value)
            carried[:] = new[len(writes) : first_stacked]
            for rows, value in zip(stacks, new[first_stacked:], strict=False):
                rows.write(t, value)
            more = not (steps.layout.until and new[-1])
            self.done += 1
        return self.done


def copy_of(value: Any, kind: Any) -> Any:
    """A value that shares nothing with what was given to the loop."""
    return np.array(value) if isinstance(kind, TensorType) else kind.copy_value(value)
