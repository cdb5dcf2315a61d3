"""Enlarging images by linear interpolation."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.tensor.nnet.abstract_conv import (
    bilinear_kernel_1D,
    bilinear_kernel_2D,
    bilinear_upsampling,
)
from tests.harness import check


def interpolated(x, p, q, axis):
    """With ``numpy.interp``, line by line."""
    n = x.shape[axis]
    places = (np.arange(-(-n * p // q)) * q - (p - 1) // 2) / p
    return np.apply_along_axis(lambda line: np.interp(places, np.arange(n), line), axis, x)


@pytest.mark.parametrize("shape", [(2, 3), (1, 1, 1, 4), (2, 3, 4, 2)])
@pytest.mark.parametrize("ratio", [1, 2, 3, 4])
def test_ratio(shape, ratio):
    x = np.random.default_rng(0).normal(size=shape)
    expected = interpolated(interpolated(x, ratio, 1, -2), ratio, 1, -1)
    check(lambda v: bilinear_upsampling(v, ratio), x, expected=expected, rtol=1e-12)


@pytest.mark.parametrize("pairs", [(3, 2), ((7, 4), (5, 3)), ((1, 2), (2, 3))])
def test_fractions(pairs):
    x = np.random.default_rng(0).normal(size=(2, 5, 6))
    (p, q), (r, s) = pairs if isinstance(pairs[0], tuple) else (pairs, pairs)
    expected = interpolated(interpolated(x, p, q, -2), r, s, -1)
    check(lambda v: bilinear_upsampling(v, frac_ratio=pairs), x, expected=expected, rtol=1e-12)


def test_symbolic_ratio_and_dtypes():
    ratio, x = T.iscalar("ratio"), T.fmatrix("x")
    f = symcomp.function([x, ratio], bilinear_upsampling(x, ratio))
    found = f(np.array([[0, 3]], "float32"), 3)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found[0], [0, 0, 1, 2, 3, 3], rtol=1e-6)
    assert bilinear_upsampling(T.lmatrix(), 2).dtype == "float64"


def test_kernels():
    np.testing.assert_array_equal(bilinear_kernel_1D(3, normalize=False).eval(), [1, 2, 3, 2, 1])
    line = np.array([0.5, 1, 0.5])
    np.testing.assert_array_equal(bilinear_kernel_2D(2).eval(), np.outer(line, line))


def test_refused():
    with pytest.raises(ValueError, match="give ratio or frac_ratio"):
        bilinear_upsampling(T.dmatrix())
    with pytest.raises(ValueError, match="2 axes at least"):
        bilinear_upsampling(T.dvector(), 2)
    with pytest.raises(ValueError, match="frac_ratio"):
        bilinear_upsampling(T.dmatrix(), frac_ratio=(1, 2, 3))
