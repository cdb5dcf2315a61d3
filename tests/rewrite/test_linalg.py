"""The rules of linear algebra: before, after, both compute the same; what must not vanish."""

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.autodiff.check import check_derivatives
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.errors import ShapeError
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.linalg import LINALG_RULES, LONGEST, matrix_factors, triangle_of
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.ops.matrix_values import (
    normal,
    positive,
    same_numbers,  # noqa: F401  (a fixture)
)
from symcomp.tests.ops.test_stable_linalg import conditioned, exact, exact_inverse, units_off

L, S = T.nlinalg, T.slinalg


def rewritten(inputs, outputs, rules=LINALG_RULES):
    """Return the rewritten graph, and the names of the rules that fired."""
    graph = FunctionGraph(inputs, outputs)
    firings = Engine(graph, rules, on_error="raise").run()
    return graph, {firing.rule for firing in firings}


def names(graph):
    """Return the ops of a graph, elementwise functions by name."""
    return [str(node.op).split("{")[0] for node in graph.toposort()]


def values(graph, *arrays):
    """Compute the outputs for these inputs."""
    with np.errstate(all="ignore"):
        return evaluate(graph.outputs, dict(zip(graph.inputs, arrays, strict=True)))


def check_rule(rule, inputs, output, *arrays, rtol=1e-10):
    """Check that the rule fires, alone and after canonicalization, and keeps the value.

    Returns the names of the ops after the rule alone.
    """
    before = values(FunctionGraph(inputs, [output]), *arrays)
    graph, fired = rewritten(inputs, [output])
    assert rule in fired
    np.testing.assert_allclose(values(graph, *arrays), before, rtol=rtol, atol=1e-13)
    pipeline = FunctionGraph(inputs, [output])
    Engine(pipeline, CANONICALIZE, on_error="raise").run()
    everything = RuleSet([*STABILIZE, *LINALG_RULES, *CANONICALIZE])
    fired = {f.rule for f in Engine(pipeline, everything, on_error="raise").run()}
    assert rule in fired
    np.testing.assert_allclose(values(pipeline, *arrays), before, rtol=rtol, atol=1e-13)
    return names(graph)


A, B = T.dmatrices("A", "B")
X, Y = T.dvectors("x", "y")
K = T.dscalar("k")
a, b = conditioned(3, 10.0, seed=3) @ conditioned(3, 10.0, seed=3).T, conditioned(3, 10.0, seed=4)
b[0] *= np.sign(np.linalg.det(b))
x, y = np.random.default_rng(3).normal(size=(2, 3))
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
FIXED = T.tensor("float64", shape=(3, 3), name="fixed")

# -- logarithms of determinants

LOGARITHMS = {
    "det": lambda d, e, k: d,
    "product": lambda d, e, k: d * e,
    "quotient": lambda d, e, k: d / e,
    "square": lambda d, e, k: d**2,
    "reciprocal": lambda d, e, k: 1 / d,
    "root": lambda d, e, k: T.sqrt(d),
    "modulus": lambda d, e, k: T.abs_(d),
    "factor": lambda d, e, k: k * d,
    "constant": lambda d, e, k: 3.0 * d,
    "negative constant": lambda d, e, k: -3.0 * d,
    "modulus of all": lambda d, e, k: T.abs_(-k * d**3 / e),
    "reciprocal square": lambda d, e, k: k / T.sqr(d),
}


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms(name, sign):
    output = T.log(LOGARITHMS[name](L.det(A), L.det(B), K))
    first = a.copy()
    first[0] *= sign
    for k in (1.7, -1.7):
        check_rule("log_of_determinant", [A, B, K], output, first, b, np.asarray(k))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_beyond_the_range(name, scale):
    output = T.log(LOGARITHMS[name](L.det(A), L.det(B), K))
    graph, _ = rewritten([A, B, K], [output])
    (found,) = values(graph, scale * a, scale * b, np.asarray(1.7))
    powers = {"product": 2, "quotient": 0, "square": 2, "reciprocal": -1, "root": 0.5}
    powers |= {"modulus of all": 2, "reciprocal square": -2}
    (near,) = values(graph, a, b, np.asarray(1.7))
    np.testing.assert_allclose(
        found, near + 3 * powers.get(name, 1) * np.log(scale), rtol=1e-13, atol=1e-12
    )


