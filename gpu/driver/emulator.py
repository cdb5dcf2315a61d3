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
from typing import Any

import numpy as np

from symcomp.codegen.compiler.driver import Target, load_all, target
from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.config import config
from symcomp.gpu.driver.interface import (
    FAULT_WORDS,
    Driver,
    Event,
    Launch,
    Memory,
    MemoryInfo,
    Pool,
)
from symcomp.gpu.driver.timeline import CURRENT, Timed, Timeline
from symcomp.gpu.errors import DeviceError, DeviceUnavailable

# Bytes before and after a block that nothing may write.
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

    def is_intact(self) -> bool:
        start = self.address - self.raw.ctypes.data
        before = self.raw[start - CANARY : start]
        after = self.raw[start + self.nbytes : start + self.nbytes + CANARY]
        return bool((before == UNUSED).all() and (after == UNUSED).all())


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


class _Mark(Event):
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


class _Kernel:
    """A function of a library, and the variables of the emulator in it."""

    def __init__(self, address: int, message: int, order: int) -> None:
        self.run = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p,
            ctypes.c_size_t,
        )(address)  # fmt: skip
        self.message = (ctypes.c_char * 512).from_address(message)
        self.order = ctypes.c_int.from_address(order)


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

    def _target(self) -> Target:
        found = target()
        if found is None:
            raise DeviceUnavailable(
                "the device 'emu' needs a C++ compiler: install g++ (Debian, Ubuntu: apt install "
                "g++; Fedora: dnf install gcc-c++)"
            )
        return Target(found.compiler, (*FLAGS, *shlex.split(config.cflags)), found.directory)

    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, _Kernel]:
        new = sorted({k for k in wanted if k.name not in self._kernels}, key=lambda k: k.name)
        if new:
            names = [*(f"{kernel.name}__emu" for kernel in new), *_VARIABLES]
            found = load_all([(_translated(new), names)], self._target())
            if found is None:
                raise DeviceUnavailable("the device 'emu' needs a C++ compiler that works")
            *addresses, message, order = found[0]
            for kernel, address in zip(new, addresses, strict=True):
                self._kernels[kernel.name] = _Kernel(address, message, order)
        return {k.name: self._kernels[k.name] for k in wanted}

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

    def launch(self, launch: Launch, uses: Sequence[Memory], parameters: bytearray) -> None:
        self.counters.launches += 1
        kernel, held = launch.kernel, tuple(uses)
        sizes = [(ctypes.c_uint * 3)(*three) for three in (launch.grid, launch.block)]
        given = bytes(parameters)

        def work() -> None:
            kernel.order.value = self.order
            if kernel.run(*sizes, launch.shared, given, len(given)):
                said = kernel.message.value.decode()
                raise DeviceError(f"{launch.label or 'kernel'} on {self.name}: {said}")
            if not all(memory.block.is_intact() for memory in held):
                raise DeviceError(
                    f"{launch.label or 'kernel'} on {self.name}: wrote outside of its arrays"
                )

        self._put(work, held, kind="kernel", label=launch.label, nbytes=launch.nbytes)

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

    def clear(self, target: Memory, offset: int, nbytes: int) -> None:
        self._put(
            lambda: _set(target.address + offset, 0, nbytes), target, kind="clear", nbytes=nbytes
        )

    def mark(self) -> Event:
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
_move, _set = ctypes.memmove, ctypes.memset


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
