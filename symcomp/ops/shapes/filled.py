"""Tensors of a given shape and value, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.mentions import mention
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import as_tensor_variable, constant, resolve_dtype, with_rank
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.elementwise.scalar_math import cast, second
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.shape import as_length, as_lengths, shape_tuple


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
    "alloc", "broadcast_arrays", "broadcast_to", "empty", "empty_like", "fill", "full", "full_like",
    "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip
