"""Powers against 50 digits, and where the C standard says what they are."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.codegen.running import compute, one_step

mpmath.mp.dps = 50

ULPS = 2
INF, NAN = np.inf, np.nan


def power(x, y):
    """By the kernel."""
    return compute(one_step(ROWS["pow"](), (x.dtype.name,) * 2), x, y)[0]


def ends(dtype):
    """Numbers whose powers are special, or leave the range."""
    info = np.finfo(dtype)
    sizes = [0, info.smallest_subnormal, info.smallest_normal, 0.5, 1, 1.5, 2, 3, 2**24 + 2, 1e30]
    near = [np.nextafter(np.dtype(dtype).type(1), side) for side in (0, 2)]
    sizes = [*sizes, *near, info.max, INF]
    return np.array([*sizes, *(-np.array(sizes, dtype)), NAN], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spread", [1e-6, 0.1, 1.0, 20.0])
def test_within_units_in_the_last_place(dtype, spread):
    rng = np.random.default_rng(12)
    x = np.exp(rng.normal(size=600) * spread).astype(dtype)
    # Results in the whole range, subnormal ones included.
    limits = np.log(np.finfo(dtype).smallest_subnormal), np.log(np.finfo(dtype).max)
    with np.errstate(divide="ignore"):
        y = (rng.uniform(*limits, size=600) / np.log(x.astype("float64"))).astype(dtype)
    y[::3] = rng.normal(size=200) * 3
    y[np.isinf(y)] = 2
    x[::5], y[::5] = -x[::5], np.rint(np.clip(y[::5], -30, 30))
    for base, exponent, result in zip(x, y, power(x, y), strict=True):
        exact = mpmath.power(mpmath.mpf(float(base)), mpmath.mpf(float(exponent)))
        if abs(exact) > mpmath.mpf(float(np.finfo(dtype).max)):
            assert abs(result) >= np.finfo(dtype).max and math.copysign(1, result) == mpmath.sign(
                exact
            )
            continue
        unit = np.spacing(np.dtype(dtype).type(abs(float(exact))))
        error = abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(unit))
        assert error <= ULPS, (base, exponent, result, float(exact))


def corner(x, y):
    """Return the value that C99 gives for special numbers (F.9.4.4); None for ordinary ones."""
    whole = y == math.floor(y) if math.isfinite(y) else False
    odd = whole and abs(y) < 2**53 and int(y) % 2 == 1
    if x == 1 or y == 0 or (x == -1 and math.isinf(y)):
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return NAN
    if x == 0 or math.isinf(x):
        size = INF if (x == 0) == (y < 0) else 0.0
        return math.copysign(size, x) if odd else size
    if math.isinf(y):
        return INF if (abs(x) > 1) == (y > 0) else 0.0
    return NAN if x < 0 and not whole else None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 29])
def test_corners(dtype, count):
    pairs = list(itertools.product(ends(dtype), repeat=2))
    x, y = (
        np.resize(np.array(side, dtype), count * len(pairs)) for side in zip(*pairs, strict=True)
    )
    got = power(x, y)
    for base, exponent, result in zip(x, y, got, strict=True):
        wanted = corner(float(base), float(exponent))
        if wanted is not None:
            assert np.array_equal(result, wanted, equal_nan=True), (base, exponent, result)
            assert np.isnan(wanted) or np.signbit(result) == np.signbit(wanted), (base, exponent)
        else:
            with np.errstate(all="ignore"):
                reference = np.power(base, exponent)
            np.testing.assert_allclose(result, reference, rtol=4 * np.finfo(dtype).eps)


def test_powers_beside_other_strides():
    x, y = np.random.default_rng(1).uniform(0.1, 9, (2, 40, 7))
    np.testing.assert_allclose(
        power(x[::-1, ::2], y[:, ::2]), x[::-1, ::2] ** y[:, ::2], rtol=1e-15
    )
