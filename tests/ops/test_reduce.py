"""Reductions, cumulative ops, sorting and counting, against NumPy over axes and dtypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(3)
A = RNG.normal(size=(2, 3, 4))
M = RNG.normal(size=(3, 4))
AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2), ()]
REAL = [d for d in ALL_DTYPES if d[0] != "c"]


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
def test_axes(name, axis):
    reference = getattr(np, name)
    grad = not (name == "std" and axis == ())
    x = A + 3 if name == "prod" else A
    check(
        lambda v: getattr(T, name)(v, axis=axis),
        x,
        expected=lambda v: np.asarray(reference(v, axis=axis)),
        rtol=1e-11,
        atol=1e-15,
        grad=grad,
    )
    check(
        lambda v: getattr(v, name)(axis=axis, keepdims=True),
        x,
        expected=lambda v: np.asarray(reference(v, axis=axis, keepdims=True)),
        rtol=1e-11,
        atol=1e-15,
        grad=False,
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "any", "all", "max", "min", "argmax", "argmin"]
)
def test_dtypes(name, dtype):
    x = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    if dtype[0] == "c" and name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(DTypeError, match="no order"):
            getattr(T, name)(T.constant(x))
        return
    reference = getattr(np, name)
    rtol = {"float16": 2e-3, "float32": 1e-6, "complex64": 1e-6}.get(dtype)
    check(
        lambda v: getattr(T, name)(v, axis=1),
        x,
        expected=lambda v: np.asarray(reference(v, axis=1)),
        grad=False,
        rtol=rtol,
    )


def test_empty():
    x = np.zeros((0, 3))
    for name in ("sum", "prod", "any", "all"):
        check(
            lambda v, n=name: getattr(T, n)(v, axis=0),
            x,
            expected=lambda v, n=name: getattr(np, n)(v, axis=0),
            grad=False,
        )
    check(lambda v: T.max(v, axis=1), x, expected=np.zeros(0))
    v = T.dmatrix("v")
    with pytest.raises(
        ValueError, match=r"max: an array of shape \(0, 3\) is empty along axes \(0,\)"
    ):
        T.max(v, axis=0).eval({v: x})
    with pytest.raises(ShapeError, match="argmin: axis 0 of"):
        T.argmin(T.tensor("w", shape=(0,)))
    with pytest.raises(ShapeError, match="axis 2 does not exist"):
        v.sum(axis=2)
    with pytest.raises(ShapeError, match="given twice"):
        v.sum(axis=(0, -2))
    with pytest.raises(TypeError, match="constant integer"):
        v.sum(axis=T.lscalar())


def test_result_and_accumulator_dtypes():
    x = T.fvector("x")
    assert T.sum(x, dtype="float64").dtype == "float64" and T.mean(T.ivector()).dtype == "float64"
    big = np.full(4096, 1.0, np.float16)
    assert float(T.sum(T.constant(big)).eval()) == 4096
    assert (
        float(
            T.sum(
                T.constant(np.full(70000, 1.0, np.float16)), acc_dtype="float32", dtype="float32"
            ).eval()
        )
        == 70000
    )
    with pytest.raises(DTypeError, match="cannot hold"):
        T.sum(T.zvector(), dtype="float64")


def test_nan_and_infinity():
    x = np.array([[1.0, np.nan], [np.inf, -np.inf]])
    for name in ("sum", "max", "min", "prod"):
        check(
            lambda v, n=name: getattr(T, n)(v, axis=1),
            x,
            expected=lambda v, n=name: getattr(np, n)(v, axis=1),
            grad=False,
        )
    check(lambda v: T.argmax(v, axis=1), x, expected=lambda v: np.argmax(v, axis=1))


PRODUCTS = [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("row", PRODUCTS)
def test_product_gradients_with_zeros(row):
    x = np.array([row, [1.0, 4.0, 0.5]])
    check(lambda v: T.prod(v, axis=1), x, expected=lambda v: v.prod(1))
    check(lambda v: T.cumprod(v, axis=1), x, expected=lambda v: np.cumprod(v, 1))
    check(lambda v: symcomp.grad(T.prod(v, axis=1).sum(), v), x, expected=lambda v: others(v))
    v = T.dvector()
    h = symcomp.gradient.hessian(T.prod(v), v).eval({v: np.array(row)})
    np.testing.assert_allclose(h[0, 1], row[2])


def others(x):
    return np.stack([np.prod(np.delete(x, j, 1), 1) for j in range(x.shape[1])], 1)


def test_ties_share_the_gradient():
    x = T.dvector()
    g = symcomp.grad(T.max(x), x).eval({x: [1.0, 3.0, 3.0]})
    assert g.tolist() == [0, 0.5, 0.5]
    assert (
        float(symcomp.Rop(T.max(x), x, T.constant([0.0, 1.0, 3.0])).eval({x: [1.0, 3.0, 3.0]}))
        == 2.0
    )


def test_complex_reductions():
    z = M + 1j * M[::-1]
    for name in ("sum", "prod", "mean", "var"):
        check(
            lambda v, n=name: getattr(T, n)(v, axis=1),
            z,
            expected=lambda v, n=name: getattr(np, n)(v, axis=1),
            rtol=1e-11,
        )


def test_statistics():
    check(
        lambda x: T.var(x, axis=1, ddof=1),
        M,
        expected=lambda x: np.var(x, axis=1, ddof=1),
        rtol=1e-11,
    )
    check(
        lambda x: T.var(x, axis=1, corrected=True),
        M,
        expected=lambda x: np.var(x, axis=1),
        rtol=1e-11,
    )
    check(lambda x: x.ptp(axis=1), M, expected=lambda x: np.ptp(x, axis=1))
    for axis in (None, 0, 1, (0, 1)):
        check(
            lambda x, a=axis: T.median(x, a),
            M,
            expected=lambda x, a=axis: np.asarray(np.median(x, a)),
        )
        check(
            lambda x, a=axis: T.logsumexp(x, a),
            M,
            expected=lambda x, a=axis: np.asarray(np.log(np.exp(x).sum(a))),
            rtol=1e-11,
        )
    check(lambda x: T.median(x), np.array([1.0, np.nan]), expected=np.array(np.nan), grad=False)
    check(T.cov, M, expected=np.cov, rtol=1e-11)
    check(
        lambda x: T.cov(x, rowvar=False, bias=True),
        M,
        expected=lambda x: np.cov(x, rowvar=False, bias=True),
        rtol=1e-11,
        atol=1e-14,
    )
    check(lambda x, y: T.cov(x, y), M[0], M[1], expected=np.cov, rtol=1e-11)


def test_logsumexp_extremes():
    x = np.array([[1e3, 1e3], [-np.inf, -np.inf], [np.inf, 0.0], [-1e4, -1e4 - 1]])
    wanted = np.array([1e3 + np.log(2), -np.inf, np.inf, -1e4 + np.log1p(np.exp(-1))])
    check(lambda v: T.logsumexp(v, axis=1), x, expected=wanted, grad=False)
    v = T.dmatrix()
    slope = symcomp.grad(T.logsumexp(v, axis=1)[[0, 3]].sum(), v).eval({v: x})
    np.testing.assert_allclose(slope[0], [0.5, 0.5])


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
def test_positions_of_extremes(axis):
    def reference(x, name):
        if not isinstance(axis, tuple):
            return np.asarray(getattr(np, name)(x, axis=axis))
        return getattr(np, name)(x.transpose(1, 0, 2).reshape(3, 8), axis=1)

    for name in ("argmax", "argmin"):
        check(
            lambda x, n=name: getattr(T, n)(x, axis=axis),
            A,
            expected=lambda x, n=name: reference(x, n),
        )
    values, places = T.max_and_argmax(T.constant(M), axis=1, keepdims=True)
    assert values.eval().shape == places.eval().shape == (3, 1)


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


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_random_sums(shape, data):
    axes = data.draw(
        st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda a: a % len(shape))
    )
    x = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    keep = data.draw(st.booleans())
    check(
        lambda v: v.sum(axis=axes, keepdims=keep),
        x,
        expected=lambda v: np.asarray(v.sum(axis=tuple(axes), keepdims=keep)),
        grad=False,
    )
