"""Determinants, norms, powers and exponentials of matrices, as users call them."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import abs_
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.linalg.determinant import Det, SLogDet
from symcomp.ops.linalg.functions import dot, matmul
from symcomp.ops.linalg.functions import norm as vector_norm
from symcomp.ops.linalg.matrices import check_matrix, narrowed, square_length
from symcomp.ops.linalg.matrix_functions import Expm
from symcomp.ops.linalg.svd import SingularValues
from symcomp.ops.linalg.systems import matrix_inverse
from symcomp.ops.reductions.functions import max as max_
from symcomp.ops.reductions.functions import min as min_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import expand_dims, moveaxis
from symcomp.ops.shapes.creation import eye
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.shape import normalize_axis, shape_tuple


def det(x: Any) -> TensorVariable:
    """Return the determinant of each square matrix.   (..., n, n) -> (...)

    The gradient exists for singular matrices too; ``slogdet`` neither over- nor underflows.

    Parameters
    ----------
    x : tensor_like
        Integers count as float64.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.nlinalg.det(x).eval({x: [[2, 0], [0, 4]]})
    array(8.)
    """
    x = as_tensor_variable(x)
    return narrowed(Det()(x), x)


def slogdet(x: Any) -> list[TensorVariable]:
    """Compute sign and logarithm of the modulus of the determinant of each square matrix.

    (..., n, n) -> (...), (...)

    Parameters
    ----------
    x : tensor_like
        Integers count as float64.

    Returns
    -------
    sign : TensorVariable
        1, -1, or 0 if the matrix is singular; for complex matrices a number of modulus 1, or 0.
    logabsdet : TensorVariable
        Minus infinity if the matrix is singular.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> sign, logabs = T.nlinalg.slogdet(-x)
    >>> sign.eval({x: [[1.0]]}), logabs.eval({x: [[1.0]]})
    (array(-1.), array(0.))
    """
    x = as_tensor_variable(x)
    return [narrowed(out, x) for out in SLogDet()(x)]


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


def block_diag(*matrices: Any) -> TensorVariable:
    """Build the matrix with the given ones along its diagonal, and zeros beside.

    (..., m_1, n_1) (..., m_2, n_2) .. -> (..., m_1 + m_2 + .., n_1 + n_2 + ..)

    Parameters
    ----------
    *matrices : tensor_like
        Matrices, or stacks of one shape.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.linalg.block_diag(x, [[5.0]]).eval({x: [[1, 2]]})
    array([[1., 2., 0.],
           [0., 0., 5.]])
    """
    if not matrices:
        raise TypeError("block_diag: at least one matrix is needed")
    tensors = as_common(*matrices)
    common = dtypes.upcast(*(x.dtype for x in tensors))
    rank = tensors[0].ndim
    for i, x in enumerate(tensors):
        check_matrix("block_diag", f"argument {i}", x)
        if x.ndim != rank:
            raise ShapeError(f"block_diag: argument {i} ({x.type}) must have {rank} axes")
    shapes = [shape_tuple(x) for x in tensors]
    rows = [sum(s[-2] for s in shapes[:i]) for i in range(len(shapes) + 1)]
    columns = [sum(s[-1] for s in shapes[:i]) for i in range(len(shapes) + 1)]
    whole = zeros([*shapes[0][:-2], rows[-1], columns[-1]], common)
    for i, x in enumerate(tensors):
        part = (..., slice(rows[i], rows[i + 1]), slice(columns[i], columns[i + 1]))
        whole = set_subtensor(getitem(whole, part), cast_to(x, common))
    return whole


__all__ = ["block_diag", "det", "expm", "matrix_dot", "matrix_power", "norm", "slogdet"]
