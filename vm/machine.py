"""The Python machine: runs a Program instruction by instruction. It is the specification of every
other machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.vm.failure import Failure, failure
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program
from symcomp.vm.tally import Run, Tally


class _Unset:
    """The content of a slot that has no value."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Any = _Unset()


class PythonMachine:
    """Runs a program with NumPy alone. A call owns its store, so calls from several threads do not
    meet.

    Parameters
    ----------
    program : Program
    keep : bool
        If true, keep the values of the last call until ``free`` is called.

    Attributes
    ----------
    failure : Failure or None
        The description of the last call that failed.
    """

    def __init__(self, program: Program, keep: bool = False) -> None:
        self.program = program
        self.kept: list[Any] | None = None
        self.failure: Failure | None = None
        self._keep = keep
        self._tally: Tally | None = None
        self._template = [UNSET] * len(program.variables)
        self._template.append(None)  # slot -1: no array to write into
        for slot, value in program.constants.items():
            self._template[slot] = value
        # The fields that the loop reads, unpacked: attribute look-ups are a third of its time.
        self._plan: list[Any] = [
            (step.opcode, step.compute, step.arguments, step.outputs, step.several, step.frees)
            for step in program.instructions
        ]

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Run the program on the values of its inputs; return those of its outputs."""
        store = self._filled(values)
        with np.errstate(all="ignore"):
            self._loop(store, None if self._tally is None else Run(self._tally))
        if self._keep:
            self.kept = store
        return [store[slot] for slot in self.program.outputs]

    def new_tally(self) -> Tally:
        """Count the runs from now on; return the counts."""
        self._tally = Tally(self.program)
        for position, step in enumerate(self.program.instructions):
            for k, body in enumerate(step.bodies):
                self._tally.inner[position, k] = (body.machine, body.machine.new_tally())
        return self._tally

    def _filled(self, values: Sequence[Any]) -> list[Any]:
        """Return a store with the values of the inputs. (Local names would hold them: see
        ``_loop``.)
        """
        store = self._template.copy()
        for slot, value in zip(self.program.inputs, values, strict=True):
            store[slot] = value
        return store

    def free(self) -> None:
        """Drop the values kept from the last call."""
        self.kept = None

    def _loop(self, store: list[Any], run: Run | None) -> None:
        code = self.program.instructions
        position = 0
        try:
            while position < len(code):
                opcode, compute, arguments, outputs, several, frees = self._plan[position]
                following = position + 1
                if run is not None:
                    run.before([store[i] for i in code[position].inputs])
                if opcode is Opcode.CALL:
                    result = compute(*[store[i] for i in arguments])
                    if several:
                        for slot, value in zip(outputs, result, strict=True):
                            store[slot] = value
                    else:
                        store[outputs[0]] = result
                    # Only the store may hold values: the gate counts references (vm/commit.py).
                    result = value = None
                elif self._control(code[position], store):
                    following = code[position].target
                for slot in frees:
                    store[slot] = UNSET
                if run is not None:
                    run.after(position, [store[i] for i in outputs])
                position = following
        except Exception as problem:
            given = [store[i] for i in code[position].inputs]
            self.failure = failure(problem, self.program, position, given)
            raise

    @staticmethod
    def _control(step: Instruction, store: list[Any]) -> bool:
        """Execute an instruction other than CALL; return whether the program continues at its
        target.
        """
        if step.opcode is Opcode.MOVE:
            for slot, source in zip(step.outputs, step.inputs, strict=True):
                store[slot] = store[source]
        elif step.opcode is Opcode.COPY:
            store[step.outputs[0]] = step.compute(store[step.inputs[0]])  # type: ignore[misc]
        elif step.opcode is Opcode.BRANCH:
            return not store[step.inputs[0]]
        elif step.opcode is Opcode.SKIP_IF_SET:
            return store[step.inputs[0]] is not UNSET
        return step.opcode is Opcode.JUMP
