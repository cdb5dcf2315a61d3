"""html: the contents of the page, read from its text and in a browser."""

import json
import pickle

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.printing import html
from symcomp.tests.drawing.pages import Page, in_browser, loads_nothing


def training(**options):
    x, y = T.dmatrix("x"), T.ivector("labels")
    w = symcomp.shared(np.ones((4, 3)), "w")
    p = T.nnet.softmax(T.tanh(x.dot(w)))
    cost = -T.log(p[T.arange(y.shape[0]), y]).mean()
    step = [(w, w - 0.1 * T.grad(cost, w))]
    return symcomp.function([x, y], cost, updates=step, name="train", **options)


def call(f):
    for _ in range(3):
        f(np.random.default_rng(0).normal(size=(5, 4)), np.arange(5, dtype="int32") % 3)


def details(graph, word):
    """Return the details of the first node whose label has a word, by name."""
    node = next(n for n in graph["nodes"].values() if word in n["label"])
    return dict(node["details"])


def test_before_and_after_with_lines_types_and_c():
    f = training()
    text = html(f)
    page = Page(text)
    assert loads_nothing(text)
    graphs = page.data["graphs"]
    assert list(graphs)[0] == "after rewriting" and page.data["beside"] == "before rewriting"
    before, after = graphs["before rewriting"], graphs["after rewriting"]
    ops = [n for n in after["nodes"] if n.startswith("n")]
    assert len(ops) == len(f.maker.fgraph.nodes)
    assert any("Softmax" in n["label"] for n in before["nodes"].values())
    shown = details(before, "tanh")
    assert "test_page.py:" in shown["made at"]
    assert shown["line"] == "p = T.nnet.softmax(T.tanh(x.dot(w)))"
    assert shown["output 0"] == "float64 matrix" and "int64_t" in shown["generated C"]
    fused = next(n for n in after["nodes"].values() if n["label"].startswith("Fused"))
    assert fused["opens"] in graphs
    assert len(page.of("figure", data_graph=None)) == len(graphs)
    assert any("log_of" in row[2] or "softmax" in row[2] for row in page.of("td"))


def test_a_profile_gives_times_shapes_and_memory():
    f = training(profile=True)
    call(f)
    graph = Page(html(f)).data["graphs"]["after rewriting"]
    assert [m["name"] for m in graph["measures"]] == ["time", "memory", "runs"]
    dot = next(n for n in graph["nodes"].values() if n["label"].startswith("Dot"))
    assert dot["values"]["time"] > 0 and dot["values"]["runs"] == 3
    assert dot["values"]["memory"] == 5 * 3 * 8
    shown = dict(dot["details"])
    assert "(5, 4)" in shown["shapes"] and shown["memory"] == "120 bytes"


def test_loops_open_their_bodies():
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.tanh(s * 2) + s, outputs_info=[x], n_steps=3)
    graphs = Page(html(symcomp.function([x], states[-1]))).data["graphs"]
    scans = [n for g in graphs.values() for n in g["nodes"].values() if "scan" in n["label"]]
    assert scans and all(node["opens"] in graphs for node in scans)
    inside = graphs[scans[0]["opens"]]
    assert any("x[t-1]" in n["label"] for n in inside["nodes"].values())


