"""Pooling: one number for each window of an image: the largest, the sum, or the mean."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Rank, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ParameterError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import ge, switch
from symcomp.ops.shapes.shape import known_length, shape_tuple
from symcomp.ops.windows.geometry import Count, Geometry, Margin

MODES = ("sum", "average_inc_pad", "average_exc_pad")


def count_windows(n: Any, k: Any, step: Any, pad: Any, partial: bool) -> Any:
    """Return the number of windows of ``k`` elements along an axis of length ``n``; ints, or
    variables.
    """
    if not partial:
        return (n + 2 * pad - k) // step + 1
    apart = (n - 1) // step + 1
    rest = (n - 1 - k + step) // step
    meeting = (max(0, rest) if isinstance(rest, int) else switch(rest > 0, rest, 0)) + 1
    if isinstance(step, int) and isinstance(k, int):
        return apart if step >= k else meeting
    return switch(ge(step, k), apart, meeting)


@record
class _Pooling(Op):
    """Base of pooling ops: windows over the last axes.

    With ``partial`` the last window may reach beyond the image, so that no element is left out.
    """

    window: tuple[Count, ...]
    strides: tuple[Count, ...]
    padding: tuple[Margin, ...]
    partial: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.window) == len(self.strides) == len(self.padding) > 0:
            raise ParameterError(
                f"{self.name}: window {self.window}, strides {self.strides} and padding "
                f"{self.padding} must have one entry for each spatial axis, at least one"
            )
        if any(p >= k for p, k in zip(self.padding, self.window, strict=True)):
            raise ParameterError(
                f"{self.name}: the padding {self.padding} must be smaller than the window "
                f"{self.window}"
            )
        if self.partial and any(self.padding):
            raise ParameterError(
                f"{self.name}: the padding {self.padding} must be 0 where the last window may "
                "reach beyond the image"
            )

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def ndim(self) -> int:
        """The number of spatial axes."""
        return len(self.window)

    def count(self, axis: int, n: Any) -> Any:
        """Return the number of windows along an axis of length ``n``."""
        return count_windows(
            n, self.window[axis], self.strides[axis], self.padding[axis], self.partial
        )

    def counts(self, lengths: Sequence[Any]) -> tuple[Any, ...]:
        """Return the number of windows along each axis; None where the length is None.

        Raises
        ------
        ShapeError
            If there is none.
        """
        found = tuple(None if n is None else self.count(a, n) for a, n in enumerate(lengths))
        for a, (n, m) in enumerate(zip(lengths, found, strict=True)):
            if isinstance(m, int) and (m < 1 or n < 1):
                raise ShapeError(
                    f"{self.name}: windows of {self.window} do not fit an image of "
                    f"{tuple(lengths)}, padded by {self.padding}, along axis {a}: make the window "
                    "smaller, or pass ignore_border=False"
                )
        return found

    def _check(self, x: Any) -> None:
        if x.ndim < self.ndim:
            raise ShapeError(f"{self.name}: {x} is {x.type}; {self.ndim} axes at least are needed")
        if dtypes.is_complex(x.dtype) or x.dtype == "bool":
            raise DTypeError(f"{self.name}: {x} is {x.type}; real numbers are needed: cast it")

    def _split(self, x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the lengths before the spatial axes, and the spatial ones."""
        shape = x.type.shape if hasattr(x, "type") else x.shape
        return shape[: len(shape) - self.ndim], shape[len(shape) - self.ndim :]

    def _ends(self, lengths: Sequence[int]) -> list[int]:
        """Return the number of elements to add behind the image so that all windows are whole."""
        return [
            max(0, (self.count(a, n) - 1) * s + k - n - p)
            for a, (n, k, s, p) in enumerate(
                zip(lengths, self.window, self.strides, self.padding, strict=True)
            )
        ]

    def _whole(self, lengths: Sequence[int]) -> Geometry:
        """Return the geometry of whole windows over the padded image."""
        pads = tuple(zip(self.padding, self._ends(lengths), strict=True))
        return Geometry(pads, self.strides, (1,) * self.ndim)


