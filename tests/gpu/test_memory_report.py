"""Reports of the memory of devices, beside what the emulator allocates in calls."""

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array
from symcomp.vm.memory import DeviceUsage

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="blocks of the emulator are not rounded")


@pytest.fixture
def eager() -> Iterator[Emulator]:
    """Yield an emulator that gives memory back when its work is enqueued, as a card does."""
    with config.change_flags(cflags="-O0"):
        driver = Emulator(lazy=False)
        before = set_driver("emu", driver)
        yield driver
        set_driver("emu", before)


def usage(f: Any, *examples: Any) -> DeviceUsage:
    (found,) = f.memory_report(*examples).devices
    return found


def taken(driver: Emulator, f: Any, values: Sequence[Any]) -> int:
    """Return the most bytes that a call takes at a time."""
    f.free()
    gc.collect()
    before = driver.pool.peak = driver.pool.used
    f(*values)
    return int(driver.pool.peak - before)


def compare(driver: Emulator, f: Any, *values: Any) -> DeviceUsage:
    """Compare a report of the shapes with the allocations of a call; return it."""
    shapes = [np.shape(value) or value for value in values]
    assert usage(f, *shapes).allocated is None
    f(*values)
    found = usage(f, *shapes)
    assert found.allocated == taken(driver, f, values) == taken(driver, f, values)
    return found


def training(n: int = 20, **options: Any) -> tuple[Any, Any]:
    """Return a training step on the emulator, and its weights."""
    x = T.fmatrix("x")
    with config.change_flags(device="emu"):
        w = symcomp.shared(array(30, n), name="w")
        h = T.tanh(T.dot(x, w))
        loss = T.sqr(T.dot(h, h.T)).mean()
        updates = [(w, w - np.float32(0.1) * T.grad(loss, w))]
        return symcomp.function([x], [loss, gpu.to_gpu(h, "emu")], updates=updates, **options), w


def test_a_training_step(eager: Emulator) -> None:
    f, w = training()
    found = compare(eager, f, array(5, 30))
    weights, h = 4 * 30 * 20, 4 * 5 * 20
    assert (found.device, found.inputs, found.results) == ("emu", weights, weights + h)
    # The batch, the loss and the results are there at a time.
    assert found.peak == weights + h + 4 * 5 * 30 + 4
    region = next(n.op.program for n in f.maker.fgraph.toposort() if hasattr(n.op, "program"))
    assert found.allocated == found.peak + region.plans[0].plan.arena
    kept = [memory.nbytes for memory in region._constants.values()]
    assert found.kept == sum(kept) > 0
    by_name = {v.name: (v.shape, v.dtype, v.bytes) for v in found.values}
    assert by_name["ToDevice{device='emu'}"] == ((5, 30), "float32", 4 * 5 * 30)
    assert usage(f, (6, 30)).allocated is None and usage(f, (6, 30)).results == weights + 4 * 6 * 20
    assert f.memory_report((5, 30)).results == 4


def test_the_text(eager: Emulator) -> None:
    f, w = training()
    text = str(f.memory_report((5, 30)))
    assert "\non emu\ninputs and constants                 2,400 bytes\n" in text
    assert "float32 (5, 20)" in text and "on emu ()" not in text
    assert text.count("not known: no plan is kept for these shapes") == 2
    f(array(5, 30))
    assert f"\nallocated by a call         {usage(f, (5, 30)).allocated:>14,} bytes\n" in str(
        f.memory_report((5, 30))
    )


