"""Sums with sparse rows: ``w - rate * grad`` changes the rows that the gradient has, and no others.

The gradient of ``w[i]`` is zeros with rows added to them. A term of a sum is read as such rows
together with the functions applied to them (``AppliedFunction``): only functions that map zeros to
zeros, as scaling and casts. The rows are then added to the other term, after these functions. A
factor that is not finite would have made NaN of the zeros: the functions are applied to a scalar 0
as well, and the result is added to all elements (``PlusScalar``), which is free if it is still 0.
(It is also added to the rows: an infinite factor may give NaN there instead of infinity.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import cast_to
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.plus_scalar import PlusScalar
from symcomp.ops.elementwise.scalar_math import add
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.index_pattern import is_advanced
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.canonicalize.structure import zeros_in
from symcomp.rewrite.checks import with_lengths
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.rewrite.views import is_point, number

# The most rows that are collected, and the most functions between them.
MOST_ROWS = 64
MOST_STEPS = 12


@record
class AppliedFunction:
    """One function applied to rows: ``op`` with the rows at ``place`` among its scalar ``others``.
    """

    op: Any
    place: int
    others: tuple[Any, ...]

    def __call__(self, x: Any) -> Any:
        others = [DimShuffle(s.ndim, ("x",) * x.ndim)(s) for s in self.others]
        return self.op(*others[: self.place], x, *others[self.place :])

    @property
    def exact(self) -> bool:
        """True if the function is known to map zeros to zeros."""
        values = [number(s) for s in self.others]
        divides = self.op.scalar.name == "true_div"
        return all(v is not None and math.isfinite(v) and (v or not divides) for v in values)


Functions = tuple[AppliedFunction, ...]
MINUS: Functions = (AppliedFunction(Elemwise(ROWS["neg"]()), 0, ()),)


def along(way: Functions, x: Any, dtype: str) -> Any:
    """Return ``x`` after all steps, in order."""
    for step in way:
        x = step(x)
    return cast_to(x, dtype)


@record(frozen=False)
class AddedRows:
    """A term: rows added to zeros, the last first, and scalars added to all of it (``PlusScalar``),
    each with the functions applied to it.
    """

    rows: list[tuple[Apply, Functions]]
    zeros: list[tuple[Any, Functions]]
    scalars: list[tuple[Any, Functions]]


def as_rows(x: Any, graph: Any) -> AddedRows | None:
    """Read ``x`` as rows without other clients; None if it is something else."""
    found = AddedRows([], [], [])
    pending: list[tuple[Any, Functions]] = [(x, ())]
    steps = 0
    while pending:
        v, way = pending.pop()
        steps += 1
        if zeros_in(v):
            found.zeros.append((v, way))
            continue
        node = v.owner
        if node is None or len(graph.clients.get(v, ())) > 1:
            return None
        if len(found.rows) == MOST_ROWS or steps > MOST_STEPS * (1 + len(found.rows)):
            return None
        if isinstance(node.op, PlusScalar):
            found.scalars.append((node.inputs[1], way))
            pending.append((node.inputs[0], way))
            continue
        if type(node.op) is IncSubtensor and _adds(node):
            found.rows.append((node, way))
            pending.append((node.inputs[0], way))
            continue
        parts = _parts(node)
        if parts is None:
            return None
        pending += [(part, (*steps, *way)) for part, steps in parts]
    return found if found.rows else None


def _adds(node: Apply) -> bool:
    """Tell whether the node adds to its operand, or sets places of zeros, each of them once."""
    if node.op.inplace:
        return False
    return not node.op.set or (zeros_in(node.inputs[0]) and not is_advanced(node.op.pattern))


def _parts(node: Apply) -> list[tuple[Any, Functions]] | None:
    """Return the terms that the node adds up, each with the functions applied to it; None if it is
    no such sum.
    """
    out = node.outputs[0]
    if elementwise(out, "add", "sub", "mul", "true_div", "neg", "cast") is None:
        return None
    name, inputs = node.op.scalar.name, node.inputs
    if name in ("add", "sub"):
        if any(v.type.broadcastable != out.type.broadcastable for v in inputs):
            return None
        signs: list[Functions] = [MINUS if name == "sub" and i else () for i in range(len(inputs))]
        parts = list(zip(inputs, signs, strict=True))
    elif len(inputs) == 1:
        parts = [(inputs[0], (AppliedFunction(node.op, 0, ()),))]
    else:
        places = [
            i
            for i in ((0, 1) if name == "mul" else (0,))
            if is_point(inputs[1 - i]) and inputs[i].type.broadcastable == out.type.broadcastable
        ]
        parts = [(inputs[i], (AppliedFunction(node.op, i, (inputs[1 - i],)),)) for i in places[:1]]
    return parts if parts and all(_linear(v, out.dtype) for v, _ in parts) else None


def _linear(x: Any, dtype: str) -> bool:
    """Tell whether a sum of variables like ``x`` may be converted term by term: not if it may wrap
    around.
    """
    if x.dtype == dtype:
        return dtype != "bool"
    return not dtypes.is_discrete(x.dtype) and not dtypes.is_discrete(dtype)


@rule("add", "sub", why="only the rows change: no tensor of zeros is made, and NaN stays")
def add_rows(node: Apply, graph: Any) -> Any:
    """x + s inc_subtensor(zeros[i], y) -> inc_subtensor(x[i], s y); likewise for differences, sums
    of several such terms, and factors, divisors and casts on the way
    """
    dtype, minus = node.outputs[0].dtype, node.op.scalar.name == "sub"
    for place in range(len(node.inputs) - 1, int(minus) - 1, -1):
        term = node.inputs[place]
        others = [x for i, x in enumerate(node.inputs) if i != place]
        found = as_rows(term, graph) if _linear(term, dtype) else None
        if found is None or not others or all(zeros_in(x) for x in others):
            continue
        x = others[0] if len(others) == 1 else add(*others)
        result = _updated(x, found, MINUS if minus else (), dtype, graph)
        if result is not None:
            return result
    return None


def _updated(x: Any, found: AddedRows, last: Functions, dtype: str, graph: Any) -> Any:
    """Return ``x`` plus the rows, after the functions in ``last``; None if lengths cannot be
    checked.

    Checks and scalars that keep NaN come last: then ``x`` may be overwritten if it has no other
    client.
    """
    if any(x.type.broadcastable != zeros.type.broadcastable for zeros, _ in found.zeros):
        return None
    scalars = [along(way, s, dtype) for s, way in found.scalars]
    for way, name in dict.fromkeys((way, zeros.dtype) for zeros, way in found.zeros):
        if not dtypes.is_discrete(dtype) and not all(step.exact for step in way):
            zero = TensorType(name, ()).make_constant(np.zeros((), name))
            scalars.append(along(way, zero, dtype))
    while (kept := computed_by(x, PlusScalar)) is not None and x.dtype == dtype:
        if len(graph.clients.get(x, ())) > 1:
            break
        x = kept.inputs[0]
        scalars.append(kept.inputs[1])
    z = cast_to(x, dtype)
    for node, way in reversed(found.rows):
        y = along(last, along(way, node.inputs[1], dtype), dtype)
        z = IncSubtensor(node.op.pattern, False)(z, y, *node.inputs[2:])
    for zeros, _ in found.zeros:
        z = with_lengths("sum", z, dict(enumerate(shapes_of(graph).of(zeros))), graph)
        if z is None:
            return None
    if scalars:
        z = PlusScalar()(z, scalars[0] if len(scalars) == 1 else add(*scalars))
    return z


INDEXED_UPDATES = RuleSet([add_rows])
