"""The interface of drivers: memory, streams, events, kernels, and counts of their use."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.errors import IndexOutOfRangeError
from symcomp.gpu.errors import DeviceMemoryError

# Blocks of memory are multiples of this many bytes, and begin at such.
GRANULE = 512
# The words of a fault: ticket, unused, value and bound, as 64-bit integers.
FAULT_WORDS, FAULT_BYTES = 4, 32


@dataclass
class Counters:
    """How often a device was used.

    Attributes
    ----------
    launches : int
    waits : int
        How often the host waited for the device.
    allocations : int
        Blocks that were asked of the driver, not of the pool.
    to_device, to_host, within : int
        Bytes copied.
    compiled : int
        Modules that were compiled, not found in a cache.
    """

    launches: int = 0
    waits: int = 0
    allocations: int = 0
    to_device: int = 0
    to_host: int = 0
    within: int = 0
    compiled: int = 0

    def clear(self) -> None:
        """Set all counts to 0."""
        for one in fields(self):
            setattr(self, one.name, 0)


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


class Memory:
    """A block of device memory; given back to the pool when it is collected.

    Attributes
    ----------
    address, nbytes : int
        ``nbytes`` is the requested size; the block may be larger.
    """

    __slots__ = ("_pool", "address", "block", "nbytes")

    def __init__(self, pool: Pool | None, block: Any, address: int, nbytes: int) -> None:
        self._pool, self.block, self.address, self.nbytes = pool, block, address, nbytes

    def __del__(self) -> None:
        # Any thread may collect it: the blocks are sorted in by the next allocation.
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool.returned.append((self.block, self.nbytes))


def rounded(nbytes: int) -> int:
    """Return the size of the block for a request: at most an eighth is left over."""
    size = max(GRANULE, -(-nbytes // GRANULE) * GRANULE)
    step = max(GRANULE, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class Pool(ABC):
    """Blocks of device memory by size, kept for reuse.

    A block that is given back may be reused at once: all work is on one stream, and so
    runs in the order in which it is enqueued.
    """

    def __init__(self, counters: Counters, name: str) -> None:
        self.counters, self.name = counters, name
        self.returned: deque[tuple[Any, int]] = deque()
        self.used = self.cached = 0
        self._free: dict[int, list[Any]] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def take(self, nbytes: int) -> Any:
        """Ask the driver for a block; raise DeviceMemoryError if there is none."""

    @abstractmethod
    def address_of(self, block: Any) -> int:
        """Return the address of a block."""

    @abstractmethod
    def drop(self, block: Any) -> None:
        """Give a block back to the driver."""

    def allocate(self, nbytes: int, what: str = "an array") -> Memory:
        """Return memory of ``nbytes`` bytes, not initialized.

        Raises
        ------
        DeviceMemoryError
            If there is not enough, though the cache was emptied; the message says for what.
        """
        size = rounded(nbytes)
        with self._lock:
            self._sort_in()
            block = self._reused(size)
            if block is None:
                block = self._fresh(size, nbytes, what)
            self.used += size
        return Memory(self, block, self.address_of(block), nbytes)

    def _reused(self, size: int) -> Any:
        kept = self._free.get(size)
        if not kept:
            return None
        self.cached -= size
        return kept.pop()

    def _fresh(self, size: int, nbytes: int, what: str) -> Any:
        self.counters.allocations += 1
        try:
            return self.take(size)
        except DeviceMemoryError:
            self._empty()
        try:
            return self.take(size)
        except DeviceMemoryError as problem:
            raise DeviceMemoryError(
                f"{self.name}: no {nbytes} bytes for {what}; {self.used} bytes are in use by "
                f"arrays and arenas of this process, none are cached ({problem})"
            ) from None

    def _sort_in(self) -> None:
        while self.returned:
            block, nbytes = self.returned.popleft()
            size = rounded(nbytes)
            self.used -= size
            if self.keeps(block):
                self.cached += size
                self._free.setdefault(size, []).append(block)
            else:
                self.drop(block)

    def keeps(self, block: Any) -> bool:
        """Return whether a block that is given back is kept for reuse."""
        return True

    def _empty(self) -> None:
        for blocks in self._free.values():
            for block in blocks:
                self.drop(block)
        self._free.clear()
        self.cached = 0

    def empty(self) -> None:
        """Give all blocks that are cached back to the driver."""
        with self._lock:
            self._sort_in()
            self._empty()


class DeviceEvent(ABC):
    """A mark in the work of a device."""

    @abstractmethod
    def done(self) -> bool:
        """Return without waiting whether all work enqueued before the mark is done."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for it."""


