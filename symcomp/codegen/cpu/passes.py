"""Reducing passes as functions: rows in parts, several rows at once, totals in registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from symcomp.codegen.cpu.bodies import BodyPlan, I, N, R, lanes_of, versions
from symcomp.codegen.cpu.folds import ROWS_AT_ONCE, Fold, parts_of_one
from symcomp.codegen.loopir.expressions import (
    Convert,
    Get,
    Index,
    IndexOp,
    Load,
    Var,
    plus,
    times,
)
from symcomp.codegen.loopir.ir import (
    BOTH,
    LANES,
    Accumulators,
    CopyTable,
    Counter,
    Define,
    FunctionCall,
    Guard,
    If,
    KernelFunction,
    Kind,
    Let,
    Loop,
    MoveTable,
    Prefetch,
    Set,
    Statement,
)

# A part of a sum has at most this many rows; the rounding error grows with them.
PART = 16
# Rows that are compared at once if elements are cheap. With many rows and few arrays, more than
# ROWS_AT_ONCE, all of a part, are joined directly to the totals.
ROWS_COMPARED, MORE_ROWS, MANY_ROWS = 8, PART, 64
# If a lane function adds up elements, each lane takes WAYS elements of a row, provided they are
# computed in at most FEW_LINES lines: more makes compiling slow.
WAYS, FEW_LINES = 4, 6
# The dtype of truths beside sums.
WIDE = "int32"
ROWS_HERE, END, REST, FIRST = Var("rows"), Var("end"), Var("rest"), Var("first")
_MANY = IndexOp("<=", (MANY_ROWS, ROWS_HERE))


class PassPlan:
    """The functions of a reducing body that passes over rows.

    Attributes
    ----------
    plan : BodyPlan
    folds : tuple of Fold
    ways : int
        How many elements each lane of the function of lanes has; 0: there is no such function.
    """

    def __init__(self, plan: BodyPlan, folds: Sequence[Fold]) -> None:
        self.plan, self.folds = plan, tuple(folds)
        self.ways = 0
        one_by_one = any(fold.one_by_one for fold in folds)
        if plan.light and not one_by_one:
            self.ways = 1 if plan.stores or plan.lines > FEW_LINES else WAYS
        self._in_parts = one_by_one or any(fold.has_error for fold in self.folds)

    def functions(self) -> list[KernelFunction]:
        """Return the functions that add up parts of rows, and whole results."""
        plan, folds = self.plan, self.folds
        to_totals, counts = self._at_once()
        first = self._rows(to_totals, True) if to_totals else []
        rows = [line for count in counts for line in self._rows(count)]
        start = [line for fold in folds for line in fold.start()]
        flush = [line for fold in folds for line in fold.flush()]
        inner: list[Statement] = [*start, *rows, *flush]
        if first:
            inner = [*first, If(IndexOp("!=", (R, END)), tuple(inner))]
        size: Index = PART if self._in_parts else 0
        if size and to_totals not in (0, PART):
            size = IndexOp("choose", (_MANY, to_totals, PART))
        declared = [*plan.buffers(), *(line for fold in folds for line in fold.declare())]
        body = (*declared, *_portions(size, inner))
        once = len(counts) > 1 and folds[0].is_extreme
        return [
            KernelFunction(f"rows{plan.number}", BOTH, body, True),
            *versions(plan.number, bool(plan.singles), once),
        ]

    def _at_once(self) -> tuple[int, list[int]]:
        """Return how many rows are read at once and added to the totals (0: none), and how many to
        a part.
        """
        plan, folds = self.plan, self.folds
        alone = len(folds) == 1 or all(fold.adds for fold in folds)
        if not self.ways or plan.stores or not alone:
            return 0, [1]
        compared = any(fold.is_extreme for fold in folds)
        arrays = max(1, len(plan.read_in_order))
        more = (ROWS_COMPARED if compared else MORE_ROWS) // arrays
        if plan.lines > FEW_LINES or more <= ROWS_AT_ONCE:
            return 0, [ROWS_AT_ONCE, 1]
        return (0, [more, 1]) if compared else (more, [ROWS_AT_ONCE, 1])

    def _rows(self, count: int, to_totals: bool = False) -> list[Statement]:
        """Return the loop over rows, ``count`` at once, which are joined to a part or, if
        ``to_totals``, to the totals.
        """
        endings = [f"_{row}" for row in range(count)] if count > 1 else [""]
        ahead = [x for row, s in enumerate(endings) for x in self.plan.row(plus(R, row), s)]
        work = *_added_lanes(self._folded(endings, to_totals=to_totals)), *self._scattered(endings)
        spare = count > 1 and any(fold.compares for fold in self.folds)
        if to_totals:  # the rows are a whole part, or their order does not matter
            spare = self._in_parts or all(fold.is_exact for fold in self.folds)
        condition = _MANY if to_totals else None
        return [Loop(Kind.REDUCE, "r", None, END, (*ahead, *work), count, True, condition, spare)]

    def _scattered(self, endings: Sequence[str]) -> list[Statement]:
        return [line for ending in endings for line in self.plan.scattered(N, ending)]

    def _folded(
        self, endings: Sequence[str], across: bool | None = None, to_totals: bool = False
    ) -> list[Statement]:
        """Return the loop body for several elements at once, whose values have these ``endings``.
        """
        found = [line for ending in endings for line in self.plan.lane(ending, across)]
        for fold in self.folds:
            found += fold.fold([fold.element(ending) for ending in endings], to_totals)
        return found + [line for ending in endings for line in self.plan.writes(ending)]

    # -- lanes: as many as stay in registers, and rows of some elements for each. So one comparison
    # finds NaN in two elements, and one dependency chain is shared by all elements that are joined
    # before they are added to the lane.

    def lanes(self, arrays: int) -> KernelFunction:
        """Return the function from initial totals to results, for a kernel with ``arrays`` arrays.
        """
        folds, number = self.folds, self.plan.number
        sums = [fold for fold in folds if fold.has_error]
        others = [fold for fold in folds if not fold.has_error]
        # The rounding error of a sum grows with the rows of a part, and then with the number of
        # parts.
        begin = [line for fold in sums for line in fold.start()]
        join = [line for fold in sums for line in fold.join()]
        n = parts_of_one(folds, self.ways) // self.ways
        first = [line for fold in folds for line in fold.declare(n)]
        first += [line for fold in others for line in fold.start()]
        first += [line for fold in sums for line in fold.start("q", n)]
        parts = [*((fold, "p") for fold in others), *((fold, "q") for fold in sums)]
        finish = FunctionCall(f"finish{number // 2}", (N, 1), ("data",))
        section = FunctionCall(f"body{number + 1}", (1, 1), ("data", "next"))
        one = (
            *first,
            *_portions(PART if sums else 0, [*begin, *self._whole_rows(), *join]),
            If(REST, (*begin, *self._left_over(), *join)),
            If(
                Var("added"),
                tuple(line for fold, part in parts for line in fold.flush(part)),
                (*(line for fold, part in parts for line in fold.keep(part)), finish, section),
            ),
            MoveTable("data", "next", arrays),
        )
        body = (
            Define("n", n, True),
            CopyTable("data", "given", arrays),
            *self.plan.buffers(),
            Loop(Kind.SERIAL, "c", 0, Var("count"), one),
        )
        once = self.ways > 1 and any(fold.compares for fold in folds)
        return KernelFunction(f"lanes{number}", LANES, body, once=once)

    def _whole_rows(self) -> list[Statement]:
        """Return the loops over the whole rows of a part."""
        endings = [f"_{way}" for way in range(self.ways)]
        ahead = [x for i, way in enumerate(endings) for x in self._row(way, R, times(i, N))]
        work = *_added_lanes(self._folded(endings, True)), *self._scattered(endings)
        return [Loop(Kind.REDUCE, "r", None, END, (*ahead, *work))]

    def _left_over(self) -> list[Statement]:
        """Return the loops over the elements after the last whole row, one for each lane at a time;
        the last time for some lanes.
        """
        folds, ahead = self.folds, self._row("", ROWS_HERE, FIRST)
        found: list[Statement] = [Counter("first", 0)]
        if self.ways > 1:
            one = _added_lanes(self._folded([""], True))
            whole = Loop(Kind.REDUCE, "first", None, REST, (*ahead, *one), N, True, spare=True)
            found.append(whole)
        elements, results = zip(*(fold.guarded() for fold in folds), strict=True)
        there = (*self.plan.lane("", True), *self.plan.writes())
        guard = Guard(IndexOp("<", (plus(FIRST, Var("i")), REST)), there, results)
        some = [x for fold, e in zip(folds, elements, strict=True) for x in fold.fold([e])]
        left = IndexOp("min", (N, IndexOp("-", (REST, FIRST))))
        work = lanes_of([guard, *some]), *self.plan.scattered(left)
        return [*found, Loop(Kind.REDUCE, "first", None, REST, (*ahead, *work), N)]

    def _row(self, ending: str, row: Index, further: Index) -> list[Statement]:
        """Return pointers to elements ``further`` in a row, and its numbers; prefetches come early.
        """
        plan = self.plan
        asked = [Prefetch(f"a{a}{ending}", N) for a in sorted(set(plan.read_in_order))]
        return [*plan.row(row, ending, further), *asked]


def _portions(size: Index, inner: Sequence[Statement]) -> list[Statement]:
    """Return the loop over all rows, in portions of ``size``, or in one if it is 0."""
    named: list[Statement] = []
    if not isinstance(size, int):
        named, size = [Define("size", size)], Var("size")
    here: Index = (
        IndexOp("min", (ROWS_HERE, IndexOp("+", (Var("part"), size)))) if size else ROWS_HERE
    )
    body = (Counter("r", Var("part")), Define("end", here), *inner)
    return [*named, Loop(Kind.REDUCE, "part", 0, ROWS_HERE, body, size or ROWS_HERE)]


def _added_lanes(body: Sequence[Statement]) -> list[Statement]:
    """Return the loop over all lanes of a pass. If it adds up floats, it reads truths from arrays
    of wider numbers, into which they are copied first: a C compiler makes a vector of as many
    elements as fit of the narrowest type, of truths more than a row of accumulators has. Where
    truths are only counted, making them wider costs more.
    """
    sums = [s.value for s in body if isinstance(s, Set) and s.index == I]
    if not any(np.dtype(value.dtype).kind in "fc" for value in sums):
        return [lanes_of(body)]
    loads = [s.value for s in body if isinstance(s, Let) and isinstance(s.value, Load)]
    others = {x.pointer for x in loads if x.index != I}
    truths = {x.pointer for x in loads if x.dtype == "bool" and x.index == I} - others
    found: list[Statement] = []
    for name in sorted(truths):
        wide = Set(f"wide_{name}", I, Convert(Load(name, I, "bool"), WIDE))
        found += [Accumulators(f"wide_{name}", WIDE), lanes_of([wide], Kind.INDEPENDENT)]
    return [*found, lanes_of([_read_wide(s, truths) for s in body])]


def _read_wide(s: Statement, truths: Collection[str]) -> Statement:
    """Return a statement, which defines a truth by its wider number if it loaded it."""
    if isinstance(s, Let) and isinstance(s.value, Load) and s.value.pointer in truths:
        return Let(s.name, Convert(Get(f"wide_{s.value.pointer}", I, WIDE), "bool"))
    return s
