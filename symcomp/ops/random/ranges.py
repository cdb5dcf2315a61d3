"""The ranges of parameters of distributions, checked where these are constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import NotScalarConstantError
from symcomp.ops.constant_values import get_scalar_constant_value
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.random.table import PROBABILITIES

# Bounds of NumPy's samplers: for the mean of poisson, and for the groups of hypergeometric.
MOST_LAM = 9.223372006484771e18
MOST_GROUP = 10**9


@record
class Range:
    """A condition on parameters.

    Attributes
    ----------
    names : tuple of str
        The parameters that it is about.
    holds : callable
        Maps their values, which may be arrays, to truth for each element.
    words : str
        The condition in words; ``{name}`` stands for the user's name of a parameter.
    """

    names: tuple[str, ...]
    holds: Callable[..., Any]
    words: str


def _range(holds: Callable[..., Any], words: str) -> Range:
    return Range(tuple(inspect.signature(holds).parameters), holds, words)


def _not_negative(name: str) -> Range:
    return Range((name,), lambda x: x >= 0, f"{{{name}}} must not be negative")


def _positive(name: str) -> Range:
    return Range((name,), lambda x: x > 0, f"{{{name}}} must be positive")


def _between(name: str, holds: Callable[[Any], Any], words: str) -> Range:
    return Range((name,), holds, f"{{{name}}} must be {words}")


def _probability(name: str) -> Range:
    return _between(name, lambda p: (p >= 0) & (p <= 1), "between 0 and 1")


def _chance(name: str) -> Range:
    return _between(name, lambda p: (p > 0) & (p <= 1), "above 0 and at most 1")


def _probabilities(name: str) -> Range:
    def holds(p: Any) -> Any:
        if p.ndim == 0:  # shapes have their own error message
            return True
        near = abs(p.sum(axis=-1, keepdims=True) - 1) <= PROBABILITIES
        return (p >= 0) & near if p.shape[-1] else p.size != 0 or 0 in p.shape[:-1]

    return Range((name,), holds, f"{{{name}}} must hold probabilities, none negative, with sum 1 "
                 "along the last axis")  # fmt: skip


def _is_covariance(cov: Any) -> bool:
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or not np.isfinite(cov).all():
        return cov.ndim != 2 or cov.shape[0] != cov.shape[1]  # shapes have their own error message
    precision = np.finfo(cov.dtype).eps * 100 if cov.dtype.kind == "f" else 1e-12
    size = abs(cov).max(initial=0)
    wide = cov.astype("float64")
    symmetric = (abs(wide - wide.T) <= precision * size).all()
    least = np.linalg.eigvalsh(wide).min(initial=np.inf)
    return bool(symmetric and least > -precision * size * len(cov))


RANGES: dict[str, tuple[Range, ...]] = {
    "beta": (_positive("a"), _positive("b")),
    "chisquare": (_positive("df"),),
    "dirichlet": (_positive("alpha"),),
    "exponential": (_not_negative("scale"),),
    "f": (_positive("dfnum"), _positive("dfden")),
    "gamma": (_not_negative("shape"), _not_negative("scale")),
    "gumbel": (_not_negative("scale"),),
    "laplace": (_not_negative("scale"),),
    "logistic": (_not_negative("scale"),),
    "lognormal": (_not_negative("sigma"),),
    "multivariate_normal": (
        Range(("cov",), _is_covariance, "{cov} must be symmetric and positive definite"),
    ),
    "noncentral_chisquare": (_positive("df"), _not_negative("nonc")),
    "noncentral_f": (_positive("dfnum"), _positive("dfden"), _not_negative("nonc")),
    "normal": (_not_negative("scale"),),
    "pareto": (_positive("a"),),
    "permutation": (_not_negative("x"),),
    "power": (_positive("a"),),
    "rayleigh": (_not_negative("scale"),),
    "standard_gamma": (_not_negative("shape"),),
    "standard_t": (_positive("df"),),
    "triangular": (
        _range(lambda left, mode: left <= mode, "{left} must not be above {mode}"),
        _range(lambda mode, right: mode <= right, "{mode} must not be above {right}"),
        _range(lambda left, right: left < right, "{left} must be below {right}"),
    ),
    "truncated_normal": (
        _not_negative("scale"),
        _range(lambda low, high: low <= high, "{low} must not be above {high}"),
    ),
    "uniform": (
        _range(lambda low, high: low <= high, "{low} must not be above {high}"),
        _between("low", np.isfinite, "finite"),
        _between("high", np.isfinite, "finite"),
    ),
    "vonmises": (_not_negative("kappa"),),
    "wald": (_positive("mean"), _positive("scale")),
    "weibull": (_positive("a"),),
    "bernoulli": (_probability("p"),),
    "binomial": (_not_negative("n"), _probability("p")),
    "categorical": (_probabilities("p"),),
    "choice": (_positive("a"), _probabilities("p")),
    "distinct": (_not_negative("p"),),
    "geometric": (_chance("p"),),
    "hypergeometric": (
        _between("ngood", lambda n: (n >= 0) & (n < MOST_GROUP), "at least 0 and below 10**9"),
        _between("nbad", lambda n: (n >= 0) & (n < MOST_GROUP), "at least 0 and below 10**9"),
        _not_negative("nsample"),
        _range(
            lambda ngood, nbad, nsample: nsample <= ngood + nbad,
            "{nsample} must not be above {ngood} + {nbad}",
        ),
    ),
    "integers": (_range(lambda low, high: low < high, "{low} must be below {high}"),),
    "integers with endpoint": (
        _range(lambda low, high: low <= high, "{low} must not be above {high}"),
    ),
    "logseries": (_between("p", lambda p: (p >= 0) & (p < 1), "at least 0 and below 1"),),
    "multinomial": (_not_negative("n"), _probabilities("pvals")),
    "negative_binomial": (_positive("n"), _chance("p")),
    "poisson": (
        _between("lam", lambda lam: (lam >= 0) & (lam <= MOST_LAM), "at least 0, up to 9.2e18"),
    ),
    "zipf": (_between("a", lambda a: a > 1, "above 1"),),
}


def check_ranges(
    name: str, parameters: Mapping[str, Any], called: Mapping[str, str] | None = None
) -> None:
    """Raise a ValueError if parameters whose values are known are out of range.

    Parameters
    ----------
    name : str
        The distribution.
    parameters : mapping of str to tensor_like
        Its parameters, by their names in ``RANGES``.
    called : mapping of str to str, optional
        Names used by the user's function, where they differ.
    """
    titles = {key: key for key in parameters} | dict(called or {})
    for rule in RANGES.get(name, ()):
        values = [known_value(parameters.get(key)) for key in rule.names]
        if any(value is None for value in values):
            continue
        try:
            holds = np.asarray(rule.holds(*values))
        except ValueError:  # incompatible shapes have their own error message
            continue
        if not holds.all():
            shown = [_shown(titles[key], v, holds)
                     for key, v in zip(rule.names, values, strict=True)]  # fmt: skip
            raise ValueError(f"{name}: {rule.words.format_map(titles)}, got {', '.join(shown)}")


def known_value(x: Any) -> Any:
    """Return the value of a parameter; None if it is not known when the graph is built."""
    if x is None:
        return None
    x = as_tensor_variable(x)
    if isinstance(x, TensorConstant):
        return x.data
    if not isinstance(x, TensorVariable) or x.owner is None:
        return None
    try:
        return get_scalar_constant_value(x)
    except NotScalarConstantError:
        return None


def _shown(title: str, value: Any, holds: Any) -> str:
    """Return a parameter for an error message; of an array the first element out of range."""
    if value.ndim == 0:
        return f"{title} = {value} ({value.dtype})"
    kind = f"{value.dtype} of shape {value.shape}"
    if value.shape != holds.shape:
        return f"{title} ({kind})"
    place = tuple(int(i) for i in np.argwhere(~holds)[0])
    return f"{title}[{', '.join(map(str, place))}] = {value[place]} ({kind})"
