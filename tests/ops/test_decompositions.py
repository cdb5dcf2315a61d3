"""Eigenvalues, singular values, QR and least squares: against NumPy, with derivatives.

The columns of u, v and q are judged, and differentiated, by what does not depend on their signs and
phases.
"""

from functools import partial

import numpy as np
import pytest
import scipy.linalg

import symcomp
import symcomp.tensor as T
from symcomp.errors import DisconnectedInputError, DTypeError, ShapeError
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

L = T.nlinalg
SQUARES = [(3, 3), (1, 1), (2, 2, 2), (0, 0), (2, 0, 0), (0, 2, 2)]
OBLONGS = [(3, 2), (2, 3), (2, 2), (2, 3, 2), (1, 3), (0, 2), (2, 0), (0, 2, 3)]


def dagger(x):
    """Return the conjugate transposes of variables."""
    return T.conj(x).swapaxes(-1, -2)


def squares(x):
    """Return the squares of the moduli."""
    return T.real(x * T.conj(x))


def numpy_squares(x):
    """Return the squares of the moduli of arrays."""
    return (x * np.conj(x)).real


def evaluated(outputs, x, value):
    """Evaluate ``outputs`` for one ``value``."""
    return [out.eval({x: value}) for out in outputs]


# -- symmetric and Hermitian


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigh(shape, uplo, dtype):
    def invariants(x):
        w, v = L.eigh(x, uplo)
        return [w, squares(v), T.matmul(v * T.exp(w)[..., None, :], dagger(v))]

    def expected(x):
        w, v = np.linalg.eigh(x, UPLO=uplo)
        return [w, numpy_squares(v), (v * np.exp(w)[..., None, :]) @ adjoint(v)]

    x = normal(*shape, dtype=dtype)
    check(invariants, x, expected=expected, rtol=1e-9, atol=1e-12)
    check(
        lambda x: L.eigvalsh(x, lower=uplo == "L"),
        x,
        expected=partial(np.linalg.eigvalsh, UPLO=uplo),
        rtol=1e-9,
        atol=1e-13,
    )


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", KINDS)
def test_generalized_eigenvalues(dtype, lower):
    a, b = normal(3, 3, dtype=dtype), positive(3, 3, dtype=dtype)
    check(
        lambda a, b: T.slinalg.eigvalsh(a, b, lower),
        a,
        b,
        expected=lambda a, b: scipy.linalg.eigvalsh(seen(a, lower), seen(b, lower)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (0, 0), (0, 2, 2)], ids=str)
def test_generalized_eigenvectors(shape, dtype, lower):
    a, b = normal(*shape, dtype=dtype), positive(*shape, dtype=dtype)

    def invariants(a, b):
        w, v = L.eigh(a, "L" if lower else "U", b)
        return [w, squares(v), T.matmul(v * T.exp(w)[..., None, :], dagger(v))]

    def expected(a, b):
        w, v = np.zeros(shape[:-1]), np.zeros(shape, dtype)
        if a.size:
            w, v = scipy.linalg.eigh(seen(a, lower), seen(b, lower))
            whole = seen(b, lower)
            np.testing.assert_allclose(adjoint(v) @ whole @ v, np.eye(len(v)), atol=1e-12)
        return [w, numpy_squares(v), (v * np.exp(w)[..., None, :]) @ adjoint(v)]

    check(invariants, a, b, expected=expected, rtol=1e-8, atol=1e-12)


def test_generalized_eigenvectors_of_stacks():
    a, b = normal(2, 2, 2), positive(2, 2)
    wanted = [scipy.linalg.eigh(seen(x, True), b)[1] ** 2 for x in a]
    check(lambda a, b: L.eigh(a, b=b)[1] ** 2, a, b, expected=np.array(wanted), rtol=1e-8)
    for kinds, wanted in ((("int8", "float32"), "float64"), (("float32",) * 2, "float32")):
        w, v = L.eigh(T.matrix(dtype=kinds[0]), b=T.matrix(dtype=kinds[1]))
        assert (w.dtype, v.dtype) == (wanted, wanted)
    with pytest.raises(ShapeError, match=r"eigh: b \(.*\) must be square"):
        L.eigh(np.eye(2), b=np.ones((2, 3)))
    v = T.dmatrix()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        L.eigh(np.eye(2), b=v)[1].eval({v: -np.eye(2)})


