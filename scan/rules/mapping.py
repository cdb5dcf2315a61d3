"""Rows of Jacobians as loops, which have no states: batched for all rows at once where possible,
else a native loop.
"""

from __future__ import annotations

from typing import Any

from symcomp.autodiff.maprows import MapRows
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply
from symcomp.core.tensor import TensorType
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import reshape
from symcomp.rewrite.rule import rule
from symcomp.scan.layout import Arguments, Layout, flat_arguments
from symcomp.scan.lengths import inner_lengths, shaped
from symcomp.scan.op import Scan


@rule(MapRows, why="the rules of loops make one product of many, and the machine runs the rest")
def scan_of_map_rows(node: Apply, graph: Any) -> Any:
    """MapRows(n) -> scan over the numbers of the rows"""
    op = node.op
    k = len(op.summed)
    n, shapes, captured = node.inputs[0], node.inputs[1 : k + 1], node.inputs[k + 1 :]
    index, *rest = op.body.inputs
    added = [i for i, summed in enumerate(op.summed) if summed]
    stacked = [i for i, summed in enumerate(op.summed) if not summed]
    row = op.body.outputs
    totals = [TensorType(row[i].dtype, row[i].type.shape)("total") for i in added]
    sums = [total + row[i] for total, i in zip(totals, added, strict=True)]
    body = ClosedGraph([*totals, index, *rest], [*sums, *(row[i] for i in stacked)])
    loop = Scan(body, Layout((), len(added), 1, len(stacked)), name="rows")
    starts = [
        shaped(zeros([shapes[i][a] for a in range(row[i].ndim)], row[i].dtype), row[i].type.shape)
        for i in added
    ]
    given = Arguments(n, [], starts, [arange(n, dtype="int64")], list(captured))
    found = dict(zip([*added, *stacked], loop(*flat_arguments(given)), strict=True))
    for i, lengths in zip(stacked, inner_lengths(loop), strict=True):
        if not all(isinstance(m, int) for m in lengths):
            # If there are no rows, the lengths that only a row would determine still need a value.
            lengths = [shapes[i][a] for a in range(row[i].ndim)]
            found[i] = reshape(found[i], [n, *lengths], ndim=row[i].ndim + 1)
    return [found[i] for i in range(k)]
