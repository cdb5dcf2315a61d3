"""Cheaper matrix products, by the algebra of matrices.

These rules keep NaN and infinity of the arguments, also where a length is 0, and errors for lengths
that do not fit. Sums are rounded in another order; so overflow of partial results, with finite
arguments, may differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.tensor import TensorConstant
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_logic import neq, switch
from symcomp.ops.elementwise.scalar_math import maximum, minimum, mul
from symcomp.ops.indexing.diagonal import Diagonal
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, NOTHING
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.blas_routines import DTYPES
from symcomp.ops.linalg.contraction import MatrixChain, SumOfProducts, best_brackets, bracketed
from symcomp.ops.linalg.products import Dot, same_lengths
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.blas import as_scalar, as_scaled, as_vector, upright, used_once
from symcomp.rewrite.checks import with_lengths
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.rewrite.views import is_point, number, scaled

# Longer chains are divided.
LONGEST_CHAIN = 12


# -- sums of products


def _plain_sum(node: Apply) -> bool:
    """Tell whether the node sums in the dtype of its input, one that BLAS has."""
    x, op, dtype = node.inputs[0], node.op, node.outputs[0].dtype
    plain = op.reduction.name == "sum" and x.dtype == dtype and dtype in DTYPES
    return plain and op.acc_dtype in (None, dtype)


def _lies_there(x: Any) -> bool:
    """Tell whether ``x`` is in memory anyway: no elementwise function computes it, which fusion
    could join with the sum.
    """
    return computed_by(x, Elemwise) is None


@rule(Reduce, why="the products are summed as they are made")
def sum_of_products(node: Apply, graph: Any) -> Any:
    """sum(x * y) -> sum_of_products(x, y);   sum(sqr(x)) -> sum_of_products(x, x);
    sum(a * row, axis=1) -> dot(a, row);   sum(a * column, axis=0) -> dot(column, a)
    """
    product, axes = node.inputs[0], node.op.axes
    inner = elementwise(product, "mul", "sqr")
    if inner is None or not axes or not _plain_sum(node) or not used_once(product, graph):
        return None
    x, y = inner.inputs[0], inner.inputs[-1]
    if x.dtype != product.dtype or y.dtype != product.dtype:
        return None
    if x.type.broadcastable == y.type.broadcastable:
        there = _lies_there(x) and (x is y or _lies_there(y))
        return SumOfProducts(axes)(x, y) if there else None
    if product.ndim != 2 or len(axes) != 1 or True in product.type.broadcastable:
        return None
    for a, v in ((x, y), (y, x)):
        stretched = v.type.broadcastable == tuple(i != axes[0] for i in range(2))
        if stretched and True not in a.type.broadcastable and _lies_there(a):
            vector = as_vector(v, axes[0])
            return Dot()(a, vector) if axes == (1,) else Dot()(vector, a)
    return None


@rule(Reduce, why="sums of sums are sums over more axes")
def sum_of_sums_of_products(node: Apply, graph: Any) -> Any:
    """sum(sum_of_products(x, y)) -> sum_of_products over more axes"""
    inner = computed_by(node.inputs[0], SumOfProducts)
    if inner is None or not _plain_sum(node) or not used_once(node.inputs[0], graph):
        return None
    left = [a for a in range(inner.inputs[0].ndim) if a not in inner.op.axes]
    axes = (*inner.op.axes, *(left[a] for a in node.op.axes))
    return SumOfProducts(tuple(sorted(axes)))(*inner.inputs)


@rule(Diagonal, why="only the elements on the diagonal are computed")
def diagonal_of_dot(node: Apply, graph: Any) -> Any:
    """diagonal(dot(a, b)) -> sum(a * b.T, axis=1), over the rows and columns that the diagonal has
    """
    factors = _small_product(node.inputs[0], graph)
    if factors is None:
        return None
    a, b = factors
    down, right = max(-node.op.offset, 0), max(node.op.offset, 0)
    n = node.outputs[0].type.shape[0]
    if n is None:
        n = maximum(minimum(a.shape[0] - down, b.shape[1] - right), 0)
    rows, columns = a[down : down + n], b.T[right : right + n]
    return SumOfProducts((1,))(rows, columns)


def _small_product(product: Any, graph: Any) -> Any:
    """Return the factors of a matrix product without other clients; None for anything else."""
    dot = computed_by(product, Dot)
    if dot is None or not used_once(product, graph):
        return None
    (a, b), dtype = dot.inputs, product.dtype
    if a.ndim != 2 or b.ndim != 2 or dtype not in DTYPES or not a.dtype == b.dtype == dtype:
        return None
    return a, b


@rule(Subtensor, why="only the elements at equal positions are computed")
def places_of_dot(node: Apply, graph: Any) -> Any:
    """dot(a, b)[i, j] -> sum(a[i] * b.T[j], axis=1), where i and j count up"""
    factors = _small_product(node.inputs[0], graph)
    entries = tuple(e for e in node.op.pattern if e != NOTHING)
    if factors is None or entries != (ARRAY, ARRAY):
        return None
    a, b = factors
    parts = [_rows(x, index) for x, index in zip((a, b.T), node.inputs[1:], strict=True)]
    return None if any(x is None for x in parts) else SumOfProducts((1,))(*parts)


def _rows(x: Any, index: Any) -> Any:
    """Return ``x[index]`` as a view, where ``index`` counts up from a number; None if it does not.
    """
    found = _counted(index) if index.ndim == 1 else None
    if found is None:
        return None
    start, n = found
    view = getitem(x, slice(start, n + start) if start else slice(None, n))
    # An index longer than the rows must still raise.
    return same_lengths("diagonal", index, view, [(0, 0)])


def _counted(index: Any) -> tuple[int, Any] | None:
    """Return (start, n) if the vector holds start, start + 1 .. start + n - 1; start is not
    negative.
    """
    if isinstance(index, TensorConstant):
        data, n = index.data, len(index.data)
        counts = n and data[0] >= 0 and np.array_equal(data, np.arange(data[0], data[0] + n))
        return (int(data[0]), n) if counts else None
    total, start = elementwise(index, "add"), 0.0
    if total is not None:
        values = [number(v) for v in total.inputs]
        if values.count(None) != 1:
            return None
        start = sum(v for v in values if v is not None)
        index = total.inputs[values.index(None)]
    count = computed_by(index, Arange)
    first = number(count.inputs[0]) if count is not None else None
    if count is None or first is None or number(count.inputs[1]) != 1 or first + start < 0:
        return None
    return int(first + start), count.inputs[2]


@rule(Reduce, why="sums may be computed before the product; an empty sum is 0")
def sum_of_dot(node: Apply, graph: Any) -> Any:
    """sum(dot(a, b)) -> dot(sum(a, 0), sum(b, 1));   over axis 0: dot(sum(a, 0), b);   over axis 1:
    dot(a, sum(b, 1))
    """
    product, axes = node.inputs[0], node.op.axes
    dot = computed_by(product, Dot)
    if dot is None or not _plain_sum(node) or not _read_once(product, graph):
        return None
    a, b = dot.inputs
    if not axes or not a.dtype == b.dtype == product.dtype:
        return None
    lengths = [shapes_of(graph).of(product)[i] for i in axes]
    if 0 in [n for n in lengths if isinstance(n, int)]:
        return None
    first, second = a.ndim == 2 and 0 in axes, b.ndim == 2 and (product.ndim - 1) in axes
    result = Dot()(sum_(a, axis=0) if first else a, sum_(b, axis=1) if second else b)
    unknown = [n for n in lengths if not isinstance(n, int)]
    if not unknown:
        return result
    some = neq(mul(*unknown) if len(unknown) > 1 else unknown[0], 0)
    return switch(some, result, np.zeros((), result.dtype))


def _read_once(x: Any, graph: Any) -> bool:
    """Tell whether only one client reads the values of ``x``: others only use its shape."""
    models = [
        elementwise(node.outputs[0], "second")
        for node, i in graph.clients[x]
        if node != "output" and i == 0
    ]
    return len(graph.clients[x]) - sum(m is not None for m in models) == 1


# -- order


@rule(Dot, why="products of matrices are associative, and some orders are much cheaper")
def chain_order(node: Apply, graph: Any) -> Any:
    """dot(dot(a, b), v) -> dot(a, dot(b, v)), and the like: the cheapest order of the lengths that
    are known, else a chain that finds it at each call
    """
    factors, brackets = _chain(node, graph)
    if len(factors) < 3:
        return None
    shapes = shapes_of(graph)
    dims = [n for v in factors for n in shapes.of(v)]
    first = shapes.of(factors[0])[0] if factors[0].ndim == 2 else 1
    lengths = [first, *(shapes.of(v)[0] for v in factors[1:])]
    lengths.append(shapes.of(factors[-1])[1] if factors[-1].ndim == 2 else 1)
    if not all(isinstance(n, int) for n in dims):
        written = _ends_first(factors, brackets)
        return None if written else MatrixChain(brackets)(*factors)
    best = best_brackets(tuple(lengths))
    if 0 in lengths or _cost(best, lengths) >= _cost(brackets, lengths):
        return None
    return bracketed(Dot(), best, factors)


def _chain(node: Apply, graph: Any, most: int = LONGEST_CHAIN) -> tuple[list[Any], Any]:
    """Return (factors, brackets) of the product, with those inner products that have no other
    client, up to ``most`` factors.
    """
    left, brackets = _operand(node, 0, graph, most - 1)
    right, shifted = _operand(node, 1, graph, most - len(left))
    return left + right, (brackets, _shifted(shifted, len(left)))


def _operand(node: Apply, place: int, graph: Any, most: int) -> tuple[list[Any], Any]:
    """Return (factors, brackets) of an operand; itself if it is no product, or one whose vector is
    not at the end.
    """
    x = node.inputs[place]
    inner = computed_by(x, Dot) or computed_by(x, MatrixChain)
    if inner is None or most < len(inner.inputs) or not used_once(x, graph):
        return [x], 0
    if any(v.dtype != node.outputs[0].dtype for v in (*inner.inputs, *node.inputs)):
        return [x], 0
    if inner.inputs[-1 if place == 0 else 0].ndim != 2:
        return [x], 0
    if isinstance(inner.op, MatrixChain):
        return list(inner.inputs), inner.op.brackets
    return _chain(inner, graph, most)


def _shifted(brackets: Any, by: int) -> Any:
    if isinstance(brackets, int):
        return brackets + by
    return tuple(_shifted(b, by) for b in brackets)


def _ends_first(factors: list[Any], brackets: Any) -> bool:
    """Tell whether a vector at an end is multiplied with its neighbours, one after the other."""
    for vector, near in ((factors[-1], 0), (factors[0], 1)):
        b = brackets
        while not isinstance(b, int) and isinstance(b[near], int):
            b = b[1 - near]
        if vector.ndim == 1 and isinstance(b, int):
            return True
    return False


def _cost(brackets: Any, lengths: list[int]) -> int:
    """Return the number of multiplications."""
    total = 0
    pending = [brackets]
    while pending:
        b = pending.pop()
        if not isinstance(b, int):
            low, split, high = _end(b, 0), _end(b[1], 0), _end(b, 1) + 1
            total += lengths[low] * lengths[split] * lengths[high]
            pending += b
    return total


def _end(brackets: Any, side: int) -> int:
    while not isinstance(brackets, int):
        brackets = brackets[-side]
    return brackets


@rule(Dot, why="the transpose of a product is the product of the transposes in reverse order")
def dot_of_transposed(node: Apply, graph: Any) -> Any:
    """dot(a.T, b.T) -> dot(b, a).T"""
    (a, first), (b, second) = (upright(x, False) for x in node.inputs)
    if not first or not second:
        return None
    return DimShuffle(2, (1, 0))(Dot()(b, a))


# -- factors


@rule(Dot, why="a scalar may multiply the sums instead of the terms, and BLAS does it")
def scaled_operands(node: Apply, graph: Any) -> Any:
    """dot(2 * a, b) -> 2 * dot(a, b), for matrices and for products of two vectors; a scalar that
    is no constant only where the inner length is known not to be 0
    """
    dtype = node.outputs[0].dtype
    vectors = all(x.ndim == 1 for x in node.inputs)
    for place, x in enumerate(node.inputs):
        if dtype not in DTYPES or x.dtype != dtype or (x.ndim == 1 and not vectors):
            continue
        found = as_scaled(x, graph)
        only_number = not found.above and not found.below
        if found.base is x or not (only_number or _has_inner(node, graph)):
            continue
        operands = [found.base if i == place else y for i, y in enumerate(node.inputs)]
        if only_number and isinstance(found.number, float):
            return scaled(found.number, Dot()(*operands))
        factor = found.factor(dtype)
        return None if factor is None else mul(factor, Dot()(*operands))
    return None


def _has_inner(node: Apply, graph: Any) -> bool:
    """Tell whether the product is known to sum over at least one element."""
    n = shapes_of(graph).of(node.inputs[0])[-1]
    return isinstance(n, int) and n > 0


@rule(Dot, why="a product with equal elements is a multiple of a sum; an empty sum is 0")
def dot_of_filled(node: Apply, graph: Any) -> Any:
    """dot(a, alloc(c, k, m)) -> alloc(c * sum(a, axis=1), n, m); likewise from the left, for
    vectors and for what ``second`` filled
    """
    dtype = node.outputs[0].dtype
    for place, other in ((1, 0), (0, 1)):
        filled, x = node.inputs[place], node.inputs[other]
        value, model = _filled_with(filled)
        if value is None or dtype not in DTYPES or not x.dtype == filled.dtype == dtype:
            continue
        inner, met = (x.ndim - 1, 0) if other == 0 else (0, filled.ndim - 1)
        lengths = shapes_of(graph).of(filled)
        x = with_lengths("dot", x, {inner: lengths[met]}, graph)
        if x is not None and model is not None:
            x = _with_checks_of(model, x, graph)
        if x is None:
            continue
        total = _times(value, sum_(x, axis=inner), lengths[met])
        if total is None or filled.ndim == 1:
            return total
        order = (*range(total.ndim), "x") if other == 0 else ("x", *range(total.ndim))
        shape = (as_tensor_variable(n) for n in shapes_of(graph).of(node.outputs[0]))
        return Alloc()(DimShuffle(total.ndim, order)(total), *shape)
    return None


def _filled_with(x: Any) -> tuple[Any, Any]:
    """Return the value of all elements of ``x``, and the variables it takes its shape from."""
    alloc, second = computed_by(x, Alloc), elementwise(x, "second")
    if alloc is not None:
        value, model = alloc.inputs[0], None
    elif second is not None:
        model, value = second.inputs
    else:
        return None, None
    return (value, model) if is_point(value) else (None, None)


def _times(value: Any, total: Any, count: Any) -> Any:
    """Return ``value`` times a sum of ``count`` terms, which is 0 for none; None if that is known.
    """
    c = number(value)
    if c is not None and np.isfinite(c):
        return scaled(c, total)
    result = mul(as_scalar(value, total.dtype), total)
    if isinstance(count, int):
        return result if count else None
    return switch(neq(count, 0), result, np.zeros((), total.dtype))


def _with_checks_of(model: Any, x: Any, graph: Any) -> Any:
    """Return ``x`` with the length checks that would be lost with ``model``; None if they cannot be
    kept.
    """
    dot, (base, turned) = computed_by(model, Dot), upright(x, False)
    if model.owner is None or len(graph.clients[model]) > 1:
        return x
    if dot is None or not any(base is v for v in dot.inputs):
        return None
    a, b = dot.inputs
    last = a.ndim - 1
    base = (
        same_lengths("dot", a, b, [(last, 0)])
        if base is b
        else same_lengths("dot", b, a, [(0, last)])
    )
    return DimShuffle(2, (1, 0))(base) if turned else base


MATRIX_PRODUCTS = RuleSet(
    [
        sum_of_products, sum_of_sums_of_products, diagonal_of_dot, places_of_dot, sum_of_dot,
        chain_order, dot_of_transposed, scaled_operands, dot_of_filled,
    ],
    ["matrix_products"],
)  # fmt: skip


# -- identities


@rule(Dot, why="1 x + 0 y is x unless y is NaN or infinite", tags=("nan_unsafe", "unsafe"))
def dot_with_identity(node: Apply, graph: Any) -> Any:
    """dot(a, eye(n)) -> a;   dot(eye(n), a) -> a"""
    shapes = shapes_of(graph)
    for place, other in ((1, 0), (0, 1)):
        eye, x = node.inputs[place], node.inputs[other]
        inner = x.ndim - 1 if other == 0 else 0
        square = eye.ndim == 2 and shapes.same(eye, 0, eye, 1) and shapes.same(eye, 0, x, inner)
        if square and _is_identity(eye) and x.dtype == node.outputs[0].dtype:
            return x
    return None


def _is_identity(x: Any) -> bool:
    """Tell whether ``x`` is a constant identity matrix, or the graph that ``eye`` makes of one."""
    if isinstance(x, TensorConstant):
        return bool(np.array_equal(x.data, np.eye(*x.data.shape)))
    inner = elementwise(x, "cast")
    equal = elementwise(inner.inputs[0] if inner is not None else x, "eq")
    gap = elementwise(equal.inputs[0], "sub") if equal is not None else None
    if equal is None or gap is None or number(equal.inputs[1]) != 0:
        return False
    counts = []
    for v, order in zip(gap.inputs, (("x", 0), (0, "x")), strict=True):
        axes = computed_by(v, DimShuffle)
        if axes is None or axes.op.order != order:
            return False
        counts.append(computed_by(axes.inputs[0], Arange))
    return all(
        n is not None and number(n.inputs[0]) == 0 and number(n.inputs[1]) == 1 for n in counts
    )


NAN_UNSAFE_MATRIX_PRODUCTS = RuleSet([dot_with_identity])
