"""Plans: calls on storages, for one set of layouts. The planner makes them, ``native.py`` brings
them into the form that the machine enqueues, ``execution.py`` runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from symcomp.cvm.machine import WIDEST, DeviceMemory


@dataclass
class Launch:
    """A kernel, or a function of a library, with its arguments, except for the addresses, which
    differ from call to call.

    Attributes
    ----------
    kernel : int
        The handle of the driver; while the plan is made, its name. The address of a function.
    grid, block : tuple of int
    parameters : bytearray
        As the kernel takes them, in CUDA's layout; words of 8 bytes for a function.
    shared : int
        Bytes of dynamic shared memory.
    """

    kernel: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: bytearray
    shared: int = 0


@dataclass
class Motion:
    """Where a storage of a step lies: at an offset in another one that grows with the steps.

    Attributes
    ----------
    bases : tuple of (int, int)
        The storage it lies in, and its offset there, in even steps; and those in odd steps.
    stride : int
        Bytes from one step to the next.
    """

    bases: tuple[tuple[int, int], tuple[int, int]]
    stride: int


@dataclass(eq=False)
class LoopStep:
    """The calls of one step of a loop.

    Attributes
    ----------
    calls : list of DeviceCall
    moving : list of int
        The storages that lie elsewhere in each step.
    """

    calls: list[DeviceCall] = field(default_factory=list)
    moving: list[int] = field(default_factory=list)


@dataclass
class DeviceCall:
    """One entry of a plan.

    Attributes
    ----------
    kind : str
        "launch", "copy", "clear", "loop" or "library".
    label : str
    launch : Launch or None
    patches : list of (int, int, int)
        Where in the parameters the address of a storage goes, and its offset.
    operands : list of (int, int)
        Of copies and clears: storage and offset, the target first.
    nbytes : int
        Of copies and clears; of launches, the least that is read and written; of loops, of all
        steps.
    step : LoopStep or None
        Of loops.
    repeats : int
        The number of steps of a loop.
    library : Library or None
        Whose function is called.
    can_fail : bool
        Whether the kernel may report an error, which the host meets when it waits.
    is_part : bool
        Of a loop: whether it is a graph of its own, where the plan is too long for one. Its steps
        use the same addresses each time.
    """

    kind: str
    label: str
    launch: Launch | None = None
    patches: list[tuple[int, int, int]] = field(default_factory=list)
    operands: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    step: LoopStep | None = None
    repeats: int = 0
    library: Any = None
    can_fail: bool = False
    is_part: bool = False

    def storages(self) -> set[int]:
        """Return the storages that the work itself uses, not the calls of its step."""
        return {s for _, s, _ in self.patches} | {s for s, _ in self.operands}


@dataclass
class DeviceStorage:
    """Memory of a plan: an input, a constant, or a value, which lies in the arena, is an output, or
    lies in another storage.

    Attributes
    ----------
    nbytes : int
    source : int
        The input, or -1.
    constant : DeviceMemory or None
    offset : int
        In the arena; -1 for what does not lie there.
    step : LoopStep or None
        The innermost step in which it is made.
    motion : Motion or None
        Of what lies in another storage.
    alignment : int
        A divisor of its address, at most WIDEST.
    """

    nbytes: int
    source: int = -1
    constant: DeviceMemory | None = None
    offset: int = -1
    step: LoopStep | None = None
    motion: Motion | None = None
    alignment: int = WIDEST

    @property
    def is_own(self) -> bool:
        """Whether the plan gives it memory."""
        return self.source < 0 and self.constant is None and self.motion is None


@dataclass
class Plan:
    """Calls for one set of layouts.

    Attributes
    ----------
    native : NativePlan
        The same for the machine.
    storages : list of DeviceStorage
    calls : list of DeviceCall
    outputs : list
        Operands, or host arrays where the value is known from the layouts.
    arena : int
        Bytes.
    """

    native: Any
    storages: list[DeviceStorage]
    calls: list[DeviceCall]
    outputs: list[Any]
    arena: int

    @property
    def can_fail(self) -> bool:
        """Whether a kernel may report an error."""
        return any(call.can_fail for call in all_calls(self.calls))

    def __str__(self) -> str:
        first = f"{len(self.calls)} calls, arena of {self.arena} bytes"
        return "\n".join([first, *_lines(self.calls, 1)])


def _lines(calls: Sequence[DeviceCall], depth: int) -> Iterator[str]:
    for i, call in enumerate(calls):
        size = "" if call.launch is None else f" {call.launch.grid} x {call.launch.block}"
        size += "" if call.step is None else f" of {call.repeats} steps"
        yield f"{'    ' * depth}{i}  {call.kind} {call.label}{size}, {call.nbytes} bytes"
        if call.step is not None:
            yield from _lines(call.step.calls, depth + 1)


def all_calls(calls: Sequence[DeviceCall]) -> Iterator[DeviceCall]:
    """Yield the calls, and those of the steps of loops."""
    for call in calls:
        yield call
        if call.step is not None:
            yield from all_calls(call.step.calls)


def count_pieces(calls: Sequence[DeviceCall]) -> int:
    """Return the number of launches, copies and the like, those of all steps of loops counted."""
    return sum(
        1 if call.step is None else call.repeats * count_pieces(call.step.calls) for call in calls
    )


def roots_of(storages: Sequence[DeviceStorage], numbers: Iterable[int]) -> Iterator[int]:
    """Yield the storages that these lie in at last."""
    pending = [*numbers]
    while pending:
        number = pending.pop()
        motion = storages[number].motion
        if motion is None:
            yield number
        else:
            pending += [base for base, _ in motion.bases]
