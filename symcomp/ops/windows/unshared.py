"""Convolution with different kernels at each place ("locally connected"), and its adjoints.

y[b, o, i] = sum over c, j of x[b, c, i s + j d - p] w[o, i, c, j]: a product of matrices for each
place i and each group of channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor, set_subtensor
from symcomp.ops.linalg.functions import batched_dot
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import known_length, product_of, reshape, shape_tuple
from symcomp.ops.windows.geometry import Geometry


def with_zeros(x: TensorVariable, geometry: Geometry, kernel: Sequence[Any]) -> TensorVariable:
    """Pad ``x`` with zeros along its last axes, as the geometry says."""
    if all(padding in ("valid", (0, 0)) for padding in geometry.padding):
        return x
    shape = shape_tuple(x)
    lead = x.ndim - len(kernel)
    pads = [geometry.pads(a, k) for a, k in enumerate(kernel)]
    longer = [n + b + a for n, (b, a) in zip(shape[lead:], pads, strict=True)]
    return set_subtensor(
        getitem(zeros((*shape[:lead], *longer), x.dtype), geometry.inner(kernel, shape[lead:])), x
    )


class _Places:
    """Positions of the elements of windows, for images and kernels of given lengths.

    Kernels are (outputs, rows and columns of places, channels / groups, rows, columns).
    """

    def __init__(
        self, geometry: Geometry, groups: int, lengths: Sequence[Any], w: Sequence[Any]
    ) -> None:
        self.geometry, self.groups, self.kernel = geometry, groups, tuple(w[4:])
        self.counts = geometry.counts(lengths, self.kernel)
        self.outputs, self.channels = w[0] // groups, w[3]
        self.elements = self.channels * product_of(self.kernel)
        self.products = groups * product_of(self.counts)
        down, along = [
            dimshuffle(arange(n) * s, 0, "x") + dimshuffle(arange(k) * d, "x", 0)
            for n, s, k, d in zip(
                self.counts, geometry.strides, self.kernel, geometry.dilation, strict=True
            )
        ]
        self.key = (
            slice(None),
            slice(None),
            dimshuffle(down, 0, 1, "x", "x"),
            dimshuffle(along, "x", "x", 0, 1),
        )

    def of_filters(self, shape: Sequence[Any]) -> list[tuple[str, Any, Any]]:
        """Return the lengths of kernels and the lengths they must equal."""
        return [
            ("the axis of kernels of filters", shape[0], self.groups * self.outputs),
            ("the axis of rows of places of filters", shape[1], self.counts[0]),
            ("the axis of columns of places of filters", shape[2], self.counts[1]),
        ]

    def of_gradient(self, shape: Sequence[Any], outputs: Any) -> list[tuple[str, Any, Any]]:
        """Return the lengths of the gradient of the result and the lengths they must equal."""
        return [
            ("the axis of kernels of output_grad", shape[1], outputs),
            ("the axis of rows of output_grad", shape[2], self.counts[0]),
            ("the axis of columns of output_grad", shape[3], self.counts[1]),
        ]

    def windows(self, x: TensorVariable) -> TensorVariable:
        """Reshape (b, c, *lengths) to (products, b, elements)."""
        b = shape_tuple(x)[0]
        parts = getitem(with_zeros(x, self.geometry, self.kernel), self.key)
        (p, q), (k, j) = self.counts, self.kernel
        parts = reshape(parts, (b, self.groups, self.channels, p, k, q, j), 7)
        return reshape(dimshuffle(parts, 1, 3, 5, 0, 2, 4, 6), (self.products, b, self.elements), 3)

    def folded(self, windows: TensorVariable, b: Any, lengths: Sequence[Any]) -> TensorVariable:
        """Apply the adjoint of ``windows``."""
        (p, q), (k, j) = self.counts, self.kernel
        parts = reshape(windows, (self.groups, p, q, b, self.channels, k, j), 7)
        channels = self.groups * self.channels
        parts = reshape(dimshuffle(parts, 3, 0, 4, 1, 5, 2, 6), (b, channels, p, k, q, j), 6)
        pads = [self.geometry.pads(a, n) for a, n in enumerate(self.kernel)]
        longer = [n + before + after for n, (before, after) in zip(lengths, pads, strict=True)]
        wide = inc_subtensor(getitem(zeros((b, channels, *longer), windows.dtype), self.key), parts)
        return getitem(wide, self.geometry.inner(self.kernel, lengths))

    def matrices(self, w: TensorVariable) -> TensorVariable:
        """Reshape (o, *counts, c / groups, *kernel) to (products, elements, outputs)."""
        parts = reshape(w, (self.groups, self.outputs, *shape_tuple(w)[1:]), 7)
        shape = (self.products, self.elements, self.outputs)
        return reshape(dimshuffle(parts, 0, 2, 3, 4, 5, 6, 1), shape, 3)

    def kernels(self, matrices: TensorVariable) -> TensorVariable:
        """Invert ``matrices``."""
        parts = reshape(
            matrices, (self.groups, *self.counts, self.channels, *self.kernel, self.outputs), 7
        )
        shape = (self.groups * self.outputs, *self.counts, self.channels, *self.kernel)
        return reshape(dimshuffle(parts, 0, 6, 1, 2, 3, 4, 5), shape, 6)

    def rows(self, g: TensorVariable) -> TensorVariable:
        """Reshape (b, o, *counts) to (products, b, outputs)."""
        b = shape_tuple(g)[0]
        parts = reshape(g, (b, self.groups, self.outputs, *self.counts), 5)
        shape = (self.products, b, self.outputs)
        return reshape(dimshuffle(parts, 1, 3, 4, 0, 2), shape, 3)

    def result(self, rows: TensorVariable, b: Any) -> TensorVariable:
        """Invert ``rows``."""
        parts = reshape(rows, (self.groups, *self.counts, b, self.outputs), 5)
        shape = (b, self.groups * self.outputs, *self.counts)
        return reshape(dimshuffle(parts, 3, 0, 4, 1, 2), shape, 4)


def _with_axes(name: str, **given: TensorVariable) -> None:
    for title, v in given.items():
        if v.ndim != (6 if title == "filters" else 4):
            raise ShapeError(
                f"{name}: {title} is {v.type}; unshared filters have 6 axes (kernels, rows and "
                "columns of the result, channels, rows, columns), images have 4"
            )


def _fitting(name: str, x: TensorVariable, pairs: Sequence[tuple[str, Any, Any]]) -> TensorVariable:
    """Return ``x`` if lengths are equal: known lengths are checked now, the others at run time."""
    for title, n, m in pairs:
        n, m = (known_length(v) if isinstance(v, Variable) else v for v in (n, m))
        if None not in (n, m) and n != m:
            raise ShapeError(f"{name}: {title} has length {n}, which must be {m}")
    unknown = [(title, eq(n, m)) for title, n, m in pairs if _is_symbolic(n) or _is_symbolic(m)]
    for title, equal in unknown:
        x = Assert(f"{name}: the lengths of {title} do not fit the others")(x, equal)
    return x


def _is_symbolic(n: Any) -> bool:
    return isinstance(n, Variable) and known_length(n) is None


def convolve_unshared(
    name: str, geometry: Geometry, groups: int, x: TensorVariable, w: TensorVariable
) -> TensorVariable:
    """Convolve images with kernels."""
    _with_axes(name, input=x, filters=w)
    (b, c, *lengths), shape = shape_tuple(x), shape_tuple(w)
    places = _Places(geometry, groups, lengths, shape)
    x = _fitting(name, x, [("the axis of channels of input", c, groups * shape[3])])
    w = _fitting(name, w, places.of_filters(shape))
    return places.result(batched_dot(places.windows(x), places.matrices(w)), b)


def unshared_inputs(
    name: str,
    geometry: Geometry,
    groups: int,
    w: TensorVariable,
    g: TensorVariable,
    lengths: Sequence[Any],
) -> TensorVariable:
    """Map kernels and the gradient of the result to that of images of these lengths."""
    _with_axes(name, output_grad=g, filters=w)
    shape = shape_tuple(w)
    places = _Places(geometry, groups, lengths, shape)
    w = _fitting(name, w, places.of_filters(shape))
    g = _fitting(name, g, places.of_gradient(shape_tuple(g), shape[0]))
    windows = batched_dot(places.rows(g), dimshuffle(places.matrices(w), 0, 2, 1))
    return places.folded(windows, shape_tuple(g)[0], lengths)


def unshared_kernels(
    name: str,
    geometry: Geometry,
    groups: int,
    x: TensorVariable,
    g: TensorVariable,
    kernel: Sequence[Any],
) -> TensorVariable:
    """Map images and the gradient of the result to that of kernels of these lengths."""
    _with_axes(name, input=x, output_grad=g)
    (_, channels, *lengths), found = shape_tuple(x), shape_tuple(g)
    w = (found[1], found[2], found[3], channels // groups, *kernel)
    places = _Places(geometry, groups, lengths, w)
    g = _fitting(name, g, places.of_gradient(found, found[1]))
    windows = dimshuffle(places.windows(x), 0, 2, 1)
    return places.kernels(batched_dot(windows, places.rows(g)))
