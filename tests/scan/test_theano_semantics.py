"""``scan`` and its variants as in Theano: forms of arguments and results, orders, taps.

Each test computes by hand, with NumPy, what the loop should give.
"""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import MissingInputError

V = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
M = np.arange(12.0).reshape(4, 3)
v, m = T.dvector("v"), T.dmatrix("m")


def run(outputs: Any, values: Any = (), updates: Any = None, inputs: Any = None) -> Any:
    """Evaluate a function of ``v``, or of other inputs."""
    inputs = [v][: len(values)] if inputs is None else inputs
    return symcomp.function(inputs, outputs, updates=updates, on_unused_input="ignore")(*values)


# -- results


def test_one_output_is_a_variable_and_several_are_a_list() -> None:
    one, updates = symcomp.scan(lambda x: 2 * x, v)
    assert isinstance(one, T.TensorVariable)
    assert isinstance(updates, symcomp.OrderedUpdates)
    assert len(updates) == 0
    for returned in (lambda x: [x, -x], lambda x: (x, -x)):
        two, _ = symcomp.scan(returned, v)
        assert isinstance(two, list)
        assert [y.ndim for y in two] == [1, 1]
    listed, _ = symcomp.scan(lambda x: [2 * x], v)
    assert isinstance(listed, T.TensorVariable)


def test_return_list() -> None:
    for function in (symcomp.scan, symcomp.map):
        outputs, _ = function(lambda x: 2 * x, v, return_list=True)
        assert isinstance(outputs, list)
        assert run(outputs, [V])[0].tolist() == (2 * V).tolist()
    for fold in (symcomp.reduce, symcomp.foldl, symcomp.foldr):
        outputs, _ = fold(lambda x, s: s + x, v, T.constant(0.0), return_list=True)
        assert isinstance(outputs, list)
        assert run(outputs, [V])[0] == V.sum()


def test_return_updates_false_gives_the_outputs_alone() -> None:
    doubled = symcomp.scan(lambda x: 2 * x, v, return_updates=False)
    assert run(doubled, [V]).tolist() == (2 * V).tolist()


def test_one_step_keeps_the_axis_of_steps() -> None:
    y, _ = symcomp.scan(lambda h: h * 3, outputs_info=v, n_steps=1)
    assert run(y, [V]).tolist() == [(3 * V).tolist()]
    assert y.ndim == 2


def test_initial_value_is_not_among_the_outputs() -> None:
    y, _ = symcomp.scan(lambda x, s: s + x, v, T.constant(100.0))
    assert run(y, [V[:3]]).tolist() == [101, 103, 107]


# -- orders


def test_arguments_are_sequences_then_outputs_then_non_sequences() -> None:
    seen: list[Any] = []

    def step(*given: Any) -> Any:
        seen.extend(given)
        a_next, a_past, b, y3, y1, z, c, d = given
        return [y3 + a_next - a_past, c * b + d, z + y1]

    a, b, c, d = T.dvector("a"), T.dvector("b"), T.dscalar("c"), T.dscalar("d")
    y0, z0 = T.dvector("y0"), T.dscalar("z0")
    outputs, _ = symcomp.scan(
        step,
        [{"input": a, "taps": [1, -1]}, b],
        [{"initial": y0, "taps": [-3, -1]}, None, z0],
        [c, d],
    )
    assert len(seen) == 8
    values = [V, M[:, 0], np.array([1.0, 2.0, 3.0]), 0.5, 10.0, 7.0]
    found = run(outputs, values, inputs=[a, b, y0, z0, c, d])
    y, z, w = [1.0, 2.0, 3.0], 0.5, []
    zs = []
    for t in range(4):
        before = y[-1]
        y.append(y[-3] + V[t + 2] - V[t])
        w.append(10.0 * M[t, 0] + 7)
        z = z + before
        zs.append(z)
    np.testing.assert_allclose(found[0], y[3:])
    np.testing.assert_allclose(found[1], w)
    np.testing.assert_allclose(found[2], zs)


