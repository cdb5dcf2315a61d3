"""Fourier transforms and convolution of PyTensor."""

import numpy as np
import pytest

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
from pytensor.tensor import fft  # noqa: E402
from pytensor.tensor.fourier import fft as complex_transform  # noqa: E402
from pytensor.tensor.signal.conv import Convolve1d, convolve1d, convolve2d  # noqa: E402

from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", [None, "ortho", "no_norm"])
@pytest.mark.parametrize("shape", [(3, 8), (2, 7), (1, 1), (0, 4), (2, 3, 4), (2, 4, 5)], ids=str)
def test_real_transforms(shape, norm, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * len(shape))
    z = fft.rfft(x, norm)
    again = fft.irfft(z, norm, is_odd=bool(shape[-1] % 2))
    outputs = [z, again, pytensor.grad(pt.sin(z).sum(), x), pytensor.grad(pt.sin(again).sum(), x)]
    value = RNG.normal(size=shape).astype(dtype)
    close = 1e-4 if dtype == "float32" else 1e-10
    compare([x], outputs, [value], rtol=close, atol=close)


def test_lengths_of_real_transforms():
    x, n = pt.dtensor3("x"), pt.lscalar("n")
    z = fft.rfft_op(x, pt.stack([n, 3]))
    back = fft.irfft_op(pt.stack([x, x + 1], axis=-1), pt.stack([n, 5]))
    for length in (2, 5):
        compare([x, n], [z, back], [RNG.normal(size=(2, 4, 3)), np.int64(length)], atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex128"])
def test_complex_transforms(dtype):
    x, n = pt.matrix("x", dtype=dtype), pt.lscalar("n")
    outputs = [complex_transform(x, n, 0), complex_transform(x, 3, 1), complex_transform(x, 6, 1)]
    value = RNG.normal(size=(4, 5)) * (1 + 2j if dtype == "complex128" else 7)
    if dtype == "float32":  # PyTensor's code returns complex64 for the type complex128
        f = pytensor.function([x, n], outputs, mode="SYMCOMP")
        value = value.astype(dtype)
        for got, (length, axis) in zip(f(value, 2), [(2, 0), (3, 1), (6, 1)], strict=True):
            wanted = np.fft.fft(value.astype("float64"), length, axis)
            np.testing.assert_allclose(got, wanted, atol=1e-12)
        return
    compare([x, n], outputs, [value.astype(dtype), np.int64(7)], atol=1e-12)
    axis = pt.lscalar("axis")
    values = [value.astype(dtype), np.int64(4), np.int64(1)]
    compare([x, n, axis], complex_transform(x, n, axis), values, fallbacks=["Fourier"])


MODES = ("full", "valid", "same")


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64", "complex128"])
@pytest.mark.parametrize("mode", MODES)
def test_convolution(mode, dtype):
    for static in (True, False):
        for n, k in ((7, 3), (3, 6), (4, 4), (1, 1)):
            x, w = (
                pt.tensor(name, dtype=dtype, shape=(m if static else None,))
                for name, m in (("x", n), ("w", k))
            )
            z = convolve1d(x, w, mode=mode)
            outputs = [z]
            if dtype == "float64":
                outputs += pytensor.grad(pt.sin(z).sum(), [x, w])
            values = [(RNG.normal(size=m) * 5).astype(dtype) for m in (n, k)]
            compare([x, w], outputs, values, atol=1e-5 if dtype == "float32" else 1e-12)


STACKS = [((), (2,)), ((3,), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3))]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("stacks", STACKS, ids=str)
def test_convolution_of_stacks(stacks, static):
    shapes = [(*stacks[0], 5), (*stacks[1], 2)]
    kinds = [[n if static or n == 1 else None for n in shape] for shape in shapes]
    x, w = (pt.tensor(name, shape=kind) for name, kind in zip("xw", kinds, strict=True))
    values = [RNG.normal(size=shape) for shape in shapes]
    for mode in MODES[:2]:
        z = convolve1d(x, w, mode=mode)
        compare([x, w], [z, *pytensor.grad(pt.sin(z).sum(), [x, w])], values, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_convolution_of_planes(mode):
    x, w, stack = pt.dmatrix("x"), pt.dmatrix("w"), pt.dtensor3("stack")
    outputs = [convolve2d(v, w, mode=mode) for v in (x, stack)]
    outputs += pytensor.grad(sum(pt.sin(z).sum() for z in outputs), [x, w, stack])
    values = [RNG.normal(size=shape) for shape in ((5, 6), (2, 3), (3, 4, 3))]
    compare([x, w, stack], outputs, values, atol=1e-12)


def test_modes_of_convolution_that_are_found_when_the_function_runs():
    x, w, full = pt.dvector("x"), pt.dvector("w"), pt.scalar("full", dtype="bool")
    z = Convolve1d()(x, w, full)
    values = [RNG.normal(size=4), RNG.normal(size=3)]
    for value in (True, False):
        compare([x, w, full], z, [*values, np.array(value)], atol=1e-13)
