"""A graph as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import sqrt

from symcomp.drawing.graph import DrawnGraph, DrawnNode
from symcomp.drawing.layers import layered

# Pixels of a letter and of a box; longer lines are cut off.
LETTER, HEIGHT, LONGEST = 7.1, 40.0, 34
# From the least to the largest value, as red, green and blue.
COLOURS = ((255, 255, 255), (255, 236, 168), (250, 172, 92), (226, 82, 60))


def as_svg(graph: DrawnGraph) -> str:
    """Return a graph as SVG; nodes carry their id as ``data-node`` and the colour of the first
    measure.
    """
    number = {node.id: i for i, node in enumerate(graph.nodes)}
    widths = [_width(node) for node in graph.nodes]
    ends = [(number[edge.source], number[edge.target]) for edge in graph.edges]
    places = layered(widths, ends)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {places.width:.0f} '
        f'{places.height:.0f}" data-width="{places.width:.0f}" data-height="{places.height:.0f}" '
        f'role="img" aria-label="{escape(graph.title)}">'
    ]
    for edge, path in zip(graph.edges, places.paths, strict=True):
        parts.append(
            f'<path class="edge" data-source="{escape(edge.source)}" '
            f'data-target="{escape(edge.target)}" d="{_curve(path)}">'
            f"<title>{escape(edge.label)}</title></path>"
        )
    shares = shares_of(graph)
    for node, width, (x, y) in zip(graph.nodes, widths, places.centres, strict=True):
        parts.append(_box(node, width, x, y, shares.get(node.id)))
    return "\n".join([*parts, "</svg>"])


def shares_of(graph: DrawnGraph) -> dict[str, float]:
    """Return the values of the first measure divided by the largest one."""
    if not graph.measures:
        return {}
    name = graph.measures[0].name
    values = {node.id: node.values[name] for node in graph.nodes if name in node.values}
    largest = max(values.values(), default=0.0) or 1.0
    return {node: value / largest for node, value in values.items()}


def colour(share: float) -> str:
    """Return the colour of a share of the largest value; the square root spreads small shares."""
    place = sqrt(min(max(share, 0.0), 1.0)) * (len(COLOURS) - 1)
    i = min(int(place), len(COLOURS) - 2)
    mixed = [
        round(a + (b - a) * (place - i)) for a, b in zip(COLOURS[i], COLOURS[i + 1], strict=True)
    ]
    return "#" + "".join(f"{c:02x}" for c in mixed)


def _lines(node: DrawnNode) -> list[str]:
    lines = node.label.split("\n")[:2]
    return [s if len(s) <= LONGEST else s[: LONGEST - 1] + "…" for s in lines]


def _width(node: DrawnNode) -> float:
    return max(60.0, LETTER * max(len(line) for line in _lines(node)) + 16)


def _box(node: DrawnNode, width: float, x: float, y: float, share: float | None) -> str:
    style = "" if share is None else f' style="fill:{colour(share)}"'
    lines = _lines(node)
    first = y + 4.5 - 7.5 * (len(lines) - 1)
    texts = "".join(
        f'<text x="{x:.1f}" y="{first + 15 * i:.1f}" class="line{i}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    opens = ' data-opens="1"' if node.opens else ""
    return (
        f'<g class="node {escape(node.kind)}" data-node="{escape(node.id)}"{opens} tabindex="0">'
        f"<title>{escape(node.label)}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{HEIGHT:.0f}" rx="5"{style}/>{texts}</g>'
    )


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path through the points, vertical at each, from the bottom of a box to the top
    of another.
    """
    points = [*points]
    points[0] = points[0][0], points[0][1] + HEIGHT / 2
    points[-1] = points[-1][0], points[-1][1] - HEIGHT / 2
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (u, v) in zip(points, points[1:], strict=False):
        middle = (y + v) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {u:.1f} {middle:.1f} {u:.1f} {v:.1f}")
    return " ".join(parts)
