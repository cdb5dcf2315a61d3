"""Linear algebra on matrices and on stacks of them; ops that are applied along stacks."""

import numpy as np
import pytest

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
from pytensor.graph.replace import vectorize_graph  # noqa: E402
from pytensor.tensor.blockwise import Blockwise  # noqa: E402
from pytensor.tensor.linalg.decomposition.lu import pivot_to_permutation  # noqa: E402
from pytensor.tensor.linalg.solvers import linear_control, tridiagonal  # noqa: E402

from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

L = pt.linalg
RNG = np.random.default_rng(5)
M = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
P = M @ np.swapaxes(M, -1, -2) + np.eye(3)
B, V = RNG.normal(size=(2, 3, 2)), RNG.normal(size=(2, 3))


@pytest.mark.parametrize("stacked", [False, True])
def test_products(stacked):
    x, y, v = (pt.dtensor3("x"), pt.dtensor3("y"), pt.dmatrix("v")) if stacked else (
        pt.dmatrix("x"), pt.dmatrix("y"), pt.dvector("v"))  # fmt: skip
    outputs = [x @ y, pt.matvec(x, v), pt.vecmat(v, x), pt.vecdot(v, v), pt.dot(x, y.T)]
    values = [M, P, V] if stacked else [M[0], P[0], V[0]]
    compare([x, y, v], outputs[: 4 if stacked else 5], values)
    if not stacked:
        compare([x, v], [pt.outer(v, v), L.kron(x, x), L.matrix_power(x, 3)], [M[0], V[0]])
        compare([v], pt.einsum("i,j,i->j", v, v, v), [V[0]], fallbacks=None)


@pytest.mark.parametrize("stacked", [False, True])
def test_decompositions(stacked):
    x, p = (pt.dtensor3("x"), pt.dtensor3("p")) if stacked else (pt.dmatrix("x"), pt.dmatrix("p"))
    lu = L.lu_factor(x)
    outputs = [
        L.cholesky(p), L.cholesky(p, lower=False), L.inv(x), L.det(x), *L.slogdet(x), L.pinv(x),
        *L.lu(x), *L.lu(x, permute_l=True), *L.lu(x, p_indices=True), *lu,
        L.expm(x / 4), L.eigh(p)[0], abs(L.eigh(p)[1]), L.eigvalsh(p, None), *L.svd(x),
        L.svd(x, compute_uv=False), *L.qr(x),
        L.qr(x, mode="r"), *L.schur(p),
    ]  # fmt: skip
    if not stacked:
        outputs += [pivot_to_permutation(lu[1]), pivot_to_permutation(lu[1], inverse=True)]
    compare([x, p], outputs, [M, P] if stacked else [M[0], P[0]], atol=1e-12)


