"""Functions of kernels against 50 digits: within 2 units in the last place."""

from functools import cache

import mpmath
import numpy as np
import pytest

from symcomp.codegen.kernel import kernel_of
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.codegen.running import addresses, call, compute, one_step
from symcomp.tests.exact import units_off

mpmath.mp.dps = 50

ULPS = 2
REFERENCES = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "exp2": lambda x: mpmath.power(2, x),
    "log": mpmath.log, "log1p": mpmath.log1p, "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "sinh": mpmath.sinh,
    "cosh": mpmath.cosh, "tanh": mpmath.tanh, "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh, "erf": mpmath.erf, "erfc": mpmath.erfc,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x), "ndtr": mpmath.ncdf,
    "log_erfc": lambda x: mpmath.log(mpmath.erfc(x)),
    "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)),
}  # fmt: skip
# Each of their steps rounds, so that results are within 3 units.
THREE = {"softplus", "erfcx", "ndtr", "log_erfc", "log_ndtr"}
SCALES = (1e-8, 1e-3, 0.3, 1.0, 5.0, 40.0, 300.0)
# Where arguments may be, if not everywhere.
RANGES = {
    "log": (0, np.inf), "log2": (0, np.inf), "log10": (0, np.inf), "log1p": (-1, np.inf),
    "arcsin": (-1, 1), "arccos": (-1, 1), "arctanh": (-1, 1), "arccosh": (1, np.inf),
    "erfc": (-5, 9), "cosh": (-88, 88), "sinh": (-88, 88),
    "erfcx": (-9, 40), "ndtr": (-12, 9), "log_erfc": (-5, 9), "log_ndtr": (-12, 7),
}  # fmt: skip


def arguments(name, dtype, rng):
    low, high = RANGES.get(name, (-np.inf, np.inf))
    x = np.concatenate([rng.standard_normal(60) * scale for scale in SCALES])
    if name in ("log", "log2", "log10"):
        x = np.concatenate([np.exp(x / 4), 1 + x[:300] / 100, [5e-324, 2e-310, 1e-40]])
    if name == "arccosh":
        x = 1 + np.abs(x)
    if dtype == "float32":
        x = x[np.abs(x) < 1e30]
    x = x.astype(dtype)
    return x[(x > low) & (x < high)]


@cache
def functions_of(dtype):
    """Return the formulas of all functions by name, and what runs them: they are compiled at once.
    """
    formulas = [one_step(ROWS[name](), (dtype,)) for name in REFERENCES]
    functions = addresses([kernel_of(formula, [(False,)]) for formula in formulas])
    return dict(zip(REFERENCES, zip(formulas, functions, strict=True), strict=True))


def values_of(name, x):
    """Compute a function of the elements of an array."""
    formula, function = functions_of(x.dtype.name)[name]
    (found,) = call(function, formula, [x])
    return found


def log_sum(sign):
    return lambda x, y: mpmath.log(mpmath.exp(x) + sign * mpmath.exp(y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "exact"), [("logaddexp", log_sum(1)), ("logdiffexp", log_sum(-1))]
)
def test_sums_of_exponentials(name, exact, dtype):
    """Also where their logarithm is much smaller than those of the parts."""
    rng = np.random.default_rng(12)
    y = (rng.normal(size=200) * rng.choice([0.1, 1, 30], 200)).astype(dtype)
    x = (y + rng.exponential(size=200)).astype(dtype)
    near = (-rng.exponential(size=200)).astype(dtype)
    rest = np.log1p(-np.exp(near)) if name == "logaddexp" else np.log1p(np.exp(near))
    x, y = np.append(x, rest.astype(dtype)), np.append(y, near)
    x, y = x[x > y], y[x > y]
    (got,) = compute(one_step(ROWS[name](), (dtype, dtype)), x, y)
    for a, b, result in zip(x, y, got, strict=True):
        want = exact(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
        unit = mpmath.mpf(float(np.spacing(abs(np.dtype(dtype).type(float(want))))))
        # A difference of numbers of the wider type keeps this many digits.
        allowed = 3 + (1 + abs(a)) * 2.0**-61 / unit if dtype == "float64" else 3
        assert abs(mpmath.mpf(float(result)) - want) <= allowed * unit, (a, b, result)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REFERENCES)
