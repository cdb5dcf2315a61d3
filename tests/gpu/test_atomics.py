"""Sums by floating atomics, which config.gpu_atomics allows."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.region import DeviceGraph
from symcomp.tests.gpu.running import DEVICE, array, assert_close, check


def by_atomics(inputs: Any, outputs: Any) -> Any:
    with config.change_flags(device=DEVICE, gpu_atomics=True):
        return symcomp.function(inputs, outputs)


def results(driver: Driver, f: Any, *values: Any) -> list[Any]:
    """Return what a function answers in each order of threads and blocks."""
    found = []
    for order in ORDERS:
        if isinstance(driver, Emulator):
            driver.order = order
        found.append(f(*values))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adding_at_positions_that_occur_twice(emu: Driver, dtype: str) -> None:
    x, y, i = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype), T.imatrix("i")
    t = x * 2
    z = [
        T.inc_subtensor(t[i], y[:, None]), T.inc_subtensor(t[:, i[0]], y.T[:5]),
        T.inc_subtensor(t[i, i], y[0, 0]), T.set_subtensor(t[i[0]], y), t + 1,
    ]  # fmt: skip
    rows = np.array([[2, -1, 2, 0, 2, 2]] * 6, "int32")
    values = array(5, 6, dtype=dtype), array(6, 6, dtype=dtype), rows
    wanted = symcomp.function([x, y, i], z)(*values)
    f = by_atomics([x, y, i], z)
    for found in results(emu, f, *values):
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, 16)
    if DEVICE == "emu":
        values[1][:3] = [[1e20], [1], [-1e20]]
        assert len({found[0].tobytes() for found in results(emu, f, *values)}) > 1


def test_positions_out_of_range(emu: Driver) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    f = by_atomics([x, i], T.inc_subtensor((x * 2)[i], 1))
    with pytest.raises(IndexError, match="index 6 is out of range for an axis of length 5"):
        f(array(5, 3), [1, 6])


def test_integers_are_added_by_atomics_in_any_case(emu: Driver) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    t = T.cast(x * 100, "int64")
    f = check([x, i], [T.inc_subtensor(t[i], t[:4]), x * 100], [array(5, 3), [1, 4, 1, 1]], 0)
    region = next(n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph))
    emu.counters.clear()
    f(array(5, 3), [1, 4, 1, 1])
    assert region.program.repeated and emu.counters.launches == 2  # elements, and sums


def test_sums_of_chunks(emu: Driver) -> None:
    x, y = T.fmatrix("x"), T.fmatrix("y")
    outputs = [(x * y).sum(), x.sum(axis=0)]
    values = [array(4000, 5), array(4000, 5)]
    wanted = symcomp.function([x, y], outputs)(*values)
    with config.change_flags(device=DEVICE):
        plain = symcomp.function([x, y], outputs)
    f = by_atomics([x, y], outputs)
    for found in results(emu, f, *values):
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, 16)
    launches = []
    for g in (plain, f):
        emu.counters.clear()
        g(*values)
        launches.append(emu.counters.launches)
    assert launches == [3, 2]  # no kernel that joins chunks
    if DEVICE == "emu":
        for one in values:
            one[:, :] = 1
            one[:400], one[-400:] = 1e5, 1
        values[0][-400:] = -1e10
        assert len({found[0].tobytes() for found in results(emu, f, *values)}) > 1


def test_what_follows_a_sum_waits_for_all_chunks(emu: Driver) -> None:
    """Means are no sums alone, and differences from means need another pass."""
    x = T.fmatrix("x")
    outputs = [T.sqr(x).mean(), x - T.sqr(x).mean(axis=0)]
    value = array(40000, 2)  # columns of more than a block holds
    wanted = check([x], outputs, [value], 16, orders=[0])(value)
    for one, other in zip(by_atomics([x], outputs)(value), wanted, strict=True):
        assert_close(one, other, 16)
