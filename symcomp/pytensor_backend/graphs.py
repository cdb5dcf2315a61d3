"""Graphs of PyTensor as graphs of symcomp, to be parts of larger ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs

from symcomp.pytensor_backend.dispatch import graph_of
from symcomp.pytensor_backend.mode import SYMCOMP


class Graph:
    """Outputs of PyTensor, rewritten as in mode SYMCOMP, to be applied to symcomp's variables.

    Shared variables are constants in it, with the values that they have now.

    Parameters
    ----------
    inputs, outputs : sequence of pytensor.graph.basic.Variable
    including : sequence of str
        Tags of more rewrites.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> import symcomp.tensor as T
    >>> from symcomp.pytensor_backend.graphs import Graph
    >>> x = pt.dvector("x")
    >>> total = Graph([x], [(x ** 2).sum()])
    >>> y = T.dvector("y")
    >>> total(y)[0].eval({y: [1.0, 2.0]})
    array(5.)
    """

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], including: Sequence[str] = ()
    ) -> None:
        shared = [v for v in graph_inputs(outputs, inputs) if isinstance(v, SharedVariable)]
        fixed = {v: v.type.constant_type(v.type, v.get_value(), v.name) for v in shared}
        fgraph = FunctionGraph(list(inputs), clone_replace(list(outputs), fixed), clone=True)
        free = [v for v in fgraph.inputs[len(inputs) :] if not isinstance(v, Constant)]
        if free:
            raise TypeError(f"the outputs also depend on {', '.join(map(str, free))}: pass these")
        SYMCOMP.including(*including).optimizer.rewrite(fgraph)
        self._fgraph = fgraph

    def __call__(self, *args: Any) -> list[Any]:
        found: list[Any] = graph_of(self._fgraph, args)
        return found
