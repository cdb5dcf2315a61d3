"""Models of PyMC in mode SYMCOMP: densities, draws, sampling, variational fits."""

import ctypes
import multiprocessing
import warnings

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402
from pytensor.graph.rewriting.db import RewriteDatabaseQuery  # noqa: E402

import symcomp.pymc as sp  # noqa: E402
import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pymc.models import MODELS  # noqa: E402

PYTHON = Mode("py", RewriteDatabaseQuery(include=["minimum_compile"]))
SYMCOMP = {"compile_kwargs": {"mode": "SYMCOMP"}}
QUIET = {"progressbar": False, "compute_convergence_checks": False}


def vectors(model, count=3):
    """Return the arguments of density and gradient: the start, and points around."""
    start = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
    rng = np.random.default_rng(1)
    return [start + 0.3 * k * rng.normal(size=start.shape) for k in range(count)]


@pytest.mark.parametrize("name", MODELS)
def test_densities(name):
    model = MODELS[name]()
    f, g = (model.logp_dlogp_function(ravel_inputs=True, mode=mode) for mode in ("SYMCOMP", PYTHON))
    for h in (f, g):
        h.set_extra_values({})
    assert backend.fallbacks(f._pytensor_function) == {}
    for x in vectors(model):
        for got, want in zip(f._pytensor_function(x), g._pytensor_function(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["eight_schools", "radon", "correlated_normals", "counts"])
def test_prior_draws(name):
    with MODELS[name](), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            pm.sample_prior_predictive(20, random_seed=4, compile_kwargs={"mode": mode})
            for mode in ("SYMCOMP", PYTHON)
        ]
    for group in ("prior", "prior_predictive"):
        for title, values in found[1][group].data_vars.items():
            # Draws are the same to the last bit; values computed from them need not be.
            np.testing.assert_allclose(found[0][group][title].values, values.values, rtol=1e-10)


def test_second_derivatives():
    model = MODELS["ordinal"]()
    point = model.initial_point()
    got, want = (model.compile_d2logp(mode=mode)(point) for mode in ("SYMCOMP", PYTHON))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_sampling_and_what_follows():
    with MODELS["eight_schools"]() as model:
        idata = pm.sample(
            100, tune=150, chains=2, cores=1, random_seed=1, nuts_sampler="pymc", **QUIET, **SYMCOMP
        )
        other = pm.sample(
            100, tune=150, chains=2, cores=1, random_seed=1, nuts_sampler="pymc", **QUIET,
            compile_kwargs={"mode": "FAST_COMPILE"},
        )  # fmt: skip
        # The same draws, as long as densities agree to the last bits: the first ones.
        first = [t.posterior["mu"].values[:, 0] for t in (idata, other)]
        assert np.isfinite(first).all()
        predictive = pm.sample_posterior_predictive(
            idata, random_seed=2, progressbar=False, compile_kwargs={"mode": "SYMCOMP"}
        )
        assert predictive.posterior_predictive["y"].shape == (2, 100, 8)
        pm.compute_log_likelihood(idata, progressbar=False, **SYMCOMP)
        assert np.isfinite(idata.log_likelihood["y"].values).all()
        best = pm.find_MAP(progressbar=False, compile_kwargs={"mode": "SYMCOMP"})
        wanted = pm.find_MAP(progressbar=False, compile_kwargs={"mode": "FAST_COMPILE"})
        np.testing.assert_allclose(best["mu"], wanted["mu"], rtol=1e-3, atol=1e-3)
    intervened = pm.do(model, {"tau": 1.0})
    with pm.observe(intervened, {"mu": 3.0}):
        conditioned = pm.sample(
            50, tune=50, chains=1, random_seed=1, nuts_sampler="pymc", **QUIET, **SYMCOMP
        )
    assert "z" in conditioned.posterior


def test_variational_inference():
    with MODELS["linear_regression"](), sp.model.in_symcomp():
        optimizer = pm.adam(learning_rate=0.05)
        fitted = pm.fit(2000, random_seed=1, progressbar=False, obj_optimizer=optimizer)
        draws = fitted.sample(500, random_seed=2)
    np.testing.assert_allclose(
        draws.posterior["b"].mean(("chain", "draw")), np.arange(5.0), atol=0.3
    )


def test_minibatches():
    x = np.random.default_rng(0).normal(3.0, 1.0, 400)
    with pm.Model(), sp.model.in_symcomp():
        batch = pm.Minibatch(x, batch_size=50)
        mu = pm.Normal("mu", 0, 10)
        pm.Normal("y", mu, 1.0, observed=batch, total_size=len(x))
        optimizer = pm.adam(learning_rate=0.05)
        fitted = pm.fit(2000, random_seed=1, progressbar=False, obj_optimizer=optimizer)
        draws = fitted.sample(200, random_seed=2)
    assert abs(float(draws.posterior["mu"].mean()) - x.mean()) < 0.3
    f = pytensor.function([], batch, mode="SYMCOMP")
    assert f().shape == (50,)
    assert backend.fallbacks(f) == {}


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes(context):
    with MODELS["linear_regression"]():
        idata = pm.sample(
            60, tune=60, chains=2, cores=2, random_seed=1, nuts_sampler="pymc",
            mp_ctx=multiprocessing.get_context(context), **QUIET, **SYMCOMP,
        )  # fmt: skip
    assert idata.posterior["b"].shape == (2, 60, 5)


