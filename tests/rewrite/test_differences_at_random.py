"""Random sums of functions that nearly cancel: what rules make of them is right wherever the sum as
it is written is, and keeps its NaN and infinities.
"""

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.walk import ancestors
from symcomp.tests.exact import evaluate_exactly, units_off

inf, nan = np.inf, np.nan
NUMBERS = np.array([5e-324, 3e-200, 1.3e-9, 0.21, 0.5, 0.83, 1.0, 1.7, 12.3, 2.1e7, 3e15, 7e90])
SPECIAL = np.array([nan, inf, -inf, 0.0, -0.0, -0.4, -1.0, -2.5, 1.0])
# Terms: functions of x and y.
ROOTS = [
    lambda x, y: T.sqrt(x), lambda x, y: T.sqrt(x + 1), lambda x, y: T.sqrt(x + y),
    lambda x, y: T.sqrt(x * x + x), lambda x, y: T.hypot(x, 1.0), lambda x, y: T.hypot(x, y),
    lambda x, y: x, lambda x, y: x + 1, lambda x, y: abs(x), lambda x, y: y,
    lambda x, y: T.sqrt(1 - x * x), lambda x, y: T.second(x, 1.0), lambda x, y: x * T.sqrt(y),
    lambda x, y: y * T.sqrt(x),
]  # fmt: skip
LOGARITHMS = [
    lambda x, y: T.log(x), lambda x, y: T.log(x + 1), lambda x, y: T.log(x + y),
    lambda x, y: T.log(2 + x), lambda x, y: T.log(1 - x), lambda x, y: T.log(y),
    lambda x, y: T.log(T.cos(x)), lambda x, y: x,
]  # fmt: skip
LOGISTIC = [
    lambda x, y: T.sigmoid(x), lambda x, y: T.sigmoid(-x), lambda x, y: T.sigmoid(y),
    lambda x, y: T.softplus(x), lambda x, y: T.softplus(y), lambda x, y: x,
    lambda x, y: 1 / T.cosh(x), lambda x, y: T.second(x, 1.0), lambda x, y: 1 / T.cos(y),
    lambda x, y: T.tanh(x), lambda x, y: T.exp(x) * T.sigmoid(y),
]  # fmt: skip
TERMS = {"roots": ROOTS, "logarithms": LOGARITHMS, "logistic": LOGISTIC}
AS_WRITTEN = symcomp.Mode(optimizer="None", linker="py")
REWRITTEN = symcomp.Mode(linker="py")
# Rows are right to 4 units, and a sum of three has three roundings and their products.
MOST = 16
UNIT = np.finfo("float64").eps


def random_sum(rng, family):
    """Return inputs, a sum of two or three terms or quotients with signs, and the terms."""
    x, y = T.dvector("x"), T.dvector("y")
    terms = TERMS[family]
    chosen = [terms[rng.integers(len(terms))](x, y) for _ in range(rng.integers(2, 4))]
    if family == "roots" and rng.random() < 0.4:
        below = [terms[rng.integers(len(terms))](x, y) for _ in chosen]
        chosen = [above / z for above, z in zip(chosen, below, strict=True)]
    signs = [1.0, -1.0, rng.choice([-1.0, 1.0])]
    scale = rng.choice([1.0, 3.0, -0.5])
    terms = [scale * sign * z for sign, z in zip(signs, chosen, strict=False)]
    if rng.random() < 0.2:
        return [x, y], sum(terms) * y, [z * y for z in terms]
    return [x, y], sum(terms), terms


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("family", TERMS)
def test_rules_make_no_right_value_wrong(family, seed):
    rng = np.random.default_rng([seed, len(family)])
    inputs, total, terms = random_sum(rng, family)
    plain, better = (
        symcomp.function(inputs, total, mode=mode, on_unused_input="ignore")
        for mode in (AS_WRITTEN, REWRITTEN)
    )
    parts = symcomp.function(inputs, terms, mode=AS_WRITTEN, on_unused_input="ignore")
    xs, ys = rng.permutation(NUMBERS), rng.permutation(NUMBERS)
    if family == "logistic":
        xs, ys = np.clip(xs * rng.choice([-1, 1], len(xs)), -600, 600), np.clip(ys, 0, 600)
    with np.errstate(all="ignore"):
        old, new = plain(xs, ys), better(xs, ys)
        sizes = np.abs(np.broadcast_arrays(*parts(xs, ys)))
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        try:
            (truth,) = evaluate_exactly(inputs, [total], [xs[i : i + 1], ys[i : i + 1]])
        except (ZeroDivisionError, ValueError):  # a limit, or the logarithm of 0
            continue
        written, found = (units_off(z[i : i + 1], truth) for z in (old, new))
        right = not found > max(MOST, 2 * written)
        # Terms that no rule takes together lose digits by roundings of themselves, and of
        # arguments near 1.
        if not right and isinstance(truth[0], mpmath.mpf):
            right = abs(new[i] - float(truth[0])) <= 4 * UNIT * max(1.0, sizes[:, i].max())
        assert right, (x, y, truth, old[i], new[i])


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("family", TERMS)
def test_rules_keep_nan_and_infinities(family, seed):
    """Except that a NaN may be a limit, where an argument is infinite or a divisor 0."""
    rng = np.random.default_rng([seed, len(family)])
    inputs, total, _ = random_sum(rng, family)
    plain, better = (
        symcomp.function(inputs, total, mode=mode, on_unused_input="ignore")
        for mode in (AS_WRITTEN, REWRITTEN)
    )
    xs, ys = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    used = ancestors([total])
    xs, ys = (z if v in used else np.ones_like(z) for v, z in zip(inputs, (xs, ys), strict=True))
    with np.errstate(all="ignore"):
        old, new = plain(xs, ys), better(xs, ys)
    free = np.isnan(old) & ~np.isnan(xs) & ~np.isnan(ys)
    free &= np.isinf(xs) | np.isinf(ys) | (xs == 0) | (ys == 0)
    np.testing.assert_allclose(new[~free], old[~free], rtol=1e-13, atol=1e-13)


def test_zeros_of_differences_of_squares_are_positive():
    """As those of x*x - y*y are: quotients by them have the sign that they have as written."""
    x = T.dvector("x")
    slope = symcomp.grad(T.arcsin(x).sum(), x)
    outputs = [1 - x * x, x * x - 1, 1 / (1 - x * x), 1 / (T.sqr(x) - 1), slope]
    f = symcomp.function([x], outputs)
    for z, wanted in zip(f([1.0, -1.0]), [0.0, 0.0, inf, inf, inf], strict=True):
        np.testing.assert_array_equal(np.signbit(z), [False, False])
        np.testing.assert_array_equal(z, [wanted, wanted])
