"""Exponentials, powers and products of matrices, tensor equations, and norms of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_int, as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import abs_
from symcomp.ops.linalg.functions import dot, matmul
from symcomp.ops.linalg.functions import norm as vector_norm
from symcomp.ops.linalg.inverse import matrix_inverse
from symcomp.ops.linalg.matrices import MatrixOp, adjoint, narrowed, require_square, square_length
from symcomp.ops.linalg.solve import solve
from symcomp.ops.linalg.svd import SingularValues
from symcomp.ops.reductions.reduce import max as max_
from symcomp.ops.reductions.reduce import min as min_
from symcomp.ops.reductions.reduce import sum as sum_
from symcomp.ops.shapes.axes import expand_dims, moveaxis
from symcomp.ops.shapes.creation import eye
from symcomp.ops.shapes.join import concatenate
from symcomp.ops.shapes.shape import (
    normalize_axes,
    normalize_axis,
    product_of,
    reshape,
    shape_tuple,
)

linalg = lazy_module("scipy.linalg")

# -- the exponential


@record
class Expm(MatrixOp):
    """z = 1 + x + x^2 / 2 + x^3 / 6 + ...   (..., n, n) -> (..., n, n)

    The derivative along dx is the upper right block of the exponential of [[x, dx], [0, x]]
    (Higham, "Functions of matrices", 2008, theorem 3.6).
    """

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        n = square_length("expm", "x", x)
        return [TensorType(x.dtype, (*x.type.shape[:-2], n, n))]

    def perform(self, x: Any) -> Any:
        require_square("expm", x)
        return linalg.expm(x).astype(x.dtype, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [self.derivative(adjoint(inputs[0]), output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self.derivative(inputs[0], tangents[0])]

    def derivative(self, x: TensorVariable, dx: TensorVariable) -> TensorVariable:
        """Return the tangent at x along dx."""
        n = shape_tuple(x)[-1]
        above = concatenate([x, dx], axis=-1)
        below = concatenate([x.zeros_like(), x], axis=-1)
        return self(concatenate([above, below], axis=-2))[..., :n, n:]


def expm(a: Any) -> TensorVariable:
    """Compute the exponential of each square matrix.   (..., n, n) -> (..., n, n)

    Parameters
    ----------
    a : tensor_like
        Integers count as float64.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.slinalg.expm(x).eval({x: [[0, 1], [0, 0]]})
    array([[1., 1.],
           [0., 1.]])
    """
    a = as_tensor_variable(a)
    return narrowed(Expm()(a), a)


# -- powers and products


def matrix_power(M: Any, n: int) -> TensorVariable:
    """Multiply the matrices M by themselves, ``n`` factors.   (..., k, k) -> (..., k, k)

    Parameters
    ----------
    M : tensor_like
        Square matrices. They keep their dtype if n is not negative.
    n : int
        0 gives the identity; a negative one the power -n of the inverse.

    Raises
    ------
    ShapeError, TypeError
    numpy.linalg.LinAlgError
        When the function runs: n is negative and a matrix singular.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.matrix_power(x, 3).eval({x: [[1, 1], [0, 1]]})
    array([[1., 3.],
           [0., 1.]])
    """
    x = as_tensor_variable(M)
    length = square_length("matrix_power", "M", x)
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"matrix_power: n={n!r} must be an int")
    if n == 0:
        size = shape_tuple(x)[-1] if length is None else length
        # x^0 = 1 for every x, NaN too; the term gives the shape of the stack.
        return eye(size, dtype=x.dtype) + x.zeros_like()
    base = matrix_inverse(x) if n < 0 else x
    result = base
    for bit in bin(abs(int(n)))[3:]:
        result = matmul(result, result)
        result = matmul(result, base) if bit == "1" else result
    return result


def matrix_dot(*args: Any) -> TensorVariable:
    """Multiply several matrices or vectors, from left to right.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.matrix_dot(x, x, [1.0, 0.0]).eval({x: [[1, 1], [1, 0]]})
    array([2., 1.])
    """
    if not args:
        raise TypeError("matrix_dot: at least one matrix is needed")
    return reduce(dot, args[1:], as_tensor_variable(args[0]))


# -- tensor equations


def tensorinv(a: Any, ind: int = 2) -> TensorVariable:
    """Compute the inverse of ``a`` as the linear map of ``tensordot``: it undoes ``tensordot(a,
    x)``.

    Parameters
    ----------
    a : tensor_like
        The product of its first ``ind`` lengths must equal that of the others.
    ind : int
        At least 1. ``tensordot(tensorinv(a, ind), tensordot(a, x, a.ndim - ind), ind)`` is x.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: there is no inverse.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dtensor3("x")
    >>> T.nlinalg.tensorinv(x, 1).eval({x: [[[2, 0]], [[0, 4]]]}).shape
    (1, 2, 2)
    """
    a = as_tensor_variable(a)
    ind = as_int(ind, "tensorinv", "ind")
    if not 1 <= ind <= a.ndim:
        raise ShapeError(f"tensorinv: ind={ind} is not between 1 and the {a.ndim} axes ({a.type})")
    lengths = shape_tuple(a)
    rows, columns = lengths[:ind], lengths[ind:]
    inverse = matrix_inverse(_as_matrix("tensorinv", a, ind))
    return reshape(inverse, [*columns, *rows])


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> TensorVariable:
    """Solve ``tensordot(a, x, x.ndim) = b`` for x.

    Parameters
    ----------
    a : tensor_like
        Its first axes have the lengths of b, the others those of x.
    b : tensor_like
    axes : sequence of int, optional
        Axes of a to be moved to the end first.

    Raises
    ------
    ShapeError
    numpy.linalg.LinAlgError
        When the function runs: there is not one solution.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dtensor3("a"), T.dvector("b")
    >>> T.nlinalg.tensorsolve(a, b).eval({a: [[[2, 0]], [[0, 4]]], b: [2, 8]})
    array([[1., 2.]])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if axes is not None:
        if not isinstance(axes, Sequence | np.ndarray) or isinstance(axes, str):
            raise TypeError(f"tensorsolve: axes is {axes!r:.80}; a sequence of ints is needed")
        last = normalize_axes("tensorsolve", axes, a.ndim)
        a = moveaxis(a, list(axes), list(range(a.ndim - len(last), a.ndim)))
    if b.ndim > a.ndim:
        raise ShapeError(f"tensorsolve: b ({b.type}) has more axes than a ({a.type})")
    x = solve(_as_matrix("tensorsolve", a, b.ndim), b.flatten(), b_ndim=1)
    return reshape(x, list(shape_tuple(a)[b.ndim :]))


