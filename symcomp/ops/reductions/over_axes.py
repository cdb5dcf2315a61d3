"""ReductionOverAxes: what ops that reduce axes of their inputs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.fields import Axes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import expand_dims


class ReductionOverAxes(Op):
    """Base of ops that reduce ``axes`` of their inputs, all of one shape.

    The derivatives follow from ``_slopes``.
    """

    axes: Axes

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        """Return, for each input, the derivative of the output by each of its elements."""
        raise NotImplementedError

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (z,), (gz,) = outputs, output_grads
        g = expand_dims(gz, self.axes)
        return [g * slope for slope in self._slopes(inputs, z)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        slopes = zip(self._slopes(inputs, outputs[0]), tangents, strict=True)
        parts = [slope * tangent for slope, tangent in slopes if tangent is not None]
        return [sum_(sum(parts[1:], parts[0]), axis=self.axes) if parts else None]
