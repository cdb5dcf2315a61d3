"""Reductions as statements: joining elements to accumulators, and turning accumulators into
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from symcomp.codegen.cpu.bodies import I, N, lanes_of
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    Convert,
    Get,
    Index,
    IndexOp,
    Primitive,
    Ref,
    Start,
    Value,
    Var,
    ZeroOrOne,
    plus,
)
from symcomp.codegen.loopir.ir import (
    BEGIN,
    FINISH,
    MERGE,
    Accumulators,
    If,
    KernelFunction,
    Kind,
    Let,
    Loop,
    MergeSums,
    Pointer,
    Quarters,
    Set,
    Statement,
    Store,
)
from symcomp.codegen.loops.nests import Nest, work_dtype

# Accumulators for parts of one result, side by side: they fill PARTS_BYTES bytes, which stay in
# registers, but number at least FEWEST and at most MOST elements.
PARTS_BYTES, FEWEST, MOST = 128, 32, 256
# Rows that are added at once if elements are cheap: the part is loaded less often.
ROWS_AT_ONCE = 4
_MERGED = ("float32", "float64")


class Fold:
    """A reduction of a nest: value ``number`` of its formula.

    Its accumulators are ``t``, the totals, and ``p``, those of a part of the rows; ``e`` holds
    rounding errors of totals, or NaN where an extreme has met one, and ``u`` NaN of the part.

    Attributes
    ----------
    number : int
    name : str
        The name of the reduction.
    argument : int
        The value that it reduces.
    work : str
        The dtype that it computes in.
    one_by_one : bool
        Whether elements are joined to a lane one by one.
    arrays : tuple of int
        The arrays of totals, of their errors or NaN, and of results.
    """

    one_by_one = False

    def __init__(self, nest: Nest, number: int) -> None:
        formula = nest.formula
        step = formula.steps[number - formula.first_step]
        reduction = getattr(step.function, "reduction", None)
        self.number, self.argument = number, step.arguments[0]
        self.name = "" if reduction is None else reduction.name
        self.work = work_dtype(formula, number)
        self._given, self._dtype = formula.dtypes[self.argument], step.dtype
        self.arrays = (*nest.totals[number], nest.values[number])

    @property
    def has_error(self) -> bool:
        """True if rounding errors of totals are kept: for sums of floats."""
        return self.name == "sum" and np.dtype(self.work).kind in "fc"

    @property
    def compares(self) -> bool:
        """True if it selects elements, and so may read them twice."""
        return self.name in ("max", "min")

    @property
    def is_extreme(self) -> bool:
        """True for extremes of floats: comparisons ignore NaN, so it is recorded separately."""
        return self.compares and np.dtype(self.work).kind == "f"

    @property
    def is_pair(self) -> bool:
        """True if there is a second accumulator beside totals: for rounding errors, or for NaN."""
        return self.has_error or self.is_extreme

    @property
    def is_exact(self) -> bool:
        """True for integers and truths, which are never rounded."""
        return np.dtype(self.work).kind in "biu"

    @property
    def adds(self) -> bool:
        """True for sums and products."""
        return self.name in ("sum", "prod")

    # -- in passes

    def declare(self, lanes: int | None = None) -> list[Statement]:
        """Declare the accumulators of a function, its own with as many ``lanes``, if given."""
        found = [self._kept("t", 0), self._own("p", lanes)]
        found += [self._own("u", lanes)] if self.is_extreme else []
        return [*found, *([self._kept("e", 1)] if self.is_pair else [])]

    def start(self, part: str = "p", lanes: int | None = None) -> list[Statement]:
        """Initialize a part; ``q`` is declared here."""
        found: list[Statement] = [self._own("q", lanes)] if part == "q" else []
        found.append(_each(self._set(part, I, Start(self.name, self.work))))
        if self.is_extreme:
            found.append(_each(self._set("u", I, self._zero)))
        return found

    def element(self, ending: str = "") -> Value:
        """Return an element to be reduced, in the dtype of the accumulator."""
        value = Ref(f"v{self.argument}{ending}", self._given)
        return value if self._given == self.work else Convert(value, self.work)

    def guarded(self) -> tuple[Ref, tuple[str, Value, Value]]:
        """Return an element that may be absent, with its neutral value; and its definition."""
        ref = Ref(f"x{self.number}", self.work)
        return ref, (ref.name, self.element(), Start(self.name, self.work))

    def fold(self, elements: Sequence[Value], to_totals: bool = False) -> list[Statement]:
        """Join elements in pairs, and these to the part; if ``to_totals``, to the total, in the
        order of a part that gets ROWS_AT_ONCE elements at once, and then the others one by one.
        """
        if len(elements) == 1 and not self.is_extreme:
            return [self._set("p", I, self._join(self._get("p"), elements[0]))]
        refs = [Ref(f"w{self.number}_{row}", self.work) for row in range(len(elements))]
        found: list[Statement] = [Let(x.name, e) for x, e in zip(refs, elements, strict=True)]
        if self.is_extreme:
            # One test finds NaN in two elements.
            pairs = zip(refs[::2], [*refs[1::2], refs[-1]], strict=False)
            marks = [Primitive("mark", (x, y, self._get("u")), self.work) for x, y in pairs]
            found += [self._set("u", I, mark) for mark in marks]
        joined: list[Statement] = []

        def join(x: Value, y: Value) -> Value:
            ref = Ref(f"j{self.number}_{len(joined)}", self.work)
            joined.append(Let(ref.name, self._join(x, y)))
            return ref

        def in_pairs(values: Sequence[Value]) -> Value:
            while len(values) > 1:
                x, y, *others = values
                values = [*others, join(x, y)]
            return values[0]

        whole = len(refs) // ROWS_AT_ONCE * ROWS_AT_ONCE
        groups = [refs[i : i + ROWS_AT_ONCE] for i in range(0, whole, ROWS_AT_ONCE)]
        groups += [[x] for x in refs[whole:]]
        total = reduce(join, map(in_pairs, groups)) if to_totals else in_pairs(refs)
        found += joined
        if to_totals:
            return [*found, *self._add(total)]
        return [*found, self._set("p", I, self._join(self._get("p"), total))]

    def flush(self, part: str = "p") -> list[Statement]:
        """Add parts to totals."""
        body = self._add(self._get(part))
        if self.is_extreme:
            body.append(self._set("e", I, Accumulate("sum", self._get("e"), self._get("u"))))
        return [_each(*body)]

    def _add(self, x: Value) -> list[Statement]:
        """Add to a total; sums of floats keep the rounding error."""
        total = self._get("t")
        if not self.has_error:
            return [self._set("t", I, self._join(total, x))]
        s = Ref(f"s{self.number}", self.work)
        lost = Primitive("rounding", (total, x, s), self.work)
        return [
            Let(s.name, self._join(total, x)),
            self._set("e", I, Accumulate("sum", self._get("e"), lost)),
            self._set("t", I, s),
        ]

    def keep(self, part: str = "p") -> list[Statement]:
        """Use the parts themselves as totals."""
        found: list[Statement] = [_each(self._set("t", I, self._get(part)))]
        if self.is_pair:
            second = self._get("u") if self.is_extreme else self._zero
            found.append(_each(self._set("e", I, second)))
        return found

    def join(self) -> list[Statement]:
        """Add a part to the totals."""
        return [_each(self._set("q", I, self._join(self._get("q"), self._get("p"))))]

    # -- in functions of totals

    def begin(self) -> list[Statement]:
        """Initialize the totals."""
        found: list[Statement] = [self._kept("t", 0)]
        found.append(_each(self._set("t", I, Start(self.name, self.work))))
        if self.is_pair:
            found += [self._kept("e", 1), _each(self._set("e", I, self._zero))]
        return found

    def merge(self) -> list[Statement]:
        """Add totals of other elements to these."""
        total, error, _ = self.arrays
        if self.has_error and self.work in _MERGED:
            arrays = (("data", total), ("data", error), ("other", total), ("other", error))
            return [MergeSums(self.work, arrays)]
        found: list[Statement] = [self._kept("t", 0)]
        found += [self._kept("e", 1)] if self.is_pair else []
        found.append(self._kept("p", 0, "other"))
        if self.is_pair:
            found.append(self._kept("u" if self.is_extreme else "f", 1, "other"))
        found += self.flush()
        if self.has_error:
            more = Accumulate("sum", self._get("e"), self._get("f"))
            found.append(_each(self._set("e", I, more)))
        return found

    def finish(self, parts: int) -> list[Statement]:
        """Make results of totals; parts of one result are added up, usually ``parts`` of them."""
        found: list[Statement] = [self._kept("t", 0)]
        found += [self._kept("e", 1)] if self.is_pair else []
        if self.has_error:
            found.append(
                _each(self._set("t", I, Accumulate("sum", self._get("t"), self._get("e"))))
            )
        joined = [("t", self.name)]
        if self.is_extreme:
            joined.append(("e", "sum"))
        result: Value = self._get("t")
        if self.is_extreme:
            result = Primitive("or_mark", (self._get("e"), result), self.work)
        if self.work != self._dtype:
            result = Convert(result, self._dtype)
        across = Var("across")
        z = f"z{self.number}"
        store = Store(z, I, result)
        return [
            *found,
            Pointer(z, self._dtype, self.arrays[2], writes=True),
            *self._together(joined, parts),
            Loop(Kind.INDEPENDENT, "i", 0, IndexOp("choose", (across, 1, N)), (store,)),
        ]

    def _together(self, joined: Sequence[tuple[str, str]], parts: int) -> list[Statement]:
        """Join n parts, across, in the first of their accumulators; ``parts`` is their usual
        number, 0 if there is none.
        """
        across = Var("across")
        any_number = [x for t, name in joined for x in self._in_quarters(t, name)]
        if not parts:
            return [If(across, tuple(any_number))]
        halves: list[Statement] = []
        half = parts // 2
        while half:
            for t, name in joined:
                other = self._get(t, plus(half, I))
                set_half = self._set(t, I, Accumulate(name, self._get(t), other))
                halves.append(Loop(Kind.INDEPENDENT, "i", 0, half, (set_half,)))
            half //= 2
        condition = IndexOp("and", (across, IndexOp("==", (N, parts))))
        return [If(condition, tuple(halves), (If(across, tuple(any_number)),))]

    def _in_quarters(self, t: str, name: str) -> list[Statement]:
        """Join any number of parts, as four interleaved groups first."""
        s = f"s_{t}{self.number}"
        at = IndexOp("%", (I, 4))

        def get(index: Index) -> Get:
            return Get(s, index, self.work)

        every = Set(s, at, Accumulate(name, get(at), self._get(t)))
        return [
            Quarters(s, name, self.work),
            Loop(Kind.REDUCE, "i", 0, N, (every,)),
            *(Set(s, i, Accumulate(name, get(i), get(i + 2))) for i in range(2)),
            self._set(t, 0, Accumulate(name, get(0), get(1))),
        ]

    # -- names

    @property
    def _zero(self) -> ZeroOrOne:
        return ZeroOrOne(0, self.work)

    def _own(self, letter: str, lanes: int | None) -> Accumulators:
        return Accumulators(f"{letter}{self.number}", self.work, lanes=lanes)

    def _kept(self, letter: str, which: int, table: str = "data") -> Accumulators:
        name = f"{letter}{self.number}"
        return Accumulators(name, self.work, self.arrays[which], table == "data", table)

    def _get(self, letter: str, index: Index = I) -> Get:
        return Get(f"{letter}{self.number}", index, self.work)

    def _set(self, letter: str, index: Index, value: Value) -> Set:
        return Set(f"{letter}{self.number}", index, value)

    def _join(self, total: Value, x: Value) -> Accumulate:
        return Accumulate(self.name, total, x)


def _each(*body: Statement) -> Loop:
    """Return a loop over all lanes; the compiler may vectorize it."""
    return lanes_of(body, Kind.INDEPENDENT)


def parts_of_one(folds: Sequence[Fold], ways: int) -> int:
    """Return how many parts of one result are added up side by side, ``ways`` of them in each lane.
    """
    sizes = [np.dtype(fold.work).itemsize for fold in folds]
    return max(FEWEST, min(MOST, max(1, ways) * PARTS_BYTES // max(sizes)))


def functions_of_totals(number: int, folds: Sequence[Fold], ways: int) -> list[KernelFunction]:
    """Return the functions that initialize totals, add others to them, and make results of them.

    Parameters
    ----------
    number : int
        The number of the stage.
    folds : sequence of Fold
    ways : int
        How many elements each lane has, if there is a function of lanes: it calls the last.
    """
    # With many folds, a specialized number of parts would take long to compile.
    parts = parts_of_one(folds, ways) // max(1, ways) if len(folds) <= 4 else 0
    begin = tuple(line for fold in folds for line in fold.begin())
    merge = tuple(line for fold in folds for line in fold.merge())
    finish = tuple(line for fold in folds for line in fold.finish(parts))
    return [
        KernelFunction(f"begin{number}", BEGIN, begin),
        KernelFunction(f"merge{number}", MERGE, merge),
        KernelFunction(f"finish{number}", FINISH, finish, ways > 1),
    ]
