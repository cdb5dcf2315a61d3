"""Loops run natively give what the Python machine gives, without Python between the steps."""

import itertools
import signal
import threading
from typing import NamedTuple

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse
from symcomp.tests.cvm.looking import bodies_of

RNG = np.random.default_rng(5)


LOOPS = []


class StepCounts(NamedTuple):
    """The steps of a loop in one call of a function, and in how many nothing was planned."""

    done: int
    repeated: int


@pytest.fixture(autouse=True)
def loops():
    """Return the loops that ran, on values that do not depend on earlier tests."""
    global RNG
    RNG = np.random.default_rng(5)
    LOOPS.clear()
    with config.change_flags(kernels=True):
        yield LOOPS


def watched(f, values):
    """Call a function and add what its loops did to LOOPS."""
    bodies = bodies_of(f)
    before = [body.counts for body in bodies]
    results = f(*values)
    for (runs, planned), body in zip(before, bodies, strict=True):
        done = body.counts[0] - runs
        LOOPS.append(StepCounts(done, done - (body.counts[1] - planned)))
    return results


def both(build, *values):
    """Return the results of the native loop; those of the Python machine must be equal but for the
    order of sums: of hundreds of terms they differ by up to 12 eps.
    """
    results = []
    for linker in ("cvm", "vm"):
        with config.change_flags(linker=linker):
            inputs = [T.tensor(v.dtype, shape=(None,) * v.ndim) for v in values]
            f = symcomp.function(inputs, build(*inputs))
        call = watched if linker == "cvm" else lambda f, values: f(*values)
        results.append([call(f, values), call(f, values)])
    for native, again, python in zip(*results[0], results[1][0], strict=True):
        assert native.dtype == python.dtype and native.shape == python.shape
        np.testing.assert_array_equal(native, again)
        eps = np.finfo(python.dtype).eps if python.dtype.kind == "f" else 0
        scale = 16 * eps * max(1, np.abs(python).max(initial=0))
        np.testing.assert_allclose(native, python, rtol=0, atol=scale)
    return results[0][0]


def normal(*shape, dtype="float64"):
    return (0.5 * RNG.normal(size=shape)).astype(dtype)


def rnn(x, h, w):
    return [symcomp.scan(lambda v, s: T.tanh(v + T.dot(s, w)), x, h, return_updates=False)]


def last_of_rnn(x, h, w):
    return [rnn(x, h, w)[0][-1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("build", [rnn, last_of_rnn])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 50])
def test_recurrence(loops, dtype, build, steps):
    if steps == 0 and build is last_of_rnn:
        pytest.skip("there is no last state")
    values = normal(steps, 4, dtype=dtype), normal(4, dtype=dtype), normal(4, 4, dtype=dtype)
    both(build, *values)
    # The first two steps show the lengths; they are taken for more than one further step alone.
    assert all(loop.repeated >= steps - 2 for loop in loops) or steps < 4
    assert loops


@pytest.mark.parametrize("rows", [1, 3])
def test_states_of_matrices(loops, rows):
    both(rnn, normal(9, rows, 4), normal(rows, 4), normal(4, 4))
    assert all(loop.repeated >= 7 for loop in loops)


@pytest.mark.parametrize("n", [1, 2, 6, 40])
def test_chains_of_products(loops, n):
    def build(h, a, b):
        step = lambda s: T.tanh(T.dot(T.dot(T.dot(s, a), b), s) * s)  # noqa: E731
        return [symcomp.scan(step, outputs_info=h, n_steps=20, return_updates=False)]

    def sequences(rows, a, b):
        step = lambda m, a, b: T.dot(T.dot(a, m), T.dot(m, b))  # noqa: E731
        return [symcomp.scan(step, rows, non_sequences=[a, b], return_updates=False)]

    both(build, normal(n), normal(n, n + 1), normal(n + 1, n))
    both(sequences, normal(20, n, n), normal(n, n), normal(n, n))
    assert loops and all(loop.repeated >= 18 for loop in loops)


