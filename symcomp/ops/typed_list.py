"""Lists whose elements are of one type: the type, its variables, and the ops on them.

A list is an immutable value: each op gives a new list. The elements are not copied, so a result is
a view of all lists and elements that it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Natural
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, IndexOutOfRangeError
from symcomp.ops.convert import NoneConst, as_tensor_variable, cast_to
from symcomp.ops.shapes.shape import shape_tuple

NO_DERIVATIVE = "lists have none; stack their elements in a tensor (T.stack) to differentiate"


# -- the type


@record
class TypedListType(Type):
    """The type of lists with elements of the type ``ttype``.

    Parameters
    ----------
    ttype : Type
    depth : int
        The number of additional nested lists: with 1, it is a list of lists of ``ttype``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.typed_list import TypedListType
    >>> items = TypedListType(T.dvector)("items")
    >>> f = symcomp.function([items], [items.length(), items[-1] * 2])
    >>> f([[1.0], [2.0, 3.0]])
    [array(2), array([4., 6.])]
    """

    ttype: Type

    def __init__(self, ttype: Type, depth: int = 0) -> None:
        if not isinstance(ttype, Type):
            raise TypeError(f"TypedListType: ttype is {ttype!r}; a type, as T.dvector, is needed")
        if depth < 0:
            raise ValueError(f"TypedListType: depth is {depth}; it must not be negative")
        inner = TypedListType(ttype, depth - 1) if depth else ttype
        object.__setattr__(self, "ttype", inner)

    def get_depth(self) -> int:
        """Return the number of lists that the elements themselves are nested in."""
        return self.ttype.get_depth() + 1 if isinstance(self.ttype, TypedListType) else 0

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a list of the elements of ``value``, each as ``ttype`` takes it."""
        if not isinstance(value, list) and (strict or not isinstance(value, tuple)):
            raise DTypeError(f"a list is needed for {self}, not {value!r} ({type(value).__name__})")
        found = []
        for i, element in enumerate(value):
            try:
                found.append(self.ttype.filter(element, strict, allow_downcast))
            except (TypeError, ValueError) as problem:
                raise type(problem)(f"element {i} of a value of {self}: {problem}") from None
        return found

    def is_super(self, other: Type) -> bool:
        return isinstance(other, TypedListType) and self.ttype.is_super(other.ttype)

    def values_eq(self, a: Any, b: Any) -> bool:
        return len(a) == len(b) and all(map(self.ttype.values_eq, a, b))

    def values_eq_approx(self, a: Any, b: Any) -> bool:
        return len(a) == len(b) and all(map(self.ttype.values_eq_approx, a, b))

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Tell whether an element of one list may share memory with one of the other, or with the
        other itself.
        """
        if not isinstance(a, list):
            a, b = b, a
        if isinstance(b, list):
            return any(self.may_share_memory(a, y) for y in b)
        return any(self.ttype.may_share_memory(x, b) for x in a)

    def copy_value(self, value: Any) -> list[Any]:
        return [self.ttype.copy_value(x) for x in value]

    def __str__(self) -> str:
        return f"list of {self.ttype}"


class TypedListVariable(Variable):
    """A list in the graph, with the methods of Python's lists; they give new lists."""

    type: TypedListType

    @property
    def ttype(self) -> Type:
        """The type of the elements."""
        return self.type.ttype

    @property
    def dtype(self) -> str:
        """The dtype of the elements, if they are tensors."""
        kind: Any = self.ttype
        return str(kind.dtype)

    @property
    def ndim(self) -> int:
        """The number of lists that the elements are nested in."""
        return self.type.get_depth() + 1

    def __getitem__(self, index: Any) -> Any:
        return element_of(self, index)

    def __len__(self) -> int:
        raise TypeError(
            f"the length of {self} ({self.type}) is not known when the graph is built: "
            "use .length()"
        )

    def __iter__(self) -> Any:
        raise TypeError(
            f"{self} ({self.type}) cannot be iterated, for its length is not known when the graph "
            "is built: loop over symcomp.tensor.arange(x.length()) by symcomp.scan"
        )

    def append(self, element: Any) -> Any:
        """Return the list with one element more; see ``typed_list.append``."""
        return Append()(self, element)

    def extend(self, other: Any) -> Any:
        """Return the list extended by another; see ``typed_list.extend``."""
        return Extend()(self, other)

    def insert(self, index: Any, element: Any) -> Any:
        """Return the list with an element before ``index``; see ``typed_list.insert``."""
        return Insert()(self, index, element)

    def remove(self, element: Any) -> Any:
        """Return the list without the first equal element; see ``typed_list.remove``."""
        return Remove()(self, element)

    def reverse(self) -> Any:
        """Return the list in reverse order; see ``typed_list.reverse``."""
        return Reverse()(self)

    def count(self, element: Any) -> Any:
        """Return the number of equal elements; see ``typed_list.count``."""
        return Count()(self, element)

    def ind(self, element: Any) -> Any:
        """Return the first position of an element; see ``typed_list.index_``."""
        return Index()(self, element)

    def length(self) -> Any:
        """Return the number of elements; see ``typed_list.length``."""
        return Length()(self)


