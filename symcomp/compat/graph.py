"""``theano.gof.graph``: functions that inspect graphs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.compat.op import Op
from symcomp.compat.plain import general_toposort
from symcomp.compile.function import function
from symcomp.core import walk
from symcomp.core.node import Apply, Constant, Type, Variable

__all__ = [
    "ancestors", "Apply", "as_string", "clone", "clone_get_equiv", "Constant", "equal_computations",
    "inputs", "io_toposort", "is_in_ancestors", "is_same_graph", "list_of_nodes", "Op", "ops",
    "orphans", "stack_search", "Type", "Variable", "variables", "variables_and_orphans",
    "view_roots",
]  # fmt: skip


def stack_search(
    start: Iterable[Any],
    expand: Callable[[Any], Iterable[Any] | None],
    mode: str = "bfs",
    build_inv: bool = False,
) -> Any:
    """Return ``start`` and all that ``expand`` reaches, each once, in the order of the visits.

    Parameters
    ----------
    start : iterable
    expand : callable
        An element -> the elements that it leads to, or None.
    mode : {"bfs", "dfs"}
        Breadth first visits the element that waits longest; depth first the one added last.
    build_inv : bool
        Return also a dict: element -> the elements that led to it.
    """
    if mode not in ("bfs", "dfs"):
        raise ValueError(f"stack_search: mode is {mode!r}; it must be 'bfs' or 'dfs'")
    waiting = deque(start)
    following = waiting.popleft if mode == "bfs" else waiting.pop
    found: dict[Any, None] = {}
    inverse: dict[Any, list[Any]] = {}
    while waiting:
        element = following()
        if element in found:
            continue
        found[element] = None
        for other in expand(element) or ():
            waiting.append(other)
            inverse.setdefault(other, []).append(element)
    return (list(found), inverse) if build_inv else list(found)


def ancestors(
    variable_list: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> list[Variable]:
    """Return these variables and all that they depend on, stopping at ``blockers``.

    In Theano's order: depth first from the last variable given, through the inputs of a node from
    the first to the last.
    """
    blocked = set(blockers or ())

    def above(v: Variable) -> Iterable[Variable]:
        return () if v.owner is None or v in blocked else reversed(v.owner.inputs)

    return list(stack_search(variable_list, above, "dfs"))


def inputs(
    variable_list: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> list[Variable]:
    """Return the variables without owner, constants too, among the ``ancestors``."""
    return [v for v in ancestors(variable_list, blockers) if v.owner is None]


def io_toposort(
    inputs: Collection[Variable],
    outputs: Iterable[Variable],
    orderings: Mapping[Apply, Sequence[Apply]] | None = None,
    clients: dict[Any, list[Any]] | None = None,
) -> list[Apply]:
    """Return the nodes between ``inputs`` and ``outputs``, each after those it depends on.

    In Theano's order: level by level, a node as soon as the last node that it depends on is listed.
    """
    stop, more = set(inputs), orderings or {}

    def needs(x: Any) -> list[Any]:
        if x in stop:
            return []
        if isinstance(x, Apply):
            return [*x.inputs, *more.get(x, ())]
        return [] if x.owner is None else [x.owner]

    found = general_toposort(outputs, needs, clients=clients)
    return [x for x in found if isinstance(x, Apply)]


def list_of_nodes(inputs: Collection[Variable], outputs: Iterable[Variable]) -> list[Apply]:
    """Return the nodes between ``inputs`` and ``outputs``, those nearest to the outputs first."""
    stop = set(inputs)

    def above(node: Apply) -> list[Apply]:
        owners = [x.owner for x in node.inputs if x.owner is not None]
        return [owner for owner in owners if not stop.intersection(owner.outputs)]

    return list(stack_search([v.owner for v in outputs], above))


def ops(i: Collection[Variable], o: Iterable[Variable]) -> set[Apply]:
    """Return the set of the nodes between ``i`` and ``o``."""
    stop = set(i)
    return {v.owner for v in variables(stop, o) if v.owner is not None and v not in stop}


def variables(i: Collection[Variable], o: Iterable[Variable]) -> list[Variable]:
    """Return the variables between ``i`` and ``o``, including the elements of both that are
    reached.

    In the order of ``ancestors``; after the inputs of a node come its outputs.
    """
    stop = set(i)

    def around(v: Variable) -> Iterable[Variable]:
        if v.owner is None or v in stop:
            return ()
        return reversed([*v.owner.inputs, *v.owner.outputs])

    return list(stack_search(o, around, "dfs"))


def orphans(i: Collection[Variable], o: Iterable[Variable]) -> list[Variable]:
    """Return the variables without owner between ``i`` and ``o`` that are not in ``i``."""
    known = set(i)
    return [v for v in variables(known, o) if v.owner is None and v not in known]


def variables_and_orphans(
    i: Collection[Variable], o: Iterable[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Return ``variables(i, o)`` and ``orphans(i, o)``."""
    o = list(o)
    return variables(i, o), orphans(i, o)


