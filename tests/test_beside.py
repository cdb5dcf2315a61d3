"""`benchmarks/beside.py` compares two builds, also where one of them fails."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from symcomp.tests.repository import ROOT

SCRIPT = ROOT / "benchmarks" / "beside.py"

# Answers as a worker does, but for the task "missing", and dies of the task "deadly".
WORKER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request.get("prepare") == "deadly":
        sys.exit("out of memory")
    failed = request.get("prepare") == "missing"
    print(json.dumps({"error": "TypeError: no"} if failed else {"seconds": SECONDS}), flush=True)
"""


@pytest.fixture(scope="module")
def beside() -> ModuleType:
    """Import the script."""
    spec = importlib.util.spec_from_file_location("beside", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["beside"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads processor time")
def test_one_build_beside_itself(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(SCRIPT), sys.executable, sys.executable, "--repeats", "1"]
    command += ["--window", "0.001", "--limit", "0", "--json", str(figures)]
    command += ["--only", "ifelse/in_turn", "first_call/elements"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.split("\n")[:3]] == [
        "task", "ifelse/in_turn", "first_call/elements",
    ]  # fmt: skip
    assert "2 ratios" in done.stdout
    found = json.loads(figures.read_text())
    assert [row["task"] for row in found["tasks"]] == ["ifelse/in_turn", "first_call/elements"]
    for row in found["tasks"]:
        assert row["seconds"].keys() == {"old", "new"}
        assert row["ratio"] == row["seconds"]["old"] / row["seconds"]["new"] > 0
    assert found["builds"]["old"] == found["builds"]["new"]
    names = set(found["builds"]["new"]["tasks"])
    training = {f"{net}/b{n}{loop}" for net in ("lr", "mlp1", "mlp3") for n in (1, 10, 60)
                for loop in ("", "/loop")}  # fmt: skip
    loops = {f"rnn_{way}/h{n}" for way in ("forward", "grad") for n in (10, 100, 400)}
    assert training | loops | {"call_overhead", "op_chain_100_small_ops"} <= names


def workers(beside: ModuleType, old: float, new: float) -> dict[str, object]:
    """Start two processes that answer with constant times."""
    texts = {"old": WORKER.replace("SECONDS", str(old)), "new": WORKER.replace("SECONDS", str(new))}
    return {side: beside.Worker([sys.executable, "-c", text]) for side, text in texts.items()}


def test_slower_and_failing_tasks_are_marked(beside: ModuleType) -> None:
    pair = workers(beside, 2e-6, 4e-6)
    rows = [beside.Row(task, 0.97) for task in ("slower", "missing", "deadly", "after")]
    try:
        for row in rows:
            beside.compare(pair, row, 1, 0.0)
    finally:
        for worker in pair.values():
            worker.end()
    slower, missing, deadly, after = rows
    assert slower.ratio == after.ratio == 0.5 and slower.is_marked
    assert slower.line().split() == ["slower", "2", "us", "4", "us", "0.500", "<"]
    assert missing.errors == {"old": "TypeError: no", "new": "TypeError: no"}
    assert missing.ratio is None and not missing.is_marked
    assert missing.line().split() == ["missing", "fails", "fails"]
    assert deadly.errors["new"] == "the process ended with status 1: out of memory"
    lines = beside.summary(rows).split("\n")
    assert lines[0] == "2 ratios, geometric mean 0.500, least 0.500"
    assert "below 0.97: slower 0.500" in lines
    assert "missing fails in the old build: TypeError: no" in lines


def test_a_task_that_only_the_new_build_cannot_do_is_marked(beside: ModuleType) -> None:
    row = beside.Row("scan/short", 0.97, {"old": 1.5e-3}, {"new": "IndexError: 3"})
    assert row.ratio is None and row.is_marked
    assert row.line().split() == ["scan/short", "1.5", "ms", "fails", "<"]
    known = beside.Row("scan/short", 0.97, {"new": 1.5e-3}, {"old": "IndexError: 3"})
    assert not known.is_marked


def test_choice_of_tasks(beside: ModuleType) -> None:
    names = ["scan/short", "scan/long", "call/one", "slow/start"]
    assert beside.chosen(names, [], slow=False) == names[:3]
    assert beside.chosen(names, [], slow=True) == names
    assert beside.chosen(names, ["s*/short", "one"], slow=False) == ["scan/short", "call/one"]
    assert beside.chosen(names, ["start"], slow=False) == []
    assert beside.chosen(names, ["slow/*"], slow=False) == ["slow/start"]


def test_builds_that_cannot_be_measured(beside: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no .*bin/python"):
        beside.started(tmp_path)
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named symcomp >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(SystemExit, match="status 3: no module named symcomp"):
        beside.started(broken)
