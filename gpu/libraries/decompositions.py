"""Eigenvalues, singular values and QR decompositions by cuSOLVER, of stacks of matrices by columns.

A matrix by columns lies in memory as its transpose by rows, which is what operands have.
"""

from __future__ import annotations

from symcomp.gpu.libraries.cusolver import call_solver, for_each, stored_triangle, workspace
from symcomp.gpu.planner import Operand, Planner

# Words for "no vectors", and for those of all rows or as many as there are singular values.
NONE, ALL, SOME = (ord(letter) for letter in "NAS")


def eigenvalues(
    planner: Planner, x: Operand, lower: bool, has_vectors: bool
) -> tuple[Operand, Operand]:
    """Emit decompositions of symmetric matrices in place.

    Parameters
    ----------
    x : Operand
        (s, n, n), in C order: overwritten; by rows of eigenvectors, if ``has_vectors``.
    lower : bool
        Which triangle is read.
    has_vectors : bool

    Returns
    -------
    w : Operand
        (s, n): the eigenvalues, ascending.
    failed : Operand
        (s,), int32: not 0 where they were not found.
    """
    count, n = x.shape[:2]
    w, failed = planner.new(x.dtype, [count, n]), planner.new("int32", [count])
    how = [int(has_vectors), stored_triangle(lower), n]
    work, size = workspace(planner, "syevd", x.dtype, [*how, 0, n, 0])

    def emit(one: Operand, values: Operand, info: Operand) -> None:
        call_solver(planner, "syevd", x.dtype, [*how, one, n, values, work, size, info])

    for_each(planner, [x, w, failed], emit)
    return w, failed


def reflectors(planner: Planner, x: Operand) -> Operand:
    """Emit QR decompositions in place, as LAPACK's geqrf has them.

    Parameters
    ----------
    x : Operand
        (s, n, m), in C order: the transposes of the matrices.

    Returns
    -------
    Operand
        (s, min(m, n)): the factors of the reflectors.
    """
    count, n, m = x.shape
    factors, ignored = planner.new(x.dtype, [count, min(m, n)]), planner.new("int32", ())
    work, size = workspace(planner, "geqrf", x.dtype, [m, n, 0, m])

    def emit(one: Operand, tau: Operand) -> None:
        call_solver(planner, "geqrf", x.dtype, [m, n, one, m, tau, work, size, ignored])

    for_each(planner, [x, factors], emit)
    return factors


def orthogonal(planner: Planner, x: Operand, factors: Operand) -> None:
    """Emit making the first columns of the products of reflectors, in place.

    Parameters
    ----------
    x : Operand
        (s, c, m), in C order, c <= m: of ``reflectors`` in as many rows as there are factors.
    factors : Operand
        (s, k), k <= c.
    """
    (_, columns, m), k = x.shape, factors.shape[-1]
    ignored = planner.new("int32", ())
    work, size = workspace(planner, "orgqr", x.dtype, [m, columns, k, 0, m, 0])

    def emit(one: Operand, tau: Operand) -> None:
        words = [m, columns, k, one, m, tau, work, size, ignored]
        call_solver(planner, "orgqr", x.dtype, words)

    for_each(planner, [x, factors], emit)


def singular_values(
    planner: Planner, x: Operand, left: Operand | None, right: Operand | None
) -> tuple[Operand, Operand]:
    """Emit singular value decompositions x = u diag(s) v^T of matrices with m >= n.

    Parameters
    ----------
    x : Operand
        (s, n, m), in C order: the transposes of the matrices; overwritten.
    left : Operand, optional
        (s, m or n, m), in C order: where u^T goes.
    right : Operand, optional
        (s, n, n), in C order: where v goes. Both are given, or none is.

    Returns
    -------
    values : Operand
        (s, n): the singular values, descending.
    failed : Operand
        (s,), int32: not 0 where they were not found.
    """
    count, n, m = x.shape
    values, failed = planner.new(x.dtype, [count, n]), planner.new("int32", [count])
    rest = planner.new(x.dtype, [n])
    work, size = workspace(planner, "gesvd", x.dtype, [m, n])
    if left is None or right is None:
        wanted, places = [NONE, NONE], []
    else:
        wanted, places = [ALL if left.shape[1] > n else SOME, ALL], [left, right]

    def emit(one: Operand, s: Operand, info: Operand, *vectors: Operand) -> None:
        u, v = vectors or (0, 0)
        words = [*wanted, m, n, one, m, s, u, m, v, n, work, size, rest, info]
        call_solver(planner, "gesvd", x.dtype, words)

    for_each(planner, [x, values, failed, *places], emit)
    return values, failed
