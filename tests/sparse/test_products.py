"""Products with sparse matrices: values, gradients on the pattern, memory, and rewrites of them."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.sparse.harness import MODE, assert_same_pattern, check, programs_use
from symcomp.tests.sparse.harness import random_sparse as rand

RNG = np.random.default_rng(0)
S, D, V, U = rand(4, 5), RNG.normal(size=(5, 3)), RNG.normal(size=5), RNG.normal(size=4)


def test_sparse_times_dense():
    check(sparse.dot, S, D, expected=np.dot)
    check(sparse.structured_dot, S, D, expected=np.dot, order=1)
    check(lambda s, v: s @ v, S, V, expected=np.dot)
    check(lambda s, d: T.dot(s, d), S, D, expected=np.dot, grad=False)


def test_dense_times_sparse():
    check(sparse.dot, D.T, S.T, expected=np.dot)
    check(lambda v, s: v @ s, U, S, expected=np.dot)
    check(lambda d, s: T.dot(d, s), D.T, S.T, expected=np.dot, grad=False)


def test_sparse_times_sparse():
    a, b = rand(4, 5, seed=1), rand(5, 3, seed=2)
    check(sparse.dot, a, b, expected=np.dot)
    check(sparse.true_dot, a, b, expected=np.dot)
    check(lambda a, b: a @ b, a, b, expected=np.dot)
    check(sparse.true_dot, a, D, expected=np.dot, order=1)
    check(sparse.true_dot, D.T, a.T, expected=np.dot, grad=False)
    x, y = sparse.csr_matrix("x"), sparse.csc_matrix("y")
    assert sparse.true_dot(x, y).type.format == "csr"


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_products_of_dtypes(dtype):
    s, d = rand(4, 5, dtype=dtype, seed=3), np.round(D * 3).astype(dtype)
    check(sparse.dot, s, d, expected=np.dot, order=1)
    check(sparse.structured_dot, s, rand(5, 3, dtype=dtype), expected=np.dot, order=1)


def test_mixed_dtypes_are_promoted():
    s, d = sparse.csr_matrix("s", dtype="float32"), T.dmatrix("d")
    assert sparse.dot(s, d).dtype == "float64"
    assert sparse.dot(sparse.csr_matrix("i", dtype="int8"), T.matrix("h", "float16")).dtype == (
        "float32"
    )


def test_sampled_products():
    x, y, p = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 2)), rand(4, 5, seed=4)
    stored = (abs(p) + sp.csr_array(p != 0)).toarray() > 0
    check(sparse.sampling_dot, x, y, p, expected=lambda x, y, p: (x @ y.T) * p)
    p.data[:] = 1
    mask = p.toarray() > 0
    check(sparse.sampled_dot, x, y, p, expected=lambda x, y, p: (x @ y.T) * mask)
    assert stored.shape == (4, 5)


def test_usmm():
    z = RNG.normal(size=(4, 3))
    check(sparse.usmm, np.float64(0.5), S, D, z, expected=lambda a, s, d, z: a * s @ d + z, order=1)


def test_products_of_blocks():
    blocks = sp.random_array((6, 4), density=0.4, rng=1).tobsr(blocksize=(2, 2))
    check(sparse.dot, blocks, D[:4], expected=np.dot, formats=["bsr"], order=2)
    check(sparse.dot, blocks, V[:4], expected=np.dot, formats=["bsr"], order=1)


def test_gradient_of_a_product_has_the_pattern():
    s, d = sparse.csr_matrix("s"), T.dmatrix("d")
    for out in (sparse.dot(s, d), sparse.structured_dot(s, d), sparse.structured_dot(s, s.T)):
        cost = (out.toarray() if sparse.is_sparse_variable(out) else out).sum()
        g = symcomp.function([s, d], symcomp.grad(cost, s), mode=MODE, on_unused_input="ignore")
        assert_same_pattern(g(S, D), S)


def test_gradient_makes_no_dense_matrix():
    """A dense matrix of the shape would have 80 GB; allocations are counted."""
    n, k = 100_000, 2
    rng = np.random.default_rng(0)
    s = sp.csr_array(
        (rng.normal(size=3 * n), (rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n))), (n, n)
    )
    w = rng.normal(size=(n, k))
    x, y = sparse.csr_matrix("x"), T.dmatrix("y")
    for function in (sparse.dot, sparse.structured_dot):
        f = symcomp.function([x, y], symcomp.grad(T.sum(function(x, y)), x), mode=MODE)
        f(s, w)
        tracemalloc.start()
        g = f(s, w)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert_same_pattern(g, s)
        # The arrays of s with temporaries of its entries, and those of w.
        assert peak < 20 * s.nnz * 8 + 4 * w.nbytes


def test_shapes_that_do_not_fit():
    x = sparse.csr_matrix("x", shape=(4, 5))
    with pytest.raises(ShapeError, match="has length 5 on the axis that meets .* which has 6"):
        sparse.dot(x, T.constant(np.ones((6, 2))))
    with pytest.raises(ShapeError, match="has 5 columns, .* 4 rows"):
        sparse.true_dot(x, x)
    with pytest.raises(DTypeError, match="is sparse: use symcomp.tensor.dot"):
        sparse.dot(T.dmatrix("a"), T.dmatrix("b"))
    with pytest.raises(ShapeError, match="neither a matrix nor a vector"):
        sparse.dot(x, T.dtensor3("t"))
    y, d = sparse.csr_matrix("y"), T.dmatrix("d")
    for function in (sparse.dot(y, d), sparse.dot(d.T, y.T)):
        f = symcomp.function([y, d], function, mode=MODE)
        with pytest.raises(ShapeError, match="axes that meet have lengths 5 and 3"):
            f(S, np.ones((3, 2)))
    z = sparse.csr_matrix("z")
    f = symcomp.function([y, z], sparse.true_dot(y, z), mode=MODE)
    with pytest.raises(ShapeError, match="axes that meet have lengths 5 and 4"):
        f(S, S)


# -- lowering


def compiled(inputs, outputs):
    return symcomp.function(inputs, outputs, mode=MODE)


def test_transposes_are_not_made():
    s, d = sparse.csr_matrix("s"), T.dmatrix("d")
    f = compiled([s, d], sparse.dot(s.T, d))
    assert programs_use(f, "CompressedDot") and not programs_use(f, "TransposeCompressed")
    np.testing.assert_allclose(f(S, U[:, None]), S.T @ U[:, None])
    f = compiled([s, d], sparse.dot(s.tocsc(), d))
    assert not programs_use(f, "TransposeCompressed")
    np.testing.assert_allclose(f(S, D), S @ D)


def test_sum_with_a_product_is_one_op():
    s, d, z = sparse.csr_matrix("s"), T.dmatrix("d"), T.dmatrix("z")
    for out, wanted in (
        (z + sparse.dot(s, d), lambda z: z + S @ D),
        (z - 2 * sparse.dot(s, d), lambda z: z - 2 * (S @ D)),
    ):
        f = compiled([s, d, z], out)
        assert programs_use(f, "Usmm")
        z_value = np.ones((4, 3))
        np.testing.assert_allclose(f(S, D, z_value), wanted(z_value), rtol=1e-12)
        with pytest.raises(ShapeError):
            f(S, D, np.ones((3, 3)))


def test_products_go_in_the_cheaper_order():
    s = sparse.csr_matrix("s", shape=(100, 100))
    x, w = T.tensor("float64", shape=(100, 50)), T.tensor("float64", shape=(50, 4))
    f = compiled([s, x, w], T.dot(sparse.dot(s, x), w))
    order = [type(node.op).__name__ for node in f.maker.fgraph.toposort()]
    assert order.index("Dot") < order.index("CompressedDot")
    values = rand(100, 100, 0.05), RNG.normal(size=(100, 50)), RNG.normal(size=(50, 4))
    np.testing.assert_allclose(f(*values), values[0] @ values[1] @ values[2], rtol=1e-10)
    wide = T.tensor("float64", shape=(50, 80))
    f = compiled([s, x, wide], sparse.dot(s, T.dot(x, wide)))
    order = [type(node.op).__name__ for node in f.maker.fgraph.toposort()]
    assert order.index("CompressedDot") < order.index("Dot")


def test_product_read_at_a_pattern_is_not_made():
    x, y, p = T.dmatrix("x"), T.dmatrix("y"), sparse.csr_matrix("p")
    f = compiled([x, y, p], sparse.mul(p, T.dot(x, y.T)))
    assert programs_use(f, "SampledDot") and not programs_use(f, "GatherDense")
    a, b = RNG.normal(size=(4, 2)), RNG.normal(size=(5, 2))
    np.testing.assert_allclose(f(a, b, S).toarray(), S.toarray() * (a @ b.T))


def test_gradient_of_a_sparse_product_computes_entries_alone():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    z = sparse.sqr(sparse.structured_dot(x, y))
    g = compiled([x, y], symcomp.grad(sparse.sp_sum(z), x))
    assert programs_use(g, "MaskedMatMul")
    a, b = rand(4, 5), rand(5, 3, seed=1)
    product = (a @ b).toarray()
    mask = np.zeros((4, 5))
    mask[a.tocoo().coords] = 1
    np.testing.assert_allclose(g(a, b).toarray(), 2 * product @ b.T.toarray() * mask, atol=1e-12)


def test_patterns_are_proved_once():
    s, d = sparse.csr_matrix("s"), T.dmatrix("d")
    z = sparse.structured_exp(s) + sparse.sqr(s) * 2 - s
    f = compiled([s, d], [z, sparse.dot(z, d)])
    assert not programs_use(f, "CombinePatterns") and not programs_use(f, "Lookup")
    fused = [node for node in f.maker.fgraph.nodes if type(node.op).__name__ == "Fused"]
    assert len(fused) == 1
