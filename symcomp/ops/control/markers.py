"""Gradient markers: identity ops that change derivatives alone; rewriting drops them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.ops.convert import as_tensor_variable


class GradientMarker(Op):
    """z = x, a view; subclasses have other derivatives than this, the identity."""

    moves = True
    view_map = {0: (0,)}

    def as_inputs(self, *args: Any) -> list[Variable]:
        return [a if isinstance(a, Variable) else as_tensor_variable(a) for a in args]

    def output_types(self, x: Variable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return list(output_grads)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return list(tangents)


@record
class WithoutDerivative(GradientMarker):
    """z = x, without a derivative in y_1 .. y_n; ``reason`` says why.   Inputs: x, y_1 .. y_n"""

    reason: str

    def output_types(self, x: Variable, *others: Variable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any, *others: Any) -> Any:
        return x

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        return [[""], *([self.reason] for _ in node.inputs[1:])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0], *(NullType(self.reason)() for _ in inputs[1:])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        moved = any(dy is not None for dy in tangents[1:])
        return [NullType(self.reason)() if moved else tangents[0]]
