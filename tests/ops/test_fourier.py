"""Fourier transforms: against NumPy, with derivatives."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

F = T.fft
RNG = np.random.default_rng(5)
NORMS = (None, "backward", "ortho", "forward")
LOOSE = {"rtol": 1e-9, "atol": 1e-9}


def numbers(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if dtype == "complex128" else x


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


def numpy_rfft(x, norm):
    axes = tuple(range(1, x.ndim))
    return pairs(np.fft.rfftn(x, axes=axes, norm="ortho" if norm == "ortho" else None))


@pytest.mark.parametrize("norm", [None, "ortho", "no_norm"])
@pytest.mark.parametrize("shape", [(2, 5), (2, 6), (1, 1), (3, 2), (2, 3, 4), (2, 2, 3), (0, 3)])
def test_theanos_transforms(shape, norm):
    x = numbers(*shape)
    check(lambda v: F.rfft(v, norm), x, expected=numpy_rfft(x, norm), **LOOSE)
    n = shape[-1]
    z = numbers(*shape[:-1], n // 2 + 1, 2)
    axes = tuple(range(1, len(shape)))
    kind = "ortho" if norm == "ortho" else "forward" if norm == "no_norm" else None
    want = np.fft.irfftn(z[..., 0] + 1j * z[..., 1], s=shape[1:], axes=axes, norm=kind)
    check(lambda v: F.irfft(v, norm, is_odd=bool(n % 2)), z, expected=want, **LOOSE)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_one_axis(name, dtype, norm):
    x = numbers(3, 4, dtype=dtype)
    for n in (None, 1, 3, 4, 6):
        for axis in (0, 1, -1, -2):
            want = getattr(np.fft, name)(x, n, axis, norm)
            check(lambda v, n=n, a=axis: getattr(F, name)(v, n, a, norm), x, expected=want, **LOOSE)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(
    ("s", "axes"),
    [(None, None), (None, (1,)), (None, (2, 0)), ((5, 3), None), ((2, 6), (-1, 0)), ((1,), (0,))],
)
def test_several_axes(name, s, axes, norm):
    x = numbers(3, 2, 4, dtype="float64" if name == "rfftn" else "complex128")
    places = axes if axes is not None or s is None else tuple(range(-len(s), 0))
    want = getattr(np.fft, name)(x, s, places, norm)
    check(lambda v: getattr(F, name)(v, s, axes, norm), x, expected=want, **LOOSE)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype):
    x = np.arange(12).reshape(2, 6).astype(dtype)
    low = dtype in ("float16", "float32", "complex64")
    kind, part = ("complex64", "float32") if low else ("complex128", "float64")
    tolerance = {"rtol": 1e-5 if low else 1e-12, "atol": 1e-4 if low else 1e-12, "grad": False}
    check(F.fft, x, expected=lambda v: np.fft.fft(v).astype(kind), **tolerance)
    check(F.irfftn, x, expected=lambda v: np.fft.irfftn(v).astype(part), **tolerance)
    if dtype.startswith("complex"):
        with pytest.raises(DTypeError, match=r"must be real; fft"):
            F.rfft(T.as_tensor_variable(x))
        with pytest.raises(DTypeError, match="pairs of real numbers"):
            F.irfft(T.as_tensor_variable(np.ones((2, 3, 2), dtype)))
    else:
        check(F.rfft, x, expected=lambda v: numpy_rfft(v, None).astype(part), **tolerance)


def test_lengths_may_be_variables():
    x, n = T.dvector("x"), T.lscalar("n")
    f = symcomp.function([x, n], [F.fft(x, n), F.irfftn(F.fft(x), (n,))])
    value = numbers(5)
    for length in (1, 4, 5, 8, 11):
        z, y = f(value, length)
        np.testing.assert_allclose(z, np.fft.fft(value, length), atol=1e-12)
        np.testing.assert_allclose(y, np.fft.irfft(np.fft.fft(value), length), atol=1e-12)


def test_lengths_that_are_those_of_the_tensor_copy_nothing():
    x = T.dmatrix("x")
    n, m = T.shape_i(x, 0), T.shape_i(x, 1)
    for z in (F.rfftn(x, (m,), (1,)), F.fftn(x, (n, m))):
        names = [type(node.op).__name__ for node in toposort([z])]
        assert not any("Subtensor" in name for name in names), names
        assert z.eval({x: np.eye(2, 4)}).shape[0] == 2


def test_a_vector_says_the_lengths():
    x, like = T.dmatrix("x"), T.dmatrix("like")
    value = numbers(3, 4)
    for name, given in (("fftn", value), ("rfftn", value), ("ifftn", value), ("irfftn", value)):
        f = symcomp.function([x, like], getattr(F, name)(x, like.shape))
        for shape in ((2, 5), (4, 4), (3, 7)):
            want = getattr(np.fft, name)(given, shape, (0, 1))
            np.testing.assert_allclose(f(given, np.ones(shape)), want, atol=1e-12)
    assert F.fft(T.dmatrix(), np.int64(5)).type.shape == (None, 5)


def test_strides_and_numbers_that_are_not_finite():
    base = numbers(4, 6)
    check(F.fft, base[::-1, ::2], expected=np.fft.fft(base[::-1, ::2]), **LOOSE)
    check(F.rfft, base.T, expected=numpy_rfft(base.T, None), **LOOSE)
    x = T.dmatrix()
    z = F.rfft(x).eval({x: [[1.0, np.nan, 0.0], [1.0, 2.0, 3.0]]})
    assert np.isnan(z[0, :, 0]).all()
    assert np.isfinite(z[1]).all()


def test_the_transform_of_a_product_is_a_convolution():
    x, y = T.dvectors("x", "y")
    z = F.irfftn(F.rfftn(x, (7,)) * F.rfftn(y, (7,)), (7,))
    check(
        lambda x, y: F.irfftn(F.rfftn(x, (7,)) * F.rfftn(y, (7,)), (7,)),
        numbers(4), numbers(4), expected=np.convolve, **LOOSE,
    )  # fmt: skip
    slope = symcomp.function([x, y], symcomp.grad(z[0], x))
    np.testing.assert_allclose(slope([1, 2, 3, 4], [5, 6, 7, 8]), [5, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("mode", ["FAST_RUN", "DebugMode"])
def test_in_loops_and_jacobians(mode):
    x = T.dvector("x")
    halved = lambda h: F.irfftn(F.rfftn(h) * 0.5, s=(5,))  # noqa: E731
    steps, _ = symcomp.scan(halved, outputs_info=[x], n_steps=3)
    outputs = [steps[-1], T.grad(steps[-1].sum(), x), T.jacobian(F.irfftn(F.rfftn(x, (4,))), x)]
    value = numbers(5)
    z, slope, matrix = symcomp.function([x], outputs, mode=mode)(value)
    np.testing.assert_allclose(z, value / 8, atol=1e-15)
    np.testing.assert_allclose(slope, np.full(5, 0.125))
    np.testing.assert_allclose(matrix, np.eye(4, 5), atol=1e-15)


def test_errors():
    x, z = T.dvector("x"), T.ztensor3("z")
    with pytest.raises(ShapeError, match=r"rfft: inp .* has 1 axes"):
        F.rfft(x)
    with pytest.raises(ShapeError, match=r"irfft: inp .* at least 3 axes"):
        F.irfft(T.dmatrix())
    for function in (F.rfft, F.irfft):
        with pytest.raises(ValueError, match=r"norm is 'forward'; it must be one of None"):
            function(T.dtensor3(), norm="forward")
    with pytest.raises(ValueError, match="is_odd is 3"):
        F.irfft(T.dtensor3(), is_odd=3)
    with pytest.raises(ValueError, match=r"fftn: norm is 'no_norm'"):
        F.fft(x, norm="no_norm")
    with pytest.raises(ShapeError, match="different ones"):
        F.fftn(z, axes=(0, -3))
    with pytest.raises(ShapeError, match="2 lengths for 1 axes"):
        F.rfftn(x, s=(2, 3), axes=(0,))
    for n in (0, np.int64(-1)):
        with pytest.raises(ShapeError, match=r"fftn: lengths are .* must be positive"):
            F.fft(x, n)
    for n in (2.0, T.dscalar("n"), T.lvector("n")):
        with pytest.raises(DTypeError, match="must be an integer or an integer scalar"):
            F.fft(x, n)
    with pytest.raises(ShapeError, match="a vector of known length"):
        F.fftn(x, T.lvector("s"))
    with pytest.raises(ShapeError, match="no transform of no elements"):
        F.fft(T.as_tensor_variable(np.ones((2, 0))))
    for function in (F.fftn, F.rfftn):
        with pytest.raises(ShapeError, match="no transform of no elements"):
            function(x).eval({x: []})
    with pytest.raises(ShapeError, match="does not fit n = 0"):
        F.irfftn(x).eval({x: [1.0]})
