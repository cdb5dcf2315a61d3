"""Index expressions of sparse matrices: ``x[i, j]``, slices, lists of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.errors import AxisError, DTypeError, IndexOutOfRangeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import lt, switch
from symcomp.ops.elementwise.scalar_math import maximum, minimum
from symcomp.ops.indexing.subtensors import getitem as dense_getitem
from symcomp.ops.indexing.subtensors import nonzero
from symcomp.ops.shapes.creation import arange
from symcomp.sparse.constructors import as_indices
from symcomp.sparse.convert import compressed
from symcomp.sparse.op import as_scalar, known_length, length
from symcomp.sparse.patterns import common_indices
from symcomp.sparse.structure import TakePairs, TakeRows, cropped, take_list, wrapped_positions

WHOLE = slice(None)


def getitem(x: Any, key: Any) -> Any:
    """Return a part of a sparse matrix: ``x[key]``.

    Parameters
    ----------
    x : sparse matrix
    key
        One or two of: an integer, a slice, an integer list or vector, a vector of bool. Two
        integers give a scalar; two lists of equal length a dense vector, one element for each pair,
        as in NumPy; everything else gives a sparse matrix, an integer one row or column.

    Raises
    ------
    SparsePatternError, IndexOutOfRangeError
        If a position does not exist, when it is known.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> value = scipy.sparse.csr_array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    >>> float(x[1, 2].eval({x: value}))
    4.0
    >>> x[::-1, 1:].eval({x: value}).toarray()
    array([[3., 4.],
           [2., 0.]])
    """
    x = compressed(x)
    keys = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [WHOLE] * (3 - len(keys))
    if len(keys) > 2:
        raise AxisError(f"getitem: {len(keys)} indices for {x} ({x.type}), which has 2 axes")
    keys += [WHOLE] * (2 - len(keys))
    kinds = [_kind_of(k) for k in keys]
    if kinds == ["number", "number"]:
        return _element(x, *keys)
    if "list" in kinds and "slice" not in kinds and "mask" not in kinds:
        return _pairs(x, keys, kinds)
    for axis, (k, kind) in enumerate(zip(keys, kinds, strict=True)):
        x = _along(x, axis, k, kind)
    return x


def _kind_of(key: Any) -> str:
    if isinstance(key, slice):
        return "slice"
    if isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_):
        return "number"
    if isinstance(key, list | tuple | np.ndarray | Variable):
        v = as_tensor_variable(key)
        if v.ndim == 0 and dtypes.is_integer(v.dtype):
            return "number"
        if v.ndim == 1 and v.dtype == "bool":
            return "mask"
        if v.ndim == 1 and dtypes.is_integer(v.dtype):
            return "list"
    raise DTypeError(
        f"getitem: {key!r} is no index of a sparse matrix: integers, slices, and vectors of "
        "integers or bool are"
    )


def _along(x: Any, axis: int, key: Any, kind: str) -> Any:
    if kind == "slice":
        return _slice(x, axis, key)
    if kind == "list":
        return take_list(x, key, axis)
    if kind == "mask":
        return TakeRows(axis)(x, as_indices("getitem", "positions", nonzero(key)[0]))
    n = length(x, axis)
    start = _position(key, n, axis)
    return TakeRows(axis)(x, cast_to(start, "int64").dimshuffle("x"))


def _position(key: Any, n: Any, axis: int) -> TensorVariable:
    """Return an integer index counted from the start; refuse it if it is known not to exist."""
    if isinstance(key, int | np.integer) and isinstance(n, int) and not -n <= key < n:
        raise IndexOutOfRangeError(f"getitem: index {key} is not on axis {axis}, of length {n}")
    if isinstance(key, int | np.integer) and key >= 0:
        return as_scalar(int(key))
    position = cast_to(as_tensor_variable(key), "int64")
    return wrapped_positions(position, n)


def _slice(x: Any, axis: int, key: slice) -> Any:
    if key == WHOLE:
        return x
    n = length(x, axis)
    step = 1 if key.step is None else known_length(key.step)
    if step == 0:
        raise ValueError("getitem: the step of a slice is 0; it must not be")
    known = all(
        part is None or isinstance(part, int | np.integer) for part in (key.start, key.stop)
    )
    if step is None:
        raise DTypeError(f"getitem: the step of a slice is {key.step}; it must be a known integer")
    if known and isinstance(n, int):
        places = range(*key.indices(n))
        if step == 1:
            return cropped(x, axis, places.start, max(places.stop, places.start), len(places))
        return TakeRows(axis)(x, as_tensor_variable(np.array(places, x.type.index_dtype)))
    start, stop = _ends(key, as_scalar(n), step)
    if step == 1:
        return cropped(x, axis, start, maximum(start, stop))
    ids = arange(start, stop, step, dtype="int64")
    return TakeRows(axis)(x, cast_to(ids, x.type.index_dtype))


def _ends(key: slice, n: Any, step: int) -> tuple[Any, Any]:
    """Return the first and the last position of a slice, clipped as Python does it."""
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def clipped(part: Any, default: Any) -> Any:
        if part is None:
            return as_scalar(default)
        v = cast_to(as_tensor_variable(part), "int64")
        return minimum(maximum(switch(lt(v, 0), v + n, v), low), high)

    first, last = (0, n) if step > 0 else (n - 1, -1)
    return clipped(key.start, first), clipped(key.stop, last)


def _pairs(x: Any, keys: list[Any], kinds: list[str]) -> Any:
    """Return the elements at pairs of positions; a number goes with each element of a list."""
    vectors = []
    for axis, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        if kind == "number":
            vectors.append(cast_to(as_tensor_variable(key), "int64"))
        else:
            vectors.append(
                wrapped_positions(as_indices("getitem", "positions", key), length(x, axis))
            )
    if "number" in kinds:
        axis = kinds.index("number")
        x = _along(x, axis, keys[axis], "number")
        other = vectors[1 - axis]
        zeros = other * 0
        vectors[axis] = zeros
        return TakePairs()(x, *common_indices(*vectors))
    return TakePairs()(x, *common_indices(*vectors))


def get_item_scalar(x: Any, index: Any) -> Any:
    """Return the element ``x[i, j]`` of a sparse matrix, a dense scalar.

    Parameters
    ----------
    x : sparse matrix
    index : two integers or scalars

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.get_item_scalar(x, (1, 0))
    >>> float(z.eval({x: scipy.sparse.csr_array([[1.0], [2.0]])}))
    2.0
    """
    return _element(compressed(x), *index)


def _element(x: Any, i: Any, j: Any) -> Any:
    places = [_position(k, length(x, a), a).dimshuffle("x") for a, k in enumerate((i, j))]
    return dense_getitem(TakePairs()(x, *common_indices(*places)), 0)


def get_item_2d(x: Any, key: Any) -> Any:
    """Return a part of a sparse matrix by two slices or integers; see ``x[...]``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.get_item_2d(sparse.eye(3), (slice(0, 2), slice(1, 3)))).eval()
    array([[0., 0.],
           [1., 0.]])
    """
    return getitem(x, key)


def get_item_list(x: Any, index: Any) -> Any:
    """Return rows of a sparse matrix.

    Parameters
    ----------
    x : sparse matrix
    index : integer list or vector

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.get_item_list(x, [1, 1]).eval({x: scipy.sparse.csr_array([[1.0], [2.0]])}).toarray()
    array([[2.],
           [2.]])
    """
    return take_list(x, index, 0)


def get_item_2lists(x: Any, ind1: Any, ind2: Any) -> Any:
    """Return the elements ``x[ind1[k], ind2[k]]`` of a sparse matrix, a dense vector.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.get_item_2lists(x, [0, 1], [0, 0])
    >>> z.eval({x: scipy.sparse.csr_array([[1.0], [2.0]])})
    array([1., 2.])
    """
    return getitem(x, (ind1, ind2))


__all__ = [
    "get_item_2d", "get_item_2lists", "get_item_list", "get_item_scalar", "getitem",
]  # fmt: skip
