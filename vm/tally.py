"""What profiles count while programs run: how often each instruction ran, how long it took on
values of which shapes, and the same of the programs inside (the steps of loops).

Clocks are read in some of the runs only, so often that it costs less than a hundredth of the time;
the first runs are all timed. The native machine counts in C, with the same results
(``cvm/tally.pxi``).
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from symcomp.vm.program import Program

# Runs that are timed whatever that costs, and the part of the time that it may cost afterwards.
ALWAYS_TIMED, BUDGET = 16, 0.003
# So many sets of shapes are told apart for an instruction, and so many of the last events are kept.
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
        None for what is no array, or was dropped at once. Both None: various shapes.
    timed : int
        How many runs were timed.
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
    """What is known of one instruction.

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
        """How many of the runs were timed."""
        return sum(v.timed for v in self.variants)

    @property
    def seconds(self) -> float:
        """What all runs took, if those that were not timed were as usual."""
        return sum(v.seconds for v in self.variants) + (self.runs - self.timed) * self.usual

    @property
    def usual(self) -> float:
        """The seconds of a usual run."""
        return sum(v.usual * v.timed for v in self.variants) / max(self.timed, 1)


class Kind(IntEnum):
    """What is timed of a run."""

    UNTIMED = 0  # nothing
    WHOLE = 1  # the run as a whole
    FULL = 2  # its instructions


class Sampler:
    """Which runs are timed.

    What timing costs is the difference between runs whose instructions are timed and runs that are
    timed as a whole.

    Attributes
    ----------
    seen, timed : int
        How many runs there were, and of how many something was timed.
    """

    def __init__(self) -> None:
        self.seen = self.timed = 0
        self._skip = 0
        self._costly = False
        self._whole = self._full = self._overhead = 0.0

    def next(self) -> Kind:
        """What is timed of the run that begins."""
        self.seen += 1
        if self._skip > 0:
            self._skip -= 1
            return Kind.UNTIMED
        if self.timed < ALWAYS_TIMED or self.timed % (2 if self._costly else 16):
            return Kind.FULL
        return Kind.WHOLE

    def done(self, kind: Kind, duration: float, overhead: float) -> None:
        """Take in a timed run, and what is known of what timing took."""
        self.timed += 1
        if kind is Kind.WHOLE:
            self._whole = _smoothed(self._whole, duration)
        else:
            self._full = _smoothed(self._full, duration)
            self._overhead = _smoothed(self._overhead, overhead)
        if self._whole:
            # What is timed is slower, too; but not by all that makes a run slower than another.
            cost = min(self._full - self._whole, 4 * self._overhead)
            mean = cost / (BUDGET * self._whole)
            self._costly = mean > 1
            # Not every n-th run: the runs of a program may take turns.
            self._skip = int(mean * (0.5 + random.random())) if self._costly else 0


def _smoothed(mean: float, new: float) -> float:
    """What is usual of late; one run that was interrupted changes it little."""
    if mean == 0:
        return new
    return mean + (0.5 if new < mean else 0.125) * (min(new, 2 * mean) - mean)


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
        """Of usual runs."""
        return self._steady / max(self.n - 1, 1)


