"""Ops that call BLAS: against NumPy, in every memory order, with derivatives."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.walk import graph_inputs
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.blas_routines import DTYPES
from symcomp.tests.harness import check

RNG = np.random.default_rng(7)
FLAGS = [(False, False), (True, False), (False, True), (True, True)]


def normal(*shape, dtype="float64"):
    sample = RNG.normal(size=shape)
    if dtype.startswith("complex"):
        sample = sample + 1j * RNG.normal(size=shape)
    return np.asarray(sample, dtype)


def turned(x, flag):
    return np.ascontiguousarray(x.swapaxes(-1, -2)) if flag else x


def layouts(x):
    """Yield the same values in C order, Fortran order, reversed, and with gaps."""
    gaps = np.zeros(tuple(2 * n for n in x.shape), x.dtype)[
        tuple(slice(0, None, 2) for _ in x.shape)
    ]
    gaps[...] = x
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)[..., : x.shape[-1]]
    wide[...] = x
    back = np.ascontiguousarray(x[::-1])[::-1]
    return [x.copy(), x.copy(order="F"), back, gaps, wide]


TOLERANCE = {"float32": 3e-5, "complex64": 3e-5}


def tolerances(dtype):
    return {"rtol": TOLERANCE.get(dtype, 1e-11), "atol": TOLERANCE.get(dtype, 1e-12)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("trans_a", "trans_b"), FLAGS)
def test_gemm(dtype, trans_a, trans_b):
    c, a, b = normal(2, 4, dtype=dtype), normal(2, 3, dtype=dtype), normal(3, 4, dtype=dtype)
    alpha, beta = normal(dtype=dtype), normal(dtype=dtype)
    check(
        Gemm(trans_a=trans_a, trans_b=trans_b),
        c, alpha, turned(a, trans_a), turned(b, trans_b), beta,
        expected=beta * c + alpha * (a @ b),
        **tolerances(dtype),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("trans_a", "trans_b"), FLAGS)
def test_scaled_dot(dtype, trans_a, trans_b):
    a, b, alpha = normal(2, 3, dtype=dtype), normal(3, 4, dtype=dtype), normal(dtype=dtype)
    check(
        ScaledDot(trans_a, trans_b),
        alpha, turned(a, trans_a), turned(b, trans_b),
        expected=alpha * (a @ b),
        **tolerances(dtype),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_a", [False, True])
def test_gemv(dtype, trans_a):
    y, a, x = normal(4, dtype=dtype), normal(4, 3, dtype=dtype), normal(3, dtype=dtype)
    alpha, beta = normal(dtype=dtype), normal(dtype=dtype)
    wanted = beta * y + alpha * (a @ x)
    op = Gemv(trans_a=trans_a)
    check(op, y, alpha, turned(a, trans_a), x, beta, expected=wanted, **tolerances(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ger(dtype):
    c, x, y = normal(3, 4, dtype=dtype), normal(3, dtype=dtype), normal(4, dtype=dtype)
    alpha = normal(dtype=dtype)
    check(Ger(), c, alpha, x, y, expected=c + alpha * np.outer(x, y), **tolerances(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("trans_a", "trans_b"), FLAGS)
def test_batched_gemm(dtype, trans_a, trans_b):
    c, a, b = (normal(2, *s, dtype=dtype) for s in ((3, 2), (3, 4), (4, 2)))
    alpha, beta = normal(dtype=dtype), normal(dtype=dtype)
    check(
        BatchedGemm(trans_a=trans_a, trans_b=trans_b),
        c, alpha, turned(a, trans_a), turned(b, trans_b), beta,
        expected=beta * c + alpha * (a @ b),
        **tolerances(dtype),
    )  # fmt: skip


@pytest.mark.parametrize(
    "lengths", [(0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1), (1, 0, 1), (5, 1, 1)]
)
def test_empty_and_single(lengths):
    n, k, m = lengths
    c, a, b = normal(n, m), normal(n, k), normal(k, m)
    check(Gemm(), c, 2.0, a, b, -0.5, expected=-0.5 * c + 2.0 * (a @ b), rtol=1e-12, atol=1e-14)
    check(ScaledDot(), 2.0, a, b, expected=2.0 * (a @ b), atol=1e-14)
    y, x = normal(n), np.ones(k)
    check(Gemv(), y, 2.0, a, x, -0.5, expected=-0.5 * y + 2.0 * (a @ x), atol=1e-14)
    check(Ger(), c, 2.0, a.sum(axis=1), b.sum(axis=0),
          expected=c + 2.0 * np.outer(a.sum(axis=1), b.sum(axis=0)), atol=1e-14)  # fmt: skip
    stack = [np.stack([v, 2 * v]) for v in (c, a, b)]
    check(BatchedGemm(), stack[0], 2.0, *stack[1:], -0.5,
          expected=-0.5 * stack[0] + 2.0 * (stack[1] @ stack[2]), atol=1e-14)  # fmt: skip


@pytest.mark.parametrize("inplace", [False, True])
def test_every_memory_order(inplace):
    c, a, b, x, y = normal(4, 5), normal(4, 3), normal(3, 5), normal(3), normal(4)
    op = Gemm(inplace=inplace)
    for left in layouts(a):
        for right in layouts(b):
            for start in layouts(c):
                before = start.copy()
                z = op.perform(start, np.array(0.5), left, right, np.array(2.0))
                np.testing.assert_allclose(z, 2 * before + 0.5 * a @ b, rtol=1e-12, atol=1e-13)
                assert (z is start) == inplace
                assert inplace or np.array_equal(start, before)
        for vector in (x, x[::-1].copy()[::-1], np.repeat(x, 2)[::2]):
            for start in (y.copy(), np.repeat(y, 2)[::2]):
                z = Gemv(inplace=inplace).perform(start, np.array(0.5), left, vector, np.array(2.0))
                np.testing.assert_allclose(z, 2 * y + 0.5 * a @ x, rtol=1e-12, atol=1e-13)
                assert (z is start) == inplace
    for start in layouts(c):
        z = Ger(inplace=inplace).perform(start, np.array(0.5), y, b[0])
        np.testing.assert_allclose(z, c + 0.5 * np.outer(y, b[0]), rtol=1e-12, atol=1e-13)
        assert (z is start) == inplace
    for left, right in zip(layouts(normal(2, 4, 3)), layouts(normal(2, 3, 5)), strict=True):
        for start in layouts(normal(2, 4, 5)):
            wanted = 2 * start + 0.5 * left @ right
            z = BatchedGemm(inplace).perform(start, np.array(0.5), left, right, np.array(2.0))
            np.testing.assert_allclose(z, wanted, rtol=1e-12, atol=1e-13)
            assert (z is start) == inplace


def test_in_place_on_what_is_also_read():
    c = normal(3, 3)
    wanted = c - 0.5 * c.T @ c
    z = Gemm(True, True).perform(c, np.array(-0.5), c, c, np.array(1.0))
    np.testing.assert_allclose(z, wanted, rtol=1e-13)
    assert z is c
    y = normal(3)
    wanted = y + c @ y
    np.testing.assert_allclose(
        Gemv(True).perform(y, np.array(1.0), c, y, np.array(1.0)), wanted, rtol=1e-13
    )


@pytest.mark.parametrize("n", [2, 40])
def test_zero_beta_does_not_read(n):
    nothing, a = np.full((n, n), np.nan), np.ones((n, n))
    zero, one = np.array(0.0), np.array(1.0)
    for inplace in (False, True):
        start = nothing.copy()
        np.testing.assert_array_equal(Gemm(inplace).perform(start, one, a, a, zero), a @ a)
        np.testing.assert_array_equal(
            Gemv(inplace).perform(start[0].copy(), one, a, a[0], zero), a @ a[0]
        )
        stack = np.stack([nothing, nothing])
        many = np.stack([a, a])
        z = BatchedGemm(inplace).perform(stack, one, many, many, zero)
        np.testing.assert_array_equal(z, many @ many)
    assert np.isnan(Gemm().perform(nothing, one, a, a, one)).all()


@np.errstate(invalid="ignore")
@pytest.mark.parametrize("n", [2, 3, 40, 200])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_hides_nan(n, bad):
    """0 times NaN or infinity is NaN in every operand, also where alpha is 0."""
    a, zeros, start = np.ones((n, n)), np.zeros((n, n)), np.ones((n, n))
    a[1, 0] = bad
    one = np.array(1.0)
    for alpha in (one, np.array(0.0)):
        assert np.isnan(Gemm().perform(start, alpha, a, zeros, one)[1]).all()
        assert np.isnan(Gemm().perform(start, alpha, zeros, a, one)[:, 0]).all()
        assert np.isnan(ScaledDot().perform(alpha, a, zeros)[1]).all()
        assert np.isnan(Gemv().perform(start[0], alpha, a, zeros[0], one)[1])
        assert np.isnan(Gemv(trans_a=True).perform(start[0], alpha, a, zeros[0], one)[0])
        assert np.isnan(Ger().perform(start, alpha, a[:, 0], zeros[0])[1]).all()
        assert np.isnan(Ger().perform(start, alpha, zeros[0], a[:, 0])[:, 1]).all()
        stack = BatchedGemm().perform(start[None], alpha, a[None], zeros[None], one)
        assert np.isnan(stack[0, 1]).all()
    assert np.isfinite(Gemm().perform(start, one, zeros, zeros, one)).all()


def test_in_place_through_a_function():
    c, a = T.dmatrices("c", "a")
    start = c + 1.0
    z = Gemm(inplace=True)(start, 2.0, a, a, 1.0)
    f = symcomp.function([c, a], z, accept_inplace=True)
    given = normal(3, 3), normal(3, 3)
    kept = given[0].copy()
    for _ in range(2):
        np.testing.assert_allclose(f(*given), kept + 1 + 2 * given[1] @ given[1], rtol=1e-12)
    np.testing.assert_array_equal(given[0], kept)
    outputs = [Gemm(inplace=True)(c, 2.0, a, a, 1.0), c.sum()]
    direct = symcomp.function([c, a], outputs, accept_inplace=True)
    np.testing.assert_allclose(direct(*given)[1], kept.sum())
    np.testing.assert_array_equal(given[0], kept)


def test_errors_name_the_shapes():
    m, v, s = T.dmatrix("m"), T.dvector("v"), T.dscalar("s")
    known = T.tensor("k", dtype="float64", shape=(2, 3))
    with pytest.raises(ShapeError, match=r"Gemm: the shapes do not fit: c \(2, 3\), a \(2, 3\)"):
        Gemm()(known, 1.0, known, known, 1.0)
    with pytest.raises(ShapeError, match=r"Gemm: a \(float64 vector\) must have 2 axes"):
        Gemm()(m, 1.0, v, m, 1.0)
    with pytest.raises(ShapeError, match="Ger: alpha .float64 vector. must have 0 axes"):
        Ger()(m, v, v, v)
    with pytest.raises(DTypeError, match="Gemv: y is int64, y is int64"):
        Gemv()(T.lvector("y"), 1, T.lmatrix("a"), T.lvector("x"), 1)
    with pytest.raises(DTypeError, match="ScaledDot: a is float32, alpha is float64"):
        ScaledDot()(s, T.fmatrix("a"), T.fmatrix("b"))
    with pytest.raises(TypeError, match="Gemm: takes c, alpha, a, b, beta, got 2 arguments"):
        Gemm()(m, m)
    x, y = np.ones((2, 3)), np.ones((4, 5))
    calls = [
        (Gemm()(m, s, m + 0, T.dmatrix("b"), s), r"c \(2, 3\), a \(2, 3\), b \(2, 3\)"),
        (ScaledDot()(s, m, m), r"a \(2, 3\), b \(2, 3\)"),
        (Gemv()(v, s, m, v, s), r"y \(4,\), a \(2, 3\), x \(4,\)"),
        (Ger()(m, s, v, v), r"c \(2, 3\), x \(4,\), y \(4,\)"),
    ]
    for out, said in calls:
        leaves = [leaf for leaf in graph_inputs([out]) if not isinstance(leaf, symcomp.Constant)]
        values = {leaf: (np.array(1.0), y[:, 0], x)[leaf.ndim] for leaf in leaves}
        with pytest.raises(ShapeError, match=said):
            evaluate([out], values)
    stack = np.ones((2, 3, 3))
    with pytest.raises(ShapeError, match=r"BatchedGemm: .* c \(2, 3, 3\), a \(1, 3, 3\)"):
        BatchedGemm().perform(stack, 1.0, stack[:1], stack, 1.0)


def test_printing():
    assert str(Gemm()) == "Gemm" and str(Gemm(trans_b=True)) == "Gemm{trans_b}"
    assert Gemm() == Gemm() and hash(Gemm()) == hash(Gemm()) and Gemm() != BatchedGemm()
