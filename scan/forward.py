"""R-op of scans: one loop that advances the states and their tangents together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.autodiff.rop import Rop
from symcomp.core import dtype as dtypes
from symcomp.core.closed import ClosedGraph
from symcomp.core.record import replace
from symcomp.core.special_types import NullType
from symcomp.core.tensor import TensorVariable
from symcomp.scan.layout import (
    Arguments,
    BodyInputs,
    Layout,
    Results,
    flat_arguments,
    flat_body_inputs,
    flat_results,
)
from symcomp.scan.lengths import shaped
from symcomp.scan.undefined import undefined_after


def is_continuous(x: Any) -> bool:
    """Tell whether a variable is a floating or complex tensor."""
    return isinstance(x, TensorVariable) and not dtypes.is_discrete(x.dtype)


def pushed(op: Any, inputs: Sequence[Any], outputs: Any, tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of the outputs; None where there is none.

    The loop has the states of the scan, followed by their tangents: with s[t] = f(s[t-1], x[t]),
    ds[t] = df/ds ds[t-1] + df/dx dx[t].
    """
    layout: Layout = op.layout
    tangents = [
        shaped(dx, x.type.shape) if dx is not None and is_continuous(x) else None
        for x, dx in zip(inputs, tangents, strict=True)
    ]
    arguments, moves = layout.arguments(inputs), layout.arguments(tangents)
    step, new = layout.step(op.body.inputs), layout.results(op.body.outputs)
    moving = _moving(op, moves)
    traced = [i for i, on in enumerate(moving.traced) if on]
    carried = [i for i, on in enumerate(moving.carried) if on]
    sequences = [i for i, dx in enumerate(moves.sequences) if dx is not None]
    captured = [i for i, dx in enumerate(moves.captured) if dx is not None]
    shadow = BodyInputs(
        [[x.type(_d(x)) for x in step.lagged[i]] for i in traced],
        [step.carried[i].type(_d(step.carried[i])) for i in carried],
        [step.rows[i].type(_d(step.rows[i])) for i in sequences],
        [step.captured[i].type(_d(step.captured[i])) for i in captured],
    )
    sources = BodyInputs(
        [step.lagged[i] for i in traced],
        [step.carried[i] for i in carried],
        [step.rows[i] for i in sequences],
        [step.captured[i] for i in captured],
    )
    stacked = [j for j, on in enumerate(moving.stacked) if on]
    primal = [new.traced[i] for i in traced] + [new.carried[i] for i in carried]
    primal += [new.stacked[j] for j in stacked]
    places = layout.results(range(len(op.body.outputs)))
    moved = [places.traced[i] for i in traced] + [places.carried[i] for i in carried]
    moved += [places.stacked[j] for j in stacked]
    derived, undefined = _derived(
        op, primal, moved, flat_body_inputs(sources), flat_body_inputs(shadow)
    )
    d_traced, rest = derived[: len(traced)], derived[len(traced) :]
    d_carried, d_stacked = rest[: len(carried)], rest[len(carried) :]
    body = ClosedGraph(
        flat_body_inputs(_both(step, shadow)),
        flat_results(
            Results(
                new.traced + d_traced, new.carried + d_carried, new.stacked + d_stacked, new.last
            )
        ),
    )
    wide = Layout(
        layout.lags + tuple(layout.lags[i] for i in traced),
        layout.n_carried + len(carried),
        layout.n_sequences + len(sequences),
        layout.n_stacked + len(stacked),
        layout.until,
    )
    starts = Arguments(
        arguments.n,
        arguments.traced + [_start(moves.traced[i], arguments.traced[i]) for i in traced],
        arguments.carried + [_start(moves.carried[i], arguments.carried[i]) for i in carried],
        arguments.sequences + [moves.sequences[i] for i in sequences],
        arguments.captured + [moves.captured[i] for i in captured],
    )
    loop = replace(op, body=body, layout=wide)
    results = wide.results(loop(*flat_arguments(starts)))
    found = Results(
        _placed(traced, results.traced[len(layout.lags) :], len(layout.lags)),
        _placed(carried, results.carried[layout.n_carried :], layout.n_carried),
        _placed(stacked, results.stacked[layout.n_stacked :], layout.n_stacked),
        None,
    )
    tangents_of = flat_results(found) + [None] * layout.until
    return [undefined.get(j, dy) for j, dy in enumerate(tangents_of)]


def _derived(
    op: Any, primal: list[Any], places: list[int], sources: list[Any], shadow: list[Any]
) -> tuple[list[Any], dict[int, Any]]:
    """Return the tangents of one step, zero where they are undefined, and the null tangents of the
    body's outputs, by number, over all steps.
    """
    found = Rop(primal, sources, shadow, "ignore", null_gradients="return")
    pairs = list(zip(places, found, strict=True))
    nulls = {j: dy for j, dy in pairs if isinstance(dy.type, NullType)}
    tangents = [y.zeros_like() if j in nulls else dy
                for y, (j, dy) in zip(primal, pairs, strict=True)]  # fmt: skip
    return tangents, undefined_after(op, nulls) if nulls else {}


def _moving(op: Any, moves: Arguments) -> Results:
    """Return which states and outputs have a tangent that is not zero."""
    layout: Layout = op.layout
    new = layout.results(op.body.outputs)
    numbers = layout.step(range(len(op.body.inputs)))
    places = [*numbers.lagged, *([i] for i in numbers.carried)]
    given = [*moves.traced, *moves.carried]
    start = [i for place, dx in zip(places, given, strict=True) if dx is not None for i in place]
    rest = zip([*numbers.rows, *numbers.captured], [*moves.sequences, *moves.captured], strict=True)
    start += [i for i, dx in rest if dx is not None]
    on = [
        is_continuous(y) and any(op.reach[i][j] for i in start)
        for j, y in enumerate(op.body.outputs)
    ]
    for state, (dx, y) in enumerate(zip(given, [*new.traced, *new.carried], strict=True)):
        on[state] = on[state] or (dx is not None and is_continuous(y))
    return layout.results(on)


def _both(step: BodyInputs, shadow: BodyInputs) -> BodyInputs:
    return BodyInputs(
        step.lagged + shadow.lagged,
        step.carried + shadow.carried,
        step.rows + shadow.rows,
        step.captured + shadow.captured,
    )


def _start(tangent: Any, x: Any) -> Any:
    return x.zeros_like() if tangent is None else tangent


def _placed(places: Sequence[int], values: Sequence[Any], length: int) -> list[Any]:
    found = dict(zip(places, values, strict=True))
    return [found.get(i) for i in range(length)]


def _d(x: Any) -> str | None:
    return None if x.name is None else f"d{x.name}"
