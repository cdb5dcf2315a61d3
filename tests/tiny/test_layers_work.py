"""One small case of every layer, from a graph to a plan: what breaks here breaks everywhere."""

import io
import pickle

import mpmath
import numpy as np
import pytest
import scipy.sparse

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.codegen.kernel import kernel_of, scheduled
from symcomp.codegen.loopir.run import run
from symcomp.codegen.loopir.verify_kernel import verify
from symcomp.compile import DebugMode, NanGuardMode
from symcomp.config import config
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.ifelse import ifelse
from symcomp.rewrite.phases import rewrite
from symcomp.tensor.random import RandomStream

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -0.25]])
MODES = [symcomp.Mode(linker=linker) for linker in ("py", "vm", "cvm")]


@pytest.fixture
def x():
    return T.dmatrix("x")


def test_core_copies_evaluates_and_pickles_graphs(x):
    y = T.exp(x).sum() * 2
    np.testing.assert_allclose(evaluate([y], {x: X})[0], 2 * np.exp(X).sum())
    other = pickle.loads(pickle.dumps([x, y]))
    np.testing.assert_allclose(other[1].eval({other[0]: X}), 2 * np.exp(X).sum())
    assert symcomp.clone_replace(y, {x: 2 * x}) is not y


def test_ops_check_their_inputs(x):
    with pytest.raises(symcomp.errors.ShapeError, match="dot: axis 1"):
        T.dot(T.tensor("a", shape=(2, 3)), T.tensor("b", shape=(2, 3)))
    with pytest.raises(symcomp.errors.AxisError, match="axis 2"):
        x.sum(axis=2)
    with pytest.raises(symcomp.errors.DTypeError, match="float64"):
        T.bitwise_and(x, x)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.linker)
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: T.tanh(x) * 2 - 1, lambda v: np.tanh(v) * 2 - 1),
        (lambda x: x.mean(axis=0), lambda v: v.mean(axis=0)),
        (lambda x: T.softmax(x, axis=-1), lambda v: np.exp(v) / np.exp(v).sum(1, keepdims=True)),
        (lambda x: x[::-1, [0, 2]], lambda v: v[::-1, [0, 2]]),
        (lambda x: T.set_subtensor(x[0], 7.0), lambda v: np.vstack([np.full(3, 7.0), v[1:]])),
        (lambda x: T.dot(x, x.T), lambda v: v @ v.T),
        (lambda x: T.sort(x, axis=1), lambda v: np.sort(v, axis=1)),
        (lambda x: T.concatenate([x, x], axis=1), lambda v: np.hstack([v, v])),
        (lambda x: T.linalg.slogdet(T.dot(x, x.T))[1], lambda v: np.linalg.slogdet(v @ v.T)[1]),
        (lambda x: T.cumsum(x, axis=1), lambda v: np.cumsum(v, axis=1)),
    ],
    ids="scalar reduction softmax index write dot sort join determinant cumulative".split(),
)
def test_machines_compute_what_numpy_does(x, build, expected, mode):
    f = symcomp.function([x], build(x), mode=mode)
    for value in (X, np.asfortranarray(X), X[::-1]):
        np.testing.assert_allclose(f(value), expected(value), rtol=1e-13)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: T.log(1 + T.exp(x)), lambda x: x.max(axis=1), lambda x: x[:, 1:] * x[:, :-1],
        lambda x: T.dot(x, x.T), lambda x: T.log_softmax(x, axis=1), lambda x: T.sort(x, axis=0),
        lambda x: symcomp.scan(lambda row, s: T.sin(row) * s, x, T.ones(3))[0],
    ],
    ids="stable ties index dot softmax sort loop".split(),
)  # fmt: skip
def test_derivatives_agree_with_finite_differences(build):
    symcomp.gradient.verify_grad(build, [X])


def test_modes_of_differentiation_combine():
    w, v = T.dvectors("w", "v")
    cost = (T.tanh(w) ** 3).sum()
    forward = symcomp.Rop(symcomp.grad(cost, w), w, v)
    backward = symcomp.grad((symcomp.grad(cost, w) * v).sum(), w)
    given = {w: X[0], v: X[1]}
    np.testing.assert_allclose(forward.eval(given), backward.eval(given), rtol=1e-12)


def test_stable_forms_keep_their_digits():
    s = T.dscalar("s")
    f = symcomp.function([s], [T.log(1 - T.exp(-s)), symcomp.grad(T.log(1 - T.exp(-s)), s)])
    with mpmath.workdps(40):
        at = mpmath.mpf(1e-12)
        expected = [mpmath.log(-mpmath.expm1(-at)), 1 / mpmath.expm1(at)]
    np.testing.assert_allclose(f(1e-12), [float(e) for e in expected], rtol=1e-14)


def test_rewriting_fuses_and_explains(x):
    graph = FunctionGraph([x], [(T.exp(x) * 2 + 1).sum()])
    given = dict(zip(graph.inputs, [X], strict=True))
    before = evaluate(graph.outputs, given)
    trace = rewrite(graph, symcomp.Mode().selects)
    assert len(graph.nodes) == 1
    assert "fuse" in trace.counts()
    np.testing.assert_allclose(evaluate(graph.outputs, given), before, rtol=1e-14)


