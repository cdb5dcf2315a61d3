"""Matrix products together with the scaling and addition that one call of BLAS does.

Rewriting creates these ops in place of ``beta * C + alpha * dot(A, B)``; users do not apply them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import StaticShape, TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common
from symcomp.ops.elementwise.scalar_math import conj, mul
from symcomp.ops.linalg import blas_routines as blas
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import dimshuffle, matrix_transpose

# (alpha, x, y, transposed x, transposed y) -> their product.
Multiply = Callable[[Any, Any, Any, bool, bool], Any]


@record
class _BlasOp(Op):
    """Base of the ops of this module: named arguments of fixed rank, all of one dtype."""

    # (name, rank) of each argument.
    arguments: ClassVar[tuple[tuple[str, int], ...]] = ()

    def as_inputs(self, *args: Any) -> list[Any]:
        if len(args) != len(self.arguments):
            names = ", ".join(name for name, _ in self.arguments)
            raise TypeError(f"{self}: takes {names}, got {len(args)} arguments")
        return as_common(*args)

    def _check(self, inputs: Sequence[TensorVariable]) -> None:
        """Raise unless the inputs have the ranks of the arguments, and one dtype that BLAS has."""
        first = inputs[0].dtype
        for (name, rank), v in zip(self.arguments, inputs, strict=True):
            if v.ndim != rank:
                raise ShapeError(f"{self}: {name} ({v.type}) must have {rank} axes")
            if v.dtype != first or v.dtype not in blas.DTYPES:
                raise DTypeError(
                    f"{self}: {name} is {v.dtype}, {self.arguments[0][0]} is {first}: all must "
                    f"have one of the dtypes {', '.join(blas.DTYPES)}; use T.cast"
                )

    def _refuse(self, *shapes: Any) -> ShapeError:
        """Return the error for shapes that do not fit."""
        named = [name for name, rank in self.arguments if rank]
        shown = ", ".join(
            f"{name} {tuple('?' if n is None else n for n in shape)}".replace("'", "")
            for name, shape in zip(named, shapes, strict=True)
        )
        return ShapeError(f"{self}: the shapes do not fit: {shown}; nothing is stretched here")

    def _merged(self, inputs: Sequence[TensorVariable], *equal: Any) -> list[int | None]:
        """Return the length of each group of equal lengths, or None; raise if two of one group
        differ.
        """
        result: list[int | None] = []
        for group in equal:
            known = {n for n in group if n is not None}
            if len(known) > 1:
                ranks = (rank for _, rank in self.arguments)
                tensors = [v for v, rank in zip(inputs, ranks, strict=True) if rank]
                raise self._refuse(*(v.type.shape for v in tensors))
            result.append(next(iter(known), None))
        return result

    def __str__(self) -> str:
        chosen = [flag.name for flag in fields(self) if getattr(self, flag.name)]
        return type(self).__name__ + (f"{{{', '.join(chosen)}}}" if chosen else "")


def _transposed(x: Any, flag: bool) -> Any:
    """Return ``x``, an array or a variable, with its last two axes exchanged if ``flag``."""
    if not flag:
        return x
    return matrix_transpose(x) if isinstance(x, TensorVariable) else x.swapaxes(-1, -2)


def _shape(x: StaticShape, flag: bool) -> StaticShape:
    """Return the static shape with its last two axes exchanged if ``flag``."""
    return (*x[:-2], x[-1], x[-2]) if flag else x


def _conj(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _total(x: Any, y: Any) -> Any:
    """Return the sum of x times y conjugated, over all axes."""
    return sum_(mul(x, _conj(y)))


def _added(terms: Sequence[Any]) -> Any:
    """Return the sum of the terms; None if there are none."""
    total = None
    for term in terms:
        total = term if total is None else total + term
    return total


def _product_grads(
    multiply: Multiply, alpha: Any, a: Any, b: Any, gz: Any, flags: tuple[bool, bool]
) -> tuple[Any, Any]:
    """Return the gradients of a and b through alpha op(a) op(b)."""
    (trans_a, trans_b), alpha, a, b = flags, _conj(alpha), _conj(a), _conj(b)
    ga = multiply(alpha, b, gz, trans_b, True) if trans_a else multiply(
        alpha, gz, b, False, not trans_b
    )  # fmt: skip
    gb = multiply(alpha, gz, a, True, trans_a) if trans_b else multiply(
        alpha, a, gz, not trans_a, False
    )  # fmt: skip
    return ga, gb


def _scaled_matrices(alpha: Any, x: Any, y: Any, trans_x: bool, trans_y: bool) -> Any:
    return ScaledDot(trans_x, trans_y)(alpha, x, y)


def _scaled_batches(alpha: Any, x: Any, y: Any, trans_x: bool, trans_y: bool) -> Any:
    return mul(alpha, BatchedDot()(_transposed(x, trans_x), _transposed(y, trans_y)))


@record
class ScaledDot(_BlasOp):
    """z = alpha op(a) op(b), op the transposition where the field says so.   (), (n, k), (k, m) ->
    (n, m)
    """

    trans_a: bool = False
    trans_b: bool = False
    arguments = (("alpha", 0), ("a", 2), ("b", 2))

    def output_types(self, alpha: Any, a: Any, b: Any) -> list[TensorType]:
        self._check((alpha, a, b))
        (n, k), (p, m) = _shape(a.type.shape, self.trans_a), _shape(b.type.shape, self.trans_b)
        self._merged((alpha, a, b), (k, p))
        return [TensorType(a.dtype, (n, m))]

    def perform(self, alpha: Any, a: Any, b: Any, z: Any = None) -> Any:
        x, y = _transposed(a, self.trans_a), _transposed(b, self.trans_b)
        if x.shape[1] != y.shape[0]:
            raise self._refuse(a.shape, b.shape)
        z = np.empty((x.shape[0], y.shape[1]), x.dtype) if z is None else z
        return blas.gemm(z, alpha, x, y, 0)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(_shape(shapes[1], self.trans_a)[0], _shape(shapes[2], self.trans_b)[1])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (alpha, a, b), (gz,) = inputs, output_grads
        product = Dot()(_transposed(a, self.trans_a), _transposed(b, self.trans_b))
        flags = (self.trans_a, self.trans_b)
        return [_total(gz, product), *_product_grads(_scaled_matrices, alpha, a, b, gz, flags)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        places = [i for i, dx in enumerate(tangents) if dx is not None]
        return [_added([self(*_with(inputs, i, tangents[i])) for i in places])]


def _with(values: Sequence[Any], position: int, value: Any) -> list[Any]:
    """Return ``values`` with the one at ``position`` replaced."""
    return [*values[:position], value, *values[position + 1 :]]


@record
class _Updating(_BlasOp):
    """An op that adds to its first argument; ``inplace`` overwrites it."""

    inplace: bool = False

    def compute(self, z: Any, *args: Any) -> Any:
        """Compute the result in ``z``: the first argument, another array, or None for a new one."""
        raise NotImplementedError

    def perform(self, *args: Any) -> Any:
        return self.compute(args[0] if self.inplace else None, *args)

    @property
    def destroy_map(self) -> Any:  # type: ignore[override]
        """The first input if ``inplace``."""
        return {0: (0,)} if self.inplace else {}


@record
class _Accumulating(_Updating):
    """z = beta c + alpha op(a) op(b), for matrices or stacks of them; nothing is stretched.

    ``trans_a`` and ``trans_b`` transpose a and b (their last two axes). As in BLAS, c is not read
    where beta is 0; a and b are read in any case, so that 0 times NaN shows. ``inplace`` overwrites
    c.
    """

    trans_a: bool = False
    trans_b: bool = False

    def output_types(self, c: Any, alpha: Any, a: Any, b: Any, beta: Any) -> list[TensorType]:
        inputs = (c, alpha, a, b, beta)
        self._check(inputs)
        x, y = _shape(a.type.shape, self.trans_a), _shape(b.type.shape, self.trans_b)
        z = c.type.shape
        batch = zip(z[:-2], x[:-2], y[:-2], strict=True)
        *shape, _ = self._merged(inputs, *batch, (z[-2], x[-2]), (z[-1], y[-1]), (x[-1], y[-2]))
        return [TensorType(c.dtype, shape)]

    def compute(self, z: Any, *args: Any) -> Any:
        c, alpha, a, b, beta = args
        x, y = _transposed(a, self.trans_a), _transposed(b, self.trans_b)
        fits = (*x.shape[:-1], y.shape[-1]) == c.shape and x.shape[-1] == y.shape[-2]
        if not fits or x.shape[:-2] != y.shape[:-2]:
            raise self._refuse(c.shape, a.shape, b.shape)
        call = blas.gemm if c.ndim == 2 else blas.batched_gemm
        return _updated(z, c, beta, lambda z: call(z, alpha, x, y, beta), x, y)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [_known_first(node, shapes[0])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (c, alpha, a, b, beta), (gz,) = inputs, output_grads
        flags = (self.trans_a, self.trans_b)
        multiply = _scaled_matrices if c.ndim == 2 else _scaled_batches
        product = (Dot if c.ndim == 2 else BatchedDot)()(
            _transposed(a, self.trans_a), _transposed(b, self.trans_b)
        )
        ga, gb = _product_grads(multiply, alpha, a, b, gz, flags)
        return [mul(_conj(beta), gz), _total(gz, product), ga, gb, _total(gz, c)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (c, alpha, a, b, beta), (dc, dalpha, da, db, dbeta) = inputs, tangents
        multiply = _scaled_matrices if c.ndim == 2 else _scaled_batches
        terms = [mul(beta, dc)] if dc is not None else []
        terms += [mul(dbeta, c)] if dbeta is not None else []
        for factors in ((dalpha, a, b), (alpha, da, b), (alpha, a, db)):
            if all(v is not None for v in factors):
                terms.append(multiply(*factors, self.trans_a, self.trans_b))
        return [_added(terms)]


def _updated(z: Any, c: Any, beta: Any, update: Callable[[Any], Any], *read: Any) -> np.ndarray:
    """Apply ``update`` to c, or to a copy of c in z (None: in a new array); c may share memory with
    ``reads``.
    """
    if z is None:
        return update(blas.start_of(c, beta))
    if z is not c:
        if beta != 0:
            np.copyto(z, c)
        return update(z)
    if any(np.may_share_memory(c, x) for x in read):
        np.copyto(c, update(blas.start_of(c, beta)))
        return c
    return update(c)


def _known_first(node: Apply, shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return the shape of the output: known lengths from its type, others from ``shape``."""
    static = node.outputs[0].type.shape
    return tuple(n if known is None else known for n, known in zip(shape, static, strict=True))


