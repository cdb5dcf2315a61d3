"""Decompositions, inverses and systems: natively, by either LAPACK, what Python gives, for all
dtypes and layouts, and without asking Python.
"""

import threading
from fractions import Fraction

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.tensor import TensorType
from symcomp.cvm.decompositions import ROUTINES
from symcomp.errors import ShapeError
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.determinant import Adjugate, Det, SLogDet
from symcomp.ops.linalg.eigen import Eig, Eigh, Eigvalsh
from symcomp.ops.linalg.inverse import MatrixInverse, MatrixPinv
from symcomp.ops.linalg.lstsq import Lstsq
from symcomp.ops.linalg.pivoted_qr import PivotedQR, PivotedQRRaw
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.linalg.stable_linalg import (
    InverseForm,
    Invertible,
    StableInverse,
    StableSLogDet,
    StableSolve,
)
from symcomp.ops.linalg.svd import SVD, SingularValues
from symcomp.tests.cvm.looking import asked, in_python

LinAlgError = np.linalg.LinAlgError
DTYPES = ("float32", "float64", "complex64", "complex128")
PRECISE = symcomp.Mode("cvm", optimizer=None), symcomp.Mode("vm", optimizer=None)
SOLVERS = [
    Solve(), Solve("pos", True), Solve("pos"), Solve("sym", True), Solve("her"), StableSolve(),
    Solve("lower triangular"), Solve("upper triangular"), Solve("upper triangular", False, True),
]  # fmt: skip
OF_SQUARE = [
    Cholesky(), Cholesky(False), Cholesky(True, "nan"), MatrixInverse(), StableInverse(), Det(),
    SLogDet(), StableSLogDet(), Adjugate(), Eigh("L"), Eigh("U"), Eigvalsh(True), Eigvalsh(False),
    Eig(), MatrixPinv(True), Invertible(),
]  # fmt: skip
OF_ANY = [
    QR(), QR(True), QRRaw(), PivotedQR(), PivotedQR(True), PivotedQRRaw(), SVD(False), SVD(True),
    SingularValues(), MatrixPinv(False, None),
]  # fmt: skip


