"""DeviceUntilGraph: a loop with a condition to stop, on a device.

The host enqueues a chunk of steps and then reads their conditions, so it waits once for several
steps. The results of steps behind the last one are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant
from symcomp.core.record import record, replace
from symcomp.errors import ShapeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.loops import DeviceLoop
from symcomp.gpu.plan import all_calls
from symcomp.gpu.planner import contiguous_strides
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


@record
class RunMemory:
    """The memory that a run of a loop takes.

    Attributes
    ----------
    peak : int
        The most bytes at a time, the arena included.
    arena : int
        The bytes of the arena, which is kept for the next run.
    """

    peak: int
    arena: int


class UntilProgram:
    """Computes a loop with a condition to stop by chunks of steps; each chunk is a region.

    A chunk has at most ``MOST_STEPS`` steps and no more than were done before, so fewer steps are
    computed in vain than are needed. Its length is a power of two, so there are few plans. If steps
    may report errors, each chunk is one step: a step behind the last one must report none.

    Attributes
    ----------
    name : str
        For messages.
    chunks : DeviceProgram
        A chunk as a function of the number of steps and the other inputs of the loop; the
        conditions are one more stacked output.
    memory : dict
        Of the latest run, by the shapes of inputs and outputs; at most ``config.most_plans``.

    Parameters
    ----------
    op : DeviceUntilGraph
    """

    def __init__(self, op: DeviceUntilGraph) -> None:
        self.op = op
        (node,) = {y.owner for y in op.graph.outputs}
        self._node: Apply = node
        until: Any = node.op
        self.loop, self.layout = until.loop, until.loop.layout
        self._on_host = frozenset(until.on_host)
        self._constants: dict[int, DeviceArray] = {}
        self.chunks = DeviceProgram(_chunk(op.device, node))
        self.memory: dict[Any, RunMemory] = {}
        self.name = str(op)

    @property
    def driver(self) -> Driver:
        """The driver of the device."""
        return driver_of(self.op.device)

    @property
    def kept_bytes(self) -> int:
        """The bytes on the device that stay from call to call, but for the arena."""
        return self.chunks.kept_bytes + sum(x.nbytes for x in self._constants.values())

    @property
    def plans(self) -> Any:
        """The plans of chunks that are kept."""
        return self.chunks.plans

    def drop_arena(self) -> None:
        """Give the memory of intermediate values back, which is kept for the next call."""
        self.chunks.drop_arena()

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Compute the loop; return the outputs of the graph."""
        self.chunks.name = self.name
        known = dict(zip(self.op.graph.inputs, values, strict=True))
        given = [self._placed(i, x, known.get(x)) for i, x in enumerate(self._node.inputs)]
        run = _Run(self, given)
        results = dict(zip(self._node.outputs, run.outputs(), strict=True))
        found = tuple(results[y] for y in self.op.graph.outputs)
        self._note(values, found, run)
        return found

    def _note(self, values: Sequence[Any], found: Sequence[Any], run: _Run) -> None:
        """Keep how much memory a run took."""
        key = tuple(tuple(tuple(x.shape) for x in arrays) for arrays in (values, found))
        with self.driver.lock:
            self.memory.pop(key, None)
            self.memory[key] = RunMemory(run.peak, run.arena)
            while len(self.memory) > max(1, config.most_plans):
                del self.memory[next(iter(self.memory))]

    def _placed(self, i: int, x: Any, value: Any) -> Any:
        """Return the value of an input of the loop, on the device unless plans depend on it."""
        is_constant = isinstance(x, Constant)
        value = x.data if is_constant else value
        if i in self._on_host or isinstance(value, DeviceArray):
            return value
        kept = self._constants.get(i)
        if not is_constant or kept is None or kept.driver is not self.driver:
            kept = to_device(value, self.op.device)
        if is_constant:
            self._constants[i] = kept
        return kept

    def can_fail(self) -> bool:
        """Return whether steps of the latest chunk may report errors."""
        calls = all_calls(self.chunks.plans[0].plan.calls)
        return any(call.can_fail for call in calls)


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


