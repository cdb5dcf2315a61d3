"""Two builds of symcomp beside each other: the ratio of their times for every task.

    python benchmarks/beside.py OLD NEW
    python benchmarks/beside.py OLD NEW --only 'scan/*' rnn --repeats 10 --json ratios.json
    python benchmarks/beside.py OLD NEW --only 'slow/*'

OLD and NEW are checkouts, whose interpreter is `.venv/bin/python`, or interpreters. The tasks are
those of `beside_tasks.py` beside this file, for both builds. Each build has one process, which
lives until the end. The two measure a task in turn, a window each, on one core and with one thread,
so that a disturbance meets both. Processor time is measured, and the fastest part of all windows
counts. The ratio is the old time divided by the new one: above 1 the new build is faster.

A task whose ratio is below 0.97 is measured again, up to five times, by new processes: the time
depends on where memory lies. It is marked if the ratio stays there. A task that a build cannot do
is reported. The exit status is 1 if a ratio is marked, or if only the new build fails. Slow tasks,
which start compilers and processes, run with `--slow`, or if `--only` names them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIDES = ("old", "new")
# How often a task is measured by new processes before it is marked: where these have their memory
# takes some hundredths of the time.
FURTHER = 5
# How many seconds an answer may take.
PATIENCE = 600.0
# How many seconds a process has to end by itself.
GRACE = 20.0
SLOW = "slow/"


class Worker:
    """The process of one build, started again when it dies.

    Parameters
    ----------
    command : sequence of str
        Starts a process that answers as `beside_worker.py` says.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = [*command]
        self._start()

    def _start(self) -> None:
        self._printed = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            self._command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._printed, text=True,
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        ends = self._process.stdout, self._lines
        self._listener = threading.Thread(target=_forward, args=ends, daemon=True)
        self._listener.start()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request; ``{"error": ..}`` if there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=PATIENCE)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            return {"error": f"no answer in {PATIENCE:.0f} s: {self.restart(at_once=True)}"}
        if not line:
            status = self._process.wait()
            return {"error": f"the process ended with status {status}: {self.restart()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def restart(self, at_once: bool = False) -> str:
        """Go on with a new process; return the last line that the old one printed."""
        last = self.end(at_once)
        self._start()
        return last

    def end(self, at_once: bool = False) -> str:
        """End the process, which removes its files unless it is killed; return its last line."""
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # type: ignore[union-attr]
        if at_once:
            self._process.kill()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._process.stdout.close()  # type: ignore[union-attr]
        with self._printed as printed:
            printed.seek(0)
            return printed.read().strip().split("\n")[-1]


def _forward(source: Iterable[str], lines: queue.SimpleQueue[str]) -> None:
    """Queue the lines of a process, and an empty one after its end."""
    for line in source:
        lines.put(line)
    lines.put("")


def _environment() -> dict[str, str]:
    """Return the environment of both processes: one thread, and no modules from elsewhere."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, **one, "PYTHONHASHSEED": "0"}


@dataclass
class Row:
    """The measurements of one task: seconds or errors of "old" and "new".

    Attributes
    ----------
    task : str
    limit : float
        Smaller ratios are marked.
    seconds, errors : dict of str to float, of str to str
    """

    task: str
    limit: float
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The old time divided by the new one; None if a build cannot do the task."""
        if self.errors or len(self.seconds) < len(SIDES):
            return None
        return self.seconds["old"] / self.seconds["new"]

    @property
    def is_marked(self) -> bool:
        """Whether the new build is slower, or fails where the old one does not."""
        return self.errors.keys() == {"new"} or (self.ratio is not None and self.ratio < self.limit)

    def line(self) -> str:
        """Format the row of the table."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3f}"
        texts = [*(self._time(side) for side in SIDES), ratio]
        mark = "  <" if self.is_marked else ""
        return f"{self.task:<36}" + "".join(f"{text:>12}" for text in texts) + mark

    def _time(self, side: str) -> str:
        if side in self.errors:
            return "fails"
        seconds = self.seconds[side]
        units = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
        unit, factor = next((u for u in units if seconds * u[1] >= 1), units[-1])
        return f"{seconds * factor:.4g} {unit}"


HEAD = f"{'task':<36}" + "".join(f"{text:>12}" for text in (*SIDES, "old / new"))


def compare(workers: dict[str, Worker], row: Row, repeats: int, window: float) -> None:
    """Measure a task by both builds in turn."""
    _measure(row, workers, repeats, window)
    for _ in range(FURTHER):
        if row.ratio is None or not row.is_marked:
            break
        for worker in workers.values():
            worker.restart()
        _measure(row, workers, repeats, window)


def _measure(row: Row, workers: dict[str, Worker], repeats: int, window: float) -> None:
    """Prepare a task, and add windows to its row."""
    for side, worker in workers.items():
        answer = worker.ask(prepare=row.task)
        if "error" in answer:
            row.errors[side] = answer["error"]
    for _ in range(repeats):
        for side, worker in workers.items():
            if side in row.errors:
                continue
            answer = worker.ask(measure=window)
            if "error" in answer:
                row.errors[side] = answer["error"]
            else:
                row.seconds[side] = min(answer["seconds"], row.seconds.get(side, math.inf))


def summary(rows: Sequence[Row]) -> str:
    """Tell the mean ratio, which tasks are marked, and which ones cannot be done."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    lines = []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"{len(ratios)} ratios, geometric mean {mean:.3f}, least {min(ratios):.3f}")
    slower = [row for row in rows if row.ratio is not None and row.is_marked]
    lines += [f"below {row.limit}: {row.task} {row.ratio:.3f}" for row in slower]
    lines += [
        f"{row.task} fails in the {side} build: {error}"
        for row in rows
        for side, error in row.errors.items()
    ]
    return "\n".join(lines)


def chosen(names: Sequence[str], patterns: Sequence[str], slow: bool) -> list[str]:
    """Return the tasks to do: all but the slow ones, or all that match a pattern.

    A pattern is part of a name, or has wildcards as file names have.
    """
    if not patterns:
        return [name for name in names if slow or not name.startswith(SLOW)]
    return [
        name
        for name in names
        if any(fnmatch(name, p) or (p in name and (slow or SLOW not in name)) for p in patterns)
    ]


def interpreter(build: Path) -> Path:
    """Return the Python of a checkout, or the interpreter itself."""
    python = build / ".venv" / "bin" / "python" if build.is_dir() else build
    if not python.exists():
        raise SystemExit(f"beside: {build} has no {python}: build it there by make check")
    return python.absolute()


def started(build: Path) -> tuple[Worker, dict[str, Any]]:
    """Start the process of a build; return it, and its versions and tasks."""
    worker = Worker([str(interpreter(build)), str(HERE / "beside_worker.py")])
    about = worker.ask(about=True)
    where = Path(about.get("symcomp", ""))
    problem = ""
    if "error" in about:
        problem = f"{build} cannot be measured: {about['error']}"
    elif build.is_dir() and not where.is_relative_to(build.resolve()):
        problem = f"the Python of {build} imports symcomp from {where}"
    if problem:
        worker.end()
        raise SystemExit(f"beside: {problem}")
    return worker, about


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("old", type=Path, metavar="OLD", help="a checkout, or an interpreter")
    parser.add_argument("new", type=Path, metavar="NEW", help="the same")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN",
        help="parts of names of tasks, or names with wildcards",
    )  # fmt: skip
    parser.add_argument("--slow", action="store_true", help="compilers and processes, too")
    parser.add_argument(
        "--repeats", type=_count, default=5, metavar="N", help="windows of each build"
    )
    parser.add_argument(
        "--window", type=float, default=0.2, metavar="SECONDS", help="the length of a window"
    )
    parser.add_argument(
        "--limit", type=float, default=0.97, metavar="RATIO", help="smaller ratios are marked"
    )
    parser.add_argument("--core", type=int, help="where to run; the last core, if not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def main() -> int:
    """Compare, and print the table line by line."""
    options = arguments()
    if hasattr(os, "sched_setaffinity"):
        last = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {last if options.core is None else options.core})
    builds = dict(zip(SIDES, (options.old, options.new), strict=True))
    workers, about = {}, {}
    try:
        for side, build in builds.items():
            workers[side], about[side] = started(build)
        tasks = chosen(about["new"]["tasks"], options.only, options.slow)
        if not tasks:
            raise SystemExit(f"beside: no task is called {' or '.join(options.only)}")
        rows = []
        print(HEAD, flush=True)
        for task in tasks:
            rows.append(Row(task, options.limit))
            compare(workers, rows[-1], options.repeats, options.window)
            print(rows[-1].line(), flush=True)
    finally:
        for worker in workers.values():
            worker.end()
    print(f"\n{summary(rows)}")
    if options.json:
        figures = [{**asdict(row), "ratio": row.ratio} for row in rows]
        options.json.write_text(json.dumps({"builds": about, "tasks": figures}, indent=1) + "\n")
    return int(any(row.is_marked for row in rows))


if __name__ == "__main__":
    sys.exit(main())
