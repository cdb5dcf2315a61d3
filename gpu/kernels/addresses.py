"""Addresses of matrices in a stack, for functions of libraries that take an array of them."""

from __future__ import annotations

from functools import cache

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.gpu.planner import Operand, Planner, blocks_for

THREADS = 256


@cache
def addresses_kernel() -> CudaKernel:
    """Return the kernel that writes an address, and those further on by equal steps."""
    text = f"""
extern "C" __global__ void NAME(const int64_t n, const int64_t step, const addresses<2> data)
{{
    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * {THREADS})
        ((uint64_t *)data[1])[i] = (uint64_t)data[0] + i * step;
}}
"""
    name, text = named(text.strip().split("\n"), THREADS)
    return CudaKernel(name, text, ("n", "step"), 2, 0, 0, True, THREADS, False)


def plan_addresses(planner: Planner, x: Operand) -> Operand:
    """Emit the addresses of x[i], for all i, as int64."""
    found = planner.new("int64", x.shape[:1])
    numbers = [x.shape[0], x.strides[0]]
    planner.launch(addresses_kernel(), [blocks_for(x.shape[0], THREADS)], numbers, [x, found])
    return found
