"""How much memory a program needs: which value lies in which buffer, from when to when.

Counted are the arrays that hold values of variables; what an op needs for itself while it computes
is not. Both branches of an ifelse are counted, so the figures are upper bounds there.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from symcomp.core.node import Variable
from symcomp.core.record import record
from symcomp.core.source import Source
from symcomp.core.tensor import TensorType
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

# Longer names of ops are cut off.
LONGEST_NAME = 60


@record
class StoredValue:
    """One value that a call computes.

    Attributes
    ----------
    slot : int
        Its place in the program's listing.
    name : str
        Of the variable, or of the op that computes it.
    shape : tuple of int
    dtype : str
    bytes : int
        Of its elements; 0 for a view, which has none of its own.
    born, dies : int
        The instruction that computes it, and the one after which it is not needed; the number of
        instructions for a result, which outlives the call.
    buffers : tuple of int
        The buffers in which it may lie; two for a choice between two values. Empty for a view of an
        input or constant, and for a value that is written over a mutable input.
    source : Source or None
        The user's line that made it.
    """

    slot: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    born: int
    dies: int
    buffers: tuple[int, ...]
    source: Source | None


@record
class Usage:
    """The memory of one program for one set of shapes.

    Attributes
    ----------
    values : tuple of StoredValue
        Of every variable that an instruction computes.
    buffers : tuple of int
        The bytes of each piece of memory that arrays are made in.
    results : frozenset of int
        The buffers that are handed out: outputs and new values of shared variables.
    peak : int
        The most bytes in arrays made and not yet dropped, results included.
    """

    values: tuple[StoredValue, ...]
    buffers: tuple[int, ...]
    results: frozenset[int]
    peak: int

    @property
    def internal(self) -> int:
        """The bytes of all buffers that are not handed out."""
        return sum(n for i, n in enumerate(self.buffers) if i not in self.results)


def measure(
    program: Program, shapes: Mapping[Variable, tuple[int, ...]], sharing: bool = True
) -> Usage:
    """Follow a program through its storage.

    Parameters
    ----------
    program : Program
    shapes : mapping of Variable to tuple of int
        The shapes of the values of tensors.
    sharing : bool
        A new array takes the memory of one that was dropped, of its size or up to twice as large.
    """
    return Walk(program, shapes, sharing).usage()


@record(frozen=False)
class Walk:
    """The state of a walk through a program.

    A subclass may follow the memory of another place than the host: it says which variables have
    arrays there (``tensor_type``), and in which buffers they lie (``places``).
    """

    program: Program
    shapes: Mapping[Variable, tuple[int, ...]]
    sharing: bool
    sizes: list[int] = field(default_factory=list)  # of each buffer
    filled: list[int] = field(default_factory=list)  # of each buffer: the bytes in use
    users: list[int] = field(default_factory=list)  # of each buffer: how many living slots
    dropped: list[tuple[int, int]] = field(default_factory=list)  # (size, buffer), sorted
    lies_in: dict[int, tuple[int, ...]] = field(default_factory=dict)
    born: dict[int, int] = field(default_factory=dict)
    died: dict[int, int] = field(default_factory=dict)
    handed_out: set[int] = field(default_factory=set)  # slots whose arrays may be results
    now: int = 0
    peak: int = 0

    def usage(self) -> Usage:
        """Walk through the program; return its record."""
        self.handed_out.update(self.program.outputs)
        for step in reversed(self.program.instructions):
            for j, slot in enumerate(step.outputs):
                if slot in self.handed_out:
                    self.handed_out.update(_sources(step, j))
        for position, step in enumerate(self.program.instructions):
            self._follow(position, step)
        end = len(self.program.instructions)
        values = tuple(self._value(slot, born, end) for slot, born in self.born.items())
        results = frozenset(b for slot in self.program.outputs for b in self.lies_in.get(slot, ()))
        return Usage(values, tuple(self.sizes), results, self.peak)

    def tensor_type(self, variable: Variable) -> TensorType | None:
        """Return the type of a variable's arrays; None if none are in this memory."""
        return variable.type if isinstance(variable.type, TensorType) else None

    def places(self, position: int, step: Instruction) -> list[tuple[int, ...]]:
        """Return the buffers in which each output of an instruction may lie."""
        return [self._place(step, j, slot) for j, slot in enumerate(step.outputs)]

    def _follow(self, position: int, step: Instruction) -> None:
        """Take over, make and drop what one instruction does."""
        for slot, buffers in zip(step.outputs, self.places(position, step), strict=True):
            self._hold(slot, buffers, position)
        self.peak = max(self.peak, self.now)
        for slot in step.frees:
            self.died[slot] = position
            for buffer in self.lies_in.get(slot, ()):  # none for inputs, which are not counted
                self.users[buffer] -= 1
                if not self.users[buffer]:
                    self.now -= self.filled[buffer]
                    insort(self.dropped, (self.sizes[buffer], buffer))

    def _place(self, step: Instruction, j: int, slot: int) -> tuple[int, ...]:
        """Return the buffers in which output j of ``step`` may lie."""
        sources = _sources(step, j)
        if sources:
            return tuple(sorted({b for i in sources for b in self.lies_in.get(i, ())}))
        return (self.new_array(self.bytes_of(slot), slot in self.handed_out),)

    def new_array(self, size: int, handed_out: bool = False) -> int:
        """Return the buffer of an array that is made now: one that is handed out is no larger."""
        self.now += size
        place = bisect_left(self.dropped, (size, -1))
        most = size if handed_out else 2 * size
        if self.sharing and place < len(self.dropped) and self.dropped[place][0] <= most:
            _, buffer = self.dropped.pop(place)
            self.filled[buffer] = size
            return buffer
        self.sizes.append(size)
        self.filled.append(size)
        self.users.append(0)
        return len(self.sizes) - 1

    def _hold(self, slot: int, buffers: tuple[int, ...], position: int) -> None:
        before = self.lies_in.get(slot, ())  # the other branch set it too
        self.born.setdefault(slot, position)
        self.lies_in[slot] = tuple(sorted({*before, *buffers}))
        for buffer in self.lies_in[slot]:
            self.users[buffer] += buffer not in before

    def bytes_of(self, slot: int) -> int:
        """Return the bytes of the elements of the slot's value; 0 for values that are no tensors.
        """
        variable = self.program.variables[slot]
        kind = self.tensor_type(variable)
        return 0 if kind is None else prod(self.shapes[variable]) * kind.numpy_dtype.itemsize

    def _value(self, slot: int, born: int, end: int) -> StoredValue:
        """Return the record of one slot's value."""
        variable = self.program.variables[slot]
        name = str(variable)
        kind = self.tensor_type(variable)
        step = self.program.instructions[born]
        owner = step.node
        view = (
            step.opcode is Opcode.MOVE
            or bool(step.claims)
            or (owner is not None and bool(owner.op.view_map.get(step.outputs.index(slot))))
        )
        return StoredValue(
            slot,
            name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "...",
            () if kind is None else self.shapes[variable],
            str(variable.type) if kind is None else kind.dtype,
            0 if view else self.bytes_of(slot),
            born,
            self.died.get(slot, end),
            self.lies_in[slot],
            variable.source,
        )