class Quadratic(Op):
    """A user's op with a gradient: -sum(x^2) / 2."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(-0.5 * np.sum(inputs[0] ** 2))

    def pullback(self, inputs, outputs, gradients):
        return [-inputs[0] * gradients[0]]


def test_ops_of_users_fall_back():
    with pm.Model() as model:
        x = pm.Flat("x", shape=3)
        pm.Potential("density", Quadratic()(x))
        f = model.logp_dlogp_function(ravel_inputs=True, mode="SYMCOMP")
        f.set_extra_values({})
        assert backend.fallbacks(f._pytensor_function) == {"Quadratic": 1}
        idata = sp.sample_nuts(300, tune=300, chains=2, cores=1, random_seed=1, **QUIET)
    assert abs(float(idata.posterior["x"].std()) - 1) < 0.15


def test_differential_equations_fall_back():
    def slope(y, t, p):
        return [-p[0] * y[0]]

    ode = pm.ode.DifferentialEquation(slope, times=np.arange(1.0, 5.0), n_states=1, n_theta=1)
    y = np.exp(-0.5 * np.arange(1.0, 5.0))[:, None]
    with pm.Model() as model:
        rate = pm.HalfNormal("rate", 1)
        pm.Normal("y", ode(y0=[1.0], theta=[rate]), 0.1, observed=y)
    f, g = (model.compile_logp(mode=mode) for mode in ("SYMCOMP", PYTHON))
    point = model.initial_point()
    np.testing.assert_allclose(f(point), g(point), rtol=1e-9)


def test_data_that_is_set():
    with pm.Model() as model:
        x = pm.Data("x", np.arange(3.0))
        b = pm.Normal("b")
        pm.Normal("y", b * x, 1.0, observed=np.arange(3.0), shape=x.shape)
        f = model.compile_logp(mode="SYMCOMP")
        before = f({"b": 3.0})
        pm.set_data({"x": np.zeros(3)})
        assert f({"b": 3.0}) != before


def test_nutpie():
    """Nutpie calls the density by its address: the model's variables, dims and posterior."""
    nutpie = pytest.importorskip("nutpie")
    from symcomp.pymc.nutpie import compile_model

    with MODELS["eight_schools"]():
        compiled = compile_model()
        mine = sp.sample_nuts(1000, tune=700, chains=2, cores=1, random_seed=1, **QUIET)
    assert compiled.density.density_address and compiled.expand.map_address
    trace = nutpie.sample(
        compiled, draws=1000, tune=700, chains=2, cores=2, seed=1, progress_bar=False
    )
    assert trace.posterior["theta"].dims == ("chain", "draw", "school")
    theta = trace.posterior["mu"] + trace.posterior["tau"] * trace.posterior["z"]
    np.testing.assert_allclose(theta, trace.posterior["theta"])
    for title in ("mu", "theta"):
        a, b = (t.posterior[title].values for t in (mine, trace))
        assert (np.abs(a.mean((0, 1)) - b.mean((0, 1))) < 5 * a.std((0, 1)) / np.sqrt(300)).all()


def test_nutpie_and_failures():
    nutpie = pytest.importorskip("nutpie")
    from symcomp.pymc.nutpie import compile_model

    with pm.Model():
        x = pm.Flat("x", shape=3)
        pm.Potential("density", Quadratic()(x))
        compiled = compile_model(var_names=[])
        trace = nutpie.sample(compiled, draws=50, tune=50, chains=1, seed=1, progress_bar=False)
    assert list(trace.posterior.data_vars) == ["x"]
    with pm.Model():
        x = pm.Flat("x")
        pm.Potential("density", Failing()(x))
        compiled = compile_model()
    # Nutpie panics where a density fails for good; that is no Exception of Python.
    with pytest.raises(BaseException, match="sampler"):
        nutpie.sample(compiled, draws=50, tune=50, chains=1, seed=1, progress_bar=False)
    assert isinstance(compiled.density.error, ArithmeticError)


class Failing(Op):
    """-x^2 / 2, which fails after some calls."""

    __props__ = ()
    calls = 0

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        Failing.calls += 1
        if Failing.calls > 20:
            raise ArithmeticError("too many calls")
        outputs[0][0] = np.asarray(-0.5 * inputs[0] ** 2)

    def pullback(self, inputs, outputs, gradients):
        return [-inputs[0] * gradients[0]]


def test_densities_in_numba():
    """A caller that is compiled by numba, with arguments as addresses."""
    numba = pytest.importorskip("numba")
    model = MODELS["linear_regression"]()
    f = model.logp_dlogp_function(ravel_inputs=True, mode="SYMCOMP")
    f.set_extra_values({})
    start, other = vectors(model, 2)
    c = backend.cfunc(f._pytensor_function, start)
    kinds = [ctypes.c_uint64, *[ctypes.c_size_t] * 3, ctypes.c_size_t]
    density = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(c.density_address)
    data, size = c.data, len(start)

    @numba.njit
    def climb(x, step, count):
        value, slope = np.empty(1), np.empty(size)
        for _ in range(count):
            if density(size, x.ctypes.data, slope.ctypes.data, value.ctypes.data, data) != 0:
                return np.nan
            x += step * slope
        return value[0]

    x = other.copy()
    found = climb(x, 1e-4, 20)
    want, y = np.nan, other.copy()
    for _ in range(20):
        want, slope = f._pytensor_function(y)
        y = y + 1e-4 * slope
    np.testing.assert_allclose(found, want, rtol=1e-10)
    np.testing.assert_allclose(x, y, rtol=1e-10)
