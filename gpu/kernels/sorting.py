"""Sorting along an axis, and searching in sorted vectors.

Elements become unsigned keys of the same order. A block sorts tiles of keys in shared memory:
several short lines, or a part of a long one. Then pairs of sorted runs are merged until a line is
one run: each block searches which elements of both runs its tile of the result has, and merges
these as the runs within a tile are merged. Equal keys stay in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.gpu.formulas import plan_copy
from symcomp.gpu.kernels.along_axis import offset_lines
from symcomp.gpu.kernels.tiles_of_keys import THREADS, TileOfKeys
from symcomp.gpu.layouts import LEAST_SIDE, is_turned
from symcomp.gpu.planner import LARGEST_32, MOST_BLOCKS, Operand, Planner, blocks_for

# The most elements of a thread, and of a block.
EACH = 16
TILE = THREADS * EACH
# The bytes that are read of memory at once.
SECTOR = 32
_WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
# The bits of infinity, by the size of the number.
_INFINITY = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}
#: Numbers that tell kernels the order of a dtype, of which they know the size; see ``_order``.
_ORDER = ("infinity", "flip")


def _word(dtype: str) -> str:
    """Return the unsigned type of the size of a dtype."""
    return _WORDS[np.dtype(dtype).itemsize]


def _key_type(word: str) -> str:
    return "uint64_t" if word == "uint64_t" else "uint32_t"


def _order(dtype: str, descending: bool = False) -> list[int]:
    """Return the bits of infinity, 0 for integers, and the bits of keys that are flipped."""
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    flip = 1 << 8 * size - 1 if kind == "i" else 0
    flip ^= (1 << 8 * size) - 1 if descending else 0
    signed = flip - (1 << 64) if flip >> 63 else flip
    return [0 if kind in "bui" else _INFINITY[size], signed]


def key_text(word: str, bits: str, equal_zeros: bool) -> str:
    """Return the C expression of the key of an element, whose order ``infinity`` and ``flip`` tell.

    Parameters
    ----------
    word : str
        The unsigned type of the size of elements.
    bits : str
        The name of the element's bits.
    equal_zeros : bool
        Whether -0.0 and 0.0 have one key; else -0.0 is before 0.0, and keys tell which it was. All
        NaN have one key, the largest before bits are flipped.
    """
    text = bits
    if word != "uint8_t":
        sign = _sign(word)
        magnitude = f"({word})({bits} & ~{sign})"
        text = f"{bits} & {sign} ? ~{bits} : {bits} | {sign}"
        if equal_zeros:
            text = f"{magnitude} == 0 ? {sign} : ({text})"
        text = f"{magnitude} > ({word})infinity ? ({word})~({word})0 : ({word})({text})"
        text = f"(infinity ? ({text}) : {bits})"
    return f"({_key_type(word)})({word})({text} ^ ({word})flip)"


def _sign(word: str) -> str:
    return f"(({word})1 << (8 * sizeof({word}) - 1))"


def _bits_text(word: str, key: str) -> str:
    """Return the C expression of the bits of an element, from its key, of an ascending order."""
    text = f"({word})({key} ^ ({word})flip)"
    if word == "uint8_t":
        return text
    sign = _sign(word)
    return f"infinity ? ({word})({key} & {sign} ? {key} ^ {sign} : ~{key}) : {text}"


def _outputs(word: str, positions: str, is_last: bool, first: int) -> list[tuple[int, str, str]]:
    """Return what a kernel writes: number in the table, C type, and the value's C expression."""
    if is_last:
        value = "(int64_t)position" if positions else _bits_text(word, "k")
        return [(first, "int64_t" if positions else word, value)]
    found = [(first, _key_type(word), "k")]
    return found + ([(first + 1, positions, f"({positions})position")] if positions else [])


