"""Models of PyMC's documentation, small: name -> a function that builds one."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt


def numbers():
    return np.random.default_rng(0)


def linear_regression():
    rng = numbers()
    x = rng.normal(size=(200, 5))
    y = x @ np.arange(5.0) + rng.normal(size=200)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 10), pm.Normal("b", 0, 2.5, shape=5)
        s = pm.HalfNormal("s", 1)
        pm.Normal("y", a + x @ b, s, observed=y)
    return model


def eight_schools():
    y, se = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, se, observed=y, dims="school")
    return model


def radon():
    rng = numbers()
    n, groups = 900, 85
    index, floor = rng.integers(0, groups, n), rng.integers(0, 2, n).astype(float)
    y = rng.normal(size=n)
    with pm.Model() as model:
        mean_a, sd_a = pm.Normal("mu_a", 0, 10), pm.HalfCauchy("sigma_a", 5)
        mean_b, sd_b = pm.Normal("mu_b", 0, 10), pm.HalfCauchy("sigma_b", 5)
        a = pm.Normal("a", mean_a, sd_a, shape=groups)
        b = pm.Normal("b", mean_b, sd_b, shape=groups)
        pm.Normal("y", a[index] + b[index] * floor, pm.HalfCauchy("eps", 5), observed=y)
    return model


def logistic():
    rng = numbers()
    x, y = rng.normal(size=(500, 10)), rng.integers(0, 2, 500)
    with pm.Model() as model:
        b = pm.StudentT("b", nu=3, mu=0, sigma=1, shape=10)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.math.dot(x, b), observed=y)
    return model


def gaussian_process():
    x = np.linspace(0, 10, 50)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * numbers().normal(size=50)
    with pm.Model() as model:
        length, eta = pm.Gamma("l", 2, 1), pm.HalfNormal("eta", 2)
        gp = pm.gp.Marginal(cov_func=eta**2 * pm.gp.cov.Matern52(1, length))
        gp.marginal_likelihood("y", X=x, y=y, sigma=pm.HalfNormal("s", 1))
    return model


def autoregression():
    y = numbers().normal(size=200).cumsum() * 0.1
    with pm.Model() as model:
        rho, s = pm.Normal("rho", 0, 0.5, shape=3), pm.HalfNormal("s", 1)
        pm.AR("y", rho, sigma=s, constant=True, init_dist=pm.Normal.dist(0, 1), observed=y)
    return model


def kalman_filter():
    """Local level and slope, by a scan."""
    y = numbers().normal(size=100).cumsum()
    move, seen = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    with pm.Model() as model:
        q, h = pm.HalfNormal("q", 1, shape=2), pm.HalfNormal("h", 1)

        def step(now, a, p, total, q, h):
            error, variance = now - a[0], p[0, 0] + h**2
            gain = (move @ p @ seen) / variance
            new = move @ p @ move.T - pt.outer(gain, gain) * variance + pt.diag(q**2)
            logp = pt.log(2 * np.pi * variance) + error**2 / variance
            return move @ a + gain * error, new, total - 0.5 * logp

        out = pytensor.scan(
            step, sequences=[pt.as_tensor(y)],
            outputs_info=[pt.zeros(2), pt.eye(2) * 10.0, pt.as_tensor(np.zeros(()))],
            non_sequences=[q, h], return_updates=False,
        )  # fmt: skip
        pm.Potential("ll", out[-1][-1])
    return model


def ordinal():
    rng = numbers()
    y, x = rng.integers(0, 5, 200), rng.normal(size=200)
    with pm.Model() as model:
        cuts = pm.Normal(
            "c", np.arange(4.0) - 1.5, 1, transform=pm.distributions.transforms.ordered,
            initval=np.arange(4.0),
        )  # fmt: skip
        pm.OrderedLogistic("y", eta=pm.Normal("b") * x, cutpoints=cuts, observed=y)
    return model


def correlated_normals():
    y = numbers().normal(size=(100, 3))
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=2, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("y", pm.Normal("mu", 0, 1, shape=3), chol=chol, observed=y)
    return model


def dirichlet_multinomial():
    y = numbers().multinomial(20, [0.2, 0.3, 0.5], size=30)
    with pm.Model() as model:
        pm.Multinomial("y", n=20, p=pm.Dirichlet("p", np.ones(3)), observed=y)
        pm.DirichletMultinomial("y2", n=20, a=pm.Exponential("a", 1, shape=3), observed=y)
    return model


def mixture():
    rng = numbers()
    y = np.concatenate([rng.normal(-2, 0.5, 100), rng.normal(1, 1, 150)])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=3, transform=pm.distributions.transforms.ordered,
                       initval=np.array([-1.0, 0.0, 1.0]))  # fmt: skip
        sigma = pm.HalfNormal("sigma", 1, shape=3)
        pm.NormalMixture("y", w=pm.Dirichlet("w", np.ones(3)), mu=mu, sigma=sigma, observed=y)
    return model


def censored_and_truncated():
    rng = numbers()
    y = np.clip(rng.normal(1, 1, 80), -0.5, 2.0)
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Censored("y", pm.Normal.dist(mu, sigma), lower=-0.5, upper=2.0, observed=y)
        pm.Truncated(
            "z", pm.Gamma.dist(mu**2 + 1, 1.0), lower=0.5, observed=rng.gamma(2, 1, 40) + 0.5
        )
    return model


def counts():
    rng = numbers()
    y = rng.poisson(3, 120) * (rng.random(120) < 0.7)
    with pm.Model() as model:
        psi, mu = pm.Beta("psi", 2, 2), pm.Gamma("mu", 2, 1)
        pm.ZeroInflatedNegativeBinomial(
            "y", psi=psi, mu=mu, alpha=pm.Exponential("alpha", 1), observed=y
        )
    return model


def splines():
    x = np.linspace(0, 1, 60)
    basis = np.stack([np.exp(-((x - c) ** 2) * 40) for c in np.linspace(0, 1, 7)], axis=1)
    y = np.sin(x * 6) + 0.1 * numbers().normal(size=60)
    with pm.Model() as model:
        w = pm.GaussianRandomWalk(
            "w", sigma=pm.HalfNormal("tau"), init_dist=pm.Normal.dist(), steps=6
        )
        pm.StudentT("y", nu=4, mu=pm.math.dot(basis, w), sigma=pm.HalfNormal("s"), observed=y)
    return model


def volatility():
    y = numbers().normal(size=80) * 0.1
    with pm.Model() as model:
        step = pm.Exponential("step", 10)
        walk = pm.GaussianRandomWalk("v", sigma=step, init_dist=pm.Normal.dist(0, 10), steps=79)
        pm.StudentT("r", nu=pm.Exponential("nu", 0.1), lam=np.exp(-2 * walk), observed=y)
    return model


MODELS = {
    f.__name__: f
    for f in (
        linear_regression, eight_schools, radon, logistic, gaussian_process, autoregression,
        kalman_filter, ordinal, correlated_normals, dirichlet_multinomial, mixture,
        censored_and_truncated, counts, splines, volatility,
    )
}  # fmt: skip
