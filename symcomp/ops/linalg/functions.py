"""Products of vectors, matrices and stacks of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, with_rank
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.elementwise.scalar_logic import neq
from symcomp.ops.elementwise.scalar_math import abs_, cast, conj, mul, pow, real, sqrt
from symcomp.ops.linalg.products import (
    BatchedDot,
    Dot,
    Pairs,
    contract,
    contract_equal,
    same_lengths,
)
from symcomp.ops.reductions.functions import max as max_
from symcomp.ops.reductions.functions import min as min_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.filled import broadcast_to
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import (
    normalize_axes,
    normalize_axis,
    product_of,
    reshape,
    shape_tuple,
)


def _promoted(*args: Any) -> list[TensorVariable]:
    tensors = as_common(*args)
    common = dtypes.upcast(*(x.dtype for x in tensors))
    return [cast_to(x, common) for x in tensors]


def dot(x: Any, y: Any) -> TensorVariable:
    """Return the product of vectors and matrices; NumPy's ``dot`` for any ranks.

    Parameters
    ----------
    x, y : tensor_like
        The last axis of x meets the last but one (or only) axis of y. A scalar multiplies. A
        sparse matrix multiplies as by ``sparse.structured_dot``.

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
    if hasattr(x, "__dot__"):
        return x.__dot__(y)
    if hasattr(y, "__rdot__"):
        return y.__rdot__(x)
    x, y = _promoted(x, y)
    if x.ndim == 0 or y.ndim == 0:
        return mul(x, y)
    if x.ndim > 2 or y.ndim > 2:
        return contract("dot", x, y, [], [(x.ndim - 1, max(y.ndim - 2, 0))])
    return Dot()(x, y)


def outer(x: Any, y: Any) -> TensorVariable:
    """Compute the products of every element of x with every element of y.   (n,) (m,) -> (n, m)

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.outer(x, x).eval({x: [1, 2]})
    array([[1., 2.],
           [2., 4.]])
    """
    x, y = (v if v.ndim == 1 else v.flatten() for v in as_common(x, y))
    return mul(dimshuffle(x, 0, "x"), dimshuffle(y, "x", 0))


def inner(x: Any, y: Any) -> TensorVariable:
    """Sum the products over the last axes; a scalar multiplies.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, y = T.dmatrix("x"), T.dvector("y")
    >>> T.inner(x, y).eval({x: [[1, 2], [3, 4]], y: [1, 1]})
    array([3., 7.])
    """
    x, y = _promoted(x, y)
    if x.ndim == 0 or y.ndim == 0:
        return mul(x, y)
    return contract("inner", x, y, [], [(x.ndim - 1, y.ndim - 1)])


def vdot(x: Any, y: Any) -> TensorVariable:
    """Sum the products of all elements, those of x conjugated.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.zvector("x")
    >>> T.vdot(x, x).eval({x: [3, 4j]})
    array(25.+0.j)
    """
    x, y = (v.flatten() for v in as_common(x, y))
    return dot(_conjugated(x), y)


def _conjugated(x: TensorVariable) -> TensorVariable:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def tensordot(a: Any, b: Any, axes: Any = 2) -> TensorVariable:
    """Sum the products over pairs of axes.

    Parameters
    ----------
    a, b : tensor_like
    axes : int or pair of (int or sequence of int)
        An int n: the last n axes of a meet the first n of b. A pair: which axes of a meet which of
        b; negative ones count from the end.

    Returns
    -------
    TensorVariable
        The remaining axes of a, then those of b.

    Raises
    ------
    ShapeError
        If an axis does not exist or is given twice, or paired axes differ in length.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> T.tensordot(x, x, axes=3).eval({x: [[[1, 2]]]})
    array(5.)
    """
    a, b = _promoted(a, b)
    return contract("tensordot", a, b, [], _paired_axes("tensordot", a, b, axes))


def _paired_axes(name: str, a: TensorVariable, b: TensorVariable, axes: Any) -> Pairs:
    """Return the pairs of axes named by ``axes``, counted from the front."""
    if isinstance(axes, int | np.integer) and not isinstance(axes, bool):
        n = int(axes)
        if n < 0 or n > min(a.ndim, b.ndim):
            raise ShapeError(f"{name}: axes={n} for tensors with {a.ndim} and {b.ndim} axes")
        return [(a.ndim - n + k, k) for k in range(n)]
    if not isinstance(axes, list | tuple | np.ndarray) or len(axes) != 2:
        raise TypeError(f"{name}: axes must be an integer or a pair of axes or lists, got {axes!r}")
    first, second = (
        [normalize_axis(name, i, v.ndim) for i in np.atleast_1d(np.asarray(e, object))]
        for e, v in zip(axes, (a, b), strict=True)
    )
    if len(first) != len(second):
        raise ShapeError(f"{name}: {len(first)} axes of the first but {len(second)} of the second")
    if len({*first}) != len(first) or len({*second}) != len(second):
        raise ShapeError(f"{name}: an axis is given twice in {axes}")
    return list(zip(first, second, strict=True))


