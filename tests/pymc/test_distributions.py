"""PyMC's distributions: draws, densities, their gradients, and distribution functions.

Against PyTensor's own Python code, op by op.
"""

import warnings

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pymc.pytensorf import compile as compile_pymc  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.graph.rewriting.db import RewriteDatabaseQuery  # noqa: E402
from pytensor.tensor.random.op import RandomVariable  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pytensor_backend.compare import agree  # noqa: E402

PYTHON = Mode("py", RewriteDatabaseQuery(include=["minimum_compile"]))
A, S = np.array([0.4, 1.3, 2.2]), np.array([0.7, 1.1, 2.5])
P3 = np.array([0.2, 0.5, 0.3])
SPD = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])

#: name -> parameters of all distributions that have draws and a density.
DISTRIBUTIONS = {
    "Uniform": {"lower": -A, "upper": A},
    "Normal": {"mu": A, "sigma": S},
    "TruncatedNormal": {"mu": A, "sigma": S, "lower": 0.1, "upper": 3.0},
    "Beta": {"alpha": A, "beta": S},
    "Kumaraswamy": {"a": A, "b": S},
    "Exponential": {"lam": S},
    "Laplace": {"mu": A, "b": S},
    "StudentT": {"nu": S + 1, "mu": A},
    "Cauchy": {"alpha": A, "beta": S},
    "HalfCauchy": {"beta": S},
    "Gamma": {"alpha": A, "beta": S},
    "Weibull": {"alpha": A, "beta": S},
    "HalfStudentT": {"nu": S + 2, "sigma": S},
    "LogNormal": {"mu": A, "sigma": S},
    "ChiSquared": {"nu": S},
    "HalfNormal": {"sigma": S},
    "Wald": {"mu": S, "lam": A},
    "Pareto": {"alpha": S, "m": A},
    "InverseGamma": {"alpha": S, "beta": A},
    "ExGaussian": {"mu": A, "sigma": S, "nu": 1.5},
    "VonMises": {"mu": 0.3, "kappa": S},
    "SkewNormal": {"mu": A, "sigma": S, "alpha": 2.0},
    "Triangular": {"lower": -A, "upper": S, "c": 0.1},
    "Gumbel": {"mu": A, "beta": S},
    "Logistic": {"mu": A, "s": S},
    "LogitNormal": {"mu": A, "sigma": S},
    "Rice": {"nu": A, "sigma": S},
    "Moyal": {"mu": A, "sigma": S},
    "AsymmetricLaplace": {"kappa": S, "b": A, "mu": 0.2},
    "SkewStudentT": {"a": S + 1, "b": S, "mu": A, "sigma": 1.0},
    "Interpolated": {"x_points": np.linspace(0, 4, 9), "pdf_points": np.exp(-np.linspace(0, 4, 9))},
    "Binomial": {"n": 9, "p": P3},
    "BetaBinomial": {"n": 9, "alpha": A, "beta": S},
    "Bernoulli": {"p": P3},
    "Poisson": {"mu": S},
    "NegativeBinomial": {"mu": S, "alpha": A},
    "ZeroInflatedPoisson": {"psi": P3, "mu": S},
    "ZeroInflatedBinomial": {"psi": P3, "n": 9, "p": 0.4},
    "ZeroInflatedNegativeBinomial": {"psi": P3, "mu": S, "alpha": A},
    "HurdlePoisson": {"psi": P3, "mu": S},
    "HurdleGamma": {"psi": P3, "alpha": A, "beta": S},
    "HurdleLogNormal": {"psi": P3, "mu": A, "sigma": S},
    "DiscreteUniform": {"lower": -3, "upper": 7},
    "Geometric": {"p": P3},
    "HyperGeometric": {"N": 20, "k": 9, "n": 7},
    "Categorical": {"p": P3},
    "OrderedLogistic": {"eta": A, "cutpoints": np.array([-1.0, 0.5])},
    "OrderedProbit": {"eta": A, "cutpoints": np.array([-1.0, 0.5])},
    "DiscreteWeibull": {"q": P3, "beta": S},
    "DiracDelta": {"c": A},
    "Dirichlet": {"a": S},
    "Multinomial": {"n": 9, "p": P3},
    "DirichletMultinomial": {"n": 9, "a": S},
    "MvNormal": {"mu": A, "cov": SPD},
    "MvStudentT": {"nu": 5.0, "mu": A, "scale": SPD},
    "ZeroSumNormal": {"sigma": 1.2, "shape": (4,)},
    "Wishart": {"nu": 6, "V": SPD},
    "LKJCorr": {"n": 3, "eta": 2.0},
    "MatrixNormal": {"mu": SPD, "rowcov": SPD, "colcov": SPD},
    "StickBreakingWeights": {"alpha": 1.5, "K": 4},
    "GaussianRandomWalk": {"mu": 0.1, "sigma": 0.8, "init_dist": "normal", "steps": 5},
    "AR": {"rho": np.array([0.3, 0.2]), "sigma": 0.8, "init_dist": "normal", "steps": 5},
    "GARCH11": {"omega": 0.5, "alpha_1": 0.2, "beta_1": 0.3, "initial_vol": 1.0, "steps": 5},
    "NormalMixture": {"w": P3, "mu": A, "sigma": S},
}

DRAWN_BY_PYMC = {
    "InterpolatedRV", "MatrixNormalRV", "SkewStudentTRV", "StickBreakingWeightsRV",
}  # fmt: skip


def made(name, parameters):
    """Return the variable of a distribution."""
    given = dict(parameters)
    if given.get("init_dist") == "normal":
        given["init_dist"] = pm.Normal.dist(0.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "LKJCorr":
            return pm.LKJCorr.dist(**given)
        return getattr(pm, name).dist(**given)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name):
    variable = made(name, DISTRIBUTIONS[name])
    draws = [pm.draw(variable, draws=3, random_seed=5, mode=mode) for mode in ("SYMCOMP", PYTHON)]
    if isinstance(variable.owner.op, RandomVariable):
        np.testing.assert_array_equal(*draws)
    else:  # a graph, whose functions round as symcomp's do
        agree(draws[0], draws[1], 1e-12, 1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawing = compile_pymc([], variable, mode="SYMCOMP")
    assert {*backend.fallbacks(drawing)} <= DRAWN_BY_PYMC
    value = draws[1][0]
    point = variable.type("value")
    functions, wanted = {}, {}
    for title in ("logp", "logcdf", "icdf"):
        try:
            if title == "icdf":
                u = pt.as_tensor(np.full(value.shape, 0.3))
                functions[title] = pm.icdf(variable, u)
            else:
                functions[title] = getattr(pm, title)(variable, point)
        except (NotImplementedError, ValueError, TypeError):  # there is none, or of numbers alone
            continue
    assert "logp" in functions
    outputs = list(functions.values())
    if variable.dtype.startswith("float"):
        outputs.append(pytensor.grad(functions["logp"].sum(), point, disconnected_inputs="ignore"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = pytensor.function([point], outputs, mode=PYTHON, on_unused_input="ignore")(value)
        f = pytensor.function([point], outputs, mode="SYMCOMP", on_unused_input="ignore")
    for got, want in zip(f(value), wanted, strict=True):
        agree(got, want, 1e-8, 1e-10)
    assert {*backend.fallbacks(f)} <= {"Elemwise[SplineWrapper]", "SplineWrapper"}
