"""Sums, means and extremes over axes and segments, softmax over stored entries."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import DTypeError, ShapeError, SparsePatternError
from symcomp.tests.sparse.harness import MODE, assert_same_pattern, check, random_sparse

S = random_sparse(5, 4, 0.5, seed=1, zero=False)
X = S.toarray()
IDS = np.array([2, 0, 2, 4, 0])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sums_and_means(axis):
    check(lambda s: sparse.sp_sum(s, axis), S, expected=X.sum(axis))
    check(lambda s: s.sum(axis, sparse_grad=True), S, expected=X.sum(axis), known=True, order=1)
    check(lambda s: s.mean(axis), S, expected=X.mean(axis), order=1)


def test_sums_of_integers_and_formats():
    s = random_sparse(5, 4, dtype="int8")
    check(lambda s: s.sum(), s, expected=s.toarray().sum(dtype="int64"), formats=["csr", "coo"])
    check(lambda s: s.sum(0), s, expected=s.toarray().sum(0, dtype="int64"))


def test_gradient_of_a_sum_is_structured_or_not():
    x = sparse.csr_matrix("x")
    f = symcomp.function(
        [x],
        [symcomp.grad(sparse.sp_sum(x, sparse_grad=flag), x) for flag in (True, False)],
        mode=MODE,
    )
    structured, regular = f(S)
    assert_same_pattern(structured, S)
    np.testing.assert_array_equal(structured.data, 1)
    np.testing.assert_array_equal(regular.toarray(), np.ones(S.shape))


def test_regular_gradients_go_through_linear_functions():
    """Missing entries have a gradient, too, where functions of the whole matrix are summed."""
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    d = np.random.default_rng(0).normal(size=(5, 4))
    weights = T.constant(d)
    for out, wanted in (
        (sparse.dense_from_sparse(-x, structured=False), -d),
        (sparse.dense_from_sparse(x.T, structured=False).T, d),
        (sparse.dense_from_sparse(x + y, structured=False), d),
        (sparse.dense_from_sparse(sparse.mul(x, 2 * d), structured=False), 2 * d * d),
        (sparse.dense_from_sparse(sparse.vstack([x, x])[5:], structured=False), d),
        (sparse.dense_from_sparse(x.tocsc().astype("float64"), structured=False), d),
    ):
        g = symcomp.grad((out * weights).sum(), x)
        found = symcomp.function([x, y], g, mode=MODE, on_unused_input="ignore")(S, S)
        np.testing.assert_allclose(found.toarray(), wanted)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes(axis):
    check(lambda s: sparse.max(s, axis), S, expected=X.max(axis))
    check(lambda s: s.min(axis), -S, expected=-X.max(axis), order=1)
    full = np.random.default_rng(2).random((3, 3)) + 0.5
    check(lambda d: sparse.csr_from_dense(d).min(axis), full, expected=full.min(axis), order=1)


def test_softmax_over_stored_entries():
    mask = np.zeros_like(X)
    mask[S.tocoo().coords] = 1
    with np.errstate(all="ignore"):
        powers = np.exp(X) * mask
        wanted = np.nan_to_num(powers / powers.sum(1, keepdims=True))
    check(sparse.structured_softmax, S, expected=wanted)
    check(lambda d: sparse.masked_softmax(d, S), X + mask * 0, expected=wanted, order=1)
    large = S * 1e4
    f = symcomp.function([x := sparse.csr_matrix("x")], sparse.structured_softmax(x), mode=MODE)
    assert np.isfinite(f(large).data).all()


# -- segments


def test_segment_sums():
    v, m = X[:, 0], X
    check(lambda v: sparse.segment_sum(v, IDS), v, expected=np.bincount(IDS, v))
    wanted = np.zeros((6, 4))
    np.add.at(wanted, IDS, m)
    check(lambda m: sparse.segment_sum(m, IDS, 6), m, expected=wanted)
    counts = np.maximum(np.bincount(IDS, minlength=6), 1)[:, None]
    check(lambda m: sparse.segment_mean(m, IDS, 6), m, expected=wanted / counts, order=1)


def test_segment_extremes():
    dense = np.random.default_rng(5).normal(size=(5, 3))
    wanted = np.zeros((5, 3))
    for k in set(IDS):
        wanted[k] = dense[IDS == k].max(0)
    check(lambda m: sparse.segment_max(m, IDS), dense, expected=wanted)
    check(lambda m: sparse.segment_min(m, IDS, 5), -dense, expected=-wanted, order=1)


def test_ties_share_the_gradient():
    v = T.dvector("v")
    g = symcomp.grad(sparse.segment_max(v, np.array([0, 0, 1])).sum(), v)
    np.testing.assert_array_equal(g.eval({v: [2.0, 2.0, 1.0]}), [0.5, 0.5, 1.0])


def test_segments_that_do_not_exist():
    v, ids = T.dvector("v"), T.ivector("ids")
    f = symcomp.function([v, ids], sparse.segment_sum(v, ids, 3), mode=MODE)
    with pytest.raises(SparsePatternError, match="segment_sum: index 3 at position 1"):
        f(np.ones(2), np.array([0, 3], "int32"))
    with pytest.raises(ShapeError, match="data has 2 rows, segment_ids 3 elements"):
        sparse.segment_sum(np.ones(2), [0, 1, 2])
    with pytest.raises(DTypeError, match="has no order"):
        sparse.segment_max(T.zvector("z"), [0])
