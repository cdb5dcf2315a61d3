"""The pool of threads that kernels, convolutions and pools of images share."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.cvm.machine import share_address

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)
_share = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int)(share_address)


def share(part, parts, threads):
    """Call part(number, worker) for each part."""
    _share(PART(lambda work, number, worker: part(number, worker)), None, parts, threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 1000])
def test_every_part_is_done_once(threads):
    for parts in (0, 1, 2, 5, 64):
        done, at_work = [], set()

        def part(number, worker, done=done, at_work=at_work):
            assert worker not in at_work
            at_work.add(worker)
            done.append((number, worker))
            time.sleep(0)
            at_work.remove(worker)

        share(part, parts, threads)
        assert sorted(number for number, _ in done) == list(range(parts))
        assert all(0 <= worker < threads for _, worker in done)


def test_threads_meet():
    """Two parts that wait for each other are done by two threads."""
    meeting = threading.Barrier(2, timeout=30)
    share(lambda number, worker: meeting.wait(), 2, 2)


def test_a_job_within_a_part_is_done_by_its_thread():
    seen = []

    def outer(number, worker):
        thread = threading.get_ident()
        share(lambda n, w: seen.append((number, n, w, threading.get_ident() == thread)), 3, 4)

    share(outer, 4, 2)
    assert sorted(seen) == [(a, b, 0, True) for a in range(4) for b in range(3)]


def test_several_callers_at_once():
    counts = [[0] * 50 for _ in range(6)]

    def caller(own):
        def part(number, worker):
            own[number] += 1

        for _ in range(40):
            share(part, 50, 3)

    callers = [threading.Thread(target=caller, args=(own,)) for own in counts]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(60)
    assert counts == [[40] * 50] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_has_workers_of_its_own():
    test_threads_meet()
    child = os.fork()
    if child == 0:
        try:
            test_threads_meet()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    test_threads_meet()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are not listed")
def test_threads_start_when_they_are_needed():
    script = """
import os
import numpy as np
import symcomp, symcomp.tensor as T
from symcomp.config import config
x = T.dvector("x")
config.openmp, config.openmp_threads, config.blas_threads, config.kernels = True, 3, 1, True
f = symcomp.function([x], T.maximum(x, 0) * x, mode="FAST_RUN")
def count(n):
    f(np.ones(n))
    return len(os.listdir("/proc/self/task"))
print(count(1000), count(199_999), count(400_000), count(400_000))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    first, second, *later = map(int, said.stdout.split())
    assert first == second and later == [first + 2] * 2


def test_functions_in_several_threads_of_python():
    x = T.dmatrix("x")
    with config.change_flags(kernels=True, openmp=True, openmp_threads=2):
        f = symcomp.function([x], [T.exp(x), T.exp(x).sum(axis=0)], mode=symcomp.Mode("cvm"))
    values = [np.random.default_rng(i).normal(size=(600, 500)) for i in range(4)]
    want = [f(value) for value in values]
    found = [None] * 4

    def call(i):
        for _ in range(5):
            found[i] = f(values[i])

    callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(60)
    for got, expected in zip(found, want, strict=True):
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
