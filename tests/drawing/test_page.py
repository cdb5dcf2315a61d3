"""Pages of graphs: complete, safe, and alive in a browser."""

import pytest

from symcomp.drawing.graph import DrawnEdge, DrawnGraph, DrawnNode, Measure
from symcomp.drawing.page import Table, as_html
from symcomp.drawing.svg import COLOURS, colour
from symcomp.tests.drawing.pages import Page, in_browser, loads_nothing

NASTY = "</script><b>&\"'é∑"


def example():
    nodes = [
        DrawnNode("x", "x", "input"),
        DrawnNode(
            "0", "exp\nfast", "op", {"time": 3.0, "runs": 2.0}, [("source", "a.py:1")], "in it"
        ),
        DrawnNode("1", NASTY, "op", {"time": 1.0}, [("text", NASTY)]),
        DrawnNode("out", "output", "output"),
    ]
    edges = [DrawnEdge("x", "0", "s0"), DrawnEdge("0", "1"), DrawnEdge("1", "out", NASTY)]
    first = DrawnGraph("all", nodes, edges, [Measure("time", "{:g} s".format), Measure("runs")])
    inner = DrawnGraph("in it", [DrawnNode("x", "inside")], [])
    tables = [Table("Rows", ["%", "what"], [["75", "exp"], ["25", NASTY]], [("all", "0")] * 2)]
    return as_html("A page of <tests>", [first, inner], tables, [("calls", "12")])


def test_everything_is_there():
    text = example()
    page = Page(text)
    assert loads_nothing(text)
    assert [e[1]["data-graph"] for e in page.of("figure")] == ["all", "in it"]
    assert len(page.of("g", data_node=None)) == 5
    ends = [(e[1]["data-source"], e[1]["data-target"]) for e in page.of("path")]
    assert ends == [("x", "0"), ("0", "1"), ("1", "out")]
    assert page.of("title")[0][2] == "A page of <tests>"
    assert [e[2] for e in page.of("td")] == ["75", "exp", "25", NASTY]
    known = page.data["graphs"]["all"]
    assert known["measures"][0] == {"name": "time", "largest": 3.0, "shown": "3 s"}
    assert known["nodes"]["1"]["details"] == [["text", NASTY]]
    assert known["nodes"]["0"]["opens"] == "in it"


def test_nodes_are_coloured_by_the_first_measure():
    page = Page(example())
    fills = [e[1].get("style") for e in page.of("rect")]
    strongest = "#" + "".join(f"{c:02x}" for c in COLOURS[-1])
    assert fills[:4] == [None, f"fill:{strongest}", f"fill:{colour(1 / 3)}", None]
    assert colour(0.0) == "#ffffff" and colour(2.0) == strongest


def test_titles_differ():
    graph = DrawnGraph("one", [DrawnNode("x", "x")], [])
    with pytest.raises(ValueError, match="not all different"):
        as_html("page", [graph, graph])


def test_without_anything():
    page = Page(as_html("nothing", []))
    assert page.of("figure") == [] and page.data["graphs"] == {}


def test_in_a_browser(tmp_path):
    """Click a row of the table; colour by another measure; search; open an inner graph."""
    path = tmp_path / "page.html"
    path.write_text(example(), encoding="utf-8")
    script = """
      const log = [];
      const click = (node) => node.dispatchEvent(new MouseEvent("click", {bubbles: true}));
      click(document.querySelector("tr[data-of]"));
      log.push(document.querySelector(".selected").dataset.node);
      log.push(document.querySelector("#details h2").textContent);
      log.push(document.querySelectorAll(".edge.near").length);
      const measure = document.getElementById("measure");
      measure.value = "runs";
      measure.dispatchEvent(new Event("change"));
      log.push(document.querySelector("#legend span").textContent);
      const find = document.getElementById("find");
      find.value = "a.py";
      find.dispatchEvent(new Event("input"));
      log.push(document.querySelectorAll("figure:not([hidden]) .node:not(.faded)").length);
      click(document.querySelector("#details button"));
      log.push(document.querySelector("figure:not([hidden])").dataset.graph);
      document.body.dataset.log = JSON.stringify(log);
    """
    page = in_browser(path, script)
    (body,) = page.of("body")
    assert body[1]["data-log"] == '["0","exp\\nfast",2,"0 to 2",1,"in it"]'
