"""Straight code of plans: calls on few elements that stand one after another become one C function.

A call of the machine takes some tens of nanoseconds besides its work, which is most of the time
where arrays have a few elements, as in the steps of many loops. When a segment of a plan has run
often, its calls are known, and so are the lengths, strides and places of all operands. Calls on few
elements are printed together, compiled in the background, and replaced. Values between them, which
no other call reads, are not written to memory at all. Results have the same bits
(``codegen/loopir/straight.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from symcomp.codegen.compiler.early import Code, load_later
from symcomp.codegen.functions.c_scalars import scalar_text
from symcomp.codegen.kernel import scheduled
from symcomp.codegen.loopir.straight import Elements, NotStraightError, Spot, StraightCode
from symcomp.codegen.printers.c_file import calls_vectors, translation_unit
from symcomp.codegen.printers.c_printer import Kernel, print_straight
from symcomp.core.record import record
from symcomp.core.spans import span
from symcomp.cvm.kernels import KernelOf
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.formula import Formula

# The most values of one function: beyond, calls cost little beside their work, and compiling much.
MOST_VALUES = 1500
# The most elements times operations of a kernel, and elements times calls of scalar functions,
# which kernels make for several elements at once.
MOST_WORK, MOST_CALLS = 256, 8
# The most elements that a copy moves.
MOST_MOVED = 64

#: A storage and an offset in bytes.
Place: TypeAlias = "tuple[int, int]"


@record(eq=False)
class KernelRun:
    """The call of a kernel: for each input and output its place, and a row of strides."""

    kernel: KernelOf
    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    places: tuple[Place, ...]


@record(eq=False)
class ProductRun:
    """A product of two matrices, by loops in their order: sides, then places and strides of the
    factors and the result.
    """

    dtype: str
    sides: tuple[int, int, int]
    places: tuple[Place, Place, Place]
    strides: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    alpha: float
    beta: float


@record(eq=False)
class Move:
    """Elements set to others, or with others added to them."""

    dtype: str
    adds: bool
    to: Place
    source: Place
    shape: tuple[int, ...]
    to_strides: tuple[int, ...]
    source_strides: tuple[int, ...]


@record(eq=False)
class StorageOf:
    """A storage of a segment.

    Attributes
    ----------
    last : int
        Calls from this one on do not need it.
    is_own : bool
        Whether it is the segment's, and no other's.
    is_result : bool
        Whether its address is where a result goes.
    content : bytes or None
        What a constant one holds.
    """

    last: int
    is_own: bool
    is_result: bool
    content: bytes | None


@record(eq=False)
class SegmentOf:
    """A segment of a plan.

    Attributes
    ----------
    calls : list
        For each call what it does, one after another; None where that is unknown here.
    storages : list
        None: an address that is not known from the beginning of a run.
    copies : list or None
        Of a nested program, the copies of results that do not lie where they are wanted: result j
        is storage ``len(storages) + j``.
    """

    calls: list[list[KernelRun | ProductRun | Move] | None]
    storages: list[StorageOf | None]
    copies: list[Move] | None


@record(eq=False)
class Stretch:
    """Calls of a segment, and their straight code.

    Attributes
    ----------
    first, end : int
    code : Code or None
        None: the calls are made.
    copies_results : bool
        Whether the code copies the results of the program, too.
    """

    first: int
    end: int
    code: Code | None
    copies_results: bool


def straightened(segment: SegmentOf) -> list[Stretch]:
    """Return the stretches of a segment, whose code may still be compiled; none if it has no
    straight code.
    """
    with span("straight code"):
        found = _Stretches(segment).found
        kernels = [kernel for _, _, kernel, _ in found if kernel is not None]
        if not kernels:
            return []
        codes = load_later(translation_unit(kernels, "shared"), [k.name for k in kernels])
        if codes is None:
            return []
    rest = iter(codes)
    return [
        Stretch(first, end, None if kernel is None else next(rest), copies)
        for first, end, kernel, copies in found
    ]


class _Stretches:
    """Divides the calls of a segment."""

    def __init__(self, segment: SegmentOf) -> None:
        self.segment = segment
        #: First and last call, the function, whether it copies results.
        self.found: list[tuple[int, int, Kernel | None, bool]] = []
        self.code, self.first = StraightCode(MOST_VALUES), 0
        n = len(segment.calls)
        for i in range(n):
            if self._add(segment.calls[i]):
                continue
            self._close(i)
            if not self._add(segment.calls[i]):
                self._leave(i)
        self._close(n)

    def _add(self, runs: Sequence[KernelRun | ProductRun | Move] | None) -> bool:
        """Add what a call does to the code; return False if that is not possible."""
        if runs is None:
            return False
        try:
            for run in runs:
                _APPLIED[type(run)](self, run)
        except NotStraightError:
            self.code.undo()
            return False
        self.code.keep()
        return True

    def _leave(self, number: int) -> None:
        """Have a call made as before."""
        first = number
        if self.found and self.found[-1][2] is None:
            first = self.found.pop()[0]
        self.found.append((first, number + 1, None, False))
        self.first = number + 1

    def _close(self, end: int) -> None:
        """End the function before a call."""
        if end > self.first:
            copies = end == len(self.segment.calls) and self._add(self.segment.copies)
            kernel = print_straight(self.code.body(lambda n: self._kept(n, end, copies)))
            self.found.append((self.first, end, kernel, copies))
        self.code, self.first = StraightCode(MOST_VALUES), end

    def _kept(self, number: int, end: int, copies: bool) -> tuple[str, int] | None:
        """Return where a storage is written; None if nothing needs it from call ``end`` on."""
        storages = self.segment.storages
        if number >= len(storages):
            return "to", number - len(storages)
        storage = storages[number]
        assert storage is not None
        if not storage.is_own or storage.is_result:
            return "data", number
        return ("data", number) if storage.last > end and not copies else None

    def _elements(
        self, place: Place, dtype: str, shape: Sequence[int], strides: Sequence[int]
    ) -> Elements:
        number, offset = place
        storages = self.segment.storages
        content = None
        if number < len(storages):
            storage = storages[number]
            if storage is None:
                raise NotStraightError
            content = storage.content
        spot = Spot(self.code.storage(number, content), offset)
        return Elements(spot, dtype, tuple(shape), tuple(strides))

    def _kernel(self, run: KernelRun) -> None:
        formula, patterns = run.kernel.formula, run.kernel.patterns
        if not _is_light(run):
            raise NotStraightError
        made = scheduled(formula, patterns)
        assert made is not None
        every = formula.patterns(patterns)
        results = [(every[r.value], formula.dtypes[r.value]) for r in formula.results]
        kinds = [*zip(patterns, formula.inputs, strict=True), *results]
        arrays = [
            self._elements(
                place,
                dtype,
                [1 if one else n for one, n in zip(pattern, run.shape, strict=True)],
                strides,
            )
            for (pattern, dtype), strides, place in zip(kinds, run.strides, run.places, strict=True)
        ]
        self.code.run(made.kernel, [*arrays, *map(self.code.literal, made.literals)])

    def _product(self, run: ProductRun) -> None:
        n, k, m = run.sides
        x, y, z = (
            self._elements(place, run.dtype, shape, strides)
            for place, shape, strides in zip(
                run.places, ((n, k), (k, m), (n, m)), run.strides, strict=True
            )
        )
        self.code.multiply(x, y, z, run.alpha, run.beta)

    def _move(self, run: Move) -> None:
        if math.prod(run.shape) > MOST_MOVED:
            raise NotStraightError
        self.code.move(
            self._elements(run.to, run.dtype, run.shape, run.to_strides),
            self._elements(run.source, run.dtype, run.shape, run.source_strides),
            run.adds,
        )


_APPLIED: dict[type, Callable[[_Stretches, Any], None]] = {
    KernelRun: _Stretches._kernel,
    ProductRun: _Stretches._product,
    Move: _Stretches._move,
}


def _is_light(run: KernelRun) -> bool:
    """Tell whether a kernel takes little time beside its call, and rounds alike for any number of
    elements.
    """
    formula, elements = run.kernel.formula, math.prod(run.shape)
    if elements * len(formula.steps) > MOST_WORK or formula.tables:
        return False
    if calls_vectors(run.kernel.whole.kernel):
        return False
    return elements * sum(_calls(formula, v) for v in range(len(formula.steps))) <= MOST_CALLS


def _calls(formula: Formula, number: int) -> bool:
    """Tell whether a step calls a scalar function of C."""
    step = formula.steps[number]
    if not isinstance(step.function, ScalarOp):
        return False
    text = scalar_text(step.function, tuple(formula.dtypes[a] for a in step.arguments), step.dtype)
    return text is None or text.calls
