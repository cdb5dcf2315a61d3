"""The shapes of stacked rows, from the shapes of the body's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.evaluate import evaluate
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType
from symcomp.core.walk import graph_inputs, rebuild, toposort
from symcomp.ops.control.conditions import IfElse
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.linalg.products import Dot
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.rewrite.shapes import Shapes
from symcomp.scan.layout import Arguments, Layout
from symcomp.scan.rows import FirstRows

TOTAL = (Elemwise, DimShuffle, IfElse, Reduce, Shape, ShapeI)


def inner_lengths(op: Any) -> list[list[Any]]:
    """Return, for each stacked output and axis of its rows, an int, or an expression in inputs of
    the body.
    """
    shapes = Shapes(anywhere=True)
    return [list(shapes.of(y)) for y in op.layout.results(op.body.outputs).stacked]


def row_lengths(op: Any, node: Apply, shapes: Sequence[Any]) -> list[list[Any]]:
    """Return, for each stacked output, the lengths of its rows as expressions outside; None where
    they depend on values of single steps.
    """
    arguments, outside = op.layout.arguments(node.inputs), op.layout.arguments(shapes)
    return lengths_outside(op, arguments, outside, inner_lengths(op))


def lengths_outside(
    op: Any, arguments: Arguments, shapes: Arguments, inner: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Convert lengths in the body to expressions outside; None where they depend on values of
    single steps.

    Parameters
    ----------
    op : Scan
    arguments : Arguments
        The inputs of the node.
    shapes : Arguments
        Their shapes.
    inner : sequence of sequences of int or TensorVariable
        Lengths in terms of the body's inputs.
    """
    known, shape_of = _known_outside(op, arguments, shapes)
    # All rows have the lengths of the first one, which a step makes from the starts.
    shape_of.update(zip(op.layout.step(op.body.inputs).carried, shapes.carried, strict=True))
    return [[_outside(n, known, shape_of) for n in lengths] for lengths in inner]


def carried_lengths(op: Any, node: Apply, shapes: Sequence[Any]) -> list[Any]:
    """Return the shapes of the final carried values; None for values that are no tensors."""
    facts = Shapes(anywhere=True)
    inner = op.layout.step(op.body.inputs).carried
    new = op.layout.results(op.body.outputs).carried
    ends = op.layout.results(node.outputs).carried
    arguments, outside = op.layout.arguments(node.inputs), op.layout.arguments(shapes)
    known, shape_of = _known_outside(op, arguments, outside)
    for x, y, start in zip(inner, new, outside.carried, strict=True):
        if start is not None:
            stays = (facts.same(x, a, y, a) for a in range(x.ndim))
            shape_of[x] = [n if s else None for n, s in zip(start, stays, strict=True)]

    def length(x: Any, y: Any, axis: int, start: Any, end: Any) -> Any:
        if shape_of[x][axis] is not None:
            return start
        made = _outside(facts.of(y)[axis], known, shape_of)
        if made is None:
            return ShapeI(axis)(end)
        lengths = (as_tensor_variable(n, dtype="int64") for n in (made, start))
        return switch(arguments.n > 0, *lengths)

    return [
        None if start is None else tuple(length(x, y, a, n, end) for a, n in enumerate(start))
        for x, y, start, end in zip(inner, new, outside.carried, ends, strict=True)
    ]


def _known_outside(
    op: Any, arguments: Arguments, shapes: Arguments
) -> tuple[dict[Variable, Any], dict[Variable, Any]]:
    """Return the captured values, and the shapes of all inputs of the body but carried values, by
    the variables of the body.
    """
    step = op.layout.step(op.body.inputs)
    known = dict(zip(step.captured, arguments.captured, strict=True))
    shape_of: dict[Variable, Any] = dict(zip(step.captured, shapes.captured, strict=True))
    for lagged, shape in zip(step.lagged, shapes.traced, strict=True):
        shape_of.update((x, shape[1:]) for x in lagged)
    shape_of.update((x, s[1:]) for x, s in zip(step.rows, shapes.sequences, strict=True))
    return known, shape_of


def _outside(length: Any, known: dict[Variable, Any], shape_of: dict[Variable, Any]) -> Any:
    if isinstance(length, int):
        return length
    replace: dict[Variable, Any] = dict(known)
    for node in toposort([length]):
        if isinstance(node.op, ShapeI) and shape_of.get(node.inputs[0]) is not None:
            entry = shape_of[node.inputs[0]][node.op.axis]
            if entry is None:
                continue
            replace[node.outputs[0]] = as_tensor_variable(entry, dtype="int64")
    leaves = graph_inputs([length], replace)
    if not all(x in replace or isinstance(x, Constant) for x in leaves):
        return None
    return rebuild([length], replace, strict=False)[0]


