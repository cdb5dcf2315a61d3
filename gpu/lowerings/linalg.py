"""Linear algebra, on devices that have cuSOLVER and cuBLAS: real matrices and stacks of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.gpu.driver.interface import Failure
from symcomp.gpu.formulas import NestSequence, contiguous, nests_for, plan_copy, plan_formula
from symcomp.gpu.kernels.failures import plan_check
from symcomp.gpu.libraries.cublas import Cublas, stored
from symcomp.gpu.libraries.cusolver import (
    LETTERS,
    Cusolver,
    factor_positive,
    solve_general,
    solve_positive,
    solve_triangular,
)
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.views import shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.matrices import require_square
from symcomp.ops.linalg.solve import Solve, check_systems
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

# The axes of a stack of matrices along which numbers for each matrix, its rows, or its columns lie.
WHOLE, MATRIX, ROWS_OF, COLUMNS_OF = (
    (False, False, False), (False, True, True), (True, False, True), (True, True, False),
)  # fmt: skip


def _not_positive(label: str, place: int, order: int) -> Exception:
    return np.linalg.LinAlgError(
        f"{label}: matrix {place} is not positive definite: its leading minor of order {order} is "
        "not positive"
    )


def _singular(label: str, place: int, number: int) -> Exception:
    return np.linalg.LinAlgError(f"{label}: matrix {place} is singular")


def _decomposes(node: Apply) -> bool:
    return node.outputs[0].dtype in LETTERS


def _solves(node: Apply) -> bool:
    op: Any = node.op
    return op.A_structure not in ("symmetric", "hermitian") and _decomposes(node)


def _stack(x: Operand, core: int = 2) -> Operand:
    """Return an operand in C order with one axis before those of matrices, or vectors."""
    cut = x.ndim - core
    shape = [prod(x.shape[:cut]), *x.shape[cut:]]
    step = prod(x.shape[cut:]) * x.itemsize
    return x.view(shape, [step, *x.strides[cut:]])


def _swapped(x: Operand) -> Operand:
    turn = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return x.view(turn(x.shape), turn(x.strides))


# -- formulas of stacks


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


@cache
def _zeros_nests(dtype: str) -> NestSequence:
    """Return the nests of whether there is a 0 in each line, as int32."""
    largest = Reduce(REDUCTIONS["max"], (1,), "int32", "int32")
    zero = Literal.of(np.zeros((), dtype))
    steps = (
        Step(ROWS["eq"](), (0, 1), "bool"),
        Step(ROWS["cast"]("int32"), (2,), "int32"),
        Step(largest, (3,), "int32"),
    )
    formula = Formula((dtype,), (zero,), steps, (Result(4, (1,)),))
    made = nests_for(formula, ((False, False),))
    assert made is not None
    return made


def _places(planner: Planner, n: int) -> tuple[Operand, Operand]:
    """Return the numbers of rows and of columns, for stacks of matrices."""
    numbers = planner.constant(np.arange(n, dtype="int32"))
    size = numbers.itemsize
    return numbers.view((1, n, 1), (0, size, 0)), numbers.view((1, 1, n), (0, 0, size))


def _finish(planner: Planner, op: Any, z: Operand, failed: Operand, failure: Failure) -> None:
    """Emit what ``on_error`` says: an error at the next wait, or NaN."""
    if getattr(op, "on_error", "raise") == "raise":
        plan_check(planner, failed, failure)
    elif z.size:
        whole = failed.view((*failed.shape, 1, 1), (*failed.strides, 0, 0))
        # Each thread reads an element before it writes it.
        plan_formula(planner, _failed_nests(z.dtype), [z, whole], [z])


# -- ops


def _plan_cholesky(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    (x,) = given
    require_square("cholesky", shadow_of(x))
    z = planner.new(x.dtype, x.shape)
    if z.size:
        plan_copy(planner, z, x)
        stack = _stack(z)
        failed = factor_positive(planner, stack, op.lower)
        places = _places(planner, z.shape[-1])
        plan_formula(planner, _triangle_nests(z.dtype, op.lower), [stack, *places], [stack])
        _finish(planner, op, stack, failed, _not_positive)
    return [z]


def _plan_solve(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    a, b = given
    check_systems(shadow_of(a), shadow_of(b))
    is_vector = b.ndim < a.ndim
    columns = b.view((*b.shape, 1), (*b.strides, 0)) if is_vector else b
    # Right sides by columns.
    z = planner.new(b.dtype, _swapped(columns).shape)
    if a.size:
        plan_copy(planner, z, _swapped(columns))
        _solve(planner, op, a, _stack(z))
    found = _swapped(z)
    return [found.view(found.shape[:-1], found.strides[:-1])] if is_vector else [found]


def _solve(planner: Planner, op: Any, a: Operand, z: Operand) -> None:
    if op.is_triangular:
        _solve_triangular(planner, op, a, z)
        return
    copy = planner.new(a.dtype, a.shape)
    plan_copy(planner, copy, a)
    if op.A_structure == "general":
        _finish(planner, op, z, solve_general(planner, _stack(copy), z), _singular)
    else:
        failed = solve_positive(planner, _stack(copy), z, op.lower)
        _finish(planner, op, z, failed, _not_positive)


def _solve_triangular(planner: Planner, op: Any, a: Operand, z: Operand) -> None:
    if a.ndim > 2 or stored(a) is None:
        a = contiguous(planner, a)
    stack = _stack(a)
    solve_triangular(planner, stack, z, op.lower, op.unit_diagonal)
    if op.unit_diagonal:
        return
    diagonals = stack.view(stack.shape[:2], (stack.strides[0], sum(stack.strides[1:])))
    (failed,) = plan_formula(planner, _zeros_nests(a.dtype), [diagonals])
    _finish(planner, op, z, failed, _singular)


def _plan_inverse(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    require_square("matrix_inverse", shadow_of(x))
    z = planner.new(x.dtype, x.shape)
    if x.size:
        copy = planner.new(x.dtype, x.shape)
        plan_copy(planner, copy, x)
        (unit,) = plan_formula(planner, _unit_nests(x.dtype), _places(planner, x.shape[-1]))
        stack = _stack(z)
        plan_copy(planner, stack, unit.view(stack.shape, (0, *unit.strides[1:])))
        failed = solve_general(planner, _stack(copy), stack)
        _finish(planner, node.op, stack, failed, _singular)
    return [_swapped(z)]


_BOTH = Cusolver, Cublas
#: Lowerings by the class of the op.
LINALG: dict[type, DeviceLowering] = {
    Cholesky: DeviceLowering(_plan_cholesky, accepts=_decomposes, libraries=_BOTH),
    Solve: DeviceLowering(_plan_solve, accepts=_solves, libraries=_BOTH),
    MatrixInverse: DeviceLowering(_plan_inverse, accepts=_decomposes, libraries=_BOTH),
}
