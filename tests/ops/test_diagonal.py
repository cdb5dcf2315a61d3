"""Diagonals, against NumPy: every pair of axes, every offset, known and symbolic."""

import itertools

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

A = np.arange(24.0).reshape(2, 3, 4) + 0.5
M = A[0]
OFFSETS = [-5, -3, -1, 0, 1, 3, 4]


@pytest.mark.parametrize("offset", OFFSETS)
def test_of_a_matrix(offset):
    k = np.int64(offset)
    for x in (M, M.T, M + 1j * M):
        check(lambda x: T.diagonal(x, offset), x, expected=lambda x: np.diagonal(x, offset).copy())
        check(lambda x, k: x.diagonal(k), x, k, expected=lambda x, k: np.diagonal(x, offset).copy())
        check(lambda x: x.trace(offset), x, expected=lambda x: np.asarray(np.trace(x, offset)))
    check(lambda x: T.diag(x, offset), M, expected=lambda x: np.diag(x, offset).copy())


@pytest.mark.parametrize("axes", [*itertools.permutations((0, 1, -1), 2)], ids=str)
def test_of_any_two_axes(axes):
    for k in (-1, 0, 2):
        check(
            lambda x, k=k: T.diagonal(x, k, *axes),
            A,
            expected=lambda x, k=k: np.diagonal(x, k, *axes).copy(),
        )
        check(lambda x, k=k: T.trace(x, k, *axes), A, expected=lambda x, k=k: np.trace(x, k, *axes))
        check(
            lambda x, k=k: T.diagonal(T.alloc_diag(x, k, *axes), k, *axes),
            M,
            expected=lambda x: x,
        )


@pytest.mark.parametrize("offset", OFFSETS)
def test_made_of_vectors(offset):
    check(lambda v: T.diag(v, offset), M[0], expected=lambda v: np.diag(v, offset))
    check(
        lambda v, k: T.diag(v, k), M[0], np.int8(offset), expected=lambda v, k: np.diag(v, offset)
    )
    check(
        lambda v: T.alloc_diag(v, offset, -2, -1),
        M,
        expected=lambda v: np.stack([np.diag(row, offset) for row in v]),
    )
    check(
        lambda v: T.alloc_diag(v, offset),
        M,
        expected=lambda v: np.stack([np.diag(row, offset) for row in v], -1),
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype):
    x = (M > 4).astype(dtype)
    check(T.diagonal, x, expected=lambda x: np.diagonal(x).copy(), grad=False)
    check(T.diag, x[1], expected=np.diag, grad=False)
    check(T.trace, x, expected=np.trace, grad=False)
    check(
        lambda x: T.fill_diagonal(x, True if dtype == "bool" else 1),
        x,
        expected=lambda x: filled(x, 1),
        grad=False,
    )


def test_empty():
    for shape in ((0, 0), (0, 3), (2, 0)):
        check(T.diagonal, np.zeros(shape), expected=np.zeros(0))
        check(T.trace, np.zeros(shape), expected=0.0)
        check(lambda x: T.fill_diagonal(x, 1), np.zeros(shape), expected=np.zeros(shape))
    check(T.diag, np.zeros(0), expected=np.zeros((0, 0)))
    check(lambda v: T.diag(v, -2), np.zeros(0), expected=np.zeros((2, 2)))


def filled(x, value):
    z = x.copy()
    np.fill_diagonal(z, value)
    return z


@pytest.mark.parametrize("x", [M, M.T, M[:, :3], A[:, :2, :2], M + 1j], ids=lambda x: str(x.shape))
def test_filling(x):
    check(lambda x: T.fill_diagonal(x, 9), x, expected=lambda x: filled(x, 9))
    check(
        lambda x, v: T.fill_diagonal(x, v),
        x,
        x.ravel()[5],
        expected=filled,
    )


@pytest.mark.parametrize("offset", OFFSETS)
def test_filling_beside(offset):
    ones = np.eye(3, 4, offset)
    for k in (offset, np.int64(offset)):
        check(
            lambda x, v, k=k: T.fill_diagonal_offset(x, v, k),
            M,
            np.float64(7),
            expected=lambda x, v: x * (1 - ones) + v * ones,
        )
    check(
        lambda x, v, k: T.fill_diagonal_offset(x, v, k),
        M,
        np.float64(7),
        np.int32(offset),
        expected=lambda x, v, k: x * (1 - ones) + v * ones,
    )
    check(
        lambda x, v: T.fill_diagonal_offset(x, v, offset),
        M,
        np.cos(np.arange(np.diagonal(M, offset).size)),
        expected=lambda x, v: (
            np.where(ones == 1, 0, x) + np.pad(np.diag(v, offset), ((0, 9), (0, 9)))[:3, :4]
        ),
        static="full",
    )


def test_errors():
    x = T.dtensor3("x")
    with pytest.raises(ShapeError, match="fewer than 2 axes"):
        T.diagonal(T.dvector())
    with pytest.raises(ShapeError, match="axis1 and axis2 are both 2"):
        T.diagonal(x, 0, 2, -1)
    with pytest.raises(ShapeError, match="axis 3 does not exist"):
        T.diagonal(x, 0, 3)
    with pytest.raises(DTypeError, match="offset must be an integer scalar"):
        T.diagonal(x, 0.5)
    with pytest.raises(DTypeError, match="offset must be an integer scalar"):
        T.fill_diagonal_offset(x[0], 0, T.lvector())
    with pytest.raises(ShapeError, match="neither vector nor matrix"):
        T.diag(x)
    with pytest.raises(ShapeError, match="is a scalar"):
        T.alloc_diag(T.dscalar())
    with pytest.raises(ShapeError, match="is no matrix"):
        T.fill_diagonal_offset(x, 0, 0)
    with pytest.raises(ShapeError, match="axis 0 of x has length 2, axis 1 of y has length 3"):
        T.fill_diagonal(T.tensor("x", shape=(2, 3, 3)), 0)
    with pytest.raises(ShapeError, match="axis 0 of the first has length 2, axis 1"):
        T.fill_diagonal(x, 0).eval({x: np.zeros((2, 3, 3))})


@pytest.mark.parametrize("offset", OFFSETS)
def test_views_made_natively(offset):
    x = T.dtensor3()
    whole = symcomp.function([x], [T.diagonal(x, offset, -2, -1), T.diagonal(x, offset, 0, 2)])
    for given in (A, A.transpose(2, 0, 1), A[:, ::-1, ::2], A[:0], np.asfortranarray(A)):
        for _ in range(2):
            last, outer = whole(given)
            np.testing.assert_array_equal(last, np.diagonal(given, offset, -2, -1))
            np.testing.assert_array_equal(outer, np.diagonal(given, offset, 0, 2))


def test_diagonals_in_loops_are_read_without_python():
    start = T.tensor(dtype="float64", shape=(3, 3))

    def step(x, _):
        return 0.5 * x + T.diag(T.diagonal(x)) + T.diagonal(x), None

    end, _ = symcomp.loop(step, start, length=20)
    values = np.arange(9.0).reshape(3, 3)
    got, x = symcomp.function([start], end)(values), values
    for _ in range(20):
        x = 0.5 * x + np.diag(np.diag(x)) + np.diag(x)
    np.testing.assert_allclose(got, x, rtol=1e-14)
