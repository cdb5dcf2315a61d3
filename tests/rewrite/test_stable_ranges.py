"""Values, gradients and R-ops of expressions whose parts cancel or leave the range, from 1e-300 to
1e300, beside arithmetic with 2000 digits.
"""

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

SMALL = [1.2345678901234567 * 10.0**e for e in (-300, -160, -16, -8, -1)]
LARGE = [10.3, 1.1e16, 1.7e100, 3e160, 1.9e300]
POSITIVE = [*SMALL, 0.3, 0.7, 1.7, *LARGE]
REAL = [*POSITIVE, *(-x for x in POSITIVE)]
BELOW_1 = [*SMALL, *(-x for x in SMALL), 0.3, -0.7]
MODERATE = [*SMALL, *(-x for x in SMALL), 0.3, 1.7, -2.9]
PAIRS = [
    (3e-300, 4e-300), (1e-20, 1.3e-9), (1.0000001, 1.0), (3.3, 1e-9), (3e155, 4.7e154),
    (1.1e300, 1.3e300), (2e150, 3e-150), (1.7e-300, 1.3), (2.3e300, 0.7),
]  # fmt: skip
TRIPLES = [
    (1.1e200, 1.3e200, 1.7e200), (1.1e-200, 1.3e-200, 1.7e-200), (3e200, 5e-100, 7e150),
    (1.1e300, 1.3e-300, 0.7), (3e-300, 7e300, 1.1e300), (7e-155, 3e-160, 2e-170), (0.3, 1.7, 2.9),
]  # fmt: skip
LOGITS = [
    (800.0, 799.0), (-800.0, -802.5), (1000.0, -1000.0), (0.3, -1.2), (40.0, 3.0), (710.0, 0.1),
]

# Powers that leave the range, where their product or quotient may not.
POWERS = [(0.3, 1.7), (1e8 + 1, 1e8), (1e200, 2.3), (1.7e100, 300.25), (1.1, 1e5), (1e-200, -3.1)]
OF_EXPONENTS = [
    (1e200, 1.7, 0.3), (1e200, 1.7, 2.3), (1e-200, 3.3, 2.9), (1.3, 1e5, 99990.5),
    (1e300, 0.7, 1.0), (2.7, 720.3, -10.7), (0.3, 1.7, -1.1), (3.3, 1e-20, 1.0),
]  # fmt: skip