def test_generalized_eigenvalues_of_stacks():
    a, b = normal(2, 2, 2), positive(2, 2)
    wanted = [scipy.linalg.eigvalsh(seen(x, True), b) for x in a]
    check(T.slinalg.eigvalsh, a, b, expected=np.array(wanted), rtol=1e-9)
    v = T.dmatrix()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        T.slinalg.eigvalsh(np.eye(2), v).eval({v: -np.eye(2)})


# -- general


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 2, 2), (0, 0), (0, 2, 2)], ids=str)
def test_eig(shape, dtype):
    def invariants(x):
        w, v = L.eig(x)
        return [w, squares(v), T.matmul(v * T.exp(w)[..., None, :], L.matrix_inverse(v))]

    def expected(x):
        w, v = np.linalg.eig(x)
        w, v = w.astype("complex128"), v.astype("complex128")
        return [w, numpy_squares(v), (v * np.exp(w)[..., None, :]) @ np.linalg.inv(v)]

    check(invariants, normal(*shape, dtype=dtype), expected=expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_eigenvalue_dtypes(dtype):
    x = np.diag([1, 0, 1]).astype(dtype)
    loose = 2e-3 if dtype == "float16" else 1e-6
    for function, wanted in (
        (lambda x: L.eigh(x)[0], np.linalg.eigvalsh),
        (L.eigvalsh, np.linalg.eigvalsh),
        (partial(L.svd, compute_uv=False), partial(np.linalg.svd, compute_uv=False)),
    ):
        check(function, x, expected=as_numpy(wanted), grad=False, atol=loose)
    w, v = L.eig(T.matrix(dtype=dtype))
    wanted = "complex64" if dtype in ("float16", "float32", "complex64") else "complex128"
    assert w.dtype == v.dtype == wanted
    q, r = L.qr(T.matrix(dtype=dtype))
    kept = dtype if dtype[0] in "fc" else "float64"
    assert q.dtype == r.dtype == kept


# -- singular values


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", OBLONGS, ids=str)
def test_svd(shape, full, dtype):
    k = min(shape[-2:])

    def parts(u, s, vh, dagger, squares):
        rest = u[..., k:]
        return [
            s,
            squares(u[..., :k]),
            squares(vh[..., :k, :]),
            u[..., :k] @ vh[..., :k, :],
            rest @ dagger(rest),
        ]

    check(
        lambda x: parts(*L.svd(x, full), dagger, squares),
        normal(*shape, dtype=dtype),
        expected=lambda x: parts(*np.linalg.svd(x, full), adjoint, numpy_squares),
        rtol=1e-8,
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", OBLONGS, ids=str)
def test_singular_values(shape, dtype):
    check(
        partial(L.svd, compute_uv=False),
        normal(*shape, dtype=dtype),
        expected=partial(np.linalg.svd, compute_uv=False),
        rtol=1e-10,
    )


def test_shapes_of_svd():
    x = normal(4, 3)
    v = T.dmatrix()
    for full in (True, False):
        found = evaluated(L.svd(v, full), v, x)
        for got, want in zip(found, np.linalg.svd(x, full), strict=True):
            np.testing.assert_array_equal(got, want)
    u, s, vh = L.svd(T.tensor("float64", shape=(None, 4, 3)), False)
    assert (u.type.shape, s.type.shape, vh.type.shape) == ((None, 4, 3), (None, 3), (None, 3, 3))


# -- QR


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", OBLONGS, ids=str)
def test_qr(shape, mode, dtype):
    k = min(shape[-2:])

    def parts(q, r, dagger, squares):
        rest = q[..., k:]
        # x2 = q r2 belongs to the columns beyond the first k.
        return [squares(q[..., :k]), squares(r), q[..., :k] @ r[..., :k, k:], rest @ dagger(rest)]

    check(
        lambda x: parts(*L.qr(x, mode), dagger, squares),
        normal(*shape, dtype=dtype),
        expected=lambda x: parts(*np.linalg.qr(x, mode), adjoint, numpy_squares),
        rtol=1e-8,
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 2)])
def test_both_parts_of_qr_at_once(shape, dtype):
    x = normal(*shape, dtype=dtype)
    q0, r0 = np.linalg.qr(x)

    def function(x):
        q, r = L.qr(x)
        return T.real((q * q0).sum() + T.sqr(r * r0).sum())

    wanted = np.asarray(((q0 * q0).sum() + ((r0 * r0) ** 2).sum()).real)
    check(function, x, expected=wanted, rtol=1e-9)


