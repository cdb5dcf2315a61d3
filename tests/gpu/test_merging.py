"""Launches of one block that follow one another, as one launch."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.cvm.machine import DeviceRegion, Recorded
from symcomp.errors import IndexOutOfRangeError
from symcomp.gpu import merging
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.execution import ready
from symcomp.gpu.kernels import small_products
from symcomp.gpu.kernels.copies import TYPES, copy_kernel
from symcomp.gpu.merging import joined
from symcomp.gpu.plan import all_calls
from symcomp.gpu.planner import Planner
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array, check, check_loops
from symcomp.tests.gpu.test_regions import region_of
from symcomp.tests.gpu.test_written_states import STEPS

on_device = config.change_flags(device=DEVICE)


@contextmanager
def apart() -> Iterator[None]:
    """Leave launches as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEWEST_SAVED", sys.maxsize)
        yield


def kernels_of(f: Any) -> list[Any]:
    """Return the launches of the region of a function."""
    return [c for c in all_calls(region_of(f).plans[0].plan.calls) if c.launch is not None]


def check_both(inputs: Any, outputs: Any, *values: Any, orders: Any = ORDERS) -> tuple[Any, Any]:
    """Require the same bits with merged launches and without; return both functions."""
    outputs = [gpu.to_gpu(z, DEVICE) for z in outputs]
    with on_device:
        f, g = (symcomp.function(inputs, outputs) for _ in range(2))
    driver = gpu.driver_of(DEVICE)
    for order in orders if isinstance(driver, Emulator) else orders[:1]:
        driver.order = order
        found = [z.get() for z in f(*values)]
        with apart():
            wanted = [z.get() for z in g(*values)]
        for one, other in zip(found, wanted, strict=True):
            assert one.tobytes() == other.tobytes()
    return f, g


def chain(x: Any, w: Any, n: int = 50) -> Any:
    for _ in range(n):
        x = T.tanh(T.dot(x, w))
    return x


def test_a_chain_of_small_ops_is_few_launches(emu: Emulator) -> None:
    w = T.fmatrix("w")
    value = np.array([[0.9, 0.3], [-0.4, 0.8]], "float32")
    f, g = check_both([w], [chain(w, w)], value)
    assert [len(kernels_of(x)) for x in (f, g)] == [2, 100]
    emu.counters.clear()
    f(value)
    assert emu.counters.launches == 2
    # Both launches have two functions, and their order is not in the text.
    kernels = {call.launch.kernel for call in kernels_of(f)}
    assert len(kernels) <= 2
    check([w], chain(w, w), [value])


def test_blocks_of_several_sizes_with_shared_memory(emu: Emulator) -> None:
    """Means of 100, 400 and 1000 elements are made by 32, 64 and 256 threads."""
    x, y, z = T.fvector("x"), T.fvector("y"), T.fmatrix("z")
    a = x - x.mean()
    b = T.exp(y - a.sum()) / T.exp(y).sum()
    c = T.nnet.softmax(z * b.max())
    d = c.sum(axis=0) + (z - c.max(axis=0)).prod(axis=0)
    outputs = [a, b, c, d, T.cumsum(d), T.argmax(z, axis=1), T.sort(d)]
    values = array(100), array(400), array(3, 1000)
    f, g = check_both([x, y, z], outputs, *values)
    threads = {call.launch.block[0] for call in kernels_of(g) if call.launch.grid == (1, 1, 1)}
    assert {32, 64, 256} <= threads and len(kernels_of(f)) < len(kernels_of(g)) - 2
    check([x, y, z], outputs, values, 256)


def test_threads_wait_only_where_they_may_read_what_others_write(emu: Emulator) -> None:
    x = T.fmatrix("x")
    parts = [T.exp(x[:, :n]) for n in (3, 4, 5, 6)]  # formulas of several lengths
    f, _ = check_both([x], [*parts, parts[0] @ x[:3, :2]], array(5, 7))
    (call,) = kernels_of(f)
    words = np.frombuffer(bytes(call.launch.parameters), "uint64")
    waits = [int(word >> 16) & 1 for word in words[1 : 1 + int(words[0])].tolist()]
    assert waits == [0, 0, 0, 0, 1]


def test_errors_tell_the_op(emu: Emulator) -> None:
    x, i, j = T.fvector("x"), T.lvector("i"), T.lvector("j")
    first = T.tanh(x)[i]
    outputs = [T.exp(first.sum() * x)[j].cumsum(), first]
    f, _ = check_both([x, i, j], outputs, array(5), np.arange(3), np.arange(4))
    assert any(call.can_fail and "; " in call.label for call in kernels_of(f))
    begin = test_errors_tell_the_op.__code__.co_firstlineno
    for k, given in ((2, (np.array([9]), np.arange(4))), (3, (np.arange(3), np.array([5])))):
        line = f"Subtensor.*test_merging.py:{begin + k} "
        with pytest.raises(IndexOutOfRangeError, match=line):
            f(array(5), *given)[0].get()


