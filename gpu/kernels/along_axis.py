"""Positions of extremes, products of complex numbers, cumulative sums and products, and linear
recurrences, along axes.

A block makes a result of the first two, by a tree; a thread accumulates a line, in its order, or,
in few long lines of integers, a block a part of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX, converted
from symcomp.errors import ShapeError
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner, blocks_for

THREADS, ALONE = 128, 128
# Integers are added up in parts of PART elements where there are no more than FEW_LINES lines.
PART, FEW_LINES = 8 * ALONE, 1024


def _stored(dtype: str) -> str:
    return "_Float16" if dtype == "float16" else C_TYPES[dtype]


def offset_lines(
    index: str, lengths: Sequence[str], first: int, arrays: Sequence[int]
) -> list[str]:
    """Return lines that add the offset of an element, by its number, to ``o`` of each array."""
    lines = [f"int64_t rest_{index} = {index};"]
    for axis in range(len(lengths) - 1, -1, -1):
        at = f"rest_{index} % {lengths[axis]}" if axis else f"rest_{index}"
        lines += [f"o{a} += ({at}) * step{first + axis}[{a}];" for a in arrays]
        lines += [f"rest_{index} /= {lengths[axis]};"] if axis else []
    return lines


@cache
def extreme_kernel(dtype: str, largest: bool, kept: int, reduced: int) -> CudaKernel:
    """Return the kernel that finds the position of the first extreme; NaN is one.

    Parameters
    ----------
    dtype : str
    largest : bool
        Whether the largest element is looked for, else the smallest.
    kept, reduced : int
        The numbers of axes, at least 1.
    """
    t, is_float = C_TYPES[dtype], np.dtype(dtype).kind == "f"
    sign = ">" if largest else "<"
    better = f"(x {sign} y)"
    equal = "x == y"
    if is_float:
        better = f"((x != x) & (y == y)) | ({better} & (y == y))"
        equal = "(x == y) | ((x != x) & (y != y))"
    numbers, head, outer, inner = _of_results(kept, reduced)
    take = f"if (place < 0 || ({better}) || (({equal}) && at < place))"
    lines = [
        *head,
        f"    __shared__ {t} best[{THREADS}];",
        f"    __shared__ int64_t where[{THREADS}];",
        "    for (int64_t o = blockIdx.x; o < results; o += gridDim.x) {",
        "        int64_t o0 = 0, place = -1;",
        f"        {t} y = 0;",
        *(f"        {line}" for line in outer),
        f"        for (int64_t j = threadIdx.x; j < count; j += {THREADS}) {{",
        "            int64_t o1 = o0;",
        *(f"            {line}" for line in inner),
        f"            const {t} x = ({t})*(const {_stored(dtype)} *)(data[0] + o1);",
        "            const int64_t at = j;",
        f"            {take} {{ y = x; place = at; }}",
        "        }",
        "        best[threadIdx.x] = y;",
        "        where[threadIdx.x] = place;",
        "        __syncthreads();",
        f"        for (int half = {THREADS // 2}; half; half /= 2) {{",
        "            if (threadIdx.x < half && where[threadIdx.x + half] >= 0) {",
        f"                const {t} x = best[threadIdx.x + half];",
        "                const int64_t at = where[threadIdx.x + half];",
        f"                {take} {{ y = x; place = at; }}",
        "                best[threadIdx.x] = y;",
        "                where[threadIdx.x] = place;",
        "            }",
        "            __syncthreads();",
        "        }",
        "        if (threadIdx.x == 0)",
        "            ((int64_t *)data[1])[o] = place;",
        "        __syncthreads();",
        "    }",
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, tuple(numbers), 2, 0, kept + reduced, True, THREADS, True)


def _of_results(kept: int, reduced: int) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the names of the numbers of a kernel whose blocks make a result each; its head; and
    the lines that find where the elements of result ``o`` begin, and where element ``j`` lies.
    """
    numbers = ["results", "count", *(f"m{a}" for a in range(1, kept))]
    numbers += [f"r{a}" for a in range(1, reduced)]
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append("const addresses<2> data")
    parameters += [f"const steps<int64_t, 2> step{a}" for a in range(kept + reduced)]
    outer = offset_lines("o", ["results", *(f"m{a}" for a in range(1, kept))], 0, [0])
    inner = offset_lines("j", ["count", *(f"r{a}" for a in range(1, reduced))], kept, [1])
    inner = [line.replace("[1]", "[0]") for line in inner]  # o1 is where element j lies in x
    return numbers, [f'extern "C" __global__ void NAME({", ".join(parameters)})', "{"], outer, inner


