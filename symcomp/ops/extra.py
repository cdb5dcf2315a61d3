"""Counting, one-hot codes, index arithmetic and other small tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.alloc import zeros
from symcomp.ops.control import assert_op
from symcomp.ops.convert import as_tensor_variable, resolve_dtype
from symcomp.ops.creation import arange
from symcomp.ops.gather import take_along_axis
from symcomp.ops.index import getitem, inc_subtensor, set_subtensor
from symcomp.ops.join import concatenate
from symcomp.ops.linalg import dot
from symcomp.ops.reduce import all as all_
from symcomp.ops.reduce import max as max_
from symcomp.ops.reduce import mean
from symcomp.ops.scalar_logic import ge, gt, switch
from symcomp.ops.scalar_math import cast, conj, maximum
from symcomp.ops.shape import as_lengths, flatten, shape_tuple
from symcomp.ops.sort import argsort


def bincount(
    x: Any, weights: Any = None, minlength: Any = None, assert_nonneg: bool = False
) -> TensorVariable:
    """How often each of 0, 1, 2 ... occurs in an integer vector, or the sum of its weights.

    Parameters
    ----------
    x : integer vector
        Not negative.
    weights : vector, optional
    minlength : int or integer scalar, optional
        The least length of the result, which is one more than the largest element.
    assert_nonneg : bool
        Check that no element is negative when the function runs.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.lvector("x")
    >>> T.bincount(x).eval({x: [0, 2, 2]})
    array([1, 0, 2])
    """
    x = as_tensor_variable(x)
    if x.ndim != 1 or not dtypes.is_discrete(x.dtype):
        raise DTypeError(f"bincount: x must be an integer vector, got {x} ({x.type})")
    if assert_nonneg:
        x = assert_op(x, all_(ge(x, 0)), msg="bincount: x has a negative element")
    # A zero put in front lets the maximum exist for an empty vector.
    padded = concatenate([np.zeros(1, np.int64), cast(x, "int64") + 1])
    size = max_(padded)
    if minlength is not None:
        size = maximum(size, minlength)
    amount = (
        as_tensor_variable(np.ones((), np.int64))
        if weights is None
        else as_tensor_variable(weights)
    )
    return inc_subtensor(getitem(zeros([size], amount.dtype), x), amount)


def bartlett(M: Any) -> TensorVariable:
    """The Bartlett (triangular) window of M points.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.bartlett(3).eval()
    array([0., 1., 0.])
    """
    m = as_tensor_variable(M)
    if m.ndim != 0 or not dtypes.is_discrete(m.dtype):
        raise DTypeError(f"bartlett: M must be an integer scalar, got {m} ({m.type})")
    k = cast(arange(m), "float64")
    half = cast(maximum(m - 1, 1), "float64") / 2
    ramp = 1 - abs(k - half) / half
    return switch(gt(m, 1), ramp, 1.0)


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> TensorVariable:
    """A matrix whose row i has a one in column ``y[i]``.

    Parameters
    ----------
    y : integer vector
    nb_class : int or integer scalar
        Number of columns.
    dtype : optional
        By default floatX.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> y = T.lvector("y")
    >>> T.to_one_hot(y, 3).eval({y: [2, 0]})
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    y = as_tensor_variable(y)
    if y.ndim != 1 or not dtypes.is_discrete(y.dtype):
        raise DTypeError(f"to_one_hot: y must be an integer vector, got {y} ({y.type})")
    n = shape_tuple(y)[0]
    one = as_tensor_variable(np.ones((), resolve_dtype(dtype)))
    return set_subtensor(getitem(zeros([n, nb_class], dtype), (arange(n), y)), one)


