"""Calls of BLAS on arrays as they lie in memory: a C-ordered matrix is a transposed Fortran one.

Operands that BLAS cannot take (strides inside rows and columns, empty sums, a factor 0 that would
hide NaN) go through NumPy, with the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from symcomp.lazy import lazy_module

blas = lazy_module("scipy.linalg.blas")

# The dtypes of BLAS
DTYPES = ("float32", "float64", "complex64", "complex128")


@cache
def _routine(name: str, dtype: np.dtype) -> Callable[..., Any]:
    if name == "ger" and dtype.kind == "c":
        name = "geru"
    found: Callable[..., Any] = blas.get_blas_funcs((name,), dtype=dtype)[0]
    return found


def _as_fortran(x: Any) -> tuple[Any, int] | None:
    """Return ``x`` as a Fortran-ordered array and whether it is transposed; None if neither order
    fits.
    """
    if not _is_native(x):
        return None
    if x.flags.f_contiguous:
        return x, 0
    return (x.T, 1) if x.flags.c_contiguous else None


def _is_native(*arrays: Any) -> bool:
    """Tell whether all arrays are in native byte order; SciPy does not check."""
    return all(x.dtype.isnative for x in arrays)


def _writable(z: Any) -> bool:
    """Tell whether BLAS writes into the memory of ``z`` itself."""
    return bool(z.size and z.flags.forc and z.flags.behaved and _is_native(z))


def start_of(c: Any, beta: Any) -> Any:
    """Return a new array for ``beta c + ...``: a copy of ``c``, or an uninitialized array if beta
    is 0.
    """
    dtype = c.dtype.newbyteorder("=")
    return np.empty(c.shape, dtype) if beta == 0 else np.array(c, dtype, order="K")


def add_scaled(z: Any, beta: Any, alpha: Any, product: Any) -> Any:
    """z <- beta z + alpha product, by NumPy. ``product`` is overwritten; z is not read for beta
    0.
    """
    np.multiply(product, alpha, out=product)
    if beta == 0:
        np.copyto(z, product)
    else:
        np.multiply(z, beta, out=z)
        np.add(z, product, out=z)
    return z


def gemm(z: Any, alpha: Any, x: Any, y: Any, beta: Any) -> Any:
    """z <- beta z + alpha x y for matrices; returns z."""
    if z.flags.c_contiguous:
        target, first, second = z.T, _as_fortran(y.T), _as_fortran(x.T)
    else:
        target, first, second = z, _as_fortran(x), _as_fortran(y)
    if first is None or second is None or not x.shape[1] or alpha == 0 or not _writable(z):
        return add_scaled(z, beta, alpha, np.dot(x, y))
    (a, trans_a), (b, trans_b) = first, second
    _routine("gemm", z.dtype)(
        alpha, a, b, beta=beta, c=target, trans_a=trans_a, trans_b=trans_b, overwrite_c=1
    )
    return z


def gemv(z: Any, alpha: Any, a: Any, x: Any, beta: Any) -> Any:
    """z <- beta z + alpha a x for a matrix and a vector; returns z."""
    fortran = _as_fortran(a)
    if fortran is None or not _is_native(x) or not x.size or alpha == 0 or not _writable(z):
        return add_scaled(z, beta, alpha, np.dot(a, x))
    _routine("gemv", z.dtype)(alpha, fortran[0], x, beta=beta, y=z, trans=fortran[1], overwrite_y=1)
    return z


def ger(z: Any, alpha: Any, x: Any, y: Any) -> Any:
    """z <- z + alpha x y^T for vectors; returns z."""
    if alpha == 0 or not _writable(z) or not _is_native(x, y):
        return add_scaled(z, 1, alpha, np.multiply.outer(x, y))
    target, first, second = (z.T, y, x) if z.flags.c_contiguous else (z, x, y)
    _routine("ger", z.dtype)(
        alpha, first, second, a=target, overwrite_x=0, overwrite_y=0, overwrite_a=1
    )
    return z


def batched_gemm(z: Any, alpha: Any, x: Any, y: Any, beta: Any) -> Any:
    """z[i] <- beta z[i] + alpha x[i] y[i]; returns z."""
    return add_scaled(z, beta, alpha, np.matmul(_for_matmul(x), _for_matmul(y)))


def _for_matmul(x: Any) -> Any:
    """Return ``x``, copied if neither its rows nor its columns are contiguous: matmul would not use
    BLAS.
    """
    return x if x.itemsize in x.strides[-2:] else np.ascontiguousarray(x)
