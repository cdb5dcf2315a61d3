"""Gradients of draws: every parameter of every distribution has one, or says that it has none."""

import inspect
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.random_streams import DISTRIBUTIONS
from symcomp.errors import NullTypeGradError
from symcomp.gradient import disconnected_grad, jacobian
from symcomp.sandbox.rng_mrg import MRG_RandomStreams
from symcomp.tensor.shared_randomstreams import RandomStreams

P = [0.2, 0.5, 0.3]
COV = [[2.0, 0.5], [0.5, 1.0]]

# Values of the parameters; those with a derivative have a plus sign. Draws of those with a star are
# a smooth function of it at a fixed state, so that finite differences show the derivative.
CASES: dict[str, dict[str, Any]] = {
    "beta": {"+a": 0.7, "+b": 2.0},
    "chisquare": {"+df": 3.0},
    "exponential": {"*scale": 2.0},
    "f": {"+dfnum": 3.0, "+dfden": 8.0},
    "gamma": {"+shape": 3.5, "*scale": 2.0},
    "gumbel": {"*loc": 1.0, "*scale": 2.0},
    "laplace": {"*loc": 1.0, "*scale": 2.0},
    "logistic": {"*loc": 1.0, "*scale": 2.0},
    "lognormal": {"*mean": 0.5, "*sigma": 0.7},
    "noncentral_chisquare": {"df": 3.0, "nonc": 2.0},
    "noncentral_f": {"dfnum": 3.0, "dfden": 9.0, "nonc": 2.0},
    "normal": {"*loc": 1.0, "*scale": 2.0},
    "pareto": {"*a": 2.5},
    "power": {"*a": 2.5},
    "rayleigh": {"*scale": 1.5},
    "standard_cauchy": {},
    "standard_exponential": {},
    "standard_gamma": {"+shape": 1.7},
    "standard_normal": {},
    "standard_t": {"+df": 4.0},
    "standard_uniform": {},
    "triangular": {"*left": -1.0, "*mode": 0.5, "*right": 3.0},
    "truncated_normal": {"*loc": 1.0, "*scale": 2.0, "*low": -1.0, "*high": 2.5},
    "uniform": {"*low": -1.0, "*high": 3.0},
    "vonmises": {"mu": 0.3, "kappa": 2.0},
    "wald": {"mean": 1.5, "scale": 2.0},
    "weibull": {"*a": 1.7},
    "bernoulli": {"p": 0.3},
    "binomial": {"n": 5, "p": 0.3},
    "categorical": {"p": P},
    "geometric": {"p": 0.3},
    "hypergeometric": {"ngood": 10, "nbad": 7, "nsample": 6},
    "integers": {"low": -3, "high": 12},
    "logseries": {"p": 0.6},
    "multinomial": {"n": 9, "pvals": P},
    "negative_binomial": {"n": 4.0, "p": 0.4},
    "poisson": {"lam": 3.5},
    "zipf": {"a": 2.5},
    "choice": {"*a": [1.0, 2.0, 4.0], "p": P},
    "dirichlet": {"+alpha": [1.0, 2.0, 3.0]},
    "multivariate_normal": {"*mean": [1.0, 2.0], "*cov": COV},
    "permutation": {"*x": [1.0, 2.0, 4.0]},
    "shuffle_row_elements": {"*x": [1.0, 2.0, 4.0]},
}
ARGUMENTS = {"state", "size", "dtype", "ndim", "endpoint", "replace"}