def test_log_det_of_stacks_and_of_other_dtypes():
    stack = T.dtensor3("s")
    values_of_stack = normal(2, 3, 3)
    output = T.log(L.det(stack).dimshuffle(0, "x") ** 2 * T.constant([[1.0, 2.0]]))
    check_rule("log_of_determinant", [stack], output, values_of_stack)
    z = T.zmatrix("z")
    check_rule("log_of_determinant", [z], T.log(L.det(z)), normal(3, 3, dtype="complex128"))
    check_rule("log_of_determinant", [z], T.log(abs(L.det(z))), normal(3, 3, dtype="complex128"))
    for dtype in ("float32", "float16"):
        v = T.matrix("v", dtype=dtype)
        kind = np.dtype(dtype)
        graph, fired = rewritten([v], [T.log(L.det(v))])
        (found,) = values(graph, (1e-3 * np.eye(30)).astype(dtype))
        assert "log_of_determinant" in fired and found.dtype == kind
        np.testing.assert_allclose(found, 30 * np.log(1e-3), rtol=1e-3)
    whole = T.lmatrix("n")
    check_rule("log_of_determinant", [whole], T.log(L.det(whole)), np.array([[2, 1], [1, 3]]))


def test_log_det_of_singular_matrices():
    graph, _ = rewritten([A, B], [T.log(L.det(A)), T.log(1 / L.det(A)), T.log(L.det(A) / L.det(B))])
    found = values(graph, SINGULAR, SINGULAR)
    np.testing.assert_array_equal(found, [-np.inf, np.inf, np.nan])
    found = values(graph, np.full((2, 2), np.nan), np.eye(2))
    np.testing.assert_array_equal(found, [np.nan] * 3)


@pytest.mark.parametrize(
    "product",
    [T.dot, T.matmul, lambda p, q: T.dot(p, q).T, lambda p, q: T.dot(q.T, p.T)],
)
def test_log_det_of_products(product):
    ops = check_rule("log_of_determinant", [A, B], T.log(L.det(product(A, B))), a, b)
    assert "ifelse" in ops
    graph, _ = rewritten([A, B], [T.log(L.det(product(A, B)))])
    (found,) = values(graph, 1e-110 * a, 1e-105 * b)
    wanted = np.linalg.slogdet(a)[1] + np.linalg.slogdet(b)[1] - 645 * np.log(10)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    (found,) = values(graph, 1e-210 * np.ones((1, 1)), 1e-200 * np.ones((1, 1)))
    np.testing.assert_allclose(found, -410 * np.log(10), rtol=1e-15)
    # Rectangular factors whose product is square.
    oblong = normal(3, 5)
    (found,) = values(graph, oblong, oblong.T) if product in (T.dot, T.matmul) else (None,)
    if found is not None:
        np.testing.assert_allclose(found, np.linalg.slogdet(oblong @ oblong.T)[1], rtol=1e-12)


def test_log_det_of_products_known_to_be_square_or_not():
    ops = check_rule("log_of_determinant", [FIXED, B], T.log(L.det(T.dot(FIXED, B)) ** 2), a, b)
    assert "ifelse" not in ops  # B is square, or there is no determinant
    other = T.tensor("float64", shape=(3, 3))
    ops = check_rule("log_of_determinant", [FIXED, other], T.log(L.det(FIXED.dot(other))), a, b)
    assert "ifelse" not in ops and "Dot" not in ops
    oblong = T.tensor("float64", shape=(3, 5))
    ops = check_rule(
        "log_of_determinant", [oblong], T.log(L.det(oblong.dot(oblong.T))), normal(3, 5)
    )
    assert "ifelse" not in ops and "Dot" in ops


@pytest.mark.parametrize("static", [(3, 5), (None, None)])
def test_log_det_of_rectangular_factors_beyond_the_range(static):
    v = T.tensor("float64", shape=static)
    oblong = normal(3, 5)
    gram = oblong @ oblong.T
    graph, _ = rewritten([v], [T.log(L.det(v.dot(v.T)))])
    gradient = symcomp.grad(graph.outputs[0], graph.inputs[0])
    for power in (-250, 0, 250):
        scale = 10.0**power
        (found,) = values(graph, scale * oblong)
        wanted = np.linalg.slogdet(gram)[1] + 6 * power * np.log(10)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
        (slope,) = values(FunctionGraph(graph.inputs, [gradient]), scale * oblong)
        np.testing.assert_allclose(slope * scale, 2 * np.linalg.solve(gram, oblong), rtol=1e-9)


