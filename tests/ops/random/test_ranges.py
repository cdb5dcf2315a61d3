"""Constants that are no parameters of a distribution are refused when the graph is built."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.random_streams import DISTRIBUTIONS
from symcomp.errors import ShapeError
from symcomp.ops.random.ranges import RANGES
from symcomp.sandbox.rng_mrg import MRG_RandomStreams
from symcomp.tensor.shared_randomstreams import RandomStreams

NAN = float("nan")

# Arguments that fit, and for each parameter values that do not fit beside them.
CASES: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "beta": ({"a": 0.5, "b": 2.0}, {"a": [0, -1, NAN], "b": [0.0, -2]}),
    "chisquare": ({"df": 3.0}, {"df": [0, -1.0]}),
    "dirichlet": ({"alpha": [1.0, 2.0]}, {"alpha": [[1.0, 0.0], [-1.0, 2.0]]}),
    "exponential": ({"scale": 0.0}, {"scale": [-1, NAN]}),
    "f": ({"dfnum": 2.0, "dfden": 3.0}, {"dfnum": [0], "dfden": [0, -1]}),
    "gamma": ({"shape": 0.0, "scale": 1.0}, {"shape": [-1], "scale": [-1e-9]}),
    "gumbel": ({"loc": -1.0, "scale": 1.0}, {"scale": [-1]}),
    "laplace": ({"loc": -1.0, "scale": 1.0}, {"scale": [-1]}),
    "logistic": ({"loc": -1.0, "scale": 1.0}, {"scale": [-1]}),
    "lognormal": ({"mean": -1.0, "sigma": 1.0}, {"sigma": [-1]}),
    "multivariate_normal": (
        {"mean": [0.0, 1.0], "cov": [[2.0, 0.5], [0.5, 1.0]]},
        {"cov": [[[1.0, 2.0], [2.0, 1.0]], [[2.0, 0.5], [0.0, 1.0]], [[NAN, 0], [0, 1]]]},
    ),
    "noncentral_chisquare": ({"df": 1.0, "nonc": 0.0}, {"df": [0], "nonc": [-1]}),
    "noncentral_f": (
        {"dfnum": 1.0, "dfden": 1.0, "nonc": 0.0}, {"dfnum": [0], "dfden": [0], "nonc": [-1]},
    ),
    "normal": ({"loc": -1.0, "scale": 0.0}, {"scale": [-1, np.array([1.0, -2.0]), NAN]}),
    "pareto": ({"a": 0.5}, {"a": [0, -1]}),
    "power": ({"a": 0.5}, {"a": [0, -1]}),
    "rayleigh": ({"scale": 0.0}, {"scale": [-1]}),
    "standard_gamma": ({"shape": 0.0}, {"shape": [-0.5]}),
    "standard_t": ({"df": 1.0}, {"df": [0]}),
    "triangular": (
        {"left": 0.0, "mode": 0.5, "right": 1.0}, {"left": [0.6], "mode": [-1, 2], "right": [0.4]},
    ),
    "truncated_normal": (
        {"loc": 0.0, "scale": 1.0, "low": -1.0, "high": 1.0},
        {"scale": [-1], "low": [2.0], "high": [-2]},
    ),
    "uniform": (
        {"low": -1.0, "high": -1.0}, {"low": [0, -np.inf, NAN], "high": [-1.5, np.inf]},
    ),
    "vonmises": ({"mu": -1.0, "kappa": 0.0}, {"kappa": [-1]}),
    "wald": ({"mean": 1.0, "scale": 1.0}, {"mean": [0], "scale": [0, -1]}),
    "weibull": ({"a": 0.5}, {"a": [0, -1]}),
    "bernoulli": ({"p": 1.0}, {"p": [-0.1, 1.1, NAN, np.array([0.5, 2.0])]}),
    "binomial": ({"n": 0, "p": 0.0}, {"n": [-1], "p": [1.5, -0.5]}),
    "categorical": ({"p": [0.5, 0.5]}, {"p": [[0.5, 0.6], [-0.5, 1.5], [[0.5, 0.5], [0.4, 0.4]]]}),
    "choice": (
        {"a": 2, "p": [0.5, 0.5]}, {"a": [0, -1], "p": [[0.2, 0.2], [0.5, 0.4, 0.1]]},
    ),
    "geometric": ({"p": 1.0}, {"p": [0, 1.1]}),
    "hypergeometric": (
        {"ngood": 3, "nbad": 2, "nsample": 5},
        {"ngood": [-1, 2, 10**9], "nbad": [-1, 1, 10**9], "nsample": [-1, 6]},
    ),
    "integers": ({"low": 2, "high": 3}, {"low": [3, 5], "high": [2, -1]}),
    "logseries": ({"p": 0.0}, {"p": [1.0, -0.1]}),
    "multinomial": ({"n": 0, "pvals": [0.5, 0.5]}, {"n": [-1], "pvals": [[0.5, 0.4]]}),
    "negative_binomial": ({"n": 0.5, "p": 1.0}, {"n": [0, -1], "p": [0, 1.5]}),
    "permutation": ({"x": 0}, {"x": [-1]}),
    "poisson": ({"lam": 0.0}, {"lam": [-1, NAN, 1e19]}),
    "zipf": ({"a": 1.5}, {"a": [1, 0.5]}),
}  # fmt: skip
WITHOUT = {"shuffle_row_elements", "standard_cauchy", "standard_exponential", "standard_normal",
           "standard_uniform"}  # fmt: skip


def test_every_distribution_has_a_case() -> None:
    assert set(CASES) | WITHOUT == set(DISTRIBUTIONS)
    assert set(RANGES) - {"distinct", "integers with endpoint"} == set(CASES)
    for name, (fits, _) in CASES.items():
        for rule in RANGES[name]:
            assert set(rule.names) <= set(fits), name


@pytest.mark.parametrize("name", CASES)
def test_constants_out_of_range(name: str) -> None:
    state, (fits, wrong) = T.random.state(), CASES[name]
    _, z = DISTRIBUTIONS[name](state, **fits)
    symcomp.function([state], z, mode="FAST_COMPILE")(np.random.default_rng(0))
    for parameter, values in wrong.items():
        for value in values:
            arguments = fits | {parameter: value}
            with pytest.raises(ValueError, match=rf"^{name}: .*\b{parameter}\b") as caught:
                DISTRIBUTIONS[name](state, **arguments)
            assert "\n" not in str(caught.value)
            with pytest.raises(ValueError):
                DISTRIBUTIONS[name](state, **fits | {parameter: T.constant(value)})
            if name != "choice":  # where shapes do not fit
                x, shared = T.constant(value).type("x"), symcomp.shared(np.asarray(value))
                for unknown in (x, shared):
                    DISTRIBUTIONS[name](state, **fits | {parameter: unknown})


def test_messages() -> None:
    state = T.random.state()
    for build, message in (
        (
            lambda: T.random.normal(state, 0, -1.0),
            r"normal: scale must not be negative, got scale = -1",
        ),
        (
            lambda: T.random.normal(state, 0, [1.0, 2.0, -3.0]),
            r"got scale\[2\] = -3.0 \(float64 of shape \(3,\)\)",
        ),
        (
            lambda: T.random.uniform(state, 5, 1.0),
            r"uniform: low must not be above high, got low = 5 \(int64\), high = 1.0 \(float64\)",
        ),
        (
            lambda: T.random.integers(state, 5, 3, endpoint=True),
            "integers with endpoint: low must not be above high, got low = 5 .*, high = 3",
        ),
        (
            lambda: T.random.categorical(state, [0.5, 0.6]),
            r"categorical: p must hold probabilities, none negative, with sum 1",
        ),
        (lambda: T.random.choice(state, 3, 5, False), "5 different elements are drawn of 3"),
        (
            lambda: T.random.choice(state, 3, 3, False, [0.5, 0.5, 0.0]),
            "3 different outcomes are drawn, but p .* is positive for 2",
        ),
        (lambda: T.random.choice(state, 2, 1, False, [1.0, -1.0]), "p must not be negative"),
    ):
        with pytest.raises(ValueError, match=message):
            build()
    with pytest.raises(ShapeError, match="p .* has 2 elements, but there are 3"):
        T.random.choice(state, 3, p=[0.5, 0.5])


def test_expressions_of_constants_are_known() -> None:
    state, x = T.random.state(), T.dscalar("x")
    for scale in (-T.constant(1.0), T.cast(T.constant(-1), "float32"), T.zeros((2, 2)) - 1.0):
        with pytest.raises(ValueError, match="normal: scale must not be negative"):
            T.random.normal(state, 0.0, scale)
    T.random.normal(state, 0.0, x - 1.0)
    T.random.uniform(state, x, -1.0)
    T.random.categorical(state, T.ones(3) / 3)


@pytest.mark.parametrize("kind", [RandomStreams, MRG_RandomStreams])
def test_streams_of_theano_use_its_names(kind: Any) -> None:
    s = kind(1)
    cases = [
        (lambda: s.normal((2,), std=-1), "normal: std must not be negative, got std = -1"),
        (lambda: s.uniform((2,), low=1.0, high=0.0), "uniform: low must not be above high"),
        (lambda: s.binomial((2,), p=1.5), "bernoulli: p must be between 0 and 1"),
        (lambda: s.binomial((2,), n=-2, p=0.5), "binomial: n must not be negative"),
        (lambda: s.poisson((2,), lam=-1.0), "poisson: lam must be at least 0"),
        (lambda: s.random_integers((2,), 5, 3), "low must not be above high"),
        (lambda: s.multinomial((2,), 1, [0.5, 0.6]), "multinomial: pvals must hold probabilities"),
        (lambda: s.permutation((2,), -3), "permutation: x must not be negative"),
    ]
    if kind is MRG_RandomStreams:
        cases += [
            (lambda: s.truncated_normal((2,), std=-1), "truncated_normal: std must not be negat"),
            (lambda: s.normal((2,), std=-1, truncate=True), "truncated_normal: std must not be"),
            (lambda: s.choice(2, p=[0.5, 0.6]), "choice: p must hold probabilities"),
            (lambda: s.choice(3, p=[0.5, 0.5], replace=False), "3 different outcomes"),
        ]
    else:
        cases += [(lambda: s.choice((2,), 2, True, [0.5, 0.6]), "choice: p must hold probabilit")]
    for draw, message in cases:
        before = len(s.state_updates)
        with pytest.raises(ValueError, match=message):
            draw()
        assert len(s.state_updates) == before
