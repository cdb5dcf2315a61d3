"""Products by cuBLAS, which takes matrices of any layout with neighbours along one axis: none is
copied.

cuBLAS has its matrices by columns. A matrix by rows is its transpose by columns, so a product whose
result is by rows is computed as z^T = b^T a^T. Factors lie on the device, as everything else does:
the host never waits.
"""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import numpy as np

from symcomp.cvm.machine import LibraryHandle
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.formulas import plan_copy
from symcomp.gpu.kernels.products import ProductOperands
from symcomp.gpu.libraries.binding import LibraryWithHandle, library_of
from symcomp.gpu.planner import Operand, Planner

POINTER_MODE_DEVICE = 1
# The operations of a matrix: none, and transposed.
PLAIN, TRANSPOSED = 0, 1
DEFAULT_ALGORITHM = -1
# Numbers of types and of kinds of computing, and the dtype of factors.
TYPES = {
    "float16": (2, 68, "float32"), "bfloat16": (14, 68, "float32"), "float32": (0, 68, "float32"),
    "float64": (1, 70, "float64"), "complex64": (4, 68, "complex64"),
    "complex128": (5, 70, "complex128"),
}  # fmt: skip
#: How products of float32 and complex64 are computed, by ``config.gpu_products``.
COMPUTING = {"full": 68, "tf32": 77, "bf16": 75}
# Letters of the functions for vectors.
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
MATRICES = "cublasGemmStridedBatchedEx_64"


class Cublas(LibraryWithHandle):
    """cuBLAS, version 12 or newer, with a handle for one device.

    Attributes
    ----------
    ignored : int
        Where functions may write a number on the host.
    """

    name, called = "cublas", "cuBLAS"
    creating, setting = "cublasCreate_v2", "cublasSetStream_v2"
    needed = (MATRICES,)
    errors: ClassVar = {
        1: "not initialized", 3: "allocation failed", 7: "invalid value",
        8: "not for this architecture", 11: "mapping failed", 13: "execution failed",
        14: "internal error", 15: "not supported", 16: "license error",
    }  # fmt: skip

    def handle_for(self, handle: int) -> LibraryHandle:
        self.call("cublasSetPointerMode_v2", handle, POINTER_MODE_DEVICE)
        self._number = ctypes.c_int()
        self.ignored = ctypes.addressof(self._number)
        # Sizes that NVIDIA advises; memory of our own lets work be captured in graphs.
        capability = _capability(self.driver)
        nbytes = (32 if capability is not None and capability >= 90 else 4) << 20
        memory = self._workspace = self.driver.allocate(nbytes, "the workspace of cuBLAS")
        setting = self.address(self.setting), self.address("cublasSetWorkspace_v2")
        return LibraryHandle(handle, *setting, memory.address, nbytes)


def _capability(driver: Driver) -> int | None:
    """Return ten times the compute capability of a card; None for the emulator."""
    return int(driver.arch[3:]) if driver.arch.startswith("sm_") else None


def plan_by_cublas(
    planner: Planner, z: Operand, a: Operand, b: Operand, scaled: ProductOperands | None = None
) -> bool:
    """Emit z = alpha a b + beta c by cuBLAS, if it is there and takes these operands.

    Parameters
    ----------
    z, a, b : Operand
        (s, m, n), (s, m, k), (s, k, n), or without the first axis; z in C order, of the dtype of
        the others, or of float32 where these are of bfloat16.
    scaled : ProductOperands, optional
    """
    if z.dtype not in TYPES or z.size == 0 or a.shape[-1] == 0:
        return False
    library = library_of(planner.driver, Cublas)
    capability = _capability(planner.driver)
    if library is None or (a.dtype == "bfloat16" and capability is not None and capability < 80):
        return False
    call = _vector_call(z, a, b, scaled) or _matrix_call(z, a, b, planner.products)
    if call is None:
        return False
    function, words = call
    scaled = scaled or ProductOperands()
    if scaled.c is not None:
        plan_copy(planner, z, scaled.c)
    dtype = TYPES[z.dtype][2]
    alpha = _factor(planner, scaled.alpha, 1, dtype)
    beta = _factor(planner, scaled.beta if scaled.c is not None else None, 0, dtype)
    places = {"alpha": alpha, "beta": beta}
    given = [places[w] if isinstance(w, str) else w for w in words]
    planner.call_library(library, function, given)
    return True