def test_expressions_graphs_and_pickled_functions(tmp_path):
    x = T.dvector("<x>&")
    page = Page(html(T.exp(x) * 2))
    assert "<x>&" in "".join(n["label"] for n in page.data["graphs"]["graph"]["nodes"].values())
    assert Page(html([T.exp(x), x])).data["graphs"]
    assert Page(html(FunctionGraph([x], [T.exp(x)]))).data["graphs"]
    again = pickle.loads(pickle.dumps(training()))
    assert list(Page(html(again)).data["graphs"])[0] == "after rewriting"
    assert "before rewriting" not in Page(html(again)).data["graphs"]
    assert html(training(), tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(TypeError, match="3 is a int"):
        html(3)


def test_a_function_without_updates_keeps_its_outputs_alone():
    copy = training().copy(delete_updates=True)
    before = Page(html(copy)).data["graphs"]["before rewriting"]
    assert sum(n.startswith("out") for n in before["nodes"]) == 1


def test_a_notebook_shows_the_page_in_a_frame():
    frame = training()._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;') and frame.count("<") == 2


def test_in_a_browser(tmp_path):
    f = training(profile=True)
    call(f)
    path = tmp_path / "page.html"
    html(f, path)
    page = in_browser(
        path,
        """
        const result = document.createElement("pre");
        result.id = "result";
        document.body.append(result);
        const nodes = [...figures[1].querySelectorAll(".node")];
        const tanh = nodes.find((g) => g.querySelector("text").textContent.startsWith("tanh"));
        tanh.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        const kin = figures[0].querySelectorAll(".kin").length;
        const said = byId("details").textContent;
        byId("find").value = "softmax";
        byId("find").dispatchEvent(new Event("input"));
        const faded = document.querySelectorAll(".faded").length;
        const box = figures[0].querySelector("svg");
        const seen = () => box.viewBox.baseVal.width;
        const wide = seen();
        box.dispatchEvent(new WheelEvent("wheel", { deltaY: -300 }));
        const zoomed = seen() < wide;
        const fused = [...figures[0].querySelectorAll(".node")].find((g) =>
          g.querySelector("text").textContent.startsWith("Fused"));
        fused.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
        byId("beside").value = "";
        byId("beside").dispatchEvent(new Event("change"));
        const visible = shown().map((other) => other.dataset.graph);
        result.textContent = JSON.stringify({ kin, said, faded, zoomed, visible });
        """,
    )
    (result,) = page.of("pre", id="result")
    found = json.loads(result[2])
    assert found["kin"] > 0 and "test_page.py:" in found["said"] and "int64_t" in found["said"]
    assert found["faded"] > 5 and found["zoomed"]
    (inside,) = found["visible"]
    assert inside.startswith("after rewriting / Fused")


def loop(**options):
    xs, u = T.dmatrix("xs"), symcomp.shared(np.ones((4, 4)) / 8, "u")
    states, _ = symcomp.scan(lambda v, s: T.tanh(v + s.dot(u)), xs, [T.zeros(4)], name="steps")
    f = symcomp.function([xs], states[-1], updates=[(u, u * 0.5)], **options)
    for _ in range(3):
        f(np.ones((6, 4)))
    return f


def test_what_is_inside_has_times_and_says_what_it_reads():
    graphs = Page(html(loop(profile=True))).data["graphs"]
    inside = next(g for title, g in graphs.items() if title.startswith("after rewriting / steps"))
    assert [m["name"] for m in inside["measures"]] == ["time", "memory", "runs"]
    nodes = inside["nodes"].values()
    assert all(n["values"]["runs"] == 18 for n in nodes if "time" in n["values"])
    assert any("time" in n["values"] for n in nodes)
    given = {n["label"].split("\n")[0]: dict(n["details"]) for n in nodes}
    assert given["u"]["is, or is part of"] == "u: float64 matrix"
    plain = Page(html(loop())).data["graphs"]
    inside = next(g for title, g in plain.items() if title.startswith("after rewriting / steps"))
    assert [m["name"] for m in inside["measures"]] == ["memory"]
    assert any("is, or is part of" in dict(n["details"]) for n in inside["nodes"].values())


def test_new_values_are_named():
    for graph in list(Page(html(loop())).data["graphs"].items()):
        if graph[0] in ("after rewriting", "before rewriting"):
            labels = [n["label"].split("\n")[0] for n in graph[1]["nodes"].values()]
            assert "new u" in labels and "output 0" in labels


def test_what_is_found_is_gone_to_in_a_browser(tmp_path):
    path = tmp_path / "page.html"
    html(loop(), path)
    page = in_browser(
        path,
        """
        const result = document.createElement("pre");
        result.id = "result";
        document.body.append(result);
        const start = byId("graph").value, down = byId("up").disabled;
        const colours = byId("measure").value, legend = byId("legend").hidden;
        const input = byId("find");
        input.value = "dot";
        input.dispatchEvent(new Event("input"));
        const visited = [];
        for (let i = 0; i < matches.length; i++) {
          input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
          visited.push([byId("graph").value, figure.querySelectorAll(".selected").length]);
        }
        const told = byId("found").textContent;
        const body = figures.find((f) => f.dataset.graph.startsWith("after rewriting / steps"));
        show(body.dataset.graph);
        const up = byId("up").disabled;
        byId("up").click();
        result.textContent = JSON.stringify(
          { start, down, colours, legend, visited, told, up, end: byId("graph").value });
        """,
    )
    ((_, _, text),) = page.of("pre", id="result")
    found = json.loads(text)
    assert found["start"] == found["end"] == "after rewriting"
    assert found["down"] and not found["up"] and found["colours"] == "" and found["legend"]
    assert len(found["visited"]) > 1 and all(n == 1 for _, n in found["visited"])
    assert any("/ steps" in title for title, _ in found["visited"])
    n = len(found["visited"])
    assert found["told"] == f"{n} of {n} in all graphs"
