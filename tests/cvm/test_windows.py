"""Convolution and pooling in the native machine give what Python gives."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.windows.convolution import Convolve
from symcomp.ops.windows.convolve import read_geometry
from symcomp.ops.windows.pooling import MaxPool, SumPool, SumPoolInputs
from symcomp.tests.cvm.looking import kinds_of

RNG = np.random.default_rng(0)


def both(inputs: Any, outputs: Any, *values: Any, wants: Any = ()) -> Any:
    """Return the results of the native machine, checked to equal those of the Python machine."""
    found = []
    for linker in ("cvm", "py"):
        f = symcomp.function(inputs, outputs, mode=symcomp.Mode(linker=linker))
        found.append(f(*values))
        if linker == "cvm":
            assert set(wants) <= set(kinds_of(f))
    for native, python in zip(*found, strict=True):
        assert native.dtype == python.dtype
        tolerance = 1e-4 if native.dtype == "float32" else 1e-11
        np.testing.assert_allclose(native, python, rtol=tolerance, atol=tolerance)
    return found[0]


PADDINGS = ["valid", "full", "half", (0, 2), ((1, 0), (2, 3))]
STEPS = [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 2), (2, 1))]


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolution_and_its_adjoints(padding: Any, steps: Any, dtype: str) -> None:
    geometry = read_geometry("test", padding, *steps, 2)
    x, w, g = (T.tensor4(n, dtype=dtype) for n in "xwg")
    for groups, images, kernels in itertools.product((1, 2), (1, 7), (2, 6)):
        y = Convolve(geometry, groups)(x, w)
        outputs = [y, *symcomp.Lop(y, [x, w], g)]
        a = RNG.normal(size=(images, 4, 7, 6)).astype(dtype)
        b = RNG.normal(size=(kernels, 4 // groups, 3, 2)).astype(dtype)
        counts = geometry.counts((7, 6), (3, 2))
        c = RNG.normal(size=(images, kernels, *counts)).astype(dtype)
        both([x, w, g], outputs, a, b, c, wants=["convolution"])


def test_one_axis_and_many_images() -> None:
    x, w, g = T.dtensor3s("x", "w", "g")
    geometry = read_geometry("test", 2, 1, 2, 1)
    y = Convolve(geometry)(x, w)
    outputs = [y, *symcomp.Lop(y, [x, w], g)]
    values = [RNG.normal(size=s) for s in ((90, 3, 11), (4, 3, 3), (90, 4, 11))]
    both([x, w, g], outputs, *values, wants=["convolution"])


def test_layouts() -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.nnet.conv2d(x, w, border_mode="half")
    a = RNG.normal(size=(5, 6, 3, 8)).astype("f4").transpose(3, 2, 1, 0)[::-2]
    b = RNG.normal(size=(4, 3, 3, 3)).astype("f4")[:, ::-1]
    both([x, w], [y], a, b, wants=["convolution"])
    none = both([x, w], [y], a[:0], b)
    assert none[0].shape == (0, 4, 6, 5)


def test_what_does_not_fit_is_said() -> None:
    x, w, g = T.dtensor4s("x", "w", "g")
    y = T.nnet.conv2d(x, w)
    f = symcomp.function([x, w], y)
    with pytest.raises(ShapeError, match="image has 2 channels, the kernels take 3"):
        f(np.ones((1, 2, 5, 5)), np.ones((4, 3, 2, 2)))
    with pytest.raises(ShapeError, match="does not fit an image"):
        f(np.ones((1, 2, 5, 5)), np.ones((4, 2, 2, 6)))
    h = symcomp.function([x, w, g], symcomp.Lop(y, [x, w], g))
    for shape in ((1, 4, 5, 5), (2, 4, 4, 4), (1, 3, 4, 4)):
        with pytest.raises(ShapeError, match="the gradient has shape"):
            h(np.ones((1, 2, 5, 5)), np.ones((4, 2, 2, 2)), np.ones(shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("partial", [False, True])
def test_pooling(partial: bool, dtype: str) -> None:
    x = T.tensor4("x", dtype=dtype)
    a = RNG.normal(size=(3, 2, 7, 9)).astype(dtype)
    a[0, 0, ::3] = np.nan
    a[1] = np.round(a[1])
    a[2, 1] = -np.inf
    for window, strides in itertools.product([(2, 2), (3, 1), (1, 4)], [(2, 2), (1, 3), (4, 4)]):
        for padding in [(0, 0)] if partial else [(0, 0), (window[0] - 1, window[1] // 2)]:
            z, where = MaxPool(window, strides, padding, partial)(x)
            slope = symcomp.grad(T.switch(T.isnan(z), 1, z).sum(), x)
            both([x], [z, where, slope], a, wants=["pool"])
    volume = T.signal.pool.pool_3d(x, (2, 2, 2))
    both([x], [volume, symcomp.grad(volume.sum(), x)], abs(a[2:]), wants=["pool"])


@pytest.mark.parametrize("mode", ["sum", "average_inc_pad", "average_exc_pad"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_means(mode: str, dtype: str) -> None:
    x, g = T.tensor4("x", dtype=dtype), T.tensor4("g", dtype=dtype)
    a = RNG.normal(size=(3, 2, 7, 9)).astype(dtype)
    for window in [(2, 2), (3, 1), (1, 4), (2, 2, 3), (3,)]:
        n, ones, zeros = len(window), (1,) * len(window), (0,) * len(window)
        half = tuple(k // 2 for k in window)
        for strides, padding, partial in itertools.product(
            [window, ones, (4,) * n], [zeros, half], [False, True]
        ):
            if (
                partial
                and any(padding)
                or any(k > s for k, s in zip(window, (2, 7, 9)[-n:], strict=True))
            ):
                continue
            pool = SumPool(window, strides, padding, partial, mode)
            z = pool(x)
            b = RNG.normal(size=z.eval({x: a}).shape).astype(dtype)
            outputs = [z, symcomp.Lop(z, x, g)]
            found = both([x, g], outputs, a, b, wants=["pool"])
            # Sums are added up in the same order.
            np.testing.assert_array_equal(found[0], pool.perform(a))
    f = symcomp.function([g], SumPoolInputs((2, 2), (2, 2), (0, 0), False, mode)(g, 7, 9))
    with pytest.raises(ShapeError, match="the gradient has shape"):
        f(a)


@pytest.mark.parametrize("padding", ["valid", "full", "half", (0, 2, 1)], ids=str)
@pytest.mark.parametrize("steps", [((1, 1, 1), (1, 1, 1)), ((2, 1, 3), (1, 2, 1))], ids=str)
def test_volumes(padding: Any, steps: Any) -> None:
    geometry = read_geometry("test", padding, *steps, 3)
    volumes = T.TensorType("float64", (None,) * 5)
    x, w, g = (volumes(n) for n in "xwg")
    y = Convolve(geometry, 2)(x, w)
    outputs = [y, *symcomp.Lop(y, [x, w], g)]
    counts = geometry.counts((5, 7, 6), (2, 3, 2))
    shapes = ((3, 4, 5, 7, 6), (6, 2, 2, 3, 2), (3, 6, *counts))
    values = [RNG.normal(size=s) for s in shapes]
    native = both([x, w, g], outputs, *values, wants=["convolution"])
    # Each is a sum of 24 products, in another order.
    want = Convolve(geometry, 2).perform(*values[:2])
    np.testing.assert_allclose(native[0], want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_change_no_bit(dtype: str) -> None:
    x, w, v = (T.tensor4(n, dtype=dtype) for n in "xwv")
    y = T.nnet.conv2d(x, w, border_mode="half")
    largest = T.signal.pool.pool_2d(y, (2, 2), ignore_border=True)
    mean = T.signal.pool.pool_2d(y, (3, 3), mode="average_exc_pad")
    cost = (largest**2).sum() + (mean**3).sum()
    outputs = [y, largest, mean, *symcomp.grad(cost, [x, w])]
    a = RNG.normal(size=(37, 8, 21, 20)).astype(dtype)
    b = RNG.normal(size=(16, 8, 5, 5)).astype(dtype)
    found = []
    for threads in (1, 2, 5):
        with symcomp.config.change_flags(openmp=True, openmp_threads=threads):
            f = symcomp.function([x, w], outputs)
            assert {"convolution", "pool"} <= set(kinds_of(f))
            found.append(f(a, b))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_threads_within_threads() -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    a = RNG.normal(size=(40, 8, 16, 16)).astype("f4")
    b = RNG.normal(size=(16, 8, 5, 5)).astype("f4")
    with symcomp.config.change_flags(openmp=True, openmp_threads=3):
        f = symcomp.function([x, w], T.nnet.conv2d(x, w))
    expected = f(a, b)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: f(a, b), range(8)):
            np.testing.assert_array_equal(found, expected)


def test_windows_that_do_not_fit() -> None:
    x = T.dmatrix("x")
    f = symcomp.function([x], T.signal.pool.pool_2d(x, 3, ignore_border=True))
    assert f(np.ones((3, 4))).shape == (1, 1)
    for shape in ((2, 5), (0, 5)):
        with pytest.raises(ShapeError, match="windows of"):
            f(np.ones(shape))