def _factor(planner: Planner, x: Operand | None, value: int, dtype: str) -> Operand:
    """Return a factor on the device, in the dtype that cuBLAS reads."""
    if x is None:
        return planner.constant(np.full((), value, dtype))
    if x.dtype == dtype:
        return x
    found = planner.new(dtype, ())
    plan_copy(planner, found, x)
    return found


def _turned(x: Operand) -> Operand:
    swap = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return x.view(swap(x.shape), swap(x.strides))


def stored(x: Operand) -> tuple[int, int] | None:
    """Return how cuBLAS reads a matrix, or a stack: the operation that makes ``x`` of the matrix
    that lies there by columns, and the elements from one column to the next; None if neither
    columns nor rows have neighbours in memory.
    """
    steps = [s // x.itemsize for s in x.strides[-2:]]
    for inner, outer, operation in ((0, 1, PLAIN), (1, 0, TRANSPOSED)):
        n, columns = x.shape[-2:][inner], x.shape[-2:][outer]
        if n > 1 and steps[inner] != 1:
            continue
        if columns == 1 or steps[outer] >= n:
            return operation, n if columns == 1 else steps[outer]
    return None


def _matrix_call(z: Operand, a: Operand, b: Operand, products: str) -> tuple[str, list[Any]] | None:
    """Return the function and its arguments, as z^T = b^T a^T, for matrices and stacks of them."""
    first, second = stored(_turned(b)), stored(_turned(a))
    batches = z.shape[0] if z.ndim == 3 else 1
    steps = [x.strides[0] // x.itemsize if x.ndim == 3 else 0 for x in (b, a, z)]
    if first is None or second is None or min(steps) < 0:
        return None
    given, computing, _ = TYPES[a.dtype]
    if a.dtype in ("float32", "complex64"):
        computing = COMPUTING[products]
    n, m, k = z.shape[-1], z.shape[-2], a.shape[-1]
    return MATRICES, [
        first[0], second[0], n, m, k, "alpha", b, given, first[1], steps[0],
        a, given, second[1], steps[1], "beta", z, TYPES[z.dtype][0], n, steps[2], batches,
        computing, DEFAULT_ALGORITHM,
    ]  # fmt: skip


def _vector_call(
    z: Operand, a: Operand, b: Operand, scaled: ProductOperands | None
) -> tuple[str, list[Any]] | None:
    """Return the function and its arguments for a vector and a matrix, or two vectors."""
    letter = LETTERS.get(a.dtype)
    rows, columns = z.shape[-2:]
    if letter is None or z.ndim == 3 or (rows > 1 and columns > 1):
        return None
    if columns > 1:  # z^T = b^T a^T
        return _vector_call(_turned(z), _turned(b), _turned(a), scaled)
    x = _vector(b)
    if x is None:
        return None
    if rows == 1 and scaled is None:
        y = _vector(_turned(a))
        if y is not None:
            function = f"cublas{letter}dot{'u' * (letter in 'CZ')}_v2_64"
            return function, [a.shape[-1], y[0], y[1], x[0], x[1], z]
    how = stored(a)
    if how is None:
        return None
    m, n = a.shape if how[0] == PLAIN else a.shape[::-1]
    words = [how[0], m, n, "alpha", a, how[1], *x, "beta", z, 1]
    return f"cublas{letter}gemv_v2_64", words


def _vector(x: Operand) -> tuple[Operand, int] | None:
    """Return a column as BLAS reads it: where it begins in memory, and the elements from one to the
    next.
    """
    step = x.strides[0] // x.itemsize if x.shape[0] > 1 else 1
    if step == 0:
        return None
    back = (x.shape[0] - 1) * x.strides[0] if step < 0 else 0
    return x.view(x.shape, x.strides, back), step
