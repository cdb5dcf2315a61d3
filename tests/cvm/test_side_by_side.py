"""Independent calls of a plan run side by side, and give the bits of calls one after another."""

import json
import signal
import threading
import time

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.tests.cvm.side_by_side import threads_side_by_side

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def native():
    with config.change_flags(kernels=True):
        yield


def square(n=40):
    return RNG.normal(size=(n, n))


def positive(n=40):
    a = square(n)
    return a @ a.T + n * np.eye(n)


def bits(values):
    return [np.asarray(value).tobytes() for value in values]


def compiled(threads, build, **options):
    """Compile the function for this many threads."""
    with threads_side_by_side(threads):
        inputs, outputs, updates = build()
        return symcomp.function(inputs, outputs, updates=updates, **options)


def towers():
    """Build a training step of two networks that meet in the loss."""
    x = T.dmatrix("x")
    rng = np.random.default_rng(0)
    weights = [symcomp.shared(rng.normal(size=(40, 40)) / 7) for _ in range(6)]
    left = right = x
    for w in weights[:3]:
        left = T.tanh(T.dot(left, w))
    for w in weights[3:]:
        right = T.nnet.softmax(T.dot(right, w) + right.sum(axis=0))
    loss = T.sqr(left - right).mean()
    steps = zip(weights, T.grad(loss, weights), strict=True)
    return [x], [loss, left, right], [(w, w - 0.1 * g) for w, g in steps]


def decompositions():
    xs = T.dmatrices(4)
    a, b, c, d = xs
    return (
        xs,
        [T.slinalg.cholesky(a), *T.nlinalg.eigh(b), T.nlinalg.svd(c)[1], T.nlinalg.det(d)],
        [],
    )


def loops():
    """Read a sequence in both directions."""
    x, w = T.dmatrix("x"), T.dmatrix("w")
    start = T.zeros_like(x[0])
    runs = [
        symcomp.scan(
            lambda row, h: T.tanh(T.dot(h, w) + row),
            sequences=x,
            outputs_info=start,
            go_backwards=backwards,
        )[0]
        for backwards in (False, True)
    ]
    cost = (runs[0] * runs[1][::-1]).sum()
    return [x, w], [*runs, *T.grad(cost, [x, w])], []


def moves():
    x, y, i = T.dmatrix("x"), T.dmatrix("y"), T.lvector("i")
    rows = T.concatenate([x[i], y[i]])
    return (
        [x, y, i],
        [
            T.inc_subtensor(x[i], y[i]),
            rows,
            T.sort(x, axis=0),
            T.cumsum(y, axis=1),
            x.T + y,
            x.sum(),
        ],
        [],
    )