def plan_extreme(planner: Planner, x: Operand, axes: Sequence[int], largest: bool) -> Operand:
    """Emit the positions of the first extremes, in the order of ``axes``."""
    kept = [a for a in range(x.ndim) if a not in axes]
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(
            f"{planner.label}: an array of shape {x.shape} is empty along axes {tuple(axes)}"
        )
    z = planner.new("int64", [x.shape[a] for a in kept])
    kernel = extreme_kernel(x.dtype, largest, max(len(kept), 1), max(len(axes), 1))
    _plan_results(planner, kernel, x, z, kept, axes)
    return z


def _plan_results(
    planner: Planner,
    kernel: CudaKernel,
    x: Operand,
    z: Operand,
    kept: Sequence[int],
    axes: Sequence[int],
) -> None:
    """Emit a kernel whose blocks make a result each, of the elements along ``axes``."""
    if z.size == 0:
        return
    outer = [(x.shape[a], x.strides[a]) for a in kept] or [(1, 0)]
    inner = [(x.shape[a], x.strides[a]) for a in axes] or [(1, 0)]
    count = int(np.prod([n for n, _ in inner], dtype=np.int64))
    numbers = [z.size, count, *(n for n, _ in outer[1:]), *(n for n, _ in inner[1:])]
    rows = [[step, 0] for _, step in (*outer, *inner)]
    planner.launch(kernel, [min(z.size, MOST_BLOCKS)], numbers, [x, z], rows)


@cache
def complex_product_kernel(
    given: str, work: str, dtype: str, kept: int, reduced: int
) -> CudaKernel:
    """Return the kernel of products of complex numbers.

    Parameters
    ----------
    given, work, dtype : str
        Of the elements, of the products, and of the results.
    kept, reduced : int
        The numbers of axes, at least 1.
    """
    s, t, z = (_complex_type(d) if d in COMPLEX else C_TYPES[d] for d in (given, work, dtype))
    numbers, head, outer, inner = _of_results(kept, reduced)
    part = C_TYPES[COMPLEX[work]]
    element = f"*(const {s} *)(data[0] + o1)"
    if given in COMPLEX:
        element = f"{t}{{({part})({element}).re, ({part})({element}).im}}"
    else:
        element = f"{t}{{({part})({element}), 0}}"
    narrow = C_TYPES[COMPLEX[dtype]]
    lines = [
        *head,
        f"    __shared__ {t} made[{THREADS}];",
        "    for (int64_t o = blockIdx.x; o < results; o += gridDim.x) {",
        "        int64_t o0 = 0;",
        f"        {t} product = {t}{{1}};",
        *(f"        {line}" for line in outer),
        # No element is multiplied by 1, which would make NaN of infinite ones.
        f"        for (int64_t j = threadIdx.x; j < count; j += {THREADS}) {{",
        "            int64_t o1 = o0;",
        *(f"            {line}" for line in inner),
        f"            const {t} x = {element};",
        f"            product = j < {THREADS} ? x : product * x;",
        "        }",
        "        made[threadIdx.x] = product;",
        "        __syncthreads();",
        f"        for (int half = {THREADS // 2}; half; half /= 2) {{",
        "            if (threadIdx.x < half && threadIdx.x + half < count)",
        "                made[threadIdx.x] = made[threadIdx.x] * made[threadIdx.x + half];",
        "            __syncthreads();",
        "        }",
        "        if (threadIdx.x == 0)",
        f"            (({z} *)data[1])[o] = {z}{{({narrow})made[0].re, ({narrow})made[0].im}};",
        "        __syncthreads();",
        "    }",
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, tuple(numbers), 2, 0, kept + reduced, True, THREADS, True)


def _complex_type(dtype: str) -> str:
    return f"complex_number<{C_TYPES[COMPLEX[dtype]]}>"


def plan_complex_product(
    planner: Planner, x: Operand, axes: Sequence[int], work: str, dtype: str
) -> Operand:
    """Emit the products of the elements along axes, computed in the dtype ``work``."""
    kept = [a for a in range(x.ndim) if a not in axes]
    z = planner.new(dtype, [x.shape[a] for a in kept])
    ranks = max(len(kept), 1), max(len(axes), 1)
    kernel = complex_product_kernel(x.dtype, work, dtype, *ranks)
    _plan_results(planner, kernel, x, z, kept, axes)
    return z


def _element(given: str, dtype: str, offset: str) -> str:
    """Return an element of the first array, as a number of another dtype."""
    value = f"(({C_TYPES[given]})*(const {_stored(given)} *)(data[0] + {offset}))"
    return converted(value, given, dtype)


