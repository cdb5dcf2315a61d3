"""Reductions on cards as statements: how a thread adds elements to its totals, and threads theirs.

Totals of a thread are ``t`` and ``e``: the errors of sums of floats, or NaN where an extreme has
met one. Threads of a warp join theirs by reading one another's registers; what warps have together
is ``bt`` and ``be``, which the threads of each warp join in the same way.
"""

from __future__ import annotations

import numpy as np

from symcomp.codegen.cuda.text import WARP
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    Convert,
    FromLane,
    Get,
    Index,
    IndexOp,
    Primitive,
    Ref,
    Start,
    Value,
    Var,
    ZeroOrOne,
)
from symcomp.codegen.loopir.ir import Accumulators, Guard, Kind, Let, Loop, Set, Statement
from symcomp.codegen.loops.nests import Nest, work_dtype
from symcomp.ops.reductions.reduce import Reduce

THREAD = Var("t")


class ThreadFold:
    """A reduction of a nest: value ``number`` of its formula.

    Attributes
    ----------
    number : int
    arrays : tuple of int
        The arrays of totals, and of their errors, that kernels leave for others.
    work : str
        The dtype that it computes in.
    """

    def __init__(self, nest: Nest, number: int) -> None:
        formula = nest.formula
        step = formula.steps[number - formula.first_step]
        assert isinstance(step.function, Reduce)
        self.number, self.argument = number, step.arguments[0]
        self.name, self.work = step.function.reduction.name, work_dtype(formula, number)
        self._given, self._dtype = formula.dtypes[self.argument], step.dtype
        self.arrays = nest.totals[number]

    @property
    def keeps_errors(self) -> bool:
        """Whether it is a sum of floats."""
        return self.name == "sum" and np.dtype(self.work).kind in "fc"

    @property
    def keeps_nan(self) -> bool:
        """Whether it is an extreme of floats, whose comparisons NaN fails."""
        return self.name in ("max", "min") and np.dtype(self.work).kind == "f"

    @property
    def letters(self) -> tuple[str, ...]:
        """The names of the accumulators: totals, and errors or NaN."""
        return ("t", "e") if self.keeps_errors or self.keeps_nan else ("t",)

    def declare(self, block: bool, threads: int | None = None) -> list[Statement]:
        """Declare the accumulators of a thread, or those of a block: of its warps or threads."""
        names = [f"b{letter}" if block else letter for letter in self.letters]
        return [
            Accumulators(f"{n}{self.number}", self.work, lanes=threads, block=block) for n in names
        ]

    def start(self) -> list[Statement]:
        """Set totals to those of no elements."""
        found: list[Statement] = [self._set("t", 0, Start(self.name, self.work))]
        return found + [self._set(x, 0, ZeroOrOne(0, self.work)) for x in self.letters[1:]]

    def add(self) -> list[Statement]:
        """Add the element of the body to the totals of the thread."""
        given: Value = Ref(f"v{self.argument}", self._given)
        x = Ref(f"x{self.number}", self.work)
        value = given if self._given == self.work else Convert(given, self.work)
        found: list[Statement] = [Let(x.name, value)]
        if self.keeps_nan:
            found.append(self._set("e", 0, Primitive("mark", (x, x, self._get("e")), self.work)))
        return found + self._join(x)

    def _join(self, x: Value, ending: str = "") -> list[Statement]:
        if not self.keeps_errors:
            return [self._set("t", 0, Accumulate(self.name, self._get("t"), x))]
        s = Ref(f"s{self.number}{ending}", self.work)
        lost = Primitive("rest", (self._get("t"), x, s), self.work)
        return [
            Let(s.name, Accumulate("sum", self._get("t"), x)),
            self._set("e", 0, Accumulate("sum", self._get("e"), lost)),
            self._set("t", 0, s),
        ]

    def merge(self, total: Value, beside: Value | None) -> list[Statement]:
        """Add totals of other elements to those of the thread."""
        p = Ref(f"p{self.number}", self.work)
        found: list[Statement] = [Let(p.name, total)]
        if beside is not None:
            q = Ref(f"q{self.number}", self.work)
            found.append(Let(q.name, beside))
            other: Value = Accumulate("sum", self._get("e"), q)
            if self.keeps_nan:
                other = Primitive("or_mark", (q, self._get("e")), self.work)
            found.append(self._set("e", 0, other))
        return found + self._join(p, "m")

    def join_lanes(self, lanes: int) -> list[Statement]:
        """Make the totals of neighbouring threads of a warp, together, those of each of them.

        Sums, and what they lose, do not depend on which of two numbers comes first: so all have
        the same bits.
        """
        d = Var("d")
        beside = FromLane(self._get("e"), lanes, d) if len(self.letters) > 1 else None
        joined = self.merge(FromLane(self._get("t"), lanes, d), beside)
        return [Loop(Kind.UNROLLED, "d", 0, lanes.bit_length() - 1, tuple(joined))]

    def share(self) -> list[Statement]:
        """Put the totals of a warp where all threads of the block see them."""
        at = IndexOp("//", (THREAD, WARP))
        first = IndexOp("==", (IndexOp("%", (THREAD, WARP)), 0))
        return [*self.join_lanes(WARP), Guard(first, tuple(self.put(at)))]

    def put(self, at: Index) -> list[Statement]:
        """Put the totals of the thread where all threads of the block see them."""
        return [self._set(f"b{x}", at, self._get(x)) for x in self.letters]

    def take_from(self, at: Index) -> list[Statement]:
        """Make totals that threads see those of the thread."""
        return [self._set(x, 0, self._get(f"b{x}", at)) for x in self.letters]

    def join_from(self, at: Index) -> list[Statement]:
        """Add totals that threads see to those of the thread."""
        beside = self._get("be", at) if len(self.letters) > 1 else None
        return self.merge(self._get("bt", at), beside)

    def take(self, threads: int) -> list[Statement]:
        """Make the totals of the warps of a block, together, those of each thread."""
        warps = threads // WARP
        at = IndexOp("%", (THREAD, warps)) if warps > 1 else 0
        return [*self.take_from(at), *(self.join_lanes(warps) if warps > 1 else [])]

    def finished(self) -> Value:
        """Return the result."""
        found: Value = self._get("t")
        if self.keeps_errors:
            # NaN, where a total has left the finite numbers, which it then tells itself.
            error = Primitive("finite", (self._get("e"),), self.work)
            found = Accumulate("sum", found, error)
        if self.keeps_nan:
            found = Primitive("or_mark", (self._get("e"), found), self.work)
        return found if self.work == self._dtype else Convert(found, self._dtype)

    def _get(self, letter: str, index: Index = 0) -> Get:
        return Get(f"{letter}{self.number}", index, self.work)

    def _set(self, letter: str, index: Index, value: Value) -> Set:
        return Set(f"{letter}{self.number}", index, value)
