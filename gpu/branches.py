"""Choices between values on a device (ifelse): the chosen one stays there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.gpu.transfers import ToDevice, ToHost, on_device
from symcomp.ops.control.conditions import IfElse


def choose_on_devices(graph: FunctionGraph) -> None:
    """Let each ifelse choose between values on a device, not between their copies, where both are
    there, or where one is and the result is needed there alone.
    """
    order = graph.toposort()
    wanted = _wanted(graph, order)
    for node in order:
        if isinstance(node.op, IfElse):
            _choose(graph, node, wanted)


def _wanted(graph: FunctionGraph, order: Sequence[Apply]) -> dict[Variable, str]:
    """Return, by the result of an ifelse, the device that all its users need it on."""
    found: dict[Variable, str] = {}
    for node in reversed(order):
        if isinstance(node.op, IfElse):
            for z in node.outputs:
                devices = {_device_of_use(*client, found) for client in graph.clients[z]}
                device = devices.pop() if len(devices) == 1 else None
                if device is not None:
                    found[z] = device
    return found


def _device_of_use(user: Any, i: int, wanted: Mapping[Variable, str]) -> str | None:
    if user == "output":
        return None
    if isinstance(user.op, IfElse) and i > 0:
        return wanted.get(user.outputs[(i - 1) % len(user.outputs)])
    return user.op.device if isinstance(user.op, ToDevice) else None


def _choose(graph: FunctionGraph, node: Apply, wanted: Mapping[Variable, str]) -> None:
    """Replace an ifelse by one whose values are on devices, as far as they can be."""
    condition, *values = node.inputs
    n = len(node.outputs)
    devices = [
        _device_of_choice(x, y, wanted.get(z))
        for z, x, y in zip(node.outputs, values[:n], values[n:], strict=True)
    ]
    if not any(devices):
        return
    given = [
        x if device is None else on_device(graph, x, device)
        for x, device in zip(values, 2 * devices, strict=True)
    ]
    made = Apply(node.op, [condition, *given], node.op.output_types(condition, *given), node.source)
    for old, new, device in zip(node.outputs, made.outputs, devices, strict=True):
        new.source = old.source
        graph.replace(old, new if device is None else ToHost()(new))


def _device_of_choice(x: Variable, y: Variable, wanted: str | None) -> str | None:
    """Return the device that the result stays on: that of both values, or of one of them if it is
    ``wanted`` there.
    """
    found = {_device_of_copy(x), _device_of_copy(y)}
    if wanted is not None and found == {wanted, None}:
        return wanted
    return found.pop() if len(found) == 1 else None


def _device_of_copy(x: Variable) -> str | None:
    """Return the device that a tensor is copied from; None if it is no such copy."""
    if x.owner is None or not isinstance(x.owner.op, ToHost):
        return None
    device: str = x.owner.inputs[0].type.device
    return device
