"""Sorting along an axis, and searching in sorted vectors.

Elements become unsigned keys of the same order. A block sorts tiles of keys by a bitonic network:
several short lines, or a part of a long one. Then pairs of sorted runs are merged until a line is
one run: each block finds by bisection which elements of both runs its tile of the result has.
Equal keys stay in order: the network compares their positions, too, and a merge takes the first
run first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.gpu.kernels.along_axis import offset_lines
from symcomp.gpu.planner import LARGEST_32, MOST_BLOCKS, Operand, Planner, blocks_for

THREADS, TILE = 256, 1024
_WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
# The bits of infinity, by the size of the number.
_INFINITY = {2: "0x7c00U", 4: "0x7f800000U", 8: "0x7ff0000000000000ULL"}


def _word(dtype: str) -> str:
    """Return the unsigned type of the size of a dtype."""
    return _WORDS[np.dtype(dtype).itemsize]


def _key_type(dtype: str) -> str:
    return "uint64_t" if np.dtype(dtype).itemsize == 8 else "uint32_t"


def _sign(dtype: str) -> str:
    size = np.dtype(dtype).itemsize
    return f"(({_word(dtype)})1 << {8 * size - 1})"


def key_text(dtype: str, word: str, equal_zeros: bool, descending: bool) -> str:
    """Return the C expression of the key of an element.

    Parameters
    ----------
    dtype : str
    word : str
        The name of the element's bits.
    equal_zeros : bool
        Whether -0.0 and 0.0 have one key; else -0.0 is before 0.0, and keys tell which it was.
    descending : bool
        Whether the largest element has the least key. All NaN have one key, the largest.
    """
    kind, w, sign = np.dtype(dtype).kind, _word(dtype), _sign(dtype)
    if kind in "bu":
        text = word
    elif kind == "i":
        text = f"{word} ^ {sign}"
    else:
        magnitude = f"({w})({word} & ~{sign})"
        text = f"{word} & {sign} ? ~{word} : {word} | {sign}"
        if equal_zeros:
            text = f"{magnitude} == 0 ? {sign} : ({text})"
        infinity = _INFINITY[np.dtype(dtype).itemsize]
        text = f"{magnitude} > {infinity} ? ({w})~({w})0 : ({w})({text})"
    key = f"({_key_type(dtype)})({w})({text})"
    return f"~{key}" if descending else key


def _word_text(dtype: str, key: str) -> str:
    """Return the C expression of the bits of an element, from its key."""
    kind, w, sign = np.dtype(dtype).kind, _word(dtype), _sign(dtype)
    if kind in "bu":
        return f"({w}){key}"
    if kind == "i":
        return f"({w})({key} ^ {sign})"
    return f"({w})({key} & {sign} ? {key} ^ {sign} : ~{key})"


def _outputs(dtype: str, positions: str, is_last: bool, first: int) -> list[tuple[int, str, str]]:
    """Return what a kernel writes: number in the table, C type, and the value's C expression."""
    if is_last:
        value = "(int64_t)position" if positions else _word_text(dtype, "k")
        return [(first, "int64_t" if positions else _word(dtype), value)]
    found = [(first, _key_type(dtype), "k")]
    return found + ([(first + 1, positions, f"({positions})position")] if positions else [])


def _kernel(
    numbers: Sequence[str], arrays: int, rank: int, shared: Sequence[str], body: Sequence[str]
) -> CudaKernel:
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append(f"const addresses<{arrays}> data")
    parameters += [f"const steps<int64_t, 1> step{a}" for a in range(rank)]
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        *(f"    __shared__ {line};" for line in shared),
        *(f"    {line}" for line in body),
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, tuple(numbers), arrays, 0, rank, True, THREADS, bool(shared))


