"""Draws against distribution functions (Kolmogorov-Smirnov, chi-square), with fixed seeds."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.ops.random.draws import drawn

N = 20000
# A right implementation fails with this probability, once and for all, as seeds are fixed.
LEVEL = 1e-3

CONTINUOUS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "standard uniform": ("standard_uniform", (), stats.uniform()),
    "uniform": ("uniform", (-1.0, 3.0), stats.uniform(-1, 4)),
    "standard normal": ("standard_normal", (), stats.norm()),
    "normal": ("normal", (2.0, 0.5), stats.norm(2, 0.5)),
    "lognormal": ("lognormal", (0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "standard exponential": ("standard_exponential", (), stats.expon()),
    "exponential": ("exponential", (2.5,), stats.expon(scale=2.5)),
    "laplace": ("laplace", (1.0, 2.0), stats.laplace(1, 2)),
    "gumbel": ("gumbel", (1.0, 2.0), stats.gumbel_r(1, 2)),
    "logistic": ("logistic", (1.0, 2.0), stats.logistic(1, 2)),
    "rayleigh": ("rayleigh", (1.5,), stats.rayleigh(scale=1.5)),
    "cauchy": ("standard_cauchy", (), stats.cauchy()),
    "triangular": ("triangular", (-1.0, 0.0, 3.0), stats.triang(0.25, -1, 4)),
    "triangular, falling": ("triangular", (0.0, 0.0, 1.0), stats.triang(0.0)),
    "standard gamma, small": ("standard_gamma", (0.1,), stats.gamma(0.1)),
    "gamma": ("gamma", (3.5, 2.0), stats.gamma(3.5, scale=2)),
    "chisquare": ("chisquare", (3.0,), stats.chi2(3)),
    "standard t": ("standard_t", (4.0,), stats.t(4)),
    "f": ("f", (3.0, 8.0), stats.f(3, 8)),
    "beta": ("beta", (0.4, 2.0), stats.beta(0.4, 2)),
    "beta, small": ("beta", (0.2, 3.0), stats.beta(0.2, 3.0)),
    "weibull": ("weibull", (1.7,), stats.weibull_min(1.7)),
    "pareto": ("pareto", (2.5,), stats.lomax(2.5)),
    "power": ("power", (2.5,), stats.powerlaw(2.5)),
    "vonmises": ("vonmises", (0.0, 2.0), stats.vonmises(2.0)),
    "wald": ("wald", (1.5, 2.0), stats.invgauss(0.75, scale=2)),
    "noncentral chisquare": ("noncentral_chisquare", (3.0, 2.0), stats.ncx2(3, 2)),
    "noncentral f": ("noncentral_f", (3.0, 9.0, 2.0), stats.ncf(3, 9, 2)),
    "truncated normal": ("truncated_normal", (), stats.truncnorm(-2, 2)),
    "truncated, moved": ("truncated_normal", (1.0, 3.0, -1.0, 0.5), stats.truncnorm(-1, 0.5, 1, 3)),
    "truncated, far right": ("truncated_normal", (0.0, 1.0, 9.0, 12.0), stats.truncnorm(9, 12)),
    "truncated, far left": (
        "truncated_normal",
        (0.0, 1.0, -np.inf, -9.0),
        stats.truncnorm(-50, -9),
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CONTINUOUS)
def test_continuous_draws(case: str, dtype: str) -> None:
    name, args, law = CONTINUOUS[case]
    found = drawn(getattr(T.random, name), *args, size=N, dtype=dtype, seed=11)
    assert found.dtype == dtype
    assert np.isfinite(found).all()
    distance = stats.kstest(found.astype("float64"), law.cdf)
    assert distance.pvalue > LEVEL, f"{case}: {distance}"


def test_beta_of_tiny_shapes() -> None:
    """Nearly all numbers are 0 or 1 up to rounding: how many, and no NaN."""
    found = drawn(T.random.beta, 1e-3, 3e-3, size=N)
    assert np.isfinite(found).all()
    assert found.mean() == pytest.approx(0.25, abs=0.015)
    law = stats.beta(0.02, 2)
    assert stats.kstest(drawn(T.random.beta, 0.02, 2.0, size=N), law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gumbel", "logistic"])
def test_draws_in_half_precision(name: str) -> None:
    found = drawn(getattr(T.random, name), size=N, dtype="float16")
    assert found.dtype == "float16"
    assert np.isfinite(found).all()
    wanted = drawn(getattr(T.random, name), size=N, dtype="float64", seed=2)
    assert found.astype("float64").mean() == pytest.approx(wanted.mean(), abs=0.05)
    assert found.astype("float64").std() == pytest.approx(wanted.std(), rel=0.05)


def test_uniform_numbers_stay_below_1_in_half_precision() -> None:
    found = drawn(T.random.standard_uniform, size=200_000, dtype="float16")
    assert found.min() == 0
    assert 0.999 < found.max() < 1


DISCRETE: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "bernoulli": ("bernoulli", (0.3,), stats.bernoulli(0.3)),
    "binomial": ("binomial", (9, 0.3), stats.binom(9, 0.3)),
    "one trial": ("binomial", (1, 0.8), stats.bernoulli(0.8)),
    "negative binomial": ("negative_binomial", (2.5, 0.4), stats.nbinom(2.5, 0.4)),
    "poisson": ("poisson", (4.0,), stats.poisson(4)),
    "geometric": ("geometric", (0.3,), stats.geom(0.3)),
    "hypergeometric": ("hypergeometric", (10, 7, 6), stats.hypergeom(17, 10, 6)),
    "logseries": ("logseries", (0.6,), stats.logser(0.6)),
    "zipf": ("zipf", (3.0,), stats.zipf(3.0)),
    "integers": ("integers", (-2, 5), stats.randint(-2, 5)),
    "integers from 0": ("integers", (5,), stats.randint(0, 5)),
    "categorical": ("categorical", ([0.2, 0.5, 0.0, 0.3],), None),
}


def fits(found: Any, law: Any) -> bool:
    """Chi-square of the counts of small numbers, the rest taken together."""
    values = np.arange(-3, 12)
    counts = np.array([*((found == k).sum() for k in values), 0.0])
    wanted = np.array([*law.pmf(values), 0.0])
    counts[-1], wanted[-1] = len(found) - counts.sum(), 1 - wanted.sum()
    assert counts[wanted < 1e-12].sum() == 0
    used = wanted * N > 5
    counts = np.append(counts[used], counts[~used].sum())
    wanted = np.append(wanted[used], wanted[~used].sum()) * len(found)
    keep = wanted > 1e-9
    return bool(stats.chisquare(counts[keep], wanted[keep], sum_check=False).pvalue > LEVEL)


@pytest.mark.parametrize("case", DISCRETE)
def test_discrete_draws(case: str) -> None:
    name, args, law = DISCRETE[case]
    law = law or stats.rv_discrete(values=([0, 1, 3], [0.2, 0.5, 0.3]))
    for dtype in ("int64", "float32"):
        found = drawn(getattr(T.random, name), *args, size=N, dtype=dtype, seed=5)
        assert found.dtype == dtype
        assert fits(found, law), case


def test_integers_with_both_ends() -> None:
    found = drawn(T.random.integers, 3, 5, size=1000, endpoint=True)
    assert set(found.tolist()) == {3, 4, 5}
    state, low = T.random.state(), T.lscalar("low")
    f = symcomp.function([state, low], T.random.integers(state, low, 3, size=10, endpoint=True)[1])
    with pytest.raises(ValueError, match="integers: low >= high"):
        f(np.random.default_rng(0), 5)


def test_certain_outcomes() -> None:
    assert drawn(T.random.bernoulli, 1.0, size=1000).all()
    assert not drawn(T.random.bernoulli, 0.0, size=1000).any()
    assert set(drawn(T.random.categorical, [0.0, 1.0, 0.0], size=1000).tolist()) == {1}
    with pytest.raises(ValueError, match="bernoulli: p must be between 0 and 1"):
        T.random.bernoulli(T.random.state(), 1.5)


def test_draws_of_rows() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    found = drawn(T.random.categorical, p, size=(N, 2))
    for row, chances in zip(found.T, p, strict=True):
        kept = chances > 0
        assert fits(row, stats.rv_discrete(values=(np.arange(3)[kept], chances[kept])))
    counts = drawn(T.random.multinomial, 20, p, size=(N // 10, 2))
    assert counts.shape == (N // 10, 2, 3)
    assert (counts.sum(axis=-1) == 20).all()
    np.testing.assert_allclose(counts.mean(axis=0), 20 * p, atol=0.15)
    single = drawn(T.random.multinomial, 1, p, dtype="float32")
    assert single.shape == (2, 3) and single.dtype == "float32" and single.sum() == 2


def test_rounded_probabilities_are_taken() -> None:
    """In float32 the probabilities of a softmax may have a sum above 1."""
    p = np.full(7, 1 / 7, "float32") * np.float32(1.0001)
    assert drawn(T.random.multinomial, 30, p).sum() == 30
    assert 0 <= drawn(T.random.categorical, p.astype("float16")) < 7


def test_dirichlet() -> None:
    alpha = np.array([0.3, 1.0, 2.5])
    found = drawn(T.random.dirichlet, alpha, size=N)
    np.testing.assert_allclose(found.sum(axis=-1), 1)
    for k, a in enumerate(alpha):
        assert stats.kstest(found[:, k], stats.beta(a, alpha.sum() - a).cdf).pvalue > LEVEL
    tiny = drawn(T.random.dirichlet, np.full(4, 1e-4), size=100)
    np.testing.assert_allclose(tiny.max(axis=-1), 1)


def test_multivariate_normal() -> None:
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    found = drawn(T.random.multivariate_normal, mean, cov, size=(N, 1))
    assert found.shape == (N, 1, 2)
    np.testing.assert_allclose(found[:, 0].mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(found[:, 0].T), cov, atol=0.05)
    assert drawn(T.random.multivariate_normal, mean, cov).shape == (2,)


# -- orders


def test_permutations() -> None:
    found = drawn(T.random.permutation, 4, size=N)
    assert (np.sort(found) == np.arange(4)).all()
    places = np.array([(found == k).mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(places, 0.25, atol=0.015)
    assert len({tuple(row) for row in found.tolist()}) == 24
    x = np.arange(12.0).reshape(6, 2)
    shuffled = drawn(T.random.permutation, T.constant(x))
    assert sorted(shuffled.tolist()) == x.tolist() and shuffled.tolist() != x.tolist()


def test_shuffled_rows() -> None:
    x = np.arange(60.0).reshape(3, 20)
    found = drawn(T.random.shuffle_row_elements, T.constant(x))
    np.testing.assert_array_equal(np.sort(found), x)
    orders = found - x[:, :1]
    assert (orders[0] != orders[1]).any() and (orders[0] != orders[2]).any()


def test_choice() -> None:
    assert fits(drawn(T.random.choice, 5, size=N), stats.randint(0, 5))
    p = [0.1, 0.6, 0.3]
    law = stats.rv_discrete(values=([0, 1, 2], p))
    assert fits(drawn(T.random.choice, 3, size=N, p=p), law)
    words = np.array([[1, 2], [3, 4], [5, 6]], "int32")
    found = drawn(T.random.choice, T.constant(words), size=(4, 5))
    assert found.shape == (4, 5, 2) and found.dtype == "int32"
    assert {tuple(row) for row in found.reshape(-1, 2).tolist()} <= {(1, 2), (3, 4), (5, 6)}
    assert drawn(T.random.choice, 5).shape == ()


def test_choice_without_replacement() -> None:
    assert sorted(drawn(T.random.choice, 6, size=(2, 3), replace=False).ravel()) == [*range(6)]
    assert drawn(T.random.choice, 6, replace=False).shape == ()
    p = np.array([0.1, 0.6, 0.0, 0.3])
    state = T.random.state()
    f = symcomp.function([state], T.random.choice(state, 4, 2, False, p)[1])
    pairs = np.array([f(np.random.default_rng(k)) for k in range(3000)])
    assert (pairs[:, 0] != pairs[:, 1]).all() and not (pairs == 2).any()
    np.testing.assert_allclose([(pairs[:, 0] == k).mean() for k in range(4)], p, atol=0.04)
    second = 0.1 * 0.6 / 0.9 + 0.3 * 0.6 / 0.7
    assert (pairs[:, 1] == 1).mean() == pytest.approx(second, abs=0.04)
    n, q = T.lscalar("n"), T.dvector("q")
    for z, message in (
        (T.random.choice(state, n, 4, False), "more elements are drawn than there are"),
        (T.random.choice(state, 4, n + 1, False, q), "positive for as many outcomes as drawn"),
        (T.random.choice(state, n, 4, p=q), "as many elements as there are"),
    ):
        f = symcomp.function([state, n, q], z[1], on_unused_input="ignore")
        with pytest.raises(AssertionError, match=message):
            f(np.random.default_rng(0), 3, p)


# -- sizes


def test_sizes_of_all_kinds() -> None:
    state, n, x = T.random.state(), T.lscalar("n"), T.dmatrix("x")
    sizes = T.lvector("sizes")
    cases = [
        (3, {}, (3,)), ((), {}, ()), (None, {}, ()), ((2, n), {}, (2, 5)), (n, {}, (5,)),
        ([n, 1], {}, (5, 1)), (x.shape, {}, (4, 6)), (np.array([2, 3]), {}, (2, 3)),
        (T.constant([2, 3]), {}, (2, 3)), (sizes, {"ndim": 2}, (7, 8)), (x.shape[0], {}, (4,)),
    ]  # fmt: skip
    given = [np.random.default_rng(0), 5, np.ones((4, 6)), [7, 8]]
    for size, more, shape in cases:
        for distribution in (T.random.normal, T.random.bernoulli, T.random.poisson):
            _, z = distribution(state, size=size, **more)
            f = symcomp.function([state, n, x, sizes], z, on_unused_input="ignore")
            assert f(*given).shape == shape, (size, distribution)
    with pytest.raises(ShapeError, match="whose length is not known: pass ndim"):
        T.random.normal(state, size=sizes)
    with pytest.raises(ShapeError, match="ndim is 3, but size has 2 lengths"):
        T.random.normal(state, size=(2, 2), ndim=3)
    with pytest.raises(ShapeError, match="size has 1 lengths, and a parameter 2 axes"):
        T.random.normal(state, x, size=3)
    with pytest.raises(DTypeError, match="a length must be an integer scalar"):
        T.random.normal(state, size=2.5)


def test_the_size_follows_from_the_parameters() -> None:
    state, row, column = T.random.state(), T.drow("row"), T.dcol("column")
    _, z = T.random.normal(state, row, column)
    f = symcomp.function([state, row, column], z)
    found = f(np.random.default_rng(0), np.zeros((1, 4)), np.ones((3, 1)))
    assert found.shape == (3, 4) and len(np.unique(found)) == 12
    assert drawn(T.random.poisson, np.ones((2, 3))).shape == (2, 3)


def test_dtypes_follow_from_the_parameters() -> None:
    state = T.random.state()
    with symcomp.config.change_flags(floatX="float32"):
        assert T.random.normal(state)[1].dtype == "float32"
        assert T.random.normal(state, 0.5, 2)[1].dtype == "float32"
        assert T.random.normal(state, T.dscalar())[1].dtype == "float64"
        assert T.random.normal(state, T.iscalar())[1].dtype == "float32"
        assert T.random.normal(state, T.dscalar(), dtype="float16")[1].dtype == "float16"
        assert T.random.bernoulli(state, 0.5)[1].dtype == "int64"
    assert T.random.normal(state, T.fscalar())[1].dtype == "float64"
    assert T.random.poisson(state, 2.0, dtype="uint8")[1].dtype == "uint8"
    assert T.random.bernoulli(state, 0.2, dtype="bool")[1].dtype == "bool"


@pytest.mark.parametrize("name", ["weibull", "pareto", "power"])
def test_shapes_must_be_positive(name: str) -> None:
    distribution = getattr(T.random, name)
    with pytest.raises(ValueError, match=f"{name}: a must be positive"):
        distribution(T.random.state(), -1.0)
    state, a = T.random.state(), T.dscalar("a")
    f = symcomp.function([state, a], distribution(state, a)[1])
    with pytest.raises(AssertionError, match=f"{name}: a must be positive"):
        f(np.random.default_rng(0), -1.0)