def test_other_decompositions():
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    compare(
        [x, y], [*L.schur(x, output="complex"), *L.qz(x, y, sort="ouc")], [M[0], P[0]], atol=1e-11
    )
    compare([x, y], [*L.qz(x, y, return_eigenvalues=True)], [M[0], P[0]], atol=1e-11)
    wide = pt.dmatrix("wide")
    outputs = [
        *L.qr(wide, mode="economic"),
        *L.qr(wide.T, mode="economic"),
        *L.svd(wide, full_matrices=False),
    ]
    compare([wide], outputs, [B[0]], atol=1e-13)
    assert np.isnan(pytensor.function([x], L.cholesky(x), mode="SYMCOMP")(-P[0])).all()
    with pytest.raises(np.linalg.LinAlgError):
        pytensor.function([x], L.inv(x), mode="SYMCOMP")(np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("mode", ["full", "economic", "r", "raw"])
def test_qr(mode, pivoting, dtype):
    x = pt.matrix("x", dtype=dtype)
    outputs = L.qr(x, mode=mode, pivoting=pivoting)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    for value in (B[0], B[0].T, M[0]):
        value = (value * (1 + 0.5j) if dtype == "complex128" else value).astype(dtype)
        close = 1e-5 if dtype == "float32" else 1e-12
        compare([x], outputs, [value], rtol=close, atol=close)
    if mode in ("economic", "r") and not pivoting and dtype == "float64":
        x = pt.tensor("x", dtype=dtype, shape=(3, 2))  # of other lengths PyTensor has no gradient
        r = L.qr(x, mode=mode)[-1] if mode == "economic" else L.qr(x, mode=mode)
        compare([x], pytensor.grad((r**4).sum(), x), [B[0]], atol=1e-12)


@pytest.mark.parametrize("b_ndim", [1, 2])
@pytest.mark.parametrize("stacked", [False, True])
def test_systems(stacked, b_ndim):
    rank = 2 + stacked
    x, p = pt.tensor("x", dtype="float64", shape=(None,) * rank), pt.tensor(
        "p", dtype="float64", shape=(None,) * rank)  # fmt: skip
    b = pt.tensor("b", dtype="float64", shape=(None,) * (rank - 2 + b_ndim))
    outputs = [
        L.solve(x, b, b_ndim=b_ndim), L.solve(p, b, assume_a="pos", lower=True, b_ndim=b_ndim),
        L.solve(p, b, assume_a="pos", lower=False, b_ndim=b_ndim),
        L.solve(p, b, assume_a="sym", b_ndim=b_ndim), L.solve(x, b, transposed=True, b_ndim=b_ndim),
        L.solve_triangular(x, b, lower=True, b_ndim=b_ndim),
        L.solve_triangular(x, b, trans=1, b_ndim=b_ndim),
        L.solve_triangular(x, b, unit_diagonal=True, b_ndim=b_ndim),
        L.cho_solve((L.cholesky(p), True), b, b_ndim=b_ndim),
        L.lu_solve(L.lu_factor(x), b, b_ndim=b_ndim),
        L.solve(p, b, assume_a="tridiagonal", b_ndim=b_ndim),
        L.solve(x, b, assume_a="banded", b_ndim=b_ndim),
        tridiagonal.tridiagonal_lu_solve(tridiagonal.tridiagonal_lu_factor(x), b, b_ndim=b_ndim),
    ]  # fmt: skip
    values = [M, P, V if b_ndim == 1 else B]
    compare([x, p, b], outputs, values if stacked else [v[0] for v in values], rtol=1e-8)


def test_systems_without_solution():
    x, b = pt.dmatrix("x"), pt.dvector("b")
    for z in (
        L.solve(x, b, b_ndim=1), L.solve_triangular(x, b, lower=True, b_ndim=1),
        L.solve(x, b, assume_a="pos", b_ndim=1),
    ):  # fmt: skip
        f = pytensor.function([x, b], z, mode="SYMCOMP")
        assert np.isnan(f(np.zeros((2, 2)), np.ones(2))).any()


def test_only_one_triangle_of_a_positive_matrix_is_read():
    """PyTensor's own fast_run makes of an upper triangle a lower one: docs/pymc.md."""
    a, b = pt.dmatrix("a"), pt.dvector("b")
    upper = np.triu(P[0]) + np.tril(np.full((3, 3), np.pi), -1)
    f = pytensor.function(
        [a, b], L.solve(a, b, assume_a="pos", lower=False, b_ndim=1), mode="SYMCOMP"
    )
    np.testing.assert_allclose(f(upper, V[0]), np.linalg.solve(P[0], V[0]), rtol=1e-10)


def test_equations():
    a, b, c = pt.dmatrix("a"), pt.dmatrix("b"), pt.dmatrix("c")
    outputs = [
        linear_control.solve_sylvester(a, b, c), L.block_diag(a, c),
        linear_control.TRSYL()(pt.triu(a), pt.triu(b), c),
        linear_control.solve_continuous_lyapunov(a, b),
        linear_control.solve_discrete_lyapunov(a / 9, b),
    ]  # fmt: skip
    compare([a, b, c], outputs, [M[0], P[0], B[0] @ B[0].T], rtol=1e-7)
    gradients = pytensor.grad(linear_control.solve_sylvester(a, b, c).sum(), [a, b, c])
    compare([a, b, c], gradients, [M[0], P[0], B[0] @ B[0].T], rtol=1e-7)


def test_gradients():
    p, b = pt.dmatrix("p"), pt.dvector("b")
    cost = (
        L.cholesky(p).sum() + L.slogdet(p)[1] + pt.dot(b, L.solve(p, b, assume_a="pos", b_ndim=1))
        + L.eigh(p)[0].prod() + L.expm(p / 9).sum() + L.lu(p)[2].sum()
    )  # fmt: skip
    compare([p, b], pytensor.grad(cost, [p, b]), [P[0], V[0]], rtol=1e-7)


@pytest.mark.parametrize("stacked", [False, True])
def test_generalized_eigenvectors(stacked):
    a, b = (pt.dtensor3("a"), pt.dtensor3("b")) if stacked else (pt.dmatrix("a"), pt.dmatrix("b"))
    values = [M, P] if stacked else [M[0], P[0]]
    for lower in (True, False):
        w, v = L.eigh(a, b, lower=lower)
        outputs = [w, abs(v)]
        compare([a, b], outputs, values, rtol=1e-8)
        compare([a, b], pytensor.grad((v**2)[..., 0].sum() + w.prod(), [a, b]), values, rtol=1e-6)


def test_ops_along_stacks():
    x, i = pt.dmatrix("x"), pt.lvector("i")
    rows, places = pt.dtensor3("rows"), pt.lmatrix("places")
    core = [pt.searchsorted(x[0], x[1]), x[i], pt.bincount(i, minlength=4), pt.repeat(i, 2)]
    whole = vectorize_graph(core, {x: rows, i: places})
    values = [np.sort(RNG.normal(size=(2, 3, 4))), np.array([[0, 2, 1], [1, 1, 0]])]
    compare([rows, places], whole, values, fallbacks=None)
    doubled = Blockwise(pytensor.tensor.extra_ops.CumOp(axis=0, mode="add"), signature="(n)->(n)")
    compare([rows], doubled(rows), values[:1])
