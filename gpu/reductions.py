"""Formulas that reduce, on devices: who makes their results, for given layouts and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.codegen.cuda.reductions import (
    ALONE,
    ReductionShape,
    can_be_added,
    held_for,
    kernel_of,
    stages_of,
    words_between_passes,
)
from symcomp.codegen.cuda.text import WARP, CudaKernel
from symcomp.codegen.loops.nests import Nest
from symcomp.gpu.layouts import MOST_BYTES, MOST_HELD, collapse, in_memory, patterns_of
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner, blocks_for, needs_wide

# A thread makes results alone where it adds up no more elements.
FEW = 32
# Enough threads, or blocks, for a card; chunks of fewer elements are not worth a launch.
ENOUGH_THREADS, ENOUGH_BLOCKS = 1 << 18, 2048
CHUNK_OF_THREAD, CHUNK_OF_BLOCK = 64, 2048
# A thread joins the totals of the chunks of a result where threads work alone, else a block.
MOST_OF_THREAD, MOST_OF_BLOCK = 256, 1024
# Where there are ENOUGH_LANES for a card, lanes of a warp make a result of at most MOST_OF_WARP
# elements, each of them as many as OF_LANE if a warp has more lanes than that takes. Such blocks
# have OF_BLOCK threads.
MOST_OF_WARP, OF_LANE, ENOUGH_LANES, OF_BLOCK = 1024, 8, 1 << 16, 256
# Where neighbours are of different results, and these are too few for a card, a block makes some at
# once, one of the numbers COLUMNS, of at most MOST_OF_COLUMN elements each; BLOCKS_OF_COLUMNS are
# enough for a card.
MOST_OF_COLUMN, BLOCKS_OF_COLUMNS, COLUMNS = 2048, 256, (32, 16, 8)
# The most threads of a block that hold elements between passes.
MOST_THREADS = 1024


class ReductionPlan:
    """The launches of a nest that reduces."""

    def __init__(
        self,
        planner: Planner,
        nest: Nest,
        arrays: Sequence[Operand],
        literals: Sequence[Any],
        lengths: Sequence[int],
        strides: Sequence[Sequence[int]],
        axes: Sequence[int],
    ) -> None:
        self.planner, self.nest, self.literals, self.axes = planner, nest, literals, axes
        self.arrays = list(arrays)
        inputs = range(len(nest.formula.inputs))
        largest = max(inputs, key=lambda i: sum(map(bool, strides[i])) if i in inputs else 0)
        ordered = [strides[largest], *strides]
        kept = in_memory([a for a in range(len(lengths)) if a not in axes], lengths, ordered)
        reduced = in_memory(axes, lengths, ordered)
        self.kept, kept_steps = collapse(kept, lengths, strides)
        self.reduced, reduced_steps = collapse(reduced, lengths, strides)
        self.steps = [[*k, *r] for k, r in zip(kept_steps, reduced_steps, strict=True)]
        self.results = int(np.prod([lengths[a] for a in kept], dtype=np.int64))
        self.count = int(np.prod([lengths[a] for a in axes], dtype=np.int64))
        of_kept = [abs(s) for s in kept_steps[largest] if s]
        of_reduced = [abs(s) for s in reduced_steps[largest] if s]
        self.is_across = bool(of_kept) and (not of_reduced or min(of_kept) < min(of_reduced))
        are_neighbours = self.is_across and self.results >= FEW
        self.lanes = 0 if are_neighbours else self._lanes()
        self.columns = self._columns() if are_neighbours else 0
        self.alone = not self.columns and (
            are_neighbours or (self.count <= FEW and not self.lanes)
        )

    def plan(self) -> None:
        if self.results == 0:
            return
        threads, held, together = (0, 0, 1) if self.alone else self._team()
        chunks = 1 if held or self.columns else self._chunks()
        dense = threads > 0 and self._is_dense()
        numbers = [self.results * max(chunks, 1), self.count]
        wide = needs_wide(numbers, self.arrays)
        shape = ReductionShape(
            len(self.kept), len(self.reduced), threads, wide, held, dense, together,
            self.columns > 0,
        )  # fmt: skip
        if chunks == 1:
            kernel = self._kernel("whole", shape)
            units = -(-self.results // together)
            self._launch(kernel, self.arrays, [self.results, self.count], units)
            return
        numbers = [self.results, self.count, chunks, -(-self.count // chunks)]
        if self._adds_by_atomics():
            for _, array in self.nest.bodies[1].stores:
                self.planner.clear(self.arrays[array])
            kernel = self._kernel("added", shape)
            self._launch(kernel, self.arrays, numbers, self.results * chunks)
            return
        temporaries = self._temporaries(chunks)
        for stage in range(stages_of(self.nest)):
            body = self.nest.bodies[2 * stage]
            if body.folds or body.stores:
                kernel = self._kernel("part", shape, stage)
                self._launch(kernel, [*self.arrays, *temporaries], numbers, self.results * chunks)
            kernel = self._kernel("finish", shape, stage)
            self._launch(kernel, [*self.arrays, *temporaries], numbers, self.results)

    def _adds_by_atomics(self) -> bool:
        """Tell whether chunks add their sums to the results, in any order."""
        if not self.planner.atomics or not can_be_added(self.nest):
            return False
        # The device clears arrays in C order alone.
        return all(self.arrays[array].is_contiguous for _, array in self.nest.bodies[1].stores)

    def _kernel(self, which: str, shape: ReductionShape, stage: int = 0) -> CudaKernel:
        return kernel_of(self.nest.formula, patterns_of(self.nest), which, shape, stage)

    def _is_dense(self) -> bool:
        """Tell whether the elements of a result are neighbours in all arrays that have them."""
        return len(self.reduced) == 1 and all(
            row[-1] == array.itemsize or all(stretched[a] for a in self.axes)
            for array, row, stretched in zip(
                self.arrays, self.steps, self.nest.stretched, strict=True
            )
        )

    def _lanes(self) -> int:
        """Return how many lanes of a warp make a result by themselves; 0: none do."""
        lanes = 2
        while lanes < WARP and (
            lanes * OF_LANE < self.count or lanes * self.results < ENOUGH_LANES
        ):
            lanes *= 2
        are_enough = OF_LANE < self.count <= MOST_OF_WARP and lanes * self.results >= ENOUGH_LANES
        return lanes if are_enough else 0

    def _columns(self) -> int:
        """Return how many neighbouring results a block makes at once; 0: threads work alone."""
        if not OF_LANE < self.count <= MOST_OF_COLUMN or self.results >= ENOUGH_LANES:
            return 0
        found = COLUMNS[0]
        for fewer in COLUMNS[1:]:
            if self.results < BLOCKS_OF_COLUMNS * found and 2 * OF_BLOCK // fewer <= self.count:
                found = fewer
        return found

    def _team(self) -> tuple[int, int, int]:
        """Return the threads that make a result, how many elements each of them holds, and how many
        results a block makes at once.
        """
        words = words_between_passes(self.nest.formula, patterns_of(self.nest))
        if self.columns:
            threads = OF_BLOCK // self.columns
            held = held_for(self.count, threads)
            return threads, held if 0 < words * held <= MOST_HELD else 0, self.columns
        usual = self.lanes or (WARP if self.count <= 128 else 64 if self.count <= 512 else 256)
        threads = usual
        while words and threads <= MOST_THREADS:
            held = held_for(self.count, threads)
            if words * held <= MOST_HELD:
                together = OF_BLOCK // threads if self.lanes and threads <= WARP else 1
                return threads, held, together
            threads *= 2
        return usual, 0, OF_BLOCK // usual if self.lanes else 1

    def _chunks(self) -> int:
        """Return the number of chunks for the elements of a result; it depends on lengths alone."""
        axes = len(self.kept) + len(self.reduced)
        if 8 * len(self.nest.dtypes) * (axes + 3) > MOST_BYTES:
            return 1  # the kernel that joins chunks would take too many arrays
        enough, least, most = (
            (ENOUGH_THREADS, CHUNK_OF_THREAD, MOST_OF_THREAD)
            if self.alone
            else (ENOUGH_BLOCKS, CHUNK_OF_BLOCK, MOST_OF_BLOCK)
        )
        return max(1, min(self.count // least, enough // self.results, most))

    def _temporaries(self, chunks: int) -> list[Operand]:
        """Memory for what kernels leave for others, in the order of the nest's arrays."""
        totals = {a for pair in self.nest.totals.values() for a in pair}
        dtypes = self.nest.dtypes
        return [
            self.planner.new(dtypes[a], [self.results * (chunks if a in totals else 1)])
            for a in range(self.nest.temporaries, len(dtypes))
        ]

    def _launch(
        self, kernel: CudaKernel, operands: Sequence[Operand], numbers: Sequence[int], units: int
    ) -> None:
        alone = not kernel.barriers
        blocks = blocks_for(units, ALONE) if alone else max(1, min(units, MOST_BLOCKS))
        padding = [0] * (len(operands) - len(self.arrays))
        axes = range(len(self.kept) + len(self.reduced))
        rows = [[*(row[a] for row in self.steps), *padding] for a in axes]
        given = [*numbers, *self.kept[1:], *self.reduced[1:]]
        self.planner.launch(kernel, [blocks], given, operands, rows, self.literals)
