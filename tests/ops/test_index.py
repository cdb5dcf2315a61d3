"""Reading and writing parts of tensors, against NumPy: fixed cases and random index expressions."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
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


def test_bool_scalars_are_index_arrays_that_take_no_axis():
    for key in (
        np.s_[True],
        np.s_[False],
        np.s_[None, True],
        np.s_[0, True],
        np.s_[True, :, 1],
        np.s_[[0], True, [1, 2]],
        np.s_[:, [1], False, 1:],
        np.s_[np.array(True), False],
        np.s_[..., True],
    ):
        check(lambda x, k=key: x[k], A, expected=lambda x, k=key: x[k])
        check(lambda x, k=key: T.inc_subtensor(x[k], 2.0), A, expected=lambda x, k=key: added(x, k))
    for flag in (np.True_, np.False_):
        check(lambda x, m: x[m], A, flag, expected=lambda x, m: x[m])
        check(lambda x, m: x[:, m, [1]], A, flag, expected=lambda x, m: x[:, m, [1]])
    check(lambda x: x[True], A[0, 0, 0], expected=lambda x: x[True])


def test_masks_fit_their_axes():
    short, x = np.array([True, False]), T.dmatrix("x")
    mask, values = T.tensor("mask", dtype="bool", shape=(None,)), np.ones((3, 4))
    message = "axis 0 of the mask has length 2, axis 1 of the tensor has 4"
    with pytest.raises(IndexOutOfRangeError, match=message):
        x[:, short].eval({x: values})
    with pytest.raises(IndexOutOfRangeError, match=message):
        x[:, mask].eval({x: values, mask: short})
    with pytest.raises(IndexOutOfRangeError, match="axis 1 of the mask has length 2"):
        x[np.ones((3, 2), bool)].eval({x: values})
    with pytest.raises(ShapeError, match="too many indices: 3"):
        x[np.ones((3, 2, 1), bool)]


def test_parts_at_the_ends_of_int64():
    last = np.iinfo(np.int64).max
    v, ends = np.arange(5.0), [np.int64(last), np.int64(-last), np.int64(-last - 1)]
    for n in (10**30, -(10**30), last, -last):
        for key in (np.s_[:n], np.s_[n:], np.s_[1::n], np.s_[::n], np.s_[3:0:n]):
            check(lambda x, k=key: x[k], v, expected=lambda x, k=key: x[k])
    for end in ends:
        check(lambda x, i: x[i:], v, end, expected=lambda x, i: x[i:])
        check(lambda x, i: x[:i], v, end, expected=lambda x, i: x[:i])
        check(lambda x, i: x[i::-1], v, end, expected=lambda x, i: x[i::-1])
    check(lambda x, i: x[1::i], v, ends[0], expected=lambda x, i: x[1::i])
    check(lambda x, i: x[1::i], v, ends[1], expected=lambda x, i: x[1::i])


@pytest.mark.parametrize("dtype", [t for t in ALL_DTYPES if t[0] in "iu"])
def test_integers_of_every_dtype_index(dtype):
    i, many = np.array(2, dtype), np.array([[1, 0], [2, 2]], dtype)
    check(lambda x, i: x[i], M, i, expected=lambda x, i: x[2])
    check(lambda x, i: x[:i, i:], M, i, expected=lambda x, i: x[:2, 2:])
    check(lambda x, i: x[i], M, many, expected=lambda x, i: x[i])
    check(lambda x: x[many, i], M, expected=lambda x: x[many, 2])


def test_empty_tensors_and_empty_keys():
    for shape in ((0,), (0, 3), (2, 0, 3)):
        x = np.zeros(shape)
        for key in (np.s_[:], np.s_[::-1], np.s_[..., 5:], np.s_[..., []], x > 0, np.s_[None]):
            check(lambda x, k=key: x[k], x, expected=lambda x, k=key: x[k])
    check(lambda x: x[[]], M, expected=lambda x: x[[]])
    check(lambda x: x[[[]], 1], M, expected=lambda x: x[[[]], 1])
    check(lambda x: x[...], A[0, 0, 0], expected=lambda x: x[...])
    for x in (M, A[0, 0, 0]):
        check(lambda x: x[()], x, expected=lambda x: x)
        check(lambda x: T.inc_subtensor(x[()], 1), x, expected=lambda x: x + 1)


def test_static_lengths():
    x = T.tensor("x", shape=(5, None, 7))
    i = T.lvector("i")
    assert x[1::2, :0, -3:].type.shape == (2, 0, 3)
    assert x[:, None, 0].type.shape == (5, 1, 7)
    assert x[i].type.shape == (None, None, 7)
    assert x[:, i, [1, 2]].type.shape == (5, 2)
    assert x[i, :, [[1], [2]]].type.shape == (2, None, None)
    assert x[T.lscalar() :].type.shape == (None, None, 7)
    assert x[..., True].type.shape == (5, None, 7, 1)
    with pytest.raises(IndexOutOfRangeError, match="do not broadcast"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(IndexOutOfRangeError, match="index -6 of an index array is out of bounds"):
        x[[0, -6]]


def added(x, key, y=2.0):
    z = x.copy()
    np.add.at(z, key, y)
    return z


def entries(length):
    number = st.integers(-length, length - 1) if length else st.nothing()
    edge = st.none() | st.integers(-length - 2, length + 2)
    step = st.none() | st.sampled_from([1, 2, 3, -1, -2])
    sizes = st.sampled_from([(2,), (1,), (3, 1), (2, 1, 2)] if length else [(0,)])
    array = st.builds(
        lambda shape, seed: np.random.default_rng(seed).integers(-length, max(length, 1), shape),
        sizes,
        st.integers(0, 99),
    )
    return st.one_of(number, st.builds(slice, edge, edge, step), array)


def masks(shape):
    return st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
        lambda v: np.array(v, bool).reshape(shape)
    )


@st.composite
def indexed(draw):
    """Draw a shape, and a key that NumPy accepts for it."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple))
    depth = draw(st.integers(0, len(shape)))
    key, axis = [], 0
    while axis < depth:
        covers = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
        if covers and axis + covers <= depth:
            key.append(draw(masks(shape[axis : axis + covers])))
            axis += covers
        else:
            key.append(draw(entries(shape[axis])))
            axis += 1
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.integers(0, 4)) == 0:
        key.insert(draw(st.integers(0, len(key))), draw(st.booleans()))
    if draw(st.booleans()) and depth == len(shape):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    try:
        np.zeros(shape)[tuple(key)]
    except IndexError:
        reject()
    return shape, tuple(key)


