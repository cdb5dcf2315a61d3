"""Cards by PyCUDA: the only file that imports it, when a card is first asked for.

Kernels are loaded by functions of the driver's library itself, as PyCUDA does not give their
handles, which the machine launches them by.

The primary context is used, which other libraries in the process share; all work is on one stream
that does not wait for the default stream.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.cvm.machine import DEVICE_TIMELINE, DeviceLibrary, library_caller
from symcomp.gpu.driver.compiler import cubins
from symcomp.gpu.driver.interface import (
    FAULT_BYTES,
    FAULT_WORDS,
    Driver,
    MemoryInfo,
    Result,
    Work,
)
from symcomp.gpu.driver.timeline import KINDS, MOST_EVENTS, Pending, Timed, Timeline
from symcomp.gpu.errors import DeviceError, DeviceUnavailable
from symcomp.lazy import lazy_module

pycuda_driver: Any = lazy_module("pycuda.driver")


def _pycuda() -> Any:
    """Return ``pycuda.driver``, initialized."""
    try:
        failure = pycuda_driver.Error  # not an error of Python's own
    except ImportError as problem:
        raise DeviceUnavailable(
            f"no card can be used, as PyCUDA cannot be loaded ({problem}): install NVIDIA's driver "
            "and PyCUDA (pip install symcomp[cuda]), or use device=emu or device=cpu"
        ) from None
    try:
        pycuda_driver.init()
    except failure as problem:
        raise DeviceUnavailable(
            f"no card can be used ({problem}): there is none, or it is not visible "
            "(CUDA_VISIBLE_DEVICES); use device=emu or device=cpu"
        ) from None
    return pycuda_driver


# The types of cuLaunchKernel, cuMemcpyDtoDAsync and cuMemsetD8Async, and of what calls functions of
# libraries.
_PROTOTYPES = (
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3),
    ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
    ),
    ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p
    ),
    ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    ),
)


# The functions of the driver by the names that the machine has for them.
_FUNCTIONS = {
    "launch": "cuLaunchKernel", "copy": "cuMemcpyDtoDAsync_v2", "fill": "cuMemsetD8Async",
    "take": "cuMemAlloc_v2", "give": "cuMemFree_v2",
    "enter": "cuCtxPushCurrent_v2", "leave": "cuCtxPopCurrent_v2",
    "begin_capture": "cuStreamBeginCapture_v2", "end_capture": "cuStreamEndCapture",
    "instantiate": "cuGraphInstantiateWithFlags", "launch_graph": "cuGraphLaunch",
    "drop_graph": "cuGraphDestroy", "drop_made": "cuGraphExecDestroy",
    "to_device": "cuMemcpyHtoDAsync_v2", "to_host": "cuMemcpyDtoHAsync_v2",
    "wait": "cuStreamSynchronize", "take_pinned": "cuMemHostAlloc", "give_pinned": "cuMemFreeHost",
    "make_event": "cuEventCreate", "drop_event": "cuEventDestroy_v2", "record": "cuEventRecord",
    "query": "cuEventQuery", "follow": "cuStreamWaitEvent", "from_peer": "cuMemcpyPeerAsync",
}  # fmt: skip


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


class _Library:
    """Functions of the library of the driver, which PyCUDA has loaded."""

    def __init__(self) -> None:
        name = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
        self._library = ctypes.CDLL(name)
        # For the machine.
        self.addresses = {
            ours: _address(getattr(self._library, name)) for ours, name in _FUNCTIONS.items()
        }
        self.enqueuing = tuple(self.addresses[name] for name in ("launch", "copy", "fill"))
        self.enqueuing += (library_caller(),)

    def context(self) -> int:
        """Return the context of this thread; 0: it has none."""
        found = ctypes.c_void_p()
        self._library.cuCtxGetCurrent(ctypes.byref(found))
        return found.value or 0

    def kernel(self, image: bytes, name: str) -> int:
        """Return the handle of a kernel of a module, which is loaded in the current context."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = self._library.cuModuleLoadData(ctypes.byref(module), image)
        if not code:
            code = self._library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        if code or function.value is None:
            raise DeviceError(f"the kernel {name} cannot be loaded: {self.message(code)}")
        return function.value

    def message(self, code: int) -> str:
        """Return what the driver says of an error."""
        said = ctypes.c_char_p()
        self._library.cuGetErrorString(code, ctypes.byref(said))
        return said.value.decode() if said.value else f"error {code}"


def count_cards() -> int:
    """Return how many cards there are; 0 where none can be used."""
    try:
        return int(_pycuda().Device.count())
    except DeviceUnavailable:
        return 0


