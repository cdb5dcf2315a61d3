"""Decompositions of real matrices and stacks of them, on devices that have cuSOLVER."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.gpu.formulas import NestSequence, nests_for, plan_copy, plan_formula
from symcomp.gpu.kernels.failures import plan_check
from symcomp.gpu.libraries.cusolver import Cusolver, factor_general
from symcomp.gpu.libraries.decompositions import (
    eigenvalues,
    orthogonal,
    reflectors,
    singular_values,
)
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.stacks import (
    copied,
    is_decomposed,
    plan_triangle,
    plan_unit,
    restored,
    stack_of,
    swapped,
)
from symcomp.gpu.lowerings.views import shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.linalg.eigen import Eigh, Eigvalsh
from symcomp.ops.linalg.lu import LUFactor
from symcomp.ops.linalg.matrices import require_square
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.linalg.svd import SVD, SingularValues


def _no_eigenvalues(label: str, place: int, number: int) -> Exception:
    return np.linalg.LinAlgError(f"{label}: the eigenvalues of matrix {place} were not found")


def _no_singular_values(label: str, place: int, number: int) -> Exception:
    return np.linalg.LinAlgError(f"{label}: the singular values of matrix {place} were not found")


@cache
def _from_zero_nests() -> NestSequence:
    """Return the nests of numbers counted from 0."""
    steps = Step(ROWS["cast"]("int64"), (0,), "int64"), Step(ROWS["sub"](), (2, 1), "int64")
    formula = Formula(("int32",), (Literal.of(np.int64(1)),), steps, (Result(3),))
    made = nests_for(formula, ((False, False),))
    assert made is not None
    return made


def _plan_lu(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    require_square("lu_factor", shadow_of(x))
    if not x.size:
        return [planner.new(x.dtype, x.shape), planner.new("int64", x.shape[:-1])]
    lu = copied(planner, x, by_columns=True)
    pivots, _ = factor_general(planner, lu)
    (rows,) = plan_formula(planner, _from_zero_nests(), [pivots])
    return [restored(swapped(lu), x), restored(rows, x)]


# -- eigenvalues and singular values


def _plan_eigh(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    (x,) = given
    has_vectors = isinstance(op, Eigh)
    lower = op.UPLO == "L" if isinstance(op, Eigh) else op.lower
    require_square("eigh" if has_vectors else "eigvalsh", shadow_of(x))
    if not x.size:
        return [planner.new(x.dtype, z) for z in (x.shape[:-1], x.shape)[: 1 + has_vectors]]
    v = copied(planner, x, by_columns=False)
    w, failed = eigenvalues(planner, v, lower, has_vectors)
    plan_check(planner, failed, _no_eigenvalues)
    found = [restored(w, x)]
    return [*found, restored(swapped(v), x)] if has_vectors else found


def _plan_svd(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    (x,) = given
    *stack, m, n = x.shape
    is_tall, shorter = m >= n, min(m, n)
    # cuSOLVER has tall matrices alone; a wide one by rows is its transpose by columns.
    longer = max(m, n)
    left = planner.new(x.dtype, (*stack, longer if op.full_matrices else shorter, longer))
    right = planner.new(x.dtype, (*stack, shorter, shorter))
    values = planner.new(x.dtype, (*stack, shorter))
    if x.size:
        copy = copied(planner, x, by_columns=is_tall)
        found, failed = singular_values(planner, copy, stack_of(left), stack_of(right))
        plan_check(planner, failed, _no_singular_values)
        values = restored(found, x)
    elif left.size:
        plan_unit(planner, stack_of(left))
    return [swapped(left), values, swapped(right)] if is_tall else [right, values, left]


def _plan_singular_values(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    *stack, m, n = x.shape
    if not x.size:
        return [planner.new(x.dtype, (*stack, min(m, n)))]
    copy = copied(planner, x, by_columns=m >= n)
    values, failed = singular_values(planner, copy, None, None)
    plan_check(planner, failed, _no_singular_values)
    return [restored(values, x)]


# -- orthogonal columns


def _plan_qr(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    (x,) = given
    *stack, m, n = x.shape
    shorter = min(m, n)
    columns = m if op.complete else shorter
    r = planner.new(x.dtype, (*stack, columns, n))
    if not x.size:
        q = planner.new(x.dtype, (*stack, m, columns))
        if q.size:
            plan_unit(planner, stack_of(q))
        return [q, r]
    h = copied(planner, x, by_columns=True)
    factors = reflectors(planner, h)
    plan_triangle(planner, _first(swapped(h), columns), False, stack_of(r))
    q = h
    if columns != n:
        q = planner.new(x.dtype, (h.shape[0], columns, m))
        plan_copy(planner, _first(q, shorter), _first(h, shorter))
    orthogonal(planner, q, factors)
    return [restored(swapped(q), x), r]


def _first(x: Operand, count: int) -> Operand:
    """Return the first rows of matrices."""
    return x.view((x.shape[0], count, x.shape[2]), x.strides)


def _plan_raw_qr(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    (x,) = given
    *stack, m, n = x.shape
    if not x.size:
        return [planner.new(x.dtype, z) for z in ((*stack, n, m), (*stack, min(m, n)))]
    h = copied(planner, x, by_columns=True)
    factors = reflectors(planner, h)
    return [restored(h, x), restored(factors, x)]


_PLANS = {
    LUFactor: _plan_lu, Eigh: _plan_eigh, Eigvalsh: _plan_eigh,
    SVD: _plan_svd, SingularValues: _plan_singular_values, QR: _plan_qr, QRRaw: _plan_raw_qr,
}  # fmt: skip
#: Lowerings by the class of the op.
DECOMPOSITIONS: dict[type, DeviceLowering] = {
    kind: DeviceLowering(plan, accepts=is_decomposed, libraries=(Cusolver,))
    for kind, plan in _PLANS.items()
}
