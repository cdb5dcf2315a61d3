"""Values that lie in the memory of results before these are written."""

import threading
import tracemalloc

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.ifelse import ifelse

RNG = np.random.default_rng(5)
SIDE = 110  # matrices of 97 kB, so that results have room for others
BYTES = SIDE * SIDE * 8


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True, linker="cvm"):
        yield


def both(inputs, outputs, **arguments):
    """Return a function that repeats plans, and one that plans in each call, without lodgers."""
    found = []
    for most_plans in (48, 0):
        with config.change_flags(most_plans=most_plans):
            found.append(symcomp.function(inputs, outputs, **arguments))
    return found


def same(found, expected):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def matrix():
    return RNG.normal(size=(SIDE, SIDE)) / 10


def layers(n, x):
    values = [x]
    for _ in range(n):
        values.append(T.tanh(T.dot(values[-1], symcomp.shared(matrix()))))
    return values


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_a_network_takes_two_arrays(depth):
    x = T.dmatrix("x")
    f, plain = both([x], [layers(depth, x)[-1]])
    value = matrix()
    for _ in range(3):
        same(f(value), plain(value))
    f.free()
    tracemalloc.start()
    results = f(value)
    took = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took < 2 * BYTES + 3000
    told = f.memory_report(value).allocated
    assert abs(told - took) < 3000 and len(results) == 1


def test_results_that_callers_hold_stay():
    x = T.dmatrix("x")
    values = layers(7, x)
    f, plain = both([x], [values[3], values[7], values[7].T, (values[5] * 2)[::2]])
    held = []
    for k in range(24):
        value = matrix()
        found = f(value)
        same(found, plain(value))
        if k % 3:
            held.append((found, [z.copy() for z in found]))
    for found, expected in held:
        same(found, expected)
    assert f.repeated == 23


def test_ways_after_guards():
    x, c = T.dmatrix("x"), T.lscalar("c")
    values = layers(4, x)
    other = T.sort(T.dot(values[2], values[3]), axis=0)
    last = ifelse(c, T.exp(values[4]) + values[1], T.dot(other, other) - values[4])
    f, plain = both([c, x], [last, T.dot(last, values[2])])
    held = []
    for choice in [1, 1, 0, 0, 1, 0] * 3:
        value = matrix()
        found = f(choice, value)
        same(found, plain(choice, value))
        held.append((found, [z.copy() for z in found]))
    for found, expected in held:
        same(found, expected)
    assert f.repeated > 10


def test_updates_and_what_fails():
    x, k = T.dmatrix("x"), T.lscalar("k")
    start = matrix()
    found = []
    for most_plans in (48, 0):
        with config.change_flags(most_plans=most_plans):
            w = symcomp.shared(start.copy())
            h = T.tanh(T.dot(T.tanh(T.dot(T.tanh(T.dot(x, w)), w)), w))
            f = symcomp.function([x, k], [h, h[k]], updates=[(w, w + T.dot(h, h.T) / 1000)])
        found.append((f, w))
    (f, w), (plain, v) = found
    held = []
    for at in [3, 4, 5, 3]:
        value = matrix()
        results = f(value, at)
        same(results, plain(value, at))
        held.append((results, [z.copy() for z in results]))
        before = w.get_value()
        with pytest.raises(IndexError):
            f(value, SIDE)
        same([w.get_value()], [before])
        same([w.get_value()], [v.get_value()])
    for results, expected in held:
        same(results, expected)


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs(seed):
    rng = np.random.default_rng(seed)
    x, n = T.dmatrix("x"), T.lscalar("n")
    values = [x, T.tanh(x * 0.5)]
    for _ in range(int(rng.integers(4, 14))):
        a, b = (values[-1 - int(rng.integers(0, min(4, len(values))))] for _ in range(2))
        values.append([
            lambda a, b: T.tanh(T.dot(a, b)),
            lambda a, b: T.sort(a, axis=0),
            lambda a, b: T.cumsum(a, axis=1) / SIDE,
            lambda a, b: T.tanh(T.dot(a.T, b)) + a,
            lambda a, b: ifelse(T.gt(n, 1), T.dot(a, a), T.sort(b, axis=1)),
            lambda a, b: T.join(0, a[: SIDE // 2], b[SIDE // 2 :]),
        ][int(rng.integers(0, 6))](a, b))  # fmt: skip
    chosen = sorted(set(rng.integers(2, len(values), 3).tolist()) | {len(values) - 1})
    f, plain = both([x, n], [values[i] for i in chosen], on_unused_input="ignore")
    held = []
    for number in [2, 2, 0, 0, 2, 0, 2]:
        value = matrix()
        results = f(value, number)
        same(results, plain(value, number))
        held.append((results, [z.copy() for z in results]))
    for results, expected in held:
        same(results, expected)


def test_threads():
    x = T.dmatrix("x")
    values = layers(6, x)
    f, plain = both([x], [values[4], values[6]])
    problems = []
    given = [matrix() for _ in range(4)]
    expected = [plain(value) for value in given]

    def work(k):
        try:
            for _ in range(40):
                same(f(given[k]), expected[k])
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
