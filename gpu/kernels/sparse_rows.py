"""Sparse matrices whose rows lie one after the other: entries of products, transposes, and dense
matrices that are read and written at a pattern.

A block makes one row of a product at a time. It adds up the entries at their places, in the order
of the entries of the first factor: sums have the same bits each time, and those of the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named, waits
from symcomp.codegen.functions.c_scalars import C_TYPES, COMPLEX
from symcomp.core.record import record
from symcomp.gpu.formulas import contiguous
from symcomp.gpu.kernels.positions import plan_checked
from symcomp.gpu.kernels.sorting import plan_sort
from symcomp.gpu.planner import MOST_BLOCKS, Operand, Planner, blocks_for

THREADS, ALONE = 64, 256
#: The type of entries that are only moved, by their bytes.
WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "literal"}


@record
class CsrRows:
    """The arrays of a CSR matrix, whose pointers are known to fit.

    Attributes
    ----------
    indices, indptr : Operand
        Indices are in range; they ascend in each row.
    data : Operand or None
        None for a pattern.
    """

    indices: Operand
    indptr: Operand
    data: Operand | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.indptr.shape[0] - 1

    def pattern(self, planner: Planner) -> list[Operand]:
        """Return indices and pointers without gaps."""
        return [contiguous(planner, x) for x in (self.indices, self.indptr)]

    def arrays(self, planner: Planner) -> list[Operand]:
        """Return data, indices and pointers without gaps."""
        assert self.data is not None
        return [contiguous(planner, self.data), *self.pattern(planner)]


def plan_in_range(planner: Planner, indices: Operand, length: int) -> Operand:
    """Return indices in range, which are checked once in each call: neither kernels nor cuSPARSE
    look at the range.
    """

    def plan() -> Operand:
        return plan_checked(planner, contiguous(planner, indices), length)

    return planner.once([indices], ("checked", length), plan)


def note_in_range(planner: Planner, indices: Operand, length: int) -> None:
    """Let indices be known to be in range."""
    planner.note([indices], ("checked", length), indices)


def row_kernel(
    numbers: Sequence[str],
    tables: Sequence[tuple[str, str]],
    body: str,
    threads: int,
    shared: Sequence[str] = (),
) -> CudaKernel:
    """Return a kernel.

    Parameters
    ----------
    tables : sequence of (str, str)
        For each array its C type, which is const for one that is read, and its name.
    """
    parameters = [f"const int64_t {name}" for name in numbers]
    parameters.append(f"const addresses<{len(tables)}> data")
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        *(f"    __shared__ {line};" for line in shared),
        *(f"    {t} *const {name} = ({t} *)data[{i}];" for i, (t, name) in enumerate(tables)),
        *(f"    {line}" for line in body.strip("\n").split("\n")),
        "}",
    ]
    name, text = named(lines, threads)
    barriers = waits(text)
    return CudaKernel(
        name, text, tuple(numbers), len(tables), 0, 0, True, threads, barriers
    )  # fmt: skip


def index_tables(dtype: str, names: str) -> list[tuple[str, str]]:
    """Return the tables of arrays of indices that are read."""
    return [(f"const {C_TYPES[dtype]}", name) for name in names.split()]


def filled(body: str, **texts: str | int) -> str:
    """Return lines of C with texts in the place of names, without the lines that are empty then."""
    for name, text in texts.items():
        body = body.replace(name, str(text))
    return "\n".join(line for line in body.split("\n") if line.strip())


# -- the entries of a product


def entry_type(dtype: str) -> str:
    """Return the C type of entries."""
    part = COMPLEX.get(dtype)
    return C_TYPES[dtype] if part is None else f"complex_number<{C_TYPES[part]}>"


def _sum_of_product(dtype: str) -> str:
    """Return the expression of z + x y."""
    kind = entry_type(dtype)
    if dtype == "bool":
        return f"({kind})(z | (x & y))"
    if np.dtype(dtype).kind in "fc":
        return "z + x * y"
    # Signed integers would not wrap around.
    wide = "uint64_t" if np.dtype(dtype).itemsize == 8 else "uint32_t"
    return f"({kind})(({wide})z + ({wide})x * ({wide})y)"


_ENTRIES = """
for (int64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    const int64_t begin = BEGIN, end = END;
    if (begin == end)
        continue;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; k++) {
        const int64_t row = indices[k];
        const ENTRY x = left[k];
        for (int64_t m = pointers[row] + threadIdx.x; m < pointers[row + 1]; m += THREADS) {
            const int64_t at = PLACE;
            if (IS_THERE) {
                const ENTRY y = right[m], z = made[at];
                made[at] = TOTAL;
            }
        }
        __syncthreads();
    }
}
"""
_AT_PATTERN = {
    "BEGIN": "starts[i]", "END": "starts[i + 1]",
    "PLACE": "first_from(places, begin, end, others[m])",
    "IS_THERE": "at < end && places[at] == others[m]",
}  # fmt: skip
_DENSE = {
    "BEGIN": "i * columns", "END": "begin + columns", "PLACE": "begin + others[m]",
    "IS_THERE": "at < end",
}  # fmt: skip


@cache
def entries_kernel(dtype: str, index_dtype: str, dense: bool) -> CudaKernel:
    """Return the kernel that adds up the entries of a product at the places of a pattern, or in a
    dense matrix.
    """
    kind, total = entry_type(dtype), _sum_of_product(dtype)
    places = [] if dense else index_tables(index_dtype, "places starts")
    tables = [
        (f"const {kind}", "left"), *index_tables(index_dtype, "indices indptr"),
        (f"const {kind}", "right"), *index_tables(index_dtype, "others pointers"), *places,
        (kind, "made"),
    ]  # fmt: skip
    places_of = _DENSE if dense else _AT_PATTERN
    body = filled(_ENTRIES, **places_of, ENTRY=kind, TOTAL=total, THREADS=THREADS)
    return row_kernel(["rows", "columns"] if dense else ["rows"], tables, body, THREADS)


def plan_product_entries(planner: Planner, x: CsrRows, y: CsrRows, pattern: CsrRows) -> Operand:
    """Emit the entries of the product of two matrices at the places of a pattern."""
    assert x.data is not None
    made = planner.new(x.data.dtype, pattern.indices.shape)
    planner.clear(made)
    if 0 not in (*made.shape, *x.indices.shape, *y.indices.shape):
        kernel = entries_kernel(x.data.dtype, x.indices.dtype, False)
        given = [*x.arrays(planner), *y.arrays(planner), *pattern.pattern(planner)]
        planner.launch(kernel, [min(x.count, MOST_BLOCKS)], [x.count], [*given, made])
    return made


def plan_dense_product(planner: Planner, x: CsrRows, y: CsrRows, columns: int) -> Operand:
    """Emit the product of two matrices as a dense one."""
    assert x.data is not None
    made = planner.new(x.data.dtype, [x.count, columns])
    planner.clear(made)
    if 0 not in (*made.shape, *x.indices.shape, *y.indices.shape):
        kernel = entries_kernel(x.data.dtype, x.indices.dtype, True)
        given = [*x.arrays(planner), *y.arrays(planner), made]
        planner.launch(kernel, [min(x.count, MOST_BLOCKS)], [x.count, columns], given)
    return made


# -- transposes


@cache
def transposed_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that brings the columns of entries, and the numbers of their rows, into an
    order.
    """
    kind = C_TYPES[dtype]
    body = f"""
for (int64_t s = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; s < n;
     s += (int64_t)gridDim.x * {ALONE}) {{
    const int64_t k = order[s];
    sorted[s] = indices[k];
    numbers[s] = ({kind})(first_from(indptr, 0, rows + 1, k + 1) - 1);
}}"""
    tables = [
        *index_tables(dtype, "indices indptr"), ("const int64_t", "order"), (kind, "sorted"),
        (kind, "numbers"),
    ]  # fmt: skip
    return row_kernel(["n", "rows"], tables, body, ALONE)