class TypedListConstant(Constant, TypedListVariable):
    """A list that is known; merged with others by identity."""

    def signature(self) -> Any:
        """Return a key that is equal for the same list only."""
        return (self.type, id(self.data))


TypedListType.variable_class = TypedListVariable
TypedListType.constant_class = TypedListConstant


# -- arguments


def as_list(name: str, x: Any, like: Type | None = None) -> Variable:
    """Return ``x`` as a list variable; a Python list becomes one, with elements of the type of
    ``like``'s.
    """
    if isinstance(x, Apply):
        (x,) = x.outputs
    if isinstance(x, list | tuple) and like is not None:
        return like.make_constant(list(x)) if not _has_variable(x) else made_list(x)
    if isinstance(x, list | tuple):
        x = made_list(x)
    if not isinstance(x, Variable) or not isinstance(x.type, TypedListType):
        kind = x.type if isinstance(x, Variable) else type(x).__name__
        raise DTypeError(f"{name}: {x!r} ({kind}) is no typed list: make one by make_list")
    return x


def made_list(a: Any) -> Any:
    """Return the list of some variables or values; Python lists among them become lists."""
    if not isinstance(a, list | tuple):
        raise DTypeError(f"make_list: a list or tuple is needed, not {a!r} ({type(a).__name__})")
    return MakeList(len(a))(*map(_as_variable, a))


def _as_variable(x: Any) -> Variable:
    if isinstance(x, Variable):
        return x
    return made_list(x) if isinstance(x, list | tuple) and x else as_tensor_variable(x)


def element_of(x: Any, index: Any) -> Any:
    """Return an element of a list, or for a slice a list."""
    if isinstance(index, slice):
        return GetSlice()(x, index.start, index.stop, index.step)
    return GetItem()(x, index)


def _has_variable(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_variable, x))
    return isinstance(x, Variable)


def as_element(name: str, x: Any, value: Any) -> Variable:
    """Return ``value`` as a variable of the type of the elements of ``x``."""
    kind = x.type.ttype
    try:
        if isinstance(kind, TypedListType) and isinstance(value, list | tuple):
            value = as_list(name, value, kind)
        if isinstance(value, Variable):
            return kind.filter_variable(value)
        return kind.make_constant(kind.copy_value(kind.filter(value)))
    except (TypeError, ValueError) as problem:
        raise DTypeError(f"{name}: {value!r} is no element for a {x.type}: {problem}") from problem


def as_index(name: str, index: Any) -> Variable:
    """Return ``index`` as an int64 scalar."""
    i = as_tensor_variable(index)
    if i.ndim or not dtypes.is_discrete(i.dtype) or i.dtype == "bool":
        raise DTypeError(f"{name}: index {index!r} ({i.type}) must be an integer scalar")
    return cast_to(i, "int64")


def _as_bound(part: Any) -> Variable:
    """Return a part of a slice: an int64 scalar, or a constant None."""
    if isinstance(part, Variable) and part.type == NoneConst.type:
        return part
    return NoneConst if part is None else as_index("getitem", part)


def _position(op: Op, x: Any, element: Any, equal: Any) -> int:
    for i, candidate in enumerate(x):
        if equal(candidate, element):
            return i
    raise ValueError(f"{op}: none of the {len(x)} elements of the list is equal to {element!r}")


# -- ops


class ListOp(Op):
    """An op on lists; its first input is one."""

    moves = True
    no_derivative = NO_DERIVATIVE

    def output_types(self, x: Variable, *others: Variable) -> list[Type]:
        return [x.type]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]


class NumberOp(ListOp):
    """An op that computes an int64 number from a list."""

    def output_types(self, x: Variable, *others: Variable) -> list[Type]:
        return [TensorType("int64", ())]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] for _ in node.inputs]


class ElementOp(ListOp):
    """An op on a list and an element."""

    def as_inputs(self, x: Any, element: Any) -> list[Variable]:
        x = as_list(str(self), x)
        return [x, as_element(str(self), x, element)]


@record
class MakeList(Op):
    """z = [x_1, .., x_count], of elements of one type."""

    count: Natural

    moves = True
    no_derivative = NO_DERIVATIVE

    def output_types(self, *elements: Variable) -> list[Type]:
        if not elements or len(elements) != self.count:
            raise DTypeError(
                f"{self} is given {len(elements)} elements. (An empty list has no type: make it by "
                "TypedListType(ttype).make_constant([]))"
            )
        return [TypedListType(_common_type(elements))]

    def perform(self, *elements: Any) -> list[Any]:
        return list(elements)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """A view of all elements."""
        return {0: tuple(range(self.count))}


