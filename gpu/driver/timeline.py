"""Times of work on devices, for functions that are profiled.

Drivers time work that is enqueued while a timeline is set (the variable ``DEVICE_TIMELINE`` of the
machine): on cards by events, on the emulator when the work runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from symcomp.gpu.driver.interface import Driver

# The kinds of the calls of plans.
KINDS = {"launch": "kernel", "copy": "copy", "clear": "clear", "library": "library"}
# The most events that are kept: the last ones.
MOST_EVENTS = 1 << 16

Item = TypeVar("Item")


class Timed(NamedTuple):
    """Work that was timed.

    Attributes
    ----------
    device : str
    kind : {"kernel", "library", "to device", "to host", "copy", "clear"}
    label : str
        The op and its line; empty for copies.
    start, duration : int
        In nanoseconds, by the clock of ``time.perf_counter_ns``.
    nbytes : int
        Copied; of kernels, and of calls of libraries, the sizes of their arrays.
    """

    device: str
    kind: str
    label: str
    start: int
    duration: int
    nbytes: int


class Total:
    """The count of equal work, its nanoseconds and bytes."""

    __slots__ = ("count", "nanoseconds", "nbytes")

    def __init__(self) -> None:
        self.count = self.nanoseconds = self.nbytes = 0


class Pending(Generic[Item]):
    """Things to finish, in order, when the work that was enqueued before them is done.

    Any thread adds; a thread that has waited finishes the things added before its wait.

    Attributes
    ----------
    added : int
        How many were added so far.
    """

    def __init__(self) -> None:
        self.added = 0
        self._finished = 0
        self._items: deque[Item] = deque()
        # Collected garbage, whose memory may have to be waited for, calls within calls.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item) -> None:
        """Add one, whose work has been enqueued."""
        with self._lock:
            self._items.append(item)
            self.added += 1

    def finish(self, upto: int, act: Callable[[Item], Any]) -> None:
        """Call ``act`` for each of the first ``upto`` that is not finished yet; return when all of
        them are, by this thread or another one.
        """
        with self._lock:
            while self._finished < upto:
                self._finished += 1
                act(self._items.popleft())


class Timeline:
    """The work of one function.

    Attributes
    ----------
    totals : dict of (device, kind, label) to Total
    events : deque of Timed
    """

    def __init__(self) -> None:
        self.totals: dict[tuple[str, str, str], Total] = {}
        self.events: deque[Timed] = deque(maxlen=MOST_EVENTS)
        self._drivers: set[Driver] = set()
        self._lock = threading.Lock()

    def expect(self, driver: Driver) -> None:
        """Note that work for a driver will be added when it is done."""
        self._drivers.add(driver)

    def add(self, work: Timed) -> None:
        """Add work that is done."""
        with self._lock:
            self.events.append(work)
            total = self.totals.setdefault((work.device, work.kind, work.label), Total())
            total.count += 1
            total.nanoseconds += work.duration
            total.nbytes += work.nbytes

    def finish(self) -> None:
        """Wait until the times of all work that was enqueued are known."""
        while self._drivers:
            self._drivers.pop().wait()
