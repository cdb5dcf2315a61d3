"""Storage dtypes in graphs: ops compute in a wider dtype, between casts, which kernels fuse."""

from __future__ import annotations

from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.storage import is_stored, is_widened, widened
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.rule import computed_by
from symcomp.rewrite.trace import Firing


def has_stored(graph: FunctionGraph) -> bool:
    """Tell whether a graph has tensors of a storage dtype."""
    return any(map(is_stored, graph.clients))


def _cast_below_transposes(x: Any, dtype: str) -> Any:
    """Cast what ``x`` is a transpose of, so that both orders of a matrix share a copy."""
    node = computed_by(x, DimShuffle)
    if node is None:
        return cast(x, dtype)
    return node.op(_cast_below_transposes(node.inputs[0], dtype))


def widen(graph: FunctionGraph, firings: list[Firing]) -> None:
    """f(x) -> cast(f(cast(x, wider)), its dtype), of tensors of storage dtypes"""
    for node in graph.toposort():
        if not is_widened(node):
            continue
        reads_any_order = isinstance(node.op, Dot | BatchedDot)
        wide = widened(node, _cast_below_transposes if reads_any_order else cast)
        wide.source = node.source
        pairs = [
            (old, new if new.type.dtype == old.type.dtype else cast(new, old.type.dtype))
            for old, new in zip(node.outputs, wide.outputs, strict=True)
            if old in graph.clients
        ]
        for old, new in pairs:
            new.source = old.source
        graph.replace_all(pairs)
        firings.append(Firing("storage", "widen", node.source, str(node), str(wide)))
