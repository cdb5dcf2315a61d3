"""Sums of products that form no product array, and matrix chains multiplied in the cheapest order.

Rewriting creates these ops in place of ``sum(x * y)`` and of nested ``dot``; users do not apply
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ParameterError, ShapeError
from symcomp.ops.elementwise.scalar_math import conj, mul
from symcomp.ops.linalg.products import Dot, check_lengths
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import require_axes

# Products summed one after the other; longer plain sums would lose digits.
BLOCK = 1 << 12
# Elements copied at once, so that the copy stays in the cache.
PART = 1 << 15


@record
class SumOfProducts(Op):
    """z = sum of x * y over ``axes``, no product being formed.   (..), (..) -> (the other axes)

    x and y have the same dtype and lengths; nothing is stretched.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ops.linalg.contraction import SumOfProducts
    >>> x = T.dmatrix("x")
    >>> SumOfProducts((1,))(x, x).eval({x: [[1, 2], [3, 4]]})
    array([ 5., 25.])
    """

    axes: Axes

    def output_types(self, x: TensorVariable, y: TensorVariable) -> list[TensorType]:
        if x.ndim != y.ndim or x.dtype != y.dtype:
            raise DTypeError(f"{self}: {x.type} and {y.type} have not one rank and dtype")
        if x.type.broadcastable != y.type.broadcastable:
            raise ShapeError(f"{self}: {x.type} and {y.type} differ in which lengths are 1")
        require_axes(self, self.axes, x)
        check_lengths(str(self), x, y, [(a, a) for a in range(x.ndim)])
        known = zip(x.type.shape, y.type.shape, strict=True)
        shape = [m if n is None else n for n, m in known]
        return [TensorType(x.dtype, [n for a, n in enumerate(shape) if a not in self.axes])]

    def perform(self, x: Any, y: Any) -> Any:
        if x.shape != y.shape:
            raise ShapeError(f"{self}: shapes {x.shape} and {y.shape} differ")
        if len(self.axes) == x.ndim:
            return _total(x, y)
        if self.axes == (x.ndim - 1,):
            return np.matmul(x[..., None, :], y[..., :, None])[..., 0, 0]
        labels = list(range(x.ndim))
        return np.einsum(x, labels, y, labels, [a for a in labels if a not in self.axes])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x, y), gz = inputs, output_grads[0]
        gz = expand_dims(gz, self.axes)
        return [mul(_conj(y), gz), mul(_conj(x), gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        if dx is None or dy is None:
            return [self(x, dy) if dx is None else self(dx, y)]
        return [self(dx, y) + self(x, dy)]

    def __str__(self) -> str:
        return f"SumOfProducts{{axis={','.join(map(str, self.axes))}}}"


def _conj(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _total(x: Any, y: Any) -> Any:
    """Sum all products; operands that are not contiguous are copied part by part."""
    if x.flags.f_contiguous and y.flags.f_contiguous:
        x, y = x.T, y.T
    if x.flags.c_contiguous and y.flags.c_contiguous:
        return np.asarray(_flat_total(x.reshape(-1), y.reshape(-1)))
    if x.size <= BLOCK:
        return np.asarray(np.sum(x * y), x.dtype)
    step = max(1, PART * len(x) // x.size)
    starts = range(0, len(x), step)
    parts = [_flat_total(x[i : i + step].ravel(), y[i : i + step].ravel()) for i in starts]
    return np.asarray(np.sum(parts, dtype=x.dtype))


def _flat_total(x: Any, y: Any) -> Any:
    """Sum all products of two vectors: blocks by BLAS, the sums of blocks pairwise."""
    whole = len(x) // BLOCK * BLOCK
    rest = np.dot(x[whole:], y[whole:])
    if not whole:
        return rest
    blocks = np.matmul(x[:whole].reshape(-1, 1, BLOCK), y[:whole].reshape(-1, BLOCK, 1))
    return np.sum(blocks, dtype=x.dtype) + rest


# The parentheses of a product: the position of a factor, or a pair.
Brackets = Any


@record
class MatrixChain(Op):
    """The product of several matrices (vectors may be first and last), in the order that takes the
    fewest multiplications for the lengths of the call.

    ``brackets`` is the order in which the product was written: ((0, 1), 2) is (x y) z. It is used
    if a length is 0, since the order then decides whether NaN shows.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ops.linalg.contraction import MatrixChain
    >>> x, v = T.dmatrix("x"), T.dvector("v")
    >>> MatrixChain(((0, 1), 2))(x, x, v).eval({x: [[1, 2], [3, 4]], v: [1, 0]})
    array([ 7., 15.])
    """

    brackets: Brackets

    def __post_init__(self) -> None:
        super().__post_init__()
        count = _number_of_factors(self.brackets)
        if count < 2:
            raise ParameterError(
                f"MatrixChain: the brackets {self.brackets!r:.80} must be pairs, of pairs or of "
                "the numbers of the factors, from 0 and in their order"
            )

    def output_types(self, *factors: TensorVariable) -> list[TensorType]:
        inner = factors[1:-1]
        if len(factors) != _number_of_factors(self.brackets):
            raise ShapeError(f"{self}: the brackets are not of {len(factors)} factors")
        if any(v.ndim != 2 for v in inner) or {factors[0].ndim, factors[-1].ndim} - {1, 2}:
            raise ShapeError(f"{self}: {[str(v.type) for v in factors]} are not all matrices")
        if len({v.dtype for v in factors}) > 1:
            raise DTypeError(f"{self}: the dtypes {[v.dtype for v in factors]} differ")
        return [self._as_written(Dot(), factors).type]

    def perform(self, *factors: Any) -> Any:
        lengths = self.lengths(factors)
        brackets = self.brackets if 0 in lengths else best_brackets(tuple(lengths))
        z = bracketed(np.dot, brackets, factors)
        return np.asarray(z)

    def lengths(self, factors: Sequence[Any]) -> list[int]:
        """Return the rows of the first factor and the columns of each; a vector at an end has one
        row or column.
        """
        lengths = [factors[0].shape[0] if factors[0].ndim == 2 else 1]
        inner = factors[0].shape[-1]
        for x in factors[1:]:
            if x.shape[0] != inner:
                raise ShapeError(
                    f"{self}: shapes {[v.shape for v in factors]} do not fit: inner lengths must "
                    "be equal"
                )
            lengths.append(inner)
            inner = x.shape[-1]
        return [*lengths, factors[-1].shape[1] if factors[-1].ndim == 2 else 1]

    def _as_written(self, product: Callable[[Any, Any], Any], factors: Sequence[Any]) -> Any:
        return bracketed(product, self.brackets, factors)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(*shapes[0][:-1], *shapes[-1][1:])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        grads: list[Any] = [None] * len(inputs)
        pending = [(self.brackets, output_grads[0])]
        while pending:
            brackets, g = pending.pop()
            if isinstance(brackets, int):
                grads[brackets] = g
                continue
            sides = [bracketed(Dot(), side, inputs) for side in brackets]
            pending += zip(brackets, Dot().pullback(sides, None, [g]), strict=True)
        return grads

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        total = None
        for i, dx in enumerate(tangents):
            if dx is not None:
                term = self(*inputs[:i], dx, *inputs[i + 1 :])
                total = term if total is None else total + term
        return [total]

    def __str__(self) -> str:
        return f"MatrixChain{{{self.brackets}}}"


def _number_of_factors(brackets: Brackets) -> int:
    """Return the number of factors in the brackets; 0 if they are not brackets of 0, 1, 2, ..."""
    count = 0
    pending = [brackets]
    while pending:
        b = pending.pop()
        if type(b) is tuple and len(b) == 2:
            pending += [b[1], b[0]]
        elif type(b) is int and b == count:
            count += 1
        else:
            return 0
    return count


def bracketed(
    product: Callable[[Any, Any], Any], brackets: Brackets, factors: Sequence[Any]
) -> Any:
    """Multiply the factors in the order of the brackets."""
    done: list[Any] = []
    pending: list[Any] = [brackets]
    while pending:
        b = pending.pop()
        if b is None:
            right, left = done.pop(), done.pop()
            done.append(product(left, right))
        elif isinstance(b, int):
            done.append(factors[b])
        else:
            pending += [None, b[1], b[0]]
    return done[0]


def in_order(brackets: Brackets) -> list[tuple[int, int]]:
    """Return the operand numbers of each product in executable order: the n factors come first,
    then the products.
    """
    factors = 1 + str(brackets).count(",")
    made: list[tuple[int, int]] = []

    def multiply(x: int, y: int) -> int:
        made.append((x, y))
        return factors + len(made) - 1

    bracketed(multiply, brackets, range(factors))
    return made


@lru_cache(maxsize=4096)
def best_brackets(lengths: tuple[int, ...]) -> Brackets:
    """Return the brackets with the fewest multiplications, for factor k of shape (lengths[k],
    lengths[k + 1]); the leftmost of equally good ones (dynamic programming over intervals).
    """
    n = len(lengths) - 1
    best: dict[tuple[int, int], tuple[int, Brackets]] = {(i, i): (0, i) for i in range(n)}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            costs = [
                (
                    best[i, k][0]
                    + best[k + 1, j][0]
                    + lengths[i] * lengths[k + 1] * lengths[j + 1],
                    -k,
                )
                for k in range(i, j)
            ]
            cost, k = min(costs)
            best[i, j] = cost, (best[i, -k][1], best[1 - k, j][1])
    return best[0, n - 1][1]


__all__ = ["MatrixChain", "SumOfProducts", "best_brackets", "bracketed", "in_order"]
