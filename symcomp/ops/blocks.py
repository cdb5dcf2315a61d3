"""Formulas computed with NumPy, a block at a time, so that values between stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce as folded
from itertools import product
from math import prod
from typing import Any

import numpy as np

from symcomp.ops.elemwise import ScalarOp
from symcomp.ops.formula import Formula, Step

Pattern = tuple[bool, ...]
Index = tuple[slice, ...]

# What a block may take of the cache of a core, in bytes, and its numbers of elements: fewer are not
# worth the calls, more gain nothing.
CACHE = 1 << 19
SMALLEST, LARGEST = 1 << 12, 1 << 15


class Evaluator:
    """Computes the results of a formula.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, which axes are stretched: they have length 1.
    """

    def __init__(self, formula: Formula, patterns: Sequence[Pattern]) -> None:
        self.formula = formula
        self._count = len(formula.inputs)
        self._literals = [literal.array for literal in formula.literals]
        self._results = [result.value for result in formula.results]
        every = formula.patterns(patterns)
        self._patterns = every[: self._count]
        self._pattern = folded(_both, self._patterns)
        # Whether every value has all elements, so that it does not matter where blocks end.
        self.even = all(p == self._pattern for p in every[formula.first_step :])
        self._direct = [_direct(formula, step) for step in formula.steps]
        self._dead = _dead(formula)
        self._scratch = _Scratch(formula) if self.even else None
        itemsizes = [np.dtype(formula.dtypes[v]).itemsize for v in range(self._count)]
        itemsizes += self._scratch.itemsizes if self._scratch else []
        itemsizes += [np.dtype(formula.dtypes[v]).itemsize for v in self._results]
        self.block = min(max(CACHE // sum(itemsizes), SMALLEST), LARGEST)
        self._full = [i for i, p in enumerate(self._patterns) if p == self._pattern]
        self._partial = [i for i in range(self._count) if i not in self._full]

    def shape(self, values: Sequence[Any]) -> tuple[int, ...] | None:
        """The shape that the inputs are broadcast to; None if they do not fit."""
        if self._full:
            shape = values[self._full[0]].shape
            for i in self._full[1:]:
                if values[i].shape != shape:
                    return None
        else:
            shape = tuple(
                next(
                    (v.shape[a] for v, p in zip(values, self._patterns, strict=True) if not p[a]), 1
                )
                for a in range(len(self._pattern))
            )
        for i in self._partial:
            for n, m, one in zip(values[i].shape, shape, self._patterns[i], strict=True):
                if not one and n != m:
                    return None
        return shape

    def __call__(
        self, values: Sequence[Any], shape: tuple[int, ...], targets: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """The results, where the inputs are broadcast to ``shape``.

        ``targets`` are arrays to leave the results in, None for a new one; they are used where
        blocks are.
        """
        if not self.even or prod(shape) <= self.block:
            return self._whole(values)
        return self._in_blocks(values, shape, targets or (None,) * len(self._results))

    def overwritable(self, result: int) -> list[int]:
        """The inputs that may be overwritten by a result, as nothing reads them after it."""
        number = self._results[result]
        if not self.even:
            return []
        step = self.formula.steps[number - self.formula.first_step]
        at_once = ufunc_of(self.formula, step) is None or len(step.arguments) <= 2
        uses = self.formula.last_use
        return [
            i
            for i in self._full
            if uses.get(i, -1) < number + at_once
            and self.formula.dtypes[i] == self.formula.dtypes[number]
        ]

    def _whole(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """All elements at once."""
        store = [*values, *self._literals]
        for (function, arguments, dtype), dead in zip(self._direct, self._dead, strict=True):
            z = function(*[store[a] for a in arguments])
            if type(z) is not np.ndarray or z.dtype is not dtype:
                z = np.asarray(z, dtype)
            store.append(z)
            for value in dead:
                store[value] = None
        return tuple([store[v] for v in self._results])

    def _in_blocks(
        self, values: Sequence[Any], shape: tuple[int, ...], targets: Sequence[Any]
    ) -> tuple[Any, ...]:
        assert self._scratch is not None
        order = self._order(values)
        outputs = [
            np.empty([shape[a] for a in order], self.formula.dtypes[v])
            if z is None or z.shape != shape
            else z.transpose(order)
            for v, z in zip(self._results, targets, strict=True)
        ]
        back = np.argsort(order)
        results = tuple(
            z.transpose(back) if target is None or target.shape != shape else target
            for z, target in zip(outputs, targets, strict=True)
        )
        operands = [v.transpose(order) for v in values]
        stretched = [tuple(p[a] for a in order) for p in self._patterns]
        lengths = outputs[0].shape
        flat = all(z.flags.c_contiguous for z in outputs)
        if flat and self._is_flat(operands, stretched):
            operands = [v.reshape(-1) for v in operands]
            outputs = [z.reshape(-1) for z in outputs]
            stretched = [(all(p),) for p in self._patterns]
            lengths = (prod(shape),)
        whole = [all(p) for p in stretched]
        run = self._scratch.runner(self.block)
        for index in block_indices(lengths, self.block):
            blocks = [
                v if one else v[_masked(index, p)]
                for v, p, one in zip(operands, stretched, whole, strict=True)
            ]
            run([*blocks, *self._literals], [z[index] for z in outputs])
        return results

    def _order(self, values: Sequence[Any]) -> list[int]:
        """The axes from the slowest to the fastest, as they lie in memory."""
        axes = range(len(self._pattern))
        if not self._full:
            return list(axes)
        strides = values[self._full[0]].strides
        return sorted(axes, key=lambda a: -abs(strides[a]))

    def _is_flat(self, operands: Sequence[Any], stretched: Sequence[Pattern]) -> bool:
        """Whether elements lie one after the other in all operands, or are one number."""
        return all(
            v.flags.c_contiguous and (i in self._full or all(p))
            for i, (v, p) in enumerate(zip(operands, stretched, strict=True))
        )


def _both(p: Pattern, q: Pattern) -> Pattern:
    return tuple(a and b for a, b in zip(p, q, strict=True))


def _masked(index: Index, stretched: Pattern) -> Index:
    return tuple(slice(None) if one else s for s, one in zip(index, stretched, strict=True))


def block_indices(shape: Sequence[int], size: int) -> Iterator[Index]:
    """Cut an array into blocks of at most ``size`` elements, along its slowest axes."""
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= size:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield (slice(None),) * len(shape)
        return
    step = max(size // inner, 1)
    rest = (slice(None),) * (len(shape) - axis)
    for outer in product(*map(range, shape[: axis - 1])):
        before = tuple(slice(i, i + 1) for i in outer)
        for start in range(0, shape[axis - 1], step):
            yield (*before, slice(start, start + step), *rest)


def _direct(formula: Formula, step: Step) -> tuple[Any, tuple[int, ...], Any]:
    """What computes a step: a function, the numbers of its arguments, the dtype of the value."""
    if isinstance(step.function, ScalarOp):
        return step.function.function, step.arguments, np.dtype(step.dtype)
    reduction = step.function

    def fold(x: Any) -> Any:
        z = reduction.perform(x)
        return z.reshape([1 if a in reduction.axes else n for a, n in enumerate(x.shape)])

    return fold, step.arguments, np.dtype(step.dtype)


def _dead(formula: Formula) -> list[tuple[int, ...]]:
    """For each step, the values that nobody needs after it."""
    results = {result.value for result in formula.results}
    dead: list[list[int]] = [[] for _ in formula.steps]
    for value, number in formula.last_use.items():
        if value not in results:
            dead[number - formula.first_step].append(value)
    return [tuple(values) for values in dead]


def ufunc_of(formula: Formula, step: Step) -> Any:
    """The ufunc that computes a step in its dtype, or the one that adds up its arguments; None if
    there is none.
    """
    row = step.function
    if not isinstance(row, ScalarOp):
        return None
    dtypes = [np.dtype(formula.dtypes[a]) for a in step.arguments]
    if row.name == "add" and len(dtypes) > 1:
        # Of one dtype, so that the sums of the first terms have that dtype too.
        return np.add if {*dtypes} == {np.dtype(step.dtype)} else None
    ufunc = row.numpy
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        return None
    return ufunc if ufunc.resolve_dtypes((*dtypes, None))[-1] == step.dtype else None


class _Scratch:
    """Where the values of a block are put: each in a buffer that is free then, or in an output."""

    def __init__(self, formula: Formula) -> None:
        self._steps: list[tuple[Any, tuple[int, ...], int, int]] = []
        self._dtypes: list[str] = []
        self._count = len(formula.dtypes)
        outputs = {result.value: i for i, result in enumerate(formula.results)}
        self._n_outputs = len(outputs)
        free: dict[str, list[int]] = {}
        held: dict[int, int] = {}
        dead = _dead(formula)
        for position, step in enumerate(formula.steps):
            number = formula.first_step + position
            ufunc = ufunc_of(formula, step)
            last = [held.pop(v) for v in dead[position] if v in held]
            if len(step.arguments) <= 2:
                _release(free, last, self._dtypes)  # a ufunc may overwrite what it reads
            place = -1
            if number in outputs:
                place = outputs[number]
            elif ufunc is not None:
                place = self._n_outputs + self._take(free, step.dtype)
                held[number] = place - self._n_outputs
            if len(step.arguments) > 2:
                _release(free, last, self._dtypes)
            if place >= self._n_outputs and number not in formula.last_use:
                _release(free, [held.pop(number)], self._dtypes)
            function, arguments, dtype = _direct(formula, step)
            self._steps.append(
                (_out_of(ufunc), arguments, place, dtype)
                if ufunc is not None
                else (_into(function, dtype, number in outputs), arguments, place, dtype)
            )

    @property
    def itemsizes(self) -> list[int]:
        """Of the buffers."""
        return [np.dtype(dtype).itemsize for dtype in self._dtypes]

    def _take(self, free: dict[str, list[int]], dtype: str) -> int:
        if free.get(dtype):
            return free[dtype].pop()
        self._dtypes.append(dtype)
        return len(self._dtypes) - 1

    def runner(self, size: int) -> Callable[[list[Any], list[Any]], None]:
        """What computes a block from its inputs and literals into its outputs."""
        buffers = [np.empty(size, dtype) for dtype in self._dtypes]
        shaped: dict[tuple[int, ...], list[Any]] = {}

        def run(store: list[Any], outputs: list[Any]) -> None:
            shape = outputs[0].shape
            if shape not in shaped:
                shaped[shape] = [b[: prod(shape)].reshape(shape) for b in buffers]
            places = [*outputs, *shaped[shape]]
            for compute, arguments, place, _ in self._steps:
                target = places[place] if place >= 0 else None
                store.append(compute([store[a] for a in arguments], target))

        return run


def _release(free: dict[str, list[int]], buffers: Sequence[int], dtypes: Sequence[str]) -> None:
    for buffer in buffers:
        free.setdefault(dtypes[buffer], []).append(buffer)


def _out_of(ufunc: Any) -> Callable[[list[Any], Any], Any]:
    if ufunc is np.add:

        def add(values: list[Any], target: Any) -> Any:
            np.add(values[0], values[1], out=target)
            for value in values[2:]:
                np.add(target, value, out=target)
            return target

        return add
    return lambda values, target: ufunc(*values, out=target)


def _into(function: Any, dtype: Any, kept: bool) -> Callable[[list[Any], Any], Any]:
    def compute(values: list[Any], target: Any) -> Any:
        z = function(*values)
        if kept:
            np.copyto(target, z, casting="unsafe")
            return target
        return z if type(z) is np.ndarray and z.dtype == dtype else np.asarray(z, dtype)

    return compute
