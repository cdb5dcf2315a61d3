"""Transposes, joins, parts, diagonals, formats: linear functions of matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import AxisError, DTypeError, ShapeError, SparsePatternError
from symcomp.tests.sparse.harness import MODE, check
from symcomp.tests.sparse.harness import random_sparse as rand

S = rand(6, 5, seed=1)
X = S.toarray()
ALL = ("csr", "csc", "coo")


def test_transposes_and_signs():
    check(sparse.transpose, S, expected=np.transpose, formats=ALL)
    check(sparse.neg, S, expected=np.negative, formats=ALL)
    check(lambda s: -s.T, S, expected=-X.T)
    assert sparse.csr_matrix("x").T.type.format == "csc"


def test_formats():
    for format in ALL:
        check(lambda s, f=format: sparse.asformat(s, f), S, expected=X, formats=ALL)
    check(sparse.dense_from_sparse, S, expected=X, formats=ALL)
    check(lambda s: sparse.dense_from_sparse(s, structured=False), S, expected=X)


def test_blocks():
    b = sp.random_array((6, 4), density=0.4, rng=1)
    dense = b.toarray()
    blocks = b.tobsr(blocksize=(2, 2))
    check(lambda s: sparse.tobsr(s, (3, 2)), b.tocsr(), expected=dense)
    check(lambda s: s.tocsr() * 2.0, blocks, expected=2 * dense, formats=["bsr"])
    check(sparse.sqr, blocks, expected=dense**2, formats=["bsr"])
    check(lambda s: s.T.toarray(), blocks, expected=dense.T, formats=["bsr"], order=1)
    f = symcomp.function([x := sparse.csr_matrix("x")], sparse.tobsr(x, (4, 2)), mode=MODE)
    with pytest.raises(ShapeError, match="6 rows are no multiple of the 4 rows of a block"):
        f(b)
    with pytest.raises(ShapeError, match="must be at least 1"):
        sparse.tobsr(x, (0, 1))


def test_casts():
    check(lambda s: sparse.cast(s, "float32"), S, expected=X.astype("float32"), order=1)
    check(sparse.zcast, S, expected=X.astype("complex128"), order=1)
    check(sparse.icast, S, expected=X.astype("int32"))
    g = symcomp.grad(sparse.sp_sum(sparse.icast(sparse.csr_matrix("x")) * 1.0), [], None)
    assert g == []


def test_sparse_from_dense():
    check(sparse.csr_from_dense, X, expected=X, grad=False)
    check(sparse.csc_from_dense, X, expected=X, grad=False)
    # Elements that are 0 have no gradient: whether they are stored depends on them.
    full = X + 10
    check(sparse.csr_from_dense, full, expected=full)
    check(sparse.csc_from_dense, full, expected=full, order=1)
    with pytest.raises(ShapeError, match="is no matrix"):
        sparse.csr_from_dense(T.dvector("v"))


def test_removing_zeros():
    s = S.copy()
    s.data[::3] = 0
    check(sparse.remove0, s, expected=s.toarray(), grad=False)
    check(sparse.clean, s, expected=s.toarray(), grad=False)
    f = symcomp.function([x := sparse.csr_matrix("x")], sparse.remove0(x), mode=MODE)
    assert f(s).nnz == np.count_nonzero(s.toarray())
    assert sparse.ensure_sorted_indices(x) is x


def test_joins():
    a, b = rand(3, 5, seed=2), rand(2, 5, seed=3)
    check(lambda a, b: sparse.vstack([a, b]), a, b, expected=lambda a, b: np.vstack([a, b]))
    check(
        lambda a, b: sparse.hstack([a, b], "csr"), a.T, b.T,
        expected=lambda a, b: np.hstack([a, b]),
    )  # fmt: skip
    check(
        lambda a, b: sparse.vstack([a, b, a], "csc"), a, b,
        expected=lambda a, b: np.vstack([a, b, a]), known=True, order=1,
    )  # fmt: skip
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    for join in (sparse.vstack, sparse.hstack):
        f = symcomp.function([x, y], join([x, y]), mode=MODE)
        with pytest.raises(ShapeError, match="lengths .* where they must agree"):
            f(a, sp.csr_array((2, 4)) if join is sparse.vstack else b)
        with pytest.raises(ShapeError, match="nothing to join"):
            join([])


def test_block_diagonal_and_kronecker():
    a, b = rand(2, 3, seed=2), rand(3, 2, 0.6, seed=3)
    check(
        lambda a, b: sparse.block_diag(a, b), a, b,
        expected=sp.block_diag([a, b]).toarray(), order=1,
    )  # fmt: skip
    check(sparse.kron, a, b, expected=np.kron)
    check(lambda a, b: sparse.kron(a, b, "csc"), a, b, expected=np.kron, known=True, order=1)


def test_diagonals_and_triangles():
    check(sparse.diag, S, expected=np.diagonal)
    check(sparse.diag, S[:3, :3], expected=np.diagonal, known=True, order=1)
    check(sparse.square_diagonal, X[0], expected=np.diag)
    check(sparse.tril, S, expected=np.tril, order=1)
    check(lambda s: sparse.triu(s, 1), S, expected=lambda x: np.triu(x, 1), order=1)


def test_matrices_of_lengths():
    n = T.lscalar("n")
    f = symcomp.function([n], sparse.eye(n, 4, k=1), mode=MODE)
    np.testing.assert_array_equal(f(3).toarray(), np.eye(3, 4, k=1))
    v = np.arange(1.0, 4)
    check(
        lambda v: sparse.diags([v, v * 2], [0, -1], (4, 3)), v,
        expected=sp.diags_array([v, v * 2], offsets=[0, -1], shape=(4, 3)).toarray(),
    )  # fmt: skip
    with pytest.raises(ShapeError, match="1 diagonals for 2 offsets"):
        sparse.diags([v], [0, 1])


def test_arrays_of_a_matrix():
    d = S.data
    csr = lambda d: sparse.CSR(d, S.indices, S.indptr, S.shape)  # noqa: E731
    check(csr, d, expected=X)
    t = S.tocsc()
    check(lambda d: sparse.CSC(d, t.indices, t.indptr, T.constant(S.shape)), t.data, expected=X)
    check(sparse.csm_data, S, expected=S.data, formats=["csr"])
    x = sparse.csr_matrix("x")
    arrays = symcomp.function([x], list(sparse.csm_properties(x)), mode=MODE)(S)
    for found, wanted in zip(arrays, (S.data, S.indices, S.indptr, S.shape), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert sparse.csm_indices(x).dtype == "int32" and sparse.csm_indptr(x).ndim == 1


def test_arrays_in_any_order():
    """Unsorted indices and duplicates are added up, and their gradients are those of the sums."""
    indices, indptr = np.array([3, 0, 3, 1, 1]), np.array([0, 3, 3, 5])
    wanted = sp.csr_array((np.arange(5.0), indices, indptr), shape=(3, 4)).toarray()
    check(lambda d: sparse.CSR(d, indices, indptr, (3, 4)), np.arange(5.0), expected=wanted)
    rows, columns = [2, 0, 2, 1], [1, 1, 1, 0]
    wanted = sp.coo_array((np.arange(4.0), (rows, columns)), shape=(3, 2)).toarray()
    for format in ("csr", "csc"):
        check(
            lambda d, f=format: sparse.from_triplets(d, rows, columns, (3, 2), f), np.arange(4.0),
            expected=wanted,
        )  # fmt: skip


def test_arrays_that_are_no_matrix():
    d, i, p = T.dvector("d"), T.ivector("i"), T.ivector("p")
    f = symcomp.function([d, i, p], sparse.CSR(d, i, p, (2, 3)), mode=MODE)
    ones = np.ones(2)
    for indices, indptr, words in (
        ([0, 3], [0, 1, 2], "index 3 at position 1 is not between 0 and 2"),
        ([0, -1], [0, 1, 2], "index -1 at position 1"),
        ([0, 1], [0, 2, 1], "decreases from 2 at position 1 to 1"),
        ([0, 1], [1, 1, 2], "starts with 1"),
        ([0, 1], [0, 2], "has 2 elements; 2 rows .* need 3"),
        ([0, 1], [0, 1, 9], "ends with 9, but there are 2 indices"),
    ):
        with pytest.raises(SparsePatternError, match=words):
            f(ones, np.array(indices, "int32"), np.array(indptr, "int32"))
    with pytest.raises(ShapeError, match="3 entries of data for 2 indices"):
        f(np.ones(3), np.array([0, 1], "int32"), np.array([0, 1, 2], "int32"))
    with pytest.raises(DTypeError, match="vector of integers is needed"):
        sparse.CSR(d, d, p, (2, 3))
    with pytest.raises(ShapeError, match="a matrix has 2"):
        sparse.CSR(d, i, p, (2, 3, 4))
    with pytest.raises(SparsePatternError, match="index 5"):
        sparse.from_triplets(np.ones(1), [5], [0], (2, 2)).eval()


def test_entries_of_another_matrix():
    x = sparse.csr_matrix("x")
    data, indices, indptr, shape = sparse.csm_properties(x)
    z = sparse.CSR(data * 2, indices, indptr, shape)
    f = symcomp.function([x], z, mode=MODE)
    assert "Canonical" not in str(f.program)
    np.testing.assert_array_equal(f(S).toarray(), 2 * X)
    ones = symcomp.function([x], [sparse.sp_ones_like(x), sparse.sp_zeros_like(x)], mode=MODE)
    a, b = ones(S)
    assert a.nnz == S.nnz and (a.data == 1).all() and b.nnz == 0 and b.shape == S.shape


def test_rows_from_a_list():
    values, ids = np.arange(1.0, 7).reshape(3, 2), [2, 0, 2]
    wanted = np.zeros((4, 2))
    np.add.at(wanted, ids, values)
    check(
        lambda x, v: sparse.construct_sparse_from_list(x, v, np.array(ids)), np.zeros((4, 2)),
        values, expected=wanted,
    )  # fmt: skip


# -- parts


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1:4], np.s_[1:4, 2:], np.s_[:, :3], np.s_[::-1, 1:5:2], np.s_[-2:, -3:-1], np.s_[4:2],
        np.s_[[3, 0, 3]], np.s_[:, [4, 4]], np.s_[1:3, [-1, 0]],
    ],
    ids=str,
)  # fmt: skip
def test_parts(key):
    check(lambda s: s[key], S, expected=X[key], order=1)


def test_parts_at_symbols():
    i, j = T.lscalar("i"), T.lscalar("j")
    x = sparse.csr_matrix("x")
    f = symcomp.function([x, i, j], [x[i:j], x[:, i:j], x[i], x[i:j:2, ::-1]], mode=MODE)
    for a, b in ((0, 3), (-4, -1), (2, 100), (3, 1)):
        for found, wanted in zip(
            f(S, a, b), (X[a:b], X[:, a:b], X[a : a + 1 or None], X[a:b:2, ::-1]), strict=True
        ):
            np.testing.assert_array_equal(found.toarray(), wanted)


def test_elements():
    check(lambda s: s[1, 2], S, expected=X[1, 2])
    check(lambda s: s[-1, -2], S, expected=X[-1, -2], order=1)
    check(lambda s: s[[0, 1, 0], [2, 2, 2]], S, expected=X[[0, 1, 0], [2, 2, 2]])
    check(lambda s: s[1, [0, 3]], S, expected=X[1, [0, 3]], order=1)
    check(lambda s: s[[0, 3], -1], S, expected=X[[0, 3], -1], order=1)
    check(lambda s: s[2], S, expected=X[2:3], order=1)
    check(lambda s: s[X[:, 0] != 0], S, expected=X[X[:, 0] != 0], order=1)
    check(lambda s: sparse.get_item_2lists(s, [1], [2]), S, expected=X[[1], [2]], order=1)
    check(lambda s: sparse.get_item_list(s, [1]), S, expected=X[[1]], order=1)


def test_indices_that_do_not_exist():
    x = sparse.csr_matrix("x")
    i = T.lscalar("i")
    f = symcomp.function([x, i], [x[i, 0], x[i]], mode=MODE)
    with pytest.raises(SparsePatternError, match="positions.*index 6"):
        f(S, 6)
    with pytest.raises(IndexError, match="index 9 is not on axis 1"):
        sparse.csr_matrix("y", shape=(3, 4))[0, 9]
    with pytest.raises(AxisError, match="3 indices"):
        x[0, 0, 0]
    with pytest.raises(DTypeError, match="is no index of a sparse matrix"):
        x["a"]
    with pytest.raises(ValueError, match="step of a slice is 0"):
        x[::0]
