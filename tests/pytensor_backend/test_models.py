"""Graphs that PyTensor's tests of its other backends are about, and what falls back in them."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.scalar as ps  # noqa: E402
import pytensor.sparse as psp  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
import pytensor.tensor.optimize as optimize  # noqa: E402
import pytensor.typed_list as typed  # noqa: E402
import pytensor.xtensor as px  # noqa: E402
import scipy.sparse  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.conditional import ifelse  # noqa: E402
from pytensor.graph.replace import vectorize_graph  # noqa: E402
from pytensor.scan.utils import until  # noqa: E402
from pytensor.tensor.elemwise import CAReduce  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

RNG = np.random.default_rng(11)
L = pt.linalg


def normal(*shape):
    return RNG.normal(size=shape)


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_softmax_and_its_gradients(axis):
    x = pt.dmatrix("x")
    z, log_z = pt.special.softmax(x, axis=axis), pt.special.log_softmax(x, axis=axis)
    outputs = [z, log_z, pytensor.grad((z**2).sum(), x), pytensor.grad((log_z**2).sum(), x)]
    compare([x], outputs, [normal(3, 4)], atol=1e-14)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "float32", "bool"])
def test_reductions_of_dtypes(dtype):
    x = pt.matrix("x", dtype=dtype)
    value = (normal(3, 4) * 3).astype(dtype)
    compare([x], [x.sum(0), x.prod(1), x.max(), x.mean(), x.min(0)], [value], atol=1e-2)


def test_reductions_bit_by_bit():
    x = pt.lmatrix("x")
    outputs = [CAReduce(op, axis=(0,))(x) for op in (ps.or_, ps.and_, ps.xor)]
    compare([x], outputs, [RNG.integers(0, 9, (3, 4))])


def test_statistics():
    x, b = pt.dtensor3("x"), pt.matrix("b", dtype="bool")
    outputs = [
        x.var(0), x.std(), pt.ptp(x, 1), x.norm(2), pt.logsumexp(x, axis=1), b.mean(0),
        pt.max_and_argmax(x, 1)[0], pt.all(x, axis=1), pt.any(b), x.argmin(1),
    ]  # fmt: skip
    compare([x, b], outputs, [normal(2, 3, 4), normal(3, 4) > 0], atol=1e-14)


def test_arrays_without_elements():
    x = pt.dmatrix("x")
    outputs = [
        x.sum(0), x.prod(1), pt.exp(x), x.T, x @ x.T, x.T @ x, pt.concatenate([x, x]),
        x.cumsum(0), pt.sort(x, 0),
    ]  # fmt: skip
    compare([x], outputs, [np.zeros((0, 3))])


def test_negative_steps():
    x = pt.dmatrix("x")
    outputs = [x.sum(0), x @ x.T, pt.exp(x), L.inv(x @ x.T + pt.eye(3)), x[::-1] + 1, x.flatten()]
    f = compare([x], outputs, [normal(3, 4)], atol=1e-12)
    whole = normal(6, 8)
    turned = whole[::-2, ::-2]
    for got, want in zip(f(turned), f(turned.copy()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_numbers_that_are_not_finite():
    x, y = pt.dvector("x"), pt.dvector("y")
    outputs = [
        pt.switch(pt.isnan(x), 0.0, x), pt.isinf(x), pt.maximum(x, 0), pt.minimum(x, 1),
        pt.clip(x, -1, 1), pt.sgn(x), pt.ceil(x), x / y, x // y, x % y, pt.log(y), x**y,
        pt.reciprocal(y),
    ]  # fmt: skip
    values = [np.array([np.nan, np.inf, -np.inf, 1.5]), np.array([0.0, -2, 0, 3])]
    with np.errstate(all="ignore"):
        compare([x, y], outputs, values)


def test_complex_matrices():
    x, b = pt.zmatrix("x"), pt.zvector("b")
    h = x @ x.conj().T + 3 * pt.eye(3)
    outputs = [
        L.solve(x, b, b_ndim=1), L.cholesky(h), L.eigvalsh(h, None), L.svd(x)[1], L.inv(x),
        L.solve(h, b, assume_a="her", b_ndim=1), L.solve_triangular(x, b, b_ndim=1), L.det(x),
        abs(x), pt.angle(x), x.prod(), 1 / x,
    ]  # fmt: skip
    values = [normal(3, 3) + 1j * normal(3, 3), normal(3) + 1j * normal(3)]
    compare([x, b], outputs, values, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_matrices_of_dtypes(dtype):
    x = pt.matrix("x", dtype=dtype)
    p = x @ x.T + 9 * pt.eye(3, dtype=dtype)
    outputs = [L.inv(p), L.det(p), L.cholesky(p), x @ p, pt.dot(p, x[0]), L.slogdet(p)[1]]
    value = (5 * normal(3, 3)).astype(dtype)
    compare([x], outputs, [value], rtol=1e-4, atol=1e-4)


def test_kinds_of_systems():
    a, b, m = pt.dmatrix("a"), pt.dvector("b"), normal(4, 4)
    values = {
        "gen": m, "sym": m + m.T, "pos": m @ m.T + np.eye(4), "her": m + m.T,
        "tridiagonal": np.diag([5.0, 6, 7, 8]) + np.diag([1.0, 2, 1], 1) + np.diag([1.0, 1, 2], -1),
    }  # fmt: skip
    for kind, value in values.items():
        z = L.solve(a, b, assume_a=kind, b_ndim=1)
        outputs = [z, *pytensor.grad(z.sum(), [a, b])]
        compare([a, b], outputs, [value, normal(4)], rtol=1e-7, atol=1e-10, fallbacks=None)


@pytest.mark.parametrize("order", [1, 2, "fro", "nuc", np.inf, -1])
def test_norms(order):
    a = pt.dmatrix("a")
    compare([a], L.norm(a, ord=order), [normal(4, 3)], rtol=1e-10)


@pytest.mark.parametrize(
    "mode", ["constant", "edge", "linear_ramp", "maximum", "minimum", "mean", "wrap", "symmetric"]
)
def test_padding(mode):
    x = pt.dmatrix("x")
    compare([x], pt.pad(x, ((1, 2), (2, 1)), mode=mode), [normal(4, 5)], rtol=1e-12)


POSITIONS = np.array([2, 0, 1, 1])
PARTS = [
    np.s_[POSITIONS[:2], :, POSITIONS[:2]], np.s_[[[1, 2], [2, 1]], [0, 0]], np.s_[:, :, ::-2],
    np.s_[POSITIONS, None, 1:], np.s_[np.eye(3, dtype=bool)], np.s_[5:1], np.s_[[], :, 1],
    np.s_[np.array([True, False, True]), 1], np.s_[1:, np.array([True, False, True]), -2:],
    np.s_[:, [1, 2], [2, 1]], np.s_[-1:, [0]], np.s_[[-1, -2]],
]  # fmt: skip


@pytest.mark.parametrize("key", PARTS, ids=range(len(PARTS)))
def test_parts_read_and_written(key):
    x, value = pt.dtensor3("x"), normal(3, 3, 6)
    part = x[key]
    y = part.type("y")
    outputs = [
        part, part.set(y), part.inc(y), part.set(3.0), pytensor.grad((part**2).sum(), x),
        pt.inc_subtensor(x[key], y, ignore_duplicates=True),
    ]  # fmt: skip
    compare([x, y], outputs, [value, normal(*value[key].shape)], atol=1e-14)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_positions_that_are_arguments(dtype):
    """Many, of several dtypes, also negative and out of range."""
    x, i, y = pt.dvector("x"), pt.vector("i", dtype=dtype), pt.dvector("y")
    where = RNG.integers(0, 50, 3000).astype(dtype)
    outputs = [x[i], x[i].inc(y), x[i].set(1.0), x[i[::-2]]]
    f = compare([x, i, y], outputs, [normal(50), where, normal(3000)], rtol=1e-12)
    if dtype != "uint8":
        negative = where - 50
        for got, want in zip(f(np.arange(50.0), negative, np.ones(3000)),
                             f(np.arange(50.0), where, np.ones(3000)), strict=True):  # fmt: skip
            np.testing.assert_array_equal(got, want)
    where[1234] = 50
    with pytest.raises(IndexError):
        f(np.zeros(50), where, np.zeros(3000))


def test_loops_of_all_kinds():
    a, c = pt.dvector("a"), pt.dscalar("c")
    several = scan(
        lambda b, b2, d, x1, y1, y3, c: (x1 + 1, (y1 + y3) * c + b + b2, d + pt.zeros((4,))),
        sequences=[{"input": a, "taps": [-1, -2]}, {"input": a, "taps": [-2]}],
        outputs_info=[
            {"initial": pt.as_tensor(0.0)}, {"initial": a[:3], "taps": [-1, -3]}, None,
        ],
        non_sequences=[c], n_steps=5,
    )  # fmt: skip
    outputs = [
        scan(lambda: pt.as_tensor(2.0), n_steps=3),
        scan(lambda c: pt.as_tensor(2.0) * c, non_sequences=[c], n_steps=3),
        scan(lambda t: 2 * t, outputs_info=[{"initial": a[:2], "taps": [-2]}], n_steps=6),
        *several, several[1][-1],
    ]  # fmt: skip
    compare([a, c], outputs, [normal(8), np.array(0.7)])


def test_loops_without_steps_and_with_conditions():
    x, n = pt.dvector("x"), pt.lscalar("n")
    states = scan(lambda a: a * 2, outputs_info=[x], n_steps=n)
    compare([x, n], [states, states.sum()], [normal(3), np.int64(0)])
    chosen = scan(lambda e, a: ifelse(e > 0, a + e, a * 2), [x], [pt.zeros(())])
    compare([x], [chosen, pytensor.grad(chosen[-1], x)], [normal(6)])
    m = pt.dmatrix("m")
    stopped = scan(
        lambda a: (a @ a * 0.5, until((a**2).sum() < 1e-3)), outputs_info=[m], n_steps=40
    )
    outputs = [stopped[-1], stopped.shape[0], pytensor.grad(stopped.sum(), m)]
    compare([m], outputs, [np.eye(3) * 0.9 + 0.1], rtol=1e-8)


def test_graphs_made_for_stacks():
    x, y, stack = pt.dmatrix("x"), pt.dvector("y"), pt.dtensor3("stack")
    p = x @ x.T + pt.eye(3)
    core = [
        x[1], x[:, ::2], x[[0, 1]], x.reshape((-1,)), x.sum(0), x @ y, L.cholesky(p), pt.sort(x, 0),
        x.cumsum(0), pt.set_subtensor(x[0], 1.0), pt.diagonal(x), pt.concatenate([x, x]),
        L.solve(p, x), pt.special.softmax(x, axis=0), pt.argmax(x, axis=1), L.slogdet(p)[1],
    ]  # fmt: skip
    whole = vectorize_graph(core, {x: stack})
    compare([stack, y], whole, [normal(2, 3, 4), normal(4)], rtol=1e-8, atol=1e-12)


def test_derivatives_of_functions_of_vectors():
    x, v = pt.dvector("x"), pt.dvector("v")
    y = pt.exp(x).sum() * x
    outputs = [
        pytensor.gradient.jacobian(y, x), pytensor.gradient.jacobian(y, x, vectorize=True),
        pytensor.gradient.hessian(y.sum(), x), pytensor.gradient.pushforward(pt.tanh(y), x, v),
    ]  # fmt: skip
    compare([x, v], outputs, [normal(4) / 3, normal(4)], rtol=1e-8)


def test_special_functions_and_their_gradients():
    a, b, x = pt.dvector("a"), pt.dvector("b"), pt.dvector("x")
    values = [np.array([0.5, 1.5, 3.0]), np.array([0.7, 2.0, 1.0]), np.array([0.2, 0.5, 0.8])]
    for z in (
        pt.betainc(a, b, x), pt.gammainc(a, x), pt.gammaincc(a, x), pt.polygamma(1, a),
        pt.hyp2f1(a, b, a + b, x), pt.kve(1.5, x), pt.ive(2.0, a), pt.jv(2.0, x), pt.kn(2, x),
        pt.logaddexp(a, b), pt.log1mexp(-a), pt.erfcx(x),
    ):  # fmt: skip
        slopes = pytensor.grad(z.sum(), [a, b, x], disconnected_inputs="ignore")
        compare([a, b, x], [z, *slopes], values, rtol=1e-6, fallbacks=None)


def test_einsum_and_interpolation():
    x, y, z = pt.dtensor3("x"), pt.dmatrix("y"), pt.dmatrix("z")
    outputs = [
        pt.einsum("ijk,kl->ijl", x, y), pt.einsum("ij,jk,kl->il", y, z, y),
        pt.einsum("ii->i", z @ z.T), pt.einsum("...k,kl->...l", x, y),
        pt.tensordot(x, x, [[1], [1]]),
    ]  # fmt: skip
    compare([x, y, z], outputs, [normal(2, 3, 4), normal(4, 3), normal(3, 4)], fallbacks=None)
    at, known, values = pt.dvectors("at", "known", "values")
    compare(
        [at, known, values], pt.interp(at, known, values), [normal(5), np.arange(4.0), normal(4)]
    )


def test_sparse_matrices_and_lists_fall_back():
    x, y = psp.csr_matrix("x"), pt.dmatrix("y")
    value = scipy.sparse.random(4, 3, 0.5, format="csr", random_state=1)
    z = psp.structured_dot(x, y)
    f = pytensor.function([x, y], [z, x * 2.0, pytensor.grad(z.sum(), y)], mode="SYMCOMP")
    dense = normal(3, 2)
    got = f(value, dense)
    np.testing.assert_allclose(got[0], value @ dense)
    assert isinstance(got[1], scipy.sparse.csr_matrix | scipy.sparse.csr_array)
    np.testing.assert_allclose(got[2], value.T @ np.ones((4, 2)))
    assert backend.fallbacks(f)["StructuredDot"] == 2
    rows = typed.TypedListType(pt.dvector().type)("rows")
    v = pt.dvector("v")
    g = pytensor.function([rows, v], [typed.append(rows, v), rows[0] * 2], mode="SYMCOMP")
    both, first = g([np.ones(2)], np.zeros(3))
    assert [len(r) for r in both] == [2, 3]
    np.testing.assert_array_equal(first, [2.0, 2.0])


def test_optimizers_fall_back():
    x, a = pt.dvector("x"), pt.dscalar("a")
    best, done = optimize.minimize(((x - a) ** 2).sum(), x, method="BFGS")
    values = [normal(3), np.array(2.0)]
    compare([x, a], [best, done, pytensor.grad(best.sum(), a)], values, rtol=1e-5, fallbacks=None)


def test_named_axes():
    x = px.xtensor("x", dims=("a", "b"), shape=(2, 3))
    y = px.xtensor("y", dims=("b",), shape=(3,))
    outputs = [
        (x * y).sum("b"), x.mean("a"), px.math.exp(x), x.transpose(), px.dot(x, y), x.isel(a=0),
    ]  # fmt: skip
    values = [normal(2, 3), np.arange(3.0)]
    got = pytensor.function([x, y], outputs, mode="SYMCOMP")(*values)
    wanted = pytensor.function([x, y], outputs, mode=Mode("py", "fast_compile"))(*values)
    for found, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12)
