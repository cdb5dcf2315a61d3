"""Storage dtypes: arrays hold them, and symcomp's ops compute in a wider dtype and round results.

`rewrite/storage.py` puts the conversions into graphs. Where it has not been applied, ``bound``
converts values around ``perform``; nothing else computes such a node. Ops that only move elements,
and users' ops, get the arrays as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.dtype import STORAGE
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import replace


def is_stored(x: Any) -> bool:
    """Tell whether a variable is a tensor of a storage dtype."""
    return getattr(x.type, "dtype", None) in STORAGE and hasattr(x.type, "numpy_dtype")


def is_widened(node: Apply) -> bool:
    """Tell whether a node is computed in a wider dtype than its inputs or outputs have."""
    if not any(map(is_stored, node.inputs)) and not any(map(is_stored, node.outputs)):
        return False
    op = node.op
    own = type(op).__module__.startswith("symcomp.ops.")
    return own and not op.moves and not op.destroy_map


def widened(node: Apply, convert: Callable[[Any, str], Any]) -> Apply:
    """Return the node in wider dtypes; ``convert(x, dtype)`` converts an input to one."""
    op: Op = node.op
    names = getattr(type(op), "__fields__", None)
    fields = {} if names is None else {name: getattr(op, name) for name in names.names}
    wide = {k: STORAGE[v] for k, v in fields.items() if type(v) is str and v in STORAGE}
    inputs = [convert(x, STORAGE[x.type.dtype]) if is_stored(x) else x for x in node.inputs]
    return (replace(op, **wide) if wide else op).make_node(*inputs)


def bound(node: Apply) -> Callable[..., Any]:
    """Return ``bind`` of the node's op, between conversions where it is widened."""
    if not is_widened(node):
        plain: Callable[..., Any] = node.op.bind(node)
        return plain
    wide = widened(node, lambda x, dtype: x.type.clone(dtype=dtype).make_variable())
    compute = wide.op.bind(wide)
    given = [(i, x.type.numpy_dtype) for i, x in enumerate(wide.inputs) if x is not node.inputs[i]]
    made = [
        (i, z.type.numpy_dtype) for i, z in enumerate(node.outputs)
        if z.type.dtype != wide.outputs[i].type.dtype
    ]  # fmt: skip

    def converting(*values: Any) -> Any:
        arguments = list(values)
        for i, dtype in given:
            arguments[i] = values[i].astype(dtype)
        found = compute(*arguments)
        results = list(found) if node.op.multiple_outputs else [found]
        for i, dtype in made:
            results[i] = results[i].astype(dtype)
        return tuple(results) if node.op.multiple_outputs else results[0]

    return converting
