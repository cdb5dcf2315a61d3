"""Inspect how the native machine of a compiled function runs its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.compile.features import bodies, kernels, lowerings, planning
from symcomp.core.graph import FunctionGraph
from symcomp.cvm.executable import Executable, compile_graph
from symcomp.cvm.machine import NativeMachine
from symcomp.vm.policy import Policy


def kinds_of(function: Any) -> list[str | None]:
    """Return for each instruction the kind of native call, "python", or None."""
    return [None if how is None else how.name for how in function.executable.machine.lowered]


def in_python(function: Any) -> set[str]:
    """Return the classes of the ops without native code."""
    code = function.program.instructions
    return {
        type(step.node.op).__name__
        for step, kind in zip(code, kinds_of(function), strict=True)
        if kind == "python"
    }


def asked(function: Any, values: Sequence[Any]) -> list[str]:
    """Return the ops that Python computes in a call, although there is native code."""
    machine = function.executable.machine
    tally = machine.new_tally()
    before = {c.position: c.in_python for c in tally.counted()}
    machine.run(list(values))
    kinds = kinds_of(function)
    names = []
    for counted in tally.counted():
        step = function.program.instructions[counted.position]
        if (
            counted.in_python > before.get(counted.position, 0)
            and kinds[counted.position] != "python"
        ):
            names.append(type(step.node.op).__name__ if step.node else "copy")
    return names


def bodies_of(function: Any) -> list[NativeMachine]:
    """Return the machines of the graphs in a function's ops, which its instructions run."""
    found = []
    pending = [function.executable.machine]
    while pending:
        for how in pending.pop().lowered:
            if how is not None and how.body is not None:
                found.append(how.body)
                pending.append(how.body)
    return found


def native(
    inputs: Sequence[Any], outputs: Sequence[Any], keep: bool = False, **options: Any
) -> Executable:
    """Compile a graph for the native machine as it is, without rewriting."""
    policy = Policy(
        native=True, lowerings=lowerings("cpu"), kernels=kernels(), planning=planning(),
        bodies=bodies(),
    )  # fmt: skip
    return compile_graph(FunctionGraph(inputs, outputs), policy, keep, **options)