def test_programs_are_listed(x):
    f = symcomp.function([x], T.dot(T.exp(x), x.T))
    assert "Dot(s" in str(f.program)
    assert f.program.instructions[0].line().startswith("s")


def fused(x):
    """Return the node of a fused kernel with a reduction."""
    f = symcomp.function([x], T.exp(x).sum(axis=1), mode=symcomp.Mode(linker="py"))
    return f.program.instructions[0].node


def test_kernels_are_verified_and_interpreted(x):
    node = fused(x)
    patterns = [v.type.broadcastable for v in node.inputs]
    made = scheduled(node.op.formula, patterns)
    verify(made.kernel)
    result = np.empty((2, 1))
    assert run(made.kernel, [X, result]) == 0
    np.testing.assert_allclose(result[:, 0], np.exp(X).sum(axis=1), rtol=1e-15)
    assert "exp(v0)" in "\n".join(kernel_of(node.op.formula, patterns).needs)


def test_generated_c_runs_in_a_plan(x):
    with config.change_flags(kernels=True, cflags=""):
        f = symcomp.function([x], (T.exp(x) * 2 + 1).sum(axis=1))
        for value in (X, X, X[:, ::2].copy(), X):
            np.testing.assert_allclose(f(value), (np.exp(value) * 2 + 1).sum(axis=1), rtol=1e-14)
    assert f.repeated == 2
    assert "kernel" in f.plan()


def test_a_guard_leads_to_both_branches():
    c, v = T.lscalar("c"), T.dvector("v")
    f = symcomp.function([c, v], ifelse(c, T.sort(v), v * 2))
    for condition in (1, 0, 1, 0):
        expected = np.sort(X[0]) if condition else X[0] * 2
        np.testing.assert_allclose(f(condition, X[0]), expected)
    assert f.repeated == 2


def test_updates_happen_all_or_none():
    w = symcomp.shared(np.zeros(3), name="w")
    i = T.lscalar("i")
    f = symcomp.function([i], w[i], updates=[(w, w + 1)])
    f(0)
    with pytest.raises(IndexError):
        f(5)
    np.testing.assert_array_equal(w.get_value(), np.ones(3))


def test_loops_and_their_gradients():
    w = T.dscalar("w")
    states, _ = symcomp.scan(lambda h: T.tanh(w * h), outputs_info=T.constant(0.5), n_steps=4)
    f = symcomp.function([w], [states[-1], symcomp.grad(states[-1], w)])

    def by_hand(w):
        h, dh = 0.5, 0.0
        for _ in range(4):
            dh = (h + w * dh) * (1 - np.tanh(w * h) ** 2)
            h = np.tanh(w * h)
        return h, dh

    np.testing.assert_allclose(f(0.7), by_hand(0.7), rtol=1e-13)


def test_sparse_matrices():
    A = sparse.csr_matrix("A", dtype="float64")
    v = T.dvector("v")
    y = sparse.dot(A, v)
    f = symcomp.function([A, v], [y, symcomp.grad((y**2).sum(), v)])
    matrix = scipy.sparse.random(4, 3, 0.5, format="csr", random_state=0)
    value, slope = f(matrix, X[0])
    np.testing.assert_allclose(value, matrix @ X[0])
    np.testing.assert_allclose(slope, 2 * matrix.T @ (matrix @ X[0]))


def test_streams_are_numpys():
    draw = symcomp.function([], RandomStream(3).normal(size=(3,)))
    first, second = draw(), draw()
    assert not np.array_equal(first, second)
    again = symcomp.function([], RandomStream(3).normal(size=(3,)))
    np.testing.assert_array_equal(again(), first)


def test_files_hold_functions(x, tmp_path):
    f = symcomp.function([x], T.exp(x).sum(axis=0))
    symcomp.save(tmp_path / "f.zip", f)
    np.testing.assert_array_equal(symcomp.load(tmp_path / "f.zip")(X), f(X))


def test_checking_modes(x):
    f = symcomp.function([x], T.log(1 + T.exp(x)), mode=DebugMode())
    np.testing.assert_allclose(f(X), np.log1p(np.exp(X)), rtol=1e-14)
    g = symcomp.function([x], T.log(x), mode=NanGuardMode(nan_is_error=True))
    with pytest.raises(AssertionError, match="NaN in log"):
        g(-np.ones((1, 1)))


def test_profiles_and_printing(x):
    f = symcomp.function([x], T.exp(x).sum(), profile=True, name="tiny")
    f(X)
    assert f.profile.to_dict()["functions"][0]["calls"] == 1
    text = io.StringIO()
    symcomp.printing.debugprint(f, file=text)
    assert "Fused{" in text.getvalue()
    assert symcomp.printing.pp(T.exp(x) + 1) == "exp(x) + 1.0"
    assert "<svg" in symcomp.printing.html(f)