def test_within_units_in_the_last_place(name, dtype):
    x = arguments(name, dtype, np.random.default_rng(11))
    got = values_of(name, x)
    for argument, result in zip(x, got, strict=True):
        exact = REFERENCES[name](mpmath.mpf(float(argument)))
        with np.errstate(over="ignore"):
            rounded = np.dtype(dtype).type(float(exact))
        if np.isinf(rounded) or rounded == 0:
            assert result == rounded, (argument, result)
            continue
        error = abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(np.spacing(abs(rounded))))
        assert error <= (3 if name in THREE else ULPS), (argument, result, float(exact))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hypotenuses(dtype):
    """At all scales, also subnormal ones; infinities, zeros and NaN are those of NumPy."""
    rng, limits = np.random.default_rng(14), np.finfo(dtype)
    scales = np.exp(rng.uniform(np.log(limits.tiny) - 10, np.log(limits.max) - 3, 2000))
    with np.errstate(under="ignore"):
        x = (rng.uniform(1, 2, 2000) * scales).astype(dtype)
        y = (rng.normal(size=2000) * 10.0 ** rng.uniform(-4, 0, 2000) * scales).astype(dtype)
    formula = one_step(ROWS["hypot"](), (dtype, dtype))
    (got,) = compute(formula, x, y)
    for a, b, z in zip(x, y, got, strict=True):
        exact = mpmath.sqrt(mpmath.mpf(float(a)) ** 2 + mpmath.mpf(float(b)) ** 2)
        unit = np.spacing(np.dtype(dtype).type(float(exact)))
        assert abs(mpmath.mpf(float(z)) - exact) <= ULPS * mpmath.mpf(float(unit)), (a, b, z)
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, limits.smallest_subnormal, limits.max])
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(ends, ends))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(compute(formula, x, y)[0], np.hypot(x, y))


def test_sigmoid_of_many_floats():
    """Numbers in a range where the rounding errors of the steps add up."""
    x = -np.linspace(0, 20, 2_000_001).astype("float32")
    exact = 1 / (1 + np.exp(-x.astype("float64")))
    got = values_of("sigmoid", x)
    assert np.abs((got - exact) / np.spacing(exact.astype("float32"))).max() <= ULPS


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("count", [1, 40])
def test_special_values(name, dtype, count):
    ends = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2e4, -2e4], dtype)
    x = np.resize(ends, count * ends.size)
    with np.errstate(all="ignore"):
        want = np.asarray(ROWS[name]().function(x), dtype)
    got = values_of(name, x)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    special = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(got[special], want[special])
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


# Derivatives of quotients f(x) / x that kernels compute by vectors.
SLOPES = {
    "exp": lambda x: (mpmath.exp(x) * (x - 1) + 1) / x**2,
    "tanh": lambda x: (mpmath.sech(x) ** 2 - mpmath.tanh(x) / x) / x,
    "erf": lambda x: (2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x) - mpmath.erf(x) / x) / x,
    "log1p": lambda x: (1 / (1 + x) - mpmath.log(1 + x) / x) / x,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_quotients(dtype):
    """On both sides of where a series is summed, and where exponentials leave the range."""
    rng = np.random.default_rng(13)
    near = np.concatenate([rng.uniform(-4, 4, 300), 10.0 ** rng.uniform(-20, -1, 50)])
    far = [20.0, -20.0, 300.0, -300.0, 705.0, 709.8, 712.0, -720.0, -1e5, 1e30]
    points = np.concatenate([near, far if dtype == "float64" else [20.0, -20.0, 88.9, 90.0, -100]])
    formulas = [one_step(ROWS["series_remainder"](name, 1, 1, 1), (dtype,)) for name in SLOPES]
    functions = addresses([kernel_of(formula, [(False,)]) for formula in formulas])
    for name, formula, function in zip(SLOPES, formulas, functions, strict=True):
        x = points[points > -1 if name == "log1p" else points != 0].astype(dtype)
        (got,) = call(function, formula, [x])
        with mpmath.workdps(100):
            exact = [SLOPES[name](mpmath.mpf(float(v))) for v in x]
        assert units_off(got, exact) <= 4, name
        (ends,) = call(function, formula, [np.array([0.0, np.inf, -np.inf, np.nan], dtype)])
        ends = ends.astype("float64")
        want = {"exp": (0.5, np.nan, 0), "log1p": (-0.5, np.nan, np.nan)}.get(name, (0, 0, 0))
        np.testing.assert_array_equal(ends, [*want, np.nan], name)
