"""Patterns that two matrices make: products, unions, intersections, and where comparisons are true.

A kernel counts the columns of each row, these are added up to pointers, and, when the host knows
how many there are in all, another one writes the columns. A block makes one row of a product at a
time, whose columns are bits of a set, so that they come out in order; a thread merges two rows for
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.gpu.formulas import contiguous, plan_copy
from symcomp.gpu.kernels.running import plan_running
from symcomp.gpu.kernels.sparse_rows import (
    ALONE,
    THREADS,
    CsrRows,
    entry_type,
    filled,
    index_tables,
    row_kernel,
)
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner, blocks_for

# A set has at most WORDS words of 32 columns. TOGETHER threads read a row of the second factor.
WORDS, TOGETHER = 2048, 8
#: The patterns that two patterns make.
KINDS = ("product", "union", "intersection")
#: The operators of comparisons, whose patterns depend on entries: two zeros are not stored.
COMPARED = {"neq": "!=", "lt": "<", "gt": ">"}
_COLUMNS = """
for (int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    int64_t from = 0, count = 0;
    for (;;) {
        int64_t low = INT64_MAX, high = -1;
        for (int64_t k = indptr[i] + threadIdx.x; k < indptr[i + 1]; k += THREADS) {
            const int64_t row = indices[k], end = pointers[row + 1];
            const int64_t m = first_from(others, pointers[row], end, from);
            if (m < end) {
                low = others[m] < low ? others[m] : low;
                high = others[end - 1] > high ? others[end - 1] : high;
            }
        }
        least[threadIdx.x] = low;
        most[threadIdx.x] = high;
        __syncthreads();
        for (int half = THREADS / 2; half; half /= 2) {
            if (threadIdx.x < half) {
                low = least[threadIdx.x + half] < low ? least[threadIdx.x + half] : low;
                high = most[threadIdx.x + half] > high ? most[threadIdx.x + half] : high;
                least[threadIdx.x] = low;
                most[threadIdx.x] = high;
            }
            __syncthreads();
        }
        if (least[0] == INT64_MAX)
            break;
        const int64_t start = least[0] / 32, span = most[0] / 32 - start + 1;
        const int words = span < WORDS ? (span > 1 ? (int)span : 1) : WORDS;
        for (int w = threadIdx.x; w < words; w += THREADS)
            set[w] = 0;
        __syncthreads();
        for (int64_t k = indptr[i] + threadIdx.x / TOGETHER; k < indptr[i + 1];
             k += THREADS / TOGETHER) {
            const int64_t row = indices[k], end = pointers[row + 1];
            int64_t m = first_from(others, pointers[row], end, from);
            for (m += threadIdx.x % TOGETHER; m < end; m += TOGETHER) {
                const int64_t word = others[m] / 32 - start;
                if (word >= 0 && word < words)
                    atomicOr(&set[word], 1U << (others[m] % 32));
            }
        }
        __syncthreads();
        const int share = (words + THREADS - 1) / THREADS, first = threadIdx.x * share;
        const int last = first + share < words ? first + share : words;
        int own = 0;
        for (int w = first; w < last; w++)
            own += __popc(set[w]);
        counted[threadIdx.x] = own;
        __syncthreads();
        WRITE
        for (int t = 0; t < THREADS; t++)
            count += counted[t];
        from = 32 * (start + words);
        __syncthreads();
    }
    COUNT
    __syncthreads();
}
"""
_WRITE = """int64_t at = starts[i] + count;
        for (int t = 0; t < (int)threadIdx.x; t++)
            at += counted[t];
        for (int w = first; w < last; w++)
            for (uint32_t bits = set[w]; bits; bits &= bits - 1)
                found[at++] = (INDEX)(32 * (start + w) + __ffs((int)bits) - 1);"""
_COUNT = """if (threadIdx.x == 0)
        counts[i] = count;"""


@cache
def columns_kernel(dtype: str, writes: bool) -> CudaKernel:
    """Return the kernel that counts the columns of each row of a product, or writes them.

    Parameters
    ----------
    dtype : str
        Of indices.
    writes : bool
    """
    body = filled(
        _COLUMNS, WRITE=_WRITE if writes else "", COUNT="" if writes else _COUNT,
        INDEX=C_TYPES[dtype], THREADS=THREADS, TOGETHER=TOGETHER, WORDS=WORDS,
    )  # fmt: skip
    shared = [
        f"uint32_t set[{WORDS}]", f"int64_t least[{THREADS}]", f"int64_t most[{THREADS}]",
        f"int counted[{THREADS}]",
    ]  # fmt: skip
    return row_kernel(["rows"], _of_patterns(dtype, writes), body, THREADS, shared)


_MERGED = """
for (int64_t i = (int64_t)blockIdx.x * ALONE + threadIdx.x; i < rows;
     i += (int64_t)gridDim.x * ALONE) {
    int64_t k = indptr[i], m = pointers[i], at = BEGIN;
    const int64_t end = indptr[i + 1], stop = pointers[i + 1];
    while (k < end || m < stop) {
        const int64_t p = k < end ? (int64_t)indices[k] : INT64_MAX;
        const int64_t q = m < stop ? (int64_t)others[m] : INT64_MAX;
        ENTRIES
        if (KEPT) {
            WRITE
            at++;
        }
        k += p <= q;
        m += q <= p;
    }
    COUNT
}
"""


_COMPARED_ENTRIES = "const ENTRY x = p <= q ? left[k] : ENTRY{0}, y = q <= p ? right[m] : ENTRY{0};"


@cache
def merged_kernel(dtype: str, kind: str, writes: bool, compared: str | None = None) -> CudaKernel:
    """Return the kernel whose threads merge rows of two patterns: it counts the columns, or writes
    them.

    Parameters
    ----------
    dtype : str
        Of indices.
    kind : {"union", "intersection", "neq", "lt", "gt"}
    writes : bool
    compared : str, optional
        The dtype of the entries that are compared.
    """
    kept = {"union": "true", "intersection": "p == q"}.get(kind) or f"x {COMPARED[kind]} y"
    body = filled(
        _MERGED, ENTRIES=_COMPARED_ENTRIES if compared else "", KEPT=kept, ALONE=ALONE,
        ENTRY=entry_type(compared) if compared else "",
        BEGIN="starts[i]" if writes else 0, COUNT="" if writes else "counts[i] = at;",
        WRITE=f"found[at] = ({C_TYPES[dtype]})(p < q ? p : q);" if writes else "",
    )  # fmt: skip
    return row_kernel(["rows"], _of_patterns(dtype, writes, compared), body, ALONE)


def _of_patterns(
    dtype: str, writes: bool, compared: str | None = None
) -> list[tuple[str, str]]:
    """Return the tables of two patterns, with entries that are compared, and of the pattern or the
    counts that they make.
    """
    made = [*index_tables(dtype, "starts"), (C_TYPES[dtype], "found")]
    given = index_tables(dtype, "indices indptr others pointers")
    if compared:
        given += [(f"const {entry_type(compared)}", name) for name in ("left", "right")]
    return [*given, *(made if writes else [("int64_t", "counts")])]


def plan_pattern_pointers(
    planner: Planner, kind: str, x: CsrRows, y: CsrRows
) -> tuple[Operand, Operand]:
    """Emit where the rows of a pattern that two matrices make begin, and how many entries it has: a
    number of int64.
    """
    counts = planner.new("int64", [x.count])
    are_merged = kind == "union" or kind in COMPARED
    if x.count and (are_merged or 0 not in (*x.indices.shape, *y.indices.shape)):
        _plan_pattern(planner, kind, x, y, [counts])
    else:
        planner.clear(counts)
    return plan_ends(planner, counts, x.indptr.dtype)


def plan_ends(planner: Planner, counts: Operand, dtype: str) -> tuple[Operand, Operand]:
    """Emit the pointers of rows with these counts of entries, and the count of all, of int64."""
    n = counts.size
    ends = planner.new("int64", [n + 1])
    planner.clear(ends)
    (step,) = ends.strides
    plan_running(planner, ends.view([n], [step], step), counts, 0, True)
    pointers = planner.new(dtype, [n + 1])
    plan_copy(planner, pointers, ends)
    return pointers, ends.view([], [], n * ends.itemsize)


def plan_pattern_indices(
    planner: Planner, kind: str, x: CsrRows, y: CsrRows, pointers: Operand, count: int
) -> Operand:
    """Emit the indices of a pattern that two matrices make, whose pointers are known."""
    found = planner.new(x.indices.dtype, [count])
    if count:
        _plan_pattern(planner, kind, x, y, [contiguous(planner, pointers), found])
    return found


def _plan_pattern(
    planner: Planner, kind: str, x: CsrRows, y: CsrRows, made: Sequence[Operand]
) -> None:
    """Emit counting the columns of each row, or, given pointers, writing them."""
    n, writes = x.count, len(made) > 1
    entries = [contiguous(planner, z.data) for z in (x, y) if z.data is not None]
    given = [*x.pattern(planner), *y.pattern(planner), *entries, *made]
    if kind == "product":
        kernel, blocks = columns_kernel(x.indices.dtype, writes), min(n, MOST_BLOCKS)
    else:
        compared = entries[0].dtype if entries else None
        kernel = merged_kernel(x.indices.dtype, kind, writes, compared)
        blocks = blocks_for(n, ALONE)
    planner.launch(kernel, [blocks], [n], given)
