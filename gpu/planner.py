"""Plans of device programs: launches with their parameters, for one set of layouts.

The planner is handed layouts and emits calls; it computes nothing. What it leaves is a ``Plan``: a
list of calls on storages (inputs, constants, one arena, outputs), run by ``execution.py``. A loop
is one call with the calls of a step, which use storages that move from step to step.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any, TypeVar

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.core.node import Variable
from symcomp.core.record import record
from symcomp.cvm.machine import WIDEST, DeviceMemory
from symcomp.gpu.arena import place_values
from symcomp.gpu.driver.interface import Driver, Failure, Library
from symcomp.gpu.merging import Merging
from symcomp.gpu.native import NativePlan
from symcomp.gpu.plan import DeviceCall, DeviceStorage, Launch, LoopStep, Motion, Plan, all_calls

LARGEST_32 = 2**31 - 1
Made = TypeVar("Made")
# More blocks than this take the same time as loops in the blocks.
MOST_BLOCKS = 16384


@record
class Operand:
    """An array on the device while a plan is made.

    Attributes
    ----------
    storage : int
        Of the plan.
    offset : int
        Of the first element, in bytes.
    dtype : str
    shape, strides : tuple of int
        Strides are in bytes.
    """

    storage: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(math.prod(self.shape))

    @property
    def itemsize(self) -> int:
        return int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether elements lie in C order without gaps."""
        expected = self.itemsize
        for n, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and step != expected and self.size:
                return False
            expected *= n
        return True

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Operand:
        """Return another view of the same memory, ``offset`` bytes further."""
        return Operand(self.storage, self.offset + offset, self.dtype, tuple(shape), tuple(strides))


