"""Tally: what a profile counts while the Python machine runs a program, and how counts are told.

The native machine counts in C (``cvm/plan/counts.h``) and tells its counts in the same terms.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symcomp.vm.program import Program

# Shapes beyond the first are counted together; of events, the last are kept.
MOST_VARIANTS, MOST_EVENTS = 8, 1 << 16

Shapes = tuple[tuple[int, ...] | None, ...]


class Event(NamedTuple):
    """One instruction, or one run (``position`` -1), that was timed; in nanoseconds."""

    start: int
    duration: int
    position: int
    thread: int


class Variant(NamedTuple):
    """The runs of an instruction on values of the same shapes.

    Attributes
    ----------
    inputs, outputs : tuple of shapes
        None for a value that is no array, or was dropped at once. Both None: various shapes.
    timed : int
        The number of runs that were timed.
    seconds : float
        That they took together.
    usual : float
        The seconds of a run: the mean, without the first one, and without what the processor did
        in between for others.
    """

    inputs: Shapes | None
    outputs: Shapes | None
    timed: int
    seconds: float
    usual: float


class Counted(NamedTuple):
    """The counts of one instruction.

    Attributes
    ----------
    position : int
    runs : int
        How often it ran.
    in_python : int
        How often that was Python's work.
    variants : tuple of Variant
    """

    position: int
    runs: int
    in_python: int
    variants: tuple[Variant, ...]

    @property
    def timed(self) -> int:
        """The number of runs that were timed."""
        return sum(v.timed for v in self.variants)

    @property
    def seconds(self) -> float:
        """The time of all runs, if untimed ones took as long as usual."""
        return sum(v.seconds for v in self.variants) + (self.runs - self.timed) * self.usual

    @property
    def usual(self) -> float:
        """The seconds of a usual run."""
        return sum(v.usual * v.timed for v in self.variants) / max(self.timed, 1)


def merged(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return one variant for each set of shapes, the last one for all beyond MOST_VARIANTS - 1."""
    found: dict[Any, list[Variant]] = {}
    for variant in variants:
        key: Any = (variant.inputs, variant.outputs)
        if key not in found and len(found) >= MOST_VARIANTS - 1:
            key = (None, None)
        found.setdefault(key, []).append(variant)
    return tuple(
        Variant(
            inputs,
            outputs,
            sum(v.timed for v in same),
            sum(v.seconds for v in same),
            sum(v.usual * v.timed for v in same) / max(sum(v.timed for v in same), 1),
        )
        for (inputs, outputs), same in found.items()
    )


class _Times:
    """The times of runs, in nanoseconds: in all, and of a usual one."""

    def __init__(self) -> None:
        self.n, self.total = 0, 0
        self._usual = self._steady = 0.0

    def add(self, duration: int) -> None:
        """Take in a run; as usual counts ten times the usual one at most, and not the first."""
        if self.n == 1:
            self._usual, self._steady = min(duration, self._usual), 0.0
        self._usual = _smoothed(self._usual, duration)
        self._steady += min(duration, 10 * self._usual)
        self.total += duration
        self.n += 1

    @property
    def mean(self) -> float:
        """The mean time of runs after the first."""
        return self._steady / max(self.n - 1, 1)


def _smoothed(mean: float, new: float) -> float:
    """Return a mean that one interrupted run changes little."""
    if mean == 0:
        return new
    return mean + (0.5 if new < mean else 0.125) * (min(new, 2 * mean) - mean)


class Tally:
    """The counts of one program that the Python machine runs, all of whose runs are timed.

    Attributes
    ----------
    program : Program
    inner : dict
        (position, number) -> (machine, its tally): of the graphs within the instruction there.
    kinds : tuple of (str or None)
        For each instruction the kind of call that it is: here all are Python's.
    kernels : tuple of None
        Where the kernel of each is: there are none.
    straight : frozenset of int
        Instructions that straight code does: none.
    without_python : int
        Runs of a nested program without calls of Python: none.
    runs : int
        How often the program ran.
    """

    without_python = 0
    straight: frozenset[int] = frozenset()

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inner: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.kinds = ("python",) * len(program.instructions)
        self.kernels = (None,) * len(program.instructions)
        self.runs = 0
        self._variants: list[dict[Any, _Times]] = [{} for _ in program.instructions]
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)

    @property
    def timed_runs(self) -> int:
        """The number of runs that were timed."""
        return self.runs

    def add(self, position: int, shapes: tuple[Shapes, Shapes], start: int, duration: int) -> None:
        """Take in one instruction."""
        self._variants[position].setdefault(shapes, _Times()).add(duration)
        self._events.append(Event(start, duration, position, threading.get_ident()))

    def counted(self) -> list[Counted]:
        """Return the counts of each instruction that ran."""
        found = []
        for position, times in enumerate(self._variants):
            variants = merged(
                [
                    Variant(inputs, outputs, t.n, t.total * 1e-9, t.mean * 1e-9)
                    for (inputs, outputs), t in times.items()
                ]
            )
            count = sum(t.n for t in times.values())
            if count:
                found.append(Counted(position, count, count, variants))
        return found

    def events(self) -> list[Event]:
        """Return the last instructions that were timed, in the order in which they ended."""
        return list(self._events)


class Run:
    """One run of a program whose instructions are timed."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        tally.runs += 1
        self._inputs: Shapes = ()
        self._start = 0

    def before(self, arguments: Sequence[Any]) -> None:
        """Note that an instruction begins."""
        self._inputs = shapes_of(arguments)
        self._start = time.perf_counter_ns()

    def after(self, position: int, results: Sequence[Any]) -> None:
        """Note that an instruction has ended."""
        duration = time.perf_counter_ns() - self._start
        self._tally.add(position, (self._inputs, shapes_of(results)), self._start, duration)


def shapes_of(values: Sequence[Any]) -> Shapes:
    """Return the shapes of values; None for a value that is no array."""
    return tuple(v.shape if isinstance(v, np.ndarray) else None for v in values)
