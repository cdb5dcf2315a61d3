"""Regions that are repeated with the same addresses, as graphs of the driver."""

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.errors import IndexOutOfRangeError
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.tests.gpu.running import DEVICE, array, ops_on_host
from symcomp.tests.gpu.test_regions import steps

on_emu = config.change_flags(device=DEVICE)


@pytest.fixture
def reusing(emu: Any) -> Iterator[Any]:
    """Yield a driver whose pool gives blocks again, so that addresses are met again."""
    if not isinstance(emu, Emulator):
        yield emu
        return
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)
    yield driver
    set_driver("emu", emu)


@pytest.mark.usefixtures("unmerged")
def test_a_step_is_a_graph_once_its_addresses_are_met_again(reusing: Any) -> None:
    with config.change_flags(gpu_graphs=False):
        f, w = steps()
        wanted = [float(f()) for _ in range(12)]
        assert (reusing.counters.graphs, reusing.counters.recorded) == (0, 0)
    g, v = steps()
    reusing.counters.clear()
    assert [float(g()) for _ in range(12)] == wanted
    np.testing.assert_array_equal(v.get_value(), w.get_value())
    counters = reusing.counters
    native = g.maker.fgraph.toposort()[0].op.program.plans[0].plan.native.native
    assert counters.launches == 12 * native.launches
    # Weights lie in two blocks by turns, losses in one or two: each set is enqueued once by calls.
    assert 1 <= counters.recorded <= 4 and counters.graphs >= 12 - 2 * counters.recorded - 2


def test_other_addresses_are_other_graphs(reusing: Any) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], gpu.to_gpu(T.dot(T.dot(T.tanh(x), x), x), DEVICE))
    values = [np.full((4, 4), k, "float32") for k in range(20)]
    kept = [f(value) for value in values]  # results take new memory each time
    assert reusing.counters.graphs == 0
    for value, z in zip(values, kept, strict=True):
        np.testing.assert_allclose(z.get(), np.tanh(value) @ value @ value, rtol=1e-5)
    kept.clear()
    for value in values:
        found = f(value).get()
        np.testing.assert_allclose(found, np.tanh(value) @ value @ value, rtol=1e-5)
    assert reusing.counters.graphs > 10


@pytest.mark.usefixtures("unmerged")
def test_loops_are_part_of_a_graph(reusing: Any) -> None:
    x = symcomp.shared(np.full((7, 3), 0.1, "float32"), device=DEVICE)
    states, _ = symcomp.scan(lambda row, h: T.tanh(row + h), x, T.zeros(3, "float32"))
    f = symcomp.function([], gpu.to_gpu(states[-1], DEVICE))
    found = [f().get() for _ in range(6)]
    assert all(np.array_equal(z, found[0]) for z in found) and reusing.counters.graphs >= 3


@pytest.mark.usefixtures("unmerged")
def test_errors_within_a_graph_name_the_op(reusing: Any) -> None:
    m = symcomp.shared(np.ones((3, 2), "float32"), device=DEVICE)
    i = T.lvector("i")
    f = symcomp.function([i], gpu.to_gpu(T.dot(T.tanh(m * 2)[i], T.tanh(m).T).sum(axis=0), DEVICE))
    for _ in range(6):
        f([1, 2]).get()
    assert reusing.counters.graphs > 0
    late = f([1, 5])
    with pytest.raises(IndexOutOfRangeError, match=r"test_graphs.py:\d+ .*: index 5 .* length 3"):
        late.get()
    assert f([0, 1]).get().shape == (3,)


