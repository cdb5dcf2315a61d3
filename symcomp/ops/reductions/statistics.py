"""Statistics of samples: counts of integers, covariance matrices."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import assert_op
from symcomp.ops.convert import (
    as_int,
    as_tensor_variable,
    cast_to,
)
from symcomp.ops.elementwise.scalar_logic import eq, ge
from symcomp.ops.elementwise.scalar_math import cast, conj, maximum, mul
from symcomp.ops.indexing.index_arithmetic import whole_numbers
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor
from symcomp.ops.linalg.functions import dot
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.reductions.functions import max as max_
from symcomp.ops.reductions.functions import mean
from symcomp.ops.shapes.axes import squeeze
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import as_length, shape_tuple


def bincount(
    x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False
) -> TensorVariable:
    """Count how often each of 0, 1, 2 ... occurs in an integer vector, or sum its weights.

    Parameters
    ----------
    x : integer vector
        Not negative.
    weights : vector, optional
        As many as elements. The result has their dtype.
    minlength : int or integer scalar, optional
        The least length of the result, which is one more than the largest element.
    assert_nonneg : bool
        Accepted for Theano's sake: that no element is negative is always checked when the function
        runs.

    Raises
    ------
    DTypeError, ShapeError
    AssertionError
        When the function runs: a negative element, or weights of another length.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.lvector("x")
    >>> T.bincount(x).eval({x: [0, 2, 2]})
    array([1, 0, 2])
    """
    x = whole_numbers("bincount", "x", x, ndim=1)
    x = assert_op(x, all_(ge(x, 0)), msg="bincount: x has a negative element")
    amount = as_tensor_variable(np.ones((), np.int64) if weights is None else weights)
    if weights is not None:
        if amount.ndim != 1:
            raise ShapeError(f"bincount: weights must be a vector, got {amount} ({amount.type})")
        # A single weight must not stretch over all elements.
        paired = eq(shape_tuple(amount)[0], shape_tuple(x)[0])
        amount = assert_op(amount, paired, msg="bincount: weights and x differ in length")
    # The leading zero makes the maximum of an empty vector exist.
    size = max_(concatenate([np.zeros(1, np.int64), x + 1]))
    if minlength is not None:
        size = maximum(size, as_length(minlength, "bincount"))
    return inc_subtensor(getitem(zeros([size], amount.dtype), x), amount)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> TensorVariable:
    """Return the covariance matrix of variables, one in each row; a scalar for a single variable.

    Parameters
    ----------
    m, y : tensor_like
        Vector or matrix; the rows of ``y`` are added.
    rowvar : bool
        False: one variable in each column.
    bias : bool
        Divide by n instead of n - 1.
    ddof : int, optional
        Divide by n - ddof.
    fweights : integer vector, optional
        The number of times that each observation is counted.
    aweights : vector, optional
        The weight of each observation.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.cov(x).eval({x: [[1, 3], [3, 1]]})
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    x = _as_rows(m, rowvar)
    if y is not None:
        x = concatenate([x, _as_rows(y, rowvar)])
    divisor = (0 if bias else 1) if ddof is None else as_int(ddof, "cov", "ddof")
    x = cast(x, "float64") if dtypes.is_discrete(x.dtype) else x
    if fweights is None and aweights is None:
        centre: Any = mean(x, axis=1, keepdims=True)
        weighted: Any = x - centre
        norm: Any = shape_tuple(x)[1] - divisor
    else:
        w, norm = _weights(fweights, aweights, dtypes.real_part(x.dtype), divisor)
        centre = (x * w).sum(axis=1, keepdims=True) / w.sum()
        weighted = (x - centre) * w
    norm = cast(maximum(as_tensor_variable(norm), 0), dtypes.real_part(x.dtype))
    return squeeze(dot(weighted, conj(x - centre).T) / norm)


def _weights(fweights: Any, aweights: Any, dtype: str, ddof: int) -> tuple[Any, Any]:
    """Return the weight of each observation, and what a sum of weighted squares is divided by."""
    given = {"fweights": fweights, "aweights": aweights}
    parts = {name: as_tensor_variable(w) for name, w in given.items() if w is not None}
    for name, part in parts.items():
        if part.ndim != 1 or dtypes.is_complex(part.dtype):
            raise ShapeError(f"cov: {name} must be a real vector, got {part.type}")
    if "fweights" in parts and not dtypes.is_discrete(parts["fweights"].dtype):
        raise DTypeError(f"cov: fweights must be integers, got {parts['fweights'].type}")
    factors = {name: cast_to(part, dtype) for name, part in parts.items()}
    w: Any = reduce(mul, factors.values())
    # Importance weights lose more degrees of freedom the less even they are.
    lost = ddof if aweights is None else ddof * (w * factors["aweights"]).sum() / w.sum()
    return w, w.sum() - lost


def _as_rows(m: Any, rowvar: bool) -> TensorVariable:
    m = as_tensor_variable(m)
    if m.ndim > 2:
        raise ShapeError(f"cov: {m} ({m.type}) has more than 2 axes")
    if m.ndim < 2:
        return flatten(m).dimshuffle("x", 0)
    return m if rowvar else m.T


__all__ = ["bincount", "cov"]