def variables_of(case: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables for the parameters, and their values."""
    values = {name.strip("+*"): value for name, value in CASES[case].items()}
    inputs = {n: T.as_tensor_variable(np.asarray(v)).type(n) for n, v in values.items()}
    return inputs, values


def test_every_parameter_has_a_case() -> None:
    for name, function in DISTRIBUTIONS.items():
        parameters = set(inspect.signature(function).parameters) - ARGUMENTS
        assert parameters == {p.strip("+*") for p in CASES[name]}, name
    assert set(CASES) == set(DISTRIBUTIONS)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_in_parameters(case: str) -> None:
    """A draw as a real number, added to the parameter: no gradient without that of the draw."""
    state = T.random.state("state")
    inputs, values = variables_of(case)
    _, z = DISTRIBUTIONS[case](state, **inputs)
    z = T.cast(z, "float64")
    smooth = [n.strip("+*") for n in CASES[case] if n[0] in "+*"]
    for name, x in inputs.items():
        cost = z.sum() + T.cast(x, "float64").sum()
        if name in smooth:
            continue
        with pytest.raises(NullTypeGradError, match="no smooth function"):
            symcomp.grad(cost, x)
        with pytest.raises(ValueError, match="no smooth function"):
            symcomp.Rop(cost, x, T.ones_like(x, "float64"))
        null = symcomp.grad(cost, x, null_gradients="return")
        assert isinstance(null.type, symcomp.gradient.NullType)
        stopped = z * 0 + disconnected_grad(z)
        zero = symcomp.grad(stopped.sum() + 0 * cost, x, consider_constant=[z])
        assert zero.ndim == x.ndim
    if not smooth:
        return
    targets = [inputs[n] for n in smooth]
    weights = T.constant(np.linspace(1.0, 2.0, 3))
    outputs = symcomp.grad((z.flatten() * weights[: z.size]).sum(), targets)
    f = symcomp.function([state, *inputs.values()], outputs, on_unused_input="ignore")
    at = {n: np.asarray(v, "float64") for n, v in values.items()}
    slopes = f(np.random.default_rng(3), *at.values())
    assert all(np.isfinite(s).all() for s in slopes) and any(np.any(s != 0) for s in slopes)
    value = symcomp.function([state, *inputs.values()], z.flatten(), on_unused_input="ignore")
    for n, slope in zip(smooth, slopes, strict=True):
        if f"*{n}" in CASES[case]:
            np.testing.assert_allclose(slope, differences(value, at, n), rtol=1e-5, atol=1e-8)


def differences(value: Any, at: dict[str, Any], name: str) -> Any:
    """Return the gradient of the weighted draws by central differences, at one state."""
    found = np.zeros(at[name].shape)
    for place in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = at[name].copy()
            moved[place] += step
            z = value(np.random.default_rng(3), *(at | {name: moved}).values())
            ends.append((z * np.linspace(1.0, 2.0, 3)[: z.size]).sum())
        found[place] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.parametrize("kind", [RandomStreams, MRG_RandomStreams])
def test_streams_of_theano(kind: Any) -> None:
    s, x, p = kind(1), T.dscalar("x"), T.dvector("p")
    smooth = [s.uniform((2,), low=x), s.uniform((2,), 0, x), s.normal((), x), s.normal((), 0, x)]
    for z in smooth:
        assert symcomp.grad((x + z).sum(), x).ndim == 0
    rough = [
        s.binomial((2,), p=x), s.binomial((), 4, x), s.poisson(lam=x),
        s.random_integers((), x, 9.0), s.random_integers((), 0, x),
        s.multinomial(pvals=p), s.multinomial(n=4, pvals=p), s.multinomial(pvals=[x, 1 - x]),
        s.choice((2,), 3, True, p), s.choice((2,), 3, False, p), s.choice((2,), p, True, p),
    ]  # fmt: skip
    if kind is MRG_RandomStreams:
        rough += [s.choice(2, p=p), s.choice(1, replace=False, p=p)[0],
                  s.multinomial_wo_replacement(n=1, pvals=p)]  # fmt: skip
        assert symcomp.grad(s.truncated_normal((), x), x).ndim == 0
    for z in rough:
        for cost in (z.sum(), (x + p.sum() + z * 1.0).sum()):
            with pytest.raises(NullTypeGradError):
                symcomp.grad(cost, [x, p], disconnected_inputs="ignore")
    # Only derivatives through the draw are undefined; other gradients exist.
    w = T.dvector("w")
    mask = s.binomial(size=w.shape, p=p, dtype="float64")
    assert symcomp.grad((w * mask).sum(), w) is not None
    with pytest.raises(NullTypeGradError):
        jacobian(w * mask, p)


def test_integers_between_do_not_hide_what_is_undefined() -> None:
    x = T.dvector("x")
    stream = T.random.RandomStream(1)
    for z in (
        stream.bernoulli(p=x) + 1,
        T.switch(stream.bernoulli(p=x), 2.0, 3.0),
        T.argmax(stream.poisson(lam=x)) * 1.0,
        T.lt(stream.vonmises(x, 1.0), 0.0) * 1.0,
        stream.poisson(lam=T.cast(T.cast(x, "int64"), "float64")),
    ):
        with pytest.raises(NullTypeGradError):
            symcomp.grad((x + T.sum(z)).sum(), x)
        with pytest.raises(NullTypeGradError):
            symcomp.Rop((x + T.sum(z)).sum(), x, x)
    # Positions and lengths are no way of a derivative.
    chosen = x[stream.categorical(T.nnet.softmax(x))] + T.zeros(stream.poisson(3.0)).sum()
    assert np.sum(symcomp.function([x], symcomp.grad(chosen, x))([1.0, 2.0])) == 1