def normal(rng, shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def matrices(rng, stack, n, dtype):
    """Return well-conditioned positive definite matrices, arbitrary in the triangle that is not
    read.
    """
    x = normal(rng, (*stack, n, n), dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) / n + 2 * np.eye(n, dtype=dtype)


def placed(values):
    """Yield the same values at other addresses and strides; then stacks of one matrix."""
    yield values
    yield [np.array(v, order="F") for v in values]
    yield [np.swapaxes(np.swapaxes(v, -1, -2).copy(), -1, -2) if v.ndim > 1 else v for v in values]
    yield [v[..., ::-1].copy()[..., ::-1] for v in values]
    yield [v[..., ::-1, :].copy()[..., ::-1, :] if v.ndim > 1 else v for v in values]
    yield [np.repeat(v, 2, -1)[..., ::2] for v in values]
    yield [np.repeat(v, 3, -2)[..., ::3, :] if v.ndim > 1 else v for v in values]
    if all(v.ndim > 2 for v in values):
        yield [np.swapaxes(np.swapaxes(v, 0, 1).copy(), 0, 1) for v in values]
        yield [np.broadcast_to(v[:1], v.shape) for v in values]


def functions_of(op, values):
    inputs = [TensorType(v.dtype, (None,) * v.ndim)() for v in values]
    found = op(*inputs)
    outputs = found if isinstance(found, list) else [found]
    return [symcomp.function(inputs, outputs, mode=mode) for mode in PRECISE]


def compare(op, *values, tolerance=None, at_once=True):
    """Check that both machines give the same, for all layouts, and the native one without Python.
    """
    native, python = functions_of(op, values)
    assert not in_python(native)
    for given in placed(list(values)):
        kept = [v.copy() for v in given]
        for got, want in zip(native(*given), python(*given), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            near = tolerance or (2e-4 if want.dtype in ("float32", "complex64") else 1e-11)
            scale = np.abs(want).max(initial=1e-300)
            np.testing.assert_allclose(got, want, rtol=0, atol=near * scale)
        for before, after in zip(kept, given, strict=True):
            np.testing.assert_array_equal(before, after)
        assert not at_once or asked(native, given) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [*OF_SQUARE, *OF_ANY], ids=str)
def test_of_one_matrix_or_many(op, dtype):
    rng = np.random.default_rng(0)
    for stack in ((), (3,), (2, 3)):
        for n in (1, 2, 5):
            compare(op, matrices(rng, stack, n, dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("op", OF_ANY, ids=str)
@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (1, 5), (5, 1), (2, 3, 40), (2, 40, 3)])
def test_of_other_shapes(op, dtype, shape):
    compare(op, normal(np.random.default_rng(1), shape, dtype))


@pytest.mark.parametrize("op", [*OF_SQUARE, *OF_ANY], ids=str)
@pytest.mark.parametrize("n", [17, 33, 64, 65, 130])
def test_of_larger_ones(op, n):
    x = matrices(np.random.default_rng(2), (), n, "float64")
    compare(op, x + 0.01 * normal(np.random.default_rng(3), (n, n), "float64"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", SOLVERS, ids=str)
def test_systems(op, dtype):
    rng = np.random.default_rng(4)
    for stack in ((), (3,), (2, 3)):
        for n, k in ((1, 1), (2, 5), (6, 1), (40, 3)):
            a = matrices(rng, stack, n, dtype)
            compare(op, a, normal(rng, (*stack, n), dtype))
            compare(op, a, normal(rng, (*stack, n, k), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (1, 1)])
@pytest.mark.parametrize("rcond", [None, 0.5, -1.0])
def test_least_squares(dtype, shape, rcond):
    rng = np.random.default_rng(5)
    a, b = normal(rng, shape, dtype), normal(rng, (shape[0], 2), dtype)
    compare(Lstsq(rcond), a, b)
    if rcond != -1:  # of the rounding unit itself, rounding decides what the rank is
        a[:, -1] = a[:, 0]
        compare(Lstsq(rcond), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 20])
def test_forms(dtype, n):
    rng = np.random.default_rng(6)
    x, y = normal(rng, n, dtype), normal(rng, n, dtype)
    compare(InverseForm(), x, matrices(rng, (), n, dtype), y)


@pytest.mark.parametrize(
    "op, names",
    [(StableInverse(), "a"), (StableSLogDet(), "a"), (StableSolve(), "ax"), (InverseForm(), "xay")],
    ids=str,
)
def test_last_digits_are_those_of_python(op, names):
    """Both round the same exact numbers, whatever the rounding of LAPACK: each within one unit."""
    rng = np.random.default_rng(7)
    native, python = functions_of(op, [np.eye(2) if name == "a" else np.ones(2) for name in names])
    for n in (1, 2, 8, 9, 12, 30):
        for condition in (1e1, 1e6, 1e10):
            u, _, vh = np.linalg.svd(rng.normal(size=(n, n)))
            a = (u * np.geomspace(1, 1 / condition, n)) @ vh
            given = [a if name == "a" else rng.normal(size=n) for name in names]
            for got, want in zip(native(*given), python(*given), strict=True):
                np.testing.assert_array_max_ulp(got, want, 2)


def test_every_routine_is_tried():
    tried = {type(op) for op in [*OF_SQUARE, *OF_ANY, *SOLVERS]} | {Lstsq, InverseForm}
    assert tried == {*ROUTINES}


# -- empty, invalid, singular and not finite matrices


@pytest.mark.parametrize("op", [*OF_SQUARE, *OF_ANY], ids=str)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (3, 0, 0)])
def test_of_nothing(op, shape):
    compare(op, np.zeros(shape), at_once=False)


@pytest.mark.parametrize("op", SOLVERS, ids=str)
@pytest.mark.parametrize(("a", "b"), [((0, 0), (0,)), ((3, 3), (3, 0)), ((0, 2, 2), (0, 2, 1))])
def test_no_systems(op, a, b):
    compare(op, np.zeros(a) + np.eye(a[-1]), np.ones(b), at_once=False)