def unravel_index(indices: Any, dims: Any, order: str = "C") -> tuple[TensorVariable, ...]:
    """The position along each axis of elements numbered in the flattened tensor of shape ``dims``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> i = T.lscalar("i")
    >>> [int(v.eval({i: 5})) for v in T.unravel_index(i, (2, 3))]
    [1, 2]
    """
    lengths, left = _numbering("unravel_index", dims, order), as_tensor_variable(indices)
    found = []
    for n in reversed(lengths):
        found.append(left % n)
        left = left // n
    positions = found if order == "F" else found[::-1]
    return tuple(positions)


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C"
) -> TensorVariable:
    """The number, in the flattened tensor of shape ``dims``, of elements given by their positions.

    Parameters
    ----------
    multi_index : sequence of integer tensors
        One for each axis.
    dims : sequence of int
    mode : {"raise", "wrap", "clip"}
        What to do with positions out of range.
    order : {"C", "F"}

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> i = T.lscalar("i")
    >>> int(T.ravel_multi_index((i, 2), (2, 3)).eval({i: 1}))
    5
    """
    lengths = _numbering("ravel_multi_index", dims, order)
    places = [as_tensor_variable(i) for i in multi_index]
    places = places if order == "C" else places[::-1]
    if len(places) != len(lengths):
        raise ShapeError(f"ravel_multi_index: {len(places)} positions for {len(lengths)} axes")
    total: Any = None
    for place, n in zip(places, lengths, strict=True):
        fitted = _fitted(place, n, mode)
        total = fitted if total is None else total * n + fitted
    return total


def _fitted(place: Any, n: Any, mode: str) -> Any:
    if mode == "wrap":
        return place % n
    if mode == "clip":
        return place.clip(0, n - 1)
    if mode != "raise":
        raise ValueError(f"ravel_multi_index: mode={mode!r}: must be 'raise', 'wrap' or 'clip'")
    return assert_op(
        place, ge(place, 0), gt(n, place), msg="ravel_multi_index: a position is out of range"
    )


def _numbering(name: str, dims: Any, order: str) -> list[Any]:
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order={order!r}: must be 'C' or 'F'")
    lengths = as_lengths(dims, name)
    return lengths if order == "C" else lengths[::-1]


@dataclass(frozen=True)
class Contiguous(Op):
    """z = x in row-major order in memory; x itself if it is."""

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        return np.ascontiguousarray(x).reshape(x.shape)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]

    view_map = {0: (0,)}


def cpu_contiguous(x: Any) -> TensorVariable:
    """``x``, laid out in row-major order in memory."""
    return Contiguous()(as_tensor_variable(x))


def inverse_permutation(perm: Any) -> TensorVariable:
    """The permutations that undo those in the last axis of ``perm``."""
    return argsort(perm, axis=-1)


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> TensorVariable:
    """The last axis of ``x`` permuted by ``y``, which broadcasts: z[..., j] = x[..., y[..., j]].

    Parameters
    ----------
    x : tensor_like
    y : integer tensor_like
        Permutations; a vector permutes all rows alike.
    inverse : bool
        Apply the inverse permutations.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    y = inverse_permutation(y) if inverse else y
    if y.ndim == 1:
        return getitem(x, (..., y))
    return take_along_axis(x, y, -1)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> TensorVariable:
    """The covariance matrix of variables, one in each row.

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
    divisor = (0 if bias else 1) if ddof is None else ddof
    x = cast(x, "float64") if dtypes.is_discrete(x.dtype) else x
    centred: Any = x - mean(x, axis=1, keepdims=True)
    other = conj(centred) if dtypes.is_complex(x.dtype) else centred
    count = cast(as_tensor_variable(shape_tuple(x)[1] - divisor), dtypes.real_part(x.dtype))
    return dot(centred, other.T) / count


def _as_rows(m: Any, rowvar: bool) -> TensorVariable:
    m = as_tensor_variable(m)
    if m.ndim > 2:
        raise ShapeError(f"cov: {m} ({m.type}) has more than 2 axes")
    if m.ndim < 2:
        return flatten(m).dimshuffle("x", 0)
    return m if rowvar else m.T


__all__ = [
    "bartlett", "bincount", "cov", "cpu_contiguous", "inverse_permutation",
    "permute_row_elements", "ravel_multi_index", "to_one_hot", "unravel_index",
]  # fmt: skip
