"""Inverses, systems and logarithms of determinants of real matrices to the last digits.

The C of ``cvm/linalg/corrected_lu.h``, where the method and its error bounds are explained, and of
``refined_solve.h``, for NumPy's arrays. setup.py compiles it as the extension module
``symcomp.ops.linalg._corrected_linalg``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symcomp.lazy import import_alone, lazy_module

compiled = lazy_module("symcomp.ops.linalg._corrected_linalg")


@cache
def _module() -> Any:
    """Return the extension module, which calls SciPy's BLAS and LAPACK."""
    blas = import_alone("scipy", "linalg", "cython_blas").__pyx_capi__
    lapack = import_alone("scipy", "linalg", "cython_lapack").__pyx_capi__
    compiled.set_routines(blas["dgemm"], blas["dtrsm"], lapack["dgetrf"])
    return compiled


def largest() -> int:
    """Return the number of rows from which on matrices are left to LAPACK.

    Corrections cost a few products of matrices.
    """
    return int(compiled.LARGEST_REFINED)


def inverse(a: Any) -> Any:
    """Return the inverse of a finite matrix in float64, or None if it is singular."""
    z = np.empty(a.shape)
    return z if _run("inverse", a, z=[z]) else None


def solution(a: Any, b: Any) -> Any:
    """Return x with ``a x = b``, finite matrices, in float64; None if ``a`` is singular."""
    z = np.empty(b.shape)
    return z if _run("solve", a, b, z=[z]) else None


def log_determinant(a: Any) -> tuple[Any, Any]:
    """Return the sign of the determinant of a finite matrix, and the logarithm of its modulus."""
    sign, logabs = np.empty((1, 1)), np.empty((1, 1))
    _run("log_determinant", a, z=[sign, logabs])
    return sign[0, 0], logabs[0, 0]


def inverse_form(x: Any, a: Any, y: Any) -> Any:
    """Return ``x^T a^-1 y`` for finite vectors and a finite matrix; None if ``a`` is singular."""
    z = np.empty((1, 1))
    found = _run("inverse_form", a, x[:, None], y[:, None], z=[z])
    return z[0, 0] if found else None


def _run(name: str, *given: Any, z: list[Any]) -> bool:
    """Compute the matrices ``z``; tell whether the first given one has an inverse."""
    stacks = [np.ascontiguousarray(x, np.float64)[None] for x in given]
    found: bool = _module().run(name, *stacks, *(x[None] for x in z))
    return found
