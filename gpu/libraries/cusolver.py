"""cuSOLVER: systems, and the decompositions that they need; triangular systems by cuBLAS.

Both have matrices by columns. A stack of small matrices is one call where there is a function for
it, else there are as many calls as matrices, emitted as a loop. What fails leaves a number for each
matrix on the device, so nothing waits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from symcomp.gpu.errors import DeviceError
from symcomp.gpu.kernels.addresses import plan_addresses
from symcomp.gpu.libraries.batches import (
    batching,
    factor_batch,
    is_batch,
    solve_batch,
    solve_triangles,
)
from symcomp.gpu.libraries.binding import Kind, LibraryWithHandle, library_of
from symcomp.gpu.libraries.cublas import PLAIN, TRANSPOSED, Cublas, stored
from symcomp.gpu.planner import Operand, Planner

LOWER, UPPER = 0, 1
LEFT = 0
# Letters of the functions.
LETTERS = {"float32": "S", "float64": "D"}
_WITH_WORKSPACE = ("potrf", "getrf", "syevd", "geqrf", "orgqr", "gesvd")
_FUNCTIONS = (
    *_WITH_WORKSPACE, *(f"{name}_bufferSize" for name in _WITH_WORKSPACE), "potrs", "getrs",
    "potrfBatched",
)  # fmt: skip


class Cusolver(LibraryWithHandle):
    """cuSOLVER, version 11 or newer, with a handle for one device.

    NVIDIA does not promise that streams can be recorded while its functions are called.
    """

    name, called = "cusolver", "cuSOLVER"
    creating, setting = "cusolverDnCreate", "cusolverDnSetStream"
    is_recordable = False
    needed = tuple(
        f"cusolverDn{letter}{name}" for letter in LETTERS.values() for name in _FUNCTIONS
    )
    errors: ClassVar = {
        1: "not initialized", 2: "allocation failed", 3: "invalid value",
        4: "not for this architecture", 5: "mapping failed", 6: "execution failed",
        7: "internal error", 8: "this type of matrices is not supported", 9: "not supported",
        10: "zero pivot", 11: "license error", 31: "invalid workspace",
    }  # fmt: skip


def factor_positive(planner: Planner, x: Operand, lower: bool) -> Operand:
    """Emit Cholesky decompositions in place.

    Parameters
    ----------
    x : Operand
        (s, n, n), in C order; one triangle is read, and becomes the factor.
    lower : bool
        Which one.

    Returns
    -------
    Operand
        For each matrix the order of the first leading minor that is not positive, or 0: int32.
    """
    failed = planner.new("int32", x.shape[:1])
    triangle, n = stored_triangle(lower), x.shape[-1]
    if is_batch(x):
        words = [triangle, n, plan_addresses(planner, x), n, failed, x.shape[0], x]
        call_solver(planner, "potrfBatched", x.dtype, words)
        return failed
    work, size = workspace(planner, "potrf", x.dtype, [triangle, n, 0, n])

    def emit(one: Operand, info: Operand) -> None:
        call_solver(planner, "potrf", x.dtype, [triangle, n, one, n, work, size, info])

    for_each(planner, [x, failed], emit)
    return failed


def solve_positive(planner: Planner, a: Operand, z: Operand, lower: bool) -> Operand:
    """Emit solving systems of positive definite matrices in place.

    Parameters
    ----------
    a : Operand
        (s, n, n), in C order: overwritten.
    z : Operand
        (s, k, n), in C order: right sides, which become solutions.
    lower : bool
        Which triangle of a is read.

    Returns
    -------
    Operand
        As ``factor_positive`` has it.
    """
    failed = factor_positive(planner, a, lower)
    ignored = planner.new("int32", ())
    triangle, n, k = stored_triangle(lower), a.shape[-1], z.shape[-2]

    def emit(one: Operand, columns: Operand) -> None:
        call_solver(planner, "potrs", a.dtype, [triangle, n, k, one, n, columns, n, ignored])

    library = batching(planner, a)
    if k and library is not None:
        operations = [PLAIN, TRANSPOSED] if triangle == LOWER else [TRANSPOSED, PLAIN]
        solve_triangles(planner, library, a, z, triangle, operations)
    elif k:
        for_each(planner, [a, z], emit)
    return failed


def factor_general(planner: Planner, a: Operand) -> tuple[Operand, Operand]:
    """Emit LU decompositions of matrices by columns, in place.

    Parameters
    ----------
    a : Operand
        (s, n, n), in C order: transposes of the matrices.

    Returns
    -------
    pivots : Operand
        (s, n), int32: the rows, counted from 1, that were exchanged.
    failed : Operand
        For each matrix the number, from 1 on, of the first pivot that is 0; or 0: int32.
    """
    count, n = a.shape[:2]
    failed, pivots = planner.new("int32", [count]), planner.new("int32", [count, n])
    library = batching(planner, a)
    if library is not None:
        factor_batch(planner, library, a, pivots, failed)
        return pivots, failed
    work, _ = workspace(planner, "getrf", a.dtype, [n, n, 0, n])

    def emit(one: Operand, rows: Operand, info: Operand) -> None:
        call_solver(planner, "getrf", a.dtype, [n, n, one, n, work, rows, info])

    for_each(planner, [a, pivots, failed], emit)
    return pivots, failed


def solve_general(planner: Planner, a: Operand, z: Operand) -> Operand:
    """Emit solving systems in place.

    Parameters
    ----------
    a, z : Operand
        As in ``solve_positive``.

    Returns
    -------
    Operand
        As the last one of ``factor_general``.
    """
    pivots, failed = factor_general(planner, a)
    ignored = planner.new("int32", ())
    n, k = a.shape[-1], z.shape[-2]

    def emit(one: Operand, rows: Operand, columns: Operand) -> None:
        # The matrix by columns is the transpose.
        given = [TRANSPOSED, n, k, one, n, rows, columns, n, ignored]
        call_solver(planner, "getrs", a.dtype, given)

    library = batching(planner, a)
    if k and library is not None:
        solve_batch(planner, library, a, pivots, z)
    elif k:
        for_each(planner, [a, pivots, z], emit)
    return failed


def solve_triangular(
    planner: Planner, a: Operand, z: Operand, lower: bool, unit_diagonal: bool
) -> None:
    """Emit solving systems of triangular matrices in place.

    Parameters
    ----------
    a : Operand
        (s, n, n), in C order; or, if s is 1, of a layout that cuBLAS reads.
    z : Operand
        As in ``solve_positive``.
    lower : bool
        Whether the matrices are lower triangular.
    unit_diagonal : bool
        Whether the diagonal is not read, but 1.
    """
    how = stored(a)
    assert how is not None
    operation, step = how
    is_low = lower if operation == PLAIN else not lower
    triangle = LOWER if is_low else UPPER
    n, k = a.shape[-1], z.shape[-2]
    one = planner.constant(np.ones((), a.dtype))
    library = found(planner, Cublas)

    def emit(matrix: Operand, columns: Operand) -> None:
        planner.call_library(
            library, f"cublas{LETTERS[a.dtype]}trsm_v2_64",
            [LEFT, triangle, operation, int(unit_diagonal), n, k, one, matrix, step, columns, n],
        )  # fmt: skip

    if k and is_batch(a):
        solve_triangles(planner, library, a, z, triangle, [operation], unit_diagonal)
    elif k:
        for_each(planner, [a, z], emit)


def found(planner: Planner, kind: type[Kind]) -> Kind:
    """Return a library of the device of a plan.

    Raises
    ------
    DeviceError
        If it is missing.
    """
    library = library_of(planner.driver, kind)
    if library is None:
        raise DeviceError(f"{planner.label} needs {kind.called}, which {planner.driver.name} lacks")
    return library


def stored_triangle(lower: bool) -> int:
    """Return the triangle that cuSOLVER sees, of a matrix by rows."""
    return UPPER if lower else LOWER


def call_solver(planner: Planner, name: str, dtype: str, words: Sequence[Any]) -> None:
    """Emit a call of a function of cuSOLVER."""
    library = found(planner, Cusolver)
    planner.call_library(library, f"cusolverDn{LETTERS[dtype]}{name}", words)


def workspace(
    planner: Planner, name: str, dtype: str, words: Sequence[int]
) -> tuple[Operand, int]:
    """Return memory for a function, and its number of elements."""
    library, size = found(planner, Cusolver), ctypes.c_int()
    function = f"cusolverDn{LETTERS[dtype]}{name}_bufferSize"
    library.call(function, library.number, *words, ctypes.byref(size))
    return planner.new(dtype, [max(size.value, 1)]), size.value


def for_each(planner: Planner, stacks: Sequence[Operand], emit: Callable[..., None]) -> None:
    """Emit the calls for each entry of stacks: a loop, if there are several."""
    rows = [x.view(x.shape[1:], x.strides[1:]) for x in stacks]
    count = stacks[0].shape[0]
    if count == 1:
        emit(*rows)
        return
    with planner.step() as step:
        emit(*(planner.moving(r, r, x.strides[0]) for r, x in zip(rows, stacks, strict=True)))
    planner.repeat(step, count)
