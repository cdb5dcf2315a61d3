"""From nodes to kernels: which ops are one loop nest, and the formula of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.codegen.c_printer import Kernel, kernel_of
from symcomp.core.node import Apply
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.formula import Formula, Result, Step
from symcomp.ops.fused import Fused
from symcomp.ops.reduce import Reduce


def _elemwise(node: Apply) -> Formula:
    count = len(node.inputs)
    step = Step(node.op.scalar, tuple(range(count)), node.outputs[0].type.dtype)
    return Formula(_dtypes(node), (), (step,), (Result(count),))


def _reduce(node: Apply) -> Formula:
    step = Step(node.op, (0,), node.outputs[0].type.dtype)
    return Formula(_dtypes(node), (), (step,), (Result(1, node.op.axes),))


def _dtypes(node: Apply) -> tuple[str, ...]:
    return tuple(x.type.dtype for x in node.inputs)


FORMULAS: dict[type, Callable[[Any], Formula]] = {
    Elemwise: _elemwise,
    Reduce: _reduce,
    Fused: lambda node: node.op.formula,
}


def formula_of(node: Apply) -> Formula | None:
    """What a node computes, with its inputs in order; None if it is no loop nest."""
    make = FORMULAS.get(type(node.op))
    return None if make is None else make(node)


def kernel_for(node: Apply) -> Kernel | None:
    """The kernel of a node; None where it runs in Python.

    Its arrays are the node's inputs and outputs, and after these the kernel's literals. An output
    without some of the axes has strides of 0 there. What is checked of shapes when the node runs in
    Python is the caller's to check: the lengths are those of the inputs, broadcast, where only axes
    whose length is statically 1 are stretched. Arrays must be aligned. Results may be written over
    inputs of the same dtype and strides if the formula reduces nothing, else overlap nothing.
    """
    formula = formula_of(node)
    if formula is None:
        return None
    return kernel_of(formula, [x.type.broadcastable for x in node.inputs])