class Tally:
    """The counts of one program that the Python machine runs.

    Attributes
    ----------
    program : Program
    inner : dict
        (position, number of a machine) -> (machine, its tally): programs that run within the
        instruction there.
    kinds : tuple of (str or None)
        What does each instruction: here Python.
    kernels : tuple of None
        Where the kernel of each is: there are none.
    unattended : int
        Steps of a loop that were done without Python: none.
    overhead : int
        Nanoseconds that timing took.
    calls : object or None
        Of a function's program what counts its calls, and says which are timed.
    full_runs : int
        How many runs there were whose instructions were timed.
    """

    unattended = 0

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inner: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.kinds = ("PythonCall",) * len(program.instructions)
        self.kernels = (None,) * len(program.instructions)
        self.sampler = Sampler()
        self.overhead = 0
        self.calls: Any = None
        self.full_runs = 0
        self._counts = [0] * len(program.instructions)
        self._variants: list[dict[Any, _Times]] = [{} for _ in program.instructions]
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self.frames = frames_of(self)
        self.contains = self.frames.keys()

    def begin(self) -> Kind:
        """What is timed of the run that begins: all, if it runs other programs, which count for
        themselves.
        """
        kind = self.sampler.next()
        return Kind.FULL if self.contains else kind

    def add(
        self, position: int, shapes: tuple[Shapes | None, Shapes | None], start: int, duration: int
    ) -> None:
        """Take in one instruction of a timed run."""
        found = self._variants[position]
        key: Any = shapes
        if key not in found and len(found) >= MOST_VARIANTS - 1:
            key = (None, None)
        found.setdefault(key, _Times()).add(duration)
        self._counts[position] += 1
        self._events.append(Event(start, duration, position, threading.get_ident()))

    # -- afterwards

    @property
    def runs(self) -> int:
        """How often the program was run."""
        return self.sampler.seen if self.calls is None else int(self.calls.count)

    @property
    def timed_runs(self) -> int:
        """How many of the runs were timed."""
        return self.sampler.timed

    def counted(self) -> list[Counted]:
        """What is known of each instruction that ran.

        Of runs that were not timed it is not known which branches they took: what is in branches
        is counted by its part of the timed runs.
        """
        scale = self.runs / max(self.full_runs, 1)
        found = []
        for position, count in enumerate(self._counts):
            variants = tuple(
                Variant(inputs, outputs, times.n, times.total * 1e-9, times.mean * 1e-9)
                for (inputs, outputs), times in self._variants[position].items()
            )
            total = round(count * scale)
            if count:
                found.append(Counted(position, total, total, variants))
        return found

    def events(self) -> list[Event]:
        """The last instructions that were timed, in the order in which they ended."""
        return list(self._events)


class Run:
    """One run of a program whose instructions are timed."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._outer = watched.frame
        self._inputs: Shapes = ()
        self._overhead = 0
        self._start = self._began = self._last = time.perf_counter_ns()

    def before(self, position: int, arguments: Sequence[Any]) -> None:
        """An instruction begins."""
        self._inputs = shapes_of(arguments)
        if position in self._tally.contains:
            watched.frame = self._tally.frames[position]
        self._start = now = time.perf_counter_ns()
        self._overhead += now - self._last

    def after(self, position: int, results: Sequence[Any]) -> None:
        """An instruction has ended."""
        self._last = now = time.perf_counter_ns()
        watched.frame = self._outer
        self._tally.add(
            position, (self._inputs, shapes_of(results)), self._start, now - self._start
        )

    def end(self, failed: bool) -> None:
        """The run has ended."""
        watched.frame = self._outer
        self._tally.overhead += self._overhead
        self._tally.full_runs += 1
        if not failed:
            duration = time.perf_counter_ns() - self._began
            self._tally.sampler.done(Kind.FULL, duration, self._overhead)


class Frame:
    """An instruction with programs inside, while it is profiled."""

    __slots__ = ("_last", "_position", "_tally")

    def __init__(self, tally: Any, position: int) -> None:
        self._tally, self._position = tally, position
        self._last: tuple[Any, Any] = (None, None)

    def tally_of(self, machine: Any) -> Any:
        """What counts the runs of a machine within the instruction."""
        last, tally = self._last
        if last is machine:
            return tally
        known, key = self._tally.inner, (self._position, id(machine))
        if key not in known:
            # The machine is held, so that no other gets its number.
            known.setdefault(key, (machine, machine.new_tally()))
        self._last = known[key]
        return known[key][1]


def frames_of(tally: Any) -> dict[int, Frame]:
    """The instructions of a tally's program that run other programs, by their positions."""
    code = tally.program.instructions
    return {i: Frame(tally, i) for i, step in enumerate(code) if _has_inner(step)}


class _Watched(threading.local):
    """The instruction with programs inside that runs in this thread and is profiled."""

    frame: Frame | None = None


watched = _Watched()


def inner_tally(machine: Any) -> Any:
    """The tally of a machine that runs within an instruction that is profiled; else None."""
    frame = watched.frame
    return None if frame is None else frame.tally_of(machine)


def _has_inner(step: Any) -> bool:
    """Whether an instruction runs other programs."""
    return step.node is not None and bool(step.node.op.inner_graphs())


def shapes_of(values: Sequence[Any]) -> Shapes:
    """The shapes of values; None for what is no array."""
    return tuple(v.shape if isinstance(v, np.ndarray) else None for v in values)
