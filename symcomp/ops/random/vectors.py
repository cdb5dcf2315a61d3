"""Draws of dependent elements (vectors and permutations), as functions of the state: each returns
the state after it, and the draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import ge, gt, le
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.indexing.gather import take
from symcomp.ops.indexing.index_arithmetic import permute_row_elements
from symcomp.ops.linalg.decompositions import cholesky
from symcomp.ops.linalg.functions import matmul
from symcomp.ops.nnet.softmax import Softmax
from symcomp.ops.random.discrete import categorical, integers
from symcomp.ops.random.gamma_distributions import log_gamma
from symcomp.ops.random.ranges import check_ranges, known_value
from symcomp.ops.random.sizes import (
    Lengths,
    fitted,
    positive,
    read_reals,
    read_size,
    standard,
    without_derivative,
)
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.reductions.functions import min as min_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.shape import as_length, known_length, product_of, reshape, shape_tuple
from symcomp.ops.sorting.functions import argsort

Pair = tuple[Any, Any]


def dirichlet(
    state: Variable, alpha: Any, size: Any = None, dtype: Any = None, ndim: int | None = None
) -> Pair:
    """Draw probabilities of the outcomes along the last axis of ``alpha``: density proportional to
    the product of z_k^(alpha_k - 1). The result has one axis more than ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.dirichlet(start, [1.0, 2.0, 3.0], size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([[0.23 , 0.311, 0.459],
           [0.536, 0.154, 0.31 ],
           [0.006, 0.276, 0.719]])
    """
    check_ranges("dirichlet", {"alpha": alpha})
    kind, (alpha,) = read_reals("dirichlet", dtype, alpha)
    if alpha.ndim == 0:
        raise ShapeError(f"dirichlet: alpha is the scalar {alpha}; a vector at least is needed")
    lengths = read_size("dirichlet", size, ndim, alpha[..., 0])
    whole: Lengths = [*lengths, as_length(shape_tuple(alpha)[-1], "dirichlet")]
    alpha = fitted("dirichlet", whole, positive("dirichlet", "alpha", alpha))
    after, logs = log_gamma(state, whole, kind, alpha)
    return after, Softmax(len(whole) - 1)(logs)


def multivariate_normal(
    state: Variable,
    mean: Any,
    cov: Any,
    size: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Draw normal vectors with the mean ``mean`` and the positive definite covariance matrix
    ``cov``. The result has one axis more than ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.multivariate_normal(start, [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], size=(3,))
    >>> z.eval({start: np.random.default_rng(0)}).round(3)
    array([[ 0.126, -0.052],
           [ 0.64 ,  0.411],
           [-0.536,  0.045]])
    """
    check_ranges("multivariate_normal", {"cov": cov})
    kind, (mean, cov) = read_reals("multivariate_normal", dtype, mean, cov)
    if mean.ndim == 0 or cov.ndim != 2:
        raise ShapeError(
            f"multivariate_normal: mean is {mean.type}, cov {cov.type}; mean must have vectors "
            "along its last axis, cov be a matrix"
        )
    lengths = read_size("multivariate_normal", size, ndim, mean[..., 0])
    whole: Lengths = [*lengths, as_length(shape_tuple(cov)[0], "multivariate_normal")]
    after, z = standard(state, "standard_normal", whole, kind)
    factor = cholesky(cov)
    turned = matmul(z, factor.T)
    return after, fitted("multivariate_normal", whole, mean) + turned


# -- permutations


def _orders(state: Variable, lengths: Lengths, n: Any) -> Pair:
    """Draw permutations of 0 .. n - 1 along a new last axis: the order of random numbers."""
    n = as_length(n, "permutation", 0)
    after, keys = standard(state, "standard_uniform", [*lengths, n], "float64")
    return after, argsort(keys, axis=-1)


def permutation(
    state: Variable, x: Any, size: Any = None, dtype: Any = "int64", ndim: int | None = None
) -> Pair:
    """Permute the numbers 0 .. x - 1, along an axis after those of ``size``; if ``x`` has axes,
    permute ``x`` along its first.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> state = T.random.state("state")
    >>> _, order = T.random.permutation(state, 5, size=2)
    >>> sorted(order.eval({state: np.random.default_rng(1)})[0].tolist())
    [0, 1, 2, 3, 4]
    """
    x = as_tensor_variable(x)
    if x.ndim == 0:
        check_ranges("permutation", {"x": x})
        after, order = _orders(state, read_size("permutation", size, ndim), x)
        return after, cast(order, dtype)
    if size is not None:
        raise ShapeError(f"permutation: size goes with a number, not with {x} ({x.type})")
    after, order = _orders(state, [], shape_tuple(x)[0])
    return after, take(x, order, axis=0)


def shuffle_row_elements(state: Variable, x: Any) -> Pair:
    """Permute each row of ``x`` (along the last axis) independently.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.shuffle_row_elements(start, [1, 2, 3])
    >>> z.eval({start: np.random.default_rng(0)})
    array([3, 2, 1])
    """
    x = as_tensor_variable(x)
    if x.ndim == 0:
        raise ShapeError(f"shuffle_row_elements: {x} is a scalar; it has no rows")
    *lengths, n = (as_length(m, "shuffle_row_elements") for m in shape_tuple(x))
    after, order = _orders(state, lengths, n)
    return after, permute_row_elements(x, order)


def distinct(state: Variable, p: Any, count: Any, dtype: Any = "int64") -> Pair:
    """Draw ``count`` different outcomes for each row of ``p``, one after the other with
    probabilities proportional to ``p`` among those left.

    Takes the first of exponential waiting times with rates p (Efraimidis and Spirakis, 2006).
    """
    p = as_tensor_variable(p)
    if p.ndim == 0:
        raise ShapeError(f"choice: p is the scalar {p}; outcomes lie along its last axis")
    check_ranges("distinct", {"p": p})
    p = cast_to(p, "float64")
    count = as_length(count, "choice")
    _check_enough(count, p)
    lengths = [as_length(n, "choice") for n in shape_tuple(p)]
    enough = ge(min_(sum_(gt(p, 0), axis=-1)), count) if p.ndim > 1 else ge(sum_(gt(p, 0)), count)
    p = Assert("choice: p must not be negative or NaN, and positive for as many outcomes as drawn")(
        p, all_(ge(p, 0)), enough
    )
    after, waits = standard(state, "standard_exponential", lengths, "float64")
    chosen = cast(argsort(waits / p, axis=-1)[..., :count], dtype)
    return after, without_derivative("choice", chosen, p)


def choice(
    state: Variable,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    dtype: Any = None,
    ndim: int | None = None,
) -> Pair:
    """Draw elements of ``a`` along its first axis, or of 0 .. a - 1 if it is a number.

    Parameters
    ----------
    state : Variable
    a : integer scalar or tensor
    size : optional
        The shape of the result, before the further axes of ``a``.
    replace : bool
        If true, an element may be drawn again.
    p : vector, optional
        Probabilities; by default all alike.
    dtype : optional
        The dtype of the result; by default that of ``a``, int64 for a number.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.tensor import random
    >>> start = random.state("start")
    >>> _, z = random.choice(start, 5, size=(3,))
    >>> z.eval({start: np.random.default_rng(0)})
    array([4, 3, 2])
    """
    a = as_tensor_variable(a)
    if a.ndim == 0 and not dtypes.is_discrete(a.dtype):
        raise DTypeError(f"choice: a is {a} ({a.type}); it must be an integer or have axes")
    n = as_length(a if a.ndim == 0 else shape_tuple(a)[0], "choice")
    check_ranges("choice", {"a": n, "p": p if replace else None})
    if p is not None:
        p = as_tensor_variable(p)
        if p.ndim != 1:
            raise ShapeError(f"choice: p is {p.type}; it must be a vector")
        p = _one_for_each(n, p)
    lengths = read_size("choice", size, ndim)
    if replace and p is None:
        after, index = integers(state, 0, n, lengths)
    elif replace:
        after, index = categorical(state, p, lengths)
    else:
        after, index = _without_replacement(state, n, lengths, p)
    found: TensorVariable = index if a.ndim == 0 else take(a, index, axis=0)
    # p has no gradient: the elements drawn are not connected to their indices
    if a.ndim > 0 and p is not None:
        found = without_derivative("choice", found, p)
    return after, found if dtype is None else cast(found, dtype)


def _one_for_each(n: TensorVariable, p: TensorVariable) -> TensorVariable:
    """Return ``p``, checked to have ``n`` elements: at once if both lengths are known."""
    wanted, found = known_length(n), p.type.shape[0]
    if wanted is None or found is None:
        return Assert("choice: p must have as many elements as there are to choose from")(
            p, le(n, shape_tuple(p)[0]), ge(n, shape_tuple(p)[0])
        )
    if wanted != found:
        raise ShapeError(
            f"choice: p ({p.type}) has {found} elements, but there are {wanted} to choose from: "
            "give one probability for each"
        )
    return p


def _check_enough(count: TensorVariable, p: TensorVariable) -> None:
    """Raise a ValueError if constants ask for more outcomes than there are."""
    wanted = known_value(count)
    if wanted is not None and isinstance(p, TensorConstant) and p.data.size:
        most = int((p.data > 0).sum(axis=-1).min())
        if wanted > most:
            raise ValueError(
                f"choice: {wanted} different outcomes are drawn, but p ({p.type}) is positive for "
                f"{most}: draw fewer, or pass replace=True"
            )


def _without_replacement(state: Variable, n: TensorVariable, lengths: Lengths, p: Any) -> Pair:
    """Draw different numbers below ``n``, in an array of these lengths."""
    count = product_of(lengths) if lengths else np.int64(1)
    if p is not None:
        after, index = distinct(state, p, count)
    else:
        wanted, most = known_value(count), known_value(n)
        if wanted is not None and most is not None and wanted > most:
            raise ValueError(
                f"choice: {wanted} different elements are drawn of {most}: draw fewer, or pass "
                "replace=True"
            )
        count = Assert("choice: more elements are drawn than there are; pass replace=True")(
            count, le(count, n)
        )
        after, order = _orders(state, [], n)
        index = order[:count]
    return after, reshape(index, lengths) if lengths else index[0]
