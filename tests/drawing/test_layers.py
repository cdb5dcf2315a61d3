"""Layouts: edges go down, boxes do not overlap, and order and straightness are what they can be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symcomp.drawing.layers import GAP, layered, ranks


def test_ranks_are_longest_ways():
    edges = [(0, 1), (1, 2), (0, 2), (3, 2)]
    assert ranks(4, edges) == [0, 1, 2, 1]


def test_a_chain_is_a_straight_line():
    layout = layered([60.0] * 5, [(i, i + 1) for i in range(4)])
    assert len({x for x, _ in layout.centres}) == 1
    assert [y for _, y in layout.centres] == sorted(y for _, y in layout.centres)


def test_crossings_are_undone():
    """Two chains side by side, their nodes numbered crosswise."""
    layout = layered([60.0] * 6, [(0, 3), (1, 2), (2, 5), (3, 4)])
    x = [x for x, _ in layout.centres]
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[4] < x[5])
    assert x[0] == pytest.approx(x[3]) == pytest.approx(x[4])


def test_nothing_at_all():
    assert layered([], []).centres == []
    assert len(layered([50.0], []).centres) == 1


def test_cycles_are_refused():
    with pytest.raises(ValueError, match="2 of 3 nodes are in cycles"):
        layered([60.0] * 3, [(1, 2), (2, 1)])


def test_long_chains_do_not_recurse():
    layout = layered([60.0] * 20_000, [(i, i + 1) for i in range(19_999)])
    assert layout.centres[-1][1] > layout.centres[0][1]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 25))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1])
    edges = draw(st.lists(pairs, max_size=60)) if n > 1 else []
    return draw(st.lists(st.floats(40, 200), min_size=n, max_size=n)), edges


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_edges_go_down_and_boxes_keep_apart(graph):
    widths, edges = graph
    layout = layered(widths, edges)
    for (source, target), path in zip(edges, layout.paths, strict=True):
        assert layout.centres[source][1] < layout.centres[target][1]
        assert path[0] == layout.centres[source] and path[-1] == layout.centres[target]
        assert [y for _, y in path] == sorted(y for _, y in path)
    rows = {}
    for (x, y), width in zip(layout.centres, widths, strict=True):
        assert 0 <= x - width / 2 and x + width / 2 <= layout.width and 0 <= y <= layout.height
        rows.setdefault(y, []).append((x, width))
    for row in rows.values():
        row.sort()
        for (x, a), (z, b) in zip(row, row[1:], strict=False):
            assert z - x >= (a + b) / 2 + GAP - 1e-6
