"""Try a card out, and write a report in Markdown: its tests, its kernels watched, its speed.

Run as ``python tools/gpu_report.py build/gpu_report.md``, as ``make gpu`` does. The parts are what
`python -m symcomp info` says; the tests of devices on the card; some of them within NVIDIA's
compute-sanitizer, which finds bad addresses and races in kernels; and benchmarks/gpu.py. Each is
stopped when its time is up, and the report is written after each part, so that a part that hangs
costs only itself. It fails if a part does. ``--device emu --tiny`` goes through the same parts on
the emulator.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Lines of a part that a report keeps: the last ones.
LINES = 120
# Tests with kernels of all kinds, which take the sanitizer minutes; and one of them alone.
WATCHED = (
    "test_kernels.py", "test_tiles.py", "test_running.py", "test_indexing.py", "test_sorting.py",
)  # fmt: skip
TINY = "test_kernels.py::test_normalization"
TOOLKITS = ("/usr/local/cuda/bin", "/opt/cuda/bin")


@dataclass
class Part:
    """A part of the report.

    Attributes
    ----------
    title : str
    command : sequence of str
    limit : float
        Seconds after which it is stopped.
    environ : dict of str to str
        Beside that of this process.
    missing : str
        Why it cannot be done here; it can be if this is empty.
    """

    title: str
    command: Sequence[str]
    limit: float
    environ: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    def run(self) -> tuple[str, bool]:
        """Do it; return its lines of the report, and whether it did not fail."""
        if self.missing:
            return f"## {self.title}\n\nNot done: {self.missing}.\n", True
        started = time.perf_counter()
        # A group of its own, whose children end with it.
        process = subprocess.Popen(
            list(self.command), cwd=ROOT, env={**os.environ, **self.environ}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            said = process.communicate(timeout=self.limit)[0]
            how = f"status {process.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate()[0]
            how = f"stopped after {self.limit:.0f} s"
        took = time.perf_counter() - started
        last = "\n".join(said.rstrip().splitlines()[-LINES:])
        head = f"## {self.title}\n\n`{' '.join(self.command)}`: {how}, {took:.0f} s\n"
        return f"{head}\n```\n{last}\n```\n", process.returncode == 0


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer, or ''."""
    places = os.pathsep.join([os.environ.get("PATH", ""), *TOOLKITS])
    return shutil.which("compute-sanitizer", path=places) or ""


def parts(device: str, is_tiny: bool, peers: str) -> list[Part]:
    """Return the parts of a report about a device, which take ten minutes at most together."""
    python = sys.executable
    environ = {"SYMCOMP_TEST_DEVICE": device}
    marked = [] if device.startswith("emu") else ["-m", "gpu"]
    pytest = [python, "-m", "pytest", "-q", *marked, "-n"]
    workers = "0" if is_tiny else str(min(os.cpu_count() or 1, 8))
    tests = [f"tests/gpu/{TINY}"] if is_tiny else ["tests/gpu"]
    watched = [f"tests/gpu/{name}" for name in ([TINY] if is_tiny else WATCHED)]
    sanitizer = find_sanitizer()
    missing = "" if sanitizer else "there is no compute-sanitizer, which NVIDIA's toolkit has"
    if device.startswith("emu"):
        missing = "the kernels of the emulator do not run on a card (see make gpu-sanitize)"
    benchmark = [python, "benchmarks/gpu.py", "--device", device, "--peers", peers]
    benchmark += ["--tiny", "--seconds", "0.001"] if is_tiny else ["--limit", "200"]
    watching = [
        Part(
            f"compute-sanitizer {tool}",
            [sanitizer, "--tool", tool, "--error-exitcode", "1", *pytest, "0", "-x", *watched],
            limit, environ, missing,
        )
        for tool, limit in (("memcheck", 70), ("racecheck", 200))
    ]  # fmt: skip
    return [
        Part("What is there", [python, "-m", "symcomp", "info"], 20),
        Part("Tests", [*pytest, workers, *tests], 80, environ),
        *watching,
        Part("Speed", benchmark, 210),
    ]


def main() -> int:
    """Write the report; return 1 if a part failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a test and arrays of a few elements")
    parser.add_argument("--peers", default=sys.executable, help="a Python that has torch or cupy")
    options = parser.parse_args()
    options.report.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"# Device {options.device}, {time.strftime('%Y-%m-%d')}\n"]
    failed = []
    for part in parts(options.device, options.tiny, options.peers):
        text, is_good = part.run()
        lines.append(text)
        options.report.write_text("\n".join(lines), encoding="utf-8")
        print(text, flush=True)
        if not is_good:
            failed.append(part.title)
    print(f"{options.report}: {', '.join(failed) or 'nothing'} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
