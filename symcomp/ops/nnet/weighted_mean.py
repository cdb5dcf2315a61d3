"""Means whose weights are exponentials, and the deviations from them, on which derivatives depend.

The derivative of a mean by an exponent is the weight times the deviation of the element. That is
small where the element is near the mean, or where its weight is nearly 1.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from symcomp.core.fields import Axes, Between
from symcomp.core.record import record
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import expm1
from symcomp.ops.nnet.softmax import (
    AxisFunction,
    AxisReduction,
    SubtractWeightedMean,
    even_weights,
    exponentials_of_lines,
    softmax_of_lines,
)
from symcomp.ops.numerics.exact import WIDER
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import expand_dims

# Powers of softmax weights that are added up by a function of their own.
EXPONENTS = Between(2, 8)


@record
class WeightedMean(AxisReduction):
    """z = sum_i y_i exp(x_i) / sum_i exp(x_i) over ``axes``, without overflow; NaN if there are no
    elements.
    """

    axes: Axes

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, y: Any) -> Any:
        x_lines, y_lines = self._lines(x, y)
        with np.errstate(all="ignore"):
            w = exponentials_of_lines(x_lines)
            return np.asarray((w * y_lines).sum(axis=-1) / w.sum(axis=-1), x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), (gz,) = inputs, output_grads
        part = expand_dims(gz, self.axes) * even_weights(x, self.axes)
        return [part * WeightedDeviation(self.axes)(x, y), part]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        parts = []
        if dx is not None:
            parts.append(dx * WeightedDeviation(self.axes)(x, y))
        if dy is not None:
            parts.append(dy)
        w = even_weights(x, self.axes)
        return [sum_(w * sum(parts[1:], parts[0]), axis=self.axes) if parts else None]


@record
class SoftmaxPowerSum(AxisReduction):
    """z = sum_i p_i^k over ``axes``, where p is the softmax of x, and k the ``power``; NaN if there
    are no elements. The derivative keeps its digits where elements are nearly equal.
    """

    axes: Axes
    power: Annotated[int, EXPONENTS]

    def perform(self, x: Any) -> Any:
        (lines,) = self._lines(x)
        with np.errstate(all="ignore"):
            w = exponentials_of_lines(lines)
            z = (w**self.power).sum(axis=-1) / w.sum(axis=-1) ** self.power
            return np.asarray(z, x.dtype)

    def as_mean(self, x: Any) -> Any:
        """Return the mean of p^(k - 1), weighted by exp(x)."""
        return WeightedMean(self.axes)(x, even_weights(x, self.axes) ** (self.power - 1))

    def _slopes(self, inputs: Any, z: Any) -> list[Any]:
        (x,), k, p = inputs, self.power, even_weights(inputs[0], self.axes)

        def total(y: Any) -> Any:
            return sum_(y, axis=self.axes, keepdims=True)

        # The powers p^(k - 1) are multiples of these ratios and 1.
        ratios = expm1((k - 1) * (x - total(switch(eq(p, 0), 0, p * x))))
        scale = k * expand_dims(z, self.axes) / (1 + total(p * ratios))
        return [scale * p * SubtractWeightedMean(self.axes)(ratios, p)]


@record
class WeightedDeviation(AxisFunction):
    """z_i = y_i - sum_j y_j exp(x_j) / sum_j exp(x_j) over ``axes``, with all digits also where y_i
    is near the mean, or its weight is nearly 1; x and y have one shape.
    """

    axes: Axes

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, y: Any) -> Any:
        wide = (v.astype(WIDER.get(v.dtype.name, v.dtype)) for v in (x, y))
        return self._apply(_deviations, *wide).astype(x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, _), (z,), (gz,) = inputs, outputs, output_grads
        w = even_weights(x, self.axes)
        total = sum_(gz, axis=self.axes, keepdims=True)
        return [-total * w * z, SubtractWeightedMean(self.axes, transposed=True)(gz, w)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, _), (z,), (dx, dy) = inputs, outputs, tangents
        w = even_weights(x, self.axes)
        tangent = None if dy is None else SubtractWeightedMean(self.axes)(dy, w)
        if dx is not None:
            by_exponent = -sum_(w * z * dx, axis=self.axes, keepdims=True) + 0 * x
            tangent = by_exponent if tangent is None else tangent + by_exponent
        return [tangent]


def _deviations(x: Any, y: Any) -> Any:
    if not x.size:
        return y.copy()
    # Relative to an element with most weight, whose own deviation is the small sum of the others.
    h = y - np.take_along_axis(y, x.argmax(axis=-1, keepdims=True), axis=-1)
    return h - (softmax_of_lines(x) * h).sum(axis=-1, keepdims=True)
