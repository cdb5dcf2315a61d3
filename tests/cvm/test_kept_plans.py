"""Calls that repeat a kept plan give the same results as calls that plan."""

import gc
import sys
import threading
import tracemalloc
import weakref
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import config
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse

CALLS = 12
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


def both(build, calls, updated=()):
    """Compare results and updates of calls, natively and in Python; return the function.

    ``build`` returns inputs, outputs, updates and the shared variables among these.
    """
    found = []
    for linker in ("cvm", "vm"):
        with config.change_flags(linker=linker):
            inputs, outputs, updates = build()
            f = symcomp.function(inputs, outputs, updates=updates)
        results = []
        for values in calls:
            results.append(f(*values))
            results.append([variable.get_value() for variable, _ in updates])
        found.append((f, results))
    (native, got), (_, expected) = found
    for one, other in zip(got, expected, strict=True):
        for x, y in zip(one, other, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    return native


def vectors(n, count=CALLS):
    return [(RNG.normal(size=n),) for _ in range(count)]


def test_elementwise_chain():
    def build():
        x = T.dvector()
        return [x], [T.tanh(x) + 1, T.exp(-x).sum(), x * 2], []

    assert both(build, vectors(5)).repeated == CALLS - 1


def test_products_views_and_positions():
    w = RNG.normal(size=(6, 4))

    def build():
        x, k, at = T.dmatrix(), T.lscalar(), T.lvector()
        z = T.dot(x[k : k + 3], w)
        picked = z[T.arange(3), at]
        scattered = T.inc_subtensor(T.zeros_like(z)[T.arange(3), at], picked)
        return [x, k, at], [z, picked, scattered, z.reshape((4, 3)), z.T.argmax(axis=0)], []

    calls = [
        (RNG.normal(size=(9, 6)), np.int64(i % 6), RNG.integers(0, 4, 3)) for i in range(CALLS)
    ]
    assert both(build, calls).repeated == CALLS - 1


def test_another_length_is_another_way():
    def build():
        x, k = T.dvector(), T.lscalar()
        return [x, k], [x[:k] * 2, x[k:].sum()], []

    calls = [(RNG.normal(size=7), np.int64(k)) for k in [3] * 6 + [5] * 6 + [3] * 4 + [-2, 20]]
    assert 0 < both(build, calls).repeated < len(calls)


def test_shapes_take_turns():
    def build():
        x = T.dmatrix()
        return [x], [T.dot(x, x.T), x.sum(axis=0)], []

    calls = [(RNG.normal(size=(2 + i % 2, 3)),) for i in range(40)]
    assert both(build, calls).repeated > 20


def test_branches():
    def build():
        x = T.dvector()
        return [x], [ifelse(T.gt(x.sum(), 0), T.exp(x), T.tanh(x) - 1)], []

    assert both(build, vectors(4, 40)).repeated > 5


def test_updates_are_new_values_or_written_over():
    start = RNG.normal(size=(3, 3))

    def build():
        w, count = symcomp.shared(start.copy()), symcomp.shared(np.int64(0))
        x = T.dvector()
        loss = T.sqr(T.dot(x, w)).sum()
        step = symcomp.grad(loss, w)
        return [x], [loss, count * 2], [(w, w - 0.01 * step), (count, count + 1)]

    assert both(build, vectors(3)).repeated == CALLS - 1


@pytest.mark.overwrites
def test_who_holds_the_old_value_keeps_it():
    w = symcomp.shared(np.zeros(4))
    f = symcomp.function([], [], updates=[(w, w + 1)])
    f.fn(n_calls=10)
    before = f.repeated
    held = w.get_value(borrow=True)
    view = held[1:]
    f()
    assert (held == 10).all() and (view == 10).all() and (w.get_value() == 11).all()
    assert f.repeated == before
    del held, view
    f()
    assert (w.get_value() == 12).all() and f.repeated == before + 1


def test_results_are_nobodys():
    x = T.dvector()
    f = symcomp.function([x], [x + 1, symcomp.Out(x, borrow=True)])
    value = np.arange(3.0)
    results = [f(value) for _ in range(6)]
    assert f.repeated > 0
    assert all(same is value for _, same in results)
    results[-2][0][:] = 7
    assert (results[-1][0] == [1, 2, 3]).all()
    assert all(not np.shares_memory(a, b) for (a, _), (b, _) in pairwise(results))


def test_a_call_that_fails_changes_nothing():
    w = symcomp.shared(np.zeros(3))
    i = T.lscalar()
    f = symcomp.function([i], w[i], updates=[(w, w + 1)])
    for _ in range(6):
        f(1)
    assert f.repeated > 0
    with pytest.raises(IndexError):
        f(3)
    assert (w.get_value() == 6).all()
    assert f(2) == 6


def test_conditions_are_checked():
    x = T.dvector()
    f = symcomp.function([x], T.Assert("not positive")(T.exp(x), T.gt(x.sum(), 0)) + 1)
    for _ in range(6):
        np.testing.assert_allclose(f(np.ones(3)), np.exp(1) + 1)
    assert f.repeated > 0
    with pytest.raises(AssertionError, match="not positive"):
        f(-np.ones(3))
    np.testing.assert_allclose(f(np.ones(3)), np.exp(1) + 1)


@pytest.mark.parametrize("value", [[1.0, 2.0], (1, 2), np.arange(2), np.arange(4.0)[::2]])
def test_arguments_of_other_kinds(value):
    x = T.dvector()
    f = symcomp.function([x], x * 2)
    for _ in range(6):
        np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [2, 4])
    assert f.repeated > 0
    np.testing.assert_array_equal(f(value), 2 * np.asarray(value, "float64"))
    with pytest.raises(ShapeError):
        f(np.zeros((2, 2)))


