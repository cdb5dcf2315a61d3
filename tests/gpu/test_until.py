"""Loops with a condition to stop, on devices, where the host enqueues chunks of steps."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import LoadError, ShapeError
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.until import MOST_STEPS, DeviceUntilGraph
from symcomp.ifelse import ifelse
from symcomp.tests.compile.test_saving import rewrite
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    assert_close,
    compile_both,
    functions_called,
    loops,
    ops_on_host,
)

on_emu = config.change_flags(device=DEVICE)


def counting(x: Any, stop: Any, most: int = 70, **options: Any) -> Any:
    """Return the states of a loop whose step of number ``stop`` (from 1 on) is the last."""

    def step(h: Any, t: Any) -> Any:
        return (T.tanh(h + x), t + 1), symcomp.until(T.ge(t + 1, stop))

    start = [T.zeros(3, "float32"), T.zeros(1, "float32").sum()]
    return symcomp.scan(step, outputs_info=start, n_steps=most, **options)[0]


def until_op(f: Any) -> Any:
    """Return the only region of a function that is a loop with a condition."""
    nodes = f.maker.fgraph.toposort()
    (op,) = [n.op for n in nodes if isinstance(n.op, DeviceUntilGraph)]
    return op


@pytest.mark.parametrize("what", ["rows", "last"])
def test_each_step_can_be_the_last(emu: Emulator, what: str) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    hs, ts = counting(x, stop)
    outputs = [hs, ts] if what == "rows" else [hs[-1], ts[-1]]
    plain, f = compile_both([x, stop], outputs)
    assert len(loops(f)) == 1 and not any(n.startswith("scan") for n in ops_on_host(f))
    value = array(3)
    # 0 stops behind the first step, as 1 does; 71 is behind the most steps that there are.
    for last in (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 69, 70, 71):
        for found, wanted in zip(f(value, last), plain(value, last), strict=True):
            assert_close(found, wanted, 64)
    # Chunks are powers of two, whose arrays may begin anywhere.
    assert until_op(f).program.chunks.made <= 2 * MOST_STEPS.bit_length()


def test_the_host_waits_once_for_a_chunk(emu: Emulator) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    with on_emu:
        f = symcomp.function([x, stop], to_gpu(counting(x, stop, 1000)[0], DEVICE))
    f(array(3), 100)
    emu.wait()
    emu.counters.clear()
    assert f(array(3), 100).shape == (100, 3)
    # Chunks of 1, 1, 2, 4, 8, 16, 32, 32 and 32 steps; a condition of each is one byte.
    assert (emu.counters.waits, emu.counters.to_host) == (9, 128)


def test_a_repeated_loop_runs_no_python(emu: Emulator) -> None:
    """Chunks are enqueued, and waited for, in C, and so are steps that are computed again."""
    x, stop = T.fvector("x"), T.fscalar("stop")
    hs, ts = counting(x, stop)
    held = []
    for outputs in ([hs, ts], [hs[-1], ts[-1]]):
        with config.change_flags(kernels=True):
            plain, f = compile_both([x, stop], [*outputs, hs.shape[0]])
        for last in (9, 21, 9, 21):
            held.append((f(array(3), last), plain(array(3), last)))
        assert "python(" not in str(f.plan()), f.plan()
        value, found = (array(3), np.float32(21)), []
        emu.counters.clear()
        assert functions_called(lambda: found.append(f(*value))) == []  # noqa: B023
        # Chunks of 1, 1, 2, 4, 8 and 16 steps, and results.
        assert emu.counters.waits == 7
        held.append((found[0], plain(array(3), 21)))
    for found, wanted in held:
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, 64)


def test_rows_that_are_too_few(emu: Emulator) -> None:
    x, start, n = T.fmatrix("x"), T.fmatrix("start"), T.lscalar("n")
    hs, _ = symcomp.scan(
        lambda row, h1, h2: (h1 + h2 * row, symcomp.until(h1.sum() > 1e9)),
        x, {"initial": start, "taps": [-1, -2]}, n_steps=n,
    )  # fmt: skip
    _, f = compile_both([x, start, n], hs)
    assert loops(f)
    for _ in range(2):
        assert f(array(5, 3), array(2, 3), 5).shape == (5, 3)
        with pytest.raises(ShapeError, match=r"has length 5 .*but 6 steps need 6"):
            f(array(5, 3), array(2, 3), 6)
        with pytest.raises(ShapeError, match=r"starts from 1 rows .*its taps need 2"):
            f(array(5, 3), array(1, 3), 5)


def test_loops_in_threads(emu: Emulator) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    hs, _ = counting(x, stop)
    plain, f = compile_both([x, stop], hs)
    values = [(array(3) + k, last) for k, last in enumerate([1, 5, 17, 40, 70, 3] * 3)]
    wanted = [plain(*given) for given in values]
    with ThreadPoolExecutor(6) as pool:
        for one, other in zip(pool.map(lambda given: f(*given), values), wanted, strict=True):
            assert_close(one, other, 64)


def test_no_steps(emu: Emulator) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    (hs, sums), _ = symcomp.scan(
        lambda h: ((T.tanh(T.dot(h, x)), h.sum(axis=1)), symcomp.until(h.sum() > 1e9)),
        outputs_info=[x, None], n_steps=n,
    )  # fmt: skip
    plain, f = compile_both([x, n], [hs, hs[:2], sums, hs.sum(axis=0)])
    assert loops(f)
    for steps in (0, 1, 3):
        for found, wanted in zip(f(array(3, 3), steps), plain(array(3, 3), steps), strict=True):
            assert_close(found, wanted, 64)
    with pytest.raises(ValueError, match="the number of steps is -1; it must not be negative"):
        f(array(3, 3), -1)
    assert f(np.zeros((0, 0), "float32"), 2)[0].shape == (2, 0, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_taps_sequences_and_outputs(emu: Emulator, dtype: str) -> None:
    x, start = T.tensor("x", dtype=dtype, shape=(None, None)), T.matrix("s", dtype=dtype)
    limit = T.scalar("limit", dtype=dtype)

    def step(row: Any, after: Any, h1: Any, h3: Any, total: Any) -> Any:
        h = T.tanh(row - after * h1 + h3)
        total = total + T.sqr(h).sum()
        return (h, total, T.outer(h, row)), symcomp.until(total > limit)

    (hs, totals, products), _ = symcomp.scan(
        step, {"input": x, "taps": [0, 1]},
        [{"initial": start, "taps": [-1, -3]}, T.zeros(1, dtype).sum(), None],
    )  # fmt: skip
    outputs = [hs, totals[-1], products, hs.shape[0]]
    for last in (False, True):
        given = outputs[1:] if last else outputs
        plain, f = compile_both([x, start, limit], given)
        for rows, bound in ((60, 3), (60, 9), (60, 1e6), (2, 1e6), (60, 0)):
            values = array(rows, 3, dtype=dtype), array(3, 3, dtype=dtype)[:, ::-1], bound
            for found, wanted in zip(f(*values), plain(*values), strict=True):
                assert_close(found, wanted, 1024)
        assert loops(f)


def test_gradients(emu: Emulator) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    hs, _ = counting(x, stop)
    loss = T.sqr(hs[-1]).sum() + hs.mean()
    plain, f = compile_both([x, stop], [loss, symcomp.grad(loss, x)])
    assert len(loops(f)) >= 2 and not any(n.startswith("scan") for n in ops_on_host(f))
    for last in (1, 5, 20):
        for found, wanted in zip(f(array(3), last), plain(array(3), last), strict=True):
            assert_close(found, wanted, 256)


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf])
def test_any_number_but_zero_stops(emu: Emulator, value: float) -> None:
    x = T.fvector("x")
    hs, _ = symcomp.scan(
        lambda row, h: (h + 1, symcomp.until(row)), x, T.zeros(2, "float32")
    )
    plain, f = compile_both([x], [hs, hs[-1]])
    assert loops(f)
    rows = np.zeros(40, "float32")
    rows[11] = value
    for found, wanted in zip(f(rows), plain(rows), strict=True):
        assert_close(found, wanted, 0)
    assert f(rows)[0].shape == (12, 2)


def test_a_step_behind_the_last_reports_no_error(emu: Emulator) -> None:
    m, i, stop = T.fmatrix("m"), T.lvector("i"), T.lscalar("stop")

    def step(k: Any, h: Any) -> Any:
        return T.tanh(m[k] + h), symcomp.until(T.eq(k, stop))

    hs, _ = symcomp.scan(step, i, T.zeros(2, "float32"))
    plain, f = compile_both([m, i, stop], hs)
    assert loops(f)
    positions = np.array([0, 1, 2, 0, 3, 9, 9, 9])
    assert_close(f(array(4, 2), positions, 3), plain(array(4, 2), positions, 3), 64)
    with pytest.raises(IndexError, match=r"test_until.py:\d+.*index 9 is out of range"):
        f(array(4, 2), positions, 7)
    assert_close(f(array(4, 2), positions, 0), plain(array(4, 2), positions, 0), 64)


def test_carried_values_may_change_their_shape(emu: Emulator) -> None:
    x, h, stop = T.fvector("x"), T.fvector("h"), T.fscalar("stop")
    (hs, rows), _ = symcomp.scan(
        lambda row, h: (
            (T.concatenate([h, T.tanh(h[-1:] + row)]), h[:1] * row), symcomp.until(T.ge(row, stop))
        ),
        x, [h, None],
    )  # fmt: skip
    plain, f = compile_both([x, h, stop], [hs[-1], rows])
    assert loops(f)
    numbers = np.arange(20, dtype="float32")
    for last in (0, 1, 2, 6, 12, 40):
        values = numbers, array(2), last
        for found, wanted in zip(f(*values), plain(*values), strict=True):
            assert_close(found, wanted, 64)
    assert f(numbers, array(2), 12)[0].shape == (15,)


def test_loops_in_loops_and_branches(emu: Emulator) -> None:
    x, c, stop = T.fmatrix("x"), T.lscalar("c"), T.fscalar("stop")

    def inner(row: Any) -> Any:
        return symcomp.scan(lambda a, h: T.tanh(a + h), x, row)[0][-1]

    hs, _ = symcomp.scan(
        lambda h, t: ((inner(h), t + 1), symcomp.until(T.ge(t + 1, stop))),
        outputs_info=[x[0], T.zeros(1, "float32").sum()], n_steps=20,
    )  # fmt: skip
    plain, f = compile_both([x, stop], hs)
    assert len(loops(f)) == 2
    for found, wanted in zip(f(array(4, 3), 6), plain(array(4, 3), 6), strict=True):
        assert_close(found, wanted, 64)
    plain, f = compile_both([x, c, stop], ifelse(c, counting(x[0], stop)[0], x))
    for branch in (0, 1):
        assert_close(f(array(4, 3), branch, 9), plain(array(4, 3), branch, 9), 64)
    # A loop around it stays on the host: how many steps there are is known there.
    rows, _ = symcomp.scan(lambda row: counting(row, stop)[0][-1], x)
    plain, f = compile_both([x, stop], T.exp(rows))
    assert any(n.startswith("scan") for n in ops_on_host(f))
    assert_close(f(array(4, 3), 9), plain(array(4, 3), 9), 64)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "DebugMode", "NanGuardMode"])
def test_modes(emu: Emulator, mode: str) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    plain = symcomp.function([x, stop], counting(x, stop)[0])
    with on_emu:
        f = symcomp.function([x, stop], counting(x, stop)[0], mode=mode)
    assert_close(f(array(3), 6), plain(array(3), 6), 64)


def test_updates_and_constants(emu: Emulator) -> None:
    start, bounds = array(3), np.arange(30, dtype="float32")
    found = []
    for device in ("cpu", DEVICE):
        w = symcomp.shared(start, device=device)
        with config.change_flags(device=device):
            hs, _ = symcomp.scan(
                lambda row, h: (T.tanh(h + w) + row, symcomp.until(h.sum() > 40)),  # noqa: B023
                T.constant(bounds), w,
            )  # fmt: skip
            f = symcomp.function([], hs.shape[0], updates=[(w, T.tanh(hs[-1]))])
        found.append(([int(f()) for _ in range(3)], w.get_value()))
    assert loops(f) and found[0][0] == found[1][0]
    assert_close(found[1][1], found[0][1], 64)


@pytest.mark.usefixtures("unmerged")
def test_profiles_tell_the_copies(emu: Emulator) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    with on_emu:
        f = symcomp.function([x, stop], counting(x, stop, 1000)[0], profile=True)
    f(array(3), 20)
    (data,) = f.profile.to_dict()["functions"]
    rows = data["device_work"]
    steps = 1 + 1 + 2 + 4 + 8 + 16
    (back,) = [row for row in rows if row["kind"] == "to host"]
    assert (back["count"], back["bytes"]) == (7, steps + 20 * 12)
    kernels = [row for row in rows if row["kind"] == "kernel"]
    assert any("test_until.py" in row["label"] and row["count"] == steps for row in kernels)


def test_saved_and_pickled(emu: Emulator, tmp_path: Path) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    with on_emu:
        f = symcomp.function([x, stop], counting(x, stop)[0])
    wanted = f(array(3), 11)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(array(3), 11), wanted)
    symcomp.save(tmp_path / "f", f)
    for device in (DEVICE, "cpu"):
        g = symcomp.load(tmp_path / "f", device=device)
        assert bool(loops(g)) == (device != "cpu")
        assert_close(g(array(3), 11), wanted, 64)


def test_files_that_say_what_cannot_be(emu: Emulator, tmp_path: Path) -> None:
    x, stop = T.fvector("x"), T.fscalar("stop")
    with on_emu:
        symcomp.save(tmp_path / "f", symcomp.function([x, stop], counting(x, stop)[0]))
        symcomp.save(tmp_path / "g", symcomp.function([x], T.tanh(x)))
    for name, old, new in (
        ("f", "until:DeviceUntilGraph", "region:DeviceGraph"),
        ("f", "loops:DeviceUntil", "loops:DeviceLoop"),
        ("g", "region:DeviceGraph", "until:DeviceUntilGraph"),
    ):
        changed = tmp_path / "changed"
        changed.write_bytes((tmp_path / name).read_bytes())
        rewrite(changed, lambda text: class_renamed(text, old, new))  # noqa: B023
        with pytest.raises(LoadError, match="a region of its own|a device cannot compute"):
            symcomp.load(changed)


def class_renamed(part: Any, old: str, new: str) -> None:
    """Put the name of one class in the place of another, in all parts of a text."""
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            class_renamed(value, old, new)
    if isinstance(part, dict) and str(part.get("class", "")).endswith(f".{old}"):
        part["class"] = part["class"].replace(old, new)
