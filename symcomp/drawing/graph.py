"""Data of a drawing: nodes with labels, measures for their colour, and details; edges between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class DrawnNode(NamedTuple):
    """A box.

    Attributes
    ----------
    id : str
        Name of the node in edges.
    label : str
        Text of the box; a newline starts a second line.
    kind : str
        A class of the style sheet ("op", "input", "constant", "output").
    values : mapping of str to float
        Numbers by the names of measures; a node may lack some.
    details : sequence of (str, str)
        Rows of the panel that a click opens.
    opens : str
        The title of another graph on the page, drawn of the inner graph; empty: none.
    kin : str
        Nodes of all graphs with the same text are marked when one of them is clicked; empty: none.
    """

    id: str
    label: str
    kind: str = "op"
    values: Mapping[str, float] = {}
    details: Sequence[tuple[str, str]] = ()
    opens: str = ""
    kin: str = ""


class DrawnEdge(NamedTuple):
    """An arrow between two nodes, with a text that is shown under the pointer."""

    source: str
    target: str
    label: str = ""


class Measure(NamedTuple):
    """A number that determines the colour of nodes.

    Attributes
    ----------
    name : str
    show : callable
        The number as text.
    """

    name: str
    show: Callable[[float], str] = "{:g}".format


class DrawnGraph(NamedTuple):
    """A graph without cycles.

    Attributes
    ----------
    title : str
    nodes : sequence of DrawnNode
    edges : sequence of DrawnEdge
    measures : sequence of Measure
        The first one colours the graph until another is chosen.
    """

    title: str
    nodes: Sequence[DrawnNode]
    edges: Sequence[DrawnEdge]
    measures: Sequence[Measure] = ()
