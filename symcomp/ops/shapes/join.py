"""Join, Split: the ops that join and split tensors along an axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis, Natural
from symcomp.core.node import Apply, Constant
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import (
    cast_to,
)
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import (
    length_vector,
    require_axes,
    shape_tuple,
)


@record
class Join(Op):
    """z = the inputs one after the other along ``axis``.   (.., n_k, ..) -> (.., n_1 + n_2 + ..,
    ..)
    """

    axis: Axis

    moves = True

    def output_types(self, *tensors: TensorVariable) -> list[TensorType]:
        if not tensors:
            raise TypeError("join: at least one tensor is needed, got none")
        first = tensors[0]
        require_axes(self, (self.axis,), first)
        shape = list(first.type.shape)
        for position, x in enumerate(tensors):
            if x.ndim != first.ndim or x.dtype != first.dtype:
                raise ShapeError(f"join: tensor {position} is {x.type}, tensor 0 is {first.type}")
            for axis, n in enumerate(x.type.shape):
                if axis == self.axis or n is None:
                    continue
                if shape[axis] not in (None, n):
                    raise ShapeError(
                        f"join along axis {self.axis}: tensor {position} ({x.type}) has length "
                        f"{n} on axis {axis}, "
                        f"the others have {shape[axis]}"
                    )
                shape[axis] = n
        parts = [x.type.shape[self.axis] for x in tensors]
        shape[self.axis] = None if None in parts else sum(n for n in parts if n is not None)
        return [TensorType(first.dtype, shape)]

    def perform(self, *tensors: Any) -> Any:
        return self.concatenated(tensors, None)

    def concatenated(self, tensors: Sequence[Any], z: Any) -> Any:
        """Concatenate into ``z``, or into a new array if it is None."""
        try:
            return np.concatenate(tensors, self.axis, z)
        except ValueError:
            raise differing_shapes(self.axis, [x.shape for x in tensors]) from None

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        result = list(shapes[0])
        result[self.axis] = sum(s[self.axis] for s in shapes[1:]) + shapes[0][self.axis]
        return [tuple(result)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        sizes = length_vector([shape_tuple(x)[self.axis] for x in inputs])
        parts = Split(self.axis, len(inputs))(output_grads[0], sizes)
        # Each part has the static lengths of its input.
        return [specify_shape(g, x.type.shape) for g, x in zip(parts, inputs, strict=True)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [
            self(
                *(
                    x.zeros_like() if dx is None else dx
                    for x, dx in zip(inputs, tangents, strict=True)
                )
            )
        ]


@record
class Split(Op):
    """z_k = the k-th piece of x along ``axis``, a view; the lengths are the second input."""

    axis: Axis
    n: Natural

    moves = True
    multiple_outputs = True

    def output_types(self, x: TensorVariable, sizes: TensorVariable) -> list[TensorType]:
        if sizes.ndim != 1 or not dtypes.is_discrete(sizes.dtype):
            raise DTypeError(
                f"split: the sizes must be an integer vector, got {sizes} ({sizes.type})"
            )
        if sizes.type.shape[0] not in (None, self.n):
            raise ShapeError(f"split: {self.n} pieces but {sizes.type.shape[0]} sizes")
        known = [int(s) for s in sizes.data] if isinstance(sizes, Constant) else [None] * self.n
        if any(s is not None and s < 0 for s in known):
            raise ShapeError(
                f"split: the sizes {known} of the pieces of {x} ({x.type}) must not be negative"
            )
        require_axes(self, (self.axis,), x)
        total = x.type.shape[self.axis]
        if (
            total is not None
            and None not in known
            and sum(s for s in known if s is not None) != total
        ):
            raise ShapeError(
                f"split: sizes {known} do not add up to the length {total} of axis {self.axis} of "
                f"{x.type}"
            )
        before, after = x.type.shape[: self.axis], x.type.shape[self.axis + 1 :]
        return [TensorType(x.dtype, (*before, s, *after)) for s in known]

    def perform(self, x: Any, sizes: Any) -> tuple[Any, ...]:
        if (
            len(sizes) != self.n
            or int(np.sum(sizes)) != x.shape[self.axis]
            or np.any(np.asarray(sizes) < 0)
        ):
            raise ShapeError(
                f"split: sizes {list(map(int, sizes))} do not divide axis {self.axis} of an array "
                f"of shape {x.shape} "
                f"in {self.n} pieces"
            )
        return tuple(np.split(x, np.cumsum(sizes[:-1]), self.axis)) if self.n else ()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        sizes: Any = node.inputs[1]
        before, after = shapes[0][: self.axis], shapes[0][self.axis + 1 :]
        return [(*before, sizes[k], *after) for k in range(self.n)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * self.n, [False] * self.n]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        grads = [
            z.zeros_like() if g is None else g for z, g in zip(outputs, output_grads, strict=True)
        ]
        common = dtypes.upcast(*(g.dtype for g in grads))
        return [Join(self.axis)(*(cast_to(g, common) for g in grads)), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return self(tangents[0], inputs[1])

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """Each piece is a view of x."""
        return dict.fromkeys(range(self.n), (0,))


def differing_shapes(axis: int, shapes: Iterable[Sequence[int]]) -> ShapeError:
    """Return the error for parts that do not fit together."""
    shown = ", ".join(str(tuple(shape)) for shape in shapes)
    return ShapeError(f"join along axis {axis}: shapes {shown} differ on other axes")


__all__ = ["Join", "Split"]
