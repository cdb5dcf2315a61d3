"""Draws of the No-U-Turn sampler: moments of known posteriors, and calibration."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.nuts import compile_sampler
from symcomp.nuts.program import STATISTICS

pytest.importorskip("pymc")  # slow (a minute): `make pymc` runs them


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


def with_gradient(logp):
    def density(x):
        value = logp(x)
        return value, symcomp.grad(value, x)

    return density


def effective(draws):
    """Return a lower bound of the number of independent draws these are worth: batches of fifty."""
    batches = draws[: len(draws) // 50 * 50].reshape(-1, 50, draws.shape[-1]).mean(1)
    return len(draws) * draws.var(0) / np.maximum(50 * batches.var(0), 1e-300)


def test_moments_of_a_normal_distribution():
    scales, rotation = (
        np.array([0.1, 1.0, 7.0]),
        np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0, 0.5, 1]]),
    )
    precision = np.linalg.inv(rotation @ np.diag(scales**2) @ rotation.T)
    center = np.array([1.0, -2.0, 30.0])
    density = with_gradient(lambda x: -0.5 * T.dot(x - center, T.dot(precision, x - center)))
    sampler = compile_sampler(density, 3)
    chain = sampler.begin([0.0, 0.0, 0.0], np.random.default_rng(0))
    chain, _, _ = sampler.advance(chain, 800, tuning=True)
    same, first, _ = sampler.advance(chain, 20, tuning=False)
    chain, draws, statistics = sampler.advance(chain, 4000, tuning=False)
    np.testing.assert_array_equal(first, draws[:20])  # a chain is a value: nothing was changed
    count = np.minimum(effective(draws), len(draws))
    truth = np.linalg.inv(precision)
    error = np.abs(draws.mean(0) - center) / np.sqrt(np.diag(truth) / count)
    assert (error < 4).all()
    np.testing.assert_allclose(np.cov(draws.T), truth, rtol=0.35, atol=0.05)
    assert set(statistics) == set(STATISTICS) and statistics["diverging"].sum() == 0
    assert 0.7 < statistics["mean_tree_accept"].mean() < 0.95
    assert (statistics["tree_size"] <= 2 ** statistics["depth"] - 1).all()
    assert (chain.step_size.log_average == same.step_size.log_average).all()


def test_simulation_based_calibration():
    """Ranks of parameters among draws of their posteriors are uniform (Talts et al., 2018).

    200 problems are sampled as one: their posteriors are independent.
    """
    rng, problems, data = np.random.default_rng(5), 200, 4
    mu, log_sigma = rng.normal(size=problems), 0.7 * rng.normal(size=problems)
    y = rng.normal(mu, np.exp(log_sigma), (data, problems))

    def logp(x):
        m, s = x[:problems], x[problems:]
        scaled = (y - m) * T.exp(-s)
        return -0.5 * (T.sum(m**2) + T.sum((s / 0.7) ** 2) + T.sum(scaled**2)) - data * T.sum(s)

    sampler = compile_sampler(with_gradient(logp), 2 * problems, most_depth=7)
    chain = sampler.begin(np.zeros(2 * problems), np.random.default_rng(6))
    chain, _, _ = sampler.advance(chain, 500, tuning=True)
    chain, draws, statistics = sampler.advance(chain, 1485, tuning=False)
    assert statistics["diverging"].sum() == 0
    truth = np.concatenate([mu, log_sigma])
    ranks = (draws[::15] < truth).sum(0)  # of 99 draws: 0 .. 99
    counts = np.bincount(ranks // 10, minlength=10)
    expected = len(truth) / 10
    # The chi-squared variable with 9 degrees of freedom exceeds 27.9 once in a thousand.
    assert ((counts - expected) ** 2 / expected).sum() < 27.9