@cache
def running_kernel(given: str, dtype: str, adds: bool, rank: int) -> CudaKernel:
    """Return the kernel of cumulative sums or products.

    Parameters
    ----------
    given, dtype : str
        Of the elements and of the results.
    adds : bool
        Whether elements are added, else multiplied.
    rank : int
        The number of axes of the lines, at least 1.
    """
    t = _complex_type(dtype) if dtype in COMPLEX else C_TYPES[dtype]
    s = t if dtype in COMPLEX else _stored(dtype)
    numbers = ["lines", "count", "from", "to", *(f"m{a}" for a in range(1, rank))]
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append("const addresses<2> data")
    parameters += [f"const steps<int64_t, 2> step{a}" for a in range(rank)]
    outer = offset_lines("o", ["lines", *(f"m{a}" for a in range(1, rank))], 0, [0, 1])
    total = f"total {'+' if adds else '*'} x"
    total = f"half_of({total})" if dtype == "float16" else f"({t})({total})"
    if given in COMPLEX:
        value = f"*(const {t} *)(data[0] + o0)"
        total = f"j ? total {'+' if adds else '*'} x : x"
    else:
        value = _element(given, dtype, "o0")
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        f"    for (int64_t o = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; o < lines;",
        f"         o += (int64_t)gridDim.x * {ALONE}) {{",
        "        int64_t o0 = 0, o1 = 0;",
        *(f"        {line}" for line in outer),
        f"        {t} total = {t}{{{0 if adds else 1}}};",
        "        for (int64_t j = 0; j < count; j++, o0 += from, o1 += to) {",
        f"            const {t} x = {value};",
        f"            total = {total};",
        f"            *({s} *)(data[1] + o1) = ({s})total;",
        "        }",
        "    }",
        "}",
    ]
    name, text = named(lines, ALONE)
    return CudaKernel(name, text, tuple(numbers), 2, 0, rank, True, ALONE, False)


@cache
def parts_kernel(given: str, dtype: str, rank: int, last: bool) -> CudaKernel:
    """Return the kernel whose blocks add up parts of lines of integers, or, at last, write the sums
    up to each element, given the totals of all parts.

    Parameters
    ----------
    given, dtype : str
        Of the elements and of the results.
    rank : int
        The number of axes of the lines, at least 1.
    last : bool
    """
    t, axes = C_TYPES[dtype], [f"m{a}" for a in range(1, rank)]
    numbers = ["lines", "count", "from", "to", *axes]
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append("const addresses<3> data")
    parameters += [f"const steps<int64_t, 3> step{a}" for a in range(rank)]
    value, share = _element(given, dtype, "o0 + j * from"), PART // ALONE
    own = [
        f"const int64_t first = (b % parts) * {PART} + threadIdx.x * {share};",
        f"const int64_t end = first + {share} < count ? first + {share} : count;",
        f"{t} own = 0;",
        "for (int64_t j = first; j < end; j++)",
        f"    own = ({t})(own + {value});",
        "sums[threadIdx.x] = own;",
    ]
    total = [
        "__syncthreads();",
        f"for (int half = {ALONE // 2}; half; half /= 2) {{",
        "    if ((int)threadIdx.x < half)",
        f"        SUMS[threadIdx.x] = ({t})(SUMS[threadIdx.x] + SUMS[threadIdx.x + half]);",
        "    __syncthreads();",
        "}",
    ]
    if last:
        work = [
            *own,
            f"{t} before = 0;",
            f"for (int64_t k = b - b % parts + threadIdx.x; k < b; k += {ALONE})",
            f"    before = ({t})(before + totals[k]);",
            "bases[threadIdx.x] = before;",
            *(line.replace("SUMS", "bases") for line in total),
            f"for (int distance = 1; distance < {ALONE}; distance *= 2) {{",
            "    before = (int)threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;",
            "    __syncthreads();",
            f"    sums[threadIdx.x] = ({t})(sums[threadIdx.x] + before);",
            "    __syncthreads();",
            "}",
            f"{t} total = ({t})(bases[0] + sums[threadIdx.x] - own);",
            "for (int64_t j = first; j < end; j++) {",
            f"    total = ({t})(total + {value});",
            f"    *({t} *)(data[1] + o1 + j * to) = total;",
            "}",
        ]
    else:
        sums = [line.replace("SUMS", "sums") for line in total]
        work = [*own, *sums, "if (threadIdx.x == 0)", "    totals[b] = sums[0];"]
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        f"    __shared__ {t} sums[{ALONE}]{f', bases[{ALONE}]' if last else ''};",
        f"    {t} *const totals = ({t} *)data[2];",
        f"    const int64_t parts = (count + {PART - 1}) / {PART};",
        "    for (int64_t b = blockIdx.x; b < lines * parts; b += gridDim.x) {",
        "        int64_t o = b / parts, o0 = 0, o1 = 0;",
        *(f"        {line}" for line in offset_lines("o", ["lines", *axes], 0, [0, 1])),
        *(f"        {line}" for line in work),
        "        __syncthreads();",
        "    }",
        "}",
    ]
    name, text = named(lines, ALONE)
    return CudaKernel(name, text, tuple(numbers), 3, 0, rank, True, ALONE, True)


