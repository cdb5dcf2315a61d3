"""Derivatives of the ops on arrays of matrices, also of ops that only occur in derivatives."""

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.autodiff.check import check_derivatives
from symcomp.sparse.convert import ScatterDense, TransposeCompressed
from symcomp.sparse.patterns import SortIndices
from symcomp.sparse.structure import PutRows
from symcomp.tests.sparse.harness import MODE, check, random_sparse

S = random_sparse(5, 4, 0.5, zero=False)
INDICES, POINTERS = (T.constant(v.astype("int32")) for v in (S.indices, S.indptr))
COLUMNS = T.constant(np.int64(4))
# Two rows, in no order and with two entries at one place.
MIXED = [T.constant(np.array(v, "int32")) for v in ([3, 0, 3, 1, 1], [0, 3, 5])]


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda d: ScatterDense()(d, INDICES, POINTERS, COLUMNS), S.data),
        (lambda d: TransposeCompressed()(d, INDICES, POINTERS, COLUMNS)[0], S.data),
        (lambda d: SortIndices()(d, *MIXED)[0], np.arange(1.0, 6)),
        (lambda d: SortIndices()(d, *MIXED)[0], np.arange(10.0).reshape(5, 2)),
    ],
)
def test_derivatives_of_ops_on_arrays(function, value):
    x = T.TensorType("float64", (None,) * value.ndim)("x")
    rng = np.random.default_rng(0)
    check_derivatives([x], function(x) ** 2, [value], rng)
    (g,) = symcomp.grad((function(x) ** 3).sum(), [x])
    check_derivatives([x], g, [value], rng)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_that_are_put(axis):
    ids = np.array([2, 0, 2, 3, 0])[: S.shape[axis]]
    wanted = np.zeros((6, 4) if axis == 0 else (5, 6))
    np.add.at(wanted, (ids,) if axis == 0 else (slice(None), ids), S.toarray())
    n = T.constant(np.int64(6))
    check(lambda s: PutRows(axis)(s, T.constant(ids.astype("int32")), n), S, expected=wanted)


def test_rows_taken_twice_have_gradients_of_both():
    """The compiled gradient puts rows of the arrays together."""
    x, ids = sparse.csr_matrix("x"), T.lvector("ids")
    weights = np.random.default_rng(1).normal(size=(4, 4))
    cost = (sparse.dense_from_sparse(x[ids]) * weights).sum()
    g = symcomp.function([x, ids], symcomp.grad(cost, x), mode=MODE)
    rows = [1, 4, 1, 0]
    wanted = np.zeros(S.shape)
    np.add.at(wanted, rows, weights * (S.toarray()[rows] != 0))
    np.testing.assert_allclose(g(S, rows).toarray(), wanted)


def test_derivative_without_zeros():
    """Where no entry is 0, the derivative is that of the identity; zeros that are dropped pass it
    on, as the function is the identity there, too.
    """
    check(sparse.remove0, S, expected=S.toarray(), order=1)
    x = sparse.csr_array("x")
    cost = sparse.sp_sum(sparse.sqr(sparse.remove0(x)) * 0.5 + sparse.remove0(x))
    g = symcomp.function([x], symcomp.grad(cost, x), mode=MODE)
    value = sp.csr_array((np.array([0.0, 2.0]), [0, 1], [0, 2]), shape=(1, 3))
    np.testing.assert_array_equal(g(value).toarray(), [[1, 3, 1]])