def contiguous_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides of an array in C order."""
    found, step = [], itemsize
    for n in reversed(shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


class Planner:
    """Makes a plan.

    Parameters
    ----------
    driver : Driver
    constants : dict
        Constants that are on the device, by their bytes: kept from plan to plan.
    products : str
        How cuBLAS multiplies float32: an entry of ``config.gpu_products``.
    atomics : bool
        Whether floats may be added in an order that depends on time.
    has_parts : bool
        Whether chunks of the steps of long loops are graphs of their own.
    """

    def __init__(
        self,
        driver: Driver,
        constants: dict[Any, DeviceMemory],
        products: str = "full",
        atomics: bool = False,
        has_parts: bool = False,
    ) -> None:
        self.driver, self._constants, self.products = driver, constants, products
        self.atomics, self.has_parts = atomics, has_parts
        self.storages: list[DeviceStorage] = []
        self.calls: list[DeviceCall] = []
        self.kernels: dict[str, CudaKernel] = {}
        self.label = ""
        self._step: LoopStep | None = None
        self._written_over: Collection[Variable] = ()
        #: Results of the graph being planned that nothing needs; a lowering may not write them.
        self.unused: frozenset[Variable] = frozenset()
        self._first: list[DeviceCall] = []
        self._made_first: dict[Any, Any] = {}
        self._storages_first: set[int] = set()

    # -- storages

    def input(
        self,
        number: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        is_aligned: bool = False,
    ) -> Any:
        """Return the operand of an input; of its address only ``is_aligned`` is known."""
        alignment = WIDEST if is_aligned else 1
        self.storages.append(DeviceStorage(0, source=number, alignment=alignment))
        return Operand(len(self.storages) - 1, 0, dtype, tuple(shape), tuple(strides))

    def constant(self, value: Any) -> Operand:
        """Return the operand of a constant array."""
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        key = array.dtype.str, array.tobytes()
        memory = self._constants.get(key)
        if memory is None:
            memory = self.driver.allocate(array.nbytes, "a constant")
            self.driver.to_device(memory, 0, array)
            self._constants[key] = memory
        self.storages.append(DeviceStorage(array.nbytes, constant=memory))
        strides = contiguous_strides(array.shape, array.itemsize)
        return Operand(len(self.storages) - 1, 0, array.dtype.name, array.shape, strides)

    def new(self, dtype: str, shape: Sequence[int]) -> Operand:
        """Return an operand for a value, in C order."""
        shape = tuple(int(n) for n in shape)
        itemsize = np.dtype(dtype).itemsize
        nbytes = math.prod(shape) * itemsize
        self.storages.append(DeviceStorage(nbytes, step=self._step))
        strides = contiguous_strides(shape, itemsize)
        return Operand(len(self.storages) - 1, 0, dtype, shape, strides)

    def alignment(self, operand: Operand) -> int:
        """Return a divisor of the operand's address, at most WIDEST."""
        return gcd(self._alignment(operand.storage), operand.offset)

    def _alignment(self, number: int) -> int:
        storage = self.storages[number]
        if storage.motion is not None:
            motion = storage.motion
            bases = [gcd(self._alignment(s), offset) for s, offset in motion.bases]
            return gcd(*bases, motion.stride)
        # A step's own value may later be made in a row of an output, which lies anywhere.
        return storage.alignment if storage.step is None else 1

    # -- calls

    def launch(
        self,
        kernel: CudaKernel,
        blocks: Sequence[int],
        numbers: Sequence[int],
        operands: Sequence[Operand],
        steps: Sequence[Sequence[int]] = (),
        literals: Sequence[Any] = (),
        ticket: str = "",
        failure: Failure | None = None,
    ) -> None:
        """Emit a launch.

        Parameters
        ----------
        kernel : CudaKernel
        blocks : sequence of int
            Of the grid, along x, y and z.
        numbers : sequence of int
        operands : sequence of Operand
            Whose addresses are the entries of its table.
        steps : sequence of sequence of int
            For each axis, one for each operand.
        literals : sequence of ndarray
        ticket : str
            Of a kernel that may fail: what errors call it. It takes ticket and words as its last
            arguments.
        failure : callable, optional
            What makes the error; by default that of a bad index.
        """
        given, places = parameters(kernel, numbers, len(operands), steps, literals)
        if ticket:
            given += bytes(-len(given) % 8)
            number = self.driver.tickets.of(ticket, failure)
            given += struct.pack("QQ", number, self.driver.fault_address())
        x, y, z = (*blocks, 1, 1)[:3]
        self.kernels[kernel.name] = kernel
        launch = Launch(kernel.name, (x, y, z), (kernel.threads, 1, 1), given)
        patches = [(place, o.storage, o.offset) for place, o in zip(places, operands, strict=True)]
        nbytes = sum(o.nbytes for o in operands)
        self.calls.append(
            DeviceCall(
                "launch", self.label, launch, patches, nbytes=nbytes, can_fail=bool(ticket)
            )
        )

    def call_library(self, library: Library, function: str, words: Sequence[Any]) -> None:
        """Emit a call of a function of a library, which enqueues work on the stream of its handle.

        Parameters
        ----------
        library : Library
        function : str
            Its name; it returns 0, or the code of an error.
        words : sequence of int or Operand
            Its arguments, but for the handle; operands are given as their addresses.
        """
        numbers = [0 if isinstance(w, Operand) else w % 2**64 for w in words]
        found = [(8 * i, w) for i, w in enumerate(words, 1) if isinstance(w, Operand)]
        patches = [(place, o.storage, o.offset) for place, o in found]
        given = bytearray(struct.pack(f"{len(words) + 1}Q", library.handle.address, *numbers))
        launch = Launch(library.address(function), (1, 1, 1), (1, 1, 1), given)
        nbytes = sum(o.nbytes for _, o in found)
        self.calls.append(
            DeviceCall("library", self.label, launch, patches, nbytes=nbytes, library=library)
        )

    def once(self, given: Sequence[Operand], what: Any, plan: Callable[[], Made]) -> Made:
        """Return operands that depend on others alone. They are made once, at the beginning of the
        plan, also for steps of loops, if the others are inputs, constants or made there.

        Parameters
        ----------
        given : sequence of Operand
        what : hashable
            A key, for one of several that depend on these.
        plan : callable
            Emits what makes them.
        """
        if not all(self._is_there_first(x.storage) for x in given):
            return plan()
        key = *given, what
        if key not in self._made_first:
            step, calls, n = self._step, self.calls, len(self.storages)
            self._step, self.calls = None, self._first
            try:
                self._made_first[key] = plan()
            finally:
                self._step, self.calls = step, calls
            self._storages_first.update(range(n, len(self.storages)))
        found: Made = self._made_first[key]
        return found

    def note(self, given: Sequence[Operand], what: Any, made: Any) -> None:
        """Let ``once`` return these operands, which are there at the beginning of the plan."""
        if all(self._is_there_first(x.storage) for x in given):
            self._made_first.setdefault((*given, what), made)

    def noted(self, given: Sequence[Operand], what: Any) -> Any:
        """Return the operands that ``once`` has for these; None if there are none yet."""
        return self._made_first.get((*given, what))

    def _is_there_first(self, number: int) -> bool:
        """Return whether a storage has its value at the beginning of the plan."""
        storage = self.storages[number]
        is_given = storage.source >= 0 or storage.constant is not None
        return is_given or number in self._storages_first

    def copy(self, target: Operand, source: Operand) -> None:
        """Emit a copy of all bytes between arrays in C order."""
        if target.nbytes:
            places = [(target.storage, target.offset), (source.storage, source.offset)]
            self.calls.append(DeviceCall("copy", self.label, operands=places, nbytes=target.nbytes))

    def clear(self, target: Operand) -> None:
        """Emit setting an array in C order to 0."""
        if target.nbytes:
            places = [(target.storage, target.offset)]
            self.calls.append(
                DeviceCall("clear", self.label, operands=places, nbytes=target.nbytes)
            )

    # -- loops

    @contextmanager
    def step(self, step: LoopStep | None = None) -> Iterator[LoopStep]:
        """Emit the calls of a step of a loop, a new one or some more, not calls of the plan."""
        outer, calls = self._step, self.calls
        step = LoopStep() if step is None else step
        self._step, self.calls = step, step.calls
        try:
            yield step
        finally:
            self._step, self.calls = outer, calls

    @property
    def is_in_step(self) -> bool:
        """Whether calls are those of a step of a loop."""
        return self._step is not None

    @contextmanager
    def writing_over(self, results: Collection[Variable]) -> Iterator[None]:
        """Let these results, whose nodes write parts of their first input, be made in its memory.
        """
        before, self._written_over = self._written_over, results
        try:
            yield
        finally:
            self._written_over = before

    def is_written_over(self, result: Variable) -> bool:
        """Return whether a result is made in the memory of the first input of its node."""
        return result in self._written_over

    def repeat(self, step: LoopStep, times: int, is_part: bool = False) -> None:
        """Emit a loop: a step, again and again; ``is_part`` is that of the call."""
        if step.calls and times:
            nbytes = times * sum(call.nbytes for call in step.calls)
            self.calls.append(
                DeviceCall(
                    "loop", self.label, nbytes=nbytes, step=step, repeats=times, is_part=is_part
                )
            )

    def moving(self, even: Operand, odd: Operand, stride: int = 0) -> Operand:
        """Return the operand, in a step, of what lies ``stride`` bytes further in each step.

        Parameters
        ----------
        even, odd : Operand
            Where it lies in even steps and in odd ones, but for the stride; of equal layouts.
        """
        self.storages.append(DeviceStorage(0, step=self._step))
        found = Operand(len(self.storages) - 1, 0, even.dtype, even.shape, even.strides)
        self._set_motion(found.storage, even, odd, stride)
        return found

    def make_there(self, value: Operand, even: Operand, odd: Operand, stride: int = 0) -> bool:
        """Let a value of a step be made where ``moving`` says; return whether that can be."""
        storage = self.storages[value.storage]
        is_whole = value.is_contiguous and value.nbytes == storage.nbytes
        can_be = storage.is_own and storage.step is self._step and is_whole
        if can_be:
            self._set_motion(value.storage, even, odd, stride)
        return can_be

    def _set_motion(self, number: int, even: Operand, odd: Operand, stride: int) -> None:
        assert self._step is not None
        bases = (even.storage, even.offset), (odd.storage, odd.offset)
        self.storages[number].motion = Motion(bases, stride)
        self._step.moving.append(number)

    # -- the end

    def merge(self, outputs: Sequence[Any]) -> None:
        """Merge launches of one block, when all calls are there, also those to be made first."""
        self.calls[:0], self._first = self._first, []
        Merging(self.storages, self.kernels, _storages_of(outputs)).merge(self.calls)

    def finish(self, outputs: Sequence[Any]) -> Plan:
        """Return the plan of merged calls: values that are no outputs get places in the arena."""
        launches = {  # several loops may have the same step
            id(call.launch): call.launch
            for call in all_calls(self.calls)
            if call.launch is not None and call.library is None
        }.values()
        names = dict.fromkeys(launch.kernel for launch in launches)
        made = self.driver.kernels([self.kernels[name] for name in names])
        for launch in launches:
            launch.kernel = made[launch.kernel]
        kept = _storages_of(outputs)
        size = place_values(self.storages, self.calls, kept)
        native = NativePlan(self.storages, self.calls, kept)
        return Plan(native, self.storages, self.calls, list(outputs), size)


