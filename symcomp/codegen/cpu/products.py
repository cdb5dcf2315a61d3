"""Logarithms of products as statements: products of mantissas with their rounding errors, and sums
of exponents.

Nothing leaves the range, and no digits cancel where the product is near 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcomp.codegen.cpu.bodies import I, N, lanes_of
from symcomp.codegen.cpu.folds import Fold
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    ApplyScalar,
    Index,
    IndexOp,
    Number,
    Primitive,
    Ref,
    Value,
    Var,
    ZeroOrOne,
    plus,
)
from symcomp.codegen.loopir.ir import If, Kind, Let, Loop, Pointer, Statement, Store
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Literal
from symcomp.ops.reductions.stable_reduce import LN2_HIGH, LN2_LOW

# The accumulators: the product of mantissas, what rounding takes from it, the sum of exponents.
_TOTALS, _PART = ("t", "e", "k"), ("p", "u", "c")
_WORK = "float64"


class ProductFold(Fold):
    """The logarithm of a product: value ``number`` of the formula of a nest.

    Its accumulators are ``t``, ``e`` and ``k``, or ``p``, ``u`` and ``c`` of a part of the rows:
    the product is (t + e) 2^k.
    """

    one_by_one = True

    # -- in passes

    def declare(self, lanes: int | None = None) -> list[Statement]:
        return [
            *(self._kept(letter, i) for i, letter in enumerate(_TOTALS)),
            *(self._own(letter, lanes) for letter in _PART),
        ]

    def start(self, part: str = "p", lanes: int | None = None) -> list[Statement]:
        return [lanes_of(self._at_one(_PART), Kind.INDEPENDENT)]

    def fold(self, elements: Sequence[Value], to_totals: bool = False) -> list[Statement]:
        """Multiply a part by an element: mantissas of one part need no new exponents."""
        (x,) = elements
        y, k, m = self._names("y", "l", "m")
        p, u, c = (self._get(letter) for letter in _PART)
        product = _row("product_rest", p, m)
        return [
            Let(y.name, x),
            *self._parts(y, k, m),
            self._set("u", I, _sum(_product(u, m), product)),
            self._set("p", I, _product(p, m)),
            self._set("c", I, _sum(c, k)),
        ]

    def flush(self, part: str = "p") -> list[Statement]:
        """Multiply totals by parts."""
        body = self._times([self._get(letter) for letter in _PART])
        return [lanes_of(body, Kind.INDEPENDENT)]

    # -- in functions of totals

    def begin(self) -> list[Statement]:
        declared = [self._kept(letter, i) for i, letter in enumerate(_TOTALS)]
        return [*declared, lanes_of(self._at_one(_TOTALS), Kind.INDEPENDENT)]

    def merge(self) -> list[Statement]:
        both = zip(_TOTALS, _PART, strict=True)
        declared = [
            x
            for i, (own, other) in enumerate(both)
            for x in (self._kept(own, i), self._kept(other, i, "other"))
        ]
        return [*declared, *self.flush()]

    def finish(self, parts: int) -> list[Statement]:
        across, z = Var("across"), f"z{self.number}"
        declared = [self._kept(letter, i) for i, letter in enumerate(_TOTALS)]
        halves: list[Statement] = []
        half = parts // 2
        while half:
            joined = tuple(self._joined(I, plus(half, I)))
            halves.append(Loop(Kind.INDEPENDENT, "i", 0, half, joined))
            half //= 2
        one_by_one = Loop(Kind.REDUCE, "i", 1, N, tuple(self._joined(0, I)))
        usual = IndexOp("==", (N, parts))
        one = If(usual, tuple(halves), (one_by_one,)) if parts else one_by_one
        store = Store(z, I, self._logarithm())
        return [
            *declared,
            Pointer(z, _WORK, self.arrays[-1], writes=True),
            If(across, (one,)),
            Loop(Kind.INDEPENDENT, "i", 0, IndexOp("choose", (across, 1, N)), (store,)),
        ]

    # -- values

    def _at_one(self, letters: Sequence[str]) -> list[Statement]:
        return [
            self._set(letter, I, ZeroOrOne(int(i == 0), _WORK)) for i, letter in enumerate(letters)
        ]

    def _joined(self, index: Index, other: Index) -> list[Statement]:
        """Multiply totals by those of another lane."""
        return self._times([self._get(letter, other) for letter in _TOTALS], index)

    def _times(self, others: Sequence[Value], index: Index = I) -> list[Statement]:
        """Multiply totals by others; the product of mantissas is brought near 1 again."""
        t, e, k = (self._get(letter, index) for letter in _TOTALS)
        p, u, c = others
        high, low, n, m = self._names("h", "r", "n", "m")
        rest = _sum(_sum(_product(e, p), _product(t, u)), _row("product_rest", t, p))
        return [
            Let(high.name, _product(t, p)),
            Let(low.name, rest),
            *self._parts(high, n, m),
            self._set("t", index, m),
            self._set("e", index, Primitive("scaled", (low, n), _WORK)),
            self._set("k", index, _sum(_sum(k, c), n)),
        ]

    def _parts(self, x: Ref, exponent: Ref, mantissa: Ref) -> list[Statement]:
        """Define the exponent of a number, and its mantissa between sqrt(1/2) and sqrt(2)."""
        return [
            Let(exponent.name, _row("log_exponent", _row("abs", x))),
            Let(mantissa.name, Primitive("scaled", (x, exponent), _WORK)),
        ]

    def _logarithm(self) -> Value:
        """Return the result: near 1 from what the product is above 1; log(t) where that is no
        number with a mantissa.
        """
        t, e, k = (self._get(letter) for letter in _TOTALS)
        zero = ZeroOrOne(0, _WORK)
        near = _row("log1p", _sum(_row("sub", t, ZeroOrOne(1, _WORK)), e))
        rest = _sum(_row("true_div", e, t), _product(k, _number(LN2_LOW)))
        far = _sum(_product(k, _number(LN2_HIGH)), _sum(_row("log", t), rest))
        inside = _row("logical_and", _row("isfinite", t), _row("neq", t, zero))
        z = _row("switch", _row("eq", k, zero), near, far)
        return _row("switch", inside, z, _row("log", t))

    def _names(self, *letters: str) -> list[Ref]:
        return [Ref(f"{letter}{self.number}", _WORK) for letter in letters]


def _row(name: str, *arguments: Value) -> ApplyScalar:
    row = ROWS[name]()
    return ApplyScalar(row, arguments, row.dtype(*(a.dtype for a in arguments)))


def _sum(x: Value, y: Value) -> Accumulate:
    return Accumulate("sum", x, y)


def _product(x: Value, y: Value) -> Accumulate:
    return Accumulate("prod", x, y)


def _number(value: float) -> Number:
    return Number(Literal.of(np.asarray(value, _WORK)))
