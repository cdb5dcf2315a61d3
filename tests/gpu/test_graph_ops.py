"""Graphs used as ops (OpFromGraph): regions of devices go through them."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.region import DeviceGraph
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import DEVICE, array, assert_close, check, check_loops, loops

on_emu = config.change_flags(device=DEVICE)
x, y = T.fmatrices("x", "y")
product = symcomp.OpFromGraph([x, y], [T.exp(x) * y, T.dot(x, y.T)], name="product")


def regions(f: Any) -> int:
    return sum(isinstance(node.op, DeviceGraph) for node in f.maker.fgraph.toposort())


@pytest.mark.parametrize("gradient", [False, True])
def test_a_region_goes_through_graphs(emu: Driver, gradient: bool) -> None:
    outputs = [2 * z for z in product(T.tanh(x), y)]
    if gradient:
        outputs = symcomp.grad(sum(z.sum() for z in outputs), [x, y])
    f = check([x, y], outputs, [array(3, 4), array(3, 4)], 256, orders=[0])
    assert regions(f) == 1


def test_graphs_in_graphs_with_shared_variables(emu: Driver) -> None:
    with on_emu:
        w = symcomp.shared(array(3, 4), name="w")
        outer = symcomp.OpFromGraph([x], [product(x, w)[0] + x])
        f = symcomp.function([x], outer(T.sin(x)), updates=[(w, w * 2)])
    plain = symcomp.function([x], outer(T.sin(x)), givens={w: w.get_value()})
    assert regions(f) == 1
    value = array(3, 4)
    wanted = plain(value)
    assert_close(f(value), wanted, 64)


def test_gradients_of_ones_own(emu: Driver) -> None:
    """An override decides the gradient on devices, too."""
    smooth = lambda inputs, grads: [grads[0] * T.exp(-abs(inputs[0]))]  # noqa: E731
    step = symcomp.OpFromGraph(
        [x], [T.switch(x > 0, T.ones_like(x), T.zeros_like(x))], grad_overrides=smooth
    )
    f = check([x], symcomp.grad(step(T.tanh(x)).sum(), x), [array(3, 4)], 64, orders=[0])
    assert regions(f) == 1


def test_in_loops_and_branches(emu: Driver) -> None:
    h, n = T.fvector("h"), T.lscalar("n")
    cell = symcomp.OpFromGraph([h], [T.tanh(h) * 2])
    states, _ = symcomp.scan(lambda row, h: cell(row + h), x, h)
    f = check_loops([x, h], states, [array(5, 3), array(3)])
    assert loops(f)
    chosen = ifelse(n > 0, product(x, y)[0], T.cos(x))
    with on_emu:
        g = symcomp.function([x, y, n], chosen)
    a, b = array(2, 3), array(2, 3)[::-1]
    assert_close(g(a, b, 1), np.exp(a) * b, 64)
    assert_close(g(a, b, 0), np.cos(a), 64)


def test_arguments_that_are_results(emu: Driver) -> None:
    same = symcomp.OpFromGraph([x], [x, x * 2])
    first, second = same(x)
    with on_emu:
        f = symcomp.function([x], [first, second, gpu.to_gpu(same(first)[0], DEVICE)])
    value = array(2, 3)
    found = f(value)
    for z, wanted in zip(found, (value, value * 2, value), strict=True):
        np.testing.assert_array_equal(z, wanted)
    assert not np.shares_memory(found[0], value)
