"""Print graphs as trees of text: a line for each node and leaf; shared parts are printed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import record
from symcomp.core.walk import clients_of

# How nodes are labelled: by letters, numbers, addresses, or not at all.
ID_STYLES = ("CHAR", "int", "id", "auto", "")
AGAIN = "···"


@record
class TreeOptions:
    """Options of the lines of a tree; see ``symcomp.printing.debugprint``."""

    depth: int = -1
    print_type: bool = False
    ids: str = "CHAR"
    stop_on_name: bool = False
    print_clients: bool = False
    print_destroy_map: bool = True
    print_view_map: bool = True
    print_source: bool = False
    print_inner_graphs: bool = True


@record(frozen=False)
class Tree:
    """Lines of text for graphs; labels are shared between the graphs of one tree.

    Attributes
    ----------
    options : TreeOptions
    labels : dict of Apply or Variable to str
        Labels of the nodes and variables printed so far.
    values : mapping of Variable to value
        Shown beside the variables.
    positions : mapping of Apply to int
        Position of a node in the order of computing.
    describe : callable
        Returns a short text for a value.
    lines : list of str
    """

    options: TreeOptions = field(default_factory=TreeOptions)
    labels: dict[Any, str] = field(default_factory=dict)
    values: Mapping[Variable, Any] = field(default_factory=dict)
    positions: Mapping[Apply, int] = field(default_factory=dict)
    describe: Callable[[Any], str] = repr
    lines: list[str] = field(default_factory=list)
    _inner: list[Apply] = field(default_factory=list)
    _clients: dict[Variable, list[tuple[Apply, int]]] = field(default_factory=dict)

    def add(self, outputs: Sequence[Variable]) -> None:
        """Show the graph of ``outputs``, then the graphs inside its ops."""
        self._add_trees(outputs, "")
        done = 0
        while self.options.print_inner_graphs and done < len(self._inner):
            if done == 0:
                self.lines += ["", "Inner graphs:"]
            self._add_inner(self._inner[done])
            done += 1
        self._inner.clear()

    def _add_inner(self, node: Apply) -> None:
        label = self.labels[node]
        graphs = zip(node.op.inner_graphs_of(node), node.op.inner_sources(node), strict=True)
        for (inputs, outputs), sources in graphs:
            self.lines += ["", f"{node.op}{label}"]
            for outer, x in zip(sources, inputs, strict=True):
                given = "" if outer is None else f" ← {self._outside(outer)}"
                self.lines.append(f"  ← {self._line(x)}{given}")
            self._add_trees(outputs, "  → ")

    def _outside(self, variable: Variable) -> str:
        """Return the text for a variable outside of an inner graph: its op or name, and its label.
        """
        node = variable.owner
        index = f".{variable.index}" if node is not None and len(node.outputs) > 1 else ""
        text = variable if node is None else f"{node.op}{index}"
        return f"{' '.join(str(text).split())}{self.labels.get(_key(variable), '')}"

    def _add_trees(self, outputs: Sequence[Variable], head: str) -> None:
        if self.options.print_clients:
            self._clients = clients_of(outputs)
        for out in outputs:
            self._add_tree(out, head, " " * len(head))

    def _add_tree(self, root: Variable, head: str, margin: str) -> None:
        """Add the root after ``head``, and the subtree below it after ``margin``."""
        stack: list[tuple[Iterator[tuple[Variable, bool]], str]] = []
        below = self._enter(root, head, 1)
        if below is not None:
            stack.append((below, margin))
        while stack:
            rest, indent = stack[-1]
            entry = next(rest, None)
            if entry is None:
                stack.pop()
                continue
            variable, last = entry
            below = self._enter(variable, f"{indent} {'└─' if last else '├─'} ", len(stack) + 1)
            if below is not None:
                stack.append((below, f"{indent} {' ' if last else '│'} "))

    def _enter(
        self, variable: Variable, head: str, level: int
    ) -> Iterator[tuple[Variable, bool]] | None:
        """Add a line; return the inputs to go on with, each with whether it is the last."""
        options, node = self.options, variable.owner
        known = _key(variable) in self.labels
        line = self._line(variable)
        if node is None or (options.stop_on_name and variable.name is not None and level > 1):
            self.lines.append(head + line)
            return None
        if known:
            self.lines.append(f"{head}{line} {AGAIN}")
            return None
        self.lines.append(head + line + self._remarks(node))
        if node.op.inner_graphs_of(node):
            self._inner.append(node)
        if 0 <= options.depth <= level:
            return None
        return ((x, i == len(node.inputs) - 1) for i, x in enumerate(node.inputs))

    def _line(self, variable: Variable) -> str:
        """Return the text of a variable: its op or name, label, type, value."""
        node, text = variable.owner, str(variable)
        if node is not None:
            index = f".{variable.index}" if len(node.outputs) > 1 else ""
            text = f"{node.op}{index}{self._label(variable)}"
            text += f" '{variable.name}'" if variable.name is not None else ""
        else:
            kind = "const " if isinstance(variable, Constant) else ""
            text = f"{kind}{' '.join(text.split())}{self._label(variable)}"
        if self.options.print_type:
            text += f" <{variable.type}>"
        if node is not None and node in self.positions:
            text += f" #{self.positions[node]}"
        if variable in self.values:
            text += f" = {self.describe(self.values[variable])}"
        return text

    def _remarks(self, node: Apply) -> str:
        options, text = self.options, ""
        if options.print_destroy_map and node.op.destroy_map:
            text += f" d={_mapping(node.op.destroy_map)}"
        if options.print_view_map and node.op.view_map:
            text += f" v={_mapping(node.op.view_map)}"
        if options.print_clients:
            users = [c for out in node.outputs for c in self._clients.get(out, ())]
            if len(users) > 1:
                shown = ", ".join(f"{user.op}{self.labels.get(user, '')}" for user, _ in users)
                text += f" clients: {shown}"
        if options.print_source and node.source is not None:
            text += f"    [{node.source}]"
        return text

    def _label(self, variable: Variable) -> str:
        key = _key(variable)
        if key not in self.labels:
            self.labels[key] = self._new_label(key)
        return self.labels[key]

    def _new_label(self, key: Any) -> str:
        style = self.options.ids
        if style == "":
            return ""
        if style == "id":
            return f" [id {id(key):#x}]"
        n = len(self.labels)
        return f" [id {n if style == 'int' else letters(n)}]"


def _key(variable: Variable) -> Any:
    """Return the object that a label belongs to: a node, or a variable without owner."""
    return variable if variable.owner is None else variable.owner


def _mapping(table: Mapping[int, Sequence[int]]) -> str:
    """Return the text of a view or destroy map."""
    return "{" + ", ".join(f"{k}: {list(v)}" for k, v in table.items()) + "}"


def letters(n: int) -> str:
    """Return the label of number ``n``: A, B, ... Z, AA, AB, ..."""
    text = ""
    n += 1
    while n:
        n, rest = divmod(n - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
