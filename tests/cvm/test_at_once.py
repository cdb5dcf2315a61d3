"""One function called by several threads of Python at once: each call gives what it gives alone,
whatever runs in it and however others end.
"""

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import as_op
from symcomp.config import config
from symcomp.ifelse import ifelse

CALLERS, CALLS = 4, 25


@pytest.fixture(autouse=True, params=[True, False], ids=["kernels", "NumPy"])
def often_interrupted(request):
    """Threads take turns after every few microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with config.change_flags(kernels=request.param):
        yield
    sys.setswitchinterval(before)


def at_once(work):
    """Run ``work(k)`` in threads; raise what went wrong in one."""
    begin = threading.Barrier(CALLERS)

    def run(k):
        begin.wait()
        work(k)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(run, range(CALLERS)))


@as_op(itypes=[T.dvector], otypes=[T.dvector])
def halved(x):
    """In Python, giving others a turn in the middle."""
    y = x / 2
    time.sleep(0)
    return y


def everything(x, i):
    """Combine a loop, a choice, an op in Python, and a position that may be outside."""
    states = symcomp.scan(lambda row, s: T.tanh(s * 0.5 + row), [x], T.zeros(x.shape[1]))[0]
    chosen = ifelse(T.gt(x.sum(), 0), halved(states[-1]), T.sqr(states[0]))
    return [T.dot(chosen, chosen), T.softmax(states).sum(axis=0), states[i].max(), chosen]


def arguments(k):
    rng = np.random.default_rng(k)
    return rng.normal(size=(5 + k, 3)) + (k % 2) - 0.5, k - 2


def test_everything():
    x, i = T.dmatrix("x"), T.lscalar("i")
    f = symcomp.function([x, i], everything(x, i))
    wanted = [f(*arguments(k)) for k in range(CALLERS)]

    def work(k):
        for _ in range(CALLS):
            for got, want in zip(f(*arguments(k)), wanted[k], strict=True):
                np.testing.assert_array_equal(got, want)

    at_once(work)


def test_errors_are_those_of_their_own_calls():
    x, i = T.dmatrix("x"), T.lscalar("i")
    f = symcomp.function([x, i], everything(x, i))
    wanted = f(*arguments(0))

    def work(k):
        for _ in range(CALLS):
            if k % 2:
                with pytest.raises(IndexError, match=str(100 + k)):
                    f(arguments(k)[0], 100 + k)
            else:
                got = f(*arguments(0))
                np.testing.assert_array_equal(got[1], wanted[1])

    at_once(work)


def test_updates_are_of_one_call():
    """The last of updates at once stays: both variables are of the same call, and the values
    that a call reads do not change while it runs."""
    low, high = symcomp.shared(np.zeros(1000)), symcomp.shared(np.zeros(1000))
    x = T.dscalar("x")
    f = symcomp.function(
        [x], [low.min(), low.max(), halved(high).min() * 2, high.max()],
        updates=[(low, low * 0 + x), (high, high * 0 + x)],
    )  # fmt: skip

    def work(k):
        for n in range(CALLS):
            ends = f(float(CALLS * k + n))
            assert ends[0] == ends[1] and ends[2] == ends[3]

    at_once(work)
    assert len({*low.get_value()}) == len({*high.get_value()}) == 1


def test_failed_calls_change_nothing():
    w, i = symcomp.shared(np.zeros(300)), T.lscalar("i")
    f = symcomp.function([i], w[i], updates=[(w, w + 1)])

    def work(k):
        for _ in range(CALLS):
            with pytest.raises(IndexError):
                f(1000 + k)

    at_once(work)
    assert not w.get_value().any()


def test_counts_of_profiles():
    x = T.dvector("x")
    f = symcomp.function([x], halved(T.exp(x) + 1), profile=True)
    f.profile.print_on_exit = False
    at_once(lambda k: [f(np.full(3000, float(k))) for _ in range(CALLS)])
    assert {c.runs for c in f.profiled.tally.counted()} == {CALLERS * CALLS}


LARGE = np.random.default_rng(0).normal(size=(400, 400))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: T.tanh(T.exp(x) + 1),
        lambda x: T.dot(x, x),
        lambda x: T.sort(x),
        lambda x: x[::-1].T.copy() + T.concatenate([x[1:], x[:1]]),
        lambda x: symcomp.scan(lambda s, x: T.dot(x, s) / 400, [], x[0], [x], 50)[0],
    ],
    ids=["elementwise", "product", "sort", "moves", "loop"],
)
def test_calls_overlap(build):
    """Threads take no turns of themselves here: that this one goes on while another calls shows
    that the call lets it, and another call of the same function begins before that one ends."""
    x = T.dmatrix("x")
    f = symcomp.function([x], build(x))
    wanted = f(LARGE)
    inside, seen = [False], []

    def others():
        for _ in range(1000):
            if seen:
                return
            inside[0] = True
            f(LARGE)
            inside[0] = False

    thread = threading.Thread(target=others)
    sys.setswitchinterval(1000)
    thread.start()
    while thread.is_alive() and not seen:
        if inside[0]:
            seen.append(f(LARGE))
        time.sleep(0)
    thread.join()
    np.testing.assert_array_equal(seen[0], wanted)


def test_an_interrupt_in_one_of_the_calls():
    """Ctrl-C is raised by the main thread's call, in Python within a loop; the others go on."""

    @as_op(itypes=[T.dvector], otypes=[T.dvector])
    def watched(x):
        if threading.current_thread() is threading.main_thread() and x[0] > 3:
            signal.raise_signal(signal.SIGINT)
        return x + 1

    w, n = symcomp.shared(np.zeros(2)), T.lscalar("n")
    states = symcomp.scan(watched, outputs_info=[w], n_steps=n)[0]
    f = symcomp.function([n], states[-1], updates=[(w, w * 1)])
    done = []

    def others():
        done.extend(f(9)[0] for _ in range(CALLS))

    thread = threading.Thread(target=others)
    thread.start()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            f(9)
    thread.join()
    assert done == [9.0] * CALLS
    assert f(3).tolist() == [3, 3] and not w.get_value().any()
