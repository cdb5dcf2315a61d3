"""Failures of libraries' functions, which leave a number for each matrix on the device."""

from __future__ import annotations

from functools import cache

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.gpu.driver.interface import Failure
from symcomp.gpu.planner import Operand, Planner, blocks_for

THREADS = 256


@cache
def failures_kernel() -> CudaKernel:
    """Return the kernel that reports a number which is not 0, and its place."""
    text = f"""
extern "C" __global__ void NAME(const int64_t n, const addresses<1> data,
                                const unsigned long long ticket, fault *const words)
{{
    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * {THREADS})
        if (((const int32_t *)data[0])[i] != 0)
            report(words, ticket, i, ((const int32_t *)data[0])[i]);
}}
"""
    name, text = named(text.strip().split("\n"), THREADS)
    return CudaKernel(name, text, ("n",), 1, 0, 0, True, THREADS, False)


def plan_check(planner: Planner, numbers: Operand, failure: Failure) -> None:
    """Emit a check of int32 in C order: one that is not 0 is an error at the next wait.

    Parameters
    ----------
    failure : callable
        Makes the error of the label, the place and the number.
    """
    n = numbers.size
    if n:
        planner.launch(
            failures_kernel(), [blocks_for(n, THREADS)], [n], [numbers],
            ticket=planner.label, failure=failure,
        )  # fmt: skip
