"""Convolution and its two gradients: products of matrices whose right factor is never stored.

The right factor has a column for each element of the result and a row for each term of its sum; an
element of it is an element of an image, or 0 beyond its border. All positions are linear in the
numbers of the column and of the row, so the offsets of both are added. Long sums with few results
are added up in chunks, whose number depends on lengths alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import gcd, prod

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.core.record import record
from symcomp.gpu.kernels.along_axis import memory_type
from symcomp.gpu.kernels.products import DEPTH, GAP, SQUARE, THREADS, TILE, WORK
from symcomp.gpu.planner import Operand, Planner, blocks_for
from symcomp.ops.windows.geometry import Geometry

# Blocks that keep a card busy, the least number of terms of a chunk, and the most chunks.
ENOUGH_BLOCKS, LEAST_TERMS, MOST_CHUNKS = 256, 512, 64
# The most blocks along the third axis of a grid.
MOST_GROUPS = 65535
# Positions and offsets up to this number are 32-bit integers; sums of some of them are, too.
LARGEST_NARROW = 1 << 29


@record
class Axis:
    """A spatial axis of one product.

    Attributes
    ----------
    columns, terms : int
        Lengths.
    left, result : int
        Elements between neighbours: of terms in the left factor, of columns in the result.
    length, image : int
        Of the image that the right factor is read from: its length, and elements between
        neighbours.
    first, column, term : int
        The position in the image for the first column and term, and the steps along both.
    """

    columns: int
    terms: int
    left: int
    result: int
    length: int
    image: int
    first: int
    column: int
    term: int


@record
class ProductLengths:
    """One product: the lengths and elements between neighbours of its operands.

    Attributes
    ----------
    left, right, result : Operand
    rows, groups : int
    columns, terms : int
        The lengths of the outer axes of the result's columns and of the sum: images, or channels.
    row : tuple of int
        Elements between rows of the left factor, and of the result.
    outer : tuple of int
        Elements between neighbours along outer axes: of columns in the right factor and in the
        result, of terms in the left and in the right factor.
    group : tuple of int
        Elements between groups of the three operands.
    axes : tuple of Axis
    """

    left: Operand
    right: Operand
    result: Operand
    rows: int
    groups: int
    columns: int
    terms: int
    row: tuple[int, int]
    outer: tuple[int, int, int, int]
    group: tuple[int, int, int]
    axes: tuple[Axis, ...]

    @property
    def width(self) -> int:
        """The number of columns of the result."""
        return self.columns * prod(a.columns for a in self.axes)

    @property
    def depth(self) -> int:
        """The number of terms of a sum."""
        return self.terms * prod(a.terms for a in self.axes)


_PER_AXIS = ("columns", "terms", "left", "result", "limit", "image", "first", "column", "term")


def _names(ndim: int) -> tuple[str, ...]:
    return (
        "m", "n", "k", "groups", "size", "z_chunk", "a_row", "z_row", "b_outer", "z_outer",
        "a_deep", "b_deep", "a_group", "b_group", "z_group",
        *(f"{name}{a}" for a in range(ndim) for name in _PER_AXIS),
    )  # fmt: skip


def _column_lines(ndim: int) -> list[str]:
    """Find the offsets and positions of the columns of a tile."""
    lines = ["I rest = side + t, z_at = 0, b_at = 0;", "const bool inside = rest < n;"]
    for a in range(ndim - 1, -1, -1):
        lines += [
            f"const I i{a} = rest % columns{a}; rest /= columns{a};",
            f"const I x{a} = first{a} + i{a} * column{a};",
            f"z_at += i{a} * result{a}; b_at += x{a} * image{a};",
        ]
    lines += [
        "across_z[t] = z_at + rest * z_outer;",
        "across_b[t] = b_at + rest * b_outer;",
        # A position so far away is outside of all images, whatever is added to it.
        "across0[t] = inside ? x0 : FAR;",
        *(f"across{a}[t] = x{a};" for a in range(1, ndim)),
    ]
    return lines


def _term_lines(ndim: int) -> list[str]:
    """Find the offsets and positions of the next terms."""
    lines = ["I rest = first + t, a_at = 0, b_at = 0;", "const bool inside = rest < stop;"]
    for a in range(ndim - 1, -1, -1):
        lines += [
            f"const I j{a} = rest % terms{a}; rest /= terms{a};",
            f"const I y{a} = j{a} * term{a};",
            f"a_at += j{a} * left{a}; b_at += y{a} * image{a};",
        ]
    lines += [
        "down_a[t] = a_at + rest * a_deep;",
        "down_b[t] = b_at + rest * b_deep;",
        "down0[t] = inside ? y0 : FAR;",
        *(f"down{a}[t] = y{a};" for a in range(1, ndim)),
    ]
    return lines


def _indented(lines: Sequence[str], depth: int) -> str:
    return "\n".join(f"{' ' * depth}{line}" for line in lines)


def _within(ndim: int, unsigned: str) -> str:
    """Return whether column ``q`` of a tile and term ``d`` are at an element of the image."""
    return " & ".join(
        f"(({unsigned})(across{a}[q] + down{a}[d]) < ({unsigned})limit{a})" for a in range(ndim)
    )


def _load_text(t: str, s: str, squares: int, within: str, is_masked: bool, is_deep: bool) -> str:
    """Read the tiles of both factors; neighbouring threads read neighbours in memory."""
    q, d = ("e / {0}", "e % {0}") if is_deep else ("e % {1}", "e / {1}")
    high = GAP * squares
    return f"""
            for (int e = t; e < {high * DEPTH}; e += {THREADS}) {{
                const int r = a_row == 1 ? e % {high} : e / {DEPTH};
                const int f = a_row == 1 ? e / {high} : e % {DEPTH};
                const bool there = (top + r < m) & (first + f < stop);
                const {t} value = there ? ({t})a[(top + r) * a_row + down_a[f]] : ({t})0;
                left[f][r] = value;
                {"if (value - value != 0) odd = 1;" if is_masked else ""}
            }}
            for (int e = t; e < {TILE * DEPTH}; e += {THREADS}) {{
                const int q = {q.format(DEPTH, TILE)}, d = {d.format(DEPTH, TILE)};
                const bool inside = {within};
                right[d][q] = inside ? ({t})b[across_b[q] + down_b[d]] : ({t})0;
            }}"""


def _add_text(t: str, squares: int, within: str, is_masked: bool) -> str:
    """Add the products of two tiles; left factors that are not finite only where there is an
    element of the image.
    """
    fma = "__builtin_fmaf" if t == "float" else "__builtin_fma"
    add = f"total[i][j] = {fma}(left[d][y + {GAP} * i], right[d][x + {GAP} * j], total[i][j]);"
    masked = f"""
            if (odd) {{
                #pragma unroll 1
                for (int d = 0; d < {DEPTH}; d++)
                    for (int j = 0; j < {SQUARE}; j++) {{
                        const int q = x + {GAP} * j;
                        if ({within})
                            for (int i = 0; i < {squares}; i++)
                                {add}
                    }}
            }} else"""
    return f"""{masked if is_masked else ""}
            for (int d = 0; d < {DEPTH}; d++)
                for (int i = 0; i < {squares}; i++)
                    for (int j = 0; j < {SQUARE}; j++)
                        {add}
            {"__syncthreads();" if is_masked else ""}"""


@cache
def convolution_kernel(
    dtype: str, ndim: int, squares: int, is_part: bool, is_masked: bool, is_deep: bool, wide: bool
) -> CudaKernel:
    """Return the kernel of convolutions.

    Parameters
    ----------
    dtype : {"float16", "float32", "float64"}
    ndim : int
        The number of spatial axes.
    squares : int
        The number of rows of a thread; a tile has GAP times as many.
    is_part : bool
        Whether the result is a sum of some terms, in the dtype that is computed in.
    is_masked : bool
        Whether factors of 0 beyond borders are left out, so that they make no NaN with infinities.
    is_deep : bool
        Whether neighbouring threads read the image at neighbouring terms, else columns.
    wide : bool
        Whether integers have 64 bits.
    """
    t, s = WORK[dtype], memory_type(dtype)
    integer, far = ("int64_t", "(-(1LL << 61))") if wide else ("int32_t", "(-(1 << 30))")
    into = t if is_part else s
    within = _within(ndim, f"u{integer}")
    numbers = ", ".join(f"const I {name}" for name in _names(ndim))
    # With this many blocks for each multiprocessor, threads have registers enough to spill none.
    bounds = f"__launch_bounds__({THREADS}, {1 if wide and t == 'double' else 2})"
    text = f"""