# Limits in units in the last place: 4, and more where a derivative is a sum that cancels in part.
ELEMENTWISE = {
    "tanh(x) / x": (MODERATE, 4),
    "x / sin(x)": (MODERATE, 4),
    "log1p(x) / x": (BELOW_1, 4),
    "arctan(x) / x": (MODERATE, 4),
    "erf(x) / x": (MODERATE, 4),
    "arcsin(x) / x": (BELOW_1, 4),
    "(sqrt(1 + x) - 1) / x": (BELOW_1, 4),
    "(cosh(x) - 1) / x**2": (MODERATE, 4),
    "log(1 + x**2) / x**2": (MODERATE, 4),
    "sin(x)**2 / x**2": (MODERATE, 8),
    "(1 - cos(x)) / sin(x)": (MODERATE, 8),
    "x / sinh(x)": ([*MODERATE, 710.1, 1e4], 4),
    "(exp(x) - 1) / (exp(2 * x) - 1)": (MODERATE, 4),
    "sin(2 * x) / sin(x)": (MODERATE, 4),
    "x * z / (y * z)": (TRIPLES, 4),
    "x / abs(x)": (REAL, 4),
    "(x + 1)**2 - x**2": (POSITIVE, 4),
    "log(x + sqrt(x**2 + 1))": (REAL, 4),
    "2**x - 1": (MODERATE, 4),
    "1 / x - 1 / (x + 1)": (POSITIVE, 4),
    "x / (x + 1) - (x + 1) / (x + 2)": (POSITIVE, 4),
    "1 - x / (1 + x)": (POSITIVE, 4),
    "sqrt(x**2 + 1) - x": (POSITIVE, 4),
    "exp(2 * log(x))": (POSITIVE, 4),
    "exp(1.7 * log(x))": (POSITIVE, 4),
    "exp(-log(x))": (POSITIVE, 4),
    "x**0.3": (POSITIVE, 4),
    "exp(x * log(x))": (POSITIVE[:9], 4),
    "exp(0.5 * log(1 + x**2))": (REAL, 4),
    "log(x**2 / y**2)": (PAIRS, 4),
    "log(x**2 * y)": ([*PAIRS, (1.0000001, 1.0), (1.1e-8, 8.2644628e15)], 4),
    "log(x * y / z)": (TRIPLES, 4),
    "1 - erf(x)**2": ([-26.0, -3.3, -1e-8, 1e-300, 0.3, 5.9, 26.0], 4),
    "arcsin(sqrt(x))": ([*SMALL, 0.3, 0.7, 0.9999999, 1 - 1e-15], 4),
    "exp(log(x) - log(1 + x))": (POSITIVE, 4),
    "(x**3)**(1 / 3)": (POSITIVE, 5),
    "exp(y * log(x)) - 1": ([p for p in PAIRS if p[1] < 2], 4),
    "(1 - x**2) / (1 + x**2)": (REAL, 5),
    "(x**2 - y**2) / (x**2 + y**2)": (PAIRS, 5),
    "x / (x**2 + y**2)": (PAIRS, 6),
    "x * y / (x**2 + y**2)": (PAIRS, 6),
    "x / sqrt(x**2 + y**2 + z**2)": (TRIPLES, 6),
    "x / (1 + abs(x))": (REAL, 4),
    "log(1 + x**2)": (REAL, 4),
    "x / (1 + x**2)": (REAL, 4),
    "x / sqrt(1 + x**2)": (REAL, 6),
    "1 - 1 / (1 + x**2)": (REAL, 6),
    "(sqrt(1 + x**2) - 1) / x": (REAL, 4),
    "x / (1 + sqrt(1 + x**2))": (REAL, 4),
    "x**4 / (1 + x**4)": (REAL, 4),
    "(x + y)**2 / (x**2 + y**2)": ([*PAIRS, (1.0000001, -1.0)], 4),
    "(1 - x)**2 / (1 + x**2)": (REAL, 4),
    "(1 + x) * log(1 + x) - x": ([*POSITIVE, -1e-200, -1e-9, -0.3, -0.9999], 4),
    "1 - sqrt(1 - x**2)": (BELOW_1, 4),
    "sqrt(x) - 1": ([*POSITIVE, 0.9999999, 1 - 1e-15], 4),
    "(3 - sqrt(x))**2": ([*POSITIVE, 9.0000001], 4),
    "x * log(x) - x + 1": ([*POSITIVE, 0.9999999], 4),
    "1 / x**2 - 1 / (x + 1)**2": (POSITIVE, 6),
    "x**3 / (2 + x**3)": (POSITIVE, 4),
    "(1 + x**2)**-1.5": (REAL, 6),
    "sqrt(x**2)": (REAL, 4),
    "1 / x - 1 / y": (PAIRS, 6),
    "x / y - y / x": (PAIRS, 4),
    "arctan(1 / x)": (POSITIVE, 4),
    "1 / (1 + 1 / x**2)": (REAL, 4),
    "tanh(x)**2 / x": (MODERATE, 8),
    "1 / x**2 - 1 / y**2": (PAIRS, 4),
    "x**3 - y**3": (PAIRS, 4),
    "(x + 1)**3 - x**3": (POSITIVE, 4),
    "1 / sqrt(x) - 1 / sqrt(y)": (PAIRS, 4),
    "log(x) - log(y)": (PAIRS, 4),
    "exp(x - y)": ([*LOGITS, (12.3, 710.4), (-300.1, 301.7)], 4),
    "x / (x + y) - y / (x + y)": (PAIRS, 8),
    "exp(log(x) - log(y))": (PAIRS, 4),
    "x**2 / (x**2 + y**2)": (PAIRS, 8),
    "x / sqrt(x**2 + y**2)": (PAIRS, 6),
    "log(x**2 + y**2)": (PAIRS, 4),
    "(x**2 + y**2)**1.5": (PAIRS, 6),
    "sqrt(x / y)": (PAIRS, 4),
    "(x / y)**0.5": (PAIRS, 4),
    "(x * y)**0.5": (PAIRS, 4),
    "x**2 / y**2": (PAIRS, 6),
    "exp(-x**2) / erfc(x)": ([-9.3, -0.3, 1e-8, 0.7, 9.3, 36.7, 1e8], 4),
    "exp(-x**2 / 2) / (1 + erf(x / sqrt(2)))": ([-38.5, -9.3, -0.3, 1e-8, 0.7, 9.3], 6),
    "1 / x**3": (REAL, 6),
    "exp(-x**2 / 2) / 3": ([-36.7, -9.3, -0.3, 1e-8, 0.7, 25.9], 4),
    "x * y / z": (TRIPLES, 4),
    "x / (y * z)": (TRIPLES, 4),
    "x**2 * y / z": (TRIPLES, 6),
    "exp(x) / (exp(x) + exp(y))": (LOGITS, 4),
    "(exp(x) - exp(y)) / (exp(x) + exp(y))": (LOGITS, 4),
    "(x * exp(x) + y * exp(y)) / (exp(x) + exp(y))": (LOGITS, 8),
    "(x + y * exp(x)) / (1 + exp(x))": (LOGITS, 8),
    "exp(x) / (1 + exp(x) + exp(y))": (LOGITS, 8),
    "exp(x) / (exp(y) + 1)": (LOGITS, 4),
    "(1 + exp(x)) / (1 + exp(y))": (LOGITS, 4),
    "(exp(x) - 1) / (exp(y) - 1)": (LOGITS, 4),
    "log((1 + exp(x)) / (1 + exp(y)))": ([*LOGITS, (1e-200, 3e-200)], 4),
    "1 - x**2 / (1 + x**2)": (REAL, 6),
    "1 / x - 1 / (x**2 + x)": (POSITIVE, 4),
    "x - 1 / (1 + 1 / x)": (POSITIVE, 4),
    "1 / (x - 1) - 1 / (x + 1)": (POSITIVE, 4),
    "1 / sqrt(x) - 1 / sqrt(x + 1)": (POSITIVE, 6),
    "sqrt(x + y) - sqrt(x)": (PAIRS, 6),
    "sqrt(x**2 + 1) - sqrt(x**2)": (REAL, 6),
    "1 / (1 / x + 1 / y)": ([*PAIRS, (1e8 + 1, -1e8)], 4),
    "1 / (x**2 + x)": ([*REAL, -1.0000001], 6),
    "x**3 / y**3": (PAIRS, 6),
    "sqrt(x**2 + y**2) / x": (PAIRS, 6),
    "x**2 * y**2 / (x**2 + y**2)": (PAIRS, 8),
    "log(1 + x**2 / y**2)": (PAIRS, 6),
    "arctan(x**2)": (REAL, 4),
    "sqrt(1 + x**4)": (REAL, 6),
    "sqrt(x**4 + x**2)": (REAL, 6),
    "exp(x - exp(x))": ([-700.0, -1e-3, -1e-9, 1e-200, 1e-9, 0.1, 1.0, 2.0, 710.1, 1e4], 8),
    "sqrt(x**2 + x) - x": (POSITIVE, 6),
    "exp(log(x) / 3)": (POSITIVE, 4),
    "x**2 * exp(-x)": ([1e-160, 0.3, 12.3, 710.1, 3e160], 6),
    "x**y": ([(7e-310, 1.3e-290), (3e-300, 1.1e-8), (1.7, -2.3), (1e9, 34.0)], 4),
    "x**y / x**(y + 1)": (POWERS, 4),
    "x**(y + 2) / x**y": (POWERS, 4),
    "x**y * x**(1 - y)": (POWERS, 4),
    "x**(2 * y) / x**y": ([*POWERS[1:], (1e200, 1.3), (1e-200, 0.9)], 4),
    "x**y / x**z": (OF_EXPONENTS, 4),
    "x**y * x**z": (OF_EXPONENTS, 4),
    "exp(y * log(x))": ([(7e-310, 1.3e-290), (3e-300, 1.1e-8), (1.7, -2.3), (1e9, 34.0)], 4),
    "x * log(1 + 1 / x)": (POSITIVE, 6),
    "(1 + x)**(1 / x)": (BELOW_1, 6),
    "(1 + 1 / x)**x": (POSITIVE, 6),
    "(sqrt(1 + x) - sqrt(1 - x)) / x": (BELOW_1, 6),
    "y - y * exp(x)": ([(-30.0, 2.0), (-1e-9, 3e200), (1e-9, 1e-200), (300.0, 1e-100)], 4),
    "arctan(x + 1) - arctan(x)": (REAL, 4),
    "arctan(x) - arctan(x - 3)": (REAL, 6),
    "sqrt(1 + (x / y)**2)": ([*PAIRS, (1.1e200, 1.3e-200), (-3e-180, 5e180)], 4),
    "sqrt(x**2 * y)": (PAIRS, 4),
    "x * exp(x**2) * erfc(x)": ([-9.3, 1e-200, 0.3, 2.9, 36.7, 1e8, 1.3e100], 6),
    "(x**2 + y**2) / (x + y)": ([*PAIRS, (1.1, -3.7), (1.1e-200, -3.7e-200), (1e200, 1e-200)], 4),
    "(x**2 + 1) / (x + 1)": (REAL, 4),
    "x * log(x) / (x + y)": ([*PAIRS, (1.1e200, 1.3e-200), (3e-180, 5e180)], 4),
    "x * log(x) / (2 + x)": ([1e-300, 1e-9, 2.9, 1e16, 1.9e300], 6),
    "exp(x * log(2))": ([-1000.3, -0.3, 1e-9, 710.1, 1000.7], 4),
    "exp(-x * log(10))": ([-300.7, -0.3, 1e-9, 87.3, 300.7], 4),
    "exp(-log(1 + exp(x)))": ([-800.0, -3.3, 0.4, 37.0, 700.0], 4),
}  # fmt: skip
# Near 0.5, where logarithms of x and 1 - x are nearly equal.
SHARES = [*SMALL, 0.3, 0.4999999123, 0.5, 0.50000001234, 0.7, 0.9999999, 1 - 1e-15]
ELEMENTWISE |= {
    "log(x / (1 - x))": (SHARES, 4),
    "log((1 - x) / x)": (SHARES, 4),
    "log(x) - log(1 - x)": (SHARES, 4),
    "log(1 / x - 1)": (SHARES, 4),
    "-x * log(x) - (1 - x) * log(1 - x)": (SHARES, 4),
    "log(x / (x + y))": (PAIRS, 4),
    "log((x + y) / x)": (PAIRS, 4),
    "log(x / (1 + x))": (POSITIVE, 4),
    "x * sqrt(y)": ([(7e-310, 1.3e-290), (3e-300, 1.3), (1.1e300, 1e-9)], 4),
    "exp(log(x)**2)": ([1.2e-11, 1.2e-8, 0.3, 0.9999, 1.0000001, 1.7, 3.7e7, 1e11], 4),
    "exp(-(log(x) - 0.3)**2 / 2) / x": (
        [9e-18, 1.2e-17, 1.2e-16, 1.2e-8, 0.3, 1.7, 3.7e7, 1.1e16, 1e300], 6
    ),
    "exp(2.5 * log(x) - x)": ([1.2e-160, 1e-130, 1.2e-30, 1e-16, 0.3, 1.7, 36.7, 710.1], 8),
    "exp(3.7 * log(x) - x) / x": ([1e-110, 1e-100, 1e-16, 0.3, 36.7, 710.1], 8),
    "exp(-exp(-x))": ([-6.3, -2.9, -1e-9, 1e-200, 0.7, 36.7, 710.1], 4),
    "1 - exp(-exp(x))": ([-710.1, -36.7, -0.7, 1e-9, 2.9, 6.3], 4),
    "sqrt(1 + exp(x))": ([-800.0, -3.3, 1e-9, 40.1, 710.1, 1400.3], 4),
    "(exp(x) + exp(y))**-0.5": ([*LOGITS, (1400.3, 1399.1)], 4),
    "1 / (1 + exp(x - y))": ([*LOGITS, (36.9, -1.1), (300.1, -301.7), (-300.1, 301.7)], 4),
    "1 / (1 + exp(-x - 2 * y))": ([(36.9, -1.1), (-300.1, -101.7)], 6),
    "tanh(x**2)": ([1e-200, 1e-8, 0.3, -0.7, 2.9, -9.3, 18.1], 4),
    "exp(x) / (2 + exp(x))**2": ([-700.0, -40.1, -1e-9, 0.3, 3.3, 40.1, 690.3, 700.7], 4),
    "exp(x)**2 / (1 + 2 * exp(x))**3": ([-300.3, -1.7, 0.3, 3.3, 40.1, 690.3], 8),
    "exp(y / exp(x) + x)": ([(-2.9, -21.3), (0.3, 36.7), (-1e-9, -650.3)], 6),
}
ROWS = [
    [0.3, -1.2, 2.2, 0.7], [1.1e200, -1.3e200, 0.7e200, 1.9e199],
    [1.1e-200, -1.3e-200, 0.7e-200, 1.9e-199], [1.1e-300, 2e-300, 3e-300, -5e-300],
]  # fmt: skip
WEIGHTS = [[0.3, -1.2, 2.2, 0.7], [1000.0, 1001.5, 998.0, -3.0], [-1000.0, -1200.0, -999.5, -1e4]]
MEANS = [
    *WEIGHTS, [1e-9, -3e-9, 2e-10, 5e-11], [1e-200, -3e-200, 2e-201, 5e-210],
    [36.5, 1.1, 0.7, -0.4],
]
WHOLE = {
    "sqrt(mean(x**2))": (ROWS, 4),
    "sqrt(mean((x - mean(x))**2))": (ROWS, 16),
    "log(sum(x**2))": (ROWS, 4),
    "sqrt(exp(x) / sum(exp(x)))": ([*MEANS, [800.0, 20.0, -750.0, 2.5]], 4),
    "x / sqrt(sum(x**2))": (ROWS, 4),
    "x**2 / sum(x**2)": (ROWS, 6),
    "exp(mean(log(abs(x))))": (ROWS, 4),
    "prod(abs(x))**0.25": (ROWS, 4),
    "sum(x**4)**0.25": (ROWS, 4),
    "sum(abs(x)**3)**(1 / 3)": (ROWS, 4),
    "mean(x**6)**(1 / 6)": (ROWS, 6),
    "sum(exp(x) * [0.7, -1.3, 2.9, 1.1]) / sum(exp(x))": (MEANS, 4),
    "mean([0.7, -1.3, 2.9, 1.1] * exp(-x)) / mean(exp(-x))": (MEANS, 4),
    "sum(exp(x))**2 / sum(exp(2 * x))": (MEANS, 8),
    "sum(exp(2 * x)) / sum(exp(x))**2": (MEANS, 8),
    "sum(exp(3 * x)) / sum(exp(x))**3": (MEANS, 8),
    "log(sum(exp(x))) - log(sum(exp(2 * x)))": (MEANS, 8),
    "log(1 + sum(exp(x)))": (WEIGHTS, 4),
    "exp(x) / (1 + sum(exp(x)))": ([[0.3, -1.2, 2.2, 0.7], [1000.0, 1001.5, 998.0, -3.0]], 4),
    "exp(x) / (3 + sum(exp(x)))": ([[800.0, 20.0, -750.0, 2.5], [-30.0, -31.0, -29.0, -40.0]], 4),
    "1 / (1 + sum(exp(x)))": (MEANS, 6),
    "exp(x) / max(exp(x))": ([*WEIGHTS, [36.5, 1.1, 0.7, -0.4]], 4),
    "exp(x) / sqrt(sum(exp(2 * x)))": (MEANS, 4),
    "1 - exp(x) / sum(exp(x))": ([*MEANS, [40.0, -3.0, 0.5, 1.5]], 4),
    "log(1 - exp(x) / sum(exp(x)))": ([*MEANS, [40.0, -3.0, 0.5, 1.5]], 4),
    "-sum(exp(x) / sum(exp(x)) * log(exp(x) / sum(exp(x))))": (MEANS, 8),
    "sum(x * exp(x)) / sum(exp(x)) - log(sum(exp(x)))": (MEANS, 8),
}
OTHER_NAMES = {"abs": "fabs", "arctan": "atan", "arcsin": "asin", "log1p": "log1p"}


