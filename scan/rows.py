"""Ops on rows around loops: FirstRows, the rows of a sequence that a loop reads; Continued, the
rows of two consecutive loops; LastRows and LeadingRows, the rows of a state of which only some are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Between
from symcomp.core.node import Apply, Constant
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.cvm.machine import FirstOnDevice
from symcomp.errors import ShapeError
from symcomp.ops.elementwise.scalar_math import maximum
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.subtensors import set_subtensor
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.canonicalize.structure import zeros_in
from symcomp.vm.written_rows import array_type


@record
class FirstRows(Op):
    """z = x[:n], where x must have that many rows.   (m, ...), n -> (n, ...), m >= n

    x may lie on a device. ``label`` names the rows in the message if there are fewer.
    """

    label: str = field(default="", compare=False)

    view_map = {0: (0,)}

    def output_types(self, x: Any, n: TensorVariable) -> list[Any]:
        rows = int(n.data) if isinstance(n, Constant) else None
        return [array_type(x.type, (rows, *x.type.shape[1:]))]

    def bind(self, node: Apply) -> Callable[..., Any]:
        is_tensor = isinstance(node.inputs[0].type, TensorType)
        return self.perform if is_tensor else FirstOnDevice(self.perform)

    def perform(self, x: Any, n: Any) -> Any:
        if n < 0:
            raise ValueError(f"scan: the number of steps is {int(n)}; it must not be negative")
        if len(x) < n:
            raise ShapeError(
                f"scan: the sequence read as {self.label} has length {len(x)} (shape {x.shape}), "
                f"but {int(n)} steps need {int(n)}: pass a longer one, or fewer n_steps"
            )
        return x[: int(n)]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None if shapes[0] is None else (node.inputs[1], *shapes[0][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, n = inputs
        return [set_subtensor(x.zeros_like(output_grads[0].dtype)[:n], output_grads[0]), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]


@record
class Continued(Op):
    """z = the rows of x, then those of y.   (m, ...), (n, ...) -> (m + n, ...)

    y is empty only if x is: so the last row of z, if there is one, is that of y.
    """

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        m, n = x.type.shape[0], y.type.shape[0]
        rows = None if m is None or n is None else m + n
        rest = zip(x.type.shape[1:], y.type.shape[1:], strict=True)
        return [TensorType(x.dtype, (rows, *(b if a is None else a for a, b in rest)))]

    def perform(self, x: Any, y: Any) -> Any:
        return np.concatenate([x, y])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(shapes[0][0] + shapes[1][0], *shapes[1][1:])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), (gz,) = inputs, output_grads
        node = gz.owner
        written = node is not None and isinstance(node.op, IncSubtensor)
        if written and node.op.pattern == (-1,) and zeros_in(node.inputs[0]):
            # Only the last row: no zeros are made for all others.
            return [None, IncSubtensor((-1,), False)(y.zeros_like(gz.dtype), node.inputs[1])]
        m = ShapeI(0)(x)
        return [gz[:m], gz[m:]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dx, dy = (
            x.zeros_like() if dx is None else dx for x, dx in zip(inputs, tangents, strict=True)
        )
        return [self(dx, dy)]


@record
class LastRows(Op):
    """z = n + ``more`` rows, the last of which are those of y; the others are never read. n, (k,
    ...) -> (max(n + more, 0), ...), n >= 0
    """

    more: Annotated[int, Between(-(2**63), 2**63 - 1)]

    no_derivative = "it is made by rewrites, of what was differentiated before"

    def output_types(self, n: TensorVariable, y: TensorVariable) -> list[TensorType]:
        length = max(int(n.data) + self.more, 0) if isinstance(n, Constant) else None
        return [TensorType(y.dtype, (length, *y.type.shape[1:]))]

    def perform(self, n: Any, y: Any) -> Any:
        length = max(int(n) + self.more, 0)
        z = np.zeros((length, *y.shape[1:]), y.dtype)
        known = min(len(y), length)
        z[length - known :] = y[len(y) - known :]
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(maximum(node.inputs[0] + self.more, 0), *shapes[1][1:])]


@record
class LeadingRows(Op):
    """z = n rows, the first of which are those of x; the others are never read. (k, ...), n -> (n,
    ...), n >= k
    """

    no_derivative = "it is made by rewrites, of what was differentiated before"

    def output_types(self, x: TensorVariable, n: TensorVariable) -> list[TensorType]:
        length = int(n.data) if isinstance(n, Constant) else None
        return [TensorType(x.dtype, (length, *x.type.shape[1:]))]

    def perform(self, x: Any, n: Any) -> Any:
        z = np.zeros((int(n), *x.shape[1:]), x.dtype)
        z[: len(x)] = x
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[1], *shapes[0][1:])]
