"""FirstRows: the rows of a sequence that a loop reads, for what is computed around the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from symcomp.core.node import Apply, Constant
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.index import set_subtensor


@dataclass(frozen=True)
class FirstRows(Op):
    """z = x[:n], where x must have that many rows.   (m, ...), n -> (n, ...), m >= n

    ``label`` names the rows in the message if there are fewer.
    """

    label: str = field(default="", compare=False)

    view_map = {0: (0,)}

    def output_types(self, x: TensorVariable, n: TensorVariable) -> list[TensorType]:
        rows = int(n.data) if isinstance(n, Constant) else None
        return [TensorType(x.dtype, (rows, *x.type.shape[1:]))]

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
        return [(node.inputs[1], *shapes[0][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, n = inputs
        return [set_subtensor(x.zeros_like(output_grads[0].dtype)[:n], output_grads[0]), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]
