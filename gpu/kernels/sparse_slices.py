"""Slices of sparse matrices: some neighbouring entries of each of some rows.

A kernel finds where they begin and counts them, the counts are added up to pointers, and, when the
host knows how many there are in all, another kernel moves the entries.
"""

from __future__ import annotations

from functools import cache

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import contiguous
from symcomp.gpu.kernels.sparse_patterns import plan_ends
from symcomp.gpu.kernels.sparse_rows import (
    ALONE,
    WORDS,
    CsrRows,
    filled,
    index_tables,
    plan_in_range,
    row_kernel,
)
from symcomp.gpu.planner import Operand, Planner, blocks_for

_RUNS = """
for (int64_t r = (int64_t)blockIdx.x * ALONE + threadIdx.x; r < rows;
     r += (int64_t)gridDim.x * ALONE) {
    const int64_t row = ROW, first = BEGIN, last = END;
    begins[r] = (INDEX)first;
    counts[r] = last - first;
}
"""


@cache
def runs_kernel(dtype: str, crops: bool) -> CudaKernel:
    """Return the kernel that finds runs of neighbouring entries, and counts them.

    Parameters
    ----------
    dtype : str
        Of indices.
    crops : bool
        Whether they have indices in an interval, in all rows; else they are some rows.
    """
    begin, end = "indptr[row]", "indptr[row + 1]"
    if crops:
        begin, end = (f"first_from(indices, {begin}, {end}, {at})" for at in ("start", "stop"))
    body = filled(
        _RUNS, ROW="r" if crops else "indices[r]", BEGIN=begin, END=end, ALONE=ALONE,
        INDEX=C_TYPES[dtype],
    )  # fmt: skip
    tables = [
        *index_tables(dtype, "indices indptr"), (C_TYPES[dtype], "begins"), ("int64_t", "counts"),
    ]  # fmt: skip
    numbers = ["rows", "start", "stop"] if crops else ["rows"]
    return row_kernel(numbers, tables, body, ALONE)


def plan_rows_at(
    planner: Planner, indptr: Operand, ids: Operand
) -> tuple[Operand, Operand, Operand]:
    """Emit where the entries of some rows begin, pointers for them, and how many there are."""
    rows = plan_in_range(planner, ids, indptr.shape[0] - 1)
    return _plan_runs(planner, contiguous(planner, rows), indptr, ids.shape[0])


def plan_crop(
    planner: Planner, x: CsrRows, start: int, stop: int
) -> tuple[Operand, Operand, Operand]:
    """Emit where the entries with indices in an interval begin in each row, pointers for them, and
    how many there are.
    """
    return _plan_runs(planner, contiguous(planner, x.indices), x.indptr, x.count, start, stop)


def _plan_runs(
    planner: Planner, indices: Operand, indptr: Operand, rows: int, *interval: int
) -> tuple[Operand, Operand, Operand]:
    dtype = indptr.dtype
    begins, counts = planner.new(dtype, [rows]), planner.new("int64", [rows])
    if rows:
        given = [indices, contiguous(planner, indptr), begins, counts]
        kernel = runs_kernel(dtype, bool(interval))
        planner.launch(kernel, [blocks_for(rows, ALONE)], [rows, *interval], given)
    return begins, *plan_ends(planner, counts, dtype)


@cache
def moved_kernel(itemsize: int, dtype: str) -> CudaKernel:
    """Return the kernel that moves runs of entries, and their indices, less a number.

    Parameters
    ----------
    itemsize : int
        Of the entries.
    dtype : str
        Of indices.
    """
    word = WORDS[itemsize]
    body = f"""
for (int64_t k = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; k < n;
     k += (int64_t)gridDim.x * {ALONE}) {{
    const int64_t r = first_from(pointers, 0, rows + 1, k + 1) - 1;
    const int64_t at = begins[r] + (k - pointers[r]);
    moved[k] = given[at];
    found[k] = ({C_TYPES[dtype]})(indices[at] - shift);
}}"""
    tables = [
        (f"const {word}", "given"), *index_tables(dtype, "indices begins pointers"),
        (word, "moved"), (C_TYPES[dtype], "found"),
    ]  # fmt: skip
    return row_kernel(["n", "rows", "shift"], tables, body, ALONE)


def plan_moved(
    planner: Planner,
    data: Operand,
    indices: Operand,
    begins: Operand,
    pointers: Operand,
    shift: int,
    count: int,
) -> tuple[Operand, Operand]:
    """Emit the entries of runs, and their indices, less ``shift``."""
    if data.size != indices.size:
        raise ShapeError(f"sparse: {data.size} entries of data for {indices.size} indices")
    moved, found = planner.new(data.dtype, [count]), planner.new(indices.dtype, [count])
    if count:
        given = [contiguous(planner, x) for x in (data, indices, begins, pointers)]
        kernel, numbers = moved_kernel(data.itemsize, indices.dtype), [count, begins.size, shift]
        planner.launch(kernel, [blocks_for(count, ALONE)], numbers, [*given, moved, found])
    return moved, found