class Exact:
    """The functions of the texts, of objects that hold numbers of mpmath."""

    sum = staticmethod(lambda x: x.sum())
    mean = staticmethod(lambda x: x.sum() / x.size)
    prod = staticmethod(lambda x: x.prod())
    max = staticmethod(lambda x: x.max())

    def __getattr__(self, name):
        function = getattr(mp, OTHER_NAMES.get(name, name))
        return lambda x: np.frompyfunc(function, 1, 1)(x)


def written(text, module, **arguments):
    """Evaluate a text with the functions of a module."""
    names = {n: getattr(module, n) for n in compile(text, "", "eval").co_names if n not in "xyz"}
    text = text.replace("[", "array([")
    text = text.replace("]", "])")
    return eval(text, {"array": np.array, **names, **arguments})


def exact(text, point, way, functions=None):
    """Compute the value, and the derivative in a direction."""
    with mp.workdps(2000):
        h = mp.mpf(10) ** -650
        numbers = [np.frompyfunc(mp.mpf, 1, 1)(np.asarray(x)) for x in point]
        steps = [np.frompyfunc(mp.mpf, 1, 1)(np.asarray(w)) for w in way]

        def at(s):
            shifted = [x + s * h * w for x, w in zip(numbers, steps, strict=True)]
            return written(text, functions or Exact(), **dict(zip("xyz", shifted, strict=False)))

        return at(0), (at(1) - at(-1)) / (2 * h)


