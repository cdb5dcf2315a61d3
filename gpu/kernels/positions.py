"""Positions in lines: labels as int32 from the beginning of their line, indices that are checked,
and 0, 1, 2, ...
"""

from __future__ import annotations

from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.gpu.planner import Operand, Planner, blocks_for

THREADS = 256


@cache
def counter_kernel() -> CudaKernel:
    """Return the kernel that writes 0, 1, 2, ..."""
    text = f"""
extern "C" __global__ void NAME(const int64_t n, const addresses<1> data)
{{
    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * {THREADS})
        ((int32_t *)data[0])[i] = (int32_t)i;
}}
"""
    name, text = named(text.strip().split("\n"), THREADS)
    return CudaKernel(name, text, ("n",), 1, 0, 0, True, THREADS, False)


@cache
def positions_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that counts positions of a dtype from the beginning of a line."""
    is_signed = np.dtype(dtype).kind == "i"
    none = f"label == INT{8 * np.dtype(dtype).itemsize}_MIN + 1" if is_signed else "false"
    first = "label < 0 ? length : 0" if is_signed else "0"
    text = f"""
extern "C" __global__ void NAME(const int64_t n, const int64_t length, const addresses<2> data,
                                const unsigned long long ticket, fault *const words)
{{
    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * {THREADS}) {{
        const {C_TYPES[dtype]} label = ((const {C_TYPES[dtype]} *)data[0])[i];
        const int64_t at = (int64_t)label + ({first});
        const bool none = {none}, inside = (at >= 0) & (at < length);
        if (!inside & !none)
            report(words, ticket, (long long)label, length);
        ((int32_t *)data[1])[i] = inside & !none ? (int32_t)at : -1;
    }}
}}
"""
    name, text = named(text.strip().split("\n"), THREADS)
    return CudaKernel(name, text, ("n", "length"), 2, 0, 0, True, THREADS, False)


@cache
def checked_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that copies indices of a dtype; an index out of range becomes 0."""
    kind = C_TYPES[dtype]
    text = f"""
extern "C" __global__ void NAME(const int64_t n, const int64_t length, const addresses<2> data,
                                const unsigned long long ticket, fault *const words)
{{
    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * {THREADS}) {{
        const {kind} index = ((const {kind} *)data[0])[i];
        const bool inside = (index >= 0) & ((int64_t)index < length);
        if (!inside)
            report(words, ticket, (long long)index, length);
        (({kind} *)data[1])[i] = inside ? index : 0;
    }}
}}
"""
    name, text = named(text.strip().split("\n"), THREADS)
    return CudaKernel(name, text, ("n", "length"), 2, 0, 0, True, THREADS, False)


def plan_checked(planner: Planner, indices: Operand, length: int) -> Operand:
    """Emit a copy of indices in C order that are all in range: 0 stands for one that is not, which
    is an error at the next wait.
    """
    found = planner.new(indices.dtype, indices.shape)
    n = found.size
    if n:
        planner.launch(
            checked_kernel(indices.dtype), [blocks_for(n, THREADS)], [n, length],
            [indices, found], ticket=planner.label,
        )  # fmt: skip
    return found


def plan_counter(planner: Planner, n: int) -> Operand:
    """Emit 0, 1, ..., n - 1 as int32."""
    found = planner.new("int32", [n])
    if n:
        planner.launch(counter_kernel(), [blocks_for(n, THREADS)], [n], [found])
    return found


def plan_positions(planner: Planner, labels: Operand, length: int) -> Operand:
    """Emit labels as positions from the beginning of lines, all axes kept; -1 for those of no
    element. They lie in C order. One outside its line is an error at the next wait.
    """
    found = planner.new("int32", labels.shape)
    n = found.size
    if n:
        kernel = positions_kernel(labels.dtype)
        planner.launch(
            kernel, [blocks_for(n, THREADS)], [n, length], [labels, found], ticket=planner.label
        )
    return found
