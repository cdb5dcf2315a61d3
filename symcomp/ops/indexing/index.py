"""Subtensor, IncSubtensor, Nonzero: the ops that read and write parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.indexing.index_pattern import (
    IndexPattern,
    check_pattern,
    describe,
    fill_pattern,
    is_advanced,
    runtime_shape,
    static_shape,
)
from symcomp.ops.shapes.alloc import sum_to


@record
class Subtensor(Op):
    """z = x[pattern]; the inputs after x are the pattern's symbols and arrays. A view if there are
    no arrays.
    """

    pattern: IndexPattern

    moves = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("Subtensor", self.pattern)

    def output_types(self, x: TensorVariable, *inputs: TensorVariable) -> list[TensorType]:
        return [TensorType(x.dtype, static_shape(x, self.pattern, inputs))]

    def perform(self, x: Any, *inputs: Any) -> Any:
        return np.asarray(x[fill_pattern(self.pattern, inputs)])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        shape = runtime_shape(shapes[0], self.pattern, node.inputs[1:], shapes[1:])
        static = node.outputs[0].type.shape
        return [tuple(n if k is None else k for n, k in zip(shape, static, strict=True))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, *rest = inputs
        gz = output_grads[0]
        zeros = x.zeros_like(gz.dtype)
        return [IncSubtensor(self.pattern, False)(zeros, gz, *rest)] + [None] * len(rest)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """A view of x unless arrays index it."""
        return {} if is_advanced(self.pattern) else {0: (0,)}

    def __str__(self) -> str:
        return f"Subtensor{{{describe(self.pattern)}}}"


@record
class IncSubtensor(Op):
    """z = x but z[pattern] = y (``set``) or z[pattern] += y.   Inputs: x, y, and the pattern's
    symbols and arrays.

    At repeated positions values are added up, or the last one is set.
    """

    pattern: IndexPattern
    set: bool
    inplace: bool = False

    moves = True  # each sum is rounded

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("IncSubtensor", self.pattern)

    def output_types(
        self, x: TensorVariable, y: TensorVariable, *inputs: TensorVariable
    ) -> list[TensorType]:
        region = static_shape(x, self.pattern, inputs)
        if y.dtype != x.dtype or y.ndim != len(region):
            raise DTypeError(
                f"{self}: y is {y.type}; a {x.dtype} tensor with {len(region)} axes is needed"
            )
        for axis, (have, want) in enumerate(zip(y.type.shape, region, strict=True)):
            if have not in (None, 1) and want is not None and have != want:
                raise ShapeError(
                    f"{self}: y ({y.type}) has length {have} on axis {axis}, the part of x "
                    f"({x.type}) that it goes to has "
                    f"shape {region}"
                )
        return [x.type]

    def perform(self, x: Any, y: Any, *inputs: Any) -> Any:
        return self.write(x if self.inplace else x.copy(), y, inputs)

    def write(self, z: Any, y: Any, inputs: Any) -> Any:
        """Write into ``z``."""
        key = fill_pattern(self.pattern, inputs)
        if self.set:
            z[key] = y
        elif is_advanced(self.pattern):
            np.add.at(z, key, y)
        else:
            z[key] += y
        return z

    def bind(self, node: Apply) -> Any:
        """Return ``perform``, checking that axes of y not known to have length 1 are not stretched.
        """
        fixed = self.fixed_axes(node)

        def compute(x: Any, y: Any, *inputs: Any) -> Any:
            self.check_stretching(fixed, x, y, inputs)
            return self.perform(x, y, *inputs)

        return compute if fixed else self.perform

    @staticmethod
    def fixed_axes(node: Apply) -> list[int]:
        """Return the axes of y that may not be stretched."""
        return [a for a, n in enumerate(node.inputs[1].type.shape) if n is None]

    def check_stretching(self, fixed: Sequence[int], x: Any, y: Any, inputs: Any) -> None:
        """Raise if one of the ``fixed`` axes of y would be stretched."""
        if any(y.shape[a] == 1 for a in fixed):
            region = x[fill_pattern(self.pattern, inputs)].shape
            if any(y.shape[a] != region[a] for a in fixed):
                raise ShapeError(
                    f"{self}: y has shape {y.shape}, the part that it goes to {region}; an "
                    "axis of length 1 is stretched "
                    "only if its type says so: use T.addbroadcast"
                )

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True]] + [[False]] * (len(node.inputs) - 2)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, y, *rest = inputs
        gz = output_grads[0]
        gx = gz
        if self.set:
            gx = IncSubtensor(self.pattern, True)(gz, y.zeros_like(gz.dtype), *rest)
        gy = sum_to(Subtensor(self.pattern)(gz, *rest), y)
        return [gx, gy] + [None] * len(rest)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        x, y, *rest = inputs
        dx, dy = tangents[:2]
        dx = x.zeros_like() if dx is None else dx
        dy = y.zeros_like() if dy is None else dy
        return [IncSubtensor(self.pattern, self.set)(dx, dy, *rest)]

    @property
    def destroy_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """x if in place."""
        return {0: (0,)} if self.inplace else {}

    def __str__(self) -> str:
        name = "SetSubtensor" if self.set else "IncSubtensor"
        return f"{'Inplace' * self.inplace}{name}{{{describe(self.pattern)}}}"


# -- positions of nonzero elements


@record
class Nonzero(Op):
    """z_k = the positions, along axis k, of the elements of x that are not 0.   (...) -> x.ndim *
    (m,)
    """

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if x.ndim == 0:
            raise ShapeError(f"nonzero: {x} is a scalar; it has no positions")
        return [TensorType("int64", (None,))] * x.ndim

    def perform(self, x: Any) -> tuple[Any, ...]:
        return tuple(np.asarray(p, np.int64) for p in np.nonzero(x))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        x: Any = node.inputs[0]
        count = switch(eq(x, 0), np.int64(0), np.int64(1)).sum()
        return [(count,)] * len(shapes[0])


__all__ = ["IncSubtensor", "Nonzero", "Subtensor"]
