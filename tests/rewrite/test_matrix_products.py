"""Cheaper matrix products: the remaining ops, and equal values."""

import itertools

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.rewrite.blas import BLAS_RULES
from symcomp.rewrite.matrix_products import MATRIX_PRODUCTS, NAN_UNSAFE_MATRIX_PRODUCTS
from symcomp.tests.rewrite.rules import kinds, names, rewritten, run, same_values

RNG = np.random.default_rng(17)
DTYPES = ("float32", "float64", "complex64", "complex128")
A, B, C = T.dmatrices("a", "b", "c")
U, V, S = T.dvector("u"), T.dvector("v"), T.dscalar("s")
INPUTS = [A, B, C, U, V, S]
dot = T.dot
# name: (expression, the kinds of ops that must remain, kinds that must not)
CASES = {
    "sum of products": (T.sum(A * B), {"SumOfProducts"}, {"sum", "mul"}),
    "of squares": (T.sum(T.sqr(A)), {"SumOfProducts"}, {"sum", "sqr"}),
    "over rows": (T.sum(A * B, axis=1), {"SumOfProducts"}, {"sum", "mul"}),
    "over columns": (T.sum(A * B, axis=0), {"SumOfProducts"}, {"sum", "mul"}),
    "of vectors": (T.sum(U * V), {"SumOfProducts"}, {"sum", "mul"}),
    "transposed": (T.sum(A * B.T), {"SumOfProducts"}, {"sum", "mul"}),
    "with a row": (T.sum(A * V, axis=1), {"Dot"}, {"sum", "mul"}),
    "with a column": (T.sum(U.dimshuffle(0, "x") * A, axis=0), {"Dot"}, {"sum", "mul"}),
    "trace": (T.trace(dot(A, B)), {"SumOfProducts"}, {"sum", "Dot"}),
    "diagonal": (T.diagonal(dot(A, B)), {"SumOfProducts"}, {"Dot"}),
    "above": (T.diagonal(dot(A, B), 1), {"SumOfProducts"}, {"Dot"}),
    "below": (T.diagonal(dot(A.T, B), -1), {"SumOfProducts"}, {"Dot"}),
    "sum of dot": (T.sum(dot(A, B)), {"Dot", "sum"}, set()),
    "its rows": (T.sum(dot(A, B), axis=1), {"Dot", "sum"}, set()),
    "its columns": (T.sum(dot(A, B), axis=0), {"Dot", "sum"}, set()),
    "sum of a vector": (T.sum(dot(A, V)), {"Dot", "sum"}, set()),
    "chain": (dot(dot(A, B), C), {"MatrixChain"}, {"Dot"}),
    "vector last": (dot(dot(A, B), V), {"MatrixChain"}, {"Dot"}),
    "vector first": (dot(U, dot(A, B)), {"MatrixChain"}, {"Dot"}),
    "both ends": (dot(U, dot(dot(A, B), V)), {"MatrixChain"}, {"Dot"}),
    "long": (dot(dot(dot(A, B), dot(C, A)), V), {"MatrixChain"}, {"Dot"}),
    "numbers": (dot(2.0 * A, B / -3.0), {"Dot", "mul"}, {"true_div"}),
    "signs": (dot(-A, B), {"Dot", "neg"}, set()),
    "of two vectors": (dot(2.0 * U, V), {"Dot", "mul"}, set()),
    "both transposed": (dot(A.T, B.T), {"Dot"}, set()),
    "ones": (dot(A, T.ones((A.shape[1], 4))), {"Alloc", "sum"}, {"Dot"}),
    "ones on the left": (dot(T.ones((4, A.shape[0])), A), {"Alloc", "sum"}, {"Dot"}),
    "zeros": (dot(A, T.zeros_like(B)), {"Alloc", "sum"}, {"Dot"}),
    "twos": (dot(A, T.fill(V, 2.0)), {"sum"}, {"Dot", "Alloc"}),
    "filled first": (dot(T.fill(U, 2.0), A), {"sum"}, {"Dot", "Alloc"}),
    "vectors": (dot(T.fill(U, 2.0), V), {"sum"}, {"Dot", "Alloc"}),
    "any scalar": (dot(A, T.fill(B, S)), {"sum", "Alloc", "switch"}, {"Dot"}),
    "vector and matrix": (dot(V, T.ones_like(A)), {"sum", "Alloc"}, {"Dot"}),
}


