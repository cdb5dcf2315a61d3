"""Real distributions, as functions of the state: each returns the state after it, and the draw.

Most are a smooth function of their parameters and of a draw without parameters, so that gradients
with respect to parameters exist ("reparameterized").
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from symcomp.core.dtype import working
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import cast_to
from symcomp.ops.elementwise.scalar_error import erfc, erfcinv
from symcomp.ops.elementwise.scalar_logic import clip, lt, switch
from symcomp.ops.elementwise.scalar_math import exp, expm1, floor, log, maximum
from symcomp.ops.elementwise.scalar_math import sqrt as sqrt_
from symcomp.ops.elementwise.scalar_trigonometry import tan
from symcomp.ops.random.ranges import check_ranges
from symcomp.ops.random.sizes import (
    Lengths,
    fitted,
    positive,
    read_reals,
    read_size,
    standard,
)

Pair = tuple[Any, Any]

# Smaller draws of the standard exponential are rounded up: their logarithm must stay finite.
SMALLEST = {"float16": 2.0**-25, "bfloat16": 2.0**-25, "float32": 2.0**-25, "float64": 2.0**-55}
# Steps of uniform draws, from 0 to 1, of dtypes that are rounded from float32.
UNIT_STEPS = {"float16": 2048, "bfloat16": 256}


def prepared(
    name: str, size: Any, dtype: Any, ndim: int | None, **parameters: Any
) -> tuple[Lengths, str, list[TensorVariable]]:
    """Return the lengths and dtype of a draw, and its parameters."""
    check_ranges(name, parameters)
    kind, tensors = read_reals(name, dtype, *parameters.values())
    lengths = read_size(name, size, ndim, *tensors)
    return lengths, kind, [fitted(name, lengths, x) for x in tensors]


# -- draws without parameters


def standard_uniform(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw uniformly from [0, 1), in steps of 2^-53 (float32: 2^-24, float16: 2^-11,
    bfloat16: 2^-8).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_uniform(start, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.637, 0.27 , 0.041])
    """
    lengths, kind, _ = prepared("standard_uniform", size, dtype, ndim)
    return _unit(state, lengths, kind)


def _unit(state: Variable, lengths: Lengths, kind: str) -> Pair:
    if kind not in UNIT_STEPS:
        return standard(state, "standard_uniform", lengths, kind)
    after, u = standard(state, "standard_uniform", lengths, "float32")
    # Rounded to nearest, the largest would be 1.
    steps = UNIT_STEPS[kind]
    return after, cast_to(floor(u * steps) * (1 / steps), kind)


def standard_normal(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from the normal distribution with mean 0 and standard deviation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_normal(start, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.126, -0.132,  0.64 ])
    """
    lengths, kind, _ = prepared("standard_normal", size, dtype, ndim)
    return standard(state, "standard_normal", lengths, kind)


def standard_exponential(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from the exponential distribution with mean 1.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_exponential(start, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.68, 1.02, 0.02])
    """
    lengths, kind, _ = prepared("standard_exponential", size, dtype, ndim)
    return standard(state, "standard_exponential", lengths, kind)


def standard_gamma(
    state: Variable, shape: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from the gamma distribution with scale 1: density z^(shape - 1) e^-z / gamma(shape).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_gamma(start, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([1.834, 2.638, 1.066])
    """
    lengths, kind, (shape,) = prepared("standard_gamma", size, dtype, ndim, shape=shape)
    return standard(state, "standard_gamma", lengths, kind, shape)


def standard_cauchy(
    state: Variable, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from Cauchy's distribution around 0: density 1 / (pi (1 + z^2)).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_cauchy(start, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.459, -0.883, -7.726])
    """
    lengths, kind, _ = prepared("standard_cauchy", size, dtype, ndim)
    after, u = _unit(state, lengths, kind)
    return after, tan(pi * (u - 0.5))


# -- location and scale


def uniform(
    state: Variable,
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Draw uniformly from [low, high); rounding may give high itself. Other arguments as for
    ``normal``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.uniform(start, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.637, 0.27 , 0.041])
    """
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
    """Draw from the normal distribution with mean ``loc`` and standard deviation ``scale``.

    Parameters
    ----------
    state : Variable
        The state of the stream. (Methods of ``RandomStream`` lack it, and return the draw alone.)
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
    """Draw exp of a normal variable with mean ``mean`` and standard deviation ``sigma``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.lognormal(start, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([1.134, 0.876, 1.897])
    """
    check_ranges("lognormal", {"sigma": sigma})
    after, z = normal(state, mean, sigma, size, dtype, ndim)
    return after, exp(z)


def exponential(
    state: Variable, scale: Any = 1.0, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from the exponential distribution with mean ``scale``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.exponential(start, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([1.36 , 2.039, 0.04 ])
    """
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
    """Draw from Laplace's distribution: density ``exp(-|z - loc| / scale) / (2 scale)``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.laplace(start, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.678,  0.469, -1.61 ])
    """
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
    """Draw from Gumbel's distribution of maxima: the distribution function is exp(-exp(-(z - loc) /
    scale)).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.gumbel(start, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.386, -0.019,  3.922])
    """
    lengths, kind, (loc, scale) = prepared("gumbel", size, dtype, ndim, loc=loc, scale=scale)
    after, e = _log_exponential(state, lengths, kind)
    return after, loc - scale * e


def _log_exponential(state: Variable, lengths: Lengths, kind: str) -> Pair:
    """Draw the logarithm of a standard exponential variable; always finite."""
    wide = working(kind)
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
    """Draw from the logistic distribution: the distribution function is sigmoid((z - loc) / scale).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.logistic(start, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 5.703,  0.617, -4.41 ])
    """
    lengths, kind, (loc, scale) = prepared("logistic", size, dtype, ndim, loc=loc, scale=scale)
    after, a = _log_exponential(state, lengths, kind)
    after, b = _log_exponential(after, lengths, kind)
    return after, loc + scale * (a - b)


def rayleigh(
    state: Variable, scale: Any = 1.0, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from Rayleigh's distribution: the length of a vector of two normals with standard
    deviation ``scale``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.rayleigh(start, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([1.166, 1.428, 0.199])
    """
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
    """Draw from the triangular distribution from ``left`` to ``right`` with its peak at ``mode``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.triangular(start, -1.0, 0.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.148, -0.265, -0.714])
    """
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
    """Draw loc + scale z, for a standard normal z known to lie in [low, high]: by default within
    two standard deviations.

    Uses the inverse of the distribution function, taken from the tail where it is small.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.truncated_normal(start, 0.0, 1.0, -1.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.237, -0.405, -0.89 ])
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


# -- with shape parameters


def weibull(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from Weibull's distribution: the distribution function is 1 - exp(-z^a).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.weibull(start, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.825, 1.01 , 0.141])
    """
    lengths, kind, (a,) = prepared("weibull", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, e ** (1 / positive("weibull", "a", a))


def pareto(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from Pareto's second (Lomax's) distribution: the distribution function is 1 - (1 +
    z)^-a.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.pareto(start, 3.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.254, 0.405, 0.007])
    """
    lengths, kind, (a,) = prepared("pareto", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, expm1(e / positive("pareto", "a", a))


def power(
    state: Variable, a: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from the power distribution: the distribution function is z^a on [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.power(start, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.712, 0.601, 0.99 ])
    """
    lengths, kind, (a,) = prepared("power", size, dtype, ndim, a=a)
    after, e = standard(state, "standard_exponential", lengths, kind)
    return after, exp(-e / positive("power", "a", a))
