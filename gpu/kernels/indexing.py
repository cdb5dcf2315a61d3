"""Reading and writing at positions: arrays of integers index some axes, the others are whole.

Writing is in the order of the positions, also where some occur twice: they are sorted by their
places, and one thread writes all values that go to one place. Where the order does not matter,
of integers, or with `config.gpu_atomics`, atomics add at places as they come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import ADDED, CudaKernel, named
from symcomp.codegen.functions.c_scalars import (
    C_TYPES,
    ROUNDED,
    STORED,
    read_element,
    stored_element,
)
from symcomp.core.record import record
from symcomp.gpu.kernels.sorting import plan_sort
from symcomp.gpu.layouts import collapse, pack_width
from symcomp.gpu.planner import Operand, Planner, blocks_for, needs_wide

THREADS = 256
_WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "literal"}


@record
class Selection:
    """The axes that arrays index, and the layout of the selection's axes.

    Attributes
    ----------
    axes : tuple of int
        Of the array, one for each index array.
    shape : tuple of int
        Of the selection.
    whole : tuple of int
        For each axis of the selection, the axis of the array, or -1 for an axis of positions.
    positions : tuple of int
        The axes of positions in the selection, in order.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    whole: tuple[int, ...]
    positions: tuple[int, ...]


def selection(
    shape: Sequence[int], axes: Sequence[int], positions: Sequence[int], adjacent: bool
) -> Selection:
    """Return what NumPy selects of an array of a shape.

    Parameters
    ----------
    shape : sequence of int
    axes : sequence of int
        The axes with index arrays.
    positions : sequence of int
        The shape to which the arrays broadcast.
    adjacent : bool
        Whether the axes of positions replace the indexed axes; else they are the first ones.
    """
    first = axes[0] if adjacent else 0
    rest = [a for a in range(len(shape)) if a not in axes]
    before, after = (rest[:first], rest[first:]) if adjacent else ([], rest)
    whole = (*before, *(-1 for _ in positions), *after)
    lengths = (*(shape[a] for a in before), *positions, *(shape[a] for a in after))
    places = tuple(range(len(before), len(before) + len(positions)))
    return Selection(tuple(axes), lengths, whole, places)


def _position_lines(dtypes: Sequence[str], rank: int, first: int, stop: str) -> list[str]:
    """Read the positions of an element, from the entries of the table from ``first`` on."""
    lines = []
    for k, dtype in enumerate(dtypes):
        terms = " + ".join(f"p{x} * step{x}[{first + k}]" for x in range(rank)) or "0"
        kind = C_TYPES[dtype]
        from_end = f" + (j{k} < 0 ? length{k} : 0)" if np.dtype(dtype).kind == "i" else ""
        lines += [
            f"const {kind} j{k} = *(const {kind} *)(data[{first + k}] + {terms});",
            f"const int64_t at{k} = (int64_t)j{k}{from_end};",
            f"if (at{k} < 0 || at{k} >= length{k}) {{",
            f"    report(words, ticket, (long long)j{k}, (long long)length{k});",
            f"    {stop}",
            "}",
        ]
    return lines


def _unravel_lines(rank: int, integer: str = "int64_t") -> list[str]:
    lines = [f"{integer} rest = i;"]
    for x in range(rank - 1, 0, -1):
        lines.append(f"const {integer} p{x} = rest % n{x}; rest /= n{x};")
    return [*lines, f"const {integer} p0 = rest;"] if rank else lines


