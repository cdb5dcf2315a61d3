"""Profiles as users have them: text, data, traces and pages."""

import io
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.profiling.stats import text_at_exit
from symcomp.tests.drawing.pages import Page, in_browser, loads_nothing


@pytest.fixture(scope="module", autouse=True)
def limits_kept_here(tmp_path_factory):
    """Measure the limits of the machine once, and keep them away from the user's directory."""
    with symcomp.config.change_flags(compiledir=str(tmp_path_factory.mktemp("kept"))):
        yield


def training(**arguments):
    """Compile a function with updates, a loop, a choice, and a Python op."""
    x, c = T.dmatrix("x"), T.lscalar("c")
    w = symcomp.shared(np.eye(4), "w")
    states, _ = symcomp.scan(lambda row, s: T.tanh(T.dot(row, w) + s), [x], T.zeros(4), name="rnn")
    loss = ifelse(c, states.sum(), T.sort(x.flatten())[0])
    updates = [(w, w - 0.1 * T.grad(loss, w))]
    return symcomp.function([x, c], loss, updates=updates, **arguments)


@pytest.fixture(scope="module")
def called():
    f = training(profile=True, name="training")
    for choice in (1, 1, 0):
        f(np.ones((6, 4)), choice)
    return f


def test_text(called):
    text = called.profile.text()
    for part in (
        "Profile of training",
        "3 calls",
        "rewrite: merge",
        "graph in an op",
        "Classes",
        "Scan",
        "rnn",
        "a step",
        "between instructions",
        "6x4",
        "peak as planned",
        "GB/s copying memory",
        __file__,
        "Sort",
    ):
        assert part in text, part
    out = io.StringIO()
    called.profile.summary(out, n=1)
    assert len(out.getvalue()) < len(text) and " more" in out.getvalue()


def test_data_is_plain_and_adds_up(called, tmp_path):
    called.profile.to_json(tmp_path / "profile.json")
    data = json.loads((tmp_path / "profile.json").read_text())
    assert data == json.loads(json.dumps(called.profile.to_dict()))
    (function,) = data["functions"]
    assert function["calls"] == function["timed_calls"] == 3
    rows = function["instructions"]
    assert function["instruction_seconds"] == pytest.approx(sum(r["seconds"] for r in rows))
    assert 0 < function["instruction_seconds"] <= 1.5 * function["call_seconds"]
    for groups in (data["ops"], data["classes"]):
        assert sum(g["seconds"] for g in groups) == pytest.approx(function["instruction_seconds"])
        assert sum(g["instructions"] for g in groups) == len(rows)
    loops = function["programs"]
    assert {loop["steps"] for loop in loops} == {12}
    assert all(0 <= loop["bookkeeping"] <= 1 for loop in loops)
    assert all(loop["instructions"] for loop in loops)


def test_memory_is_that_of_the_memory_report():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.dot(T.exp(x), x).sum(), profile=True)
    f(np.ones((30, 30)))
    found = f.profile.to_dict()["functions"][0]["memory"]
    expected = f.memory_report((30, 30))
    for name in ("inputs", "results", "planned", "unplanned", "peak", "unplanned_peak"):
        assert found[name] == getattr(expected, name), name


def test_compile_stages(called):
    names = [name for name, _ in called.profile.compile_phases]
    assert names[0] == "training"
    assert names.index("arguments") < names.index("rewrite: merge") < names.index("lower")
    seconds = dict(called.profile.compile_phases)
    assert seconds["training"] >= seconds["lower"] > 0
    twin = called.copy()
    assert "lower" in dict(twin.profile.compile_phases) and twin.profile.calls == 0


def test_kernels_are_told_from_the_cache(tmp_path):
    x = T.dvector("x")

    def stages():
        with symcomp.config.change_flags(kernels=True, compiledir=str(tmp_path)):
            f = symcomp.function([x], T.exp(x) * 3 + T.sin(x) ** 2, profile=True)
        return [part for _, part in f.profiled.spans.walk()]

    first, second = stages(), stages()
    assert "compile" in {part.name for part in first}
    assert "compile" not in {part.name for part in second}
    (cache,) = [part for part in first if part.name == "from the cache"]
    assert cache.note == "not there"
    assert {"kernels", "print C", "C compiler"} <= {part.name for part in second}


def test_several_functions_in_one_profile():
    shared = symcomp.ProfileStats("both")
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x), profile=shared, name="f")
    g = symcomp.function([x], T.log(x), profile=shared, name="g")
    f([1.0]), f([1.0]), g([1.0])
    assert shared.calls == 3 and len(shared.functions) == 2
    text = shared.text()
    assert "All functions: 3 calls" in text and "Instructions of f" in text
    data = shared.to_dict()
    assert {op["name"]: op["count"] for op in data["ops"]} == {"exp": 2, "log": 1}


def test_before_any_call():
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x), profile=True, name="waiting")
    assert "0 calls" in f.profile.text()
    assert symcomp.ProfileStats("empty").text().startswith("Profile of empty")
    assert f.profile.to_dict()["functions"][0]["instructions"] == []


