"""Convolution and its adjoints against sums written out, and SciPy."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.convolve import conv2d_of_planes, read_geometry
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)


def written_out(x: Any, w: Any, geometry: Any, groups: int = 1) -> Any:
    """Compute the definition, element by element."""
    b, (o, per_group, *kernel) = len(x), w.shape
    pads = [geometry.pads(a, k) for a, k in enumerate(kernel)]
    wide = np.pad(x, [(0, 0), (0, 0), *pads])
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, geometry.dilation, strict=True)]
    counts = [
        (n - r) // s + 1 for n, r, s in zip(wide.shape[2:], reach, geometry.strides, strict=True)
    ]
    y = np.zeros((b, o, *counts), x.dtype)
    for k, *at in product(range(o), *map(range, counts)):
        first = k // (o // groups) * per_group
        window = tuple(
            slice(i * s, i * s + r, d)
            for i, s, r, d in zip(at, geometry.strides, reach, geometry.dilation, strict=True)
        )
        part = wide[(slice(None), slice(first, first + per_group), *window)]
        y[(slice(None), k, *at)] = (part * w[k]).sum(axis=tuple(range(1, part.ndim)))
    return y


GEOMETRIES: list[tuple[Any, Any, Any]] = [
    ("valid", (1, 1), (1, 1)),
    ("full", (1, 1), (1, 1)),
    ("half", (1, 1), (1, 1)),
    (1, (2, 3), (1, 1)),
    ((0, 2), (1, 2), (2, 1)),
    (((1, 0), (2, 3)), (3, 1), (1, 2)),
    (("half", "full"), (2, 2), (2, 2)),
]


@pytest.mark.parametrize("images", [(0, 2, 4), (3, 0, 4)])
@pytest.mark.parametrize("outputs", [0, 2])
def test_no_images_channels_or_kernels(images: Any, outputs: int) -> None:
    geometry = read_geometry("test", "valid", 1, 1, 1)
    x, w = np.ones(images), np.ones((outputs, images[1], 2))
    y = Convolve(geometry).perform(x, w)
    assert y.shape == (images[0], outputs, 3) and not y.any()
    assert ConvolveInputs(geometry).perform(w, y, 4).shape == x.shape
    assert ConvolveKernels(geometry).perform(x, y, 2).shape == w.shape


@pytest.mark.parametrize("case", GEOMETRIES, ids=str)
def test_convolution(case: Any) -> None:
    x, w = RNG.normal(size=(2, 3, 6, 7)), RNG.normal(size=(4, 3, 3, 2))
    geometry = read_geometry("test", *case, 2)
    check(Convolve(geometry), x, w, expected=lambda x, w: written_out(x, w, geometry))


@pytest.mark.parametrize("case", GEOMETRIES, ids=str)
def test_adjoints(case: Any) -> None:
    """<g, x * w> = <x, inputs(w, g)> = <w, kernels(x, g)>; and their own derivatives."""
    x, w = RNG.normal(size=(2, 3, 6, 7)), RNG.normal(size=(4, 3, 3, 2))
    geometry = read_geometry("test", *case, 2)
    y = written_out(x, w, geometry)
    g = RNG.normal(size=y.shape)
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for at in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[at] = 1
        gx[at] = (written_out(unit, w, geometry) * g).sum()
    for at in np.ndindex(w.shape):
        unit = np.zeros_like(w)
        unit[at] = 1
        gw[at] = (written_out(x, unit, geometry) * g).sum()
    check(lambda w, g: ConvolveInputs(geometry)(w, g, 6, 7), w, g, expected=gx, rtol=1e-10)
    check(lambda x, g: ConvolveKernels(geometry)(x, g, 3, 2), x, g, expected=gw, rtol=1e-10)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups(groups: int) -> None:
    x, w = RNG.normal(size=(2, 4, 5, 4)), RNG.normal(size=(8, 4 // groups, 2, 3))
    geometry = read_geometry("test", 1, (2, 1), 1, 2)
    op = Convolve(geometry, groups)
    y = written_out(x, w, geometry, groups)
    check(op, x, w, expected=y)
    g = RNG.normal(size=y.shape)
    f = symcomp.function([], symcomp.grad((op(T.constant(x), (v := T.constant(w))) * g).sum(), v))
    kernels = ConvolveKernels(geometry, groups)
    check(lambda x, g: kernels(x, g, 2, 3), x, g, expected=f(), rtol=1e-10)
    inputs = ConvolveInputs(geometry, groups)
    back = inputs(T.constant(w), T.constant(g), 5, 4).eval()
    assert (back * x).sum() == pytest.approx((y * g).sum())
    check(lambda w, g: inputs(w, g, 5, 4), w, g, expected=back, rtol=1e-10)


@pytest.mark.parametrize("ndim", [1, 3])
def test_other_numbers_of_axes(ndim: int) -> None:
    x = RNG.normal(size=(2, 3, 5, 4, 6)[: ndim + 2])
    w = RNG.normal(size=(2, 3, 2, 3, 2)[: ndim + 2])
    geometry = read_geometry("test", "half", 2, 1, ndim)
    y = written_out(x, w, geometry)
    check(Convolve(geometry), x, w, expected=y)
    sizes = x.shape[2:]
    g = RNG.normal(size=y.shape)
    back = ConvolveInputs(geometry)(T.constant(w), T.constant(g), *sizes).eval()
    assert (back * x).sum() == pytest.approx((y * g).sum())
    check(lambda w, g: ConvolveInputs(geometry)(w, g, *sizes), w, g, expected=back)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex128"])
def test_dtypes(dtype: str) -> None:
    x, w = (4 * RNG.normal(size=s) for s in ((2, 2, 4, 4), (3, 2, 2, 2)))
    if dtype == "complex128":
        x, w = x + 1j * x[::-1], w - 2j * w[::-1]
    x, w = x.astype(dtype), w.astype(dtype)
    geometry = read_geometry("test", "full", 1, 1, 2)
    exact = written_out(x.astype("complex128"), w.astype("complex128"), geometry)
    wanted = exact.astype(dtype) if dtype == "complex128" else exact.real.astype(dtype)
    loose = dtype in ("float16", "float32")
    check(
        Convolve(geometry), x, w, expected=wanted, grad=not loose, rtol=2e-3 if loose else None,
        atol=1e-2 if loose else 1e-12,
    )  # fmt: skip


def test_layouts_and_empty_batches() -> None:
    x, w = RNG.normal(size=(7, 6, 3, 2)).T, RNG.normal(size=(4, 3, 3, 2))[::-1, :, ::-1]
    geometry = read_geometry("test", 1, 1, 1, 2)
    check(Convolve(geometry), x, w, expected=lambda x, w: written_out(x, w, geometry), grad=False)
    none = np.zeros((0, 3, 5, 5))
    assert Convolve(geometry)(T.constant(none), T.constant(w)).eval().shape == (0, 4, 5, 6)
    g = T.constant(np.zeros((0, 4, 5, 6)))
    assert (ConvolveKernels(geometry)(T.constant(none), g, 3, 2).eval() == 0).all()


def test_many_images_in_blocks() -> None:
    """More images than are laid out at a time."""
    x, w = RNG.normal(size=(150, 8, 12, 12)), RNG.normal(size=(2, 8, 3, 3))
    geometry = read_geometry("test", "valid", 1, 1, 2)
    op = Convolve(geometry)
    y = op(T.constant(x), T.constant(w)).eval()
    one = written_out(x[[0, 77, 149]], w, geometry)
    np.testing.assert_allclose(y[[0, 77, 149]], one)
    g = RNG.normal(size=y.shape)
    back = ConvolveInputs(geometry)(T.constant(w), T.constant(g), 12, 12).eval()
    kernels = ConvolveKernels(geometry)(T.constant(x), T.constant(g), 3, 3).eval()
    assert (back * x).sum() == pytest.approx((y * g).sum())
    assert (kernels * w).sum() == pytest.approx((y * g).sum())


# -- functions


def test_conv2d_turns_kernels_around() -> None:
    x, w = RNG.normal(size=(1, 1, 6, 5)), RNG.normal(size=(1, 1, 3, 2))
    a, b = T.dtensor4("a"), T.dtensor4("b")
    for mode in ("valid", "full"):
        y = T.nnet.conv2d(a, b, border_mode=mode).eval({a: x, b: w})
        np.testing.assert_allclose(y[0, 0], signal.convolve2d(x[0, 0], w[0, 0], mode))
        y = T.nnet.conv2d(a, b, border_mode=mode, filter_flip=False).eval({a: x, b: w})
        np.testing.assert_allclose(y[0, 0], signal.correlate2d(x[0, 0], w[0, 0], mode))


def test_shapes_that_are_told() -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.nnet.conv2d(x, w, (None, 3, 28, 28), (8, 3, 5, 5), "half", (2, 2))
    assert y.type.shape == (None, 8, 14, 14)
    shape = T.nnet.get_conv_output_shape((2, 3, None, 9), (8, 3, 5, 5), ((1, 0), 2), (2, 1))
    assert shape == (2, 8, None, 9)
    with pytest.raises(ShapeError, match="image has 4 channels, the kernels take 3"):
        T.nnet.conv2d(x, w, (None, 4, 28, 28), (8, 3, 5, 5))
    with pytest.raises(ShapeError, match=r"kernel of \(5, 5\) elements does not fit an image of"):
        T.nnet.conv2d(x, w, (1, 1, 4, 9), (1, 1, 5, 5))
    with pytest.raises(ShapeError, match="input_shape is .*, of 2 lengths"):
        T.nnet.conv2d(x, w, (1, 1))
    f = symcomp.function([x, w], T.nnet.conv2d(x, w, (None, 2, None, None)))
    with pytest.raises(ShapeError):
        f(np.ones((1, 3, 4, 4), "f4"), np.ones((1, 3, 2, 2), "f4"))


def test_what_does_not_fit_is_said_at_run_time() -> None:
    x, w = T.dtensor4("x"), T.dtensor4("w")
    f = symcomp.function([x, w], T.nnet.conv2d(x, w))
    with pytest.raises(ShapeError, match="image has 2 channels, the kernels take 3 in each of 1"):
        f(np.ones((1, 2, 5, 5)), np.ones((4, 3, 2, 2)))
    with pytest.raises(ShapeError, match=r"kernel of \(2, 6\) elements does not fit"):
        f(np.ones((1, 2, 5, 5)), np.ones((4, 2, 2, 6)))
    g = symcomp.function([x, w], T.nnet.conv2d_grad_wrt_inputs(x, w, (None, None, 9, 9)))
    with pytest.raises(ShapeError, match=r"the gradient has shape \(1, 4, 5, 5\)"):
        g(np.ones((1, 4, 5, 5)), np.ones((4, 2, 2, 2)))


def test_bad_arguments() -> None:
    x, w = T.dtensor4("x"), T.dtensor4("w")
    for mode in ("same", -1, (1,), 1.5, ((1, 2, 3), 0)):
        with pytest.raises(ValueError, match="conv2d: border_mode is"):
            T.nnet.conv2d(x, w, border_mode=mode)
    with pytest.raises(ValueError, match="conv2d: subsample is"):
        T.nnet.conv2d(x, w, subsample=(0, 1))
    with pytest.raises(ValueError, match="conv2d: filter_dilation is"):
        T.nnet.conv2d(x, w, filter_dilation=(1, 1, 1))
    with pytest.raises(ShapeError, match="4 axes are needed"):
        T.nnet.conv2d(T.dmatrix(), w)
    with pytest.raises(DTypeError, match="not bool"):
        T.nnet.conv2d(T.tensor4(dtype="bool"), T.tensor4(dtype="bool"))
    assert T.nnet.conv2d(T.ftensor4(), w).dtype == "float64"


def test_saving(tmp_path: Path) -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.signal.pool.pool_2d(T.nnet.conv2d(x, w, border_mode=("half", (1, 2))), (2, 2))
    f = symcomp.function([x, w], [y, symcomp.grad(y.sum(), w)])
    symcomp.save(tmp_path / "f.zip", f)
    g = symcomp.load(tmp_path / "f.zip")
    values = [RNG.normal(size=s).astype("f4") for s in ((2, 3, 6, 7), (4, 3, 3, 2))]
    for mine, loaded in zip(f(*values), g(*values), strict=True):
        np.testing.assert_array_equal(mine, loaded)


def test_transposed_convolution() -> None:
    x, w = RNG.normal(size=(1, 2, 3, 3)), RNG.normal(size=(2, 3, 4, 4))
    a, b = T.dtensor4("a"), T.dtensor4("b")
    y = T.nnet.conv2d_transpose(a, b, (None, None, 8, 8), input_dilation=(2, 2))
    found = y.eval({a: x, b: w})
    assert found.shape == (1, 3, 8, 8)
    spread = np.zeros((1, 2, 5, 5))
    spread[:, :, ::2, ::2] = x
    wanted = sum(signal.correlate2d(spread[0, k], w[k, 1]) for k in range(2))
    np.testing.assert_allclose(found[0, 1], wanted)


def test_gradients_as_functions() -> None:
    x, w = T.dtensor4("x"), T.dtensor4("w")
    more = {"border_mode": "half", "subsample": (2, 1), "filter_dilation": (1, 2)}
    y = T.nnet.conv2d(x, w, **more)
    g = T.dtensor4("g")
    outputs = [
        *symcomp.Lop(y, [x, w], g),
        T.nnet.conv2d_grad_wrt_inputs(g, w, x.shape, **more),
        T.nnet.conv2d_grad_wrt_weights(x, g, (4, 3, 3, 2), **more),
    ]
    f = symcomp.function([x, w, g], outputs)
    values = [RNG.normal(size=s) for s in ((2, 3, 6, 7), (4, 3, 3, 2), (2, 4, 3, 7))]
    gx, gw, of_inputs, of_weights = f(*values)
    np.testing.assert_allclose(of_inputs, gx)
    np.testing.assert_allclose(of_weights, gw)
    with pytest.raises(ValueError, match="its last 2 lengths must be known"):
        T.nnet.conv2d_grad_wrt_inputs(g, w, (None, None, None, 5))


def test_causal_and_separable_convolution() -> None:
    x, w = RNG.normal(size=(1, 1, 9)), RNG.normal(size=(1, 1, 3))
    a, b = T.dtensor3("a"), T.dtensor3("b")
    y = T.nnet.causal_conv1d(a, b, (1, 1, 3)).eval({a: x, b: w})
    np.testing.assert_allclose(y[0, 0], np.convolve(x[0, 0], w[0, 0])[:9])
    x, each, mix = (RNG.normal(size=s) for s in ((2, 3, 5, 5), (6, 1, 3, 3), (4, 6, 1, 1)))
    a, b, c = T.dtensor4s("a", "b", "c")
    y = T.nnet.separable_conv2d(a, b, c, 3).eval({a: x, b: each, c: mix})
    wanted = np.zeros((4, 3, 3))
    for k, m in np.ndindex(4, 6):
        wanted[k] += mix[k, m, 0, 0] * signal.convolve2d(x[1, m // 2], each[m, 0], "valid")
    np.testing.assert_allclose(y[1], wanted)


def test_convolution_of_planes() -> None:
    x, w = RNG.normal(size=(2, 6, 5)), RNG.normal(size=(3, 2, 2))
    a, b = T.dtensor3("a"), T.dtensor3("b")
    y = conv2d_of_planes(a, b, border_mode="full").eval({a: x, b: w})
    np.testing.assert_allclose(y[1, 2], signal.convolve2d(x[1], w[2]))
    m, k = T.dmatrix("m"), T.dmatrix("k")
    y = conv2d_of_planes(m, k).eval({m: x[0], k: w[0]})
    np.testing.assert_allclose(y, signal.convolve2d(x[0], w[0], "valid"))
    assert conv2d_of_planes(a, k).ndim == conv2d_of_planes(m, b).ndim == 3
    with pytest.raises(ShapeError, match="it must have 2 or 3 axes"):
        conv2d_of_planes(T.dvector(), k)


def test_conv3d() -> None:
    x, w = RNG.normal(size=(1, 2, 4, 5, 6)), RNG.normal(size=(3, 2, 2, 3, 2))
    a, b = T.dtensor5("a"), T.dtensor5("b")
    y = T.nnet.conv3d(a, b).eval({a: x, b: w})
    wanted = sum(signal.convolve(x[0, c], w[1, c], "valid") for c in range(2))
    np.testing.assert_allclose(y[0, 1], wanted)
    g = T.dtensor5("g")
    gx, gw = symcomp.Lop(T.nnet.conv3d(a, b), [a, b], g)
    other = (
        T.nnet.conv3d_grad_wrt_inputs(g, b, x.shape),
        T.nnet.conv3d_grad_wrt_weights(a, g, w.shape),
    )
    f = symcomp.function([a, b, g], [gx - other[0], gw - other[1]])
    assert all(abs(d).max() < 1e-12 for d in f(x, w, RNG.normal(size=y.shape)))