def off(got, true):
    """Units in the last place, where the truth is a normal number or underflows."""
    rounded = float(true)
    if not np.isfinite(rounded) or 0 < abs(rounded) < np.finfo(float).tiny:
        return 0.0
    if not np.isfinite(got):
        return np.inf
    return float(abs(mp.mpf(float(got)) - true) / mp.mpf(float(np.spacing(abs(rounded)))))


def compiled(text, count, kind):
    """Compile the value, its gradients and its R-ops along each argument."""
    xs = [kind(name) for name in "xyz"[:count]]
    z = written(text, T, **dict(zip("xyz", xs, strict=False)))
    ways = [kind(f"w{i}") for i in range(count)]
    slopes = symcomp.grad(z.sum(), xs)
    forward = [symcomp.gradient.Rop(z, x, w) for x, w in zip(xs, ways, strict=True)]
    mode = symcomp.Mode(linker="py")
    return symcomp.function(
        [*xs, *ways], [z, *slopes, *forward], mode=mode, on_unused_input="ignore"
    )


@pytest.mark.parametrize("text", ELEMENTWISE)
def test_elementwise(text):
    points, limit = ELEMENTWISE[text]
    columns = np.array(points, float).reshape(len(points), -1).T
    count = len(columns)
    with np.errstate(all="ignore"):
        z, *slopes = compiled(text, count, T.dvector)(*columns, *np.ones_like(columns))
    for i in range(count):
        way = np.eye(count)[i]
        for k, point in enumerate(columns.T):
            value, slope = exact(text, point, way)
            assert off(z[k], value) <= limit, ("value", point)
            assert off(slopes[i][k], slope) <= limit, ("gradient", i, point)
            assert off(slopes[count + i][k], slope) <= limit, ("R-op", i, point)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_power_norms_of_float32(scale):
    x = T.fvector("x")
    norm = T.sum(x**8) ** 0.125
    f = symcomp.function([x], [norm, symcomp.grad(norm, x)])
    point = np.array([0.3, -1.2, 2.2, 0.7]) * scale
    value, slope = f(point.astype("float32"))
    wide = point.astype("float32").astype("longdouble") / scale
    norm = (wide**8).sum() ** 0.125
    np.testing.assert_allclose(value / scale, norm, rtol=1e-6)
    np.testing.assert_allclose(slope, (wide / norm) ** 7, rtol=1e-5)


