"""Sums with products become calls of BLAS: the remaining ops, and equal values."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.linalg.blas import Gemm
from symcomp.rewrite.blas import BLAS_RULES
from symcomp.tests.rewrite.rules import kinds, names, rewritten, run, same_values

RNG = np.random.default_rng(11)
DTYPES = ("float32", "float64", "complex64", "complex128")
TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-12, "complex128": 1e-12}


def sample(shape, dtype):
    values = RNG.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * RNG.normal(size=shape)
    return np.asarray(values, dtype)


def gemm_forms():
    """Return (name, expression of c, a, b, s, t; the remaining ops besides scalars)."""
    dot = T.dot
    return {
        "plus": lambda c, a, b, s, t: c + dot(a, b),
        "plus first": lambda c, a, b, s, t: dot(a, b) + c,
        "minus": lambda c, a, b, s, t: c - dot(a, b),
        "minus first": lambda c, a, b, s, t: dot(a, b) - c,
        "neg": lambda c, a, b, s, t: -dot(a, b) - c,
        "numbers": lambda c, a, b, s, t: 2.0 * c - 3.0 * dot(a, b),
        "both sides": lambda c, a, b, s, t: c * 2.0 + dot(a, b) * -0.5,
        "scalars": lambda c, a, b, s, t: c + s * dot(a, b),
        "scalars right": lambda c, a, b, s, t: dot(a, b) * s * t + c,
        "division": lambda c, a, b, s, t: c - s * dot(a, b) / t,
        "number over scalar": lambda c, a, b, s, t: c / 4.0 + 2.0 * dot(a, b) / s,
        "transposes": lambda c, a, b, s, t: c + dot(b.T, a.T),
        "one transpose": lambda c, a, b, s, t: c - s * dot(a.T, b),
        "of the result": lambda c, a, b, s, t: c + (s * dot(a, b)).T,
        "of both": lambda c, a, b, s, t: c.T - dot(a, b.T).T * 3.0,
        "rows": lambda c, a, b, s, t: c - s * dot(a, b) / c.shape[0],
    }


FORMS = gemm_forms()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_gemm_in_every_form(form, dtype):
    if form == "rows" and dtype in ("float32", "complex64"):
        pytest.skip("a sum with int64 is of a wider dtype")
    c, a, b = (T.matrix(name, dtype=dtype) for name in "cab")
    s, t = (T.scalar(name, dtype=dtype) for name in "st")
    inputs, outputs = [c, a, b, s, t], [FORMS[form](c, a, b, s, t)]
    graph = rewritten(inputs, outputs, BLAS_RULES)
    scalars = {"mul", "true_div", "neg", "cast", "reciprocal"}
    left = [node for node in graph.toposort() if node.outputs[0].ndim == 2]
    assert kinds(graph, *scalars, "ShapeI") == ["Gemm"]
    assert all(str(node.op).startswith(("Gemm", "DimShuffle")) for node in left)
    for n in (3, 1, 0):
        values = [sample((n, n), dtype) for _ in range(3)] + [sample((), dtype) for _ in range(2)]
        same_values(inputs, outputs, graph, values, TOLERANCE[dtype], TOLERANCE[dtype])


def test_transposes_are_absorbed():
    c, a, b = T.dmatrices("c", "a", "b")
    for out, op in (
        (c + T.dot(a.T, b), Gemm(trans_a=True)),
        (c + T.dot(a, b.T), Gemm(trans_b=True)),
        (c + T.dot(a, b).T, Gemm(trans_a=True, trans_b=True)),
        (c + T.dot(a.T, b).T, Gemm(trans_a=True)),
    ):
        graph = rewritten([c, a, b], [out], BLAS_RULES)
        assert [node.op for node in graph.toposort()] == [op]


def test_the_step_of_gradient_descent_is_one_gemm():
    w, x, d, rate = T.dmatrix("w"), T.dmatrix("x"), T.dmatrix("d"), T.dscalar("rate")
    graph = rewritten([w, x, d, rate], [w - rate * T.dot(x.T, d)], BLAS_RULES)
    assert names(graph) == ["mul", "Gemm{trans_a}"]
    momentum = rewritten([w, x, d, rate], [0.9 * w - rate * T.dot(x.T, d)], BLAS_RULES)
    assert names(momentum) == ["mul", "Gemm{trans_a}"]
    cost = T.sqr(T.dot(x, w) - d).sum()
    outputs = [w - rate * symcomp.grad(cost, w)]
    whole = rewritten([w, x, d, rate], outputs, BLAS_RULES)
    assert names(whole).count("Gemm{trans_a}") == 1 and "Dot" not in names(whole)
    values = [sample(s, "float64") for s in ((3, 2), (5, 3), (5, 2), ())]
    same_values([w, x, d, rate], outputs, whole, values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(dtype):
    a = T.matrix("a", dtype=dtype)
    y, x = T.vector("y", dtype=dtype), T.vector("x", dtype=dtype)
    s = T.scalar("s", dtype=dtype)
    outputs = [y + s * T.dot(a, x), y - T.dot(x, a), 2.0 * y + T.dot(a.T, x) / s]
    inputs = [a, y, x, s]
    graph = rewritten(inputs, outputs, BLAS_RULES)
    assert kinds(graph, "mul", "true_div", "neg") == ["Gemv"] * 3
    for n in (3, 1, 0):
        values = [sample((n, n), dtype), *(sample((n,), dtype) for _ in range(2))]
        tolerance = TOLERANCE[dtype]
        same_values(inputs, outputs, graph, [*values, sample((), dtype)], tolerance, tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outer_products(dtype):
    c, s = T.matrix("c", dtype=dtype), T.scalar("s", dtype=dtype)
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    inputs, tolerance = [c, s, x, y], TOLERANCE[dtype]
    for out in (
        c - s * T.outer(x, y),
        c + T.outer(x, y) / 2.0,
        T.outer(s * x, y) + 3.0 * c,
        c.T - s * T.outer(y, x),
        c - T.outer(y, x).T,
    ):
        graph = rewritten(inputs, [out], BLAS_RULES)
        assert names(graph).count("Ger") == 1 and not {"add", "sub"} & set(names(graph))
        for n, m in ((2, 3), (1, 1), (0, 2), (2, 0)):
            shapes = ((n, m), (), (n,), (m,))
            values = [sample(shape, dtype) for shape in shapes]
            same_values(inputs, [out], graph, values, tolerance, tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks(dtype):
    c, a, b = (T.tensor3(name, dtype=dtype) for name in "cab")
    s = T.scalar("s", dtype=dtype)
    product = T.batched_dot(a, b)
    outputs = [c - s * product, c + T.batched_dot(a.dimshuffle(0, 2, 1), b).dimshuffle(0, 2, 1)]
    graph = rewritten([c, a, b, s], outputs, BLAS_RULES)
    assert kinds(graph, "mul", "neg") == ["BatchedGemm", "BatchedGemm"]
    for n in (2, 0):
        values = [sample((n, 3, 3), dtype) for _ in range(3)] + [sample((), dtype)]
        same_values([c, a, b, s], outputs, graph, values, TOLERANCE[dtype], TOLERANCE[dtype])


def test_scaled_products():
    a, b, s = T.dmatrix("a"), T.dmatrix("b"), T.dscalar("s")
    outputs = [T.exp(-s * T.dot(a, b.T) / 2.0), T.exp((3.0 * T.dot(a, b)).T)]
    graph = rewritten([a, b, s], outputs, BLAS_RULES)
    assert kinds(graph, "mul", "neg") == ["ScaledDot", "ScaledDot", "exp", "exp"]
    scaled = [n.outputs[0] for n in graph.toposort() if str(n.op) in ("mul", "neg")]
    assert all(n == 1 for v in scaled for n in v.type.shape)
    values = [sample((3, 3), "float64"), sample((3, 3), "float64"), sample((), "float64")]
    same_values([a, b, s], outputs, graph, values)


def test_under_inserted_axes():
    c, a, b = T.dtensor3("c"), T.dmatrix("a"), T.dmatrix("b")
    middle = T.tensor("m", dtype="float64", shape=(None, 1, None))
    outputs = [middle - 2.0 * T.dot(a, b).dimshuffle(0, "x", 1)]
    graph = rewritten([middle, a, b], outputs, BLAS_RULES)
    assert kinds(graph) == ["Gemm"]
    values = [sample(s, "float64") for s in ((2, 1, 4), (2, 3), (3, 4))]
    same_values([middle, a, b], outputs, graph, values)
    stretched = rewritten([c, a, b], [c - T.dot(a, b).dimshuffle(0, "x", 1)], BLAS_RULES)
    assert "Gemm" not in names(stretched)
    row, v = T.drow("r"), T.dvector("v")
    outputs = [row + T.dot(a, v).dimshuffle("x", 0)]
    graph = rewritten([row, a, v], outputs, BLAS_RULES)
    assert kinds(graph) == ["Gemv"]
    values = [sample(s, "float64") for s in ((1, 2), (2, 3), (3,))]
    same_values([row, a, v], outputs, graph, values)


def test_sums_of_several_products():
    c, a, b, v = T.dmatrix("c"), T.dmatrix("a"), T.dmatrix("b"), T.dvector("v")
    outputs = [T.tanh(T.dot(a, b) + T.dot(b, a) + c - T.dot(c, c) + v)]
    graph = rewritten([c, a, b, v], outputs, BLAS_RULES)
    assert kinds(graph) == ["Gemm", "Gemm", "Gemm", "add", "tanh"] or (
        kinds(graph).count("Gemm") == 2 and kinds(graph).count("Dot") == 1
    )
    values = [sample((3, 3), "float64") for _ in range(3)] + [sample((3,), "float64")]
    same_values([c, a, b, v], outputs, graph, values)


def refused():
    c, a, b, v = T.dmatrix("c"), T.dmatrix("a"), T.dmatrix("b"), T.dvector("v")
    i, j = T.lmatrix("i"), T.lmatrix("j")
    f, g = T.fmatrix("f"), T.fmatrix("g")
    product = T.dot(a, b)
    known = T.tensor("k", dtype="float64", shape=(1, None))
    return {
        "used twice": ([c, a, b], [c + product, T.exp(product)]),
        "shown": ([c, a, b], [c + product, product]),
        "twice in one sum": ([a, b], [product + product]),
        "integers": ([i, j], [i + T.dot(i, j)]),
        "mixed dtypes": ([c, f, g], [c + T.dot(f, g)]),
        "a row is stretched": ([v, a, b], [product + v]),
        "the product is stretched": ([c, known, b], [c + T.dot(known, b)]),
        "float16": ([x := T.matrix("x", dtype="float16")], [x + T.dot(x, x)]),
        "of vectors": ([v], [v.dimshuffle() if v.ndim == 0 else v[0] + T.dot(v, v)]),
    }


@pytest.mark.parametrize("case", refused())
def test_where_it_does_not_apply(case):
    inputs, outputs = refused()[case]
    graph = rewritten(inputs, outputs, BLAS_RULES)
    assert not {"Gemm", "Gemv", "Ger", "BatchedGemm"} & set(kinds(graph))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(5))
def test_nothing_hides_nan_or_infinity(bad, place):
    """Also where a scalar is 0 in the call, which BLAS would take for nothing to do."""
    c, a, b = T.dmatrices("c", "a", "b")
    s, t = T.dscalars("s", "t")
    inputs = [c, a, b, s, t]
    products = [T.dot(a, b), T.dot(b, a), T.dot(a.T, b), T.dot(b.T, a)]
    terms = [s * products[0], s * products[1], products[2] / t, 0.0 * products[3]]
    outputs = [t * c + terms[0], terms[1], c - terms[2], terms[3] + c]
    graph = rewritten(inputs, outputs, BLAS_RULES)
    assert {"Gemm", "ScaledDot"} <= set(kinds(graph))
    for zeros in ((), (3,), (4,), (3, 4)):
        values = [np.ones((3, 3)) for _ in range(3)] + [np.array(0.5), np.array(2.0)]
        for zero in zeros:
            values[zero] = np.array(0.0)
        values[place] = np.array(values[place])
        values[place][(0,) * values[place].ndim] = bad
        same_values(inputs, outputs, graph, values)


def test_extreme_factors():
    c, a, b = T.dmatrices("c", "a", "b")
    graph = rewritten([c, a, b], [c + 1e200 * (1e200 * T.dot(a, b))], BLAS_RULES)
    values = [np.ones((2, 2)), np.full((2, 2), 1e-150), np.full((2, 2), 1e-150)]
    same_values([c, a, b], [c + 1e200 * (1e200 * T.dot(a, b))], graph, values)
    f, g = T.fmatrices("f", "g")
    small = [f + 1e-40 * (1e-20 * T.dot(f, g))]
    graph = rewritten([f, g], small, BLAS_RULES)
    ones = np.ones((2, 2), np.float32)
    same_values([f, g], small, graph, [ones, ones], 1e-6)


def test_shapes_that_do_not_fit_stay_errors():
    c, a, b = T.dmatrices("c", "a", "b")
    graph = rewritten([c, a, b], [c + T.dot(a, b)], BLAS_RULES)
    for shapes in (((2, 2), (2, 3), (2, 2)), ((1, 2), (2, 3), (3, 2)), ((3, 2), (2, 3), (3, 2))):
        with pytest.raises(ShapeError, match="Gemm: the shapes do not fit"):
            run(graph, [np.ones(s) for s in shapes])


def test_dtypes_and_static_shapes_are_kept():
    c = T.tensor("c", dtype="float32", shape=(None, 4))
    a = T.tensor("a", dtype="float32", shape=(3, None))
    b = T.tensor("b", dtype="float32", shape=(None, None))
    out = c + T.dot(a, b)
    graph = rewritten([c, a, b], [out], BLAS_RULES)
    assert graph.outputs[0].type == out.type == T.tensor("z", dtype="float32", shape=(3, 4)).type
