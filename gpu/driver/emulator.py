"""The emulator: a device whose kernels are compiled by a C++ compiler and run on the processor.

It is for programs without a card, and for tests, as it finds errors that cards hide: work is done
only when the host waits (a missing wait gives NaN), fresh memory is filled with 0xFF, freed memory
with 0xDD, writes past the end of a block are noticed, the threads of a block run in several orders,
and barriers that not all threads reach are errors. ``cuemu.h`` has the words of CUDA C,
``cuemu_threads.h`` the threads.
"""

from __future__ import annotations

import ctypes
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np

from symcomp.codegen.compiler.driver import Target, load_all, target
from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.codegen.functions.c_library import c_library
from symcomp.config import config
from symcomp.cvm.machine import DeviceLibrary, DeviceMemory, library_caller
from symcomp.gpu.driver.interface import FAULT_WORDS, DeviceEvent, Driver, MemoryInfo, Work
from symcomp.gpu.driver.timeline import CURRENT, KINDS, Timed, Timeline
from symcomp.gpu.errors import DeviceError, DeviceUnavailable

FLAGS = (
    "-std=c++17", "-O1", "-march=native", "-fPIC", "-shared", "-w", "-U_FORTIFY_SOURCE",
    "-fno-exceptions", "-fno-rtti", "-nostdinc++", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fwrapv", "-Wl,-Bsymbolic", "-nostdlib", "-pipe", "-x", "c++",
)  # fmt: skip
# Orders in which the threads of a block run: forwards, backwards, and shuffled.
ORDERS = (0, 1, 2)
OUT_OF_MEMORY = 2  # CUDA's code


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


class _Library:
    """The functions of ``emustream.h``."""

    def __init__(self, addresses: Sequence[int]) -> None:
        begin, drop, run, *others = addresses
        pointer, number = ctypes.c_void_p, ctypes.c_longlong
        self.begin = ctypes.CFUNCTYPE(pointer)(begin)
        self.drop = ctypes.CFUNCTYPE(None, pointer)(drop)
        self.run = ctypes.CFUNCTYPE(
            number, pointer, number, number, ctypes.c_int, pointer, number, pointer, pointer
        )(run)
        self.machine = dict(zip(_OF_MACHINE, others, strict=True))


class _Batch:
    """The work of plans, recorded one after another.

    Attributes
    ----------
    address : int
    log : list of (Work, list of DeviceMemory)
        The plans, and what each reads and writes.
    """

    def __init__(self, device: Emulator, library: _Library, timeline: Timeline | None) -> None:
        self._device, self._library, self._timeline = device, library, timeline
        self.log: list[tuple[Work, list[DeviceMemory]]] = []
        self.address = library.begin()
        if not self.address:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._library.drop(self.address)

    def run(self) -> None:
        """Do the work.

        Raises
        ------
        DeviceError
            If a piece of it fails; what follows is left out.
        """
        first = 0
        for work, held in self.log:
            self._run(first, work, held)
            first += work.native.pieces

    def _run(self, first: int, work: Work, held: list[DeviceMemory]) -> None:
        timeline, device, n = self._timeline, self._device, work.native.pieces
        own = [(m.address, m.size) for m in held if m.is_pooled]
        blocks = np.array(own, "uint64").reshape(-1, 2)
        said = ctypes.c_char_p()
        times = np.zeros((0 if timeline is None else n, 2), "int64")
        failed = self._library.run(
            self.address, first, n, device.order, blocks.ctypes.data, len(blocks),
            None if timeline is None else times.ctypes.data, ctypes.byref(said),
        )  # fmt: skip
        if failed >= 0:
            label = next(islice(work.each_call(), failed, None)).label or "kernel"
            problem = (said.value or b"").decode() or "wrote outside of its arrays"
            raise DeviceError(f"{label} on {device.name}: {problem}")
        if timeline is not None:
            for call, (start, end) in zip(work.each_call(), times.tolist(), strict=True):
                kind = KINDS[call.kind]
                timeline.add(Timed(device.name, kind, call.label, start, end - start, call.nbytes))


