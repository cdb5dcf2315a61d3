"""Conditions, checks, printing, and ops that are graphs."""

from __future__ import annotations

from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import IfElse, LazyIfElse
from pytensor.printing import Print
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import OpWithCoreShape

import symcomp.tensor as T
from symcomp.core.record import record
from symcomp.ops.control.conditions import IfElse as Choice
from symcomp.ops.control.debugging import Print as Printed
from symcomp.pytensor_backend.dispatch import graph_of, translate
from symcomp.pytensor_backend.types import is_tensor


@translate.register(OpFromGraph)
def _graph(op: Any, node: Any, *args: Any) -> Any:
    return graph_of(op.fgraph, args)


@translate.register(OpWithCoreShape)
def _with_core_shape(op: Any, node: Any, *args: Any) -> Any:
    return graph_of(op.fgraph, args)


@translate.register(IfElse)
def _ifelse(op: Any, node: Any, condition: Any, *branches: Any) -> Any:
    return _chosen(condition, branches[: op.n_outs], branches[op.n_outs :])


@translate.register(LazyIfElse)
def _lazy_ifelse(op: Any, node: Any, condition: Any, *args: Any) -> Any:
    ways = (op.true_branch, op.false_branch)
    return _chosen(condition, *(graph_of(way.fgraph, args) for way in ways))


def _chosen(condition: Any, yes: Any, no: Any) -> list[Any]:
    """Choose a branch; only nodes that it needs are computed."""
    truth = condition if condition.dtype == "bool" else T.neq(condition, 0)
    found: list[Any] = Choice(len(yes))(truth, *yes, *no)
    return found


@translate.register(CheckAndRaise)
def _check(op: Any, node: Any, x: Any, *conditions: Any) -> Any:
    if not is_tensor(node.inputs[0].type):
        return NotImplemented
    return T.Assert(op.msg, op.exc_type)(x, *conditions)


@record
class PrintBy:
    """Shows a value as one of PyTensor's ``Print`` does."""

    op: Print

    def __call__(self, printed: Printed, value: Any) -> None:
        self.op.global_fn(self.op, value)


@translate.register(Print)
def _print(op: Any, node: Any, x: Any) -> Any:
    if not is_tensor(node.inputs[0].type):
        return NotImplemented
    return Printed(op.message, op.attrs, PrintBy(op))(x)
