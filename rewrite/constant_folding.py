"""Constant folding: what depends on constants alone is computed now."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant
from symcomp.core.tensor import TensorType

# A larger result is made anew at each call rather than kept: bytes.
LARGEST = 1 << 20


def constant_folding(graph: FunctionGraph) -> int:
    """Replace the outputs of nodes whose inputs are all constant; return how many nodes went away.

    A node that fails, or whose result would be large, is left to fail or be made when the function
    is called.
    """
    before = len(graph.nodes)
    for node in graph.toposort():
        if node in graph.nodes and node.inputs and _foldable(node):
            for out, value in zip(node.outputs, _values(node), strict=False):
                graph.replace(out, _constant(out, value))
    return before - len(graph.nodes)


def _values(node: Apply) -> Sequence[Any]:
    """What the node computes; nothing if it fails: a call will raise that, with the user's line."""
    try:
        with np.errstate(all="ignore"):
            result = node.op.bind(node)(*(x.data for x in node.inputs))
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError):
        return ()
    values: Sequence[Any] = result if node.op.multiple_outputs else (result,)
    return values


def _foldable(node: Apply) -> bool:
    if node.op.destroy_map or not all(isinstance(x, Constant) for x in node.inputs):
        return False
    for out in node.outputs:
        if not isinstance(out.type, TensorType) or None in out.type.shape:
            return False
        if (
            prod(n for n in out.type.shape if n is not None) * out.type.numpy_dtype.itemsize
            > LARGEST
        ):
            return False
    return True


def _constant(out: Any, value: Any) -> Constant:
    array = np.array(value, copy=True)
    array.setflags(write=False)
    constant: Constant = out.type.make_constant(array, out.name)
    constant.source = out.source
    return constant
