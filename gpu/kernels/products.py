"""Products of matrices: tiles in shared memory, each thread a square of results in registers.

Any strides, batches, scales and an array that is added to. cuBLAS is not needed; the order in which
products are added up depends on nothing but lengths.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import ENCODED, STORED, read_element
from symcomp.core.record import record
from symcomp.gpu.kernels.along_axis import memory_type
from symcomp.gpu.planner import Operand, Planner

# Results of a block and of a thread along each axis; elements along the axis that is summed.
TILE, SQUARE, DEPTH = 64, 4, 16
# Rows and columns between the results of a thread.
GAP = TILE // SQUARE
THREADS = GAP * GAP
# The most blocks of a grid along its third axis.
MOST_BATCHES = 65535
#: The C type that products of real numbers are computed in, by dtype; integers wrap around.
WORK = {
    "float16": "float", "float32": "float", "float64": "double", "int64": "uint64_t",
    "uint64": "uint64_t", "bool": "uint32_t",
    **{f"{sign}int{bits}": "uint32_t" for sign in ("", "u") for bits in (8, 16, 32)},
}  # fmt: skip
#: The same of complex numbers, and how they lie in memory.
WORK_OF_COMPLEX = {
    "complex64": "complex_number<float>", "complex128": "complex_number<double>",
}  # fmt: skip
_NUMBERS = (
    "m", "n", "k", "a_row", "a_column", "a_batch", "b_row", "b_column", "b_batch",
    "c_row", "c_column", "c_batch", "z_row", "z_column", "z_batch",
)  # fmt: skip


@record
class ProductOperands:
    """z = alpha a b + beta c; None where there is no such factor or array."""

    alpha: Any = None
    beta: Any = None
    c: Any = None


@cache
def product_kernel(dtype: str, given: str, has_alpha: bool, has_c: bool) -> CudaKernel:
    """Return the kernel of products of a dtype.

    Parameters
    ----------
    dtype : str
        A key of ``WORK`` or ``WORK_OF_COMPLEX``.
    given : str
        The dtype of the factors, where these are stored in another one.
    has_alpha : bool
        Whether the product is scaled.
    has_c : bool
        Whether a scaled array is added; it is not read where its factor is 0.
    """
    of_complex = WORK_OF_COMPLEX.get(dtype)
    t, s = (of_complex, of_complex) if of_complex else (WORK[dtype], memory_type(dtype))
    r = of_complex or STORED[given]
    read = lambda x: read_element(x, given) if given in ENCODED else f"({t}){x}"  # noqa: E731
    x, y = f"left[d][y + {GAP} * i]", f"right[d][x + {GAP} * j]"
    if np.dtype(dtype).kind in "fc":
        total = f"fused({x}, {y}, total[i][j])"
    else:
        total = f"total[i][j] | ({x} & {y})" if dtype == "bool" else f"total[i][j] + {x} * {y}"
    zero = f"{t}{{0}}"
    arrays = 3 + has_alpha + 2 * has_c
    alpha = f"const {t} alpha = *(const {s} *)data[3];" if has_alpha else ""
    beta = f"const {t} beta = *(const {s} *)data[{3 + has_alpha}];" if has_c else ""
    scaled = "alpha * total[i][j]" if has_alpha else "total[i][j]"
    place = "row * c_row + column * c_column + blockIdx.z * c_batch"
    added = f"({t})((const {s} *)data[{4 + has_alpha}])[{place}]"
    add = f"if (beta != {zero}) value = value + beta * {added};" if has_c else ""
    numbers = ", ".join(f"const int64_t {name}" for name in _NUMBERS)
    text = f"""