def test_taps_come_in_the_order_given() -> None:
    y, _ = symcomp.scan(lambda a, b, c: a + 10 * b + 100 * c, {"input": v, "taps": [2, -1, 0]})
    wanted = [V[t + 2] + 10 * V[t - 1] + 100 * V[t] for t in range(1, len(V) - 2)]
    assert run(y, [V]).tolist() == wanted
    start = {"initial": T.constant([1.0, 2.0, 3.0]), "taps": [-1, -3]}
    y, _ = symcomp.scan(lambda near, far: near - 10 * far, None, start, n_steps=2)
    assert run(y).tolist() == [3 - 10, (3 - 10) - 20]


# -- taps of sequences


@pytest.mark.parametrize(
    ("taps", "rows"),
    [
        ([0], range(7)),
        ([1], range(1, 7)),  # row 0 is skipped, as if the tap 0 were read, too
        ([-1], range(6)),
        ([-2, 2], range(2, 5)),
        (3, range(3, 7)),
        (None, range(7)),
    ],
)
def test_rows_that_taps_read(taps: Any, rows: Any) -> None:
    single = not isinstance(taps, list) or len(taps) == 1
    y, _ = symcomp.scan(lambda *xs: xs[0] if single else xs[0] + 100 * xs[1],
                        {"input": v, "taps": taps})  # fmt: skip
    wanted = V[list(rows)] if single else [V[t - 2] + 100 * V[t + 2] for t in rows]
    assert run(y, [V]).tolist() == list(wanted)


def test_go_backwards_goes_from_the_last_row() -> None:
    y, _ = symcomp.scan(lambda x, s: 10 * s + x, v, T.constant(0.0), go_backwards=True)
    assert run(y, [np.array([1.0, 2.0, 3.0])]).tolist() == [3, 32, 321]


def test_go_backwards_with_taps_means_the_same_rows() -> None:
    """t+1 is behind t in the sequence whichever way the loop goes."""
    y, _ = symcomp.scan(
        lambda past, ahead: past + 100 * ahead, {"input": v, "taps": [-1, 1]}, go_backwards=True
    )
    assert run(y, [V]).tolist() == [V[t - 1] + 100 * V[t + 1] for t in range(5, 0, -1)]


def test_go_backwards_with_fewer_steps_reads_the_last_rows() -> None:
    y, _ = symcomp.scan(lambda x: x, v, n_steps=2, go_backwards=True)
    assert run(y, [V]).tolist() == [64, 32]


def test_taps_of_a_state_do_not_turn_with_go_backwards() -> None:
    y, _ = symcomp.scan(
        lambda x, a, b: x + 10 * a + 100 * b,
        v,
        {"initial": T.constant([5.0, 7.0]), "taps": [-2, -1]},
        go_backwards=True,
    )
    rows = [5.0, 7.0]
    for x in V[::-1][:3]:
        rows.append(x + 10 * rows[-2] + 100 * rows[-1])
    assert run(y[:3], [V]).tolist() == rows[2:]


# -- the number of steps


def test_the_shortest_sequence_counts() -> None:
    w = T.dvector("w")
    y, _ = symcomp.scan(lambda a, b: a + b, [v, w])
    assert run(y, [V, V[:3]], inputs=[v, w]).tolist() == [2, 4, 8]
    assert run(y, [V[:2], V], inputs=[v, w]).tolist() == [2, 4]
    # With taps, by the rows that are left.
    y, _ = symcomp.scan(lambda a, b: a + b, [{"input": v, "taps": [-2]}, w])
    assert len(run(y, [V, V], inputs=[v, w])) == 5


def test_fewer_steps_than_rows() -> None:
    n = T.iscalar("n")
    y, _ = symcomp.scan(lambda x, s: s + x, v, T.constant(0.0), n_steps=n)
    assert [run(y, [V, k], inputs=[v, n]).tolist() for k in (0, 1, 3)] == [[], [1], [1, 3, 7]]


def test_steps_of_all_integer_types() -> None:
    for n in (3, np.int8(3), np.uint16(3), np.array(3), T.constant(3, dtype="uint8")):
        y, _ = symcomp.scan(lambda s: 2 * s, outputs_info=T.constant(1.0), n_steps=n)
        assert run(y).tolist() == [2, 4, 8]


