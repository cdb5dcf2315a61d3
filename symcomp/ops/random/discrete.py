"""Distributions of integers and of outcomes, as functions of the state: each returns the state
after it, and the draw.

Draws are int64 and then cast, so any dtype is possible. Gradients with respect to their parameters
are undefined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to, is_python_number, resolve_dtype
from symcomp.ops.elementwise.scalar_logic import eq, lt
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.random.ranges import check_ranges
from symcomp.ops.random.sizes import (
    Lengths,
    draw,
    fitted,
    read_reals,
    read_size,
    standard,
    without_derivative,
)
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.shape import shape_tuple

Pair = tuple[Any, Any]


def _counts(
    state: Variable, name: str, size: Any, dtype: Any, ndim: int | None, **parameters: Any
) -> Pair:
    """Draw from a distribution of the table whose parameters are numbers."""
    check_ranges(name, parameters)
    tensors = [as_tensor_variable(x) for x in parameters.values()]
    lengths = read_size(name, size, ndim, *tensors)
    ready = [fitted(name, lengths, x) for x in tensors]
    after, z = draw(state, name, lengths, "int64", *ready)
    return after, cast(z, resolve_dtype(dtype))


def integers(
    state: Variable,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = "int64",
    endpoint: bool = False,
    ndim: int | None = None,
) -> Pair:
    """Draw integers uniformly from ``low`` to ``high`` - 1; from 0 to ``low`` - 1 if ``high`` is
    None. With ``endpoint``, the highest number may be drawn as well.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.integers(start, 0, 10, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([8, 6, 5])
    """
    low, high = (0, low) if high is None else (low, high)
    if endpoint:
        check_ranges("integers with endpoint", {"low": low, "high": high})
        high = as_tensor_variable(high) + 1
    return _counts(state, "integers", size, dtype, ndim, low=low, high=high)


def bernoulli(
    state: Variable, p: Any = 0.5, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw 1 with probability ``p``, else 0.

    A ``p`` above 1 counts as 1; a negative one or NaN as 0; constants are checked.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.bernoulli(start, 0.5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([0, 1, 1])
    """
    check_ranges("bernoulli", {"p": p})
    kind = None
    if not is_python_number(p) and dtypes.is_float(as_tensor_variable(p).dtype):
        kind = as_tensor_variable(p).dtype
    kind, (p,) = read_reals("bernoulli", kind and dtypes.working(kind), p)
    lengths = read_size("bernoulli", size, ndim, p)
    after, u = standard(state, "standard_uniform", lengths, kind)
    z = cast(lt(u, fitted("bernoulli", lengths, p)), resolve_dtype(dtype))
    return after, without_derivative("bernoulli", z, p)


def binomial(
    state: Variable,
    n: Any = 1,
    p: Any = 0.5,
    size: Any = None,
    dtype: Any = "int64",
    ndim: int | None = None,
) -> Pair:
    """Draw the number of successes in ``n`` trials with probability ``p`` each; one trial is a
    ``bernoulli``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.binomial(start, 10, 0.5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([6, 4, 2])
    """
    if isinstance(n, int | np.integer) and n == 1:
        return bernoulli(state, p, size, dtype, ndim)
    return _counts(state, "binomial", size, dtype, ndim, n=n, p=p)


def negative_binomial(
    state: Variable,
    n: Any,
    p: Any,
    size: Any = None,
    dtype: Any = "int64",
    ndim: int | None = None,
) -> Pair:
    """Draw the number of failures before ``n`` successes, with probability ``p`` of success.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.negative_binomial(start, 3, 0.5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([0, 6, 1])
    """
    return _counts(state, "negative_binomial", size, dtype, ndim, n=n, p=p)


def poisson(
    state: Variable, lam: Any = 1.0, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw from Poisson's distribution: k with probability e^-lam lam^k / k!.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.poisson(start, 4.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([2, 0, 7])
    """
    return _counts(state, "poisson", size, dtype, ndim, lam=lam)


def geometric(
    state: Variable, p: Any, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw the number, from 1, of the first trial that succeeds, each with probability ``p``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.geometric(start, 0.5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([2, 1, 1])
    """
    return _counts(state, "geometric", size, dtype, ndim, p=p)


def hypergeometric(
    state: Variable,
    ngood: Any,
    nbad: Any,
    nsample: Any,
    size: Any = None,
    dtype: Any = "int64",
    ndim: int | None = None,
) -> Pair:
    """Draw the number of good items in a sample of ``nsample`` out of ``ngood + nbad``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.hypergeometric(start, 5, 3, 4, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([3, 3, 2])
    """
    return _counts(
        state, "hypergeometric", size, dtype, ndim, ngood=ngood, nbad=nbad, nsample=nsample
    )


def logseries(
    state: Variable, p: Any, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw k = 1, 2, ... with probability -p^k / (k log(1 - p)).

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.logseries(start, 0.5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([1, 1, 5])
    """
    return _counts(state, "logseries", size, dtype, ndim, p=p)


def zipf(
    state: Variable, a: Any, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw k = 1, 2, ... with probability proportional to k^-a, a > 1.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.zipf(start, 2.0, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([2, 1, 2])
    """
    return _counts(state, "zipf", size, dtype, ndim, a=a)


# -- outcomes


def _rows_of(
    name: str, p: Any, size: Any, ndim: int | None, *others: TensorVariable
) -> tuple[TensorVariable, Lengths]:
    """Return probabilities of outcomes along the last axis, and the lengths of a draw with them."""
    p = as_tensor_variable(p)
    if p.ndim == 0:
        raise ShapeError(f"{name}: p is the scalar {p}; outcomes lie along its last axis")
    if dtypes.is_discrete(p.dtype):
        p = cast_to(p, "float64")
    lengths = read_size(name, size, ndim, p[..., 0], *others)
    # The axis of outcomes has no counterpart in the draw, so its own length is used.
    return fitted(name, [*lengths, shape_tuple(p)[-1]], p), lengths


def categorical(
    state: Variable, p: Any, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Draw k = 0, 1, ... with probability ``p[..., k]``: one number for each row of ``p``.

    Raises
    ------
    ValueError
        When a function runs, if a row of ``p`` has negative numbers, or another sum than 1.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> state = T.random.state("state")
    >>> _, k = T.random.categorical(state, [0.0, 0.0, 1.0], size=4)
    >>> k.eval({state: np.random.default_rng(1)})
    array([2, 2, 2, 2])
    """
    check_ranges("categorical", {"p": p})
    p, lengths = _rows_of("categorical", p, size, ndim)
    after, z = draw(state, "categorical", lengths, "int64", p)
    return after, cast(z, resolve_dtype(dtype))


def multinomial(
    state: Variable,
    n: Any,
    pvals: Any,
    size: Any = None,
    dtype: Any = "int64",
    ndim: int | None = None,
) -> Pair:
    """Draw how often each outcome occurs among ``n``, for each row of ``pvals``: the result has one
    axis more than ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> state = T.random.state("state")
    >>> _, z = T.random.multinomial(state, 10, [[0.0, 1.0], [1.0, 0.0]])
    >>> z.eval({state: np.random.default_rng(1)})
    array([[ 0, 10],
           [10,  0]])
    """
    check_ranges("multinomial", {"n": n, "pvals": pvals})
    kind = resolve_dtype(dtype)
    n = as_tensor_variable(n)
    p, lengths = _rows_of("multinomial", pvals, size, ndim, n)
    if isinstance(n, TensorConstant) and n.ndim == 0 and n.data == 1:
        after, k = draw(state, "categorical", lengths, "int64", p)
        outcomes = arange(shape_tuple(p)[-1])
        return after, cast(eq(outcomes, dimshuffle(k, *range(k.ndim), "x")), kind)
    after, z = draw(state, "multinomial", lengths, "int64", fitted("multinomial", lengths, n), p)
    return after, cast(z, kind)