def _sources(step: Instruction, j: int) -> tuple[int, ...]:
    """Return the slots in whose arrays output j of an instruction may lie; none if it has its own.
    """
    if step.into and step.into[j] >= 0:
        return (step.into[j],)
    if step.claims:
        return (step.claims[j],)
    if step.opcode is Opcode.MOVE:
        return (step.inputs[j],)
    if step.opcode is Opcode.CALL and step.node is not None:
        op = step.node.op
        return tuple(step.inputs[i] for i in (*op.view_map.get(j, ()), *op.destroy_map.get(j, ())))
    return ()


@record
class DeviceUsage:
    """The memory of one device that a compiled function needs for one set of shapes.

    Attributes
    ----------
    device : str
    inputs : int
        Bytes of the arguments, shared variables and constants that live there.
    results : int
        Bytes of the arrays there that are handed out: outputs, and new values of shared variables.
    peak : int
        The most bytes at a time in arrays that the call makes there, results included, but without
        the values within regions.
    allocated : int or None
        The most bytes that a call takes there at a time: the arrays, and the arenas of its regions,
        which are kept for the next call. The plans of the regions tell it. None: a region has no
        plan for these shapes yet, or steps of a loop are called by the host.
    kept : int
        Bytes that regions keep there besides: copies of constants, and places of small arguments
        and results of graphs.
    workspaces : int
        Bytes of the workspaces of libraries that the plans of the regions call: cuBLAS has one for
        all functions of a device, cuFFT one for each layout.
    values : tuple of StoredValue
        That live there.
    """

    device: str
    inputs: int
    results: int
    peak: int
    allocated: int | None
    kept: int
    workspaces: int
    values: tuple[StoredValue, ...]

    def lines(self, n: int) -> list[str]:
        """Return the lines of a report, with the ``n`` largest values."""
        return [
            f"on {self.device}",
            _line("inputs and constants", self.inputs),
            _line("results", self.results),
            _line("peak of arrays", self.peak),
            _line("allocated by a call", self.allocated),
            _line("kept besides", self.kept),
            _line("workspaces of libraries", self.workspaces),
            *_table(self.values, n),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines(20))