def _storages_of(outputs: Sequence[Any]) -> set[int]:
    return {o.storage for o in outputs if isinstance(o, Operand)}


def parameters(
    kernel: CudaKernel,
    numbers: Sequence[int],
    arrays: int,
    steps: Sequence[Sequence[int]],
    literals: Sequence[Any],
) -> tuple[bytearray, list[int]]:
    """Return the parameters of a kernel in CUDA's layout, and where in them addresses go."""
    code = "q" if kernel.wide else "i"
    assert len(numbers) == len(kernel.numbers) and len(steps) == kernel.axes
    found = bytearray(struct.pack(f"{len(numbers)}{code}", *numbers))
    found += bytes(-len(found) % 8)
    places = [len(found) + 8 * i for i in range(arrays)]
    found += bytes(8 * arrays)
    for literal in literals:
        data = np.asarray(literal).tobytes()
        found += data + bytes(16 - len(data))
    for row in steps:
        found += struct.pack(f"{len(row)}{code}", *row)
    return found, places


def blocks_for(threads: int, per_block: int) -> int:
    """Return the number of blocks for ``threads`` threads, at most MOST_BLOCKS."""
    return max(1, min(MOST_BLOCKS, -(-threads // per_block)))


def needs_wide(numbers: Sequence[int], operands: Sequence[Operand]) -> bool:
    """Return whether these numbers, or offsets in these arrays, need more than 32 bits."""
    spans = [
        sum((n - 1) * abs(step) for n, step in zip(o.shape, o.strides, strict=True))
        for o in operands
        if o.size
    ]
    # Loops step once beyond their end, by at most the threads of a grid.
    return max([*numbers, *spans], default=0) > LARGEST_32 - MOST_BLOCKS * 1024


Lowered = Callable[[Planner, Sequence[Any]], Sequence[Any]]
