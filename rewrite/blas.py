"""Combine matrix products with the sums and scalars around them into single calls of BLAS.

A term of a sum is read as ``number * scalars * product``, however that is written (``Term``); the
rest of the sum becomes the accumulator. Scalars are multiplied with one another first, and a
division by a scalar becomes a factor: that rounds differently, and near the limits of the range
another partial product overflows.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant
from symcomp.ops.convert import cast_to
from symcomp.ops.elementwise.scalar_math import add, mul, true_div
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.blas_routines import DTYPES
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.views import is_point, number

# The most factors that are collected.
MOST_FACTORS = 16


def used_once(x: Any, graph: Any) -> bool:
    """Tell whether ``x`` has one client only, which may then absorb its computation."""
    return len(graph.clients.get(x, ())) == 1


# -- scalar factors


def finite_number(x: Any) -> complex | None:
    """Return the value of a finite constant, real or complex, all of whose axes have length 1."""
    value: complex | None = number(x)
    if value is None:
        while isinstance(node := x.owner, Apply) and isinstance(node.op, DimShuffle):
            x = node.inputs[0]
        if isinstance(x, TensorConstant) and x.data.size == 1 and dtypes.is_complex(x.dtype):
            value = complex(x.data.reshape(()))
    return value if value is not None and cmath.isfinite(value) else None


@record(frozen=False)
class Scaled:
    """``number * product of above / product of below * base``; the scalars have any rank."""

    base: Any
    number: complex = 1.0
    above: list[Any] = field(default_factory=list)
    below: list[Any] = field(default_factory=list)

    def multiply(self, scalar: Any) -> None:
        """Multiply by a tensor with one element."""
        value = finite_number(scalar)
        if value is None:
            self.above.append(scalar)
        else:
            self.number *= value

    def divide(self, scalar: Any) -> None:
        """Divide by a tensor with one element."""
        value = finite_number(scalar)
        if not value:
            self.below.append(scalar)
        else:
            self.number /= value

    def factor(self, dtype: str) -> Any:
        """Return all factors as one scalar of this dtype; None if the number does not fit it."""
        with np.errstate(over="ignore", under="ignore"):
            value = np.asarray(self.number, dtype)
        if not np.isfinite(value) or (value == 0) != (self.number == 0):
            return None
        result: Any = None if self.number == 1 and self.above else value
        for x in self.above:
            point = as_scalar(x, dtype)
            result = point if result is None else mul(result, point)
        for x in self.below:
            result = true_div(result, as_scalar(x, dtype))
        return result


def as_scalar(x: Any, dtype: str) -> Any:
    """Return a tensor with one element as a scalar."""
    while x.ndim and computed_by(x, DimShuffle) is not None:
        x = x.owner.inputs[0]
    return cast_to(DimShuffle(x.ndim, ())(x) if x.ndim else x, dtype)


def as_scaled(x: Any, graph: Any, any_use: bool = False) -> Scaled:
    """Collect the scalar factors of ``x`` and of the nodes that compute it, up to nodes with other
    clients.

    ``any_use`` says that ``x`` itself may have other clients.
    """
    found = Scaled(x)
    for _ in range(MOST_FACTORS):
        if not (any_use or used_once(found.base, graph)):
            break
        any_use = False
        node = elementwise(found.base, "mul", "true_div", "neg")
        if node is None or not _take_factor(found, node):
            break
    return found


def _take_factor(found: Scaled, node: Apply) -> bool:
    """Move the factor by which ``node`` scales to the collected ones; False if it scales by no
    scalar.
    """
    name, out = node.op.scalar.name, node.outputs[0]
    choices = [(node.inputs[0], node.inputs[-1])]
    if name == "mul":
        choices.append((node.inputs[1], node.inputs[0]))
    for x, scalar in choices:
        if x.dtype != out.dtype or x.type.broadcastable != out.type.broadcastable:
            continue
        if name == "neg":
            found.number = -found.number
        elif not is_point(scalar) or is_point(x):
            continue
        elif name == "mul":
            found.multiply(scalar)
        else:
            found.divide(scalar)
        found.base = x
        return True
    return False


# -- products


@record(frozen=False)
class Term:
    """``scaled`` times the product that ``node`` computes, transposed if ``swapped``, its axes
    rearranged by ``order`` if there is one.
    """

    scaled: Scaled
    node: Apply
    swapped: bool = False
    order: tuple[Any, ...] | None = None

    @property
    def product(self) -> Any:
        """The output of the node."""
        return self.node.outputs[0]

    @property
    def pattern(self) -> tuple[bool, ...]:
        """The axes of the product (transposed, if it is) that have length 1, as a tuple of bool."""
        p = self.product.type.broadcastable
        return (*p[:-2], p[-1], p[-2]) if self.swapped else p


def as_term(x: Any, graph: Any, any_use: bool = False) -> Term | None:
    """Read ``x`` as a scaled product without other clients; None if it is none.

    With ``any_use``, ``x`` itself may have other clients, provided that it scales a product.
    """
    scaled = as_scaled(x, graph, any_use)
    if (scaled.base is x and any_use) or not used_once(scaled.base, graph):
        return None
    turned = computed_by(scaled.base, DimShuffle)
    if turned is not None:
        if turned.op.dropped or not used_once(turned.inputs[0], graph):
            return None
        scaled.base = turned.inputs[0]
    node = scaled.base.owner
    if node is None or scaled.base.dtype not in DTYPES:
        return None
    matrices = isinstance(node.op, Dot | BatchedDot | ScaledDot)
    if not matrices and outer_factors(scaled.base) is None:
        return None
    if isinstance(node.op, ScaledDot):
        scaled.multiply(node.inputs[0])
    term = Term(scaled, node)
    if turned is not None:
        term.swapped = matrices and _swaps(turned)
        term.order = None if term.swapped else turned.op.order
    return term


def outer_factors(x: Any) -> tuple[Any, Any] | None:
    """Return two vectors if ``x`` is the matrix of all their products."""
    node = elementwise(x, "mul")
    if node is None or x.ndim != 2:
        return None
    for column, row in (node.inputs, node.inputs[::-1]):
        patterns = column.type.broadcastable, row.type.broadcastable
        if patterns == ((False, True), (True, False)) and column.dtype == row.dtype == x.dtype:
            return as_vector(column, 0), as_vector(row, 1)
    return None


def as_vector(x: Any, axis: int) -> Any:
    """Return the row or column ``x`` as a vector."""
    inner = computed_by(x, DimShuffle)
    if inner is not None and inner.inputs[0].ndim == 1:
        return inner.inputs[0]
    return DimShuffle(2, (axis,))(x)


def _swaps(node: Apply) -> bool:
    """Tell whether the node exchanges the last two axes, and does nothing else."""
    n = node.inputs[0].ndim
    return n > 1 and bool(node.op.order == (*range(n - 2), n - 1, n - 2))


def upright(x: Any, flag: bool) -> tuple[Any, bool]:
    """Return (y, whether ``x``, transposed if ``flag``, is y transposed), with one transposition
    removed if there is one.
    """
    node = computed_by(x, DimShuffle)
    return (node.inputs[0], not flag) if node is not None and _swaps(node) else (x, flag)


def _operands(term: Term) -> tuple[Any, Any, bool, bool]:
    """Return (a, b, trans_a, trans_b) of a product of matrices, stacks of them, or a vector."""
    *_, a, b = term.node.inputs
    op = term.node.op
    flags = (op.trans_a, op.trans_b) if isinstance(op, ScaledDot) else (False, False)
    (a, trans_a), (b, trans_b) = upright(a, flags[0]), upright(b, flags[1])
    return (b, a, not trans_b, not trans_a) if term.swapped else (a, b, trans_a, trans_b)


# -- calls of BLAS


def _accumulated(c: Any, beta: complex, term: Term) -> Any:
    """Return ``beta c + term`` as one call, or None."""
    product = term.product
    if term.order is not None:
        new = [i for i, a in enumerate(term.order) if a == "x"]
        if len(term.order) != c.ndim or any(c.type.shape[i] != 1 for i in new):
            return None
        c = DimShuffle(c.ndim, tuple(term.order.index(a) for a in range(product.ndim)))(c)
    alpha = term.scaled.factor(product.dtype)
    if alpha is None or c.dtype != product.dtype or c.type.broadcastable != term.pattern:
        return None
    result = _call(c, alpha, term, np.asarray(beta, c.dtype))
    if result is None or term.order is None:
        return result
    return DimShuffle(product.ndim, term.order)(result)


def _call(c: Any, alpha: Any, term: Term, beta: Any) -> Any:
    """Return the op that adds alpha times the product to ``beta c``; None for a product of vectors.
    """
    outer = outer_factors(term.product)
    if outer is not None:
        return Ger()(c if beta == 1 else mul(beta, c), alpha, *outer)
    a, b, trans_a, trans_b = _operands(term)
    if a.ndim == b.ndim > 1:
        op = Gemm if a.ndim == 2 else BatchedGemm
        return op(False, trans_a, trans_b)(c, alpha, a, b, beta)
    if a.ndim == 2:
        return Gemv(False, trans_a)(c, alpha, a, b, beta)
    return Gemv(False, not trans_b)(c, alpha, b, a, beta) if b.ndim == 2 else None


def _start(x: Any, graph: Any, dtype: str) -> tuple[Any, complex]:
    """Return (c, beta) such that ``x`` is beta c: beta is never 0, since BLAS would not read c
    then.
    """
    scaled = as_scaled(x, graph)
    with np.errstate(over="ignore", under="ignore"):
        value = np.asarray(scaled.number, dtype)
    exact = not scaled.above and not scaled.below and np.isfinite(value) and value != 0
    return (scaled.base, scaled.number) if exact else (x, 1.0)


@rule("add", "sub", why="BLAS accumulates into c; a and b are read even if alpha is 0")
def product_into_sum(node: Apply, graph: Any) -> Any:
    """beta c + alpha dot(a, b) -> gemm, gemv, ger or batched gemm, where nothing is stretched"""
    out, minus = node.outputs[0], node.op.scalar.name == "sub"
    if out.dtype not in DTYPES:
        return None
    for position in reversed(range(len(node.inputs))):
        term = as_term(node.inputs[position], graph)
        if term is None:
            continue
        c, beta = _rest([x for i, x in enumerate(node.inputs) if i != position], graph, out.dtype)
        if minus and position == 1:
            term.scaled.number *= -1
        result = _accumulated(c, -beta if minus and position == 0 else beta, term)
        if result is not None:
            return result
    return None


def _rest(rest: Sequence[Any], graph: Any, dtype: str) -> tuple[Any, complex]:
    """Return the other terms of a sum as (c, beta)."""
    return _start(rest[0], graph, dtype) if len(rest) == 1 else (add(*rest), 1.0)


@rule("mul", "true_div", "neg", why="BLAS scales the product; a and b are read even if alpha is 0")
def scaled_product(node: Apply, graph: Any) -> Any:
    """alpha dot(a, b) -> scaled_dot(alpha, a, b), for products without other clients"""
    out = node.outputs[0]
    term = as_term(out, graph, any_use=True) if out.dtype in DTYPES else None
    if term is None or not isinstance(term.node.op, Dot | ScaledDot) or term.product.ndim != 2:
        return None
    alpha = term.scaled.factor(out.dtype)
    if alpha is None:
        return None
    a, b, trans_a, trans_b = _operands(term)
    result = ScaledDot(trans_a, trans_b)(alpha, a, b)
    return result if term.order is None else DimShuffle(2, term.order)(result)


BLAS_RULES = RuleSet([product_into_sum, scaled_product], ["blas"])
