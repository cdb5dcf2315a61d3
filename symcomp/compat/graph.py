"""``theano.gof.graph``: functions that look at graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.compat.op import Op
from symcomp.compile.function import function
from symcomp.core import walk
from symcomp.core.node import Apply, Constant, Type, Variable

__all__ = [
    "ancestors", "Apply", "as_string", "clone", "clone_get_equiv", "Constant", "equal_computations",
    "inputs", "io_toposort", "is_in_ancestors",
    "is_same_graph", "list_of_nodes", "Op", "ops", "orphans", "Type", "Variable", "variables",
    "variables_and_orphans", "view_roots",
]  # fmt: skip


def ancestors(
    variable_list: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> list[Variable]:
    """All variables that these depend on and themselves; not looking above ``blockers``."""
    return walk.ancestors(variable_list, blockers or ())


def inputs(
    variable_list: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> list[Variable]:
    """The variables without owner that these depend on, constants too."""
    return [v for v in ancestors(variable_list, blockers) if v.owner is None]


def io_toposort(
    inputs: Collection[Variable],
    outputs: Iterable[Variable],
    orderings: Mapping[Apply, Sequence[Apply]] | None = None,
) -> list[Apply]:
    """The nodes between ``inputs`` and ``outputs``, each after those it depends on."""
    return walk.toposort(outputs, set(inputs), orderings)


def list_of_nodes(inputs: Collection[Variable], outputs: Iterable[Variable]) -> list[Apply]:
    """The nodes between ``inputs`` and ``outputs``."""
    return io_toposort(inputs, outputs)


def ops(i: Collection[Variable], o: Iterable[Variable]) -> set[Apply]:
    """The set of the nodes between ``i`` and ``o``."""
    return set(io_toposort(i, o))


def variables(i: Collection[Variable], o: Iterable[Variable]) -> list[Variable]:
    """The variables between ``i`` and ``o``, with both."""
    return walk.ancestors([*i, *o], set(i))


def orphans(i: Collection[Variable], o: Iterable[Variable]) -> list[Variable]:
    """The variables without owner between ``i`` and ``o`` that are not in ``i``."""
    known = set(i)
    return [v for v in variables(i, o) if v.owner is None and v not in known]


def variables_and_orphans(
    i: Collection[Variable], o: Iterable[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Both."""
    o = list(o)
    return variables(i, o), orphans(i, o)


def clone_get_equiv(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool | None = None,
) -> dict[Any, Any]:
    """Copy the graph between ``inputs`` and ``outputs``; the copies of its variables and nodes."""
    copy_orphans = copy_inputs if copy_orphans is None else copy_orphans
    equivalent: dict[Any, Any] = {v: v.clone() if copy_inputs else v for v in inputs}
    for v in orphans(inputs, outputs):
        equivalent[v] = v.clone() if copy_orphans else v
    for node in io_toposort(inputs, outputs):
        twin = node.clone_with_new_inputs([equivalent[x] for x in node.inputs])
        equivalent[node] = twin
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            equivalent.setdefault(old, new)
    return equivalent


def clone(
    i: Sequence[Variable],
    o: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool | None = None,
) -> list[list[Variable]]:
    """Copy the graph between ``i`` and ``o``; the copies of both."""
    equivalent = clone_get_equiv(i, o, copy_inputs, copy_orphans)
    return [[equivalent[v] for v in i], [equivalent[v] for v in o]]


def as_string(
    i: Collection[Variable],
    o: Sequence[Variable],
    leaf_formatter: Callable[[Variable], str] = str,
    node_formatter: Callable[[Apply, list[str]], str] | None = None,
) -> list[str]:
    """How each of ``o`` is computed from ``i``; what is used twice is written once, as ``*1``."""
    nodes = io_toposort(i, o)
    uses = Counter(x.owner for node in nodes for x in node.inputs)
    uses.update(v.owner for v in o)
    numbers: dict[Apply, int] = {}
    known = set(i)

    def written(v: Variable) -> str:
        node = v.owner
        if node is None or v in known:
            return leaf_formatter(v)
        which = f"::{v.index}" if len(node.outputs) > 1 and v.index else ""
        if node in numbers:
            return f"*{numbers[node]}{which}"
        prefix = ""
        if uses[node] > 1:
            numbers[node] = len(numbers) + 1
            prefix = f"*{numbers[node]}{which} -> "
        parts = [written(x) for x in node.inputs]
        if node_formatter is not None:
            return prefix + node_formatter(node, parts)
        return f"{prefix}{node.op}({', '.join(parts)})"

    return [written(v) for v in o]


def is_same_graph(var1: Variable, var2: Variable, givens: Any = None, debug: bool = False) -> bool:
    """True if both are computed alike, with those that ``givens`` pairs taken for each other."""
    return walk.is_same_graph(var1, var2, givens=dict(givens or {}))


def equal_computations(
    xs: Sequence[Variable],
    ys: Sequence[Variable],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
) -> bool:
    """True if each of ``xs`` computes what that of ``ys`` does, with ``in_xs`` for ``in_ys``."""
    givens = dict(zip(in_xs or (), in_ys or (), strict=True))
    return len(xs) == len(ys) and all(
        x.type == y.type and walk.is_same_graph(x, y, givens=givens)
        for x, y in zip(xs, ys, strict=True)
    )


def is_in_ancestors(l_node: Apply, f_node: Apply) -> bool:
    """True if ``l_node`` is, or needs the results of, ``f_node``."""
    return l_node is f_node or f_node in walk.toposort(l_node.inputs)


def view_roots(r: Variable) -> list[Variable]:
    """The variables that ``r`` may be a view of."""
    if r.owner is None:
        return [r]
    node = r.owner
    viewed = node.op.view_map.get(node.outputs.index(r), ())
    return [root for i in viewed for root in view_roots(node.inputs[i])] or [r]


def shape_of_variables(
    fgraph: Any, input_shapes: Mapping[Variable, Sequence[int]]
) -> dict[Variable, tuple[int, ...]]:
    """The shapes of all tensors of a graph, from those of its inputs."""
    known = [v for v in variables(fgraph.inputs, fgraph.outputs) if hasattr(v, "shape")]
    f = function(fgraph.inputs, [v.shape for v in known], on_unused_input="ignore")
    # Their values are not looked at: all elements are one.
    values = [np.broadcast_to(np.ones((), v.dtype), input_shapes[v]) for v in fgraph.inputs]
    return {v: tuple(map(int, n)) for v, n in zip(known, f(*values), strict=True)}
