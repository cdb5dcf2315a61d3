"""How ops on the arrays of sparse matrices are lowered: to the calls of cvm/calls/sparse.h."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.cvm import machine
from symcomp.cvm.kernels import threads_to_use
from symcomp.cvm.machine import Lowered
from symcomp.sparse.blocks import (
    BlockDot,
    BlocksAsRows,
    CheckedBlocks,
    RowsAsBlocks,
    SampledBlocks,
)
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.convert import (
    GatherDense,
    NonzeroPattern,
    ScatterDense,
    TransposeCompressed,
)
from symcomp.sparse.fused import GatherFill, ScatterAdd, Usmm
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.sparse.patterns import (
    Canonical,
    FromTriplets,
    InRange,
    LargestIndex,
    Lookup,
    LookupPairs,
    MajorIndices,
    Pointers,
    SortIndices,
)
from symcomp.sparse.products import CompressedDot, CompressedMatMul, MaskedMatMul, SampledDot
from symcomp.sparse.reductions import SegmentReduce
from symcomp.sparse.rows import RowStep, check_rows
from symcomp.sparse.slicing import CropMinor, JoinMinor, PutMajor, SameNumber, TakeMajor
from symcomp.sparse.structure import DropZeros
from symcomp.sparse.values import maker
from symcomp.sparse.with_dense import SameLength
from symcomp.vm.features import Feature, Lowering
from symcomp.vm.planning import Planning
from symcomp.vm.program import Instruction


def _op(step: Instruction) -> Any:
    return step.node.op  # type: ignore[union-attr]


def _named(what: str) -> Lowering:
    """Return the lowering of an op without parameters."""
    return lambda step: machine.sparse(step, what, threads=threads_to_use())


def _product(what: str) -> Lowering:
    """Return the lowering of a product of which the sparse factor may be transposed."""
    return lambda step: machine.sparse(
        step, what, transposed=_op(step).transposed, threads=threads_to_use()
    )


def _rows_as_blocks(step: Instruction) -> Lowered:
    return machine.sparse(step, "rows_as_blocks", block=(_op(step).rows, _op(step).columns))


def _combine(step: Instruction) -> Lowered:
    return machine.sparse(step, "combine", _op(step).kind, threads=threads_to_use())


def _segments(step: Instruction) -> Lowered:
    return machine.sparse(step, "segments", _op(step).kind, threads=threads_to_use())


def _same_number(step: Instruction) -> Lowered:
    return machine.passed(step, 0, [("numbers", 0, 0, 1, 0)])


def _checked_blocks(step: Instruction) -> Lowered:
    return machine.passed(step, 1, [("multiple", 0, 0, 0, _op(step).columns)])


def _take_apart(step: Instruction) -> Lowered:
    kind = step.node.inputs[0].type  # type: ignore[union-attr]
    return machine.take_apart_sparse(
        step, kind.native_values, checks=_op(step).canonical, threads=threads_to_use()
    )


def _put_together(step: Instruction) -> Lowered:
    kind = _op(step).kind
    make = maker(kind.format, kind.container)
    return machine.put_together_sparse(step, kind.native_values, make)


LOWERINGS: dict[type, Lowering] = {
    Assemble: _put_together,
    BlockDot: _product("block_dot"),
    BlocksAsRows: _named("blocks_as_rows"),
    Canonical: _named("canonical"),
    CheckedBlocks: _checked_blocks,
    CombinePatterns: _combine,
    Components: _take_apart,
    CompressedDot: _product("dot"),
    CompressedMatMul: _named("product"),
    CropMinor: _named("crop"),
    DropZeros: _named("drop_zeros"),
    FromTriplets: _named("triplets"),
    GatherDense: _named("gather"),
    GatherFill: _named("gather_fill"),
    InRange: _named("in_range"),
    JoinMinor: _named("join"),
    LargestIndex: _named("largest"),
    Lookup: _named("lookup"),
    LookupPairs: _named("lookup_pairs"),
    MajorIndices: _named("rows"),
    MaskedMatMul: _named("product_at"),
    NonzeroPattern: _named("nonzero"),
    Pointers: _named("pointers"),
    PutMajor: _named("put"),
    RowsAsBlocks: _rows_as_blocks,
    SameLength: _named("same_length"),
    SameNumber: _same_number,
    SampledBlocks: _named("sampled_blocks"),
    SampledDot: _named("sampled"),
    ScatterAdd: _named("scatter_add"),
    ScatterDense: _named("scatter"),
    SegmentReduce: _segments,
    SortIndices: _named("canonical"),
    TakeMajor: _named("take"),
    TransposeCompressed: _named("transpose"),
    Usmm: _product("usmm"),
}


def _rows_into(node: Apply) -> Callable[..., Any]:
    op: Any = node.op
    return op.write


def _updated_rows(node: Apply, output: int) -> Sequence[int]:
    op: Any = node.op
    return (op.n_scalars + output,)


def _row_check(node: Apply) -> Callable[..., None]:
    """Return the function that checks the shapes and the positions of the rows."""
    op: Any = node.op

    def check(*values: Any) -> None:
        _, tables, y, ids = op.parts(values)
        check_rows(tables, y, ids)

    return check


#: Sparse matrices, for compiled functions.
SPARSE = Feature(
    "sparse",
    lowerings={(op, "cpu"): how for op, how in LOWERINGS.items()},
    planning={RowStep: Planning(_rows_into, _updated_rows, check=_row_check)},
)
