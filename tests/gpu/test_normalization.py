"""Batch normalization on devices: values and gradients, and the arrays that its kernels move."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.walk import toposort
from symcomp.cvm.kernels import FORMULAS, formula_of
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.formulas import nests_for
from symcomp.gpu.region import DeviceGraph
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.windows.convolution import Convolve
from symcomp.tensor.nnet.bn import batch_normalization_train
from symcomp.tests.gpu.running import array, check

AXES = [("per-activation", 4), ("spatial", 4), ((1, 2, 3), 4), ("per-activation", 2), ((1,), 2)]


def arrays_moved(f: Any, ndim: int, makers: Any = ()) -> list[tuple[int, int]]:
    """Return how many arrays with all axes those formulas of a function read and write that read
    an argument with all axes, or the result of one of ``makers``; none is held in registers.
    """
    found = []
    regions = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    for node in (node for op in regions for node in toposort(op.graph.outputs)):
        given = [x for x in node.inputs if x.owner is None or isinstance(x.owner.op, makers)]
        whole = [x for x in given if not any(x.type.broadcastable)]
        if not isinstance(node.op, (*FORMULAS, Reduce)) or not any(x.ndim == ndim for x in whole):
            continue
        formula = formula_of(node, FORMULAS)
        made = nests_for(formula, tuple(x.type.broadcastable for x in node.inputs))
        assert made is not None
        reads = writes = 0
        for nest in made.nests:
            arrays = {i for i, one in enumerate(nest.stretched) if not any(one)}
            for body in nest.bodies if nest.totals else nest.bodies[-1:]:
                reads += sum(array in arrays for _, array in body.loads)
                writes += sum(array in arrays for _, array in body.stores)
        found.append((reads, writes))
    return found


def normalized(axes: Any, ndim: int, dtype: str = "float32") -> Any:
    """Return x, gamma and beta, and x normalized."""
    x = T.tensor(name="x", dtype=dtype, shape=(None,) * ndim)
    numbers = {"per-activation": (0,), "spatial": (0, 2, 3)}.get(str(axes), axes)
    shape = [1 if a in numbers else None for a in range(ndim)]
    gamma, beta = (T.tensor(name=name, dtype=dtype, shape=shape) for name in ("gamma", "beta"))
    return [x, gamma, beta], batch_normalization_train(x, gamma, beta, axes)[0]


def values_for(inputs: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    found = []
    for number, x in enumerate(inputs):
        lengths = [1 if one else n for one, n in zip(x.type.broadcastable, shape, strict=True)]
        found.append(array(*lengths, dtype=x.dtype) + number)
    return found


@pytest.mark.parametrize(("axes", "ndim"), AXES)
def test_the_gradient_reads_two_arrays_twice(emu: Emulator, axes: Any, ndim: int) -> None:
    """An op between the result and its gradient, such as a product, needs it in memory."""
    inputs, z = normalized(axes, ndim)
    w = T.fmatrix("w")
    h = T.nnet.relu(z)
    loss = T.sqr(T.dot(h if ndim == 2 else h.flatten(2), w)).mean()
    shape = (3, 2, 5, 4)[:ndim]
    values = [*values_for(inputs, shape), array(int(np.prod(shape[1:])), 3)]
    f = check([*inputs, w], [loss, *symcomp.grad(loss, inputs)], values, 256, on_host=True)
    assert arrays_moved(f, ndim) == [(3, 1), (4, 1)]


def test_normalization_between_convolutions(emu: Emulator) -> None:
    """The lengths of the image are those of a convolution."""
    x, v, w = T.ftensor4("x"), T.ftensor4("v"), T.ftensor4("w")
    gamma, beta = T.fvector("gamma"), T.fvector("beta")
    given = T.nnet.conv2d(x, v)
    z = batch_normalization_train(given, gamma, beta, "spatial")[0]
    loss = T.sqr(T.nnet.conv2d(z, w)).mean()
    inputs = [x, v, w, gamma, beta]
    shapes = (2, 1, 9, 8), (3, 1, 2, 2), (2, 3, 3, 3), (3,), (3,)
    outputs, values = [loss, *symcomp.grad(loss, inputs)], [array(*s) for s in shapes]
    f = check(inputs, outputs, values, 1024, on_host=True)
    assert sorted(arrays_moved(f, 4, Convolve))[-2:] == [(3, 1), (4, 1)]


@pytest.mark.parametrize(("axes", "ndim"), AXES)
def test_gradients_beside_finite_differences(emu: Emulator, axes: Any, ndim: int) -> None:
    inputs, z = normalized(axes, ndim, "float64")
    w = T.tensor(name="w", dtype="float64", shape=(None,) * ndim)
    shape = (3, 2, 3, 2)[:ndim]
    values = [*values_for(inputs, shape), array(*shape, dtype="float64")]
    loss = (T.tanh(z) * w).sum()
    f = check([*inputs, w], [loss, *symcomp.grad(loss, [*inputs, w])], values, 1024)
    _, *slopes = f(*values)
    for number, slope in enumerate(slopes):
        for place in np.ndindex(*values[number].shape):
            ends = []
            for h in (1e-5, -1e-5):
                moved = [v.copy() for v in values]
                moved[number][place] += h
                ends.append(float(f(*moved)[0]))
            np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, slope[place], 1e-6, 1e-6)


def test_one_kernel_for_a_gradient_of_the_same_elements(emu: Emulator) -> None:
    """The gradient of the result is another argument, whose lengths are compared with those of the
    image.
    """
    inputs, z = normalized("spatial", 4)
    g = T.ftensor4("g")
    values = [*values_for(inputs, (3, 2, 5, 5)), array(3, 2, 5, 5)]
    f = check([*inputs, g], [z, *symcomp.grad((T.nnet.relu(z) * g).sum(), inputs)], values, 256)
    emu.counters.clear()
    f(*values)
    assert emu.counters.launches == 1
    with pytest.raises(ValueError, match="length"):
        f(*values[:3], array(3, 2, 5, 4))


def test_channels_that_no_block_holds(emu: Emulator) -> None:
    """Passes over channels are cut in chunks, whose sums another kernel joins."""
    inputs, z = normalized("spatial", 4)
    h = T.nnet.relu(z)
    loss = T.sqr(T.dot(h.flatten(2), T.ones((2 * 150 * 150, 1), "float32"))).mean()
    values = values_for(inputs, (2, 2, 150, 150))
    check(inputs, symcomp.grad(loss, inputs), values, 4096, orders=[0], on_host=True)