def test_log_det_of_three_factors():
    output = T.log(L.det(A.dot(B).dot(B.T)) ** 2)
    check_rule("log_of_determinant", [A, B], output, a, b)
    check_rule("log_of_determinant", [A, B], output, a, normal(3, 5))
    gradients, wide = symcomp.grad(output, [A, B]), normal(3, 5)
    graph, fired = rewritten([A, B], [output])
    assert "log_of_determinant" in fired
    after = symcomp.grad(graph.outputs[0], graph.inputs)
    found = values(FunctionGraph(graph.inputs, after), a, wide)
    wanted = values(FunctionGraph([A, B], gradients), a, wide)
    for z, t in zip(found, wanted, strict=True):
        np.testing.assert_allclose(z, t, rtol=1e-9)


def test_log_det_of_products_of_stacks():
    p, q = T.dtensor3("p"), T.dtensor3("q")
    output = T.log(abs(L.det(T.matmul(p, q))))
    check_rule("log_of_determinant", [p, q], output, normal(2, 3, 3), normal(2, 3, 3))
    check_rule("log_of_determinant", [p, q], output, normal(2, 3, 4), normal(2, 4, 3))


def test_products_that_do_not_fit_still_raise():
    graph, _ = rewritten([A, B], [T.log(L.det(A.dot(B)))])
    with pytest.raises(ShapeError):
        values(graph, np.eye(3), np.eye(2))
    with pytest.raises(ShapeError):
        values(graph, np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ShapeError):
        values(graph, np.eye(3), np.ones((3, 2)))
    p, q = T.dtensor3("p"), T.dtensor3("q")
    graph, _ = rewritten([p, q], [T.log(L.det(T.matmul(p, q)))])
    with pytest.raises(ShapeError):
        values(graph, np.ones((2, 3, 3)), np.ones((1, 3, 3)))


def test_log_det_of_cholesky_factors():
    c = S.cholesky(A)
    half = T.log(L.det(c))
    ops = check_rule("determinant_of_triangle", [A], half, a)
    assert "StableSLogDet" not in ops
    ops = check_rule("log_of_determinant", [A], T.log(L.det(c.dot(c.T))), a)
    assert "StableSLogDet" not in ops and ops.count("LogProd") == 2
    for output in (T.log(T.prod(T.diag(c)) ** 2), T.log(abs(T.prod(T.diag(c))))):
        everything = RuleSet([*STABILIZE, *LINALG_RULES, *CANONICALIZE])
        graph, fired = rewritten([A], [output], everything)
        assert "log_of_absolute_product" in fired
        small = 1e-3 * np.eye(300)
        times = 2 if output.owner.inputs[0].owner.op.scalar.name != "abs" else 1
        np.testing.assert_allclose(values(graph, small)[0], times * 150 * np.log(1e-3), rtol=1e-14)
        np.testing.assert_allclose(
            values(graph, a)[0], times * np.linalg.slogdet(a)[1] / 2, rtol=1e-13
        )


def test_log_det_of_an_inverse_raises_for_singular_matrices():
    output = T.log(L.det(A.dot(L.matrix_inverse(B)).dot(A)))
    check_rule("log_of_determinant", [A, B], output, a, b)
    graph, _ = rewritten([A, B], [output])
    with pytest.raises(np.linalg.LinAlgError):
        values(graph, np.eye(2), SINGULAR)


# -- determinants


def test_determinant_rules():
    assert check_rule("determinant_of_transpose", [B], L.det(B.T), b) == ["Det"]
    ops = check_rule("determinant_of_inverse", [B], L.det(L.matrix_inverse(B)), b)
    assert ops == ["Invertible", "Det", "reciprocal"]
    ops = check_rule("determinant_of_inverse", [B], L.det(L.matrix_inverse(B.T).T), b)
    assert ops == ["Invertible", "Det", "reciprocal"]
    for lower in (True, False):
        ops = check_rule("determinant_of_triangle", [A], L.det(S.cholesky(A, lower)), a)
        assert "Det" not in ops
    assert "Det" not in check_rule("determinant_of_triangle", [X], L.det(T.diag(X)), x)
    s = T.dtensor3("s")
    check_rule("determinant_of_transpose", [s], L.det(s.swapaxes(1, 2)), normal(2, 3, 3))
    check_rule("determinant_of_triangle", [A], L.det(T.alloc_diag(A, 0, 1, 2)), a)


