"""States and outputs of a loop on the host that its steps keep on a device.

What a step computes on a device and the next one reads there need not cross the bus between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Variable
from symcomp.core.record import replace
from symcomp.core.walk import rebuild
from symcomp.gpu.rules import is_part
from symcomp.gpu.transfers import (
    DeviceLength,
    DevicePart,
    ToDevice,
    ToHost,
    ToHostTogether,
    on_device,
)
from symcomp.gpu.type import DeviceType
from symcomp.ops.shapes.shape import ShapeI
from symcomp.scan.layout import Arguments, BodyInputs, flat_body_inputs

Devices = Mapping[int, str]


def devices_of_results(op: Any, body: FunctionGraph) -> Devices:
    """Return the devices of results that a step copies from there, or reads there in the next step,
    by their numbers.

    Parameters
    ----------
    op : Scan
    body : FunctionGraph
        Its rewritten step.
    """
    step, new = op.layout.step(body.inputs), op.layout.results(body.outputs)
    reads = [*step.lagged, *([x] for x in step.carried), *([] for _ in new.stacked)]
    results = [*new.traced, *new.carried, *new.stacked]
    found = {}
    for i, (rows, z) in enumerate(zip(reads, results, strict=True)):
        devices = {
            client.op.device
            for x in rows
            for client, _ in body.clients[x]
            if client != "output" and isinstance(client.op, ToDevice)
        }
        if z.owner is not None and isinstance(z.owner.op, ToHost):
            devices.add(z.owner.inputs[0].type.device)
        if len(devices) == 1:
            (found[i],) = devices
    return found


def on_devices(op: Any, devices: Devices) -> Any:
    """Return a loop some of whose states and outputs are on devices."""
    layout, pairs = op.layout, {}

    def moved(x: Any, i: int) -> Any:
        if i not in devices:
            return x
        there = DeviceType(devices[i], x.type.dtype, x.type.shape).make_variable(x.name)
        pairs[x] = ToHost()(there)
        return there

    step, n = layout.step(op.body.inputs), len(layout.lags)
    lagged = [[moved(x, i) for x in rows] for i, rows in enumerate(step.lagged)]
    carried = [moved(x, n + k) for k, x in enumerate(step.carried)]
    inputs = flat_body_inputs(BodyInputs(lagged, carried, step.rows, step.captured))
    outputs = [
        ToDevice(devices[i])(z) if i in devices else z
        for i, z in enumerate(rebuild(op.body.outputs, pairs))
    ]
    return replace(op, body=ClosedGraph(inputs, outputs))


def started_on(graph: FunctionGraph, given: Arguments, devices: Devices) -> Arguments:
    """Return the arguments of a loop some of whose states are on devices."""
    n = len(given.traced)

    def moved(x: Variable, i: int) -> Variable:
        return on_device(graph, x, devices[i]) if i in devices else x

    return given._replace(
        traced=[moved(x, i) for i, x in enumerate(given.traced)],
        carried=[moved(x, n + k) for k, x in enumerate(given.carried)],
    )


def crossings(op: Any, body: FunctionGraph) -> int:
    """Return how many copies to and from the host are in each step, once those of captured values
    and of sequences are before the loop.
    """
    step = op.layout.step(body.inputs)
    before = {*step.captured, *(() if op.layout.until else step.rows)}
    return sum(
        isinstance(node.op, ToHost | ToHostTogether | ToDevice) and node.inputs[0] not in before
        for node in body.toposort()
    )


def use_there(graph: FunctionGraph, copied: Variable) -> None:
    """Let parts of an array that was copied to the host be taken on its device, as far as others
    need them there.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    copied : Variable
        A result of ``ToHost``.
    """
    there: Any = copied.owner.inputs[0]  # type: ignore[union-attr]
    for client, i in list(graph.clients.get(copied, ())):
        if client == "output" or i > 0:
            continue
        (z, *_) = client.outputs
        if isinstance(client.op, ToDevice):
            graph.replace(z, on_device(graph, copied, client.op.device))
        elif isinstance(client.op, ShapeI):
            graph.replace(z, DeviceLength(client.op.axis)(there))
        elif is_part(client):
            part = DevicePart(client.op.pattern)(there, *client.inputs[1:])
            part.source = z.source
            taken = ToHost()(part)
            graph.replace(z, taken)
            use_there(graph, taken)
