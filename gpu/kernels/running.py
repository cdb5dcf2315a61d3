"""Cumulative sums and products, and linear recurrences, along axes, in the order of the processor.

A block takes some lines and walks along them in tiles, which its threads read and write together
and one thread a line computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from symcomp.codegen.cuda.text import WARP, CudaKernel, named
from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.along_axis import memory_type, offset_lines, work_type
from symcomp.gpu.kernels.lines import (
    THREADS,
    TOGETHER,
    LineLayout,
    kernel_head,
    line_layout,
    number_text,
    tile_length,
)
from symcomp.gpu.kernels.running_parts import are_few_long_lines, plan_running_parts
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner

# A block takes the most lines that leave this many blocks; more than WARP only of short lines.
MANY_BLOCKS, MOST_LINES, LEAST_LINES = 256, 128, 4


class _Tiles:
    """Text that moves tiles of lines between arrays and shared memory, by the threads of a block:
    each has the same slots of all tiles, but where arrays lie in different directions.
    """

    def __init__(self, dtype: str, lines: int, rank: int, across: Sequence[bool]) -> None:
        self.lines, self.rank, self.across = lines, rank, across
        self.length, self.each = tile_length(dtype) // lines, tile_length(dtype) // THREADS

    def _slots(self, array: int, row_text: str, body: Sequence[str], at_end: str) -> list[str]:
        """Execute lines for the slots ``u`` of a thread, each of a ``row`` and a ``place``, and
        others before and after each row. PLACES threads have a row at a time, and others ROWS.
        """
        places = THREADS // self.lines if self.across[array] else min(self.length, THREADS)
        rows, turns = THREADS // places, self.length // places
        row, place = f"threadIdx.x / {places}", f"threadIdx.x % {places}"
        if self.across[array]:
            row, place = f"threadIdx.x % {rows}", f"threadIdx.x / {rows}"
        lines = [
            "{",
            f"    const int own_row = {row}, own_place = {place};",
            f"    {row_text}",
            "    #pragma unroll",
            f"    for (int v = 0; v < {self.lines // rows}; v++) {{",
            "        const int row = own_row + v * ROWS;",
            "        #pragma unroll",
            f"        for (int w = 0; w < {turns}; w++) {{",
            f"            const int u = v * {turns} + w, place = own_place + w * PLACES;",
            *(f"            {line}" for line in body),
            "        }",
            f"        {at_end}",
            "    }",
            "}",
        ]
        kept = [line for line in lines if line.strip()]
        return [line.replace("PLACES", str(places)).replace("ROWS", str(rows)) for line in kept]

    def keep(self, array: int, value: str) -> list[str]:
        """Put a value for each slot ``u`` into the tile of an input."""
        return self._slots(array, "", [f"tile{array}[row][place] = {value};"], "")

    def elements(self, array: int, start: str, line: str) -> list[str]:
        """Execute a line for the elements, ``at`` an address, of the tile that begins at ``start``.
        """
        first = f"({start} + own_place) * by{array}"
        body = [
            f"char *const at = line + w * PLACES * by{array};",
            "if (row < rows && place < left)",
            f"    {line}",
        ]
        if self.rank > 1:
            body[0] = body[0].replace("line +", f"line + bases[{array}][row] +")
            found = self._slots(array, f"char *const line = data[{array}] + {first};", body, "")
        else:
            begin = f"data[{array}] + (o + own_row) * step0[{array}] + {first}"
            next_row = f"line += ROWS * step0[{array}];"
            found = self._slots(array, f"char *line = {begin};", body, next_row)
        rest = f"count - {start}"
        left = f"const int left = {rest} < {self.length} ? (int)({rest}) : {self.length};"
        return [found[0], f"    {left}", *found[1:]]


def _along_lines(length: int, batch: int, inputs: int, t: str, step: Sequence[str]) -> list[str]:
    """Return lines that compute the tile of a line, which takes the place of its last input. They
    read some elements before they need the first: reading takes as long as some steps.
    """

    def read(a: int, i: str) -> str:
        return f"tile{a}[own][place{i}]"

    last, given = inputs - 1, range(inputs)
    return [
        f"const int n = count - first < {length} ? (int)(count - first) : {length};",
        "int place = 0;",
        f"for (; place + {batch} <= n; place += {batch}) {{",
        f"    {t} {', '.join(f'next{a}[{batch}]' for a in given)};",
        "    #pragma unroll",
        f"    for (int i = 0; i < {batch}; i++) {{",
        *(f"        next{a}[i] = {read(a, ' + i')};" for a in given),
        "    }",
        "    #pragma unroll",
        f"    for (int i = 0; i < {batch}; i++) {{",
        *(f"        const {t} x{a} = next{a}[i];" for a in given),
        *(f"        {line}".replace("FIRST", "first + place + i == 0") for line in step),
        f"        {read(last, ' + i')} = total;",
        "    }",
        "}",
        "for (; place < n; place++) {",
        *(f"    const {t} x{a} = {read(a, '')};" for a in given),
        *(f"    {line}".replace("FIRST", "first + place == 0") for line in step),
        f"    {read(last, '')} = total;",
        "}",
    ]


def _line_kernel(
    given: Sequence[str],
    dtype: str,
    lines: int,
    rank: int,
    across: Sequence[bool],
    start: int,
    step: Sequence[str],
) -> CudaKernel:
    """Return the kernel that computes lines in order.

    Parameters
    ----------
    given : sequence of str
        The dtypes of the inputs.
    dtype : str
        Of the results.
    lines : int
        Of a block.
    rank : int
        The number of axes of the lines, at least 1.
    across : sequence of bool
        See ``LineLayout``.
    start : int
        The total before the first step.
    step : sequence of str
        Lines that compute ``total`` from itself and the elements ``x0`` ... of the inputs; FIRST is
        whether these are the first ones.
    """
    t, s, inputs = work_type(dtype), memory_type(dtype), len(given)
    tiles = _Tiles(dtype, lines, rank, across)
    each, length = tiles.each, tiles.length
    numbers, head = kernel_head(inputs + 1, 0, rank)

    def read(start: str) -> list[str]:
        kinds = [memory_type(d) for d in given]
        texts = [f"held{a}[u] = *(const {kind} *)at;" for a, kind in enumerate(kinds)]
        return [line for a, text in enumerate(texts) for line in tiles.elements(a, start, text)]

    wait = "__syncthreads();"
    kept = []
    for a, d in enumerate(given):
        kept += tiles.keep(a, number_text(f"held{a}[u]", d, dtype))
    write = f"*({s} *)at = ({s})tile{inputs - 1}[row][place];"
    body = [
        head,
        "{",
        *(f"    __shared__ {t} tile{a}[{lines}][{length + 1}];" for a in range(inputs)),
        *([f"    __shared__ int64_t bases[{inputs + 1}][{lines}];"] if rank > 1 else []),
        # Blocks with numbers this far apart are on one multiprocessor. Threads of different warps
        # have their lines, so that all schedulers are busy.
        f"    const int own = threadIdx.x ^ (blockIdx.x >> 7) % {THREADS // WARP} * {WARP};",
        f"    for (int64_t o = (int64_t)blockIdx.x * {lines}; o < lines;",
        f"         o += (int64_t)gridDim.x * {lines}) {{",
        f"        const int rows = lines - o < {lines} ? (int)(lines - o) : {lines};",
        *(f"        {memory_type(d)} held{a}[{each}];" for a, d in enumerate(given)),
        f"        {t} total = {t}{{{start}}};",
        *(f"        {line}" for line in (*_offsets(inputs + 1, rank), *read("0"))),
        f"        for (int64_t first = 0; first < count; first += {length}) {{",
        *(f"            {line}" for line in (*kept, wait, *read(f"(first + {length})"))),
        "            if (own < rows) {",
        *(f"                {line}" for line in _along_lines(length, each, inputs, t, step)),
        "            }",
        f"            {wait}",
        *(f"            {line}" for line in tiles.elements(inputs, "first", write)),
        *([f"            {wait}"] if across[-1] != across[-2] else []),
        "        }",
        "    }",
        "}",
    ]
    # Where two inputs are read, two blocks have as many bytes in flight, and addresses of both.
    name, text = named(body, THREADS, TOGETHER if inputs == 1 else 2)
    return CudaKernel(name, text, tuple(numbers), inputs + 1, 0, rank, True, THREADS, True)


def _offsets(arrays: int, rank: int) -> list[str]:
    """Return lines that put the offsets of the lines of a block into ``bases``, of several axes."""
    if rank == 1:
        return []
    axes, given = [f"m{a}" for a in range(1, rank)], range(arrays)
    return [
        "__syncthreads();",
        "if ((int)threadIdx.x < rows) {",
        f"    int64_t line = o + threadIdx.x, {', '.join(f'o{a} = 0' for a in given)};",
        *(f"    {text}" for text in offset_lines("line", ["lines", *axes], 0, given)),
        *(f"    bases[{a}][threadIdx.x] = o{a};" for a in given),
        "}",
        "__syncthreads();",
    ]


def _lines_of_block(lines: int, count: int, dtype: str) -> int:
    """Return how many lines a block of a kernel of lines computes."""
    found = MOST_LINES
    while found > LEAST_LINES and (
        lines < found * MANY_BLOCKS or (found > WARP and count > tile_length(dtype) // found)
    ):
        found //= 2
    return found


@cache
def running_kernel(
    given: str, dtype: str, adds: bool, lines: int, rank: int, across: tuple[bool, ...]
) -> CudaKernel:
    """Return the kernel of cumulative sums or products in order; see ``_line_kernel``."""
    total = f"total {'+' if adds else '*'} x0"
    total = f"half_of({total})" if dtype == "float16" else f"({work_type(dtype)})({total})"
    if given in COMPLEX:  # a product with 1 would make NaN of infinite numbers
        total = f"FIRST ? x0 : {total}"
    step = [f"total = {total};"]
    return _line_kernel([given], dtype, lines, rank, across, 0 if adds else 1, step)


@cache
def recurrence_kernel(dtype: str, lines: int, rank: int, across: tuple[bool, ...]) -> CudaKernel:
    """Return the kernel of linear recurrences, z_k = a_k z_{k-1} + b_k; see ``_line_kernel``."""
    t, product, total = work_type(dtype), "x0 * total", "product + x1"
    if dtype == "float16":
        product, total = f"half_of({product})", f"half_of({total})"
    # The first rate plays no part, even if it is infinite.
    step = [f"const {t} product = ({t})({product});", f"total = FIRST ? x1 : ({t})({total});"]
    return _line_kernel([dtype, dtype], dtype, lines, rank, across, 0, step)


def _plan_lines(planner: Planner, kernel: CudaKernel, layout: LineLayout, lines: int) -> None:
    blocks = [min(-(-layout.lines // lines), MOST_BLOCKS)]
    planner.launch(kernel, blocks, layout.numbers(), layout.arrays, layout.rows())


def plan_running(planner: Planner, z: Operand, x: Operand, axis: int, adds: bool) -> None:
    """Emit cumulative sums or products along an axis, which go to ``z``."""
    if z.size == 0:
        return
    layout = line_layout([x, z], axis)
    if adds and z.dtype not in COMPLEX and are_few_long_lines(layout):
        plan_running_parts(planner, layout)
        return
    lines, rank = _lines_of_block(layout.lines, layout.count, z.dtype), len(layout.shape)
    kernel = running_kernel(x.dtype, z.dtype, adds, lines, rank, layout.across)
    _plan_lines(planner, kernel, layout, lines)


def plan_recurrence(planner: Planner, a: Operand, b: Operand, axis: int) -> Operand:
    """Emit a linear recurrence along an axis, with the rates ``a``; return its results."""
    if a.shape != b.shape:
        raise ShapeError(f"{planner.label}: shapes {a.shape} and {b.shape} differ")
    z = planner.new(b.dtype, b.shape)
    if z.size:
        layout = line_layout([a, b, z], axis)
        lines = _lines_of_block(layout.lines, layout.count, z.dtype)
        kernel = recurrence_kernel(z.dtype, lines, len(layout.shape), layout.across)
        _plan_lines(planner, kernel, layout, lines)
    return z
