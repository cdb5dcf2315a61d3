"""Loops on the host whose steps compute on a device: captured values are copied there once."""

from pathlib import Path
from typing import Any

import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import DEVICE, array, assert_close, compile_both, loops

on_emu = config.change_flags(device=DEVICE)
STEPS = 20


def bessel_loop(x: Any, h: Any, w: Any) -> Any:
    """Return the states of a loop with a product on the device and a function of the host."""
    return symcomp.scan(lambda row, h: T.j0(T.tanh(T.dot(h, w) + row)), x, h)[0]


def loops_on_host(f: Any) -> list[Any]:
    return [node for node in f.maker.fgraph.toposort() if str(node.op).startswith("scan")]


def copied(emu: Any, f: Any, *values: Any) -> tuple[int, int]:
    """Return the bytes that a call copies to the device and back."""
    f(*values)
    emu.counters.clear()
    f(*values)
    return emu.counters.to_device, emu.counters.to_host


def copies_to_device(f: Any, *values: Any) -> int:
    """Return how many copies to the device a call makes."""
    counted = f.copy(profile=True)
    counted(*values)  # with the constants of plans
    before = _copies(counted)
    counted(*values)
    return _copies(counted) - before


def _copies(f: Any) -> int:
    (data,) = f.profile.to_dict()["functions"]
    return sum(row["count"] for row in data["device_work"] if row["kind"] == "to device")


