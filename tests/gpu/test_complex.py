"""Complex numbers on devices, as pairs of real ones."""

from typing import Any

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.complex_formulas import complex_nests_for
from symcomp.gpu.driver.interface import Driver
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.linalg.blas import Gemm
from symcomp.tests.gpu.running import DEVICE, array, check, check_loops, ops_on_device, ops_on_host


def numbers(*shape: int, dtype: str) -> Any:
    x = array(*shape, dtype=COMPLEX[dtype])
    return (x + 1j * x.T.reshape(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_arithmetic(emu: Driver, dtype: str) -> None:
    z, w = T.matrix("z", dtype=dtype), T.matrix("w", dtype=dtype)
    x, row, i = T.matrix("x", dtype=COMPLEX[dtype]), T.fvector("row"), T.imatrix("i")
    column = TensorType("float32", (None, 1))("column")
    outputs = [
        z * w, z / w, 1 / z, z + w + x, z - x, z * row, x * w, z + i, -z, T.sqr(z), abs(z), z.real,
        z.imag, T.conj(z), T.angle(z), T.complex(x, row), T.complex(column, row),
        T.switch(x > 0, z, x),
        z.sum(), z.sum(0), (z * w).sum(1), z.mean(), z * (2 - 1j), z.astype("complex128") * x,
        T.complex(column, row).imag + x, T.stack([z, w]), T.concatenate([z.T, w.T[::-1]]) * 2,
        T.real(z * w) + T.imag(z), T.conj(z) * z, T.second(x, z), z[::-1, 1:].T / 3, z + 1,
    ]  # fmt: skip
    first = numbers(3, 4, dtype=dtype)
    values = [first, first[::-1], array(3, 4, dtype=COMPLEX[dtype])]
    values += [array(4), np.arange(12, dtype="int32").reshape(3, 4), array(3, 1)]
    check([z, w, x, row, i, column], outputs, values, orders=[0], on_host=True)
    empty = [v[:0] if v.ndim == 2 else v for v in values]
    check([z, w, x, row, i, column], outputs[:18], empty, orders=[0], on_host=True)


def test_what_is_not_finite(emu: Driver) -> None:
    """Infinities and NaN are what NumPy makes of them, and so are quotients by zero.

    Products are exact, so that none depends on whether a processor rounds them before sums.
    """
    some = [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 2.0**500, 2.0**-500]
    grid = np.array([complex(a, b) for a in some for b in some])
    z = TensorType("complex128", (None, 1))("z")
    w = TensorType("complex128", (1, None))("w")
    results = lambda z, w: [z * w, z / w, z + w, z - w, T.conj(z), abs(z)]  # noqa: E731
    plain = symcomp.function([z, w], results(z, w))
    moved = symcomp.function([z, w], results(*(gpu.to_gpu(x, DEVICE) for x in (z, w))))
    assert ops_on_device(moved)
    given = grid[:, None], grid[None, :]
    for found, wanted in zip(moved(*given), plain(*given), strict=True):
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(np.asarray(found)), part(wanted), rtol=4e-16)


def test_values_stay_on_the_device(emu: Driver) -> None:
    z = T.cvector("z")
    there = gpu.to_gpu(z, DEVICE)
    f = symcomp.function([z], gpu.to_gpu(there * there, DEVICE))
    given = numbers(5, dtype="complex64")
    found = f(given)
    assert isinstance(found, DeviceArray)
    np.testing.assert_allclose(found.get(), given * given, rtol=1e-6)
    assert not ops_on_host(f)


def test_literals_are_computed_before() -> None:
    """A product of complex literals takes no step; results are steps, each once."""
    one = Literal.of(np.complex64(1 + 2j))
    mul, conj = ROWS["mul"](), ROWS["conj"]()
    steps = Step(mul, (0, 1), "complex64"), Step(conj, (2,), "complex64")
    formula = Formula(("complex64",), (one,), steps, (Result(2), Result(3)))
    made = complex_nests_for(formula, ((False,),))
    assert made is not None
    split = made.nests.form.formula
    assert split.inputs == ("float32", "float32") and len(split.results) == 4


def test_functions_without_parts_stay_on_the_host() -> None:
    step = Step(ROWS["maximum"](), (0, 0), "complex64")
    formula = Formula(("complex64",), (), (step,), (Result(1),))
    assert complex_nests_for(formula, ((False,),)) is None


FUNCTIONS: dict[str, Any] = {
    "exp": mpmath.exp, "exp2": lambda z: mpmath.exp(mpmath.log(2) * z), "expm1": mpmath.expm1,
    "log": mpmath.log, "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10), "log1p": lambda z: mpmath.log(1 + z),
    "sqrt": mpmath.sqrt, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh, "arctanh": mpmath.atanh,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "sgn": mpmath.sign,
}  # fmt: skip
# Numbers near zeros and poles, on axes, where parts overflow, and where they are subnormal.
SIZES = (1e-30, 1e-9, 1e-3, 0.3, 1.0, 1.5707963, 3.1415927, 12.0, 40.0, 87.5, 90.0)


def grid_of(dtype: str) -> np.ndarray:
    part = COMPLEX[dtype]
    sizes = [*SIZES, *([709.5, 711.0] if part == "float64" else [])]
    line = np.array([0.0, *sizes, *(-s for s in sizes)], part)
    near = 1 + np.array([1e-4, -1e-4, 1e-7, 0], part)
    around = np.exp(1j * np.linspace(0, 6, 13)).astype(dtype)
    return np.concatenate([
        (line[:, None] + 1j * line[None]).reshape(-1), (near[:, None] * around).reshape(-1),
        (near[:, None] - 1 + 1j * near[None] - 1j).reshape(-1),
    ]).astype(dtype)  # fmt: skip


def computed(name: str, given: np.ndarray) -> np.ndarray:
    """Return a function of complex numbers, as a device computes it."""
    z = T.vector("z", dtype=given.dtype.name)
    f = symcomp.function([z], gpu.to_gpu(getattr(T, name)(gpu.to_gpu(z, DEVICE)), DEVICE))
    assert not ops_on_host(f)
    return np.asarray(f(given).get())


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_beside_exact_ones(emu: Driver, name: str, dtype: str) -> None:
    given = grid_of(dtype)
    found = computed(name, given)
    eps, largest = np.finfo(dtype).eps, float(np.finfo(dtype).max)
    with mpmath.workdps(50):
        for z, got in zip(given, found, strict=True):
            at = mpmath.mpc(float(z.real), float(z.imag))
            if at == 0 and name.startswith("log") and name != "log1p":
                assert got.real == -np.inf and got.imag == 0
                continue
            if name == "log1p" and at == -1:
                assert got.real == -np.inf
                continue
            if name.startswith("arc") and (at.real == 0 or at.imag == 0):
                continue  # there may be a cut
            wanted = FUNCTIONS[name](at)
            size = abs(wanted)
            if size > largest * 0.99:
                continue
            gap = abs(mpmath.mpc(float(got.real), float(got.imag)) - wanted)
            # Steps: an argument is rounded once where it is multiplied, which counts |z| times.
            units = 16 if name != "exp2" else 16 + 2 * float(abs(at))
            least = float(np.finfo(dtype).smallest_subnormal) * 16
            assert gap <= units * eps * size + least, (name, z, got, complex(wanted))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions_of_what_is_not_finite(emu: Driver, dtype: str) -> None:
    """Where NumPy's results are finite or infinite, and arguments are not NaN, they are equal."""
    some = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf]
    grid = np.array([complex(a, b) for a in some for b in some]).astype(dtype)
    for name in ("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "tanh", "sgn"):
        found = computed(name, grid)
        with np.errstate(all="ignore"):
            wanted = getattr(np, {"sgn": "sign"}.get(name, name))(grid)
        for part in (np.real, np.imag):
            is_known = ~np.isnan(part(wanted))
            one, other = part(found)[is_known], part(wanted)[is_known]
            # No sign is defined where both parts of the argument are infinite.
            both = (np.isinf(grid.real) & np.isinf(grid.imag))[is_known] & np.isinf(other)
            one, other = np.where(both, abs(one), one), np.where(both, abs(other), other)
            bound = 64 * np.finfo(dtype).eps
            np.testing.assert_allclose(one, other, rtol=bound, atol=bound, err_msg=name)
    nans = np.array([complex(np.nan, 1), complex(2, np.nan), complex(np.nan, np.nan)], dtype)
    for name in FUNCTIONS:
        assert np.isnan(computed(name, nans)).all(), name


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("arc")])
def test_inverse_functions_on_their_cuts(emu: Driver, name: str, dtype: str) -> None:
    line = np.array([0.0, 1e-4, 0.5, 1.0, 1.0001, 2.0, 1e5, 1e10, 1e30, np.inf], COMPLEX[dtype])
    line = np.concatenate([line, -line])
    given = np.zeros((6, len(line)), dtype)
    for i, zero in enumerate((0.0, -0.0)):
        given.real[i], given.imag[i] = line, zero
        given.real[2 + i], given.imag[2 + i] = zero, line
        given.real[4 + i], given.imag[4 + i] = line, line * (1 - 2 * i)
    given = given.reshape(-1)
    found = computed(name, given)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(given)
    for part in (np.real, np.imag):
        one, other = part(found), part(wanted)
        is_known = ~np.isnan(other)
        scale = np.where(np.isfinite(abs(wanted)), abs(wanted), abs(other))
        with np.errstate(invalid="ignore"):
            close = abs(one - other) <= 32 * np.finfo(dtype).eps * scale
        bad = is_known & ~(close | (one == other))
        assert not bad.any(), (name, given[bad], found[bad], wanted[bad])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_roots_keep_the_sign_of_zero(emu: Driver, dtype: str) -> None:
    given = np.array([-4, -4, 4, 4, 0, 0], dtype)
    given.imag[:] = [0.0, -0.0, 0.0, -0.0, -0.0, 0.0]
    found = computed("sqrt", given)
    np.testing.assert_array_equal(found, np.sqrt(given))
    np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(given.imag))
    large = np.array([1, 1j, 1 + 1j, -1 + 1j]) * float(np.finfo(dtype).max)
    small = np.array([1, 1j, 1 + 1j, -1 + 1j]) * float(np.finfo(dtype).smallest_subnormal)
    for values in (large.astype(dtype), small.astype(dtype)):
        root = computed("sqrt", values)
        wanted = np.sqrt(values.astype("clongdouble")).astype(dtype)
        np.testing.assert_allclose(root, wanted, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers_and_comparisons(emu: Driver, dtype: str) -> None:
    z, w = T.matrix("z", dtype=dtype), T.matrix("w", dtype=dtype)
    real = T.matrix("x", dtype=COMPLEX[dtype])
    outputs = [
        z**2, z**3, z**-1, z**-4, z**7, z**0.5, z**1.7, z ** (0.5 + 2j), 1 / T.sqr(z),
        T.switch(T.eq(z, w), z, w * 2), T.switch(T.neq(z, real), z, w * 2), T.exp(z) * w,
        T.switch(T.isnan(z), 0, z), T.switch(T.isinf(w), 0, z), T.real(T.exp(1j * real)),
        z**w, z**real, real**w, 2**z,
    ]  # fmt: skip
    first = numbers(3, 4, dtype=dtype)
    second = first.copy()
    second[0, 0] = 2 - 1j
    for some in (outputs[:8], outputs[8:]):
        with config.change_flags(on_unused_input="ignore"):
            check([z, w, real], some, [first, second, first.real], 64, orders=[0], on_host=True)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers_of_zero_and_zeroth_powers(emu: Driver, dtype: str) -> None:
    bases = np.array([0, 1j, np.inf, np.nan], dtype)[:, None]
    exponents = np.array([0, 2, -1, 0.5 + 3j, -0.5 + 3j, np.nan], dtype)
    z = TensorType(dtype, (None, 1))("z")
    w = T.vector("w", dtype=dtype)
    f = symcomp.function([z, w], gpu.to_gpu(gpu.to_gpu(z, DEVICE) ** w, DEVICE))
    assert not ops_on_host(f)
    found = f(bases, exponents).get()
    np.testing.assert_array_equal(found[:, 0], 1)
    np.testing.assert_array_equal(found[0, [1, 3]], 0)
    assert np.isnan(found[0, [2, 4, 5]]).all() and np.isnan(found[3, 1:]).all()
    np.testing.assert_allclose(found[1, 1:3], [-1, -1j], atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products_along_axes(emu: Driver, dtype: str) -> None:
    """Only products of squares are added up in other orders; infinities are not multiplied by 1."""
    z = T.tensor("z", dtype=dtype, shape=(None,) * 3)
    outputs = [
        z.prod() * z.sum(), z.prod(axis=0), z.prod(axis=1), z.prod(axis=(0, 2)),
        T.exp(z).T.prod(axis=0) + 1, (z * 2)[:, ::-1].prod(axis=2),
        z.prod(axis=1, dtype="complex128"), T.cumprod(z, axis=2), T.cumprod(z.T, axis=1),
        symcomp.grad(abs(z.prod(axis=2)).sum(), z),
    ]  # fmt: skip
    for shape in ((3, 4, 5), (2, 0, 3), (0, 2, 2), (1, 1, 300)):
        turn = np.exp(1j * np.arange(np.prod(shape, dtype=int)).reshape(shape)).astype(dtype)
        f = check([z], outputs, [turn], 2048, on_host=True)
        assert not [n for n in ops_on_host(f) if "prod" in n or "CumOp" in n]
    for value in (np.inf, complex(1, np.inf)):
        check([z], outputs[:4], [np.full((1, 1, 1), value, dtype)], 0, on_host=True)


def test_gradients_of_functions(emu: Driver) -> None:
    x, y = T.dvectors("x", "y")
    z = T.complex(x, y)
    cost = sum(abs(f(z)).sum() for f in (T.exp, T.sin, T.tanh, T.sqrt, T.log))
    values = [array(5, dtype="float64") + 1.5, array(6, dtype="float64")[1:]]
    check([x, y], symcomp.grad(cost, [x, y]), values, 256, orders=[0], on_host=True)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_cumulative_sums(emu: Driver, dtype: str) -> None:
    z = T.tensor("z", dtype=dtype, shape=(None,) * 3)
    outputs = [T.cumsum(z * 2, axis=axis) for axis in (0, 1, 2)] + [T.cumsum(z[:, ::-1].T, axis=1)]
    for shape in ((3, 4, 70), (2, 0, 3), (1, 1, 1)):
        given = (array(*shape, dtype=COMPLEX[dtype]) * (1 + 2j)).astype(dtype)
        f = check([z], outputs, [given], 64, orders=[0], on_host=True)
    assert not [n for n in ops_on_host(f) if n.startswith("CumOp")]


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products_of_matrices(emu: Driver, dtype: str) -> None:
    a, b, c = (T.matrix(name, dtype=dtype) for name in "abc")
    v, s = T.vector("v", dtype=dtype), T.scalar("s", dtype=dtype)
    outputs = [
        T.dot(a, b), T.dot(a.T, T.conj(b).T), T.dot(a, b) + c, c - T.dot(a, b) * (2 - 1j),
        T.dot(a, v), T.dot(v, b), T.dot(v, T.conj(v)), T.dot(a, v) + v * s, T.outer(v, v) + c,
        T.dot(T.dot(a, b), v), s * T.dot(a, b[::-1]) + c * s, T.batched_dot(T.stack([a, b]),
        T.stack([b, c])), T.dot(T.real(a), b), T.dot(a[:2], b[:, ::2]), T.dot(a[:, :0], b[:0]),
    ]  # fmt: skip
    first = numbers(4, 4, dtype=dtype)
    values = [first, first[::-1], first.T * 2, first[0], np.asarray(0.5 + 2j, dtype)]
    with config.change_flags(on_unused_input="ignore"):
        for i in range(0, len(outputs), 3):
            f = check([a, b, c, v, s], outputs[i : i + 3], values, 64, on_host=True)
            assert not [n for n in ops_on_host(f) if not n.startswith("Subtensor")]
            empty = [x[:0, :0] if x.ndim == 2 else x[:0] if x.ndim else x for x in values]
            if i < 12:
                check([a, b, c, v, s], outputs[i : i + 3], empty, 64, orders=[0], on_host=True)
    with pytest.raises(ValueError, match="do not fit"):
        symcomp.function([a, b], T.dot(gpu.to_gpu(a, DEVICE), b))(first, first[:2])


def test_products_along_axes_in_loops(emu: Driver) -> None:
    x = T.tensor("x", dtype="complex128", shape=(None,) * 2)
    ys, _ = symcomp.scan(
        lambda row, h: T.exp(row * 1j).prod() + h * row.sum(), x, T.zeros((), "complex128")
    )
    given = array(5, 3, dtype="float64") * (1 - 2j)
    check_loops([x], ys, [given], 64)


def test_a_factor_of_zero_leaves_out_what_is_not_finite(emu: Driver) -> None:
    a, c, s = T.zmatrix("a"), T.zmatrix("c"), T.zscalar("s")
    nan = np.full((2, 2), np.nan + 0j)
    f = symcomp.function(
        [a, c, s], gpu.to_gpu(Gemm()(c, 1 + 0j, gpu.to_gpu(a, DEVICE), a, s), DEVICE)
    )
    assert np.isfinite(f(np.eye(2) * 1j, nan, 0).get()).all()