@record
class MaxPool(_Pooling):
    """z[.., i] = max over j of x[.., i s + j - p], and where: the position of the first such
    element in its image, counted along the spatial axes.   NaN is the largest.
    """

    multiple_outputs = True

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        self._check(x)
        lead, lengths = self._split(x)
        shape = (*lead, *self.counts(lengths))
        return [TensorType(x.dtype, shape), TensorType("int64", shape)]

    def perform(self, x: Any) -> tuple[Any, Any]:
        lead, lengths = self._split(x)
        counts = self.counts(lengths)
        geometry = self._whole(lengths)
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        wide = geometry.padded(x, self.window, lowest)
        largest = np.full((*lead, *counts), lowest, x.dtype)
        where = np.empty(largest.shape, np.int64)
        where[...] = self._positions(lengths, counts, (0,) * self.ndim)
        for at, parts in geometry.offsets(self.window, counts):
            some = wide[(..., *parts)]
            with np.errstate(invalid="ignore"):
                # True for NaN, unless the largest is NaN already.
                better = ~(some <= largest) & (largest == largest)
            np.copyto(largest, some, where=better)
            np.copyto(where, self._positions(lengths, counts, at), where=better)
        return largest, where

    def _positions(self, lengths: Sequence[int], counts: Sequence[int], at: Sequence[int]) -> Any:
        """Return the positions in the image of the elements ``at`` of the windows; clipped to the
        image.
        """
        total = np.zeros((1,) * self.ndim, np.int64)
        for axis, (n, m, i) in enumerate(zip(lengths, counts, at, strict=True)):
            along = np.arange(m) * self.strides[axis] + i - self.padding[axis]
            shape = [-1 if a == axis else 1 for a in range(self.ndim)]
            total = total * n + np.clip(along, 0, n - 1).reshape(shape)
        return total

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        (shape,) = shapes
        cut = len(shape) - self.ndim
        return [(*shape[:cut], *(self.count(a, n) for a, n in enumerate(shape[cut:])))] * 2

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        lengths = shape_tuple(inputs[0])[inputs[0].ndim - self.ndim :]
        return [ToPositions(self.ndim)(output_grads[0], outputs[1], *lengths)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [AtPositions(self.ndim)(tangents[0], outputs[1]), None]

    def __str__(self) -> str:
        return f"MaxPool{{{self.window}, {self.strides}, {self.padding}}}"


def _planes(x: Any, ndim: int) -> Any:
    """Merge the spatial axes into one, and those before them into another."""
    cut = x.ndim - ndim
    return x.reshape(prod(x.shape[:cut]), prod(x.shape[cut:]))


def _require_positions(op: Any, x: TensorVariable, where: TensorVariable) -> None:
    """Raise unless ``where`` has positions in the last ``op.ndim`` axes of tensors like ``x``."""
    if not 0 < op.ndim <= x.ndim or where.ndim != x.ndim:
        raise ShapeError(
            f"{op}: {x} ({x.type}) and {where} ({where.type}) must have one rank, at least "
            f"{max(op.ndim, 1)}"
        )
    if where.dtype != "int64":
        raise DTypeError(f"{op}: the positions are {where.type}; int64 is needed")


def _require_lengths(op: Any, lengths: Sequence[Any]) -> None:
    """Raise unless there is an int64 scalar for each spatial axis of ``op``."""
    if len(lengths) != op.ndim or any(n.ndim or n.dtype != "int64" for n in lengths):
        shown = ", ".join(str(n.type) for n in lengths)
        raise ShapeError(f"{op}: {op.ndim} lengths, int64 scalars, are needed, got ({shown})")


@record
class AtPositions(Op):
    """z[.., i] = x[.., where[.., i]]: elements of images at positions that are counted along the
    last ``ndim`` axes.
    """

    ndim: Rank

    def output_types(self, x: TensorVariable, where: TensorVariable) -> list[TensorType]:
        _require_positions(self, x, where)
        return [TensorType(x.dtype, where.type.shape)]

    def perform(self, x: Any, where: Any) -> Any:
        found = np.take_along_axis(_planes(x, self.ndim), _planes(where, self.ndim), axis=1)
        return found.reshape(where.shape)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, where = inputs
        lengths = shape_tuple(x)[x.ndim - self.ndim :]
        return [ToPositions(self.ndim)(output_grads[0], where, *lengths), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]


@record
class ToPositions(Op):
    """x[.., where[.., i]] += g[.., i], from zeros: the adjoint of ``AtPositions``.

    Inputs: g, where, the spatial lengths of x.
    """

    ndim: Rank

    def as_inputs(self, *args: Any) -> list[Any]:
        g, where, *lengths = args
        return [g, where, *(as_tensor_variable(n, dtype="int64") for n in lengths)]

    def output_types(self, g: TensorVariable, where: TensorVariable, *rest: Any) -> list[Any]:
        _require_positions(self, g, where)
        _require_lengths(self, rest)
        lead = where.type.shape[: where.ndim - self.ndim]
        return [TensorType(g.dtype, (*lead, *(known_length(n) for n in rest)))]

    def perform(self, g: Any, where: Any, *rest: Any) -> Any:
        lengths = [int(n) for n in rest]
        lead = where.shape[: where.ndim - self.ndim]
        x = np.zeros((prod(lead), prod(lengths)), g.dtype)
        places = _planes(where, self.ndim) + np.arange(len(x))[:, None] * x.shape[1]
        if g.dtype == np.float64:
            x = np.bincount(places.ravel(), g.ravel(), x.size)
        else:
            np.add.at(x.reshape(-1), places.ravel(), g.ravel())
        return x.reshape(*lead, *lengths)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        static = node.outputs[0].type.shape[-self.ndim :]
        lengths = [m if n is None else n for n, m in zip(static, node.inputs[2:], strict=True)]
        return [(*shapes[1][: len(shapes[1]) - self.ndim], *lengths)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        rest = len(inputs) - 1
        return [AtPositions(self.ndim)(output_grads[0], inputs[1])] + [None] * rest

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


@record
class SumPool(_Pooling):
    """z[.., i] = sum over j of x[.., i s + j - p], divided by how many there are.

    ``mode``: "sum" divides by nothing, "average_inc_pad" by the elements of the window within the
    padded image, "average_exc_pad" by those within the image itself.
    """

    mode: Annotated[str, one_of(*MODES)]

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        self._check(x)
        lead, lengths = self._split(x)
        return [TensorType(x.dtype, (*lead, *self.counts(lengths)))]

    def perform(self, x: Any) -> Any:
        lead, lengths = self._split(x)
        counts = self.counts(lengths)
        geometry = self._whole(lengths)
        work = np.float32 if x.dtype == np.float16 else x.dtype
        wide = geometry.padded(x, self.window)
        total = np.zeros((*lead, *counts), work)
        for _, parts in geometry.offsets(self.window, counts):
            total += wide[(..., *parts)]
        return (total * self.factors(lengths, work)).astype(x.dtype, copy=False)

    def factors(self, lengths: Sequence[int], dtype: Any) -> Any:
        """Return what the sum of each window is multiplied by."""
        if self.mode == "sum":
            return np.ones((), dtype)
        found = np.ones((1,) * self.ndim)
        for axis, n in enumerate(lengths):
            p = self.padding[axis]
            first = np.arange(self.count(axis, n)) * self.strides[axis]
            last = np.minimum(first + self.window[axis], n + 2 * p)
            if self.mode == "average_exc_pad":
                first, last = np.maximum(first, p), np.minimum(last, n + p)
            shape = [-1 if a == axis else 1 for a in range(self.ndim)]
            found = found / (last - first).reshape(shape)
        return found.astype(dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        (shape,) = shapes
        cut = len(shape) - self.ndim
        return [(*shape[:cut], *(self.count(a, n) for a, n in enumerate(shape[cut:])))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        spread = SumPoolInputs(self.window, self.strides, self.padding, self.partial, self.mode)
        lengths = shape_tuple(inputs[0])[inputs[0].ndim - self.ndim :]
        return [spread(output_grads[0], *lengths)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]

    def __str__(self) -> str:
        return f"{self.name}{{{self.mode}, {self.window}, {self.strides}, {self.padding}}}"


@record
class SumPoolInputs(SumPool):
    """x[.., i s + j - p] += g[.., i], divided as there: the adjoint of ``SumPool``.

    Inputs: g, the spatial lengths of x.
    """

    def as_inputs(self, *args: Any) -> list[Any]:
        g, *lengths = args
        return [g, *(as_tensor_variable(n, dtype="int64") for n in lengths)]

    def output_types(self, g: TensorVariable, *rest: Any) -> list[TensorType]:
        self._check(g)
        _require_lengths(self, rest)
        lead, counts = self._split(g)
        lengths = [known_length(n) for n in rest]
        for n, m in zip(self.counts(lengths), counts, strict=True):
            if n is not None and m is not None and n != m:
                raise ShapeError(
                    f"{self.name}: the gradient is {g.type}; an image of {tuple(lengths)} gives "
                    f"{self.counts(lengths)}"
                )
        return [TensorType(g.dtype, (*lead, *lengths))]

    def check_gradient(self, g: Sequence[int], lengths: Sequence[int]) -> None:
        """Raise unless images of these lengths give results of the shape of ``g``.

        Raises
        ------
        ShapeError
            If they do not.
        """
        counts = self.counts(lengths)
        if tuple(g[len(g) - self.ndim :]) != counts:
            raise ShapeError(
                f"{self.name}: the gradient has shape {tuple(g)}; an image of {tuple(lengths)} "
                f"gives {counts}"
            )

    def perform(self, g: Any, *rest: Any) -> Any:
        lengths = [int(n) for n in rest]
        self.check_gradient(g.shape, lengths)
        lead, counts = self._split(g)
        work = np.float32 if g.dtype == np.float16 else g.dtype
        part = (g * self.factors(lengths, work)).astype(work, copy=False)
        geometry = self._whole(lengths)
        whole = [
            n + b + a for n, b, a in zip(lengths, self.padding, self._ends(lengths), strict=True)
        ]
        wide: Any = np.zeros((*lead, *whole), work)
        for _, parts in geometry.offsets(self.window, counts):
            wide[(..., *parts)] += part
        inner = wide[geometry.inner(self.window, lengths)]
        return np.ascontiguousarray(inner, g.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        static = node.outputs[0].type.shape[-self.ndim :]
        lengths = [m if n is None else n for n, m in zip(static, node.inputs[1:], strict=True)]
        return [(*shapes[0][: len(shapes[0]) - self.ndim], *lengths)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * self.ndim

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        pool = SumPool(self.window, self.strides, self.padding, self.partial, self.mode)
        return [pool(output_grads[0])] + [None] * self.ndim

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]
