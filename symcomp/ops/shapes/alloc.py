"""Filled tensors: alloc, zeros, ones, full and their like, and explicit broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.mentions import mention
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable, constant, resolve_dtype, with_rank
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.elementwise.scalar_math import cast, second
from symcomp.ops.shapes.shape import as_length, as_lengths, known_length, shape_tuple


@record
class Alloc(Op):
    """z[i_0, i_1, ...] = value, broadcast to the shape (n_0, n_1, ...).   Inputs: value, n_0, n_1,
    ...
    """

    def output_types(self, value: TensorVariable, *lengths: TensorVariable) -> list[TensorType]:
        if value.ndim > len(lengths):
            raise ShapeError(
                f"alloc: value ({value.type}) has more axes than the shape of {len(lengths)}"
            )
        shape = [known_length(n) for n in lengths]
        for axis, n in enumerate(shape):
            if n is not None and n < 0:
                raise ShapeError(f"alloc: negative length {n} on axis {axis}")
        offset = len(shape) - value.ndim
        for a, have in enumerate(value.type.shape):
            want = shape[offset + a]
            if have not in (None, 1) and want is not None and have != want:
                raise ShapeError(
                    f"alloc: value ({value.type}) does not broadcast to shape {tuple(shape)}"
                )
            if have not in (None, 1) and want is None:
                shape[offset + a] = have
        return [TensorType(value.dtype, shape)]

    def perform(self, value: Any, *lengths: Any) -> Any:
        shape = tuple(int(n) for n in lengths)
        if any(n < 0 for n in shape):
            raise ShapeError(f"alloc: there is no array of shape {shape}")
        return self.fill_array(value, np.empty(shape, value.dtype))

    def bind(self, node: Apply) -> Any:
        """Return ``perform``, checking that axes of ``value`` not known to be 1 are not stretched.
        """
        fixed = self.fixed_axes(node)

        def compute(value: Any, *lengths: Any) -> Any:
            self.check_stretching(fixed, value, lengths)
            return self.perform(value, *lengths)

        return compute if fixed else self.perform

    @staticmethod
    def fill_array(value: Any, z: Any) -> Any:
        """Broadcast ``value`` into ``z``."""
        try:
            z[...] = value
        except ValueError:
            raise ShapeError(
                f"alloc: value of shape {value.shape} does not fill shape {z.shape}"
            ) from None
        return z

    @staticmethod
    def fixed_axes(node: Apply) -> list[int]:
        """Return the axes of ``value`` that may not be stretched."""
        return [a for a, n in enumerate(node.inputs[0].type.shape) if n is None]

    @staticmethod
    def check_stretching(fixed: Sequence[int], value: Any, lengths: Sequence[Any]) -> None:
        """Raise if one of the ``fixed`` axes of ``value`` would be stretched."""
        offset = len(lengths) - value.ndim
        for a in fixed:
            if value.shape[a] != lengths[offset + a]:
                raise ShapeError(
                    f"alloc: axis {a} of value has length {value.shape[a]}, the shape asked for "
                    f"{tuple(int(n) for n in lengths)}; use T.addbroadcast to stretch an axis of "
                    "length 1"
                )

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        static = node.outputs[0].type.shape
        return [tuple(n if s is None else s for n, s in zip(node.inputs[1:], static, strict=True))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        value, gz = inputs[0], output_grads[0]
        return [sum_to(gz, value)] + [None] * (len(inputs) - 1)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


def sum_to(g: Any, value: TensorVariable) -> Any:
    """Return ``g`` summed over the axes along which ``value`` was stretched or extended in front.
    """
    offset = g.ndim - value.ndim
    g = g.sum(axis=tuple(range(offset))) if offset else g
    stretched = [a for a, n in enumerate(value.type.shape) if n == 1 and g.type.shape[a] != 1]
    return g.sum(axis=tuple(stretched), keepdims=True) if stretched else g


def alloc(value: Any, *shape: Any) -> TensorVariable:
    """Return a tensor of the given shape filled with ``value``, which is broadcast.

    Parameters
    ----------
    value : tensor_like
    *shape : int or integer scalar
        Or one sequence of them.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.alloc(7, 2, 2).eval()
    array([[7, 7],
           [7, 7]])
    """
    if len(shape) == 1 and not _is_length(shape[0]):
        shape = (*as_lengths(shape[0], "alloc", 0),)
    return Alloc()(as_tensor_variable(value), *[as_length(n, "alloc", 0) for n in shape])


def _is_length(n: Any) -> bool:
    return isinstance(n, int | np.integer) or (isinstance(n, TensorVariable) and n.ndim == 0)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> TensorVariable:
    """Return a tensor of the given shape filled with ``fill_value``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.full((2,), 3.0).eval()
    array([3., 3.])
    """
    value = as_tensor_variable(fill_value)
    return _filled("full", shape, value if dtype is None else cast(value, dtype))


def _filled(name: str, shape: Any, value: TensorVariable) -> TensorVariable:
    return Alloc()(value, *as_lengths(shape, name, 0))


def zeros(shape: Any, dtype: Any = None) -> TensorVariable:
    """Return zeros, by default of dtype floatX.

    Parameters
    ----------
    shape : int, sequence of int and integer scalars, or integer vector of known length
    dtype : optional

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> n = T.lscalar("n")
    >>> T.zeros((n, 2)).eval({n: 1})
    array([[0., 0.]])
    """
    return _filled("zeros", shape, constant(np.zeros((), resolve_dtype(dtype))))


def ones(shape: Any, dtype: Any = None) -> TensorVariable:
    """Return ones, by default of dtype floatX; see ``zeros``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.ones((2, 3)).eval()
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    return _filled("ones", shape, constant(np.ones((), resolve_dtype(dtype))))


