"""Constant folding: evaluate nodes whose inputs are all constant."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Constant
from symcomp.core.tensor import TensorType

# Larger results, in bytes, are computed in each call rather than kept.
LARGEST = 1 << 20


def folded(node: Apply) -> list[Constant]:
    """Return the outputs of a node, whose inputs are all constant, as constants.

    Empty if the node is not to be folded: its result would be large, it has side effects, or it
    fails; then the call must raise the error, with the user's line.
    """
    if not node.inputs or node.op.destroy_map or node.op.has_effects:
        return []
    if not all(map(_small, node.outputs)):
        return []
    try:
        with np.errstate(all="ignore"):
            result = node.op.bind(node)(*(x.data for x in node.inputs))
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError):
        return []
    values = result if node.op.multiple_outputs else (result,)
    return [_constant(out, value) for out, value in zip(node.outputs, values, strict=True)]


def _small(out: Any) -> bool:
    if not isinstance(out.type, TensorType) or None in out.type.shape:
        return False
    size = prod(int(n) for n in out.type.shape if n is not None)
    return size * out.type.numpy_dtype.itemsize <= LARGEST


def _constant(out: Any, value: Any) -> Constant:
    array = np.array(value, copy=True)
    array.setflags(write=False)
    constant: Constant = out.type.make_constant(array, out.name)
    constant.source = out.source
    return constant