extern "C" __global__ void NAME({numbers}, const addresses<{arrays}> data)
{{
    __shared__ {t} left[{DEPTH}][{TILE + 1}];
    __shared__ {t} right[{DEPTH}][{TILE + 1}];
    const {r} *a = (const {r} *)data[0] + blockIdx.z * a_batch;
    const {r} *b = (const {r} *)data[1] + blockIdx.z * b_batch;
    {s} *z = ({s} *)data[2] + blockIdx.z * z_batch;
    const int64_t tiles = (n + {TILE - 1}) / {TILE};
    const int64_t top = blockIdx.x / tiles * {TILE}, side = blockIdx.x % tiles * {TILE};
    const int t = threadIdx.x, y = t / {GAP}, x = t % {GAP};
    {t} total[{SQUARE}][{SQUARE}];
    for (int i = 0; i < {SQUARE}; i++)
        for (int j = 0; j < {SQUARE}; j++)
            total[i][j] = {zero};
    for (int64_t first = 0; first < k; first += {DEPTH}) {{
        for (int e = t; e < {TILE * DEPTH}; e += {THREADS}) {{
            /* Neighbouring threads read neighbours in memory. */
            const int r = a_row == 1 ? e % {TILE} : e / {DEPTH};
            const int d = a_row == 1 ? e / {TILE} : e % {DEPTH};
            const int64_t row = top + r, at = first + d;
            left[d][r] = (row < m) & (at < k) ? {read("a[row * a_row + at * a_column]")} : {zero};
            const int q = b_row == 1 ? e / {DEPTH} : e % {TILE};
            const int f = b_row == 1 ? e % {DEPTH} : e / {TILE};
            const int64_t column = side + q, down = first + f;
            const bool inside = (column < n) & (down < k);
            right[f][q] = inside ? {read("b[down * b_row + column * b_column]")} : {zero};
        }}
        __syncthreads();
        for (int d = 0; d < {DEPTH}; d++)
            for (int i = 0; i < {SQUARE}; i++)
                for (int j = 0; j < {SQUARE}; j++)
                    total[i][j] = {total};
        __syncthreads();
    }}
    {alpha}
    {beta}
    for (int i = 0; i < {SQUARE}; i++)
        for (int j = 0; j < {SQUARE}; j++) {{
            const int64_t row = top + y + {GAP} * i, column = side + x + {GAP} * j;
            if (row < m && column < n) {{
                {t} value = {scaled};
                {add}
                z[row * z_row + column * z_column] = ({s})value;
            }}
        }}
}}
"""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, _NUMBERS, arrays, 0, 0, True, THREADS, True)


def plan_product(
    planner: Planner, z: Operand, a: Operand, b: Operand, scaled: ProductOperands | None = None
) -> None:
    """Emit z = alpha a b + beta c for matrices, or stacks of them along the first axis.

    Parameters
    ----------
    z, a, b : Operand
        (s, m, n), (s, m, k), (s, k, n), or without the first axis.
    scaled : ProductOperands, optional
        With operands without axes for ``alpha`` and ``beta``, and one of the shape of z for ``c``.
    """
    if z.size == 0:
        return
    scaled = scaled or ProductOperands()
    operands = [a, b, z]
    operands += [scaled.alpha] if scaled.alpha is not None else []
    operands += [scaled.beta, scaled.c] if scaled.c is not None else []
    kernel = product_kernel(z.dtype, a.dtype, scaled.alpha is not None, scaled.c is not None)
    c = scaled.c if scaled.c is not None else z
    m, n, k = z.shape[-2], z.shape[-1], a.shape[-1]
    steps = [_steps(x) for x in (a, b, c, z)]
    tiles = -(-m // TILE) * -(-n // TILE)
    batches = z.shape[0] if z.ndim == 3 else 1
    numbers = [m, n, k, *(s for row in steps for s in row)]
    for first in range(0, batches, MOST_BATCHES):
        part = [_from_batch(x, first) for x in operands]
        planner.launch(kernel, [tiles, 1, min(MOST_BATCHES, batches - first)], numbers, part)


def _from_batch(x: Operand, first: int) -> Operand:
    """Return the matrices of a stack from one on; other operands as they are."""
    if x.ndim < 3 or not first:
        return x
    return x.view((x.shape[0] - first, *x.shape[1:]), x.strides, first * x.strides[0])


def _steps(x: Operand) -> tuple[int, int, int]:
    """Return elements between rows, between columns and between matrices."""
    steps = [s // x.itemsize for s in x.strides]
    row, column = (s if n > 1 else 0 for s, n in zip(steps[-2:], x.shape[-2:], strict=True))
    # A length of 1 is read in order.
    column = 1 if x.shape[-1] == 1 and row != 1 else column
    return row, column, steps[0] if x.ndim == 3 else 0
