"""L-op of scans: back-propagation through time, which is a scan that runs backwards.

Let s[t] = f(s[t-1], .., s[t-k], x[t], w). The gradient of row t of s is the gradient from outside,
G[t], plus the terms that the steps t+1 .. t+k send back. The loop carries k pending sums: p_j is
the sum of the terms sent so far to the row j steps back. In step t, backwards:

    g   = G[t] + p_1
    c_j = g df/ds[t-j],  gx[t] = g df/dx[t],  gw = gw + g df/dw
    p_j = p_{j+1} + c_j

So the gradient is an ordinary loop, and can be differentiated again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from symcomp.autodiff.lop import Lop, zeros_for
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Variable
from symcomp.core.record import replace
from symcomp.core.special_types import NullType
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import minimum
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.rewrite.canonicalize.structure import zeros_in
from symcomp.rewrite.rule import elementwise
from symcomp.scan.forward import is_continuous
from symcomp.scan.layout import Arguments, Layout, Results, flat_arguments, flat_results
from symcomp.scan.lengths import is_length_of, shaped
from symcomp.scan.residuals import known_values
from symcomp.scan.undefined import undefined_before


class _Plan(NamedTuple):
    """The parts that take part: numbers of traced states, carried, sequences, captured, stacked."""

    traced: list[int]
    carried: list[int]
    sequences: list[int]
    captured: list[int]
    stacked: list[int]


def pulled(op: Any, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
    """Return the gradients of the inputs; None where there is none."""
    layout: Layout = op.layout
    arguments = layout.arguments(inputs)
    grads = layout.results(output_grads)
    if op.truncate == 0:
        return _of_starts(op, inputs, outputs, grads)
    plan = _plan(op, grads)
    if not (plan.traced or plan.carried or plan.stacked):
        return [None] * len(inputs)
    done = outputs[-1] if layout.until else arguments.n
    steps = done if op.truncate < 0 else minimum(done, constant(op.truncate))
    backward = _Backward(op, plan, arguments, list(outputs), grads, done, steps)
    found = backward.run()
    plan = backward.plan
    whole = op.truncate < 0
    reached = constant(True) if whole else done <= op.truncate
    traced: list[Any] = [None] * len(layout.lags)
    for i, pending in zip(plan.traced, found.pending, strict=True):
        depth, outside = layout.depths[i], backward.split[i].whole
        start = _at_start([p[-1:] for p in pending], None if whole else done - steps)
        traced[i] = start if outside is None else start + outside[:depth]
    carried: list[Any] = [None] * layout.n_carried
    for i, pending in zip(plan.carried, found.carried, strict=True):
        carried[i] = pending if whole else switch(reached, pending, pending.zeros_like())
    sequences: list[Any] = [None] * layout.n_sequences
    for i, rows in zip(plan.sequences, found.rows, strict=True):
        x = arguments.sequences[i]
        if whole and is_length_of(done, x):
            sequences[i] = rows[::-1]
        else:
            sequences[i] = set_subtensor(x.zeros_like()[done - steps : done], rows[::-1])
    captured: list[Any] = [None] * len(arguments.captured)
    for i, total in zip(plan.captured, found.captured, strict=True):
        captured[i] = total
    step, undefined = layout.step(op.body.inputs), backward.undefined
    for i, rows_of_state in enumerate(step.lagged):
        traced[i] = next((undefined[x] for x in rows_of_state if x in undefined), traced[i])
    rest = zip([*step.carried, *step.rows, *step.captured], [*carried, *sequences, *captured],
               strict=True)  # fmt: skip
    return [None, *traced, *(undefined.get(x, g) for x, g in rest)]


def _of_starts(op: Any, inputs: Any, outputs: Any, grads: Results) -> list[Any]:
    """Return the gradients if all steps count as constants: only initial rows and values of states
    that are read directly get one.
    """
    layout: Layout = op.layout
    done = outputs[-1] if layout.until else inputs[0]
    traced = [
        None if g is None else g[:k] for g, k in zip(grads.traced, layout.depths, strict=True)
    ]
    carried = [None if g is None else switch(done <= 0, g, g.zeros_like()) for g in grads.carried]
    return [None, *traced, *carried, *[None] * (len(inputs) - 1 - len(traced) - len(carried))]


def _at_start(pending: list[Any], left: Any) -> Any:
    """Return the gradient of the rows that a state starts from, the oldest first.

    When ``left`` steps are left out (None: none are), the pending sum p_j belongs to the row j
    steps before them: to one of the initial rows only if j > left.
    """
    depth = len(pending)
    if left is None:
        return pending[0] if depth == 1 else concatenate(pending[::-1])
    rows = concatenate([*pending, *(p.zeros_like() for p in pending)])
    first = minimum(left, depth)
    return rows[first : first + depth][::-1]


def _plan(op: Any, grads: Results) -> _Plan:
    """Choose the inputs that get a gradient, and the states and outputs that it passes through."""
    layout: Layout = op.layout
    step, numbers = layout.step(op.body.inputs), layout.step(range(len(op.body.inputs)))
    outs = layout.results(range(len(op.body.outputs)))
    new = layout.results(op.body.outputs)
    ends = [outs.traced, outs.carried, outs.stacked]
    given = [grads.traced, grads.carried, grads.stacked]
    live = [j for js, gs in zip(ends, given, strict=True) for j, g in zip(js, gs, strict=True)
            if g is not None]  # fmt: skip

    def reaches(place: int) -> bool:
        return is_continuous(op.body.inputs[place]) and any(op.reach[place][j] for j in live)

    traced = [
        i
        for i, places in enumerate(numbers.lagged)
        if is_continuous(new.traced[i])
        and (grads.traced[i] is not None or any(map(reaches, places)))
    ]
    carried = [
        i
        for i, place in enumerate(numbers.carried)
        if is_continuous(step.carried[i]) and (grads.carried[i] is not None or reaches(place))
    ]
    return _Plan(
        traced,
        carried,
        [i for i, place in enumerate(numbers.rows) if reaches(place)],
        [i for i, place in enumerate(numbers.captured) if reaches(place)],
        [j for j, g in enumerate(grads.stacked) if g is not None and is_continuous(new.stacked[j])],
    )


class _Found(NamedTuple):
    pending: list[list[Any]]
    carried: list[Any]
    rows: list[Any]
    captured: list[Any]


class _Backward:
    """The backward loop, while it is built."""

    def __init__(
        self,
        op: Any,
        plan: _Plan,
        arguments: Arguments,
        outputs: list[Any],
        grads: Results,
        done: Any,
        steps: Any,
    ) -> None:
        self._op, self.plan, self._arguments = op, plan, arguments
        self.undefined: dict[Variable, Any] = {}
        self._outputs, self._grads = outputs, grads
        self._done, self._steps = done, steps
        self._step = op.layout.step(op.body.inputs)
        self._new = op.layout.results(op.body.outputs)
        self.split = {i: _split(grads.traced[i], depth) for i, depth in enumerate(op.layout.depths)}

    def run(self) -> _Found:
        """Build the loop; the gradients of rows are in reverse order of the steps."""
        op, plan, layout = self._op, self.plan, self._op.layout
        depths = [layout.depths[i] for i in plan.traced]
        rows = [self._step.lagged[i][0] for i in plan.traced]
        pending = [
            [_like(x, f"p{j + 1}") for j in range(k)] for x, k in zip(rows, depths, strict=True)
        ]
        carried = [_like(self._step.carried[i], "p") for i in plan.carried]
        outside: list[Any] = []
        rows_of_grads: list[Any] = []
        seeds, outs = self._seeds(pending, carried, outside, rows_of_grads)
        terms = self._terms(outs, seeds)
        plan = self.plan
        totals = [_like(self._step.captured[i], "sum") for i in plan.captured]
        new_pending = [
            self._shifted(i, sums, terms) for i, sums in zip(plan.traced, pending, strict=True)
        ]
        new_carried = [terms[self._step.carried[i]] for i in plan.carried]
        new_totals = [
            t + terms[self._step.captured[i]] for t, i in zip(totals, plan.captured, strict=True)
        ]
        stacked = [terms[self._step.rows[i]] for i in plan.sequences]
        results = Results(
            [p for ps in new_pending for p in ps], new_carried + new_totals, stacked, None
        )
        states = [p for ps in pending for p in ps]
        values, given, captured = known_values(
            op,
            flat_results(results),
            {*states, *carried, *totals, *outside},
            (self._arguments, self._outputs, self._done),
        )
        sequences = [self._backwards(x) for x in given.values()]
        zeros_of = [self._first_pending(i, j) for i, k in zip(plan.traced, depths, strict=True)
                    for j in range(k)]  # fmt: skip
        starts = Arguments(
            self._steps,
            zeros_of,
            self._carried_starts() + [self._arguments.captured[i].zeros_like()
                                      for i in plan.captured],
            rows_of_grads + sequences,
            list(captured.values()),
        )  # fmt: skip
        body = ClosedGraph(
            [*states, *carried, *totals, *outside, *given, *captured],
            values,
        )
        lags = ((1,),) * len(states)
        back = Layout(lags, len(carried) + len(totals), len(outside) + len(given), len(stacked))
        loop = replace(op, body=body, layout=back, truncate=-1, name=f"grad of {op.name}")
        found = back.results(loop(*flat_arguments(starts)))
        ends = iter(found.traced)
        return _Found(
            [[next(ends) for _ in range(k)] for k in depths],
            found.carried[: len(carried)],
            found.stacked,
            found.carried[len(carried) :],
        )

    def _backwards(self, rows: Any) -> Any:
        """Return the rows of a sequence in reverse order."""
        truncate = self._op.truncate
        return (rows if truncate < 0 else rows[-truncate:])[::-1]

    def _seeds(
        self, pending: Any, carried: Any, outside: list[Any], rows_of_grads: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return the gradients of the body's outputs; ``outside`` receives their rows from outside.
        """
        plan, new = self.plan, self._new
        seeds, outs = [], []

        def row(g: Any) -> Any:
            x = TensorType(g.dtype, g.type.shape[1:])("g[t]")
            outside.append(x)
            rows_of_grads.append(self._backwards(g))
            return x

        for i, sums in zip(plan.traced, pending, strict=True):
            given = self.split[i]
            rows = given.rows if given.whole is None else given.whole[self._op.layout.depths[i] :]
            if given.whole is not None and given.rows is not None:
                rows = rows + given.rows
            seeds.append(sums[0] if rows is None else sums[0] + row(rows))
            outs.append(new.traced[i])
        for i, total in zip(plan.carried, carried, strict=True):
            seeds.append(total)
            outs.append(new.carried[i])
        for j in plan.stacked:
            seeds.append(row(self._grads.stacked[j]))
            outs.append(new.stacked[j])
        return seeds, outs

    def _terms(self, outs: list[Any], seeds: list[Any]) -> dict[Variable, Any]:
        """Return the terms that a step sends back to each of its inputs.

        Inputs with an undefined gradient are removed from the plan, and so are the inputs from
        which earlier steps make them: it only matters if their gradient is requested. States
        continue with zeros.
        """
        wanted = self._wanted()
        found = Lop(outs, wanted, seeds, None, "ignore", null_gradients="return")
        terms: dict[Variable, Any] = dict(zip(wanted, found, strict=True))
        nulls = {x: g for x, g in terms.items() if isinstance(g.type, NullType)}
        if nulls:
            terms.update((x, zeros_for(x)) for x in nulls)
            self.undefined = undefined_before(self._op, nulls)
            step = self._step
            self.plan = self.plan._replace(
                sequences=[i for i in self.plan.sequences if step.rows[i] not in self.undefined],
                captured=[i for i in self.plan.captured if step.captured[i] not in self.undefined],
            )
        return terms

    def _wanted(self) -> list[Variable]:
        plan, step = self.plan, self._step
        lagged = [x for i in plan.traced for x in step.lagged[i]]
        carried = [step.carried[i] for i in plan.carried]
        rows = [step.rows[i] for i in plan.sequences]
        return [*lagged, *carried, *rows, *(step.captured[i] for i in plan.captured)]

    def _shifted(self, i: int, sums: list[Any], terms: dict[Variable, Any]) -> list[Any]:
        """Return the pending sums after this step: each moves on by one, and the terms of the step
        are added.
        """
        lags = self._op.layout.lags[i]
        sent = dict(zip(lags, (terms[x] for x in self._step.lagged[i]), strict=True))
        shifted = []
        for j in range(1, len(sums) + 1):
            parts = [sums[j]] if j < len(sums) else []
            parts += [sent[j]] if j in sent else []
            shifted.append(parts[0] if len(parts) == 1 else parts[0] + parts[1])
        return shifted

    def _first_pending(self, i: int, j: int) -> Any:
        """Return the initial pending sum of a row: for the last row, the gradient of that row
        alone.
        """
        start, last = self._arguments.traced[i], self.split[i].last
        if j == 0 and last is not None:
            return shape_padleft(shaped(last, start.type.shape[1:]))
        return zeros([1, *shape_tuple(start)[1:]], start.dtype)

    def _carried_starts(self) -> list[Any]:
        starts = []
        for i in self.plan.carried:
            g, end = self._grads.carried[i], self._op.layout.results(self._outputs).carried[i]
            starts.append(end.zeros_like() if g is None else shaped(g, end.type.shape))
        return starts


