"""Reductions and statistics, against NumPy over axes and dtypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.autodiff.check import check_derivatives
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


@pytest.mark.parametrize("x_dtype", ["bool", "int8", "float32"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64"])
def test_means_of_discrete_sums_are_float64(x_dtype, dtype):
    """As in Theano: ``dtype`` is that of the sum, which is divided by the number of elements."""
    x = np.array([[1, 0, 1], [0, 0, 1]], x_dtype)
    z = T.mean(T.constant(x), axis=1, dtype=dtype)
    assert z.dtype == "float64"
    np.testing.assert_allclose(z.eval(), x.sum(axis=1, dtype=dtype) / 3)


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("n", [1, 2, 10, 31, 32, 33, 63, 64, 65, 100, 1023, 1056, 1057, 3000])
def test_positions_of_extremes_in_lines_of_any_length(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.integers(-100, 100, (60, n)).astype(dtype)
    x[np.arange(20), rng.integers(0, n, 20)] = 120  # one place, and the rest have equal ones
    if dtype.startswith("float"):
        x[np.arange(40, 50), rng.integers(0, n, 10)] = np.nan
        x[50] = -np.inf
    v = T.tensor(dtype, shape=(None, None))
    f = symcomp.function([v], [T.argmax(v, axis=1), T.argmin(v, axis=1)])
    for y in (x, x[::-1, ::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        got = f(y)
        np.testing.assert_array_equal(got[0], y.argmax(1))
        np.testing.assert_array_equal(got[1], y.argmin(1))


def test_dtypes_that_the_user_chooses():
    truth = np.array([True, True, False])
    check(lambda v: T.sum(v, dtype="bool"), truth, expected=np.array(True))
    check(lambda v: T.prod(v, dtype="int8"), truth, expected=np.array(0, np.int8))
    check(lambda v: T.sum(v, dtype="int64"), np.array([1.5, 2.5]), expected=np.array(3), grad=False)
    check(lambda v: T.sum(v, dtype="complex128"), M[0], expected=np.asarray(M[0].sum() + 0j))
    check(lambda v: T.prod(v, dtype="complex128"), M[0], expected=np.asarray(M[0].prod() + 0j))
    with pytest.raises(DTypeError, match="acc_dtype float64: float64 cannot hold complex128"):
        T.sum(T.zvector(), acc_dtype="float64")
    with pytest.raises(DTypeError, match="float64 cannot hold complex64"):
        T.prod(T.dvector(), acc_dtype="complex64", dtype="float64")


@pytest.mark.parametrize("name", ["sum", "prod", "max", "argmax", "std", "median"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_strides(name, axis):
    x = RNG.normal(size=(4, 6, 5))[::-1, ::2].transpose(2, 0, 1)
    check(
        lambda v: getattr(T, name)(v, axis=axis),
        x,
        expected=lambda v: np.asarray(getattr(np, name)(v, axis=axis)),
        rtol=1e-10,
        grad=axis == 0,
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("name", ["var", "std", "median", "logsumexp", "ptp"])
def test_statistics_dtypes(name, dtype):
    x = np.array([[3, 0, 1], [0, 1, 1]]).astype(dtype)
    if name in ("median", "logsumexp", "ptp") and dtype[0] == "c":
        return
    if name == "ptp" and dtype == "bool":
        with pytest.raises(DTypeError, match="is bool, which has no difference"):
            T.ptp(T.constant(x))
        return

    def reference(v):
        if name != "logsumexp":
            return getattr(np, name)(v, axis=1)
        kind = v.dtype if dtype[0] == "f" else np.float64
        return np.log(np.exp(v.astype(float)).sum(1)).astype(kind)

    check(
        lambda v: getattr(T, name)(v, axis=1),
        x,
        expected=reference,
        rtol={"float16": 2e-3, "float32": 1e-6, "complex64": 1e-6}.get(dtype, 1e-12),
        grad=False,
    )


def test_variance_at_its_limits():
    x = np.array([1.0, 3.0])
    for ddof in (1, 2, 3):
        check(
            lambda v, d=ddof: T.var(v, ddof=d),
            x,
            expected=lambda v, d=ddof: np.asarray(np.inf if d > 1 else 2.0),
            grad=False,
        )
    half = np.array([600, -600, 0], np.float16)
    check(T.std, half, expected=np.array(489.9, np.float16), grad=False)
    check(T.mean, np.full(70000, 2.0, np.float16), expected=np.array(2.0, np.float16), grad=False)
    check(lambda v: T.mean(v, axis=0), np.zeros((0, 2)), expected=np.full(2, np.nan), grad=False)
    check(lambda v: T.std(v, corrected=True), M, expected=lambda v: np.asarray(v.std()), rtol=1e-11)


@pytest.mark.parametrize(
    "name", ["mean", "var", "std", "max", "min", "ptp", "median", "logsumexp", "prod"]
)
def test_second_derivatives(name):
    def slope(v):
        return symcomp.grad((getattr(T, name)(v, axis=1) ** 2).sum(), v)

    x = T.dmatrix()
    check_derivatives([x], slope(x), [M], np.random.default_rng(0))


def test_ties_beyond_the_range_of_float16():
    x = T.vector(dtype="float16")
    slope = symcomp.grad(T.max(x), x).eval({x: np.zeros(100_000, np.float16)})
    np.testing.assert_allclose(slope, 1e-5, rtol=1e-2)


def test_nan_has_no_gradient_through_max():
    x = T.dvector()
    assert symcomp.grad(T.max(x), x).eval({x: [1.0, np.nan]}).tolist() == [0, 0]


def test_logsumexp_of_masked_rows():
    x = T.dmatrix()
    given = {x: [[-np.inf, -np.inf], [1.0, -np.inf], [2.0, 2.0]]}
    z = T.logsumexp(x, axis=1)
    slope = symcomp.grad(z.sum(), x).eval(given)
    assert slope.tolist() == [[0, 0], [1, 0], [0.5, 0.5]]
    assert symcomp.Rop(z, x, T.ones_like(x)).eval(given).tolist() == [0, 1, 1]
    v = T.dvector()
    hessian = symcomp.gradient.hessian(T.logsumexp(v), v)
    np.testing.assert_allclose(hessian.eval({v: np.zeros(3)}), np.eye(3) / 3 - 1 / 9, atol=1e-15)
    wanted = [[0, 0, 0], [0, 0.25, -0.25], [0, -0.25, 0.25]]
    np.testing.assert_allclose(hessian.eval({v: [-np.inf, 0, 0]}), wanted, atol=1e-15)


def test_median_of_little():
    check(T.median, np.zeros(0), expected=np.array(np.nan), grad=False)
    check(T.median, np.array(3.0), expected=np.array(3.0))
    check(lambda v: T.median(v, axis=()), M, expected=M)
    check(lambda v: T.median(v, axis=1), np.zeros((2, 0)), expected=np.full(2, np.nan), grad=False)
    check(T.median, np.array([np.inf, np.inf]), expected=np.array(np.inf), grad=False)


WEIGHTS = {"fweights": np.array([1, 2, 1, 3]), "aweights": np.array([0.5, 1.0, 2.0, 0.7])}


@pytest.mark.parametrize("ddof", [None, 0, 1, 2])
@pytest.mark.parametrize("names", [["fweights"], ["aweights"], ["fweights", "aweights"]], ids=str)
def test_weighted_covariance(names, ddof):
    options = {name: WEIGHTS[name] for name in names} | {"ddof": ddof}
    check(
        lambda x: T.cov(x, **options),
        M,
        expected=lambda x: np.cov(x, **options),
        rtol=1e-10,
        atol=1e-13,
    )


def test_covariance_corners():
    check(T.cov, M[0], expected=np.cov, rtol=1e-11)
    check(T.cov, M + 1j * M[::-1], expected=np.cov, rtol=1e-10, atol=1e-13)
    check(lambda x: T.cov(x, ddof=5), M, expected=lambda x: np.sign(np.cov(x)) * np.inf, grad=False)
    check(
        lambda x, w: T.cov(x, aweights=w),
        M,
        WEIGHTS["aweights"],
        expected=lambda x, w: np.cov(x, aweights=w),
        rtol=1e-10,
        atol=1e-13,
    )
    with pytest.raises(DTypeError, match="fweights must be integers"):
        T.cov(T.dmatrix(), fweights=T.dvector())
    with pytest.raises(ShapeError, match="aweights must be a real vector"):
        T.cov(T.dmatrix(), aweights=T.dmatrix())
    with pytest.raises(ShapeError, match="more than 2 axes"):
        T.cov(T.dtensor3())


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
