"""Code of kernels that is there early, and replaced by what the compiler optimizes meanwhile.

Optimizing long files takes compilers several times as long as translating them. They are translated
first, and what is called then are these functions; another process optimizes the same files
meanwhile, and then the addresses of the functions change. Results have the same bits: neither the
order of operations nor what they round to depends on how much a compiler optimizes
(``driver.VALUE_FLAGS``), but where functions have other forms for vectors (``OF_VECTORS``).
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from symcomp.codegen import driver, entry
from symcomp.codegen.driver import CompilerError, Target
from symcomp.codegen.entry import Order
from symcomp.config import config
from symcomp.core.spans import span

# With fewer characters there is little to gain: most of the time is for starting the compiler.
LONG = 50_000
# Seconds until that begins: a short program has its results, and its processor alone, before.
PATIENCE = 0.2
# Loops over these functions call others, which round differently, once they are vectorized.
OF_VECTORS = "#pragma omp declare simd"

File = tuple[str, Sequence[str]]


class Code(ctypes.Structure):
    """Where a function is, as the native machine reads it: ``Code`` of ``actions.pxi``.

    Attributes
    ----------
    address : int
        Of the function. Another function with the same results may take its place at any time.
    early : int
        1 while that is still to come, else 0.
    """

    _fields_ = (("address", ctypes.c_void_p), ("early", ctypes.c_int64))
    job: _Job | None = None

    def wait(self) -> None:
        """Until the function is the one that stays."""
        job = self.job
        if job is not None:
            job.wait()


class _Job:
    """A file that is optimized, and the codes that wait for it."""

    def __init__(self, how: Target, early: Target, file: File) -> None:
        self.how, self.early, self.file = how, early, file
        self.key = how.key_of(file[0])
        self.waiting: list[Sequence[Code]] = []
        self.done = threading.Event()

    def wait(self) -> None:
        """Until it is done, which begins at once."""
        _work.patience.set()
        self.done.wait()

    def order(self) -> Order:
        """What another process is told."""
        text, how = self.file[0], self.how
        replaced = str(self.early.path_of(text))
        return Order([how.compiler, *how.flags], text, str(how.directory), self.key, replaced)

    def work(self) -> None:
        """Have another process optimize it, wait, and call that from then on."""
        found: list[list[int]] | None = None
        try:
            with suppress(OSError):
                _process([self]).wait()
            # What that could not do is done here, or it is told why not.
            found = driver.load_all([self.file], self.how)
        except CompilerError as problem:
            text = f"kernels stay slow, as they could not be optimized: {problem}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        finally:
            _work.finish(self, found[0] if found else ())


def _process(jobs: Sequence[_Job]) -> subprocess.Popen[bytes]:
    """What does jobs, one after another; it goes on when this process ends, or is interrupted."""
    with tempfile.TemporaryFile("w+") as orders:
        json.dump([job.order() for job in jobs], orders)
        orders.seek(0)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", entry.__file__], stdin=orders, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


class _Work:
    """What is not optimized yet, by keys, and threads that wait for the processes that do it."""

    def __init__(self) -> None:
        self.lock, self.threads = threading.Lock(), 0
        self.patience = threading.Event()  # set when it is at its end
        self.jobs: dict[str, _Job] = {}
        self.not_begun: deque[_Job] = deque()

    def add(self, job: _Job, codes: Sequence[Code]) -> None:
        """Have it done, if there is no other job for that file; codes are to wait for it."""
        with self.lock:
            one = self.jobs.setdefault(job.key, job)
            one.waiting.append(codes)
            for code in codes:
                code.job = one
            if one is not job:
                return
            self.not_begun.append(job)
            if self.threads >= driver.processors():
                return
            if self.threads == 0:
                self.patience.clear()
            self.threads += 1
        try:  # Python does not wait for it when it ends
            threading.Thread(target=self._run_soon, name="optimizing", daemon=True).start()
        except RuntimeError:  # it is ending, and starts none
            self._run()

    def finish(self, job: _Job, addresses: Sequence[int]) -> None:
        """Note where the functions of a job's file are; they are where they were, if nowhere."""
        with self.lock:
            for codes in job.waiting if addresses else ():
                for code, address in zip(codes, addresses, strict=True):
                    code.address, code.early, code.job = address, 0, None
            job.done.set()
            del self.jobs[job.key]

    def _run_soon(self) -> None:
        self.patience.wait(PATIENCE)
        self._run()

    def _run(self) -> None:
        while True:
            with self.lock:
                if not self.not_begun:
                    self.threads -= 1
                    return
                job = self.not_begun.popleft()
            try:
                job.work()
            except Exception:  # noqa: BLE001 - others wait, and a warning may be an error
                traceback.print_exc()


_work = _Work()


@atexit.register
def _leave() -> None:
    """One process does what was not begun."""
    with _work.lock:
        jobs = [*_work.not_begun]
        _work.not_begun.clear()
    if jobs:
        with suppress(OSError):  # the next process has early code again
            _process(jobs).returncode = 0  # nobody waits for it


def _begin_anew() -> None:
    """The threads of a process do not come along when it forks."""
    global _work
    before, _work = _work, _Work()
    for job in before.jobs.values():
        for codes in job.waiting:
            _work.add(_Job(job.how, job.early, job.file), codes)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def load_codes(files: Sequence[File]) -> list[list[Code]] | None:
    """The functions of C files: those that were compiled before, or early ones.

    Parameters
    ----------
    files : sequence of (str, sequence of str)
        A C file, and names of functions in it.

    Returns
    -------
    list of list of Code, or None
        None where no compiler works; a warning, once in a process, says how to get one.

    Raises
    ------
    CompilerError
        If a source is not accepted, or the directory of ``config.compiledir`` cannot be used.
    """
    how = driver.target()
    if how is None:
        return None
    missing = [file for file in files if not how.has(file[0])]
    early = driver.target(early=True) if _is_worth_it(missing) and _can_be_left(how) else None
    if early is None:
        addresses = driver.load_all(files, how)
        return None if addresses is None else [[*map(Code, found)] for found in addresses]
    with span("early code") as stage:
        stage.note = "optimized in the background"
        addresses = driver.load_all(missing, early)
    if addresses is None:
        return None
    codes_of = {
        text: [Code(address, 1) for address in found]
        for (text, _), found in zip(missing, addresses, strict=True)
    }
    for file in missing:
        _work.add(_Job(how, early, file), codes_of[file[0]])
    there = [file for file in files if file[0] not in codes_of]
    for (text, _), found in zip(there, driver.load_all(there, how) or (), strict=True):
        codes_of[text] = [*map(Code, found)]
    return [codes_of[text] for text, _ in files]


def _can_be_left(how: Target) -> bool:
    """Whether another process can optimize, and keep the results."""
    if how.directory is None or not os.access(how.directory, os.W_OK):
        return False
    # Some programs that contain Python are no Python.
    python = os.path.basename(sys.executable or "").startswith(("python", "pypy"))
    return python and os.path.isfile(entry.__file__)


def _is_worth_it(files: Sequence[File]) -> bool:
    """Whether files are translated first; not with flags of the user's, which may set anything."""
    if not config.early_code or config.cflags or any(OF_VECTORS in text for text, _ in files):
        return False
    return max((len(text) for text, _ in files), default=0) >= LONG


def wait() -> None:
    """Until all is optimized that is being optimized."""
    for job in [*_work.jobs.values()]:
        job.wait()