def test_numbers_of_python():
    x = T.dscalar()
    f = symcomp.function([x], T.exp(x))
    np.testing.assert_allclose([f(k) for k in range(8)], np.exp(np.arange(8.0)), rtol=1e-15)
    assert f.repeated > 0


def test_random_draws_go_on():
    def build():
        stream = T.random.RandomStream(3)
        x = stream.normal(size=(5,))
        return [], [x * 2], list(stream.updates())

    found = []
    for linker in ("cvm", "vm"):
        with config.change_flags(linker=linker):
            inputs, outputs, updates = build()
            f = symcomp.function(inputs, outputs, updates=updates)
        found.append(np.array([f()[0] for _ in range(10)]))
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) == 50


def test_long_calls_and_loops_repeat_their_plans():
    x = T.dmatrix()
    f = symcomp.function([x], T.dot(x, x))
    for _ in range(8):
        f(np.ones((500, 500)))
    assert f.repeated == 7
    outputs = symcomp.scan(lambda v, s: s + v, x, T.zeros(3), return_updates=False)
    f = symcomp.function([x], outputs)
    for _ in range(8):
        np.testing.assert_array_equal(f(np.ones((4, 3)))[-1], [4, 4, 4])
    assert f.repeated == 7


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_updates_that_are_products_of_arguments(dtype):
    """Whether the lengths fit is seen without Python, and before anything is written."""
    x, y = T.vectors("x", "y", dtype=dtype)
    m = T.matrix("m", dtype)
    v, w = symcomp.shared(np.ones(3, dtype)), symcomp.shared(np.ones((3, 4), dtype))
    rate = np.asarray(0.5, dtype)
    updates = [(w, w - rate * T.outer(x, y)), (v, v + rate * T.dot(m, y))]
    f = symcomp.function([x, y, m], [], updates=updates)
    profiled = symcomp.function([x, y, m], [], updates=updates, profile=True)
    values = [np.ones(n, dtype) * np.arange(n[-1], dtype=dtype) for n in ((3,), (4,), (3, 4))]
    for _ in range(CALLS):
        f(*values)
    np.testing.assert_allclose(w.get_value(), 1 - 0.5 * CALLS * np.outer(values[0], values[1]))
    np.testing.assert_allclose(v.get_value(), 1 + 0.5 * CALLS * values[2].dot(values[1]))
    profiled(*values)
    rows = profiled.profile.to_dict()["functions"][0]["instructions"]
    assert f.repeated == CALLS - 1 and not any(row["in_python"] for row in rows)
    for i, shape in ((0, (2,)), (1, (5,)), (0, (0,)), (2, (3, 3)), (2, (2, 4))):
        before = v.get_value(), w.get_value()
        wrong = [np.ones(shape, dtype) if k == i else value for k, value in enumerate(values)]
        with pytest.raises(ShapeError, match="do not fit"):
            f(*wrong)
        for variable, old in zip((v, w), before, strict=True):
            np.testing.assert_array_equal(variable.get_value(), old)


