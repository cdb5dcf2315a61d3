"""LU, Sylvester's equation, Schur and QZ decompositions, tridiagonal systems, block diagonals."""

import numpy as np
import pytest
import scipy.linalg

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.linalg.tridiagonal import FactorTridiagonal, SolveFactoredTridiagonal
from symcomp.tests.harness import check
from symcomp.tests.ops.matrix_values import (
    KINDS,
    adjoint,
    check_second_derivatives,
    normal,
    same_numbers,  # noqa: F401  (a fixture)
)

L = T.linalg
SQUARES = [(3, 3), (1, 1), (2, 4, 4), (0, 0)]


def swapped(x):
    return np.swapaxes(x, -1, -2)


def each(function, *arrays, core=2):
    """``function`` of every matrix of stacks."""
    stack = arrays[0].shape[: arrays[0].ndim - core]
    found = [function(*(a[place] for a in arrays)) for place in np.ndindex(stack)]
    parts = zip(*found, strict=True)
    return [np.stack(p).reshape(*stack, *np.shape(p[0])) for p in parts]


# -- LU


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_lu(shape, dtype):
    x = normal(*shape, dtype=dtype)
    if x.size:
        p, l, u = each(lambda a: scipy.linalg.lu(a), x)
        # SciPy's p of a complex matrix with one row is complex, of larger ones real.
        check(lambda a: L.lu(a), x, expected=[p.real, l, u], atol=1e-14)
    check(lambda a: L.lu(a, permute_l=True)[0], x, expected=lambda a: L.lu(a, True)[0].eval())
    packed, pivots = L.lu_factor(x)
    p, l, u = L.lu(x, p_indices=True)
    order = L.pivots_to_permutation(pivots)
    found = [v.eval() for v in (packed, p, l, u, order)]
    lu = found[2] @ found[3]
    np.testing.assert_allclose(np.tril(found[0], -1) + np.triu(found[0]), found[0])
    np.testing.assert_allclose(np.take_along_axis(lu, found[1][..., None], -2), x, atol=1e-14)
    np.testing.assert_allclose(lu, np.take_along_axis(x, found[4][..., None], -2), atol=1e-14)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_systems_of_factors(trans, dtype):
    a, b = normal(2, 3, 3, dtype=dtype), normal(2, 3, 2, dtype=dtype)
    op = {0: a, 1: swapped(a), 2: adjoint(a)}[trans]
    check(
        lambda a, b: L.lu_solve(L.lu_factor(a), b, trans, b_ndim=2), a, b,
        expected=np.linalg.solve(op, b), rtol=1e-10,
    )  # fmt: skip
    check(
        lambda a, b: L.lu_solve(L.lu_factor(a), b, trans), a[0], b[0, :, 0],
        expected=np.linalg.solve(op[0], b[0, :, 0]), rtol=1e-10,
    )  # fmt: skip


def test_second_derivatives_of_lu():
    check_second_derivatives(lambda a: L.lu_factor(a)[0], normal(3, 3) + 3 * np.eye(3))


def test_singular_matrices_have_a_zero_on_the_diagonal():
    x = T.dmatrix()
    assert L.lu_factor(x)[0].eval({x: [[1.0, 2.0], [2.0, 4.0]]})[1, 1] == 0
    with pytest.raises(ShapeError, match="square"):
        L.lu(T.tensor(dtype="float64", shape=(2, 3)))


# -- Sylvester's equation


@pytest.mark.parametrize("dtype", KINDS)
def test_sylvester(dtype):
    a, b, c = normal(2, 3, 3, dtype=dtype), normal(2, 2, 2, dtype=dtype), normal(2, 3, 2)
    (wanted,) = each(lambda *m: (scipy.linalg.solve_sylvester(*m),), a, b, c)
    check(L.solve_sylvester, a, b, c, expected=wanted, rtol=1e-9)
    check_second_derivatives(L.solve_sylvester, a[0], b[0], c[0].astype(dtype))
    triangles = [np.triu(m) + 3 * np.eye(m.shape[-1]) for m in (a, b)]
    (wanted,) = each(lambda *m: (scipy.linalg.solve_sylvester(*m),), *triangles, c)
    check(
        lambda a, b, c: L.solve_triangular_sylvester(T.triu(a), T.triu(b), c), a + 3 * np.eye(3),
        b + 3 * np.eye(2), c, expected=wanted, rtol=1e-9,
    )  # fmt: skip


def test_sylvester_without_a_solution():
    a, c = np.diag([1.0, -1.0]), np.ones((2, 2))
    x, y = T.dmatrices(2)
    for function in (L.solve_sylvester, L.solve_triangular_sylvester):
        found = function(x, x, y).eval({x: a, y: c})
        assert np.isnan(found).all() or np.abs(found).max() > 1e12
    with pytest.raises(ShapeError, match="do not fit"):
        L.solve_sylvester(x, x, y).eval({x: a, y: np.ones((2, 3))})


# -- Schur


