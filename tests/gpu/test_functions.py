"""Functions with ``device=emu``: training, shared variables, borders, plans, waits, errors."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import ConfigError, config
from symcomp.errors import ShapeError
from symcomp.gpu import (
    DeviceArray,
    DeviceUnavailable,
    driver_of,
    memory_info,
    synchronize,
    to_cpu,
    to_gpu,
)
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.region import DeviceGraph
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import DEVICE, assert_close, check, ops_on_device, ops_on_host

on_emu = config.change_flags(device=DEVICE)


def network(**options):
    """Return a training step of two layers, its shared variables, and a batch."""
    rng = np.random.default_rng(1)
    shapes = [(20, 30), (30,), (30, 10), (10,)]
    params = [
        symcomp.shared((rng.standard_normal(s) * 0.1).astype("float32"), **options) for s in shapes
    ]
    x, y = T.fmatrix("x"), T.ivector("y")
    w1, b1, w2, b2 = params
    scores = T.dot(T.tanh(T.dot(x, w1) + b1), w2) + b2
    loss = -T.log(T.nnet.softmax(scores)[T.arange(y.shape[0]), y]).mean()
    grads = symcomp.grad(loss, params)
    updates = [(p, p - np.float32(0.1) * g) for p, g in zip(params, grads, strict=True)]
    batch = rng.standard_normal((16, 20)).astype("float32"), rng.integers(0, 10, 16).astype("int32")
    return x, y, loss, updates, params, batch


def test_training(emu: Emulator) -> None:
    x, y, loss, updates, params, batch = network()
    f = symcomp.function([x, y], loss, updates=updates)
    with on_emu:
        x, y, loss, updates, moved, batch = network()
        g = symcomp.function([x, y], loss, updates=updates)
    for _ in range(4):
        assert_close(g(*batch), f(*batch), 8)
    for p, q in zip(params, moved, strict=True):
        assert isinstance(q.get_value(return_internal_type=True), DeviceArray)
        assert isinstance(q.get_value(), np.ndarray)
        assert_close(q.get_value(), p.get_value(), 8)
    assert {name.partition("{")[0] for name in ops_on_host(g)} <= {
        "AsRows", "DimShuffle", "ShapeI", "cast",
    }  # fmt: skip


def test_a_loss_that_is_read_now_and_then_waits_now_and_then(emu: Emulator) -> None:
    with on_emu:
        x, y, loss, updates, _, batch = network()
        f = symcomp.function([x, y], to_gpu(loss, DEVICE), updates=updates)
    f(*batch)
    emu.wait()
    emu.counters.clear()
    losses = []
    for i in range(20):
        found = f(*batch)
        if i % 10 == 9:
            losses.append(float(found))
    assert emu.counters.waits == 2 and losses[1] < losses[0]
    assert emu.counters.to_host == 8


def test_a_call_waits_once_for_all_results(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], [T.exp(x), T.dot(x, x), x.T * 2, T.tanh(x).sum()])
    f(np.ones((2, 2), "float32"))
    assert emu.counters.waits == 1
    np.testing.assert_array_equal(f(np.eye(2, dtype="float32") + 1)[2], np.eye(2) * 2 + 2)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "DebugMode", "NanGuardMode"])
def test_modes(emu: Emulator, mode: str) -> None:
    w = symcomp.shared(np.ones((2, 2), "float32"), device=DEVICE)
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.dot(T.tanh(x), w).sum(), updates=[(w, w + x)], mode=mode)
    for _ in range(2):
        found = f(np.ones((2, 2), "float32"))
    np.testing.assert_allclose(found, 16 * np.tanh(1), rtol=1e-6)
    np.testing.assert_array_equal(w.get_value(), np.full((2, 2), 3))


def test_shared_variables(emu: Emulator) -> None:
    w = symcomp.shared(np.ones((2, 3), "float32"), name="w", device=DEVICE)
    assert w.type == T.fmatrix("x").type and w.get_value().tolist() == [[1] * 3] * 2
    w.set_value(np.full((2, 3), 5, "float32"))
    assert symcomp.function([], w.sum())() == 30
    w.zero()
    assert not w.get_value().any()
    with pytest.raises(TypeError):
        w.set_value(np.ones((2, 3)))  # float64
    with pytest.raises(ValueError, match="expected 2 axes"):
        w.set_value(np.ones(3, "float32"))
    twin = pickle.loads(pickle.dumps(w))
    assert isinstance(twin.container.value, DeviceArray)
    assert symcomp.shared(1, device="cpu").get_value() == 1
    with pytest.raises(ValueError, match="mean the same"):
        symcomp.shared(1.0, device=DEVICE, target="cpu")
    with pytest.raises(ValueError, match="a device is"):
        symcomp.shared(1.0, device="gpu7")


def test_shared_variables_of_whole_numbers_stay_on_the_host(emu: Emulator) -> None:
    with on_emu:
        assert isinstance(symcomp.shared(np.arange(3)).container.value, np.ndarray)
        assert isinstance(symcomp.shared(1.0).container.value, DeviceArray)


def test_truths_and_positions_that_follow_from_floats_move(emu: Emulator) -> None:
    x, y, i = T.fmatrix("x"), T.fmatrix("y"), T.imatrix("i")
    moved = [T.exp(x) > y, T.argmax(x, axis=1), T.argsort(x), T.isclose(x, y).all()]
    values = [np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")]
    for z in moved:
        with config.change_flags(on_unused_input="ignore"):
            check([x, y], z, values, 0, orders=[0])
    with on_emu:
        f = symcomp.function([x, i], [x > 1, T.argmax(i, axis=1), T.eq(i, 2).sum()])
    assert not ops_on_device(f)


def test_updates_of_what_lives_on_a_device(emu: Emulator) -> None:
    total = symcomp.shared(np.zeros(3), device=DEVICE)
    x = T.dvector("x")
    f = symcomp.function([x], updates=[(total, total + x)])
    for _ in range(3):
        f(np.arange(3.0))
    assert emu.counters.waits == 0
    np.testing.assert_array_equal(total.get_value(), 3 * np.arange(3.0))


def test_explicit_transfers(emu: Emulator) -> None:
    x = T.fvector("x")
    there = to_gpu(x, DEVICE)
    assert there.ndim == 1 and there.dtype == "float32" and to_gpu(there, DEVICE) is there
    f = symcomp.function([x], [there * 2, to_gpu(T.exp(there), DEVICE), to_cpu(there)])
    doubled, found, same = f([1, 2])
    assert doubled.tolist() == [2, 4] and same.tolist() == [1, 2]
    assert isinstance(found, DeviceArray) and ops_on_device(f)
    np.testing.assert_allclose(np.asarray(found), np.exp([1, 2]), rtol=1e-6)
    assert symcomp.function([there], there + 1)(found).dtype == "float32"
    g = symcomp.function([x], x.transfer(DEVICE))
    assert isinstance(g([1, 2]), DeviceArray)
    assert symcomp.function([x], there.transfer("cpu") + 1)([1, 2]).tolist() == [2, 3]


def test_gradients_through_transfers(emu: Emulator) -> None:
    x = T.dvector("x")
    loss = (to_cpu(to_gpu(x, DEVICE)) ** 3).sum()
    assert symcomp.function([x], symcomp.grad(loss, x))([1, 2]).tolist() == [3, 12]
    assert symcomp.function([x], symcomp.Rop(loss, x, x))([1, 2]) == 3 + 24
    there = to_gpu(x, DEVICE)
    g = symcomp.grad((there * there).sum(), there)
    assert np.asarray(symcomp.function([x], g)([1, 2])).tolist() == [2, 4]


def test_pairs_of_copies_cancel(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.dot(to_gpu(T.exp(x), DEVICE), to_gpu(x, DEVICE).T))
    names = [type(n.op).__name__ for n in f.maker.fgraph.toposort()]
    assert names.count("DeviceGraph") == 1 and names.count("ToHost") == 1
    assert names.count("ToDevice") == 1


def test_lengths_need_no_copies(emu: Emulator) -> None:
    w = symcomp.shared(np.ones((4, 5), "float32"), device=DEVICE)
    n = symcomp.function([], [w.shape[0], w.shape[1] * 2])
    assert [int(k) for k in n()] == [4, 10]
    x = T.fmatrix("x")
    with on_emu:
        t = T.exp(x)
        f = symcomp.function([x], [t.reshape((t.shape[1], t.shape[0])) * 2, t.shape[0] + 1])
    emu.counters.clear()
    shape, rows = f(np.ones((2, 3), "float32"))
    assert shape.shape == (3, 2) and rows == 3
    assert emu.counters.to_host == 24


def test_host_and_device_by_turns(emu: Emulator) -> None:
    x = T.dmatrix("x")
    t = T.gammainc(2.0, T.sqr(T.dot(x, x)) + 1)
    z = [T.dot(T.gammainc(2.0, T.sqr(T.dot(t, x)) + 1), t), t.sum()]
    f = check([x], z, [np.arange(9.0).reshape(3, 3) / 9], 64, on_host=True)
    assert sum(isinstance(n.op, DeviceGraph) for n in f.maker.fgraph.toposort()) == 3


def test_sync_waits_for_the_calls_so_far(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    with on_emu:
        f = symcomp.function([x, i], to_gpu((x * 2)[i], DEVICE))
    f(np.ones((3, 2), "float32"), [1])
    f.sync()
    assert emu.counters.waits == 1
    f(np.ones((3, 2), "float32"), [3])
    with pytest.raises(IndexError, match=r"test_functions.py:\d+.*index 3 is out of range"):
        f.sync()
    plain = symcomp.function([x], x.sum())
    plain.sync()
    assert emu.counters.waits == 2


def test_branches_that_are_not_taken_do_nothing(emu: Emulator) -> None:
    c, x = T.lscalar("c"), T.fvector("x")
    with on_emu:
        f = symcomp.function([c, x], ifelse(c, T.exp(x) * 2, T.tanh(x).sum() + x))
    value = np.ones(5, "float32")
    np.testing.assert_allclose(f(1, value), 2 * np.exp(value), rtol=1e-6)
    before = emu.counters.launches
    np.testing.assert_allclose(f(0, value), np.tanh(value).sum() + value, rtol=1e-6)
    assert emu.counters.launches > before
    regions = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    assert sorted(r.program.made for r in regions) == [1] * len(regions)


def test_plans_are_repeated(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.exp(x).sum(axis=0))
    for rows in (3, 3, 4, 3):
        f(np.ones((rows, 2), "float32"))
    (program,) = [n.op.program for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    assert (program.made, program.repeated) == (2, 2)
    assert "launch" in str(program.plans[0].plan)


@pytest.mark.parametrize(("length", "plans"), [(8, 1), (5, 2)])
def test_plans_serve_all_batches(emu: Emulator, length: int, plans: int) -> None:
    """Batches that begin where wide accesses can have one plan, the others another."""
    value = np.arange(12 * length, dtype="float32").reshape(12, length)
    data, w = (
        symcomp.shared(value, device=DEVICE),
        symcomp.shared(np.ones(length, "float32"), device=DEVICE),
    )
    i = T.lscalar("i")
    f = symcomp.function([i], T.tanh(T.dot(data[i * 3 : (i + 1) * 3], w) / 100).sum())
    for number in range(4):
        batch = value[3 * number : 3 * number + 3]
        np.testing.assert_allclose(f(number), np.tanh(batch.sum(axis=1) / 100).sum(), rtol=1e-5)
    (program,) = [n.op.program for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    assert (program.made, program.repeated) == (plans, 4 - plans)
    row = symcomp.function([i], data[i] * 2)
    np.testing.assert_array_equal(row(-1), value[-1] * 2)
    with pytest.raises(IndexError):
        row(12)


def test_the_arena_is_kept(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.dot(T.dot(x, x), x))
    value = np.ones((30, 30), "float32")
    f(value)
    emu.counters.clear()
    f(value)
    # The argument and the result, where the pool gives no block again.
    assert emu.counters.allocations == (2 if isinstance(emu, Emulator) else 0)


def test_errors_name_the_op_and_the_line(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    with on_emu:
        f = symcomp.function([x, i], to_gpu((x * 2)[i], DEVICE))
    value = np.ones((3, 2), "float32")
    found = f(value, [5])  # the work is enqueued only
    with pytest.raises(IndexError, match=r"Subtensor.*test_functions.py:\d+.*index 5 .* length 3"):
        found.get()
    with config.change_flags(gpu_check=True), pytest.raises(IndexError, match=r"s.py:\d+.*-4"):
        f(value, [-4])
    assert f(value, [2, -1]).get().shape == (2, 2)


def test_errors_of_shapes_name_the_operation_in_a_region(emu: Emulator) -> None:
    """The line is that of the operation, not of the last one of the region."""
    x, y = T.fmatrices("x", "y")
    shape = T.exp(x).reshape((3, 5))
    line = sys._getframe().f_lineno - 1
    with on_emu:
        f = symcomp.function([x, y], T.tanh(shape + 1).sum() * y)
    with pytest.raises(ShapeError, match="does not fit shape") as caught:
        f(np.ones((3, 2), "float32"), np.ones((1, 1), "float32"))
    notes = " ".join(caught.value.__notes__)
    assert f"raised by Reshape{{ndim=2}} ({__file__}:{line}" in notes


def test_the_python_machine_computes_the_same(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.exp(x).sum(), mode=symcomp.Mode(linker="py"))
    np.testing.assert_allclose(f(np.ones((2, 3), "float32")), 6 * np.e, rtol=1e-6)


def test_pickled_functions(emu: Emulator) -> None:
    w = symcomp.shared(np.ones(3, "float32"), device=DEVICE)
    x = T.fvector("x")
    f = symcomp.function([x], T.exp(x) * w, updates=[(w, w + x)])
    f([1, 2, 3])
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_allclose(g([1, 2, 3]), f([1, 2, 3]))


def test_scan_reads_what_lives_on_a_device(emu: Emulator) -> None:
    w = symcomp.shared(np.full(3, 0.5, "float32"), device=DEVICE)
    rows, _ = symcomp.scan(lambda h: T.tanh(h * w), outputs_info=[T.ones(3, "float32")], n_steps=4)
    h = np.ones(3, "float32")
    for _ in range(4):
        h = np.tanh(h * np.float32(0.5))
    np.testing.assert_allclose(symcomp.function([], rows[-1])(), h, rtol=1e-5)


def test_threads(emu: Emulator) -> None:
    w = symcomp.shared(np.ones((20, 20), "float32"), device=DEVICE)
    x = T.fmatrix("x")
    f = symcomp.function([x], T.dot(T.tanh(x), w).sum(axis=1))
    values = [np.full((5, 20), i / 4, "float32") for i in range(8)]
    wanted = [f(value) for value in values]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for found, one in zip(pool.map(f, values), wanted, strict=True):
                np.testing.assert_array_equal(found, one)


def test_options() -> None:
    with pytest.raises(ConfigError, match="must be cpu, cuda"):
        config.device = "gpu"
    with config.change_flags(device="cuda1"):
        assert config.device == "cuda1"


def test_without_a_card(emu: Emulator) -> None:
    try:
        driver_of("cuda0")
    except DeviceUnavailable as problem:
        assert "PyCUDA" in str(problem) or "no card" in str(problem)
        with pytest.raises(DeviceUnavailable):
            symcomp.shared(1.0, device="cuda")
    synchronize(DEVICE)
    assert memory_info(DEVICE).total > memory_info(DEVICE).used >= 0