def test_qr_modes():
    x = normal(3, 2)
    check(
        lambda x: T.abs_(L.qr(x, "r")),
        x,
        expected=np.abs(np.linalg.qr(x, "r")),
        rtol=1e-9,
        atol=1e-15,
    )
    check(lambda x: L.qr(x, "raw"), x, expected=np.linalg.qr(x, "raw"), grad=False)
    with pytest.raises(ValueError, match="mode='full' must be 'reduced', 'complete', 'r' or 'raw'"):
        L.qr(T.dmatrix(), "full")


# -- QR with pivots


def pivoted(x, mode):
    """Return q, r and p of each matrix by SciPy; of an empty one what NumPy returns."""
    q, r = np.linalg.qr(x, mode)
    p = np.broadcast_to(np.arange(x.shape[-1]), (*x.shape[:-2], x.shape[-1])).astype(np.int64)
    if x.size:
        name = "economic" if mode == "reduced" else "full"
        for place in np.ndindex(x.shape[:-2]):
            q[place], r[place], p[place] = scipy.linalg.qr(x[place], mode=name, pivoting=True)
    return q, r, p


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", OBLONGS, ids=str)
def test_pivoted_qr(shape, mode, dtype):
    k = min(shape[-2:])

    def parts(q, r, p, dagger, squares):
        rest = q[..., k:]
        return [
            squares(q[..., :k]), squares(r), q[..., :k] @ r[..., :k, k:], rest @ dagger(rest), p
        ]  # fmt: skip

    check(
        lambda x: parts(*L.qr(x, mode, pivoting=True), dagger, squares),
        normal(*shape, dtype=dtype),
        expected=lambda x: parts(*pivoted(x, mode), adjoint, numpy_squares),
        rtol=1e-8,
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes_of_pivoted_qr(dtype):
    x = whole_numbers(dtype)
    v = T.as_tensor_variable(x)
    q, r, p = (out.eval() for out in L.qr(v, pivoting=True))
    assert q.dtype == r.dtype == L.qr(v)[0].dtype and p.dtype == np.int64
    tolerance = 1e-2 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(q @ r, x[:, p], rtol=tolerance, atol=tolerance)


def test_columns_of_pivoted_qr_are_in_order():
    """Each step takes the column with the most that is orthogonal to those before."""
    x = normal(6, 5) * [1.0, 4.0, 0.5, 3.0, 2.0]
    v = T.dmatrix()
    q, r, p = evaluated(L.qr(v, pivoting=True), v, x)
    rest = x.copy()
    for i in range(5):
        lengths = np.linalg.norm(rest, axis=0)
        lengths[p[:i]] = -1
        assert p[i] == lengths.argmax()
        np.testing.assert_allclose(abs(r[i, i]), lengths[p[i]], rtol=1e-12)
        rest -= np.outer(q[:, i], q[:, i] @ rest)


def test_pivoted_qr_of_lower_rank():
    x = normal(5, 2) @ normal(2, 4)
    v = T.dmatrix()
    q, r, p = evaluated(L.qr(v, pivoting=True), v, x)
    np.testing.assert_allclose(q @ r, x[:, p], atol=1e-13)
    assert np.abs(r[2:]).max() < 1e-13 < abs(r[1, 1])


def test_modes_of_pivoted_qr():
    x = normal(4, 3)
    q, r, p = pivoted(x, "reduced")
    check(
        lambda x: [T.abs_(L.qr(x, "r", pivoting=True)[0]), L.qr(x, "r", pivoting=True)[1]],
        x, expected=[np.abs(r), p], rtol=1e-9, atol=1e-15,
    )  # fmt: skip
    (packed, tau), _, p = scipy.linalg.qr(x, mode="raw", pivoting=True)
    expected = [packed.T, tau, p.astype(np.int64)]
    check(
        lambda x: L.qr(x, "raw", pivoting=True), x, expected=expected, rtol=1e-12, atol=1e-15,
        grad=False,
    )  # fmt: skip
    types = [out.type.shape for out in L.qr(T.tensor("float64", shape=(7, 4, 3)), pivoting=True)]
    assert types == [(7, 4, 3), (7, 3, 3), (7, 3)]
    with pytest.raises(ShapeError, match=r"qr: x \(float64 vector\) has 1 axes: a matrix, or"):
        L.qr(T.dvector(), pivoting=True)
    v = T.dmatrix("v")
    with pytest.raises(DisconnectedInputError, match="with respect to v of type float64 matrix"):
        symcomp.grad(T.cast(L.qr(v, pivoting=True)[2], "float64").sum(), v)
    with pytest.raises(NotImplementedError, match="differentiate mode='reduced' or 'complete'"):
        symcomp.grad(L.qr(v, "raw", pivoting=True)[0].sum(), v)


# -- least squares


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 2), (0, 2), (2, 0)], ids=str)
@pytest.mark.parametrize("right", [(), (2,)], ids=str)
def test_lstsq(shape, right, dtype):
    a, b = normal(*shape, dtype=dtype), normal(shape[0], *right, dtype=dtype)
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    check(
        L.lstsq,
        a,
        b,
        expected=[
            x,
            residuals[: None if shape[0] > shape[1] else 0],
            np.asarray(rank, np.int64),
            s,
        ],
        rtol=1e-9,
        atol=1e-13,
    )


