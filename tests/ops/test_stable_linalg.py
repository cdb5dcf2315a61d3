"""The corrected ops of linear algebra: against 60 digits, at the ends of the range, where matrices
are singular; with derivatives.
"""

import ctypes
import shlex
import subprocess
import sysconfig
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.linalg import corrected
from symcomp.ops.linalg.stable_linalg import (
    InverseForm,
    Invertible,
    Magnitude,
    StableInverse,
    StableSLogDet,
    StableSolve,
)
from symcomp.tests.harness import check
from symcomp.tests.ops.matrix_values import (
    KINDS,
    check_second_derivatives,
    normal,
    same_numbers,  # noqa: F401  (a fixture)
)
from symcomp.tests.repository import folder_of_package

LARGEST = corrected.largest()
SQUARES = [(3, 3), (1, 1), (2, 2, 2), (2, 1, 2, 2), (0, 0), (2, 0, 0), (0, 2, 2)]
SYSTEMS = [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (2, 3, 1)), ((0, 0), (0,)),
    ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((0, 2, 2), (0, 2, 1)),
]  # fmt: skip


def conditioned(n, condition, scale=1.0, seed=0):
    """Make a random matrix with this ratio of the largest to the smallest singular value."""
    rng = np.random.default_rng(seed)
    u, _, vh = np.linalg.svd(rng.normal(size=(n, n)))
    return scale * (u * np.geomspace(3.0, 3.0 / condition, n)) @ vh


def exact(x):
    """Return an array of numbers of 60 digits."""
    return np.frompyfunc(mpmath.mpf, 1, 1)(x)


def exact_inverse(a, digits=60):
    """Compute the inverse to ``digits`` digits."""
    with mpmath.workdps(digits):
        return np.array(mpmath.inverse(mpmath.matrix(a.tolist())).tolist())


def units_off(got, true):
    """Return the largest error of an element, in units of its last place."""
    pairs = zip(np.ravel(got), np.ravel(np.asarray(true, object)), strict=True)
    return max(float(abs(mpmath.mpf(float(z)) - t) / np.spacing(abs(float(t)))) for z, t in pairs)


# -- like NumPy


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_inverse_and_determinant(shape, dtype):
    x = normal(*shape, dtype=dtype)
    check(StableInverse(), x, expected=np.linalg.inv, rtol=1e-10)
    check(StableSLogDet(), x, expected=lambda x: list(np.linalg.slogdet(x)), rtol=1e-10)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape, right", SYSTEMS, ids=str)
def test_solve(shape, right, dtype):
    a, b = normal(*shape, dtype=dtype), normal(*right, dtype=dtype)
    columns = b[..., None] if b.ndim < a.ndim else b
    z = np.linalg.solve(a, columns)
    check(StableSolve(), a, b, expected=z[..., 0] if b.ndim < a.ndim else z, rtol=1e-10)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 3, 0])
def test_inverse_form(n, dtype):
    x, a, y = normal(n, dtype=dtype), normal(n, n, dtype=dtype), normal(n, dtype=dtype)
    wanted = np.asarray(x @ np.linalg.solve(a, y))
    check(InverseForm(), x, a, y, expected=wanted, rtol=1e-10)


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_single_precision(kind):
    x = normal(3, 3, dtype="complex128" if kind == "complex64" else "float64").astype(kind)
    b = np.ones(3, kind)
    check(StableInverse(), x, expected=np.linalg.inv, rtol=1e-4)
    check(StableSLogDet(), x, expected=lambda x: list(np.linalg.slogdet(x)), rtol=1e-5)
    check(StableSolve(), x, b, expected=np.linalg.solve, rtol=1e-4)
    wanted = np.asarray(b @ np.linalg.solve(x, b))
    check(InverseForm(), b, x, b, expected=wanted, rtol=1e-4)


def test_large_matrices():
    n = LARGEST + 1
    a, b = conditioned(n, 10.0), normal(n)
    assert np.allclose(StableInverse().perform(a) @ a, np.eye(n))
    np.testing.assert_allclose(StableSLogDet().perform(a), np.linalg.slogdet(a))
    for right in (b, normal(n, n)):
        np.testing.assert_allclose(a @ StableSolve().perform(a, right), right, atol=1e-12)
    wide = normal(LARGEST**2 + 1)
    np.testing.assert_allclose(StableSolve().perform(np.eye(1) * 2, wide[None]), wide[None] / 2)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "function",
    [
        StableInverse(),
        lambda x: StableSLogDet()(x)[1],
        lambda x: StableSolve()(x, x[0]),
        lambda x: InverseForm()(x[0], x, x[1] + 1),
        lambda x: Invertible()(x) * x,
    ],
)
def test_second_derivatives(function, dtype):
    check_second_derivatives(function, normal(2, 2, dtype=dtype) + 2 * np.eye(2), tolerance=1e-4)