# -- outputs_info


@pytest.mark.parametrize("nothing", [None, {}, {"initial": None}, {"initial": None, "taps": None}])
def test_outputs_that_no_step_reads(nothing: Any) -> None:
    y, _ = symcomp.scan(lambda x: 3 * x, v, [nothing])
    assert run(y, [V]).tolist() == (3 * V).tolist()


def test_outputs_info_of_one_output_need_not_be_a_list() -> None:
    one = T.constant(1.0)
    dicts = [{"initial": 1.0}, {"initial": one, "taps": [-1]}, {"initial": 1.0, "taps": -1}]
    infos: list[Any] = [one, [one], (one,), 1.0, *dicts]
    for info in infos:
        y, _ = symcomp.scan(lambda s: 2 * s, outputs_info=info, n_steps=3)
        assert run(y).tolist() == [2, 4, 8]


def test_a_tap_of_two_steps_interleaves() -> None:
    info = {"initial": T.constant([1.0, 10.0]), "taps": [-2]}
    y, _ = symcomp.scan(lambda s: 2 * s, outputs_info=info, n_steps=5)
    assert run(y).tolist() == [2, 20, 4, 40, 8]


def test_longer_initial_values_than_the_taps_need() -> None:
    """The first rows are taken."""
    info = {"initial": T.constant([1.0, 10.0, 100.0]), "taps": [-2]}
    y, _ = symcomp.scan(lambda s: 2 * s, outputs_info=info, n_steps=2)
    assert run(y).tolist() == [2, 20]


def test_what_a_step_gives_is_cast_up() -> None:
    """Results of a step are cast up to the dtype of the initial value."""
    y, _ = symcomp.scan(lambda x, s: T.cast(s + x, "float32"), v, T.constant(0.0, dtype="float64"))
    assert y.dtype == "float64"
    y, _ = symcomp.scan(lambda s: T.constant(True), None, T.constant(2), n_steps=2)
    assert (y.dtype, run(y).tolist()) == ("int64", [1, 1])


# -- results of a step


def test_updates_and_outputs_in_any_order() -> None:
    s = symcomp.shared(0.0, name="s")
    pairs = [(s, s + v.sum())]
    for updates in (dict(pairs), pairs, symcomp.OrderedUpdates(pairs)):
        for returned in (
            (3 * v, updates),
            (updates, 3 * v),
            ([3 * v], updates),
            (updates, [3 * v]),
        ):
            y, found = symcomp.scan(lambda returned=returned: returned, n_steps=2)
            s.set_value(0.0)
            assert run(y, [V], found).tolist() == [(3 * V).tolist()] * 2
            assert s.get_value() == 2 * V.sum()


def test_condition_in_any_form() -> None:
    s = symcomp.shared(0, name="s")
    stop = symcomp.until
    forms: list[Any] = [
        lambda x: (x, stop(x > 3)),
        lambda x: ([x], stop(x > 3)),
        lambda x: (x, {s: s + 1}, stop(x > 3)),
        lambda x: ([x], {s: s + 1}, stop(x > 3)),
        lambda x: ({s: s + 1}, x, stop(x > 3)),
        lambda x: [x, stop(x > 3)],
    ]
    for form in forms:
        y, updates = symcomp.scan(form, v)
        assert run(y, [V], updates).tolist() == [1, 2, 4]


def test_condition_is_looked_at_after_the_step() -> None:
    y, _ = symcomp.scan(lambda s: (s + 1, symcomp.until(True)), None, T.constant(0), n_steps=5)
    assert run(y).tolist() == [1]
    y, _ = symcomp.scan(lambda s: (s + 1, symcomp.until(False)), None, T.constant(0), n_steps=5)
    assert run(y).tolist() == [1, 2, 3, 4, 5]
    y, _ = symcomp.scan(lambda s: (s + 1, symcomp.until(True)), None, T.constant(0), n_steps=0)
    assert run(y).tolist() == []