@record
class Gemm(_Accumulating):
    """z = beta c + alpha op(a) op(b); op transposes where ``trans_a``, ``trans_b`` say so.

    c (n, m), alpha (), a (n, k), b (k, m), beta () -> (n, m). c is not read where beta is 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ops.linalg.blas import Gemm
    >>> c, a = T.dmatrices("c", "a")
    >>> Gemm(trans_b=True)(c, -1.0, a, a, 2.0).eval({c: [[5]], a: [[1, 2]]})
    array([[5.]])
    """

    arguments = (("c", 2), ("alpha", 0), ("a", 2), ("b", 2), ("beta", 0))


@record
class BatchedGemm(_Accumulating):
    """z[i] = beta c[i] + alpha op(a[i]) op(b[i]); see ``Gemm``.

    c (s, n, m), alpha (), a (s, n, k), b (s, k, m), beta () -> (s, n, m)
    """

    arguments = (("c", 3), ("alpha", 0), ("a", 3), ("b", 3), ("beta", 0))


@record
class Gemv(_Updating):
    """z = beta y + alpha op(a) x, op the transposition if ``trans_a``.

    y (n,), alpha (), a (n, k), x (k,), beta () -> (n,). y is not read where beta is 0. ``inplace``
    overwrites y.
    """

    trans_a: bool = False
    arguments = (("y", 1), ("alpha", 0), ("a", 2), ("x", 1), ("beta", 0))

    def output_types(self, y: Any, alpha: Any, a: Any, x: Any, beta: Any) -> list[TensorType]:
        inputs = (y, alpha, a, x, beta)
        self._check(inputs)
        n, k = _shape(a.type.shape, self.trans_a)
        length, _ = self._merged(inputs, (y.type.shape[0], n), (k, x.type.shape[0]))
        return [TensorType(y.dtype, (length,))]

    def compute(self, z: Any, *args: Any) -> Any:
        y, alpha, a, x, beta = args
        matrix = _transposed(a, self.trans_a)
        if matrix.shape != (y.shape[0], x.shape[0]):
            raise self._refuse(y.shape, a.shape, x.shape)
        call = lambda z: blas.gemv(z, alpha, matrix, x, beta)  # noqa: E731
        return _updated(z, y, beta, call, a, x)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [_known_first(node, shapes[0])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (y, alpha, a, x, beta), (gz,) = inputs, output_grads
        matrix, scale = _transposed(a, self.trans_a), _conj(alpha)
        rows, columns = (_conj(x), gz) if self.trans_a else (gz, _conj(x))
        ga = mul(scale, mul(dimshuffle(rows, 0, "x"), dimshuffle(columns, "x", 0)))
        gx = mul(scale, Dot()(_conj(matrix).T, gz))
        return [mul(_conj(beta), gz), _total(gz, Dot()(matrix, x)), ga, gx, _total(gz, y)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (y, alpha, a, x, beta), (dy, dalpha, da, dx, dbeta) = inputs, tangents
        terms = [mul(beta, dy)] if dy is not None else []
        terms += [mul(dbeta, y)] if dbeta is not None else []
        for scale, matrix, vector in ((dalpha, a, x), (alpha, da, x), (alpha, a, dx)):
            if all(v is not None for v in (scale, matrix, vector)):
                terms.append(mul(scale, Dot()(_transposed(matrix, self.trans_a), vector)))
        return [_added(terms)]


@record
class Ger(_Updating):
    """z = c + alpha x y^T, without conjugation.   c (n, m), alpha (), x (n,), y (m,) -> (n, m)

    ``inplace`` overwrites c.
    """

    arguments = (("c", 2), ("alpha", 0), ("x", 1), ("y", 1))

    def output_types(self, c: Any, alpha: Any, x: Any, y: Any) -> list[TensorType]:
        inputs = (c, alpha, x, y)
        self._check(inputs)
        n, m = c.type.shape
        shape = self._merged(inputs, (n, x.type.shape[0]), (m, y.type.shape[0]))
        return [TensorType(c.dtype, shape)]

    def compute(self, z: Any, *args: Any) -> Any:
        c, alpha, x, y = args
        if c.shape != x.shape + y.shape:
            raise self._refuse(c.shape, x.shape, y.shape)
        return _updated(z, c, 1, lambda z: blas.ger(z, alpha, x, y), x, y)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [_known_first(node, shapes[0])]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (_, alpha, x, y), (gz,) = inputs, output_grads
        alpha, x, y = _conj(alpha), _conj(x), _conj(y)
        rows, columns = Dot()(gz, y), Dot()(x, gz)
        return [gz, Dot()(x, rows), mul(alpha, rows), mul(alpha, columns)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (_, alpha, x, y), (dc, dalpha, dx, dy) = inputs, tangents
        terms = [dc] if dc is not None else []
        for scale, left, right in ((dalpha, x, y), (alpha, dx, y), (alpha, x, dy)):
            if all(v is not None for v in (scale, left, right)):
                outer = mul(dimshuffle(left, 0, "x"), dimshuffle(right, "x", 0))
                terms.append(mul(scale, outer))
        return [_added(terms)]


__all__ = ["BatchedGemm", "Gemm", "Gemv", "Ger", "ScaledDot"]