def test_gradient(loops):
    def build(x, h, w):
        return symcomp.grad(rnn(x, h, w)[0].sum(), [x, h, w])

    both(build, normal(30, 5), normal(5), normal(5, 5))
    assert len(loops) == 4 and all(loop.repeated >= 28 for loop in loops)


def test_layouts(loops):
    h, w = normal(4), normal(4, 4)
    unaligned = np.frombuffer(b"\0" + normal(8, 4).tobytes(), np.uint8)[1:].view(float)
    frozen = normal(8, 4)
    frozen.flags.writeable = False
    stretched = np.broadcast_to(normal(4), (8, 4))
    for x in (normal(4, 8).T, normal(16, 8)[::-2, ::2], unaligned.reshape(8, 4), frozen, stretched):
        for start, matrix in ((h, w), (normal(8)[::2], w.T), (h, np.repeat(w, 2, axis=0)[::2])):
            both(rnn, x, start, matrix)
    # Where the sequence is not aligned, Python computes.
    assert sum(loop.repeated >= 6 for loop in loops) == 2 * 4 * 3


@pytest.mark.parametrize("rows", [None, 3])
def test_parts(loops, rows):
    """Gates are parts of one product; rows are turned around, cut, picked and made longer."""
    shape = () if rows is None else (rows,)

    def build(x, h, c, u):
        def step(v, h, c):
            z = v + T.dot(h, u)
            i, o, g = (z[..., k * 4 : (k + 1) * 4] for k in range(3))
            c = T.tanh(i) * c[..., ::-1] + T.sigmoid(g) * z[..., -4:]
            return [T.sigmoid(o) * T.tanh(c), c, z[..., 2:7:2], T.exp(z[..., 0])]

        outputs, _ = symcomp.scan(step, x, [h, c, None, None])
        return [*outputs, symcomp.grad(outputs[0].sum(), u)]

    both(build, normal(15, *shape, 12), normal(*shape, 4), normal(*shape, 4), normal(4, 12))
    assert any(loop.repeated == 14 for loop in loops)


def test_states_that_change_places(loops):
    def build(a, b, n):
        (x, y, z), _ = symcomp.scan(
            lambda a, b, c: [b, a + b, c], outputs_info=[a, b, a * 2], n_steps=n
        )
        return [x[-1], y[-1], z[-1], x, y, z]

    both(build, normal(3), normal(3), np.asarray(20))
    both(lambda a, b, n: build(a, b, n)[:3], normal(3), normal(3), np.asarray(20))


def test_one_value_in_many_places(loops):
    def build(x, h):
        def step(v, s, r):
            new = T.exp(-s) + v
            return [new, new, new, v, s, T.constant(np.ones(3)) * 2, new.dimshuffle("x", 0)]

        outputs, _ = symcomp.scan(step, x, [h, h * 2, None, None, None, None, None])
        return [*outputs, outputs[0][-1]]

    both(build, normal(11, 3), normal(3))
    assert all(loop.repeated >= 10 for loop in loops)


def test_taps(loops):
    def build(x, h):
        def step(before, after, third, first):
            return T.tanh(before * third) - after + first

        return [
            symcomp.scan(
                step,
                {"input": x, "taps": [-1, 1]},
                {"initial": h, "taps": [-3, -1]},
                return_updates=False,
            )
        ]

    both(build, normal(12, 2), normal(3, 2))
    assert all(loop.repeated >= 8 for loop in loops)


@pytest.mark.parametrize("limit", [0.5, 3.5, 64.5, 200.5, 1e9])
def test_until(loops, limit):
    """The rows grow on the way."""

    def build(x, bound):
        def step(v, s):
            return [s + v * v + 1, s * 2], symcomp.scan_module.until(s > bound)

        (states, twice), _ = symcomp.scan(step, x, [T.zeros(()), None])
        return [states, twice]

    states, _ = both(build, normal(500), np.asarray(limit))
    assert len(states) == 500 or states[-2] > limit
    assert all(loop.repeated >= len(states) - 15 for loop in loops)


