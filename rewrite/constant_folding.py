"""Constant folding: evaluate nodes whose inputs are all constant."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Constant
from symcomp.core.storage import bound
from symcomp.core.tensor import TensorType
from symcomp.errors import SymcompError

# Larger results, in bytes, are computed in each call rather than kept.
LARGEST = 1 << 20


def folded(node: Apply) -> list[Constant]:
    """Return the outputs of a node, whose inputs are all constant, as constants.

    Empty if the node is not to be folded: its result would be large, it has side effects, or it
    fails; then the call must raise the error, with the user's line.
    """
    if not node.inputs or node.op.destroy_map or node.op.has_effects:
        return []
    if not all(map(_small, _types(node))):
        return []
    try:
        with np.errstate(all="ignore"):
            result = bound(node)(*(x.data for x in node.inputs))
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError):
        return []
    values = result if node.op.multiple_outputs else (result,)
    return [_constant(out, value) for out, value in zip(node.outputs, values, strict=True)]


def _types(node: Apply) -> list[Any]:
    """Return the types of the outputs, with the lengths that follow from the values of the inputs.

    A node may have been built before its inputs were known: its types then lack lengths.
    """
    types = [out.type for out in node.outputs]
    if not any(isinstance(t, TensorType) and None in t.shape for t in types):
        return types
    try:
        return list(node.op.output_types(*map(_exact, node.inputs)))
    except (ArithmeticError, LookupError, SymcompError, TypeError, ValueError):
        return types


def _exact(x: Any) -> Any:
    """Return a constant whose type has the lengths of its value."""
    if not isinstance(x.type, TensorType) or None not in x.type.shape:
        return x
    return TensorType(x.dtype, x.data.shape).make_constant(x.data)


def _small(kind: Any) -> bool:
    if not isinstance(kind, TensorType) or None in kind.shape:
        return False
    size = prod(int(n) for n in kind.shape if n is not None)
    return size * kind.numpy_dtype.itemsize <= LARGEST


def _constant(out: Any, value: Any) -> Constant:
    array = np.array(value, copy=True)
    array.setflags(write=False)
    constant: Constant = out.type.make_constant(array, out.name)
    constant.source = out.source
    return constant