def test_captured_values_are_copied_once(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    plain, f = compile_both([x, w, h], bessel_loop(x, h, w).sum())
    assert loops_on_host(f) and not loops(f)
    values = array(STEPS, 8), array(8, 8), array(8)
    to_device, _ = copied(emu, f, *values)
    row = 4 * 8
    # The matrix, the sequence, a state in each step, and the rows that are added up.
    assert to_device == 4 * 8 * 8 + 3 * STEPS * row
    assert copies_to_device(f, *values) == 1 + 1 + STEPS + 1
    assert_close(f(*values), plain(*values), 64)


def test_captured_values_that_live_there_are_not_copied(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        f = symcomp.function([x, h], bessel_loop(x, h, w))
    to_device, to_host = copied(emu, f, array(STEPS, 8), array(8))
    assert (to_device, to_host) == (2 * STEPS * 32, STEPS * 32)


def test_the_machine_runs_loops_that_capture_device_arrays(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        f = symcomp.function([x, h], bessel_loop(x, h, w), profile=True)
    for factor in (1, 2, 3):
        w.set_value(factor * array(8, 8))
        plain = symcomp.function([x, h], bessel_loop(x, h, w.get_value()))
        assert_close(f(array(STEPS, 8), array(8)), plain(array(STEPS, 8), array(8)), 64)
    assert " loop(" in f.plan()
    (data,) = f.profile.to_dict()["functions"]
    assert [loop["called_by_python"] for loop in data["programs"]] == [None]
    assert sum(loop["steps"] for loop in data["programs"]) == 3 * STEPS


def test_parts_of_captured_values_are_taken_there(emu: Emulator) -> None:
    h = T.fvector("h")
    with on_emu:
        data = symcomp.shared(array(STEPS, 8), name="data")
        hs, _ = symcomp.scan(lambda i, h: T.j0(T.tanh(h + data[i])), T.arange(STEPS), h)
        f = symcomp.function([h], hs)
    assert loops_on_host(f)
    assert copied(emu, f, array(8)) == (STEPS * 32, STEPS * 32)
    plain = symcomp.function([h], hs, givens={data: data.get_value()})
    assert_close(f(array(8)), plain(array(8)), 64)


def test_sequences_that_live_there_are_not_copied(emu: Emulator) -> None:
    h, w = T.fvector("h"), T.fmatrix("w")
    with on_emu:
        data = symcomp.shared(array(STEPS, 8), name="data")
        f = symcomp.function([h, w], bessel_loop(data, h, w))
        reversed_f = symcomp.function([h, w], bessel_loop(data[::-1], h, w))
    values = array(8), array(8, 8)
    assert copied(emu, f, *values) == (256 + STEPS * 32, STEPS * 32)
    assert copied(emu, reversed_f, *values) == (256 + STEPS * 32, STEPS * 32)
    plain = symcomp.function([h, w], bessel_loop(T.constant(data.get_value()), h, w))
    assert_close(f(*values), plain(*values), 64)
    plain = symcomp.function([h, w], bessel_loop(T.constant(data.get_value()[::-1]), h, w))
    assert_close(reversed_f(*values), plain(*values), 64)


def test_sequences_that_both_sides_need(emu: Emulator) -> None:
    h, w = T.fvector("h"), T.fmatrix("w")

    def both(x: Any) -> Any:
        return symcomp.scan(
            lambda row, h: [T.j0(T.tanh(T.dot(h, w) + row)), T.gammainc(row, h)], x, [h, None]
        )[0]

    with on_emu:
        data = symcomp.shared(abs(array(STEPS, 8)), name="data")
        f = symcomp.function([h, w], both(data))
    values = array(8), array(8, 8)
    # The host gets all rows at once.
    assert copied(emu, f, *values) == (256 + STEPS * 32, 2 * STEPS * 32)
    assert emu.counters.waits == STEPS + 1
    plain = symcomp.function([h, w], both(T.constant(data.get_value())))
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert_close(found, wanted, 64)


def test_loops_that_end_early_copy_the_rows_that_they_read(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")

    def step(row: Any, h: Any) -> Any:
        return T.j0(T.tanh(h + row)), symcomp.until(row[0] > 1)

    plain = symcomp.function([x, h], symcomp.scan(step, x, h)[0])
    with on_emu:
        f = symcomp.function([x, h], symcomp.scan(step, x, h)[0])
        data = symcomp.shared(array(STEPS, 8), name="data")
        there = symcomp.function([h], symcomp.scan(step, data, h)[0])
    rows = array(STEPS, 8)
    rows[4, 0] = 2
    data.set_value(rows)
    assert copied(emu, f, rows, array(8))[0] == 2 * 5 * 32
    assert copied(emu, there, array(8))[0] == 5 * 32
    for found in (f(rows, array(8)), there(array(8))):
        assert_close(found, plain(rows, array(8)), 64)
    assert f(array(STEPS, 8), array(8)).shape == (STEPS, 8)


def test_short_sequences(emu: Emulator) -> None:
    x, h, n = T.fmatrix("x"), T.fvector("h"), T.lscalar("n")
    with on_emu:
        data = symcomp.shared(array(STEPS, 8), name="data")
        states = [
            symcomp.scan(lambda row, h: T.j0(T.tanh(h + row)), rows, h, n_steps=n)[0]
            for rows in (x, data)
        ]
        functions = [symcomp.function([x, h, n], s, on_unused_input="ignore") for s in states]
    plain = symcomp.function([x, h, n], states[0])
    for f in functions:
        assert loops_on_host(f)
        assert_close(f(array(STEPS, 8), array(8), 7), plain(array(STEPS, 8), array(8), 7), 64)
        assert f(array(STEPS, 8), array(8), 0).shape == (0, 8)
        with pytest.raises(ShapeError, match=r"has length 20 .* 21 steps need 21"):
            f(array(STEPS, 8), array(8), 21)


def test_captured_values_that_both_sides_need(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        hs, _ = symcomp.scan(
            lambda row, h: T.j0(T.tanh(T.dot(h, w) + row)) + T.j1(w)[0] * T.j0(h[0]) * w[1], x, h
        )
        f = symcomp.function([x, h], hs)
    values = array(STEPS, 8), array(8)
    _, to_host = copied(emu, f, *values)
    # The host gets the matrix once.
    assert to_host < 2 * 4 * 8 * 8 + 3 * STEPS * 32
    plain = symcomp.function([x, h], hs, givens={w: w.get_value()})
    assert_close(f(*values), plain(*values), 64)


def test_copies_leave_all_loops(emu: Emulator) -> None:
    x, w, h = T.ftensor3("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(lambda block, h: bessel_loop(block, h, w)[-1], x, h)
    plain = symcomp.function([x, w, h], hs)
    with on_emu:
        f = symcomp.function([x, w, h], hs)
    assert loops_on_host(f)
    values = array(3, STEPS, 8), array(8, 8), array(8)
    to_device, _ = copied(emu, f, *values)
    assert to_device == 4 * 8 * 8 + 2 * 3 * STEPS * 32
    assert copies_to_device(f, *values) == 2 + 3 * STEPS
    assert_close(f(*values), plain(*values), 64)


STEPS_OF = {
    "until": lambda row, h, w: (
        T.j0(T.tanh(T.dot(h, w) + row)), symcomp.until(row[0] > 100)
    ),
    "branches": lambda row, h, w: ifelse(T.gt(h.sum(), 0), T.tanh(T.dot(h, w)), T.dot(w, h) * row),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS_OF)
@pytest.mark.parametrize("linker", ["cvm", "py"])
def test_kinds_of_loops(emu: Emulator, name: str, linker: str) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(lambda row, h: STEPS_OF[name](row, h, w), x, h)
    with config.change_flags(linker=linker):
        plain, f = compile_both([x, w, h], [hs, hs[-1], symcomp.grad(hs.sum(), w)])
    assert loops_on_host(f)
    for steps in (STEPS, 1, 0)[: 3 - (name == "until")]:
        values = array(steps, 8), array(8, 8), array(8)
        if steps == 0:
            with pytest.raises(IndexError):
                f(*values)
            continue
        for found, wanted in zip(f(*values), plain(*values), strict=True):
            assert_close(found, wanted, 256)


@pytest.mark.parametrize("mode", ["DebugMode", "NanGuardMode", "FAST_COMPILE"])
def test_modes(emu: Emulator, mode: str) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    plain = symcomp.function([x, w, h], bessel_loop(x, h, w))
    with on_emu:
        f = symcomp.function([x, w, h], bessel_loop(x, h, w), mode=mode)
    values = array(5, 8), array(8, 8), array(8)
    assert_close(f(*values), plain(*values), 64)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_saving(emu: Emulator, tmp_path: Path, device: str | None) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        f = symcomp.function([x, h], bessel_loop(x, h, w))
    values = array(5, 8), array(8)
    wanted = f(*values)
    symcomp.save(tmp_path / "loop.zip", f)
    g = symcomp.load(tmp_path / "loop.zip", device=device)
    assert_close(g(*values), wanted, 64)
    assert bool(copied(emu, g, *values)[0]) == (device is None)
