"""Sums and extremes of the rows of an array between pointers, and which segment a row is of.

Lanes of a warp make a result, as many as segments have rows on average: each walks along its share
of a segment, and their totals are joined in one order. Rounding errors of sums of floats are added
up beside them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import WARP, CudaKernel
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import contiguous
from symcomp.gpu.kernels.sparse_rows import ALONE, filled, index_tables, row_kernel
from symcomp.gpu.planner import Operand, Planner, blocks_for

_SEGMENTS = """
const int lane = threadIdx.x % LANES;
const int64_t beyond = (int64_t)gridDim.x * GROUPS;
int64_t r = (int64_t)blockIdx.x * GROUPS + threadIdx.x / LANES;
PLACE
for (; r < results; r += beyond) {
    const int64_t begin = indptr[SEGMENT], end = indptr[SEGMENT + 1];
    const GIVEN *const x = given + COLUMN;
    TYPE total = START;
    ERROR
    for (int64_t k = begin + lane; k < end; k += LANES) {
        const TYPE next = (TYPE)x[k * WIDTH];
        ADD
    }
    JOIN
    if (lane == 0)
        made[r] = RESULT;
    NEXT
}
"""
# Divisions are calls, around which registers are saved: there are none in the loop.
_PLACE = """int64_t s = r / width, c = r - s * width;
const int64_t rows_beyond = beyond / width, columns_beyond = beyond - rows_beyond * width;"""
_NEXT = """s += rows_beyond;
    c += columns_beyond;
    if (c >= width) {
        c -= width;
        s++;
    }"""
_JOIN = """#pragma unroll
    for (int bit = 1; bit < LANES; bit *= 2) {
        const TYPE next = from_lane<LANES>(total, bit);
        MERGE
        ADD
    }"""


@cache
def segments_kernel(
    kind: str, given: str, dtype: str, index_dtype: str, lanes: int, is_vector: bool
) -> CudaKernel:
    """Return the kernel of sums, or extremes, of segments.

    Parameters
    ----------
    kind : {"sum", "max", "min"}
    given, dtype : str
        Of the elements and of the results.
    index_dtype : str
        Of the pointers.
    lanes : int
        That make a result.
    is_vector : bool
        Whether a row is one element.
    """
    t, kind_of_number = C_TYPES[dtype], np.dtype(dtype).kind
    start, result, error, merge = "0", "total", "", ""
    if kind != "sum":
        # Lanes without an element have the first one of the segment.
        start = "begin < end ? x[begin * WIDTH] : 0"
        is_nan = "(total != total) | " if kind_of_number == "f" else ""
        add = f"total = {is_nan}(total {'>' if kind == 'max' else '<'} next) ? total : next;"
    elif kind_of_number == "f":
        rest = f"sum_error{'' if t == 'double' else 'f'}(total, next, both)"
        add = f"{{ const TYPE both = total + next; error += {rest}; total = both; }}"
        result, error = "total + error", "TYPE error = 0;"
        merge = "error += from_lane<LANES>(error, bit);"
    else:
        add = "total = (TYPE)((uint64_t)total + (uint64_t)next);"  # signed ones would not wrap
    lines = filled(
        _SEGMENTS, START=start, RESULT=result, ERROR=error, JOIN=_JOIN if lanes > 1 else "",
        MERGE=merge, ADD=add, PLACE="" if is_vector else _PLACE, NEXT="" if is_vector else _NEXT,
        SEGMENT="r" if is_vector else "s", COLUMN="0" if is_vector else "c",
        WIDTH="1" if is_vector else "width",
        GROUPS=ALONE // lanes, LANES=lanes, GIVEN=C_TYPES[given], TYPE=t,
    )  # fmt: skip
    tables = [(f"const {C_TYPES[given]}", "given"), *index_tables(index_dtype, "indptr")]
    numbers = ["results"] if is_vector else ["results", "width"]
    return row_kernel(numbers, [*tables, (t, "made")], lines, ALONE)


def plan_segments(
    planner: Planner, kind: str, x: Operand, indptr: Operand, dtype: str
) -> Operand:
    """Emit the sums, or extremes, of the rows of ``x`` between neighbouring pointers.

    Parameters
    ----------
    kind : {"sum", "max", "min"}
    x : Operand
        (n, ...)
    indptr : Operand
        (m + 1,): they ascend, and end at n or before.
    dtype : str
        Of the results, (m, ...).
    """
    m = indptr.shape[0] - 1
    found = planner.new(dtype, [m, *x.shape[1:]])
    if not found.size:
        return found
    if not x.size:
        planner.clear(found)
        return found
    given, width = contiguous(planner, x), math.prod(x.shape[1:])
    # Complex numbers are added up as rows of two.
    parts = 2 if dtype in COMPLEX else 1
    kinds = [COMPLEX.get(one, one) for one in (given.dtype, dtype)]
    lanes = 1
    while lanes < WARP and lanes * m < x.shape[0]:
        lanes *= 2
    width, results = width * parts, found.size * parts
    kernel = segments_kernel(kind, *kinds, indptr.dtype, lanes, width == 1)
    numbers = [results] if width == 1 else [results, width]
    blocks = [blocks_for(results * lanes, ALONE)]
    planner.launch(kernel, blocks, numbers, [given, contiguous(planner, indptr), found])
    return found


@cache
def numbers_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that finds which segment each row is of, by pointers of a dtype."""
    body = f"""
for (int64_t k = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; k < n;
     k += (int64_t)gridDim.x * {ALONE})
    made[k] = ({C_TYPES[dtype]})(first_from(indptr, 0, pointers, k + 1) - 1);"""
    tables = [*index_tables(dtype, "indptr"), (C_TYPES[dtype], "made")]
    return row_kernel(["n", "pointers"], tables, body, ALONE)


def plan_segment_numbers(planner: Planner, indptr: Operand, n: int) -> Operand:
    """Emit, for each of n rows, which segment it is of."""
    found, pointers = planner.new(indptr.dtype, [n]), indptr.shape[0]
    if n and pointers < 2:
        raise ShapeError(f"sparse: {pointers} pointers for {n} entries")
    if n:
        kernel, given = numbers_kernel(indptr.dtype), contiguous(planner, indptr)
        planner.launch(kernel, [blocks_for(n, ALONE)], [n, pointers], [given, found])
    return found
