"""Shapes as values: shape, reshape, and assertions about shapes that are checked at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes, Axis, Natural, Rank
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.errors import AxisError, DTypeError, ShapeError
from symcomp.ops.convert import as_int, as_rank, as_tensor_variable, cast_to, stack_first_axis
from symcomp.ops.elementwise.scalar_logic import eq, lt, switch
from symcomp.ops.shapes.stack import Stack

# -- reading shapes


@record
class Shape(Op):
    """z = the lengths of x.   (...) -> (x.ndim,), int64"""

    moves = True
    no_derivative = "lengths do not depend on values"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [TensorType("int64", (x.ndim,))]

    def perform(self, x: Any) -> Any:
        return np.asarray(x.shape, np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(len(shapes[0]),)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


@record
class ShapeI(Op):
    """z = the length of axis ``axis`` of x.   (...) -> (), int64"""

    axis: Axis

    moves = True
    no_derivative = "lengths do not depend on values"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if not 0 <= self.axis < x.ndim:
            raise ShapeError(f"shape: {x} ({x.type}) has no axis {self.axis}")
        return [TensorType("int64", ())]

    def perform(self, x: Any) -> Any:
        return np.asarray(x.shape[self.axis], np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


def shape(x: Any) -> TensorVariable:
    """Return the lengths of ``x`` as an int64 vector.

    Parameters
    ----------
    x : tensor_like

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.shape(x).eval({x: [[1, 2, 3]]})
    array([1, 3])
    """
    return Shape()(as_tensor_variable(x))


def shape_tuple(x: TensorVariable) -> tuple[Any, ...]:
    """Return the lengths of ``x``: int where known, else an int64 scalar variable."""
    return tuple(n if n is not None else ShapeI(a)(x) for a, n in enumerate(x.type.shape))


def require_axes(op: Op, axes: Sequence[int], x: TensorVariable) -> None:
    """Raise AxisError if ``x``, an input of ``op``, has fewer axes than a parameter names."""
    for axis in axes:
        if not 0 <= axis < x.ndim:
            raise AxisError(f"{op}: axis {axis} does not exist in {x} ({x.type})")


def normalize_axis(name: str, axis: Any, ndim: int) -> int:
    """Return ``axis`` counted from the front; raise if there is none such."""
    number = as_int(axis, name, "axis")
    if not -ndim <= number < ndim:
        raise AxisError(f"{name}: axis {number} does not exist in a tensor with {ndim} axes")
    return number % ndim


def normalize_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return all axes for None, else the given ones, counted from the front and sorted."""
    axis = axis.data if isinstance(axis, Constant) else axis
    if axis is None:
        return tuple(range(ndim))
    axis = axis.tolist() if isinstance(axis, np.ndarray) else axis
    several = axis if isinstance(axis, list | tuple | range) else [axis]
    axes = [normalize_axis(name, a, ndim) for a in several]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: an axis is given twice in {axis}")
    return tuple(sorted(axes))


def get_vector_length(v: Any) -> int:
    """Return the length of a vector whose length is known when the graph is built.

    Raises
    ------
    ShapeError
        If ``v`` is no vector, or its length is unknown.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.get_vector_length(T.dmatrix("x").shape)
    2
    """
    v = as_tensor_variable(v)
    if v.ndim != 1 or v.type.shape[0] is None:
        raise ShapeError(f"get_vector_length: {v} ({v.type}) is no vector of known length")
    return v.type.shape[0]


# -- lengths given by the user


def as_integer(value: Any, name: str, argument: str) -> TensorVariable:
    """Return an argument as an int64 scalar; its value may be known only at run time."""
    try:
        v = as_tensor_variable(value)
    except (TypeError, ValueError):
        v = None
    if v is None or v.ndim != 0 or not dtypes.is_integer(v.dtype):
        shown = f"{value!r:.80}" if v is None else f"{v} ({v.type})"
        raise DTypeError(f"{name}: {argument} must be an integer scalar, got {shown}")
    if isinstance(v, TensorConstant) and int(v.data) > np.iinfo(np.int64).max:
        raise DTypeError(f"{name}: {argument} is {v}, which does not fit int64")
    return cast_to(v, "int64")


def as_integers(value: Any, name: str, argument: str) -> TensorVariable:
    """Return an argument of a function as a tensor of integers."""
    try:
        v = as_tensor_variable(value)
    except (TypeError, ValueError):
        v = None
    if v is None or not dtypes.is_integer(v.dtype):
        shown = f"{value!r:.80}" + (f" ({v.type})" if v is not None else "")
        raise DTypeError(f"{name}: {argument} must be integers, got {shown}")
    return v