@cache
def tiles_kernel(
    dtype: str, rank: int, positions: str, descending: bool, is_last: bool
) -> CudaKernel:
    """Return the kernel that sorts runs of at most TILE elements.

    Parameters
    ----------
    dtype : str
    rank : int
        The number of the axes of lines, at least 1.
    positions : str
        The C type of positions; empty for a sort of values.
    descending : bool
    is_last : bool
        Whether runs are whole lines: then it writes the result; else keys, and positions.
    """
    # Numbers: of runs, of elements of a line, of runs of a line, of elements of a run, of elements
    # that are kept of each run, of elements between lines that are written; bytes between elements.
    numbers = ["n", "count", "runs", "width", "kept", "row", "stride"]
    numbers += [f"m{a}" for a in range(1, rank)]
    k = _key_type(dtype)
    shared = [f"{k} key[{TILE}]", *([f"uint16_t place[{TILE}]"] if positions else [])]
    offsets = offset_lines("line", ["lines", *(f"m{a}" for a in range(1, rank))], 0, [0])
    later = "key[i] > key[j]"
    if positions:
        later = "key[i] > key[j] || (key[i] == key[j] && place[i] > place[j])"
    written = _outputs(dtype, positions, is_last, 1)
    swap = [f"const {k} k = key[i]; key[i] = key[j]; key[j] = k;"]
    if positions:
        swap += ["const uint16_t p = place[i]; place[i] = place[j]; place[j] = p;"]
    body = [
        "const int size = (int)width;",
        f"const int together = {TILE} / size;",
        "for (int64_t first = (int64_t)blockIdx.x * together; first < n;",
        "     first += (int64_t)gridDim.x * together) {",
        f"    for (int i = threadIdx.x; i < {TILE}; i += {THREADS}) {{",
        "        const int64_t run = first + i / size, line = run / runs;",
        "        const int64_t j = run % runs * width + i % size;",
        f"        {k} k = ~({k})0;",
        "        if (run < n && j < count) {",
        "            int64_t o0 = j * stride;",
        *(f"            {line}" for line in offsets),
        f"            const {_word(dtype)} w = *(const {_word(dtype)} *)(data[0] + o0);",
        f"            k = {key_text(dtype, 'w', bool(positions), descending)};",
        "        }",
        "        key[i] = k;",
        *(["        place[i] = (uint16_t)(i % size);"] if positions else []),
        "    }",
        "    __syncthreads();",
        "    for (int block = 2; block <= size; block *= 2)",
        "        for (int distance = block / 2; distance; distance /= 2) {",
        f"            for (int q = threadIdx.x; q < {TILE // 2}; q += {THREADS}) {{",
        "                const int i = 2 * q - (q & (distance - 1)), j = i + distance;",
        "                const bool up = (i & block & (size - 1)) == 0;",
        f"                if (({later}) == up) {{",
        *(f"                    {line}" for line in swap),
        "                }",
        "            }",
        "            __syncthreads();",
        "        }",
        f"    for (int i = threadIdx.x; i < {TILE}; i += {THREADS}) {{",
        "        const int64_t run = first + i / size, line = run / runs;",
        "        const int64_t begin = run % runs * width, j = begin + i % size;",
        "        if (run < n && j < count && i % size < kept) {",
        f"            const {k} k = key[i];" if not (positions and is_last) else "",
        "            const int64_t position = begin + place[i];" if positions else "",
        *(f"            (({t} *)data[{a}])[line * row + j] = {v};" for a, t, v in written),
        "        }",
        "    }",
        "    __syncthreads();",
        "}",
    ]
    arrays = 1 + len(written)
    return _kernel(numbers, arrays, rank, shared, [line for line in body if line])