class _Run:
    """One run of a loop.

    Attributes
    ----------
    done : int
        The number of steps whose results are kept.
    peak, arena : int
        As of ``RunMemory``.

    Parameters
    ----------
    program : UntilProgram
    given : list
        The inputs of the loop.
    """

    def __init__(self, program: UntilProgram, given: list[Any]) -> None:
        self.program, self.layout = program, program.layout
        n, self._traced, self._carried, self._sequences, self._captured = (
            self.layout.arguments(given)
        )
        self.done, self._most, self._dtype = 0, int(n), np.asarray(n).dtype
        program.loop.check_lengths(self._most, self._traced, self._sequences)
        # For each traced state and each stacked output: arrays of consecutive rows.
        self._states: list[list[DeviceArray]] = [[] for _ in self._traced]
        self._stacks: list[list[DeviceArray]] = [[] for _ in range(self.layout.n_stacked)]
        self.peak = self.arena = 0
        self._inputs = {id(x.memory) for x in given if isinstance(x, DeviceArray)}
        # The results of the latest steps, and those of the last chunk while steps are repeated.
        self._latest: list[DeviceArray] = []
        self._last_chunk: list[DeviceArray] = []

    def outputs(self) -> list[Any]:
        """Enqueue chunks until the condition holds; return the outputs of the loop."""
        n, has_stopped = min(self._most, 1), False
        while not has_stopped:
            made, conditions = self._enqueue(n, self.done, self._traced, self._carried)
            (stops,) = np.nonzero(conditions.get())
            has_stopped = len(stops) > 0
            used = int(stops[0]) + 1 if has_stopped else n
            self._keep_rows(made, used)
            self._carried = made.carried if used == n else self._carried_after(used)
            self.done += used
            if self.done == self._most:
                break
            rows = zip(made.traced, self.layout.depths, strict=True)
            self._traced = [_rows(z, n, n + depth) for z, depth in rows]
            n = self._next_length()
        joined = [_joined(arrays) for arrays in (*self._states, *self._stacks)]
        self._measure(joined)
        states, stacks = joined[: len(self._states)], joined[len(self._states) :]
        return [*states, *self._carried, *stacks, np.asarray(self.done, np.int64)]

    def _enqueue(
        self, n: int, start: int, traced: list[DeviceArray], carried: list[DeviceArray]
    ) -> tuple[Any, DeviceArray]:
        """Enqueue ``n`` steps from the one of number ``start``; return their results by kind, and
        their conditions.
        """
        rows = [_rows(x, start, start + n) for x in self._sequences]
        number = np.array(n, self._dtype)
        *found, conditions = self.program.chunks(number, *traced, *carried, *rows, *self._captured)
        self.arena = max(self.arena, self.program.plans[0].plan.arena)
        self._measure([*found, conditions, *traced, *carried])
        self._latest = [*found, conditions]
        return self.layout.results([*found, None]), conditions

    def _measure(self, made: Sequence[DeviceArray]) -> None:
        """Note how much memory is held when these arrays have been made."""
        kept = *self._states, *self._stacks, self._carried, self._latest, self._last_chunk
        held = {id(x.memory): x.memory.nbytes for arrays in (*kept, made) for x in arrays}
        own = (n for key, n in held.items() if key not in self._inputs)
        self.peak = max(self.peak, self.arena + sum(own))

    def _keep_rows(self, made: Any, used: int) -> None:
        """Keep the rows of the first ``used`` steps of a chunk."""
        for arrays, z, depth in zip(self._states, made.traced, self.layout.depths, strict=True):
            arrays.append(_rows(z, depth if arrays else 0, depth + used))
        for arrays, z in zip(self._stacks, made.stacked, strict=True):
            arrays.append(_rows(z, 0, used))

    def _carried_after(self, n: int) -> list[DeviceArray]:
        """Return the carried values after the first ``n`` steps of the latest chunk: only those
        after its last step were kept, so these steps are computed again.
        """
        traced, carried, start = self._traced, self._carried, self.done
        self._last_chunk = self._latest
        while n and carried:
            length = _power_of_two(n)
            made, _ = self._enqueue(length, start, traced, carried)
            rows = zip(made.traced, self.layout.depths, strict=True)
            traced = [_rows(z, length, length + depth) for z, depth in rows]
            carried, start, n = made.carried, start + length, n - length
        return carried

    def _next_length(self) -> int:
        if self.program.can_fail():
            return 1
        return _power_of_two(min(MOST_STEPS, self.done, self._most - self.done))


def _power_of_two(n: int) -> int:
    """Return the largest power of two that is at most ``n``."""
    return 1 << (n.bit_length() - 1)


def _rows(x: DeviceArray, start: int, stop: int) -> DeviceArray:
    return x.part((slice(start, stop),))


def _joined(arrays: Sequence[DeviceArray]) -> DeviceArray:
    """Return arrays in C order, one behind the other, as one array."""
    if len(arrays) == 1:
        return arrays[0]
    first, offset = arrays[0], 0
    shape = sum(len(x) for x in arrays), *first.shape[1:]
    for x in arrays:
        if x.shape[1:] != first.shape[1:]:
            raise ShapeError(
                f"scan: a row has shape {x.shape[1:]} in this step, and had {first.shape[1:]} "
                "before: all steps must give the same shape"
            )
    memory = first.driver.allocate(sum(x.nbytes for x in arrays), f"an array of shape {shape}")
    for x in arrays:
        if x.nbytes:
            x.driver.within(memory, offset, x.memory, x.offset, x.nbytes)
        offset += x.nbytes
    strides = contiguous_strides(shape, first.dtype.itemsize)
    return DeviceArray(first.driver, memory, 0, first.dtype, shape, strides)