def made_symbolic(key, chosen):
    """Return the key's values, and a function from variables for them to the key."""
    values = []

    def leave(part):
        if part is None or part is Ellipsis or not next(chosen):
            return part
        values.append(np.asarray(part))
        return Place(len(values) - 1)

    parts = [
        [leave(p) for p in (k.start, k.stop, k.step)] if isinstance(k, slice) else leave(k)
        for k in key
    ]

    def build(variables):
        def put(part):
            return variables[part.number] if isinstance(part, Place) else part

        return tuple(slice(*map(put, p)) if isinstance(p, list) else put(p) for p in parts)

    return values, build


class Place:
    def __init__(self, number):
        self.number = number


@settings(deadline=None, max_examples=60)
@given(indexed())
def test_random_index_expressions(case):
    shape, key = case
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    check(lambda v: v[key], x, expected=lambda v: v[key], grad=x.size < 13)
    check(
        lambda v: T.inc_subtensor(v[key], 1.5), x, expected=lambda v: added(v, key, 1.5), grad=False
    )
    gradient = symcomp.grad
    slope = added(np.zeros(shape), key, 1.0)
    check(lambda v: gradient((v[key] * 1.0).sum(), v), x, expected=slope, grad=False)


@settings(deadline=None, max_examples=50)
@given(indexed(), st.randoms(use_true_random=False))
def test_random_symbolic_index_expressions(case, random):
    shape, key = case
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    values, build = made_symbolic(key, iter(lambda: random.random() < 0.6, None))
    check(lambda x, *parts: x[build(parts)], x, *values, expected=lambda x, *_: x[key], grad=False)
    v, parts = T.TensorType("float64", (None,) * x.ndim)("v"), []
    for n, value in enumerate(values):
        parts.append(T.TensorType(value.dtype, (None,) * value.ndim)(f"p{n}"))
    region = v[build(parts)]
    outputs = [region * 2, T.inc_subtensor(region, 1.0), region.shape]
    f = symcomp.function([v, *parts], outputs, on_unused_input="ignore")
    wanted = (x[key] * 2, added(x, key, 1.0), x[key].shape)
    for got, want in zip(f(x, *values), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


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
