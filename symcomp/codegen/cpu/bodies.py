"""Bodies of nests as statements: pointers to rows, numbers of rows, the computation of an element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from symcomp.codegen.functions.c_functions import RARE
from symcomp.codegen.functions.c_scalars import ScalarText, scalar_text
from symcomp.codegen.loopir.expressions import (
    ApplyScalar,
    Index,
    IndexOp,
    Load,
    Position,
    Ref,
    Stride,
    Value,
    Var,
    ZeroOrOne,
)
from symcomp.codegen.loopir.ir import (
    BOTH,
    ROWS,
    Accumulators,
    Counter,
    Define,
    FunctionCall,
    Guard,
    If,
    KernelFunction,
    Kind,
    Let,
    Loop,
    Pointer,
    Scatter,
    Set,
    Statement,
    Store,
)
from symcomp.codegen.loopir.kernel import Role
from symcomp.codegen.loops.nests import Body, Nest
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.formula import GATHER, Formula

# The elements of a remainder block: a vector of floats.
TAIL = 16
I, N, R, ROWS_HERE = Var("i"), Var("n"), Var("r"), Var("rows")


class BodyPlan:
    """The statements of a body; values that no result depends on are left out.

    Attributes
    ----------
    pointers : tuple of (int, bool)
        Arrays, and whether they are written.
    numbers, elements : tuple of (int, int)
        Values and the arrays that they are loaded from, one for each row, and one for each lane.
    tables : set of int
        The arrays that are read, or added to, at positions.
    scatters : dict of int to int
        The arrays that are added to at positions, each with the array of these.
    steps : tuple of int
        The values that are computed.
    stores : tuple of (int, int)
        Values and the arrays that they go to.
    light : bool
        If true, elements are so cheap that the place of the totals matters.
    lines : int
        The number of values computed for an element.
    singles : frozenset of int
        The arrays that have an element for each result; such a pass is two functions.
    read_in_order : list of int
        The arrays whose elements are read one after another.
    moving : set of int
        The arrays that have an element for each lane of each row.
    inner : set of int
        The values of rare functions, which are computed within the step that guards them.
    """

    def __init__(self, nest: Nest, number: int, body: Body) -> None:
        self.number, self.body, self.dtypes = number, body, nest.dtypes
        self.formula, self.temporaries = nest.formula, nest.temporaries
        self.stores = body.stores
        formula = nest.formula
        taken = {formula.steps[v - formula.first_step].arguments[0] for v in body.folds}
        needed = taken | {value for value, _ in body.stores}
        steps, calls = [], False
        for value in reversed(body.steps):
            if value in needed:
                needed |= {*read_by(formula, value)}
                steps.append(value)
                calls |= _calls(formula, value)
        self.inner = _guarded(formula, steps) - taken - {value for value, _ in body.stores}
        self.steps, self.light = tuple(v for v in reversed(steps) if v not in self.inner), not calls
        stored = {array for _, array in body.stores}
        self.scatters = {z: p for z, p in nest.scatters.items() if z in stored}
        self.tables = (formula.tables.keys() & needed) | self.scatters.keys()
        loads = [pair for pair in body.loads if pair[0] in needed - formula.tables.keys()]
        self.numbers = tuple(pair for pair in loads if pair[1] in body.numbers)
        self.elements = tuple(pair for pair in loads if pair[1] not in body.numbers)
        written = stored - self.scatters.keys()
        read = {*(a for _, a in (*self.numbers, *self.elements)), *self.tables}
        in_order = [a for _, a in body.loads if a in read and a not in written]
        self.pointers = (
            *((array, True) for _, array in body.stores),
            *((array, False) for array in (*in_order, *self.scatters.values())),
        )
        self.singles = body.singles.intersection(a for _, a in self.elements)
        self.lines = len(self.elements) + len(steps)
        still = body.numbers | body.singles
        elements = [a for _, a in body.loads if a not in still and a < nest.temporaries]
        self.read_in_order = [a for a in elements if a in written or a in in_order]
        self.moving = {*elements, *(a for a in written if a < nest.temporaries)}
        self.moving |= {*self.scatters.values()}

    def row(self, row: Index = R, ending: str = "", further: Index = 0) -> list[Statement]:
        """Return pointers to a row and its numbers; ``further`` if each lane has an element."""
        found: list[Statement] = []
        for array, writes in self.pointers:
            offset = 0 if array in self.tables else IndexOp("*", (row, Stride(array)))
            elements = further if array in self.moving else 0
            name = f"a{array}{ending}"
            found.append(Pointer(name, self.dtypes[array], array, offset, elements, writes))
        return [*found, *(self.load(v, a, 0, ending) for v, a in self.numbers)]

    def lane(self, ending: str = "", across: bool | None = None) -> list[Statement]:
        """Return the computation of lane i; ``across``: the result is the same for all lanes; None:
        the function gets this as a parameter.
        """
        of_result = 0 if across else IndexOp("choose", (Var("across"), 0, I))
        found: list[Statement] = []
        for value, array in self.elements:
            index = of_result if array in self.singles else I
            found.append(self.load(value, array, index, ending))
        return found + [self.step(value, ending) for value in self.steps]

    def writes(self, ending: str = "", place: Index = I) -> list[Statement]:
        """Return the stores of lane i; values for tables go to a ``place`` in a buffer."""
        return [
            Set(f"b{array}", place, self.ref(v, ending))
            if array in self.scatters
            else Store(f"a{array}{ending}", I, self.ref(v, ending))
            for v, array in self.stores
        ]

    def buffers(self, lanes: int | None = None) -> list[Statement]:
        """Return the buffers of values for tables."""
        return [Accumulators(f"b{a}", self.dtypes[a], lanes=lanes) for a in self.scatters]

    def scattered(self, count: Index, ending: str = "", first: Index = 0) -> list[Statement]:
        """Return the additions of buffers to tables, at the positions from ``first`` on."""
        return [
            Scatter(
                f"a{a}{ending}", f"a{positions}{ending}", first, f"b{a}", count, self.dtypes[a]
            )
            for a, positions in self.scatters.items()
        ]

    def ref(self, value: int, ending: str = "") -> Ref:
        """Return a reference to a value of the formula."""
        return Ref(f"v{value}{ending}", self.formula.dtypes[value])

    def load(self, value: int, array: int, index: Index, ending: str = "") -> Let:
        """Define a value that is loaded from the pointer of an array."""
        dtype = self.dtypes[array]
        return Let(f"v{value}{ending}", Load(f"a{array}{ending}", index, dtype))

    def step(self, value: int, ending: str = "") -> Let:
        """Define a value that is computed."""
        step = self.formula.steps[value - self.formula.first_step]
        if step.function == GATHER:
            table, positions = step.arguments
            at = Position(self.ref(positions, ending))
            return Let(f"v{value}{ending}", Load(f"a{table}{ending}", at, step.dtype))
        return Let(f"v{value}{ending}", self._applied(value, ending))

    def _applied(self, value: int, ending: str) -> ApplyScalar:
        step = self.formula.steps[value - self.formula.first_step]
        reads = _text(self.formula, value).reads
        arguments: list[Value] = []
        for a, read in zip(step.arguments, reads, strict=True):
            if a in self.inner:
                arguments.append(self._applied(a, ending))
            else:
                arguments.append(
                    self.ref(a, ending) if read else ZeroOrOne(0, self.formula.dtypes[a])
                )
        return ApplyScalar(step.function, tuple(arguments), step.dtype)

    def roles(self, totals: Iterable[int], across: bool = False) -> tuple[Role, ...]:
        """Return the roles of all arrays, ``totals`` being those of reductions; ``across``: the
        result is the same for all lanes.
        """
        roles = [Role.UNUSED] * len(self.dtypes)
        numbers = self.body.numbers | (self.singles if across else set())
        for _, array in self.body.loads:
            one = Role.NUMBER if array in numbers else Role.READ
            one = Role.GATHERED if array in self.formula.tables else one
            roles[array] = Role.LANE if array >= self.temporaries else one
        for _, array in self.body.stores:
            one = Role.CHANGE if roles[array] else Role.WRITE
            one = Role.SCATTERED if array in self.scatters else one
            roles[array] = Role.LANE if array >= self.temporaries else one
        for array in self.scatters.values():
            roles[array] = Role.READ
        for array in totals:
            roles[array] = Role.LANE
        return tuple(roles)


def read_by(formula: Formula, value: int) -> tuple[int, ...]:
    """Return the values that the C of a step reads."""
    step = formula.steps[value - formula.first_step]
    if step.function == GATHER:
        return step.arguments
    reads = _text(formula, value).reads
    return tuple(a for a, read in zip(step.arguments, reads, strict=True) if read)


def _guarded(formula: Formula, steps: Collection[int]) -> set[int]:
    """Return the values of rare functions that only steps of ``guarded`` read, of some steps."""
    names = {v: getattr(_function(formula, v), "name", "") for v in steps}
    others = {a for v in steps if names[v] != "guarded" for a in read_by(formula, v)}
    return {v for v in steps if names[v] in RARE} - others


def _function(formula: Formula, value: int) -> Any:
    return formula.steps[value - formula.first_step].function


def _calls(formula: Formula, value: int) -> bool:
    """Tell whether the C of a step calls a function."""
    gathers = formula.steps[value - formula.first_step].function == GATHER
    return not gathers and _text(formula, value).calls


def _text(formula: Formula, value: int) -> ScalarText:
    step = formula.steps[value - formula.first_step]
    assert isinstance(step.function, ScalarOp)
    dtypes = tuple(formula.dtypes[a] for a in step.arguments)
    text = scalar_text(step.function, dtypes, step.dtype)
    assert text is not None
    return text


def lanes_of(body: Sequence[Statement], kind: Kind = Kind.VECTOR) -> Loop:
    """Return the loop over all lanes."""
    return Loop(kind, "i", 0, N, tuple(body))


def lanes_in_blocks(body: Sequence[Statement]) -> list[Statement]:
    """Return the loop over all lanes in whole blocks, with the remainder as one more block: a
    scalar remainder loop is slow, and compilers vectorize it with partial vectors.
    """
    whole, left = Var("whole"), IndexOp("-", (N, Var("whole")))
    inside = (Define("i", IndexOp("+", (whole, Var("k")))), *body)
    guard = Guard(IndexOp("<", (Var("k"), left)), inside)
    return [
        Define("whole", IndexOp("-", (N, IndexOp("%", (N, TAIL))))),
        Loop(Kind.VECTOR, "i", 0, whole, tuple(body)),
        If(IndexOp("<", (whole, N)), (Loop(Kind.VECTOR, "k", 0, TAIL, (guard,)),)),
    ]


def lanes_in_turn(plan: BodyPlan) -> list[Statement]:
    """Return the loop over all lanes where values are added to tables after each few lanes: the
    processor adds them while it computes the next ones.
    """
    first, k, turn = Var("first"), Var("k"), TAIL if plan.light else 2 * TAIL
    left = Var("left")
    inside = (Define("i", IndexOp("+", (first, k))), *plan.lane(), *plan.writes("", k))
    rest = (
        Loop(Kind.VECTOR, "k", 0, left, inside)
        if plan.light
        else Loop(Kind.VECTOR, "k", 0, turn, (Guard(IndexOp("<", (k, left)), inside),))
    )
    whole = (Loop(Kind.VECTOR, "k", 0, turn, inside), *plan.scattered(turn, "", first))
    return [
        *plan.buffers(turn),
        Counter("first", 0),
        Loop(Kind.SERIAL, "first", None, N, whole, turn, True),
        If(
            IndexOp("<", (first, N)),
            (
                Define("left", IndexOp("min", (turn, IndexOp("-", (N, first))))),
                rest,
                *plan.scattered(left, "", first),
            ),
        ),
    ]


def function_of_body(plan: BodyPlan, inline: bool) -> list[KernelFunction]:
    """Return the functions of a body without reductions."""
    number, lane = plan.number, [*plan.lane(), *plan.writes()]
    if not plan.body.loads and not plan.body.stores:
        return [KernelFunction(f"body{number}", ROWS, ())]
    blocks = not plan.singles and not plan.light
    inner = lanes_in_blocks(lane) if blocks else [lanes_of(lane)]
    inner = lanes_in_turn(plan) if plan.scatters else inner
    rows = (Loop(Kind.SERIAL, "r", 0, ROWS_HERE, (*plan.row(), *inner)),)
    if not plan.singles:
        return [KernelFunction(f"body{number}", ROWS, rows, inline)]
    return [KernelFunction(f"rows{number}", BOTH, rows, True), *versions(number, True)]


def versions(number: int, across: bool, once: bool = False) -> list[KernelFunction]:
    """Return a body for adjacent results and, if the code differs, one for parts of one result.

    Parameters
    ----------
    number : int
    across : bool
        If true, the code for parts of one result differs.
    once : bool
        If true, the compiler should keep loaded values in registers.
    """

    def calling(name: str, flag: int, once: bool) -> KernelFunction:
        call = FunctionCall(f"rows{number}", (ROWS_HERE, N, flag), ("data", "step"))
        return KernelFunction(name, ROWS, (call,), once=once)

    functions = [calling(f"body{number}", 0, once)]
    return functions + ([calling(f"across{number}", 1, False)] if across else [])
