"""How ops on the arrays of sparse matrices are lowered: to the calls of cvm/calls/sparse.h."""

from __future__ import annotations

from typing import Any

from symcomp.cvm import machine
from symcomp.cvm.kernels import threads_to_use
from symcomp.cvm.machine import Lowered
from symcomp.sparse.convert import GatherDense, ScatterDense, TransposeCompressed
from symcomp.sparse.fused import ScatterAdd, Usmm
from symcomp.sparse.pairwise import TRUE_AT_ZERO, CombinePatterns
from symcomp.sparse.parts import SameNumber, TakeMajor
from symcomp.sparse.patterns import (
    Canonical,
    LargestIndex,
    Lookup,
    LookupPairs,
    MajorIndices,
    Pointers,
    SortIndices,
)
from symcomp.sparse.products import CompressedDot, CompressedMatMul, MaskedMatMul, SampledDot
from symcomp.sparse.reductions import SegmentReduce
from symcomp.sparse.structure import DropZeros
from symcomp.sparse.with_dense import SameLength
from symcomp.vm.features import Feature, Lowering
from symcomp.vm.program import Instruction


def _op(step: Instruction) -> Any:
    return step.node.op  # type: ignore[union-attr]


def _named(what: str) -> Lowering:
    """Return the lowering of an op without parameters."""
    return lambda step: machine.sparse(step, what, threads=threads_to_use())


def _dot(step: Instruction) -> Lowered:
    transposed = _op(step).transposed
    return machine.sparse(step, "dot", transposed=transposed, threads=threads_to_use())


def _usmm(step: Instruction) -> Lowered:
    transposed = _op(step).transposed
    return machine.sparse(step, "usmm", transposed=transposed, threads=threads_to_use())


def _combine(step: Instruction) -> Lowered | None:
    """Lower a sum, a product or a comparison; those true of two zeros are all but dense."""
    kind = _op(step).kind
    if kind in TRUE_AT_ZERO:
        return None
    return machine.sparse(step, "combine", kind, threads=threads_to_use())


def _segments(step: Instruction) -> Lowered:
    return machine.sparse(step, "segments", _op(step).kind, threads=threads_to_use())


def _same_number(step: Instruction) -> Lowered:
    return machine.passed(step, 0, [("numbers", 0, 0, 1, 0)])


LOWERINGS: dict[type, Lowering] = {
    Canonical: _named("canonical"),
    CombinePatterns: _combine,
    CompressedDot: _dot,
    CompressedMatMul: _named("product"),
    DropZeros: _named("drop_zeros"),
    GatherDense: _named("gather"),
    LargestIndex: _named("largest"),
    Lookup: _named("lookup"),
    LookupPairs: _named("lookup_pairs"),
    MajorIndices: _named("rows"),
    MaskedMatMul: _named("product_at"),
    Pointers: _named("pointers"),
    SameLength: _named("same_length"),
    SameNumber: _same_number,
    SampledDot: _named("sampled"),
    ScatterAdd: _named("scatter_add"),
    ScatterDense: _named("scatter"),
    SegmentReduce: _segments,
    SortIndices: _named("canonical"),
    TakeMajor: _named("take"),
    TransposeCompressed: _named("transpose"),
    Usmm: _usmm,
}

#: Sparse matrices, for compiled functions.
SPARSE = Feature("sparse", lowerings={(op, "cpu"): how for op, how in LOWERINGS.items()})