def empty(shape: Any, dtype: Any = None) -> TensorVariable:
    """Return a tensor whose elements are meant to be overwritten; they are zeros.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.empty((2, 3)).type
    TensorType(float64, (2, 3))
    """
    return _filled("empty", shape, constant(np.zeros((), resolve_dtype(dtype))))


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> TensorVariable:
    """Return a tensor of the shape of ``a`` filled with ``fill_value``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.full_like(T.dvector("x"), 7.0).eval({"x": [1.0, 2.0]})
    array([7., 7.])
    """
    a = as_tensor_variable(a)
    value = cast(as_tensor_variable(fill_value), a.dtype if dtype is None else dtype)
    z = Alloc()(value, *[as_length(n, "full_like") for n in shape_tuple(a)])
    if None not in a.type.shape:
        mention(z, a)
    return z


def zeros_like(model: Any, dtype: Any = None, opt: bool = False) -> TensorVariable:
    """Return zeros of the shape, and by default the dtype, of ``model``.

    Parameters
    ----------
    model : tensor_like
    dtype : optional
    opt : bool
        Accepted for Theano's sake.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.ivector("x")
    >>> T.zeros_like(x).eval({x: [1, 2]})
    array([0, 0], dtype=int32)
    """
    return full_like(model, constant(np.zeros((), as_tensor_variable(model).dtype)), dtype)


def ones_like(model: Any, dtype: Any = None, opt: bool = False) -> TensorVariable:
    """Return ones of the shape, and by default the dtype, of ``model``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.ones_like([1.0, 2.0]).eval()
    array([1., 1.])
    """
    return full_like(model, constant(np.ones((), as_tensor_variable(model).dtype)), dtype)


def empty_like(prototype: Any, dtype: Any = None) -> TensorVariable:
    """Return ``zeros_like``; the elements are meant to be overwritten.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.empty_like(T.dmatrix("x")).type
    TensorType(float64, (None, None))
    """
    return zeros_like(prototype, dtype)


def fill(a: Any, b: Any) -> TensorVariable:
    """Return ``b`` broadcast to the shape of ``a``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.fill(x, 5.0).eval({x: [1, 2]})
    array([5., 5.])
    """
    return second(a, b)


def broadcast_to(x: Any, shape: Any) -> TensorVariable:
    """Return ``x`` stretched to ``shape``; only axes known to have length 1 are stretched.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.drow("x")
    >>> T.broadcast_to(x, (2, 2)).eval({x: [[1, 2]]})
    array([[1., 2.],
           [1., 2.]])
    """
    return _filled("broadcast_to", shape, as_tensor_variable(x))


def broadcast_arrays(*args: Any) -> list[TensorVariable]:
    """Stretch all tensors to their common shape.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, y = T.dcol("x"), T.drow("y")
    >>> [v.eval({x: [[1], [2]], y: [[3, 4]]}).shape for v in T.broadcast_arrays(x, y)]
    [(2, 2), (2, 2)]
    """
    tensors = [as_tensor_variable(a) for a in args]
    rank = max((x.ndim for x in tensors), default=0)
    tensors = [with_rank(x, rank) for x in tensors]
    lengths = common_lengths("broadcast_arrays", tensors)
    return [Alloc()(x, *[as_length(n, "broadcast_arrays") for n in lengths]) for x in tensors]


def common_lengths(name: str, tensors: Sequence[TensorVariable]) -> list[Any]:
    """Return the lengths that tensors of one rank broadcast to: ints, or scalar variables."""
    static = broadcast_static(name, [x.type.shape for x in tensors])
    lengths: list[Any] = []
    for axis, n in enumerate(static):
        if n is None:
            source = next(x for x in tensors if x.type.shape[axis] is None)
            n = shape_tuple(source)[axis]
        lengths.append(n)
    return lengths


__all__ = [
    "Alloc", "alloc", "broadcast_arrays", "broadcast_to", "empty", "empty_like", "fill", "full",
    "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip
