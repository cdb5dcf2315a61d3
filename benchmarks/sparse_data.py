"""The matrices of benchmarks/sparse.py and sparse_peers.py, made of NumPy and SciPy alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

N, ENTRIES = 100_000, 1_000_000


def with_short_indices(value: Any) -> Any:
    """Return a CSR array with indices of int32, which every library reads fastest."""
    arrays = value.data, value.indices.astype("int32"), value.indptr.astype("int32")
    return sp.csr_array(arrays, shape=value.shape)


def matrix(seed: int = 0, n: int = N, m: int = N, entries: int = ENTRIES) -> Any:
    """Return a CSR matrix with normal entries at random places."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, n, entries), rng.integers(0, m, entries)
    found = sp.coo_array((rng.normal(size=entries), places), shape=(n, m)).tocsr()
    found.sum_duplicates()
    return with_short_indices(found)


def texts(rows: int = 20_000, words: int = 100_000, length: int = 80) -> tuple[Any, Any]:
    """Return counts of words, each word as often as Zipf's law says, and a label of each text."""
    rng = np.random.default_rng(0)
    drawn = np.minimum(rng.zipf(1.2, (rows, length)), words) - 1
    places = np.repeat(np.arange(rows), length), drawn.ravel()
    found = sp.coo_array((np.ones(rows * length), places), shape=(rows, words)).tocsr()
    found.sum_duplicates()
    return with_short_indices(found), rng.integers(0, 2, rows).astype("float64")


def normal(*shape: int, seed: int = 1, scale: float = 1.0) -> Any:
    """Return an array of normal numbers."""
    return np.random.default_rng(seed).normal(size=shape) * scale


def best_times(calls: Sequence[Callable[[], Any]], rounds: int, clock: str) -> list[float]:
    """Return the best time of each call in milliseconds; the calls are timed in turns.

    ``clock`` is "wall" or "cpu": processor time of one core does not depend on what else runs.
    """
    now = time.process_time if clock == "cpu" else time.perf_counter
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = now()
            call()
            times[k] = min(times[k], now() - start)
    return [1e3 * t for t in times]
