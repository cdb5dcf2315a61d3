"""Reading and writing parts of tensors, against NumPy: fixed cases and random index expressions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, IndexOutOfRangeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

A = np.arange(24.0).reshape(2, 3, 4) + 0.5
M = A[0]

BASIC = [
    np.s_[0],
    np.s_[-1],
    np.s_[1:],
    np.s_[:-1],
    np.s_[::-1],
    np.s_[::2],
    np.s_[5:1],
    np.s_[:, 1],
    np.s_[..., -2],
    np.s_[None],
    np.s_[:, None, 1],
    np.s_[1, ..., None, 2:0:-1],
    np.s_[0, 1, 2],
    np.s_[...],
    np.s_[:],
    np.s_[10:],
    np.s_[-100:100:3],
    np.s_[:, ::-2, 1:3],
    np.s_[2:2],
    np.s_[-1:-3:-1],
]


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_reads_and_writes(key):
    check(lambda x: x[key], A, expected=lambda x: x[key])
    region = A[key]

    def written(x, y):
        z = x.copy()
        z[key] = y
        return z

    def added(x, y):
        z = x.copy()
        z[key] += y
        return z

    y = np.cos(np.arange(region.size)).reshape(region.shape)
    check(lambda x, v: T.set_subtensor(x[key], v), A, y, expected=written)
    check(lambda x, v: T.inc_subtensor(x[key], v), A, y, expected=added)
    check(lambda x: T.set_subtensor(x[key], 1), A, expected=lambda x: written(x, 1))


ADVANCED = [
    np.s_[[0, 1, 0]],
    np.s_[:, [2, 0]],
    np.s_[[0, 1], [1, 2]],
    np.s_[[0, 1], :, [1, 2]],
    np.s_[0, :, [1, 2]],
    np.s_[:, [0, 1], [1, 2]],
    np.s_[[[0], [1]], [1, 2]],
    np.s_[..., [1, 1]],
    np.s_[[-1]],
    np.s_[None, [0, 1], 1:],
    np.s_[[1], None, [2]],
    np.s_[:, :, [[0, 3], [1, 2]]],
    np.s_[[], 1],
    np.s_[1, [0, 2], ::-1],
    np.s_[[0, 1], 1, [0, 1]],
]


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_advanced_reads_and_writes(key):
    check(lambda x: x[key], A, expected=lambda x: x[key])

    def added(x):
        z = x.copy()
        index = (
            tuple(np.asarray(k, int) if isinstance(k, list) else k for k in key)
            if isinstance(key, tuple)
            else np.asarray(key, int)
        )
        np.add.at(z, index, 2.0)
        return z

    check(lambda x: T.inc_subtensor(x[key], 2.0), A, expected=added)


def test_symbolic_parts():
    i = np.int64(1)
    check(lambda x, i: x[i], A, i, expected=lambda x, i: x[1])
    check(lambda x, i: x[:, i:], A, i, expected=lambda x, i: x[:, 1:])
    check(lambda x, i: x[:, i - 2 :: -i], A, i, expected=lambda x, i: x[:, -1::-1])
    check(lambda x, i: x[:, i * 10 : -i], A, i, expected=lambda x, i: x[:, 10:-1])
    check(lambda x, i: x[..., i, i : i + 2], A, i, expected=lambda x, i: x[..., 1, 1:3])
    check(lambda x, i: x[i], A, np.array([1, 0, 1]), expected=lambda x, i: x[i])
    check(
        lambda x, i: x[:, i, 1],
        A,
        np.array([[1, 0], [2, 2]], np.int8),
        expected=lambda x, i: x[:, i, 1],
    )
    check(
        lambda x, i: T.set_subtensor(x[i, i:], 0),
        A,
        i,
        expected=lambda x, i: np.concatenate(
            [x[:1], np.concatenate([x[1:, :1], 0 * x[1:, 1:]], 1)]
        ),
    )


def test_masks():
    mask = np.array([[True, False, True], [False, True, True]])
    check(lambda x: x[mask], A, expected=lambda x: x[mask])
    check(lambda x, m: x[m], A, mask, expected=lambda x, m: x[m])
    check(lambda x, m: x[:, m], A, mask[0], expected=lambda x, m: x[:, m])
    check(lambda x: x[x > 10], A, expected=lambda x: x[x > 10])
    check(lambda x: x[[True, False]], A, expected=lambda x: x[[True, False]])
    check(
        lambda x, m: T.set_subtensor(x[m], 0.0),
        A,
        mask,
        expected=lambda x, m: np.where(m[..., None], 0, x),
    )
    with pytest.raises(IndexOutOfRangeError, match="axis 0 of the mask has length 2"):
        T.tensor("x", shape=(3,))[np.array([True, False])]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype):
    x = (A > 5).astype(dtype)
    check(lambda v: v[1:, [0, 2]], x, expected=lambda v: v[1:, [0, 2]], grad=dtype == "complex128")
    check(
        lambda v: T.set_subtensor(v[0], dtype == "bool" or 1),
        x,
        expected=lambda v: np.stack([np.ones_like(v[0]), v[1]]),
        grad=False,
    )


def test_views_share_memory():
    assert (
        T.dmatrix()[1:].owner.op.view_map == {0: (0,)} and T.dmatrix()[[1]].owner.op.view_map == {}
    )


def test_set_and_inc_methods_and_through_views():
    check(lambda x: x[0].set(1.0), M, expected=lambda x: np.concatenate([np.ones((1, 4)), x[1:]]))
    check(lambda x: x[0].inc(1.0), M, expected=lambda x: np.concatenate([x[:1] + 1, x[1:]]))
    check(
        lambda x, y: T.set_subtensor(x[1:].T, y),
        M,
        np.ones((4, 2)),
        expected=lambda x, y: np.concatenate([x[:1], y.T]),
    )
    check(
        lambda x, y: T.inc_subtensor(x[1:].flatten(), y),
        M,
        np.arange(8.0),
        expected=lambda x, y: np.concatenate([x[:1], x[1:] + y.reshape(2, 4)]),
    )
    check(lambda x: T.set_subtensor(x[[2, 0]], x[[0, 2]]), M, expected=lambda x: x[::-1])
    check(
        lambda x: T.inc_subtensor(x[[0, 0]], 1.0, ignore_duplicates=True),
        M,
        expected=lambda x: np.concatenate([x[:1] + 1, x[1:]]),
        grad=False,
    )


def test_broadcast_writes():
    y = np.arange(4.0)
    check(
        lambda x, v: T.set_subtensor(x[:, 1], v),
        A,
        y,
        expected=lambda x, v: np.concatenate(
            [x[:, :1], np.broadcast_to(v, (2, 1, 4)), x[:, 2:]], 1
        ),
    )
    check(
        lambda x, v: T.inc_subtensor(x[:2], v),
        M,
        y[:1],
        expected=lambda x, v: np.concatenate([x[:2] + v, x[2:]]),
    )


def test_errors():
    x = T.tensor("x", shape=(2, None))
    with pytest.raises(IndexOutOfRangeError, match="index 2 is out of bounds for axis 0 of x"):
        x[2]
    with pytest.raises(ShapeError, match="too many indices: 3 for x with 2 axes"):
        x[0, 0, 0]
    with pytest.raises(DTypeError, match="index .* has dtype float64"):
        x[1.0]
    with pytest.raises(DTypeError, match="is no integer scalar"):
        x[: T.dscalar()]
    with pytest.raises(ShapeError, match="single ellipsis"):
        x[..., 0, ...]
    with pytest.raises(ShapeError, match="step cannot be 0"):
        x[::0]
    with pytest.raises(TypeError, match="no index expression"):
        T.set_subtensor(x, 0)
    with pytest.raises(DTypeError, match="y is float64, which the int64 tensor"):
        T.set_subtensor(T.lvector()[0], T.dscalar())
    with pytest.raises(ShapeError, match="more axes than the part"):
        T.set_subtensor(x[0, 0], x)
    with pytest.raises(ShapeError, match="the part of x .* that it goes to has shape"):
        T.set_subtensor(T.tensor("q", shape=(4,))[:2], T.tensor("r", shape=(3,)))
    v, i = T.dvector("v"), T.lscalar("i")
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        v[i].eval({v: np.zeros(3), i: 5})
    with pytest.raises(ShapeError, match="y has shape"):
        w = T.dvector("w")
        T.set_subtensor(v[:2], w).eval({v: np.zeros(3), w: np.ones(1)})


def test_iteration_and_truth():
    a, b = T.tensor("x", shape=(2, None))
    assert a.ndim == 1
    with pytest.raises(TypeError, match="length is not known"):
        list(T.dvector())
    with pytest.raises(TypeError, match="scalar"):
        iter(T.dscalar())
    with pytest.raises(TypeError, match="not known when the graph is built"):
        bool(T.dscalar() > 0)
    with pytest.raises(TypeError, match=r"x.shape\[0\]"):
        len(T.dvector())
    with pytest.raises(TypeError, match="T.eq"):
        assert 3 in T.dvector()


def entries(length):
    number = st.integers(-length, length - 1) if length else st.nothing()
    edge = st.none() | st.integers(-length - 2, length + 2)
    step = st.none() | st.sampled_from([1, 2, 3, -1, -2])
    array = st.lists(st.integers(-length, length - 1), max_size=3) if length else st.just([])
    return st.one_of(
        number, st.builds(slice, edge, edge, step), array.map(lambda v: np.asarray(v, np.int64))
    )


@st.composite
def indexed(draw):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    depth = draw(st.integers(1, len(shape)))
    key = [draw(entries(n)) for n in shape[:depth]]
    size = draw(st.sampled_from([0, 1, 3]))
    # Index arrays must broadcast together: give them one length.
    key = [np.resize(k, size) if isinstance(k, np.ndarray) and k.size else k for k in key]
    key = [np.zeros(size, np.int64) if isinstance(k, np.ndarray) and not k.size else k for k in key]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()) and depth == len(shape):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return shape, tuple(key)


@settings(deadline=None, max_examples=150)
@given(indexed())
def test_random_index_expressions(case):
    shape, key = case
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    check(lambda v: v[key], x, expected=lambda v: v[key], grad=False)

    def added(v):
        z = v.copy()
        np.add.at(z, key, 1.5)
        return z

    check(lambda v: T.inc_subtensor(v[key], 1.5), x, expected=added, grad=False)
    gradient = symcomp.grad
    slope = np.zeros(shape)
    np.add.at(slope, key, 1.0)
    check(lambda v: gradient((v[key] * 1.0).sum(), v), x, expected=slope, grad=False)


def test_gathering():
    i = np.array([[2, 0], [1, 1]])
    for axis in (None, 0, 1, -1):
        check(lambda x, a=axis: T.take(x, i, a), M, expected=lambda x, a=axis: np.take(x, i, a))
    check(
        lambda x: T.take(x, [5, -7], 0, mode="wrap"),
        M,
        expected=lambda x: np.take(x, [5, -7], 0, mode="wrap"),
    )
    check(
        lambda x: x.take([9, -7], 1, mode="clip"),
        M,
        expected=lambda x: np.take(x, [9, -7], 1, mode="clip"),
    )
    order = np.argsort(-M, axis=1)
    check(
        lambda x, o: T.take_along_axis(x, o, 1),
        M,
        order,
        expected=lambda x, o: np.take_along_axis(x, o, 1),
    )
    check(
        lambda x, o: T.take_along_axis(x, o, None),
        M,
        np.array([1, 5]),
        expected=lambda x, o: np.take_along_axis(x, o, None),
    )
    check(
        lambda a: T.choose(a, [M[0], M[1], M[2]]),
        np.array([2, 0, 1, 1]),
        expected=lambda a: np.choose(a, [M[0], M[1], M[2]]),
    )
    check(
        lambda c, x: T.choose(c, x, mode="wrap"),
        np.array([2, 0, -1, 7]),
        M,
        expected=lambda c, x: np.choose(c, x, mode="wrap"),
        static="full",
    )
    check(
        lambda x: x.compress([True, False, True], axis=0),
        M,
        expected=lambda x: x.compress([True, False, True], axis=0),
    )
    check(lambda x: list(T.nonzero(x > 5)), M, expected=lambda x: list(np.nonzero(x > 5)))
    check(
        lambda x: T.nonzero(x, return_matrix=True),
        np.array([0, 1, 1]),
        expected=lambda x: np.array(np.nonzero(x)),
    )
    check(T.flatnonzero, M > 5, expected=np.flatnonzero)
    check(T.nonzero_values, np.array([0.0, 2.0, 3.0]), expected=np.array([2.0, 3.0]), grad=False)
    with pytest.raises(ShapeError, match="is a scalar"):
        T.nonzero(T.dscalar())


@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 3])
def test_diagonals(offset):
    check(lambda x: T.diagonal(x, offset), M, expected=lambda x: np.diagonal(x, offset).copy())
    check(
        lambda x: x.diagonal(offset, 0, 2),
        A,
        expected=lambda x: np.diagonal(x, offset, 0, 2).copy(),
    )
    check(lambda x: x.trace(offset), M, expected=lambda x: np.asarray(np.trace(x, offset)))
    check(lambda v: T.diag(v, offset), M[0], expected=lambda v: np.diag(v, offset))
    check(lambda x: T.diag(x, offset), M, expected=lambda x: np.diag(x, offset).copy())


def test_filling_diagonals():
    def filled(x):
        z = x.copy()
        np.fill_diagonal(z, 9.0)
        return z

    check(lambda x: T.fill_diagonal(x, 9.0), M, expected=filled)
    check(lambda x: T.fill_diagonal(x, 9.0), A[:, :2, :2], expected=filled)
    check(
        lambda x, v: T.fill_diagonal_offset(x, v, 1),
        M,
        np.float64(7),
        expected=lambda x, v: x * (1 - np.eye(3, 4, 1)) + 7 * np.eye(3, 4, 1),
    )
    with pytest.raises(ShapeError, match="neither vector nor matrix"):
        T.diag(T.dtensor3())
