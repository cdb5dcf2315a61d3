"""Stacks of matrices on devices: views, and formulas that lowerings of linear algebra share."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.gpu.driver.interface import Failure
from symcomp.gpu.formulas import NestSequence, nests_for, plan_copy, plan_formula
from symcomp.gpu.kernels.failures import plan_check
from symcomp.gpu.libraries.cusolver import LETTERS
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step

# The axes of a stack of matrices along which numbers for each matrix, its rows, or its columns lie.
WHOLE, MATRIX, ROWS_OF, COLUMNS_OF = (
    (False, False, False), (False, True, True), (True, False, True), (True, True, False),
)  # fmt: skip


def is_decomposed(node: Apply) -> bool:
    """Return whether cuSOLVER has functions for the matrices of a node."""
    return node.inputs[0].dtype in LETTERS


def stack_of(x: Operand, core: int = 2) -> Operand:
    """Return an operand in C order with one axis before those of matrices, or vectors."""
    cut = x.ndim - core
    shape = [prod(x.shape[:cut]), *x.shape[cut:]]
    step = prod(x.shape[cut:]) * x.itemsize
    return x.view(shape, [step, *x.strides[cut:]])


def swapped(x: Operand) -> Operand:
    """Return the transposes of matrices."""
    turn = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return x.view(turn(x.shape), turn(x.strides))


def copied(planner: Planner, x: Operand, by_columns: bool) -> Operand:
    """Return a copy of a stack, for cuSOLVER to overwrite, with one axis before those of matrices;
    by columns it is of the transposes.
    """
    given = swapped(x) if by_columns else x
    copy = planner.new(x.dtype, given.shape)
    plan_copy(planner, copy, given)
    return stack_of(copy)


def restored(x: Operand, like: Operand) -> Operand:
    """Return a stack, in C order, with the axes of ``like`` before those of matrices."""
    stack = like.shape[:-2]
    steps, step = [], x.strides[0]
    for n in reversed(stack):
        steps.append(step)
        step *= n
    return x.view((*stack, *x.shape[1:]), (*reversed(steps), *x.strides[1:]))


# -- formulas


@cache
def _triangle_nests(dtype: str, lower: bool) -> NestSequence:
    """Return the nests of x in one triangle, and 0 elsewhere."""
    outside = ROWS["lt" if lower else "gt"]()
    zero = Literal.of(np.zeros((), dtype))
    steps = Step(outside, (1, 2), "bool"), Step(ROWS["switch"](), (4, 3, 0), dtype)
    formula = Formula((dtype, "int32", "int32"), (zero,), steps, (Result(5),))
    made = nests_for(formula, (WHOLE, ROWS_OF, COLUMNS_OF))
    assert made is not None
    return made


@cache
def _failed_nests(dtype: str) -> NestSequence:
    """Return the nests of NaN for matrices whose number is not 0, else x."""
    literals = Literal.of(np.zeros((), "int32")), Literal.of(np.full((), np.nan, dtype))
    steps = Step(ROWS["neq"](), (1, 2), "bool"), Step(ROWS["switch"](), (4, 3, 0), dtype)
    formula = Formula((dtype, "int32"), literals, steps, (Result(5),))
    made = nests_for(formula, (WHOLE, MATRIX))
    assert made is not None
    return made


@cache
def _unit_nests(dtype: str) -> NestSequence:
    """Return the nests of unit matrices."""
    steps = Step(ROWS["eq"](), (0, 1), "bool"), Step(ROWS["cast"](dtype), (2,), dtype)
    formula = Formula(("int32", "int32"), (), steps, (Result(3),))
    made = nests_for(formula, (ROWS_OF, COLUMNS_OF))
    assert made is not None
    return made


def _places(planner: Planner, x: Operand) -> tuple[Operand, Operand]:
    """Return the numbers of rows and of columns, for a stack of matrices."""
    m, n = x.shape[1:]
    numbers = planner.constant(np.arange(max(m, n), dtype="int32"))
    size = numbers.itemsize
    return numbers.view((1, m, 1), (0, size, 0)), numbers.view((1, 1, n), (0, 0, size))


def plan_triangle(planner: Planner, x: Operand, lower: bool, z: Operand) -> None:
    """Emit z = x in one triangle, and 0 elsewhere, for (s, m, n); z may be x."""
    if z.size:
        plan_formula(planner, _triangle_nests(x.dtype, lower), [x, *_places(planner, x)], [z])


def plan_unit(planner: Planner, z: Operand) -> None:
    """Emit making z, (s, n, n), unit matrices."""
    if z.size:
        (unit,) = plan_formula(planner, _unit_nests(z.dtype), _places(planner, z))
        plan_copy(planner, z, unit.view(z.shape, (0, *unit.strides[1:])))


def plan_failures(
    planner: Planner, op: Any, z: Operand, failed: Operand, failure: Failure
) -> None:
    """Emit what ``on_error`` says: an error at the next wait, or NaN."""
    if getattr(op, "on_error", "raise") == "raise":
        plan_check(planner, failed, failure)
    elif z.size:
        whole = failed.view((*failed.shape, 1, 1), (*failed.strides, 0, 0))
        # Each thread reads an element before it writes it.
        plan_formula(planner, _failed_nests(z.dtype), [z, whole], [z])
