"""Linear systems and Cholesky decompositions: against NumPy and SciPy, with derivatives."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.linalg.solve import STRUCTURES, Solve
from symcomp.tests.harness import ALL_DTYPES, check
from symcomp.tests.ops.matrix_values import (
    KINDS,
    adjoint,
    as_numpy,
    check_second_derivatives,
    normal,
    positive,
    same_numbers,  # noqa: F401  (a fixture)
    seen,
    whole_numbers,
)

S = T.slinalg
WORDS = ("gen", "banded", "pos", "sym", "her", "lower triangular", "upper triangular")
# Shapes of a and b: vectors, matrices, stacks, stacks that broadcast, nothing.
SYSTEMS = [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((1, 1), (1, 1)), ((2, 3, 3), (2, 3, 1)),
    ((3, 3), (2, 3, 2)), ((2, 1, 2, 2), (3, 2, 2)), ((2, 2, 2), (2,)), ((2, 2, 2), (2, 2)),
    ((0, 0), (0,)), ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((0, 2, 2), (0, 2, 1)),
]  # fmt: skip


def system(word, lower, shape, dtype):
    """Make a matrix for solve, with the structure in one triangle, and the matrix it represents."""
    if word in ("gen", "banded"):
        a = normal(*shape, dtype=dtype) + 2 * np.eye(shape[-1])
        a = a if word == "gen" else np.triu(np.tril(a, 1), -1)
        return a, a
    if "triangular" in word:
        a = normal(*shape, dtype=dtype) + 3 * np.eye(shape[-1])
        return a, np.tril(a) if word.startswith("lower") else np.triu(a)
    a = positive(*shape, dtype=dtype) if word == "pos" else normal(*shape, dtype=dtype)
    a = a + 4 * np.eye(shape[-1])
    # The triangle that is not read holds anything.
    noise = normal(*shape)
    a = np.tril(a) + np.triu(noise, 1) if lower else np.triu(a) + np.tril(noise, -1)
    return a, seen(a, lower, hermitian=word != "sym")


def solution(a, b):
    """Return NumPy's solution; a b of one axis is one vector."""
    return np.linalg.solve(a, b[:, None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("word", WORDS)
def test_structures(word, lower, dtype):
    for shape, right in SYSTEMS:
        (a, meant), b = system(word, lower, shape, dtype), normal(*right, dtype=dtype)
        check(
            lambda a, b: S.solve(a, b, word, lower),
            a,
            b,
            expected=solution(meant, b),
            rtol=1e-9,
            atol=1e-12,
        )


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("word", WORDS)
def test_transposed(word, trans):
    a, meant = system(word, True, (3, 3), "complex128")
    turned = {0: meant, 1: meant.T, 2: adjoint(meant)}[{"N": 0, "T": 1, "C": 2}.get(trans, trans)]
    check(
        lambda a, b: S.solve(a, b, word, True, trans=trans),
        a,
        normal(3, 2, dtype="complex128"),
        expected=lambda _, b: np.linalg.solve(turned, b),
        rtol=1e-9,
    )


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_solve_triangular(lower, unit, trans):
    a = normal(3, 3) + 3 * np.eye(3)
    check(
        lambda a, b: S.solve_triangular(a, b, trans, lower, unit),
        a,
        normal(3, 2),
        expected=lambda a, b: scipy.linalg.solve_triangular(
            a, b, trans=trans, lower=lower, unit_diagonal=unit
        ),
    )


def test_named_solvers():
    a, b = positive(3, 3), normal(3)
    for function, meant in (
        (S.solve_lower_triangular, np.tril(a)),
        (S.solve_upper_triangular, np.triu(a)),
        (S.solve_symmetric, seen(a, lower=False)),
    ):
        check(function, a, b, expected=np.linalg.solve(meant, b), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", *KINDS])
@pytest.mark.parametrize("below, above", [(0, 0), (0, 2), (1, 0), (2, 3), (8, 8)])
def test_bands(below, above, dtype):
    """Also where rows are exchanged, columns are next to each other, and steps are negative."""
    whole = normal(9, 9, dtype=dtype).astype(dtype)
    band = np.triu(np.tril(whole, above), -below)
    op, b = Solve("banded"), normal(9, 2, dtype=dtype).astype(dtype)
    for a in (band + 3 * np.eye(9, dtype=dtype), band, np.asfortranarray(band), band.T[::-1, ::-1]):
        z = op.perform(a, b)
        assert z.dtype == dtype
        backward = abs(a @ z - b).max() / (abs(a).sum(1).max() * abs(z).max() + abs(b).max())
        # Elimination with exchanges: n times its growth, of at most 2^(bands), is not met here.
        assert backward <= 100 * np.finfo(dtype).eps
    column = band[:, 4].copy()
    band[:, 4] = 0
    with pytest.raises(np.linalg.LinAlgError, match="singular matrix"):
        op.perform(band, b)
    assert np.isnan(Solve("banded", on_error="nan").perform(band, b)).all()
    band[:, 4], band[4, 4] = column, np.nan
    assert np.isnan(op.perform(band, b)).any()


def test_b_ndim():
    a, b = normal(2, 3, 3), normal(2, 3)
    meant = np.linalg.solve(a, b[..., None])[..., 0]
    check(lambda a, b: S.solve(a, b, b_ndim=1), a, b, expected=meant, rtol=1e-10)
    c = normal(3, 2)
    check(lambda a, c: S.solve(a, c, b_ndim=2), a, c, expected=np.linalg.solve(a, c), rtol=1e-10)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_solve_dtypes(dtype):
    a, b = whole_numbers(dtype), np.array([1, 0, 1], dtype)
    for word in ("gen", "lower triangular"):
        check(
            partial(S.solve, assume_a=word),
            a,
            b,
            expected=as_numpy(np.linalg.solve),
            grad=dtype in ("float32", "complex64"),
        )
    v, w = T.matrix(dtype=dtype), T.dvector()
    assert S.solve(v, w).dtype == ("complex128" if dtype.startswith("c") else "float64")


@pytest.mark.parametrize("word", WORDS)
def test_singular_matrices_raise(word):
    a, b = T.dmatrix(), T.dvector()
    x = S.solve(a, b, word)
    with pytest.raises(np.linalg.LinAlgError, match="(?i)singular|not positive definite"):
        x.eval({a: np.zeros((2, 2)), b: np.ones(2)})


def test_nan_and_infinity_stay_visible():
    a, b = T.dmatrix(), T.dvector()
    nan = np.full((2, 2), np.nan)
    for word in ("gen", "lower triangular"):
        x = S.solve(a, b, word)
        with np.errstate(all="ignore"):
            assert np.isnan(x.eval({a: nan, b: np.ones(2)})).all()
            assert not np.isfinite(x.eval({a: np.eye(2), b: np.full(2, np.inf)})).any()


@pytest.mark.parametrize("word", WORDS)
def test_arrays_in_any_order(word):
    for order in (np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2], lambda x: x[::-1][::-1]):
        a, meant = system(word, True, (4, 4), "float64")
        b = normal(8, 2)[::-2]
        check(
            lambda a, b: S.solve(a, b, word, True),
            order(a),
            b,
            expected=np.linalg.solve(meant, b),
            rtol=1e-9,
        )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("word", WORDS)
def test_second_derivatives_of_solve(word, dtype):
    a, _ = system(word, True, (2, 2), dtype)
    check_second_derivatives(lambda a, b: S.solve(a, b, word, True), a, normal(2, 1, dtype=dtype))


def test_fields_that_say_nothing_are_equal():
    assert Solve("gen", True) == Solve("general", False)
    assert Solve("lower triangular", False) == Solve("lower_triangular", True)
    assert Solve("pos", True) != Solve("pos", False)
    assert all(
        Solve(word).A_structure == Solve(name).A_structure for word, name in STRUCTURES.items()
    )


def test_solve_errors():
    a, b = T.dmatrix("a"), T.dvector("b")
    with pytest.raises(ValueError, match=r"assume_a='diag' must be one of 'gen'"):
        S.solve(a, b, "diag")
    with pytest.raises(ValueError, match=r"trans=3 must be 0, 1, 2"):
        S.solve(a, b, trans=3)
    with pytest.raises(ShapeError, match=r"a \(float64 vector\) has 1 axes"):
        S.solve(b, b)
    with pytest.raises(ShapeError, match=r"neither vectors \(1\) nor matrices \(2\)"):
        S.solve(a, T.dscalar())
    with pytest.raises(ShapeError, match="axis 0 of b .* has length 2, but the systems of a"):
        S.solve(T.tensor("float64", shape=(3, 3)), T.tensor("float64", shape=(2,)))
    with pytest.raises(ShapeError, match=r"shapes \(3, 3\) and \(2,\) do not fit"):
        S.solve(a, b).eval({a: np.eye(3), b: np.ones(2)})


# -- Cholesky


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    "shape", [(3, 3), (1, 1), (2, 3, 3), (0, 0), (2, 0, 0), (0, 2, 2)], ids=str
)
def test_cholesky(shape, lower, dtype):
    a = positive(*shape, dtype=dtype)
    noise = normal(*shape)
    a = np.tril(a) + np.triu(noise, 1) if lower else np.triu(a) + np.tril(noise, -1)
    check(
        lambda x: S.cholesky(x, lower),
        a,
        expected=np.linalg.cholesky(seen(a, lower), upper=not lower),
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_cholesky_dtypes(dtype):
    x = np.eye(3).astype(dtype)
    grad = dtype in ("float32", "complex64")
    check(S.cholesky, x, expected=as_numpy(np.linalg.cholesky), grad=grad)


def test_cholesky_of_what_is_not_positive():
    x = T.dtensor3()
    values = np.array([np.eye(2), -np.eye(2), np.zeros((2, 2))])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        S.cholesky(x).eval({x: values})
    found = S.cholesky(x, on_error="nan").eval({x: values})
    np.testing.assert_array_equal(found[0], np.eye(2))
    assert np.isnan(found[1:]).all()
    with pytest.raises(ValueError, match="on_error='skip' must be 'raise' or 'nan'"):
        S.cholesky(x, on_error="skip")
    with pytest.raises(ShapeError, match=r"cholesky: x \(.*\) must be square: 2 rows, 3 columns"):
        S.cholesky(T.tensor("float64", shape=(2, 3)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
def test_derivatives_of_cholesky_are_nan_where_it_is(lower, dtype):
    """Whole matrices, as in Theano, and of a stack those alone that have no decomposition."""
    x = T.tensor3("x", dtype=dtype)
    good = np.asarray(positive(1, 2, 2, dtype=dtype)[0], dtype)
    indefinite = np.array([[1, 0.2], [0.2, -2]], dtype)
    stack = np.stack([indefinite, good, np.zeros((2, 2), dtype)])

    def derivatives(on_error):
        z = S.cholesky(x, lower, on_error=on_error)
        return symcomp.function([x], [z, T.grad(T.real(z).sum(), x), T.Rop(z, x, x)])

    for found, wanted in zip(
        derivatives("nan")(stack), derivatives("raise")(good[None]), strict=True
    ):
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.isnan(found).all(axis=(1, 2)), [True, False, True])
        np.testing.assert_array_equal(found[1], wanted[0])
    with pytest.raises(np.linalg.LinAlgError):
        derivatives("raise")(stack)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_cho_solve(lower, dtype):
    for shape, right in SYSTEMS:
        c = np.linalg.cholesky(positive(*shape, dtype=dtype), upper=not lower)
        a, b = c @ adjoint(c) if lower else adjoint(c) @ c, normal(*right, dtype=dtype)
        check(
            lambda c, b: S.cho_solve((c, lower), b),
            c,
            b,
            expected=solution(a, b),
            rtol=1e-9,
            atol=1e-12,
        )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_second_derivatives_of_cholesky(lower, dtype):
    check_second_derivatives(lambda x: S.cholesky(x, lower), positive(2, 2, dtype=dtype))


@pytest.mark.parametrize("structure", ["gen", "pos", "sym", "lower triangular"])
def test_nan_where_there_is_no_solution(structure):
    a = np.array([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 1.0]]])
    b = np.array([[2.0, 4.0], [1.0, 1.0], [4.0, 3.0]])
    wanted = np.array([[1.0, 1.0], [np.nan, np.nan], [1.0, 3.0]])
    x, y = T.dtensor3(), T.dmatrix()
    z = S.solve(x, y, structure, b_ndim=1, on_error="nan")
    for linker in ("cvm", "vm"):
        f = symcomp.function([x, y], z, mode=symcomp.Mode(linker))
        np.testing.assert_allclose(f(a, b), wanted, rtol=1e-15)
    with pytest.raises(ValueError, match="on_error='skip' must be 'raise' or 'nan'"):
        S.solve(x, y, on_error="skip")
