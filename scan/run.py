"""Run a scan step by step, writing its rows to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.executable import Executable, compile_graph
from symcomp.cvm.machine import ObjectLoop
from symcomp.rewrite.phases import PHASES, rewrite
from symcomp.rewrite.registry import extended
from symcomp.scan.layout import Layout
from symcomp.vm.policy import Policy
from symcomp.vm.written_rows import WrittenRows, written_rows

# Rows allocated initially for a loop that may stop early.
FIRST_ROWS = 64


def by_fast_run(tags: frozenset[str]) -> bool:
    """Select all safe rewrites."""
    return "fast_run" in tags


def by_fast_compile(tags: frozenset[str]) -> bool:
    """Select the cheap rewrites."""
    return "fast_compile" in tags


def by_nothing(tags: frozenset[str]) -> bool:
    """Select no rewrites, for a body that has been rewritten."""
    return False


class StepFunction:
    """One step as a function of values, for inspection: its arguments are the inputs of the body.

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
        rewrite(self.fgraph, selects, config.on_opt_error, extended(PHASES))
        self._run = compile_graph(self.fgraph, Policy(native=False)).run

    @property
    def maker(self) -> StepFunction:
        """The function itself: as with other functions, ``fn.maker.fgraph`` is the graph."""
        return self

    def __call__(self, *values: Any) -> list[Any]:
        taken = self.fgraph.inputs
        if len(values) != len(taken):
            raise TypeError(f"a step takes {len(taken)} values, got {len(values)}")
        given = [x.type.filter(value) for x, value in zip(taken, values, strict=True)]
        return list(self._run(given))


@record(frozen=False)
class LoopArrays:
    """The arrays that the steps of a loop read and write.

    Attributes
    ----------
    layout : Layout
    states : list of WrittenRows
        The arrays of the traced states, with their initial rows.
    carried : list
        Changed by every step.
    sequences, captured : list
    stacks : list of WrittenRows
    """

    layout: Layout
    states: list[WrittenRows]
    carried: list[Any]
    sequences: list[Any]
    captured: list[Any]
    stacks: list[WrittenRows]

    def run(self, step: Callable[[Sequence[Any]], list[Any]], most: int, name: str) -> int:
        """Run the steps by calling ``step``; return how many were done."""
        loop = _Loop(self, step)
        try:
            return loop.run(most)
        except Exception as problem:
            problem.add_note(f"This was in step {loop.done} (of at most {most}) of {name}")
            raise

    def reads(self) -> list[tuple[int, int]]:
        """Return, for each row of a state that step t reads, its number and s: it is row t + s."""
        states = zip(self.layout.depths, self.layout.lags, strict=True)
        return [(i, depth - lag) for i, (depth, lags) in enumerate(states) for lag in lags]


class _Loop:
    """Runs the steps one by one: the specification of native loops (cvm/calls/loops.h), and of
    ``ObjectLoop``.
    """

    def __init__(self, steps: LoopArrays, step: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.done = 0
        self._steps, self._step = steps, step

    def run(self, most: int) -> int:
        steps, run = self._steps, self._step
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


def in_turn(op: Any, body: Executable) -> ObjectLoop:
    """Return what the machine computes a loop by whose arrays are not all of the host: as
    ``Scan.run_steps``, but in C.

    Parameters
    ----------
    op : Scan
    body : Executable
        Its step, for the native machine.
    """
    kinds = op.layout.results(op.body.outputs)
    lagged = op.layout.step(op.body.inputs).lagged
    states = [written_rows(rows[0].type, f"the state {rows[0]}", 0) for rows in lagged]
    stacks = [written_rows(y.type, f"the output {y}", 0) for y in kinds.stacked]
    carried = [
        None if isinstance(x.type, TensorType) else x.type.copy_value for x in kinds.carried
    ]
    return ObjectLoop(op, body, states, stacks, carried, FIRST_ROWS)


def copy_of(value: Any, kind: Any) -> Any:
    """Return a value that shares no memory with the arguments of the loop."""
    return np.array(value) if isinstance(kind, TensorType) else kind.copy_value(value)