def _kernel(
    numbers: Sequence[str],
    arrays: int,
    rank: int,
    body: Sequence[str],
    ticket: bool = True,
    wide: bool = True,
) -> CudaKernel:
    integer = _integer(wide)
    parameters = [f"const {integer} {name}" for name in numbers]
    parameters.append(f"const addresses<{arrays}> data")
    parameters += [f"const steps<{integer}, {arrays}> step{x}" for x in range(rank)]
    parameters += ["const unsigned long long ticket", "fault *const words"] if ticket else []
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        f"    for ({integer} i = ({integer})blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"         i += ({integer})gridDim.x * {THREADS}) {{",
        *(f"        {line}" for line in body),
        "    }",
        "}",
    ]
    name, text = named(lines, THREADS)
    return CudaKernel(name, text, tuple(numbers), arrays, 0, rank, wide, THREADS, False)


def _integer(wide: bool) -> str:
    return "int64_t" if wide else "int32_t"


@cache
def gather_kernel(
    itemsize: int, dtypes: tuple[str, ...], rank: int, wide: bool, width: int
) -> CudaKernel:
    """Return the kernel that reads at positions.

    Parameters
    ----------
    itemsize : int
        Of the elements.
    dtypes : tuple of str
        Of the index arrays.
    rank : int
        Of the selection, where axes that can be are joined.
    wide : bool
        Whether integers have 64 bits, else 32.
    width : int
        The elements of a pack, along the last axis; lengths and steps of this are those of packs.
    """
    word = _WORDS[itemsize]
    element = f"(const {word} *)({_place(dtypes, rank, wide)})"
    line = f"(({word} *)data[1])[i] = *{element};"
    if width > 1:
        line = f"write_pack(({word} *)data[1] + i * {width}, read_pack<{width}>({element}));"
    return _element_kernel(dtypes, rank, wide, line)


@cache
def add_kernel(dtype: str, dtypes: tuple[str, ...], rank: int, wide: bool) -> CudaKernel:
    """Return the kernel that adds elements at positions by atomics.

    Parameters
    ----------
    dtype : str
        Of the elements.
    dtypes : tuple of str
        Of the index arrays.
    rank : int
        Of the selection, where axes that can be are joined.
    wide : bool
        Whether integers have 64 bits, else 32.
    """
    kind = C_TYPES[dtype]
    value = " + ".join(["data[1]", *(f"p{x} * step{x}[1]" for x in range(rank))])
    line = f"add_to(({kind} *)({_place(dtypes, rank, wide)}), *(const {kind} *)({value}));"
    return _element_kernel(dtypes, rank, wide, line)


def _place(dtypes: Sequence[str], rank: int, wide: bool) -> str:
    """Return where the element of the array is that positions select."""
    terms = [f"p{x} * step{x}[0]" for x in range(rank)]
    terms += [f"({_integer(wide)})at{k} * stride{k}" for k in range(len(dtypes))]
    return f"data[0] + ({' + '.join(terms)})"


def _element_kernel(dtypes: Sequence[str], rank: int, wide: bool, line: str) -> CudaKernel:
    """Return the kernel that executes a line for each element of a selection, or each pack."""
    numbers = ["n", *(f"n{x}" for x in range(1, rank))]
    numbers += [name for k in range(len(dtypes)) for name in (f"length{k}", f"stride{k}")]
    unraveled = _unravel_lines(rank, _integer(wide))
    body = [*unraveled, *_position_lines(dtypes, rank, 2, "continue;"), line]
    return _kernel(numbers, 2 + len(dtypes), rank, body, wide=wide)


@record
class Indexed:
    """A view of an array, the axes of it that arrays index, these arrays, and their shape.

    Attributes
    ----------
    view : Operand
    axes : tuple of int
    arrays : tuple of Operand
        Integers; they broadcast.
    adjacent : bool
        See ``selection``.
    """

    view: Operand
    axes: tuple[int, ...]
    arrays: tuple[Operand, ...]
    adjacent: bool

    def shape(self) -> tuple[int, ...]:
        """Return the shape to which the arrays broadcast."""
        return np.broadcast_shapes(*(a.shape for a in self.arrays))

    def selection(self) -> Selection:
        """Return the layout of the selection from the view."""
        return selection(self.view.shape, self.axes, self.shape(), self.adjacent)


def plan_gather(planner: Planner, indexed: Indexed) -> Operand:
    """Emit reading at positions; return the selection."""
    x, arrays, chosen = indexed.view, indexed.arrays, indexed.selection()
    z = planner.new(x.dtype, chosen.shape)
    if z.size:
        walk = _element_walk(indexed, chosen, z, z.strides)
        width = _width(planner, indexed, walk, z)
        walk.shape[-1] //= width
        for row in walk.steps:
            row[-1] *= width
        dtypes, rank, wide = tuple(a.dtype for a in arrays), len(walk.shape), walk.wide
        kernel = gather_kernel(x.itemsize, dtypes, rank, wide, width)
        _launch_elements(planner, kernel, indexed, walk, z)
    return z


@record
class ElementWalk:
    """The axes of a selection, joined where they can be, and the steps along them.

    Attributes
    ----------
    shape : list of int
    steps : list of list of int
        Of the array, of the one that is read or written beside it, and of the index arrays.
    wide : bool
        Whether numbers or offsets need 64 bits.
    """

    shape: list[int]
    steps: list[list[int]]
    wide: bool


def _element_walk(
    indexed: Indexed, chosen: Selection, other: Operand, steps: Sequence[int]
) -> ElementWalk:
    """Return the walk along a selection and another array, with steps along its axes."""
    x, arrays = indexed.view, indexed.arrays
    rows = [[x.strides[whole] if whole >= 0 else 0 for whole in chosen.whole], steps]
    axes = range(len(chosen.shape))
    rows += [[_index_step(a, chosen, axis) for axis in axes] for a in arrays]
    wide = needs_wide([math.prod(chosen.shape)], [x, other, *arrays])
    return ElementWalk(*collapse(axes, chosen.shape, rows), wide)


def _width(planner: Planner, indexed: Indexed, walk: ElementWalk, z: Operand) -> int:
    """Return how many neighbouring elements one access reads and writes, of one position."""
    x, (step, to, *indices) = indexed.view, walk.steps
    if step[-1] != x.itemsize or any(row[-1] for row in indices):
        return 1
    moved = [x.strides[axis] for axis in indexed.axes]
    return pack_width(planner, [x, z], [[*moved, *step], to], walk.shape[-1])


def _launch_elements(
    planner: Planner, kernel: CudaKernel, indexed: Indexed, walk: ElementWalk, other: Operand
) -> None:
    """Emit a kernel whose threads have elements of the selection each, and of ``other``."""
    x, arrays, n = indexed.view, indexed.arrays, math.prod(walk.shape)
    numbers = [n, *walk.shape[1:]]
    for axis in indexed.axes:
        numbers += [x.shape[axis], x.strides[axis]]
    rows = [[row[a] for row in walk.steps] for a in range(len(walk.shape))]
    blocks = [blocks_for(n, THREADS)]
    planner.launch(kernel, blocks, numbers, [x, other, *arrays], rows, ticket=planner.label)


def _index_step(array: Operand, chosen: Selection, axis: int) -> int:
    """Return the bytes between positions along an axis of the selection."""
    if axis not in chosen.positions:
        return 0
    own = axis - chosen.positions[0] - (len(chosen.positions) - array.ndim)
    return array.strides[own] if own >= 0 and array.shape[own] != 1 else 0


# -- writing


@cache
def keys_kernel(dtypes: tuple[str, ...], rank: int) -> CudaKernel:
    """Return the kernel that writes the place of each position, in bytes; ~0 if it is outside."""
    numbers = ["n", *(f"n{x}" for x in range(1, rank))]
    numbers += [name for k in range(len(dtypes)) for name in (f"length{k}", f"stride{k}")]
    place = " + ".join(f"(uint64_t)(at{k} * stride{k})" for k in range(len(dtypes)))
    body = [
        "uint64_t *const keys = (uint64_t *)data[0];",
        "keys[i] = ~0ULL;",
        *_unravel_lines(rank),
        *_position_lines(dtypes, rank, 1, "continue;"),
        f"keys[i] = {place};",
    ]
    return _kernel(numbers, 1 + len(dtypes), rank, body)


@cache
def scatter_kernel(dtype: str, replaces: bool, rank: int, moved: int) -> CudaKernel:
    """Return the kernel that writes at sorted positions.

    Parameters
    ----------
    dtype : str
        Of the elements.
    replaces : bool
        Whether elements are set, else added.
    rank : int
        The number of axes of positions in the written elements.
    moved : int
        The number of their other axes.
    """
    stored, work = STORED[dtype], C_TYPES[dtype]
    numbers = ["n", "count", "columns", *(f"m{x}" for x in range(1, rank))]
    numbers += [f"c{x}" for x in range(1, moved)]
    lines = [
        "const uint64_t *const keys = (const uint64_t *)data[2];",
        "const int64_t *const order = (const int64_t *)data[3];",
        "const int64_t s = i / columns;",
        "const uint64_t place = keys[order[s]];",
        "if (place == ~0ULL || (s > 0 && keys[order[s - 1]] == place))",
        "    continue;",
        "int64_t column = i % columns, to = 0, from = 0;",
    ]
    for x in range(moved - 1, -1, -1):
        q, step = f"column % c{x}" if x else "column", f"step{rank + x}"
        lines.append(f"to += ({q}) * {step}[0]; from += ({q}) * {step}[1];")
        lines += [f"column /= c{x};"] if x else []
    add = f"total = ({work})(total + y);"
    if dtype == "bool":
        add = "total = (uint8_t)(total | y);"
    if dtype in ROUNDED:
        add = f"total = {ROUNDED[dtype]}(total + y);"
    lines += [
        f"{stored} *const z = ({stored} *)(data[0] + place + to);",
        f"{work} total = {read_element('*z', dtype)};",
        "for (int64_t e = s; e < count && keys[order[e]] == place; e++) {",
        "    int64_t number = order[e], at = from;",
        *(
            f"    at += {f'number % m{x}' if x else 'number'} * step{x}[1];"
            + (f" number /= m{x};" if x else "")
            for x in range(rank - 1, -1, -1)
        ),
        f"    const {work} y = {read_element(f'*(const {stored} *)(data[1] + at)', dtype)};",
        f"    {'total = y;' if replaces else add}",
        "}",
        f"*z = {stored_element('total', dtype)};",
    ]
    return _kernel(numbers, 4, rank + moved, lines, ticket=False)


def plan_scatter(planner: Planner, indexed: Indexed, y: Operand, replaces: bool) -> None:
    """Emit writing y at positions.

    Parameters
    ----------
    planner : Planner
    indexed : Indexed
        Of an array in C order.
    y : Operand
        Of the shape of the selection; lengths of 1 are stretched.
    replaces : bool
        Whether elements are set, to the last where positions occur twice; else added.
    """
    z, axes, arrays = indexed.view, indexed.axes, indexed.arrays
    shape, chosen = indexed.shape(), indexed.selection()
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0 or 0 in chosen.shape:
        return
    y_step = [0 if n == 1 else s for n, s in zip(y.shape, y.strides, strict=True)]
    any_order = planner.atomics or np.dtype(z.dtype).kind in "iu"
    if not replaces and any_order and z.dtype in ADDED:
        # Not by packs: atomics of a warp are done together where they are at neighbouring elements.
        walk = _element_walk(indexed, chosen, y, y_step)
        dtypes = tuple(a.dtype for a in arrays)
        kernel = add_kernel(z.dtype, dtypes, len(walk.shape), walk.wide)
        _launch_elements(planner, kernel, indexed, walk, y)
        return
    keys = _keys(planner, z, chosen, axes, arrays, count)
    order = plan_sort(planner, keys, 0, positions=True)
    rank = len(shape)
    others = [a for a in range(len(chosen.shape)) if a not in chosen.positions]
    rows = [[0, y_step[a], 0, 0] for a in chosen.positions]
    rows += [[z.strides[chosen.whole[a]], y_step[a], 0, 0] for a in others]
    lengths = [chosen.shape[a] for a in others]
    columns = int(np.prod(lengths, dtype=np.int64))
    n = count * columns
    numbers = [n, count, columns, *shape[1:], *lengths[1:]]
    kernel = scatter_kernel(z.dtype, replaces, rank, len(others))
    planner.launch(kernel, [blocks_for(n, THREADS)], numbers, [z, y, keys, order], rows)


def _keys(
    planner: Planner, z: Operand, chosen: Selection, axes: Sequence[int],
    arrays: Sequence[Operand], count: int,
) -> Operand:  # fmt: skip
    """Emit the places of positions in z."""
    keys = planner.new("uint64", [count])
    shape = [chosen.shape[a] for a in chosen.positions]
    rows = [[0, *(_index_step(a, chosen, axis) for a in arrays)] for axis in chosen.positions]
    numbers = [count, *shape[1:]]
    for axis in axes:
        numbers += [z.shape[axis], z.strides[axis]]
    kernel = keys_kernel(tuple(a.dtype for a in arrays), len(shape))
    blocks = [blocks_for(count, THREADS)]
    planner.launch(kernel, blocks, numbers, [keys, *arrays], rows, ticket=planner.label)
    return keys
