"""Bodies: how the graphs in an op are compiled with the function that they are in, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.ops.control.graph_op import GraphOp
from symcomp.vm.inspection import Inspector, Selects

# From the values of a graph's inputs to those of its outputs.
Run = Callable[[Sequence[Any]], list[Any]]


def _as_around(op: Op) -> None:
    """Choose nothing for the graphs of this op."""


def _nothing(op: Op) -> Sequence[tuple[int, int]]:
    return ()


@record
class Bodies:
    """How the graphs in the ops of a class (``Op.inner_graphs``) are compiled and run.

    Attributes
    ----------
    bind : callable (node, runs) -> callable
        Returns the function that computes a node; ``runs`` compute the graphs in its op.
    copies_results : bool
        If true, results of these graphs are copied, and may share memory with their inputs.
    rewrites : callable (op) -> callable or None
        Returns what maps the tags of a rewrite to whether it applies to these graphs; None: as in
        the function.
    inspector : callable (op) -> Inspector or None
        Returns the inspector of the values of these graphs, in functions of all modes.
    overwritable : callable (op) -> sequence of (int, int)
        Returns outputs of these graphs, and the inputs whose arrays they may be written over, by
        position: the caller needs these no more.
    """

    bind: Callable[[Apply, Sequence[Run]], Callable[..., Any]]
    copies_results: bool = False
    rewrites: Callable[[Any], Selects | None] = _as_around
    inspector: Callable[[Any], Inspector | None] = _as_around
    overwritable: Callable[[Any], Sequence[tuple[int, int]]] = _nothing


def _graph(node: Apply, runs: Sequence[Run]) -> Callable[..., Any]:
    (run,) = runs
    if node.op.multiple_outputs:
        return lambda *values: run(values)
    return lambda *values: run(values)[0]


#: By the class of the op; of subclasses as of their base class.
BodiesOf = Mapping[type[Op], Bodies]
OP_BODIES: BodiesOf = {GraphOp: Bodies(_graph)}
