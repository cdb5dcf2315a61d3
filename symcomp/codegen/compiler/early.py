"""Early code: kernels translated without optimization, replaced when the optimized code is ready.

Optimizing a long file takes several times as long as translating it. So it is translated first and
its functions are called, while another process optimizes the same file; then the addresses of the
functions are exchanged. Results have the same bits: the order of operations and their rounding do
not depend on optimization (``driver.VALUE_FLAGS``), except for functions with vector versions
(``OF_VECTORS``).
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from symcomp.codegen.compiler import driver, entry
from symcomp.codegen.compiler.driver import CompilerError, Target
from symcomp.codegen.compiler.entry import Order
from symcomp.config import config
from symcomp.core.spans import span
from symcomp.lazy import lazy_module

if TYPE_CHECKING:
    from subprocess import Popen

# The first file that is not in the cache imports them.
json, subprocess = lazy_module("json"), lazy_module("subprocess")
tempfile, traceback = lazy_module("tempfile"), lazy_module("traceback")

# Shorter files gain little: below a tenth of a second.
LONG = 10_000
# Seconds before optimizing begins: a short program ends before, with the processor to itself.
PATIENCE = 0.2
# Loops over these functions call vector versions, which round differently, if they are vectorized.
OF_VECTORS = "#pragma omp declare simd"

File = tuple[str, Sequence[str]]


class Code(ctypes.Structure):
    """The address of a function, in the layout that the native machine reads: ``KernelCode``
    of ``cvm/calls/kernels.h``.

    Attributes
    ----------
    address : int
        The address of the function. Another function with the same results may take its place at
        any time.
    early : int
        1 while that is still to come, else 0.
    """

    _fields_ = (("address", ctypes.c_void_p), ("early", ctypes.c_int64))
    job: _Job | None = None

    def wait(self) -> None:
        """Block until the optimized function is in place."""
        job = self.job
        if job is not None:
            job.wait()


class _Job:
    """A file to optimize, and the codes to update when it is done."""

    def __init__(self, how: Target, early: Target | None, file: File) -> None:
        self.how, self.early, self.file = how, early, file
        self.key = how.key_of(file[0])
        self.waiting: list[Sequence[Code]] = []
        self.done = threading.Event()

    def wait(self) -> None:
        """Block until the job is done; it starts at once."""
        _work.patience.set()
        self.done.wait()

    def order(self) -> Order:
        """Return the order for the process that optimizes."""
        text, how = self.file[0], self.how
        replaced = "" if self.early is None else str(self.early.path_of(text))
        return Order([how.compiler, *how.flags], text, str(how.directory), self.key, replaced)

    def work(self) -> None:
        """Have another process optimize the file, wait, and replace the addresses."""
        found: list[list[int]] | None = None
        try:
            if _can_be_left(self.how):
                with suppress(OSError):
                    _process([self]).wait()
            # If that process failed, compile here: this gives the result or the error message.
            found = driver.load_all([self.file], self.how)
        except CompilerError as problem:
            text = f"kernels stay slow, as they could not be optimized: {problem}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        finally:
            _work.finish(self, found[0] if found else ())


def _process(jobs: Sequence[_Job]) -> Popen[bytes]:
    """Start a process that does jobs one after another; it survives the end or an interrupt of this
    one.
    """
    with tempfile.TemporaryFile("w+") as orders:
        json.dump([job.order() for job in jobs], orders)
        orders.seek(0)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", entry.__file__], stdin=orders, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


class _Work:
    """The jobs not done yet, by key, and the threads that wait for their processes."""

    def __init__(self) -> None:
        self.lock, self.threads = threading.Lock(), 0
        self.patience = threading.Event()  # set to start at once
        self.jobs: dict[str, _Job] = {}
        self.not_begun: deque[_Job] = deque()

    def add(self, job: _Job, codes: Sequence[Code]) -> None:
        """Start a job, unless there is one for its file; add the codes to update."""
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
        try:  # a daemon: Python does not wait for it at exit
            threading.Thread(target=self._run_soon, name="optimizing", daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down and starts no threads
            self._run()

    def finish(self, job: _Job, addresses: Sequence[int]) -> None:
        """Set the addresses of the functions of a job's file; without addresses the early code
        stays.
        """
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
    """Hand the jobs that have not begun to one process at exit."""
    with _work.lock:
        jobs = [job for job in _work.not_begun if _can_be_left(job.how)]
        _work.not_begun.clear()
    if jobs:
        with suppress(OSError):  # the next process starts with early code again
            _process(jobs).returncode = 0  # not waited for: avoid the warning about a running child


def _begin_anew() -> None:
    """Drop the jobs of the parent process: its threads do not exist in a forked child."""
    global _work
    before, _work = _work, _Work()
    for job in before.jobs.values():
        for codes in job.waiting:
            _work.add(_Job(job.how, job.early, job.file), codes)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def load_codes(files: Sequence[File]) -> list[list[Code]] | None:
    """Return the functions of C files: optimized ones from the cache, or early ones.

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
    longest = max((len(text) for text, _ in missing), default=0)
    wanted = longest >= LONG and _is_worth_it(missing) and _can_be_left(how)
    early = driver.target(early=longest) if wanted else None
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


def load_later(text: str, names: Sequence[str]) -> list[Code] | None:
    """Return functions of a C file that may still be compiled in the background: the addresses are
    0 until then.

    Parameters
    ----------
    text : str
    names : sequence of str

    Returns
    -------
    list of Code, or None
        None where no compiler works.
    """
    how = driver.target()
    if how is None:
        return None
    if how.has(text):
        return [*map(Code, (driver.load_all([(text, names)], how) or [[]])[0])] or None
    codes = [Code(0, 1) for _ in names]
    _work.add(_Job(how, None, (text, names)), codes)
    return codes


def _can_be_left(how: Target) -> bool:
    """Tell whether another process can optimize, and keep the results."""
    if how.directory is None or not os.access(how.directory, os.W_OK):
        return False
    # sys.executable of a program that embeds Python is not an interpreter.
    python = os.path.basename(sys.executable or "").startswith(("python", "pypy"))
    return python and os.path.isfile(entry.__file__)


def _is_worth_it(files: Sequence[File]) -> bool:
    """Tell whether to translate files first; not with flags of the user, which may change anything.
    """
    plain = config.early_code and not config.cflags
    return plain and not any(OF_VECTORS in text for text, _ in files)


def wait() -> None:
    """Block until no file is being optimized."""
    for job in [*_work.jobs.values()]:
        job.wait()