@cache
def starts_kernel(dtype: str) -> CudaKernel:
    """Return the kernel that finds where each number begins among sorted ones."""
    kind = C_TYPES[dtype]
    body = f"""
for (int64_t c = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; c < n;
     c += (int64_t)gridDim.x * {ALONE})
    starts[c] = ({kind})first_from(sorted, 0, count, c);"""
    tables = [*index_tables(dtype, "sorted"), (kind, "starts")]
    return row_kernel(["n", "count"], tables, body, ALONE)


@cache
def ordered_kernel(itemsize: int, dtype: str) -> CudaKernel:
    """Return the kernel that brings entries into an order, of a dtype of integers."""
    word = WORDS[itemsize]
    body = f"""
for (int64_t s = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; s < n;
     s += (int64_t)gridDim.x * {ALONE})
    to[s] = given[order[s]];"""
    tables = [(f"const {word}", "given"), *index_tables(dtype, "order"), (word, "to")]
    return row_kernel(["n"], tables, body, ALONE)


def plan_transposed_rows(planner: Planner, x: CsrRows, columns: int) -> CsrRows:
    """Emit the transpose of a CSR matrix."""
    data, *pattern = x.arrays(planner)
    order, rows, starts = planner.once(
        pattern, _transposed(columns), lambda: _plan_turned(planner, pattern, columns)
    )
    found = planner.once([data, order], "in order", lambda: _plan_ordered(planner, data, order))
    return CsrRows(rows, starts, found)


def note_transposed_rows(
    planner: Planner, indices: Operand, indptr: Operand, columns: int, *turned: Operand
) -> None:
    """Let the transpose of a pattern be known: the places that its entries have here, its indices
    and its pointers.
    """
    planner.note([indices, indptr], _transposed(columns), turned)


