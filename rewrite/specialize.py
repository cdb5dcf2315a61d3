"""Cheaper functions with the same values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast, mul, sqrt
from symcomp.ops.indexing.diagonal import AllocDiagonal
from symcomp.ops.indexing.diagonals import diagonal_matrix
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.canonicalize.structure import sum_of_neg
from symcomp.rewrite.pattern import Match, constants, f, operation, pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import is_natural, shapes_of
from symcomp.rewrite.views import is_power_of_two, number

(x,) = variables("x", where=lambda v: not dtypes.is_complex(v.dtype) and v.dtype != "bool")
(real,) = variables("x", dtype="float")
(any_value,) = variables("x")
(c,) = constants("c", where=is_power_of_two)


def _times_root(match: Match) -> Any:
    """x sqrt(x), and infinity for -infinity, too, as the power is"""
    infinity = np.asarray(np.inf, match.x.dtype)
    return switch(eq(match.x, -infinity), infinity, mul(match.x, sqrt(match.x)))


def _zeros_with_diagonal(match: Match) -> Any:
    """zeros with x on the diagonal"""
    return diagonal_matrix(match.x, match.node.op.offset)


diagonal_matrix_as_write = pattern_rule(
    "diagonal_matrix_as_write", operation(AllocDiagonal, any_value), _zeros_with_diagonal,
    why="zeros and a write of every (n + 1)-th element are done natively",
)  # fmt: skip


# Within 2 ulp of x ** e, at the ends of the range and for 0, infinity and NaN, too.
small_power = pattern_rule(
    "small_power",
    [
        (x**3, x * f.sqr(x)), (x**4, f.sqr(f.sqr(x))), (real**-2, f.sqr(f.reciprocal(real))),
        (real**1.5, _times_root),
    ],
    where=lambda m: m.x.dtype == m.node.outputs[0].dtype,
    why="a few products cost less than a power",
)  # fmt: skip


def _inverse_is_exact(match: Match) -> bool:
    """Tell whether the inverse of the divisor is a number of the dtype, without being subnormal."""
    limits, inverse = dtypes.limits(match.x.dtype), abs(1 / match.number("c"))
    return bool(limits.tiny <= inverse <= limits.max)


def _times_inverse(match: Match) -> Any:
    """x * (1 / c)"""
    return mul(match.x, np.asarray(1 / match.number("c"), match.x.dtype))


division_by_power_of_two = pattern_rule(
    "division_by_power_of_two", real / c, _times_inverse, where=_inverse_is_exact,
    why="the product with the inverse of a power of two is the same and cheaper",
)  # fmt: skip


@rule(Reduce, why="the sum of one number many times is a product with a length")
def sum_of_fill(node: Apply, graph: Any) -> Any:
    """sum(second(x, c)) -> c n and sum(alloc(c, n)) -> c n, of floats over all axes"""
    (x,), out = node.inputs, node.outputs[0]
    if node.op.reduction.name != "sum" or out.ndim or out.dtype not in ("float32", "float64"):
        return None
    value = _number_that_fills(x, graph)
    if value is None or not math.isfinite(value) or x.dtype != out.dtype:
        return None
    lengths = [_length(x, axis, graph) for axis in range(x.ndim)]
    known = math.prod(n for n in lengths if isinstance(n, int))
    whole = value.is_integer() and abs(value) * known < 2**31
    factor = int(value) * known if whole else known
    others = [n for n in lengths if not isinstance(n, int)]
    if factor != 1 or not others:
        others.insert(0, np.asarray(factor, "int64"))
    total = cast(others[0] if len(others) == 1 else mul(*others), out.dtype)
    return total if whole else mul(total, np.asarray(value, out.dtype))


def _length(x: Any, axis: int, graph: FunctionGraph) -> Any:
    """Return the length of an axis, an int or that of a variable as early as can be."""
    shapes = shapes_of(graph)
    if isinstance(known := shapes.of(x)[axis], int):
        return known
    if isinstance(x.owner.op, Alloc):
        return known
    while x.owner is not None and type(x.owner.op) is Elemwise:
        same = (y for y in x.owner.inputs if shapes.same(x, axis, y, axis))
        if (y := next(same, None)) is None:
            break
        x = y
    return ShapeI(axis)(x)


def _number_that_fills(x: Any, graph: FunctionGraph) -> float | None:
    """Return the number that all elements of ``x`` are; None where there is none, or where nothing
    else would compare the lengths of the inputs of its model.
    """
    alloc = computed_by(x, Alloc)
    if alloc is not None:
        lengths = shapes_of(graph).of(x)
        counts = all(isinstance(n, int) or is_natural(n) for n in lengths)
        return number(alloc.inputs[0]) if counts else None
    filled = elementwise(x, "second")
    if filled is None:
        return None
    model = filled.inputs[0]
    compared = model.owner is None or any(
        client == "output" or elementwise(client.outputs[0], "second") is None
        for client, _ in graph.clients[model]
    )
    return number(filled.inputs[1]) if compared else None


OF_SCIPY = (
    "betainc", "betaincinv", "erfcinv", "erfinv", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "hyp2f1", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "kv", "kve",
    "ndtri", "ndtri_exp", "owens_t",
)  # fmt: skip


@rule(*OF_SCIPY, why="SciPy has loops for float32 and float64; other dtypes would run in Python")
def function_of_scipy(node: Apply, graph: Any) -> Any:
    """f(integers) -> f(floats);  f(float16) -> cast(f(float32))"""
    out = node.outputs[0].dtype
    work = dtypes.working(out)
    if all(x.dtype == work for x in node.inputs):
        return None
    return cast(node.op(*(cast(x, work) for x in node.inputs)), out)


SPECIALIZE = RuleSet(
    [
        diagonal_matrix_as_write, small_power, division_by_power_of_two, sum_of_neg, sum_of_fill,
        function_of_scipy,
    ],
    ["specialize"],
)  # fmt: skip
