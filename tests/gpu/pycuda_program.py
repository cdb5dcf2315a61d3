"""A program that uses a card by PyCUDA; ``test_pycuda.py`` runs it over a driver without one.

Usage: python pycuda_program.py DIRECTORY [two], for compiled kernels; with "two" it uses two cards.
"""

import ctypes
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.cvm.machine import Recorded
from symcomp.gpu import (
    DeviceUnavailable,
    chunks,
    device_names,
    driver_of,
    memory_info,
    merging,
    to_gpu,
)
from symcomp.gpu.driver import compiler
from symcomp.gpu.driver.emulator import FLAGS, beginning
from symcomp.gpu.driver.timeline import Timeline
from symcomp.tests.gpu.running import assert_close
from symcomp.tests.gpu.test_functions import network

KERNEL = re.compile(r'^extern "C" __global__ void (?:__launch_bounds__\(.+?\) )?(\w+)\(', re.M)


class HostCompiler:
    """Compiles kernels for the driver of the test."""

    version = "host"

    def compile(self, source: str, arch: str) -> bytes:
        threads = (files("symcomp.gpu.driver") / "cuemu_threads.h").read_text("utf-8")
        exports = [f"CUEMU_EXPORT({name})" for name in KERNEL.findall(source)]
        # Two cards may compile one kernel at the same time.
        to = Path(sys.argv[1]) / f"{exports[0][13:-1]}_{threading.get_ident()}.library"
        text = "\n".join([beginning(), threads, source, *exports, ""])
        command = ["gcc", *FLAGS, "-O0", "-", "-o", str(to), "-lm"]
        subprocess.run(command, input=text, text=True, check=True)
        return to.read_bytes()


def train() -> None:
    """Train on the processor and on the card."""
    x, y, loss, updates, params, batch = network()
    f = symcomp.function([x, y], loss, updates=updates)
    with config.change_flags(device="cuda"):
        x, y, loss, updates, moved, batch = network()
        g = symcomp.function([x, y], loss, updates=updates)
    for _ in range(4):
        assert_close(g(*batch), f(*batch), 16)
    for p, q in zip(params, moved, strict=True):
        assert_close(q.get_value(), p.get_value(), 16)
    counters = driver_of("cuda0").counters
    counters.clear()
    for _ in range(5):
        g(*batch)
    assert (counters.allocations, counters.waits, counters.compiled) == (0, 5, 0), counters
    assert counters.pinned == 0, counters
    for _ in range(20):  # until all sets of addresses have been met
        g(*batch)
    counters.clear()
    for _ in range(5):
        g(*batch)
    assert (counters.graphs, counters.recorded) == (5, 0), counters


def keep_losses() -> None:
    """Keep the losses of steps: small arrays have fixed addresses, so that steps are graphs."""
    f, g = (steps_of(device) for device in ("cpu", "cuda"))
    counters = driver_of("cuda0").counters
    counters.clear()
    wanted = [float(f()) for _ in range(50)]
    kept = [g() for _ in range(50)]
    assert counters.graphs > 20 and counters.within > 0, counters
    np.testing.assert_allclose([float(loss.get()) for loss in kept], wanted, rtol=1e-4)


def steps_of(device: str) -> Any:
    """Return a training step without arguments."""
    with config.change_flags(device=device):
        w = symcomp.shared(np.full((4, 4), 0.5, "float32"))
        z = symcomp.shared(np.ones((5, 4), "float32"))
        for _ in range(3):
            z = T.tanh(T.dot(z, w))
        loss = T.sqr(z).mean()
        updates = [(w, w - np.float32(0.1) * symcomp.grad(loss, w))]
        output = loss if device == "cpu" else to_gpu(loss, device)
        return symcomp.function([], output, updates=updates)


def stage_copies() -> None:
    """Copy much to the card without a wait: pinned memory is used again once copies are done."""
    driver = driver_of("cuda0")
    memory = driver.allocate(4096)
    driver.counters.clear()
    for k in range(40):
        driver.to_device(memory, 0, np.full(1024, k, "float32"))
        if k % 4 == 3:
            driver.stream.synchronize()  # behind the back of the machine
    assert 0 < driver.counters.pinned <= 4, driver.counters
    found = gpu.DeviceArray(driver, memory, 0, "float32", (1024,), (4,)).get()
    assert (found == 39).all() and driver.counters.waits == 1


def loop() -> None:
    """Run a loop and its gradient, which launch, copy and clear."""
    x, h = T.fmatrix("x"), T.fvector("h")
    states, _ = symcomp.scan(lambda row, h: T.tanh(row + h * 2), x, h)
    outputs = [states, *symcomp.grad(T.sqr(states).sum(), [x, h])]
    f = symcomp.function([x, h], outputs)
    with config.change_flags(device="cuda"):
        g = symcomp.function([x, h], outputs)
    assert not any(str(node.op).startswith("scan") for node in g.maker.fgraph.toposort())
    counters = driver_of("cuda0").counters
    counters.clear()
    for rows in (5, 1, 0, 6):
        values = np.full((rows, 3), 0.2, "float32"), np.full(3, 0.1, "float32")
        for one, other in zip(g(*values), f(*values), strict=True):
            assert_close(one, other, 64)
    assert counters.waits == 4, counters