class Emulator(Driver):
    """The devices ``"emu"``, ``"emu1"``, ...: they share nothing but a lock.

    Parameters
    ----------
    lazy : bool
        Whether work runs when its results are waited for; else when it is enqueued.
    order : int
        In which order the threads of a block run between barriers; see ``ORDERS``.
    keeps_blocks : bool
        Whether blocks are used again, as on cards. If not, reads of freed memory are noticed.
    number : int
    """

    #: Fibers, what kernels call shared memory, and the batch in which the machine records are one
    #: for all threads of the host; and emulators wait for each other: so one lock is for all.
    common_lock = threading.RLock()

    def __init__(
        self, lazy: bool = True, order: int = 0, keeps_blocks: bool = False, number: int = 0
    ) -> None:
        super().__init__()
        self.name, self.arch = f"emu{number or ''}", "emu"
        self.lazy, self.order = lazy, order
        self.lock, self.library_paths = self.common_lock, {}
        self._queue: deque[tuple[Callable[[], Any], Any]] = deque()
        self._fault = np.zeros(FAULT_WORDS, "int64")
        self._kernels: dict[str, int] = {}
        source = "\n".join([beginning(), *map(_header, ("cuemu_threads.h", "emustream.h"))])
        self._library = _Library(self._load(source, [*_OF_EMULATOR, *_OF_MACHINE.values()]))
        self.open(DeviceLibrary(self._library.machine), keeps_blocks, is_recorded=True)
        self._recorder = _Batch(self, self._library, None)
        self.queue.recorder = self._recorder.address

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
            addresses = self._load(_translated(new), [f"{kernel.name}__emu" for kernel in new])
            for kernel, address in zip(new, addresses, strict=True):
                # Plans have the address of the first, if several threads load it at once.
                self._kernels.setdefault(kernel.name, address)
        return {k.name: self._kernels[k.name] for k in wanted}

    def _load(self, source: str, names: Sequence[str]) -> list[int]:
        found = load_all([(source, names)], self._target())
        if found is None:
            raise DeviceUnavailable("the device 'emu' needs a C++ compiler that works")
        return found[0]

    # -- the queue

    def _put(
        self, work: Callable[[], Any], *held: Any, kind: str = "", label: str = "", nbytes: int = 0
    ) -> None:
        timeline = CURRENT.get()
        if timeline is not None and kind:
            work = self._timed(timeline, work, kind, label, nbytes)
        with self.lock:
            self._close()
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
                self._close()
                work, _ = self._queue.popleft()
                try:
                    work()
                except DeviceError:
                    self._queue.clear()
                    raise

    def enqueue(self, work: Work, bases: list[int], held: Sequence[DeviceMemory]) -> None:
        timeline = CURRENT.get()
        batch = _Batch(self, self._library, timeline)
        functions = tuple(self._library.machine[name] for name in ("launch", "copy", "fill"))
        functions += (library_caller(),)
        code, call = work.native.enqueue(functions, batch.address, bases)
        if code:
            self.refuse(work, code, call)
        self.counters.launches += work.native.launches
        self.counters.within += work.native.copied
        batch.log.append((work, [*held]))
        if timeline is not None:
            timeline.expect(self)
        self._put(batch.run)

    def begin(self) -> None:
        """Let the machine record in a batch until something else is enqueued, or work runs."""
        if not self.lazy:
            return
        batch = _Batch(self, self._library, None)
        with self.lock:
            self._put(batch.run)
            self.queue.log, self.queue.address = batch.log, batch.address

    def _close(self) -> None:
        """Let the machine record no more in the last batch."""
        self.queue.address = 0  # first: the machine looks at it
        self.queue.log = None

    def message(self, code: int) -> str:
        return "no memory" if code == OUT_OF_MEMORY else f"error {code}"

    def to_device(self, target: DeviceMemory, offset: int, source: np.ndarray) -> None:
        self.counters.to_device += source.nbytes
        content = source.tobytes()
        self._put(
            lambda: _move(target.address + offset, content, len(content)),
            target, kind="to device", nbytes=len(content),
        )  # fmt: skip

    def to_host(self, target: np.ndarray, source: DeviceMemory, offset: int) -> None:
        self.counters.to_host += target.nbytes
        self._put(
            lambda: _move(target.ctypes.data, source.address + offset, target.nbytes),
            target, source, kind="to host", nbytes=target.nbytes,
        )  # fmt: skip

    def within(
        self, target: DeviceMemory, to: int, source: DeviceMemory, start: int, nbytes: int
    ) -> None:
        self.counters.within += nbytes
        self._put(
            lambda: _move(target.address + to, source.address + start, nbytes),
            target, source, kind="copy", nbytes=nbytes,
        )  # fmt: skip

    def from_peer(
        self, target: DeviceMemory, to: int, peer: Emulator, source: DeviceMemory, start: int,
        nbytes: int,
    ) -> None:  # fmt: skip
        self.counters.from_peers += nbytes
        with self.lock:
            ready, copied = _Mark(peer), _Mark(self)
            peer._put(ready.reach)

            def copy() -> None:
                peer.run_until(ready.done)
                _move(target.address + to, source.address + start, nbytes)
                copied.reach()

            self._put(copy, target, source, kind="from a device", nbytes=nbytes)
            peer._put(lambda: self.run_until(copied.done))

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


_OF_EMULATOR = ("emu_begin", "emu_drop", "emu_run")
# Functions like those of CUDA's driver, by the names that the machine has for them.
_OF_MACHINE = {
    name: f"emu_{name}"
    for name in (
        "launch", "copy", "fill", "take", "give", "begin_capture", "end_capture", "instantiate",
        "launch_graph", "drop_graph", "drop_made",
    )
}  # fmt: skip
_move = ctypes.memmove


def _translated(kernels: Sequence[CudaKernel]) -> str:
    """Return the C++ of kernels: the emulator, their source, and an entry for each."""
    source = file_of([kernel.text for kernel in kernels])
    exports = [
        f"CUEMU_EXPORT{'' if kernel.barriers else '_ALONE'}({kernel.name})" for kernel in kernels
    ]
    return "\n".join([beginning(), '#line 1 "kernel.cu"', source, *exports, ""])


def beginning() -> str:
    """Return what each file begins with."""
    return "\n".join(['extern "C" {', c_library(), "}", _header("cuemu.h")])


@cache
def _header(name: str) -> str:
    return (files("symcomp.gpu.driver") / name).read_text(encoding="utf-8")


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
