"""Exponentials, powers and norms of matrices, tensor equations: against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.tests.harness import ALL_DTYPES, check
from symcomp.tests.ops.matrix_values import (
    KINDS,
    as_numpy,
    check_second_derivatives,
    normal,
    same_numbers,  # noqa: F401  (a fixture)
    whole_numbers,
)

L, S = T.nlinalg, T.slinalg
SQUARES = [(3, 3), (1, 1), (2, 2, 2), (2, 1, 2, 2), (0, 0), (0, 2, 2)]

# -- the exponential


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_expm(shape, dtype):
    x = normal(*shape, dtype=dtype)
    check(S.expm, x, expected=scipy.linalg.expm, rtol=1e-11)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_expm_dtypes(dtype):
    x = whole_numbers(dtype)
    wide = x.astype("float64") if x.dtype.kind in "biu" else x
    check(
        S.expm,
        x,
        expected=as_numpy(scipy.linalg.expm)(wide),
        grad=dtype in ("float32", "complex64"),
        rtol={"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}.get(dtype),
    )


def test_expm_of_large_and_of_equal_eigenvalues():
    v = T.dmatrix()
    turn = np.array([[0.0, -100.0], [100.0, 0.0]])
    wanted = [[np.cos(100), -np.sin(100)], [np.sin(100), np.cos(100)]]
    np.testing.assert_allclose(S.expm(v).eval({v: turn}), wanted, rtol=1e-11)
    block = np.array([[2.0, 1.0], [0.0, 2.0]])
    check(S.expm, block, expected=np.exp(2) * np.array([[1.0, 1.0], [0.0, 1.0]]))


@pytest.mark.parametrize("dtype", KINDS)
def test_second_derivatives_of_expm(dtype):
    check_second_derivatives(S.expm, normal(2, 2, dtype=dtype))


# -- powers and products


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (0, 0)], ids=str)
def test_matrix_power(shape, n, dtype):
    x = normal(*shape, dtype=dtype) + 2 * np.eye(shape[-1])
    check(
        lambda x: L.matrix_power(x, n),
        x,
        expected=lambda x: np.linalg.matrix_power(x, n),
        rtol=1e-9,
        atol=1e-13,
    )


def test_powers_of_integers_stay_integers():
    x = np.array([[1, 1], [1, 0]])
    check(lambda x: L.matrix_power(x, 10), x, expected=np.linalg.matrix_power(x, 10))
    check(lambda x: L.matrix_power(x, 0), x, expected=np.eye(2, dtype=int))
    check(lambda x: L.matrix_power(x, -2), x, expected=np.linalg.matrix_power(x * 1.0, -2))
    check(lambda x: L.matrix_power(x, np.int64(2)), x, expected=x @ x)


def test_matrix_power_errors():
    for n in (1.5, True, "2"):
        with pytest.raises(TypeError, match=r"matrix_power: n=.* must be an int"):
            L.matrix_power(T.dmatrix(), n)
    with pytest.raises(ShapeError, match="matrix_power: M .* must be square: 2 rows, 3 columns"):
        L.matrix_power(T.tensor("float64", shape=(2, 3)), 2)
    v = T.dmatrix()
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        L.matrix_power(v, -1).eval({v: np.zeros((2, 2))})


def test_matrix_dot():
    a, b, c = normal(2, 3), normal(3, 4), normal(4)
    check(L.matrix_dot, a, b, c, expected=a @ b @ c)
    check(L.matrix_dot, a, expected=a)
    with pytest.raises(TypeError, match="at least one matrix"):
        L.matrix_dot()


# -- tensor equations


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape, ind", [((4, 2, 2), 1), ((2, 3, 6), 2), ((2, 3, 3, 2), 2)])
def test_tensorinv(shape, ind, dtype):
    x = normal(*shape, dtype=dtype)
    check(
        lambda x: L.tensorinv(x, ind),
        x,
        expected=lambda x: np.linalg.tensorinv(x, ind),
        rtol=1e-8,
    )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape, axes", [((2, 3, 6), None), ((6, 2, 3), (0,)), ((2, 3, 6), (1, 0))])
def test_tensorsolve(shape, axes, dtype):
    right = {None: (2, 3), (0,): (2, 3), (1, 0): (6,)}[axes]
    a, b = normal(*shape, dtype=dtype), normal(*right, dtype=dtype)
    check(
        lambda a, b: L.tensorsolve(a, b, axes),
        a,
        b,
        expected=_tensorsolve(a, b, axes),
        rtol=1e-8,
    )


def _tensorsolve(a, b, axes):
    if axes is not None:
        a = np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    return np.linalg.tensorsolve(a, b)


def test_tensor_equation_errors():
    with pytest.raises(ShapeError, match="ind=0 is not between 1 and the 3 axes"):
        L.tensorinv(T.dtensor3(), 0)
    with pytest.raises(ShapeError, match="the first 1 axes of a .* have 2 places, the others 3"):
        L.tensorinv(T.tensor("float64", shape=(2, 3)), 1)
    with pytest.raises(ShapeError, match="b .* has more axes than a"):
        L.tensorsolve(T.dmatrix(), T.dtensor3())


# -- norms

MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", MATRIX_ORDERS)
def test_norm_of_matrices(ord, keepdims, dtype):
    for shape, axis in (
        ((3, 2), None),
        ((2, 3, 2), (1, 2)),
        ((3, 2, 2), (-1, 0)),
        ((1, 1), (0, 1)),
    ):
        check(
            lambda x, axis=axis: L.norm(x, ord, axis, keepdims),
            normal(*shape, dtype=dtype),
            expected=lambda x, axis=axis: np.asarray(np.linalg.norm(x, ord, axis, keepdims)),
            rtol=1e-10,
        )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", [None, 1, 2, 3, 0, np.inf, -np.inf, 0.5])
def test_norm_of_vectors(ord, keepdims):
    for shape, axis in (((4,), None), ((3, 2), 0), ((3, 2), [-1]), ((2, 3, 2), 1)):
        check(
            lambda x, axis=axis: L.norm(x, ord, axis, keepdims),
            normal(*shape),
            expected=lambda x, axis=axis: np.asarray(
                np.linalg.norm(x, ord, tuple(axis) if isinstance(axis, list) else axis, keepdims)
            ),
            rtol=1e-10,
            grad=ord != 0,
        )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_norm_dtypes(dtype):
    x = whole_numbers(dtype)
    loose = 2e-3 if dtype == "float16" else 1e-6
    for ord in ("fro", "nuc", 1, 2):
        wide = x.astype("float64") if x.dtype.kind in "biu" else x
        wanted = np.asarray(as_numpy(lambda x, ord=ord: np.linalg.norm(x, ord))(wide))
        check(lambda x, ord=ord: L.norm(x, ord), x, expected=wanted, rtol=loose, grad=False)


def test_norm_of_everything():
    x = normal(2, 3, 2)
    check(L.norm, x, expected=lambda x: np.asarray(np.linalg.norm(x)))
    check(
        lambda x: L.norm(x, keepdims=True), x, expected=lambda x: np.linalg.norm(x, keepdims=True)
    )


def test_norm_errors():
    x = T.dmatrix()
    with pytest.raises(ShapeError, match="one axis of vectors or two of matrices"):
        L.norm(T.dtensor3(), "fro")
    with pytest.raises(ShapeError, match="one axis of vectors or two of matrices"):
        L.norm(x, 2, (0, 0))
    with pytest.raises(ValueError, match="ord='fro' is a norm of matrices"):
        L.norm(T.dvector(), "fro")
    for wrong in (3, "best"):
        with pytest.raises(ValueError, match="is no norm of matrices"):
            L.norm(x, wrong)


# -- where the names are

NUMPY_NAMES = """Det Eig Eigh MatrixInverse MatrixPinv QR SLogDet SVD
    alloc_diag det diag eig eigh extract_diag lstsq matrix_dot matrix_inverse matrix_power norm pinv
    qr slogdet svd tensorinv tensorsolve trace"""
SCIPY_NAMES = """Cholesky Eigvalsh Expm Solve cho_solve cholesky eigvalsh expm kron solve
    solve_lower_triangular solve_symmetric solve_triangular solve_upper_triangular"""


def test_names_are_attributes_of_the_facade():
    for module, names in ((T.nlinalg, NUMPY_NAMES), (T.slinalg, SCIPY_NAMES)):
        for name in names.split():
            assert getattr(T.linalg, name) is getattr(module, name)
