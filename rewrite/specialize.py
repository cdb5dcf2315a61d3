"""Cheaper functions with the same values."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast, mul, sqrt
from symcomp.ops.indexing.diagonal import AllocDiagonal
from symcomp.ops.indexing.diagonals import diagonal_matrix
from symcomp.rewrite.canonicalize.structure import sum_of_neg
from symcomp.rewrite.pattern import Match, constants, f, operation, pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.rewrite.views import is_power_of_two

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
    limits, inverse = np.finfo(match.x.dtype), abs(1 / match.number("c"))
    return bool(limits.tiny <= inverse <= limits.max)


def _times_inverse(match: Match) -> Any:
    """x * (1 / c)"""
    return mul(match.x, np.asarray(1 / match.number("c"), match.x.dtype))


division_by_power_of_two = pattern_rule(
    "division_by_power_of_two", real / c, _times_inverse, where=_inverse_is_exact,
    why="the product with the inverse of a power of two is the same and cheaper",
)  # fmt: skip


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
        diagonal_matrix_as_write, small_power, division_by_power_of_two, sum_of_neg,
        function_of_scipy,
    ],
    ["specialize"],
)  # fmt: skip
