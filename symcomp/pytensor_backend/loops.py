"""Bodies of symcomp's loops made of PyTensor's graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.pytensor_backend.dispatch import graph_of, like
from symcomp.scan.layout import Layout
from symcomp.scan.op import Scan


def scalar_loop(op: Any, args: Sequence[Any]) -> list[Any]:
    """Repeat a scalar graph for every element, while any is not done.

    Elements that are done keep their values, as each has a loop of its own in PyTensor.

    Parameters
    ----------
    op : pytensor.scalar.loop.ScalarLoop
    args : sequence of TensorVariable
        The number of steps, the states at the start, the constants; all of one rank.
    """
    n, *rest = T.broadcast_arrays(*args)
    count = len(op.fgraph.outputs) - op.is_while
    constants = rest[count:]
    carried = [*rest[:count], T.zeros_like(n), T.zeros_like(n, dtype="bool")]
    inner, fixed = [x.type() for x in carried], [x.type() for x in (n, *constants)]
    *states, now, done = inner
    new = graph_of(op.fgraph, [*states, *fixed[1:]])
    active = T.and_(T.lt(now, fixed[0]), T.invert(done))
    news = [T.switch(active, v, s) for v, s in zip(new, states, strict=not op.is_while)]
    news.append(now + cast_to(active, now.dtype))
    news.append(T.or_(done, T.and_(active, new[-1])) if op.is_while else done)
    finished = T.all(T.or_(news[-1], T.ge(news[-2], fixed[0])))
    kept = [like(v, s) for v, s in zip(news, inner, strict=True)]
    body = ClosedGraph([*inner, *fixed], [*kept, finished])
    most = T.max(T.concatenate([T.flatten(n), T.constant([0], dtype=n.dtype)]))
    loop = Scan(body, Layout((), len(carried), 0, 0, until=True), name="scalar_loop")
    found = loop(T.cast(most, "int64"), *carried, n, *constants)
    # Without a step nothing has failed: the loop counts as done.
    ends = [T.or_(found[count + 1], T.le(n, 0))] if op.is_while else []
    return [*found[:count], *ends]


def mapped(
    function: Callable[..., Any], args: Sequence[Any], batch: int, lengths: Sequence[Any]
) -> list[Any]:
    """Apply a function of tensors to every element of stacks of them, by a loop.

    Parameters
    ----------
    function : callable
        From tensors to a sequence of tensors.
    args : sequence of TensorVariable
        Their first ``batch`` axes count the stack; they broadcast.
    batch : int
    lengths : sequence of int or TensorVariable
        Those of the stack.
    """
    rows = []
    for x in args:
        whole = T.broadcast_to(x, [*lengths, *shape_tuple(x)[batch:]])
        rows.append(T.reshape(whole, [-1, *shape_tuple(x)[batch:]], ndim=x.ndim - batch + 1))
    inner = [TensorType(x.dtype, x.type.shape[1:])() for x in rows]
    outputs = function(*inner)
    body = ClosedGraph(inner, list(outputs))
    steps = T.cast(T.shape_i(rows[0], 0), "int64")
    found = Scan(body, Layout((), 0, len(rows), len(outputs)), name="blockwise")(steps, *rows)
    return [T.reshape(z, [*lengths, *shape_tuple(z)[1:]], ndim=z.ndim - 1 + batch) for z in found]