@pytest.mark.parametrize("text", WHOLE)
def test_rows(text):
    points, limit = WHOLE[text]
    f = compiled(text, 1, T.dvector)
    for point in points:
        for i, way in enumerate(np.eye(len(point))):
            with np.errstate(all="ignore"):
                z, slope, forward = f(point, way)
            value, true = exact(text, [point], [way])
            for got, right in zip(np.ravel(z), np.ravel(value), strict=True):
                assert off(got, right) <= limit, ("value", point)
            for got, right in zip(np.ravel(forward), np.ravel(true), strict=True):
                assert off(got, right) <= limit, ("R-op", i, point)
            if z.ndim == 0:
                assert off(slope[i], true) <= limit, ("gradient", i, point)


def test_gradient_of_a_quotient_of_norms_that_underflows():
    """The quotient is 0; its derivative by x is the unit vector over the norm of y."""
    x, y = T.dvectors("xy")
    z = T.sqrt(T.sum(x**2) / T.sum(y**2))
    f = symcomp.function([x, y], [z, symcomp.grad(z, x)])
    value, slope = f([3e-160, 4e-160], [3e200, 4e200])
    assert value == 0
    np.testing.assert_allclose(slope, np.array([0.6, 0.8]) / 5e200, rtol=1e-15)


AT_INFINITY = [
    "1 - 1 / (1 + x)", "1 / (1 - x) - 1", "1 / (1 + x)**2 - 1", "x**2 / (1 + x) - x",
    "1 / x - 1 / y", "x / y - 1", "x / y - y / x", "1 - x / (x + y)", "1 / x**2 - 1 / y**2",
    "1 / (x + y) - 1 / x", "1 / (1 + x) - 1 / (1 + y)", "1 / sqrt(x) - 1 / sqrt(y)",
]  # fmt: skip


