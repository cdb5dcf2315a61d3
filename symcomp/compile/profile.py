"""ProfileStats: how long compiling took, how often a function was called, where time went."""

from __future__ import annotations

import io
import sys
import threading
from collections import defaultdict
from typing import Any, TextIO

from symcomp.vm.program import Instruction, Program


class ProfileStats:
    """Counts of one function, or of several that are given the same object.

    Attributes
    ----------
    compile_phases : list of (str, float)
        Name and seconds.
    calls : int
    call_seconds : float
        In whole calls, arguments and updates included.
    seconds, counts : dict of Instruction to number
    """

    def __init__(self, message: str | None = None) -> None:
        self.message = message
        self.compile_phases: list[tuple[str, float]] = []
        self.calls = 0
        self.call_seconds = 0.0
        self.seconds: dict[int, float] = defaultdict(float)
        self.counts: dict[int, int] = defaultdict(int)
        self._steps: dict[int, tuple[str, Instruction]] = {}
        self._lock = threading.Lock()

    def watch(self, program: Program, name: str) -> None:
        """Get ready to count the instructions of ``program``."""
        for step in program.instructions:
            self._steps[id(step)] = (name, step)

    def observe(self, position: int, step: Instruction, seconds: float) -> None:
        """Count one instruction (see ``PythonMachine.run``)."""
        self.seconds[id(step)] += seconds
        self.counts[id(step)] += 1

    def count_call(self, seconds: float) -> None:
        """Count one call."""
        with self._lock:
            self.calls += 1
            self.call_seconds += seconds

    def __getstate__(self) -> dict[str, Any]:
        return {"message": self.message}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["message"])  # type: ignore[misc]

    def summary(self, file: TextIO | None = None, n: int = 20) -> None:
        """Write the report.

        Parameters
        ----------
        file : text file, optional
            By default standard error.
        n : int
            How many ops and instructions to list.
        """
        (file or sys.stderr).write(self.text(n))

    def text(self, n: int = 20) -> str:
        """The report as text."""
        out = io.StringIO()
        total = sum(self.seconds.values())
        out.write(f"Profile of {self.message or 'function'}\n")
        out.write(
            f"  {self.calls} calls, {self.call_seconds:.6f} s in all, {total:.6f} s in "
            "instructions\n"
        )
        for name, seconds in self.compile_phases:
            out.write(f"  compile: {name:<32} {seconds:.6f} s\n")
        by_op: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
        for key, seconds in self.seconds.items():
            step = self._steps[key][1]
            row = by_op[str(step.node.op) if step.node is not None else step.opcode.name.lower()]
            row[0] += seconds
            row[1] += self.counts[key]
        out.write("Ops\n      %     seconds     calls  op\n")
        for name, (seconds, count) in sorted(by_op.items(), key=lambda item: -item[1][0])[:n]:
            out.write(
                f"  {100 * seconds / (total or 1):5.1f}  {seconds:10.6f}  {int(count):8d}  {name}\n"
            )
        out.write("Instructions\n      %     seconds     calls  instruction\n")
        ranked = sorted(self.seconds.items(), key=lambda item: -item[1])[:n]
        for key, seconds in ranked:
            step = self._steps[key][1]
            where = f"  at {step.node.source}" if step.node is not None and step.node.source else ""
            out.write(
                f"  {100 * seconds / (total or 1):5.1f}  {seconds:10.6f}  {self.counts[key]:8d}  "
                f"{step.line()}{where}\n"
            )
        return out.getvalue()
