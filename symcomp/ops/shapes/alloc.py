"""Alloc, which fills a tensor, and its adjoint: sums over stretched axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.shapes.shape import known_length


@record
class Alloc(Op):
    """z[i_0, i_1, ...] = value, broadcast to the shape (n_0, n_1, ...).   Inputs: value, n_0, n_1,
    ...
    """

    moves = True

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


__all__ = ["Alloc"]
