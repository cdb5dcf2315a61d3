"""Losses of labels: read and write one element of each row without index arrays, so that it can be
fused with passes over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType
from symcomp.core.walk import depends_on
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.indexing.gather_labels import AsRows, GatherLabels, ScatterLabels, nowhere
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, SYMBOL, Slice
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import ShapeI, shape_tuple
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import Shapes
from symcomp.rewrite.views import number

ONE_OF_EACH_ROW = (ARRAY, ARRAY)


@rule(Subtensor, why="the index of row n selects its element")
def gather_labels(node: Apply, graph: Any) -> Any:
    """x[arange(n), index] -> GatherLabels(x, index), if both are as long as x has rows; else
    GatherLabels(x, index extended)[:n]
    """
    if node.op.pattern != ONE_OF_EACH_ROW or node.inputs[0].ndim != 2:
        return None
    x, rows, index = node.inputs
    shapes = Shapes()
    if _counts_rows(rows, x, shapes) and _as_long(index, x, shapes):
        return GatherLabels((1,))(x, _column(index))
    places = _filled_up(x, rows, index, shapes)
    if places is None:
        return None
    n = places.owner.op.count
    return GatherLabels((1,))(x, _column(places))[: shape_tuple(index)[0] if n is None else n]


@rule(IncSubtensor, why="the index of row n selects its element")
def scatter_labels(node: Apply, graph: Any) -> Any:
    """inc_subtensor(zeros(n, m)[arange(n), index], y) -> ScatterLabels(x, index, y), x (n, m)"""
    zeros = computed_by(node.inputs[0], Alloc)
    if node.op.pattern != ONE_OF_EACH_ROW or node.op.inplace or zeros is None:
        return None
    z, y, rows, index = node.inputs
    if z.ndim != 2 or number(zeros.inputs[0]) != 0:
        return None
    shapes = Shapes()
    x = _of_shape(node, index, graph, shapes)
    if x is None:
        return None
    y = _one_for_all(y)
    if _counts_rows(rows, x, shapes) and _as_long(index, x, shapes):
        if y.type.shape[0] != 1 and not shapes.same(y, 0, x, 0):
            return None
        return ScatterLabels((1,))(x, _column(index), _column(y))
    places = _filled_up(x, rows, index, shapes)
    if places is None:
        return None
    y = y if y.type.shape[0] == 1 else AsRows(0.0)(_first_with_rows(x, shapes), y)
    return ScatterLabels((1,))(x, _column(places), _column(y))


@rule(SameLengths, why="an earlier variable has the same length")
def lengths_of_inputs(node: Apply, graph: Any) -> Any:
    """SameLengths(x, y) -> SameLengths(u, y), where u is an input with the same lengths"""
    x, y = node.inputs
    lengths = [Shapes().of(x)[i] for i, _ in node.op.pairs]
    nodes = [computed_by(n, ShapeI) if isinstance(n, Variable) else None for n in lengths]
    if any(n is None or n.inputs[0].owner is not None for n in nodes):
        return None
    roots = {n.inputs[0] for n in nodes if n is not None}
    if len(roots) != 1 or x in roots:
        return None
    axes = [n.op.axis for n in nodes if n is not None]
    pairs = tuple((axis, j) for axis, (_, j) in zip(axes, node.op.pairs, strict=True))
    return SameLengths(node.op.name, pairs)(roots.pop(), y)


def _of_shape(node: Apply, index: Any, graph: Any, shapes: Shapes) -> Any:
    """Return a matrix with the shape of the node's output that does not depend on it: one compared
    with the positions, or read there.
    """
    (z,) = node.outputs
    checked = computed_by(index, SameLengths)
    found = [] if checked is None else [checked.inputs[0]]
    waiting = [index]
    while waiting:
        for client, _ in graph.clients[waiting.pop()]:
            if client == "output":
                continue
            passes_on = isinstance(client.op, DimShuffle | AsRows)
            if passes_on or elementwise(client.outputs[0], "cast") is not None:
                waiting += client.outputs
            elif isinstance(client.op, Subtensor | GatherLabels):
                found.append(client.inputs[0])
    for x in found:
        alike = x.ndim == 2 and all(shapes.same(x, a, z, a) for a in (0, 1))
        if alike and not depends_on([x], [z]):
            return _before_lines(x)
    return None


def _before_lines(x: Any) -> Any:
    """Return the argument of the along-axis functions that compute x: it has the same shape."""
    while x.owner is not None and isinstance(x.owner.op, LogSoftmax | Softmax):
        x = x.owner.inputs[0]
    return x


def _filled_up(x: Any, rows: Any, index: Any, shapes: Shapes) -> Any:
    """Return positions for all rows of x, given those of the first rows, one for each of ``rows``;
    None if indexing is not known to mean this.
    """
    if index.ndim != 1:
        return None
    count = None
    if isinstance(rows, Constant):
        if not np.array_equal(rows.data, np.arange(rows.data.size)):
            return None
        if rows.data.size != 1:
            count = rows.data.size
        elif not _at_most_one(index):
            return None
    elif _ends(rows, shapes) is not shapes.of(index)[0]:
        return None
    if index.dtype not in ("int32", "int64"):
        if index.dtype == "uint64":
            return None
        index = cast(index, "int64")
    return AsRows(nowhere(index.dtype), count)(_first_with_rows(x, shapes), index)


def _at_most_one(x: Any) -> bool:
    """Tell whether a vector is known to have at most one element."""
    node = computed_by(x, Subtensor)
    if node is None or x.type.shape[0] is not None:
        return x.type.shape[0] in (0, 1)
    (part,) = node.op.pattern if len(node.op.pattern) == 1 else (None,)
    if part != Slice(SYMBOL, SYMBOL):
        return False
    start, stop = node.inputs[1:]
    after = elementwise(stop, "add")
    return after is not None and any(
        a is start and number(b) == 1 for a, b in (after.inputs, after.inputs[::-1])
    )


def _first_with_rows(x: Any, shapes: Shapes) -> Any:
    """Return the first computed variable with as many rows as x, so that its length is known early.
    """
    while x.owner is not None:
        before = (v for v in x.owner.inputs if isinstance(v.type, TensorType) and v.ndim)
        alike = next((v for v in before if shapes.same(v, 0, x, 0)), None)
        if alike is None:
            return x
        x = alike
    return x


def _one_for_all(y: Any) -> Any:
    """Return ``y``, or its single value if all its elements are the same."""
    functions = []
    x = y
    while (node := x.owner) is not None and type(node.op) is Elemwise and len(node.inputs) == 1:
        functions.append(node.op)
        x = node.inputs[0]
    filled = elementwise(x, "second")
    if filled is None or filled.inputs[1].type.shape != (1,):
        return y
    x = filled.inputs[1]
    for function in reversed(functions):
        x = function(x)
    return x


def _counts_rows(rows: Any, x: Any, shapes: Shapes) -> bool:
    """Tell whether ``rows`` is 0, 1, ... up to the number of rows of x."""
    if isinstance(rows, Constant):
        counted = rows.data.ndim == 1 and np.array_equal(rows.data, np.arange(rows.data.size))
        return counted and shapes.same(rows, 0, x, 0)
    found, length = _ends(rows, shapes), shapes.of(x)[0]
    return found is length or (isinstance(found, int) and found == length)


def _ends(rows: Any, shapes: Shapes) -> Any:
    """Return the length n if ``rows`` is arange(n), else None."""
    node = computed_by(rows, Arange)
    if node is None or number(node.inputs[0]) != 0 or number(node.inputs[1]) != 1:
        return None
    n = node.inputs[2]
    bounded = elementwise(n, "maximum")
    if bounded is not None and any(number(v) == 0 for v in bounded.inputs):
        n = next((v for v in bounded.inputs if number(v) is None), n)
    return shapes.intern(n)


def _as_long(index: Any, x: Any, shapes: Shapes) -> bool:
    if index.ndim != 1 or index.type.shape[0] == 1:
        return False
    checked = computed_by(index, SameLengths)
    if checked is not None and (0, 0) in checked.op.pairs:
        return shapes.same(checked.inputs[0], 0, x, 0)
    return shapes.same(index, 0, x, 0)


def _column(x: Any) -> Any:
    return DimShuffle(1, (0, "x"))(x)


# "picks" is an older name of the tag.
LABELS = RuleSet([gather_labels, scatter_labels], ["labels", "picks"])
LENGTHS = RuleSet([lengths_of_inputs], ["labels", "picks"])