@dataclass
class Tickets:
    """The names in messages of kernels that may fail, by the number given at their launch.

    A kernel that meets a bad index writes its ticket, the index and the bound into the words of the
    fault; the next wait raises an error with the label of the ticket.
    """

    labels: list[str] = field(default_factory=lambda: [""])
    known: dict[str, int] = field(default_factory=dict)

    def of(self, label: str) -> int:
        """Return the ticket of a label."""
        if label not in self.known:
            self.known[label] = len(self.labels)
            self.labels.append(label)
        return self.known[label]

    def error(self, words: Any) -> IndexOutOfRangeError:
        """Return the error that the words of a fault tell of."""
        ticket, _, value, bound = (int(w) for w in words)
        return IndexOutOfRangeError(
            f"{self.labels[ticket]}: index {value} is out of range for an axis of length {bound}"
        )


class Work(Protocol):
    """The calls of a plan, as a driver sees them (``NativePlan``).

    Attributes
    ----------
    labels : list of str
        Of the calls, for messages.
    launches, copied : int
        The number of launches of a run, and the bytes that it copies on the device.
    """

    labels: list[str]
    launches: int
    copied: int

    def enqueue(
        self, functions: tuple[int, int, int], stream: int, bases: list[int]
    ) -> tuple[int, int]:
        """Enqueue the calls by these functions (cuLaunchKernel, cuMemcpyDtoDAsync,
        cuMemsetD8Async); return 0, or the code of an error and the number of its call.
        """

    def each_call(self) -> Iterator[Any]:
        """Yield all work in the order in which it is enqueued, with its ``kind``, ``label`` and
        ``nbytes``.
        """


class Driver(ABC):
    """A device. Work is enqueued on one stream, in order; methods that wait say so.

    Attributes
    ----------
    name : str
        "emu", "cuda0", ...
    arch : str
        What kernels are compiled for: "emu", or "sm_90" and the like.
    pool : Pool
    counters : Counters
    tickets : Tickets
    """

    name: str
    arch: str
    pool: Pool

    def __init__(self) -> None:
        self.counters, self.tickets = Counters(), Tickets()

    def allocate(self, nbytes: int, what: str = "an array") -> Memory:
        """Return device memory; see ``Pool.allocate``."""
        return self.pool.allocate(nbytes, what)

    @abstractmethod
    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        """Return the handles of kernels for launches, by name; new ones are compiled at once, or
        found in the cache.
        """

    @abstractmethod
    def enqueue(self, work: Work, bases: list[int], held: Sequence[Memory]) -> None:
        """Enqueue the calls of a plan.

        Parameters
        ----------
        work : Work
        bases : list of int
            The addresses that those of the plan are counted from.
        held : sequence of Memory
            What the work reads and writes.
        """

    @abstractmethod
    def to_device(self, target: Memory, offset: int, source: np.ndarray) -> None:
        """Enqueue a copy of an array in C order; the array may be changed at once."""

    @abstractmethod
    def to_host(self, target: np.ndarray, source: Memory, offset: int) -> None:
        """Enqueue a copy to an array in C order, which is filled after the next ``wait``."""

    @abstractmethod
    def within(self, target: Memory, to: int, source: Memory, start: int, nbytes: int) -> None:
        """Enqueue a copy on the device, of bytes that do not overlap."""

    @abstractmethod
    def mark(self) -> DeviceEvent:
        """Enqueue an event."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all work is done; raise the error of the first that failed."""

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