def long_loop() -> None:
    """Run a loop that is too long for one graph: its chunks are one."""
    x, w = T.fmatrix("x"), T.fmatrix("w")
    states, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros(3, "float32"))
    f = symcomp.function([x, w], states)
    with config.change_flags(device="cuda"):
        g = symcomp.function([x, w], states)
    counters, driver = driver_of("cuda0").counters, ctypes.CDLL("libcuda.so.1")
    values = np.full((200, 3), 0.1, "float32"), np.eye(3, dtype="float32")
    for recorded_graphs in (1, 0):  # the second call meets the same address of w
        counters.clear()
        launched, enqueued = driver.fakecuda_stat(1), driver.fakecuda_stat(3)
        short = patch.multiple(chunks, MOST_PIECES=100, FEWEST_PIECES=100, PIECES_OF_CHUNK=40)
        with short, patch.object(merging, "FEWEST_SAVED", sys.maxsize):
            found = g(*values)
        launched, enqueued = driver.fakecuda_stat(1) - launched, driver.fakecuda_stat(3) - enqueued
        assert_close(found, f(*values), 64)
        # A chunk has 20 steps of two launches.
        assert (counters.recorded, counters.launches) == (recorded_graphs, 400), counters
        assert enqueued == counters.graphs == 10 and launched == 40 * recorded_graphs


def stop_early() -> None:
    """Run a loop with a condition to stop, whose chunks the host waits for."""
    x, stop = T.fvector("x"), T.fscalar("stop")
    (_, states), _ = symcomp.scan(
        lambda t, h: ((t + 1, T.tanh(h + x)), symcomp.until(T.ge(t + 1, stop))),
        outputs_info=[T.zeros(1, "float32").sum(), T.zeros(3, "float32")], n_steps=100,
    )  # fmt: skip
    f = symcomp.function([x, stop], [states, states[-1]])
    with config.change_flags(device="cuda"):
        g = symcomp.function([x, stop], [states, states[-1]])
    assert not any(str(node.op).startswith("scan") for node in g.maker.fgraph.toposort())
    for last in (1, 6, 200):
        values = np.full(3, 0.2, "float32"), last
        for one, other in zip(g(*values), f(*values), strict=True):
            assert_close(one, other, 64)


def time_a_loop() -> None:
    """Put events around each launch of a loop."""
    x = T.fmatrix("x")
    states, _ = symcomp.scan(lambda row, h: T.tanh(row + h), x, T.zeros(3, "float32"))
    with config.change_flags(device="cuda"):
        f = symcomp.function([x], states.sum())
    f(np.ones((5, 3), "float32"))
    timeline = Timeline()
    Recorded(f, timeline)(np.ones((5, 3), "float32"))
    timeline.finish()
    counts = sorted(t.count for (_, kind, _), t in timeline.totals.items() if kind == "kernel")
    assert counts == [1, 5], timeline.totals


def fail_and_go_on() -> None:
    """Meet an error that arrives late; use several threads, and a fork."""
    m, i = T.fmatrix("m"), T.lvector("i")
    with config.change_flags(device="cuda"):
        f = symcomp.function([m, i], to_gpu((m * 2)[i], "cuda"))
    w = symcomp.shared(np.ones(3, "float32"), device="cuda")
    g = symcomp.function([], updates=[(w, T.tanh(w))])
    g()
    g.sync()
    late = f(np.ones((3, 2), "float32"), [5])
    try:
        f.sync()
        raise AssertionError("no error arrived")
    except IndexError as problem:
        assert "index 5 is out of range" in str(problem)
    values = [np.full((3, 2), k, "float32") for k in range(6)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda value: float(f(value, [1]).get().sum()), values))
    assert found == [4.0 * k for k in range(6)]
    assert late.__cuda_array_interface__["shape"] == (1, 2)
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (lambda: driver_of("cuda0"), lambda: f(values[0], [1]), lambda: g()):
            try:
                call()
            except DeviceUnavailable as problem:
                refused += "fork" in str(problem)
        os._exit(refused != 3)
    assert os.waitpid(child, 0)[1] == 0


def two_cards() -> None:
    """Compute on two cards in turn, in threads, and with copies between them."""
    x = T.fvector("x")
    functions = []
    for device in ("cuda0", "cuda1"):
        with config.change_flags(device=device):
            functions.append(symcomp.function([x], to_gpu(T.exp(x) * 2, device)))
    rows = np.random.default_rng(5).normal(size=(9, 4)).astype("float32")
    for _ in range(3):  # graphs are recorded, and repeated
        found = gpu.map(functions, rows)
        assert [z.device for z in found[:3]] == ["cuda0", "cuda1", "cuda0"]
        for z, row in zip(found, rows, strict=True):
            assert_close(z.get(), 2 * np.exp(row), 4)
    for k, (f, z) in enumerate(zip(functions, found, strict=False)):  # by the main thread
        assert_close(f(rows[k]).get(), z.get(), 0)
    w = symcomp.shared(np.ones(3, "float32"), device="cuda0")
    g = symcomp.function([], updates=[(w, w * 2)])
    counters = driver_of("cuda1").counters
    counters.clear()
    moved = []
    for _ in range(4):
        g()
        own = w.get_value(borrow=True, return_internal_type=True)
        moved.append(gpu.to_device(own, "cuda1"))
    assert (counters.from_peers, counters.waits, counters.to_device) == (48, 0, 0), counters
    assert [float(z.get()[0]) for z in moved] == [2, 4, 8, 16]


if __name__ == "__main__":
    compiler.find_compiler = HostCompiler  # type: ignore[assignment]
    config.compiledir = sys.argv[1]
    if sys.argv[2:] == ["two"]:
        two_cards()
        sys.exit(print("done"))
    assert device_names() == ["cuda0", "emu"]
    assert memory_info("cuda").total > 0
    with patch.object(merging, "FEWEST_SAVED", sys.maxsize):  # each op has its own launches
        train()
        keep_losses()
        time_a_loop()
    loop()
    long_loop()
    stop_early()
    stage_copies()
    fail_and_go_on()
    print("done")
