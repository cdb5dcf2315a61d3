"""Sums of products that are not formed, and chains of matrices: against NumPy, with derivatives."""

import functools
import itertools

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.linalg import contraction
from symcomp.ops.linalg.contraction import MatrixChain, SumOfProducts, best_brackets, bracketed
from symcomp.tests.harness import check

RNG = np.random.default_rng(3)
DTYPES = ("float32", "float64", "complex64", "complex128")


def normal(*shape, dtype="float64"):
    sample = RNG.normal(size=shape)
    if dtype.startswith("complex"):
        sample = sample + 1j * RNG.normal(size=shape)
    return np.asarray(sample, dtype)


def tolerances(dtype):
    return {"rtol": 1e-4, "atol": 1e-5} if dtype in ("float32", "complex64") else {"rtol": 1e-11}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (1, 3), (0, 3), (3, 0)])
def test_sum_of_products(shape, dtype):
    x, y = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype)
    for r in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), r):
            check(
                SumOfProducts(axes), x, y,
                expected=np.asarray((x * y).sum(axis=axes)), grad=dtype in DTYPES[1::2],
                **tolerances(dtype),
            )  # fmt: skip


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_memory_orders_and_blocks(axes, monkeypatch):
    monkeypatch.setattr(contraction, "BLOCK", 4)
    monkeypatch.setattr(contraction, "PART", 16)
    x, y = normal(6, 7), normal(6, 7)
    wide = np.zeros((12, 14))
    wide[::2, ::2] = y
    orders = [y, np.asfortranarray(y), y[::-1, ::-1].copy()[::-1, ::-1], wide[::2, ::2]]
    for a, b in itertools.product([x, np.asfortranarray(x)], orders):
        got = SumOfProducts(axes).perform(a, b)
        np.testing.assert_allclose(got, (x * y).sum(axis=axes), rtol=1e-12)


def test_sums_keep_their_digits():
    x = np.full(10**6, 0.1, np.float32)
    exact = float(np.float32(0.1)) ** 2 * 10**6
    assert abs(float(SumOfProducts((0,)).perform(x, x)) / exact - 1) < 2e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity(bad):
    x, y = np.ones((2, 2)), np.zeros((2, 2))
    x[0, 1] = bad
    with np.errstate(all="ignore"):
        for axes in ((0,), (1,), (0, 1)):
            wanted = (x * y).sum(axis=axes)
            np.testing.assert_array_equal(SumOfProducts(axes).perform(x, y), wanted)


def test_what_does_not_fit():
    x, y, f = T.dmatrix("x"), T.dvector("y"), T.fmatrix("f")
    for other in (y, f):
        with pytest.raises(DTypeError, match="have not one rank and dtype"):
            SumOfProducts((0,))(x, other)
    with pytest.raises(ShapeError, match="differ"):
        SumOfProducts((0,))(x, x.T).eval({x: np.ones((2, 3))})
    with pytest.raises(ShapeError, match="are not all matrices"):
        MatrixChain(((0, 1), 2))(x, y, x)
    with pytest.raises(DTypeError, match="differ"):
        MatrixChain((0, 1))(x, f)
    with pytest.raises(ShapeError, match="inner lengths must be equal"):
        MatrixChain(((0, 1), 2))(x, x, x).eval({x: np.ones((2, 3))})


def trees(i, j):
    """Yield all ways to bracket the factors i .. j."""
    if i == j:
        return [i]
    pairs = ((trees(i, k), trees(k + 1, j)) for k in range(i, j))
    return [(a, b) for left, right in pairs for a in left for b in right]


def cost(brackets, lengths):
    if isinstance(brackets, int):
        return 0, brackets, brackets
    (m, i, k), (n, _, j) = (cost(b, lengths) for b in brackets)
    return m + n + lengths[i] * lengths[k + 1] * lengths[j + 1], i, j


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_best_brackets_of_all(n):
    for _ in range(20):
        lengths = RNG.integers(1, 9, n + 1).tolist()
        found = cost(best_brackets(tuple(lengths)), lengths)[0]
        assert found == min(cost(tree, lengths)[0] for tree in trees(0, n - 1))


@pytest.mark.parametrize("ends", list(itertools.product((True, False), repeat=2)))
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_chains(dtype, ends):
    shapes = [(2, 3), (3, 4), (4, 1), (1, 5)]
    shapes[0] = shapes[0] if ends[0] else (3,)
    shapes[-1] = shapes[-1] if ends[1] else (1,)
    factors = [normal(*shape, dtype=dtype) for shape in shapes]
    for tree in (((0, 1), (2, 3)), (0, ((1, 2), 3)), (((0, 1), 2), 3)):
        check(
            MatrixChain(tree), *factors,
            expected=np.asarray(functools.reduce(np.dot, factors)), grad=dtype != "float32",
            static="none", **tolerances(dtype),
        )  # fmt: skip


@pytest.mark.parametrize("tree", [((0, 1), 2), (0, (1, 2))])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_empty_chains_are_done_as_written(tree, place):
    for n in ([0, 2, 2, 2], [2, 0, 2, 2], [2, 2, 0, 2], [2, 2, 2, 0]):
        factors = [np.ones((n[i], n[i + 1])) for i in range(3)]
        factors[place] = factors[place] * np.nan
        wanted = bracketed(np.dot, tree, factors)
        np.testing.assert_array_equal(MatrixChain(tree).perform(*factors), wanted)
