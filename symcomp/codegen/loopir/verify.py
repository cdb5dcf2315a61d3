"""Verifier of LoopIR: the invariants of every schedule.

Values are defined before they are used, once, with their dtypes. Accumulators are initialized
before they are read. Every access is proven to lie within the axes of its array, from the limits of
loops alone. Where the iterations of a loop run in any order, each element is written by one of
them, and none is read that another writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from symcomp.codegen.loopir.bounds import (
    Form,
    Term,
    at_least_zero,
    chosen,
    facts_of,
    follows,
    form_of,
    number,
)
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    ApplyScalar,
    Convert,
    Get,
    Index,
    IndexOp,
    Load,
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
from symcomp.core.record import record
from symcomp.errors import SymcompError


class LoopError(SymcompError, ValueError):
    """Invalid LoopIR: the schedule that made it is wrong."""


@record
class Extent:
    """The bounds of an array in a function.

    Attributes
    ----------
    dtype : str
    rows : Index or None
        None: rows are not counted, as each is the same memory.
    elements : Index
        The elements of a row.
    last : Index or None
        The elements of the row ``rows``, if there is a partial one.
    writes : bool
        If true, elements may be written.
    table : bool
        If true, the elements are read, or added to, at positions that are checked before the kernel
        runs.
    """

    dtype: str
    rows: Index | None
    elements: Index
    last: Index | None = None
    writes: bool = False
    table: bool = False


@record
class Context:
    """The arguments that a function is called with.

    Attributes
    ----------
    extents : dict of int to Extent
        The extents of the arrays that it may access by pointers.
    totals : dict of int to str
        The dtypes of the arrays that are accumulators.
    known : dict of str to int
        Parameters whose values are known.
    facts : tuple of Form
        Facts about its parameters: forms that are nonnegative.
    begun : bool
        If true, the totals passed to it are initialized.
    """

    extents: Mapping[int, Extent]
    totals: Mapping[int, str]
    known: Mapping[str, int]
    facts: tuple[Form, ...]
    begun: bool = True


@record
class _Access:
    """An access to an element, at a row and a place in the row, under these facts."""

    writes: bool
    array: int | str
    place: tuple[Form, Form]
    facts: tuple[Form, ...]
    inner: frozenset[str]


def check_function(function: KernelFunction, context: Context) -> None:
    """Raise a LoopError if a function breaks an invariant when it is called as the context says."""
    _Checker(function, context).run()


class _Checker:
    """Checks one function. Names map to their definitions, in a block and in the enclosing ones."""

    def __init__(self, function: KernelFunction, context: Context) -> None:
        self.function, self.context = function, context
        signature = function.signature
        self.names: dict[str, Any] = dict.fromkeys((*signature.numbers,), "index")
        self.tables = {*signature.tables}
        self.strides = {*signature.strides}
        self.facts = list(context.facts)
        self.forms: dict[str, Form] = {}
        self.begun: set[str] = set()
        # For each open loop in any order: its accesses, and the names defined in it.
        self.open: list[tuple[list[_Access], set[str]]] = []

    def fail(self, problem: str) -> NoReturn:
        raise LoopError(f"function {self.function.name}: {problem}")

    def run(self) -> None:
        self.block(self.function.body)

    # -- blocks

    def block(self, body: Iterable[Statement], facts: Iterable[Form] = ()) -> None:
        """Check statements; their definitions go out of scope with them."""
        saved = self.names, self.facts, self.forms, self.begun
        self.names, self.forms = dict(self.names), dict(self.forms)
        self.facts, self.begun = [*self.facts, *facts], set(self.begun)
        for statement in body:
            _STATEMENTS[type(statement)](self, statement)
        self.names, self.facts, self.forms, self.begun = saved

    def define(self, name: str, meaning: Any) -> None:
        if name in self.names:
            self.fail(f"{name} is defined twice")
        self.names[name] = meaning
        for _, inner in self.open:
            inner.add(name)

    def find(self, name: str, kind: type | str) -> Any:
        meaning = self.names.get(name)
        if meaning is None:
            self.fail(f"{name} is used where it is not defined")
        if not (isinstance(meaning, kind) if isinstance(kind, type) else meaning == kind):
            self.fail(f"{name} is used as what it is not")
        return meaning

    # -- indices

    def form(self, index: Index) -> Form:
        """Return the form of an index, with definitions substituted."""
        index = chosen(index, self.context.known)
        self._check_index(index)
        form = form_of(index)
        for term in [*form.terms]:
            if isinstance(term, str) and term in self.forms:
                coefficient = form.of(term)
                rest = {t: c for t, c in form.terms.items() if t != term}
                form = Form(rest, form.constant).plus(self.forms[term], coefficient)
        return form

    def _check_index(self, index: Index) -> None:
        if isinstance(index, Var):
            self.find(index.name, "index")
        elif isinstance(index, IndexOp):
            for argument in index.arguments:
                self._check_index(argument)
        elif isinstance(index, Stride):
            self.fail(f"the stride of array {index.array} is no position")

    def condition(self, condition: Index, holds: bool = True) -> list[Form]:
        condition = chosen(condition, self.context.known)
        self._check_index(condition)
        return [self._filled(fact) for fact in facts_of(condition, holds)]

    def _filled(self, form: Form) -> Form:
        for term in [*form.terms]:
            if isinstance(term, str) and term in self.forms:
                rest = {t: c for t, c in form.terms.items() if t != term}
                form = Form(rest, form.constant).plus(self.forms[term], form.of(term))
        return form

    def prove(self, form: Form, what: Callable[[], str]) -> None:
        if not follows(form, self.facts):
            self.fail(f"{what()} is not proven")

    def define_index(self, s: Define) -> None:
        form = self.form(s.value)
        self.facts += [self._filled(fact) for fact in at_least_zero(s.value)]
        self.define(s.name, "index")
        self.forms[s.name] = form

    def counter(self, s: Counter) -> None:
        start = self.form(s.start)
        self.define(s.name, "index")
        # a counter only grows
        self.facts.append(Form({s.name: Fraction(1)}, Fraction(0)).plus(start, Fraction(-1)))

    # -- loops

    def loop(self, s: Loop) -> None:
        if s.spare and s.start is not None:
            self.fail(f"nothing goes on where the spare loop over {s.index} ends")
        stop, step = self.form(s.stop), self.form(s.step)
        saved = self.names
        self.names = dict(saved)
        index = Form({s.index: Fraction(1)}, Fraction(0))
        facts = [stop.plus(index, Fraction(-1)).plus(step if s.whole else number(1), Fraction(-1))]
        if s.condition is not None:
            for fact in self.condition(s.condition):
                if s.index in fact.terms:
                    self.fail(f"the condition of the loop over {s.index} depends on it")
                facts.append(fact)
        if s.start is None:
            self.find(s.index, "index")
        else:
            start = self.form(s.start)
            self.names[s.index] = "index"
            if s.index in saved:
                self.fail(f"{s.index} is defined twice")
            for _, inner in self.open:
                inner.add(s.index)
            facts.append(index.plus(start, Fraction(-1)))
        if not follows(step.plus(number(-1)), [*self.facts, *facts]):
            self.fail(f"the step of {s.index} is not proven to be positive where the loop goes on")
        if s.kind in ANY_ORDER:
            self._in_any_order(s, facts)
        else:
            self.block(s.body, facts)
        self.names = saved
        if s.start == 0 and s.step == 1 and stop == self.form(Var("n")):
            every = Var(s.index)
            self.begun |= {
                t.accumulators for t in s.body if isinstance(t, Set) and t.index == every
            }

    def _in_any_order(self, s: Loop, facts: list[Form]) -> None:
        if s.start is None:
            self.fail(f"the loop over {s.index} begins where another ends, so it has an order")
        accesses: list[_Access] = []
        self.open.append((accesses, set()))
        self.block(s.body, facts)
        self.open.pop()
        for access in accesses:
            if not access.writes:
                continue
            if not _apart(access, s.index):
                self.fail(f"iterations of {s.index} write the same element of {access.array}")
            for other in accesses:
                if other.array == access.array and not _same_or_apart(access, other, s.index):
                    self.fail(
                        f"an iteration of {s.index} may access the element of {access.array} that "
                        "another writes"
                    )
        if self.open:
            self.open[-1][0].extend(accesses)

    def if_(self, s: If) -> None:
        self.block(s.body, self.condition(s.condition))
        self.block(s.otherwise, self.condition(s.condition, False))

    def guard(self, s: Guard) -> None:
        facts = self.condition(s.condition)
        dtypes = [self.value(otherwise) for _, _, otherwise in s.results]
        results = [Let(f"{name} where the guard holds", value) for name, value, _ in s.results]
        self.block((*s.body, *results), facts)
        for (name, value, _), dtype in zip(s.results, dtypes, strict=True):
            if value.dtype != dtype:
                self.fail(f"{name} is {value.dtype}, or else {dtype}")
            self.define(name, Ref(name, dtype))

    # -- memory

    def pointer(self, s: Pointer) -> None:
        extent = self.context.extents.get(s.array)
        if extent is None:
            self.fail(f"{s.name} points to array {s.array}, which the function does not use")
        if s.dtype != extent.dtype or (s.writes and not extent.writes):
            self.fail(f"{s.name} points to array {s.array} as {s.dtype}, or to write it")
        if s.table not in self.tables:
            self.fail(f"{s.name} points into {s.table}, which is no table")
        row = self._row(s)
        if row is not None:
            self._check_row(s, extent, row)
        self.define(s.name, s)

    def _row(self, s: Pointer) -> Index | None:
        """Return the row that a pointer points to, None if it points to none."""
        if s.offset == 0:
            return None
        if not (isinstance(s.offset, IndexOp) and s.offset.name == "*"):
            self.fail(f"{s.name} is no row of array {s.array}")
        row, stride = s.offset.arguments
        if stride != Stride(s.array, 0, "step") or "step" not in self.strides:
            self.fail(f"{s.name} is moved by another stride than that of array {s.array}")
        return row

    def _check_row(self, s: Pointer, extent: Extent, row: Index) -> None:
        form = self.form(row)
        if extent.rows is None or (extent.last is not None and form == self.form(extent.rows)):
            return
        self.prove(form, lambda: f"that {s.name} points to a row of 0 or more")
        last = self.form(extent.rows).plus(form, Fraction(-1)).plus(number(-1))
        self.prove(last, lambda: f"that {s.name} points to one of the rows of array {s.array}")

    def access(self, pointer: str, index: Index, writes: bool) -> Pointer:
        p: Pointer = self.find(pointer, Pointer)
        extent, row = self.context.extents[p.array], self._row(p)
        if writes and not p.writes:
            self.fail(f"{pointer} is not there to write")
        if isinstance(index, Position) or extent.table:
            self._check_position(p, extent, index)
            return p
        form = self.form(index).plus(self.form(p.elements))
        row_form = number(0) if row is None else self.form(row)
        self._within(pointer, form, self._length_of_row(extent, row))
        self._note(writes, p.array, (row_form, form))
        return p

    def _length_of_row(self, extent: Extent, row: Index | None) -> Index:
        if extent.last is None or row is None or extent.rows is None:
            return extent.elements
        return extent.last if self.form(row) == self.form(extent.rows) else extent.elements

    def _check_position(self, p: Pointer, extent: Extent, index: Index) -> None:
        """Accept a table that is read from its beginning, at a position; nothing writes it."""
        if not isinstance(index, Position) or not extent.table:
            self.fail(f"{p.name} is read at {index}: tables, and they alone, are read at positions")
        if extent.writes or p.offset != 0 or p.elements != 0:
            self.fail(f"{p.name} does not point to the beginning of a table")
        if self.value(index.value) != "int64":
            self.fail(f"{p.name} is read at a position of {index.value.dtype}")

    def _within(self, name: str, form: Form, length: Index) -> None:
        self.prove(form, lambda: f"that an element of {name} is at 0 or behind")
        below = self.form(length).plus(form, Fraction(-1)).plus(number(-1))
        self.prove(below, lambda: f"that an element of {name} is before its end")

    def _note(self, writes: bool, array: int | str, place: tuple[Form, Form]) -> None:
        for accesses, inner in self.open[-1:]:
            accesses.append(_Access(writes, array, place, tuple(self.facts), frozenset(inner)))

    def accumulators(self, s: Accumulators) -> None:
        if s.array is None and s.lanes is None:
            self.prove(
                number(MOST_LANES).plus(self.form(Var("n")), Fraction(-1)),
                lambda: f"that {s.name} has enough lanes",
            )
        elif s.array is not None:
            dtype = self.context.totals.get(s.array)
            if dtype != s.dtype or s.table not in self.tables:
                self.fail(f"{s.name} is not array {s.array} of {s.table}, of {dtype}")
            if self.context.begun or s.table == "other":
                self.begun.add(s.name)
        self.define(s.name, s)

    def quarters(self, s: Quarters) -> None:
        self.define(s.name, s)
        self.begun.add(s.name)

    def store(self, s: Store) -> None:
        p = self.access(s.pointer, s.index, True)
        dtype = self.value(s.value)
        if dtype != p.dtype:
            self.fail(f"{dtype} is stored to {s.pointer}, of {p.dtype}")

    def set(self, s: Set) -> None:
        dtype = self.value(s.value)
        own = self._lane(s.accumulators, s.index, True)
        if dtype != own.dtype:
            self.fail(f"{s.accumulators} of {own.dtype} are set to {dtype}")

    def _lane(self, name: str, index: Index, writes: bool) -> Any:
        meaning = self.names.get(name)
        form = self.form(index)
        if isinstance(meaning, Quarters):
            filled = chosen(index, self.context.known)
            modulo = isinstance(filled, IndexOp) and filled.name == "%" and filled.arguments[1] == 4
            if not modulo:
                self._within(name, form, 4)
            self._note(writes, name, (number(0), form))
            return meaning
        own: Accumulators = self.find(name, Accumulators)
        if writes and not own.writes:
            self.fail(f"{name} are not there to write")
        self._within(name, form, Var("n") if own.lanes is None else own.lanes)
        self._note(writes, name, (number(0), form))
        return own

    def scatter(self, s: Scatter) -> None:
        """Accept accumulators that are added to a table in order, each at a position."""
        table: Pointer = self.find(s.table, Pointer)
        positions: Pointer = self.find(s.positions, Pointer)
        own: Accumulators = self.find(s.values, Accumulators)
        extent = self.context.extents[table.array]
        if self.open:
            self.fail(f"{s.values} are added to {s.table} in any order")
        if not (extent.table and table.writes) or table.offset != 0 or table.elements != 0:
            self.fail(f"{s.table} does not point to the beginning of a table to write")
        if not own.dtype == table.dtype == s.dtype or positions.dtype != "int64":
            self.fail(f"{own.dtype} are added to {table.dtype} at positions of {positions.dtype}")
        lanes = Var("n") if own.lanes is None else own.lanes
        spare = self.form(lanes).plus(self.form(s.count), Fraction(-1))
        self.facts += [self._filled(fact) for fact in at_least_zero(s.count)]
        self.prove(spare, lambda: f"that there are as many {s.values}")
        length = self._length_of_row(self.context.extents[positions.array], self._row(positions))
        first = self.form(s.first).plus(self.form(positions.elements))
        end = first.plus(self.form(s.count))
        self.prove(first, lambda: f"that a position in {s.positions} is at 0 or behind")
        self.prove(
            self.form(length).plus(end, Fraction(-1)),
            lambda: f"that a position in {s.positions} is before its end",
        )

    def prefetch(self, s: Prefetch) -> None:
        self.find(s.pointer, Pointer)
        self.form(s.elements)

    # -- calls

    def call(self, s: FunctionCall) -> None:
        for argument in s.numbers:
            self.form(argument)
        for table in s.tables:
            if table not in self.tables | self.strides:
                self.fail(f"{s.function} is called with {table}, which is not there")

    def merge_sums(self, s: MergeSums) -> None:
        for table, array in s.totals:
            if table not in self.tables or self.context.totals.get(array) != s.dtype:
                self.fail(f"array {array} of {table} holds no totals of {s.dtype}")

    def copy_table(self, s: CopyTable) -> None:
        if s.source not in self.tables:
            self.fail(f"{s.name} is a copy of {s.source}, which is not there")
        self.tables.add(s.name)

    def move_table(self, s: MoveTable) -> None:
        if s.name not in self.tables or s.by not in self.strides:
            self.fail(f"{s.name} is moved by {s.by}, which is not there")

    # -- values

    def let(self, s: Let) -> None:
        self.define(s.name, Ref(s.name, self.value(s.value)))

    def value(self, value: Value) -> str:
        """Check a value, and return its dtype."""
        _VALUES[type(value)](self, value)
        return value.dtype

    def ref(self, value: Ref) -> None:
        known: Ref = self.find(value.name, Ref)
        if known.dtype != value.dtype:
            self.fail(f"{value.name} of {known.dtype} is used as {value.dtype}")

    def load(self, value: Load) -> None:
        p = self.access(value.pointer, value.index, False)
        if p.dtype != value.dtype:
            self.fail(f"{value.pointer} of {p.dtype} is read as {value.dtype}")

    def get(self, value: Get) -> None:
        own = self._lane(value.accumulators, value.index, False)
        if own.dtype != value.dtype:
            self.fail(f"{value.accumulators} of {own.dtype} are read as {value.dtype}")
        if value.accumulators not in self.begun:
            self.fail(f"{value.accumulators} are read before they begin")

    def join(self, value: Accumulate) -> None:
        dtypes = self.value(value.total), self.value(value.value)
        if dtypes[0] != dtypes[1]:
            self.fail(f"{dtypes[1]} is joined to totals of {dtypes[0]}")

    def primitive(self, value: Primitive) -> None:
        count = {"finite": 1, "or_mark": 2, "scaled": 2}.get(value.name, 3)
        dtypes = {self.value(a) for a in value.arguments}
        if dtypes != {value.dtype} or len(value.arguments) != count:
            self.fail(f"{value.name} does not fit its arguments")

    def apply(self, value: ApplyScalar) -> None:
        for argument in value.arguments:
            self.value(argument)

    def convert(self, value: Convert) -> None:
        self.value(value.value)

    def constant(self, value: Start | ZeroOrOne) -> None:
        """Accept 0, 1 and initial values of accumulators, whose values are known."""


def _apart(access: _Access, index: str) -> bool:
    """Tell whether different values of an index mean different elements."""
    for form in access.place:
        coefficient = form.of(index)
        if not coefficient or coefficient.denominator != 1:
            continue
        inner: dict[Term, Fraction] = {
            t: c for t, c in form.terms.items() if t != index and t in access.inner
        }
        rest, room = Form(inner, Fraction(0)), number(int(abs(coefficient)) - 1)
        low, high = follows(rest, access.facts), room.plus(rest, Fraction(-1))
        if low and follows(high, access.facts):
            return True
    return False


def _same_or_apart(access: _Access, other: _Access, index: str) -> bool:
    """Tell whether two accesses of an iteration are the same, or those of all iterations differ."""
    if other.place == access.place:
        return True
    facts = [*access.facts, *(_renamed(fact, index) for fact in other.facts)]
    for x, y in zip(access.place, other.place, strict=True):
        gap = _renamed(y, index).plus(x, Fraction(-1))
        behind, before = gap.plus(number(-1)), number(-1).plus(gap, Fraction(-1))
        if follows(behind, facts) or follows(before, facts):
            return True
    return False


def _renamed(form: Form, index: str) -> Form:
    """Return the form in another iteration."""
    if index not in form.terms:
        return form
    terms = {f"{t} there" if t == index else t: c for t, c in form.terms.items()}
    return Form(terms, form.constant)


_STATEMENTS: dict[type, Callable[[_Checker, Any], None]] = {
    Pointer: _Checker.pointer,
    Accumulators: _Checker.accumulators,
    Quarters: _Checker.quarters,
    Let: _Checker.let,
    Define: _Checker.define_index,
    Counter: _Checker.counter,
    Store: _Checker.store,
    Set: _Checker.set,
    Scatter: _Checker.scatter,
    Loop: _Checker.loop,
    If: _Checker.if_,
    Guard: _Checker.guard,
    FunctionCall: _Checker.call,
    MergeSums: _Checker.merge_sums,
    Prefetch: _Checker.prefetch,
    CopyTable: _Checker.copy_table,
    MoveTable: _Checker.move_table,
}
_VALUES: dict[type, Callable[[_Checker, Any], None]] = {
    Ref: _Checker.ref,
    Load: _Checker.load,
    Get: _Checker.get,
    ApplyScalar: _Checker.apply,
    Convert: _Checker.convert,
    Accumulate: _Checker.join,
    Start: _Checker.constant,
    ZeroOrOne: _Checker.constant,
    Primitive: _Checker.primitive,
}
