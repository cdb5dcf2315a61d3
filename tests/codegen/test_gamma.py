"""The gamma function's kin in kernels, compiled for this processor: what the ufuncs give, which are
compiled for any, bit by bit over the whole range.
"""

import mpmath
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise

UNARY = ("gamma", "gammaln", "log_of_gamma", "psi", "tri_gamma")
BINARY = (
    "beta", "betaln", "digamma_increment", "digamma_of_sum", "gamma_ratio", "inverse_poch",
    "log_gamma_ratio", "log_poch", "poch", "tri_gamma_increment",
)  # fmt: skip

SPECIAL = [
    0.0, -0.0, 0.5, 1, 2, 2.5, 12, 16, -0.5, -1, -1.5, -2, -11, np.inf, -np.inf, np.nan, 5e-324,
    1e-300, -1e-300, 1e-20, -1e-20, 1e-3, -1e-3, -1.1e-3, 1.4616321449683622,
    -0.5040830082644554, -2.4570247382208006, -2.7476826467274127, 1e15, 2.0**53, 1e22, 2.0**201,
    2.5e305, 1.7e308,
]  # fmt: skip


def points(rng):
    return np.concatenate(
        [
            SPECIAL,
            3 * rng.standard_normal(150),
            20 * rng.random(150),
            10 ** rng.uniform(-300, 300, 150),
            -(10 ** rng.uniform(-15, 5, 80)),
            rng.integers(-20, 40, 60) + rng.choice([0, 0.5, 1e-12, -1e-9], 60),
        ]
    )


def compiled(row, count):
    variables = [T.dvector() for _ in range(count)]
    return symcomp.function(variables, Elemwise(row)(*variables), profile=True)


def check_agree(f, row, arguments):
    with np.errstate(all="ignore"):
        found, expected = f(*arguments), row.function(*arguments)
        assert "kernel" in f.profile.text()
    different = np.flatnonzero(~((found == expected) | (np.isnan(found) & np.isnan(expected))))
    places = [(*(x[i] for x in arguments), found[i], expected[i]) for i in different[:5]]
    assert not different.size, places


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


@pytest.mark.parametrize("name", UNARY)
def test_of_one(name):
    row = ROWS[name]()
    check_agree(compiled(row, 1), row, [points(np.random.default_rng(1))])


@pytest.mark.parametrize("name", BINARY)
def test_of_two(name):
    rng, row = np.random.default_rng(2), ROWS[name]()
    known = points(rng)
    x, y = rng.choice(known, (2, 2000))
    near = x * (1 + rng.standard_normal(2000) * 10 ** -rng.uniform(0, 16, 2000))
    check_agree(compiled(row, 2), row, [np.tile(x, 2), np.concatenate([y, near])])


HALVES = [2.0**51 + 0.5, 1e15 + 0.5, 299.5, 12345.25, 1e6 + 0.25, -4503599627370495.5, 0.25, 3.0]
VAST = [-1e120, -1e40, -1e25, -1e20, -1e17, 1e17, 1e25, 1e200, -1e200, 1e307, -1e302]


@pytest.mark.parametrize("name", [*BINARY, "polygamma", "gammainc_der"])
def test_of_numbers_of_very_different_size(name):
    row = ROWS[name]()
    x, y = (v.ravel() for v in np.meshgrid([*HALVES, *VAST, *SPECIAL], [*HALVES, *VAST]))
    check_agree(compiled(row, 2), row, [np.append(x, y), np.append(y, x)])


def test_derivatives_of_psi():
    rng, row = np.random.default_rng(3), ROWS["polygamma"]()
    x = np.tile(points(rng), 4)
    orders = [0, 1, 2, 3, 4, 7, 20, 31, 90, 171, 1000, 1e6, 1e300, 1e307, 2.5, -1, np.nan, np.inf]
    n, f = rng.choice(orders, x.size), compiled(row, 2)
    check_agree(f, row, [n, x])


def test_derivative_in_the_shape():
    rng, row = np.random.default_rng(4), ROWS["gammainc_der"]()
    known = np.abs(points(rng))
    k = np.concatenate([rng.choice(known, 1500), 10 ** rng.uniform(-3, 15, 1500), [-1, -np.inf]])
    x = k * (1 + rng.standard_normal(k.size) * 10 ** -rng.uniform(0, 8, k.size))
    x[:900] = rng.choice(known, 900)
    check_agree(compiled(row, 2), row, [k, x])


def test_terms_that_cancel():
    x, h = T.dvectors("x", "h")
    f = symcomp.function([x, h], T.gammaln(x + h) - T.gammaln(x))
    values = np.array([[1e10, 1e-3], [7.5, 1e-9], [1e5, 3.0], [0.25, 100.0]])
    for (a, b), z in zip(values, f(*values.T), strict=True):
        with mpmath.workdps(60):
            exact = mpmath.loggamma(mpmath.mpf(a) + mpmath.mpf(b)) - mpmath.loggamma(a)
        assert z == pytest.approx(float(exact), rel=1e-15)
