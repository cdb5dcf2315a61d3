"""Programs with loops on devices: training without transfers, derivatives, random loops."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.region import DeviceGraph
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    assert_close,
    check,
    check_loops,
    compile_both,
    loops,
    ops_on_host,
)

on_emu = config.change_flags(device=DEVICE)


def lstm(x: Any, params: Any, size: int) -> Any:
    """Return the states of an LSTM."""
    w, u, b = params

    def step(row: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        z = T.dot(row, w) + T.dot(h, u) + b
        i, f, o, g = (z[:, k * size : (k + 1) * size] for k in range(4))
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return T.nnet.sigmoid(o) * T.tanh(c), c

    start = T.zeros((x.shape[1], size), "float32")
    (hs, _), _ = symcomp.scan(step, x, [start, start], [w, u, b])
    return hs


def gru(x: Any, params: Any, size: int) -> Any:
    """Return the states of a GRU."""
    w, u, b = params

    def step(row: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
        a, r = T.dot(row, w) + b, T.dot(h, u)
        z, q = (
            T.nnet.sigmoid(a[:, k * size : (k + 1) * size] + r[:, k * size : (k + 1) * size])
            for k in range(2)
        )
        new = T.tanh(a[:, 2 * size : 3 * size] + q * r[:, 2 * size : 3 * size])
        return z * h + (1 - z) * new

    hs, _ = symcomp.scan(step, x, T.zeros((x.shape[1], size), "float32"), [w, u, b])
    return hs


@pytest.mark.parametrize("network", [lstm, gru])
@pytest.mark.parametrize("loss_of", ["last", "all"])
def test_training_is_one_region(emu: Emulator, network: Any, loss_of: str) -> None:
    size, inputs = 4, 3
    start = [array(inputs, 4 * size), array(size, 4 * size), array(4 * size), array(size, 2)]

    def training() -> tuple[Any, Any]:
        params = [symcomp.shared(p) for p in start]
        x, y = T.ftensor3("x"), T.ivector("y")
        hs = network(x, params[:3], size)
        scores = T.dot(hs[-1] if loss_of == "last" else hs.mean(axis=0), params[3])
        loss = T.nnet.categorical_crossentropy(T.nnet.softmax(scores), y).mean()
        grads = symcomp.grad(loss, params)
        updates = [(p, p - np.float32(0.1) * g) for p, g in zip(params, grads, strict=True)]
        return symcomp.function([x, y], to_gpu(loss, DEVICE), updates=updates), params

    plain, wanted = training()
    with on_emu:
        f, params = training()
    nodes = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    assert len(nodes) == 1 and len(loops(f)) == 2
    batch = array(6, 5, inputs), np.random.default_rng(1).integers(0, 2, 5).astype("int32")
    f(*batch)
    plain(*batch)
    emu.wait()
    emu.counters.clear()
    losses = [f(*batch) for _ in range(4)]
    assert (emu.counters.waits, emu.counters.to_host) == (0, 0)
    assert emu.counters.to_device == 4 * sum(v.nbytes for v in batch)
    before = [plain(*batch) for _ in range(4)]
    assert_close(losses[-1].get(), np.asarray(before[-1]), 256)
    for p, q in zip(params, wanted, strict=True):
        assert_close(p.get_value(), q.get_value(), 1024)
    (program,) = [n.op.program for n in nodes]
    assert (program.made, program.repeated) == (1, 4)
    assert "loop" in str(program.plans[0].plan)


def rnn(x: Any) -> Any:
    """Return the states of a small loop over rows of three numbers."""
    return symcomp.scan(lambda row, h: T.tanh(h + row), x, T.zeros(3, "float32"))[0]


PROGRAMS: dict[str, Any] = {
    "steps from the device": lambda x, c: symcomp.scan(
        lambda h: T.tanh(h * 2), outputs_info=[x[0]], n_steps=T.cast(T.exp(x).min() * 9, "int64")
    )[0],
    "branch": lambda x, c: ifelse(c, rnn(x), rnn(x * 2)[:, ::-1]),
    "part known in a call": lambda x, c: rnn(x)[c],
    "last rows": lambda x, c: rnn(x)[-3:].mean(axis=0),
    "first rows": lambda x, c: rnn(x)[:2] * 2,
    "middle rows": lambda x, c: rnn(x)[2:-1:2],
    "one behind another": lambda x, c: rnn(rnn(x)) + rnn(x[::-1]),
    "jacobian": lambda x, c: symcomp.gradient.jacobian(rnn(x)[-1], x),
    "second derivative": lambda x, c: symcomp.grad(symcomp.grad(rnn(x).sum(), x).sum(), x),
    "reduce": lambda x, c: symcomp.reduce(lambda r, a: a * r + 1, x, T.ones(3, "float32"))[0],
    "foldr": lambda x, c: symcomp.foldr(lambda r, a: T.sin(a * r), x, T.ones(3, "float32"))[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(emu: Emulator, name: str) -> None:
    x, c = T.fmatrix("x"), T.lscalar("c")
    outputs = PROGRAMS[name](x, c)
    plain, f = compile_both([x, c], outputs, on_unused_input="ignore")
    assert loops(f) and not any(n.startswith("scan") for n in ops_on_host(f))
    value = array(6, 3)
    for number in (0, 1):
        assert_close(f(value, number), plain(value, number), 256)


def test_updates_in_steps(emu: Emulator) -> None:
    x, value = T.fmatrix("x"), array(5, 3)
    found = []
    for device in ("cpu", DEVICE):
        total = symcomp.shared(np.zeros(3, "float32"), device=device)
        rows, updates = symcomp.scan(lambda row: (T.tanh(total + row), {total: total + row}), x)  # noqa: B023
        with config.change_flags(device=device):
            f = symcomp.function([x], rows.sum(axis=0), updates=updates)
        found.append((f(value), total.get_value()))
    assert loops(f)
    for one, other in zip(*found, strict=True):
        assert_close(other, one, 16)


def test_pickled_functions(emu: Emulator) -> None:
    x = T.fmatrix("x")
    hs, _ = symcomp.scan(lambda r, h: T.tanh(h + r) * 2, x, T.zeros(3, "float32"))
    with on_emu:
        f = symcomp.function([x], hs)
    value = array(3, 3)
    wanted = f(value)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(value), wanted)


def test_checkpoints_and_truncated_gradients(emu: Emulator) -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    for options in ({"checkpoint": 3}, {"checkpoint": "auto"}, {"truncate_gradient": 2}):
        hs, _ = symcomp.scan(lambda r, h: T.sin(h) + r * h[::-1], x, h, **options)
        values = [array(7, 3, dtype="float64"), array(3, dtype="float64")]
        check_loops([x, h], symcomp.grad(T.sqr(hs[-1]).sum(), [x, h]), values, 512)


def test_forward_mode_and_hessians(emu: Emulator) -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    hs, _ = symcomp.scan(lambda r, h: T.sin(h) + r * h[::-1], x, h)
    cost = T.sqr(hs[-1]).sum()
    values = [array(4, 3, dtype="float64"), array(3, dtype="float64")]
    check_loops([x, h], [symcomp.Rop(hs, h, h), symcomp.gradient.hessian(cost, h)], values, 512)


@st.composite
def small_loops(draw: Any) -> dict[str, Any]:
    """Draw a loop of few steps."""
    return {
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "steps": draw(st.integers(0, 5)),
        "shape": draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)),
        "row_taps": draw(st.sampled_from([[0], [-1, 0], [1], [0, 2], [-2, 1]])),
        "taps": draw(st.sampled_from([[-1], [-2], [-1, -2], [-3, -1]])),
        "backwards": draw(st.booleans()),
        "truncate": draw(st.sampled_from([-1, 1, 2])),
        "last": draw(st.booleans()),
        "seed": draw(st.integers(0, 1000)),
    }


@settings(max_examples=12, deadline=None)
@given(small_loops())
def test_random_loops(drawn: dict[str, Any]) -> None:
    dtype, shape, taps, row_taps = (drawn[k] for k in ("dtype", "shape", "taps", "row_taps"))
    rng = np.random.default_rng(drawn["seed"])
    x = T.tensor("x", dtype=dtype, shape=(None,) * (len(shape) + 1))
    h = T.tensor("h", dtype=dtype, shape=(None,) * (len(shape) + 1))

    def step(*given: Any) -> Any:
        rows, states = given[: len(row_taps)], given[len(row_taps) :]
        total = rows[0] - rows[-1] * states[0] + T.tanh(sum(states))
        return total, T.sqr(total).sum(axis=0), total.sum()

    depth = -min(taps)
    info = {"initial": h if depth > 1 else h[0], "taps": taps}
    (hs, squares, sums), _ = symcomp.scan(
        step, {"input": x, "taps": row_taps}, [info, None, None],
        go_backwards=drawn["backwards"], truncate_gradient=drawn["truncate"],
    )  # fmt: skip
    cost = T.tanh(squares).sum() + (0 if drawn["last"] else T.cos(hs).sum())
    outputs = [*symcomp.grad(cost, [x, h]), sums] + ([] if drawn["last"] else [hs, squares])
    length = drawn["steps"] + max(0, *row_taps) - min(0, *row_taps)
    values = [
        (rng.standard_normal((n, *shape)) * 0.5).astype(dtype) for n in (length, max(depth, 1))
    ]
    with config.change_flags(cflags="-O0"):
        check([x, h], outputs, values, 4096, on_host=True)
