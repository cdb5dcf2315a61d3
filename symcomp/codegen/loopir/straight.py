"""Straight code: kernels, products and moves of few elements, as statements without loops.

The interpreter runs a kernel for the lengths and strides that it will always have, on elements that
are names instead of numbers. The values that it defines are the straight code: the same operations
in the same order, and so the same bits. Elements that lie in memory between two calls become names,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import ScalarText, scalar_text
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    ApplyScalar,
    Convert,
    Index,
    Load,
    Number,
    Position,
    Primitive,
    Ref,
    Start,
    Value,
    ZeroOrOne,
)
from symcomp.codegen.loopir.interpret import Frame, Interpreter, Space
from symcomp.codegen.loopir.ir import (
    Accumulators,
    KernelFunction,
    Let,
    MergeSums,
    Pointer,
    Quarters,
    Statement,
    Store,
)
from symcomp.codegen.loopir.kernel import Loops, Nests
from symcomp.codegen.loopir.run import run_in
from symcomp.core.dtype import NARROW
from symcomp.core.record import record
from symcomp.ops.formulas.formula import Literal


class NotStraightError(Exception):
    """Something that has no straight code, or too much of it."""


class Cells:
    """A piece of memory whose elements are values: one storage of a plan, or memory of a kernel.

    Parameters
    ----------
    load : callable, optional
        (position in bytes, dtype) -> the value of an element that has not been written.
    """

    def __init__(self, load: Callable[[int, str], Value] | None = None) -> None:
        self.load = load
        self.dtype = ""
        self.elements: dict[int, Value] = {}
        self.written: dict[int, None] = {}
        #: Undo the writes since the last mark.
        self.journal: list[tuple[int, Value | None, bool]] = []

    def _check(self, at: int, dtype: str) -> None:
        # Elements never overlap in part.
        self.dtype = self.dtype or dtype
        if dtype in NARROW:
            raise NotStraightError
        if dtype != self.dtype or at % np.dtype(dtype).itemsize:
            raise NotStraightError

    def read(self, at: int, dtype: str) -> Value:
        """Return the value of an element."""
        self._check(at, dtype)
        found = self.elements.get(at)
        if found is None:
            if self.load is None:
                raise NotStraightError
            found = self.elements[at] = self.load(at, dtype)
            self.journal.append((at, None, False))
        return found

    def write(self, at: int, dtype: str, value: Value) -> None:
        """Set an element."""
        self._check(at, dtype)
        if value.dtype != dtype:
            raise NotStraightError
        self.journal.append((at, self.elements.get(at), at in self.written))
        self.elements[at] = value
        self.written[at] = None

    def mark(self) -> None:
        """Keep all writes."""
        self.journal.clear()

    def undo(self) -> None:
        """Take back the writes since the last mark."""
        for at, before, was_written in reversed(self.journal):
            if before is None:
                del self.elements[at]
            else:
                self.elements[at] = before
            if not was_written:
                self.written.pop(at, None)
        self.journal.clear()


@record(eq=False)
class Spot:
    """A place in cells, or one for each lane; has the methods of ``memory.Address``."""

    memory: Cells
    offset: Any

    def at(self, offset: Any) -> Spot:
        """Return a place of the same memory."""
        return Spot(self.memory, offset)

    def moved(self, by: Any) -> Spot:
        """Return the place ``by`` bytes further."""
        return Spot(self.memory, self.offset + by)

    def read(self, index: Any, dtype: str) -> Any:
        """Return elements, starting ``index`` elements further."""
        at = self.offset + index * np.dtype(dtype).itemsize
        return by_lanes(lambda one: self.memory.read(int(one), dtype), at)

    def write(self, index: Any, dtype: str, value: Any) -> None:
        """Set elements."""
        at = self.offset + index * np.dtype(dtype).itemsize
        by_lanes(lambda one, x: self.memory.write(int(one), dtype, x), at, value)

    def set_rows(
        self,
        count: int,
        n: int,
        steps: tuple[int, int],
        source: Spot,
        source_steps: tuple[int, int],
        dtype: str,
    ) -> None:
        """Set rows of n elements to those at another place."""
        index = [*product(range(count), range(n))]
        values = [source.moved(_at(i, source_steps)).read(0, dtype) for i in index]
        for i, value in zip(index, values, strict=True):
            self.moved(_at(i, steps)).write(0, dtype, value)


def _at(index: Sequence[int], steps: Sequence[int]) -> int:
    return sum(i * step for i, step in zip(index, steps, strict=True))


def by_lanes(f: Callable[..., Any], *arguments: Any) -> Any:
    """Apply a function to each lane of arguments; lanes share arguments that are no arrays."""
    arrays = [x for x in arguments if isinstance(x, np.ndarray) and x.ndim]
    if not arrays:
        return f(*(x[()] if isinstance(x, np.ndarray) else x for x in arguments))
    found = np.empty(arrays[0].shape, object)
    for lane in range(found.size):
        found[lane] = f(
            *(x[lane] if isinstance(x, np.ndarray) and x.ndim else x for x in arguments)
        )
    return found


@record(eq=False)
class Elements:
    """An array of straight code."""

    place: Spot
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class StraightCode(Space):
    """The statements of some calls, one after another.

    Parameters
    ----------
    most : int
        The largest number of values that are defined.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.statements: list[Let] = []
        self.known: dict[Value, Ref] = {}
        #: Names of values that the compiler could compute.
        self.constant: set[str] = set()
        self.storages: dict[int, Cells] = {}
        self._marked = 0

    # -- values

    def define(self, value: Value) -> Ref:
        """Return the name of a value, which is defined once."""
        found = self.known.get(value)
        if found is None:
            # Numbers of 16 bits are rounded where they are stored.
            if len(self.statements) >= self.most or value.dtype in NARROW:
                raise NotStraightError
            is_constant = self._is_constant(value)
            if is_constant and not _rounds_alike(value):
                raise NotStraightError
            found = self.known[value] = Ref(f"v{len(self.statements)}", value.dtype)
            self.statements.append(Let(found.name, value))
            if is_constant:
                self.constant.add(found.name)
        return found

    def _is_constant(self, value: Value) -> bool:
        if isinstance(value, Load):
            return False
        return _names(_arguments(value)) <= self.constant

    def keep(self) -> None:
        """Keep the values that were defined since the last call of this."""
        self._marked = len(self.statements)
        for cells in self.storages.values():
            cells.mark()

    def undo(self) -> None:
        """Take back all definitions and writes since the last call of ``keep``."""
        del self.statements[self._marked :]
        self.known = {s.value: Ref(s.name, s.value.dtype) for s in self.statements}
        self.constant &= {name.name for name in self.known.values()}
        for cells in self.storages.values():
            cells.undo()

    # -- memory

    def storage(self, number: int, content: bytes | None = None) -> Cells:
        """Return the memory of a storage; ``content`` is what a constant one holds."""
        found = self.storages.get(number)
        if found is None:

            def load(at: int, dtype: str) -> Value:
                return self.define(_loaded(number, at, dtype, content))

            found = self.storages[number] = Cells(load)
        return found

    def literal(self, literal: Literal) -> Elements:
        """Return a number as an array without axes."""
        cells = Cells()
        cells.write(0, literal.dtype, self.define(_number(literal)))
        return Elements(Spot(cells, 0), literal.dtype, (), ())

    def interpreter(self, functions: Iterable[KernelFunction]) -> Interpreter:
        return _Straightener(functions, self)

    def empty(self, shape: Sequence[int], dtype: str) -> Elements:
        size = np.dtype(dtype).itemsize
        strides = [size * int(np.prod(shape[axis + 1 :], dtype=int)) for axis in range(len(shape))]
        return Elements(Spot(Cells(), 0), dtype, tuple(shape), tuple(strides))

    def address(self, array: Elements) -> Spot:
        return array.place

    def allocate(self, size: int) -> Spot:
        return Spot(Cells(), 0)

    # -- calls

    def run(self, kernel: Loops | Nests, arrays: Sequence[Elements]) -> None:
        """Run a kernel on inputs, outputs and literals."""
        if isinstance(kernel, Nests) and any(one.axis is not None for one in kernel.kept):
            raise NotStraightError
        if run_in(self, kernel, arrays):
            raise NotStraightError

    def multiply(self, x: Elements, y: Elements, z: Elements, alpha: float, beta: float) -> None:
        """Compute ``z = beta z + alpha x y`` of matrices as ``multiply_few`` of ``blas.h`` does."""
        dtype, inner = z.dtype, range(x.shape[1])
        factors = [self._factor(number, dtype) for number in (alpha, beta)]
        for i, j in product(range(z.shape[0]), range(z.shape[1])):
            total: Value = self.define(ZeroOrOne(0, dtype))
            for k in inner:
                pair = self._join("prod", _element(x, (i, k)), _element(y, (k, j)))
                total = self._join("sum", total, pair)
            if alpha != 1:
                total = self._join("prod", total, factors[0])
            if beta != 0:
                before = self._join("prod", factors[1], _element(z, (i, j)))
                total = self._join("sum", total, before)
            z.place.moved(_at((i, j), z.strides)).write(0, dtype, total)

    def move(self, to: Elements, source: Elements, adds: bool) -> None:
        """Set the elements of an array to those of another, or add these."""
        reduction = "any" if to.dtype == "bool" else "sum"
        for index in product(*map(range, to.shape)):
            value = _element(source, index)
            if adds:
                value = self._join(reduction, _element(to, index), value)
            to.place.moved(_at(index, to.strides)).write(0, to.dtype, value)

    def _join(self, reduction: str, x: Value, y: Value) -> Ref:
        return self.define(Accumulate(reduction, x, y))

    def _factor(self, number: float, dtype: str) -> Ref:
        return self.define(_number(Literal.of(np.asarray(number, dtype))))

    # -- the end

    def body(self, kept: Callable[[int], tuple[str, int] | None]) -> list[Statement]:
        """Return the statements that write the storages that are kept, and all that these need.

        Parameters
        ----------
        kept : callable
            Number of a storage -> the table of addresses, and the place there, by which it is
            written; None: it is not kept.
        """
        ends: list[Statement] = []
        needed: set[str] = set()
        for number, cells in self.storages.items():
            place = kept(number)
            if not cells.written or place is None:
                continue
            name = f"z{number}"
            ends.append(Pointer(name, cells.dtype, place[1], writes=True, table=place[0]))
            size = np.dtype(cells.dtype).itemsize
            for at in cells.written:
                value = cells.elements[at]
                ends.append(Store(name, at // size, value))
                needed |= _names((value,))
        kept_values: list[Let] = []
        for s in reversed(self.statements):
            if s.name in needed:
                kept_values.append(s)
                needed |= _names(_arguments(s.value))
        pointers: dict[str, Pointer] = {}
        for s in kept_values:
            if isinstance(s.value, Load):
                number, dtype = int(s.value.pointer[1:]), s.value.dtype
                pointers[s.value.pointer] = Pointer(s.value.pointer, dtype, number)
        return [*pointers.values(), *reversed(kept_values), *ends]


def _element(x: Elements, index: Sequence[int]) -> Any:
    return x.place.moved(_at(index, x.strides)).read(0, x.dtype)


def _names(values: Iterable[Value]) -> set[str]:
    return {x.name for x in values if isinstance(x, Ref)}


def _text(value: ApplyScalar) -> ScalarText | None:
    return scalar_text(value.function, tuple(x.dtype for x in value.arguments), value.dtype)


def _arguments(value: Value) -> tuple[Value, ...]:
    """Return the values that a value depends on."""
    if isinstance(value, ApplyScalar):
        text = _text(value)
        reads = [True] * len(value.arguments) if text is None else text.reads
        return tuple(x for x, one in zip(value.arguments, reads, strict=True) if one)
    if isinstance(value, Primitive):
        return value.arguments
    if isinstance(value, Accumulate):
        return value.total, value.value
    return (value.value,) if isinstance(value, Convert) else ()


def _rounds_alike(value: Value) -> bool:
    """Tell whether the compiler, which computes functions of constants itself, gives the result
    that the processor does. Its logarithms are rounded better than the library's.
    """
    kinds = {np.dtype(x.dtype).kind for x in _arguments(value)}
    if np.dtype(value.dtype).kind in "iu" and kinds & {*"fc"}:
        return False  # of numbers out of range
    if not isinstance(value, ApplyScalar):
        return True
    text = _text(value)
    return text is not None and not text.calls


def _number(literal: Literal) -> Value:
    x = literal.array
    if x.dtype.kind == "c" or x.dtype.name in NARROW or (x.dtype.kind == "f" and np.isnan(x)):
        raise NotStraightError
    return Number(literal)


def _loaded(number: int, at: int, dtype: str, content: bytes | None) -> Value:
    size = np.dtype(dtype).itemsize
    if dtype in NARROW or at < 0:
        raise NotStraightError
    if content is not None and np.dtype(dtype).kind != "c" and at + size <= len(content):
        found = np.frombuffer(content, dtype, 1, at)[0]
        if found == found:
            return _number(Literal.of(found))
    return Load(f"m{number}", at // size, dtype)


class _Straightener(Interpreter):
    """Runs functions of a kernel on names: each operation defines a value."""

    def __init__(self, functions: Iterable[KernelFunction], code: StraightCode) -> None:
        super().__init__(functions)
        self.code = code

    def _define(self, make: Callable[..., Value], *arguments: Any) -> Any:
        return by_lanes(lambda *values: self.code.define(make(*values)), *arguments)

    def accumulators(self, s: Accumulators, frame: Frame) -> None:
        place = self.code.allocate(0) if s.array is None else frame[s.table][s.array]
        frame[s.name] = place, s.dtype

    def quarters(self, s: Quarters, frame: Frame) -> None:
        place = self.code.allocate(0)
        place.write(np.arange(4), s.dtype, self.code.define(Start(s.reduction, s.dtype)))
        frame[s.name] = place, s.dtype

    def merge_sums(self, s: MergeSums, frame: Frame) -> None:
        lanes, dtype = np.arange(frame["n"]), s.dtype
        total, error, part, more = (frame[table][array] for table, array in s.totals)
        t, p = total.read(lanes, dtype), part.read(lanes, dtype)
        z = self._define(lambda x, y: Accumulate("sum", x, y), t, p)
        lost = self._define(lambda *x: Primitive("rounding", x, dtype), t, p, z)
        e = error.read(lanes, dtype)
        for x in (lost, more.read(lanes, dtype)):
            e = self._define(lambda x, y: Accumulate("sum", x, y), e, x)
        total.write(lanes, dtype, z)
        error.write(lanes, dtype, e)

    def index(self, index: Index, frame: Frame) -> Any:
        if isinstance(index, Position):
            raise NotStraightError
        return super().index(index, frame)

    def load(self, value: Load, frame: Frame) -> Any:
        place, dtype = frame[value.pointer]
        return place.read(self.index(value.index, frame), dtype)

    def apply_row(self, value: ApplyScalar, frame: Frame) -> Any:
        arguments = [self.value(argument, frame) for argument in value.arguments]
        return self._define(lambda *x: ApplyScalar(value.function, x, value.dtype), *arguments)

    def convert(self, value: Convert, frame: Frame) -> Any:
        return self._define(lambda x: Convert(x, value.dtype), self.value(value.value, frame))

    def join(self, value: Accumulate, frame: Frame) -> Any:
        total, x = self.value(value.total, frame), self.value(value.value, frame)
        return self._define(lambda x, y: Accumulate(value.reduction, x, y), total, x)

    def start(self, value: Start, frame: Frame) -> Any:
        return self.code.define(value)

    def zero_or_one(self, value: ZeroOrOne, frame: Frame) -> Any:
        return self.code.define(value)

    def number(self, value: Number, frame: Frame) -> Any:
        return self.code.define(value)

    def primitive(self, value: Primitive, frame: Frame) -> Any:
        arguments = [self.value(argument, frame) for argument in value.arguments]
        return self._define(lambda *x: Primitive(value.name, x, value.dtype), *arguments)