@pytest.mark.parametrize("text", AT_INFINITY)
def test_differences_of_quotients_at_infinity(text):
    """Results are numbers, and infinite, where the terms as written are."""
    ends = [np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0]
    x, y = (np.ravel(z) for z in np.meshgrid(ends, ends))
    inputs = T.dvectors("x", "y")
    f = symcomp.function(
        inputs, written(text, T, x=inputs[0], y=inputs[1]), on_unused_input="ignore"
    )
    with np.errstate(all="ignore"):
        got = f(x, y)
        wanted = written(text, np, x=x, y=y)
    known = ~np.isnan(wanted)
    np.testing.assert_allclose(got[known], wanted[known])


def test_derivatives_of_differences_of_arctan_at_infinity():
    x, way = T.dvectors("x", "way")
    z = T.arctan(x + 1) - T.arctan(x)
    f = symcomp.function([x, way], [symcomp.grad(z.sum(), x), symcomp.gradient.Rop(z, x, way)])
    for slope in f([np.inf, -np.inf], [1.0, 2.0]):
        np.testing.assert_array_equal(slope, [0, 0])


def test_logarithms_of_ratios_of_negative_numbers():
    """The quotient of two negative numbers is positive; their logarithms are NaN."""
    x, y = T.dvectors("xy")
    f = symcomp.function([x, y], [T.log(x / (x + y)), T.log((x + y) / x)])
    a, b = np.array([-3.0, -3.0, 3.0, 0.0, 1.0]), np.array([1.0, -1.0, -1.0, 2.0, -3.0])
    with np.errstate(all="ignore"):
        for got, ratio in zip(f(a, b), (a / (a + b), (a + b) / a), strict=True):
            np.testing.assert_allclose(got, np.log(ratio), rtol=1e-15)


