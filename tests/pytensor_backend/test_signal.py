"""Fourier transforms of PyTensor."""

import numpy as np
import pytest

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
from pytensor.tensor import fft  # noqa: E402
from pytensor.tensor.fourier import fft as complex_transform  # noqa: E402

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