def knows_transposed_rows(
    planner: Planner, indices: Operand, indptr: Operand, columns: int
) -> bool:
    """Return whether the transpose of a pattern is known."""
    return planner.noted([indices, indptr], _transposed(columns)) is not None


def _transposed(columns: int) -> tuple[str, int]:
    return "rows transposed", columns


def _plan_ordered(planner: Planner, data: Operand, order: Operand) -> Operand:
    """Emit entries in an order."""
    found, n = planner.new(data.dtype, data.shape), data.size
    if n:
        kernel = ordered_kernel(data.itemsize, order.dtype)
        planner.launch(kernel, [blocks_for(n, ALONE)], [n], [data, order, found])
    return found


def _plan_turned(
    planner: Planner, pattern: Sequence[Operand], columns: int
) -> tuple[Operand, Operand, Operand]:
    """Emit the places that entries of the transpose of a pattern have here, as int64, and its
    indices and pointers.
    """
    indices, indptr = pattern
    n, dtype = indices.shape[0], indices.dtype
    starts = planner.new(dtype, [columns + 1])
    if n == 0:
        planner.clear(starts)
        return planner.new("int64", [0]), planner.new(dtype, [0]), starts
    order = plan_sort(planner, indices, 0, positions=True)
    columns_in_order, rows = (planner.new(dtype, [n]) for _ in range(2))
    given = [indices, indptr, order, columns_in_order, rows]
    numbers = [n, indptr.shape[0] - 1]
    planner.launch(transposed_kernel(dtype), [blocks_for(n, ALONE)], numbers, given)
    blocks = [blocks_for(columns + 1, ALONE)]
    planner.launch(starts_kernel(dtype), blocks, [columns + 1, n], [columns_in_order, starts])
    return order, rows, starts


# -- entries at the places of a pattern


@cache
def dense_kernel(itemsize: int, dtype: str, writes: bool) -> CudaKernel:
    """Return the kernel that reads the elements of a dense matrix at a pattern, or writes them.

    Parameters
    ----------
    itemsize : int
        Of the elements.
    dtype : str
        Of indices.
    writes : bool
    """
    word = WORDS[itemsize]
    body = f"""
for (int64_t k = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; k < n;
     k += (int64_t)gridDim.x * {ALONE}) {{
    const int64_t row = first_from(indptr, 0, rows + 1, k + 1) - 1;
    {word} *const at = ({word} *)(dense + row * row_step + indices[k] * step);
    {"*at = entries[k]" if writes else "entries[k] = *at"};
}}"""
    tables = [
        ("char", "dense"), *index_tables(dtype, "indices indptr"),
        (f"const {word}" if writes else word, "entries"),
    ]  # fmt: skip
    return row_kernel(["n", "rows", "row_step", "step"], tables, body, ALONE)


def plan_at_pattern(
    planner: Planner, dense: Operand, pattern: CsrRows, entries: Operand, writes: bool
) -> None:
    """Emit copying the elements of a dense matrix at a pattern to ``entries``, or from there."""
    n = entries.size
    if n:
        kernel = dense_kernel(entries.itemsize, pattern.indices.dtype, writes)
        given = [dense, *pattern.pattern(planner), entries]
        planner.launch(kernel, [blocks_for(n, ALONE)], [n, pattern.count, *dense.strides], given)


@cache
def lookup_kernel(itemsize: int, dtype: str) -> CudaKernel:
    """Return the kernel that finds the entries of a matrix at the places of a pattern.

    Parameters
    ----------
    itemsize : int
        Of the entries.
    dtype : str
        Of indices.
    """
    word = WORDS[itemsize]
    body = f"""
for (int64_t k = (int64_t)blockIdx.x * {ALONE} + threadIdx.x; k < n;
     k += (int64_t)gridDim.x * {ALONE}) {{
    const int64_t row = first_from(starts, 0, rows + 1, k + 1) - 1, end = indptr[row + 1];
    const int64_t at = first_from(indices, indptr[row], end, places[k]);
    if (at < end && indices[at] == places[k])
        found[k] = given[at];
}}"""
    tables = [
        (f"const {word}", "given"), *index_tables(dtype, "indices indptr places starts"),
        (word, "found"),
    ]  # fmt: skip
    return row_kernel(["n", "rows"], tables, body, ALONE)


def plan_lookup(planner: Planner, x: CsrRows, pattern: CsrRows) -> Operand:
    """Emit the entries of a matrix at the places of a pattern: 0 where it has none."""
    assert x.data is not None
    found = planner.new(x.data.dtype, pattern.indices.shape)
    planner.clear(found)
    n = found.size
    if n:
        kernel = lookup_kernel(found.itemsize, x.indices.dtype)
        given = [*x.arrays(planner), *pattern.pattern(planner), found]
        planner.launch(kernel, [blocks_for(n, ALONE)], [n, pattern.count], given)
    return found