def test_derivatives_of_an_inverse_form_by_some_of_its_inputs():
    x, a, y = normal(3), conditioned(3, 2.0), normal(3)
    wanted = np.asarray(x @ np.linalg.solve(a, y))
    for i in range(3):
        given = [T.constant(v) for v in (x, a, y)]

        def function(v, i=i, given=given):
            return InverseForm()(*given[:i], v, *given[i + 1 :])

        check(function, (x, a, y)[i], expected=wanted, rtol=1e-12)


# -- to the last digits


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 2.0**-1000])
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6])
@pytest.mark.parametrize("n", [2, 5, 12])
def test_within_two_units(n, condition, scale):
    a = conditioned(n, condition, scale, seed=n)
    x, y = (np.random.default_rng(seed).normal(size=n) for seed in (1, 2))
    with mpmath.workdps(60):
        inverse = exact_inverse(a)
        logabs = mpmath.log(abs(mpmath.det(mpmath.matrix(a.tolist()))))
        assert units_off(StableSLogDet().perform(a)[1], logabs) < 2
        assert units_off(StableInverse().perform(a), inverse) < 2
        assert units_off(StableSolve().perform(a, y), inverse @ exact(y)) < 2
        form = exact(x) @ inverse @ exact(y)
        assert units_off(InverseForm().perform(x, a, y), form) < 2


class Rounding:
    """Routines of SciPy whose results have errors of this size, in a module compiled for them."""

    def __init__(self, folder, size):
        self.size, self.rng = size, np.random.default_rng(0)
        path = folder / "_corrected_linalg.so"
        compiler, *flags = shlex.split(sysconfig.get_config_var("CC"))
        include = sysconfig.get_path("include")
        source = folder_of_package()["symcomp.cvm"] / "corrected_linalg.c"
        subprocess.run(
            [
                compiler, *flags, "-std=c11", "-shared", "-fPIC", "-fwrapv", f"-I{include}",
                f"-DUNIT_ROUNDOFF={size}", "-o", path, source, "-lm",
            ],
            check=True,
        )  # fmt: skip
        loader = ExtensionFileLoader("_corrected_linalg", str(path))
        self.module = module_from_spec(spec_from_loader(loader.name, loader))
        loader.exec_module(self.module)
        self.calls = {"dtrsm": 0, "dgetrf": 0}
        eliminate = self.wrong("cython_blas", "dtrsm", 9)
        self.kept = [eliminate, self.wrong("cython_lapack", "dgetrf", 2)]
        multiply = import_module("scipy.linalg.cython_blas").__pyx_capi__["dgemm"]
        self.module.set_routines(multiply, *(capsule for capsule, _, _ in self.kept))

    def wrong(self, module, name, place):
        """Return a capsule of the routine with errors in the matrix that is argument ``place``,
        whose columns are as long as the argument after it says.
        """
        api, kind = ctypes.pythonapi, ctypes.c_void_p
        known = import_module(f"scipy.linalg.{module}").__pyx_capi__[name]
        api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = kind, [ctypes.py_object]
        api.PyCapsule_GetPointer.restype = kind
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, kind]
        form = ctypes.CFUNCTYPE(None, *[kind] * (11 if name == "dtrsm" else 6))
        right = form(api.PyCapsule_GetPointer(known, api.PyCapsule_GetName(known)))

        def call(*arguments):
            self.calls[name] += 1
            right(*arguments)
            n, m = (ctypes.c_int.from_address(arguments[i]).value for i in self.sides(name))
            z = (ctypes.c_double * (n * m)).from_address(arguments[place])
            z = np.frombuffer(z)
            z *= 1 + self.size * self.rng.uniform(-1, 1, z.shape)

        wrong = form(call)
        api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [kind] * 3
        return api.PyCapsule_New(ctypes.cast(wrong, kind), None, None), wrong, right

    @staticmethod
    def sides(name):
        return (4, 5) if name == "dtrsm" else (0, 1)


@pytest.mark.parametrize("condition, size", [(1e1, 1e-9), (1e3, 1e-6), (1e6, 1e-10), (1e10, 1e-15)])
def test_bound_does_not_depend_on_rounding_of_the_library(condition, size, monkeypatch, tmp_path):
    a = conditioned(12, condition, seed=12)
    x, y = (np.random.default_rng(seed).normal(size=12) for seed in (1, 2))
    library = Rounding(tmp_path, size)
    monkeypatch.setattr(corrected, "_module", lambda: library.module)
    with mpmath.workdps(60):
        inverse = exact_inverse(a)
        logabs = mpmath.log(abs(mpmath.det(mpmath.matrix(a.tolist()))))
        assert units_off(StableSLogDet().perform(a)[1], logabs) < 1
        assert units_off(StableInverse().perform(a), inverse) < 1
        assert units_off(StableSolve().perform(a, y), inverse @ exact(y)) < 1
        assert units_off(InverseForm().perform(x, a, y), exact(x) @ inverse @ exact(y)) < 1
    assert all(library.calls.values())


