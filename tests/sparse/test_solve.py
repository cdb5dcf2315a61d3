"""Systems with sparse matrices and exponentials of them: values and derivatives of two orders."""

import importlib.util

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import ShapeError
from symcomp.sparse import solve
from symcomp.tests.sparse.harness import MODE, assert_same_pattern, check, random_sparse

RNG = np.random.default_rng(0)
N = 5
A = sp.csr_array(random_sparse(N, N, 0.4, seed=1) + 4 * sp.eye_array(N))
B, b = RNG.normal(size=(N, 2)), RNG.normal(size=N)


def test_general_systems():
    check(sparse.spsolve, A, b, expected=np.linalg.solve, tolerance=1e-4)
    check(sparse.spsolve, A, B, expected=np.linalg.solve, tolerance=1e-4, order=1)
    check(sparse.spsolve, A, sp.csr_array(B), expected=np.linalg.solve, grad=False)
    z = sp.csr_array(A + 1j * random_sparse(N, N, 0.4, seed=1))
    check(sparse.spsolve, z, b + 1j, expected=np.linalg.solve, tolerance=1e-4, order=1)


def test_the_matrix_is_factorized_once():
    x, y = sparse.csr_matrix("x"), T.dvector("y")
    cost = (sparse.spsolve(x, y) ** 2).sum()
    f = symcomp.function([x, y], [cost, *symcomp.grad(cost, [x, y])], mode=MODE)
    names = [type(node.op).__name__ for node in f.maker.fgraph.nodes]
    assert names.count("Factorize") == 1 and names.count("SolveFactorized") == 2
    _, gx, _ = f(A, b)
    assert_same_pattern(gx, A)


def test_systems_without_a_solution():
    x, y = sparse.csc_matrix("x"), T.dvector("y")
    f = symcomp.function([x, y], sparse.spsolve(x, y), mode=MODE)
    with pytest.raises(np.linalg.LinAlgError, match="cannot be factorized by superlu"):
        f(sp.csc_array(np.ones((2, 2))), np.ones(2))
    with pytest.raises(ShapeError, match="has 5 rows, b has shape"):
        f(A, np.ones(3))
    with pytest.raises(ShapeError, match="columns has an entry in row"):
        f(sp.csc_array(np.ones((3, 2))), np.ones(2))
    with pytest.raises(ShapeError, match="which is not square"):
        sparse.spsolve(sparse.csr_matrix("z", shape=(2, 3)), y)
    with pytest.raises(ValueError, match="method='qr'"):
        sparse.spsolve(x, y, method="qr")


class Stand:
    """A stand-in for a module of scikit-sparse: its names, on NumPy."""

    class UMFPACKError(Exception):
        """The exception class of UMFPACK."""

    CholmodError = UMFPACKError

    class Factor:
        """A factorization."""

        def __init__(self, matrix):
            self.matrix = matrix.toarray()
            if np.linalg.matrix_rank(self.matrix) < len(self.matrix):
                raise Stand.UMFPACKError("singular")

        def solve(self, b):
            assert b.ndim == 1
            return np.linalg.solve(self.matrix, b)

    umf_factor = cho_factor = Factor


@pytest.mark.parametrize("method", ["umfpack", "cholmod"])
@pytest.mark.parametrize("complex_", [False, True])
def test_other_methods(method, complex_, monkeypatch):
    x, y = sparse.csr_matrix("x", "complex128"), T.zmatrix("y")
    f = symcomp.function([x, y], sparse.spsolve(x, y, method=method), mode=MODE)
    root = A + 1j * complex_ * A.T
    spd = sp.csr_array(root @ root.conj().T)
    if importlib.util.find_spec("sksparse") is None:
        with pytest.raises(ImportError, match=r"pip install 'symcomp\[sparse\]'"):
            f(spd, B + 1j)
        monkeypatch.setattr(solve, method, Stand)
    np.testing.assert_allclose(f(spd, B + 1j), np.linalg.solve(spd.toarray(), B + 1j))
    if method == "umfpack":
        with pytest.raises(np.linalg.LinAlgError, match="cannot be factorized by umfpack"):
            f(sp.csr_array(np.ones((N, N)) + 0j), B + 1j)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(lower, unit):
    def wanted(x, y):
        return scipy.linalg.solve_triangular(x, y, lower=lower, unit_diagonal=unit)

    def ours(x, y):
        return sparse.spsolve_triangular(x, y, lower, unit)

    check(ours, A, b, expected=wanted, tolerance=1e-4, formats=["csr"])
    check(ours, A, B, expected=wanted, tolerance=1e-4, formats=["csc"], order=1)


def test_exponentials():
    small = sp.csr_array(A * 0.3)
    check(sparse.expm_multiply, small, b, expected=lambda a, b: scipy.linalg.expm(a) @ b,
          tolerance=1e-4, formats=["csr"])  # fmt: skip
    check(sparse.expm_multiply, small, B, expected=lambda a, b: scipy.linalg.expm(a) @ b,
          tolerance=1e-4, formats=["csc"], order=1)  # fmt: skip
    z = sp.csr_array(small + 0.5j * small)
    check(sparse.expm_multiply, z, b + 1j * b, expected=lambda a, b: scipy.linalg.expm(a) @ b,
          tolerance=1e-4, formats=["csr"], order=1)  # fmt: skip


def test_gradient_of_an_exponential_is_exact():
    """Against the derivative of the dense exponential, for a norm that needs several steps."""
    a = sp.csr_array(random_sparse(6, 6, 0.5, seed=3) * 3)
    y, g = RNG.normal(size=6), RNG.normal(size=6)
    x = sparse.csr_matrix("x")
    cost = (sparse.expm_multiply(x, T.constant(y)) * g).sum()
    found = symcomp.function([x], symcomp.grad(cost, x), mode=MODE)(a)
    wanted = scipy.linalg.expm_frechet(a.toarray().T, np.outer(g, y), compute_expm=False)
    stored = found.tocoo()
    np.testing.assert_allclose(stored.data, wanted[stored.row, stored.col], rtol=1e-11, atol=1e-12)
