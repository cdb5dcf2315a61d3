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
NUMBERS = (
    "m", "n", "k", "a_row", "a_column", "a_batch", "b_row", "b_column", "b_batch",
    "c_row", "c_column", "c_batch", "z_row", "z_column", "z_batch",
)  # fmt: skip


@record
class ProductOperands:
    """z = alpha a b + beta c; None where there is no such factor or array."""

    alpha: Any = None
    beta: Any = None
    c: Any = None


@record
class ProductText:
    """The common lines of kernels of products.

    Attributes
    ----------
    dtype, work, read, written : str
        The dtype of results, and the C types that are computed in, read and written.
    given : str
        The dtype of the factors.
    arrays : int
    has_alpha, has_c : bool
    """

    dtype: str
    work: str
    read: str
    written: str
    given: str
    arrays: int
    has_alpha: bool
    has_c: bool

    def element(self, place: str) -> str:
        """Return the element of a factor as a number that is computed with."""
        encoded = self.given in ENCODED
        return read_element(place, self.given) if encoded else f"({self.work}){place}"

    def sum_of(self, x: str, y: str, total: str) -> str:
        """Return x y + total."""
        if np.dtype(self.dtype).kind in "fc":
            return f"fused({x}, {y}, {total})"
        return f"{total} | ({x} & {y})" if self.dtype == "bool" else f"{total} + {x} * {y}"

    def factors(self) -> list[str]:
        """Return the lines that read alpha and beta."""
        given, found = (("alpha", 3, self.has_alpha), ("beta", 3 + self.has_alpha, self.has_c)), []
        for name, i, has in given:
            value = f"*(const {self.written} *)data[{i}]"
            found += [f"const {self.work} {name} = {value};"] if has else []
        return found

    def value(self, total: str, place: str) -> list[str]:
        """Return the lines that compute a result; ``place`` is that of an element of c."""
        scaled = f"alpha * {total}" if self.has_alpha else total
        added = f"({self.work})((const {self.written} *)data[{4 + self.has_alpha}])[{place}]"
        add = f"if (beta != {self.work}{{0}}) value = value + beta * {added};"
        return [f"{self.work} value = {scaled};", *([add] if self.has_c else [])]


def text_of_product(dtype: str, given: str, has_alpha: bool, has_c: bool) -> ProductText:
    """Return the texts of products; see ``product_kernel``."""
    arrays = 3 + has_alpha + 2 * has_c
    if dtype in WORK_OF_COMPLEX:
        types = (WORK_OF_COMPLEX[dtype],) * 3
    else:
        types = WORK[dtype], STORED[given], memory_type(dtype)
    return ProductText(dtype, *types, given, arrays, has_alpha, has_c)


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
    made = text_of_product(dtype, given, has_alpha, has_c)
    t, r, s, read = made.work, made.read, made.written, made.element
    x, y = f"left[d][y + {GAP} * i]", f"right[d][x + {GAP} * j]"
    total, zero, arrays = made.sum_of(x, y, "total[i][j]"), f"{t}{{0}}", made.arrays
    place = "row * c_row + column * c_column + blockIdx.z * c_batch"
    line = "\n".ljust(5)
    factors = line.join(made.factors())
    value = line.ljust(17).join(made.value("total[i][j]", place))
    numbers = ", ".join(f"const int64_t {name}" for name in NUMBERS)
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
    {factors}
    for (int i = 0; i < {SQUARE}; i++)
        for (int j = 0; j < {SQUARE}; j++) {{
            const int64_t row = top + y + {GAP} * i, column = side + x + {GAP} * j;
            if (row < m && column < n) {{
                {value}
                z[row * z_row + column * z_column] = ({s})value;
            }}
        }}
}}
"""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, NUMBERS, arrays, 0, 0, True, THREADS, True)


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
    operands = operands_of(z, a, b, scaled)
    kernel = product_kernel(z.dtype, a.dtype, scaled.alpha is not None, scaled.c is not None)
    c = scaled.c if scaled.c is not None else z
    m, n, k = z.shape[-2], z.shape[-1], a.shape[-1]
    steps = [element_steps(x) for x in (a, b, c, z)]
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


def operands_of(
    z: Operand, a: Operand, b: Operand, scaled: ProductOperands
) -> list[Operand]:
    """Return the operands of kernels of products, in their order."""
    found = [a, b, z]
    found += [scaled.alpha] if scaled.alpha is not None else []
    return found + ([scaled.beta, scaled.c] if scaled.c is not None else [])


def element_steps(x: Operand) -> tuple[int, int, int]:
    """Return elements between rows, between columns and between matrices."""
    steps = [s // x.itemsize for s in x.strides]
    row, column = (s if n > 1 else 0 for s, n in zip(steps[-2:], x.shape[-2:], strict=True))
    # A length of 1 is read in order.
    column = 1 if x.shape[-1] == 1 and row != 1 else column
    return row, column, steps[0] if x.ndim == 3 else 0
