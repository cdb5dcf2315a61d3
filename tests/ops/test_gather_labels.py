"""GatherLabels and ScatterLabels: one element of each line, read or written."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.indexing.gather_labels import GatherLabels, ScatterLabels
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype):
    x = RNG.integers(0, 2, (3, 4)).astype(dtype)
    index = np.array([[1], [-1], [0]], np.int8)
    rows = np.arange(3)
    check(GatherLabels((1,)), x, index, expected=x[rows, index[:, 0]])
    y = x[:, :1]
    z = np.zeros((3, 4), dtype)
    z[rows, index[:, 0]] = y[:, 0]
    check(ScatterLabels((1,)), np.ones((3, 4)), index, y, expected=z)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes(axis):
    x = RNG.standard_normal((3, 4, 5))
    index = np.expand_dims(RNG.integers(0, 3, x.take(0, axis).shape), axis)
    y = RNG.standard_normal(index.shape)
    picked = np.take_along_axis(x, index, axis)
    check(GatherLabels((axis,)), x, index, expected=picked.squeeze(axis))
    other = (axis + 1) % 3
    flipped = (np.flip(v, other) for v in (x, index))
    check(GatherLabels((axis,)), *flipped, expected=np.flip(picked, other).squeeze(axis))
    put = np.zeros_like(x)
    np.put_along_axis(put, index, y, axis)
    check(ScatterLabels((axis,)), x, index, y, expected=put)


def test_one_value_for_all_lines():
    x, index = np.ones((4, 3)), RNG.integers(0, 3, (4, 1))
    want = np.where(np.arange(3) == index, 2.5, 0.0)
    check(ScatterLabels((1,)), x, index, np.array([[2.5]]), expected=want)


def test_no_lines():
    x, index = np.ones((0, 3)), np.zeros((0, 1), np.int64)
    check(GatherLabels((1,)), x, index, expected=np.zeros(0))
    check(ScatterLabels((1,)), x, index, np.zeros((0, 1)), expected=np.zeros((0, 3)))


def test_bad_arguments():
    x = T.dmatrix("x")
    with pytest.raises(DTypeError, match="must be integers"):
        GatherLabels((1,))(x, T.dcol())
    with pytest.raises(ShapeError, match="the positions are"):
        GatherLabels((1,))(x, T.lmatrix())
    with pytest.raises(ShapeError, match="more elements"):
        ScatterLabels((1,))(x, T.lcol(), T.dmatrix())


def test_bad_values():
    x, index = T.dmatrix("x"), T.lcol("index")
    z = GatherLabels((1,))(x, index)
    with pytest.raises(IndexError, match="out of bounds"):
        evaluate([z], {x: np.ones((2, 3)), index: np.array([[0], [3]])})
    with pytest.raises(ShapeError, match="positions of shape"):
        evaluate([z], {x: np.ones((2, 3)), index: np.array([[0]])})
