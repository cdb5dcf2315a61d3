"""Cheaper functions with the same values."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast, mul, neg, reciprocal, sqr, sqrt
from symcomp.ops.indexing.diagonal import AllocDiagonal
from symcomp.ops.indexing.diagonals import diagonal_matrix
from symcomp.ops.reductions.reduce import Reduce
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.views import is_power_of_two, number


def _times_root(x: Any) -> Any:
    """Return x sqrt(x), and infinity for -infinity, too, as the power is."""
    infinity = np.asarray(np.inf, x.dtype)
    return switch(eq(x, -infinity), infinity, mul(x, sqrt(x)))


# Within 2 ulp of x ** e, at the ends of the range and for 0, infinity and NaN, too.
POWERS = {
    1.5: _times_root,
    3.0: lambda x: mul(x, sqr(x)),
    4.0: lambda x: sqr(sqr(x)),
    -2.0: lambda x: sqr(reciprocal(x)),
}


@rule(AllocDiagonal, why="zeros and a write of every (n + 1)-th element are done natively")
def diagonal_matrix_as_write(node: Apply, graph: Any) -> Any:
    """alloc_diag(v) -> zeros with v on the diagonal"""
    return diagonal_matrix(node.inputs[0], node.op.offset)


@rule("pow", why="a few products cost less than a power")
def small_power(node: Apply, graph: Any) -> Any:
    """x ** 3 -> x sqr(x);  x ** 4 -> sqr(sqr(x));  x ** -2 -> sqr(1 / x);  x ** 1.5 -> x sqrt(x)"""
    x, y = node.inputs
    e, out = number(y), node.outputs[0]
    power = POWERS.get(e) if e is not None else None
    if power is None or e is None or x.type.broadcastable != out.type.broadcastable:
        return None
    if x.dtype != out.dtype or x.dtype == "bool" or dtypes.is_complex(x.dtype):
        return None
    return power(x) if dtypes.is_float(x.dtype) or e in (3.0, 4.0) else None


@rule("true_div", why="the product with the inverse of a power of two is the same and cheaper")
def division_by_power_of_two(node: Apply, graph: Any) -> Any:
    """x / c -> x * (1 / c), for powers of two whose inverse is one, too"""
    x, y = node.inputs
    c = number(y)
    if c is None or not is_power_of_two(c) or x.dtype != node.outputs[0].dtype:
        return None
    if not dtypes.is_float(x.dtype) or x.type.broadcastable != node.outputs[0].type.broadcastable:
        return None
    limits = np.finfo(x.dtype)
    if not limits.tiny <= abs(1 / c) <= limits.max:
        return None
    return mul(x, np.asarray(1 / c, x.dtype))


@rule(Reduce, why="one sign for all, taken afterwards, is exact")
def sum_of_negated(node: Apply, graph: Any) -> Any:
    """sum(-x) -> -sum(x)"""
    inner = elementwise(node.inputs[0], "neg")
    if inner is None or node.op.reduction.name != "sum":
        return None
    if dtypes.is_discrete(inner.inputs[0].dtype):
        return None
    return neg(node.op(*inner.inputs))


OF_SCIPY = (
    "betainc", "betaincinv", "erfcinv", "erfinv", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "hyp2f1", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "kv", "kve",
    "ndtri", "ndtri_exp", "owens_t",
)  # fmt: skip


@rule(*OF_SCIPY, why="SciPy has loops for float32 and float64; other dtypes would run in Python")
def function_of_scipy(node: Apply, graph: Any) -> Any:
    """f(integers) -> f(floats);  f(float16) -> cast(f(float32))"""
    out = node.outputs[0].dtype
    work = "float32" if out == "float16" else out
    if all(x.dtype == work for x in node.inputs):
        return None
    return cast(node.op(*(cast(x, work) for x in node.inputs)), out)


SPECIALIZE = RuleSet(
    [
        diagonal_matrix_as_write, small_power, division_by_power_of_two, sum_of_negated,
        function_of_scipy,
    ],
    ["specialize"],
)  # fmt: skip
