"""``scan`` and its kin: what they give, and what they say of bad input."""

import pickle
import re
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.walk import ancestors, toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ifelse import ifelse
from symcomp.scan.op import Scan
from symcomp.tests.harness import ALL_DTYPES, check, infer_shapes


def value(y: Any, values: Any = None) -> Any:
    return evaluate([y], values or {})[0]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype(dtype: str) -> None:
    values = np.array([[1, 0], [1, 1], [0, 1]]).astype(dtype)
    start = np.array([1, 1]).astype(dtype)

    def build(x: Any, h: Any) -> Any:
        return symcomp.scan(lambda x, h: T.maximum(x, h) if dtype[0] != "c" else x * h, x, h)[0]

    def by_hand(x: Any, h: Any) -> Any:
        rows = []
        for row in x:
            h = np.maximum(row, h) if dtype[0] != "c" else row * h
            rows.append(h)
        return np.array(rows)

    check(build, values, start, expected=by_hand, grad=False)


def test_arguments_come_in_order() -> None:
    names = []

    def step(*given: Any) -> Any:
        names.extend(x.name for x in given)
        return given[-1] + 0.0, given[3] * 1.0

    x, y, h, c = T.dvector("x"), T.dvector("y"), T.dvector("h"), T.dscalar("c")
    sequences = [{"input": x, "taps": [1, -1]}, y]
    symcomp.scan(step, sequences, [{"initial": h, "taps": [-2, -1]}, None], c)
    assert names == ["x[t+1]", "x[t-1]", "y[t]", "h[t-2]", "h[t-1]", "c"]


def test_views_as_arguments() -> None:
    x = np.arange(24.0).reshape(4, 6)[::-2, ::3]
    cumulative = lambda x: symcomp.scan(lambda x, s: x + s, x, T.zeros(2))[0]  # noqa: E731
    check(cumulative, x, expected=lambda x: np.cumsum(x, axis=0))


def test_nan_and_infinity_pass() -> None:
    x = np.array([1.0, np.inf, -np.inf, 2.0])
    total = lambda x: symcomp.scan(lambda x, s: x + s, x, T.constant(0.0))[0]  # noqa: E731
    check(total, x, expected=np.array([1, np.inf, np.nan, np.nan]), grad=False)


def test_zero_steps() -> None:
    x = T.dmatrix("x")
    (state, row, fixed), _ = symcomp.scan(
        lambda x, h: [h + x.sum(), T.concatenate([x, x]), T.zeros(4)], x, [T.constant(0.0), None,
                                                                          None],
    )  # fmt: skip
    shapes = [value(y, {x: np.ones((0, 3))}).shape for y in (state, row, fixed)]
    assert shapes == [(0,), (0, 6), (0, 4)]
    assert infer_shapes([row], {x: np.ones((0, 3))}) == [(0, 6)]


def test_zero_steps_of_branches() -> None:
    """A length that a condition seems to decide, as both branches have it."""
    x, w = T.dmatrix("x"), T.dmatrix("w")
    y, _ = symcomp.scan(lambda x: ifelse(x.sum() > 0, T.dot(x, w), x), x)
    f = symcomp.function([x, w], [y, symcomp.grad(y.sum(), x)])
    for found in f(np.ones((0, 3)), np.eye(3)):
        assert found.shape == (0, 3)


def test_rows_of_unknown_length() -> None:
    """A length that only values tell: found by running, and 0 if no step ran."""
    k = T.lvector("k")
    rows, _ = symcomp.scan(lambda k: T.arange(k), k)
    assert value(rows, {k: np.array([3, 3])}).tolist() == [[0, 1, 2]] * 2
    assert infer_shapes([rows], {k: np.array([3, 3])}) == [(2, 3)]
    assert value(rows, {k: np.array([], np.int64)}).shape == (0, 0)
    with pytest.raises(ShapeError, match=r"shape \(2,\) in this step, and had \(3,\) before"):
        value(rows, {k: np.array([3, 2])})


