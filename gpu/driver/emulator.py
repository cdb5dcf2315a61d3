"""The emulator: a device whose kernels are compiled by a C++ compiler and run on the processor.

It is for programs without a card, and for tests, as it finds errors that cards hide: work is done
only when the host waits (a missing wait gives NaN), fresh memory is filled with 0xFF, freed memory
with 0xDD, writes past the end of a block are noticed, the threads of a block run in several orders,
and barriers that not all threads reach are errors. ``cuemu.h`` has the words of CUDA C.
"""

from __future__ import annotations

import ctypes
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from symcomp.codegen.compiler.driver import Target, load_all, target
from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.config import config
from symcomp.gpu.driver.interface import (
    FAULT_WORDS,
    DeviceEvent,
    Driver,
    Memory,
    MemoryInfo,
    Pool,
    Work,
)
from symcomp.gpu.driver.timeline import CURRENT, KINDS, Timed, Timeline
from symcomp.gpu.errors import DeviceError, DeviceUnavailable

# Bytes before and after a block that nothing may write; emustream.h looks at them.
CANARY = 256
FLAGS = (
    "-std=c++17", "-O1", "-march=native", "-fPIC", "-shared", "-w", "-U_FORTIFY_SOURCE",
    "-fno-exceptions", "-fno-rtti", "-nostdinc++", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fwrapv", "-Wl,-Bsymbolic", "-x", "c++",
)  # fmt: skip
UNUSED, FRESH, FREED = 0xA5, 0xFF, 0xDD
# Orders in which the threads of a block run: forwards, backwards, and shuffled.
ORDERS = (0, 1, 2)