def test_lstsq_of_lower_rank():
    a, b = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]), np.array([1.0, 0.0, 2.0])
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    check(
        L.lstsq, a, b, expected=[x, residuals, np.asarray(rank, np.int64), s],
        rtol=1e-9, atol=1e-13, grad=False,
    )  # fmt: skip
    nearly = np.diag([1.0, 1e-5])
    v = T.dmatrix()
    assert L.lstsq(v, [1.0, 1.0])[2].eval({v: nearly}) == 2
    assert L.lstsq(v, [1.0, 1.0], rcond=1e-3)[2].eval({v: nearly}) == 1
    assert L.lstsq(v, [1.0, 1.0], rcond=T.constant(1e-3))[2].eval({v: nearly}) == 1


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=str)
def test_lstsq_with_a_symbolic_rcond(shape):
    a, b = normal(*shape), normal(shape[0])
    x, residuals, rank, s = np.linalg.lstsq(a, b)
    residuals = residuals[: None if shape[0] > shape[1] else 0]
    check(
        lambda a, b: L.lstsq(a, b, T.sqrt(T.constant(1e-18))), a, b,
        expected=[x, residuals, np.asarray(rank, np.int64), s], rtol=1e-9, atol=1e-13,
    )  # fmt: skip


def test_a_symbolic_rcond_says_the_rank():
    a, b, cut = T.dmatrix(), T.dvector(), T.dscalar()
    given = np.array([[2.0, 1.0], [1.0, 2.0], [0.0, 1e-4]]) @ np.diag([1.0, 1e-5])
    point = [given, [1.0, 2.0, 3.0]]
    found = {}
    for rcond in (cut, 1e-3, None):
        x, _, rank, _ = L.lstsq(a, b, rcond)
        inputs = [a, b, cut] if rcond is cut else [a, b]
        found[rcond] = symcomp.function(inputs, [rank, x, *symcomp.grad((x * x).sum(), [a, b])])
    for limit, fixed, expected in ((1e-3, 1e-3, 1), (0.0, None, 2)):
        rank, *values = found[cut](*point, limit)
        assert rank == expected
        for got, wanted in zip(values, found[fixed](*point)[1:], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-7 * abs(wanted).max())


