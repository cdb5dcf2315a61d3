"""Writing to parts of tensors: every kind of key, value and way, in place and through views."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.errors import DTypeError, IndexOutOfRangeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check
from symcomp.tests.ops.test_index import indexed

A = np.arange(24.0).reshape(2, 3, 4) + 0.5
M = A[0]


def set_numpy(x, key, y):
    z = x.copy()
    z[key] = y
    return z


def inc_numpy(x, key, y):
    z = x.copy()
    np.add.at(z, key, y)
    return z


WAYS = {"set": (T.set_subtensor, set_numpy), "inc": (T.inc_subtensor, inc_numpy)}
KEYS = [
    np.s_[1],
    np.s_[:, ::-2],
    np.s_[1, :, 3:0:-2],
    np.s_[..., None, 1],
    np.s_[[1, 0]],
    np.s_[:, np.array([2, 0])],
    np.s_[np.array([[0], [1]]), np.array([2, 0]), 1:],
    np.s_[np.array([0, 1]), :, np.array([3, 0])],
    np.s_[np.array([1]), None, np.array([0])],
    np.s_[A > 9],
    np.s_[np.array([True, False]), 1],
    np.s_[:, np.array([False, True, True]), np.array([0, -1])],
    np.s_[0, True],
    np.s_[False],
    np.s_[...],
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_values_of_full_shape_and_derivatives(key, way):
    ours, theirs = WAYS[way]
    y = np.cos(np.arange(A[key].size)).reshape(A[key].shape)
    check(
        lambda x, v: ours(x[key], v), A, y, expected=lambda x, v: theirs(x, key, v), static="full"
    )
    z = A + 1j * A[::-1]
    check(
        lambda x, v: ours(x[key], v),
        z,
        y * (2 - 1j),
        expected=lambda x, v: theirs(x, key, v),
        static="full",
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 4), (2, 1, 1), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("key", [np.s_[...], np.s_[::-1], np.s_[[1, 0]]], ids=str)
def test_values_broadcast(key, shape, way):
    ours, theirs = WAYS[way]
    y = np.sin(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    check(lambda x, v: ours(x[key], v), A, y, expected=lambda x, v: theirs(x, key, v))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_dtypes(way, dtype):
    ours, theirs = WAYS[way]
    x, y = M.astype(dtype), np.array([1, 0, 1, 1]).astype(dtype)
    for key in (np.s_[1], np.s_[[2, 0, 2]]):
        check(
            lambda x, v, k=key: ours(x[k], v),
            x,
            y,
            expected=lambda x, v, k=key: theirs(x, k, v),
            grad=dtype in ("float64", "complex128") and way == "inc",
        )


@pytest.mark.parametrize("given", ALL_DTYPES)
@pytest.mark.parametrize("held", ALL_DTYPES)
def test_only_dtypes_that_fit_without_loss(held, given):
    x, y = T.tensor("x", dtype=held, shape=(3,)), T.tensor("y", dtype=given, shape=(3,))
    if np.can_cast(given, held, "safe"):
        assert T.set_subtensor(x[:], y).type == x.type
    else:
        with pytest.raises(DTypeError, match=f"y is {given}, which the {held} tensor"):
            T.inc_subtensor(x[:], y)


def test_numbers_adapt():
    assert T.inc_subtensor(T.fvector()[0], 0.1).dtype == "float32"
    assert T.set_subtensor(T.bvector()[0], -128).dtype == "int8"
    assert T.set_subtensor(T.zvector()[0], 1j).dtype == "complex128"
    assert T.set_subtensor(T.dvector()[0], True).dtype == "float64"
    with pytest.raises(DTypeError, match="128 does not fit int8"):
        T.set_subtensor(T.bvector()[0], 128)
    with pytest.raises(DTypeError, match="float64, which the int8 tensor"):
        T.set_subtensor(T.bvector()[0], 0.5)
    with pytest.raises(DTypeError, match="complex128, which the float64 tensor"):
        T.set_subtensor(T.dvector()[0], 1j)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_empty(shape):
    x = np.zeros(shape)
    for ours, theirs in WAYS.values():
        for key in (np.s_[...], np.s_[1:], np.s_[np.zeros(0, int)], x > 0):
            check(
                lambda x, f=ours, k=key: f(x[k], 2.0),
                x,
                expected=lambda x, f=theirs, k=key: f(x, k, 2.0),
            )


def test_duplicates():
    x, y = np.zeros(3), np.array([1.0, 2.0, 3.0])
    key = np.array([0, 2, 0])
    check(lambda x, y: T.inc_subtensor(x[key], y), x, y, expected=np.array([4.0, 0.0, 2.0]))
    check(
        lambda x, y: T.set_subtensor(x[key], y),
        x,
        y,
        expected=np.array([3.0, 0.0, 2.0]),
        grad=False,
    )
    check(
        lambda x, y: T.inc_subtensor(x[key], y, ignore_duplicates=True),
        x,
        y,
        expected=np.array([3.0, 0.0, 2.0]),
        grad=False,
    )
    check(lambda x, y: T.inc_subtensor(x[:], y, ignore_duplicates=True), x, y, expected=x + y)


VIEWS = {
    "transposed": (lambda part: part.T, (4, 2)),
    "with an axis more": (lambda part: part.dimshuffle(1, "x", 0), (4, 1, 2)),
    "reshaped": (lambda part: part.reshape((2, 2, 2)), (2, 2, 2)),
    "flat": (lambda part: part.flatten(), (8,)),
    "both": (lambda part: part.T.reshape((2, 4)).T, (4, 2)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [np.s_[1:], np.s_[[2, 0]]], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_through_views(view, key, way):
    look, shape = VIEWS[view]
    ours, theirs = WAYS[way]
    y = np.cos(np.arange(8.0)).reshape(shape)
    undo = {
        "transposed": y.T,
        "with an axis more": y.reshape(4, 2).T,
        "both": y.T.reshape(4, 2).T,
    }.get(view, y.reshape(2, 4))
    check(lambda x, v: ours(look(x[key]), v), M, y, expected=lambda x, v: theirs(x, key, undo))
    check(lambda x: ours(look(x[key]), -0.0), M, expected=lambda x: theirs(x, key, -0.0))


def test_through_a_dropped_axis_and_negative_zero():
    check(
        lambda x, v: T.set_subtensor(x[:1].dimshuffle(1), v),
        M[:1],
        M[2],
        expected=lambda x, v: v[None],
    )
    result = T.set_subtensor(T.zeros(4)[:].reshape((2, 2)), -0.0).eval()
    assert np.signbit(result).all()
    x = T.dmatrix("x")
    for part in (x, x.T, x[0] + 1, x[0].sum()):
        with pytest.raises(TypeError, match="no index expression"):
            T.inc_subtensor(part, 1)
    with pytest.raises(TypeError, match="must be an index expression"):
        T.inc_subtensor(M[0], 1)


def test_inplace_overwrites_its_base_alone():
    v = np.array([7.0, 8.0])
    for ours, theirs in WAYS.values():
        for key in (np.s_[:2], np.s_[[2, 0]]):
            x, y = T.dvector("x"), T.dvector("y")
            z = ours(x[key], y, inplace=True)
            assert z.owner.op.destroy_map == {0: (0,)}
            assert ours(x[key], y).owner.op.destroy_map == {}
            base = np.arange(3.0)
            wanted = theirs(base, key, v)
            (result,) = evaluate([z], {x: base, y: v})
            assert result is base
            np.testing.assert_array_equal(base, wanted)
            written = ours((x * 2)[key], y, inplace=True)
            f = symcomp.function([x, y], written, accept_inplace=True)
            np.testing.assert_array_equal(f(base, v), theirs(base * 2, key, v))


def test_inplace_from_overlapping_memory():
    x = T.dvector("x")
    base = np.arange(5.0)
    (result,) = evaluate([T.inc_subtensor(x[1:], x[:-1], inplace=True)], {x: base.copy()})
    np.testing.assert_array_equal(result, [0, 1, 3, 5, 7])
    (result,) = evaluate([T.set_subtensor(x[::-1], x, inplace=True)], {x: base.copy()})
    np.testing.assert_array_equal(result, base[::-1])
    (result,) = evaluate([T.inc_subtensor(x[[1, 2]], x[:2], inplace=True)], {x: base.copy()})
    np.testing.assert_array_equal(result, [0, 1, 3, 3, 4])


def test_gradients_of_gradients():
    x, y = T.dvector("x"), T.dvector("y")
    z = T.inc_subtensor(T.set_subtensor(x[1:3], y**3)[[0, 0]], x[:2] ** 2)
    (gy,) = symcomp.grad((z**2).sum(), [y])
    check(
        lambda a, b: symcomp.clone_replace(gy, {x: a, y: b}),
        np.array([0.5, -1.0, 2.0, 0.25]),
        np.array([1.5, -0.5]),
        expected=lambda a, b: 6 * b**5,
    )


def test_errors_when_running():
    x, y, i = T.dvector("x"), T.dvector("y"), T.lvector("i")
    with pytest.raises(ValueError, match="shape"):
        T.set_subtensor(x[1:3], y).eval({x: np.zeros(5), y: np.zeros(4)})
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        T.inc_subtensor(x[i], 1).eval({x: np.zeros(3), i: [0, 5]})
    mask = T.tensor("mask", dtype="bool", shape=(None,))
    with pytest.raises(IndexOutOfRangeError, match="axis 0 of the mask has length 2, axis 0"):
        T.set_subtensor(x[mask], 0).eval({x: np.zeros(3), mask: np.array([True, False])})
    with pytest.raises(ShapeError, match="stretched only if its type says so"):
        T.inc_subtensor(x[i], y).eval({x: np.zeros(3), i: [0, 1], y: np.ones(1)})


@settings(deadline=None, max_examples=100)
@given(indexed(), st.sampled_from(sorted(WAYS)), st.data())
def test_random_writes(case, way, data):
    shape, key = case
    ours, theirs = WAYS[way]
    x = np.arange(np.prod(shape), dtype=float).reshape(shape) * 1.5
    region = x[key].shape
    stretched = tuple(1 if data.draw(st.booleans()) else n for n in region)
    stretched = stretched[data.draw(st.integers(0, len(stretched))) :]
    y = np.cos(np.arange(np.prod(stretched, dtype=int))).reshape(stretched)
    unique = np.unique(np.arange(x.size).reshape(shape)[key]).size == np.prod(region)
    check(
        lambda x, v: ours(x[key], v),
        x,
        y,
        expected=lambda x, v: theirs(x, key, v),
        grad=x.size < 20 and (unique or way == "inc"),
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("length", [1, 3, 4, 11, 400])
def test_additions_to_one_element_in_a_row_are_in_order(dtype, length):
    z, y, at = T.vector("z", dtype=dtype), T.vector("y", dtype=dtype), T.lvector("at")
    f = symcomp.function([z, y, at], T.inc_subtensor(z[at], y))
    rng = np.random.default_rng(length)
    start, rows = rng.normal(0, 5, 6).astype(dtype), rng.normal(0, 5, 401).astype(dtype)
    for places in (np.arange(401) // length % 6, np.sort(rng.integers(-6, 6, 401))):
        expected = start.copy()
        with np.errstate(over="ignore"):
            for place, row in zip(places, rows, strict=True):
                expected[place] += row
        assert f(start, rows, places).tobytes() == expected.tobytes()
