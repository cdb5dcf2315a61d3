"""Systems of real matrices and stacks of them, on devices that have cuSOLVER and cuBLAS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.gpu.formulas import NestSequence, contiguous, nests_for, plan_copy, plan_formula
from symcomp.gpu.libraries.cublas import Cublas, stored
from symcomp.gpu.libraries.cusolver import (
    Cusolver,
    factor_positive,
    solve_general,
    solve_positive,
    solve_triangular,
)
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.stacks import (
    is_decomposed,
    plan_failures,
    plan_triangle,
    plan_unit,
    stack_of,
    swapped,
)
from symcomp.gpu.lowerings.views import shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.matrices import require_square
from symcomp.ops.linalg.solve import Solve, check_systems
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce


def _not_positive(label: str, place: int, order: int) -> Exception:
    return np.linalg.LinAlgError(
        f"{label}: matrix {place} is not positive definite: its leading minor of order {order} is "
        "not positive"
    )


def _singular(label: str, place: int, number: int) -> Exception:
    return np.linalg.LinAlgError(f"{label}: matrix {place} is singular")


def _solves(node: Apply) -> bool:
    op: Any = node.op
    return op.A_structure not in ("banded", "symmetric", "hermitian") and is_decomposed(node)


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


# -- ops


def _plan_cholesky(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    (x,) = given
    require_square("cholesky", shadow_of(x))
    z = planner.new(x.dtype, x.shape)
    if z.size:
        plan_copy(planner, z, x)
        stack = stack_of(z)
        failed = factor_positive(planner, stack, op.lower)
        plan_triangle(planner, stack, op.lower, stack)
        plan_failures(planner, op, stack, failed, _not_positive)
    return [z]


def _plan_solve(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    a, b = given
    check_systems(shadow_of(a), shadow_of(b))
    is_vector = b.ndim < a.ndim
    columns = b.view((*b.shape, 1), (*b.strides, 0)) if is_vector else b
    # Right sides by columns.
    z = planner.new(b.dtype, swapped(columns).shape)
    if a.size:
        plan_copy(planner, z, swapped(columns))
        _solve(planner, op, a, stack_of(z))
    found = swapped(z)
    return [found.view(found.shape[:-1], found.strides[:-1])] if is_vector else [found]


def _solve(planner: Planner, op: Any, a: Operand, z: Operand) -> None:
    if op.is_triangular:
        _solve_triangular(planner, op, a, z)
        return
    copy = planner.new(a.dtype, a.shape)
    plan_copy(planner, copy, a)
    if op.A_structure == "general":
        plan_failures(planner, op, z, solve_general(planner, stack_of(copy), z), _singular)
    else:
        failed = solve_positive(planner, stack_of(copy), z, op.lower)
        plan_failures(planner, op, z, failed, _not_positive)


def _solve_triangular(planner: Planner, op: Any, a: Operand, z: Operand) -> None:
    if a.ndim > 2 or stored(a) is None:
        a = contiguous(planner, a)
    stack = stack_of(a)
    solve_triangular(planner, stack, z, op.lower, op.unit_diagonal)
    if op.unit_diagonal:
        return
    diagonals = stack.view(stack.shape[:2], (stack.strides[0], sum(stack.strides[1:])))
    (failed,) = plan_formula(planner, _zeros_nests(a.dtype), [diagonals])
    plan_failures(planner, op, z, failed, _singular)


def _plan_inverse(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    require_square("matrix_inverse", shadow_of(x))
    z = planner.new(x.dtype, x.shape)
    if x.size:
        copy = planner.new(x.dtype, x.shape)
        plan_copy(planner, copy, x)
        stack = stack_of(z)
        plan_unit(planner, stack)
        failed = solve_general(planner, stack_of(copy), stack)
        plan_failures(planner, node.op, stack, failed, _singular)
    return [swapped(z)]


_BOTH = Cusolver, Cublas
#: Lowerings by the class of the op.
LINALG: dict[type, DeviceLowering] = {
    Cholesky: DeviceLowering(_plan_cholesky, accepts=is_decomposed, libraries=_BOTH),
    Solve: DeviceLowering(_plan_solve, accepts=_solves, libraries=_BOTH),
    MatrixInverse: DeviceLowering(_plan_inverse, accepts=is_decomposed, libraries=_BOTH),
}
