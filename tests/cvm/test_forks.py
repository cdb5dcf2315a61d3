"""Forks while other threads call functions: a child has only the thread that forked."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import lazy
from symcomp.config import config
from symcomp.cvm import blas_threads, machine
from symcomp.cvm.blas_threads import blas_limit
from symcomp.cvm.machine import BlasLibrary, Cell, Transaction

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def holds_in_child(check):
    """Tell whether a function returns True in a child; one that hangs is killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(20)
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextmanager
def meanwhile(work):
    """Other threads do this again and again."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def another(work, undo):
    """Run a function in another thread and, at the end, another one."""
    begun, stop = threading.Event(), threading.Event()

    def run():
        work()
        begun.set()
        stop.wait()
        undo()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("mode", ["cvm", "vm"])
@pytest.mark.overwrites
def test_a_child_sees_whole_values(mode):
    w, x = symcomp.shared(np.zeros(200_000), name="w"), T.dmatrix("x")
    with config.change_flags(kernels=True):
        step = symcomp.function([x], x.sum(), updates=[(w, w + 1.0)], mode=symcomp.Mode(mode))
    assert step.program.claimed
    value = np.ones((20, 20))

    def check():
        before = w.get_value()
        step(value)  # the array held by other threads stays, so that it is copied once
        replayed = step.repeated
        step(value)
        return (
            before.min() == before.max()
            and (w.get_value() == before + 2).all()
            and (mode == "vm" or step.repeated == replayed + 1)
        )

    for _ in range(8):
        step(value)
    with meanwhile(lambda: step(value)):
        for _ in range(10):
            time.sleep(0.005)
            assert holds_in_child(check)


def test_who_writes_does_not_wait_for_himself():
    cell = Cell()
    cell.value = 1
    transaction = Transaction([cell])
    transaction.begin()
    began = time.monotonic()

    def check():
        transaction.end()
        found = []
        reader = threading.Thread(target=lambda: found.append(cell.read()))
        reader.start()
        reader.join()
        return found == [1]

    assert holds_in_child(check)
    assert time.monotonic() - began < machine.FORKS_WAIT / 2
    transaction.end()


def test_nobody_begins_to_write_during_a_fork(monkeypatch):
    """But who writes already may, for calls within this one: otherwise he would not end."""
    monkeypatch.setattr(machine, "FORKS_TAKE", 10.0)
    cells = [Cell(), Cell(), Cell()]
    outer, inner, late = (Transaction([cell]) for cell in cells)
    ready, forking, done = threading.Event(), threading.Event(), []

    def nested():
        outer.begin()
        ready.set()
        forking.wait()
        time.sleep(0.05)
        inner.begin()
        done.append("inner")
        inner.end()
        outer.end()

    def begin_late():
        forking.wait()
        time.sleep(0.02)
        late.begin()
        done.append("late")
        late.end()

    threads = [threading.Thread(target=work) for work in (nested, begin_late)]
    for thread in threads:
        thread.start()
    ready.wait()
    forking.set()
    machine._before_fork()
    time.sleep(0.05)
    found = [*done]
    machine._after_in_parent()
    for thread in threads:
        thread.join()
    assert found == ["inner"] and done == ["inner", "late"]


def test_who_has_what_a_fork_waits_for_goes_on():
    """Another library's lock, which its hook takes after ours has run."""
    lock, state = threading.Lock(), symcomp.shared(np.zeros(3))
    f = symcomp.function([], updates=[(state, state + 1.0)])
    lock.acquire()
    machine._before_fork()
    others = threading.Thread(target=lambda: (f(), lock.release()))
    others.start()
    assert lock.acquire(timeout=20)
    machine._after_in_parent()
    others.join()
    assert (state.get_value() == 1).all()


def test_transactions_that_are_left():
    """Transactions that are dropped, not ended, do not make forks wait."""

    def leave():
        Transaction([Cell()]).begin()

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    began = time.monotonic()
    assert holds_in_child(lambda: True)
    assert time.monotonic() - began < machine.FORKS_WAIT / 2


def test_what_is_half_written_is_not_read(monkeypatch):
    monkeypatch.setattr(machine, "FORKS_WAIT", 0.1)
    w, x = symcomp.shared(np.zeros(3), name="w"), T.dvector("x")
    f = symcomp.function([x], w + x, updates=[(w, w + 1.0)])
    for _ in range(5):
        f(np.ones(3))
    transaction = Transaction([w.container])

    def check():
        for read in (w.get_value, lambda: f(np.ones(3))):
            with pytest.raises(RuntimeError, match="w is half-written"):
                read()
        w.set_value(np.full(3, 2.0))
        return (f(np.ones(3)) == 3).all() and (w.get_value() == 3).all()

    with another(transaction.begin, transaction.end):
        assert holds_in_child(check)
    assert (w.get_value() == 5).all()


def test_ctrl_c_in_a_child(monkeypatch):
    """Where the main thread, which is not there, had it wait."""
    monkeypatch.setattr(machine, "FORKS_WAIT", 0.1)
    transaction, handler, found = Transaction([Cell()]), signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(
        target=lambda: found.append(
            holds_in_child(lambda: signal.getsignal(signal.SIGINT) is handler)
        )
    )
    transaction.begin()
    thread.start()
    thread.join()
    transaction.end()
    assert found == [True] and signal.getsignal(signal.SIGINT) is handler


class Library:
    """Instead of a BLAS: the number of its threads."""

    count = 4

    def get_num_threads(self):
        return self.count

    def set_num_threads(self, count):
        self.count = count


def test_limits_of_other_threads_are_forgotten(monkeypatch):
    library = Library()
    libraries = [BlasLibrary(library)]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: libraries)
    limit = blas_limit(2)

    def check():
        before = library.count
        with blas_limit(3):
            return (before, library.count) == (4, 3)

    with another(limit.__enter__, lambda: limit.__exit__(None, None, None)):
        assert library.count == 2
        assert holds_in_child(check)
    assert library.count == 4
    with limit:
        assert holds_in_child(lambda: library.count == 2)


def test_locks_of_other_threads_are_forgotten():
    def check():
        return lazy.import_alone("scipy", "linalg", "cython_blas") is not None

    with another(lazy._lock.acquire, lazy._lock.release):
        assert holds_in_child(check)
