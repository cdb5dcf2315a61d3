"""Picking elements by position: the corners of take, choose and compress."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import check

X = np.arange(300.0)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_narrow_indices_into_a_long_axis(mode, dtype):
    i = np.array([5, 127, 0]).astype(dtype)
    check(lambda x, i: T.take(x, i, mode=mode), X, i, expected=X[i], grad=False)
    if dtype[0] == "i":
        wanted = X[[299 if mode == "wrap" else 0]]
        check(lambda x, i: T.take(x, i - 6, mode=mode), X, i[:1], expected=wanted, grad=False)


def test_booleans_are_numbers_not_masks():
    i = np.array([True, False, True])
    check(T.take, X[:2], i, expected=np.array([1.0, 0.0, 1.0]))
    check(lambda i: T.choose(i, [[1, 2, 3], [4, 5, 6]]), i, expected=np.array([4, 2, 6]))


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_compress(axis):
    x = np.arange(6.0).reshape(2, 3)
    check(
        lambda c, x: T.compress(c, x, axis),
        np.array([False, True]),
        x,
        expected=lambda c, x: np.compress(c, x, axis),
    )


CHOICES = [np.arange(3.0), np.full((4, 1), 7.5), np.float64(-2)]


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("shape", [(), (3,), (4, 1), (2, 4, 3)], ids=str)
def test_choices_broadcast(shape, mode):
    a = np.random.default_rng(0).integers(0 if mode == "raise" else -9, 3, shape)
    check(
        lambda a, *c: T.choose(a, c, mode),
        a,
        *CHOICES,
        expected=lambda a, *c: np.choose(a, c, mode=mode),
    )
    stacked = np.arange(24.0).reshape(3, 1, 2, 4, 1)[:, 0] ** 2
    check(
        lambda a, c: T.choose(a, c, mode),
        a,
        stacked,
        expected=lambda a, c: np.choose(a, c, mode=mode),
    )


def test_errors():
    a, c = T.lvector("a"), T.dmatrix("c")
    for wrong in (-1, 2):
        with pytest.raises(AssertionError, match="choose: a number in `a` is no position"):
            T.choose(a, c).eval({a: [0, wrong], c: np.ones((2, 2))})
    with pytest.raises(ShapeError, match="is a scalar, not several choices"):
        T.choose(a, c.sum())
    x = T.dmatrix()
    with pytest.raises(ShapeError, match="condition must be a vector"):
        T.compress([[True, False], [False, True]], x)
    with pytest.raises(DTypeError, match="take: indices must be integers"):
        T.take(x, [0.5])
    with pytest.raises(ValueError, match="mode='bend'"):
        T.take(x, [0], mode="bend")
    with pytest.raises(ShapeError, match="equally many axes"):
        T.take_along_axis(x, [0], axis=0)