def values(n=3, k=3):
    shapes = [(n, k), (k, n), (n, k), (n,), (n,), ()]
    return [np.asarray(RNG.normal(size=shape)) for shape in shapes]


def square(n):
    return [np.asarray(RNG.normal(size=s)) for s in [(n, n)] * 3 + [(n,)] * 2 + [()]]


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(case):
    out, there, gone = CASES[case]
    graph = rewritten(INPUTS, [out], MATRIX_PRODUCTS)
    left = set(kinds(graph))
    assert there <= left and not gone & left
    for n in (3, 1, 0):
        same_values(INPUTS, [out], graph, square(n))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", CASES)
def test_nan_and_infinity(case, bad):
    out = CASES[case][0]
    graph = rewritten(INPUTS, [out], MATRIX_PRODUCTS)
    for place, zero in itertools.product(range(5), (False, True)):
        given = [x * (0 if zero else 1) for x in square(3)]
        given[place][(1,) * given[place].ndim] = bad
        same_values(INPUTS, [out], graph, given)


@pytest.mark.parametrize(
    "case",
    [
        "trace",
        "diagonal",
        "above",
        "sum of dot",
        "its rows",
        "its columns",
        "sum of a vector",
        "chain",
        "vector first",
    ],
)
def test_lengths_of_0_with_nan(case):  # fmt: skip
    """A length of 0 turns nothing into 0 or NaN that NumPy does not."""
    out = CASES[case][0]
    graph = rewritten(INPUTS, [out], MATRIX_PRODUCTS)
    for n, k, m in itertools.product((0, 2, 3), repeat=3):
        shapes = [(n, k), (k, m), (m, 2), (n,), (k if "vector" in case else m,), ()]
        for place in range(5):
            given = [np.ones(shape) for shape in shapes]
            given[place] = given[place] * np.nan
            if case == "sum of a vector":
                given[4] = np.ones(k) if place != 4 else np.full(k, np.nan)
            same_values(INPUTS, [out], graph, given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    a, b = T.matrix("a", dtype=dtype), T.matrix("b", dtype=dtype)
    v = T.vector("v", dtype=dtype)
    outputs = [
        T.sum(a * b), T.sum(a * v, axis=1), T.trace(dot(a, b)), T.sum(dot(a, b)),
        dot(dot(a, b), v), dot(2 * a, b), dot(a.T, b.T), dot(a, T.ones_like(b)),
    ]  # fmt: skip
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    for out in outputs:
        graph = rewritten([a, b, v], [out], MATRIX_PRODUCTS)
        given = [RNG.normal(size=s).astype(dtype) for s in ((3, 3), (3, 3), (3,))]
        if dtype.startswith("c"):
            given = [(x + 1j * x[..., ::-1]).astype(dtype) for x in given]
        same_values([a, b, v], [out], graph, given, tolerance, tolerance)
        assert graph.outputs[0].type == out.type


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bool"])
def test_dtypes_that_blas_has_not(dtype):
    a, b = T.matrix("a", dtype=dtype), T.matrix("b", dtype=dtype)
    outputs = [T.sum(a * b), T.sum(dot(a, b)), T.trace(dot(a, b)), dot(dot(a, b), a)]
    graph = rewritten([a, b], outputs, MATRIX_PRODUCTS)
    assert "SumOfProducts" not in kinds(graph)
    given = [RNG.integers(0, 3, (3, 3)).astype(dtype) for _ in range(2)]
    same_values([a, b], outputs, graph, given)


def test_rectangles():
    """The trace of a product that is not square; and rows that are more than columns."""
    for out in (T.trace(dot(A, B)), T.diagonal(dot(A, B), 1), T.diagonal(dot(A, B), -1)):
        graph = rewritten([A, B], [out], MATRIX_PRODUCTS)
        for n, k, m in itertools.product((1, 2, 4), repeat=3):
            given = [RNG.normal(size=(n, k)), RNG.normal(size=(k, m))]
            same_values([A, B], [out], graph, given)


@pytest.mark.parametrize(
    "case", sorted(set(CASES) - {"of squares", "signs", "ones", "ones on the left"})
)
def test_lengths_that_differ_stay_errors(case):
    out = CASES[case][0]
    before, graph = rewritten(INPUTS, [out]), rewritten(INPUTS, [out], MATRIX_PRODUCTS)
    used = [x for x in INPUTS[:5] if graph.clients.get(graph.inputs[INPUTS.index(x)])]
    failed = 0
    for x in used:
        for axis in range(x.ndim):
            given = square(3)
            place = INPUTS.index(x)
            given[place] = np.concatenate([given[place]] * 2, axis=axis)
            try:
                run(before, given)
            except ValueError:
                failed += 1
                with pytest.raises(ValueError, match="shape"):
                    run(graph, given)
            else:
                same_values(INPUTS, [out], graph, given)
    assert failed


def test_an_index_that_is_out_of_range_stays_an_error():
    i, j = T.arange(4), T.arange(4) + 1
    for out in (dot(A, B)[i, i], dot(A, B)[i, j]):
        graph = rewritten([A, B], [out], MATRIX_PRODUCTS)
        assert "SumOfProducts" in kinds(graph)
        same_values([A, B], [out], graph, [RNG.normal(size=(4, 2)), RNG.normal(size=(2, 6))])
        with pytest.raises((IndexError, ShapeError)):
            run(graph, [np.ones((3, 3)), np.ones((3, 3))])


def test_known_lengths_are_bracketed_now():
    def known(*shape):
        return T.tensor("x", dtype="float64", shape=shape)

    a, b, c, d = known(2, 30), known(30, 2), known(2, 30), known(30, 1)
    inputs, outputs = [a, b, c, d], [dot(a, dot(dot(b, c), d)), dot(dot(dot(a, b), c), d)]
    for out in outputs:
        graph = rewritten(inputs, [out], MATRIX_PRODUCTS)
        assert kinds(graph) == ["Dot"] * 3
        assert max(np.prod(n.outputs[0].type.shape) for n in graph.toposort()) <= 30
        given = [RNG.normal(size=x.type.shape) for x in inputs]
        same_values(inputs, [out], graph, given)
    kept = [dot(a, dot(b, dot(c, d)))]
    graph = rewritten(inputs, kept, MATRIX_PRODUCTS)
    assert names(graph) == names(rewritten(inputs, kept))


def test_vectors_first_stay_dots():
    outputs = [dot(A, dot(B, dot(C, V))), dot(dot(dot(U, A), B), C)]
    graph = rewritten(INPUTS, outputs, MATRIX_PRODUCTS)
    assert kinds(graph) == ["Dot"] * 6


def test_long_and_deep_chains():
    x, y = A, V
    for _ in range(40):
        x, y = dot(x, B), dot(B, y)
    for out, many in ((x, False), (y, True)):
        graph = rewritten([A, B, V], [out], MATRIX_PRODUCTS)
        assert ("MatrixChain" not in kinds(graph)) == many
        given = [RNG.normal(size=(2, 3)), RNG.normal(size=(3, 3)) / 2, np.ones(3)]
        same_values([A, B, V], [out], graph, given, rtol=1e-10)
    deep = V
    for _ in range(3000):
        deep = dot(B, deep)
    assert kinds(rewritten([B, V], [deep], MATRIX_PRODUCTS)) == ["Dot"] * 3000


def test_what_others_use_is_left():
    product = dot(A, B)
    squared = A * B.T
    outputs = [T.sum(squared), squared, T.trace(product), dot(product, C), product]
    graph = rewritten(INPUTS, outputs, MATRIX_PRODUCTS)
    assert {"SumOfProducts", "MatrixChain"} & set(kinds(graph)) == set()
    same_values(INPUTS, outputs, graph, square(3))


def test_functions_of_elements_are_left_to_be_fused():
    outputs = [T.sum(T.exp(A) * T.tanh(B))]
    assert "SumOfProducts" not in kinds(rewritten(INPUTS, outputs, MATRIX_PRODUCTS))
    row = T.drow("row")
    stretched = [T.sum(A * row), T.sum(row * row, axis=1), T.sum(A * row, axis=0)]
    graph = rewritten([A, row], stretched, MATRIX_PRODUCTS)
    same_values([A, row], stretched, graph, [np.ones((2, 3)), np.ones((1, 3))])


def test_scalars_only_where_nothing_is_empty():
    """A scalar that is NaN times a sum of nothing would be NaN."""
    assert kinds(rewritten(INPUTS, [dot(S * A, B)], MATRIX_PRODUCTS)) == ["Dot", "mul"]
    a = T.tensor("a", dtype="float64", shape=(None, 3))
    out = dot(S * a / 2.0, B)
    graph = rewritten([a, B, S], [out], MATRIX_PRODUCTS, BLAS_RULES)
    assert kinds(graph, "mul", "true_div") == ["ScaledDot"]
    given = [RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4)), np.array(0.7)]
    same_values([a, B, S], [out], graph, given)
    empty = [dot(S * A, B)]
    graph = rewritten(INPUTS, empty, MATRIX_PRODUCTS, BLAS_RULES)
    given = [np.ones((2, 0)), np.ones((0, 2)), *values()[2:5], np.array(np.nan)]
    assert not run(graph, given)[0].any()


