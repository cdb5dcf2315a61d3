"""How many threads BLAS uses while compiled functions run.

The number is one for the whole process, and BLAS reads it when a product begins: it is set when a
function begins and set back when it ends. Of several that run at once, the last that began decides.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

from symcomp.config import config
from symcomp.cvm.kernels import threads_to_use
from symcomp.lazy import import_alone, lazy_module

threadpoolctl = lazy_module("threadpoolctl")


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


def limit_of_decompositions() -> BlasLimit | None:
    """Return the context in which a large matrix is decomposed; None: as many threads as always."""
    threads = threads_to_use() if config.blas_threads == 0 else 1
    return BlasLimit(threads) if threads > 1 else None


@cache
def _libraries() -> list[Any]:
    """Return the controllers of each loaded BLAS, that of SciPy among them."""
    import_alone("scipy", "linalg", "cython_blas")
    found = threadpoolctl.ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


_lock = threading.Lock()
# Limits in force, with their threads, the last one being effective; and the setting before the
# first.
_limits: list[tuple[int, BlasLimit]] = []
_before: list[int | None] = []


def _begin_anew() -> None:
    """Drop the limits of the parent process: its threads do not exist in a forked child."""
    global _lock
    _lock = threading.Lock()
    _limits[:] = [limit for limit in _limits if limit[0] == threading.get_ident()]
    if _before:
        _use_last()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class BlasLimit:
    """A reentrant context in which BLAS uses a number of threads.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        with _lock:
            if not _limits:
                _before[:] = [library.get_num_threads() for library in _libraries()]
            _limits.append((threading.get_ident(), self))
            _use_last()

    def __exit__(self, *problem: object) -> None:
        with _lock:
            # The last that is equal to this one: two entries of one limit are the same.
            entry = threading.get_ident(), self
            del _limits[len(_limits) - 1 - _limits[::-1].index(entry)]
            _use_last()


def _use_last() -> None:
    """Have BLAS use what counts now."""
    threads = [_limits[-1][1].threads] * len(_before) if _limits else _before
    for library, count in zip(_libraries(), threads, strict=True):
        if count is not None and library.get_num_threads() != count:
            library.set_num_threads(count)
