"""Losses of labels: index arrays become GatherLabels and ScatterLabels, fused with other passes."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.errors import ShapeError
from symcomp.ops.formulas.fused import Fused
from symcomp.rewrite.phases import rewrite
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine

LABEL_OPS = ("GatherLabels", "ScatterLabels")


def picked(inputs, outputs):
    graph = FunctionGraph(inputs, outputs)
    trace = rewrite(graph, lambda tags: "fast_run" in tags)
    return graph, [firing.rule for firing in trace.firings]


def run(graph, *values):
    return PythonMachine(lower(graph)).run(values)


def functions(graph):
    """Return the names of the functions that fused and other ops compute."""
    names = []
    for node in graph.toposort():
        steps = node.op.formula.steps if isinstance(node.op, Fused) else ()
        names += [type(step.function).__name__ for step in steps] or [type(node.op).__name__]
    return names


def classifier():
    x, w, b = T.dmatrix("x"), T.dmatrix("w"), T.dvector("b")
    labels = T.lvector("labels")
    p = T.nnet.softmax(T.dot(x, w) + b)
    loss = T.nnet.categorical_crossentropy(p, labels).mean()
    return [x, w, b, labels], [loss, *symcomp.grad(loss, [w, b])]


@pytest.mark.parametrize("n", [1, 7, 20000])
def test_cross_entropy_of_labels_and_its_gradient(n):
    inputs, outputs = classifier()
    graph, rules = picked(inputs, outputs)
    assert rules.count("gather_labels") == 1 and rules.count("scatter_labels") == 1
    names = functions(graph)
    assert "GatherLabels" in names and "ScatterLabels" in names
    assert not {"Subtensor", "IncSubtensor", "Alloc", "Arange"} & {*names}
    assert not any(type(node.op).__name__ in LABEL_OPS for node in graph.nodes)
    rng = np.random.default_rng(0)
    shapes = ((n, 5), (5, 10), (10,))
    values = [*(rng.standard_normal(shape) for shape in shapes), rng.integers(0, 10, n)]
    plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


def test_errors_stay():
    inputs, outputs = classifier()
    graph, _ = picked(inputs, outputs)
    values = [np.ones((4, 5)), np.ones((5, 3)), np.ones(3)]
    with pytest.raises(IndexError, match="is 3, out of bounds: there are 3 classes"):
        run(graph, *values, np.array([0, 3, 1, 1]))
    with pytest.raises(ShapeError, match="categorical_crossentropy"):
        run(graph, *values, np.array([0, 1, 1]))


def test_lengths_that_are_not_known_to_agree():
    # One label would be stretched to all rows.
    x, labels = T.dmatrix("x"), T.lvector("labels")
    z = T.exp(x)[T.arange(x.shape[0]), labels]
    graph, rules = picked([x, labels], [z])
    assert "gather_labels" not in rules
    np.testing.assert_array_equal(run(graph, np.zeros((3, 2)), np.array([1]))[0], np.ones(3))


@pytest.mark.parametrize("rows", [lambda x: T.arange(x.shape[0])[::-1], lambda x: T.arange(1, 3)])
def test_other_rows_stay(rows):
    x = T.tensor("float64", shape=(2, 5), name="x")
    z = T.exp(x)[rows(x) - 0, T.constant([1, 0])]
    _, rules = picked([x], [z])
    assert "gather_labels" not in rules


def test_known_lengths():
    x = T.tensor("float64", shape=(2, 5), name="x")
    graph, rules = picked([x], [T.exp(x)[T.arange(2), T.constant([1, -1])]])
    assert "gather_labels" in rules
    value = np.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(run(graph, value)[0], np.exp([1.0, 9.0]))


# Row indices in programs: as many rows as labels, or as a minibatch has.
ROWS = {"labels": lambda labels: T.arange(labels.shape[0]), "number": lambda labels: T.arange(4)}


def loss_of_rows(rows, dtype="int64", weights=None):
    x, labels = T.dmatrix("x"), T.vector("labels", dtype=dtype)
    losses = -T.log(T.nnet.softmax(2 * x))[ROWS[rows](labels), labels]
    loss = losses.mean() if weights is None else (losses * weights).sum()
    return [x, labels], [loss, symcomp.grad(loss, x)]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
@pytest.mark.parametrize("n", [4, 6])
def test_some_of_the_rows(rows, dtype, n):
    inputs, outputs = loss_of_rows(rows, dtype)
    graph, rules = picked(inputs, outputs)
    assert rules.count("gather_labels") == 1 and rules.count("scatter_labels") == 1
    names = functions(graph)
    assert {"AsRows", *LABEL_OPS} <= {*names} and not {"IncSubtensor", "Alloc"} & {*names}
    values = [np.random.default_rng(0).normal(size=(n, 3)), np.array([2, 0, 1, 1], dtype)]
    plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(plain[1][4:], 0)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("n", [4, 5])
def test_rows_with_weights(rows, n):
    inputs, outputs = loss_of_rows(rows, weights=T.constant([1.0, 2.0, 0.5, -1.0]))
    graph, rules = picked(inputs, outputs)
    assert "scatter_labels" in rules
    values = [np.random.default_rng(0).normal(size=(n, 3)), np.array([2, -1, 1, 1])]
    plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


def test_one_label_for_all_rows():
    inputs, outputs = loss_of_rows("number")
    graph, _ = picked(inputs, outputs)
    values = [np.random.default_rng(0).normal(size=(5, 3)), np.array([2])]
    plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    "n, labels, message",
    [
        (3, [0, 1, 2, 0], "index 3 is out of bounds for axis 0 with size 3"),
        (4, [0, 1, 3, 0], "index 3 is out of bounds for axis 1 with size 3"),
        (5, [0, 1, -4, 0], "index -4 is out of bounds for axis 1 with size 3"),
        (4, [0, 1, np.iinfo("int64").min, 0], "out of bounds for axis 1 with size 3"),
    ],
)
def test_positions_that_are_not_there(rows, n, labels, message):
    inputs, outputs = loss_of_rows(rows)
    graph, _ = picked(inputs, outputs)
    with pytest.raises(IndexError, match=message):
        run(graph, np.zeros((n, 3)), np.array(labels))
    f = symcomp.function(inputs, outputs, mode=symcomp.Mode(linker="cvm", optimizer="fast_run"))
    with pytest.raises(IndexError, match=message):
        f(np.zeros((n, 3)), np.array(labels))


def test_more_labels_than_a_minibatch_has_rows():
    inputs, outputs = loss_of_rows("number")
    graph, _ = picked(inputs, outputs)
    with pytest.raises(IndexError, match="shape mismatch"):
        run(graph, np.zeros((6, 3)), np.array([0, 1, 2, 0, 1]))


def test_loss_and_gradient_are_one_pass():
    inputs, outputs = loss_of_rows("labels")
    graph, _ = picked(inputs, outputs)
    passes = [
        node
        for node in graph.nodes
        if isinstance(node.op, Fused)
        and any(type(s.function).__name__ in LABEL_OPS for s in node.op.formula.steps)
    ]
    assert len(passes) == 1


def loss_of_one(k):
    images, labels = T.dmatrix("images"), T.ivector("labels")
    p = T.nnet.softmax(2 * images[k : k + 1])
    loss = -T.log(p)[T.arange(1), labels[k : k + 1]].mean()
    return [images, labels, k], [loss, symcomp.grad(loss, images)]


def test_one_row_at_a_time():
    inputs, outputs = loss_of_one(T.lscalar("k"))
    graph, rules = picked(inputs, outputs)
    assert rules.count("gather_labels") == 1 and rules.count("scatter_labels") == 1
    data = np.random.default_rng(0).normal(size=(4, 3)), np.array([1, -1, 0, 2], "int32")
    for k in (0, 3, -2):
        values = [*data, np.array(k)]
        plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
        for got, want in zip(run(graph, *values), plain, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
    with pytest.raises(IndexError, match="out of bounds"):
        run(graph, data[0][:2], data[1], np.array(3))


def test_several_columns_of_the_first_row_are_no_rows():
    x, columns = T.dmatrix("x"), T.lvector("columns")
    graph, rules = picked([x, columns], [T.exp(x)[T.arange(1), columns]])
    assert "gather_labels" not in rules
    (z,) = run(graph, np.zeros((2, 5)), np.array([0, 4, 2]))
    np.testing.assert_array_equal(z, np.ones(3))


@pytest.mark.parametrize("also", ["alone", "loss", "derivative"])
def test_gradients_that_are_read_at_the_labels(also):
    """The value read there depends on the value written there, and has its shape."""
    x, w, labels = T.dmatrix("x"), T.dmatrix("w"), T.lvector("labels")
    scores, rows = T.dot(x, w), T.arange(labels.shape[0])
    loss = -T.nnet.log_softmax(scores)[rows, labels].mean()
    found = T.sqr(symcomp.grad(loss, scores))[rows, labels].sum()
    more = {"alone": [], "loss": [loss], "derivative": [symcomp.grad(found, w)]}
    outputs = [found, *more[also]]
    graph, _ = picked([x, w, labels], outputs)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(5, 4)), rng.normal(size=(4, 3)), np.array([0, 1, 2, 0, -1])]
    plain = evaluate(outputs, dict(zip([x, w, labels], values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