def test_the_module_checks_its_arguments():
    corrected.inverse(np.eye(2))
    run, a = corrected.compiled.run, np.eye(3)[None]
    wrong = [
        ("inverse", a, np.ones((1, 3, 2))), ("inverse", a, np.ones((2, 3, 3))),
        ("inverse", np.ones((1, 3, 2)), a.copy()), ("inverse", a.astype("f"), a.copy()),
        ("inverse", a[0], a.copy()), ("inverse", np.ones((1, 0, 0)), np.ones((1, 0, 0))),
        ("solve", a, np.ones((1, 3, 2)), np.ones((1, 3, 1))),
        ("log_determinant", a, np.ones((1, 1, 1)), np.ones((1, 0, 1))),
        ("inverse_form", a, np.ones((1, 2, 1)), np.ones((1, 3, 1)), np.ones((1, 1, 1))),
        ("no_function", a, a.copy()),
    ]  # fmt: skip
    for arguments in wrong:
        with pytest.raises(ValueError):
            run(*arguments)
    for arguments in [(), ("inverse", a), (a, a), ("inverse", a, None)]:
        with pytest.raises(TypeError):
            run(*arguments)
    with pytest.raises(ValueError, match="read-only"):
        fixed = a.copy()
        fixed.flags.writeable = False
        run("inverse", a, fixed)


def test_ill_conditioned():
    hilbert = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1)
    inverse = exact_inverse(hilbert)
    assert units_off(np.linalg.inv(hilbert), inverse) > 1e4
    assert units_off(StableInverse().perform(hilbert), inverse) < 1
    with mpmath.workdps(60):
        logabs = mpmath.log(mpmath.det(mpmath.matrix(hilbert.tolist())))
    assert units_off(StableSLogDet().perform(hilbert)[1], logabs) < 2


def test_rows_and_columns_of_any_size():
    a = conditioned(4, 10.0)
    rows, columns = 10.0 ** np.array([-200, 3, 150, 0]), 10.0 ** np.array([100, -100, 7, -50])
    mixed = rows[:, None] * a * columns
    with mpmath.workdps(700):
        logabs = mpmath.log(abs(mpmath.det(mpmath.matrix(mixed.tolist()))))
        assert units_off(StableSLogDet().perform(mixed)[1], logabs) < 2
        inverse = exact_inverse(mixed, 700)
        assert units_off(StableInverse().perform(mixed), inverse) < 2
        y = np.array([1e-190, 2.0, -1e140, 0.0])
        assert units_off(StableSolve().perform(mixed, y), inverse @ exact(y)) < 2


def test_sign():
    for a in (np.eye(3), -np.eye(3), np.eye(3)[[1, 0, 2]], np.eye(4)[[1, 2, 3, 0]]):
        sign, logabs = StableSLogDet().perform(a)
        assert sign == round(np.linalg.det(a)) and logabs == 0


# -- singular, NaN, infinite

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def test_singular_matrices():
    sign, logabs = StableSLogDet().perform(SINGULAR)
    assert sign == 0 and logabs == -np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.array([[4.0, -2.0], [-2.0, 1.0]]) / 0.0
        np.testing.assert_array_equal(StableInverse().perform(SINGULAR), quotient)
        np.testing.assert_array_equal(
            StableInverse().perform(0 * SINGULAR), np.full((2, 2), np.nan)
        )
        found = StableInverse().perform(SINGULAR.astype(complex)).real
        assert not np.isfinite(found).any()
    stack = np.array([np.eye(2), SINGULAR])
    assert np.isfinite(StableInverse().perform(stack)[0]).all()
    for op, values in (
        (StableSolve(), (SINGULAR, [1, 1])),
        (InverseForm(), ([1, 1], SINGULAR, [1, 1])),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            op.perform(*map(np.asarray, values))


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-200, 2.0**300])
def test_one_row_twice_another_is_found_singular(scale):
    rng = np.random.default_rng(4)
    found = []
    for n in (2, 3, 4) * 20:
        whole = rng.integers(-9, 10, (n, n)).astype("float64")
        i, j = rng.integers(n, size=2)
        whole[i] = whole[j] * 2.0
        # Elimination keeps the rows of a pair equal up to the factor, whatever it rounds. Rounding
        # decides of other matrices of determinant 0.
        singular = i != j or not (whole.any(0).all() and whole.any(1).all())
        if singular or round(np.linalg.det(whole)):
            sign = StableSLogDet().perform(whole * scale)[0]
            assert (sign == 0) == singular
            assert not (singular and np.signbit(sign))
            found.append(singular)
    assert 5 < sum(found) < len(found)