def _as_matrix(name: str, a: TensorVariable, ind: int) -> TensorVariable:
    """Merge the first ``ind`` axes of ``a`` into one, and the others into another."""
    lengths = shape_tuple(a)
    rows, columns = product_of(lengths[:ind]), product_of(lengths[ind:])
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ShapeError(
            f"{name}: the first {ind} axes of a ({a.type}) have {rows} places, the others "
            f"{columns}: these must be equal"
        )
    return reshape(a, [rows, columns])


# -- norms


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Compute the norm of vectors or matrices, as NumPy's ``linalg.norm``.

    Parameters
    ----------
    x : tensor_like
        Integers count as float64.
    ord : number or {"fro", "nuc"}, optional
        For vectors, the power: see ``T.norm``; by default 2. For matrices: "fro", the default, the
        root of the sum of squares; "nuc" the sum of the singular values; 2 and -2 the largest and
        the smallest of these; 1 and -1 the largest and smallest sum of absolute values in a column,
        ``numpy.inf`` and ``-numpy.inf`` in a row.
    axis : int or pair of int, optional
        One axis: of vectors. Two: of matrices. By default all, one or two; and without ``ord`` the
        root of the sum of squares of everything.
    keepdims : bool

    Raises
    ------
    ShapeError, ValueError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.norm(x, "nuc").eval({x: [[0, 2], [3, 0]]})
    array(5.)
    """
    x = as_tensor_variable(x)
    if ord is None and axis is None:
        return vector_norm(x, 2, None, keepdims)
    several = (
        axis
        if isinstance(axis, list | tuple | range)
        else range(x.ndim)
        if axis is None
        else [axis]
    )
    axes = [normalize_axis("norm", a, x.ndim) for a in several]
    if len(axes) not in (1, 2) or len(set(axes)) != len(axes):
        raise ShapeError(
            f"norm: axis={axis!r} for x ({x.type}): one axis of vectors or two of matrices"
        )
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: ord={ord!r} is a norm of matrices; x ({x.type}) holds vectors")
        return vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if ord is None or ord == "fro":
        return vector_norm(x, 2, axes, keepdims)
    z = _matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return expand_dims(z, sorted(axes)) if keepdims else z


def _matrix_norm(x: TensorVariable, ord: Any) -> TensorVariable:
    """Compute the norms of the matrices in the last two axes."""
    if isinstance(ord, str) and ord == "nuc":
        return narrowed(sum_(SingularValues()(x), axis=-1), x)
    if isinstance(ord, str) or ord not in (1, -1, 2, -2, np.inf, -np.inf):
        raise ValueError(
            f"norm: ord={ord!r} is no norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    extreme = max_ if ord > 0 else min_
    if ord in (2, -2):
        return narrowed(extreme(SingularValues()(x), axis=-1), x)
    x = cast_to(x, "float64") if dtypes.is_discrete(x.dtype) else x
    return extreme(sum_(abs_(x), axis=-2 if ord in (1, -1) else -1), axis=-1)


__all__ = [
    "Expm", "expm", "matrix_dot", "matrix_power", "norm", "tensorinv", "tensorsolve",
]  # fmt: skip
