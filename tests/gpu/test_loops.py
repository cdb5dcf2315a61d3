"""Loops on devices: rows, states, outputs, positions, loops in loops; and those of the host."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.walk import toposort
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    assert_close,
    check_loops,
    compile_both,
    loops,
    ops_on_host,
)

on_emu = config.change_flags(device=DEVICE)


def test_rows_states_and_outputs(emu: Emulator) -> None:
    x, h, w = T.fmatrix("x"), T.fvector("h"), T.fmatrix("w")
    (hs, ys, zs), _ = symcomp.scan(
        lambda row, h, y, w: (T.tanh(T.dot(h, w) + row), y * row.sum(), (h * row).max()),
        x, [h, T.ones(3, "float32"), None], w,
    )  # fmt: skip
    check_loops([x, h, w], [hs, ys, zs, ys[-1]], [array(5, 3), array(3), array(3, 3)])


def test_only_last_values_are_kept(emu: Emulator) -> None:
    x, w = T.fmatrix("x"), T.fmatrix("w")
    for steps in (1, 2, 3, 4):
        hs, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros(3, "float32"))
        f = check_loops([x, w], hs[-1], [array(steps, 3), array(3, 3)])
        assert loops(f)[0].loop.layout.n_carried == 1


def test_carried_values_change_places(emu: Emulator) -> None:
    a, b, x = T.fvector("a"), T.fvector("b"), T.fmatrix("x")
    (u, v, w), _ = symcomp.scan(
        lambda row, u, v, w: (v, w * row, u), x, [a, b, T.ones(4, "float32")]
    )
    for steps in (3, 4, 5):
        f = check_loops([a, b, x], [u[-1], v[-1], w[-1]], [array(4), array(4), array(steps, 4)], 0)
        assert loops(f)[0].loop.layout.n_carried == 3


def test_one_value_is_several_results(emu: Emulator) -> None:
    x, h = T.dmatrix("x"), T.dvector("h")

    def step(row: Any, h: Any) -> Any:
        new = T.exp(-row * h)
        return new, new, new[::-1], h, row, T.ones(2)

    results, _ = symcomp.scan(step, x, [h, None, None, None, None, None])
    values = [array(4, 3, dtype="float64"), array(3, dtype="float64")]
    check_loops([x, h], results, values)
    check_loops([x, h], [z[-1] for z in results[:-1]], values)


@pytest.mark.parametrize("taps", [[-1], [-2], [-1, -3], [-3, -2, -1]])
def test_taps(emu: Emulator, taps: list[int]) -> None:
    x, start, w = T.fmatrix("x"), T.fmatrix("start"), T.fmatrix("w")
    info: dict[str, Any] = {"initial": start, "taps": taps}
    if taps == [-1]:
        info["initial"] = start[0]
    y, _ = symcomp.scan(
        lambda before, after, *rest: T.tanh(T.dot(sum(rest[:-1]), rest[-1]) + after - before),
        {"input": x, "taps": [-1, 2]}, [info], w,
    )  # fmt: skip
    values = [array(8, 3), array(-min(taps), 3), array(3, 3)]
    check_loops([x, start, w], y, values)
    check_loops([x, start, w], [y[-1], y[::2].sum()], values)
    check_loops([x, start, w], symcomp.grad(T.sqr(y).sum(), [x, start, w]), values, 256)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_directions_and_layouts(emu: Emulator, backwards: bool, dtype: str) -> None:
    x, w = T.tensor3("x", dtype=dtype), T.matrix("w", dtype=dtype)
    y, _ = symcomp.scan(
        lambda row, h, w: T.tanh(T.dot(row, w) + h), x, T.zeros((2, 3), dtype), w,
        go_backwards=backwards,
    )  # fmt: skip
    outputs = [y, y[::-2], symcomp.grad(y[1:].sum() + y[-1].prod(), w)]
    x_value, w_value = array(6, 2, 3, dtype=dtype), array(3, 3, dtype=dtype)
    check_loops([x, w], outputs, [x_value, w_value], 256)
    turned = np.asfortranarray(x_value)[::-1], w_value[::-1, ::-1].T
    check_loops([x, w], outputs, turned, 256)


def test_loops_without_steps(emu: Emulator) -> None:
    x, h, w = T.fmatrix("x"), T.fvector("h"), T.fmatrix("w")
    (hs, ys), _ = symcomp.scan(
        lambda row, h, w: (T.dot(h, w) + row.sum(), T.outer(row, h)), x, [h, None], w
    )
    values = [array(0, 2), array(3), array(3, 3)]
    f = check_loops([x, h, w], [hs, ys, symcomp.grad(ys.sum() + hs.sum(), w)], values)
    assert f(*values)[1].shape == (0, 2, 3)
    for steps in (1, 4, 0):
        f(array(steps, 2), *values[1:])
    n = T.lscalar("n")
    last = symcomp.scan(lambda h: T.tanh(h) * 2, outputs_info=[h], n_steps=n)[0]
    g = check_loops([h, n], T.concatenate([h[None], last])[-1], [array(3), 0])
    plain = symcomp.function([h, n], T.concatenate([h[None], last])[-1])
    for steps in (0, 1, 7, 0):
        assert_close(g(values[1], steps), plain(values[1], steps), 64)


def test_rows_without_elements(emu: Emulator) -> None:
    x = T.ftensor3("x")
    (hs, ys), _ = symcomp.scan(
        lambda row, h: (T.tanh(h + row), row.sum()), x, [T.zeros_like(x[0]), None]
    )
    check_loops([x], [hs, ys, hs[-1], symcomp.grad(hs.sum() + ys.sum(), x)], [array(3, 0, 2)])


def test_loops_in_loops(emu: Emulator) -> None:
    x, w = T.ftensor3("x"), T.fmatrix("w")

    def outer(block: Any, h: Any) -> Any:
        inner, _ = symcomp.scan(lambda row, g: T.tanh(T.dot(g, w) + row), block, h)
        return inner[-1], inner, T.sqr(inner).sum()

    (last, all_rows, sums), _ = symcomp.scan(outer, x, [T.zeros(3, "float32"), None, None])
    values = [array(4, 5, 3), array(3, 3)]
    f = check_loops([x, w], [last, all_rows, sums], values)
    assert len(loops(f)) == 2
    f = check_loops([x, w], symcomp.grad(sums.sum() + last[-1].sum(), [x, w]), values, 512)
    assert len(loops(f)) > 2
    check_loops([x, w], [all_rows, sums], [array(0, 5, 3), array(3, 3)])


def test_values_of_changing_shapes(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    ends, ys = symcomp.loop(lambda h, row: (T.concatenate([h, row * 2]), h.sum() * row), h, x)
    check_loops([x, h], [ends, ys], [array(4, 2), array(3)])
    for steps in (0, 1):
        check_loops([x, h], [ends, ys], [array(steps, 2), array(3)])
    m = T.fmatrix("m")
    turned, _ = symcomp.loop(lambda m, _: (T.exp(-m).T, m.sum()), m, None, length=3)
    check_loops([m], turned, [array(2, 5)])
    check_loops([m], turned, [array(3, 3)])


def test_captured_numbers_and_constants(emu: Emulator) -> None:
    x, k, s = T.fmatrix("x"), T.lscalar("k"), T.fscalar("s")

    def step(row: Any, h: Any) -> Any:
        lengths = T.cast(k * h.shape[0], "float32")
        return T.tanh(row * s * lengths + h[:k].sum() + h[k - h.shape[0]])

    ys, _ = symcomp.scan(step, x, T.zeros(3, "float32"))
    f = check_loops([x, k, s], ys, [array(4, 3), 2, np.float32(0.3)])
    assert loops(f)[0].on_host != (0,)
    h, _ = symcomp.scan(
        lambda h: T.cos(h) * np.arange(3, dtype="float32"), outputs_info=[T.ones(3, "float32")],
        n_steps=k,
    )  # fmt: skip
    check_loops([k], h, [5])


def test_rows_of_whole_numbers(emu: Emulator) -> None:
    labels, e, h = T.imatrix("labels"), T.fmatrix("e"), T.fvector("h")
    (hs, count), _ = symcomp.scan(
        lambda row, h, c, e: (T.tanh(e[row].sum(axis=0) + h), c + row), labels,
        [h, T.zeros(4, "int32")], e,
    )  # fmt: skip
    rows = np.random.default_rng(1).integers(-5, 5, (6, 4)).astype("int32")
    values = [rows, array(5, 3), array(3)]
    check_loops([labels, e, h], [hs, count, symcomp.grad(hs.sum(), [e, h])[0]], values, 256)
    with on_emu:
        f = symcomp.function([labels, e, h], to_gpu(hs[-1], DEVICE))
    values[0][3, 1] = 7
    with pytest.raises(IndexError, match="index 7 is out of range for an axis of length 5"):
        f(*values).get()


PARTS = {
    "row": lambda x, i, k: x[i],
    "row before": lambda x, i, k: x[i - 1],
    "element": lambda x, i, k: x[i, i % 3],
    "column": lambda x, i, k: x[1:4:2, i % 3],
    "fixed": lambda x, i, k: x[i, k] * x[k, i % 3],
    "apart": lambda x, i, k: x.dimshuffle(0, "x", 1)[i, :, -1],
    "new axis": lambda x, i, k: x[None, i, ::-1, None],
    "from behind": lambda x, i, k: x[-i - 1],
    "of a vector": lambda x, i, k: x.sum(axis=0)[i % 3],
}


@pytest.mark.parametrize("name", PARTS)
def test_positions_of_steps(emu: Emulator, name: str) -> None:
    x, h, k = T.fmatrix("x"), T.fvector("h"), T.lscalar("k")
    part = PARTS[name]
    hs, _ = symcomp.scan(
        lambda i, h: T.sin(h + part(T.tanh(x), i, k).sum()), T.arange(x.shape[0]), h
    )
    values = [array(5, 3), array(3), 1]
    check_moved = lambda z: check_loops([x, h, k], z, values, 512)  # noqa: E731
    if name == "fixed":
        check_moved(hs)
        check_moved(symcomp.grad(hs.sum(), x))
    else:
        check_loops([x, h], hs, values[:2])
        check_loops([x, h], symcomp.grad(hs.sum(), x), values[:2], 512)


@pytest.mark.parametrize("write", [T.set_subtensor, T.inc_subtensor])
def test_writing_at_positions_of_steps(emu: Emulator, write: Any) -> None:
    a, i = T.fmatrix("a"), T.ivector("i")

    def step(i: Any, a: Any) -> Any:
        a = write(a[i], a.sum(axis=0) * 0.3)
        a = write(a[i % 2, 1:], a[2, :2])
        a = write(a[i % 2, 1:], a[0, 0])
        return write(a[:, i % 3], T.ones(1, "float32"))

    ends, _ = symcomp.scan(step, i, a)
    values = [array(4, 3), np.array([0, 3, -1, 0, 2], "int32")]
    f = check_loops([a, i], [ends, ends[-1]], values)
    check_loops([a, i], symcomp.grad(T.sqr(ends).sum(), a), values, 512)
    values[1][2] = 4
    with pytest.raises(IndexError, match="index 4 is out of range for an axis of length 4"):
        f(*values)
    check_loops([a, i], ends, [array(4, 3), np.zeros(0, "int32")])
    with pytest.raises(ValueError, match=r"y has shape \(2,\), the part .* goes to \(3,\)"):
        f(array(4, 4), np.zeros(2, "int32"))


def test_nan_and_infinity(emu: Emulator) -> None:
    x = T.fmatrix("x")
    hs, _ = symcomp.scan(lambda row, h: T.maximum(h, row) * 2 - row, x, T.zeros(3, "float32"))
    value = array(5, 3)
    value[1, 0], value[2, 1], value[3, 2] = np.nan, np.inf, -np.inf
    check_loops([x], [hs, hs[-1]], [value], 4)


@pytest.mark.usefixtures("unmerged")
def test_results_are_made_in_their_rows(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with on_emu:
        f = symcomp.function(
            [x], symcomp.scan(lambda r, h: T.tanh(h + r), x, T.zeros(3, "float32"))[0]
        )
    f(array(9, 3))
    emu.counters.clear()
    f(array(9, 3))
    # Only the first row of the states is copied.
    assert (emu.counters.launches, emu.counters.within) == (9, 12)


def test_what_stays_on_the_host(emu: Emulator) -> None:
    x, w = T.fmatrix("x"), T.fmatrix("w")
    draws = T.random.RandomStream(1)
    steps = {
        "random": lambda row, h: T.tanh(h + row) * draws.normal(size=(3,), dtype="float32"),
        "Bessel": lambda row, h: T.j0(h + row),
        "branch": lambda row, h: ifelse(T.gt(h.sum(), 0), T.tanh(h * 2), row),
        "length": lambda row, h: T.tanh(h + row) * w[: T.cast(T.abs(h[0]), "int64") % 3].sum(),
    }
    for name, step in steps.items():
        hs, _ = symcomp.scan(step, x, T.zeros(3, "float32"))
        _, f = compile_both([x, w], hs + T.exp(x).sum(), on_unused_input="ignore")
        names = ops_on_host(f)
        assert any(n.startswith("scan") for n in names) and not loops(f), name
        plain = symcomp.function([x, w], hs + T.exp(x).sum(), on_unused_input="ignore")
        values = array(4, 3), array(3, 3)
        found, wanted = f(*values), plain(*values)
        assert found.shape == (4, 3)
        if name != "random":
            assert_close(found, wanted, 64)


def test_complex_states(emu: Emulator) -> None:
    x, z = T.dmatrix("x"), T.zmatrix("z")
    (hs, zs), _ = symcomp.scan(lambda row, h, z: (T.tanh(h + row), z.T), x, [x[0], z])
    plain, f = compile_both([x, z], [hs, zs])
    assert loops(f)
    values = array(4, 3, dtype="float64"), (array(2, 2) + 1j).astype("complex128")
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert_close(found, wanted, 8)


def test_loops_of_numbers_stay_on_the_host(emu: Emulator) -> None:
    x = T.fvector("x")
    hs, _ = symcomp.scan(lambda row, h: T.tanh(row + h), x, np.float32(0))
    with on_emu:
        f = symcomp.function([x], hs)
    assert not loops(f)
    w = symcomp.shared(np.float32(2), device=DEVICE)
    hs, _ = symcomp.scan(lambda row, h: T.tanh(row + h * w), x, np.float32(0))
    g = symcomp.function([x], hs)
    assert loops(g)
    value = array(5)
    assert_close(g(value), symcomp.function([x], hs, givens={w: np.float32(2)})(value), 64)


def test_errors_name_the_loop(emu: Emulator) -> None:
    x, h, w = T.fmatrix("x"), T.fvector("h"), T.fmatrix("w")
    n = T.lscalar("n")
    hs, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, h, n_steps=n)
    with on_emu:
        f = symcomp.function([x, h, w, n], hs)
    with pytest.raises(ValueError, match=r"has length 3 .* but 4 steps need 4"):
        f(array(3, 2), array(2), array(2, 2), 4)
    with pytest.raises(ValueError, match="must not be negative"):
        f(array(3, 2), array(2), array(2, 2), -1)
    with pytest.raises(ValueError) as problem:
        f(array(3, 2), array(2), array(3, 3), 3)
    assert any("in a step of scan" in note for note in problem.value.__notes__)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "DebugMode", "NanGuardMode"])
def test_modes(emu: Emulator, mode: str) -> None:
    x = T.fmatrix("x")
    hs, _ = symcomp.scan(lambda r, h: T.tanh(h + r) * 2, x, T.zeros(3, "float32"))
    plain = symcomp.function([x], [hs, symcomp.grad(hs.sum(), x)])
    with on_emu:
        f = symcomp.function([x], [hs, symcomp.grad(hs.sum(), x)], mode=mode)
    value = array(4, 3)
    for found, wanted in zip(f(value), plain(value), strict=True):
        assert_close(found, wanted, 64)


def test_rewrites_that_a_mode_leaves_out_stay_out_of_steps(emu: Emulator) -> None:
    x = T.fmatrix("x")
    hs, _ = symcomp.scan(lambda r, h: T.tanh(h + r) * 2 - h, x, T.zeros(3, "float32"))
    with on_emu:
        f = symcomp.function([x], hs)
        g = symcomp.function([x], hs, mode=symcomp.Mode("cvm", "fast_run").excluding("fusion"))
        h = symcomp.function([x], hs, mode=symcomp.Mode("cvm", "fast_run").excluding("devices"))
    assert [len(toposort(loops(one)[0].body.outputs)) > 1 for one in (f, g)] == [False, True]
    assert not loops(h) and any(name.startswith("scan") for name in ops_on_host(h))
    value = array(3, 3)
    np.testing.assert_allclose(f(value), g(value), rtol=1e-6)
