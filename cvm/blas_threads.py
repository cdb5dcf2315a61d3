"""How many threads BLAS uses while compiled functions run.

The number is one for the whole process, and BLAS reads it when a product begins: it is set when a
function begins and set back when it ends. If several run at once, the last that began decides.
"""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import product
from typing import Any

from symcomp.config import config
from symcomp.cvm.kernels import threads_to_use
from symcomp.cvm.machine import BlasLibrary, BlasLimit
from symcomp.lazy import import_alone, lazy_module

threadpoolctl = lazy_module("threadpoolctl")

# The names under which builds of OpenBLAS have their functions.
PREFIXES, COUNTS = ("", "scipy_"), ("num_threads", "num_threads64_", "num_threads_64")


def blas_threads_to_use() -> int:
    """Return how many threads BLAS may use; 0: as many as it was started with.

    With ``openmp``, the threads of the pool share products, so that BLAS uses one by default.
    """
    if config.blas_threads > 0:
        return config.blas_threads
    return 1 if config.openmp else 0


def threads_of_products() -> int:
    """Return how many threads of the pool share large products; 0: these are left to BLAS."""
    return threads_to_use() if config.openmp and blas_threads_to_use() == 1 else 0


def blas_limit(threads: int) -> BlasLimit | None:
    """Return a context in which BLAS uses ``threads`` threads; None for 0: as many as always."""
    return BlasLimit(threads, _libraries) if threads else None


def limit_of_decompositions() -> BlasLimit | None:
    """Return the context in which a large matrix is decomposed; None: as many threads as always."""
    threads = threads_to_use() if config.blas_threads == 0 else 1
    return blas_limit(threads) if threads > 1 else None


@cache
def _libraries() -> list[BlasLibrary]:
    """Return each loaded BLAS, that of SciPy among them."""
    import_alone("scipy", "linalg", "cython_blas")
    found = threadpoolctl.ThreadpoolController().lib_controllers
    return [BlasLibrary(x, *_addresses(x)) for x in found if x.user_api == "blas"]


def _addresses(controller: Any) -> tuple[int, int]:
    """Return the addresses of the C functions that get and set the number of threads, or zeros."""
    names = [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")]
    if controller.internal_api == "openblas":
        names = [
            (f"{prefix}openblas_get_{count}", f"{prefix}openblas_set_{count}")
            for prefix, count in product(PREFIXES, COUNTS)
        ]
        if controller.threading_layer == "openmp":
            names = [("omp_get_max_threads", "omp_set_num_threads")]
    library = controller.dynlib
    for get, set_ in names:
        if hasattr(library, get) and hasattr(library, set_):
            return _address(library[get]), _address(library[set_])
    return 0, 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
