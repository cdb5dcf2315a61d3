"""Parts of tensors read and written, and the positions of nonzero elements, as users call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, is_python_number, with_rank
from symcomp.ops.elementwise.scalar_math import second
from symcomp.ops.indexing.index import IncSubtensor, Nonzero, Subtensor
from symcomp.ops.indexing.index_pattern import read_key
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import Reshape, Shape, ShapeI, reshape, shape_tuple


def getitem(x: TensorVariable, key: Any) -> TensorVariable:
    """Return ``x[key]``, with NumPy's meaning of integers, slices, None, ``...``, and integer and
    bool arrays.

    Parameters
    ----------
    x : TensorVariable
    key
        Integers may be symbolic, slices may have symbolic parts. A symbolic bool array selects a
        number of
        elements that is not known before.

    Raises
    ------
    ShapeError, DTypeError, IndexOutOfRangeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, i = T.dvector("x"), T.lscalar("i")
    >>> x[i:][::-1].eval({x: [1, 2, 3], i: 1})
    array([3., 2.])
    """
    pattern, inputs = read_key(x, key)
    owner = x.owner
    if (
        owner is not None
        and isinstance(owner.op, Shape)
        and len(pattern) == 1
        and isinstance(pattern[0], int)
    ):
        return ShapeI(pattern[0] % x.type.shape[0])(owner.inputs[0])  # type: ignore[operator]
    return Subtensor(pattern)(x, *inputs)


def iterate(x: TensorVariable) -> Iterator[TensorVariable]:
    """Return the elements along the first axis, if their number is known."""
    if x.ndim == 0:
        raise TypeError(f"cannot iterate over the scalar {x}")
    if x.type.shape[0] is None:
        raise TypeError(
            f"cannot iterate over {x} ({x.type}): its length is not known when the graph is "
            "built; use scan, or give the "
            "length in its type"
        )
    return iter([getitem(x, i) for i in range(x.type.shape[0])])


def set_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
    """Return a copy of a tensor with a part of it replaced.

    Parameters
    ----------
    x : TensorVariable
        The part, written as an index expression: ``base[...]``.
    y : tensor_like
        The new values, which are broadcast. Its dtype must convert to that of ``x`` without loss.
    inplace : bool
        Overwrite the base instead of copying it.
    tolerate_inplace_aliasing : bool
        Accepted for Theano's sake.

    Returns
    -------
    TensorVariable
        A tensor of the type of the base.

    Raises
    ------
    TypeError, ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.set_subtensor(x[:2], 0).eval({x: [1, 2, 3]})
    array([0., 0., 3.])
    """
    return _write("set_subtensor", x, y, True, inplace)


def inc_subtensor(
    x: Any,
    y: Any,
    inplace: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> TensorVariable:
    """Return a copy of a tensor with ``y`` added to a part of it; see ``set_subtensor``.

    Values at repeated positions of an index array are added up, unless ``ignore_duplicates``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.inc_subtensor(x[[0, 0]], 1).eval({x: [1, 2]})
    array([3., 2.])
    """
    if ignore_duplicates:
        return _write("inc_subtensor", x, as_tensor_variable(x) + y, True, inplace)
    return _write("inc_subtensor", x, y, False, inplace)


def _write(name: str, x: Any, y: Any, set_: bool, inplace: bool) -> TensorVariable:
    if not isinstance(x, TensorVariable):
        raise TypeError(f"{name}: x must be an index expression base[...], got {x!r}")
    y = as_common(y, like=[x.dtype])[0] if is_python_number(y) else as_tensor_variable(y)
    if not np.can_cast(y.dtype, x.dtype, "safe"):
        raise DTypeError(
            f"{name}: y is {y.dtype}, which the {x.dtype} tensor {x} cannot hold without loss: "
            "cast it with "
            f"T.cast(y, {x.dtype!r})"
        )
    if y.ndim > x.ndim:
        raise ShapeError(
            f"{name}: y ({y.type}) has more axes than the part that it goes to ({x.type})"
        )
    y = with_rank(cast_to(y, x.dtype), x.ndim)
    while x.owner is not None:
        op, base = x.owner.op, x.owner.inputs[0]
        if isinstance(op, Subtensor):
            return IncSubtensor(op.pattern, set_, inplace)(base, y, *x.owner.inputs[1:])
        if isinstance(op, DimShuffle):
            position = {a: i for i, a in enumerate(op.order) if a != "x"}
            y = DimShuffle(y.ndim, tuple(position.get(a, "x") for a in range(op.ndim)))(y)
        elif isinstance(op, Reshape):
            y = reshape(second(x, y), shape_tuple(base))
        else:
            break
        x = base
    raise TypeError(
        f"{name}: {x} ({x.type}) is no index expression base[...], so there is nothing to write to"
    )


def nonzero(a: Any, return_matrix: bool = False) -> Any:
    """Return the positions of the elements that are not 0.

    Parameters
    ----------
    a : tensor_like
        At least 1 axis.
    return_matrix : bool
        True: one int64 matrix with a row per axis. False: a tuple of vectors, one per axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nonzero(x)[0].eval({x: [0, 5, 0, 7]})
    array([1, 3])
    """
    positions = Nonzero()(as_tensor_variable(a))
    return as_tensor_variable(positions) if return_matrix else tuple(positions)


def flatnonzero(a: Any) -> TensorVariable:
    """Return the positions, in the flattened tensor, of the elements that are not 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.flatnonzero([[0, 1], [2, 0]]).eval()
    array([1, 2])
    """
    return nonzero(reshape(a, [-1]))[0]


def nonzero_values(a: Any) -> TensorVariable:
    """Return the elements that are not 0, as a vector.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nonzero_values([0.0, 3.0, 4.0]).eval()
    array([3., 4.])
    """
    a = as_tensor_variable(a)
    return getitem(a, nonzero(a))


__all__ = ["flatnonzero", "getitem", "inc_subtensor", "nonzero", "nonzero_values", "set_subtensor"]
