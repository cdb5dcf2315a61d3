"""Write formulas step by step: equal steps, and equal numbers, once."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.op import Op
from symcomp.core.record import record, replace
from symcomp.ops.elementwise.elemwise import ROWS, ScalarOp
from symcomp.ops.formulas.formula import Literal, folded_axes, joint_pattern
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

# The dtype of indices along an axis.
POSITION = "int32"
# The largest of no elements is minus infinity.
_LARGEST = replace(REDUCTIONS["max"], identity=True)


@record(eq=False)
class Value:
    """A value of a formula being written: an input, a literal or a step.

    Attributes
    ----------
    dtype : str
    pattern : tuple of bool
    source : Any
        The function of a step; a Literal; or, for inputs, their origin.
    arguments : tuple of Value
    """

    dtype: str
    pattern: tuple[bool, ...]
    source: Any
    arguments: tuple[Value, ...] = ()


class FormulaWriter:
    """The values of a formula being written, of a number of axes.

    Attributes
    ----------
    is_widened : bool
        Whether the function being written computes in a wider dtype than its result has, and so has
        digits to spare.
    totals : dict
        Sums of exponentials over axes relative to the largest: of terms less than 1, and of terms
        of 1.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.is_widened = False
        self.literals: dict[Literal, Value] = {}
        self.known: dict[Any, Value] = {}
        self.totals: dict[tuple[Value, tuple[int, ...]], tuple[Value, Value]] = {}

    def literal(self, literal: Literal) -> Value:
        if literal not in self.literals:
            self.literals[literal] = Value(literal.dtype, (True,) * self.rank, literal)
        return self.literals[literal]

    def number(self, value: Any, like: Value) -> Value:
        """Return a number of the dtype of another value."""
        return self.literal(Literal.of(np.asarray(value, like.dtype)))

    def apply(self, function: ScalarOp | Op, dtype: str, *arguments: Value) -> Value:
        key = (function, dtype, *map(id, arguments))
        if key not in self.known:
            pattern = joint_pattern(a.pattern for a in arguments)
            axes = folded_axes(function)
            pattern = tuple(one or a in axes for a, one in enumerate(pattern))
            self.known[key] = Value(dtype, pattern, function, arguments)
        return self.known[key]

    def __call__(self, name: str, *arguments: Value) -> Value:
        """Apply a row, given by name."""
        row = ROWS[name]()
        return self.apply(row, row.dtype(*(a.dtype for a in arguments)), *arguments)

    def cast(self, x: Value, dtype: str) -> Value:
        return x if x.dtype == dtype else self.apply(ROWS["cast"](dtype), dtype, x)

    def sum(self, x: Value, axes: tuple[int, ...]) -> Value:
        return self.apply(Reduce(REDUCTIONS["sum"], axes), x.dtype, x)

    def max(self, x: Value, axes: tuple[int, ...]) -> Value:
        """Return the largest elements, known ones if any: their reduction refuses empty slices."""
        known = self.known.get((Reduce(REDUCTIONS["max"], axes), x.dtype, id(x)))
        return known or self.apply(Reduce(_LARGEST, axes), x.dtype, x)

    def count(self, test: Value, axes: tuple[int, ...], dtype: str) -> Value:
        """Count the elements of slices that are true."""
        total = Reduce(REDUCTIONS["sum"], axes, POSITION, POSITION)
        return self.cast(self.apply(total, POSITION, test), dtype)

    def length(self, x: Value, axes: tuple[int, ...]) -> Value:
        """Return the number of elements of slices."""
        return self.sum(self("second", x, self.number(1, x)), axes)
