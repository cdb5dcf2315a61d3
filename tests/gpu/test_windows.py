"""Convolution, pooling and their gradients on the emulator."""

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import Recorded
from symcomp.errors import ShapeError
from symcomp.gpu import to_cpu, to_gpu
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.kernels import convolution, pooling
from symcomp.gpu.region import DeviceGraph
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.geometry import Geometry
from symcomp.ops.windows.pooling import AtPositions, MaxPool, SumPool, SumPoolInputs, ToPositions
from symcomp.tensor.nnet.bn import batch_normalization_train
from symcomp.tensor.signal.pool import pool_2d
from symcomp.tests.gpu.running import DEVICE, assert_close, check, ops_on_device, ops_on_host

RNG = np.random.default_rng(0)
FLOATS = ("float16", "float32", "float64")


def normal(shape: Any, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def tensor(dtype: str, ndim: int) -> Any:
    return TensorType(dtype, (None,) * ndim)()


def turned(x: Any, axes: Any) -> Any:
    """Reverse the spatial axes of a tensor, where asked for."""
    return x[(slice(None), slice(None), *(slice(None, None, -1 if a else 1) for a in axes))]


PADDING = st.one_of(
    st.sampled_from(["valid", "half", "full"]), st.tuples(st.integers(0, 3), st.integers(0, 3))
)


@st.composite
def convolutions(draw: Any) -> Any:
    """Draw a geometry, groups, the shapes of images and kernels, and which axes are reversed."""
    ndim = draw(st.integers(1, 3))
    many = lambda one: draw(st.tuples(*[one] * ndim))  # noqa: E731
    geometry = Geometry(many(PADDING), many(st.integers(1, 4)), many(st.integers(1, 3)))
    groups, per_group = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    kernel = many(st.integers(1, 4))
    lengths = []
    for a, k in enumerate(kernel):
        least = max(1, geometry.span(a, k) - sum(geometry.pads(a, k)))
        lengths.append(least + draw(st.integers(0, 5)))
    images = (draw(st.integers(0, 3)), groups * per_group, *lengths)
    kernels = (groups * draw(st.integers(0, 3)), per_group, *kernel)
    return geometry, groups, images, kernels, many(st.booleans()), draw(st.sampled_from(FLOATS))


@settings(max_examples=40, deadline=None)
@given(convolutions())
def test_convolutions(case: Any) -> None:
    geometry, groups, images, kernels, flips, dtype = case
    ndim = len(flips)
    x, w, g = (tensor(dtype, ndim + 2) for _ in range(3))
    shape = Convolve(geometry, groups).result_shape(images, kernels)
    y = Convolve(geometry, groups)(turned(x, flips), turned(w, flips))
    gx = ConvolveInputs(geometry, groups)(turned(w, flips), turned(g, flips), *images[2:])
    gw = ConvolveKernels(geometry, groups)(turned(x, flips), turned(g, flips), *kernels[2:])
    before = set_driver("emu", Emulator())
    with config.change_flags(cflags="-O0"):
        values = [normal(s, dtype) for s in (images, kernels, shape)]
        check([x, w, g], [y, gx, gw * 1], values, 32, orders=[0, 2], on_host=True)
    set_driver("emu", before)


def test_long_sums_are_added_up_in_chunks(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(emu.libraries, "cudnn", None)
    x, g = T.ftensor4("x"), T.ftensor4("g")
    z = ConvolveKernels(Geometry(((1, 1), "valid"), (1, 1), (1, 1)))(x, g, 3, 3)
    f = check([x, g], z * 1, [normal((8, 5, 20, 22)), normal((8, 6, 20, 20))], 64)
    (region,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    plan = region.program.plans[0].plan
    assert plan.calls[0].launch.grid[1] > 1


def test_more_channels_and_kernels_than_a_tile_has(emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.nnet.conv2d(x, w, border_mode="half", num_groups=2)
    z = [y, *symcomp.grad((y * y).sum(), [x, w])]
    check([x, w], z, [normal((2, 36, 6, 7)), normal((134, 18, 3, 3))], 64, orders=[0], on_host=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(emu: Emulator, value: float) -> None:
    x, w, g = (T.dtensor4(name) for name in "xwg")
    geometry = Geometry(((2, 1), "half"), (2, 1), (1, 2))
    images, kernels = (2, 2, 7, 6), (3, 2, 3, 3)
    shape = Convolve(geometry).result_shape(images, kernels)
    z = [
        Convolve(geometry)(x, w) * 1,
        ConvolveInputs(geometry)(w, g, *images[2:]) * 1,
        ConvolveKernels(geometry)(x, g, *kernels[2:]) * 1,
    ]
    for i in range(3):
        values = [normal(s, "float64") for s in (images, kernels, shape)]
        values[i][1, 1, 0, 2] = value
        check([x, w, g], z, values, 16)


def test_integers_of_64_bits(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "LARGEST_NARROW", 0)
    monkeypatch.setattr(pooling, "needs_wide", lambda *given: True)
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.nnet.conv2d(x, w, border_mode=(2, 1), subsample=(1, 2), filter_dilation=(2, 1))
    z = [pool_2d(y, (2, 3), False, mode=mode) for mode in ("max", "average_inc_pad")]
    z += symcomp.grad((z[0] * z[0]).sum() + T.sqr(z[1]).sum(), [x, w])
    f = check([x, w], z, [normal((2, 3, 7, 9)), normal((4, 3, 3, 2))], 32, on_host=True)
    names = {name.partition("{")[0] for name in ops_on_device(f)}
    assert names >= {"Convolve", "MaxPool", "SumPool"}


def test_images_and_kernels_that_do_not_fit(emu: Emulator) -> None:
    x, w, g = T.ftensor4("x"), T.ftensor4("w"), T.ftensor4("g")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x, w], T.nnet.conv2d(x, w))
        plain = Geometry(("valid",) * 2, (1, 1), (1, 1))
        h = symcomp.function([w, g], ConvolveInputs(plain)(w, g, 4, 4))
    with pytest.raises(ShapeError, match="the image has 3 channels, the kernels take 2"):
        f(normal((1, 3, 4, 4)), normal((2, 2, 3, 3)))
    with pytest.raises(ShapeError, match="does not fit an image"):
        f(normal((1, 2, 2, 4)), normal((2, 2, 3, 3)))
    with pytest.raises(ShapeError, match="the gradient has shape"):
        h(normal((1, 2, 3, 3)), normal((1, 1, 3, 2)))


def test_convolutions_of_whole_numbers_stay_on_the_host(emu: Emulator) -> None:
    x, w = T.ltensor4("x"), T.ltensor4("w")
    values = [np.arange(16).reshape(1, 1, 4, 4), np.arange(4).reshape(1, 1, 2, 2)]
    f = check([x, w], T.exp(T.nnet.conv2d(x, w) / 99), values, 4, on_host=True)
    assert any("Convolve" in name for name in ops_on_host(f))


@st.composite
def poolings(draw: Any) -> Any:
    """Draw windows, steps, padding, and the shape of the image."""
    ndim = draw(st.integers(1, 3))
    many = lambda one: draw(st.tuples(*[one] * ndim))  # noqa: E731
    window, strides = many(st.integers(1, 4)), many(st.integers(1, 5))
    partial = draw(st.booleans())
    padding = tuple(0 if partial else draw(st.integers(0, k - 1)) for k in window)
    least = [1 if partial else max(1, k - 2 * p) for k, p in zip(window, padding, strict=True)]
    lengths = [n + draw(st.integers(0, 6)) for n in least]
    lead = draw(st.lists(st.integers(0, 3), max_size=2))
    dtype = draw(st.sampled_from([*FLOATS, "int8", "int64", "uint16"]))
    return window, strides, padding, partial, (*lead, *lengths), dtype


def image(shape: Any, dtype: str) -> np.ndarray:
    """Return an image with elements that occur twice and, of floats, some that are not finite."""
    found: np.ndarray = RNG.integers(-4, 5, shape).astype(dtype)
    if found.size and found.dtype.kind == "f":
        at = RNG.integers(0, found.size, 3)
        found.reshape(-1)[at] = [np.nan, np.inf, -np.inf]
    return found


@settings(max_examples=40, deadline=None)
@given(poolings(), st.sampled_from(["sum", "average_inc_pad", "average_exc_pad"]), st.booleans())
def test_poolings(case: Any, mode: str, flip: bool) -> None:
    *fields, shape, dtype = case
    ndim = len(fields[0])
    cut, lengths = len(shape) - ndim, shape[len(shape) - ndim :]
    x, g = tensor(dtype, len(shape)), tensor(dtype, len(shape))
    there = x.transfer(DEVICE)[(..., slice(None, None, -1 if flip else 1))]
    back = g.transfer(DEVICE)[(..., slice(None, None, -1 if flip else 1))]
    pool = MaxPool(*fields)
    largest, where = pool(there)
    total = SumPool(*fields, mode)(there)
    z = [largest, where, total, ToPositions(ndim)(back, where, *lengths)]
    z += [SumPoolInputs(*fields, mode)(back, *lengths), AtPositions(ndim)(there, where)]
    values = [image(shape, dtype), image((*shape[:cut], *pool.counts(lengths)), dtype)]
    before = set_driver("emu", Emulator())
    with config.change_flags(cflags="-O0"), np.errstate(all="ignore"):
        check([x, g], z, values, 16, orders=[0])
    set_driver("emu", before)


def test_positions_are_written_for_gradients_alone(emu: Emulator) -> None:
    x = T.ftensor4("x")
    z = pool_2d(x, (2, 2), True)
    of_floats = 4 * (64 + 16)
    for outputs, nbytes in (([z], of_floats), ([z, T.grad(z.sum(), x)], of_floats + 8 * 16)):
        f = check([x], outputs, [normal((1, 1, 8, 8))], 0, on_host=True)
        assert bytes_of_pooling(f, normal((1, 1, 8, 8))) == [nbytes]


def bytes_of_pooling(f: Any, *values: Any) -> list[int]:
    """Return the bytes of each max-pooling of a function, in all steps."""
    timeline = Timeline()
    Recorded(f, timeline)(*values)
    timeline.finish()
    found = timeline.totals.items()
    return [total.nbytes for (_, _, label), total in found if label.startswith("MaxPool")]


@pytest.mark.usefixtures("unmerged")
def test_loops_write_positions_for_gradients_alone(emu: Emulator) -> None:
    x, of_floats = T.ftensor5("x"), 4 * (64 + 16)

    def pooled(image: Any, total: Any) -> Any:
        largest = pool_2d(T.tanh(image + total[0, 0, 0, 0]), (2, 2), True)
        return total + largest, symcomp.until(total[0, 0, 0, 0] > 1e6)

    zeros = T.zeros((1, 1, 4, 4), "float32")
    plain, _ = symcomp.scan(lambda image, total: pooled(image, total)[0], x, zeros)
    ending, _ = symcomp.scan(pooled, x, zeros)
    nested, _ = symcomp.scan(
        lambda image, total: total
        + symcomp.scan(lambda t: pooled(image, t)[0], None, zeros, n_steps=2)[0][-1],
        x,
        zeros,
    )
    value = normal((3, 1, 1, 8, 8))
    for z, count in ((plain, 3), (ending, 3), (nested, 6)):
        f = check([x], z, [value], 4, on_host=True)
        assert bytes_of_pooling(f, value) == [count * of_floats]
    f = check([x], [plain, T.grad(plain.sum(), x)], [value], 4, on_host=True)
    assert min(bytes_of_pooling(f, value)) >= 3 * (of_floats + 8 * 16)


def test_normalization_reads_and_writes_an_image_once(emu: Emulator) -> None:
    x, g, b = T.ftensor4("x"), T.fvector("g"), T.fvector("b")
    z = batch_normalization_train(x, g, b, "spatial")[0]
    f = check([x, g, b], T.nnet.relu(z), [normal((3, 2, 5, 5)), normal((2,)), normal((2,))], 64)
    emu.counters.clear()
    f(normal((3, 2, 5, 5)), normal((2,)), normal((2,)))
    assert emu.counters.launches == 1


def test_positions_from_elsewhere(emu: Emulator) -> None:
    g, where = T.fmatrix("g"), T.lmatrix("where")
    x = T.ftensor3("x")
    there = to_cpu(to_gpu(where, DEVICE))
    z = [ToPositions(1)(g * 2, there, 5), AtPositions(1)(x[0] * 2, there)]
    value = RNG.integers(0, 5, (3, 6))
    f = check([g, where, x], z, [normal((3, 6)), value, normal((1, 3, 5))], 4, on_host=True)
    value[1, 2] = 5
    with pytest.raises(IndexError, match="index 5 is out of range for an axis of length 5"):
        f(normal((3, 6)), value, normal((1, 3, 5)))


def test_a_gradient_of_another_shape(emu: Emulator) -> None:
    g, where = T.fmatrix("g"), T.lmatrix("where")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([g, where], ToPositions(1)(g, where, 5))
        h = symcomp.function([g], SumPoolInputs((2,), (2,), (0,), False, "sum")(g, 6))
    with pytest.raises(ShapeError, match="the positions"):
        f(normal((3, 5)), np.zeros((3, 6), "int64"))
    with pytest.raises(ShapeError, match="the gradient has shape"):
        h(normal((3, 2)))


@pytest.mark.parametrize("mode", ["max", "average_exc_pad"])
def test_second_derivatives(emu: Emulator, mode: str) -> None:
    x, w, v = T.dtensor4("x"), T.dtensor4("w"), T.dtensor4("v")
    z = T.sqr(pool_2d(T.nnet.conv2d(x, w), (2, 2), True, mode=mode)).sum()
    values = [normal(s, "float64") for s in ((2, 2, 6, 6), (3, 2, 3, 3), (3, 2, 3, 3))]
    outputs = [symcomp.Rop(symcomp.grad(z, w), w, v), symcomp.Rop(z, w, v)]
    check([x, w, v], outputs, values, 64, orders=[0], on_host=True)


def lenet() -> Any:
    """Return a training step of a network with two convolutions, its parameters, and a batch."""
    rng = np.random.default_rng(3)
    shapes = [(4, 1, 5, 5), (4,), (6, 4, 3, 3), (6,), (6 * 3 * 3, 12), (12,), (12, 10), (10,)]
    params = [
        symcomp.shared((rng.standard_normal(s) / np.sqrt(prod(s[1:]) or 1)).astype("float32"))
        for s in shapes
    ]
    x, y = T.ftensor4("x"), T.ivector("y")
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    h = pool_2d(T.tanh(T.nnet.conv2d(x, w1) + b1.dimshuffle("x", 0, "x", "x")), (2, 2), True)
    h = T.nnet.relu(T.nnet.conv2d(h, w2) + b2.dimshuffle("x", 0, "x", "x"))
    h = pool_2d(h, (2, 2), True, mode="average_exc_pad").flatten(2)
    scores = T.dot(T.tanh(T.dot(h, w3) + b3), w4) + b4
    loss = -T.log(T.nnet.softmax(scores)[T.arange(y.shape[0]), y]).mean()
    grads = symcomp.grad(loss, params)
    updates = [(p, p - np.float32(0.1) * g) for p, g in zip(params, grads, strict=True)]
    batch = rng.standard_normal((3, 1, 20, 20)).astype("float32"), np.array([1, 7, 3], "int32")
    return [x, y], loss, updates, params, batch


def test_training_a_convolutional_network(emu: Emulator) -> None:
    inputs, loss, updates, params, batch = lenet()
    f = symcomp.function(inputs, loss, updates=updates)
    with config.change_flags(device=DEVICE):
        inputs, loss, updates, moved, batch = lenet()
        g = symcomp.function(inputs, loss, updates=updates)
    for _ in range(3):
        assert_close(g(*batch), f(*batch), 16)
    for p, q in zip(params, moved, strict=True):
        assert_close(q.get_value(), p.get_value(), 64)
    assert sum(isinstance(n.op, DeviceGraph) for n in g.maker.fgraph.toposort()) == 1
    # The labels are whole numbers, and shapes.
    assert {name.partition("{")[0] for name in ops_on_host(g)} <= {"AsRows", "ShapeI", "cast"}
    there = " ".join(ops_on_device(g))
    assert all(name in there for name in ("Convolve{", "ConvolveKernels{", "ToPositions{"))
    emu.counters.clear()
    g(*batch)
    assert emu.counters.waits == 1
