"""Gradients that keep the states of some steps alone and do the others again."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.walk import toposort
from symcomp.errors import ShapeError
from symcomp.scan.budget import ChunkLength, read_budget
from symcomp.scan.op import Scan
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)
X, W, H = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=3)


def rnn_by_hand(x: Any, h: Any, w: Any) -> Any:
    rows = np.empty((len(x), len(h)))
    for t, row in enumerate(x):
        h = rows[t] = np.tanh(row + h @ w)
    return rows


def test_checkpoints() -> None:
    def build(x: Any, h: Any, w: Any) -> Any:
        step = lambda x, h, w: T.tanh(x + T.dot(h, w))  # noqa: E731
        return symcomp.scan_checkpoints(step, x, h, w, save_every_N=2)[0]

    check(build, X, H, W, expected=lambda x, h, w: rnn_by_hand(x, h, w)[-1:], static="none")


def test_checkpoints_keep_the_states_between_chunks_alone() -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    step = lambda x, h, w: T.tanh(x + T.dot(h, w))  # noqa: E731
    y, _ = symcomp.scan_checkpoints(step, x, h, w, save_every_N=2)
    gw = symcomp.grad(y.sum(), w)
    forwards = next(node for node in toposort([gw]) if isinstance(node.op, Scan))
    assert forwards.op.layout.n_stacked == 0


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("every", ["auto", 2, 7])
def test_checkpoint(every: Any, steps: int) -> None:
    def build(x: Any, h: Any, w: Any) -> Any:
        step = lambda x, h, w: [T.tanh(x + T.dot(h, w)), (h * x).sum()]  # noqa: E731
        return symcomp.scan(step, x, [h, None], w, checkpoint=every)[0]

    def by_hand(x: Any, h: Any, w: Any) -> Any:
        rows = rnn_by_hand(x, h, w)
        before = np.concatenate([h[None], rows[:-1]])[: len(x)]
        return [rows, (before * x).sum(axis=1)]

    check(build, X[:steps], H, W, expected=by_hand, static="none")


def test_checkpoint_with_taps_and_shared_state() -> None:
    s = symcomp.shared(0.5, name="s")
    x, h = T.dvector("x"), T.dvector("h")

    def outputs(**options: Any) -> list[Any]:
        sequences = {"input": x, "taps": [-1, 1]}
        info = {"initial": h, "taps": [-3, -1]}
        step = lambda p, n, a, b: (T.sin(a) * p + b * n * s, {s: s * 1.1})  # noqa: E731
        y, updates = symcomp.scan(step, sequences, info, n_steps=7, **options)
        total = (y**2).sum()
        return [y, updates[s], *symcomp.grad(total, [x, h, s])]

    f = symcomp.function([x, h], outputs())
    g = symcomp.function([x, h], outputs(checkpoint=3))
    for a, b in zip(f(X.ravel()[:10], H), g(X.ravel()[:10], H), strict=True):
        np.testing.assert_allclose(a, b)


def test_checkpoint_of_loop() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    found = []
    for checkpoint in (None, 2):
        end, ys = symcomp.loop(
            lambda c, x: ((c[1], T.sin(c[0]) + x), c[0]), (h, h), x, checkpoint=checkpoint
        )
        total = (end[0] ** 2 + end[1]).sum() + ys.sum()
        found.append(evaluate([total, *symcomp.grad(total, [x, h])], {x: X, h: H}))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b)


EVERY = ["auto", 3, "3 kB"]


def same_with_checkpoint(build: Any, inputs: list[Any], values: list[Any], every: Any) -> None:
    """Values and gradients with and without checkpoints, by a compiled function."""
    plain = symcomp.function(inputs, build({}))
    kept = symcomp.function(inputs, build({"checkpoint": every}))
    for a, b in zip(plain(*values), kept(*values), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("bound", [0.2, 1.5, 1e9])
def test_until(bound: float, every: Any) -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")

    def build(options: Any) -> list[Any]:
        def step(x: Any, h: Any, w: Any) -> Any:
            new = T.tanh(x + T.dot(h, w))
            return [new, (h * x).sum()], symcomp.until(abs(new).sum() > bound)

        (y, s), _ = symcomp.scan(step, x, [h, None], w, **options)
        cost = (y**2).sum() + (y[-1] ** 3).sum() + s.sum()
        return [y, s, y.shape[0], *symcomp.grad(cost, [x, h, w])]

    rows = np.linspace(0.01, 0.6, 33).reshape(11, 3)
    same_with_checkpoint(build, [x, h, w], [rows, H / 9, W / 9], every)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("truncate", [1, 4, 12])
def test_truncate_gradient(truncate: int, every: Any) -> None:
    s = symcomp.shared(0.5, name="s")
    x, h, w = T.dvector("x"), T.dvector("h"), T.dscalar("w")

    def build(options: Any) -> list[Any]:
        step = lambda p, n, a, b, w: ([T.sin(a) * p + b * n * s * w, b], {s: s * w})  # noqa: E731
        (y, z), updates = symcomp.scan(
            step,
            {"input": x, "taps": [-1, 1]},
            [{"initial": h, "taps": [-3, -1]}, None],
            w,
            n_steps=11,
            truncate_gradient=truncate,
            **options,
        )
        cost = (y**2).sum() + y[-1] + z.sum() + updates[s] ** 2
        return [y, z, updates[s], *symcomp.grad(cost, [x, h, w, s])]

    values = [RNG.normal(size=14), H, np.asarray(0.9)]
    same_with_checkpoint(build, [x, h, w], values, every)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_truncate_gradient_and_until(steps: int) -> None:
    x, h = T.dvector("x"), T.dscalar("h")

    def build(options: Any) -> list[Any]:
        step = lambda x, h: (T.sin(h) * x, symcomp.until(h > 1e3))  # noqa: E731
        y, _ = symcomp.scan(step, x, h, truncate_gradient=3, **options)
        return [y, *symcomp.grad((y**2).sum(), [x, h])]

    same_with_checkpoint(build, [x, h], [RNG.normal(size=steps), np.asarray(0.4)], 2)


def test_second_order_and_tangents() -> None:
    x, h, w, v = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("v")

    def build(options: Any) -> list[Any]:
        y, _ = symcomp.scan(lambda x, h, w: T.tanh(x + T.dot(h, w)), x, h, w, **options)
        slope = symcomp.grad((y**2).sum(), w)
        return [
            symcomp.Rop(y, w, v),
            symcomp.grad((slope * v).sum(), w),
            symcomp.Rop(slope, w, v),
            symcomp.Lop(y, w, symcomp.Rop(y, w, v)),
        ]

    same_with_checkpoint(build, [x, h, w, v], [X, H, W, W.T.copy()], 2)


def test_nested_loops() -> None:
    x, h = T.dmatrix("x"), T.dscalar("h")

    def build(options: Any) -> list[Any]:
        def outer(row: Any, h: Any) -> Any:
            return symcomp.scan(lambda e, h: T.sin(h) + e * h, row, h, **options)[0][-1]

        y, _ = symcomp.scan(outer, x, h, **options)
        return [y, *symcomp.grad((y**2).sum(), [x, h])]

    same_with_checkpoint(build, [x, h], [X, np.asarray(0.3)], 2)


def test_go_backwards() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")

    def build(options: Any) -> list[Any]:
        y, _ = symcomp.scan(
            lambda x, h: T.sin(h) * x, x, h, go_backwards=True, n_steps=4, **options
        )
        return [y, *symcomp.grad((y**2).sum(), [x, h])]

    same_with_checkpoint(build, [x, h], [X, H], "auto")


@pytest.mark.parametrize("linker", ["vm", "cvm"])
def test_memory_of_the_gradient(linker: str) -> None:
    """900 steps with states of 6400 bytes, all in full: at least 5.76 MB."""
    h, w = T.dmatrix("h"), T.dmatrix("w")
    whole = 900 * 6400

    def peak(checkpoint: Any, **options: Any) -> int:
        y, _ = symcomp.scan(
            lambda h: h + 0.01 * T.tanh(T.dot(h, w)),
            outputs_info=h,
            n_steps=900,
            checkpoint=checkpoint,
            **options,
        )
        f = symcomp.function([h, w], symcomp.grad((y[-1] ** 2).sum(), w))
        values = np.ones((80, 10)), np.eye(10)
        f(*values)
        tracemalloc.start()
        f(*values)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    with symcomp.config.change_flags(linker=linker):
        assert peak(None) > whole
        assert peak("auto") < 0.4 * whole
        assert peak("auto", truncate_gradient=100) < 0.4 * whole
        for budget in (2_500_000, 5_000_000):
            assert peak(f"{budget} B") < budget


def test_steps_within_a_budget() -> None:
    n = T.lscalar("n")
    steps = symcomp.function([n], ChunkLength(1000)(n, T.constant(10), T.constant(20)))
    assert [int(steps(k)) for k in (-1, 0, 1, 50)] == [1, 1, 1, 50]
    for k in (51, 700, 1250):
        size = int(steps(k))
        assert (k - 1) // size * 10 + size * 20 <= 1000
        assert k / (size + 1) * 10 + (size + 1) * 20 > 1000
    with pytest.raises(ValueError, match=r"1300 steps with 10 bytes of state, .* need 10"):
        steps(1300)


def test_budget_that_is_too_small_is_told_when_running() -> None:
    h, n = T.dvector("h"), T.lscalar("n")
    y, _ = symcomp.scan(T.sin, outputs_info=h, n_steps=n, checkpoint="1 kB", name="waves")
    f = symcomp.function([h, n], symcomp.grad(y[-1].sum(), h))
    np.testing.assert_allclose(f(np.full(10, 0.5), 2), np.cos(0.5) * np.cos(np.sin(0.5)))
    message = r"waves: checkpoint is 1000 bytes; 99 steps with 80 bytes of state, which make 240"
    with pytest.raises(ValueError, match=message):
        f(np.ones(10), 99)


def test_bad_checkpoints() -> None:
    x = T.dvector("x")
    for bad in (0, -3, True, 2.5, "often", "64", "0 B", "3 XB", "ib"):
        with pytest.raises(ValueError, match=r"checkpoint is .*; it must be None, 'auto'"):
            symcomp.scan(lambda x: x, x, checkpoint=bad)
    rows = lambda k, s: [s + T.arange(k).sum(), T.arange(k) * 2.0]  # noqa: E731
    with pytest.raises(ShapeError, match="not known before the loop runs: pass checkpoint='auto'"):
        symcomp.scan(rows, T.lvector("k"), [T.constant(0), None], checkpoint="1 MB")


def test_units_of_budgets() -> None:
    wanted = {"12B": 12, "1.5 kB": 1500, "2KiB": 2048, "3 MB": 3 * 10**6, "1gib": 2**30}
    for text, n_bytes in wanted.items():
        budget = read_budget(text)
        assert budget is not None
        assert budget.n_bytes == n_bytes


def test_too_short_sequence_is_named() -> None:
    x, n = T.dvector("x"), T.lscalar("n")
    y, _ = symcomp.scan(lambda x: T.sin(x), x, n_steps=n, checkpoint=2)
    with pytest.raises(ShapeError, match=r"read as x\[t\] has length 3 .* but 5 steps need 5"):
        evaluate([y], {x: np.ones(3), n: np.asarray(5)})
