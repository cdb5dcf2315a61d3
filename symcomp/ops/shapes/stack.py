"""Stack: tensors of one shape along a new first axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError


@record
class Stack(Op):
    """z[i] = x_i for tensors of one shape and dtype: a new first axis. n * (...) -> (n, ...)"""

    moves = True

    def output_types(self, *tensors: TensorVariable) -> list[TensorType]:
        if not tensors:
            raise TypeError("stack: at least one tensor is needed, got none")
        shape = list(tensors[0].type.shape)
        for position, x in enumerate(tensors):
            if x.dtype != tensors[0].dtype:
                raise DTypeError(
                    f"stack: element {position} is {x.type}, element 0 {tensors[0].type}: one "
                    "dtype is needed"
                )
            if x.ndim != len(shape):
                raise ShapeError(
                    f"stack: element {position} has {x.ndim} axes ({x.type}), element 0 has "
                    f"{len(shape)} ({tensors[0].type})"
                )
            for axis, length in enumerate(x.type.shape):
                if length is not None and shape[axis] is not None and length != shape[axis]:
                    raise ShapeError(
                        f"stack: element {position} ({x.type}) has length {length} on axis {axis}, "
                        f"where others have {shape[axis]}"
                    )
                shape[axis] = length if shape[axis] is None else shape[axis]
        return [TensorType(tensors[0].dtype, (len(tensors), *shape))]

    def perform(self, *tensors: Any) -> Any:
        return np.stack(tensors)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(len(shapes), *shapes[0])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (gz,) = output_grads
        return [gz[i] for i in range(len(inputs))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        zeros = [
            x * np.zeros((), x.dtype) if dx is None else dx
            for x, dx in zip(inputs, tangents, strict=True)
        ]
        return [self(*zeros)]
