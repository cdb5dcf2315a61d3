"""Formulas without reductions on cards, where neighbours of some inputs lie along another axis than
the last one: blocks compute squares of elements, tiles, along both axes.

Threads that follow one another read neighbours of such an input, and leave them in shared memory,
where others take them. So each access of a warp is to neighbours, in all arrays. Other inputs are
read into registers before, so that no read waits for another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cpu.bodies import BodyPlan
from symcomp.codegen.cuda.elementwise import ONE, STRIDED, total, unravel
from symcomp.codegen.cuda.text import CudaKernel, print_function
from symcomp.codegen.loopir.expressions import (
    Get,
    Index,
    IndexOp,
    Load,
    Stride,
    Var,
    plus,
    times,
)
from symcomp.codegen.loopir.ir import (
    Accumulators,
    Define,
    Guard,
    If,
    KernelFunction,
    Kind,
    Let,
    Loop,
    Pointer,
    Set,
    Signature,
    Statement,
    Store,
)
from symcomp.codegen.loops.nests import Nest, Pattern, nest_of
from symcomp.ops.formulas.formula import Formula

THREADS = 256
#: How an input is read whose neighbours lie along the last axis but one.
TURNED = "turned"
X, K, ROW, COLUMN = Var("x"), Var("k"), Var("row"), Var("column")


def each_of(side: int) -> int:
    """Return how many elements of a tile a thread computes."""
    return side * side // THREADS


def size_of(dtype: str) -> int:
    """Return the bytes of an element while it is computed with."""
    return max(4, np.dtype(dtype).itemsize) if dtype == "float16" else np.dtype(dtype).itemsize


def pitch_of(dtype: str, side: int) -> int:
    """Return the elements from one row of a tile to the next: neither the elements of a row nor
    those of a column are in the same banks of shared memory.
    """
    return side + max(1, 4 // size_of(dtype))


def bytes_of(dtype: str, side: int) -> int:
    """Return the bytes of shared memory that the tile of an input takes."""
    return side * pitch_of(dtype, side) * size_of(dtype)


def print_tiles(
    nest: Nest, rank: int, kinds: Sequence[str], wide: bool, side: int
) -> CudaKernel:
    """Return the kernel of a nest without reductions.

    Parameters
    ----------
    nest : Nest
    rank : int
        How many axes there are; tiles are along the last two.
    kinds : sequence of {"one", "strided", "turned"}
        How each input and output lies.
    wide : bool
        Whether integers have 64 bits.
    side : int
        Of a tile.
    """
    return _Writer(nest, rank, kinds, side).kernel(wide)


@cache
def tiles(
    formula: Formula,
    patterns: tuple[Pattern, ...],
    rank: int,
    kinds: tuple[str, ...],
    wide: bool,
    side: int,
) -> CudaKernel:
    """Return the kernel of the nest of a formula; see ``print_tiles``."""
    nest = nest_of(formula, patterns)
    assert nest is not None
    return print_tiles(nest, rank, kinds, wide, side)


class _Writer:
    """Statements of a nest. A thread is at place ``x`` along one axis of the tile, and at ``y`` and
    further ones along the other: the last axis is that of ``x``, but where turned inputs are read.
    """

    def __init__(self, nest: Nest, rank: int, kinds: Sequence[str], side: int) -> None:
        self.nest, self.rank, self.kinds, self.side = nest, rank, kinds, side
        self.arrays = len(nest.stretched)
        self.plan = BodyPlan(nest, len(nest.bodies) - 1, nest.bodies[-1])
        self.turned, self.direct = self._inputs(TURNED), self._inputs(STRIDED)

    def _inputs(self, kind: str) -> list[tuple[int, int]]:
        """Return the values that are loaded from arrays of a kind, with these."""
        loads = *self.plan.numbers, *self.plan.elements
        return [(v, a) for v, a in loads if a < self.arrays and self.kinds[a] == kind]

    def kernel(self, wide: bool) -> CudaKernel:
        rank, side, dtypes = self.rank, self.side, self.nest.dtypes
        across, down = Var(f"p{rank - 1}"), Var(f"p{rank - 2}")
        tile = [
            *unravel("o", [Var(f"n{axis}") for axis in range(rank)], "p"),
            Define("top", times(down, side)),
            Define("left", times(across, side)),
            If(self._is_whole(), self._tile(True), self._tile(False)),
        ]
        body = [
            *self._numbers(),
            *(
                Accumulators(f"tile{a}", dtypes[a], block=True, lanes=side * self._pitch(a))
                for _, a in self.turned
            ),
            *(Accumulators(f"held{a}", dtypes[a], lanes=each_of(side)) for _, a in self.direct),
            Loop(Kind.GRID, "o", 0, Var("n"), tuple(tile)),
        ]
        numbers = ("n", *(f"n{axis}" for axis in range(1, rank)), "height", "width")
        rows = tuple(f"step{axis}" for axis in range(rank))
        function = KernelFunction("tiles", Signature(numbers, ("data", "literals"), rows), (*body,))
        literals = self.nest.temporaries - self.arrays
        return print_function(function, self.arrays, literals, THREADS, wide)

    def _is_whole(self) -> Index:
        """Return whether no element of a tile is beyond the end of an axis."""
        pairs = ("top", "height"), ("left", "width")
        ends = (IndexOp("<=", (plus(Var(a), self.side), Var(b))) for a, b in pairs)
        return IndexOp("and", tuple(ends))

    def _tile(self, whole: bool) -> tuple[Statement, ...]:
        """Compute a tile, of whose elements none is beyond the end of an axis, or some are."""
        read = self._read_direct(whole), self._read_turned(whole)
        return self._by_all([*read[0], *read[1]]), self._by_all(self._computed(whole))

    def _by_all(self, body: Sequence[Statement]) -> Loop:
        """Return what all threads of a block do, after which they wait for one another."""
        place = (
            Define("x", IndexOp("%", (Var("t"), self.side))),
            Define("y", IndexOp("//", (Var("t"), self.side))),
        )
        return Loop(Kind.BLOCK, "t", 0, THREADS, (*place, *body))

    def _numbers(self) -> list[Statement]:
        """Load the numbers: they are the same for all elements."""
        found: list[Statement] = []
        for value, array in (*self.plan.numbers, *self.plan.elements):
            table, place = "data", array
            if array >= self.arrays:
                table, place = "literals", array - self.arrays
            elif self.kinds[array] != ONE:
                continue
            dtype = self.nest.dtypes[array]
            found.append(Pointer(f"a{array}", dtype, place, 0, 0, False, table))
            found.append(self.plan.load(value, array, 0))
        return found

    def _read_direct(self, whole: bool) -> list[Statement]:
        """Read the elements of a thread into registers."""
        each: list[Statement] = [_row(self._further(), whole)]
        for _, array in self.direct:
            each.append(self._pointer(array, False))
            each.append(Set(f"held{array}", K, Load(f"a{array}", 0, self.nest.dtypes[array])))
        return [_column(X, whole), self._for_each(each)] if self.direct else []

    def _read_turned(self, whole: bool) -> list[Statement]:
        """Read elements into shared memory; neighbours are along the last axis but one."""
        each: list[Statement] = [_row(X, whole), _column(self._further(), whole)]
        for _, array in self.turned:
            at = plus(times(self._further(), self._pitch(array)), X)
            each.append(self._pointer(array, False))
            each.append(Set(f"tile{array}", at, Load(f"a{array}", 0, self.nest.dtypes[array])))
        return [self._for_each(each)]

    def _computed(self, whole: bool) -> list[Statement]:
        """Compute and write the elements of a thread, but for those beyond the end of an axis."""
        plan, dtypes = self.plan, self.nest.dtypes
        each: list[Statement] = [_row(self._further(), True)]
        for value, array in self.turned:
            at = plus(times(X, self._pitch(array)), self._further())
            each.append(Let(f"v{value}", Get(f"tile{array}", at, dtypes[array])))
        for value, array in self.direct:
            each.append(Let(f"v{value}", Get(f"held{array}", K, dtypes[array])))
        each += [plan.step(value) for value in plan.steps]
        writes: list[Statement] = []
        for value, array in plan.stores:
            writes += [self._pointer(array, True), Store(f"a{array}", 0, plan.ref(value))]
        if not whole:
            inside = IndexOp("<", (ROW, Var("height"))), IndexOp("<", (COLUMN, Var("width")))
            writes = [Guard(IndexOp("and", inside), tuple(writes))]
        return [_column(X, True), self._for_each([*each, *writes])]

    def _for_each(self, body: Sequence[Statement]) -> Loop:
        return Loop(Kind.UNROLLED, "k", 0, each_of(self.side), tuple(body))

    def _further(self) -> Index:
        """Return the place of element k of a thread along the axis of ``y``."""
        return plus(Var("y"), times(K, THREADS // self.side))

    def _pitch(self, array: int) -> int:
        return pitch_of(self.nest.dtypes[array], self.side)

    def _pointer(self, array: int, writes: bool) -> Pointer:
        """Return the pointer to the element in a row and a column."""
        places = [*(Var(f"p{axis}") for axis in range(self.rank - 2)), ROW, COLUMN]
        terms = [IndexOp("*", (p, Stride(array, x, f"step{x}"))) for x, p in enumerate(places)]
        return Pointer(f"a{array}", self.nest.dtypes[array], array, total(terms), 0, writes)


def _row(place: Index, whole: bool) -> Define:
    """Define the row of a place in a tile; the last one, if it is beyond: so all threads read."""
    return Define("row", _position("top", place, "height", whole))


def _column(place: Index, whole: bool) -> Define:
    return Define("column", _position("left", place, "width", whole))


def _position(start: str, place: Index, length: str, whole: bool) -> Index:
    found = plus(Var(start), place)
    return found if whole else IndexOp("min", (found, IndexOp("-", (Var(length), 1))))
