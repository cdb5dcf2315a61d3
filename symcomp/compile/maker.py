"""Maker: the result of compiling (the rewritten graph and the roles of its inputs and outputs),
from which programs are made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from symcomp.compile.container import Container
from symcomp.compile.features import planning
from symcomp.compile.io import In
from symcomp.compile.mode import Mode
from symcomp.compile.shared import SharedVariable
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Type, Variable
from symcomp.core.record import record, replace
from symcomp.core.spans import span
from symcomp.core.tensor import TensorType
from symcomp.core.walk import rebuild
from symcomp.cvm.executable import Executable, compile_graph
from symcomp.lazy import lazy_module
from symcomp.profiling.stats import ProfileStats
from symcomp.rewrite.phases import FULL
from symcomp.rewrite.trace import Trace
from symcomp.vm.guard import Around, Binder, NaNInspector
from symcomp.vm.inspection import Inspector, Several
from symcomp.vm.lower import lower
from symcomp.vm.program import Program

# Without a global lock, reference counts do not show what another thread is about to do.
counts_are_certain: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)


@record(frozen=False)
class Input:
    """An input of a compiled function, in the order of the graph's inputs.

    ``variable`` is the user's; ``shared`` the shared variable behind it, if any; ``container`` its
    storage if it has a default value or is implicit.
    """

    variable: Variable
    name: str | None
    type: Type
    container: Container
    shared: SharedVariable | None = None
    implicit: bool = False
    has_default: bool = False
    mutable: bool = False
    strict: bool = False
    allow_downcast: bool | None = None

    @classmethod
    def from_in(cls, spec: In, allow_downcast: bool | None) -> Input:
        """Make the input that the user described by an In."""
        downcast = spec.allow_downcast if spec.allow_downcast is not None else allow_downcast
        kind, name = spec.variable.type, spec.name
        shared = spec.value if isinstance(spec.value, SharedVariable) else None
        if shared is not None:
            container = shared.container
        elif isinstance(spec.value, Container):
            container = spec.value
        else:
            container = Container(kind, spec.value, name, spec.strict, downcast)
        has_default = spec.value is not None
        return cls(
            spec.variable, name, kind, container, shared, spec.implicit, has_default, spec.mutable,
            spec.strict, downcast,
        )  # fmt: skip

    @classmethod
    def from_shared(cls, shared: SharedVariable) -> Input:
        """Make the input for a shared variable."""
        return cls(
            shared,
            shared.name,
            shared.type,
            shared.container,
            shared,
            implicit=True,
            has_default=True,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the user's graph above the variable."""
        state = dict(self.__dict__)
        if self.variable.owner is not None:
            state["variable"] = self.variable.clone()
        return state


