"""A Program: flat instructions over numbered storage slots. Data only; machines run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.vm.opcodes import Opcode


@record(frozen=False)
class Instruction:
    """An instruction of a program.

    Attributes
    ----------
    opcode : Opcode
    inputs, outputs : tuple of int
        The slots read and written.
    target : int
        The position to continue at, for opcodes that jump.
    frees : tuple of int
        Slots whose values are not needed afterwards.
    into : tuple of int
        Of a CALL that writes into existing arrays: for each output the slot, free afterwards, whose
        array it takes; -1: a new one.
    node : Apply or None
        The node computed by a CALL.
    compute : callable or None
        For CALL: the values of ``arguments`` -> the value, or the tuple of values, of the outputs.
        For COPY: the copier.
    several : bool
        If true, ``compute`` returns a tuple.
    claims : tuple of int
        Of the CALL at the gate (``vm/commit.py``), which has no node: for each output, the slot of
        the input whose array is overwritten, or copied if it has other holders.
    bodies : tuple
        Of an op that contains graphs, the compiled graphs (``Executable``).
    makes_room : bool
        If true, the result is memory that later instructions write into, without a value yet.
    """

    opcode: Opcode
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    target: int = -1
    frees: tuple[int, ...] = ()
    node: Apply | None = None
    compute: Callable[..., Any] | None = None
    several: bool = False
    into: tuple[int, ...] = ()
    claims: tuple[int, ...] = ()
    makes_room: bool = False
    bodies: tuple[Any, ...] = ()

    @property
    def arguments(self) -> tuple[int, ...]:
        """The slots that ``compute`` is called with: the inputs, and the arrays to write into;
        -1 stands for None.
        """
        return (*self.inputs, *self.into)

    def line(self) -> str:
        """Return the instruction as text."""
        read = ", ".join(f"s{i}" for i in self.inputs)
        written = ", ".join(f"s{i}" for i in self.outputs)
        text = {
            Opcode.CALL: f"{written} := {self.node.op if self.node else '?'}({read})",
            Opcode.COPY: f"{written} := copy {read}",
            Opcode.MOVE: f"{written} := {read}",
            Opcode.BRANCH: f"if not {read} goto {self.target}",
            Opcode.JUMP: f"goto {self.target}",
            Opcode.SKIP_IF_SET: f"if {read} is set goto {self.target}",
            Opcode.FREE: "join",
        }[self.opcode]
        if self.claims:
            text = f"{written} := claim {', '.join(f's{i}' for i in self.claims)}"
            checked = str(self.compute)
            text += f"    check {checked}" if checked else ""
        if self.node is not None and self.node.op.destroy_map:
            spoiled = sorted(
                {self.inputs[i] for ins in self.node.op.destroy_map.values() for i in ins}
            )
            text += "    in-place " + ", ".join(f"s{i}" for i in spoiled)
        if self.into:
            text += " into " + ", ".join("new" if i < 0 else f"s{i}" for i in self.into)
        if self.frees:
            text += "    free " + ", ".join(f"s{i}" for i in self.frees)
        return text


@record(frozen=False)
class Program:
    """The program of a compiled function.

    Attributes
    ----------
    instructions : list of Instruction
    variables : list of Variable
        For each slot, the variable whose value it holds.
    inputs : tuple of int
        Slots of the inputs, in the order of the graph's inputs; at the end, if inputs are
        overwritten, that of what says which may be (``vm.commit.Claims``).
    outputs : tuple of int
        Slots of the outputs, in the order of the graph's outputs.
    constants : dict of int to value
    claimed : tuple of int
        The inputs, by position, that are overwritten where that is allowed.
    written_over : mapping of int to int
        Outputs that are made by writing parts of inputs, in their arrays, by position.
    """

    instructions: list[Instruction]
    variables: list[Variable]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict[int, Any] = field(default_factory=dict)
    claimed: tuple[int, ...] = ()
    written_over: Mapping[int, int] = field(default_factory=dict)

    def listing(self) -> str:
        """Return the program as text, a line per instruction."""
        lines = [f"inputs  {', '.join(f's{i} = {self.variables[i]}' for i in self.inputs)}"]
        lines += [f"const   s{i} = {self.variables[i]}" for i in self.constants]
        width = len(str(len(self.instructions)))
        lines += [f"{i:{width}d}  {step.line()}" for i, step in enumerate(self.instructions)]
        lines.append(f"outputs {', '.join(f's{i}' for i in self.outputs)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.listing()
