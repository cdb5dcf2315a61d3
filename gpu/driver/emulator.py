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
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import ClassVar, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from symcomp.codegen.compiler import links
from symcomp.codegen.compiler.driver import Target, load_all, target
from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.codegen.functions.c_library import c_library
from symcomp.config import config
from symcomp.cvm.machine import DeviceLibrary
from symcomp.gpu.driver.interface import FAULT_WORDS, Driver, MemoryInfo, Work
from symcomp.gpu.driver.timeline import KINDS, Timed, Timeline
from symcomp.gpu.errors import DeviceError, DeviceUnavailable

FLAGS = (
    "-std=c++17", "-O1", "-march=native", "-fPIC", "-shared", "-w", "-U_FORTIFY_SOURCE",
    "-fno-exceptions", "-fno-rtti", "-nostdinc++", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fwrapv", "-Wl,-Bsymbolic", "-nostdlib", "-pipe", "-x", "c++",
)  # fmt: skip
# Orders in which the threads of a block run: forwards, backwards, and shuffled.
ORDERS = (0, 1, 2)
OUT_OF_MEMORY, FAILED = 2, 719  # CUDA's codes


class _Library:
    """The functions of ``emustream.h``, which are called with the GIL."""

    def __init__(self, addresses: Sequence[int]) -> None:
        begin, drop, failure, order, times, *others = addresses
        pointer, number, flag = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int
        function = ctypes.PYFUNCTYPE
        self.begin = function(pointer, flag)(begin)
        self.drop = function(None, pointer)(drop)
        self.failure = function(ctypes.c_char_p, pointer, pointer, pointer)(failure)
        self.order = function(None, pointer, flag)(order)
        self.times = function(None, pointer, number, pointer)(times)
        self.machine = dict(zip(_OF_MACHINE, others, strict=True))


