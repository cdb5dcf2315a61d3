"""The rewrites of loops: the remaining ops, and equal values."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.walk import toposort
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.scan.layout import Layout
from symcomp.scan.op import Scan
from symcomp.scan.rows import FirstRows
from symcomp.scan.rules import SCAN_RULES
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)
X, W, H = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3)) / 2, RNG.normal(size=3)
x, w, h = T.dmatrix("x"), T.dmatrix("w"), T.dvector("h")
VALUES: dict[Any, Any] = {x: X, w: W, h: H}


def rewritten(outputs: list[Any], values: Any = VALUES, fires: str = "") -> FunctionGraph:
    """Return the graph after the rules, checked to compute the same; each rule of ``fires`` did."""
    before = evaluate(outputs, values)
    graph = FunctionGraph(list(values), outputs)
    engine = Engine(graph, SCAN_RULES + CANONICALIZE, "scan", on_error="raise")
    fired = {firing.rule for firing in engine.run()}
    after = evaluate(graph.outputs, dict(zip(graph.inputs, values.values(), strict=True)))
    for a, b in zip(before, after, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert set(fires.split()) <= fired
    return graph


def scans(graph: FunctionGraph) -> list[Any]:
    """Return the scan nodes, in order."""
    return [node for node in graph.toposort() if isinstance(node.op, Scan)]


def body_ops(node: Any) -> list[str]:
    """Return the names of the ops of a step."""
    return [str(inner.op) for inner in toposort(node.op.body.outputs)]


def rnn(step: Any = None) -> Any:
    return symcomp.scan(step or (lambda x, h: T.tanh(x + T.dot(h, w))), x, h)[0]


def test_unused_outputs_states_and_inputs_are_dropped() -> None:
    def step(x: Any, a: Any, b: Any, c: Any) -> Any:
        # b feeds a; c feeds only itself.
        return [a * b, b + 1, c * x, x.sum()]

    outputs, _ = symcomp.scan(step, x, [h, h + 1, h + 2, None])
    (node,) = scans(rewritten([outputs[0]], {x: X, h: H}, fires="scan_drop_unused"))
    assert len(node.op.layout.lags) == 2
    assert node.op.layout.n_stacked == node.op.layout.n_sequences == 0


def test_lags_that_nobody_reads_are_dropped() -> None:
    y, _ = symcomp.scan(
        lambda a, b, c: a + b + 0 * c.shape[0],
        None,
        {"initial": x, "taps": [-3, -1, -2]},
        n_steps=4,
    )
    (node,) = scans(rewritten([y], {x: X[:3]}))
    assert set(node.op.layout.lags[0]) <= {3, 1, 2}
    assert node.op.layout.lags[0][:2] == (3, 1)


def test_constants_go_into_the_body() -> None:
    c = T.constant(np.arange(3.0))
    y, _ = symcomp.scan(lambda x, h: x * c + h, x, h)
    node = y.owner.inputs[0].owner
    assert len(node.op.layout.arguments(node.inputs).captured) == 0
    # An expression that becomes constant later.
    captured = T.exp(T.as_tensor_variable(np.zeros(3)))
    y, _ = symcomp.scan(lambda x, h: h * captured + x, x, h)
    (node,) = scans(rewritten([y], {x: X, h: H}, fires="scan_inline_constants"))
    assert node.op.layout.arguments(node.inputs).captured == []


def test_equal_sequences_states_and_outputs_become_one() -> None:
    def step(x1: Any, x2: Any, a: Any, b: Any) -> Any:
        return [T.tanh(x1 + b), T.tanh(x2 + a), x1 * a, x2 * b]

    outputs, _ = symcomp.scan(step, [x, x], [h, h, None, None])
    (node,) = scans(rewritten(outputs, {x: X, h: H}, fires="scan_merge_equal"))
    layout = node.op.layout
    assert (len(layout.lags), layout.n_sequences, layout.n_stacked) == (1, 1, 0)


def test_states_that_start_equal_and_differ_later_stay_two() -> None:
    outputs, _ = symcomp.scan(lambda x, a, b: [a + x, b - x], x, [h, h])
    (node,) = scans(rewritten(outputs, {x: X, h: H}))
    assert len(node.op.layout.lags) == 2


def test_invariant_work_is_hoisted() -> None:
    s = T.dvector("s")
    y, _ = symcomp.scan(lambda h: h * T.exp(s[0]), None, h, n_steps=3)
    # A body that does it itself, as one may get by other rewrites.
    node = y.owner.inputs[0].owner
    inner = node.op.body
    held = inner.inputs[-1]
    slow = ClosedGraph(inner.inputs, [inner.inputs[0] * T.cosh(T.sinh(held))])
    rows = replace(node.op, body=slow)(*node.inputs)[0]
    graph = rewritten([rows], {h: H, s: H}, fires="scan_hoist_invariant")
    assert body_ops(scans(graph)[0])[-1] == "mul"
    assert not {"cosh", "sinh"} & set(body_ops(scans(graph)[0]))


def test_branches_are_not_hoisted() -> None:
    checked = T.assert_op(w, T.eq(w.shape[0], 0))
    y, _ = symcomp.scan(lambda x: ifelse(x.sum() > 1e9, checked.sum(), x.sum()), x)
    rewritten([y], {x: X, w: W})


@pytest.mark.parametrize("taps", [[-1], [-2, -1]])
def test_one_step_is_unrolled(taps: list[int]) -> None:
    start = h if taps == [-1] else x[:2]
    y, _ = symcomp.scan(
        lambda *rows: [sum(rows[1:], rows[0]), rows[0] * 2],
        x,
        [{"initial": start, "taps": taps}, None],
        n_steps=1,
    )
    graph = rewritten([*y, symcomp.grad(y[0].sum(), x)], {x: X, h: H}, fires="scan_unroll_one_step")
    assert scans(graph) == []


@pytest.mark.parametrize("read", [lambda y: y[-1], lambda y: y[1:][-1], lambda y: y[-1] ** 2])
def test_traces_of_which_the_last_row_is_read_are_not_kept(read: Any) -> None:
    (node,) = scans(rewritten([read(rnn())], fires="scan_shorten_traces"))
    assert node.op.layout.lags == ()
    assert node.op.layout.n_carried == 1


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("taps", [[-1], [-2], [-3, -1], [-1, -4]])
@pytest.mark.parametrize(
    "read",
    [
        lambda y: y[-1:],
        lambda y: y[-2:],
        lambda y: y[-3:],
        lambda y: y[-4:-1],
        lambda y: y[-3:, 1],
        lambda y: y[-1:-4:-1],
    ],
)
def test_last_rows_are_kept_alone(read: Any, taps: list[int], steps: int) -> None:
    step = lambda *rows: T.sin(sum(rows)) + x[0]  # noqa: E731
    start = {"initial": x[0] if taps == [-1] else x[: -min(taps)], "taps": taps}
    y, _ = symcomp.scan(step, None, start, n_steps=steps)
    n = T.lscalar("n")
    z, _ = symcomp.scan(step, None, start, n_steps=n)
    graph = rewritten([read(y), read(z)], {x: X, n: np.asarray(steps)})
    assert all(node.op.layout.lags == () for node in scans(graph))


def test_rows_one_by_one_from_the_end() -> None:
    y, _ = symcomp.scan(lambda a, b: a + T.sin(b), None, {"initial": x[:2], "taps": [-2, -1]},
                        n_steps=6)  # fmt: skip
    graph = rewritten([y[-1], y[-3, 1], y[-2].sum()], {x: X}, fires="scan_shorten_traces")
    assert scans(graph)[0].op.layout == Layout((), 3, 0, 0)
    # As they are, not from a stack of all.
    assert not any(str(n.op) == "Stack" for n in graph.toposort())


def test_last_rows_of_outputs_are_kept_alone() -> None:
    def step(x: Any, h: Any) -> Any:
        return [h + x, T.cumsum(x * h), (x * h).argmax()]

    (_, a, b), _ = symcomp.scan(step, x, [h, None, None])
    graph = rewritten([a[-2:], b[-1]], {x: X, h: H}, fires="scan_shorten_outputs")
    assert scans(graph)[0].op.layout.n_stacked == 0
    rewritten([a[-2:]], {x: X[:1], h: H})
    rewritten([a[-2:]], {x: X[:0], h: H})


def test_outputs_of_which_the_shape_is_unknown_are_kept() -> None:
    k = T.lvector("k")
    rows, _ = symcomp.scan(lambda k: T.arange(k), k)
    graph = rewritten([rows[-1]], {k: np.array([3, 3])})
    assert scans(graph)[0].op.layout.n_stacked == 1


@pytest.mark.parametrize(
    "read", [lambda y: y[::2], lambda y: y.sum(), lambda y: y[-1] + y[0], lambda y: y[::-2]]
)
def test_traces_that_are_read_stay(read: Any) -> None:
    (node,) = scans(rewritten([read(rnn()), rnn()[-1]]))
    assert node.op.layout.lags == ((1,),)


@pytest.mark.parametrize(
    ("read", "steps"),
    [
        (lambda y: y[0], 1),
        (lambda y: y[2], 3),
        (lambda y: y[:2], 2),
        (lambda y: y[1:4:2] + y[0], 4),
        (lambda y: y[1:][0, 2], 2),
        (lambda y: y[:0], 0),
    ],
)
def test_steps_that_nobody_reads_are_not_done(read: Any, steps: int) -> None:
    y, _ = symcomp.scan(lambda h: T.sin(h) + x[0], None, h, n_steps=9)
    graph = rewritten([read(y)], {x: X, h: H}, fires="scan_skip_last_steps")
    assert [int(node.inputs[0].data) for node in scans(graph)] == [steps] * (steps != 1)
    rewritten([read(rnn())], fires="scan_skip_last_steps")
    start = {"initial": x[:3], "taps": [-3]}
    (y, z), _ = symcomp.scan(lambda a: [T.sin(a), a * 2], None, [start, None], n_steps=7)
    rewritten([read(y), read(z)], {x: X}, fires="scan_skip_last_steps")


@pytest.mark.parametrize("steps", [0, 1, 4, 11, 12, 30])
@pytest.mark.parametrize("read", [lambda y: y[-6:], lambda y: y[-5::2], lambda y: y[-6:-1].sum()])
def test_steps_of_which_no_row_is_read_keep_none(read: Any, steps: int) -> None:
    n, t = T.lscalar("n"), T.dvector("t")
    values = {x: X, t: RNG.normal(size=33), n: np.asarray(steps)}

    def step(past: Any, now: Any, a: Any, b: Any, c: Any) -> Any:
        return [T.sin(a) + b * now + past, c * 0.9 + a[0], T.cumsum(a) * c]

    for count in (n, steps):
        sequence = {"input": t, "taps": [-3, 0]}
        info = [{"initial": x[:2], "taps": [-2, -1]}, T.constant(1.0), None]
        (a, b, c), _ = symcomp.scan(step, sequence, info, n_steps=count)
        split = steps > 12 or count is n
        fires = "scan_split_unread" if split else ""
        graph = rewritten([read(a), read(b), read(c), b[-1:]], values, fires=fires)
        if split:
            head, *rest = scans(graph)
            assert (head.op.layout.lags, head.op.layout.n_stacked) == ((), 0)
            assert len(rest) == 1


def test_truncated_gradients_read_the_last_rows_alone() -> None:
    y, _ = symcomp.scan(
        lambda x, h: T.tanh(T.dot(T.sin(T.dot(h, w)) + x, w)), x, h, truncate_gradient=7
    )
    rows = RNG.normal(size=(25, 3))
    grads = symcomp.grad((y[-1] ** 2).sum(), [x, w, h])
    graph = rewritten([y[-1], *grads], {**VALUES, x: rows}, fires="scan_split_unread")
    head, forwards, backwards = scans(graph)
    assert (head.op.layout.lags, head.op.layout.n_stacked) == ((), 0)
    rewritten([y[-1], *grads], {**VALUES, x: rows[:5]})
    rewritten([y[-1], *grads], {**VALUES, x: rows[:7]})


def test_row_beyond_the_steps_is_still_out_of_range() -> None:
    n = T.lscalar("n")
    y, _ = symcomp.scan(lambda h: T.sin(h), None, h, n_steps=n)
    f = symcomp.function([h, n], [y[2], y[-2]])
    np.testing.assert_allclose(f(H, 3)[0], np.sin(np.sin(np.sin(H))))
    with pytest.raises(IndexError):
        f(H, 2)
    g = symcomp.function([h, n], y[-2])
    np.testing.assert_allclose(g(H, 2), np.sin(H))
    with pytest.raises(IndexError):
        g(H, 1)


def test_until_loops_keep_their_last_rows() -> None:
    y, _ = symcomp.scan(
        lambda h: (h * 0.5, symcomp.until(h.sum() < 1)), None, abs(h) + 3, n_steps=50
    )
    graph = rewritten([y[-2:], y[-1]], {h: H}, fires="scan_shorten_traces")
    assert scans(graph)[0].op.layout.lags == ()
    rewritten([y[0], y.shape[0]], {h: H})


def test_no_step_still_has_no_last_row() -> None:
    graph = FunctionGraph([x, h, w], [rnn()[-1]])
    Engine(graph, SCAN_RULES + CANONICALIZE, on_error="raise").run()
    with pytest.raises(IndexError):
        evaluate(graph.outputs, dict(zip(graph.inputs, [X[:0], H, W], strict=True)))


def test_work_on_sequences_moves_before_the_loop() -> None:
    y = rnn(lambda x, h: T.tanh(T.dot(x, w) + T.exp(x).sum() + h))
    graph = rewritten([y], fires="scan_push_out_sequences")
    assert "Dot" not in body_ops(scans(graph)[0])
    products = [n for n in graph.toposort() if str(n.op) == "Dot"]
    assert [n.inputs[0].ndim for n in products] == [2]


def test_matrix_rows_move_before_the_loop() -> None:
    t = T.dtensor3("t")
    y, _ = symcomp.scan(lambda row, a: T.tanh(T.dot(row, w) + a), t, T.zeros((2, 3)))
    values = {t: RNG.normal(size=(4, 2, 3)), w: W}
    graph = rewritten([y, symcomp.grad((y**2).sum(), w)], values, fires="scan_push_out_sequences")
    assert all("Dot" not in body_ops(node) for node in scans(graph))


def test_sequence_longer_than_the_steps_is_cut() -> None:
    y, _ = symcomp.scan(lambda x, h: T.exp(x) + h, x, h, n_steps=2)
    rewritten([y], {x: X, h: H}, fires="scan_push_out_sequences")


def test_sequence_that_is_too_short_is_still_named() -> None:
    n = T.lscalar("n")
    y, _ = symcomp.scan(lambda a: T.exp(a), x, n_steps=n)
    graph = FunctionGraph([x, n], [y])
    Engine(graph, SCAN_RULES, on_error="raise").run()
    assert scans(graph) == []
    with pytest.raises(ShapeError, match=r"read as x\[t\] has length 5 .* but 6 steps need 6"):
        evaluate(graph.outputs, dict(zip(graph.inputs, [X, np.asarray(6)], strict=True)))


def test_first_rows() -> None:
    check(lambda a: FirstRows("a")(a, T.constant(2)), X, expected=lambda a: a[:2])


def test_rows_given_back_need_no_loop() -> None:
    (a, b, c), _ = symcomp.scan(lambda x: [x, x[::-1], x[0]], x)
    assert scans(rewritten([a, b, c], {x: X}, fires="scan_push_out_sequences")) == []
    (a, b), _ = symcomp.scan(lambda x, s: [x + s, x], x, [h, None])
    (node,) = scans(rewritten([a, b], {x: X, h: H}, fires="scan_push_out_sequences"))
    assert node.op.layout.n_stacked == 0
    first, _ = symcomp.scan(lambda x: x, x, n_steps=2)
    assert scans(rewritten([first], {x: X})) == []


def test_outer_products_are_not_made_for_all_steps() -> None:
    y, _ = symcomp.scan(lambda x, a: a * T.outer(x, x + 1), x, T.ones((3, 3)))
    graph = rewritten([y], {x: X})
    assert max(v.ndim for v in graph.variables if v.owner and v.owner.op != Scan) <= 3
    assert any("DimShuffle" in op for op in body_ops(scans(graph)[0]))


def test_outputs_move_behind_the_loop() -> None:
    v = T.dmatrix("v")
    (_, y), _ = symcomp.scan(
        lambda x, h: [T.tanh(x + T.dot(h, w)), T.exp(T.dot(h, v))], x, [h, None]
    )
    values = {**VALUES, v: W.T.copy()}
    graph = rewritten([y], values, fires="scan_push_out_outputs")
    (node,) = scans(graph)
    assert node.op.layout.n_stacked == 0
    assert body_ops(node).count("Dot") == 1


def test_gradient_of_weights_is_one_product() -> None:
    gw = symcomp.grad((rnn() ** 2).sum(), w)
    graph = rewritten([gw], fires="scan_push_out_sums")
    forwards, backwards = scans(graph)
    assert backwards.op.layout.n_carried == 0
    assert body_ops(forwards).count("Dot") == body_ops(backwards).count("Dot") == 1
    assert str(graph.outputs[0].owner.op) == "Dot"


def test_gradient_of_bias_is_one_sum() -> None:
    b = T.dvector("b")
    y, _ = symcomp.scan(lambda x, h: T.tanh(x + T.dot(h, w) + b), x, h)
    graph = rewritten([symcomp.grad((y**2).sum(), b)], {**VALUES, b: H}, fires="scan_push_out_sums")
    assert all(node.op.layout.n_carried == 0 for node in scans(graph))


def test_gradient_of_bias_of_a_batch_is_one_sum() -> None:
    b, t = T.dvector("b"), T.dtensor3("t")
    y, _ = symcomp.scan(lambda x, a: T.tanh(x + T.dot(a, w) + b), t, T.zeros((2, 3)))
    values = {t: RNG.normal(size=(4, 2, 3)), w: W, b: H}
    graph = rewritten(symcomp.grad((y**2).sum(), [w, b]), values, fires="scan_push_out_sums")
    assert all(node.op.layout.n_carried == 0 for node in scans(graph))
    assert not any("sum" in op for node in scans(graph) for op in body_ops(node))


def test_gradient_of_batches_is_one_product() -> None:
    t = T.dtensor3("t")
    y, _ = symcomp.scan(lambda row, a: T.tanh(row + T.dot(a, w)), t, T.zeros((2, 3)))
    values = {t: RNG.normal(size=(4, 2, 3)), w: W}
    graph = rewritten([symcomp.grad((y**2).sum(), w)], values, fires="scan_push_out_sums")
    assert all(node.op.layout.n_carried == 0 for node in scans(graph))


def test_sums_that_a_step_uses_stay() -> None:
    """The total so far, used when it is complete."""
    (a, b), _ = symcomp.scan(lambda x, a, b: [(z := a + x * x), b + T.sin(z)], x, [h, h + 1])
    graph = rewritten([a[-1], b[-1]], {x: X, h: H})
    assert len(scans(graph)[0].op.layout.results(scans(graph)[0].outputs).carried) >= 1


def test_sums_of_which_a_part_is_returned_stay() -> None:
    (a, b), _ = symcomp.scan(lambda x, a: [(z := a + x) + T.sin(x), z], x, [h, None])
    graph = rewritten([a[-1], b], {x: X, h: H})
    assert len(scans(graph)) == 1


def test_scans_of_equal_length_become_one() -> None:
    a, _ = symcomp.scan(lambda x, s: s + x, x, h)
    b, _ = symcomp.scan(lambda x, p: p * T.exp(x), x, h)
    graph = rewritten([a, b], {x: X, h: H}, fires="scan_merge")
    assert len(scans(graph)) == 1


def test_scans_that_need_one_another_stay_two() -> None:
    a, _ = symcomp.scan(lambda x, s: s + x, x, h)
    b, _ = symcomp.scan(lambda y, p: p * y, a, h)
    assert len(scans(rewritten([b], {x: X, h: H}))) == 2


def test_gauss_newton_product_is_two_loops() -> None:
    v = T.dmatrix("v")
    f = rnn()
    product = symcomp.Lop(f, w, symcomp.Rop(f, w, v))
    graph = rewritten([product], {**VALUES, v: W.T.copy()})
    assert len(scans(graph)) == 2


def test_rows_kept_for_the_gradient_come_from_the_loop_that_is_there() -> None:
    def step(x: Any, h: Any) -> Any:
        z = T.dot(h, w)
        return T.sin(z) * z + x

    y = rnn(step)
    graph = rewritten([y, *symcomp.grad((y**2).sum(), [w, x, h])])
    assert len(scans(graph)) == 2
    assert [body_ops(node).count("Dot") for node in scans(graph)] == [1, 1]


def test_products_that_share_a_factor_become_one() -> None:
    u, v = T.dmatrix("u"), T.dmatrix("v")
    step = lambda x, h: T.tanh(T.dot(h, u) * x + T.dot(h, v) + T.dot(h, w))  # noqa: E731
    graph = rewritten([rnn(step)], {**VALUES, u: W + 1, v: W - 1}, fires="scan_merge_products")
    assert body_ops(scans(graph)[0]).count("Dot") == 1


def test_gates_of_an_lstm() -> None:
    names = "ui uf uo ug vi vf vo vg".split()
    weights = [T.dmatrix(name) for name in names]

    def step(x: Any, h: Any, c: Any) -> Any:
        i, f, o, g = (T.dot(x, a) + T.dot(h, b) for a, b in zip(weights, weights[4:], strict=False))
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return [T.nnet.sigmoid(o) * T.tanh(c), c]

    (y, _), _ = symcomp.scan(step, x, [h, h])
    values = {x: X, h: H} | {a: RNG.normal(size=(3, 3)) for a in weights}
    graph = rewritten([y], values, fires="scan_merge_products scan_push_out_sequences")
    assert body_ops(scans(graph)[0]).count("Dot") == 1
    grads = symcomp.grad((y**2).sum(), weights)
    graph = rewritten(grads, values, fires="scan_push_out_sums scan_merge_sums_of_products")
    assert [body_ops(node).count("Dot") for node in scans(graph)] == [1, 1]


@pytest.mark.parametrize("rows", [2, None])
def test_sums_of_products_become_one_product(rows: int | None) -> None:
    u, v = T.dmatrix("u"), T.dmatrix("v")
    start = h if rows is None else T.zeros((rows, 3)) + h
    step = lambda h: T.dot(T.sin(h), u) + (h + T.dot(T.cos(h), v))  # noqa: E731
    y, _ = symcomp.scan(step, None, start, n_steps=3)
    values = {h: H, u: W, v: W - 1}
    graph = rewritten([y], values, fires="scan_merge_sums_of_products")
    assert body_ops(scans(graph)[0]).count("Dot") == 1


def test_until_loops_keep_their_meaning() -> None:
    def step(x: Any, h: Any) -> Any:
        new = T.tanh(x + T.dot(h, w))
        return [new, T.exp(new)], symcomp.until(new.sum() > 0.5)

    (a, b), _ = symcomp.scan(step, x, [h, None])
    rewritten([a, b, a[-1], *symcomp.grad((a**2).sum() + b.sum(), [x, w, h])])
    graph = rewritten([a[-1]])
    assert scans(graph)[0].op.layout.lags == ()


def test_zero_steps() -> None:
    y = rnn()
    rewritten([y, *symcomp.grad((y**2).sum(), [x, w, h])], {x: X[:0], w: W, h: H})


def test_nested() -> None:
    inner = lambda row, s: symcomp.scan(lambda e, t: T.tanh(e + t * w[0, 0]), row, s)[0][-1]  # noqa: E731
    y, _ = symcomp.scan(inner, x, h[0])
    graph = rewritten([y], fires="scan_rewrite_nested")
    (nested,) = (n for n in toposort(scans(graph)[0].op.body.outputs) if isinstance(n.op, Scan))
    assert nested.op.layout.lags == ()
    rewritten([y, *symcomp.grad((y**2).sum(), [x, w, h])])
