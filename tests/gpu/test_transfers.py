"""Copies between the host and devices, as calls in C of the plans of functions."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.core.dtype import numpy_dtype
from symcomp.errors import ShapeError
from symcomp.gpu import DeviceMemoryError
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.planner import contiguous_strides
from symcomp.tests.gpu.running import DEVICE, array, functions_called

on_emu = config.change_flags(device=DEVICE)
CALLS = 20


@pytest.fixture
def card(emu: Driver) -> Iterator[Driver]:
    """Yield a driver that keeps blocks of memory, as those of cards do."""
    if not isinstance(emu, Emulator):
        yield emu
        return
    driver = Emulator(keeps_blocks=True)
    before = set_driver("emu", driver)
    yield driver
    set_driver("emu", before)


def step(**options: Any) -> tuple[Any, Any]:
    """Return a training step whose data come from the host, and whose results go there; and its
    weights.
    """
    x, y = T.fmatrix("x"), T.fvector("y")
    with on_emu:
        w = symcomp.shared(np.full(4, 0.5, "float32"), name="w")
        errors = T.tanh(T.dot(x, w)) - y
        loss = T.sqr(errors).mean()
        updates = [(w, w - np.float32(0.1) * symcomp.grad(loss, w))]
        return symcomp.function([x, y], [loss, errors], updates=updates, **options), w


def test_a_call_with_data_of_the_host_runs_no_python(card: Driver) -> None:
    f, w = step()
    values = array(6, 4), array(6)
    for _ in range(CALLS):  # until blocks of memory are met again
        f(*values)
    repeated, before = f.repeated, w.get_value()
    card.counters.clear()
    found = []
    assert functions_called(lambda: found.append(f(*values))) == []
    assert f.repeated == repeated + 1
    counters = card.counters
    assert (counters.waits, counters.allocations, counters.pinned) == (1, 0, 0), counters
    assert (counters.to_device, counters.to_host) == (4 * (24 + 6), 4 * (1 + 6)), counters
    assert not np.array_equal(w.get_value(), before)
    (loss, errors), (_, again) = found[0], f(*values)
    assert float(loss) == pytest.approx(float(np.square(errors).mean()))
    assert not np.shares_memory(errors, again)


def test_plans_show_the_copies(emu: Driver) -> None:
    f, _ = step()
    values = array(6, 4), array(6)
    f(*values)
    f(*values)
    plan = str(f.plan())
    assert "python(" not in plan
    for name, count in (("to device(", 2), ("region(", 1), ("to host(", 1)):
        assert plan.count(name) == count, plan


def test_a_profile_tells_that_plans_were_repeated(emu: Driver) -> None:
    f, _ = step(profile=True)

    def moved() -> dict[str, Any]:
        (data,) = f.profile.to_dict()["functions"]
        rows = [row for row in data["device_work"] if row["kind"].startswith("to ")]
        assert all(row["seconds"] > 0 for row in rows)
        return {row["kind"]: np.array([row["count"], row["bytes"]]) for row in rows}

    f(array(6, 4), array(6))  # copies constants, too
    before = moved()
    for _ in range(3):
        f(array(6, 4), array(6))
    assert f.repeated == 3
    rows = f.profile.to_dict()["functions"][0]["instructions"]
    assert {row["ran_in"] for row in rows} == {"device"} and not any(r["in_python"] for r in rows)
    after = moved()
    np.testing.assert_array_equal(after["to device"] - before["to device"], [6, 3 * 4 * 30])
    np.testing.assert_array_equal(after["to host"] - before["to host"], [6, 3 * 4 * 7])


def swapped(x: np.ndarray) -> np.ndarray:
    return x.astype(x.dtype.newbyteorder())


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.zeros(x.nbytes + 1, "uint8")
    found = memory[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def read_only(x: np.ndarray) -> np.ndarray:
    found = x.copy()
    found.flags.writeable = False
    return found


LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "steps": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "stretched": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": read_only,
    "swapped bytes": swapped,
    "unaligned": unaligned,
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, :0],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arrays_of_the_host(emu: Driver, layout: str, dtype: str) -> None:
    value = LAYOUTS[layout]((array(3, 5) * 8).astype(dtype))
    x = T.TensorType(dtype, (None, None))("x")
    f = symcomp.function([x], [gpu.to_gpu(x, DEVICE), gpu.to_cpu(gpu.to_gpu(x, DEVICE))])
    for _ in range(2):
        there, back = f(value)
        assert back.dtype == numpy_dtype(dtype) and back.flags.c_contiguous
        assert back.dtype.isnative
        assert there.strides == contiguous_strides(value.shape, value.itemsize)
        np.testing.assert_array_equal(back, value)
        np.testing.assert_array_equal(there.get(), value)
    assert f.repeated == 1
    np.testing.assert_array_equal(gpu.to_device(value, DEVICE).get(), value)


def test_numbers_large_arrays_and_many_axes(emu: Driver) -> None:
    for value in (np.float32(3), np.ones((600, 500)), np.ones((600, 500)).T, np.ones((2,) * 12)):
        kind = T.TensorType(value.dtype.name, (None,) * value.ndim)
        x = kind("x")
        f = symcomp.function([x], gpu.to_cpu(gpu.to_gpu(x, DEVICE)))
        for _ in range(2):
            found = f(value)
            assert found.shape == value.shape
            np.testing.assert_array_equal(found, value)


VIEWS = {
    "transposed": (slice(None), slice(None)),
    "backwards": (slice(None, None, -1), slice(None, None, -2)),
    "column": (slice(None), 2),
    "number": (1, 2),
    "nothing": (slice(0, 0),),
}


@pytest.mark.parametrize("view", VIEWS)
def test_layouts_of_arrays_on_a_device(emu: Driver, view: str) -> None:
    value, key = array(3, 5), VIEWS[view]
    wanted = value.T[key] if view == "transposed" else value[key]
    x = T.fmatrix("x")
    moved = gpu.to_gpu(x, DEVICE)
    part = moved.T[key] if view == "transposed" else moved[key]
    f = symcomp.function([x], gpu.to_cpu(gpu.to_gpu(part, DEVICE)))
    there = gpu.to_device(value, DEVICE).part(key)
    for found in (f(value), f(value), *([] if view == "transposed" else [there.get()])):
        assert found.flags.c_contiguous and found.flags.writeable and found.flags.owndata
        np.testing.assert_array_equal(found, wanted)


def test_bad_arguments_leave_shared_variables(emu: Driver) -> None:
    f, w = step()
    f(array(6, 4), array(6))
    before = w.get_value()
    for values in ((array(6, 3), array(6)), (array(6, 4), array(5)), (array(0, 3), array(0))):
        with pytest.raises(ShapeError):
            f(*values)
        np.testing.assert_array_equal(w.get_value(), before)
    with pytest.raises(TypeError):
        f(array(6, 4).astype("complex64"), array(6))
    np.testing.assert_array_equal(w.get_value(), before)
    f(array(6, 4), array(6))
    assert not np.array_equal(w.get_value(), before)


def test_arguments_may_be_changed_at_once(emu: Driver) -> None:
    x = T.fvector("x")
    with on_emu:
        f = symcomp.function([x], gpu.to_gpu(x * 2, DEVICE))
    value, found = np.zeros(7, "float32"), []
    emu.counters.clear()
    for k in range(40):
        value[:] = k
        found.append(f(value))
        value[:] = -1
    assert emu.counters.waits == 0
    for k, z in enumerate(found):
        np.testing.assert_array_equal(z.get(), np.full(7, 2 * k, "float32"))


def test_errors_come_where_results_are_copied(emu: Driver) -> None:
    x, i = T.fvector("x"), T.lvector("i")
    with on_emu:
        f = symcomp.function([x, i], T.exp(x)[i])
    for _ in range(2):
        assert f(array(3), [2, 0]).shape == (2,)
        with pytest.raises(IndexError, match=r"test_transfers.py.*index 7 is out of range"):
            f(array(3), [7, 0])


def test_threads_get_their_own_results(emu: Driver) -> None:
    f, _ = step()
    x = T.fmatrix("x")
    with on_emu:
        g = symcomp.function([x], T.exp(x) * 2)
    values = [np.full((30, 20), k / 8, "float32") for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        losses = pool.map(lambda _: float(f(array(6, 4), array(6))[0]), range(20))
        for value, found in zip(values * 10, pool.map(g, values * 10), strict=True):
            np.testing.assert_allclose(found, 2 * np.exp(value), rtol=1e-6)
    assert all(np.isfinite(list(losses)))


def _child(f: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(f(array(6, 4), array(6))[1], wanted)
    os._exit(0)


@pytest.mark.skipif(DEVICE != "emu", reason="CUDA does not work in a fork")
def test_a_fork_goes_on(emu: Driver) -> None:
    f, w = step()
    start = w.get_value()
    wanted = f(array(6, 4), array(6))[1]
    w.set_value(start)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(f, wanted))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_no_memory_for_an_argument(emu: Driver) -> None:
    if not isinstance(emu, Emulator):
        pytest.skip("the memory of a card is not bounded")
    x = T.fmatrix("x")
    f = symcomp.function([x], gpu.to_gpu(x, DEVICE))
    emu.pool.limit = emu.pool.used + 100
    with pytest.raises(DeviceMemoryError, match=r"no 400 bytes for an array of shape \(10, 10\)"):
        f(np.ones((10, 10), "float32"))
    emu.pool.limit = 0
    assert f(np.ones((10, 10), "float32")).shape == (10, 10)


def test_interrupted_copies_leave_other_arrays(
    card: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt that comes when a copy has been enqueued on a card, or will be on an emulator:
    its pinned memory may still be in use.
    """
    x = T.fvector("x")
    moved = gpu.to_gpu(x, DEVICE)
    into = symcomp.function([x], moved, profile=True)
    back = symcomp.function([x], gpu.to_cpu(moved), profile=True)
    last, name = [""], "piece" if isinstance(card, Emulator) else "timing"
    own: Any = getattr(card, name)

    @contextmanager
    def timing(kind: str, nbytes: int) -> Iterator[None]:
        with own(kind, nbytes):
            yield
        if kind == last[0]:
            raise KeyboardInterrupt

    def piece(timeline: Any, kind: str, nbytes: int) -> Any:
        if kind == last[0]:
            raise KeyboardInterrupt
        return own(timeline, kind, nbytes)

    interrupted = {"timing": timing, "piece": piece}[name]

    values = [np.full(50, k, "float32") for k in range(3)]
    for kind, f in (("to device", into), ("to host", back)):
        last[0] = kind
        with monkeypatch.context() as patch:
            patch.setattr(card, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                f(values[0])
        first, second = gpu.to_device(values[1], DEVICE), gpu.to_device(values[2], DEVICE)
        np.testing.assert_array_equal(first.get(), values[1])
        np.testing.assert_array_equal(second.get(), values[2])


def test_a_lost_device_is_asked_for_no_memory(emu: Driver) -> None:
    there = gpu.to_device(array(3), DEVICE)
    address, asked = emu.queue.address, emu.counters.pinned
    large = np.zeros(5000, "float32")
    emu.queue.address = 0
    try:
        for use in (there.get, lambda: gpu.to_device(large, DEVICE)):
            with pytest.raises(DeviceUnavailable, match="fork"):
                use()
    finally:
        emu.queue.address = address
    assert emu.counters.pinned == asked


KEYS: list[Any] = [
    (), (1,), (-1, 2), (slice(1, None),), (slice(None, None, -1), slice(4, 0, -2)), (Ellipsis, 0),
    (None, 1), (slice(0, 0),), (Ellipsis,), (0, None, Ellipsis, slice(-2, None)), (slice(5, 1),),
    (2, 4, None), (slice(-9, 9, 2), Ellipsis), (slice(-(2**70), 2**70),),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts(emu: Driver, key: Any) -> None:
    value = array(3, 5)
    wanted = value[key if Ellipsis in key else (*key, ...)]
    there = gpu.to_device(value, DEVICE)
    for x in (there.part(key), there[key]):
        np.testing.assert_array_equal(x.get(), wanted)
        assert wanted.size == 0 or x.strides == wanted.strides


def test_parts_that_are_not_there(emu: Driver) -> None:
    there = gpu.to_device(array(3, 5), DEVICE)
    for key in ((3,), (-4,), (0, 5), (0, 0, 0), (Ellipsis, Ellipsis), (0, 0, Ellipsis, 0), 2**70):
        with pytest.raises(IndexError):
            there[key]


def test_parts_by_long_steps(emu: Driver) -> None:
    value = array(3, 5)
    there = gpu.to_device(value, DEVICE)
    for step in (2**62, -(2**65)):
        np.testing.assert_array_equal(there[::step].get(), value[::step])


def test_lengths_on_devices_run_no_python(emu: Driver) -> None:
    i = T.lvector("i")
    with on_emu, config.change_flags(kernels=True):
        data = symcomp.shared(array(30, 4), name="data")
        f = symcomp.function([i], data.shape[1] + i)
    for _ in range(3):
        f(np.arange(3))
    plan = str(f.plan())
    assert "python(" not in plan and "length on device(" in plan, plan
    found = []
    assert functions_called(lambda: found.append(f(np.arange(3)))) == []
    assert found[0].tolist() == [4, 5, 6]
    data.set_value(array(2, 7))
    assert f(np.arange(3)).tolist() == [7, 8, 9]


def test_parts_at_positions_of_a_call_run_no_python(emu: Driver) -> None:
    n, k = T.lscalar("n"), T.lscalar("k")
    with on_emu, config.change_flags(kernels=True):
        data = symcomp.shared(array(30, 4), name="data")
        f = symcomp.function([n, k], [T.exp(data[n : n + 5]).sum(axis=0), data[k, ::-1] * 2])
    for _ in range(3):
        f(7, 2)
    assert "python(" not in str(f.plan()) and "part on device(" in str(f.plan())
    found = []
    assert functions_called(lambda: found.append(f(9, -1))) == []
    wanted = np.exp(array(30, 4)[9:14]).sum(axis=0), array(30, 4)[-1, ::-1] * 2
    for z, w in zip(found[0], wanted, strict=True):
        np.testing.assert_allclose(z, w, rtol=1e-6)
    with pytest.raises(IndexError, match="index 30 is out of bounds for axis 0 with size 30"):
        f(0, 30)
