"""The ops of discrete Fourier transforms; none scales its sums.

With w = exp(-2 pi i / n), transforms sum x[j] w^(j k) over j; inverse ones sum x[k] w^(-j k) over
k. Each op is linear, and its adjoint is built from another of these ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes, Axis
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import and_, gt, lt, switch
from symcomp.ops.linalg.matrices import lapack_dtype
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.shape import known_length, shape_tuple

fourier = lazy_module("scipy.fft")


def as_complex(x: Any) -> TensorVariable:
    """Return ``x`` in complex64 or complex128."""
    x = as_tensor_variable(x)
    return cast_to(x, dtypes.to_complex(lapack_dtype(x.dtype)))


def check_axes(op: Op, x: TensorVariable, axes: Sequence[int]) -> None:
    """Raise unless ``x`` has these axes, each once, and none is known to be empty."""
    if not axes or len(set(axes)) < len(axes) or not all(0 <= a < x.ndim for a in axes):
        raise ShapeError(
            f"{op}: x ({x.type}) has {x.ndim} axes, which are transformed along {tuple(axes)}: "
            "different axes that x has are needed, at least one"
        )
    check_lengths(op, x, x.type.shape, axes)


def check_lengths(op: Op, x: Any, shape: Sequence[Any], axes: Sequence[int]) -> None:
    """Raise if an axis to transform has no elements."""
    if any(shape[a] == 0 for a in axes):
        raise ShapeError(
            f"{op}: x ({x.dtype} of shape {tuple(shape)}) is empty along an axis that is "
            f"transformed {tuple(axes)}: there is no transform of no elements"
        )


def along_axis(vector: TensorVariable, axis: int, ndim: int) -> TensorVariable:
    """Reshape ``vector`` to lie along the axis of a tensor with ``ndim`` axes, the others of length
    1.
    """
    return dimshuffle(vector, *[0 if a == axis else "x" for a in range(ndim)])


@record
class Fourier(Op):
    """z[k] = sum_j x[j] w^(j k) along ``axes``; w^(-j k) if ``inverse``.   Complex, of x's shape"""

    axes: Axes
    inverse: bool = False

    def as_inputs(self, *args: Any) -> list[Any]:
        return [as_complex(a) for a in args]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        check_axes(self, x, self.axes)
        return [x.type]

    def perform(self, x: Any) -> Any:
        check_lengths(self, x, x.shape, self.axes)
        if self.inverse:
            return fourier.ifftn(x, axes=self.axes, norm="forward")
        return fourier.fftn(x, axes=self.axes)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [Fourier(self.axes, not self.inverse)(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


@record
class RealFourier(Op):
    """z[k] = sum_j x[j] w^(j k) along ``axis``, for k = 0 .. n // 2 and real x; the omitted
    elements are conjugates of these.   (.., n, ..) -> (.., n // 2 + 1, ..)
    """

    axis: Axis

    def as_inputs(self, *args: Any) -> list[Any]:
        tensors = [as_tensor_variable(a) for a in args]
        return [cast_to(x, lapack_dtype(x.dtype)) for x in tensors]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if dtypes.is_complex(x.dtype):
            raise DTypeError(f"{self}: x ({x.type}) must be real; fft and fftn take complex x")
        check_axes(self, x, (self.axis,))
        shape = self._half(x.type.shape)
        return [TensorType(dtypes.to_complex(x.dtype), shape)]

    def _half(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        n = shape[self.axis]
        half = None if n is None else n // 2 + 1
        return (*shape[: self.axis], half, *shape[self.axis + 1 :])

    def perform(self, x: Any) -> Any:
        check_lengths(self, x, x.shape, (self.axis,))
        return fourier.rfft(x, axis=self.axis)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [self._half(shapes[0])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        n = shape_tuple(x)[self.axis]
        # InverseRealFourier counts an element twice if it also stands for its conjugate.
        weights = doubled(gz, self.axis, n, 0.5)
        return [InverseRealFourier(self.axis)(as_complex(gz) * weights, n)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


@record
class InverseRealFourier(Op):
    """z[j] = sum_k x[k] w^(-j k) along ``axis``, k = 0 .. n - 1, where x[n - k] = conj(x[k]) is not
    given, and the imaginary parts of x[0] and x[n / 2] count as 0.

    Inputs: x, n.   (.., n // 2 + 1, ..) -> (.., n, ..), real
    """

    axis: Axis

    def as_inputs(self, *args: Any) -> list[Any]:
        x, n = args
        return [as_complex(x), as_tensor_variable(n)]

    def output_types(self, x: TensorVariable, n: TensorVariable) -> list[TensorType]:
        if n.ndim or not dtypes.is_discrete(n.dtype) or n.dtype == "bool":
            raise DTypeError(f"{self}: n ({n.type}) must be an integer scalar")
        check_axes(self, x, (self.axis,))
        length, half = known_length(n), x.type.shape[self.axis]
        if length is not None and half is not None:
            self.check(x, x.type.shape, length)
        shape = (*x.type.shape[: self.axis], length, *x.type.shape[self.axis + 1 :])
        return [TensorType(dtypes.real_part(x.dtype), shape)]

    def check(self, x: Any, shape: Sequence[Any], n: int) -> None:
        """Raise if ``x``, of this shape, is not half of a transform of length n."""
        if n < 1 or shape[self.axis] != n // 2 + 1:
            raise ShapeError(
                f"{self}: x ({x.dtype} of shape {tuple(shape)}) does not fit n = {n}: n must be "
                f"positive, and x must have n // 2 + 1 elements along axis {self.axis}"
            )

    def perform(self, x: Any, n: Any) -> Any:
        self.check(x, x.shape, int(n))
        return fourier.irfft(x, int(n), axis=self.axis, norm="forward")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        length = known_length(node.inputs[1])
        n = node.inputs[1] if length is None else length
        return [(*shapes[0][: self.axis], n, *shapes[0][self.axis + 1 :])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (_, n), (gz,) = inputs, output_grads
        gx = RealFourier(self.axis)(gz)
        return [gx * doubled(gx, self.axis, n, 2.0), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]


def doubled(z: TensorVariable, axis: int, n: Any, weight: float) -> TensorVariable:
    """Return ``weight`` for those of the n // 2 + 1 elements that stand for two, else 1."""
    k = arange(shape_tuple(z)[axis])
    precision = dtypes.real_part(z.dtype)
    one, factor = (np.asarray(v, precision) for v in (1.0, weight))
    return along_axis(switch(and_(gt(k, 0), lt(k * 2, n)), factor, one), axis, z.ndim)


__all__ = ["Fourier", "InverseRealFourier", "RealFourier"]