def batched_dot(a: Any, b: Any) -> TensorVariable:
    """Compute ``dot(a[i], b[i])`` for every i.

    Parameters
    ----------
    a, b : tensor_like
        With equal first axes. Vectors multiply.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.batched_dot(x, x).eval({x: [[1, 2], [3, 4]]})
    array([ 5., 25.])
    """
    a, b = _promoted(a, b)
    if a.ndim < 1 or b.ndim < 1:
        raise ShapeError(f"batched_dot: a ({a.type}) and b ({b.type}) need a batch axis")
    if a.ndim == 1 or b.ndim == 1:
        low, high = (a, b) if a.ndim == 1 else (b, a)
        high = same_lengths("batched_dot", low, high, [(0, 0)])
        return mul(dimshuffle(low, 0, *["x"] * (high.ndim - 1)), high)
    return contract("batched_dot", a, b, [(0, 0)], [(a.ndim - 1, max(b.ndim - 2, 1))])


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> TensorVariable:
    """Compute ``tensordot(x[i], y[i], axes)`` for every i.

    Parameters
    ----------
    x, y : tensor_like
        With equal first axes.
    axes : int or pair of (int or sequence of int)
        As for ``tensordot``, but counting the batch axis too, as in Theano.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> T.batched_tensordot(x, x, [[1, 2], [1, 2]]).eval({x: [[[1, 2]], [[3, 4]]]})
    array([ 5., 25.])
    """
    x, y = _promoted(x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"batched_tensordot: x ({x.type}) and y ({y.type}) need a batch axis")
    if isinstance(axes, int | np.integer) and not isinstance(axes, bool):
        n = int(axes)
        if n < 0 or n >= min(x.ndim, y.ndim):
            raise ShapeError(
                f"batched_tensordot: axes={n} for tensors with {x.ndim} and {y.ndim} axes, "
                "the first of which is the batch"
            )
        axes = [list(range(x.ndim - n, x.ndim)), list(range(1, n + 1))]
    pairs = _paired_axes("batched_tensordot", x, y, axes)
    if any(0 in pair for pair in pairs):
        raise ShapeError(
            f"batched_tensordot: axis 0 is the batch axis and cannot be summed: {axes}"
        )
    return contract("batched_tensordot", x, y, [(0, 0)], pairs)


def matmul(x: Any, y: Any) -> TensorVariable:
    """Compute NumPy's ``x @ y``: products of the last two axes, the others broadcast.

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
    x, y = _promoted(x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul: x ({x.type}) and y ({y.type}) must not be scalars; use *")
    if x.ndim <= 2 and y.ndim <= 2:
        return Dot()(x, y)
    if y.ndim <= 2:
        return contract("matmul", x, y, [], [(x.ndim - 1, 0)])
    if x.ndim == 1:
        return contract("matmul", x, y, [], [(0, y.ndim - 2)])
    rank = max(x.ndim, y.ndim)
    return _stacked_product(with_rank(x, rank), with_rank(y, rank))


def _stacked_product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Multiply matrices in the last two axes; the others broadcast."""
    axes = range(x.ndim - 2)
    ones = [(x.type.shape[a] == 1, y.type.shape[a] == 1) for a in axes]
    batch = [(a, a) for a in axes]
    inner_axes = (x.ndim - 1, x.ndim - 2)
    if all(n == m for n, m in ones):
        return contract("matmul", x, y, batch, [inner_axes])
    equal = [(a, a) for a, stretched in zip(axes, ones, strict=True) if not any(stretched)]
    y = same_lengths("matmul", x, y, [*equal, inner_axes])
    left, right = shape_tuple(x), shape_tuple(y)
    static = broadcast_static("matmul", [v.type.shape[:-2] for v in (x, y)])
    lengths = [
        n if n is not None else (right if m is not None else left)[a]
        for a, n, m in zip(axes, static, x.type.shape[:-2], strict=True)
    ]
    x, y = (broadcast_to(v, [*lengths, *shape_tuple(v)[-2:]]) for v in (x, y))
    return contract_equal(x, y, batch, [inner_axes])


def matvec(x: Any, y: Any) -> TensorVariable:
    """Multiply matrices by vectors, stacked: (..., n, k) (..., k) -> (..., n).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, x = T.dtensor3("a"), T.dvector("x")
    >>> T.matvec(a, x).eval({a: [[[1, 2], [3, 4]]], x: [1, 1]})
    array([[3., 7.]])
    """
    x, y = _promoted(x, y)
    if x.ndim < 2 or y.ndim < 1:
        raise ShapeError(f"matvec: a matrix and a vector are needed, got {x.type} and {y.type}")
    return matmul(x, dimshuffle(y, *range(y.ndim), "x"))[..., 0]


