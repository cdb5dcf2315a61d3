"""Sums and extremes of the segments of an array on devices, as of the rows (of CSC: columns) of a
sparse matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.codegen.functions.c_scalars import C_TYPES, STORED
from symcomp.core.node import Apply
from symcomp.gpu.kernels.segments import plan_segment_numbers, plan_segments
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering
from symcomp.gpu.planner import Planner
from symcomp.sparse.patterns import MajorIndices
from symcomp.sparse.reductions import SegmentReduce
from symcomp.sparse.with_dense import SameLength, check_length
from symcomp.vm.features import Lowering


def _plan_segments(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    data, indptr = given
    return [plan_segments(planner, op.kind, data, indptr, node.outputs[0].dtype)]


def _plan_numbers(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    indptr, n = given
    return [plan_segment_numbers(planner, indptr, int(n))]


def _plan_same_length(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, n = given
    check_length(x.shape[0], int(n))
    return [x]


_SEGMENTS = DeviceLowering(_plan_segments)
_NUMBERS = DeviceLowering(_plan_numbers, lambda node: frozenset([1]), only_moves=True)

_SAME_LENGTH = DeviceLowering(_plan_same_length, lambda node: frozenset([1]), only_moves=True)


def _segments(node: Apply) -> DeviceLowering | None:
    dtype = node.inputs[0].dtype
    is_known = dtype in C_TYPES and STORED[dtype] == C_TYPES[dtype]
    return _SEGMENTS if is_known else None


LOWERINGS: dict[tuple[type, str], Lowering] = {
    (SegmentReduce, TARGET): _segments,
    (MajorIndices, TARGET): lambda node: _NUMBERS,
    (SameLength, TARGET): lambda node: _SAME_LENGTH,
}