def clone_get_equiv(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
    memo: dict[Any, Any] | None = None,
) -> dict[Any, Any]:
    """Copy the graph between ``inputs`` and ``outputs``.

    Returns
    -------
    dict
        From variables and nodes to their copies; ``memo``, which may have some already.
    """
    equivalent: dict[Any, Any] = {} if memo is None else memo
    for given, copied in ((inputs, copy_inputs), (orphans(inputs, outputs), copy_orphans)):
        for v in given:
            equivalent.setdefault(v, v.clone() if copied else v)
    for node in io_toposort(inputs, outputs):
        if node in equivalent:
            continue
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
    """Copy the graph between ``i`` and ``o``; return the copies of both."""
    copy_orphans = copy_inputs if copy_orphans is None else copy_orphans
    equivalent = clone_get_equiv(i, o, copy_inputs, copy_orphans)
    return [[equivalent[v] for v in i], [equivalent[v] for v in o]]


def as_string(
    i: Collection[Variable],
    o: Sequence[Variable],
    leaf_formatter: Callable[[Variable], str] = str,
    node_formatter: Callable[[Apply, list[str]], str] | None = None,
) -> list[str]:
    """Return the text of each of ``o`` as an expression of ``i``; shared parts are printed once, as
    ``*1``.
    """
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
    """Tell whether both are computed alike, if pairs in ``givens`` are considered equal."""
    return walk.is_same_graph(var1, var2, givens=dict(givens or {}))


def equal_computations(
    xs: Sequence[Variable],
    ys: Sequence[Variable],
    in_xs: Sequence[Variable] | None = None,
    in_ys: Sequence[Variable] | None = None,
) -> bool:
    """Tell whether each of ``xs`` computes the same as that of ``ys``, with ``in_xs`` for
    ``in_ys``.
    """
    givens = dict(zip(in_xs or (), in_ys or (), strict=True))
    return len(xs) == len(ys) and all(
        x.type == y.type and walk.is_same_graph(x, y, givens=givens)
        for x, y in zip(xs, ys, strict=True)
    )


def is_in_ancestors(l_node: Apply, f_node: Apply) -> bool:
    """Tell whether ``l_node`` is, or needs the results of, ``f_node``."""
    return l_node is f_node or f_node in walk.toposort(l_node.inputs)


def view_roots(r: Variable) -> list[Variable]:
    """Return the variables that ``r`` may be a view of."""
    if r.owner is None:
        return [r]
    node = r.owner
    viewed = node.op.view_map.get(node.outputs.index(r), ())
    return [root for i in viewed for root in view_roots(node.inputs[i])] or [r]


def shape_of_variables(
    fgraph: Any, input_shapes: Mapping[Variable, Sequence[int]]
) -> dict[Variable, tuple[int, ...]]:
    """Return the shapes of all tensors of a graph, from those of its inputs."""
    known = [v for v in variables(fgraph.inputs, fgraph.outputs) if hasattr(v, "shape")]
    f = function(fgraph.inputs, [v.shape for v in known], on_unused_input="ignore")
    # The values do not matter: all elements are one.
    values = [np.broadcast_to(np.ones((), v.dtype), input_shapes[v]) for v in fgraph.inputs]
    return {v: tuple(map(int, n)) for v, n in zip(known, f(*values), strict=True)}
