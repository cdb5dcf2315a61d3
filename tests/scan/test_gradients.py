"""Derivatives of loops: every kind of argument, both modes, and functions of derivatives."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.walk import toposort
from symcomp.gradient import verify_grad
from symcomp.ifelse import ifelse
from symcomp.scan.op import Scan
from symcomp.tests.harness import check, infer_shapes

RNG = np.random.default_rng(0)
X, W, H = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=3)


def rnn(x: Any, h: Any, w: Any) -> Any:
    return symcomp.scan(lambda xt, ht, wt: T.tanh(xt + T.dot(ht, wt)), x, h, w)[0]


def rnn_by_hand(x: Any, h: Any, w: Any) -> Any:
    rows = np.empty((len(x), len(h)))
    for t, row in enumerate(x):
        h = rows[t] = np.tanh(row + h @ w)
    return rows


@pytest.mark.parametrize("steps", [5, 1, 0])
def test_rnn(steps: int) -> None:
    check(rnn, X[:steps], H, W, expected=rnn_by_hand)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes(dtype: str) -> None:
    values = [a.astype(dtype) for a in (X, H, W)]

    def by_hand(x: Any, h: Any, w: Any) -> Any:
        rows = []
        for row in x:
            h = row * h + h @ w
            rows.append(h)
        return np.array(rows, dtype)

    def build(x: Any, h: Any, w: Any) -> Any:
        return symcomp.scan(lambda row, h, w: row * h + T.dot(h, w), x, h, w)[0]

    check(build, *[a / 3 for a in values], expected=by_hand, rtol=1e-5)


def test_taps_of_sequences_and_outputs() -> None:
    def build(x: Any, y: Any, h: Any) -> Any:
        def step(x_past: Any, x_now: Any, x_next: Any, y_next: Any, h3: Any, h1: Any) -> Any:
            return T.sin(h3) * x_past + h1 * x_next - x_now * y_next

        sequences = [{"input": x, "taps": [-1, 0, 2]}, {"input": y, "taps": 1}]
        return symcomp.scan(step, sequences, {"initial": h, "taps": [-3, -1]})[0]

    def by_hand(x: Any, y: Any, h: Any) -> Any:
        rows = list(h)
        for t in range(min(len(x) - 3, len(y) - 1)):
            new = np.sin(rows[-3]) * x[t] + rows[-1] * x[t + 3] - x[t + 1] * y[t + 1]
            rows.append(new)
        return np.array(rows[3:])

    x, y, h = RNG.normal(size=(8, 2)), RNG.normal(size=(6, 2)), RNG.normal(size=(3, 2))
    check(build, x, y, h, expected=by_hand)
    check(build, x, y[:3], h, expected=by_hand, static="none")


def test_outputs_that_do_not_return() -> None:
    def build(x: Any, h: Any) -> Any:
        return symcomp.scan(lambda x, h: [x * h, h + x**2, x.sum()], x, [None, h, None])[0]

    def by_hand(x: Any, h: Any) -> Any:
        states = [h]
        for row in x:
            states.append(states[-1] + row**2)
        return [x * np.array(states[:-1]), np.array(states[1:]), x.sum(axis=1)]

    check(build, X, H, expected=by_hand)


def test_states_that_feed_one_another() -> None:
    def build(a: Any, b: Any) -> Any:
        outputs, _ = symcomp.scan(lambda a, b: [b * 1.0, a + T.sin(b)], None, [a, b], n_steps=4)
        return outputs[0]

    def by_hand(a: Any, b: Any) -> Any:
        rows = []
        for _ in range(4):
            a, b = b, a + np.sin(b)
            rows.append(a)
        return np.array(rows)

    check(build, H, 2 * H, expected=by_hand)


def test_step_that_returns_its_arguments() -> None:
    def build(x: Any, h: Any) -> Any:
        return symcomp.scan(lambda x, h: [x, h], x, [h, None])[0]

    def by_hand(x: Any, h: Any) -> Any:
        return [x, np.concatenate([h[None], x[:-1]])]

    check(build, X, H, expected=by_hand)


def test_go_backwards_with_fewer_steps() -> None:
    def build(x: Any, h: Any) -> Any:
        return symcomp.scan(lambda x, h: x * T.cos(h), x, h, n_steps=3, go_backwards=True)[0]

    def by_hand(x: Any, h: Any) -> Any:
        rows = []
        for row in x[::-1][:3]:
            h = row * np.cos(h)
            rows.append(h)
        return np.array(rows)

    check(build, X, H, expected=by_hand)


def test_until() -> None:
    def build(x: Any, h: Any) -> Any:
        def step(x: Any, h: Any) -> Any:
            new = T.sin(h) + x
            return [new, h * x], symcomp.until(new.sum() > 2.5)

        return symcomp.scan(step, x, [h, None])[0]

    def by_hand(x: Any, h: Any) -> Any:
        states, products = [], []
        for row in x:
            products.append(h * row)
            h = np.sin(h) + row
            states.append(h)
            if h.sum() > 2.5:
                break
        return [np.array(states), np.array(products)]

    rows = np.full((6, 3), 0.1)
    rows[3] = 1.0
    assert len(by_hand(rows, H)[0]) == 4
    check(build, rows, H, expected=by_hand)


def test_nested() -> None:
    def inner(row: Any, h: Any, w: Any) -> Any:
        return symcomp.scan(lambda x, h, w: T.tanh(x + h * w), row, h, w)[0][-1]

    def build(x: Any, h: Any, w: Any) -> Any:
        return symcomp.scan(inner, x, h, w)[0]

    def by_hand(x: Any, h: Any, w: Any) -> Any:
        rows = []
        for row in x:
            for element in row:
                h = np.tanh(element + h * w)
            rows.append(h)
        return np.array(rows)

    check(build, X, H[0], W[0, 0], expected=by_hand)


def test_values_kept_for_the_gradient() -> None:
    """A product that no output shows, an ifelse, an integer that counts."""

    def build(x: Any, h: Any, w: Any) -> Any:
        def step(x: Any, h: Any, count: Any) -> Any:
            z = T.dot(h, w)
            grown = T.switch(T.eq(count % 2, 0), T.sin(z) * T.exp(-z), z)
            return h * x + ifelse(x.sum() > 0, grown, z**2), count + 1

        return symcomp.scan(step, x, [h, T.constant(0)])[0][0]

    def by_hand(x: Any, h: Any, w: Any) -> Any:
        rows = []
        for t, row in enumerate(x):
            z = h @ w
            grown = z if t % 2 else np.sin(z) * np.exp(-z)
            h = h * row + (grown if row.sum() > 0 else z**2)
            rows.append(h)
        return np.array(rows)

    check(build, X, H, W / 2, expected=by_hand)


def test_values_whose_lengths_change_from_step_to_step_are_computed_again() -> None:
    """A window that grows with the steps, and the elements that a mask chooses."""

    def build(h: Any, w: Any) -> Any:
        def step(k: Any, h: Any) -> Any:
            h = T.set_subtensor(h[k], T.tanh(T.dot(h[: k + 1], w[: k + 1, k])))
            return T.set_subtensor(h[h > 0.1], h.prod())

        return symcomp.scan(step, T.arange(3), h)[0]

    def by_hand(h: Any, w: Any) -> Any:
        rows = []
        for k in range(3):
            h = h.copy()
            h[k] = np.tanh(h[: k + 1] @ w[: k + 1, k])
            h[h > 0.1] = h.prod()
            rows.append(h)
        return np.array(rows)

    check(build, H, W, expected=by_hand, static="none")


@pytest.mark.parametrize("truncate", [1, 2, 5, 9])
def test_truncate_gradient(truncate: int) -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    step = lambda x, h, w: T.tanh(x + T.dot(h, w))  # noqa: E731
    cut, _ = symcomp.scan(step, x, h, w, truncate_gradient=truncate)
    got = evaluate(symcomp.grad((cut**2).sum(), [x, h, w]), {x: X, h: H, w: W})
    # The last steps alone, from the state that the others reached.
    past = max(len(X) - truncate, 0)
    start = rnn_by_hand(X[:past], H, W)[-1] if past else H
    last = symcomp.grad((rnn(x, h, w) ** 2).sum(), [x, h, w])
    wanted = evaluate(last, {x: X[past:], h: start, w: W})
    np.testing.assert_allclose(got[0][past:], wanted[0])
    np.testing.assert_array_equal(got[0][:past], 0)
    np.testing.assert_allclose(got[1], wanted[1] if past == 0 else np.zeros(3))
    np.testing.assert_allclose(got[2], wanted[2])


@pytest.mark.parametrize("truncate", [1, 2, 3, 4])
def test_truncate_gradient_with_taps(truncate: int) -> None:
    """Steps left out count as constants; what the others read of the start still counts."""
    h = T.dvector("h")

    def steps(h: Any, n: int, **options: Any) -> Any:
        info = {"initial": h, "taps": [-3, -1]}
        return symcomp.scan(lambda a, b: T.sin(a) * b + a, None, info, n_steps=n, **options)[0]

    start = RNG.normal(size=3)
    got = evaluate([symcomp.grad(steps(h, 4, truncate_gradient=truncate)[-1], h)], {h: start})[0]
    rows = np.concatenate([start, evaluate([steps(h, 4)], {h: start})[0]])
    past = 4 - truncate
    last = evaluate([symcomp.grad(steps(h, truncate)[-1], h)], {h: rows[past : past + 3]})[0]
    wanted = np.zeros(3)
    wanted[past:] = last[: 3 - past]
    np.testing.assert_allclose(got, wanted)


def test_undefined_gradients_matter_to_those_who_ask() -> None:
    x, h, k = T.dmatrix("x"), T.dvector("h"), T.dscalar("k")
    marked = symcomp.gradient.undefined_grad
    y, _ = symcomp.scan(lambda x, h: h * x + marked(T.switch(x.sum() > 0, k, k)) * h, x, h)
    (g,) = evaluate([symcomp.grad(y.sum(), h)], {x: X, h: H, k: np.asarray(2.0)})
    plain, _ = symcomp.scan(lambda x, h: h * x + k * h, x, h)
    (wanted,) = evaluate([symcomp.grad(plain.sum(), h)], {x: X, h: H, k: np.asarray(2.0)})
    np.testing.assert_array_equal(g, wanted)
    with pytest.raises(symcomp.NullTypeGradError):
        symcomp.grad(y.sum(), k)


def test_tangents_and_gradients_of_unknown_shape() -> None:
    x, h = T.tensor("x", shape=(5, 3)), T.tensor("h", shape=(3,))
    dx, dh, g = T.dmatrix("dx"), T.dvector("dh"), T.dmatrix("g")
    end, rows = symcomp.loop(lambda h, x: (T.sin(h) * x, h * x), h, x)
    values = {x: X, h: H, dx: X + 1, dh: H - 1, g: X * 2}
    pushed = symcomp.Rop(rows, [x, h], [dx, dh])
    gx, gh = symcomp.Lop(rows, [x, h], g)
    moved, back_x, back_h = evaluate([pushed, gx, gh], values)
    np.testing.assert_allclose((moved * X * 2).sum(), (back_x * (X + 1)).sum() + back_h @ (H - 1))
    last = symcomp.Lop(end, h, dh)
    np.testing.assert_allclose(
        evaluate([last], values)[0] @ H, evaluate([symcomp.Rop(end, h, T.constant(H))], values)[0]
        @ (H - 1),
    )  # fmt: skip


def chained(order: str, f: Any, x: Any, v: Any) -> Any:
    """Compute a directional derivative of each order given: L by grad, R by Rop."""
    for mode in order:
        f = symcomp.grad((f * v).sum(), x) if mode == "L" else symcomp.Rop(f, x, v)
    return f


@pytest.mark.parametrize("order", ["LL", "LR", "RL", "RR", "LRL", "RLR", "LLL"])
def test_higher_orders(order: str) -> None:
    x, h, w, v = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("v")
    direction = RNG.normal(size=(3, 3)) / 3
    y = symcomp.scan(lambda x, h, w: T.tanh(x + T.dot(h, w)), x, h, w)[0][-1]
    f = (T.sin(y) * y).sum() + 0 * w
    derived = chained(order[:-1], f, w, v)
    values = {x: X[:3], h: H, w: W / 3, v: direction}
    exact = evaluate([chained(order[-1], derived, w, v)], values)[0]
    shifted = []
    for sign in (1, -1):
        values[w] = W / 3 + sign * 1e-5 * direction
        shifted.append(evaluate([derived], values)[0])
    slope = (shifted[0] - shifted[1]) / 2e-5
    if order[-1] == "R":
        np.testing.assert_allclose(exact, slope, rtol=2e-5, atol=2e-6)
    else:
        np.testing.assert_allclose((exact * direction).sum(), (slope * direction).sum(), rtol=2e-5)


def test_gradient_is_one_more_scan_and_stores_no_product() -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    gw = symcomp.grad((rnn(x, h, w) ** 2).sum(), w)
    scans = [node for node in toposort([gw]) if isinstance(node.op, Scan)]
    assert len(scans) == 2
    assert scans[0].op.layout.n_stacked == 0
    backwards = scans[1].op
    products = [n for n in toposort(backwards.body.outputs) if str(n.op).lower().startswith("dot")]
    assert len(products) == 1  # g W^T; that of the forward loop is not done again


def test_a_step_that_uses_its_values_twice_many_times_over() -> None:
    def step(h: Any) -> Any:
        for _ in range(60):  # each value on twice as many paths as the next
            h = h * T.cos(h)
        return h

    h = T.dvector("h")
    gh = symcomp.grad(symcomp.scan(step, outputs_info=h, n_steps=2)[0][-1].sum(), h)
    values = np.array([0.5, -1.0])
    expected, value = np.ones(2), values
    for _ in range(120):
        expected = expected * (np.cos(value) - value * np.sin(value))
        value = value * np.cos(value)
    assert np.allclose(gh.eval({h: values}), expected)


def test_values_of_which_the_shape_alone_is_used_are_not_kept() -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    (y, total), _ = symcomp.scan(lambda x, h: [T.sin(h) + x, (T.dot(h, w) + x).sum()], x, [h, None])
    gx = symcomp.grad(total.sum() + y.sum(), x)
    scans = [node.op for node in toposort([gx]) if isinstance(node.op, Scan)]
    assert [op.layout.n_stacked for op in scans] == [1, 1]
    assert [op.layout.n_sequences for op in scans][1] == 3  # two gradients and h


def test_gauss_newton_product() -> None:
    x, h, w, v = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("v")
    f = rnn(x, h, w)
    product = symcomp.Lop(f, w, symcomp.Rop(f, w, v))
    values = {x: X, h: H, w: W, v: W.T.copy()}
    jacobian = symcomp.gradient.jacobian(f.flatten(), w).reshape([15, 9])
    (j,) = evaluate([jacobian], values)
    wanted = (j.T @ (j @ W.T.ravel())).reshape(3, 3)
    np.testing.assert_allclose(evaluate([product], values)[0], wanted)


def test_gradient_of_shared_state() -> None:
    """A shared variable that a step updates is a carried state like any other."""
    s = symcomp.shared(2.0, name="s")
    x = T.dvector("x")
    y, updates = symcomp.scan(lambda x: (s * x, {s: s * T.sin(x)}), x)
    total = y.sum() + updates[s] ** 2
    gs, gx = symcomp.grad(total, [s, x])
    f = symcomp.function([x], [total, gs, gx])
    at = np.array([0.5, 1.0, 2.0])
    step = 1e-6
    base = s.get_value()

    def value(s0: float, xs: Any) -> float:
        out = 0.0
        for element in xs:
            out += s0 * element
            s0 = s0 * np.sin(element)
        return out + s0**2

    result = f(at)
    np.testing.assert_allclose(result[0], value(base, at))
    slope = (value(base + step, at) - value(base - step, at)) / (2 * step)
    np.testing.assert_allclose(result[1], slope, rtol=1e-6)
    for i in range(3):
        e = np.eye(3)[i] * step
        slope = (value(base, at + e) - value(base, at - e)) / (2 * step)
        np.testing.assert_allclose(result[2][i], slope, rtol=1e-6)


def test_compiled() -> None:
    verify_grad(rnn, [X, H, W], rng=RNG)


def test_zero_steps_with_rows_of_known_length() -> None:
    def build(x: Any) -> Any:
        return symcomp.scan(lambda row: T.concatenate([row, row]) * 2, x)[0]

    def by_hand(x: Any) -> Any:
        return 2 * np.concatenate([x, x], axis=1)

    check(build, X[:0], expected=by_hand)
    check(build, X, expected=by_hand)


def test_disconnected_inputs_are_known() -> None:
    x, h, unused = T.dmatrix("x"), T.dvector("h"), T.dvector("unused")
    y, _ = symcomp.scan(lambda x, h: [h + x, x * unused], x, [h, None])
    with pytest.raises(symcomp.DisconnectedInputError):
        symcomp.grad(y[0].sum(), unused)
    g = symcomp.grad(y[1].sum(), unused)
    np.testing.assert_allclose(evaluate([g], {x: X, h: H, unused: H})[0], X.sum(axis=0))


def test_power_with_symbolic_steps() -> None:
    a, k = T.dscalar("a"), T.lscalar("k")
    p, _ = symcomp.scan(lambda p: p * a, None, T.constant(1.0), n_steps=k)
    f = symcomp.function([a, k], symcomp.grad(p[-1], a))
    for steps in (1, 2, 7):
        np.testing.assert_allclose(f(1.3, steps), steps * 1.3 ** (steps - 1))


def test_infer_shape_runs_no_step() -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")
    assert infer_shapes([rnn(x, h, w)], {x: X, h: H, w: W}) == [(5, 3)]


@pytest.mark.parametrize("checkpoint", [None, 2])
def test_states_that_no_step_reads_are_disconnected_from_their_start(checkpoint: Any) -> None:
    """As in Theano. A state that only another output reads is among them."""
    x, a, b, pair = T.dvector("x"), T.dscalar("a"), T.dscalar("b"), T.dvector("pair")
    (h, g, k), _ = symcomp.scan(
        lambda row, h, g, far, near: [2 * row, g + h, row + 0 * near.shape.sum()],
        x,
        [a, b, {"initial": pair, "taps": [-2, -1]}],
        checkpoint=checkpoint,
    )
    for y, start in ((h, a), (h, b), (h[-1], a), (k, pair), (k[-1], pair)):
        with pytest.raises(symcomp.DisconnectedInputError):
            symcomp.grad(y.sum(), start)
        with pytest.raises(symcomp.DisconnectedInputError):
            symcomp.Rop(y, start, T.ones_like(start))
    slopes = symcomp.grad(g[-1] + h[-1], [a, b, x])
    f = symcomp.function([x, a, b, pair], [h, g, k, *slopes])
    values = [np.array([1.0, 2.0, 3.0]), 5.0, 7.0, np.zeros(2)]
    wanted = [[2, 4, 6], [12, 14, 18], [1, 2, 3], 1, 1, [2, 2, 2]]
    for found, value in zip(f(*values), wanted, strict=True):
        np.testing.assert_array_equal(found, value)
    # A loop of no steps ends with what it started from.
    for length, connected in ((T.lscalar(), True), (2, False)):
        end, _ = symcomp.loop(lambda c, _: (T.constant(2.0), None), a, length=length)
        gradient = symcomp.grad(end, a, disconnected_inputs="ignore", return_disconnected="None")
        assert (gradient is not None) == connected