def actual_lengths(op: Any, values: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the same as numbers, for given inputs; 0 where no step determines it."""
    _, traced, carried, sequences, captured = op.layout.arguments([None, *values])
    step = op.layout.step(op.body.inputs)
    given: dict[Variable, Any] = dict(zip(step.captured, captured, strict=True))
    given.update(zip(step.carried, carried, strict=True))
    for lagged, x in zip(step.lagged, traced, strict=True):
        given.update((y, x[0, ...]) for y in lagged)
    for y, x in zip(step.rows, sequences, strict=True):
        given[y] = np.zeros(x.shape[1:], x.dtype)
    results = []
    for lengths in inner_lengths(op):
        entries = [n if _computable(n, step) else 0 for n in lengths]
        symbols = [as_tensor_variable(n, dtype="int64") for n in entries]
        results.append(tuple(int(n) for n in evaluate(symbols, given)))
    return results


def values_of_lengths(op: Any) -> list[int]:
    """Return the inputs, by position behind the number of steps, whose elements ``actual_lengths``
    depends on: not on shapes of arrays alone.
    """
    step = op.layout.step(op.body.inputs)
    count = len(step.lagged) + len(step.carried) + len(step.rows) + len(step.captured)
    numbers = op.layout.arguments(range(-1, count))
    position: dict[Variable, int] = dict(
        zip([*step.carried, *step.captured], [*numbers.carried, *numbers.captured], strict=True)
    )
    for lagged, i in zip(step.lagged, numbers.traced, strict=True):
        position.update((x, i) for x in lagged)
    entries = [n for lengths in inner_lengths(op) for n in lengths]
    wanted = [n for n in entries if not isinstance(n, int) and _computable(n, step)]
    inner = {x for x in op.body.inputs if isinstance(x.type, TensorType)}
    by_shape = [
        node.outputs[0]
        for node in toposort(wanted)
        if isinstance(node.op, Shape | ShapeI) and node.inputs[0] in inner
    ]
    return sorted({position[x] for x in graph_inputs(wanted, by_shape) if x in position})


def _computable(length: Any, step: Any) -> bool:
    """Tell whether a length follows from shapes, from values that are the same in all steps, or
    from others by functions defined everywhere: zeros then stand for missing rows.
    """
    if isinstance(length, int):
        return True
    order = toposort([length])
    if all(isinstance(node.op, TOTAL) for node in order):
        return True
    by_shape = [node.outputs[0] for node in order if isinstance(node.op, ShapeI)]
    values = set(graph_inputs([length], by_shape)) - set(by_shape)
    return all(isinstance(x, Constant) or x in step.captured for x in values)


def is_length_of(n: Any, x: Any) -> bool:
    """Tell whether ``n`` is visibly the number of rows of ``x``."""
    rows = length_seen(x)
    if isinstance(n, Constant):
        return isinstance(rows, int) and int(n.data) == rows
    if rows is n:
        return True
    return n.owner is not None and n.owner.op == ShapeI(0) and n.owner.inputs[0] is rows


def length_seen(x: Any) -> Any:
    """Return the number of rows of ``x`` as far as its graph shows it: an int, the variable that
    counts the steps of a loop, or a tensor with as many rows.
    """
    while True:
        if x.type.shape[0] is not None:
            return x.type.shape[0]
        op = None if x.owner is None else x.owner.op
        if isinstance(op, Subtensor):
            part: Any = op.pattern[0] if op.pattern else Slice()
            base = x.owner.inputs[0]
            if part not in (Slice(), Slice(None, None, -1)):
                cut = _rows_of_loop(base, part)
                return x if cut is None else cut
            x = base
        elif isinstance(op, FirstRows):
            return x.owner.inputs[1]
        elif isinstance(op, Elemwise):
            wide = [v for v in x.owner.inputs if v.type.shape[0] != 1]
            if not wide:
                return x
            x = wide[0]
        elif isinstance(op, DimShuffle) and op.order[0] == 0:
            x = x.owner.inputs[0]
        elif isinstance(op, Dot) and x.owner.inputs[0].ndim == 2:
            x = x.owner.inputs[0]
        else:
            cut = _rows_of_loop(x, Slice())
            return x if cut is None else cut


def _rows_of_loop(x: Any, part: Any) -> Any:
    """Return the number of steps if ``part`` of ``x`` has a row for each step of the loop that
    makes it.
    """
    layout = None if x.owner is None else getattr(x.owner.op, "layout", None)
    if not isinstance(layout, Layout) or not isinstance(part, Slice) or part.step is not None:
        return None
    steps = x.owner.outputs[-1] if layout.until else x.owner.inputs[0]
    numbers = layout.results(range(len(x.owner.outputs)))
    start, stop = part.start or 0, part.stop or 0
    if not isinstance(start, int) or not isinstance(stop, int) or start < 0 or stop > 0:
        return None
    spare = start - stop
    if x.index in numbers.traced:
        spare -= layout.depths[x.index]
    elif x.index not in numbers.stacked:
        return None
    if spare:
        return None
    return int(steps.data) if isinstance(steps, Constant) else steps


def first_rows(x: Any, n: Any) -> Any:
    """Return ``x[:n]``, or ``x`` if it visibly has no more rows."""
    return x if is_length_of(n, x) else x[:n]


def shaped(x: Any, shape: Any) -> Any:
    """Return ``x`` with a type that has at least these lengths."""
    return x if TensorType(x.dtype, shape).is_super(x.type) else specify_shape(x, shape)