def as_length(n: Any, name: str, least: int | None = None) -> TensorVariable:
    """Return ``n`` as an int64 scalar; if it is known, it must be at least ``least``."""
    length = as_integer(n, name, "a length")
    if least is not None and isinstance(length, TensorConstant) and length.data < least:
        raise ShapeError(f"{name}: a length is {length.data}; it must be at least {least}")
    return length


def as_lengths(shape: Any, name: str, least: int | None = None) -> list[TensorVariable]:
    """Return the entries of a shape: an int, ints and scalars, or a vector of known length. Known
    entries must be at least ``least``.
    """
    return [as_length(n, name, least) for n in _entries_of_shape(shape, name)]


def _entries_of_shape(shape: Any, name: str) -> list[Any]:
    if isinstance(shape, np.ndarray | TensorConstant):
        array = shape if isinstance(shape, np.ndarray) else shape.data
        return list(array.reshape(-1)) if array.ndim < 2 else [shape]
    if isinstance(shape, TensorVariable) and shape.ndim == 1:
        if shape.owner is not None and isinstance(shape.owner.op, Stack):
            return list(shape.owner.inputs)
        if shape.owner is not None and isinstance(shape.owner.op, Shape):
            return list(shape_tuple(shape.owner.inputs[0]))
        return [shape[i] for i in range(get_vector_length(shape))]
    return list(shape) if isinstance(shape, list | tuple) else [shape]


def known_length(n: Any) -> int | None:
    """Return the length ``n`` if it is certain, else None."""
    if isinstance(n, TensorConstant):
        return int(n.data)
    owner = getattr(n, "owner", None)
    if owner is not None and isinstance(owner.op, ShapeI):
        return owner.inputs[0].type.shape[owner.op.axis]
    return None


# -- reshape


