"""Shared parts of the ops on stacks of matrices: dtypes, checks, products, triangles, scalings.

A stack of matrices has its matrices in the last two axes; a stack of vectors its vectors in the
last one. Gradients follow Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), and Murray, "Differentiation of the Cholesky decomposition"
(2016), with the transpose of each matrix conjugated where it is complex.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.op import Op
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to, with_rank
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.elementwise.scalar_logic import eq, gt, lt, switch
from symcomp.ops.elementwise.scalar_math import add, conj, minimum, real
from symcomp.ops.linalg.products import Dot, contract_equal
from symcomp.ops.shapes.axes import expand_dims, matrix_transpose
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import broadcast_to
from symcomp.ops.shapes.shape import shape_tuple

# -- dtypes


def result_dtype(*kinds: str) -> str:
    """Return the dtype of NumPy's linear algebra: integers count as float64. float16 and
    bfloat16 stay."""
    return dtypes.upcast(*("float64" if dtypes.is_discrete(kind) else kind for kind in kinds))


def lapack_dtype(*kinds: str) -> str:
    """Return the dtype that LAPACK computes in: at least float32."""
    return dtypes.upcast(result_dtype(*kinds), "float32")


class MatrixOp(Op):
    """An op on matrices: its inputs are brought to one of the four dtypes of LAPACK."""

    def as_inputs(self, *args: Any) -> list[Any]:
        """Return the arguments as tensors of their common dtype."""
        tensors = [as_tensor_variable(a) for a in args]
        common = lapack_dtype(*(x.dtype for x in tensors))
        return [cast_to(x, common) for x in tensors]


def narrowed(result: TensorVariable, *args: TensorVariable) -> TensorVariable:
    """Return ``result``, computed from ``args``, in the precision of these: LAPACK has no dtype of
    16 bits.
    """
    kind = result_dtype(*(x.dtype for x in args))
    return cast_to(result, kind) if result.dtype == dtypes.NARROW.get(kind) else result


# -- checks


def check_matrix(name: str, argument: str, x: TensorVariable) -> None:
    """Raise unless ``x`` is a matrix or a stack of them."""
    if x.ndim < 2:
        raise ShapeError(
            f"{name}: {argument} ({x.type}) has {x.ndim} axes: a matrix, or a stack of matrices "
            "with more axes in front, is needed"
        )


def square_length(name: str, argument: str, x: TensorVariable) -> int | None:
    """Return the length of the sides of the square matrices ``x``, if it is known."""
    check_matrix(name, argument, x)
    n, m = x.type.shape[-2:]
    if n is not None and m is not None and n != m:
        raise ShapeError(f"{name}: {argument} ({x.type}) must be square: {n} rows, {m} columns")
    return m if n is None else n


def require_square(name: str, x: Any) -> None:
    """Raise if the array ``x`` does not hold square matrices."""
    if x.shape[-2] != x.shape[-1]:
        raise ShapeError(
            f"{name}: a {x.dtype} array of shape {x.shape}: its matrices must be square"
        )


def aligned_stacks(
    name: str, x: TensorVariable, y: TensorVariable, core: int
) -> tuple[TensorVariable, TensorVariable]:
    """Stretch both to one shape of the stack; x holds matrices, y arrays with ``core`` axes.

    Only axes known to have length 1 are stretched.
    """
    depth = max(x.ndim - 2, y.ndim - core)
    x, y = with_rank(x, depth + 2), with_rank(y, depth + core)
    pairs = list(zip(x.type.shape[:depth], y.type.shape[:depth], strict=True))
    static = broadcast_static(name, [x.type.shape[:depth], y.type.shape[:depth]])
    if all((n == 1) is (m == 1) for n, m in pairs):
        return x, y
    left, right = shape_tuple(x), shape_tuple(y)
    lengths = [
        n if n is not None else (right if pairs[axis][0] == 1 else left)[axis]
        for axis, n in enumerate(static)
    ]
    stretched = [broadcast_to(v, [*lengths, *shape_tuple(v)[depth:]]) for v in (x, y)]
    return stretched[0], stretched[1]


# -- products


def adjoint(x: TensorVariable) -> TensorVariable:
    """Return the conjugate transposes."""
    return matrix_transpose(conj(x) if dtypes.is_complex(x.dtype) else x)


def product(x: TensorVariable, *others: TensorVariable) -> TensorVariable:
    """Multiply matrices in stacks of one shape, from left to right."""
    for y in others:
        if x.ndim == 2:
            x = Dot()(x, y)
        else:
            batch = [(axis, axis) for axis in range(x.ndim - 2)]
            x = contract_equal(x, y, batch, [(x.ndim - 1, y.ndim - 2)])
    return x


def scaled_columns(x: TensorVariable, d: TensorVariable) -> TensorVariable:
    """Compute ``x diag(d)``."""
    return x * expand_dims(d, -2)


def scaled_rows(d: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Compute ``diag(d) x``."""
    return x * expand_dims(d, -1)


