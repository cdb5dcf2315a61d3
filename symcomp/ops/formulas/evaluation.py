"""Compute formulas with NumPy, block by block, so that intermediate values stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from functools import reduce as folded
from math import prod
from typing import Any

import numpy as np

from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.blocks import BlockLayout, Pattern, block_indices, masked
from symcomp.ops.formulas.formula import (
    Formula,
    Step,
    along,
    folded_axes,
    line_axes,
    whole_arguments,
)
from symcomp.ops.formulas.stepping import (
    dead_after,
    direct,
    in_dtype,
    keeping_axes,
    straight_line,
    ufunc_of,
    without,
)
from symcomp.ops.reductions.reduce import Reduce

# Bytes of the core's cache used by a block, and bounds of its number of elements: smaller blocks
# are dominated by call overhead, larger ones gain nothing.
CACHE = 1 << 20
SMALLEST, LARGEST = 1 << 12, 1 << 15


class Evaluator:
    """Computes the results of a formula.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, which axes are stretched: they have length 1.

    Attributes
    ----------
    way : {"whole", "loop", "rows"}
        How large arrays are computed: all at once; block by block, with reductions accumulated
        over blocks; or in blocks of whole rows, so that the reductions of a row are used in its
        block.
    """

    def __init__(self, formula: Formula, patterns: Sequence[Pattern]) -> None:
        self.formula = formula
        every = formula.patterns(patterns)
        self._patterns = every[: len(formula.inputs)]
        self._pattern = folded(_both, self._patterns)
        self._literals = [literal.array for literal in formula.literals]
        self._results = [result.value for result in formula.results]
        self._result_patterns = [every[v] for v in self._results]
        looped = [i for i in range(len(self._patterns)) if i not in formula.tables]
        self._full = [i for i in looped if self._patterns[i] == self._pattern]
        self._partial = [i for i in looped if i not in self._full]
        self._every = every
        self.way, self._axes = _way(formula, every)

    @cached_property
    def _whole(self) -> Callable[..., tuple[Any, ...]]:
        """Compute small arrays. Written when it is first called: kernels do most calls."""
        return straight_line(self.formula, self._every)

    @cached_property
    def _body(self) -> BlockProgram:
        small = _small(self.formula, self._every)
        return BlockProgram(self.formula, small, in_rows=self.way == "rows")

    @cached_property
    def block(self) -> int:
        """The number of elements of a block."""
        dtypes = self.formula.dtypes
        values = (*range(len(self._patterns)), *self._results)
        sizes = [np.dtype(dtypes[v]).itemsize for v in values]
        sizes += self._body.itemsizes if self.way != "whole" else []
        return min(max(CACHE // sum(sizes), SMALLEST), LARGEST)

    def shape(self, values: Sequence[Any]) -> tuple[int, ...] | None:
        """Return the shape that the inputs broadcast to; None if they do not fit."""
        if self._full:
            shape = values[self._full[0]].shape
            for i in self._full[1:]:
                if values[i].shape != shape:
                    return None
        else:
            pairs = [(values[i], self._patterns[i]) for i in self._partial]
            axes = range(len(self._pattern))
            shape = tuple(next((v.shape[a] for v, p in pairs if not p[a]), 1) for a in axes)
        for i in self._partial:
            for n, m, one in zip(values[i].shape, shape, self._patterns[i], strict=True):
                if not one and n != m:
                    return None
        return shape

    def __call__(
        self, values: Sequence[Any], shape: tuple[int, ...], targets: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """Compute the results, where the inputs are broadcast to ``shape``.

        ``targets`` are arrays to write the results into, None for a new one; they are used if the
        formula is computed in blocks, for results with all elements.
        """
        if self.way == "whole" or prod(shape) <= self.block:
            return self._whole(*values)
        return self._in_blocks(self._body, values, shape, targets)

    def overwritable(self, result: int) -> list[int]:
        """Return the inputs that a result may overwrite, as no step reads them after it."""
        number = self._results[result]
        if number in self.formula.scatters:
            return [self.formula.scatters[number]]
        if self.way == "whole" or self._result_patterns[result] != self._pattern:
            return []
        step = self.formula.steps[number - self.formula.first_step]
        at_once = ufunc_of(self.formula, step) is not None and len(step.arguments) <= 2
        uses = self.formula.last_use
        return [
            i
            for i in self._full
            if uses.get(i, -1) < number + at_once
            and self.formula.dtypes[i] == self.formula.dtypes[number]
        ]

    def _in_blocks(
        self,
        body: BlockProgram,
        values: Sequence[Any],
        shape: tuple[int, ...],
        given: Sequence[Any],
    ) -> tuple[Any, ...]:
        """Compute block by block; then the steps that use complete reductions."""
        axes = {a for a, one in enumerate(self._pattern) if not one}
        flatten = self.way == "loop" and all(axes <= {*f.axes} for f in body.totals.values())
        layout = BlockLayout(shape, values, self._patterns, flatten)
        outputs, places = {}, dict(zip(self._results, given, strict=False))
        for v, p in zip(self._results, self._result_patterns, strict=True):
            if v not in body.late:
                stretched = (False,) if layout.flat else tuple(p[a] for a in layout.order)
                target = layout.adopted(places.get(v))
                if target is None:
                    lengths = [1 if n else m for m, n in zip(layout.shape, stretched, strict=True)]
                    target = np.empty(lengths, self.formula.dtypes[v])
                outputs[v] = target, stretched
        totals = Totals(body.totals, self.formula.dtypes, layout)
        run = body.runner(layout)
        for index in block_indices(layout.shape, self.block, layout.axes(self._axes)):
            targets = {v: z[masked(index, p)] for v, (z, p) in outputs.items()}
            totals.add(run([*layout.part(index), *self._literals], targets), index)
        found = {v: layout.restored(z) for v, (z, _) in outputs.items()} | totals.results()
        return self._finish(body, values, found)

    def _finish(
        self, body: BlockProgram, values: Sequence[Any], found: dict[int, Any]
    ) -> tuple[Any, ...]:
        store: list[Any] = [*values, *self._literals]
        for number, step in enumerate(self.formula.steps, len(store)):
            if number in body.late and number not in found:
                compute = in_dtype(direct(step), step.dtype)
                found[number] = compute(*[store[a] for a in step.arguments])
            store.append(found.get(number))
        return tuple([without(store[r.value], r.dropped) for r in self.formula.results])


class Totals:
    """Reductions accumulated over blocks, in the dtypes of the accumulators."""

    def __init__(
        self, folds: dict[int, Reduce], dtypes: Sequence[str], layout: BlockLayout
    ) -> None:
        self._folds = folds
        self._dtypes = dtypes
        self._layout = layout
        self._axes = {number: layout.axes(fold.axes) for number, fold in folds.items()}
        self._arrays: dict[int, Any] = {}

    def add(self, store: Sequence[Any], index: tuple[slice, ...]) -> None:
        """Add the values of the block at ``index``."""
        for number, fold in self._folds.items():
            part, axes = store[number], self._axes[number]
            if number not in self._arrays:
                lengths = enumerate(self._layout.shape)
                self._arrays[number] = np.empty(
                    [1 if a in axes else n for a, n in lengths], part.dtype
                )
            own = tuple(slice(None) if a in axes else cut for a, cut in enumerate(index))
            total = self._arrays[number][own]
            if all(not index[a].start for a in axes):
                total[...] = part
            else:
                fold.reduction.numpy(total, part, out=total)

    def results(self) -> dict[int, Any]:
        """Return the reductions, in the dtypes of their results."""
        found = {}
        for number, total in self._arrays.items():
            found[number] = np.asarray(self._layout.restored(total), self._dtypes[number])
        return found


class BlockProgram:
    """The steps of a block: each value in a free buffer, or in an output.

    Parameters
    ----------
    formula : Formula
    small : frozenset of int
        The values without all elements (reductions, and values computed from them alone).
    in_rows : bool
        If true, a block holds whole rows, so that reductions can be used in the same block.

    Attributes
    ----------
    totals : dict of int to Reduce
        The reductions that are put together from all blocks.
    late : frozenset of int
        The values that are known after all blocks.
    """

    def __init__(self, formula: Formula, small: frozenset[int], in_rows: bool) -> None:
        self._formula = formula
        self.totals = {
            number: step.function
            for number, step in enumerate(formula.steps, formula.first_step)
            if isinstance(step.function, Reduce) and not (in_rows and number in formula.last_use)
        }
        self.late = frozenset(self.totals) if in_rows else small
        self._buffers: list[str] = []  # dtypes of the buffers
        self._free: dict[str, list[int]] = {}
        self._held: dict[int, int] = {}
        results = {result.value for result in formula.results}
        # For each step: the function, the arguments, and the number of its buffer; -1 for none.
        self._plan: list[tuple[Any, tuple[int, ...], int]] = []
        dead = dead_after(formula)
        for position, step in enumerate(formula.steps):
            number = formula.first_step + position
            if number in self.late or line_axes(step.function):
                self._plan.append((None, step.arguments, -1))
            else:
                self._place(number, step, number in results, number in small, dead[position])
            for value in dead[position]:
                self._release(value)

    @property
    def itemsizes(self) -> list[int]:
        """Itemsizes of the buffers."""
        return [np.dtype(dtype).itemsize for dtype in self._buffers]

    def _place(
        self, number: int, step: Step, shown: bool, small: bool, dead: Sequence[int]
    ) -> None:
        ufunc = None if small else ufunc_of(self._formula, step)
        if len(step.arguments) <= 2:
            for value in dead:
                self._release(value)  # released first: a ufunc may overwrite its operand
        place = -1
        if ufunc is not None and not shown:
            place = self._take(step.dtype)
            self._held[number] = place
        compute = _out_of(ufunc) if ufunc is not None else _into(direct(step), step.dtype)
        self._plan.append((compute, step.arguments, place))

    def _take(self, dtype: str) -> int:
        if self._free.get(dtype):
            return self._free[dtype].pop()
        self._buffers.append(dtype)
        return len(self._buffers) - 1

    def _release(self, value: int) -> None:
        buffer = self._held.pop(value, None)
        if buffer is not None:
            self._free.setdefault(self._buffers[buffer], []).append(buffer)

    def runner(self, layout: BlockLayout) -> Callable[[list[Any], dict[int, Any]], list[Any]]:
        """Return the function that computes a block, from its inputs, literals and the arrays of
        the results, to all values.
        """
        formula, plan = self._formula, []
        for number, (compute, arguments, place) in enumerate(self._plan, formula.first_step):
            step = formula.steps[number - formula.first_step]
            if number in self.totals:
                axes = layout.axes(self.totals[number].axes)
                compute = _partial(self.totals[number], formula.dtypes[arguments[0]], axes)
            elif number not in self.late and not isinstance(step.function, ScalarOp):
                moved = along(step.function, layout.axes(line_axes(step.function)))
                compute = _into(keeping_axes(moved), step.dtype)
            plan.append((number, compute, arguments, place))
        largest: list[Any] = []
        shaped: dict[tuple[int, ...], list[Any]] = {}

        def buffers(shape: tuple[int, ...]) -> list[Any]:
            size = prod(shape)
            if not largest:  # the first block is the largest, so buffers are allocated once
                largest.extend(np.empty(size, dtype) for dtype in self._buffers)
            if shape not in shaped:
                shaped[shape] = [b[:size].reshape(shape) for b in largest]
            return shaped[shape]

        def run(store: list[Any], outputs: dict[int, Any]) -> list[Any]:
            shape = np.broadcast_shapes(*[v.shape for v in store])
            places = buffers(shape)
            for number, compute, arguments, place in plan:
                if compute is None:
                    store.append(None)
                    continue
                target = places[place] if place >= 0 else outputs.get(number)
                store.append(compute([store[a] for a in arguments], target))
            return store

        return run


def _both(p: Pattern, q: Pattern) -> Pattern:
    return tuple(a and b for a, b in zip(p, q, strict=True))


def _small(formula: Formula, patterns: Sequence[Pattern]) -> frozenset[int]:
    """Return the steps whose values have not all elements, among them the reductions."""
    full = folded(_both, patterns[: len(formula.inputs)])
    steps = enumerate(formula.steps, formula.first_step)
    return frozenset(n for n, step in steps if patterns[n] != full or folded_axes(step.function))


def _way(formula: Formula, patterns: Sequence[Pattern]) -> tuple[str, frozenset[int]]:
    """Choose how large arrays are computed; return this and the axes along which blocks are not
    divided.
    """
    full = folded(_both, patterns[: len(formula.inputs)])
    small = _small(formula, patterns)
    whole = "whole", frozenset[int]()
    if formula.tables:
        return whole
    lines: set[frozenset[int]] = set()
    in_rows = False
    for number, step in enumerate(formula.steps, formula.first_step):
        axes = line_axes(step.function)
        if axes and any(a in small or patterns[a] != full for a in whole_arguments(step)):
            return whole
        in_rows = in_rows or bool(axes and not isinstance(step.function, Reduce))
        if number not in small or axes:
            in_rows = in_rows or any(a in small for a in step.arguments)
        if axes and (number in formula.last_use or not isinstance(step.function, Reduce)):
            lines.add(frozenset(a for a in axes if not full[a]))
    if not in_rows:
        return "loop", frozenset()
    totals = {
        n
        for n, step in enumerate(formula.steps, formula.first_step)
        if isinstance(step.function, Reduce) and n not in formula.last_use
    }
    lines |= {
        frozenset(a for a, one in enumerate(patterns[n]) if one > full[a]) for n in small - totals
    }
    if len(lines) != 1:
        return whole
    (kept,) = lines
    rows = any(a not in kept and not one for a, one in enumerate(full))
    return ("rows", kept) if rows else whole


def _out_of(ufunc: Any) -> Callable[[list[Any], Any], Any]:
    if ufunc is np.add:

        def add(values: list[Any], target: Any) -> Any:
            np.add(values[0], values[1], out=target)
            for value in values[2:]:
                np.add(target, value, out=target)
            return target

        return add
    return lambda values, target: ufunc(*values, out=target)


def _into(function: Any, dtype: str) -> Callable[[list[Any], Any], Any]:
    checked = in_dtype(function, dtype)

    def compute(values: list[Any], target: Any) -> Any:
        if target is None:
            return checked(*values)
        np.copyto(target, function(*values), casting="unsafe")
        return target

    return compute


def _partial(fold: Reduce, dtype: str, axes: tuple[int, ...]) -> Callable[[list[Any], Any], Any]:
    """Return the reduction of one block, in the dtype of the accumulator."""
    ufunc = fold.reduction.numpy
    work = None if fold.reduction.logical else fold.dtypes_for(dtype)[1]
    return lambda values, target: ufunc.reduce(values[0], axis=axes, dtype=work, keepdims=True)
