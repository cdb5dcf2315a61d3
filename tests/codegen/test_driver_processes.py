"""Processes that share the directory of compiled kernels, while entries are removed, and killed at
any moment."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from symcomp.codegen.compiler import driver, entry
from symcomp.codegen.compiler.entry import Order
from symcomp.config import config

WRITER = """
    import ctypes, os, sys
    from symcomp.codegen.compiler.driver import load
    {first}
    for n in range(int(sys.argv[1]), int(sys.argv[2])):
        source = f"int answer(void);\\nint answer(void)\\n{{\\n    return {n};\\n}}\\n"
        (address,) = load(source, ["answer"])
        assert ctypes.CFUNCTYPE(ctypes.c_int)(address)() == n
        print(n, flush=True)
"""
SOURCE = "int answer(void);\nint answer(void)\n{\n    return 0;\n}\n"
# Where the process ends, beside the step that publishes an entry.
KILLED = {
    "before": "os.replace = lambda *paths: os.kill(os.getpid(), 9)",
    "after": "r = os.replace; os.replace = lambda *p: (r(*p), os.kill(os.getpid(), 9))",
}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "kernels"
    with config.change_flags(compiledir=str(path), cflags=""):
        yield path


def writer(
    directory: Path, start: int, stop: int, flags: str = "", first: str = ""
) -> subprocess.Popen[str]:
    """Start a process that compiles functions that return these numbers, and prints the numbers."""
    program = textwrap.dedent(WRITER).replace("{first}", first)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(start), str(stop)],
        env={**os.environ, "SYMCOMP_FLAGS": f"compiledir={directory},{flags}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def check(process: subprocess.Popen[str], start: int, stop: int) -> None:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and output.split() == [str(n) for n in range(start, stop)]


def test_processes_share_the_directory(directory: Path) -> None:
    for process in [writer(directory, 0, 4), writer(directory, 0, 4)]:
        check(process, 0, 4)
    assert len(driver.entries()) == 4


def test_entries_are_removed_all_the_time(directory: Path) -> None:
    """Each process removes what others made, and this one whatever it sees."""
    processes = [writer(directory, 0, 6, "compiledir_size=0") for _ in range(3)]
    while any(process.poll() is None for process in processes):
        driver.clear()
        time.sleep(0.001)
    for process in processes:
        check(process, 0, 6)
    driver.clear()
    assert [*directory.iterdir()] == []


def test_a_killed_writer_leaves_nothing_broken(directory: Path) -> None:
    process = writer(directory, 0, 10_000)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    complete = len(driver.entries())
    assert complete >= 3
    check_entries()
    check(writer(directory, 0, complete + 2), 0, complete + 2)


@pytest.mark.parametrize("moment", KILLED)
def test_killed_beside_the_renaming(directory: Path, moment: str) -> None:
    process = writer(directory, 0, 1, first=KILLED[moment])
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert len(driver.entries()) == (moment == "after")
    check_what_is_left(directory)


def test_killed_while_the_compiler_runs(directory: Path, tmp_path: Path) -> None:
    stub, started = tmp_path / "cc", tmp_path / "started"
    stub.write_text(
        f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 60\n"
    )
    stub.chmod(0o700)
    process = writer(directory, 0, 1, f"cc={stub}")
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    os.kill(int(started.read_text()), signal.SIGKILL)
    process.communicate(timeout=120)
    assert driver.entries() == []
    check_what_is_left(directory)


def test_what_a_killed_writer_left_is_cleared(directory: Path) -> None:
    process = writer(directory, 0, 1, first=KILLED["before"])
    process.communicate(timeout=120)
    assert len(driver.clear()) == 1
    assert [*directory.iterdir()] == []


def disturbed(path: Path, script: str, runs: int = 1) -> str:
    """Write a compiler whose first runs for entries do something else; in it, ``"$@"`` is the real
    one.
    """
    real = driver.find_compiler("")
    path.write_text(
        f'#!/bin/sh\nset -- {real} "$@"\n'
        f'case "$*" in *new-*) echo >> {path}.runs;; *) exec "$@";; esac\n'
        f'test $(wc -l < {path}.runs) -le {runs} || exec "$@"\n'
        f"{script}\n"
    )
    path.chmod(0o700)
    return str(path)


REMOVED = {
    "directory before": 'rm -r {0}; exec "$@"',
    "directory after": '"$@"; rm -r {0}',
    "directory made again": 'rm -r {0}; "$@"; status=$?; mkdir -m 700 {0}; exit $status',
    "file": '"$@"; rm {0}/new-*',
}


@pytest.mark.parametrize("what", REMOVED)
def test_what_is_written_is_removed(directory: Path, tmp_path: Path, what: str) -> None:
    """The entry is made again, and so is the directory."""
    compiler = disturbed(tmp_path / "cc", REMOVED[what].format(directory))
    check(writer(directory, 0, 1, f"cc={compiler}"), 0, 1)
    with config.change_flags(cc=compiler):
        check_entries()
    assert [path.suffix for path in directory.iterdir()] == [".so"]
    assert directory.stat().st_mode & 0o777 == 0o700
    # And by the process that optimizes.
    order = Order([compiler, "-shared", "-fPIC"], SOURCE, str(directory), "0" * 64, "nothing")
    (tmp_path / "cc.runs").unlink()
    subprocess.run(
        [sys.executable, "-I", "-S", entry.__file__], input=json.dumps([order]), text=True,
        check=True,
    )  # fmt: skip
    assert driver._open(directory / f"{order.key}.so", order.key) is not None


def test_what_is_removed_each_time(directory: Path, tmp_path: Path) -> None:
    compiler = disturbed(tmp_path / "cc", REMOVED["directory before"].format(directory), 2)
    with config.change_flags(cc=compiler):
        with pytest.raises(driver.CompilerError, match="No such file"):
            driver.load(SOURCE, ["answer"])
        assert driver.load(SOURCE, ["answer"])


def check_entries() -> None:
    for one in driver.entries():
        assert driver._open(one.path, one.path.stem) is not None


def check_what_is_left(directory: Path) -> None:
    """Check that entries are complete, others unharmed, and old unfinished files removed."""
    check_entries()
    begun = [*directory.glob("new-*")]
    assert len(begun) == 1 - len(driver.entries())
    assert driver.load(SOURCE, ["answer"])
    for path in begun:
        os.utime(path, (time.time() - 2 * driver.STALE,) * 2)
    driver._room.clear()  # as in a process that begins
    assert driver.load(SOURCE.replace("0", "1"), ["answer"])
    assert {path.suffix for path in directory.iterdir()} == {".so"}
    assert len(driver.entries()) == 2