extern "C" __global__ void {bounds} NAME({numbers}, const addresses<3> data)
{{
    __shared__ {t} left[{DEPTH}][{GAP * squares + 1}];
    __shared__ {t} right[{DEPTH}][{TILE + 1}];
    __shared__ I across_z[{TILE}], across_b[{TILE}], down_a[{DEPTH}], down_b[{DEPTH}];
    __shared__ I {", ".join(f"across{a}[{TILE}], down{a}[{DEPTH}]" for a in range(ndim))};
    {"__shared__ int odd;" if is_masked else ""}
    const I tiles = (n + {TILE - 1}) / {TILE};
    const I top = blockIdx.x / tiles * {GAP * squares}, side = blockIdx.x % tiles * {TILE};
    const I start = blockIdx.y * size, stop = start + size < k ? start + size : k;
    const int t = threadIdx.x, y = t / {GAP}, x = t % {GAP};
    if (t < {TILE}) {{
{_indented(_column_lines(ndim), 8)}
    }}
    for (I group = blockIdx.z; group < groups; group += gridDim.z) {{
        const {s} *const a = (const {s} *)data[0] + group * a_group;
        const {s} *const b = (const {s} *)data[1] + group * b_group;
        {into} *const z = ({into} *)data[2] + group * z_group + blockIdx.y * z_chunk;
        {t} total[{squares}][{SQUARE}];
        for (int i = 0; i < {squares}; i++)
            for (int j = 0; j < {SQUARE}; j++)
                total[i][j] = 0;
        __syncthreads();
        for (I first = start; first < stop; first += {DEPTH}) {{
            if (t < {DEPTH}) {{
{_indented(_term_lines(ndim), 16)}
            }}
            {"if (t == 0) odd = 0;" if is_masked else ""}
            __syncthreads();
{_load_text(t, s, squares, within, is_masked, is_deep)}
            __syncthreads();
{_add_text(t, squares, within, is_masked)}
        }}
        for (int i = 0; i < {squares}; i++)
            for (int j = 0; j < {SQUARE}; j++) {{
                const I row = top + y + {GAP} * i;
                const int column = x + {GAP} * j;
                if (row < m && side + column < n)
                    z[row * z_row + across_z[column]] = ({into})total[i][j];
            }}
    }}
}}
"""
    words = {"I": integer, "FAR": far}
    text = re.sub(r"\b(?:I|FAR)\b", lambda match: words[match[0]], text)
    lines = [line for line in text.strip().split("\n") if line.strip()]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, _names(ndim), 3, 0, 0, wide, THREADS, True)


@cache
def total_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that adds up the chunks of sums, in their order."""
    t, s = WORK[dtype], memory_type(dtype)
    lines = [
        'extern "C" __global__ void NAME(const int64_t n, const int64_t chunks,',
        "    const addresses<2> data)",
        "{",
        f"    for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"         i += (int64_t)gridDim.x * {THREADS}) {{",
        f"        {t} total = 0;",
        "        for (int64_t c = 0; c < chunks; c++)",
        f"            total += ((const {t} *)data[0])[c * n + i];",
        f"        (({s} *)data[1])[i] = ({s})total;",
        "    }",
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, ("n", "chunks"), 2, 0, 0, True, THREADS, False)


def _steps(x: Operand) -> tuple[int, ...]:
    """Return elements between neighbours along each axis."""
    return tuple(s // x.itemsize for s in x.strides)


def forward_factors(
    geometry: Geometry, groups: int, z: Operand, x: Operand, w: Operand
) -> ProductLengths:
    """Return the product that convolves images x with kernels w."""
    (zb, zo, *z_steps), (xb, xc, *x_steps), (wo, wc, *w_steps) = map(_steps, (z, x, w))
    rows, channels = z.shape[1] // groups, w.shape[1]
    axes = [
        Axis(
            z.shape[2 + a], k, w_steps[a], z_steps[a], x.shape[2 + a], x_steps[a],
            -geometry.pads(a, k)[0], geometry.strides[a], geometry.dilation[a],
        )
        for a, k in enumerate(w.shape[2:])
    ]  # fmt: skip
    return ProductLengths(
        w, x, z, rows, groups, z.shape[0], channels, (wo, zo), (xb, zb, wc, xc),
        (rows * wo, channels * xc, rows * zo), tuple(axes),
    )  # fmt: skip


def kernel_factors(
    geometry: Geometry, groups: int, w: Operand, x: Operand, g: Operand
) -> ProductLengths:
    """Return the product for the gradient of kernels, from images and the gradient of results."""
    (wo, wc, *w_steps), (xb, xc, *x_steps), (gb, go, *g_steps) = map(_steps, (w, x, g))
    rows, channels = w.shape[0] // groups, w.shape[1]
    axes = [
        Axis(
            k, g.shape[2 + a], g_steps[a], w_steps[a], x.shape[2 + a], x_steps[a],
            -geometry.pads(a, k)[0], geometry.dilation[a], geometry.strides[a],
        )
        for a, k in enumerate(w.shape[2:])
    ]  # fmt: skip
    return ProductLengths(
        g, x, w, rows, groups, channels, g.shape[0], (go, wo), (xc, wc, gb, xb),
        (rows * go, channels * xc, rows * wo), tuple(axes),
    )  # fmt: skip


def input_factors(
    geometry: Geometry, groups: int, x: Operand, w: Operand, g: Operand
) -> Iterator[ProductLengths]:
    """Yield the products for the gradient of images, from kernels and the gradient of results.

    With steps between windows, elements of the image whose positions leave the same rest take part
    in windows at the same elements of kernels: there is a product for each such rest. Rests for
    which there are no elements of kernels give products without terms.
    """
    (xb, xc, *x_steps), (wo, wc, *w_steps), (gb, go, *g_steps) = map(_steps, (x, w, g))
    rows, channels = w.shape[1], w.shape[0] // groups
    starts = [range(min(s, n)) for s, n in zip(geometry.strides, x.shape[2:], strict=True)]
    for begin in product(*starts):
        axes, x_at, w_at = [], 0, 0
        for a, start in enumerate(begin):
            n, k, s, d = x.shape[2 + a], w.shape[2 + a], geometry.strides[a], geometry.dilation[a]
            before = geometry.pads(a, k)[0]
            # Positions start, start + s, ...; elements of kernels first, first + period, ...
            period, reach = s // gcd(s, d), start + before
            first = next((j for j in range(min(period, k)) if (reach - j * d) % s == 0), k)
            axes.append(
                Axis(
                    -(-(n - start) // s), -(-(k - first) // period), period * w_steps[a],
                    s * x_steps[a], g.shape[2 + a], g_steps[a], (reach - first * d) // s, 1,
                    -(period * d // s),
                )
            )  # fmt: skip
            x_at += start * x.strides[2 + a]
            w_at += first * w.strides[2 + a]
        part = x.view(x.shape, x.strides, x_at)
        yield ProductLengths(
            w.view(w.shape, w.strides, w_at), g, part, rows, groups, x.shape[0], channels,
            (wc, xc), (gb, xb, wo, go), (channels * wo, channels * go, rows * xc), tuple(axes),
        )  # fmt: skip


def plan_factors(
    planner: Planner, factors: ProductLengths, is_masked: bool, may_part: bool
) -> None:
    """Emit one product.

    Parameters
    ----------
    is_masked : bool
        Whether 0 beyond borders times infinity adds nothing, else NaN.
    may_part : bool
        Whether the result is a whole array in C order, whose sums may be added up in chunks.
    """
    rows, n, k = factors.rows, factors.width, factors.depth
    if rows * n * factors.groups == 0:
        return
    # Lower tiles for fewer kernels, or channels.
    squares = next(s for s in (1, 2, SQUARE) if rows <= GAP * s or s == SQUARE)
    tiles = -(-rows // (GAP * squares)) * -(-n // TILE)
    z, chunks = factors.result, 1
    if may_part:
        chunks = min(MOST_CHUNKS, k // LEAST_TERMS, ENOUGH_BLOCKS // (tiles * factors.groups))
        chunks = max(1, chunks)
    work = "float64" if z.dtype == "float64" else "float32"
    target = z if chunks == 1 else planner.new(work, [chunks, *z.shape])
    size = -(-k // chunks)
    numbers = [rows, n, k, factors.groups, size, z.size, *factors.row, *factors.outer]
    numbers += factors.group
    for a in factors.axes:
        numbers += [
            a.columns, a.terms, a.left, a.result, a.length, a.image, a.first, a.column, a.term,
        ]  # fmt: skip
    is_deep = _is_deep(factors)
    wide = max(map(abs, [*numbers, *_reach(factors)])) > LARGEST_NARROW
    kernel = convolution_kernel(
        z.dtype, len(factors.axes), squares, chunks > 1, is_masked, is_deep, wide
    )
    blocks = [tiles, chunks, min(factors.groups, MOST_GROUPS)]
    planner.launch(kernel, blocks, numbers, [factors.left, factors.right, target])
    if chunks > 1:
        blocks = [blocks_for(z.size, THREADS)]
        planner.launch(total_kernel(z.dtype), blocks, [z.size, chunks], [target, z])


def _is_deep(factors: ProductLengths) -> bool:
    """Return whether more terms than columns follow one another in an image."""
    return factors.axes[-1].terms > factors.axes[-1].columns


def _reach(factors: ProductLengths) -> list[int]:
    """Return the largest positions and offsets, and those of tiles that reach beyond the end."""
    row, outer = max(map(abs, factors.row)), max(map(abs, factors.outer))
    lengths = factors.columns + factors.terms + 2 * TILE
    offset = row * (factors.rows + TILE) + outer * lengths
    offset += max(map(abs, factors.group)) * factors.groups
    for a in factors.axes:
        positions = abs(a.first) + a.columns * abs(a.column) + a.terms * abs(a.term)
        offset += positions * abs(a.image)
        offset += a.terms * abs(a.left) + a.columns * abs(a.result)
    return [offset, 2 * factors.result.size * MOST_CHUNKS]
