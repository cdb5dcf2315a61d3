"""Convolution of images with kernels, and its two adjoints: three ops that are each other's
derivatives.

All are parts of one form <g, x * w>, linear in the image x, the kernels w and the result g.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import conj
from symcomp.ops.shapes.shape import known_length, shape_tuple
from symcomp.ops.windows.geometry import Count, Geometry, folded, unfolded

# Windows of at most this many bytes are unfolded at a time, to stay in the cache.
BYTES_AT_A_TIME = 1 << 20


def _conjugate(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _sum(terms: Sequence[Any]) -> list[Any]:
    """Return the sum of one or two terms."""
    return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


@record
class _Convolution(Op):
    """Base of the three ops: the geometry, and ``groups`` of channels that are convolved
    separately.
    """

    geometry: Geometry
    groups: Count = 1

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def ndim(self) -> int:
        """The number of spatial axes."""
        return len(self.geometry.strides)

    def _check(self, first: Any, second: Any) -> None:
        for x in (first, second):
            if x.ndim != self.ndim + 2:
                raise ShapeError(
                    f"{self.name}: {x} is {x.type}; {self.ndim + 2} axes are needed: images (or "
                    f"kernels), channels, and {self.ndim} spatial ones"
                )
        if first.dtype != second.dtype or first.dtype == "bool":
            raise DTypeError(
                f"{self.name}: the inputs are {first.dtype} and {second.dtype}; one dtype is "
                "needed, and not bool: cast them"
            )

    def _static_counts(self, lengths: Sequence[Any], kernel: Sequence[Any]) -> tuple[Any, ...]:
        if None in (*lengths, *kernel):
            return self.geometry.counts(lengths, kernel)
        return self.geometry.checked_counts(self.name, lengths, kernel)

    def _check_counts(self, wanted: Sequence[Any], given: Sequence[Any]) -> None:
        for n, m in zip(wanted, given, strict=True):
            if n is not None and m is not None and n != m:
                raise ShapeError(
                    f"{self.name}: the gradient has the lengths {tuple(given)}; images and kernels "
                    f"of these lengths give {tuple(wanted)}"
                )

    def _check_channels(self, channels: Any, per_group: Any, outputs: Any) -> None:
        if None not in (channels, per_group) and channels != per_group * self.groups:
            raise ShapeError(
                f"{self.name}: the image has {channels} channels, the kernels take {per_group} in "
                f"each of {self.groups} groups: {per_group * self.groups} are needed"
            )
        if outputs is not None and outputs % self.groups:
            raise ShapeError(f"{self.name}: {outputs} kernels cannot make {self.groups} groups")

    def _check_result(self, g: Sequence[int], wanted: Sequence[int]) -> None:
        if tuple(g) != tuple(wanted):
            raise ShapeError(
                f"{self.name}: the gradient has shape {tuple(g)}; images and kernels of these "
                f"lengths give {tuple(wanted)}"
            )

    def _blocks(self, images: int, elements: int, dtype: Any) -> Iterator[slice]:
        """Yield slices of images whose windows (of ``elements`` each) are unfolded together."""
        size = max(1, BYTES_AT_A_TIME // max(1, elements * np.dtype(dtype).itemsize))
        for start in range(0, images, size):
            yield slice(start, min(start + size, images))

    def _grouped(self, columns: Any, kernel: Sequence[int]) -> Any:
        """Reshape (b, c, *kernel, *counts) to (b, groups, c / groups * elements, windows)."""
        b, c = columns.shape[:2]
        windows = prod(columns.shape[2 + len(kernel) :])
        return columns.reshape(b, self.groups, c // self.groups * prod(kernel), windows)

    def _rows(self, w: Any) -> Any:
        """Reshape (o, c / groups, *kernel) to (groups, o / groups, c / groups * elements)."""
        return w.reshape(self.groups, len(w) // self.groups, prod(w.shape[1:]))

    def __str__(self) -> str:
        g = self.geometry
        parts = [str(p) for p in (g.padding, g.strides, g.dilation)]
        return f"{self.name}{{{', '.join(parts)}{f', {self.groups} groups' * (self.groups > 1)}}}"


def _work_dtype(dtype: Any) -> Any:
    """Return the dtype of the accumulators."""
    return np.dtype("float32") if dtype == np.float16 else dtype


@record
class Convolve(_Convolution):
    """y[b, o, i] = sum over c, j of x[b, c, i s + j d - p] w[o, c, j].

    (images, channels, *lengths) (kernels, channels / groups, *kernel)
    -> (images, kernels, *windows). The kernel is not flipped.
    """

    def output_types(self, x: TensorVariable, w: TensorVariable) -> list[TensorType]:
        self._check(x, w)
        (b, c, *lengths), (o, per_group, *kernel) = x.type.shape, w.type.shape
        self._check_channels(c, per_group, o)
        return [TensorType(x.dtype, (b, o, *self._static_counts(lengths, kernel)))]

    def result_shape(self, x: Sequence[int], w: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of y for the shapes of x and w.

        Raises
        ------
        ShapeError
            If they do not fit.
        """
        (b, c, *lengths), (o, per_group, *kernel) = x, w
        self._check_channels(c, per_group, o)
        return (b, o, *self.geometry.checked_counts(self.name, lengths, kernel))

    def perform(self, x: Any, w: Any) -> Any:
        c, kernel = x.shape[1], w.shape[2:]
        b, o, *counts = self.result_shape(x.shape, w.shape)
        work = _work_dtype(x.dtype)
        y = np.empty((b, o, *counts), work)
        rows = self._rows(w.astype(work, copy=False))
        for part in self._blocks(b, c * prod(kernel) * prod(counts), work):
            wide = self.geometry.padded(x[part].astype(work, copy=False), kernel)
            columns = self._grouped(unfolded(self.geometry, wide, kernel, counts), kernel)
            into = y[part].reshape(len(columns), self.groups, o // self.groups, prod(counts))
            np.matmul(rows, columns, out=into)
        return y.astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        (b, _, *lengths), (o, _, *kernel) = shapes
        return [(b, o, *self.geometry.counts(lengths, kernel))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, w), (gy,) = inputs, output_grads
        return [
            ConvolveInputs(self.geometry, self.groups)(_conjugate(w), gy, *shape_tuple(x)[2:]),
            ConvolveKernels(self.geometry, self.groups)(_conjugate(x), gy, *shape_tuple(w)[2:]),
        ]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, w), (dx, dw) = inputs, tangents
        terms = [] if dx is None else [self(dx, w)]
        return _sum(terms + ([] if dw is None else [self(x, dw)]))