@record
class MemoryReport:
    """The memory that a compiled function needs for one set of shapes. Print it to read it.

    Attributes
    ----------
    inputs : int
        Bytes of the arguments, shared variables and constants.
    results : int
        Bytes of the arrays that are handed out: outputs, and new values of shared variables.
    unplanned : int
        Bytes of the internal values if each had an array of its own, for the whole call.
    planned : int
        Bytes of the memory that the internal values lie in one after the other.
    unplanned_peak : int
        The most bytes that a call would hold at a time, results included, with a new array for
        every value, dropped when it is not needed any more.
    peak : int
        The most bytes that a call holds at a time, results included.
    values : tuple of StoredValue
    buffers : tuple of int
        The bytes of each piece of memory, those of results too.
    allocated : int or None
        The bytes that a call allocates natively: the arenas and arrays of the plan that is kept for
        these shapes. None: no plan is kept for them; a call makes it, and runs it meanwhile.
    devices : tuple of DeviceUsage
        Of each device that values of the function live on; the other numbers are the host's.
    """

    inputs: int
    results: int
    unplanned: int
    planned: int
    unplanned_peak: int
    peak: int
    values: tuple[StoredValue, ...]
    buffers: tuple[int, ...]
    allocated: int | None = None
    devices: tuple[DeviceUsage, ...] = ()

    def text(self, n: int = 20) -> str:
        """Return the report as text, with the ``n`` largest values in their order of birth."""
        lines = [
            _line("inputs and constants", self.inputs),
            _line("results", self.results),
            _line("internal, without a plan", self.unplanned),
            _line("internal, as planned", self.planned) + f" in {len(self.buffers)} buffers",
            _line("peak, without a plan", self.unplanned_peak),
            _line("peak, as planned", self.peak),
            _line("allocated by a call", self.allocated),
            *_table(self.values, n),
        ]
        for usage in self.devices:
            lines += usage.lines(n)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def _line(what: str, nbytes: int | None) -> str:
    if nbytes is None:
        return f"{what:<28}{'not known':>14}: no plan is kept for these shapes"
    return f"{what:<28}{nbytes:>14,} bytes"


def _table(values: Sequence[StoredValue], n: int) -> list[str]:
    """Return lines with the ``n`` largest values, in their order of birth."""
    lines = ["         bytes   born   dies  buffer  value"]
    largest = sorted(values, key=lambda v: (-v.bytes, v.slot))[:n]
    for v in sorted(largest, key=lambda v: (v.born, v.slot)):
        where = f"  at {v.source}" if v.source is not None else ""
        buffer = "/".join(map(str, v.buffers)) or "-"
        shape = ", ".join(map(str, v.shape))
        lines.append(
            f"{v.bytes:>14,} {v.born:>6} {v.dies:>6}  {buffer:>6}  "
            f"s{v.slot} {v.name}: {v.dtype} ({shape}){where}"
        )
    if len(values) > n:
        lines.append(f"... and {len(values) - n} smaller values")
    return lines


def report(
    planned: Usage,
    freed: Usage,
    kept: Usage,
    inputs: int,
    allocated: int | None = None,
    devices: tuple[DeviceUsage, ...] = (),
) -> MemoryReport:
    """Combine the records of a program as planned, without a plan, and without frees."""
    results = sum(planned.buffers[i] for i in planned.results)
    return MemoryReport(
        inputs,
        results,
        kept.internal,
        planned.internal,
        freed.peak,
        planned.peak,
        planned.values,
        planned.buffers,
        allocated,
        devices,
    )
