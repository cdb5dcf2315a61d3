"""Measure the limits of the machine: how fast it copies memory and multiplies matrices. The results
are kept with the compiled kernels.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symcomp.codegen.compiler.driver import CompilerError, cache_directory

# An array far larger than the caches, one that fits the second of them, and the order of matrices.
LARGE, SMALL, ORDER = 64 * 2**20, 128 * 2**10, 384
# The best of many short runs, as other processes may interrupt some.
SECONDS, REPEATS = 0.15, 5


class Limits(NamedTuple):
    """The rates of the machine with the threads that NumPy's BLAS may use.

    Attributes
    ----------
    memory, cache : float
        Bytes read and written in a second, by copying a large array, and one that fits the cache.
    float64, float32 : float
        Operations in a second, by multiplying matrices of that dtype.
    """

    memory: float
    cache: float
    float64: float
    float32: float


@cache
def limits() -> Limits:
    """Return the limits of this machine; measured on first use, which takes half a second."""
    try:
        path = cache_directory() / f"limits-{_key()}.json"
    except CompilerError:
        return measure()  # no directory to keep them in
    found = _read(path)
    if found is None:
        found = measure()
        _write(path, found)
    return found


def measure() -> Limits:
    """Measure the limits now."""
    return Limits(
        _copying(LARGE), _copying(SMALL), _multiplying(np.float64), _multiplying(np.float32)
    )


def _copying(size: int) -> float:
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)
    times = max(1, 4 * 2**20 // size)

    def work() -> None:
        for _ in range(times):
            np.copyto(target, source)

    return 2 * size * times / _best(work)


def _multiplying(dtype: type) -> float:
    a: Any = np.ones((ORDER, ORDER), dtype)
    b, out = a.copy(), a.copy()
    return 2 * ORDER**3 / _best(lambda: np.dot(a, b, out))


def _best(work: Callable[[], object]) -> float:
    """Return the least number of seconds that ``work`` takes."""
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < REPEATS or time.perf_counter() - began < SECONDS:
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def _key() -> str:
    """Return a key of everything that the rates depend on."""
    processor = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text(encoding="utf-8").splitlines()
        processor = next((line for line in lines if line.startswith("model name")), processor)
    threads = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.endswith("_NUM_THREADS")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = (platform.node(), processor, str(cores), np.__version__, *threads)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _read(path: Path) -> Limits | None:
    """Read kept limits; None if there are none, or the file is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Limits(**{name: float(found[name]) for name in Limits._fields})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, found: Limits) -> None:
    """Write limits to a temporary file and rename it, so that no process reads a partial file."""
    handle, name = tempfile.mkstemp(prefix="new-", dir=path.parent)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(found._asdict(), file)
    os.replace(name, path)