def test_the_error_of_the_first_part_is_told(emu: Emulator) -> None:
    """The first thread comes to the error of the second part before others to that of the first."""
    x, i, j = T.fvector("x"), T.lvector("i"), T.lvector("j")
    outputs = [x[i], x[::-1][j], x[1:][j], x[2:][j]]
    f, g = check_both([x, i, j], outputs, array(5), np.zeros(200, int), np.arange(3))
    (call,) = kernels_of(f)
    driver = gpu.driver_of(DEVICE)
    for order in ORDERS if isinstance(driver, Emulator) else (0, 0):
        driver.order = order
        for one in (f, g):
            with pytest.raises(IndexOutOfRangeError, match="index 9 is"):
                one(array(5), np.repeat([0, 9], [200, 1]), np.array([7, 0, 1]))[0].get()


def test_values_between_parts_lie_in_shared_memory(emu: Emulator) -> None:
    w, x = T.fmatrix("w"), T.fvector("x")
    f, g = check_both([w], [chain(w, w)], array(3, 3))
    arenas = [region_of(one).plans[0].plan.arena for one in (f, g)]
    assert arenas[0] <= 256 < arenas[1]  # one value between two launches
    z = x
    for _ in range(8):
        z = T.tanh(T.cumsum(z)) / 100
    f, _ = check_both([x], [z], array(1000))
    assert len(kernels_of(f)) == 1
    # Of 15 values of 4000 bytes, four have room.
    assert region_of(f).plans[0].plan.arena == 11 * 4096


def test_small_graphs_stay_as_they_are(emu: Emulator) -> None:
    w = T.fmatrix("w")
    f, _ = check_both([w], [T.tanh(T.dot(w, w)).sum()], array(3, 3))
    assert len(kernels_of(f)) == 2  # a kernel for both would be one more to compile


def test_steps_of_loops(emu: Emulator) -> None:
    w, x = T.fmatrix("w"), T.fmatrix("x")
    states, _ = symcomp.scan(
        lambda row, h: T.tanh(T.dot(w, h) + row) + h.sum(), x, T.zeros(4, "float32")
    )
    loss = T.sqr(states).sum()
    outputs = [states, loss, *symcomp.grad(loss, [w, x])]
    values = array(4, 4), array(6, 4)
    f, g = check_both([w, x], outputs, *values)
    counts = []
    for one in (f, g):
        emu.counters.clear()
        one(*values)
        counts.append(emu.counters.launches)
    assert counts[0] <= counts[1] - 3 * 6
    check_loops([w, x], outputs, values)


def test_loops_that_end_early_and_loops_in_loops(emu: Emulator) -> None:
    w, x, stop = T.fmatrix("w"), T.fvector("x"), T.fscalar("stop")

    def step(h: Any) -> Any:
        new = T.tanh(T.dot(w, h)) + x
        return new, symcomp.until(new.sum() > stop)

    states, _ = symcomp.scan(step, outputs_info=[x * 0], n_steps=60)
    weights = np.eye(3, dtype="float32")
    check_loops([w, x, stop], states, [weights, np.full(3, 0.01, "float32"), np.float32(1.5)])

    def outer(row: Any, h: Any) -> Any:
        inside, _ = symcomp.scan(lambda g: T.tanh(T.dot(w, g) + row), None, h, n_steps=3)
        return inside[-1] * row.sum()

    rows = T.fmatrix("rows")
    states, _ = symcomp.scan(outer, rows, x * 0)
    check_both([w, x, rows], [states], weights, array(3), array(5, 3))
    check_loops([w, x, rows], states, [weights, array(3), array(5, 3)])


def test_in_graphs(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True) if isinstance(emu, Emulator) else emu
    set_driver(DEVICE, driver)
    w = T.fmatrix("w")
    with on_device:
        v = symcomp.shared(array(2, 2), name="v")
        z = chain(v, v, 200)  # seven launches
        f = symcomp.function([], gpu.to_gpu(z, DEVICE), updates=[(v, v + 0.001 * z)])
    g = symcomp.function([w], [chain(w, w, 200), w + np.float32(0.001) * chain(w, w, 200)])
    wanted = array(2, 2)
    for _ in range(12):
        found = f().get()
        result, wanted = g(wanted)
        np.testing.assert_allclose(found, result, rtol=1e-3, atol=1e-7)
    assert driver.counters.graphs > 4 and driver.counters.launches <= 12 * 8
    set_driver(DEVICE, emu)


