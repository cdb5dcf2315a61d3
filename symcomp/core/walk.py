"""Every traversal of the graph: iterative, in a deterministic order, so depth is bounded by memory
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.errors import GraphError


def toposort(
    outputs: Iterable[Variable],
    blockers: Collection[Variable] = (),
    after: Mapping[Apply, Sequence[Apply]] | None = None,
) -> list[Apply]:
    """Return the nodes that compute ``outputs``, in topological order.

    Parameters
    ----------
    outputs : iterable of Variable
    blockers : collection of Variable
        The walk does not go above these.
    after : mapping of Apply to sequence of Apply, optional
        More nodes that a node must come after.

    Raises
    ------
    GraphError
        If the graph has a cycle.
    """

    blocked = blockers if isinstance(blockers, set | dict) else set(blockers)
    done: dict[Apply, bool] = {}  # False while the node's inputs are being visited
    order: list[Apply] = []
    stack: list[Apply] = []  # each node is below those to visit before it
    for output in outputs:
        if output.owner is not None and output not in blocked:
            stack.append(output.owner)
        while stack:
            node = stack[-1]
            state = done.get(node)
            if state is not None:
                stack.pop()
                if state is False:
                    done[node] = True
                    order.append(node)
                continue
            done[node] = False
            if after is not None:
                more = after.get(node, ())
                _refuse_cycle(more, done)
                stack += [n for n in reversed(more) if n not in done]
            for v in reversed(node.inputs):
                parent = v.owner
                if parent is not None and v not in blocked:
                    state = done.get(parent)
                    if state is None:
                        stack.append(parent)
                    elif state is False:
                        _refuse_cycle([parent], done)
    return order


def _refuse_cycle(needed: Iterable[Apply], done: Mapping[Apply, bool]) -> None:
    """Raise an error if a node needs one that waits for it."""
    for node in needed:
        if done.get(node) is False:
            raise GraphError(f"the graph has a cycle through {node}")


def ancestors(outputs: Iterable[Variable], blockers: Collection[Variable] = ()) -> list[Variable]:
    """Return all variables that ``outputs`` depend on and ``outputs`` themselves, inputs first."""
    outputs = list(outputs)
    blocked = set(blockers)
    found: dict[Variable, None] = {}
    for node in toposort(outputs, blocked):
        for variable in node.inputs:
            found.setdefault(variable)
        for variable in node.outputs:
            found.setdefault(variable)
    for variable in outputs:
        found.setdefault(variable)
    return list(found)


def graph_inputs(
    outputs: Iterable[Variable], blockers: Collection[Variable] = ()
) -> list[Variable]:
    """Return the variables with no owner (constants too), and the blockers, that ``outputs`` depend
    on.
    """
    blocked = set(blockers)
    return [v for v in ancestors(outputs, blocked) if v.owner is None or v in blocked]


def depends_on(outputs: Iterable[Variable], variables: Collection[Variable]) -> bool:
    """Tell whether any of ``outputs`` is, or is computed from, one of ``variables``."""
    wanted = set(variables)
    return any(v in wanted for v in ancestors(outputs))


def clients_of(outputs: Iterable[Variable]) -> dict[Variable, list[tuple[Apply, int]]]:
    """Return, for each variable of the graph, the (node, input position) pairs that use it."""
    clients: dict[Variable, list[tuple[Apply, int]]] = {}
    for node in toposort(outputs):
        for i, variable in enumerate(node.inputs):
            clients.setdefault(variable, []).append((node, i))
    return clients


def rebuild(
    outputs: Sequence[Variable],
    replace: Mapping[Variable, Variable],
    strict: bool = True,
    node_clone: Callable[[Apply, list[Variable]], Apply] | None = None,
    only_changed: bool = True,
) -> list[Variable]:
    """Copy the graph of ``outputs`` with each key of ``replace`` exchanged for its value.

    Parameters
    ----------
    outputs : sequence of Variable
    replace : mapping of Variable to Variable
        Replacements are simultaneous: the new variables are not searched again.
    strict : bool
        Refuse replacements whose type does not fit; otherwise rebuild the nodes that depend on
        them.
    node_clone : callable (node, inputs) -> Apply, optional
        How a node is copied; by default ``node.clone_with_new_inputs``.
    only_changed : bool
        Share the parts that no replacement touches (true), or copy every node (false).

    Returns
    -------
    list of Variable
        Names, tags and source lines are kept.
    """
    if only_changed and not replace:
        return list(outputs)
    memo: dict[Variable, Variable] = dict(replace)
    for node in toposort(outputs, replace):
        inputs = [memo.get(v, v) for v in node.inputs]
        if only_changed and all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        twin = (
            node.clone_with_new_inputs(inputs, strict)
            if node_clone is None
            else node_clone(node, inputs)
        )
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            memo.setdefault(old, new)
    return [memo.get(v, v) for v in outputs]


def clone_replace(
    output: Any,
    replace: Mapping[Variable, Variable] | Iterable[tuple[Variable, Variable]] | None = None,
    strict: bool = True,
    share_inputs: bool = True,
) -> Any:
    """Copy a graph, with some of its variables replaced.

    Parameters
    ----------
    output : Variable or list or tuple or dict of Variable
        The variables to copy; the result has the same structure.
    replace : mapping or pairs of (Variable, Variable), optional
        Each key is exchanged for its value, all at once.
    strict : bool
        If true, a replacement must fit the type of what it replaces; if false, what depends on it
        is rebuilt.
    share_inputs : bool
        If false, inputs that are not replaced are copied too.

    Returns
    -------
    The copy.

    Raises
    ------
    TypeError
        If a replacement does not fit and ``strict`` is true.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, y = T.dscalars("x", "y")
    >>> z = symcomp.clone_replace(x * 2, {x: y + 1})
    >>> float(z.eval({y: 3.0}))
    8.0
    """
    pairs = dict(replace.items() if isinstance(replace, Mapping) else replace or ())
    for old, new in pairs.items():
        if not isinstance(old, Variable) or not isinstance(new, Variable):
            raise TypeError(f"clone_replace: {old!r} -> {new!r} is not a pair of variables")
        if strict:
            pairs[old] = old.type.filter_variable(new)
    if isinstance(output, dict):
        keys, roots = list(output), list(output.values())
    else:
        roots = list(output) if isinstance(output, list | tuple) else [output]
    if not share_inputs:
        for variable in graph_inputs(roots):
            if variable not in pairs and not isinstance(variable, Constant):
                pairs[variable] = variable.clone()
    copies = rebuild(roots, pairs, strict)
    if isinstance(output, dict):
        return dict(zip(keys, copies, strict=True))
    return type(output)(copies) if isinstance(output, list | tuple) else copies[0]


def is_same_graph(
    a: Variable, b: Variable, givens: Mapping[Variable, Variable] | None = None
) -> bool:
    """Tell whether the two variables are computed by the same ops in the same way from the same
    inputs.

    Parameters
    ----------
    a, b : Variable
    givens : mapping, optional
        Variables of the graph of ``a`` to be taken as equal to variables of the graph of ``b``.
    """
    classes: dict[Any, int] = {}
    group_of: dict[Variable, int] = {}

    def group(key: Any) -> int:
        return classes.setdefault(key, len(classes))

    for variable in graph_inputs([b]):
        key = variable.signature() if isinstance(variable, Constant) else variable
        group_of[variable] = group(key)
    for old, new in (givens or {}).items():
        group_of[old] = group_of.setdefault(new, group(new))
    for variable in graph_inputs([a]):
        key = variable.signature() if isinstance(variable, Constant) else variable
        group_of.setdefault(variable, group(key))
    for node in toposort([b]) + toposort([a]):
        key = (node.op, tuple(group_of[v] for v in node.inputs))
        for i, out in enumerate(node.outputs):
            group_of.setdefault(out, group((key, i)))
    return group_of[a] == group_of[b]
