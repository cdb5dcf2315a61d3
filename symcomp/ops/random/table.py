"""The table of NumPy's distributions: one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.record import record

PROBABILITIES = 1e-3  # tolerance of the sum of probabilities, for float16


@record
class Row:
    """A distribution that NumPy draws from.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    dtypes : tuple of str
        The dtypes of the parameters.
    draws : tuple of str
        The dtypes that can be drawn.
    sample : callable
        From a generator, the shape, the parameters and an array of the result's dtype, to be
        filled, or that dtype, to the result.
    vectors : tuple of bool
        The parameters with an additional last axis, that of the outcomes.
    is_vector : bool
        If true, a draw has this axis.
    """

    parameters: tuple[str, ...]
    dtypes: tuple[str, ...]
    draws: tuple[str, ...]
    sample: Callable[..., Any]
    vectors: tuple[bool, ...]
    is_vector: bool = False


TABLE: dict[str, Row] = {}


def _add(name: str, parameters: str = "", sample: Any = None, **more: Any) -> None:
    """Add a row: ``parameters`` are names, with * if they have outcomes and # if they are int64."""
    words = parameters.split()
    names = tuple(w.strip("*#") for w in words)
    kinds = tuple("int64" if "#" in w else "float64" for w in words)
    vectors = tuple("*" in w for w in words)
    more.setdefault("draws", ("int64",))
    TABLE[name] = Row(names, kinds, more.pop("draws"), sample or _by(name), vectors, **more)


def _by(name: str) -> Callable[..., Any]:
    """Return a sampler that calls the generator's method of that name."""

    def sample(generator: Any, size: Any, parameters: Sequence[Any], out: Any) -> Any:
        return getattr(generator, name)(*parameters, size=size)

    return sample


def _filling(name: str) -> Callable[..., Any]:
    """Return a sampler that calls a method with the arguments dtype and out."""

    def sample(generator: Any, size: Any, parameters: Sequence[Any], out: Any) -> Any:
        method = getattr(generator, name)
        if not isinstance(out, np.ndarray):
            return method(*parameters, size=size, dtype=out)
        if out.flags.c_contiguous:
            return method(*parameters, size=size, dtype=out.dtype, out=out)
        out[...] = method(*parameters, size=size, dtype=out.dtype)
        return out

    return sample


def _check_probabilities(name: str, p: np.ndarray) -> None:
    total = p.sum(axis=-1)
    if p.shape[-1] == 0 or not (np.all(p >= 0) and np.all(abs(total - 1) <= PROBABILITIES)):
        raise ValueError(
            f"{name}: p (shape {p.shape}) must hold probabilities, at least one, none negative or "
            "NaN, with sum 1 along the last axis; divide weights by their sum, or take a softmax"
        )


def _categorical(generator: Any, size: Any, parameters: Sequence[Any], out: Any) -> Any:
    """Draw the outcome whose interval of the cumulated probabilities contains a uniform number."""
    (p,) = parameters
    u = generator.random(size)
    if u.size == 0:
        return np.zeros(size, np.int64)
    _check_probabilities("categorical", p)
    upto = np.cumsum(p, axis=-1)
    level = u * upto[..., -1]
    if upto.size == upto.shape[-1]:
        return np.searchsorted(upto.reshape(-1), level, side="right").astype(np.int64)
    return (upto <= level[..., None]).sum(axis=-1, dtype=np.int64)


def _multinomial(generator: Any, size: Any, parameters: Sequence[Any], out: Any) -> Any:
    n, p = parameters
    if 0 in size:
        return np.zeros((*size, p.shape[-1]), np.int64)
    _check_probabilities("multinomial", p)
    return generator.multinomial(n, p / p.sum(axis=-1, keepdims=True), size=size)


def _by_vectors(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sampler that draws one vector after the other, of a generator and parameters."""

    def sample(generator: Any, size: Any, parameters: Sequence[Any], out: Any) -> Any:
        rows = [np.broadcast_to(x, (*size, *x.shape[len(size) :])) for x in parameters]
        z = np.empty((*size, parameters[-1].shape[-1]), getattr(out, "dtype", out))
        for at in np.ndindex(*size):
            z[at] = draw(generator, *(x[at] for x in rows))
        return z

    return sample


def _choice(generator: Any, n: Any, places: Any) -> Any:
    return generator.choice(int(n), len(places), replace=False)


def _choice_by_p(generator: Any, p: Any, places: Any) -> Any:
    return generator.choice(len(p), len(places), replace=False, p=p)


REALS = ("float32", "float64")
_add("standard_uniform", sample=_filling("random"), draws=REALS)
_add("standard_normal", sample=_filling("standard_normal"), draws=REALS)
_add("standard_exponential", sample=_filling("standard_exponential"), draws=REALS)
_add("standard_gamma", "shape", sample=_filling("standard_gamma"), draws=REALS)
_add("beta", "a b", draws=("float64",))
_add("laplace", "loc scale", draws=("float64",))
_add("logistic", "loc scale", draws=("float64",))
_add("lognormal", "mean sigma", draws=("float64",))
_add("standard_t", "df", draws=("float64",))
_add("triangular", "left mode right", draws=("float64",))
_add("weibull", "a", draws=("float64",))
_add("vonmises", "mu kappa", draws=("float64",))
_add("wald", "mean scale", draws=("float64",))
_add("noncentral_chisquare", "df nonc", draws=("float64",))
_add("noncentral_f", "dfnum dfden nonc", draws=("float64",))
_add("integers", "low# high#")
_add("binomial", "n# p")
_add("negative_binomial", "n p")
_add("poisson", "lam")
_add("geometric", "p")
_add("hypergeometric", "ngood# nbad# nsample#")
_add("logseries", "p")
_add("zipf", "a")
_add("categorical", "p*", _categorical)
_add("multinomial", "n# p*", _multinomial, is_vector=True)
# Vectors by NumPy's methods for one: probabilities; counts of outcomes whose probabilities are
# taken as they are; numbers in another order; different numbers below n, as many as there are
# places.
_add(
    "dirichlet", "alpha*", _by_vectors(lambda g, alpha: g.dirichlet(alpha)), draws=("float64",),
    is_vector=True,
)  # fmt: skip
_add("counts", "n# p*", _by_vectors(lambda g, n, p: g.multinomial(n, p)), is_vector=True)
_add("permutation", "items#*", _by_vectors(lambda g, x: g.permutation(x)), is_vector=True)
_add("choice", "n# places#*", _by_vectors(_choice), is_vector=True)
_add("choice_by_p", "p* places#*", _by_vectors(_choice_by_p), is_vector=True)
