"""Convolution by cuDNN: a stand-in with its names and arguments, on the emulator."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import Recorded
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.errors import DeviceError
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.geometry import Geometry
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array, check, check_loops, compile_both
from symcomp.tests.gpu.test_windows import convolutions, turned

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")
# The numbers of NVIDIA's kinds of computing
DEFAULT_MATH, TENSOR_MATH, FULL_MATH = 0, 1, 3
VALID = Geometry(("valid", "valid"), (1, 1), (1, 1))


@pytest.fixture
def cudnn(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cudnn") as (library,):
        yield library


def all_three(geometry: Geometry, groups: int, x: Any, w: Any, g: Any, n: Any, k: Any) -> list[Any]:
    """Return a convolution and its adjoints."""
    return [
        Convolve(geometry, groups)(x, w), ConvolveInputs(geometry, groups)(w, g, *n),
        ConvolveKernels(geometry, groups)(x, g, *k),
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(convolutions())
def test_convolutions(case: Any) -> None:
    geometry, groups, images, kernels, flips, dtype = case
    x, w, g = (TensorType(dtype, (None,) * len(images))() for _ in range(3))
    shape = Convolve(geometry, groups).result_shape(images, kernels)
    given = turned(x, flips), turned(w, flips), turned(g, flips)
    outputs = all_three(geometry, groups, *given, images[2:], kernels[2:])
    driver = Emulator()
    before = set_driver("emu", driver)
    with config.change_flags(cflags="-O0"), stand_ins(driver, "cudnn"):
        values = [array(*s, dtype=dtype) for s in (images, kernels, shape)]
        check([x, w, g], [outputs[0], outputs[1], outputs[2] * 1], values, 32, [0], on_host=True)
    set_driver("emu", before)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("geometry", "groups", "images", "kernels"),
    [
        (Geometry(("valid",), (2,), (1,)), 1, (2, 3, 9), (4, 3, 2)),
        (Geometry(("half",), (1,), (2,)), 2, (2, 4, 9), (2, 2, 3)),
        (Geometry(("valid", "full"), (1, 2), (1, 1)), 1, (2, 3, 5, 6), (4, 3, 2, 3)),
        (Geometry(("half", (1, 1)), (2, 1), (1, 2)), 2, (1, 4, 5, 6), (6, 2, 3, 2)),
        # More after the image than before, which no window meets
        (Geometry(((1, 2), (0, 1)), (2, 2), (1, 1)), 1, (2, 3, 5, 6), (4, 3, 3, 2)),
        (
            Geometry(("half", "valid", "full"), (1, 2, 2), (2, 1, 1)), 1,
            (2, 3, 5, 4, 3), (2, 3, 3, 2, 2),
        ),
    ],
)  # fmt: skip
def test_what_cudnn_has(
    cudnn: Any, emu: Emulator, geometry: Any, groups: int, images: Any, kernels: Any, dtype: str
) -> None:
    x, w, g = (TensorType(dtype, (None,) * len(images))() for _ in range(3))
    outputs = all_three(geometry, groups, x, w, g, images[2:], kernels[2:])
    shape = Convolve(geometry, groups).result_shape(images, kernels)
    before = cudnn.fake_calls()
    values = [array(*s, dtype=dtype) for s in (images, kernels, shape)]
    check([x, w, g], outputs, values, 32, orders=[0], on_host=True)
    assert cudnn.fake_calls() == before + 3
    wanted = {"float16": TENSOR_MATH, "float32": FULL_MATH, "float64": DEFAULT_MATH}
    assert cudnn.fake_math() == wanted[dtype]


@pytest.mark.parametrize(
    ("geometry", "images", "kernels"),
    [
        (Geometry(((0, 1), (0, 0)), (1, 1), (1, 1)), (2, 3, 5, 6), (4, 3, 2, 2)),
        (Geometry(((2, 2), (0, 0)), (1, 1), (1, 1)), (2, 3, 5, 6), (4, 3, 2, 2)),
        (Geometry(("valid",) * 4, (1,) * 4, (1,) * 4), (1, 2, 3, 3, 3, 3), (2, 2, 2, 2, 2, 2)),
        (VALID, (0, 3, 5, 6), (4, 3, 2, 2)),
        (VALID, (2, 0, 5, 6), (4, 0, 2, 2)),
    ],
)
def test_what_kernels_of_our_own_compute(
    cudnn: Any, emu: Emulator, geometry: Any, images: Any, kernels: Any
) -> None:
    x, w, g = (TensorType("float32", (None,) * len(images))() for _ in range(3))
    outputs = all_three(geometry, 1, x, w, g, images[2:], kernels[2:])
    shape = Convolve(geometry).result_shape(images, kernels)
    before = cudnn.fake_calls()
    values = [array(*s) for s in (images, kernels, shape)]
    check([x, w, g], outputs, values, 64, orders=[0], on_host=True)
    assert cudnn.fake_calls() == before


def test_what_cudnn_refuses(cudnn: Any, emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    plain, f = compile_both([x, w], Convolve(VALID)(x, w))
    values = array(2, 3, 5, 5), array(4, 3, 2, 2)
    before = cudnn.fake_calls()
    cudnn.fake_refusal(1)
    np.testing.assert_allclose(f(*values), plain(*values), rtol=1e-5, atol=1e-6)
    cudnn.fake_refusal(0)
    assert cudnn.fake_calls() == before
    f(array(2, 3, 6, 5), values[1])
    assert cudnn.fake_calls() == before + 1


def test_products_on_tensor_cores(cudnn: Any, emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    for products, math in (("full", FULL_MATH), ("tf32", DEFAULT_MATH), ("bf16", DEFAULT_MATH)):
        with config.change_flags(device="emu", gpu_products=products):
            f = symcomp.function([x, w], Convolve(VALID)(x, w))
        f(array(2, 3, 5, 5), array(4, 3, 2, 2))
        gpu.synchronize("emu")
        assert cudnn.fake_math() == math


def test_layouts(cudnn: Any, emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    values = [array(2, 4, 5, 4), array(3, 4, 2, 4)]
    kinds = []
    for image, kernels in ((x, w), (x.transpose(0, 3, 1, 2), w[:, ::-1])):
        z = Convolve(VALID)(image, kernels[..., :2])
        check([x, w], z, values, 32, orders=[0], on_host=True)
        with config.change_flags(device="emu"):
            f = symcomp.function([x, w], z)
        timeline = Timeline()
        Recorded(f, timeline)(*values)
        timeline.finish()
        kinds.append(sum(kind == "library" for _, kind, _ in timeline.totals))
    assert kinds == [1, 1]


def test_descriptors_go_with_their_functions(cudnn: Any, emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    gc.collect()
    before = cudnn.fake_descriptors()
    z = Convolve(VALID)(x, w)
    _, f = compile_both([x, w], [z, Convolve(VALID)(x * 2, w)])
    f(array(2, 3, 5, 5), array(4, 3, 2, 2))
    assert cudnn.fake_descriptors() == before + 4  # both have the same
    f(array(1, 3, 5, 5), array(4, 3, 2, 2))
    assert cudnn.fake_descriptors() == before + 8
    del f
    gc.collect()
    assert cudnn.fake_descriptors() == before


def test_in_loops(cudnn: Any, emu: Emulator) -> None:
    x, w, h = T.TensorType("float32", (None,) * 5)("x"), T.ftensor4("w"), T.ftensor4("h")
    convolve = Convolve(Geometry(("half", "half"), (1, 1), (1, 1)))
    states, _ = symcomp.scan(lambda image, s: T.tanh(convolve(s, w) + image), x, h)
    outputs = [states[-1], *symcomp.grad(T.sqr(states[-1]).sum(), [w, h])]
    values = [array(4, 2, 3, 5, 5), array(3, 3, 3, 3), array(2, 3, 5, 5)]
    check_loops([x, w, h], outputs, values, 256)


def test_in_graphs(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)  # the fixture sets the one before again
    with stand_ins(driver, "cudnn") as (library,), config.change_flags(device="emu"):
        w = symcomp.shared(array(3, 3, 3, 3))
        x = T.constant(array(2, 3, 6, 6))
        loss = T.sqr(T.tanh(Convolve(VALID)(x, w))).sum()
        new = w - 0.01 * symcomp.grad(loss, w)
        f = symcomp.function([], gpu.to_gpu(loss, "emu"), updates=[(w, new)])
        with config.change_flags(device="cpu"):
            v = symcomp.shared(array(3, 3, 3, 3))
            there, then = (symcomp.clone(z, {w: v}) for z in (loss, new))
            host = symcomp.function([], there, updates=[(v, then)])
        for _ in range(12):
            np.testing.assert_allclose(f().get(), host(), rtol=1e-4)
        assert driver.counters.graphs > 4 and library.fake_calls() >= 2


def test_errors_of_the_library(cudnn: Any, emu: Emulator) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    _, f = compile_both([x, w], Convolve(VALID)(x, w))
    f(array(2, 3, 5, 5), array(4, 3, 2, 2))
    cudnn.fake_failure(5000)
    said = r"^Convolve.*cuDNN answers 5000 \(execution failed\)"
    with config.change_flags(gpu_graphs=False), pytest.raises(DeviceError, match=said):
        f(array(2, 3, 5, 5), array(4, 3, 2, 2))
