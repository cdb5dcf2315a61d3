"""Real distributions, as functions of the state: each returns the state after it, and the draw.

Most are a smooth function of their parameters and of a draw that has none, so that gradients with
respect to parameters exist ("reparameterized"). That of gamma is implicit.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import cast_to
from symcomp.ops.random.ranges import check_ranges
from symcomp.ops.random.sizes import (
    Lengths,
    fitted,
    positive,
    read_reals,
    read_size,
    standard,
)
from symcomp.ops.scalar_error import erfc, erfcinv
from symcomp.ops.scalar_logic import clip, lt, switch
from symcomp.ops.scalar_logistic import sigmoid
from symcomp.ops.scalar_math import exp, expm1, floor, log, maximum, tan
from symcomp.ops.scalar_math import sqrt as sqrt_

Pair = tuple[Any, Any]

# Below this, a draw of the standard exponential is rounded: its logarithm must stay finite.
SMALLEST = {"float16": 2.0**-25, "float32": 2.0**-25, "float64": 2.0**-55}


def prepared(
    name: str, size: Any, dtype: Any, ndim: int | None, **parameters: Any
) -> tuple[Lengths, str, list[TensorVariable]]:
    """The lengths and dtype of a draw, and its parameters."""
    check_ranges(name, parameters)
    kind, tensors = read_reals(name, dtype, *parameters.values())
    lengths = read_size(name, size, ndim, *tensors)
    return lengths, kind, [fitted(name, lengths, x) for x in tensors]


# -- draws without parameters


def standard_uniform(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Uniform on [0, 1), in steps of 2^-53 (float32: 2^-24, float16: 2^-11)."""
    lengths, kind, _ = prepared("standard_uniform", size, dtype, ndim)
    return _unit(state, lengths, kind)


def _unit(state: Variable, lengths: Lengths, kind: str) -> Pair:
    if kind != "float16":
        return standard(state, "standard_uniform", lengths, kind)
    after, u = standard(state, "standard_uniform", lengths, "float32")
    # Rounded to nearest, the largest would be 1.
    return after, cast_to(floor(u * 2048) * (1 / 2048), "float16")


