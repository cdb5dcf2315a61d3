"""Conjugate gradients as a loop, with the derivatives of the solution."""

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import ShapeError
from symcomp.tests.sparse.harness import MODE, random_sparse

N = 6
ROOT = random_sparse(N, N, 0.4, seed=1)
A = sp.csr_array(ROOT @ ROOT.T + sp.eye_array(N))
RNG = np.random.default_rng(0)
B, b = RNG.normal(size=(N, 2)), RNG.normal(size=N)


def solve(rtol=1e-13, **options):
    return lambda A, b: sparse.cg(A, b, rtol=rtol, **options)


@pytest.mark.parametrize("rhs", [b, B], ids=["vector", "matrix"])
@pytest.mark.parametrize("dense", [False, True])
def test_solutions(rhs, dense):
    x = T.dmatrix("x") if dense else sparse.csc_matrix("x")
    y = T.TensorType("float64", (None,) * rhs.ndim)("y")
    f = symcomp.function([x, y], sparse.cg(x, y, return_steps=True), mode=MODE)
    z, steps = f(A.toarray() if dense else A, rhs)
    np.testing.assert_allclose(z, np.linalg.solve(A.toarray(), rhs), rtol=1e-6)
    assert 0 < steps <= N + 1
    zero, steps = f(A.toarray() if dense else A, 0 * rhs)
    assert not zero.any() and steps == 1


def test_starts_tolerances_and_preconditioners():
    x, y = sparse.csr_matrix("x"), T.dvector("y")
    wanted = np.linalg.solve(A.toarray(), b)
    scaled = sp.diags_array(10.0 ** np.arange(N))
    stiff = sp.csr_array(scaled @ A @ scaled)
    steps = {}
    for name, options in {
        "plain": {}, "start": {"x0": T.constant(wanted)}, "coarse": {"rtol": 1e-2},
        "callable": {"M": lambda r: r * 2}, "few": {"maxiter": 2},
    }.items():  # fmt: skip
        out = sparse.cg(x, y, return_steps=True, **options)
        z, steps[name] = symcomp.function([x, y], out, mode=MODE)(A, b)
        if name != "few":
            np.testing.assert_allclose(z, wanted, atol=0.05 if name == "coarse" else 1e-6)
    assert steps["start"] == 1 and steps["coarse"] < steps["plain"] and steps["few"] == 2
    for M in (None, "jacobi"):
        out = sparse.cg(x, y, M=M, return_steps=True)
        _, steps[M] = symcomp.function([x, y], out, mode=MODE)(stiff, b)
    assert steps["jacobi"] < steps[None]


def test_derivatives_of_two_orders():
    sparse.verify_grad(solve(), [A, b], n_tests=1, mode="FAST_COMPILE")
    symcomp.gradient.verify_grad(solve(), [A.toarray(), B], n_tests=1, mode="FAST_COMPILE")

    def slope(A, b):
        return symcomp.grad((solve()(A, b) ** 3).sum(), [A, b])[0].sum(sparse_grad=True)

    sparse.verify_grad(slope, [A, b], n_tests=1, mode="FAST_COMPILE")


def test_operators_that_are_functions():
    """Gradients reach what a function uses, through a computed matrix as well."""
    w = T.dscalar("w")

    def solution(w, b):
        m = T.exp(w) * T.constant(A.toarray())
        return sparse.cg(lambda v: T.dot(m, v) + v, b, rtol=1e-13)

    symcomp.gradient.verify_grad(solution, [np.float64(0.3), b], n_tests=1, mode="FAST_COMPILE")
    f = symcomp.function([w], solution(w, T.constant(b)), mode=MODE)
    wanted = np.linalg.solve(np.exp(0.3) * A.toarray() + np.eye(N), b)
    np.testing.assert_allclose(f(0.3), wanted, rtol=1e-8)


def test_what_is_no_system():
    with pytest.raises(ShapeError, match="a vector or a matrix"):
        sparse.cg(sparse.csr_matrix("x"), T.dscalar("c"))
    with pytest.raises(ShapeError, match="a matrix or a callable"):
        sparse.cg(T.dvector("v"), T.dvector("v"))
    with pytest.raises(ValueError, match="M='ilu'"):
        sparse.cg(sparse.csr_matrix("x"), T.dvector("v"), M="ilu")
