"""Products with sparse matrices by cuSPARSE, of CSR arrays that lie on a device.

cuSPARSE finds arrays in descriptors. Calls with equal layouts share these: the machine sets the
addresses of a call in them before it calls the function.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from symcomp.core.record import record, replace
from symcomp.cvm.machine import DescribedCall
from symcomp.errors import ShapeError
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.formulas import contiguous, plan_copy
from symcomp.gpu.kernels.sparse_rows import (
    CsrRows,
    knows_transposed_rows,
    plan_in_range,
    plan_transposed_rows,
)
from symcomp.gpu.libraries.binding import LibraryWithHandle, library_of
from symcomp.gpu.planner import LARGEST_32, Operand, Planner

#: NVIDIA's numbers of the dtypes of entries, and those of indices.
TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
INDEX_TYPES = {"int32": 2, "int64": 3}
AS_IT_IS, TRANSPOSED = 0, 1
FROM_ZERO, BY_ROWS, WITH_VALUES = 0, 2, 1
# Algorithms that add up in the same order each time, but only of matrices that are not transposed;
# and the one of everything.
REPRODUCIBLE = {"cusparseSpMV": 3, "cusparseSpMM": 12, "cusparseSDDMM": 0}
# cuSPARSE of CUDA 13.0 refused to have this recorded, on an H200.
UNRECORDABLE = {("cusparseSpMM", REPRODUCIBLE["cusparseSpMM"])}
DEFAULT = 0
SORTING = 1  # the algorithm that transposes, a reproducible one
# The addresses of the arrays of sparse matrices are multiples of this.
ALIGNMENT = 16
# Per kind of descriptor: the end of the names of functions that create and destroy it, and that
# set its addresses, and how many it has.
KINDS = {
    "Csr": ("Csr", "SpMat", "CsrSetPointers", 3),
    "DnMat": ("DnMat", "DnMat", "DnMatSetValues", 1),
    "DnVec": ("DnVec", "DnVec", "DnVecSetValues", 1),
}


class Cusparse(LibraryWithHandle):
    """cuSPARSE, version 12, with a handle for one device.

    Attributes
    ----------
    nowhere : int
        The address that descriptors have before a call.
    """

    name, called = "cusparse", "cuSPARSE"
    creating, setting = "cusparseCreate", "cusparseSetStream"
    needed = (
        *(f"cusparseCreate{made}" for made, _, _, _ in KINDS.values()),
        *(f"cusparseDestroy{gone}" for _, gone, _, _ in KINDS.values()),
        *(f"cusparse{sets}" for _, _, sets, _ in KINDS.values()),
        *REPRODUCIBLE, *(f"{function}_bufferSize" for function in REPRODUCIBLE),
        "cusparseCsr2cscEx2", "cusparseCsr2cscEx2_bufferSize",
    )  # fmt: skip
    errors: ClassVar = {
        1: "not initialized", 2: "allocation failed", 3: "invalid value",
        4: "not for this architecture", 5: "mapping failed", 6: "execution failed",
        7: "internal error", 8: "kind of matrix not supported", 9: "zero pivot",
        10: "not supported", 11: "too few resources",
    }  # fmt: skip

    def __init__(self, driver: Driver, path: str) -> None:
        super().__init__(driver, path)
        self._memory = driver.allocate(256, "the descriptors of cuSPARSE")
        self.nowhere = self._memory.address
        self._calls: weakref.WeakValueDictionary[object, SparseCall] = (
            weakref.WeakValueDictionary()
        )
        self.transposing = Transposing(self)

    def product(self, key: SparseKey) -> SparseCall:
        """Return what plans call for products of these layouts."""
        with self.driver.lock:
            found = self._calls.get(key)
            if found is None:
                found = self._calls[key] = SparseCall(self, key)
            return found


class Transposing:
    """The library for plans that transpose: NVIDIA does not promise that this can be recorded."""

    is_recordable = False

    def __init__(self, library: Cusparse) -> None:
        self.handle, self.message, self.address = library.handle, library.message, library.address


@record
class SparseKey:
    """A function and the layouts of its arrays.

    Attributes
    ----------
    function : str
    dtype, index_dtype : str
    turned : tuple of int
        For each factor of two axes, AS_IT_IS or TRANSPOSED.
    algorithm : int
    arrays : tuple of (str, tuple of int)
        Of the factors and the result: the kind of descriptor, and its numbers: rows, columns and
        entries; rows, columns and the elements between rows; or a length.
    """

    function: str
    dtype: str
    index_dtype: str
    turned: tuple[int, ...]
    algorithm: int
    arrays: tuple[tuple[str, tuple[int, ...]], ...]


class SparseCall:
    """The descriptors of a product: a library for plans of regions.

    Attributes
    ----------
    handle : LibraryHandle
    is_recordable : bool
    call : DescribedCall
    workspace : int
        Bytes.

    Parameters
    ----------
    library : Cusparse
    key : SparseKey
    """

    def __init__(self, library: Cusparse, key: SparseKey) -> None:
        self._library, self.handle = library, library.handle
        self.is_recordable = (key.function, key.algorithm) not in UNRECORDABLE
        self.message = library.message
        number = ctypes.c_double if key.dtype in ("float64", "complex128") else ctypes.c_float
        self._factors = (number * 2)(1, 0), (number * 2)(0, 0)
        one, zero = (ctypes.addressof(f) for f in self._factors)
        first, second, made = (self._described(key, *array) for array in key.arrays)
        words = [
            *key.turned, one, first, second, zero, made, TYPES[key.dtype], key.algorithm
        ]  # fmt: skip
        size = ctypes.c_size_t()
        library.call(f"{key.function}_bufferSize", library.number, *words, ctypes.byref(size))
        self.workspace = size.value
        arrays = []
        for (kind, _), descriptor in zip(key.arrays, (first, second, made), strict=True):
            _, _, sets, n = KINDS[kind]
            arrays.append((library.address(f"cusparse{sets}"), descriptor, n))
        self.call = DescribedCall(arrays, library.address(key.function), words)

    def _described(self, key: SparseKey, kind: str, numbers: Sequence[int]) -> int:
        """Return a new descriptor, which goes with this."""
        made, nowhere, dtype = ctypes.c_void_p(), self._library.nowhere, TYPES[key.dtype]
        creates, destroys, _, n = KINDS[kind]
        more = [*numbers, *[nowhere] * n]
        if kind == "Csr":
            more += [INDEX_TYPES[key.index_dtype]] * 2 + [FROM_ZERO]
        more += [dtype, BY_ROWS] if kind == "DnMat" else [dtype]
        self._library.call(f"cusparseCreate{creates}", ctypes.byref(made), *more)
        end = weakref.finalize(
            self, self._library.call, f"cusparseDestroy{destroys}", made.value or 0
        )
        end.atexit = False  # the driver may be gone
        return made.value or 0

    def address(self, function: str) -> int:
        """Return the address of what sets the addresses and calls the function."""
        return self.call.function


@record
class CompressedArrays:
    """The arrays of a CSR matrix, whose pointers are known to fit.

    Attributes
    ----------
    data, indices, indptr : Operand
    columns : int
    in_range : bool
        Whether all indices are known to be columns.
    """

    data: Operand
    indices: Operand
    indptr: Operand
    columns: int
    in_range: bool = False

    @property
    def rows(self) -> int:
        return self.indptr.shape[0] - 1

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """The descriptor of the matrix."""
        return "Csr", (self.rows, self.columns, self.data.size)


def plan_sparse_product(
    planner: Planner, matrix: CompressedArrays, dense: Operand, transposed: bool
) -> Operand:
    """Emit the product of a CSR matrix, or of its transpose, and a dense vector or matrix."""
    if matrix.data.size != matrix.indices.size:
        raise ShapeError(
            f"dot: a sparse factor has {matrix.data.size} entries for {matrix.indices.size} indices"
        )
    met, kept = matrix.rows, matrix.columns
    if not transposed:
        met, kept = kept, met
    if dense.shape[0] != met:
        shape = (kept, met)
        raise ShapeError(
            f"dot: the sparse factor has shape {shape}, the dense one {dense.shape}: the axes that "
            f"meet have lengths {met} and {dense.shape[0]}"
        )
    z = planner.new(dense.dtype, [kept, *dense.shape[1:]])
    # NVIDIA does not say that an old result, which is multiplied by 0, may be NaN.
    planner.clear(z)
    if z.size == 0 or matrix.data.size == 0 or matrix.columns == 0:
        return z
    if not matrix.in_range:
        indices = plan_in_range(planner, matrix.indices, matrix.columns)
        matrix = replace(matrix, indices=indices)
    matrix = _aligned(planner, matrix)
    turned = AS_IT_IS
    if transposed and (planner.atomics or max(met, kept, matrix.data.size) > LARGEST_32):
        turned = TRANSPOSED
    elif transposed:
        matrix = _transposed(planner, matrix)
    function = "cusparseSpMV" if dense.ndim == 1 else "cusparseSpMM"
    algorithm = REPRODUCIBLE[function] if turned == AS_IT_IS else DEFAULT
    if dense.ndim == 1:
        dense = contiguous(planner, dense)
        ops: tuple[int, ...] = (turned,)
        arrays = [matrix.key, ("DnVec", dense.shape), ("DnVec", z.shape)]
    else:
        dense, of_dense, turns = _by_rows(planner, dense)
        ops = turned, turns
        arrays = [matrix.key, of_dense, ("DnMat", (*z.shape, z.shape[1]))]
    key = SparseKey(function, z.dtype, matrix.indices.dtype, ops, algorithm, tuple(arrays))
    _call(planner, key, [matrix.indptr, matrix.indices, matrix.data, dense, z])
    return z


def _transposed(planner: Planner, matrix: CompressedArrays) -> CompressedArrays:
    """Emit the transpose of a matrix; of its pattern only where it is not known."""
    pattern = matrix.indices, matrix.indptr
    if knows_transposed_rows(planner, *pattern, matrix.columns):
        rows = CsrRows(*pattern, matrix.data)
        found = plan_transposed_rows(planner, rows, matrix.columns)
        assert found.data is not None
        made = CompressedArrays(found.data, found.indices, found.indptr, matrix.rows)
        return _aligned(planner, made)
    return planner.once(
        [matrix.data, *pattern], ("transposed", matrix.columns),
        lambda: _plan_transposed(planner, matrix),
    )  # fmt: skip


def plan_sampled_product(
    planner: Planner,
    indices: Operand,
    indptr: Operand,
    x: Operand,
    y: Operand,
    in_range: bool = False,
) -> Operand:
    """Emit the sums of x[i] y[j] at the places (i, j) of a pattern; ``in_range`` tells whether y
    is known to have all these rows.
    """
    rows = indptr.shape[0] - 1
    if x.shape[0] != rows or x.shape[1:] != y.shape[1:] or (indices.size and not y.shape[0]):
        raise ShapeError(
            f"sampling_dot: factors of shapes {x.shape} and {y.shape} do not fit a pattern of "
            f"{rows} rows and {indices.size} entries"
        )
    z = planner.new(x.dtype, indices.shape)
    planner.clear(z)
    if z.size == 0 or x.size == 0:
        return z
    checked = indices if in_range else plan_in_range(planner, indices, y.shape[0])
    pattern = _aligned(planner, CompressedArrays(z, checked, indptr, y.shape[0]))
    if x.ndim == 1:
        x, y = (one.view((*one.shape, 1), (*one.strides, one.itemsize)) for one in (x, y))
    x, of_x, turns_x = _by_rows(planner, x)
    y, of_y, turns_y = _by_rows(planner, y)
    key = SparseKey(
        "cusparseSDDMM", z.dtype, checked.dtype, (turns_x, TRANSPOSED - turns_y),
        REPRODUCIBLE["cusparseSDDMM"], (of_x, of_y, pattern.key),
    )  # fmt: skip
    _call(planner, key, [x, y, pattern.indptr, pattern.indices, z])
    return z


def _library(planner: Planner) -> Cusparse:
    library = library_of(planner.driver, Cusparse)
    if library is None:
        raise DeviceError(f"{planner.label} needs cuSPARSE, which {planner.driver.name} lacks")
    return library


def _call(planner: Planner, key: SparseKey, operands: Sequence[Operand]) -> None:
    product = _library(planner).product(key)
    work = planner.new("int8", [max(product.workspace, 1)])
    planner.call_library(product, key.function, [product.call.address, *operands, work])


def _aligned(planner: Planner, matrix: CompressedArrays) -> CompressedArrays:
    """Return arrays without gaps, at addresses that cuSPARSE takes."""
    data, indices, indptr = (
        x if x.is_contiguous and planner.alignment(x) % ALIGNMENT == 0 else _copied(planner, x)
        for x in (matrix.data, matrix.indices, matrix.indptr)
    )
    return replace(matrix, data=data, indices=indices, indptr=indptr)


def _copied(planner: Planner, x: Operand, dtype: str = "") -> Operand:
    """Return a copy in C order, by default of the same dtype."""
    found = planner.new(dtype or x.dtype, x.shape)
    plan_copy(planner, found, x)
    return found


def _by_rows(planner: Planner, x: Operand) -> tuple[Operand, tuple[str, tuple[int, ...]], int]:
    """Return a matrix, its descriptor, and whether this is that of its transpose."""
    for turns, way in ((AS_IT_IS, 1), (TRANSPOSED, -1)):
        shape = x.shape[::way]
        step = _rows_apart(shape, x.strides[::way], x.itemsize)
        if step is not None:
            return x, ("DnMat", (*shape, step)), turns
    x = contiguous(planner, x)
    return x, ("DnMat", (*x.shape, x.shape[1])), AS_IT_IS


def _rows_apart(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int | None:
    """Return the elements between rows whose elements are neighbours; None if there are no such."""
    (rows, columns), (step, further) = shape, strides
    if columns > 1 and further != itemsize:
        return None
    if rows == 1:
        return columns
    return step // itemsize if step % itemsize == 0 and step >= columns * itemsize else None


def _plan_transposed(planner: Planner, matrix: CompressedArrays) -> CompressedArrays:
    """Emit the transpose of a CSR matrix, with indices of 32 bits."""
    library, count = _library(planner), matrix.data.size
    indices, indptr = (
        x if x.dtype == "int32" else _copied(planner, x, "int32")
        for x in (matrix.indices, matrix.indptr)
    )
    made = CompressedArrays(
        planner.new(matrix.data.dtype, [count]), planner.new("int32", [count]),
        planner.new("int32", [matrix.columns + 1]), matrix.rows,
    )  # fmt: skip
    words: list[Any] = [matrix.rows, matrix.columns, count]
    how = [TYPES[matrix.data.dtype], WITH_VALUES, FROM_ZERO, SORTING]
    size = ctypes.c_size_t()
    library.call(
        "cusparseCsr2cscEx2_bufferSize", library.number, *words, *[library.nowhere] * 6, *how,
        ctypes.byref(size),
    )  # fmt: skip
    work = planner.new("int8", [max(size.value, 1)])
    arrays = [matrix.data, indptr, indices, made.data, made.indptr, made.indices]
    planner.call_library(
        library.transposing, "cusparseCsr2cscEx2", [*words, *arrays, *how, work]
    )
    return made