def test_updates_of_several_scans_merge() -> None:
    a, b = symcomp.shared(0.0, name="a"), symcomp.shared(0.0, name="b")
    _, first = symcomp.scan(lambda x: {a: a + x}, v)
    _, second = symcomp.scan(lambda x: {b: b + 2 * x}, v)
    run([], [V], first + second)
    assert (a.get_value(), b.get_value()) == (V.sum(), 2 * V.sum())
    _, again = symcomp.scan(lambda x: {a: a - x}, v)
    with pytest.raises(KeyError, match="a has two different new values"):
        first.update(again)


def test_updates_of_loops_in_loops() -> None:
    count = symcomp.shared(0, name="count")

    def outer(row: Any) -> Any:
        total, updates = symcomp.scan(lambda x: (x + count, {count: count + 1}), row)
        return total, updates

    y, updates = symcomp.scan(outer, m)
    found = run(y, [M], updates, [m])
    np.testing.assert_array_equal(found, M + np.arange(12).reshape(4, 3))
    assert count.get_value() == 12


def test_a_step_reads_a_shared_variable_before_its_update() -> None:
    s = symcomp.shared(1.0, name="s")
    y, updates = symcomp.scan(lambda: (s, {s: 2 * s}), n_steps=4)
    assert run(y, updates=updates).tolist() == [1, 2, 4, 8]
    assert s.get_value() == 16


# -- non_sequences and strict


def test_non_sequences_may_be_numbers_arrays_and_shared() -> None:
    w = symcomp.shared(M[:3, :3], name="w")
    y, _ = symcomp.scan(lambda x, w, k, a: T.dot(x, w) * k + a, m, non_sequences=[w, 3, np.ones(3)])
    np.testing.assert_allclose(run(y, [M], inputs=[m]), M @ M[:3] * 3 + 1)


def test_strict_asks_for_shared_variables() -> None:
    w, k = symcomp.shared(2.0, name="w"), symcomp.shared(3.0, name="k")
    with pytest.raises(MissingInputError, match=r"uses k .*not among the non_sequences"):
        symcomp.scan(lambda x, w: x * w + k, v, non_sequences=w, strict=True)
    y, _ = symcomp.scan(lambda x, w, k: x * w + k, v, non_sequences=[w, k], strict=True)
    assert run(y, [V]).tolist() == (V * 2 + 3).tolist()
    # The shared variable itself, given as an argument, may be updated.
    y, updates = symcomp.scan(lambda x, k: (x, {k: k + x}), v, non_sequences=k, strict=True)
    run(y, [V], updates)
    assert k.get_value() == 3 + V.sum()


def test_strict_allows_what_is_made_of_non_sequences_and_constants() -> None:
    k = T.dscalar("k")
    y, _ = symcomp.scan(lambda x, k: x * T.exp(k) + 1, v, non_sequences=k, strict=True)
    np.testing.assert_allclose(run(y, [V, 0.5], inputs=[v, k]), V * np.exp(0.5) + 1)


# -- map, reduce, foldl, foldr


def test_map_takes_rows_then_non_sequences() -> None:
    y, _ = symcomp.map(lambda a, b, c: a - 10 * b + c, [v, v * 2], T.constant(1000.0))
    assert run(y, [V]).tolist() == (V - 20 * V + 1000).tolist()
    (y, z), _ = symcomp.map(lambda a: [a, -a], v, go_backwards=True)
    assert [found.tolist() for found in run([y, z], [V])] == [V[::-1].tolist(), (-V[::-1]).tolist()]


def test_folds_take_rows_then_states_then_non_sequences() -> None:
    step = lambda x, s, k: k * s + x  # noqa: E731
    digits = np.array([1.0, 2.0, 3.0])
    ten = T.constant(10.0)
    for fold, wanted in ((symcomp.foldl, 123), (symcomp.foldr, 321), (symcomp.reduce, 123)):
        y, _ = fold(step, v, T.constant(0.0), ten)
        assert y.ndim == 0
        assert run(y, [digits]) == wanted


def test_reduce_of_several_states() -> None:
    (low, high), _ = symcomp.reduce(
        lambda x, low, high: [T.minimum(x, low), T.maximum(x, high)],
        v,
        [T.constant(np.inf), T.constant(-np.inf)],
    )
    assert [float(y) for y in run([low, high], [V])] == [1, 64]