def test_profiles_name_all_parts(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_device:
        f = symcomp.function([x], gpu.to_gpu(T.exp(chain(x, x, 3).sum(axis=0)), DEVICE))
    f(array(3, 3))
    timeline = Timeline()
    Recorded(f, timeline)(array(3, 3))
    timeline.finish()
    (label,) = [label for _, kind, label in timeline.totals if kind == "kernel"]
    assert label.startswith("3 x Dot (") and label.count("; ") >= 2
    assert "2 x tanh (" in label and "sum{axis=0}" in label and "test_merging.py" in label
    assert joined(["a", "b", "a"]) == "2 x a; b"


def test_small_products_are_no_calls_of_cublas(emu: Emulator) -> None:
    if not isinstance(emu, Emulator):
        pytest.skip("stand-ins are for the emulator")
    with stand_ins(emu, "cublas", blocks_multiply=True) as (cublas,):
        w = T.fmatrix("w")
        before = cublas.fake_calls()
        f, _ = check_both([w], [chain(w, w, 4)], array(6, 6))
        assert len(kernels_of(f)) == 1 and cublas.fake_calls() == before
        check([w], T.dot(w, w), [array(60, 60)])
        assert cublas.fake_calls() > before


SHAPES = [(1, 1, 1), (3, 4, 5), (2, 3, 200), (1, 1, 900), (100, 1, 100), (17, 31, 1), (16, 16, 16)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "int32", "bool"])
def test_small_products(emu: Emulator, m: int, n: int, k: int, dtype: str) -> None:
    x, y = (T.matrix(name, dtype=dtype) for name in "xy")
    one, other = abs(array(m, k, dtype=dtype)), abs(array(k, n, dtype=dtype))
    if dtype == "complex64":
        one, other = one + 1j * one[::-1], other - 2j * other
    values = [v.astype(dtype) if dtype != "int32" else (v * 9).astype(dtype) for v in (one, other)]
    names = []

    def noted(*given: Any, made: Callable[..., Any] = small_products.small_product_kernel) -> Any:
        names.append(given)
        return made(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_products, "small_product_kernel", noted)
        units = 256 if dtype in ("float16", "complex64") else 64
        a, b = gpu.to_gpu(x, DEVICE), gpu.to_gpu(y, DEVICE)
        check([x, y], [T.dot(a, b), T.dot(b.T, a.T)], values, units, on_host=True)
    assert names


def test_small_products_are_scaled_and_stacked(emu: Emulator) -> None:
    x, y, c = T.dmatrix("x"), T.dmatrix("y"), T.dmatrix("c")
    a, b = T.dtensor3("a"), T.dtensor3("b")
    outputs = [2.5 * T.dot(x, y) + c * 0.5, c[0] - T.dot(y.T, x[0]), T.outer(x[0], c[1]) + 3 * x.T]
    d = lambda *shape: array(*shape, dtype="float64")  # noqa: E731
    check([x, y, c], outputs[:2], [d(4, 5), d(5, 6), d(4, 6)])
    check([x, c], outputs[2], [d(5, 5), d(4, 5)], on_host=True)
    products = [T.batched_dot(a, b), T.batched_dot(a[:, ::2], b[::-1])]
    check([a, b], products, [d(6, 4, 9), d(6, 9, 3)])


@pytest.mark.parametrize("n", [4, 5, 1000])
def test_all_steps_of_a_loop_are_one_launch(emu: Emulator, n: int) -> None:
    """States of several steps before, kept ones and others by turns, sequences of any strides."""
    w, x, y = T.fmatrix("w"), T.fmatrix("x"), T.fmatrix("y")
    (hs, gs, ks), _ = symcomp.scan(
        lambda row, other, before, h, g: (
            T.tanh(T.dot(w, h) + row - before), g * 0.5 + T.dot(w, other), h.sum() + g,
        ),
        [x[::-1], y[:, 1:]],
        [{"initial": T.zeros((2, 3), "float32"), "taps": [-2, -1]}, T.ones(3, "float32"), None],
    )  # fmt: skip
    outputs = [hs, gs[-1], ks.sum(axis=0)]
    values = array(3, 3), array(n, 3), array(n, 4)
    f, _ = check_both([w, x, y], outputs, *values, orders=ORDERS if n < 10 else (0,))
    labels = [call.label for call in kernels_of(f)]
    assert sum(label.startswith(f"{n} steps: ") for label in labels) == 1 and len(labels) <= 4
    assert not any(call.step for call in region_of(f).plans[0].plan.calls)
    check_loops([w, x, y], outputs, values, 64 if n < 10 else 4096)


@pytest.mark.parametrize("step", STEPS)
def test_states_that_steps_write_to(emu: Emulator, step: Any) -> None:
    start, n = T.fvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(step, T.arange(1, n), start)
    f = check_loops([start, n], rows[-1], [array(12), 6])
    assert [call.label for call in kernels_of(f)][-1].startswith("5 steps: ")


