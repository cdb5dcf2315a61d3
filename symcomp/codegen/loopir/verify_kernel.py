"""Verifier of kernels: checks each function in all ways that the shared loops call it."""

from __future__ import annotations

from collections.abc import Iterator

from symcomp.codegen.loopir.bounds import Form, facts_of
from symcomp.codegen.loopir.expressions import IndexOp, Var
from symcomp.codegen.loopir.ir import (
    BEGIN,
    BOTH,
    FINISH,
    LANES,
    MERGE,
    ROWS,
    Accumulators,
    FunctionCall,
    KernelFunction,
    Signature,
    Statement,
)
from symcomp.codegen.loopir.kernel import MOST_LANES, Loops, Role, RowFunction, Stage
from symcomp.codegen.loopir.verify import Context, Extent, LoopError, check_function

_WRITES = (Role.WRITE, Role.CHANGE, Role.LANE, Role.SCATTERED)
_TABLES = (Role.GATHERED, Role.SCATTERED)
_N, _ROWS, _REST = Var("n"), Var("rows"), Var("rest")


def verify(loops: Loops) -> None:
    """Raise a LoopError if a kernel of one nest breaks an invariant.

    Parameters
    ----------
    loops : Loops
    """
    _Kernel(loops).run()


class _Kernel:
    def __init__(self, loops: Loops) -> None:
        self.sweep = loops.sweep
        self.functions = {function.name: function for function in loops.functions}
        if len(self.functions) < len(loops.functions):
            raise LoopError("two functions have the same name")
        self.order = [function.name for function in loops.functions]

    def run(self) -> None:
        for function in self.functions.values():
            self._check_calls(function)
        for body in self.sweep.bodies:
            self._check_body(body, {})
        if self.sweep.in_order is not None:
            self._check_numbers(self.sweep.in_order)
        for stage in self.sweep.stages:
            self._check_stage(stage)

    def _check_calls(self, function: KernelFunction) -> None:
        """Check that functions call only earlier ones, with the right parameters."""
        for call in _calls(function.body):
            if call.function not in self.order[: self.order.index(function.name)]:
                raise LoopError(f"function {function.name} calls {call.function}, not before it")
            signature = self.functions[call.function].signature
            tables = len(signature.tables) + len(signature.strides)
            if (len(call.numbers), len(call.tables)) != (len(signature.numbers), tables):
                raise LoopError(f"function {function.name} calls {call.function} with other things")

    def _function(self, name: str, signature: Signature) -> KernelFunction:
        function = self.functions.get(name)
        if function is None or function.signature != signature:
            raise LoopError(f"there is no function {name} that takes {signature}")
        return function

    def _check_body(self, body: RowFunction, totals: dict[int, str], lanes: bool = False) -> None:
        """Check a body, and the bodies it calls for adjacent results or for parts of one result."""
        function = self._function(body.function, ROWS)
        facts = _holds((0, _ROWS), (1, _N), *([(_N, MOST_LANES)] if lanes else []))
        extents = self._extents(body, totals, 0)
        check_function(function, Context(extents, totals, {}, facts))
        for call in _calls(function.body):
            called = self._function(call.function, BOTH)
            across = call.numbers[-1]
            assert isinstance(across, int)
            extents = self._extents(body, totals, across)
            known = {"across": across}
            check_function(called, Context(extents, totals, known, facts))

    def _extents(self, body: RowFunction, totals: dict[int, str], across: int) -> dict[int, Extent]:
        found = {}
        for array, (role, dtype) in enumerate(zip(body.roles, self.sweep.dtypes, strict=True)):
            temporary = array >= self.sweep.temporaries
            if temporary != (role is Role.LANE) and role is not Role.UNUSED:
                raise LoopError(f"array {array} has the role {role.name} in {body.function}")
            if role is Role.LANE and array not in totals:
                found[array] = Extent(dtype, None, 1 if across else _N, writes=True)
            elif role is Role.NUMBER:
                found[array] = Extent(dtype, _ROWS, 1)
            elif role in _TABLES:
                found[array] = Extent(dtype, None, 0, writes=role in _WRITES, table=True)
            elif role in (Role.READ, Role.WRITE, Role.CHANGE):
                found[array] = Extent(dtype, _ROWS, _N, writes=role in _WRITES)
        return found

    def _check_numbers(self, body: RowFunction) -> None:
        """Check that the numbers of a body are the same for all elements."""
        roles = zip(body.roles, self.sweep.stretched, strict=False)
        for array, (role, stretched) in enumerate(roles):
            if role is Role.NUMBER and not all(stretched):
                raise LoopError(f"array {array} is no one number for {body.function}")

    def _check_stage(self, stage: Stage) -> None:
        begin = self.functions.get(stage.totals[0]) if stage.totals else None
        begun = begin.body if begin is not None else ()
        arrays = [s.array for s in begun if isinstance(s, Accumulators)]
        totals = {array: self.sweep.dtypes[array] for array in arrays if array is not None}
        self._check_body(stage.along, totals, True)
        self._check_body(stage.across, totals, True)
        self._check_body(stage.section, {})
        self._check_roles(stage)
        if stage.totals:
            self._check_totals(stage, totals)
        if stage.lanes:
            self._check_lanes(stage, totals)

    def _check_roles(self, stage: Stage) -> None:
        """Check that arrays have the same role in both functions of a pass, unless they have one
        element for each result, which is a number for parts of this result.
        """
        along, across, singles = stage.along, stage.across, self.sweep.singles
        for array, roles in enumerate(zip(along.roles, across.roles, strict=True)):
            number = roles == (Role.READ, Role.NUMBER) and array in singles
            if roles[0] is not roles[1] and not number:
                names = f"{across.function} than in {along.function}"
                raise LoopError(f"array {array} has another role in {names}")

    def _check_totals(self, stage: Stage, totals: dict[int, str]) -> None:
        facts = _holds((1, _N), (_N, MOST_LANES))
        results = {
            array: Extent(dtype, None, _N, writes=True)
            for array, dtype in enumerate(self.sweep.dtypes)
            if array >= self.sweep.temporaries and stage.along.roles[array] is not Role.LANE
        }
        one = {array: Extent(e.dtype, None, 1, writes=True) for array, e in results.items()}
        begin, merge, finish = stage.totals
        context = Context({}, totals, {}, facts, begun=False)
        check_function(self._function(begin, BEGIN), context)
        check_function(self._function(merge, MERGE), Context({}, totals, {}, facts))
        function = self._function(finish, FINISH)
        check_function(function, Context(results, totals, {"across": 0}, facts))
        check_function(function, Context(one, totals, {"across": 1}, facts))

    def _check_lanes(self, stage: Stage, totals: dict[int, str]) -> None:
        facts = _holds((0, _ROWS), (0, _REST))
        found = {}
        for array, extent in self._extents(stage.across, totals, 1).items():
            role = stage.across.roles[array]
            if array < self.sweep.temporaries and role not in (Role.NUMBER, *_TABLES):
                extent = Extent(extent.dtype, _ROWS, stage.parts, _REST, extent.writes)
            elif role is Role.NUMBER:
                extent = Extent(extent.dtype, None, 1)
            found[array] = extent
        check_function(self._function(stage.lanes, LANES), Context(found, totals, {}, facts))


def _holds(*pairs: tuple) -> tuple[Form, ...]:
    """Return the facts that the first of each pair is at most the second."""
    return tuple(fact for pair in pairs for fact in facts_of(IndexOp("<=", pair)))


def _calls(body: tuple[Statement, ...]) -> Iterator[FunctionCall]:
    """Yield all calls in statements."""
    for s in body:
        if isinstance(s, FunctionCall):
            yield s
        for inner in (getattr(s, "body", ()), getattr(s, "otherwise", ())):
            yield from _calls(inner)
