"""Regions as functions in C: no Python in a call, kept memory, and errors when there is none."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.cvm.machine import DeviceMemory, rounded
from symcomp.gpu import DeviceMemoryError
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.region import DeviceGraph
from symcomp.tests.gpu.running import DEVICE, functions_called

on_emu = config.change_flags(device=DEVICE)


def region_of(f: Any) -> Any:
    (program,) = [n.op.program for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    return program


def steps(**options: Any) -> Any:
    """Return a training step without arguments, and its weights."""
    with on_emu:
        w = symcomp.shared(np.full((4, 3), 0.5, "float32"), name="w")
        x = symcomp.shared(np.ones((5, 4), "float32"))
        loss = T.sqr(T.tanh(T.dot(x, w))).mean()
        updates = [(w, w - np.float32(0.1) * symcomp.grad(loss, w))]
        return symcomp.function([], gpu.to_gpu(loss, DEVICE), updates=updates, **options), w


def test_a_step_runs_no_python(emu: Emulator) -> None:
    f, w = steps()
    losses = [f() for _ in range(3)]
    emu.wait()
    losses.append(f())
    assert functions_called(lambda: losses.append(f())) == []
    assert emu.counters.waits == 1 and "region(" in str(f.plan())
    assert len({float(loss) for loss in losses}) == 5
    assert (region_of(f).made, region_of(f).repeated) == (1, 4)
    assert w.get_value().max() < 0.5


def test_plans_for_several_layouts_are_found_again(emu: Emulator) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    with on_emu:
        f = symcomp.function([x, n], T.exp(x)[:n].sum(axis=0))
    arrays = [
        np.ones((3, 2), "f4"),
        np.ones((2, 3), "f4").T,
        np.ones((3, 4), "f4"),
        np.ones((0, 2), "f4"),
    ]
    for _ in range(2):
        for value in arrays:
            for k in (1, 2):
                np.testing.assert_allclose(f(value, k), np.exp(value)[:k].sum(axis=0), rtol=1e-6)
    program = region_of(f)
    assert program.made + program.repeated == 16 and program.made <= 8
    with config.change_flags(most_plans=1):
        for value in arrays:
            f(value, 3)
    assert len(program.plans) == 1


def test_threads_share_a_region(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.dot(T.dot(x, x), x).sum())
    values = [np.full((3, 3), k, "float32") for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda v: float(f(v)), values * 5))
    assert found == [float(v[0, 0] ** 3 * 81) for v in values] * 5


def test_no_memory_names_who_needs_what(emu: Emulator) -> None:
    if not isinstance(emu, Emulator):
        pytest.skip("the memory of a card is not bounded")
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], gpu.to_gpu(T.dot(T.exp(x), x), DEVICE))
    small = np.ones((10, 10), "float32")
    f(small)
    emu.wait()
    emu.pool.limit = 4 * 400
    f(small)
    emu.wait()
    emu.pool.limit = emu.pool.used + 1000
    with pytest.raises(DeviceMemoryError) as caught:
        f(np.ones((12, 12), "float32"))
    said = str(caught.value)
    assert "no 768 bytes for intermediate values of DeviceGraph{2 ops" in said
    assert "test_regions.py" in said and f"of at most {emu.pool.limit} are in use" in said
    assert isinstance(caught.value, MemoryError)
    emu.pool.limit = 0
    assert f(np.ones((12, 12), "float32")).shape == (12, 12)


def test_memory_kept_for_the_next_call_is_given_up_for_others(emu: Emulator) -> None:
    if not isinstance(emu, Emulator):
        pytest.skip("the memory of a card is not bounded")
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function([x], T.dot(T.dot(T.dot(x, x), x), x).sum())
    f(np.ones((100, 100), "float32"))
    emu.allocate(1)
    kept = emu.pool.used
    assert kept >= 4 * 100 * 100  # the arena
    emu.pool.limit = kept + 100
    memory = emu.allocate(200, "a test")
    assert emu.pool.used <= 400
    with pytest.raises(DeviceMemoryError, match=r"no 100000 bytes for a test;"):
        emu.allocate(100000, "a test")
    del memory
    assert f(np.ones((2, 2), "float32")) == 32


def test_blocks_are_used_again() -> None:
    taken: list[DeviceMemory] = []
    pool = Emulator().pool
    taken += [pool.allocate(n) for n in (10, 0, 100)]
    assert pool.used == 110 and len({m.address for m in taken}) == 3
    assert all(m.is_pooled and m.address % 256 == 0 for m in taken)
    taken.clear()
    assert (pool.used, pool.cached) == (0, 0)
    assert not DeviceMemory(64, 8).is_pooled and rounded(1) == 512


def test_arrays_are_let_go_within_a_call(emu: Emulator) -> None:
    """Memory of values that nothing reads any more is there for later ones, in kept plans, too."""
    x, seen = T.fmatrix("x"), []

    @symcomp.as_op([T.fmatrix], [T.fmatrix])
    def noted(value: Any) -> Any:
        seen.append(emu.pool.used)
        return value * 1

    with on_emu:
        f = symcomp.function([x], noted(T.exp(noted(T.tanh(T.dot(x, x))))))
    for _ in range(3):
        f(np.eye(5, dtype="float32"))
    between_calls = emu.pool.used
    assert f.repeated == 2 and seen[2:] == [between_calls] * 4
