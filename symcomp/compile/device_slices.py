"""Slices of sparse matrices on devices: rows at positions, and columns in an interval.

The host reads how many entries they have, as for products of two matrices: ``RunPointers`` finds
where the entries of each row begin and counts them, ``RunEntries`` moves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.core.fields import one_of
from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.gpu.kernels.sparse_rows import CsrRows
from symcomp.gpu.kernels.sparse_slices import plan_crop, plan_moved, plan_rows_at
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering
from symcomp.gpu.planner import Planner
from symcomp.sparse import values
from symcomp.sparse.patterns import check_index_vectors
from symcomp.sparse.slicing import slices_at
from symcomp.vm.features import Lowering

MADE = "it is made when functions are compiled, when derivatives have been taken"


@record
class RunPointers(Op):
    """begins, indptr', count = where the entries of each row of a slice begin, its pointers, and
    how many entries it has.

    Inputs: indices and indptr, or positions of rows (``take``) and indptr; for ``crop`` also the
    interval of indices.
    """

    kind: Annotated[str, one_of("take", "crop")]

    multiple_outputs = True
    no_derivative = MADE

    def output_types(self, indices: Any, indptr: Any, *interval: Any) -> list[Type]:
        check_index_vectors(self.kind, indices, indptr)
        (n,) = indptr.type.shape if self.kind == "crop" else indices.type.shape
        shift = int(self.kind == "take")
        lengths = [None if n is None else n - 1 + shift, None if n is None else n + shift]
        vectors = [TensorType(indptr.dtype, (length,)) for length in lengths]
        return [*vectors, TensorType("int64", ())]

    def perform(self, indices: Any, indptr: Any, *interval: Any) -> tuple[Any, ...]:
        if self.kind == "take":
            values.check_range(indices, len(indptr) - 1, "getitem: positions")
            begins, ends = indptr[:-1][indices], indptr[1:][indices]
        else:
            before = [np.concatenate([[0], np.cumsum(indices < n)]) for n in interval]
            begins, ends = (indptr[:-1] + (b[indptr[1:]] - b[indptr[:-1]]) for b in before)
        pointers = np.concatenate([[0], np.cumsum(ends - begins)])
        count = np.array(pointers[-1], np.int64)
        return begins.astype(indptr.dtype), pointers.astype(indptr.dtype), count

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        n = shapes[1][0] - 1 if self.kind == "crop" else shapes[0][0]
        return [(n,), (n + 1,), ()]


@record
class RunEntries(Op):
    """data', indices' = those of a slice; indices are less by a number.

    Inputs: data, indices, the outputs of ``RunPointers``, and the number.
    """

    multiple_outputs = True
    no_derivative = MADE

    def output_types(self, data: Any, indices: Any, *rest: Any) -> list[Type]:
        check_index_vectors("getitem", indices, *rest[:2])
        return [TensorType(x.dtype, (None,)) for x in (data, indices)]

    def perform(
        self, data: Any, indices: Any, begins: Any, pointers: Any, count: Any, shift: Any
    ) -> tuple[Any, ...]:
        places = slices_at(begins, np.diff(pointers))
        return data[places], (indices[places] - shift).astype(indices.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[4],)] * 2


def _plan_pointers(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    indices, indptr, *interval = given
    if op.kind == "take":
        return plan_rows_at(planner, indptr, indices)
    return plan_crop(planner, CsrRows(indices, indptr), *map(int, interval))


def _plan_entries(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    data, indices, begins, pointers, count, shift = given
    values.check_fits(indices.dtype, (), int(count), "getitem")
    return plan_moved(planner, data, indices, begins, pointers, int(shift), int(count))


_POINTERS = DeviceLowering(
    _plan_pointers, lambda node: frozenset(range(2, len(node.inputs))), only_moves=True
)
_ENTRIES = DeviceLowering(_plan_entries, lambda node: frozenset([4, 5]), only_moves=True)
LOWERINGS: dict[tuple[type, str], Lowering] = {
    (RunPointers, TARGET): lambda node: _POINTERS,
    (RunEntries, TARGET): lambda node: _ENTRIES if node.inputs[0].dtype in C_TYPES else None,
}
