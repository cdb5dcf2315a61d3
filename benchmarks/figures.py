"""The table and the figures of docs/speed.md, from files of JSON lines.

    python benchmarks/figures.py FILE.jsonl [FILE.jsonl ...]

The files hold lines as benchmarks/runner.py prints them, from symcomp and its peers, measured on
one machine in one sitting. If a peer has several figures for a task, the best counts. The text
between the two marks in docs/speed.md is written anew, and so are the pictures in docs/images.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parents[1] / "docs"
START, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COLORS = {
    "symcomp": "#c2410c", "jax": "#4878a8", "torch": "#8c6bb1", "numpy": "#9a9a9a",
    "pytensor-numba": "#6a9f58", "pytensor-cvm": "#3f7f6f",
}  # fmt: skip

Figures = Mapping[tuple[str, str], Mapping[str, float]]


def read(paths: list[str]) -> Figures:
    """For every task and its unit, the best figure of each peer."""
    figures: dict[tuple[str, str], dict[str, float]] = {}
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                runs = figures.setdefault((row["task"], row["unit"]), {})
                best = max if row["unit"] == "/s" else min
                runs[row["peer"]] = best(runs.get(row["peer"], row["value"]), row["value"])
    return figures


def ratio(unit: str, ours: float, theirs: float) -> float:
    """Return how many times as fast symcomp is."""
    return ours / theirs if unit == "/s" else theirs / ours


def table(figures: Figures) -> str:
    """Return the figures in Markdown, and beside them the ratio to the best peer."""
    peers = sorted({p for runs in figures.values() for p in runs} - {"symcomp"})
    head = ["task", "symcomp", *peers, "best peer = 1"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for (task, unit), runs in figures.items():
        if "symcomp" not in runs:
            continue
        others = [runs[p] for p in peers if p in runs]
        best = (max if unit == "/s" else min)(others) if others else None
        cells = [_text(runs[p], unit) if p in runs else "" for p in ("symcomp", *peers)]
        last = "" if best is None else f"{ratio(unit, runs['symcomp'], best):.2f}"
        lines.append(f"| {task} | {' | '.join(cells)} | {last} |")
    return "\n".join(lines)


def _text(value: float, unit: str) -> str:
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g} {unit}"


def machine() -> str:
    """Describe the processor, the cores used, and the versions, in a line."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.split(":")[1].strip()
                break
    kernel = f"{platform.system()} {platform.release().split('-')[0]}"
    cores = f"one of {os.cpu_count()} cores"
    return f"{name}, {cores}, {kernel}, Python {platform.python_version()}"


def draw(figures: Figures, title: str, path: Path) -> None:
    """Draw the tasks that time one call: bars for each peer, on a logarithmic axis."""
    tasks = [(task, runs) for (task, _), runs in figures.items() if "/loop" not in task]
    present = {p for _, runs in tasks for p in runs}
    peers = [p for p in COLORS if p in present]
    width = 0.8 / len(peers)
    figure, axes = plt.subplots(figsize=(max(6.0, 1.1 * len(tasks)), 3.6))
    for k, peer in enumerate(peers):
        places = [i + (k - (len(peers) - 1) / 2) * width for i in range(len(tasks))]
        axes.bar(
            places, [runs.get(peer, 0) for _, runs in tasks], width, label=peer, color=COLORS[peer]
        )
    axes.set_yscale("log")
    axes.set_xticks(range(len(tasks)), [t.replace("/", "\n") for t, _ in tasks], fontsize=8)
    axes.set_ylabel(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False, fontsize=8, ncols=len(peers), loc="lower left", bbox_to_anchor=(0, 1)
    )
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    """Read the files named on the command line, and write."""
    figures = read(sys.argv[1:])
    if not any("symcomp" in runs for runs in figures.values()):
        sys.exit(__doc__)
    page = DOCS / "speed.md"
    text = page.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    networks = {k: v for k, v in figures.items() if k[0].startswith(("lr", "mlp"))}
    draw(networks, "examples per second", DOCS / "images" / "speed_training.png")
    loops = {k: v for k, v in figures.items() if k[0].startswith("rnn")}
    draw(loops, "µs per step", DOCS / "images" / "speed_loops.png")
    pictures = (
        "![Training: examples per second](images/speed_training.png)\n\n"
        "![Loops: microseconds per step](images/speed_loops.png)"
    )
    measured = f"{START}\n{machine()}\n\n{table(figures)}\n\n{pictures}\n{END}"
    page.write_text(before + measured + after, encoding="utf-8")


if __name__ == "__main__":
    main()
