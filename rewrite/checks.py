"""Checks of lengths: which ones other nodes do; views that compare lengths at run time in the place
of a removed node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.ops.control.conditions import IfElse
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.levels import DisjointSets
from symcomp.rewrite.shapes import Shapes, shapes_of


def with_lengths(name: str, x: Any, lengths: Mapping[int, Any], graph: Any) -> Any:
    """Return ``x`` with a run-time check that its axes have these lengths, unless that is known;
    None if there is nothing to compare them with. Error messages begin with ``name``.
    """
    known = shapes_of(graph).of(x)
    pairs: dict[Any, list[tuple[int, int]]] = {}
    for axis, n in lengths.items():
        m = known[axis]
        if m is n or (isinstance(m, int) and m == n):
            continue
        if isinstance(n, int):
            x = specify_shape(x, [n if a == axis else None for a in range(x.ndim)])
        elif n.owner is not None and isinstance(n.owner.op, ShapeI):
            pairs.setdefault(n.owner.inputs[0], []).append((n.owner.op.axis, axis))
        else:
            return None
    for model, found in pairs.items():
        x = SameLengths(name, tuple(found))(model, x)
    return x


def join_compared(
    found: DisjointSets[Any], node: Apply, shapes: Shapes, where: Hashable = None
) -> None:
    """Merge the sets of the lengths that a scalar function compares; they are pairs of ``where``
    and a length.
    """
    for axis in range(node.outputs[0].ndim):
        whole = [x for x in node.inputs if x.type.shape[axis] != 1]
        keys = [(where, shapes.key(x, axis)) for x in whole]
        for key in keys[1:]:
            found.join(keys[0], key)


def are_compared(x: Any, others: Iterable[Any], by: Iterable[Variable], shapes: Shapes) -> bool:
    """Tell whether ``others``, of its rank, fit ``x``, which has the shape of all: their lengths
    are known to be equal, or are compared in computing the values ``by``.
    """
    pairs = [(y, a) for y in others for a, n in enumerate(y.type.shape) if n != 1]
    unknown = [(y, a) for y, a in pairs if not shapes.same(x, a, y, a)]
    if not unknown:
        return True
    found: DisjointSets[Any] = DisjointSets()
    pending, seen = [*by], set()
    while pending:
        node = pending.pop().owner
        if node is None or node in seen or isinstance(node.op, IfElse):
            continue
        seen.add(node)
        pending += node.inputs
        if isinstance(node.op, Elemwise):
            join_compared(found, node, shapes)
    ends = ((found.find((None, shapes.key(v, a))) for v in (x, y)) for y, a in unknown)
    return all(one == other for one, other in ends)