def standard_normal(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Normal with mean 0 and standard deviation 1."""
    lengths, kind, _ = prepared("standard_normal", size, dtype, ndim)
    return standard(state, "standard_normal", lengths, kind)


def standard_exponential(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Exponential with mean 1."""
    lengths, kind, _ = prepared("standard_exponential", size, dtype, ndim)
    return standard(state, "standard_exponential", lengths, kind)


def standard_gamma(
    state: Variable, shape: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Gamma with scale 1: density z^(shape - 1) e^-z / gamma(shape)."""
    lengths, kind, (shape,) = prepared("standard_gamma", size, dtype, ndim, shape=shape)
    return standard(state, "standard_gamma", lengths, kind, shape)


def standard_cauchy(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Cauchy's distribution around 0: density 1 / (pi (1 + z^2))."""
    lengths, kind, _ = prepared("standard_cauchy", size, dtype, ndim)
    after, u = _unit(state, lengths, kind)
    return after, tan(pi * (u - 0.5))


# -- moved and scaled


def uniform(
    state: Variable,
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Uniform on [low, high); rounding may give high itself. Other arguments as for ``normal``."""
    lengths, kind, (low, high) = prepared("uniform", size, dtype, ndim, low=low, high=high)
    after, u = _unit(state, lengths, kind)
    return after, low + (high - low) * u


def normal(
    state: Variable,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Normal with mean ``loc`` and standard deviation ``scale``.

    Parameters
    ----------
    state : Variable
        Of the stream. (Methods of ``RandomStream`` lack it, and return the draw alone.)
    loc, scale : tensor_like
    size : int, integer scalar, sequence of them, or integer vector, optional
        The shape of the draw; by default that to which ``loc`` and ``scale`` broadcast.
    dtype : optional
        float16, float32 or float64; by default ``config.floatX``, or a wider one of a parameter.
    ndim : int, optional
        The length of ``size``, where that is a vector of unknown length.

    Returns
    -------
    state, z : Variable
        The state after the draw, and the draw.

    Raises
    ------
    ShapeError
        If ``size`` does not fit the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> state = T.random.state("state")
    >>> _, z = T.random.normal(state, loc=5.0, size=(2, 3))
    >>> z.eval({state: np.random.default_rng(1)}).shape
    (2, 3)
    """
    lengths, kind, (loc, scale) = prepared("normal", size, dtype, ndim, loc=loc, scale=scale)
    after, z = standard(state, "standard_normal", lengths, kind)
    return after, loc + scale * z


def lognormal(
    state: Variable,
    mean: Any = 0.0,
    sigma: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """exp of a normal with mean ``mean`` and standard deviation ``sigma``."""
    check_ranges("lognormal", {"sigma": sigma})
    after, z = normal(state, mean, sigma, size, dtype, ndim)
    return after, exp(z)


def exponential(
    state: Variable, scale: Any = 1.0, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Exponential with mean ``scale``."""
    lengths, kind, (scale,) = prepared("exponential", size, dtype, ndim, scale=scale)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, scale * e


def laplace(
    state: Variable,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Laplace's: density ``exp(-|z - loc| / scale) / (2 scale)``."""
    lengths, kind, (loc, scale) = prepared("laplace", size, dtype, ndim, loc=loc, scale=scale)
    after, a = standard(state, "standard_exponential", lengths, kind)
    after, b = standard(after, "standard_exponential", lengths, kind)
    return after, loc + scale * (a - b)


def gumbel(
    state: Variable,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Gumbel's, of maxima: the distribution function is exp(-exp(-(z - loc) / scale))."""
    lengths, kind, (loc, scale) = prepared("gumbel", size, dtype, ndim, loc=loc, scale=scale)
    after, e = _log_exponential(state, lengths, kind)
    return after, loc - scale * e


def _log_exponential(state: Variable, lengths: Lengths, kind: str) -> Pair:
    """The logarithm of a standard exponential; always finite."""
    wide = "float32" if kind == "float16" else kind
    after, e = standard(state, "standard_exponential", lengths, wide)
    return after, cast_to(log(maximum(e, SMALLEST[kind])), kind)


def logistic(
    state: Variable,
    loc: Any = 0.0,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """The distribution function is sigmoid((z - loc) / scale)."""
    lengths, kind, (loc, scale) = prepared("logistic", size, dtype, ndim, loc=loc, scale=scale)
    after, a = _log_exponential(state, lengths, kind)
    after, b = _log_exponential(after, lengths, kind)
    return after, loc + scale * (a - b)


def rayleigh(
    state: Variable, scale: Any = 1.0, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """The length of a vector of two normals with standard deviation ``scale``."""
    lengths, kind, (scale,) = prepared("rayleigh", size, dtype, ndim, scale=scale)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, scale * sqrt_(2 * e)


def triangular(
    state: Variable,
    left: Any,
    mode: Any,
    right: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """From ``left`` to ``right``, likeliest at ``mode``: the density is a triangle."""
    lengths, kind, parameters = prepared(
        "triangular", size, dtype, ndim, left=left, mode=mode, right=right
    )
    left, mode, right = parameters
    after, u = _unit(state, lengths, kind)
    width = right - left
    rising = left + sqrt_(u * width * (mode - left))
    falling = right - sqrt_((1 - u) * width * (right - mode))
    return after, switch(lt(u * width, mode - left), rising, falling)


def truncated_normal(
    state: Variable,
    loc: Any = 0.0,
    scale: Any = 1.0,
    low: Any = -2.0,
    high: Any = 2.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """loc + scale z, for a standard normal z known to lie in [low, high]: by default within two
    standard deviations.

    By the inverse of the distribution function, taken from the side on which it is small.
    """
    lengths, kind, parameters = prepared(
        "truncated_normal", size, dtype, ndim, loc=loc, scale=scale, low=low, high=high
    )
    loc, scale, low, high = parameters
    after, u = standard(state, "standard_uniform", lengths, "float64")
    low, high = cast_to(low, "float64"), cast_to(high, "float64")
    mirrored = lt(0, low + high)
    a, b = switch(mirrored, -high, low), switch(mirrored, -low, high)
    from_left, from_right = erfc(-a / sqrt(2)), erfc(-b / sqrt(2))
    z = clip(-sqrt(2) * erfcinv(from_left + u * (from_right - from_left)), a, b)
    return after, loc + scale * cast_to(switch(mirrored, -z, z), kind)


# -- by shape


def gamma(
    state: Variable,
    shape: Any,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Density z^(shape - 1) e^(-z / scale) / (scale^shape gamma(shape)): the mean is
    ``shape * scale``.
    """
    lengths, kind, (shape, scale) = prepared("gamma", size, dtype, ndim, shape=shape, scale=scale)
    after, g = standard(state, "standard_gamma", lengths, kind, shape)
    return after, scale * g


def chisquare(
    state: Variable, df: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """The sum of the squares of ``df`` standard normals."""
    lengths, kind, (df,) = prepared("chisquare", size, dtype, ndim, df=df)
    after, g = standard(state, "standard_gamma", lengths, kind, df / 2)
    return after, 2 * g


def standard_t(
    state: Variable, df: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Student's, with ``df`` degrees of freedom."""
    lengths, kind, (df,) = prepared("standard_t", size, dtype, ndim, df=df)
    after, z = standard(state, "standard_normal", lengths, kind)
    after, g = standard(after, "standard_gamma", lengths, kind, df / 2)
    return after, z * sqrt_(df / 2) / sqrt_(g)


def f(
    state: Variable,
    dfnum: Any,
    dfden: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Fisher's: the quotient of two chisquare draws, each divided by its degrees of freedom."""
    lengths, kind, (m, n) = prepared("f", size, dtype, ndim, dfnum=dfnum, dfden=dfden)
    after, a = standard(state, "standard_gamma", lengths, kind, m / 2)
    after, b = standard(after, "standard_gamma", lengths, kind, n / 2)
    return after, (a * n) / (b * m)


def log_gamma(state: Variable, lengths: Lengths, kind: str, shape: TensorVariable) -> Pair:
    """The logarithm of a standard gamma draw, finite for small shapes too.

    Gamma(a) is Gamma(a + 1) U^(1 / a) (Marsaglia and Tsang, 2000, section 6).
    """
    after, g = standard(state, "standard_gamma", lengths, kind, shape + 1)
    after, e = standard(after, "standard_exponential", lengths, kind)
    return after, log(g) - e / shape


def beta(
    state: Variable,
    a: Any,
    b: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Density proportional to z^(a - 1) (1 - z)^(b - 1) on [0, 1]."""
    lengths, kind, (a, b) = prepared("beta", size, dtype, ndim, a=a, b=b)
    after, x = log_gamma(state, lengths, kind, positive("beta", "a", a))
    after, y = log_gamma(after, lengths, kind, positive("beta", "b", b))
    return after, sigmoid(x - y)


def weibull(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """The distribution function is 1 - exp(-z^a)."""
    lengths, kind, (a,) = prepared("weibull", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, e ** (1 / positive("weibull", "a", a))


def pareto(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """The distribution function is 1 - (1 + z)^-a (Lomax's, or Pareto's second)."""
    lengths, kind, (a,) = prepared("pareto", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, expm1(e / positive("pareto", "a", a))


def power(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """The distribution function is z^a on [0, 1]."""
    lengths, kind, (a,) = prepared("power", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, exp(-e / positive("power", "a", a))


# -- without derivatives


def vonmises(
    state: Variable,
    mu: Any,
    kappa: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Angles in [-pi, pi]: density proportional to exp(kappa cos(z - mu))."""
    lengths, kind, parameters = prepared("vonmises", size, dtype, ndim, mu=mu, kappa=kappa)
    return standard(state, "vonmises", lengths, kind, *parameters)


def wald(
    state: Variable,
    mean: Any,
    scale: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """The inverse Gaussian distribution."""
    lengths, kind, parameters = prepared("wald", size, dtype, ndim, mean=mean, scale=scale)
    return standard(state, "wald", lengths, kind, *parameters)


def noncentral_chisquare(
    state: Variable,
    df: Any,
    nonc: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """The sum of the squares of ``df`` normals whose squared means have the sum ``nonc``."""
    lengths, kind, parameters = prepared(
        "noncentral_chisquare", size, dtype, ndim, df=df, nonc=nonc
    )
    return standard(state, "noncentral_chisquare", lengths, kind, *parameters)


def noncentral_f(
    state: Variable,
    dfnum: Any,
    dfden: Any,
    nonc: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Fisher's, with a numerator that is not central."""
    lengths, kind, parameters = prepared(
        "noncentral_f", size, dtype, ndim, dfnum=dfnum, dfden=dfden, nonc=nonc
    )
    return standard(state, "noncentral_f", lengths, kind, *parameters)
