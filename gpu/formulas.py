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
from symcomp.codegen.cuda.text import has_text
from symcomp.codegen.cuda.tiles import TURNED, tiles
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX, scalar_text
from symcomp.codegen.loops.axis_functions import Pattern, Plain, plain
from symcomp.codegen.loops.formula_parts import FormulaPart, parts_of
from symcomp.codegen.loops.nests import Nest, is_nest, nest_of, nonempty, reduced_axes
from symcomp.core.record import record, replace
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.positions import plan_counter, plan_positions
from symcomp.gpu.layouts import (
    MOST_BYTES,
    MOST_STEPS,
    TileShape,
    collapse,
    in_memory,
    pack_width,
    patterns_of,
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
from symcomp.gpu.reductions import ReductionPlan
from symcomp.ops.elementwise.elemwise import HOW_TO_STRETCH, ROWS, ScalarOp
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.stable_reduce import LogProd

MOST_AXES = 10


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
        if isinstance(step.function, LogProd):
            return False
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
    ReductionPlan(planner, nest, arrays, literals, lengths, strides, axes).plan()


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
    kernel = elementwise(nest.formula, patterns_of(nest), len(shape), tuple(kinds), wide, width)
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
    kernel = tiles(nest.formula, patterns_of(nest), len(axes), tuple(kinds), wide, tile.side)
    numbers = [n, *counts[1:], *lengths[-2:]]
    rows = [[row[a] for row in steps] for a in axes]
    planner.launch(kernel, [min(n, MOST_BLOCKS)], numbers, arrays, rows, literals)