# -- the loops of the tutorials


def test_power_by_repeated_products() -> None:
    k = T.iscalar("k")
    y, updates = symcomp.scan(
        lambda prior, a: prior * a, outputs_info=T.ones_like(v), non_sequences=v, n_steps=k
    )
    np.testing.assert_allclose(run(y[-1], [V, 3], updates, [v, k]), V**3)


def test_sums_by_an_index() -> None:
    limit = T.iscalar("limit")
    numbers = T.arange(limit)
    start = T.as_tensor_variable(np.asarray(0, numbers.dtype))
    y, _ = symcomp.scan(lambda a, s: s + a, numbers, start)
    assert run(y, [5], inputs=[limit]).tolist() == [0, 1, 3, 6, 10]


def test_writes_at_locations() -> None:
    where, what = T.imatrix("where"), T.dvector("what")

    def set_at(location: Any, value: Any, model: Any) -> Any:
        return T.set_subtensor(T.zeros_like(model)[location[0], location[1]], value)

    y, _ = symcomp.scan(set_at, [where, what], None, m)
    places, values = np.array([[1, 1], [2, 0]], np.int32), np.array([42.0, 50.0])
    wanted = np.zeros((2, 4, 3))
    wanted[0, 1, 1], wanted[1, 2, 0] = 42, 50
    np.testing.assert_array_equal(run(y, [places, values, M], inputs=[where, what, m]), wanted)


def test_jacobian_and_hessian_by_scan() -> None:
    y = v**2 * v.sum()
    rows, _ = symcomp.scan(
        lambda i, y, v: symcomp.grad(y[i], v), T.arange(y.shape[0]), non_sequences=[y, v]
    )
    at = np.array([1.0, 2.0, 3.0])
    wanted = np.diag(2 * at * at.sum()) + np.outer(at**2, np.ones(3))
    np.testing.assert_allclose(run(rows, [at]), wanted)
    slope = symcomp.grad(y.sum(), v)
    rows, _ = symcomp.scan(
        lambda i, g, v: symcomp.grad(g[i], v), T.arange(slope.shape[0]), non_sequences=[slope, v]
    )
    wanted = np.diag(np.full(3, 2 * at.sum())) + 2 * at[:, None] + 2 * at[None]
    np.testing.assert_allclose(run(rows, [at]), wanted)


def test_recurrence_with_taps_of_everything() -> None:
    """x[t] = tanh(x[t-1] W1 + u[t] W2 + u[t-4] W3 + y[t-1] W4);  y[t] = x[t-3] W5."""
    rng = np.random.default_rng(0)
    u, x0, y0 = T.dmatrix("u"), T.dmatrix("x0"), T.dvector("y0")
    w1, w2, w3, w4, w5 = (T.dmatrix(f"w{k}") for k in range(1, 6))

    def step(u4: Any, u0: Any, x3: Any, x1: Any, y1: Any, *ws: Any) -> Any:
        a, b, c, d, e = ws
        new = T.tanh(T.dot(x1, a) + T.dot(u0, b) + T.dot(u4, c) + T.dot(y1, d))
        return [new, T.dot(x3, e)]

    (xs, ys), _ = symcomp.scan(
        step,
        {"input": u, "taps": [-4, 0]},
        [{"initial": x0, "taps": [-3, -1]}, y0],
        [w1, w2, w3, w4, w5],
        strict=True,
    )
    shapes = [(9, 2), (3, 3), (2,), (3, 3), (2, 3), (2, 3), (2, 3), (3, 2)]
    values = [rng.normal(size=s) for s in shapes]
    found = run([xs, ys], values, inputs=[u, x0, y0, w1, w2, w3, w4, w5])
    us, x, y, a, b, c, d, e = values
    rows, outs = list(x), [y]
    for t in range(4, 9):
        new = np.tanh(rows[-1] @ a + us[t] @ b + us[t - 4] @ c + outs[-1] @ d)
        outs.append(rows[-3] @ e)
        rows.append(new)
    np.testing.assert_allclose(found[0], rows[3:])
    np.testing.assert_allclose(found[1], outs[1:])