def vecmat(x: Any, y: Any) -> TensorVariable:
    """Multiply vectors (conjugated) by matrices, stacked: (..., k) (..., k, m) -> (..., m).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, x = T.dtensor3("a"), T.dvector("x")
    >>> T.vecmat(x, a).eval({a: [[[1, 2], [3, 4]]], x: [1, 1]})
    array([[4., 6.]])
    """
    x, y = _promoted(x, y)
    if x.ndim < 1 or y.ndim < 2:
        raise ShapeError(f"vecmat: a vector and a matrix are needed, got {x.type} and {y.type}")
    return matmul(dimshuffle(_conjugated(x), *range(x.ndim - 1), "x", x.ndim - 1), y)[..., 0, :]


def vecdot(x: Any, y: Any) -> TensorVariable:
    """Sum the products over the last axis, x conjugated: (..., k) (..., k) -> (...).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.vecdot(x, x).eval({x: [[1, 2], [3, 4]]})
    array([ 5., 25.])
    """
    x, y = _promoted(x, y)
    if x.ndim < 1 or y.ndim < 1:
        raise ShapeError(f"vecdot: two vectors are needed, got {x.type} and {y.type}")
    y = same_lengths("vecdot", x, y, [(x.ndim - 1, y.ndim - 1)])
    return sum_(mul(_conjugated(x), y), axis=-1, dtype=x.dtype)


def kron(a: Any, b: Any) -> TensorVariable:
    """Compute the Kronecker product: every element of a times all of b, in blocks.   (n, m) (p, q)
    -> (n p, m q); any ranks, the lower is padded in front.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.kron(x, [[1.0, 1.0]]).eval({x: [[1], [2]]})
    array([[1., 1.],
           [2., 2.]])
    """
    tensors = as_common(a, b)
    rank = max(v.ndim for v in tensors)
    a, b = (with_rank(v, rank) for v in tensors)
    left = [e for axis in range(rank) for e in (axis, "x")]
    right = [e for axis in range(rank) for e in ("x", axis)]
    lengths = [product_of(pair) for pair in zip(shape_tuple(a), shape_tuple(b), strict=True)]
    return reshape(mul(dimshuffle(a, *left), dimshuffle(b, *right)), lengths)


def kron_by_rows(a: Any, b: Any) -> TensorVariable:
    """Compute ``theano.tensor.slinalg.kron``: of two matrices ``kron``; of other ranks another
    order of the products, if the ranks add up to 3 or more. A vector and a matrix give a vector:
    for each row of the matrix, or column where it comes first, its products with the vector.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, v = T.dmatrix("x"), T.dvector("v")
    >>> T.slinalg.kron(v, x).eval({v: [1, 10], x: [[1, 2], [3, 4]]})
    array([ 1.,  2., 10., 20.,  3.,  4., 30., 40.])
    """
    a, b = as_common(a, b)
    rank = a.ndim + b.ndim
    if rank < 3 or a.ndim == b.ndim == 2:
        return kron(a, b)
    left, right = [*range(a.ndim), *["x"] * b.ndim], [*["x"] * a.ndim, *range(b.ndim)]
    products = mul(dimshuffle(a, *left), dimshuffle(b, *right))
    if rank == 3:
        return flatten(dimshuffle(products, 1, 0, 2))
    lengths = shape_tuple(products)
    joined = [product_of([lengths[0], lengths[2]]), product_of([lengths[1], lengths[3]])]
    return reshape(dimshuffle(products, 0, 2, 1, *range(3, rank)), [*joined, *lengths[4:]])


def norm(x: Any, L: Any = 2, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Compute the vector norm ``(sum |x|^L)^(1/L)`` over axes.

    Parameters
    ----------
    x : tensor_like
    L : number
        1, 2, ``numpy.inf`` (the largest), ``-numpy.inf`` (the smallest), 0 (how many are not 0), or
        any other power. The derivative of the 2-norm at 0 is what its formula,
        ``x / norm(x)``, gives: NaN.
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
    if not isinstance(L, Variable):
        if not isinstance(L, int | float | np.integer | np.floating):
            raise TypeError(f"norm: L must be a real number, got {L!r}")
        L = float(L)
    axes = normalize_axes("norm", axis, x.ndim)
    if L == 0:
        return cast(sum_(neq(x, 0), axes, keepdims=keepdims), dtypes.real_part(x.dtype))
    if L in (np.inf, -np.inf):
        extreme = max_ if L > 0 else min_
        return extreme(abs_(x), axes, keepdims=keepdims)
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
