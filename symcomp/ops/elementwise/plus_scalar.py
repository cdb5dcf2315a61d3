"""A sum with a scalar that is free if the scalar is 0; it keeps NaN that a product with zeros would
give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.scalar_math import add, second
from symcomp.ops.reductions.functions import sum as sum_


@record
class PlusScalar(Op):
    """z = x + s, and x itself, unread, where s is 0.   (..), () -> (..)

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ops.elementwise.plus_scalar import PlusScalar
    >>> x, s = T.dvector("x"), T.dscalar("s")
    >>> PlusScalar()(x, 0 * s).eval({x: [1, 2], s: float("inf")})
    array([nan, nan])
    """

    def output_types(self, x: TensorVariable, s: TensorVariable) -> list[TensorType]:
        if s.ndim or s.dtype != x.dtype:
            raise DTypeError(f"{self}: s is {s.type}; a {x.dtype} scalar is needed")
        return [x.type]

    def perform(self, x: Any, s: Any) -> Any:
        return x if s == 0 else np.asarray(x + s)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        gz = output_grads[0]
        return [gz, sum_(gz, dtype=gz.dtype)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dx, ds = tangents
        if ds is None:
            return [dx]
        return [second(inputs[0], ds) if dx is None else add(dx, ds)]

    view_map = {0: (0,)}


__all__ = ["PlusScalar"]