def test_chains_of_products():
    def build():
        a, b = T.dmatrices("a", "b")
        v = T.dvector("v")
        return [a, b, v], [a.dot(b).dot(a), v.dot(a).dot(b), v.dot(a).dot(b).dot(v)], []

    for n, k in ((2, 3), (9, 2), (3, 17), (1, 1)):
        calls = [[RNG.normal(size=s) for s in ((n, k), (k, n), (n,))] for _ in range(CALLS)]
        assert both(build, calls).repeated == CALLS - 1


def test_profiles_count_replayed_calls():
    x = T.dvector()
    f = symcomp.function([x], T.tanh(x) + x, profile=True)
    for _ in range(500):
        f(np.ones(3))
    assert f.repeated > 0
    counted = f.profiled.tally.counted()
    assert f.profiled.calls.count == 500
    assert {c.runs for c in counted} == {500}


def test_threads_share_a_function():
    w = symcomp.shared(np.zeros(8))
    x = T.dvector()
    f = symcomp.function([x], T.tanh(x).sum() + w.sum(), updates=[(w, w + 1)])
    wrong = []

    def work(k):
        value = np.full(8, 0.1 * k)
        for _ in range(300):
            rest = f(value) - 8 * np.tanh(0.1 * k)
            if abs(rest / 8 - round(rest / 8)) > 1e-6:
                wrong.append(rest)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong and f.repeated > 0
    final = w.get_value()
    assert (final == final[0]).all() and 0 < final[0] <= 1200


def test_large_results_are_used_again_when_nobody_has_them():
    x = T.dvector()
    f = symcomp.function([x], T.exp(x) * 2)
    value = np.zeros(300_000)
    for _ in range(4):
        f(value)
    assert f.repeated > 0
    held = [f(value + k) for k in range(4)]
    for k, result in enumerate(held):
        np.testing.assert_allclose(result, 2 * np.exp(float(k)), rtol=1e-14)
    assert len({result.ctypes.data for result in held}) == 4
    part = f(value)[5:]
    others = [f(value + 1) for _ in range(3)]
    assert (part == 2).all()
    del others, held, result
    changed = f(value)
    changed.shape = (3, 100_000)
    places = set()
    del changed
    for k in range(6):
        result = f(value + k)
        assert result.shape == (300_000,)
        np.testing.assert_allclose(result, 2 * np.exp(float(k)), rtol=1e-14)
        places.add(result.ctypes.data)
    assert len(places) <= 3
    kept = sys.getrefcount(result)
    f.free()
    assert sys.getrefcount(result) == kept - 1


