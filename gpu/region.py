"""DeviceGraph: a graph that a device computes, as one op; and what plans and runs it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.driver.interface import Driver, Memory
from symcomp.gpu.execution import run_plan
from symcomp.gpu.lowerings.contract import lowering_of, makes_arrays
from symcomp.gpu.plan import Plan
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.type import DeviceType

# Arenas of at most this number of bytes are kept for the next call.
KEPT_ARENA = 1 << 30


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
        known = [tuple(y.type.shape) for y in node.outputs]
        return [None if None in shape else shape for shape in known]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return self.program.run

    def perform(self, *values: Any) -> Any:
        return self.program.run(*values)

    @cached_property
    def program(self) -> DeviceProgram:
        """The program that plans and runs the graph, of this op alone."""
        return DeviceProgram(self)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "program"}

    def __str__(self) -> str:
        nodes = len(toposort(self.graph.outputs))
        return f"DeviceGraph{{{nodes} ops on {self.device}}}"


class DeviceProgram:
    """Plans of a DeviceGraph, by the layouts of its inputs.

    Parameters
    ----------
    op : DeviceGraph
    """

    def __init__(self, op: DeviceGraph) -> None:
        self.op, self.name = op, str(op)
        self.order = toposort(op.graph.outputs)
        self.plans: OrderedDict[Any, Plan] = OrderedDict()
        self.made = self.repeated = 0
        self._constants: dict[Any, Memory] = {}
        self._arenas: list[Memory] = []
        self._lock = threading.Lock()

    @property
    def driver(self) -> Driver:
        """The driver of the device."""
        return driver_of(self.op.device)

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Enqueue the computation; return device arrays, and host arrays of ``host_outputs``."""
        driver = self.driver
        plan = self.plan_for(driver, values)
        arena = self._arena(driver, plan)
        found = run_plan(driver, plan, values, arena, self.name)
        if arena is not None:
            # Later work on the stream may write over it: it runs later.
            with self._lock:
                if not self._arenas and arena.nbytes <= KEPT_ARENA:
                    self._arenas.append(arena)
        if config.gpu_check:
            driver.wait()
        return tuple(found)

    def _arena(self, driver: Driver, plan: Plan) -> Memory | None:
        if not plan.arena:
            return None
        with self._lock:
            kept = self._arenas.pop() if self._arenas else None
        if kept is not None and kept.nbytes >= plan.arena:
            return kept
        return driver.allocate(plan.arena, f"intermediate values of {self.name}")

    def plan_for(self, driver: Driver, values: Sequence[Any]) -> Plan:
        """Return the plan for the layouts of these values, and the numbers among them."""
        host = self.op.host_inputs
        key = (
            id(driver),
            tuple(
                (x.dtype.char, x.shape, np.asarray(x).tobytes())
                if i in host
                else (x.dtype.char, x.shape, x.strides)
                for i, x in enumerate(values)
            ),
        )
        with self._lock:
            plan = self.plans.get(key)
            if plan is not None:
                self.plans.move_to_end(key)
                self.repeated += 1
                return plan
        plan = self._plan(driver, values)
        with self._lock:
            self.made += 1
            self.plans[key] = plan
            while len(self.plans) > max(1, config.most_plans):
                self.plans.popitem(last=False)
        return plan

    def _plan(self, driver: Driver, values: Sequence[Any]) -> Plan:
        planner = Planner(driver, self._constants)
        known: dict[Variable, Any] = {}
        for i, (x, value) in enumerate(zip(self.op.graph.inputs, values, strict=True)):
            if i in self.op.host_inputs:
                known[x] = np.asarray(value)
            else:
                known[x] = planner.input(i, value.dtype.name, value.shape, value.strides)
            require_lengths(x, known[x])
        plan_nodes(planner, self.order, known)
        outputs = []
        for i, y in enumerate(self.op.graph.outputs):
            value = known[y] if y in known else y.data
            if i not in self.op.host_outputs and not isinstance(value, Operand):
                value = planner.constant(value)
            outputs.append(value)
        return planner.finish(outputs)


def plan_nodes(planner: Planner, order: Sequence[Apply], known: dict[Variable, Any]) -> None:
    """Emit the calls of nodes, and add their outputs to the operands and host values ``known``."""
    for node in order:
        planner.label = f"{node.op} ({node.source})" if node.source else str(node.op)
        given = [known[x] if x in known else x.data for x in node.inputs]
        found = plan_node(planner, node, given)
        for z, value in zip(node.outputs, found, strict=True):
            require_lengths(z, value)
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
        found = node.op.bind(node)(*given)
        return found if node.op.multiple_outputs else [found]
    lowering = lowering_of(node)
    assert lowering is not None, f"{node.op} has no lowering for devices"
    on_host = lowering.on_host(node)
    operands = [
        x if isinstance(x, Operand) or i in on_host else planner.constant(x)
        for i, x in enumerate(given)
    ]
    return lowering.plan(planner, node, operands)
