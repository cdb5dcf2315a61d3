"""Interpreter of LoopIR: executes its functions with NumPy.

Loops whose iterations run in any order are executed statement by statement for all iterations at
once: indices and values are arrays, with an element for each lane.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symcomp.codegen.loopir.expressions import (
    Accumulate,
    ApplyScalar,
    Convert,
    Get,
    Index,
    Load,
    Number,
    Position,
    Primitive,
    Ref,
    Start,
    Stride,
    Value,
    Var,
    ZeroOrOne,
)
from symcomp.codegen.loopir.ir import (
    ANY_ORDER,
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
    MergeSums,
    MoveTable,
    Pointer,
    Prefetch,
    Quarters,
    Scatter,
    Set,
    Statement,
    Store,
)
from symcomp.codegen.loopir.kernel import MOST_LANES
from symcomp.codegen.loopir.memory import address_of, allocate
from symcomp.ops.elementwise.elemwise import ScalarOp

# Computes a scalar function: (row, arguments, dtype of the result) -> array.
Applied: TypeAlias = "Callable[[ScalarOp, Sequence[Any], str], Any]"
# Values of names: indices, values, places and their dtypes, tables of places, rows of strides.
Frame: TypeAlias = "dict[str, Any]"


def apply_with_numpy(row: ScalarOp, arguments: Sequence[Any], dtype: str) -> Any:
    """Compute a scalar function with NumPy."""
    return np.asarray(row.function(*arguments)).astype(dtype)


class Interpreter:
    """Runs functions of a kernel.

    Parameters
    ----------
    functions : sequence of KernelFunction
    apply : callable
        Computes scalar functions.
    """

    def __init__(
        self, functions: Iterable[KernelFunction], apply: Applied = apply_with_numpy
    ) -> None:
        self.functions = {function.name: function for function in functions}
        self.apply = apply

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function with its numbers, tables of addresses and rows of strides."""
        function = self.functions[name]
        signature = function.signature
        names = (*signature.numbers, *signature.tables, *signature.strides)
        with np.errstate(all="ignore"):
            self.block(function.body, dict(zip(names, arguments, strict=True)))

    def block(self, body: Iterable[Statement], frame: Frame) -> None:
        """Run statements; their definitions are added to the frame."""
        for statement in body:
            getattr(self, _STATEMENTS[type(statement)])(statement, frame)

    # -- statements

    def pointer(self, s: Pointer, frame: Frame) -> None:
        place = frame[s.table][s.array].moved(self.index(s.offset, frame))
        elements = self.index(s.elements, frame) * np.dtype(s.dtype).itemsize
        frame[s.name] = place.moved(elements), s.dtype

    def accumulators(self, s: Accumulators, frame: Frame) -> None:
        if s.array is None:
            place = allocate(MOST_LANES * np.dtype(s.dtype).itemsize)
        else:
            place = frame[s.table][s.array]
        frame[s.name] = place, s.dtype

    def quarters(self, s: Quarters, frame: Frame) -> None:
        place = allocate(4 * np.dtype(s.dtype).itemsize)
        place.write(np.arange(4), s.dtype, start_of(s.reduction, s.dtype))
        frame[s.name] = place, s.dtype

    def let(self, s: Let, frame: Frame) -> None:
        frame[s.name] = self.value(s.value, frame)

    def define(self, s: Define, frame: Frame) -> None:
        frame[s.name] = self.index(s.value, frame)

    def counter(self, s: Counter, frame: Frame) -> None:
        frame[s.name] = _Count(self.index(s.start, frame))

    def store(self, s: Store, frame: Frame) -> None:
        place, dtype = frame[s.pointer]
        place.write(self.index(s.index, frame), dtype, self.value(s.value, frame))

    def set(self, s: Set, frame: Frame) -> None:
        place, dtype = frame[s.accumulators]
        place.write(self.index(s.index, frame), dtype, self.value(s.value, frame))

    def scatter(self, s: Scatter, frame: Frame) -> None:
        (table, dtype), (positions, _), (values, work) = (
            frame[name] for name in (s.table, s.positions, s.values)
        )
        count, first = self.index(s.count, frame), self.index(s.first, frame)
        at = positions.read(np.arange(first, first + count), "int64")
        for place, x in zip(at, values.read(np.arange(count), work), strict=True):
            table.write(place, dtype, joined("sum", table.read(place, dtype), x))

    def loop(self, s: Loop, frame: Frame) -> None:
        counted = frame.get(s.index)
        start = self.index(Var(s.index) if s.start is None else s.start, frame)
        stop, step = self.index(s.stop, frame), self.index(s.step, frame)
        last = stop - step + 1 if s.whole else stop
        if start >= last or (s.condition is not None and not self.index(s.condition, frame)):
            return
        if s.kind in _LANES:
            self.block(s.body, {**frame, s.index: np.arange(start, last, step)})
            return
        turns = range(start, last, step)
        for i in reversed(turns) if s.kind in ANY_ORDER else turns:
            self.block(s.body, {**frame, s.index: i})
        if s.start is None and isinstance(counted, _Count):
            counted.now = start + len(turns) * step

    def if_(self, s: If, frame: Frame) -> None:
        self.block(s.body if self.index(s.condition, frame) else s.otherwise, {**frame})

    def guard(self, s: Guard, frame: Frame) -> None:
        holds = np.asarray(self.index(s.condition, frame))
        if holds.ndim == 0:
            holds = np.full(_lanes(frame), bool(holds))
        inside = {name: _of_lanes(meaning, holds) for name, meaning in frame.items()}
        if holds.any():
            self.block(s.body, inside)
        for name, value, otherwise in s.results:
            found = np.full(holds.shape, self.value(otherwise, frame))
            if holds.any():
                found[holds] = self.value(value, inside)
            frame[name] = found

    def call_function(self, s: FunctionCall, frame: Frame) -> None:
        numbers = [self.index(number, frame) for number in s.numbers]
        self.call(s.function, *numbers, *(frame[table] for table in s.tables))

    def merge_sums(self, s: MergeSums, frame: Frame) -> None:
        lanes, dtype = np.arange(frame["n"]), s.dtype
        total, error, part, more = (frame[table][array] for table, array in s.totals)
        t, p = total.read(lanes, dtype), part.read(lanes, dtype)
        z = t + p
        e = error.read(lanes, dtype) + rounding(t, p, z) + more.read(lanes, dtype)
        total.write(lanes, dtype, z)
        error.write(lanes, dtype, e)

    def prefetch(self, s: Prefetch, frame: Frame) -> None:
        """Ignore it: values do not depend on prefetching."""

    def copy_table(self, s: CopyTable, frame: Frame) -> None:
        frame[s.name] = [*frame[s.source]]

    def move_table(self, s: MoveTable, frame: Frame) -> None:
        table = frame[s.name]
        table[:] = [place.moved(by) for place, by in zip(table, frame[s.by], strict=True)]

    # -- indices

    def index(self, index: Index, frame: Frame) -> Any:
        """Return the value of an index: an integer, or an array of one for each lane."""
        if isinstance(index, int):
            return index
        if isinstance(index, Var):
            found = frame[index.name]
            return found.now if isinstance(found, _Count) else found
        if isinstance(index, Stride):
            return frame[index.table][index.array]
        if isinstance(index, Position):
            return self.value(index.value, frame)
        return _OPERATIONS[index.name](*(self.index(a, frame) for a in index.arguments))

    # -- values

    def value(self, value: Value, frame: Frame) -> Any:
        """Return a value, as an array of its dtype."""
        return getattr(self, _VALUES[type(value)])(value, frame)

    def ref(self, value: Ref, frame: Frame) -> Any:
        return frame[value.name]

    def load(self, value: Load, frame: Frame) -> Any:
        place, dtype = frame[value.pointer]
        index = self.index(value.index, frame)
        return place.read(index, "uint8") != 0 if dtype == "bool" else place.read(index, dtype)

    def get(self, value: Get, frame: Frame) -> Any:
        place, dtype = frame[value.accumulators]
        return place.read(self.index(value.index, frame), dtype)

    def apply_row(self, value: ApplyScalar, frame: Frame) -> Any:
        arguments = [self.value(argument, frame) for argument in value.arguments]
        return self.apply(value.function, arguments, value.dtype)

    def convert(self, value: Convert, frame: Frame) -> Any:
        x = self.value(value.value, frame)
        if x.dtype.kind == "c" and np.dtype(value.dtype).kind not in "cb":
            x = x.real
        return x.astype(value.dtype)

    def join(self, value: Accumulate, frame: Frame) -> Any:
        total, x = self.value(value.total, frame), self.value(value.value, frame)
        return joined(value.reduction, total, x)

    def start(self, value: Start, frame: Frame) -> Any:
        return start_of(value.reduction, value.dtype)

    def zero_or_one(self, value: ZeroOrOne, frame: Frame) -> Any:
        return np.asarray(value.number, value.dtype)

    def number(self, value: Number, frame: Frame) -> Any:
        return value.literal.array

    def primitive(self, value: Primitive, frame: Frame) -> Any:
        arguments = [self.value(argument, frame) for argument in value.arguments]
        return _PRIMITIVES[value.name](*arguments)


