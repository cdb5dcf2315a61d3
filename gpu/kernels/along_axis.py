"""Positions of extremes, and products of complex numbers, along axes: a block makes a result, by a
tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX
from symcomp.errors import ShapeError
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner

THREADS = 128


def work_type(dtype: str) -> str:
    """Return the C type of numbers that are computed with."""
    return _complex_type(dtype) if dtype in COMPLEX else C_TYPES[dtype]


def memory_type(dtype: str) -> str:
    """Return the C type of elements in memory."""
    return "_Float16" if dtype == "float16" else work_type(dtype)


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
        f"            const {t} x = ({t})*(const {memory_type(dtype)} *)(data[0] + o1);",
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
    s, t, z = map(work_type, (given, work, dtype))
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
    """Return the C type of complex numbers."""
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