def test_determinants_that_are_left():
    for output in (L.det(A), L.det(A.dot(B)), L.det(T.diag(X, 1)), L.det(T.tril(A))):
        inputs = [v for v in (A, B, X) if v in symcomp.core.walk.ancestors([output])]
        assert rewritten(inputs, [output])[1] <= {"merge", "constant_folding"}


def test_determinant_of_a_singular_inverse_raises():
    graph, _ = rewritten([A], [L.det(L.matrix_inverse(A))])
    with pytest.raises(np.linalg.LinAlgError):
        values(graph, SINGULAR)


# -- inverses

INV = L.matrix_inverse
PRODUCTS = {
    "inverse, vector": (lambda: INV(A).dot(X), ["StableSolve"]),
    "vector, inverse": (lambda: X.dot(INV(A)), ["DimShuffle", "StableSolve"]),
    "inverse, matrix": (lambda: INV(A).dot(B), ["StableSolve"]),
    "matrix, inverse": (lambda: B.dot(INV(A)), None),
    "transposed": (lambda: INV(A).T.dot(X), ["DimShuffle", "StableSolve"]),
    "of transpose": (lambda: INV(A.T).dot(X), None),
    "quadratic form": (lambda: X.dot(INV(A)).dot(Y), ["InverseForm"]),
    "quadratic form, other order": (lambda: X.dot(INV(A).dot(Y)), ["InverseForm"]),
    "inverse, inverse": (lambda: INV(A).dot(INV(B)), None),
    "trace": (lambda: L.trace(INV(A).dot(B)), None),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_systems_are_solved(name):
    build, wanted = PRODUCTS[name]
    inputs = [A, B, X, Y]
    ops = check_rule("solve_instead_of_inverse", inputs, build(), b, a, x, y)
    if wanted is not None:
        assert [op for op in ops if op in wanted or "Inverse" in op or op == "Dot"] == wanted or (
            wanted == ["InverseForm"] and "Dot" not in ops and "MatrixInverse" not in ops
        )
    if name != "inverse, inverse":
        assert "MatrixInverse" not in ops
    graph, _ = rewritten(inputs, [build()])
    with pytest.raises(np.linalg.LinAlgError):
        values(graph, SINGULAR, SINGULAR, np.ones(2), np.ones(2))
    with pytest.raises(ShapeError):
        values(graph, np.eye(2), np.eye(3), np.ones(3), np.ones(3))


def test_systems_of_complex_numbers_and_stacks():
    z, w = T.zmatrix("z"), T.zvector("w")
    m, v = normal(3, 3, dtype="complex128"), normal(3, dtype="complex128")
    adjoint = T.conj(INV(z).T)
    for output in (INV(z).dot(w), w.dot(INV(z)), adjoint.dot(w), T.conj(INV(z)).T.dot(w)):
        check_rule("solve_instead_of_inverse", [z, w], output, m, v)
    p, q = T.dtensor3("p"), T.dtensor3("q")
    for output in (T.matmul(INV(p), q), T.matmul(q, INV(p))):
        check_rule("solve_instead_of_inverse", [p, q], output, normal(2, 3, 3), normal(2, 3, 3))


def test_forms_of_rows_and_columns():
    column, row = T.col("c"), T.row("r")
    left, right = x[None, :], y[:, None]
    for output in (
        row.dot(INV(A)).dot(column), row.dot(INV(A).dot(column)), T.sum(row.T * INV(A).dot(column)),
        T.sum(row.dot(INV(A)) * column.T), column.T.dot(INV(A)).dot(row.T),
    ):  # fmt: skip
        ops = check_rule("solve_instead_of_inverse", [A, row, column], output, b, left, right)
        assert "InverseForm" in ops and "StableSolve" not in ops
    ops = check_rule("sum_with_solution", [A, X, Y], T.sum(X * INV(A).dot(Y)), b, x, y)
    assert "InverseForm" in ops and "StableSolve" not in ops
    outputs = [
        column.dot(row.dot(INV(A))),
        INV(A).dot(column).dot(row),
        T.sum(X * INV(A).dot(column)),
    ]
    outputs += [T.sum(A * INV(A).dot(B)), T.sum(K * INV(A).dot(X))]
    for output in outputs:
        inputs = [A, B, X, K, row, column]
        given = (b, a, x, np.asarray(2.0), left, right)
        assert "InverseForm" not in check_rule("solve_instead_of_inverse", inputs, output, *given)


def test_rows_of_solutions_are_no_forms():
    one, column, row = T.TensorType("float64", (1, 1))("one"), T.col("c"), T.row("r")
    given = np.array([[2.0]]), x[:, None], y[None, :]
    for matrix in (A, one):
        z = INV(matrix).dot(row)
        for output in (T.sum(z * column.T), z.dot(column)):
            ops = check_rule("solve_instead_of_inverse", [matrix, column, row], output, *given)
            assert "StableSolve" in ops and "InverseForm" not in ops


def test_a_solution_used_elsewhere_is_computed_once():
    v = INV(A).dot(X)
    graph, fired = rewritten([A, X, Y], [Y.dot(v), v])
    assert "inverse_form" not in fired and names(graph) == ["StableSolve", "Dot"]


def test_users_systems_are_left():
    graph, fired = rewritten([A, X, Y], [Y.dot(S.solve(A, X))])
    assert not fired and names(graph) == ["Solve", "Dot"]


def test_inverses():
    assert check_rule("inverse_of_inverse", [B], INV(INV(B)), b) == ["Invertible"]
    assert check_rule("inverse_of_transpose", [B], INV(B.T), b) == ["MatrixInverse", "DimShuffle"]
    ops = check_rule("inverse_of_inverse", [B], INV(INV(B.T).T), b)
    assert "MatrixInverse" not in ops
    graph, _ = rewritten([A], [INV(INV(A))])
    with pytest.raises(np.linalg.LinAlgError):
        values(graph, SINGULAR)
    assert np.isnan(values(graph, np.array([[np.nan, 1.0], [0.0, 1.0]]))[0]).all()


# -- triangles


@pytest.mark.parametrize("right", [X, B], ids=["vector", "matrix"])
def test_triangular_systems(right):
    value = x if right is X else b
    c, upper = S.cholesky(A), S.cholesky(A, lower=False)
    for matrix in (c, upper, c.T, T.tril(A), T.triu(A), T.tril(A).T, L.qr(A)[1], T.tril(A, -0)):
        output = S.solve(matrix, right)
        ops = check_rule("solve_triangle", [A, right], output, a, value)
        assert ops.count("Solve") == 1
        graph, _ = rewritten([A, right], [output])
        (node,) = [n for n in graph.toposort() if str(n.op).startswith("Solve")]
        assert node.op.is_triangular
    ops = check_rule("solve_triangle", [A, right], INV(c).dot(right), a, value)
    assert "MatrixInverse" not in ops
    check_rule("solve_triangle", [X, right], S.solve(T.diag(X), right), x, value)


def test_systems_with_products_of_triangles():
    c = S.cholesky(A)
    ops = check_rule("solve_product_of_triangles", [A, X], S.solve(c.dot(c.T), X), a, x)
    assert ops.count("Solve") == 2 and "Dot" not in ops
    ops = check_rule("solve_product_of_triangles", [A, X], INV(c.dot(c.T)).dot(X), a, x)
    assert ops.count("Solve") == 2 and "MatrixInverse" not in ops
    u = S.cholesky(A, lower=False)
    check_rule("solve_product_of_triangles", [A, B], S.solve(u.T.dot(u), B), a, b)
    z = T.zmatrix("z")
    c = S.cholesky(z)
    value = positive(3, 3, dtype="complex128")
    output = S.solve(c.dot(T.conj(c).T), X)
    check_rule("solve_product_of_triangles", [z, X], output, value, x)


def test_systems_with_inverses():
    output = S.solve(INV(A), X)
    assert check_rule("solve_with_inverse", [A, X], output, b, x) == ["Invertible", "Dot"]
    graph, _ = rewritten([A, X], [output])
    with pytest.raises(np.linalg.LinAlgError):
        values(graph, SINGULAR, np.ones(2))
    p, q = T.dtensor3("p"), T.dtensor3("q")
    check_rule("solve_with_inverse", [p, q], S.solve(INV(p), q), normal(2, 3, 3), normal(2, 3, 3))


def test_what_is_no_triangle():
    for m in (A, T.tril(A, 1), T.triu(A, -1), T.diag(X, 1), A * T.eye(3), S.cholesky(A) + 1):
        assert triangle_of(m) is None
    assert triangle_of(T.tril(A, -1)) == "lower" and triangle_of(T.triu(A, 2)) == "upper"


def test_long_products_of_matrices():
    product = A
    for _ in range(40):
        product = product.dot(A)
    assert len(matrix_factors(product)) == LONGEST
    graph, _ = rewritten([A], [T.log(L.det(product))])
    small = 0.1 * np.eye(3)
    np.testing.assert_allclose(values(graph, small)[0], 41 * np.linalg.slogdet(small)[1])


# -- to the last digits


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
@pytest.mark.parametrize("condition", [3.0, 1e4])
@pytest.mark.parametrize("n", [3, 8])
def test_within_four_units_of_the_truth(n, condition, scale):
    first, second = conditioned(n, condition, scale, seed=n), conditioned(n, condition, seed=n + 1)
    p, q = np.random.default_rng(n).normal(size=(2, n))
    with mpmath.workdps(60):
        logs = [mpmath.log(abs(mpmath.det(mpmath.matrix(m.tolist())))) for m in (first, second)]
        form = exact(p) @ exact_inverse(first) @ exact(q)
        outputs = [T.log(abs(L.det(A))), T.log(abs(L.det(A.dot(B)))), X.dot(INV(A).dot(Y))]
        graph, _ = rewritten([A, B, X, Y], outputs)
        found = values(graph, first, second, p, q)
        for got, true in zip(found, [logs[0], sum(logs), form], strict=True):
            assert units_off(got, true) < 4


@pytest.mark.parametrize("name", LOGARITHMS)
def test_derivatives_of_logarithms(name):
    output = T.log(LOGARITHMS[name](L.det(A), L.det(B), K))
    graph, _ = rewritten([A, B, K], [output])
    arrays = (a, b, np.asarray(1.7))
    if name != "negative constant":
        check_derivatives(graph.inputs, graph.outputs[0], arrays, np.random.default_rng(0))


def test_derivatives_of_complex_logarithms():
    z, w = T.zmatrices("z", "w")
    arrays = (normal(3, 3, dtype="complex128"), normal(3, 3, dtype="complex128"))
    for output in (T.log(L.det(z)) * L.det(w), T.log(abs(L.det(z.dot(w)))), T.log(L.det(z.dot(w)))):
        graph, fired = rewritten([z, w], [output])
        assert "log_of_determinant" in fired
        check_derivatives(graph.inputs, graph.outputs[0], arrays, np.random.default_rng(0))
        wide = (normal(2, 3, dtype="complex128"), normal(3, 2, dtype="complex128"))
        if "ifelse" in names(graph):
            check_derivatives(graph.inputs, graph.outputs[0], wide, np.random.default_rng(0))


def test_derivatives_within_four_units_of_the_truth():
    first, second = conditioned(4, 100.0, 1e120, seed=1), conditioned(4, 100.0, 1e-170, seed=2)
    p, q = np.random.default_rng(2).normal(size=(2, 4))
    logarithm, form = T.log(L.det(A.dot(B)) ** 2), X.dot(INV(A).dot(Y))
    graph, _ = rewritten([A, B, X, Y], [logarithm, form])
    log, bilinear = graph.outputs
    found = values(
        FunctionGraph(
            graph.inputs,
            [
                *symcomp.grad(log, graph.inputs[:2]),
                *symcomp.grad(bilinear, [graph.inputs[i] for i in (0, 2, 3)]),
                symcomp.gradient.Rop(bilinear, graph.inputs[0], graph.inputs[1]),
            ],
        ),
        *(first, second, p, q),
    )
    with mpmath.workdps(60):
        inverse, other = exact_inverse(first), exact_inverse(second)
        u, v = exact(p) @ inverse, inverse @ exact(q)
        wanted = [2 * inverse.T, 2 * other.T, -np.outer(u, v), v, u, -u @ exact(second) @ v]
        for got, true in zip(found, wanted, strict=True):
            assert units_off(got, true) < 4


def test_every_rule_says_why():
    for rule in LINALG_RULES:
        assert rule.why and rule.before_after and "linalg" in rule.tags
