"""Convolution of arrays and stacks of them against NumPy and SciPy, with derivatives."""

import numpy as np
import pytest
from scipy import signal

import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(6)
MODES = ("full", "valid", "same")
convolve = T.signal.convolve


def wanted(x, w, mode, ndim=1):
    """Return what SciPy computes, pair by pair of the stacks."""
    stack = np.broadcast_shapes(x.shape[:-ndim], w.shape[:-ndim])
    a = np.broadcast_to(x, stack + x.shape[-ndim:])
    b = np.broadcast_to(w, stack + w.shape[-ndim:])
    lengths = zip(x.shape[-ndim:], w.shape[-ndim:], strict=True)
    counts = {
        "full": lambda n, k: n + k - 1, "same": lambda n, k: n,
        "valid": lambda n, k: max(n, k) - min(n, k) + 1,
    }  # fmt: skip
    z = np.zeros(stack + tuple(counts[mode](n, k) for n, k in lengths), np.result_type(x, w))
    for place in np.ndindex(stack):
        z[place] = signal.convolve(a[place], b[place], mode, method="direct")
    return z


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lengths", [(6, 2), (6, 3), (2, 5), (3, 3), (1, 1), (1, 4)], ids=str)
def test_vectors(lengths, mode):
    x, w = (RNG.normal(size=n) for n in lengths)
    check(lambda x, w: convolve(x, w, mode), x, w, expected=wanted(x, w, mode), atol=1e-14)
    check(
        lambda x, w: convolve(x, w, mode), np.arange(12.0)[::-2][: lengths[0]], w[::-1],
        expected=lambda x, w: wanted(x, w, mode), atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype, mode):
    x, w = (RNG.integers(0, 3, n).astype(dtype) for n in (5, 2))
    exact = wanted(x.astype("complex128"), w.astype("complex128"), mode)
    exact = exact if np.dtype(dtype).kind == "c" else exact.real.round()
    check(lambda x, w: convolve(x, w, mode), x, w, expected=exact.astype(dtype))


STACKS = [
    ((4,), ()), ((), (2,)), ((2, 3), (1,)), ((1, 1), (2, 3)), ((3,), (3,)), ((2, 1), (3,)),
    ((0,), ()), ((0,), (1,)), ((2, 0), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stacks", STACKS, ids=str)
def test_stacks(stacks, mode):
    x, w = RNG.normal(size=(*stacks[0], 4)), RNG.normal(size=(*stacks[1], 3))
    check(
        lambda x, w: convolve(x, w, mode), x, w, expected=wanted(x, w, mode), static="full",
        atol=1e-14,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ndim", [2, 3])
def test_more_axes(ndim, mode):
    x, w = RNG.normal(size=(2, 4, 3, 5)[-ndim - 1 :]), RNG.normal(size=(2, 1, 3)[-ndim:])
    check(
        lambda x, w: convolve(x, w, mode, ndim), x, w, expected=wanted(x, w, mode, ndim),
        atol=1e-13,
    )  # fmt: skip


def test_valid_along_axes_of_which_the_one_is_longer_and_the_other_shorter():
    x, w = RNG.normal(size=(2, 5)), RNG.normal(size=(3, 4))
    expected = signal.convolve(x, w, method="direct")[1:3, 3:5]
    check(lambda x, w: convolve(x, w, "valid", 2), x, w, expected=expected, atol=1e-14)


def test_nan_and_infinity_reach_the_elements_they_meet():
    x, w = np.array([1.0, np.nan, 2.0, 3.0, np.inf]), np.array([1.0, 1.0])
    check(convolve, x, w, expected=[1, np.nan, np.nan, 5, np.inf, np.inf], grad=False)


def test_errors():
    x, w = T.dmatrix("x"), T.dmatrix("w")
    with pytest.raises(ValueError, match="mode is 'half'; it must be 'full', 'valid' or 'same'"):
        convolve(x, w, "half")
    with pytest.raises(ValueError, match="ndim is 4; it must be 1, 2 or 3"):
        convolve(x, w, ndim=4)
    with pytest.raises(ShapeError, match=r"w \(float64 vector\) has fewer than ndim=2 axes"):
        convolve(x, T.dvector("w"), ndim=2)
    with pytest.raises(ShapeError, match=r"both stacks, .* name it by specify_shape"):
        convolve(x, w)
    v = T.dvector("v")
    for mode in MODES:
        with pytest.raises(ShapeError, match="does not fit an image"):
            convolve(v, np.ones(0), mode).eval({v: np.ones(3)})
