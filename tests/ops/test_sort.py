"""Sorting and searching, against NumPy over axes and dtypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 3, 4))
M = RNG.normal(size=(3, 4))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sorting(axis):
    check(lambda x: T.sort(x, axis), M, expected=lambda x: np.sort(x, axis))
    check(lambda x: x.argsort(axis), M, expected=lambda x: np.argsort(x, axis))
    check(lambda x: symcomp.grad((T.sort(x, axis) ** 3).sum(), x), M, expected=lambda x: 3 * x**2)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_sorting_dtypes(dtype):
    x = np.array([3, 0, 2, 0, 1]).astype(dtype)
    check(T.sort, x, expected=np.sort, grad=False)
    check(T.argsort, x, expected=lambda v: np.argsort(v, kind="stable"))
    check(
        lambda v: T.unique(v, True, True, True),
        x,
        expected=lambda v: np.unique(v, True, True, True),
        grad=False,
    )


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "bool", "complex128"])
def test_native_slices(dtype):
    """Slices of all lengths, which lie in one piece or not, are sorted where they lie."""
    with config.change_flags(linker="cvm", kernels=True):
        x = T.TensorType(dtype, (None, None))("x")
        functions = [
            symcomp.function([x], [T.sort(x, axis), T.argsort(x, axis), T.argsort(x.T, axis).T])
            for axis in (0, 1)
        ]
        unique = symcomp.function([x], T.unique(x, True, True, True))
    for shape in [(0, 3), (3, 0), (1, 4), (4, 1), (2, 2), (17, 40)]:
        values = RNG.integers(-3, 4, (2 * shape[0], 3 * shape[1])).astype(dtype)
        parts = values[: shape[0], : shape[1]], values[::-2, ::3], values[::2, ::-3].copy("F")
        for value in parts:
            for _ in range(2):
                for axis, f in enumerate(functions):
                    order, turned = np.argsort(value, axis, kind="stable"), 1 - axis
                    found = f(value)
                    np.testing.assert_array_equal(found[0], np.sort(value, axis))
                    np.testing.assert_array_equal(found[1], order)
                    wanted = np.argsort(value, turned, kind="stable")
                    np.testing.assert_array_equal(found[2], wanted)
                for a, b in zip(unique(value), np.unique(value, True, True, True), strict=True):
                    np.testing.assert_array_equal(a, b.reshape(a.shape))
    assert "python" not in functions[0].plan() + unique.plan()


def test_sort_nan_and_errors():
    check(T.sort, np.array([np.nan, 2.0, -np.inf, 1.0]), expected=np.sort, grad=False)
    with pytest.raises(ValueError, match="kind='bogo'"):
        T.sort(T.dvector(), kind="bogo")
    with pytest.raises(ValueError, match="no fields"):
        T.sort(T.dvector(), order="a")


@pytest.mark.parametrize("k", [1, 2, -2])
def test_topk(k):
    def best(x):
        return np.sort(x, 1)[:, ::-1][:, :k] if k > 0 else np.sort(x, 1)[:, :-k]

    check(lambda x: T.topk(x, k), M, expected=best)
    values, places = T.topk_and_argtopk(T.constant(M), k, idx_dtype="int32")
    np.testing.assert_array_equal(np.take_along_axis(M, places.eval(), 1), values.eval())
    assert places.dtype == "int32"
    with pytest.raises(ShapeError, match="kth=0"):
        T.topk(T.dvector(), 0)
    with pytest.raises(ShapeError, match="kth=5 for an axis of length 4"):
        T.topk(T.constant(M), 5)


def test_searching():
    x, v = np.array([1.0, 2.0, 2.0, 4.0]), np.array([[0.0, 2.0], [3.0, 9.0]])
    for side in ("left", "right"):
        check(
            lambda a, b, s=side: T.searchsorted(a, b, s),
            x,
            v,
            expected=lambda a, b, s=side: np.searchsorted(a, b, s),
        )
    shuffled, order = x[[2, 0, 3, 1]], np.argsort(x[[2, 0, 3, 1]])
    check(
        lambda a, b: T.searchsorted(a, b, sorter=order),
        shuffled,
        v,
        expected=lambda a, b: np.searchsorted(x, b),
    )
    check(
        lambda a: T.unique(a, axis=0),
        np.array([[1, 2], [1, 2], [0, 1]]),
        expected=lambda a: np.unique(a, axis=0),
    )


EMPTY = [(0,), (0, 3), (3, 0), (1, 3)]


@pytest.mark.parametrize("shape", EMPTY, ids=str)
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting_nothing(name, shape):
    for axis in (None, *range(-len(shape), len(shape))):
        check(
            lambda v, a=axis: getattr(T, name)(v, axis=a),
            np.zeros(shape),
            expected=lambda v, a=axis: getattr(np, name)(v, axis=a),
            grad=False,
        )


def test_sorting_scalars_and_strides():
    check(lambda v: T.sort(v, axis=None), np.array(2.0), expected=np.array([2.0]))
    with pytest.raises(ShapeError, match="axis -1 does not exist in a tensor with 0 axes"):
        T.sort(T.dscalar())
    x = A[::-1, :, ::-2].transpose(2, 0, 1)
    check(lambda v: T.sort(v, axis=1), x, expected=lambda v: np.sort(v, axis=1))


def test_sorting_is_stable():
    x = np.tile([1.0, 0.0], 50)
    check(T.argsort, x, expected=lambda v: np.argsort(v, kind="stable"))


def test_second_derivatives():
    for name in ("sort", "median"):
        check(
            lambda x, n=name: symcomp.grad((getattr(T, n)(x, axis=0) ** 3).sum(), x).sum(axis=1),
            M[:1],
            expected=lambda x: (3 * x**2).sum(1),
        )
    check(
        lambda x: symcomp.grad((T.topk(x, 1) ** 3).sum(), x),
        M,
        expected=lambda x: np.where(x == x.max(1, keepdims=True), 3 * x**2, 0),
    )


@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if d[0] != "c"])
def test_topk_dtypes(dtype):
    x = np.array([[3, 0, 1], [0, 1, 1]]).astype(dtype)
    check(lambda v: T.topk(v, 2), x, expected=lambda v: np.sort(v, 1)[:, :0:-1], grad=False)
    check(lambda v: T.topk(v, -3), x, expected=lambda v: np.sort(v, 1), grad=False)


def test_topk_axes():
    x = RNG.normal(size=(2, 4, 3))
    for axis in (0, 1, -1):
        check(
            lambda v, a=axis: T.topk(v, -2, axis=a),
            x,
            expected=lambda v, a=axis: np.take(np.sort(v, a), [0, 1], a),
        )
    check(lambda v: T.topk(v, 3, axis=None), M, expected=lambda v: np.sort(v, None)[:-4:-1])


def test_topk_takes_equal_elements_in_order_and_nan_as_largest():
    x = np.array([1.0, 2.0, 2.0, 1.0])
    check(lambda v: T.argtopk(v, 3), x, expected=np.array([1, 2, 0]))
    check(lambda v: T.argtopk(v, -3), x, expected=np.array([0, 3, 1]))
    x = np.array([1.0, np.nan, 3.0])
    check(lambda v: T.topk(v, 2), x, expected=np.array([np.nan, 3.0]), grad=False)


@pytest.mark.parametrize("k", [3, -3])
def test_topk_with_a_number_known_later(k):
    check(
        lambda v, n: T.topk(v, n),
        M,
        np.int64(k),
        expected=lambda v, n: np.sort(v, 1)[:, :3] if k < 0 else np.sort(v, 1)[:, :0:-1],
    )
    assert T.topk(T.dvector(), T.constant(2)).type.shape == (2,)


def test_topk_errors():
    x, n = T.dvector(), T.lscalar()
    for k, values in ((5, {}), (n, {n: 0}), (n, {n: -4})):
        with pytest.raises(ShapeError, match="for an axis of length 3"):
            T.topk(x, k).eval({x: np.zeros(3), **values})
    with pytest.raises(DTypeError, match="must be an integer scalar"):
        T.topk(x, 1.5)
    with pytest.raises(DTypeError, match="idx_dtype='float32' must be an integer dtype"):
        T.argtopk(x, 1, idx_dtype="float32")


def test_topk_positions_narrower_than_the_axis():
    x = T.dvector()
    values = T.topk_and_argtopk(x, 2, idx_dtype="int8")[0]
    assert values.eval({x: np.arange(300.0)}).tolist() == [299, 298]


def test_searching_over_dtypes():
    for dtype in ALL_DTYPES:
        x, v = np.array([0, 1, 1]).astype(dtype), np.array([[1, 0]]).astype(dtype)
        check(
            lambda a, b: T.searchsorted(a, b, "right"),
            x,
            v,
            expected=lambda a, b: np.searchsorted(a, b, "right"),
        )
    small = np.array([1, 2, 3], np.int8)
    check(lambda a: T.searchsorted(a, 300), small, expected=np.array(3))
    check(lambda a: T.searchsorted(a, 1.5), small[:0], expected=np.array(0))
    check(lambda a: T.searchsorted(a, np.nan), np.array([1.0, np.nan]), expected=np.array(1))


def test_searching_errors():
    x = T.dvector()
    with pytest.raises(ValueError, match="side='middle'"):
        T.searchsorted(x, 1.0, side="middle")
    with pytest.raises(ShapeError, match="is no vector"):
        T.searchsorted(T.dmatrix(), 1.0)
    for sorter in ([True, False], [0.0, 1.0]):
        with pytest.raises(DTypeError, match="sorter must be an integer vector"):
            T.searchsorted(x, 1.0, sorter=sorter)


@pytest.mark.parametrize("shape", [(), (0,), (0, 2), (3, 1)], ids=str)
def test_unique_shapes(shape):
    check(
        lambda v: T.unique(v, True, True, True),
        np.zeros(shape),
        expected=lambda v: np.unique(v, True, True, True),
        grad=False,
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(axis):
    x = np.array([[1, 2, 1], [1, 2, 1], [0, 3, 0]])
    check(
        lambda v: T.unique(v, True, True, True, axis),
        x,
        expected=lambda v: [
            part if k != 2 else part.ravel()
            for k, part in enumerate(np.unique(v, True, True, True, axis=axis))
        ],
    )


def test_unique_nan():
    x = np.array([np.nan, 1.0, np.nan])
    check(
        lambda v: T.unique(v, True, True, True),
        x,
        expected=lambda v: np.unique(v, True, True, True),
        grad=False,
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.data())
def test_random_topk(elements, data):
    k = data.draw(st.integers(1, len(elements)))
    x = np.array(elements)
    check(
        lambda v: T.topk_and_argtopk(v, k),
        x,
        expected=lambda v: [np.sort(v)[::-1][:k], np.argsort(-v, kind="stable")[:k]],
    )