def test_until_with_rows_without_elements(loops):
    def build(start, bound):
        def step(h, n):
            return [T.tanh(h), n + 1, h * 2], symcomp.scan_module.until(n >= bound)

        return symcomp.scan(step, None, [start, T.zeros(()), None], n_steps=30_000)[0]

    states, counts, twice = both(build, np.zeros(0), np.asarray(20_000.0))
    assert states.shape == twice.shape == (20_001, 0)
    assert (counts == np.arange(1, 20_002)).all()


def test_wrong_lengths():
    """The error of the step, and which one it was."""
    x, h = T.dmatrix("x"), T.dvector("h")
    f = symcomp.function([x, h], symcomp.scan(lambda v, s: v + s, x, h, return_updates=False))
    with pytest.raises((ShapeError, ValueError)) as error:
        f(normal(6, 4), normal(3))
    assert any("step 0 (of at most 6)" in note for note in error.value.__notes__)


def test_error_in_a_late_step():
    n = T.lscalar()
    rows = symcomp.scan(lambda i: T.arange(i // 5 + 1) * 1.0, T.arange(n), return_updates=False)
    with pytest.raises(ShapeError, match=r"shape \(2,\) in this step") as error:
        symcomp.function([n], rows)(9)
    assert any("step 5 (of at most 9)" in note for note in error.value.__notes__)


def test_signals_stop_it():
    def stop(*_):
        raise KeyboardInterrupt

    n = T.lscalar()
    total = symcomp.scan(lambda s: T.sin(s) + 1, outputs_info=T.zeros(()), n_steps=n)[0][-1]
    f = symcomp.function([n], total)
    f(10)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            f(10**9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads():
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    f = symcomp.function([x, h, w], rnn(x, h, w)[0])
    values = [(normal(500, 6), normal(6), normal(6, 6)) for _ in range(4)]
    wanted = [f(*v) for v in values]
    found = [None] * 4

    def work(i):
        for _ in itertools.repeat(None, 20):
            found[i] = f(*values[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_by_lengths(loops, dtype):
    """Gates are cut by the length of the state; their gradient is written part by part."""

    def build(x, h, w):
        def step(v, h):
            size = h.shape[-1]
            a = T.dot(h, w)
            r = T.sigmoid(v[:, :size] + a[:, :size])
            z = T.sigmoid(v[:, size : 2 * size] + a[:, size : 2 * size])
            n = T.tanh(v[:, 2 * size :] + r * a[:, 2 * size :])
            return n + z * (h - n)

        states = symcomp.scan(step, x, h, return_updates=False)
        return [states, *symcomp.grad((states**2).sum(), [x, h, w])]

    both(
        build, normal(12, 3, 15, dtype=dtype), normal(3, 5, dtype=dtype), normal(5, 15, dtype=dtype)
    )
    assert len(loops) == 4 and all(loop.repeated >= 10 for loop in loops)


@pytest.mark.parametrize("set_", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_parts_are_written(loops, dtype, set_):
    """Parts of states, of rows and of new arrays, by numbers, steps and lengths; stretched rows."""
    write = T.set_subtensor if set_ else T.inc_subtensor

    def build(x, h):
        def step(v, h):
            n = h.shape[0]
            a = write(h[1:3], v[:2])
            b = write(a[::-2, 0], v[: (n + 1) // 2, 1])
            c = write(T.zeros_like(h)[n - 2 :], v[0].dimshuffle("x", 0))
            d = write(c[:, -1], v[0, 0])
            return [b, d, write(h[n:], v[:0])]

        outputs, _ = symcomp.scan(step, x, [h, None, None])
        return outputs

    x, h = (normal(*shape) * 9 for shape in ((9, 5, 3), (5, 3)))
    both(build, x.astype(dtype), h.astype(dtype))
    assert any(loop.repeated >= 7 for loop in loops)


def test_what_was_fixed_is_not_overwritten(loops):
    """A value that is the same in all steps, in whose memory another may be left."""

    def build(x, h, w):
        def step(v, h):
            scale = T.exp(T.cast(h.shape[0], "float64") / 40) * w
            return T.tanh(v * scale + h) * T.sqrt(scale + v**2)

        return [symcomp.scan(step, x, h, return_updates=False)]

    both(build, normal(20, 6), normal(6), normal(6))
    assert all(loop.repeated >= 18 for loop in loops)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "float32", "float64"])
def test_choices(loops, dtype):
    """Each way through the body is recorded once; steps go from one to the other without Python."""

    def build(x, c, h, w):
        def step(v, c, h):
            taken = ifelse(c, T.tanh(v + T.dot(h, w)), h * v)
            kept = ifelse(T.gt(h[0], 0), h, taken)
            return [taken, taken + kept, T.sqr(kept)]

        outputs, _ = symcomp.scan(step, [x, c], [None, h, None])
        return [*outputs, *symcomp.grad(outputs[1].sum() + outputs[2][-1].sum(), [x, h, w])]

    x, h, w = normal(40, 4) / 4, normal(4), normal(4, 4) / 4
    conditions = np.array([0, 1, 1, 0, 0, 0, 1, 0] * 5).astype(dtype)
    both(build, x, conditions, h, w)
    # Four ways, and the first step, which starts from other layouts.
    assert len(loops) == 4 and all(loop.repeated >= 40 - 6 for loop in loops)


def test_choices_that_nest_and_stop(loops):
    def build(x, limit):
        def step(v, total):
            inner = ifelse(T.lt(total, 1), total + T.exp(v), total * 0.9)
            total = ifelse(T.gt(v, 0), inner, ifelse(T.lt(v, -1), T.zeros(()), total - v))
            return total, symcomp.scan_module.until(total > limit)

        return [symcomp.scan(step, x, T.zeros(()), return_updates=False)]

    for limit in (2.0, 100.0):
        (found,) = both(build, 3 * normal(400), np.asarray(limit))
        assert len(found) == 400 or found[-1] > limit
    # Rows are moved to larger memory now and then.
    assert all(loop.repeated >= loop.done - 40 for loop in loops)


def test_more_ways_than_are_recorded(loops):
    def build(x, h):
        def step(v, h):
            for k in range(5):
                h = ifelse(T.gt(v[k], 0), T.sin(h) + v, h * 0.5)
            return h

        return [symcomp.scan(step, x, h, return_updates=False)]

    both(build, normal(200, 5), normal(5))
    assert all(0 < loop.repeated < 190 for loop in loops)


def test_an_error_in_a_choice_taken_late():
    x, h = T.dvector("x"), T.dvector("h")

    def step(v, h):
        return ifelse(T.lt(v, 5), h + v, T.dot(h, T.zeros((3, 4))) + h)

    f = symcomp.function([x, h], symcomp.scan(step, x, h, return_updates=False))
    assert f(np.zeros(9), normal(4)).shape == (9, 4)
    with pytest.raises((ShapeError, ValueError)) as error:
        f(np.arange(9.0), normal(4))
    assert any("step 5 (of at most 9)" in note for note in error.value.__notes__)


@pytest.mark.parametrize("rows", [None, 2, 40])
def test_joins(loops, rows):
    """Parts are copied to their places, or computed there."""
    shape = () if rows is None else (rows,)
    axis = len(shape)

    def build(x, h, w):
        def step(v, h):
            both = T.concatenate([T.tanh(v), h, T.exp(-h)], axis=axis)
            return T.tanh(T.dot(both, w)), both[..., 1:]

        outputs, _ = symcomp.scan(step, x, [h, None])
        return [*outputs, *symcomp.grad(outputs[0].sum() + outputs[1].sum(), [x, h, w])]

    width = 5 if rows is None else 200
    both(build, normal(11, *shape, width), normal(*shape, 7), normal(width + 14, 7) / width)
    assert len(loops) == 4 and all(loop.repeated >= 9 for loop in loops)
