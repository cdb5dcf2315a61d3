"""Several devices: copies between them, functions with values on both, calls in threads."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.gpu.driver.devices import canonical, set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.transfers import ToHost
from symcomp.tests.gpu.running import assert_close, functions_called

Pair = tuple[Emulator, Emulator]


@pytest.fixture(params=[True, False], ids=["lazy", "eager"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Yield two emulators."""
    made = Emulator(lazy=request.param), Emulator(lazy=request.param, number=1)
    before = [set_driver(driver.name, driver) for driver in made]
    with config.change_flags(cflags="-O0"):
        yield made
    for driver, old in zip(made, before, strict=True):
        set_driver(driver.name, old)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    "name, full", [("emu0", "emu"), ("emu", "emu"), ("emu02", "emu2"), ("cuda", "cuda0")]
)
def test_names(name: str, full: str) -> None:
    assert canonical(name) == full


@pytest.mark.parametrize("name", ["emu-1", "gpu", "cuda 1", "emulator"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="a device is"):
        canonical(name)


@pytest.mark.parametrize(
    "view, through_host",
    [
        (lambda x: x, False),
        (lambda x: x.part((slice(None, None, -1), 1)), True),
        (lambda x: x.part((slice(1, 3), slice(None, None, -2))), False),
        (lambda x: x.part((slice(0, 0),)), False),
        (lambda x: x.part((1, 2)), False),
    ],
    ids=["whole", "column", "steps", "empty", "number"],
)
def test_copies_between_devices(pair: Pair, view, through_host: bool) -> None:
    first, second = pair
    x = gpu.to_device(numbers(4, 5), "emu")
    here = view(x)
    for driver in pair:
        driver.counters.clear()
    there = gpu.to_device(here, "emu1")
    assert there.device == "emu1"
    assert (first.counters.waits, second.counters.waits) == (through_host, 0)
    assert (second.counters.from_peers > 0) == (not through_host and here.size > 0)
    np.testing.assert_array_equal(there.get(), here.get())


def test_a_copy_comes_before_later_work_of_its_source(pair: Pair) -> None:
    w = symcomp.shared(numbers(3), device="emu")
    f = symcomp.function([], updates=[(w, w * 2)])
    found, expected = [], []
    for k in range(4):
        f()
        found.append(gpu.to_device(w.get_value(borrow=True, return_internal_type=True), "emu1"))
        expected.append(numbers(3) * 2.0 ** (k + 1))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.get(), other)


def test_a_function_of_two_devices(pair: Pair) -> None:
    a, b = symcomp.shared(numbers(3, 3), device="emu"), symcomp.shared(numbers(3), device="emu1")
    z = T.tanh(T.dot(T.exp(a).transfer("emu1"), b)).sum()
    f = symcomp.function([], [z, *symcomp.grad(z, [a, b])])
    nodes = f.maker.fgraph.toposort()
    regions = [node.op for node in nodes if isinstance(node.op, gpu.DeviceGraph)]
    assert [region.device for region in regions] == ["emu", "emu1"]
    copies = [node for node in nodes if isinstance(node.op, ToHost)]
    assert all(client == "output" for node in copies
               for client, _ in f.maker.fgraph.clients[node.outputs[0]])  # fmt: skip
    for driver in pair:
        driver.counters.clear()
    found = f()
    nbytes = numbers(3, 3).nbytes
    assert (pair[1].counters.from_peers, pair[0].counters.to_host) == (nbytes, 0)
    x, y = T.fmatrix(), T.fvector()
    z = T.tanh(T.dot(T.exp(x), y)).sum()
    g = symcomp.function([x, y], [z, *symcomp.grad(z, [x, y])])
    for one, other in zip(found, g(numbers(3, 3), numbers(3)), strict=True):
        assert_close(np.asarray(one), other, 16)


