"""Axes that are known when a function runs."""

import numpy as np
import pytest

from symcomp.compat.op_classes import OP_CLASSES
from symcomp.errors import DTypeError, ShapeError

X = np.random.default_rng(0).normal(size=(2, 3, 2))


@pytest.fixture
def axis(theano):
    return theano.tensor.iscalar("axis")


@pytest.fixture
def x(theano):
    return theano.tensor.dtensor3("x")


def test_join(theano, axis, x):
    T = theano.tensor
    z = T.join(axis, x, x + 1.0)
    assert z.broadcastable == (False,) * 3
    weights = T.arange(z.size).reshape(z.shape)
    f = theano.function([axis, x], [z, T.grad((z * weights).sum(), x), z.shape])
    for k in range(-3, 3):
        expected = np.concatenate([X, X + 1], axis=k)
        numbers = np.arange(expected.size, dtype=float).reshape(expected.shape)
        got, slope, shape = f(k, X)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(slope, sum(np.split(numbers, 2, axis=k)))
        assert tuple(shape) == expected.shape
    for k in (-4, 3):
        with pytest.raises(ValueError, match="the axis must be from -3 to 2"):
            f(k, X)
    np.testing.assert_array_equal(
        theano.function([axis, x], T.concatenate([x, x], axis=axis))(1, X), np.hstack([X, X])
    )
    assert T.Join()(axis, x, x).type == z.type


def test_lengths_that_fit_along_one_axis_alone(theano, axis):
    T = theano.tensor
    a, b = T.constant(X), T.constant(X[:, :1])
    f = theano.function([axis], T.join(axis, a, b))
    np.testing.assert_array_equal(f(1), np.concatenate([X, X[:, :1]], axis=1))
    with pytest.raises(ShapeError, match="differ on other axes"):
        f(0)


def test_split(theano, axis, x):
    T = theano.tensor
    parts = T.split(x, [1, 1], 2, axis=axis)
    f = theano.function([axis, x], parts)
    for k in (0, 2, -1):
        for got, expected in zip(f(k, X), np.split(X, 2, axis=k), strict=True):
            np.testing.assert_array_equal(got, expected)
    assert len(T.Split(2)(x, axis, [1, 1])) == 2


def test_sorting(theano, axis, x):
    T = theano.tensor
    z = T.sort(x, axis)
    order = T.argsort(x, axis=axis)
    f = theano.function([axis, x], [z, order, T.grad((z * z).sum(), x)])
    for k in range(-3, 3):
        got, places, slope = f(k, X)
        np.testing.assert_array_equal(got, np.sort(X, axis=k))
        np.testing.assert_array_equal(places, np.argsort(X, axis=k, kind="stable"))
        np.testing.assert_array_equal(slope, 2 * X)
    np.testing.assert_array_equal(
        theano.function([axis, x], OP_CLASSES["SortOp"]()(x, axis))(0, X), np.sort(X, axis=0)
    )


def test_axes_that_are_none(theano, axis, x):
    T = theano.tensor
    assert T.join(1, x, x).owner.op == T.concatenate([x, x], axis=T.constant(1)).owner.op
    with pytest.raises(DTypeError, match="axis must be an integer scalar"):
        T.sort(x, T.dscalar("a"))
    with pytest.raises(ShapeError, match="a scalar has no axis"):
        T.sort(T.dscalar("s"), axis)
    with pytest.raises(TypeError, match="no tensors given"):
        T.join(axis)
