"""bfloat16 on devices: the kernels of casts, elements moved, and arrays of other libraries."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.gpu import from_dlpack, to_device
from symcomp.gpu.driver.emulator import Emulator
from symcomp.tests.gpu.running import DEVICE, compile_both, ops_on_host
from symcomp.tests.gpu.test_exchange import Producer

BF = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(0)
x, y, i = T.matrix("x", dtype="bfloat16"), T.matrix("y", dtype="bfloat16"), T.lvector("i")


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(BF)


def check(outputs: list[Any], *values: Any, units: int = 0, on_host: bool = False) -> None:
    """Compare both, whose functions of the C library may round differently by some units."""
    inputs = [x, y, i][: len(values)]
    plain, moved = compile_both(inputs, outputs, on_unused_input="ignore")
    assert on_host or not ops_on_host(moved), ops_on_host(moved)
    for found, wanted in zip(moved(*values), plain(*values), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if units:
            bound = units * 2.0**-8
            np.testing.assert_allclose(found.astype("f"), wanted.astype("f"), bound, bound)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_conversions_of_all_numbers(emu: Emulator) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(BF).reshape(256, 256)
    bits = np.arange(1 << 16, dtype=np.uint32)[:, None] << 16
    hard = (bits | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).view("f")
    u = T.fmatrix("u")
    with config.change_flags(device=DEVICE), np.errstate(all="ignore"):
        widened = symcomp.function([x], T.cast(x, "float32") * 2)(every) / 2
        finite = np.abs(every.astype("f")) < 1e38
        np.testing.assert_array_equal(widened[finite], every.astype("f")[finite])
        found = symcomp.function([u], T.cast(-u, "bfloat16"))(-hard)
        expected = hard.astype(BF)
    nan = np.isnan(hard)
    np.testing.assert_array_equal(np.isnan(found.astype("f")), nan)
    np.testing.assert_array_equal(found.view("u2")[~nan], expected.view("u2")[~nan])


def test_elements_and_reductions(emu: Emulator) -> None:
    exact = [x * y - x, T.switch(x > y, x, y), (x * 2).sum(0), (x + y).max(1)]
    check(exact, numbers(30, 40), numbers(30, 40))
    others = [T.exp(x) * y.T, T.nnet.softmax(x), x.mean(), T.tanh(x).sum(1)]
    check(others, numbers(30, 30), numbers(30, 30), units=4)


def test_moves_and_positions(emu: Emulator) -> None:
    z, at = x * 2, np.array([3, 1, 3, 3, 0])
    moved = [
        z[::-1, 2:], z.T.reshape((-1, 3)), T.concatenate([z, y]), T.stack([z, y]), z[i], z[:, i],
    ]  # fmt: skip
    written = [
        T.set_subtensor(z[i[:2]], y[:2]), T.inc_subtensor(z[i], y[i]),
        T.inc_subtensor(z[1:, ::2], y[0, 0]), T.set_subtensor(z[2], y[3]),
        T.sort(z, axis=1), T.argsort(z, axis=0), T.cumsum(z, axis=1),
    ]  # fmt: skip
    check([*moved, *written], numbers(6, 9), numbers(6, 9), at)


def test_products_and_gradients(emu: Emulator) -> None:
    cost = T.sum(T.sqr(T.dot(x, y)))
    check([T.dot(x, y), T.grad(cost, x), cost], numbers(12, 20), numbers(20, 7), units=2)


def test_shared_variables_and_loops(emu: Emulator) -> None:
    start = numbers(8)
    w = symcomp.shared(start, "w", target=DEVICE)
    assert str(w.container.type) == f"bfloat16 vector on {DEVICE}"
    step = symcomp.function([], updates=[(w, w * 0.5 + 1)])
    step()
    half = (start.astype("f") * 0.5).astype(BF).astype("f")
    np.testing.assert_array_equal(w.get_value(), (half + 1).astype(BF))
    rows, _ = symcomp.scan(lambda row, h: h * 0.5 + row, x * 2, T.zeros((9,), dtype="bfloat16"))
    check([rows, rows[-1]], numbers(6, 9))


def test_products_in_loops(emu: Emulator) -> None:
    rows, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(h, y) + row), x * 2, y[0] * 0)
    outputs = [rows, T.grad(rows.astype("float32").sum(), y)]
    check(outputs, numbers(5, 6), numbers(6, 6), units=4, on_host=True)


def test_dlpack(emu: Emulator) -> None:
    value = numbers(3, 4)
    producer = Producer(value)
    producer.code = (4, 16)
    taken = from_dlpack(producer)
    assert taken.dtype == BF and taken.address == value.ctypes.data
    np.testing.assert_array_equal(taken.get(), value)
    again = from_dlpack(to_device(value, "emu").part((slice(None), slice(1, 3))))
    assert again.dtype == BF
    np.testing.assert_array_equal(again.get(), value[:, 1:3])


def test_cuda_array_interface(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    there = to_device(numbers(3), "emu")
    monkeypatch.setattr("symcomp.gpu.array.is_emulator", lambda device: False)
    with pytest.raises(AttributeError, match="has no bfloat16; __dlpack__ and from_dlpack have"):
        there.__cuda_array_interface__  # noqa: B018


def test_saved_with_shared_variables_on_devices(emu: Emulator, tmp_path: Path) -> None:
    w = symcomp.shared(numbers(4), "w", target=DEVICE)
    constant = symcomp.gpu.to_gpu(T.constant(numbers(4)), DEVICE)
    f = symcomp.function([], w * 2 + constant)
    symcomp.save(tmp_path / "f.zip", f)
    for options in ({}, {"device": "cpu"}):
        found = symcomp.load(tmp_path / "f.zip", **options)
        np.testing.assert_array_equal(np.asarray(found()), np.asarray(f()))
