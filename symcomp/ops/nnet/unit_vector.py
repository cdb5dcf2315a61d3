"""Vectors divided by their norm, and the projection that is their derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.fields import Axes
from symcomp.core.record import record
from symcomp.ops.nnet.softmax import AxisFunction
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims

# At most one element of a vector of norm 1 has a square above this, also where squares are rounded.
MOST = 0.51


@record
class UnitVector(AxisFunction):
    """z_i = x_i / sqrt(sum_j x_j^2) over ``axes``, without over- or underflow; NaN for zeros."""

    axes: Axes

    def perform(self, x: Any) -> Any:
        norm = np.expand_dims(Norm(self.axes).perform(x), self.axes)
        with np.errstate(all="ignore"):
            return np.asarray(x / norm, x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        return [SubtractProjection(self.axes)(gz, z) / self._norm(x)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        return [SubtractProjection(self.axes)(dx, z) / self._norm(x)]

    def _norm(self, x: Any) -> Any:
        """Return the norm, with the axes kept at length 1."""
        return expand_dims(Norm(self.axes)(x), self.axes)


@record
class SubtractProjection(AxisFunction):
    """z_i = x_i - u_i sum_j u_j x_j over ``axes``, where the norm of u is 1: the part of x that is
    orthogonal to u. Nothing cancels where one element of u is nearly 1 or -1.
    """

    axes: Axes

    n_inputs = 2

    def perform(self, x: Any, u: Any) -> Any:
        return self._apply(_orthogonal, x, u)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, u), (gz,) = inputs, output_grads
        return [self(gz, u), -(gz * self._sum(u * x) + x * self._sum(u * gz))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, u), (dx, du) = inputs, tangents
        parts = []
        if dx is not None:
            parts.append(self(dx, u))
        if du is not None:
            parts.append(-(du * self._sum(u * x) + u * self._sum(du * x)))
        return [sum(parts[1:], parts[0]) if parts else None]

    def _sum(self, x: Any) -> Any:
        return sum_(x, axis=self.axes, keepdims=True)


def _orthogonal(x: Any, u: Any) -> Any:
    """Subtract the projection; where u has most of the norm, x (1 - u^2) is x times the squares of
    the other elements of u.
    """
    square, product = np.square(u), u * x
    most = square > MOST
    squares, products = (
        np.where(most, 0, v).sum(axis=-1, keepdims=True) for v in (square, product)
    )
    return np.where(
        most, x * squares - u * products, x - u * product.sum(axis=-1, keepdims=True)
    )