def test_lstsq_errors():
    a, b = T.dmatrix(), T.dvector()
    with pytest.raises(DTypeError, match="must be a number, a scalar or None"):
        L.lstsq(a, b, "small")
    with pytest.raises(DTypeError, match="must be a number, a scalar or None"):
        L.lstsq(a, b, [1.0, 2.0])
    with pytest.raises(DTypeError, match="rcond must be a real scalar"):
        L.lstsq(a, b, T.dvector())
    with pytest.raises(ShapeError, match="is neither vector nor matrix"):
        L.lstsq(a, T.dscalar())
    with pytest.raises(ShapeError, match="has 3 rows, b .* has 2"):
        L.lstsq(T.tensor("float64", shape=(3, 3)), T.tensor("float64", shape=(2,)))
    with pytest.raises(ShapeError, match=r"a has shape \(3, 3\), b \(2, 1\): as many rows"):
        L.lstsq(a, b)[0].eval({a: np.eye(3), b: np.ones(2)})


# -- all of them


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: L.eigh(x)[0],
        lambda x: squares(L.eigh(x)[1]),
        L.eigvalsh,
        lambda x: squares(L.eig(x)[1]),
        lambda x: squares(L.svd(x, False)[0]),
        partial(L.svd, compute_uv=False),
        lambda x: squares(L.qr(x)[1]),
        lambda x: squares(L.qr(x, pivoting=True)[1]),
        lambda x: L.lstsq(x, np.array([1.0, -2.0]))[0],
    ],
)
def test_second_derivatives(function, dtype):
    x = normal(2, 2, dtype=dtype) + np.diag([3.0, -1.0])
    check_second_derivatives(function, x, tolerance=1e-4)


def test_arrays_in_any_order():
    big = normal(6, 6)
    for x in (big[::2, ::2], big[::-2, ::2], np.asfortranarray(big[:3, :3]), big[3:, 3:].T):
        check(lambda x: L.eigh(x)[0], x, expected=np.linalg.eigvalsh, rtol=1e-9)
        check(partial(L.svd, compute_uv=False), x, expected=np.linalg.svdvals, rtol=1e-9)
        check(
            lambda x: squares(L.qr(x)[1]), x, expected=lambda x: np.linalg.qr(x)[1] ** 2, rtol=1e-8
        )


def test_nan_is_never_hidden():
    v, nan = T.dmatrix(), np.full((2, 2), np.nan)
    for out in (L.eigh(v)[0], L.svd(v, compute_uv=False), L.svd(v)[1], L.eig(v)[0], L.qr(v)[1]):
        try:
            found = out.eval({v: nan})
        except np.linalg.LinAlgError:
            continue
        assert np.isnan(found).any()


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "svd", "qr"])
def test_errors(name):
    function = getattr(L, name)
    with pytest.raises(ShapeError, match=rf"{name}: x \(float64 vector\) has 1 axes: a matrix, or"):
        function(T.dvector())
    if name in ("svd", "qr"):
        return
    with pytest.raises(ShapeError, match=rf"{name}: x \(.*\) must be square: 2 rows, 3 columns"):
        function(T.tensor("float64", shape=(2, 3)))
    v = T.dmatrix()
    out = function(v)
    out = out[0] if isinstance(out, list) else out
    with pytest.raises(ShapeError, match=rf"{name}: a float64 array of shape \(2, 3\): its mat"):
        out.eval({v: np.zeros((2, 3))})


def test_wrong_triangle():
    with pytest.raises(ValueError, match="UPLO='X' must be 'L' or 'U'"):
        L.eigh(whole_numbers("float64"), "X")
