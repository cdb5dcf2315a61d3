"""The gamma distribution, distributions built on it, and some that have no derivatives.

The gradient of gamma with respect to its parameters is implicit.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.ops.elementwise.scalar_logistic import sigmoid
from symcomp.ops.elementwise.scalar_math import log
from symcomp.ops.elementwise.scalar_math import sqrt as sqrt_
from symcomp.ops.random.continuous import Pair, prepared
from symcomp.ops.random.sizes import Lengths, positive, standard


def gamma(
    state: Variable,
    shape: Any,
    scale: Any = 1.0,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Draw from the gamma distribution: density z^(shape - 1) e^(-z / scale) / (scale^shape
    gamma(shape)), mean ``shape * scale``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.gamma(start, 2.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([1.834, 2.638, 1.066])
    """
    lengths, kind, (shape, scale) = prepared("gamma", size, dtype, ndim, shape=shape, scale=scale)
    after, g = standard(state, "standard_gamma", lengths, kind, shape)
    return after, scale * g


def chisquare(
    state: Variable, df: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw the sum of the squares of ``df`` standard normals.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.chisquare(start, 3.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([2.616, 4.008, 1.357])
    """
    lengths, kind, (df,) = prepared("chisquare", size, dtype, ndim, df=df)
    after, g = standard(state, "standard_gamma", lengths, kind, df / 2)
    return after, 2 * g


def standard_t(
    state: Variable, df: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw from Student's distribution with ``df`` degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.standard_t(start, 4.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([ 0.132, -0.127,  0.505])
    """
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
    """Draw from Fisher's distribution: the quotient of two chisquare draws, each divided by its
    degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.f(start, 4.0, 5.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.487, 2.562, 0.971])
    """
    lengths, kind, (m, n) = prepared("f", size, dtype, ndim, dfnum=dfnum, dfden=dfden)
    after, a = standard(state, "standard_gamma", lengths, kind, m / 2)
    after, b = standard(after, "standard_gamma", lengths, kind, n / 2)
    return after, (a * n) / (b * m)


def log_gamma(state: Variable, lengths: Lengths, kind: str, shape: TensorVariable) -> Pair:
    """Draw the logarithm of a standard gamma variable, finite for small shapes too.

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
    """Draw from the beta distribution: density proportional to z^(a - 1) (1 - z)^(b - 1) on [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.beta(start, 2.0, 3.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.611, 0.668, 0.137])
    """
    lengths, kind, (a, b) = prepared("beta", size, dtype, ndim, a=a, b=b)
    after, x = log_gamma(state, lengths, kind, positive("beta", "a", a))
    after, y = log_gamma(after, lengths, kind, positive("beta", "b", b))
    return after, sigmoid(x - y)


def vonmises(
    state: Variable,
    mu: Any,
    kappa: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Draw angles in [-pi, pi] from von Mises' distribution: density proportional to exp(kappa
    cos(z - mu)).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.vonmises(start, 0.0, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([-1.001,  0.018,  0.917])
    """
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
    """Draw from the inverse Gaussian (Wald) distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.wald(start, 1.0, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.915, 0.638, 1.457])
    """
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
    """Draw the sum of the squares of ``df`` normals whose squared means have the sum ``nonc``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.noncentral_chisquare(start, 3.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([2.113, 1.26 , 2.955])
    """
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
    """Draw from Fisher's distribution with a noncentral numerator.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.noncentral_f(start, 3.0, 4.0, 1.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([0.534, 0.495, 3.862])
    """
    lengths, kind, parameters = prepared(
        "noncentral_f", size, dtype, ndim, dfnum=dfnum, dfden=dfden, nonc=nonc
    )
    return standard(state, "noncentral_f", lengths, kind, *parameters)
