"""Reductions that neither cancel nor overflow: norm, deviations from the mean, logarithm of a
product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.numerics.exact import two_product, two_sum
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.over_axes import ReductionOverAxes
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import ShapeI, require_axes

# log 2, cut after 32 bits, so that its products with exponents are exact, and the remainder.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")

# Numbers up to the largest one can be added to this without an overflow.
LARGEST_BOUND = 2.0**969


def _require_float(op: Op, x: TensorVariable) -> None:
    if not dtypes.is_float(x.dtype):
        raise DTypeError(f"{op}: x must be a float tensor, got {x} ({x.type})")


@record
class Centered(Op):
    """z_i = x_i - mean_j x_j over ``axes``, with all digits also where x_i is near the mean."""

    axes: Axes

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        _require_float(self, x)
        require_axes(self, self.axes, x)
        return [x.type]

    def perform(self, x: Any) -> Any:
        if not x.size:
            return x.copy()
        work = x.astype(np.float64)
        with np.errstate(all="ignore"):
            if x.dtype != np.float64:
                return (work - work.mean(axis=self.axes, keepdims=True)).astype(x.dtype)
            d, rest, total = self._about_mean(work)
            count = math.prod(x.shape[a] for a in self.axes)
            return d + (rest - total / count)

    def _about_mean(self, x: Any) -> tuple[Any, Any, Any]:
        """Return x less the rounded mean, the rounding error of that, and the sum of both."""
        along = {"axis": self.axes, "keepdims": True}
        # Halving first: the sum of extreme values may overflow where the mean does not.
        rough = (x / 2).mean(**along) * 2
        d, rest = two_sum(x, -rough)
        # Digits below the last one of a bound are added up apart: the sum of the others is exact.
        bound = np.minimum(np.abs(x).sum(**along) * 4, LARGEST_BOUND)
        high = (d + bound) - bound
        return d, rest, high.sum(**along) + ((d - high) + rest).sum(**along)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (gz,) = output_grads
        return [self(gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (dx,) = tangents
        return [self(dx)]


class _FloatReduction(ReductionOverAxes):
    def output_types(self, x: TensorVariable) -> list[TensorType]:
        _require_float(self, x)
        require_axes(self, self.axes, x)
        shape = [n for a, n in enumerate(x.type.shape) if a not in self.axes]
        return [TensorType(x.dtype, shape)]


@record
class Variance(_FloatReduction):
    """z = mean_i (x_i - mean_j x_j)^2 over ``axes``."""

    axes: Axes

    def perform(self, x: Any) -> Any:
        d = Centered(self.axes).perform(x.astype(np.float32) if x.dtype == np.float16 else x)
        with np.errstate(all="ignore"):
            count = np.divide(math.prod(x.shape[a] for a in self.axes), 1, dtype=d.dtype)
            return np.asarray(np.square(d).sum(axis=self.axes) / count, x.dtype)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        (x,) = inputs
        count = math.prod(ShapeI(a)(x) for a in self.axes)
        return [2 * Centered(self.axes)(x) / cast(count, x.dtype)]


@record
class Norm(_FloatReduction):
    """z = sqrt(sum_i x_i^2) over ``axes``, without over- or underflow; the derivative at 0 is 0."""

    axes: Axes

    def perform(self, x: Any) -> Any:
        work = x.astype(np.float32) if x.dtype == np.float16 else x
        with np.errstate(all="ignore"):
            top = np.abs(work).max(axis=self.axes, keepdims=True, initial=0)
            # Scaling by a power of two rounds nothing; it takes two steps, as one factor may leave
            # the range.
            _, exponent = np.frexp(np.where(np.isfinite(top), top, 0))
            scaled = np.ldexp(work, -exponent)
            norm = np.sqrt(np.square(scaled).sum(axis=self.axes, keepdims=True))
            z = np.ldexp(norm, exponent)
        return np.asarray(np.squeeze(z, self.axes), x.dtype)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        (x,), size = inputs, expand_dims(z, self.axes)
        return [x / switch(eq(size, 0), 1, size)]


@record
class LogProd(_FloatReduction):
    """z = log(prod_i x_i) over ``axes``, also where the product leaves the range; NaN where it is
    negative.
    """

    axes: Axes

    def perform(self, x: Any) -> Any:
        with np.errstate(all="ignore"):
            kept = [a for a in range(x.ndim) if a not in self.axes]
            shape = [x.shape[a] for a in kept], math.prod(x.shape[a] for a in self.axes)
            lines = x.transpose(*kept, *self.axes).reshape(*shape[0], shape[1])
            return np.asarray(log_prod(lines.astype(np.float64)), x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [expand_dims(gz, self.axes) / x]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [sum_(dx / x, axis=self.axes)]


def log_prod(x: Any, left_out: Any = 0) -> Any:
    """Compute log(prod_i (x_i + left_out_i)) of float64 along the last axis; ``left_out`` holds
    small rounding errors.

    Multiplies mantissas pairwise with their rounding errors, and adds up exponents.
    """
    if not x.shape[-1]:
        return np.zeros(x.shape[:-1])
    high, exponents = np.frexp(x)
    low = np.ldexp(left_out, -exponents)
    power = exponents.sum(axis=-1, dtype=np.int64)
    while high.shape[-1] > 1:
        if high.shape[-1] % 2:
            one = np.ones_like(high[..., :1])
            high, low = np.append(high, one, -1), np.append(low, 0 * one, -1)
        a, b = high[..., ::2], high[..., 1::2]
        product, error = two_product(a, b)
        error += a * low[..., 1::2] + low[..., ::2] * b
        high, exponents = np.frexp(product)
        low = np.ldexp(error, -exponents)
        power = power + exponents.sum(axis=-1)
    high, low = high[..., 0], low[..., 0]
    # Mantissas near 1, so that nothing cancels where the whole product is near 1.
    small = high < np.sqrt(0.5)
    power = power - small
    high, low = np.where(small, 2 * high, high), np.where(small, 2 * low, low)
    inside = (high > 0) & np.isfinite(high)
    rest = np.where(inside, low / high, 0) + power * LN2_LOW
    far = power * LN2_HIGH + (np.log(high) + rest)
    return np.where((power == 0) & inside, np.log1p((high - 1) + low), far)
