"""Formulas that reduce, on cards.

Who makes a result: a thread alone, where elements of neighbouring results are neighbours or there
are few elements; else a block, whose threads' totals are joined, those of a warp first. A block
makes several results at once of not many elements: of many results each by some lanes of a warp,
without barriers; of few results whose elements are neighbours, each by a thread of every group of
its threads. Where there are too few results for a card, each pass is cut in chunks: one kernel
leaves totals of chunks, another, by teams again, joins them, and computes what follows. Nothing is
added up in an order that depends on time, unless `config.gpu_atomics` lets chunks add their sums to
results themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cpu.bodies import BodyPlan
from symcomp.codegen.cuda.elementwise import total, unravel
from symcomp.codegen.cuda.folds import THREAD, ThreadFold
from symcomp.codegen.cuda.held import holding_passes, passes_of, words_held
from symcomp.codegen.cuda.text import ADDED, WARP, CudaKernel, print_function
from symcomp.codegen.loopir.expressions import Get, Index, IndexOp, Load, Stride, Var, plus
from symcomp.codegen.loopir.ir import (
    Accumulators,
    AddTo,
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
from symcomp.core.record import record
from symcomp.ops.formulas.formula import Formula

# Threads of a block where threads work alone.
ALONE = 128
# How many elements a thread may hold: few numbers, as there is a kernel for each.
HELD = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# The threads, and at most the blocks, that a multiprocessor runs at once where they hold elements;
# half as many threads where these are float64, which take two registers each.
TOGETHER, MOST_TOGETHER = 1024, 16
O, J, K = Var("o"), Var("j"), Var("k")


@record
class ReductionShape:
    """The numbers of axes after joining, and the threads that add up a result.

    Attributes
    ----------
    kept, reduced : int
        At least 1.
    threads : int
        That make a result: of a block, or lanes of a warp; 0: each thread makes one.
    wide : bool
        Whether integers have 64 bits.
    held : int
        How many elements of a result each thread of a block holds in registers between passes; 0:
        every pass reads its elements from memory.
    dense : bool
        Whether the elements of a result are neighbours in all arrays that have them.
    together : int
        How many results a block makes at once, each by lanes of a warp; 1: a block makes one.
    across : bool
        Whether neighbouring threads of a block make neighbouring results.
    """

    kept: int
    reduced: int
    threads: int
    wide: bool
    held: int = 0
    dense: bool = False
    together: int = 1
    across: bool = False


def whole(nest: Nest, shape: ReductionShape) -> CudaKernel:
    """Return the kernel that makes results from their beginning to their end."""
    return _Writer(nest, shape, False).whole()


def part(nest: Nest, shape: ReductionShape, stage: int) -> CudaKernel:
    """Return the kernel that leaves the totals of chunks of the elements, of one pass."""
    return _Writer(nest, shape, True).part(stage)


def added(nest: Nest, shape: ReductionShape) -> CudaKernel:
    """Return the kernel that adds the totals of chunks to results, which are 0 before, in any order
    of the chunks.
    """
    return _Writer(nest, shape, False).added()


def can_be_added(nest: Nest) -> bool:
    """Tell whether the results are sums alone, of dtypes that atomics add."""
    formula = nest.formula
    if stages_of(nest) > 1 or nest.bodies[1].steps:
        return False
    folds = [ThreadFold(nest, value) for value in nest.bodies[0].folds]
    stored = {value for value, _ in nest.bodies[1].stores}
    return stored == set(nest.totals) and all(
        fold.name == "sum" and fold.work == formula.dtypes[fold.number] in ADDED for fold in folds
    )


def finish(nest: Nest, shape: ReductionShape, stage: int) -> CudaKernel:
    """Return the kernel that joins the totals of chunks, and computes what follows the pass."""
    return _Writer(nest, shape, True).finish(stage)


@cache
def kernel_of(
    formula: Formula,
    patterns: tuple[Pattern, ...],
    which: str,
    shape: ReductionShape,
    stage: int = 0,
) -> CudaKernel:
    """Return a kernel of the nest of a formula.

    Parameters
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        Of its inputs.
    which : {"whole", "part", "finish", "added"}
        See the functions of these names.
    shape : ReductionShape
    stage : int
    """
    nest = nest_of(formula, patterns)
    assert nest is not None
    if which in ("whole", "added"):
        return (whole if which == "whole" else added)(nest, shape)
    return (part if which == "part" else finish)(nest, shape, stage)


def stages_of(nest: Nest) -> int:
    """Return how many passes there are over the elements."""
    return len(nest.bodies) // 2


def held_for(count: int, threads: int) -> int:
    """Return how many elements each thread of a block can hold, of ``count`` that a result has."""
    each = -(-count // threads)
    return next((held for held in HELD if held >= each), HELD[-1] + 1)


def surely_held(held: int) -> int:
    """Return how many of ``held`` elements every thread of a block has."""
    return max((fewer for fewer in HELD if fewer < held), default=0)


@cache
def words_between_passes(formula: Formula, patterns: tuple[Pattern, ...]) -> int:
    """Return how many registers each element takes that is held between the passes of a nest."""
    nest = nest_of(formula, patterns)
    assert nest is not None
    return words_held([BodyPlan(nest, n, body) for n, body in enumerate(nest.bodies)][::2])


class _Writer:
    """Statements of a nest.

    Values of which there is one for each result are ``w`` of each thread, or, where kernels leave
    them for others, in temporaries.
    """

    def __init__(self, nest: Nest, shape: ReductionShape, split: bool) -> None:
        self.nest, self.shape, self.split = nest, shape, split
        self.plans = [BodyPlan(nest, number, body) for number, body in enumerate(nest.bodies)]
        self.folds = {value: ThreadFold(nest, value) for value in nest.totals}
        self.arrays = len(nest.stretched)
        self.literals = nest.temporaries - self.arrays
        self.team = shape.threads > 0
        assert shape.together == 1 or (shape.threads <= WARP and not split)
        self.in_lanes = shape.together > 1 and not shape.across
        #: Arrays with an element for each that a reduction adds up.
        self.moving = {a for plan in self.plans[::2] for a in plan.moving}
        self.passes = (holding_passes if shape.held else passes_of)(self.plans[::2])

    # -- kernels

    def whole(self) -> CudaKernel:
        body = self._kept_axes()
        body += [f for fold in self.folds.values() for f in fold.declare(False)]
        if self.team and not self.in_lanes:
            threads = self.shape.threads * self.shape.together if self.shape.across else None
            body += [f for fold in self.folds.values() for f in fold.declare(True, threads)]
        values = self.nest.values
        dtypes = self.nest.formula.dtypes
        body += [Accumulators(f"w{v}", dtypes[v]) for v in values]
        held = [v for one in self.passes for v in one.held]
        body += [Accumulators(f"held{v}", dtypes[v], lanes=self.shape.held) for v in held]
        for stage in range(stages_of(self.nest)):
            folds = self._folds(stage)
            pass_ = [x for fold in folds for x in fold.start()] + self._pass(stage, 0, Var("count"))
            after = [*self._finished(folds), *self._section(stage)]
            if self.shape.across:
                start = [x for fold in folds for x in fold.start()]
                body += self._tile(start, self._pass(stage, 0, Var("count")), folds, after)
            elif self.in_lanes:
                joined = [x for fold in folds for x in fold.join_lanes(self.shape.threads)]
                body += [If(1, (*pass_, *joined)), If(1, tuple(after))]
            elif self.team:
                share = [x for fold in folds for x in fold.share()]
                body.append(self._by_all([*pass_, *share]))
                take = [x for fold in folds for x in fold.take(self.shape.threads)]
                if take or after:
                    body.append(self._by_all([*take, *after]))
            else:
                # A scope of its own: values of stages have the same names.
                body += [*pass_, If(1, tuple(after))]
        return self._kernel(body, "results", ("results", "count"))

    def _tile(
        self,
        start: Sequence[Statement],
        pass_: Sequence[Statement],
        folds: Sequence[ThreadFold],
        after: Sequence[Statement],
    ) -> list[Statement]:
        """Return a stage of the results of a tile, each by a thread of each group."""
        together, column = self.shape.together, Var("column")
        is_result = IndexOp("<", (O, Var("results")))
        at = plus(IndexOp("*", (THREAD, together)), column)
        put = [x for fold in folds for x in fold.put(at)]
        found: list[Statement] = [self._by_all([*start, Guard(is_result, tuple(pass_)), *put])]
        half = self.shape.threads // 2
        while folds and half:
            joined = [x for fold in folds for x in fold.join_from(plus(at, half * together))]
            is_joined = IndexOp("<", (THREAD, half))
            found.append(self._by_all([Guard(is_joined, (*joined, *put))]))
            half //= 2
        take = [x for fold in folds for x in fold.take_from(column)]
        return [*found, self._by_all([*take, Guard(is_result, tuple(after))])]

    def part(self, stage: int) -> CudaKernel:
        return self._of_chunks(stage, [x for fold in self._folds(stage) for x in self._leave(fold)])

    def added(self) -> CudaKernel:
        leave: list[Statement] = []
        for value, array in self.plans[1].stores:
            total = self.folds[value].finished()
            leave += [self._single(array, True), AddTo(f"a{array}", 0, total)]
        return self._of_chunks(0, leave)

    def _of_chunks(self, stage: int, leave: Sequence[Statement]) -> CudaKernel:
        """Return the kernel that adds up chunks, and does something with their totals."""
        folds = self._folds(stage)
        body: list[Statement] = [
            Define("o", IndexOp("%", (Var("w"), Var("results")))),
            Define("first", IndexOp("*", (IndexOp("//", (Var("w"), Var("results"))), Var("size")))),
            Define("last", IndexOp("min", (Var("count"), plus(Var("first"), Var("size"))))),
            *self._kept_axes(),
            *(x for fold in folds for x in fold.declare(False)),
        ]
        pass_ = [x for fold in folds for x in fold.start()]
        pass_ += self._pass(stage, Var("first"), Var("last"))
        if self.team:
            body += [x for fold in folds for x in fold.declare(True)]
            share = [x for fold in folds for x in fold.share()]
            body.append(self._by_all([*pass_, *share]))
            take = [x for fold in folds for x in fold.take(self.shape.threads)]
            first = Guard(IndexOp("==", (THREAD, 0)), tuple(leave))
            body.append(self._by_all([*take, first]))
        else:
            body += [*pass_, *leave]
        return self._kernel(body, IndexOp("*", (Var("results"), Var("chunks"))),
                            ("results", "count", "chunks", "size"), "w")  # fmt: skip

    def finish(self, stage: int) -> CudaKernel:
        folds = self._folds(stage)
        self.team = self.team and bool(folds)
        body = self._kept_axes()
        body += [x for fold in folds for x in fold.declare(False)]
        pass_ = [x for fold in folds for x in fold.start()]
        if folds:
            pass_.append(self._join_chunks(folds))
        after = [*self._finished(folds), *self._section(stage)]
        if self.team:
            body += [x for fold in folds for x in fold.declare(True)]
            share = [x for fold in folds for x in fold.share()]
            body.append(self._by_all([*pass_, *share]))
            take = [x for fold in folds for x in fold.take(self.shape.threads)]
            first = Guard(IndexOp("==", (THREAD, 0)), tuple(after))
            body.append(self._by_all([*take, first]))
        else:
            body += [*pass_, *after]
        return self._kernel(body, "results", ("results", "count", "chunks", "size"))

    def _join_chunks(self, folds: Sequence[ThreadFold]) -> Loop:
        """Add the totals of chunks to those of a thread: of all, or of its share in a team."""
        at = plus(O, IndexOp("*", (Var("c"), Var("results"))))
        chunk = tuple(x for fold in folds for x in self._fetch(fold, at))
        if not self.team:
            return Loop(Kind.REDUCE, "c", 0, Var("chunks"), chunk)
        guard = Guard(IndexOp("<", (Var("c"), Var("chunks"))), chunk)
        body = (Define("c", plus(K, THREAD)), guard)
        return Loop(Kind.REDUCE, "k", 0, Var("chunks"), body, self.shape.threads)

    def _kernel(
        self, body: Sequence[Statement], stop: Index | str, numbers: tuple[str, ...], i: str = "o"
    ) -> CudaKernel:
        shape, together = self.shape, self.shape.together
        kind = Kind.LANES if self.in_lanes else Kind.COLUMNS if shape.across else Kind.GRID
        kind = kind if self.team else Kind.THREAD
        to = Var(stop) if isinstance(stop, str) else stop
        loop = Loop(kind, i, 0, to, tuple(body))
        rank = self.shape.kept + self.shape.reduced
        lengths = [f"m{a}" for a in range(1, self.shape.kept)]
        lengths += [f"r{a}" for a in range(1, self.shape.reduced)]
        rows = tuple(f"step{axis}" for axis in range(rank))
        signature = Signature((*numbers, *lengths), ("data", "literals"), rows)
        arrays = len(self.nest.dtypes) - self.literals if self.split else self.arrays
        threads = self.shape.threads * together if self.team else ALONE
        function = KernelFunction("results", signature, (loop,))
        blocks = 1
        if self.shape.held:
            blocks = max(1, min(MOST_TOGETHER, self._most_threads() // threads))
        return print_function(
            function, arrays, self.literals, threads, shape.wide, blocks,
            shape.threads if self.in_lanes else WARP, together if shape.across else 1,
        )  # fmt: skip

    def _most_threads(self) -> int:
        """Return how many threads a multiprocessor has to have registers for."""
        dtypes = self.nest.formula.dtypes
        sizes = [np.dtype(dtypes[v]).itemsize for one in self.passes for v in one.held]
        return TOGETHER // 2 if max(sizes, default=0) > 4 else TOGETHER

    def _by_all(self, body: Sequence[Statement]) -> Loop:
        return Loop(Kind.BLOCK, "t", 0, self.shape.threads, tuple(body))

    # -- places

    def _place(self, array: int) -> tuple[str, int]:
        """Return the table of an array and its number there; literals have a table of their own."""
        if self.arrays <= array < self.nest.temporaries:
            return "literals", array - self.arrays
        return "data", array - self.literals if array >= self.nest.temporaries else array

    def _kept_axes(self) -> list[Statement]:
        """Define the positions of result o, and its offset in each array."""
        kept = self.shape.kept
        found = unravel("o", [Var(f"m{a}") for a in range(kept)], "h")
        for array in range(self.arrays):
            terms = [
                IndexOp("*", (Var(f"h{a}"), Stride(array, a, f"step{a}"))) for a in range(kept)
            ]
            found.append(Define(f"base{array}", total(terms)))
        return found

    def _element(self, array: int, writes: bool) -> Pointer:
        """Return the pointer to element j of the result in an input or output, or to a literal."""
        dtype = self.nest.dtypes[array]
        table, place = self._place(array)
        if table == "literals":
            return Pointer(f"a{array}", dtype, place, 0, 0, False, table)
        if self.shape.dense:
            return Pointer(f"a{array}", dtype, place, Var(f"base{array}"), 0, writes)
        kept = self.shape.kept
        axes = [(f"g{a}", f"step{kept + a}") for a in range(self.shape.reduced)]
        terms = [IndexOp("*", (Var(g), Stride(array, 0, row))) for g, row in axes]
        return Pointer(f"a{array}", dtype, place, total([Var(f"base{array}"), *terms]), 0, writes)

    def _further(self, array: int) -> Index:
        """Return which element is that of j, from the pointer on."""
        moves = self.shape.dense and array in self.moving
        return J if moves else 0

    def _single(self, array: int, writes: bool) -> Pointer:
        """Return the pointer to the number of the result in an input or output, or to a literal."""
        table, place = self._place(array)
        at = 0 if table == "literals" else Var(f"base{array}")
        return Pointer(f"a{array}", self.nest.dtypes[array], place, at, 0, writes, table)

    def _temporary(self, name: str, array: int, at: Index, writes: bool) -> Pointer:
        _, place = self._place(array)
        return Pointer(name, self.nest.dtypes[array], place, 0, at, writes)

    # -- passes

    def _folds(self, stage: int) -> list[ThreadFold]:
        return [self.folds[v] for v in self.plans[2 * stage].body.folds]

    def _pass(self, stage: int, first: Index, last: Index) -> list[Statement]:
        """Pass over elements ``first`` to ``last`` of a result."""
        plan, one = self.plans[2 * stage], self.passes[stage]
        if not plan.body.folds and not one.stores:
            return []
        written = [a for _, a in one.stores if a < self.nest.temporaries]
        read = [a for _, a in (*plan.numbers, *one.elements) if a not in written]
        pointers = [self._element(a, True) for a in written]
        pointers += [self._element(a, False) for a in read if a < self.nest.temporaries]
        dtypes = self.nest.formula.dtypes
        inner: list[Statement] = [*self._loads((*plan.numbers, *one.elements), plan)]
        inner += [Let(f"v{v}", Get(f"held{v}", K, dtypes[v])) for v in one.taken]
        inner += [plan.step(value) for value in one.steps]
        inner += [Set(f"held{v}", K, plan.ref(v)) for v in one.held]
        inner += [x for fold in self._folds(stage) for x in fold.add()]
        inner += [Store(f"a{a}", self._further(a), plan.ref(v)) for v, a in one.stores]
        if self.shape.dense:
            return [*pointers, *self._elements(first, last, inner)]
        lengths = [Var(f"r{a}") for a in range(self.shape.reduced)]
        return self._elements(first, last, [*unravel("j", lengths, "g"), *pointers, *inner])

    def _elements(self, first: Index, last: Index, body: Sequence[Statement]) -> list[Statement]:
        """Return the loop over elements j, of all for a thread alone, else of its share."""
        threads, held = self.shape.threads, self.shape.held
        if not self.team:
            return [Loop(Kind.REDUCE, "j", first, last, tuple(body))]
        guard = Guard(IndexOp("<", (J, last)), tuple(body))
        if not held:
            share = (Define("j", plus(K, THREAD)), guard)
            return [Loop(Kind.REDUCE, "k", first, last, share, threads)]
        at = Define("j", plus(IndexOp("*", (K, threads)), THREAD))
        sure = surely_held(held)  # elements that each thread has
        return [
            Loop(Kind.UNROLLED, "k", 0, sure, (at, *body)),
            Loop(Kind.UNROLLED, "k", sure, held, (at, guard)),
        ]

    def _loads(self, loads: Sequence[tuple[int, int]], plan: BodyPlan) -> list[Statement]:
        """Define what a body loads: elements, numbers, and values of the result."""
        found: list[Statement] = []
        for value, array in loads:
            if array < self.nest.temporaries:
                number = array in plan.body.numbers
                found.append(plan.load(value, array, 0 if number else self._further(array)))
            elif self.split:
                name, dtype = f"w{value}", self.nest.dtypes[array]
                found.append(self._temporary(name, array, O, False))
                found.append(Let(f"v{value}", Load(name, 0, dtype)))
            else:
                found.append(Let(f"v{value}", Get(f"w{value}", 0, self.nest.dtypes[array])))
        return found

    def _finished(self, folds: Sequence[ThreadFold]) -> list[Statement]:
        """Results of reductions, where later passes find them."""
        return [x for f in folds for x in self._keep(f"{f.number}", f.number, f.finished())]

    def _keep(self, name: str, value: int, what: object) -> list[Statement]:
        found: Statement
        if not self.split:
            return [Set(f"w{value}", 0, what)]  # type: ignore[arg-type]
        pointer = self._temporary(f"k{name}", self.nest.values[value], O, True)
        found = Store(f"k{name}", 0, what)  # type: ignore[arg-type]
        return [pointer, found]

    def _section(self, stage: int) -> list[Statement]:
        """Compute values of the result from its totals."""
        plan = self.plans[2 * stage + 1]
        found: list[Statement] = [
            self._single(a, w) for a, w in plan.pointers if a < self.nest.temporaries
        ]
        found += self._loads((*plan.numbers, *plan.elements), plan)
        found += [plan.step(value) for value in plan.steps]
        for value, array in plan.stores:
            if array >= self.nest.temporaries:
                found += self._keep(f"{value}", value, plan.ref(value))
            else:
                store = Store(f"a{array}", 0, plan.ref(value))
                guarded = self.team and not self.split  # else the first thread alone is there
                found.append(Guard(IndexOp("==", (THREAD, 0)), (store,)) if guarded else store)
        return found

    # -- totals in temporaries

    def _leave(self, fold: ThreadFold) -> list[Statement]:
        found: list[Statement] = []
        for letter, array in zip(fold.letters, fold.arrays, strict=False):
            name = f"{letter}k{fold.number}"
            found.append(self._temporary(name, array, Var("w"), True))
            value = Get(f"{letter}{fold.number}", 0, fold.work)
            found.append(Store(name, 0, value))
        return found

    def _fetch(self, fold: ThreadFold, at: Index) -> list[Statement]:
        found: list[Statement] = []
        loads = []
        for letter, array in zip(fold.letters, fold.arrays, strict=False):
            name = f"{letter}k{fold.number}"
            found.append(self._temporary(name, array, at, False))
            loads.append(Load(name, 0, fold.work))
        return [*found, *fold.merge(loads[0], loads[1] if len(loads) > 1 else None)]