class _Split(NamedTuple):
    """The gradient of all rows of a state: of its last row alone, of the rows that steps made, and
    of all; each may be None.
    """

    last: Any
    rows: Any
    whole: Any


def _split(g: Any, depth: int) -> _Split:
    """Split a gradient that is zero except for some rows, so that the loop reads no zeros."""
    last: list[Any] = []
    rows: list[Any] = []
    whole: list[Any] = []
    pending = [(g, False)] if g is not None else []
    while pending:
        x, behind = pending.pop()
        node = x.owner
        total = elementwise(x, "add")
        if total is not None and all(v.type == x.type for v in total.inputs):
            pending += [(v, behind) for v in total.inputs]
            continue
        written = node is not None and isinstance(node.op, IncSubtensor) and len(node.inputs) == 2
        if written and zeros_in(node.inputs[0]):
            y = node.inputs[1]
            if node.op.pattern == (-1,) and y.ndim == x.ndim - 1:
                last.append(y)
                continue
            if node.op.pattern == (Slice(depth),) and not behind and y.type.shape[0] != 1:
                pending.append((y, True))
                continue
        (rows if behind else whole).append(x)
    return _Split(*(_sum(terms) for terms in (last, rows, whole)))


def _sum(terms: list[Any]) -> Any:
    total = None
    for term in terms:
        total = term if total is None else total + term
    return total


def _like(x: Any, prefix: str) -> Any:
    return x.type(f"{prefix}({x})")
