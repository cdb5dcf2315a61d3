"""Determinants of real matrices and stacks of them, on devices that have cuSOLVER."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.gpu.formulas import NestSequence, nests_for, plan_copy, plan_formula
from symcomp.gpu.libraries.cusolver import Cusolver, factor_general
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.stacks import copied, is_decomposed, restored
from symcomp.gpu.lowerings.views import shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.linalg.determinant import Det, SLogDet
from symcomp.ops.linalg.matrices import require_square
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

# Numbers of 0.7 to 1.4 whose products are far from the largest and the smallest doubles.
MOST_FACTORS = 1024


@cache
def _signed_nests(dtype: str) -> NestSequence:
    """Return the nests of pivots, negative for each exchange of rows, in double."""
    steps = (
        Step(ROWS["cast"]("float64"), (0,), "float64"), Step(ROWS["neg"](), (3,), "float64"),
        Step(ROWS["neq"](), (1, 2), "bool"), Step(ROWS["switch"](), (5, 4, 3), "float64"),
    )  # fmt: skip
    formula = Formula((dtype, "int32", "int32"), (), steps, (Result(6),))
    every, row = (False, False), (True, False)
    made = nests_for(formula, (every, every, row))
    assert made is not None
    return made


@cache
def _logarithms_nests(dtype: str) -> NestSequence:
    """Return the nests of the product of the signs, and the sum of the logarithms, of factors; 0
    and that of 0 for a matrix whose number is not 0.
    """
    product = Reduce(REDUCTIONS["prod"], (1,), "float64", "float64")
    total = Reduce(REDUCTIONS["sum"], (1,), "float64", "float64")
    zero, least = np.zeros(()), np.full((), -np.inf)
    literals = tuple(Literal.of(v) for v in (np.zeros((), "int32"), zero, least))
    to = ROWS["cast"](dtype)
    steps = (
        Step(ROWS["sgn"](), (0,), "float64"), Step(product, (5,), "float64"),
        Step(ROWS["abs"](), (0,), "float64"), Step(ROWS["log"](), (7,), "float64"),
        Step(total, (8,), "float64"), Step(ROWS["neq"](), (1, 2), "bool"),
        Step(ROWS["switch"](), (10, 3, 6), "float64"), Step(to, (11,), dtype),
        Step(ROWS["switch"](), (10, 4, 9), "float64"), Step(to, (13,), dtype),
    )  # fmt: skip
    formula = Formula(("float64", "int32"), literals, steps, (Result(12, (1,)), Result(14, (1,))))
    made = nests_for(formula, ((False, False), (False, True)))
    assert made is not None
    return made


@cache
def _scaled_nests() -> NestSequence:
    """Return the nests of the product of factors near 1, and the sum of the exponents of two that
    they were divided by.
    """
    double = "float64"
    product = Reduce(REDUCTIONS["prod"], (1,), double, double)
    total = Reduce(REDUCTIONS["sum"], (1,), double, double)
    literals = Literal.of(np.zeros(())), Literal.of(np.full((), 0.5))
    steps = (
        Step(ROWS["abs"](), (0,), double), Step(ROWS["log2"](), (3,), double),
        Step(ROWS["round_half_to_even"](), (4,), double), Step(ROWS["isfinite"](), (5,), "bool"),
        Step(ROWS["switch"](), (6, 5, 1), double),
        # Two factors, as the power of two may be none of the numbers there are.
        Step(ROWS["mul"](), (7, 2), double), Step(ROWS["trunc"](), (8,), double),
        Step(ROWS["sub"](), (9, 7), double), Step(ROWS["neg"](), (9,), double),
        Step(ROWS["exp2"](), (10,), double), Step(ROWS["exp2"](), (11,), double),
        Step(ROWS["mul"](), (0, 12), double), Step(ROWS["mul"](), (14, 13), double),
        Step(product, (15,), double), Step(total, (7,), double),
    )  # fmt: skip
    formula = Formula((double,), literals, steps, (Result(16, (1,)), Result(17, (1,))))
    made = nests_for(formula, ((False, False),))
    assert made is not None
    return made


@cache
def _joined_nests(dtype: str) -> NestSequence:
    """Return the nests of a product times two to the power of a sum and of another number; 0 for
    a matrix whose number is not 0.
    """
    double = "float64"
    total = Reduce(REDUCTIONS["sum"], (1,), double, double)
    literals = tuple(Literal.of(v) for v in (np.zeros((), "int32"), np.zeros(()), np.full((), 0.5)))
    steps = (
        Step(total, (2,), double), Step(ROWS["add"](), (7, 1), double),
        Step(ROWS["mul"](), (8, 6), double), Step(ROWS["trunc"](), (9,), double),
        Step(ROWS["sub"](), (8, 10), double), Step(ROWS["exp2"](), (10,), double),
        Step(ROWS["exp2"](), (11,), double), Step(ROWS["mul"](), (0, 12), double),
        Step(ROWS["mul"](), (14, 13), double),
        Step(ROWS["neq"](), (3, 4), "bool"), Step(ROWS["switch"](), (16, 5, 15), double),
        Step(ROWS["cast"](dtype), (17,), dtype),
    )  # fmt: skip
    formula = Formula((double, double, double, "int32"), literals, steps, (Result(18, (1,)),))
    of_each, of_rows = (False, True), (False, False)
    made = nests_for(formula, (of_each, of_each, of_rows, of_each))
    assert made is not None
    return made


def _factors(planner: Planner, x: Operand) -> tuple[Operand, Operand]:
    """Emit eliminations; return the numbers whose products are the determinants, (s, n), in
    double, and for each matrix a number that is 0 unless it is singular.
    """
    lu = copied(planner, x, by_columns=True)
    pivots, failed = factor_general(planner, lu)
    diagonals = lu.view(lu.shape[:2], (lu.strides[0], sum(lu.strides[1:])))
    places = planner.constant(np.arange(1, x.shape[-1] + 1, dtype="int32"))
    row = places.view((1, *places.shape), (0, *places.strides))
    (signed,) = plan_formula(planner, _signed_nests(x.dtype), [diagonals, pivots, row])
    return signed, failed


def _filled(planner: Planner, x: Operand, value: int) -> Operand:
    """Return the same number for each matrix of a stack."""
    number, stack = planner.constant(np.full((), value, x.dtype)), x.shape[:-2]
    return number.view(stack, [0] * len(stack))


def _column(x: Operand) -> Operand:
    return x.view((*x.shape, 1), (*x.strides, 0))


def _plan_slogdet(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    require_square("slogdet", shadow_of(x))
    if not x.size:
        return [_filled(planner, x, 1), _filled(planner, x, 0)]
    factors, failed = _factors(planner, x)
    found = plan_formula(planner, _logarithms_nests(x.dtype), [factors, _column(failed)])
    return [restored(z, x) for z in found]


def _plan_det(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    """Emit products in two steps, so that none on the way is too large or too small."""
    (x,) = given
    require_square("det", shadow_of(x))
    if not x.size:
        return [_filled(planner, x, 1)]
    factors, failed = _factors(planner, x)
    count, n = factors.shape
    groups = -(-n // MOST_FACTORS)
    length = -(-n // groups)
    padded = planner.new("float64", (count, groups * length))
    one = planner.constant(np.ones(()))
    plan_copy(planner, padded, one.view(padded.shape, (0, 0)))
    plan_copy(planner, padded.view(factors.shape, padded.strides), factors)
    rows = padded.view((count * groups, length), (8 * length, 8))
    pairs = plan_formula(planner, _scaled_nests(), [rows])
    products, exponents = (z.view((count, groups), (8 * groups, 8)) for z in pairs)
    product, more = plan_formula(planner, _scaled_nests(), [products])
    given = [_column(product), _column(more), exponents, _column(failed)]
    return [restored(z, x) for z in plan_formula(planner, _joined_nests(x.dtype), given)]


#: Lowerings by the class of the op.
DETERMINANTS: dict[type, DeviceLowering] = {
    kind: DeviceLowering(plan, accepts=is_decomposed, libraries=(Cusolver,))
    for kind, plan in ((SLogDet, _plan_slogdet), (Det, _plan_det))
}
