"""From how many elements on loops are faster when threads share them.

    python benchmarks/threads.py [--threads N]

Microseconds of functions of vectors of float64 with one and with N threads (all processors), by
length; the best of several windows of each in turn. ``config.openmp_elemwise_minsize`` is set by
this: far above the first length that gains on idle processors, as busy ones gain later.
"""

from __future__ import annotations

import argparse
import os
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.config import config

LENGTHS = (2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 2_000_000, 10_000_000)
ROUNDS, SECONDS = 7, 0.02
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "2 x + y": lambda x, y: 2 * x + y,
    "exp(x) - y": lambda x, y: T.exp(x) - y,
    "sum(x y)": lambda x, y: T.sum(x * y),
}


def compiled(formula: Callable[[Any, Any], Any], threads: int) -> Any:
    """Compile a function that uses threads even for short arguments."""
    x, y = T.dvectors("xy")
    several = threads > 1
    with config.change_flags(openmp=several, openmp_threads=threads, openmp_elemwise_minsize=0):
        return symcomp.function([x, y], formula(x, y), trust_input=True)


def best(call: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    call()
    timer = timeit.Timer(call)
    number = max(1, int(SECONDS / max(timer.timeit(1), 1e-7)))
    return min(timer.repeat(3, number)) / number * 1e6


def measure(name: str, threads: int) -> None:
    """Print a line for each length."""
    functions = [compiled(FORMULAS[name], n) for n in (1, threads)]
    for length in LENGTHS:
        x, y = np.random.default_rng(1).random((2, length))
        times = [[best(partial(f, x, y)) for f in functions] for _ in range(ROUNDS)]
        one, several = map(min, zip(*times, strict=True))
        print(f"{name:12} {length:10,} {one:12.1f} {several:12.1f} {one / several:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    print(f"{'':12} {'elements':>10} {'one thread':>12} {f'{given.threads} threads':>12}    times")
    for name in FORMULAS:
        measure(name, given.threads)


if __name__ == "__main__":
    main()