@cache
def merge_kernel(dtype: str, positions: str, is_last: bool) -> CudaKernel:
    """Return the kernel that merges pairs of sorted runs; see ``tiles_kernel``."""
    # Numbers: of tiles, of tiles of a pair, of pairs of a line; the others as in tiles_kernel.
    numbers = ["n", "tiles", "pairs", "count", "width", "kept", "row"]
    k = _key_type(dtype)
    shared = [f"{k} key[{TILE}]", "int64_t split[2]"]
    given = 2 if positions else 1
    written = _outputs(dtype, positions, is_last, given)
    body = [
        "for (int64_t g = blockIdx.x; g < n; g += gridDim.x) {",
        "    const int64_t pair = g / tiles % pairs, line = g / tiles / pairs;",
        "    const int64_t begin = pair * 2 * width, middle = begin + width;",
        "    const int64_t whole = width < kept ? width : kept;",
        "    const int64_t end = begin + whole < count ? whole : count - begin;",
        "    const int64_t rest = count > middle ? count - middle : 0;",
        "    const int64_t other = rest < whole ? rest : whole;",
        "    const int64_t total = end + other < kept ? end + other : kept;",
        f"    const int64_t from = g % tiles * {TILE} < total ? g % tiles * {TILE} : total;",
        f"    const int64_t to = from + {TILE} < total ? from + {TILE} : total;",
        f"    const {k} *const x = (const {k} *)data[0] + line * count + begin;",
        f"    const {k} *const y = (const {k} *)data[0] + line * count + middle;",
        "    if (threadIdx.x < 2) {",
        "        const int64_t d = threadIdx.x ? to : from;",
        "        int64_t low = d > other ? d - other : 0, high = d < end ? d : end;",
        "        while (low < high) {",
        "            const int64_t at = low + (high - low) / 2;",
        "            if (x[at] <= y[d - 1 - at])",
        "                low = at + 1;",
        "            else",
        "                high = at;",
        "        }",
        "        split[threadIdx.x] = low;",
        "    }",
        "    __syncthreads();",
        "    const int64_t x0 = split[0], y0 = from - x0;",
        "    const int size = (int)(to - from), first = (int)(split[1] - x0);",
        f"    for (int i = threadIdx.x; i < size; i += {THREADS})",
        "        key[i] = i < first ? x[x0 + i] : y[y0 + i - first];",
        "    __syncthreads();",
        f"    for (int i = threadIdx.x; i < size; i += {THREADS}) {{",
        "        const bool is_first = i < first;",
        f"        const {k} k = key[i];",
        "        int low = is_first ? first : 0, high = is_first ? size : first;",
        "        while (low < high) {",
        "            const int at = (low + high) / 2;",
        "            if (is_first ? key[at] < k : key[at] <= k)",
        "                low = at + 1;",
        "            else",
        "                high = at;",
        "        }",
        "        const int64_t j = begin + from + (i - first + low);",
    ]
    if positions:
        body += [
            "        const int64_t place = is_first ? begin + x0 + i : middle + y0 + i - first;",
            f"        const {positions} *const places = (const {positions} *)data[1];",
            "        const int64_t position = places[line * count + place];",
        ]
    body += [
        *(f"        (({t} *)data[{a}])[line * row + j] = {v};" for a, t, v in written),
        "    }",
        "    __syncthreads();",
        "}",
    ]
    return _kernel(numbers, given + len(written), 0, shared, body)


