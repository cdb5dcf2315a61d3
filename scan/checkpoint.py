"""Loops whose gradient keeps the states between chunks of steps, and computes the others again.

A loop of n steps becomes a loop over chunks, each a loop of N steps, and a rest of 1 to N steps.
The gradient of the loop over chunks keeps the states at the start of each chunk and repeats its
steps: n / N + N states in place of n, least for N = sqrt(n) (Chen et al., 2016, "Training deep nets
with sublinear memory cost"). With a budget, N is the most for which it holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.record import replace
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import cast, maximum, sqrt
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.joining import stack
from symcomp.ops.shapes.shape import reshape, shape_tuple
from symcomp.scan.budget import Budget, read_budget, steps_within
from symcomp.scan.layout import Arguments, Layout, Results, flat_arguments, flat_results
from symcomp.scan.lengths import is_length_of, shaped
from symcomp.scan.op import Scan
from symcomp.scan.rows import Continued, FirstRows
from symcomp.scan.rules.scan_parts import ScanParts, Stacked, carry_states


def read_every(checkpoint: Any, who: str) -> int | str | Budget | None:
    """Read the argument ``checkpoint``: None, "auto", a number of steps, or a number of bytes."""
    if checkpoint is None or checkpoint == "auto":
        return checkpoint
    if isinstance(checkpoint, str):
        budget = read_budget(checkpoint)
        if budget is not None:
            return budget
    whole = isinstance(checkpoint, int | np.integer) and not isinstance(checkpoint, bool)
    if not whole or checkpoint < 1:
        raise ValueError(
            f"{who}: checkpoint is {checkpoint!r}; it must be None, 'auto', the number of steps "
            "from one state that is kept to the next, or bytes with a unit, as '64 MB'"
        )
    return int(checkpoint)


def checkpointed(
    op: Scan, arguments: Arguments, every: int | str | Budget
) -> tuple[Results, list[Any]]:
    """Return the results of ``op`` for ``arguments``, computed in chunks so that the gradient keeps
    little.

    With ``until``, a loop before it counts the steps. With ``truncate``, the steps before the last
    ``truncate`` are a loop whose gradient keeps nothing.

    Parameters
    ----------
    op : Scan
    arguments : Arguments
    every : int, "auto" or Budget
        Steps in a chunk, or what they are found by.

    Returns
    -------
    Results
        For traced states, the rows that steps made, without the initial rows.
    list of TensorVariable
        The final rows of the traced states.
    """
    layout = op.layout
    if layout.until:
        n = layout.results(op(*flat_arguments(arguments))).last
        arguments = arguments._replace(n=n)
        new = layout.results(op.body.outputs)._replace(last=None)
        body = ClosedGraph(op.body.inputs, flat_results(new))
        op = replace(op, body=body, layout=replace(layout, until=False))
    sequences = [
        x if is_length_of(arguments.n, x) else FirstRows(str(row))(x, arguments.n)
        for row, x in zip(layout.step(op.body.inputs).rows, arguments.sequences, strict=True)
    ]
    arguments = arguments._replace(sequences=sequences)
    if op.truncate < 0:
        return in_chunks(op, arguments, every)
    return _truncated(op, arguments, every)


def _truncated(
    op: Scan, arguments: Arguments, every: int | str | Budget
) -> tuple[Results, list[Any]]:
    layout, n = op.layout, arguments.n
    first = maximum(n - op.truncate, 0)
    head = ScanParts.of(op.make_node(*flat_arguments(arguments._replace(n=first))))
    head.op = replace(op, truncate=0)
    stacked = [*(Stacked(state.new, []) for state in head.traced), *head.stacked]
    carried, registers = head.carried, carry_states(head)
    head.stacked = stacked
    outputs = dict(zip(map(id, head.ends), head.apply(), strict=True))
    rest = Arguments(
        n - first,
        [stack([outputs[id(c)] for c in reversed(group)]) for group in registers],
        [outputs[id(c)] for c in carried],
        [x[first:] for x in arguments.sequences],
        arguments.captured,
    )
    last, ends = in_chunks(replace(op, truncate=-1), rest, every)
    joined = [
        Continued()(outputs[id(s)], y)
        for s, y in zip(stacked, last.traced + last.stacked, strict=True)
    ]
    n_traced = len(layout.lags)
    return Results(joined[:n_traced], last.carried, joined[n_traced:], None), ends


def in_chunks(
    op: Scan, arguments: Arguments, every: int | str | Budget
) -> tuple[Results, list[Any]]:
    """Return the results of ``op`` for ``arguments``, computed in chunks.

    Parameters
    ----------
    op : Scan
        Without condition to stop or truncation.
    arguments : Arguments
    every : int, "auto" or Budget
        Steps in a chunk, or what they are found by.

    Returns
    -------
    Results
        For traced states, the rows that steps made, without the initial rows.
    list of TensorVariable
        The final rows of the traced states.
    """
    layout, n = op.layout, arguments.n
    step = layout.step(op.body.inputs)
    size = _chunk_length(op, arguments, every)
    chunks = maximum((n - 1) // size, 0)
    main = chunks * size
    parts = [
        reshape(x[:main], [chunks, size, *shape_tuple(x)[1:]], ndim=x.ndim + 1)
        for x in arguments.sequences
    ]
    # A chunk has variables of its own for everything.
    starts = [_variable(x, (k, *x.type.shape[1:])) for x, k in
              zip(arguments.traced, layout.depths, strict=True)]  # fmt: skip
    carried = [x.type(x.name) for x in step.carried]
    rows = [_variable(p, p.type.shape[1:]) for p in parts]
    captured = [x.type(x.name) for x in step.captured]
    length = size.type("steps")
    inner = layout.results(op(length, *starts, *carried, *rows, *captured))
    ends = [b[-k:] for b, k in zip(inner.traced, layout.depths, strict=True)]
    made = [b[k:] for b, k in zip(inner.traced, layout.depths, strict=True)]
    body = ClosedGraph(
        [*starts, *carried, *rows, *captured, length],
        flat_results(Results(ends, inner.carried, made + inner.stacked, None)),
    )
    outer = Layout(((1,),) * len(starts), len(carried), len(rows), len(made) + len(inner.stacked))
    loop = replace(op, body=body, layout=outer, recompute=True, name=f"chunks of {op.name}")
    given = Arguments(
        chunks,
        [
            shape_padleft(shaped(x, v.type.shape))
            for x, v in zip(arguments.traced, starts, strict=True)
        ],
        arguments.carried,
        parts,
        [*arguments.captured, size],
    )
    done = outer.results(loop(*flat_arguments(given)))
    rest = Arguments(
        n - main,
        [buffer[-1] for buffer in done.traced],
        done.carried,
        [x[main:] for x in arguments.sequences],
        arguments.captured,
    )
    last = layout.results(op(*flat_arguments(rest)))
    ends_rows = [b[k:] for b, k in zip(last.traced, layout.depths, strict=True)] + last.stacked
    joined = [_joined(y, z) for y, z in zip(done.stacked, ends_rows, strict=True)]
    found = Results(joined[: len(made)], last.carried, joined[len(made) :], None)
    return found, [buffer[-1] for buffer in last.traced]


def _chunk_length(op: Scan, arguments: Arguments, every: int | str | Budget) -> Any:
    if isinstance(every, Budget):
        return steps_within(every, op, arguments)
    if every == "auto":
        return maximum(cast(sqrt(arguments.n), "int64"), 1)
    return as_tensor_variable(every, dtype="int64")


def _variable(like: Any, shape: Any) -> Any:
    return TensorType(like.dtype, shape)(like.name)


def _joined(chunks: Any, rest: Any) -> Any:
    """Join the rows of chunks, (chunks, steps, ...), and those of the rest."""
    lengths = shape_tuple(chunks)
    rows = reshape(chunks, [lengths[0] * lengths[1], *lengths[2:]], ndim=chunks.ndim - 1)
    return Continued()(rows, rest)
