"""The loops that all kernels share, for the interpreter: ``nest_loops.h``, ``reduction.h``.

Elements are joined in the same order as in these headers; orders without influence on values are
the simplest ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.loopir.interpret import Space
from symcomp.codegen.loopir.kernel import BLOCK, Loops, Role, RowFunction, Stage
from symcomp.codegen.loopir.memory import Address
from symcomp.core.record import record

# Constants of ``nest.h``
CHUNK, PIECE, SECTION, LONG, FEW_PARTS, MOST_APART = 65536, 4 * 65536, 256, 64, 32, 4
_MOVING = (Role.READ, Role.WRITE, Role.CHANGE)


def run_loops(loops: Loops, arrays: Sequence[Any], space: Space) -> int:
    """Run the kernel of one nest; return 1 if an axis is empty that must not be, else 0."""
    looped = (a for a in range(len(loops.sweep.stretched)) if a not in loops.sweep.tables)
    shape = np.broadcast_shapes(*(arrays[a].shape for a in looped))
    return _Kernel(loops, arrays, shape, space).run()


@record(eq=False)
class Axes:
    """Axes of the loops, slowest first: their lengths, and for each the strides of all arrays."""

    lengths: list[int]
    steps: list[list[int]]

    def padded(self, wanted: int, arrays: int) -> Axes:
        """Return the axes with axes of length 1 before them, ``wanted`` axes in all."""
        more = max(0, wanted - len(self.lengths))
        return Axes([1] * more + self.lengths, [[0] * arrays] * more + self.steps)


class _Kernel:
    """One call of a kernel."""

    def __init__(
        self, loops: Loops, arrays: Sequence[Any], shape: Sequence[int], space: Space
    ) -> None:
        self.sweep, self.shape, self.space = loops.sweep, shape, space
        self.interpreter = space.interpreter(loops.functions)
        sweep = loops.sweep
        self.sizes, self.total = sweep.sizes, len(sweep.dtypes)
        self.arrays = arrays
        count = self.total - sweep.temporaries
        self.places = [space.address(a) for a in arrays]
        self.places += [space.allocate(sweep.width * 4096) for _ in range(count)]

    def run(self) -> int:
        if self.sweep.stages:
            return self.reduce()
        axes = self.axes(False)
        if axes is not None:
            self.compute(axes.padded(2, self.total))
        return 0

    # -- axes

    def axes(self, reduced: bool) -> Axes | None:
        """Return the axes that are reduced, or not, sorted by stride; None if one is empty."""
        sweep, found = self.sweep, Axes([], [])
        for axis in range(sweep.rank):
            if sweep.reduced[axis] != reduced or self.shape[axis] == 1:
                continue
            if self.shape[axis] == 0:
                return None
            row = [0] * self.total
            for a, stretched in enumerate(sweep.stretched):
                row[a] = 0 if stretched[axis] else self.arrays[a].strides[axis]
            if not reduced and sum(map(np.sign, row)) < 0 and not self.scatters():
                self.turn(self.shape[axis], row)
            place = len(found.lengths)
            while place and _weight(found.steps[place - 1]) < _weight(row):
                place -= 1
            found.lengths.insert(place, self.shape[axis])
            found.steps.insert(place, row)
        return _joined(found)

    def scatters(self) -> bool:
        """Tell whether elements are added to at positions, in order."""
        sweep = self.sweep
        first = sweep.stages[0].along if sweep.stages else sweep.bodies[0]
        return Role.SCATTERED in first.roles

    def turn(self, length: int, row: list[int]) -> None:
        """Pass an axis from its other end."""
        for a in range(len(self.arrays)):
            self.places[a] = self.places[a].moved((length - 1) * row[a])
            row[a] = -row[a]

    def indices(self, axes: Axes, count: int) -> Iterator[list[int]]:
        """Yield the offsets of all arrays for each index of the slowest axes."""
        for index in np.ndindex(*axes.lengths[:count]):
            yield [
                sum(i * step[a] for i, step in zip(index, axes.steps, strict=False))
                for a in range(self.total)
            ]

    # -- bodies

    def plain(self, body: RowFunction, step: Sequence[int]) -> bool:
        """Tell whether a body can run in place, as its elements are contiguous."""
        roles = zip(body.roles, step, self.sizes, strict=True)
        return all(s == size for role, s, size in roles if role in _MOVING)

    def run_body(
        self,
        body: RowFunction,
        rows: int,
        n: int,
        places: Sequence[Address],
        row_step: Sequence[int],
        step: Sequence[int],
        along: bool = True,
        many: bool = False,
    ) -> None:
        """Run a body on rows * n elements, through copies of blocks that are not contiguous.

        ``along``: lanes are those of the elements; ``many``: more of them than a block holds.
        """
        call = self.interpreter.call
        if n == 1 or self.plain(body, step):
            call(body.function, rows, n, places, row_step)
            return
        copied = [
            a for a, role in enumerate(body.roles) if role in _MOVING and step[a] != self.sizes[a]
        ]
        writes = (Role.WRITE, Role.CHANGE)
        limited = any(body.roles[a] in writes or step[a] or row_step[a] for a in copied)
        width = min(n, BLOCK)
        height = rows if not limited else 1 if many else BLOCK // width
        for r in range(0, rows, max(1, height)):
            h = min(height, rows - r)
            for i in range(0, n, width):
                w = min(width, n - i)
                at, by = [*places], [*row_step]
                for a, role in enumerate(body.roles):
                    if role is Role.LANE:
                        at[a] = places[a].moved(i * self.sizes[a] if along else 0)
                    elif role is not Role.UNUSED:
                        at[a] = places[a].moved(r * row_step[a] + i * step[a])
                blocks = {}
                for a in copied:
                    size, there, steps = self.sizes[a], at[a], (row_step[a], step[a])
                    at[a], by[a] = self.space.allocate(h * w * size), w * size
                    dtype = self.sweep.dtypes[a]
                    at[a].set_rows(h, w, (w * size, size), there, steps, dtype)
                    blocks[a] = there, steps
                call(body.function, h, w, at, by)
                for a, (there, steps) in blocks.items():
                    if body.roles[a] in writes:
                        of_block = by[a], self.sizes[a]
                        there.set_rows(h, w, steps, at[a], of_block, self.sweep.dtypes[a])

    # -- without reductions

    def compute(self, axes: Axes) -> None:
        """Run the first body whose numbers are constant along the innermost axis."""
        inner, rows = axes.steps[-1], axes.steps[-2]
        body = next(
            (
                body
                for body in self.sweep.bodies[:-1]
                if not any(r is Role.NUMBER and s for r, s in zip(body.roles, inner, strict=True))
            ),
            self.sweep.bodies[-1],
        )
        for offsets in self.indices(axes, len(axes.lengths) - 2):
            places = [p.moved(o) for p, o in zip(self.places, offsets, strict=True)]
            height, length = axes.lengths[-2:]
            self.run_body(body, height, length, places, rows, inner)

    # -- with reductions

    def reduce(self) -> int:
        found, reduced = self.axes(False), self.axes(True)
        if reduced is None and self.sweep.nonempty:
            return 1
        if found is None:
            return 0
        results = found.padded(1, self.total)
        taken = (Axes([], []) if reduced is None else reduced).padded(2, self.total)
        step, inner = results.steps[-1], taken.steps[-1]
        length, beside = taken.lengths[-1], results.lengths[-1]
        one_call = len(self.sweep.stages) == 1 and bool(self.sweep.stages[0].lanes)
        near = _weight(inner) <= _weight(step)
        long = length >= LONG // (1 + one_call) or length >= 4 * beside
        across = beside == 1 or (near and long)
        passes = [
            _Pass(self, stage, taken, inner if across else step, across, across or beside <= BLOCK)
            for stage in self.sweep.stages
        ]
        for offsets in self.indices(results, len(results.lengths) - 1):
            places = [p.moved(o) for p, o in zip(self.places, offsets, strict=True)]
            width = 1 if across else 4096
            for first in range(0, beside, width):
                here = [p.moved(first * s) for p, s in zip(places, step, strict=True)]
                for one in passes:
                    one.run(min(width, beside - first), here, step, reduced is None)
        return 0


class _Pass:
    """One stage of a reduction: its axes of rows and of lanes."""

    def __init__(
        self,
        kernel: _Kernel,
        stage: Stage,
        axes: Axes,
        step: Sequence[int],
        across: bool,
        few: bool,
    ) -> None:
        self.kernel, self.stage, self.axes = kernel, stage, axes
        self.step, self.across, self.few = step, across, few
        inner, length, parts = axes.steps[-1], axes.lengths[-1], 1
        self.rest, self.rank, self.n = 0, len(axes.lengths) - 1, 1
        if not across:
            self.rows = length
        elif stage.lanes or (stage.parts and length >= 2 * FEW_PARTS):
            parts = stage.parts if stage.lanes or length >= 2 * stage.parts else FEW_PARTS
            self.n = parts
            self.rows, self.rest = divmod(length, parts)
        else:
            self.n = length
            self.rank -= 1
            self.rows, inner = axes.lengths[self.rank], axes.steps[self.rank]
        if self.rank == 1 and axes.lengths[0] == 1:
            self.rank = 0
        self.row_step = [parts * s for s in inner]
        self.body = stage.across if across else stage.along
        plain = kernel.plain(self.body, step)
        self.lanes = across and bool(stage.lanes) and plain and self.n == stage.parts

    def run(self, n: int, places: list[Address], step: Sequence[int], empty: bool) -> None:
        """Compute n adjacent results; across, one result."""
        stage = self.stage
        if stage.chosen and not empty:
            results = np.arange(1 if self.across else n)
            chosen = [places[a].read(results, "bool") for a in stage.chosen]
            if stage.ready:
                self._run_chosen(chosen[0], places, step)
                return
            empty = not any(one.any() for one in chosen)
        if not (empty and stage.ready):
            self._run(n, places, step, empty)

    def _run_chosen(self, chosen: Any, places: Sequence[Address], step: Sequence[int]) -> None:
        """Compute the results that are chosen, in runs of those near to one another."""
        kernel, first = self.kernel, self.kernel.sweep.temporaries
        by = [*step[:first], *kernel.sizes[first:]]
        runs: list[list[int]] = []
        for i in (i for i, one in enumerate(chosen) if one):
            if runs and i - runs[-1][-1] <= MOST_APART:
                runs[-1].append(i)
            else:
                runs.append([i])
        for start, *more in runs:
            count = more[-1] - start + 1 if more else 1
            here = [p.moved(start * s) for p, s in zip(places, by, strict=True)]
            self._run(count, here, step, False)

    def _run(self, n: int, places: list[Address], step: Sequence[int], empty: bool) -> None:
        stage, kernel = self.stage, self.kernel
        lanes = self.n if self.across else n
        if not empty and self.lanes and not self.rank and self.rows <= SECTION:
            self._call_lanes(0, n, self.rows, self.rest, places, step)
            return
        if stage.totals:
            kernel.interpreter.call(stage.totals[0], lanes, places)
        if not empty and not self._in_chunks(lanes, places):
            self._pass(lanes, places, self.axes.lengths, self.rows, self.rest)
        if not stage.totals:
            return
        kernel.interpreter.call(stage.totals[2], lanes, int(self.across), places)
        if self.across:
            kernel.interpreter.call(stage.section.function, 1, 1, places, step)
        else:
            none = [0] * kernel.total
            kernel.run_body(stage.section, 1, n, places, none, step)

    def _call_lanes(self, added: int, count: int, *rest: Any) -> None:
        rows, last, places, by = rest
        self.kernel.interpreter.call(
            self.stage.lanes, added, count, rows, last, places, self.row_step, by
        )

    def _pass(
        self, n: int, places: Sequence[Address], lengths: Sequence[int], rows: int, rest: int
    ) -> None:
        """Pass once over all reduced elements."""
        axes = Axes([*lengths], self.axes.steps)
        for offsets in self.kernel.indices(axes, self.rank):
            self._rows(n, [p.moved(o) for p, o in zip(places, offsets, strict=True)], rows, rest)

    def _rows(self, n: int, places: list[Address], rows: int, rest: int) -> None:
        """Run the whole rows, and the partial one."""
        by = self.row_step
        if self.lanes:
            sections = (rows - 1) // SECTION if rows else 0
            done = sections * SECTION
            next_section = [SECTION * s for s in by]
            self._call_lanes(1, sections, SECTION, 0, places, next_section)
            end = [p.moved(done * s) for p, s in zip(places, by, strict=True)]
            self._call_lanes(1, 1, rows - done, rest, end, next_section)
            return
        lanes = not self.across, not self.across and not self.few
        run = self.kernel.run_body
        run(self.body, rows, n, places, by, self.step, *lanes)
        if rest:
            end = [p.moved(rows * s) for p, s in zip(places, by, strict=True)]
            run(self.body, 1, rest, end, by, self.step, *lanes)

    def _in_chunks(self, n: int, places: Sequence[Address]) -> bool:
        """Run a pass in chunks, adding up their totals in order, if that is worth it."""
        kernel, stage = self.kernel, self.stage
        rows = self.axes.lengths[0] if self.rank else self.rows
        elements = n * int(np.prod(self.axes.lengths[: self.rank], dtype=int)) * self.rows
        piece = PIECE if stage.lanes else CHUNK
        if not stage.totals or not self.few or elements < 2 * piece or rows < 2:
            return False
        unit = piece // (elements // rows)
        unit = max(16, (unit + 15) // 16 * 16)
        count = -(-rows // unit)
        if count == 1:
            return False
        moved = self.axes.steps[0] if self.rank else self.row_step
        others = [self._chunk(n, places, c, unit, rows, moved) for c in range(count)]
        for other in others:
            kernel.interpreter.call(stage.totals[1], n, places, other)
        return True

    def _chunk(
        self, n: int, places: Sequence[Address], c: int, unit: int, rows: int, moved: Sequence[int]
    ) -> list[Address]:
        """Compute the totals of ``unit`` rows, or of a part of the slowest axis."""
        kernel, first = self.kernel, c * unit
        left = min(unit, rows - first)
        at = [p.moved(first * s) for p, s in zip(places, moved, strict=True)]
        for a in range(kernel.sweep.temporaries, kernel.total):
            at[a] = Address(places[a].memory.copy(), places[a].offset)
        kernel.interpreter.call(self.stage.totals[0], n, at)
        if self.rank:
            lengths = [left, *self.axes.lengths[1:]]
            self._pass(n, at, lengths, self.rows, self.rest)
        else:
            rest = self.rest if first + left == self.rows else 0
            self._pass(n, at, self.axes.lengths, left, rest)
        return at


def _weight(steps: Sequence[int]) -> int:
    return sum(map(abs, steps))


def _joined(axes: Axes) -> Axes:
    """Return the axes with those merged that are contiguous in all arrays."""
    lengths, steps = axes.lengths[:1], axes.steps[:1]
    for length, row in zip(axes.lengths[1:], axes.steps[1:], strict=True):
        if all(outer == inner * length for outer, inner in zip(steps[-1], row, strict=True)):
            lengths[-1] *= length
            steps[-1] = row
        else:
            lengths.append(length)
            steps.append(row)
    return Axes(lengths, steps)