@record
class Reshape(Op):
    """z = the elements of x in row-major order, in the shape given by the int64 vector. z may be a
    view.
    """

    ndim: Rank

    moves = True

    def output_types(self, x: TensorVariable, lengths: TensorVariable) -> list[TensorType]:
        if lengths.ndim != 1 or lengths.dtype != "int64":
            raise DTypeError(
                f"reshape: the shape must be an int64 vector, got {lengths} ({lengths.type})"
            )
        if lengths.type.shape[0] not in (None, self.ndim):
            raise ShapeError(
                f"reshape: {lengths} has {lengths.type.shape[0]} entries, ndim is {self.ndim}"
            )
        return [TensorType(x.dtype, self._static(x, lengths))]

    def _static(self, x: TensorVariable, lengths: TensorVariable) -> tuple[int | None, ...]:
        entries = _entries_of(lengths, self.ndim)
        if any(n is not None and n < -1 for n in entries) or entries.count(-1) > 1:
            raise ShapeError(
                f"reshape: {tuple(entries)}: one length may be -1, the others must not be negative"
            )
        free = entries.count(-1)
        rest = prod(n for n in entries if n is not None and n >= 0)
        size = None if None in x.type.shape else prod(n for n in x.type.shape if n is not None)
        if size is not None and None not in entries:
            if (not free and rest != size) or (free and (size % rest if rest else True)):
                raise ShapeError(
                    f"reshape: x ({x.type}) has {size} elements, which do not fit shape "
                    f"{tuple(entries)}"
                )
            return tuple(size // rest if n == -1 else n for n in entries)
        return tuple(None if n == -1 else n for n in entries)

    def perform(self, x: Any, lengths: Any) -> Any:
        try:
            return x.reshape([int(n) for n in lengths])
        except ValueError:
            raise ShapeError(
                f"reshape: an array of shape {x.shape} ({x.size} elements) does not fit shape "
                f"{tuple(map(int, lengths))}"
            ) from None

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        lengths: Any = node.inputs[1]
        static = node.outputs[0].type.shape
        entries = _entries_of(lengths, self.ndim)
        asked = [lengths[a] for a in range(self.ndim)]
        size = product_of(shapes[0])
        result = []
        for a, n in enumerate(static):
            if n is not None:
                result.append(n)
                continue
            others = product_of([m for b, m in enumerate(asked) if b != a])
            if entries[a] == -1:
                result.append(size // others)
            else:
                # An entry may be -1 at run time: then the product of all entries is negative.
                others = as_tensor_variable(others)
                nonzero = switch(eq(others, 0), 1, others)
                result.append(switch(lt(asked[a], 0), size // nonzero, asked[a]))
        return [tuple(result)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [reshape(output_grads[0], shape_tuple(inputs[0])), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]

    view_map = {0: (0,)}


def product_of(lengths: Sequence[Any]) -> Any:
    """Return the product of ints and scalar variables."""
    result: Any = 1
    for n in lengths:
        result = n * result if isinstance(n, Variable) else result * n
    return result


def _entries_of(lengths: TensorVariable, ndim: int) -> list[int | None]:
    """Return the entries of a shape vector as far as they are known."""
    if isinstance(lengths, TensorConstant):
        return [int(n) for n in lengths.data]
    if lengths.owner is not None and isinstance(lengths.owner.op, Stack):
        return [known_length(n) for n in lengths.owner.inputs]
    if lengths.owner is not None and isinstance(lengths.owner.op, Shape):
        return list(lengths.owner.inputs[0].type.shape)
    return [None] * ndim


def reshape(x: Any, newshape: Any, ndim: int | None = None) -> TensorVariable:
    """Return the elements of ``x``, in row-major order, in another shape.

    Parameters
    ----------
    x : tensor_like
    newshape : int, sequence of int and integer scalars, or integer vector
        One entry may be -1: it is what the number of elements leaves.
    ndim : int, optional
        Needed if ``newshape`` is a vector of unknown length.

    Raises
    ------
    ShapeError
        If the number of elements does not fit, as early as it is known.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> x.reshape((2, -1)).eval({x: [1, 2, 3, 4]})
    array([[1., 2.],
           [3., 4.]])
    """
    x = as_tensor_variable(x)
    ndim = None if ndim is None else as_rank(ndim, "reshape")
    if isinstance(newshape, TensorVariable) and newshape.ndim == 1:
        lengths = cast_to(as_integers(newshape, "reshape", "newshape"), "int64")
        if ndim is None:
            ndim = get_vector_length(newshape)
    else:
        entries = as_lengths(newshape, "reshape")
        if ndim is not None and ndim != len(entries):
            raise ShapeError(f"reshape: {newshape} has {len(entries)} entries, ndim is {ndim}")
        ndim = len(entries)
        lengths = length_vector(entries)
    return Reshape(ndim)(x, lengths)


def length_vector(entries: Sequence[Any]) -> TensorVariable:
    """Return an int64 vector of lengths; a constant if all are."""
    known = [int(n.data) if isinstance(n, TensorConstant) else n for n in entries]
    if all(isinstance(n, int | np.integer) for n in known):
        return as_tensor_variable(np.asarray(known, np.int64).reshape(len(known)))
    return stack_first_axis([as_length(n, "shape") for n in known])


# -- assertions about shapes


@record
class SpecifyShape(Op):
    """z = x, a view; an error at run time if a length is not the one in ``lengths`` (None: any)."""

    lengths: tuple[Natural | None, ...]

    moves = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if len(self.lengths) != x.ndim:
            raise ShapeError(
                f"specify_shape: {len(self.lengths)} lengths {self.lengths} for the {x.ndim} axes "
                f"of {x} ({x.type})"
            )
        merged = []
        for axis, (known, claimed) in enumerate(zip(x.type.shape, self.lengths, strict=True)):
            if known is not None and claimed is not None and known != claimed:
                raise ShapeError(
                    f"specify_shape: axis {axis} of x ({x.type}) has length {known}, not {claimed}"
                )
            merged.append(known if claimed is None else claimed)
        return [TensorType(x.dtype, merged)]

    def perform(self, x: Any) -> Any:
        if any(n is not None and n != m for n, m in zip(self.lengths, x.shape, strict=True)):
            wanted = tuple("any" if n is None else n for n in self.lengths)
            raise ShapeError(
                f"specify_shape: the array has shape {x.shape}, specified was {wanted}"
            )
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(m if n is None else n for n, m in zip(self.lengths, shapes[0], strict=True))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]

    view_map = {0: (0,)}


@record
class ForgetLengths(Op):
    """z = x, a view, whose type has no static length for ``axes``, so that they do not broadcast.
    """

    axes: Axes

    moves = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, self.axes, x)
        return [
            TensorType(x.dtype, [None if a in self.axes else n for a, n in enumerate(x.type.shape)])
        ]

    def perform(self, x: Any) -> Any:
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]

    view_map = {0: (0,)}


__all__ = ["get_vector_length", "Reshape", "reshape", "Shape", "shape", "ShapeI", "SpecifyShape"]
