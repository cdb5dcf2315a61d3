"""Arithmetic on indices: one-hot codes, flat indices, permutations."""

from __future__ import annotations

from collections.abc import Sequence
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
    resolve_dtype,
    with_rank,
)
from symcomp.ops.elementwise.scalar_logic import ge, gt
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import (
    as_length,
    as_lengths,
    product_of,
    shape_tuple,
)
from symcomp.ops.sorting.functions import argsort


def whole_numbers(name: str, argument: str, x: Any, ndim: int | None = None) -> TensorVariable:
    """Return ``x`` in int64."""
    v = as_tensor_variable(x)
    if not dtypes.is_discrete(v.dtype) or ndim not in (None, v.ndim):
        kind = "an integer vector" if ndim == 1 else "integers"
        raise DTypeError(f"{name}: {argument} must be {kind}, got {v} ({v.type})")
    return cast_to(v, "int64")


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> TensorVariable:
    """Return a matrix whose row i has a one in column ``y[i]``.

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
    y = whole_numbers("to_one_hot", "y", y, ndim=1)
    n, nb_class = shape_tuple(y)[0], as_length(nb_class, "to_one_hot", 0)
    one = as_tensor_variable(np.ones((), resolve_dtype(dtype)))
    return set_subtensor(getitem(zeros([n, nb_class], dtype), (arange(n), y)), one)


def unravel_index(
    indices: Any, dims: Any, order: str = "C", ndim: int | None = None
) -> tuple[TensorVariable, ...]:
    """Return the position along each axis of elements numbered in the flattened tensor of shape
    ``dims``.

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
    given = whole_numbers("unravel_index", "indices", indices)
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
    """Return the number, in the flattened tensor of shape ``dims``, of elements given by their
    positions.

    Parameters
    ----------
    multi_index : sequence of integer tensors
        One for each axis.
    dims : sequence of int
    mode : {"raise", "wrap", "clip"}, or a tuple of them, one for each axis
        The treatment of positions out of range.
    order : {"C", "F"}

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> i = T.lscalar("i")
    >>> int(T.ravel_multi_index((i, 2), (2, 3)).eval({i: 1}))
    5
    """
    lengths = _numbering("ravel_multi_index", dims, order, len(multi_index))
    places = [whole_numbers("ravel_multi_index", "multi_index", i) for i in multi_index]
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


def inverse_permutation(perm: Any) -> TensorVariable:
    """Return the permutations that undo those in the last axis of ``perm``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.inverse_permutation([2, 0, 1]).eval()
    array([1, 2, 0])
    """
    perm = as_tensor_variable(perm)
    whole = whole_numbers("inverse_permutation", "perm", perm)
    return cast_to(argsort(whole, axis=-1), "int64" if perm.dtype == "bool" else perm.dtype)


def permute_row_elements(x: Any, y: Any, inverse: bool = False) -> TensorVariable:
    """Return the last axis of ``x`` permuted by ``y``: z[..., j] = x[..., y[..., j]]. Both
    broadcast.

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
    x, y = as_tensor_variable(x), whole_numbers("permute_row_elements", "y", y)
    y = inverse_permutation(y) if inverse else y
    if y.ndim == 1:
        return getitem(x, (..., y))
    ndim = max(x.ndim, y.ndim)
    return take_along_axis(with_rank(x, ndim), with_rank(y, ndim), -1)


__all__ = [
    "inverse_permutation",
    "permute_row_elements",
    "ravel_multi_index",
    "to_one_hot",
    "unravel_index",
]
