"""Straight code of plans: the calls that it replaces give the same bits, errors and profiles."""

import threading
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import OpFromGraph
from symcomp.codegen.compiler import early
from symcomp.config import config
from symcomp.ifelse import ifelse
from symcomp.tests.codegen.running import assert_same_bits
from symcomp.tests.cvm.side_by_side import threads_side_by_side
from symcomp.tests.scan import test_random_loops

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True, scope="module")
def _kernels(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("kernels"))
    with config.change_flags(kernels=True, compiledir=directory, early_code=False):
        yield
        early.wait()


def compiled(inputs, outputs, after=1, **options) -> Any:
    """Compile a function that gets straight code after its first calls."""
    with config.change_flags(straight_after=after):
        return symcomp.function(inputs, outputs, **options)


def results(f, arguments) -> list[Any]:
    """Return results, or the error: what it says but for the traceback."""
    try:
        found = f(*arguments)
    except Exception as error:  # noqa: BLE001
        return [type(error).__name__, str(error)]
    return [np.array(x) for x in (found if isinstance(found, list) else [found])]


def check(inputs, outputs, *cases, straight=True) -> Any:
    """Compare a function before and after it has straight code with one that never gets any."""
    f, other = compiled(inputs, outputs), compiled(inputs, outputs, after=0)
    expected = [results(other, case) for case in cases]
    for _ in range(3):
        for case in cases:
            results(f, case)
    early.wait()
    for case, wanted in zip(cases, expected, strict=True):
        for _ in range(2):
            found = results(f, case)
            assert len(found) == len(wanted)
            for x, y in zip(found, wanted, strict=True):
                if isinstance(y, str):
                    assert x == y
                else:
                    assert x.dtype == y.dtype
                    assert_same_bits(x, y)
    assert ("straight code\n" in f.plan()) == straight, f.plan()
    assert "straight code" not in other.plan()
    return f


def gradients(cost, inputs):
    return [cost, *symcomp.grad(cost, inputs, disconnected_inputs="ignore")]


def kalman() -> Any:
    """Return a filter of two states: its log density, and gradient."""
    move, seen = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    y, x = T.dvector("y"), T.dvector("x")

    def step(now, a, p, total, q, h):
        error, variance = now - a[0], p[0, 0] + h**2
        gain = T.dot(T.dot(move, p), seen) / variance
        new = T.dot(T.dot(move, p), move.T) - T.outer(gain, gain) * variance + T.diag(q**2)
        logp = T.log(2 * np.pi * variance) + error**2 / variance
        return T.dot(move, a) + gain * error, new, total - 0.5 * logp

    start = [T.zeros(2), T.eye(2) * 10.0, T.constant(0.0)]
    states, _ = symcomp.scan(step, y, start, [T.exp(x[:2]), T.exp(x[2])])
    return [y, x], gradients(states[2][-1], [y, x])


def test_kalman_filter() -> None:
    inputs, outputs = kalman()
    x = np.array([0.1, 0.2, 0.3])
    y = RNG.normal(size=20)
    f = check(inputs, outputs, (y, x), (y[::-1], -x), (y[:3], x), (y * np.nan, x), (y * np.inf, x))
    text = f.plan()
    assert "nested 0: " in text
    assert text.count("straight code\n") >= 2


def rnn(dtype="float64", n=5):
    x, h, w = (T.TensorType(dtype, (None,) * k)() for k in (2, 1, 2))
    hs, _ = symcomp.scan(lambda a, s, w: T.tanh(a + T.dot(s, w)), x, h, w)
    values = [RNG.normal(size=size).astype(dtype) for size in ((7, n), n, (n, n))]
    return [x, h, w], gradients((hs**2).sum(), [x, h, w]), values


@pytest.mark.parametrize(("dtype", "n"), [("float32", 3), ("float64", 5)])
def test_recurrent_network(dtype: str, n: int) -> None:
    inputs, outputs, values = rnn(dtype, n)
    check(inputs, outputs, values, [v * 2 for v in values])


def test_until_and_taps() -> None:
    x, k = T.dvector("x"), T.dmatrix("k")

    def step(a, before, last):
        new = a * 0.5 + before[::-1] - 0.1 * last
        return new, symcomp.until(new.sum() > 4)

    ys, _ = symcomp.scan(step, x, {"initial": k, "taps": [-3, -1]})
    start = RNG.normal(size=(3, 2)) * 0.1
    check([x, k], gradients(ys.sum(), [x, k]), (np.arange(9.0), start), (-np.arange(9.0), start))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "bool"])