def _kernel(
    numbers: Sequence[str],
    arrays: int,
    rank: int,
    shared: Sequence[str],
    body: Sequence[str],
    blocks: int = 1,
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
    name, text = named(lines, THREADS, blocks)
    return CudaKernel(name, text, tuple(numbers), arrays, 0, rank, True, THREADS, bool(shared))


def _blocks(tile: TileOfKeys, is_merge: bool) -> int:
    """Return how many blocks of a kernel a multiprocessor shall have registers for."""
    return 4 - (tile.key == "uint64_t") - is_merge


@cache
def tiles_kernel(
    word: str, rank: int, positions: str, is_last: bool, each: int
) -> CudaKernel:
    """Return the kernel that sorts runs of at most TILE elements.

    Parameters
    ----------
    word : str
        The unsigned type of the size of elements.
    rank : int
        The number of the axes of lines, at least 1.
    positions : str
        The C type of positions; empty for a sort of values.
    is_last : bool
        Whether runs are whole lines: then it writes the result; else keys, and positions.
    each : int
        The number of elements of a thread, a power of two; a run has at least as many.
    """
    # Numbers: of runs, of elements of a line, of runs of a line, the logarithm of the elements of
    # a run, of elements that are kept of each run, of elements between lines that are written;
    # bytes between elements.
    numbers = [*_ORDER, "n", "count", "runs", "log", "kept", "row", "stride"]
    numbers += [f"m{a}" for a in range(1, rank)]
    k, w = _key_type(word), word
    tile = TileOfKeys(k, each, bool(positions))
    offsets = offset_lines("line", ["lines", *(f"m{a}" for a in range(1, rank))], 0, [0])
    written = _outputs(word, positions, is_last, 1)
    there = [
        "const int j = i & (size - 1);",
        "const bool is_there = j < length && i < present << shift;",
    ]
    element = key_text(word, "bits", bool(positions))
    reads = [
        *there,
        "some[e] = 0;",
        "if (is_there)",
        f"    some[e] = *(const {w} *)(data[0] + starts[i >> shift] + j * stride);",
    ]
    value = [
        *there,
        f"const {w} bits = some[e];",
        f"const {k} found = is_there ? {element} : ~({k})0;",
    ]
    # A block has several runs only if these are whole lines.
    shift = "(int)log" if is_last else str(TILE.bit_length() - 1)
    run = ["first = start, begin = 0;", "const int length = (int)count;"] if is_last else [
        "first = start / runs, begin = start % runs * size;",
        "const int length = count - begin < size ? (int)(count - begin) : size;",
    ]  # fmt: skip
    body = [
        f"const int shift = {shift}, size = 1 << shift, together = {tile.size} >> shift;",
        f"const int own = (int)threadIdx.x * {each}, inside = own & (size - 1);",
        "for (int64_t start = (int64_t)blockIdx.x * together; start < n;",
        "     start += (int64_t)gridDim.x * together) {",
        f"    const int64_t {run[0]}",
        f"    {run[1]}",
        "    const int present = n - start < together ? (int)(n - start) : together;",
        "    if ((int)threadIdx.x < present) {",
        "        const int64_t line = first + threadIdx.x;",
        "        int64_t o0 = begin * stride;",
        *(f"        {line}" for line in offsets),
        "        starts[threadIdx.x] = o0;",
        "    }",
        "    __syncthreads();",
        *(f"    {line}" for line in tile.read(w, reads, value)),
        *(f"    {line}" for line in tile.own()),
        *(f"    {line}" for line in tile.take_own()),
        *(f"    {line}" for line in tile.sort_own()),
        "    #pragma unroll 1",
        f"    for (int width = {each}; width < length; width *= 2) {{",
        *(f"        {line}" for line in tile.store()),
        "        if (inside < length) {",
        "            const int base = own & ~(2 * width - 1), stop = own - inside + length;",
        "            const int middle = base + width < stop ? base + width : stop;",
        "            const int end = middle + width < stop ? middle + width : stop;",
        *(f"            {line}" for line in tile.merge("base", "middle", "end", "(own - base)")),
        *(f"            {line}" for line in tile.move_places()),
        "        }",
        "    }",
        *(f"    {line}" for line in tile.store(not (positions and is_last))),
        "    const int wanted = length < kept ? length : (int)kept;",
        *(f"    {line}" for line in tile.write(_results_of_runs(tile, is_last, written))),
        "}",
    ]
    shared = [*tile.shared(), f"int64_t starts[{THREADS}]"]
    return _kernel(numbers, 1 + len(written), rank, shared, body, _blocks(tile, False))


def _results_of_runs(
    tile: TileOfKeys, is_last: bool, written: Sequence[tuple[int, str, str]]
) -> list[str]:
    lines = ["const int j = i & (size - 1);", "if (j < wanted && i < present << shift) {"]
    if not (tile.has_places and is_last):
        lines += [f"    const {tile.key} k = key[{tile.at('i')}];"]
    if tile.has_places:
        lines += [f"    const int64_t position = begin + (place[{tile.at('i')}] & (size - 1));"]
    lines += ["    const int64_t to = (first + (i >> shift)) * row + begin + j;"]
    return [*lines, *(f"    (({t} *)data[{a}])[to] = {v};" for a, t, v in written), "}"]


@cache
def merge_kernel(word: str, positions: str, is_last: bool) -> CudaKernel:
    """Return the kernel that merges pairs of sorted runs; see ``tiles_kernel``."""
    # Numbers: of tiles, of tiles of a pair, of pairs of a line, of elements of a run; the others
    # as in tiles_kernel.
    numbers = [*_ORDER, "n", "tiles", "pairs", "count", "width", "kept", "row"]
    k = _key_type(word)
    tile = TileOfKeys(k, EACH, bool(positions))
    given, has_keys = 2 if positions else 1, not (positions and is_last)
    written = _outputs(word, positions, is_last, given)
    results = _results_of_pairs(tile, positions, is_last, written)
    reads = [f"some[e] = i < size ? *(i < first ? x_from + i : y_from + (i - first)) : ({k})0;"]
    body = [
        "for (int64_t g = blockIdx.x; g < n; g += gridDim.x) {",
        "    const int64_t pair = g / tiles % pairs, line = g / tiles / pairs;",
        "    const int64_t begin = pair * 2 * width, half = begin + width;",
        "    const int64_t whole = width < kept ? width : kept;",
        "    const int64_t ours = begin + whole < count ? whole : count - begin;",
        "    const int64_t rest = count > half ? count - half : 0;",
        "    const int64_t other = rest < whole ? rest : whole;",
        "    const int64_t total = ours + other < kept ? ours + other : kept;",
        f"    const int64_t from = g % tiles * {TILE} < total ? g % tiles * {TILE} : total;",
        f"    const int64_t to = from + {TILE} < total ? from + {TILE} : total;",
        f"    const {k} *const x_all = (const {k} *)data[0] + line * count + begin;",
        f"    const {k} *const y_all = (const {k} *)data[0] + line * count + half;",
        "    int64_t split[2];",
        *(f"    {line}" for line in _splits()),
        "    const int size = (int)(to - from), first = (int)(split[1] - split[0]);",
        f"    const {k} *const x_from = x_all + split[0], *const y_from = y_all + from - split[0];",
        *(f"    {line}" for line in tile.read(k, reads, [f"const {k} found = some[e];"])),
        *(f"    {line}" for line in tile.own(has_keys)),
        f"    const int own = (int)threadIdx.x * {EACH}, slot = {tile.at('own')};",
        "    if (own < size) {",
        *(f"        {line}" for line in tile.merge("0", "first", "size", "own", has_keys)),
        "    }",
        *(f"    {line}" for line in tile.store(has_keys)),
        *(f"    {line}" for line in tile.write(results)),
        "    __syncthreads();",
        "}",
    ]
    return _kernel(numbers, given + len(written), 0, tile.shared(), body, _blocks(tile, True))


def _splits() -> list[str]:
    """Return the search of how many elements of the first run are before a tile, and its end.

    All threads compare one element each of the range that is left, and count the answers.
    """
    found = f"low + (high - low) * {{}} / {THREADS}"
    return [
        "#pragma unroll",
        "for (int s = 0; s < 2; s++) {",
        "    const int64_t d = s ? to : from;",
        "    int64_t low = d > other ? d - other : 0, high = d < ours ? d : ours;",
        "    while (low < high) {",
        f"        const int64_t at = {found.format('threadIdx.x')};",
        "        const int parts = __syncthreads_count(x_all[at] <= y_all[d - 1 - at]);",
        f"        const int64_t next = parts < {THREADS} ? {found.format('parts')} : high;",
        f"        low = parts ? {found.format('(parts - 1)')} + 1 : low;",
        "        high = next;",
        "    }",
        "    split[s] = low;",
        "}",
    ]


def _results_of_pairs(
    tile: TileOfKeys, positions: str, is_last: bool, written: Sequence[tuple[int, str, str]]
) -> list[str]:
    lines = ["if (i < size) {"]
    if not (positions and is_last):
        lines += [f"    const {tile.key} k = key[{tile.at('i')}];"]
    if positions:
        lines += [
            f"    const int before = place[{tile.at('i')}];",
            "    const int64_t at = before < first ? begin + split[0] + before",
            "                                     : half + from - split[1] + before;",
            f"    const {positions} *const places = (const {positions} *)data[1];",
            "    const int64_t position = places[line * count + at];",
        ]
    lines += ["    const int64_t target = line * row + begin + from + i;"]
    return [*lines, *(f"    (({t} *)data[{a}])[target] = {v};" for a, t, v in written), "}"]


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
    log = min(TILE.bit_length() - 1, max(0, count - 1).bit_length())
    width = 1 << log
    x = _as_lines(planner, x, axis, TILE // width)
    runs, each = -(-count // width), min(EACH, width)
    word, keyed = _word(x.dtype), _order(x.dtype, descending)
    kernel = tiles_kernel(word, max(1, len(lengths)), place, runs == 1, each)
    stored = [z] if runs == 1 else _stored(planner, x, lines * count, place)
    numbers = [*keyed, lines * runs, count, runs, log, kept, kept if runs == 1 else count]
    rows = [[step] for step in x.strides[:-1]] or [[0]]
    blocks = [blocks_for(lines * runs, THREADS * each // width)]
    numbers += [x.strides[-1], *lengths[1:]]
    planner.launch(kernel, blocks, numbers, [x, *stored], rows)
    while width < count:
        is_last = 2 * width >= count
        pairs, tiles = -(-count // (2 * width)), -(-min(2 * width, kept) // TILE)
        n, row = lines * pairs * tiles, kept if is_last else count
        target = [z] if is_last else _stored(planner, x, lines * count, place)
        kernel = merge_kernel(word if is_last else _key_type(word), place, is_last)
        numbers = [*keyed, n, tiles, pairs, count, width, kept, row]
        planner.launch(kernel, [min(n, MOST_BLOCKS)], numbers, [*stored, *target])
        stored, width = target, 2 * width
    return result


def _as_lines(planner: Planner, x: Operand, axis: int, together: int) -> Operand:
    """Return an array with this axis as the last one: a copy by tiles of elements whose neighbours
    lie along another axis, if a block, which sorts some lines together, does not read all
    neighbours in a sector.
    """
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    lines = x.view([x.shape[a] for a in order], [x.strides[a] for a in order])
    others = range(x.ndim - 1)
    are_apart = together * x.itemsize < SECTOR and lines.shape[-1] >= LEAST_SIDE
    turned = [a for a in others if is_turned(lines, lines.strides, a)]
    if not are_apart or all(lines.shape[a] < LEAST_SIDE for a in turned):
        return lines
    copy = planner.new(x.dtype, lines.shape)
    plan_copy(planner, copy, lines)
    return copy


def _stored(planner: Planner, x: Operand, n: int, place: str) -> list[Operand]:
    """Return new arrays for keys, and for positions if these have a type."""
    keys = planner.new(_key_type(_word(x.dtype)).removesuffix("_t"), [n])
    return [keys, *([planner.new(place.removesuffix("_t"), [n])] if place else [])]


@cache
def search_kernel(word: str, rank: int, after_equal: bool) -> CudaKernel:
    """Return the kernel that counts the elements of a sorted vector before each number."""
    numbers = [*_ORDER, "n", "count", "stride", *(f"m{a}" for a in range(1, rank))]
    k = _key_type(word)
    offsets = offset_lines("i", ["n", *(f"m{a}" for a in range(1, rank))], 0, [0])
    body = [
        f"for (int64_t i = (int64_t)blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"     i += (int64_t)gridDim.x * {THREADS}) {{",
        "    int64_t o0 = 0;",
        *(f"    {line}" for line in offsets),
        f"    const {word} w = *(const {word} *)(data[0] + o0);",
        f"    const {k} k = {key_text(word, 'w', True)};",
        "    int64_t low = 0, high = count;",
        "    while (low < high) {",
        "        const int64_t at = low + (high - low) / 2;",
        f"        const {word} v = *(const {word} *)(data[1] + at * stride);",
        f"        if ({key_text(word, 'v', True)} {'<=' if after_equal else '<'} k)",
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
        numbers = [*_order(x.dtype), z.size, x.shape[0], x.strides[0], *v.shape[1:]]
        rows = [[step] for step in v.strides] or [[0]]
        kernel = search_kernel(_word(x.dtype), max(1, v.ndim), after_equal)
        planner.launch(kernel, [blocks_for(z.size, THREADS)], numbers, [v, x, z], rows)
    return z
