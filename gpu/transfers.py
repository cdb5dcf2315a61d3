"""Copies between the host and devices, as ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.dtype import numpy_dtype
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import (
    CopyToDevice,
    CopyToHost,
    LengthOnDevice,
    PartOnDevice,
    copies_on_host,
)
from symcomp.errors import DTypeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.type import DeviceType, DeviceVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import IndexPattern, fill_pattern, runtime_shape


@record
class ToDevice(Op):
    """z = x, on a device; x is a tensor, or lies on another device."""

    device: str

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "device", canonical(self.device))

    def as_inputs(self, *args: Any) -> list[Variable]:
        (x,) = args
        return [x if isinstance(x, DeviceVariable) else as_tensor_variable(x)]

    def output_types(self, x: Any) -> list[DeviceType]:
        return [DeviceType(self.device, x.type.dtype, x.type.shape)]

    def bind(self, node: Apply) -> Callable[..., Any]:
        dtype = numpy_dtype(node.inputs[0].type.dtype)
        return CopyToDevice(self.device, dtype, DeviceArray, driver_of)

    def perform(self, x: Any) -> Any:
        return to_device(x, self.device)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [_like(inputs[0], output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def _like(x: Any, gradient: Any) -> Any:
    """Return a gradient on the device of ``x``."""
    if isinstance(x.type, DeviceType):
        return ToDevice(x.type.device)(gradient)
    return as_tensor_variable(gradient)


@record
class ToHost(Op):
    """z = x, on the host; computing it waits for the device."""

    def as_inputs(self, *args: Any) -> list[Variable]:
        (x,) = args
        if not isinstance(x, Variable) or not isinstance(x.type, DeviceType):
            raise DTypeError(f"to_cpu: {x} is no array on a device")
        return [x]

    def output_types(self, x: Any) -> list[TensorType]:
        return [x.type.on_host]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return CopyToHost(several=False)

    def perform(self, x: Any) -> Any:
        return x.get()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return list(shapes)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [ToDevice(inputs[0].type.device)(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


@record
class ToHostTogether(Op):
    """z_1, .. = x_1, .., on the host; the host waits once for each device."""

    multiple_outputs = True
    no_derivative = "it is made by rewriting, when derivatives have been taken"

    def output_types(self, *inputs: Any) -> list[TensorType]:
        return [x.type.on_host for x in inputs]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return CopyToHost(several=True)

    def perform(self, *values: Any) -> tuple[Any, ...]:
        return tuple(copies_on_host(values))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return list(shapes)


@record
class DeviceLength(Op):
    """n = the length of an axis of an array on a device: it is known without waiting."""

    axis: int

    def output_types(self, x: Any) -> list[TensorType]:
        return [TensorType("int64", ())]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return LengthOnDevice(self.axis)

    def perform(self, x: Any) -> Any:
        return np.array(x.shape[self.axis], "int64")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None]


@record
class DevicePart(Op):
    """z = x[pattern], a view of an array on a device; the numbers of the pattern are inputs.

    As an op of its own it lets the plan of a region serve all positions.
    """

    pattern: IndexPattern

    no_derivative = "it is made by rewriting, when derivatives have been taken"

    def output_types(self, x: Any, *numbers: Any) -> list[DeviceType]:
        (kind,) = Subtensor(self.pattern).output_types(x.type.on_host.make_variable(), *numbers)
        return [DeviceType(x.type.device, kind.dtype, kind.shape)]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return PartOnDevice(self.pattern)

    def perform(self, x: Any, *numbers: Any) -> Any:
        return x.part(fill_pattern(self.pattern, numbers))

    def infer_shape(self, node: Any, shapes: Sequence[Any]) -> list[Any]:
        if shapes[0] is None:
            return [None]
        shape = runtime_shape(shapes[0], self.pattern, node.inputs[1:], shapes[1:])
        static = node.outputs[0].type.shape
        return [tuple(n if k is None else k for n, k in zip(shape, static, strict=True))]


def to_gpu(x: Any, device: str = "cuda") -> Any:
    """Return ``x`` on a device, as an expression.

    Parameters
    ----------
    x : tensor or variable on a device
    device : str
        "cuda", "cuda0", ..., or "emu", the emulator.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.gpu import to_gpu
    >>> x = T.fvector("x")
    >>> f = symcomp.function([x], to_gpu(x * 2, "emu"))
    >>> f([1, 2])
    DeviceArray(float32, (2,), on emu)
    """
    if isinstance(x, DeviceVariable) and x.type.device == canonical(device):
        return x
    return ToDevice(canonical(device))(x)


def to_cpu(x: Any) -> Any:
    """Return ``x`` on the host, as an expression; a tensor stays what it is.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.gpu import to_cpu, to_gpu
    >>> x = T.fvector("x")
    >>> symcomp.function([x], to_cpu(to_gpu(x, "emu")) + 1)([1, 2])
    array([2., 3.], dtype=float32)
    """
    return ToHost()(x) if isinstance(x, DeviceVariable) else as_tensor_variable(x)


def transfer(x: Any, target: str) -> Any:
    """Return ``x`` on a device, or on the host where ``target`` is ``"cpu"``.

    It is a method of variables.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.fvector("x")
    >>> symcomp.function([x], x.transfer("emu"))([1, 2])
    DeviceArray(float32, (2,), on emu)
    """
    return to_cpu(x) if target == "cpu" else to_gpu(x, target)


def on_device(graph: FunctionGraph, x: Variable, device: str) -> Variable:
    """Return a tensor's value on a device, copied once for all nodes that need it there."""
    if x.owner is not None and isinstance(x.owner.op, ToHost):
        there: Variable = x.owner.inputs[0]
        if there.type.device == device:  # type: ignore[attr-defined]
            return there
        x = there
    wanted = ToDevice(device)
    for client, _ in graph.clients[x]:
        if client != "output" and client.op == wanted:
            copied: Variable = client.outputs[0]
            return copied
    moved: Variable = wanted(x)
    return moved


DeviceVariable.transfer = transfer  # type: ignore[attr-defined]
DeviceVariable.to_host = staticmethod(to_cpu)
DeviceVariable.to_device = staticmethod(to_gpu)
