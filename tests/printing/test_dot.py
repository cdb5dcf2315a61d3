"""pydotprint: the text for graphviz, and the pictures made of it."""

import stat

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.printing import GraphvizError, pydotprint


def a_function():
    x = T.dvector("x")
    w = symcomp.shared(np.ones((3, 3)), "w")
    return symcomp.function([x], T.tanh(T.dot(x, w)).sum() * 2)


def text_of(graph, **options):
    return pydotprint(graph, format="dot", return_image=True, **options).decode()


def test_every_node_and_leaf_is_there():
    text = text_of(a_function(), with_ids=True)
    assert text.startswith("digraph {") and text.endswith("}\n")
    assert text.count("shape=box") == len(a_function().maker.fgraph.nodes)
    assert "w\\nfloat64 matrix" in text and "output 0" in text and '"0 Dot"' in text
    assert text.count("{") == text.count("}")


def test_inner_graphs_are_clusters():
    assert "subgraph cluster_0" in text_of(a_function(), scan_graphs=True)
    assert "subgraph" not in text_of(a_function())


def test_variables_views_and_long_labels():
    x = T.dvector('a "name"')
    text = text_of(T.exp(x[1:]), max_label_size=5)
    assert '\\"name\\"' in text and "#2255cc" in text and "Subt…" in text
    assert "#cc0000" in text_of(T.inplace.exp_inplace(x))
    assert text_of([T.exp(x), T.tanh(x)]).count("-> out") == 2


def test_formats_and_kinds_are_checked(tmp_path):
    with pytest.raises(ValueError, match="no format 'gif'"):
        pydotprint(a_function(), format="gif")
    with pytest.raises(TypeError, match="3 is a int"):
        pydotprint(3, format="dot")


def test_without_graphviz_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraphvizError, match="install graphviz .*format='dot'.*printing.html"):
        pydotprint(a_function(), tmp_path / "graph.png")
    assert not (tmp_path / "graph.png").exists()


def a_program_called_dot(folder, body):
    program = folder / "dot"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_dot_gets_the_text_and_the_format(tmp_path, monkeypatch, capsys):
    a_program_called_dot(tmp_path, 'echo "$1"; cat')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    pydotprint(a_function(), tmp_path / "graph.svg")
    picture = (tmp_path / "graph.svg").read_text()
    assert picture.startswith("-Tsvg\ndigraph {")
    assert "graph.svg" in capsys.readouterr().out


def test_a_failure_of_dot_is_told(tmp_path, monkeypatch):
    a_program_called_dot(tmp_path, "echo broken >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(GraphvizError, match="dot failed: broken"):
        pydotprint(a_function(), format="pdf", return_image=True)