@pytest.mark.parametrize("sort", [None, "lhp", "rhp", "iuc", "ouc"])
def test_schur(sort):
    for x, output in ((normal(2, 4, 4), "real"), (normal(4, 4, dtype="complex128"), "complex")):
        a = T.as_tensor(x)
        t, z = (v.eval() for v in L.schur(a, output, sort))
        np.testing.assert_allclose(z @ t @ adjoint(z), x, atol=1e-12)
        (wanted, _) = each(lambda m, o=output: scipy.linalg.schur(m, o, sort=sort)[:2], x)
        np.testing.assert_allclose(t, wanted, atol=1e-12)


def test_derivatives_of_schur():
    """The functions do not depend on the phases of the columns of z."""
    x = normal(3, 3, dtype="complex128")

    def invariants(a):
        t, z = L.schur(a)
        weights = T.constant(np.arange(1.0, 4.0))
        projections = T.dot(z * weights, T.conj(z).T)
        return [T.diagonal(t), projections, T.abs_(t) ** 2]

    wanted = [v.eval() for v in invariants(T.as_tensor(x))]
    check(invariants, x, expected=wanted, rtol=1e-9, tolerance=1e-5)
    real = normal(3, 3)
    check(
        lambda a: T.abs_(L.schur(a, "complex")[0]) ** 2, real,
        expected=lambda a: abs(scipy.linalg.schur(a, "complex")[0]) ** 2, rtol=1e-9, tolerance=1e-5,
    )  # fmt: skip
    a = T.dmatrix()
    with pytest.raises(symcomp.NullTypeGradError, match="output='complex'"):
        symcomp.grad(L.schur(a)[0].sum(), a)


def test_schur_of_what_is_not_finite():
    a = T.dmatrix()
    assert np.isnan(L.schur(a)[0].eval({a: [[1.0, np.nan], [0.0, 1.0]]})).all()
    with pytest.raises(ValueError, match="sort='up'"):
        L.schur(a, sort="up")


@pytest.mark.parametrize("sort", [None, "lhp", "ouc"])
def test_qz(sort):
    for dtype in KINDS:
        x, y = normal(4, 4, dtype=dtype), normal(4, 4, dtype=dtype)
        s, t, alpha, beta, q, z = (v.eval() for v in L.qz(x, y, sort=sort))
        np.testing.assert_allclose(q @ s @ adjoint(z), x, atol=1e-12)
        np.testing.assert_allclose(q @ t @ adjoint(z), y, atol=1e-12)
        wanted = scipy.linalg.eigvals(x, y)
        found = alpha / beta
        for value in wanted:
            assert np.abs(found - value).min() < 1e-9 * (1 + abs(value))
        if sort == "lhp":
            assert list(found.real < 0) == sorted(found.real < 0, reverse=True)


# -- tridiagonal matrices


@pytest.mark.parametrize("dtype", KINDS)
def test_tridiagonal(dtype):
    l, u, d = (normal(2, n, dtype=dtype) for n in (3, 3, 4))
    b = normal(2, 4, 2, dtype=dtype)

    def dense(l, d, u):
        rows = zip(l, d, u, strict=True)
        return np.stack([np.diag(x, -1) + np.diag(y) + np.diag(z, 1) for x, y, z in rows])

    wanted = np.linalg.solve(dense(l, d, u), b)
    check(lambda *a: L.solve_tridiagonal(*a, b_ndim=2), l, d, u, b, expected=wanted, rtol=1e-9)
    check(
        lambda *a: L.solve_tridiagonal(*a), l[0], d[0], u[0], b[0, :, 0],
        expected=wanted[0, :, 0], rtol=1e-9,
    )  # fmt: skip
    factors = FactorTridiagonal()(*map(T.as_tensor, (l, d, u)))
    for transposed in (False, True):
        a = swapped(dense(l, d, u)) if transposed else dense(l, d, u)
        z = SolveFactoredTridiagonal(transposed)(*factors, T.as_tensor(b)).eval()
        np.testing.assert_allclose(z, np.linalg.solve(a, b), rtol=1e-9)


def test_singular_tridiagonal():
    for d in ([0.0], [1.0, 0.0]):
        n = len(d)
        z = L.solve_tridiagonal(np.zeros(n - 1), np.array(d), np.zeros(n - 1), np.ones(n)).eval()
        assert np.isnan(z).all()
    with pytest.raises(ShapeError, match="do not fit"):
        L.solve_tridiagonal(np.ones(2), np.ones(2), np.ones(1), np.ones(2)).eval()


def test_block_diag():
    x, y = normal(2, 2, 3), normal(2, 1, 2)
    (wanted,) = each(lambda *m: (scipy.linalg.block_diag(*m),), x, y)
    check(L.block_diag, x, y, expected=wanted)
    check(lambda x: L.block_diag(x, np.int8([[3]])), x[0],
          expected=scipy.linalg.block_diag(x[0], [[3]]))  # fmt: skip
    with pytest.raises(ShapeError, match="argument 1"):
        L.block_diag(T.dmatrix(), T.dvector())
