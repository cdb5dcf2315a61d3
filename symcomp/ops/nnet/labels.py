"""Labels: integers that name one of n classes, checked when the function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, LabelError, ShapeError
from symcomp.ops.convert import as_tensor_variable


@record
class Labels(Op):
    """z = y, a view; a LabelError at run time unless 0 <= y < n.   (k,) () -> (k,)

    Error messages begin with ``name``: a function and its argument.
    """

    name: str

    def as_inputs(self, *args: Any) -> list[Any]:
        y, n = args
        return [y, as_tensor_variable(n, dtype="int64")]

    def output_types(self, y: TensorVariable, n: TensorVariable) -> list[TensorType]:
        if not dtypes.is_integer(y.dtype):
            raise DTypeError(
                f"{self.name} is {y.type}; the classes must be integers: cast them to int64"
            )
        if y.ndim != 1 or n.ndim != 0:
            raise ShapeError(f"{self.name} is {y.type}; a vector is needed, one class for each row")
        return [y.type]

    def perform(self, y: Any, n: Any) -> Any:
        wrong = (y < 0) | (y >= n)
        if wrong.any():
            first = int(wrong.argmax())
            raise LabelError(
                f"{self.name}[{first}] is {y[first]}, out of bounds: there are {n} classes, 0 to "
                f"{int(n) - 1} (shape {y.shape}, {y.dtype})"
            )
        return y

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0], None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]

    view_map = {0: (0,)}
