"""DimShuffle: permute, drop and insert axes; the op behind transpose, squeeze and expand_dims."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Axis, Rank, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import AxisError, ShapeError

Order = tuple[Axis | Annotated[str, one_of("x")], ...]


@record
class DimShuffle(Op):
    """z[i_order[0], i_order[1], ...] = x[i_0, i_1, ...]; ``"x"`` in ``order`` is a new axis of
    length 1.

    Axes of x that ``order`` leaves out are dropped and must have length 1. z is a view of x.
    """

    ndim: Rank
    order: Order

    moves = True

    def __post_init__(self) -> None:
        super().__post_init__()
        kept = self.kept
        if len({*kept}) < len(kept) or any(axis >= self.ndim for axis in kept):
            raise AxisError(
                f"dimshuffle: the order {self.order} must name axes of {self.ndim}, each once"
            )

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if x.ndim != self.ndim:
            raise ShapeError(f"dimshuffle: x has {x.ndim} axes ({x.type}), expected {self.ndim}")
        for axis in self.dropped:
            if x.type.shape[axis] not in (1, None):
                raise ShapeError(
                    f"dimshuffle: axis {axis} of x ({x.type}) has length {x.type.shape[axis]}; "
                    "only axes of length 1 can be dropped"
                )
        shape = tuple(1 if a == "x" else x.type.shape[int(a)] for a in self.order)
        return [TensorType(x.dtype, shape)]

    @cached_property
    def dropped(self) -> tuple[int, ...]:
        """The axes of x that are not in ``order``."""
        return tuple(a for a in range(self.ndim) if a not in self.order)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The axes of x that are in ``order``, in this order."""
        return tuple(int(a) for a in self.order if a != "x")

    def perform(self, x: Any) -> Any:
        for axis in self.dropped:
            if x.shape[axis] != 1:
                raise ShapeError(
                    f"dimshuffle: cannot drop axis {axis} of length {x.shape[axis]} of an array of "
                    f"shape {x.shape}"
                )
        if self.dropped:
            x = x.reshape([n for a, n in enumerate(x.shape) if a in self.order])
        places, key = self._steps
        z = x.transpose(places)
        return z[key] if key else z

    @cached_property
    def _steps(self) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """How the kept axes are transposed, and the index that inserts axes."""
        rank = {axis: i for i, axis in enumerate(sorted(self.kept))}
        key = tuple(np.newaxis if a == "x" else slice(None) for a in self.order)
        return tuple(rank[a] for a in self.kept), key

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(1 if a == "x" else shapes[0][a] for a in self.order)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        position = {a: i for i, a in enumerate(self.order) if a != "x"}
        back = tuple(position.get(a, "x") for a in range(self.ndim))
        (gz,) = output_grads
        # Axes inserted here have length 1, and may be dropped in the gradient.
        return [DimShuffle(len(self.order), back)(gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]

    view_map = {0: (0,)}

    def __str__(self) -> str:
        return f"DimShuffle{{{','.join(map(str, self.order))}}}"