def test_workspaces_of_libraries(eager: Emulator) -> None:
    """cuBLAS has one for all functions, cuFFT one for each layout."""
    x = T.cmatrix("x")
    values = [np.ones((n, n), "complex64") for n in (8, 6)]

    def compiled(z: Any) -> Any:
        with config.change_flags(device="emu"):
            return symcomp.function([x], gpu.to_gpu(z, "emu"))

    with stand_ins(eager, "cublas", "cufft"):
        f = compiled(T.fft.fft(T.dot(x, x)))
        assert usage(f, (8, 8)).workspaces == 0
        before = eager.pool.peak = eager.pool.used
        f(values[0])
        found = usage(f, (8, 8))
        assert found.allocated is not None
        assert eager.pool.peak - before == found.allocated + found.kept + found.workspaces
        assert f"\nworkspaces of libraries     {found.workspaces:>14,} bytes\n" in str(found)
        of_cublas = 4 * 2**20
        assert of_cublas < found.workspaces < 2 * of_cublas
        f(values[1])  # another layout, the same handle of cuBLAS
        grown = usage(f, (6, 6))
        assert grown.workspaces > found.workspaces
        g = compiled(T.dot(x, x) * 2)
        before = eager.pool.peak = eager.pool.used
        g(values[0])
        other = usage(g, (8, 8))
        assert other.workspaces == of_cublas and other.allocated is not None
        assert eager.pool.peak - before == other.allocated + other.kept
        del f
        gc.collect()
        assert eager.pool.used <= before + other.kept - (grown.workspaces - of_cublas)


def test_nothing_is_copied(eager: Emulator) -> None:
    f, w = training()
    f(array(5, 30))
    used = eager.pool.used
    eager.counters.clear()
    f.memory_report((5, 30))
    counters = eager.counters
    assert (counters.to_host, counters.to_device, counters.launches) == (0, 0, 0)
    assert eager.pool.used == used