def message(function, values):
    with pytest.raises((LinAlgError, ShapeError)) as problem:
        function(*values)
    return type(problem.value), str(problem.value).split("\n")[0]


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
NEGATIVE = np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize(
    ("op", "values"),
    [
        (Cholesky(), [NEGATIVE]),
        (Cholesky(), [np.stack([np.eye(2), NEGATIVE])]),
        (MatrixInverse(), [SINGULAR]),
        (Invertible(), [SINGULAR]),
        (Solve(), [SINGULAR, np.ones(2)]),
        (StableSolve(), [SINGULAR, np.ones(2)]),
        (Solve("sym"), [0 * SINGULAR, np.ones(2)]),
        (Solve("pos"), [NEGATIVE, np.ones(2)]),
        (Solve("upper triangular"), [np.array([[1.0, 2.0], [0.0, 0.0]]), np.ones(2)]),
        (InverseForm(), [np.ones(2), SINGULAR, np.ones(2)]),
        (Eig(), [np.full((2, 2), np.nan)]),
        (Eig(), [np.full((2, 2), np.inf)]),
        (SVD(), [np.full((2, 2), np.nan)]),
        (SingularValues(), [np.full((2, 2), np.nan)]),
        (MatrixPinv(), [np.full((2, 2), np.nan)]),
        (Cholesky(), [np.ones((2, 3))]),
        (Det(), [np.ones((2, 3))]),
        (Eigh(), [np.ones((4, 2, 3))]),
        (Solve(), [np.eye(2), np.ones(3)]),
        (Solve(), [np.ones((3, 2, 2)), np.ones((2, 2))]),
        (Lstsq(), [np.ones((3, 2)), np.ones((2, 2))]),
    ],
)
def test_errors_are_those_of_python(op, values):
    native, python = functions_of(op, values)
    assert message(native, values) == message(python, values)


@pytest.mark.parametrize("op", [*OF_SQUARE, *OF_ANY], ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite(op, value):
    x = np.stack([np.eye(3), np.eye(3) + 1, 2 * np.eye(3)])
    x[1, 2, 1] = x[1, 1, 2] = value
    native, python = functions_of(op, [x])
    try:
        wanted = python(x)
    except LinAlgError:
        with pytest.raises(LinAlgError):
            native(x)
        return
    for got, want in zip(native(x), wanted, strict=True):
        np.testing.assert_allclose(got[::2], want[::2], 1e-12, 1e-12)
        np.testing.assert_array_equal(np.isfinite(got[1]), np.isfinite(want[1]))


@pytest.mark.parametrize("op", [Det(), Cholesky(), QR(), Eigh(), SVD()], ids=str)
def test_trusted_input_of_another_rank(op):
    native, _ = functions_of(op, [np.eye(2)])
    native.trust_input = True
    native(np.eye(2))
    with pytest.raises((LinAlgError, IndexError, ValueError)):
        native(np.ones(3))


def test_of_singular_ones():
    for op in (SLogDet(), StableSLogDet(), Det(), Adjugate(), StableInverse()):
        native, python = functions_of(op, [SINGULAR])
        for got, want in zip(native(SINGULAR), python(SINGULAR), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-14)
    compare(Cholesky(True, "nan"), np.stack([np.eye(2), NEGATIVE, 4 * np.eye(2)]), tolerance=1e-12)


# -- determinants


def exact_determinant(x):
    """Return the determinant of a matrix of fractions, by Laplace's expansion."""
    if not x:
        return Fraction(1)
    minors = ([row[:j] + row[j + 1 :] for row in x[1:]] for j in range(len(x)))
    return sum((-1) ** j * x[0][j] * exact_determinant(m) for j, m in enumerate(minors))


@pytest.mark.parametrize("function", [0, 1])
def test_determinants_are_products(function):
    """NumPy's is the exponential of a logarithm, of which a large one has lost digits."""
    rng = np.random.default_rng(8)
    for scale in (1.0, 1e40, 1e-40):
        x = rng.integers(-9, 10, (6, 6)) * scale + np.diag(np.full(6, 20 * scale))
        exact = exact_determinant([[Fraction(v) for v in row] for row in x.tolist()])
        (found,) = functions_of(Det(), [x])[function](x)
        assert abs(Fraction(float(found)) / exact - 1) < 2e-15


@pytest.mark.parametrize("function", [0, 1])
def test_determinants_do_not_overflow_on_the_way(function):
    for values in ([1e300, 1e300, 1e-300, 1e-300], [1e-300, 1e-300, 1e300, 1e300], [5e-324, 1e300]):
        for turn in (1.0, 1j):
            x = np.diag(values) * turn
            (found,) = functions_of(Det(), [x])[function](x)
            want = turn ** len(values) * np.prod(np.longdouble(values))
            np.testing.assert_allclose(complex(found), complex(want), 1e-14)
    (found,) = functions_of(Det(), [np.eye(2)])[function](np.diag([1e200, 1e200]))
    assert found == np.inf


# -- loops, repeated calls, threads


def filtered(observed, mean, spread, drift, noise):
    """Means and spreads of a Kalman filter, as a loop."""

    def step(y, m, p):
        m, p = T.dot(drift, m), T.dot(T.dot(drift, p), drift.T) + noise
        gain = T.dot(p, T.nlinalg.matrix_inverse(p + noise))
        rest = y - m
        likely = T.log(T.nlinalg.det(p + noise)) + T.dot(rest, T.slinalg.solve(p + noise, rest))
        return m + T.dot(gain, rest), p - T.dot(gain, p), likely

    return symcomp.scan(step, [observed], [mean, spread, None], return_updates=False)


def test_steps_of_a_loop_are_done_without_python():
    rng = np.random.default_rng(9)
    n, steps = 4, 60
    values = [
        rng.normal(size=(steps, n)), np.zeros(n), np.eye(n), np.eye(n) * 0.9 + 0.05,
        matrices(rng, (), n, "float64"),
    ]  # fmt: skip
    results = []
    for linker in ("cvm", "vm"):
        inputs = [TensorType("float64", (None,) * v.ndim)() for v in values]
        with symcomp.config.change_flags(linker=linker, kernels=True):
            f = symcomp.function(inputs, filtered(*inputs), profile=True)
        results.append(f(*values))
        ((_, body),) = f.profiled.tally.inner.values()
        assert body.without_python >= steps - 1 if linker == "cvm" else body.without_python == 0
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, 1e-10, 1e-10)


