"""Unit vectors, products with them, and orthogonal parts, beside arithmetic with 900 digits, and
their derivatives.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SignedMean,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check

CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
AXES = [(0,), (2,), (0, 2), (0, 1, 2)]


def unit(axes):
    return lambda x: (x / np.sqrt((x * x).sum(axis=axes, keepdims=True))).astype(x.dtype)


@pytest.mark.parametrize("axes", AXES)
def test_unit_vector(axes):
    check(UnitVector(axes), CUBE, expected=unit(axes), rtol=1e-12)
    check(UnitVector(axes), CUBE[:, ::-1, ::2].astype("float32"), expected=unit(axes), rtol=1e-5)


@pytest.mark.parametrize("axes", AXES)
def test_subtract_projection(axes):
    def orthogonal(x, u):
        return x - u * (u * x).sum(axis=axes, keepdims=True)

    # The derivatives are right for vectors of norm 1 alone.
    check(
        lambda x, v: SubtractProjection(axes)(x, UnitVector(axes)(v)), CUBE, CUBE[:, ::-1],
        expected=lambda x, v: orthogonal(x, unit(axes)(v)), atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("axes", AXES)
def test_projection_length_and_cosine(axes):
    def length(x, y):
        return ((x * y).sum(axis=axes) / np.sqrt((x * x).sum(axis=axes))).astype(x.dtype)

    def cosine(x, y):
        return (length(x, y) / np.sqrt((y * y).sum(axis=axes))).astype(x.dtype)

    def mean(x, y):
        return ((x * y).sum(axis=axes) / np.abs(x).sum(axis=axes)).astype(x.dtype)

    other = np.random.default_rng(1).normal(size=CUBE.shape)
    functions = (ProjectionLength(axes), length), (Cosine(axes), cosine), (SignedMean(axes), mean)
    for op, expected in functions:
        check(op, CUBE, other, expected=expected, rtol=1e-12, atol=1e-14)
        single = CUBE.astype("float32"), other.astype("float32")
        check(op, *single, expected=expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("power", [3, 4, 8])
@pytest.mark.parametrize("axes", AXES)
def test_unit_power_sum(axes, power):
    def expected(x):
        return (unit(axes)(x) ** power).sum(axis=axes).astype(x.dtype)

    check(UnitPowerSum(axes, power), CUBE, expected=expected, rtol=1e-12)
    single = CUBE.astype("float32")
    check(UnitPowerSum(axes, power), single, expected=expected, rtol=1e-5, atol=1e-6)
    z = [UnitPowerSum(axes, power).perform(scale * CUBE) for scale in (1e-300, 1.0, 1e300)]
    np.testing.assert_allclose(z[::2], [z[1]] * 2, rtol=1e-14)
    assert np.isnan(UnitPowerSum(axes, power).perform(0 * CUBE)).all()


@pytest.mark.parametrize("op", [ProjectionLength, Cosine])
def test_products_with_unit_vectors_of_all_sizes(op):
    """Where the values of the other vector cancel, or do not; NaN for a vector of zeros."""
    x, y = np.array([0.3, -1.2, 2.2, 0.7]), np.array([1.5, 0.4, -0.8, 0.1])
    for x_scale, y_scale in itertools.product((1e-300, 1e-150, 1.0, 1e150, 1e300), repeat=2):
        with mp.workdps(900):
            a, b = ([mp.mpf(v) for v in s * w] for s, w in ((x_scale, x), (y_scale, y)))
            squares = [sum(v * v for v in w) for w in (a, b)]
            true = sum(v * w for v, w in zip(a, b, strict=True)) / mp.sqrt(squares[0])
            true = true / mp.sqrt(squares[1]) if op is Cosine else true
        assert units_off(op((0,)).perform(x_scale * x, y_scale * y), true) <= 8
    assert np.isnan(op((0,)).perform(0 * x, y))
    assert np.isnan(op((0,)).perform(np.array([np.inf, 1.0]), np.array([1.0, 1.0])))


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_no_elements(shape):
    x, axes = np.zeros(shape), (len(shape) - 1,)
    assert UnitVector(axes).perform(x).shape == shape
    assert SubtractProjection(axes).perform(x, x).shape == shape
    for op, count in ((ProjectionLength(axes), 2), (Cosine(axes), 2), (UnitPowerSum(axes, 3), 1)):
        z = op.perform(*[x] * count)
        assert z.shape == shape[:-1] and np.isnan(z).all()


LINES = [
    [0.3, -1.2, 2.2, 0.7], [1e-200, 3e-200, -1e-200, 2e-203], [1e160, 1e80, -3e80, 0.5e80],
    [1.0, 1.0, -1.0, 1.0], [3e-300, 0.0, 2e-300, 0.0], [1.0, 1e-9, 2e-9, 0.0], [1.4, 1.0, 0.1, 0.0],
]  # fmt: skip


def test_derivatives_are_right_to_the_last_digits():
    x, way = T.dvector("x"), T.dvector("way")
    z = x / T.sqrt(T.sum(x**2))
    slopes = [symcomp.grad((way * z).sum(), x), symcomp.gradient.Rop(z, x, way)]
    f = symcomp.function([x, way], slopes)
    for line in LINES:
        with mp.workdps(900):
            exact = [mp.mpf(v) for v in line]
            square = sum(v * v for v in exact)
        for k, unit_vector in enumerate(np.eye(4)):
            with mp.workdps(900):
                rows = [-a * exact[k] for a in exact]
                rows[k] += square
                true = [r / square / mp.sqrt(square) for r in rows]
            for got in f(line, unit_vector):
                for z_i, t in zip(got, true, strict=True):
                    assert units_off(z_i, t) <= 4 or abs(t) < 1e-290
