"""Functions on a device, beside PyTorch, eager and compiled, and CuPy: a table in Markdown.

    python benchmarks/gpu.py [--device cuda] [--peers PYTHON] [--seconds S] [--limit L] [--tiny]

The tasks are those of gpu_data.py; their data lie on the device, calls are enqueued one after
another and waited for together, the best of several windows counts. ``--peers`` names a Python that
has torch or cupy (by default this one); what it lacks is left out. Each library has a process of
its own, and a part of the limit of seconds. What the third call of a task returns must be the same
everywhere, within 1e-3; the processor computes it, too. ``--tiny`` takes arrays of a few elements,
to try the program out: on the emulator (``--device emu``) nothing else is of use.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_data import TASKS, Task

HERE = Path(__file__).parent
TOLERANCE = 1e-3


@dataclass
class Worker:
    """A library, and what it did.

    Attributes
    ----------
    name, script : str
    share : float
        Of the limit of seconds.
    device : str, optional
        If it is not that of the command line.
    environ : dict
    rows : dict of str to dict
        The lines for tasks.
    said : str
        Why lines are missing.
    """

    name: str
    script: str
    share: float
    device: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: str = ""

    def run(self, options: argparse.Namespace) -> None:
        """Let it do the tasks, until its time is up."""
        python = options.peers if self.script.startswith("peers") else sys.executable
        device = self.device or options.device
        # The processor's results are compared, its time is not measured.
        seconds = 0 if self.device else options.seconds
        command = [python, str(HERE / self.script), "--device", device, "--only", options.only]
        command += ["--seconds", str(seconds), *(["--tiny"] if options.tiny else [])]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(
                command, stdout=out, stderr=err, env={**os.environ, **self.environ}
            )
            try:
                code = process.wait(self.share * options.limit)
                self.said = f"ended with status {code}" if code else ""
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.said = f"stopped after {self.share * options.limit:.0f} s"
            out.seek(0)
            self._read(out.read())
            err.seek(0)
            if self.said:
                self.said = "; ".join([self.said, *err.read().strip().splitlines()[-1:]])

    def _read(self, printed: str) -> None:
        for line in printed.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # another library prints, or the last line is not whole
            if "missing" in row:
                self.said = f"there is no {row['missing']}"
            else:
                self.rows[row["task"]] = row


def workers() -> list[Worker]:
    """Return symcomp, the processor, and the peers."""
    return [
        Worker("symcomp", "gpu_tasks.py", 0.35),
        Worker("processor", "gpu_tasks.py", 0.15, device="cpu"),
        Worker("PyTorch", "peers/gpu_torch.py", 0.15),
        Worker("CuPy", "peers/gpu_cupy.py", 0.1),
        Worker(
            "PyTorch, compiled", "peers/gpu_torch.py", 0.25, environ={"GPU_TORCH_COMPILED": "1"}
        ),
    ]


def figure(task: Task, worker: Worker, tiny: bool) -> float:
    """Return the figure of a task; NaN if there is none."""
    seconds = worker.rows.get(task.name, {}).get("seconds")
    return task.figure(seconds, task.tiny if tiny else task.sizes) if seconds else math.nan


def line(task: Task, ran: list[Worker], tiny: bool) -> str:
    """Return a row of the table; its last column is how much faster symcomp is than the best."""
    figures = [figure(task, w, tiny) for w in ran if not w.device]
    best = min if task.unit == "us" else max
    others = [f for f in figures[1:] if f == f]
    ratio = best(others) / figures[0] if others else math.nan
    ratio = ratio if task.unit == "us" else 1 / ratio
    cells = [f"{f:,.4g}" if f == f else "-" for f in figures]
    last = f"{ratio:.2f}" if ratio == ratio else "-"
    return f"| {' | '.join([task.name, task.unit, *cells, last])} |"


def differences(ran: list[Worker]) -> list[str]:
    """Return a line for each task that failed, or that is not the same everywhere."""
    found = []
    for task in TASKS:
        checks = {}
        for w in ran:
            row = w.rows.get(task.name, {})
            if "error" in row:
                found.append(f"- {task.name}, {w.name}: {row['error']}")
            elif "check" in row:
                checks[w.name] = row["check"]
        first = next(iter(checks.values()), 0.0)
        if not all(math.isclose(c, first, rel_tol=TOLERANCE) for c in checks.values()):
            found.append(f"- {task.name}: DIFFERENT: {checks}")
    return found


def main() -> int:
    """Print the table; return 1 if symcomp did not do all tasks, or results differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--peers", default=sys.executable, help="a Python that has torch or cupy")
    parser.add_argument("--seconds", type=float, default=0.5, help="per task and library")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for everything")
    parser.add_argument("--tiny", action="store_true", help="arrays of a few elements")
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    options = parser.parse_args()
    ran = workers()
    for worker in ran:
        started = time.perf_counter()
        worker.run(options)
        took = f"{time.perf_counter() - started:.1f} s"
        print(f"{worker.name}: {len(worker.rows)} tasks, {took}", file=sys.stderr, flush=True)
    names = [w.name for w in ran if not w.device]
    print(f"| task | unit | {' | '.join(names)} | times as fast as the best |")
    print("|---|---|" + "---|" * (len(names) + 1))
    tasks = [task for task in TASKS if options.only in task.name]
    for task in tasks:
        print(line(task, ran, options.tiny))
    wrong = differences(ran)
    notes = [f"- {w.name}: {w.said}" for w in ran if w.said]
    print("\n".join(["", *notes, *wrong]), flush=True)
    done = all("seconds" in ran[0].rows.get(task.name, {}) for task in tasks)
    return int(not done or any("DIFFERENT" in text for text in wrong))


if __name__ == "__main__":
    sys.exit(main())
