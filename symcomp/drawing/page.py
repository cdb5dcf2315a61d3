"""Write graphs and tables as one HTML page that loads no other file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from symcomp.drawing.graph import DrawnGraph
from symcomp.drawing.svg import COLOURS, as_svg


class Table(NamedTuple):
    """A table below the graphs.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : sequence of sequence of str
    nodes : sequence of (str, str)
        For each row the title of a graph and the id of the node there that it speaks of; empty:
        none does.
    words : bool
        If true, the cells are words, aligned to the left, and not numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    nodes: Sequence[tuple[str, str]] = ()
    words: bool = False


def as_html(
    title: str,
    graphs: Sequence[DrawnGraph],
    tables: Sequence[Table] = (),
    facts: Sequence[tuple[str, str]] = (),
    beside: str = "",
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    title : str
    graphs : sequence of DrawnGraph
        With different titles; the first one is shown until another is chosen.
    tables : sequence of Table
    facts : sequence of (str, str)
        Shown above all else: what, and how much.
    beside : str
        The title of the graph that is shown beside the first; empty: none, until one is chosen.

    Raises
    ------
    ValueError
        If two graphs have one title.
    """
    titles = [graph.title for graph in graphs]
    if len({*titles}) < len(titles):
        raise ValueError(f"as_html: the titles of the graphs {titles} are not all different")
    style = _resource("page.css")
    script = _resource("page.js")
    known = ", ".join(f"<b>{escape(value)}</b> {escape(what)}" for what, value in facts)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>\n{style}</style></head><body>",
            f"<header><h1>{escape(title)}</h1><p>{known}</p></header>",
            _controls(),
            '<main><div id="graphs">',
            *(_figure(i, graph) for i, graph in enumerate(graphs)),
            '</div><aside id="details"><p>Click a node to see its details.</p></aside></main>',
            *(_table(table) for table in tables),
            f'<script type="application/json" id="data">{_as_json(_data(graphs, beside))}</script>',
            f"<script>\n{script}</script></body></html>\n",
        ]
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _controls() -> str:
    return (
        '<nav><label>Graph <select id="graph"></select></label>'
        '<button id="up" type="button">Up</button>'
        '<label>Beside <select id="beside"></select></label>'
        '<label>Colour <select id="measure"></select></label>'
        '<span id="legend"><i></i><span></span></span>'
        '<label>Find <input id="find" type="search" placeholder="text of a node"></label>'
        '<span id="found"></span>'
        '<button id="fit" type="button">Fit</button>'
        "<small>drag to move, wheel to zoom, double click to open what is inside, "
        "Enter to go to what is found</small></nav>"
    )


def _figure(i: int, graph: DrawnGraph) -> str:
    hidden = " hidden" if i else ""
    title = escape(graph.title)
    caption = f"<figcaption>{title}</figcaption>"
    return f'<figure data-graph="{title}"{hidden}>{caption}\n{as_svg(graph)}\n</figure>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = []
    for i, row in enumerate(table.rows):
        where = ""
        if table.nodes:
            graph, node = table.nodes[i]
            where = f' data-in="{escape(graph)}" data-of="{escape(node)}" tabindex="0"'
        rows.append(f"<tr{where}>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>")
    kind = ' class="words"' if table.words else ""
    return (
        f"<section><h2>{escape(table.title)}</h2><table{kind}><thead><tr>{head}</tr></thead>\n<tbody>"
        + "\n".join(rows)
        + "</tbody></table></section>"
    )


def _data(graphs: Sequence[DrawnGraph], beside: str) -> Any:
    """Return the data of graphs for the script of the page."""
    return {
        "colours": COLOURS,
        "beside": beside,
        "graphs": {
            graph.title: {
                "measures": [_measure(graph, i) for i in range(len(graph.measures))],
                "nodes": {
                    node.id: {
                        "label": node.label,
                        "values": dict(node.values),
                        "details": [list(pair) for pair in node.details],
                        "opens": node.opens,
                        "kin": node.kin,
                    }
                    for node in graph.nodes
                },
            }
            for graph in graphs
        },
    }


def _measure(graph: DrawnGraph, i: int) -> Any:
    measure = graph.measures[i]
    values = [node.values[measure.name] for node in graph.nodes if measure.name in node.values]
    largest = max(values, default=0.0)
    return {"name": measure.name, "largest": largest, "shown": measure.show(largest)}


def _as_json(data: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it looks like a tag."""
    return json.dumps(data).replace("<", "\\u003c")