def test_integers(dtype: str) -> None:
    x = T.TensorType(dtype, (None, None))("x")
    s = T.TensorType(dtype, (None,))("s")

    def step(a, s):
        return (a ^ s[::-1]) if dtype == "bool" else T.cast(a * s + s[::-1] - 3, dtype)

    ys, _ = symcomp.scan(step, x, s)
    values = [RNG.integers(0, 120, size).astype(dtype) for size in ((9, 3), 3)]
    check([x, s], [ys, ys.sum(axis=0)], values)


def test_loop_in_a_loop() -> None:
    x, w = T.dmatrix("x"), T.dmatrix("w")

    def outer(row, s, w):
        inner, _ = symcomp.scan(lambda a, t, w: t * 0.5 + a * w[0] + T.dot(w, t), row, s, w)
        return inner[-1] + row[0]

    ys, _ = symcomp.scan(outer, x, T.zeros(2), w)
    values = RNG.normal(size=(4, 5)), RNG.normal(size=(2, 2)) * 0.3
    f = check([x, w], gradients(ys.sum(), [x, w]), values)
    assert "nested 0, nested 0: " in f.plan()


def test_checkpoints() -> None:
    x, w = T.dmatrix("x"), T.dmatrix("w")
    ys, _ = symcomp.scan(
        lambda a, s, w: T.dot(w, s) * 0.5 + a * s[0], x, T.ones(2), w, checkpoint=3
    )
    values = RNG.normal(size=(11, 2)), RNG.normal(size=(2, 2)) * 0.3
    check([x, w], gradients(ys[-1].sum(), [x, w]), values)


def test_branches_of_a_step_have_code_of_their_own() -> None:
    x, w = T.dmatrix("x"), T.dmatrix("w")

    def step(a, s, w):
        return ifelse(T.gt(s.sum(), 0), T.dot(w, s) - a, s * 0.5 + T.dot(s, w)[::-1] + a)

    ys, _ = symcomp.scan(step, x, T.ones(2), w)
    values = RNG.normal(size=(40, 2)) * 3, RNG.normal(size=(2, 2)) * 0.3
    f = check([x, w], gradients(ys.sum(), [x, w]), values)
    sides = f.plan().split("after call")[1:]
    assert sides
    assert all("straight code\n" in side for side in sides)


def test_failures_of_a_step() -> None:
    """An index out of range, and a matrix that is not positive definite."""
    x, i = T.dmatrix("x"), T.lvector("i")

    def step(row, k, s):
        c = T.linalg.cholesky(T.eye(2) * (1 + row[0]) + T.outer(row, row))
        return T.dot(c, s * 0.5 + row)[::-1] + row[k]

    ys, _ = symcomp.scan(step, [x, i], T.ones(2))
    good, one = RNG.normal(size=(6, 2)) ** 2, np.ones(6, "int64")
    bad = good.copy()
    bad[4] = -3, 0
    check([x, i], [ys], (good, one), (bad, one), (good, one * 0), (good, one * 7))


def test_random_numbers_of_a_step() -> None:
    """Streams go on where they are, whichever code uses their numbers."""
    x = T.dmatrix("x")
    found = []
    for after in (1, 0):
        stream = T.random.RandomStream(3)

        def step(a, s, stream=stream):
            return s * 0.5 + a[::-1] * stream.normal(0, 1, size=(2,))

        ys, updates = symcomp.scan(step, x, T.zeros(2))
        f = compiled([x], ys, after, updates=updates)
        runs = []
        for _ in range(4):
            runs.append(f(np.ones((5, 2))))
            early.wait()
        found.append(runs)
    for y, z in zip(*found, strict=True):
        assert_same_bits(y, z)


def test_graphs_and_updates() -> None:
    """Values of shared variables that are overwritten, around a graph and a loop."""
    x = T.dvector("x")
    op = OpFromGraph([x], [T.outer(x, x[::-1]).dot(x) + x])
    found = []
    for after in (1, 0):
        w = symcomp.shared(np.ones(3))
        ys, _ = symcomp.scan(lambda a, s: s * a + T.dot(T.outer(s, s), s), x, w)
        f = compiled([x], [ys, op(w)], after, updates=[(w, w * 0.5 + op(w) * 0.01 + ys[-1] * 0)])
        runs = []
        for _ in range(5):
            runs += [*f(np.array([0.1, 0.2])), w.get_value()]
            early.wait()
        found.append(runs)
    for y, z in zip(*found, strict=True):
        assert_same_bits(y, z)