def test_sequence_longer_than_the_steps() -> None:
    x = T.dvector("x")
    y, _ = symcomp.scan(lambda x: 2 * x, x, n_steps=2)
    assert value(y, {x: np.arange(5.0)}).tolist() == [0, 2]
    back, _ = symcomp.scan(lambda x: 2 * x, x, n_steps=2, go_backwards=True)
    assert value(back, {x: np.arange(5.0)}).tolist() == [8, 6]


def test_shared_variables_are_found_and_updated() -> None:
    total = symcomp.shared(0.0, name="total")
    scale = symcomp.shared(3.0, name="scale")
    x = T.dvector("x")
    y, updates = symcomp.scan(lambda x: (scale * x + total, {total: total + x}), x)
    f = symcomp.function([x], y, updates=updates)
    assert f([1, 2, 3]).tolist() == [3, 7, 12]
    assert f([1]).tolist() == [9]
    assert total.get_value() == 7
    assert isinstance(updates, symcomp.OrderedUpdates)


def test_default_updates_happen_in_each_step() -> None:
    """How random streams work: a state that updates itself whenever it is used."""
    state = symcomp.shared(1, name="state")
    state.default_update = (state * 75 + 74) % 65537
    draws, updates = symcomp.scan(lambda: state % 100, n_steps=4)
    f = symcomp.function([], draws, updates=updates)
    wanted, seed = [], 1
    for _ in range(8):
        wanted.append(seed % 100)
        seed = (seed * 75 + 74) % 65537
    assert [*f(), *f()] == wanted


def test_updates_alone() -> None:
    count = symcomp.shared(0, name="count")
    outputs, updates = symcomp.scan(lambda: {count: count + 2}, n_steps=5)
    assert outputs is None
    symcomp.function([], [], updates=updates)()
    assert count.get_value() == 10


def test_forms_of_what_a_step_returns() -> None:
    s = symcomp.shared(0.0, name="s")
    stop = symcomp.until(T.constant(True))
    forms = [
        (lambda x: x, 1, 0, False),
        (lambda x: [x, x], 2, 0, False),
        (lambda x: (x, [(s, x)]), 1, 1, False),
        (lambda x: ([x, x], {s: x}, stop), 2, 1, True),
        (lambda x: ({s: x}, stop), 0, 1, True),
        (lambda x: (x, stop), 1, 0, True),
        (lambda x: [(s, x)], 0, 1, False),
    ]
    for step, n_outputs, n_updates, until in forms:
        outputs, updates = symcomp.scan(step, T.dvector("x"), return_list=True)
        assert (len(outputs), len(updates)) == (n_outputs, n_updates)
        nodes = toposort([*outputs, *updates.values()])
        assert until == any(n.op.layout.until for n in nodes if isinstance(n.op, Scan)) or not nodes


