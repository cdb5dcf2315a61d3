"""Copies and clears of a few bytes, by one block: parts of launches that are merged."""

from __future__ import annotations

from functools import cache

from symcomp.codegen.cuda.text import CudaKernel, named

THREADS = 256
# Types of a number of bytes that one access reads or writes.
TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "pack<uint64_t, 2>"}


@cache
def copy_kernel(unit: int, is_clear: bool) -> CudaKernel:
    """Return the kernel that copies units of bytes, or sets them to 0.

    Parameters
    ----------
    unit : int
        A key of ``TYPES``, which divides addresses.
    is_clear : bool
        Whether there is no source.
    """
    t, arrays = TYPES[unit], 2 - is_clear
    value = f"{t}{{}}" if is_clear else f"((const {t} *)data[1])[i]"
    lines = [
        f'extern "C" __global__ void NAME(const int n, const addresses<{arrays}> data)',
        "{",
        f"    for (int i = blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"         i += gridDim.x * {THREADS})",
        f"        (({t} *)data[0])[i] = {value};",
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, ("n",), arrays, 0, 0, False, THREADS, False)