def _common_type(elements: Sequence[Variable]) -> Type:
    """Return a type that contains all elements' types; of tensors, with the lengths that all share.
    """
    first: Any = elements[0].type
    for x in elements[1:]:
        kind: Any = x.type
        tensors = isinstance(first, TensorType) and isinstance(kind, TensorType)
        if tensors and (first.dtype, first.ndim) == (kind.dtype, kind.ndim):
            pairs = zip(first.shape, kind.shape, strict=True)
            first = TensorType(first.dtype, [n if n == m else None for n, m in pairs])
        elif kind != first:
            raise DTypeError(
                f"make_list: the elements are of different types, {first} and {kind}; cast them, "
                "or give them as many axes"
            )
    return first


@record
class GetItem(ListOp):
    """z = x[index].   Inputs: a list, an int64 scalar"""

    view_map = {0: (0,)}

    def as_inputs(self, x: Any, index: Any) -> list[Variable]:
        return [as_list("getitem", x), as_index("getitem", index)]

    def output_types(self, x: Any, *others: Variable) -> list[Type]:
        return [x.type.ttype]

    def perform(self, x: Any, index: Any) -> Any:
        if not -len(x) <= index < len(x):
            raise IndexOutOfRangeError(
                f"getitem: index {index} is out of range for a list of {len(x)} elements"
            )
        return x[int(index)]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        z = node.outputs[0]
        return [shape_tuple(z) if isinstance(z, TensorVariable) else None]


@record
class GetSlice(ListOp):
    """z = x[start:stop:step].   Inputs: a list; int64 scalars, or None"""

    view_map = {0: (0,)}

    def as_inputs(self, x: Any, *parts: Any) -> list[Variable]:
        return [as_list("getitem", x), *map(_as_bound, parts)]

    def perform(self, x: Any, *parts: Any) -> list[Any]:
        start, stop, step = (None if v is None else int(v) for v in parts)
        if step == 0:
            raise ValueError("getitem: the step of a slice of a list is 0; it must not be")
        return list(x[start:stop:step])


@record
class Append(ElementOp):
    """z = x + [element]"""

    view_map = {0: (0, 1)}

    def perform(self, x: Any, element: Any) -> list[Any]:
        return [*x, element]


@record
class Extend(ListOp):
    """z = x + other   Inputs: two lists of one type"""

    view_map = {0: (0, 1)}

    def as_inputs(self, x: Any, other: Any) -> list[Variable]:
        x = as_list("extend", x)
        y = as_list("extend", other, x.type)
        if not x.type.is_super(y.type):
            raise DTypeError(f"extend: {y} ({y.type}) does not fit {x} ({x.type})")
        return [x, y]

    def perform(self, x: Any, other: Any) -> list[Any]:
        return [*x, *other]


@record
class Insert(ListOp):
    """z = x[:index] + [element] + x[index:]   Inputs: a list, an int64 scalar, an element"""

    view_map = {0: (0, 2)}

    def as_inputs(self, x: Any, index: Any, element: Any) -> list[Variable]:
        x = as_list("insert", x)
        return [x, as_index("insert", index), as_element("insert", x, element)]

    def perform(self, x: Any, index: Any, element: Any) -> list[Any]:
        return [*x[: int(index)], element, *x[int(index) :]]


@record
class Remove(ElementOp):
    """z = x without the first element that is equal to the second input."""

    view_map = {0: (0,)}

    def bind(self, node: Apply) -> Any:
        equal = _equality(node)

        def compute(x: Any, element: Any) -> list[Any]:
            i = _position(self, x, element, equal)
            return [*x[:i], *x[i + 1 :]]

        return compute


@record
class Reverse(ListOp):
    """z = x in reverse order."""

    view_map = {0: (0,)}

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_list("reverse", x)]

    def perform(self, x: Any) -> list[Any]:
        return list(reversed(x))


@record
class Index(NumberOp, ElementOp):
    """z = the first i where x[i] is equal to the second input."""

    def bind(self, node: Apply) -> Any:
        equal = _equality(node)
        return lambda x, element: np.asarray(_position(self, x, element, equal), np.int64)


@record
class Count(NumberOp, ElementOp):
    """z = the number of i where x[i] is equal to the second input."""

    def bind(self, node: Apply) -> Any:
        equal = _equality(node)
        return lambda x, element: np.asarray(sum(equal(y, element) for y in x), np.int64)


@record
class Length(NumberOp):
    """z = the number of elements."""

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_list("length", x)]

    def perform(self, x: Any) -> Any:
        return np.asarray(len(x), np.int64)


def _equality(node: Apply) -> Any:
    x: Any = node.inputs[0]
    return x.type.ttype.values_eq


__all__ = [
    "Append", "Count", "Extend", "GetItem", "GetSlice", "Index", "Insert", "Length", "MakeList",
    "Remove", "Reverse", "TypedListConstant", "TypedListType", "TypedListVariable",
]  # fmt: skip
