"""`make gpu` goes through all its parts, on the emulator."""

import os
import subprocess
import sys
from pathlib import Path

from symcomp.tests.repository import ROOT


def test_the_report_of_a_device(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    command = [sys.executable, "tools/gpu_report.py", str(report), "--device", "emu", "--tiny"]
    # Compilers take half the time without optimizing.
    environ = {**os.environ, "SYMCOMP_FLAGS": "cflags=-O0"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, env=environ
    )
    assert done.returncode == 0, done.stdout
    text = report.read_text(encoding="utf-8")
    for title in ("What is there", "Tests", "memcheck", "racecheck", "Speed"):
        assert f"{title}\n" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 43  # the head, and the tasks
    assert all(float(row[2].replace(",", "")) > 0 for row in rows[1:])
