"""Types, constants and shared variables of sparse matrices; what goes in, and what comes out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError, GradientError, ShapeError, SparsePatternError
from symcomp.ifelse import ifelse
from symcomp.sparse import SparseType
from symcomp.tests.sparse.harness import MODE, random_sparse

S = random_sparse(4, 5)
X = S.toarray()


def compiled(inputs, outputs, **options):
    return symcomp.function(inputs, outputs, mode=MODE, **options)


def test_types_compare_and_print():
    kind = SparseType("csr", "float64")
    assert kind == sparse.csr_matrix("x").type and hash(kind) == hash(SparseType("csr", "d"))
    assert kind != SparseType("csc", "float64") and kind.is_super(kind.clone(shape=(3, None)))
    assert not kind.clone(shape=(3, None)).is_super(kind) and kind.ndim == 2
    assert str(kind) == "float64 csr matrix"
    assert str(kind.clone(shape=(None, 3))) == "float64 csr matrix (?, 3)"
    assert "int64" in repr(SparseType("csc", "f", index_dtype="int64"))
    for wrong in ({"format": "lil"}, {"index_dtype": "int8"}, {"container": "list"}):
        with pytest.raises(ValueError, match="must be one of"):
            SparseType(**({"format": "csr", "dtype": "float64"} | wrong))
    with pytest.raises(DTypeError, match="do not exist in SciPy: use float32"):
        SparseType("csr", "float16")
    with pytest.raises(ShapeError, match="3 axes, not 2"):
        SparseType("csr", "float64", (1, 2, 3))
    assert pickle.loads(pickle.dumps(kind)) == kind


def test_constructors():
    for format in ("csr", "csc", "bsr", "coo"):
        x = getattr(sparse, f"{format}_matrix")("x", dtype="float32")
        assert (x.format, x.dtype, x.name, x.ndim) == (format, "float32", "x", 2)
        assert getattr(sparse, f"{format}_array")("x").type.container == "array"
    assert sparse.csr_fmatrix("x").dtype == "float32" and sparse.csc_dmatrix().format == "csc"
    with symcomp.config.change_flags(floatX="float32"):
        assert sparse.csr_matrix().dtype == "float32"
    with pytest.raises(ValueError, match="format='dok'"):
        sparse.matrix("dok")


def test_values_of_both_apis_go_in_and_out():
    x, y = sparse.csr_matrix("x"), sparse.csr_array("y")
    f, g, h = (compiled(vs, out) for vs, out in (([x], x * 2), ([y], y * 2), ([x, y], x + y)))
    for value in (sp.csr_matrix(S), sp.csr_array(S)):
        assert isinstance(f(value), sp.csr_matrix) and isinstance(g(value), sp.csr_array)
        assert isinstance(h(value, value), sp.csr_array)
        np.testing.assert_array_equal(f(value).toarray(), 2 * X)


def test_values_of_other_formats_and_dtypes():
    x = sparse.csr_matrix("x")
    f = compiled([x], x * 1)
    for value in (S.tocsc(), S.tocoo(), S.tolil(), X, sp.csr_array(np.array([[1, 2]])), [[1.0, 2]]):
        np.testing.assert_array_equal(f(value).toarray(), np.asarray(
            value.toarray() if sp.issparse(value) else value))  # fmt: skip
    narrow = compiled([n := sparse.csr_matrix("n", "float32")], n * 1)
    with pytest.raises(DTypeError, match=r"argument 0 \(n, float32 csr matrix\)"):
        narrow(S)
    narrow = compiled([n], n * 1, allow_input_downcast=True)
    assert narrow(S).dtype == "float32"
    with pytest.raises(DTypeError, match="expected a sparse matrix"):
        f("no matrix")
    with pytest.raises(ShapeError, match="array of shape"):
        f(np.ones(3))
    with pytest.raises(ShapeError, match="must be a matrix"):
        f(sp.coo_array(np.ones(3)))
    known = compiled([k := sparse.csr_matrix("k", shape=(None, 5))], k * 1)
    known(S)
    with pytest.raises(ShapeError, match="expected shape"):
        known(S.T)


def test_values_in_any_order():
    """Unsorted indices and duplicates are put right; the argument stays as it is."""
    data, indices, indptr = np.arange(1.0, 6), np.array([3, 0, 3, 1, 0]), np.array([0, 3, 3, 5])
    value = sp.csr_array((data, indices, indptr), shape=(3, 4))
    wanted = value.toarray() ** 2
    x = sparse.csr_matrix("x")
    for trust in (False, True):
        f = compiled([x], [sparse.sqr(x), sparse.csm_indices(x)], trust_input=trust)
        z, places = f(value)
        np.testing.assert_array_equal(z.toarray(), wanted)
        np.testing.assert_array_equal(places, [0, 3, 0, 1])
    np.testing.assert_array_equal(value.indices, indices)


BROKEN = {
    "index 9 at position 1 is not between 0 and 4": {"indices": np.array([0, 9])},
    "index -1 at position 0": {"indices": np.array([-1, 0])},
    "decreases from 2 at position 1": {"indptr": np.array([0, 2, 1, 2, 2])},
    "ends with 7, but there are 2 indices": {"indptr": np.array([0, 1, 2, 2, 7])},
    "has 3 elements; 4 rows": {"indptr": np.array([0, 1, 2])},
    "starts with 1": {"indptr": np.array([1, 1, 2, 2, 2])},
    "3 entries of data but 2 indices": {"data": np.ones(3)},
}


@pytest.mark.parametrize("words", BROKEN)
@pytest.mark.parametrize("trust", [False, True])
def test_broken_values_are_refused(words, trust):
    """In trusted calls too: no memory outside of the arrays is read."""
    value = sp.csr_array((np.ones(2), [0, 1], [0, 1, 2, 2, 2]), shape=(4, 5))
    for name, array in BROKEN[words].items():
        setattr(value, name, array.astype(getattr(value, name).dtype))
    x = sparse.csr_matrix("x")
    for mode in (MODE, symcomp.Mode(linker="vm", optimizer="None")):
        f = symcomp.function(
            [x], sparse.dot(x, T.constant(np.ones(5))), mode=mode, trust_input=trust
        )
        with pytest.raises(SparsePatternError, match=words):
            f(value)


def test_broken_coo_values_are_refused():
    x = sparse.coo_matrix("x")
    f = compiled([x], x.toarray())
    np.testing.assert_array_equal(f(S.tocoo()), X)
    value = S.tocoo(copy=True)
    value.coords[1][0] = 77
    with pytest.raises(SparsePatternError, match="the columns of a coo value: index 77"):
        f(value)


def test_empty_matrices():
    x, d = sparse.csr_matrix("x"), T.dmatrix("d")
    f = compiled([x, d], [x * 2, sparse.dot(x, d), x.sum(0), sparse.structured_softmax(x), x.T @ x])
    for shape in ((0, 3), (3, 0), (0, 0), (2, 3)):
        z, product, total, soft, square = f(sp.csr_array(shape), np.ones((shape[1], 2)))
        assert z.shape == soft.shape == shape and product.shape == (shape[0], 2)
        assert total.shape == (shape[1],) and square.shape == (shape[1], shape[1])
        assert z.nnz == 0 and not product.any()


def test_indices_of_64_bits():
    x = sparse.csr_matrix("x", index_dtype="int64")
    y = sparse.csr_matrix("y")
    z = x + y
    assert z.type.index_dtype == "int64" and sparse.csm_indptr(x).dtype == "int64"
    assert compiled([x, y], z)(S, S).indices.dtype == "int64"
    back = sparse.with_index_dtype(z, "int32")
    assert compiled([x, y], back)(S, S).indices.dtype == "int32"
    wide = sp.csr_array((1, 2**40))
    assert compiled([x], x.shape)(wide).tolist() == [1, 2**40]
    with pytest.raises(SparsePatternError, match="beyond 2147483647.*index_dtype='int64'"):
        compiled([y], y.shape)(wide)
    with pytest.raises(SparsePatternError, match="beyond 2147483647"):
        compiled([x], sparse.with_index_dtype(x, "int32"))(wide)


def test_constants():
    c = sparse.constant(S)
    assert c.type.shape == (4, 5) and "6 stored" in str(c).replace(str(S.nnz), "6")
    assert sparse.as_sparse_variable(S).signature() == c.signature()
    np.testing.assert_array_equal((c * 2).eval().toarray(), 2 * X)
    x = sparse.csr_matrix("x")
    np.testing.assert_array_equal(compiled([x], x + S)(S).toarray(), 2 * X)
    np.testing.assert_array_equal(compiled([x], S + x)(S).toarray(), 2 * X)
    np.testing.assert_array_equal(compiled([x], X + x)(S), 2 * X)
    with pytest.raises(DTypeError, match="is not sparse: convert a dense matrix"):
        sparse.as_sparse_variable(X)


def test_dense_functions_refuse_sparse_variables():
    x = sparse.csr_matrix("x")
    with pytest.raises(TypeError, match=r"is sparse where a tensor is expected: write x.toarray"):
        T.exp(x)
    for wrong in (lambda: bool(x), lambda: len(x), lambda: iter(x)):
        with pytest.raises(TypeError):
            wrong()


# -- shared variables


def test_shared_variables():
    w = symcomp.shared(S, name="w")
    assert isinstance(w, sparse.SparseSharedVariable) and w.type.container == "array"
    v = sparse.shared(S, format="csc")
    assert v.format == "csc" and w.get_value() is not w.get_value()
    f = compiled([], w.sum(), updates=[(w, w * 2)])
    assert f() == pytest.approx(X.sum())
    np.testing.assert_array_equal(w.get_value().toarray(), 2 * X)
    w.set_value(S.tocsc())
    assert w.get_value().format == "csr"
    w.zero()
    assert w.get_value().nnz == S.nnz and not w.get_value().data.any()
    with pytest.raises(SparsePatternError, match="index 9"):
        bad = S.copy()
        bad.indices[0] = 9
        w.set_value(bad)
    assert not w.get_value().data.any()
    with pytest.raises(TypeError, match="csc"):
        symcomp.function([], updates=[(w, v)])
    twin = pickle.loads(pickle.dumps(f))
    assert twin() == 0


def test_training_a_shared_sparse_matrix():
    rng = np.random.default_rng(0)
    w, d, y = sparse.shared(S), T.dmatrix("d"), T.dmatrix("y")
    cost = ((sparse.dot(w, d) - y) ** 2).sum()
    step = compiled([d, y], cost, updates=[(w, w - 0.01 * symcomp.grad(cost, w))])
    dv, yv = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    costs = [step(dv, yv) for _ in range(30)]
    assert costs[-1] < costs[0] and w.get_value().nnz == S.nnz
    assert "CombinePatterns" not in str(step.program)


# -- derivatives, branches, loops


def test_gradients_must_be_sparse():
    x = sparse.csr_matrix("x")
    z = x * 2
    g = symcomp.grad(None, x, known_grads={z: sparse.sp_ones_like(z)})
    np.testing.assert_array_equal(compiled([x], g)(S).data, 2)
    with pytest.raises(GradientError, match="which is sparse: give a sparse one"):
        symcomp.grad(None, x, known_grads={z: T.dmatrix("d")})
    with pytest.raises(GradientError, match="which is sparse"):
        symcomp.Rop(z, x, T.dmatrix("d"))
    d = symcomp.Rop(sparse.sqr(x), x, x)
    np.testing.assert_allclose(compiled([x], d)(S).toarray(), 2 * X**2)


def test_disconnected_gradients_are_empty():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    g = symcomp.grad(x.sum(), y, disconnected_inputs="ignore")
    assert compiled([y], g)(S).nnz == 0


def test_integers_have_no_gradient():
    x = sparse.csr_matrix("x")
    cost = (sparse.cast(sparse.icast(x), "float64") * 2.0).sum(sparse_grad=True)
    assert compiled([x], symcomp.grad(cost, x))(S).nnz == 0
    i = sparse.csr_matrix("i", dtype="int32")
    d = T.dvector("d")
    g = compiled([i, d], symcomp.grad(sparse.dot(i, d).sum(), [i, d]))
    gi, gd = g((S > 0).astype("int32"), np.ones(5))
    np.testing.assert_array_equal(gd, (X > 0).sum(0))
    assert gi.dtype == "float64"


def test_branches():
    x, y, c = sparse.csr_matrix("x"), sparse.csr_matrix("y", shape=(4, 5)), T.dscalar("c")
    z = ifelse(c > 0, sparse.sqr(x), y)
    cost = z.sum(sparse_grad=True)
    f = compiled([x, y, c], [z, *symcomp.grad(cost, [x, y])])
    z1, gx, gy = f(S, S, 1.0)
    np.testing.assert_allclose(z1.toarray(), X**2)
    np.testing.assert_allclose(gx.toarray(), 2 * X)
    assert gy.nnz == 0
    assert f(S, S, -1.0)[2].nnz == S.nnz


def test_loops_over_sparse_matrices():
    """A matrix that a loop captures is taken apart once, outside."""
    x, v = sparse.csr_matrix("x"), T.dvector("v")
    states, _ = symcomp.scan(lambda s, a: T.tanh(sparse.dot(a, s)), None, [v], [x], n_steps=3)
    cost = states[-1].sum()
    square = sp.csr_array(random_sparse(5, 5, 0.5))
    f = compiled([x, v], [cost, *symcomp.grad(cost, [x, v])])
    found, gx, gv = f(square, np.ones(5))
    s = np.ones(5)
    for _ in range(3):
        s = np.tanh(square @ s)
    assert found == pytest.approx(s.sum()) and gx.nnz == square.nnz
    sparse.verify_grad(
        lambda a, b: symcomp.scan(
            lambda s, m: T.tanh(sparse.dot(m, s)), None, [b], [a], n_steps=2
        )[0][-1],
        [square, np.ones(5)], n_tests=1, mode="FAST_COMPILE",
    )  # fmt: skip


def test_verify_grad():
    symcomp.gradient.verify_grad(lambda s, d: sparse.dot(s, d), [S, np.ones((5, 2))], n_tests=1)
    sparse.verify_grad(sparse.sqr, [S.tocsc()], n_tests=1)
    full = np.random.default_rng(0).random((3, 3)) + 1
    sparse.verify_grad_sparse(lambda s: (-s).T + s.T, [sp.csr_array(full)], n_tests=1)

    def wrong(s):
        return sparse.dense_from_sparse(s).sum() + sparse.sqr(s).sum() * 0 + T.zeros(()) * 0

    sparse.verify_grad(wrong, [S], n_tests=1)
    with pytest.raises(GradientError):
        sparse.verify_grad(lambda s: symcomp.gradient.grad_scale(s.sum(), 2.0), [S], n_tests=1)


def test_values_compare():
    kind = SparseType("csr", "float64")
    a, b = kind.filter(S), kind.filter(S.copy())
    assert kind.values_eq(a, b) and not kind.may_share_memory(a, kind.copy_value(a))
    b.data[0] += 1e-14
    assert not kind.values_eq(a, b) and kind.values_eq_approx(a, b)
    assert kind.may_share_memory(a, a.data) and not kind.values_eq(a, S.tocsc())
    assert TensorType("float64", (None,)).joined(kind) is None
