"""DeviceLoop: a loop that a device computes, as one op; and how a plan repeats its step.

The step is planned once for all steps: rows of sequences and of states move on by a stride, values
that are carried lie in two buffers by turns. Nothing in a loop waits or is copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.chunks import chunk_length
from symcomp.gpu.formulas import plan_copy
from symcomp.gpu.lowerings.contract import (
    DeviceLowering,
    can_be_copied,
    is_number,
    lowering_of,
    makes_arrays,
)
from symcomp.gpu.plan import LoopStep
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.region import plan_nodes
from symcomp.ops.shapes.shape import Shape, ShapeI


@record
class DeviceLoop(Op):
    """A loop whose step a device can compute. In a region it is computed there.

    Attributes
    ----------
    loop : Op
        The loop as the host computes it, a ``Scan``; its ``layout`` tells what its inputs are.
    body : ClosedGraph
        Its step, rewritten for devices.
    on_host : tuple of int
        The inputs on whose values plans depend: the number of steps, and lengths and positions that
        are the same in all steps.
    """

    loop: Any
    body: ClosedGraph
    on_host: tuple[int, ...]

    multiple_outputs = True
    no_derivative = "it is made by rewriting, when derivatives have been taken"

    def __post_init__(self) -> None:
        super().__post_init__()
        own = getattr(self.loop, "body", None)
        if not isinstance(own, ClosedGraph) or not hasattr(self.loop, "layout"):
            raise TypeError(f"DeviceLoop: loop is {self.loop!r:.80}, a Scan is needed")
        pairs = (own.inputs, self.body.inputs), (own.outputs, self.body.outputs)
        if any([x.type for x in xs] != [y.type for y in ys] for xs, ys in pairs):
            raise DTypeError(f"{self}: the types of the body are not those of the loop")

    def output_types(self, *inputs: Any) -> list[Any]:
        found: list[Any] = self.loop.output_types(*inputs)
        return found

    def perform(self, *values: Any) -> Any:
        return self.loop.perform(*values)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.loop.infer_shape(node, shapes)
        return found

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        return [(self.body.inputs, self.body.outputs)]

    def __str__(self) -> str:
        return str(self.loop)


@record
class DeviceUntil(DeviceLoop):
    """A loop with a condition to stop, whose step a device can compute. It is a region of its own,
    as the host decides how many steps there are; ``until.py`` has its program.
    """


def is_count(x: Variable) -> bool:
    """Return whether a value is the number of steps that a ``DeviceUntil`` has done: the host has
    it.
    """
    return x.owner is not None and isinstance(x.owner.op, DeviceUntil) and x is x.owner.outputs[-1]


def device_loop(loop: Any, body: ClosedGraph) -> DeviceLoop | None:
    """Return a loop as one for devices; None if a device cannot compute its step.

    Parameters
    ----------
    loop : Op
        A ``Scan``.
    body : ClosedGraph
        Its step, rewritten; loops in it are ``DeviceLoop``.
    """
    layout = loop.layout
    rows = (*body.inputs, *body.outputs)
    if not all(isinstance(x.type, TensorType) and can_be_copied(x) for x in rows):
        return None
    captured = layout.step(body.inputs).captured
    numbers = _numbers(body, captured)
    if numbers is None:
        return None
    # The captured values are the last inputs, of the loop as of its body.
    count = 1 + len(layout.lags) + layout.n_carried + layout.n_sequences
    wanted = [count + i for i, x in enumerate(captured) if x in numbers]
    return (DeviceUntil if layout.until else DeviceLoop)(loop, body, (0, *wanted))


def leave_loops(graph: FunctionGraph) -> None:
    """Put loops that did not move back as they were."""
    for node in graph.toposort():
        if isinstance(node.op, DeviceLoop):
            left = Apply(node.op.loop, node.inputs, [z.type for z in node.outputs], node.source)
            graph.replace_all(zip(node.outputs, left.outputs, strict=True))


# -- steps that devices compute


def _numbers(body: ClosedGraph, captured: Sequence[Variable]) -> set[Variable] | None:
    """Return the captured values whose elements plans of a step depend on; None if there can be no
    plan.
    """
    order = toposort(body.outputs)
    found: set[Variable] = set()
    while True:
        before, known = len(found), set(found)
        if not all(_can_be_planned(node, known, found, captured) for node in order):
            return None
        if len(found) == before:
            return found


def _can_be_planned(
    node: Apply, known: set[Variable], found: set[Variable], captured: Sequence[Variable]
) -> bool:
    """Return whether a node of a step can be planned.

    Parameters
    ----------
    node : Apply
    known : set of Variable
        The values that the host knows when it plans; those of this node are added.
    found : set of Variable
        The captured values that it must know; those for this node are added.
    captured : sequence of Variable
    """
    if not all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs)):
        return False
    if isinstance(node.op, DeviceUntil):
        return False
    is_known = all(isinstance(x, Constant) or x in known for x in node.inputs)
    if is_known and not makes_arrays(node):
        known.update(node.outputs)
        return not node.op.has_effects
    lowering = lowering_of(node)
    if lowering is None:
        return False
    if isinstance(node.op, Shape | ShapeI):
        known.update(node.outputs)
    moving = lowering.in_steps(node)
    return all(
        _can_be_known(node.inputs[i], known, found, captured) or i in moving
        for i in lowering.on_host(node)
    )


def _can_be_known(
    x: Variable, known: set[Variable], found: set[Variable], captured: Sequence[Variable]
) -> bool:
    """Return whether a value follows from lengths and captured numbers; if so, these are added to
    ``found``.
    """
    pending, wanted = [x], set()
    while pending:
        number = pending.pop()
        if isinstance(number, Constant) or number in known:
            continue
        if number in captured:
            wanted.add(number)
        elif number.owner is None or not is_number(number.owner):
            return False
        else:
            pending += number.owner.inputs
    found |= wanted
    return True


# -- plans


def _inputs_on_host(node: Apply) -> frozenset[int]:
    op: Any = node.op
    return frozenset(op.on_host)


def _plan_loop(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    label = planner.label
    try:
        return _Loop(planner, op, given).plan()
    except Exception as problem:
        problem.add_note(f"This was in a step of {op}")
        raise
    finally:
        planner.label = label


_LOOP = DeviceLowering(_plan_loop, _inputs_on_host)


def lowered_loop(node: Apply) -> DeviceLowering:
    """Return how loops are computed on devices."""
    return _LOOP


def _like(x: Any) -> Any:
    """Return an array of the shape and dtype of an operand, for functions of lengths."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Operand) else x


