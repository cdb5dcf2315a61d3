"""DeviceUntilGraph: a loop with a condition to stop, on a device.

The host enqueues a chunk of steps and then reads their conditions, so it waits once for several
steps. The results of steps behind the last one are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.dtype import numpy_dtype
from symcomp.core.node import Apply, Constant
from symcomp.core.record import record, replace
from symcomp.cvm.machine import CopyToDevice, UntilLoop
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.loops import DeviceLoop
from symcomp.gpu.region import DeviceGraph, DeviceProgram

# The most steps in a chunk.
MOST_STEPS = 32


@record
class DeviceUntilGraph(DeviceGraph):
    """y_1 .. y_m = graph(x_1 .. x_n), where the graph is one loop with a condition to stop.

    The number of steps done is on the host.
    """

    @cached_property
    def program(self) -> Any:
        """The program that repeats chunks of steps, of this op alone."""
        return UntilProgram(self)


class UntilProgram(UntilLoop):
    """Computes a loop with a condition to stop by chunks of steps, in C; each chunk is a region.

    A chunk has at most ``MOST_STEPS`` steps and no more than were done before, so fewer steps are
    computed in vain than are needed. Its length is a power of two, so there are few plans. If steps
    may report errors, each chunk is one step: a step behind the last one must report none.

    Parameters
    ----------
    op : DeviceUntilGraph
    """

    chunks: DeviceProgram

    def __init__(self, op: DeviceUntilGraph) -> None:
        self.op = op
        (node,) = {y.owner for y in op.graph.outputs}
        until: Any = node.op
        self.loop, layout = until.loop, until.loop.layout
        numbers = {x: i for i, x in enumerate(op.graph.inputs)}
        inputs = [
            (
                numbers.get(x, -1),
                x.data if isinstance(x, Constant) else None,
                None if i in until.on_host else _copy(op.device, x),
            )
            for i, x in enumerate(node.inputs)
        ]
        super().__init__(
            DeviceProgram(_chunk(op.device, node)),
            op.device,
            layout.depths,
            (layout.n_carried, layout.n_sequences, layout.n_stacked),
            MOST_STEPS,
            inputs,
            [node.outputs.index(y) for y in op.graph.outputs],
        )
        self.name = str(op)

    @property
    def name(self) -> str:
        """For messages."""
        return self.chunks.name

    @name.setter
    def name(self, name: str) -> None:
        self.chunks.name = name

    @property
    def driver(self) -> Driver:
        """The driver of the device."""
        return driver_of(self.op.device)

    @property
    def kept_bytes(self) -> int:
        """The bytes on the device that stay from call to call, but for the arena."""
        return self.chunks.kept_bytes + sum(x.nbytes for x in self.constants())

    @property
    def plans(self) -> Any:
        """The plans of chunks that are kept."""
        return self.chunks.plans

    def drop_arena(self) -> None:
        """Give the memory of intermediate values back, which is kept for the next call."""
        self.chunks.drop_arena()

    def check_lengths(self, n: int, traced: Sequence[Any], sequences: Sequence[Any]) -> None:
        """Raise unless arguments have the lengths that ``n`` steps need."""
        self.loop.check_lengths(n, traced, sequences)


def _copy(device: str, x: Any) -> CopyToDevice:
    return CopyToDevice(device, numpy_dtype(x.type.dtype), DeviceArray, driver_of)


def _chunk(device: str, node: Apply) -> DeviceGraph:
    """Return a region of steps of a loop, without the condition to stop."""
    op: Any = node.op
    layout = op.loop.layout
    each = replace(layout, until=False, n_stacked=layout.n_stacked + 1)
    loop = DeviceLoop(replace(op.loop, layout=each), op.body, op.on_host)
    lengths = layout.arguments(range(len(node.inputs))).sequences
    inputs = [
        _any_length(x.type).make_variable() if i in lengths else x.type.make_variable()
        for i, x in enumerate(node.inputs)
    ]
    outputs = Apply(loop, inputs, loop.output_types(*inputs), node.source).outputs
    return DeviceGraph(ClosedGraph(inputs, outputs), device, op.on_host)


def _any_length(kind: Any) -> Any:
    return replace(kind, shape=(None, *kind.shape[1:]))