def test_copies_and_clears_are_parts(emu: Emulator) -> None:
    x, start = T.fmatrix("x"), T.fvector("start")
    states, _ = symcomp.scan(
        lambda row, h: T.inc_subtensor(T.concatenate([row, h])[1:5], h[:4])[1:6] * 2, x, start
    )
    outputs = [states, symcomp.grad(T.sqr(states).sum(), x)]
    values = array(6, 4), array(5)
    f, g = check_both([x, start], outputs, *values)
    labels = [call.label for call in kernels_of(f)]
    assert sum(label.startswith("6 steps: ") for label in labels) == 2
    steps = [c for call in region_of(g).plans[0].plan.calls if call.step for c in call.step.calls]
    assert {call.kind for call in steps} == {"launch", "copy"}
    check_loops([x, start], outputs, values)


@pytest.mark.parametrize("unit", TYPES)
@pytest.mark.parametrize("is_clear", [False, True])
def test_copies_by_units_of_bytes(emu: Emulator, unit: int, is_clear: bool) -> None:
    planner = Planner(emu, {})
    source = gpu.to_device(np.arange(1, 1 + 64 * unit, dtype="uint8"), DEVICE)
    given = planner.input(0, "uint8", (64 * unit,), (1,), True)
    found = planner.new("uint8", (64 * unit,))
    kernel = copy_kernel(unit, is_clear)
    planner.launch(kernel, [1], [64], [found] if is_clear else [found, given])
    layout = source.dtype, source.shape, source.strides, True
    region = DeviceRegion(has_arrays=True)
    region.plans = [ready(emu, planner.finish([found]), [layout], "test")]
    wanted = np.zeros(64 * unit, "uint8") if is_clear else source.get()
    np.testing.assert_array_equal(region(source)[0].get(), wanted)


def test_few_blocks_are_one(emu: Emulator) -> None:
    """A block does the work of four, but not of five, and not of long functions."""
    x = T.fvector("x")
    states, _ = symcomp.scan(lambda h: T.tanh(h) * 1.5, None, x, n_steps=5)
    long, _ = symcomp.scan(lambda h: T.gammaln(h) * 1.5, None, x, n_steps=5)
    for z, n, merged in ((states, 1000, 1), (states, 1200, 0), (long, 1000, 0), (long, 200, 1)):
        f, _ = check_both([x], [z], abs(array(n)) + 1, orders=(0, 2))
        labels = [call.label for call in kernels_of(f)]
        assert sum("5 steps: " in label for label in labels) == merged, (n, labels)


def test_inner_loops_are_launches_of_outer_ones(emu: Emulator) -> None:
    w, rows = T.fmatrix("w"), T.ftensor3("rows")

    def outer(block: Any, h: Any) -> Any:
        inside, _ = symcomp.scan(lambda row, g: T.tanh(T.dot(w, g) + row), block, h)
        return inside[-1], inside.sum(axis=0)

    (hs, gs), _ = symcomp.scan(outer, rows, [T.zeros(3, "float32"), None])
    values = array(3, 3), array(5, 6, 3)
    f, _ = check_both([w, rows], [hs, gs], *values)
    calls = kernels_of(f)
    assert any("6 steps: " in call.label for call in calls)
    (loop,) = [call for call in region_of(f).plans[0].plan.calls if call.step is not None]
    assert loop.repeats == 5 and len(loop.step.calls) <= 4
    check_loops([w, rows], [hs, gs], values)


def test_errors_in_steps_tell_the_op(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    begin = test_errors_in_steps_tell_the_op.__code__.co_firstlineno + 4
    states, _ = symcomp.scan(
        lambda k, h: T.tanh(h + x[k]) * h.sum(), i, T.zeros(4, "float32")
    )
    f, _ = check_both([x, i], [states], array(5, 4), np.arange(5))
    (call,) = [call for call in kernels_of(f) if call.label.startswith("5 steps: ")]
    assert call.can_fail
    with pytest.raises(IndexOutOfRangeError, match=rf"py:{begin} .*: index 7 .* length 5"):
        f(array(5, 4), np.array([0, 1, 7, 8, 2]))[0].get()


def test_long_loops_need_no_chunks(emu: Emulator) -> None:
    w, x = T.fmatrix("w"), T.fmatrix("x")
    states, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(w, h)) + row, x, T.zeros(3, "float32"))
    with on_device:
        f = symcomp.function([w, x], gpu.to_gpu(states, DEVICE))
    values = array(3, 3), array(5000, 3)
    found = f(*values).get()
    assert len(kernels_of(f)) <= 2 and not any(c.step for c in region_of(f).plans[0].plan.calls)
    wanted = symcomp.function([w, x], states)(*values)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
