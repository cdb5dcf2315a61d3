"""Sines, cosines and tangents of doubles next to multiples of pi/2, by both machines."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.codegen.running import compute, one_step

PRECISION = 1400
ULPS = 1
NAMES = ("sin", "cos", "tan")
# Where errors of the C library were found to be large.
KNOWN = (1.5986289000543612e74, 1.2853022199154463e174, 5.319372648326541e255)


def numerators(ratio, largest):
    """Yield numbers whose products with ``ratio`` are next to whole numbers: denominators of the
    convergents of its continued fraction.
    """
    before, now, rest = 0, 1, ratio - ratio.__floor__()
    while rest and now < largest:
        yield now
        whole = (1 / rest).__floor__()
        before, now, rest = now, whole * now + before, 1 / rest - whole


def hard_angles():
    """Doubles next to multiples of pi/2, from small to the largest."""
    with mpmath.workprec(PRECISION):
        quarter = mpmath.pi / 2
        exponents = [*range(-40, -20, 5), *range(-20, 971, 7)]
        turns = {e: mpmath.mpf(2) ** e / quarter for e in exponents}
        ratios = {e: Fraction(int(mpmath.ldexp(t % 1, 128)), 2**128) for e, t in turns.items()}
    found = [
        float(n) * 2.0**e
        for e, ratio in ratios.items()
        for n in numerators(ratio, 2**53)
        if n > 2**44
    ]
    x = np.array([*KNOWN, *found, 2.0**26, 1.7976931348623157e308])
    return np.concatenate([x, -x[::2], np.nextafter(x[::5], 0)])


def units_off(name, x, z):
    """By how many units in the last place results are wrong."""
    with mpmath.workprec(PRECISION):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        units = [np.spacing(abs(float(value))) for value in exact]
        errors = zip(z, exact, units, strict=True)
        return np.array([float(abs(mpmath.mpf(float(a)) - b) / u) for a, b, u in errors])


@pytest.fixture(scope="module")
def angles():
    x = hard_angles()
    assert x.size > 500
    return x


def strided(x):
    wide = np.ones((x.size, 3))
    wide[:, 1] = x
    return wide[:, 1]


@pytest.mark.parametrize("name", NAMES)
def test_kernels(name, angles):
    (found,) = compute(one_step(ROWS[name](), ("float64",)), angles)
    assert units_off(name, angles, found).max() <= ULPS
    (others,) = compute(one_step(ROWS[name](), ("float64",)), strided(angles))
    np.testing.assert_array_equal(others, found)
    np.testing.assert_array_equal(
        compute(one_step(ROWS[name](), ("float64",)), angles[:1])[0], found[:1]
    )


@pytest.mark.parametrize("linker", ["py", "cvm"])
@pytest.mark.parametrize("kernels", [False, True])
def test_functions(linker, kernels, angles):
    x = T.dvector("x")
    with config.change_flags(kernels=kernels):
        f = symcomp.function([x], [getattr(T, n)(x) for n in NAMES], mode=symcomp.Mode(linker))
    for given in (angles, strided(angles), angles[::-1]):
        for name, found in zip(NAMES, f(given), strict=True):
            assert units_off(name, given, found).max() <= ULPS


@pytest.mark.parametrize("name", NAMES)
def test_arrays(name, angles):
    """As the kernel, bit by bit; also into the array of the argument."""
    row = ROWS[name]()
    found = row.function(angles)
    assert units_off(name, angles, found).max() <= ULPS
    (kernel,) = compute(one_step(row, ("float64",)), angles)
    np.testing.assert_array_equal(found, kernel)
    np.testing.assert_array_equal(row.function(strided(angles)), found)
    x = angles.copy()
    assert row.into(x, x) is x
    np.testing.assert_array_equal(x, found)
    single = row.function(np.asarray(angles[0]))
    assert single == found[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integers(name, dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 100, 2**26, 2**30 + 1, limits.min, limits.max, limits.max // 3], dtype)
    (kernel,) = compute(one_step(ROWS[name](), (dtype,)), x)
    for found in (kernel, ROWS[name]().function(x)):
        assert found.dtype == "float64"
        np.testing.assert_array_less(units_off(name, x.astype("float64"), found), ULPS)


@pytest.mark.parametrize("name", NAMES)
def test_special_values_beside_large_angles(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e22, -1e22, 1.0])
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x)
        arrays = ROWS[name]().function(x)
    for found in (arrays, *compute(one_step(ROWS[name](), ("float64",)), x)):
        np.testing.assert_allclose(found, want, rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(found[3:]), np.signbit(want[3:]))


@pytest.mark.parametrize("name", ["one_minus_cos", "one_minus_cos_over_square"])
def test_made_of_sines(name):
    """Near multiples of 2 pi, where these are small."""
    x = 4 * hard_angles()[:40]
    row = ROWS[name]()
    for found in (row.function(x), *compute(one_step(row, ("float64",)), x)):
        with mpmath.workprec(PRECISION):
            for argument, value in zip(x, found, strict=True):
                exact = 2 * mpmath.sin(mpmath.mpf(float(argument)) / 2) ** 2
                if name.endswith("square"):
                    exact /= mpmath.mpf(float(argument)) ** 2
                assert abs(value - exact) <= 1e-15 * exact + 5e-324