def test_calls_repeat_their_plans():
    rng = np.random.default_rng(10)
    a, b = T.dmatrices("a", "b")
    outputs = [
        T.slinalg.solve(a, b), T.slinalg.cholesky(a), T.nlinalg.det(a), *T.nlinalg.eigh(a),
        T.slinalg.solve_triangular(T.slinalg.cholesky(a), b, lower=True),
    ]  # fmt: skip
    native, python = (
        symcomp.function([a, b], outputs, mode=symcomp.Mode(m)) for m in ("cvm", "vm")
    )
    for i in range(12):
        if i == 7:
            with pytest.raises(LinAlgError):
                native(-np.eye(5), np.ones((5, 3)))
        values = matrices(rng, (), 5, "float64"), rng.normal(size=(5, 3))
        for got, want in zip(native(*values), python(*values), strict=True):
            np.testing.assert_allclose(got, want, 1e-10, 1e-12)
    assert native.repeated >= 6


def test_a_call_that_fails_changes_nothing():
    w = symcomp.shared(np.eye(3), "w")
    x = T.dmatrix("x")
    step = T.slinalg.cholesky(x) + T.nlinalg.matrix_inverse(w + x)
    f = symcomp.function([x], step, updates=[(w, w + T.slinalg.cholesky(x))])
    for _ in range(9):
        f(2 * np.eye(3))
        before = w.get_value()
        with pytest.raises(LinAlgError):
            f(-2 * np.eye(3))
        np.testing.assert_array_equal(w.get_value(), before)


def test_threads_decompose_at_once():
    rng = np.random.default_rng(11)
    a, b = T.dmatrices("a", "b")
    f = symcomp.function([a, b], [T.slinalg.solve(a, b), *T.nlinalg.qr(a)])
    values = [(matrices(rng, (), n, "float64"), rng.normal(size=(n, 4))) for n in (50, 60, 70, 80)]
    wanted = [f(*v) for v in values]
    wrong = []

    def work(i):
        for _ in range(30):
            for got, want in zip(f(*values[i]), wanted[i], strict=True):
                if not np.allclose(got, want, 1e-9, 1e-12):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