def plan_running(planner: Planner, z: Operand, x: Operand, axis: int, adds: bool) -> None:
    """Emit cumulative sums or products along an axis, which go to ``z``."""
    if z.size == 0:
        return
    others = [a for a in range(x.ndim) if a != axis]
    outer = [(x.shape[a], x.strides[a], z.strides[a]) for a in others] or [(1, 0, 0)]
    lines, count = math.prod(n for n, _, _ in outer), x.shape[axis]
    numbers = [lines, count, x.strides[axis], z.strides[axis]]
    numbers += [n for n, _, _ in outer[1:]]
    if adds and np.dtype(z.dtype).kind in "iu" and lines <= FEW_LINES and count > PART:
        parts = lines * -(-count // PART)
        totals, blocks = planner.new(z.dtype, [parts]), [min(parts, MOST_BLOCKS)]
        rows = [[one, other, 0] for _, one, other in outer]
        for last in (False, True):
            kernel = parts_kernel(x.dtype, z.dtype, len(outer), last)
            planner.launch(kernel, blocks, numbers, [x, z, totals], rows)
        return
    rows = [[one, other] for _, one, other in outer]
    kernel = running_kernel(x.dtype, z.dtype, adds, len(outer))
    planner.launch(kernel, [blocks_for(lines, ALONE)], numbers, [x, z], rows)


@cache
def recurrence_kernel(dtype: str, rank: int) -> CudaKernel:
    """Return the kernel of linear recurrences, z_k = a_k z_{k-1} + b_k.

    Parameters
    ----------
    dtype : str
    rank : int
        The number of axes of the lines, at least 1.
    """
    t = _complex_type(dtype) if dtype in COMPLEX else C_TYPES[dtype]
    s = t if dtype in COMPLEX else _stored(dtype)
    steps = ("rate_step", "step", "to")
    numbers = ["lines", "count", *steps, *(f"m{a}" for a in range(1, rank))]
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append("const addresses<3> data")
    parameters += [f"const steps<int64_t, 3> step{a}" for a in range(rank)]
    outer = offset_lines("o", ["lines", *(f"m{a}" for a in range(1, rank))], 0, [0, 1, 2])
    product = "rate * total"
    total = "product + x"
    if dtype == "float16":
        product, total = f"half_of({product})", f"half_of({total})"
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        f"    for (int64_t o = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; o < lines;",
        f"         o += (int64_t)gridDim.x * {ALONE}) {{",
        "        int64_t o0 = 0, o1 = 0, o2 = 0;",
        *(f"        {line}" for line in outer),
        f"        {t} total = {t}{{0}};",
        "        for (int64_t j = 0; j < count; j++, o0 += rate_step, o1 += step, o2 += to) {",
        f"            const {t} rate = ({t})*(const {s} *)(data[0] + o0);",
        f"            const {t} x = ({t})*(const {s} *)(data[1] + o1);",
        f"            const {t} product = ({t})({product});",
        # The first rate plays no part, even if it is infinite.
        f"            total = j ? ({t})({total}) : x;",
        f"            *({s} *)(data[2] + o2) = ({s})total;",
        "        }",
        "    }",
        "}",
    ]
    name, text = named(lines, ALONE)
    return CudaKernel(name, text, tuple(numbers), 3, 0, rank, True, ALONE, False)


def plan_recurrence(planner: Planner, a: Operand, b: Operand, axis: int) -> Operand:
    """Emit a linear recurrence along an axis, with the rates ``a``; return its results."""
    if a.shape != b.shape:
        raise ShapeError(f"{planner.label}: shapes {a.shape} and {b.shape} differ")
    z = planner.new(b.dtype, b.shape)
    if z.size:
        others = [i for i in range(b.ndim) if i != axis]
        arrays = a, b, z
        outer = [(b.shape[i], [x.strides[i] for x in arrays]) for i in others] or [(1, [0, 0, 0])]
        count = int(np.prod([n for n, _ in outer], dtype=np.int64))
        numbers = [count, b.shape[axis], *(x.strides[axis] for x in arrays)]
        numbers += [n for n, _ in outer[1:]]
        kernel = recurrence_kernel(b.dtype, len(outer))
        rows = [row for _, row in outer]
        planner.launch(kernel, [blocks_for(count, ALONE)], numbers, arrays, rows)
    return z