def test_pickles_have_no_counts(called):
    twin = pickle.loads(pickle.dumps(called))
    assert twin.profile.message == "training" and twin.profile.calls == 0
    twin(np.ones((2, 4)), 1)
    assert twin.profile.calls == 1 and called.profile.calls == 3


def test_notes():
    x = T.dvector("x")
    f = symcomp.function([x], T.unique(x, axis=0), profile=True, name="sorting")
    for _ in range(3):
        f(np.ones(1000))
    (note,) = f.profile.to_dict()["notes"]
    assert "sorting" in note and "Python" in note and "Unique" in note
    with symcomp.config.change_flags(floatX="float32"):
        assert any("are float64" in note for note in f.profile.to_dict()["notes"])


def longer_by_one(h):
    """Return a state that is longer after each step: no plan of a loop has it."""
    return T.concatenate([h, h[:1]])


@pytest.mark.parametrize(
    "body, linker, reason",
    [
        (T.tanh, "cvm", None),
        (T.tanh, "py", "linker"),
        (longer_by_one, "cvm", "changes its shape"),
    ],
)
def test_loops_whose_steps_python_calls(body, linker, reason):
    h = T.dvector("h")
    outputs, _ = symcomp.scan(lambda h: body(h), outputs_info=[h], n_steps=5, return_list=True)
    f = symcomp.function([h], outputs[0][-1], profile=True, mode=symcomp.Mode(linker=linker))
    f(np.ones(3))
    programs = f.profile.to_dict()["functions"][0]["programs"]
    found = {program["called_by_python"] for program in programs}
    remarks = [note for note in f.profile.to_dict()["notes"] if "one by one" in note]
    if reason is None:
        assert found == {None} and not remarks
        return
    assert any(reason in (why or "") for why in found)
    assert len(remarks) == 1 and reason in remarks[0]
    assert f"Python called each step: {max(filter(None, found))}" in f.profile.text()


def test_chrome_trace(called, tmp_path):
    called.profile.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] > 0 and "pid" in e and "tid" in e for e in spans)
    calls = [e for e in spans if e["cat"] == "call"]
    assert len(calls) == 3
    inside = [e for e in spans if e["cat"] == "instruction"]
    assert any(e["name"].startswith("rnn") for e in inside)
    for event in inside:
        assert any(
            c["ts"] <= event["ts"] + 1 and event["ts"] + event["dur"] <= c["ts"] + c["dur"] + 1
            for c in calls
        )
    assert any(e["cat"] == "compile" and e["name"] == "compile training" for e in spans)


def test_page(called, tmp_path):
    path = tmp_path / "profile.html"
    called.profile.to_html(path)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert loads_nothing(text)
    titles = list(page.data["graphs"])
    assert titles[0] == "training" and len(titles) >= 2
    nodes = page.data["graphs"]["training"]["nodes"]
    rows = called.profile.to_dict()["functions"][0]["instructions"]
    for row in rows:
        if row["ran_in"] != "machine":
            assert nodes[str(row["position"])]["values"]["time"] == row["seconds"]
    loop = next(n for n in nodes.values() if n["opens"])
    assert loop["label"].startswith("rnn") and loop["opens"] in titles
    assert "x" in nodes["s0"]["label"]
    path.write_text(text, encoding="utf-8")
    drawn = in_browser(path, "document.body.dataset.done = document.querySelectorAll('g').length")
    assert int(drawn.of("body")[0][1]["data-done"]) == len(page.of("g"))
    assert [e[2] for e in drawn.of("option")][: len(titles)] == titles


def test_long_programs_are_drawn_in_part(tmp_path):
    x = T.dvector("x")
    y = x
    for _ in range(3000):
        y = T.sin(y)
    f = symcomp.function([x], y, mode=symcomp.Mode("cvm", "merge"), profile=True)
    f([1.0])
    f.profile.to_html(tmp_path / "long.html")
    page = Page((tmp_path / "long.html").read_text(encoding="utf-8"))
    assert 1400 < len(page.of("g")) < 1600


def test_text_at_exit():
    profiles = [symcomp.ProfileStats(name) for name in "abc"]
    x = T.dvector("x")
    functions = [symcomp.function([x], T.exp(x) + i, profile=p) for i, p in enumerate(profiles)]
    for f in functions[:2]:
        f([1.0])
    text = text_at_exit(profiles)
    assert text.index("Profile of a") < text.index("Profile of b") < text.index("all 2 functions")
    assert "Profile of c" not in text and "1 functions were compiled and not called" in text


@pytest.mark.parametrize("to_file", [True, False])
def test_config_profile_prints_at_exit(tmp_path, to_file):
    script = "import symcomp, symcomp.tensor as T\nx = T.dscalar('x')\n"
    script += "f = symcomp.function([x], T.exp(x), name='mine')\nf(1.0)\n"
    flags = f"profile=True,kernels=False,compiledir={symcomp.config.compiledir}"
    if to_file:
        flags += f",profile_destination={tmp_path / 'profile.txt'}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"SYMCOMP_FLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
    )
    text = (tmp_path / "profile.txt").read_text() if to_file else done.stderr
    assert "Profile of mine" in text and "1 calls" in text and done.stdout == ""
