"""The expressions of LoopIR: lengths and positions, and elements."""

from __future__ import annotations

from typing import Any, TypeAlias

from symcomp.core.record import record
from symcomp.ops.formulas.formula import Literal

# A kernel has hundreds of these records: an explicit ``__init__`` takes a third of the time.

# -- lengths and positions


@record
class Var:
    """A parameter of the function, the index of a loop, a counter or a defined index."""

    name: str


@record
class IndexOp:
    """An operation on indices.

    Attributes
    ----------
    name : str
        ``+ - * // %``, ``min``, ``< <= == != and`` of conditions, or ``choose``: the second where
        the first is not 0, else the third.
    arguments : tuple of Index
    """

    name: str
    arguments: tuple[Index, ...]

    def __init__(self, name: str, arguments: tuple[Index, ...]) -> None:
        values = self.__dict__
        values["name"] = name
        values["arguments"] = arguments


@record
class Stride:
    """The bytes between adjacent elements of an array along an axis of the loops of a function."""

    array: int
    axis: int = 0
    table: str = "step"

    def __init__(self, array: int, axis: int = 0, table: str = "step") -> None:
        values = self.__dict__
        values["array"] = array
        values["axis"] = axis
        values["table"] = table


@record
class Position:
    """The element of a table at a position: a value of int64, checked before the kernel runs."""

    value: Ref


Index: TypeAlias = "int | Var | IndexOp | Stride | Position"


def plus(x: Index, y: Index) -> Index:
    """Return the sum, without zeros."""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    return y if x == 0 else x if y == 0 else IndexOp("+", (x, y))


def times(x: Index, y: Index) -> Index:
    """Return the product, without zeros and ones."""
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    if x == 0 or y == 0:
        return 0
    return y if x == 1 else x if y == 1 else IndexOp("*", (x, y))


# -- elements


@record
class Ref:
    """A value defined by ``Let`` or ``Guard``."""

    name: str
    dtype: str

    def __init__(self, name: str, dtype: str) -> None:
        values = self.__dict__
        values["name"] = name
        values["dtype"] = dtype


@record
class Load:
    """An element of an array in memory, ``index`` elements after a pointer."""

    pointer: str
    index: Index
    dtype: str

    def __init__(self, pointer: str, index: Index, dtype: str) -> None:
        values = self.__dict__
        values["pointer"] = pointer
        values["index"] = index
        values["dtype"] = dtype


@record
class Get:
    """An element of accumulators."""

    accumulators: str
    index: Index
    dtype: str

    def __init__(self, accumulators: str, index: Index, dtype: str) -> None:
        values = self.__dict__
        values["accumulators"] = accumulators
        values["index"] = index
        values["dtype"] = dtype


@record
class ApplyScalar:
    """A scalar function of values, computed as its row says."""

    function: Any
    arguments: tuple[Value, ...]
    dtype: str


@record
class Convert:
    """A value in another dtype."""

    value: Value
    dtype: str


@record
class Accumulate:
    """An accumulator of a reduction with one more element; both have the accumulator's dtype."""

    reduction: str
    total: Value
    value: Value

    def __init__(self, reduction: str, total: Value, value: Value) -> None:
        values = self.__dict__
        values["reduction"] = reduction
        values["total"] = total
        values["value"] = value

    @property
    def dtype(self) -> str:
        return self.total.dtype


@record
class Start:
    """The initial value of an accumulator."""

    reduction: str
    dtype: str


@record
class ZeroOrOne:
    """0 or 1."""

    number: int
    dtype: str


@record
class Number:
    """A number that the kernel knows: finite or infinite, not complex."""

    literal: Literal

    @property
    def dtype(self) -> str:
        return self.literal.dtype


@record
class Primitive:
    """A function of the loops themselves.

    Attributes
    ----------
    name : str
        ``rounding``: of t + x = s, what s lacks, 0 where s is not finite; ``rest``: the same, but
        NaN there; ``finite``: x, or 0 where it is not finite; ``mark``: NaN if x or y is, else m;
        ``or_mark``: m if it is NaN, else t; ``scaled``: x 2^-k, for an integer k of float64.
    arguments : tuple of Value
        (t, x, s), (t, x, s), (x,), (x, y, m), (m, t) or (x, k).
    dtype : str
    """

    name: str
    arguments: tuple[Value, ...]
    dtype: str


@record
class FromLane:
    """On cards: a value of another thread of the same lanes of a warp.

    Attributes
    ----------
    value : Value
    lanes : int
        2, 4, 8, 16 or 32 neighbours, who all exchange values.
    halvings : Index
        Half as many lanes, halved so often, is where the number of the other lane differs.
    """

    value: Value
    lanes: int
    halvings: Index

    @property
    def dtype(self) -> str:
        return self.value.dtype


Value: TypeAlias = (
    "Ref | Load | Get | ApplyScalar | Convert | Accumulate | Start | ZeroOrOne | Number | Primitive"
    " | FromLane"
)
