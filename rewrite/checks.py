"""Keep the checks of lengths that a removed node did: views that compare lengths at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.shapes import shapes_of


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