@pytest.mark.usefixtures("unmerged")
def test_what_a_driver_refuses_to_record_is_enqueued_call_by_call(reusing: Any) -> None:
    if not isinstance(reusing, Emulator):
        pytest.skip("a card has a stream for it")
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    refuse = kind(lambda stream, mode: 900)
    address = ctypes.cast(refuse, ctypes.c_void_p).value
    functions = {**reusing._library.machine, "begin_capture": address}
    address_of_stream = reusing.queue.address
    reusing.open(type(reusing.pool.library)(functions), keeps_blocks=True, is_recorded=True)
    reusing.queue.address, reusing.queue.recorder = address_of_stream, 1
    f, w = steps()
    g, v = steps()
    with config.change_flags(gpu_graphs=False):
        wanted = [float(g()) for _ in range(20)]
    with pytest.warns(RuntimeWarning, match="emu: error 900.*cannot be a CUDA graph") as caught:
        found = [float(f()) for _ in range(20)]
    assert found == wanted and np.array_equal(w.get_value(), v.get_value())
    assert len(caught) == 1 and reusing.counters.graphs == 0


def long_steps() -> Any:
    """Return a training step of several products, and its weights."""
    with on_emu:
        w = symcomp.shared(np.full((4, 4), 0.5, "float32"), name="w")
        x = symcomp.shared(np.ones((5, 4), "float32"))
        z = x
        for _ in range(3):
            z = T.tanh(T.dot(z, w))
        loss = T.sqr(z).mean()
        updates = [(w, w - np.float32(0.1) * symcomp.grad(loss, w))]
        return symcomp.function([], gpu.to_gpu(loss, DEVICE), updates=updates), w


@pytest.mark.usefixtures("unmerged")
def test_steps_whose_losses_are_kept_are_graphs(reusing: Any) -> None:
    """Losses that are kept have new addresses: they are made at fixed ones, and copied."""
    with config.change_flags(gpu_graphs=False):
        f, w = long_steps()
        wanted = [float(f().get()) for _ in range(60)]
    g, v = long_steps()
    reusing.counters.clear()
    kept = [g() for _ in range(60)]
    assert [float(loss.get()) for loss in kept] == wanted
    assert len({loss.address for loss in kept}) == 60
    np.testing.assert_array_equal(v.get_value(), w.get_value())
    counters = reusing.counters
    assert counters.graphs > 30 and counters.recorded <= 6
    assert counters.within >= 4 * counters.graphs


def test_where_fixed_addresses_bring_no_graphs_none_are_used(reusing: Any) -> None:
    x = gpu.DeviceType(DEVICE, "float32", (None, None))("x")
    with on_emu:
        z = gpu.to_cpu(x)
        for k in range(8):
            z = T.tanh(z - z.sum(axis=k % 2, keepdims=True))
        f = symcomp.function([x], [gpu.to_gpu(z.sum(), DEVICE), gpu.to_gpu(z, DEVICE)])
    assert not ops_on_host(f)
    large = array(130, 130)  # too large to be copied
    kept = [f(gpu.to_device(large * k, DEVICE)) for k in range(33)]
    before = reusing.counters.within
    assert reusing.counters.graphs == 0 and before == 16 * 4
    value = gpu.to_device(large, DEVICE)
    kept.append(f(value))
    assert reusing.counters.within == before
    for one, other in zip(kept[1], kept[-1], strict=True):
        np.testing.assert_array_equal(one.get(), other.get())


def test_threads_have_fixed_addresses_of_their_own(reusing: Any) -> None:
    x = symcomp.shared(np.full((4, 4), 0.3, "float32"), device=DEVICE)
    s = T.fvector("s")
    with on_emu:
        z = T.tanh(T.dot(T.dot(T.dot(x, x), x), x)).sum() * s
        f = symcomp.function([s], gpu.to_gpu(z, DEVICE))
    one = gpu.to_device(np.ones(1, "float32"), DEVICE)
    unit = float(f(one).get()[0])
    values = [gpu.to_device(np.full(1, k, "float32"), DEVICE) for k in range(8)]
    for _ in range(20):
        kept = [f(value) for value in values]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(f, values * 20))
    for k, result in enumerate(found):
        np.testing.assert_allclose(result.get(), [unit * (k % 8)], rtol=1e-5)
    assert len(kept) == 8