@pytest.mark.parametrize(
    "text", ["x * log(x) - x", "x * log(x / y) - x", "(1 - x) * log(1 - x) + x"]
)
def test_slopes_of_entropies_near_their_roots(text):
    """The derivative by x, a logarithm, has all its digits, for any gradient that comes in."""
    x, y, g = T.dvectors("xyg")
    z = written(text, T, x=x, y=y)
    slopes = [symcomp.grad((g * z).sum(), x), symcomp.grad(z.sum(), x)]
    f = symcomp.function([x, y, g], slopes, on_unused_input="ignore")
    mirrored = "1 - x" in text
    a = np.array([1e-9, 1e-200, 0.3] if mirrored else [1.0000001, 0.99999, 1e-9])
    wide = -np.log1p(-a) if mirrored else np.log(a.astype("longdouble"))
    weights = np.array([2.0, -3.0, 0.7])
    for got, factor in zip(f(a, np.ones(3), weights), (weights, 1), strict=True):
        np.testing.assert_allclose(got, (wide * factor).astype(float), rtol=1e-15)


def test_gradient_of_a_quotient_of_means_of_large_numbers():
    """Products with the square of the mean leave the range; the terms of the gradient do not."""
    x = T.dvector("x")
    f = symcomp.function([x], symcomp.grad(T.exp(T.mean(T.log(x))) / T.mean(x), x))
    numbers = np.array([1.1, 1.3, 0.7, 0.19])
    for scale in (1e-200, 1.0, 1e200):
        np.testing.assert_allclose(f(scale * numbers) * scale, f(numbers), rtol=1e-13)


