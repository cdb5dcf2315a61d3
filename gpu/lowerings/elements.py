"""Formulas, functions along axes, and sorting, on devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.core.node import Apply, Constant
from symcomp.cvm.kernels import FORMULAS, formula_of
from symcomp.gpu.complex_formulas import ComplexNests, complex_nests_for, plan_complex
from symcomp.gpu.formulas import nests_for, plan_formula
from symcomp.gpu.kernels.along_axis import plan_complex_product, plan_extreme
from symcomp.gpu.kernels.running import plan_recurrence, plan_running
from symcomp.gpu.kernels.sorting import plan_search, plan_sort
from symcomp.gpu.lowerings.contract import DeviceLowering, all_but
from symcomp.gpu.planner import Planner
from symcomp.ops.formulas.formula import Literal
from symcomp.ops.reductions.cumulative import CumOp, LinearRecurrence
from symcomp.ops.reductions.reduce import ArgReduce, Reduce
from symcomp.ops.sorting.sort import Argsort, SearchSorted, Sort
from symcomp.ops.sorting.topk import ArgTopK


def _formula_nests(node: Apply) -> Any:
    if getattr(node.op, "inplace", False):
        return None
    formula = formula_of(node, FORMULAS)
    if formula is None:
        return None
    patterns = tuple(x.type.broadcastable for x in node.inputs)
    if not any(dtype in COMPLEX for dtype in formula.dtypes):
        return nests_for(formula, patterns)
    known = [Literal.of(x.data) if _is_number(x) else None for x in node.inputs]
    if None not in known:
        known[0] = None  # a formula takes an array
    return complex_nests_for(formula, patterns, tuple(known))


def _is_number(x: Any) -> bool:
    return isinstance(x, Constant) and x.data.size == 1


def _has_nests(node: Apply) -> bool:
    return _formula_nests(node) is not None


def _plan_formula(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    made = _formula_nests(node)
    plan = plan_complex if isinstance(made, ComplexNests) else plan_formula
    return plan(planner, made, given)


def multiplies_complex(function: Any, dtype: str) -> bool:
    """Return whether a function of arrays is a product of complex numbers along axes: it has a
    kernel of its own.
    """
    is_product = isinstance(function, Reduce) and function.reduction.name == "prod"
    return is_product and bool(function.axes) and dtype in COMPLEX


def _multiplies_complex(node: Apply) -> bool:
    return multiplies_complex(node.op, node.outputs[0].dtype)


def _reduces(node: Apply) -> bool:
    return _multiplies_complex(node) or _has_nests(node)


def _plan_reduction(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    if not _multiplies_complex(node):
        return _plan_formula(planner, node, given)
    op: Any = node.op
    dtype, work = op.dtypes_for(given[0].dtype)
    return [plan_complex_product(planner, given[0], op.axes, work, dtype)]


def _is_real(node: Apply) -> bool:
    return all(np.dtype(v.dtype).kind in "biuf" for v in (*node.inputs, *node.outputs))


def _plan_arg(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_extreme(planner, given[0], op.axes, op.which == "argmax")]


def _plan_running(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    z = planner.new(node.outputs[0].dtype, given[0].shape)
    plan_running(planner, z, given[0], op.axis, op.mode == "add")
    return [z]


def _runs(node: Apply) -> bool:
    return _is_real(node) or node.inputs[0].dtype in COMPLEX


def _plan_recurrence(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_recurrence(planner, given[0], given[1], op.axis)]


def _plan_sort(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_sort(planner, given[0], op.axis, positions=isinstance(op, Argsort))]


def _plan_topk(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, k = given[0], int(given[1])
    op.check(k, x.shape)
    return [plan_sort(planner, x, op.axis, positions=True, descending=k > 0, kept=abs(k))]


def _plan_search(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, v = given
    return [plan_search(planner, x, v, op.side == "right")]


def _searches(node: Apply) -> bool:
    return _is_real(node) and node.inputs[0].dtype == node.inputs[1].dtype


#: Lowerings by the class of the op.
ELEMENTS: dict[type, DeviceLowering] = {
    **dict.fromkeys(FORMULAS, DeviceLowering(_plan_formula, accepts=_has_nests)),
    Reduce: DeviceLowering(_plan_reduction, accepts=_reduces),
    ArgReduce: DeviceLowering(_plan_arg, accepts=_is_real),
    CumOp: DeviceLowering(_plan_running, accepts=_runs),
    LinearRecurrence: DeviceLowering(_plan_recurrence, accepts=_runs),
    Sort: DeviceLowering(_plan_sort, accepts=_is_real),
    Argsort: DeviceLowering(_plan_sort, accepts=_is_real),
    ArgTopK: DeviceLowering(_plan_topk, all_but(0), _is_real),
    SearchSorted: DeviceLowering(_plan_search, accepts=_searches),
}
