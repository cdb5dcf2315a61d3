"""Reductions that neither cancel nor over- or underflow: norm, deviations from the mean, logarithm
of a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.reduce import mean
from symcomp.ops.reduce import sum as sum_
from symcomp.ops.scalar_logic import eq, switch
from symcomp.ops.scalar_math import sqr


def _require_float(op: Op, x: TensorVariable) -> None:
    if not dtypes.is_float(x.dtype):
        raise DTypeError(f"{op}: x must be a float tensor, got {x} ({x.type})")


@dataclass(frozen=True)
class Centered(Op):
    """z_i = x_i - mean_j x_j over ``axes``; the rounding error of the mean is taken out."""

    axes: tuple[int, ...]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        _require_float(self, x)
        return [x.type]

    def perform(self, x: Any) -> Any:
        work = x.astype(np.float32) if x.dtype == np.float16 else x
        if not x.size:
            return x.copy()
        with np.errstate(all="ignore"):
            # Halves of the mean of extreme values do not overflow where the values do not.
            rough = (work / 2).mean(axis=self.axes, keepdims=True) * 2
            d = work - rough
            d -= d.mean(axis=self.axes, keepdims=True)
        return d.astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (gz,) = output_grads
        return [self(gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (dx,) = tangents
        return [self(dx)]


def variance(x: Any, axes: tuple[int, ...]) -> TensorVariable:
    """The mean of the squares of the deviations from the mean."""
    return mean(sqr(Centered(axes)(x)), axis=axes)


class _FloatReduction(Op):
    axes: tuple[int, ...]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        _require_float(self, x)
        shape = [n for a, n in enumerate(x.type.shape) if a not in self.axes]
        return [TensorType(x.dtype, shape)]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def _keep(self, z: Any, ndim: int) -> Any:
        rank = iter(range(z.ndim))
        return DimShuffle(
            z.ndim, tuple("x" if a in self.axes else next(rank) for a in range(ndim))
        )(z)


@dataclass(frozen=True)
class Norm(_FloatReduction):
    """z = sqrt(sum_i x_i^2) over ``axes``, without over- or underflow; the derivative at 0 is 0."""

    axes: tuple[int, ...]

    def perform(self, x: Any) -> Any:
        work = x.astype(np.float32) if x.dtype == np.float16 else x
        with np.errstate(all="ignore"):
            top = np.abs(work).max(axis=self.axes, keepdims=True, initial=0)
            # By a power of two, which rounds nothing; in two steps, as one may leave the range.
            _, exponent = np.frexp(np.where(np.isfinite(top), top, 0))
            scaled = np.ldexp(work, -exponent)
            norm = np.sqrt(np.square(scaled).sum(axis=self.axes, keepdims=True))
            z = np.ldexp(norm, exponent)
        return np.asarray(np.squeeze(z, self.axes), x.dtype)

    def _unit(self, x: Any, z: Any) -> Any:
        z = self._keep(z, x.ndim)
        return x / switch(eq(z, 0), 1, z)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        return [self._keep(gz, x.ndim) * self._unit(x, z)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        return [sum_(self._unit(x, z) * dx, axis=self.axes)]


@dataclass(frozen=True)
class LogProd(_FloatReduction):
    """z = log(prod_i x_i) over ``axes``, also where the product leaves the range; NaN where it is
    negative.
    """

    axes: tuple[int, ...]

    def perform(self, x: Any) -> Any:
        with np.errstate(all="ignore"):
            kept = [a for a in range(x.ndim) if a not in self.axes]
            lines = x.transpose(*kept, *self.axes).reshape([x.shape[a] for a in kept] + [-1])
            return np.asarray(_log_prod(lines), x.dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [self._keep(gz, x.ndim) / x]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [sum_(dx / x, axis=self.axes)]


def _log_prod(x: Any) -> Any:
    """Along the last axis, by a product of mantissas in the widest type and a sum of exponents."""
    mantissa, exponents = np.frexp(x)
    power = exponents.sum(axis=-1, dtype=np.int64)
    product = np.ones(x.shape[:-1], np.longdouble)
    # So many factors of at least 1/2 do not underflow.
    for start in range(0, x.shape[-1], 512):
        part = mantissa[..., start : start + 512].astype(np.longdouble).prod(axis=-1)
        product, shift = np.frexp(product * part)
        power = power + shift
    # Near 1, so that nothing cancels where the whole product is near 1.
    low = product < np.sqrt(0.5)
    product, power = np.where(low, 2 * product, product), power - low
    return np.log(product) + np.where(power == 0, 0, power * np.log(np.longdouble(2)))
