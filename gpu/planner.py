"""Plans of device programs: launches with their parameters, for one set of layouts.

The planner is handed layouts and emits calls; it computes nothing. What it leaves is a ``Plan``: a
list of calls on storages (inputs, constants, one arena, outputs), run by ``execution.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.core.record import record
from symcomp.gpu.driver.interface import Driver, Launch, Memory

# Where values in the arena begin: as the driver's own blocks do.
ALIGNMENT = 256
LARGEST_32 = 2**31 - 1
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
        return int(np.prod(self.shape, dtype=np.int64))

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


@dataclass
class Call:
    """One entry of a plan.

    Attributes
    ----------
    kind : str
        "launch", "copy" or "clear".
    label : str
    launch : Launch or None
    patches : list of (int, int, int)
        Where in the parameters the address of a storage goes, and its offset.
    operands : list of (int, int)
        Of copies and clears: storage and offset, the target first.
    nbytes : int
        Of copies and clears; of launches, the least that is read and written.
    uses : tuple of int
        The storages of all these; the finished plan has them.
    """

    kind: str
    label: str
    launch: Launch | None = None
    patches: list[tuple[int, int, int]] = field(default_factory=list)
    operands: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    uses: tuple[int, ...] = ()

    def storages(self) -> set[int]:
        """Return the storages that the work uses."""
        return {s for _, s, _ in self.patches} | {s for s, _ in self.operands}


@dataclass
class Storage:
    """Memory of a plan: an input, a constant, or a value, which lies in the arena or is an output.

    Attributes
    ----------
    nbytes : int
    source : int
        The input, or -1.
    constant : Memory or None
    offset : int
        In the arena; -1 for what does not lie there.
    """

    nbytes: int
    source: int = -1
    constant: Memory | None = None
    offset: int = -1


@dataclass
class Plan:
    """Calls for one set of layouts.

    Attributes
    ----------
    storages : list of Storage
    calls : list of Call
    outputs : list
        Operands, or host arrays where the value is known from the layouts.
    arena : int
        Bytes.
    """

    storages: list[Storage]
    calls: list[Call]
    outputs: list[Any]
    arena: int

    def __str__(self) -> str:
        lines = [f"{len(self.calls)} calls, arena of {self.arena} bytes"]
        for i, call in enumerate(self.calls):
            size = "" if call.launch is None else f" {call.launch.grid} x {call.launch.block}"
            lines.append(f"    {i}  {call.kind} {call.label}{size}, {call.nbytes} bytes")
        return "\n".join(lines)


class Planner:
    """Makes a plan.

    Parameters
    ----------
    driver : Driver
    constants : dict
        Constants that are on the device, by their bytes: kept from plan to plan.
    """

    def __init__(self, driver: Driver, constants: dict[Any, Memory]) -> None:
        self.driver, self._constants = driver, constants
        self.storages: list[Storage] = []
        self.calls: list[Call] = []
        self.kernels: dict[str, CudaKernel] = {}
        self.label = ""

    # -- storages

    def input(self, number: int, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Any:
        """Return the operand of an input; its address is known when the plan is run."""
        self.storages.append(Storage(0, source=number))
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
        self.storages.append(Storage(array.nbytes, constant=memory))
        strides = contiguous_strides(array.shape, array.itemsize)
        return Operand(len(self.storages) - 1, 0, array.dtype.name, array.shape, strides)

    def new(self, dtype: str, shape: Sequence[int]) -> Operand:
        """Return an operand for a value, in C order."""
        shape = tuple(int(n) for n in shape)
        itemsize = np.dtype(dtype).itemsize
        nbytes = int(np.prod(shape, dtype=np.int64)) * itemsize
        self.storages.append(Storage(nbytes))
        strides = contiguous_strides(shape, itemsize)
        return Operand(len(self.storages) - 1, 0, dtype, shape, strides)

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
        """
        given, places = parameters(kernel, numbers, len(operands), steps, literals)
        if ticket:
            given += bytes(-len(given) % 8)
            given += struct.pack("QQ", self.driver.tickets.of(ticket), self.driver.fault_address())
        x, y, z = (*blocks, 1, 1)[:3]
        self.kernels[kernel.name] = kernel
        patches = [(place, o.storage, o.offset) for place, o in zip(places, operands, strict=True)]
        nbytes = sum(o.nbytes for o in operands)
        block = (kernel.threads, 1, 1)
        launch = Launch(kernel.name, (x, y, z), block, given, label=self.label, nbytes=nbytes)
        self.calls.append(Call("launch", self.label, launch, patches, nbytes=nbytes))

    def copy(self, target: Operand, source: Operand) -> None:
        """Emit a copy of all bytes between arrays in C order."""
        if target.nbytes:
            places = [(target.storage, target.offset), (source.storage, source.offset)]
            self.calls.append(Call("copy", self.label, operands=places, nbytes=target.nbytes))

    def clear(self, target: Operand) -> None:
        """Emit setting an array in C order to 0."""
        if target.nbytes:
            places = [(target.storage, target.offset)]
            self.calls.append(Call("clear", self.label, operands=places, nbytes=target.nbytes))

    # -- the end

    def finish(self, outputs: Sequence[Any]) -> Plan:
        """Return the plan: values that are no outputs get places in the arena."""
        made = self.driver.kernels([*self.kernels.values()])
        for call in self.calls:
            call.uses = tuple(sorted(call.storages()))
            if call.launch is not None:
                call.launch.kernel = made[call.launch.kernel]
        kept = {o.storage for o in outputs if isinstance(o, Operand)}
        last: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            last.update(dict.fromkeys(call.storages(), i))
        arena = _Arena()
        first_use: set[int] = set()
        for i, call in enumerate(self.calls):
            for number in sorted(call.storages()):
                storage = self.storages[number]
                own = storage.source < 0 and storage.constant is None and number not in kept
                if own and number not in first_use:
                    storage.offset = arena.take(storage.nbytes, i, last[number])
                    first_use.add(number)
        return Plan(self.storages, self.calls, list(outputs), arena.size)


class _Arena:
    """Offsets for values that live from one call to another: the lowest that is free."""

    def __init__(self) -> None:
        self.size = 0
        self._taken: list[tuple[int, int, int]] = []  # begin, end, last call

    def take(self, nbytes: int, now: int, last: int) -> int:
        self._taken = sorted(t for t in self._taken if t[2] >= now)
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for begin, end, _ in self._taken:
            if offset + size <= begin:
                break
            offset = max(offset, end)
        self._taken.append((offset, offset + size, last))
        self.size = max(self.size, offset + size)
        return offset


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