class _Block:
    """Memory between canaries."""

    __slots__ = ("address", "nbytes", "raw")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.raw = np.full(nbytes + 4 * CANARY, UNUSED, "uint8")
        base = self.raw.ctypes.data
        self.address = -(-(base + CANARY) // CANARY) * CANARY
        self.fill(FRESH)

    def fill(self, byte: int) -> None:
        start = self.address - self.raw.ctypes.data
        self.raw[start : start + self.nbytes] = byte


class _Blocks(Pool):
    """Blocks that are used once each, so that reads of freed memory are noticed."""

    # The canaries of a block begin where its array ends, not at a rounded size.
    def allocate(self, nbytes: int, what: str = "an array") -> Memory:
        with self._lock:
            self._sort_in()
            self.counters.allocations += 1
            self.used += nbytes
        block = self.take(nbytes)
        return Memory(self, block, block.address, nbytes)

    def take(self, nbytes: int) -> Any:
        return _Block(nbytes)

    def address_of(self, block: Any) -> int:
        return int(block.address)

    def _sort_in(self) -> None:
        while self.returned:
            block, nbytes = self.returned.popleft()
            self.used -= nbytes
            self.drop(block)

    def drop(self, block: Any) -> None:
        block.fill(FREED)


class _Mark(DeviceEvent):
    def __init__(self, device: Emulator) -> None:
        self._device, self._is_done = device, False

    def reach(self) -> None:
        self._is_done = True

    def done(self) -> bool:
        return self._is_done

    def wait(self) -> None:
        if not self._is_done:
            self._device.counters.waits += 1
            self._device.run_until(lambda: self._is_done)


class _Kernel(ctypes.Structure):
    """A function of a library, and the variables of the emulator in it; ``emustream.h`` has it."""

    _fields_: ClassVar = [(name, ctypes.c_void_p) for name in ("run", "order", "message")]


class _Stream:
    """The functions of ``emustream.h``."""

    def __init__(self, addresses: Sequence[int]) -> None:
        begin, drop, count, run, *enqueuing = addresses
        pointer = ctypes.c_void_p
        self.begin = ctypes.CFUNCTYPE(pointer)(begin)
        self.drop = ctypes.CFUNCTYPE(None, pointer)(drop)
        self.count = ctypes.CFUNCTYPE(ctypes.c_longlong, pointer)(count)
        self.run = ctypes.CFUNCTYPE(
            ctypes.c_longlong, pointer, ctypes.c_int, pointer, ctypes.c_longlong, pointer, pointer
        )(run)
        launch, copy, fill = enqueuing
        self.enqueuing = launch, copy, fill


class _Batch:
    """The work of one plan, recorded."""

    def __init__(self, stream: _Stream) -> None:
        self.stream, self.address = stream, stream.begin()
        if not self.address:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self.stream.drop(self.address)

    def run(self, order: int, blocks: np.ndarray, is_timed: bool) -> tuple[int, str, np.ndarray]:
        """Do the work; return the number of the piece that failed, or -1, the kernel's message, and
        when each piece began and ended, in nanoseconds, if it is timed.
        """
        said = ctypes.c_char_p()
        times = np.zeros((self.stream.count(self.address) if is_timed else 0, 2), "int64")
        failed = self.stream.run(
            self.address, order, blocks.ctypes.data, len(blocks),
            times.ctypes.data if is_timed else None, ctypes.byref(said),
        )  # fmt: skip
        return failed, (said.value or b"").decode(), times


class Emulator(Driver):
    """The device ``"emu"``.

    Parameters
    ----------
    lazy : bool
        Whether work runs when its results are waited for; else when it is enqueued.
    order : int
        In which order the threads of a block run between barriers; see ``ORDERS``.
    """

    def __init__(self, lazy: bool = True, order: int = 0) -> None:
        super().__init__()
        self.name, self.arch = "emu", "emu"
        self.lazy, self.order = lazy, order
        self.pool = _Blocks(self.counters, self.name)
        #: Fibers, and what kernels call shared memory, are one for all threads of the host.
        self.lock = threading.RLock()
        self._queue: deque[tuple[Callable[[], Any], Any]] = deque()
        self._fault = np.zeros(FAULT_WORDS, "int64")
        self._kernels: dict[str, _Kernel] = {}
        self._stream: _Stream | None = None

    def _target(self) -> Target:
        found = target()
        if found is None:
            raise DeviceUnavailable(
                "the device 'emu' needs a C++ compiler: install g++ (Debian, Ubuntu: apt install "
                "g++; Fedora: dnf install gcc-c++)"
            )
        return Target(found.compiler, (*FLAGS, *shlex.split(config.cflags)), found.directory)

    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        new = sorted({k for k in wanted if k.name not in self._kernels}, key=lambda k: k.name)
        if new:
            names = [*(f"{kernel.name}__emu" for kernel in new), *_VARIABLES]
            *addresses, message, order = self._load(_translated(new), names)
            for kernel, address in zip(new, addresses, strict=True):
                self._kernels[kernel.name] = _Kernel(address, order, message)
        return {k.name: ctypes.addressof(self._kernels[k.name]) for k in wanted}

    def _load(self, source: str, names: Sequence[str]) -> list[int]:
        found = load_all([(source, names)], self._target())
        if found is None:
            raise DeviceUnavailable("the device 'emu' needs a C++ compiler that works")
        return found[0]

    def stream(self) -> _Stream:
        """Return the functions that record work and run it."""
        if self._stream is None:
            source = (files("symcomp.gpu.driver") / "emustream.h").read_text(encoding="utf-8")
            self._stream = _Stream(self._load(source, _STREAM))
        return self._stream

    # -- the queue

    def _put(
        self, work: Callable[[], Any], *held: Any, kind: str = "", label: str = "", nbytes: int = 0
    ) -> None:
        timeline = CURRENT.get()
        if timeline is not None and kind:
            work = self._timed(timeline, work, kind, label, nbytes)
        self._queue.append((work, held))
        if not self.lazy:
            self._drain()

    def _timed(
        self, timeline: Timeline, work: Callable[[], Any], kind: str, label: str, nbytes: int
    ) -> Callable[[], None]:
        """Return work that adds its time to a timeline when it is done."""
        timeline.expect(self)

        def run() -> None:
            start = time.perf_counter_ns()
            work()
            duration = time.perf_counter_ns() - start
            timeline.add(Timed(self.name, kind, label, start, duration, nbytes))

        return run

    def _drain(self) -> None:
        self.run_until(lambda: False)

    def run_until(self, reached: Callable[[], bool]) -> None:
        """Do the work that waits, up to where ``reached`` holds; what follows an error is left
        out.
        """
        with self.lock:
            while self._queue and not reached():
                work, _ = self._queue.popleft()
                try:
                    work()
                except DeviceError:
                    self._queue.clear()
                    raise

    def enqueue(self, work: Work, bases: list[int], held: Sequence[Memory]) -> None:
        batch = _Batch(self.stream())
        code, _ = work.enqueue(batch.stream.enqueuing, batch.address, bases)
        if code:
            raise MemoryError(f"{self.name}: the work of a plan cannot be recorded")
        self.counters.launches += work.launches
        self.counters.within += work.copied
        own = [(m.address, m.nbytes) for m in held if isinstance(m.block, _Block)]
        blocks = np.array(own, "uint64").reshape(-1, 2)
        timeline = CURRENT.get()
        if timeline is not None:
            timeline.expect(self)

        def run() -> None:
            failed, said, times = batch.run(self.order, blocks, timeline is not None)
            if failed >= 0:
                label = next(islice(work.each_call(), failed, None)).label or "kernel"
                problem = said or "wrote outside of its arrays"
                raise DeviceError(f"{label} on {self.name}: {problem}")
            if timeline is not None:
                for call, (start, end) in zip(work.each_call(), times.tolist(), strict=True):
                    kind = KINDS[call.kind]
                    timeline.add(
                        Timed(self.name, kind, call.label, start, end - start, call.nbytes)
                    )

        self._put(run, held)

    def to_device(self, target: Memory, offset: int, source: np.ndarray) -> None:
        self.counters.to_device += source.nbytes
        content = source.tobytes()
        self._put(
            lambda: _move(target.address + offset, content, len(content)),
            target, kind="to device", nbytes=len(content),
        )  # fmt: skip

    def to_host(self, target: np.ndarray, source: Memory, offset: int) -> None:
        self.counters.to_host += target.nbytes
        self._put(
            lambda: _move(target.ctypes.data, source.address + offset, target.nbytes),
            target, source, kind="to host", nbytes=target.nbytes,
        )  # fmt: skip

    def within(self, target: Memory, to: int, source: Memory, start: int, nbytes: int) -> None:
        self.counters.within += nbytes
        self._put(
            lambda: _move(target.address + to, source.address + start, nbytes),
            target, source, kind="copy", nbytes=nbytes,
        )  # fmt: skip

    def mark(self) -> DeviceEvent:
        event = _Mark(self)
        self._put(event.reach)
        return event

    def wait(self) -> None:
        self.counters.waits += 1
        self._drain()
        if self._fault[0]:
            words = self._fault.copy()
            self._fault[:] = 0
            raise self.tickets.error(words)

    def wait_for_others(self) -> None:
        pass  # the host's memory is filled when others tell of it

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return 1, 0

    @property
    def stream_number(self) -> int | None:
        return None

    def fault_address(self) -> int:
        return int(self._fault.ctypes.data)

    def memory_info(self) -> MemoryInfo:
        pages = _memory_of_machine()
        return MemoryInfo(pages[0], pages[1], self.pool.used, self.pool.cached)


_VARIABLES = ("cuemu_errmsg", "cuemu_schedule")
_STREAM = ("emu_begin", "emu_drop", "emu_count", "emu_run", "emu_launch", "emu_copy", "emu_fill")
_move = ctypes.memmove


def _translated(kernels: Sequence[CudaKernel]) -> str:
    """Return the C++ of kernels: the emulator, their source, and an entry for each."""
    header = (files("symcomp.gpu.driver") / "cuemu.h").read_text(encoding="utf-8")
    source = file_of([kernel.text for kernel in kernels])
    exports = [
        f"CUEMU_EXPORT{'' if kernel.barriers else '_ALONE'}({kernel.name})" for kernel in kernels
    ]
    return "\n".join([header, '#line 1 "kernel.cu"', source, *exports, ""])


def _memory_of_machine() -> tuple[int, int]:
    """Return the free bytes and all bytes of the machine's memory; zeros if they are unknown."""
    found = {"MemAvailable:": 0, "MemTotal:": 0}
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                name, *rest = line.split()
                if name in found:
                    found[name] = 1024 * int(rest[0])
    except OSError:
        pass  # not Linux
    return found["MemAvailable:"], found["MemTotal:"]