def test_until_stops_after_the_step() -> None:
    n, _ = symcomp.scan(
        lambda n: (T.switch(T.eq(n % 2, 0), n // 2, 3 * n + 1), symcomp.until(T.eq(n, 4))),
        None,
        T.constant(27),
        n_steps=1000,
    )
    assert len(value(n)) == 110
    assert value(n)[-1] == 2
    assert infer_shapes([n], {}) == [(110,)]


def test_what_does_not_change_is_computed_once() -> None:
    w, x = T.dmatrix("w"), T.dmatrix("x")
    y, _ = symcomp.scan(lambda x: T.dot(x, T.exp(w)), x)
    (node,) = [n for n in toposort([y]) if isinstance(n.op, Scan)]
    assert [str(n.op) for n in toposort(node.op.body.outputs)] == ["Dot"]


def test_branches_stay_lazy() -> None:
    """Nodes that only a branch needs are not computed around the loop: they may fail, or be
    expensive.
    """
    x, w = T.dvector("x"), T.dvector("w")
    checked = T.assert_op(w, T.eq(w.shape[0], 0))
    y, _ = symcomp.scan(lambda x: ifelse(x > 100, checked.sum(), x), x)
    f = symcomp.function([x, w], y)
    assert f([1.0, 2.0], [3.0]).tolist() == [1, 2]
    with pytest.raises(AssertionError):
        f([1.0, 200.0], [3.0])


def test_equal_scans_are_equal_ops() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    a, b = (symcomp.scan(lambda r: r * 2, v, name=str(v))[0].owner.op for v in (x, y))
    assert a == b
    assert hash(a) == hash(b)
    f = symcomp.function([x], [symcomp.scan(lambda r: r * 2, x)[0] for _ in range(2)])
    assert f.maker.fgraph.outputs[0] is f.maker.fgraph.outputs[1]


def test_pickling() -> None:
    x = T.dvector("x")
    y, _ = symcomp.scan(lambda x, s: s + x, x, T.constant(0.0))
    f = symcomp.function([x], y)
    assert f([1.0, 2.0]).tolist() == [1, 3]
    assert pickle.loads(pickle.dumps(f))([1.0, 2.0]).tolist() == [1, 3]
    op = next(n.op for n in toposort([y]) if isinstance(n.op, Scan))
    assert pickle.loads(pickle.dumps(op)) == op


def test_body_is_rewritten() -> None:
    x = T.dvector("x")

    def step(x, s):
        return T.log(1 + T.exp(x * s))

    y, _ = symcomp.scan(step, x, T.constant(1.0))
    ((body,),) = symcomp.function([x], y).executable.bodies.values()
    assert "softplus" in body.program.listing()
    plain, _ = symcomp.scan(step, x, T.constant(1.0), mode="FAST_COMPILE")
    assert value(y, {x: np.array([0.5])}) == pytest.approx(value(plain, {x: np.array([0.5])}))


@pytest.mark.parametrize("linker", ["vm", "cvm"])
def test_both_machines_run_bodies(linker: str) -> None:
    x, w = T.dmatrix("x"), T.dmatrix("w")
    with symcomp.config.change_flags(linker=linker):
        y, _ = symcomp.scan(lambda x, h: T.tanh(x + T.dot(h, w)), x, T.zeros(3))
        f = symcomp.function([x, w], [y, symcomp.grad(y.sum(), w)])
        rows, slope = f(np.ones((4, 3)), np.eye(3))
    h, wanted = np.zeros(3), []
    for _ in range(4):
        h = np.tanh(1 + h)
        wanted.append(h)
    np.testing.assert_allclose(rows, wanted)
    assert slope.shape == (3, 3)


def test_map_and_folds() -> None:
    x = T.dvector("x")
    given = {x: np.array([1.0, 2.0, 3.0])}
    assert value(symcomp.map(lambda x, c: x * c, x, T.constant(2.0))[0], given).tolist() == [
        2,
        4,
        6,
    ]
    digits = lambda x, s: 10 * s + x  # noqa: E731
    assert value(symcomp.foldl(digits, x, T.constant(0.0))[0], given) == 123
    assert value(symcomp.foldr(digits, x, T.constant(0.0))[0], given) == 321
    assert value(symcomp.reduce(digits, x, T.constant(0.0), go_backwards=True)[0], given) == 321
    totals, _ = symcomp.reduce(
        lambda x, s, p: [s + x, p * x], x, [T.constant(0.0), T.constant(1.0)]
    )
    assert [value(t, given) for t in totals] == [6, 6]


@pytest.mark.parametrize("steps", [1, 4, 6, 7])
def test_checkpoints(steps: int) -> None:
    x = np.linspace(0, 1, steps)
    whole = symcomp.scan(lambda x, h: T.sin(h) + x, T.as_tensor_variable(x), T.constant(0.0))[0]
    for every in (1, 3, 10):
        y, _ = symcomp.scan_checkpoints(
            lambda x, h: T.sin(h) + x,
            T.as_tensor_variable(x),
            T.constant(0.0),
            save_every_N=every,
        )
        np.testing.assert_array_equal(value(y), value(whole)[-1:])


def test_checkpoints_without_padding() -> None:
    x = T.dvector("x")
    y, _ = symcomp.scan_checkpoints(
        lambda x, h: h + x, x, T.constant(0.0), save_every_N=2, padding=False
    )
    assert value(y, {x: np.ones(4)}).tolist() == [4]
    with pytest.raises(AssertionError, match="no multiple of 2"):
        value(y, {x: np.ones(5)})


# -- bad input


def scanning(*args: Any, **options: Any) -> Any:
    return lambda: symcomp.scan(*args, **options)


X, H = T.dmatrix("x"), T.dvector("h")
BAD = [
    (scanning(lambda x, h: x.sum() + T.zeros((2, 2)), X, H), ShapeError,
     r"output 0 \(h\) is float64 tensor \(2, 2\) as the step returns it, made at .*test_scan.*"
     "float64 vector as it starts"),
    (scanning(lambda h: h + 0.5, None, T.lvector("h"), n_steps=3), DTypeError,
     r"output 0 \(h\) is float64 vector .*int64 vector as it starts: cast the initial value with "
     r"T.cast\(initial, 'float64'\), or what the step returns with T.cast\(\.\.\., 'int64'\)"),
    (scanning(lambda h: T.zeros(4), None, T.zeros(3), n_steps=3), ShapeError,
     "lengths of axis 0 differ"),
    (scanning(lambda x: [x, x], X, [None]), ValueError,
     "returned 2 outputs; outputs_info describes 1"),
    (scanning(lambda x, a, b: a, X, {"initial": T.zeros((1, 3)), "taps": [-2, -1]}), ShapeError,
     r"output 0: the initial value is float64 tensor \(1, 3\); the taps \[-2, -1\] need 2 rows"),
    (scanning(lambda x, h: h, X, {"initial": H, "taps": [0]}), ValueError, "past steps alone"),
    (scanning(lambda x, y: x, [T.zeros(3), T.zeros(4)]), ShapeError,
     "different numbers of steps .sequence 0: 3, sequence 1: 4"),
    (scanning(lambda x: x, T.zeros(3), n_steps=4), ShapeError,
     "sequence 0 has rows for 3 steps, fewer than n_steps=4"),
    (scanning(lambda: T.constant(1)), ValueError, "n_steps is missing"),
    (scanning(lambda x: x, X, n_steps=-1), ValueError, "n_steps is -1; it must not be negative"),
    (scanning(lambda x: x, X, n_steps=2.0), DTypeError, "n_steps is 2.0; it must be an integer"),
    (scanning(lambda x: x, X, n_steps=T.dscalar("n")), DTypeError, "must be an integer scalar"),
    (scanning(lambda x: "x", X), TypeError, "output 0 of the step is 'x'"),
    (scanning(lambda x: x, T.dscalar("s")), ShapeError, r"sequence 0 \(s\) is a float64 scalar"),
    (scanning(lambda x: x, {"input": T.zeros(2), "taps": [-2, 2]}), ShapeError,
     "has length 2, but its taps .* reach over 5 rows"),
    (scanning(lambda x: x, {"inputs": X}), ValueError, "has the key 'inputs'"),
    (scanning(lambda x: x, X, {"taps": [-2]}), ValueError, "taps .-2. but no initial value"),
    (scanning(lambda x: x, X, truncate_gradient=0), ValueError, "truncate_gradient is 0"),
    (scanning(lambda x: x, X, mode="SLOW"), ValueError, "mode 'SLOW' is no Mode"),
    (scanning(lambda x: (x, {X: x}), X), TypeError, "updates x, no shared variable"),
    (scanning(lambda x: (x, symcomp.until(x > 0)), X), ShapeError, "must be a scalar"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "error", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_told_when_building(build: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}") as caught:
        build()
    (note,) = caught.value.__notes__
    place = r".*test_scan\.py:\d+"
    assert re.match(
        rf"The loop was made at {place} in <lambda>, its step <lambda> at {place}", note
    )


def test_errors_of_a_step_tell_the_loop() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        symcomp.map(lambda x: symcomp.map(lambda x: 1 / 0, x)[0], X)
    assert len(caught.value.__notes__) == 2
    with pytest.raises(TypeError) as caught:
        symcomp.loop(lambda carry, x: 3, 0.0, X)
    assert "test_errors_of_a_step_tell_the_loop" in caught.value.__notes__[0]


def test_name_is_in_messages() -> None:
    with pytest.raises(ValueError, match=r"^encoder: n_steps is missing"):
        symcomp.scan(lambda: 1, name="encoder")


def test_too_short_sequence_is_told_when_running() -> None:
    x, y, n = T.dvector("x"), T.dvector("y"), T.lscalar("n")
    z, _ = symcomp.scan(lambda x, y: x + y, [x, y], n_steps=n)
    f = symcomp.function([x, y, n], z)
    with pytest.raises(ShapeError, match=r"read as y\[t\] has length 2 .* but 3 steps need 3"):
        f([1, 2, 3], [1, 2], 3)
    with pytest.raises(ValueError, match=r"number of steps is -2"):
        f([1, 2, 3], [1, 2], -2)


def test_state_whose_shape_turns_out_to_change_is_named() -> None:
    h, a = T.dvector("h"), T.dvector("a")
    y, _ = symcomp.scan(lambda h, a: T.concatenate([h, a]), None, h, a, n_steps=2, name="grow")
    with pytest.raises(ShapeError, match=r"state h\[t-1\] has shape \(3,\) .* had \(2,\)"):
        symcomp.function([h, a], y)([1.0, 2.0], [3.0])


def test_too_short_initial_value_is_told_when_running() -> None:
    h = T.dvector("h")
    z, _ = symcomp.scan(lambda a, b: a + b, None, {"initial": h, "taps": [-3, -1]}, n_steps=2)
    with pytest.raises(ShapeError, match=r"state h\[t-3\] starts from 2 rows .* taps need 3"):
        value(z, {h: np.ones(2)})


def test_error_in_a_step_tells_the_step_and_the_line() -> None:
    x = T.lvector("x")
    z, _ = symcomp.scan(lambda x, s: T.arange(5)[x + 0 * s], x, T.constant(0))
    f = symcomp.function([x], z)
    with pytest.raises(IndexError) as caught:
        f([1, 2, 7])
    notes = "\n".join(caught.value.__notes__)
    assert "This was in step 2 (of at most 3)" in notes
    assert "test_scan.py" in notes


def test_an_empty_list_of_updates():
    doubled, updates = symcomp.scan(
        lambda x: ([x * 2], (), symcomp.until(x > 10)), outputs_info=[T.constant(1.0)], n_steps=9
    )
    assert doubled.eval().tolist() == [2, 4, 8, 16, 32]
    assert not updates


def test_the_step_can_be_looked_at() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")

    def step(row: Any, state: Any) -> Any:
        z = T.neg(T.neg(row))
        z.name, z.tag.role = "inside", "hidden"
        return z + state

    y, _ = symcomp.scan(step, x, h)
    whole = y.owner.inputs[0]
    op = whole.owner.op
    assert symcomp.function([x, h], whole.shape)(np.ones((3, 2)), np.ones(2)).tolist() == [4, 2]
    assert [str(v) for v in op.inputs] == ["h[t-1]", "x[t]"] and len(op.outputs) == 1
    (inside,) = [v for v in ancestors(op.outputs) if v.name == "inside"]
    assert inside.tag.role == "hidden"
    np.testing.assert_allclose(op.fn([1.0, 2.0], [0.0, 1.0])[0], [1.0, 3.0])
    assert [str(node.op) for node in op.fn.maker.fgraph.toposort()] == ["add"]
    with pytest.raises(TypeError, match="a step takes 2 values, got 1"):
        op.fn([1.0])
