"""DeviceGraph: a graph that a device computes, as one op; and what plans and runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.storage import bound
from symcomp.core.walk import toposort
from symcomp.cvm.machine import DeviceMemory, DeviceRegion, RegionPlan, is_aligned
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.chunks import is_too_long
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.execution import ready
from symcomp.gpu.lowerings.contract import lowering_of, makes_arrays
from symcomp.gpu.plan import Plan
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.type import DeviceType
from symcomp.ops.control.graph_op import GraphLengths, lengths_in, shapes_through


@record
class DeviceGraph(Op):
    """y_1 .. y_m = graph(x_1 .. x_n), computed on a device.

    Attributes
    ----------
    graph : ClosedGraph
        Of tensors.
    device : str
    host_inputs, host_outputs : tuple of int
        The inputs that are on the host, numbers on whose values plans depend; and the outputs that
        follow from layouts alone, and are on the host.
    """

    graph: ClosedGraph
    device: str
    host_inputs: tuple[int, ...] = ()
    host_outputs: tuple[int, ...] = ()

    multiple_outputs = True
    no_derivative = "it is made by rewriting, when derivatives have been taken"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "device", canonical(self.device))

    def output_types(self, *inputs: Any) -> list[Any]:
        for i, (x, wanted) in enumerate(zip(inputs, self.graph.inputs, strict=True)):
            fits = x.type if i in self.host_inputs else getattr(x.type, "on_host", None)
            if fits is None or not wanted.type.is_super(fits):
                raise DTypeError(f"{self}: input {i} is {x.type}, {wanted.type} is needed")
        return [
            y.type if i in self.host_outputs else self._on_device(y.type)
            for i, y in enumerate(self.graph.outputs)
        ]

    def _on_device(self, kind: Any) -> DeviceType:
        return DeviceType(self.device, kind.dtype, kind.shape)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        if any(shape is None for shape in shapes):
            return [None] * len(node.outputs)
        given = [
            x if i in self.host_inputs else x.as_tensor_variable()
            for i, x in enumerate(node.inputs)
        ]
        return shapes_through(self.graph, self._lengths, given, shapes)

    @cached_property
    def _lengths(self) -> GraphLengths:
        return lengths_in(self.graph)

    def bind(self, node: Apply) -> Callable[..., Any]:
        if node.source:
            self.program.name = f"{self} ({node.source})"
        return self.program

    def perform(self, *values: Any) -> Any:
        return self.program(*values)

    @cached_property
    def program(self) -> DeviceProgram:
        """The program that plans and runs the graph, of this op alone."""
        return DeviceProgram(self)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("program", "_lengths")}

    def __str__(self) -> str:
        nodes = len(toposort(self.graph.outputs))
        return f"DeviceGraph{{{nodes} ops on {self.device}}}"


class DeviceProgram(DeviceRegion):
    """Plans of a DeviceGraph, by the layouts of its inputs: a function of arrays, in C.

    Parameters
    ----------
    op : DeviceGraph
    """

    def __init__(self, op: DeviceGraph) -> None:
        super().__init__(len(op.host_inputs) < len(op.graph.inputs))
        self._products, self._atomics = config.gpu_products, config.gpu_atomics
        self.op, self.name = op, str(op)
        self.order = toposort(op.graph.outputs)
        self._constants: dict[Any, DeviceMemory] = {}

    @property
    def driver(self) -> Driver:
        """The driver of the device."""
        return driver_of(self.op.device)

    @property
    def kept_bytes(self) -> int:
        """The bytes on the device that stay from call to call, but for the arena."""
        constants = sum(memory.nbytes for memory in self._constants.values())
        return constants + sum(plan.staged_bytes for plan in self.plans)

    def make_plan(self, *values: Any) -> RegionPlan:
        """Return the plan for the layouts of these values, and the numbers among them."""
        driver, host = self.driver, self.op.host_inputs
        inputs = [
            np.array(x) if i in host else (x.dtype, x.shape, x.strides, is_aligned(x.address))
            for i, x in enumerate(values)
        ]
        return ready(driver, self._plan(driver, values), inputs, self.name)

    def _plan(self, driver: Driver, values: Sequence[Any]) -> Plan:
        planner = self._planner(driver)
        outputs = self._emit(planner, values)
        planner.merge(outputs)
        if config.gpu_graphs and driver.queue.recorder and is_too_long(planner.calls):
            planner = self._planner(driver, has_parts=True)
            outputs = self._emit(planner, values)
            planner.merge(outputs)
        return planner.finish(outputs)

    def _planner(self, driver: Driver, has_parts: bool = False) -> Planner:
        return Planner(driver, self._constants, self._products, self._atomics, has_parts)

    def _emit(self, planner: Planner, values: Sequence[Any]) -> list[Any]:
        """Emit the calls; return the outputs, operands or host arrays."""
        known: dict[Variable, Any] = {}
        for i, (x, value) in enumerate(zip(self.op.graph.inputs, values, strict=True)):
            if i in self.op.host_inputs:
                known[x] = np.asarray(value)
            else:
                layout = value.dtype.name, value.shape, value.strides
                known[x] = planner.input(i, *layout, is_aligned(value.address))
            require_lengths(x, known[x])
        plan_nodes(planner, self.order, self.op.graph.outputs, known)
        outputs = []
        for i, y in enumerate(self.op.graph.outputs):
            value = known[y] if y in known else y.data
            if i not in self.op.host_outputs and not isinstance(value, Operand):
                value = planner.constant(value)
            outputs.append(value)
        return outputs


def plan_nodes(
    planner: Planner,
    order: Sequence[Apply],
    outputs: Sequence[Variable],
    known: dict[Variable, Any],
) -> None:
    """Emit the calls of the nodes of a graph, and add their results to the operands and host values
    ``known``.
    """
    used = {x for node in order for x in node.inputs}.union(outputs)
    unused = frozenset(z for node in order for z in node.outputs if z not in used)
    for node in order:
        planner.label = f"{node.op} ({node.source})" if node.source else str(node.op)
        given = [known[x] if x in known else x.data for x in node.inputs]
        planner.unused = unused
        try:
            found = plan_node(planner, node, given)
            for z, value in zip(node.outputs, found, strict=True):
                require_lengths(z, value)
        except Exception as problem:
            problem.add_note(f"In a region of a device, this was raised by {planner.label}")
            raise
        known.update(zip(node.outputs, found, strict=True))


def require_lengths(variable: Variable, value: Any) -> None:
    """Raise unless a value has the lengths that its variable is known to have; kernels rely on
    those of 1.

    Raises
    ------
    ShapeError
        If it has not.
    """
    known = variable.type.shape  # type: ignore[attr-defined]
    if any(n is not None and n != m for n, m in zip(known, value.shape, strict=True)):
        raise ShapeError(f"{variable} is {variable.type}, but has shape {value.shape}")


def plan_node(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    """Emit the calls of a node; return its outputs: operands, or host values.

    Parameters
    ----------
    given : sequence
        For each input an Operand, or a host array whose value is known from the layouts.
    """
    if not makes_arrays(node) and not any(isinstance(x, Operand) for x in given):
        found = bound(node)(*given)
        return found if node.op.multiple_outputs else [found]
    lowering = lowering_of(node)
    assert lowering is not None, f"{node.op} has no lowering for devices"
    on_host = lowering.on_host(node)
    operands = [
        x if isinstance(x, Operand) or i in on_host else planner.constant(x)
        for i, x in enumerate(given)
    ]
    return lowering.plan(planner, node, operands)
