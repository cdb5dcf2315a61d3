"""Stacks of small matrices, all of one stack in one call of cuBLAS or cuSOLVER.

These functions take the addresses of matrices, which a kernel writes. What a call passes beyond its
arguments is ignored, so it passes the matrices as well: their memory is in use until then.
"""

from __future__ import annotations

import numpy as np

from symcomp.gpu.kernels.addresses import plan_addresses
from symcomp.gpu.libraries.binding import library_of
from symcomp.gpu.libraries.cublas import LETTERS, TRANSPOSED, Cublas
from symcomp.gpu.planner import Operand, Planner

#: Larger matrices keep a card busy one by one.
MOST_ROWS = 128
LEFT = 0


def is_batch(a: Operand) -> bool:
    """Return whether matrices (s, n, n) are computed in one call."""
    return a.shape[0] > 1 and a.shape[-1] <= MOST_ROWS


def batching(planner: Planner, a: Operand) -> Cublas | None:
    """Return cuBLAS, if matrices (s, n, n) are a batch for it; None if not, or if it is missing."""
    return library_of(planner.driver, Cublas) if is_batch(a) else None


def factor_batch(
    planner: Planner, library: Cublas, a: Operand, pivots: Operand, failed: Operand
) -> None:
    """Emit LU decompositions of matrices by columns, as ``factor_general`` does."""
    count, n = a.shape[:2]
    words = [n, plan_addresses(planner, a), n, pivots, failed, count, a]
    planner.call_library(library, f"cublas{LETTERS[a.dtype]}getrfBatched", words)


def solve_batch(
    planner: Planner, library: Cublas, a: Operand, pivots: Operand, z: Operand
) -> None:
    """Emit solving decomposed systems, as ``solve_general`` does."""
    (count, k, n), places = z.shape, [plan_addresses(planner, x) for x in (a, z)]
    words = [
        TRANSPOSED, n, k, places[0], n, pivots, places[1], n, library.ignored, count, a, z,
    ]  # fmt: skip
    planner.call_library(library, f"cublas{LETTERS[a.dtype]}getrsBatched", words)


def solve_triangles(
    planner: Planner,
    library: Cublas,
    a: Operand,
    z: Operand,
    triangle: int,
    operations: list[int],
    unit_diagonal: bool = False,
) -> None:
    """Emit solving systems of triangular matrices in place, of one operation after another.

    Parameters
    ----------
    a : Operand
        (s, n, n), in C order.
    z : Operand
        (s, k, n), in C order.
    triangle : int
        That of the matrices by columns.
    operations : list of int
        PLAIN or TRANSPOSED.
    """
    (count, k, n), places = z.shape, [plan_addresses(planner, x) for x in (a, z)]
    one = planner.constant(np.ones((), a.dtype))
    for operation in operations:
        words = [
            LEFT, triangle, operation, int(unit_diagonal), n, k, one, places[0], n, places[1], n,
            count, a, z,
        ]  # fmt: skip
        planner.call_library(library, f"cublas{LETTERS[a.dtype]}trsmBatched", words)
