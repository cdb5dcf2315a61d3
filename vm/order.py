"""The order of nodes: each after what it needs, and in-place nodes after all other readers of what
they destroy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import ancestors, toposort
from symcomp.errors import GraphError


def alias_roots(variable: Variable, without: Apply | None = None) -> set[Variable]:
    """Return the variables whose memory ``variable`` may share: itself, if it has memory of its
    own.

    Aliases reached only through outputs of ``without`` are left out.
    """
    roots: set[Variable] = set()
    seen = {variable}
    pending = [variable]
    while pending:
        v = pending.pop()
        if without is not None and v.owner is without:
            continue
        sources = aliased_inputs(v)
        if not sources:
            roots.add(v)
        for source in sources:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return roots


def aliased_inputs(variable: Variable) -> list[Variable]:
    """Return the inputs whose memory an output of a node may share."""
    node = variable.owner
    if node is None or variable.index is None:
        return []
    maps = (node.op.view_map, node.op.destroy_map)
    return [node.inputs[i] for m in maps for i in m.get(variable.index, ())]


def _aliasing_nodes(variable: Variable) -> set[Apply]:
    """Return the nodes between a variable and the memory that it may share."""
    found: set[Apply] = set()
    pending = [variable]
    while pending:
        v = pending.pop()
        sources = aliased_inputs(v)
        if sources and v.owner is not None and v.owner not in found:
            found.add(v.owner)
            pending += sources
    return found


def destroyed_inputs(node: Apply) -> list[int]:
    """Return the positions of the inputs that ``node`` overwrites."""
    return sorted({i for positions in node.op.destroy_map.values() for i in positions})


def schedule(
    graph: FunctionGraph, destroyable: Collection[Variable]
) -> tuple[list[Apply], dict[Apply, list[Apply]], set[tuple[Apply, int]]]:
    """Order the nodes of ``graph``.

    Parameters
    ----------
    graph : FunctionGraph
    destroyable : collection of Variable
        Inputs that may be overwritten.

    Returns
    -------
    order : list of Apply
    after : dict of Apply to list of Apply
        The in-place nodes, and the nodes that must come before them because they read the values
        that they destroy.
    copies : set of (Apply, int)
        Inputs of in-place nodes that must be copied first, because the value has other readers.
    """
    order = graph.toposort()
    destroyers = [node for node in order if node.op.destroy_map]
    if not destroyers:
        return order, {}, set()
    readers = _readers_by_root(order)
    after: dict[Apply, list[Apply]] = {}
    copies: set[tuple[Apply, int]] = set()
    for node in destroyers:
        for i in destroyed_inputs(node):
            roots = alias_roots(node.inputs[i])
            others = [r for root in roots for r in readers[root] if _reads(r, roots, node)]
            shown = any(roots & alias_roots(out, without=node) for out in graph.outputs)
            earlier = _aliasing_nodes(node.inputs[i])
            if shown or _must_copy(node, roots, others, earlier, destroyable):
                copies.add((node, i))
            else:
                after.setdefault(node, []).extend(others)
    try:
        return toposort(graph.outputs, graph.inputs, after), after, copies
    except GraphError:
        # Two nodes wait for each other's reading: copies make every order right.
        return order, {}, {(node, i) for node in destroyers for i in destroyed_inputs(node)}


def _reads(reader: Apply, roots: set[Variable], destroyer: Apply) -> bool:
    """True if ``reader`` reads memory of ``roots`` otherwise than through what ``destroyer`` has
    written there.
    """
    found = (alias_roots(x, without=destroyer) for x in reader.inputs)
    return reader is not destroyer and any(roots & memory for memory in found)


def _readers_by_root(order: Sequence[Apply]) -> dict[Variable, list[Apply]]:
    readers: dict[Variable, list[Apply]] = {}
    for node in order:
        for root in {r for x in node.inputs for r in alias_roots(x)}:
            readers.setdefault(root, []).append(node)
    return readers


def _must_copy(
    node: Apply,
    roots: set[Variable],
    others: list[Apply],
    earlier: set[Apply],
    destroyable: Collection[Variable],
) -> bool:
    """True if ``node`` cannot overwrite the memory of ``roots``, which ``others`` read too.

    In-place nodes among ``earlier`` have overwritten it to make what ``node`` overwrites.
    """
    if len(roots) > 1 or any(other.op.destroy_map and other not in earlier for other in others):
        return True
    (root,) = roots
    if isinstance(root, Constant) or (root.owner is None and root not in destroyable):
        return True
    outputs = set(node.outputs)
    return any(outputs & set(ancestors(other.inputs)) for other in others)
