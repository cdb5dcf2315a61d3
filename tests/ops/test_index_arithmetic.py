"""Cumulative ops, counting, codes and index arithmetic, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.autodiff.check import check_derivatives
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.reductions.cumulative import LinearRecurrence
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(4)
A = RNG.normal(size=(2, 3, 4))
M = RNG.normal(size=(3, 4))
REAL = [d for d in ALL_DTYPES if d[0] != "c"]
DISCRETE = [d for d in REAL if d[0] != "f"]


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_cumulative(axis):
    for name in ("cumsum", "cumprod"):
        check(
            lambda x, n=name: getattr(T, n)(x, axis=axis),
            A,
            expected=lambda x, n=name: getattr(np, n)(x, axis=axis),
        )
        check(
            lambda x, n=name: getattr(T, n)(x, axis=axis),
            M + 1j,
            expected=lambda x, n=name: getattr(np, n)(x, axis=axis),
        )
    if axis is not None:
        check(lambda x: T.diff(x, 2, axis), M, expected=lambda x: np.diff(x, 2, axis))


@pytest.mark.parametrize("dtype", REAL)
def test_cumulative_dtypes(dtype):
    x = np.array([1, 0, 1, 1]).astype(dtype)
    check(T.cumsum, x, expected=np.cumsum, grad=False)
    check(T.cumprod, x, expected=np.cumprod, grad=False)
    check(T.cumsum, x[:0], expected=np.cumsum, grad=False)
    check(T.diff, x, expected=np.diff, grad=False)


def test_counting():
    x = np.array([3, 0, 3, 1])
    check(T.bincount, x, expected=np.bincount)
    check(lambda v: T.bincount(v, minlength=6), x, expected=lambda v: np.bincount(v, minlength=6))
    check(lambda v, w: T.bincount(v, w), x, np.array([0.5, 1.0, 2.0, 3.0]), expected=np.bincount)
    check(T.bincount, x[:0], expected=np.bincount)
    v = T.lvector("v")
    with pytest.raises(AssertionError, match="negative element"):
        T.bincount(v, assert_nonneg=True).eval({v: [-1]})
    with pytest.raises(DTypeError, match="integer vector"):
        T.bincount(T.dvector())


def test_index_arithmetic_and_codes():
    i = np.array([0, 5, 11])
    for order in ("C", "F"):
        check(
            lambda v, o=order: list(T.unravel_index(v, (3, 4), o)),
            i,
            expected=lambda v, o=order: np.unravel_index(v, (3, 4), o),
        )
    pair = np.array([0, 1, 2]), np.array([3, 0, 1])
    for order in ("C", "F"):
        check(
            lambda a, b, o=order: T.ravel_multi_index((a, b), (3, 4), order=o),
            *pair,
            expected=lambda a, b, o=order: np.ravel_multi_index((a, b), (3, 4), order=o),
        )
    for mode in ("wrap", "clip"):
        check(
            lambda a, m=mode: T.ravel_multi_index((a, a), (3, 4), m),
            np.array([5, -1]),
            expected=lambda a, m=mode: np.ravel_multi_index((a, a), (3, 4), m),
        )
    with pytest.raises(AssertionError, match="out of range"):
        T.ravel_multi_index((T.constant(5), T.constant(0)), (3, 4)).eval()
    check(
        lambda v: T.to_one_hot(v, 4, "int32"),
        np.array([2, 0]),
        expected=np.eye(4, dtype="int32")[[2, 0]],
    )
    for n in (0, 1, 2, 7):
        check(lambda n=n: T.bartlett(n), expected=lambda n=n: np.bartlett(n))
    check(T.cpu_contiguous, M.T, expected=lambda x: x)
    p = np.array([2, 0, 1, 3])
    check(lambda x: T.permute_row_elements(x, p), M, expected=lambda x: x[:, p])
    check(
        lambda x: T.permute_row_elements(x, p, inverse=True),
        M,
        expected=lambda x: x[:, np.argsort(p)],
    )
    rows = np.array([p, p[::-1], p])
    check(
        lambda x: T.permute_row_elements(x, rows),
        M,
        expected=lambda x: np.take_along_axis(x, rows, 1),
    )
    check(lambda v: T.inverse_permutation(v), p, expected=np.argsort)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1, 3)], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_cumulative_of_nothing(name, shape):
    for axis in (None, *range(-len(shape), len(shape))):
        check(
            lambda v, a=axis: getattr(T, name)(v, axis=a),
            np.zeros(shape),
            expected=lambda v, a=axis: getattr(np, name)(v, axis=a),
        )


def test_cumulative_scalars_and_strides():
    check(T.cumsum, np.array(2.0), expected=np.array([2.0]))
    x = RNG.normal(size=(4, 3, 4))[::-1, :, ::-2].transpose(2, 0, 1)
    for name in ("cumsum", "cumprod"):
        check(
            lambda v, n=name: getattr(T, n)(v, axis=1),
            x,
            expected=lambda v, n=name: getattr(np, n)(v, axis=1),
        )
    with pytest.raises(ShapeError, match="cumsum: axis 2 does not exist"):
        T.cumsum(T.dmatrix(), axis=2)


@pytest.mark.parametrize("row", [[1, 2, 3], [0, 2, 3], [2, 0, 3], [0, 0, 3], [0, 0, 0]])
def test_second_derivative_of_cumprod_with_zeros(row):
    def slope(v):
        return symcomp.grad((T.cumprod(v) * np.array([1.0, 2.0, 3.0])).sum(), v)

    check(
        slope,
        np.array(row, float),
        expected=lambda v: np.array(
            [1 + 2 * v[1] + 3 * v[1] * v[2], 2 * v[0] + 3 * v[0] * v[2], 3 * v[0] * v[1]]
        ),
    )
    z = np.array([row, row[::-1]]) * (1 + 1j)
    check(lambda v: T.cumprod(v, axis=1), z, expected=lambda v: np.cumprod(v, axis=1))


@pytest.mark.parametrize("axis", [0, 1])
def test_linear_recurrence(axis):
    def reference(a, b):
        z = np.zeros_like(b)
        for k in range(b.shape[axis]):
            at = (slice(None),) * axis + (k,)
            z[at] = b[at]
            if k:
                z[at] += a[at] * z[(slice(None),) * axis + (k - 1,)]
        return z

    check(LinearRecurrence(axis), M, M[::-1] + 1, expected=reference)
    check(LinearRecurrence(axis), M + 1j, M - 2j, expected=reference)
    a, b = T.dmatrix(), T.dmatrix()
    slopes = symcomp.grad((LinearRecurrence(axis)(a, b) ** 2).sum(), [a, b])
    for slope in slopes:
        check_derivatives([a, b], slope, [M, M[::-1] + 1], np.random.default_rng(0))


@pytest.mark.parametrize("n", [0, 1, 3, 6])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex128"])
def test_differences(n, dtype):
    x = np.array([[3, 0, 1, 1, 5], [0, 1, 1, 2, 0]]).astype(dtype)
    check(lambda v: T.diff(v, n), x, expected=lambda v: np.diff(v, n), tolerance=0.1)


def test_difference_errors():
    with pytest.raises(ValueError, match="n must be a constant integer of at least 0, got -1"):
        T.diff(T.dvector(), -1)
    with pytest.raises(ShapeError, match="axis -1 does not exist"):
        T.diff(T.dscalar())


@pytest.mark.parametrize("dtype", DISCRETE)
def test_whole_numbers_of_every_dtype(dtype):
    x = np.array([1, 0, 1, 1]).astype(dtype)
    wide = x.astype("int64")
    check(T.bincount, x, expected=np.bincount(wide))
    check(lambda v: T.to_one_hot(v, 2), x, expected=np.eye(2)[wide])
    check(
        lambda v: list(T.unravel_index(v, (3, 500))), x, expected=np.unravel_index(wide, (3, 500))
    )
    check(
        lambda v: T.ravel_multi_index((v, v), (2, 500)),
        x,
        expected=np.ravel_multi_index((wide, wide), (2, 500)),
    )
    inverse = np.array([1, 0], "int64" if dtype == "bool" else dtype)
    check(T.inverse_permutation, x[:2], expected=inverse)
    check(lambda v: T.permute_row_elements(np.arange(2.0), v), x[:2], expected=np.array([1.0, 0.0]))


def test_weights_are_one_for_each_element():
    x, w = T.lvector("x"), T.dvector("w")
    with pytest.raises(ShapeError, match="weights must be a vector"):
        T.bincount(x, T.dscalar())
    for weights in ([1.0], [1.0, 2.0]):
        with pytest.raises(AssertionError, match="differ in length"):
            T.bincount(x, T.constant(weights)).eval({x: [0, 1, 1]})
        with pytest.raises(AssertionError, match="differ in length"):
            T.bincount(x, w).eval({x: [0, 1, 1], w: weights})
    check(T.bincount, np.array([2]), np.array([0.5]), expected=np.bincount)
    check(T.bincount, np.array([1, 1]), np.array([1j, 2]), expected=np.array([0, 2 + 1j]))


def test_counting_never_wraps():
    x = T.lvector("x")
    with pytest.raises(AssertionError, match="negative element"):
        T.bincount(x).eval({x: [-1, 3]})
    with pytest.raises(DTypeError, match="a length must be an integer scalar"):
        T.bincount(x, minlength=1.5)


def test_index_arithmetic_errors():
    i = T.lvector("i")
    for wrong in (-1, 12):
        with pytest.raises(AssertionError, match="unravel_index: an index is out of range"):
            T.unravel_index(i, (3, 4))[0].eval({i: [0, wrong]})
    with pytest.raises(DTypeError, match="unravel_index: indices must be integers"):
        T.unravel_index(T.dvector(), (3, 4))
    with pytest.raises(DTypeError, match="multi_index must be integers"):
        T.ravel_multi_index((i, T.dvector()), (3, 4))
    with pytest.raises(ShapeError, match="1 positions and 1 modes for 2 axes"):
        T.ravel_multi_index((i,), (3, 4))
    with pytest.raises(ValueError, match="order='A'"):
        T.unravel_index(i, (3, 4), order="A")
    with pytest.raises(ValueError, match="mode='bend'"):
        T.ravel_multi_index((i, i), (3, 4), "bend")


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_mode_for_each_axis(order):
    check(
        lambda a, b: T.ravel_multi_index((a, b), (3, 4), ("wrap", "clip"), order),
        np.array([5, -1, 0]),
        np.array([9, -2, 1]),
        expected=lambda a, b: np.ravel_multi_index((a, b), (3, 4), ("wrap", "clip"), order),
    )


def test_lengths_known_later():
    n, i = T.lscalar("n"), T.lvector("i")
    row, column = T.unravel_index(i, (3, n))
    given = {n: 4, i: [0, 5, 11]}
    assert row.eval(given).tolist() == [0, 1, 2] and column.eval(given).tolist() == [0, 1, 3]
    assert T.to_one_hot(i, n).eval({n: 3, i: [2]}).tolist() == [[0, 0, 1]]
    assert T.bartlett(n).eval({n: 3}).tolist() == [0, 1, 0]
    assert T.bincount(i, minlength=n).eval({n: 4, i: [1]}).tolist() == [0, 1, 0, 0]


def test_permutations_broadcast():
    rows = np.array([[2, 1, 0], [0, 2, 1]])
    x = RNG.normal(size=3)
    check(T.permute_row_elements, x, rows, expected=lambda v, p: v[p])
    check(
        T.permute_row_elements,
        RNG.normal(size=(4, 2, 3)),
        rows,
        expected=lambda v, p: np.take_along_axis(v, p[None], -1),
    )
    check(
        lambda v, p: T.permute_row_elements(v, p, inverse=True),
        RNG.normal(size=(2, 3)),
        rows,
        expected=lambda v, p: np.take_along_axis(v, np.argsort(p, 1), -1),
    )
    with pytest.raises(DTypeError, match="perm must be integers"):
        T.inverse_permutation([1.0, 0.0])


def test_contiguous_copies_only_what_is_not():
    x = T.dmatrix()
    for layout in (M, M.T, M[::-1], M[:0]):
        z = T.cpu_contiguous(x).eval({x: layout})
        assert z.flags.c_contiguous
        np.testing.assert_array_equal(z, layout)
    check(T.cpu_contiguous, np.array(2.0), expected=np.array(2.0))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from("CF"))
def test_numbering_there_and_back(dims, order):
    every = np.arange(np.prod(dims))
    check(
        lambda i: T.ravel_multi_index(T.unravel_index(i, dims, order), dims, order=order),
        every,
        expected=every,
        static="none",
    )


def test_index_arithmetic_on_a_vector_of_lengths():
    i, dims = T.lvector("i"), T.lvector("dims")
    f = symcomp.function([i, dims], list(T.unravel_index(i, dims, ndim=2)))
    np.testing.assert_array_equal(f([5, 3], [2, 3]), np.unravel_index([5, 3], (2, 3)))
    back = symcomp.function([i, dims], T.ravel_multi_index((i, i + 1), dims))
    assert back([1], [2, 3]) == [5]
    with pytest.raises(ShapeError, match="dims has 3 lengths, not ndim=2"):
        T.unravel_index(i, (1, 2, 3), ndim=2)


def test_inverse_permutation_keeps_the_dtype():
    assert T.inverse_permutation(T.ivector()).dtype == "int32"