def describe_cards() -> list[tuple[str, str]]:
    """Return name and properties of each card; of none, why there is none."""
    try:
        drv = _pycuda()
    except DeviceUnavailable as problem:
        return [("cards", str(problem))]
    found = [("driver", ".".join(str(drv.get_driver_version() // n % 1000) for n in (1000, 10)))]
    for i in range(drv.Device.count()):
        card = drv.Device(i)
        major, minor = card.compute_capability()
        gib = card.total_memory() / 2**30
        found.append((f"cuda{i}", f"{card.name()}, compute {major}.{minor}, {gib:.1f} GiB"))
    return found


Method = TypeVar("Method", bound=Callable[..., Any])


def _in_context(method: Method) -> Method:
    """Let a method run in any thread, and beside other cards: PyCUDA's contexts are those of
    threads, and a thread has one at a time.
    """

    @functools.wraps(method)
    def entered(self: CudaDriver, *args: Any) -> Any:
        if self.is_current():
            return method(self, *args)
        with self.lock:
            self.context.push()
            try:
                return method(self, *args)
            finally:
                self.context.pop()

    return entered  # type: ignore[return-value]


class CudaDriver(Driver):
    """A card.

    Parameters
    ----------
    number : int
    """

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.drv = drv = _pycuda()
        count = drv.Device.count()
        if number >= count:
            raise DeviceUnavailable(f"there is no device cuda{number}: there are {count} cards")
        self.name, self.number = f"cuda{number}", number
        card = drv.Device(number)
        self.arch = "sm_{}{}".format(*card.compute_capability())
        self.context = card.retain_primary_context()
        self.context.push()
        self.stream = drv.Stream(1)  # CU_STREAM_NON_BLOCKING
        self._library = _Library()
        self._own = self._library.context()
        self.open(DeviceLibrary(self._library.addresses, self._own))
        self._recorder = drv.Stream(1)
        self.queue.address = int(self.stream.handle)
        self.queue.recorder = int(self._recorder.handle)
        flags = drv.host_alloc_flags.DEVICEMAP
        words: Any = drv.pagelocked_zeros(FAULT_WORDS, np.int64, mem_flags=flags)
        self.words_of_fault, self._fault = words, int(words.base.get_device_pointer())
        assert self.words_of_fault.nbytes == FAULT_BYTES
        self.queue.fault = int(self.words_of_fault.ctypes.data)
        self._kernels: dict[str, int] = {}
        # For profiles: an event at a known time, and work with the events around it.
        self._clock: Any = None
        self._clock_start = 0
        self._times: Pending[tuple[Timeline, str, str, int, Any, Any]] = Pending()
        # A context that a thread leaves on the stack at its end makes PyCUDA abort the process.
        if threading.current_thread() is threading.main_thread():
            atexit.register(self.context.pop)
        else:
            self.context.pop()

    @_in_context
    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        new = {k.name: k for k in wanted if k.name not in self._kernels}
        sources = [file_of([kernel.text]) for kernel in new.values()]
        for name, made in zip(new, cubins(sources, self.arch, self.counters), strict=True):
            self._kernels[name] = self._library.kernel(made, name)
        return {k.name: self._kernels[k.name] for k in wanted}

    @_in_context
    def enqueue(self, work: Work, bases: list[int]) -> None:
        timed = self._timed(work)
        functions = tuple(map(_address, timed))
        code, call = work.native.enqueue(functions, int(self.stream.handle), bases)
        if code:
            self.refuse(work, code, call)

    @_in_context
    def in_context(self, function: Callable[..., Result], *given: Any) -> Result:
        return function(*given)

    def message(self, code: int) -> str:
        return self._library.message(code)

    def is_current(self) -> bool:
        """Tell whether the context of this thread is that of the card."""
        return self._library.context() == self._own

    @contextmanager
    def timing(self, kind: str, nbytes: int, label: str = "") -> Iterator[None]:
        """Put events around the work that is enqueued within, if a timeline is set."""
        timeline = DEVICE_TIMELINE.get()
        if timeline is None:
            yield
            return
        if self._clock is None:
            self._start_clock()
        timeline.expect(self)
        self.queue.has_times = True
        start = self._event()
        yield
        self._times.add((timeline, kind, label, nbytes, start, self._event()))
        if len(self._times) >= MOST_EVENTS:
            self._catch_up(self._times.added)

    def _timed(self, work: Work) -> list[Any]:
        """Return the functions that enqueue, with events around each piece of this work."""
        calls = work.each_call()

        def timed(prototype: Any, address: int) -> Any:
            function = prototype(address)

            def run(*given: Any) -> int:
                call = next(calls)
                with self.timing(KINDS[call.kind], call.nbytes, call.label):
                    code: int = function(*given)
                return code

            return prototype(run)

        return list(map(timed, _PROTOTYPES, self._library.enqueuing))

    @_in_context
    def _start_clock(self) -> None:
        self._clock = self._event()
        self._clock.synchronize()
        self._clock_start = time.perf_counter_ns()

    @_in_context
    def _catch_up(self, upto: int) -> None:
        """Wait for the times of all work up to this count."""
        self._event().synchronize()
        self.collect_times(upto)

    @_in_context
    def _event(self) -> Any:
        event = self.drv.Event()
        event.record(self.stream)
        return event

    def _collect_time(self, timed: tuple[Timeline, str, str, int, Any, Any]) -> None:
        """Add the time of work that is done to its timeline."""
        timeline, kind, label, nbytes, start, end = timed
        begin = self._clock_start + round(1e6 * self._clock.time_till(start))
        duration = round(1e6 * start.time_till(end))
        timeline.add(Timed(self.name, kind, label, begin, duration, nbytes))

    def times_enqueued(self) -> int:
        return self._times.added

    @_in_context
    def collect_times(self, upto: int) -> None:
        self._times.finish(upto, self._collect_time)
        self.queue.has_times = len(self._times) > 0

    def failure(self, code: int) -> Exception:
        return DeviceError(f"{self.name}: {self.message(code)}")

    @_in_context
    def wait_for_others(self) -> None:
        self.context.synchronize()

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return 2, self.number

    @property
    def stream_number(self) -> int | None:
        return int(self.stream.handle)

    def fault_address(self) -> int:
        return self._fault

    @_in_context
    def memory_info(self) -> MemoryInfo:
        free, total = self.drv.mem_get_info()
        return MemoryInfo(int(free), int(total), self.pool.used, self.pool.cached)
