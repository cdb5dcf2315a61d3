"""Loops of very many steps, whose chunks are graphs of the driver. The bounds are smaller here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.cvm.machine import Recorded
from symcomp.gpu import chunks
from symcomp.gpu.chunks import chunk_length
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.plan import DeviceCall, LoopStep
from symcomp.gpu.region import DeviceGraph
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    assert_close,
    check_loops,
    compile_both,
    products_by,
)

# Steps of one launch each need no chunks.
pytestmark = pytest.mark.usefixtures("unmerged")
on_emu = config.change_flags(device=DEVICE)


@pytest.fixture
def short(emu: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a driver for whose regions 40 pieces of work are many."""
    monkeypatch.setattr(chunks, "MOST_PIECES", 40)
    monkeypatch.setattr(chunks, "FEWEST_PIECES", 30)
    monkeypatch.setattr(chunks, "PIECES_OF_CHUNK", 20)
    yield emu


def counters_of(emu: Any, f: Any, *values: Any) -> Any:
    """Return the counters of a call."""
    emu.counters.clear()
    f(*values)
    return emu.counters


def plan_of(f: Any) -> str:
    """Return the text of the latest plan of the only region."""
    (region,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    return str(region.program.plans[0].plan)


@pytest.mark.parametrize("steps", [40, 43, 47])
def test_chunks_have_the_results_of_steps(short: Any, steps: int) -> None:
    """Rows of states two steps back, outputs, carried values, rows in any layout; no rest, and
    rests of even and odd numbers of steps.
    """
    x, h, w = T.fmatrix("x"), T.fmatrix("h"), T.fmatrix("w")

    def step(row: Any, back: Any, last: Any, h: Any, y: Any) -> Any:
        new = T.tanh(T.dot(last, w) + row) - back
        return new, h * 0.5 + y[::-1], y + h * row, new.sum() * row

    (hs, us, ys, zs), _ = symcomp.scan(
        step, T.tanh(x.T), [{"initial": h, "taps": [-2, -1]}, h[0], h[1], None]
    )
    outputs = [hs, us[-1], ys[-1], zs]
    f = check_loops([x, h, w], outputs, [array(3, steps), array(2, 3), array(3, 3)], units=512)
    assert "of 1 steps" in plan_of(f) and short.counters.graphs >= 4


def test_gradients_and_new_arguments(short: Any) -> None:
    x, w = T.fmatrix("x"), T.fmatrix("w")
    hs, _ = symcomp.scan(
        lambda row, h, w: T.tanh(T.dot(h, w) + row), x, T.zeros(3, "float32"), w
    )
    plain, f = compile_both([x, w], [hs[-1], T.grad(T.sqr(hs).sum(), w)])
    for k in (1, 2, 3):
        for found, wanted in zip(
            f(array(48, 3), k * array(3, 3)), plain(array(48, 3), k * array(3, 3)), strict=True
        ):
            assert_close(found, wanted, 256)
    assert counters_of(short, f, array(48, 3), array(3, 3)).graphs >= 8


def test_a_chunk_is_recorded_once(short: Any) -> None:
    """The rows of each call lie elsewhere; what a chunk reads and writes does not."""
    x = gpu.DeviceType(DEVICE, "float32", (None, None))("x")
    with on_emu:
        w = symcomp.shared(array(3, 3), name="w")
        hs, _ = symcomp.scan(
            lambda row, h: T.tanh(T.dot(h, w) + row), gpu.to_cpu(x), T.zeros(3, "float32")
        )
        f = symcomp.function([x], [gpu.to_gpu(hs, DEVICE), gpu.to_gpu(hs[-1], DEVICE)])
    kept = [f(gpu.to_device(k * array(48, 3), DEVICE)) for k in range(3)]
    first = short.counters.graphs
    assert first > 0 and short.counters.recorded == 1
    with config.change_flags(gpu_graphs=False):
        for k, results in enumerate(kept):
            for one, other in zip(
                results, f(gpu.to_device(k * array(48, 3), DEVICE)), strict=True
            ):
                np.testing.assert_array_equal(one.get(), other.get())
    assert short.counters.graphs == first


def test_a_graph_takes_few_calls_of_the_driver(short: Any) -> None:
    """The work that is enqueued by itself grows with the chunks, not with the steps."""
    x, w = T.fmatrix("x"), T.fmatrix("w")
    hs, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros(3, "float32"))
    with on_emu:
        f = symcomp.function([x, w], hs[-1])
    counters = counters_of(short, f, array(80, 3), array(3, 3))
    # A chunk has ten steps of two launches; four of a launch and a call of cuBLAS.
    graphs = 8 if products_by(short) == "kernel" else 20
    assert counters.launches == 160 and counters.graphs == graphs


def test_loops_in_loops(short: Any) -> None:
    x, w = T.ftensor3("x"), T.fmatrix("w")

    def outer(block: Any, h: Any) -> Any:
        return symcomp.scan(lambda row, h: T.tanh(T.dot(h, w) + row), block, h)[0][-1]

    hs, _ = symcomp.scan(outer, x, T.zeros(3, "float32"))
    f = check_loops([x, w], [hs, hs[-1]], [array(17, 4, 3), array(3, 3)])
    assert short.counters.graphs >= 4 and "of 1 steps" in plan_of(f)


def test_profiles_tell_of_each_step(short: Any) -> None:
    x = T.fmatrix("x")
    hs, _ = symcomp.scan(lambda row, h: T.tanh(row + h), x, T.zeros(3, "float32"))
    with on_emu:
        f = symcomp.function([x], hs[-1])
    before = f(array(80, 3))
    timeline = Timeline()
    np.testing.assert_array_equal(Recorded(f, timeline)(array(80, 3)), before)
    timeline.finish()
    assert sum(t.count for (_, kind, _), t in timeline.totals.items() if kind == "kernel") == 80


def step_of(pieces: int) -> list[DeviceCall]:
    return [DeviceCall("clear", "")] * pieces


@pytest.mark.parametrize(
    ("pieces", "n", "rows", "depths", "length"),
    [
        (2, 10000, [100], [1], 250),  # the largest without a rest
        (2, 10007, [100], [1], 244),  # three steps are left over
        (2, 500, [100], [1], 0),  # few pieces of work
        (1, 1024, [100], [], 256),
        (600, 100, [100], [1], 2),  # long steps
        (3000, 100, [100], [1], 0),
        (2, 10000, [2**23], [1], 0),  # large rows
        (2, 10000, [2**19, 2**19], [1], 16),
        (2, 10000, [100], [300], 0),  # rows from before the latest chunk
        (0, 10000, [100], [], 0),
    ],
)
def test_lengths_of_chunks(
    pieces: int, n: int, rows: list[int], depths: list[int], length: int
) -> None:
    assert chunk_length(step_of(pieces), n, rows, depths) == length


def test_steps_that_cannot_be_recorded_are_no_chunks() -> None:
    library: Any = type("Library", (), {"is_recordable": False})()
    inner = LoopStep([DeviceCall("library", "", library=library)])
    step = [DeviceCall("loop", "", step=inner, repeats=2)]
    assert chunk_length(step, 10000, [100], [1]) == 0