def test_log_of_a_singular_determinant_has_an_infinite_gradient():
    x = T.dmatrix("x")
    logabs = StableSLogDet()(x)[1]
    found = symcomp.grad(logabs, x).eval({x: SINGULAR})
    np.testing.assert_array_equal(found, [[np.inf, -np.inf], [-np.inf, np.inf]])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_stays_so(wrong):
    a = np.array([[1.0, wrong], [0.0, 2.0]])
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(StableSLogDet().perform(a)[1])
        assert not np.isfinite(StableInverse().perform(a)).all()
        assert not np.isfinite(StableSolve().perform(a, np.ones(2))).all()
        assert not np.isfinite(StableSolve().perform(np.eye(2), np.array([wrong, 1.0]))).all()
        assert not np.isfinite(InverseForm().perform(np.ones(2), a, np.ones(2)))
        assert not np.isfinite(InverseForm().perform(a[0], np.eye(2), np.ones(2)))


def test_results_beyond_the_range():
    tiny = np.array([[1e-200]])
    assert StableSolve().perform(tiny, np.array([1e200])) == np.inf
    assert InverseForm().perform(np.array([1e-100]), tiny, np.array([1e200])) == pytest.approx(
        1e300
    )
    assert InverseForm().perform(np.array([1.0]), 1 / tiny, np.array([1e-200])) == 0


# -- Invertible


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_invertible(shape, dtype):
    check(Invertible(), normal(*shape, dtype=dtype), expected=lambda x: x)


def test_invertible_refuses_singular_matrices():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        Invertible().perform(np.array([np.eye(2), SINGULAR]))
    half = np.array([np.eye(2), [[np.nan, 1.0], [0.0, 1.0]]])
    with np.errstate(invalid="ignore"):
        found = Invertible().perform(half)
    np.testing.assert_array_equal(found[0], np.eye(2))
    assert np.isnan(found[1]).all() and not np.isnan(half[1]).all()


@pytest.mark.parametrize("kind", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "x, wanted",
    [
        ([3.0, -5.0], 4.0),
        ([[0.25]], 0.25),
        ([0.0], 1.0),
        ([], 1.0),
        ([np.nan, 2.0], 1.0),
        ([np.inf], 1.0),
    ],
)
def test_magnitude(x, wanted, kind):
    real_kind = "float64" if kind == "complex128" else kind
    check(Magnitude(), np.array(x, kind), expected=np.asarray(wanted, real_kind), grad=False)
    v = T.dvector("v")
    assert symcomp.grad(Magnitude()(v) + v.sum(), v).eval({v: [3.0]}) == 1


def test_magnitude_at_the_ends_of_the_range():
    for value in (np.finfo(float).max, 5e-324, 1e-310, 1.0):
        found = Magnitude().perform(np.array([value]))
        assert 0 < found <= value < 2 * float(found) or found == 2.0**1023


# -- errors


def test_errors():
    a, x = T.dmatrix("a"), T.dvector("x")
    oblong = T.tensor("float64", shape=(2, 3))
    for op, inputs in (
        (StableInverse(), [oblong]), (StableSLogDet(), [oblong]), (Invertible(), [oblong]),
        (StableSolve(), [oblong, x]), (InverseForm(), [x, oblong, x]),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="must be square: 2 rows, 3 columns"):
            op(*inputs)
    with pytest.raises(ShapeError, match=r"x' inv\(a\) y: y .* must be a vector as long as"):
        InverseForm()(x, a, a)
    fixed = T.tensor("float64", shape=(3, 3))
    with pytest.raises(ShapeError, match=r"x' inv\(a\) y: x .* must be a vector as long as"):
        InverseForm()(T.tensor("float64", shape=(2,)), fixed, x)
    with pytest.raises(ShapeError, match=r"shapes \(2,\), \(3, 3\) and \(3,\) do not fit"):
        InverseForm().perform(np.ones(2), np.eye(3), np.ones(3))
    with pytest.raises(ShapeError, match=r"solve: shapes \(3, 3\) and \(2,\) do not fit"):
        StableSolve().perform(np.eye(3), np.ones(2))
    with pytest.raises(ShapeError, match="its matrices must be square"):
        InverseForm().perform(np.ones(2), np.ones((2, 3)), np.ones(3))
