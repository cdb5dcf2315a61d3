"""Products of matrices and of stacks of them, and tensor contractions built on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.elementwise.scalar_math import conj, mul
from symcomp.ops.shapes.axes import dimshuffle, matrix_transpose
from symcomp.ops.shapes.shape import product_of, require_axes, reshape, shape_tuple

# Pairs (i, j): axis i of the first tensor meets axis j of the second.
Pairs = Sequence[tuple[int, int]]


def check_lengths(name: str, x: TensorVariable, y: TensorVariable, pairs: Pairs) -> None:
    """Raise if paired axes are known to have different lengths."""
    for i, j in pairs:
        n, m = x.type.shape[i], y.type.shape[j]
        if n is not None and m is not None and n != m:
            raise ShapeError(
                f"{name}: axis {i} of x has length {n}, axis {j} of y has length {m}: "
                f"they must be equal (x: {x.type}, y: {y.type})"
            )


@record
class SameLengths(Op):
    """z = y, a view; a ShapeError at run time unless axis i of x and axis j of y have equal lengths
    for all ``pairs`` (i, j). Error messages begin with ``name``.
    """

    name: str
    pairs: tuple[tuple[Axis, Axis], ...]

    moves = True

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        require_axes(self, [i for i, _ in self.pairs], x)
        require_axes(self, [j for _, j in self.pairs], y)
        check_lengths(self.name, x, y, self.pairs)
        shape = list(y.type.shape)
        for i, j in self.pairs:
            shape[j] = x.type.shape[i] if shape[j] is None else shape[j]
        return [TensorType(y.dtype, shape)]

    def perform(self, x: Any, y: Any) -> Any:
        for i, j in self.pairs:
            if x.shape[i] != y.shape[j]:
                raise ShapeError(
                    f"{self.name}: shapes {x.shape} and {y.shape} do not fit: axis {i} of the "
                    f"first has length {x.shape[i]}, axis {j} of the second {y.shape[j]}"
                )
        return y

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [True]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [None, output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[1]]

    view_map = {0: (1,)}


def same_lengths(name: str, x: TensorVariable, y: TensorVariable, pairs: Pairs) -> TensorVariable:
    """Return ``y``, with a check at run time of those paired axes whose lengths are not known."""
    check_lengths(name, x, y, pairs)
    unknown = tuple(
        (i, j)
        for i, j in pairs
        if (x.type.shape[i] is None or y.type.shape[j] is None) and not (x is y and i == j)
    )
    return SameLengths(name, unknown)(x, y) if unknown else y


def _outer(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    return mul(dimshuffle(x, 0, "x"), dimshuffle(y, "x", 0))


@record
class Dot(Op):
    """z = x y for vectors and matrices.   (n, k) (k, m) -> (n, m); (k,) (k, m) -> (m,); (n, k) (k,)
    -> (n,); (k,) (k,) -> ()
    """

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        for name, v in (("x", x), ("y", y)):
            if v.ndim not in (1, 2):
                raise ShapeError(f"dot: {name} ({v.type}) is neither vector nor matrix")
        check_lengths("dot", x, y, [(x.ndim - 1, 0)])
        return [TensorType(dtypes.upcast(x.dtype, y.dtype), x.type.shape[:-1] + y.type.shape[1:])]

    def perform(self, x: Any, y: Any) -> Any:
        try:
            return np.asarray(np.dot(x, y))
        except ValueError:
            raise ShapeError(
                f"dot: shapes {x.shape} and {y.shape} do not fit: the inner lengths must be equal"
            ) from None

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(*shapes[0][:-1], *shapes[1][1:])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), (gz,) = (conj(v) if dtypes.is_complex(v.dtype) else v for v in inputs), output_grads
        if x.ndim == 1 and y.ndim == 1:
            return [gz * y, gz * x]
        if x.ndim == 1:
            return [self(y, gz), _outer(x, gz)]
        if y.ndim == 1:
            return [_outer(gz, y), self(x.T, gz)]
        return [self(gz, y.T), self(x.T, gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        terms = [] if dx is None else [self(dx, y)]
        terms += [] if dy is None else [self(x, dy)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


@record
class BatchedDot(Op):
    """z[i] = x[i] y[i].   (b, n, k) (b, k, m) -> (b, n, m)"""

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        for name, v in (("x", x), ("y", y)):
            if v.ndim != 3:
                raise ShapeError(f"batched_dot: {name} ({v.type}) has not 3 axes")
        check_lengths("batched_dot", x, y, [(0, 0), (2, 1)])
        batch = x.type.shape[0] if x.type.shape[0] is not None else y.type.shape[0]
        shape = (batch, x.type.shape[1], y.type.shape[2])
        return [TensorType(dtypes.upcast(x.dtype, y.dtype), shape)]

    def perform(self, x: Any, y: Any, z: Any = None) -> Any:
        if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
            raise ShapeError(
                f"batched_dot: shapes {x.shape} and {y.shape} do not fit: axis 0 must be equal, "
                "and axis 2 of the first must equal axis 1 of the second"
            )
        return np.matmul(x, y, out=z)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(shapes[0][0], shapes[0][1], shapes[1][2])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), (gz,) = (conj(v) if dtypes.is_complex(v.dtype) else v for v in inputs), output_grads
        return [self(gz, matrix_transpose(y)), self(matrix_transpose(x), gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        terms = [] if dx is None else [self(dx, y)]
        terms += [] if dy is None else [self(x, dy)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


# -- contraction


def contract(
    name: str, x: TensorVariable, y: TensorVariable, batch: Pairs, summed: Pairs
) -> TensorVariable:
    """Compute the products of x and y, summed over the pairs ``summed``, batched over ``batch``.

    The axes of the result: those of ``batch``, the others of x, the others of y. Lengths of pairs
    must be equal; nothing broadcasts.
    """
    pairs = len(batch) + len(summed)
    if len(batch) > 1 or len(summed) > 1 or max(x.ndim, y.ndim) > pairs + 1:
        # Checked here, because Dot and BatchedDot only see the lengths of merged axes.
        y = same_lengths(name, x, y, [*batch, *summed])
    else:
        check_lengths(name, x, y, [*batch, *summed])
    return contract_equal(x, y, batch, summed)


def contract_equal(
    x: TensorVariable, y: TensorVariable, batch: Pairs, summed: Pairs
) -> TensorVariable:
    """Contract tensors whose lengths are checked already, unless each group of axes is one axis."""
    batch_x, batch_y = [i for i, _ in batch], [j for _, j in batch]
    sum_x, sum_y = [i for i, _ in summed], [j for _, j in summed]
    rows = [i for i in range(x.ndim) if i not in batch_x and i not in sum_x]
    columns = [j for j in range(y.ndim) if j not in batch_y and j not in sum_y]
    if batch:
        first, second = [batch_x, rows, sum_x], [batch_y, sum_y, columns]
        z = BatchedDot()(_grouped(x, first), _grouped(y, second))
        groups = [batch_x, rows, columns]
    else:
        first, second = [g for g in (rows, sum_x) if g or g is sum_x], [sum_y]
        second += [columns] if columns else []
        z = Dot()(_grouped(x, first), _grouped(y, second))
        groups = [g for g in (rows, columns) if g]
    if all(len(g) <= 1 for g in groups):
        return dimshuffle(z, *[a for a, g in enumerate(groups) if g])
    left, right = shape_tuple(x), shape_tuple(y)
    merged = [right[j] if isinstance(right[j], int) else left[i] for i, j in batch]
    return reshape(z, [*merged, *(left[i] for i in rows), *(right[j] for j in columns)])


def _grouped(v: TensorVariable, groups: Sequence[Sequence[int]]) -> TensorVariable:
    """Merge the axes of each group into one; an empty group gives an axis of length 1."""
    if all(len(g) <= 1 for g in groups):
        return dimshuffle(v, *[g[0] if g else "x" for g in groups])
    lengths = shape_tuple(v)
    v = dimshuffle(v, *[a for g in groups for a in g])
    return reshape(v, [product_of([lengths[a] for a in g]) for g in groups])


__all__ = ["BatchedDot", "Dot", "SameLengths", "contract", "contract_equal", "same_lengths"]