@record
class _Adjoint(_Convolution):
    """An adjoint; the spatial lengths of its result are inputs, as int64 scalars."""

    def as_inputs(self, *args: Any) -> list[Any]:
        first, second, *lengths = args
        return [first, second, *(as_tensor_variable(n, dtype="int64") for n in lengths)]

    def _asked(self, lengths: Sequence[Any]) -> list[int | None]:
        if len(lengths) != self.ndim:
            raise ShapeError(f"{self.name}: {len(lengths)} lengths for {self.ndim} spatial axes")
        for n in lengths:
            if n.ndim or n.dtype != "int64":
                raise DTypeError(
                    f"{self.name}: a length is {n} ({n.type}); an int64 scalar is needed"
                )
        return [known_length(n) for n in lengths]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True]] + [[False]] * self.ndim

    def _pushed(self, inputs: Any, tangents: Any) -> list[Any]:
        """Return the tangent of the result, which is linear in each of the two inputs."""
        (a, b, *lengths), (da, db) = inputs, tangents[:2]
        terms = [] if da is None else [self(da, b, *lengths)]
        return _sum(terms + ([] if db is None else [self(a, db, *lengths)]))


@record
class ConvolveInputs(_Adjoint):
    """x[b, c, i s + j d - p] = sum of g[b, o, i] w[o, c, j]: from the gradient of the result to
    that of the image.   Inputs: w, g, the spatial lengths of x.
    """

    def output_types(self, w: TensorVariable, g: TensorVariable, *rest: Any) -> list[TensorType]:
        self._check(w, g)
        (o, per_group, *kernel), (b, outputs, *counts) = w.type.shape, g.type.shape
        lengths = self._asked(rest)
        self._check_counts(self._static_counts(lengths, kernel), counts)
        if None not in (o, outputs) and o != outputs:
            raise ShapeError(f"{self.name}: {o} kernels, but the gradient has {outputs} channels")
        channels = None if per_group is None else per_group * self.groups
        return [TensorType(w.dtype, (b, channels, *lengths))]

    def result_shape(
        self, w: Sequence[int], g: Sequence[int], lengths: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the shape of x for the shapes of w and g, and the spatial lengths of x.

        Raises
        ------
        ShapeError
            If they do not fit.
        """
        o, per_group, *kernel = w
        channels = per_group * self.groups
        counts = self.geometry.checked_counts(self.name, lengths, kernel)
        self._check_channels(channels, per_group, o)
        self._check_result(g, (g[0], o, *counts))
        return (g[0], channels, *lengths)

    def perform(self, w: Any, g: Any, *rest: Any) -> Any:
        o, _, *kernel = w.shape
        b, channels, *lengths = self.result_shape(w.shape, g.shape, [int(n) for n in rest])
        counts = g.shape[2:]
        work = _work_dtype(g.dtype)
        x = np.zeros((b, channels, *lengths), work)
        rows = self._rows(w.astype(work, copy=False))
        pads = [self.geometry.pads(a, k) for a, k in enumerate(kernel)]
        longer = [n + sum(p) for n, p in zip(lengths, pads, strict=True)]
        inner = self.geometry.inner(kernel, lengths)
        for part in self._blocks(b, channels * prod(kernel) * prod(counts), work):
            some = g[part].astype(work, copy=False)
            some = some.reshape(len(some), self.groups, o // self.groups, prod(counts))
            columns = np.matmul(rows.swapaxes(1, 2), some)
            wide = np.zeros((len(some), channels, *longer), work) if longer != lengths else x[part]
            columns = columns.reshape(len(some), channels, *kernel, *counts)
            folded(self.geometry, columns, kernel, wide)
            if longer != lengths:
                x[part] = wide[inner]
        return x.astype(g.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        static = node.outputs[0].type.shape[2:]
        lengths = [m if n is None else n for n, m in zip(static, node.inputs[2:], strict=True)]
        return [(shapes[1][0], shapes[0][1] * self.groups, *lengths)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return self._pushed(inputs, tangents)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (w, g, *lengths), (gx,) = inputs, output_grads
        gw = ConvolveKernels(self.geometry, self.groups)(gx, _conjugate(g), *shape_tuple(w)[2:])
        gg = Convolve(self.geometry, self.groups)(gx, _conjugate(w))
        return [gw, gg] + [None] * len(lengths)


@record
class ConvolveKernels(_Adjoint):
    """w[o, c, j] = sum over b, i of x[b, c, i s + j d - p] g[b, o, i]: from the gradient of the
    result to that of the kernels.   Inputs: x, g, the spatial lengths of w.
    """

    def output_types(self, x: TensorVariable, g: TensorVariable, *rest: Any) -> list[TensorType]:
        self._check(x, g)
        (b, c, *lengths), (images, o, *counts) = x.type.shape, g.type.shape
        kernel = self._asked(rest)
        self._check_counts(self._static_counts(lengths, kernel), counts)
        if None not in (b, images) and b != images:
            raise ShapeError(f"{self.name}: {b} images, but the gradient has {images}")
        per_group = None if c is None else c // self.groups
        return [TensorType(x.dtype, (o, per_group, *kernel))]

    def result_shape(
        self, x: Sequence[int], g: Sequence[int], kernel: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the shape of w for the shapes of x and g, and the spatial lengths of w.

        Raises
        ------
        ShapeError
            If they do not fit.
        """
        (b, c, *lengths), o = x, g[1]
        counts = self.geometry.checked_counts(self.name, lengths, kernel)
        self._check_channels(c, c // self.groups, o)
        self._check_result(g, (b, o, *counts))
        return (o, c // self.groups, *kernel)

    def perform(self, x: Any, g: Any, *rest: Any) -> Any:
        b, c = x.shape[:2]
        o, per_group, *kernel = self.result_shape(x.shape, g.shape, [int(n) for n in rest])
        counts = g.shape[2:]
        work = _work_dtype(g.dtype)
        w = np.zeros((self.groups, o // self.groups, per_group * prod(kernel)), work)
        for part in self._blocks(b, c * prod(kernel) * prod(counts), work):
            wide = self.geometry.padded(x[part].astype(work, copy=False), kernel)
            columns = self._grouped(unfolded(self.geometry, wide, kernel, counts), kernel)
            some = g[part].astype(work, copy=False)
            some = some.reshape(len(some), self.groups, o // self.groups, prod(counts))
            for one, windows in zip(some, columns, strict=True):
                w += np.matmul(one, windows.swapaxes(1, 2))
        return w.reshape(o, per_group, *kernel).astype(g.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        static = node.outputs[0].type.shape[2:]
        kernel = [m if n is None else n for n, m in zip(static, node.inputs[2:], strict=True)]
        return [(shapes[1][1], shapes[0][1] // self.groups, *kernel)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return self._pushed(inputs, tangents)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, g, *kernel), (gw,) = inputs, output_grads
        gx = ConvolveInputs(self.geometry, self.groups)(gw, _conjugate(g), *shape_tuple(x)[2:])
        gg = Convolve(self.geometry, self.groups)(_conjugate(x), gw)
        return [gx, gg] + [None] * len(kernel)