def _row(x: Operand, offset: int) -> Operand:
    """Return the operand of a row, which begins ``offset`` bytes behind the first."""
    return x.view(x.shape[1:], x.strides[1:], offset)


def _rows(x: Operand, start: int, stop: int) -> Operand:
    return x.view((stop - start, *x.shape[1:]), x.strides, start * x.strides[0])


@dataclass
class _Target:
    """Where a result of the first two steps goes, and how much further those of later steps."""

    even: Operand
    odd: Operand
    stride: int = 0


@dataclass
class _Repeated:
    """The calls of a step, to be repeated.

    Attributes
    ----------
    step : LoopStep
    buffers : list of (Operand, Operand)
        Where each carried value lies, in even steps and in odd ones.
    stacks : list of Operand
        The rows of each output that is no state.
    """

    step: LoopStep
    buffers: list[tuple[Operand, Operand]]
    stacks: list[Operand]


class _Loop:
    """The plan of one loop.

    Parameters
    ----------
    planner : Planner
    op : DeviceLoop
    given : sequence
        Operands, or host arrays of inputs whose values are known.
    """

    def __init__(self, planner: Planner, op: DeviceLoop, given: Sequence[Any]) -> None:
        self.planner, self.op, self.layout = planner, op, op.loop.layout
        self.label = planner.label
        n, self.traced, self.carried, self.sequences, self.captured = self.layout.arguments(given)
        self.n = int(n)
        self.order = toposort(op.body.outputs)
        self.lengths = [_like(x) for x in given[1:]]
        op.loop.check_lengths(self.n, map(_like, self.traced), map(_like, self.sequences))

    def plan(self) -> list[Operand]:
        """Emit the loop; return its outputs."""
        planner = self.planner
        states = []
        for x, depth in zip(self.traced, self.layout.depths, strict=True):
            z = planner.new(x.dtype, [depth + self.n, *x.shape[1:]])
            plan_copy(planner, _rows(z, 0, depth), x)
            states.append(z)
        if self.n == 0:
            shapes = self.op.loop.lengths_without_steps(self.lengths)
            kinds = self.layout.results(self.op.body.outputs).stacked
            stacks = [
                planner.new(y.dtype, (0, *shape)) for y, shape in zip(kinds, shapes, strict=True)
            ]
            return [*states, *map(self._copied, self.carried), *stacks]
        return self._repeated(states) or self._one_by_one(states)

    def _copied(self, x: Operand) -> Operand:
        z = self.planner.new(x.dtype, x.shape)
        plan_copy(self.planner, z, x)
        return z

    def _results(self, values: Sequence[Any]) -> Any:
        """Emit a step for these inputs of the body; return its results by kind, all operands."""
        known = dict(zip(self.op.body.inputs, values, strict=True))
        plan_nodes(self.planner, self.order, known)
        self.planner.label = self.label
        found = [known[y] if y in known else y.data for y in self.op.body.outputs]
        found = [z if isinstance(z, Operand) else self.planner.constant(z) for z in found]
        return self.layout.results(found)

    def _check_rows(self, states: Sequence[Operand], made: Sequence[Operand]) -> None:
        names = self.layout.step(self.op.body.inputs).lagged
        for name, x, z in zip(names, states, made, strict=True):
            _check_row(f"the state {name[0]}", z, x)

    # -- the same calls in all steps

    def _repeated(self, states: Sequence[Operand]) -> list[Operand] | None:
        """Emit a loop of one step; return None if a carried value has another shape after it."""
        planner, n, depths = self.planner, self.n, self.layout.depths
        made = self._step(states, self.sequences, n)
        if made is None:
            return None
        if planner.has_parts and not planner.is_in_step:
            rows = [_row(x, 0).nbytes for x in (*self.sequences, *states, *made.stacks)]
            length = chunk_length(made.step.calls, n, rows, depths)
            if length:
                return self._in_chunks(states, made.stacks, length)
        self._start(made)
        planner.repeat(made.step, n)
        return [*states, *(pair[n & 1] for pair in made.buffers), *made.stacks]

    def _in_chunks(
        self, states: Sequence[Operand], stacks: Sequence[Operand], length: int
    ) -> list[Operand]:
        """Emit a loop of chunks of steps, each of which can be the same graph: the rows that they
        read and write are copied to fixed places, and from there.
        """
        planner, n, depths = self.planner, self.n, self.layout.depths
        read = [planner.new(x.dtype, [length, *x.shape[1:]]) for x in self.sequences]
        fixed = [
            planner.new(z.dtype, [depth + length, *z.shape[1:]])
            for z, depth in zip(states, depths, strict=True)
        ]
        made = self._step(fixed, read, length)
        assert made is not None
        self._start(made)
        for z, x, depth in zip(fixed, self.traced, depths, strict=True):
            plan_copy(planner, _rows(z, 0, depth), x)
        with planner.step() as part:
            planner.repeat(made.step, length)
            for z, depth in zip(fixed, depths, strict=True):
                plan_copy(planner, _rows(z, 0, depth), _rows(z, length, length + depth))
        before = [*zip(read, self.sequences, strict=True)]
        after = [
            (_rows(z, depth, depth + n), _rows(own, depth, depth + length))
            for z, own, depth in zip(states, fixed, depths, strict=True)
        ] + [*zip(stacks, made.stacks, strict=True)]
        with planner.step() as chunk:
            for own, x in before:
                plan_copy(planner, own, self._moving_rows(x, length))
            planner.repeat(part, 1, is_part=True)
            for z, own in after:
                plan_copy(planner, self._moving_rows(z, length), own)
        planner.repeat(chunk, n // length)
        done = n - n % length
        for own, x in before:
            plan_copy(planner, _rows(own, 0, n - done), _rows(x, done, n))
        planner.repeat(made.step, n - done)
        for z, own in after:
            plan_copy(planner, _rows(z, done, n), _rows(own, 0, n - done))
        return [*states, *(self._copied(pair[n & 1]) for pair in made.buffers), *stacks]

    def _moving_rows(self, x: Operand, length: int) -> Operand:
        """Return the operand, in chunks of ``length`` steps, of the rows of each."""
        rows = _rows(x, 0, length)
        return self.planner.moving(rows, rows, length * x.strides[0])

    def _step(
        self, states: Sequence[Operand], sequences: Sequence[Operand], n: int
    ) -> _Repeated | None:
        """Emit the calls of a step that reads and writes rows of these arrays; return None if a
        carried value has another shape after it.
        """
        planner = self.planner
        buffers = [
            (planner.new(x.dtype, x.shape), planner.new(x.dtype, x.shape)) for x in self.carried
        ]
        with planner.step() as step:
            made = self._results(self._moving_inputs(states, buffers, sequences))
            if any(z.shape != x.shape for z, x in zip(made.carried, self.carried, strict=True)):
                return None
        self._check_rows(states, made.traced)
        stacks = [_stack(planner, z, n) for z in made.stacked]
        targets = [
            _Target(row, row, z.strides[0])
            for z, depth in zip(states, self.layout.depths, strict=True)
            for row in [_row(z, depth * z.strides[0])]
        ]
        targets += [_Target(second, first) for first, second in buffers]
        targets += [_Target(_row(z, 0), _row(z, 0), z.strides[0]) for z in stacks]
        values = [*made.traced, *made.carried, *made.stacked]
        with planner.step(step):
            self._write(values, targets)
        return _Repeated(step, buffers, stacks)

    def _start(self, made: _Repeated) -> None:
        """Let carried values lie where the first step reads them."""
        for x, (first, _) in zip(self.carried, made.buffers, strict=True):
            plan_copy(self.planner, first, x)

    def _moving_inputs(
        self,
        states: Sequence[Operand],
        buffers: Sequence[tuple[Operand, Operand]],
        sequences: Sequence[Operand],
    ) -> list[Any]:
        """Return the inputs of the body, which are others in each step."""
        moving, found = self.planner.moving, []
        for z, depth, lags in zip(states, self.layout.depths, self.layout.lags, strict=True):
            rows = [_row(z, (depth - lag) * z.strides[0]) for lag in lags]
            found += [moving(row, row, z.strides[0]) for row in rows]
        found += [moving(first, second) for first, second in buffers]
        found += [moving(_row(x, 0), _row(x, 0), x.strides[0]) for x in sequences]
        return [*found, *self.captured]

    def _write(self, values: Sequence[Operand], targets: Sequence[_Target]) -> None:
        """Let the results of a step be made in their places, or be copied there."""
        copied = []
        for z, target in zip(values, targets, strict=True):
            if not self.planner.make_there(z, target.even, target.odd, target.stride):
                copied.append((z, target))
        for z, target in copied:
            place = self.planner.moving(target.even, target.odd, target.stride)
            plan_copy(self.planner, place, z)

    # -- other calls in each step

    def _one_by_one(self, states: Sequence[Operand]) -> list[Operand]:
        """Emit the calls of all steps, which have carried values of several shapes."""
        planner = self.planner
        carried, stacks = list(self.carried), list[Operand]()
        for t in range(self.n):
            values: list[Any] = [
                _row(z, (t + depth - lag) * z.strides[0])
                for z, depth, lags in zip(
                    states, self.layout.depths, self.layout.lags, strict=True
                )
                for lag in lags
            ]
            values += carried
            values += [_row(x, t * x.strides[0]) for x in self.sequences]
            made = self._results([*values, *self.captured])
            self._check_rows(states, made.traced)
            stacks = stacks or [_stack(planner, z, self.n) for z in made.stacked]
            kinds = self.layout.results(self.op.body.outputs).stacked
            for y, z, rows in zip(kinds, made.stacked, stacks, strict=True):
                _check_row(f"the output {y}", z, rows)
                plan_copy(planner, _row(rows, t * rows.strides[0]), z)
            for z, rows, depth in zip(made.traced, states, self.layout.depths, strict=True):
                plan_copy(planner, _row(rows, (depth + t) * rows.strides[0]), z)
            carried = list(made.carried)
        return [*states, *map(self._copied, carried), *stacks]


def _stack(planner: Planner, z: Operand, n: int) -> Operand:
    return planner.new(z.dtype, [n, *z.shape])


def _check_row(name: str, z: Operand, rows: Operand) -> None:
    if z.shape != rows.shape[1:]:
        raise ShapeError(
            f"scan: {name} has shape {z.shape} in this step, and had {rows.shape[1:]} before: all "
            "steps must give the same shape"
        )