def plan_sort(
    planner: Planner,
    x: Operand,
    axis: int,
    positions: bool = False,
    descending: bool = False,
    kept: int | None = None,
) -> Operand:
    """Emit sorting along an axis, NaN last; equal elements stay in order.

    Parameters
    ----------
    planner : Planner
    x : Operand
    axis : int
    positions : bool
        Whether the result is the positions of the elements, as int64; else the elements.
    descending : bool
        Whether the largest elements come first, and NaN before them; of positions alone.
    kept : int, optional
        How many elements of each line are kept; by default all.
    """
    assert positions or not descending
    count = x.shape[axis]
    kept = count if kept is None else kept
    others = [a for a in range(x.ndim) if a != axis]
    lengths = [x.shape[a] for a in others]
    z = planner.new("int64" if positions else x.dtype, [*lengths, kept])
    order = [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)]
    result = z.view([z.shape[a] for a in order], [z.strides[a] for a in order])
    if z.size == 0:
        return result
    lines = int(np.prod(lengths, dtype=np.int64))
    place = ("int32_t" if count <= LARGEST_32 else "int64_t") if positions else ""
    width = min(TILE, 1 << max(0, count - 1).bit_length())
    runs = -(-count // width)
    kernel = tiles_kernel(x.dtype, max(1, len(others)), place, descending, runs == 1)
    stored = [z] if runs == 1 else _stored(planner, x, lines * count, place)
    numbers = [lines * runs, count, runs, width, kept, kept if runs == 1 else count]
    rows = [[x.strides[a]] for a in others] or [[0]]
    blocks = [blocks_for(lines * runs, TILE // width)]
    numbers += [x.strides[axis], *lengths[1:]]
    planner.launch(kernel, blocks, numbers, [x, *stored], rows)
    while width < count:
        is_last = 2 * width >= count
        pairs, tiles = -(-count // (2 * width)), -(-min(2 * width, kept) // TILE)
        n, row = lines * pairs * tiles, kept if is_last else count
        target = [z] if is_last else _stored(planner, x, lines * count, place)
        kernel = merge_kernel(x.dtype, place, is_last)
        numbers = [n, tiles, pairs, count, width, kept, row]
        planner.launch(kernel, [min(n, MOST_BLOCKS)], numbers, [*stored, *target])
        stored, width = target, 2 * width
    return result


def _stored(planner: Planner, x: Operand, n: int, place: str) -> list[Operand]:
    """Return new arrays for keys, and for positions if these have a type."""
    keys = planner.new(_key_type(x.dtype).removesuffix("_t"), [n])
    return [keys, *([planner.new(place.removesuffix("_t"), [n])] if place else [])]


@cache
def search_kernel(dtype: str, rank: int, after_equal: bool) -> CudaKernel:
    """Return the kernel that counts the elements of a sorted vector before each number."""
    numbers = ["n", "count", "stride", *(f"m{a}" for a in range(1, rank))]
    w, k = _word(dtype), _key_type(dtype)
    offsets = offset_lines("i", ["n", *(f"m{a}" for a in range(1, rank))], 0, [0])
    body = [
        f"for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"     i += (int64_t)gridDim.x * {THREADS}) {{",
        "    int64_t o0 = 0;",
        *(f"    {line}" for line in offsets),
        f"    const {w} w = *(const {w} *)(data[0] + o0);",
        f"    const {k} k = {key_text(dtype, 'w', True, False)};",
        "    int64_t low = 0, high = count;",
        "    while (low < high) {",
        "        const int64_t at = low + (high - low) / 2;",
        f"        const {w} v = *(const {w} *)(data[1] + at * stride);",
        f"        if ({key_text(dtype, 'v', True, False)} {'<=' if after_equal else '<'} k)",
        "            low = at + 1;",
        "        else",
        "            high = at;",
        "    }",
        "    ((int64_t *)data[2])[i] = low;",
        "}",
    ]
    return _kernel(numbers, 3, rank, [], body)


def plan_search(planner: Planner, x: Operand, v: Operand, after_equal: bool) -> Operand:
    """Emit how many elements of the sorted vector x are before each element of v, as int64.

    Parameters
    ----------
    planner : Planner
    x, v : Operand
        Of one dtype.
    after_equal : bool
        Whether elements that are equal to one of v are before it.
    """
    z = planner.new("int64", v.shape)
    if z.size:
        numbers = [z.size, x.shape[0], x.strides[0], *v.shape[1:]]
        rows = [[step] for step in v.strides] or [[0]]
        kernel = search_kernel(x.dtype, max(1, v.ndim), after_equal)
        planner.launch(kernel, [blocks_for(z.size, THREADS)], numbers, [v, x, z], rows)
    return z
