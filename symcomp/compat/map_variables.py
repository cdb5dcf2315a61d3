"""``theano.scan_module.scan_utils.map_variables``: replace variables wherever they occur."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import replace
from symcomp.core.walk import graph_inputs, toposort
from symcomp.scan.op import Scan

Replacer = Callable[[Variable], Variable]


def map_variables(
    replacer: Replacer, graphs: Sequence[Variable], additional_inputs: Sequence[Variable] = ()
) -> list[Variable]:
    """Copy graphs, replacing each variable by the result of ``replacer``.

    Parameters
    ----------
    replacer : callable
        Takes a variable, and returns it or another one of a type that fits. It is called for each
        variable with its replaced inputs, in the steps of loops too.
    graphs : sequence of Variable
    additional_inputs : sequence of Variable
        Accepted for compatibility: variables added by the replacer need not be listed.

    Returns
    -------
    list of Variable

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.map_variables import map_variables
    >>> x = T.dscalar("x")
    >>> x.tag.doubled = True
    >>> (y,) = map_variables(lambda v: 2 * v if hasattr(v.tag, "doubled") else v, [x + 1])
    >>> float(y.eval({x: 3.0}))
    7.0
    """
    return _mapped(replacer, graphs, ())


def _mapped(
    replacer: Replacer, outputs: Sequence[Variable], kept: Sequence[Variable]
) -> list[Variable]:
    """Map variables as above; ``kept`` are arguments of an inner graph, which are replaced only
    inside it.
    """
    memo: dict[Variable, Variable] = {}

    def of(variable: Variable) -> Variable:
        if variable not in memo:
            memo[variable] = replacer(variable)
        return memo[variable]

    for node in toposort(outputs, kept):
        inputs = [of(v) for v in node.inputs]
        twin = _with_inner_graphs(replacer, node, inputs)
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            new.name = old.name
            new.tag.__dict__.update(vars(old.tag))
            memo[old] = replacer(new)
    return [of(v) for v in outputs]


def _with_inner_graphs(replacer: Replacer, node: Apply, inputs: list[Variable]) -> Apply:
    """Copy a node with other inputs, and with variables replaced in its body, if it has one."""
    body: Any = getattr(node.op, "body", None)
    if not isinstance(body, ClosedGraph):
        if list(node.inputs) == inputs:
            return node
        return node.clone_with_new_inputs(inputs, False)
    found = _mapped(replacer, body.outputs, body.inputs)
    known = set(body.inputs)
    free = [
        v
        for v in graph_inputs(found, body.inputs)
        if v not in known and not isinstance(v, Constant)
    ]
    if free and not isinstance(node.op, Scan):
        raise NotImplementedError(
            f"map_variables: the body of {node.op} would need {free}, and takes no other inputs"
        )
    op: Any = replace(node.op, body=ClosedGraph([*body.inputs, *free], found))
    return op.make_node(*inputs, *free)


__all__ = ["map_variables"]
