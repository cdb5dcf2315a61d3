"""sample_nuts: posteriors with known moments, and what it gives back."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import symcomp.pymc as sp  # noqa: E402
from symcomp.tests.pymc.models import MODELS  # noqa: E402

QUIET = {"progressbar": False, "compute_convergence_checks": False}
SHORT = {"draws": 40, "tune": 60, "chains": 2, "cores": 1, "random_seed": 1, **QUIET}


def sampled(**more):
    return sp.sample_nuts(1000, tune=700, chains=2, cores=2, random_seed=7, **QUIET, **more)


def near(draws, mean, deviation):
    """Check the mean to four of its standard errors, and the deviation to a seventh."""
    values = draws.values
    chains = values.reshape(2, 20, 50, -1).mean(2).reshape(40, -1)
    error = chains.std(0) / np.sqrt(40)
    assert (np.abs(values.mean((0, 1)).reshape(-1) - mean) < 4 * error + 1e-3 * deviation).all()
    np.testing.assert_allclose(values.std((0, 1)).reshape(-1), deviation, rtol=1 / 7)


def test_normal_mean():
    y = np.random.default_rng(1).normal(2.0, 3.0, 30)
    with pm.Model():
        pm.Normal("y", pm.Normal("mu", 0, 10), 3.0, observed=y)
        idata = sampled()
    variance = 1 / (30 / 9 + 1 / 100)
    near(idata.posterior["mu"], variance * y.sum() / 9, np.sqrt(variance))


def test_linear_regression():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 3)) @ np.array([[1.0, 0, 0], [0.9, 0.3, 0], [0, 0, 5.0]])
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=50)
    with pm.Model():
        pm.Normal("y", pm.math.dot(x, pm.Normal("b", 0, 2.0, shape=3)), 1.0, observed=y)
        idata = sampled()
    covariance = np.linalg.inv(x.T @ x + np.eye(3) / 4)
    near(idata.posterior["b"], covariance @ x.T @ y, np.sqrt(np.diag(covariance)))


def test_probability():
    """A probability, whose logit is sampled."""
    with pm.Model():
        pm.Binomial("y", 20, pm.Beta("p", 2, 3), observed=14)
        idata = sampled()
    a, b = 16, 9
    near(idata.posterior["p"], a / (a + b), np.sqrt(a * b / (a + b) ** 2 / (a + b + 1)))


def test_rates():
    """Positive numbers, whose logarithms are sampled."""
    y = np.array([[3, 0, 7], [5, 1, 9]])
    with pm.Model():
        pm.Poisson("y", pm.Gamma("rate", 2.0, 1.5, shape=3), observed=y)
        idata = sampled()
    shape = 2 + y.sum(0)
    near(idata.posterior["rate"], shape / 3.5, np.sqrt(shape) / 3.5)


def test_proportions():
    """On a simplex."""
    with pm.Model():
        pm.Multinomial("y", 30, pm.Dirichlet("p", np.ones(3)), observed=np.array([5, 15, 10]))
        idata = sampled()
    a = np.array([6.0, 16, 11])
    total = a.sum()
    near(idata.posterior["p"], a / total, np.sqrt(a * (total - a) / total**2 / (total + 1)))


def test_against_the_sampler_of_pymc():
    """Step sizes differ from chain to chain, and with them the lengths of trajectories."""
    given = {"tune": 700, "chains": 8, "random_seed": 7, "target_accept": 0.9, **QUIET}
    with MODELS["eight_schools"]():
        mine = sp.sample_nuts(600, cores=2, **given)
        other = pm.sample(
            600, cores=2, nuts_sampler="pymc", compile_kwargs={"mode": "SYMCOMP"}, **given
        )
    for title in ("mu", "tau", "theta"):
        a, b = (t.posterior[title].values for t in (mine, other))
        error = a.std((0, 1)) / np.sqrt(500)
        assert (np.abs(a.mean((0, 1)) - b.mean((0, 1))) < 5 * error).all()
    for title, least in (("n_steps", 0.3), ("acceptance_rate", 0.005)):
        a, b = (t.sample_stats[title].values.mean(1) for t in (mine, other))
        error = np.sqrt((a.var() + b.var()) / 7) + least
        assert abs(a.mean() - b.mean()) < 4 * error


def test_what_is_returned():
    with MODELS["eight_schools"]():
        idata = sp.sample_nuts(keep_warmup=True, **SHORT)
        again = sp.sample_nuts(keep_warmup=True, **SHORT)
        fewer = sp.sample_nuts(var_names=["theta"], init="adapt_diag_grad", **SHORT)
    assert idata.posterior["theta"].dims == ("chain", "draw", "school")
    assert idata.posterior["z"].shape == (2, 40, 8)
    assert idata.warmup_posterior["mu"].shape == (2, 60)
    assert set(idata.posterior.data_vars) == {"mu", "tau", "z", "theta"}
    assert {"diverging", "lp", "step_size", "tree_depth", "n_steps"} <= set(idata.sample_stats)
    np.testing.assert_array_equal(idata.observed_data["y"].values[:2], [28, 8])
    theta = idata.posterior["mu"] + idata.posterior["tau"] * idata.posterior["z"]
    np.testing.assert_allclose(theta, idata.posterior["theta"])
    np.testing.assert_array_equal(again.posterior["z"], idata.posterior["z"])
    assert list(fewer.posterior.data_vars) == ["theta"]
    assert not np.array_equal(idata.posterior["mu"][0], idata.posterior["mu"][1])


def test_threads_change_nothing():
    with MODELS["linear_regression"]():
        one = sp.sample_nuts(**SHORT)
        two = sp.sample_nuts(**(SHORT | {"cores": 2}))
    np.testing.assert_array_equal(one.posterior["b"], two.posterior["b"])


def test_wrong_arguments():
    with pm.Model():
        pm.Normal("x")
        pm.Poisson("count", 3.0)
        with pytest.raises(TypeError, match="count are discrete"):
            sp.sample_nuts(**SHORT)
    with pm.Model(), pytest.raises(ValueError, match="no free variables"):
        sp.sample_nuts(**SHORT)
    with pm.Model():
        pm.Normal("x")
        for name, value in (
            ("draws", 0),
            ("target_accept", 2.0),
            ("max_treedepth", 0),
            ("init", "advi"),
        ):
            with pytest.raises(ValueError, match=name):
                sp.sample_nuts(**(SHORT | {name: value}))


def test_starts():
    with pm.Model():
        x = pm.Uniform("x", 0, 1)
        pm.Potential("far", pm.math.switch(x > 0.9, 0.0, -np.inf))
        with pytest.raises(ValueError, match="-inf at the start"):
            sp.sample_nuts(**(SHORT | {"init": "adapt_diag_grad"}))
        idata = sp.sample_nuts(initvals={"x": 0.95}, **(SHORT | {"init": "adapt_diag_grad"}))
    assert (idata.posterior["x"].values > 0.9).all()


def test_progress_bar(capsys):
    with pm.Model():
        pm.Normal("x")
        sp.sample_nuts(**(SHORT | {"progressbar": True}))
    assert "chain 1" in capsys.readouterr().out