def test_views_parts_and_results_that_are_arguments(eager: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lscalar("i")
    with config.change_flags(device="emu"):
        w = symcomp.shared(array(40, 6))
        there = gpu.to_gpu(T.exp(x), "emu")
        outputs = [there, there.transfer("cpu").T.transfer("emu"), w.transfer("emu")]
        f = symcomp.function([x, i], [*outputs, T.sqr(w[i : i + 5]).sum(axis=1)])
    found = compare(eager, f, array(7, 3), 2)
    assert found.results >= 4 * 7 * 3 and found.inputs == 4 * 40 * 6


def test_several_regions(eager: Emulator) -> None:
    """A function without a kernel stands between them."""
    x = T.fmatrix("x")
    with config.change_flags(device="emu"):
        small = T.tanh(T.dot(x, x.T))
        middle = symcomp.tensor.erfinv(small * 0.5)
        f = symcomp.function([x], [T.exp(T.dot(middle, small)).sum(axis=0), T.exp(small)])
    found = compare(eager, f, array(9, 4))
    assert found.results == 0 and found.allocated is not None


def test_inputs_that_live_there(eager: Emulator) -> None:
    x = gpu.DeviceType("emu", "float32", (None, None)).make_variable("x")
    with config.change_flags(device="emu"):
        f = symcomp.function([x], gpu.to_gpu(T.exp(x.T) * 2, "emu"))
    found = usage(f, (4, 6))
    assert (found.inputs, found.results, f.memory_report((4, 6)).inputs) == (96, 96, 0)
    value = gpu.to_device(array(4, 6), "emu")
    f(value)
    assert usage(f, value).allocated == taken(eager, f, [value])


def test_loops_in_regions(eager: Emulator) -> None:
    x, h, n = T.fmatrix("x"), T.fvector("h"), T.lscalar("n")
    with config.change_flags(device="emu"):
        hs, _ = symcomp.scan(lambda s, m: T.tanh(T.dot(m, s)), outputs_info=[h], non_sequences=[x],
                             n_steps=n)  # fmt: skip
        f = symcomp.function([x, h, n], [hs[-1], gpu.to_gpu(hs, "emu")])
    values = array(5, 5), array(5), 7
    compare(eager, f, *values)
    assert usage(f, (5, 5), (5,), 8).allocated is None


def until_loops(x: Any, h: Any) -> dict[str, Any]:
    """Return results of loops that end early: all states, the last one, and other outputs."""
    counted, _ = symcomp.scan(
        lambda s: (s + 1, symcomp.until(s[0] >= 41)), outputs_info=[h], n_steps=1000
    )
    fed, _ = symcomp.scan(
        lambda row, s: ([s + T.dot(row, s), T.exp(s)], symcomp.until(s[0] >= 7)),
        sequences=[x], outputs_info=[h, None],
    )  # fmt: skip
    mixed, _ = symcomp.scan(
        lambda s: (T.tanh(s * 2) + 1 + T.dot(s, s), symcomp.until(s[0] >= 98)),
        outputs_info=[h], n_steps=77,
    )  # fmt: skip
    return {
        "all": [counted * 2], "last": [counted[-1]], "sum": [counted[-1].sum()],
        "fed": [*fed, h * 2], "never": [mixed[-1], mixed],
    }  # fmt: skip


@pytest.mark.parametrize("which", ["all", "last", "sum", "fed", "never"])
def test_loops_that_end_early(eager: Emulator, which: str) -> None:
    """The latest run with these shapes tells what they take."""
    x, h = T.fmatrix("x"), T.fvector("h")
    with config.change_flags(device="emu"):
        outputs = [gpu.to_gpu(z, "emu") for z in until_loops(x, h)[which]]
        f = symcomp.function([x, h], outputs, on_unused_input="ignore")
    values = array(50, 20) * np.float32(0.1), np.zeros(20, "float32")
    f(*values)
    found = usage(f, *values).allocated
    assert found == taken(eager, f, values) == taken(eager, f, values)
    assert usage(f, array(50, 21), np.zeros(21, "float32")).allocated is None


def test_a_branch_is_known_when_it_was_taken(eager: Emulator) -> None:
    c, x = T.lscalar("c"), T.fmatrix("x")
    with config.change_flags(device="emu"):
        y = T.dot(x, x)
        z = ifelse(c, T.exp(T.dot(y, y)), T.tanh(y).sum(axis=0, keepdims=True))
        f = symcomp.function([c, x], gpu.to_gpu(z * 2, "emu"))
    values = array(6, 6)
    f(1, values)
    report = usage(f, 1, (6, 6))
    assert report.peak > 0
    f(0, values)
    for which in (0, 1):
        known = usage(f, which, (6, 6)).allocated
        assert known is None or known >= taken(eager, f, [which, values])


def test_loops_whose_steps_the_host_calls(eager: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with config.change_flags(device="emu"):
        hs, _ = symcomp.scan(
            lambda row, s: ifelse(s.sum() > 1, T.tanh(s * 2), s + row), x, T.zeros_like(h)
        )
        f = symcomp.function([x, h], hs[-1])
    f(array(4, 3), array(3))
    found = usage(f, (4, 3), (3,))
    assert found.allocated is None and found.peak > 0


def test_functions_without_devices(eager: Emulator) -> None:
    x = T.fmatrix("x")
    assert symcomp.function([x], T.exp(x)).memory_report((3, 3)).devices == ()


@pytest.mark.usefixtures("unmerged")
def test_freeing_gives_arenas_back(eager: Emulator) -> None:
    f, w = training()
    f(array(5, 30))
    used = eager.pool.used
    arena = next(
        n.op.program.plans[0].plan.arena
        for n in f.maker.fgraph.toposort()
        if hasattr(n.op, "program")
    )
    f.free()
    assert eager.pool.used == used - arena < used


def test_two_devices(eager: Emulator) -> None:
    x = T.fmatrix("x")
    f = symcomp.function([x], [gpu.to_gpu(T.exp(x), "emu"), gpu.to_gpu(T.sqr(x), "emu1")])
    here, there = f.memory_report((4, 5)).devices
    assert (here.device, there.device) == ("emu", "emu1")
    assert here.results == there.results == 80
