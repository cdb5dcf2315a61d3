"""The cache of compiled kernels keeps to its size, and what killed processes left goes."""

import os
import subprocess
import sys
import time

import pytest

from symcomp.codegen.compiler import driver, entry
from symcomp.config import config
from symcomp.tests.codegen.answers import SOURCE, answer, forget, key_of


def test_least_recently_used_are_removed(directory, monkeypatch):
    sources = [SOURCE.replace("42", str(n)) for n in range(6)]
    for n, source in enumerate(sources):
        answer(source)
        path = directory / f"{key_of(source)}.so"
        os.utime(path, (1000 + n, 1000 + n))
    forget()
    answer(sources[0])  # used again
    size = driver.entries()[0].size
    monkeypatch.setattr(driver, "MEBIBYTE", size)
    with config.change_flags(compiledir_size=3):
        answer(SOURCE)
    left = {entry.path.stem for entry in driver.entries()}
    assert left == {key_of(s) for s in (sources[0], sources[5], SOURCE)}


def test_the_directory_is_read_now_and_then(directory, monkeypatch):
    """Not for each compilation, but before much more than the limit can be there."""
    answer()
    size = driver.entries()[0].size
    looks = []
    shrink = driver._shrink
    monkeypatch.setattr(driver, "_shrink", lambda *given: looks.append(given) or shrink(*given))
    monkeypatch.setattr(driver, "MEBIBYTE", size)
    forget()
    with config.change_flags(compiledir_size=10):
        for n in range(16):
            answer(SOURCE.replace("42", str(n)))
        # After half of the free part: with 2, 7, 9 and 10 entries; in a full one, each time.
        assert len(looks) == 4 + 7
        assert len(driver.entries()) == 10


def test_what_killed_writers_left_is_removed(directory):
    answer()
    old, new = (directory / f"new-{'0' * 64}-{name}" for name in ("old", "young"))
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * driver.STALE,) * 2)
    forget()
    answer(SOURCE.replace("42", "44"))
    assert not old.exists() and new.exists()


def new_name(process):
    """Return the name of a file of this process before it is an entry."""
    return f"new-{'0' * 64}-{process}-{entry._namespace()}-x"


@pytest.fixture
def ended():
    """Return the number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_what_killed_writers_left_is_cleared(directory, ended):
    """Files that are being written stay."""
    answer()
    own, left = directory / new_name(os.getpid()), directory / new_name(ended)
    for path in (own, left, directory / f"new-{'0' * 64}-nobody's"):
        path.write_bytes(b"half")
    assert len(driver.clear()) == 3
    assert [*directory.iterdir()] == [own]


def test_what_killed_writers_left_has_a_size(directory, monkeypatch, ended):
    answer()
    (kept,) = driver.entries()
    monkeypatch.setattr(driver, "MEBIBYTE", kept.size)
    own, left = directory / new_name(os.getpid()), directory / new_name(ended)
    for path in (own, left):
        path.write_bytes(b"half")
    with config.change_flags(compiledir_size=3):
        answer(SOURCE.replace("42", "43"))
        assert len(driver.entries()) == 2 and left.exists()
        left.write_bytes(bytes(kept.size))
        answer(SOURCE.replace("42", "44"))
        assert own.exists() and not left.exists()
        assert len(driver.entries()) == 2 and not kept.path.exists()
