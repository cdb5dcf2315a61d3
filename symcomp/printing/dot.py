"""pydotprint: draw graphs as pictures with graphviz."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from symcomp.compile.callable import Function
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import record
from symcomp.core.walk import toposort
from symcomp.errors import SymcompError

FORMATS = ("png", "svg", "pdf", "dot", "ps")
# Fill colours of inputs, shared variables and defaults, constants, outputs, and ops.
INPUT, STORED, CONSTANT, OUTPUT, NODE = "#d5e8d4", "#dae8fc", "#eeeeee", "#f8cecc", "#ffffff"
COLOURS: dict[str, str] = {
    "Dot": "#ffe6cc", "Gemm": "#ffe6cc", "Gemv": "#ffe6cc", "Ger": "#ffe6cc",
    "Fused": "#e1d5e7", "Elemwise": "#f3eef7", "Reduce": "#fff2cc", "Scan": "#b0e3e6",
    "Subtensor": "#f5f5f5", "IncSubtensor": "#f5f5f5",
}  # fmt: skip


class GraphvizError(SymcompError, RuntimeError):
    """The program ``dot`` of graphviz is missing, or failed."""


@record(frozen=False)
class _Drawing:
    """Lines of dot text; graphs inside ops become clusters."""

    colours: Mapping[str, str]
    label_size: int
    with_ids: bool
    inner: bool
    stored: frozenset[Variable] = frozenset()
    lines: list[str] = field(default_factory=list)
    _names: dict[Any, str] = field(default_factory=dict)
    _pending: list[tuple[Apply, Sequence[Any], Sequence[Any]]] = field(default_factory=list)

    def text(self, outputs: Sequence[Variable]) -> str:
        """Return the whole picture."""
        self.lines += ["digraph {", '  node [fontname="sans-serif", fontsize=11];']
        self._graph(outputs, "  ")
        done = 0
        while done < len(self._pending):
            self._cluster(done)
            done += 1
        return "\n".join([*self.lines, "}", ""])

    def _cluster(self, number: int) -> None:
        node, inputs, outputs = self._pending[number]
        self.lines.append(f"  subgraph cluster_{number} {{")
        self.lines.append(f"    label={_quoted(f'inside {node.op}')}; style=dashed;")
        for x in inputs:
            self._leaf(x, "    ")
        self._graph(outputs, "    ")
        self.lines.append("  }")

    def _graph(self, outputs: Sequence[Variable], margin: str) -> None:
        for node in toposort(outputs):
            self._node(node, margin)
        for k, out in enumerate(outputs):
            target = self._names[(out, k)] = f"out{len(self._names)}"
            label = out.name or f"output {k}"
            self._add(margin, target, f"{label}\n{out.type}", OUTPUT, "ellipse")
            self._edge(margin, out, target, "")

    def _node(self, node: Apply, margin: str) -> None:
        name = self._names[node] = f"n{len(self._names)}"
        number = f"{name[1:]} " if self.with_ids else ""
        colour = self.colours.get(type(node.op).__name__, NODE)
        self._add(margin, name, f"{number}{node.op}", colour, "box")
        for i, x in enumerate(node.inputs):
            if x.owner is None:
                self._leaf(x, margin)
            self._edge(margin, x, name, str(i) if len(node.inputs) > 1 else "", _fate(node, i))
        if self.inner:
            self._pending += [(node, *graph) for graph in node.op.inner_graphs_of(node)]

    def _leaf(self, x: Variable, margin: str) -> None:
        if x in self._names:
            return
        name = self._names[x] = f"v{len(self._names)}"
        colour = CONSTANT if isinstance(x, Constant) else STORED if x in self.stored else INPUT
        self._add(margin, name, f"{x}\n{x.type}", colour, "ellipse")

    def _add(self, margin: str, name: str, label: str, colour: str, shape: str) -> None:
        short = "\n".join(self._shortened(line) for line in label.split("\n"))
        self.lines.append(
            f"{margin}{name} [label={_quoted(short)}, tooltip={_quoted(label)}, shape={shape}, "
            f'style=filled, fillcolor="{colour}"];'
        )

    def _edge(self, margin: str, x: Variable, target: str, place: str, fate: str = "") -> None:
        if x.owner is None:
            self._leaf(x, margin)
        source = self._names[x if x.owner is None else x.owner]
        index = f".{x.index}" if x.owner is not None and len(x.owner.outputs) > 1 else ""
        label = " ".join(filter(None, [index, place, "" if x.owner is None else str(x.type)]))
        self.lines.append(
            f"{margin}{source} -> {target} [label={_quoted(label)}, fontsize=9{fate}];"
        )

    def _shortened(self, text: str) -> str:
        return text if len(text) <= self.label_size else text[: self.label_size - 1] + "…"


def _fate(node: Apply, i: int) -> str:
    """Return red for an input that is overwritten, blue for one that an output may be a view of."""
    if any(i in places for places in node.op.destroy_map.values()):
        return ', color="#cc0000"'
    if any(i in places for places in node.op.view_map.values()):
        return ', color="#2255cc"'
    return ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot_text(
    fct: Any,
    max_label_size: int = 70,
    with_ids: bool = False,
    scan_graphs: bool = False,
    colorCodes: Mapping[str, str] | None = None,
) -> str:
    """Return the picture of ``pydotprint`` in the language of graphviz."""
    outputs, stored = _roots(fct)
    colours = COLOURS if colorCodes is None else colorCodes
    drawing = _Drawing(colours, max_label_size, with_ids, scan_graphs, frozenset(stored))
    return drawing.text(outputs)


def _roots(fct: Any) -> tuple[list[Variable], Iterator[Variable]]:
    """Return the outputs of a graph, and its inputs that have stored values."""
    if isinstance(fct, Function):
        graph = fct.maker.fgraph
        pairs = zip(graph.inputs, fct.maker.inputs, strict=True)
        return graph.outputs, (x for x, spec in pairs if spec.has_default)
    if isinstance(fct, FunctionGraph):
        return fct.outputs, iter(())
    outputs = list(fct) if isinstance(fct, list | tuple) else [fct]
    if not all(isinstance(y, Variable) for y in outputs):
        raise TypeError(
            f"pydotprint: {fct!r} is a {type(fct).__name__}; a function, a variable or a list of "
            "variables was expected"
        )
    return outputs, iter(())


def pydotprint(
    fct: Any,
    outfile: str | os.PathLike[str] | None = None,
    compact: bool = True,
    format: str = "png",
    with_ids: bool = False,
    high_contrast: bool = True,
    cond_highlight: Any = None,
    colorCodes: Mapping[str, str] | None = None,
    max_label_size: int = 70,
    scan_graphs: bool = False,
    var_with_name_simple: bool = False,
    print_output_file: bool = True,
    return_image: bool = False,
) -> Any:
    """Draw a graph with graphviz.

    Parameters
    ----------
    fct : Function, FunctionGraph, Variable, or list of Variable
    outfile : path, optional
        Its ending says the format where it is one of them. By default ``symcomp.<format>`` in the
        current folder.
    format : {"png", "svg", "pdf", "ps", "dot"}
        ``"dot"`` is the text itself, for which graphviz need not be there.
    with_ids : bool
        Number the nodes.
    colorCodes : mapping of str to str, optional
        Fill colours, by the names of classes of ops.
    max_label_size : int
        Longer labels are cut; pictures in svg show them under the mouse.
    scan_graphs : bool
        Draw the graphs inside ops too.
    print_output_file : bool
        Say where the picture is.
    return_image : bool
        Return the picture as bytes and write no file.
    compact, high_contrast, cond_highlight, var_with_name_simple
        Accepted for Theano's sake, without effect.

    Returns
    -------
    bytes or None

    Raises
    ------
    GraphvizError
        If ``dot`` is not installed, or fails.
    ValueError
        If there is no such format.

    Notes
    -----
    Arrows are red where the op overwrites its input, blue where its output may be a view of it.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> picture = symcomp.printing.pydotprint(T.exp(x), format="dot", return_image=True)
    >>> picture.decode().split("\\n")[0]
    'digraph {'
    """
    if outfile is not None:
        ending = os.path.splitext(os.fspath(outfile))[1].lstrip(".")
        format = ending if ending in FORMATS else format
    if format not in FORMATS:
        raise ValueError(f"pydotprint: there is no format {format!r}; there are {FORMATS}")
    text = dot_text(fct, max_label_size, with_ids, scan_graphs, colorCodes)
    picture = text.encode() if format == "dot" else _drawn(text, format)
    if return_image:
        return picture
    path = os.fspath(outfile) if outfile is not None else f"symcomp.{format}"
    with open(path, "wb") as file:
        file.write(picture)
    if print_output_file:
        print(f"The picture is in {path}")
    return None


def _drawn(text: str, format: str) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise GraphvizError(
            f"pydotprint: {format} pictures are drawn by the program `dot` of graphviz, which is "
            "not on the PATH: install graphviz (apt install graphviz, brew install graphviz), or "
            "pass format='dot' for the text, or use symcomp.printing.html, which needs nothing"
        )
    run = subprocess.run(
        [program, f"-T{format}"], input=text.encode(), capture_output=True, check=False
    )
    if run.returncode:
        raise GraphvizError(f"pydotprint: dot failed: {run.stderr.decode(errors='replace')}")
    return run.stdout