class Space:
    """Memory that kernels run in, and what runs them: NumPy's arrays, and ``Interpreter``.

    Parameters
    ----------
    apply : callable
        Computes scalar functions.
    """

    def __init__(self, apply: Applied = apply_with_numpy) -> None:
        self.apply = apply

    def interpreter(self, functions: Iterable[KernelFunction]) -> Interpreter:
        """Return what runs the functions of a kernel."""
        return Interpreter(functions, self.apply)

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new array."""
        return np.empty(shape, dtype)

    def address(self, array: Any) -> Any:
        """Return the place of the first element of an array."""
        return address_of(array)

    def allocate(self, size: int) -> Any:
        """Return new memory."""
        return allocate(size)


_LANES = (Kind.INDEPENDENT, Kind.VECTOR, Kind.BLOCK)


class _Count:
    """A counter; the value of ``now`` is the same in all blocks."""

    def __init__(self, now: int) -> None:
        self.now = now


def _of_lanes(meaning: Any, holds: Any) -> Any:
    """Return the value of a name in a subset of the lanes."""
    if isinstance(meaning, np.ndarray) and meaning.ndim:
        return meaning[holds]
    if isinstance(meaning, tuple):
        place, dtype = meaning
        return place.at(_of_lanes(place.offset, holds)), dtype
    return meaning


def _lanes(frame: Frame) -> int:
    """Return how many lanes there are."""
    return next(len(v) for v in frame.values() if isinstance(v, np.ndarray) and v.ndim)


_BITS = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


def joined(reduction: str, total: Any, x: Any) -> Any:
    """Return totals with one more element each."""
    if reduction in _BITS:
        return _BITS[reduction](total, x)
    if total.dtype == bool:
        return total | x if reduction in ("any", "max", "sum") else total & x
    if reduction in ("max", "min"):
        return np.where(x > total if reduction == "max" else x < total, x, total)
    if reduction == "prod" and total.dtype.kind == "c":
        return np.where(total == 1, x, np.where(x == 1, total, total * x))
    return total + x if reduction == "sum" else total * x


def start_of(reduction: str, dtype: str) -> Any:
    """Return the total of no elements."""
    kind = np.dtype(dtype).kind
    if reduction == "bitwise_and":
        return np.asarray(True) if kind == "b" else ~np.zeros((), dtype)
    if reduction not in ("max", "min"):
        return np.asarray(reduction in ("prod", "all"), dtype)
    if kind == "f":
        return np.asarray(-np.inf if reduction == "max" else np.inf, dtype)
    if kind == "b":
        return np.asarray(reduction == "min")
    limits = np.iinfo(dtype)
    return np.asarray(limits.min if reduction == "max" else limits.max, dtype)


def rounding(t: Any, x: Any, s: Any) -> Any:
    """Return the rounding error of s = t + x, 0 where that is not finite."""
    if s.dtype.kind == "c":
        z = np.empty(np.broadcast_shapes(t.shape, x.shape), s.dtype)
        z.real, z.imag = rounding(t.real, x.real, s.real), rounding(t.imag, x.imag, s.imag)
        return z
    return _finite(_rest(t, x, s))


def _rest(t: Any, x: Any, s: Any) -> Any:
    part = s - t
    return (t - (s - part)) + (x - part)


def _finite(x: Any) -> Any:
    return np.where(np.isfinite(x), x, np.zeros_like(x))


def _mark(x: Any, y: Any, mark: Any) -> Any:
    return np.where(np.isnan(x) | np.isnan(y), np.full_like(mark, np.nan), mark)


_PRIMITIVES: Mapping[str, Callable[..., Any]] = {
    "rounding": rounding,
    "rest": _rest,
    "finite": _finite,
    "mark": _mark,
    "or_mark": lambda mark, total: np.where(np.isnan(mark), mark, total),
    "scaled": lambda x, k: np.ldexp(x, -k.astype(np.int64)),
}
_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "min": lambda x, y: np.minimum(x, y) if isinstance(x, np.ndarray) else min(x, y),
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "and": lambda x, y: x & y if isinstance(x, np.ndarray) else bool(x) and bool(y),
    "choose": lambda condition, x, y: x if condition else y,
}
_STATEMENTS: dict[type, str] = {
    Pointer: "pointer",
    Accumulators: "accumulators",
    Quarters: "quarters",
    Let: "let",
    Define: "define",
    Counter: "counter",
    Store: "store",
    Set: "set",
    Scatter: "scatter",
    Loop: "loop",
    If: "if_",
    Guard: "guard",
    FunctionCall: "call_function",
    MergeSums: "merge_sums",
    Prefetch: "prefetch",
    CopyTable: "copy_table",
    MoveTable: "move_table",
}
_VALUES: dict[type, str] = {
    Ref: "ref",
    Load: "load",
    Get: "get",
    ApplyScalar: "apply_row",
    Convert: "convert",
    Accumulate: "join",
    Start: "start",
    ZeroOrOne: "zero_or_one",
    Number: "number",
    Primitive: "primitive",
}