@pytest.mark.parametrize("function", [T.sum, T.mean, lambda x: S * T.sum(x)])
def test_gradients_of_a_sum_of_dot(function):
    cost = function(dot(A, B))
    outputs = [cost, *symcomp.grad(cost, [A, B])]
    graph = rewritten([A, B, S], outputs, MATRIX_PRODUCTS)
    assert all(node.outputs[0].ndim < 2 for node in graph.toposort() if str(node.op) == "Dot")
    for n, k, m in itertools.product((0, 2, 3), repeat=3):
        for bad in (1.0, np.nan):
            given = [RNG.normal(size=(n, k)), RNG.normal(size=(k, m)) * bad, np.array(0.3)]
            same_values([A, B, S], outputs, graph, given)
            same_values([A, B, S], outputs, graph, [*given[:2], np.array(np.inf)])


def test_identity_matrices_only_on_demand():
    for out in (dot(A, np.eye(3)), dot(np.eye(3), V), dot(T.eye(3), A)):
        fixed = [T.specify_shape(x, (3,) * x.ndim) for x in (A, V)]
        known = symcomp.clone_replace(out, dict(zip((A, V), fixed, strict=True)))
        assert "Dot" in kinds(rewritten([A, V], [known], MATRIX_PRODUCTS))
        graph = rewritten([A, V], [known], NAN_UNSAFE_MATRIX_PRODUCTS)
        assert "Dot" not in kinds(graph)
        same_values([A, V], [known], graph, [RNG.normal(size=(3, 3)), RNG.normal(size=3)])
    assert all("nan_unsafe" in r.tags for r in NAN_UNSAFE_MATRIX_PRODUCTS)
    other = [dot(A, np.ones((3, 3)))]
    assert kinds(rewritten([A], other, NAN_UNSAFE_MATRIX_PRODUCTS)) == ["Dot"]
