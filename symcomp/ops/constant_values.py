"""Evaluate scalars that are known when the graph is built, through the ops that compute them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import constant_scalar
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.ops.shapes.stack import Stack

__all__ = ["get_scalar_constant_value"]

# Ops that are evaluated if all inputs needed are known.
COMPUTED = (DimShuffle, Elemwise, Join, Stack, Subtensor)
DEEPEST = 10


def get_scalar_constant_value(
    v: Any, elemwise: bool = True, only_process_constants: bool = False, max_recur: int = DEEPEST
) -> Any:
    """Return the value of a scalar that is known when the graph is built.

    Parameters
    ----------
    v : Variable or number
        A scalar, or a tensor whose elements are all equal: an ``alloc`` of a number.
    elemwise : bool
        Compute also scalar functions of constants.
    only_process_constants : bool
        Look through no op.
    max_recur : int
        The most ops to look through on a path.

    Returns
    -------
    numpy.ndarray
        0-dimensional.

    Raises
    ------
    NotScalarConstantError
        If it is not known.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> int(T.get_scalar_constant_value(T.constant(3)))
    3
    >>> x = T.tensor("float64", shape=(None, 5))
    >>> int(T.get_scalar_constant_value(T.stack([x.shape[0], x.shape[1] + 1])[1]))
    6
    """
    if not isinstance(v, Variable):
        return constant_scalar(v)
    if not only_process_constants:
        found = _value(v, elemwise, max_recur)
        if found is not None and found.size and (found.size == 1 or (found == found.flat[0]).all()):
            return np.asarray(found.flat[0])
    return constant_scalar(v)


def _value(v: Any, elemwise: bool, depth: int) -> np.ndarray | None:
    """Return the value of ``v``, or one element if all are equal; None if it is not known."""
    if isinstance(v, Constant):
        return v.data if isinstance(v.data, np.ndarray) else None
    node = v.owner
    if node is None or depth <= 0:
        return None
    if isinstance(node.op, Assert):
        holds = [_value(x, elemwise, depth - 1) for x in node.inputs[1:]]
        if any(value is None or not value.all() for value in holds):
            return None
    if isinstance(node.op, Alloc | Assert):
        return _filling(v, node.inputs[0], elemwise, depth)
    if isinstance(node.op, ShapeI):
        length = node.inputs[0].type.shape[node.op.axis]
        return None if length is None else np.asarray(length)
    if isinstance(node.op, Elemwise):
        if node.op.scalar.name in ("second", "identity"):
            return _filling(v, node.inputs[-1], elemwise, depth)
        if not elemwise:
            return None
    if isinstance(node.op, Subtensor):
        part = _element(node)
        if part is not None:
            return _value(part, elemwise, depth - 1)
    return _computed(node, elemwise, depth)


def _filling(v: Any, x: Any, elemwise: bool, depth: int) -> np.ndarray | None:
    """Return the value of ``x``, which fills ``v``, with the axes of ``v``."""
    found = _value(x, elemwise, depth - 1)
    return None if found is None else found.reshape((1,) * (v.ndim - found.ndim) + found.shape)


def _element(node: Apply) -> Variable | None:
    """Return the scalar at a constant position of a vector made of scalars."""
    whole = node.inputs[0].owner
    (entry, *others) = node.op.pattern
    if whole is None or others or not isinstance(entry, int) or node.inputs[1:]:
        return None
    if isinstance(whole.op, Stack):
        return whole.inputs[entry]
    if isinstance(whole.op, Shape):
        return ShapeI(entry % whole.inputs[0].ndim)(whole.inputs[0])
    return None


def _computed(node: Apply, elemwise: bool, depth: int) -> np.ndarray | None:
    if not isinstance(node.op, COMPUTED) or node.op.destroy_map:
        return None
    values = [_value(x, elemwise, depth - 1) for x in node.inputs]
    by_element = isinstance(node.op, DimShuffle | Elemwise)
    fits = all(
        value is not None and value.ndim == x.ndim and (by_element or value.shape == x.type.shape)
        for value, x in zip(values, node.inputs, strict=True)
    )
    return np.asarray(node.op.perform(*values)) if fits else None