def test_calls_of_many_elements_stay() -> None:
    x = T.dmatrix("x")
    y = T.dot(x, x.T)
    f = check([x], [T.exp(x).sum(), y[:2, :2] * 2 + y[0, 0]], (RNG.normal(size=(90, 90)),))
    assert "product" in f.plan()


def test_constants_are_not_computed_by_the_compiler() -> None:
    x = T.dvector("x")
    number = T.constant(2.0)
    with config.change_flags(optimizer="None"):
        check([x], [x * T.log(number) + T.log(T.exp(number)), x + T.eye(2)[0]], (np.ones(2),))


def test_views_and_copies() -> None:
    x = T.dmatrix("x")
    y = T.set_subtensor(x[::2, 1:], x[0, :-1] * 2)
    z = T.inc_subtensor(y[:, 0], x.sum(axis=1))
    outs = [z, T.concatenate([x, z.T], axis=1)[::-1], T.stack([x[0], z[1]]), z[None, ::-1] * 3]
    wide = RNG.normal(size=(6, 6))
    check([x], outs, (wide[::2, :3],), (wide[:3, :3][::-1],), (wide[:3, 3:].T,))


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_other_dtypes(dtype: str) -> None:
    x = T.TensorType(dtype, (None, None))("x")
    values = RNG.normal(size=(3, 2)).astype(dtype)
    outs = [x * 2 + x[0], x.sum(axis=0), T.concatenate([x, x * x])]
    check([x], outs, (values,), straight=dtype != "float16")


@pytest.mark.parametrize("seed", range(4))
def test_random_loops_in_threads_side_by_side(seed: int) -> None:
    cost, _ = test_random_loops.random_loop(seed)
    inputs = list(test_random_loops.INPUTS.values())
    with threads_side_by_side(1 + seed % 2):
        straight = "straight code" if seed % 2 == 0 else ""
        f, other = (compiled(inputs, gradients(cost, inputs), after) for after in (1, 0))
        at = test_random_loops.values()
        expected = other(*at)
        for _ in range(3):
            f(*at)
        early.wait()
        for x, y in zip(f(*at), expected, strict=True):
            assert_same_bits(x, y)
        assert straight in f.plan()


def test_threads_call_while_code_is_replaced() -> None:
    inputs, outputs = kalman()
    f = compiled(inputs, outputs, 3000)
    other = compiled(inputs, outputs, 0)
    cases = [(RNG.normal(size=20), RNG.normal(size=3) * 0.1) for _ in range(4)]
    expected = [other(*case) for case in cases]
    wrong = []

    def work(k):
        for _ in range(60):
            for x, y in zip(f(*cases[k]), expected[k], strict=True):
                if x.tobytes() != y.tobytes():
                    wrong.append(k)

    for _ in range(2):
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        early.wait()
    assert not wrong
    assert "straight code\n" in f.plan()


def test_profile_counts_the_calls_that_it_replaces() -> None:
    inputs, outputs = kalman()
    y, x = RNG.normal(size=20), np.zeros(3)
    f = compiled(inputs, outputs, profile=True)
    for _ in range(3):
        f(y, x)
    early.wait()
    assert "straight code\n" in f.plan()
    for _ in range(30):
        f(y, x)
    counted = f.profiled.tally.counted()
    assert {one.runs for one in counted} == {33}
    assert all(one.seconds >= 0 for one in counted)
    for _, tally in f.profiled.tally.inner.values():
        assert {one.runs for one in tally.counted()} == {33 * 20}
        assert tally.straight
    assert "kernel (straight)" in f.profile.text()


def test_freed_and_compiled_again() -> None:
    inputs, outputs = kalman()
    x = RNG.normal(size=6), np.zeros(3)
    f = compiled(inputs, outputs)
    for _ in range(3):
        expected = f(*x)
    f.free()
    early.wait()
    for a, b in zip(f(*x), expected, strict=True):
        assert_same_bits(a, b)
    del f
    early.wait()


def test_plans_that_are_dropped_while_code_is_compiled() -> None:
    x = T.dmatrix("x")
    with config.change_flags(most_plans=1):
        f = compiled([x], T.dot(x, x.T) + T.dot(x, x).sum())
    for n in (2, 3, 2, 3, 2, 2, 2):
        f(np.ones((n, n)))
    early.wait()
    assert_same_bits(f(np.ones((2, 2))), np.full((2, 2), 10.0))