def inner_product(x: TensorVariable, y: TensorVariable) -> TensorVariable:
    """Return the sum of ``conj(x) y`` over each matrix."""
    x = conj(x) if dtypes.is_complex(x.dtype) else x
    return (x * y).sum(axis=(-2, -1))


def over_matrix(x: TensorVariable) -> TensorVariable:
    """Append two axes of length 1, so that a number for each matrix multiplies all its elements."""
    return expand_dims(x, (-2, -1))


# -- triangles


def offsets(x: TensorVariable) -> TensorVariable:
    """Return column number minus row number, for the elements of a matrix of ``x``."""
    rows, columns = shape_tuple(x)[-2:]
    return arange(columns).dimshuffle("x", 0) - arange(rows).dimshuffle(0, "x")


def triangle(x: TensorVariable, lower: bool, weight: float = 1.0) -> TensorVariable:
    """Return one triangle of each matrix, its diagonal times ``weight``, and zeros elsewhere."""
    places = offsets(x)
    zero = np.zeros((), x.dtype)
    on_diagonal = zero if weight == 0 else x if weight == 1 else x * np.asarray(weight, x.dtype)
    strictly = lt(places, 0) if lower else gt(places, 0)
    return switch(strictly, x, switch(eq(places, 0), on_diagonal, zero))


def with_diagonal(x: TensorVariable, d: TensorVariable) -> TensorVariable:
    """Return ``x`` with ``d`` on the diagonals."""
    return switch(eq(offsets(x), 0), expand_dims(d, -1), x)


def mirrored(x: TensorVariable, lower: bool, hermitian: bool) -> TensorVariable:
    """Return the symmetric or Hermitian matrix of which ``x`` holds one triangle; the other is not
    read.

    The imaginary parts on the diagonal of a Hermitian matrix are not read either.
    """
    half = triangle(x, lower, 0.5)
    return half + (adjoint(half) if hermitian else matrix_transpose(half))


def folded(g: TensorVariable, lower: bool, hermitian: bool) -> TensorVariable:
    """Return the gradient with respect to x, where ``g`` is that with respect to ``mirrored(x)``.
    """
    return triangle(g + (adjoint(g) if hermitian else matrix_transpose(g)), lower, 0.5)


def real_diagonal(x: TensorVariable) -> TensorVariable:
    """Return ``x`` without the imaginary parts on its diagonals."""
    if not dtypes.is_complex(x.dtype):
        return x
    return switch(eq(offsets(x), 0), cast_to(real(x), x.dtype), x)


def inverse_gaps(w: TensorVariable) -> TensorVariable:
    """Compute ``1 / (w[j] - w[i])`` in row i and column j, and zeros on the diagonal."""
    gaps = expand_dims(w, -2) - expand_dims(w, -1)
    on_diagonal = eq(offsets(gaps), 0)
    zero, one = np.zeros((), w.dtype), np.ones((), w.dtype)
    return switch(on_diagonal, zero, one / switch(on_diagonal, one, gaps))


def diagonal_of(x: TensorVariable) -> TensorVariable:
    """Return the diagonals, as a stack of vectors."""
    return x.diagonal(0, -2, -1)


def total(terms: Sequence[Any]) -> Any:
    """Add the terms that are not None; None if there are none."""
    return reduce(add, terms) if terms else None


# -- lengths


def known_shorter(m: int | None, n: int | None) -> int | None:
    """Return the smaller of two lengths, if it is known."""
    if m == 0 or n == 0:
        return 0
    return None if m is None or n is None else min(m, n)


def shorter(m: Any, n: Any) -> Any:
    """Return the smaller of two lengths: an int if both are, else a scalar variable."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    return minimum(as_tensor_variable(m), as_tensor_variable(n))
