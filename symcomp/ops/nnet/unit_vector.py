"""Vectors divided by their norm, products with such vectors, sums of their powers, and the
projection that is their derivative.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Axes, Between
from symcomp.core.record import record
from symcomp.ops.elementwise.scalar_logic import eq, isinf, switch
from symcomp.ops.elementwise.scalar_math import abs_, sgn
from symcomp.ops.nnet.softmax import AxisFunction, AxisReduction, SubtractWeightedMean
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.stable_reduce import Norm
from symcomp.ops.shapes.axes import expand_dims

# At most one element of a vector of norm 1 has a square above this, also where squares are rounded.
MOST = 0.51
# Powers that are added up by functions of their own.
POWERS = Between(3, 8)
# No sum of fewer than 2^60 finite numbers overflows if each is multiplied by this.
SMALL_SCALE = 2.0**-60


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


class _WithUnitVector(AxisReduction):
    """Base of sums of products with a vector of norm 1."""

    n_inputs = 2

    def _sums(self, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        """Return sum x y, sum x^2 and sum y^2 of lines times powers of two, and the exponents by
        which those of y were multiplied.
        """
        (a, _), (b, exponent) = map(_of_unit_size, self._lines(x, y))
        return *((v * w).sum(axis=-1) for v, w in ((a, b), (a, a), (b, b))), exponent[..., 0]

    def _unit(self, x: Any) -> tuple[Any, Any]:
        """Return the norm of x, its axes kept at length 1, and x over it."""
        size = expand_dims(Norm(self.axes)(x), self.axes)
        return size, x / size


def _of_unit_size(lines: Any) -> tuple[Any, Any]:
    """Return lines times powers of two, so that the largest number of each is about 1, and the
    exponents by which they were multiplied.
    """
    top = np.abs(lines).max(axis=-1, keepdims=True, initial=0)
    _, exponent = np.frexp(np.where(np.isfinite(top), top, 0))
    return np.ldexp(lines, -exponent), exponent


@record
class ProjectionLength(_WithUnitVector):
    """z = sum_i x_i y_i / sqrt(sum_i x_i^2) over ``axes``, without over- or underflow; NaN where x
    is zero.
    """

    axes: Axes

    def perform(self, x: Any, y: Any) -> Any:
        with np.errstate(all="ignore"):
            total, squares, _, exponent = self._sums(x, y)
            return np.asarray(np.ldexp(total / np.sqrt(squares), exponent), x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), (z, gz) = inputs, (expand_dims(v, self.axes) for v in (*outputs, *output_grads))
        size, u = self._unit(x)
        return [gz * (y - z * u) / size, gz * u]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy), z = inputs, tangents, expand_dims(outputs[0], self.axes)
        size, u = self._unit(x)
        parts = [] if dx is None else [dx * (y - z * u) / size]
        parts += [] if dy is None else [dy * u]
        return [sum_(sum(parts[1:], parts[0]), axis=self.axes) if parts else None]


@record
class Cosine(_WithUnitVector):
    """z = sum_i x_i y_i / sqrt(sum_i x_i^2 sum_i y_i^2) over ``axes``, without over- or underflow;
    NaN where x or y is zero.
    """

    axes: Axes

    def perform(self, x: Any, y: Any) -> Any:
        with np.errstate(all="ignore"):
            total, squares, others, _ = self._sums(x, y)
            return np.asarray(total / np.sqrt(squares) / np.sqrt(others), x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        z, gz = (expand_dims(v, self.axes) for v in (*outputs, *output_grads))
        (x_size, u), (y_size, v) = map(self._unit, inputs)
        return [gz * (v - z * u) / x_size, gz * (u - z * v) / y_size]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (dx, dy), z = tangents, expand_dims(outputs[0], self.axes)
        (x_size, u), (y_size, v) = map(self._unit, inputs)
        parts = [] if dx is None else [dx * (v - z * u) / x_size]
        parts += [] if dy is None else [dy * (u - z * v) / y_size]
        return [sum_(sum(parts[1:], parts[0]), axis=self.axes) if parts else None]


def scaled_for_sum(x: Any, axes: Axes) -> tuple[Any, Any]:
    """Return s x and s, which is 1, or a small power of two where the sum of sizes overflows."""
    overflows = isinf(sum_(abs_(x), axis=axes, keepdims=True))
    scale = switch(overflows, np.asarray(SMALL_SCALE, x.dtype), np.asarray(1, x.dtype))
    return x * scale, scale


@record
class SignedMean(AxisReduction):
    """z = sum_i x_i y_i / sum_i |x_i| over ``axes``, without over- or underflow; NaN where x is
    zero.
    """

    axes: Axes

    n_inputs = 2

    def perform(self, x: Any, y: Any) -> Any:
        with np.errstate(all="ignore"):
            lines, others = self._lines(x, y)
            lines, _ = _of_unit_size(lines)
            return np.asarray((lines * others).sum(axis=-1) / np.abs(lines).sum(axis=-1), x.dtype)

    def _slopes(self, inputs: Any, z: Any) -> list[Any]:
        x, y = inputs
        x_scaled, scale = scaled_for_sum(x, self.axes)
        size = sum_(abs_(x_scaled), axis=self.axes, keepdims=True)
        signs = sgn(x)
        deviations = SubtractWeightedMean(self.axes)(signs * y, abs_(x_scaled) / size)
        by_x = switch(eq(x, 0), y, signs * deviations) * scale / size
        return [by_x, x_scaled / size]


@record
class UnitPowerSum(AxisReduction):
    """z = sum_i x_i^k / (sum_i x_i^2)^(k / 2) over ``axes``, the sum of powers of the unit vector,
    for ``power`` k, without over- or underflow; NaN where x is zero.
    """

    axes: Axes
    power: Annotated[int, POWERS]

    def perform(self, x: Any) -> Any:
        with np.errstate(all="ignore"):
            lines, _ = _of_unit_size(*self._lines(x))
            total = (lines**self.power).sum(axis=-1)
            norm = np.sqrt(np.square(lines).sum(axis=-1))
            return np.asarray(total / norm**self.power, x.dtype)

    def _slopes(self, inputs: Any, z: Any) -> list[Any]:
        (x,), z = inputs, expand_dims(z, self.axes)
        size = expand_dims(Norm(self.axes)(x), self.axes)
        u = x / size
        return [self.power * (u ** (self.power - 1) - z * u) / size]


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