CASES = {
    "towers": (towers, lambda: [square()]),
    "decompositions": (decompositions, lambda: [positive(), positive(), square(), square()]),
    "loops": (loops, lambda: [square()[:7], square() / 9]),
    "moves": (moves, lambda: [square(), square(), np.array([3, 1, 3, -1])]),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits(name):
    build, values = CASES[name]
    alone, *others = [compiled(threads, build) for threads in (1, 2, 5)]
    with threads_side_by_side(2):
        for _ in range(4):
            given = values()
            expected = bits(alone(*given))
            for f in others:
                for _ in range(3 if name != "towers" else 1):
                    assert bits(f(*given)) == expected
    assert "side by side" not in alone.plan()
    assert "side by side, on 5 threads" in others[1].plan()


def test_chosen_by_estimates():
    """Short calls run one after another, long ones side by side."""
    with config.change_flags(openmp=True, openmp_threads=2):
        inputs, outputs, _ = decompositions()
        f = symcomp.function(inputs, outputs)
    small, large = [positive(4)] * 4, [positive(200)] * 4
    for values in (small, small, large, large):
        f(*values)
    latest, earlier = f.plan().split("\n\n")
    assert "side by side" in latest
    assert "side by side" not in earlier


def test_first_failure_counts():
    """The error is that of the first call that fails, and updates are not made."""
    xs = T.dmatrices(3)
    s = symcomp.shared(np.zeros(3), "s")
    with threads_side_by_side(3):
        outputs = [T.slinalg.cholesky(x).sum() for x in xs]
        f = symcomp.function(xs, outputs, updates=[(s, s + T.stack(outputs))])
        good, bad = positive(), -positive()
        for _ in range(3):
            f(good, good, good)
        assert "side by side" in f.plan()
        before = s.get_value()
        for position in range(3):
            values = [good, good, good]
            values[position] = bad
            for _ in range(5):
                with pytest.raises(np.linalg.LinAlgError) as caught:
                    f(*values)
                np.testing.assert_array_equal(s.get_value(), before)
                assert "cholesky" in "".join(caught.value.__notes__).lower()
        f(good, good, good)
        assert (s.get_value() != before).all()


def test_declined_in_the_middle():
    """A factor of 0 makes a product go another way; what ran before and after it counts once."""
    x, y, a = T.dmatrix("x"), T.dmatrix("y"), T.dscalar("a")
    with threads_side_by_side(3):
        chain = x
        for _ in range(4):
            chain = T.tanh(T.dot(chain, y))
        outputs = [y - a * T.dot(x, y), chain, T.exp(x).sum(axis=0), T.sort(y, axis=1)]
        f = symcomp.function([x, y, a], outputs)
        for value in (2.0, 2.0, 2.0, 0.0, 2.0, 0.0, 0.0, 3.0):
            u, v = square(), square()
            got = f(u, v, value)
            np.testing.assert_allclose(got[0], v - value * (u @ v), rtol=1e-12, atol=1e-12)
            want = u
            for _ in range(4):
                want = np.tanh(want @ v)
            np.testing.assert_allclose(got[1], want, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(got[3], np.sort(v, axis=1))


def test_index_out_of_range():
    x, i, j = T.dmatrix("x"), T.lvector("i"), T.lvector("j")
    with threads_side_by_side(4):
        f = symcomp.function([x, i, j], [x[i], T.exp(x[j]), T.dot(x, x), T.sort(x)])
        v, good = square(), np.array([0, 3])
        for _ in range(3):
            f(v, good, good)
        with pytest.raises(IndexError, match="99"):
            f(v, good, np.array([99]))
        np.testing.assert_array_equal(f(v, good, good)[0], v[good])


def test_positions_may_be_anywhere():
    """Reads and writes at positions wait for others of the array, wherever positions lie."""
    x, i = T.dvector("x"), T.lvector("i")
    added = T.inc_subtensor(T.exp(x)[i], 2.0)
    start = T.cumsum(x)
    with threads_side_by_side(2):
        f = symcomp.function([x, i], [T.sort(added[100:200]), added.sum()])
        g = symcomp.function([x, i], [T.set_subtensor(start[100:], 7.0)[i], start + 1])
        zeros, places = np.zeros(1000), np.arange(400_000) % 900 + 100
        counts = np.bincount(places, minlength=1000)
        for _ in range(10):
            found, total = f(zeros, places)
            np.testing.assert_array_equal(found, 1 + 2 * np.sort(counts[100:200]))
            assert total == 1000 + 2 * len(places)
            np.testing.assert_array_equal(g(zeros, places[:2000])[0], 7)
    assert "side by side" in f.plan() and "side by side" in g.plan()


def test_signals_reach_loops_of_other_threads():
    """An alarm ends the loops of a section, whichever threads have them."""
    x = T.dvector("x")
    with threads_side_by_side(2):
        n = T.lscalar("n")
        runs = [
            symcomp.scan(lambda h, k=k: T.sin(h) + k, outputs_info=x, n_steps=n)[0][-1]
            for k in (1.0, 2.0)
        ]
        f = symcomp.function([x, n], runs)
        for _ in range(3):
            f(np.ones(3), 5)

        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        assert threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            began = time.monotonic()
            for _ in range(2):
                with pytest.raises(Alarm):
                    f(np.ones(3), 400_000_000)
                signal.setitimer(signal.ITIMER_REAL, 0.3)
            assert time.monotonic() - began < 60
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        np.testing.assert_array_equal(f(np.ones(3), 1)[0], np.sin(np.ones(3)) + 1)


def test_callers_at_once():
    """Several threads of Python call a function whose plan has sections."""
    alone, shared = (compiled(threads, decompositions) for threads in (1, 3))
    values = [positive(), positive(), square(), square()]
    expected = bits(alone(*values))
    found = []
    with threads_side_by_side(3):
        shared(*values)

        def call():
            for _ in range(20):
                found.append(bits(shared(*values)) == expected)

        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(found) == 80 and all(found)


def test_trace_tells_threads(tmp_path):
    """A Chrome trace puts the calls of a section on the threads that ran them."""
    with threads_side_by_side(2):
        inputs, outputs, _ = decompositions()
        f = symcomp.function(inputs, outputs, profile=True)
        values = [positive(150), positive(150), square(150), square(150)]
        for _ in range(12):
            f(*values)
    f.profile.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ran = [event for event in events if event.get("cat") == "instruction"]
    assert len({event["tid"] for event in ran}) >= 2
    names = [event for event in events if event["name"] == "thread_name"]
    assert {event["tid"] for event in ran} <= {event["tid"] for event in names}
    for thread in {event["tid"] for event in ran}:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in ran if e["tid"] == thread)
        assert all(end <= begin + 1e-3 for (_, end), (begin, _) in zip(own, own[1:], strict=False))
