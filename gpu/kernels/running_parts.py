"""Cumulative sums of few long lines: blocks add up parts of them.

A thread adds up some neighbours, and the sums of all threads before it in the block are added up
in rounds. Rounding errors of floats are added up beside their sums.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.gpu.kernels.along_axis import memory_type, offset_lines
from symcomp.gpu.kernels.lines import (
    THREADS,
    TOGETHER,
    LineLayout,
    kernel_head,
    number_text,
    tile_length,
)
from symcomp.gpu.planner import MOST_BLOCKS, Planner

# In order, a line takes about 6 cycles an element, 3.4 ns, in which a card moves the 8 bytes of
# float32 of 1800 lines. By parts, as many lines as there are blocks enough for a card are read
# once, fewer twice. So from FEW_LINES on, the order of the processor takes at most twice the time.
FEW_LINES, SHORT, ENOUGH = 1024, 1024, 512


def are_few_long_lines(layout: LineLayout) -> bool:
    """Return whether lines are added up by parts."""
    return layout.lines <= FEW_LINES and layout.count > SHORT


def _add(is_float: bool, t: str, s: str, e: str, x: str, y: str = "") -> str:
    """Return text that adds x to the total s, and the error y of x and that of the sum to e."""
    if not is_float:
        return f"{s} = ({t})({s} + {x});"
    error = f"sum_error{'' if t == 'double' else 'f'}({s}, {x}, both)"
    return f"{{ const {t} both = {s} + {x}; {e} += {f'{y} + ' if y else ''}{error}; {s} = both; }}"


@cache
def parts_kernel(given: str, dtype: str, rank: int, last: bool) -> CudaKernel:
    """Return the kernel whose blocks add up parts of lines, or, at last, write the sums up to each
    element, given the totals of all parts. Totals of floats have rounding errors beside them.

    Parameters
    ----------
    given, dtype : str
        Of the elements and of the results.
    rank : int
        The number of axes of the lines, at least 1.
    last : bool
    """
    t, is_float = C_TYPES[dtype], np.dtype(dtype).kind == "f"
    axes = [f"m{a}" for a in range(1, rank)]
    numbers, head = kernel_head(2, 1, rank)
    for name in ("parts", "length"):
        numbers.append(name)
        head = head.replace("const addresses", f"const int64_t {name}, const addresses")
    work = _last_lines if last else _total_lines
    element = number_text(f"*(const {memory_type(given)} *)at", given, dtype)
    share = tile_length(dtype) // THREADS
    lines = [
        head,
        "{",
        *([f"    __shared__ {t} tile[{THREADS}][{share + 1}];"] if last else []),
        f"    __shared__ {t} sums[{THREADS}];",
        f"    __shared__ {t} errors[{THREADS}];",
        f"    {t} *const totals = ({t} *)data[2];",
        "    for (int64_t b = blockIdx.x; b < lines * parts; b += gridDim.x) {",
        "        const int64_t o = b % lines, part = b / lines, begin = part * length;",
        "        const int64_t end = begin + length < count ? begin + length : count;",
        "        int64_t o0 = 0, o1 = 0;",
        *(f"        {line}" for line in offset_lines("o", ["lines", *axes], 0, [0, 1])),
        f"        {t} sum = 0;",
        f"        {t} error = 0;",
        *(f"        {line}" for line in work(t, is_float, element, dtype)),
        "        __syncthreads();",
        "    }",
        "}",
    ]
    lines = [line for line in lines if is_float or "error" not in line]
    name, text = named(lines, THREADS, TOGETHER)
    return CudaKernel(name, text, tuple(numbers), 3, 0, rank, True, THREADS, True)


def _tree_lines(t: str, is_float: bool) -> list[str]:
    """Return lines that add up the sums of all threads to those of the first one."""
    there = "sums[threadIdx.x + half]", "errors[threadIdx.x + half]"
    return [
        "sums[threadIdx.x] = sum;",
        "errors[threadIdx.x] = error;",
        "__syncthreads();",
        f"for (int half = {THREADS // 2}; half; half /= 2) {{",
        "    if ((int)threadIdx.x < half) {",
        f"        {_add(is_float, t, 'sum', 'error', *there)}",
        "        sums[threadIdx.x] = sum;",
        "        errors[threadIdx.x] = error;",
        "    }",
        "    __syncthreads();",
        "}",
    ]


def _total_lines(t: str, is_float: bool, element: str, dtype: str) -> list[str]:
    """Return lines that write the total of a part."""
    return [
        "#pragma unroll 8",
        f"for (int64_t j = begin + threadIdx.x; j < end; j += {THREADS}) {{",
        "    const char *const at = data[0] + o0 + j * by0;",
        f"    const {t} x = {element};",
        f"    {_add(is_float, t, 'sum', 'error', 'x')}",
        "}",
        *_tree_lines(t, is_float),
        "if (threadIdx.x == 0) {",
        "    totals[2 * (o * parts + part)] = sum;",
        "    totals[2 * (o * parts + part) + 1] = error;",
        "}",
    ]


def _last_lines(t: str, is_float: bool, element: str, dtype: str) -> list[str]:
    """Return lines that write the sums up to each element of a part, tile by tile."""
    s, length = memory_type(dtype), tile_length(dtype)
    share = length // THREADS
    slot = f"tile[k / {share}][k % {share}]"

    def elements(array: int, line: str) -> list[str]:
        return [
            "{",
            f"    char *at = data[{array}] + o{array} + (first + threadIdx.x) * by{array};",
            "    #pragma unroll",
            f"    for (int u = 0; u < {share}; u++, at += {THREADS} * by{array}) {{",
            f"        const int k = u * {THREADS} + threadIdx.x;",
            f"        {line}",
            "    }",
            "}",
        ]

    inside = f"u * {THREADS} < left"
    write = f"if ({inside}) *({s} *)at = ({s}){slot};"
    before = "sums[threadIdx.x - distance]", "errors[threadIdx.x - distance]"
    total = "sum + error" if is_float else "sum"
    return [
        f"for (int64_t k = threadIdx.x; k < part; k += {THREADS}) {{",
        f"    const {t} *const given = totals + 2 * (o * parts + k);",
        f"    {_add(is_float, t, 'sum', 'error', 'given[0]', 'given[1]')}",
        "}",
        *_tree_lines(t, is_float),
        f"{t} base = sums[0];",
        f"{t} base_error = errors[0];",
        f"for (int64_t first = begin; first < end; first += {length}) {{",
        f"    const int n = end - first < {length} ? (int)(end - first) : {length};",
        "    const int left = n - (int)threadIdx.x;  // numbers of slots are constants",
        *(f"    {line}" for line in elements(0, f"{slot} = {inside} ? {element} : 0;")),
        "    __syncthreads();",
        "    sum = 0;",
        "    error = 0;",
        "    #pragma unroll",
        f"    for (int i = 0; i < {share}; i++)",
        f"        {_add(is_float, t, 'sum', 'error', 'tile[threadIdx.x][i]')}",
        "    sums[threadIdx.x] = sum;",
        "    errors[threadIdx.x] = error;",
        "    __syncthreads();",
        f"    for (int distance = 1; distance < {THREADS}; distance *= 2) {{",
        f"        {t} sum_before = 0;",
        f"        {t} error_before = 0;",
        "        if ((int)threadIdx.x >= distance) {",
        f"            sum_before = {before[0]};",
        f"            error_before = {before[1]};",
        "        }",
        "        __syncthreads();",
        f"        {_add(is_float, t, 'sum_before', 'error_before', 'sum', 'error')}",
        "        sums[threadIdx.x] = sum = sum_before;",
        "        errors[threadIdx.x] = error = error_before;",
        "        __syncthreads();",
        "    }",
        "    sum = base;",
        "    error = base_error;",
        "    if (threadIdx.x) {",
        f"        const {t} sum_before = sums[threadIdx.x - 1];",
        f"        {_add(is_float, t, 'sum', 'error', 'sum_before', 'errors[threadIdx.x - 1]')}",
        "    }",
        f"    const {t} whole = sums[{THREADS - 1}];",
        f"    const {t} whole_error = errors[{THREADS - 1}];",
        f"    {_add(is_float, t, 'base', 'base_error', 'whole', 'whole_error')}",
        "    #pragma unroll",
        f"    for (int i = 0; i < {share}; i++) {{",
        f"        {_add(is_float, t, 'sum', 'error', 'tile[threadIdx.x][i]')}",
        f"        tile[threadIdx.x][i] = {total};",
        "    }",
        "    __syncthreads();",
        *(f"    {line}" for line in elements(1, write)),
        "}",
    ]


def plan_running_parts(planner: Planner, layout: LineLayout) -> None:
    """Emit cumulative sums of few long lines; one part of each is enough where they are many."""
    (x, z), lines, tile = layout.arrays, layout.lines, tile_length(layout.arrays[1].dtype)
    tiles = -(-layout.count // tile)
    length = tile * -(-tiles // max(1, ENOUGH // lines))
    parts = -(-layout.count // length)
    totals = planner.new(z.dtype if z.dtype != "float16" else "float32", [lines, parts, 2])
    numbers = [*layout.numbers(), parts, length]
    for last in (False, True) if parts > 1 else (True,):
        kernel = parts_kernel(x.dtype, z.dtype, len(layout.shape), last)
        blocks = [min(lines * parts, MOST_BLOCKS)]
        planner.launch(kernel, blocks, numbers, [x, z, totals], layout.rows(1))
