"""Perform: an op of PyTensor that is computed by its own Python code."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pytensor.scalar.basic import ScalarType

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.errors import SymcompError
from symcomp.ops.random.state import halved_words_of
from symcomp.ops.shapes.shape import ShapeI
from symcomp.pytensor_backend.types import (
    generator_of,
    is_generator,
    is_tensor,
    type_of,
)

log = logging.getLogger("symcomp.pytensor_backend")
_noted: set[str] = set()


def title_of(op: Any) -> str:
    """Name an op of PyTensor briefly: by its class, and the class of the op that it applies."""
    inner = getattr(op, "core_op", None) or getattr(op, "scalar_op", None)
    outer = type(op).__name__
    return outer if inner is None else f"{outer}[{type(inner).__name__}]"


def note_fallback(op: Any) -> None:
    """Log, once for each kind of op, that it is computed by its ``perform``."""
    title = title_of(op)
    if title not in _noted:
        _noted.add(title)
        log.info("%s has no translation: its own perform computes it", title)


@record(eq=False)
class Perform(Op):
    """z_1, .., z_k = perform(x_1, .., x_n) of an op of PyTensor.

    Attributes
    ----------
    op : pytensor.graph.op.Op
    node : pytensor.graph.basic.Apply
        What ``perform`` is called with.
    streams : bool
        Whether generators among inputs and outputs are arrays.
    """

    op: Any
    node: Any
    streams: bool = True

    multiple_outputs = True
    no_derivative = "PyTensor has taken all derivatives before the graph is translated"

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        return self._positions(getattr(self.op, "view_map", {}))

    @property
    def destroy_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        return self._positions(getattr(self.op, "destroy_map", {}))

    def _positions(self, given: dict[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
        """Return a map of positions without generators that are arrays: they share no memory."""
        found = {
            j: tuple(i for i in places if not self._is_stream(self.node.inputs[i]))
            for j, places in given.items()
            if not self._is_stream(self.node.outputs[j])
        }
        return {j: places for j, places in found.items() if places}

    def _is_stream(self, v: Any) -> bool:
        return self.streams and is_generator(v.type)

    def output_types(self, *inputs: Any) -> list[Type]:
        return [type_of(v.type, self.streams) for v in self.node.outputs]

    def perform(self, *values: Any) -> tuple[Any, ...]:
        """Compute by PyTensor's ``perform``, or by its thunk where that needs preparing."""
        node, given = self.node, self._given(values)
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        self.op.perform(node, given, storage)
        found: list[Any] = []
        for v, (z,) in zip(node.outputs, storage, strict=True):
            if self._is_stream(v):
                found.append(halved_words_of(z))
            else:
                found.append(self._checked(z, v, len(found), values))
        return tuple(found)

    def _given(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of inputs as PyTensor's ``perform`` expects them."""
        given = []
        for v, x in zip(self.node.inputs, values, strict=True):
            if self._is_stream(v):
                given.append(generator_of(x))
            else:
                given.append(x[()] if isinstance(v.type, ScalarType) else x)
        return given

    def _checked(self, z: Any, v: Any, place: int, values: Sequence[Any]) -> Any:
        """Return an output's value as an array that shares memory only as ``view_map`` says."""
        if not is_tensor(v.type):
            return z
        z = np.asarray(z)
        if z.dtype != v.type.dtype or z.ndim != len(getattr(v.type, "shape", ())):
            raise SymcompError(
                f"{self.op}: perform made an array of {z.dtype} with shape {z.shape} for {v}, "
                f"whose type is {v.type}"
            )
        known = (*self.view_map.get(place, ()), *self.destroy_map.get(place, ()))
        for i, x in enumerate(values):
            if i not in known and isinstance(x, np.ndarray) and np.may_share_memory(z, x):
                return z.copy()
        return z

    def bind(self, node: Apply) -> Callable[..., Any]:
        """``perform``; inner functions of PyTensor's op are compiled now."""
        prepare = getattr(self.op, "prepare_node", None)
        if prepare is not None:
            prepare(self.node, None, None, impl="py")
        return self.perform

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [
            None
            if not hasattr(z.type, "shape")
            else tuple(ShapeI(axis)(z) if n is None else n for axis, n in enumerate(z.type.shape))
            for z in node.outputs
        ]

    def __str__(self) -> str:
        return f"Perform{{{title_of(self.op)}}}"