def test_second_derivative_of_a_share_of_large_exponentials():
    """The exponentials leave the range in products, the shares of their sum do not."""
    x = T.dvector("x")
    z = T.exp(x) / (2 + T.exp(x)) ** 2
    slope = symcomp.grad(z.sum(), x)
    f = symcomp.function([x], symcomp.grad(slope.sum(), x))
    with mp.workdps(50):
        for point in (-690.3, -3.3, 0.3, 300.1, 690.3, 700.7, 720.0):
            t = mp.exp(point) / 2
            true = t * (1 - 4 * t + t * t) / (2 * (1 + t) ** 4)
            np.testing.assert_allclose(f([point]), float(true), rtol=1e-14, atol=1e-310)


def test_logistic_functions_of_differences_of_infinities():
    """The results are NaN where the difference is."""
    x, y = T.dvectors("xy")
    z = T.sigmoid(x - y)
    f = symcomp.function([x, y], [z, symcomp.grad(z.sum(), x)])
    ends = [np.inf, -np.inf, 3.0, 2.0, np.nan]
    a, b = (np.ravel(v) for v in np.meshgrid(ends, ends))
    with np.errstate(invalid="ignore"):
        gap = a - b
    weight = 1 / (1 + np.exp(-gap))
    value, slope = f(a, b)
    np.testing.assert_allclose(value, weight, rtol=1e-15)
    np.testing.assert_allclose(slope, weight * (1 - weight), rtol=1e-15)


def test_products_of_powers_at_the_ends():
    """Results are those of the factors for 0, infinities and negative numbers, but for overflow."""
    x, y, z = T.dvectors("xyz")
    n = [x**y * x**z, x**y / x**z, x**y / x ** (y + 1), x ** (y + z) / x**y]
    f = symcomp.function([x, y, z], n)
    bases = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.0, 0.5]
    exponents = [0.0, 1.0, -1.0, 2.0, -3.0, 0.5, np.inf, -np.inf, np.nan]
    a, b, c = (np.ravel(v) for v in np.meshgrid(bases, exponents, exponents))
    with np.errstate(all="ignore"):
        written = [a**b * a**c, a**b / a**c, a**b / a ** (b + 1), a ** (b + c) / a**b]
        for got, wanted in zip(f(a, b, c), written, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-15)
