"""``theano.scalar.Composite``: a graph of scalar functions as one op of scalars or of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Constant, Variable
from symcomp.core.walk import clone_replace, graph_inputs, toposort
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise


class Composite:
    """The scalar functions between ``inputs`` and ``outputs``, applied to each element.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.composite import Composite
    >>> a, b = T.dscalars("a", "b")
    >>> op = Composite([a, b], [a * b + 1])
    >>> x = T.dvector("x")
    >>> op(x, 2.0).eval({x: [1.0, 3.0]})
    array([3., 7.])
    """

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str | None = None):
        self.inputs, self.outputs, self.name = list(inputs), list(outputs), name
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        for node in toposort(self.outputs, self.inputs):
            if type(node.op) is not Elemwise:
                raise TypeError(
                    f"Composite: {node.op} is no scalar function; its graph may have no other ops"
                )
        free = set(graph_inputs(self.outputs, self.inputs)) - set(self.inputs)
        unknown = [v for v in free if not isinstance(v, Constant)]
        if unknown:
            raise ValueError(f"Composite: {unknown} are neither inputs nor constants")

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != self.nin:
            raise TypeError(f"{self}: {len(inputs)} arguments for {self.nin} inputs")
        given = {old: as_tensor_variable(new) for old, new in zip(self.inputs, inputs, strict=True)}
        found = clone_replace(self.outputs, given, strict=False)
        return found[0] if self.nout == 1 else found

    def make_node(self, *inputs: Any) -> Any:
        """Return the node that computes the (first) result."""
        found = self(*inputs)
        return (found if isinstance(found, Variable) else found[0]).owner

    def __str__(self) -> str:
        return self.name or f"Composite{{{', '.join(map(str, self.outputs))}}}"


__all__ = ["Composite"]