@record(frozen=False)
class Maker:
    """The rewritten graph and the roles of its inputs and outputs.

    Attributes
    ----------
    fgraph : FunctionGraph
        Rewritten; its outputs are the user's and then the updates.
    inputs : list of Input
    structure : None, "single", "list" or tuple of str
        The structure of a call's result.
    n_outputs : int
        The number of the user's outputs.
    updated : list of int
        For each further output, the input whose container receives it.
    trace : Trace
        The trace of rewriting.
    original : tuple of Variable
        The outputs and updates before rewriting; they are not pickled.
    """

    fgraph: FunctionGraph
    inputs: list[Input]
    structure: Any
    n_outputs: int
    updated: list[int]
    borrowed: list[int]
    mode: Mode
    name: str
    nan_guard: str
    profile: ProfileStats | None = None
    keeps: bool = field(default=False)
    trace: Trace = field(default_factory=Trace)
    original: tuple[Variable, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the user's graph."""
        return {**self.__dict__, "original": ()}

    def lowering(self, reuse: bool = True, collect: bool = True) -> dict[str, Any]:
        """Return the arguments of ``lower``: with a storage plan, and with frees, where the mode
        allows them.
        """
        reuse = reuse and self.mode.selects(frozenset(["inplace", *FULL]))
        return {
            "destroyable": [
                v for v, spec in zip(self.fgraph.inputs, self.inputs, strict=True) if spec.mutable
            ],
            "given_away": [self.fgraph.inputs[i] for i in self.given_away] if reuse else (),
            "stored": range(self.n_outputs, len(self.fgraph.outputs)),
            "borrowed": self.borrowed,
            "collect": collect and not self.keeps,
            "inplace": reuse,
            "sharing": reuse,
            "frugal": reuse,
            "updated": self._overwritable() if reuse and self.inspector is None else None,
        }

    def program(self, reuse: bool = True, collect: bool = True) -> Program:
        """Lower the graph to a program, for inspection."""
        bind = Binder(self.nan_guard, planning=planning())
        return lower(self.fgraph, bind=bind, **self.lowering(reuse, collect))

    def executable(self, around: Around | None = None) -> Executable:
        """Compile the graph, and all graphs in its ops; ``around``: see ``Policy``."""
        policy = replace(self.mode.policy(self.nan_guard, self.inspector), around=around)
        return compile_graph(self.fgraph, policy, self.keeps, **self.lowering())

    @property
    def given_away(self) -> list[int]:
        """The inputs whose arguments the function may overwrite: those without a stored value."""
        return [
            i
            for i, spec in enumerate(self.inputs)
            if spec.mutable
            and not (spec.implicit or spec.has_default or i in self.updated)
            and isinstance(spec.type, TensorType)
        ]

    def other_programs(self) -> tuple[Program, Program]:
        """Return the program without a storage plan, and the one without frees, too."""
        return self.program(reuse=False), self.program(reuse=False, collect=False)

    @property
    def inspector(self) -> Inspector | None:
        """The inspector of the values of all nodes, or None."""
        found: list[Inspector] = [NaNInspector()] if self.nan_guard == "all" else []
        found += [] if self.mode.inspector is None else [self.mode.inspector]
        return Several(found, self.mode.selects) if found else None

    def _overwritable(self) -> dict[int, Variable]:
        """Return the outputs that may be written over shared variables: none if setting another one
        might fail after computing, or if the holders of their arrays are not known.
        """
        if not counts_are_certain():
            return {}
        pairs = [
            (self.n_outputs + k, self.inputs[i], self.fgraph.inputs[i])
            for k, i in enumerate(self.updated)
        ]
        if not all(s.type.is_super(self.fgraph.outputs[k].type) for k, s, _ in pairs):
            return {}
        return {k: variable for k, spec, variable in pairs if spec.shared is not None}

    def without_updates(self) -> Maker:
        """Return a Maker that computes only the user's outputs."""
        graph = FunctionGraph(self.fgraph.inputs, self.fgraph.outputs[: self.n_outputs])
        return Maker(
            graph, self.inputs, self.structure, self.n_outputs, [], self.borrowed, self.mode,
            self.name, self.nan_guard, self.profile, self.keeps, self.trace,
            self.original[: self.n_outputs],
        )  # fmt: skip


devices = lazy_module("symcomp.gpu.rules")


def _lives(spec: Input) -> bool:
    """Return whether the value of a shared variable is on a device."""
    return spec.shared is not None and hasattr(spec.container.type, "on_host")


def _with_devices(
    inputs: Sequence[Input],
    updates: Sequence[tuple[int, Variable]],
    n_outputs: int,
    roots: Sequence[Variable],
) -> tuple[list[Variable], list[Variable]]:
    """Return inputs and roots where shared values that live on devices are inputs of these types;
    what the graph reads are copies on the host, which rewriting leaves out.
    """
    there: dict[Variable, Any] = {}
    for spec in inputs:
        if _lives(spec):
            spec.type = spec.container.type
            there[spec.variable] = spec.type.make_variable(spec.name)
    pairs = {variable: stored.to_host(stored) for variable, stored in there.items()}
    found = rebuild(roots, pairs)
    for k, (i, _) in enumerate(updates, n_outputs):
        if _lives(inputs[i]):
            stored = there[inputs[i].variable]
            found[k] = stored.to_device(found[k], stored.type.device)
    devices.register()
    return [there.get(spec.variable, spec.variable) for spec in inputs], found


def make(
    inputs: Sequence[Input],
    outputs: Sequence[Variable],
    updates: Sequence[tuple[int, Variable]],
    structure: Any,
    borrowed: Sequence[int],
    mode: Mode,
    name: str,
    profile: ProfileStats | None,
) -> Maker:
    """Copy and rewrite the graph, and record the roles of its inputs and outputs.

    Parameters
    ----------
    inputs : sequence of Input
    outputs : sequence of Variable
        The user's.
    updates : sequence of (int, Variable)
        Position of the input that is updated, and the expression of its new value.
    """
    with span("copy"):
        roots = [*outputs, *(expression for _, expression in updates)]
        leaves = [spec.variable for spec in inputs]
        if any(_lives(spec) and not hasattr(spec.variable.type, "on_host") for spec in inputs):
            leaves, roots = _with_devices(inputs, updates, len(outputs), roots)
        graph = FunctionGraph(leaves, roots)
    trace = mode.rewrite(graph)
    if config.optimizer_verbose:
        print(trace)
    return Maker(
        graph, list(inputs), structure, len(outputs), [i for i, _ in updates], list(borrowed), mode,
        name, config.nan_guard, profile, mode.keeps_values, trace,
        (*outputs, *(expression for _, expression in updates)),
    )  # fmt: skip
