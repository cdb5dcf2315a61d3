"""How a plan repeats the step of a loop.

The step is planned once for all steps: rows of sequences and of states move on by a stride, values
that are carried lie in two buffers by turns. Nothing in a loop waits or is copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Variable
from symcomp.errors import ShapeError
from symcomp.gpu.chunks import chunk_length
from symcomp.gpu.formulas import plan_copy
from symcomp.gpu.loops import DeviceLoop
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.plan import LoopStep
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.region import plan_nodes
from symcomp.gpu.written_states import PlannedStep, has_hidden_alias, plain_step, step_in_place


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
        self.step = step_in_place(op.body, self.layout.carried_pairs())
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

    def _results(self, values: Sequence[Any], step: PlannedStep) -> tuple[Any, dict[Variable, Any]]:
        """Emit a step for these inputs of the body; return its results by kind, all operands, and
        the values of all variables.
        """
        known = dict(zip(step.inputs, values, strict=True))
        with self.planner.writing_over(step.written):
            plan_nodes(self.planner, step.order, step.outputs, known)
        self.planner.label = self.label
        found = [known[y] if y in known else y.data for y in step.outputs]
        found = [z if isinstance(z, Operand) else self.planner.constant(z) for z in found]
        return self.layout.results(found), known

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
        buffers = [self._buffers(k, x) for k, x in enumerate(self.carried)]
        with planner.step() as step:
            inputs = self._moving_inputs(states, buffers, sequences)
            made, known = self._results(inputs, self.step)
            if any(z.shape != x.shape for z, x in zip(made.carried, self.carried, strict=True)):
                return None
        if has_hidden_alias(self.step, known, {made.carried[k].storage for k in self.step.over}):
            self.step = plain_step(self.op.body)
            return self._step(states, sequences, n)
        self._check_rows(states, made.traced)
        stacks = [_stack(planner, z, n) for z in made.stacked]
        targets = [
            _Target(row, row, z.strides[0])
            for z, depth in zip(states, self.layout.depths, strict=True)
            for row in [_row(z, depth * z.strides[0])]
        ]
        moved = [k for k in range(len(buffers)) if k not in self.step.over]
        targets += [_Target(buffers[k][1], buffers[k][0]) for k in moved]
        targets += [_Target(_row(z, 0), _row(z, 0), z.strides[0]) for z in stacks]
        values = [*made.traced, *(made.carried[k] for k in moved), *made.stacked]
        with planner.step(step):
            self._write(values, targets)
        return _Repeated(step, buffers, stacks)

    def _buffers(self, k: int, x: Operand) -> tuple[Operand, Operand]:
        """Return where a carried value lies in even and in odd steps: in one place, if steps write
        parts of it there.
        """
        first = self.planner.new(x.dtype, x.shape)
        return first, first if k in self.step.over else self.planner.new(x.dtype, x.shape)

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
        planner, step = self.planner, plain_step(self.op.body)
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
            made, _ = self._results([*values, *self.captured], step)
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
