"""Products of matrices that one block computes: each result by some neighbouring threads, which
read the factors where they lie. Calls of a library would cut runs of launches that can be merged.
"""

from __future__ import annotations

from functools import cache

from symcomp.codegen.cuda.text import WARP, CudaKernel, named
from symcomp.gpu.kernels.products import (
    NUMBERS,
    ProductOperands,
    element_steps,
    operands_of,
    text_of_product,
)
from symcomp.gpu.planner import Operand, Planner, needs_wide

THREADS = 256
# Lanes that share the products of a result have as many each, or more.
OF_LANE = 8
# The most products that a thread adds up, of all results. An estimate, which was not measured: if a
# multiprocessor added up 8 in a cycle, those of 256 threads would take as long as a launch.
MOST_OF_THREAD = 64


def lanes_for(k: int) -> int:
    """Return how many lanes of a warp make a result of k products; it depends on nothing else, so
    that results are the same wherever factors lie.
    """
    lanes = 1
    while lanes < WARP and 2 * lanes * OF_LANE <= k:
        lanes *= 2
    return lanes


def is_small(z: Operand, k: int) -> bool:
    """Tell whether a block computes a product of k products for each result."""
    lanes = lanes_for(k)
    return -(-z.size * lanes // THREADS) * -(-k // lanes) <= MOST_OF_THREAD


@cache
def small_product_kernel(
    dtype: str, given: str, has_alpha: bool, has_c: bool, lanes: int, wide: bool
) -> CudaKernel:
    """Return the kernel of small products of a dtype; see ``product_kernel``.

    Parameters
    ----------
    lanes : int
        That make a result.
    wide : bool
        Whether integers have 64 bits, else 32.
    """
    text = text_of_product(dtype, given, has_alpha, has_c)
    integer, t = "int64_t" if wide else "int32_t", text.work
    numbers = ("results", *NUMBERS)
    parameters = ", ".join(f"const {integer} {name}" for name in numbers)
    together = THREADS // lanes
    factors = text.element("left[d * a_column]"), text.element("right[d * b_row]")
    total = text.sum_of(*factors, "total")
    other = f"from_lane<{lanes}>(total, bit)"
    joined = f"total | {other}" if dtype == "bool" else f"total + {other}"
    lines = [
        f'extern "C" __global__ void NAME({parameters}, const addresses<{text.arrays}> data)',
        "{",
        f"    const int lane = threadIdx.x % {lanes};",
        *(f"    {line}" for line in text.factors()),
        f"    for ({integer} i = ({integer})blockIdx.x * {together} + threadIdx.x / {lanes};",
        f"         i < results; i += ({integer})gridDim.x * {together}) {{",
        f"        const {integer} row = i / n % m, column = i % n, batch = i / n / m;",
        f"        const {text.read} *left = (const {text.read} *)data[0] + row * a_row",
        "            + batch * a_batch;",
        f"        const {text.read} *right = (const {text.read} *)data[1] + column * b_column",
        "            + batch * b_batch;",
        f"        {t} total = {t}{{0}};",
        f"        for ({integer} d = lane; d < k; d += {lanes})",
        f"            total = {total};",
    ]
    if lanes > 1:
        lines += [f"        for (int bit = 1; bit < {lanes}; bit *= 2)",
                  f"            total = {joined};"]  # fmt: skip
    place = "row * {0}_row + column * {0}_column + batch * {0}_batch".format
    lines += [
        "        if (lane == 0) {",
        *(f"            {line}" for line in text.value("total", place("c"))),
        f"            (({text.written} *)data[2])[{place('z')}] = ({text.written})value;",
        "        }",
        "    }",
        "}",
    ]
    name, found = named(lines, THREADS)
    return CudaKernel(name, found, numbers, text.arrays, 0, 0, wide, THREADS, lanes > 1)


def plan_small_product(
    planner: Planner, z: Operand, a: Operand, b: Operand, scaled: ProductOperands | None = None
) -> None:
    """Emit z = alpha a b + beta c, which ``is_small``; see ``plan_product``."""
    if z.size == 0:
        return
    scaled = scaled or ProductOperands()
    operands = operands_of(z, a, b, scaled)
    c = scaled.c if scaled.c is not None else z
    m, n, k = z.shape[-2], z.shape[-1], a.shape[-1]
    numbers = [z.size, m, n, k, *(s for x in (a, b, c, z) for s in element_steps(x))]
    wide = needs_wide(numbers, operands)
    kernel = small_product_kernel(
        z.dtype, a.dtype, scaled.alpha is not None, scaled.c is not None, lanes_for(k), wide
    )
    planner.launch(kernel, [1], numbers, operands)
