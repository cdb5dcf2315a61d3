"""The interface of drivers: memory, streams, events, kernels, and counts of their use."""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.cvm.machine import (
    DeviceArrayBase,
    DeviceCounters,
    DeviceLibrary,
    DeviceMemory,
    DevicePlan,
    DevicePool,
    DeviceStream,
    LibraryHandle,
)
from symcomp.errors import IndexOutOfRangeError
from symcomp.gpu.errors import DeviceError, DeviceMemoryError, unavailable_in_fork

Result = TypeVar("Result")

# The words of a fault: ticket, unused, value and bound, as 64-bit integers.
FAULT_WORDS, FAULT_BYTES = 4, 32


@dataclass
class MemoryInfo:
    """The memory of a device, in bytes.

    Attributes
    ----------
    free, total : int
        As the driver says.
    used : int
        Held by arrays and arenas of this process.
    cached : int
        Held by the pool, for arrays to come.
    """

    free: int
    total: int
    used: int
    cached: int


# Functions that make errors of a label and the two numbers of a fault.
Failure = Callable[[str, int, int], Exception]


def out_of_range(label: str, value: int, bound: int) -> IndexOutOfRangeError:
    """Return the error of a bad index."""
    return IndexOutOfRangeError(
        f"{label}: index {value} is out of range for an axis of length {bound}"
    )


@dataclass
class Tickets:
    """The names in messages of kernels that may fail, by the number given at their launch.

    A kernel that meets a bad index, or a matrix that was not decomposed, writes its ticket and two
    numbers into the words of the fault; the next wait raises an error with the label of the ticket.
    """

    given: list[tuple[str, Failure]] = field(default_factory=lambda: [("", out_of_range)])
    known: dict[tuple[str, Failure], int] = field(default_factory=dict)

    def of(self, label: str, failure: Failure | None = None) -> int:
        """Return the ticket of a label, and of what makes the error; by default that of indices."""
        key = label, failure or out_of_range
        if key not in self.known:
            self.known[key] = len(self.given)
            self.given.append(key)
        return self.known[key]

    def error(self, words: Any) -> Exception:
        """Return the error that the words of a fault tell of."""
        ticket, _, value, bound = (int(w) for w in words)
        label, failure = self.given[ticket]
        return failure(label, value, bound)


class Library(Protocol):
    """A library of NVIDIA's with a handle for one device, as plans and drivers see it.

    Attributes
    ----------
    handle : LibraryHandle
        The first argument of its functions.
    is_recordable : bool
        Whether its work can be part of graphs.
    """

    handle: LibraryHandle
    is_recordable: bool

    def address(self, function: str) -> int:
        """Return the address of a function."""

    def message(self, code: int) -> str:
        """Return what an error of a function means."""


class Work(Protocol):
    """The calls of a plan, as a driver sees them (``NativePlan``).

    Attributes
    ----------
    labels : list of str
        Of the calls, for messages.
    library_of : dict of int to Library
        By the number of the call.
    native : DevicePlan
    """

    labels: list[str]
    library_of: dict[int, Library]
    native: DevicePlan

    def each_call(self) -> Iterator[Any]:
        """Yield all work in the order in which it is enqueued, with its ``kind``, ``label`` and
        ``nbytes``.
        """


