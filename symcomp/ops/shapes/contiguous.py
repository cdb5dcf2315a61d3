"""Contiguous: lay a tensor out in row-major order in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable


@record
class Contiguous(Op):
    """z = x in row-major order in memory; x itself if it is."""

    moves = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        return np.ascontiguousarray(x).reshape(x.shape)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]

    view_map = {0: (0,)}
