"""Formulas on devices: which kernels compute one for given layouts, and with what parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.codegen.cuda.elementwise import (
    FLAT,
    ONE,
    SAME,
    STRIDED,
    THREADS,
    elementwise,
)
from symcomp.codegen.cuda.reductions import (
    ALONE,
    ReductionShape,
    can_be_added,
    held_for,
    kernel_of,
    stages_of,
    words_between_passes,
)
from symcomp.codegen.cuda.text import WARP, CudaKernel, has_text
from symcomp.codegen.cuda.tiles import TURNED, tiles
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX, scalar_text
from symcomp.codegen.loops.axis_functions import Pattern, Plain, plain
from symcomp.codegen.loops.formula_parts import FormulaPart, parts_of
from symcomp.codegen.loops.nests import Nest, is_nest, nest_of, nonempty, reduced_axes
from symcomp.core.record import record, replace
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.positions import plan_counter, plan_positions
from symcomp.gpu.layouts import (
    MOST_HELD,
    MOST_STEPS,
    TileShape,
    collapse,
    in_memory,
    pack_width,
    tile_shape,
)
from symcomp.gpu.planner import (
    MOST_BLOCKS,
    Operand,
    Planner,
    blocks_for,
    contiguous_strides,
    needs_wide,
)
from symcomp.ops.elementwise.elemwise import HOW_TO_STRETCH, ROWS, ScalarOp
from symcomp.ops.formulas.formula import Formula, Result, Step

# Parameters of a kernel have 4 KiB.
MOST_AXES, MOST_BYTES = 10, 4000
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
# The most threads of a block that hold elements between passes.
MOST_THREADS = 1024


@record
class NestSequence:
    """A formula as nests that are run one after another; ``dropped`` are axes of its results."""

    form: Plain
    dropped: tuple[tuple[int, ...], ...]
    parts: tuple[FormulaPart, ...]
    nests: tuple[Nest, ...]


@cache
def nests_for(formula: Formula, patterns: tuple[Pattern, ...]) -> NestSequence | None:
    """Return the nests of a formula; None if something in it has no kernel on devices."""
    if not patterns or len(patterns[0]) > MOST_AXES or formula.tables:
        return None
    form = plain(formula, patterns)
    if form is None or not _has_kernel(form.formula):
        return None
    parts = parts_of(form.formula, form.patterns)
    nests = [nest_of(p.formula, p.patterns) if is_nest(p.formula) else None for p in parts]
    whole = [nest for nest in nests if nest is not None]
    if len(whole) < len(nests) or any(_parameters_of(n) > MOST_BYTES for n in whole):
        return None
    axes = tuple(result.dropped for result in formula.results)
    return NestSequence(form, axes, tuple(parts), tuple(whole))


def _parameters_of(nest: Nest) -> int:
    """Return how many bytes the parameters of the kernel of a nest have at most."""
    arrays, axes = len(nest.stretched), len(nest.stretched[0])
    return 8 * arrays * (axes + 1) + 16 * (nest.temporaries - arrays) + 8 * (axes + 2)


def _has_kernel(formula: Formula) -> bool:
    if any(d not in C_TYPES or d in COMPLEX for d in formula.dtypes):
        return False
    for step in formula.steps:
        if isinstance(step.function, ScalarOp):
            dtypes = tuple(formula.dtypes[a] for a in step.arguments)
            text = scalar_text(step.function, dtypes, step.dtype)
            if text is None or not has_text(text.text):
                return False
    return True


def plan_formula(
    planner: Planner,
    made: NestSequence,
    operands: Sequence[Operand],
    targets: Sequence[Operand] = (),
) -> list[Operand]:
    """Emit the launches of a formula; return its results, without the axes that they drop.

    Parameters
    ----------
    planner : Planner
    made : NestSequence
    operands : sequence of Operand
        Of the inputs.
    targets : sequence of Operand, optional
        Where the results go, with all axes; by default new values.
    """
    form = made.form
    formula = form.formula
    lengths = lengths_of(form.patterns, operands, planner.label)
    values: dict[int, Operand] = dict(enumerate(operands))
    number = len(operands)
    for place, axis in form.places:
        labels = contiguous(planner, operands[place])
        values[number] = plan_positions(planner, labels, lengths[axis])
        number += 1
    for axis in form.counters:
        counter = plan_counter(planner, lengths[axis])
        strides = [counter.strides[0] if a == axis else 0 for a in range(len(lengths))]
        shape = [n if a == axis else 1 for a, n in enumerate(lengths)]
        values[number] = counter.view(shape, strides)
        number += 1
    patterns = formula.patterns(form.patterns)
    for i, result in enumerate(formula.results):
        if targets:
            values[result.value] = targets[i]
    for part, nest in zip(made.parts, made.nests, strict=True):
        for value in part.results:
            if value not in values:
                shape = [1 if o else n for n, o in zip(lengths, patterns[value], strict=True)]
                values[value] = planner.new(formula.dtypes[value], shape)
        arrays = [values[v] for v in (*part.inputs, *part.results)]
        literals = [formula.literals[v - len(formula.inputs)].array for v in part.literals]
        ones = [all(p[a] for p in part.patterns) for a in range(len(lengths))]
        shape = [1 if one else n for n, one in zip(lengths, ones, strict=True)]
        plan_nest(planner, nest, arrays, shape, literals)
    return [
        dropped(values[r.value], axes)
        for r, axes in zip(formula.results, made.dropped, strict=True)
    ]


@cache
def _cast_formula(given: str, dtype: str, rank: int) -> NestSequence:
    formula = Formula((given,), (), (Step(ROWS["cast"](dtype), (0,), dtype),), (Result(1),))
    found = nests_for(formula, ((False,) * rank,))
    assert found is not None
    return found


def plan_copy(planner: Planner, target: Operand, source: Operand) -> None:
    """Emit a copy between arrays of equal shapes, and of any strides and dtypes."""
    if target.dtype == source.dtype and target.is_contiguous and source.is_contiguous:
        planner.copy(target, source)
    elif source.dtype in COMPLEX:
        pairs = zip(parts_of_complex(target), parts_of_complex(source), strict=True)
        for part, given in pairs:
            plan_copy(planner, part, given)
    else:
        made = _cast_formula(source.dtype, target.dtype, source.ndim)
        plan_formula(planner, made, [source], [target])


def parts_of_complex(x: Operand) -> list[Operand]:
    """Return views of the real and of the imaginary parts; of real numbers, themselves."""
    if x.dtype not in COMPLEX:
        return [x]
    size = x.itemsize // 2
    return [replace(x, dtype=COMPLEX[x.dtype], offset=x.offset + i * size) for i in (0, 1)]


def contiguous(planner: Planner, operand: Operand) -> Operand:
    """Return an operand in C order: a copy, where it is not."""
    if operand.is_contiguous:
        return operand
    found = planner.new(operand.dtype, operand.shape)
    plan_copy(planner, found, operand)
    return found


def dropped(operand: Operand, axes: Sequence[int]) -> Operand:
    """Return a view without axes, which have length 1."""
    kept = [a for a in range(operand.ndim) if a not in axes]
    return operand.view([operand.shape[a] for a in kept], [operand.strides[a] for a in kept])


def lengths_of(
    patterns: Sequence[Pattern], operands: Sequence[Operand], what: str
) -> tuple[int, ...]:
    """Return the lengths of the loops over inputs, some of whose axes are stretched.

    Raises
    ------
    ShapeError
        If lengths differ that must be equal.
    """
    found = [1] * len(patterns[0])
    given = [-1] * len(found)
    for i, (pattern, operand) in enumerate(zip(patterns, operands, strict=False)):
        for axis, (one, n) in enumerate(zip(pattern, operand.shape, strict=True)):
            if one:
                continue
            if given[axis] >= 0 and found[axis] != n:
                hint = f". {HOW_TO_STRETCH}" if 1 in (found[axis], n) else ""
                raise ShapeError(
                    f"{what}: input {given[axis]} has length {found[axis]} along axis {axis}, "
                    f"input {i} has length {n}: shapes "
                    f"{', '.join(str(o.shape) for o in operands)}{hint}"
                )
            found[axis], given[axis] = n, i if given[axis] < 0 else given[axis]
    return tuple(found)


def plan_nest(
    planner: Planner,
    nest: Nest,
    arrays: Sequence[Operand],
    lengths: Sequence[int],
    literals: Sequence[Any],
) -> None:
    """Emit the launches of one nest.

    Parameters
    ----------
    arrays : sequence of Operand
        Inputs and outputs, with all axes.
    lengths : sequence of int
        Of the loops.
    """
    strides = [
        [0 if one or n == 1 else s for one, n, s in zip(p, o.shape, o.strides, strict=True)]
        for p, o in zip(nest.stretched, arrays, strict=True)
    ]
    axes = reduced_axes(nest.formula)
    if axes is None:
        _plan_elements(planner, nest, arrays, lengths, strides, literals)
        return
    if nonempty(nest) and any(lengths[a] == 0 for a in axes):
        raise ShapeError(
            f"{planner.label}: an array of shape {tuple(lengths)} is empty along axes {axes}"
        )
    _Reduction(planner, nest, arrays, literals, lengths, strides, axes).plan()


def _plan_elements(
    planner: Planner,
    nest: Nest,
    arrays: Sequence[Operand],
    lengths: Sequence[int],
    strides: Sequence[Sequence[int]],
    literals: Sequence[Any],
) -> None:
    n = int(np.prod(lengths, dtype=np.int64))
    if n == 0:
        return
    order = in_memory(range(len(lengths)), lengths, [strides[-1], *strides])
    shape, steps = collapse(order, lengths, strides)
    inputs, work = len(nest.formula.inputs), len(nest.bodies[-1].steps)
    tile = tile_shape(arrays, steps, shape, inputs, work)
    if tile is not None:
        _plan_tiles(planner, nest, arrays, shape, steps, literals, tile)
        return
    kinds = []
    for array, row in zip(arrays, steps, strict=True):
        flat = tuple(row) == contiguous_strides(shape, array.itemsize)
        kinds.append(FLAT if flat else STRIDED if any(row) else ONE)
    width = pack_width(planner, arrays, steps, shape[-1])
    width = width if width * work <= MOST_STEPS else 1
    if width > 1:
        shape[-1] //= width
        n //= width
        kinds = [
            SAME if kind == STRIDED and row[-1] == 0 else kind
            for kind, row in zip(kinds, steps, strict=True)
        ]
        for row in steps:
            row[-1] *= width
    wide = needs_wide([n], arrays)
    kernel = elementwise(nest.formula, _patterns(nest), len(shape), tuple(kinds), wide, width)
    strided = STRIDED in kinds or SAME in kinds
    rows = [[row[a] for row in steps] for a in range(len(shape))] if strided else []
    numbers = [n, *shape[1:]] if strided else [n]
    planner.launch(kernel, [blocks_for(n, THREADS)], numbers, arrays, rows, literals)


def _plan_tiles(
    planner: Planner,
    nest: Nest,
    arrays: Sequence[Operand],
    shape: Sequence[int],
    steps: Sequence[Sequence[int]],
    literals: Sequence[Any],
    tile: TileShape,
) -> None:
    """Emit a launch of blocks that compute tiles; ``steps`` are along the axes of ``shape``."""
    axes = [a for a in range(len(shape)) if a != tile.axis]
    axes.insert(-1, tile.axis)
    lengths = [shape[a] for a in axes]
    counts = [*lengths[:-2], *(-(-n // tile.side) for n in lengths[-2:])]
    n = int(np.prod(counts, dtype=np.int64))
    kinds = [
        TURNED if i in tile.turned else STRIDED if any(row) else ONE
        for i, row in enumerate(steps)
    ]
    wide = needs_wide([n, *lengths], arrays)
    kernel = tiles(nest.formula, _patterns(nest), len(axes), tuple(kinds), wide, tile.side)
    numbers = [n, *counts[1:], *lengths[-2:]]
    rows = [[row[a] for row in steps] for a in axes]
    planner.launch(kernel, [min(n, MOST_BLOCKS)], numbers, arrays, rows, literals)


def _patterns(nest: Nest) -> tuple[Pattern, ...]:
    return nest.stretched[: len(nest.formula.inputs)]


class _Reduction:
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
        self.alone = are_neighbours or (self.count <= FEW and not self.lanes)

    def plan(self) -> None:
        if self.results == 0:
            return
        threads, held, together = (0, 0, 1) if self.alone else self._team()
        chunks = 1 if held else self._chunks()
        dense = threads > 0 and self._is_dense()
        numbers = [self.results * max(chunks, 1), self.count]
        wide = needs_wide(numbers, self.arrays)
        shape = ReductionShape(
            len(self.kept), len(self.reduced), threads, wide, held, dense, together
        )
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
        return kernel_of(self.nest.formula, _patterns(self.nest), which, shape, stage)

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

    def _team(self) -> tuple[int, int, int]:
        """Return the threads that make a result, how many elements each of them holds, and how many
        results a block makes at once.
        """
        usual = self.lanes or (WARP if self.count <= 128 else 64 if self.count <= 512 else 256)
        threads = usual
        words = words_between_passes(self.nest.formula, _patterns(self.nest))
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
