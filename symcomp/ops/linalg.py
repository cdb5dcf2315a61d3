"""Products of vectors, matrices and stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.alloc import broadcast_to
from symcomp.ops.axes import matrix_transpose
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, with_rank
from symcomp.ops.dimshuffle import dimshuffle
from symcomp.ops.elemwise import broadcast_static
from symcomp.ops.reduce import max as max_
from symcomp.ops.reduce import sum as sum_
from symcomp.ops.scalar_logic import neq
from symcomp.ops.scalar_math import abs_, cast, conj, mul, pow, real, sqrt
from symcomp.ops.shape import normalize_axes, normalize_axis, product_of, reshape, shape_tuple


def _agree(name: str, x: TensorVariable, a: int, y: TensorVariable, b: int) -> None:
    n, m = x.type.shape[a], y.type.shape[b]
    if n is not None and m is not None and n != m:
        raise ShapeError(
            f"{name}: axis {a % x.ndim} of x has length {n}, axis {b % y.ndim} of y has length "
            f"{m}: they must be equal "
            f"(x: {x.type}, y: {y.type})"
        )


def _promoted(name: str, *args: Any) -> list[TensorVariable]:
    tensors = as_common(*args)
    common = dtypes.upcast(*(x.dtype for x in tensors))
    return [cast_to(x, common) for x in tensors]


@dataclass(frozen=True)
class Dot(Op):
    """z = x y for vectors and matrices.   (n, k) (k, m) -> (n, m); (k,) (k, m) -> (m,); (n, k) (k,)
    -> (n,); (k,) (k,) -> ()
    """

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        for name, v in (("x", x), ("y", y)):
            if v.ndim not in (1, 2):
                raise ShapeError(f"dot: {name} ({v.type}) is neither vector nor matrix")
        _agree("dot", x, -1, y, 0)
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
            return [Dot()(y, gz), outer(x, gz)]
        if y.ndim == 1:
            return [outer(gz, y), Dot()(x.T, gz)]
        return [Dot()(gz, y.T), Dot()(x.T, gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        terms = [] if dx is None else [self(dx, y)]
        terms += [] if dy is None else [self(x, dy)]
        return [terms[0] if len(terms) == 1 else terms[0] + terms[1]]


@dataclass(frozen=True)
class BatchedDot(Op):
    """z[i] = x[i] y[i].   (b, n, k) (b, k, m) -> (b, n, m)"""

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        for name, v in (("x", x), ("y", y)):
            if v.ndim != 3:
                raise ShapeError(f"batched_dot: {name} ({v.type}) has not 3 axes")
        _agree("batched_dot", x, 0, y, 0)
        _agree("batched_dot", x, 2, y, 1)
        batch = x.type.shape[0] if x.type.shape[0] is not None else y.type.shape[0]
        shape = (batch, x.type.shape[1], y.type.shape[2])
        return [TensorType(dtypes.upcast(x.dtype, y.dtype), shape)]

    def perform(self, x: Any, y: Any) -> Any:
        if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
            raise ShapeError(f"batched_dot: shapes {x.shape} and {y.shape} do not fit")
        return np.matmul(x, y)

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


def dot(x: Any, y: Any) -> TensorVariable:
    """The product of vectors and matrices; NumPy's ``dot`` for any ranks.

    Parameters
    ----------
    x, y : tensor_like
        The last axis of x meets the last but one (or only) axis of y. A scalar multiplies.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, x = T.dmatrix("a"), T.dvector("x")
    >>> T.dot(a, x).eval({a: [[1, 2], [3, 4]], x: [1, 1]})
    array([3., 7.])
    """
    x, y = _promoted("dot", x, y)
    if x.ndim == 0 or y.ndim == 0:
        return mul(x, y)
    if x.ndim > 2 or y.ndim > 2:
        return tensordot(x, y, [[x.ndim - 1], [max(y.ndim - 2, 0)]])
    return Dot()(x, y)


def outer(x: Any, y: Any) -> TensorVariable:
    """The products of every element of x with every element of y.   (n,) (m,) -> (n, m)"""
    x, y = (v if v.ndim == 1 else v.flatten() for v in map(as_tensor_variable, (x, y)))
    return mul(dimshuffle(x, 0, "x"), dimshuffle(y, "x", 0))


def inner(x: Any, y: Any) -> TensorVariable:
    """The sum of products over the last axes."""
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if x.ndim == 0 or y.ndim == 0:
        return mul(x, y)
    return tensordot(x, y, [[x.ndim - 1], [y.ndim - 1]])


def vdot(x: Any, y: Any) -> TensorVariable:
    """The sum of products of all elements, those of x conjugated."""
    x, y = (as_tensor_variable(v).flatten() for v in (x, y))
    return dot(conj(x) if dtypes.is_complex(x.dtype) else x, y)


def tensordot(a: Any, b: Any, axes: Any = 2) -> TensorVariable:
    """The sum of products over pairs of axes.

    Parameters
    ----------
    a, b : tensor_like
    axes : int or pair of (int or sequence of int)
        An int n: the last n axes of a meet the first n of b. A pair: which axes of a meet which of
        b.

    Returns
    -------
    TensorVariable
        The remaining axes of a, then those of b.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> T.tensordot(x, x, axes=3).eval({x: [[[1, 2]]]})
    array(5.)
    """
    a, b = _promoted("tensordot", a, b)
    first, second = _paired_axes(a, b, axes)
    for i, j in zip(first, second, strict=True):
        _agree("tensordot", a, i, b, j)
    rest_a = [i for i in range(a.ndim) if i not in first]
    rest_b = [j for j in range(b.ndim) if j not in second]
    left, right = shape_tuple(a), shape_tuple(b)
    length = product_of([left[i] for i in first])
    rows = product_of([left[i] for i in rest_a])
    columns = product_of([right[j] for j in rest_b])
    x = reshape(dimshuffle(a, *rest_a, *first), [rows, length])
    y = reshape(dimshuffle(b, *second, *rest_b), [length, columns])
    return reshape(Dot()(x, y), [left[i] for i in rest_a] + [right[j] for j in rest_b])


def _paired_axes(a: TensorVariable, b: TensorVariable, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        n = int(axes)
        if n < 0 or n > min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot: axes={n} for tensors with {a.ndim} and {b.ndim} axes")
        return list(range(a.ndim - n, a.ndim)), list(range(n))
    first, second = ([e] if isinstance(e, int) else list(e) for e in axes)
    if len(first) != len(second):
        raise ShapeError(f"tensordot: {len(first)} axes of a but {len(second)} of b: {axes}")
    return (
        [normalize_axis("tensordot", i, a.ndim) for i in first],
        [normalize_axis("tensordot", j, b.ndim) for j in second],
    )


def batched_dot(a: Any, b: Any) -> TensorVariable:
    """``dot(a[i], b[i])`` for every i.

    Parameters
    ----------
    a, b : tensor_like
        With equal first axes, and 2 or 3 axes (more are treated as ``batched_tensordot``).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.batched_dot(x, x).eval({x: [[1, 2], [3, 4]]})
    array([ 5., 25.])
    """
    a, b = _promoted("batched_dot", a, b)
    if a.ndim < 1 or b.ndim < 1:
        raise ShapeError(f"batched_dot: a ({a.type}) and b ({b.type}) need a batch axis")
    if a.ndim == 1 or b.ndim == 1:
        low, high = (a, b) if a.ndim == 1 else (b, a)
        return mul(dimshuffle(low, 0, *["x"] * (high.ndim - 1)), high)
    if a.ndim > 3 or b.ndim > 3:
        return batched_tensordot(a, b, [[a.ndim - 1], [max(b.ndim - 2, 1)]])
    x = a if a.ndim == 3 else dimshuffle(a, 0, "x", 1)
    y = b if b.ndim == 3 else dimshuffle(b, 0, 1, "x")
    z = BatchedDot()(x, y)
    dropped = ([1] if a.ndim == 2 else []) + ([2] if b.ndim == 2 else [])
    return dimshuffle(z, *[i for i in range(3) if i not in dropped])


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> TensorVariable:
    """``tensordot(x[i], y[i], axes)`` for every i; ``axes`` counts the batch axis too, as in
    Theano.
    """
    x, y = _promoted("batched_tensordot", x, y)
    if isinstance(axes, int | np.integer):
        n = int(axes)
        axes = [list(range(x.ndim - n, x.ndim)), list(range(1, n + 1))]
    first, second = _paired_axes(x, y, axes)
    if 0 in first or 0 in second:
        raise ShapeError(
            f"batched_tensordot: axis 0 is the batch axis and cannot be summed: {axes}"
        )
    rest_x = [i for i in range(1, x.ndim) if i not in first]
    rest_y = [j for j in range(1, y.ndim) if j not in second]
    left, right = shape_tuple(x), shape_tuple(y)
    length = product_of([left[i] for i in first])
    a = reshape(
        dimshuffle(x, 0, *rest_x, *first), [left[0], product_of([left[i] for i in rest_x]), length]
    )
    b = reshape(
        dimshuffle(y, 0, *second, *rest_y),
        [left[0], length, product_of([right[j] for j in rest_y])],
    )
    lengths = [left[0]] + [left[i] for i in rest_x] + [right[j] for j in rest_y]
    return reshape(BatchedDot()(a, b), lengths)


def matmul(x: Any, y: Any) -> TensorVariable:
    """NumPy's ``x @ y``: products of the last two axes, the others broadcast.

    Parameters
    ----------
    x, y : tensor_like
        No scalars.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> (x @ [[1.0], [1.0]]).eval({x: [[[1, 2]], [[3, 4]]]})
    array([[[3.]],
    <BLANKLINE>
           [[7.]]])
    """
    x, y = _promoted("matmul", x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul: x ({x.type}) and y ({y.type}) must not be scalars; use *")
    if x.ndim <= 2 and y.ndim <= 2:
        return Dot()(x, y)
    if y.ndim == 1 or (y.ndim == 2 and x.ndim > 2):
        return tensordot(x, y, [[x.ndim - 1], [0]])
    vector = x.ndim == 1
    x = dimshuffle(x, "x", 0) if vector else x
    rank = max(x.ndim, y.ndim)
    x, y = with_rank(x, rank), with_rank(y, rank)
    _agree("matmul", x, -1, y, -2)
    z = _stacked_product(x, y)
    return dimshuffle(z, *[a for a in range(rank) if a != rank - 2]) if vector else z


def _stacked_product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    left, right = shape_tuple(x), shape_tuple(y)
    batch = []
    static = broadcast_static("matmul", [v.type.shape[:-2] for v in (x, y)])
    for axis, n in enumerate(static):
        source = left if x.type.shape[axis] is None else right
        batch.append(source[axis] if n is None else n)
    if any((n == 1) != (m == 1) for n, m in zip(x.type.shape[:-2], y.type.shape[:-2], strict=True)):
        x = broadcast_to(x, [*batch, *left[-2:]])
        y = broadcast_to(y, [*batch, *right[-2:]])
    n = product_of(batch)
    a, b = reshape(x, [n, *left[-2:]]), reshape(y, [n, *right[-2:]])
    return reshape(BatchedDot()(a, b), [*batch, left[-2], right[-1]])


def matvec(x: Any, y: Any) -> TensorVariable:
    """Matrices times vectors, stacked: (..., n, k) (..., k) -> (..., n)."""
    y = as_tensor_variable(y)
    return matmul(x, dimshuffle(y, *range(y.ndim), "x"))[..., 0]


def vecmat(x: Any, y: Any) -> TensorVariable:
    """Vectors (conjugated) times matrices, stacked: (..., k) (..., k, m) -> (..., m)."""
    x = as_tensor_variable(x)
    x = conj(x) if dtypes.is_complex(x.dtype) else x
    return matmul(dimshuffle(x, *range(x.ndim - 1), "x", x.ndim - 1), y)[..., 0, :]


def vecdot(x: Any, y: Any) -> TensorVariable:
    """Sums of products over the last axis, x conjugated: (..., k) (..., k) -> (...)."""
    x = as_tensor_variable(x)
    return sum_(mul(conj(x) if dtypes.is_complex(x.dtype) else x, y), axis=-1)


def kron(a: Any, b: Any) -> TensorVariable:
    """The Kronecker product of two matrices (vectors count as rows)."""
    a, b = (with_rank(v, 2) if v.ndim < 2 else v for v in map(as_tensor_variable, (a, b)))
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"kron: a ({a.type}) and b ({b.type}) must have at most 2 axes")
    (n, m), (p, q) = shape_tuple(a), shape_tuple(b)
    z = mul(dimshuffle(a, 0, "x", 1, "x"), dimshuffle(b, "x", 0, "x", 1))
    return reshape(z, [product_of([n, p]), product_of([m, q])])


def norm(x: Any, L: Any = 2, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """The vector norm ``(sum |x|^L)^(1/L)`` over axes.

    Parameters
    ----------
    x : tensor_like
    L : number
        1, 2, ``numpy.inf`` (the largest), 0 (how many are not 0), or any other power. For 2 the
        derivative at 0 is not
        finite.
    axis : int or sequence of int, optional
        By default all.
    keepdims : bool

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.norm(x, 2).eval({x: [3, 4]})
    array(5.)
    """
    x = as_tensor_variable(x)
    x = cast(x, "float64") if dtypes.is_discrete(x.dtype) else x
    axes = normalize_axes("norm", axis, x.ndim)
    if L == 0:
        return cast(sum_(neq(x, 0), axes, keepdims=keepdims), dtypes.real_part(x.dtype))
    if L == np.inf:
        return max_(abs_(x), axes, keepdims=keepdims)
    if L == 1:
        return sum_(abs_(x), axes, keepdims=keepdims)
    if L == 2:
        squares = real(x * conj(x)) if dtypes.is_complex(x.dtype) else x * x
        return sqrt(sum_(squares, axes, keepdims=keepdims))
    return pow(sum_(pow(abs_(x), L), axes, keepdims=keepdims), 1.0 / L)


__all__ = [
    "batched_dot", "batched_tensordot", "BatchedDot", "Dot", "dot", "inner", "kron", "matmul",
    "matvec", "norm", "outer", "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip
