"""Jacobians and Hessians: products of all rows at once, or loops in the machine."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.autodiff.maprows import MapRows
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.scan.op import Scan
from symcomp.scan.rules import SCAN_RULES

RNG = np.random.default_rng(0)
X, A, B = RNG.normal(size=4), RNG.normal(size=(3, 4)), RNG.normal(size=(5, 3))
x, a, b = T.dvector("x"), T.dmatrix("a"), T.dmatrix("b")
VALUES = {x: X, a: A, b: B}


def rewritten(outputs: list[Any], values: Any = VALUES) -> FunctionGraph:
    """Return the graph after the rules, checked to compute the same as MapRows."""
    before = evaluate(outputs, values)
    graph = FunctionGraph(list(values), outputs)
    firings = Engine(graph, SCAN_RULES + CANONICALIZE, "scan", on_error="raise").run()
    assert "scan_of_map_rows" in {firing.rule for firing in firings}
    after = evaluate(graph.outputs, dict(zip(graph.inputs, values.values(), strict=True)))
    for one, two in zip(before, after, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    return graph


def loops(graph: FunctionGraph) -> list[Any]:
    """Return the nodes that iterate over rows."""
    return [node for node in graph.toposort() if isinstance(node.op, Scan | MapRows)]


@pytest.mark.parametrize(
    "build",
    [
        lambda: T.sin(x) * x.sum(),
        lambda: T.dot(a, x),
        lambda: T.tanh(T.dot(b, T.tanh(T.dot(a, x)))),
        lambda: T.nnet.softmax(T.dot(a, x)),
        lambda: T.log(T.nnet.softmax(a * x)),
        lambda: T.cumsum(T.sin(x)),
        lambda: T.concatenate([x[1:] ** 2, T.exp(x)]),
        lambda: T.set_subtensor((x**2)[1:3], T.sin(x[:2])),
        lambda: T.outer(x, T.dot(a, x)),
    ],
)
def test_jacobians_for_all_rows_at_once(build: Any) -> None:
    jacobian = symcomp.gradient.jacobian(build(), x)
    assert loops(rewritten([jacobian])) == []


def test_jacobians_of_several_variables() -> None:
    y = T.tanh(T.dot(a, x))
    rewritten(symcomp.gradient.jacobian(y, [x, a]))


def test_hessian_is_made_of_products() -> None:
    cost = (T.tanh(T.dot(a, x)) ** 3).sum()
    graph = rewritten([symcomp.gradient.hessian(cost, x)])
    assert loops(graph) == []
    products = [node for node in graph.toposort() if str(node.op) == "Dot"]
    assert all(node.outputs[0].ndim <= 2 for node in products)


def test_without_rows_the_shape_is_right() -> None:
    k = T.lscalar("k")
    for y in (T.sin(x[:k]), T.tanh(T.dot(a[:k], x)), T.sort(x)[:k] ** 2):
        jacobian = symcomp.gradient.jacobian(y, x)
        f = symcomp.function([x, a, k], jacobian, on_unused_input="ignore")
        assert f(X, A, 0).shape == (0, 4)
        assert f(X, A, 2).shape == (2, 4)


def test_rows_that_are_not_known_for_all_at_once_are_a_loop() -> None:
    y = T.slinalg.solve(T.eye(4) + T.outer(x, x), x)
    graph = rewritten([symcomp.gradient.jacobian(y, x)])
    assert {type(node.op) for node in loops(graph)} == {Scan}


@pytest.mark.parametrize(
    "build",
    [lambda: T.logsumexp(T.outer(x, x), axis=0), lambda: (T.sin(a) * x).sum(axis=1) / x[0] ** 2],
)
def test_rows_that_take_a_matrix_each_are_a_loop(build: Any) -> None:
    graph = rewritten([symcomp.gradient.jacobian(build(), x)])
    assert {type(node.op) for node in loops(graph)} == {Scan}
    made = [y.type.shape for node in graph.toposort() for y in node.outputs]
    assert all(sum(n != 1 for n in shape) < 3 for shape in made)


def test_jacobian_of_a_loop() -> None:
    y, _ = symcomp.scan(lambda h: T.tanh(T.dot(h, a) + 1), None, x[:3], n_steps=4)
    square = {x: X, a: A[:, :3]}
    graph = rewritten([symcomp.gradient.jacobian(y[-1], x)], square)
    assert not any(isinstance(node.op, MapRows) for node in graph.toposort())


def test_loops_in_rows_are_one_loop_of_all_rows() -> None:
    """Where the loops give their last state alone."""
    n = T.lscalar("n")
    for steps in (4, n):
        y, _ = symcomp.scan(lambda h: T.tanh(T.dot(h, a) + 1), None, x[:3], n_steps=steps)
        values = {x: X, a: A[:, :3], n: np.asarray(3)}
        graph = rewritten([symcomp.gradient.jacobian(y[-1], x)], values)
        forwards, backwards = loops(graph)
        assert (forwards.op.layout.n_carried, backwards.op.layout.n_carried) == (0, 1)
        assert backwards.outputs[0].ndim == 2


def test_loops_over_rows_of_examples() -> None:
    """Sequences, captured values and starts, each of the rows or the same for all."""
    t = T.dtensor3("t")
    values = {t: RNG.normal(size=(2, 5, 3)), a: A[:, :3], x: X[:3]}

    def last(rows: Any, start: Any, scale: Any) -> Any:
        step = lambda r, h, k: [T.tanh(r + T.dot(h, a) * scale), k + r.sum()]  # noqa: E731
        (h, k), _ = symcomp.scan(step, rows, [start, T.constant(0.0)])
        return h[-1], k[-1]

    (hs, ks), _ = symcomp.map(lambda rows: list(last(rows, x, 1.0)), t)
    rewritten_loop = scans_after([hs, ks], values)
    assert [node.outputs[0].ndim for node in rewritten_loop] == [2]
    assert len(scans_after([symcomp.map(lambda rows: last(rows, x, 1.0)[0], t)[0]], values)) == 1
    # The start alone differs, or a factor.
    y, _ = symcomp.map(lambda start: last(t[0], start, 1.0)[0], a)
    assert len(scans_after([y], values)) == 1
    y, _ = symcomp.map(lambda scale: last(t[0], x, scale)[0], x)
    assert len(scans_after([y], values)) == 1


def scans_after(outputs: list[Any], values: Any) -> list[Any]:
    """Return the loops of a compiled function that was checked to compute the same."""
    f = symcomp.function(list(values), outputs, on_unused_input="ignore")
    for found, wanted in zip(f(*values.values()), evaluate(outputs, values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


def test_derivatives_of_jacobians() -> None:
    jacobian = symcomp.gradient.jacobian(T.tanh(T.dot(a, x)) * x[:3], x)
    cost = (jacobian**2).sum()
    outputs = [*symcomp.grad(cost, [x, a]), symcomp.Rop(cost, x, T.cos(x))]
    rewritten([*outputs, symcomp.gradient.hessian(cost, x)])


def test_float32_stays() -> None:
    z = T.fvector("z")
    jacobian = symcomp.gradient.jacobian(T.exp(z) * z.sum(), z)
    f = symcomp.function([z], jacobian)
    at = X.astype("float32")
    wanted = np.diag(np.exp(at) * at.sum()) + np.outer(np.exp(at), np.ones(4))
    assert f(at).dtype == np.float32
    np.testing.assert_allclose(f(at), wanted, rtol=1e-5)


def test_a_row_out_of_range_is_still_an_error() -> None:
    i, w = T.lvector("i"), T.dmatrix("w")
    rows, _ = symcomp.scan(lambda i: T.exp(w[i]), i)
    f = symcomp.function([i, w], rows)
    np.testing.assert_allclose(f([1, -1], A), np.exp(A[[1, -1]]))
    with pytest.raises(IndexError):
        f([0, 3], A)


def test_writes_to_copies_of_one_tensor() -> None:
    i, w = T.lvector("i"), T.dvector("w")
    for write in (T.set_subtensor, T.inc_subtensor):
        rows, _ = symcomp.scan(lambda i, w, write=write: write(x[i], w), [i, w])
        fixed, _ = symcomp.scan(lambda i, write=write: write(a[i], x), i)
        f = symcomp.function([x, a, i, w], [rows, fixed])
        assert not any(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort())
        found, matrices = f(X, A, [2, 0, -1], [10.0, 20.0, 30.0])
        wanted, wide = np.tile(X, (3, 1)), np.tile(A, (3, 1, 1))
        added = write is T.inc_subtensor
        for t, (k, value) in enumerate(zip([2, 0, -1], [10.0, 20.0, 30.0], strict=True)):
            wanted[t, k] = wanted[t, k] * added + value
            wide[t, k] = wide[t, k] * added + X
        np.testing.assert_allclose(found, wanted)
        np.testing.assert_allclose(matrices, wide)
