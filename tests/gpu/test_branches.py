"""Branches of ifelse: the chosen value stays on the device, and only its branch is computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.transfers import ToDevice, ToHost
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import DEVICE, array, assert_close, compile_both

on_emu = config.change_flags(device=DEVICE)
VALUE = array(4, 3)


def copies(f: Any, kind: type) -> int:
    return sum(isinstance(node.op, kind) for node in f.maker.fgraph.toposort())


def test_the_chosen_value_is_not_copied(emu: Driver) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    outputs = [T.exp(ifelse(n > 0, T.tanh(x), x * 2)).sum(), x.sum()]
    plain, f = compile_both([x, n], outputs)
    assert (copies(f, ToDevice), copies(f, ToHost)) == (1, 0)
    for k in (1, 0, 1, 0):
        f(VALUE, k)  # with the constants of a plan
        emu.counters.clear()
        found = f(VALUE, k)
        assert (emu.counters.waits, emu.counters.to_device) == (1, VALUE.nbytes)
        for one, other in zip(found, plain(VALUE, k), strict=True):
            assert_close(one, other, 64)


def test_updates_by_a_branch(emu: Driver) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    with on_emu:
        w = symcomp.shared(VALUE, name="w")
        f = symcomp.function([x, n], [], updates=[(w, ifelse(n > 0, w * 2, w + x))])
        g = symcomp.function([n], [], updates=[(w, ifelse(n > 0, w * 2, w))])
    f(VALUE, 1)
    g(1)
    emu.wait()
    emu.counters.clear()
    f(VALUE, 0)
    g(0)
    g(1)
    assert (emu.counters.waits, emu.counters.to_host) == (0, 0)
    assert_close(w.get_value(), VALUE * 10, 8)


def test_values_of_both_sides(emu: Driver) -> None:
    """A value of the host goes to the device if the result is needed there alone."""
    x, n = T.fmatrix("x"), T.lscalar("n")
    plain, f = compile_both([x, n], T.tanh(ifelse(n > 0, x, T.exp(x))))
    assert copies(f, ToHost) == 1
    _, g = compile_both([x, n], ifelse(n > 0, x, T.exp(x)))
    emu.counters.clear()
    np.testing.assert_array_equal(g(VALUE, 1), VALUE)
    assert (emu.counters.to_device, emu.counters.to_host) == (0, 0)
    for k in (1, 0):
        assert_close(f(VALUE, k), plain(VALUE, k), 64)


def test_branches_in_branches(emu: Driver) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    z = ifelse(n > 0, ifelse(n > 1, T.exp(x), T.sin(x)), T.cos(x))
    plain, f = compile_both([x, n], [z, symcomp.grad(z.sum(), x)])
    for k in (0, 1, 2):
        f(VALUE, k)
        emu.counters.clear()
        for one, other in zip(f(VALUE, k), plain(VALUE, k), strict=True):
            assert_close(one, other, 64)
        assert emu.counters.to_host == 2 * VALUE.nbytes


def test_several_results_and_lengths(emu: Driver) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    a, b, c = ifelse(n > 0, [T.exp(x), x, T.exp(x)[:2]], [x * 2, x + 1, T.sin(x)])
    plain, f = compile_both([x, n], [T.log(a), b, c * 2, c.shape[0], a.sum()])
    for k in (1, 0):
        for one, other in zip(f(VALUE, k), plain(VALUE, k), strict=True):
            assert_close(one, other, 64)


def test_variables_on_devices(emu: Driver) -> None:
    """Without ``config.device``, operations on the chosen value are on its device."""
    x, n = T.fmatrix("x"), T.lscalar("n")
    there = gpu.to_gpu(x, DEVICE)
    z = T.tanh(ifelse(n > 0, T.exp(there), there * 2))
    f = symcomp.function([x, n], gpu.to_gpu(z, DEVICE))
    assert copies(f, ToHost) == 0
    assert_close(f(VALUE, 0).get(), np.tanh(VALUE * 2), 64)
    assert_close(f(VALUE, 1).get(), np.tanh(np.exp(VALUE)), 64)


@pytest.mark.parametrize("linker", ["cvm", "py"])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_saving(emu: Driver, tmp_path: Path, linker: str, device: str | None) -> None:
    x, n = T.fmatrix("x"), T.lscalar("n")
    with on_emu:
        w = symcomp.shared(VALUE, name="w")
        f = symcomp.function([x, n], T.exp(ifelse(n > 0, w * x, T.sin(w))))
    symcomp.save(tmp_path / "f.zip", f)
    with config.change_flags(linker=linker):
        g = symcomp.load(tmp_path / "f.zip", device=device)
    for k in (1, 0):
        assert_close(g(VALUE, k), f(VALUE, k), 64)
