"""Softmax, log-softmax, log-sum-exp and their weighted relatives, exact to the last digits.

Exponentials are taken of the differences to the largest element, with their rounding errors added
back; the sum is accumulated without the largest element's own term, so that nothing cancels where
it dominates. Beside an element of +inf, exponentials of finite ones are finite, however large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes, Axis
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.numerics.exact import WIDER, growth, two_sum
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.over_axes import ReductionOverAxes
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import require_axes

# -- on arrays, along the last axis


def _lines(x: Any, axes: Sequence[int]) -> Any:
    """Return ``x`` with ``axes`` merged into one, the last."""
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = x.transpose(*kept, *axes)
    return moved.reshape(*moved.shape[: len(kept)], -1) if x.size else _empty(moved, len(kept))


def _empty(x: Any, kept: int) -> Any:
    return np.empty((*x.shape[:kept], int(np.prod(x.shape[kept:]))), x.dtype)


def _back(z: Any, like: Any, axes: Sequence[int]) -> Any:
    """Reshape the result of ``_lines(like)`` back to the shape of ``like``."""
    order = [*(a for a in range(like.ndim) if a not in axes), *axes]
    return z.reshape([like.shape[a] for a in order]).transpose(np.argsort(order))


def _widened(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _exponentials(x: Any, top: Any) -> tuple[Any, Any]:
    """Return d = x - top rounded, and exp(x - top) as if d were not."""
    d, e = two_sum(x, -top)
    return d, np.exp(d) * growth(e)


def _top(x: Any) -> tuple[Any, Any]:
    """Return the largest elements, with infinities replaced by the largest finite numbers, and
    whether they are finite.
    """
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    most = np.finfo(x.dtype).max
    return np.clip(top, -most, most), np.isfinite(top)


def _without(x: Any, place: Any) -> Any:
    """Return ``x`` with 0 at one place of each slice."""
    x = x.copy()
    np.put_along_axis(x, place, 0, axis=-1)
    return x


def log_total_of_lines(x: Any) -> tuple[Any, Any, Any, Any]:
    """Return (top, d, exp(d), log sum exp(d)) where d = x - top, along the last axis."""
    top, finite = _top(x)
    d, z = _exponentials(x, top)
    if not x.shape[-1]:
        return top, d, z, np.full(top.shape, -np.inf, x.dtype)
    rest = _without(z, x.argmax(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True)
    return top, d, z, np.where(finite, np.log1p(rest), np.log(z.sum(axis=-1, keepdims=True)))


def exponentials_of_lines(x: Any) -> Any:
    """Compute exp(x) relative to the largest along the last axis."""
    return _exponentials(x, _top(x)[0])[1]


def softmax_of_lines(x: Any) -> Any:
    """Compute the softmax along the last axis."""
    z = exponentials_of_lines(x)
    return z / z.sum(axis=-1, keepdims=True)


def _root_softmax(x: Any) -> Any:
    z = exponentials_of_lines(x / 2)
    return z / np.sqrt(np.square(z).sum(axis=-1, keepdims=True))


def _log_softmax(x: Any) -> Any:
    _, d, _, total = log_total_of_lines(x)
    return d - total


def _log_sum_exp(x: Any) -> Any:
    top, _, _, total = log_total_of_lines(x)
    return top + total


def _log_mean_exp(x: Any) -> Any:
    top, _ = _top(x)
    n = x.shape[-1]
    mean = _exponentials(x, top)[1].sum(axis=-1, keepdims=True) / n
    near = np.expm1(x - top).sum(axis=-1, keepdims=True) / n
    return top + np.where(mean < 0.5, np.log(mean), np.log1p(near))


def _weighted_log_sum_exp(x: Any, w: Any) -> Any:
    top, terms = _weighted_terms(x, w)
    return top + np.log(terms.sum(axis=-1, keepdims=True))


def _weighted_terms(x: Any, w: Any) -> tuple[Any, Any]:
    """Return (top, w exp(x - top)), where the top is that of the elements with weight."""
    top, _ = _top(np.where(w == 0, -np.inf, x))
    _, z = _exponentials(np.where(w == 0, top, x), top)
    return top, np.where(w == 0, np.maximum(x, 0) * 0, w * z)


def _weighted_softmax(x: Any, w: Any) -> Any:
    terms = _weighted_terms(x, w)[1]
    return terms / terms.sum(axis=-1, keepdims=True)


def _polished(function: Callable[..., Any], *xs: Any) -> Any:
    """Run ``function``, and again in the wider type for the slices where large parts cancelled."""
    with np.errstate(all="ignore"):
        z = function(*xs)
        top = _top(xs[0])[0]
        parts = np.maximum(np.abs(top), np.abs(z - top))
        again = (np.abs(z) < parts / 2)[..., 0]
        if again.any():
            wide = (x[again].astype(WIDER[x.dtype.name]) for x in xs)
            z[again] = function(*wide).astype(z.dtype)
    return z


# -- ops that keep the shape


def _require_one_shape(op: Op, *xs: Any) -> None:
    shapes = [x.shape for x in xs]
    if shapes.count(shapes[0]) != len(shapes):
        raise ShapeError(
            f"{op}: its inputs have the shapes {', '.join(map(str, shapes))}, which must be one; "
            "an axis is stretched only if its type says that its length is 1"
        )


def _require_lines(op: Op, axes: Sequence[int], xs: Sequence[Any], count: int) -> None:
    """Raise if ``xs`` are not ``count`` float tensors of one rank that have the axes."""
    if len(xs) != count:
        raise TypeError(f"{op}: {count} inputs are needed, got {len(xs)}")
    for x in xs:
        if not dtypes.is_float(x.dtype):
            raise DTypeError(f"{op}: x must be a float tensor, got {x} ({x.type})")
        require_axes(op, axes, x)
    if len({(x.ndim, x.dtype) for x in xs}) > 1:
        types = ", ".join(str(x.type) for x in xs)
        raise ShapeError(f"{op}: its inputs must have one dtype and one rank, got {types}")


class AxisFunction(Op):
    """Base of ops that map each 1-d slice along some axes to a slice of the same length. All inputs
    have one shape.
    """

    n_inputs: ClassVar[int] = 1
    axes: Any

    @property
    def lines(self) -> tuple[int, ...]:
        """The axes."""
        return tuple(self.axes)

    def output_types(self, *xs: TensorVariable) -> list[TensorType]:
        _require_lines(self, self.lines, xs, self.n_inputs)
        return [xs[0].type]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def _apply(self, function: Callable[..., Any], *xs: Any) -> Any:
        _require_one_shape(self, *xs)
        with np.errstate(all="ignore"):
            z = function(*(_widened(_lines(x, self.lines)) for x in xs))
        return np.asarray(_back(z, xs[0], self.lines), xs[0].dtype)


class OneAxisFunction(AxisFunction):
    """Base of those along one ``axis``."""

    axis: Any

    @property
    def lines(self) -> tuple[int, ...]:
        """The axis."""
        return (self.axis,)


@record
class Softmax(OneAxisFunction):
    """z_i = exp(x_i) / sum_j exp(x_j) along ``axis``, without overflow.

    In a slice that holds inf, the infinities give NaN (inf / inf), and the other elements 0.
    """

    axis: Axis

    def perform(self, x: Any) -> Any:
        return self._apply(softmax_of_lines, x)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (z,), (gz,) = outputs, output_grads
        return [z * SubtractWeightedMean(self.lines)(gz, z)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (z,), (dx,) = outputs, tangents
        return [z * SubtractWeightedMean(self.lines)(dx, z)]


@record
class RootSoftmax(OneAxisFunction):
    """z_i = sqrt(exp(x_i) / sum_j exp(x_j)) along ``axis``, also where the quotient underflows."""

    axis: Axis

    def perform(self, x: Any) -> Any:
        return self._apply(_root_softmax, x)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        weights = Softmax(self.axis)(x)
        return [SubtractWeightedMean(self.lines, transposed=True)(0.5 * (gz * z), weights)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        return [0.5 * (z * SubtractWeightedMean(self.lines)(dx, Softmax(self.axis)(x)))]


@record
class LogSoftmax(OneAxisFunction):
    """z_i = x_i - log sum_j exp(x_j) along ``axis``, without overflow.

    In a slice that holds inf, the infinities give NaN (inf - inf), and the other elements -inf.
    """

    axis: Axis

    def perform(self, x: Any) -> Any:
        return self._apply(_log_softmax, x)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [SubtractWeightedMean(self.lines, transposed=True)(gz, Softmax(self.axis)(x))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [SubtractWeightedMean(self.lines)(dx, Softmax(self.axis)(x))]


@record
class WeightedSoftmax(AxisFunction):
    """z_i = w_i exp(x_i) / sum_j w_j exp(x_j) over ``axes``; x and w have one shape."""

    axes: Axes

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, w: Any) -> Any:
        return self._apply(_weighted_softmax, x, w)

    def _by_weight(self, x: Any, w: Any) -> Any:
        """Compute z_i / w_i."""
        total = WeightedLogSumExp(self.axes)(x, w)
        return (x - expand_dims(total, self.axes)).exp()

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, w), (z,), (gz,) = inputs, outputs, output_grads
        centred = SubtractWeightedMean(self.axes)(gz, z)
        return [z * centred, self._by_weight(x, w) * centred]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, w), (z,), (dx, dw) = inputs, outputs, tangents
        tangent: Any = None
        if dx is not None:
            tangent = z * SubtractWeightedMean(self.axes)(dx, z)
        if dw is not None:
            share = self._by_weight(x, w)
            by_weight = share * dw - z * sum_(share * dw, axis=self.axes, keepdims=True)
            tangent = by_weight if tangent is None else tangent + by_weight
        return [tangent]


@record
class SubtractWeightedMean(AxisFunction):
    """z_i = x_i - sum_j w_j x_j over ``axes``, where the weights w of a slice add up to 1;
    transposed: z_i = x_i - w_i sum_j x_j. Nothing cancels where one weight is nearly 1.
    """

    axes: Axes
    transposed: bool = False

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, w: Any) -> Any:
        return self._apply(_centred_transposed if self.transposed else centred, x, w)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, w), (gz,) = inputs, output_grads
        gx = SubtractWeightedMean(self.axes, not self.transposed)(gz, w)
        by_weight = gz * self._sum(x) if self.transposed else self._sum(gz) * x
        return [gx, -by_weight]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, w), (dx, dw) = inputs, tangents
        parts = []
        if dx is not None:
            parts.append(self(dx, w))
        if dw is not None:
            parts.append(-dw * self._sum(x) if self.transposed else -self._sum(dw * x) + 0 * x)
        return [parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None]

    def _sum(self, x: Any) -> Any:
        return sum_(x, axis=self.axes, keepdims=True)


def centred(x: Any, w: Any) -> Any:
    """Subtract the mean by the weights ``w``, which add up to 1, along the last axis."""
    if not x.size:
        return x.copy()
    # Relative to the element with most weight, whose own result is the small sum of the others.
    h = x - np.take_along_axis(x, w.argmax(axis=-1, keepdims=True), axis=-1)
    return h - np.where(w == 0, h * 0, w * h).sum(axis=-1, keepdims=True)


def _centred_transposed(x: Any, w: Any) -> Any:
    if not x.size:
        return x.copy()
    place = w.argmax(axis=-1, keepdims=True)
    z = x - w * x.sum(axis=-1, keepdims=True)
    others = _without(w, place).sum(axis=-1, keepdims=True)
    at = np.take_along_axis(x, place, axis=-1) * others
    at -= np.take_along_axis(w, place, axis=-1) * _without(x, place).sum(axis=-1, keepdims=True)
    np.put_along_axis(z, place, at, axis=-1)
    return z


# -- ops that reduce


class AxisReduction(ReductionOverAxes):
    """Base of reductions of one input or of several, in the wider type."""

    n_inputs: ClassVar[int] = 1

    def output_types(self, *xs: TensorVariable) -> list[TensorType]:
        _require_lines(self, self.axes, xs, self.n_inputs)
        shape = [n for a, n in enumerate(xs[0].type.shape) if a not in self.axes]
        return [TensorType(xs[0].dtype, shape)]

    def _lines(self, *xs: Any) -> list[Any]:
        """Return the arrays with ``axes`` merged into one, the last."""
        _require_one_shape(self, *xs)
        return [_widened(_lines(x, self.axes)) for x in xs]


class _LogOfSum(AxisReduction):
    """Reduces to the logarithm of a sum."""

    def _apply(self, function: Callable[..., Any], *xs: Any) -> Any:
        z = _polished(function, *self._lines(*xs))
        return np.asarray(z[..., 0], xs[0].dtype)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        """Return the softmax; 0 where all elements are -inf."""
        (x,) = inputs
        return [switch(eq(expand_dims(z, self.axes), -np.inf), 0, even_weights(x, self.axes))]


def even_weights(x: Any, axes: tuple[int, ...]) -> Any:
    """Return exp(x) over its sum along axes."""
    return Softmax(axes[0])(x) if len(axes) == 1 else WeightedSoftmax(axes)(x, x.ones_like())


@record
class LogSumExp(_LogOfSum):
    """z = log sum_i exp(x_i) over ``axes``, without overflow."""

    axes: Axes

    def perform(self, x: Any) -> Any:
        return self._apply(_log_sum_exp, x)


@record
class LogMeanExp(_LogOfSum):
    """z = log (1/n sum_i exp(x_i)) over ``axes``, without overflow."""

    axes: Axes

    def perform(self, x: Any) -> Any:
        return self._apply(_log_mean_exp, x)


@record
class WeightedLogSumExp(_LogOfSum):
    """z = log sum_i w_i exp(x_i) over ``axes``, without overflow; NaN if the sum is negative."""

    axes: Axes

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, w: Any) -> Any:
        return self._apply(_weighted_log_sum_exp, x, w)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        x, w = inputs
        return WeightedSoftmax(self.axes)(x, w), (x - expand_dims(z, self.axes)).exp()