class Driver(ABC):
    """A device. Work is enqueued on one stream, in order; methods that wait say so.

    While a timeline is set, the stream of a card calls ``enqueue`` with the work of a plan and the
    addresses of its bases, enqueues copies within ``timing``, and asks ``times_enqueued`` before it
    waits. That of an emulator, where the host does the work, keeps the ``pieces_of`` a plan, or the
    ``piece`` that is a copy, in ``timed``.

    Attributes
    ----------
    name : str
        "emu", "emu1", "cuda0", ...
    arch : str
        What kernels are compiled for: "emu", or "sm_90" and the like.
    pool : DevicePool
    queue : DeviceStream
        Where the machine enqueues plans.
    counters : DeviceCounters
    tickets : Tickets
    libraries : dict of str to NvidiaLibrary or None
        By name, as far as asked for; None: it is missing.
    library_paths : dict of str to str, or None
        The files of libraries; None: those of this machine.
    lock : RLock
        Of what one thread does at a time.
    words_of_fault : numpy.ndarray
        FAULT_WORDS integers of the host that kernels write to, as ``Tickets`` tells.
    """

    name: str
    arch: str
    pool: DevicePool
    queue: DeviceStream
    words_of_fault: np.ndarray

    def __init__(self) -> None:
        self.counters, self.tickets = DeviceCounters(), Tickets()
        self.libraries: dict[str, Any] = {}
        self.library_paths: dict[str, str] | None = None
        self.lock = threading.RLock()

    def open(
        self, library: DeviceLibrary, keeps_blocks: bool = True, is_recorded: bool = False
    ) -> None:
        """Give the machine the functions of the driver; see ``DevicePool`` and ``DeviceStream``."""
        self.pool = DevicePool(library, self.counters, self.refuse_memory, keeps_blocks)
        self.queue = DeviceStream(self, library, self.counters, self.pool, is_recorded)

    def in_context(self, function: Callable[..., Result], *given: Any) -> Result:
        """Call a function of a library in any thread, for this device."""
        return function(*given)

    def allocate(self, nbytes: int, what: str = "an array") -> DeviceMemory:
        """Return device memory; see ``DevicePool.allocate``."""
        return self.pool.allocate(nbytes, what)

    def refuse_memory(self, pool: DevicePool, nbytes: int, what: Any, code: int) -> NoReturn:
        """Raise the error of a request for memory that cannot be met; ``what`` it is for in words,
        or an array that is to be copied.
        """
        if isinstance(what, np.ndarray):
            what = f"an array of shape {what.shape}"
        elif isinstance(what, DeviceArrayBase):
            what = f"a copy of {what}"
        limit = f" of at most {pool.limit}" if pool.limit else ""
        raise DeviceMemoryError(
            f"{self.name}: no {nbytes} bytes for {what}; {pool.used} bytes{limit} are in use by "
            "arrays, and by functions that run, of this process; none are kept for later "
            f"({self.message(code)})"
        )

    def refuse(self, work: Work | None, code: int, call: int) -> NoReturn:
        """Raise the error of a call of a plan, or of other work, that cannot be enqueued."""
        raise DeviceError(self._refusal(work, code, call))

    def warn_of_recording(self, work: Work, code: int, call: int) -> None:
        """Warn that a plan cannot be recorded as a graph."""
        warnings.warn(
            f"{self._refusal(work, code, call)}: its region, or a library that it calls, cannot be "
            "a CUDA graph. From now on its work is enqueued call by call, as all is with "
            "config.gpu_graphs=False",
            RuntimeWarning,
            stacklevel=2,
        )

    def _refusal(self, work: Work | None, code: int, call: int) -> str:
        if work is None:
            return f"a copy on {self.name}: {self.message(code)}"
        label = work.labels[call] if call >= 0 else ""
        said = work.library_of.get(call, self).message(code)
        return f"{label or 'kernel'} on {self.name}: {said}"

    def lost(self) -> Exception:
        """Return the error of a device that cannot be used in this process."""
        return unavailable_in_fork(self.name)

    def fault(self) -> Exception:
        """Return the error that work has reported, and forget it."""
        words = self.words_of_fault.copy()
        self.words_of_fault[:] = 0
        return self.tickets.error(words)

    @abstractmethod
    def message(self, code: int) -> str:
        """Return what the driver says of an error."""

    @abstractmethod
    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        """Return the handles of kernels for launches, by name; new ones are compiled at once, or
        found in the cache.
        """

    @abstractmethod
    def collect_times(self, upto: int) -> None:
        """Add the times of work that is done to their timelines: all up to this count of pieces."""

    @abstractmethod
    def failure(self, code: int) -> Exception:
        """Return the error of work that was waited for."""

    def to_device(self, target: DeviceMemory, offset: int, source: np.ndarray) -> None:
        """Enqueue a copy of an array, in C order; the array may be changed at once."""
        self.queue.to_device(target, offset, source)

    def within(
        self, target: DeviceMemory, to: int, source: DeviceMemory, start: int, nbytes: int
    ) -> None:
        """Enqueue a copy on the device, of bytes that do not overlap."""
        self.queue.within(target, to, source, start, nbytes)

    def wait(self) -> None:
        """Wait until all work is done; raise the error of the first that failed."""
        self.queue.wait()

    @abstractmethod
    def wait_for_others(self) -> None:
        """Wait for the work of other libraries in this process, too."""

    @property
    @abstractmethod
    def dlpack_device(self) -> tuple[int, int]:
        """The device as DLPack has it: its type and its number."""

    @property
    @abstractmethod
    def stream_number(self) -> int | None:
        """The stream, as other libraries are told of it; None where there are none."""

    @abstractmethod
    def fault_address(self) -> int:
        """Return where kernels write what went wrong: FAULT_WORDS integers."""

    @abstractmethod
    def memory_info(self) -> MemoryInfo:
        """Return how much memory there is, and is used."""
