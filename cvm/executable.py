"""compile_graph: from a rewritten graph to the machine that runs it.

It is the only way to compile a graph. The graphs in its ops are compiled with it, under the same
policy, and the kernels of all programs are compiled together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from symcomp.codegen.compiler.early import Code
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.spans import span
from symcomp.cvm.kernels import PrintedKernels, load_printed, printed_kernels, threads_to_use
from symcomp.cvm.machine import NativeMachine
from symcomp.cvm.prepare import computed_natively, lowered_instructions
from symcomp.vm.bodies import Bodies
from symcomp.vm.guard import Binder
from symcomp.vm.inspection import InspectedMachine, Machine, inspected
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine
from symcomp.vm.overwriting import write_over_inputs
from symcomp.vm.policy import Policy
from symcomp.vm.program import Program


class Executable:
    """A graph compiled under a policy: its program, and what runs it. Made by ``compile_graph``.

    Parameters
    ----------
    graph : FunctionGraph
        Rewritten.
    policy : Policy
    codes : dict of str to Code
        The kernels of all programs that are compiled together, by their names; filled in before one
        of them runs.
    inner : bool
        Whether it is in an op.
    keep : bool
        Hold on to the values of the last run.
    **options
        Of ``lower``.

    Attributes
    ----------
    program : Program
    bodies : dict of Apply to list of Executable
        Of the nodes whose ops contain graphs.
    """

    def __init__(
        self,
        graph: FunctionGraph,
        policy: Policy,
        codes: dict[str, Code],
        inner: bool = False,
        keep: bool = False,
        **options: Any,
    ) -> None:
        self.graph, self.policy = graph, policy
        self._codes, self._inner, self._keep = codes, inner, keep
        self._is_counted = False
        self.bodies: dict[Apply, list[Executable]] = {}
        computes = {}
        for node in graph.toposort():
            how = policy.bodies_of(node.op)
            if how is not None:
                bodies = [self._body(node.op, how, *ends) for ends in node.op.inner_graphs()]
                self.bodies[node] = bodies
                computes[node] = how.bind(node, bodies)
        bind = Binder(policy.nan_guard, computes, policy.planning, policy.around)
        self.program: Program = lower(graph, bind=bind, **options)
        for step in self.program.instructions:
            if step.node in self.bodies:
                step.bodies = tuple(self.bodies[step.node])

    def _body(
        self, op: Op, how: Bodies, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Executable:
        with span("graph in an op"):
            graph = FunctionGraph(inputs, outputs)
            policy = self.policy.within(how.inspector(op))
            policy.rewrite_body(graph, how.rewrites(op))
            borrowed = range(len(outputs)) if how.copies_results else ()
            over = {}
            if policy.native and policy.inspector is None:
                over = write_over_inputs(graph, how.overwritable(op))
            return Executable(
                graph, policy, self._codes, inner=True, borrowed=borrowed, written_over=over
            )

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        return self.run(values)

    @property
    def native(self) -> NativeMachine | None:
        """The machine that runs the program natively, if it is such a one."""
        return self.machine if isinstance(self.machine, NativeMachine) else None

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Run the program by itself: from the values of the inputs to those of the outputs."""
        if self.program.written_over:
            values = list(values)
            for i in self.program.written_over.values():
                values[i] = values[i].copy()
        return self.machine.run(values)

    def count(self) -> None:
        """Count the runs of the machine, which may not be there yet."""
        self._is_counted = True
        if "machine" in self.__dict__:
            self.machine.new_tally()

    @cached_property
    def machine(self) -> Machine:
        """The machine that runs the program."""
        machine = self._machine()
        if self._is_counted:
            machine.new_tally()
        return machine

    def _machine(self) -> Machine:
        inspector, program = self.policy.inspector, self.program
        if inspector is not None:
            if self.policy.native:
                program = computed_natively(program, self._lowered())
            inspecting = PythonMachine(inspected(program, inspector), keep=self._keep)
            return InspectedMachine(inspecting, inspector, self.graph, self._inner)
        if self.policy.native:
            return NativeMachine(program, self._lowered(), self._keep, False, *_limits())
        return PythonMachine(program, keep=self._keep)

    def nested(self) -> NativeMachine | None:
        """Return a machine for an instruction of another to run; None if values are looked at."""
        if self.policy.inspector is not None:
            return None
        return NativeMachine(self.program, self._lowered(), False, True, *_limits())

    def _lowered(self) -> list[Any]:
        return lowered_instructions(
            self.program.instructions, self.policy.lowerings, self.kernels, self._codes
        )

    @cached_property
    def kernels(self) -> PrintedKernels:
        """The kernels of the program's instructions, by their positions."""
        if not config.kernels:
            return {}
        return printed_kernels(self.program.instructions, self.policy.kernels)

    def together(self) -> list[Executable]:
        """Return this and all inside."""
        found: list[Executable] = []
        pending = [self]
        while pending:
            found.append(pending.pop())
            pending += [body for bodies in found[-1].bodies.values() for body in bodies]
        return found


def _limits() -> tuple[int, int, int]:
    """Return the most segments that a machine keeps, the most threads that it uses, and after how
    many calls a segment gets straight code.
    """
    return config.most_plans, threads_to_use(), config.straight_after if config.kernels else 0


def compile_graph(
    graph: FunctionGraph, policy: Policy, keep: bool = False, **options: Any
) -> Executable:
    """Compile a graph that has been rewritten.

    Parameters
    ----------
    graph : FunctionGraph
    policy : Policy
    keep : bool
        Hold on to the values of the last run.
    **options
        Of ``lower``.

    Returns
    -------
    Executable
        Whose machine is ready, and whose kernels are loaded.
    """
    codes: dict[str, Code] = {}
    with span("lower"):
        executable = Executable(graph, policy, codes, keep=keep, **options)
    with span("machine"):
        if policy.native:
            codes |= load_printed([one.kernels for one in executable.together()])
        assert executable.machine is not None
    return executable
