"""Products with sparse matrices on devices, by cuSPARSE.

Pointers fit their matrices: those of arguments are checked on the host, where matrices are taken
apart, and ops keep the property. Indices are checked on the device, as an op may be given a pattern
and factors that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from symcomp.core.node import Apply, Constant
from symcomp.gpu.formulas import NestSequence, nests_for, plan_formula
from symcomp.gpu.libraries.cusparse import (
    INDEX_TYPES,
    TYPES,
    CompressedArrays,
    Cusparse,
    plan_sampled_product,
    plan_sparse_product,
)
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering, Plans
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.rules import is_needed
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.sparse.components import Components
from symcomp.sparse.fused import Usmm
from symcomp.sparse.products import CompressedDot, SampledDot
from symcomp.vm.features import Feature, Lowering, offer_feature


def _product(planner: Planner, node: Apply, given: Sequence[Any]) -> Operand:
    """Emit the product that the last five inputs of a node are factors of."""
    op: Any = node.op
    data, indices, indptr, columns, dense = given
    matrix = CompressedArrays(data, indices, indptr, int(columns))
    return plan_sparse_product(planner, matrix, dense, op.transposed)


def _plan_dot(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [_product(planner, node, given)]


@cache
def _scaled_sum(dtype: str, rank: int) -> NestSequence:
    """Return the nests of z + alpha x."""
    steps = Step(ROWS["mul"](), (1, 2), dtype), Step(ROWS["add"](), (0, 3), dtype)
    formula, whole = Formula((dtype,) * 3, (), steps, (Result(4),)), (False,) * rank
    found = nests_for(formula, (whole, (True,) * rank, whole))
    assert found is not None
    return found


def _plan_usmm(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    z, alpha, *factors = given
    product = _product(planner, node, factors)
    factor = alpha.view((1,) * z.ndim, (0,) * z.ndim)
    return plan_formula(planner, _scaled_sum(z.dtype, z.ndim), [z, factor, product])


def _plan_sampled(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [plan_sampled_product(planner, *given)]


def _lowered(plan: Plans, first: int, dtypes: Sequence[str]) -> Lowering:
    """Return the lowering of an op whose pattern begins with this input.

    Parameters
    ----------
    dtypes : sequence of str
        Of the entries that it takes.
    """

    def on_host(node: Apply) -> frozenset[int]:
        return frozenset() if plan is _plan_sampled else frozenset([first + 2])

    how = DeviceLowering(plan, on_host, libraries=(Cusparse,))

    def lowering(node: Apply) -> DeviceLowering | None:
        is_known = node.outputs[0].dtype in dtypes and node.inputs[first].dtype in INDEX_TYPES
        return how if is_known else None

    return lowering


@rule(Components, why="the arrays of a constant stay on the device that uses them")
def components_of_constant(node: Apply, graph: Any) -> Any:
    """components(constant x) -> constants"""
    (x,) = node.inputs
    if not isinstance(x, Constant):
        return None
    op: Any = node.op
    return [constant(part) for part in op.perform(x.type.filter(x.data))]


REALS = [dtype for dtype in TYPES if not dtype.startswith("complex")]
PHASE = Phase(
    "device sparse", "arrays of constants are constants", RuleSet([components_of_constant], FULL),
    needed=is_needed,
)  # fmt: skip
FEATURE = Feature(
    "device sparse",
    (("fusion", PHASE),),
    lowerings={
        (CompressedDot, TARGET): _lowered(_plan_dot, 1, [*TYPES]),
        (Usmm, TARGET): _lowered(_plan_usmm, 3, REALS),
        (SampledDot, TARGET): _lowered(_plan_sampled, 0, [*TYPES]),
    },
)


def offer() -> None:
    """Compute products on devices from now on."""
    offer_feature(FEATURE)
