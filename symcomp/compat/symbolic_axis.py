"""Axes known only at run time: ``join(axis, x, y)``, ``sort(x, axis)`` and others.

The graph is a lazy choice among all axes. Static lengths of the results are those common to every
axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert, ifelse
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import and_, eq, ge, lt, switch
from symcomp.ops.shapes import joining
from symcomp.ops.shapes.shape import ForgetLengths, normalize_axis
from symcomp.ops.sorting import functions as sorting

__all__ = ["SYMBOLIC_AXES"]


def _is_symbolic(axis: Any) -> bool:
    return isinstance(axis, TensorVariable) and not isinstance(axis, Constant)


def along(name: str, axis: Any, rank: int, build: Callable[[int], Any]) -> Any:
    """Return ``build(axis)``, or a choice among ``build(0)``, ``build(1)``, ... if it is symbolic.

    Parameters
    ----------
    name : str
        For messages.
    axis : int or integer scalar
        From ``-rank`` to ``rank - 1``.
    rank : int
    build : callable
        Takes an int, and returns a variable or a list of variables.
    """
    if not _is_symbolic(axis):
        return build(normalize_axis(name, axis, rank))
    if axis.ndim or not dtypes.is_discrete(axis.dtype):
        raise DTypeError(f"{name}: axis must be an integer scalar, got {axis} ({axis.type})")
    if not rank:
        raise ShapeError(f"{name}: a scalar has no axis {axis}")
    message = f"{name}: the axis must be from {-rank} to {rank - 1}"
    inside = and_(ge(axis, -rank), lt(axis, rank))
    number = Assert(message, ValueError)(switch(lt(axis, 0), axis + rank, axis), inside)
    found = build(rank - 1)
    for k in reversed(range(rank - 1)):
        found = ifelse(eq(number, k), build(k), found)
    return found


def _of_any_length(x: Any) -> TensorVariable:
    """Return ``x`` without static lengths."""
    x = as_tensor_variable(x)
    known = tuple(a for a, n in enumerate(x.type.shape) if n is not None)
    return ForgetLengths(known)(x) if known else x


def join(axis: Any, *tensors: Any) -> TensorVariable:
    """Return the tensors one after the other along an axis."""
    if not _is_symbolic(axis):
        return joining.join(axis, *tensors)
    parts = [_of_any_length(x) for x in tensors]
    if not parts:
        raise TypeError("join: no tensors given")
    return along("join", axis, parts[0].ndim, lambda k: joining.join(k, *parts))


def concatenate(tensor_list: Sequence[Any], axis: Any = 0) -> TensorVariable:
    """Return ``join(axis, *tensor_list)``."""
    if isinstance(tensor_list, TensorVariable):
        return joining.concatenate(tensor_list, axis)
    return join(axis, *tensor_list)


def split(x: Any, splits_size: Any, n_splits: int | None = None, axis: Any = 0) -> Any:
    """Return ``n_splits`` pieces of ``x`` along an axis, of the lengths ``splits_size``."""
    if not _is_symbolic(axis):
        return joining.split(x, splits_size, n_splits, axis)
    x = _of_any_length(x)
    return along("split", axis, x.ndim, lambda k: joining.split(x, splits_size, n_splits, axis=k))


def _sorting(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(a: Any, axis: Any = -1, kind: Any = "quicksort", order: Any = None) -> Any:
        if not _is_symbolic(axis):
            return function(a, axis, kind, order)
        a = as_tensor_variable(a)
        return along(function.__name__, axis, a.ndim, lambda k: function(a, k, kind, order))

    of.__name__ = of.__qualname__ = function.__name__
    of.__doc__ = function.__doc__
    return of


SYMBOLIC_AXES: dict[str, Callable[..., Any]] = {
    "argsort": _sorting(sorting.argsort),
    "concatenate": concatenate,
    "join": join,
    "sort": _sorting(sorting.sort),
    "split": split,
}