class _Piece(NamedTuple):
    """A piece of work whose times are wanted."""

    timeline: Timeline
    kind: str
    label: str
    nbytes: int


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

    #: By the addresses of their streams.
    _emulators: ClassVar[WeakValueDictionary[int, Emulator]] = WeakValueDictionary()

    def __init__(
        self, lazy: bool = True, order: int = 0, keeps_blocks: bool = False, number: int = 0
    ) -> None:
        super().__init__()
        self.name, self.arch, self.library_paths = f"emu{number or ''}", "emu", {}
        self.words_of_fault = np.zeros(FAULT_WORDS, "int64")
        self._kernels: dict[str, int] = {}
        # How many times were read; by one thread at a time, which may wait once more where it
        # collects garbage.
        self._n_read, self._reading = 0, threading.RLock()
        source = "\n".join([beginning(), *map(_header, ("cuemu_threads.h", "emustream.h"))])
        self._library = _Library(self._load(source, [*_OF_EMULATOR, *_OF_MACHINE.values()]))
        self.open(DeviceLibrary(self._library.machine), keeps_blocks, is_recorded=True)
        self._stream, self._recorder = self._library.begin(not lazy), self._library.begin(False)
        if not self._stream or not self._recorder:
            raise MemoryError
        self.queue.address, self.queue.recorder = self._stream, self._recorder
        self.queue.fault = self.fault_address()
        self._emulators[self._stream] = self
        self.order = order

    def __del__(self) -> None:
        for stream in (getattr(self, "_stream", None), getattr(self, "_recorder", None)):
            if stream:
                self._library.drop(stream)
        if hasattr(self, "queue"):
            self.queue.pinned.empty()

    @property
    def order(self) -> int:
        """In which order the threads of a block run."""
        return self._order

    @order.setter
    def order(self, order: int) -> None:
        self._order = order
        self._library.order(self._stream, order)

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
        for name, address in self._addresses(new).items() if new else ():
            # Plans have the address of the first, if several threads load it at once.
            self._kernels.setdefault(name, address)
        return {k.name: self._kernels[k.name] for k in wanted}

    def _addresses(self, kernels: Sequence[CudaKernel]) -> dict[str, int]:
        """Return the functions of kernels by name, of which files of others may have some."""
        how = self._target()
        alone = {kernel.name: _translated([kernel]) for kernel in kernels}
        known = {name: links.find(how, text, f"{name}__emu") for name, text in alone.items()}
        found = {name: address for name, address in known.items() if address is not None}
        missing = [kernel for kernel in kernels if kernel.name not in found]
        if missing:
            names = [kernel.name for kernel in missing]
            source = _translated(missing)
            addresses = self._load(source, [f"{name}__emu" for name in names])
            links.add(how, source, [alone[name] for name in names])
            found.update(zip(names, addresses, strict=True))
        return found

    def _load(self, source: str, names: Sequence[str]) -> list[int]:
        found = load_all([(source, names)], self._target())
        if found is None:
            raise DeviceUnavailable("the device 'emu' needs a C++ compiler that works")
        return found[0]

    def pieces_of(self, timeline: Timeline, work: Work) -> list[_Piece]:
        """Return the pieces of a plan, whose times are wanted."""
        timeline.expect(self)
        return [
            _Piece(timeline, KINDS[one.kind], one.label, one.nbytes) for one in work.each_call()
        ]

    def piece(self, timeline: Timeline, kind: str, nbytes: int) -> _Piece:
        """Return a copy, whose times are wanted."""
        timeline.expect(self)
        return _Piece(timeline, kind, "", nbytes)

    def collect_times(self, upto: int) -> None:
        with self._reading:
            while self._n_read < upto and self.queue.timed:
                self._n_read += 1
                self._collect_time(*self.queue.timed.popleft())

    def _collect_time(self, number: int, piece: _Piece) -> None:
        """Add the time of a piece to its timeline, unless it was left out after an error."""
        timeline, kind, label, nbytes = piece
        times = (ctypes.c_int64 * 2)()
        self._library.times(self._stream, number, times)
        start, end = times
        if end:
            timeline.add(Timed(self.name, kind, label, start, end - start, nbytes))

    def failure(self, code: int) -> Exception:
        where, number = ctypes.c_void_p(), ctypes.c_uint64()
        said = self._library.failure(self._stream, ctypes.byref(where), ctypes.byref(number))
        failed = self._emulators[where.value or 0]
        return DeviceError(f"{failed._label(number.value)} on {failed.name}: {said.decode()}")

    def _label(self, number: int) -> str:
        """Return what a piece of work is of."""
        for first, end, work, _ in self.queue.log:
            if first <= number < end and work is not None:
                return next(islice(work.each_call(), number - first, None)).label or "kernel"
        return "a copy"

    def message(self, code: int) -> str:
        if code == FAILED:
            said = self._library.failure(
                self._stream, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_uint64())
            )
            return str(said.decode())
        return "no memory" if code == OUT_OF_MEMORY else f"error {code}"

    def wait_for_others(self) -> None:
        pass  # the host's memory is filled when others tell of it

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return 1, 0

    @property
    def stream_number(self) -> int | None:
        return None

    def fault_address(self) -> int:
        return int(self.words_of_fault.ctypes.data)

    def memory_info(self) -> MemoryInfo:
        pages = _memory_of_machine()
        return MemoryInfo(pages[0], pages[1], self.pool.used, self.pool.cached)


_OF_EMULATOR = tuple(
    f"emu_{name}"
    for name in ("begin", "drop", "failure", "order", "times")
)
# Functions like those of CUDA's driver, by the names that the machine has for them.
_OF_MACHINE = {
    name: f"emu_{name}"
    for name in (
        "launch", "copy", "fill", "take", "give", "begin_capture", "end_capture", "instantiate",
        "launch_graph", "drop_graph", "drop_made", "to_device", "to_host", "wait", "take_pinned",
        "give_pinned", "make_event", "drop_event", "record", "query", "follow",
        "from_peer", "hold", "count", "time",
    )
}  # fmt: skip


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
