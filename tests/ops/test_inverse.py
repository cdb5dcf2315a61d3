"""Inverses, pseudo-inverses and determinants: against NumPy, with derivatives."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.tests.harness import ALL_DTYPES, check
from symcomp.tests.ops.matrix_values import (
    KINDS,
    as_numpy,
    check_second_derivatives,
    normal,
    same_numbers,  # noqa: F401  (a fixture)
    seen,
    whole_numbers,
)

L = T.nlinalg
SQUARES = [(3, 3), (1, 1), (2, 2, 2), (2, 1, 2, 2), (0, 0), (2, 0, 0), (0, 2, 2)]
SQUARE_FUNCTIONS = {
    "matrix_inverse": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
@pytest.mark.parametrize("name", SQUARE_FUNCTIONS)
def test_squares(name, shape, dtype):
    function = as_numpy(lambda x: tuple(SQUARE_FUNCTIONS[name](x)))
    if name != "slogdet":
        function = as_numpy(SQUARE_FUNCTIONS[name])
    check(getattr(L, name), normal(*shape, dtype=dtype), expected=function, rtol=1e-10)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(dtype):
    x = whole_numbers(dtype)
    for name in ("matrix_inverse", "det", "pinv"):
        function = as_numpy(SQUARE_FUNCTIONS.get(name, np.linalg.pinv))
        loose = 2e-3 if dtype == "float16" else 1e-5 if dtype in ("float32", "complex64") else 1e-12
        grad = dtype in ("float32", "complex64")
        check(getattr(L, name), x, expected=function, rtol=loose, atol=loose, grad=grad)
    check(L.slogdet, x, expected=as_numpy(lambda v: tuple(np.linalg.slogdet(v))), grad=False)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (3, 3), (2, 2, 3), (0, 2), (2, 0), (1, 1)])
def test_pinv(shape, dtype):
    check(L.pinv, normal(*shape, dtype=dtype), expected=np.linalg.pinv, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", KINDS)
def test_pinv_of_hermitian_reads_the_lower_triangle(dtype):
    x = normal(3, 3, dtype=dtype)
    check(
        lambda v: L.pinv(v, hermitian=True),
        x,
        expected=np.linalg.pinv(seen(x, True)),
        rtol=1e-9,
    )


def test_pinv_of_lower_rank():
    x = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    v = T.dmatrix()
    np.testing.assert_allclose(L.pinv(v).eval({v: x}), np.linalg.pinv(x), atol=1e-15)
    nearly = np.diag([1.0, 1e-13])
    np.testing.assert_allclose(L.pinv(v, rcond=1e-10).eval({v: nearly}), np.diag([1.0, 0.0]))
    # Where the rank does not change, the derivative holds: along the set of matrices of rank 1.
    a, b = T.dvectors("a", "b")
    check(
        lambda a, b: L.pinv(T.outer(a, b), rcond=1e-8),
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, -1.0]),
        expected=lambda a, b: np.linalg.pinv(np.outer(a, b)),
        rtol=1e-9,
    )


def test_pinv_default_threshold_and_that_of_the_rounding_unit():
    x = np.diag([1.0, 3e-16])
    v = T.dmatrix()
    assert L.pinv(v, rcond=1e-16).eval({v: x})[1, 1] > 1e15
    assert L.pinv(v, rcond=None).eval({v: x})[1, 1] == 0


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinant_of_singular_matrices_has_a_gradient(rank):
    left, right = normal(3, rank), normal(rank, 3)
    cofactors = np.array(
        [
            [
                (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(left @ right, i, 0), j, 1))
                for j in range(3)
            ]
            for i in range(3)
        ]
    )
    x = T.dmatrix("x")
    gradient = symcomp.grad(L.det(x), x)
    np.testing.assert_allclose(gradient.eval({x: left @ right}), cofactors, atol=1e-13)


def test_adjugate():
    for dtype in KINDS:
        check(
            L.Adjugate(),
            normal(2, 3, 3, dtype=dtype),
            expected=lambda x: np.linalg.inv(x) * np.linalg.det(x)[:, None, None],
            rtol=1e-9,
        )
    x = np.array([np.diag([1.0, 2.0, 4.0]), np.full((3, 3), np.nan)])
    v = T.dtensor3()
    found = L.Adjugate()(v).eval({v: x})
    np.testing.assert_allclose(found[0], np.diag([8.0, 4.0, 2.0]))
    assert np.isnan(found[1]).all()


def test_extreme_determinants():
    x = np.eye(400) * 1e-3
    v = T.dmatrix()
    sign, logabs = L.slogdet(v)
    assert float(L.det(v).eval({v: x})) == 0
    assert float(sign.eval({v: -x})) == 1
    np.testing.assert_allclose(logabs.eval({v: x}), 400 * np.log(1e-3))


def test_singular_and_nan():
    v = T.dmatrix()
    zero, nan = np.zeros((2, 2)), np.full((2, 2), np.nan)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        L.matrix_inverse(v).eval({v: zero})
    sign, logabs = L.slogdet(v)
    assert sign.eval({v: zero}) == 0 and logabs.eval({v: zero}) == -np.inf
    with np.errstate(invalid="ignore"):
        assert np.isnan(L.det(v).eval({v: nan})) and np.isnan(logabs.eval({v: nan}))
        assert np.isnan(L.matrix_inverse(v).eval({v: nan})).all()


def test_arrays_in_any_order():
    big = normal(6, 6)
    for x in (big[::2, ::2], big[::-2, ::2], np.asfortranarray(big[:3, :3]), big[3:, 3:].T):
        for name in ("matrix_inverse", "det"):
            check(getattr(L, name), x, expected=as_numpy(SQUARE_FUNCTIONS[name]), rtol=1e-9)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "function",
    [
        L.matrix_inverse,
        L.pinv,
        L.det,
        lambda x: L.slogdet(x)[1],
        lambda x: T.real(L.slogdet(x)[0]),
    ],
)
def test_second_derivatives(function, dtype):
    x = normal(2, 2, dtype=dtype) + 2 * np.eye(2)
    check_second_derivatives(function, x)


@pytest.mark.parametrize("name", [*SQUARE_FUNCTIONS, "pinv"])
def test_errors(name):
    function = getattr(L, name)
    with pytest.raises(ShapeError, match=rf"{name}: x \(float64 vector\) has 1 axes: a matrix, or"):
        function(T.dvector())
    if name == "pinv":
        return
    with pytest.raises(
        ShapeError, match=rf"{name}: x \(.*\(2, 3\)\) must be square: 2 rows, 3 col"
    ):
        function(T.tensor("float64", shape=(2, 3)))
    v = T.dmatrix()
    out = function(v)
    out = out[0] if isinstance(out, list) else out
    with pytest.raises(ShapeError, match=rf"{name}: a float64 array of shape \(2, 3\): its mat"):
        out.eval({v: np.zeros((2, 3))})


def test_static_shapes():
    x = T.tensor("float64", shape=(5, None, 3))
    assert L.matrix_inverse(x).type.shape == (5, 3, 3)
    assert L.det(x).type.shape == (5,)
    assert L.pinv(x).type.shape == (5, 3, None)
