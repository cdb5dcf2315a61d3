"""Sums, products and comparisons of sparse matrices, and functions of their entries."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.sparse.harness import check, random_sparse

A, B = random_sparse(4, 5, seed=1), random_sparse(4, 5, seed=2)
D = np.random.default_rng(3).normal(size=(4, 5))
ROW, COLUMN = D[:1], D[:, :1]


def test_sums_of_two():
    check(sparse.add, A, B, expected=np.add)
    check(sparse.sub, A, B, expected=np.subtract)
    check(lambda x, d: x + d, A, D, expected=np.add)
    check(lambda x, d: d - x, A, D, expected=lambda x, d: d - x, order=1)


def test_products_of_two():
    check(sparse.mul, A, B, expected=np.multiply)
    check(sparse.mul, A, D, expected=np.multiply)


@pytest.mark.parametrize(
    "d", [ROW, COLUMN, ROW[0], np.float64(2.5)], ids="row column vector scalar".split()
)
def test_products_with_what_is_stretched(d):
    check(sparse.mul, A, d, expected=np.multiply)
    check(lambda x, d: d * x, A, d, expected=np.multiply, order=1)
    check(sparse.div, A, d, expected=lambda x, d: np.where(A.toarray() == 0, 0, x / d), order=1)


def test_scales_and_sums_at_entries():
    stored = sparse_ones(A)
    check(sparse.col_scale, A, ROW[0], expected=lambda x, s: x * s)
    check(sparse.row_scale, A, D[:, 0], expected=lambda x, s: x * s[:, None])
    check(sparse.structured_add_s_v, A, ROW[0], expected=lambda x, v: (x + v) * stored)
    check(sparse.add_s_s_data, A, A, expected=lambda x, y: x + y)


def sparse_ones(x):
    """Return 1 where an entry is stored, and 0 elsewhere."""
    ones = x.copy()
    ones.data[:] = 1
    return ones.toarray()


def test_extremes_of_two():
    a, b = (random_sparse(4, 5, seed=seed, zero=False) for seed in (1, 2))
    check(sparse.maximum, a, b, expected=np.maximum)
    check(sparse.minimum, a, b, expected=np.minimum)


@pytest.mark.parametrize("name", ["eq", "neq", "lt", "gt", "le", "ge"])
def test_comparisons(name):
    ufunc = {"eq": np.equal, "neq": np.not_equal, "lt": np.less, "gt": np.greater,
             "le": np.less_equal, "ge": np.greater_equal}[name]  # fmt: skip
    check(getattr(sparse, name), A, B, expected=ufunc)
    check(getattr(sparse, name), A, D, expected=ufunc)
    check(getattr(sparse, name), A, A, expected=ufunc)


def test_dense_operand_must_fit():
    x = sparse.csr_matrix("x", shape=(4, 5))
    with pytest.raises(ShapeError, match="differ on axis 1"):
        sparse.mul(x, T.constant(np.ones((4, 3))))
    y = sparse.csr_matrix("y", shape=(4, 6))
    with pytest.raises(ShapeError, match="sparse matrices do not broadcast"):
        sparse.add(x, y)
    with pytest.raises(DTypeError, match="is sparse: where it stores nothing"):
        x / y
