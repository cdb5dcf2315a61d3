"""``symcomp.typed_list``: lists whose elements are of one type, as values of graphs."""

from collections.abc import Sequence
from typing import Any

from symcomp.ops.typed_list import (
    Append,
    Count,
    Extend,
    GetItem,
    GetSlice,
    Index,
    Insert,
    Length,
    MakeList,
    Remove,
    Reverse,
    TypedListConstant,
    TypedListType,
    TypedListVariable,
    element_of,
    made_list,
)  # fmt: skip


def make_list(a: Sequence[Any]) -> Any:
    """Make a list of variables of one type, at least one.

    Parameters
    ----------
    a : sequence of variables, array_like, or such sequences

    Returns
    -------
    TypedListVariable
        A list of the elements' type; differing lengths of tensors are not static.

    Raises
    ------
    DTypeError
        If there are no elements, or they are of different dtypes or ranks.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.typed_list import make_list
    >>> x = T.dvector("x")
    >>> make_list([x, x * 2])[1].eval({x: [1, 2]})
    array([2., 4.])
    """
    return made_list(a)


def getitem(x: Any, index: Any) -> Any:
    """Return an element of a list, or for a slice a list: ``x[index]``.

    Parameters
    ----------
    x : TypedListVariable
    index : int, integer scalar, or slice of such

    Raises
    ------
    IndexOutOfRangeError
        When the function runs: the list has no such element.

    Examples
    --------
    >>> from symcomp.typed_list import getitem, make_list
    >>> getitem(make_list([10, 20, 30]), 1).eval()
    array(20)
    """
    return element_of(x, index)


def append(x: Any, element: Any) -> Any:
    """Return the list ``x`` followed by ``element``, which must be of its elements' type.

    Examples
    --------
    >>> from symcomp.typed_list import append, make_list
    >>> [v.item() for v in append(make_list([10, 20]), 30).eval()]
    [10, 20, 30]
    """
    return Append()(x, element)


def extend(x: Any, other: Any) -> Any:
    """Return the list ``x`` followed by the elements of ``other``, a list of the same type.

    Examples
    --------
    >>> from symcomp.typed_list import extend, make_list
    >>> [v.item() for v in extend(make_list([10]), make_list([20, 30])).eval()]
    [10, 20, 30]
    """
    return Extend()(x, other)


def insert(x: Any, index: Any, element: Any) -> Any:
    """Return the list ``x`` with ``element`` before the position ``index``, as ``list.insert`` does
    it.

    Examples
    --------
    >>> from symcomp.typed_list import insert, make_list
    >>> [v.item() for v in insert(make_list([10, 30]), 1, 20).eval()]
    [10, 20, 30]
    """
    return Insert()(x, index, element)


def remove(x: Any, element: Any) -> Any:
    """Return the list ``x`` without the first element that is equal to ``element``.

    Raises
    ------
    ValueError
        When the function runs: there is none. Equal tensors have equal shapes, dtypes and elements.

    Examples
    --------
    >>> from symcomp.typed_list import make_list, remove
    >>> [v.item() for v in remove(make_list([10, 20]), 10).eval()]
    [20]
    """
    return Remove()(x, element)


def reverse(x: Any) -> Any:
    """Return the list ``x`` in reverse order.

    Examples
    --------
    >>> from symcomp.typed_list import make_list, reverse
    >>> [v.item() for v in reverse(make_list([10, 20])).eval()]
    [20, 10]
    """
    return Reverse()(x)


def index_(x: Any, element: Any) -> Any:
    """Return the first position, int64, of an element that is equal to ``element``.

    Raises
    ------
    ValueError
        When the function runs: there is none.

    Examples
    --------
    >>> from symcomp.typed_list import index_, make_list
    >>> index_(make_list([10, 20]), 20).eval()
    array(1)
    """
    return Index()(x, element)


def count(x: Any, element: Any) -> Any:
    """Count the elements of ``x`` that are equal to ``element``; int64.

    Examples
    --------
    >>> from symcomp.typed_list import count, make_list
    >>> count(make_list([10, 20, 10]), 10).eval()
    array(2)
    """
    return Count()(x, element)


def length(x: Any) -> Any:
    """Return the number of elements of ``x``; int64.

    Examples
    --------
    >>> from symcomp.typed_list import length, make_list
    >>> length(make_list([10, 20])).eval()
    array(2)
    """
    return Length()(x)


__all__ = [
    "append", "Append", "count", "Count", "extend", "Extend", "getitem", "GetItem", "GetSlice",
    "Index", "index_", "insert", "Insert", "Length", "length", "MakeList", "make_list", "remove",
    "Remove", "Reverse", "reverse", "TypedListConstant", "TypedListType", "TypedListVariable",
]  # fmt: skip
