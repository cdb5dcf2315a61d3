"""Linear algebra: solve systems instead of inverting, compute logarithms of determinants directly,
and use triangular matrices as such.

Singular matrices still raise, NaN and infinite results stay so, and matrices whose shapes do not
fit are still an error.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import and_, eq
from symcomp.ops.elementwise.scalar_math import add, cast, conj, mul, reciprocal
from symcomp.ops.indexing.diagonal import AllocDiagonal
from symcomp.ops.indexing.index import IncSubtensor
from symcomp.ops.indexing.index_pattern import ARRAY
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.determinant import Det
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.matrices import diagonal_of, product
from symcomp.ops.linalg.products import BatchedDot, Dot, same_lengths
from symcomp.ops.linalg.qr import QR
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.linalg.stable_linalg import (
    InverseForm,
    Invertible,
    Magnitude,
    StableSLogDet,
    StableSolve,
)
from symcomp.ops.reductions.functions import prod as prod_
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import LogProd
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.axes import matrix_transpose
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import Shapes, shapes_of
from symcomp.rewrite.views import (
    Product,
    argument,
    as_product,
    call,
    number,
    product_of,
    rearranged,
    sum_of,
    through_views,
)

# Longer products of matrices count as one matrix.
LONGEST = 32
OPPOSITE = {"lower": "upper", "upper": "lower"}

# -- facts about matrices


def transposed(x: Any) -> Any:
    """Return y if ``x`` is the stack y of matrices, each transposed; else None."""
    node = computed_by(x, DimShuffle)
    if node is None or x.ndim < 2:
        return None
    *stack, i, j = range(x.ndim)
    return node.inputs[0] if node.op.order == (*stack, j, i) else None


def untransposed(x: Any) -> tuple[Any, bool]:
    """Return ``x`` without transposes, and whether it is the transpose of that."""
    turned = False
    while (y := transposed(x)) is not None:
        x, turned = y, not turned
    return x, turned


def inverted(x: Any) -> Any:
    """Return y if ``x`` is the inverse of y, which may be a transpose or conjugate; else None."""
    y, turned = untransposed(x)
    bare = argument(y, "conj")
    inner, turned_again = untransposed(y if bare is None else bare)
    node = inner.owner
    if node is None or type(node.op) is not MatrixInverse:
        return None
    y = node.inputs[0] if bare is None else conj(node.inputs[0])
    return matrix_transpose(y) if turned != turned_again else y


def triangle_of(x: Any) -> str | None:
    """Return the triangle outside of which the matrices ``x`` are zero: "lower" or "upper", or
    None.
    """
    x, turned = untransposed(x)
    while (y := argument(x, "conj")) is not None:
        x, again = untransposed(y)
        turned = turned != again
    node, found = x.owner, None
    if node is None:
        return None
    if isinstance(node.op, Cholesky):
        found = "lower" if node.op.lower else "upper"
    elif isinstance(node.op, QR) and x.index == 1:
        found = "upper"
    elif is_diagonal(x):
        found = "lower"
    else:
        found = _kept_triangle(x)
    return OPPOSITE.get(str(found), None) if turned else found


def is_diagonal(x: Any) -> bool:
    """Tell whether ``x`` is known to have zeros beside its diagonals, as ``alloc_diag`` makes it.
    """
    made = computed_by(x, AllocDiagonal)
    if made is not None:
        return bool(made.op.offset == 0)
    node = computed_by(x, IncSubtensor)
    if node is None or not node.op.set or node.op.pattern[-2:] != (ARRAY, ARRAY):
        return False
    blank = computed_by(node.inputs[0], Alloc)
    if blank is None or number(blank.inputs[0]) != 0 or node.op.pattern.count(ARRAY) != 2:
        return False
    return node.inputs[-1] is node.inputs[-2]


def _kept_triangle(x: Any) -> str | None:
    """Return the triangle that ``tril`` or ``triu`` keeps."""
    choice = elementwise(x, "switch")
    if choice is None or number(choice.inputs[2]) != 0:
        return None
    condition = elementwise(choice.inputs[0], "le", "lt", "ge", "gt")
    if condition is None or choice.inputs[1].type.shape != x.type.shape:
        return None
    k, gaps = number(condition.inputs[1]), elementwise(condition.inputs[0], "sub")
    below = condition.op.scalar.name in ("le", "lt")
    if k is None or gaps is None or (k > 0 if below else k < 0):
        return None
    plus, minus = (_counted_axis(v) for v in gaps.inputs)
    if {plus, minus} != {-1, -2}:
        return None
    return "lower" if below == (plus == -1) else "upper"


def _counted_axis(x: Any) -> int | None:
    """Return the axis, counted from the end, along which ``x`` is 0, 1, 2 ..., if all others have
    length 1.
    """
    node = computed_by(x, DimShuffle)
    if node is None or len(node.op.order) - node.op.order.count("x") != 1:
        return None
    numbers = computed_by(node.inputs[0], Arange)
    if numbers is None or [number(v) for v in numbers.inputs[:2]] != [0, 1]:
        return None
    return int(node.op.order.index(0)) - len(node.op.order)


def is_square(x: Any, shapes: Shapes) -> bool:
    """Tell whether the matrices ``x`` are known to be square."""
    inner, _ = untransposed(x)
    while (y := argument(inner, "conj")) is not None:
        inner, _ = untransposed(y)
    if inner.owner is not None and isinstance(inner.owner.op, MatrixInverse | Cholesky):
        return True
    return shapes.same(x, x.ndim - 2, x, x.ndim - 1)


def matrix_factors(x: Any) -> list[Any]:
    """Return the matrices of which ``x`` is the product, from left to right."""
    found: list[Any] = []
    pending = [x]
    while pending:
        v = pending.pop()
        node = v.owner
        is_product = node is not None and type(node.op) in (Dot, BatchedDot)
        if is_product and len(found) + len(pending) + 2 <= LONGEST:
            y, z = node.inputs
            if y.ndim == z.ndim >= 2 and y.dtype == z.dtype == x.dtype:
                pending += [z, y]
                continue
        found.append(v)
    return found


# -- logarithms of determinants


def log_determinant(x: Any, shapes: Shapes) -> tuple[Any, Any]:
    """Return the sign of det(x) and log|det(x)|; the sign is None if it is known to be 1."""
    x, _ = untransposed(x)
    factors = matrix_factors(x)
    if len(factors) == 1:
        return _log_determinant_of_one(x, x)
    lengths = [shapes.of(f)[-2:] for f in factors]
    if any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in lengths):
        whole, scale = _scaled_product(factors)
        sign, logabs = StableSLogDet()(whole)
        return sign, logabs + scale
    checked = [factors[0]]
    for left, right in zip(factors, factors[1:], strict=False):
        pairs = [(a, a) for a in range(x.ndim - 2)] + [(x.ndim - 1, x.ndim - 2)]
        known = all(shapes.same(left, i, right, j) for i, j in pairs)
        checked.append(right if known else same_lengths("dot", checked[-1], right, pairs))
    unknown = [f for f in factors if not is_square(f, shapes)]
    more = []
    if len(unknown) > 1:
        # If all but one are square, so is the last, or there is no determinant.
        *checked, scale = _if_square(unknown[1:], checked)
        factors, more = checked, [(scale, 1.0)]
    parts = [_log_determinant_of_one(f, c) for f, c in zip(factors, checked, strict=True)]
    signs = [sign for sign, _ in parts if sign is not None]
    logarithms = [(logabs, 1.0) for _, logabs in parts]
    return reduce(mul, signs) if signs else None, sum_of(0, logarithms + more, parts[0][1])


def _if_square(unknown: list[Any], factors: list[Any]) -> list[Any]:
    """Return the factors and 0 if ``unknown`` are square; else their scaled product, 1 by 1
    matrices, and the logarithm of the scale.

    The choice is between matrices, not between determinants: so the derivatives exist on either
    side.
    """
    whole, scale = _scaled_product(factors)
    ones = [alloc(np.ones((), whole.dtype), *shape_tuple(whole)[:-2], 1, 1) for _ in factors[1:]]
    square = reduce(and_, [eq(*shape_tuple(f)[-2:]) for f in unknown])
    chosen: list[Any] = ifelse(square, [*factors, scale.zeros_like()], [whole, *ones, scale])
    return chosen


def _scaled_product(factors: list[Any]) -> tuple[Any, Any]:
    """Return the product of the matrices, each divided by its magnitude, and the logarithm of the
    factor that the determinant lost.
    """
    scales = [Magnitude()(f) for f in factors]
    whole = product(*(f / s for f, s in zip(factors, scales, strict=True)))
    logarithm = reduce(add, [call("log", s) for s in scales])
    return whole, logarithm * cast(as_tensor_variable(shape_tuple(whole)[-1]), logarithm.dtype)


def _log_determinant_of_one(x: Any, value: Any) -> tuple[Any, Any]:
    """Return the same for the matrices ``value``, which are ``x``, possibly with a check."""
    inner, _ = untransposed(x)
    node = inner.owner
    if node is not None and isinstance(node.op, Cholesky) and dtypes.is_float(x.dtype):
        return None, LogProd((x.ndim - 2,))(diagonal_of(value))
    if node is not None and type(node.op) is MatrixInverse and value is x:
        sign, logabs = StableSLogDet()(Invertible()(node.inputs[0]))
        return (conj(sign) if dtypes.is_complex(sign.dtype) else sign), -logabs
    sign, logabs = StableSLogDet()(value)
    return sign, logabs


def _determinant(x: Any, shapes: Shapes) -> tuple[Any, Any] | None:
    """Return ``log_determinant`` for an ``x`` that is a determinant, else None."""
    inner, views = through_views(x)
    narrow = argument(inner, "cast") if inner.dtype in dtypes.NARROW else None
    node = computed_by(inner if narrow is None else narrow, Det)
    if node is None:
        return None
    sign, logabs = (
        None if v is None else rearranged(v if narrow is None else cast(v, x.dtype), views)
        for v in log_determinant(node.inputs[0], shapes)
    )
    return sign, logabs


def _antilogarithm(node: Apply) -> tuple[Product, Any]:
    """Return the product whose logarithm the node computes, and the variable whose modulus it is
    taken of, if any.
    """
    x = node.inputs[0]
    if node.op.scalar.name == "log":
        bare = argument(x, "abs")
        return as_product(x if bare is None else bare), bare
    p, q = as_product(x), as_product(node.inputs[1])
    sign = 1 if node.op.scalar.name == "log_mul" else -1
    factors = dict(p.factors)
    for factor, e in q.factors.items():
        factors[factor] = factors.get(factor, 0.0) + sign * e
    coefficient = p.coefficient * q.coefficient**sign if q.coefficient else 0.0
    return Product(coefficient, {f: e for f, e in factors.items() if e}), None


@rule(
    "log", "log_mul", "log_div", why="a determinant over- or underflows long before its logarithm"
)
def log_of_determinant(node: Apply, graph: Any) -> Any:
    """log(y det(x)^n) -> n log|det x| + log(y sign(det x)^n);   log|y det(x)^n| -> the same of |y|;
    log(det(x1 x2)) -> log|det x1| + log|det x2| + log(sign), where these are square
    """
    out, shapes = node.outputs[0], shapes_of(graph)
    p, bare = _antilogarithm(node)
    if p.coefficient == 0 or not math.isfinite(p.coefficient):
        return None
    terms: list[tuple[Any, float]] = []
    rest: dict[Any, float] = {}
    for factor, e in p.factors.items():
        found = _determinant(factor, shapes)
        if found is None:
            rest[factor] = e
            continue
        sign, logabs = found
        terms.append((logabs, e))
        if sign is not None and bare is None and e % 2:
            rest[sign] = math.copysign(1, e) if e % 2 == 1 else e
    if not terms:
        return None
    if not rest and (p.coefficient > 0 or bare is not None):
        result = sum_of(math.log(abs(p.coefficient)), terms, out)
    else:
        inner = product_of(Product(p.coefficient, rest))
        inner = np.asarray(inner, out.dtype) if isinstance(inner, float) else inner
        tail = call("log", inner if bare is None else call("abs", inner))
        result = sum_of(0, [*terms, (tail, 1.0)], out)
    return result if result.dtype == out.dtype else None


@rule("log", why="the product over- or underflows long before its logarithm does")
def log_of_absolute_product(node: Apply, graph: Any) -> Any:
    """log|prod(x)| -> log_prod(|x|)"""
    bare = argument(node.inputs[0], "abs")
    if bare is None:
        return None
    inner, views = through_views(bare)
    total = computed_by(inner, Reduce)
    if total is None or total.op.reduction.name != "prod" or total.op.acc_dtype:
        return None
    x = total.inputs[0]
    if not dtypes.is_float(x.dtype) or x.dtype != bare.dtype:
        return None
    return rearranged(LogProd(total.op.axes)(call("abs", x)), views)


# -- determinants


@rule(Det, why="a matrix and its transpose have one determinant")
def determinant_of_transpose(node: Apply, graph: Any) -> Any:
    """det(x^T) -> det(x)"""
    x, turned = untransposed(node.inputs[0])
    return Det()(x) if turned or x is not node.inputs[0] else None


@rule(Det, why="determinants multiply; x is still checked to have an inverse")
def determinant_of_inverse(node: Apply, graph: Any) -> Any:
    """det(x^-1) -> 1 / det(x)"""
    x = inverted(node.inputs[0])
    return None if x is None else reciprocal(Det()(Invertible()(x)))


@rule(Det, why="the product of the diagonal, where NaN of a Cholesky factor shows, too")
def determinant_of_triangle(node: Apply, graph: Any) -> Any:
    """det(cholesky(x)) -> product of its diagonal;   det(diag(v)) -> the same"""
    x = node.inputs[0]
    if computed_by(x, Cholesky) is None and not is_diagonal(x):
        return None
    if not is_square(x, shapes_of(graph)):
        x = same_lengths("det", x, x, [(x.ndim - 2, x.ndim - 1)])
    return prod_(diagonal_of(x), axis=-1)


# -- inverses


@rule(MatrixInverse, why="transposing and inverting commute; so equal inverses are found equal")
def inverse_of_transpose(node: Apply, graph: Any) -> Any:
    """inv(x^T) -> inv(x)^T"""
    x = transposed(node.inputs[0])
    return None if x is None else matrix_transpose(MatrixInverse()(x))


@rule(MatrixInverse, why="inverting twice gives the matrix; it is still checked to have an inverse")
def inverse_of_inverse(node: Apply, graph: Any) -> Any:
    """inv(inv(x)) -> x"""
    x = inverted(node.inputs[0])
    return None if x is None else Invertible()(x)


@rule(Dot, BatchedDot, why="solving loses fewer digits than inverting, and is faster")
def solve_instead_of_inverse(node: Apply, graph: Any) -> Any:
    """dot(inv(a), y) -> solve(a, y);   dot(x, inv(a)) -> solve(a^T, x^T)^T"""
    x, y = node.inputs
    a = inverted(x)
    if a is not None:
        result = StableSolve()(a, y)
    elif (a := inverted(y)) is not None:
        flat = x.ndim < y.ndim
        result = StableSolve()(matrix_transpose(a), x if flat else matrix_transpose(x))
        result = result if flat else matrix_transpose(result)
    else:
        return None
    return result if result.dtype == node.outputs[0].dtype else None


@rule(Dot, why="the solution is used with more digits than it has alone")
def inverse_form(node: Apply, graph: Any) -> Any:
    """dot(x, solve(a, y)) -> x^T a^-1 y, where the solution came from an inverse and has no other
    client; of vectors, or of a row and a column
    """
    (x, y), out = node.inputs, node.outputs[0]
    if out.type.shape not in ((), (1, 1)):
        return None
    form = _inverse_form(x, y, graph)
    if form is None or form.dtype != out.dtype:
        return None
    return form if out.ndim == 0 else form.dimshuffle("x", "x")


@rule(Reduce, why="the solution is used with more digits than it has alone")
def sum_with_solution(node: Apply, graph: Any) -> Any:
    """sum(x * solve(a, y)) -> x^T a^-1 y, under the same conditions"""
    terms, out = elementwise(node.inputs[0], "mul"), node.outputs[0]
    if terms is None or node.op.reduction.name != "sum" or node.op.acc_dtype or out.ndim:
        return None
    x, y = terms.inputs
    if x.type.broadcastable != y.type.broadcastable:
        return None
    form = _inverse_form(x, y, graph)
    return form if form is not None and form.dtype == out.dtype else None


def _inverse_form(x: Any, y: Any, graph: Any) -> Any:
    """Return the sum of products of ``x`` and ``y``, one of which is a solution without other
    clients, of one right-hand side (a row is one for each of its elements).
    """
    for v, other in ((y, x), (x, y)):
        inner, _ = untransposed(v)
        solution = computed_by(inner, StableSolve)
        if solution is None or any(len(graph.clients[u]) != 1 for u in {v, inner}):
            continue
        a, b = solution.inputs
        left, right = _as_vector(other), _as_vector(b)
        one = b.ndim == 1 or b.type.shape[1] == 1
        if a.ndim == 2 and one and left is not None and right is not None:
            return InverseForm()(left, a, right)
    return None


def _as_vector(x: Any) -> Any:
    """Return a vector, a row or a column as a vector; None for anything else."""
    if x.ndim == 1:
        return x
    if x.ndim != 2 or 1 not in x.type.shape:
        return None
    return x.dimshuffle(0 if x.type.shape[1] == 1 else 1)


# -- systems


@rule(Solve, StableSolve, why="no elimination is needed")
def solve_triangle(node: Apply, graph: Any) -> Any:
    """solve(cholesky(x), b) -> solve_triangular(cholesky(x), b);   also for tril, triu, diag, and
    the r of a QR decomposition
    """
    if node.op.A_structure != "general":
        return None
    triangle = triangle_of(node.inputs[0])
    if triangle is None:
        return None
    return Solve(f"{triangle}_triangular", on_error=node.op.on_error)(*node.inputs)


@rule(Solve, StableSolve, why="the product need not be computed, nor eliminated")
def solve_product_of_triangles(node: Apply, graph: Any) -> Any:
    """solve(dot(l, l^T), b) -> cho_solve(l, b), also for two other triangular matrices"""
    a, b = node.inputs
    factors, shapes = matrix_factors(a), shapes_of(graph)
    if node.op.A_structure != "general" or len(factors) != 2:
        return None
    left, right = factors
    triangles = [triangle_of(f) for f in factors]
    fits = [(axis, axis) for axis in range(a.ndim - 2)] + [(a.ndim - 1, a.ndim - 2)]
    if None in triangles or not all(shapes.same(left, i, right, j) for i, j in fits):
        return None
    if not (is_square(left, shapes) and is_square(right, shapes)):
        return None
    first, second = (
        Solve(f"{triangle}_triangular", on_error=node.op.on_error) for triangle in triangles
    )
    return second(right, first(left, b))


@rule(Solve, StableSolve, why="the inverse need not be computed; its existence is still checked")
def solve_with_inverse(node: Apply, graph: Any) -> Any:
    """solve(inv(a), b) -> dot(a, b)"""
    a, b = inverted(node.inputs[0]), node.inputs[1]
    if a is None or node.op.A_structure != "general" or node.op.on_error != "raise":
        return None
    if a.ndim == 2:
        return Dot()(Invertible()(a), b)
    return BatchedDot()(Invertible()(a), b) if a.ndim == b.ndim == 3 else None


LINALG_RULES = RuleSet(
    [
        log_of_determinant, log_of_absolute_product, determinant_of_transpose,
        determinant_of_inverse, determinant_of_triangle, inverse_of_transpose, inverse_of_inverse,
        solve_instead_of_inverse, inverse_form, sum_with_solution, solve_triangle,
        solve_product_of_triangles, solve_with_inverse,
    ],
    ["linalg"],
)  # fmt: skip
