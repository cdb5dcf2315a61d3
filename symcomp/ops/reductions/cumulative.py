"""CumOp, and the linear recurrence that its derivatives consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import cast, conj
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import require_axes


def along(axis: int, ndim: int, part: slice) -> tuple[slice, ...]:
    """Return the index expression that applies ``part`` to one axis."""
    return tuple(part if a == axis else slice(None) for a in range(ndim))


def _reversed(x: TensorVariable, axis: int) -> TensorVariable:
    return getitem(x, along(axis, x.ndim, slice(None, None, -1)))


def _shifted(x: TensorVariable, axis: int, first: float) -> TensorVariable:
    """Return x_{k-1}, with ``first`` at k = 0."""
    head = getitem(x, along(axis, x.ndim, slice(None, 1)))
    start = head.zeros_like() if first == 0 else head.ones_like()
    return concatenate([start, getitem(x, along(axis, x.ndim, slice(None, -1)))], axis)


@record
class CumOp(Op):
    """z_k = x_0 + ... + x_k (``mode`` "add") or x_0 * ... * x_k ("mul") along ``axis``."""

    axis: Axis
    mode: Annotated[str, one_of("add", "mul")]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, (self.axis,), x)
        return [TensorType(dtypes.accumulator(x.dtype), x.type.shape)]

    def perform(self, x: Any) -> Any:
        run: Any = np.cumsum if self.mode == "add" else np.cumprod
        accumulated = dtypes.accumulator(x.dtype.name)
        return run(x, self.axis, dtype=accumulated)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        if self.mode == "add":
            return [_reversed(CumOp(self.axis, "add")(_reversed(gz, self.axis)), self.axis)]
        # h_k = gz_k + x_{k+1} h_{k+1}: the gradient of all later products with respect to z_k.
        rates = _shifted(_reversed(conj(x), self.axis), self.axis, 0)
        h = _reversed(LinearRecurrence(self.axis)(rates, _reversed(gz, self.axis)), self.axis)
        return [h * conj(_shifted(z, self.axis, 1))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (z,), (dx,) = inputs, outputs, tangents
        if self.mode == "add":
            return [self(dx)]
        return [LinearRecurrence(self.axis)(x, dx * _shifted(z, self.axis, 1))]


@record
class LinearRecurrence(Op):
    """z_k = a_k z_{k-1} + b_k along ``axis``, with z_{-1} = 0.   a, b, z: one shape."""

    axis: Axis

    def as_inputs(self, *args: Any) -> list[Any]:
        a, b = (as_tensor_variable(x) for x in args)
        common = dtypes.upcast(a.dtype, b.dtype)
        return [cast(a, common), cast(b, common)]

    def output_types(self, a: TensorVariable, b: TensorVariable) -> list[TensorType]:
        if a.ndim != b.ndim:
            raise ShapeError(f"{self}: {a} ({a.type}) and {b} ({b.type}) must have one shape")
        require_axes(self, (self.axis,), a)
        shape = [m if n is None else n for n, m in zip(a.type.shape, b.type.shape, strict=True)]
        return [TensorType(a.dtype, shape)]

    def perform(self, a: Any, b: Any) -> Any:
        z = b.copy()
        rows, rates = np.moveaxis(z, self.axis, 0), np.moveaxis(a, self.axis, 0)
        for k in range(1, len(rows)):
            rows[k] += rates[k] * rows[k - 1]
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (a, _), (z,), (gz,) = inputs, outputs, output_grads
        rates = _shifted(_reversed(conj(a), self.axis), self.axis, 0)
        h = _reversed(LinearRecurrence(self.axis)(rates, _reversed(gz, self.axis)), self.axis)
        return [h * conj(_shifted(z, self.axis, 0)), h]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (a, _), (z,), (da, db) = inputs, outputs, tangents
        drive = None if da is None else da * _shifted(z, self.axis, 0)
        drive = db if drive is None else drive if db is None else drive + db
        return [LinearRecurrence(self.axis)(a, drive)]


__all__ = ["CumOp", "LinearRecurrence"]