def test_larger_calls_give_up_the_gil():
    """Threads that replay at once, and replace what others read, never see half of an update."""
    w = symcomp.shared(np.zeros((200, 200)))
    x = T.dmatrix()
    f = symcomp.function([x], [T.dot(x, w)[0, 0], w.min(), w.max()], updates=[(w, w + x.mean())])
    ones = np.ones((200, 200))
    for _ in range(6):
        f(ones)
    assert f.repeated > 0
    wrong, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            value = w.get_value()
            if (value != value[0, 0]).any():
                wrong.append(value)

    def work():
        for _ in range(100):
            total, low, high = f(ones)
            if low != high or total != 200 * low:
                wrong.append((total, low, high))

    threads = [threading.Thread(target=work) for _ in range(3)]
    looking = threading.Thread(target=look)
    for thread in (looking, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    looking.join()
    assert not wrong
    value = w.get_value()
    assert (value == value[0, 0]).all() and 6 < value[0, 0] <= 306


NAMES = ("tanh", "exp", "neg", "sqr")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    st.lists(st.integers(0, 5), min_size=6, max_size=14),
    st.booleans(),
)
def test_any_lengths_in_any_order(names, lengths, sums):
    x = T.dvector()
    z = x
    for name in names:
        z = getattr(T, name)(z) * 0.1
    f = symcomp.function([x], [z, z.sum(), T.concatenate([z, x])] if sums else [z[::-1]])
    for n in lengths:
        value = np.linspace(-1, 1, n)
        want = value
        for name in names:
            want = {"tanh": np.tanh, "exp": np.exp, "neg": np.negative, "sqr": np.square}[name](
                want
            ) * 0.1
        got = f(value)
        if sums:
            np.testing.assert_allclose(got[0], want, rtol=1e-12)
            np.testing.assert_allclose(got[1], want.sum(), rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(got[2][n:], value)
        else:
            np.testing.assert_allclose(got[0], want[::-1], rtol=1e-12)


# -- how many plans are kept


def test_the_number_of_kept_plans_is_an_option():
    x = T.dvector("x")
    for most, kept in ((48, 2), (1, 1), (0, 0)):
        with symcomp.config.change_flags(most_plans=most):
            f = symcomp.function([x], T.sort(x) * 2)
        for n in (3, 4):
            assert f(np.arange(n)).tolist() == [2 * i for i in range(n)]
        assert f.plan().count("arena of") == kept


def test_the_profile_tells_why_calls_planned():
    x, n = T.dvector("x"), T.lscalar("n")
    f = symcomp.function([x, n], x[:n] * 2, profile=True)
    for length, end in ((3, 2), (3, 2), (3, 1), (4, 2), (4, 2)):
        f(np.ones(length), end)
    text = f.profile.text()
    assert "2 of 5 runs repeated a kept plan" in text
    assert "2 planned for shapes, strides or dtypes without a plan" in text
    assert "1 planned behind a branch, a length or an index that no plan had met" in text


def test_mutable_inputs_repeat_plans():
    x = T.dvector("x")
    f = symcomp.function([symcomp.In(x, mutable=True)], T.exp(x) * 2)
    for _ in range(4):
        value = np.zeros(3)
        assert f(value).tolist() == [2, 2, 2]
    assert f.repeated == 3
    # Not in C order: a copy is written into, which has another layout.
    value = np.zeros(6)[::2]
    assert f(value).tolist() == [2, 2, 2] and value.tolist() == [0, 0, 0]


def test_arrays_of_many_axes():
    x = T.dvector("x")
    for mode in (None, symcomp.Mode(optimizer="None")):
        f = symcomp.function([x], x.dimshuffle(*["x"] * 30, 0), mode=mode)
        g = symcomp.function([x], (x.dimshuffle(*["x"] * 30, 0) + 1).sum(), mode=mode)
        for n in (2, 3, 2):
            assert f(np.ones(n)).shape == (1,) * 30 + (n,)
            assert g(np.ones(n)) == 2 * n


def test_programs_end_in_any_order():
    """The garbage collector may end a program before its callers (see `make sanitize`)."""
    x, start = T.dvector("x"), T.constant(0.0)
    for repeats in (1, 3):
        functions = []
        for _ in range(4):
            states = symcomp.scan(lambda v, h: h * 0.5 + v, x, start, return_updates=False)
            inner = symcomp.OpFromGraph([x], [T.sort(x) + 1], inline=False)
            functions.append(symcomp.function([x], [states, inner(x)]))
        for f in functions:
            for n in range(repeats):
                f(np.ones(n + 1))
            # A cycle with everything that the function holds.
            f.executable.program.circle = functions
        del f, functions, states, inner
        gc.collect()


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=20, max_size=60))
def test_plans_of_loops_and_graphs_come_and_go(lengths):
    """Plans of nested programs make room for others, but not while calls refer to them."""
    x, a, b = T.dmatrix("x"), T.dvector("a"), T.dvector("b")
    twice = symcomp.OpFromGraph([a, b], [T.exp(a) * b, (a - b).sum()])
    states, _ = symcomp.scan(lambda row, state: (twice(row, state)[0] + state).cumsum(),
                             sequences=x, outputs_info=T.zeros_like(x[0]))  # fmt: skip
    first, total = twice(x[:, 0], x[:, 1])
    results = [states[-1], first, total]
    with config.change_flags(most_plans=2):
        f = symcomp.function([x], results)
    with config.change_flags(linker="vm"):
        expected = symcomp.function([x], results)
    for n in lengths:
        value = np.random.default_rng(n).normal(size=(n, n + 1))
        for got, wanted in zip(f(value), expected(value), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_plans_of_loops_that_make_room_are_freed():
    """Else each length of the step would leave a plan with its arena of n numbers or more."""
    x = T.dtensor3("x")
    states, _ = symcomp.scan(
        lambda rows, h: T.dot(T.tanh(T.dot(rows, rows.T) + h), rows).sum(),
        sequences=x, outputs_info=T.constant(0.0),
    )  # fmt: skip
    with config.change_flags(most_plans=2):
        f = symcomp.function([x], states)
    tracemalloc.start()
    try:
        held = []
        for n in range(40, 240):
            f(np.ones((3, n, 4)))
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[-1] - held[100] < 100 * 8 * 140 / 2
    # All were planned, however many plans the function keeps.
    assert "python" not in str(f.plan())


def test_small_results_are_used_again_when_nobody_has_them():
    x = T.dvector()
    f = symcomp.function([x], [T.exp(x) * 2, x[1:] + 1])
    places = set()
    for k in range(8):
        first, second = f(np.full(4, float(k)))
        np.testing.assert_allclose(first, 2 * np.exp(float(k)), rtol=1e-14)
        assert (second == k + 1).all()
        places.add(first.ctypes.data)
        second.shape = (3, 1)  # never again
    assert len(places) <= 3
    references = sys.getrefcount(first)
    f.free()
    assert sys.getrefcount(first) == references - 1  # the plan had it, too
    first, _ = f(np.full(4, 7.0))
    reference = weakref.ref(first)
    del first
    for k in range(3):
        f(np.full(4, float(k)))
    np.testing.assert_allclose(reference(), 2 * np.exp(7.0), rtol=1e-14)


@pytest.mark.overwrites
def test_updated_values_belong_to_their_variables():
    """No plan holds them, so that they can be overwritten in place."""
    w, x = symcomp.shared(np.zeros(3)), T.dvector()
    f = symcomp.function([x], (w + x).sum(), updates=[(w, w + x)])
    held = []
    for _ in range(4):
        held.append(w.get_value(borrow=True))
        f(np.ones(3))
    assert [v[0] for v in held] == [0, 1, 2, 3]
    del held
    value = w.get_value(borrow=True)
    assert sys.getrefcount(value) == 3  # the cell, ``value``, the argument
    del value
    place = w.get_value(borrow=True).ctypes.data
    f(np.ones(3))
    assert w.get_value(borrow=True).ctypes.data == place


def test_guards_of_what_is_left_to_python_are_forgotten():
    """A loop whose start is not aligned reads the number of steps, and then runs in Python."""

    def build():
        n, start = T.lscalar(), T.dvector()
        ends = symcomp.scan(lambda s: 2 * s, None, start, n_steps=n, return_updates=False)
        return [n, start], [ends[-1].sum(), T.zeros((n,))], []

    start = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.uint8)[1:].view(float)
    both(build, [(n, start) for n in (2, 2, 3, 5, 3, 2)])


def test_a_number_that_is_a_condition_and_a_length():
    """A guard of whether it is 0 is none of the number."""

    def build():
        k, x, rows = T.lscalar(), T.dvector(), T.dmatrix()
        states = symcomp.scan(lambda s: 2 * s, None, x, n_steps=k + 1, return_updates=False)
        empty = symcomp.scan(lambda r: T.zeros((k,)) + r.sum(), rows, return_updates=False)
        chosen = ifelse(k, x.sum(), x.sum() * 2 + 1)
        return [k, x, rows], [chosen, T.zeros((k,)), states[-1], empty], []

    x, rows = np.arange(3.0), np.empty((0, 3))
    both(build, [(k, x, rows) for k in (2, 2, 3, 5, 0, 1, 0, 3)])


def test_a_number_of_steps_that_is_a_condition():
    k, h = T.lscalar(), T.dscalar()
    states = symcomp.scan(lambda a: a * 2.0, None, h, n_steps=k, return_updates=False)
    f = symcomp.function([h, k], ifelse(k, states[-1], h))
    assert [float(f(1.0, n)) for n in (2, 2, 3, 5, 0, 1)] == [4, 4, 8, 32, 1, 2]
