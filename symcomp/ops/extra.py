"""Counting, one-hot codes, index arithmetic and other small tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.alloc import zeros
from symcomp.ops.axes import squeeze
from symcomp.ops.control import assert_op
from symcomp.ops.convert import (
    as_int,
    as_tensor_variable,
    cast_to,
    resolve_dtype,
    with_rank,
)
from symcomp.ops.creation import arange
from symcomp.ops.gather import take_along_axis
from symcomp.ops.index import getitem, inc_subtensor, set_subtensor
from symcomp.ops.join import concatenate
from symcomp.ops.linalg import dot
from symcomp.ops.reduce import all as all_
from symcomp.ops.reduce import max as max_
from symcomp.ops.reduce import mean
from symcomp.ops.scalar_logic import eq, ge, gt, switch
from symcomp.ops.scalar_math import cast, conj, maximum, mul
from symcomp.ops.shape import (
    as_integer,
    as_length,
    as_lengths,
    flatten,
    product_of,
    shape_tuple,
)
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
    x = _whole_numbers("bincount", "x", x, ndim=1)
    x = assert_op(x, all_(ge(x, 0)), msg="bincount: x has a negative element")
    amount = as_tensor_variable(np.ones((), np.int64) if weights is None else weights)
    if weights is not None:
        if amount.ndim != 1:
            raise ShapeError(f"bincount: weights must be a vector, got {amount} ({amount.type})")
        # A single weight would otherwise stretch over all elements.
        paired = eq(shape_tuple(amount)[0], shape_tuple(x)[0])
        amount = assert_op(amount, paired, msg="bincount: weights and x differ in length")
    # A zero put in front lets the maximum exist for an empty vector.
    size = max_(concatenate([np.zeros(1, np.int64), x + 1]))
    if minlength is not None:
        size = maximum(size, as_length(minlength, "bincount"))
    return inc_subtensor(getitem(zeros([size], amount.dtype), x), amount)


def _whole_numbers(name: str, argument: str, x: Any, ndim: int | None = None) -> TensorVariable:
    """``x`` in int64."""
    v = as_tensor_variable(x)
    if not dtypes.is_discrete(v.dtype) or ndim not in (None, v.ndim):
        kind = "an integer vector" if ndim == 1 else "integers"
        raise DTypeError(f"{name}: {argument} must be {kind}, got {v} ({v.type})")
    return cast_to(v, "int64")


def bartlett(M: Any) -> TensorVariable:
    """The Bartlett (triangular) window of M points.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.bartlett(3).eval()
    array([0., 1., 0.])
    """
    m = as_integer(M, "bartlett", "M")
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
    y = _whole_numbers("to_one_hot", "y", y, ndim=1)
    n, nb_class = shape_tuple(y)[0], as_length(nb_class, "to_one_hot", 0)
    one = as_tensor_variable(np.ones((), resolve_dtype(dtype)))
    return set_subtensor(getitem(zeros([n, nb_class], dtype), (arange(n), y)), one)


def unravel_index(
    indices: Any, dims: Any, order: str = "C", ndim: int | None = None
) -> tuple[TensorVariable, ...]:
    """The position along each axis of elements numbered in the flattened tensor of shape ``dims``.

    Parameters
    ----------
    indices : integer tensor_like
        0 to the number of elements less 1, which is checked when the function runs.
    dims : sequence of int or integer scalar, or integer vector
    order : {"C", "F"}
    ndim : int, optional
        The length of ``dims``, where it is a vector whose length is not known.

    Returns
    -------
    tuple of int64 tensors
        One for each axis, of the shape of ``indices``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> i = T.lscalar("i")
    >>> [int(v.eval({i: 5})) for v in T.unravel_index(i, (2, 3))]
    [1, 2]
    """
    lengths = _numbering("unravel_index", dims, order, ndim)
    if ndim is not None and as_int(ndim, "unravel_index", "ndim") != len(lengths):
        raise ShapeError(f"unravel_index: dims has {len(lengths)} lengths, not ndim={ndim}")
    given = _whole_numbers("unravel_index", "indices", indices)
    left: Any = assert_op(
        given,
        ge(given, 0),
        gt(product_of(lengths), given),
        msg="unravel_index: an index is out of range",
    )
    found = []
    for n in reversed(lengths):
        found.append(left % n)
        left = left // n
    positions = found if order == "F" else found[::-1]
    return tuple(positions)


def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str | Sequence[str] = "raise", order: str = "C"
) -> TensorVariable:
    """The number, in the flattened tensor of shape ``dims``, of elements given by their positions.

    Parameters
    ----------
    multi_index : sequence of integer tensors
        One for each axis.
    dims : sequence of int
    mode : {"raise", "wrap", "clip"}, or a tuple of them, one for each axis
        What to do with positions out of range.
    order : {"C", "F"}

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> i = T.lscalar("i")
    >>> int(T.ravel_multi_index((i, 2), (2, 3)).eval({i: 1}))
    5
    """
    lengths = _numbering("ravel_multi_index", dims, order, len(multi_index))
    places = [_whole_numbers("ravel_multi_index", "multi_index", i) for i in multi_index]
    modes: list[str] = [mode] * len(places) if isinstance(mode, str) else list(mode)
    if not len(places) == len(modes) == len(lengths):
        raise ShapeError(
            f"ravel_multi_index: {len(places)} positions and {len(modes)} modes for "
            f"{len(lengths)} axes"
        )
    if order == "F":
        places, modes = places[::-1], modes[::-1]
    total: Any = None
    for place, n, fit in zip(places, lengths, modes, strict=True):
        fitted = _fitted(place, n, fit)
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


def _numbering(name: str, dims: Any, order: str, ndim: int | None) -> list[Any]:
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order={order!r}: must be 'C' or 'F'")
    if isinstance(dims, TensorVariable) and ndim is not None and dims.type.shape == (None,):
        dims = [dims[i] for i in range(as_int(ndim, name, "ndim", 0))]
    lengths = as_lengths(dims, name)
    return lengths if order == "C" else lengths[::-1]


@record
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
    """The permutations that undo those in the last axis of ``perm``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.inverse_permutation([2, 0, 1]).eval()
    array([1, 2, 0])
    """
    perm = as_tensor_variable(perm)
    whole = _whole_numbers("inverse_permutation", "perm", perm)
    return cast_to(argsort(whole, axis=-1), "int64" if perm.dtype == "bool" else perm.dtype)


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> TensorVariable:
    """The last axis of ``x`` permuted by ``y``: z[..., j] = x[..., y[..., j]]. Both broadcast.

    Parameters
    ----------
    x : tensor_like
    y : integer tensor_like
        Permutations; a vector permutes all rows alike.
    inverse : bool
        Apply the inverse permutations.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.permute_row_elements(x, [2, 0, 1]).eval({x: [1, 2, 3]})
    array([3., 1., 2.])
    """
    x, y = as_tensor_variable(x), _whole_numbers("permute_row_elements", "y", y)
    y = inverse_permutation(y) if inverse else y
    if y.ndim == 1:
        return getitem(x, (..., y))
    ndim = max(x.ndim, y.ndim)
    return take_along_axis(with_rank(x, ndim), with_rank(y, ndim), -1)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> TensorVariable:
    """The covariance matrix of variables, one in each row; a scalar for a single variable.

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
        How often each observation is counted.
    aweights : vector, optional
        How much each observation weighs.

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
    """The weight of each observation, and what a sum of weighted squares is divided by."""
    given = {"fweights": fweights, "aweights": aweights}
    parts = {name: as_tensor_variable(w) for name, w in given.items() if w is not None}
    for name, part in parts.items():
        if part.ndim != 1 or dtypes.is_complex(part.dtype):
            raise ShapeError(f"cov: {name} must be a real vector, got {part.type}")
    if "fweights" in parts and not dtypes.is_discrete(parts["fweights"].dtype):
        raise DTypeError(f"cov: fweights must be integers, got {parts['fweights'].type}")
    factors = {name: cast_to(part, dtype) for name, part in parts.items()}
    w: Any = reduce(mul, factors.values())
    # Importance weights lose more degrees of freedom the less evenly they are spread.
    lost = ddof if aweights is None else ddof * (w * factors["aweights"]).sum() / w.sum()
    return w, w.sum() - lost


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
