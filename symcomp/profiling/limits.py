"""What the machine can do at most: how fast it copies memory and multiplies matrices. Measured once
and kept with the compiled kernels.
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

from symcomp.codegen.driver import CompilerError, cache_directory

# An array far larger than the caches, one that fits the second of them, and the order of matrices.
LARGE, SMALL, ORDER = 64 * 2**20, 128 * 2**10, 384
# The best of many short runs, as other processes may take the processor in between.
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
    """Those of this machine: measured when first asked for, which takes half a second."""
    try:
        path = cache_directory() / f"limits-{_key()}.json"
    except CompilerError:
        return measure()  # nowhere to keep them
    found = _read(path)
    if found is None:
        found = measure()
        _write(path, found)
    return found


def measure() -> Limits:
    """Measure them now."""
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
    """The least seconds that it takes."""
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < REPEATS or time.perf_counter() - began < SECONDS:
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def _key() -> str:
    """Changes with what the rates depend on."""
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
    """What was kept; None if there is nothing, or nothing that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Limits(**{name: float(found[name]) for name in Limits._fields})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, found: Limits) -> None:
    """Keep them; under another name first, so that nobody reads a half."""
    handle, name = tempfile.mkstemp(prefix="new-", dir=path.parent)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(found._asdict(), file)
    os.replace(name, path)