def test_a_call_that_copies_between_devices_runs_no_python(pair: Pair) -> None:
    x = T.fmatrix("x")
    there = gpu.to_gpu(T.exp(gpu.to_gpu(x, "emu")), "emu").transfer("emu1")
    f = symcomp.function([x], [gpu.to_gpu(T.tanh(there), "emu1"), there.transfer("emu")])
    values = [numbers(2, 3) + k for k in range(3)]
    held = [f(value) for value in values]
    f(values[0])
    plan = str(f.plan())
    assert "python(" not in plan and plan.count("to device(") >= 3, plan
    for driver in pair:
        driver.counters.clear()
    found = []
    assert functions_called(lambda: found.append(f(values[0]))) == []
    first, second = (driver.counters for driver in pair)
    assert (first.from_peers, second.from_peers, first.to_device) == (24, 24, 24)
    assert (first.waits, second.waits, first.to_host, second.to_host) == (0, 0, 0, 0)
    for value, (one, other) in zip([*values, values[0]], [*held, *found], strict=True):
        assert_close(one.get(), np.tanh(np.exp(value)), 8)
        assert_close(other.get(), np.exp(value), 4)


def test_a_copy_between_devices_that_has_no_room(pair: Pair) -> None:
    x = gpu.to_device(numbers(100), "emu")
    pair[1].pool.limit = 64
    with pytest.raises(gpu.DeviceMemoryError, match=r"emu1: no 400 bytes for a copy of Device"):
        gpu.to_device(x, "emu1")


def test_work_of_another_device_that_fails_before_a_copy(pair: Pair) -> None:
    """Lazy or not, the error names the op, and later copies are right."""
    x, i = T.fvector("x"), T.lvector("i")
    f = symcomp.function([x, i], gpu.to_gpu(gpu.to_gpu(x, "emu")[i], "emu").transfer("emu1"))
    good = f(numbers(3), np.array([2]))
    bad = f(numbers(3), np.array([5]))
    with pytest.raises(IndexError, match="index 5 is out of range"):
        pair[0].wait()
    np.testing.assert_array_equal(good.get(), numbers(3)[2:])
    assert bad.shape == (1,)
    np.testing.assert_array_equal(f(numbers(3), np.array([0])).get(), numbers(3)[:1])


def test_waiting_for_a_copy_tells_an_error_of_the_work_before_it(pair: Pair) -> None:
    x, i = T.fvector("x"), T.lvector("i")
    there = gpu.to_gpu(gpu.to_gpu(gpu.to_gpu(x, "emu")[i], "emu").transfer("emu1") * 2, "emu1")
    outputs = there, there.transfer("emu")
    for f in [symcomp.function([x, i], gpu.to_cpu(z)) for z in outputs]:
        for _ in range(2):
            with pytest.raises(IndexError, match="index 5 is out of range"):
                f(numbers(3), np.array([5]))
            for driver in pair:
                driver.wait()
            np.testing.assert_array_equal(f(numbers(3), np.array([2])), numbers(3)[2:] * 2)


def test_copies_to_and_fro_in_threads(pair: Pair) -> None:
    """No thread waits for one that waits for it."""
    problems = []

    def work(device: str, other: str) -> None:
        for k in range(30):
            x = gpu.to_device(np.full(7, k, "float32"), device)
            y = gpu.to_device(gpu.to_device(x, other), device).get()
            if not (y == k).all():
                problems.append((device, k, y))

    threads = [threading.Thread(target=work, args=pair_) for pair_ in
               [("emu", "emu1"), ("emu1", "emu")] * 2]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert problems == []


def functions() -> list:
    """Return a function for each device, whose results stay there."""
    x, y = T.fvector("x"), T.fvector("y")
    made = []
    for device in ("emu", "emu1"):
        with config.change_flags(device=device):
            made.append(symcomp.function([x, y], gpu.to_gpu(T.exp(x) * y, device)))
    return made


def test_calls_that_are_shared_out(pair: Pair) -> None:
    x, y = numbers(5, 3), numbers(5, 3)[::-1]
    found = gpu.map(functions(), x, y)
    assert [z.device for z in found] == ["emu", "emu1", "emu", "emu1", "emu"]
    for z, one, other in zip(found, x, y, strict=True):
        assert_close(z.get(), np.exp(one) * other, 4)
    assert gpu.map(functions(), [], []) == []


def test_calls_that_fail(pair: Pair) -> None:
    with pytest.raises(ValueError, match="no function"):
        gpu.map([], [1])
    with pytest.raises(ValueError, match=r"lengths \[2, 1\]"):
        gpu.map(functions(), numbers(2, 3), numbers(1, 3))
    wrong = [numbers(3), numbers(3), numbers(4), numbers(3)]
    with pytest.raises(ValueError, match=r"\(4\).*\(3\)|4.*3"):
        gpu.map(functions(), wrong, numbers(4, 3))
