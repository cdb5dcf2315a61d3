"""html: a page with a function's graph before and after rewriting, times, lines, and C."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from symcomp.codegen.kernel import whole_kernel
from symcomp.compile.callable import Function
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.sparse_values import is_sparse_value, pattern_picture
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.cvm.kernels import formula_of
from symcomp.drawing.graph import DrawnEdge, DrawnGraph, DrawnNode, Measure
from symcomp.drawing.page import Table, as_html
from symcomp.printing.plain import pp
from symcomp.printing.values import min_informative_str
from symcomp.profiling.text import duration, shortened, size
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Program
from symcomp.vm.tally import Counted

AFTER, BEFORE = "after rewriting", "before rewriting"
# The most nodes that are drawn: the last ones.
MOST_DRAWN = 1500
LONGEST_LABEL, LONGEST_C = 34, 20_000
TIME, MEMORY, RUNS = (
    Measure("time", duration),
    Measure("memory", size),
    Measure("runs", "{:.0f}".format),
)


def html(obj: Any, path: str | os.PathLike[str] | None = None) -> str | None:
    """Write a page with the graph of a function or of expressions, in one file that loads no other.

    The page shows the graph after rewriting and the graph as it was written beside it; a click on a
    node shows its types, your line that made it, the memory of its outputs, and the C generated for
    it, and marks the nodes of the same line in the other graph. Loops and fused kernels are closed,
    and a double click opens them. With ``profile=True`` nodes are coloured by the time they took.

    Parameters
    ----------
    obj : Function, FunctionGraph, Variable, or list of Variable
    path : path, optional
        The file to write. None: the page is returned.

    Returns
    -------
    str or None

    Raises
    ------
    TypeError
        If ``obj`` has no graph.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.log(1 + T.exp(x)).sum())
    >>> page = symcomp.printing.html(f)
    >>> page.startswith("<!DOCTYPE html>"), "before rewriting" in page
    (True, True)
    """
    pages = _Pages()
    beside, tables, facts = "", [], []
    if isinstance(obj, Function):
        pages.add_function(obj)
        title = f"Function {obj.name}"
        beside = BEFORE if obj.maker.original else ""
        tables = [_rewrites(obj)]
        facts = _facts(obj)
    else:
        outputs = _outputs(obj)
        title = shortened(pp(*outputs), 100) if len(toposort(outputs)) < 50 else "Graph"
        pages.add("graph", outputs)
    text = as_html(title, pages.graphs, tables, facts, beside)
    if path is None:
        return text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return None


def _outputs(obj: Any) -> list[Variable]:
    outputs = obj.outputs if isinstance(obj, FunctionGraph) else obj
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    if not outputs or not all(isinstance(y, Variable) for y in outputs):
        raise TypeError(
            f"html: {obj!r} is a {type(obj).__name__}; a function, a FunctionGraph, a variable or "
            "a list of variables was expected"
        )
    return outputs


class Ran(NamedTuple):
    """The nodes of a program: the counts and the instruction of each, and the counts of its inner
    program.
    """

    counted: Mapping[Apply, Counted]
    steps: Mapping[Apply, str]
    inner: Mapping[Apply, Any]

    @classmethod
    def of(cls, program: Program, tally: Any) -> Ran:
        """Collect the data of a program and its tally; None: without counts."""
        positions = {
            step.node: i
            for i, step in enumerate(program.instructions)
            if step.node is not None and step.opcode in (Opcode.CALL, Opcode.BRANCH)
        }
        steps = {node: f"{i}: {program.instructions[i].line()}" for node, i in positions.items()}
        if tally is None:
            return cls({}, steps, {})
        found = {entry.position: entry for entry in tally.counted()}
        counted = {node: found[i] for node, i in positions.items() if i in found}
        inside = {position: inner for (position, _), (_, inner) in tally.inner.items()}
        inner = {node: inside[i] for node, i in positions.items() if i in inside}
        return cls(counted, steps, inner)


class _Pages:
    """The graphs of a page; inner graphs follow the one that contains them."""

    def __init__(self) -> None:
        self.graphs: list[DrawnGraph] = []
        self._titles: set[str] = set()

    def add_function(self, f: Function) -> None:
        """Add the graphs of a function, with the counts of its instructions."""
        tally = None if f.profiled is None else f.profiled.tally
        names = _output_names(f)
        self.add(AFTER, f.maker.fgraph.outputs, Ran.of(f.program, tally), names)
        if f.maker.original:
            self.add(BEFORE, f.maker.original, names=names)

    def add(
        self,
        title: str,
        outputs: Sequence[Any],
        ran: Ran | None = None,
        names: Sequence[str] = (),
        outside: Mapping[Variable, str] | None = None,
    ) -> str:
        """Add a graph and its inner graphs; return its title, which may get a number."""
        title = self._unused(title)
        place = len(self.graphs)
        order = toposort(outputs)[-MOST_DRAWN:]
        ran = ran or Ran({}, {}, {})
        drawn = _Drawn(order, ran, outside or {})
        self.graphs.append(DrawnGraph(title, (), ()))
        for node in order:
            graphs = zip(node.op.inner_graphs_of(node), node.op.inner_sources(node), strict=True)
            for i, ((inputs, inner), sources) in enumerate(graphs):
                name = f"{title} / {shortened(str(node.op), LONGEST_LABEL)}"
                inside = None
                if node in ran.inner:  # the graph that ran, with its counts
                    tally = ran.inner[node]
                    program, inside = tally.program, Ran.of(tally.program, tally)
                    inputs, inner = _inputs_of(program), _outputs_of(program)
                given = zip(inputs, sources, strict=False)
                outer = {x: _edge_text(y) for x, y in given if y is not None}
                opened = self.add(name, inner, inside, outside=outer)
                if i == 0:
                    drawn.opens[node] = opened
        self.graphs[place] = drawn.graph(title, outputs, names)
        return title

    def _unused(self, title: str) -> str:
        found, k = title, 1
        while found in self._titles:
            k += 1
            found = f"{title} ({k})"
        self._titles.add(found)
        return found


class _Drawn:
    """A drawn graph: its nodes in order."""

    def __init__(
        self,
        order: Sequence[Apply],
        ran: Ran,
        outside: Mapping[Variable, str],
    ) -> None:
        self.opens: dict[Apply, str] = {}
        self._order, self._counted, self._steps = order, ran.counted, ran.steps
        self._outside = outside
        self._names: dict[Any, str] = {node: f"n{i}" for i, node in enumerate(order)}
        self._nodes: list[DrawnNode] = []
        self._edges: list[DrawnEdge] = []

    def graph(self, title: str, outputs: Sequence[Any], names: Sequence[str]) -> DrawnGraph:
        """Return the drawing."""
        for node in self._order:
            for x in node.inputs:
                self._edges.append(DrawnEdge(self._source(x), self._names[node], _edge_text(x)))
            self._nodes.append(self._node(node))
        for k, y in enumerate(outputs):
            name = f"out{k}"
            self._edges.append(DrawnEdge(self._source(y), name, _edge_text(y)))
            known = names[k] if k < len(names) else ""
            label = f"{shortened(known or y.name or f'output {k}', LONGEST_LABEL)}\n{y.type}"
            self._nodes.append(DrawnNode(name, label, "output", {}, [("type", str(y.type))]))
        measures = [MEMORY]
        if self._counted:
            measures = [TIME, MEMORY, RUNS]
        return DrawnGraph(title, self._nodes, self._edges, measures)

    def _source(self, x: Variable) -> str:
        """Return the id of the box that ``x`` comes from; a leaf gets its box when it is first
        needed.
        """
        key = x if x.owner is None or x.owner not in self._names else x.owner
        if key not in self._names:
            self._names[key] = f"v{len(self._names)}"
            self._nodes.append(_leaf(self._names[key], x, self._outside.get(x, "")))
        return self._names[key]

    def _node(self, node: Apply) -> DrawnNode:
        counted = self._counted.get(node)
        memory = _memory(node, counted)
        values = {} if memory is None else {"memory": float(memory)}
        second = str(node.outputs[0].type)
        if counted is not None:
            values |= {"time": counted.seconds, "runs": float(counted.runs)}
            second = duration(counted.seconds)
        source = "" if node.source is None else str(node.source)
        details = [*self._details(node, counted, memory)]
        label = f"{shortened(str(node.op), LONGEST_LABEL)}\n{second}"
        opens = self.opens.get(node, "")
        return DrawnNode(self._names[node], label, "op", values, details, opens, source)

    def _details(
        self, node: Apply, counted: Counted | None, memory: int | None
    ) -> Iterator[tuple[str, str]]:
        yield "op", str(node.op)
        if node.source is not None:
            yield "made at", str(node.source)
            if node.source.text:
                yield "line", node.source.text
        for i, x in enumerate(node.inputs):
            yield f"input {i}", f"{shortened(str(x), 60)}: {x.type}"
        for k, y in enumerate(node.outputs):
            name = f" {y.name}" if y.name is not None else ""
            yield f"output {k}{name}", str(y.type)
        if memory is not None:
            yield "memory", size(memory)
        if node in self._steps:
            yield "instruction", self._steps[node]
        if counted is not None:
            yield "time", f"{duration(counted.seconds)} in {counted.runs} runs"
            for variant in counted.variants:
                if variant.inputs is not None and variant.outputs is not None:
                    yield "shapes", f"{_shapes(variant.inputs)} -> {_shapes(variant.outputs)}"
            if counted.in_python:
                yield "runs in Python", str(counted.in_python)
        source = generated_c(node)
        if source:
            yield "generated C", source[:LONGEST_C]


def generated_c(node: Apply) -> str:
    """Return the C of the kernel that computes a node; empty if there is none."""
    formula = formula_of(node)
    if formula is None:
        return ""
    whole = whole_kernel(formula, [x.type.broadcastable for x in node.inputs])
    if whole is None:
        return ""
    return "\n".join((*whole.kernel.needs, whole.kernel.source))


def _inputs_of(program: Program) -> list[Variable]:
    return [program.variables[slot] for slot in program.inputs]


def _outputs_of(program: Program) -> list[Variable]:
    return [program.variables[slot] for slot in program.outputs]


def _output_names(f: Function) -> list[str]:
    """Return, for each output, the variable it is the new value of, or an empty text."""
    maker = f.maker
    updated = [maker.inputs[i].name or str(maker.inputs[i].variable) for i in maker.updated]
    return [""] * maker.n_outputs + [f"new {name}" for name in updated]


def _leaf(name: str, x: Variable, outside: str) -> DrawnNode:
    details = [("type", str(x.type))]
    if outside:
        details.append(("is, or is part of", outside))
    if x.source is not None:
        details.append(("made at", str(x.source)))
    kind = "input"
    if isinstance(x, Constant):
        kind = "constant"
        details += _value(x.data)
    elif is_sparse_value(getattr(getattr(x, "container", None), "value", None)):
        details += _value(x.container.value)  # type: ignore[attr-defined]
    label = f"{shortened(' '.join(str(x).split()), LONGEST_LABEL)}\n{x.type}"
    return DrawnNode(name, label, kind, {}, details)


def _value(value: Any) -> list[tuple[str, str]]:
    """Return rows that describe a value; of a sparse matrix also its pattern."""
    found = [("value", min_informative_str(value))]
    if is_sparse_value(value):
        found.append(("pattern", pattern_picture(value)))
    return found


def _edge_text(x: Variable) -> str:
    return f"{shortened(str(x), 60)}: {x.type}"


def _memory(node: Apply, counted: Counted | None) -> int | None:
    """Return the bytes of the outputs, by their types or recorded shapes; None if not known."""
    seen: Sequence[Any] = [None] * len(node.outputs)
    if counted is not None and counted.variants:
        seen = counted.variants[0].outputs or seen
    total = 0
    for y, shape in zip(node.outputs, seen, strict=False):
        if not isinstance(y.type, TensorType):
            return None
        lengths = y.type.shape if shape is None else shape
        if None in lengths:
            return None
        total += prod(int(n) for n in lengths if n is not None) * y.type.numpy_dtype.itemsize
    return total


def _shapes(shapes: Sequence[Any]) -> str:
    return ", ".join("?" if s is None else str(tuple(s)) for s in shapes)


def _rewrites(f: Function) -> Table:
    rows = [
        [firing.phase, firing.rule, shortened(firing.line(), 200), firing.why]
        for firing in f.maker.trace.firings
    ]
    return Table("Rewrites", ["phase", "rule", "what", "why"], rows, words=True)


def _facts(f: Function) -> list[tuple[str, str]]:
    graph = f.maker.fgraph
    facts = [("nodes", str(len(graph.nodes)))]
    if f.maker.original:
        facts.append(("nodes before rewriting", str(len(toposort(f.maker.original)))))
    facts.append(("rewrites", str(len(f.maker.trace.firings))))
    if f.profiled is not None:
        facts.append(("calls", str(f.profiled.calls.count)))
    return facts
