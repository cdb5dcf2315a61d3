"""Graphs that are read from files, moved to other devices or to the host.

A region may be computed elsewhere than a file says: its graph is one of the host's ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import DTypeError
from symcomp.gpu.array import to_device
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.loops import DeviceLoop, DeviceUntil, device_loop, is_count, leave_loops
from symcomp.gpu.lowerings.contract import lacks_library, lowering_of, makes_arrays
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.transfers import DeviceLength, DevicePart, ToDevice, ToHost, ToHostTogether
from symcomp.gpu.type import DeviceType
from symcomp.gpu.until import DeviceUntilGraph
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.shapes.shape import Shape, ShapeI


class Placement:
    """Where values and work of a file go.

    Parameters
    ----------
    device : str, mapping of str to str, or None
        The device for all of them, or "cpu"; by the device that they were on; or None: that device.
    """

    def __init__(self, device: str | Mapping[str, str] | None = None) -> None:
        self._device = device if device is None or isinstance(device, Mapping) else _place(device)
        if isinstance(device, Mapping):
            self._device = {_place(old): _place(new) for old, new in device.items()}

    def of(self, device: str) -> str:
        """Return where that goes which was on a device: a device that can be used, or "cpu".

        Raises
        ------
        DeviceUnavailable
            If the device cannot be used.
        """
        device = canonical(device)
        found = self._device or device
        target = found if isinstance(found, str) else found.get(device, device)
        if target != "cpu":
            try:
                driver_of(target)
            except DeviceUnavailable as problem:
                problem.add_note(
                    f"The file has values or functions for {target}: symcomp.load(path, "
                    "device='cpu') puts them on the processor, device='emu' on the emulator."
                )
                raise
        return target

    def type(self, kind: Type) -> Type:
        """Return the type of the same values where they go."""
        moved = getattr(kind, "moved", None)
        return kind if moved is None else moved(self.of(kind.device))  # type: ignore[attr-defined]

    def array(self, device: str, value: Any) -> Any:
        """Return an array of a file where it goes."""
        target = self.of(device)
        return value if target == "cpu" else to_device(value, target)

    def node(self, op: Op, inputs: Sequence[Variable]) -> Op | list[Variable]:
        """Return an op of this package for the device where its work goes; or, on the host, what
        its outputs are.

        Parameters
        ----------
        op : Op
        inputs : sequence of Variable
            Where they go.

        Raises
        ------
        DTypeError
            If these are no inputs of the op.
        """
        if isinstance(op, DeviceGraph):
            check_region(op)
            target = self.of(op.device)
            if target == "cpu":
                return _inlined(op, inputs)
            if _lacks_library(op, target):
                return _between_copies(op, inputs, target)
            return type(op)(op.graph, target, op.host_inputs, op.host_outputs)
        if isinstance(op, ToDevice):
            target = self.of(op.device)
            return [_host(x) for x in inputs] if target == "cpu" else ToDevice(target)
        if isinstance(op, ToHost | ToHostTogether) and not _are_on_devices(inputs):
            return [_host(x) for x in inputs]
        if isinstance(op, DeviceLength) and not _are_on_devices(inputs):
            return [ShapeI(op.axis)(*inputs)]
        if isinstance(op, DevicePart) and not _are_on_devices(inputs[:1]):
            return [Subtensor(op.pattern)(*inputs)]
        placed = getattr(op, "placed", None)  # of ops of other packages
        return op if placed is None else placed(inputs, self.of)


def _place(name: Any) -> str:
    return "cpu" if name == "cpu" else canonical(name)


def _are_on_devices(inputs: Sequence[Variable]) -> bool:
    return all(isinstance(x.type, DeviceType) for x in inputs)


def _host(x: Variable) -> Any:
    return ToHost()(x) if isinstance(x.type, DeviceType) else x


def _lacks_library(op: DeviceGraph, device: str) -> bool:
    return any(lacks_library(node, device) for node in toposort(op.graph.outputs))


def _inlined(op: DeviceGraph, inputs: Sequence[Variable]) -> list[Variable]:
    """Return the outputs of a region, computed on the host."""
    wanted = op.graph.inputs
    fits = len(wanted) == len(inputs) and all(
        w.type.is_super(x.type) for w, x in zip(wanted, inputs, strict=True)
    )
    if not fits:
        raise DTypeError(f"{op} does not take {', '.join(str(x.type) for x in inputs)}")
    graph = FunctionGraph(wanted, op.graph.outputs)
    leave_loops(graph)
    return rebuild(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))


def _between_copies(op: DeviceGraph, inputs: Sequence[Variable], device: str) -> list[Variable]:
    """Return the outputs of a region, computed on the host, where those on the device are."""
    found = _inlined(op, [_host(x) for x in inputs])
    return [
        z if i in op.host_outputs else ToDevice(device)(z)
        for i, z in enumerate(found)
    ]


def check_region(op: DeviceGraph) -> None:
    """Raise unless a device can compute the graph of a region.

    Raises
    ------
    DTypeError
        If it cannot.
    """
    graph = op.graph
    on_host: set[Variable] = set()
    if not all(0 <= i < len(graph.inputs) for i in op.host_inputs):
        raise DTypeError(f"{op}: host_inputs {op.host_inputs} of {len(graph.inputs)} inputs")
    if not all(0 <= i < len(graph.outputs) for i in op.host_outputs):
        raise DTypeError(f"{op}: host_outputs {op.host_outputs} of {len(graph.outputs)} outputs")
    on_host.update(graph.inputs[i] for i in op.host_inputs)
    order = toposort(graph.outputs)
    has_until = any(isinstance(node.op, DeviceUntil) for node in order)
    is_one_node = len(order) == 1 and {y.owner for y in graph.outputs} == {*order}
    if isinstance(op, DeviceUntilGraph) != has_until or (has_until and not is_one_node):
        raise DTypeError(f"{op}: a loop with a condition to stop is a region of its own")
    for node in order:
        if isinstance(node.op, DeviceLoop):
            check_loop(node.op)
        known = [isinstance(x, Constant) or x in on_host for x in node.inputs]
        if all(known) and not makes_arrays(node):
            on_host.update(node.outputs)
            continue
        lowering = lowering_of(node)
        if lowering is None or not all(known[i] for i in lowering.on_host(node)):
            raise DTypeError(f"{op}: a device cannot compute {node.op}")
        if isinstance(node.op, Shape | ShapeI):
            on_host.update(node.outputs)
        on_host.update(z for z in node.outputs if is_count(z))
    if any(graph.outputs[i] not in on_host for i in op.host_outputs):
        raise DTypeError(f"{op}: an output that is on the device is said to be on the host")


def check_loop(op: DeviceLoop) -> None:
    """Raise unless a device can compute the steps of a loop.

    Raises
    ------
    DTypeError
        If it cannot.
    """
    for node in toposort(op.body.outputs):
        if isinstance(node.op, DeviceLoop):
            check_loop(node.op)
    made = device_loop(op.loop, op.body)
    if made is None or type(made) is not type(op) or made.on_host != op.on_host:
        raise DTypeError(f"{op}: a device cannot compute its steps")
