"""Reserve: the op that makes the array of a join, before the parts are computed in their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.shapes.join import differing_shapes

# A length: a number, or an axis of an input.
Measure = int | tuple[int, int]


@record
class Reserve(Op):
    """z = an array for parts that lie one after the other along ``axis``, and the start of each.
    The inputs are the variables whose lengths ``parts`` names.
    -> (.., n_1 + n_2 + .., ..), (), ...
    """

    axis: int
    kind: TensorType
    parts: tuple[tuple[Measure, ...], ...]

    multiple_outputs: ClassVar[bool] = True
    no_derivative: ClassVar[str] = "it is in programs alone, and its elements are anything"

    def output_types(self, *inputs: TensorVariable) -> list[TensorType]:
        return [self.kind, *(TensorType("int64", ()) for _ in range(len(self.parts) + 1))]

    def perform(self, *values: Any) -> tuple[Any, ...]:
        return self.reserve(values, None)

    def reserve(self, values: Sequence[Any], z: Any) -> tuple[Any, ...]:
        """Return the array, which is ``z`` if that is one, and the bounds."""
        shapes = self._shapes([x.shape for x in values])
        whole = list(shapes[0])
        bounds = np.cumsum([0, *(shape[self.axis] for shape in shapes)])
        whole[self.axis] = int(bounds[-1])
        for shape in shapes:
            if any(n != whole[a] for a, n in enumerate(shape) if a != self.axis):
                raise differing_shapes(self.axis, shapes)
        if z is None:
            z = np.empty(whole, self.kind.numpy_dtype)
        return z, *map(np.asarray, bounds)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        first, *others = self._shapes(shapes)
        whole = list(first)
        whole[self.axis] = sum((shape[self.axis] for shape in others), first[self.axis])
        return [tuple(whole), *((),) * (len(self.parts) + 1)]

    def _shapes(self, inputs: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the shapes of the parts, from those of the inputs."""
        return [
            tuple(n if isinstance(n, int) else inputs[n[0]][n[1]] for n in part)
            for part in self.parts
        ]

    def __str__(self) -> str:
        return f"Reserve{{{len(self.parts)} parts, axis={self.axis}}}"
